/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The envelope key in a decrypted RSA block: RSAES-PKCS1-v1_5 or RSAES-OAEP with SHA-1 (RFC 8017
 * 7.1.2, 7.2.2). A peer that could see whether a block has the right padding could decrypt
 * recorded messages of others (Bleichenbacher 1998). So both paddings are always removed, no branch
 * and no address depends on the block, and a block with neither yields a random key: the MAC of
 * KEMAC then fails as for any wrong key. t/ct checks it. A block with both paddings is OAEP: by
 * chance one OAEP block in 3,000 looks like PKCS1-v1_5, but no other block has OAEP's hash. */
#include <openssl/evp.h>

#include "base/secmem.h"
#include "keying/mikey_int.h"

#define SHA1_LEN    20u
#define PKCS1_START 10u /* 0, 2, and at least eight bytes of padding */
#define KEY_MIN     16u

/* --- Masks: all ones or zero. Values are below 2^31. ------------------------------------------ */

static uint32_t is_zero(uint32_t x)
{
	return 0u - ((~x & (x - 1)) >> 31);
}

static uint32_t is_less(uint32_t a, uint32_t b)
{
	return 0u - ((a - b) >> 31);
}

static uint32_t choose(uint32_t mask, uint32_t yes, uint32_t no)
{
	return (mask & yes) | (~mask & no);
}

/* --- Paddings --------------------------------------------------------------------------------- */

struct found {
	uint32_t right; /* mask: the padding is right, and the length that of a key */
	uint32_t len;
	const uint8_t *tail; /* the last MIKEY_ENVELOPE_MAX bytes, where the key ends */
};

static struct found found(uint32_t right, uint32_t at, const uint8_t *p, uint32_t len)
{
	uint32_t n = len - 1 - at;

	right &= ~is_less(n, KEY_MIN) & is_less(n, MIKEY_ENVELOPE_MAX + 1);
	return (struct found){right, n, p + len - MIKEY_ENVELOPE_MAX};
}

/* 0 2 PADDING 0 KEY: the padding has no zero. */
static struct found pkcs1(const uint8_t *block, uint32_t len)
{
	uint32_t at = 0, looking = ~0u, right = is_zero(block[0]) & is_zero(block[1] ^ 2u);

	for (uint32_t i = 2; i < len; i++) {
		uint32_t zero = is_zero(block[i]) & looking;

		at |= zero & i;
		looking &= ~zero;
	}
	return found(right & ~looking & ~is_less(at, PKCS1_START), at, block, len);
}

/* XORs MGF1 of the seed into p. */
static bool mask(uint8_t *p, uint32_t len, const uint8_t *seed, uint32_t seed_len)
{
	uint8_t in[MIKEY_RSA_MAX + 4], out[EVP_MAX_MD_SIZE];
	bool ok = true;

	memcpy(in, seed, seed_len);
	for (uint32_t at = 0; ok && at < len; at += SHA1_LEN) {
		put_be32(in + seed_len, at / SHA1_LEN);
		ok = EVP_Digest(in, seed_len + 4, out, NULL, EVP_sha1(), NULL) == 1;
		for (uint32_t i = 0; i < SHA1_LEN && at + i < len; i++)
			p[at + i] ^= out[i];
	}
	secmem_wipe(in, sizeof(in));
	secmem_wipe(out, sizeof(out));
	return ok;
}

/* 0 SEED DB, both masked. DB: hash of the empty label, zeroes, 1, KEY. */
static bool oaep(struct found *out, uint8_t *block, uint32_t len)
{
	uint8_t *seed = block + 1, *db = seed + SHA1_LEN, label[EVP_MAX_MD_SIZE];
	uint32_t db_len = len - 1 - SHA1_LEN, at = 0, looking = ~0u, right = is_zero(block[0]);

	if (!mask(seed, SHA1_LEN, db, db_len) || !mask(db, db_len, seed, SHA1_LEN) ||
		EVP_Digest("", 0, label, NULL, EVP_sha1(), NULL) != 1)
		return false;
	for (uint32_t i = 0; i < SHA1_LEN; i++)
		right &= is_zero((uint32_t)(db[i] ^ label[i]));
	for (uint32_t i = SHA1_LEN; i < db_len; i++) {
		uint32_t one = is_zero(db[i] ^ 1u) & looking;

		right &= ~looking | one | is_zero(db[i]);
		at |= one & i;
		looking &= ~one;
	}
	*out = found(right & ~looking, at, db, db_len);
	return true;
}

/* --- The key ---------------------------------------------------------------------------------- */

bool mikey_unpad(struct mikey_envelope_key *out, const uint8_t *block, size_t len)
{
	uint8_t copy[MIKEY_RSA_MAX], other[MIKEY_ENVELOPE_MAX] = {0};
	struct found a = pkcs1(block, (uint32_t)len), b;
	uint32_t any, n;
	bool ok;

	memcpy(copy, block, len);
	ok = oaep(&b, copy, (uint32_t)len) && secmem_random(other, KEY_MIN) == 0;
	any = ok ? a.right | b.right : 0;
	n = ok ? choose(b.right, b.len, choose(a.right, a.len, KEY_MIN)) : KEY_MIN;
	for (uint32_t i = 0; ok && i < MIKEY_ENVELOPE_MAX; i++) {
		uint32_t byte = ~any & other[i];

		for (uint32_t j = 0; j < MIKEY_ENVELOPE_MAX; j++)
			byte |= is_zero(j ^ (i + MIKEY_ENVELOPE_MAX - n)) & any &
				choose(b.right, b.tail[j], a.tail[j]);
		out->key[i] = (uint8_t)byte;
	}
	out->rest = (uint8_t)~is_less(n, MIKEY_PRF_BLOCK + 1);
	secmem_wipe(copy, sizeof(copy));
	secmem_wipe(other, sizeof(other));
	return ok;
}
