/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory of one request, freed as a whole. */
#ifndef BASE_POOL_H
#define BASE_POOL_H

#include "base/bytes.h"

struct pool; /* grows in chunks up to its limit */

/* limit: bytes in total. A request that needs more fails, so it cannot exhaust the machine. */
int pool_create(struct pool **out, size_t limit);
/* Wipes every chunk (requests carry keys) and frees it. NULL is fine. */
void pool_destroy(struct pool *p);
/* Zeroed, 16-byte aligned. NULL if the limit is reached or memory is short. */
void *pool_alloc(struct pool *p, size_t len);
/* Whether any allocation has failed. */
bool pool_failed(const struct pool *p);
/* A zero-terminated copy. s = NULL in the result: out of memory. */
struct str pool_strdup(struct pool *p, struct str a);
struct str pool_printf(struct pool *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
