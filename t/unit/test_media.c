/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The way of a packet without the kernel and without an engine: prepare, the scalar reference, complete. Looks into the room's own
 * tables to prove that nothing is committed from a packet that did not authenticate. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "media/int.h"
#include "srtp/kdf.h"
#include "srtp/ref.h"

enum { SLOTS = 32, PORT_A = 30000, PORT_B = 30002, PORT_B_RTCP = 30003, A = 0, B = 1, B_RTCP = 2 };

/* Key slots: what the terminals send under and receive under. */
enum { A_TX = 2, A_RX = 4, B_TX = 6, B_RX = 8, A_TX2 = 10, KEYS = 12 };

struct rig {
	struct media *m;
	struct arena a;
	struct media_in in[SLOTS];
	struct media_out out[SLOTS];
	uint32_t n, outs;
	enum srtp_suite_id suite_a, suite_b;
	uint8_t mki_len;
};

static void key(struct rig *r, uint32_t slot, enum srtp_suite_id suite)
{
	struct srtp_master m = {.suite = suite};

	memset(m.key, (int)(slot * 17 + 1), sizeof(m.key));
	memset(m.salt, (int)(slot * 5 + 3), sizeof(m.salt));
	assert_int_equal(srtp_key_fill(&r->a.key[slot], &m), 0);
}

static struct media_crypto crypto(const struct rig *r, uint32_t slot, enum srtp_suite_id suite)
{
	struct media_crypto c = {.key = suite == SUITE_PLAIN ? 0 : slot, .suite = suite};

	if (suite != SUITE_PLAIN) {
		c.mki_len = r->mki_len;
		memset(c.mki, 0xa0 + (int)slot, r->mki_len);
	}
	return c;
}

static void ctx(struct rig *r, uint32_t id, uint32_t rx, uint32_t tx, enum srtp_suite_id suite,
	bool rx_new, bool tx_new)
{
	struct media_cmd cmd = {.type = MEDIA_CTX_SET,
		.id = id,
		.ctx = {.rx = crypto(r, rx, suite),
			.tx = crypto(r, tx, suite),
			.rx_new = rx_new,
			.tx_new = tx_new}};

	assert_int_equal(media_command(r->m, &cmd), 0);
}

static struct media_cmd stream_cmd(uint32_t id, uint16_t port, uint32_t c, uint32_t rtp_to,
	uint32_t rtcp_to, const char *remote)
{
	struct media_cmd cmd = {.type = MEDIA_STREAM_SET,
		.id = id,
		.now_ns = 1,
		.stream = {.local = {.port = port},
			.rtp = rtp_to != MEDIA_NONE,
			.rtcp = rtcp_to != MEDIA_NONE,
			.ctx = c,
			.rtp_to = rtp_to,
			.rtcp_to = rtcp_to,
			.learning = MEDIA_LEARN_IMMEDIATE,
			.strict_source = true}};

	assert_int_equal(endpoint_parse(&cmd.stream.remote, str_from(remote)), 0);
	return cmd;
}

static void stream(struct rig *r, uint32_t id, uint16_t port, uint32_t c, uint32_t rtp_to,
	uint32_t rtcp_to, const char *remote)
{
	struct media_cmd cmd = stream_cmd(id, port, c, rtp_to, rtcp_to, remote);

	assert_int_equal(media_command(r->m, &cmd), 0);
}

/* Side A: RTP and RTCP on one port. Side B: two ports. */
static struct rig *rig_new(enum srtp_suite_id suite_a, enum srtp_suite_id suite_b, uint8_t mki_len)
{
	struct rig *r = calloc(1, sizeof(*r));
	struct media_config cfg = {.max_ctx = 4,
		.max_stream = 4,
		.port_min = 30000,
		.port_max = 30007,
		.local_addrs = 1,
		.burst_max = SLOTS};

	assert_non_null(r);
	r->suite_a = suite_a;
	r->suite_b = suite_b;
	r->mki_len = mki_len;
	assert_int_equal(media_create(&r->m, &cfg), 0);
	assert_int_equal(arena_create(&r->a, SLOTS, KEYS), 0);
	key(r, A_TX, suite_a);
	key(r, A_RX, suite_a);
	key(r, A_TX2, suite_a);
	key(r, B_TX, suite_b);
	key(r, B_RX, suite_b);
	ctx(r, 0, A_TX, A_RX, suite_a, true, true);
	ctx(r, 1, B_TX, B_RX, suite_b, true, true);
	stream(r, A, PORT_A, 0, B, B_RTCP, "192.0.2.1:4000");
	stream(r, B, PORT_B, 1, A, MEDIA_NONE, "192.0.2.2:5000");
	stream(r, B_RTCP, PORT_B_RTCP, 1, MEDIA_NONE, A, "192.0.2.2:5001");
	return r;
}

static void rig_free(struct rig *r)
{
	media_destroy(r->m);
	arena_destroy(&r->a);
	free(r);
}

/* A terminal's packet: plain bytes protected by the reference (a job from plain to SRTP). Returns its length. */
static uint32_t protect(const struct rig *r, uint8_t *to, const uint8_t *plain, uint32_t len,
	uint32_t hdr, uint32_t slot, enum srtp_suite_id suite, uint64_t index, bool rtcp)
{
	static uint8_t in[ARENA_SLOT_LEN], out[ARENA_SLOT_LEN];
	const struct srtp_suite *s = srtp_suite_get(suite);
	uint32_t tag = rtcp ? s->rtcp_tag_len : s->rtp_tag_len, word = rtcp ? 4 : 0,
		 mki = r->mki_len;
	bool aead = s->auth == XC_AUTH_GCM;
	struct xc_job j = {.tx_index = index,
		.tx_key = slot + rtcp,
		.rx_key = rtcp,
		.hdr_len = hdr,
		.body_len = len - hdr,
		.rx_tag_off = len,
		.tx_tag_off = aead ? len : len + word + mki,
		.ssrc = be32(plain + (rtcp ? 4 : 8)),
		.flags = rtcp ? XC_JOB_RTCP : 0};

	if (suite == SUITE_PLAIN) {
		memcpy(to, plain, len);
		return len;
	}
	memcpy(in, plain, len);
	assert_int_equal(srtp_ref_job(&j, r->a.key, in, out), XC_OK);
	memset(out + len + word + (aead ? tag : 0), 0xa0 + (int)slot, mki);
	memcpy(to, out, len + word + mki + tag);
	return len + word + mki + tag;
}

static const char *const source[] = {"192.0.2.1:4000", "192.0.2.2:5000", "192.0.2.2:5001"};

static uint8_t *next_slot(struct rig *r, uint32_t from, uint16_t port)
{
	struct media_in *in = &r->in[r->n];

	*in = (struct media_in){.local = {.port = port},
		.slot = r->n,
		.in_off = r->n * ARENA_SLOT_LEN + ARENA_HEADROOM,
		.t_ns = 1000,
		.verdict = 0xff};
	assert_int_equal(endpoint_parse(&in->src, str_from(source[from])), 0);
	r->n++;
	return r->a.in + in->in_off;
}

static void plain_rtp(uint8_t p[172], uint32_t ssrc, uint64_t index)
{
	memset(p, (int)index, 172);
	p[0] = 0x80;
	p[1] = 8;
	put_be16(p + 2, (uint16_t)index);
	put_be32(p + 8, ssrc);
}

static void plain_rtcp(uint8_t p[28], uint32_t ssrc, uint32_t number)
{
	memset(p, (int)number, 28);
	p[0] = 0x80;
	p[1] = 200;
	put_be16(p + 2, 6);
	put_be32(p + 4, ssrc);
}

/* A's terminal sends the packet with this 48-bit index; returns its bytes in the arena, to be damaged. */
static uint8_t *a_sends(struct rig *r, uint32_t ssrc, uint64_t index, uint32_t slot)
{
	uint8_t p[172], *at = next_slot(r, A, PORT_A);

	plain_rtp(p, ssrc, index);
	r->in[r->n - 1].len = protect(r, at, p, 172, 12, slot, r->suite_a, index, false);
	return at;
}

static uint8_t *a_sends_rtcp(struct rig *r, uint32_t ssrc, uint32_t index)
{
	uint8_t p[28], *at = next_slot(r, A, PORT_A);

	plain_rtcp(p, ssrc, index);
	r->in[r->n - 1].len = protect(r, at, p, 28, 8, A_TX, r->suite_a, index, true);
	return at;
}

/* The burst goes through. */
static void run(struct rig *r)
{
	uint32_t jobs = media_prepare(r->m, &r->a, r->in, r->n, r->a.job);

	for (uint32_t i = 0; i < jobs; i++)
		r->a.status[i] = srtp_ref_job(&r->a.job[i], r->a.key, r->a.in, r->a.out);
	r->outs = media_complete(r->m, &r->a, r->in, r->n, r->a.job, r->a.status, jobs, r->out);
	media_sent(r->m, r->in, r->out, r->outs);
	r->n = 0;
}

/* What left is, byte for byte, what B's terminal expects under its key with this index. */
static void b_gets(
	const struct rig *r, uint32_t k, uint32_t ssrc, uint64_t index, uint64_t tx_index)
{
	uint8_t p[172], want[256];
	uint32_t len;

	assert_true(k < r->outs);
	plain_rtp(p, ssrc, index);
	len = protect(r, want, p, 172, 12, B_RX, r->suite_b, tx_index, false);
	assert_int_equal(r->out[k].len, len);
	assert_memory_equal(r->a.out + r->out[k].out_off, want, len);
	assert_int_equal(r->out[k].local.port, PORT_B);
	assert_int_equal(r->out[k].dst.port, 5000);
}

static uint64_t dropped(const struct rig *r, uint32_t s, enum media_verdict why)
{
	return atomic_load(&media_stream_counters(r->m, s)->drops[why]);
}

/* --- Rules -------------------------------------------------------------------------------------------------------- */

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

				a_sends(r, 7, 100, A_TX);
				a_sends_rtcp(r, 7, 1);
				run(r);
				assert_int_equal(r->outs, 2);
				b_gets(r, 0, 7, 100, 100);
				/* RTCP came on A's one port and leaves by B's second, under index 0 of ours. */
				plain_rtcp(p, 7, 1);
				if (suites[k] != SUITE_NULL_80) {
					len = protect(r, want, p, 28, 8, B_RX, suites[k], 0, true);
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
		a_sends(r, 7, order[i], A_TX);
		run(r);
		assert_int_equal(r->outs, 1);
		b_gets(r, 0, 7, order[i], order[i]);
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
	a_sends(r, 7, 500, A_TX);
	a_sends(r, 7, 500, A_TX); /* both authenticate: found out in complete */
	run(r);
	assert_int_equal(r->outs, 1);
	assert_int_equal(r->in[1].verdict, MEDIA_DROP_REPLAY);
	a_sends(r, 7, 500, A_TX);
	a_sends(r, 7, 500 - SRTP_REPLAY_WINDOW, A_TX);
	a_sends(r, 7, 501 - SRTP_REPLAY_WINDOW, A_TX);
	run(r);
	assert_int_equal(r->outs, 1); /* the last one is inside the window */
	assert_int_equal(dropped(r, A, MEDIA_DROP_REPLAY), 3);
	a_sends_rtcp(r, 7, 9);
	a_sends_rtcp(r, 7, 9);
	run(r);
	assert_int_equal(r->outs, 1);
	rig_free(r);
}

/* The whole state of contexts and streams, but prepare's scratch. */
static void *snapshot(const struct rig *r, size_t *len)
{
	size_t c = 4 * sizeof(struct media_ctx), s = 4 * sizeof(struct media_stream);
	uint8_t *copy = malloc(c + s);

	assert_non_null(copy);
	memcpy(copy, r->m->ctx, c);
	memcpy(copy + c, r->m->stream, s);
	for (int i = 0; i < 4; i++) {
		((struct media_ctx *)copy)[i].scratch_burst = 0;
		((struct media_ctx *)copy)[i].scratch_rtcp = 0;
	}
	*len = c + s;
	return copy;
}

static void a_forged_packet_changes_nothing(void **state)
{
	struct rig *r = rig_new(SUITE_AES_CM_128_80, SUITE_AES_CM_128_32, 0);
	size_t len;
	void *before, *after;

	(void)state;
	a_sends(r, 7, 65000, A_TX);
	a_sends_rtcp(r, 7, 3);
	run(r);
	before = snapshot(r, &len);
	a_sends(r, 7, 65001, A_TX)[40] ^= 1;         /* payload */
	put_be16(a_sends(r, 7, 65001, A_TX) + 2, 1); /* a jump over the roll-over */
	put_be32(a_sends(r, 8, 1, A_TX) + 8, 9);     /* an SSRC of its own */
	a_sends(r, 7, 65001, A_TX2);                 /* another key */
	a_sends_rtcp(r, 7, 4)[20] ^= 0x80;
	a_sends(r, 7, 65001, A_TX)[5] ^= 1;
	r->in[5].src.port = 4999; /* from elsewhere */
	run(r);
	assert_int_equal(r->outs, 0);
	after = snapshot(r, &len);
	assert_memory_equal(before, after, len);
	assert_int_equal(dropped(r, A, MEDIA_DROP_BAD_TAG), 5);
	assert_int_equal(dropped(r, A, MEDIA_DROP_SOURCE), 1);
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
		uint8_t *p = a_sends_rtcp(r, 7, i);

		if (i >= 3)
			p[20] ^= 1; /* junk behind the good ones */
	}
	run(r);
	assert_int_equal(r->outs, 3);
	for (uint32_t k = 0; k < 3; k++) /* E||index before the tag */
		assert_int_equal(be32(r->a.out + r->out[k].out_off + 28), 0x80000000u + k);
	a_sends_rtcp(r, 7, 100);
	run(r);
	assert_int_equal(be32(r->a.out + r->out[0].out_off + 28), 0x80000003u);
	r->m->ctx[1].tx_rtcp_next = SRTCP_INDEX_MAX + 1;
	a_sends_rtcp(r, 7, 101);
	run(r);
	assert_int_equal(r->in[0].verdict, MEDIA_DROP_INDEX_END);
	rig_free(r);
}

static void a_plain_side_cannot_make_us_repeat_a_nonce(void **state)
{
	struct rig *r = rig_new(SUITE_PLAIN, SUITE_AES_CM_128_80, 0);

	(void)state;
	for (int twice = 0; twice < 2; twice++)
		for (uint64_t i = 1000; i < 1010; i++)
			a_sends(r, 7, i, 0);
	run(r);
	assert_int_equal(r->outs, 10);
	assert_int_equal(dropped(r, A, MEDIA_DROP_NONCE), 10);
	a_sends(r, 7, 1005, 0);
	a_sends(r, 7, 1000 - SRTP_REPLAY_WINDOW, 0);
	run(r);
	assert_int_equal(r->outs, 0);
	/* Other SSRCs must not push the first one's memory out. */
	for (uint32_t ssrc = 100; ssrc < 100 + MEDIA_SSRCS; ssrc++)
		a_sends(r, ssrc, 1, 0);
	run(r);
	assert_int_equal(r->outs, MEDIA_SSRCS - 1);
	assert_int_equal(dropped(r, A, MEDIA_DROP_SSRC_LIMIT), 1);
	a_sends(r, 7, 1005, 0);
	run(r);
	assert_int_equal(r->in[0].verdict, MEDIA_DROP_NONCE);
	rig_free(r);
}

static void a_new_key_from_one_side_leaves_the_others_index_alone(void **state)
{
	struct rig *r = rig_new(SUITE_AES_CM_128_80, SUITE_AES_CM_128_32, 0);

	(void)state;
	a_sends(r, 7, 65535, A_TX);
	run(r);
	a_sends(r, 7, 65536, A_TX);
	run(r);
	assert_int_equal(r->outs, 1);
	/* Nothing new: the same again must still be a replay. */
	ctx(r, 0, A_TX, A_RX, r->suite_a, false, false);
	a_sends(r, 7, 65536, A_TX);
	run(r);
	assert_int_equal(r->in[0].verdict, MEDIA_DROP_REPLAY);
	/* A re-keys: its roll-over counter starts at 0 again (RFC 4568 6.4), ours toward B goes on. */
	ctx(r, 0, A_TX2, A_RX, r->suite_a, true, false);
	a_sends(r, 7, 1, A_TX2);
	run(r);
	b_gets(r, 0, 7, 1, 65537);
	rig_free(r);
}

static void hold_keeps_the_index_moving(void **state)
{
	struct rig *r = rig_new(SUITE_AES_CM_128_80, SUITE_AES_CM_128_80, 0);
	struct media_cmd hold = stream_cmd(B, PORT_B, 1, A, MEDIA_NONE, "192.0.2.2:5000");

	(void)state;
	r->m->stream[B].learn.remote = (struct endpoint){0}; /* never learned */
	hold.stream.remote = (struct endpoint){.family = AF_INET, .port = 5000};
	assert_int_equal(media_command(r->m, &hold), 0);
	for (uint64_t i = 40000; i < 140000; i += 20000) {
		a_sends(r, 7, i, A_TX);
		run(r);
		assert_int_equal(r->outs, 0);
	}
	assert_int_equal(dropped(r, A, MEDIA_DROP_NO_DESTINATION), 5);
	assert_true(r->m->ctx[0].rx_rtp[0].seen.last == 120000);
	stream(r, B, PORT_B, 1, A, MEDIA_NONE, "192.0.2.2:5000");
	a_sends(r, 7, 140000, A_TX);
	run(r);
	assert_int_equal(r->outs, 1);
	rig_free(r);
}

static void what_is_no_media_goes_its_way(void **state)
{
	static const struct {
		uint16_t port;
		const char *bytes;
		uint32_t len;
		enum media_verdict want;
	} T[] = {
		{PORT_A, "\x00\x01\x00\x00", 4, MEDIA_PASS},           /* STUN */
		{PORT_A, "\x16\xfe\xff\x00", 4, MEDIA_PASS},           /* DTLS */
		{PORT_A, "\x80\x00", 2, MEDIA_DROP_MALFORMED},         /* cut off */
		{PORT_A, "\xc0\x00\x00\x00", 4, MEDIA_DROP_MALFORMED}, /* version 3 */
		{PORT_A, "", 0, MEDIA_DROP_MALFORMED},                 /* empty */
		{PORT_A, "\x80\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x07ninebytes", 21,
			MEDIA_DROP_MALFORMED}, /* no room for a tag */
		{PORT_A, "", ARENA_MAX_PACKET + 1, MEDIA_DROP_TOO_LONG},
		{PORT_B_RTCP, "\x80\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x07", 12,
			MEDIA_DROP_MALFORMED}, /* RTP on an RTCP port */
		{30006, "\x80\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x07", 12,
			MEDIA_PASS}, /* nobody's port */
		{29999, "\x80\x00", 2, MEDIA_PASS},
		{40000, "\x80\x00", 2, MEDIA_PASS},
	};
	struct rig *r = rig_new(SUITE_AES_CM_128_80, SUITE_AES_CM_128_32, 0);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		uint8_t *p = next_slot(r, T[i].port == PORT_A ? A : B_RTCP, T[i].port);

		r->in[0].len = T[i].len;
		memset(p, 0, 32);
		memcpy(p, T[i].bytes, T[i].len > 21 ? 0 : T[i].len);
		run(r);
		assert_int_equal(r->outs, 0);
		assert_int_equal(r->in[0].verdict, T[i].want);
	}
	assert_int_equal(media_drop_count(r->m, MEDIA_DROP_UNKNOWN_PORT), 3);
	assert_int_equal(media_drop_count(r->m, MEDIA_DROP_NOT_MEDIA), 2);
	rig_free(r);
}

static void wrong_mki_is_told_from_a_bad_tag(void **state)
{
	struct rig *r = rig_new(SUITE_AES_CM_128_80, SUITE_AES_CM_128_80, 4);

	(void)state;
	a_sends(r, 7, 1, A_TX)[172] ^= 1;
	run(r);
	assert_int_equal(r->in[0].verdict, MEDIA_DROP_WRONG_MKI);
	rig_free(r);
}

static void commands_with_bad_handles_change_nothing(void **state)
{
	struct rig *r = rig_new(SUITE_AES_CM_128_80, SUITE_AES_CM_128_80, 0);
	struct media_cmd good = stream_cmd(3, 30004, 0, B, B, "192.0.2.9:1"), bad;
	size_t len;
	void *before = snapshot(r, &len), *after;

	(void)state;
	bad = good, bad.id = 4;
	assert_int_equal(media_command(r->m, &bad), -EINVAL);
	bad = good, bad.stream.local.port = 30008;
	assert_int_equal(media_command(r->m, &bad), -EINVAL);
	bad = good, bad.stream.local.addr = 1;
	assert_int_equal(media_command(r->m, &bad), -EINVAL);
	bad = good, bad.stream.local.port = PORT_A; /* taken */
	assert_int_equal(media_command(r->m, &bad), -EINVAL);
	bad = good, bad.stream.ctx = 4;
	assert_int_equal(media_command(r->m, &bad), -EINVAL);
	bad = good, bad.stream.rtp_to = 4;
	assert_int_equal(media_command(r->m, &bad), -EINVAL);
	bad = (struct media_cmd){.type = MEDIA_CTX_SET, .id = 4};
	assert_int_equal(media_command(r->m, &bad), -EINVAL);
	bad = (struct media_cmd){.type = MEDIA_STREAM_DEL, .id = 4};
	assert_int_equal(media_command(r->m, &bad), -EINVAL);
	after = snapshot(r, &len);
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

	(void)state;
	a_sends(r, 7, 1, A_TX);
	run(r);
	assert_int_equal(media_command(r->m, &del), 0);
	a_sends(r, 7, 2, A_TX);
	run(r);
	assert_int_equal(r->in[0].verdict, MEDIA_PASS);
	stream(r, 3, PORT_A, 0, B, B_RTCP, "192.0.2.1:4000");
	a_sends(r, 7, 3, A_TX);
	run(r);
	assert_int_equal(r->outs, 1);
	assert_int_equal(atomic_load(&media_stream_counters(r->m, 3)->packets), 1);
	rig_free(r);
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
