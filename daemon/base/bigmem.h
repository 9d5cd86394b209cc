/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Zeroed memory for large tables with random access. Pages are touched only on use. Huge pages,
 * where available, spare page table walks. Not for keys: base/secmem.h. */
#ifndef BASE_BIGMEM_H
#define BASE_BIGMEM_H

#include "base/bytes.h"

/* n zeroed, page-aligned elements of this size. NULL if memory is short, or if the product
 * overflows. */
void *bigmem_alloc(size_t n, size_t size);
/* Any thread: asks the kernel for the memory of elements from <= i < to, whose values stay. The
 * first use of a page otherwise waits until the kernel has cleared it, some ms for a huge page. No
 * error: without Linux 5.14 or without memory, the first use waits as before. */
void bigmem_touch(void *p, size_t size, size_t from, size_t to);
/* n and size as allocated. NULL is fine. */
void bigmem_free(void *p, size_t n, size_t size);

#endif
