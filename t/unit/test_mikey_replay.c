/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The replay memory of MIKEY: bounded, and never open to a message a second time. And keys that
 * peers send in other ways than we do. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "keying/mikey_int.h"

#define NOW (mikey_ntp(1800000000ull * 1000000000ull))
#define S   (1ull << 32)

static struct mikey_replay *r;

static int setup(void **state)
{
	(void)state;
	return mikey_replay_create(&r, 64);
}

static int teardown(void **state)
{
	(void)state;
	mikey_replay_destroy(r);
	return 0;
}

static struct mikey_stamp stamp(const char *message, uint64_t time)
{
	return (struct mikey_stamp){.from = STR("alice"),
		.to = STR("bob"),
		.owner = STR("alice"),
		.message = str_from(message),
		.time = time,
		.now_ntp = NOW};
}

static void test_size(void **state)
{
	struct mikey_replay *x;

	(void)state;
	assert_int_equal(mikey_replay_create(&x, 0), -EINVAL);
	assert_int_equal(mikey_replay_create(&x, UINT32_MAX), -EINVAL);
	assert_int_equal(mikey_replay_create(&x, 1), 0);
	mikey_replay_destroy(x);
	mikey_replay_destroy(NULL);
}

static void test_a_check_changes_nothing(void **state)
{
	struct mikey_stamp s = stamp("a", NOW);

	(void)state;
	assert_int_equal(mikey_replay_check(r, &s), MIKEY_OK);
	assert_int_equal(mikey_replay_check(r, &s), MIKEY_OK);
	assert_int_equal(mikey_replay_add(r, &s), MIKEY_OK);
	assert_int_equal(mikey_replay_check(r, &s), MIKEY_FAIL_REPLAY);
	assert_int_equal(mikey_replay_add(r, &s), MIKEY_FAIL_REPLAY);
	s.message = STR("b"); /* the same time, another message */
	assert_int_equal(mikey_replay_add(r, &s), MIKEY_OK);
}

static void test_the_allowed_skew(void **state)
{
	struct mikey_stamp s = stamp("m", NOW - 301 * S);

	(void)state;
	assert_int_equal(mikey_replay_check(r, &s), MIKEY_FAIL_TIME);
	s.time = NOW + 301 * S;
	assert_int_equal(mikey_replay_check(r, &s), MIKEY_FAIL_TIME);
	s.time = NOW + 300 * S;
	assert_int_equal(mikey_replay_check(r, &s), MIKEY_OK);
	s.time = NOW + 300 * S + 1;
	assert_int_equal(mikey_replay_check(r, &s), MIKEY_FAIL_TIME);
}

/* After a restart nothing is remembered: what was sent before is refused. */
static void test_since(void **state)
{
	struct mikey_stamp s = stamp("a", NOW - 1);

	(void)state;
	assert_int_equal(mikey_replay_check(r, &s), MIKEY_OK);
	mikey_replay_since(r, NOW);
	assert_int_equal(mikey_replay_check(r, &s), MIKEY_FAIL_TIME);
	assert_int_equal(mikey_replay_add(r, &s), MIKEY_FAIL_TIME);
	s.time = NOW;
	assert_int_equal(mikey_replay_add(r, &s), MIKEY_OK);
	/* The clock is set back for long: the skew alone decides. */
	s = stamp("b", NOW - (1000ull << 32));
	s.now_ntp = s.time;
	assert_int_equal(mikey_replay_add(r, &s), MIKEY_OK);
}

static uint32_t flood(const char *owner, uint32_t n, uint64_t time)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct mikey_stamp s;
		enum mikey_failure f;
		char name[64];

		snprintf(name, sizeof(name), "%s %llx %u", owner, (unsigned long long)time, i);
		s = stamp(name, time);
		s.now_ntp = time;
		s.owner = str_from(owner);
		f = mikey_replay_add(r, &s);
		assert_true(f == MIKEY_OK || f == MIKEY_FAIL_REPLAY_FULL);
		if (!f)
			assert_int_equal(mikey_replay_check(r, &s), MIKEY_FAIL_REPLAY);
		kept += !f;
	}
	return kept;
}

/* One peer gets a third, and the next ones half of what is left. Old messages make room. */
static void test_full(void **state)
{
	(void)state;
	assert_int_equal(flood("a", 200, NOW), 19); /* of 56 */
	assert_int_equal(flood("b", 200, NOW), 13);
	assert_int_equal(flood("c", 200, NOW), 8);
	assert_int_equal(flood("a", 200, NOW + 301 * S), 19);
}

/* Messages of others fill the memory, so what is old is removed. */
static void crowd(uint64_t now)
{
	(void)flood("other", 200, now);
	(void)flood("third", 200, now + S);
}

/* A message that was accepted stays refused when the clock is set, and when a reload raises the
 * skew. A later message of the same peer is accepted. */
static void test_what_was_removed_is_not_accepted_again(void **state)
{
	static const struct {
		const char *why;
		int64_t crowd_s, after_s; /* our clock when others come, and later */
		uint32_t skew_s;
	} how[] = {
		{"the skew is raised", 302, 310, 3600},
		{"the clock is set back, and is right again", -400, 10, 300},
		{"the clock is set ahead, and is right again", 3600, 10, 300},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(how); i++) {
		struct mikey_stamp s = stamp("m", NOW);

		mikey_replay_destroy(r);
		assert_int_equal(mikey_replay_create(&r, 64), 0);
		assert_int_equal(mikey_replay_add(r, &s), MIKEY_OK);
		crowd(NOW + (uint64_t)how[i].crowd_s * S);
		s.now_ntp = NOW + (uint64_t)how[i].after_s * S;
		s.skew_s = how[i].skew_s;
		if (mikey_replay_check(r, &s) == MIKEY_OK)
			fail_msg("%s", how[i].why);
		s.message = STR("n");
		s.time = s.now_ntp;
		assert_int_equal(mikey_replay_check(r, &s), MIKEY_OK);
	}
}

/* Our clock, and those of the peers, were years ahead for long: later messages are accepted. */
static void test_removed_in_the_future(void **state)
{
	struct mikey_stamp s = stamp("m", NOW);

	(void)state;
	crowd(NOW + 100000000 * S);
	crowd(NOW + 100000400 * S);
	assert_int_equal(mikey_replay_add(r, &s), MIKEY_OK);
}

/* A further peer always has room. */
static void test_no_peer_costs_another_its_share(void **state)
{
	struct mikey_replay *before = r;
	char name[16];

	(void)state;
	assert_int_equal(mikey_replay_create(&r, 65536), 0);
	for (uint32_t i = 0; i < 8; i++) {
		snprintf(name, sizeof(name), "evil %u", i);
		assert_true(flood(name, 30000, NOW) < 20000);
	}
	assert_int_equal(flood("victim", 200, NOW), 200);
	mikey_replay_destroy(r);
	r = before;
}

static void restart(uint64_t now, const char *path)
{
	mikey_replay_destroy(r);
	assert_int_equal(mikey_replay_create(&r, 64), 0);
	mikey_replay_since(r, now);
	if (path)
		assert_int_equal(mikey_replay_keep(r, path), 0);
}

/* A standby started before the other node accepted a message. When it takes over, it knows
 * only the message's sender and time, from the restored calls. */
static void test_a_take_over(void **state)
{
	struct mikey_stamp s = stamp("a", NOW + 20 * S);

	(void)state;
	restart(NOW, NULL);
	s.now_ntp = NOW + 30 * S;
	assert_int_equal(mikey_replay_check(r, &s), MIKEY_OK);
	mikey_replay_since(r, s.now_ntp);
	assert_int_equal(mikey_replay_add(r, &s), MIKEY_FAIL_TIME);
	/* Its sender's clock is ahead. */
	s.time = NOW + 200 * S;
	assert_int_equal(mikey_replay_check(r, &s), MIKEY_OK);
	mikey_replay_passed(r, s.from, s.time - 1);
	assert_int_equal(mikey_replay_check(r, &s), MIKEY_OK);
	mikey_replay_passed(r, s.from, s.time);
	mikey_replay_passed(r, s.from, s.time - 2);
	assert_int_equal(mikey_replay_add(r, &s), MIKEY_FAIL_REPLAY);
	s.time--;
	assert_int_equal(mikey_replay_add(r, &s), MIKEY_FAIL_REPLAY);
	s.time += 2;
	assert_int_equal(mikey_replay_add(r, &s), MIKEY_OK);
	/* Other senders are not affected, nor this one by a time that cannot be genuine. */
	s = stamp("b", NOW + 100 * S);
	s.now_ntp = NOW + 30 * S;
	s.from = STR("carol");
	assert_int_equal(mikey_replay_add(r, &s), MIKEY_OK);
	mikey_replay_passed(r, STR("dave"), NOW + (1000000 * S));
	s.from = STR("dave");
	assert_int_equal(mikey_replay_add(r, &s), MIKEY_OK);
}

/* A peer's clock is ahead of ours, so its message from before the restart has a later timestamp. */
static void test_a_fast_clock_and_a_restart(void **state)
{
	struct mikey_stamp s = stamp("a", NOW + 200 * S);
	char path[] = "/tmp/test-mikey-XXXXXX";
	struct mikey_replay *other;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	restart(NOW, path);
	assert_int_equal(mikey_replay_add(r, &s), MIKEY_OK);
	restart(NOW + 10 * S, path);
	s.now_ntp = NOW + 20 * S;
	assert_int_equal(mikey_replay_add(r, &s), MIKEY_FAIL_REPLAY);
	s.message = STR("b");
	s.time--;
	assert_int_equal(mikey_replay_add(r, &s), MIKEY_FAIL_REPLAY);
	s.time += 2;
	assert_int_equal(mikey_replay_add(r, &s), MIKEY_OK);
	/* Within a run, messages may arrive in any order. Each peer has its own timestamp. */
	s.message = STR("c");
	s.time = NOW + 200 * S + 1;
	assert_int_equal(mikey_replay_add(r, &s), MIKEY_OK);
	s = stamp("d", NOW + 20 * S);
	s.now_ntp = NOW + 20 * S;
	s.owner = STR("carol");
	assert_int_equal(mikey_replay_add(r, &s), MIKEY_OK);
	/* The clock was years ahead during a run, and so was the peer's: that locks out nobody, and
	 * later messages leave marks again. */
	s = stamp("e", NOW + (1000000 * S));
	s.now_ntp = s.time;
	assert_int_equal(mikey_replay_add(r, &s), MIKEY_OK);
	restart(NOW + 30 * S, path);
	s = stamp("f", NOW + 230 * S);
	s.now_ntp = NOW + 30 * S;
	assert_int_equal(mikey_replay_add(r, &s), MIKEY_OK);
	restart(NOW + 40 * S, path);
	s.now_ntp = NOW + 40 * S;
	assert_int_equal(mikey_replay_add(r, &s), MIKEY_FAIL_REPLAY);
	/* Another daemon does not get it meanwhile. */
	assert_int_equal(mikey_replay_create(&other, 64), 0);
	assert_int_equal(mikey_replay_keep(other, path), -EBUSY);
	mikey_replay_destroy(r);
	assert_int_equal(mikey_replay_keep(other, path), 0);
	r = other;
	/* Not a file of ours, or one that others may change. */
	assert_int_equal(fchmod(fd, 0666), 0);
	assert_int_equal(mikey_replay_keep(r, path), -EPERM);
	assert_int_equal(fchmod(fd, 0600), 0);
	assert_int_equal(pwrite(fd, "other", 5, 0), 5);
	assert_int_equal(mikey_replay_keep(r, path), -EINVAL);
	assert_int_equal(ftruncate(fd, 100), 0);
	assert_int_equal(mikey_replay_keep(r, path), -EINVAL);
	assert_int_equal(mikey_replay_keep(r, "/tmp"), -EISDIR);
	close(fd);
	unlink(path);
}

/* --- Keys ------------------------------------------------------------------------------------*/

static struct mikey_run run(void)
{
	return (struct mikey_run){.layout = MIKEY_RUN_LAYOUT,
		.media = 1,
		.sessions = 2,
		.rand_len = 16,
		.cs_suite = {SUITE_AES_CM_128_80, SUITE_AES_CM_128_80}};
}

static void test_keys_that_are_sent_directly(void **state)
{
	static const char b[64] = "0123456789abcdefSALT0123456789...";
	struct mikey_run x = run();
	struct mikey_key_list k = {.count = 2}; /* one for each stream */
	static struct mikey_keys out;

	(void)state;
	k.key[0] = (struct mikey_key_data){
		.type = MIKEY_KEY_TEK_SALT, .key = {b, 16}, .salt = {b + 16, 14}};
	k.key[1] = (struct mikey_key_data){.type = MIKEY_KEY_TEK, .key = {b + 1, 30}};
	assert_int_equal(mikey_keys_make(&out, &x, &k), MIKEY_OK);
	assert_memory_equal(out.medium[0].rx.key, b, 16);
	assert_memory_equal(out.medium[0].rx.salt, b + 16, 14);
	assert_memory_equal(out.medium[0].tx.key, b + 1, 16);
	assert_memory_equal(out.medium[0].tx.salt, b + 17, 14);
	k.count = 1;
	assert_int_equal(mikey_keys_make(&out, &x, &k), MIKEY_FAIL_SHARED_KEY);
	k.count = 3;
	assert_int_equal(mikey_keys_make(&out, &x, &k), MIKEY_FAIL_KEYS);
}

static void test_keys_of_wrong_length(void **state)
{
	static const char b[64];
	struct mikey_run x = run();
	struct mikey_key_list k = {.count = 1};
	static struct mikey_keys out;

	(void)state;
	for (uint8_t type = MIKEY_KEY_TGK; type <= MIKEY_KEY_TEK_SALT; type++) {
		k.key[0] = (struct mikey_key_data){.type = type, .key = {b, 15}, .salt = {b, 14}};
		assert_int_equal(mikey_keys_make(&out, &x, &k), MIKEY_FAIL_KEYS);
		k.key[0] = (struct mikey_key_data){.type = type, .key = {b, 16}, .salt = {b, 13}};
		assert_int_equal(mikey_keys_make(&out, &x, &k),
			type == MIKEY_KEY_TGK ? MIKEY_OK : MIKEY_FAIL_KEYS);
	}
	k.key[0] = (struct mikey_key_data){.type = MIKEY_KEY_TGK,
		.key = {b, 16},
		.kv = {.type = MIKEY_KV_SPI, .spi = {b, 17}}};
	assert_int_equal(mikey_keys_make(&out, &x, &k), MIKEY_FAIL_KEYS);
	k.key[0].kv.spi.len = 16;
	assert_int_equal(mikey_keys_make(&out, &x, &k), MIKEY_OK);
	assert_int_equal(out.medium[0].tx.mki_len, 16);
}

/* An interval of packet indexes has to include those of a call. */
static void test_validity_intervals(void **state)
{
	static const struct {
		struct str from, to;
		bool valid;
	} how[] = {
		{STR("\0\0\0\0\0\0"), STR("\xff\xff\xff\xff\xff\xff"), true},
		{STR(""), STR("\x80\0\0\0"), true},
		{STR("\0"), STR("\x7f\xff\xff\xff"), false},
		{STR("\1"), STR("\xff\xff\xff\xff\xff\xff"), false},
		{STR("\1\0\0\0\0\0\0\0\0"), STR("\xff\xff\xff\xff\xff\xff"), false},
		{STR(""), STR("\xff\xff\xff\xff\xff\xff\xff\xff\xff"), false},
		{STR(""), STR(""), false},
	};
	static const char b[64] = "0123456789abcdefg";
	struct mikey_run x = run();
	static struct mikey_keys out;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(how); i++) {
		struct mikey_key_list k = {.count = 2};

		for (uint32_t n = 0; n < 2; n++)
			k.key[n] = (struct mikey_key_data){
				.type = MIKEY_KEY_TEK_SALT, .key = {b + n, 16}, .salt = {b, 14}};
		k.key[1].kv = (struct mikey_kv){
			.type = MIKEY_KV_INTERVAL, .from = how[i].from, .to = how[i].to};
		assert_int_equal(mikey_keys_make(&out, &x, &k),
			how[i].valid ? MIKEY_OK : MIKEY_FAIL_VALIDITY);
		assert_int_equal(out.media, how[i].valid);
	}
}

static enum srtp_suite_id suite_of(const char *p, size_t len)
{
	struct mikey_policy policy;

	assert_int_equal(mikey_policy_parse(&policy, (struct str){p, len}), 0);
	return mikey_policy_suite(&policy);
}

#define SUITE_OF(params) suite_of(params, sizeof(params) - 1)

/* Refuses suites that we do not have, and policies that switch protection off. */
static void test_policies(void **state)
{
	(void)state;
	assert_int_equal(SUITE_OF(""), SUITE_AES_CM_128_80);
	assert_int_equal(SUITE_OF("\x0b\1\4"), SUITE_AES_CM_128_32);
	assert_int_equal(SUITE_OF("\1\1\x18"), SUITE_AES_192_CM_80);
	assert_int_equal(SUITE_OF("\0\1\6"), SUITE_AEAD_AES_128_GCM);
	assert_int_equal(SUITE_OF("\0\1\6\1\1\x20"), SUITE_AEAD_AES_256_GCM);
	assert_int_equal(SUITE_OF("\0\1\0"), SUITE_NULL_80);
	assert_int_equal(SUITE_OF("\x07\1\0"), SUITE_PLAIN);         /* SRTP encryption off */
	assert_int_equal(SUITE_OF("\x08\1\0"), SUITE_PLAIN);         /* SRTCP encryption off */
	assert_int_equal(SUITE_OF("\x0a\1\0"), SUITE_PLAIN);         /* authentication off */
	assert_int_equal(SUITE_OF("\2\1\0"), SUITE_PLAIN);           /* no MAC */
	assert_int_equal(SUITE_OF("\x0b\1\0"), SUITE_PLAIN);         /* no tag */
	assert_int_equal(SUITE_OF("\1\1\x0f"), SUITE_PLAIN);         /* a key of 15 bytes */
	assert_int_equal(SUITE_OF("\6\1\1"), SUITE_PLAIN);           /* a key derivation rate */
	assert_int_equal(SUITE_OF("\x0c\1\4"), SUITE_PLAIN);         /* a prefix */
	assert_int_equal(SUITE_OF("\0\1\6\x14\1\x08"), SUITE_PLAIN); /* a short tag of GCM */
	assert_int_equal(SUITE_OF("\0\1\3"), SUITE_PLAIN);           /* SEED */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		T(test_size),
		T(test_a_check_changes_nothing),
		T(test_the_allowed_skew),
		T(test_since),
		T(test_full),
		T(test_what_was_removed_is_not_accepted_again),
		T(test_removed_in_the_future),
		T(test_no_peer_costs_another_its_share),
		T(test_a_fast_clock_and_a_restart),
		T(test_a_take_over),
#undef T
		cmocka_unit_test(test_keys_that_are_sent_directly),
		cmocka_unit_test(test_keys_of_wrong_length),
		cmocka_unit_test(test_validity_intervals),
		cmocka_unit_test(test_policies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
