/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Derives session keys from a master key and salt: RFC 3711 4.3 with the AES-CM PRF, RFC 6188 3 for
 * longer keys, RFC 7714 11 for 12-byte salts. Then fills the key slots that engines read: round
 * keys and HMAC states. Run time depends only on public lengths. Allocates nothing and calls no
 * library, because with a key derivation rate the packet path calls it. Keeps no state. */
#include "srtp/kdf.h"

#include <errno.h>

#include "base/secmem.h"
#include "srtp/ref.h"

/* RFC 3711 4.3.1 and 4.3.2: labels of SRTP. Those of SRTCP are 3 higher. */
enum { LABEL_ENC = 0, LABEL_AUTH = 1, LABEL_SALT = 2, LABEL_RTCP = 3 };

/* Input of the PRF: an expanded master key. */
struct prf {
	const uint8_t *rk, *salt;
	unsigned rounds, salt_len;
	uint64_t r; /* index DIV key_derivation_rate, 48 bits */
};

/* x = label || r XOR master_salt, both as 112-bit numbers; the keystream starts at x times 2^16
 * (RFC 3711 4.3.1, 4.3.3). A 12-byte salt is extended by two zero bytes (RFC 7714 11). SRTCP
 * (4.3.2) keeps the position of the label, so r is as wide as for SRTP. All implementations derive
 * SRTCP keys so with r = 0. */
static void prf(const struct prf *p, unsigned label, uint8_t *out, unsigned len)
{
	uint8_t iv[16] = {0}, ks[16];

	memcpy(iv, p->salt, p->salt_len);
	iv[7] ^= (uint8_t)label;
	for (int i = 0; i < 6; i++)
		iv[8 + i] ^= (uint8_t)(p->r >> (40 - 8 * i));
	for (unsigned off = 0; off < len; off += 16) {
		iv[15] = (uint8_t)(off / 16);
		srtp_ref_aes_block(ks, iv, p->rk, p->rounds);
		memcpy(out + off, ks, min_u32(len - off, 16));
	}
	secmem_wipe(iv, sizeof(iv));
	secmem_wipe(ks, sizeof(ks));
}

static void session_keys(
	struct srtp_session_keys *out, const struct srtp_suite *s, const struct prf *p, bool rtcp)
{
	unsigned label = rtcp ? LABEL_RTCP : 0;

	memset(out, 0, sizeof(*out));
	prf(p, label + LABEL_ENC, out->enc, s->key_len);
	prf(p, label + LABEL_AUTH, out->auth, sizeof(out->auth));
	prf(p, label + LABEL_SALT, out->salt, s->salt_len);
}

static unsigned rounds_of(const struct srtp_suite *s)
{
	return 6u + s->key_len / 4u;
}

int srtp_kdf(struct srtp_session_keys *out, const struct srtp_master *m, bool rtcp, uint64_t r)
{
	const struct srtp_suite *s = srtp_suite_get(m->suite);
	uint8_t rk[240];

	memset(out, 0, sizeof(*out));
	if (!s || s->key_len == 0)
		return s ? 0 : -EINVAL;
	srtp_ref_aes_expand(rk, m->key, s->key_len);
	session_keys(out, s,
		&(struct prf){.rk = rk,
			.salt = m->salt,
			.rounds = rounds_of(s),
			.salt_len = s->salt_len,
			.r = r},
		rtcp);
	secmem_wipe(rk, sizeof(rk));
	return 0;
}

int srtp_kdf_label(uint8_t *out, unsigned len, const struct srtp_master *m, uint8_t label)
{
	const struct srtp_suite *s = srtp_suite_get(m->suite);
	uint8_t rk[240];

	memset(out, 0, len);
	if (!s || s->key_len == 0)
		return -EINVAL;
	srtp_ref_aes_expand(rk, m->key, s->key_len);
	prf(
		&(struct prf){
			.rk = rk, .salt = m->salt, .rounds = rounds_of(s), .salt_len = s->salt_len},
		label, out, len);
	secmem_wipe(rk, sizeof(rk));
	return 0;
}

/* The states after HMAC's two key blocks (RFC 2104), computed once per key instead of per packet.
 */
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

/* An element of GHASH's field, with the bits in reverse processor order: SP 800-38D 6.3. */
struct gf {
	uint64_t low, high;
};

/* Multiplies by x modulo x^128 + x^7 + x^2 + x + 1: a right shift of the reflected number. */
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

/* aux: receives H, followed by its powers in the format of kernels/layout.h. */
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
	slot->rounds = rounds_of(s);
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
		(void)srtp_kdf(&k, m, rtcp, 0); /* the caller has checked the suite */
		srtp_slot_fill(&pair[rtcp], s, &k, rtcp);
		if (!rtcp && m->no_rtp_auth)
			slot_no_auth(&pair[0]);
		secmem_wipe(&k, sizeof(k));
	}
	return 0;
}

void srtp_vault_fill(struct xc_key *vault, const struct srtp_master *m)
{
	const struct srtp_suite *s = srtp_suite_get(m->suite);

	secmem_wipe(vault, sizeof(*vault));
	srtp_ref_aes_expand(vault->rk, m->key, s->key_len);
	memcpy(vault->salt, m->salt, s->salt_len);
}

void srtp_slot_derive(struct xc_key *slot, const struct xc_key *vault, enum srtp_suite_id suite,
	bool no_rtp_auth, bool rtcp, uint64_t r)
{
	const struct srtp_suite *s = srtp_suite_get(suite);
	struct srtp_session_keys k;

	secmem_wipe(slot, sizeof(*slot));
	session_keys(&k, s,
		&(struct prf){.rk = vault->rk,
			.salt = vault->salt,
			.rounds = rounds_of(s),
			.salt_len = s->salt_len,
			.r = r},
		rtcp);
	srtp_slot_fill(slot, s, &k, rtcp);
	if (!rtcp && no_rtp_auth)
		slot_no_auth(slot);
	secmem_wipe(&k, sizeof(k));
}
