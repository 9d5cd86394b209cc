/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A counting sort of a batch's jobs (order.h). Pure: reads lengths, and one byte for each key. */
#include "batch/order.h"

enum order_key order_key_of(const struct xc_key *k)
{
	if (k->cipher == XC_CIPHER_AES_F8)
		return ORDER_KEY_F8;
	return k->auth == XC_AUTH_HMAC_SHA1 ? ORDER_KEY_HMAC : ORDER_KEY_PLAIN;
}

bool order_jobs(uint32_t *order, const struct xc_job *job, uint32_t n, const uint8_t *key)
{
	uint32_t count[ORDER_CLASSES] = {0}, sum = 0;

	for (uint32_t i = 0; i < n; i++)
		count[order_class(&job[i], key)]++;
	if (n == 0 || count[order_class(&job[0], key)] == n)
		return false;
	for (uint32_t c = ORDER_CLASSES; c-- > 0;) {
		uint32_t here = count[c];

		count[c] = sum;
		sum += here;
	}
	for (uint32_t i = 0; i < n; i++)
		order[count[order_class(&job[i], key)]++] = i;
	return true;
}
