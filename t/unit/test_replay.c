/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Index estimation against a table and against the definition (RFC 3711 3.3.1: the index nearest to
 * the last one). The window against a model that stores every index. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "srtp/replay.h"

static void index_is_estimated_as_appendix_a_says(void **state)
{
	static const struct {
		uint64_t last;
		uint16_t seq;
		uint64_t want;
		const char *why;
	} T[] = {
		{0x0fffe, 0xffff, 0x0ffff, "next packet"},
		{0x0ffff, 0x0000, 0x10000, "wrap raises ROC"},
		{0x10000, 0xffff, 0x0ffff, "late packet keeps old ROC"},
		{0x00005, 0xfff0, 0x0fff0, "no negative ROC"},
		{0x00000, 0xffff, 0x0ffff, "no negative ROC at 0"},
		{0x18000, 0x0000, 0x10000, "half a cycle back is back"},
		{0x18001, 0x0000, 0x20000, "more than half a cycle back is ahead"},
		{0x17fff, 0xffff, 0x1ffff, "half a cycle ahead is ahead"},
		{0x17ffe, 0xffff, 0x0ffff, "more than half a cycle ahead is back"},
		{0x1234ffff, 0x0001, 0x12350001, "wrap with one lost"},
		{SRTP_INDEX_MAX, 0x0000, 0xffffffff0000, "no ROC above 32 bits"},
		{0xffffffff0000, 0xffff, 0xfffffffeffff, "late at the last ROC"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++)
		if (srtp_index_estimate(T[i].last, T[i].seq) != T[i].want)
			fail_msg("%s: %#lx, not %#lx", T[i].why,
				(unsigned long)srtp_index_estimate(T[i].last, T[i].seq),
				(unsigned long)T[i].want);
}

static void the_estimate_is_the_nearest_index(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 200000; i++) {
		uint64_t last = ((uint64_t)(uint32_t)random() << 16 | (uint64_t)random() % 65536) &
			SRTP_INDEX_MAX;
		uint16_t seq = (uint16_t)random();
		uint64_t got = srtp_index_estimate(last, seq);
		uint64_t far = got > last ? got - last : last - got;

		assert_int_equal(got & 0xffff, seq);
		assert_true(far <= 0x8000 || last >> 16 == 0);
	}
}

static const uint32_t windows[] = {64, 128, 192, 1024, 32768};

/* Fills the window with garbage, like unused memory. */
static void window(struct replay *r, uint32_t size)
{
	static uint64_t seen[SRTP_REPLAY_WINDOW_MAX / 64];

	memset(seen, 0xa5, sizeof(seen));
	replay_init(r, seen, size / 64);
}

static void a_start_after_an_index_knows_nothing_before_it_as_new(void **state)
{
	struct replay r;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(windows); i++) {
		window(&r, windows[i]);
		replay_start_after(&r, 70000);
		for (uint64_t at = 70000 - windows[i] + 1; at <= 70000; at++)
			assert_int_equal(replay_check(&r, at), REPLAY_SEEN);
		assert_int_equal(replay_check(&r, 70000 - windows[i]), REPLAY_OLD);
		assert_int_equal(replay_check(&r, 70001), REPLAY_NEW);
		replay_add(&r, 70003);
		assert_int_equal(replay_check(&r, 70001), REPLAY_NEW);
		assert_int_equal(replay_check(&r, 70000), REPLAY_SEEN);
	}
}

static void the_window_ends_where_it_should(void **state)
{
	struct replay r;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(windows); i++) {
		window(&r, windows[i]);
		replay_add(&r, 100000);
		assert_int_equal(replay_check(&r, 100000), REPLAY_SEEN);
		assert_int_equal(replay_check(&r, 100001), REPLAY_NEW);
		assert_int_equal(replay_check(&r, 100000 - windows[i] + 1), REPLAY_NEW);
		assert_int_equal(replay_check(&r, 100000 - windows[i]), REPLAY_OLD);
		replay_add(&r, SRTP_INDEX_MAX);
		assert_int_equal(replay_check(&r, SRTP_INDEX_MAX), REPLAY_SEEN);
		assert_int_equal(replay_check(&r, SRTP_INDEX_MAX - 1), REPLAY_NEW);
		assert_int_equal(replay_check(&r, 100000), REPLAY_OLD);
	}
}

/* The model has a flag for every index. Jumps of all sizes around the ends of words and window. */
static void the_window_is_what_remembering_everything_would_be(void **state)
{
	enum { SPACE = 1 << 16 };
	static bool seen[SPACE];

	(void)state;
	for (unsigned seed = 1; seed <= 40; seed++) {
		uint32_t size = windows[seed % 4];
		struct replay r;
		uint64_t last = 0;
		bool started = false;

		window(&r, size);
		srandom(seed);
		memset(seen, 0, sizeof(seen));
		for (unsigned i = 0; i < 5000; i++) {
			uint64_t jump = (uint64_t)random() % (i % 50 ? 5 : 3 * size),
				 back = (uint64_t)random() % (2 * size);
			uint64_t at = i % 3 ? last + jump : last - (back > last ? last : back);
			enum replay_verdict want = REPLAY_NEW;

			if (at >= SPACE)
				break;
			if (started && at <= last && last - at >= size)
				want = REPLAY_OLD;
			else if (seen[at])
				want = REPLAY_SEEN;
			assert_int_equal(replay_check(&r, at), want);
			if (want != REPLAY_NEW)
				continue;
			replay_add(&r, at);
			seen[at] = true;
			started = true;
			last = at > last ? at : last;
			assert_int_equal(r.last, last);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(index_is_estimated_as_appendix_a_says),
		cmocka_unit_test(the_estimate_is_the_nearest_index),
		cmocka_unit_test(a_start_after_an_index_knows_nothing_before_it_as_new),
		cmocka_unit_test(the_window_ends_where_it_should),
		cmocka_unit_test(the_window_is_what_remembering_everything_would_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
