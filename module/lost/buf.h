/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A growing string. After a failed allocation, s is NULL and further additions do nothing, so a
 * writer checks once, at its end. */
#ifndef LOST_BUF_H
#define LOST_BUF_H

#include <stdbool.h>
#include <stddef.h>

struct buf {
	char *s; /* ends with NUL if not NULL; the owner frees it */
	size_t len, size;
	bool failed;
};

void buf_add(struct buf *b, const char *s, size_t len);
void buf_text(struct buf *b, const char *s);
/* Escapes text for XML. Characters that XML 1.0 forbids become a blank. */
void buf_xml(struct buf *b, const char *s);
/* Returns the string, which the caller frees; NULL: out of memory. */
char *buf_take(struct buf *b);
void buf_free(struct buf *b);

#endif
