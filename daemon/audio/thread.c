/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The loop of a codec thread. It alone touches its sessions. */
#include "audio/thread.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "audio/ahead.h"
#include "audio/clip.h"
#include "audio/nap.h"
#include "audio/player.h"
#include "audio/source.h"
#include "audio/tx_batch.h"
#include "base/caps.h"
#include "base/clock.h"
#include "base/deadlines.h"
#include "base/ring.h"
#include "base/secmem.h"
#include "base/thread.h"

#define EVENT_RING 1024u
#define TURN       64u /* packets of one worker before those of the next */

enum { COUNTS = sizeof(struct audio_stats) / sizeof(uint64_t) };

struct slot {
	struct audio_session *session;      /* NULL: free */
	uint32_t serial, worker, stream[2]; /* [rtcp] */
};

struct audio_thread {
	struct audio_thread_config cfg;
	struct ring cmds, events;
	int wake_fd;
	pthread_t thread;
	bool running;
	_Atomic bool stop;
	_Atomic bool asleep; /* it waits for wake_fd, or is about to */
	/* Used by the thread only. */
	struct audio_env env;
	struct audio_tx_batch batch;
	struct audio_ahead ahead;
	struct slot *slot; /* [max] */
	struct deadlines deadlines;
	struct audio_nap nap;
	bool told;
	uint32_t seed;
	/* Written by the thread, read by all. */
	_Atomic uint64_t (*count)[COUNTS]; /* [max], struct audio_stats */
	_Atomic uint32_t *owner;           /* [max], serial of the session that count is of */
	_Atomic uint64_t packets, strays;
	_Atomic uint32_t sessions;
};

static void add(_Atomic uint64_t *c, uint64_t n)
{
	atomic_store_explicit(
		c, atomic_load_explicit(c, memory_order_relaxed) + n, memory_order_relaxed);
}

/* --- Output of sessions ----------------------------------------------------------------------- */

static struct audio_packet *place(void *arg, uint32_t id, bool rtcp)
{
	struct audio_thread *t = arg;
	const struct slot *s = &t->slot[id];
	struct audio_packet *p =
		audio_give(t->cfg.channel[s->worker], audio_session_cfg(s->session)->emergency);

	if (p) {
		p->stream = s->stream[rtcp];
		p->serial = s->serial;
	}
	return p;
}

static void placed(void *arg, uint32_t id)
{
	struct audio_thread *t = arg;

	audio_given(t->cfg.channel[t->slot[id].worker]);
}

static void report(struct audio_thread *t, const struct audio_event *e)
{
	/* If the ring is full, the event is dropped: calls need none of them. */
	t->told |= ring_push(&t->events, e, 1) == 0;
}

static void publish(struct audio_thread *t, const struct slot *s)
{
	uint64_t now[COUNTS];
	_Atomic uint64_t *out = t->count[s - t->slot];

	memcpy(now, audio_session_stats(s->session), sizeof(now));
	for (uint32_t i = 0; i < COUNTS; i++)
		atomic_store_explicit(&out[i], now[i], memory_order_relaxed);
}

static void counted(void *arg, uint32_t id)
{
	struct audio_thread *t = arg;

	publish(t, &t->slot[id]);
}

/* Reports the session's events and sets its deadline. Call it after each action of a session. */
static void settle(struct audio_thread *t, struct slot *s)
{
	struct audio_ended ended;
	struct audio_heard heard;

	audio_session_heard(s->session, &heard);
	for (uint32_t i = 0; i < heard.n; i++)
		report(t,
			&(struct audio_event){.serial = s->serial,
				.kind = AUDIO_EVENT_DIGIT,
				.digit = heard.digit[i]});
	audio_session_ended(s->session, &ended);
	for (uint32_t i = 0; i < ended.n; i++)
		report(t,
			&(struct audio_event){.serial = s->serial,
				.kind = AUDIO_EVENT_PLAYED,
				.id = ended.id[i]});
	if (audio_session_broke(s->session))
		report(t, &(struct audio_event){.serial = s->serial, .kind = AUDIO_EVENT_BROKEN});
	deadlines_set(&t->deadlines, (uint32_t)(s - t->slot), audio_session_deadline(s->session));
	publish(t, s);
}

static struct slot *slot_of(struct audio_thread *t, uint32_t serial)
{
	struct slot *s = &t->slot[serial % t->cfg.max];

	return s->session && s->serial == serial ? s : NULL;
}

/* The slot of the session that gets the audio of this one's terminal. NULL: none. */
static struct slot *hearer(struct audio_thread *t, const struct slot *s)
{
	uint32_t to = audio_session_cfg(s->session)->to;

	return to < t->cfg.max && t->slot[to].session && &t->slot[to] != s ? &t->slot[to] : NULL;
}

/* --- Commands --------------------------------------------------------------------------------- */

static void drop(struct audio_thread *t, struct slot *s)
{
	atomic_store_explicit(&t->owner[s - t->slot], 0, memory_order_relaxed);
	for (uint32_t i = 0; i < COUNTS; i++)
		atomic_store_explicit(&t->count[s - t->slot][i], 0, memory_order_release);
	deadlines_set(&t->deadlines, (uint32_t)(s - t->slot), DEADLINE_NEVER);
	audio_session_free(s->session);
	*s = (struct slot){0};
	atomic_fetch_sub_explicit(&t->sessions, 1, memory_order_relaxed);
}

static uint32_t seed(struct audio_thread *t)
{
	uint32_t n = 0;

	if (secmem_random(&n, sizeof(n)))
		n = ++t->seed * 2654435761u;
	return n;
}

static void discard(struct audio_cmd *c)
{
	audio_session_free(c->session);
	audio_order_free(c->order);
	audio_clip_unref(c->play.clip);
}

static void set(struct audio_thread *t, struct audio_cmd *c, uint64_t now_ns)
{
	struct slot *s = &t->slot[c->serial % t->cfg.max];

	if (c->session) {
		if (s->session)
			drop(t, s);
		*s = (struct slot){.session = c->session, .serial = c->serial};
		audio_session_init(s->session, &t->env, (uint32_t)(s - t->slot), seed(t), now_ns);
		atomic_fetch_add_explicit(&t->sessions, 1, memory_order_relaxed);
		atomic_store_explicit(&t->owner[s - t->slot], c->serial, memory_order_release);
		c->session = NULL;
	}
	if (!s->session || s->serial != c->serial || c->worker >= t->cfg.channels) {
		discard(c);
		return;
	}
	s->worker = c->worker;
	s->stream[false] = c->rtp_stream;
	s->stream[true] = c->rtcp_stream;
	audio_session_set(s->session, c->order, now_ns);
	settle(t, s);
}

/* Reports a play that failed as ended. */
static void play(struct audio_thread *t, struct slot *s, struct audio_cmd *c, uint64_t now_ns)
{
	const struct audio_event over = {
		.serial = s->serial, .kind = AUDIO_EVENT_PLAYED, .id = c->play.id};

	if (audio_session_play(s->session, &c->play, now_ns) == 0)
		c->play.clip = NULL;
	else
		report(t, &over);
	settle(t, s);
}

static void command(struct audio_thread *t, struct audio_cmd *c, uint64_t now_ns)
{
	struct slot *s = slot_of(t, c->serial);

	if (c->kind == AUDIO_SET) {
		set(t, c, now_ns);
		return;
	}
	if (s && c->kind == AUDIO_CLOSE) {
		audio_session_bye(s->session, now_ns);
		drop(t, s);
	} else if (s && c->kind == AUDIO_PLAY) {
		play(t, s, c, now_ns);
	} else if (s && c->kind == AUDIO_STOP) {
		audio_session_stop(s->session, c->id);
		settle(t, s);
	} else if (s && c->kind == AUDIO_DIGITS) {
		(void)audio_session_digits(s->session, c->digit, c->n, now_ns);
		settle(t, s);
	}
	discard(c);
}

static bool commands(struct audio_thread *t, uint64_t now_ns)
{
	struct audio_cmd c;
	uint32_t n = 0;

	for (; n < TURN && ring_pop(&t->cmds, &c); n++)
		command(t, &c, now_ns);
	return n;
}

/* --- Packets ---------------------------------------------------------------------------------- */

static void take(struct audio_thread *t, const struct audio_packet *p, uint64_t now_ns)
{
	struct slot *s = slot_of(t, p->serial), *to;

	if (!s) {
		add(&t->strays, 1);
		return;
	}
	to = hearer(t, s);
	audio_session_take(s->session, to ? to->session : NULL, p, now_ns);
	add(&t->packets, 1);
	settle(t, s);
	if (to)
		publish(t, to);
}

/* Decodes the packets of a turn that need no more than that, together. */
static void look_ahead(struct audio_thread *t, const struct audio_channel *c)
{
	const struct audio_packet *p;

	for (uint32_t n = 0; n < TURN && (p = audio_peek(c, n)); n++) {
		struct slot *s = slot_of(t, p->serial), *to = s ? hearer(t, s) : NULL;

		if (to)
			audio_ahead_add(&t->ahead, s->session, to->session, p);
	}
	audio_ahead_run(&t->ahead);
}

static bool channels(struct audio_thread *t, uint64_t now_ns)
{
	const struct audio_packet *p;
	bool any = false;

	for (uint32_t i = 0; i < t->cfg.channels; i++) {
		look_ahead(t, t->cfg.channel[i]);
		for (uint32_t n = 0; n < TURN && (p = audio_read(t->cfg.channel[i])); n++) {
			take(t, p, now_ns);
			audio_ahead_taken(&t->ahead, p);
			audio_read_end(t->cfg.channel[i]);
			any = true;
		}
		audio_ahead_end(&t->ahead);
	}
	return any;
}

/* Packets wait that the round left for the next one. */
static bool more(const struct audio_thread *t)
{
	for (uint32_t i = 0; i < t->cfg.channels; i++)
		if (audio_read(t->cfg.channel[i]))
			return true;
	return false;
}

/* Runs each session at most once, or one whose deadline does not advance would block the others. */
static bool ticks(struct audio_thread *t, uint64_t now_ns)
{
	uint32_t left = t->deadlines.n, id = 0;
	bool any = false;

	while (left-- && deadlines_first(&t->deadlines, &id) <= now_ns) {
		struct slot *s = &t->slot[id], *to = hearer(t, s);

		audio_session_tick(s->session, to ? to->session : NULL, now_ns);
		settle(t, s);
		if (to)
			publish(t, to);
		any = true;
	}
	return any;
}

static void wake(int fd)
{
	uint64_t one = 1;

	if (fd >= 0)
		(void)!write(fd, &one, sizeof(one));
}

static bool audio_thread_round(struct audio_thread *t, uint64_t now_ns)
{
	bool any = commands(t, now_ns);

	any |= channels(t, now_ns);
	any |= ticks(t, now_ns);
	audio_tx_run(&t->env);
	for (uint32_t i = 0; i < t->cfg.channels; i++)
		audio_give_end(t->cfg.channel[i]);
	if (t->told)
		wake(t->cfg.event_fd);
	t->told = false;
	return any;
}

/* --- The thread ------------------------------------------------------------------------------- */

/* Prepares to sleep: workers and the control thread wake the thread from now on. False: there is
 * work. */
static bool may_sleep(struct audio_thread *t)
{
	bool quiet;

	(void)atomic_exchange(&t->asleep, true);
	quiet = ring_empty(&t->cmds);
	for (uint32_t i = 0; i < t->cfg.channels; i++)
		quiet &= audio_sleep(t->cfg.channel[i]);
	return quiet;
}

static void sleep_until(struct audio_thread *t, uint64_t at_ns)
{
	struct pollfd fd = {.fd = t->wake_fd, .events = POLLIN};
	uint64_t now = clock_mono_ns(), left = at_ns > now ? at_ns - now : 0, n;
	struct timespec ts;

	left = left < NS_PER_SEC ? left : NS_PER_SEC;
	ts = (struct timespec){(time_t)(left / NS_PER_SEC), (long)(left % NS_PER_SEC)};
	if (ppoll(&fd, 1, &ts, NULL) > 0)
		(void)!read(t->wake_fd, &n, sizeof(n));
}

/* Packets and commands wait until then. */
static void nap_until(uint64_t at_ns)
{
	struct timespec ts = {(time_t)(at_ns / NS_PER_SEC), (long)(at_ns % NS_PER_SEC)};

	(void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
}

static void *run(void *arg)
{
	struct audio_thread *t = arg;

	(void)caps_limit(~t->cfg.keep_not);
	while (!atomic_load_explicit(&t->stop, memory_order_acquire)) {
		uint64_t now = clock_mono_ns(), nap, had;
		uint32_t id;
		bool any;

		t->env.real_ahead_ns = clock_real_ns() - now;
		t->env.now_ns = now;
		had = atomic_load_explicit(&t->packets, memory_order_relaxed);
		any = audio_thread_round(t, now);
		had = atomic_load_explicit(&t->packets, memory_order_relaxed) - had;
		nap = audio_nap_until(&t->nap, (uint32_t)had, more(t), now);
		if (nap)
			nap_until(nap);
		else if (!any && may_sleep(t))
			sleep_until(t, deadlines_first(&t->deadlines, &id));
	}
	return NULL;
}

/* --- Control thread --------------------------------------------------------------------------- */

uint32_t audio_thread_room(const struct audio_thread *t)
{
	return ring_room(&t->cmds);
}

int audio_thread_command(struct audio_thread *t, const struct audio_cmd *cmd, uint32_t spare)
{
	if (ring_room(&t->cmds) <= spare || ring_push(&t->cmds, cmd, 1))
		return -EAGAIN;
	if (atomic_exchange(&t->asleep, false))
		wake(t->wake_fd);
	return 0;
}

bool audio_thread_event(struct audio_thread *t, struct audio_event *out)
{
	return ring_pop(&t->events, out);
}

/* A session that ends while it is read gives zeroes. So the sums of all sessions never count one
 * that has ended as if it were the next one of its place. */
void audio_thread_stats(const struct audio_thread *t, uint32_t serial, struct audio_stats *out)
{
	uint32_t at = serial % t->cfg.max;
	const _Atomic uint32_t *owner = &t->owner[at];
	uint64_t now[COUNTS] = {0};

	if (atomic_load_explicit(owner, memory_order_acquire) == serial)
		for (uint32_t i = 0; i < COUNTS; i++)
			now[i] = atomic_load_explicit(&t->count[at][i], memory_order_acquire);
	if (atomic_load_explicit(owner, memory_order_relaxed) != serial)
		memset(now, 0, sizeof(now));
	memcpy(out, now, sizeof(*out));
}

static uint64_t cpu_of(const struct audio_thread *t)
{
	struct timespec ts;
	clockid_t clock;

	if (!t->running || pthread_getcpuclockid(t->thread, &clock) || clock_gettime(clock, &ts))
		return 0;
	return (uint64_t)ts.tv_sec * NS_PER_SEC + (uint64_t)ts.tv_nsec;
}

struct audio_thread_counts audio_thread_counts(const struct audio_thread *t)
{
	return (struct audio_thread_counts){
		.packets = atomic_load_explicit(&t->packets, memory_order_relaxed),
		.strays = atomic_load_explicit(&t->strays, memory_order_relaxed),
		.cpu_ns = cpu_of(t),
		.sessions = atomic_load_explicit(&t->sessions, memory_order_relaxed)};
}

static uint64_t cpu_now(void)
{
	struct timespec ts = {0};

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_SEC + (uint64_t)ts.tv_nsec;
}

/* --- Set-up ----------------------------------------------------------------------------------- */

int audio_thread_create(struct audio_thread **out, const struct audio_thread_config *cfg)
{
	struct audio_thread *t = aligned_alloc(64, (sizeof(*t) + 63) / 64 * 64);
	int err;

	if (!t)
		return -ENOMEM;
	memset(t, 0, sizeof(*t));
	t->cfg = *cfg;
	t->env = (struct audio_env){.codecs = cfg->codecs,
		.place = place,
		.placed = placed,
		.counted = counted,
		.batch = &t->batch,
		.g722 = cfg->g722,
		.arg = t,
		.cpu_ns = cpu_now};
	t->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = t->wake_fd < 0 ? -errno : 0;
	err = err ? err : ring_init(&t->cmds, 2 * cfg->max + 256, sizeof(struct audio_cmd));
	err = err ? err : ring_init(&t->events, EVENT_RING, sizeof(struct audio_event));
	err = err ? err : deadlines_init(&t->deadlines, cfg->max);
	t->slot = calloc(cfg->max, sizeof(*t->slot));
	t->count = calloc(cfg->max, sizeof(*t->count));
	t->owner = calloc(cfg->max, sizeof(*t->owner));
	if (!err && (!t->slot || !t->count || !t->owner))
		err = -ENOMEM;
	if (err) {
		audio_thread_destroy(t);
		return err;
	}
	for (uint32_t i = 0; i < cfg->channels; i++)
		cfg->channel[i]->thread_fd = t->wake_fd;
	*out = t;
	return 0;
}

int audio_thread_start(struct audio_thread *t)
{
	char name[16];
	int err;

	snprintf(name, sizeof(name), "codec-%u", t->cfg.index);
	err = thread_start(&t->thread, NULL, name, run, t);
	t->running = err == 0;
	return err;
}

static void rings_fini(struct audio_thread *t)
{
	struct audio_cmd c;

	while (t->cmds.mem && ring_pop(&t->cmds, &c))
		discard(&c);
	if (t->cmds.mem)
		ring_fini(&t->cmds);
	if (t->events.mem)
		ring_fini(&t->events);
}

void audio_thread_destroy(struct audio_thread *t)
{
	if (!t)
		return;
	if (t->running) {
		atomic_store_explicit(&t->stop, true, memory_order_release);
		wake(t->wake_fd);
		pthread_join(t->thread, NULL);
	}
	for (uint32_t i = 0; t->slot && i < t->cfg.max; i++)
		audio_session_free(t->slot[i].session);
	rings_fini(t);
	deadlines_fini(&t->deadlines);
	if (t->wake_fd >= 0)
		close(t->wake_fd);
	free(t->slot);
	free(t->count);
	free(t->owner);
	secmem_wipe(t, sizeof(*t));
	free(t);
}
