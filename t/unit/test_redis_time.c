/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Replies to TIME: a hostile server can send any, and the difference to our clock must fit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "persist/redis_int.h"

#define NODES 8

static void a_reply_to_time_is_bounded(void **state)
{
	static const struct {
		const char *reply;
		bool good;
		uint64_t ns;
	} T[] = {
		{"*2\r\n$1\r\n0\r\n$1\r\n0\r\n", true, 0},
		{"*2\r\n$10\r\n1795371252\r\n$6\r\n999999\r\n", true, 1795371252999999000},
		{"*2\r\n$10\r\n4102444800\r\n$1\r\n0\r\n", true, 4102444800000000000},
		/* beyond the bound */
		{"*2\r\n$10\r\n4102444801\r\n$1\r\n0\r\n", false, 0},
		{"*2\r\n$11\r\n18446744074\r\n$1\r\n0\r\n", false, 0},
		{"*2\r\n$20\r\n18446744073709551615\r\n$1\r\n0\r\n", false, 0},
		{"*2\r\n$21\r\n184467440737095516160\r\n$1\r\n0\r\n", false, 0},
		{"*2\r\n$1\r\n5\r\n$7\r\n1000000\r\n", false, 0},
		/* no time */
		{"*2\r\n$2\r\n-1\r\n$1\r\n0\r\n", false, 0},
		{"*2\r\n$0\r\n\r\n$1\r\n0\r\n", false, 0},
		{"*2\r\n$2\r\n5x\r\n$1\r\n0\r\n", false, 0},
		{"*2\r\n$-1\r\n$1\r\n0\r\n", false, 0},
		{"*2\r\n:5\r\n:0\r\n", false, 0},
		{"*1\r\n$1\r\n5\r\n", false, 0},
		{"*3\r\n$1\r\n5\r\n$1\r\n0\r\n$1\r\n0\r\n", false, 0},
		{"*0\r\n", false, 0},
		{"*-1\r\n", false, 0},
		{"$1\r\n5\r\n", false, 0},
		{"+OK\r\n", false, 0},
		{"-NOPERM\r\n", false, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct str in = str_from(T[i].reply);
		struct resp node[NODES];
		uint64_t ns = 0;

		assert_int_equal(resp_parse(node, NODES, in.s, in.len), in.len);
		if (redis_read_time(&ns, node) != T[i].good || ns != T[i].ns)
			fail_msg("row %zu: %llu", i, (unsigned long long)ns);
		/* The difference to any clock before the bound can be represented. */
		assert_true(ns <= INT64_MAX);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_reply_to_time_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
