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
static void stop_waiting(struct media *m, struct media_ctx *c, uint64_t now_ns)
{
	if (!c->rx.coming)
		return;
	if (!c->coming_ns)
		c->coming_ns = now_ns;
	c->rx.coming = now_ns < c->coming_ns + MEDIA_AHEAD_NS;
	m->ahead->look |= !c->rx.coming;
}

static bool is_believed(const struct learn *l, const struct endpoint *src)
{
	return endpoint_eq(&l->signalled, src) || (l->confirmed && endpoint_eq(&l->source, src));
}

/* --- Lists ------------------------------------------------------------------------------------ */

static struct ahead_bucket *bucket_of(struct media_ahead *all, uint32_t stream)
{
	return &all->bucket[stream % MEDIA_AHEAD_MAX];
}

/* Appends a free place. There is one. */
static uint16_t append(struct media_ahead *all, uint32_t stream)
{
	struct ahead_bucket *b = bucket_of(all, stream);
	uint16_t at = all->free ? all->free : ++all->used;
	struct ahead_link *l = &all->link[at - 1];

	if (at == all->free)
		all->free = l->after;
	*l = (struct ahead_link){.stream = stream, .before = all->last};
	*(all->last ? &all->link[all->last - 1].after : &all->first) = at;
	*(b->last ? &all->link[b->last - 1].later : &b->first) = at;
	all->last = b->last = at;
	b->n++;
	all->n++;
	return at;
}

static void take_out(struct media_ahead *all, uint16_t at)
{
	struct ahead_link *l = &all->link[at - 1];
	struct ahead_bucket *b = bucket_of(all, l->stream);
	uint16_t before = 0, *from = &b->first;

	while (*from != at) {
		before = *from;
		from = &all->link[before - 1].later;
	}
	*from = l->later;
	if (b->last == at)
		b->last = before;
	*(l->before ? &all->link[l->before - 1].after : &all->first) = l->after;
	*(l->after ? &all->link[l->after - 1].before : &all->last) = l->before;
	l->after = all->free;
	all->free = at;
	b->n--;
	all->n--;
}

static void drop(struct media *m, uint16_t at)
{
	(void)media_drop(m, m->ahead->link[at - 1].stream, PACKET_DROP_INACTIVE);
	take_out(m->ahead, at);
}

/* Or the clock was set back. */
static bool is_old(const struct packet_in *in, uint64_t now_ns)
{
	return now_ns > in->t_ns + MEDIA_AHEAD_NS || in->t_ns > now_ns + MEDIA_AHEAD_NS;
}

static void drop_old(struct media *m, uint64_t now_ns)
{
	while (m->ahead->first && is_old(&m->ahead->in[m->ahead->first - 1], now_ns))
		drop(m, m->ahead->first);
}

/* No place is free: that of the oldest packet of the bucket that has most, if it has at least two
 * more than this stream. */
static bool take_of_most(struct media *m, uint32_t share)
{
	const struct ahead_bucket *most = m->ahead->bucket;

	for (uint32_t i = 1; i < MEDIA_AHEAD_MAX; i++)
		if (m->ahead->bucket[i].n > most->n)
			most = &m->ahead->bucket[i];
	if (most->n < share + 2)
		return false;
	drop(m, most->first);
	return true;
}

/* Number of packets of a stream. *oldest: the first of them. */
static uint32_t share_of(const struct media_ahead *all, uint32_t stream, uint16_t *oldest)
{
	uint32_t n = 0;

	*oldest = 0;
	for (uint16_t at = all->bucket[stream % MEDIA_AHEAD_MAX].first; at;
		at = all->link[at - 1].later)
		if (all->link[at - 1].stream == stream)
			*oldest = n++ ? *oldest : at;
	return n;
}

/* A place for a packet of this stream: a free one, or that of the stream's oldest packet: those
 * that stay are consecutive. Or one of the streams that have most. 0: none. */
static uint16_t place(struct media *m, uint32_t stream, uint64_t now_ns)
{
	struct media_ahead *all = m->ahead;
	uint16_t oldest;
	uint32_t share;

	drop_old(m, now_ns);
	share = bucket_of(all, stream)->n;
	if (share >= MEDIA_AHEAD_SHARE || all->n == MEDIA_AHEAD_MAX) {
		share = share_of(all, stream, &oldest);
		if (share >= MEDIA_AHEAD_SHARE)
			drop(m, oldest);
	}
	if (all->n == MEDIA_AHEAD_MAX && !take_of_most(m, share))
		return 0;
	return append(all, stream);
}

/* --- Packets ---------------------------------------------------------------------------------- */

bool media_ahead_keep(
	struct media *m, const struct arena *a, const struct packet_in *in, uint32_t stream)
{
	const struct media_stream *s = &m->stream[stream];
	uint16_t at;

	stop_waiting(m, &m->ctx[s->cfg.ctx], in->t_ns);
	if (!is_awaited(m, s) || in->len > ARENA_MAX_PACKET ||
		!(is_believed(&s->learn, &in->src) || media_checked(m, stream, &in->src)))
		return false;
	at = place(m, stream, in->t_ns);
	if (!at)
		return false;
	m->ahead->in[at - 1] = *in;
	memcpy(m->ahead->bytes[at - 1], a->in + in->in_off, in->len);
	return true;
}

/* The oldest packet whose waiting is over; 0: none. Only commands and time end it. */
static uint16_t next(struct media *m, uint64_t now_ns)
{
	struct media_ahead *all = m->ahead;

	if (all->first && is_old(&all->in[all->first - 1], now_ns))
		return all->first;
	for (uint16_t at = all->look ? all->first : 0; at; at = all->link[at - 1].after)
		if (!is_awaited(m, &m->stream[all->link[at - 1].stream]))
			return at;
	all->look = false;
	return 0;
}

/* Whether it can be received now. The handle may be another stream's. */
static bool is_ready(const struct media *m, uint16_t at, uint64_t now_ns)
{
	const struct media_stream *s = &m->stream[m->ahead->link[at - 1].stream];
	const struct packet_in *in = &m->ahead->in[at - 1];

	return s->set && s->cfg.local.addr == in->local.addr &&
		s->cfg.local.port == in->local.port && !is_old(in, now_ns);
}

uint32_t media_ahead_take(struct media *m, const struct arena *a, uint32_t first,
	struct packet_in *in, uint32_t max, uint64_t now_ns)
{
	uint32_t n = 0;
	uint16_t at;

	while (n < max && (at = next(m, now_ns))) {
		if (!is_ready(m, at, now_ns)) {
			drop(m, at);
			continue;
		}
		in[n] = m->ahead->in[at - 1];
		in[n].slot = first + n;
		in[n].in_off = in[n].slot * ARENA_SLOT_LEN + ARENA_HEADROOM;
		memcpy(a->in + in[n].in_off, m->ahead->bytes[at - 1], in[n].len);
		take_out(m->ahead, at);
		n++;
	}
	return n;
}
