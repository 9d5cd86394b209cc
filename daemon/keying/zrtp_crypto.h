/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The primitives of ZRTP (RFC 6189 4.5) on OpenSSL: hashes, MACs, key derivation, and the cipher of
 * Confirm. zrtp_agree.h has key agreements. Functions return 0, or -EIO if OpenSSL fails, unless
 * stated otherwise. */
#ifndef KEYING_ZRTP_CRYPTO_H
#define KEYING_ZRTP_CRYPTO_H

#include "base/bytes.h"
#include "keying/zrtp.h"

#define ZRTP_DIGEST_MAX 48u
#define ZRTP_KEY_MAX    32u

uint32_t zrtp_digest_len(enum zrtp_hash h);
uint32_t zrtp_key_len(enum zrtp_cipher c);

struct zrtp_part {
	const void *p;
	size_t len;
};

/* The hash of the parts, one after the other. out: zrtp_digest_len() bytes. */
int zrtp_hash(uint8_t *out, enum zrtp_hash h, const struct zrtp_part *part, uint32_t parts);
/* Its first len bytes; len is at most zrtp_digest_len(). */
int zrtp_mac(
	uint8_t *out, size_t len, enum zrtp_hash h, struct zrtp_part key, struct zrtp_part message);

struct zrtp_kdf { /* KDF(key, label, context, len) of 4.5.1 */
	enum zrtp_hash h;
	struct zrtp_part key, context;
};
/* len: at most zrtp_digest_len() bytes. */
int zrtp_kdf(uint8_t *out, size_t len, const struct zrtp_kdf *k, const char *label);

/* AES in CFB mode with 128-bit feedback, in place. */
int zrtp_cfb(uint8_t *p, size_t len, enum zrtp_cipher c, const uint8_t *key, const uint8_t iv[16],
	bool encrypt);

/* Bytes that follow from the seed, and from nothing else: the same label gives the same. len is at
 * most 32. */
int zrtp_from_seed(uint8_t *out, size_t len, const uint8_t seed[ZRTP_SEED], const char *label);

#endif
