/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See chunks.h. */
#include "web/chunks.h"

#include <errno.h>

#define LINES_MAX 16384u /* limit in bytes of all sizes, extensions and trailers of one body */
#define SIZE_MAX_ (1u << 28)

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Handles the end of the line with the size. */
static int size_ends(struct chunks *c)
{
	if (!c->digits)
		return -EBADMSG;
	c->digits = false;
	c->line = 0;
	c->state = c->left ? CHUNKS_DATA : CHUNKS_TRAILER;
	return 1;
}

static int size_byte(struct chunks *c, char b)
{
	int digit = digit_of(b);

	if (b == '\n')
		return size_ends(c);
	if (c->state == CHUNKS_EXTENSION || b == '\r')
		return 1;
	if (digit < 0) {
		if (!c->digits || (b != ';' && b != ' ' && b != '\t'))
			return -EBADMSG;
		c->state = CHUNKS_EXTENSION;
		return 1;
	}
	c->digits = true;
	c->left = c->left * 16 + (size_t)digit;
	return c->left > SIZE_MAX_ ? -EBADMSG : 1;
}

static int line_byte(struct chunks *c, char b)
{
	if (++c->all > LINES_MAX)
		return -EBADMSG;
	switch (c->state) {
	case CHUNKS_DATA_END:
		if (b == '\n')
			c->state = CHUNKS_SIZE;
		return b == '\n' || b == '\r' ? 1 : -EBADMSG;
	case CHUNKS_TRAILER:
		if (b == '\n' && c->line == 0)
			c->state = CHUNKS_DONE;
		else if (b == '\n')
			c->line = 0;
		else if (b != '\r')
			c->line++;
		return 1;
	default:
		return size_byte(c, b);
	}
}

int chunks_read(struct chunks *c, struct str *in, struct str *piece)
{
	int got = 1;

	*piece = STR_NONE;
	while (got == 1 && in->len && c->state != CHUNKS_DATA && c->state != CHUNKS_DONE) {
		got = line_byte(c, *in->s);
		*in = (struct str){in->s + 1, in->len - 1};
	}
	if (got < 0)
		return got;
	if (c->state == CHUNKS_DONE)
		return 2;
	if (c->state != CHUNKS_DATA || in->len == 0)
		return 0;
	*piece = (struct str){in->s, in->len < c->left ? in->len : c->left};
	*in = (struct str){in->s + piece->len, in->len - piece->len};
	c->left -= piece->len;
	if (c->left == 0)
		c->state = CHUNKS_DATA_END;
	return 1;
}
