/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The 48-bit index (RFC 3711 3.3.1). It begins where signalling says, is found within the first
 * burst, and continues while nothing may leave. Without authentication (UNAUTHENTICATED_SRTP)
 * forgeries do not move it. Also the replay window's size. */
#include "media/ssrc.h"
#include "media_rig.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#define CM80 SUITE_AES_CM_128_80

static struct media_cmd ctx_cmd(const struct rig *r, bool a)
{
	return (struct media_cmd){.type = MEDIA_CTX_SET,
		.id = !a,
		.ctx = {.rx = rig_crypto(r, a ? A_TX : B_TX, a ? r->suite_a : r->suite_b),
			.tx = rig_crypto(r, a ? A_RX : B_RX, a ? r->suite_a : r->suite_b),
			.rx_new = true,
			.tx_new = true}};
}

/* --- Initial index ---------------------------------------------------------------------------- */

static void a_late_join_begins_with_the_roc_of_signalling(void **state)
{
	struct rig *r = rig_new(CM80, CM80, 0);
	struct media_cmd a = ctx_cmd(r, true), b = ctx_cmd(r, false);

	(void)state;
	a.ctx.rx_roc = 9;
	a.ctx.rx_start[0] =
		(struct media_start){.ssrc = 8, .index = 5ull << 16 | 77, .roc_only = true};
	a.ctx.rx_start[1] = (struct media_start){.ssrc = 9, .index = 3ull << 16 | 65530};
	a.ctx.rx_starts = 2;
	b.ctx.tx_roc = 2;
	b.ctx.tx_start[0] = (struct media_start){.ssrc = 9, .index = 1ull << 16 | 65530};
	b.ctx.tx_starts = 1;
	b.ctx.tx_rtcp_index = 500;
	assert_int_equal(media_command(r->m, &a), 0);
	assert_int_equal(media_command(r->m, &b), 0);
	rig_send(r, 7, 9ull << 16 | 60000, A_TX);
	rig_send(r, 8, 5ull << 16 | 3, A_TX);
	rig_send(r, 9, 4ull << 16 | 1, A_TX); /* estimated by the index, not only the ROC */
	rig_send(r, 9, 3ull << 16 | 65530, A_TX);
	rig_send(r, 9, 3ull << 16 | 65529, A_TX); /* may have been received earlier */
	rig_send(r, 7, 60001, A_TX);              /* another ROC does not authenticate */
	rig_send_rtcp(r, 7, 1);
	rig_run(r);
	assert_int_equal(r->outs, 4);
	rig_got(r, 0, 7, 9ull << 16 | 60000, 2ull << 16 | 60000);
	rig_got(r, 1, 8, 5ull << 16 | 3, 2ull << 16 | 3);
	rig_got(r, 2, 9, 4ull << 16 | 1, 2ull << 16 | 1);
	assert_int_equal(be32(r->a.out + r->out[3].out_off + 28), 0x80000000u | 500);
	assert_int_equal(r->in[3].verdict, PACKET_DROP_REPLAY);
	assert_int_equal(r->in[4].verdict, PACKET_DROP_REPLAY);
	assert_int_equal(r->in[5].verdict, PACKET_DROP_BAD_TAG);
	/* Start values are ignored once indexes are in force. */
	a.ctx.rx_new = a.ctx.tx_new = b.ctx.rx_new = b.ctx.tx_new = false;
	a.ctx.rx_roc = b.ctx.tx_roc = 100;
	a.ctx.rx_starts = b.ctx.tx_starts = 0;
	assert_int_equal(media_command(r->m, &a), 0);
	assert_int_equal(media_command(r->m, &b), 0);
	rig_send(r, 7, 9ull << 16 | 60001, A_TX);
	rig_send(r, 10, 9ull << 16 | 60001, A_TX);
	rig_run(r);
	rig_got(r, 0, 7, 9ull << 16 | 60001, 2ull << 16 | 60001);
	rig_got(r, 1, 10, 9ull << 16 | 60001, 2ull << 16 | 60001);
	rig_free(r);
}

/* --- After a restart -------------------------------------------------------------------------- */

static const struct media_mark *mark_of(
	const struct media_mark *m, uint32_t n, enum media_table table, uint32_t ssrc)
{
	for (uint32_t i = 0; i < n; i++)
		if (m[i].table == table && m[i].ssrc == ssrc)
			return &m[i];
	return NULL;
}

/* One worker's reported indexes let another continue after them: nothing is sent twice, and no step
 * is lost, also over a wrap. */
static void marks_of_one_life_are_resumed_in_the_next(void **state)
{
	struct media_mark mark[2][MEDIA_MARKS_MAX];
	uint32_t n[2];
	uint64_t next[2];
	struct rig *r = rig_new(CM80, CM80, 0);
	struct endpoint learned;

	(void)state;
	for (uint32_t i = 0; i < 3; i++)
		rig_send(r, 7, 65533 + i, A_TX);
	rig_send_rtcp(r, 7, 40);
	rig_run(r);
	assert_int_equal(r->outs, 4);
	for (int i = 0; i < 2; i++)
		n[i] = media_marks(r->m, (uint32_t)i, mark[i], &next[i]);
	assert_int_equal(n[0], 2);
	assert_int_equal(mark_of(mark[0], n[0], MEDIA_RX_RTP, 7)->index, 65535);
	assert_int_equal(mark_of(mark[0], n[0], MEDIA_RX_RTCP, 7)->index, 40);
	assert_int_equal(mark_of(mark[1], n[1], MEDIA_TX_RTP, 7)->index, 65535);
	assert_int_equal(next[1], 1);
	media_stream_remote(r->m, A, &learned);
	rig_free(r);
	r = rig_new(CM80, CM80, 0);
	for (uint32_t i = 0; i < 2; i++) {
		struct media_cmd c = {.type = MEDIA_CTX_RESUME, .id = i, .ctx_resume.n = n[i]};

		memcpy(c.ctx_resume.mark, mark[i], n[i] * sizeof(mark[i][0]));
		assert_int_equal(media_command(r->m, &c), 0);
		c.ctx_resume.mark[0].index = 5; /* never lowered */
		assert_int_equal(media_command(r->m, &c), 0);
		c.ctx_resume.mark[0].table = MEDIA_TABLES;
		assert_int_equal(media_command(r->m, &c), -EINVAL);
		c.ctx_resume.n = MEDIA_RESUMES + 1;
		assert_int_equal(media_command(r->m, &c), -EINVAL);
	}
	assert_int_equal(media_command(r->m,
				 &(struct media_cmd){.type = MEDIA_STREAM_RESUME,
					 .id = A,
					 .stream_resume = {learned, true}}),
		0);
	assert_int_equal(
		media_command(r->m, &(struct media_cmd){.type = MEDIA_STREAM_RESUME, .id = 999}),
		-EINVAL);
	assert_int_equal(
		media_command(r->m,
			&(struct media_cmd){
				.type = MEDIA_KEY_RESUME, .id = A_TX, .key_resume = {1000, 20}}),
		0);
	rig_send(r, 7, 65535, A_TX); /* again */
	rig_send_rtcp(r, 7, 40);     /* again */
	rig_send(r, 7, 65537, A_TX); /* after the wrap */
	rig_run(r);
	assert_int_equal(r->in[0].verdict, PACKET_DROP_REPLAY);
	assert_int_equal(r->in[1].verdict, PACKET_DROP_REPLAY);
	assert_int_equal(r->outs, 1);
	rig_got(r, 0, 7, 65537, 65537);
	struct media_key_usage u;

	media_key_usage(r->m, A_TX, &u);
	assert_int_equal(u.rtp, 1001);
	assert_int_equal(u.rtcp, 20);
	assert_int_equal(media_stream_counters(r->m, A)->confirmed, 1);
	rig_free(r);
}

static void unsound_starts_are_refused(void **state)
{
	struct rig *r = rig_new(CM80, CM80, 0);
	struct media_cmd cmd = ctx_cmd(r, true);

	(void)state;
	cmd.ctx.rx_starts = MEDIA_STARTS + 1;
	assert_int_equal(media_command(r->m, &cmd), -EINVAL);
	cmd = ctx_cmd(r, true);
	cmd.ctx.tx_start[0].index = SRTP_INDEX_MAX + 1;
	assert_int_equal(media_command(r->m, &cmd), -EINVAL);
	cmd = ctx_cmd(r, true);
	cmd.ctx.tx_rtcp_index = (uint32_t)SRTCP_INDEX_MAX + 1;
	assert_int_equal(media_command(r->m, &cmd), -EINVAL);
	rig_free(r);
}

/* --- The first burst -------------------------------------------------------------------------- */

static void a_first_burst_over_the_wrap_loses_nothing(void **state)
{
	static const uint64_t orders[][8] = {
		{65533, 65534, 65535, 65536, 65537, 65538, 65539, 65540},
		{65535, 65536, 65534, 65538, 65537, 65533, 65540, 65539}, /* reordered */
		{65520, 65537, 65521, 65538, 65539, 65535, 65536, 65540}, /* and lost */
	};

	(void)state;
	for (size_t t = 0; t < ARRAY_LEN(orders); t++)
		for (int plain = 0; plain < 2; plain++) {
			/* From a plain side only the sent index is found this way. */
			struct rig *r = rig_new(plain ? SUITE_PLAIN : CM80, CM80, 0);

			for (int i = 0; i < 8; i++) {
				rig_send(r, 7, orders[t][i], A_TX);
				rig_send(r, 8, orders[t][i] - 30000, A_TX);
			}
			rig_run(r);
			assert_int_equal(r->outs, 16);
			for (uint32_t i = 0; i < 8; i++)
				rig_got(r, 2 * i, 7, orders[t][i], orders[t][i]);
			rig_free(r);
		}
}

/* A burst's estimates are temporary: forged packets at its start must not move them far, and leave
 * no state. */
static void forgeries_in_front_do_not_lead_the_first_burst_astray(void **state)
{
	struct rig *r = rig_new(CM80, CM80, 0);

	(void)state;
	put_be16(rig_send(r, 7, 3000, A_TX) + 2, 65535); /* far: ignored */
	for (uint32_t i = 0; i < 5; i++)
		rig_send(r, 7, 1000 + i, A_TX);
	put_be16(rig_send(r, 8, 3000, A_TX) + 2, 65535); /* near, but from another address */
	r->in[r->n - 1].src.port = 4999;
	r->m->stream[A].cfg.strict_source = false;
	rig_send(r, 8, 2, A_TX);
	rig_run(r);
	assert_int_equal(r->outs, 6);
	/* Forged near the index and from the terminal's own address: this burst is lost, the next
	 * one is relayed. */
	put_be16(rig_send(r, 9, 3000, A_TX) + 2, 65535);
	rig_send(r, 9, 2, A_TX);
	rig_run(r);
	assert_int_equal(r->outs, 0);
	rig_send(r, 9, 3, A_TX);
	rig_run(r);
	assert_int_equal(r->outs, 1);
	rig_free(r);
}

/* --- Hold ------------------------------------------------------------------------------------- */

static void the_index_goes_on_while_nothing_may_leave(void **state)
{
	(void)state;
	for (int what = 0; what < 3; what++) {
		struct rig *r = rig_new(CM80, CM80, 0);
		struct media_cmd hold =
			rig_stream_cmd(A, PORT_A, 0, MEDIA_NONE, MEDIA_NONE, "192.0.2.1:4000");
		struct media_cmd gone = {.type = MEDIA_STREAM_DEL, .id = B};
		uint32_t jobs = 0;

		hold.stream.rtp = hold.stream.rtcp = true;
		rig_send(r, 7, 60000, A_TX);
		rig_run(r);
		assert_int_equal(r->outs, 1);
		if (what == 0)
			assert_int_equal(media_command(r->m, &hold), 0);
		else if (what == 1)
			assert_int_equal(media_command(r->m, &gone), 0);
		else
			r->m->ctx[1].rx.set = r->m->ctx[1].tx.set = false;
		for (uint64_t i = 70000; i <= 270000; i += 20000) {
			rig_send(r, 7, i, A_TX);
			rig_send(r, 7, i, A_TX);
			rig_send(r, 7, i + 9, A_TX)[50] ^= 1; /* forged: moves nothing */
			jobs = rig_prepare(r);
			assert_int_equal(jobs, 3);
			rig_complete(r, jobs);
			assert_int_equal(r->outs, 0);
			assert_int_equal(r->in[0].verdict, PACKET_DROP_INACTIVE);
			assert_int_equal(r->in[1].verdict, PACKET_DROP_REPLAY);
			assert_int_equal(r->in[2].verdict, PACKET_DROP_BAD_TAG);
		}
		r->m->ctx[1].rx.set = r->m->ctx[1].tx.set = true;
		rig_stream(r, rig_stream_cmd(A, PORT_A, 0, B, B_RTCP, "192.0.2.1:4000"));
		rig_stream(r, rig_stream_cmd(B, PORT_B, 1, A, MEDIA_NONE, "192.0.2.2:5000"));
		rig_send(r, 7, 280000, A_TX);
		rig_run(r);
		assert_int_equal(r->outs, 1);
		/* B's index continues from the last packet B received, because its terminal
		 * estimates the same. */
		rig_got(r, 0, 7, 280000, srtp_index_estimate(60000, (uint16_t)280000));
		rig_free(r);
	}
}

static void a_held_plain_side_is_learned_and_costs_no_cipher(void **state)
{
	struct rig *r = rig_new(SUITE_PLAIN, CM80, 0);
	struct media_cmd hold =
		rig_stream_cmd(A, PORT_A, 0, MEDIA_NONE, MEDIA_NONE, "192.0.2.1:4000");

	(void)state;
	hold.stream.rtp = true;
	assert_int_equal(media_command(r->m, &hold), 0);
	rig_send(r, 7, 1, 0);
	assert_int_equal(rig_prepare(r), 1);
	assert_int_equal(r->a.job[0].rx_key, 0);
	assert_int_equal(r->a.job[0].tx_key, 0);
	rig_complete(r, 1);
	assert_int_equal(r->outs, 0);
	assert_int_equal(r->in[0].verdict, PACKET_DROP_INACTIVE);
	assert_true(r->m->stream[A].learn.confirmed);
	rig_free(r);
}

/* --- UNAUTHENTICATED_SRTP --------------------------------------------------------------------- */

/* Both sides without authentication of SRTP; SRTCP keeps its own. */
static struct rig *unauthenticated(enum srtp_suite_id suite)
{
	struct rig *r = rig_new(suite, suite, 0);

	for (uint32_t id = 0; id < 2; id++) {
		struct media_cmd cmd = ctx_cmd(r, id == 0);

		cmd.ctx.rx.no_rtp_auth = cmd.ctx.tx.no_rtp_auth = true;
		assert_int_equal(media_command(r->m, &cmd), 0);
	}
	for (uint32_t slot = A_TX; slot <= B_RX; slot += 2) {
		struct srtp_master m = rig_master(slot, suite);

		m.no_rtp_auth = true;
		assert_int_equal(srtp_key_fill(&r->a.key[slot], &m), 0);
	}
	return r;
}

/* The terminal's packet has no tag: rig_protect() leaves room for one. */
static uint8_t *send_untagged(struct rig *r, uint32_t ssrc, uint64_t index)
{
	uint8_t *p = rig_send(r, ssrc, index, A_TX);

	r->in[r->n - 1].len = 172;
	return p;
}

static void srtp_goes_through_without_tags_and_srtcp_with_them(void **state)
{
	static const enum srtp_suite_id suites[] = {CM80, SUITE_F8_128_80, SUITE_NULL_80};
	uint8_t p[172], want[256];

	(void)state;
	for (size_t s = 0; s < ARRAY_LEN(suites); s++) {
		struct rig *r = unauthenticated(suites[s]);

		send_untagged(r, 7, 65535);
		send_untagged(r, 7, 65536);
		rig_send_rtcp(r, 7, 1);
		rig_send_rtcp(r, 7, 2)[20] ^= 1;
		rig_run(r);
		assert_int_equal(r->outs, 3);
		assert_int_equal(r->in[3].verdict, PACKET_DROP_BAD_TAG);
		rig_plain_rtp(p, 7, 65536);
		rig_protect(r, want, (struct rig_plain){p, 172, 12, B_RX, suites[s], 65536, false});
		assert_int_equal(r->out[1].len, 172);
		assert_memory_equal(r->a.out + r->out[1].out_off, want, 172);
		assert_int_equal(r->out[2].len, 28 + 4 + 10);
		rig_free(r);
	}
}

static void an_unproved_index_far_ahead_moves_nothing(void **state)
{
	struct rig *r = unauthenticated(CM80);
	struct replay *seen = &r->m->ctx[0].rx.first.seen;

	(void)state;
	send_untagged(r, 7, 60000);
	rig_run(r);
	assert_int_equal(seen->last, 60000);
	/* Single forgeries of any kind between packets of the terminal. */
	for (uint64_t i = 1; i <= 300; i++) {
		send_untagged(r, 7, 60000 + i + 3001 + 97 * i % 20000);
		send_untagged(r, 7, 60000 + i);
		rig_run(r);
		assert_int_equal(r->outs, 1);
		assert_int_equal(r->in[0].verdict, PACKET_DROP_UNPROVED);
		assert_int_equal(seen->last, 60000 + i);
	}
	rig_free(r);
}

/* An unproven SSRC takes no place, even where the plain other side would not be asked. */
static void unauthenticated_ssrcs_push_nobody_out(void **state)
{
	struct rig *r = unauthenticated(CM80);
	struct media_cmd plain = {.type = MEDIA_CTX_SET, .id = 1};

	(void)state;
	assert_int_equal(media_command(r->m, &plain), 0);
	send_untagged(r, 7, 60000);
	rig_run(r);
	for (uint32_t ssrc = 100; ssrc < 100 + MEDIA_SSRCS; ssrc++)
		send_untagged(r, ssrc, 1);
	rig_run(r);
	assert_int_equal(r->outs, MEDIA_SSRCS - 1);
	assert_int_equal(rig_dropped(r, A, PACKET_DROP_SSRC_LIMIT), 1);
	assert_non_null(media_ssrc_find(&r->m->ctx[0], RX_RTP, 7));
	rig_free(r);
}

static void after_a_long_gap_an_unauthenticated_stream_goes_on(void **state)
{
	struct rig *r = unauthenticated(CM80);

	(void)state;
	send_untagged(r, 7, 60000);
	rig_run(r);
	for (uint64_t i = 0; i < 10; i++) {
		send_untagged(r, 7, 70000 + i); /* over the wrap */
		r->in[0].t_ns = 20000000 * i;
		rig_run(r);
		assert_int_equal(r->outs, i >= 7);
	}
	/* Small gaps need no proof. */
	send_untagged(r, 7, 70010 + MEDIA_LEAD);
	rig_run(r);
	assert_int_equal(r->outs, 1);
	rig_free(r);
}

/* --- The window ------------------------------------------------------------------------------- */

static void the_windows_size_is_configured(void **state)
{
	static const uint32_t sizes[] = {64, 128, 1024, 32768};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		struct rig *r = rig_new_window(CM80, CM80, 0, sizes[i]);

		rig_send(r, 7, 60000, A_TX);
		rig_send(r, 7, 60001 - sizes[i], A_TX);
		rig_run(r);
		assert_int_equal(r->outs, 2);
		rig_send(r, 7, 60000 - sizes[i], A_TX);
		rig_send(r, 7, 60001 - sizes[i], A_TX);
		rig_run(r);
		assert_int_equal(r->outs, 0);
		assert_int_equal(rig_dropped(r, A, PACKET_DROP_REPLAY), 2);
		rig_free(r);
	}
}

static void a_window_of_no_sound_size_is_refused(void **state)
{
	static const uint32_t sizes[] = {1, 63, 100, 32769, 65536};
	struct media_config cfg = {.max_ctx = 1, .max_stream = 1, .burst_max = 1, .key_slots = 4};
	struct media *m = NULL;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		cfg.replay_window = sizes[i];
		assert_int_equal(media_create(&m, &cfg), -EINVAL);
		assert_null(m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_late_join_begins_with_the_roc_of_signalling),
		cmocka_unit_test(marks_of_one_life_are_resumed_in_the_next),
		cmocka_unit_test(unsound_starts_are_refused),
		cmocka_unit_test(a_first_burst_over_the_wrap_loses_nothing),
		cmocka_unit_test(forgeries_in_front_do_not_lead_the_first_burst_astray),
		cmocka_unit_test(the_index_goes_on_while_nothing_may_leave),
		cmocka_unit_test(a_held_plain_side_is_learned_and_costs_no_cipher),
		cmocka_unit_test(srtp_goes_through_without_tags_and_srtcp_with_them),
		cmocka_unit_test(an_unproved_index_far_ahead_moves_nothing),
		cmocka_unit_test(unauthenticated_ssrcs_push_nobody_out),
		cmocka_unit_test(after_a_long_gap_an_unauthenticated_stream_goes_on),
		cmocka_unit_test(the_windows_size_is_configured),
		cmocka_unit_test(a_window_of_no_sound_size_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
