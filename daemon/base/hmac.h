/* SPDX-License-Identifier: GPL-2.0-or-later */
/* HMAC-SHA256 (RFC 2104, FIPS 180-4) over several slices as if they were one. Two implementations have this interface: base/hmac.c
 * calls OpenSSL, module/hmac.c calls Kamailio's own SHA-256, since OpenSSL inside Kamailio belongs to Kamailio's tls module. */
#ifndef BASE_HMAC_H
#define BASE_HMAC_H

#include "base/bytes.h"

#define HMAC_SHA256_LEN   32u
#define HMAC_SHA256_BLOCK 64u /* keys are at most this long */

/* False: no MAC could be computed (no memory); then mac is all zero and nothing may be accepted by it. */
bool hmac_sha256(uint8_t mac[HMAC_SHA256_LEN], const uint8_t *key, size_t key_len,
	const struct str *part, size_t parts);

#endif
