/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Large zeroed tables in anonymous mappings, with transparent huge pages requested (base/bigmem.h).
 */
#include "base/bigmem.h"

#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE /* C libraries before 2.35 */
#define MADV_POPULATE_WRITE 23
#endif
#define HUGE_PAGE (2ul << 20)
/* Smallest table that gets huge pages. Its last huge page need not be full. */
#define WORTH (HUGE_PAGE / 2)

static size_t mapped(size_t len)
{
	return len < WORTH ? len : (len + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
}

static void *map(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* Align to a huge page, and return the parts before and after. */
static void *map_huge(size_t len)
{
	uint8_t *p = map(len + HUGE_PAGE);
	size_t before;

	if (!p)
		return NULL;
	before = (HUGE_PAGE - (uintptr_t)p % HUGE_PAGE) % HUGE_PAGE;
	if (before)
		munmap(p, before);
	if (before < HUGE_PAGE)
		munmap(p + before + len, HUGE_PAGE - before);
	/* A request only: the kernel may ignore it. */
	(void)madvise(p + before, len, MADV_HUGEPAGE);
	return p + before;
}

void *bigmem_alloc(size_t n, size_t size)
{
	size_t len;

	if (__builtin_mul_overflow(n ? n : 1, size, &len) || len > SIZE_MAX / 2)
		return NULL;
	return len < WORTH ? map(len) : map_huge(mapped(len));
}

void bigmem_touch(void *p, size_t size, size_t from, size_t to)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t begin = ((uintptr_t)p + from * size) & ~(page - 1);
	uintptr_t end = ((uintptr_t)p + to * size + page - 1) & ~(page - 1);

	if (from < to)
		(void)madvise((void *)begin, end - begin, MADV_POPULATE_WRITE);
}

void bigmem_free(void *p, size_t n, size_t size)
{
	if (p)
		munmap(p, mapped((n ? n : 1) * size));
}
