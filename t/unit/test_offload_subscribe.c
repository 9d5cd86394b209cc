/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Listeners to plain media get it from the kernel. Packets since then are counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "offload_rig.h"

static void ear(uint32_t id, uint32_t next, enum srtp_suite_id suite)
{
	struct media_cmd cmd[2] = {off_ctx_cmd(id - 4, SUITE_PLAIN, suite), off_stream_cmd(id)};

	cmd[1].stream.listener = true;
	cmd[1].stream.ctx = id - 4;
	cmd[1].stream.rtp_to = MEDIA_NONE;
	cmd[1].stream.copy[0] = next;
	off_commit(cmd, 2);
	rig.look[id] = (struct offload_look){.remote = off_at((uint8_t)(20 + id), 6000)};
}

static void listened_to(uint32_t first)
{
	struct media_cmd a = off_stream_cmd(A);

	a.stream.copy[0] = first;
	off_commit(&a, 1);
}

static void who_listens_is_a_destination(void **state)
{
	const struct steer_relay *r = &rig.cmd[0].relay;

	(void)state;
	ear(EAR, EAR2 + 1, SUITE_PLAIN);
	ear(EAR2, 0, SUITE_PLAIN);
	listened_to(EAR + 1);
	rig.look[B].packets = 0;
	off_tick();
	assert_int_equal(rig.cmds, 0); /* a kernel that sends to one destination only */
	rig.steer.relays_copies = true;
	off_tick();
	assert_int_equal(rig.cmds, 1);
	assert_int_equal(r->to.port, 5000);
	assert_int_equal(r->copies, 2);
	assert_true(endpoint_eq(&r->copy[0].to, &rig.look[EAR].remote));
	assert_int_equal(r->copy[1].from.port, 30000 + EAR2);
	rig.look[EAR2].remote.port++;
	off_tick();
	assert_false(rig.kernel[A].now);
}

static void all_who_listen_get_it_from_one_place(void **state)
{
	(void)state;
	rig.steer.relays_copies = true;
	rig.look[B].packets = 0;
	for (int i = 0; i < 5; i++) {
		ear(EAR, EAR2 + 1, SUITE_PLAIN);
		ear(EAR2, 0, i == 0 ? SUITE_AES_CM_128_80 : SUITE_PLAIN);
		listened_to(EAR + 1);
		if (i == 3) {
			struct media_cmd c = off_stream_cmd(EAR2);

			c.stream = (struct media_stream_cfg){.local = c.stream.local,
				.rtp = true,
				.ctx = 3,
				.rtp_to = MEDIA_NONE,
				.rtcp_to = MEDIA_NONE,
				.listener = true,
				.gate = MEDIA_GATE_MEDIA};
			off_commit(&c, 1);
		}
		if (i == 1)
			rig.look[EAR2].remote.family = AF_INET6;
		if (i == 2)
			rig.look[EAR2].remote.port = 0;
		off_tick();
		assert_int_equal(rig.cmds, i == 4);
	}
}

static void a_listener_counts_what_came_since_it_came(void **state)
{
	struct relay_stats st = {0};

	(void)state;
	rig.steer.relays_copies = true;
	rig.look[B].packets = 0;
	off_tick();
	rig.kernel[A].packets = 100;
	off_tick();
	ear(EAR, 0, SUITE_PLAIN);
	listened_to(EAR + 1);
	assert_false(rig.kernel[A].now);
	off_tick();
	assert_true(rig.kernel[A].now);
	rig.kernel[A].packets = 150;
	off_tick();
	offload_stats(rig.o, 0, EAR, rig.now_ns, &st);
	assert_int_equal(st.packets_out, 50);
	/* When a stream changes, so does the stream that sends to it. */
	ear(EAR, 0, SUITE_PLAIN);
	assert_false(rig.kernel[A].now);
	rig.kernel[A].packets = 160;
	off_tick();
	rig.kernel[A].packets = 165;
	off_tick();
	st = (struct relay_stats){0};
	offload_stats(rig.o, 0, EAR, rig.now_ns, &st);
	assert_int_equal(st.packets_out, 65);
	st = (struct relay_stats){0};
	offload_stats(rig.o, 0, B, rig.now_ns, &st);
	assert_int_equal(st.packets_out, 165);
	offload_release(rig.o, 0, EAR);
	offload_release(rig.o, 0, A);
}

static void what_is_published_goes_to_listeners_alone(void **state)
{
	struct media_cmd a = off_stream_cmd(A);

	(void)state;
	rig.steer.relays_copies = true;
	rig.look[B].packets = 0;
	ear(EAR, 0, SUITE_PLAIN);
	a.stream.rtp_to = MEDIA_NONE;
	a.stream.copy[0] = EAR + 1;
	off_commit(&a, 1);
	off_tick();
	assert_int_equal(rig.cmds, 1);
	assert_true(endpoint_eq(&rig.cmd[0].relay.to, &rig.look[EAR].remote));
	assert_int_equal(rig.cmd[0].relay.copies, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIGGED(who_listens_is_a_destination),
		RIGGED(all_who_listen_get_it_from_one_place),
		RIGGED(a_listener_counts_what_came_since_it_came),
		RIGGED(what_is_published_goes_to_listeners_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
