/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The cache of retained secrets: its bound, expiry, what a mismatch changes, saving. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "keying/zrtp_store.h"

#define REAL 1700000000u

static struct zrtp_store *make(uint32_t max, uint64_t life_s)
{
	const struct zrtp_store_config c = {.max = max, .life_s = life_s, .real_s = REAL};
	struct zrtp_store *s;

	assert_int_equal(zrtp_store_create(&s, &c), 0);
	return s;
}

static const uint8_t *zid(uint8_t n)
{
	static uint8_t z[ZRTP_ZID];

	memset(z, n, sizeof(z));
	return z;
}

static uint64_t at(uint64_t s)
{
	return s * NS_PER_SEC;
}

static void put(
	struct zrtp_store *s, uint8_t who, uint8_t secret, uint64_t when_s, uint32_t seconds)
{
	struct zrtp_kept k = {.secrets.has_rs1 = true, .seconds = seconds};

	memset(k.secrets.rs1, secret, ZRTP_SECRET);
	memset(k.sas_hash, secret, sizeof(k.sas_hash));
	zrtp_store_put(s, zid(who), at(when_s), &k);
}

static int get(struct zrtp_store *s, uint8_t who, uint64_t when_s)
{
	struct zrtp_secrets x;

	return zrtp_store_get(s, zid(who), at(when_s), &x) ? x.rs1[31] : -1;
}

static void the_least_recently_used_entry_makes_room(void **state)
{
	struct zrtp_store *s = make(3, 0);

	(void)state;
	for (uint8_t i = 1; i <= 3; i++)
		put(s, i, i, i, UINT32_MAX);
	put(s, 1, 11, 4, UINT32_MAX);
	put(s, 4, 4, 5, UINT32_MAX);
	assert_int_equal(zrtp_store_count(s), 3);
	assert_int_equal(get(s, 2, 6), -1);
	assert_int_equal(get(s, 1, 6), 11);
	assert_int_equal(get(s, 3, 6), 3);
	assert_int_equal(get(s, 4, 6), 4);
	for (uint32_t i = 0; i < 1000; i++)
		put(s, (uint8_t)i, (uint8_t)i, 7, UINT32_MAX);
	assert_int_equal(zrtp_store_count(s), 3);
	zrtp_store_destroy(s);
}

static void entries_expire(void **state)
{
	struct zrtp_store *s = make(8, 100);

	(void)state;
	put(s, 1, 1, 10, UINT32_MAX); /* our bound */
	put(s, 2, 2, 10, 50);         /* the terminal's */
	assert_int_equal(get(s, 1, 109), 1);
	assert_int_equal(get(s, 2, 59), 2);
	assert_int_equal(get(s, 2, 60), -1);
	assert_int_equal(get(s, 1, 110), -1);
	assert_int_equal(zrtp_store_count(s), 0);
	put(s, 1, 1, 10, UINT32_MAX);
	put(s, 1, 1, 11, 0); /* it wants to be forgotten */
	assert_int_equal(zrtp_store_count(s), 0);
	zrtp_store_destroy(s);
}

static const uint8_t *sas(uint8_t n)
{
	static uint8_t hash[ZRTP_SAS_HASH];

	memset(hash, n, sizeof(hash));
	return hash;
}

static struct zrtp_kept kept(uint8_t secret, uint8_t before)
{
	struct zrtp_kept k = {
		.secrets = {.has_rs1 = true, .has_rs2 = before != 0}, .seconds = UINT32_MAX};

	memset(k.secrets.rs1, secret, ZRTP_SECRET);
	memset(k.secrets.rs2, before, ZRTP_SECRET);
	memcpy(k.sas_hash, sas(secret), sizeof(k.sas_hash));
	return k;
}

/* Anybody can use a ZID that is sent in clear. */
static void a_mismatch_replaces_nothing_before_it_is_verified(void **state)
{
	struct zrtp_store *s = make(8, 100);
	struct zrtp_kept other = kept(66, 0);
	struct zrtp_secrets x;

	(void)state;
	other.mismatched = true;
	other.seconds = 0;
	put(s, 1, 1, 10, UINT32_MAX);
	assert_true(zrtp_store_verify(s, zid(1), sas(1), true));
	zrtp_store_put(s, zid(1), at(20), &other);
	assert_int_equal(get(s, 1, 30), 1);
	assert_int_equal(get(s, 1, 109), 1);
	assert_true(zrtp_store_verify(s, zid(1), sas(66), true));
	assert_true(zrtp_store_get(s, zid(1), at(30), &x));
	assert_int_equal(x.rs1[0], 66);
	assert_true(x.verified);
	assert_true(zrtp_store_verify(s, zid(1), sas(66), false));
	assert_true(zrtp_store_get(s, zid(1), at(30), &x));
	assert_false(x.verified);
	assert_false(zrtp_store_verify(s, zid(9), sas(9), true));
	zrtp_store_destroy(s);
}

/* A stranger calls with the terminal's ZID, before the SAS of the terminal's call was compared. */
static void what_is_verified_is_the_exchange_whose_sas_was_compared(void **state)
{
	struct zrtp_store *s = make(8, 0), *t = make(8, 0);
	struct zrtp_kept stranger = kept(66, 0);
	struct zrtp_secrets x;
	struct sbuf out;

	(void)state;
	stranger.mismatched = true;
	put(s, 1, 1, 10, UINT32_MAX);
	zrtp_store_put(s, zid(1), at(20), &stranger);
	assert_true(zrtp_store_verify(s, zid(1), sas(1), true));
	assert_true(zrtp_store_get(s, zid(1), at(30), &x));
	assert_int_equal(x.rs1[0], 1);
	assert_true(x.verified);
	/* An older SAS, or one of an unknown terminal, does not verify the terminal's secrets. */
	assert_false(zrtp_store_verify(s, zid(1), sas(9), true));
	/* The terminal does not show the stranger's SAS: the terminal stays verified. */
	assert_true(zrtp_store_verify(s, zid(1), sas(66), false));
	assert_true(zrtp_store_get(s, zid(1), at(30), &x));
	assert_true(x.verified);
	sbuf_init(&out, 0);
	assert_int_equal(zrtp_store_write(s, &out), 0);
	assert_int_equal(zrtp_store_read(t, sbuf_view(&out), at(5)), 0);
	assert_false(zrtp_store_verify(t, zid(1), sas(9), true));
	assert_true(zrtp_store_verify(t, zid(1), sas(1), true));
	assert_int_equal(get(t, 1, 30), 1);
	sbuf_fini(&out);
	zrtp_store_destroy(s);
	zrtp_store_destroy(t);
}

/* A stranger begins an exchange with the terminal's ZID while the cache does not know it. The
 * exchange ends after the terminal was verified. */
static void an_old_exchange_does_not_replace_verified_secrets(void **state)
{
	struct zrtp_store *s = make(8, 0);
	struct zrtp_kept late = kept(66, 0), next = kept(2, 1), second = kept(3, 1);
	struct zrtp_secrets x;

	(void)state;
	put(s, 1, 1, 10, UINT32_MAX);
	assert_true(zrtp_store_verify(s, zid(1), sas(1), true));
	zrtp_store_put(s, zid(1), at(20), &late);
	assert_int_equal(get(s, 1, 30), 1);
	late.seconds = 0;
	zrtp_store_put(s, zid(1), at(20), &late);
	assert_int_equal(get(s, 1, 30), 1);
	/* Two calls of the terminal itself, at the same time. */
	zrtp_store_put(s, zid(1), at(40), &next);
	zrtp_store_put(s, zid(1), at(40), &second);
	assert_true(zrtp_store_get(s, zid(1), at(50), &x));
	assert_int_equal(x.rs1[0], 3);
	assert_true(x.verified);
	/* A removal by the operator during an exchange stays in force. */
	assert_true(zrtp_store_verify(s, zid(1), sas(3), false));
	next = kept(4, 3);
	next.secrets.verified = true;
	zrtp_store_put(s, zid(1), at(60), &next);
	assert_true(zrtp_store_get(s, zid(1), at(70), &x));
	assert_int_equal(x.rs1[0], 4);
	assert_false(x.verified);
	zrtp_store_destroy(s);
}

static void it_is_saved_and_read(void **state)
{
	struct zrtp_store *a = make(8, 0), *b = make(2, 0);
	uint64_t version = zrtp_store_version(a);
	struct sbuf out;

	(void)state;
	put(a, 1, 1, 1, UINT32_MAX);
	put(a, 2, 2, 2, 1000);
	put(a, 3, 3, 3, UINT32_MAX);
	assert_true(zrtp_store_version(a) != version);
	sbuf_init(&out, 0);
	assert_int_equal(zrtp_store_write(a, &out), 0);
	assert_int_equal(zrtp_store_read(b, sbuf_view(&out), at(5)), 0);
	assert_memory_equal(zrtp_store_zid(a), zrtp_store_zid(b), ZRTP_ZID);
	/* A smaller cache keeps the newest. */
	assert_int_equal(get(b, 1, 6), -1);
	assert_int_equal(get(b, 2, 6), 2);
	assert_int_equal(get(b, 3, 6), 3);
	assert_int_equal(zrtp_store_read(b, sbuf_view(&out), at(5)), 0); /* again: the same */
	assert_int_equal(zrtp_store_count(b), 2);
	for (size_t len = 0; len < out.len; len++)
		assert_int_equal(zrtp_store_read(b, (struct str){out.p, len}, at(5)), -EBADMSG);
	out.p[16] = 0x7f; /* the number of entries */
	assert_int_equal(zrtp_store_read(b, sbuf_view(&out), at(5)), -EBADMSG);
	sbuf_fini(&out);
	zrtp_store_destroy(a);
	zrtp_store_destroy(b);
}

static void copy(struct zrtp_store *to, struct zrtp_store *from)
{
	struct sbuf out;

	sbuf_init(&out, 0);
	assert_int_equal(zrtp_store_write(from, &out), 0);
	assert_int_equal(zrtp_store_read(to, sbuf_view(&out), 0), 0);
	sbuf_fini(&out);
}

/* A machine without a clock of its own begins in 1970, and NTP sets its clock later. */
static void secrets_outlive_a_clock_that_is_set_late(void **state)
{
	const struct zrtp_store_config early = {.max = 8, .life_s = 100, .real_s = 7};
	struct zrtp_store *s, *next = make(8, 100);
	uint64_t version;

	(void)state;
	assert_int_equal(zrtp_store_create(&s, &early), 0);
	put(s, 1, 1, 10, UINT32_MAX);
	put(s, 2, 2, 10, 50);
	version = zrtp_store_version(s);
	zrtp_store_clock(s, 7 + 20 + 1, at(20)); /* a step of a second is nothing to save */
	assert_true(zrtp_store_version(s) == version);
	zrtp_store_clock(s, REAL - 40, at(20));
	assert_true(zrtp_store_version(s) != version);
	version = zrtp_store_version(s);
	zrtp_store_clock(s, REAL - 39, at(21));
	assert_true(zrtp_store_version(s) == version);
	copy(next, s); /* at REAL: 60 s after the exchanges' time of 10 s is REAL - 50 */
	assert_int_equal(zrtp_store_count(next), 1);
	assert_int_equal(get(next, 1, 49), 1);
	assert_int_equal(get(next, 1, 50), -1);
	zrtp_store_destroy(s);
	zrtp_store_destroy(next);
}

/* What was made since the start has its whole life, whatever the real clock does. */
static void a_jump_of_the_clock_expires_nothing_of_this_run(void **state)
{
	struct zrtp_store *s = make(8, 100);

	(void)state;
	put(s, 1, 1, 10, UINT32_MAX);
	zrtp_store_clock(s, REAL + 100000, at(20));
	assert_int_equal(get(s, 1, 109), 1);
	zrtp_store_clock(s, REAL - 100000, at(109));
	assert_int_equal(get(s, 1, 109), 1);
	assert_int_equal(get(s, 1, 110), -1);
	zrtp_store_destroy(s);
}

/* A saved expiry is a real time: the clock of the reader decides, as soon as it is set. */
static void read_secrets_expire_at_the_saved_time(void **state)
{
	const struct zrtp_store_config early = {.max = 8, .life_s = 100, .real_s = 7};
	struct zrtp_store *s = make(8, 100), *next, *third = make(8, 100);

	(void)state;
	assert_int_equal(zrtp_store_create(&next, &early), 0);
	put(s, 1, 1, 10, UINT32_MAX);
	put(s, 2, 2, 10, UINT32_MAX);
	copy(next, s);
	assert_int_equal(zrtp_store_count(next), 2);
	assert_int_equal(get(next, 1, 1000), 1);
	put(next, 2, 22, 1000, UINT32_MAX); /* a new exchange: a new life */
	copy(third, next);                  /* the saved time did not change */
	assert_int_equal(get(third, 1, 109), 1);
	assert_int_equal(get(third, 1, 110), -1);
	zrtp_store_clock(next, REAL + 110, at(1010));
	assert_int_equal(get(next, 1, 1010), -1);
	assert_int_equal(get(next, 2, 1099), 22);
	assert_int_equal(get(next, 2, 1100), -1);
	zrtp_store_destroy(s);
	zrtp_store_destroy(next);
	zrtp_store_destroy(third);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_least_recently_used_entry_makes_room),
		cmocka_unit_test(entries_expire),
		cmocka_unit_test(a_mismatch_replaces_nothing_before_it_is_verified),
		cmocka_unit_test(what_is_verified_is_the_exchange_whose_sas_was_compared),
		cmocka_unit_test(an_old_exchange_does_not_replace_verified_secrets),
		cmocka_unit_test(it_is_saved_and_read),
		cmocka_unit_test(secrets_outlive_a_clock_that_is_set_late),
		cmocka_unit_test(a_jump_of_the_clock_expires_nothing_of_this_run),
		cmocka_unit_test(read_secrets_expire_at_the_saved_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
