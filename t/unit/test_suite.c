/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The suite table agrees with the RFCs and finds the names used in SDP. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "layout.h"
#include "srtp/suite.h"

static void a_suite_is_found_by_name_or_alias_in_any_case(void **state)
{
	static const struct {
		const char *name;
		int want; /* -1: unknown */
	} T[] = {
		{"AES_CM_128_HMAC_SHA1_80", SUITE_AES_CM_128_80},
		{"aes_cm_128_hmac_sha1_32", SUITE_AES_CM_128_32},
		{"AES_256_CM_HMAC_SHA1_80", SUITE_AES_256_CM_80},
		{"AES_CM_256_HMAC_SHA1_80", SUITE_AES_256_CM_80},
		{"AES_192_CM_HMAC_SHA1_32", SUITE_AES_192_CM_32},
		{"F8_128_HMAC_SHA1_80", SUITE_F8_128_80},
		{"AEAD_AES_128_GCM", SUITE_AEAD_AES_128_GCM},
		{"AEAD_AES_256_GCM", SUITE_AEAD_AES_256_GCM},
		{"NULL_HMAC_SHA1_80", SUITE_NULL_80},
		{"AEAD_AES_128_GCM_8", -1},
		{"AES_CM_128_HMAC_SHA1", -1},
		{"", -1},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		const struct srtp_suite *s = srtp_suite_find(str_from(T[i].name));

		assert_int_equal(s ? (int)s->id : -1, T[i].want);
	}
	assert_null(srtp_suite_find(STR_NONE));
}

static void every_row_finds_itself_and_has_sane_lengths(void **state)
{
	(void)state;
	for (int i = SUITE_PLAIN + 1; i < SUITE_COUNT; i++) {
		const struct srtp_suite *s = srtp_suite_get((enum srtp_suite_id)i);

		assert_non_null(s);
		assert_int_equal(s->id, i);
		assert_ptr_equal(srtp_suite_find(str_from(s->name)), s);
		if (s->alias[0])
			assert_ptr_equal(srtp_suite_find(str_from(s->alias)), s);
		assert_true(s->key_len == 16 || s->key_len == 24 || s->key_len == 32);
		assert_int_equal(s->salt_len, s->cipher == XC_CIPHER_GCM ? 12 : 14);
		/* RFC 3711 3.4: the SRTCP tag is never the short one. */
		assert_int_equal(s->rtcp_tag_len, s->cipher == XC_CIPHER_GCM ? 16 : 10);
		assert_true(s->rtp_tag_len == s->rtcp_tag_len || s->rtp_tag_len == 4);
		assert_int_equal(s->auth == XC_AUTH_GCM, s->cipher == XC_CIPHER_GCM);
	}
}

static void plain_is_a_row_without_anything_and_out_of_range_is_none(void **state)
{
	const struct srtp_suite *s = srtp_suite_get(SUITE_PLAIN);

	(void)state;
	assert_non_null(s);
	assert_int_equal(s->cipher, XC_CIPHER_NULL);
	assert_int_equal(s->auth, XC_AUTH_NULL);
	assert_int_equal(s->key_len + s->salt_len + s->rtp_tag_len + s->rtcp_tag_len, 0);
	assert_string_equal(s->name, "");
	assert_null(srtp_suite_get(SUITE_COUNT));
	assert_null(srtp_suite_get((enum srtp_suite_id) - 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_suite_is_found_by_name_or_alias_in_any_case),
		cmocka_unit_test(every_row_finds_itself_and_has_sane_lengths),
		cmocka_unit_test(plain_is_a_row_without_anything_and_out_of_range_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
