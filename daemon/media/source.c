/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Connects packets to learn.c: decides which packets are relayed, learns their source, and
 * publishes it to other threads. Called by complete.c and by commands. */
#include "media/source.h"
#include "media/checked.h"
#include "media/keys.h"
#include "media/state.h"
#include "packet/arena.h"

/* --- Published to other threads --------------------------------------------------------------- */

static void publish_remote(struct media_stream_counters *c, const struct learn *l)
{
	uint64_t packed[3] = {0};
	uint32_t seq = atomic_load_explicit(&c->remote_seq, memory_order_relaxed);

	memcpy(packed, l->remote.addr, 16);
	packed[2] = (uint64_t)l->remote.family << 16 | l->remote.port;
	atomic_store_explicit(&c->remote_seq, seq + 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	for (int i = 0; i < 3; i++)
		atomic_store_explicit(&c->remote[i], packed[i], memory_order_relaxed);
	atomic_store_explicit(&c->remote_seq, seq + 2, memory_order_release);
}

void media_learned(struct media *m, uint32_t stream)
{
	struct media_stream *s = &m->stream[stream];
	struct media_stream_counters *c = &m->counters[stream];

	s->look = s->cfg.wait || learn_is_old(&s->learn, &m->trial[stream].learn);
	publish_remote(c, &s->learn);
	/* Do not publish the source of an asymmetric side: other threads take it for the remote
	 * address. */
	atomic_store_explicit(
		&c->confirmed, s->learn.confirmed && !s->cfg.asymmetric, memory_order_relaxed);
}

bool media_may_leave(struct media *m, uint32_t stream, uint64_t now_ns)
{
	struct media_stream *s = &m->stream[stream];

	if (learn_moved(&s->learn, &m->trial[stream].learn, now_ns))
		media_learned(m, stream);
	return !s->cfg.wait ||
		atomic_load_explicit(&m->counters[stream].packets, memory_order_relaxed);
}

bool media_early_turn(struct media *m, uint32_t stream, uint32_t to, uint64_t now_ns)
{
	struct media_trial *t = &m->trial[to];

	if (t->early_from != stream + 1 && t->early_from && now_ns < t->early_ns + EARLY_PAUSE_NS)
		return false;
	t->early_from = stream + 1;
	t->early_ns = now_ns;
	return true;
}

static void handed_over(struct media *m, uint32_t stream, const struct learn_result *r)
{
	_Atomic uint64_t *h = &m->counters[stream].handover;
	uint64_t count = (atomic_load_explicit(h, memory_order_relaxed) >> 32) + 1;

	atomic_store_explicit(h,
		count << 32 | (uint64_t)r->cause << 16 | (uint64_t)r->from << 8 | (uint64_t)r->to,
		memory_order_relaxed);
	media_count(&m->handovers[r->cause], 1);
}

struct media_handover media_stream_handover(const struct media *m, uint32_t stream)
{
	uint64_t h = stream < m->cfg.max_stream ? media_key_load(&m->counters[stream].handover) : 0;

	return (struct media_handover){.count = (uint32_t)(h >> 32),
		.cause = (uint8_t)(h >> 16),
		.from = (uint8_t)(h >> 8),
		.to = (uint8_t)h,
		.short_tags = stream < m->cfg.max_stream
			? media_key_load(&m->counters[stream].drops[PACKET_DROP_SHORT_TAG])
			: 0};
}

uint64_t media_handovers(const struct media *m, uint8_t cause)
{
	return cause < LEARN_CAUSE_N ? media_key_load(&m->handovers[cause]) : 0;
}

void media_stream_remote(const struct media *m, uint32_t stream, struct endpoint *out)
{
	const struct media_stream_counters *c = media_stream_counters(m, stream);
	uint64_t packed[3];
	uint32_t before, after;

	*out = (struct endpoint){0};
	if (!c)
		return;
	do {
		before = atomic_load_explicit(&c->remote_seq, memory_order_acquire);
		for (int i = 0; i < 3; i++)
			packed[i] = atomic_load_explicit(&c->remote[i], memory_order_relaxed);
		atomic_thread_fence(memory_order_acquire);
		after = atomic_load_explicit(&c->remote_seq, memory_order_relaxed);
	} while (before != after || before & 1);
	memcpy(out->addr, packed, 16);
	out->family = (uint8_t)(packed[2] >> 16);
	out->port = (uint16_t)packed[2];
}

uint64_t media_drop_count(const struct media *m, enum packet_verdict v)
{
	return v < PACKET_VERDICTS ? atomic_load_explicit(&m->drops[v], memory_order_relaxed) : 0;
}

/* --- Packets ---------------------------------------------------------------------------------- */

/* The stream at the port this far from the stream's own, if it is of the same terminal; NULL if
 * not. RTCP without rtcp-mux has the port above that of its RTP (RFC 3550 11). */
static struct media_stream *neighbour(const struct media *m, const struct media_stream *s, int up)
{
	struct local_port at = s->cfg.local;
	const uint32_t *cell;
	struct media_stream *other;

	at.port = (uint16_t)(at.port + up);
	cell = media_port_cell(m, at);
	if (!cell || *cell == MEDIA_NONE)
		return NULL;
	other = &m->stream[*cell];
	return other->cfg.ctx == s->cfg.ctx && other->cfg.rtp != s->cfg.rtp ? other : NULL;
}

/* RTCP comes from the address of a confirmed source of RTP, whose SSRC it names. */
static bool is_vouched(const struct media *m, const struct media_stream *rtp,
	const struct packet_in *in, const struct xc_job *j)
{
	return rtp && rtp->learn.confirmed && endpoint_addr_eq(&rtp->learn.source, &in->src) &&
		atomic_load_explicit(&m->counters[rtp - m->stream].ssrc, memory_order_relaxed) ==
		j->ssrc;
}

/* Whether unauthenticated RTCP may come from here: once RTP has a source, only from that address or
 * the signalled one. */
static bool fits_rtp(
	const struct media_stream *rtcp, const struct media_stream *rtp, const struct endpoint *src)
{
	return !rtp || !rtp->learn.source.family ||
		learn_rank_of(&rtcp->learn.signalled, src) > LEARN_ANY ||
		(!rtp->learn.tentative && endpoint_addr_eq(&rtp->learn.source, src));
}

/* RTP has a new source: an RTCP source at another address is not the terminal. */
static void rtcp_follows(struct media *m, const struct media_stream *rtp)
{
	struct media_stream *rtcp = rtp->cfg.rtp ? neighbour(m, rtp, 1) : NULL;

	if (!rtcp || rtp->learn.tentative || !rtcp->learn.source.family || rtcp->learn.proved ||
		fits_rtp(rtcp, rtp, &rtcp->learn.source))
		return;
	learn_forget(&rtcp->learn, &m->trial[rtcp - m->stream].learn);
	media_learned(m, (uint32_t)(rtcp - m->stream));
}

/* Whether a source other than the followed one may be learned. All refusals belong here. */
static bool may_learn(const struct media *m, const struct media_stream *s,
	const struct media_stream *rtp, const struct packet_in *in, bool proved)
{
	if (!in->src.port || endpoint_is_unspecified(&in->src) || endpoint_is_multicast(&in->src))
		return false;
	if (!proved && !fits_rtp(s, rtp, &in->src))
		return false;
	return !m->cfg.may_learn ||
		m->cfg.may_learn(m->cfg.may_learn_arg, &s->learn.signalled, &in->src);
}

/* prepare.c has accepted the packet at its interface. If the index does not fit, each packet is
 * checked. */
static void learn_dev(struct learn *l, const struct packet_in *in, bool changed)
{
	if (l->dev == in->dev && !changed)
		return;
	if (l->confirmed && endpoint_eq(&in->src, &l->source))
		l->dev = in->dev <= UINT16_MAX ? (uint16_t)in->dev : 0;
	else if (changed)
		l->dev = 0; /* it belonged to the previous source */
}

enum packet_verdict media_believe(
	const struct media *m, const struct media_stream *s, const struct packet_in *in)
{
	const struct learn *l = &s->learn;

	if (!in->dev || !m->cfg.believe || learn_same_way(l, in))
		return PACKET_JOB;
	return m->cfg.believe(m->cfg.believe_arg, in,
		endpoint_addr_eq(&in->src, &l->signalled) ||
			(l->confirmed && endpoint_addr_eq(&in->src, &l->source)) ||
			media_checked(m, (uint32_t)(s - m->stream), &in->src));
}

bool media_learn(struct media *m, const struct arena *a, uint32_t stream,
	const struct packet_in *in, const struct xc_job *j, bool proved)
{
	const uint8_t *p = a->in + in->in_off;
	struct media_stream *s = &m->stream[stream];
	struct learn_seen seen = {.src = &in->src,
		.now_ns = in->t_ns,
		.ssrc = j->ssrc,
		.seq = be16(p + 2),
		.type = p[1] & 0x7f,
		.rtcp = j->flags & XC_JOB_RTCP,
		.proved = proved};
	struct learn_result r;

	if (!endpoint_eq(&in->src, &s->learn.source)) {
		const struct media_stream *rtp = s->cfg.rtp ? NULL : neighbour(m, s, -1);

		if (!may_learn(m, s, rtp, in, proved))
			return !s->cfg.strict_source || proved;
		seen.vouched = seen.rtcp && is_vouched(m, rtp, in, j);
	}
	r = learn_packet(&s->learn, &m->trial[stream].learn, &s->cfg, &seen);
	if (r.cause)
		handed_over(m, stream, &r);
	if (r.changed) {
		media_learned(m, stream);
		rtcp_follows(m, s);
	}
	learn_dev(&s->learn, in, r.changed);
	return r.heard;
}

bool media_learn_other(struct media *m, uint32_t stream, const struct packet_in *in)
{
	struct media_stream *s = &m->stream[stream];
	struct learn_seen seen = {.src = &in->src, .now_ns = in->t_ns, .rtcp = true};
	bool followed = endpoint_eq(&in->src, &s->learn.source);
	struct learn_result r;

	if (!s->cfg.raw)
		return followed || !s->cfg.strict_source || s->cfg.learning == MEDIA_LEARN_OFF ||
			learn_rank_of(&s->learn.signalled, &in->src) == LEARN_EXACT;
	if (!followed && !may_learn(m, s, NULL, in, false))
		return !s->cfg.strict_source;
	r = learn_packet(&s->learn, &m->trial[stream].learn, &s->cfg, &seen);
	if (r.cause)
		handed_over(m, stream, &r);
	if (r.changed)
		media_learned(m, stream);
	learn_dev(&s->learn, in, r.changed);
	return r.heard;
}

const struct media_stream_counters *media_stream_counters(const struct media *m, uint32_t stream)
{
	return stream < m->cfg.max_stream ? &m->counters[stream] : NULL;
}
