/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The reply cache: a repeated request gets its reply, no client gets another's, and the cache stays
 * within its limits. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <malloc.h>
#include <stdlib.h>
#include <cmocka.h>

#include "control/cookie.h"

static const uint8_t key[16] = {1, 2, 3};

static struct endpoint ep(const char *text)
{
	struct endpoint e;

	assert_int_equal(endpoint_parse(&e, str_from(text)), 0);
	return e;
}

static struct cookie_cache *make(size_t bytes, uint32_t entries)
{
	struct cookie_cache *c = NULL;

	assert_int_equal(cookie_create(&c, key, (struct cookie_limits){bytes, entries}), 0);
	cookie_tick(c, 1);
	return c;
}

static void replies_belong_to_source_and_cookie(void **state)
{
	struct cookie_cache *c = make(65536, 100);
	struct endpoint a = ep("192.0.2.1:5000"), port = ep("192.0.2.1:5001"),
			host = ep("192.0.2.2:5000"), six = ep("[2001:db8::1]:5000");

	(void)state;
	assert_null(cookie_get(c, &a, STR("1_2")).s);
	assert_int_equal(cookie_put(c, &a, STR("1_2"), STR("1_2 for a")), 0);
	assert_int_equal(cookie_put(c, &six, STR("1_2"), STR("1_2 for six")), 0);
	assert_true(str_eq(cookie_get(c, &a, STR("1_2")), STR("1_2 for a")));
	assert_true(str_eq(cookie_get(c, &six, STR("1_2")), STR("1_2 for six")));
	assert_null(cookie_get(c, &port, STR("1_2")).s);
	assert_null(cookie_get(c, &host, STR("1_2")).s);
	assert_null(cookie_get(c, &a, STR("1_3")).s);
	assert_null(cookie_get(c, &a, STR("1_")).s);
	cookie_destroy(c);
	cookie_destroy(NULL);
}

static void a_reply_lives_for_a_minute(void **state)
{
	static const uint64_t put_ns[] = {
		0, 1, COOKIE_LIFE_NS / 2, COOKIE_LIFE_NS, 1000 * COOKIE_LIFE_NS};
	struct endpoint a = ep("192.0.2.1:5000");

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(put_ns); i++) {
		struct cookie_cache *c = make(65536, 100);

		cookie_tick(c, 1 + put_ns[i]);
		assert_int_equal(cookie_put(c, &a, STR("x"), STR("x y")), 0);
		cookie_tick(c, 1 + put_ns[i] + COOKIE_LIFE_NS - 1);
		assert_non_null(cookie_get(c, &a, STR("x")).s);
		cookie_tick(c, 1 + put_ns[i] + COOKIE_LIFE_NS);
		assert_null(cookie_get(c, &a, STR("x")).s);
		cookie_destroy(c);
	}
}

static uint32_t count_kept(struct cookie_cache *c, const struct endpoint *a, uint32_t n)
{
	uint32_t kept = 0;
	char text[32];

	for (uint32_t i = 0; i < n; i++) {
		snprintf(text, sizeof(text), "cookie%u", i);
		kept += cookie_get(c, a, str_from(text)).s != NULL;
	}
	return kept;
}

static void when_full_the_oldest_replies_go(void **state)
{
	static const struct {
		size_t bytes;
		uint32_t entries;
	} T[] = {{1 << 30, 1000}, {100000, 1u << 20}};
	struct endpoint a = ep("192.0.2.1:5000");
	const uint32_t n = 5000;
	char text[32];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct cookie_cache *c = make(T[i].bytes, T[i].entries);
		uint32_t kept;

		for (uint32_t j = 0; j < n; j++) {
			snprintf(text, sizeof(text), "cookie%u", j);
			assert_int_equal(cookie_put(c, &a, str_from(text), STR("reply")), 0);
			assert_non_null(cookie_get(c, &a, str_from(text)).s);
		}
		kept = count_kept(c, &a, n);
		assert_in_range(kept, 1000, 1100);
		snprintf(text, sizeof(text), "cookie%u", n - kept);
		assert_non_null(cookie_get(c, &a, str_from(text)).s);
		cookie_destroy(c);
	}
}

/* Otherwise an attacker could fill the cache, and a proxy's repeated offer would be executed
 * again. */
static void a_source_that_floods_evicts_only_its_own_replies(void **state)
{
	struct endpoint proxy = ep("192.0.2.1:5000"), flood = ep("192.0.2.2:5000");
	struct cookie_cache *c = make(1 << 20, 1000);
	char text[32];

	(void)state;
	for (uint32_t i = 0; i < 300; i++) {
		snprintf(text, sizeof(text), "cookie%u", i);
		assert_int_equal(cookie_put(c, &proxy, str_from(text), STR("reply")), 0);
	}
	for (uint32_t i = 0; i < 100000; i++) {
		snprintf(text, sizeof(text), "cookie%u", i);
		assert_int_equal(cookie_put(c, &flood, str_from(text), STR("a longer reply")), 0);
	}
	assert_int_equal(count_kept(c, &proxy, 300), 300);
	assert_int_equal(count_kept(c, &flood, 100000), 700);
	cookie_destroy(c);
}

static void what_is_too_large_is_not_kept(void **state)
{
	struct endpoint a = ep("192.0.2.1:5000");
	struct cookie_cache *c = make(1000, 10);
	char big[600] = {0};

	(void)state;
	assert_int_equal(cookie_put(c, &a, STR("a"), STR("reply")), 0);
	assert_int_equal(cookie_put(c, &a, STR("b"), (struct str){big, sizeof(big)}), -EMSGSIZE);
	assert_non_null(cookie_get(c, &a, STR("a")).s);
	assert_null(cookie_get(c, &a, STR("b")).s);
	cookie_destroy(c);
}

/* Freeing much memory at once would delay the control thread, so no request may do so. Measured by
 * the memory in use, which sanitizers' allocators don't report. */
static void no_request_waits_for_many_replies_to_be_freed(void **state)
{
	enum { N = 2000, LEN = 800 };
	struct endpoint a = ep("192.0.2.1:5000");
	struct cookie_cache *c = make(64u << 20, N);
	char reply[LEN] = {0};

	(void)state;
	for (int i = 0; i < 3 * N; i++) {
		char text[16];
		int len = snprintf(text, sizeof(text), "%d", i);
		size_t before = mallinfo2().uordblks;

		assert_int_equal(cookie_put(c, &a, (struct str){text, (size_t)len},
					 (struct str){reply, sizeof(reply)}),
			0);
		assert_true(mallinfo2().uordblks + N / 20 * LEN > before);
	}
	cookie_destroy(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_request_waits_for_many_replies_to_be_freed),
		cmocka_unit_test(replies_belong_to_source_and_cookie),
		cmocka_unit_test(a_reply_lives_for_a_minute),
		cmocka_unit_test(when_full_the_oldest_replies_go),
		cmocka_unit_test(a_source_that_floods_evicts_only_its_own_replies),
		cmocka_unit_test(what_is_too_large_is_not_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
