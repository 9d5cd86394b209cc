/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An offer or an answer on its way, also a publisher's and a listener's: read, negotiate on a copy,
 * take ports and keys, write the SDP, put in force. Whatever fails on the way, the call is as it
 * was (RFC 3264, RFC 4568). */
#include "offer/exchange.h"

#include <errno.h>

#include "base/secmem.h"
#include "base/hash.h"
#include "call/apply.h"
#include "call/call.h"
#include "call/calls.h"
#include "call/dialog.h"
#include "call/explain.h"
#include "call/lifetime.h"
#include "call/plan.h"
#include "call/recording.h"
#include "call/session.h"
#include "call/table.h"
#include "offer/edit.h"
#include "offer/loop_protect.h"
#include "offer/neg_answer.h"
#include "offer/neg_ice.h"
#include "offer/neg_offer.h"
#include "offer/reach_sdp.h"
#include "offer/sources.h"
#include "offer/subscribe.h"

struct exchange { /* an offer or an answer on its way */
	struct calls *c;
	struct pool *p;
	const struct ng_request *r;
	uint64_t now_ns;
	enum exchange_kind { OFFER, ANSWER, PUBLISH, LISTEN, LISTEN_ANSWER } kind;
	struct sdp *sdp;
	struct call *prev, *next;
	struct call_reply *out;
	struct ngval *dict; /* PUBLISH, LISTEN: what the reply says besides */
};

static bool parse_body(struct exchange *x)
{
	enum sdp_err err;
	struct str body = x->r->sdp;
	uint32_t line = 0;

	if (x->kind == LISTEN) { /* we offer, and say what the sources said */
		body = subscribe_body(x->p, x->prev, x->r, &x->out->error);
		if (!body.s)
			return false;
		x->out->error = NULL;
	}
	x->sdp = pool_alloc(x->p, sizeof(*x->sdp));
	if (!x->sdp) {
		x->out->error = NGE_NOMEM;
		return false;
	}
	err = sdp_parse(x->sdp, x->p, body, &line);
	if (err == SDP_OK)
		return true;
	x->out->error = err == SDP_ERR_NO_CONNECTION ? NGE_SDP_CONNECTION
		: err == SDP_ERR_NOMEM               ? NGE_NOMEM
						     : NGE_SDP;
	x->out->detail = pool_printf(x->p, "line %u: %s", (unsigned)line, sdp_err_text(err));
	return false;
}

/* Whether media may go where the SDP says. */
static bool is_allowed(struct exchange *x)
{
	x->out->error = reach_sdp(x->c, x->p, x->r, x->sdp, &x->out->detail);
	return !x->out->error;
}

/* A spiral: xcipher wrote this very SDP, so there is nothing to do. */
static bool is_loop(const struct exchange *x)
{
	return ng_flag(x->r, NG_FLAG_LOOP_PROTECT) &&
		loop_is_ours(&x->c->policy, x->r->call_id, x->sdp);
}

static bool copy_call(struct exchange *x)
{
	struct calls *c = x->c;

	if (x->prev) {
		x->next = call_clone(&c->keys, x->prev);
	} else {
		x->next = call_new(x->r->call_id, x->now_ns);
		if (x->next) {
			x->next->worker = c->relay->ops->worker_choose(c->relay->arg);
			x->next->learning = c->policy.learning;
			x->next->strict_source = c->policy.strict_source;
			x->next->short_tags = c->policy.short_tags;
			x->next->tos = c->policy.tos;
		}
	}
	if (!x->next) {
		x->out->error = NGE_NOMEM;
		return false;
	}
	if (ng_flag(x->r, NG_FLAG_DEBUG))
		x->next->debug = true;
	x->next->signal_ns = x->now_ns;
	return true;
}

/* Whether a key may be handed to somebody new depends on it. */
static void look_at_indexes(const struct exchange *x)
{
	const struct relay *r = x->c->relay;
	struct relay_stats st;

	for (uint32_t s = 0; s < x->next->sides; s++)
		for (uint32_t i = 0; i < x->next->side[s]->legs; i++) {
			struct leg *l = x->next->side[s]->leg[i];

			if (!l || !l->has_port || !l->rx.keys ||
				!(ng_flag(x->r, NG_FLAG_PASSTHROUGH) ||
					keying_asks_end_to_end(&l->keying)))
				continue;
			r->ops->stats(r->arg, x->next->worker, l->port.rtp_stream, &st);
			l->rx_roc = st.roc;
		}
}

/* Whether there are keying threads, and what SDP says of our certificate. */
static void look_at_host(const struct exchange *x, struct neg_in *in)
{
	const struct sessions *s = x->c->relay->sessions;
	enum dtls_hash hash = DTLS_SHA256;
	struct dtls_fingerprint sha256;

	in->sessions = s;
	in->host.zrtp_policy = x->c->policy.zrtp;
	for (int h = 0; h < DTLS_HASH_COUNT; h++)
		if (str_eq(x->r->dtls_hash, str_from(dtls_hash_name((enum dtls_hash)h))))
			hash = (enum dtls_hash)h;
	if (!s)
		return;
	in->host.dtls = s->ops->fingerprint(s->arg, &in->host.print, hash) == 0;
	in->host.sha1 = s->sha1;
	in->host.zrtp = s->zrtp;
	if (s->ops->fingerprint(s->arg, &sha256, DTLS_SHA256) == 0)
		in->host.cert = hash_siphash((const uint8_t[16]){0}, sha256.value, 32) | 1;
}

static bool negotiate(struct exchange *x, struct plan *plan, struct neg_in *in)
{
	static void (*const how[])(struct plan * out, struct call * next, struct neg_in * in) = {
		[OFFER] = negotiate_offer,
		[ANSWER] = negotiate_answer,
		[PUBLISH] = negotiate_publish,
		[LISTEN] = negotiate_subscribe,
		[LISTEN_ANSWER] = negotiate_subscribe_answer,
	};
	struct calls *c = x->c;
	int err;

	*in = (struct neg_in){.policy = &c->policy,
		.reach = c->reach,
		.r = x->r,
		.sdp = x->sdp,
		.random.len =
			(x->sdp->media_count + 1) * (KEYING_RANDOM_PER_MEDIA + NEG_ICE_RANDOM),
		.keys = &c->keys,
		.p = x->p,
		.call = x->next,
		.other = SIDE_NONE};
	in->locals = c->relay->ops->locals(c->relay->arg, &in->locals_n);
	look_at_host(x, in);
	in->random.at = pool_alloc(x->p, in->random.len);
	if (!in->random.at) {
		x->out->error = NGE_NOMEM;
		return false;
	}
	err = secmem_random(in->random.at, in->random.len);
	if (err) {
		calls_resource_error(x->out, err, !x->prev);
		return false;
	}
	look_at_indexes(x);
	how[x->kind](plan, x->next, in);
	x->out->error = plan->error;
	x->out->detail = plan->detail;
	x->out->warning = plan->warning;
	return !plan->error;
}

/* The flag of an offer or answer: what cannot be recorded is relayed all the same. */
static void record_from_now(struct exchange *x)
{
	struct call_reply said = {0};
	const struct call *call = call_table_find(&x->c->table, x->r->call_id);
	struct ng_request r = *x->r;

	if (!call || call->tap)
		return;
	r.from_tag = STR_NONE;
	calls_record(x->c, x->p, &r, CALL_RECORD_START, x->now_ns, &said, ngval_dict(x->p));
	if (said.error)
		x->out->warning = pool_printf(x->p, STR_FMT "%snot recorded: %s",
			STR_ARG(x->out->warning), x->out->warning.len ? "; " : "", said.error);
}

/* It is the dialog's, and not that of another one with the same Call-ID. */
static void mark_emergency(const struct exchange *x, const struct plan *plan)
{
	uint32_t sides = dialog_sides(x->next, plan->from) | dialog_sides(x->next, plan->to);
	bool on = ng_flag(x->r, NG_FLAG_EMERGENCY);

	for (uint32_t i = 0; i < x->next->sides; i++)
		on |= sides >> i & 1 && x->next->side[i]->emergency;
	for (uint32_t i = 0; on && i < x->next->sides; i++)
		x->next->side[i]->emergency |= sides >> i & 1;
	x->next->emergency |= on;
}

/* Of the two sides, or of the one that publishes or listens. A branch that waits with its answer
 * tells nothing of the caller. */
static void mark_signalled(const struct exchange *x, const struct plan *plan)
{
	struct side *from = x->next->side[plan->from], *to = x->next->side[plan->to];
	bool early = x->r->sip_code >= 100 && x->r->sip_code < 200;
	bool answer = x->kind == ANSWER || x->kind == PUBLISH;
	bool both = (x->kind == OFFER || x->kind == ANSWER) && !from->parked;

	lifetime_signalled(x->kind == LISTEN ? to : from, x->now_ns);
	if (both)
		lifetime_signalled(to, x->now_ns);
	if (answer)
		lifetime_answered(from, early);
	if (answer && both)
		lifetime_answered(to, early);
}

/* All that the reply says of the change, while it can still be refused. */
static bool can_be_sent(struct exchange *x, const struct plan *plan, struct str body)
{
	struct call_reply planned = *x->out;

	planned.sdp = body;
	if (x->kind == LISTEN)
		subscribe_reply(x->p, x->next, x->r, plan->to, x->dict);
	if (x->kind == PUBLISH) {
		ngval_add_str(x->p, x->dict, STR("call-id"), x->r->call_id);
		ngval_add_str(x->p, x->dict, STR("from-tag"), x->r->from_tag);
	}
	return !x->c->fits || x->c->fits(x->c->fits_arg, &planned);
}

static void change(struct exchange *x)
{
	struct plan plan;
	struct neg_in in;
	struct str body;
	int err;

	if (!copy_call(x))
		return;
	if (!negotiate(x, &plan, &in)) {
		call_free(&x->c->keys, x->next);
		return;
	}
	if (x->kind == OFFER || x->kind == ANSWER || x->kind == PUBLISH)
		x->next->delete_ns = x->next->deleted_ns =
			0; /* of the dialog that is to be deleted: negotiate_offer() */
	mark_emergency(x, &plan);
	mark_signalled(x, &plan);
	err = apply_take(x->c->relay, x->prev, x->next);
	if (err) {
		call_free(&x->c->keys, x->next);
		calls_resource_error(x->out, err, !x->prev);
		return;
	}
	body = x->kind == LISTEN_ANSWER
		? STR("")
		: edit_write(&plan, x->next, &in, x->kind == ANSWER || x->kind == PUBLISH);
	x->out->warning = plan.warning;
	if (!body.s || !can_be_sent(x, &plan, body)) {
		apply_undo(x->c->relay, x->prev, x->next);
		call_free(&x->c->keys, x->next);
		x->out->error = body.s ? NGE_TOO_LONG : NGE_SDP_WRITE;
		return;
	}
	err = calls_put_in_force(x->c, x->p, x->prev, x->next, x->now_ns);
	if (!err)
		explain_exchange(x->next, x->prev != NULL, x->sdp, plan.from, plan.to,
			x->kind == ANSWER || x->kind == LISTEN_ANSWER, x->now_ns);
	if (err)
		calls_resource_error(x->out, err, !x->prev);
	else if (x->kind != LISTEN_ANSWER)
		x->out->sdp = body;
	if (!err) {
		x->out->notice = plan.notice;
		x->out->kept = plan.kept;
		x->c->counters.weaker_by_order += plan.weaker_by_order;
		x->c->counters.weaker_by_terminal += plan.weaker_by_terminal;
	}
	if (!err && ng_flag(x->r, NG_FLAG_RECORD_CALL))
		record_from_now(x);
}

static const char *missing(const struct ng_request *r, bool is_answer)
{
	return !r->sdp.len                    ? NGE_NO_SDP
		: !r->call_id.len             ? NGE_NO_CALL_ID
		: !r->from_tag.len            ? NGE_NO_FROM_TAG
		: is_answer && !r->to_tag.len ? NGE_NO_TO_TAG
					      : NULL;
}

/* Another relay may have room for a new call. Not so for an emergency call: it is taken while there
 * is a port. */
static bool over_limit(struct calls *c, const struct ng_request *r, struct call_reply *out)
{
	static const char *const message[] = {[CALL_LIMIT_NONE] = NULL,
#define X(id, name, message) [CALL_LIMIT_##id] = message,
		CALL_LIMITS(X)
#undef X
	};
	enum call_limit limit = c->policy.max_calls && c->table.count >= c->policy.max_calls
		? CALL_LIMIT_SESSIONS
		: c->limit;

	if (c->passive)
		limit = CALL_LIMIT_STANDBY;
	else if (limit == CALL_LIMIT_NONE || ng_flag(r, NG_FLAG_EMERGENCY))
		return false;
	out->load_limit = true;
	out->error = message[limit];
	c->counters.refused++;
	c->counters.limited[limit]++;
	return true;
}

/* How an offer and an answer begin. True: there is something to negotiate. */
static bool begin(struct exchange *x)
{
	*x->out = (struct call_reply){.error = missing(x->r, x->kind == ANSWER)};
	if (x->out->error || !parse_body(x))
		return false;
	if (is_loop(x)) { /* before the addresses, which are media ports of this call */
		x->out->sdp = x->r->sdp;
		return false;
	}
	if (!is_allowed(x))
		return false;
	x->prev = call_table_find(&x->c->table, x->r->call_id);
	return true;
}

void calls_offer(struct calls *c, struct pool *p, const struct ng_request *r, uint64_t now_ns,
	struct call_reply *out)
{
	struct exchange x = {.c = c, .p = p, .r = r, .now_ns = now_ns, .out = out};

	if (!begin(&x) || ((!x.prev || dialog_is_new(x.prev, r)) && over_limit(c, r, out)))
		return;
	c->counters.offers++;
	change(&x);
	if (out->error && !x.prev)
		c->counters.refused++;
}

void calls_answer(struct calls *c, struct pool *p, const struct ng_request *r, uint64_t now_ns,
	struct call_reply *out)
{
	struct exchange x = {.c = c, .p = p, .r = r, .now_ns = now_ns, .kind = ANSWER, .out = out};

	if (!begin(&x))
		return;
	if (!x.prev) {
		out->error = NGE_UNKNOWN_CALL;
		return;
	}
	c->counters.answers++;
	change(&x);
}

/* --- One-way media ---------------------------------------------------------------------------- */

/* A name for who was given none. */
static struct str invent(struct pool *p, struct call_reply *out)
{
	uint64_t v[2];

	if (secmem_random(v, sizeof(v)))
		out->error = NGE_INTERNAL;
	return pool_printf(p, "%016llx%016llx", (unsigned long long)v[0], (unsigned long long)v[1]);
}

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
		named.call_id = invent(p, out);
	if (!named.from_tag.len)
		named.from_tag = invent(p, out);
	if (out->error || !parse_body(&x) || !is_allowed(&x))
		return;
	x.prev = call_table_find(&c->table, named.call_id);
	if (!x.prev && over_limit(c, &named, out))
		return;
	change(&x);
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
		named.to_tag = invent(p, out);
	/* Our own words: o= is ours, and its version goes up with what changes. */
	named.replace |= 1u << NG_REPLACE_ORIGIN | 1u << NG_REPLACE_SDP_VERSION |
		1u << NG_REPLACE_ZERO_ADDRESS;
	if (out->error || !parse_body(&x))
		return;
	change(&x);
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
	else if (parse_body(&x) && is_allowed(&x))
		change(&x);
}
