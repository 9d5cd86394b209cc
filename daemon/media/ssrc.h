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

/* NULL if this SSRC has no state. */
static inline const struct ssrc_state *media_ssrc_find(
	const struct media_ctx *c, int table, uint32_t ssrc)
{
	const struct ssrc_state *s = media_ssrc_first((struct media_ctx *)c, table);

	return s->used && s->ssrc == ssrc ? s : media_ssrc_search(c, table, ssrc);
}

/* Whether the index may still come: replay_check(), but without a call for a packet that is the
 * newest. */
static inline bool media_ssrc_new(const struct ssrc_state *s, uint64_t index)
{
	return (s->seen.started && index > s->seen.last) ||
		replay_check(&s->seen, index) == REPLAY_NEW;
}

/* The state of an SSRC, made if there is none. evict: when all are taken, the one that was silent
 * longest gives way, and its highest index stays known in the past. NULL: all are taken, and evict
 * is not set or the past is full. The sender of authentic packets decides how many SSRCs there are,
 * so receiving needs no limit per time. For authentic packets only. */
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

/* Notes an index that media_ssrc_new() found to be new: replay_add(), but without a call for the
 * one that follows the newest, in a window of a power of two. */
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

/* Forget a table, and start it as the command says. */
void media_ssrc_reset(struct media *m, struct media_ctx *c, int table, uint32_t roc,
	const struct media_start *start, uint32_t starts);

/* A context was passed through, and no longer is: its RX_RTP indexes were followed without
 * authentication, a burst lost or a forgery ahead of the truth. They are estimates by now, behind
 * which nothing counts as seen. */
void media_ssrc_trust(struct media_ctx *c);

/* Resume after this index; never moves one backwards. */
void media_ssrc_resume(struct media *m, struct media_ctx *c, const struct media_mark *mark);

/* Appends all SSRCs of a table, present and past, to out[n]. Returns the new n. */
uint32_t media_ssrc_marks(const struct media *m, const struct media_ctx *c, int table,
	struct media_mark *out, uint32_t n);

/* The index of an RTP packet of this burst, in[at], whose SSRC has the state s, or none. Reads
 * state, writes scratch. */
uint64_t media_ssrc_index(struct media *m, const struct media_ctx *c, int table,
	const struct ssrc_state *s, uint32_t ssrc, uint16_t seq, const struct packet_in *in,
	uint32_t at);

/* Whose packet may take another SSRC's place toward the other side: it is authentic, or, where
 * nothing can be, it comes from where we send to ourselves: who gets the call's media is believed
 * to be the terminal, and a forger from elsewhere is not. */
static inline bool media_ssrc_may_turn(
	const struct media *m, const struct note *n, uint32_t stream, const struct endpoint *src)
{
	return (n->rx->rx.srtp && !n->rx->rx.no_rtp_auth && !n->passed) ||
		endpoint_eq(src, &m->stream[stream].learn.remote);
}

const struct past_ssrc *media_ssrc_past_find(
	const struct media *m, const struct media_ctx *c, int table, uint32_t ssrc);

/* What is known of an SSRC that gave its place up; NULL: it did not. */
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

/* An SSRC that has no place for what it will have sent under the tx key, and that gets none now
 * (media_ssrc_turn()). */
static inline bool media_ssrc_refused(const struct media *m, const struct media_ctx *tx,
	uint32_t ssrc, bool may_turn, uint64_t now_ns)
{
	return tx->used[TX_RTP] == MEDIA_SSRCS && !media_ssrc_find(tx, TX_RTP, ssrc) &&
		media_ssrc_no_turn(m, tx, ssrc, may_turn, now_ns);
}

/* The place of an SSRC that is to be sent; NULL if it gets none. While there are free places
 * everybody gets one. Nobody may fill them so that the terminal's next SSRC finds none, yet an
 * index must never be sent twice under a key (RFC 3711 3.2.3, 9.1). So when all are taken:
 * - The least recently used gives way, never the newest, and what it has sent stays known, in the
 *   past: its index, that is, no longer its window. When it comes back it goes on behind that, and
 *   what was reordered around its going is lost.
 * - Who is in the past comes back at once: whoever was heard once stays heard.
 * - A newcomer gets a place only by a packet that media_ssrc_may_turn() is true of, MEDIA_TURNS at
 *   once and one each MEDIA_TURN_NS, until the past is full. Then newcomers are refused until there
 *   is a new key.
 * A forger who sends from the terminal's own address can use the past up, in some minutes; he
 * silences nobody who was heard before. */
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
