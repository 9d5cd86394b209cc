/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ng's "statistics": the values of a finished minute, and the kinds of ended calls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#include "call/call.h"
#include "call/delete.h"
#include "call/tick.h"
#include "control/statistics.h"
#include "call_talk.h"

#define AT(s) (1000 * NS_PER_SEC + (uint64_t)((s)*1e9))

static const char *filled(struct pool *p, const struct interval *x, const char *key)
{
	struct ngval *d = ngval_dict(p);
	const struct ngval *v;

	interval_fill(x, p, d);
	v = ngval_get(d, str_from(key));
	if (!v)
		fail_msg("no %s", key);
	return v->type == NGVAL_INT ? pool_printf(p, "%lld", (long long)v->num).s
				    : pool_printf(p, STR_FMT, STR_ARG(v->str)).s;
}

static void the_last_whole_minute_is_told(void **state)
{
	static const struct {
		const char *key, *want;
	} T[] = {
		{"minofferdelay", "0.000100"},
		{"maxofferdelay", "0.000500"},
		{"avgofferdelay", "0.000300"},
		{"minofferrequestrate", "0"}, /* most seconds had no call */
		{"maxofferrequestrate", "2"},
		{"avgofferrequestrate", "0"},
		{"minpingrequestrate", "1"}, /* each second had one */
		{"maxpingrequestrate", "2"},
		{"avgpingrequestrate", "1"},
		{"minqueryrequestrate", "0"},
		{"maxstart recordingdelay", "0.000000"},
		{"minmanagedsessions", "2"},
		{"maxmanagedsessions", "7"},
		{"totalcallsduration", "2.500000"},
	};
	struct interval x = {0};
	struct pool *p;

	(void)state;
	assert_int_equal(pool_create(&p, 1u << 20), 0);
	interval_advance(&x, AT(0), 2, NS_PER_SEC);
	interval_count(&x, AT(1.1), NG_OFFER, 100000, 3);
	interval_count(&x, AT(1.2), NG_OFFER, 300000, 7);
	interval_count(&x, AT(5), NG_OFFER, 500000, 4);
	for (int s = 0; s < 60; s++)
		interval_count(&x, AT(s), NG_PING, 1000, 4);
	interval_count(&x, AT(59.9), NG_PING, 1000, 4);
	interval_advance(&x, AT(59.99), 4, 2 * NS_PER_SEC);
	assert_string_equal(filled(p, &x, "maxofferdelay"), "0.000000"); /* the minute is not
	                                                                  * over */
	interval_advance(&x, AT(60), 4, NS_PER_SEC * 7 / 2);
	for (size_t i = 0; i < ARRAY_LEN(T); i++)
		if (strcmp(filled(p, &x, T[i].key), T[i].want) != 0)
			fail_msg("%s: %s", T[i].key, filled(p, &x, T[i].key));
	/* the next minute began at the end of this one and had no call */
	interval_advance(&x, AT(119), 4, NS_PER_SEC * 7 / 2);
	assert_string_equal(filled(p, &x, "maxofferrequestrate"), "2");
	interval_advance(&x, AT(120), 4, NS_PER_SEC * 7 / 2);
	assert_string_equal(filled(p, &x, "maxofferrequestrate"), "0");
	assert_string_equal(filled(p, &x, "minmanagedsessions"), "4");
	assert_string_equal(filled(p, &x, "totalcallsduration"), "0.000000");
	pool_destroy(p);
}

static void a_minute_in_which_nobody_asked_is_empty(void **state)
{
	struct interval x = {0};
	struct pool *p;

	(void)state;
	assert_int_equal(pool_create(&p, 1u << 20), 0);
	interval_advance(&x, AT(0), 2, 0);
	interval_count(&x, AT(1), NG_OFFER, 100000, 3);
	interval_advance(&x, AT(200), 1, NS_PER_SEC);
	assert_string_equal(filled(p, &x, "maxofferrequestrate"), "0");
	assert_string_equal(filled(p, &x, "maxmanagedsessions"), "1");
	/* a clock that was set back */
	interval_count(&x, AT(201), NG_OFFER, 100000, 3);
	interval_advance(&x, AT(10), 1, NS_PER_SEC);
	interval_advance(&x, AT(70), 1, NS_PER_SEC);
	assert_string_equal(filled(p, &x, "maxofferrequestrate"), "0");
	pool_destroy(p);
}

/* Reasons for which calls ended. Totals count a call once it has ended. */
static void ends_of_calls_are_told_apart(void **state)
{
	static const struct {
		const char *why;
		uint64_t after_s;
		bool answered, held, delete;
		uint64_t timeouts, silent, final, offer;
	} T[] = {
		{"deleted", 1, true, false, true, 0, 0, 0, 0},
		{"no media", 61, true, false, false, 1, 0, 0, 0},
		{"on hold", 3601, true, true, false, 1, 1, 0, 0},
		{"not answered", 301, false, false, false, 1, 0, 0, 1},
		{"too long", 7201, true, true, false, 1, 0, 1, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		const char *hold = T[i].held ? "a=inactive\r\n" : "";
		struct calls_counters n;
		struct ng_request r;
		struct talk t;

		talk_start(&t);
		t.policy.final_timeout_ns = 7200 * NS_PER_SEC;
		calls_set_policy(t.c, &t.policy);
		talk_offer(&t, "a", "", talk_body(&t, "192.0.2.1", 4000, "RTP/AVP", hold));
		if (T[i].answered)
			talk_answer(
				&t, "a", "b", talk_body(&t, "192.0.2.2", 5000, "RTP/AVP", hold));
		assert_null(t.reply.error);
		t.now += T[i].after_s * NS_PER_SEC;
		r = talk_request("a", "", "");
		r.delete_delay = 0;
		if (T[i].delete)
			calls_delete(t.c, t.p, &r, t.now, &t.reply, ngval_dict(t.p));
		else
			calls_tick(t.c, t.now);
		calls_counters(t.c, &n);
		if (n.current || n.timeouts != T[i].timeouts || n.silent_timeouts != T[i].silent ||
			n.final_timeouts != T[i].final || n.offer_timeouts != T[i].offer)
			fail_msg("%s: %llu, %llu, %llu, %llu", T[i].why,
				(unsigned long long)n.timeouts,
				(unsigned long long)n.silent_timeouts,
				(unsigned long long)n.final_timeouts,
				(unsigned long long)n.offer_timeouts);
		/* the mock counts 10 packets of RTP and 11 of RTCP on each side */
		assert_int_equal(n.ended.packets, 42);
		assert_int_equal(n.ended.bytes, 4000);
		talk_end(&t);
	}
}

/* A number of seconds beyond the clock's range means a long time, not a moment in the past. */
static void a_delay_beyond_all_measure_ends_no_call(void **state)
{
	static const int64_t T[] = {INT64_MAX, INT64_MAX / 2, 18446744074, 1ll << 33};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct calls_counters n;
		struct ng_request r;
		struct talk t;

		talk_start(&t);
		talk_offer(&t, "a", "", talk_body(&t, "192.0.2.1", 4000, "RTP/AVP", ""));
		r = talk_request("a", "", "");
		r.delete_delay = T[i];
		calls_delete(t.c, t.p, &r, t.now, &t.reply, ngval_dict(t.p));
		calls_tick(t.c, t.now + 300 * 86400 * NS_PER_SEC);
		calls_counters(t.c, &n);
		assert_int_equal(n.current, 1);
		calls_tick(t.c, t.now + 366 * 86400 * NS_PER_SEC);
		calls_counters(t.c, &n);
		assert_int_equal(n.current, 0);
		talk_end(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_last_whole_minute_is_told),
		cmocka_unit_test(a_minute_in_which_nobody_asked_is_empty),
		cmocka_unit_test(ends_of_calls_are_told_apart),
		cmocka_unit_test(a_delay_beyond_all_measure_ends_no_call),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
