/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Generated packets (batch/sample.h): random bytes after an RTP or RTCP header, protected by
 * srtp/ref under the receiving key, and the matching job. The same seed gives the same packet. */
#include "batch/sample.h"

#include "packet/arena.h"
#include "srtp/ref.h"

/* Sebastiano Vigna's splitmix64: public domain, for test data only. */
uint64_t sample_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static void random_fill(uint8_t *p, size_t len, uint64_t *state)
{
	for (size_t i = 0; i < len; i++)
		p[i] = (uint8_t)sample_random(state);
}

void sample_master(struct srtp_master *m, enum srtp_suite_id suite, uint64_t seed)
{
	memset(m, 0, sizeof(*m));
	m->suite = suite;
	random_fill(m->key, sizeof(m->key), &seed);
	random_fill(m->salt, sizeof(m->salt), &seed);
}

static bool is_plain(const struct xc_key *k)
{
	return k->cipher == XC_CIPHER_NULL && k->auth == XC_AUTH_NULL;
}

/* RFC 3711 3.1 and 3.4: body, [word,] MKI, tag. RFC 7714 8.2 and 9.2: body, tag, [word,] MKI. */
static uint32_t tag_off(const struct sample *s, const struct xc_key *k, uint32_t mki_len)
{
	uint32_t len = s->hdr_len + s->body_len;

	if (is_plain(k) || k->auth == XC_AUTH_GCM)
		return len;
	return len + (s->flags & XC_JOB_RTCP ? 4 : 0) + mki_len;
}

uint32_t sample_len(
	const struct xc_job *job, const struct xc_key *k, uint32_t off, uint32_t mki_len)
{
	if (is_plain(k))
		return job->hdr_len + job->body_len;
	if (k->auth == XC_AUTH_GCM)
		return off + k->tag_len + (job->flags & XC_JOB_RTCP ? 4 : 0) + mki_len;
	return off + k->tag_len;
}

static void packet_write(
	uint8_t *p, const struct sample *s, const struct xc_job *job, uint64_t *rnd)
{
	bool rtcp = s->flags & XC_JOB_RTCP;

	random_fill(p, s->hdr_len + s->body_len, rnd);
	p[0] = 0x80;
	p[1] = rtcp ? 200 : 0x60;
	if (!rtcp)
		put_be16(p + 2, (uint16_t)s->rx_index);
	put_be32(p + (rtcp ? 4 : 8), job->ssrc);
}

void sample_make(struct xc_job *job, const struct arena *a, uint32_t slot, const struct sample *s)
{
	uint8_t plain[ARENA_MAX_PACKET] = {0};
	uint64_t rnd = s->seed;
	struct xc_job protect;

	*job = (struct xc_job){
		.rx_index = s->rx_index,
		.tx_index = s->tx_index,
		.in_off = slot * ARENA_SLOT_LEN + ARENA_HEADROOM + s->in_skew,
		.out_off = slot * ARENA_SLOT_LEN + ARENA_HEADROOM,
		.rx_key = s->rx_key,
		.tx_key = s->tx_key,
		.hdr_len = s->hdr_len,
		.body_len = s->body_len,
		.rx_tag_off = tag_off(s, &a->key[s->rx_key], s->rx_mki_len),
		.tx_tag_off = tag_off(s, &a->key[s->tx_key], s->tx_mki_len),
		.ssrc = (uint32_t)sample_random(&rnd),
		.flags = s->flags,
		.ssrc_change = s->ssrc_change,
		.convert = s->flags & XC_JOB_RTCP || a->key[s->rx_key].cipher == XC_CIPHER_AES_F8
			? 0
			: s->convert,
	};
	packet_write(plain, s, job, &rnd);

	/* The reverse job: from plain to the receiving key. */
	protect = *job;
	protect.in_off = 0;
	protect.out_off = job->in_off;
	protect.rx_key = 0;
	protect.tx_key = job->rx_key;
	protect.tx_index = job->rx_index;
	protect.ssrc_change = protect.convert = 0;
	protect.rx_tag_off = job->hdr_len + job->body_len;
	protect.tx_tag_off = job->rx_tag_off;
	protect.flags =
		(job->flags & XC_JOB_RTCP) | (job->flags & XC_JOB_RX_CLEAR ? XC_JOB_TX_CLEAR : 0);
	memset(a->in + job->in_off, 0,
		sample_len(job, &a->key[s->rx_key], job->rx_tag_off, s->rx_mki_len));
	(void)srtp_ref_job(&protect, a->key, plain, a->in);
}

bool sample_equal(
	const struct xc_job *job, const struct arena *a, const uint8_t *x, const uint8_t *y)
{
	const struct xc_key *k = &a->key[job->tx_key];
	uint32_t len = job->hdr_len + job->body_len;
	uint32_t word = k->auth == XC_AUTH_GCM ? job->tx_tag_off + k->tag_len : len;

	x += job->out_off;
	y += job->out_off;
	if (memcmp(x, y, len) != 0)
		return false;
	if (is_plain(k))
		return true;
	if (job->flags & XC_JOB_RTCP && memcmp(x + word, y + word, 4) != 0)
		return false;
	return memcmp(x + job->tx_tag_off, y + job->tx_tag_off, k->tag_len) == 0;
}
