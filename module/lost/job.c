/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <core/dprint.h>
#include <core/kemi.h>
#include <core/mem/shm.h>
#include <core/pt.h>
#include <core/route.h>
#include <core/sr_module.h>
#include <modules/tm/tm_load.h>

#include "forks.h"
#include "settings.h"

/* Time beyond the deadline that a waiting worker gives the client. */
#define GRACE_MS 500

extern struct tm_binds tmb;

/* The last result in this process. */
static struct {
	struct answer answer;
	unsigned id; /* of the message */
	bool valid;
} last;

/* The job that is being continued, for resume(): it runs inside t_continue(). */
static struct {
	struct job *job;
	bool ran;
} current;

static int resume(struct sip_msg *msg, char *a, char *b);
static ksr_cmd_export_t resume_cmd = {.name = "xlost_resume", .function = resume};
static struct action resume_action;

int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int job_init(void)
{
	resume_action.type = MODULE0_T;
	resume_action.count = 2;
	resume_action.val[0].type = MODEXP_ST;
	resume_action.val[0].u.data = &resume_cmd;
	return 0;
}

void job_destroy(void)
{
	answer_clear(&last.answer);
	last.valid = false;
}

const struct answer *last_answer(const struct sip_msg *msg)
{
	return last.valid && msg && msg->id == last.id ? &last.answer : NULL;
}

static void count(const struct answer *a)
{
	switch (a->result) {
	case RESULT_OK:
		counter_inc(counters.answered);
		break;
	case RESULT_NO_ANSWER:
		counter_inc(counters.no_answer);
		break;
	case RESULT_NO_LOCATION:
		counter_inc(counters.no_location);
		break;
	case RESULT_REFUSED:
		counter_inc(counters.refused);
		break;
	case RESULT_REFERENCE:
		counter_inc(counters.references_failed);
		break;
	case RESULT_BUSY:
		counter_inc(counters.busy);
		break;
	default:
		break;
	}
}

/* Makes the answer, whose texts it takes over, that of this message. */
static int remember(const struct sip_msg *msg, struct answer *a)
{
	answer_clear(&last.answer);
	last.answer = *a;
	last.id = msg->id;
	last.valid = true;
	*a = (struct answer){0};
	count(&last.answer);
	return last.answer.result;
}

int job_result(struct sip_msg *msg, enum result r)
{
	struct answer a = {.result = r};

	return remember(msg, &a);
}

/* --- Cache ------------------------------------------------------------------------------------ */

bool job_cached(void *arg, const char *service, const struct spot *s, struct answer *a)
{
	enum cache_found found;

	(void)arg;
	if (!settings.cache_entries)
		return false;
	lock_get(&shared->lock);
	found = cache_find(&shared->cache, service, s, time(NULL), a);
	lock_release(&shared->lock);
	counter_inc(found == CACHE_HIT             ? counters.cache_hits
			: found == CACHE_AMBIGUOUS ? counters.cache_ambiguous
						   : counters.cache_misses);
	return found == CACHE_HIT;
}

/* The best location decides: only if the cache knows it, no query is needed. */
static bool answer_at_once(const struct ask *ask, struct answer *a)
{
	const struct source *s = &ask->source[0];

	if (ask->op != ASK_FIND || s->reference || !s->place.known ||
		!job_cached(NULL, ask->service, &s->place.spot, a))
		return false;
	a->result = RESULT_OK;
	a->tries = 0;
	answer_put(a, A_profile, profile_name(s->place.profile));
	answer_put(a, A_method, METHOD_NAMES[s->method]);
	return true;
}

/* --- The worker's part ------------------------------------------------------------------------ */

static void leave(bool reference)
{
	__atomic_sub_fetch(&shared->in_flight, 1, __ATOMIC_RELAXED);
	if (reference)
		__atomic_sub_fetch(&shared->references, 1, __ATOMIC_RELAXED);
}

/* Takes a place for a function. False: none is free. Callers choose the servers that their
 * references name, and these may be slow: so references have half of the places. */
static bool enter(bool reference)
{
	int most = (settings.queries + 1) / 2;

	if (__atomic_add_fetch(&shared->in_flight, 1, __ATOMIC_RELAXED) > settings.queries) {
		__atomic_sub_fetch(&shared->in_flight, 1, __ATOMIC_RELAXED);
		LM_WARN("more than %d queries in flight\n", settings.queries);
		return false;
	}
	if (!reference || __atomic_add_fetch(&shared->references, 1, __ATOMIC_RELAXED) <= most)
		return true;
	leave(true);
	LM_WARN("more than %d queries with references in flight\n", most);
	return false;
}

static void job_free(struct job *j)
{
	size_t size = sizeof(*j) + ask_flat_size(j->ask);

	if (j->answer) {
		explicit_bzero(j->answer, answer_flat_size(j->answer));
		shm_free(j->answer);
	}
	forks_free(j->forks);
	if (j->wait)
		sem_destroy(&j->done);
	leave(j->reference);
	explicit_bzero(j, size); /* a location */
	shm_free(j);
}

/* Script and client share a job. The last one frees it. */
static void job_unref(struct job *j)
{
	if (!__atomic_sub_fetch(&j->refs, 1, __ATOMIC_ACQ_REL))
		job_free(j);
}

static struct job *job_new(const struct ask *ask, bool wait)
{
	struct job *j = shm_malloc(sizeof(*j) + ask_flat_size(ask));

	if (!j)
		return NULL;
	memset(j, 0, sizeof(*j));
	j->ask = ask_flatten(ask, j + 1);
	j->deadline = now_ms() + settings.deadline;
	j->wait = wait;
	j->refs = wait ? 2 : 1;
	if (wait && sem_init(&j->done, 1, 0)) {
		shm_free(j);
		return NULL;
	}
	return j;
}

/* Gives the job to a client. False: its pipe is full, or it is not running. */
static bool job_push(struct job *j)
{
	int fd = shared->pipe[process_no % settings.clients][1];

	return write(fd, &j, sizeof(void *)) == sizeof(void *);
}

/* The caller has given up. */
static bool is_canceled(const struct sip_msg *msg)
{
	struct cell *t = tmb.t_gett();

	return msg->first_line.type == SIP_REQUEST && t && t != T_UNDEFINED &&
		t->flags & T_CANCELED;
}

/* For a canceled call, which tm has answered: the script must not go on. */
static int end_canceled(void)
{
	counter_inc(counters.gone);
	return RESULT_SUSPENDED;
}

static bool suspendable(struct sip_msg *msg)
{
	struct cell *t = tmb.t_gett();
	bool has = t && t != T_UNDEFINED;

	if (msg->first_line.type != SIP_REQUEST || msg->REQ_METHOD & (METHOD_ACK | METHOD_CANCEL))
		return false;
	if (has)
		return !(t->flags & T_ASYNC_SUSPENDED) && t->uas.status < 200;
	return get_route_type() == REQUEST_ROUTE;
}

static bool route_exists(const char *name)
{
	char copy[ROUTE_LEN];
	int n;

	if (sr_kemi_eng_get())
		return true;
	strcpy(copy, name);
	n = route_lookup(&main_rt, copy);
	return n >= 0 && main_rt.rlist[n];
}

/* Creates the transaction if there is none. 1; 0: a retransmission, which tm has answered or
 * absorbed; negative: tm refuses the request, for example because of its URI. */
static int have_transaction(struct sip_msg *msg)
{
	struct cell *t = tmb.t_gett();

	return t && t != T_UNDEFINED ? 1 : tmb.t_newtran(msg);
}

static int suspend(struct sip_msg *msg, struct job *j)
{
	bool pushed;
	int err;

	j->forks = forks_save(&j->fork_count);
	err = tmb.t_suspend(msg, &j->tm_index, &j->tm_label);
	if (err) {
		job_free(j);
		if (err < 0) {
			LM_ERR("the transaction cannot be suspended\n");
			return job_result(msg, RESULT_INTERNAL);
		}
		return end_canceled();
	}
	pushed = job_push(j);
	if (pushed) {
		counter_inc(counters.suspended);
		return RESULT_SUSPENDED;
	}
	tmb.t_cancel_suspend(j->tm_index, j->tm_label);
	job_free(j);
	return job_result(msg, RESULT_BUSY);
}

static bool wait_for(struct job *j)
{
	struct timespec t;
	int64_t ms = settings.deadline + GRACE_MS;
	int err;

	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_sec += ms / 1000;
	t.tv_nsec += ms % 1000 * 1000000;
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	do
		err = sem_clockwait(&j->done, CLOCK_MONOTONIC, &t);
	while (err && errno == EINTR);
	return !err;
}

static int wait_here(struct sip_msg *msg, struct job *j)
{
	struct answer a = {.result = RESULT_NO_ANSWER};

	bool here;

	counter_inc(counters.waited);
	here = client_wait(j);
	if (!here && !job_push(j)) {
		job_free(j);
		return job_result(msg, RESULT_BUSY);
	}
	if (here || wait_for(j)) {
		if (!j->answer || !answer_copy(&a, j->answer))
			a = (struct answer){.result = RESULT_INTERNAL};
	} else {
		answer_put(&a, A_error, http_error_name(HTTP_TIMEOUT));
	}
	job_unref(j);
	return remember(msg, &a);
}

/* Values precede references. */
static bool has_reference(const struct ask *ask)
{
	return ask->sources && ask->source[ask->sources - 1].reference;
}

/* False: the message has no value, so it needs its references. */
static bool drop_references(struct ask *ask)
{
	if (ask->source[0].reference)
		return false;
	while (has_reference(ask))
		free(ask->source[--ask->sources].place.xml);
	return true;
}

static int start(struct sip_msg *msg, struct ask *ask, str route)
{
	bool wait = !route.len || !suspendable(msg), reference = has_reference(ask);
	int n = wait ? -1 : have_transaction(msg);
	struct job *j;

	if (n == 0)
		return RESULT_SUSPENDED;
	if (route.len && is_canceled(msg))
		return end_canceled();
	wait = n < 0;
	if (!enter(reference)) {
		if (!reference || !drop_references(ask) || !enter(false))
			return job_result(msg, RESULT_BUSY);
		reference = false;
	}
	j = job_new(ask, wait);
	if (!j) {
		leave(reference);
		return job_result(msg, RESULT_INTERNAL);
	}
	j->reference = reference;
	memcpy(j->route, route.s, (size_t)route.len);
	if (!wait && !route_exists(j->route)) {
		LM_ERR("route[%s] is missing: the call cannot continue there\n", j->route);
		job_free(j);
		return job_result(msg, RESULT_INTERNAL);
	}
	return wait ? wait_here(msg, j) : suspend(msg, j);
}

int job_run(struct sip_msg *msg, struct ask *ask, str route)
{
	struct answer a = {0};
	int r;

	counter_inc(counters.requests);
	last.valid = false;
	if (route.len >= ROUTE_LEN)
		r = job_result(msg, RESULT_INTERNAL);
	else if ((ask->op == ASK_FIND || ask->op == ASK_LIST) && !ask->sources)
		r = job_result(msg, RESULT_NO_LOCATION);
	else if (answer_at_once(ask, &a))
		r = remember(msg, &a);
	else
		r = start(msg, ask, route);
	ask_clear(ask);
	return r;
}

/* --- The client's part ------------------------------------------------------------------------ */

/* Replaces the script's route: sets the variables, then runs that route. */
static int resume(struct sip_msg *msg, char *a, char *b)
{
	struct job *j = current.job;
	sr_kemi_eng_t *keng = sr_kemi_eng_get();
	str name = {j->route, (int)strlen(j->route)}, event = str_init("xlost:resume");
	struct answer answer;
	int n;

	(void)a;
	(void)b;
	current.ran = true;
	if (!j->answer || !answer_copy(&answer, j->answer))
		answer = (struct answer){.result = RESULT_INTERNAL};
	remember(msg, &answer);
	forks_restore(msg, j->forks, j->forks ? j->fork_count : 0);
	j->forks = NULL;
	if (keng)
		return sr_kemi_route(keng, msg, get_route_type(), &name, &event) < 0 ? -1 : 1;
	n = route_lookup(&main_rt, j->route);
	if (n < 0 || !main_rt.rlist[n])
		return -1;
	run_top_route(main_rt.rlist[n], msg, NULL);
	return 1;
}

void job_conclude(struct job *j, const struct answer *a)
{
	void *block = shm_malloc(answer_flat_size(a));

	j->answer = block ? answer_flatten(a, block) : NULL;
	if (j->wait) {
		sem_post(&j->done);
		job_unref(j);
		return;
	}
	current.job = j;
	current.ran = false;
	if (tmb.t_continue(j->tm_index, j->tm_label, &resume_action) < 0 || !current.ran)
		counter_inc(counters.gone);
	current.job = NULL;
	last.valid = false;
	job_free(j);
}
