/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See resp.h. The elements of an array are neighbours in node[]: they are reserved when the array's
 * length is read, and parsed after that. A length that the input or node[] cannot hold ends the
 * parsing before anything is reserved. */
#include "proto/resp.h"

#include <errno.h>

struct reading {
	struct resp *node;
	uint32_t max, used;
	const char *p;
	size_t len, at;
};

/* Without its CR LF. 0 incomplete, 1 read, or -errno. */
static int read_line(struct reading *r, struct str *line)
{
	size_t left = r->len - r->at, look = left < RESP_LINE_MAX ? left : RESP_LINE_MAX;
	const char *end = memchr(r->p + r->at, '\n', look);

	if (!end)
		return left < RESP_LINE_MAX ? 0 : -EMSGSIZE;
	*line = (struct str){r->p + r->at, (size_t)(end - (r->p + r->at))};
	if (line->len == 0 || line->s[line->len - 1] != '\r')
		return -EBADMSG;
	line->len--;
	r->at += line->len + 2;
	return 1;
}

static int read_integer(int64_t *out, struct str text)
{
	bool negative = text.len && text.s[0] == '-';
	uint64_t v;

	if (negative)
		text = (struct str){text.s + 1, text.len - 1};
	if (str_to_u64(&v, text, INT64_MAX))
		return -EBADMSG;
	*out = negative ? -(int64_t)v : (int64_t)v;
	return 0;
}

static int read_bulk(struct reading *r, struct resp *out, int64_t len)
{
	if (len > RESP_BULK_MAX)
		return -EMSGSIZE;
	if (r->len - r->at < (size_t)len + 2)
		return 0;
	if (memcmp(r->p + r->at + len, "\r\n", 2) != 0)
		return -EBADMSG;
	out->type = RESP_STRING;
	out->text = (struct str){r->p + r->at, (size_t)len};
	r->at += (size_t)len + 2;
	return 1;
}

static int read_reply(struct reading *r, struct resp *out, uint32_t depth);

static int read_array(struct reading *r, struct resp *out, int64_t n, uint32_t depth)
{
	struct resp *element = r->node + r->used;

	if (n > r->max - r->used || depth == RESP_DEPTH_MAX)
		return -EMSGSIZE;
	out->type = RESP_ARRAY;
	out->elements = (uint32_t)n;
	out->element = element;
	r->used += (uint32_t)n;
	for (int64_t i = 0; i < n; i++) {
		int res = read_reply(r, &element[i], depth + 1);

		if (res <= 0)
			return res;
	}
	return 1;
}

/* Strings and arrays begin with their length; -1 stands for nil. */
static int read_sized(
	struct reading *r, struct resp *out, char kind, struct str text, uint32_t depth)
{
	int64_t n;

	if (read_integer(&n, text) || n < -1)
		return -EBADMSG;
	if (n < 0) {
		out->type = RESP_NIL;
		return 1;
	}
	return kind == '$' ? read_bulk(r, out, n) : read_array(r, out, n, depth);
}

static int read_reply(struct reading *r, struct resp *out, uint32_t depth)
{
	struct str line;
	int res = read_line(r, &line);
	char kind;

	if (res <= 0)
		return res;
	if (line.len == 0)
		return -EBADMSG;
	kind = line.s[0];
	*out = (struct resp){.text = {line.s + 1, line.len - 1}};
	switch (kind) {
	case '+':
		out->type = RESP_STATUS;
		return 1;
	case '-':
		out->type = RESP_ERROR;
		return 1;
	case ':':
		out->type = RESP_INTEGER;
		return read_integer(&out->integer, out->text) ? -EBADMSG : 1;
	case '$':
	case '*':
		return read_sized(r, out, kind, out->text, depth);
	default:
		return -EBADMSG;
	}
}

int resp_parse(struct resp *node, uint32_t max, const char *p, size_t len)
{
	struct reading r = {.node = node, .max = max, .used = 1, .p = p, .len = len};
	int res = max ? read_reply(&r, node, 0) : -EMSGSIZE;

	if (res <= 0)
		return res;
	return r.at > INT32_MAX ? -EMSGSIZE : (int)r.at;
}

void resp_write(struct sbuf *out, uint32_t words, const struct str *word)
{
	sbuf_printf(out, "*%u\r\n", (unsigned)words);
	for (uint32_t i = 0; i < words; i++) {
		sbuf_printf(out, "$%zu\r\n", word[i].len);
		sbuf_str(out, word[i]);
		sbuf_put(out, "\r\n", 2);
	}
}
