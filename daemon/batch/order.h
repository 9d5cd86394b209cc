/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The order in which lanes take the jobs of a batch. */
#ifndef BATCH_ORDER_H
#define BATCH_ORDER_H

#include "batch/engine.h"
#include "packet/arena.h"

/* Summary of a key slot, so that ordering does not read the slot. */
enum order_key {
	ORDER_KEY_NONE,  /* not announced */
	ORDER_KEY_PLAIN, /* no HMAC: plain, AEAD */
	ORDER_KEY_HMAC,
	ORDER_KEY_F8,
};

enum order_key order_key_of(const struct xc_key *k);

/* Jobs of one class have the same kind and the same number of SHA-1 blocks. At least 0, less than
 * ORDER_CLASSES. A job that fits into a slot has fewer blocks than ORDER_BLOCKS. */
enum { ORDER_BLOCKS = ARENA_SLOT_LEN / 64 + 2, ORDER_CLASSES = 3 * ORDER_BLOCKS };

static inline uint32_t order_class(const struct xc_job *j, const uint8_t *key)
{
	uint8_t rx = key[j->rx_key], tx = key[j->tx_key], most = rx > tx ? rx : tx;
	uint32_t kind = most > ORDER_KEY_PLAIN ? most - ORDER_KEY_PLAIN : 0;

	return kind * ORDER_BLOCKS + (j->hdr_len + j->body_len + 4 + 9 + 63) / 64;
}

/* Sorts the jobs into order[0..n): by kind, then by SHA-1 blocks, longest first. So the lanes of a
 * work-item end together and do equal work: none without a hash next to one with a hash, F8 next to
 * F8. Equal jobs keep their order. key[slot] must cover all slots that jobs name; a job must be
 * shorter than ARENA_SLOT_LEN. Returns false, with order unchanged, if all jobs are equal. */
bool order_jobs(uint32_t *order, const struct xc_job *job, uint32_t n, const uint8_t *key);

#endif
