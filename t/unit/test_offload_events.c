/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Events that the kernel sends: silence, another source, a removed target. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "offload_rig.h"

static bool event(enum steer_event_kind kind, uint32_t id)
{
	const struct steer_event e = {.kind = kind, .id = id};

	return offload_event(rig.o, &e);
}

/* The time is ahead, so that both are heard however long this process stands still. */
static void in_kernel_and_heard(void)
{
	rig.kernel[A].last_ns = rig.kernel[B].last_ns = clock_real_ns() + 3600 * NS_PER_SEC;
	off_tick();
	off_tick();
	assert_int_equal(off_in_kernel(), 2);
}

static void silence_is_told_and_not_asked_for(void **state)
{
	struct media_cmd a = off_stream_cmd(A);
	uint64_t now;

	(void)state;
	assert_int_equal(offload_heard(rig.o, 0, A), 0);
	in_kernel_and_heard();
	rig.reads = 0;
	for (int i = 0; i < 3; i++)
		off_tick();
	assert_int_equal(rig.reads, 0);
	now = clock_real_ns();
	assert_true(offload_heard(rig.o, 0, A) >= now);
	assert_false(event(STEER_EVENT_SILENCE, A));
	assert_in_range(
		offload_heard(rig.o, 0, A) + STEER_SILENCE_MS * 1000000ull, now, clock_real_ns());
	assert_true(offload_heard(rig.o, 0, B) >= now);
	/* If the event is lost, or the stream goes on, its counters show it later. */
	rig.kernel[A].last_ns = clock_real_ns();
	rig.kernel[B].last_ns = clock_real_ns() - 60 * NS_PER_SEC;
	for (int i = 0; i < 5; i++)
		off_tick();
	assert_true(rig.reads > 0);
	assert_true(offload_heard(rig.o, 0, A) >= now);
	assert_int_equal(offload_heard(rig.o, 0, B), rig.kernel[B].last_ns);
	off_commit(&a, 1);
	assert_int_equal(offload_heard(rig.o, 0, A), rig.kernel[A].last_ns);
}

static void another_source_is_followed(void **state)
{
	struct media_cmd a = off_stream_cmd(A);

	(void)state;
	/* Strict, but the signalled address may still take over. Packets of strangers therefore go
	 * to the daemon. */
	a.stream.strict_source = true;
	a.stream.remote = off_at(10, 4001);
	off_commit(&a, 1);
	in_kernel_and_heard();
	assert_false(rig.cmd[0].relay.strict);
	rig.cmds = 0;
	offload_look_again(rig.o, rig.now_ns);
	assert_int_equal(rig.cmds, 0);
	assert_true(event(STEER_EVENT_SOURCE, A));
	rig.look[A].remote.port++; /* by the worker, which received the packet */
	offload_look_again(rig.o, rig.now_ns);
	assert_int_equal(rig.cmds, 2); /* its stream and the sending one */
	assert_int_equal(off_in_kernel(), 0);
	offload_look_again(rig.o, rig.now_ns);
	assert_int_equal(rig.cmds, 2);
	assert_false(event(STEER_EVENT_SOURCE, A)); /* the source is already confirmed */
	assert_false(event(STEER_EVENT_SOURCE, STREAMS));
	off_tick();
	off_tick();
	assert_int_equal(off_in_kernel(), 2);
}

/* A source may take over from a silent one, and the worker would not see the silence. */
static void who_may_move_stays_with_the_daemon(void **state)
{
	struct media_cmd a = off_stream_cmd(A);

	(void)state;
	a.stream.media_handover = true;
	off_commit(&a, 1);
	for (int i = 0; i < 3; i++)
		off_tick();
	assert_int_equal(off_in_kernel(), 0);
}

static void strangers_die_where_the_source_is_strict(void **state)
{
	struct media_cmd a = off_stream_cmd(A);
	struct relay_stats st = {0};

	(void)state;
	a.stream.strict_source = true;
	a.stream.remote = rig.look[A].remote;
	off_commit(&a, 1);
	rig.kernel[A].strangers = 5;
	off_tick();
	assert_true(rig.cmd[0].relay.strict);
	assert_false(rig.cmd[1].relay.strict);
	rig.kernel[A].strangers = 12;
	offload_stats(rig.o, 0, A, rig.now_ns + NS_PER_SEC, &st);
	assert_int_equal(st.drops[PACKET_DROP_SOURCE], 7);
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
		off_tick();
		assert_int_equal(rig.cmds, 0);
	}
}

static uint64_t packets_of(uint32_t stream)
{
	struct relay_stats st = {0};

	offload_stats(rig.o, 0, stream, rig.now_ns + NS_PER_SEC, &st);
	return st.packets;
}

static void a_kernel_that_is_back_has_all_and_counts_on(void **state)
{
	struct offload_usage u;

	(void)state;
	in_kernel_and_heard();
	rig.kernel[A].packets = 100;
	assert_int_equal(packets_of(A), 100);
	offload_gone(rig.o);
	assert_int_equal(packets_of(A), 100);
	memset(rig.kernel, 0, sizeof(rig.kernel));
	offload_back(rig.o);
	assert_int_equal(packets_of(A), 100);
	rig.unread = true; /* the worker has not made the targets yet */
	off_tick();
	assert_int_equal(rig.cmds, 0);
	rig.unread = false;
	off_tick();
	off_tick();
	assert_int_equal(off_in_kernel(), 2);
	rig.kernel[A].packets = 7;
	assert_int_equal(packets_of(A), 107);
	offload_gone(rig.o);
	offload_back(rig.o);
	rig.kernel[A].packets = 0;
	offload_usage(rig.o, rig.now_ns + 10 * NS_PER_SEC, &u);
	assert_int_equal(u.packets, 107);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TOLD(silence_is_told_and_not_asked_for),
		TOLD(another_source_is_followed),
		TOLD(who_may_move_stays_with_the_daemon),
		TOLD(strangers_die_where_the_source_is_strict),
		TOLD(without_the_kernel_all_is_ours),
		TOLD(a_kernel_that_is_back_has_all_and_counts_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
