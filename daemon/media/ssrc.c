/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The SSRCs of a context and direction, each with its index and window (RFC 3711 3.2.1, 3.3.1,
 * 3.3.2). One window serves all master keys of a context. The ROC continues when the key changes
 * (3.3.1), so an index seen under one key is old under any other. Look-ups and estimates only read.
 * complete.c and commands create entries. */
#include "media/ssrc.h"
#include "media/state.h"

static struct ssrc_state *at(struct media_ctx *c, int table, uint32_t i)
{
	return i ? &c->more[table][i - 1] : media_ssrc_first(c, table);
}

static const struct ssrc_state *look_at(const struct media_ctx *c, int table, uint32_t i)
{
	return at((struct media_ctx *)c, table, i);
}

const struct ssrc_state *media_ssrc_search(const struct media_ctx *c, int table, uint32_t ssrc)
{
	for (uint32_t i = 0; i < c->used[table]; i++) {
		const struct ssrc_state *s = look_at(c, table, i);

		if (s->ssrc == ssrc)
			return s;
	}
	return NULL;
}

static void make(struct media *m, struct media_ctx *c, int table, uint32_t i, uint32_t ssrc)
{
	size_t n = ((size_t)(c - m->ctx) * SSRC_TABLES + (size_t)table) * MEDIA_SSRCS + i;
	struct ssrc_state *s = at(c, table, i);

	*s = (struct ssrc_state){.ssrc = ssrc, .used = true};
	replay_init(&s->seen,
		m->window_words > SRTP_REPLAY_NEAR ? m->windows + n * m->window_words : NULL,
		m->window_words);
	s->seen.last = (uint64_t)c->roc[table] << 16;
}

/* The least recently used entry. */
static uint32_t oldest(struct media_ctx *c, int table)
{
	uint32_t place = 0;

	for (uint32_t i = 1; i < MEDIA_SSRCS; i++)
		if (at(c, table, i)->touched < at(c, table, place)->touched)
			place = i;
	return place;
}

static struct past *past_at(const struct media *m, const struct media_ctx *c, int table)
{
	return &m->past[c - m->ctx][table];
}

static const struct past_ssrc *past_find(const struct past *p, uint32_t ssrc)
{
	for (uint32_t i = 0; i < p->n; i++)
		if (p->of[i].ssrc == ssrc)
			return &p->of[i];
	return NULL;
}

const struct past_ssrc *media_ssrc_past_find(
	const struct media *m, const struct media_ctx *c, int table, uint32_t ssrc)
{
	return past_find(past_at(m, c, table), ssrc);
}

static struct past_ssrc past_of(const struct ssrc_state *s)
{
	return (struct past_ssrc){
		.index = s->seen.last, .ssrc = s->ssrc, .roc_only = !s->seen.started};
}

/* All places are taken: the least recently used SSRC moves to the past, and this one takes its
 * place. NULL: the past is full. */
static struct ssrc_state *change_places(
	struct media *m, struct media_ctx *c, int table, uint32_t ssrc)
{
	struct past *p = past_at(m, c, table);
	struct past_ssrc *seat = (struct past_ssrc *)past_find(p, ssrc);
	struct past_ssrc before = {.index = (uint64_t)c->roc[table] << 16, .roc_only = true};
	uint32_t place = oldest(c, table);
	struct ssrc_state *s = at(c, table, place);

	if (seat)
		before = *seat;
	else if (p->n == MEDIA_PAST)
		return NULL;
	else
		seat = &p->of[p->n++];
	*seat = past_of(s);
	make(m, c, table, place, ssrc);
	s->seen.last = before.index;
	if (!before.roc_only)
		replay_start_after(&s->seen, before.index);
	return s;
}

struct ssrc_state *media_ssrc_make(
	struct media *m, struct media_ctx *c, int table, uint32_t ssrc, bool evict)
{
	struct ssrc_state *s = (struct ssrc_state *)media_ssrc_find(c, table, ssrc);

	if (!s && c->used[table] < MEDIA_SSRCS) {
		make(m, c, table, c->used[table], ssrc);
		s = at(c, table, c->used[table]++);
	} else if (!s && evict) {
		s = change_places(m, c, table, ssrc);
	}
	if (s)
		s->touched = ++m->clock;
	return s;
}

void media_ssrc_reset(struct media *m, struct media_ctx *c, int table, uint32_t roc,
	const struct media_start *start, uint32_t starts)
{
	struct past *past = past_at(m, c, table);

	for (uint32_t i = 0; i < c->used[table]; i++)
		*at(c, table, i) = (struct ssrc_state){0};
	c->used[table] = 0;
	if (past->n || past->turn_ns)
		*past = (struct past){0};
	c->roc[table] = roc;
	for (uint32_t i = 0; i < starts; i++) {
		struct ssrc_state *s = media_ssrc_get(m, c, table, start[i].ssrc, false);

		s->seen.last = start[i].index;
		if (!start[i].roc_only)
			replay_start_after(&s->seen, start[i].index);
	}
}

void media_ssrc_trust(struct media_ctx *c)
{
	for (uint32_t i = 0; i < c->used[RX_RTP]; i++) {
		struct ssrc_state *s = at(c, RX_RTP, i);

		if (s->seen.started)
			replay_expect(&s->seen,
				s->seen.last > MEDIA_FAR_AHEAD ? s->seen.last - MEDIA_FAR_AHEAD
							       : 0);
	}
}

/* --- Reuse of entries ------------------------------------------------------------------------- */

/* Newcomers that may take a place now: a token bucket. */
static uint32_t turns_left(const struct past *p, uint64_t now_ns)
{
	uint64_t add;

	if (p->turn_ns == 0)
		return MEDIA_TURNS;
	if (now_ns < p->turn_ns) /* the clock was set */
		return p->turns;
	add = (now_ns - p->turn_ns) / MEDIA_TURN_NS;
	return add >= MEDIA_TURNS - p->turns ? MEDIA_TURNS : p->turns + (uint32_t)add;
}

static void take_turn(struct past *p, uint64_t now_ns)
{
	uint32_t left = turns_left(p, now_ns);

	/* Keep the remainder of the interval, unless the bucket was full. */
	if (left == MEDIA_TURNS || now_ns < p->turn_ns)
		p->turn_ns = now_ns ? now_ns : 1;
	else
		p->turn_ns += (now_ns - p->turn_ns) / MEDIA_TURN_NS * MEDIA_TURN_NS;
	p->turns = left - 1;
}

bool media_ssrc_no_turn(const struct media *m, const struct media_ctx *tx, uint32_t ssrc,
	bool may_turn, uint64_t now_ns)
{
	const struct past *p = past_at(m, tx, TX_RTP);

	return !past_find(p, ssrc) &&
		(!may_turn || p->n == MEDIA_PAST || turns_left(p, now_ns) == 0);
}

struct ssrc_state *media_ssrc_turn(
	struct media *m, struct media_ctx *tx, uint32_t ssrc, bool may_turn, uint64_t now_ns)
{
	struct past *p = past_at(m, tx, TX_RTP);

	if (tx->used[TX_RTP] < MEDIA_SSRCS || media_ssrc_find(tx, TX_RTP, ssrc))
		return media_ssrc_make(m, tx, TX_RTP, ssrc, false);
	if (media_ssrc_no_turn(m, tx, ssrc, may_turn, now_ns))
		return NULL;
	if (!past_find(p, ssrc))
		take_turn(p, now_ns);
	return media_ssrc_make(m, tx, TX_RTP, ssrc, true);
}

/* A full past refuses newcomers, so nothing is lost without room. */
static void past_resume(struct past *p, const struct media_mark *mark)
{
	struct past_ssrc *e = (struct past_ssrc *)past_find(p, mark->ssrc);

	if (!e && p->n < MEDIA_PAST) {
		e = &p->of[p->n++];
		*e = (struct past_ssrc){
			.index = mark->index, .ssrc = mark->ssrc, .roc_only = mark->roc_only};
	}
	if (!e || (!e->roc_only && (mark->roc_only || e->index >= mark->index)))
		return;
	e->index = mark->index;
	e->roc_only = mark->roc_only;
}

/* --- State that outlives the stream ----------------------------------------------------------- */

void media_ssrc_resume(struct media *m, struct media_ctx *c, const struct media_mark *mark)
{
	struct ssrc_state *s = media_ssrc_get(m, c, mark->table, mark->ssrc, false);

	if (!s)
		past_resume(past_at(m, c, mark->table), mark);
	if (!s || (s->seen.started && (mark->roc_only || s->seen.last >= mark->index)))
		return;
	s->seen.last = mark->index;
	if (!mark->roc_only)
		replay_start_after(&s->seen, mark->index);
}

uint32_t media_ssrc_marks(const struct media *m, const struct media_ctx *c, int table,
	struct media_mark *out, uint32_t n)
{
	const struct past *p = past_at(m, c, table);

	for (uint32_t i = 0; i < c->used[table]; i++) {
		const struct ssrc_state *s = look_at(c, table, i);

		out[n++] = (struct media_mark){.ssrc = s->ssrc,
			.table = (uint8_t)table,
			.roc_only = !s->seen.started,
			.index = s->seen.started ? s->seen.last : s->seen.last >> 16 << 16};
	}
	for (uint32_t i = 0; c->used[table] == MEDIA_SSRCS && i < p->n; i++)
		out[n++] = (struct media_mark){.ssrc = p->of[i].ssrc,
			.table = (uint8_t)table,
			.roc_only = p->of[i].roc_only,
			.index = p->of[i].index};
	return n;
}

uint32_t media_marks(const struct media *m, uint32_t ctx, struct media_mark out[MEDIA_MARKS_MAX],
	uint64_t *tx_rtcp_next)
{
	const struct media_ctx *c = &m->ctx[ctx];
	uint32_t n = 0;

	*tx_rtcp_next = 0;
	if (ctx >= m->cfg.max_ctx || !c->rx.set)
		return 0;
	*tx_rtcp_next = c->tx_rtcp_next;
	for (int table = 0; table < SSRC_TABLES; table++)
		n = media_ssrc_marks(m, c, table, out, n);
	return n;
}

/* --- Packets of an SSRC that has no state yet ------------------------------------------------- */

/* Finds an SSRC's entry of this burst, or the free place for it; the burst number tells which. */
static struct first_seen *first_find(struct media *m, struct first_seen *lane, uint64_t burst,
	uint32_t ctx, int table, uint32_t ssrc)
{
	/* Multiplicative hashing: upper bits are better mixed (Knuth 6.4). */
	uint32_t at = (uint32_t)((((uint64_t)ctx << 2 | (uint32_t)table) ^ (uint64_t)ssrc << 24) *
			0x9e3779b97f4a7c15ull >>
		32);

	for (;; at++) { /* twice as many places as packets, so one is free */
		struct first_seen *f = &lane[at & m->first_mask];

		if (f->burst != burst || (f->ctx == ctx && f->ssrc == ssrc && f->table == table))
			return f;
	}
}

/* This burst's entry for the SSRC. A new one copies the newest entry in flight; otherwise bursts
 * would not know of each other. */
static struct first_seen *first_seen(
	struct media *m, const struct media_ctx *c, int table, uint32_t ssrc)
{
	uint32_t ctx = (uint32_t)(c - m->ctx);
	struct first_seen *f = first_find(m, m->first, m->burst, ctx, table, ssrc);

	if (f->burst == m->burst)
		return f;
	*f = (struct first_seen){.ctx = ctx, .ssrc = ssrc, .table = (uint8_t)table};
	for (uint64_t b = m->burst - 1; b > m->done; b--) {
		const struct first_seen *before =
			first_find(m, m->lane[b % m->bursts].first, b, ctx, table, ssrc);

		if (before->burst == b) {
			*f = *before;
			f->burst = m->burst;
			break;
		}
	}
	return f;
}

/* Estimates the index in an SSRC's first bursts. The whole burst is estimated before its first
 * packet is committed, so a wrap can only be judged by earlier packets, possibly forged. They count
 * only if near (at most a burst apart) and from the same source. A forger gains no more than by
 * racing the first packet. */
static uint64_t first_index(struct media *m, const struct media_ctx *c, int table,
	const struct media_arrival *p, uint64_t plain)
{
	struct first_seen *f = first_seen(m, c, table, p->ssrc);
	uint64_t index = plain, far;

	if (f->burst == m->burst) {
		index = srtp_index_estimate(f->index, (uint16_t)plain);
		far = index > f->index ? index - f->index : f->index - index;
		if (far > m->cfg.burst_max * (m->burst - m->done) || !endpoint_eq(p->src, &f->src))
			return plain;
		if (index < f->index)
			return index;
	}
	f->burst = m->burst;
	f->index = index;
	f->src = *p->src;
	return index;
}

uint64_t media_ssrc_index(struct media *m, const struct media_ctx *c, int table,
	const struct ssrc_state *s, const struct media_arrival *p)
{
	const struct past_ssrc *past;
	uint64_t roc = c->roc[table];

	if (s && s->seen.started)
		return srtp_index_estimate(s->seen.last, p->seq);
	past = !s ? media_ssrc_past(m, c, table, p->ssrc) : NULL;
	if (past && !past->roc_only)
		return srtp_index_estimate(past->index, p->seq);
	roc = s ? s->seen.last >> 16 : past ? past->index >> 16 : roc;
	return first_index(m, c, table, p, roc << 16 | p->seq);
}
