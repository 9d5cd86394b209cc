/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The way of a packet without the kernel and without an engine: prepare, the scalar reference,
 * complete. The tests read the room's own tables to prove that unauthentic packets change
 * nothing. */
#include "media/ssrc.h"
#include "media_rig.h"
#include "packet/arena.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

/* --- Rules ------------------------------------------------------------------------------------ */

static const enum srtp_suite_id suites[] = {SUITE_PLAIN, SUITE_AES_CM_128_80, SUITE_AES_CM_128_32,
	SUITE_AEAD_AES_128_GCM, SUITE_NULL_80};

static void every_pair_of_suites_with_and_without_mki(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(suites); i++)
		for (size_t k = 0; k < ARRAY_LEN(suites); k++)
			for (uint8_t mki = 0; mki <= 4; mki += 4) {
				struct rig *r = rig_new(suites[i], suites[k], mki);
				uint8_t p[28], want[256];
				uint32_t len;

				rig_send(r, 7, 100, A_TX);
				rig_send_rtcp(r, 7, 1);
				rig_run(r);
				assert_int_equal(r->outs, 2);
				rig_got(r, 0, 7, 100, 100);
				/* RTCP arrived on A's only port and leaves by B's second port,
				 * under our index 0. */
				rig_plain_rtcp(p, 7, 1);
				if (suites[k] != SUITE_NULL_80) {
					len = rig_protect(r, want,
						(struct rig_plain){
							p, 28, 8, B_RX, suites[k], 0, true});
					assert_int_equal(r->out[1].len, len);
					assert_memory_equal(
						r->a.out + r->out[1].out_off, want, len);
				}
				assert_int_equal(r->out[1].local.port, PORT_B_RTCP);
				assert_int_equal(r->out[1].dst.port, 5001);
				rig_free(r);
			}
}

static void the_index_survives_wraps_loss_and_reordering(void **state)
{
	static const uint64_t order[] = {65530, 65533, 65531, 65536, 65534, 65540, 65535, 65537,
		95000, 98304 + 20000, 131071, 131073, 131072, 160000, 190000, 196610};
	struct rig *r = rig_new(SUITE_AES_CM_128_80, SUITE_AES_CM_128_32, 0);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(order); i++) {
		rig_send(r, 7, order[i], A_TX);
		rig_run(r);
		assert_int_equal(r->outs, 1);
		rig_got(r, 0, 7, order[i], order[i]);
	}
	assert_int_equal(atomic_load(&media_stream_counters(r->m, A)->packets), ARRAY_LEN(order));
	assert_int_equal(
		atomic_load(&media_stream_counters(r->m, B)->packets_out), ARRAY_LEN(order));
	rig_free(r);
}

static void a_replay_is_refused_across_bursts_and_within_one(void **state)
{
	struct rig *r = rig_new(SUITE_AES_CM_128_80, SUITE_AES_CM_128_80, 0);

	(void)state;
	rig_send(r, 7, 500, A_TX);
	rig_send(r, 7, 500, A_TX); /* both authenticate: complete finds the replay */
	rig_run(r);
	assert_int_equal(r->outs, 1);
	assert_int_equal(r->in[1].verdict, PACKET_DROP_REPLAY);
	rig_send(r, 7, 500, A_TX);
	rig_send(r, 7, 500 - SRTP_REPLAY_WINDOW, A_TX);
	rig_send(r, 7, 501 - SRTP_REPLAY_WINDOW, A_TX);
	rig_run(r);
	assert_int_equal(r->outs, 1); /* the last one is inside the window */
	assert_int_equal(rig_dropped(r, A, PACKET_DROP_REPLAY), 3);
	rig_send_rtcp(r, 7, 9);
	rig_send_rtcp(r, 7, 9);
	rig_run(r);
	assert_int_equal(r->outs, 1);
	rig_free(r);
}

static void a_forged_packet_changes_nothing(void **state)
{
	struct rig *r = rig_new(SUITE_AES_CM_128_80, SUITE_AES_CM_128_32, 0);
	size_t len;
	void *before, *after;

	(void)state;
	rig_send(r, 7, 65000, A_TX);
	rig_send_rtcp(r, 7, 3);
	rig_run(r);
	before = rig_snapshot(r, &len);
	rig_send(r, 7, 65001, A_TX)[40] ^= 1;         /* payload */
	put_be16(rig_send(r, 7, 65001, A_TX) + 2, 1); /* a jump over the roll-over */
	put_be32(rig_send(r, 8, 1, A_TX) + 8, 9);     /* its own SSRC */
	rig_send(r, 7, 65001, A_TX2);                 /* another key */
	rig_send_rtcp(r, 7, 4)[20] ^= 0x80;
	rig_send(r, 7, 65001, A_TX)[5] ^= 1;
	r->in[5].src.port = 4999; /* from elsewhere */
	rig_run(r);
	assert_int_equal(r->outs, 0);
	after = rig_snapshot(r, &len);
	assert_memory_equal(before, after, len);
	assert_int_equal(rig_dropped(r, A, PACKET_DROP_BAD_TAG), 5);
	assert_int_equal(rig_dropped(r, A, PACKET_DROP_SOURCE), 1);
	assert_int_equal(atomic_load(&media_stream_counters(r->m, A)->errors), 6);
	free(before);
	free(after);
	rig_free(r);
}

static void srtcp_indexes_are_unique_and_not_burnt(void **state)
{
	struct rig *r = rig_new(SUITE_AES_CM_128_80, SUITE_AES_CM_128_80, 0);

	(void)state;
	for (uint32_t i = 0; i < 6; i++) {
		uint8_t *p = rig_send_rtcp(r, 7, i);

		if (i >= 3)
			p[20] ^= 1; /* junk behind the good ones */
	}
	rig_run(r);
	assert_int_equal(r->outs, 3);
	for (uint32_t k = 0; k < 3; k++) /* E||index before the tag */
		assert_int_equal(be32(r->a.out + r->out[k].out_off + 28), 0x80000000u + k);
	rig_send_rtcp(r, 7, 100);
	rig_run(r);
	assert_int_equal(be32(r->a.out + r->out[0].out_off + 28), 0x80000003u);
	r->m->ctx[1].tx_rtcp_next = SRTCP_INDEX_MAX + 1;
	rig_send_rtcp(r, 7, 101);
	rig_run(r);
	assert_int_equal(r->in[0].verdict, PACKET_DROP_INDEX_END);
	rig_free(r);
}

static void a_plain_side_cannot_make_us_repeat_a_nonce(void **state)
{
	struct rig *r = rig_new(SUITE_PLAIN, SUITE_AES_CM_128_80, 0);

	(void)state;
	for (int twice = 0; twice < 2; twice++)
		for (uint64_t i = 1000; i < 1010; i++)
			rig_send(r, 7, i, 0);
	rig_run(r);
	assert_int_equal(r->outs, 10);
	assert_int_equal(rig_dropped(r, A, PACKET_DROP_NONCE), 10);
	rig_send(r, 7, 1005, 0);
	rig_send(r, 7, 1000 - SRTP_REPLAY_WINDOW, 0);
	rig_run(r);
	assert_int_equal(r->outs, 0);
	/* Other SSRCs must not evict the first one's state. */
	for (uint32_t ssrc = 100; ssrc < 100 + MEDIA_SSRCS; ssrc++)
		rig_send(r, ssrc, 1, 0);
	rig_run(r);
	assert_int_equal(r->outs, MEDIA_SSRCS);
	assert_null(media_ssrc_find(&r->m->ctx[1], TX_RTP, 7)); /* its place was taken */
	rig_send(r, 7, 1005, 0);
	rig_run(r);
	assert_int_equal(r->in[0].verdict, PACKET_DROP_NONCE);
	rig_free(r);
}

static void a_new_key_from_one_side_leaves_the_others_index_alone(void **state)
{
	struct rig *r = rig_new(SUITE_AES_CM_128_80, SUITE_AES_CM_128_32, 0);

	(void)state;
	rig_send(r, 7, 65535, A_TX);
	rig_run(r);
	rig_send(r, 7, 65536, A_TX);
	rig_run(r);
	assert_int_equal(r->outs, 1);
	/* The command changes nothing: the same packet must still be a replay. */
	rig_ctx(r, 0, (struct rig_keys){A_TX, A_RX, r->suite_a, false, false});
	rig_send(r, 7, 65536, A_TX);
	rig_run(r);
	assert_int_equal(r->in[0].verdict, PACKET_DROP_REPLAY);
	/* A changes its key: its roll-over counter restarts at 0 (RFC 4568 6.4), ours toward B
	 * continues. */
	rig_ctx(r, 0, (struct rig_keys){A_TX2, A_RX, r->suite_a, true, false});
	rig_send(r, 7, 1, A_TX2);
	rig_run(r);
	rig_got(r, 0, 7, 1, 65537);
	rig_free(r);
}

static void hold_keeps_the_index_moving(void **state)
{
	struct rig *r = rig_new(SUITE_AES_CM_128_80, SUITE_AES_CM_128_80, 0);
	struct media_cmd hold = rig_stream_cmd(B, PORT_B, 1, A, MEDIA_NONE, "192.0.2.2:5000");

	(void)state;
	r->m->stream[B].learn = (struct learn){0}; /* no address known yet */
	hold.stream.remote = (struct endpoint){.family = AF_INET, .port = 5000};
	assert_int_equal(media_command(r->m, &hold), 0);
	for (uint64_t i = 40000; i < 140000; i += 20000) {
		rig_send(r, 7, i, A_TX);
		rig_run(r);
		assert_int_equal(r->outs, 0);
	}
	assert_int_equal(rig_dropped(r, A, PACKET_DROP_NO_DESTINATION), 5);
	assert_true(r->m->ctx[0].rx.first.seen.last == 120000);
	rig_stream(r, rig_stream_cmd(B, PORT_B, 1, A, MEDIA_NONE, "192.0.2.2:5000"));
	rig_send(r, 7, 140000, A_TX);
	rig_run(r);
	assert_int_equal(r->outs, 1);
	rig_free(r);
}

static void what_is_no_media_goes_its_way(void **state)
{
	static const struct {
		uint16_t port;
		const char *bytes;
		uint32_t len;
		enum packet_verdict want;
	} T[] = {
		{PORT_A, "\x00\x01\x00\x00", 4, PACKET_DROP_NOT_MEDIA}, /* STUN */
		{PORT_A, "\x16\xfe\xff\x00", 4, PACKET_DROP_NOT_MEDIA}, /* DTLS */
		{PORT_A, "\x80\x00", 2, PACKET_DROP_MALFORMED},         /* cut off */
		{PORT_A, "\xc0\x00\x00\x00", 4, PACKET_DROP_MALFORMED}, /* version 3 */
		{PORT_A, "", 0, PACKET_DROP_MALFORMED},                 /* empty */
		{PORT_A, "\x80\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x07ninebytes", 21,
			PACKET_DROP_MALFORMED}, /* no room for a tag */
		{PORT_A, "", ARENA_MAX_PACKET + 1, PACKET_DROP_TOO_LONG},
		{PORT_B_RTCP, "\x80\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x07", 12,
			PACKET_DROP_MALFORMED}, /* RTP on an RTCP port */
		{30006, "\x80\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x07", 12,
			PACKET_PASS}, /* nobody's port */
		{29999, "\x80\x00", 2, PACKET_PASS},
		{40000, "\x80\x00", 2, PACKET_PASS},
	};
	struct rig *r = rig_new(SUITE_AES_CM_128_80, SUITE_AES_CM_128_32, 0);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		uint8_t *p = rig_slot(r, T[i].port == PORT_A ? A : B_RTCP, T[i].port);

		r->in[0].len = T[i].len;
		memset(p, 0, 32);
		memcpy(p, T[i].bytes, T[i].len > 21 ? 0 : T[i].len);
		rig_run(r);
		assert_int_equal(r->outs, 0);
		assert_int_equal(r->in[0].verdict, T[i].want);
	}
	assert_int_equal(media_drop_count(r->m, PACKET_DROP_UNKNOWN_PORT), 3);
	assert_int_equal(media_drop_count(r->m, PACKET_DROP_NOT_MEDIA), 2);
	rig_free(r);
}

static void wrong_mki_is_told_from_a_bad_tag(void **state)
{
	struct rig *r = rig_new(SUITE_AES_CM_128_80, SUITE_AES_CM_128_80, 4);

	(void)state;
	rig_send(r, 7, 1, A_TX)[172] ^= 1;
	rig_run(r);
	assert_int_equal(r->in[0].verdict, PACKET_DROP_WRONG_MKI);
	rig_free(r);
}

static void commands_with_bad_handles_change_nothing(void **state)
{
	struct rig *r = rig_new(SUITE_AES_CM_128_80, SUITE_AES_CM_128_80, 0);
	struct media_cmd good = rig_stream_cmd(3, 30004, 0, B, B, "192.0.2.9:1"), bad;
	size_t len;
	void *before = rig_snapshot(r, &len), *after;

	(void)state;
	bad = good, bad.id = 6;
	assert_int_equal(media_command(r->m, &bad), -EINVAL);
	bad = good, bad.stream.local.port = 30008;
	assert_int_equal(media_command(r->m, &bad), -EINVAL);
	bad = good, bad.stream.local.addr = 1;
	assert_int_equal(media_command(r->m, &bad), -EINVAL);
	bad = good, bad.stream.local.port = PORT_A; /* taken */
	assert_int_equal(media_command(r->m, &bad), -EINVAL);
	bad = good, bad.stream.ctx = 4;
	assert_int_equal(media_command(r->m, &bad), -EINVAL);
	bad = good, bad.stream.rtp_to = 6;
	assert_int_equal(media_command(r->m, &bad), -EINVAL);
	bad = (struct media_cmd){.type = MEDIA_CTX_SET, .id = 4};
	assert_int_equal(media_command(r->m, &bad), -EINVAL);
	bad = (struct media_cmd){.type = MEDIA_STREAM_DEL, .id = 6};
	assert_int_equal(media_command(r->m, &bad), -EINVAL);
	after = rig_snapshot(r, &len);
	assert_memory_equal(before, after, len);
	assert_int_equal(media_command(r->m, &good), 0);
	free(before);
	free(after);
	rig_free(r);
}

static void a_deleted_stream_frees_its_port_and_counts_from_nothing(void **state)
{
	struct rig *r = rig_new(SUITE_AES_CM_128_80, SUITE_AES_CM_128_80, 0);
	struct media_cmd del = {.type = MEDIA_STREAM_DEL, .id = A};
	const struct media_stream_counters *c = media_stream_counters(r->m, A);
	struct media_quality quality;
	struct endpoint remote;

	(void)state;
	rig_send(r, 7, 1, A_TX);
	rig_run(r);
	media_stream_remote(r->m, A, &remote);
	assert_true(remote.family && atomic_load(&c->packets) && atomic_load(&c->ssrc));
	assert_int_equal(media_command(r->m, &del), 0);
	/* The next call may already own the handle and read its statistics. */
	media_stream_remote(r->m, A, &remote);
	media_stream_quality(r->m, A, &quality);
	assert_int_equal(remote.family, 0);
	assert_int_equal(quality.samples, 0);
	assert_false(atomic_load(&c->packets) || atomic_load(&c->bytes) || atomic_load(&c->ssrc) ||
		atomic_load(&c->last_packet_ns) || atomic_load(&c->confirmed));
	rig_send(r, 7, 2, A_TX);
	rig_run(r);
	assert_int_equal(r->in[0].verdict, PACKET_PASS);
	rig_stream(r, rig_stream_cmd(3, PORT_A, 0, B, B_RTCP, "192.0.2.1:4000"));
	rig_send(r, 7, 3, A_TX);
	rig_run(r);
	assert_int_equal(r->outs, 1);
	assert_int_equal(atomic_load(&media_stream_counters(r->m, 3)->packets), 1);
	rig_free(r);
}

/* Echoed packets are sent under the key that the terminal receives under. They follow its indexes,
 * and only authentic packets are echoed. */
static void what_leads_back_to_its_sender_is_ciphered_for_it(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(suites); i++) {
		struct rig *r = rig_new(suites[i], SUITE_PLAIN, 0);
		uint8_t plain[172], want[256];
		uint32_t len;

		rig_stream(r, rig_stream_cmd(A, PORT_A, 0, A, MEDIA_NONE, "192.0.2.1:4000"));
		rig_send(r, 7, 100, A_TX);
		rig_send(r, 7, 101, A_TX)[20] ^= suites[i] != SUITE_PLAIN;
		rig_run(r);
		assert_int_equal(r->outs, suites[i] == SUITE_PLAIN ? 2 : 1);
		rig_plain_rtp(plain, 7, 100);
		len = rig_protect(
			r, want, (struct rig_plain){plain, 172, 12, A_RX, suites[i], 100, false});
		assert_int_equal(r->out[0].len, len);
		assert_memory_equal(r->a.out + r->out[0].out_off, want, len);
		assert_int_equal(r->out[0].local.port, PORT_A);
		assert_int_equal(r->out[0].dst.port, 4000);
		rig_free(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_pair_of_suites_with_and_without_mki),
		cmocka_unit_test(the_index_survives_wraps_loss_and_reordering),
		cmocka_unit_test(a_replay_is_refused_across_bursts_and_within_one),
		cmocka_unit_test(a_forged_packet_changes_nothing),
		cmocka_unit_test(srtcp_indexes_are_unique_and_not_burnt),
		cmocka_unit_test(a_plain_side_cannot_make_us_repeat_a_nonce),
		cmocka_unit_test(a_new_key_from_one_side_leaves_the_others_index_alone),
		cmocka_unit_test(hold_keeps_the_index_moving),
		cmocka_unit_test(what_is_no_media_goes_its_way),
		cmocka_unit_test(wrong_mki_is_told_from_a_bad_tag),
		cmocka_unit_test(commands_with_bad_handles_change_nothing),
		cmocka_unit_test(a_deleted_stream_frees_its_port_and_counts_from_nothing),
		cmocka_unit_test(what_leads_back_to_its_sender_is_ciphered_for_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
