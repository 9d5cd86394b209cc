/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "names.h"

#include "naptr.h"

#include <arpa/nameser.h>
#include <netdb.h>
#include <pthread.h>
#include <resolv.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define KINDS       2           /* names of servers' redirects, and names of the configuration */
#define LOOKUPS_MAX SERVERS_MAX /* of each kind: all names of a configuration at once */
#define KNOWN       16          /* names of each kind */
#define WAITERS_MAX 1024
#define HOPS_MAX    4    /* records that lead to other records */
#define REPLY_MAX   4096 /* octets */
#define TTL_MIN     30   /* s; also that of names without a server */
#define TTL_MAX     86400
#define RETRY_S     1 /* then twice as long, and so on */
#define TRIES       3
#define LOOKUP_S    10 /* then no further record is followed */

/* One name. The thread writes found and silent and sets done; then it belongs to the process again.
 */
struct lookup {
	char name[NAPTR_NAME_MAX];
	struct http *http;
	struct naptr found;
	bool silent; /* no name server answered */
	bool done;   /* atomic */
	bool used;
};

struct known {
	char name[NAPTR_NAME_MAX], url[NAPTR_NAME_MAX]; /* url "": it has none */
	int64_t until;                                  /* ms */
};

struct waiter {
	struct waiter *next;
	char name[NAPTR_NAME_MAX], url[NAPTR_NAME_MAX];
	bool configured, ended; /* ended: url is the result */
	const struct http *http;
	int64_t until;
	names_done *done;
	void *arg;
};

/* Nobody can fill those of configured names: a server that lies chooses the names of redirects, and
 * perhaps has their DNS. */
static struct lookup lookups[KINDS][LOOKUPS_MAX];
static struct known known[KINDS][KNOWN];
static struct waiter *waiters;
static int waiting;

/* --- The thread ------------------------------------------------------------------------------- */

static int64_t seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

/* Follows records to the URL of the server. False: no name server answered. */
static bool resolve(const char *name, struct naptr *out)
{
	unsigned char reply[REPLY_MAX];
	int64_t end = seconds() + LOOKUP_S;
	struct naptr found = {0};
	struct __res_state state;
	char at[NAPTR_NAME_MAX];
	uint32_t ttl = TTL_MAX;
	bool answered = true;
	int n;

	*out = (struct naptr){.ttl = TTL_MIN};
	memset(&state, 0, sizeof(state));
	if (res_ninit(&state))
		return false;
	state.retrans = RETRY_S;
	state.retry = TRIES;
	/* Over TCP, libc waits for a name server without a limit. So longer replies by UDP. */
	state.options &= ~(unsigned long)RES_USEVC;
	state.options |= RES_IGNTC | RES_USE_EDNS0;
	strcpy(at, name);
	for (int hop = 0; hop < HOPS_MAX && seconds() < end; hop++) {
		n = res_nquery(&state, at, ns_c_in, ns_t_naptr, reply, sizeof(reply));
		answered = n > 0 || state.res_h_errno == HOST_NOT_FOUND ||
			state.res_h_errno == NO_DATA;
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
	return answered;
}

static void *work(void *arg)
{
	struct lookup *l = arg;
	struct http *http = l->http;

	l->silent = !resolve(l->name, &l->found);
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

static struct known *known_find(const char *name, bool configured)
{
	for (int i = 0; i < KNOWN; i++)
		if (!strcasecmp(known[configured][i].name, name))
			return &known[configured][i];
	return NULL;
}

static bool is_on_its_way(const char *name, bool configured)
{
	const struct lookup *l = lookups[configured];

	for (int i = 0; i < LOOKUPS_MAX; i++)
		if (l[i].used && !strcasecmp(l[i].name, name))
			return true;
	return false;
}

static bool lookup_start(const struct names_ask *a)
{
	for (int i = 0; i < LOOKUPS_MAX; i++) {
		struct lookup *l = &lookups[a->configured][i];

		if (l->used)
			continue;
		*l = (struct lookup){.http = a->http, .used = true};
		strcpy(l->name, a->name);
		l->used = start(l);
		return l->used;
	}
	return false;
}

/* The grammar of RFC 5222 for targets of redirects, and "_". Names are written to the log. */
static bool is_name(const char *s)
{
	size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._");

	return n && n < NAPTR_NAME_MAX && !s[n];
}

bool names_find(const struct names_ask *a)
{
	const struct known *k;
	struct waiter *w;

	if (!is_name(a->name) || waiting >= WAITERS_MAX)
		return false;
	w = calloc(1, sizeof(*w));
	if (!w)
		return false;
	k = known_find(a->name, a->configured);
	if (k && k->until > a->now) {
		strcpy(w->url, k->url);
		w->ended = true;
	} else if (!is_on_its_way(a->name, a->configured) && !lookup_start(a)) {
		free(w);
		return false;
	}
	strcpy(w->name, a->name);
	w->configured = a->configured;
	w->http = a->http;
	w->until = a->until;
	w->done = a->done;
	w->arg = a->arg;
	w->next = waiters;
	waiters = w;
	waiting++;
	return true;
}

/* The entry that expires first. */
static struct known *oldest(struct known *k)
{
	struct known *found = k;

	for (int i = 1; i < KNOWN; i++)
		if (k[i].until < found->until)
			found = &k[i];
	return found;
}

/* Stores the result of a lookup. While no name server answers, the last result stays. */
static void keep(const struct lookup *l, bool configured, int64_t now)
{
	struct known *k = known_find(l->name, configured);

	if (!k || !l->silent) {
		k = k ? k : oldest(known[configured]);
		strcpy(k->name, l->name);
		strcpy(k->url, l->found.url);
	}
	k->until = now + (int64_t)l->found.ttl * 1000;
	for (struct waiter *w = waiters; w; w = w->next) {
		if (w->ended || w->configured != configured || strcasecmp(w->name, l->name))
			continue;
		strcpy(w->url, k->url);
		w->ended = true;
	}
}

static void collect(int64_t now)
{
	for (int configured = 0; configured < KINDS; configured++) {
		for (int i = 0; i < LOOKUPS_MAX; i++) {
			struct lookup *l = &lookups[configured][i];

			if (!l->used || !__atomic_load_n(&l->done, __ATOMIC_ACQUIRE))
				continue;
			keep(l, configured, now);
			l->used = false;
		}
	}
}

/* The first waiter of this http that has a result, or waits no longer, taken from the list. */
static struct waiter *next_ended(const struct http *http, int64_t now)
{
	for (struct waiter **at = &waiters; *at; at = &(*at)->next) {
		struct waiter *w = *at;

		if (w->http != http || (!w->ended && w->until > now))
			continue;
		*at = w->next;
		waiting--;
		return w;
	}
	return NULL;
}

void names_run(const struct http *http, int64_t now)
{
	struct waiter *w;

	collect(now);
	/* done() may ask for further names. */
	while ((w = next_ended(http, now))) {
		w->done(w->arg, w->url[0] ? w->url : NULL);
		free(w);
	}
}

bool names_busy(void)
{
	return waiters != NULL;
}
