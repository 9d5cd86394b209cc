/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Joins two parties of a call without offer and answer (ng's connect). Both already have ports and
 * keys here, so only the destinations of their packets change, matched by kind of m-line
 * (leg_peer()). Former peers have no destination until the next connect or offer. Parties of
 * different calls cannot be joined: their media may be on different workers. */
#include "offer/connect.h"
#include "call/call.h"
#include "call/call_int.h"
#include "call/lifetime.h"
#include "call/table.h"

static bool can_speak(const struct side *s)
{
	for (uint32_t i = 0; i < s->legs; i++)
		if (s->leg[i] && s->leg[i]->active)
			return !s->gone && !s->listener && !s->publisher;
	return false;
}

/* Whether media are under the terminal's own keys, which the other terminal lacks. */
static bool is_passed(const struct side *s)
{
	for (uint32_t i = 0; i < s->legs; i++)
		if (s->leg[i] && (s->leg[i]->rx.pass || s->leg[i]->tx.pass))
			return true;
	return false;
}

static const char *join(struct call *c, const struct ng_request *r)
{
	uint8_t from = call_side_by_tag(c, r->from_tag), to = call_side_by_tag(c, r->to_tag);
	bool both = !ng_flag(r, NG_FLAG_DIRECTIONAL);

	if (r->to_call_id.len && !str_eq(r->to_call_id, r->call_id))
		return NGE_TWO_CALLS;
	if (from == SIDE_NONE || to == SIDE_NONE || from == to || !can_speak(c->side[from]) ||
		!can_speak(c->side[to]))
		return NGE_DIALOG;
	if (is_passed(c->side[from]) || is_passed(c->side[to]))
		return NGE_CONNECT_PASSED;
	for (uint32_t i = 0; i < c->sides; i++)
		if (i == from || i == to || c->side[i]->peer == from || c->side[i]->peer == to) {
			/* Its dialog no longer determines its peer, so a party left out cannot
			 * change it. */
			c->side[i]->connected = i == from || i == to;
			c->side[i]->parked = false;
			c->side[i]->peer = both ? SIDE_NONE : c->side[i]->peer;
		}
	c->side[from]->emergency |= c->side[to]->emergency;
	c->side[to]->emergency |= c->side[from]->emergency;
	c->side[from]->peer = to;
	if (both)
		c->side[to]->peer = from;
	return NULL;
}

/* Names this side's active m-lines without a counterpart on the other side. */
static void warn_unmatched(struct sbuf *b, const struct call *c, const struct side *s)
{
	for (uint32_t i = 0; i < s->legs; i++)
		if (s->leg[i] && s->leg[i]->active && !leg_peer(c, s, i))
			sbuf_printf(b, "%sm-line %u (%s) of " STR_FMT " has no counterpart",
				b->len ? "; " : "", i + 1, s->leg[i]->kind, STR_ARG(s->tag));
}

static struct str unmatched(struct pool *p, const struct call *c, const struct ng_request *r)
{
	const struct side *from = c->side[call_side_by_tag(c, r->from_tag)];
	struct str out = STR_NONE;
	struct sbuf b;

	sbuf_init(&b, 0);
	warn_unmatched(&b, c, from);
	if (!ng_flag(r, NG_FLAG_DIRECTIONAL))
		warn_unmatched(&b, c, c->side[from->peer]);
	if (!b.err && b.len)
		out = pool_strdup(p, sbuf_view(&b));
	sbuf_fini(&b);
	return out;
}

void calls_connect(struct calls *c, struct pool *p, const struct ng_request *r, uint64_t now_ns,
	struct call_reply *out)
{
	struct call *call = call_table_find(&c->table, r->call_id), *next;
	int err;

	*out = (struct call_reply){.error = call ? NULL : NGE_UNKNOWN_CALL};
	if (!call)
		return;
	next = call_clone(&c->keys, call);
	if (!next) {
		out->error = NGE_NOMEM;
		return;
	}
	next->signal_ns = now_ns;
	out->error = join(next, r);
	if (out->error) {
		if (strcmp(out->error, NGE_DIALOG) == 0)
			out->detail = STR("from-tag and to-tag must name two parties with media");
		call_free(&c->keys, next);
		return;
	}
	lifetime_signalled(next->side[call_side_by_tag(next, r->from_tag)], now_ns);
	lifetime_signalled(next->side[call_side_by_tag(next, r->to_tag)], now_ns);
	out->warning = unmatched(p, next, r);
	err = calls_put_in_force(c, p, call, next, now_ns);
	if (err)
		calls_resource_error(out, err, false);
}
