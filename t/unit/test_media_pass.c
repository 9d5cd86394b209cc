/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Streams that are passed through: every packet leaves unchanged. The index is followed in
 * parallel, so that re-encryption may begin and end with any packet. Recordings and listeners get
 * decrypted packets. */
#include "media_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "layout.h"
#include "packet/arena.h"
#include "srtp/ref.h"

enum { SSRC = 7 };

/* Each terminal's packets go to the other unchanged. */
static void ctx_pass(struct rig *r, uint32_t id, uint32_t rx, enum srtp_suite_id suite, bool rx_new)
{
	struct media_cmd cmd = {.type = MEDIA_CTX_SET,
		.id = id,
		.ctx = {.rx = rig_crypto(r, rx, suite), .rx_new = rx_new, .tx_new = true}};

	cmd.ctx.rx.pass = cmd.ctx.tx.pass = true;
	assert_int_equal(media_command(r->m, &cmd), 0);
}

static struct rig *passing(enum srtp_suite_id suite, uint8_t mki_len)
{
	struct rig *r = rig_new(suite, suite, mki_len);

	ctx_pass(r, 0, A_TX, suite, true);
	ctx_pass(r, 1, B_TX, suite, true);
	return r;
}

static void left_as_it_came(struct rig *r, uint32_t jobs)
{
	uint8_t came[SLOTS][ARENA_MAX_PACKET];
	uint32_t len[SLOTS], n = r->n;

	for (uint32_t i = 0; i < n; i++) {
		len[i] = r->in[i].len;
		memcpy(came[i], r->a.in + r->in[i].in_off, len[i]);
	}
	rig_complete(r, jobs);
	assert_int_equal(r->outs, n);
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(r->out[i].len, len[i]);
		assert_memory_equal(r->a.out + r->out[i].out_off, came[i], len[i]);
	}
}

static void packets_leave_as_they_came(void **state)
{
	(void)state;
	for (uint32_t suite = 1; suite < SUITE_COUNT; suite++)
		for (uint8_t mki_len = 0; mki_len <= 4; mki_len += 4) {
			struct rig *r = passing(suite, mki_len);

			rig_engine(r);
			rig_send(r, SSRC, 1000, A_TX);
			rig_send_rtcp(r, SSRC, 3);
			rig_send(r, SSRC, 1000, A_TX); /* replays are left to the receiver */
			rig_send(r, SSRC, 1001, A_TX)[40] ^= 1; /* damaged: likewise */
			rig_send(r, SSRC, 900, A_TX);
			rig_send(r, SSRC, 1002, A_TX2); /* under an unknown key */
			left_as_it_came(r, rig_prepare(r));
			assert_int_equal(r->out[1].local.port, PORT_B_RTCP);
			rig_free(r);
		}
}

static void what_is_no_rtp_does_not_pass(void **state)
{
	struct rig *r = passing(SUITE_AES_CM_128_80, 0);
	uint8_t *p;

	(void)state;
	p = rig_slot(r, A, PORT_A);
	memset(p, 0x80, 12);
	p[0] = 0x8f; /* more CSRCs than bytes */
	r->in[0].len = 14;
	rig_run(r);
	assert_int_equal(r->outs, 0);
	assert_int_equal(rig_dropped(r, A, PACKET_DROP_MALFORMED), 1);
	/* A stranger sends after a source was confirmed. */
	rig_send(r, SSRC, 1, A_TX);
	rig_run(r);
	assert_int_equal(r->outs, 1);
	rig_send(r, SSRC, 2, A_TX);
	r->in[0].src.port++;
	rig_run(r);
	assert_int_equal(r->outs, 0);
	assert_int_equal(rig_dropped(r, A, PACKET_DROP_SOURCE), 1);
	rig_free(r);
}

/* With forks, one of two connected sides may expect the other's key, and the other one ours. */
static void what_is_deciphered_and_what_is_not_do_not_mix(void **state)
{
	struct rig *r = passing(SUITE_AES_CM_128_80, 0);

	(void)state;
	rig_ctx(r, 1, (struct rig_keys){B_TX, B_RX, SUITE_AES_CM_128_80, true, true});
	rig_send(r, SSRC, 1, A_TX); /* would reach a terminal that expects our key */
	rig_run(r);
	assert_int_equal(r->outs, 0);
	ctx_pass(r, 1, B_TX, SUITE_AES_CM_128_80, true);
	rig_ctx(r, 0, (struct rig_keys){A_TX2, A_RX, SUITE_AES_CM_128_80, true, true});
	rig_send(r, SSRC, 1, A_TX2); /* would leave unencrypted */
	rig_run(r);
	assert_int_equal(r->outs, 0);
	assert_int_equal(rig_dropped(r, A, PACKET_DROP_INACTIVE), 2);
	rig_free(r);
}

/* The key stays, so its index continues over the wrap, however packets are relayed. */
static void the_index_goes_on_to_re_encryption_and_back(void **state)
{
	struct rig *r = rig_new(SUITE_AES_CM_128_80, SUITE_AES_CM_128_80, 0);
	uint64_t i, first;

	(void)state;
	for (i = 65500; i < 65600; i++) {
		rig_send(r, SSRC, i, A_TX);
		rig_run(r);
		rig_got(r, 0, SSRC, i, i);
	}
	ctx_pass(r, 0, A_TX, SUITE_AES_CM_128_80, false);
	ctx_pass(r, 1, B_TX, SUITE_AES_CM_128_80, false);
	/* 500 are lost, then enough follow in a row to prove that the jump is real. */
	i += 501;
	for (uint32_t n = 1; i < 3 * 65536 + 700; i += n++ % 9 ? 1 : 501) {
		rig_send(r, SSRC, i, A_TX);
		r->in[0].t_ns = i * 20000000;
		left_as_it_came(r, rig_prepare(r));
	}
	assert_int_equal(media_stream_counters(r->m, A)->index >> 16, i >> 16);
	/* B's is a new key of ours: it begins at ROC 0. */
	rig_key(r, LENT, SUITE_AES_CM_128_80);
	rig_ctx(r, 0, (struct rig_keys){A_TX, A_RX, SUITE_AES_CM_128_80, false, false});
	rig_ctx(r, 1, (struct rig_keys){B_TX, LENT, SUITE_AES_CM_128_80, false, true});
	for (first = i; i < first + 100; i++) {
		rig_send(r, SSRC, i, A_TX);
		rig_run(r);
		assert_int_equal(r->outs, 1);
	}
	/* Late packets from before are accepted, each only once. */
	rig_send(r, SSRC, first - 20, A_TX);
	rig_send(r, SSRC, first + 20, A_TX);
	rig_run(r);
	assert_int_equal(r->outs, 1);
	assert_int_equal(rig_dropped(r, A, PACKET_DROP_REPLAY), 1);
	rig_free(r);
}

/* Sequence numbers are not authenticated: one far ahead moves nothing, nor does a stranger's
 * SSRC. */
static void a_forged_number_does_not_lead_the_index_astray(void **state)
{
	struct rig *r = passing(SUITE_AES_CM_128_80, 0);

	(void)state;
	for (uint64_t i = 60000; i < 60010; i++) {
		rig_send(r, SSRC, i, A_TX);
		left_as_it_came(r, rig_prepare(r));
	}
	rig_send(r, SSRC, 65536 + 5000, A_TX);
	rig_send(r, SSRC, 65536 + 27000, A_TX);
	left_as_it_came(r, rig_prepare(r));
	assert_int_equal(media_stream_counters(r->m, A)->index >> 16, 0);
	rig_ctx(r, 0, (struct rig_keys){A_TX, A_RX, SUITE_AES_CM_128_80, false, true});
	rig_ctx(r, 1, (struct rig_keys){B_TX, B_RX, SUITE_AES_CM_128_80, false, true});
	rig_send(r, SSRC, 60010, A_TX);
	rig_run(r);
	rig_got(r, 0, SSRC, 60010, 60010);
	rig_free(r);
}

struct taped {
	uint32_t n, good;
	struct rig *r;
};

static void tape(void *arg, uint32_t tap, const struct arena *a, const struct packet_in *in,
	const struct xc_job *j)
{
	static uint8_t out[ARENA_SLOT_LEN];
	struct taped *t = arg;
	struct xc_job clear = *j;

	(void)in;
	assert_int_equal(tap, 5);
	clear.out_off = 0;
	clear.tx_key = j->flags & XC_JOB_RTCP ? 1 : 0;
	clear.tx_tag_off = j->hdr_len + j->body_len;
	t->n++;
	if (srtp_ref_job(&clear, a->key, a->in, out) != XC_OK)
		return;
	t->good += j->flags & XC_JOB_RTCP ? out[20] == 3 : out[40] == (uint8_t)be16(out + 2);
}

/* RTP and RTCP, with every suite. Damaged packets are reported, too; the engine that decrypts them
 * finds out. */
static void recordings_get_it_with_the_key(void **state)
{
	(void)state;
	for (uint32_t suite = 1; suite < SUITE_COUNT; suite++) {
		struct rig *r = passing(suite, 4);
		struct taped t = {.r = r};
		struct media_cmd cmd = rig_stream_cmd(A, PORT_A, 0, B, B_RTCP, "192.0.2.1:4000");

		r->m->cfg.tap = tape;
		r->m->cfg.tap_arg = &t;
		cmd.stream.tap = 5;
		assert_int_equal(media_command(r->m, &cmd), 0);
		rig_send(r, SSRC, 65535, A_TX);
		rig_send(r, SSRC, 65536, A_TX);
		rig_send_rtcp(r, SSRC, 3);
		rig_send(r, SSRC, 65537, A_TX)[40] ^= 1;
		rig_send(r, SSRC, 65538, A_TX2); /* its MKI belongs to no known key */
		left_as_it_came(r, rig_prepare(r));
		assert_int_equal(t.n, 4);
		assert_int_equal(t.good, 3);
		rig_free(r);
	}
}

static void listeners_get_it_deciphered(void **state)
{
	struct rig *r = passing(SUITE_AES_CM_128_80, 0);
	struct media_cmd source = rig_stream_cmd(A, PORT_A, 0, B, B_RTCP, "192.0.2.1:4000"),
			 listener = rig_stream_cmd(
				 3, 30004, 2, MEDIA_NONE, MEDIA_NONE, "192.0.2.3:6000");
	uint8_t plain[172];

	(void)state;
	rig_ctx(r, 2, (struct rig_keys){0, 0, SUITE_PLAIN, true, true});
	listener.stream.listener = true;
	source.stream.copy[0] = 4;
	assert_int_equal(media_command(r->m, &listener), 0);
	assert_int_equal(media_command(r->m, &source), 0);
	for (uint64_t i = 65530; i < 65540; i++) {
		rig_send(r, SSRC, i, A_TX);
		rig_run(r);
		assert_int_equal(r->outs, 2);
		assert_int_equal(r->out[0].len, 182);
		assert_int_equal(r->out[1].len, 172);
		rig_plain_rtp(plain, SSRC, i);
		assert_memory_equal(r->a.out + r->out[1].out_off, plain, 172);
	}
	rig_send(r, SSRC, 65540, A_TX)[60] ^=
		1; /* toward the peer it passes, toward the listener we check it */
	rig_run(r);
	assert_int_equal(r->outs, 1);
	assert_int_equal(rig_dropped(r, 3, PACKET_DROP_BAD_TAG), 1);
	rig_free(r);
}

/* Silence would need protection under the terminals' own key. */
static void silence_is_nothing_at_all(void **state)
{
	struct rig *r = passing(SUITE_AES_CM_128_80, 0);
	struct media_cmd a = rig_stream_cmd(A, PORT_A, 0, B, B_RTCP, "192.0.2.1:4000");

	(void)state;
	a.stream.gate = MEDIA_GATE_QUIET;
	a.stream.quiet = MEDIA_QUIET_PCMA;
	assert_int_equal(media_command(r->m, &a), 0);
	rig_send(r, SSRC, 1, A_TX);
	rig_run(r);
	assert_int_equal(r->outs, 0);
	assert_int_equal(rig_dropped(r, A, PACKET_DROP_BLOCKED), 1);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packets_leave_as_they_came),
		cmocka_unit_test(what_is_no_rtp_does_not_pass),
		cmocka_unit_test(what_is_deciphered_and_what_is_not_do_not_mix),
		cmocka_unit_test(the_index_goes_on_to_re_encryption_and_back),
		cmocka_unit_test(a_forged_number_does_not_lead_the_index_astray),
		cmocka_unit_test(recordings_get_it_with_the_key),
		cmocka_unit_test(listeners_get_it_deciphered),
		cmocka_unit_test(silence_is_nothing_at_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
