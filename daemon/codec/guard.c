/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "guard.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, KNOWN = 0xa5, FENCE = 512 };

int guard_create(struct guard *g, size_t len)
{
	size_t room = (len / PAGE + 1) * PAGE; /* one byte before the buffer at least */
	uint8_t *map = mmap(NULL, room + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (map == MAP_FAILED)
		return -ENOMEM;
	if (mprotect(map + PAGE, room, PROT_READ | PROT_WRITE)) {
		munmap(map, room + 2 * PAGE);
		return -ENOMEM;
	}
	*g = (struct guard){map, room + 2 * PAGE, room};
	return 0;
}

void guard_destroy(struct guard *g)
{
	if (g->map)
		munmap(g->map, g->map_len);
	*g = (struct guard){0};
}

static size_t start_of(const struct guard *g, size_t len, size_t align)
{
	return (g->room - len) / align * align;
}

static size_t fence_of(size_t start)
{
	return start < FENCE ? start : FENCE;
}

void *guard_tail(struct guard *g, size_t len, size_t align)
{
	uint8_t *room = g->map + PAGE;
	size_t start = start_of(g, len, align), fence = fence_of(start);

	memset(room + start - fence, KNOWN, fence);
	memset(room + start + len, KNOWN, g->room - start - len);
	return room + start;
}

bool guard_intact(const struct guard *g, size_t len, size_t align)
{
	static const uint8_t known[FENCE] = {[0 ... FENCE - 1] = KNOWN};
	const uint8_t *room = g->map + PAGE;
	size_t start = start_of(g, len, align), fence = fence_of(start);

	for (size_t i = start + len; i < g->room; i++)
		if (room[i] != KNOWN)
			return false;
	return memcmp(room + start - fence, known, fence) == 0;
}
