/* SPDX-License-Identifier: GPL-2.0-or-later */
/* In which order lanes take the jobs of a batch. */
#ifndef BATCH_ORDER_H
#define BATCH_ORDER_H

#include "batch/engine.h"

/* What an engine remembers of a key slot, so that ordering need not fetch the slot. */
enum order_key {
	ORDER_KEY_NONE,  /* not announced */
	ORDER_KEY_PLAIN, /* no HMAC: plain, AEAD */
	ORDER_KEY_HMAC,
	ORDER_KEY_F8,
};

enum order_key order_key_of(const struct xc_key *k);

/* Jobs of one class are alike: of the same kind, and of as many blocks of SHA-1. At least 0, less than ORDER_CLASSES. A job that
 * fits a slot has fewer blocks than ORDER_BLOCKS. */
enum { ORDER_BLOCKS = ARENA_SLOT_LEN / 64 + 2, ORDER_CLASSES = 3 * ORDER_BLOCKS };

static inline uint32_t order_class(const struct xc_job *j, const uint8_t *key)
{
	uint8_t rx = key[j->rx_key], tx = key[j->tx_key], most = rx > tx ? rx : tx;
	uint32_t kind = most > ORDER_KEY_PLAIN ? most - ORDER_KEY_PLAIN : 0;

	return kind * ORDER_BLOCKS + (j->hdr_len + j->body_len + 4 + 9 + 63) / 64;
}

/* order[0..n): the jobs by kind, and by blocks of SHA-1 within a kind, the longest first, so that work-items of as many
 * lanes as there may be end together and have equal work in all lanes: no lane without a hash beside those with one, F8
 * beside F8. Jobs that are alike stay in their order. key[slot] for all slots that jobs name; a job is shorter than
 * ARENA_SLOT_LEN. False, and order is left alone, if the jobs are all alike. */
bool order_jobs(uint32_t *order, const struct xc_job *job, uint32_t n, const uint8_t *key);

#endif
