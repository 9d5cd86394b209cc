/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Each reason to drop a packet, counted at the stream that received it; what commands keep and what
 * they reset; packets that show themselves whether they are encrypted. */
#include "media_rig.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "media/ssrc.h"
#include "packet/arena.h"
#include "srtp/ref.h"

#define CM80 SUITE_AES_CM_128_80
#define CM32 SUITE_AES_CM_128_32

/* Checks that the burst's only packet got this verdict, that stream A counted it once, and that no
 * other stream counted anything. */
static void only_drop(struct rig *r, enum packet_verdict want)
{
	uint64_t before = rig_dropped(r, A, want), all = media_drop_count(r->m, want);

	assert_int_equal(r->n, 1);
	rig_run(r);
	assert_int_equal(r->outs, 0);
	assert_int_equal(r->in[0].verdict, want);
	assert_int_equal(rig_dropped(r, A, want), before + 1);
	assert_int_equal(media_drop_count(r->m, want), all + 1);
	for (uint32_t s = B; s < 4; s++)
		assert_int_equal(atomic_load(&media_stream_counters(r->m, s)->errors), 0);
}

static void each_reason_is_counted_where_the_packet_came_in(void **state)
{
	struct rig *r = rig_new(CM80, CM32, 4);
	struct media_cmd cmd;

	(void)state;
	rig_send(r, 7, 100, A_TX);
	rig_run(r);
	assert_int_equal(r->outs, 1);
	rig_send(r, 7, 101, A_TX)[0] = 0x40;
	only_drop(r, PACKET_DROP_MALFORMED);
	rig_send(r, 7, 101, A_TX)[0] |=
		0x0f; /* CSRCs that reach into the tag are not detected, but fail authentication */
	only_drop(r, PACKET_DROP_BAD_TAG);
	rig_send(r, 7, 101, A_TX);
	r->in[0].len = ARENA_MAX_PACKET + 1;
	only_drop(r, PACKET_DROP_TOO_LONG);
	rig_send(r, 7, 101, A_TX);
	r->in[0].src.addr[3]++;
	only_drop(r, PACKET_DROP_SOURCE);
	rig_send(r, 7, 101, A_TX)[172] ^= 1;
	only_drop(r, PACKET_DROP_WRONG_MKI);
	rig_send(r, 7, 101, A_TX)[100] ^= 1;
	only_drop(r, PACKET_DROP_BAD_TAG);
	rig_send(r, 7, 100, A_TX);
	only_drop(r, PACKET_DROP_REPLAY);
	/* A's new key restarts, but the index toward B was sent before. */
	rig_ctx(r, 0, (struct rig_keys){A_TX2, A_RX, CM80, true, false});
	rig_send(r, 7, 100, A_TX2);
	only_drop(r, PACKET_DROP_NONCE);
	/* The stream has no other side. */
	cmd = rig_stream_cmd(A, PORT_A, 0, MEDIA_NONE, B_RTCP, "192.0.2.1:4000");
	cmd.stream.rtp = true;
	assert_int_equal(media_command(r->m, &cmd), 0);
	rig_send(r, 7, 101, A_TX2);
	only_drop(r, PACKET_DROP_INACTIVE);
	rig_stream(r, rig_stream_cmd(A, PORT_A, 0, B, B_RTCP, "192.0.2.1:4000"));
	cmd = (struct media_cmd){.type = MEDIA_CTX_DEL, .id = 1};
	assert_int_equal(media_command(r->m, &cmd), 0);
	rig_send(r, 7, 102, A_TX2);
	only_drop(r, PACKET_DROP_INACTIVE);
	rig_free(r);
}

static void a_result_that_would_be_too_long_does_not_leave(void **state)
{
	struct rig *r = rig_new(SUITE_PLAIN, CM80, 4);

	(void)state;
	rig_send(r, 7, 1, 0);
	r->in[0].len = ARENA_MAX_PACKET - 10 - 4 + 1;
	only_drop(r, PACKET_DROP_TOO_LONG);
	rig_send(r, 7, 1, 0);
	r->in[0].len = ARENA_MAX_PACKET - 10 - 4;
	rig_run(r);
	assert_int_equal(r->outs, 1);
	assert_int_equal(r->out[0].len, ARENA_MAX_PACKET);
	rig_free(r);
}

static void what_the_kernel_did_not_take_is_counted_where_it_came_in(void **state)
{
	struct rig *r = rig_new(CM80, CM80, 0);
	uint32_t jobs;

	(void)state;
	rig_send(r, 7, 1, A_TX);
	jobs = rig_prepare(r);
	r->a.status[0] = srtp_ref_job(&r->a.job[0], r->a.key, r->a.in, r->a.out);
	r->outs = media_complete(r->m, &r->a, r->in,
		&(struct batch){.job = r->a.job, .status = r->a.status, .n = jobs}, r->out);
	assert_int_equal(r->outs, 1);
	r->out[0].failed = 1;
	media_sent(r->m, r->in, r->out, r->outs);
	assert_int_equal(r->in[0].verdict, PACKET_DROP_SEND);
	assert_int_equal(rig_dropped(r, A, PACKET_DROP_SEND), 1);
	assert_int_equal(atomic_load(&media_stream_counters(r->m, B)->packets_out), 0);
	rig_free(r);
}

/* When a command changes a stream or context between the halves, the job no longer belongs to
 * it. */
static void a_command_between_the_halves_makes_jobs_stale(void **state)
{
	(void)state;
	for (int what = 0; what < 6; what++) {
		struct rig *r = rig_new(CM80, CM80, 0);
		struct media_cmd del = {.type = MEDIA_STREAM_DEL, .id = what == 1 ? B : A};
		uint32_t jobs;

		rig_send(r, 7, 1, A_TX);
		jobs = rig_prepare(r);
		assert_int_equal(jobs, 1);
		switch (what) {
		case 0: /* released and taken again */
			assert_int_equal(media_command(r->m, &del), 0);
			rig_stream(r, rig_stream_cmd(A, PORT_A, 0, B, B_RTCP, "192.0.2.1:4000"));
			break;
		case 1:
			assert_int_equal(media_command(r->m, &del), 0);
			break;
		case 2:
			rig_ctx(r, 0, (struct rig_keys){A_TX2, A_RX, CM80, true, false});
			break;
		case 3:
			rig_ctx(r, 1, (struct rig_keys){B_TX, B_RX, CM80, false, true});
			break;
		case 4:
			del = (struct media_cmd){.type = MEDIA_CTX_DEL, .id = 1};
			assert_int_equal(media_command(r->m, &del), 0);
			break;
		default:
			rig_ctx(r, 2,
				(struct rig_keys){
					A_TX2, A_RX, CM80, true, true}); /* somebody else's */
			break;
		}
		rig_complete(r, jobs);
		assert_int_equal(r->in[0].verdict, what == 5 ? PACKET_SENT : PACKET_DROP_STALE);
		rig_free(r);
	}
}

static void an_ssrc_that_cannot_leave_pushes_no_window_out(void **state)
{
	const uint32_t all = MEDIA_SSRCS + MEDIA_TURNS; /* not allowed to leave now */
	struct rig *r = rig_new(CM80, CM80, 0);

	(void)state;
	for (uint32_t ssrc = 1; ssrc <= all; ssrc++)
		rig_send(r, ssrc, 60000, A_TX);
	rig_run(r);
	assert_int_equal(r->outs, all);
	rig_send(r, 99, 5, A_TX);
	assert_int_equal(rig_prepare(r), 0); /* before any cipher work */
	rig_complete(r, 0);
	rig_send(r, MEDIA_TURNS + 1, 60000, A_TX);
	rig_run(r);
	assert_int_equal(r->in[0].verdict, PACKET_DROP_REPLAY);
	rig_free(r);
	/* The same if the last place is taken within the burst: complete finds it. */
	r = rig_new(CM80, CM80, 0);
	for (uint32_t ssrc = 1; ssrc <= all + 1; ssrc++)
		rig_send(r, ssrc, 60000, A_TX);
	rig_run(r);
	assert_int_equal(r->outs, all);
	assert_int_equal(r->in[all].verdict, PACKET_DROP_SSRC_LIMIT);
	assert_non_null(media_ssrc_find(&r->m->ctx[0], RX_RTP, MEDIA_TURNS + 1));
	assert_null(media_ssrc_find(&r->m->ctx[0], RX_RTP, all + 1));
	rig_free(r);
}

static void the_silent_ssrc_goes_first_where_it_leaves_plain(void **state)
{
	struct rig *r = rig_new(CM80, SUITE_PLAIN, 0);

	(void)state;
	for (uint32_t ssrc = 1; ssrc <= MEDIA_SSRCS; ssrc++)
		rig_send(r, ssrc, 10, A_TX);
	rig_run(r);
	rig_send(r, 1, 11, A_TX);   /* 2 is now the SSRC that was silent longest */
	rig_send(r, 99, 10, A_TX2); /* forged: must not evict */
	rig_run(r);
	assert_non_null(media_ssrc_find(&r->m->ctx[0], RX_RTP, 2));
	rig_send(r, 99, 10, A_TX);
	rig_run(r);
	assert_int_equal(r->outs, 1);
	assert_null(media_ssrc_find(&r->m->ctx[0], RX_RTP, 2));
	assert_non_null(media_ssrc_find(&r->m->ctx[0], RX_RTP, 1));
	assert_non_null(media_ssrc_find(&r->m->ctx[0], RX_RTP, 99));
	rig_free(r);
}

static void a_new_tx_key_starts_the_roll_over_but_not_the_srtcp_index(void **state)
{
	struct rig *r = rig_new(CM80, CM80, 0);

	(void)state;
	rig_send(r, 7, 65535, A_TX);
	rig_send_rtcp(r, 7, 1);
	rig_run(r);
	rig_send(r, 7, 65536, A_TX);
	rig_run(r);
	rig_got(r, 0, 7, 65536, 65536);
	rig_ctx_plain(r, 1);
	rig_key(r, B_RX, CM80);
	rig_key_new(r, B_RX, 0, 0);
	r->a.key[B_RX].salt[0] ^= 1; /* another key in this slot */
	rig_ctx(r, 1, (struct rig_keys){B_TX, B_RX, CM80, false, true});
	rig_send(r, 7, 65537, A_TX);
	rig_send_rtcp(r, 7, 2);
	rig_run(r);
	assert_int_equal(r->outs, 2);
	rig_got(r, 0, 7, 65537, 1);
	assert_int_equal(be32(r->a.out + r->out[1].out_off + 28), 0x80000001u); /* RFC 3711 3.4 */
	/* The key is used up: only a new one restarts sending. */
	r->m->ctx[1].tx_rtcp_next = SRTCP_INDEX_MAX + 1;
	rig_ctx(r, 1, (struct rig_keys){B_TX, B_RX, CM80, false, false});
	rig_send_rtcp(r, 7, 3);
	only_drop(r, PACKET_DROP_INDEX_END);
	rig_ctx_plain(r, 1);
	rig_key_new(r, B_RX, 0, 0);
	rig_ctx(r, 1, (struct rig_keys){B_TX, B_RX, CM80, false, true});
	rig_send_rtcp(r, 7, 3);
	rig_run(r);
	assert_int_equal(be32(r->a.out + r->out[0].out_off + 28), 0x80000000u);
	rig_free(r);
}

static void unsound_crypto_is_refused(void **state)
{
	static const struct {
		struct media_crypto c;
		int want;
	} T[] = {
		{{.suite = SUITE_PLAIN}, 0},
		{{.suite = CM80, .keys = 1, .key = {{.slot = 2}}}, 0},
		{{.suite = CM80, .keys = 1, .key = {{0}}}, -EINVAL}, /* would leave unencrypted */
		{{.suite = CM80, .keys = 1, .key = {{.slot = 1}}}, -EINVAL},
		{{.suite = CM80, .keys = 1, .key = {{.slot = 3}}}, -EINVAL}, /* SRTCP's slot */
		{{.suite = CM80, .keys = 1, .key = {{.slot = KEYS}}}, -EINVAL},
		{{.suite = CM80}, -EINVAL},
		{{.suite = SUITE_PLAIN, .keys = 1, .key = {{.slot = 2}}}, -EINVAL},
		{{.suite = SUITE_PLAIN, .mki_len = 1}, -EINVAL},
		{{.suite = CM80, .keys = 1, .key = {{.slot = 2}}, .mki_len = SUITE_MAX_MKI_LEN + 1},
			-EINVAL},
		{{.suite = SUITE_COUNT, .keys = 1, .key = {{.slot = 2}}}, -EINVAL},
		{{.suite = CM80, .keys = 1, .key = {{.slot = 2}}, .use = 1}, -EINVAL},
		{{.suite = CM80, .keys = 1, .key = {{.slot = 2}}, .no_rtp_auth = true}, 0},
		{{.suite = SUITE_AEAD_AES_128_GCM,
			 .keys = 1,
			 .key = {{.slot = 2}},
			 .no_rtp_auth = true},
			-EINVAL},
		{{.suite = SUITE_PLAIN, .no_rtp_auth = true}, -EINVAL},
		/* Two keys need MKIs to be told apart. */
		{{.suite = CM80, .keys = 2, .key = {{.slot = 2}, {.slot = 4}}}, -EINVAL},
		{{.suite = CM80, .keys = 2, .key = {{2, {1}}, {4, {1}}}, .mki_len = 1}, -EINVAL},
		{{.suite = CM80, .keys = 2, .key = {{2, {1}}, {4, {2}}}, .mki_len = 1, .use = 1},
			0},
		{{.suite = CM80, .keys = MEDIA_KEYS + 1, .mki_len = 1}, -EINVAL},
	};
	struct rig *r = rig_new(CM80, CM80, 0);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct media_cmd rx = {.type = MEDIA_CTX_SET, .id = 2, .ctx = {.rx = T[i].c}};
		struct media_cmd tx = {.type = MEDIA_CTX_SET, .id = 2, .ctx = {.tx = T[i].c}};

		assert_int_equal(media_command(r->m, &rx), T[i].want);
		assert_int_equal(media_command(r->m, &tx), T[i].want);
	}
	rig_free(r);
}

/* SRTCP's E flag tells whether it is encrypted. The outgoing packet follows the negotiation, RFC
 * 3711 3.4. */
static void srtcp_in_the_clear_is_authenticated_all_the_same(void **state)
{
	static const enum srtp_suite_id suites[] = {CM80, SUITE_AEAD_AES_128_GCM};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(suites); i++)
		for (int damage = 0; damage < 2; damage++) {
			struct rig *r = rig_new(suites[i], SUITE_PLAIN, 0);
			const struct srtp_suite *s = srtp_suite_get(suites[i]);
			struct xc_job j = {.rx_key = 1,
				.tx_key = A_TX + 1,
				.tx_index = 5,
				.hdr_len = 8,
				.body_len = 20,
				.rx_tag_off = 28,
				.tx_tag_off = s->auth == XC_AUTH_GCM ? 28 : 32,
				.ssrc = 7,
				.flags = XC_JOB_RTCP | XC_JOB_TX_CLEAR};
			uint8_t plain[ARENA_SLOT_LEN] = {0}, *p = rig_slot(r, A, PORT_A);

			rig_plain_rtcp(plain, 7, 5);
			j.out_off = r->in[0].in_off;
			assert_int_equal(srtp_ref_job(&j, r->a.key, plain, r->a.in), XC_OK);
			assert_memory_equal(p, plain, 28); /* indeed unencrypted */
			r->in[0].len = 28 + 4 + s->rtcp_tag_len;
			p[27] ^= (uint8_t)damage;
			if (damage) {
				only_drop(r, PACKET_DROP_BAD_TAG);
			} else {
				rig_run(r);
				assert_int_equal(r->outs, 1);
				assert_int_equal(r->out[0].len, 28);
				assert_memory_equal(r->a.out + r->out[0].out_off, plain, 28);
			}
			rig_free(r);
		}
}

static void unencrypted_srtp_leaves_in_the_clear_with_a_tag(void **state)
{
	struct rig *r = rig_new(SUITE_PLAIN, CM80, 0);
	struct media_cmd cmd = {.type = MEDIA_CTX_SET,
		.id = 1,
		.ctx = {.rx = rig_crypto(r, B_TX, CM80), .tx = rig_crypto(r, B_RX, CM80)}};
	uint8_t rtp[172], rtcp[28];

	(void)state;
	cmd.ctx.tx.clear_rtp = cmd.ctx.tx.clear_rtcp = true;
	assert_int_equal(media_command(r->m, &cmd), 0);
	rig_plain_rtp(rtp, 7, 1);
	rig_plain_rtcp(rtcp, 7, 1);
	rig_send(r, 7, 1, 0);
	memcpy(rig_slot(r, A, PORT_A), rtcp, 28);
	r->in[1].len = 28;
	rig_run(r);
	assert_int_equal(r->outs, 2);
	assert_int_equal(r->out[0].len, 182);
	assert_memory_equal(r->a.out + r->out[0].out_off, rtp, 172);
	assert_int_equal(r->out[1].len, 28 + 4 + 10);
	assert_memory_equal(r->a.out + r->out[1].out_off, rtcp, 28);
	assert_int_equal(be32(r->a.out + r->out[1].out_off + 28), 0); /* E = 0, index 0 */
	rig_free(r);
}

static void rtcp_on_the_rtp_port_does_not_confirm_it(void **state)
{
	struct rig *r = rig_new(CM80, CM80, 0);
	struct endpoint remote;

	(void)state;
	rig_send_rtcp(r, 7, 1);
	r->in[0].src.port = 4444;
	rig_run(r);
	assert_int_equal(r->outs, 1);
	assert_int_equal(atomic_load(&media_stream_counters(r->m, A)->confirmed), 0);
	rig_send(r, 7, 1, A_TX);
	r->in[0].src.port = 4446;
	rig_run(r);
	assert_int_equal(atomic_load(&media_stream_counters(r->m, A)->confirmed), 1);
	media_stream_remote(r->m, A, &remote);
	assert_int_equal(remote.port, 4446);
	/* The same address keeps the learned source; another one does not. */
	rig_stream(r, rig_stream_cmd(A, PORT_A, 0, B, B_RTCP, "192.0.2.1:4000"));
	media_stream_remote(r->m, A, &remote);
	assert_int_equal(remote.port, 4446);
	rig_stream(r, rig_stream_cmd(A, PORT_A, 0, B, B_RTCP, "192.0.2.1:4002"));
	media_stream_remote(r->m, A, &remote);
	assert_int_equal(remote.port, 4002);
	assert_int_equal(atomic_load(&media_stream_counters(r->m, A)->confirmed), 0);
	rig_free(r);
}

/* A report with an SRTCP tag of 32 bits, which is wrong if it is forged. */
static enum packet_verdict short_report(
	struct rig *r, uint32_t ssrc, uint32_t index, uint64_t now, bool forged)
{
	uint8_t *p = rig_send_rtcp(r, ssrc, index);

	r->in[0].len -= 6;
	r->in[0].t_ns = now;
	p[r->in[0].len - 1] ^= forged;
	rig_run(r);
	return r->in[0].verdict;
}

/* Forged SRTCP of SSRCs that sent no RTP leaves tests to the terminal. Both are limited. */
static void forged_srtcp_uses_up_no_test_of_the_terminal(void **state)
{
	struct rig *r = rig_new(CM32, CM80, 0);
	uint64_t now = 1000000000000ull;
	uint32_t tests = 0;

	(void)state;
	rig_send(r, 7, 100, A_TX);
	rig_run(r);
	assert_int_equal(r->outs, 1);
	/* 500 a second, for ten seconds */
	for (uint32_t i = 0; i < 5000; i++, now += 2000000)
		assert_int_equal(short_report(r, 1000 + i, i, now, true), PACKET_DROP_BAD_TAG);
	/* Authentic ones show how many tests these SSRCs have. */
	for (uint32_t i = 0; i < 5000; i++, now += 2000000)
		tests += short_report(r, 8, i, now, false) == PACKET_DROP_SHORT_TAG;
	assert_in_range(tests, 9, 11);
	for (uint32_t i = 0; i < 100; i++, now += 2000000)
		assert_int_equal(short_report(r, 1000 + i, i, now, true), PACKET_DROP_BAD_TAG);
	assert_int_equal(short_report(r, 7, 1, now, false), PACKET_DROP_SHORT_TAG);
	/* The terminal's own SSRC has as many, and some at once. */
	tests = 0;
	for (uint32_t i = 0; i < 5000; i++, now += 2000000)
		tests += short_report(r, 7, 2 + i, now, false) == PACKET_DROP_SHORT_TAG;
	assert_in_range(tests, 15, 18);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_reason_is_counted_where_the_packet_came_in),
		cmocka_unit_test(a_result_that_would_be_too_long_does_not_leave),
		cmocka_unit_test(what_the_kernel_did_not_take_is_counted_where_it_came_in),
		cmocka_unit_test(a_command_between_the_halves_makes_jobs_stale),
		cmocka_unit_test(an_ssrc_that_cannot_leave_pushes_no_window_out),
		cmocka_unit_test(the_silent_ssrc_goes_first_where_it_leaves_plain),
		cmocka_unit_test(a_new_tx_key_starts_the_roll_over_but_not_the_srtcp_index),
		cmocka_unit_test(unsound_crypto_is_refused),
		cmocka_unit_test(srtcp_in_the_clear_is_authenticated_all_the_same),
		cmocka_unit_test(unencrypted_srtp_leaves_in_the_clear_with_a_tag),
		cmocka_unit_test(rtcp_on_the_rtp_port_does_not_confirm_it),
		cmocka_unit_test(forged_srtcp_uses_up_no_test_of_the_terminal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
