/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The control thread's event loop: a removed descriptor or timer is not called any more, not even
 * in the same round. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/loop.h"

struct rig {
	struct loop *l;
	struct loop_io *io[2];
	struct loop_timer *timer[2], *stop;
	int fd[2];
	int called[2], ticks[2];
};

static void setup(struct rig *r)
{
	*r = (struct rig){0};
	assert_int_equal(loop_create(&r->l), 0);
	for (int i = 0; i < 2; i++) {
		r->fd[i] = eventfd(1, EFD_NONBLOCK);
		assert_true(r->fd[i] >= 0);
	}
}

static void teardown(struct rig *r)
{
	loop_destroy(r->l);
	close(r->fd[0]);
	close(r->fd[1]);
}

static void stop_soon(void *arg)
{
	struct rig *r = arg;

	loop_stop(r->l);
}

/* Both descriptors are ready; the first one called removes both. */
static void remove_both(struct rig *r)
{
	for (int i = 0; i < 2; i++) {
		loop_io_remove(r->io[i]);
		r->io[i] = NULL;
	}
}

static void first(void *arg, uint32_t events)
{
	struct rig *r = arg;

	assert_true(events & EPOLLIN);
	r->called[0]++;
	remove_both(r);
}

static void second(void *arg, uint32_t events)
{
	struct rig *r = arg;

	assert_true(events & EPOLLIN);
	r->called[1]++;
	remove_both(r);
}

static void what_was_removed_is_not_called(void **state)
{
	struct rig r;
	struct loop_timer *end;

	(void)state;
	setup(&r);
	assert_int_equal(loop_io_add(r.l, &r.io[0], r.fd[0], EPOLLIN, first, &r), 0);
	assert_int_equal(loop_io_add(r.l, &r.io[1], r.fd[1], EPOLLIN, second, &r), 0);
	assert_int_equal(loop_timer_add(r.l, &end, 20000000, 0, stop_soon, &r), 0);
	assert_int_equal(loop_run(r.l), 0);
	assert_int_equal(r.called[0] + r.called[1], 1);
	teardown(&r);
}

static void drain(void *arg, uint32_t events)
{
	struct rig *r = arg;
	uint64_t n;

	(void)events;
	r->called[0]++;
	assert_int_equal(read(r->fd[0], &n, sizeof(n)), sizeof(n));
	assert_int_equal(loop_io_change(r->io[0], 0), 0);
	assert_int_equal(eventfd_write(r->fd[0], 1), 0);
}

static void a_descriptor_without_events_is_silent(void **state)
{
	struct rig r;
	struct loop_timer *end;

	(void)state;
	setup(&r);
	assert_int_equal(loop_io_add(r.l, &r.io[0], r.fd[0], EPOLLIN, drain, &r), 0);
	assert_int_equal(loop_timer_add(r.l, &end, 20000000, 0, stop_soon, &r), 0);
	assert_int_equal(loop_run(r.l), 0);
	assert_int_equal(r.called[0], 1);
	teardown(&r);
}

static void tick(void *arg)
{
	struct rig *r = arg;

	if (++r->ticks[0] == 3) {
		loop_timer_remove(r->timer[0]);
		assert_int_equal(loop_timer_add(r->l, &r->timer[1], 10000000, 0, stop_soon, r), 0);
	}
}

static void a_timer_comes_again_until_it_is_removed(void **state)
{
	struct rig r;
	uint64_t start = clock_mono_ns();

	(void)state;
	setup(&r);
	assert_int_equal(loop_timer_add(r.l, &r.timer[0], 1000000, 2000000, tick, &r), 0);
	assert_int_equal(loop_run(r.l), 0);
	assert_int_equal(r.ticks[0], 3);
	assert_true(clock_mono_ns() - start >= 15000000);
	teardown(&r);
}

static void late(void *arg)
{
	struct rig *r = arg;
	struct timespec pause = {.tv_nsec = 20000000};

	if (++r->ticks[1] == 1)
		nanosleep(&pause, NULL); /* ten periods */
	else
		loop_stop(r->l);
}

static void missed_ticks_are_not_caught_up(void **state)
{
	struct rig r;
	uint64_t start = clock_mono_ns();

	(void)state;
	setup(&r);
	assert_int_equal(loop_timer_add(r.l, &r.timer[0], 0, 2000000, late, &r), 0);
	assert_int_equal(loop_run(r.l), 0);
	assert_int_equal(r.ticks[1], 2);
	assert_true(clock_mono_ns() - start >= 20000000);
	teardown(&r);
}

static void far_tick(void *arg)
{
	struct rig *r = arg;

	if (r->ticks[0]++ == 0)
		assert_int_equal(
			loop_timer_add(r->l, &r->stop, NS_PER_SEC / 50, 0, stop_soon, r), 0);
}

static void a_timer_that_is_too_far_away_does_not_come_at_once(void **state)
{
	struct rig r;

	(void)state;
	setup(&r);
	assert_int_equal(loop_timer_add(r.l, &r.timer[0], UINT64_MAX, UINT64_MAX, far_tick, &r), 0);
	assert_int_equal(loop_timer_add(r.l, &r.timer[1], 1, UINT64_MAX - 1, far_tick, &r), 0);
	assert_int_equal(loop_run(r.l), 0);
	assert_int_equal(r.ticks[0], 1); /* of the second one, once */
	teardown(&r);
}

/* Each wait is announced, also one that a timer ends, and none after the loop's end. */
static void before_wait(void *arg)
{
	struct rig *r = arg;

	r->called[0]++;
	assert_int_equal(r->called[0], r->called[1] + 1);
}

static void after_wait(void *arg)
{
	struct rig *r = arg;

	if (++r->called[1] == 3)
		loop_stop(r->l);
}

static void each_wait_is_announced(void **state)
{
	struct rig r;

	(void)state;
	setup(&r);
	loop_before_wait(r.l, before_wait, &r);
	assert_int_equal(loop_timer_add(r.l, &r.timer[0], 1, 1000000, after_wait, &r), 0);
	assert_int_equal(loop_run(r.l), 0);
	assert_int_equal(r.called[0], 3);
	loop_before_wait(r.l, NULL, NULL);
	r.called[1] = 2;
	assert_int_equal(loop_run(r.l), 0);
	assert_int_equal(r.called[0], 3);
	teardown(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_removed_is_not_called),
		cmocka_unit_test(a_descriptor_without_events_is_silent),
		cmocka_unit_test(a_timer_comes_again_until_it_is_removed),
		cmocka_unit_test(missed_ticks_are_not_caught_up),
		cmocka_unit_test(each_wait_is_announced),
		cmocka_unit_test(a_timer_that_is_too_far_away_does_not_come_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
