/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Passed-through SRTP stays in the kernel with its SRTCP, and its index is followed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "offload_rig.h"

static struct media_cmd pass_cmd(uint32_t id)
{
	struct media_cmd c = off_ctx_cmd(id, SUITE_AES_CM_128_80, SUITE_PLAIN);

	c.ctx.rx.pass = c.ctx.tx.pass = true;
	return c;
}

static void pass_call(void)
{
	const struct media_cmd cmd[] = {
		pass_cmd(0), pass_cmd(1), off_rtcp_cmd(A_RTCP), off_rtcp_cmd(B_RTCP)};

	rig.steer.relays_srtp = true;
	off_commit(cmd, 4);
	rig.look[A].index = 0x1fff0;
	rig.look[A_RTCP] = (struct offload_look){
		.packets = 1, .ssrc = 0xa, .confirmed = true, .remote = off_at(10, 4001)};
	rig.look[B_RTCP] = (struct offload_look){
		.packets = 1, .ssrc = 0xb, .confirmed = true, .remote = off_at(11, 5001)};
}

static void srtp_that_passes_goes_with_its_rtcp(void **state)
{
	(void)state;
	pass_call();
	off_tick();
	assert_int_equal(rig.cmds, 4);
	for (uint32_t i = 0; i < rig.cmds; i++) {
		const struct steer_relay *r = &rig.cmd[i].relay;

		assert_int_equal(rig.cmd[i].kind, WORKER_RELAY);
		assert_int_equal(r->rtcp, r->local.port % 2);
		if (r->local.port == 30000 + A_RTCP)
			assert_true(r->from.port == 30000 + B_RTCP && r->to.port == 5001);
	}
}

static void on_one_port_both_go_if_both_leave_by_one(void **state)
{
	(void)state;
	for (int peer_mux = 0; peer_mux < 2; peer_mux++) {
		struct media_cmd a = off_stream_cmd(A);

		off_teardown(state);
		off_setup(state);
		pass_call();
		a.stream.rtcp = true;
		a.stream.rtcp_to = peer_mux ? B : B_RTCP;
		off_commit(&a, 1);
		rig.look[B].packets = 0;
		off_tick();
		assert_int_equal(rig.cmd[0].relay.local.port, 30000 + A);
		assert_int_equal(rig.cmd[0].relay.rtcp, peer_mux);
	}
}

/* Streams that are decrypted on one side only do not stay in the kernel. Neither does RTCP that is
 * read, nor a stream whose counters an older module lacks. */
static void what_does_not_pass_both_ways_stays(void **state)
{
	struct media_cmd cmd;

	(void)state;
	pass_call();
	rig.steer.relays_srtp = false;
	off_tick();
	assert_int_equal(rig.cmds, 0);
	rig.steer.relays_srtp = true;
	cmd = off_ctx_cmd(1, SUITE_PLAIN, SUITE_PLAIN);
	off_commit(&cmd, 1);
	off_tick();
	assert_int_equal(rig.cmds, 0);
	cmd = off_ctx_cmd(0, SUITE_PLAIN, SUITE_PLAIN);
	off_commit(&cmd, 1);
	off_tick();
	assert_int_equal(rig.cmds, 2); /* a plain call: RTP only */
}

static const struct media_mark *resumed(void)
{
	const struct media_mark *last = NULL;

	for (uint32_t i = 0; i < rig.cmds; i++)
		if (rig.cmd[i].kind == WORKER_MEDIA && rig.cmd[i].media.id == 0)
			last = &rig.cmd[i].media.ctx_resume.mark[0];
	return last;
}

static void the_index_is_followed_by_sequence_numbers(void **state)
{
	struct media_cmd back = off_ctx_cmd(0, SUITE_AES_CM_128_80, SUITE_AES_CM_128_80);
	struct relay_stats st = {0};
	uint64_t i;

	(void)state;
	pass_call();
	off_tick();
	rig.kernel[A].has_seq = true;
	for (i = 0x1fff0; i < 0x48000; i += 20000) { /* a video stream */
		rig.kernel[A].seq = (uint16_t)i;
		off_tick();
	}
	i -= 20000;
	assert_non_null(resumed());
	assert_int_equal(resumed()->index, i);
	assert_int_equal(resumed()->ssrc, 0xa);
	offload_stats(rig.o, 0, A, rig.now_ns, &st);
	assert_int_equal(st.roc, i >> 16);
	/* A few packets are not reported until the stream returns. */
	rig.kernel[A].seq = (uint16_t)(i + 20);
	off_tick();
	assert_null(resumed());
	rig.kernel[A].seq = (uint16_t)(i + 30);
	rig.cmds = 0;
	off_commit(&back, 1);
	assert_non_null(resumed());
	assert_int_equal(resumed()->index, i + 30);
	assert_false(rig.kernel[A].now);
	assert_false(rig.kernel[A_RTCP].now);
}

static void a_new_key_has_a_new_index(void **state)
{
	struct media_cmd again = pass_cmd(0);

	(void)state;
	pass_call();
	off_tick();
	rig.kernel[A].has_seq = true;
	rig.kernel[A].seq = 100;
	off_tick();
	rig.look[A].index = 7;
	again.ctx.rx_new = true;
	off_commit(&again, 1);
	off_tick();
	rig.kernel[A].has_seq = true;
	rig.kernel[A].seq = 1000;
	off_tick();
	assert_non_null(resumed());
	assert_int_equal(resumed()->index, 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIGGED(srtp_that_passes_goes_with_its_rtcp),
		RIGGED(on_one_port_both_go_if_both_leave_by_one),
		RIGGED(what_does_not_pass_both_ways_stays),
		RIGGED(the_index_is_followed_by_sequence_numbers),
		RIGGED(a_new_key_has_a_new_index),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
