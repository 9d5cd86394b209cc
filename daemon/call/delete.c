/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ends a call by command: all of it, or one of its dialogs, branches of a fork, or listeners. */
#include "call/delete.h"

#include <errno.h>

#include "base/clock.h"
#include "call/apply.h"
#include "call/call.h"
#include "call/call_int.h"
#include "call/dialog.h"
#include "call/query.h"
#include "call/table.h"
#include "call/unsaved.h"

/* A year: far beyond any call, and far from where nanoseconds since 1970 wrap (2554). */
#define DELAY_MAX_S (365 * 86400ll)

int calls_end_sides(
	struct calls *c, struct pool *p, struct call *call, uint32_t sides, uint64_t now_ns)
{
	struct call *next = call_clone(&c->keys, call);
	int err;

	if (!next)
		return -ENOMEM;
	dialog_end_sides(next, sides);
	err = apply_take(c->relay, call, next);
	if (err) {
		call_free(&c->keys, next);
		return err;
	}
	return calls_put_in_force(c, p, call, next, now_ns);
}

void calls_delete(struct calls *c, struct pool *p, const struct ng_request *r, uint64_t now_ns,
	struct call_reply *out, struct ngval *dict)
{
	static const char *const nothing = NGE_NOTHING_DELETED;
	uint64_t delay = r->delete_delay < 0
		? c->policy.delete_delay_ns
		: (uint64_t)(r->delete_delay < DELAY_MAX_S ? r->delete_delay : DELAY_MAX_S) *
			NS_PER_SEC;
	enum dialog_end end;
	struct call *call;
	uint32_t sides = 0;

	*out = (struct call_reply){0};
	if (!r->call_id.len) {
		out->error = NGE_NO_CALL_ID;
		return;
	}
	call = call_table_find(&c->table, r->call_id);
	end = call ? dialog_delete(&sides, call, r) : DIALOG_END_NOTHING;
	if (end == DIALOG_END_NOTHING) {
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
	if (end == DIALOG_END_SIDES) {
		int err = calls_end_sides(c, p, call, sides, now_ns);

		if (err)
			calls_resource_error(out, err, false);
	} else if (delay == 0) {
		calls_end(c, call, CALL_END_DELETED, now_ns);
	} else {
		call->delete_ns = now_ns + delay;
		call->deleted_ns = now_ns;
		save_changed(&c->saver, call, call);
	}
}

void calls_unsubscribe(struct calls *c, struct pool *p, const struct ng_request *r, uint64_t now_ns,
	struct call_reply *out)
{
	struct call *call = call_table_find(&c->table, r->call_id);
	uint8_t side = call ? call_side_by_tag(call, r->to_tag) : SIDE_NONE;
	int err;

	*out = (struct call_reply){0};
	if (!call) {
		out->error = NGE_UNKNOWN_CALL;
		return;
	}
	if (side == SIDE_NONE || !call->side[side]->listener) {
		out->error = NGE_DIALOG;
		out->detail = STR("to-tag is of no subscription");
		return;
	}
	err = calls_end_sides(c, p, call, 1u << side, now_ns);
	if (err)
		calls_resource_error(out, err, false);
}
