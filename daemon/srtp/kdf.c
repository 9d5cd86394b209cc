/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Session keys from a master key and salt: RFC 3711 4.3 with the AES-CM PRF, RFC 6188 3 for longer keys, RFC 7714 11
 * for the 12-byte salts; key derivation rate 0. Then the key slots that engines read. The PRF runs in OpenSSL; round
 * keys and HMAC states come from the reference's primitives, for libcrypto does not show its own. Keeps nothing. */
#include "srtp/kdf.h"

#include <errno.h>
#include <openssl/evp.h>

#include "base/secmem.h"
#include "srtp/ref.h"

/* RFC 3711 4.3.1 and 4.3.2: SRTP's labels; SRTCP's follow 3 later. */
enum { LABEL_ENC = 0, LABEL_AUTH = 1, LABEL_SALT = 2, LABEL_RTCP = 3 };

static const EVP_CIPHER *prf_cipher(unsigned key_len)
{
	switch (key_len) {
	case 16:
		return EVP_aes_128_ctr();
	case 24:
		return EVP_aes_192_ctr();
	case 32:
		return EVP_aes_256_ctr();
	default:
		return NULL;
	}
}

/* x = label || 0^48 XOR master_salt, both seen as 112-bit numbers; keystream from x * 2^16 on (RFC 3711 4.3.3). A
 * 12-byte salt counts as followed by two zero bytes (RFC 7714 11). */
static int prf(EVP_CIPHER_CTX *ctx, const uint8_t *salt, unsigned salt_len, unsigned label,
	uint8_t *out, unsigned len)
{
	uint8_t iv[16] = {0};
	int done, ok;

	memcpy(iv, salt, salt_len);
	iv[7] ^= (uint8_t)label;
	memset(out, 0, len);
	ok = EVP_EncryptInit_ex(ctx, NULL, NULL, NULL, iv) == 1 &&
		EVP_EncryptUpdate(ctx, out, &done, out, (int)len) == 1 && done == (int)len;
	secmem_wipe(iv, sizeof(iv));
	return ok ? 0 : -EIO;
}

int srtp_kdf(struct srtp_session_keys *out, const struct srtp_master *m, bool rtcp)
{
	const struct srtp_suite *s = srtp_suite_get(m->suite);
	struct srtp_session_keys k = {0};
	unsigned label = rtcp ? LABEL_RTCP : 0;
	EVP_CIPHER_CTX *ctx;
	int err = -EIO;

	memset(out, 0, sizeof(*out));
	if (!s || s->key_len == 0)
		return s ? 0 : -EIO;
	ctx = EVP_CIPHER_CTX_new();
	if (!ctx)
		return -EIO;
	if (EVP_EncryptInit_ex(ctx, prf_cipher(s->key_len), NULL, m->key, NULL) == 1 &&
		!prf(ctx, m->salt, s->salt_len, label + LABEL_ENC, k.enc, s->key_len) &&
		!prf(ctx, m->salt, s->salt_len, label + LABEL_AUTH, k.auth, sizeof(k.auth)) &&
		!prf(ctx, m->salt, s->salt_len, label + LABEL_SALT, k.salt, s->salt_len)) {
		*out = k;
		err = 0;
	}
	EVP_CIPHER_CTX_free(ctx); /* wipes its key */
	secmem_wipe(&k, sizeof(k));
	return err;
}

/* The states behind HMAC's two key blocks (RFC 2104), so that no packet hashes them again. */
static void hmac_states(struct xc_key *slot, const uint8_t auth[20])
{
	uint8_t block[64];

	for (unsigned i = 0; i < sizeof(block); i++)
		block[i] = 0x36 ^ (i < 20 ? auth[i] : 0);
	memcpy(slot->inner, srtp_ref_sha1_init, sizeof(slot->inner));
	srtp_ref_sha1_block(slot->inner, block);
	for (unsigned i = 0; i < sizeof(block); i++)
		block[i] ^= 0x36 ^ 0x5c;
	memcpy(slot->outer, srtp_ref_sha1_init, sizeof(slot->outer));
	srtp_ref_sha1_block(slot->outer, block);
	secmem_wipe(block, sizeof(block));
}

/* A polynomial of GHASH's field, bits in the reverse of the processor's order: SP 800-38D 6.3. */
struct gf {
	uint64_t low, high;
};

/* Multiplied by x, modulo x^128 + x^7 + x^2 + x + 1: one shift to the right of the reflected number. */
static struct gf gf_times_x(struct gf v)
{
	uint64_t carry = 0 - (v.low & 1);

	return (struct gf){
		v.low >> 1 | v.high << 63, v.high >> 1 ^ (0xe100000000000000ull & carry)};
}

static struct gf gf_mul(struct gf x, struct gf y)
{
	struct gf z = {0, 0};

	for (int i = 0; i < 128; i++) {
		uint64_t take = 0 - ((i < 64 ? x.high >> (63 - i) : x.low >> (127 - i)) & 1);

		z.low ^= y.low & take;
		z.high ^= y.high & take;
		y = gf_times_x(y);
	}
	return z;
}

/* aux: H, and behind it room for its powers, in the form that layout.h tells. */
static void ghash_powers(uint8_t aux[16 + 16 * XC_GHASH_POWERS])
{
	struct gf h = {(uint64_t)be32(aux + 8) << 32 | be32(aux + 12),
		(uint64_t)be32(aux) << 32 | be32(aux + 4)};
	struct gf power = h;

	for (int i = 1; i <= XC_GHASH_POWERS; i++) {
		uint64_t carry = 0 - (power.high >> 63);
		struct gf doubled = {power.low << 1 ^ (carry & 1),
			(power.high << 1 | power.low >> 63) ^ (carry & 0xc200000000000000ull)};

		memcpy(aux + 16 * i, &doubled, 16);
		power = gf_mul(power, h);
		secmem_wipe(&doubled, sizeof(doubled));
	}
	secmem_wipe(&h, sizeof(h));
	secmem_wipe(&power, sizeof(power));
}

void srtp_slot_fill(struct xc_key *slot, const struct srtp_suite *s,
	const struct srtp_session_keys *k, bool rtcp)
{
	uint8_t mask[SUITE_MAX_KEY_LEN], rk[240];

	slot->valid = XC_KEY_VALID;
	slot->cipher = s->cipher;
	slot->auth = s->auth;
	slot->rounds = 6u + s->key_len / 4u;
	slot->tag_len = rtcp ? s->rtcp_tag_len : s->rtp_tag_len;
	memcpy(slot->salt, k->salt, s->salt_len);
	if (s->cipher != XC_CIPHER_NULL)
		srtp_ref_aes_expand(slot->rk, k->enc, s->key_len);
	if (s->cipher == XC_CIPHER_GCM) {
		srtp_ref_aes_block(slot->aux, slot->aux, slot->rk, slot->rounds);
		ghash_powers(slot->aux);
	}
	if (s->cipher == XC_CIPHER_AES_F8) { /* m = k_s || 0x5555... (RFC 3711 4.1.2.1) */
		for (unsigned i = 0; i < s->key_len; i++)
			mask[i] = k->enc[i] ^ (i < s->salt_len ? k->salt[i] : 0x55);
		srtp_ref_aes_expand(rk, mask, s->key_len);
		memcpy(slot->aux, rk,
			sizeof(slot->aux)); /* F8 is for 128-bit keys: 11 round keys */
	}
	if (s->auth == XC_AUTH_HMAC_SHA1)
		hmac_states(slot, k->auth);
	secmem_wipe(mask, sizeof(mask));
	secmem_wipe(rk, sizeof(rk));
}

/* UNAUTHENTICATED_SRTP: SRTCP is always authenticated (RFC 3711 3.4). */
static void slot_no_auth(struct xc_key *slot)
{
	slot->auth = XC_AUTH_NULL;
	slot->tag_len = 0;
	secmem_wipe(slot->inner, sizeof(slot->inner));
	secmem_wipe(slot->outer, sizeof(slot->outer));
}

int srtp_key_fill(struct xc_key pair[2], const struct srtp_master *m)
{
	const struct srtp_suite *s = srtp_suite_get(m->suite);
	struct srtp_session_keys k;

	secmem_wipe(pair, 2 * sizeof(*pair));
	if (!s || m->kdr > SRTP_KDR_MAX || (m->no_rtp_auth && s->auth == XC_AUTH_GCM))
		return -EINVAL;
	if (s->id == SUITE_PLAIN) {
		pair[0].valid = pair[1].valid = XC_KEY_VALID;
		return 0;
	}
	for (int rtcp = 0; rtcp < 2; rtcp++) {
		if (srtp_kdf(&k, m, rtcp)) {
			secmem_wipe(pair, 2 * sizeof(*pair));
			return -EIO;
		}
		srtp_slot_fill(&pair[rtcp], s, &k, rtcp);
		if (!rtcp && m->no_rtp_auth)
			slot_no_auth(&pair[0]);
		secmem_wipe(&k, sizeof(k));
	}
	return 0;
}
