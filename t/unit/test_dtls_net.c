/* SPDX-License-Identifier: GPL-2.0-or-later */
/* DTLS handshakes over bad networks: loss, repetition, order, small packets, repeated flights (RFC
 * 6347 4.2.4). */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "dtls_rig_clock.h"

#define S_NS 1000000000ull

static struct dtls_rig rig; /* large: not on the stack */

static size_t longest(const struct dtls_rig *r)
{
	size_t most = 0;

	for (size_t i = 0; i < r->n; i++)
		if (r->sent[i].len > most)
			most = r->sent[i].len;
	return most;
}

static void test_loss_and_repetition_only_delay(void **state)
{
	(void)state;
	for (unsigned seed = 0; seed < 100; seed++) {
		dtls_rig_init(&rig);
		rig.seed = seed;
		rig.percent = seed % 4 * 8;
		rig.fate = dtls_rig_lossy;
		rig.backwards = seed & 1;
		if (seed & 2)
			rig.config[0].mtu = rig.config[1].mtu = 400;
		dtls_rig_create(&rig, true);
		dtls_rig_handshake(&rig);
		if (!dtls_rig_keys_agree(&rig, NULL))
			fail_msg("seed %u: %s / %s", seed,
				dtls_failure_text(dtls_failure(rig.a[0])),
				dtls_failure_text(dtls_failure(rig.a[1])));
		dtls_rig_fini(&rig);
	}
}

static size_t lost_one;
static unsigned lose_one(struct dtls_rig *r, size_t i)
{
	(void)r;
	return i != lost_one;
}

static void test_each_packet_may_be_lost_once(void **state)
{
	size_t packets;

	(void)state;
	dtls_rig_init(&rig);
	dtls_rig_create(&rig, true);
	dtls_rig_handshake(&rig);
	packets = rig.n;
	dtls_rig_fini(&rig);
	assert_true(packets >= 4);
	for (lost_one = 0; lost_one < packets; lost_one++) {
		uint64_t begun;

		dtls_rig_init(&rig);
		rig.fate = lose_one;
		dtls_rig_create(&rig, true);
		begun = rig.now_ns;
		dtls_rig_handshake(&rig);
		assert_true(dtls_rig_keys_agree(&rig, NULL));
		assert_true(rig.now_ns < begun + S_NS); /* one round of a short timer */
		dtls_rig_fini(&rig);
	}
}

static void test_reordered_flights_need_no_retransmission(void **state)
{
	(void)state;
	dtls_rig_init(&rig);
	rig.config[0].mtu = rig.config[1].mtu = 300;
	rig.backwards = true;
	dtls_rig_create(&rig, true);
	dtls_rig_handshake(&rig);
	assert_true(dtls_rig_keys_agree(&rig, NULL));
	dtls_rig_fini(&rig);
}

static void test_no_packet_exceeds_the_mtu(void **state)
{
	static const uint16_t mtu[] = {DTLS_MTU_MIN, 300, 576, 0, DTLS_MTU_MAX};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(mtu); i++) {
		dtls_rig_init(&rig);
		rig.config[0].mtu = rig.config[1].mtu = mtu[i];
		dtls_rig_create(&rig, true);
		dtls_rig_handshake(&rig);
		assert_true(dtls_rig_keys_agree(&rig, NULL));
		assert_true(longest(&rig) <= (mtu[i] ? mtu[i] : DTLS_MTU_DEFAULT));
		dtls_rig_fini(&rig);
	}
}

/* The server's last flight is lost three times: the client repeats its own, the server answers. */
static unsigned lost_finals;
static unsigned lose_finals(struct dtls_rig *r, size_t i)
{
	const uint8_t *p = r->sent[i].p;

	if (!r->sent[i].to_server && p[0] == 20 && lost_finals < 3) {
		lost_finals++;
		return 0;
	}
	return 1;
}

static void test_a_repeated_last_flight_is_answered(void **state)
{
	(void)state;
	lost_finals = 0;
	dtls_rig_init(&rig);
	rig.fate = lose_finals;
	dtls_rig_create(&rig, true);
	dtls_rig_handshake(&rig);
	assert_int_equal(lost_finals, 3);
	assert_int_equal(dtls_state(rig.a[1]), DTLS_OPEN);
	assert_true(dtls_rig_keys_agree(&rig, NULL));
	dtls_rig_fini(&rig);
}

static void test_replayed_packets_change_nothing(void **state)
{
	(void)state;
	dtls_rig_init(&rig);
	dtls_rig_create(&rig, true);
	dtls_rig_handshake(&rig);
	for (int round = 0; round < 50; round++)
		for (size_t i = 0, n = rig.n; i < n; i++)
			(void)dtls_take(rig.a[rig.sent[i].to_server], rig.sent[i].p,
				rig.sent[i].len, rig.now_ns);
	assert_false(dtls_rig_deliver(&rig)); /* replays provoke no packets */
	assert_true(dtls_rig_keys_agree(&rig, NULL));
	dtls_rig_fini(&rig);
}

/* Half of a handshake's packets of another association reach this one. */
static void test_packets_of_another_handshake_cannot_complete_this_one(void **state)
{
	static struct dtls_rig other;

	(void)state;
	dtls_rig_init(&other);
	dtls_rig_create(&other, true);
	dtls_rig_handshake(&other);
	dtls_rig_init(&rig);
	dtls_rig_create(&rig, true);
	assert_int_equal(dtls_start(rig.a[0], rig.now_ns), 0);
	for (size_t i = 0; i < other.n; i++)
		(void)dtls_take(rig.a[other.sent[i].to_server], other.sent[i].p, other.sent[i].len,
			rig.now_ns);
	assert_int_not_equal(dtls_state(rig.a[0]), DTLS_OPEN);
	assert_int_not_equal(dtls_state(rig.a[1]), DTLS_OPEN);
	dtls_rig_fini(&rig);
	dtls_rig_fini(&other);
}

static void test_next_needs_room(void **state)
{
	uint8_t small[20], large[DTLS_PACKET_MAX];

	(void)state;
	dtls_rig_init(&rig);
	dtls_rig_create(&rig, true);
	assert_int_equal(dtls_next(rig.a[0], small, sizeof(small)), 0);
	assert_int_equal(dtls_start(rig.a[0], rig.now_ns), 0);
	assert_int_equal(dtls_next(rig.a[0], small, sizeof(small)), -EMSGSIZE);
	assert_true(dtls_next(rig.a[0], large, sizeof(large)) > 20);
	assert_int_equal(dtls_next(rig.a[0], large, sizeof(large)), 0);
	dtls_rig_fini(&rig);
}

static void test_early_ticks_do_nothing(void **state)
{
	(void)state;
	dtls_rig_init(&rig);
	dtls_rig_create(&rig, true);
	dtls_tick(rig.a[1], rig.now_ns);
	assert_int_equal(dtls_start(rig.a[0], rig.now_ns), 0);
	for (int i = 0; i < 100; i++)
		dtls_tick(rig.a[0], rig.now_ns);
	assert_int_equal(rig.counts[0].retransmitted, 0);
	assert_true(dtls_deadline(rig.a[0]) > rig.now_ns);
	assert_true(dtls_deadline(rig.a[0]) <= rig.now_ns + DTLS_FIRST_NS);
	dtls_rig_fini(&rig);
}

static unsigned all_lost(struct dtls_rig *r, size_t i)
{
	(void)r;
	(void)i;
	return 0;
}

/* OpenSSL's timer reads the wall clock. Set back, it stops retransmissions, but not the end of the
 * handshake; set forward, it causes one early retransmission. */
static void test_a_wall_clock_that_jumps_does_no_harm(void **state)
{
	(void)state;
	for (int forward = 0; forward < 2; forward++) {
		uint64_t hour = 3600 * S_NS;

		dtls_rig_init(&rig);
		rig.fate = all_lost;
		dtls_rig_create(&rig, true);
		assert_int_equal(dtls_start(rig.a[0], rig.now_ns), 0);
		dtls_rig_set_back(forward ? -hour : hour);
		dtls_rig_run(&rig, rig.now_ns + 20 * S_NS);
		if (forward) {
			rig.fate = NULL;
			dtls_rig_handshake(&rig);
			assert_true(dtls_rig_keys_agree(&rig, NULL));
		} else {
			assert_int_equal(rig.counts[0].retransmitted, 0);
			assert_int_equal(dtls_state(rig.a[0]), DTLS_HANDSHAKE);
			dtls_rig_run(&rig, rig.now_ns + 20 * S_NS);
			assert_int_equal(dtls_failure(rig.a[0]), DTLS_FAIL_TIMEOUT);
		}
		dtls_rig_fini(&rig);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_loss_and_repetition_only_delay),
		cmocka_unit_test(test_each_packet_may_be_lost_once),
		cmocka_unit_test(test_reordered_flights_need_no_retransmission),
		cmocka_unit_test(test_no_packet_exceeds_the_mtu),
		cmocka_unit_test(test_a_repeated_last_flight_is_answered),
		cmocka_unit_test(test_replayed_packets_change_nothing),
		cmocka_unit_test(test_packets_of_another_handshake_cannot_complete_this_one),
		cmocka_unit_test(test_next_needs_room),
		cmocka_unit_test(test_early_ticks_do_nothing),
		cmocka_unit_test(test_a_wall_clock_that_jumps_does_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
