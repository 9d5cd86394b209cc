/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sleeps of the recording thread. The rule is checked against a simulated ring at rates up to what
 * a ring takes, and the thread against a poll() of this test, which brings packets and takes no
 * time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <poll.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "batch/engines.h"
#include "record/record.h"
#include "record/record_pace.h"
#include "virtual_time.h"

/* Packets that find the ring full in ten seconds. cost_ns: of a packet for the thread. paced: by
 * the rule; else after each look a long sleep. */
static uint64_t overflows(uint64_t per_s, uint64_t cost_ns, bool paced)
{
	uint64_t lost = 0, now = 0, came = 0;
	uint32_t waiting = 0, ms = RECORD_PACE_LONG_MS;

	while (now < 10 * NS_PER_SEC) {
		uint32_t found;

		/* A sleep, then the look: packets come during both. */
		for (int part = 0; part < 2; part++) {
			now += part ? found * cost_ns : ms * 1000000ull;
			for (; came < now * per_s / NS_PER_SEC; came++)
				if (waiting < TAP_ENTRIES)
					waiting++;
				else
					lost++;
			if (!part) {
				found = waiting;
				/* Entries become free one by one. So while the look lasts, the ring
				 * takes at least what it frees. */
				waiting = 0;
			}
		}
		if (paced)
			ms = record_pace_next(ms, found, TAP_ENTRIES);
	}
	return lost;
}

static void no_rate_below_the_limit_overflows(void **state)
{
	static const uint64_t cost_ns[] = {1000, 5000, 10000, 15000};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cost_ns); i++)
		for (uint64_t rate = 100; rate <= 51000; rate += 100)
			assert_int_equal(overflows(rate, cost_ns[i], true), 0);
	assert_true(overflows(45000, 10000, false) > 0);
	assert_true(overflows(60000, 10000, false) > 0);
}

/* --- The thread ------------------------------------------------------------------------------- */

enum { CALLS = 4 };

/* What each sleep brings, and how long it has to be. The length of the first one depends on when
 * the thread takes the commands of start(). */
static const struct {
	uint32_t packets;
	int ms;
} steps[] = {{0, -1}, {0, 20}, {700, 20}, {600, 0}, {300, 0}, {257, 0}, {256, 0}, {200, 4},
	{200, 4}, {128, 4}, {640, 20}, {60, 0}, {204, 4}, {10, 4}, {0, 20}, {0, 20}};

static struct {
	atomic_bool armed;
	sem_t done;
	size_t step;
	int ms[ARRAY_LEN(steps)];
	struct tap *tap;
	struct arena arena;
	uint32_t call[CALLS], sent;
} fake;

static void bring(uint32_t packets)
{
	struct packet_in in = {.src = {.addr = {192, 0, 2, 1}, .port = 4000, .family = AF_INET},
		.in_off = ARENA_HEADROOM,
		.len = 20};
	struct xc_job job = {.in_off = ARENA_HEADROOM, .hdr_len = 12, .body_len = 8};

	for (uint32_t i = 0; i < packets; i++)
		tap_packet(fake.tap, fake.call[fake.sent++ % CALLS], &fake.arena, &in, &job);
}

/* In place of the library's. */
int poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
	struct timespec t = {.tv_sec = timeout_ms / 1000, .tv_nsec = timeout_ms % 1000 * 1000000l};

	if (!atomic_load(&fake.armed))
		return (int)syscall(SYS_ppoll, fds, n, &t, NULL, 0);
	fake.ms[fake.step] = timeout_ms;
	bring(steps[fake.step].packets);
	if (++fake.step == ARRAY_LEN(steps)) {
		atomic_store(&fake.armed, false);
		sem_post(&fake.done);
	}
	return 0;
}

static void start(struct record *r)
{
	for (uint32_t i = 0; i < CALLS; i++) {
		char path[RECORD_PATH_MAX];
		struct record_start s = {
			.call_id = STR("call"), .metadata = STR("who:alice"), .about = STR("")};

		assert_int_equal(record_ops.start(r, &s, &fake.call[i], path), 0);
	}
}

static void the_thread_does_not_sleep_above_a_quarter(void **state)
{
	static const struct relay_local local = {
		.addr = {.addr = {192, 0, 2, 2}, .port = 0, .family = AF_INET}};
	char dir[] = "/tmp/xcipher-test-pace-XXXXXX", err[200], remove[100];
	struct tap *tap = calloc(1, sizeof(*tap));
	struct record_config cfg = {.taps = 1, .tap = &tap, .local = &local};
	struct record *r = NULL;
	struct record_stats n;
	uint32_t total = 0;
	uint64_t from;

	(void)state;
	assert_non_null(mkdtemp(dir));
	cfg.dir = dir;
	assert_int_equal(tap_init(tap), 0);
	assert_int_equal(arena_create(&fake.arena, 1, 2), 0);
	assert_int_equal(
		engine_serial.open(&cfg.serial, &(struct engine_config){0}, err, sizeof(err)), 0);
	assert_int_equal(record_create(&r, &cfg, err, sizeof(err)), 0);
	sem_init(&fake.done, 0, 0);
	fake.tap = tap;
	start(r);
	atomic_store(&fake.armed, true);
	while (sem_wait(&fake.done))
		;
	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		if (steps[i].ms >= 0)
			assert_int_equal(fake.ms[i], steps[i].ms);
		total += steps[i].packets;
	}
	for (uint32_t i = 0; i < CALLS; i++)
		record_ops.stop(r, fake.call[i], false);
	from = virtual_time_real_ns();
	do
		record_stats(r, &n);
	while (n.active && virtual_time_patient(from) && usleep(1000) == 0);
	assert_int_equal(n.active, 0);
	assert_int_equal(n.packets, total);
	assert_int_equal(n.lost + atomic_load(&tap->lost), 0);
	record_destroy(r);
	engine_serial.close(cfg.serial);
	arena_destroy(&fake.arena);
	tap_fini(tap);
	free(tap);
	snprintf(remove, sizeof(remove), "rm -r %s", dir);
	assert_int_equal(system(remove), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_rate_below_the_limit_overflows),
		cmocka_unit_test(the_thread_does_not_sleep_above_a_quarter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
