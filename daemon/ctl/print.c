/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Replies on a terminal. Control characters from a Call-ID or a tag must not reach it. */
#include "ctl/print.h"

static void print_str(FILE *to, struct str s)
{
	for (size_t i = 0; i < s.len; i++) {
		unsigned char c = (unsigned char)s.s[i];

		if (c < 0x20 || c == 0x7f)
			fprintf(to, "\\x%02x", c);
		else
			fputc(c, to);
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
		print_str(to, v->str);
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
			print_str(to, c->key);
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
