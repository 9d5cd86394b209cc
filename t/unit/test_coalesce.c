/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Time for which a batch collects packets (worker/coalesce.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "worker/coalesce.h"
#include "base/clock.h"

#define WINDOW 250000u

/* Sends packets at an even rate for some time. The worker takes them at once, or as late as it
 * waits. Returns the final wait. to_codecs: all packets go to codec threads. */
static uint64_t load_of(
	struct coalesce *p, uint64_t *now, uint32_t rate, uint64_t for_ns, bool to_codecs)
{
	uint64_t end = *now + for_ns, every = NS_PER_SEC / rate, next = *now + every;

	while (*now < end) {
		uint64_t wait = coalesce_wait_ns(p);
		uint32_t n = 0;

		assert_true(wait <= (p->patient ? COALESCE_CODEC_NS : p->window_ns));
		*now = *now + wait < next ? next : *now + wait;
		for (; next <= *now; next += every)
			n++;
		if (n && !to_codecs)
			coalesce_urgent(p, *now);
		coalesce_count(p, n, *now);
	}
	return coalesce_wait_ns(p);
}

static uint64_t load(struct coalesce *p, uint64_t *now, uint32_t rate, uint64_t for_ns)
{
	return load_of(p, now, rate, for_ns, false);
}

static void a_batch_gathers_as_long_as_it_is_worth_it(void **state)
{
	static const struct {
		uint32_t rate, batch_max, window_ns, least, most;
		const char *why;
	} T[] = {
		{100, 256, WINDOW, 0, 0, "a call: sparse"},
		{2000, 256, WINDOW, 0, 0, "20 calls: still a wake-up for each"},
		{7500, 256, WINDOW, 0, 0, "less than two within the window"},
		{8500, 256, WINDOW, WINDOW, WINDOW, "more than two"},
		{50000, 256, WINDOW, WINDOW, WINDOW, "500 calls"},
		{1000000, 256, WINDOW, 115000, 141000, "half a batch is there in 128 us"},
		{100000, 16, WINDOW, 72000, 88000, "half of a small batch in 80 us"},
		{3000, 256, 4 * WINDOW, 4 * WINDOW, 4 * WINDOW, "a longer window"},
		{1000000, 256, 0, 0, 0, "never wait"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct coalesce p = {.window_ns = T[i].window_ns, .batch_max = T[i].batch_max};
		uint64_t now = 3600 * NS_PER_SEC, wait = load(&p, &now, T[i].rate, NS_PER_SEC / 2);

		if (wait < T[i].least || wait > T[i].most)
			fail_msg("%s: %llu ns", T[i].why, (unsigned long long)wait);
	}
}

static void it_follows_the_load(void **state)
{
	struct coalesce p = {.window_ns = WINDOW, .batch_max = 256};
	uint64_t now = NS_PER_SEC;

	(void)state;
	assert_int_equal(load(&p, &now, 100, NS_PER_SEC), 0);
	/* The wait grows within 20 ms of load and falls within 50 ms of calm. */
	assert_int_equal(load(&p, &now, 50000, 20000000), WINDOW);
	assert_int_equal(load(&p, &now, 1000, 50000000), 0);
	/* The first packet after a silence does not wait. */
	assert_int_equal(load(&p, &now, 50000, NS_PER_SEC), WINDOW);
	now += NS_PER_SEC / 4;
	coalesce_urgent(&p, now);
	coalesce_count(&p, 1, now);
	assert_int_equal(coalesce_wait_ns(&p), 0);
}

/* 50 transcoded streams: their packets wait, but not with another call in the same worker. */
static void packets_for_codec_threads_wait_longer(void **state)
{
	struct coalesce p = {.window_ns = WINDOW, .batch_max = 256}, never = {.batch_max = 256};
	uint64_t now = 3600 * NS_PER_SEC, urgent;

	(void)state;
	assert_int_equal(load_of(&p, &now, 2500, NS_PER_SEC, true), COALESCE_CODEC_NS);
	assert_int_equal(load_of(&never, &now, 2500, NS_PER_SEC, true), 0);
	coalesce_urgent(&p, urgent = now);
	coalesce_count(&p, 1, now);
	assert_int_equal(coalesce_wait_ns(&p), 0);
	coalesce_count(&p, 1, urgent + COALESCE_URGENT_NS);
	assert_int_equal(coalesce_wait_ns(&p), 0);
	now = urgent + COALESCE_URGENT_NS;
	assert_int_equal(load_of(&p, &now, 2500, NS_PER_SEC, true), COALESCE_CODEC_NS);
}

static void it_never_waits_longer_than_the_window(void **state)
{
	struct coalesce p = {.window_ns = WINDOW, .batch_max = 64};
	uint64_t now = 0;

	(void)state;
	srandom(5);
	for (int i = 0; i < 100000; i++) {
		now += (uint64_t)random() % (i % 100 ? 300000 : 300000000);
		coalesce_urgent(&p, now);
		coalesce_count(&p, (uint32_t)random() % 65, now);
		assert_true(coalesce_wait_ns(&p) <= WINDOW);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_batch_gathers_as_long_as_it_is_worth_it),
		cmocka_unit_test(it_follows_the_load),
		cmocka_unit_test(packets_for_codec_threads_wait_longer),
		cmocka_unit_test(it_never_waits_longer_than_the_window),
	};

	return cmocka_run_group_tests_name("coalesce", tests, NULL, NULL);
}
