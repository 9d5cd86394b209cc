/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Packets that come again: a watched stream drops them, any other relays them; a watch ends by
 * itself. Also: a cut stream has no destination, and a source that media may not go to is not
 * learned. */
#include "media/again.h"
#include "media_rig.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

static void watch(struct rig *r, uint32_t stream)
{
	const struct media_cmd cmd = {.type = MEDIA_STREAM_WATCH, .id = stream};

	assert_int_equal(media_command(r->m, &cmd), 0);
}

/* A's terminal sends a packet. Returns whether it leaves. */
static bool sends(struct rig *r, uint64_t index)
{
	rig_send(r, 7, index, A_TX);
	rig_run(r);
	return r->outs == 1;
}

static void only_a_watched_stream_looks_for_packets_that_come_again(void **state)
{
	struct rig *r = rig_new(SUITE_PLAIN, SUITE_PLAIN, 0);

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_true(sends(r, 100));
	assert_true(r->m->stream[A].fast);
	watch(r, A);
	assert_false(r->m->stream[A].fast);
	assert_true(sends(r, 100)); /* the first packet under the watch */
	for (int i = 0; i < 3; i++)
		assert_false(sends(r, 100));
	assert_int_equal(rig_dropped(r, A, PACKET_DROP_AGAIN), 3);
	for (uint64_t i = 101; i < 200; i++)
		assert_true(sends(r, i));
	for (uint64_t i = 100; i < 200; i++)
		assert_false(sends(r, i));
	assert_int_equal(rig_dropped(r, A, PACKET_DROP_AGAIN), 103);
	rig_free(r);
}

static void a_watch_ends_after_so_many_packets_without_one(void **state)
{
	struct rig *r = rig_new(SUITE_PLAIN, SUITE_PLAIN, 0);
	uint64_t index = 100;

	(void)state;
	watch(r, A);
	for (uint32_t i = 0; i < AGAIN_PACKETS - 1; i++)
		assert_true(sends(r, index++));
	assert_true(r->m->stream[A].watched);
	assert_false(sends(r, index - 1)); /* one more round, then */
	for (uint32_t i = 0; i < AGAIN_PACKETS; i++) {
		assert_true(r->m->stream[A].watched);
		assert_true(sends(r, index++));
	}
	assert_false(r->m->stream[A].watched);
	assert_true(r->m->stream[A].fast);
	assert_true(sends(r, index - 1));
	/* The watch also ends after some time. */
	watch(r, A);
	assert_true(sends(r, index++));
	rig_send(r, 7, index++, A_TX);
	r->in[0].t_ns += AGAIN_NS + 1;
	rig_run(r);
	assert_false(r->m->stream[A].watched);
	/* Signalling in between does not end it. */
	watch(r, A);
	rig_stream(r, rig_stream_cmd(A, PORT_A, 0, B, B_RTCP, "192.0.2.1:4000"));
	assert_false(r->m->stream[A].fast);
	rig_free(r);
}

/* Empty reports of a terminal are all alike. */
static void a_few_equal_reports_are_no_circle(void **state)
{
	struct rig *r = rig_new(SUITE_PLAIN, SUITE_PLAIN, 0);

	(void)state;
	watch(r, A);
	for (uint32_t i = 0; i <= AGAIN_REPORTS + 3; i++) {
		rig_send_rtcp(r, 7, 1);
		rig_run(r);
		assert_int_equal(r->outs, i <= AGAIN_REPORTS);
	}
	assert_int_equal(rig_dropped(r, A, PACKET_DROP_AGAIN), 3);
	rig_free(r);
}

static void what_authenticates_needs_no_watch(void **state)
{
	struct rig *r = rig_new(SUITE_AES_CM_128_80, SUITE_PLAIN, 0);

	(void)state;
	watch(r, A);
	assert_true(sends(r, 100));
	assert_false(sends(r, 100));
	assert_int_equal(rig_dropped(r, A, PACKET_DROP_REPLAY), 1);
	rig_free(r);
}

static void a_cut_stream_has_no_destination_until_it_is_signalled(void **state)
{
	struct rig *r = rig_new(SUITE_PLAIN, SUITE_PLAIN, 0);
	struct media_cmd cut = {.type = MEDIA_STREAM_CUT, .id = B};

	(void)state;
	assert_true(sends(r, 100));
	assert_int_equal(media_command(r->m, &cut), 0);
	assert_false(sends(r, 101));
	assert_int_equal(rig_dropped(r, A, PACKET_DROP_NO_DESTINATION), 1);
	rig_stream(r, rig_stream_cmd(B, PORT_B, 1, A, MEDIA_NONE, "192.0.2.2:5000"));
	assert_true(sends(r, 102));
	cut.id = 5;
	assert_int_equal(media_command(r->m, &cut), -EINVAL);
	cut.id = 6;
	assert_int_equal(media_command(r->m, &cut), -EINVAL);
	rig_free(r);
}

struct asked {
	uint32_t n;
	bool answer;
};

static bool may_learn(void *arg, const struct endpoint *signalled, const struct endpoint *src)
{
	struct asked *a = arg;

	(void)src;
	assert_int_equal(signalled->port, 4000);
	a->n++;
	return a->answer;
}

static void only_a_new_source_is_asked_about(void **state)
{
	struct rig *r = rig_new(SUITE_AES_CM_128_80, SUITE_PLAIN, 0);
	struct asked asked = {.answer = false};
	struct endpoint remote;

	(void)state;
	r->m->cfg.may_learn = may_learn;
	r->m->cfg.may_learn_arg = &asked;
	rig_send(r, 7, 100, A_TX);
	r->in[0].src.addr[3] = 99;
	rig_run(r);
	assert_int_equal(asked.n, 1);
	media_stream_remote(r->m, A, &remote);
	assert_int_equal(remote.addr[3], 1); /* as signalled */
	assert_false(r->m->stream[A].learn.confirmed);
	asked.answer = true;
	rig_send(r, 7, 101, A_TX);
	r->in[0].src.addr[3] = 99;
	rig_run(r);
	assert_int_equal(asked.n, 2);
	media_stream_remote(r->m, A, &remote);
	assert_int_equal(remote.addr[3], 99);
	for (uint64_t i = 102; i < 110; i++) {
		rig_send(r, 7, i, A_TX);
		r->in[0].src.addr[3] = 99;
		rig_run(r);
	}
	assert_int_equal(asked.n, 2);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_a_watched_stream_looks_for_packets_that_come_again),
		cmocka_unit_test(a_watch_ends_after_so_many_packets_without_one),
		cmocka_unit_test(a_few_equal_reports_are_no_circle),
		cmocka_unit_test(what_authenticates_needs_no_watch),
		cmocka_unit_test(a_cut_stream_has_no_destination_until_it_is_signalled),
		cmocka_unit_test(only_a_new_source_is_asked_about),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
