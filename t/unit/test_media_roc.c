/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A terminal may be further ahead than an index estimate reaches. Its authentic packets then find
 * the roll-over counter again (media/roc.c). */
#include "media_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/clock.h"
#include "media/roc.h"

#define CM80 SUITE_AES_CM_128_80
#define GCM  SUITE_AEAD_AES_128_GCM
/* The other side is plain: an SRTP receiver would have lost the counter, too. */
#define OTHER SUITE_PLAIN

enum { SSRC = 7 };

static uint8_t one(struct rig *r, uint64_t index)
{
	rig_send(r, SSRC, index, A_TX);
	rig_run(r);
	return r->in[0].verdict;
}

/* A later life that only knows that index was received. */
static struct rig *resumed(enum srtp_suite_id suite, uint64_t index)
{
	struct rig *r = rig_new(suite, OTHER, 0);
	struct media_cmd cmd = {.type = MEDIA_CTX_RESUME,
		.ctx_resume = {.n = 1, .mark = {{.ssrc = SSRC, .index = index}}}};

	assert_int_equal(media_command(r->m, &cmd), 0);
	return r;
}

static void a_record_of_any_age_is_caught_up_with(void **state)
{
	static const enum srtp_suite_id suite[] = {CM80, GCM};
	static const uint64_t from[] = {5, 0x8000, 0xfff0, 0x1000a, 0x3c200, 0x5ffff};
	static const uint64_t ahead[] = {1, 100, 0x7fff, 0x8001, 45000, 0xffff, 0x10000, 0x10001,
		270000, (MEDIA_ROC_TRIES - 1) * 0x10000 + 77};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(suite) * ARRAY_LEN(from) * ARRAY_LEN(ahead); i++) {
		uint64_t at = from[i / 2 % ARRAY_LEN(from)];
		uint64_t next = at + ahead[i / 2 / ARRAY_LEN(from)];
		struct rig *r = resumed(suite[i % 2], at);

		/* No index up to the record is new. */
		assert_int_equal(one(r, at), PACKET_DROP_REPLAY);
		/* Sequence numbers in the window look like repetitions. */
		for (uint32_t k = 0; k < SRTP_REPLAY_WINDOW; k++)
			if (one(r, next) == PACKET_DROP_REPLAY && (next - at + 128) % 65536 < 129)
				next++;
		next++;
		for (uint32_t k = 0; k < 3; k++)
			if (one(r, next + k) != PACKET_SENT)
				fail_msg("%llu after %llu, packet %u: verdict %u",
					(unsigned long long)next - at, (unsigned long long)at,
					(unsigned)k, r->in[0].verdict);
		assert_int_equal(one(r, next), PACKET_DROP_REPLAY);
		assert_int_not_equal(one(r, at), PACKET_SENT);
		rig_free(r);
	}
}

/* All packets of a burst are estimated before the first one is completed. */
static void jumps_within_one_burst_lose_nothing_for_good(void **state)
{
	uint64_t index = 0x10064;
	struct rig *r = resumed(CM80, index - 1);

	(void)state;
	for (; index < 0x10080; index++)
		(void)one(r, index);
	for (uint32_t k = 0; k < 6; k++)
		rig_send(r, SSRC, index += 30000, A_TX);
	rig_run(r);
	for (uint32_t k = 0; k < 6; k++)
		assert_int_equal(r->in[k].verdict, k ? r->in[k].verdict : PACKET_SENT);
	/* RTP is received again, whether or not those packets were. */
	assert_int_equal(one(r, index + 1), PACKET_SENT);
	assert_int_equal(one(r, index + 2), PACKET_SENT);
	rig_free(r);
}

static void a_forgery_moves_nothing(void **state)
{
	static uint8_t old[256];
	struct rig *r = resumed(CM80, 0x2bfff);
	uint64_t index = 0x2c000;
	uint32_t len = 0;
	uint8_t *p;

	(void)state;
	for (; index < 0x2c400; index++) {
		(void)one(r, index);
		if (index == 0x2c100)
			memcpy(old, r->a.in + r->in[0].in_off, len = r->in[0].len);
	}
	for (uint64_t k = 0; k < 2000; k++) {
		/* Sequence numbers ahead, old ones, and a packet from before. */
		p = rig_send(r, SSRC, index + k * 33, A_TX);
		p[40] ^= 1;
		rig_run(r);
		assert_int_not_equal(r->in[0].verdict, PACKET_SENT);
		p = rig_send(r, SSRC, index, A_TX);
		memcpy(p, old, len);
		rig_run(r);
		assert_int_equal(r->in[0].verdict, PACKET_DROP_REPLAY);
		assert_int_equal(one(r, index++), PACKET_SENT);
	}
	/* Trials run out and are available again after a second. */
	assert_int_equal(r->m->trial[A].roc.tokens, 0);
	assert_int_not_equal(one(r, index + 0x18000), PACKET_SENT);
	rig_send(r, SSRC, index + 0x18000, A_TX);
	r->in[0].t_ns = 2000000000;
	rig_run(r);
	assert_int_equal(r->in[0].verdict, PACKET_SENT);
	rig_free(r);
}

static void strangers_cause_no_trials(void **state)
{
	struct rig *r = resumed(CM80, 0x1c000);

	(void)state;
	for (uint32_t k = 0; k < 100; k++) {
		rig_send(r, SSRC, 0x3c200 + k, A_TX)[50] ^= 1;
		assert_int_equal(endpoint_parse(&r->in[0].src, STR("192.0.2.99:99")), 0);
		rig_run(r);
		assert_int_not_equal(r->in[0].verdict, PACKET_SENT);
	}
	assert_int_equal(r->m->roc_second, 0);
	assert_int_equal(one(r, 0x3c200), PACKET_SENT);
	rig_free(r);
}

/* Junk from the terminal's own address. */
static void use_up(struct rig *r, uint64_t index)
{
	for (uint32_t k = 0; k < 400; k++) {
		rig_send(r, SSRC, index + k, A_TX)[50] ^= 1;
		rig_run(r);
		assert_int_not_equal(r->in[0].verdict, PACKET_SENT);
	}
}

static void junk_of_one_stream_leaves_others_their_tests(void **state)
{
	struct rig *r = resumed(CM80, 0x1c000);

	(void)state;
	use_up(r, 0x3c200);
	assert_int_not_equal(one(r, 0x3c200), PACKET_SENT);
	/* Takes a trial, as another stream of this worker would. */
	r->m->trial[A] = (struct media_trial){0};
	assert_int_equal(one(r, 0x3c200), PACKET_SENT);
	rig_free(r);
}

#define JUNK 512u

/* Many streams of this worker send junk all the time. A further stream is behind by 9 roll-overs.
 * It still finds its counter within as many packets as without the junk. */
static void junk_of_many_streams_leaves_others_their_tests(void **state)
{
	struct rig *r = resumed(CM80, 0x1c000);
	struct media_trial *junk = calloc(JUNK, sizeof(*junk)), own = {0};
	uint64_t index = 0x1c000 + 9 * 0x10000 + 200, now;
	uint32_t k;

	(void)state;
	assert_non_null(junk);
	for (k = 0; k < 32; k++) {
		now = (5 + k) * NS_PER_SEC;
		for (uint32_t i = 0; i < JUNK * 2; i++) {
			r->m->trial[A] = junk[i % JUNK];
			rig_send(r, SSRC, index + k, A_TX)[50] ^= 1;
			r->in[0].t_ns = now + i * (NS_PER_SEC / (JUNK * 2));
			rig_run(r);
			junk[i % JUNK] = r->m->trial[A];
		}
		r->m->trial[A] = own;
		rig_send(r, SSRC, index + k, A_TX);
		r->in[0].t_ns = now + (JUNK * 2 - 1) * (NS_PER_SEC / (JUNK * 2));
		rig_run(r);
		own = r->m->trial[A];
		if (r->in[0].verdict == PACKET_SENT)
			break;
	}
	assert_true(k <= MEDIA_ROC_TRIES);
	free(junk);
	rig_free(r);
}

/* Time stamps of several sockets may go back, and the clock may be set. Two streams take turns. */
static void stamps_that_go_back_are_counted(void **state)
{
	static const uint32_t seconds[][6] = {
		{5, 6, 5, 6, 5, 6}, {5, 9, 5, 9, 5, 5}, {90000, 5, 90000, 5, 5, 90001}};

	(void)state;
	for (size_t row = 0; row < ARRAY_LEN(seconds); row++) {
		struct rig *r = resumed(CM80, 0x1c000);
		struct media_trial stream[2];

		memset(stream, 0, sizeof(stream));
		for (uint32_t i = 0; i < 6; i++) {
			r->m->trial[A] = stream[i % 2];
			rig_send(r, SSRC, 0x3c200 + i, A_TX)[50] ^= 1;
			r->in[0].t_ns = seconds[row][i] * NS_PER_SEC;
			rig_run(r);
			assert_int_not_equal(r->in[0].verdict, PACKET_SENT);
			stream[i % 2] = r->m->trial[A];
		}
		/* An authentic packet still finds its counter. */
		r->m->trial[A] = (struct media_trial){0};
		rig_send(r, SSRC, 0x3c300, A_TX);
		r->in[0].t_ns = 90010 * NS_PER_SEC;
		rig_run(r);
		assert_int_equal(r->in[0].verdict, PACKET_SENT);
		rig_free(r);
	}
}

/* One test per packet reaches every counter. */
static void a_search_goes_on_with_the_next_counter(void **state)
{
	struct rig *r = resumed(CM80, 0x1c000);
	uint64_t index = 0x1c000 + 9 * 0x10000 + 200, now = 1000;
	uint32_t k = 0;

	(void)state;
	use_up(r, 0x3c200);
	do {
		now += 1000000000 / 16;
		rig_send(r, SSRC, index + k, A_TX);
		r->in[0].t_ns = now;
		rig_run(r);
	} while (r->in[0].verdict != PACKET_SENT && ++k < 2 * MEDIA_ROC_TRIES);
	assert_int_equal(r->in[0].verdict, PACKET_SENT);
	assert_true(k > 0 && k <= MEDIA_ROC_TRIES);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_record_of_any_age_is_caught_up_with),
		cmocka_unit_test(jumps_within_one_burst_lose_nothing_for_good),
		cmocka_unit_test(a_forgery_moves_nothing),
		cmocka_unit_test(strangers_cause_no_trials),
		cmocka_unit_test(junk_of_one_stream_leaves_others_their_tests),
		cmocka_unit_test(junk_of_many_streams_leaves_others_their_tests),
		cmocka_unit_test(stamps_that_go_back_are_counted),
		cmocka_unit_test(a_search_goes_on_with_the_next_counter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
