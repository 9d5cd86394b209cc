/* SPDX-License-Identifier: GPL-2.0-or-later */
/* a=zrtp-hash of SDP (RFC 6189 8). */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "proto/sdp_zrtp.h"

/* The example of RFC 6189 8. */
#define HASH  "fe30efd02423cb054e50efd0248742ac7a52c8f91bc2df881ae642c371ba46df"
#define OTHER "0030efd02423cb054e50efd0248742ac7a52c8f91bc2df881ae642c371ba46df"

static void test_values_are_parsed_or_refused(void **state)
{
	static const struct {
		const char *text;
		int want;
	} t[] = {
		{"1.10 " HASH, 0},
		{" 1.10   " HASH " ", 0},
		{"1.10 FE30EFD02423CB054E50EFD0248742AC7A52C8F91BC2DF881AE642C371BA46DF", 0},
		{"1.20 " HASH, -ENOTSUP},
		{"1.1 " HASH, -ENOTSUP},
		{"1.10 " HASH "00", -EBADMSG},
		{"1.10 " HASH "0", -EBADMSG},
		{"1.10 fe30", -EBADMSG},
		{"1.10 " HASH " more", -EBADMSG},
		{"1.10 ge30efd02423cb054e50efd0248742ac7a52c8f91bc2df881ae642c371ba46df", -EBADMSG},
		{"1.10", -EBADMSG},
		{HASH, -EBADMSG},
		{"", -EBADMSG},
	};
	struct sdp_zrtp z;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		if (sdp_zrtp_parse(&z, str_from(t[i].text)) != t[i].want)
			fail_msg("%s", t[i].text);
	assert_int_equal(sdp_zrtp_parse(&z, STR("1.10 " HASH)), 0);
	assert_true(z.given);
	assert_int_equal(z.hash[0], 0xfe);
	assert_int_equal(z.hash[31], 0xdf);
}

static void test_what_is_written_is_read_back(void **state)
{
	struct sdp_zrtp z;
	struct sbuf b;

	(void)state;
	assert_int_equal(sdp_zrtp_parse(&z, STR("1.10 " HASH)), 0);
	sbuf_init(&b, 0);
	sdp_zrtp_write(&b, &z);
	assert_true(str_eq(sbuf_view(&b), STR("1.10 " HASH)));
	sbuf_fini(&b);
}

/* The m-line's own line goes first. Lines of other versions and malformed ones count as absent. */
static void test_the_line_that_applies(void **state)
{
	static const struct {
		const char *session, *media;
		uint8_t want; /* the first byte; 1: none */
	} t[] = {
		{"", "", 1},
		{"", "a=zrtp-hash:1.10 " HASH "\r\n", 0xfe},
		{"a=zrtp-hash:1.10 " HASH "\r\n", "", 0xfe},
		{"a=zrtp-hash:1.10 " HASH "\r\n", "a=zrtp-hash:1.10 " OTHER "\r\n", 0},
		{"", "a=zrtp-hash:1.20 " HASH "\r\na=zrtp-hash:1.10 " OTHER "\r\n", 0},
		{"", "a=zrtp-hash:1.10 00\r\n", 1},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		static struct sdp s;
		struct sdp_zrtp z;
		struct pool *p;
		char body[800];

		snprintf(body, sizeof(body),
			"v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=-\r\nc=IN IP4 192.0.2.1\r\n"
			"t=0 0\r\n%sm=audio 4000 RTP/AVP 0\r\n%s",
			t[i].session, t[i].media);
		assert_int_equal(pool_create(&p, 1 << 20), 0);
		assert_int_equal(sdp_parse(&s, p, str_from(body), NULL), SDP_OK);
		sdp_zrtp_read(&z, &s, &s.media[0]);
		assert_int_equal(z.given, t[i].want != 1);
		if (z.given)
			assert_int_equal(z.hash[0], t[i].want);
		pool_destroy(p);
	}
}

static void test_equality(void **state)
{
	struct sdp_zrtp a = {0}, b = {.hash = {1}};

	(void)state;
	assert_true(sdp_zrtp_eq(&a, &b));
	a.given = true;
	assert_false(sdp_zrtp_eq(&a, &b));
	b.given = true;
	assert_false(sdp_zrtp_eq(&a, &b));
	a.hash[0] = 1;
	assert_true(sdp_zrtp_eq(&a, &b));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values_are_parsed_or_refused),
		cmocka_unit_test(test_what_is_written_is_read_back),
		cmocka_unit_test(test_the_line_that_applies),
		cmocka_unit_test(test_equality),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
