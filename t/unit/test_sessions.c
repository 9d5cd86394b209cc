/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Handles of sessions, and commands to a keying thread that is slow: a restart from Redis opens
 * thousands of sessions at once, and none may be lost. */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "bridge/sessions.h"

enum { MAX = 4096, MANY = 3000 };

enum { STUCK = 300, OTHERS = 10 };

static struct side_channel *channel, *channels[2];
static struct bridge_sessions *s;
static int fd;
static uint32_t handle[MAX];

static bool stuck; /* worker 0 takes no commands */
static uint32_t worker_of[MAX], told[2];

static int on_event(void *arg, uint32_t session, const struct session_event *e)
{
	(void)arg;
	if (stuck && worker_of[session] == 0)
		return -EAGAIN;
	told[worker_of[session]] += e->kind == SESSION_FAILED;
	return 0;
}

static void start(void)
{
	struct bridge_sessions_config c = {.channel = channels,
		.workers = 2,
		.threads = 1,
		.max = MAX,
		.profile = {SUITE_AES_CM_128_80},
		.event = on_event};

	c.event_fd = fd = eventfd(0, EFD_NONBLOCK);
	channel = aligned_alloc(64, (sizeof(*channel) + 63) / 64 * 64);
	channels[0] = channel;
	channels[1] = aligned_alloc(64, (sizeof(*channel) + 63) / 64 * 64);
	assert_int_equal(side_init(channel), 0);
	assert_int_equal(side_init(channels[1]), 0);
	assert_int_equal(bridge_sessions_create(&s, &c), 0);
}

static void end(void)
{
	bridge_sessions_destroy(s);
	for (int i = 0; i < 2; i++) {
		side_fini(channels[i]);
		free(channels[i]);
	}
	close(fd);
}

static void take(uint32_t i)
{
	uint32_t serial;

	assert_int_equal(bridge_session_ops.take(s, &handle[i], &serial), 0);
}

static int set(uint32_t i, bool restored)
{
	struct session_cfg cfg = {.mux = true,
		.dtls = {.on = true,
			.role = DTLS_ROLE_SERVER,
			.association = 1,
			.established = restored}};
	struct relay_port port = {0};

	int err = bridge_session_ops.set(s, handle[i], 0, &port, &cfg);

	if (!err)
		bridge_session_ops.send(s, handle[i]);
	return err;
}

/* As the control thread: what waits goes as soon as there is room. */
static void until_open(uint32_t n)
{
	for (uint64_t give_up = clock_mono_ns() + 60 * NS_PER_SEC;;) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		struct bridge_sessions_usage u;
		uint64_t count;

		bridge_sessions_usage(s, &u);
		if (u.threads.sessions == n && !u.waiting)
			return;
		assert_true(clock_mono_ns() < give_up);
		(void)poll(&p, 1, 10);
		(void)!read(fd, &count, sizeof(count));
		bridge_sessions_poll(s);
	}
}

static void none_is_lost_behind_a_slow_thread(void **state)
{
	(void)state;
	start();
	for (uint32_t i = 0; i < MANY; i++) {
		take(i);
		assert_int_equal(set(i, true), 0);
	}
	/* Changes and ends of what still waits. */
	for (uint32_t i = 0; i < MANY; i += 2)
		assert_int_equal(set(i, true), 0);
	for (uint32_t i = 0; i < MANY; i += 3)
		bridge_session_ops.release(s, handle[i]);
	for (uint32_t i = 0; i < MANY; i += 6) {
		take(i);
		assert_int_equal(set(i, true), 0);
	}
	assert_int_equal(bridge_sessions_start(s), 0);
	until_open(MANY - MANY / 3 + MANY / 6);
	for (uint32_t i = 0; i < MANY; i++)
		if (i % 3 || !(i % 6))
			bridge_session_ops.release(s, handle[i]);
	until_open(0);
	end();
}

/* New calls are refused before too many wait; another relay may have time. */
static void an_overloaded_thread_gets_no_new_sessions(void **state)
{
	uint32_t n = 0;

	(void)state;
	start();
	for (; n < MANY; n++) {
		take(n);
		if (set(n, false))
			break;
	}
	assert_in_range(n, 256, MANY - 1);
	assert_int_equal(set(n, false), -EAGAIN);
	assert_int_equal(set(n, true), 0);
	assert_int_equal(set(0, false), 0);
	end();
}

/* Its session fails at once: the agent's address has no port. */
static void fail_session(uint32_t i, uint32_t worker)
{
	struct session_cfg cfg = {.mux = true, .ice = {.on = true}};
	struct relay_port port = {0};

	take(i);
	worker_of[handle[i]] = worker;
	assert_int_equal(bridge_session_ops.set(s, handle[i], worker, &port, &cfg), 0);
	bridge_session_ops.send(s, handle[i]);
}

static void until_told(uint32_t worker, uint32_t n)
{
	for (uint64_t give_up = clock_mono_ns() + 60 * NS_PER_SEC; told[worker] < n;) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		uint64_t count;

		assert_true(clock_mono_ns() < give_up);
		(void)poll(&p, 1, 10);
		(void)!read(fd, &count, sizeof(count));
		bridge_sessions_poll(s);
	}
}

/* A worker that takes no commands delays no events of another worker's calls. */
static void a_stuck_worker_delays_no_other(void **state)
{
	(void)state;
	start();
	memset(told, 0, sizeof(told));
	stuck = true;
	assert_int_equal(bridge_sessions_start(s), 0);
	for (uint32_t i = 0; i < STUCK; i++)
		fail_session(i, 0);
	for (uint32_t i = 0; i < OTHERS; i++)
		fail_session(STUCK + i, 1);
	until_told(1, OTHERS);
	assert_int_equal(told[0], 0);
	stuck = false;
	until_told(0, STUCK);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(none_is_lost_behind_a_slow_thread),
		cmocka_unit_test(a_stuck_worker_delays_no_other),
		cmocka_unit_test(an_overloaded_thread_gets_no_new_sessions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
