/* SPDX-License-Identifier: GPL-2.0-or-later */
/* DTLS-SRTP associations against each other: keys, profiles, fingerprints, ends (RFC 5763, 5764).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "dtls_rig.h"

#define S_NS 1000000000ull

static struct dtls_rig rig; /* large: not on the stack */

static void test_both_sides_get_the_same_keys(void **state)
{
	struct srtp_master k;

	(void)state;
	rig_init(&rig);
	rig_create(&rig, true);
	assert_int_equal(dtls_state(rig.a[0]), DTLS_IDLE);
	rig_handshake(&rig);
	assert_int_equal(dtls_state(rig.a[0]), DTLS_OPEN);
	assert_int_equal(dtls_state(rig.a[1]), DTLS_OPEN);
	assert_true(rig_keys_agree(&rig, &k));
	assert_int_equal(k.suite, SUITE_AEAD_AES_256_GCM);
	assert_int_equal(k.mki_len, 0);
	assert_int_equal(rig.counts[0].retransmitted, 0);
	rig_fini(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_both_sides_get_the_same_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
