/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One packet by OpenSSL's libcrypto, any suite: RFC 3711 4, 6188, 7714 8 and 9. */
#include "batch/serial_job.h"

#include "base/secmem.h"
#include "batch/law.h"
#include "batch/sha1_lanes.h"

/* One direction of a job. */
struct side {
	const struct xc_key *x;
	const struct serial_key *k;
	uint64_t index;
	uint32_t ssrc;
	bool rtcp, clear;
	uint8_t word[4]; /* RTP: ROC; RTCP: E||index */
};

static bool is_plain(const struct xc_key *k)
{
	return k->cipher == XC_CIPHER_NULL && k->auth == XC_AUTH_NULL;
}

/* RFC 3711 4.1.1: ssrc_at 4; RFC 7714 8.1 and 9.1: ssrc_at 2. */
static void iv_from_index(uint8_t iv[16], const struct side *s, unsigned ssrc_at)
{
	uint8_t n[10];

	put_be32(n, s->ssrc);
	put_be16(n + 4, (uint16_t)(s->index >> 32));
	put_be32(n + 6, (uint32_t)s->index);
	memcpy(iv, s->x->salt, 16);
	for (unsigned i = 0; i < sizeof(n); i++)
		iv[ssrc_at + i] ^= n[i];
}

/* dst may be src. Eight bytes at a time. */
static void xor_bytes(uint8_t *dst, const uint8_t *src, const uint8_t *ks, size_t len)
{
	size_t i = 0;

	for (; i + 8 <= len; i += 8) {
		uint64_t a, b;

		memcpy(&a, src + i, 8);
		memcpy(&b, ks + i, 8);
		a ^= b;
		memcpy(dst + i, &a, 8);
	}
	for (; i < len; i++)
		dst[i] = src[i] ^ ks[i];
}

static bool ecb_block(EVP_CIPHER_CTX *ctx, uint8_t out[16], const uint8_t in[16])
{
	int n;

	return EVP_EncryptUpdate(ctx, out, &n, in, 16) == 1 && n == 16;
}

/* RFC 3711 4.1.1: E(k, IV), E(k, IV + 1) ... The counter blocks are built here and encrypted in one
 * call: setting an IV through EVP's CTR mode costs more than encrypting a packet. */
static bool cm(const struct side *s, uint8_t *dst, const uint8_t *src, size_t len)
{
	enum { CHUNK = 512 };
	uint8_t iv[16], ks[CHUNK];
	int done;

	iv_from_index(iv, s, 4);
	for (size_t off = 0; off < len; off += CHUNK) {
		size_t n = len - off < CHUNK ? len - off : CHUNK, b = 0;

		for (; b < n; b += 16) {
			memcpy(ks + b, iv, 16);
			put_be16(ks + b + 14, (uint16_t)((off + b) / 16));
		}
		if (EVP_EncryptUpdate(s->k->ctx, ks, &done, ks, (int)b) != 1 || done != (int)b)
			return false;
		xor_bytes(dst + off, src + off, ks, n);
	}
	return true;
}

/* RFC 3711 4.1.2; hdr: this side's header. */
static bool f8(
	const struct side *s, const uint8_t *hdr, uint8_t *dst, const uint8_t *src, size_t len)
{
	uint8_t iv[16] = {0}, ks[16] = {0};

	if (s->rtcp) {
		memcpy(iv + 4, s->word, 4);
		memcpy(iv + 8, hdr, 8);
	} else {
		memcpy(iv + 1, hdr + 1, 11);
		memcpy(iv + 12, s->word, 4);
	}
	if (!ecb_block(s->k->mask, iv, iv))
		return false;
	for (size_t off = 0; off < len; off += 16) {
		size_t n = len - off < 16 ? len - off : 16;
		uint8_t j[4];

		put_be32(j, (uint32_t)(off / 16));
		for (int b = 0; b < 16; b++)
			ks[b] ^= iv[b];
		for (int b = 0; b < 4; b++)
			ks[12 + b] ^= j[b];
		if (!ecb_block(s->k->ctx, ks, ks))
			return false;
		xor_bytes(dst + off, src + off, ks, n);
	}
	return true;
}

/* CM, F8, NULL: encryption equals decryption. dst and src may be equal. */
static bool cipher(
	const struct side *s, const uint8_t *hdr, uint8_t *dst, const uint8_t *src, size_t len)
{
	if (s->x->cipher == XC_CIPHER_NULL || s->clear || len == 0) {
		if (dst != src)
			memcpy(dst, src, len);
		return true;
	}
	if (s->x->cipher == XC_CIPHER_AES_F8)
		return f8(s, hdr, dst, src, len);
	return cm(s, dst, src, len);
}

/* RFC 7714 8.2, 9.2, 9.3: header, a clear body and SRTCP's word are additional data, in this order.
 * enc: writes the tag; otherwise compares it. dst: where the body of pkt goes. */
static bool gcm(const struct side *s, bool enc, const struct xc_job *job, const uint8_t *pkt,
	uint8_t *dst, uint8_t *tag)
{
	EVP_CIPHER_CTX *ctx = s->k->ctx;
	size_t aad_len = job->hdr_len + (s->clear ? job->body_len : 0);
	int n, tag_len = (int)s->x->tag_len;
	uint8_t iv[16], end[16];

	iv_from_index(iv, s, 2);
	if (EVP_CipherInit_ex2(ctx, NULL, NULL, iv, enc, NULL) != 1 ||
		EVP_CipherUpdate(ctx, NULL, &n, pkt, (int)aad_len) != 1 ||
		(s->rtcp && EVP_CipherUpdate(ctx, NULL, &n, s->word, 4) != 1))
		return false;
	if (!s->clear && job->body_len &&
		EVP_CipherUpdate(ctx, dst, &n, pkt + job->hdr_len, (int)job->body_len) != 1)
		return false;
	if (!enc && EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_TAG, tag_len, tag) != 1)
		return false;
	if (EVP_CipherFinal_ex(ctx, end, &n) != 1) /* compares in constant time */
		return false;
	return !enc || EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, tag_len, tag) == 1;
}

/* Authenticates src, and writes header and clear body to dst. */
static bool receive(
	const struct side *s, const struct xc_job *job, uint8_t *dst, const uint8_t *src)
{
	size_t len = (size_t)job->hdr_len + job->body_len;
	uint8_t mac[20];

	if (s->x->auth == XC_AUTH_GCM) {
		uint8_t tag[16];

		memcpy(tag, src + job->rx_tag_off, s->x->tag_len);
		if (!gcm(s, false, job, src, dst + job->hdr_len, tag))
			return false;
		if (dst != src)
			memcpy(dst, src, s->clear ? len : job->hdr_len);
		return true;
	}
	if (s->x->auth == XC_AUTH_HMAC_SHA1) {
		hmac_sha1_one(mac, s->x, src, len, s->word);
		if (!secmem_equal(mac, src + job->rx_tag_off, s->x->tag_len))
			return false;
	}
	if (dst != src)
		memcpy(dst, src, job->hdr_len);
	return cipher(s, src, dst + job->hdr_len, src + job->hdr_len, job->body_len);
}

/* Encrypts dst in place, and writes tag and word. */
static bool send_out(const struct side *s, const struct xc_job *job, uint8_t *dst)
{
	size_t len = (size_t)job->hdr_len + job->body_len;
	uint8_t mac[20], *body = dst + job->hdr_len, *tag = dst + job->tx_tag_off;

	if (is_plain(s->x))
		return true;
	if (s->x->auth == XC_AUTH_GCM) {
		if (!gcm(s, true, job, dst, body, tag))
			return false;
		if (s->rtcp)
			memcpy(tag + s->x->tag_len, s->word, 4);
		return true;
	}
	if (!cipher(s, dst, body, body, job->body_len))
		return false;
	if (s->x->auth == XC_AUTH_HMAC_SHA1) {
		hmac_sha1_one(mac, s->x, dst, len, s->word);
		memcpy(tag, mac, s->x->tag_len);
	}
	if (s->rtcp)
		memcpy(dst + len, s->word, 4);
	return true;
}

/* Replaces the end of the body before it is encrypted (XC_JOB_HAS_BLOCK()). */
static bool send_with_block(const struct side *s, const struct xc_job *job, uint8_t *dst)
{
	struct xc_job sent = *job;

	sent.body_len -= XC_BLOCK_CUT(job->flags);
	memcpy(dst + sent.hdr_len + sent.body_len, dst - XC_BLOCK_MAX, XC_BLOCK_ADD(job->flags));
	sent.body_len += XC_BLOCK_ADD(job->flags);
	return send_out(s, &sent, dst);
}

bool serial_job_run(const struct arena *a, const struct serial_key *key, const struct xc_job *job)
{
	const uint8_t *src = a->in + job->in_off;
	uint8_t *dst = a->out + job->out_off;
	struct side rx = {
		.x = &a->key[job->rx_key], .k = &key[job->rx_key], .index = job->rx_index};
	struct side tx = {
		.x = &a->key[job->tx_key], .k = &key[job->tx_key], .index = job->tx_index};

	rx.ssrc = job->ssrc;
	tx.ssrc = job->ssrc ^ job->ssrc_change;
	rx.clear = job->flags & XC_JOB_RX_CLEAR;
	tx.clear = job->flags & XC_JOB_TX_CLEAR;
	rx.rtcp = tx.rtcp = job->flags & XC_JOB_RTCP;
	if (!rx.rtcp) {
		put_be32(rx.word, (uint32_t)(rx.index >> 16));
		put_be32(tx.word, (uint32_t)(tx.index >> 16));
	} else {
		/* The received word is the authenticated one: after the body, with AEAD after the
		 * tag. */
		if (rx.x->auth == XC_AUTH_GCM)
			memcpy(rx.word, src + job->rx_tag_off + rx.x->tag_len, 4);
		else if (!is_plain(rx.x))
			memcpy(rx.word, src + job->hdr_len + job->body_len, 4);
		put_be32(tx.word, (tx.clear ? 0 : 1u << 31) | (uint32_t)tx.index);
	}
	if (!receive(&rx, job, dst, src))
		return false;
	if (job->ssrc_change)
		put_be32(dst + (rx.rtcp ? 4 : 8), tx.ssrc);
	if (job->convert) {
		dst[1] ^= (uint8_t)XC_FLIP(job->convert);
		law_bytes(dst + job->hdr_len, job->body_len, XC_LAW(job->convert));
	}
	return XC_JOB_HAS_BLOCK(job->flags) ? send_with_block(&tx, job, dst)
					    : send_out(&tx, job, dst);
}
