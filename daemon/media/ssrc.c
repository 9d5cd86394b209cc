/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Per context and direction: the SSRCs, each with its index and window (RFC 3711 3.2.1, 3.3.1, 3.3.2). One window serves all
 * master keys of a context: the ROC goes on when the key changes (3.3.1), so an index that was seen under one key is old under
 * any other. Finding and estimating read; what makes entries is complete.c's and the commands'. */
#include "media/int.h"

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

struct ssrc_state *media_ssrc_make(
	struct media *m, struct media_ctx *c, int table, uint32_t ssrc, bool evict)
{
	struct ssrc_state *s = (struct ssrc_state *)media_ssrc_find(c, table, ssrc);
	uint32_t place = c->used[table], oldest = 0;

	if (!s && place == MEDIA_SSRCS) {
		if (!evict)
			return NULL;
		for (uint32_t i = 1; i < MEDIA_SSRCS; i++)
			if (at(c, table, i)->touched < at(c, table, oldest)->touched)
				oldest = i;
		place = oldest;
	} else if (!s) {
		c->used[table]++;
	}
	if (!s) {
		make(m, c, table, place, ssrc);
		s = at(c, table, place);
	}
	s->touched = ++m->clock;
	return s;
}

void media_ssrc_reset(struct media *m, struct media_ctx *c, int table, uint32_t roc,
	const struct media_start *start, uint32_t starts)
{
	for (uint32_t i = 0; i < c->used[table]; i++)
		*at(c, table, i) = (struct ssrc_state){0};
	c->used[table] = 0;
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

void media_ssrc_resume(struct media *m, struct media_ctx *c, const struct media_mark *mark)
{
	struct ssrc_state *s = media_ssrc_get(m, c, mark->table, mark->ssrc, false);

	if (!s || (s->seen.started && (mark->roc_only || s->seen.last >= mark->index)))
		return;
	s->seen.last = mark->index;
	if (!mark->roc_only)
		replay_start_after(&s->seen, mark->index);
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
		for (uint32_t i = 0; i < c->used[table]; i++) {
			const struct ssrc_state *s = look_at(c, table, i);

			out[n++] = (struct media_mark){.ssrc = s->ssrc,
				.table = (uint8_t)table,
				.roc_only = !s->seen.started,
				.index = s->seen.started ? s->seen.last : s->seen.last >> 16 << 16};
		}
	return n;
}

/* --- Packets of an SSRC that has no state yet -------------------------------------------------------------------- */

/* Where this burst, of those in flight, has it or would have it; its burst tells which. */
static struct first_seen *first_find(struct media *m, struct first_seen *lane, uint64_t burst,
	uint32_t ctx, int table, uint32_t ssrc)
{
	/* Multiplication spreads, the upper bits are the better ones (Knuth 6.4). */
	uint32_t at = (uint32_t)((((uint64_t)ctx << 2 | (uint32_t)table) ^ (uint64_t)ssrc << 24) *
			0x9e3779b97f4a7c15ull >>
		32);

	for (;; at++) { /* twice as many places as packets: one is free */
		struct first_seen *f = &lane[at & m->first_mask];

		if (f->burst != burst || (f->ctx == ctx && f->ssrc == ssrc && f->table == table))
			return f;
	}
}

/* This burst's entry: made of what the newest one in flight knows, if there is none. Without that its burst is another. */
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

/* All packets of a burst are estimated before the first one is committed, so one that wraps in an SSRC's very first burst has
 * nothing to be estimated by but its forerunners, which may be forged. They are therefore heeded only where they are near (no
 * further than a burst is long) and came from the same place: a forger gains no more than he did by racing the first packet. */
static uint64_t first_index(struct media *m, const struct media_ctx *c, int table, uint32_t ssrc,
	uint64_t plain, const struct media_in *in, uint32_t at)
{
	struct first_seen *f = first_seen(m, c, table, ssrc);
	uint64_t index = plain, far;

	if (f->burst == m->burst) {
		index = srtp_index_estimate(f->index, (uint16_t)plain);
		far = index > f->index ? index - f->index : f->index - index;
		if (far > m->cfg.burst_max * (m->burst - m->done) ||
			!endpoint_eq(&in[at].src, &f->src))
			return plain;
		if (index < f->index)
			return index;
	}
	f->burst = m->burst;
	f->index = index;
	f->src = in[at].src;
	return index;
}

uint64_t media_ssrc_index(struct media *m, const struct media_ctx *c, int table,
	const struct ssrc_state *s, uint32_t ssrc, uint16_t seq, const struct media_in *in,
	uint32_t at)
{
	if (s && s->seen.started)
		return srtp_index_estimate(s->seen.last, seq);
	return first_index(
		m, c, table, ssrc, (s ? s->seen.last >> 16 : c->roc[table]) << 16 | seq, in, at);
}
