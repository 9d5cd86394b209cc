/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The keying thread with sessions that only count. Packets reach the right session, floods of DTLS
 * delay no STUN, deadlines run in order, events wait for room. Also run with a real thread. */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/secmem.h"
#include "base/deadlines.h"
#include "side/thread.h"

enum { MAX = 2048, CHANNELS = 2 };

/* --- Sessions that count ---------------------------------------------------------------------- */

struct session {
	uint64_t deadline_ns;
	uint32_t stun, dtls, ticks, events, answers;
	uint32_t port;
	bool ended;
	struct side_packet last;
};
static struct session *opened[MAX];
static uint32_t opens, destroyed, freed, no_memory;

static void *s_open(void *arg, void *cfg, uint64_t now_ns)
{
	struct session *s = cfg;

	(void)arg, (void)now_ns;
	if (no_memory) {
		free(cfg);
		return NULL;
	}
	opened[opens++ % ARRAY_LEN(opened)] = s;
	return s;
}

static void s_change(void *session, void *cfg, uint64_t now_ns)
{
	struct session *s = session, *c = cfg;

	(void)now_ns;
	s->deadline_ns = c->deadline_ns;
	s->events += c->events;
	free(c);
}

static void s_end(void *session, uint64_t now_ns)
{
	struct session *s = session;

	(void)now_ns;
	s->answers++;
}

static void s_settle(void *session, uint32_t association, bool rtcp, uint64_t now_ns)
{
	(void)session, (void)association, (void)rtcp, (void)now_ns;
}

static void s_destroy(void *session)
{
	destroyed++;
	free(session);
}

static void s_cfg_free(void *cfg)
{
	freed++;
	free(cfg);
}

/* Replies to each packet. */
static void s_take(void *session, uint32_t port, const struct side_packet *p, uint64_t now_ns)
{
	struct session *s = session;

	(void)now_ns;
	s->port = port;
	s->last = *p;
	s->stun += p->kind == SIDE_STUN;
	s->dtls += p->kind == SIDE_DTLS;
	s->answers++;
}

static bool s_next(void *session, uint32_t *port, struct side_packet *out)
{
	struct session *s = session;

	if (!s->answers)
		return false;
	s->answers--;
	*port = s->port;
	*out = s->last;
	return true;
}

static bool s_event(void *session, struct session_event *out)
{
	struct session *s = session;

	if (!s->events)
		return false;
	s->events--;
	*out = (struct session_event){.kind = SESSION_KEYS};
	memset(out->rx.key, 0x55, sizeof(out->rx.key));
	return true;
}

static uint64_t s_deadline(const void *session)
{
	return ((const struct session *)session)->deadline_ns;
}

static void s_tick(void *session, uint64_t now_ns)
{
	struct session *s = session;

	(void)now_ns;
	s->ticks++;
	s->deadline_ns = DEADLINE_NEVER;
}

static const struct side_session_ops OPS = {.open = s_open,
	.change = s_change,
	.end = s_end,
	.settle = s_settle,
	.destroy = s_destroy,
	.cfg_free = s_cfg_free,
	.take = s_take,
	.next = s_next,
	.event = s_event,
	.deadline = s_deadline,
	.tick = s_tick};

/* --- The rig ---------------------------------------------------------------------------------- */

struct rig {
	struct side_thread *t;
	struct side_channel *channel[CHANNELS];
	int event_fd;
};

static int setup(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));
	struct side_thread_config cfg = {.ops = &OPS, .channels = CHANNELS, .max = MAX};

	opens = destroyed = freed = no_memory = 0;
	for (int i = 0; i < CHANNELS; i++) {
		r->channel[i] = malloc(sizeof(struct side_channel));
		assert_int_equal(side_init(r->channel[i]), 0);
		r->channel[i]->worker_fd = eventfd(0, EFD_NONBLOCK);
	}
	cfg.channel = r->channel;
	cfg.event_fd = r->event_fd = eventfd(0, EFD_NONBLOCK);
	assert_int_equal(side_thread_create(&r->t, &cfg), 0);
	*state = r;
	return 0;
}

static int teardown(void **state)
{
	struct rig *r = *state;

	side_thread_destroy(r->t);
	for (int i = 0; i < CHANNELS; i++) {
		close(r->channel[i]->worker_fd);
		side_fini(r->channel[i]);
		free(r->channel[i]);
	}
	close(r->event_fd);
	free(r);
	return 0;
}

static void tell(struct rig *r, enum side_cmd_kind kind, uint32_t serial, struct session say)
{
	struct side_cmd c = {.kind = kind,
		.serial = serial,
		.channel = serial % CHANNELS,
		.stream = {10 * serial, 10 * serial + 1},
		.streams = 2};

	if (kind != SIDE_CLOSE) {
		c.cfg = malloc(sizeof(say));
		memcpy(c.cfg, &say, sizeof(say));
	}
	assert_int_equal(side_thread_command(r->t, &c), 0);
}

static int packet(struct rig *r, enum side_kind kind, uint32_t serial, uint32_t stream)
{
	/* Uses a new share each time, so that only the ring limits. */
	struct side_share share = {0};
	struct side_packet head = {.kind = kind, .serial = serial, .stream = stream};

	return side_take(
		r->channel[serial % CHANNELS], &share, &head, (const uint8_t *)"packet", 6);
}

static const struct session QUIET = {.deadline_ns = DEADLINE_NEVER};

static void tell_streams(
	struct rig *r, enum side_cmd_kind kind, uint32_t serial, const uint32_t *stream, uint32_t n)
{
	struct side_cmd c = {
		.kind = kind, .serial = serial, .channel = serial % CHANNELS, .streams = n};

	memcpy(c.stream, stream, n * sizeof(*stream));
	c.cfg = malloc(sizeof(QUIET));
	memcpy(c.cfg, &QUIET, sizeof(QUIET));
	assert_int_equal(side_thread_command(r->t, &c), 0);
}

/* --- Tests ------------------------------------------------------------------------------------ */

static void packets_reach_their_session_and_answers_their_stream(void **state)
{
	struct rig *r = *state;
	struct side_packet p;

	tell(r, SIDE_OPEN, 3, QUIET);
	tell(r, SIDE_OPEN, 4, QUIET);
	assert_true(side_thread_round(r->t, 1));
	assert_int_equal(side_thread_counts(r->t).sessions, 2);
	assert_int_equal(packet(r, SIDE_STUN, 3, 30), 0);
	assert_int_equal(packet(r, SIDE_DTLS, 4, 41), 0);
	assert_int_equal(packet(r, SIDE_STUN, 3 + MAX, 30), 0); /* an earlier or later session */
	assert_int_equal(packet(r, SIDE_STUN, 3, 40), 0);       /* another's stream */
	while (side_thread_round(r->t, 1))
		;
	assert_int_equal(opened[0]->stun, 1);
	assert_int_equal(opened[1]->dtls, 1);
	assert_int_equal(opened[1]->port, 1);
	assert_int_equal(side_thread_counts(r->t).strays, 2);
	assert_true(side_next(r->channel[1], &p));
	assert_int_equal(p.stream, 30);
	assert_int_equal(p.serial, 3);
	assert_false(side_next(r->channel[1], &p));
	assert_true(side_next(r->channel[0], &p));
	assert_int_equal(p.stream, 41);
	/* A new session replaces an old one. Commands for the old one do nothing. */
	tell(r, SIDE_OPEN, 3 + MAX, QUIET);
	tell(r, SIDE_CHANGE, 3, QUIET);
	side_thread_round(r->t, 1);
	assert_int_equal(destroyed, 1);
	assert_int_equal(freed, 1);
	/* The end of a session sends its pending packets. */
	tell(r, SIDE_CLOSE, 4, QUIET);
	side_thread_round(r->t, 1);
	assert_true(side_next(r->channel[0], &p));
	assert_int_equal(destroyed, 2);
	assert_int_equal(side_thread_counts(r->t).sessions, 1);
}

static void a_flood_of_dtls_delays_no_stun_and_no_other_session(void **state)
{
	struct rig *r = *state;

	tell(r, SIDE_OPEN, 2, QUIET);
	tell(r, SIDE_OPEN, 4, QUIET);
	side_thread_round(r->t, 1);
	for (int i = 0; i < 60; i++)
		assert_int_equal(packet(r, SIDE_DTLS, 2, 20), 0);
	assert_int_equal(packet(r, SIDE_DTLS, 4, 40), 0);
	assert_int_equal(packet(r, SIDE_STUN, 4, 40), 0);
	side_thread_round(r->t, 1);
	assert_int_equal(opened[1]->stun, 1);
	assert_int_equal(opened[0]->dtls, 1); /* one handshake step per round */
	while (side_thread_round(r->t, 1))
		;
	assert_int_equal(opened[0]->dtls, SIDE_WAITING_SHARE);
	assert_int_equal(opened[1]->dtls, 1);
	assert_int_equal(side_thread_counts(r->t).waiting_full, 60 - SIDE_WAITING_SHARE);
	/* Its share has returned. */
	assert_int_equal(packet(r, SIDE_DTLS, 2, 20), 0);
	while (side_thread_round(r->t, 1))
		;
	assert_int_equal(opened[0]->dtls, SIDE_WAITING_SHARE + 1);
}

/* Strangers fill the DTLS queue through many calls: a terminal's handshake continues. */
static void strangers_leave_room_for_believed_sources(void **state)
{
	struct rig *r = *state;
	const uint32_t last = SIDE_WAITING / 2 / SIDE_WAITING_SHARE + 32;
	struct side_packet head = {
		.kind = SIDE_DTLS, .believed = true, .serial = last, .stream = last * 10};
	struct side_share share = {0};

	for (uint32_t s = 1; s <= last; s++)
		tell(r, SIDE_OPEN, s, QUIET);
	side_thread_round(r->t, 1);
	for (uint32_t s = 1; s < last; s++) {
		for (uint32_t i = 0; i < SIDE_WAITING_SHARE; i++)
			assert_int_equal(packet(r, SIDE_DTLS, s, s * 10), 0);
		if (s % 16 == 0)
			side_thread_round(r->t, 1);
	}
	side_thread_round(r->t, 1);
	assert_true(side_thread_counts(r->t).waiting_full > 0);
	/* The flood takes each free place at once. */
	for (uint32_t s = 1; s < 100; s++)
		assert_int_equal(packet(r, SIDE_DTLS, s, s * 10), 0);
	assert_int_equal(side_take(r->channel[head.serial % CHANNELS], &share, &head,
				 (const uint8_t *)"packet", 6),
		0);
	while (side_thread_round(r->t, 1))
		;
	assert_int_equal(opened[last - 1]->dtls, 1);
}

/* A thousand terminals begin in the same instant, and another call has a flood. The worker fills
 * its ring between two steps of a handshake. No packet of a terminal is dropped, whether its source
 * is believed or not. */
static void a_thousand_handshakes_find_room_during_a_flood(void **state)
{
	struct rig *r = *state;
	const uint32_t calls = 1000, ring = SIDE_ENTRIES - SIDE_RESERVE - SIDE_BELIEVED;

	for (uint32_t s = 1; s <= calls + 1; s++) {
		tell(r, SIDE_OPEN, s, QUIET);
		if (s % 100 == 0)
			side_thread_round(r->t, 1);
	}
	side_thread_round(r->t, 1);
	for (uint32_t s = 1; s <= calls; s++) {
		assert_int_equal(packet(r, SIDE_DTLS, calls + 1, 10 * (calls + 1)), 0);
		assert_int_equal(packet(r, SIDE_DTLS, s, s * 10), 0);
		if (s % (ring / 2) == 0)
			side_thread_round(r->t, 1);
	}
	while (side_thread_round(r->t, 1))
		;
	for (uint32_t s = 1; s <= calls; s++)
		assert_int_equal(opened[s - 1]->dtls, 1);
	assert_true(opened[calls]->dtls >= SIDE_WAITING_SHARE);
	assert_int_equal(side_thread_counts(r->t).waiting_full, calls - opened[calls]->dtls);
}

static void deadlines_run_when_they_are_due(void **state)
{
	struct rig *r = *state;

	tell(r, SIDE_OPEN, 1, (struct session){.deadline_ns = 200});
	tell(r, SIDE_OPEN, 2, (struct session){.deadline_ns = 100});
	side_thread_round(r->t, 50);
	assert_false(side_thread_round(r->t, 99));
	assert_true(side_thread_round(r->t, 100));
	assert_int_equal(opened[0]->ticks, 0);
	assert_int_equal(opened[1]->ticks, 1);
	tell(r, SIDE_CHANGE, 1, (struct session){.deadline_ns = 300});
	side_thread_round(r->t, 250);
	assert_int_equal(opened[0]->ticks, 0);
	side_thread_round(r->t, 300);
	assert_int_equal(opened[0]->ticks, 1);
	assert_false(side_thread_round(r->t, UINT64_MAX - 1));
}

static void no_event_is_lost_when_its_ring_is_full(void **state)
{
	struct rig *r = *state;
	struct side_event e;
	uint64_t now = 1, count;
	uint32_t n = 0;

	tell(r, SIDE_OPEN, 5, (struct session){.deadline_ns = DEADLINE_NEVER, .events = 1000});
	for (; n < 1000 && now < 100000000000ull; now += 10000000) {
		side_thread_round(r->t, now);
		while (side_thread_event(r->t, &e)) {
			assert_int_equal(e.what.kind, SESSION_KEYS);
			assert_int_equal(e.serial, 5);
			n++;
		}
	}
	assert_int_equal(n, 1000);
	assert_int_equal(read(r->event_fd, &count, sizeof(count)), sizeof(count));
	no_memory = 1;
	tell(r, SIDE_OPEN, 6, QUIET);
	side_thread_round(r->t, now);
	assert_true(side_thread_event(r->t, &e));
	assert_int_equal(e.what.kind, SESSION_FAILED);
	assert_string_equal(e.what.why, "out of memory");
	assert_int_equal(e.serial, 6);
}

static void the_thread_wakes_for_commands_and_packets(void **state)
{
	struct rig *r = *state;
	struct pollfd fd = {.fd = r->channel[1]->worker_fd, .events = POLLIN};
	struct pollfd told = {.fd = r->event_fd, .events = POLLIN};
	struct side_packet p;
	struct side_event e;
	uint64_t count;

	assert_int_equal(side_thread_start(r->t), 0);
	tell(r, SIDE_OPEN, 7, (struct session){.deadline_ns = DEADLINE_NEVER, .events = 1});
	assert_int_equal(poll(&told, 1, 60000), 1);
	assert_true(side_thread_event(r->t, &e));
	assert_int_equal(e.serial, 7);
	for (int i = 0; i < 500; i++) {
		assert_int_equal(packet(r, i % 2 ? SIDE_STUN : SIDE_DTLS, 7, 71), 0);
		side_flush(r->channel[1]);
		r->channel[1]->pushed = 0;
		assert_int_equal(poll(&fd, 1, 60000), 1);
		(void)!read(fd.fd, &count, sizeof(count));
		assert_true(side_next(r->channel[1], &p));
		assert_int_equal(p.stream, 71);
	}
	tell(r, SIDE_OPEN, 8, QUIET); /* ends while sessions and commands exist */
}

static void deadlines_are_a_heap(void **state)
{
	struct deadlines d;
	uint32_t seed = 7, id = 0;

	(void)state;
	assert_int_equal(deadlines_init(&d, 32), 0);
	for (int i = 0; i < 20000; i++) {
		uint64_t least = DEADLINE_NEVER;

		seed = seed * 1664525u + 1013904223u;
		deadlines_set(&d, seed >> 27, seed >> 10 & 1 ? DEADLINE_NEVER : seed >> 12 & 0xfff);
		for (uint32_t k = 0; k < 32; k++)
			least = d.at[k] < least ? d.at[k] : least;
		assert_true(deadlines_first(&d, &id) == least);
		assert_true(least == DEADLINE_NEVER || d.at[id] == least);
	}
	deadlines_fini(&d);
}

/* A session knows its ports by their place in the list, which may change. */
static void a_session_may_have_several_addresses(void **state)
{
	static const uint32_t four[] = {30, 31, 72, 73}, fewer[] = {72, 73};
	struct rig *r = *state;
	struct side_packet p;

	tell_streams(r, SIDE_OPEN, 3, four, 4);
	assert_int_equal(packet(r, SIDE_STUN, 3, 73), 0);
	side_thread_round(r->t, 1);
	assert_int_equal(opened[0]->port, 3);
	assert_true(side_next(r->channel[1], &p));
	assert_int_equal(p.stream, 73);
	tell_streams(r, SIDE_CHANGE, 3, fewer, 2);
	assert_int_equal(packet(r, SIDE_STUN, 3, 73), 0);
	assert_int_equal(packet(r, SIDE_STUN, 3, 30), 0);
	side_thread_round(r->t, 1);
	assert_int_equal(opened[0]->port, 1);
	assert_int_equal(opened[0]->stun, 2);
	assert_int_equal(side_thread_counts(r->t).strays, 1);
	assert_true(side_next(r->channel[1], &p));
	assert_int_equal(p.stream, 73);
	/* Packets for a port that it has no more are not sent. */
	opened[0]->port = 3;
	opened[0]->answers = 1;
	tell_streams(r, SIDE_CHANGE, 3, fewer, 2);
	side_thread_round(r->t, 1);
	assert_false(side_next(r->channel[1], &p));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			packets_reach_their_session_and_answers_their_stream, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_session_may_have_several_addresses, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_flood_of_dtls_delays_no_stun_and_no_other_session, setup, teardown),
		cmocka_unit_test_setup_teardown(
			strangers_leave_room_for_believed_sources, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_thousand_handshakes_find_room_during_a_flood, setup, teardown),
		cmocka_unit_test_setup_teardown(deadlines_run_when_they_are_due, setup, teardown),
		cmocka_unit_test_setup_teardown(
			no_event_is_lost_when_its_ring_is_full, setup, teardown),
		cmocka_unit_test_setup_teardown(
			the_thread_wakes_for_commands_and_packets, setup, teardown),
		cmocka_unit_test(deadlines_are_a_heap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
