/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The scalar reference: one job, in plain C that follows the standards: FIPS-197 AES, FIPS-180
 * SHA-1, SP 800-38D GCM, RFC 3711 4.1 (CM, F8) and 4.2 (HMAC), RFC 6188, RFC 7714. Engines are
 * tested against it, so it must stay readable. It is too slow for ordinary packets. Key derivation
 * uses its primitives, so no branch and no look-up depends on a secret (t/ct), and tags are
 * compared in constant time. Pure. */
#include "srtp/ref.h"

#include "base/bytes.h"
#include "base/secmem.h"
#include "srtp/g711.h"

/* --- AES, encryption only: no SRTP mode needs the inverse ------------------------------------- */

/* The S-box by its definition in FIPS-197 5.1.1, sixteen bytes at a time. Key derivation uses it on
 * keys, and a table look-up would show in the cache. */
typedef uint8_t sixteen __attribute__((vector_size(16)));
typedef int8_t sixteen_signed __attribute__((vector_size(16)));

/* 0xff for each byte whose highest bit is set, else 0. */
static sixteen is_high(sixteen a)
{
	return (sixteen)((sixteen_signed)a < 0);
}

static sixteen gf8_mul(sixteen a, sixteen b)
{
	sixteen p = {0};

	for (int i = 0; i < 8; i++) {
		p = p << 1 ^ (0x1b & is_high(p)) ^ (a & is_high(b));
		b <<= 1;
	}
	return p;
}

/* Raising to a power of two is linear: the result is the sum of the powers of the bits that are
 * set. powers[] begins with the highest bit. */
static sixteen gf8_linear(sixteen a, const uint8_t powers[8])
{
	sixteen p = {0};

	for (int i = 0; i < 8; i++) {
		p ^= powers[i] & is_high(a);
		a <<= 1;
	}
	return p;
}

/* a^254 equals 1/a, and 0 for 0. */
static sixteen gf8_invert(sixteen a)
{
	static const uint8_t to_2[] = {0x9a, 0xab, 0x6c, 0x1b, 0x40, 0x10, 0x04, 0x01},
			     to_4[] = {0xc5, 0xb3, 0x97, 0x5e, 0xab, 0x1b, 0x10, 0x01},
			     to_16[] = {0x6c, 0x1d, 0x91, 0x4d, 0xe8, 0xe4, 0x5e, 0x01};
	sixteen a2 = gf8_linear(a, to_2), a3 = gf8_mul(a2, a), a12 = gf8_linear(a3, to_4),
		a15 = gf8_mul(a12, a3), a240 = gf8_linear(a15, to_16);

	return gf8_mul(gf8_mul(a240, a12), a2);
}

static void sub_bytes(uint8_t s[16])
{
	sixteen x, y;

	memcpy(&x, s, 16);
	x = gf8_invert(x);
	y = x ^ (x << 1 | x >> 7) ^ (x << 2 | x >> 6) ^ (x << 3 | x >> 5) ^ (x << 4 | x >> 4) ^
		0x63;
	memcpy(s, &y, 16);
}

static uint8_t xtime(uint8_t a)
{
	return (uint8_t)(a << 1 ^ (a >> 7) * 0x1b);
}

/* FIPS-197 5.2. key_len: 16, 24 or 32. */
void srtp_ref_aes_expand(uint8_t rk[240], const uint8_t *key, unsigned key_len)
{
	unsigned nk = key_len / 4, words = 4 * (nk + 7);
	uint8_t rcon = 1;

	memcpy(rk, key, key_len);
	for (unsigned i = nk; i < words; i++) {
		uint8_t t[16] = {0};

		memcpy(t, rk + 4 * (i - 1), 4);
		if (i % nk == 0) {
			uint8_t first = t[0];

			memmove(t, t + 1, 3);
			t[3] = first;
			sub_bytes(t);
			t[0] ^= rcon;
			rcon = xtime(rcon);
		} else if (nk > 6 && i % nk == 4) {
			sub_bytes(t);
		}
		for (int b = 0; b < 4; b++)
			rk[4 * i + b] = rk[4 * (i - nk) + b] ^ t[b];
		secmem_wipe(t, sizeof(t));
	}
}

/* FIPS-197 5.1; in and out may be the same. */
void srtp_ref_aes_block(uint8_t out[16], const uint8_t in[16], const uint8_t *rk, unsigned rounds)
{
	uint8_t s[16], t[16];

	for (int i = 0; i < 16; i++)
		s[i] = in[i] ^ rk[i];
	for (unsigned r = 1; r <= rounds; r++) {
		/* SubBytes, ShiftRows */
		sub_bytes(s);
		for (int i = 0; i < 16; i++)
			t[i] = s[(i + 4 * (i % 4)) % 16];
		/* MixColumns, all but the last round */
		for (int c = 0; c < 16 && r < rounds; c += 4) {
			uint8_t a = t[c], all = t[c] ^ t[c + 1] ^ t[c + 2] ^ t[c + 3];

			t[c] ^= all ^ xtime(t[c] ^ t[c + 1]);
			t[c + 1] ^= all ^ xtime(t[c + 1] ^ t[c + 2]);
			t[c + 2] ^= all ^ xtime(t[c + 2] ^ t[c + 3]);
			t[c + 3] ^= all ^ xtime(t[c + 3] ^ a);
		}
		for (int i = 0; i < 16; i++)
			s[i] = t[i] ^ rk[16 * r + i];
	}
	memcpy(out, s, 16);
	secmem_wipe(s, sizeof(s));
	secmem_wipe(t, sizeof(t));
}

/* --- SHA-1 and HMAC from its two stored states ------------------------------------------------ */

const uint32_t srtp_ref_sha1_init[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};

static uint32_t rol(uint32_t v, int n)
{
	return v << n | v >> (32 - n);
}

void srtp_ref_sha1_block(uint32_t state[5], const uint8_t block[64])
{
	uint32_t w[80], a = state[0], b = state[1], c = state[2], d = state[3], e = state[4];

	for (int i = 0; i < 16; i++)
		w[i] = be32(block + 4 * i);
	for (int i = 16; i < 80; i++)
		w[i] = rol(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
	for (int i = 0; i < 80; i++) {
		uint32_t f, k, t;

		if (i < 20) {
			f = (b & c) | (~b & d);
			k = 0x5a827999;
		} else if (i < 40) {
			f = b ^ c ^ d;
			k = 0x6ed9eba1;
		} else if (i < 60) {
			f = (b & c) | (b & d) | (c & d);
			k = 0x8f1bbcdc;
		} else {
			f = b ^ c ^ d;
			k = 0xca62c1d6;
		}
		t = rol(a, 5) + f + e + k + w[i];
		e = d;
		d = c;
		c = rol(b, 30);
		b = a;
		a = t;
	}
	state[0] += a;
	state[1] += b;
	state[2] += c;
	state[3] += d;
	state[4] += e;
	secmem_wipe(w, sizeof(w)); /* wiped, as it may be an HMAC key */
}

struct sha1 {
	uint32_t state[5];
	uint8_t block[64];
	uint64_t len; /* bytes so far, the HMAC key block included */
};

static void sha1_update(struct sha1 *h, const uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		h->block[h->len++ % 64] = p[i];
		if (h->len % 64 == 0)
			srtp_ref_sha1_block(h->state, h->block);
	}
}

static void sha1_final(struct sha1 *h, uint8_t digest[20])
{
	uint64_t bits = 8 * h->len;
	uint8_t pad = 0x80, len[8];

	do {
		sha1_update(h, &pad, 1);
		pad = 0;
	} while (h->len % 64 != 56);
	put_be32(len, (uint32_t)(bits >> 32));
	put_be32(len + 4, (uint32_t)bits);
	sha1_update(h, len, 8);
	for (int i = 0; i < 5; i++)
		put_be32(digest + 4 * i, h->state[i]);
}

/* RFC 2104 over a message in two parts. */
static void hmac(uint8_t mac[20], const struct xc_key *k, const uint8_t *a, size_t a_len,
	const uint8_t *b, size_t b_len)
{
	struct sha1 h = {.len = 64};

	memcpy(h.state, k->inner, sizeof(h.state));
	sha1_update(&h, a, a_len);
	sha1_update(&h, b, b_len);
	sha1_final(&h, mac);
	h.len = 64;
	memcpy(h.state, k->outer, sizeof(h.state));
	sha1_update(&h, mac, 20);
	sha1_final(&h, mac);
}

/* --- GHASH, bit by bit (SP 800-38D 6.3, 6.4) -------------------------------------------------- */

static void gf_mul(uint8_t x[16], const uint8_t h[16])
{
	uint64_t z[2] = {0}, v[2] = {be64(h), be64(h + 8)};

	for (int i = 0; i < 128; i++) {
		uint64_t take = -(uint64_t)(x[i / 8] >> (7 - i % 8) & 1), carry = -(v[1] & 1);

		z[0] ^= v[0] & take;
		z[1] ^= v[1] & take;
		v[1] = v[1] >> 1 | v[0] << 63;
		v[0] = v[0] >> 1 ^ (0xe1ull << 56 & carry);
	}
	for (int i = 0; i < 4; i++)
		put_be32(x + 4 * i, (uint32_t)(z[i / 2] >> 32 * (1 - i % 2)));
}

struct ghash {
	uint8_t y[16];
	const uint8_t *h;
	unsigned fill;
};

static void ghash_update(struct ghash *g, const uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		g->y[g->fill++] ^= p[i];
		if (g->fill == 16) {
			gf_mul(g->y, g->h);
			g->fill = 0;
		}
	}
}

/* Pads with zeroes to the end of the block. */
static void ghash_pad(struct ghash *g)
{
	if (g->fill)
		gf_mul(g->y, g->h);
	g->fill = 0;
}

/* --- SRTP ------------------------------------------------------------------------------------- */

/* One direction of a job. */
struct side {
	const struct xc_key *key;
	const uint8_t *pkt; /* start of the packet, with this side's header */
	uint64_t index;
	uint32_t ssrc;
	bool rtcp;
	bool clear;      /* the body is not encrypted */
	uint8_t word[4]; /* RTP: ROC; RTCP: E||index */
};

/* RFC 3711 4.1.1 (48-bit index, then the block counter) and RFC 7714 8.1, 9.1 (two bytes less, no
 * counter). */
static void iv_from_index(uint8_t iv[16], const struct side *s, unsigned ssrc_at)
{
	memcpy(iv, s->key->salt, 16);
	for (int i = 0; i < 4; i++)
		iv[ssrc_at + i] ^= (uint8_t)(s->ssrc >> (24 - 8 * i));
	for (int i = 0; i < 6; i++)
		iv[ssrc_at + 4 + i] ^= (uint8_t)(s->index >> (40 - 8 * i));
}

static void ctr_xor(const struct xc_key *k, uint8_t ctr[16], uint8_t *body, size_t len)
{
	uint8_t ks[16];

	for (size_t i = 0; i < len; i++) {
		if (i % 16 == 0) {
			srtp_ref_aes_block(ks, ctr, k->rk, k->rounds);
			for (int j = 15; j >= 12 && ++ctr[j] == 0; j--)
				;
		}
		body[i] ^= ks[i % 16];
	}
	secmem_wipe(ks, sizeof(ks));
}

/* RFC 3711 4.1.2: IV' = E(k_e XOR m, IV); S(j) = E(k_e, IV' XOR j XOR S(j-1)). */
static void f8_xor(const struct side *s, uint8_t *body, size_t len)
{
	uint8_t iv[16] = {0}, ks[16] = {0};

	if (s->rtcp) { /* 4.1.2.3 */
		memcpy(iv + 4, s->word, 4);
		memcpy(iv + 8, s->pkt, 8);
	} else { /* 4.1.2.2 */
		memcpy(iv + 1, s->pkt + 1, 11);
		memcpy(iv + 12, s->word, 4);
	}
	srtp_ref_aes_block(iv, iv, s->key->aux, s->key->rounds);
	for (size_t i = 0; i < len; i++) {
		if (i % 16 == 0) {
			uint32_t j = (uint32_t)(i / 16);

			for (int b = 0; b < 16; b++)
				ks[b] ^= iv[b] ^ (b >= 12 ? (uint8_t)(j >> (120 - 8 * b)) : 0);
			srtp_ref_aes_block(ks, ks, s->key->rk, s->key->rounds);
		}
		body[i] ^= ks[i % 16];
	}
	secmem_wipe(iv, sizeof(iv));
	secmem_wipe(ks, sizeof(ks));
}

/* Encryption and decryption are the same operation. */
static void cipher(const struct side *s, uint8_t *body, size_t len)
{
	uint8_t iv[16];

	if (s->clear)
		return;
	switch (s->key->cipher) {
	case XC_CIPHER_AES_CM:
		iv_from_index(iv, s, 4);
		ctr_xor(s->key, iv, body, len);
		break;
	case XC_CIPHER_AES_F8:
		f8_xor(s, body, len);
		break;
	case XC_CIPHER_GCM:
		iv_from_index(iv, s, 2);
		put_be32(iv + 12, 2); /* counter 1 is for the tag */
		ctr_xor(s->key, iv, body, len);
		break;
	default:
		break;
	}
}

/* RFC 7714 8.2, 9.2, 9.3: additional data are the header, for SRTCP followed by the E||index word.
 * A clear body comes between the two. */
static void gcm_tag(
	uint8_t tag[16], const struct side *s, const uint8_t *pkt, size_t hdr_len, size_t body_len)
{
	struct ghash g = {.h = s->key->aux};
	size_t clear_len = hdr_len + (s->clear ? body_len : 0), crypt_len = s->clear ? 0 : body_len;
	uint64_t aad_bits = 8 * (uint64_t)(clear_len + (s->rtcp ? 4 : 0));
	uint8_t iv[16], lens[16];

	ghash_update(&g, pkt, clear_len);
	if (s->rtcp)
		ghash_update(&g, s->word, 4);
	ghash_pad(&g);
	ghash_update(&g, pkt + clear_len, crypt_len);
	ghash_pad(&g);
	put_be32(lens, (uint32_t)(aad_bits >> 32));
	put_be32(lens + 4, (uint32_t)aad_bits);
	put_be32(lens + 8, 0);
	put_be32(lens + 12, (uint32_t)(8 * crypt_len));
	ghash_update(&g, lens, 16);
	iv_from_index(iv, s, 2);
	put_be32(iv + 12, 1);
	srtp_ref_aes_block(tag, iv, s->key->rk, s->key->rounds);
	for (int i = 0; i < 16; i++)
		tag[i] ^= g.y[i];
}

/* Computes the tag over the packet as sent. Writes at least tag_len bytes of tag. */
static void auth_tag(
	uint8_t tag[20], const struct side *s, const uint8_t *pkt, size_t hdr_len, size_t body_len)
{
	memset(tag, 0, 20);
	if (s->key->auth == XC_AUTH_HMAC_SHA1)
		hmac(tag, s->key, pkt, hdr_len + body_len, s->word, 4);
	else if (s->key->auth == XC_AUTH_GCM)
		gcm_tag(tag, s, pkt, hdr_len, body_len);
}

static bool is_plain(const struct xc_key *k)
{
	return k->cipher == XC_CIPHER_NULL && k->auth == XC_AUTH_NULL;
}

/* Offset of SRTCP's E||index word: after the body, with AEAD after the tag. */
static size_t word_off(const struct xc_key *k, size_t clear_len, uint32_t tag_off)
{
	return k->auth == XC_AUTH_GCM ? tag_off + k->tag_len : clear_len;
}

uint32_t srtp_ref_job(
	const struct xc_job *job, const struct xc_key *keys, const uint8_t *in, uint8_t *out)
{
	const uint8_t *src = in + job->in_off;
	uint8_t *dst = out + job->out_off, tag[20];
	size_t len = (size_t)job->hdr_len + job->body_len;
	uint32_t sent_len = job->body_len - XC_BLOCK_CUT(job->flags) + XC_BLOCK_ADD(job->flags);
	bool rtcp = job->flags & XC_JOB_RTCP;
	bool valid =
		keys[job->rx_key].valid == XC_KEY_VALID && keys[job->tx_key].valid == XC_KEY_VALID;
	struct side rx = {.key = keys + job->rx_key, .pkt = src, .index = job->rx_index};
	struct side tx = {.key = keys + job->tx_key, .pkt = dst, .index = job->tx_index};

	rx.ssrc = job->ssrc;
	tx.ssrc = job->ssrc ^ job->ssrc_change;
	rx.rtcp = tx.rtcp = rtcp;
	rx.clear = job->flags & XC_JOB_RX_CLEAR;
	tx.clear = job->flags & XC_JOB_TX_CLEAR;
	/* Authenticates the received word, not one made from rx_index. */
	if (!rtcp)
		put_be32(rx.word, (uint32_t)(rx.index >> 16));
	else if (!is_plain(rx.key))
		memcpy(rx.word, src + word_off(rx.key, len, job->rx_tag_off), 4);
	put_be32(tx.word,
		rtcp ? (tx.clear ? 0 : 1u << 31) | (uint32_t)tx.index : (uint32_t)(tx.index >> 16));

	if (!valid)
		return XC_BAD_TAG; /* A wiped slot is invalid, not plain. */
	auth_tag(tag, &rx, src, job->hdr_len, job->body_len);
	if (!secmem_equal(tag, src + job->rx_tag_off, rx.key->auth ? rx.key->tag_len : 0))
		return XC_BAD_TAG;
	memmove(dst, src, len);
	cipher(&rx, dst + job->hdr_len, job->body_len);
	if (job->ssrc_change)
		put_be32(dst + (rtcp ? 4 : 8), tx.ssrc);
	dst[1] ^= (uint8_t)XC_FLIP(job->convert);
	g711_convert(dst + job->hdr_len, job->body_len, XC_LAW(job->convert));
	memcpy(dst + job->hdr_len + job->body_len - XC_BLOCK_CUT(job->flags), dst - XC_BLOCK_MAX,
		XC_BLOCK_ADD(job->flags));
	cipher(&tx, dst + job->hdr_len, sent_len);
	if (is_plain(tx.key))
		return XC_OK;
	auth_tag(tag, &tx, dst, job->hdr_len, sent_len);
	memcpy(dst + job->tx_tag_off, tag, tx.key->auth ? tx.key->tag_len : 0);
	if (rtcp)
		memcpy(dst + word_off(tx.key, len, job->tx_tag_off), tx.word, 4);
	return XC_OK;
}

bool srtp_ref_tag_fits(
	const struct xc_job *job, const struct xc_key *key, uint32_t tag_len, const uint8_t *in)
{
	const uint8_t *src = in + job->in_off;
	struct side rx = {.key = key};
	uint8_t tag[20];

	if (key->valid != XC_KEY_VALID || key->auth != XC_AUTH_HMAC_SHA1 || tag_len > sizeof(tag))
		return false;
	if (job->flags & XC_JOB_RTCP)
		memcpy(rx.word, src + job->hdr_len + job->body_len, 4);
	else
		put_be32(rx.word, (uint32_t)(job->rx_index >> 16));
	auth_tag(tag, &rx, src, job->hdr_len, job->body_len);
	return secmem_equal(tag, src + job->rx_tag_off, tag_len);
}
