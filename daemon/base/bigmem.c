/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Anonymous mappings, with a wish for huge pages (base/bigmem.h). */
#include "base/bigmem.h"

#include <sys/mman.h>

#define HUGE_PAGE (2ul << 20)

void *bigmem_alloc(size_t n, size_t size)
{
	size_t len;
	void *p;

	if (__builtin_mul_overflow(n ? n : 1, size, &len))
		return NULL;
	p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
		0);
	if (p == MAP_FAILED)
		return NULL;
	/* A table that is smaller would have to take a whole one. */
	if (len >= 2 * HUGE_PAGE)
		(void)madvise(p, len, MADV_HUGEPAGE);
	return p;
}

void bigmem_free(void *p, size_t n, size_t size)
{
	if (p)
		munmap(p, (n ? n : 1) * size);
}
