/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Second half of the packet path, and the only writer of stream state. Commits authenticated
 * packets in arrival order. Sends only packets that are new on both sides: of two equal packets in
 * one burst, both authenticate, and the second is dropped here. */
#include <assert.h>

#include "layout.h"
#include "media/again.h"
#include "media/audio.h"
#include "media/attack.h"
#include "media/bundle.h"
#include "media/jump.h"
#include "media/keys.h"
#include "media/lane.h"
#include "media/other.h"
#include "media/prefetch.h"
#include "media/rate.h"
#include "media/rename.h"
#include "media/roc.h"
#include "media/rewrite.h"
#include "media/short_tag.h"
#include "media/source.h"
#include "media/ssrc.h"
#include "media/state.h"
#include "media/tags.h"
#include "packet/arena.h"

static void tell_index(struct media *m, const struct note *n, const struct ssrc_state *s)
{
	atomic_store_explicit(&m->counters[n->stream].index, s->seen.last, memory_order_relaxed);
}

/* Passed through: the packet cannot be authenticated, so it is never dropped. The index only serves
 * later estimates. */
static void follow(
	struct media *m, struct media_ctx *c, const struct note *n, const struct packet_in *in)
{
	const struct xc_job *j = media_open(m, n);
	struct ssrc_state *s;

	if (!n->opened)
		return;
	media_key_count(m, &c->rx, n->rx_key, j->flags & XC_JOB_RTCP);
	if (j->flags & XC_JOB_RTCP)
		return;
	s = media_ssrc_get(m, c, RX_RTP, j->ssrc, false);
	if (!s)
		return;
	if (!s->seen.started)
		replay_expect(&s->seen, j->rx_index);
	else if (media_believable(&m->trial[n->stream].jump[false], s, j->rx_index, in->t_ns) &&
		j->rx_index > s->seen.last)
		s->seen.last = j->rx_index;
	tell_index(m, n, s);
}

static uint8_t rx_commit(struct media *m, struct media_ctx *c, const struct note *n,
	const struct packet_in *in, const struct xc_job *j)
{
	bool rtcp = j->flags & XC_JOB_RTCP, unproved = c->rx.no_rtp_auth && !rtcp;
	struct ssrc_state *s;

	if (n->passed)
		follow(m, c, n, in);
	if (!c->rx.srtp || n->passed)
		return PACKET_SENT;
	/* Unauthenticated packets must not evict another SSRC's state. */
	s = media_ssrc_get(m, c, rtcp ? RX_RTCP : RX_RTP, j->ssrc, !unproved);
	if (!s)
		return PACKET_DROP_SSRC_LIMIT;
	if (!media_ssrc_new(s, j->rx_index))
		return PACKET_DROP_REPLAY;
	if (unproved &&
		!media_believable(&m->trial[n->stream].jump[false], s, j->rx_index, in->t_ns))
		return PACKET_DROP_UNPROVED;
	media_ssrc_add(s, j->rx_index);
	if (!rtcp)
		tell_index(m, n, s);
	/* Follow the index even if the key's lifetime is used up: the next key continues from it.
	 * Checked here in addition to prepare, because this burst may have used up the lifetime. */
	if (media_key_spent(m, &c->rx, n->rx_key))
		return PACKET_DROP_LIFETIME;
	media_key_count(m, &c->rx, n->rx_key, rtcp);
	return PACKET_SENT;
}

/* The sequence number is unchecked so far: for authenticated SRTP, rx_commit() checked it. */
static inline bool tx_unproved(const struct note *n)
{
	return (!n->rx->rx.srtp || n->rx->rx.pass) && !n->ours;
}

/* Sends each (outbound key, SSRC, index) at most once: reused keystream reveals both packets. A
 * plain RTP sender could otherwise cause reuse by repeating a sequence number. */
static uint8_t tx_commit(struct media *m, struct media_ctx *c, const struct note *n,
	const struct packet_in *in, const struct xc_job *j)
{
	bool rtcp = j->flags & XC_JOB_RTCP;
	struct ssrc_state *s;

	if (!c->tx.srtp)
		return PACKET_SENT;
	if (media_key_spent(m, &c->tx, n->tx_key))
		return PACKET_DROP_LIFETIME;
	if (rtcp) {
		if (j->tx_index < c->tx_rtcp_next)
			return PACKET_DROP_NONCE;
		c->tx_rtcp_next = j->tx_index + 1;
	} else {
		s = media_ssrc_send(m, c, media_sent_ssrc(j),
			media_ssrc_may_turn(m, n, m->in_stream[n->in], &in->src), in->t_ns);
		if (!s)
			return PACKET_DROP_SSRC_LIMIT;
		if (!media_ssrc_new(s, j->tx_index))
			return PACKET_DROP_NONCE;
		if (tx_unproved(n) &&
			!media_believable(&m->trial[n->to].jump[true], s, j->tx_index, in->t_ns))
			return PACKET_DROP_UNPROVED;
		media_ssrc_add(s, j->tx_index);
	}
	media_key_count(m, &c->tx, n->tx_key, rtcp);
	return PACKET_SENT;
}

/* limited: of the stream (rate.h). */
static inline void count_received(struct media *m, uint32_t stream, const struct packet_in *in,
	const struct xc_job *j, bool limited)
{
	struct media_stream_counters *c = &m->counters[stream];
	uint64_t number = media_key_load(&c->packets) + 1;

	atomic_store_explicit(&c->packets, number, memory_order_relaxed);
	media_count(&c->bytes, in->len);
	atomic_store_explicit(&c->last_packet_ns, in->t_ns, memory_order_relaxed);
	atomic_store_explicit(&c->ssrc, j->ssrc, memory_order_relaxed);
	if (__builtin_expect(limited || media_rate_looks(number), 0))
		media_rate_came(m, stream, in->t_ns);
}

static bool reachable(const struct endpoint *e)
{
	return e->family && e->port && !endpoint_is_unspecified(e);
}

/* Inserts the MKI into the gap that the engine left. Returns the packet's length. */
static uint32_t finish(const struct arena *a, const struct media_ctx *tx, const struct xc_job *j)
{
	struct media_tail t = j->flags & XC_JOB_RTCP ? tx->rtcp_tail[true] : tx->tx.tail;
	uint32_t end = j->hdr_len + j->body_len - XC_BLOCK_CUT(j->flags) + XC_BLOCK_ADD(j->flags);

	if (tx->tx.choose) {
		const struct media_crypto *c = &tx->cfg->tx;

		srtp_mki_put(a->out + j->out_off + end + t.mki, c->key[c->use].mki, c->mki_len);
	}
	return end + t.len;
}

/* Whether the stream and context that the job was prepared from are unchanged. */
static inline bool fresh(const struct media *m, uint32_t stream)
{
	const struct media_stream *s = &m->stream[stream];

	/* Usually no command ran since. */
	return m->changed < m->done ||
		(s->set && s->changed < m->done && m->ctx[s->cfg.ctx].rx.set &&
			m->ctx[s->cfg.ctx].changed < m->done);
}

static void record(struct media *m, const struct arena *a, const struct note *n,
	const struct packet_in *in, const struct xc_job *j)
{
	uint32_t tap = m->stream[n->stream].cfg.tap;
	struct xc_job said;

	if (!tap || !m->cfg.tap || j->rx_key == MEDIA_NONE)
		return;
	if (XC_JOB_HAS_BLOCK(j->flags) || (n->rx->rx.chains && !(j->flags & XC_JOB_RTCP))) {
		said = *j;
		said.flags &= ~XC_BLOCKS(0x7f, 0x7f);
		said.flags |= XC_BLOCKS(media_block_len(&n->rx->rx), 0);
		j = &said;
	}
	m->cfg.tap(m->cfg.tap_arg, tap, a, in, j);
}

/* Commits a received packet if it is authentic and new. PACKET_SENT: continue. */
static uint8_t receive(struct media *m, const struct arena *a, struct note *n,
	const struct packet_in *in, const struct xc_job *j, uint32_t status)
{
	bool rtcp = j->flags & XC_JOB_RTCP, proved = media_proves(&n->rx->rx, rtcp);
	/* the port's own stream; differs from note->stream in a bundle */
	uint32_t port = m->in_stream[n->in];
	uint8_t v;

	if (status != XC_OK) {
		if (!rtcp) {
			media_tag_wake(m, a, n->rx);
			media_attack_forged(m, n->stream, in);
		}
		return rtcp && fresh(m, n->stream) && media_tag_is_short(m, a, n, in, j)
			? PACKET_DROP_SHORT_TAG
			: PACKET_DROP_BAD_TAG;
	}
	if (!fresh(m, n->stream) || !fresh(m, port) || (n->to != MEDIA_NONE && !fresh(m, n->to)))
		return PACKET_DROP_STALE;
	/* Check the source before any state changes: the packet has no other proof. */
	if (!proved && !media_learn(m, a, port, in, j, false))
		return PACKET_DROP_PROBATION;
	/* Before rx_commit(): a packet that cannot be sent must not evict another SSRC's window. */
	if (n->to != MEDIA_NONE && !rtcp && n->tx->tx.srtp &&
		media_ssrc_refused(m, n->tx, media_sent_ssrc(j),
			media_ssrc_may_turn(m, n, port, &in->src), in->t_ns))
		return PACKET_DROP_SSRC_LIMIT;
	if (m->stream[n->stream].watched &&
		media_came_again(m, n->stream, a->in + in->in_off, in->len, in->t_ns))
		return PACKET_DROP_AGAIN;
	v = rx_commit(m, n->rx, n, in, j);
	if (v != PACKET_SENT)
		return v;
	n->received = true;
	if (n->rx->rx.wary && !rtcp)
		media_tag_take(m, a, n->rx, j, m->stream[n->stream].guarded);
	if (!n->passed)
		media_key_reached(m, a, &n->rx->rx, n->rx_key, rtcp, j->rx_index);
	count_received(m, n->stream, in, j, m->stream[n->stream].limited);
	record(m, a, n, in, n->passed ? media_open(m, n) : j);
	if (m->stream[n->stream].guarded)
		media_attack_true(m, a, n, in, j);
	if (proved)
		(void)media_learn(m, a, port, in, j, true);
	if (proved && !rtcp && m->stream[port].cfg.bundle)
		media_bundle_learn(m, port, n->stream, j->ssrc, j->rx_index);
	if (proved && n->bundle)
		media_bundle_describe(
			m, port, a->out + j->out_off, (size_t)j->hdr_len + j->body_len);
	if (rtcp && proved)
		media_tag_fits(m, a, n);
	return n->why;
}

/* A listener's copy: the packet itself was received before. */
static uint8_t receive_copy(const struct media *m, const struct note *n, uint32_t status)
{
	if (!m->note[n->copy_of].received)
		return PACKET_DROP_STALE;
	return status != XC_OK    ? PACKET_DROP_BAD_TAG
		: fresh(m, n->to) ? PACKET_SENT
				  : PACKET_DROP_STALE;
}

/* What the engine made of a job. */
struct result {
	const struct xc_job *job;
	uint32_t status; /* XC_OK: authentic */
};

/* Verdict for a packet that is not RTP. */
static uint8_t complete_other(struct media *m, const struct arena *a, struct note *n,
	const struct packet_in *in, const struct xc_job *j, struct packet_out *out)
{
	uint8_t v = PACKET_DROP_STALE;

	if (fresh(m, n->stream) && (n->to == MEDIA_NONE || fresh(m, n->to)))
		v = media_other_done(m, a, n, in, j, out);
	return v == PACKET_SENT ? v : media_drop(m, n->stream, v);
}

/* Whether the stream "by" may send it now. */
static uint8_t destination(struct media *m, const struct note *n, uint32_t by, uint64_t now_ns)
{
	const struct media_stream *target = &m->stream[by];

	if (n->copy_of == MEDIA_NONE && !n->ours && m->stream[n->stream].cfg.early &&
		!media_early_turn(m, n->stream, n->to, now_ns))
		return PACKET_DROP_INACTIVE;
	if (target->look && !media_may_leave(m, by, now_ns))
		return PACKET_DROP_NO_DESTINATION;
	return reachable(&target->learn.remote) ? PACKET_SENT : PACKET_DROP_NO_DESTINATION;
}

/* Commits and finishes a packet that may be sent. came: its job as it was prepared. */
static uint8_t leave(struct media *m, const struct arena *a, const struct note *n,
	const struct packet_in *in, const struct xc_job *came, struct packet_out *out)
{
	bool is_copy = n->copy_of != MEDIA_NONE, heard = is_copy && !n->bundle;
	uint32_t by = media_bundle_port(m, n->to); /* stream with the port and destination */
	const struct media_stream *target = &m->stream[by];
	const struct xc_job *j = came;
	struct xc_job changed; /* instead of *j */
	uint8_t v = destination(m, n, by, in->t_ns);

	if (v != PACKET_SENT)
		return v;
	if (j->flags & XC_JOB_RTCP && m->stream[n->stream].cfg.no_feedback && !heard &&
		!n->passed) {
		changed = *j;
		if (!media_cut_feedback(a, n, &changed))
			return PACKET_DROP_FEEDBACK;
		j = &changed;
	}
	v = tx_commit(m, n->tx, n, in, j);
	if (v != PACKET_SENT)
		return v;
	if (n->mid || n->convert || n->block) {
		changed = *j;
		if (!media_rewrite_rtp(m, a, n, &changed))
			return PACKET_DROP_STALE;
		j = &changed;
	} else if (n->late_key) {
		media_rewrite_rtcp(m, a, n, j, heard);
	}
	if (target->listed && !(j->flags & XC_JOB_RTCP))
		media_bundle_sent(m, by, n->to, media_sent_ssrc(j));
	media_key_reached(m, a, &n->tx->tx, n->tx_key, j->flags & XC_JOB_RTCP, j->tx_index);
	if (j->flags & XC_JOB_RTCP && !is_copy && !n->passed && !n->ours &&
		!media_end_to_end(m, n->stream))
		media_rtcp_seen(m, a, n, in, came);
	if (j->flags & XC_JOB_RTCP && n->tx->tx.rename && !n->tx->tx.srtp && !n->ours)
		media_rename_rtcp(
			n->tx->cfg->rename, a->out + j->out_off, j->hdr_len + j->body_len, false);
	*out = (struct packet_out){
		.dst = target->learn.remote,
		.local = target->cfg.local,
		.out_off = j->out_off,
		.len = finish(a, n->tx, j),
		.tos = target->cfg.tos,
		.in = n->in,
	};
	if (n->tx->tx.tagged && !(j->flags & XC_JOB_RTCP))
		media_tag_write(m, a, n->tx, j, out->len);
	return PACKET_SENT;
}

/* A packet of an audio session. */
static uint8_t complete_ours(struct media *m, const struct arena *a, const struct note *n,
	const struct packet_in *in, struct result r, struct packet_out *out)
{
	uint8_t v = r.status != XC_OK ? PACKET_DROP_BAD_TAG
		: !fresh(m, n->to)    ? PACKET_DROP_STALE
				      : leave(m, a, n, in, r.job, out);

	return v == PACKET_SENT ? v : media_drop(m, n->to, v);
}

static uint8_t complete(struct media *m, const struct arena *a, struct note *n,
	struct packet_in *in, struct result r, struct packet_out *out)
{
	const struct xc_job *j = r.job;
	bool is_copy = n->copy_of != MEDIA_NONE;
	struct xc_job found; /* instead of *j */
	uint8_t v;

	if (n->ours)
		return complete_ours(m, a, n, in, r, out);
	if (n->other)
		return r.status == XC_OK ? complete_other(m, a, n, in, j, out)
					 : media_drop(m, n->stream, PACKET_DROP_BAD_TAG);

	if (r.status != XC_OK) {
		found = *j;
		if (fresh(m, n->stream) && media_roc_find(m, a, n, in, &found)) {
			j = &found;
			r.status = XC_OK;
		}
	}
	v = is_copy ? receive_copy(m, n, r.status) : receive(m, a, n, in, j, r.status);
	if (is_copy && !m->note[n->copy_of].received)
		return v; /* counted at the receiving stream */
	if (n->bundle && !n->passed &&
		m->note[is_copy ? n->copy_of : (uint32_t)(n - m->note)].received &&
		!media_bundle_is_for(m, a, n, j))
		return PACKET_JOB;
	if (v == PACKET_JOB)
		return v; /* only listeners get it */
	if (v == PACKET_AUDIO)
		return media_audio_give(m, a, n, in, j);
	if (v == PACKET_SENT)
		v = leave(m, a, n, in, j, out);
	return v == PACKET_SENT ? v : media_drop(m, n->stream, v);
}

/* Like reachable(), inlined. */
static inline bool named(const struct endpoint *e)
{
	uint64_t addr[2];

	memcpy(addr, e->addr, sizeof(addr));
	return e->family && e->port && (addr[0] | addr[1]);
}

/* The index is the highest so far, at most step ahead, and the key has credit. */
static inline bool newest(const struct media_way *w, uint32_t ssrc, uint64_t index, uint64_t step)
{
	return !w->srtp ||
		(w->first.ssrc == ssrc && w->first.used && w->first.seen.started &&
			index - w->first.seen.last - 1 < step &&
			atomic_load_explicit(&w->credit, memory_order_relaxed));
}

static inline void commit_newest(struct media *m, struct media_way *w, uint64_t index)
{
	if (!w->srtp)
		return;
	w->first.touched = ++m->clock;
	media_ssrc_add(&w->first, index);
	atomic_store_explicit(&w->credit,
		atomic_load_explicit(&w->credit, memory_order_relaxed) - 1, memory_order_relaxed);
}

/* Completes packets of prepare's fast path, with the same result as complete(). False: nothing was
 * done. Checks again what earlier packets of the burst may have changed. After a command the slow
 * path is used. */
static inline bool fast_path(struct media *m, const struct arena *a, const struct note *n,
	const struct packet_in *in, const struct xc_job *j, struct packet_out *out)
{
	const struct media_stream *s = &m->stream[n->stream], *target = &m->stream[n->to];
	struct media_way *rx = &n->rx->rx, *tx = &n->tx->tx;

	/* Unauthenticated: accept only the very next index; jump.c judges the others. */
	if (!newest(rx, j->ssrc, j->rx_index, SRTP_INDEX_MAX) ||
		!newest(tx, j->ssrc, j->tx_index, rx->srtp ? SRTP_INDEX_MAX : 1) || target->look ||
		!named(&target->learn.remote))
		return false;
	commit_newest(m, rx, j->rx_index);
	if (rx->srtp)
		tell_index(m, n, &rx->first);
	count_received(m, n->stream, in, j, false);
	if (s->cfg.tap)
		record(m, a, n, in, j);
	commit_newest(m, tx, j->tx_index);
	*out = (struct packet_out){
		.dst = target->learn.remote,
		.local = target->cfg.local,
		.out_off = j->out_off,
		.len = j->hdr_len + j->body_len + tx->tail.len,
		.tos = target->cfg.tos,
		.in = n->in,
	};
	return true;
}

/* Completes packets of prepare's fast path for SRTP+. */
static bool fast_path_tagged(struct media *m, const struct arena *a, const struct note *n,
	const struct packet_in *in, const struct xc_job *j, struct packet_out *out)
{
	if (!fast_path(m, a, n, in, j, out))
		return false;
	out->len += XC_BLOCK_ADD(j->flags) - XC_BLOCK_CUT(j->flags);
	if (n->rx->rx.wary)
		media_tag_take(m, a, n->rx, j, false);
	if (n->block)
		media_rewrite_later(m, a, n, j, out);
	else if (n->tx->tx.tagged)
		media_tag_write(m, a, n->tx, j, out->len);
	return true;
}

/* In two steps, because the second reads the line of the first. */
static inline void prefetch_tags(
	const struct media *m, const struct arena *a, const struct batch *b, uint32_t k)
{
	uint32_t far = k + MEDIA_PREFETCH_JOBS, near = k + MEDIA_PREFETCH_JOBS / 2;

	if (far < b->n)
		media_prefetch_tags_job(m, &m->note[far], &b->job[far]);
	if (near < b->n)
		media_prefetch_tags_more(m, a, &m->note[near], &b->job[near]);
}

/* tagged is constant where this is inlined: some contexts have SRTP+ tags. */
static inline __attribute__((always_inline)) uint32_t complete_burst(struct media *m,
	const struct arena *a, struct packet_in *in, const struct batch *b, struct packet_out *out,
	const bool tagged)
{
	uint32_t outs = 0;
	/* No command has changed it since the burst was prepared. */
	bool unchanged = m->changed < m->done;

	for (uint32_t k = 0; k < b->n; k++) {
		struct note *note = &m->note[k];
		struct packet_in *p = &in[note->in];
		uint32_t ahead = k + MEDIA_PREFETCH_JOBS;
		uint8_t v;

		if (ahead < b->n)
			media_prefetch_jobs(m, &m->note[ahead]);
		if (tagged)
			prefetch_tags(m, a, b, k);
		if (note->fast && b->status[k] == XC_OK && unchanged &&
			fast_path(m, a, note, p, &b->job[k], &out[outs]))
			v = PACKET_SENT;
		else if (tagged && note->fast_tagged && b->status[k] == XC_OK && unchanged &&
			fast_path_tagged(m, a, note, p, &b->job[k], &out[outs]))
			v = PACKET_SENT;
		else
			v = complete(m, a, note, p, (struct result){&b->job[k], b->status[k]},
				&out[outs]);
		m->out_stream[outs] = note->to;
		outs += v == PACKET_SENT;
		if (note->copy_of == MEDIA_NONE)
			p->verdict = v;
	}
	return outs;
}

/* Removes packets whose encryption failed. */
static uint32_t remove_failed(
	struct media *m, struct packet_in *in, struct packet_out *out, uint32_t n)
{
	uint32_t left = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (!out[i].len) {
			in[out[i].in].verdict =
				media_drop(m, m->in_stream[out[i].in], PACKET_DROP_STALE);
			continue;
		}
		m->out_stream[left] = m->out_stream[i];
		out[left++] = out[i];
	}
	return left;
}

uint32_t media_complete(struct media *m, const struct arena *a, struct packet_in *in,
	const struct batch *b, struct packet_out *out)
{
	uint32_t outs;

	assert(m->done < m->burst);
	media_lane_use(m, ++m->done);
	if (!m->taggers)
		return complete_burst(m, a, in, b, out, false);
	outs = complete_burst(m, a, in, b, out, true);
	if (m->late.n && !media_rewrite_all(m, a))
		outs = remove_failed(m, in, out, outs);
	return outs;
}

void media_sent(struct media *m, struct packet_in *in, const struct packet_out *out, uint32_t n)
{
	media_lane_use(m, m->done);
	for (uint32_t i = 0; i < n; i++) {
		struct media_stream_counters *to = &m->counters[m->out_stream[i]];

		if (out[i].failed) {
			in[out[i].in].verdict =
				media_drop(m, m->in_stream[out[i].in], PACKET_DROP_SEND);
		} else {
			media_count(&to->packets_out, 1);
			media_count(&to->bytes_out, out[i].len);
		}
	}
}
