/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Several AES-CM and HMAC-SHA1 packets at once (batch/quick.h): every packet's cipher under both
 * keys, then the hashes of all received and sent packets together, then verdicts and tags.
 * RFC 3711 4.1.1, 4.2. */
#include "batch/quick.h"

#include "base/secmem.h"
#include "batch/aes_cm.h"
#include "batch/sha1_lanes.h"

bool quick_can(const struct xc_key *k)
{
	return (k->cipher == XC_CIPHER_NULL || k->cipher == XC_CIPHER_AES_CM) &&
		(k->auth == XC_AUTH_NULL || k->auth == XC_AUTH_HMAC_SHA1);
}

static bool is_plain(const struct xc_key *k)
{
	return k->cipher == XC_CIPHER_NULL && k->auth == XC_AUTH_NULL;
}

/* The SRTCP word to send: E||index. */
static uint32_t rtcp_word(const struct xc_job *j)
{
	return (j->flags & XC_JOB_TX_CLEAR ? 0 : 1u << 31) | (uint32_t)j->tx_index;
}

/* Bytes of the body that are both received and sent. */
static inline uint32_t common(const struct xc_job *j)
{
	return j->body_len - XC_BLOCK_CUT(j->flags);
}

/* Header, body, and for RTCP the word. */
static void recrypt(const struct arena *a, const struct xc_job *j, const uint8_t *src, uint8_t *dst)
{
	const struct xc_key *rx_key = &a->key[j->rx_key], *tx_key = &a->key[j->tx_key];
	uint32_t ssrc = j->ssrc ^ j->ssrc_change;
	struct aes_cm_side rx, tx;

	aes_cm_side(&rx, rx_key, j->rx_index, j->ssrc, j->flags & XC_JOB_RX_CLEAR);
	aes_cm_side(&tx, tx_key, j->tx_index, ssrc, j->flags & XC_JOB_TX_CLEAR);
	if (dst != src)
		memcpy(dst, src, 16); /* may read and write into the slack */
	if (dst != src && j->hdr_len > 16)
		memcpy(dst, src, j->hdr_len);
	if (j->ssrc_change)
		put_be32(dst + (j->flags & XC_JOB_RTCP ? 4 : 8), ssrc);
	if (j->convert) {
		dst[1] ^= (uint8_t)XC_FLIP(j->convert);
		aes_cm_convert(dst + j->hdr_len, src + j->hdr_len, j->body_len, &rx, &tx,
			XC_LAW(j->convert));
	} else {
		aes_cm_recrypt(dst + j->hdr_len, src + j->hdr_len, common(j), &rx, &tx);
		if (XC_BLOCK_ADD(j->flags))
			aes_cm_part(dst + j->hdr_len + common(j), dst - XC_BLOCK_MAX,
				XC_BLOCK_ADD(j->flags), common(j), &tx);
	}
	if (j->flags & XC_JOB_RTCP && !is_plain(tx_key))
		put_be32(dst + j->hdr_len + j->body_len, rtcp_word(j));
}

/* Fills a job except its word (roll-over counter, or E||index of SRTCP). */
static void hash(struct hmac_job *h, const struct xc_key *k, const uint8_t *msg, uint32_t len)
{
	h->key = k;
	h->msg = msg;
	h->len = len;
}

static inline void hash_received(
	struct hmac_job *h, const struct xc_key *rx, const struct xc_job *j, const uint8_t *src)
{
	uint32_t len = j->hdr_len + j->body_len;

	hash(h, rx, src, len);
	/* The HMAC of a received SRTCP packet covers the word that arrived with it. */
	if (j->flags & XC_JOB_RTCP)
		memcpy(h->word, src + len, 4);
	else
		put_be32(h->word, (uint32_t)(j->rx_index >> 16));
}

/* Appends the HMACs of a job: received packet, then sent packet. */
static uint32_t hashes(struct hmac_job *h, const struct arena *a, const struct xc_job *j,
	const uint8_t *src, const uint8_t *dst)
{
	uint32_t n = 0, len = j->hdr_len + common(j) + XC_BLOCK_ADD(j->flags);
	const struct xc_key *rx = &a->key[j->rx_key], *tx = &a->key[j->tx_key];

	if (rx->auth)
		hash_received(&h[n++], rx, j, src);
	if (tx->auth) {
		hash(&h[n], tx, dst, len);
		put_be32(h[n].word,
			j->flags & XC_JOB_RTCP ? rtcp_word(j) : (uint32_t)(j->tx_index >> 16));
		n++;
	}
	return n;
}

static void tag_put(uint8_t *to, const uint8_t *mac, uint32_t len)
{
	if (len == 10) /* the usual length, copied inline */
		memcpy(to, mac, 10);
	else
		memcpy(to, mac, len);
}

void quick_run(struct quick *g)
{
	const struct arena *a = g->arena;
	struct hmac_job h[2 * QUICK_JOBS];
	uint32_t n = 0, at = 0;

	for (uint32_t i = 0; i < g->n; i++) {
		const struct xc_job *j = g->job[i];
		const uint8_t *src = a->in + j->in_off;
		uint8_t *dst = a->out + j->out_off;

		recrypt(a, j, src, dst);
		n += hashes(h + n, a, j, src, dst);
	}
	hmac_sha1_all(g->ways, h, n);
	for (uint32_t i = 0; i < g->n; i++) {
		const struct xc_job *j = g->job[i];
		const struct xc_key *rx = &a->key[j->rx_key], *tx = &a->key[j->tx_key];
		bool good = true;

		if (rx->auth)
			good = secmem_equal(
				h[at++].mac, a->in + j->in_off + j->rx_tag_off, rx->tag_len);
		if (tx->auth)
			tag_put(a->out + j->out_off + j->tx_tag_off, h[at++].mac, tx->tag_len);
		*g->status[i] = good ? XC_OK : XC_BAD_TAG;
	}
	g->n = 0;
}

void quick_doubt(struct quick *d, struct quick *g)
{
	const struct arena *a = d->arena;
	struct hmac_job h[QUICK_JOBS];

	for (uint32_t i = 0; i < d->n; i++) {
		const struct xc_job *j = d->job[i];

		hash_received(&h[i], &a->key[j->rx_key], j, a->in + j->in_off);
	}
	hmac_sha1_all(d->ways, h, d->n);
	for (uint32_t i = 0; i < d->n; i++) {
		const struct xc_job *j = d->job[i];

		if (secmem_equal(
			    h[i].mac, a->in + j->in_off + j->rx_tag_off, a->key[j->rx_key].tag_len))
			quick_add(g, j, d->status[i]);
		else
			*d->status[i] = XC_BAD_TAG;
	}
	d->n = 0;
}
