/* SPDX-License-Identifier: GPL-2.0-or-later */
/* DTLS attributes of SDP and the rules that follow from them (RFC 8122, 4145, 8842). */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "proto/sdp_dtls.h"

#define F20 "00:01:02:03:04:05:06:07:08:09:0A:0B:0C:0D:0E:0F:10:11:12:13"
#define F32 F20 ":14:15:16:17:18:19:1A:1B:1C:1D:1E:1F"
#define ID  "abcdefghijklmnopqrst" /* 20 characters */

static void test_fingerprints_are_parsed_or_refused(void **state)
{
	static const struct {
		const char *text;
		int want;
	} t[] = {
		{"sha-1 " F20, 0},
		{"SHA-256 " F32, 0},
		{"sha-256  " F32 " ", 0},
		{"sha-256 " F20, -EBADMSG},
		{"sha-1 " F32, -EBADMSG},
		{"sha-256", -EBADMSG},
		{"", -EBADMSG},
		{"sha-1 " F20 " more", -EBADMSG},
		{"sha-1 0001:02:03:04:05:06:07:08:09:0A:0B:0C:0D:0E:0F:10:11:12:13:", -EBADMSG},
		{"sha-1 0G:01:02:03:04:05:06:07:08:09:0A:0B:0C:0D:0E:0F:10:11:12:13", -EBADMSG},
		{"sha-1 00-01:02:03:04:05:06:07:08:09:0A:0B:0C:0D:0E:0F:10:11:12:13", -EBADMSG},
		{"md5 00:01:02:03:04:05:06:07:08:09:0A:0B:0C:0D:0E:0F", -ENOTSUP},
		{"sha-3 00", -ENOTSUP},
	};
	struct dtls_fingerprint f, lower;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		if (sdp_fingerprint_parse(&f, str_from(t[i].text)) != t[i].want)
			fail_msg("%s", t[i].text);
	assert_int_equal(sdp_fingerprint_parse(&f, STR("sha-256 " F32)), 0);
	assert_int_equal(f.value[31], 31);
	assert_int_equal(sdp_fingerprint_parse(&f, STR("sha-1 ab:" F20)), -EBADMSG);
	assert_int_equal(sdp_fingerprint_parse(&f,
				 STR("sha-1 AB:CD:02:03:04:05:06:07:08:09:0A:0B:0C:0D:0E:0F:10:11"
				     ":12:13")),
		0);
	assert_int_equal(sdp_fingerprint_parse(&lower,
				 STR("sha-1 ab:cd:02:03:04:05:06:07:08:09:0a:0b:0c:0d:0e:0f:10:11"
				     ":12:13")),
		0);
	assert_true(sdp_fingerprint_eq(&f, &lower));
	lower.value[0] ^= 1;
	assert_false(sdp_fingerprint_eq(&f, &lower));
}

static void test_what_is_written_is_read_back(void **state)
{
	struct dtls_fingerprint f = {0}, g;
	struct sbuf b;

	(void)state;
	for (uint8_t h = 0; h < DTLS_HASH_COUNT; h++) {
		f.hash = h;
		for (uint8_t i = 0; i < DTLS_DIGEST_MAX; i++)
			f.value[i] = (uint8_t)(37 * i + h);
		sbuf_init(&b, 0);
		sdp_fingerprint_write(&b, &f);
		assert_int_equal(b.err, 0);
		assert_int_equal(sdp_fingerprint_parse(&g, sbuf_view(&b)), 0);
		assert_true(sdp_fingerprint_eq(&f, &g));
		sbuf_fini(&b);
	}
}

#define HEAD "v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=-\r\nc=IN IP4 192.0.2.1\r\nt=0 0\r\n"
#define M    "m=audio 4000 UDP/TLS/RTP/SAVPF 0\r\n"

static void test_a_media_level_attribute_replaces_that_of_the_session(void **state)
{
	static const struct {
		const char *text;
		uint32_t prints;
		enum dtls_setup setup;
		const char *id;
		bool unusable;
	} t[] = {
		{HEAD M, 0, DTLS_SETUP_NONE, "", false},
		{HEAD "a=fingerprint:sha-256 " F32 "\r\na=setup:actpass\r\na=tls-id:" ID "\r\n" M,
			1, DTLS_SETUP_ACTPASS, ID, false},
		{HEAD "a=fingerprint:sha-256 " F32 "\r\na=fingerprint:sha-1 " F20 "\r\n"
		      "a=setup:actpass\r\n" M "a=setup:ACTIVE\r\n",
			2, DTLS_SETUP_ACTIVE, "", false},
		{HEAD "a=fingerprint:sha-256 " F32 "\r\na=fingerprint:sha-1 " F20 "\r\n" M
		      "a=fingerprint:sha-1 " F20 "\r\n",
			1, DTLS_SETUP_NONE, "", false},
		{HEAD M "a=fingerprint:sha-1 " F20 "\r\na=fingerprint:sha-1 " F20 "\r\n", 1,
			DTLS_SETUP_NONE, "", false},
		{HEAD "a=fingerprint:sha-1 " F20 "\r\n" M "a=fingerprint:sha-9 00\r\n", 0,
			DTLS_SETUP_NONE, "", true},
		{HEAD M "a=fingerprint:sha-9 00\r\na=fingerprint:sha-1 " F20 "\r\n", 1,
			DTLS_SETUP_NONE, "", false},
		{HEAD M "a=setup:passive\r\na=setup:active\r\na=tls-id:short\r\n", 0,
			DTLS_SETUP_PASSIVE, "", false},
		{HEAD M "a=setup:holdconn\r\na=tls-id:" ID "+/-_\r\n", 0, DTLS_SETUP_HOLDCONN,
			ID "+/-_", false},
		{HEAD M "a=setup:other\r\na=tls-id:" ID "!\r\n", 0, DTLS_SETUP_NONE, "", false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		static struct sdp s;
		struct sdp_dtls d;
		struct pool *p;
		uint32_t line;

		assert_int_equal(pool_create(&p, 1 << 20), 0);
		assert_int_equal(sdp_parse(&s, p, str_from(t[i].text), &line), SDP_OK);
		sdp_dtls_read(&d, &s, &s.media[0]);
		if (d.prints.count != t[i].prints || d.setup != t[i].setup ||
			d.unusable != t[i].unusable || !str_eq(d.tls_id, str_from(t[i].id)))
			fail_msg("row %zu: %u %s " STR_FMT, i, d.prints.count,
				dtls_setup_name(d.setup), STR_ARG(d.tls_id));
		pool_destroy(p);
	}
}

static void test_a_fingerprint_is_written(void **state)
{
	struct dtls_fingerprint f;
	struct sbuf b;

	(void)state;
	assert_int_equal(sdp_fingerprint_parse(&f, STR("sha-1 " F20)), 0);
	sbuf_init(&b, 0);
	sdp_fingerprint_write(&b, &f);
	assert_string_equal(b.p, "sha-1 " F20);
	sbuf_fini(&b);
}

enum { N = DTLS_ROLE_NONE, C = DTLS_ROLE_CLIENT, V = DTLS_ROLE_SERVER };
enum { NO, ACT, PAS, AP, HOLD }; /* enum dtls_setup */

static void test_the_role_of_an_answer(void **state)
{
	/* offered, our preference, role so far: error, our a=setup, our role */
	static const struct {
		int offered, want, current, err, setup, role;
	} t[] = {
		{AP, N, N, 0, ACT, C},
		{AP, C, N, 0, ACT, C},
		{AP, V, N, 0, PAS, V},
		{AP, N, C, 0, ACT, C},
		{AP, N, V, 0, PAS, V}, /* kept over re-INVITE */
		{AP, C, V, 0, PAS, V},
		{AP, V, C, 0, ACT, C},
		{ACT, N, N, 0, PAS, V},
		{ACT, C, C, 0, PAS, V}, /* the offer leaves no choice */
		{PAS, N, N, 0, ACT, C},
		{PAS, V, V, 0, ACT, C},
		{NO, N, N, 0, PAS, V}, /* default of RFC 4145 4: active */
		{HOLD, N, N, DTLS_ROLE_ERR_HOLDCONN, NO, N},
		{HOLD, C, V, DTLS_ROLE_ERR_HOLDCONN, NO, N},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		enum dtls_setup setup = DTLS_SETUP_NONE;
		enum dtls_role role = DTLS_ROLE_NONE;

		if ((int)dtls_setup_answer(&setup, &role, (enum dtls_setup)t[i].offered,
			    (enum dtls_role)t[i].want, (enum dtls_role)t[i].current) != t[i].err ||
			(int)setup != t[i].setup || (int)role != t[i].role)
			fail_msg("row %zu: %s", i, dtls_setup_name(setup));
	}
	assert_int_equal(dtls_setup_offer(DTLS_ROLE_NONE, true), DTLS_SETUP_ACTPASS);
	assert_int_equal(dtls_setup_offer(DTLS_ROLE_CLIENT, false), DTLS_SETUP_ACTPASS);
	assert_int_equal(dtls_setup_offer(DTLS_ROLE_CLIENT, true), DTLS_SETUP_ACTIVE);
	assert_int_equal(dtls_setup_offer(DTLS_ROLE_SERVER, true), DTLS_SETUP_PASSIVE);
}

static void test_the_role_after_an_answer(void **state)
{
	/* we offered, the peer answered: error, our role */
	static const struct {
		int offered, answered, err, role;
	} t[] = {
		{AP, ACT, 0, V},
		{AP, PAS, 0, C},
		{AP, NO, 0, V},
		{AP, AP, DTLS_ROLE_ERR_ACTPASS, N},
		{AP, HOLD, DTLS_ROLE_ERR_HOLDCONN, N},
		{ACT, PAS, 0, C},
		{ACT, NO, 0, C},
		{ACT, ACT, DTLS_ROLE_ERR_SAME, N},
		{ACT, AP, DTLS_ROLE_ERR_ACTPASS, N},
		{PAS, ACT, 0, V},
		{PAS, NO, 0, V},
		{PAS, PAS, DTLS_ROLE_ERR_SAME, N},
		{HOLD, ACT, DTLS_ROLE_ERR_HOLDCONN, N},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		enum dtls_role role = DTLS_ROLE_NONE;

		if ((int)dtls_setup_answered(&role, (enum dtls_setup)t[i].offered,
			    (enum dtls_setup)t[i].answered) != t[i].err ||
			(int)role != t[i].role)
			fail_msg("row %zu", i);
	}
	assert_string_equal(dtls_role_err_text(DTLS_ROLE_OK), "");
	assert_true(strlen(dtls_role_err_text(DTLS_ROLE_ERR_SAME)) > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_fingerprint_is_written),
		cmocka_unit_test(test_fingerprints_are_parsed_or_refused),
		cmocka_unit_test(test_what_is_written_is_read_back),
		cmocka_unit_test(test_a_media_level_attribute_replaces_that_of_the_session),
		cmocka_unit_test(test_the_role_of_an_answer),
		cmocka_unit_test(test_the_role_after_an_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
