/* SPDX-License-Identifier: GPL-2.0-or-later */
/* First half of the packet path: classifies, looks up, estimates the index, writes the job. Only
 * reads stream state, because nothing is authenticated yet. Drops as early as possible, before any
 * cipher. RFC 3711 3.3, RFC 7714 8 and 9. Writes only scratch of the burst, and session keys into
 * slots that no authentic packet needs (keys.c). */
#include <assert.h>

#include "media/ahead.h"
#include "media/attack.h"
#include "media/bundle.h"
#include "media/checked.h"
#include "media/copies.h"
#include "media/draft.h"
#include "media/fast_path.h"
#include "media/keys.h"
#include "media/lane.h"
#include "media/leave.h"
#include "media/other.h"
#include "media/prefetch.h"
#include "media/rate.h"
#include "media/rename.h"
#include "media/roc.h"
#include "media/side.h"
#include "media/source.h"
#include "media/ssrc.h"
#include "media/tags.h"
#include "packet/arena.h"

/* --- Route ------------------------------------------------------------------------------------ */

/* Receives a packet that cannot be forwarded. A terminal may send while on hold, and its index must
 * be tracked: three minutes of G.711 are half a cycle of sequence numbers. Its source is learned
 * too, so that a stranger is not learned first when the other side joins. */
static uint8_t receive_only(struct draft *d, enum packet_verdict why)
{
	d->tx = NULL;
	d->note->to = MEDIA_NONE;
	d->note->why = (uint8_t)why;
	return PACKET_JOB;
}

static uint8_t hold_back(struct draft *d, enum packet_verdict why)
{
	if (!d->rx->rx.set)
		return draft_drop(d, why);
	/* With listeners, the packet counts as forwarded. */
	return receive_only(d, d->copies && why == PACKET_DROP_INACTIVE ? PACKET_JOB : why);
}

/* Stops the packet itself; silence replaces it. */
static uint8_t quieten(struct draft *d)
{
	/* Passed-through media is under the terminals' keys: silence cannot be encrypted. */
	if (d->rx->rx.pass)
		return receive_only(d, d->copies ? PACKET_JOB : PACKET_DROP_BLOCKED);
	d->quiet_to = d->note->to;
	return receive_only(d, PACKET_JOB);
}

/* Some terminals send RTCP to the RTP port without rtcp-mux. Only types 200 to 207 are RTCP there
 * (RFC 3550 12.1, RFC 4585, RFC 3611): without rtcp-mux, payload types 64 to 95 with marker are RTP
 * (RFC 5761 4). */
static bool is_rtcp(const struct media_stream_cfg *cfg, const uint8_t *p, enum pkt_kind kind)
{
	return kind == PKT_RTCP && (cfg->rtcp || !cfg->rtp || (p[1] >= 200 && p[1] <= 207));
}

/* With ICE the terminal may send on each valid pair (RFC 8445 12.1). So authenticated media are
 * accepted from all sources of authentic checks, and from no other. */
static bool is_source(const struct draft *d, uint32_t stream)
{
	const struct media_stream *s = &d->m->stream[stream];
	const struct endpoint *src = &d->in[d->at].src;
	bool proves = media_proves(&d->rx->rx, d->rtcp);

	if (!s->cfg.serves &&
		learn_accepts(&s->learn, &d->m->trial[stream].learn, &s->cfg, src, proves))
		return true;
	return (proves || !d->rx->rx.set) && media_checked(d->m, stream, src);
}

static uint8_t route(struct draft *d)
{
	struct media *m = d->m;
	const struct packet_in *in = &d->in[d->at];
	enum pkt_kind kind = pkt_classify(d->p, d->len);
	uint32_t stream = m->in_stream[d->at];
	const struct media_stream *s;
	enum gate gate = OPEN;
	enum packet_verdict belief;

	if (stream == MEDIA_NONE) {
		/* Possibly another program's: pass it to the ordinary socket. */
		media_count(&m->drops[PACKET_DROP_UNKNOWN_PORT], 1);
		return PACKET_PASS;
	}
	d->note->stream = stream;
	s = &m->stream[stream];
	if (d->len > ARENA_MAX_PACKET)
		return draft_drop(d, PACKET_DROP_TOO_LONG);
	if (s->cfg.via)
		return draft_drop(d, PACKET_DROP_BUNDLE);
	d->rtcp = is_rtcp(&s->cfg, d->p, kind);
	if (kind > PKT_RTCP || s->cfg.raw || (!d->rtcp && !s->cfg.rtp))
		return media_side_wants(m, stream, kind)
			? media_side(m, d->a, in, stream, kind)
			: media_other(m, in, stream, kind, d->note, d->job);
	/* Its listener has played on, and later packets would wait for it. */
	if (in->t_ns < m->shed_before_ns[s->cfg.emergency])
		return draft_drop(d,
			s->cfg.emergency ? PACKET_DROP_OVERLOAD_EMERGENCY : PACKET_DROP_OVERLOAD);
	if (s->guarded && !d->rtcp && media_attack_refuses(m, d->a, stream, in, d->p, d->len))
		return draft_drop(d, PACKET_DROP_GUARD);
	d->rx = d->note->rx = &m->ctx[s->cfg.ctx];
	if (!is_source(d, stream))
		return draft_drop(d, PACKET_DROP_SOURCE);
	belief = media_believe(m, s, in);
	if (belief != PACKET_JOB)
		return draft_drop(d, belief);
	if ((!d->rx->rx.set || d->rx->rx.coming) && media_ahead_keep(m, d->a, in, stream))
		return PACKET_SIDE;
	if (d->rx->rx.coming) /* it would be noise */
		return draft_drop(d, PACKET_DROP_INACTIVE);
	if (s->cfg.serves && m->stream[s->cfg.serves - 1].set) {
		stream = m->in_stream[d->at] = d->note->stream = s->cfg.serves - 1;
		s = &m->stream[stream];
	}
	if (s->listed) {
		uint32_t line = s->cfg.bundle ? media_bundle_find(m, stream, d->p, d->len, d->rtcp)
					      : stream;

		if (line == MEDIA_NONE)
			return draft_drop(d, PACKET_DROP_BUNDLE);
		d->note->stream = line;
		d->note->bundle = d->rtcp;
		s = &m->stream[line];
	}
	if (media_rate_refuses(m, d->note->stream, in->t_ns))
		return draft_drop(d, PACKET_DROP_RATE);
	/* Its session applies the gates. */
	if (s->cfg.audio && d->rx->rx.set && !d->rx->rx.pass) {
		d->copies = m->doublers && !s->cfg.listener ? s->cfg.copy[d->rtcp] : 0;
		return receive_only(d, PACKET_AUDIO);
	}
	/* Plain RTP is also received, so that a call with blocked media does not look silent. */
	if (s->cfg.gate && d->rx->rx.set) {
		if (media_gate_of(d, &s->cfg, s->cfg.gate) == SHUT)
			return receive_only(d, PACKET_DROP_BLOCKED);
		gate = media_gate_to(d, &s->cfg, s->cfg.gate);
	}
	d->copies = m->doublers && d->rx->rx.set && !s->cfg.listener ? s->cfg.copy[d->rtcp] : 0;
	if (gate == SHUT)
		return receive_only(d, d->copies ? PACKET_JOB : PACKET_DROP_BLOCKED);
	d->note->to = d->rtcp ? s->cfg.rtcp_to : s->cfg.rtp_to;
	if (d->note->to == MEDIA_NONE || !m->stream[d->note->to].set || !d->rx->rx.set)
		return hold_back(d, PACKET_DROP_INACTIVE);
	d->tx = d->note->tx = &m->ctx[m->stream[d->note->to].cfg.ctx];
	if (!d->tx->tx.set)
		return hold_back(d, PACKET_DROP_INACTIVE);
	/* Passed-through packets go only to passed-through sides, and others never do. With forks,
	 * packets of the other kind may still arrive. */
	if (d->rx->rx.pass != d->tx->tx.pass)
		return hold_back(d, PACKET_DROP_INACTIVE);
	if (d->tx->tx.srtp) {
		d->note->tx_key = d->tx->tx.slot;
		if (media_key_spent(m, &d->tx->tx, d->note->tx_key))
			return hold_back(d, PACKET_DROP_LIFETIME);
	}
	return gate == QUIET ? quieten(d) : PACKET_JOB;
}

/* --- Receiving -------------------------------------------------------------------------------- */

/* Finds the master key by the MKI (RFC 3711 8.1). The MKI is public, so the comparison need not
 * take constant time. */
static bool rx_key(struct draft *d, const uint8_t *mki)
{
	const struct media_crypto *c;

	d->note->rx_key = d->rx->rx.slot;
	if (!d->rx->rx.choose)
		return true;
	c = &d->rx->cfg->rx; /* read late: it costs one more cache line */
	for (uint32_t i = 0; i < c->keys; i++)
		if (srtp_mki_is(mki, c->key[i].mki, c->mki_len)) {
			d->note->rx_key = c->key[i].slot;
			return true;
		}
	return false;
}

static struct media_tail rx_tail(const struct draft *d)
{
	return d->rtcp ? d->rx->rtcp_tail[false] : d->rx->rx.tail;
}

/* Header, body and tail of the received packet. */
static uint8_t measure(struct draft *d, struct media_tail t)
{
	struct xc_job *j = d->job;
	struct rtcp_hdr rtcp;
	struct rtp_hdr rtp;
	uint32_t end;
	int hdr = d->rtcp ? rtcp_parse(&rtcp, d->p, d->len) : rtp_parse(&rtp, d->p, d->len);

	if (hdr < 0 || (uint32_t)hdr + t.len > d->len)
		return PACKET_DROP_MALFORMED;
	end = d->len - t.len; /* of the body; no underflow: checked above */
	j->hdr_len = (uint32_t)hdr;
	j->body_len = end - (uint32_t)hdr;
	j->rx_tag_off = end + t.tag;
	j->ssrc = d->rtcp ? rtcp.ssrc : rtp.ssrc;
	d->seq = d->rtcp ? 0 : rtp.seq;
	return PACKET_JOB;
}

/* Reads what only SRTP has: the key, the E flag, the SRTCP index. */
static uint8_t measure_srtp(struct draft *d)
{
	const struct media_way *c = &d->rx->rx;
	struct media_tail t = rx_tail(d);
	struct xc_job *j = d->job;
	uint32_t end = j->hdr_len + j->body_len;

	if (!rx_key(d, d->p + end + t.mki))
		return PACKET_DROP_WRONG_MKI;
	if (!d->rtcp && c->clear)
		j->flags |= XC_JOB_RX_CLEAR;
	if (d->rtcp) {
		uint32_t word = be32(d->p + end + t.word);

		j->rx_index = word & SRTCP_INDEX_MAX;
		if (!(word >> 31))
			j->flags |= XC_JOB_RX_CLEAR;
	}
	return PACKET_JOB;
}

/* Of SRTP+: a wrong tag ends the packet here, before any hash. */
static uint8_t received(struct draft *d)
{
	bool tagged = d->rx->rx.tagged && !d->rtcp;
	uint8_t v;

	if (tagged && d->rx->rx.wary &&
		media_tag_check(d->m, d->a, d->rx, d->p, d->len) == PREAUTH_FORGED) {
		media_tag_wake(d->m, d->a, d->note->rx);
		media_attack_forged(d->m, d->note->stream, &d->in[d->at]);
		return draft_drop(d, PACKET_DROP_FORGED);
	}
	v = measure(d, rx_tail(d));
	if (tagged && v == PACKET_JOB && d->job->body_len < media_block_len(&d->rx->rx))
		v = PACKET_DROP_MALFORMED;
	v = v == PACKET_JOB && d->rx->rx.srtp ? measure_srtp(d) : v;
	return v == PACKET_JOB ? v : draft_drop(d, (enum packet_verdict)v);
}

/* A packet that is too old for the window may be more than half a cycle ahead instead. */
static bool is_a_cycle_ahead(struct draft *d, const struct ssrc_state *s)
{
	struct xc_job *j = d->job;
	struct xc_job trial = *j;

	if (d->rtcp || !s || replay_check(&s->seen, j->rx_index) != REPLAY_OLD)
		return false;
	trial.tx_key = 0; /* only the index is used: the engine handles the rest */
	if (!media_roc_find(d->m, d->a, d->note, &d->in[d->at], &trial))
		return false;
	j->rx_index = trial.rx_index;
	return true;
}

static uint8_t rx_index(struct draft *d)
{
	const struct ssrc_state *s;
	struct xc_job *j = d->job;
	int table = d->rtcp ? RX_RTCP : RX_RTP;

	j->rx_key = d->rtcp;
	if (!d->rx->rx.srtp)
		return PACKET_JOB; /* plain RTP cannot be authenticated */
	if (media_key_spent(d->m, &d->rx->rx, d->note->rx_key))
		(void)hold_back(d, PACKET_DROP_LIFETIME);
	s = media_ssrc_find(d->rx, table, j->ssrc);
	if (!d->rtcp)
		j->rx_index = media_ssrc_index(d->m, d->rx, table, s,
			&(struct media_arrival){j->ssrc, d->seq, &d->in[d->at].src});
	if (j->rx_index > SRTP_INDEX_MAX)
		return draft_drop(d, PACKET_DROP_INDEX_END);
	if ((s ? !media_ssrc_new(s, j->rx_index)
	       : media_ssrc_past_has(d->m, d->rx, table, j->ssrc, j->rx_index)) &&
		!is_a_cycle_ahead(d, s))
		return draft_drop(d, PACKET_DROP_REPLAY);
	return draft_slot(d, &d->rx->rx, d->note->rx_key, j->rx_index, &j->rx_key);
}

/* Forwards the packet unchanged. Also works out how to decrypt it: re-encryption can then start at
 * any packet, and recordings and listeners need it. */
static uint8_t pass_through(struct draft *d)
{
	static const struct media_tail none;
	struct draft o = *d;
	struct xc_job *open = media_open(d->m, d->note), *j = d->job;
	const struct ssrc_state *s;
	uint8_t v;

	*open = *j;
	open->rx_key = MEDIA_NONE;
	o.job = open;
	d->note->passed = true;
	if (d->rx->rx.srtp && measure(&o, rx_tail(d)) == PACKET_JOB &&
		measure_srtp(&o) == PACKET_JOB) {
		s = media_ssrc_find(d->rx, RX_RTP, open->ssrc);
		if (!d->rtcp)
			open->rx_index = media_ssrc_index(d->m, d->rx, RX_RTP, s,
				&(struct media_arrival){open->ssrc, o.seq, &d->in[d->at].src});
		d->note->opened = open->rx_index <= SRTP_INDEX_MAX;
	}
	v = measure(d, none);
	j->rx_key = d->rtcp;
	return v == PACKET_JOB ? v : draft_drop(d, (enum packet_verdict)v);
}

/* Finds the session keys if the packet must be decrypted and its keys are available. */
static void open_keys(struct draft *d)
{
	struct xc_job *open = media_open(d->m, d->note);

	if (d->note->opened && (d->copies || d->m->stream[d->note->stream].cfg.tap))
		open->rx_key = media_key_slot(d->m, d->a, &d->rx->rx, d->note->rx_key,
			(struct media_key_use){open->rx_index, d->in[d->at].t_ns, d->rtcp});
}

/* A plain source after a restart: renames the SSRC in the packet before anything reads it. */
static void rename_source(struct draft *d)
{
	uint64_t key = d->rx->cfg->rename;
	uint8_t *p = d->a->in + d->in[d->at].in_off;

	if (d->rtcp)
		media_rename_rtcp(key, p, d->len, true);
	else
		put_be32(p + 8, media_rename(key, be32(p + 8)));
	d->job->ssrc = be32(p + (d->rtcp ? 4 : 8));
}

/* --- The burst -------------------------------------------------------------------------------- */

/* Whether to authenticate a packet before anything else is done, so that a forged one costs nothing
 * else. RTCP has no guard, and little of it is sent, so all of it is authenticated first. */
static bool is_doubtful(const struct draft *d)
{
	const struct media_stream *s = &d->m->stream[d->note->stream];

	return d->rtcp || s->guarded || s->suspected;
}

static uint8_t prepare(struct draft *d)
{
	const struct packet_in *in = &d->in[d->at];
	uint8_t v = route(d);

	if (v != PACKET_JOB || d->note->other)
		return v;
	*d->job = (struct xc_job){
		.in_off = in->in_off,
		.out_off = in->slot * ARENA_SLOT_LEN + ARENA_HEADROOM,
		.flags = (d->rtcp ? XC_JOB_RTCP : 0) | (is_doubtful(d) ? XC_JOB_DOUBT : 0),
	};
	if (d->rx->rx.pass) {
		v = pass_through(d);
		open_keys(d);
	} else {
		v = received(d);
		if (v == PACKET_JOB && d->rx->rx.rename && !d->rx->rx.srtp)
			rename_source(d);
		v = v == PACKET_JOB ? rx_index(d) : v;
		if (v == PACKET_JOB && d->m->stream[d->note->stream].cfg.convert)
			media_leave_convert(d);
	}
	return v == PACKET_JOB ? media_leave(d) : v;
}

void media_shed(struct media *m, uint64_t ordinary_before_ns, uint64_t emergency_before_ns)
{
	m->shed_before_ns[false] = ordinary_before_ns;
	m->shed_before_ns[true] = emergency_before_ns;
}

struct burst {
	struct media *m;
	const struct arena *a;
	struct packet_in *in;
	struct xc_job *job;
	uint32_t n, jobs; /* packets, and jobs so far */
};

/* Prepares packet i of the burst by the slow path. left: packets that are prepared after it. */
static void prepare_slow(struct burst *b, uint32_t i, uint32_t left)
{
	struct packet_in *in = &b->in[i];
	uint32_t own = b->jobs, end = b->m->cfg.burst_max - left;
	struct draft d = {.m = b->m,
		.a = b->a,
		.in = b->in,
		.at = i,
		.p = b->a->in + in->in_off,
		.len = in->len,
		.quiet_to = MEDIA_NONE,
		.note = &b->m->note[own],
		.job = &b->job[own]};

	*d.note = (struct note){
		.in = i, .stream = MEDIA_NONE, .why = PACKET_SENT, .copy_of = MEDIA_NONE};
	in->verdict = prepare(&d);
	if (in->verdict != PACKET_JOB)
		return;
	b->jobs++;
	/* Copies must leave enough jobs for the burst's own packets. */
	if (d.copies || d.quiet_to != MEDIA_NONE)
		b->jobs += media_copies(&d, b->job, b->jobs, end);
	if (d.note->bundle)
		b->jobs += media_bundle_copies(&d, b->job, own, b->jobs, end);
}

/* Prepares packets of converted streams, and those without a fast path. */
static void prepare_other(struct burst *b, uint32_t i, uint32_t left)
{
	if (!media_fast_convert(b->m, b->a, b->in, i, &b->m->note[b->jobs], &b->job[b->jobs])) {
		prepare_slow(b, i, left);
		return;
	}
	b->in[i].verdict = PACKET_JOB;
	b->jobs++;
}

/* For workers without SRTP+ tags. */
static inline void prepare_one(struct burst *b, uint32_t i, uint32_t left)
{
	if (!media_fast(b->m, b->a, b->in, i, &b->m->note[b->jobs], &b->job[b->jobs])) {
		prepare_other(b, i, left);
		return;
	}
	b->in[i].verdict = PACKET_JOB;
	b->jobs++;
}

/* For workers with SRTP+ tags in some contexts. */
static inline void prepare_tagged(struct burst *b, uint32_t i, uint32_t left)
{
	switch (media_fast_tagged(b->m, b->a, b->in, i, &b->m->note[b->jobs], &b->job[b->jobs])) {
	case MEDIA_FAST_YES:
		b->in[i].verdict = PACKET_JOB;
		b->jobs++;
		break;
	case MEDIA_FAST_FORGED:
		media_tag_wake(b->m, b->a, &b->m->ctx[b->m->stream[b->m->in_stream[i]].cfg.ctx]);
		media_attack_forged(b->m, b->m->in_stream[i], &b->in[i]);
		b->in[i].verdict = media_drop(b->m, b->m->in_stream[i], PACKET_DROP_FORGED);
		break;
	case MEDIA_FAST_NO:
		prepare_other(b, i, left);
	}
}

static bool suspect(const struct media *m, struct local_port local)
{
	const uint32_t *cell = media_port_cell(m, local);
	uint32_t stream = cell ? *cell : MEDIA_NONE;

	return stream != MEDIA_NONE && (m->stream[stream].guarded || m->stream[stream].suspected);
}

#define LATER UINT8_MAX /* a verdict that no packet has */
_Static_assert(PACKET_VERDICTS <= LATER, "not a verdict");

/* A burst while a stream is under attack or suspected: packets of such streams go last. Order
 * within each stream remains. These packets are marked first, because a forged one may begin or end
 * a guard here. */
static void prepare_guarded(struct burst *b)
{
	uint32_t left = b->n;

	for (uint32_t i = 0; i < b->n; i++)
		b->in[i].verdict = suspect(b->m, b->in[i].local) ? LATER : PACKET_JOB;
	for (uint32_t i = 0; i < b->n; i++) {
		media_prefetch(b->m, b->in, b->n, i);
		if (b->in[i].verdict != LATER)
			prepare_tagged(b, i, --left);
	}
	for (uint32_t i = 0; i < b->n; i++)
		if (b->in[i].verdict == LATER)
			prepare_slow(b, i, --left);
}

uint32_t media_prepare(struct media *m, const struct arena *a, struct packet_in *in, uint32_t n,
	struct xc_job *job)
{
	struct burst b = {.m = m, .a = a, .in = in, .job = job, .n = n};

	assert(n <= m->cfg.burst_max);
	assert(m->burst - m->done < m->bursts);
	media_lane_use(m, ++m->burst);
	media_slots_begin(m, in, n);
	media_prefetch_begin(m, in, n);
	if (n && __builtin_expect(media_attack_suspects(m, in[0].t_ns), 0)) {
		prepare_guarded(&b);
		return b.jobs;
	}
	for (uint32_t i = 0; i < n && m->taggers; i++) {
		media_prefetch(m, in, n, i);
		media_prefetch_tags(m, n, i);
		prepare_tagged(&b, i, n - i - 1);
	}
	for (uint32_t i = 0; i < n && !m->taggers; i++) {
		media_prefetch(m, in, n, i);
		prepare_one(&b, i, n - i - 1);
	}
	return b.jobs;
}
