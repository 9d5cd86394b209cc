/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Bounded queue of fixed-size entries, one producer thread and one consumer thread, no lock. Several entries are
 * published at once or not at all, so that a consumer never sees half of a change. */
#ifndef BASE_RING_H
#define BASE_RING_H

#include <stdatomic.h>
#include "base/bytes.h"

struct ring {
	uint32_t mask;
	uint32_t entry_len;
	uint8_t *mem; /* entries may hold keys: wiped by the consumer's ring_pop() */
	_Alignas(64) _Atomic uint32_t head; /* written by the producer */
	_Alignas(64) _Atomic uint32_t tail; /* written by the consumer */
};

/* entries: rounded up to a power of two. 0 or -ENOMEM. */
int ring_init(struct ring *r, uint32_t entries, uint32_t entry_len);
void ring_fini(struct ring *r);
/* All n entries or none: 0 or -ENOSPC. */
int ring_push(struct ring *r, const void *entries, uint32_t n);
/* How many more ring_push() would take now; the producer asks. */
uint32_t ring_room(const struct ring *r);
/* Whether ring_pop() would find none now; the consumer asks. */
static inline bool ring_empty(const struct ring *r)
{
	return atomic_load_explicit(&r->head, memory_order_acquire) ==
		atomic_load_explicit(&r->tail, memory_order_relaxed);
}
/* One entry is copied out and wiped in the ring: true, or false when empty. */
bool ring_pop(struct ring *r, void *entry);

#endif
