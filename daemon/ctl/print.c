/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Replies on a terminal. Control characters from a Call-ID or a tag must not reach it. */
#include "ctl/print.h"

#include "proto/json.h"
#include "proto/utf8.h"

/* U+0080 to U+009F: an 8-bit terminal's CSI is among them. */
static bool is_c1(struct str s, size_t len)
{
	return len == 2 && (unsigned char)s.s[0] == 0xc2 && (unsigned char)s.s[1] < 0xa0;
}

/* Marks, embeddings, overrides and isolates of the direction of text: they make a tag look like
 * another one. U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069. */
static bool is_bidi(struct str s, size_t len)
{
	const unsigned char *p = (const unsigned char *)s.s;

	if (len == 2)
		return p[0] == 0xd8 && p[1] == 0x9c;
	if (len != 3 || p[0] != 0xe2)
		return false;
	if (p[1] == 0x80)
		return p[2] == 0x8e || p[2] == 0x8f || (p[2] >= 0xaa && p[2] <= 0xae);
	return p[1] == 0x81 && p[2] >= 0xa6 && p[2] <= 0xa9;
}

void print_text(FILE *to, struct str s)
{
	while (s.len) {
		unsigned char c = (unsigned char)s.s[0];
		size_t len = utf8_len(s);

		if (c < 0x20 || c == 0x7f || len == 0 || is_c1(s, len) || is_bidi(s, len)) {
			fprintf(to, "\\x%02x", c);
			len = 1;
		} else {
			fwrite(s.s, 1, len, to);
		}
		s.s += len;
		s.len -= len;
	}
}

static bool is_plain(const struct ngval *v)
{
	return v->type == NGVAL_STR || v->type == NGVAL_INT;
}

static void print_plain(FILE *to, const struct ngval *v)
{
	if (v->type == NGVAL_INT)
		fprintf(to, "%lld", (long long)v->num);
	else
		print_text(to, v->str);
}

static bool all_plain(const struct ngval *list)
{
	for (const struct ngval *c = list->first; c; c = c->next)
		if (!is_plain(c))
			return false;
	return true;
}

static void print_children(FILE *to, const struct ngval *v, int depth)
{
	uint32_t at = 0;

	for (const struct ngval *c = v->first; c; c = c->next, at++) {
		fprintf(to, "%*s", 2 * depth, "");
		if (v->type == NGVAL_DICT)
			print_text(to, c->key);
		else
			fprintf(to, "%u", at);
		fputs(": ", to);
		if (is_plain(c)) {
			print_plain(to, c);
		} else if (c->type == NGVAL_LIST && all_plain(c)) {
			for (const struct ngval *e = c->first; e; e = e->next) {
				print_plain(to, e);
				fputs(e->next ? ", " : "", to);
			}
		} else {
			fputc('\n', to);
			print_children(to, c, depth + 1);
			continue;
		}
		fputc('\n', to);
	}
}

void print_tree(FILE *to, const struct ngval *v)
{
	if (is_plain(v)) {
		print_plain(to, v);
		fputc('\n', to);
		return;
	}
	print_children(to, v, 0);
}

void print_json(FILE *to, const struct ngval *v)
{
	struct sbuf b;

	sbuf_init(&b, 16u << 20);
	json_write(&b, v, true);
	if (!b.err && b.p)
		fprintf(to, "%s\n", b.p);
	sbuf_fini(&b);
}

void print_refusal(const char *command, struct str result, struct str reason)
{
	fprintf(stderr, "xcipherctl: %s: ", command);
	print_text(stderr, result);
	fputs(reason.len ? ": " : "", stderr);
	print_text(stderr, reason);
	fputc('\n', stderr);
}
