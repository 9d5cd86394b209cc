/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Blocks and unblocks media of a call, a party or a flow (ng's block and silence commands). */
#ifndef CALL_GATE_H
#define CALL_GATE_H

#include "call/model.h"

/* MEDIA_QUIET_*, and NEG_QUIET_ONLY. */
#define NEG_QUIET_ONLY 4 /* no other codec; not itself a MEDIA_QUIET_* bit */

/* Adds payload types of telephone events (RFC 4733). */
void neg_add_events(uint64_t events[2], const struct sdp_media *m);
uint8_t neg_quiet(const struct sdp_media *m);

/* Whether the request names this side as a source: by label, else by address (addr, if it has a
 * family), else by from-tag. Kamailio sends a from-tag with every command, so it comes last. The
 * flag "all", and a request that names nobody, mean all sides. */
bool gate_is_source(const struct side *s, const struct ng_request *r, const struct endpoint *addr);

/* Sets or clears a MEDIA_GATE_* of the call, sides or flows that the request selects. NULL, or the
 * error-reason if it selects nothing. */
const char *gate_set(struct call *c, const struct ng_request *r, uint8_t bit, bool on);

/* Gate for all media from this side. */
static inline uint8_t gate_of_side(const struct call *c, const struct side *s)
{
	return c->gate | s->gate;
}

/* Additional gate for media from one side to another: for media_stream_cfg.gate. */
static inline uint8_t gate_of_flow(const struct call *c, uint8_t from, uint8_t to)
{
	return from < c->sides && to < c->sides ? MEDIA_GATE_TO(c->side[from]->flow[to]) : 0;
}

/* Whether the side is silenced, and its leg may use codecs that a worker cannot silence: its
 * packets need an audio session, or are dropped. */
bool gate_needs_session(const struct call *c, const struct side *s, const struct leg *l);

/* Whether MEDIA_GATE_QUIET blocks media of the selected sides, because they may use codecs other
 * than G.711 and G.722 and have no audio session. */
bool gate_holds_back(const struct call *c);

#endif
