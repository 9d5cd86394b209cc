/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Processes an ng request: decodes the dictionary, executes the command (handler_commands.c),
 * writes, counts and logs the reply. Error-reasons are the protocol's; clients compare two of them
 * exactly. Never logs SDP bodies. */
#include "control/handler_int.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "call/call.h"
#include "call/explain.h"
#include "call/tick.h"
#include "control/reply.h"
#include "proto/bencode.h"
#include "proto/json.h"

#define LOG_EVERY_NS NS_PER_SEC

#define REASON_LIMIT NGE_SESSIONS
#define REASON_PORTS NGE_PORTS

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

void handler_on_role(struct handler *h, handler_role_fn *become, void *arg)
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

void handler_show(struct handler *h, const struct handler_web *web)
{
	h->web = web;
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

/* --- Requests ------------------------------------------------------------------------------ */

/* Read-only commands are polled by programs and people, so they are neither logged nor in a call's
 * history. */
static bool changes(enum ng_command c)
{
	return handler_command(c)->need & CHANGES;
}

/* Decodes and executes a request. The result is in j->reply and j->dict. */
static void run(struct job *j, const struct endpoint *from, struct str body)
{
	const struct command *c;
	struct ngval *msg = NULL;
	const char *control;
	size_t pos = 0;
	int err;

	err = j->enc == NG_JSON ? json_parse(&msg, j->p, body, &pos)
				: bencode_parse(&msg, j->p, body, &pos);
	if (err) {
		j->reply.error = err == -ENOMEM ? NGE_NOMEM
			: j->enc == NG_JSON     ? NGE_BAD_JSON
						: NGE_BAD_BENCODE;
		if (err == -EBADMSG)
			j->reply.detail = pool_printf(j->p, "at byte %zu", pos);
		return;
	}
	err = ng_request_parse_with(&j->r, j->p, msg, j->h->templates);
	if (err) {
		j->reply.error = err == -ENOKEY ? NGE_NO_COMMAND
			: err == -EOPNOTSUPP    ? handler_unknown(j->r.command_text)
						: NGE_NOMEM;
		return;
	}
	if (from)
		j->r.from = *from;
	control = ng_request_control(&j->r);
	if (control) {
		j->reply.error = NGE_BAD_VALUE;
		j->reply.detail = pool_printf(j->p, "control character in %s", control);
		return;
	}
	c = handler_command(j->r.command);
	j->reply.error = handler_missing(&j->r, c->need);
	j->debug = calls_debug(j->h->calls, j->r.call_id); /* the call may be gone afterwards */
	if (!j->reply.error)
		c->run(j);
	if (changes(j->r.command))
		calls_note(j->h->calls, &j->r, j->now_ns, j->reply.error, j->reply.detail);
	j->debug |= calls_debug(j->h->calls, j->r.call_id);
}

/* Clients compare these texts exactly, to decide whether to try another relay. */
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

/* These requests set up media. Their failures can fail a call, so they are logged by default. */
static bool is_exchange(enum ng_command c)
{
	return c == NG_OFFER || c == NG_ANSWER;
}

static void write_log(struct job *j)
{
	struct log_about about = {
		.call_id = j->r.call_id, .side = j->r.from_tag, .always = j->debug};
	const char *name = ng_command_name(j->r.command);
	char from[ENDPOINT_STRLEN];
	uint64_t held;

	/* malformed requests are only counted, because junk would fill the log */
	if (j->r.command == NG_NONE)
		log_debug("ng: %s", j->reply.error ? j->reply.error : "no command");
	else if (j->reply.load_limit &&
		!log_limit_pass(&j->h->log_load, j->now_ns, LOG_EVERY_NS, &held))
		return; /* load-limit errors come in thousands */
	else if (j->reply.load_limit)
		log_call(LOG_WARNING, &about, "%s: load limit: %s%s", name,
			j->reply.error ? j->reply.error : REASON_LIMIT,
			log_held((char[LOG_HELD]){0}, held));
	else if (j->reply.error)
		log_call(is_exchange(j->r.command) ? LOG_NOTICE : LOG_INFO, &about,
			"%s refused: %s%s" STR_FMT, name, j->reply.error,
			j->reply.detail.len ? ", " : "", STR_ARG(j->reply.detail));
	else
		log_call(changes(j->r.command) ? LOG_INFO : LOG_DEBUG, &about, "%s: ok%s%s", name,
			j->r.from.family ? ", from " : "",
			j->r.from.family ? endpoint_fmt(&j->r.from, from) : "");
	if (j->reply.notice.len)
		log_call(LOG_NOTICE, &about, "%s: " STR_FMT, name, STR_ARG(j->reply.notice));
	if (j->reply.kept.len)
		log_call(LOG_INFO, &about,
			"%s: this side keeps its profile; flags that the other side was "
			"set up with are not applied to it: " STR_FMT " (\"reset\" applies them)",
			name, STR_ARG(j->reply.kept));
	/* Only for operators' commands: those of scripts would repeat it with each call. */
	if (j->reply.warning.len && !is_exchange(j->r.command))
		log_call(LOG_WARNING, &about, "%s: " STR_FMT, name, STR_ARG(j->reply.warning));
	if (j->r.warning.len && log_limit_pass(&j->h->log_warning, j->now_ns, LOG_EVERY_NS, &held))
		log_call(LOG_WARNING, &about, "%s: " STR_FMT "%s", name, STR_ARG(j->r.warning),
			log_held((char[LOG_HELD]){0}, held));
}

/* Whether the reply of a planned change fits its limit. */
static bool planned_fits(void *arg, const struct call_reply *planned)
{
	struct job *j = arg;
	struct ngval *last = j->dict->last; /* so far it has only the result */
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

/* Replies without SDP must still show success or failure, even if their other content does not
 * fit. */
static void write_reply(struct job *j, struct ngval *tree, size_t start)
{
	bool done = tree && !j->reply.error && !j->reply.load_limit && !j->reply.sdp.s &&
		changes(j->r.command);

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

int handler_request(struct handler *h, struct pool *p, const struct handler_message *m,
	uint64_t now_ns, struct sbuf *reply)
{
	struct job j = {.h = h,
		.p = p,
		.to = reply,
		.enc = m->encoding,
		.now_ns = now_ns,
		.dict = ngval_dict(p)};
	struct ngval *result = ngval_add_str(p, j.dict, STR("result"), STR("error"));
	size_t start = reply->len;
	struct ngval *tree = NULL;
	uint64_t begun_ns = clock_mono_ns(), took_ns;
	struct calls_counters c = {0};

	calls_counters(h->calls, &c);
	interval_advance(&h->interval, now_ns, c.current, c.ended.duration_ns);
	if (result) {
		calls_reply_room(h->calls, planned_fits, &j);
		run(&j, m->from, m->body);
		calls_reply_room(h->calls, NULL, NULL);
		tree = reply_tree(&j, result);
	}
	h->count[j.r.command].requests++;
	write_reply(&j, tree, start);
	if (h->changed && changes(j.r.command))
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
