/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Exchanges of MIKEY between two parties of ours, in every mode, and what they refuse. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/secmem.h"
#include "keying/mikey_int.h"
#include "mikey_rig.h"
#include "srtp/params.h"

static struct mikey_rig rig; /* large: not on the stack */

static int setup(void **state)
{
	(void)state;
	mikey_rig_init(&rig);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	mikey_rig_fini(&rig);
	return 0;
}

static void test_every_mode(void **state)
{
	(void)state;
	for (enum mikey_mode m = 0; m < MIKEY_MODE_COUNT; m++) {
		const struct mikey_medium *a = &rig.ik.medium[0];

		mikey_rig_exchange(&rig, m);
		assert_int_equal(a->tx.suite, SUITE_AES_CM_128_80);
		assert_false(srtp_shares_key(&a->tx, &a->rx));
		assert_int_equal(rig.r.cs[0].ssrc, 0x11111111);
		assert_int_equal(rig.i.cs[1].ssrc, 0x22222222);
		assert_true(mikey_id_eq(&rig.r.peer, &rig.alice.id.id));
		assert_true(mikey_id_eq(&rig.i.peer, &rig.bob.id.id));
		assert_int_equal(rig.asked.mode, m);
		assert_true(mikey_id_eq(&rig.asked.from, &rig.alice.id.id));
		assert_true(mikey_id_eq(&rig.asked.to, &rig.bob.id.id));
	}
}

static void test_every_suite(void **state)
{
	(void)state;
	for (uint8_t s = SUITE_PLAIN + 1; s < SUITE_COUNT; s++) {
		rig.offer.suite[0] = rig.accept.suite[0] = s;
		mikey_rig_exchange(&rig, s % 2 ? MIKEY_PSK : MIKEY_DHHMAC);
		assert_int_equal(rig.ik.medium[0].tx.suite, s);
	}
}

static void test_several_media(void **state)
{
	(void)state;
	rig.offer.media = rig.accept.media = MIKEY_MEDIA_MAX;
	for (enum mikey_mode m = 0; m < MIKEY_MODE_COUNT; m++) {
		mikey_rig_exchange(&rig, m);
		assert_int_equal(rig.ik.media, MIKEY_MEDIA_MAX);
		for (uint32_t i = 1; i < MIKEY_MEDIA_MAX; i++)
			assert_false(srtp_shares_key(&rig.ik.medium[0].tx, &rig.ik.medium[i].tx));
	}
}

static void test_no_verification_message(void **state)
{
	static const enum mikey_mode modes[] = {MIKEY_PSK, MIKEY_PKE};

	(void)state;
	rig.offer.no_verify = true;
	for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
		rig.now_ntp++;
		rig.accept.stream[0].ssrc = 0; /* nobody would learn it */
		assert_int_equal(mikey_rig_initiate(&rig, modes[i]), MIKEY_OK);
		assert_int_equal(mikey_rig_respond(&rig, mikey_rig_sent(&rig.iout)), MIKEY_OK);
		assert_int_equal(rig.rout.len, 0);
		assert_int_equal(mikey_rig_finish(&rig, STR_NONE), MIKEY_OK);
		assert_true(mikey_rig_agree(&rig));
	}
}

static void test_a_demanded_response_must_come(void **state)
{
	(void)state;
	for (enum mikey_mode m = 0; m < MIKEY_MODE_COUNT; m++) {
		assert_int_equal(mikey_rig_initiate(&rig, m), MIKEY_OK);
		assert_int_not_equal(mikey_rig_finish(&rig, STR_NONE), MIKEY_OK);
		assert_int_equal(rig.ik.media, 0);
	}
}

static void test_oaep(void **state)
{
	(void)state;
	rig.offer.oaep = true;
	mikey_rig_exchange(&rig, MIKEY_PKE);
}

static void test_groups_of_diffie_hellman(void **state)
{
	static const uint8_t weak[] = {MIKEY_DH_OAKLEY1, MIKEY_DH_OAKLEY2};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(weak); i++) {
		rig.offer.dh_group = weak[i];
		rig.accept.weak_dh = true;
		mikey_rig_exchange(&rig, MIKEY_DH);
		mikey_rig_exchange(&rig, MIKEY_DHHMAC);
		rig.accept.weak_dh = false;
		rig.now_ntp++;
		assert_int_equal(mikey_rig_initiate(&rig, MIKEY_DH), MIKEY_OK);
		assert_int_equal(
			mikey_rig_respond(&rig, mikey_rig_sent(&rig.iout)), MIKEY_FAIL_DH_GROUP);
	}
	rig.offer.dh_group = 3;
	assert_int_equal(mikey_rig_initiate(&rig, MIKEY_DH), MIKEY_FAIL_DH_GROUP);
}

static void test_rsar_lets_the_responder_choose(void **state)
{
	(void)state;
	rig.offer.suites = 3;
	rig.offer.suite[0] = SUITE_AES_256_CM_80;
	rig.offer.suite[1] = SUITE_AES_CM_128_32;
	rig.offer.suite[2] = SUITE_AEAD_AES_128_GCM;
	rig.accept.suites = 2;
	rig.accept.suite[0] = SUITE_AEAD_AES_128_GCM;
	rig.accept.suite[1] = SUITE_AES_CM_128_32;
	mikey_rig_exchange(&rig, MIKEY_RSAR);
	assert_int_equal(rig.ik.medium[0].rx.suite, SUITE_AEAD_AES_128_GCM);
	assert_int_equal(mikey_rig_initiate(&rig, MIKEY_PSK), MIKEY_OK);
	assert_int_equal(mikey_rig_respond(&rig, mikey_rig_sent(&rig.iout)), MIKEY_FAIL_POLICY);
}

/* An I_MESSAGE of this mode is refused for this reason, and no keys come out. */
static void refused(enum mikey_mode m, enum mikey_failure why)
{
	rig.now_ntp++;
	assert_int_equal(mikey_rig_initiate(&rig, m), MIKEY_OK);
	assert_int_equal(mikey_rig_respond(&rig, mikey_rig_sent(&rig.iout)), why);
	assert_int_equal(rig.r.state, MIKEY_FAILED);
	assert_int_equal(rig.r.failure, why);
	assert_int_equal(rig.rk.media, 0);
	assert_int_equal(rig.rout.len, 0);
}

static void test_refusals(void **state)
{
	(void)state;
	for (enum mikey_mode m = 0; m < MIKEY_MODE_COUNT; m++) {
		rig.find_err = -ENOENT;
		refused(m, MIKEY_FAIL_IDENTITY);
		rig.find_err = -EACCES;
		refused(m, MIKEY_FAIL_FORBIDDEN);
		rig.find_err = 0;
		rig.accept.modes ^= 1u << m;
		refused(m, MIKEY_FAIL_MODE);
		rig.accept.modes ^= 1u << m;
		rig.accept.media = 3;
		refused(m, MIKEY_FAIL_SESSIONS);
		rig.accept.media = 1;
		rig.accept.suite[0] = SUITE_AES_256_CM_80;
		refused(m, MIKEY_FAIL_POLICY);
		rig.accept.suite[0] = SUITE_AES_CM_128_80;
	}
}

/* The message of one m-line, for two: each would have one crypto session for both directions. */
static void test_one_crypto_session_for_both_directions(void **state)
{
	(void)state;
	rig.accept.media = 2;
	for (enum mikey_mode m = 0; m < MIKEY_MODE_COUNT; m++)
		refused(m, MIKEY_FAIL_SESSIONS);
}

/* TEKs for this number of m-lines, each of 30 equal bytes. */
static enum mikey_failure make_teks(uint8_t media, const char *teks)
{
	static struct mikey_run r;
	static struct mikey_key_list k;
	static uint8_t tek[2 * MIKEY_MEDIA_MAX][30];

	r.media = media;
	r.sessions = (uint8_t)(2 * media);
	memset(r.cs_suite, SUITE_AES_CM_128_80, sizeof(r.cs_suite));
	k.count = (uint8_t)strlen(teks);
	for (uint32_t i = 0; i < k.count; i++) {
		memset(tek[i], teks[i] - '0', sizeof(tek[i]));
		k.key[i] = (struct mikey_key_data){
			.type = MIKEY_KEY_TEK, .key = mikey_bytes(tek[i], sizeof(tek[i]))};
	}
	return mikey_keys_make(&rig.rk, &r, &k);
}

/* The peer chooses TEKs. Each serves one direction of one m-line. */
static void test_chosen_keys(void **state)
{
	static const char *const shared[] = {"1", "11", "01", "10", "1214", "1232", "1224", "1230"};

	(void)state;
	assert_int_equal(make_teks(1, "12"), MIKEY_OK);
	assert_int_equal(make_teks(2, "1234"), MIKEY_OK);
	assert_int_equal(rig.rk.medium[1].tx.key[5], 4);
	assert_int_equal(make_teks(2, "12"), MIKEY_FAIL_KEYS);
	for (size_t i = 0; i < ARRAY_LEN(shared); i++) {
		assert_int_equal(
			make_teks(strlen(shared[i]) > 2 ? 2 : 1, shared[i]), MIKEY_FAIL_SHARED_KEY);
		assert_int_equal(rig.rk.media, 0);
	}
}

static void test_wrong_psk(void **state)
{
	(void)state;
	rig.alice.peer.psk.key[5] ^= 1;
	refused(MIKEY_PSK, MIKEY_FAIL_AUTH);
	refused(MIKEY_DHHMAC, MIKEY_FAIL_AUTH);
	rig.alice.peer.psk.len = MIKEY_PSK_MIN - 1;
	refused(MIKEY_PSK, MIKEY_FAIL_IDENTITY);
	rig.bob.peer.psk.len = 0;
	assert_int_equal(mikey_rig_initiate(&rig, MIKEY_PSK), MIKEY_FAIL_IDENTITY);
}

static void test_list_of_protocols(void **state)
{
	(void)state;
	rig.offer.sdp_ids = STR("mikey sdes");
	for (enum mikey_mode m = 0; m < MIKEY_MODE_COUNT; m++) {
		rig.accept.sdp_ids = STR("mikey sdes");
		mikey_rig_exchange(&rig, m);
		rig.accept.sdp_ids = STR("mikey"); /* someone removed one from the SDP */
		refused(m, MIKEY_FAIL_SDP_IDS);
	}
	/* Without a list, MIKEY is the only one. */
	rig.offer.sdp_ids = STR_NONE;
	mikey_rig_exchange(&rig, MIKEY_PSK);
	rig.accept.sdp_ids = STR("mikey;sdes");
	refused(MIKEY_PSK, MIKEY_FAIL_SDP_IDS);
}

/* Somebody else changed the SDP. The right one comes later, with the same message. */
static void test_a_refused_message_is_not_remembered(void **state)
{
	(void)state;
	rig.offer.sdp_ids = STR("mikey");
	for (enum mikey_mode m = 0; m < MIKEY_MODE_COUNT; m++) {
		rig.now_ntp++;
		rig.afforded = 0;
		assert_int_equal(mikey_rig_initiate(&rig, m), MIKEY_OK);
		rig.accept.sdp_ids = STR("mikey;other");
		assert_int_equal(
			mikey_rig_respond(&rig, mikey_rig_sent(&rig.iout)), MIKEY_FAIL_SDP_IDS);
		rig.accept.sdp_ids = STR("mikey");
		rig.accept.media = 3;
		assert_int_equal(
			mikey_rig_respond(&rig, mikey_rig_sent(&rig.iout)), MIKEY_FAIL_SESSIONS);
		rig.accept.media = 1;
		assert_int_equal(rig.afforded, 0);
		assert_int_equal(mikey_rig_respond(&rig, mikey_rig_sent(&rig.iout)), MIKEY_OK);
		assert_int_equal(rig.afforded, m != MIKEY_PSK);
		assert_int_equal(
			mikey_rig_respond(&rig, mikey_rig_sent(&rig.iout)), MIKEY_FAIL_REPLAY);
	}
}

static void test_replay(void **state)
{
	(void)state;
	for (enum mikey_mode m = 0; m < MIKEY_MODE_COUNT; m++) {
		struct str sent;

		mikey_rig_exchange(&rig, m);
		sent = mikey_rig_sent(&rig.iout);
		assert_int_equal(mikey_rig_respond(&rig, sent), MIKEY_FAIL_REPLAY);
		rig.now_ntp += (uint64_t)MIKEY_SKEW_S << 32;
		assert_int_equal(mikey_rig_respond(&rig, sent), MIKEY_FAIL_REPLAY);
		rig.now_ntp += 1ull << 32;
		assert_int_equal(mikey_rig_respond(&rig, sent), MIKEY_FAIL_TIME);
	}
}

/* A message that was not believed is not remembered: its author does not spend our memory, and the
 * right one is still accepted. */
static void test_only_believed_messages_are_remembered(void **state)
{
	(void)state;
	assert_int_equal(mikey_rig_initiate(&rig, MIKEY_PSK), MIKEY_OK);
	rig.alice.peer.psk.key[0] ^= 1;
	assert_int_equal(mikey_rig_respond(&rig, mikey_rig_sent(&rig.iout)), MIKEY_FAIL_AUTH);
	rig.alice.peer.psk.key[0] ^= 1;
	assert_int_equal(mikey_rig_respond(&rig, mikey_rig_sent(&rig.iout)), MIKEY_OK);
}

static void test_clock_skew(void **state)
{
	static const struct {
		int64_t s;
		uint32_t allowed;
		enum mikey_failure f;
	} cases[] = {
		{299, 0, MIKEY_OK},
		{-299, 0, MIKEY_OK},
		{301, 0, MIKEY_FAIL_TIME},
		{-301, 0, MIKEY_FAIL_TIME},
		{5, 10, MIKEY_OK},
		{-11, 10, MIKEY_FAIL_TIME},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint64_t now = rig.now_ntp + i;

		rig.now_ntp = now;
		assert_int_equal(mikey_rig_initiate(&rig, MIKEY_PSK), MIKEY_OK);
		rig.accept.skew_s = cases[i].allowed;
		rig.now_ntp = now + ((uint64_t)cases[i].s << 32);
		assert_int_equal(mikey_rig_respond(&rig, mikey_rig_sent(&rig.iout)), cases[i].f);
		rig.now_ntp = now;
	}
}

/* An R_MESSAGE of another exchange does not serve, even of the same peer. */
static void test_an_older_response(void **state)
{
	static uint8_t old[MIKEY_MESSAGE_MAX];
	size_t len;

	(void)state;
	for (enum mikey_mode m = 0; m < MIKEY_MODE_COUNT; m++) {
		mikey_rig_exchange(&rig, m);
		len = rig.rout.len;
		memcpy(old, rig.rout.buf, len);
		rig.now_ntp++;
		assert_int_equal(mikey_rig_initiate(&rig, m), MIKEY_OK);
		assert_int_equal(mikey_rig_finish(&rig, (struct str){(const char *)old, len}),
			MIKEY_FAIL_AUTH);
		assert_int_equal(rig.i.state, MIKEY_SENT);
		assert_int_equal(mikey_rig_respond(&rig, mikey_rig_sent(&rig.iout)), MIKEY_OK);
		assert_int_equal(mikey_rig_finish(&rig, mikey_rig_sent(&rig.rout)), MIKEY_OK);
		assert_int_equal(
			mikey_rig_finish(&rig, mikey_rig_sent(&rig.rout)), MIKEY_FAIL_STATE);
	}
}

static bool has_common_key(uint8_t mode)
{
	return mode == MIKEY_PSK || mode == MIKEY_DHHMAC;
}

/* They are authenticated if a common key exists, and name the policies that are accepted. */
static void test_error_messages(void **state)
{
	static struct mikey_message e;
	size_t offset;

	(void)state;
	rig.accept.suite[0] = SUITE_AES_256_CM_80;
	for (enum mikey_mode m = 0; m < MIKEY_MODE_COUNT; m++) {
		refused(m, MIKEY_FAIL_POLICY);
		assert_int_equal(mikey_error(&rig.r, &rig.rout), 0);
		assert_int_equal(mikey_parse(&e, mikey_rig_sent(&rig.rout), &offset), 0);
		assert_non_null(mikey_payload_find(&e, MIKEY_P_SP, 0)); /* what we accept */
		assert_null(mikey_payload_find(&e, MIKEY_P_SP, 1));
		assert_int_equal(
			mikey_payload_find(&e, MIKEY_P_V, 0) != NULL, has_common_key(rig.i.mode));
		assert_int_equal(
			mikey_rig_finish(&rig, mikey_rig_sent(&rig.rout)), MIKEY_FAIL_REFUSED);
		assert_int_equal(rig.i.peer_error, MIKEY_ERR_SPPAR);
		assert_int_equal(rig.i.state, MIKEY_SENT); /* anybody can write such a message */
	}
	rig.accept.suite[0] = SUITE_AES_CM_128_80;
	mikey_rig_exchange(&rig, MIKEY_PSK);
	assert_int_equal(mikey_error(&rig.r, &rig.rout), -EINVAL);
}

static void test_a_run_can_be_saved(void **state)
{
	static struct mikey_run saved;

	(void)state;
	for (enum mikey_mode m = 0; m < MIKEY_MODE_COUNT; m++) {
		rig.now_ntp++;
		assert_int_equal(mikey_rig_initiate(&rig, m), MIKEY_OK);
		memcpy(&saved, &rig.i, sizeof(saved));
		secmem_wipe(&rig.i, sizeof(rig.i));
		assert_int_equal(mikey_rig_finish(&rig, STR_NONE), MIKEY_FAIL_STATE);
		assert_int_equal(mikey_run_check(&saved), 0);
		memcpy(&rig.i, &saved, sizeof(saved));
		assert_int_equal(mikey_rig_respond(&rig, mikey_rig_sent(&rig.iout)), MIKEY_OK);
		assert_int_equal(mikey_rig_finish(&rig, mikey_rig_sent(&rig.rout)), MIKEY_OK);
		assert_true(mikey_rig_agree(&rig));
	}
	saved.media = MIKEY_MEDIA_MAX + 1;
	assert_int_equal(mikey_run_check(&saved), -EINVAL);
}

/* After an exchange the run has no key material but that of the verification. */
static void test_keys_are_wiped(void **state)
{
	static const uint8_t zero[MIKEY_TGK_MAX];

	(void)state;
	for (enum mikey_mode m = 0; m < MIKEY_MODE_COUNT; m++) {
		mikey_rig_exchange(&rig, m);
		assert_memory_equal(rig.i.tgk, zero, sizeof(zero));
		assert_memory_equal(rig.i.secret, zero, sizeof(zero));
		assert_memory_equal(rig.r.tgk, zero, sizeof(zero));
		assert_memory_equal(rig.r.secret, zero, sizeof(zero));
	}
}

static void test_too_long_or_no_room(void **state)
{
	static char big[MIKEY_MESSAGE_MAX + 1];

	(void)state;
	assert_int_equal(
		mikey_rig_respond(&rig, (struct str){big, sizeof(big)}), MIKEY_FAIL_TOO_LONG);
	assert_int_equal(mikey_rig_respond(&rig, STR_NONE), MIKEY_FAIL_MALFORMED);
	/* a header and nothing else */
	assert_int_equal(mikey_rig_respond(&rig, STR("\1\0\0\0\0\0\0\1\0\0")), MIKEY_FAIL_MISSING);
	rig.iout.cap = 60;
	for (enum mikey_mode m = 0; m < MIKEY_MODE_COUNT; m++) {
		assert_int_not_equal(mikey_rig_initiate(&rig, m), MIKEY_OK);
		assert_int_equal(rig.iout.len, 0);
	}
}

static void test_time(void **state)
{
	(void)state;
	assert_int_equal(mikey_unix_s(mikey_ntp(RIG_NOW_S * 1000000000ull)), RIG_NOW_S);
	/* 2036-02-07 06:28:16: the era ends */
	assert_int_equal(mikey_unix_s(mikey_ntp(2085978496ull * 1000000000ull)), 2085978496);
	rig.now_ntp = UINT64_MAX - 5;
	for (int i = 0; i < 10; i++)
		mikey_rig_exchange(&rig, MIKEY_PSK);
}

static void test_names(void **state)
{
	struct mikey_id id;
	char name[MIKEY_ID_MAX + 1];

	(void)state;
	memset(name, 'a', sizeof(name));
	assert_int_equal(
		mikey_id_set(&id, MIKEY_ID_URI, (struct str){name, sizeof(name)}), -EINVAL);
	assert_int_equal(mikey_mode_find(STR("rsa-r")), MIKEY_RSAR);
	assert_int_equal(mikey_mode_find(STR("rsa")), MIKEY_MODE_COUNT);
	for (enum mikey_failure f = 1; f < MIKEY_FAIL_COUNT; f++) {
		assert_true(mikey_failure_name(f)[0]);
		assert_true(mikey_failure_text(f)[0]);
	}
	assert_string_equal(mikey_failure_name(MIKEY_OK), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		T(test_every_mode),
		T(test_every_suite),
		T(test_several_media),
		T(test_no_verification_message),
		T(test_a_demanded_response_must_come),
		T(test_oaep),
		T(test_groups_of_diffie_hellman),
		T(test_rsar_lets_the_responder_choose),
		T(test_refusals),
		T(test_one_crypto_session_for_both_directions),
		T(test_chosen_keys),
		T(test_wrong_psk),
		T(test_list_of_protocols),
		T(test_a_refused_message_is_not_remembered),
		T(test_replay),
		T(test_only_believed_messages_are_remembered),
		T(test_clock_skew),
		T(test_an_older_response),
		T(test_error_messages),
		T(test_a_run_can_be_saved),
		T(test_keys_are_wiped),
		T(test_too_long_or_no_room),
		T(test_time),
		T(test_names),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
