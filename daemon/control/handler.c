/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From an ng dictionary to a handler of call/ and back to a dictionary: one table says what each
 * command must have and who does it. Reasons are those that clients of the protocol know; two of
 * them they compare exactly. Never logs SDP bodies. */
#include "control/handler.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "control/reply.h"
#include "control/statistics.h"

#define LIST_DEFAULT 32u
#define LIST_MAX     4096u
#define CALLS_BYTES  49152u /* of 65507 in a datagram; the rest of the reply needs some */
#define LOG_EVERY_NS NS_PER_SEC

#define REASON_LIMIT "Parallel session limit reached"
#define REASON_PORTS "Ran out of ports"

struct handler {
	struct calls *calls;
	struct stats_source stats;
	const char *(*become)(void *arg, bool active);
	void *become_arg;
	void (*changed)(void *arg);
	void *changed_arg;
	handler_operate_fn *operate;
	void *operate_arg;
	const struct ng_templates *templates;
	uint64_t start_ns;                            /* CLOCK_MONOTONIC */
	struct handler_count count[NG_COMMAND_COUNT]; /* [NG_NONE]: never became a command */
	struct interval interval;
	uint64_t duplicates, drops[NG_DROP_COUNT];
	struct log_limit log_warning, log_load;
};

/* One request on its way through. */
struct job {
	struct handler *h;
	struct pool *p;
	struct sbuf *to;
	enum ng_encoding enc;
	struct ng_request r;
	uint64_t now_ns;
	struct call_reply reply;
	struct ngval *dict; /* what the handler adds to the reply */
	bool debug;         /* its call is debugged */
};

int handler_create(
	struct handler **out, struct calls *calls, struct stats_source stats, uint64_t mono_ns)
{
	struct handler *h = calloc(1, sizeof(*h));

	if (!h)
		return -ENOMEM;
	h->calls = calls;
	h->stats = stats;
	h->start_ns = mono_ns;
	*out = h;
	return 0;
}

void handler_on_role(struct handler *h, const char *(*become)(void *arg, bool active), void *arg)
{
	h->become = become;
	h->become_arg = arg;
}

void handler_on_change(struct handler *h, void (*changed)(void *arg), void *arg)
{
	h->changed = changed;
	h->changed_arg = arg;
}

void handler_templates(struct handler *h, const struct ng_templates *templates)
{
	h->templates = templates;
}

void handler_operator(struct handler *h, handler_operate_fn *operate, void *arg)
{
	h->operate = operate;
	h->operate_arg = arg;
}

void handler_destroy(struct handler *h)
{
	free(h);
}

struct handler_count handler_count(const struct handler *h, enum ng_command c)
{
	return h->count[c];
}

uint64_t handler_duplicates(const struct handler *h)
{
	return h->duplicates;
}

void handler_count_duplicate(struct handler *h)
{
	h->duplicates++;
}

uint64_t handler_drops(const struct handler *h, enum ng_drop reason)
{
	return h->drops[reason];
}

void handler_count_drops(struct handler *h, enum ng_drop reason, uint32_t n)
{
	h->drops[reason] += n;
}

const char *handler_drop_name(enum ng_drop reason)
{
	static const char *const names[NG_DROP_COUNT] = {
#define X(id, name, text) name,
		NG_DROPS(X)
#undef X
	};

	return names[reason];
}

/* --- Commands ------------------------------------------------------------------------------ */

static void do_ping(struct job *j)
{
	(void)j;
}

/* Trickle ICE (RFC 8840): it has nothing for us, and must not fail. */
static bool is_fragment(struct job *j)
{
	if (ng_flag(&j->r, NG_FLAG_FRAGMENT))
		j->reply.warning = STR("ICE is not there yet: the fragment was ignored");
	return ng_flag(&j->r, NG_FLAG_FRAGMENT);
}

static void do_offer(struct job *j)
{
	if (is_fragment(j))
		return;
	calls_offer(j->h->calls, j->p, &j->r, j->now_ns, &j->reply);
}

static void do_answer(struct job *j)
{
	if (is_fragment(j))
		return;
	calls_answer(j->h->calls, j->p, &j->r, j->now_ns, &j->reply);
}

static void do_delete(struct job *j)
{
	calls_delete(j->h->calls, j->p, &j->r, j->now_ns, &j->reply, j->dict);
}

static void do_query(struct job *j)
{
	calls_query(j->h->calls, j->p, &j->r, j->now_ns, &j->reply, j->dict);
}

static void gate(struct job *j, uint8_t which, bool on)
{
	calls_gate(j->h->calls, j->p, &j->r, which, on, j->now_ns, &j->reply);
}

static void do_block_media(struct job *j)
{
	gate(j, MEDIA_GATE_MEDIA, true);
}

static void do_unblock_media(struct job *j)
{
	gate(j, MEDIA_GATE_MEDIA, false);
}

static void do_block_dtmf(struct job *j)
{
	gate(j, MEDIA_GATE_DTMF, true);
}

static void do_unblock_dtmf(struct job *j)
{
	gate(j, MEDIA_GATE_DTMF, false);
}

static void do_silence_media(struct job *j)
{
	gate(j, MEDIA_GATE_QUIET, true);
}

static void do_unsilence_media(struct job *j)
{
	gate(j, MEDIA_GATE_QUIET, false);
}

static void do_connect(struct job *j)
{
	calls_connect(j->h->calls, j->p, &j->r, j->now_ns, &j->reply);
}

static void do_publish(struct job *j)
{
	calls_publish(j->h->calls, j->p, &j->r, j->now_ns, &j->reply, j->dict);
}

static void do_subscribe_request(struct job *j)
{
	calls_listen(j->h->calls, j->p, &j->r, j->now_ns, &j->reply, j->dict);
}

static void do_subscribe_answer(struct job *j)
{
	calls_listen_answer(j->h->calls, j->p, &j->r, j->now_ns, &j->reply);
}

static void do_unsubscribe(struct job *j)
{
	calls_unlisten(j->h->calls, j->p, &j->r, j->now_ns, &j->reply);
}

static void record(struct job *j, enum call_record what)
{
	calls_record(j->h->calls, j->p, &j->r, what, j->now_ns, &j->reply, j->dict);
}

static void do_start_recording(struct job *j)
{
	record(j, CALL_RECORD_START);
}

static void do_pause_recording(struct job *j)
{
	record(j, CALL_RECORD_PAUSE);
}

static void do_stop_recording(struct job *j)
{
	record(j, ng_flag(&j->r, NG_FLAG_PAUSE) ? CALL_RECORD_PAUSE : CALL_RECORD_STOP);
}

static void do_list(struct job *j)
{
	int64_t limit = j->r.limit < 0 ? LIST_DEFAULT : j->r.limit;

	calls_list(j->h->calls, j->p, (uint32_t)(limit > LIST_MAX ? LIST_MAX : limit), j->dict);
}

static void do_calls(struct job *j)
{
	int64_t limit = j->r.limit < 0 ? LIST_DEFAULT : j->r.limit;

	const struct calls_look look = {.part = j->r.part,
		.filter = j->r.find,
		.sort = j->r.sort,
		.after = j->r.after,
		.limit = (uint32_t)(limit > LIST_MAX ? LIST_MAX : limit),
		.bytes = CALLS_BYTES};

	j->reply.error = calls_view(j->h->calls, j->p, &look, j->now_ns, j->dict);
}

static void do_explain(struct job *j)
{
	j->reply.error = calls_explain(j->h->calls, j->p, j->r.call_id, j->now_ns, j->dict);
}

static void do_debug(struct job *j)
{
	bool off = str_eq_nocase(j->r.state, STR("off"));

	if (j->r.state.len && !off && !str_eq_nocase(j->r.state, STR("on")))
		j->reply.error = "debug is on or off";
	else if (!calls_set_debug(j->h->calls, j->r.call_id, !off))
		j->reply.error = "Unknown call-id";
}

static void do_operate(struct job *j)
{
	const struct handler *h = j->h;

	j->reply.error = h->operate ? h->operate(h->operate_arg, &j->r, j->p, j->dict)
				    : "Not supported here";
}

static void do_statistics(struct job *j)
{
	struct ngval *dict = ngval_add_dict(j->p, j->dict, STR("statistics"));
	const struct handler *h = j->h;
	struct calls_counters c = {0};
	const struct statistics s = {.calls = &c,
		.count = h->count,
		.interval = &h->interval,
		.duplicates = h->duplicates,
		.drops = h->drops,
		.uptime_ns = clock_mono_ns() - h->start_ns};

	calls_counters(h->calls, &c);
	statistics_fill(&s, j->p, dict);
	if (h->stats.fill && dict)
		h->stats.fill(h->stats.arg, j->p, dict);
}

static void do_role(struct job *j)
{
	const struct handler *h = j->h;

	j->reply.error = h->become ? h->become(h->become_arg, j->r.command == NG_ACTIVE)
				   : "There is no Redis to share calls by";
}

#define NEED_SDP      0x1u
#define NEED_CALL_ID  0x2u
#define NEED_FROM_TAG 0x4u
#define NEED_TO_TAG   0x8u
#define CHANGES       0x10u /* more than its reply */

static const struct command {
	void (*run)(struct job *j);
	uint32_t need;
} commands[NG_COMMAND_COUNT] = {
	[NG_PING] = {do_ping, 0},
	[NG_OFFER] = {do_offer, NEED_SDP | NEED_CALL_ID | NEED_FROM_TAG},
	[NG_ANSWER] = {do_answer, NEED_SDP | NEED_CALL_ID | NEED_FROM_TAG | NEED_TO_TAG},
	[NG_DELETE] = {do_delete, NEED_CALL_ID | CHANGES},
	[NG_QUERY] = {do_query, NEED_CALL_ID},
	[NG_LIST] = {do_list, 0},
	[NG_STATISTICS] = {do_statistics, 0},
	[NG_ACTIVE] = {do_role, CHANGES},
	[NG_STANDBY] = {do_role, CHANGES},
	[NG_CALLS] = {do_calls, 0},
	[NG_EXPLAIN] = {do_explain, NEED_CALL_ID},
	[NG_DEBUG] = {do_debug, NEED_CALL_ID | CHANGES},
	[NG_LIMITS_COMMAND] = {do_operate, CHANGES},
	[NG_DRAIN] = {do_operate, CHANGES},
	[NG_LOG_LEVEL] = {do_operate, CHANGES},
	[NG_RELOAD] = {do_operate, CHANGES},
	[NG_PUBLISH] = {do_publish, NEED_SDP},
	[NG_SUBSCRIBE_REQUEST] = {do_subscribe_request, NEED_CALL_ID},
	[NG_SUBSCRIBE_ANSWER] = {do_subscribe_answer,
		NEED_SDP | NEED_CALL_ID | NEED_TO_TAG | CHANGES},
	[NG_UNSUBSCRIBE] = {do_unsubscribe, NEED_CALL_ID | NEED_TO_TAG | CHANGES},
	[NG_SILENCE_MEDIA] = {do_silence_media, NEED_CALL_ID | CHANGES},
	[NG_UNSILENCE_MEDIA] = {do_unsilence_media, NEED_CALL_ID | CHANGES},
	[NG_BLOCK_MEDIA] = {do_block_media, NEED_CALL_ID | CHANGES},
	[NG_UNBLOCK_MEDIA] = {do_unblock_media, NEED_CALL_ID | CHANGES},
	[NG_BLOCK_DTMF] = {do_block_dtmf, NEED_CALL_ID | CHANGES},
	[NG_CONNECT] = {do_connect, NEED_CALL_ID | NEED_FROM_TAG | NEED_TO_TAG | CHANGES},
	[NG_UNBLOCK_DTMF] = {do_unblock_dtmf, NEED_CALL_ID | CHANGES},
	[NG_START_RECORDING] = {do_start_recording, NEED_CALL_ID | CHANGES},
	[NG_PAUSE_RECORDING] = {do_pause_recording, NEED_CALL_ID | CHANGES},
	[NG_STOP_RECORDING] = {do_stop_recording, NEED_CALL_ID | CHANGES},
};

/* --- Requests ------------------------------------------------------------------------------ */

static const char *missing(const struct ng_request *r, uint32_t need)
{
	if (need & NEED_SDP && !r->sdp.len)
		return "No SDP body in message";
	if (need & NEED_CALL_ID && !r->call_id.len)
		return "No call-id in message";
	if (need & NEED_FROM_TAG && !r->from_tag.len)
		return "No from-tag in message";
	if (need & NEED_TO_TAG && !r->to_tag.len)
		return "No to-tag in message";
	return NULL;
}

/* Commands other relays know. Who operates the proxy must see at once whether the command was
 * misspelled, or this relay cannot do it. */
static const struct handler_refusal refusals[] = {
	{"play media", "Not supported: needs an audio codec, and this relay has none"},
	{"stop media", "Not supported: needs an audio codec, and this relay has none"},
	{"play DTMF", "Not supported: needs an audio codec, and this relay has none"},
	{"transform", "Not supported: needs an audio codec, and this relay has none"},
	{"inject start", "Not supported: needs an audio codec to mix, and this relay has none"},
	{"inject stop", "Not supported: needs an audio codec to mix, and this relay has none"},
	{"start forwarding", "Not supported: use start recording"},
	{"stop forwarding", "Not supported: use stop recording"},
	{"mesh", "Not supported: this relay does not join calls"},
	{"create", "Not supported: this relay does not make media of its own"},
	{"create answer", "Not supported: this relay does not make media of its own"},
	{"cli", "Not supported: use xcipherctl"},
};

const struct handler_refusal *handler_refusals(size_t *n)
{
	*n = sizeof(refusals) / sizeof(refusals[0]);
	return refusals;
}

static const char *unknown_reason(struct str command)
{
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++)
		if (ng_spelled_like(command, str_from(refusals[i].command)))
			return refusals[i].reason;
	return "Unrecognized command";
}

/* Polled by programs and people: neither logged nor part of a call's history. */
static bool only_looks(enum ng_command c)
{
	return c == NG_PING || c == NG_QUERY || c == NG_LIST || c == NG_STATISTICS ||
		c == NG_CALLS || c == NG_EXPLAIN;
}

/* Decode and carry out; what there is to say ends up in j->reply and j->dict. */
static void run(struct job *j, const struct endpoint *from, struct str body, enum ng_encoding enc)
{
	const struct command *c;
	struct ngval *msg = NULL;
	const char *control;
	size_t pos = 0;
	int err;

	err = enc == NG_JSON ? json_parse(&msg, j->p, body, &pos)
			     : bencode_parse(&msg, j->p, body, &pos);
	if (err) {
		j->reply.error = err == -ENOMEM ? "Out of memory"
			: enc == NG_JSON        ? "Could not decode JSON dictionary"
						: "Could not decode bencode dictionary";
		if (err == -EBADMSG)
			j->reply.detail = pool_printf(j->p, "at byte %zu", pos);
		return;
	}
	err = ng_request_parse_with(&j->r, j->p, msg, j->h->templates);
	if (err) {
		j->reply.error = err == -ENOKEY ? "Dictionary contains no key \"command\""
			: err == -EOPNOTSUPP    ? unknown_reason(j->r.command_text)
						: "Out of memory";
		return;
	}
	if (from)
		j->r.from = *from;
	control = ng_request_control(&j->r);
	if (control) {
		j->reply.error = "Invalid value";
		j->reply.detail = pool_printf(j->p, "control character in %s", control);
		return;
	}
	c = &commands[j->r.command];
	j->reply.error = missing(&j->r, c->need);
	j->debug = calls_debug(j->h->calls, j->r.call_id); /* it may be gone afterwards */
	if (!j->reply.error)
		c->run(j);
	if (!only_looks(j->r.command))
		calls_note(j->h->calls, &j->r, j->now_ns, j->reply.error);
	j->debug |= calls_debug(j->h->calls, j->r.call_id);
}

/* Clients decide by these whether to try another relay, and compare them exactly. */
static bool compared_exactly(const char *reason)
{
	return !strcmp(reason, REASON_LIMIT) || !strcmp(reason, REASON_PORTS);
}

static struct ngval *error_tree(struct pool *p, const char *reason, struct str detail)
{
	struct ngval *d = ngval_dict(p);
	struct str text = str_from(reason);

	if (detail.len && !compared_exactly(reason))
		text = pool_printf(p, "%s (" STR_FMT ")", reason, STR_ARG(detail));
	ngval_add_str(p, d, STR("result"), STR("error"));
	ngval_add_str(p, d, STR("error-reason"), text);
	return d;
}

static struct str join(struct pool *p, struct str a, struct str b)
{
	if (!a.len || !b.len)
		return a.len ? a : b;
	return pool_printf(p, STR_FMT "; " STR_FMT, STR_ARG(a), STR_ARG(b));
}

static struct ngval *reply_tree(struct job *j, struct ngval *result)
{
	const struct call_reply *r = &j->reply;
	struct ngval *d = j->dict;
	struct str warning;

	if (r->load_limit && j->r.supports_load_limit) {
		d = ngval_dict(j->p);
		ngval_add_str(j->p, d, STR("result"), STR("load limit"));
		ngval_add_str(
			j->p, d, STR("message"), str_from(r->error ? r->error : REASON_LIMIT));
	} else if (r->load_limit) {
		d = error_tree(j->p, REASON_LIMIT, STR_NONE);
	} else if (r->error) {
		d = error_tree(j->p, r->error, r->detail);
	} else {
		result->str = j->r.command == NG_PING ? STR("pong") : STR("ok");
		if (r->sdp.s)
			ngval_add_str(j->p, d, STR("sdp"), r->sdp);
	}
	warning = join(j->p, j->r.warning, r->warning);
	if (warning.len)
		ngval_add_str(j->p, d, STR("warning"), warning);
	return d;
}

static void write_log(struct job *j)
{
	struct log_about about = {
		.call_id = j->r.call_id, .side = j->r.from_tag, .always = j->debug};
	const char *name = ng_command_name(j->r.command);
	char from[ENDPOINT_STRLEN];
	uint64_t held;

	/* what never became a request is only counted, or junk would fill the log */
	if (j->r.command == NG_NONE)
		log_debug("ng: %s", j->reply.error ? j->reply.error : "no command");
	else if (j->reply.load_limit &&
		!log_limit_pass(&j->h->log_load, j->now_ns, LOG_EVERY_NS, &held))
		return; /* they come by the thousand when they come */
	else if (j->reply.load_limit)
		log_call(LOG_WARNING, &about, "%s: load limit: %s (%llu more held back)", name,
			j->reply.error ? j->reply.error : REASON_LIMIT, (unsigned long long)held);
	else if (j->reply.error)
		log_call(LOG_INFO, &about, "%s: %s%s" STR_FMT, name, j->reply.error,
			j->reply.detail.len ? ", " : "", STR_ARG(j->reply.detail));
	else
		log_call(only_looks(j->r.command) ? LOG_DEBUG : LOG_INFO, &about, "%s: ok%s%s",
			name, j->r.from.family ? ", from " : "",
			j->r.from.family ? endpoint_fmt(&j->r.from, from) : "");
	if (j->reply.notice.len)
		log_call(LOG_NOTICE, &about, "%s: " STR_FMT, name, STR_ARG(j->reply.notice));
	if (j->reply.kept.len)
		log_call(LOG_INFO, &about,
			"%s: this side keeps what it speaks; flags that the other side was "
			"set up with are not applied to it: " STR_FMT " (\"reset\" applies them)",
			name, STR_ARG(j->reply.kept));
	if (j->r.warning.len && log_limit_pass(&j->h->log_warning, j->now_ns, LOG_EVERY_NS, &held))
		log_call(LOG_WARNING, &about, "%s: " STR_FMT " (%llu more held back)", name,
			STR_ARG(j->r.warning), (unsigned long long)held);
}

/* Whether the reply of a change that is not in force yet can be sent. */
static bool planned_fits(void *arg, const struct call_reply *planned)
{
	struct job *j = arg;
	struct ngval *last = j->dict->last; /* there is the result */
	struct str warning = join(j->p, j->r.warning, planned->warning);
	bool fits;

	ngval_add_str(j->p, j->dict, STR("sdp"), planned->sdp);
	if (warning.len)
		ngval_add_str(j->p, j->dict, STR("warning"), warning);
	fits = !pool_failed(j->p) && reply_fits(j->to, j->dict, j->enc);
	last->next = NULL;
	j->dict->last = last;
	return fits;
}

/* A command without SDP in its reply was carried out, or failed: which of the two must reach the client. */
static void write_reply(struct job *j, struct ngval *tree, size_t start)
{
	bool done = tree && !j->reply.error && !j->reply.load_limit && !j->reply.sdp.s &&
		commands[j->r.command].need & CHANGES;

	reply_write(j->to, pool_failed(j->p) ? NULL : tree, j->enc);
	if (!j->to->err)
		return;
	log_warn("%s: reply %s", ng_command_name(j->r.command),
		j->to->err == -EMSGSIZE ? "is too long" : "needs too much memory");
	if (done) {
		reply_write_done(j->to, start, j->enc);
		return;
	}
	reply_write_error(j->to, start, j->enc);
	j->reply.error = "no reply";
}

/* Those with SDP in their reply do, too. */
static bool changes_calls(enum ng_command c)
{
	return commands[c].need & (CHANGES | NEED_SDP) || c == NG_SUBSCRIBE_REQUEST;
}

int handler_request(struct handler *h, struct pool *p, const struct endpoint *from, struct str body,
	enum ng_encoding enc, uint64_t now_ns, struct sbuf *reply)
{
	struct job j = {
		.h = h, .p = p, .to = reply, .enc = enc, .now_ns = now_ns, .dict = ngval_dict(p)};
	struct ngval *result = ngval_add_str(p, j.dict, STR("result"), STR("error"));
	size_t start = reply->len;
	struct ngval *tree = NULL;
	uint64_t begun_ns = clock_mono_ns(), took_ns;
	struct calls_counters c = {0};

	calls_counters(h->calls, &c);
	interval_advance(&h->interval, now_ns, c.current, c.ended.duration_ns);
	if (result) {
		calls_reply_room(h->calls, planned_fits, &j);
		run(&j, from, body, enc);
		calls_reply_room(h->calls, NULL, NULL);
		tree = reply_tree(&j, result);
	}
	h->count[j.r.command].requests++;
	write_reply(&j, tree, start);
	if (h->changed && changes_calls(j.r.command))
		h->changed(h->changed_arg);
	if (j.reply.error || j.reply.load_limit)
		h->count[j.r.command].errors++;
	took_ns = clock_mono_ns() - begun_ns;
	h->count[j.r.command].ns += took_ns;
	calls_counters(h->calls, &c);
	interval_count(&h->interval, now_ns, j.r.command, took_ns, c.current);
	write_log(&j);
	return j.reply.again ? -EAGAIN : 0;
}

void handler_reject(struct handler *h, struct pool *p, enum ng_encoding enc, const char *reason,
	struct sbuf *reply)
{
	size_t start = reply->len;

	h->count[NG_NONE].requests++;
	h->count[NG_NONE].errors++;
	reply_write(reply, error_tree(p, reason, STR_NONE), enc);
	if (reply->err)
		reply_write_error(reply, start, enc);
}
