/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The largest jump of a plain terminal's sequence numbers toward an SRTP side (media/jump.c). The
 * forger sends from the terminal's own address, because no other proof is required. */
#include "media_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#define CM80 SUITE_AES_CM_128_80
#define MS   1000000ull

enum { SSRC = 7, FIRST = 1000 };

static enum packet_verdict one(struct rig *r, uint64_t index, uint64_t at_ms)
{
	rig_send(r, SSRC, index, 0);
	r->in[0].t_ns = at_ms * MS;
	rig_run(r);
	return (enum packet_verdict)r->in[0].verdict;
}

static struct rig *in_call(uint64_t *next)
{
	struct rig *r = rig_new(SUITE_PLAIN, CM80, 0);

	for (*next = FIRST; *next < FIRST + 20; (*next)++)
		assert_int_equal(one(r, *next, *next * 20), PACKET_SENT);
	return r;
}

static void one_far_packet_moves_nothing(void **state)
{
	static const uint64_t jumps[] = {MEDIA_LEAD + 2, 128, 2999, 3000, 30000, 32000};
	uint64_t next;
	struct rig *r = in_call(&next);

	(void)state;
	for (size_t i = 0; i < 50 * ARRAY_LEN(jumps); i++, next++) {
		assert_int_equal(one(r, next + jumps[i % ARRAY_LEN(jumps)], next * 20),
			PACKET_DROP_UNPROVED);
		assert_int_equal(one(r, next, next * 20), PACKET_SENT);
		rig_got(r, 0, SSRC, next, next);
	}
	rig_free(r);
}

/* The forger jumps as far as allowed, again and again, at nearly half of the terminal's rate. Only
 * the indexes of its own packets are lost to the terminal. */
static void near_packets_take_their_own_place_only(void **state)
{
	static bool taken[8000];
	uint64_t next, ahead = 0, forged = 0, lost = 0;
	struct rig *r = in_call(&next);

	(void)state;
	memset(taken, 0, sizeof(taken));
	for (; next < 7000; next++) {
		uint64_t step = next % 9 % 2 ? MEDIA_LEAD + 1 : 0; /* 4 of 9 */

		ahead = ahead > next ? ahead : next;
		while (step && one(r, ahead + step, next * 20) != PACKET_SENT)
			step--;
		if (step) {
			taken[ahead += step] = true;
			forged++;
		}
		lost += taken[next];
		assert_int_equal(
			one(r, next, next * 20), taken[next] ? PACKET_DROP_NONCE : PACKET_SENT);
		assert_true(ahead <= next + MEDIA_LEAD + 10);
	}
	assert_true(lost > 100 && lost <= forged);
	rig_free(r);
}

static void a_run_is_believed_unless_the_terminal_sends(void **state)
{
	static const struct {
		const char *why;
		uint32_t packets, ms;
		bool terminal, believed;
	} T[] = {
		{"eight within a moment", 8, 1, false, false},
		{"seven", 7, 20, false, false},
		{"eight of an ordinary stream", 8, 20, false, true},
		{"many, over 100 ms", 101, 1, false, true},
		{"many, while the terminal sends", 200, 20, true, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		uint64_t next, at;
		struct rig *r = in_call(&next);
		enum packet_verdict v = PACKET_DROP_STALE;

		at = next * 20;
		for (uint32_t k = 0; k < T[i].packets; k++, at += T[i].ms) {
			v = one(r, next + 20000 + k, at);
			if (T[i].terminal)
				assert_int_equal(one(r, next++, at), PACKET_SENT);
		}
		if ((v == PACKET_SENT) != T[i].believed)
			fail_msg("%s", T[i].why);
		rig_free(r);
	}
}

static void a_terminal_that_jumps_is_heard_after_some_packets(void **state)
{
	uint64_t next;
	struct rig *r = in_call(&next);

	(void)state;
	next += 5000;
	for (uint32_t i = 0; i < 20; i++, next++)
		assert_int_equal(
			one(r, next, next * 20), i < 7 ? PACKET_DROP_UNPROVED : PACKET_SENT);
	assert_int_equal(rig_dropped(r, A, PACKET_DROP_UNPROVED), 7);
	rig_free(r);
}

/* A terminal jumps six times by 30,000, once per packet, in one burst. The number of passed cycles
 * is unknown, so no SRTP receiver could follow (RFC 3711 3.3.1). Packets that look older than the
 * last sent one are dropped until the sequence numbers have passed it. No index is sent twice. */
static void six_jumps_in_a_burst_cost_half_a_cycle_at_most(void **state)
{
	static const uint32_t jumps[] = {1, 2, 6};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(jumps); i++) {
		struct rig *r = rig_new(SUITE_PLAIN, CM80, 0);
		uint64_t next, last;
		uint32_t lost = 0;
		uint16_t ahead;

		for (next = 65530; next < 65560; next++)
			assert_int_equal(one(r, next, next * 20), PACKET_SENT);
		last = next - 1;
		for (uint32_t k = 0; k < jumps[i]; k++)
			rig_send(r, SSRC, next += 30000, 0);
		rig_run(r);
		ahead = (uint16_t)(next + 1 - last);
		for (next++; lost < 40000 && one(r, next, next * 20) != PACKET_SENT; next++)
			lost++;
		assert_int_equal(
			lost, ahead < 0x8000 ? 6 : 0x10000 - ahead - (SRTP_REPLAY_WINDOW - 1));
		rig_free(r);
	}
}

static void a_stream_that_loses_half_goes_on(void **state)
{
	uint64_t next;
	struct rig *r = in_call(&next);

	(void)state;
	for (uint32_t i = 0; i < 1000; i++, next += 2)
		assert_int_equal(one(r, next, next * 20), PACKET_SENT);
	for (uint32_t i = 0; i < 20; i++) { /* one second in one piece */
		next += 50;
		for (uint32_t k = 0; k < 50; k++, next++)
			assert_int_equal(one(r, next, next * 20), PACKET_SENT);
	}
	rig_free(r);
}

/* One burst at once: the fast path takes the next packet only. */
static void the_short_way_jumps_no_further(void **state)
{
	uint64_t next;
	struct rig *r = in_call(&next);

	(void)state;
	rig_send(r, SSRC, next, 0);
	rig_send(r, SSRC, next + 30000, 0);
	rig_send(r, SSRC, next + 1, 0);
	rig_send(r, SSRC, next + 10, 0);
	rig_send(r, SSRC, next + 2, 0);
	rig_run(r);
	assert_int_equal(r->outs, 4);
	assert_int_equal(rig_dropped(r, A, PACKET_DROP_UNPROVED), 1);
	rig_free(r);
}

static void listeners_are_guarded_likewise(void **state)
{
	struct rig *r = rig_new(SUITE_PLAIN, SUITE_PLAIN, 0);
	struct media_cmd source = rig_stream_cmd(A, PORT_A, 0, B, B_RTCP, "192.0.2.1:4000"),
			 listener = rig_stream_cmd(
				 3, 30004, 2, MEDIA_NONE, MEDIA_NONE, "192.0.2.3:6000");

	(void)state;
	rig_key(r, A_TX2, CM80);
	rig_ctx(r, 2, (struct rig_keys){A_TX2, LENT, CM80, true, true});
	rig_key(r, LENT, CM80);
	listener.stream.listener = true;
	source.stream.copy[0] = 4;
	assert_int_equal(media_command(r->m, &listener), 0);
	assert_int_equal(media_command(r->m, &source), 0);
	for (uint64_t i = FIRST; i < FIRST + 50; i++) {
		assert_int_equal(one(r, i, i * 20), PACKET_SENT);
		assert_int_equal(r->outs, 2);
		/* Toward a plain side, the terminal judges jumps itself. */
		assert_int_equal(one(r, i + 30000, i * 20), PACKET_SENT);
		assert_int_equal(r->outs, 1);
	}
	assert_int_equal(rig_dropped(r, 3, PACKET_DROP_UNPROVED), 50);
	rig_free(r);
}

static void what_is_authentic_may_jump(void **state)
{
	struct rig *r = rig_new(CM80, CM80, 0);

	(void)state;
	for (uint64_t i = FIRST; i < 70000; i += 20000) {
		rig_send(r, SSRC, i, A_TX);
		rig_run(r);
		assert_int_equal(r->outs, 1);
	}
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_far_packet_moves_nothing),
		cmocka_unit_test(near_packets_take_their_own_place_only),
		cmocka_unit_test(a_run_is_believed_unless_the_terminal_sends),
		cmocka_unit_test(a_terminal_that_jumps_is_heard_after_some_packets),
		cmocka_unit_test(six_jumps_in_a_burst_cost_half_a_cycle_at_most),
		cmocka_unit_test(a_stream_that_loses_half_goes_on),
		cmocka_unit_test(the_short_way_jumps_no_further),
		cmocka_unit_test(listeners_are_guarded_likewise),
		cmocka_unit_test(what_is_authentic_may_jump),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
