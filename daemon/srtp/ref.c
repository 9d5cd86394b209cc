/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The scalar reference: one job, in plain C beside the RFCs: FIPS-197 AES, FIPS-180 SHA-1, SP 800-38D GCM, then
 * RFC 3711 4.1 (CM, F8), 4.2 (HMAC), RFC 6188 and RFC 7714. It is the specification that engines are tested against:
 * it must stay readable and must never be on the packet path, for its AES looks bytes up in a table, which is neither
 * fast nor free of cache timing. Tags are compared in constant time all the same. Pure. */
#include "srtp/ref.h"

#include "base/bytes.h"
#include "base/secmem.h"

/* --- AES, encryption only: no SRTP mode needs the inverse ------------------------------------------------------- */

static const uint8_t sbox[256] = {0x63, 0x7c, 0x77, 0x7b, 0xf2, 0x6b, 0x6f, 0xc5, 0x30, 0x01, 0x67,
	0x2b, 0xfe, 0xd7, 0xab, 0x76, 0xca, 0x82, 0xc9, 0x7d, 0xfa, 0x59, 0x47, 0xf0, 0xad, 0xd4,
	0xa2, 0xaf, 0x9c, 0xa4, 0x72, 0xc0, 0xb7, 0xfd, 0x93, 0x26, 0x36, 0x3f, 0xf7, 0xcc, 0x34,
	0xa5, 0xe5, 0xf1, 0x71, 0xd8, 0x31, 0x15, 0x04, 0xc7, 0x23, 0xc3, 0x18, 0x96, 0x05, 0x9a,
	0x07, 0x12, 0x80, 0xe2, 0xeb, 0x27, 0xb2, 0x75, 0x09, 0x83, 0x2c, 0x1a, 0x1b, 0x6e, 0x5a,
	0xa0, 0x52, 0x3b, 0xd6, 0xb3, 0x29, 0xe3, 0x2f, 0x84, 0x53, 0xd1, 0x00, 0xed, 0x20, 0xfc,
	0xb1, 0x5b, 0x6a, 0xcb, 0xbe, 0x39, 0x4a, 0x4c, 0x58, 0xcf, 0xd0, 0xef, 0xaa, 0xfb, 0x43,
	0x4d, 0x33, 0x85, 0x45, 0xf9, 0x02, 0x7f, 0x50, 0x3c, 0x9f, 0xa8, 0x51, 0xa3, 0x40, 0x8f,
	0x92, 0x9d, 0x38, 0xf5, 0xbc, 0xb6, 0xda, 0x21, 0x10, 0xff, 0xf3, 0xd2, 0xcd, 0x0c, 0x13,
	0xec, 0x5f, 0x97, 0x44, 0x17, 0xc4, 0xa7, 0x7e, 0x3d, 0x64, 0x5d, 0x19, 0x73, 0x60, 0x81,
	0x4f, 0xdc, 0x22, 0x2a, 0x90, 0x88, 0x46, 0xee, 0xb8, 0x14, 0xde, 0x5e, 0x0b, 0xdb, 0xe0,
	0x32, 0x3a, 0x0a, 0x49, 0x06, 0x24, 0x5c, 0xc2, 0xd3, 0xac, 0x62, 0x91, 0x95, 0xe4, 0x79,
	0xe7, 0xc8, 0x37, 0x6d, 0x8d, 0xd5, 0x4e, 0xa9, 0x6c, 0x56, 0xf4, 0xea, 0x65, 0x7a, 0xae,
	0x08, 0xba, 0x78, 0x25, 0x2e, 0x1c, 0xa6, 0xb4, 0xc6, 0xe8, 0xdd, 0x74, 0x1f, 0x4b, 0xbd,
	0x8b, 0x8a, 0x70, 0x3e, 0xb5, 0x66, 0x48, 0x03, 0xf6, 0x0e, 0x61, 0x35, 0x57, 0xb9, 0x86,
	0xc1, 0x1d, 0x9e, 0xe1, 0xf8, 0x98, 0x11, 0x69, 0xd9, 0x8e, 0x94, 0x9b, 0x1e, 0x87, 0xe9,
	0xce, 0x55, 0x28, 0xdf, 0x8c, 0xa1, 0x89, 0x0d, 0xbf, 0xe6, 0x42, 0x68, 0x41, 0x99, 0x2d,
	0x0f, 0xb0, 0x54, 0xbb, 0x16};

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
		uint8_t t[4];

		memcpy(t, rk + 4 * (i - 1), 4);
		if (i % nk == 0) {
			uint8_t first = t[0];

			t[0] = sbox[t[1]] ^ rcon;
			t[1] = sbox[t[2]];
			t[2] = sbox[t[3]];
			t[3] = sbox[first];
			rcon = xtime(rcon);
		} else if (nk > 6 && i % nk == 4) {
			for (int b = 0; b < 4; b++)
				t[b] = sbox[t[b]];
		}
		for (int b = 0; b < 4; b++)
			rk[4 * i + b] = rk[4 * (i - nk) + b] ^ t[b];
	}
}

/* FIPS-197 5.1; in and out may be the same. */
void srtp_ref_aes_block(uint8_t out[16], const uint8_t in[16], const uint8_t *rk, unsigned rounds)
{
	uint8_t s[16], t[16];

	for (int i = 0; i < 16; i++)
		s[i] = in[i] ^ rk[i];
	for (unsigned r = 1; r <= rounds; r++) {
		/* SubBytes and ShiftRows */
		for (int i = 0; i < 16; i++)
			t[i] = sbox[s[(i + 4 * (i % 4)) % 16]];
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
}

/* --- SHA-1 and HMAC from its two stored states ------------------------------------------------------------------- */

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

/* --- GHASH, bit by bit (SP 800-38D 6.3, 6.4) --------------------------------------------------------------------- */

static void gf_mul(uint8_t x[16], const uint8_t h[16])
{
	uint8_t z[16] = {0}, v[16];

	memcpy(v, h, 16);
	for (int i = 0; i < 128; i++) {
		uint8_t take = (uint8_t) - (x[i / 8] >> (7 - i % 8) & 1);
		uint8_t carry = (uint8_t) - (v[15] & 1);

		for (int j = 0; j < 16; j++)
			z[j] ^= v[j] & take;
		for (int j = 15; j > 0; j--)
			v[j] = (uint8_t)(v[j] >> 1 | v[j - 1] << 7);
		v[0] = (uint8_t)(v[0] >> 1) ^ (0xe1 & carry);
	}
	memcpy(x, z, 16);
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

/* Zeroes up to the block's end. */
static void ghash_pad(struct ghash *g)
{
	if (g->fill)
		gf_mul(g->y, g->h);
	g->fill = 0;
}

/* --- SRTP -------------------------------------------------------------------------------------------------------- */

/* What one direction of a job is about. */
struct side {
	const struct xc_key *key;
	const uint8_t *pkt; /* the packet's start: header bytes are equal on both sides */
	uint64_t index;
	uint32_t ssrc;
	bool rtcp;
	bool clear;      /* the body is not encrypted */
	uint8_t word[4]; /* RTP: ROC; RTCP: E||index */
};

/* RFC 3711 4.1.1 (48-bit index, then the block counter) and RFC 7714 8.1, 9.1 (two bytes less, no counter). */
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

/* Encrypting and decrypting are the same. */
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

/* RFC 7714 8.2, 9.2, 9.3: the header is additional data; of SRTCP the E||index word too, behind it; a clear body is
 * additional data between the two. */
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

/* The tag over the packet as it is on the wire; at least tag_len bytes of tag are written. */
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

/* Where SRTCP's E||index word is: behind the body, with AEAD behind the tag. */
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
	bool rtcp = job->flags & XC_JOB_RTCP;
	bool valid =
		keys[job->rx_key].valid == XC_KEY_VALID && keys[job->tx_key].valid == XC_KEY_VALID;
	struct side rx = {.key = keys + job->rx_key, .pkt = src, .index = job->rx_index};
	struct side tx = {.key = keys + job->tx_key, .pkt = src, .index = job->tx_index};

	rx.ssrc = tx.ssrc = job->ssrc;
	rx.rtcp = tx.rtcp = rtcp;
	rx.clear = job->flags & XC_JOB_RX_CLEAR;
	tx.clear = job->flags & XC_JOB_TX_CLEAR;
	/* What came in is what is authenticated: the received word, not one made from rx_index. */
	if (!rtcp)
		put_be32(rx.word, (uint32_t)(rx.index >> 16));
	else if (!is_plain(rx.key))
		memcpy(rx.word, src + word_off(rx.key, len, job->rx_tag_off), 4);
	put_be32(tx.word,
		rtcp ? (tx.clear ? 0 : 1u << 31) | (uint32_t)tx.index : (uint32_t)(tx.index >> 16));

	if (!valid)
		return XC_BAD_TAG; /* a wiped slot is no plain one */
	auth_tag(tag, &rx, src, job->hdr_len, job->body_len);
	if (!secmem_equal(tag, src + job->rx_tag_off, rx.key->auth ? rx.key->tag_len : 0))
		return XC_BAD_TAG;
	memmove(dst, src, len);
	cipher(&rx, dst + job->hdr_len, job->body_len);
	cipher(&tx, dst + job->hdr_len, job->body_len);
	if (is_plain(tx.key))
		return XC_OK;
	auth_tag(tag, &tx, dst, job->hdr_len, job->body_len);
	memcpy(dst + job->tx_tag_off, tag, tx.key->auth ? tx.key->tag_len : 0);
	if (rtcp)
		memcpy(dst + word_off(tx.key, len, job->tx_tag_off), tx.word, 4);
	return XC_OK;
}
