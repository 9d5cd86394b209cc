/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Exchanges with public keys per second: for each peer and for all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "keying/mikey_budget.h"

#define SECOND 1000000000ull
#define NOW    (1000 * SECOND)

static const struct mikey_rates rates = {.all = 50, .peer = 10};

static uint32_t taken(struct mikey_budget *b, uint64_t peer, uint32_t n, uint64_t now_ns)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < n; i++)
		count += mikey_budget_take(b, &rates, peer, false, now_ns);
	return count;
}

static void a_peer_has_its_rate(void **state)
{
	struct mikey_budget b = {0};

	(void)state;
	assert_int_equal(taken(&b, 1, 100, NOW), 10);
	assert_int_equal(taken(&b, 2, 100, NOW), 10); /* another is not affected */
	assert_int_equal(taken(&b, 1, 100, NOW + SECOND / 2), 5);
	assert_int_equal(taken(&b, 1, 100, NOW + 100 * SECOND), 10);
}

static void all_have_theirs(void **state)
{
	struct mikey_budget b = {0};
	uint32_t n = 0;

	(void)state;
	for (uint64_t peer = 0; peer < 100; peer++)
		n += taken(&b, peer, 1, NOW);
	assert_int_equal(n, 50);
}

static void emergency_calls_are_never_refused(void **state)
{
	struct mikey_budget b = {0};

	(void)state;
	assert_int_equal(taken(&b, 1, 100, NOW), 10);
	for (uint32_t i = 0; i < 100; i++)
		assert_true(mikey_budget_take(&b, &rates, 1, true, NOW));
	/* They postpone others by a second at most. */
	assert_int_equal(taken(&b, 1, 100, NOW), 0);
	assert_int_equal(taken(&b, 1, 100, NOW + SECOND), 10);
}

static void a_clock_may_be_set(void **state)
{
	struct mikey_budget b = {0};

	(void)state;
	assert_int_equal(taken(&b, 1, 100, NOW), 10);
	assert_int_equal(taken(&b, 1, 100, NOW - 500 * SECOND), 10);
}

static void zero_is_no_limit(void **state)
{
	static const struct mikey_rates none;
	struct mikey_budget b = {0};

	(void)state;
	for (uint32_t i = 0; i < 1000; i++)
		assert_true(mikey_budget_take(&b, &none, 1, false, NOW));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_peer_has_its_rate),
		cmocka_unit_test(all_have_theirs),
		cmocka_unit_test(emergency_calls_are_never_refused),
		cmocka_unit_test(a_clock_may_be_set),
		cmocka_unit_test(zero_is_no_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
