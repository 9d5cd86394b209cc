/* SPDX-License-Identifier: GPL-2.0-or-later */
/* More SSRCs than a stream has places for (media_ssrc_turn()). A flood of SSRCs must not keep the
 * terminal's next one out. Whatever changes places, no index is sent twice under a key. */
#include "media_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "media/ssrc.h"
#include "srtp/ref.h"

#define CM80 SUITE_AES_CM_128_80

enum { ALL = MEDIA_SSRCS + MEDIA_PAST };

/* A plain terminal whose source is confirmed but may be forged; other sources are refused. */
static struct rig *plain_side(uint32_t bursts)
{
	struct rig *r = rig_new_bursts(SUITE_PLAIN, CM80, bursts);
	struct media_cmd c = rig_stream_cmd(A, PORT_A, 0, B, B_RTCP, "192.0.2.1:4000");

	c.stream.strict_source = false;
	assert_int_equal(media_command(r->m, &c), 0);
	return r;
}

static enum packet_verdict one(struct rig *r, uint32_t ssrc, uint64_t index, uint64_t at_ns)
{
	rig_send(r, ssrc, index, A_TX);
	r->in[0].t_ns = at_ns;
	rig_run(r);
	return (enum packet_verdict)r->in[0].verdict;
}

static enum packet_verdict from_elsewhere(struct rig *r, uint32_t ssrc, uint64_t index)
{
	rig_send(r, ssrc, index, A_TX);
	r->in[0].src.port++;
	rig_run(r);
	return (enum packet_verdict)r->in[0].verdict;
}

static void only_the_terminal_takes_places_that_are_taken(void **state)
{
	struct rig *r = plain_side(1);

	(void)state;
	assert_int_equal(one(r, 7, 10, 1000), PACKET_SENT);
	for (uint32_t ssrc = 100; ssrc < 100 + MEDIA_SSRCS - 1; ssrc++)
		assert_int_equal(from_elsewhere(r, ssrc, 10), PACKET_SENT);
	assert_int_equal(from_elsewhere(r, 999, 10), PACKET_DROP_SSRC_LIMIT);
	/* A forger takes all places. The terminal's next SSRC still finds one, and its earlier
	 * SSRCs continue. */
	assert_int_equal(one(r, 8, 10, 1000), PACKET_SENT);
	assert_int_equal(one(r, 7, 11, 1000), PACKET_SENT);
	rig_got(r, 0, 7, 11, 11);
	rig_free(r);
}

/* The source of authentic packets does not matter. */
static void authentic_packets_take_places(void **state)
{
	struct rig *r = rig_new(CM80, CM80, 0);
	struct media_cmd c = rig_stream_cmd(A, PORT_A, 0, B, B_RTCP, "192.0.2.1:4000");

	(void)state;
	c.stream.strict_source = false;
	assert_int_equal(media_command(r->m, &c), 0);
	for (uint32_t ssrc = 100; ssrc < 100 + MEDIA_SSRCS + MEDIA_TURNS; ssrc++)
		assert_int_equal(from_elsewhere(r, ssrc, 10), PACKET_SENT);
	assert_int_equal(from_elsewhere(r, 999, 10), PACKET_DROP_SSRC_LIMIT);
	rig_free(r);
}

static void who_comes_back_goes_on_behind_what_was_sent(void **state)
{
	struct rig *r = plain_side(1);

	(void)state;
	assert_int_equal(one(r, 7, 65500, 1000), PACKET_SENT);
	assert_int_equal(one(r, 7, 65537, 1000), PACKET_SENT); /* its roll-over counter is 1 */
	for (uint32_t ssrc = 100; ssrc < 100 + MEDIA_SSRCS; ssrc++)
		assert_int_equal(one(r, ssrc, 10, 1000), PACKET_SENT);
	assert_null(media_ssrc_find(&r->m->ctx[1], TX_RTP, 7));
	for (uint64_t old = 65534; old <= 65537; old++)
		assert_int_equal(one(r, 7, old, 1000), PACKET_DROP_NONCE);
	assert_int_equal(one(r, 7, 65538, 1000), PACKET_SENT);
	rig_got(r, 0, 7, 65538, 65538);
	/* Its place is back, with a replay window. */
	assert_int_equal(one(r, 7, 65540, 1000), PACKET_SENT);
	assert_int_equal(one(r, 7, 65539, 1000), PACKET_SENT);
	rig_got(r, 0, 7, 65539, 65539);
	/* The newest place never goes: 115 was newest, so 100 made room for 7. */
	assert_non_null(media_ssrc_find(&r->m->ctx[1], TX_RTP, 115));
	assert_int_equal(one(r, 100, 10, 1000), PACKET_DROP_NONCE);
	assert_int_equal(one(r, 100, 11, 1000), PACKET_SENT);
	rig_free(r);
}

static void places_change_hands_slowly(void **state)
{
	const uint64_t start = 5000000000, later = start + MEDIA_TURN_NS;
	struct rig *r = plain_side(1);
	uint32_t ssrc = 100;

	(void)state;
	for (; ssrc < 100 + MEDIA_SSRCS + MEDIA_TURNS; ssrc++)
		assert_int_equal(one(r, ssrc, 10, start), PACKET_SENT);
	assert_int_equal(one(r, ssrc, 10, start), PACKET_DROP_SSRC_LIMIT);
	assert_int_equal(one(r, ssrc, 10, later - 1), PACKET_DROP_SSRC_LIMIT);
	assert_int_equal(one(r, ssrc, 10, 1), PACKET_DROP_SSRC_LIMIT); /* the clock was set */
	assert_int_equal(one(r, ssrc++, 10, later), PACKET_SENT);
	assert_int_equal(one(r, ssrc, 10, later), PACKET_DROP_SSRC_LIMIT);
	/* SSRCs with a place are still relayed, in any order. */
	for (uint32_t i = 0; i < 200; i++)
		assert_int_equal(one(r, 100 + i * 7 % 25, 11 + i, later), PACKET_SENT);
	/* A long silence earns at most this many changes. */
	for (uint32_t i = 0; i < MEDIA_TURNS; i++)
		assert_int_equal(one(r, ssrc++, 10, 1ull << 62), PACKET_SENT);
	assert_int_equal(one(r, ssrc, 10, 1ull << 62), PACKET_DROP_SSRC_LIMIT);
	rig_free(r);
}

/* Fills the places: SSRC 100 and so on, each with index 10. */
static uint64_t fill(struct rig *r)
{
	uint64_t now = 1000;

	for (uint32_t ssrc = 100; ssrc < 100 + ALL; ssrc++) {
		now += MEDIA_TURN_NS;
		assert_int_equal(one(r, ssrc, 10, now), PACKET_SENT);
	}
	return now + MEDIA_TURN_NS;
}

static void when_the_past_is_full_newcomers_wait_for_a_new_key(void **state)
{
	struct rig *r = plain_side(1);
	uint64_t now = fill(r);

	(void)state;
	assert_int_equal(one(r, 999, 10, now), PACKET_DROP_SSRC_LIMIT);
	for (uint32_t i = 0; i < 3 * ALL; i++)
		assert_int_equal(one(r, 100 + i * 5 % ALL, 11 + i / ALL, now), PACKET_SENT);
	rig_key(r, A_TX2, CM80);
	rig_ctx(r, 1, (struct rig_keys){B_TX, A_TX2, CM80, false, true});
	assert_int_equal(r->m->past[1][TX_RTP].n, 0);
	assert_int_equal(one(r, 999, 10, now), PACKET_SENT);
	rig_free(r);
}

static void marks_know_who_gave_its_place_up(void **state)
{
	struct media_mark mark[MEDIA_MARKS_MAX];
	struct media_cmd c = {.type = MEDIA_CTX_RESUME, .id = 1};
	struct rig *r = plain_side(1);
	uint64_t now = fill(r), next;
	uint32_t n = media_marks(r->m, 1, mark, &next);

	(void)state;
	assert_int_equal(n, ALL);
	rig_free(r);
	r = plain_side(1);
	for (int twice = 0; twice < 2; twice++)
		for (uint32_t i = 0; i < n; i++) {
			c.ctx_resume.mark[c.ctx_resume.n++] = mark[i];
			if (c.ctx_resume.n < MEDIA_RESUMES && i < n - 1)
				continue;
			assert_int_equal(media_command(r->m, &c), 0);
			c.ctx_resume.n = 0;
		}
	assert_int_equal(media_marks(r->m, 1, mark, &next), ALL);
	for (uint32_t ssrc = 100; ssrc < 100 + ALL; ssrc++) {
		assert_int_equal(one(r, ssrc, 10, now), PACKET_DROP_NONCE);
		assert_int_equal(one(r, ssrc, 11, now), PACKET_SENT);
	}
	assert_int_equal(one(r, 999, 10, now), PACKET_DROP_SSRC_LIMIT);
	rig_free(r);
}

/* --- At random -------------------------------------------------------------------------------- */

enum { SSRCS = 90, SPAN = 2048 };

static uint8_t sent[SSRCS][SPAN];

/* Several bursts in flight, all SSRCs mixed, late, repeated and from other addresses: nothing is
 * sent twice. */
static void no_index_is_sent_twice_however_places_change(void **state)
{
	const uint32_t bursts = 4;
	struct rig *r = plain_side(bursts);
	uint32_t seed = 1, kept[4] = {0}, total = 0;
	static struct packet_in in[4][SLOTS];
	static struct xc_job job[4][SLOTS];
	uint32_t n[4], top[SSRCS] = {0};

	(void)state;
	memset(sent, 0, sizeof(sent));
	for (uint64_t round = 0; round < 1500 + bursts; round++) {
		uint32_t lane = (uint32_t)(round % bursts);

		if (round >= bursts) { /* the oldest one completes */
			uint32_t outs;

			for (uint32_t i = 0; i < kept[lane]; i++)
				r->a.status[i] =
					srtp_ref_job(&job[lane][i], r->a.key, r->a.in, r->a.out);
			outs = media_complete(r->m, &r->a, in[lane],
				&(struct batch){
					.job = job[lane], .status = r->a.status, .n = kept[lane]},
				r->out);
			for (uint32_t i = 0, k = 0; i < outs; i++, k++) {
				uint8_t *s;

				while (job[lane][k].out_off != r->out[i].out_off)
					k++;
				assert_true(job[lane][k].tx_index < SPAN);
				s = &sent[job[lane][k].ssrc][job[lane][k].tx_index];
				assert_int_equal(*s, 0);
				*s = 1;
				total++;
			}
		}
		if (round >= 1500)
			continue;
		r->n = 0;
		r->first = media_first_slot(r->m);
		for (uint32_t i = 0; i < SLOTS / bursts; i++) {
			uint32_t ssrc;

			seed = seed * 1103515245 + 12345;
			ssrc = (seed >> 16) % SSRCS;
			ssrc = seed >> 31 ? ssrc % 20 : ssrc;
			top[ssrc] += (seed >> 24) % 3;
			rig_send(r, ssrc, top[ssrc] - min_u32(top[ssrc], (seed >> 28) % 5), A_TX);
			r->in[r->n - 1].t_ns = round * MEDIA_TURN_NS / 16;
			r->in[r->n - 1].src.port += (seed >> 27) % 8 == 0;
		}
		memcpy(in[lane], r->in, sizeof(r->in));
		n[lane] = r->n;
		kept[lane] = media_prepare(r->m, &r->a, in[lane], n[lane], job[lane]);
	}
	assert_true(total > 1000);
	assert_int_equal(r->m->past[1][TX_RTP].n, MEDIA_PAST);
	r->n = 0;
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_the_terminal_takes_places_that_are_taken),
		cmocka_unit_test(authentic_packets_take_places),
		cmocka_unit_test(who_comes_back_goes_on_behind_what_was_sent),
		cmocka_unit_test(places_change_hands_slowly),
		cmocka_unit_test(when_the_past_is_full_newcomers_wait_for_a_new_key),
		cmocka_unit_test(marks_know_who_gave_its_place_up),
		cmocka_unit_test(no_index_is_sent_twice_however_places_change),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
