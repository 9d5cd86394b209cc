/* SPDX-License-Identifier: GPL-2.0-or-later */
/* DTLS-SRTP associations against each other: keys, profiles, fingerprints, ends (RFC 5763, 5764).
 */
#include <setjmp.h>
#include <errno.h>
#include <malloc.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "dtls_rig_clock.h"

#define S_NS 1000000000ull

static struct dtls_rig rig; /* large: not on the stack */

static void test_both_sides_get_the_same_keys(void **state)
{
	struct srtp_master k;

	(void)state;
	dtls_rig_init(&rig);
	dtls_rig_create(&rig, true);
	assert_int_equal(dtls_state(rig.a[0]), DTLS_IDLE);
	dtls_rig_handshake(&rig);
	assert_int_equal(dtls_state(rig.a[0]), DTLS_OPEN);
	assert_int_equal(dtls_state(rig.a[1]), DTLS_OPEN);
	assert_true(dtls_rig_keys_agree(&rig, &k));
	assert_int_equal(k.suite, SUITE_AEAD_AES_256_GCM);
	assert_int_equal(k.mki_len, 0);
	assert_int_equal(rig.counts[0].retransmitted, 0);
	dtls_rig_fini(&rig);
}

static void test_the_policy_order_of_the_server_decides(void **state)
{
	static const struct {
		enum srtp_suite_id client[4], server[4],
			want; /* SUITE_PLAIN ends a list, or: none */
	} t[] = {
		{{SUITE_AEAD_AES_256_GCM}, {SUITE_AEAD_AES_256_GCM}, SUITE_AEAD_AES_256_GCM},
		{{SUITE_AEAD_AES_128_GCM}, {SUITE_AEAD_AES_128_GCM}, SUITE_AEAD_AES_128_GCM},
		{{SUITE_AES_CM_128_80}, {SUITE_AES_CM_128_80}, SUITE_AES_CM_128_80},
		{{SUITE_AES_CM_128_32}, {SUITE_AES_CM_128_32}, SUITE_AES_CM_128_32},
		{{SUITE_AES_CM_128_32, SUITE_AES_CM_128_80},
			{SUITE_AES_CM_128_80, SUITE_AES_CM_128_32}, SUITE_AES_CM_128_80},
		{{SUITE_AEAD_AES_256_GCM, SUITE_AES_CM_128_80},
			{SUITE_AEAD_AES_128_GCM, SUITE_AES_CM_128_80, SUITE_AEAD_AES_256_GCM},
			SUITE_AES_CM_128_80},
		{{SUITE_AEAD_AES_256_GCM}, {SUITE_AES_CM_128_80}, SUITE_PLAIN},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct srtp_master k;

		dtls_rig_init(&rig);
		for (int who = 0; who < 2; who++) {
			const enum srtp_suite_id *list = who ? t[i].server : t[i].client;
			struct dtls_config *c = &rig.config[who];

			for (c->profiles = 0; c->profiles < 4 && list[c->profiles]; c->profiles++)
				c->profile[c->profiles] = list[c->profiles];
		}
		dtls_rig_create(&rig, true);
		dtls_rig_handshake(&rig);
		if (t[i].want != SUITE_PLAIN) {
			assert_true(dtls_rig_keys_agree(&rig, &k));
			assert_int_equal(k.suite, t[i].want);
		} else {
			assert_int_equal(dtls_failure(rig.a[1]), DTLS_FAIL_NO_PROFILE);
			assert_int_equal(dtls_failure(rig.a[0]), DTLS_FAIL_REFUSED);
		}
		dtls_rig_fini(&rig);
	}
}

static void test_null_profiles_and_bad_configurations_are_refused(void **state)
{
	struct dtls *a = NULL;

	(void)state;
	dtls_rig_init(&rig);
	for (int i = 0; i < 7; i++) {
		struct dtls_config c = rig.config[0];

		if (i == 0)
			c.profile[1] = SUITE_NULL_80;
		else if (i == 1)
			c.profiles = 0;
		else if (i == 2)
			c.profiles = DTLS_PROFILES_MAX + 1;
		else if (i == 3)
			c.cert = NULL;
		else if (i == 4)
			c.role = DTLS_ROLE_NONE;
		else if (i == 5)
			c.mtu = DTLS_MTU_MIN - 1;
		else
			c.mtu = DTLS_MTU_MAX + 1;
		assert_int_equal(dtls_create(&a, &c), -EINVAL);
	}
	assert_false(dtls_profile_known(SUITE_NULL_80));
	assert_false(dtls_profile_known(SUITE_NULL_32));
	dtls_rig_fini(&rig);
}

static void test_a_wrong_fingerprint_gives_no_keys_and_one_reason(void **state)
{
	(void)state;
	for (int who = 0; who < 2; who++) {
		struct srtp_master rx, tx;

		dtls_rig_init(&rig);
		dtls_rig_create(&rig, true);
		dtls_rig_expect(&rig, who, DTLS_SHA256, true);
		dtls_rig_handshake(&rig);
		assert_int_equal(dtls_state(rig.a[who]), DTLS_FAILED);
		assert_int_equal(dtls_failure(rig.a[who]), DTLS_FAIL_FINGERPRINT);
		assert_int_equal(dtls_keys(rig.a[who], &rx, &tx), -EAGAIN);
		/* The other side hears of it by an alert. A client that is refused after its own
		 * end of the handshake would be open; here it waits for the server's Finished. */
		assert_int_equal(dtls_state(rig.a[!who]), DTLS_FAILED);
		assert_int_equal(dtls_failure(rig.a[!who]), DTLS_FAIL_REFUSED);
		dtls_rig_fini(&rig);
	}
}

static void test_any_fingerprint_of_any_hash_is_enough(void **state)
{
	(void)state;
	for (int h = 0; h < DTLS_HASH_COUNT; h++)
		for (int sha1 = 0; sha1 < 2; sha1++) {
			struct dtls_fingerprints f = {.count = 3};
			bool good = h != DTLS_SHA1 || sha1;

			dtls_rig_init(&rig);
			rig.config[0].allow_sha1 = sha1;
			dtls_rig_create(&rig, true);
			for (uint32_t i = 0; i < 3; i++)
				assert_int_equal(dtls_cert_fingerprint(
							 &f.f[i], rig.cert[1], (enum dtls_hash)h),
					0);
			f.f[0].value[0] ^= 1;
			f.f[1].hash = 200; /* unknown */
			assert_int_equal(dtls_expect(rig.a[0], &f, rig.now_ns), 0);
			dtls_rig_handshake(&rig);
			assert_int_equal(dtls_state(rig.a[0]), good ? DTLS_OPEN : DTLS_FAILED);
			assert_int_equal(dtls_failure(rig.a[0]),
				good ? DTLS_FAIL_NONE : DTLS_FAIL_FINGERPRINT);
			dtls_rig_fini(&rig);
		}
}

static void test_keys_wait_for_a_late_fingerprint(void **state)
{
	/* late: 0 = within the hold, 1 = after OpenSSL's memory was released */
	(void)state;
	for (int late = 0; late < 2; late++)
		for (int wrong = 0; wrong < 2; wrong++) {
			struct dtls_fingerprints f = {.count = 1};
			struct srtp_master rx, tx;
			size_t before;

			dtls_rig_init(&rig);
			dtls_rig_create(&rig, false);
			dtls_rig_expect(&rig, 1, DTLS_SHA256, false);
			dtls_rig_handshake(&rig);
			assert_int_equal(dtls_state(rig.a[0]), DTLS_UNCHECKED);
			assert_int_equal(dtls_state(rig.a[1]), DTLS_OPEN);
			if (late)
				dtls_rig_run(&rig, rig.now_ns + 20 * S_NS);
			assert_int_equal(dtls_keys(rig.a[0], &rx, &tx), -EAGAIN);
			before = rig.n;
			assert_int_equal(
				dtls_cert_fingerprint(&f.f[0], rig.cert[1], DTLS_SHA384), 0);
			f.f[0].value[47] ^= (uint8_t)wrong;
			assert_int_equal(
				dtls_expect(rig.a[0], &f, rig.now_ns), wrong ? -EKEYREJECTED : 0);
			assert_int_equal(dtls_state(rig.a[0]), wrong ? DTLS_FAILED : DTLS_OPEN);
			assert_int_equal(dtls_rig_keys_agree(&rig, NULL), !wrong);
			dtls_rig_run(&rig, rig.now_ns + S_NS);
			assert_int_equal(rig.n > before, wrong); /* close_notify */
			dtls_rig_fini(&rig);
		}
}

static void test_an_open_association_stays_open(void **state)
{
	struct dtls_fingerprints f = {.count = 1};

	(void)state;
	dtls_rig_init(&rig);
	dtls_rig_create(&rig, true);
	dtls_rig_handshake(&rig);
	f.f[0].hash = DTLS_SHA256;
	assert_int_equal(dtls_expect(rig.a[0], &f, rig.now_ns), -EKEYREJECTED);
	assert_int_equal(dtls_state(rig.a[0]), DTLS_OPEN);
	f.count = 0;
	assert_int_equal(dtls_expect(rig.a[0], &f, rig.now_ns), -EKEYREJECTED);
	assert_true(dtls_rig_keys_agree(&rig, NULL));
	dtls_rig_fini(&rig);
}

static void test_close_notify_closes_and_keeps_the_keys(void **state)
{
	(void)state;
	for (int who = 0; who < 2; who++) {
		dtls_rig_init(&rig);
		dtls_rig_create(&rig, true);
		dtls_rig_handshake(&rig);
		dtls_close(rig.a[who], rig.now_ns);
		assert_int_equal(dtls_state(rig.a[who]), DTLS_CLOSED);
		dtls_rig_run(&rig, rig.now_ns + S_NS);
		assert_int_equal(dtls_state(rig.a[!who]), DTLS_CLOSED);
		assert_true(dtls_rig_keys_agree(&rig, NULL));
		assert_true(dtls_deadline(rig.a[0]) == DTLS_NO_DEADLINE);
		dtls_close(rig.a[who], rig.now_ns); /* again: nothing */
		assert_false(dtls_rig_deliver(&rig));
		dtls_rig_fini(&rig);
	}
}

static void test_a_released_association_still_says_goodbye(void **state)
{
	(void)state;
	for (int settle = 0; settle < 2; settle++) {
		dtls_rig_init(&rig);
		rig.config[0].hold_ns = 60 * S_NS;
		dtls_rig_create(&rig, true);
		dtls_rig_handshake(&rig);
		if (settle)
			dtls_settle(rig.a[1], rig.now_ns);
		else
			dtls_rig_run(&rig, rig.now_ns + 20 * S_NS);
		assert_true(dtls_deadline(rig.a[1]) == DTLS_NO_DEADLINE);
		assert_false(dtls_rig_deliver(&rig));
		assert_int_equal(dtls_state(rig.a[1]), DTLS_OPEN);
		dtls_close(rig.a[1], rig.now_ns);
		assert_int_equal(dtls_state(rig.a[1]), DTLS_CLOSED);
		dtls_rig_run(&rig, rig.now_ns + S_NS);
		assert_int_equal(dtls_state(rig.a[0]), DTLS_CLOSED);
		assert_true(dtls_rig_keys_agree(&rig, NULL));
		dtls_rig_fini(&rig);
	}
}

static void test_closing_a_handshake_fails_it(void **state)
{
	(void)state;
	dtls_rig_init(&rig);
	dtls_rig_create(&rig, true);
	assert_int_equal(dtls_start(rig.a[0], rig.now_ns), 0);
	assert_int_equal(dtls_start(rig.a[0], rig.now_ns), -EALREADY);
	dtls_close(rig.a[0], rig.now_ns);
	assert_int_equal(dtls_failure(rig.a[0]), DTLS_FAIL_CLOSED);
	dtls_close(rig.a[1], rig.now_ns);
	assert_int_equal(dtls_failure(rig.a[1]), DTLS_FAIL_CLOSED);
	dtls_rig_fini(&rig);
}

static void test_equal_roles_and_silence_end_by_timeout(void **state)
{
	(void)state;
	dtls_rig_init(&rig);
	rig.config[0].give_up_ns = 5 * S_NS;
	dtls_rig_create(&rig, true);
	assert_int_equal(dtls_start(rig.a[0], rig.now_ns), 0);
	rig.config[1].role = DTLS_ROLE_CLIENT;
	dtls_destroy(rig.a[1]);
	assert_int_equal(dtls_create(&rig.a[1], &rig.config[1]), 0);
	dtls_rig_run(&rig, rig.now_ns + 60 * S_NS);
	assert_int_equal(dtls_state(rig.a[1]), DTLS_IDLE); /* a client takes no ClientHello */
	assert_true(rig.counts[1].drop[DTLS_DROP_STATE] > 3);
	assert_int_equal(dtls_failure(rig.a[0]), DTLS_FAIL_TIMEOUT);
	assert_true(rig.counts[0].retransmitted > 3);
	dtls_rig_fini(&rig);
}

static void test_encrypted_packets_of_strangers_change_nothing(void **state)
{
	static const uint8_t plain_alert[] = {21, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 9, 0, 2, 2, 40};
	uint8_t junk[80] = {21, 0xfe, 0xfd, 0, 1, 0, 0, 0, 0, 0, 9, 0, 67};

	(void)state;
	dtls_rig_init(&rig);
	dtls_rig_create(&rig, true);
	dtls_rig_handshake(&rig);
	for (int who = 0; who < 2; who++) {
		assert_int_equal(
			dtls_take(rig.a[who], plain_alert, sizeof(plain_alert), rig.now_ns),
			-EBADMSG);
		assert_int_equal(rig.counts[who].drop[DTLS_DROP_ALERT], 1);
		for (int type = 21; type <= 23; type++) {
			junk[0] = (uint8_t)type;
			assert_int_equal(dtls_take(rig.a[who], junk, sizeof(junk), rig.now_ns), 0);
		}
		assert_int_equal(dtls_state(rig.a[who]), DTLS_OPEN);
	}
	/* a second handshake of the peer: renegotiation, or a ClientHello that was repeated */
	for (size_t i = 0; i < rig.n; i++)
		(void)dtls_take(
			rig.a[rig.sent[i].to_server], rig.sent[i].p, rig.sent[i].len, rig.now_ns);
	assert_true(dtls_rig_keys_agree(&rig, NULL));
	assert_int_equal(dtls_state(rig.a[0]), DTLS_OPEN);
	assert_int_equal(dtls_state(rig.a[1]), DTLS_OPEN);
	dtls_rig_fini(&rig);
}

/* In clear anybody can send it, so the handshake has some seconds to complete in spite of it. */
static void test_an_alert_in_clear_ends_the_handshake_later(void **state)
{
	uint8_t alert[] = {21, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 9, 0, 2, 0, 0};

	(void)state;
	for (int fatal = 0; fatal < 2; fatal++) {
		dtls_rig_init(&rig);
		dtls_rig_create(&rig, true);
		assert_int_equal(dtls_start(rig.a[0], rig.now_ns), 0);
		alert[13] = fatal ? 2 : 1;
		alert[14] = fatal ? 40 : 0; /* handshake_failure, close_notify */
		assert_int_equal(dtls_take(rig.a[0], alert, sizeof(alert), rig.now_ns), -EBADMSG);
		dtls_tick(rig.a[0], rig.now_ns + DTLS_REFUSED_NS - 1);
		assert_int_equal(dtls_state(rig.a[0]), DTLS_HANDSHAKE);
		dtls_tick(rig.a[0], rig.now_ns + DTLS_REFUSED_NS);
		assert_int_equal(dtls_failure(rig.a[0]), DTLS_FAIL_REFUSED);
		assert_true(dtls_deadline(rig.a[0]) == DTLS_NO_DEADLINE);
		dtls_rig_fini(&rig);
	}
}

static void test_closing_an_unchecked_association_says_goodbye(void **state)
{
	(void)state;
	for (int late = 0; late < 2; late++) {
		struct srtp_master rx, tx;
		size_t before;

		dtls_rig_init(&rig);
		dtls_rig_create(&rig, false);
		dtls_rig_expect(&rig, 1, DTLS_SHA256, false);
		dtls_rig_handshake(&rig);
		if (late)
			dtls_rig_run(&rig, rig.now_ns + 20 * S_NS);
		assert_int_equal(dtls_state(rig.a[0]), DTLS_UNCHECKED);
		before = rig.n;
		dtls_close(rig.a[0], rig.now_ns);
		assert_int_equal(dtls_failure(rig.a[0]), DTLS_FAIL_CLOSED);
		assert_int_equal(dtls_keys(rig.a[0], &rx, &tx), -EAGAIN);
		dtls_rig_run(&rig, rig.now_ns + S_NS);
		assert_true(rig.n > before);
		dtls_rig_fini(&rig);
	}
}

static size_t heap(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

/* Sanitizers replace the allocator, and then all figures are 0. */
static void test_little_memory_stays_after_the_handshake(void **state)
{
	enum { N = 20 };
	struct dtls *a[2 * N];
	size_t before, held, after;

	(void)state;
	dtls_rig_init(&rig);
	dtls_rig_create(&rig, true);
	dtls_rig_handshake(&rig); /* OpenSSL's own tables */
	dtls_destroy(rig.a[0]);
	dtls_destroy(rig.a[1]);
	before = heap();
	for (int i = 0; i < N; i++) {
		rig.n = rig.at = 0;
		dtls_rig_create(&rig, true);
		dtls_rig_handshake(&rig);
		assert_true(dtls_rig_keys_agree(&rig, NULL));
		a[2 * i] = rig.a[0];
		a[2 * i + 1] = rig.a[1];
	}
	held = heap() - before;
	for (int i = 0; i < 2 * N; i++)
		dtls_settle(a[i], rig.now_ns);
	after = heap() - before;
	assert_true(held <= 2 * N * 65536u);
	assert_true(after <= 2 * N * 4096u);
	assert_true(dtls_rig_keys_agree(&rig, NULL));
	for (int i = 0; i < 2 * N; i++)
		dtls_destroy(a[i]);
	rig.a[0] = rig.a[1] = NULL;
	dtls_rig_fini(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_both_sides_get_the_same_keys),
		cmocka_unit_test(test_the_policy_order_of_the_server_decides),
		cmocka_unit_test(test_null_profiles_and_bad_configurations_are_refused),
		cmocka_unit_test(test_a_wrong_fingerprint_gives_no_keys_and_one_reason),
		cmocka_unit_test(test_any_fingerprint_of_any_hash_is_enough),
		cmocka_unit_test(test_keys_wait_for_a_late_fingerprint),
		cmocka_unit_test(test_an_open_association_stays_open),
		cmocka_unit_test(test_close_notify_closes_and_keeps_the_keys),
		cmocka_unit_test(test_a_released_association_still_says_goodbye),
		cmocka_unit_test(test_closing_a_handshake_fails_it),
		cmocka_unit_test(test_equal_roles_and_silence_end_by_timeout),
		cmocka_unit_test(test_encrypted_packets_of_strangers_change_nothing),
		cmocka_unit_test(test_an_alert_in_clear_ends_the_handshake_later),
		cmocka_unit_test(test_closing_an_unchecked_association_says_goodbye),
		cmocka_unit_test(test_little_memory_stays_after_the_handshake),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
