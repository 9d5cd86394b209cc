/* SPDX-License-Identifier: GPL-2.0-or-later */
/* HMAC-SHA256 (RFC 2104, FIPS 180-4) over the concatenation of several slices. Two files implement
 * it: base/hmac.c with OpenSSL, module/hmac.c with Kamailio's own SHA-256, because in Kamailio the
 * tls module controls OpenSSL. */
#ifndef BASE_HMAC_H
#define BASE_HMAC_H

#include "base/bytes.h"

#define HMAC_SHA256_LEN   32u
#define HMAC_SHA256_BLOCK 64u /* keys are at most this long */

/* False: out of memory; mac is then all zero and must not be used to accept anything. */
bool hmac_sha256(uint8_t mac[HMAC_SHA256_LEN], const uint8_t *key, size_t key_len,
	const struct str *part, size_t parts);

#endif
