/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Quantiles of the last ten seconds (observe/recent.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "observe/recent.h"

static void what_is_older_than_ten_seconds_is_forgotten(void **state)
{
	static struct hist a, b;
	static struct recent r;
	const struct hist *h[] = {&a, &b};
	struct hist_summary s;

	(void)state;
	assert_int_equal(recent_summarise(&s, &r, h, 2), 0);
	recent_look(&r, h, 2);
	for (int i = 0; i < 1000; i++)
		hist_add(&a, 5000000); /* a bad second */
	assert_int_equal(recent_summarise(&s, &r, h, 2), 1);
	assert_int_equal(s.count, 1000);
	assert_in_range(s.p99, 4400000, 5600000);
	for (uint32_t second = 0; second < RECENT_SECONDS; second++) {
		recent_look(&r, h, 2);
		for (int i = 0; i < 100; i++)
			hist_add(&b, 100000);
	}
	assert_int_equal(recent_summarise(&s, &r, h, 2), RECENT_SECONDS);
	assert_int_equal(s.count, 1000);
	assert_in_range(s.p99, 88000, 112000);
	assert_in_range(s.max, 100000, 112000);
	assert_in_range(s.mean, 99000, 101000);
}

static void quiet_seconds_have_no_quantile(void **state)
{
	static struct hist a;
	static struct recent r;
	const struct hist *h[] = {&a};
	struct hist_summary s;

	(void)state;
	hist_add(&a, 7);
	recent_look(&r, h, 1);
	assert_int_equal(recent_summarise(&s, &r, h, 1), 1);
	assert_int_equal(s.count, 0);
	assert_int_equal(s.p99, 0);
	hist_add(&a, 7);
	recent_summarise(&s, &r, h, 1);
	assert_int_equal(s.max, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_older_than_ten_seconds_is_forgotten),
		cmocka_unit_test(quiet_seconds_have_no_quantile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
