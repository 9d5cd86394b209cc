/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Bodies in HTTP chunks, parsed whole and byte by byte. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/sbuf.h"
#include "web/chunks.h"

static int read_all(struct sbuf *body, struct str all, size_t step, size_t *left)
{
	struct chunks c = {0};
	int got = 0;

	while (got == 0 && all.len) {
		size_t n = all.len < step ? all.len : step;
		struct str in = {all.s, n}, piece;

		do {
			got = chunks_read(&c, &in, &piece);
			sbuf_str(body, piece);
		} while (got == 1);
		all = (struct str){all.s + n - in.len, all.len - n + in.len};
	}
	*left = all.len;
	return got;
}

static void chunks_are_joined(void **state)
{
	static const struct {
		const char *in, *want;
		int got;
		size_t left;
	} T[] = {
		{"5\r\nhello\r\n0\r\n\r\n", "hello", 2, 0},
		{"5\r\nhello\r\n0\r\n\r\nGET /", "hello", 2, 5},
		{"2\nhe\n03;x=\"y\"\r\nllo\r\n00\r\nTrailer: x\r\n\r\n", "hello", 2, 0},
		{"A\r\n0123456789\r\na \r\n0123456789\r\n0\r\n\r\n", "01234567890123456789", 2, 0},
		{"0\r\n\r\n", "", 2, 0},
		{"5\r\nhel", "hel", 0, 0},
		{"5\r\nhello\r\n0\r\n", "hello", 0, 0},
		{"", "", 0, 0},
		{"\r\n", "", -EBADMSG, 0},
		{"x\r\n", "", -EBADMSG, 0},
		{"-1\r\n", "", -EBADMSG, 0},
		{";5\r\n", "", -EBADMSG, 0},
		{"5\r\nhellox", "hello", -EBADMSG, 0},
		{"ffffffffffffffffff\r\n", "", -EBADMSG, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++)
		for (size_t step = 1; step <= 100; step += 99) {
			struct sbuf body;
			size_t left;
			int got;

			sbuf_init(&body, 0);
			got = read_all(&body, str_from(T[i].in), step, &left);
			if (got != T[i].got || !str_eq(sbuf_view(&body), str_from(T[i].want)))
				fail_msg("%s: %d, %.*s", T[i].in, got, STR_ARG(sbuf_view(&body)));
			if (got >= 0)
				assert_int_equal(left, T[i].left);
			sbuf_fini(&body);
		}
}

static void lines_do_not_go_on_for_ever(void **state)
{
	static const char *const begins[] = {"5;", "0\r\n"};
	struct str piece, in;
	int got;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(begins); i++) {
		struct chunks c = {0};

		in = str_from(begins[i]);
		assert_int_equal(chunks_read(&c, &in, &piece), 0);
		for (got = 0; got == 0;) {
			in = STR("abcdefghijklmnopqrstuvwxyz");
			got = chunks_read(&c, &in, &piece);
		}
		assert_int_equal(got, -EBADMSG);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chunks_are_joined),
		cmocka_unit_test(lines_do_not_go_on_for_ever),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
