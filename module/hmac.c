/* SPDX-License-Identifier: GPL-2.0-or-later */
/* base/hmac.h on the SHA-256 of Kamailio's core. OpenSSL is avoided, because Kamailio's tls module
 * gives it its own memory and locks. The construction is RFC 2104's: H(key ^ opad, H(key ^ ipad,
 * text)). */
#include "base/hmac.h"

#include <core/crypto/sha256.h>

#include "base/secmem.h"

static void pass(uint8_t out[HMAC_SHA256_LEN], const uint8_t *key, size_t key_len, uint8_t pad,
	const struct str *part, size_t parts)
{
	uint8_t block[HMAC_SHA256_BLOCK] = {0};
	SHA256_CTX c;

	for (size_t i = 0; i < sizeof(block); i++)
		block[i] = (i < key_len ? key[i] : 0) ^ pad;
	sr_SHA256_Init(&c);
	sr_SHA256_Update(&c, block, sizeof(block));
	for (size_t i = 0; i < parts; i++)
		if (part[i].len)
			sr_SHA256_Update(&c, (const uint8_t *)part[i].s, part[i].len);
	sr_SHA256_Final(out, &c);
	secmem_wipe(block, sizeof(block));
	secmem_wipe(&c, sizeof(c));
}

bool hmac_sha256(uint8_t mac[HMAC_SHA256_LEN], const uint8_t *key, size_t key_len,
	const struct str *part, size_t parts)
{
	uint8_t inner[HMAC_SHA256_LEN];
	const struct str text = {(const char *)inner, sizeof(inner)};

	memset(mac, 0, HMAC_SHA256_LEN);
	if (key_len > HMAC_SHA256_BLOCK)
		return false;
	pass(inner, key, key_len, 0x36, part, parts);
	pass(mac, key, key_len, 0x5c, &text, 1);
	secmem_wipe(inner, sizeof(inner));
	return true;
}
