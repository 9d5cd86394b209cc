/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Media that may stay in the kernel, reasons for their return, and whose packets count. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "offload_rig.h"

static void plain_media_of_two_known_terminals_goes(void **state)
{
	const struct steer_relay *r;

	(void)state;
	off_tick();
	assert_int_equal(rig.cmds, 2);
	r = &rig.cmd[0].relay;
	assert_int_equal(r->local.port, 30000 + A);
	assert_int_equal(r->from.port, 30000 + B);
	assert_true(endpoint_eq(&r->source, &rig.look[A].remote));
	assert_true(endpoint_eq(&r->to, &rig.look[B].remote));
	assert_int_equal(r->ssrc, 0xa);
	assert_int_equal(r->tos, 184);
	off_tick();
	assert_int_equal(rig.cmds, 0);
	assert_int_equal(off_in_kernel(), 2);
}

/* The daemon receives STUN and DTLS. Nothing is learned, so the kernel may drop other sources. */
static void plain_media_with_ice_go(void **state)
{
	(void)state;
	for (uint32_t id = A; id <= B; id += B - A) {
		struct media_cmd c = off_stream_cmd(id);

		c.stream.side = 1;
		c.stream.side_serial = id;
		c.stream.learning = MEDIA_LEARN_OFF;
		c.stream.strict_source = true;
		c.stream.remote = rig.look[id].remote;
		off_commit(&c, 1);
	}
	off_tick();
	assert_int_equal(rig.cmds, 2);
	assert_true(rig.cmd[0].relay.strict);
	off_tick();
	assert_int_equal(off_in_kernel(), 2);
}

static void what_must_be_looked_at_stays(void **state)
{
	static const char *const WHY[] = {"source not confirmed", "destination not confirmed",
		"too few packets", "no address", "SRTP comes in", "SRTP leaves", "recorded",
		"blocked", "handover allowed", "other family", "nowhere to go", "echoed"};

	for (size_t i = 0; i < ARRAY_LEN(WHY); i++) {
		struct media_cmd a = off_stream_cmd(A),
				 ctx0 = off_ctx_cmd(0, SUITE_PLAIN, SUITE_PLAIN);

		off_teardown(state);
		off_setup(state);
		rig.look[B].packets = 0; /* only A's stream is judged here */
		rig.look[A].confirmed = i != 0;
		rig.look[B].confirmed = i != 1;
		rig.look[A].packets = i == 2 ? 1 : 10;
		rig.look[B].remote.port = i == 3 ? 0 : 5000;
		if (i == 4)
			ctx0.ctx.rx.suite = SUITE_AES_CM_128_80;
		off_commit(&ctx0, 1);
		if (i == 5) {
			struct media_cmd ctx1 = off_ctx_cmd(1, SUITE_PLAIN, SUITE_AES_CM_128_80);

			off_commit(&ctx1, 1);
		}
		a.stream.tap = i == 6;
		a.stream.gate = i == 7 ? MEDIA_GATE_DTMF : 0;
		a.stream.media_handover = i == 8;
		if (i == 9)
			rig.look[B].remote.family = AF_INET6;
		a.stream.rtp_to = i == 10 ? MEDIA_NONE : i == 11 ? A : B;
		off_commit(&a, 1);
		off_tick();
		if (rig.cmds)
			fail_msg("it went to the kernel: %s", WHY[i]);
	}
}

static void a_watched_or_cut_stream_comes_back(void **state)
{
	static const enum media_cmd_type T[] = {MEDIA_STREAM_WATCH, MEDIA_STREAM_CUT};

	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		const struct media_cmd cmd = {.type = T[i], .id = A};
		bool there;

		off_teardown(state);
		off_setup(state);
		off_tick();
		off_tick();
		assert_int_equal(off_in_kernel(), 2);
		(void)offload_arrived(rig.o, 0, A, &there);
		assert_true(there);
		off_commit(&cmd, 1);
		(void)offload_arrived(rig.o, 0, A, &there);
		assert_false(there);
		off_tick();
		off_tick();
		assert_int_equal(off_in_kernel(), T[i] == MEDIA_STREAM_WATCH ? 1 : 2);
		for (int k = 0; k < 10; k++)
			off_tick();
		assert_int_equal(off_in_kernel(), 2);
	}
}

static void it_comes_back_before_it_changes(void **state)
{
	struct media_cmd change[] = {off_stream_cmd(A), off_ctx_cmd(1, SUITE_PLAIN, SUITE_PLAIN)};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(change); i++) {
		off_tick();
		off_tick();
		assert_int_equal(off_in_kernel(), 2);
		rig.cmds = 0;
		off_commit(&change[i], 1);
		/* Fills in the stream, and the one whose port its packets leave by. */
		assert_int_equal(off_in_kernel(), 0);
		assert_int_equal(rig.cmds, 2);
	}
	off_tick();
	assert_int_equal(off_in_kernel(), 2);
}

static void what_was_not_pushed_did_not_happen(void **state)
{
	struct media_cmd a = off_stream_cmd(A);
	struct worker_cmd before[CMDS];

	(void)state;
	rig.refuse = 1;
	off_tick();
	assert_int_equal(off_in_kernel(), 0);
	rig.refuse = 0;
	off_tick();
	off_tick();
	assert_int_equal(off_in_kernel(), 2);
	/* The ring was full: offload_pushed() is not called, so the stream stays in the kernel. */
	assert_int_equal(offload_before(rig.o, 0, &a, 1, before, CMDS), 2);
	off_tick();
	assert_int_equal(rig.cmds, 0);
	assert_int_equal(offload_before(rig.o, 0, &a, 1, before, 1), 1);
}

static void another_ssrc_or_address_is_followed_less_and_less_often(void **state)
{
	uint32_t moves = 0;

	(void)state;
	off_tick();
	for (int i = 0; i < 60; i++) {
		rig.look[A].ssrc++;
		off_tick();
		for (uint32_t k = 0; k < rig.cmds; k++)
			moves += rig.cmd[k].kind == WORKER_RELAY;
	}
	assert_in_range(moves, 2, 8);
}

static void a_worker_that_could_not_is_asked_again(void **state)
{
	(void)state;
	off_tick();
	rig.kernel[A].now = false; /* packets were always waiting */
	for (int i = 0; i < 3; i++) {
		off_tick();
		assert_int_equal(rig.cmds, 0);
	}
	off_tick();
	assert_int_equal(rig.cmds, 1);
	assert_int_equal(rig.cmd[0].kind, WORKER_RELAY);
	assert_int_equal(rig.cmd[0].relay.id, A);
}

static void both_parts_are_counted(void **state)
{
	struct relay_stats st;
	struct offload_usage u;
	struct media_cmd a = off_stream_cmd(A);

	(void)state;
	rig.kernel[A].packets = 1000; /* sent by an earlier instance, not ours */
	off_tick();
	rig.kernel[A].packets = 1100;
	rig.kernel[A].bytes = 17200;
	rig.kernel[A].last_ns = 12345;
	off_tick();
	st = (struct relay_stats){.packets = 10, .bytes = 1720, .last_packet_ns = 99};
	offload_stats(rig.o, 0, A, rig.now_ns, &st);
	assert_int_equal(st.packets, 110);
	assert_int_equal(st.bytes, 1720 + 17200);
	assert_int_equal(st.last_packet_ns, 12345);
	st = (struct relay_stats){.packets_out = 7};
	offload_stats(rig.o, 0, B, rig.now_ns, &st);
	assert_int_equal(st.packets_out, 107);
	assert_int_equal(st.packets, 0);
	/* The worker's packets count until the kernel has the stream again. */
	rig.kernel[A].packets = 1150;
	off_commit(&a, 1);
	st = (struct relay_stats){0};
	offload_stats(rig.o, 0, A, rig.now_ns + NS_PER_SEC, &st);
	assert_int_equal(st.packets, 150);
	offload_usage(rig.o, rig.now_ns, &u);
	assert_int_equal(u.packets, 150);
	assert_int_equal(u.streams, 0);
	offload_release(rig.o, 0, A);
	offload_release(rig.o, 0, B);
	offload_usage(rig.o, rig.now_ns, &u);
	assert_int_equal(u.packets, 150);
	st = (struct relay_stats){0};
	offload_stats(rig.o, 0, A, rig.now_ns, &st);
	assert_int_equal(st.packets, 0);
	off_tick();
	assert_int_equal(rig.cmds, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIGGED(plain_media_of_two_known_terminals_goes),
		RIGGED(plain_media_with_ice_go),
		RIGGED(what_must_be_looked_at_stays),
		RIGGED(a_watched_or_cut_stream_comes_back),
		RIGGED(it_comes_back_before_it_changes),
		RIGGED(what_was_not_pushed_did_not_happen),
		RIGGED(another_ssrc_or_address_is_followed_less_and_less_often),
		RIGGED(a_worker_that_could_not_is_asked_again),
		RIGGED(both_parts_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
