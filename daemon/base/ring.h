/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Bounded queue of fixed-size entries for one producer thread and one consumer thread, without
 * locks. A group of entries is published as a whole, so a consumer never sees part of a change. */
#ifndef BASE_RING_H
#define BASE_RING_H

#include <stdatomic.h>
#include "base/bytes.h"

struct ring {
	uint32_t mask;
	uint32_t entry_len;
	uint8_t *mem;                       /* entries may hold keys: ring_pop() wipes them */
	_Alignas(64) _Atomic uint32_t head; /* written by the producer */
	_Alignas(64) _Atomic uint32_t tail; /* written by the consumer */
};

/* entries: rounded up to a power of two. 0 or -ENOMEM. */
int ring_init(struct ring *r, uint32_t entries, uint32_t entry_len);
void ring_fini(struct ring *r);
/* All n entries or none: 0 or -ENOSPC. */
int ring_push(struct ring *r, const void *entries, uint32_t n);
/* Number of free entries. Producer only. */
uint32_t ring_room(const struct ring *r);
/* Whether the ring is empty. Consumer only. */
static inline bool ring_empty(const struct ring *r)
{
	return atomic_load_explicit(&r->head, memory_order_acquire) ==
		atomic_load_explicit(&r->tail, memory_order_relaxed);
}
/* Copies one entry out and wipes it in the ring. False if the ring is empty. */
bool ring_pop(struct ring *r, void *entry);

/* The same without copies, for entries that rarely use their whole length. An unused entry is all
 * zeroes. Producer: the entry to write next; NULL: the ring is full. ring_publish() ends it. */
void *ring_place(struct ring *r);
void ring_publish(struct ring *r);
/* Consumer: the oldest entry; NULL: the ring is empty. ring_release() frees it. used: how many of
 * its bytes were written; they are wiped. */
void *ring_oldest(struct ring *r);
void ring_release(struct ring *r, size_t used);

#endif
