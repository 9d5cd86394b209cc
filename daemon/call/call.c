/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calls from the outside: offer, answer, delete, list, counters, timers. Each change goes copy, negotiate, take, write, commit,
 * replace; whatever fails on the way, the call is as it was. Control thread only; logs nothing. */
#include "call/call.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/secmem.h"
#include "call/negotiate.h"
#include "call/save.h"

#define TRACE_NS (10 * NS_PER_SEC)
#define TICK_MAX 4096u /* calls looked at per run */

struct calls {
	struct call_policy policy;
	const struct relay *relay;
	struct call_table table;
	struct keystore keys;
	enum call_limit limit; /* reached, other than sessions */
	bool passive;
	struct call *cursor; /* of the tick */
	struct calls_counters counters;
	struct saver saver;
	void (*notice)(void *arg, const struct call_key_notice *n);
	void *notice_arg;
	struct trace trace;
	const struct recorder *rec;
};

int calls_create(struct calls **out, const struct call_policy *policy, const struct relay *relay)
{
	struct calls *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return -ENOMEM;
	c->policy = *policy;
	c->relay = relay;
	err = call_table_init(&c->table);
	err = err ? err : saver_init(&c->saver, &c->table, relay);
	if (err) {
		call_table_fini(&c->table);
		free(c);
		return err;
	}
	*out = c;
	return 0;
}

/* What a call holds, into the counters or out of them. */
static void account(struct calls *c, const struct call *call, bool in)
{
	uint64_t one = in ? 1 : UINT64_MAX;

	for (uint32_t s = 0; s < call->sides; s++)
		for (uint32_t i = 0; i < call->side[s]->legs; i++) {
			const struct leg *l = call->side[s]->leg[i];

			if (!l || !l->has_port)
				continue;
			c->counters.streams += 2 * one;
			if (l->active)
				c->counters.suite[l->rx.master.suite] += one;
		}
}

static void end_call(struct calls *c, struct call *call)
{
	if (c->cursor == call)
		c->cursor = call->next;
	trace_call(&c->trace, c->relay, call);
	if (call->tap)
		c->rec->ops->stop(c->rec->arg, call->tap, call->tap_discard);
	account(c, call, false);
	view_ended(c->relay, call, &c->counters.ended);
	save_ended(&c->saver, call);
	call_table_remove(&c->table, call);
	apply_release_all(c->relay, call);
	call_free(&c->keys, call);
}

void calls_destroy(struct calls *c)
{
	if (!c)
		return;
	while (c->table.first)
		end_call(c, c->table.first);
	saver_fini(&c->saver);
	call_table_fini(&c->table);
	keystore_fini(&c->keys);
	free(c);
}

/* --- Changing a call -------------------------------------------------------------------------------------------- */

static void resource_error(struct call_reply *out, int err, bool is_new)
{
	switch (err) {
	case -ENOSPC:
		out->error = "Ran out of ports";
		break;
	case -ENOMEM:
		out->error = "Out of memory";
		break;
	case -EAGAIN: /* another relay may have time */
		out->load_limit = is_new;
		out->error = is_new ? "Load limit exceeded" : "Relay is busy";
		break;
	default:
		out->error = "Internal error";
		out->detail = str_from(strerrordesc_np(-err));
	}
}

/* Next takes prev's place, or becomes a call (prev is NULL). Consumes next, whatever happens. */
static int put_in_force(
	struct calls *c, struct pool *p, struct call *prev, struct call *next, uint64_t now_ns)
{
	int err = apply_commit(c->relay, p, prev, next, now_ns, NULL, 0);

	if (err) {
		call_free(&c->keys, next);
		return err;
	}
	if (prev)
		account(c, prev, false);
	account(c, next, true);
	next->traced_ns = now_ns;
	trace_call(&c->trace, c->relay, next);
	c->counters.emergencies += next->emergency && !(prev && prev->emergency);
	if (!prev) {
		call_table_add(&c->table, next);
		c->counters.total++;
		save_changed(&c->saver, NULL, next);
		return 0;
	}
	call_table_replace(&c->table, prev, next);
	save_changed(&c->saver, prev, next);
	if (c->cursor == prev)
		c->cursor = next;
	call_free(&c->keys, prev);
	return 0;
}

struct exchange { /* an offer or an answer on its way */
	struct calls *c;
	struct pool *p;
	const struct ng_request *r;
	uint64_t now_ns;
	enum exchange_kind { OFFER, ANSWER, PUBLISH, LISTEN, LISTEN_ANSWER } kind;
	struct sdp *sdp;
	struct call *prev, *next;
	uint8_t to; /* side that is told, once it is in force */
	struct call_reply *out;
};

static bool parse_body(struct exchange *x)
{
	enum sdp_err err;
	struct str body = x->r->sdp;
	uint32_t line = 0;

	if (x->kind == LISTEN) { /* we offer, and say what the sources said */
		body = listen_body(x->p, x->prev, x->r, &x->out->error);
		if (!body.s)
			return false;
		x->out->error = NULL;
	}
	x->sdp = pool_alloc(x->p, sizeof(*x->sdp));
	if (!x->sdp) {
		x->out->error = "Out of memory";
		return false;
	}
	err = sdp_parse(x->sdp, x->p, body, &line);
	if (err == SDP_OK)
		return true;
	x->out->error = err == SDP_ERR_NO_CONNECTION ? "Incomplete SDP specification"
		: err == SDP_ERR_NOMEM               ? "Out of memory"
						     : "Failed to parse SDP";
	x->out->detail = pool_printf(x->p, "line %u: %s", (unsigned)line, sdp_err_text(err));
	return false;
}

/* It went through us before: whoever did that has what it needs. */
static bool is_loop(const struct exchange *x)
{
	const struct sdp_line *l;

	if (!ng_flag(x->r, NG_FLAG_LOOP_PROTECT))
		return false;
	for (l = sdp_attr(x->sdp->session, STR("xcipher")); l;
		l = sdp_attr(l->next, STR("xcipher")))
		if (str_eq(l->arg, str_from(x->c->policy.loop_id)))
			return true;
	return false;
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
			x->next->tos = c->policy.tos;
		}
	}
	if (!x->next) {
		x->out->error = "Out of memory";
		return false;
	}
	if (ng_flag(x->r, NG_FLAG_DEBUG))
		x->next->debug = true;
	if (ng_flag(x->r, NG_FLAG_EMERGENCY))
		x->next->emergency = true;
	x->next->signal_ns = x->now_ns;
	x->next->delete_ns = 0;
	return true;
}

static bool negotiate(struct exchange *x, struct plan *plan, struct neg_in *in)
{
	static void (*const how[])(struct plan * out, struct call * next, struct neg_in * in) = {
		[OFFER] = negotiate_offer,
		[ANSWER] = negotiate_answer,
		[PUBLISH] = negotiate_publish,
		[LISTEN] = negotiate_listen,
		[LISTEN_ANSWER] = negotiate_listen_answer,
	};
	struct calls *c = x->c;
	int err;

	*in = (struct neg_in){.policy = &c->policy,
		.r = x->r,
		.sdp = x->sdp,
		.random_len = NEG_RANDOM_LEN(x->sdp->media_count + 1),
		.keys = &c->keys,
		.p = x->p};
	in->locals = c->relay->ops->locals(c->relay->arg, &in->locals_n);
	in->random = pool_alloc(x->p, in->random_len);
	if (!in->random) {
		x->out->error = "Out of memory";
		return false;
	}
	err = secmem_random(in->random, in->random_len);
	if (err) {
		resource_error(x->out, err, !x->prev);
		return false;
	}
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
	err = apply_take(x->c->relay, x->prev, x->next);
	if (err) {
		call_free(&x->c->keys, x->next);
		resource_error(x->out, err, !x->prev);
		return;
	}
	body = x->kind == LISTEN_ANSWER
		? STR("")
		: edit_write(&plan, x->next, &in, x->kind == ANSWER || x->kind == PUBLISH);
	x->out->warning = plan.warning;
	if (!body.s) {
		apply_undo(x->c->relay, x->prev, x->next);
		call_free(&x->c->keys, x->next);
		x->out->error = "Error rewriting SDP";
		return;
	}
	err = put_in_force(x->c, x->p, x->prev, x->next, x->now_ns);
	x->to = plan.to;
	if (err)
		resource_error(x->out, err, !x->prev);
	else if (x->kind != LISTEN_ANSWER)
		x->out->sdp = body;
	if (!err && ng_flag(x->r, NG_FLAG_RECORD_CALL))
		record_from_now(x);
}

static const char *missing(const struct ng_request *r, bool is_answer)
{
	return !r->sdp.len                    ? "No SDP body in message"
		: !r->call_id.len             ? "No call-id in message"
		: !r->from_tag.len            ? "No from-tag in message"
		: is_answer && !r->to_tag.len ? "No to-tag in message"
					      : NULL;
}

void calls_set_policy(struct calls *c, const struct call_policy *policy)
{
	struct call_policy next = *policy;

	memcpy(next.loop_id, c->policy.loop_id, sizeof(next.loop_id));
	c->policy = next;
}

void calls_limit(struct calls *c, enum call_limit reached)
{
	c->limit = reached;
}

/* Another relay may have room for a new call. Not so for an emergency call: it is taken while there is a port. */
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

void calls_offer(struct calls *c, struct pool *p, const struct ng_request *r, uint64_t now_ns,
	struct call_reply *out)
{
	struct exchange x = {.c = c, .p = p, .r = r, .now_ns = now_ns, .out = out};

	*out = (struct call_reply){.error = missing(r, false)};
	if (out->error || !parse_body(&x))
		return;
	if (is_loop(&x)) {
		out->sdp = r->sdp;
		return;
	}
	x.prev = call_table_find(&c->table, r->call_id);
	if (!x.prev && over_limit(c, r, out))
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

	*out = (struct call_reply){.error = missing(r, true)};
	if (out->error || !parse_body(&x))
		return;
	if (is_loop(&x)) {
		out->sdp = r->sdp;
		return;
	}
	x.prev = call_table_find(&c->table, r->call_id);
	if (!x.prev) {
		out->error = "Unknown call-id";
		return;
	}
	c->counters.answers++;
	change(&x);
}

/* --- One-way media ---------------------------------------------------------------------------------------------- */

/* A name for who was given none. */
static struct str invent(struct pool *p, struct call_reply *out)
{
	uint64_t v[2];

	if (secmem_random(v, sizeof(v)))
		out->error = "Internal error";
	return pool_printf(p, "%016llx%016llx", (unsigned long long)v[0], (unsigned long long)v[1]);
}

void calls_publish(struct calls *c, struct pool *p, const struct ng_request *r, uint64_t now_ns,
	struct call_reply *out, struct ngval *dict)
{
	struct ng_request named = *r;
	struct exchange x = {
		.c = c, .p = p, .r = &named, .now_ns = now_ns, .kind = PUBLISH, .out = out};

	*out = (struct call_reply){.error = r->sdp.len ? NULL : "No SDP body in message"};
	if (!named.call_id.len)
		named.call_id = invent(p, out);
	if (!named.from_tag.len)
		named.from_tag = invent(p, out);
	if (out->error || !parse_body(&x))
		return;
	x.prev = call_table_find(&c->table, named.call_id);
	if (!x.prev && over_limit(c, &named, out))
		return;
	change(&x);
	if (out->error) {
		c->counters.refused += !x.prev;
		return;
	}
	ngval_add_str(p, dict, STR("call-id"), named.call_id);
	ngval_add_str(p, dict, STR("from-tag"), named.from_tag);
}

void calls_listen(struct calls *c, struct pool *p, const struct ng_request *r, uint64_t now_ns,
	struct call_reply *out, struct ngval *dict)
{
	struct ng_request named = *r;
	struct exchange x = {
		.c = c, .p = p, .r = &named, .now_ns = now_ns, .kind = LISTEN, .out = out};

	*out = (struct call_reply){0};
	x.prev = call_table_find(&c->table, r->call_id);
	if (!x.prev)
		out->error = "Unknown call-id";
	else if (!r->from_tag.len && !r->from_tags_n && !ng_flag(r, NG_FLAG_ALL))
		out->error = "No from-tag in message";
	else if (!named.to_tag.len)
		named.to_tag = invent(p, out);
	/* Our own words: o= is ours, and its version goes up with what changes. */
	named.replace |= 1u << NG_REPLACE_ORIGIN | 1u << NG_REPLACE_SDP_VERSION |
		1u << NG_REPLACE_ZERO_ADDRESS;
	if (out->error || !parse_body(&x))
		return;
	change(&x);
	if (!out->error)
		listen_reply(p, call_table_find(&c->table, r->call_id), x.to, dict);
}

void calls_listen_answer(struct calls *c, struct pool *p, const struct ng_request *r,
	uint64_t now_ns, struct call_reply *out)
{
	struct exchange x = {
		.c = c, .p = p, .r = r, .now_ns = now_ns, .kind = LISTEN_ANSWER, .out = out};

	*out = (struct call_reply){0};
	x.prev = call_table_find(&c->table, r->call_id);
	if (!x.prev)
		out->error = "Unknown call-id";
	else if (parse_body(&x))
		change(&x);
}

/* --- Delete ----------------------------------------------------------------------------------------------------- */

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
	return put_in_force(c, p, call, next, now_ns);
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
	uint64_t delay = r->delete_delay < 0 ? c->policy.delete_delay_ns
					     : (uint64_t)r->delete_delay * NS_PER_SEC;
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
			resource_error(out, err, false);
	} else if (delay == 0) {
		end_call(c, call);
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
		resource_error(out, err, false);
}

/* --- Gates ------------------------------------------------------------------------------------------------------ */

void calls_gate(struct calls *c, struct pool *p, const struct ng_request *r, uint8_t gate, bool on,
	uint64_t now_ns, struct call_reply *out)
{
	struct call *call = call_table_find(&c->table, r->call_id), *next;
	int err;

	*out = (struct call_reply){0};
	if (!call) {
		out->error = "Unknown call-id";
		return;
	}
	next = call_clone(&c->keys, call);
	if (!next) {
		out->error = "Out of memory";
		return;
	}
	out->error = gate_set(next, r, gate, on);
	if (out->error) {
		call_free(&c->keys, next);
		return;
	}
	err = put_in_force(c, p, call, next, now_ns);
	if (err)
		resource_error(out, err, false);
}

/* --- Calls that outlive us -------------------------------------------------------------------------------------- */

struct saver *calls_saver(struct calls *c)
{
	return &c->saver;
}

struct keystore *calls_keys(struct calls *c)
{
	return &c->keys;
}

void calls_adopt(struct calls *c, struct call *call)
{
	account(c, call, true);
	c->counters.emergencies += call->emergency;
	c->counters.total++;
	call_table_add(&c->table, call);
	save_changed(&c->saver, NULL, call);
}

void calls_passive(struct calls *c, bool passive)
{
	c->passive = passive;
}

void calls_leave(struct calls *c)
{
	c->saver.on = false;
	while (c->table.first)
		end_call(c, c->table.first);
}

/* --- Recording -------------------------------------------------------------------------------------------------- */

void calls_recorder(struct calls *c, const struct recorder *rec)
{
	c->rec = rec;
}

static const char *record_error(int err)
{
	switch (err) {
	case -EINVAL:
		return "Recording file is not a plain file name";
	case -ENOSPC:
		return "Too many recordings";
	case -EAGAIN:
		return "Recorder is busy";
	default:
		return "Recording cannot be started";
	}
}

/* Opens a recording for the copy of a call that has none. */
static const char *record_open(struct calls *c, struct pool *p, struct call *next,
	const struct ng_request *r, uint64_t now_ns)
{
	char path[RECORD_PATH_MAX];
	struct record_start start = {.call_id = next->id,
		.metadata = r->metadata.len ? r->metadata : next->metadata,
		.file = r->recording_file,
		.pattern = r->recording_pattern,
		.about = record_about(p, next),
		.now_ns = now_ns};
	int err = c->rec->ops->start(c->rec->arg, &start, &next->tap, path);

	if (err)
		return record_error(err);
	if (str_replace(&next->tap_path, str_from(path))) {
		c->rec->ops->stop(c->rec->arg, next->tap, true);
		return "Out of memory";
	}
	return NULL;
}

static void record_reply(struct pool *p, const struct call *call, struct ngval *dict)
{
	struct ngval *d = ngval_add_dict(p, dict, STR("recording"));

	ngval_add_str(p, d, STR("file"), pool_printf(p, STR_FMT ".pcap", STR_ARG(call->tap_path)));
	ngval_add_str(p, d, STR("metadata file"),
		pool_printf(p, STR_FMT ".txt", STR_ARG(call->tap_path)));
}

void calls_record(struct calls *c, struct pool *p, const struct ng_request *r,
	enum call_record what, uint64_t now_ns, struct call_reply *out, struct ngval *dict)
{
	struct call *call = call_table_find(&c->table, r->call_id), *next;
	uint32_t tap;
	bool opened;
	int err;

	*out = (struct call_reply){0};
	if (!call || !c->rec) {
		out->error = call ? "Recording is off: xcipherd was started without --recording-dir"
				  : "Unknown call-id";
		return;
	}
	next = call_clone(&c->keys, call);
	if (!next) {
		out->error = "Out of memory";
		return;
	}
	out->error = record_mark(next, r, &what);
	opened = !out->error && what == CALL_RECORD_START && !next->tap;
	if (opened)
		out->error = record_open(c, p, next, r, now_ns);
	if (out->error) {
		call_free(&c->keys, next);
		return;
	}
	record_reply(p, next, dict);
	tap = next->tap;
	if (what == CALL_RECORD_STOP)
		next->tap = 0;
	err = put_in_force(c, p, call, next, now_ns);
	if (err)
		resource_error(out, err, false);
	/* Either what was opened for nothing, or what is over. */
	if (err ? opened : what == CALL_RECORD_STOP)
		c->rec->ops->stop(
			c->rec->arg, tap, opened || ng_flag(r, NG_FLAG_DISCARD_RECORDING));
}

/* --- Looking at calls ------------------------------------------------------------------------------------------- */

void calls_query(struct calls *c, struct pool *p, const struct ng_request *r, uint64_t now_ns,
	struct call_reply *out, struct ngval *dict)
{
	const struct call *call;

	(void)now_ns;
	*out = (struct call_reply){0};
	if (!r->call_id.len) {
		out->error = "No call-id in message";
		return;
	}
	call = call_table_find(&c->table, r->call_id);
	if (!call)
		out->error = "Unknown call-id";
	else
		query_tree(c->relay, p, call, r->from_tag, r->to_tag, dict);
}

void calls_list(struct calls *c, struct pool *p, uint32_t limit, struct ngval *dict)
{
	struct ngval *list = ngval_add_list(p, dict, STR("calls"));
	const struct call *call = c->table.first;

	for (uint32_t i = 0; call && i < limit; i++, call = call->next)
		ngval_add_str(p, list, STR_NONE, call->id);
}

void calls_view(
	struct calls *c, struct pool *p, struct str part, uint32_t limit, struct ngval *dict)
{
	struct ngval *list = ngval_add_list(p, dict, STR("calls"));
	uint32_t matched = 0;

	for (const struct call *call = c->table.last; call; call = call->prev)
		if (view_matches(call, part) && matched++ < limit)
			view_call(c->relay, p, call, list);
	ngval_add_int(p, dict, STR("matched"), matched);
}

void calls_each_port(const struct calls *c,
	void (*fn)(void *arg, struct str call_id, uint32_t worker, const struct relay_port *port),
	void *arg)
{
	for (const struct call *call = c->table.first; call; call = call->next)
		for (uint32_t s = 0; s < call->sides; s++)
			for (uint32_t i = 0; i < call->side[s]->legs; i++) {
				const struct leg *l = call->side[s]->leg[i];

				if (l && l->has_port)
					fn(arg, call->id, call->worker, &l->port);
			}
}

void calls_counters(const struct calls *c, struct calls_counters *out)
{
	*out = c->counters;
	out->current = c->table.count;
}

/* --- Timers ----------------------------------------------------------------------------------------------------- */

struct life {
	uint64_t last_ns; /* anything authentic, or signalling */
	bool held;        /* nobody both sends and receives */
};

static struct life life_of(const struct calls *c, const struct call *call)
{
	struct life l = {.last_ns = call->signal_ns, .held = true};

	/* Nobody can have sent to us while we were not there. */
	if (call->resumed_ns > l.last_ns)
		l.last_ns = call->resumed_ns;

	for (uint32_t s = 0; s < call->sides; s++)
		for (uint32_t i = 0; i < call->side[s]->legs; i++) {
			const struct leg *leg = call->side[s]->leg[i];
			struct relay_stats st;

			if (!leg || !leg->has_port)
				continue;
			if (leg->active && call->side[s]->publisher && leg->dir != SDP_DIR_INACTIVE)
				l.held = false;
			if (leg->active && call->side[s]->peer != SIDE_NONE) {
				const struct side *peer = call->side[call->side[s]->peer];
				const struct leg *o = side_leg_get(peer, i);

				if (o && o->active && leg->dir == SDP_DIR_SENDRECV &&
					o->dir == SDP_DIR_SENDRECV)
					l.held = false;
			}
			for (int k = 0; k < 2; k++) {
				c->relay->ops->stats(c->relay->arg, call->worker,
					k ? leg->port.rtcp_stream : leg->port.rtp_stream, &st);
				if (st.last_packet_ns > l.last_ns)
					l.last_ns = st.last_packet_ns;
			}
		}
	return l;
}

static bool is_over(struct calls *c, const struct call *call, uint64_t now_ns)
{
	uint64_t limit;
	struct life l;

	if (call->delete_ns)
		return now_ns >= call->delete_ns;
	l = life_of(c, call);
	limit = !call->answered ? c->policy.offer_timeout_ns
		: l.held        ? c->policy.silent_timeout_ns
				: c->policy.timeout_ns;
	if (limit == 0 || now_ns < l.last_ns || now_ns - l.last_ns < limit)
		return false;
	c->counters.timeouts++;
	return true;
}

void calls_on_key_life(
	struct calls *c, void (*notice)(void *arg, const struct call_key_notice *n), void *arg)
{
	c->notice = notice;
	c->notice_arg = arg;
}

void calls_on_trace(
	struct calls *c, void (*trace)(void *arg, const struct call_trace *line), void *arg)
{
	c->trace = (struct trace){trace, arg};
}

bool calls_set_debug(struct calls *c, struct str call_id, bool on)
{
	struct call *call = call_table_find(&c->table, call_id);

	if (!call)
		return false;
	call->debug = on;
	trace_call(&c->trace, c->relay, call);
	return true;
}

bool calls_debug(const struct calls *c, struct str call_id)
{
	const struct call *call = call_id.len ? call_table_find(&c->table, call_id) : NULL;

	return call && call->debug;
}

/* How it goes, now and then. */
static void trace_again(struct calls *c, struct call *call, uint64_t now_ns)
{
	if (!call->debug || now_ns < call->traced_ns + TRACE_NS)
		return;
	call->traced_ns = now_ns;
	trace_call(&c->trace, c->relay, call);
}

static void key_life(struct calls *c, const struct call *call, uint32_t slot, enum key_life *told,
	struct call_key_notice n)
{
	struct media_key_usage u;
	enum key_life life;

	if (slot == 0)
		return;
	c->relay->ops->key_usage(c->relay->arg, call->worker, slot, &u);
	life = u.expired ? LIFE_OVER : u.warned ? LIFE_NEARLY_OVER : LIFE_LEFT;
	if (life <= *told)
		return;
	*told = life;
	n.expired = life == LIFE_OVER;
	n.lifetime = u.lifetime;
	c->notice(c->notice_arg, &n);
}

static void keys_life(struct calls *c, struct call *call)
{
	for (uint32_t s = 0; s < call->sides && c->notice; s++)
		for (uint32_t i = 0; i < call->side[s]->legs; i++) {
			struct leg *l = call->side[s]->leg[i];
			struct call_key_notice n = {
				.call_id = call->id, .tag = call->side[s]->tag, .media = i + 1};

			if (!l || !l->committed)
				continue;
			for (uint32_t k = 0; k < SDES_MAX_KEYS; k++)
				key_life(c, call, l->rx_slot[k], &l->rx_told[k], n);
			n.ours = true;
			key_life(c, call, l->tx_slot, &l->tx_told, n);
		}
}

void calls_tick(struct calls *c, uint64_t now_ns)
{
	uint32_t n = min_u32(TICK_MAX, c->table.count);

	while (n-- && c->table.first) {
		struct call *call = c->cursor ? c->cursor : c->table.first;

		c->cursor = call->next;
		if (is_over(c, call, now_ns)) {
			end_call(c, call);
			continue;
		}
		keys_life(c, call);
		trace_again(c, call, now_ns);
	}
}
