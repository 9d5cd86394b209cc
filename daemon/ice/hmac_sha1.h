/* SPDX-License-Identifier: GPL-2.0-or-later */
/* HMAC-SHA1 (RFC 2104) with its key blocks hashed beforehand. Cannot fail and allocates nothing. */
#ifndef ICE_HMAC_SHA1_H
#define ICE_HMAC_SHA1_H

#include "base/bytes.h"

#define HMAC_SHA1_LEN 20u

/* The states after the padded key: a message costs two blocks less. As secret as the key. */
struct hmac_sha1_key {
	uint32_t inner[5], outer[5];
	uint32_t fast; /* the processor has SHA instructions. Not a bool: keys are compared whole */
};
void hmac_sha1_key_init(struct hmac_sha1_key *key, const void *secret, size_t len);
/* Over both parts, one after the other. */
void hmac_sha1(uint8_t mac[HMAC_SHA1_LEN], const struct hmac_sha1_key *key, struct str head,
	struct str rest);

#endif
