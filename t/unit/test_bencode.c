/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Bencode: valid input (BEP 3) is read and written back unchanged; other input is refused at the
 * offending byte. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "proto/bencode.h"
#include "proto/ngval.h"

static void good_messages_come_back_byte_for_byte(void **state)
{
	static const struct {
		const char *s;
		size_t len;
	} T[] = {
#define ROW(literal) {literal, sizeof(literal) - 1}
		ROW("de"),
		ROW("le"),
		ROW("0:"),
		ROW("4:ping"),
		ROW("i0e"),
		ROW("i-1e"),
		ROW("i9223372036854775807e"),
		ROW("i-9223372036854775808e"),
		ROW("d7:command4:pinge"),
		ROW("d1:z1:a1:a1:be"), /* keys in any order */
		ROW("d1:a1:x1:a1:ye"), /* also twice */
		ROW("d3:sdp5:a\0b\r\ne"),
		ROW("d5:flagsl13:trust-address6:stricte1:xi1ee"),
		ROW("ld1:ai1eed1:ai2eelli3eeee"),
		ROW("d0:0:e"),
#undef ROW
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct str in = {T[i].s, T[i].len};
		struct ngval *v = NULL;
		struct pool *p;
		struct sbuf b;
		size_t pos;

		assert_int_equal(pool_create(&p, 65536), 0);
		sbuf_init(&b, 0);
		assert_int_equal(bencode_parse(&v, p, in, &pos), 0);
		assert_int_equal(pos, in.len);
		bencode_write(&b, v);
		assert_int_equal(b.err, 0);
		assert_true(str_eq(sbuf_view(&b), in));
		sbuf_fini(&b);
		pool_destroy(p);
	}
}

static void bad_messages_are_refused_where_they_go_wrong(void **state)
{
	static const struct {
		const char *s;
		size_t pos;
		const char *why;
	} T[] = {
		{"", 0, "nothing"},
		{"d", 1, "no end"},
		{"x", 0, "no type"},
		{"d3:abc", 6, "key without value"},
		{"d3:abce", 6, "key without value, closed"},
		{"di1e1:ae", 1, "a key that is no string"},
		{"5:abcd", 0, "a string longer than the message"},
		{"99999999999999999999999:a", 0, "a length beyond 64 bits"},
		{"18446744073709551615:a", 0, "a length that would wrap"},
		{"-1:a", 0, "a negative length"},
		{"4ping", 1, "no colon"},
		{":ping", 0, "no length"},
		{"04:ping", 2, "a leading zero in a length"},
		{"i9223372036854775808e", 1, "one above int64"},
		{"i-9223372036854775809e", 2, "one below int64"},
		{"i01e", 3, "a leading zero"},
		{"i-0e", 4, "minus zero"},
		{"ie", 1, "no digits"},
		{"i-e", 2, "only a sign"},
		{"i+1e", 1, "a plus"},
		{"i1", 2, "no end of an integer"},
		{"i 1e", 1, "a space"},
		{"dede", 2, "bytes behind the end"},
		{"de\n", 2, "a line end behind the end"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct ngval *v = NULL;
		struct pool *p;
		size_t pos;

		assert_int_equal(pool_create(&p, 65536), 0);
		if (bencode_parse(&v, p, str_from(T[i].s), &pos) != -EBADMSG || pos != T[i].pos)
			fail_msg("%s: %s, pos %zu", T[i].s, T[i].why, pos);
		assert_null(v);
		pool_destroy(p);
	}
}

static int parse_nested(unsigned depth, size_t limit)
{
	struct ngval *v = NULL;
	struct pool *p;
	char *text = malloc(2 * depth + 1);
	size_t pos;
	int err;

	assert_non_null(text);
	memset(text, 'l', depth);
	memset(text + depth, 'e', depth);
	assert_int_equal(pool_create(&p, limit), 0);
	err = bencode_parse(&v, p, (struct str){text, 2 * (size_t)depth}, &pos);
	pool_destroy(p);
	free(text);
	return err;
}

static void nesting_and_memory_are_limited(void **state)
{
	(void)state;
	assert_int_equal(parse_nested(NGVAL_MAX_DEPTH, 1 << 20), 0);
	assert_int_equal(parse_nested(NGVAL_MAX_DEPTH + 1, 1 << 20), -EBADMSG);
	assert_int_equal(parse_nested(1000000, 1 << 20), -EBADMSG);
	assert_int_equal(parse_nested(NGVAL_MAX_DEPTH, 1024), -ENOMEM);
}

static void keys_are_found_in_every_spelling(void **state)
{
	struct ngval *d;
	struct pool *p;

	(void)state;
	assert_int_equal(pool_create(&p, 65536), 0);
	d = ngval_dict(p);
	ngval_add_str(p, d, STR("delete delay"), STR("-7"));
	ngval_add_int(p, d, STR("TOS"), 184);
	ngval_add_str(p, d, STR("text"), STR("9223372036854775808"));
	assert_null(ngval_get(d, STR("delete-delay")));
	assert_non_null(ngval_get(d, STR("delete delay")));
	assert_int_equal(ngval_int(ngval_get_like(d, STR("Delete_Delay")), 30), -7);
	assert_int_equal(ngval_int(ngval_get_like(d, STR("tos")), 30), 184);
	assert_true(str_eq(ngval_str(p, ngval_get(d, STR("TOS"))), STR("184")));
	assert_int_equal(ngval_int(ngval_get(d, STR("text")), 30), 30);
	assert_int_equal(ngval_int(NULL, 5), 5);
	assert_int_equal(ngval_int(d, 5), 5);
	assert_null(ngval_str(p, d).s);
	assert_null(ngval_get_like(d, STR("delete-delays")));
	assert_null(ngval_add_int(p, NULL, STR("a"), 1));
	assert_false(pool_failed(p));
	pool_destroy(p);
}

static void a_tree_that_was_not_built_is_an_error(void **state)
{
	struct sbuf b;

	(void)state;
	sbuf_init(&b, 0);
	bencode_write(&b, NULL);
	assert_int_equal(b.err, -ENOMEM);
	sbuf_fini(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_messages_come_back_byte_for_byte),
		cmocka_unit_test(bad_messages_are_refused_where_they_go_wrong),
		cmocka_unit_test(nesting_and_memory_are_limited),
		cmocka_unit_test(keys_are_found_in_every_spelling),
		cmocka_unit_test(a_tree_that_was_not_built_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
