/* SPDX-License-Identifier: GPL-2.0-or-later */
/* HMAC-SHA1 (RFC 2104, FIPS 180-4) of several messages at once, by SHA-NI, AVX-512VL or AVX2. For
 * the serial engine, which selects the instructions once. No branch or address depends on a
 * message's content or a key. */
#ifndef BATCH_SHA1_LANES_H
#define BATCH_SHA1_LANES_H

#include "base/bytes.h"
#include "layout.h"
#include "srtp/sha1_ways.h"

/* One HMAC to compute, over len bytes at msg and then word. Up to 63 bytes after the message are
 * read and ignored (XC_SLACK). */
struct hmac_job {
	const struct xc_key *key; /* has the two states that HMAC starts from */
	const uint8_t *msg;
	uint32_t len;
	uint8_t word[4];
	uint8_t mac[32]; /* the result: 20 bytes. More may be written */
};

/* many: for messages that fill all lanes; few: for fewer messages. NULL: libcrypto. pair: two
 * messages of equal length by sha1_pair(). */
struct sha1_ways {
	const struct sha1_way *many, *few;
	bool pair;
};
void hmac_sha1_all(const struct sha1_ways *ways, struct hmac_job *job, uint32_t n);
/* Computes one HMAC by libcrypto, over len bytes at msg and then word. */
void hmac_sha1_one(uint8_t mac[20], const struct xc_key *k, const uint8_t *msg, size_t len,
	const uint8_t word[4]);

#endif
