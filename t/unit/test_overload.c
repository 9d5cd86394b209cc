/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Overload: when the machine's limits are exceeded, when a worker's queue is stuck, and which
 * packets it drops then. */
#include "media_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "call/call.h"
#include "observe/limits.h"
#include "worker/overload.h"
#include "base/clock.h"

#define MS   1000000ull
#define CM80 SUITE_AES_CM_128_80

/* --- Limits of the machine -------------------------------------------------------------------- */

static void a_limit_is_exceeded_by_the_mean_of_three_seconds(void **state)
{
	static const struct {
		uint64_t busy, bytes; /* in this second, of 200 */
		double load;
		enum call_limit want;
		const char *why;
	} T[] = {
		{0, 0, 0.5, CALL_LIMIT_NONE, "nothing to compare with"},
		{180, 0, 0.5, CALL_LIMIT_CPU, "90 % in the only second known"},
		{0, 0, 0.5, CALL_LIMIT_NONE, "45 % in two"},
		{200, 0, 0.5, CALL_LIMIT_NONE, "63 %"},
		{200, 0, 0.5, CALL_LIMIT_NONE, "67 %"},
		{100, 0, 0.5, CALL_LIMIT_CPU, "83 %"},
		{100, 0, 7.6, CALL_LIMIT_NONE, "67 %, load as allowed"},
		{100, 0, 7.7, CALL_LIMIT_LOAD, "50 %, load above"},
		{100, 3001, 7.6, CALL_LIMIT_BANDWIDTH, "1000.3 bytes per second"},
		{180, 0, 0, CALL_LIMIT_BANDWIDTH, "for three seconds"},
		{180, 0, 0, CALL_LIMIT_BANDWIDTH, "the third"},
		{100, 0, 0, CALL_LIMIT_NONE, "over"},
	};
	struct limits l = {.cfg = {.cpu = 80, .load = 7.6, .bandwidth = 1000}},
		      off = {.samples = 0};
	struct limits_sample s = {.mono_ns = 5 * NS_PER_SEC, .busy = 77, .all = 1000, .bytes = 9};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		char text[80];

		s.mono_ns += NS_PER_SEC;
		s.all += 200;
		s.busy += T[i].busy;
		s.bytes += T[i].bytes;
		s.load = T[i].load;
		if (limits_step(&l, &s) != T[i].want)
			fail_msg("%s: reached %d at %.1f %%", T[i].why, (int)l.reached, l.cpu);
		assert_int_equal(
			limits_text(&l, l.reached, text)[0] != 0, l.reached != CALL_LIMIT_NONE);
		assert_int_equal(limits_step(&off, &s), CALL_LIMIT_NONE);
	}
}

static void the_machine_is_measured(void **state)
{
	struct limits_sample a = {0}, b = {0};

	(void)state;
	limits_measure(&a);
	limits_measure(&b);
	assert_true(a.all > 0 && a.busy > 0 && a.busy <= a.all);
	assert_true(b.all >= a.all && b.mono_ns >= a.mono_ns && b.load >= 0);
}

/* --- Conditions for shedding ------------------------------------------------------------------ */

static void only_a_queue_that_stands_is_shed(void **state)
{
	static const struct {
		uint64_t at, age; /* ms */
		int shed;         /* 1: ordinary, 2: emergency calls' as well */
		const char *why;
	} T[] = {
		{1000, 10, 0, "all young"},
		{1001, 900, 0, "a stall"},
		{1060, 850, 0, "that is worked off"},
		{1100, 51, 0, "in time"},
		{1101, 50, 0, "and is over"},
		{1102, 51, 0, "old again"},
		{1201, 60, 0, "for 99 ms"},
		{1202, 60, 1, "for 100 ms: it stands"},
		{1203, 51, 1, "still"},
		{1204, 50, 0, "young enough"},
		{1205, 500, 0, "then patience begins anew"},
		{1304, 500, 0, "and lasts"},
		{1305, 500, 1, "as long"},
		{900, 500, 0, "the clock was set back: begin anew"},
		{1000, 500, 1, "by that clock"},
		{1299, 500, 1, "emergency calls wait for 400 ms"},
		{1300, 500, 2, "and are no exception then"},
		{1301, 51, 2, "until the queue is short"},
		{1302, 50, 0, "as it is"},
	};
	struct overload o = {.age_ns = 50 * MS}, off = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		uint64_t now = T[i].at * MS, oldest = now - T[i].age * MS;
		struct overload_shed s = overload_step(&o, now, oldest);

		if ((s.ordinary_before_ns != 0) != (T[i].shed > 0))
			fail_msg("%s", T[i].why);
		assert_int_equal(s.ordinary_before_ns, T[i].shed ? now - 50 * MS : 0);
		assert_int_equal(s.emergency_before_ns, T[i].shed > 1 ? now - 200 * MS : 0);
		s = overload_step(&off, now, oldest);
		assert_int_equal(s.ordinary_before_ns | s.emergency_before_ns, 0);
	}
}

/* --- Choice of calls to shed ------------------------------------------------------------------ */

static void mark_emergency(struct rig *r, bool emergency)
{
	struct media_cmd cmd = rig_stream_cmd(A, PORT_A, 0, B, B_RTCP, "192.0.2.1:4000");

	cmd.stream.rtp = cmd.stream.rtcp = true;
	cmd.stream.emergency = emergency;
	assert_int_equal(media_command(r->m, &cmd), 0);
}

static void send_at(struct rig *r, uint64_t index, uint64_t t_ns)
{
	rig_send(r, 7, index, A_TX);
	r->in[r->n - 1].t_ns = t_ns;
}

static void the_oldest_of_ordinary_calls_go_first_and_are_counted(void **state)
{
	static const struct {
		bool emergency;
		uint64_t t_ns;
		uint8_t want;
	} T[] = {
		{false, 99, PACKET_DROP_OVERLOAD},
		{false, 100, PACKET_SENT},
		{false, 101, PACKET_SENT},
		{true, 99, PACKET_SENT},
		{true, 40, PACKET_SENT},
		{true, 39, PACKET_DROP_OVERLOAD_EMERGENCY},
	};
	struct rig *r = rig_new(CM80, CM80, 0);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		uint32_t jobs;

		mark_emergency(r, T[i].emergency);
		media_shed(r->m, 100, 40);
		send_at(r, 100 + i, T[i].t_ns);
		jobs = rig_prepare(r);
		assert_int_equal(jobs, T[i].want == PACKET_SENT); /* the others have no cipher */
		rig_complete(r, jobs);
		assert_int_equal(r->in[0].verdict, T[i].want);
	}
	assert_int_equal(media_drop_count(r->m, PACKET_DROP_OVERLOAD), 1);
	assert_int_equal(media_drop_count(r->m, PACKET_DROP_OVERLOAD_EMERGENCY), 1);
	assert_int_equal(rig_dropped(r, A, PACKET_DROP_OVERLOAD), 1);
	assert_int_equal(rig_dropped(r, A, PACKET_DROP_OVERLOAD_EMERGENCY), 1);
	/* A shed packet counts as lost: its index was never received. */
	media_shed(r->m, 0, 0);
	mark_emergency(r, false);
	send_at(r, 100, 1);
	rig_run(r);
	assert_int_equal(r->outs, 1);
	rig_got(r, 0, 7, 100, 100);
	rig_free(r);
}

static void what_is_no_media_is_not_shed(void **state)
{
	static const uint8_t binding[20] = {0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42};
	struct rig *r = rig_new(CM80, CM80, 0);

	(void)state;
	media_shed(r->m, 100, 40);
	memcpy(rig_slot(r, A, PORT_A), binding, sizeof(binding));
	r->in[r->n - 1].len = sizeof(binding);
	r->in[r->n - 1].t_ns = 1;
	rig_run(r);
	assert_int_equal(r->in[0].verdict, PACKET_DROP_NOT_MEDIA);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_limit_is_exceeded_by_the_mean_of_three_seconds),
		cmocka_unit_test(the_machine_is_measured),
		cmocka_unit_test(only_a_queue_that_stands_is_shed),
		cmocka_unit_test(the_oldest_of_ordinary_calls_go_first_and_are_counted),
		cmocka_unit_test(what_is_no_media_is_not_shed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
