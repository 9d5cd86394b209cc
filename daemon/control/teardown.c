/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Messages wait in a bounded queue. libcurl sends a few at a time on our loop, and its own thread
 * resolves names. A message is tried three times. Losses are counted and logged, also those because
 * the queue was full.
 *
 * The destination is the operator's URL: only http and https, without redirections and without
 * proxies from the environment. A request over ng can choose only the address, and only where the
 * operator allows it (call/timeout_report.c). */
#include "control/teardown.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/log.h"
#include "call/tick.h"
#include "call/timeout_report.h"
#include "control/resolved.h"
#include "base/sbuf.h"
#include "proto/xmlrpc.h"

#define QUEUE_MAX      4096u
#define ON_THEIR_WAY   16u
#define TRIES          3u
#define REPLY_MAX      (16u << 10)
#define RETRY_NS       NS_PER_SEC
#define TIMEOUT_NS     (5 * NS_PER_SEC)
#define LOG_EVERY_NS   (10 * NS_PER_SEC)
#define ADDRESS_MARK   "%%"
#define ADDRESS_SAMPLE "192.0.2.1"

struct message {
	struct message *prev, *next; /* of a list */
	struct teardown *t;
	char *url, *call_id;
	struct sbuf body, reply;
	uint32_t tries;
	uint64_t due_ns; /* CLOCK_MONOTONIC; 0: now */
	CURL *curl;      /* set during the transfer */
	struct resolved resolved;
};

struct list {
	struct message *first, *last;
	uint32_t n;
};

struct watch { /* one of curl's sockets */
	struct teardown *t;
	struct loop_io *io;
	curl_socket_t fd;
};

struct teardown {
	struct teardown_config cfg;
	char *url;
	CURLM *multi;
	struct curl_slist *headers;
	struct list waiting, sending;
	struct loop_timer *timer, *retry; /* curl's; ours */
	bool ending;
	struct teardown_counters counters;
	struct log_limit log_full, log_failed;
};

/* --- Lists ------------------------------------------------------------------------------------ */

static void list_add(struct list *l, struct message *m)
{
	m->prev = l->last;
	m->next = NULL;
	if (l->last)
		l->last->next = m;
	else
		l->first = m;
	l->last = m;
	l->n++;
}

static void list_remove(struct list *l, struct message *m)
{
	if (m->prev)
		m->prev->next = m->next;
	else
		l->first = m->next;
	if (m->next)
		m->next->prev = m->prev;
	else
		l->last = m->prev;
	l->n--;
}

static void message_free(struct message *m)
{
	if (!m)
		return;
	sbuf_fini(&m->body);
	sbuf_fini(&m->reply);
	free(m->url);
	free(m->call_id);
	free(m);
}

/* --- URLs ------------------------------------------------------------------------------------- */

/* Replaces the mark by the address. NULL without memory. */
static char *fill_in(const char *url, const char *address)
{
	const char *mark = strstr(url, ADDRESS_MARK);
	char *text = NULL;

	if (!mark)
		return strdup(url);
	if (asprintf(&text, "%.*s%s%s", (int)(mark - url), url, address,
		    mark + strlen(ADDRESS_MARK)) < 0)
		return NULL;
	return text;
}

const char *teardown_url_wrong(const char *url)
{
	static const char right[] =
		"http://HOST[:PORT]/PATH or https://..., where %% stands for the address of the proxy";
	char *full = fill_in(url, ADDRESS_SAMPLE), *scheme = NULL, *host = NULL;
	CURLU *u = curl_url();
	bool ok = full && u && !curl_url_set(u, CURLUPART_URL, full, 0) &&
		!curl_url_get(u, CURLUPART_SCHEME, &scheme, 0) &&
		!curl_url_get(u, CURLUPART_HOST, &host, 0) &&
		(strcasecmp(scheme, "http") == 0 || strcasecmp(scheme, "https") == 0);

	curl_free(scheme);
	curl_free(host);
	curl_url_cleanup(u);
	free(full);
	return ok ? NULL : right;
}

/* For the log: without user name and password. */
static void url_public(const char *url, char *out, size_t len)
{
	CURLU *u = curl_url();
	char *text = NULL;

	if (u && !curl_url_set(u, CURLUPART_URL, url, 0)) {
		curl_url_set(u, CURLUPART_USER, NULL, 0);
		curl_url_set(u, CURLUPART_PASSWORD, NULL, 0);
		curl_url_set(u, CURLUPART_QUERY, NULL, 0);
		curl_url_get(u, CURLUPART_URL, &text, 0);
	}
	snprintf(out, len, "%s", text ? text : "its URL");
	curl_free(text);
	curl_url_cleanup(u);
}

/* --- Life of a message ------------------------------------------------------------------------ */

static void pump(struct teardown *t);

/* Reads a bounded reply; a longer one fails the transfer. */
static size_t on_reply(char *p, size_t size, size_t n, void *arg)
{
	struct message *m = arg;

	sbuf_put(&m->reply, p, size * n);
	return m->reply.err ? 0 : size * n;
}

static int start(struct teardown *t, struct message *m)
{
	CURL *c = curl_easy_init();
	long timeout_ms =
		(long)((t->cfg.timeout_ns ? t->cfg.timeout_ns : TIMEOUT_NS) / (NS_PER_SEC / 1000));

	if (!c)
		return -ENOMEM;
	curl_easy_setopt(c, CURLOPT_URL, m->url);
	curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(c, CURLOPT_PROXY, "");
	curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, timeout_ms);
	curl_easy_setopt(c, CURLOPT_HTTPHEADER, t->headers);
	curl_easy_setopt(c, CURLOPT_USERAGENT, "xcipherd/" XCIPHER_VERSION);
	curl_easy_setopt(c, CURLOPT_POSTFIELDS, m->body.p);
	curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE, (long)m->body.len);
	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_reply);
	curl_easy_setopt(c, CURLOPT_WRITEDATA, m);
	curl_easy_setopt(c, CURLOPT_PRIVATE, m);
	m->resolved = (struct resolved){t->cfg.may_connect, t->cfg.may_connect_arg, false};
	resolved_watch(c, m->url, &m->resolved);
#if LIBCURL_VERSION_NUM >= 0x075700
	/* a name look-up may outlast the timeout: its thread continues without us */
	curl_easy_setopt(c, CURLOPT_QUICK_EXIT, 1L);
#endif
	if (curl_multi_add_handle(t->multi, c)) {
		curl_easy_cleanup(c);
		return -ENOMEM;
	}
	m->curl = c;
	return 0;
}

static void off_its_way(struct teardown *t, struct message *m)
{
	curl_multi_remove_handle(t->multi, m->curl);
	curl_easy_cleanup(m->curl);
	m->curl = NULL;
	list_remove(&t->sending, m);
}

static void give_up(struct teardown *t, struct message *m, const char *why)
{
	struct log_about about = {.call_id = str_from(m->call_id)};
	char url[256];
	uint64_t held;

	t->counters.failed++;
	if (log_limit_pass(&t->log_failed, clock_mono_ns(), LOG_EVERY_NS, &held)) {
		url_public(m->url, url, sizeof(url));
		log_call(LOG_WARNING, &about, "cannot report its end by timeout to %s: %s%s", url,
			why, log_held((char[LOG_HELD]){0}, held));
	}
	message_free(m);
}

/* Whether the dialog has ended there already. The texts are those of SEMS and of Kamailio's dialog
 * module. */
static bool knows_no_dialog(const char *why)
{
	return strcasestr(why, "not found") || strcasestr(why, "find callid in dialog");
}

/* A client that no longer has the dialog needs no report. A refusal is final: it would be
 * repeated. */
static void answered(struct teardown *t, struct message *m)
{
	struct str fault;
	char why[160] = "the reply is not XML-RPC";
	int err = xmlrpc_read_reply(sbuf_view(&m->reply), &fault);

	if (err == -EREMOTEIO)
		snprintf(why, sizeof(why), "it refused: " STR_FMT, STR_ARG(fault));
	if (err == 0 || (err == -EREMOTEIO && knows_no_dialog(why))) {
		t->counters.told++;
		message_free(m);
	} else {
		give_up(t, m, why);
	}
}

static void again(struct teardown *t, struct message *m, const char *why)
{
	uint64_t wait = t->cfg.retry_ns ? t->cfg.retry_ns : RETRY_NS;

	if (++m->tries >= TRIES) {
		give_up(t, m, why);
		return;
	}
	m->due_ns = clock_mono_ns() + wait * m->tries;
	m->reply.len = 0;
	m->reply.err = 0;
	list_add(&t->waiting, m);
}

static void finished(struct teardown *t, struct message *m, CURLcode result)
{
	long status = 0;
	char why[64];

	curl_easy_getinfo(m->curl, CURLINFO_RESPONSE_CODE, &status);
	off_its_way(t, m);
	if (result == CURLE_OK && status == 200) {
		answered(t, m);
		return;
	}
	snprintf(why, sizeof(why), "HTTP status %ld", status);
	if (m->resolved.refused)
		give_up(t, m, "DNS returned an address that --b2b-allow does not name");
	else if (result != CURLE_OK)
		again(t, m, curl_easy_strerror(result));
	else if (status >= 500)
		again(t, m, why);
	else
		give_up(t, m, why);
}

/* --- libcurl on our loop ---------------------------------------------------------------------- */

static void collect(struct teardown *t)
{
	CURLMsg *msg;
	int left;

	while ((msg = curl_multi_info_read(t->multi, &left))) {
		struct message *m = NULL;

		if (msg->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, (char **)&m);
		finished(t, m, msg->data.result);
	}
	pump(t);
}

static void on_socket(void *arg, uint32_t events)
{
	struct watch *w = arg;
	struct teardown *t = w->t;
	int bits = (events & EPOLLIN ? CURL_CSELECT_IN : 0) |
		(events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
		(events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0);
	int running;

	curl_multi_socket_action(t->multi, w->fd, bits, &running); /* w may be freed */
	collect(t);
}

/* curl reports the events that it waits for on a socket; w is our data for the socket. */
static int on_interest(CURL *c, curl_socket_t fd, int what, void *arg, void *kept)
{
	struct teardown *t = arg;
	struct watch *w = kept;
	uint32_t events =
		(what & CURL_POLL_IN ? EPOLLIN : 0u) | (what & CURL_POLL_OUT ? EPOLLOUT : 0u);

	(void)c;
	if (what == CURL_POLL_REMOVE) {
		if (w)
			loop_io_remove(w->io);
		free(w);
		curl_multi_assign(t->multi, fd, NULL);
		return 0;
	}
	if (w)
		return loop_io_change(w->io, events) ? -1 : 0;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -1;
	*w = (struct watch){.t = t, .fd = fd};
	if (loop_io_add(t->cfg.loop, &w->io, fd, events, on_socket, w)) {
		free(w);
		return -1;
	}
	curl_multi_assign(t->multi, fd, w);
	return 0;
}

static void on_timer(void *arg)
{
	struct teardown *t = arg;
	int running;

	t->timer = NULL;
	curl_multi_socket_action(t->multi, CURL_SOCKET_TIMEOUT, 0, &running);
	collect(t);
}

/* Not called directly: curl calls this inside its own functions. */
static int on_time(CURLM *multi, long ms, void *arg)
{
	struct teardown *t = arg;

	(void)multi;
	loop_timer_remove(t->timer);
	t->timer = NULL;
	if (ms < 0 || t->ending)
		return 0;
	return loop_timer_add(t->cfg.loop, &t->timer, (uint64_t)ms * (NS_PER_SEC / 1000) + 1, 0,
		       on_timer, t)
		? -1
		: 0;
}

/* --- The queue -------------------------------------------------------------------------------- */

static void on_retry(void *arg)
{
	struct teardown *t = arg;

	t->retry = NULL;
	pump(t);
}

/* Sends all due messages, up to the limit in flight. Sets a timer for the next one. */
static void pump(struct teardown *t)
{
	uint64_t now = clock_mono_ns(), next = UINT64_MAX;
	struct message *after;

	for (struct message *m = t->waiting.first; m && t->sending.n < ON_THEIR_WAY; m = after) {
		after = m->next;
		if (m->due_ns > now) {
			next = m->due_ns < next ? m->due_ns : next;
			continue;
		}
		list_remove(&t->waiting, m);
		if (start(t, m))
			again(t, m, "out of memory");
		else
			list_add(&t->sending, m);
	}
	if (next != UINT64_MAX && !t->retry)
		(void)loop_timer_add(t->cfg.loop, &t->retry, next - now + 1, 0, on_retry, t);
}

static void enqueue(struct teardown *t, const struct call_timeout *over, const char *method,
	const struct str *param, size_t n)
{
	struct message *m = t->waiting.n < QUEUE_MAX ? calloc(1, sizeof(*m)) : NULL;
	char address[ENDPOINT_STRLEN + 2] = "", text[ENDPOINT_STRLEN];
	uint64_t held;

	if (over->whom.family)
		snprintf(address, sizeof(address), over->whom.family == AF_INET6 ? "[%s]" : "%s",
			endpoint_fmt_addr(&over->whom, text));
	if (m) {
		sbuf_init(&m->body, 0);
		sbuf_init(&m->reply, REPLY_MAX);
		xmlrpc_write_call(&m->body, str_from(method), param, n);
		m->url = fill_in(t->url, address);
		m->call_id = strndup(over->call_id.s, over->call_id.len);
	}
	if (m && m->url && m->call_id && !m->body.err) {
		list_add(&t->waiting, m);
		return;
	}
	message_free(m);
	t->counters.dropped++;
	if (log_limit_pass(&t->log_full, clock_mono_ns(), LOG_EVERY_NS, &held))
		log_warn("too many reports of timeouts wait for --b2b-url: one is lost%s",
			log_held((char[LOG_HELD]){0}, held));
}

static void on_timeout(void *arg, const struct call_timeout *over)
{
	struct teardown *t = arg;

	switch (t->cfg.format) {
	case TEARDOWN_SEMS:
		for (uint32_t i = 0; i < over->tags; i++) {
			const struct str param[] = {
				STR("sbc"), STR("postControlCmd"), over->tag[i], STR("teardown")};

			enqueue(t, over, "di", param, ARRAY_LEN(param));
		}
		break;
	case TEARDOWN_KAMAILIO:
		for (uint32_t i = 0; i < over->pairs; i++) {
			const struct str param[] = {over->call_id, over->tag[over->pair[i].from],
				over->tag[over->pair[i].to]};

			enqueue(t, over, "dlg.terminate_dlg", param, ARRAY_LEN(param));
		}
		break;
	default: /* would end the other dialogs, too */
		if (!over->others_live)
			enqueue(t, over, "teardown", &over->call_id, 1);
	}
	pump(t);
}

/* --- Life ------------------------------------------------------------------------------------- */

int teardown_create(struct teardown **out, const struct teardown_config *cfg)
{
	struct teardown *t = calloc(1, sizeof(*t));

	if (!t || curl_global_init(CURL_GLOBAL_DEFAULT)) {
		free(t);
		return -ENOMEM;
	}
	t->cfg = *cfg;
	t->url = strdup(cfg->url);
	t->multi = curl_multi_init();
	t->headers = curl_slist_append(NULL, "Content-Type: text/xml");
	if (!t->url || !t->multi || !t->headers) {
		teardown_destroy(t);
		return -ENOMEM;
	}
	curl_multi_setopt(t->multi, CURLMOPT_SOCKETFUNCTION, on_interest);
	curl_multi_setopt(t->multi, CURLMOPT_SOCKETDATA, t);
	curl_multi_setopt(t->multi, CURLMOPT_TIMERFUNCTION, on_time);
	curl_multi_setopt(t->multi, CURLMOPT_TIMERDATA, t);
	calls_on_timeout(cfg->calls, on_timeout, t);
	*out = t;
	return 0;
}

void teardown_destroy(struct teardown *t)
{
	struct message *m;

	if (!t)
		return;
	t->ending = true;
	if (t->cfg.calls)
		calls_on_timeout(t->cfg.calls, NULL, NULL);
	if (t->waiting.n + t->sending.n)
		log_warn("stopping: %u reports of timeouts were not sent to --b2b-url",
			(unsigned)(t->waiting.n + t->sending.n));
	while ((m = t->sending.first)) {
		off_its_way(t, m);
		message_free(m);
	}
	while ((m = t->waiting.first)) {
		list_remove(&t->waiting, m);
		message_free(m);
	}
	if (t->multi)
		curl_multi_cleanup(t->multi);
	loop_timer_remove(t->timer);
	loop_timer_remove(t->retry);
	curl_slist_free_all(t->headers);
	curl_global_cleanup();
	free(t->url);
	free(t);
}

struct teardown_counters teardown_counters(const struct teardown *t)
{
	struct teardown_counters c = t->counters;

	c.waiting = t->waiting.n + t->sending.n;
	return c;
}
