/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The histogram against sorted values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/hist.h"

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void within_an_eighth(uint64_t got, uint64_t want)
{
	uint64_t off = got > want ? got - want : want - got;

	if (off > want / 8 + 1)
		fail_msg("got %llu, want %llu", (unsigned long long)got, (unsigned long long)want);
}

static void quantiles_are_within_a_bucket(void **state)
{
	enum { N = 20000 };
	static struct hist h[2];
	static uint64_t v[N];
	const struct hist *both[] = {&h[0], &h[1]};
	struct hist_summary s;

	(void)state;
	srandom(7);
	for (int i = 0; i < N; i++) {
		v[i] = (uint64_t)random() >> (random() % 30);
		hist_add(&h[i & 1], v[i]);
	}
	qsort(v, N, sizeof(v[0]), by_value);
	hist_summarise(&s, both, 2);
	assert_int_equal(s.count, N);
	assert_true(s.max == v[N - 1]);
	within_an_eighth(s.p50, v[N / 2]);
	within_an_eighth(s.p90, v[N * 90 / 100]);
	within_an_eighth(s.p99, v[N * 99 / 100]);
}

static void no_quantile_is_above_the_highest_value(void **state)
{
	(void)state;
	for (uint64_t v = 1; v < 1ull << 40; v += v / 7 + 1) {
		struct hist h = {0};
		const struct hist *one[] = {&h};
		struct hist_summary s;

		hist_add(&h, v);
		hist_summarise(&s, one, 1);
		assert_true(s.max == v && s.p50 <= v && s.p99 <= v);
		within_an_eighth(s.p50, v);
	}
}

static void every_value_has_a_bucket(void **state)
{
	static struct hist h;
	const struct hist *one[] = {&h};
	struct hist_summary s;

	(void)state;
	hist_summarise(&s, one, 1);
	assert_int_equal(s.count, 0);
	for (unsigned bit = 0; bit < 64; bit++)
		hist_add(&h, 1ull << bit);
	hist_add(&h, 0);
	hist_add(&h, UINT64_MAX);
	hist_summarise(&s, one, 1);
	assert_int_equal(s.count, 66);
	assert_true(s.max == UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(quantiles_are_within_a_bucket),
		cmocka_unit_test(no_quantile_is_above_the_highest_value),
		cmocka_unit_test(every_value_has_a_bucket),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
