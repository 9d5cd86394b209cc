/* SPDX-License-Identifier: GPL-2.0-or-later */
/* RESP: every reply of Redis is parsed, a truncated one is incomplete, and everything else within
 * the limits is an error. */
#include "proto/resp.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#define NODES 8

/* Prints the reply as text, with arrays in brackets. */
static void show(struct sbuf *b, const struct resp *r)
{
	static const char kind[] = {[RESP_STATUS] = '+', [RESP_ERROR] = '-', [RESP_STRING] = '$'};

	if (r->type == RESP_NIL)
		sbuf_printf(b, "nil ");
	else if (r->type == RESP_INTEGER)
		sbuf_printf(b, "%lld ", (long long)r->integer);
	else if (r->type != RESP_ARRAY)
		sbuf_printf(b, "%c" STR_FMT " ", kind[r->type], STR_ARG(r->text));
	else {
		sbuf_printf(b, "[ ");
		for (uint32_t i = 0; i < r->elements; i++)
			show(b, &r->element[i]);
		sbuf_printf(b, "] ");
	}
}

static void replies_are_read(void **state)
{
	static const struct {
		struct str in;
		const char *want;
	} T[] = {
		{{"+OK\r\n", 5}, "+OK "},
		{{"-ERR no\r\n", 9}, "-ERR no "},
		{{":12\r\n", 5}, "12 "},
		{{":-3\r\n", 5}, "-3 "},
		{{"$0\r\n\r\n", 6}, "$ "},
		{{"$5\r\na\r\nbc\r\n", 11}, "$a\r\nbc "},
		{{"$-1\r\n", 5}, "nil "},
		{{"*-1\r\n", 5}, "nil "},
		{{"*0\r\n", 4}, "[ ] "},
		{{"*2\r\n$1\r\n0\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n", 29}, "[ $0 [ $a $b ] ] "},
		{{"*3\r\n:1\r\n*1\r\n+x\r\n$-1\r\n", 21}, "[ 1 [ +x ] nil ] "},
	};
	struct resp node[NODES];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct str in = T[i].in;
		struct sbuf b;

		sbuf_init(&b, 0);
		for (size_t len = 0; len < in.len; len++)
			assert_int_equal(resp_parse(node, NODES, in.s, len), 0);
		assert_int_equal(resp_parse(node, NODES, in.s, in.len), in.len);
		show(&b, node);
		assert_string_equal(b.p, T[i].want);
		sbuf_fini(&b);
	}
}

static void the_rest_is_an_error(void **state)
{
	static const struct {
		const char *in;
		int want;
	} T[] = {
		{"HTTP/1.1 400\r\n", -EBADMSG},
		{"\r\n", -EBADMSG},
		{"+OK\n", -EBADMSG},
		{":\r\n", -EBADMSG},
		{":1x\r\n", -EBADMSG},
		{":99999999999999999999\r\n", -EBADMSG},
		{"$-2\r\n", -EBADMSG},
		{"$1\r\nab\r\n", -EBADMSG},
		{"$2097153\r\n", -EMSGSIZE},
		{"$9223372036854775807\r\n", -EMSGSIZE},
		{"*8\r\n", -EMSGSIZE},
		{"*2147483647\r\n", -EMSGSIZE},
		{"*9223372036854775807\r\n", -EMSGSIZE},
		{"*4\r\n*4\r\n", -EMSGSIZE},
		{"*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n", -EMSGSIZE},
	};
	static char line[RESP_LINE_MAX + 1];
	struct resp node[NODES];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++)
		assert_int_equal(resp_parse(node, NODES, T[i].in, strlen(T[i].in)), T[i].want);
	memset(line, '+', sizeof(line));
	assert_int_equal(resp_parse(node, NODES, line, RESP_LINE_MAX - 1), 0);
	assert_int_equal(resp_parse(node, NODES, line, RESP_LINE_MAX), -EMSGSIZE);
}

static void commands_are_written_as_arrays(void **state)
{
	const struct str word[] = {STR("SET"), STR("a b"), STR("\r\n")};
	struct resp node[NODES];
	struct sbuf b;

	(void)state;
	sbuf_init(&b, 0);
	resp_write(&b, 3, word);
	assert_string_equal(b.p, "*3\r\n$3\r\nSET\r\n$3\r\na b\r\n$2\r\n\r\n\r\n");
	assert_int_equal(resp_parse(node, NODES, b.p, b.len), b.len);
	for (uint32_t i = 0; i < 3; i++)
		assert_true(str_eq(node->element[i].text, word[i]));
	sbuf_fini(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(replies_are_read),
		cmocka_unit_test(the_rest_is_an_error),
		cmocka_unit_test(commands_are_written_as_arrays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
