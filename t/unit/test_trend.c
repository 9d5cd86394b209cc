/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The last ten minutes in samples (observe/trend.h), and the last ended calls (control/ended.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "call/closing.h"
#include "observe/trend.h"
#include "base/clock.h"
#include "call/names.h"
#include "control/ended.h"

static uint32_t length(const struct ngval *list)
{
	uint32_t n = 0;

	for (const struct ngval *v = list->first; v; v = v->next)
		n++;
	return n;
}

static void samples_are_rates_of_two_seconds(void **state)
{
	static struct trend t;
	struct trend_totals n = {.packets_in = 1000, .calls = 3};
	uint64_t s = NS_PER_SEC;

	(void)state;
	trend_take(&t, &n, 100 * s, 1);
	assert_int_equal(t.taken, 0); /* no earlier sample */
	n.packets_in = 1100;
	trend_take(&t, &n, 101 * s, 2);
	assert_int_equal(t.taken, 0); /* too early */
	n.packets_in = 1200;
	n.p99_ns = 5000;
	trend_take(&t, &n, 102 * s - s / 10, 3); /* an early timer after a late one */
	assert_int_equal(t.taken, 1);
	assert_in_range(t.sample[0].packets_in, 100, 106);
	assert_int_equal(t.sample[0].calls, 3);
	assert_int_equal(t.sample[0].p99_us, 5);
	n.packets_in = 0; /* a counter that restarted */
	trend_take(&t, &n, 104 * s, 4);
	assert_int_equal(t.sample[1].packets_in, 0);
}

static void a_pause_is_a_gap(void **state)
{
	static struct trend t;
	struct trend_totals n = {0};
	uint64_t s = NS_PER_SEC;

	(void)state;
	trend_take(&t, &n, 10 * s, 1);
	n.packets_in = 600;
	trend_take(&t, &n, 70 * s, 2);
	assert_int_equal(t.taken, 0);
	n.packets_in = 700;
	trend_take(&t, &n, 72 * s, 3);
	assert_int_equal(t.taken, 1);
	assert_int_equal(t.sample[0].packets_in, 50);
}

static void only_ten_minutes_are_kept(void **state)
{
	static struct trend t;
	struct trend_totals n = {0};
	const struct ngval *list;
	struct ngval *d;
	struct pool *p;

	(void)state;
	for (uint64_t i = 0; i < 1000; i++)
		trend_take(&t, &n, (i + 1) * TREND_EVERY_NS, i);
	assert_int_equal(pool_create(&p, 16 << 20), 0);
	d = ngval_dict(p);
	trend_fill(&t, p, d, false);
	list = ngval_get(d, STR("samples"));
	assert_int_equal(length(list), TREND_SAMPLES);
	assert_int_equal(ngval_int(list->first->first, 0), 1000 - TREND_SAMPLES);
	assert_int_equal(ngval_int(list->last->first, 0), 999);
	d = ngval_dict(p);
	trend_fill(&t, p, d, true);
	list = ngval_get(d, STR("samples"));
	assert_int_equal(length(list), 1);
	assert_int_equal(ngval_int(list->first->first, 0), 999);
	pool_destroy(p);
}

static int64_t figure(
	const struct ended *e, struct pool *p, uint64_t now_ms, const char *key, uint32_t *shown)
{
	struct ngval *d = ngval_dict(p);

	ended_view(e, p, &(struct ended_page){.limit = UINT32_MAX}, now_ms, d);
	*shown = length(ngval_get(d, STR("ended calls")));
	return ngval_int(ngval_get(d, str_from(key)), -1);
}

static void ended_calls_leave_after_ten_minutes(void **state)
{
	struct call_closing c = {.reason = "deleted by command", .text = STR("text")};
	struct ended *e;
	struct pool *p;
	uint32_t shown;
	char id[16];

	(void)state;
	assert_int_equal(ended_create(&e), 0);
	assert_int_equal(pool_create(&p, 64 << 20), 0);
	for (uint32_t i = 0; i < ENDED_CALLS + 10; i++) {
		snprintf(id, sizeof(id), "%u", i);
		c.call_id = str_from(id);
		c.ended_ns = (1000000ull + i) * 1000000;
		ended_add(e, &c, 1000000 + i);
	}
	assert_int_equal(figure(e, p, 1003000, "ended not kept", &shown), 10);
	assert_int_equal(shown, ENDED_CALLS);
	assert_false(ended_detail(e, p, STR("9"), 1003000, ngval_dict(p)));
	assert_true(ended_detail(e, p, STR("10"), 1003000, ngval_dict(p)));
	assert_int_equal(
		figure(e, p, 1000100 + ENDED_MS, "ended matched", &shown), ENDED_CALLS + 10 - 101);
	assert_int_equal(figure(e, p, 2000000 + ENDED_MS, "ended not kept", &shown), 0);
	assert_int_equal(shown, 0);
	pool_destroy(p);
	ended_destroy(e);
}

static void names_come_from_metadata(void **state)
{
	static const struct {
		const char *metadata, *from, *to;
	} T[] = {
		{"from:alice|to:bob", "alice", "bob"},
		{"x:y|TO:sip:bob@example.com|from:", "", "sip:bob@example.com"},
		{"whatever", "", ""},
		{"||from|:x|from:a", "", ""},
		{"", "", ""},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct str m = str_from(T[i].metadata);

		assert_true(str_eq(names_value(m, STR("from")), str_from(T[i].from)));
		assert_true(str_eq(names_value(m, STR("to")), str_from(T[i].to)));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_are_rates_of_two_seconds),
		cmocka_unit_test(a_pause_is_a_gap),
		cmocka_unit_test(only_ten_minutes_are_kept),
		cmocka_unit_test(ended_calls_leave_after_ten_minutes),
		cmocka_unit_test(names_come_from_metadata),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
