/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The SSRCs of a context and direction, each with its index and replay window (RFC 3711 3.2.1). */
#ifndef MEDIA_SSRC_H
#define MEDIA_SSRC_H

#include "media/state.h"

static inline struct ssrc_state *media_ssrc_first(struct media_ctx *c, int table)
{
	return table == RX_RTP ? &c->rx.first : table == TX_RTP ? &c->tx.first : &c->first_rtcp;
}
const struct ssrc_state *media_ssrc_search(const struct media_ctx *c, int table, uint32_t ssrc);

/* Finds the state of an SSRC; NULL = none. */
static inline const struct ssrc_state *media_ssrc_find(
	const struct media_ctx *c, int table, uint32_t ssrc)
{
	const struct ssrc_state *s = media_ssrc_first((struct media_ctx *)c, table);

	return s->used && s->ssrc == ssrc ? s : media_ssrc_search(c, table, ssrc);
}

/* Whether the index is acceptable: replay_check(), inlined for the newest packet. */
static inline bool media_ssrc_new(const struct ssrc_state *s, uint64_t index)
{
	return (s->seen.started && index > s->seen.last) ||
		replay_check(&s->seen, index) == REPLAY_NEW;
}

/* Finds or creates the state of an SSRC. evict: if all are taken, replaces the one silent longest,
 * whose highest index moves to the past. NULL: all are taken, and evict is false or the past is
 * full. For authentic packets only, so receiving needs no rate limit. */
struct ssrc_state *media_ssrc_make(
	struct media *m, struct media_ctx *c, int table, uint32_t ssrc, bool evict);

static inline struct ssrc_state *media_ssrc_get(
	struct media *m, struct media_ctx *c, int table, uint32_t ssrc, bool evict)
{
	struct ssrc_state *s = media_ssrc_first(c, table);

	if (!s->used || s->ssrc != ssrc)
		return media_ssrc_make(m, c, table, ssrc, evict);
	s->touched = ++m->clock;
	return s;
}

/* Records an index that media_ssrc_new() accepted: replay_add(), inlined for the index after the
 * newest, with a power-of-two window. */
static inline void media_ssrc_add(struct ssrc_state *s, uint64_t index)
{
	struct replay *r = &s->seen;
	uint64_t window = 64 * (uint64_t)r->words, bit = index & (window - 1);

	if (!r->started || index != r->last + 1 || window & (window - 1)) {
		replay_add(r, index);
		return;
	}
	replay_bits(r)[bit / 64] |= 1ull << bit % 64;
	r->last = index;
}

/* Clears a table, and starts it with the command's values. */
void media_ssrc_reset(struct media *m, struct media_ctx *c, int table, uint32_t roc,
	const struct media_start *start, uint32_t starts);

/* Ends pass-through of a context. Its RX_RTP indexes were unauthenticated, so losses or forgeries
 * may have misled them. They become estimates, and packets with lower indexes count as new. */
void media_ssrc_trust(struct media_ctx *c);

/* Resume after this index; never moves one backwards. */
void media_ssrc_resume(struct media *m, struct media_ctx *c, const struct media_mark *mark);

/* Appends all SSRCs of a table, present and past, to out[n]. Returns the new n. */
uint32_t media_ssrc_marks(const struct media *m, const struct media_ctx *c, int table,
	struct media_mark *out, uint32_t n);

/* An RTP packet as it came. */
struct media_arrival {
	uint32_t ssrc;
	uint16_t seq;
	const struct endpoint *src;
};

/* Estimates its index; s: state of its SSRC, or NULL. Reads state, writes scratch. */
uint64_t media_ssrc_index(struct media *m, const struct media_ctx *c, int table,
	const struct ssrc_state *s, const struct media_arrival *p);

/* Whether this packet may take another SSRC's place toward the other side. It must be authentic,
 * or, if authentication is impossible, come from our own destination address. The receiver of the
 * call's media is assumed to be the terminal. */
static inline bool media_ssrc_may_turn(
	const struct media *m, const struct note *n, uint32_t stream, const struct endpoint *src)
{
	return (n->rx->rx.srtp && !n->rx->rx.no_rtp_auth && !n->passed) ||
		endpoint_eq(src, &m->stream[stream].learn.remote);
}

const struct past_ssrc *media_ssrc_past_find(
	const struct media *m, const struct media_ctx *c, int table, uint32_t ssrc);

/* The record of an SSRC that lost its place; NULL = none. */
static inline const struct past_ssrc *media_ssrc_past(
	const struct media *m, const struct media_ctx *c, int table, uint32_t ssrc)
{
	return c->used[table] == MEDIA_SSRCS ? media_ssrc_past_find(m, c, table, ssrc) : NULL;
}

/* The index is at or below the highest one of an SSRC that gave its place up. */
static inline bool media_ssrc_past_has(
	const struct media *m, const struct media_ctx *c, int table, uint32_t ssrc, uint64_t index)
{
	const struct past_ssrc *p = media_ssrc_past(m, c, table, ssrc);

	return p && !p->roc_only && index <= p->index;
}

bool media_ssrc_no_turn(const struct media *m, const struct media_ctx *tx, uint32_t ssrc,
	bool may_turn, uint64_t now_ns);

/* An SSRC without a place under the tx key, which media_ssrc_turn() refuses one. */
static inline bool media_ssrc_refused(const struct media *m, const struct media_ctx *tx,
	uint32_t ssrc, bool may_turn, uint64_t now_ns)
{
	return tx->used[TX_RTP] == MEDIA_SSRCS && !media_ssrc_find(tx, TX_RTP, ssrc) &&
		media_ssrc_no_turn(m, tx, ssrc, may_turn, now_ns);
}

/* Finds the place of an SSRC to send; NULL if refused. Any SSRC gets a free place. An attacker must
 * not fill all places and lock out the terminal's next SSRC, yet no index may be sent twice under a
 * key (RFC 3711 3.2.3, 9.1). When all are taken:
 * - The least recently used SSRC gives way, never the newest. Its index is kept in the past, its
 * window is not. On return it continues after that index, and packets reordered around the change
 * are lost.
 * - An SSRC in the past returns at once.
 * - A new SSRC gets a place only by a packet that media_ssrc_may_turn() allows: MEDIA_TURNS at
 * once, then one each MEDIA_TURN_NS, until the past is full. Then new SSRCs are refused until there
 * is a new key.
 * A forger with the terminal's own address can fill the past within minutes, but silences no known
 * SSRC. */
struct ssrc_state *media_ssrc_turn(
	struct media *m, struct media_ctx *tx, uint32_t ssrc, bool may_turn, uint64_t now_ns);

static inline struct ssrc_state *media_ssrc_send(
	struct media *m, struct media_ctx *tx, uint32_t ssrc, bool may_turn, uint64_t now_ns)
{
	struct ssrc_state *s = &tx->tx.first;

	if (!s->used || s->ssrc != ssrc)
		return media_ssrc_turn(m, tx, ssrc, may_turn, now_ns);
	s->touched = ++m->clock;
	return s;
}

#endif
