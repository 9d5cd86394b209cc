/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The sending part of a job, for prepare.c and copies.c: index, key, and position of the tag. Reads
 * state only. Decides whether the engine encrypts, or complete.c after it changed the packet
 * (rewrite.h). RFC 3711 3.3, RFC 7714 8 and 9. */
#include "media/leave.h"

#include "media/bundle.h"
#include "media/draft.h"
#include "media/keys.h"
#include "media/rename.h"
#include "media/ssrc.h"
#include "media/tags.h"
#include "packet/arena.h"

enum { PLAIN_RTCP = 1 }; /* key slot */

/* Each terminal has its own roll-over counter, which continues when the other side changes its
 * key. */
static uint8_t tx_rtp_index(struct draft *d)
{
	uint32_t ssrc = media_sent_ssrc(d->job);
	const struct ssrc_state *s = media_ssrc_find(d->tx, TX_RTP, ssrc);
	const struct packet_in *in = &d->in[d->at];
	struct media *m = d->m;

	if (!s &&
		media_ssrc_refused(m, d->tx, ssrc,
			media_ssrc_may_turn(m, d->note, m->in_stream[d->at], &in->src), in->t_ns))
		return draft_drop(d, PACKET_DROP_SSRC_LIMIT);
	d->job->tx_index = media_ssrc_index(
		m, d->tx, TX_RTP, s, &(struct media_arrival){ssrc, d->seq, &d->in[d->at].src});
	if (d->job->tx_index > SRTP_INDEX_MAX)
		return draft_drop(d, PACKET_DROP_INDEX_END);
	if (ssrc == d->tx->cfg->own_ssrc && ssrc &&
		!(d->note->ours &&
			ceiling_allows(&d->tx->cfg->ceiling, d->job->tx_index, m->now_ns)))
		return draft_drop(d, PACKET_DROP_NONCE);
	if (s ? !media_ssrc_new(s, d->job->tx_index)
	      : media_ssrc_past_has(m, d->tx, TX_RTP, ssrc, d->job->tx_index))
		return draft_drop(d, PACKET_DROP_NONCE);
	return draft_slot(d, &d->tx->tx, d->note->tx_key, d->job->tx_index, &d->job->tx_key);
}

/* Gives each RTCP job of a context a different index, across this burst and those in flight. Writes
 * scratch only. An unused index is free again once nothing of the context is in flight, or when too
 * many are taken (forgeries). In the worst case complete finds the index already used. */
static uint8_t tx_rtcp_index(struct draft *d)
{
	const struct media *m = d->m;
	struct media_ctx *scratch = &d->m->ctx[d->tx - m->ctx];
	uint64_t next = d->tx->tx_rtcp_next;
	bool valid = scratch->scratch_burst > m->done && scratch->scratch_burst > d->tx->changed &&
		scratch->scratch_rtcp > next &&
		scratch->scratch_rtcp - next < (uint64_t)m->bursts * m->cfg.burst_max;
	uint8_t v;

	d->job->tx_index = valid ? scratch->scratch_rtcp : next;
	if (d->job->tx_index > SRTCP_INDEX_MAX)
		return draft_drop(d, PACKET_DROP_INDEX_END);
	if (d->tx->cfg->rtcp_from_ns &&
		d->job->tx_index > media_rtcp_ceiling(d->tx->cfg->rtcp_from_ns, d->in[d->at].t_ns))
		return draft_drop(d, PACKET_DROP_RTCP_RATE);
	v = draft_slot(d, &d->tx->tx, d->note->tx_key, d->job->tx_index, &d->job->tx_key);
	if (v == PACKET_JOB) {
		scratch->scratch_burst = m->burst;
		scratch->scratch_rtcp = d->job->tx_index + 1;
	}
	return v;
}

/* After a restart, SRTP is sent under new SSRCs only. prepare.c did this for plain sources. */
static uint32_t ssrc_change(const struct draft *d, const struct media_ctx *tx)
{
	uint32_t ssrc = d->job->ssrc;
	struct media_ctx *c;

	if (!tx->tx.srtp || !tx->tx.rename || !d->rx->rx.srtp || d->rtcp)
		return 0;
	c = &d->m->ctx[tx - d->m->ctx];
	if (c->scratch_name.ssrc != ssrc || !c->scratch_name.change) {
		c->scratch_name.ssrc = ssrc;
		c->scratch_name.change = ssrc ^ media_rename(tx->cfg->rename, ssrc);
	}
	return c->scratch_name.change;
}

/* SRTCP whose encrypted body must be read or changed: renamed SSRCs, feedback to remove, SSRCs to
 * read. The engine only decrypts; complete.c encrypts. */
static uint8_t leave_rtcp(struct draft *d)
{
	uint8_t v = tx_rtcp_index(d);
	bool renames = d->tx->tx.rename && d->rx->rx.srtp;

	if (v == PACKET_JOB &&
		(renames || d->note->bundle || d->m->stream[d->note->stream].cfg.no_feedback)) {
		d->note->late_key = d->job->tx_key;
		d->job->tx_key = PLAIN_RTCP;
	}
	return v;
}

static bool has_block(const struct draft *d)
{
	return d->rx->rx.chains || (d->tx && d->tx->tx.chains);
}

/* The engine converts between its two ciphers. It does not know how much of an encrypted packet is
 * padding or a block of SRTP+, and applies F8 last. Of such packets it only decrypts. */
void media_leave_convert(struct draft *d)
{
	const struct media_stream_cfg *cfg = &d->m->stream[d->note->stream].cfg;
	uint32_t how = d->rtcp ? 0 : media_convert(cfg->convert, d->p[1] & 0x7f);

	if (d->p[0] & RTP_P_BIT || d->rx->rx.f8 || has_block(d))
		d->note->convert = how;
	else
		d->job->convert = how;
}

/* RTP to a terminal that may need the MID. The header must not change before it is
 * authenticated, so the engine only decrypts. A packet without room for the MID is sent without
 * it. */
static void leave_with_mid(struct draft *d, uint32_t end)
{
	struct xc_job *j = d->job;
	const uint8_t *p = d->a->in + j->in_off;
	uint32_t block = has_block(d) ? PREAUTH_BLOCK_MAX : 0;

	if (end + MEDIA_MID_GROWTH + block > ARENA_MAX_PACKET ||
		!media_bundle_wants_mid(
			d->m, d->note, media_sent_ssrc(j), p, j->hdr_len + j->body_len))
		return;
	d->note->mid = true;
	d->note->late_key = j->tx_key;
	j->tx_key = 0;
}

/* SRTP+ chain: a block is removed from the end of the payload, or appended, so the engine only
 * decrypts. */
static uint8_t leave_with_block(struct draft *d, uint32_t end)
{
	struct xc_job *j = d->job;

	if (end + PREAUTH_BLOCK_MAX > ARENA_MAX_PACKET)
		return draft_drop(d, PACKET_DROP_TOO_LONG);
	d->note->block = true;
	if (!d->note->late_key) {
		d->note->late_key = j->tx_key;
		j->tx_key = 0;
	}
	return PACKET_JOB;
}

uint8_t media_leave(struct draft *d)
{
	static const struct media_ctx plain;
	const struct media_ctx *tx = d->tx ? d->tx : &plain;
	struct media_tail t = d->rtcp ? tx->rtcp_tail[true] : tx->tx.tail;
	struct xc_job *j = d->job;
	uint32_t end = j->hdr_len + j->body_len;
	uint8_t v = PACKET_JOB;

	if (end + t.len > ARENA_MAX_PACKET)
		return draft_drop(d, PACKET_DROP_TOO_LONG);
	j->tx_tag_off = end + t.tag;
	j->tx_key = d->rtcp;
	d->note->late_key = 0;
	d->note->block = false;
	j->ssrc_change = ssrc_change(d, tx);
	if (tx->tx.srtp) {
		if (tx->tx.clear >> d->rtcp & 1)
			j->flags |= XC_JOB_TX_CLEAR;
		v = d->rtcp ? leave_rtcp(d) : tx_rtp_index(d);
	}
	if (d->tx && !d->rtcp && v == PACKET_JOB && d->m->stream[d->note->stream].cfg.mids)
		leave_with_mid(d, end + t.len);
	if (d->note->convert && !d->note->mid) {
		d->note->late_key = j->tx_key;
		j->tx_key = 0;
	}
	if (v == PACKET_JOB && !d->rtcp && has_block(d))
		v = leave_with_block(d, end + t.len);
	return v;
}
