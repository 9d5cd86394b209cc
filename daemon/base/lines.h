/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Zeroed memory that shares no cache line with other memory, for data that a worker writes with
 * every burst. With malloc(), another thread might write to the same line, and both would lose time
 * on each access. Free with free(). */
#ifndef BASE_LINES_H
#define BASE_LINES_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define CACHE_LINE 64u

static inline void *lines_alloc(size_t n, size_t size)
{
	size_t len;
	void *p;

	if (__builtin_mul_overflow(n ? n : 1, size ? size : 1, &len) || len > SIZE_MAX / 2)
		return NULL;
#ifndef __SANITIZE_ADDRESS__ /* AddressSanitizer must see the real end of the block */
	len = (len + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
#endif
	if (posix_memalign(&p, CACHE_LINE, len))
		return NULL;
	return memset(p, 0, len);
}

#endif
