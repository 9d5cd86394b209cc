/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory for large tables that are looked up at random: zeroed, touched only where it is used, on huge pages where the system has
 * them, so that a look-up misses the cache and not the page tables too. Not for keys: base/secmem.h. */
#ifndef BASE_BIGMEM_H
#define BASE_BIGMEM_H

#include "base/bytes.h"

/* Room for n things of this size, zeroed and page-aligned. NULL when there is none, or when the product does not fit. */
void *bigmem_alloc(size_t n, size_t size);
/* As it was allocated. NULL is fine. */
void bigmem_free(void *p, size_t n, size_t size);

#endif
