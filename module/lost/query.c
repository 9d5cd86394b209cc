/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "query.h"

#include "trace.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define TYPE_LOST   "application/lost+xml;charset=utf-8"
#define SCHEME_NAME "lost:" /* of a server that is known by its name */
#define ACCEPT_LOST "application/lost+xml"
#define TYPE_HELD   "application/held+xml;charset=utf-8"
#define ACCEPT_HELD "application/held+xml, application/pidf+xml;q=0.5"

const char *http_error_name(enum http_error e)
{
	static const char *const names[] = {
#define X(id, name) [HTTP_##id] = name,
		HTTP_ERRORS(X)
#undef X
	};

	return names[e];
}

static enum step done(struct query *q, enum result r)
{
	q->answer.result = r;
	return STEP_DONE;
}

static enum step failed(struct query *q, enum result r, enum http_error e)
{
	answer_put(&q->answer, A_error, http_error_name(e));
	return done(q, r);
}

/* An earlier server's or location's reply must not show through. */
static void forget_reply(struct query *q)
{
	int tries = q->answer.tries;
	bool fetches = q->ask->op == ASK_HELD || q->ask->op == ASK_DEREFERENCE;
	char *method = q->answer.text[A_method], *profile = q->answer.text[A_profile];
	char *pidf = fetches ? NULL : q->answer.text[A_pidf];

	q->answer.text[A_method] = q->answer.text[A_profile] = NULL;
	if (!fetches)
		q->answer.text[A_pidf] = NULL;
	answer_clear(&q->answer);
	q->answer.tries = tries;
	q->answer.text[A_method] = method;
	q->answer.text[A_profile] = profile;
	q->answer.text[A_pidf] = pidf;
	free(q->extent.area);
	q->extent = (struct extent){0};
}

/* --- HTTP exchanges --------------------------------------------------------------------------- */

/* Takes ownership of body. */
static enum step exchange(struct query *q, const char *url, char *body, bool lost, int64_t now)
{
	int64_t left = q->deadline - now;

	free(q->body);
	q->body = body;
	q->http = (struct http_request){.url = url,
		.type = lost ? TYPE_LOST : TYPE_HELD,
		.accept = lost ? ACCEPT_LOST : ACCEPT_HELD,
		.body = body,
		.timeout = left < q->cfg->timeout ? (int)left : q->cfg->timeout};
	q->answer.tries++;
	q->began = now;
	return STEP_HTTP;
}

static void note(struct query *q, const struct http_reply *r, enum http_error e, int64_t now)
{
	struct traced t = {.kind = !strcmp(q->http.type, TYPE_LOST) ? "lost" : "held",
		.url = q->http.url,
		.request = q->http.body,
		.reply = r->body,
		.error = http_error_name(e),
		.len = r->len,
		.begin = q->cfg->epoch + q->began,
		.end = q->cfg->epoch + now,
		.status = r->status};

	if (q->cfg->trace)
		trace_add(&q->trace, q->cfg->trace, &t);
}

static struct server *servers(const struct query *q, int *count)
{
	bool held = q->ask->op == ASK_HELD;

	*count = held ? q->cfg->lises : q->cfg->servers;
	return held ? q->cfg->lis : q->cfg->server;
}

/* The next server that was not asked yet: in their order, those that failed lately last. */
static int next_server(const struct query *q, int64_t now)
{
	int count, late = -1;
	const struct server *s = servers(q, &count);

	if (q->ask->op == ASK_BOUNDARY && !q->tried && q->ask->first_server < count)
		return q->ask->first_server;
	for (int i = 0; i < count; i++) {
		if (q->tried & 1u << i)
			continue;
		if (s[i].down_until <= now)
			return i;
		if (late < 0)
			late = i;
	}
	return late;
}

static const struct place *place_of(const struct query *q)
{
	return q->from_fetched ? &q->fetched.source[q->fetched_source].place
			       : &q->ask->source[q->source].place;
}

static char *request_body(const struct query *q, int64_t now)
{
	const struct ask *a = q->ask;
	const struct query_config *c = q->cfg;
	int64_t left = q->deadline - now;

	switch (a->op) {
	case ASK_FIND:
		return lost_find_service(a->service, place_of(q), c->boundary, c->recursive);
	case ASK_LIST:
		return lost_list_services(a->service, place_of(q), c->recursive);
	case ASK_BOUNDARY:
		return lost_get_boundary(a->argument);
	default:
		return held_request(a->argument, left < c->timeout ? (int)left : c->timeout);
	}
}

/* The URL of a server is known by its name only. */
static enum step look_up(struct query *q, const char *name)
{
	free(q->name);
	q->name = strdup(name);
	return q->name ? STEP_NAME : done(q, RESULT_INTERNAL);
}

/* Asks the next server, or ends: the last failure is the result. */
static enum step ask_server(struct query *q, enum http_error last, int64_t now)
{
	int count, i = next_server(q, now);
	struct server *s = servers(q, &count);
	char *body;

	if (i < 0 || now >= q->deadline) {
		/* A server's own error says more than that no other server is left. */
		if (last == HTTP_NONE && q->answer.text[A_error])
			return done(q, RESULT_REFUSED);
		return failed(q, RESULT_NO_ANSWER, i >= 0 ? HTTP_TIMEOUT : last);
	}
	q->tried |= 1u << i;
	q->server = i;
	q->redirects = 0;
	q->redirected = false;
	s[i].asked++;
	if (!strncmp(s[i].url, SCHEME_NAME, strlen(SCHEME_NAME)))
		return look_up(q, s[i].url + strlen(SCHEME_NAME));
	body = request_body(q, now);
	if (!body)
		return done(q, RESULT_INTERNAL);
	return exchange(q, s[i].url, body, q->ask->op != ASK_HELD, now);
}

/* --- Locations -------------------------------------------------------------------------------- */

/* Asks about a location, unless the cache knows. The worker has asked it about the first one. */
static enum step ask_place(struct query *q, int64_t now)
{
	const struct place *p = place_of(q);
	const struct query_config *c = q->cfg;
	struct answer known = {0};
	bool first = !q->from_fetched && !q->source;

	q->tried = 0;
	q->known = p->known;
	q->spot = p->spot;
	answer_put(&q->answer, A_profile, profile_name(p->profile));
	answer_put(&q->answer, A_method, METHOD_NAMES[q->ask->source[q->source].method]);
	if (q->ask->op == ASK_FIND && p->known && c->cached && !first &&
		c->cached(c->arg, q->ask->service, &p->spot, &known)) {
		known.tries = q->answer.tries;
		answer_put(&known, A_profile, profile_name(p->profile));
		answer_put(&known, A_method, q->answer.text[A_method]);
		answer_clear(&q->answer);
		q->answer = known;
		return done(q, RESULT_OK);
	}
	return ask_server(q, HTTP_NONE, now);
}

/* The length of a URL's host; 0: none, or a form that libraries read in different ways. */
static size_t host_of(const char *url, const char **host)
{
	const char *at = strstr(url, "://");
	size_t n;

	*host = at ? at + 3 : url;
	n = at ? strcspn(*host, "/?#") : 0;
	if (memchr(*host, '@', n) || memchr(*host, '\\', n) || memchr(*host, '%', n))
		return 0;
	return memchr(*host, '[', n) ? n : strcspn(*host, ":/?#");
}

static bool host_is(const char *host, size_t len, const char *rule, size_t n)
{
	if (*rule == '.')
		return len > n && !strncasecmp(host + len - n, rule, n);
	return len == n && !strncasecmp(host, rule, n);
}

static bool host_allowed(const char *rules, const char *url)
{
	const char *host;
	size_t len = host_of(url, &host), n;

	if (!rules)
		return len > 0;
	for (; len && *rules; rules += n) {
		rules += strspn(rules, ", ");
		n = strcspn(rules, ", ");
		if (n && host_is(host, len, rules, n))
			return true;
	}
	return false;
}

static bool may_fetch(const struct query *q, const char *uri)
{
	return host_allowed(q->cfg->hosts, uri) &&
		(!strncasecmp(uri, "https://", 8) ||
			(q->cfg->http_references && !strncasecmp(uri, "http://", 7)));
}

static enum step next_place(struct query *q, int64_t now);

static enum step fetch(struct query *q, const char *uri, int64_t now)
{
	q->server = -1;
	if (!may_fetch(q, uri)) {
		answer_put(&q->answer, A_error, http_error_name(HTTP_INSECURE));
		return q->ask->op == ASK_DEREFERENCE ? done(q, RESULT_REFERENCE)
						     : next_place(q, now);
	}
	(void)exchange(q, uri, q->posted ? held_request(NULL, q->cfg->timeout) : NULL, false, now);
	q->http.stranger = !q->cfg->hosts;
	return STEP_HTTP;
}

/* The next location, of those in the message and those that a reference yielded. */
static enum step next_place(struct query *q, int64_t now)
{
	const struct source *s;

	if (q->from_fetched && ++q->fetched_source < q->fetched.sources)
		return ask_place(q, now);
	q->from_fetched = false;
	q->posted = false;
	if (++q->source >= q->ask->sources)
		return done(q, RESULT_REFERENCE);
	s = &q->ask->source[q->source];
	if (now >= q->deadline)
		return failed(q, RESULT_NO_ANSWER, HTTP_TIMEOUT);
	return s->reference ? fetch(q, s->place.xml, now) : ask_place(q, now);
}

static bool another_place(const struct query *q)
{
	return (q->from_fetched && q->fetched_source + 1 < q->fetched.sources) ||
		q->source + 1 < q->ask->sources;
}

enum step query_begin(struct query *q, const struct query_config *cfg, const struct ask *ask,
	int64_t now, int64_t deadline)
{
	*q = (struct query){.cfg = cfg, .ask = ask, .deadline = deadline, .source = -1};
	switch (ask->op) {
	case ASK_FIND:
	case ASK_LIST:
		return ask->sources ? next_place(q, now) : done(q, RESULT_NO_LOCATION);
	case ASK_DEREFERENCE:
		return fetch(q, ask->argument, now);
	default:
		return ask_server(q, HTTP_CONNECT, now);
	}
}

/* --- Outcomes --------------------------------------------------------------------------------- */

/* A reference was fetched, or could not be. */
static enum step fetched(struct query *q, const struct http_reply *r, int64_t now)
{
	bool alone = q->ask->op == ASK_DEREFERENCE;
	const char *uri = alone ? q->ask->argument : q->ask->source[q->source].place.xml;
	enum http_error e = r->error;

	/* RFC 6753: GET asks for any location. Some servers know POST only. */
	if (e == HTTP_STATUS && (r->status == 405 || r->status == 501) && !q->posted) {
		note(q, r, e, now);
		q->posted = true;
		return fetch(q, uri, now);
	}
	forget_reply(q);
	if (!e && held_read(r->body, r->len, &q->answer) == REPLY_GARBAGE)
		e = HTTP_GARBAGE;
	note(q, r, e, now);
	if (e)
		answer_put(&q->answer, A_error, http_error_name(e));
	if (alone)
		return done(q, q->answer.text[A_pidf] ? RESULT_OK : RESULT_REFERENCE);
	ask_clear(&q->fetched);
	if (q->answer.text[A_pidf] &&
		ask_add_pidf(&q->fetched, q->answer.text[A_pidf], strlen(q->answer.text[A_pidf]),
			METHOD_reference, q->cfg->prefer) > 0) {
		q->from_fetched = true;
		q->fetched_source = 0;
		return ask_place(q, now);
	}
	return next_place(q, now);
}

static const char *redirect_url(const struct query *q, const char *target)
{
	size_t n = strlen(target);

	for (int i = 0; i < q->cfg->redirects; i++)
		if (!strncasecmp(q->cfg->redirect[i], target, n) && q->cfg->redirect[i][n] == '=')
			return q->cfg->redirect[i] + n + 1;
	return NULL;
}

static enum step redirected(struct query *q, int64_t now)
{
	const char *target = q->answer.text[A_server], *url = redirect_url(q, target);
	char *body;

	if ((!url && !q->cfg->discover) || q->redirects >= q->cfg->max_redirects)
		return ask_server(q, HTTP_REDIRECT, now);
	if (now >= q->deadline)
		return failed(q, RESULT_NO_ANSWER, HTTP_TIMEOUT);
	q->redirects++;
	q->redirected = !url;
	if (!url)
		return look_up(q, target);
	body = request_body(q, now);
	return body ? exchange(q, url, body, true, now) : done(q, RESULT_INTERNAL);
}

/* Whether another server may know better: RFC 5222 section 13.1. */
static bool is_servers_fault(const char *error)
{
	static const char *const names[] = {
		"internalError", "serverTimeout", "serverError", "loop"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(error, names[i]))
			return true;
	return false;
}

static bool is_locations_fault(const char *error)
{
	return !strcmp(error, "notFound") || !strcmp(error, "locationInvalid") ||
		!strcmp(error, "locationProfileUnrecognized");
}

static enum step refused(struct query *q, int64_t now)
{
	const char *error = q->answer.text[A_error] ? q->answer.text[A_error] : "";

	if (is_servers_fault(error))
		return ask_server(q, HTTP_NONE, now);
	if (is_locations_fault(error) && another_place(q))
		return next_place(q, now);
	return done(q, RESULT_REFUSED);
}

static enum reply read_reply(struct query *q, const struct http_reply *r)
{
	static const enum lost_op ops[] = {
		[ASK_FIND] = LOST_FIND, [ASK_LIST] = LOST_LIST, [ASK_BOUNDARY] = LOST_BOUNDARY};

	if (q->ask->op == ASK_HELD)
		return held_read(r->body, r->len, &q->answer);
	return lost_read(ops[q->ask->op], r->body, r->len, &q->answer, &q->extent);
}

enum step query_reply(struct query *q, const struct http_reply *r, int64_t now)
{
	int count;
	struct server *s = servers(q, &count);
	enum http_error e = r->error;
	enum reply reply = REPLY_GARBAGE;

	if (q->server < 0)
		return fetched(q, r, now);
	s += q->server;
	forget_reply(q);
	if (!e)
		reply = read_reply(q, r);
	if (!e && reply == REPLY_GARBAGE) {
		forget_reply(q);
		e = HTTP_GARBAGE;
	}
	note(q, r, e, now);
	if (e && q->redirects)
		return ask_server(q, e, now); /* another server has failed */
	if (e) {
		s->failed++;
		s->down_until = now + q->cfg->down_time;
		return ask_server(q, e, now);
	}
	s->down_until = 0;
	if (reply == REPLY_REDIRECT)
		return redirected(q, now);
	answer_put(&q->answer, A_server, q->http.url);
	if (reply == REPLY_ERROR)
		return refused(q, now);
	if (q->ask->op == ASK_FIND && !q->answer.text[A_uri]) {
		answer_put(&q->answer, A_error, "no-uri");
		return done(q, RESULT_REFUSED);
	}
	return done(q, RESULT_OK);
}

enum step query_named(struct query *q, const char *url, int64_t now)
{
	int count;
	struct server *s = servers(q, &count) + q->server;
	char *body;

	if (!url && q->redirected)
		return ask_server(q, HTTP_REDIRECT, now);
	if (!url) {
		s->failed++;
		s->down_until = now + q->cfg->down_time;
		return ask_server(q, HTTP_CONNECT, now);
	}
	if (now >= q->deadline)
		return failed(q, RESULT_NO_ANSWER, HTTP_TIMEOUT);
	body = request_body(q, now);
	free(q->url);
	q->url = strdup(url);
	if (!body || !q->url) {
		free(body);
		return done(q, RESULT_INTERNAL);
	}
	(void)exchange(q, q->url, body, true, now);
	q->http.stranger = q->redirected; /* a server may lie */
	return STEP_HTTP;
}

void query_free(struct query *q)
{
	answer_clear(&q->answer);
	free(q->extent.area);
	q->extent.area = NULL;
	ask_clear(&q->fetched);
	free(q->body);
	free(q->url);
	free(q->name);
	q->body = q->url = q->name = NULL;
	buf_free(&q->trace);
}
