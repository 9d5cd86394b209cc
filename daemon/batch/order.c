/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A counting sort of a batch's jobs (order.h). Pure: reads lengths, and one byte for each key. */
#include "batch/order.h"

/* A job that fits a slot has fewer blocks than BLOCKS. */
enum { KINDS = 3, BLOCKS = ARENA_SLOT_LEN / 64 + 2, CLASSES = KINDS * BLOCKS };

enum order_key order_key_of(const struct xc_key *k)
{
	if (k->cipher == XC_CIPHER_AES_F8)
		return ORDER_KEY_F8;
	return k->auth == XC_AUTH_HMAC_SHA1 ? ORDER_KEY_HMAC : ORDER_KEY_PLAIN;
}

static uint32_t class_of(const struct xc_job *j, const uint8_t *key)
{
	uint8_t rx = key[j->rx_key], tx = key[j->tx_key], most = rx > tx ? rx : tx;
	uint32_t kind = most > ORDER_KEY_PLAIN ? most - ORDER_KEY_PLAIN : 0;

	return kind * BLOCKS + (j->hdr_len + j->body_len + 4 + 9 + 63) / 64;
}

bool order_jobs(uint32_t *order, const struct xc_job *job, uint32_t n, const uint8_t *key)
{
	uint32_t count[CLASSES] = {0}, sum = 0;

	for (uint32_t i = 0; i < n; i++)
		count[class_of(&job[i], key)]++;
	if (n == 0 || count[class_of(&job[0], key)] == n)
		return false;
	for (uint32_t c = CLASSES; c-- > 0;) {
		uint32_t here = count[c];

		count[c] = sum;
		sum += here;
	}
	for (uint32_t i = 0; i < n; i++)
		order[count[class_of(&job[i], key)]++] = i;
	return true;
}
