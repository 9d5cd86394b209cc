/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Executes an offer or an answer, also of publishers and subscribers, step by step. If a step
 * fails, the call is unchanged (RFC 3264, RFC 4568). */
#include "offer/exchange_int.h"

#include "call/call_int.h"
#include "call/dialog.h"
#include "call/table.h"
#include "offer/exchange.h"

static void run(struct exchange *x)
{
	if (!exchange_copy(x))
		return;
	if (!exchange_negotiate(x)) {
		exchange_drop(x);
		return;
	}
	exchange_mark(x);
	if (!exchange_take(x)) {
		exchange_drop(x);
		return;
	}
	if (!exchange_write(x)) {
		exchange_undo(x);
		exchange_drop(x);
		return;
	}
	if (exchange_put_in_force(x))
		exchange_report(x);
}

void calls_offer(struct calls *c, struct pool *p, const struct ng_request *r, uint64_t now_ns,
	struct call_reply *out)
{
	struct exchange x = {.c = c, .p = p, .r = r, .now_ns = now_ns, .out = out};

	if (!exchange_begin(&x) ||
		((!x.prev || dialog_is_new(x.prev, r)) && exchange_over_limit(&x)))
		return;
	c->counters.offers++;
	run(&x);
	if (out->error && !x.prev)
		c->counters.refused++;
}

void calls_answer(struct calls *c, struct pool *p, const struct ng_request *r, uint64_t now_ns,
	struct call_reply *out)
{
	struct exchange x = {.c = c, .p = p, .r = r, .now_ns = now_ns, .kind = ANSWER, .out = out};

	if (!exchange_begin(&x))
		return;
	if (!x.prev) {
		out->error = NGE_UNKNOWN_CALL;
		return;
	}
	c->counters.answers++;
	run(&x);
}

/* --- One-way media ---------------------------------------------------------------------------- */

void calls_publish(struct calls *c, struct pool *p, const struct ng_request *r, uint64_t now_ns,
	struct call_reply *out, struct ngval *dict)
{
	struct ng_request named = *r;
	struct exchange x = {.c = c,
		.p = p,
		.r = &named,
		.now_ns = now_ns,
		.kind = PUBLISH,
		.out = out,
		.dict = dict};

	*out = (struct call_reply){.error = r->sdp.len ? NULL : NGE_NO_SDP};
	if (!named.call_id.len)
		named.call_id = exchange_draw_name(p, out);
	if (!named.from_tag.len)
		named.from_tag = exchange_draw_name(p, out);
	if (out->error || !exchange_parse(&x) || !exchange_is_allowed(&x))
		return;
	x.prev = call_table_find(&c->table, named.call_id);
	if (!x.prev && exchange_over_limit(&x))
		return;
	run(&x);
	c->counters.refused += out->error && !x.prev;
}

void calls_subscribe(struct calls *c, struct pool *p, const struct ng_request *r, uint64_t now_ns,
	struct call_reply *out, struct ngval *dict)
{
	struct ng_request named = *r;
	struct exchange x = {.c = c,
		.p = p,
		.r = &named,
		.now_ns = now_ns,
		.kind = LISTEN,
		.out = out,
		.dict = dict};

	*out = (struct call_reply){0};
	x.prev = call_table_find(&c->table, r->call_id);
	if (!x.prev)
		out->error = NGE_UNKNOWN_CALL;
	else if (!r->from_tag.len && !r->from_tags_n && !r->label.len && !r->address.len &&
		!ng_flag(r, NG_FLAG_ALL))
		out->error = NGE_NO_FROM_TAG;
	else if (!named.to_tag.len)
		named.to_tag = exchange_draw_name(p, out);
	/* The SDP is ours: so is o=, whose version rises with changes. */
	named.replace |= 1u << NG_REPLACE_ORIGIN | 1u << NG_REPLACE_SDP_VERSION |
		1u << NG_REPLACE_ZERO_ADDRESS;
	if (out->error || !exchange_parse(&x))
		return;
	run(&x);
}

void calls_subscribe_answer(struct calls *c, struct pool *p, const struct ng_request *r,
	uint64_t now_ns, struct call_reply *out)
{
	struct exchange x = {
		.c = c, .p = p, .r = r, .now_ns = now_ns, .kind = LISTEN_ANSWER, .out = out};

	*out = (struct call_reply){0};
	x.prev = call_table_find(&c->table, r->call_id);
	if (!x.prev)
		out->error = NGE_UNKNOWN_CALL;
	else if (exchange_parse(&x) && exchange_is_allowed(&x))
		run(&x);
}
