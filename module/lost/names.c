/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "names.h"

#include "naptr.h"

#include <arpa/nameser.h>
#include <pthread.h>
#include <resolv.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define LOOKUPS_MAX 8
#define WAITERS_MAX 1024
#define KNOWN       16   /* names */
#define HOPS_MAX    4    /* records that lead to other records */
#define REPLY_MAX   4096 /* octets */
#define TTL_MIN     30   /* s; also that of names without a server */
#define TTL_MAX     86400
#define RETRY_S     1 /* then twice as long, and so on */
#define TRIES       3

/* One name. The thread writes found and sets done; then it belongs to the process again. */
struct lookup {
	char name[NAPTR_NAME_MAX];
	struct http *http;
	struct naptr found;
	bool done; /* atomic */
	bool used;
};

struct known {
	char name[NAPTR_NAME_MAX], url[NAPTR_NAME_MAX]; /* url "": it has none */
	int64_t until;                                  /* ms */
};

struct waiter {
	struct waiter *next;
	char name[NAPTR_NAME_MAX];
	const struct http *http;
	int64_t until;
	names_done *done;
	void *arg;
};

static struct lookup lookups[LOOKUPS_MAX];
static struct known known[KNOWN];
static struct waiter *waiters;
static int waiting;

/* --- The thread ------------------------------------------------------------------------------- */

/* Follows records to the URL of the server. */
static void resolve(const char *name, struct naptr *out)
{
	unsigned char reply[REPLY_MAX];
	struct naptr found = {0};
	struct __res_state state;
	char at[NAPTR_NAME_MAX];
	uint32_t ttl = TTL_MAX;
	int n;

	*out = (struct naptr){.ttl = TTL_MIN};
	memset(&state, 0, sizeof(state));
	if (res_ninit(&state))
		return;
	state.retrans = RETRY_S;
	state.retry = TRIES;
	strcpy(at, name);
	for (int hop = 0; hop < HOPS_MAX; hop++) {
		n = res_nquery(&state, at, ns_c_in, ns_t_naptr, reply, sizeof(reply));
		if (n <= 0 || n > (int)sizeof(reply) || naptr_read(reply, (size_t)n, &found))
			break;
		ttl = found.ttl < ttl ? found.ttl : ttl;
		if (found.url[0]) {
			found.ttl = ttl > TTL_MIN ? ttl : TTL_MIN;
			*out = found;
			break;
		}
		strcpy(at, found.next);
	}
	res_nclose(&state);
}

static void *work(void *arg)
{
	struct lookup *l = arg;
	struct http *http = l->http;

	resolve(l->name, &l->found);
	__atomic_store_n(&l->done, true, __ATOMIC_RELEASE);
	http_wake(http);
	return NULL;
}

/* Kamailio's signals are for its own thread. */
static bool start(struct lookup *l)
{
	sigset_t all, before;
	pthread_t thread;
	bool ok;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ok = !pthread_create(&thread, NULL, work, l);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (ok)
		pthread_detach(thread);
	return ok;
}

/* --- The process ------------------------------------------------------------------------------ */

static struct known *known_find(const char *name, int64_t now)
{
	for (int i = 0; i < KNOWN; i++)
		if (known[i].until > now && !strcasecmp(known[i].name, name))
			return &known[i];
	return NULL;
}

static struct lookup *lookup_find(const char *name)
{
	for (int i = 0; i < LOOKUPS_MAX; i++)
		if (lookups[i].used && !strcasecmp(lookups[i].name, name))
			return &lookups[i];
	return NULL;
}

static bool lookup_start(const struct names_ask *a)
{
	for (int i = 0; i < LOOKUPS_MAX; i++) {
		struct lookup *l = &lookups[i];

		if (l->used)
			continue;
		*l = (struct lookup){.http = a->http, .used = true};
		strcpy(l->name, a->name);
		l->used = start(l);
		return l->used;
	}
	return false;
}

bool names_find(const struct names_ask *a)
{
	struct waiter *w;

	if (strlen(a->name) >= NAPTR_NAME_MAX || !a->name[0] || waiting >= WAITERS_MAX)
		return false;
	w = calloc(1, sizeof(*w));
	if (!w)
		return false;
	if (!known_find(a->name, a->now) && !lookup_find(a->name) && !lookup_start(a)) {
		free(w);
		return false;
	}
	strcpy(w->name, a->name);
	w->http = a->http;
	w->until = a->until;
	w->done = a->done;
	w->arg = a->arg;
	w->next = waiters;
	waiters = w;
	waiting++;
	return true;
}

/* What ended lookups have found is kept, in place of what expires first. */
static void collect(int64_t now)
{
	for (int i = 0; i < LOOKUPS_MAX; i++) {
		struct lookup *l = &lookups[i];
		struct known *k = &known[0];

		if (!l->used || !__atomic_load_n(&l->done, __ATOMIC_ACQUIRE))
			continue;
		for (int j = 1; j < KNOWN; j++)
			if (known[j].until < k->until)
				k = &known[j];
		strcpy(k->name, l->name);
		strcpy(k->url, l->found.url);
		k->until = now + (int64_t)l->found.ttl * 1000;
		l->used = false;
	}
}

static bool is_waiting(const struct waiter *w, int64_t now)
{
	return w->until > now && !known_find(w->name, now) && lookup_find(w->name);
}

/* The first waiter of this http that has a result, or waits no longer, taken from the list. */
static struct waiter *next_ended(const struct http *http, int64_t now)
{
	for (struct waiter **at = &waiters; *at; at = &(*at)->next) {
		struct waiter *w = *at;

		if (w->http != http || is_waiting(w, now))
			continue;
		*at = w->next;
		waiting--;
		return w;
	}
	return NULL;
}

void names_run(const struct http *http, int64_t now)
{
	char url[NAPTR_NAME_MAX];
	struct waiter *w;

	collect(now);
	/* done() may ask for further names. */
	while ((w = next_ended(http, now))) {
		const struct known *k = known_find(w->name, now);

		strcpy(url, k ? k->url : "");
		w->done(w->arg, url[0] ? url : NULL);
		free(w);
	}
}

bool names_busy(void)
{
	return waiters != NULL;
}
