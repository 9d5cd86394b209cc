/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A growing buffer with a sticky error. It grows by copying and wiping, because realloc() would
 * leave keys in freed memory. */
#include "base/sbuf.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/secmem.h"

#define DEFAULT_LIMIT (1u << 20)

void sbuf_init(struct sbuf *b, size_t limit)
{
	*b = (struct sbuf){.limit = limit ? limit : DEFAULT_LIMIT};
}

void sbuf_fini(struct sbuf *b)
{
	if (b->p)
		secmem_wipe(b->p, b->cap);
	free(b->p);
	*b = (struct sbuf){.limit = b->limit};
}

/* Room for len more bytes and a zero. */
static bool reserve(struct sbuf *b, size_t len)
{
	size_t cap = b->cap ? b->cap : 256;
	char *p;

	if (b->err)
		return false;
	if (len > b->limit - b->len) {
		b->err = -EMSGSIZE;
		return false;
	}
	if (b->len + len + 1 <= b->cap)
		return true;
	while (cap < b->len + len + 1)
		cap *= 2;
	p = malloc(cap);
	if (!p) {
		b->err = -ENOMEM;
		return false;
	}
	if (b->p) {
		memcpy(p, b->p, b->len);
		secmem_wipe(b->p, b->cap);
		free(b->p);
	}
	b->p = p;
	b->cap = cap;
	return true;
}

void sbuf_put(struct sbuf *b, const void *p, size_t len)
{
	if (!reserve(b, len))
		return;
	if (len)
		memcpy(b->p + b->len, p, len);
	b->len += len;
	b->p[b->len] = 0;
}

void sbuf_str(struct sbuf *b, struct str s)
{
	sbuf_put(b, s.s, s.len);
}

void sbuf_printf(struct sbuf *b, const char *fmt, ...)
{
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (len < 0) {
		b->err = b->err ? b->err : -EINVAL;
		return;
	}
	if (!reserve(b, (size_t)len))
		return;
	va_start(ap, fmt);
	vsnprintf(b->p + b->len, (size_t)len + 1, fmt, ap);
	va_end(ap);
	b->len += (size_t)len;
}
