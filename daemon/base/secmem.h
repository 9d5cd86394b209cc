/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory for keys: locked if limits allow it, excluded from core dumps, wiped when freed. */
#ifndef BASE_SECMEM_H
#define BASE_SECMEM_H

#include "base/bytes.h"

/* Zeroed, page-aligned, rounded up to pages. NULL if memory is short. A failure to lock is ignored.
 */
void *secmem_alloc(size_t len);
void secmem_free(void *p, size_t len);
/* Wipes memory. The compiler does not remove it. */
void secmem_wipe(void *p, size_t len);
/* Takes the same time for all contents of this length. */
bool secmem_equal(const void *a, const void *b, size_t len);
/* Random bytes from the kernel. 0 or -errno. */
int secmem_random(void *p, size_t len);
/* Forbids core dumps of this process and of those that it starts, because libraries keep keys in
 * memory that we cannot mark. A debugger can still read memory; gcore(1) of root leaves it out. */
void secmem_no_dumps(void);

#endif
