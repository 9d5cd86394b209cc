/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "buf.h"

#include <stdlib.h>
#include <string.h>

void buf_add(struct buf *b, const char *s, size_t len)
{
	size_t need = b->len + len + 1;
	char *p;

	if (b->failed)
		return;
	if (need > b->size) {
		size_t size = need + need / 2 + 64;

		p = realloc(b->s, size);
		if (!p) {
			buf_free(b);
			b->failed = true;
			return;
		}
		b->s = p;
		b->size = size;
	}
	memcpy(b->s + b->len, s, len);
	b->len += len;
	b->s[b->len] = 0;
}

void buf_text(struct buf *b, const char *s)
{
	buf_add(b, s, strlen(s));
}

void buf_xml(struct buf *b, const char *s)
{
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;

		if (c == '&')
			buf_text(b, "&amp;");
		else if (c == '<')
			buf_text(b, "&lt;");
		else if (c == '>')
			buf_text(b, "&gt;");
		else if (c == '"')
			buf_text(b, "&quot;");
		else if (c < 0x20)
			buf_text(b, " ");
		else
			buf_add(b, s, 1);
	}
}

char *buf_take(struct buf *b)
{
	char *s;

	buf_add(b, "", 0);
	s = b->s;
	*b = (struct buf){0};
	return s;
}

void buf_free(struct buf *b)
{
	free(b->s);
	*b = (struct buf){0};
}
