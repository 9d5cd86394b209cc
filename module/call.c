/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A script function from the message to the result. sync.c or async.c does the exchange in between,
 * so call_finish() may run in another process than call_run(), with only the context. Never logs a
 * body. */
#include "call.h"

#include <stdio.h>
#include <string.h>

#include <core/dprint.h>
#include <core/mem/mem.h>

#include "settings.h"
#include "sip.h"

/* A flag of ng. The daemon warns of it by name. */
#define RTP_ANSWER "allow-RTP-answer"
#define TOO_LOW    "security too low"

struct last last;

/* A body may have keys. */
static void drop(struct kept *k)
{
	if (!k->s)
		return;
	wire_wipe(k->s, k->len);
	pkg_free(k->s);
}

static void last_reset(void)
{
	drop(&last.json);
	drop(&last.sdp);
	memset(&last, 0, sizeof(last));
}

static int code_of(enum verdict v, enum op op)
{
	switch (v) {
	case V_OK:
	case V_SUSPENDED:
		return 200;
	case V_NO_NODE:
	case V_LOAD:
		return 503;
	case V_MESSAGE:
		return 400;
	case V_POLICY:
		return 488;
	case V_REFUSED:
		return op == OP_FRAGMENT ? 400 : op_has_sdp(op) ? 488 : 500;
	default:
		return 500;
	}
}

const char *call_phrase(int code)
{
	switch (code) {
	case 200:
		return "OK";
	case 400:
		return "Bad Request";
	case 488:
		return "Not Acceptable Here";
	case 503:
		return "Service Unavailable";
	default:
		return code >= 500 ? "Server Internal Error" : "Refused";
	}
}

const char *call_sip_warning(void)
{
	static const char *const keying[] = {"MIKEY exchange failed", "No common crypto suite",
		"No usable crypto line in answer", "DTLS-SRTP is not available"};
	static char text[WIRE_REASON + 16];
	bool public = false;

	for (size_t i = 0; i < sizeof(keying) / sizeof(keying[0]); i++)
	public |= strncmp(last.reason, keying[i], strlen(keying[i])) == 0;
	if (!public || last.verdict != V_REFUSED)
		return "";
	snprintf(text, sizeof(text), "399 xcipher \"%s\"", last.reason);
	for (char *p = strchr(text, '"') + 1; p[0] && p[1]; p++)
		if (*p == '"' || *p == '\\')
			*p = '\'';
	return text;
}

static enum verdict end(enum op op, enum verdict v, const char *reason)
{
	last.verdict = v;
	last.code = code_of(v, op);
	if (reason && v != V_OK)
		snprintf(last.reason, sizeof(last.reason), "%s", reason);
	return v;
}

/* --- Policy --------------------------------------------------------------------------------- */

static void use_fallback(struct context *c, const char *what)
{
	size_t n = strlen(c->fallback);

	snprintf(c->fallback + n, sizeof(c->fallback) - n, "%s%s", n ? "," : "", what);
	counter_inc(counters.emergency_fallbacks);
	LM_NOTICE("emergency call %.*s: fall-back \"%s\" used\n", (int)c->call_id.len, c->call_id.s,
		what);
}

/* Whether media with these suites may pass although they violate the policy. */
static bool lets_pass(struct context *c, const char *suites)
{
	if (c->policy.emergency) {
		const char *need = strcmp(suites, "none") ? "suites" : "rtp";

		if (policy_allows(settings.emergency_fallback, need)) {
			use_fallback(c, need);
			return true;
		}
	} else if (c->policy.downgrade) {
		counter_inc(counters.policy_downgraded);
		snprintf(last.warning, sizeof(last.warning), "%.200s: below the required security",
			suites);
		LM_WARN("call %.*s: %s\n", (int)c->call_id.len, c->call_id.s, last.warning);
		return true;
	}
	counter_inc(counters.policy_refused);
	return false;
}

static bool has(struct text t, const char *what)
{
	return t.len && memmem(t.s, t.len, what, strlen(what));
}

/* The leg that the body came from: each media needs a permitted suite. Opportunistic SRTP does not
 * count unless the daemon accepts it. */
static bool policy_in(struct context *c, const struct wire_request *r, struct text flags)
{
	bool answer = c->job.op == OP_ANSWER;
	char suites[POLICY_LIST];

	return !c->policy.require_in ||
		policy_body(c->policy.require_in, r->sdp, answer, answer || has(flags, "OSRTP"),
			suites) ||
		lets_pass(c, suites);
}

/* The leg that the daemon wrote. The flags demanded SRTP, but other flags or the other side may
 * have selected RTP. */
static bool policy_out(struct context *c, const struct wire_reply *reply)
{
	char suites[POLICY_LIST];

	return !c->policy.require_out ||
		policy_body(
			c->policy.require_out, reply->sdp, true, c->job.op == OP_ANSWER, suites) ||
		lets_pass(c, suites);
}

/* An emergency call may use any suite if the operator permits it, because the other side's choice
 * is unknown before it answers. */
static void widen(struct context *c, char *flags, size_t *len)
{
	size_t n;

	if (!c->policy.emergency || !policy_allows(settings.emergency_fallback, "suites"))
		return;
	n = policy_loosen(flags, *len, false);
	if (n == *len && !c->policy.require_out)
		return;
	*len = n;
	c->policy.require_out = 0;
	counter_inc(counters.emergency_widened);
	LM_NOTICE("emergency call %.*s: limits on suites lifted\n", (int)c->call_id.len,
		c->call_id.s);
}

/* Flags for the answering point, as DTLS=NENA. The caller must not get them, so an answer and a
 * request within the dialog have none. */
static const char *offer_words(const struct context *c)
{
	bool first = c->job.op == OP_OFFER && !c->to_tag.len && !c->rtp;

	return first && settings.emergency_offer ? settings.emergency_offer : "";
}

/* The flags that demand it from the daemon on the leg it writes. */
static size_t policy_words(char *out, size_t size, struct context *c)
{
	size_t n;

	out[0] = 0;
	if (c->job.op == OP_FRAGMENT)
		return (size_t)snprintf(out, size, "fragment");
	if (c->policy.require_out)
		policy_flags(out, size, c->policy.require_out);
	n = strlen(out);
	if (c->policy.emergency)
		n += (size_t)snprintf(out + n, size - n, " emergency%s%s%s %s %s",
			c->rtp ? " RTP/AVP" : "",
			c->job.op == OP_ANSWER && policy_allows(settings.emergency_fallback, "rtp")
				? " " RTP_ANSWER
				: "",
			policy_allows(settings.emergency_fallback, "rtp") ? " ZRTP=fallback" : "",
			settings.emergency_flags ? settings.emergency_flags : "", offer_words(c));
	return n < size ? n : 0;
}

/* A failure route offers the call again, with RTP, for terminals that refuse SRTP. */
static bool retry_in_rtp(struct context *c, char *flags, size_t *len)
{
	if (!c->policy.emergency || !policy_allows(settings.emergency_fallback, "rtp"))
		return false;
	*len = policy_loosen(flags, *len, true);
	c->policy.require_out = 0;
	c->rtp = true;
	use_fallback(c, "rtp");
	return true;
}

int call_loosen(struct context *c, const struct wire_reply *reply, char *buf, size_t size,
	const char *cookie)
{
	char flags[4096];
	struct text datagram = {c->job.msg, c->job.len};
	size_t len;
	bool rtp = policy_allows(settings.emergency_fallback, "rtp");
	int n;

	if (!c->policy.emergency || c->retried || !reply || reply->result != WIRE_ERROR ||
		(c->job.op != OP_OFFER && c->job.op != OP_ANSWER) ||
		!(rtp || policy_allows(settings.emergency_fallback, "suites")))
		return 0;
	len = wire_flags(flags, sizeof(flags), datagram);
	len = policy_loosen(flags, len, rtp);
	n = wire_rewrite(buf, size, sign_now(), datagram, (struct text){cookie, strlen(cookie)},
		(struct text){flags, len});
	if (n <= 0)
		return 0;
	c->retried = true;
	use_fallback(c, rtp ? "rtp" : "suites");
	return n;
}

static void detect_emergency(struct context *c, struct sip_msg *msg, enum op op)
{
	bool known = nodes_is_emergency(c->call_id, c->from_tag, c->to_tag);
	bool first = op == OP_OFFER && msg->first_line.type == SIP_REQUEST && !c->to_tag.len;

	if (!c->policy.emergency)
		c->policy.emergency = (known && !first) || sip_is_emergency(msg);
	/* Remove the mark of an earlier call with the same Call-ID and tag. */
	if (first && known && !c->policy.emergency)
		nodes_mark_emergency(c->call_id, c->from_tag, false);
	if (!c->policy.emergency || known || op != OP_OFFER)
		return;
	nodes_mark_emergency(c->call_id, c->from_tag, true);
	counter_inc(counters.emergency_calls);
	LM_NOTICE("emergency call %.*s\n", (int)c->call_id.len, c->call_id.s);
}

/* --- End of a call --------------------------------------------------------------------------- */

static enum verdict verdict_of(const struct context *c, const struct wire_reply *reply)
{
	if (!reply)
		return V_NO_NODE;
	switch (reply->result) {
	case WIRE_OK:
	case WIRE_PONG:
		return V_OK;
	case WIRE_LOAD_LIMIT:
		return V_LOAD;
	case WIRE_NO_CALL:
		/* The node of the call is gone; the terminal's SDP is not at fault. */
		return c->job.op == OP_DELETE    ? V_OK
			: c->job.op == OP_ANSWER ? V_NO_NODE
						 : V_REFUSED;
	default:
		return V_REFUSED;
	}
}

/* The offerer's and the answerer's leg. Before an answer, the offerer and the receiver of the
 * offer. */
static void note_suites(struct context *c, const struct wire_reply *reply)
{
	char out[WIRE_SUITES];
	bool offer = c->job.op == OP_OFFER;

	if (c->job.op == OP_QUERY) {
		strcpy(last.suite_from, reply->from_suite);
		strcpy(last.suite_to, reply->to_suite);
		last.sas_from = reply->from_sas;
		last.sas_to = reply->to_sas;
		strcpy(last.mikey_from, reply->from_peer);
		strcpy(last.mikey_to, reply->to_peer);
		return;
	}
	if (!reply->sdp.len)
		return;
	wire_sdp_suites(out, sizeof(out), reply->sdp);
	strcpy(last.suite_from, offer ? c->in_suites : out);
	strcpy(last.suite_to, offer ? out : c->in_suites);
}

/* NULL if there is none, or no memory. */
static void keep(struct kept *to, struct text t)
{
	to->s = t.len ? pkg_malloc(t.len) : NULL;
	to->len = to->s ? t.len : 0;
	if (to->s)
		memcpy(to->s, t.s, t.len);
}

static enum verdict apply(struct sip_msg *msg, struct context *c, const struct wire_reply *reply)
{
	enum op op = c->job.op;

	note_suites(c, reply);
	keep(&last.json, reply->json);
	if (op_has_sdp(op)) {
		if (!reply->sdp.len)
			return end(op, V_REFUSED, "no SDP in the daemon's reply");
		if (!policy_out(c, reply)) {
			if (op_begins(op) && !c->to_tag.len)
				call_undo(c);
			return end(op, V_POLICY, TOO_LOW);
		}
		if (op != OP_PUBLISH && sip_replace_body(msg, reply->sdp))
			return end(op, V_INTERNAL, "the body could not be replaced");
		if (op == OP_PUBLISH)
			keep(&last.sdp, reply->sdp);
	}
	if (op_begins(op))
		nodes_placed(c->call_id, job_target(&c->job)->id);
	return end(op, V_OK, NULL);
}

/* node NULL: the node that has the call. */
static void send_delete(const struct context *c, const struct target *node)
{
	struct context d = {.job.op = OP_DELETE,
		.job.set = c->job.set,
		.call_id = c->call_id,
		.from_tag = c->from_tag,
		.via_branch = c->via_branch};
	const struct wire_request r = {.command = op_name(OP_DELETE),
		.call_id = c->call_id,
		.from_tag = c->from_tag,
		.via_branch = c->via_branch,
		.flags = TEXT("delete-delay=0")};

	if (node) {
		d.job.pinned = true;
		d.job.targets = 1;
		d.job.target[0] = *node;
	}
	async_start(NULL, &d, &r);
}

void call_undo(const struct context *c)
{
	nodes_placed(c->call_id, job_target(&c->job)->id);
	send_delete(c, NULL);
}

void call_recall(const struct context *c)
{
	for (int i = 0; op_begins(c->job.op) && !c->to_tag.len && i < c->job.targets; i++)
		if (c->job.silent >> i & 1)
			send_delete(c, &c->job.target[i]);
}

enum verdict call_finish(struct sip_msg *msg, struct context *c, const struct wire_reply *reply)
{
	enum verdict v = verdict_of(c, reply);
	char warning[WIRE_WARNING];

	strcpy(warning, last.warning);
	last_reset();
	strcpy(last.warning, warning);
	last.emergency = c->policy.emergency;
	strcpy(last.fallback, c->fallback);
	call_recall(c);
	if (c->job.op == OP_DELETE && !c->job.pinned)
		nodes_forget(
			/* one of several forks: the others find their node through the hash */
			c->call_id);
	counter_inc(!reply               ? counters.failures
			: v == V_REFUSED ? counters.refused
					 : counters.replies);
	if (reply) {
		snprintf(last.node, sizeof(last.node), "%s", job_target(&c->job)->id);
		if (reply->warning[0])
			strcpy(last.warning, reply->warning);
		if (c->policy.emergency && strstr(reply->warning, RTP_ANSWER)) {
			use_fallback(c, "rtp");
			strcpy(last.fallback, c->fallback);
		}
	}
	if (v == V_OK)
		return apply(msg, c, reply);
	if (c->job.pinned)
		return v; /* the node hangs or is down */
	end(c->job.op, v,
		reply                    ? reply->reason
			: c->job.targets ? "no node answers"
					 : "no node is up");
	LM_WARN("%s of call %.*s: %s\n", op_name(c->job.op), (int)c->call_id.len, c->call_id.s,
		last.reason);
	return v;
}

/* --- Start of a call -------------------------------------------------------------------------- */

static int run_sync(struct sip_msg *msg, struct context *c, const struct wire_request *r)
{
	char *buf = pkg_malloc(2 * WIRE_MAX);
	struct wire_reply reply;
	enum verdict v;
	bool came;
	int n;

	if (!buf)
		return end(c->job.op, V_INTERNAL, "no memory");
	sync_cookie(c->job.cookie);
	n = wire_write(
		buf, WIRE_MAX, sign_now(), (struct text){c->job.cookie, strlen(c->job.cookie)}, r);
	if (n < 0) {
		pkg_free(buf);
		return end(c->job.op, V_MESSAGE, "message too large for a datagram");
	}
	c->job.msg = buf;
	c->job.len = (size_t)n;
	came = sync_exchange(c, &reply, buf + WIRE_MAX, WIRE_MAX);
	v = call_finish(msg, c, came ? &reply : NULL);
	if (came)
		wire_fini(&reply);
	wire_wipe(buf, 2 * WIRE_MAX);
	pkg_free(buf);
	return v;
}

static int run(struct sip_msg *msg, enum op op, struct words *w, char *flags, struct text route)
{
	struct context c = {.job.op = op, .job.set = w->set, .policy = w->policy};
	struct wire_request r;
	char added[1024];
	const char *why;
	enum verdict v;

	if (sip_collect(&r, msg, op, w->via, &why))
		return end(op, V_MESSAGE, why);
	c.call_id = r.call_id;
	c.from_tag = r.from_tag;
	c.to_tag = r.to_tag;
	c.via_branch = r.via_branch;
	if (route.len >= sizeof(c.route) || !async_route(route)) {
		LM_ERR("there is no route[%.*s] to continue with\n", (int)route.len, route.s);
		return end(op, V_INTERNAL, "no such route in the script");
	}
	snprintf(c.route, sizeof(c.route), "%.*s", (int)route.len, route.len ? route.s : "");
	detect_emergency(&c, msg, op);
	if (w->retry && !retry_in_rtp(&c, flags, &w->flags_len))
		return end(op, V_POLICY, "no fall-back to RTP for this call");
	wire_sdp_suites(c.in_suites, sizeof(c.in_suites), r.sdp);
	if (op_has_sdp(op) && !policy_in(&c, &r, (struct text){flags, w->flags_len}))
		return end(op, V_POLICY, TOO_LOW);
	if (op == OP_OFFER || op == OP_ANSWER)
		widen(&c, flags, &w->flags_len);
	r.flags = (struct text){flags, w->flags_len};
	r.added = (struct text){added, policy_words(added, sizeof(added), &c)};
	if (w->nowait) {
		v = async_start(NULL, &c, &r);
		if (v != V_OK)
			return end(op, v == V_SUSPENDED ? V_OK : v, "no node is up");
	} else if (route.len && async_possible(msg)) {
		v = async_start(msg, &c, &r);
		if (v != V_OK)
			return v == V_INTERNAL
				? end(op, v, "the transaction could not be suspended")
				: v;
	}
	return run_sync(msg, &c, &r);
}

static int split_and_run(
	struct sip_msg *msg, enum op op, struct text flags, struct text route, bool retry)
{
	char *copy = pkg_malloc(flags.len + 1);
	struct words w;
	int v;

	last_reset();
	if (!copy)
		return end(op, V_INTERNAL, "no memory");
	words_split(&w, copy, flags);
	w.retry = retry;
	w.bad |= w.nowait && op != OP_DELETE && op != OP_START_RECORDING && op != OP_STOP_RECORDING;
	if (w.bad) {
		LM_ERR("flags \"%.*s\": a require-in=, require-out=, policy= or nowait that means nothing here\n",
			(int)flags.len, flags.s);
		v = end(op, V_INTERNAL, "wrong policy in the script");
	} else {
		v = run(msg, op, &w, copy, route);
	}
	pkg_free(copy);
	return v;
}

int call_run(struct sip_msg *msg, enum op op, struct text flags, struct text route)
{
	return split_and_run(msg, op, flags, route, false);
}

int call_retry(struct sip_msg *msg, struct text flags)
{
	return split_and_run(msg, OP_OFFER, flags, (struct text){"", 0}, true);
}

int call_manage(struct sip_msg *msg, struct text flags, struct text route)
{
	enum op op;

	if (!sip_manage(&op, msg)) {
		last_reset();
		return end(OP_QUERY, V_OK, NULL);
	}
	return call_run(msg, op, flags, route);
}
