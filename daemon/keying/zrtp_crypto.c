/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Hashes, MACs, key derivation and the cipher of ZRTP (zrtp_crypto.h). */

/* A Hello of a stranger costs a hash. An EVP context for it takes longer than the hash itself. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "keying/zrtp_crypto.h"

#include <errno.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>

#include "base/secmem.h"

#define CONTEXT_MAX (2 * ZRTP_ZID + ZRTP_DIGEST_MAX)
#define LABEL_MAX   40u

static const EVP_MD *digest(enum zrtp_hash h)
{
	return h == ZRTP_S384 ? EVP_sha384() : EVP_sha256();
}

uint32_t zrtp_digest_len(enum zrtp_hash h)
{
	return h == ZRTP_S384 ? 48 : 32;
}

uint32_t zrtp_key_len(enum zrtp_cipher c)
{
	return c == ZRTP_AES1 ? 16 : c == ZRTP_AES2 ? 24 : 32;
}

static bool hash_384(uint8_t *out, const struct zrtp_part *part, uint32_t parts)
{
	SHA512_CTX c;
	bool good = SHA384_Init(&c);

	for (uint32_t i = 0; good && i < parts; i++)
		good = SHA384_Update(&c, part[i].p, part[i].len);
	good = good && SHA384_Final(out, &c);
	secmem_wipe(&c, sizeof(c));
	return good;
}

static bool hash_256(uint8_t *out, const struct zrtp_part *part, uint32_t parts)
{
	SHA256_CTX c;
	bool good = SHA256_Init(&c);

	for (uint32_t i = 0; good && i < parts; i++)
		good = SHA256_Update(&c, part[i].p, part[i].len);
	good = good && SHA256_Final(out, &c);
	secmem_wipe(&c, sizeof(c));
	return good;
}

int zrtp_hash(uint8_t *out, enum zrtp_hash h, const struct zrtp_part *part, uint32_t parts)
{
	bool good = h == ZRTP_S384 ? hash_384(out, part, parts) : hash_256(out, part, parts);

	return good ? 0 : -EIO;
}

int zrtp_mac(
	uint8_t *out, size_t len, enum zrtp_hash h, struct zrtp_part key, struct zrtp_part message)
{
	uint8_t whole[EVP_MAX_MD_SIZE];
	const uint8_t *r =
		HMAC(digest(h), key.p, (int)key.len, message.p, message.len, whole, &(unsigned){0});

	if (r)
		memcpy(out, whole, len);
	secmem_wipe(whole, sizeof(whole));
	return r ? 0 : -EIO;
}

int zrtp_kdf(uint8_t *out, size_t len, const struct zrtp_kdf *k, const char *label)
{
	uint8_t text[4 + LABEL_MAX + 1 + CONTEXT_MAX + 4];
	size_t n = strlen(label), at = 4;

	if (n > LABEL_MAX || k->context.len > CONTEXT_MAX)
		return -EIO;
	put_be32(text, 1);
	memcpy(text + at, label, n + 1);
	at += n + 1;
	memcpy(text + at, k->context.p, k->context.len);
	at += k->context.len;
	put_be32(text + at, (uint32_t)len * 8);
	return zrtp_mac(out, len, k->h, k->key, (struct zrtp_part){text, at + 4});
}

int zrtp_cfb(uint8_t *p, size_t len, enum zrtp_cipher c, const uint8_t *key, const uint8_t iv[16],
	bool encrypt)
{
	const EVP_CIPHER *aes = c == ZRTP_AES1 ? EVP_aes_128_cfb128()
		: c == ZRTP_AES2               ? EVP_aes_192_cfb128()
					       : EVP_aes_256_cfb128();
	EVP_CIPHER_CTX *x = EVP_CIPHER_CTX_new();
	int n = 0;
	bool good = x && EVP_CipherInit_ex(x, aes, NULL, key, iv, encrypt) &&
		EVP_CipherUpdate(x, p, &n, p, (int)len) && n == (int)len;

	EVP_CIPHER_CTX_free(x);
	return good ? 0 : -EIO;
}

int zrtp_from_seed(uint8_t *out, size_t len, const uint8_t seed[ZRTP_SEED], const char *label)
{
	return zrtp_mac(out, len, ZRTP_S256, (struct zrtp_part){seed, ZRTP_SEED},
		(struct zrtp_part){label, strlen(label)});
}
