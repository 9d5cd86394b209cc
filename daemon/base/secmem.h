/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory for keys: locked if the limits allow, left out of core dumps, wiped when freed. */
#ifndef BASE_SECMEM_H
#define BASE_SECMEM_H

#include "base/bytes.h"

/* Zeroed, page-aligned, rounded up to pages. NULL when there is none. Locking is tried, not demanded. */
void *secmem_alloc(size_t len);
void secmem_free(void *p, size_t len);
/* A wipe that the compiler keeps. */
void secmem_wipe(void *p, size_t len);
/* Constant time in len. */
bool secmem_equal(const void *a, const void *b, size_t len);
/* From the kernel's generator; 0 or -errno. */
int secmem_random(void *p, size_t len);

#endif
