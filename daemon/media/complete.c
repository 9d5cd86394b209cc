/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Second half of the packet's way, and the only writer of stream state: what authenticated is committed, in arrival order, and
 * only what is new on both sides leaves. Two equal packets of one burst both authenticate; the second one is found out here. */
#include "layout.h"
#include "media/int.h"

/* The state of an SSRC, made if there is none. evict: when all are taken the one that was silent longest goes (only an authentic
 * packet gets here). Without it NULL is returned then. */
static struct ssrc_state *ssrc_state(
	struct media_ctx *c, struct ssrc_state *t, uint32_t ssrc, bool evict)
{
	struct ssrc_state *s = (struct ssrc_state *)media_ssrc_find(t, ssrc), *oldest = &t[0];

	for (int i = 0; i < MEDIA_SSRCS && !s; i++) {
		if (!t[i].used)
			s = &t[i];
		else if (t[i].touched < oldest->touched)
			oldest = &t[i];
	}
	if (!s && !evict)
		return NULL;
	s = s ? s : oldest;
	if (!s->used || s->ssrc != ssrc)
		*s = (struct ssrc_state){.ssrc = ssrc, .used = true};
	s->touched = ++c->clock;
	return s;
}

static bool rx_commit(struct media_ctx *c, const struct xc_job *j)
{
	struct ssrc_state *t = j->flags & XC_JOB_RTCP ? c->rx_rtcp : c->rx_rtp, *s;

	if (!media_is_srtp(&c->cfg.rx))
		return true;
	s = ssrc_state(c, t, j->ssrc, true);
	if (replay_check(&s->seen, j->rx_index) != REPLAY_NEW)
		return false;
	replay_add(&s->seen, j->rx_index);
	return true;
}

/* An (outbound key, SSRC, index) is sent at most once: two packets under one keystream would give both away. A side that speaks
 * plain RTP could otherwise make us do that by repeating a sequence number. */
static uint8_t tx_commit(struct media_ctx *c, const struct xc_job *j)
{
	struct ssrc_state *s;

	if (!media_is_srtp(&c->cfg.tx))
		return MEDIA_SENT;
	if (j->flags & XC_JOB_RTCP) {
		if (j->tx_index < c->tx_rtcp_next)
			return MEDIA_DROP_NONCE;
		c->tx_rtcp_next = j->tx_index + 1;
		return MEDIA_SENT;
	}
	s = ssrc_state(c, c->tx_rtp, j->ssrc, false);
	if (!s)
		return MEDIA_DROP_SSRC_LIMIT;
	if (replay_check(&s->seen, j->tx_index) != REPLAY_NEW)
		return MEDIA_DROP_NONCE;
	replay_add(&s->seen, j->tx_index);
	return MEDIA_SENT;
}

static void learn(struct media *m, uint32_t stream, const struct media_in *in, bool rtcp)
{
	struct media_stream *s = &m->stream[stream];

	/* RTCP that shares the port says nothing about where RTP comes from. */
	if (rtcp && s->cfg.rtp)
		return;
	if (learn_packet(&s->learn, &s->cfg, &in->src, in->t_ns))
		media_learned(m, stream);
}

static void count_received(
	struct media *m, uint32_t stream, const struct media_in *in, const struct xc_job *j)
{
	struct media_stream_counters *c = &m->counters[stream];

	media_count(&c->packets, 1);
	media_count(&c->bytes, in->len);
	atomic_store_explicit(&c->last_packet_ns, in->t_ns, memory_order_relaxed);
	atomic_store_explicit(&c->ssrc, j->ssrc, memory_order_relaxed);
}

static bool reachable(const struct endpoint *e)
{
	return e->family && e->port && !endpoint_is_unspecified(e);
}

/* The MKI's bytes go into the gap that the engine left; returns the length of the result. */
static uint32_t finish(const struct arena *a, const struct media_crypto *c, const struct xc_job *j)
{
	struct media_tail t = media_tail(c, j->flags & XC_JOB_RTCP);
	uint32_t end = j->hdr_len + j->body_len;

	memcpy(a->out + j->out_off + end + t.mki, c->key[c->use].mki, c->mki_len);
	return end + t.len;
}

/* What the job was prepared from is still there and the same. */
static bool fresh(const struct media *m, uint32_t stream)
{
	const struct media_stream *s = &m->stream[stream];

	return s->set && s->changed != m->burst && m->ctx[s->cfg.ctx].set &&
		m->ctx[s->cfg.ctx].changed != m->burst;
}

static uint8_t complete(struct media *m, const struct arena *a, uint32_t k, struct media_in *in,
	const struct xc_job *j, uint32_t status, struct media_out *out)
{
	uint32_t from = m->job_stream[k], to = m->job_to[k];
	const struct media_stream *target = &m->stream[to];
	struct media_ctx *rx, *tx;
	uint8_t v;

	if (status != XC_OK)
		return media_drop(m, from, MEDIA_DROP_BAD_TAG);
	if (!fresh(m, from) || !fresh(m, to))
		return media_drop(m, from, MEDIA_DROP_STALE);
	rx = &m->ctx[m->stream[from].cfg.ctx];
	tx = &m->ctx[target->cfg.ctx];
	/* Before rx_commit(): what cannot leave must not push another SSRC's window out. */
	if (media_is_srtp(&tx->cfg.tx) && !(j->flags & XC_JOB_RTCP) &&
		media_ssrc_refused(tx->tx_rtp, j->ssrc))
		return media_drop(m, from, MEDIA_DROP_SSRC_LIMIT);
	if (!rx_commit(rx, j))
		return media_drop(m, from, MEDIA_DROP_REPLAY);
	count_received(m, from, in, j);
	learn(m, from, in, j->flags & XC_JOB_RTCP);
	if (!reachable(&target->learn.remote))
		return media_drop(m, from, MEDIA_DROP_NO_DESTINATION);
	v = tx_commit(tx, j);
	if (v != MEDIA_SENT)
		return media_drop(m, from, v);
	*out = (struct media_out){
		.dst = target->learn.remote,
		.local = target->cfg.local,
		.out_off = j->out_off,
		.len = finish(a, &tx->cfg.tx, j),
		.tos = target->cfg.tos,
		.in = m->job_in[k],
	};
	return MEDIA_SENT;
}

uint32_t media_complete(struct media *m, const struct arena *a, struct media_in *in, uint32_t n,
	const struct xc_job *job, const uint32_t *status, uint32_t jobs, struct media_out *out)
{
	uint32_t outs = 0;

	(void)n;
	for (uint32_t k = 0; k < jobs; k++) {
		struct media_in *p = &in[m->job_in[k]];

		p->verdict = complete(m, a, k, p, &job[k], status[k], &out[outs]);
		outs += p->verdict == MEDIA_SENT;
	}
	return outs;
}

void media_sent(struct media *m, struct media_in *in, const struct media_out *out, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t *from = media_port_cell(m, in[out[i].in].local);
		const uint32_t *to = media_port_cell(m, out[i].local);

		if (out[i].failed) {
			in[out[i].in].verdict =
				media_drop(m, from ? *from : MEDIA_NONE, MEDIA_DROP_SEND);
		} else if (to && *to != MEDIA_NONE) {
			media_count(&m->counters[*to].packets_out, 1);
			media_count(&m->counters[*to].bytes_out, out[i].len);
		}
	}
}
