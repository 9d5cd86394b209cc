/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory that lives as long as one request and is freed at once. */
#ifndef BASE_POOL_H
#define BASE_POOL_H

#include "base/bytes.h"

struct pool; /* grows in chunks up to its limit */

/* limit: bytes that may ever be taken from it; a request that wants more fails, it does not take the machine. */
int pool_create(struct pool **out, size_t limit);
/* Wipes every chunk (requests carry keys) and frees it. NULL is fine. */
void pool_destroy(struct pool *p);
/* Zeroed, 16-byte aligned; NULL when the limit or the memory is used up. */
void *pool_alloc(struct pool *p, size_t len);
/* Whether any request was refused so far. */
bool pool_failed(const struct pool *p);
/* A zero-terminated copy. s = NULL in the result means no memory. */
struct str pool_strdup(struct pool *p, struct str a);
struct str pool_printf(struct pool *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
