/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "media/ahead.h"

#include "media/checked.h"

static bool is_awaited(const struct media *m, const struct media_stream *s)
{
	const struct media_ctx *c = &m->ctx[s->cfg.ctx];

	return s->set && s->cfg.side && (c->rx.set ? c->rx.coming : c->cfg->rx.awaited);
}

void media_ahead_expect(struct media *m, uint32_t stream)
{
	struct media_ctx *c = &m->ctx[m->stream[stream].cfg.ctx];

	if (!c->rx.set || c->rx.srtp || c->rx.pass)
		return;
	c->rx.coming = true;
	c->rx.fast = c->rx.fast_tagged = false;
	c->coming_ns = 0;
}

/* Keys that did not come, because the call does not allow their suite. */
static void stop_waiting(struct media_ctx *c, uint64_t now_ns)
{
	if (!c->rx.coming)
		return;
	if (!c->coming_ns)
		c->coming_ns = now_ns;
	c->rx.coming = now_ns < c->coming_ns + MEDIA_AHEAD_NS;
}

static bool is_believed(const struct learn *l, const struct endpoint *src)
{
	return endpoint_eq(&l->signalled, src) || (l->confirmed && endpoint_eq(&l->source, src));
}

static void drop(struct media *m, struct ahead_packet *p)
{
	(void)media_drop(m, p->stream, PACKET_DROP_INACTIVE);
	p->number = 0;
	m->ahead->n--;
}

/* Or the clock was set back. */
static bool is_old(const struct ahead_packet *p, uint64_t now_ns)
{
	return now_ns > p->in.t_ns + MEDIA_AHEAD_NS || p->in.t_ns > now_ns + MEDIA_AHEAD_NS;
}

/* No place is free: that of the oldest packet of the stream that has most, if it has at least two
 * more than this one. Streams are counted by the low bits of their numbers. */
static struct ahead_packet *place_of_most(struct media *m, uint32_t share)
{
	uint16_t has[MEDIA_AHEAD_MAX] = {0};
	struct ahead_packet *of = m->ahead->of, *found = NULL;
	uint32_t most = 0;

	for (uint32_t i = 0; i < MEDIA_AHEAD_MAX; i++) {
		uint32_t s = of[i].stream % MEDIA_AHEAD_MAX;

		has[s]++;
		most = has[s] > has[most] ? s : most;
	}
	if (has[most] < share + 2)
		return NULL;
	for (uint32_t i = 0; i < MEDIA_AHEAD_MAX; i++)
		if (of[i].stream % MEDIA_AHEAD_MAX == most &&
			(!found || of[i].number < found->number))
			found = &of[i];
	drop(m, found);
	return found;
}

/* A free place, or that of the stream's oldest packet: those that stay are consecutive. Or one of
 * the stream that has most. NULL: none. */
static struct ahead_packet *place(struct media *m, uint32_t stream, uint64_t now_ns)
{
	struct ahead_packet *found = NULL, *oldest = NULL;
	uint32_t share = 0;

	for (uint32_t i = 0; i < MEDIA_AHEAD_MAX; i++) {
		struct ahead_packet *p = &m->ahead->of[i];

		if (p->number && is_old(p, now_ns))
			drop(m, p);
		found = p->number ? found : p;
		if (!p->number || p->stream != stream)
			continue;
		share++;
		oldest = oldest && oldest->number < p->number ? oldest : p;
	}
	if (share < MEDIA_AHEAD_SHARE)
		return found ? found : place_of_most(m, share);
	drop(m, oldest);
	return oldest;
}

bool media_ahead_keep(
	struct media *m, const struct arena *a, const struct packet_in *in, uint32_t stream)
{
	const struct media_stream *s = &m->stream[stream];
	struct ahead_packet *p;

	stop_waiting(&m->ctx[s->cfg.ctx], in->t_ns);
	if (!is_awaited(m, s) || in->len > ARENA_MAX_PACKET ||
		!(is_believed(&s->learn, &in->src) || media_checked(m, stream, &in->src)))
		return false;
	p = place(m, stream, in->t_ns);
	if (!p)
		return false;
	*p = (struct ahead_packet){++m->ahead->number, stream, *in};
	memcpy(m->ahead->bytes[p - m->ahead->of], a->in + in->in_off, in->len);
	m->ahead->n++;
	return true;
}

/* The oldest packet whose waiting is over. */
static struct ahead_packet *next(struct media *m, uint64_t now_ns)
{
	struct ahead_packet *found = NULL;

	for (uint32_t i = 0; i < MEDIA_AHEAD_MAX; i++) {
		struct ahead_packet *p = &m->ahead->of[i];

		if (!p->number || (found && found->number < p->number))
			continue;
		if (!is_awaited(m, &m->stream[p->stream]) || is_old(p, now_ns))
			found = p;
	}
	return found;
}

/* Whether it can be received now. The handle may be another stream's. */
static bool is_ready(const struct media *m, const struct ahead_packet *p, uint64_t now_ns)
{
	const struct media_stream *s = &m->stream[p->stream];

	return s->set && s->cfg.local.addr == p->in.local.addr &&
		s->cfg.local.port == p->in.local.port && !is_old(p, now_ns);
}

uint32_t media_ahead_take(struct media *m, const struct arena *a, uint32_t first,
	struct packet_in *in, uint32_t max, uint64_t now_ns)
{
	struct ahead_packet *p;
	uint32_t n = 0;

	while (n < max && (p = next(m, now_ns))) {
		if (!is_ready(m, p, now_ns)) {
			drop(m, p);
			continue;
		}
		in[n] = p->in;
		in[n].slot = first + n;
		in[n].in_off = in[n].slot * ARENA_SLOT_LEN + ARENA_HEADROOM;
		memcpy(a->in + in[n].in_off, m->ahead->bytes[p - m->ahead->of], p->in.len);
		p->number = 0;
		m->ahead->n--;
		n++;
	}
	return n;
}
