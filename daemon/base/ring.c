/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Single producer, single consumer. The producer publishes a whole group by one release store of
 * head. */
#include "base/ring.h"

#include <errno.h>

#include "base/secmem.h"

static size_t mem_len(const struct ring *r)
{
	return ((size_t)r->mask + 1) * r->entry_len;
}

int ring_init(struct ring *r, uint32_t entries, uint32_t entry_len)
{
	uint32_t n = 2;

	while (n < entries && n < 1u << 30)
		n *= 2;
	r->mask = n - 1;
	r->entry_len = entry_len;
	r->mem = secmem_alloc(mem_len(r));
	atomic_init(&r->head, 0);
	atomic_init(&r->tail, 0);
	return r->mem ? 0 : -ENOMEM;
}

void ring_fini(struct ring *r)
{
	secmem_free(r->mem, mem_len(r));
	r->mem = NULL;
}

static uint8_t *entry(struct ring *r, uint32_t at)
{
	return r->mem + (size_t)(at & r->mask) * r->entry_len;
}

int ring_push(struct ring *r, const void *entries, uint32_t n)
{
	uint32_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
	uint32_t tail = atomic_load_explicit(&r->tail, memory_order_acquire);
	const uint8_t *from = entries;

	if (n > r->mask + 1 - (head - tail))
		return -ENOSPC;
	for (uint32_t i = 0; i < n; i++)
		memcpy(entry(r, head + i), from + (size_t)i * r->entry_len, r->entry_len);
	atomic_store_explicit(&r->head, head + n, memory_order_release);
	return 0;
}

uint32_t ring_room(const struct ring *r)
{
	return r->mask + 1 -
		(atomic_load_explicit(&r->head, memory_order_relaxed) -
			atomic_load_explicit(&r->tail, memory_order_acquire));
}

void *ring_place(struct ring *r)
{
	return ring_room(r) ? entry(r, atomic_load_explicit(&r->head, memory_order_relaxed)) : NULL;
}

void ring_publish(struct ring *r)
{
	atomic_store_explicit(&r->head, atomic_load_explicit(&r->head, memory_order_relaxed) + 1,
		memory_order_release);
}

void *ring_oldest(struct ring *r)
{
	return ring_empty(r) ? NULL
			     : entry(r, atomic_load_explicit(&r->tail, memory_order_relaxed));
}

void ring_release(struct ring *r, size_t used)
{
	uint32_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);

	secmem_wipe(entry(r, tail), used < r->entry_len ? used : r->entry_len);
	atomic_store_explicit(&r->tail, tail + 1, memory_order_release);
}

bool ring_pop(struct ring *r, void *out)
{
	void *from = ring_oldest(r);

	if (!from)
		return false;
	memcpy(out, from, r->entry_len);
	ring_release(r, r->entry_len);
	return true;
}
