/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The end of a call by command: the whole of it, or one branch of a fork, or one listener. */
#include <errno.h>

#include "base/clock.h"
#include "call/calls.h"

/* A year: far beyond any call, and far from where nanoseconds since 1970 wrap (2554). */
#define DELAY_MAX_S (365 * 86400ll)

/* The branch that a delete means, if there are others beside it; SIDE_NONE: the whole call. */
static uint8_t one_branch(const struct call *call, const struct ng_request *r)
{
	uint8_t from = call_side_by_tag(call, r->from_tag), found = SIDE_NONE;
	uint32_t others = 0;

	if (from != SIDE_NONE && call->side[from]->listener)
		return from; /* a listener that hangs up ends nobody's call */
	for (uint32_t i = 0; i < call->sides; i++) {
		const struct side *s = call->side[i];

		if (s->gone || i == from || s->peer != from)
			continue;
		if ((r->via_branch.len && str_eq(s->via_branch, r->via_branch)) ||
			(ng_flag(r, NG_FLAG_TO_TAG) && side_has_tag(s, r->to_tag)))
			found = (uint8_t)i;
		else
			others++;
	}
	return others ? found : SIDE_NONE;
}

static int end_branch(
	struct calls *c, struct pool *p, struct call *call, uint8_t branch, uint64_t now_ns)
{
	struct call *next = call_clone(&c->keys, call);
	struct side *s;
	int err;

	if (!next)
		return -ENOMEM;
	s = next->side[branch];
	s->gone = true;
	for (uint32_t i = 0; i < s->legs; i++)
		if (s->leg[i])
			s->leg[i]->used = false;
	for (uint32_t i = 0; i < next->sides; i++) {
		struct side *o = next->side[i];

		if (o->peer != branch)
			continue;
		o->peer = SIDE_NONE;
		for (uint32_t b = 0; b < next->sides; b++)
			if (!next->side[b]->gone && next->side[b]->peer == i)
				o->peer = (uint8_t)b;
	}
	err = apply_take(c->relay, call, next);
	if (err) {
		call_free(&c->keys, next);
		return err;
	}
	return calls_put_in_force(c, p, call, next, now_ns);
}

static bool tags_match(const struct call *call, const struct ng_request *r)
{
	if (!r->from_tag.len)
		return true;
	if (call_side_by_tag(call, r->from_tag) == SIDE_NONE)
		return false;
	return !ng_flag(r, NG_FLAG_TO_TAG) || !r->to_tag.len ||
		call_side_by_tag(call, r->to_tag) != SIDE_NONE;
}

void calls_delete(struct calls *c, struct pool *p, const struct ng_request *r, uint64_t now_ns,
	struct call_reply *out, struct ngval *dict)
{
	static const char nothing[] = "Call-ID not found or tags didn't match";
	uint64_t delay = r->delete_delay < 0
		? c->policy.delete_delay_ns
		: (uint64_t)(r->delete_delay < DELAY_MAX_S ? r->delete_delay : DELAY_MAX_S) *
			NS_PER_SEC;
	struct call *call;
	uint8_t branch;

	*out = (struct call_reply){0};
	if (!r->call_id.len) {
		out->error = "No call-id in message";
		return;
	}
	call = call_table_find(&c->table, r->call_id);
	if (!call || !tags_match(call, r)) {
		if (ng_flag(r, NG_FLAG_FATAL))
			out->error = nothing;
		else
			out->warning = str_from(nothing);
		return;
	}
	c->counters.deletes++;
	call->tap_discard |= ng_flag(r, NG_FLAG_DISCARD_RECORDING);
	if (!ng_flag(r, NG_FLAG_FAST))
		query_tree(c->relay, p, call, STR_NONE, STR_NONE, dict);
	branch = r->from_tag.len ? one_branch(call, r) : SIDE_NONE;
	if (branch != SIDE_NONE) {
		int err = end_branch(c, p, call, branch, now_ns);

		if (err)
			calls_resource_error(out, err, false);
	} else if (delay == 0) {
		calls_end(c, call);
	} else {
		call->delete_ns = now_ns + delay;
		save_changed(&c->saver, call, call);
	}
}

void calls_unlisten(struct calls *c, struct pool *p, const struct ng_request *r, uint64_t now_ns,
	struct call_reply *out)
{
	struct call *call = call_table_find(&c->table, r->call_id);
	uint8_t side = call ? call_side_by_tag(call, r->to_tag) : SIDE_NONE;
	int err;

	*out = (struct call_reply){0};
	if (!call) {
		out->error = "Unknown call-id";
		return;
	}
	if (side == SIDE_NONE || !call->side[side]->listener) {
		out->error = "Invalid dialogue association";
		return;
	}
	err = end_branch(c, p, call, side, now_ns);
	if (err)
		calls_resource_error(out, err, false);
}
