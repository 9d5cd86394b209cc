/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The loop of a keying thread. It alone touches the sessions. */
#include "side/thread.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/caps.h"
#include "base/clock.h"
#include "base/secmem.h"
#include "base/deadlines.h"
#include "base/thread.h"

#define CMD_RING   256u
#define EVENT_RING 256u
#define RETRY_NS   10000000ull /* events that found their ring full */
#define TURN       64u         /* STUN packets of a channel, then the next one's turn */

struct slot {
	void *session; /* NULL: free */
	uint32_t serial, channel, stream[SESSION_PORTS], streams;
	uint8_t waits[2]; /* of its packets in the queue, by [believed] */
};

/* Packets in the order of their arrival. Few wait as a rule, and the place freed last is used
 * first, so that only these few stay in memory and in the cache. */
struct waiting {
	struct side_packet *packet;    /* [SIDE_WAITING] */
	uint16_t order[SIDE_WAITING];  /* places of packets, a ring */
	uint16_t unused[SIDE_WAITING]; /* places without packets, a stack of SIDE_WAITING - n */
	uint32_t first, n;
};

struct side_thread {
	struct side_thread_config cfg;
	struct ring cmds, events;
	int wake_fd;
	pthread_t thread;
	bool running;
	_Atomic bool stop;
	_Atomic bool refused; /* a command found no room */
	/* The thread's. */
	struct slot *slot; /* [max] */
	struct deadlines deadlines;
	struct side_packet packet, answer;
	struct waiting waiting; /* DTLS and ZRTP */
	bool told;
	_Atomic uint64_t packets, strays, waiting_full, reported;
	_Atomic uint32_t sessions;
};

static void count(_Atomic uint64_t *c)
{
	atomic_fetch_add_explicit(c, 1, memory_order_relaxed);
}

/* --- Events of sessions ----------------------------------------------------------------------- */

static void send_answers(struct side_thread *t, struct slot *s)
{
	struct side_packet *p = &t->answer;
	uint32_t port = 0;

	while (t->cfg.ops->next(s->session, &port, p)) {
		if (port >= s->streams)
			continue;
		p->stream = s->stream[port];
		p->serial = s->serial;
		(void)side_give(t->cfg.channel[s->channel], p);
	}
}

static bool report(struct side_thread *t, const struct slot *s, struct side_event *e)
{
	e->serial = s->serial;
	if (ring_push(&t->events, e, 1))
		return false;
	count(&t->reported);
	t->told = true;
	return true;
}

/* Answers, events and the next deadline. An event stays in its session until the ring has room. */
static void settle(struct side_thread *t, struct slot *s, uint64_t now_ns)
{
	uint32_t id = (uint32_t)(s - t->slot);
	struct side_event e = {0};
	uint64_t at;

	send_answers(t, s);
	at = t->cfg.ops->deadline(s->session);
	while (ring_room(&t->events) && t->cfg.ops->event(s->session, &e.what))
		(void)report(t, s, &e);
	if (!ring_room(&t->events) && at > now_ns + RETRY_NS)
		at = now_ns + RETRY_NS;
	secmem_wipe(&e, sizeof(e));
	deadlines_set(&t->deadlines, id, at);
}

/* --- Commands --------------------------------------------------------------------------------- */

static void drop(struct side_thread *t, struct slot *s)
{
	deadlines_set(&t->deadlines, (uint32_t)(s - t->slot), DEADLINE_NEVER);
	t->cfg.ops->destroy(s->session);
	*s = (struct slot){0};
	atomic_fetch_sub_explicit(&t->sessions, 1, memory_order_relaxed);
}

static void set_streams(struct slot *s, const struct side_cmd *c)
{
	s->streams = c->streams < SESSION_PORTS ? c->streams : SESSION_PORTS;
	memcpy(s->stream, c->stream, sizeof(s->stream));
}

static void open_session(
	struct side_thread *t, struct slot *s, const struct side_cmd *c, uint64_t now_ns)
{
	struct side_event failed = {.what = {.kind = SESSION_FAILED, .why = "out of memory"}};

	if (s->session)
		drop(t, s);
	*s = (struct slot){.serial = c->serial,
		.channel = c->channel,
		.session = t->cfg.ops->open(t->cfg.arg, c->cfg, now_ns)};
	set_streams(s, c);
	if (s->session) {
		atomic_fetch_add_explicit(&t->sessions, 1, memory_order_relaxed);
		settle(t, s, now_ns);
		return;
	}
	(void)report(t, s, &failed);
	*s = (struct slot){0};
}

static void command(struct side_thread *t, const struct side_cmd *c, uint64_t now_ns)
{
	struct slot *s = &t->slot[c->serial % t->cfg.max];
	bool same = s->session && s->serial == c->serial;

	if (c->kind == SIDE_OPEN && c->channel < t->cfg.channels) {
		open_session(t, s, c, now_ns);
	} else if (c->kind == SIDE_CHANGE && same) {
		set_streams(s, c);
		t->cfg.ops->change(s->session, c->cfg, now_ns);
		settle(t, s, now_ns);
	} else if (c->kind == SIDE_SETTLE && same) {
		t->cfg.ops->settle(s->session, c->association, c->rtcp, now_ns);
		settle(t, s, now_ns);
	} else if (c->kind == SIDE_CLOSE && same) {
		t->cfg.ops->end(s->session, now_ns);
		send_answers(t, s);
		drop(t, s);
	} else if (c->cfg) {
		t->cfg.ops->cfg_free(c->cfg);
	}
}

static bool commands(struct side_thread *t, uint64_t now_ns)
{
	struct side_cmd c;
	uint32_t n = 0;

	while (n < CMD_RING && ring_pop(&t->cmds, &c)) {
		command(t, &c, now_ns);
		n++;
	}
	if (atomic_load_explicit(&t->refused, memory_order_relaxed) &&
		atomic_exchange_explicit(&t->refused, false, memory_order_acquire))
		t->told = true;
	return n;
}

/* --- Packets ---------------------------------------------------------------------------------- */

/* The session of a packet. NULL: it ended. */
static struct slot *session_of(struct side_thread *t, const struct side_packet *p)
{
	struct slot *s = &t->slot[p->serial % t->cfg.max];

	return s->session && s->serial == p->serial ? s : NULL;
}

/* The same, and *port: the port it arrived at. NULL: the session no longer has this port. */
static struct slot *slot_of(struct side_thread *t, const struct side_packet *p, uint32_t *port)
{
	struct slot *s = session_of(t, p);

	for (*port = 0; s && *port < s->streams; (*port)++)
		if (s->stream[*port] == p->stream)
			return s;
	return NULL;
}

static void take(struct side_thread *t, const struct side_packet *p, uint64_t now_ns)
{
	uint32_t port;
	struct slot *s = slot_of(t, p, &port);

	if (!s) {
		count(&t->strays);
		return;
	}
	count(&t->packets);
	t->cfg.ops->take(s->session, port, p, now_ns);
	settle(t, s, now_ns);
}

/* A session has a share of the queue, and emergency calls and believed sources have a reserve, as
 * in the ring. */
static void wait_its_turn(struct side_thread *t, const struct side_packet *p)
{
	struct waiting *w = &t->waiting;
	uint32_t port;
	uint16_t place;
	struct slot *s = slot_of(t, p, &port);
	uint32_t room = SIDE_WAITING - (p->emergency ? 0 : SIDE_WAITING / 4) -
		(p->believed ? 0 : SIDE_WAITING / 4);

	if (!s) {
		count(&t->strays);
		return;
	}
	if (w->n >= room || s->waits[p->believed] >= SIDE_WAITING_SHARE) {
		count(&t->waiting_full);
		return;
	}
	s->waits[p->believed]++;
	place = w->unused[SIDE_WAITING - 1 - w->n];
	side_packet_copy(&w->packet[place], p);
	w->order[(w->first + w->n++) % SIDE_WAITING] = place;
}

/* Reads up to a full ring, so that it has room again before the next step of a handshake, but
 * no more STUN than the ring of answers has room for. */
static bool channel_read(struct side_thread *t, struct side_channel *c, uint64_t now_ns)
{
	uint32_t n = 0, stun = 0;

	while (n < SIDE_ENTRIES && stun < TURN && side_read(c, &t->packet)) {
		n++;
		if (t->packet.kind == SIDE_STUN) {
			stun++;
			take(t, &t->packet, now_ns);
		} else {
			wait_its_turn(t, &t->packet);
		}
	}
	return n;
}

static bool channels(struct side_thread *t, uint64_t now_ns)
{
	bool any = false;

	for (uint32_t i = 0; i < t->cfg.channels; i++)
		any |= channel_read(t, t->cfg.channel[i], now_ns);
	return any;
}

static bool one_waiting(struct side_thread *t, uint64_t now_ns)
{
	struct waiting *w = &t->waiting;
	uint16_t place = w->order[w->first];
	const struct side_packet *p = &w->packet[place];
	struct slot *s;

	if (!w->n)
		return false;
	s = session_of(t, p);
	if (s)
		s->waits[p->believed]--;
	take(t, p, now_ns);
	w->first = (w->first + 1) % SIDE_WAITING;
	w->unused[SIDE_WAITING - w->n--] = place;
	return true;
}

/* Each session at most once, or one whose deadline does not move would stop the others. */
static bool ticks(struct side_thread *t, uint64_t now_ns)
{
	uint32_t left = t->deadlines.n, id = 0;
	bool any = false;

	while (left-- && deadlines_first(&t->deadlines, &id) <= now_ns) {
		t->cfg.ops->tick(t->slot[id].session, now_ns);
		settle(t, &t->slot[id], now_ns);
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

bool side_thread_round(struct side_thread *t, uint64_t now_ns)
{
	bool any = commands(t, now_ns);

	any |= channels(t, now_ns);
	any |= ticks(t, now_ns);
	any |= one_waiting(t, now_ns);
	for (uint32_t i = 0; i < t->cfg.channels; i++)
		side_give_end(t->cfg.channel[i]);
	if (t->told)
		wake(t->cfg.event_fd);
	t->told = false;
	return any;
}

/* --- The thread ------------------------------------------------------------------------------- */

/* Whether nothing waits; from then on workers wake us. */
static bool may_sleep(struct side_thread *t)
{
	bool quiet = ring_empty(&t->cmds) && !t->waiting.n;

	for (uint32_t i = 0; i < t->cfg.channels; i++)
		quiet &= side_sleep(t->cfg.channel[i]);
	return quiet;
}

static void sleep_until(struct side_thread *t, uint64_t at_ns)
{
	struct pollfd fd = {.fd = t->wake_fd, .events = POLLIN};
	uint64_t now = clock_mono_ns(), left = at_ns > now ? at_ns - now : 0, n;

	left = left < NS_PER_SEC ? left : NS_PER_SEC;
	if (poll(&fd, 1, (int)((left + 999999) / 1000000)) > 0)
		(void)!read(t->wake_fd, &n, sizeof(n));
}

static void *run(void *arg)
{
	struct side_thread *t = arg;

	(void)caps_limit(~t->cfg.keep_not);
	while (!atomic_load_explicit(&t->stop, memory_order_acquire)) {
		uint32_t id;

		if (!side_thread_round(t, clock_mono_ns()) && may_sleep(t))
			sleep_until(t, deadlines_first(&t->deadlines, &id));
	}
	return NULL;
}

/* --- Set-up ----------------------------------------------------------------------------------- */

int side_thread_create(struct side_thread **out, const struct side_thread_config *cfg)
{
	struct side_thread *t = aligned_alloc(64, (sizeof(*t) + 63) / 64 * 64);
	int err;

	if (!t)
		return -ENOMEM;
	memset(t, 0, sizeof(*t));
	t->cfg = *cfg;
	t->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = t->wake_fd < 0 ? -errno : 0;
	err = err ? err : ring_init(&t->cmds, CMD_RING, sizeof(struct side_cmd));
	err = err ? err : ring_init(&t->events, EVENT_RING, sizeof(struct side_event));
	err = err ? err : deadlines_init(&t->deadlines, cfg->max);
	t->slot = calloc(cfg->max, sizeof(*t->slot));
	t->waiting.packet = calloc(SIDE_WAITING, sizeof(*t->waiting.packet));
	for (uint16_t i = 0; i < SIDE_WAITING; i++)
		t->waiting.unused[i] = (uint16_t)(SIDE_WAITING - 1 - i);
	if (!err && (!t->slot || !t->waiting.packet))
		err = -ENOMEM;
	if (err) {
		side_thread_destroy(t);
		return err;
	}
	for (uint32_t i = 0; i < cfg->channels; i++)
		cfg->channel[i]->thread_fd = t->wake_fd;
	*out = t;
	return 0;
}

int side_thread_start(struct side_thread *t)
{
	char name[16];
	int err;

	snprintf(name, sizeof(name), "keying-%u", t->cfg.index);
	err = thread_start(&t->thread, NULL, name, run, t);
	t->running = err == 0;
	return err;
}

static void rings_fini(struct side_thread *t)
{
	struct side_cmd c;

	while (t->cmds.mem && ring_pop(&t->cmds, &c))
		if (c.cfg)
			t->cfg.ops->cfg_free(c.cfg);
	if (t->cmds.mem)
		ring_fini(&t->cmds);
	if (t->events.mem)
		ring_fini(&t->events);
}

void side_thread_destroy(struct side_thread *t)
{
	if (!t)
		return;
	if (t->running) {
		atomic_store_explicit(&t->stop, true, memory_order_release);
		wake(t->wake_fd);
		pthread_join(t->thread, NULL);
	}
	for (uint32_t i = 0; t->slot && i < t->cfg.max; i++)
		if (t->slot[i].session)
			t->cfg.ops->destroy(t->slot[i].session);
	rings_fini(t);
	deadlines_fini(&t->deadlines);
	free(t->slot);
	free(t->waiting.packet);
	if (t->wake_fd >= 0)
		close(t->wake_fd);
	secmem_wipe(t, sizeof(*t));
	free(t);
}

/* --- Control thread --------------------------------------------------------------------------- */

int side_thread_command(struct side_thread *t, const struct side_cmd *cmd)
{
	int err = ring_push(&t->cmds, cmd, 1) ? -EAGAIN : 0;

	/* Set it before waking the thread: then the thread reports when there is room. */
	if (err)
		atomic_store_explicit(&t->refused, true, memory_order_release);
	wake(t->wake_fd);
	return err;
}

bool side_thread_event(struct side_thread *t, struct side_event *out)
{
	return ring_pop(&t->events, out);
}

struct side_thread_counts side_thread_counts(const struct side_thread *t)
{
	return (struct side_thread_counts){
		.packets = atomic_load_explicit(&t->packets, memory_order_relaxed),
		.strays = atomic_load_explicit(&t->strays, memory_order_relaxed),
		.waiting_full = atomic_load_explicit(&t->waiting_full, memory_order_relaxed),
		.events = atomic_load_explicit(&t->reported, memory_order_relaxed),
		.sessions = atomic_load_explicit(&t->sessions, memory_order_relaxed)};
}
