/* SPDX-License-Identifier: GPL-2.0-or-later */
/* First half of the packet's way: classify, look up, estimate, write the job. Reads stream state, never changes it: at this point
 * nothing has authenticated. What can be refused cheaply is refused here, before any cipher. RFC 3711 3.3, RFC 7714 8 and 9. */
#include <assert.h>

#include "layout.h"
#include "media/int.h"
#include "proto/rtp.h"

/* One packet on its way to becoming a job. */
struct draft {
	struct media *m;
	const uint8_t *p; /* the packet */
	uint32_t len;
	uint32_t stream, to; /* handles */
	const struct media_ctx *rx, *tx;
	bool rtcp;
	uint16_t seq;
	struct xc_job *job;
};

/* --- Which way? ----------------------------------------------------------------------------------------------- */

static uint8_t route(struct draft *d, const struct media_in *in)
{
	struct media *m = d->m;
	const uint32_t *cell = media_port_cell(m, in->local);
	enum pkt_kind kind = pkt_classify(d->p, d->len);
	const struct media_stream *s;

	if (!cell || *cell == MEDIA_NONE) {
		/* Not ours (yet): whoever has the ordinary socket may want it. */
		media_count(&m->drops[MEDIA_DROP_UNKNOWN_PORT], 1);
		return MEDIA_PASS;
	}
	d->stream = *cell;
	s = &m->stream[d->stream];
	if (d->len > ARENA_MAX_PACKET)
		return media_drop(m, d->stream, MEDIA_DROP_TOO_LONG);
	if (kind == PKT_STUN || kind == PKT_DTLS) {
		media_count(&m->drops[MEDIA_DROP_NOT_MEDIA], 1);
		return MEDIA_PASS;
	}
	d->rtcp = kind == PKT_RTCP;
	if (kind == PKT_OTHER || (d->rtcp ? !s->cfg.rtcp : !s->cfg.rtp))
		return media_drop(m, d->stream, MEDIA_DROP_MALFORMED);
	d->to = d->rtcp ? s->cfg.rtcp_to : s->cfg.rtp_to;
	if (d->to == MEDIA_NONE || !m->stream[d->to].set)
		return media_drop(m, d->stream, MEDIA_DROP_INACTIVE);
	d->rx = &m->ctx[s->cfg.ctx];
	d->tx = &m->ctx[m->stream[d->to].cfg.ctx];
	if (!d->rx->set || !d->tx->set)
		return media_drop(m, d->stream, MEDIA_DROP_INACTIVE);
	if (!learn_accepts(&s->learn, &s->cfg, &in->src))
		return media_drop(m, d->stream, MEDIA_DROP_SOURCE);
	return MEDIA_JOB;
}

/* --- What came in --------------------------------------------------------------------------------------------- */

/* Which of the master keys: the MKI says it (RFC 3711 8.1). It is public: an ordinary comparison will do. */
static bool rx_key(struct draft *d, const uint8_t *mki)
{
	const struct media_crypto *c = &d->rx->cfg.rx;

	for (uint32_t i = 0; i < c->keys; i++)
		if (c->mki_len == 0 || memcmp(mki, c->key[i].mki, c->mki_len) == 0) {
			d->job->rx_key = c->key[i].slot + d->rtcp;
			return true;
		}
	return false;
}

/* Header, body and tail of the received packet. */
static uint8_t measure(struct draft *d)
{
	const struct media_crypto *c = &d->rx->cfg.rx;
	struct media_tail t = media_tail(c, d->rtcp);
	struct xc_job *j = d->job;
	struct rtcp_hdr rtcp;
	struct rtp_hdr rtp;
	uint32_t end;
	int hdr = d->rtcp ? rtcp_parse(&rtcp, d->p, d->len) : rtp_parse(&rtp, d->p, d->len);

	if (hdr < 0 || (uint32_t)hdr + t.len > d->len)
		return media_drop(d->m, d->stream, MEDIA_DROP_MALFORMED);
	end = d->len - t.len; /* of the body; no underflow: checked above */
	j->hdr_len = (uint32_t)hdr;
	j->body_len = end - (uint32_t)hdr;
	j->rx_tag_off = end + t.tag;
	j->ssrc = d->rtcp ? rtcp.ssrc : rtp.ssrc;
	d->seq = d->rtcp ? 0 : rtp.seq;
	if (media_is_srtp(c) && !rx_key(d, d->p + end + t.mki))
		return media_drop(d->m, d->stream, MEDIA_DROP_WRONG_MKI);
	if (!d->rtcp && c->clear_rtp)
		j->flags |= XC_JOB_RX_CLEAR;
	if (d->rtcp && media_is_srtp(c)) {
		uint32_t word = be32(d->p + end + t.word);

		j->rx_index = word & SRTCP_INDEX_MAX;
		if (!(word >> 31))
			j->flags |= XC_JOB_RX_CLEAR;
	}
	return MEDIA_JOB;
}

static uint8_t rx_index(struct draft *d)
{
	const struct ssrc_state *s;
	struct xc_job *j = d->job;

	if (!media_is_srtp(&d->rx->cfg.rx))
		return MEDIA_JOB; /* plain RTP has nothing to be authentic by */
	s = media_ssrc_find(d->rtcp ? d->rx->rx_rtcp : d->rx->rx_rtp, j->ssrc);
	if (!d->rtcp)
		j->rx_index = s ? replay_estimate(&s->seen, d->seq) : d->seq;
	if (j->rx_index > SRTP_INDEX_MAX)
		return media_drop(d->m, d->stream, MEDIA_DROP_INDEX_END);
	if (s && replay_check(&s->seen, j->rx_index) != REPLAY_NEW)
		return media_drop(d->m, d->stream, MEDIA_DROP_REPLAY);
	return MEDIA_JOB;
}

/* --- What leaves ------------------------------------------------------------------------------------------------ */

/* The roll-over counter toward a terminal is its own: it goes on when the other side changes its key. */
static uint8_t tx_rtp_index(struct draft *d)
{
	const struct ssrc_state *s = media_ssrc_find(d->tx->tx_rtp, d->job->ssrc);

	if (!s && media_ssrc_refused(d->tx->tx_rtp, d->job->ssrc))
		return media_drop(d->m, d->stream, MEDIA_DROP_SSRC_LIMIT);
	d->job->tx_index = s ? replay_estimate(&s->seen, d->seq) : d->seq;
	if (d->job->tx_index > SRTP_INDEX_MAX)
		return media_drop(d->m, d->stream, MEDIA_DROP_INDEX_END);
	if (s && replay_check(&s->seen, d->job->tx_index) != REPLAY_NEW)
		return media_drop(d->m, d->stream, MEDIA_DROP_NONCE);
	return MEDIA_JOB;
}

/* Numbers the burst's RTCP jobs of one context apart from each other. Only scratch is written: an index that did not leave in
 * this burst is free again in the next. */
static uint8_t tx_rtcp_index(struct draft *d)
{
	struct media_ctx *scratch = &d->m->ctx[d->m->stream[d->to].cfg.ctx];

	if (scratch->scratch_burst != d->m->burst) {
		scratch->scratch_burst = d->m->burst;
		scratch->scratch_rtcp = 0;
	}
	d->job->tx_index = d->tx->tx_rtcp_next + scratch->scratch_rtcp;
	if (d->job->tx_index > SRTCP_INDEX_MAX)
		return media_drop(d->m, d->stream, MEDIA_DROP_INDEX_END);
	scratch->scratch_rtcp++;
	return MEDIA_JOB;
}

static uint8_t leave(struct draft *d)
{
	const struct media_crypto *c = &d->tx->cfg.tx;
	struct media_tail t = media_tail(c, d->rtcp);
	struct xc_job *j = d->job;
	uint32_t end = j->hdr_len + j->body_len;

	if (end + t.len > ARENA_MAX_PACKET)
		return media_drop(d->m, d->stream, MEDIA_DROP_TOO_LONG);
	j->tx_tag_off = end + t.tag;
	if (!media_is_srtp(c))
		return MEDIA_JOB;
	/* A suite without a cipher says so in the E flag. */
	if (d->rtcp ? c->clear_rtcp || srtp_suite_get(c->suite)->cipher == XC_CIPHER_NULL
		    : c->clear_rtp)
		j->flags |= XC_JOB_TX_CLEAR;
	return d->rtcp ? tx_rtcp_index(d) : tx_rtp_index(d);
}

/* --- The burst ---------------------------------------------------------------------------------------------------- */

static uint8_t prepare(struct draft *d, const struct media_in *in)
{
	uint8_t v = route(d, in);

	if (v != MEDIA_JOB)
		return v;
	*d->job = (struct xc_job){
		.in_off = in->in_off,
		.out_off = in->slot * ARENA_SLOT_LEN + ARENA_HEADROOM,
		.rx_key = d->rtcp, /* plain, unless found otherwise */
		.tx_key = d->tx->cfg.tx.key[d->tx->cfg.tx.use].slot + d->rtcp,
		.flags = d->rtcp ? XC_JOB_RTCP : 0,
	};
	v = measure(d);
	v = v == MEDIA_JOB ? rx_index(d) : v;
	return v == MEDIA_JOB ? leave(d) : v;
}

uint32_t media_prepare(
	struct media *m, const struct arena *a, struct media_in *in, uint32_t n, struct xc_job *job)
{
	uint32_t jobs = 0;

	assert(n <= m->cfg.burst_max);
	m->burst++;
	for (uint32_t i = 0; i < n; i++) {
		struct draft d = {.m = m,
			.p = a->in + in[i].in_off,
			.len = in[i].len,
			.stream = MEDIA_NONE,
			.job = &job[jobs]};

		in[i].verdict = prepare(&d, &in[i]);
		if (in[i].verdict != MEDIA_JOB)
			continue;
		m->job_in[jobs] = i;
		m->job_stream[jobs] = d.stream;
		m->job_to[jobs] = d.to;
		jobs++;
	}
	return jobs;
}
