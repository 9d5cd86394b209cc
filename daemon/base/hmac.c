/* SPDX-License-Identifier: GPL-2.0-or-later */
/* HMAC-SHA256 on OpenSSL's SHA-256. The construction is RFC 2104's: H(key ^ opad, H(key ^ ipad,
 * text)). */
#include "base/hmac.h"

#include <openssl/evp.h>

#include "base/secmem.h"

static bool pass(EVP_MD_CTX *c, uint8_t out[HMAC_SHA256_LEN], struct str key, uint8_t pad,
	const struct str *part, size_t parts)
{
	uint8_t block[HMAC_SHA256_BLOCK] = {0};
	bool ok = key.len <= sizeof(block) && EVP_DigestInit_ex(c, EVP_sha256(), NULL) == 1;

	for (size_t i = 0; ok && i < sizeof(block); i++)
		block[i] = (i < key.len ? (uint8_t)key.s[i] : 0) ^ pad;
	ok = ok && EVP_DigestUpdate(c, block, sizeof(block)) == 1;
	for (size_t i = 0; ok && i < parts; i++)
		ok = part[i].len == 0 || EVP_DigestUpdate(c, part[i].s, part[i].len) == 1;
	ok = ok && EVP_DigestFinal_ex(c, out, NULL) == 1;
	secmem_wipe(block, sizeof(block));
	return ok;
}

bool hmac_sha256(uint8_t mac[HMAC_SHA256_LEN], const uint8_t *key, size_t key_len,
	const struct str *part, size_t parts)
{
	uint8_t inner[HMAC_SHA256_LEN];
	const struct str text = {(const char *)inner, sizeof(inner)};
	const struct str secret = {(const char *)key, key_len};
	EVP_MD_CTX *c = EVP_MD_CTX_new();
	bool ok = c && pass(c, inner, secret, 0x36, part, parts) &&
		pass(c, mac, secret, 0x5c, &text, 1);

	EVP_MD_CTX_free(c);
	if (!ok)
		memset(mac, 0, HMAC_SHA256_LEN);
	secmem_wipe(inner, sizeof(inner));
	return ok;
}
