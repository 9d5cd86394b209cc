/* SPDX-License-Identifier: GPL-2.0-or-later */
/* JSON: every type of value is converted to ng, and every reply is written as valid JSON. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "proto/json.h"
#include "proto/ngval.h"

static void json_is_read_and_written(void **state)
{
	static const struct {
		const char *in, *out; /* out = NULL: refused */
	} T[] = {
		{"{}", "{}"},
		{" [ ] ", "[]"},
		{"{\"command\": \"ping\"}", "{\"command\":\"ping\"}"},
		{"{\"a\":true,\"b\":false,\"c\":null}", "{\"a\":1,\"b\":0,\"c\":\"\"}"},
		{"[1.9,-1.9,1e3]", "[1,-1,1000]"},
		{"[9223372036854775807,-9223372036854775808]",
			"[9223372036854775807,-9223372036854775808]"},
		{"{\"b\":1,\"a\":2,\"b\":3}", "{\"b\":3,\"a\":2}"}, /* the last one wins */
		{"\"a\\u0000b\\r\\n\\t\\\"\\\\/\"", "\"a\\u0000b\\r\\n\\t\\\"\\\\/\""},
		{"\"\\u00e4\\ud83d\\ude00\"", "\"\xc3\xa4\xf0\x9f\x98\x80\""},
		{"[[[1]],{\"x\":[{}]}]", "[[[1]],{\"x\":[{}]}]"},
		{"", NULL},
		{"{", NULL},
		{"{\"a\":}", NULL},
		{"{} x", NULL},
		{"{'a':1}", NULL},
		{"[9223372036854775808]", NULL},
		{"[1e19]", NULL},
		{"[-1e999]", NULL},
		{"\"\xff\"", NULL},
		{"\"\\ud800\"", NULL},
		{"{\"a\\u0000\":1}", NULL},
		{"[0,-0,0.0,0e999,1e-999,1000e-3,25e-1,1E+2]", "[0,0,0,0,0,1,2,100]"},
		{"[01]", NULL},
		{"[+1]", NULL},
		{"[-]", NULL},
		{"[1.]", NULL},
		{"[.5]", NULL},
		{"[1e]", NULL},
		{"[1e400]", NULL},
		{"[1,]", NULL},
		{"[,1]", NULL},
		{"{\"a\":1,}", NULL},
		{"{\"a\" 1}", NULL},
		{"{1:1}", NULL},
		{"[1 2]", NULL},
		{"[1}", NULL},
		{"{\"a\":1]", NULL},
		{"truex", NULL},
		{"tru", NULL},
		{"\"a", NULL},
		{"\"a\\", NULL},
		{"\"\\x\"", NULL},
		{"\"\\u12\"", NULL},
		{"\"\\u12g4\"", NULL},
		{"\"\\udc00\"", NULL},
		{"\"\\ud83d\\u0041\"", NULL},
		{"\"\\ud83d\\n\"", NULL},
		{"\"a\nb\"", NULL},
		{"\"\xc0\x80\"", NULL},
		{"\"\\b\\f\\u001F\\u07ff\\uFFFF\"",
			"\"\\u0008\\u000c\\u001f\xdf\xbf\xef\xbf\xbf\""},
		{"{\"a\":[1],\"a\":{\"b\":2}}", "{\"a\":{\"b\":2}}"},
		{"{\"a\":{\"b\":2},\"\\u0061\":[]}", "{\"a\":[]}"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct ngval *v = NULL;
		struct pool *p;
		struct sbuf b;
		size_t pos;
		int err;

		assert_int_equal(pool_create(&p, 65536), 0);
		sbuf_init(&b, 0);
		err = json_parse(&v, p, str_from(T[i].in), &pos);
		if (err != (T[i].out ? 0 : -EBADMSG))
			fail_msg("%s: %d", T[i].in, err);
		if (!err) {
			json_write(&b, v, false);
			assert_int_equal(b.err, 0);
			assert_string_equal(b.p, T[i].out);
		}
		sbuf_fini(&b);
		pool_destroy(p);
	}
}

static void bytes_that_are_no_utf8_become_the_replacement_character(void **state)
{
	static const struct {
		const char *in, *out;
	} T[] = {
		{"\xff", "\"\xef\xbf\xbd\""},
		{"a\xc0\x80z", "\"a\xef\xbf\xbd\xef\xbf\xbdz\""},             /* overlong */
		{"\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""}, /* surrogate */
		{"\xe2\x82", "\"\xef\xbf\xbd\xef\xbf\xbd\""},                 /* cut off */
		{"\xe2\x82\xac", "\"\xe2\x82\xac\""},
		{"\xf4\x90\x80\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
		{"\x01\x7f", "\"\\u0001\\u007f\""},
		{"\xc2\x9b\xc2\xa0", "\"\\u009b\xc2\xa0\""}, /* CSI control character */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct ngval v = {.type = NGVAL_STR, .str = str_from(T[i].in)};
		struct ngval *back = NULL;
		struct pool *p;
		struct sbuf b;
		size_t pos;

		assert_int_equal(pool_create(&p, 65536), 0);
		sbuf_init(&b, 0);
		json_write(&b, &v, false);
		assert_string_equal(b.p, T[i].out);
		assert_int_equal(json_parse(&back, p, sbuf_view(&b), &pos), 0);
		sbuf_fini(&b);
		pool_destroy(p);
	}
}

static void pretty_is_for_people(void **state)
{
	struct ngval *d, *l;
	struct pool *p;
	struct sbuf b;

	(void)state;
	assert_int_equal(pool_create(&p, 65536), 0);
	d = ngval_dict(p);
	l = ngval_add_list(p, d, STR("calls"));
	ngval_add_str(p, l, STR_NONE, STR("a"));
	ngval_add_str(p, l, STR_NONE, STR("b"));
	ngval_add_dict(p, d, STR("empty"));
	ngval_add_int(p, d, (struct str){"k\0", 2}, -1);
	sbuf_init(&b, 0);
	json_write(&b, d, true);
	assert_string_equal(b.p,
		"{\n  \"calls\": [\n    \"a\",\n    \"b\"\n  ],\n  \"empty\": {},\n"
		"  \"k\xef\xbf\xbd\": -1\n}");
	sbuf_fini(&b);
	pool_destroy(p);
}

static int parse_nested(unsigned depth, size_t limit)
{
	struct ngval *v = NULL;
	struct pool *p;
	char *text = malloc(2 * depth + 1);
	size_t pos;
	int err;

	assert_non_null(text);
	memset(text, '[', depth);
	memset(text + depth, ']', depth);
	assert_int_equal(pool_create(&p, limit), 0);
	err = json_parse(&v, p, (struct str){text, 2 * (size_t)depth}, &pos);
	pool_destroy(p);
	free(text);
	return err;
}

static void nesting_and_memory_are_limited(void **state)
{
	(void)state;
	assert_int_equal(parse_nested(NGVAL_MAX_DEPTH, 1 << 20), 0);
	assert_int_equal(parse_nested(NGVAL_MAX_DEPTH + 1, 1 << 20), -EBADMSG);
	assert_int_equal(parse_nested(30000, 1 << 20), -EBADMSG);
	assert_int_equal(parse_nested(NGVAL_MAX_DEPTH, 1024), -ENOMEM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(json_is_read_and_written),
		cmocka_unit_test(bytes_that_are_no_utf8_become_the_replacement_character),
		cmocka_unit_test(pretty_is_for_people),
		cmocka_unit_test(nesting_and_memory_are_limited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
