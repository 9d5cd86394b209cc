/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Capabilities: a function that runs without them has none, nor have threads it creates. The caller
 * keeps its own. */
#include "app/privileges.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/caps.h"
#include "steer/steer.h"

static uint64_t permitted(void)
{
	uint64_t p = 0, i = 0;

	assert_int_equal(caps_get(&p, &i), 0);
	return p;
}

static void *look(void *arg)
{
	*(uint64_t *)arg = permitted();
	return NULL;
}

static int look_twice(void *arg)
{
	uint64_t *seen = arg;
	pthread_t thread;

	look(&seen[0]);
	assert_int_equal(pthread_create(&thread, NULL, look, &seen[1]), 0);
	pthread_join(thread, NULL);
	return 7;
}

static void threads_of_a_library_have_none(void **state)
{
	uint64_t before = permitted(), seen[2];
	uint64_t keep = CAPS_BIT(CAP_NET_ADMIN);

	(void)state;
	assert_int_equal(caps_run(0, look_twice, seen), 7);
	assert_true(seen[0] == 0 && seen[1] == 0);
	assert_int_equal(caps_run(keep, look_twice, seen), 7);
	assert_true(seen[0] == (before & keep) && seen[1] == (before & keep));
	assert_true(permitted() == before);
}

static void each_steering_has_its_own(void **state)
{
	uint64_t lock = caps_here(0);

	(void)state;
	assert_true(privileges_of(&steer_udp) == lock);
	assert_true(privileges_of(&steer_nfqueue) == (CAPS_NETFILTER | lock));
	assert_true(privileges_of(&steer_kernel) == (CAPS_NETFILTER | lock));
	assert_true(privileges_of(&steer_xdp) == caps_here(CAPS_XDP));
	/* Only while it starts */
	assert_true(privileges_to_start(&steer_udp) == lock);
	assert_true(privileges_to_start(&steer_nfqueue) & CAPS_BIT(CAP_PERFMON));
	assert_true(privileges_to_start(&steer_kernel) & CAPS_BIT(CAP_PERFMON));
	assert_true(privileges_to_start(&steer_xdp) & CAPS_BIT(CAP_PERFMON));
}

/* Must run last: this process has no capabilities afterwards. */
static void what_is_dropped_does_not_come_back(void **state)
{
	uint64_t seen[2];

	(void)state;
	assert_int_equal(privileges_drop(0), 0);
	assert_true(permitted() == 0);
	assert_int_equal(caps_run(UINT64_MAX, look_twice, seen), 7);
	assert_true(seen[0] == 0 && seen[1] == 0);
	assert_true(caps_set(CAPS_BIT(CAP_NET_RAW), 0) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_of_a_library_have_none),
		cmocka_unit_test(each_steering_has_its_own),
		cmocka_unit_test(what_is_dropped_does_not_come_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
