/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The processes that ask servers. Each has its connections, and continues the transactions whose
 * answers it received. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <core/cfg/cfg_struct.h>
#include <core/dprint.h>
#include <core/pt.h>
#include <core/sr_module.h>

#include "job.h"
#include "names.h"
#include "settings.h"

#define WAIT_MS      100
#define IDLE_MS      1000
#define FETCHES_MAX  32 /* boundaries at once */
#define JOBS_AT_ONCE 64
#define FETCH_MS     10000

/* A query on its way. */
struct task {
	struct http *http;
	struct query query;
	struct job *job; /* NULL: fetches a boundary for the cache */
	/* For a fetch: the mapping that waits for its boundary. */
	struct ask ask;
	struct answer mapping;
	struct spot spot;
	int64_t expires;
	struct task *next_fetch;
};

static struct http *http;     /* of queries from the pipe, and of fetches */
static struct http *own_http; /* of functions that the script calls here */
static struct query_config query_cfg;
static struct http_config http_cfg;
static struct task *fetches;
static int fetch_count;

static void on_reply(void *arg, const struct http_reply *r);
static void on_name(void *arg, const char *url);
static void proceed(struct task *t, enum step s);

static void task_free(struct task *t)
{
	query_free(&t->query);
	ask_clear(&t->ask);
	answer_clear(&t->mapping);
	free(t);
}

/* --- Cache ------------------------------------------------------------------------------------ */

static int64_t life(const struct extent *e, int64_t now)
{
	int64_t max = now + settings.cache_max_age;

	return e->no_cache || e->expires <= now ? 0 : e->expires < max ? e->expires : max;
}

/* Stores a mapping whose boundary covers the place it was sent for. A boundary that does not would
 * answer for places elsewhere. */
static void store(const char *service, const struct answer *a, const struct area *area,
	const struct spot *spot, int64_t expires)
{
	struct cache_key k = {.service = service, .expires = expires, .now = time(NULL)};
	bool ok = area && geo_covers(area, spot);

	if (!ok) {
		counter_inc(counters.boundaries_refused);
		return;
	}
	lock_get(&shared->lock);
	ok = cache_insert(&shared->cache, &k, a, area);
	lock_release(&shared->lock);
	if (ok)
		counter_inc(counters.cache_inserted);
}

/* The boundary of an older answer with the same key. The caller frees it. */
static struct area *known_area(const char *service, const struct answer *a)
{
	const struct area *area;
	struct area *copy = NULL;

	lock_get(&shared->lock);
	area = cache_area(&shared->cache, service, a->text[A_source], a->text[A_boundary_key]);
	if (area)
		copy = malloc(area->size);
	if (copy)
		memcpy(copy, area, area->size);
	lock_release(&shared->lock);
	return copy;
}

static bool is_fetching(const char *service, const char *key)
{
	for (const struct task *t = fetches; t; t = t->next_fetch)
		if (!strcmp(t->ask.service, service) && !strcmp(t->ask.argument, key))
			return true;
	return false;
}

/* Fetches a boundary by reference, after the call got its answer. */
static void fetch(const struct query *q, int64_t expires)
{
	const char *service = q->ask->service, *key = q->answer.text[A_boundary_key];
	struct task *t;

	if (fetch_count >= FETCHES_MAX || is_fetching(service, key))
		return;
	t = calloc(1, sizeof(*t));
	if (!t)
		return;
	t->http = http;
	t->ask = (struct ask){.op = ASK_BOUNDARY,
		.service = strdup(service),
		.argument = strdup(key),
		.first_server = q->server};
	t->spot = q->spot;
	t->expires = expires;
	if (!t->ask.service || !t->ask.argument || !answer_copy(&t->mapping, &q->answer)) {
		task_free(t);
		return;
	}
	t->next_fetch = fetches;
	fetches = t;
	fetch_count++;
	counter_inc(counters.boundaries_fetched);
	proceed(t, query_begin(&t->query, &query_cfg, &t->ask, now_ms(), now_ms() + FETCH_MS));
}

static void fetched(struct task *t)
{
	struct task **at = &fetches;

	while (*at != t)
		at = &(*at)->next_fetch;
	*at = t->next_fetch;
	fetch_count--;
	store(t->ask.service, &t->mapping, t->query.extent.area, &t->spot, t->expires);
}

/* Whether and how an answer may be used again. */
static void learn(const struct query *q)
{
	const struct answer *a = &q->answer;
	int64_t expires = life(&q->extent, time(NULL));
	struct area *area;

	if (q->ask->op != ASK_FIND || a->result != RESULT_OK || a->cached || !q->known ||
		!expires || !settings.cache_entries)
		return;
	if (q->extent.area) {
		store(q->ask->service, a, q->extent.area, &q->spot, expires);
	} else if (a->text[A_boundary_key]) {
		area = known_area(q->ask->service, a);
		if (area)
			store(q->ask->service, a, area, &q->spot, expires);
		else if (!q->redirects)
			fetch(q, expires);
		free(area);
	}
}

/* --- Queries ---------------------------------------------------------------------------------- */

static void finish(struct task *t)
{
	if (!t->job) {
		fetched(t);
	} else {
		if (t->query.answer.tries > 1)
			counter_inc(counters.failovers);
		/* First, because the job's memory holds the ask, and the route may take long. */
		learn(&t->query);
		if (t->query.trace.len)
			answer_set(&t->query.answer, A_exchanges, buf_take(&t->query.trace));
		job_conclude(t->job, &t->query.answer);
	}
	task_free(t);
}

/* The time for a name is that for an exchange, so that another server has its turn. */
static int64_t name_until(const struct query *q)
{
	int64_t until = now_ms() + settings.timeout;

	return until < q->deadline ? until : q->deadline;
}

static void proceed(struct task *t, enum step s)
{
	struct http_reply none = {.error = HTTP_CONNECT};

	while (s != STEP_DONE) {
		if (s == STEP_NAME) {
			struct names_ask a = {.name = t->query.name,
				.configured = !t->query.redirected,
				.http = t->http,
				.now = now_ms(),
				.until = name_until(&t->query),
				.done = on_name,
				.arg = t};

			if (names_find(&a))
				return;
			s = query_named(&t->query, NULL, now_ms());
			continue;
		}
		counter_inc(counters.exchanges);
		if (http_start(t->http, &t->query.http, on_reply, t))
			return;
		s = query_reply(&t->query, &none, now_ms());
	}
	finish(t);
}

static void on_name(void *arg, const char *url)
{
	struct task *t = arg;

	if (!url)
		LM_WARN("no LoST server \"%s\" in the DNS: it needs a NAPTR record of LoST:https, and "
			"a reply within timeout\n",
			t->query.name);
	proceed(t, query_named(&t->query, url, now_ms()));
}

/* A reference reveals a person's location to whoever may fetch it, so it is not logged. */
static void report(const struct query *q, const struct http_reply *r)
{
	const char *url = q->server >= 0 || settings.log_location ? q->http.url : "a reference";

	if (r->error == HTTP_STATUS)
		LM_WARN("%s failed: HTTP status %d\n", url, r->status);
	else
		LM_WARN("%s failed: %s\n", url, http_error_name(r->error));
}

static void on_reply(void *arg, const struct http_reply *r)
{
	struct task *t = arg;

	if (r->error) {
		counter_inc(counters.failed_exchanges);
		report(&t->query, r);
	}
	proceed(t, query_reply(&t->query, r, now_ms()));
}

static int64_t wall_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void begin(struct http *h, struct job *j)
{
	struct task *t = calloc(1, sizeof(*t));
	struct answer none = {.result = RESULT_INTERNAL};

	if (!t) {
		job_conclude(j, &none);
		return;
	}
	t->http = h;
	t->job = j;
	query_cfg.epoch = wall_ms() - now_ms();
	proceed(t, query_begin(&t->query, &query_cfg, j->ask, now_ms(), j->deadline));
}

static void read_jobs(int fd)
{
	struct job *j;

	for (int i = 0; i < JOBS_AT_ONCE && read(fd, &j, sizeof(void *)) == sizeof(void *); i++)
		begin(http, j);
}

/* A route that continues a transaction runs here, and may call a function that waits. Other queries
 * must not end meanwhile, because their routes would run inside of this one. */
bool client_wait(struct job *j)
{
	if (!http)
		return false;
	if (!own_http)
		own_http = http_new(&http_cfg);
	if (!own_http)
		return false;
	begin(own_http, j);
	while (sem_trywait(&j->done)) {
		http_wait(own_http, -1, WAIT_MS);
		http_run(own_http);
		names_run(own_http, now_ms());
	}
	return true;
}

static void configure(void)
{
	query_cfg = (struct query_config){.server = shared->server,
		.lis = shared->lis,
		.servers = settings.servers,
		.lises = settings.lises,
		.timeout = settings.timeout,
		.down_time = settings.down_time,
		.max_redirects = settings.max_redirects,
		.boundary = settings.boundary,
		.prefer = settings.prefer,
		.recursive = settings.recursive,
		.http_references = settings.allow_http_reference,
		.hosts = settings.reference_hosts,
		.redirect = (const char *const *)settings.redirect,
		.redirects = settings.redirects,
		/* As in settings_check(). */
		.discover = settings.discover && settings.ca_file,
		.trace = (size_t)settings.keep_exchanges,
		.cached = job_cached};
	http_cfg = (struct http_config){.ca_file = settings.ca_file,
		.cert_file = settings.cert_file,
		.key_file = settings.key_file,
		.verify = settings.verify,
		.connect_timeout = settings.connect_timeout,
		.max_response = (size_t)settings.max_response};
}

static void __attribute__((noreturn)) client_loop(int fd)
{
	configure();
	http = http_new(&http_cfg);
	if (!http) {
		LM_ERR("libcurl cannot be initialised\n");
		exit(1);
	}
	for (;;) {
		http_wait(http, fd, names_busy() ? WAIT_MS : IDLE_MS);
		read_jobs(fd);
		http_run(http);
		names_run(http, now_ms());
		cfg_update();
	}
}

int client_pipes(void)
{
	for (int i = 0; i < settings.clients; i++)
		if (pipe2(shared->pipe[i], O_CLOEXEC | O_NONBLOCK))
			return -1;
	return 0;
}

int client_fork(void)
{
	for (int i = 0; i < settings.clients; i++) {
		int pid = fork_process(PROC_XWORKER, "xcipher_lost client", 1);

		if (pid < 0)
			return -1;
		if (pid == 0) {
			if (cfg_child_init())
				exit(1);
			client_loop(shared->pipe[i][0]);
		}
	}
	return 0;
}
