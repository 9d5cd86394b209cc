/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A growing buffer for text or bytes with a sticky error: write without checks, check once at the
 * end. */
#ifndef BASE_SBUF_H
#define BASE_SBUF_H

#include "base/bytes.h"

struct sbuf {
	char *p; /* zero-terminated whenever err is 0 and something was written */
	size_t len;
	size_t cap;
	size_t limit; /* maximum size in bytes; 0 = 1 MiB */
	int err;      /* 0, -ENOMEM, -EMSGSIZE; later writes do nothing */
};

void sbuf_init(struct sbuf *b, size_t limit);
/* Wipes and frees: replies may hold keys. */
void sbuf_fini(struct sbuf *b);
void sbuf_put(struct sbuf *b, const void *p, size_t len);
void sbuf_str(struct sbuf *b, struct str s);
void sbuf_printf(struct sbuf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static inline struct str sbuf_view(const struct sbuf *b)
{
	return (struct str){b->p, b->len};
}

#endif
