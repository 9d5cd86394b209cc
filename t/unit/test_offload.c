/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which media may stay in the kernel, when it must come back, and whose packets count: app/offload.c with a kernel of a few lines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "app/offload.h"
#include "base/clock.h"

enum { A = 2, A_RTCP, B, B_RTCP, EAR, EAR2, STREAMS = 8, CTXS = 4, CMDS = 32 };

struct rig {
	struct offload *o;
	struct steer_config steer;
	struct offload_look look[STREAMS];
	struct steer_relayed kernel[65536 - 30000]; /* by port */
	bool can;
	int refuse;
	struct worker_cmd cmd[CMDS];
	uint32_t cmds;
	uint64_t now_ns;
	uint32_t reads;
};

static struct rig rig; /* what the steering's functions, which get no argument of ours, look into */

static bool relays(const struct steer_config *cfg)
{
	(void)cfg;
	return rig.can;
}

static int relayed(
	const struct steer_config *cfg, struct local_port local, struct steer_relayed *out)
{
	(void)cfg;
	*out = rig.kernel[local.port - 30000];
	return 0;
}

static int relayed_all(const struct steer_config *cfg, uint32_t worker,
	void (*put)(void *arg, const struct steer_relayed *r), void *arg)
{
	(void)cfg;
	(void)worker;
	for (int i = 0; i < 16; i++)
		if (rig.kernel[i].now && ++rig.reads)
			put(arg, &rig.kernel[i]);
	return 0;
}

static bool tells; /* of silence and the like, by itself */

static int events_fd(const struct steer_config *cfg)
{
	(void)cfg;
	return tells ? 0 : -1;
}

static const struct steer_ops OPS = {.name = "mock",
	.relays = relays,
	.relayed = relayed,
	.relayed_all = relayed_all,
	.events_fd = events_fd};

static void look(void *arg, uint32_t worker, uint32_t stream, struct offload_look *out)
{
	(void)arg;
	(void)worker;
	*out = rig.look[stream];
}

/* As a worker whose kernel obeys at once. */
static int push(void *arg, uint32_t worker, const struct worker_cmd *cmd, uint32_t n)
{
	(void)arg;
	(void)worker;
	if (rig.refuse)
		return -EAGAIN;
	for (uint32_t i = 0; i < n; i++) {
		assert_true(rig.cmds < CMDS);
		rig.cmd[rig.cmds++] = cmd[i];
		if (cmd[i].kind == WORKER_RELAY) {
			rig.kernel[cmd[i].relay.local.port - 30000].now = true;
			rig.kernel[cmd[i].relay.local.port - 30000].id = cmd[i].relay.id;
			rig.kernel[cmd[i].relay.local.port - 30000].has_seq = false;
		} else if (cmd[i].kind == WORKER_MEDIA) {
			assert_int_equal(cmd[i].media.type, MEDIA_CTX_RESUME);
		} else {
			assert_int_equal(cmd[i].kind, WORKER_UNRELAY);
			rig.kernel[cmd[i].local.port - 30000].now = false;
		}
	}
	return 0;
}

static struct endpoint at(uint8_t host, uint16_t port)
{
	return (struct endpoint){.addr = {192, 0, 2, host}, .port = port, .family = AF_INET};
}

static void commit(const struct media_cmd *cmd, uint32_t n)
{
	struct worker_cmd before[CMDS];
	uint32_t made = offload_before(rig.o, 0, cmd, n, before, CMDS);

	assert_int_equal(push(NULL, 0, before, made), 0);
	offload_pushed(rig.o, 0, cmd, n);
}

static struct media_cmd stream_cmd(uint32_t id)
{
	struct media_cmd c = {.type = MEDIA_STREAM_SET, .id = id};

	c.stream = (struct media_stream_cfg){.local = {.port = (uint16_t)(30000 + id)},
		.rtp = true,
		.ctx = id == A ? 0 : 1,
		.rtp_to = id == A ? B : A,
		.rtcp_to = MEDIA_NONE,
		.learning = MEDIA_LEARN_IMMEDIATE,
		.tos = 184};
	return c;
}

static struct media_cmd rtcp_cmd(uint32_t id)
{
	struct media_cmd c = stream_cmd(id == A_RTCP ? A : B);

	c.id = id;
	c.stream.local.port = (uint16_t)(30000 + id);
	c.stream.rtp = false;
	c.stream.rtcp = true;
	c.stream.rtp_to = MEDIA_NONE;
	c.stream.rtcp_to = id == A_RTCP ? B_RTCP : A_RTCP;
	return c;
}

static struct media_cmd ctx_cmd(uint32_t id, enum srtp_suite_id rx, enum srtp_suite_id tx)
{
	struct media_cmd c = {.type = MEDIA_CTX_SET, .id = id};

	c.ctx.rx.suite = rx;
	c.ctx.tx.suite = tx;
	return c;
}

static void tick(void)
{
	rig.now_ns += NS_PER_SEC;
	rig.cmds = 0;
	offload_tick(rig.o, rig.now_ns);
}

/* A plain call between two terminals that are known. */
static int setup(void **state)
{
	struct offload_config cfg = {.ops = &OPS,
		.steer = &rig.steer,
		.workers = 1,
		.max_stream = STREAMS,
		.max_ctx = CTXS,
		.look = look,
		.push = push};
	struct media_cmd cmd[4];

	(void)state;
	memset(&rig, 0, sizeof(rig));
	rig.now_ns = 100 * NS_PER_SEC;
	rig.steer.local[0] = at(1, 0);
	rig.steer.locals = 1;
	assert_int_equal(offload_create(&rig.o, &cfg), -EOPNOTSUPP);
	rig.can = true;
	assert_int_equal(offload_create(&rig.o, &cfg), 0);
	cmd[0] = ctx_cmd(0, SUITE_PLAIN, SUITE_PLAIN);
	cmd[1] = ctx_cmd(1, SUITE_PLAIN, SUITE_PLAIN);
	cmd[2] = stream_cmd(A);
	cmd[3] = stream_cmd(B);
	commit(cmd, 4);
	assert_int_equal(rig.cmds, 0);
	rig.look[A] = (struct offload_look){
		.packets = 10, .ssrc = 0xa, .confirmed = true, .remote = at(10, 4000)};
	rig.look[B] = (struct offload_look){
		.packets = 10, .ssrc = 0xb, .confirmed = true, .remote = at(11, 5000)};
	return 0;
}

static int setup_told(void **state)
{
	int res;

	tells = true;
	res = setup(state);
	tells = false;
	return res;
}

static int teardown(void **state)
{
	(void)state;
	offload_destroy(rig.o);
	return 0;
}

static uint32_t in_kernel(void)
{
	return (uint32_t)rig.kernel[A].now + (uint32_t)rig.kernel[B].now;
}

static void plain_media_of_two_known_terminals_goes(void **state)
{
	const struct steer_relay *r;

	(void)state;
	tick();
	assert_int_equal(rig.cmds, 2);
	r = &rig.cmd[0].relay;
	assert_int_equal(r->local.port, 30000 + A);
	assert_int_equal(r->from.port, 30000 + B);
	assert_true(endpoint_eq(&r->source, &rig.look[A].remote));
	assert_true(endpoint_eq(&r->to, &rig.look[B].remote));
	assert_int_equal(r->ssrc, 0xa);
	assert_int_equal(r->tos, 184);
	tick();
	assert_int_equal(rig.cmds, 0);
	assert_int_equal(in_kernel(), 2);
}

static void what_must_be_looked_at_stays(void **state)
{
	static const char *const WHY[] = {"source not confirmed", "destination not confirmed",
		"too few packets", "no address", "SRTP comes in", "SRTP leaves", "recorded",
		"blocked", "handover allowed", "other family", "nowhere to go"};

	for (size_t i = 0; i < ARRAY_LEN(WHY); i++) {
		struct media_cmd a = stream_cmd(A), ctx0 = ctx_cmd(0, SUITE_PLAIN, SUITE_PLAIN);

		teardown(state);
		setup(state);
		rig.look[B].packets = 0; /* only A's stream is judged here */
		rig.look[A].confirmed = i != 0;
		rig.look[B].confirmed = i != 1;
		rig.look[A].packets = i == 2 ? 1 : 10;
		rig.look[B].remote.port = i == 3 ? 0 : 5000;
		if (i == 4)
			ctx0.ctx.rx.suite = SUITE_AES_CM_128_80;
		commit(&ctx0, 1);
		if (i == 5) {
			struct media_cmd ctx1 = ctx_cmd(1, SUITE_PLAIN, SUITE_AES_CM_128_80);

			commit(&ctx1, 1);
		}
		a.stream.tap = i == 6;
		a.stream.gate = i == 7 ? MEDIA_GATE_DTMF : 0;
		a.stream.media_handover = i == 8;
		if (i == 9)
			rig.look[B].remote.family = AF_INET6;
		a.stream.rtp_to = i == 10 ? MEDIA_NONE : B;
		commit(&a, 1);
		tick();
		if (rig.cmds)
			fail_msg("it went to the kernel: %s", WHY[i]);
	}
}

static void it_comes_back_before_it_changes(void **state)
{
	struct media_cmd change[] = {stream_cmd(A), ctx_cmd(1, SUITE_PLAIN, SUITE_PLAIN)};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(change); i++) {
		tick();
		tick();
		assert_int_equal(in_kernel(), 2);
		rig.cmds = 0;
		commit(&change[i], 1);
		/* The stream, and the one that leaves by its port. */
		assert_int_equal(in_kernel(), 0);
		assert_int_equal(rig.cmds, 2);
	}
	tick();
	assert_int_equal(in_kernel(), 2);
}

static void what_was_not_pushed_did_not_happen(void **state)
{
	struct media_cmd a = stream_cmd(A);
	struct worker_cmd before[CMDS];

	(void)state;
	rig.refuse = 1;
	tick();
	assert_int_equal(in_kernel(), 0);
	rig.refuse = 0;
	tick();
	tick();
	assert_int_equal(in_kernel(), 2);
	/* The ring was full: offload_pushed() is not called, and it stays there. */
	assert_int_equal(offload_before(rig.o, 0, &a, 1, before, CMDS), 2);
	tick();
	assert_int_equal(rig.cmds, 0);
	assert_int_equal(offload_before(rig.o, 0, &a, 1, before, 1), 1);
}

static void another_ssrc_or_address_is_followed_less_and_less_often(void **state)
{
	uint32_t moves = 0;

	(void)state;
	tick();
	for (int i = 0; i < 60; i++) {
		rig.look[A].ssrc++;
		tick();
		for (uint32_t k = 0; k < rig.cmds; k++)
			moves += rig.cmd[k].kind == WORKER_RELAY;
	}
	assert_in_range(moves, 2, 8);
}

static void a_worker_that_could_not_is_asked_again(void **state)
{
	(void)state;
	tick();
	rig.kernel[A].now = false; /* there was always something waiting */
	for (int i = 0; i < 3; i++) {
		tick();
		assert_int_equal(rig.cmds, 0);
	}
	tick();
	assert_int_equal(rig.cmds, 1);
	assert_int_equal(rig.cmd[0].kind, WORKER_RELAY);
	assert_int_equal(rig.cmd[0].relay.id, A);
}

static void both_parts_are_counted(void **state)
{
	struct relay_stats st;
	struct offload_usage u;
	struct media_cmd a = stream_cmd(A);

	(void)state;
	rig.kernel[A].packets = 1000; /* of an earlier instance: not ours */
	tick();
	rig.kernel[A].packets = 1100;
	rig.kernel[A].bytes = 17200;
	rig.kernel[A].last_ns = 12345;
	tick();
	st = (struct relay_stats){.packets = 10, .bytes = 1720, .last_packet_ns = 99};
	offload_stats(rig.o, 0, A, rig.now_ns, &st);
	assert_int_equal(st.packets, 110);
	assert_int_equal(st.bytes, 1720 + 17200);
	assert_int_equal(st.last_packet_ns, 12345);
	st = (struct relay_stats){.packets_out = 7};
	offload_stats(rig.o, 0, B, rig.now_ns, &st);
	assert_int_equal(st.packets_out, 107);
	assert_int_equal(st.packets, 0);
	/* What comes until it is back counts too. */
	rig.kernel[A].packets = 1150;
	commit(&a, 1);
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
	tick();
	assert_int_equal(rig.cmds, 0);
}

/* --- What is passed through ------------------------------------------------------------------------------------ */

static struct media_cmd pass_cmd(uint32_t id)
{
	struct media_cmd c = ctx_cmd(id, SUITE_AES_CM_128_80, SUITE_PLAIN);

	c.ctx.rx.pass = c.ctx.tx.pass = true;
	return c;
}

static void pass_call(void)
{
	const struct media_cmd cmd[] = {
		pass_cmd(0), pass_cmd(1), rtcp_cmd(A_RTCP), rtcp_cmd(B_RTCP)};

	rig.steer.relays_srtp = true;
	commit(cmd, 4);
	rig.look[A].index = 0x1fff0;
	rig.look[A_RTCP] = (struct offload_look){
		.packets = 1, .ssrc = 0xa, .confirmed = true, .remote = at(10, 4001)};
	rig.look[B_RTCP] = (struct offload_look){
		.packets = 1, .ssrc = 0xb, .confirmed = true, .remote = at(11, 5001)};
}

static void srtp_that_passes_goes_with_its_rtcp(void **state)
{
	(void)state;
	pass_call();
	tick();
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
		struct media_cmd a = stream_cmd(A);

		teardown(state);
		setup(state);
		pass_call();
		a.stream.rtcp = true;
		a.stream.rtcp_to = peer_mux ? B : B_RTCP;
		commit(&a, 1);
		rig.look[B].packets = 0;
		tick();
		assert_int_equal(rig.cmd[0].relay.local.port, 30000 + A);
		assert_int_equal(rig.cmd[0].relay.rtcp, peer_mux);
	}
}

/* What is deciphered on one side of the relay and not on the other does not meet in the kernel either; nor does RTCP that is read, nor
 * what an older module would lose count of. */
static void what_does_not_pass_both_ways_stays(void **state)
{
	struct media_cmd cmd;

	(void)state;
	pass_call();
	rig.steer.relays_srtp = false;
	tick();
	assert_int_equal(rig.cmds, 0);
	rig.steer.relays_srtp = true;
	cmd = ctx_cmd(1, SUITE_PLAIN, SUITE_PLAIN);
	commit(&cmd, 1);
	tick();
	assert_int_equal(rig.cmds, 0);
	cmd = ctx_cmd(0, SUITE_PLAIN, SUITE_PLAIN);
	commit(&cmd, 1);
	tick();
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
	struct media_cmd back = ctx_cmd(0, SUITE_AES_CM_128_80, SUITE_AES_CM_128_80);
	struct relay_stats st = {0};
	uint64_t i;

	(void)state;
	pass_call();
	tick();
	rig.kernel[A].has_seq = true;
	for (i = 0x1fff0; i < 0x48000; i += 20000) { /* a video stream */
		rig.kernel[A].seq = (uint16_t)i;
		tick();
	}
	i -= 20000;
	assert_non_null(resumed());
	assert_int_equal(resumed()->index, i);
	assert_int_equal(resumed()->ssrc, 0xa);
	offload_stats(rig.o, 0, A, rig.now_ns, &st);
	assert_int_equal(st.roc, i >> 16);
	/* A few packets are too few to be told, but for when it comes back. */
	rig.kernel[A].seq = (uint16_t)(i + 20);
	tick();
	assert_null(resumed());
	rig.kernel[A].seq = (uint16_t)(i + 30);
	rig.cmds = 0;
	commit(&back, 1);
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
	tick();
	rig.kernel[A].has_seq = true;
	rig.kernel[A].seq = 100;
	tick();
	rig.look[A].index = 7;
	again.ctx.rx_new = true;
	commit(&again, 1);
	tick();
	rig.kernel[A].has_seq = true;
	rig.kernel[A].seq = 1000;
	tick();
	assert_non_null(resumed());
	assert_int_equal(resumed()->index, 1000);
}

/* --- What the kernel tells by itself -------------------------------------------------------------------------- */

static bool event(enum steer_event_kind kind, uint32_t id)
{
	const struct steer_event e = {.kind = kind, .id = id};

	return offload_event(rig.o, &e);
}

static void in_kernel_and_heard(void)
{
	rig.kernel[A].last_ns = rig.kernel[B].last_ns = clock_real_ns();
	tick();
	rig.kernel[A].last_ns = rig.kernel[B].last_ns = clock_real_ns();
	tick();
	assert_int_equal(in_kernel(), 2);
}

static void silence_is_told_and_not_asked_for(void **state)
{
	struct media_cmd a = stream_cmd(A);
	uint64_t now;

	(void)state;
	assert_int_equal(offload_heard(rig.o, 0, A), 0);
	in_kernel_and_heard();
	rig.reads = 0;
	for (int i = 0; i < 3; i++)
		tick();
	assert_int_equal(rig.reads, 0);
	now = clock_real_ns();
	assert_true(offload_heard(rig.o, 0, A) >= now);
	assert_false(event(STEER_EVENT_SILENCE, A));
	assert_in_range(now - offload_heard(rig.o, 0, A), 4 * NS_PER_SEC, 5 * NS_PER_SEC);
	assert_true(offload_heard(rig.o, 0, B) >= now);
	/* Should an event be lost, or the stream go on, its counters say so by and by. */
	rig.kernel[A].last_ns = clock_real_ns();
	rig.kernel[B].last_ns = clock_real_ns() - 60 * NS_PER_SEC;
	for (int i = 0; i < 5; i++)
		tick();
	assert_true(rig.reads > 0);
	assert_true(offload_heard(rig.o, 0, A) >= now);
	assert_true(now - offload_heard(rig.o, 0, B) > 50 * NS_PER_SEC);
	commit(&a, 1);
	assert_int_equal(offload_heard(rig.o, 0, A), rig.kernel[A].last_ns);
}

static void another_source_is_followed_where_it_may_move(void **state)
{
	struct media_cmd a = stream_cmd(A);

	(void)state;
	a.stream.media_handover = true;
	commit(&a, 1);
	in_kernel_and_heard();
	rig.cmds = 0;
	offload_look_again(rig.o, rig.now_ns);
	assert_int_equal(rig.cmds, 0);
	assert_true(event(STEER_EVENT_SOURCE, A));
	rig.look[A].remote.port++; /* by the worker, which had the packet */
	offload_look_again(rig.o, rig.now_ns);
	assert_int_equal(rig.cmds, 2); /* back come both: its own, and what goes there */
	assert_int_equal(in_kernel(), 0);
	offload_look_again(rig.o, rig.now_ns);
	assert_int_equal(rig.cmds, 2);
	assert_false(event(STEER_EVENT_SOURCE, A)); /* it is ours */
	assert_false(event(STEER_EVENT_SOURCE, STREAMS));
	tick();
	tick();
	assert_int_equal(in_kernel(), 2);
}

static void strangers_die_where_the_source_is_strict(void **state)
{
	struct media_cmd a = stream_cmd(A);
	struct relay_stats st = {0};

	(void)state;
	a.stream.strict_source = true;
	commit(&a, 1);
	rig.kernel[A].strangers = 5;
	tick();
	assert_true(rig.cmd[0].relay.strict);
	assert_false(rig.cmd[1].relay.strict);
	rig.kernel[A].strangers = 12;
	offload_stats(rig.o, 0, A, rig.now_ns + NS_PER_SEC, &st);
	assert_int_equal(st.drops[MEDIA_DROP_SOURCE], 7);
	assert_int_equal(st.errors, 7);
}

static void without_the_kernel_all_is_ours(void **state)
{
	struct offload_usage u;

	(void)state;
	in_kernel_and_heard();
	rig.cmds = 0;
	offload_gone(rig.o);
	offload_usage(rig.o, rig.now_ns + 10 * NS_PER_SEC, &u);
	assert_int_equal(u.streams, 0);
	for (int i = 0; i < 10; i++) {
		tick();
		assert_int_equal(rig.cmds, 0);
	}
}

/* --- Listeners ------------------------------------------------------------------------------------------------- */

static void ear(uint32_t id, uint32_t next, enum srtp_suite_id suite)
{
	struct media_cmd cmd[2] = {ctx_cmd(id - 4, SUITE_PLAIN, suite), stream_cmd(id)};

	cmd[1].stream.listener = true;
	cmd[1].stream.ctx = id - 4;
	cmd[1].stream.rtp_to = MEDIA_NONE;
	cmd[1].stream.copy[0] = next;
	commit(cmd, 2);
	rig.look[id] = (struct offload_look){.remote = at((uint8_t)(20 + id), 6000)};
}

static void listened_to(uint32_t first)
{
	struct media_cmd a = stream_cmd(A);

	a.stream.copy[0] = first;
	commit(&a, 1);
}

static void who_listens_is_a_destination(void **state)
{
	const struct steer_relay *r = &rig.cmd[0].relay;

	(void)state;
	ear(EAR, EAR2 + 1, SUITE_PLAIN);
	ear(EAR2, 0, SUITE_PLAIN);
	listened_to(EAR + 1);
	rig.look[B].packets = 0;
	tick();
	assert_int_equal(rig.cmds, 0); /* a kernel that sends to one only */
	rig.steer.relays_copies = true;
	tick();
	assert_int_equal(rig.cmds, 1);
	assert_int_equal(r->to.port, 5000);
	assert_int_equal(r->copies, 2);
	assert_true(endpoint_eq(&r->copy[0].to, &rig.look[EAR].remote));
	assert_int_equal(r->copy[1].from.port, 30000 + EAR2);
	rig.look[EAR2].remote.port++;
	tick();
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
			struct media_cmd c = stream_cmd(EAR2);

			c.stream = (struct media_stream_cfg){.local = c.stream.local,
				.rtp = true,
				.ctx = 3,
				.rtp_to = MEDIA_NONE,
				.rtcp_to = MEDIA_NONE,
				.listener = true,
				.gate = MEDIA_GATE_MEDIA};
			commit(&c, 1);
		}
		if (i == 1)
			rig.look[EAR2].remote.family = AF_INET6;
		if (i == 2)
			rig.look[EAR2].remote.port = 0;
		tick();
		assert_int_equal(rig.cmds, i == 4);
	}
}

static void a_listener_counts_what_came_since_it_came(void **state)
{
	struct relay_stats st = {0};

	(void)state;
	rig.steer.relays_copies = true;
	rig.look[B].packets = 0;
	tick();
	rig.kernel[A].packets = 100;
	tick();
	ear(EAR, 0, SUITE_PLAIN);
	listened_to(EAR + 1);
	assert_false(rig.kernel[A].now);
	tick();
	assert_true(rig.kernel[A].now);
	rig.kernel[A].packets = 150;
	tick();
	offload_stats(rig.o, 0, EAR, rig.now_ns, &st);
	assert_int_equal(st.packets_out, 50);
	/* It changes: so does who sends to it. */
	ear(EAR, 0, SUITE_PLAIN);
	assert_false(rig.kernel[A].now);
	rig.kernel[A].packets = 160;
	tick();
	rig.kernel[A].packets = 165;
	tick();
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
	struct media_cmd a = stream_cmd(A);

	(void)state;
	rig.steer.relays_copies = true;
	rig.look[B].packets = 0;
	ear(EAR, 0, SUITE_PLAIN);
	a.stream.rtp_to = MEDIA_NONE;
	a.stream.copy[0] = EAR + 1;
	commit(&a, 1);
	tick();
	assert_int_equal(rig.cmds, 1);
	assert_true(endpoint_eq(&rig.cmd[0].relay.to, &rig.look[EAR].remote));
	assert_int_equal(rig.cmd[0].relay.copies, 0);
}

int main(void)
{
#define RIGGED(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
#define TOLD(f)   cmocka_unit_test_setup_teardown(f, setup_told, teardown)
	const struct CMUnitTest tests[] = {
		RIGGED(plain_media_of_two_known_terminals_goes),
		RIGGED(what_must_be_looked_at_stays),
		RIGGED(it_comes_back_before_it_changes),
		RIGGED(what_was_not_pushed_did_not_happen),
		RIGGED(another_ssrc_or_address_is_followed_less_and_less_often),
		RIGGED(a_worker_that_could_not_is_asked_again),
		RIGGED(both_parts_are_counted),
		RIGGED(srtp_that_passes_goes_with_its_rtcp),
		RIGGED(on_one_port_both_go_if_both_leave_by_one),
		RIGGED(what_does_not_pass_both_ways_stays),
		RIGGED(the_index_is_followed_by_sequence_numbers),
		RIGGED(a_new_key_has_a_new_index),
		RIGGED(who_listens_is_a_destination),
		RIGGED(all_who_listen_get_it_from_one_place),
		RIGGED(a_listener_counts_what_came_since_it_came),
		RIGGED(what_is_published_goes_to_listeners_alone),
		TOLD(silence_is_told_and_not_asked_for),
		TOLD(another_source_is_followed_where_it_may_move),
		TOLD(strangers_die_where_the_source_is_strict),
		TOLD(without_the_kernel_all_is_ours),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
