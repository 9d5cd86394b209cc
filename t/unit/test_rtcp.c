/* SPDX-License-Identifier: GPL-2.0-or-later */
/* RTCP reports: their contents and the resulting statistics of a call, through every cipher that
 * can be read. */
#include "media_rig.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "proto/hep.h"

#define SEC 1000000000ull

/* --- Reports ---------------------------------------------------------------------------------- */

static uint32_t put_sender(uint8_t *p, uint32_t ssrc, uint64_t ntp, uint32_t rtp, uint32_t blocks)
{
	p[0] = (uint8_t)(0x80 | blocks);
	p[1] = 200;
	put_be16(p + 2, (uint16_t)(6 + 6 * blocks));
	put_be32(p + 4, ssrc);
	put_be32(p + 8, (uint32_t)(ntp >> 32));
	put_be32(p + 12, (uint32_t)ntp);
	put_be32(p + 16, rtp);
	put_be32(p + 20, 1000);
	put_be32(p + 24, 160000);
	return 28;
}

static uint32_t put_receiver(uint8_t *p, uint32_t ssrc, uint32_t blocks)
{
	p[0] = (uint8_t)(0x80 | blocks);
	p[1] = 201;
	put_be16(p + 2, (uint16_t)(1 + 6 * blocks));
	put_be32(p + 4, ssrc);
	return 8;
}

static uint32_t put_block(uint8_t *p, const struct rtcp_block *b)
{
	put_be32(p, b->ssrc);
	put_be32(p + 4, (uint32_t)b->fraction << 24 | ((uint32_t)b->lost & 0xffffff));
	put_be32(p + 8, b->highest);
	put_be32(p + 12, b->jitter);
	put_be32(p + 16, b->lsr);
	put_be32(p + 20, b->dlsr);
	return 24;
}

/* SDES with a name: 16 bytes. */
static uint32_t put_name(uint8_t *p, uint32_t ssrc)
{
	static const uint8_t rest[] = {1, 5, 'a', 'b', 'c', 'd', 'e', 0};

	p[0] = 0x81;
	p[1] = 202;
	put_be16(p + 2, 3);
	put_be32(p + 4, ssrc);
	memcpy(p + 8, rest, sizeof(rest));
	return 16;
}

static void reports_are_read_as_they_were_written(void **state)
{
	static const struct rtcp_block want = {7, 64, -3, 70000, 320, 0x12345678, 0x10000};
	struct rtcp_info i;
	uint8_t p[200];
	uint32_t n;

	(void)state;
	n = put_sender(p, 5, 0x1122334455667788, 99, 1);
	n += put_block(p + n, &want);
	n += put_name(p + n, 5);
	assert_int_equal(rtcp_read(&i, p, n), 0);
	assert_true(i.sender && i.ssrc == 5 && i.ntp == 0x1122334455667788 && i.rtp == 99);
	assert_int_equal(i.packets, 1000);
	assert_int_equal(i.blocks, 1);
	assert_true(i.block[0].ssrc == 7 && i.block[0].fraction == 64 && i.block[0].lost == -3);
	assert_true(i.block[0].highest == 70000 && i.block[0].jitter == 320);
	assert_true(i.block[0].lsr == 0x12345678 && i.block[0].dlsr == 0x10000);
	/* a name first, as some phones write */
	n = put_name(p, 5);
	n += put_receiver(p + n, 5, 1);
	n += put_block(p + n, &want);
	assert_int_equal(rtcp_read(&i, p, n), 0);
	assert_true(!i.sender && i.blocks == 1);
	/* claims more blocks than there are */
	n = put_receiver(p, 5, 3);
	n += put_block(p + n, &want);
	assert_int_equal(rtcp_read(&i, p, n), 0);
	assert_int_equal(i.blocks, 1);
	assert_int_equal(rtcp_read(&i, p, n - 1), 0);
	assert_int_equal(i.blocks, 0);
	/* only names, an empty packet, and a packet that is not RTCP */
	n = put_name(p, 5);
	assert_int_equal(rtcp_read(&i, p, n), -EBADMSG);
	assert_int_equal(rtcp_read(&i, p, 0), -EBADMSG);
	memset(p, 0, sizeof(p));
	assert_int_equal(rtcp_read(&i, p, sizeof(p)), -EBADMSG);
}

static void opinions_fall_with_delay_jitter_and_loss(void **state)
{
	static const struct {
		uint32_t rtt_us, jitter_us, loss, from, to;
	} T[] = {
		{0, 0, 0, 435, 445},
		{100000, 5000, 0, 425, 440},
		{400000, 5000, 0, 370, 425},
		{0, 0, 500, 390, 415},
		{0, 0, 2500, 130, 230},
		{0, 0, 10000, 100, 100},
		{4000000, 0, 0, 100, 110},
		{0, 10000000, 0, 100, 100},
	};
	uint32_t before = 500;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		uint32_t mos = rtcp_mos(T[i].rtt_us, T[i].jitter_us, T[i].loss);

		if (mos < T[i].from || mos > T[i].to)
			fail_msg("%u us, %u us, %u: %u", T[i].rtt_us, T[i].jitter_us, T[i].loss,
				mos);
	}
	for (uint32_t loss = 0; loss <= 10000; loss += 100) {
		uint32_t mos = rtcp_mos(50000, 2000, loss);

		assert_true(mos <= before);
		before = mos;
	}
}

static void hep_holds_what_fits_and_no_two_families(void **state)
{
	struct hep h = {.kind = HEP_RTCP_JSON,
		.t_ns = 5 * SEC + 7000,
		.capture_id = 3,
		.correlation = STR("call"),
		.payload = STR("{}")};
	uint8_t out[256], exact[256];
	int len;

	(void)state;
	assert_int_equal(hep_write(out, sizeof(out), &h), -EINVAL);
	assert_int_equal(endpoint_parse(&h.src, STR("[2001:db8::1]:1000")), 0);
	assert_int_equal(endpoint_parse(&h.dst, STR("192.0.2.1:2000")), 0);
	assert_int_equal(hep_write(out, sizeof(out), &h), -EINVAL);
	assert_int_equal(endpoint_parse(&h.dst, STR("[2001:db8::2]:2000")), 0);
	len = hep_write(out, sizeof(out), &h);
	/* chunks of 1, 1, 16, 16, 2, 2, 4, 4, 1, 4, 4, 2 bytes, each with a header of six; six
	 * bytes first */
	assert_int_equal(len, 6 + 12 * 6 + 57);
	assert_int_equal(be16(out + 4), len);
	assert_memory_equal(out, "HEP3", 4);
	assert_memory_equal(out + len - 2, "{}", 2);
	for (int cap = 0; cap < len; cap++)
		assert_int_equal(hep_write(exact, (size_t)cap, &h), -EMSGSIZE);
	assert_int_equal(hep_write(exact, (size_t)len, &h), len);
	assert_memory_equal(out, exact, (size_t)len);
}

/* --- On their way through --------------------------------------------------------------------- */

static void send_at(struct rig *r, uint32_t from, struct rig_plain plain, uint64_t t_ns)
{
	uint8_t *at = rig_slot(r, from, from == A ? PORT_A : PORT_B_RTCP);

	r->in[r->n - 1].t_ns = t_ns;
	plain.hdr = 8;
	plain.rtcp = true;
	r->in[r->n - 1].len = rig_protect(r, at, plain);
	rig_run(r);
	assert_int_equal(r->outs, 1);
}

static const enum srtp_suite_id suites[] = {SUITE_PLAIN, SUITE_AES_CM_128_80, SUITE_AES_192_CM_80,
	SUITE_AES_256_CM_32, SUITE_AEAD_AES_128_GCM, SUITE_AEAD_AES_256_GCM, SUITE_NULL_80};

static void quality_follows_from_reports_whatever_the_suites(void **state)
{
	(void)state;
	for (size_t a = 0; a < ARRAY_LEN(suites); a++)
		for (size_t b = 0; b < ARRAY_LEN(suites); b++) {
			struct rig *r = rig_new(suites[a], suites[b], 0);
			const uint64_t ntp = 1000ull << 32 | 0x40000000;
			struct rtcp_block block = {
				.ssrc = 7, .fraction = 64, .lost = 17, .jitter = 320};
			struct media_quality_totals totals;
			struct media_quality q;
			uint8_t p[200];
			uint32_t n;

			n = put_sender(p, 7, ntp, 5000, 0);
			n += put_name(p + n, 7);
			send_at(r, A,
				(struct rig_plain){.packet = p,
					.len = n,
					.slot = A_TX,
					.suite = suites[a],
					.index = 1},
				100 * SEC);
			/* five seconds and 80,000 ticks later: a clock of 16 kHz */
			n = put_sender(p, 7, ntp + (5ull << 32), 5000 + 80000, 0);
			send_at(r, A,
				(struct rig_plain){.packet = p,
					.len = n,
					.slot = A_TX,
					.suite = suites[a],
					.index = 2},
				105 * SEC);
			media_stream_quality(r->m, A, &q);
			assert_int_equal(q.samples, 0);
			/* received by B, which answers 30 ms later by its own clock; we get the
			 * answer after 100 ms */
			block.lsr = (uint32_t)((ntp + (5ull << 32)) >> 16);
			block.dlsr = 65536 * 30 / 1000;
			n = put_receiver(p, 9, 1);
			n += put_block(p + n, &block);
			n += put_name(p + n, 9);
			send_at(r, B_RTCP,
				(struct rig_plain){.packet = p,
					.len = n,
					.slot = B_TX,
					.suite = suites[b],
					.index = 1},
				105 * SEC + SEC / 10);
			media_stream_quality(r->m, A, &q);
			assert_int_equal(q.samples, 1);
			assert_int_equal(q.lost, 17);
			assert_int_equal(q.mean[QUALITY_JITTER], 20000);
			assert_int_equal(q.mean[QUALITY_LOSS], 2500);
			assert_in_range(q.mean[QUALITY_RTT_LEG], 69990, 70030);
			assert_int_equal(
				q.mean[QUALITY_MOS], rtcp_mos(q.mean[QUALITY_RTT], 20000, 2500));
			/* a second report without loss */
			block.fraction = 0;
			send_at(r, B_RTCP,
				(struct rig_plain){.packet = p,
					.len = put_receiver(p, 9, 1) + put_block(p + 8, &block),
					.slot = B_TX,
					.suite = suites[b],
					.index = 2},
				106 * SEC);
			media_stream_quality(r->m, A, &q);
			assert_int_equal(q.samples, 2);
			assert_true(q.low[QUALITY_MOS] < q.mean[QUALITY_MOS] &&
				q.mean[QUALITY_MOS] < q.high[QUALITY_MOS]);
			assert_int_equal(q.low_ns, 105 * SEC + SEC / 10);
			assert_int_equal(q.high_ns, 106 * SEC);
			media_quality_totals(r->m, &totals);
			assert_int_equal(totals.reports, 2);
			rig_free(r);
		}
}

/* A packet that does not leave adds nothing. A full ring loses reports only. */
static void forged_and_repeated_reports_do_not_count(void **state)
{
	struct rig *r = rig_new(SUITE_AES_CM_128_80, SUITE_AES_CM_128_80, 0);
	struct rtcp_block block = {.ssrc = 7, .fraction = 255};
	struct media_rtcp_report got;
	struct media_quality q;
	struct ring tap;
	uint8_t p[64], *at;
	uint32_t n;

	(void)state;
	assert_int_equal(ring_init(&tap, 4, sizeof(got)), 0);
	media_rtcp_tap(r->m, &tap);
	n = put_receiver(p, 9, 1) + put_block(p + 8, &block);
	for (int good = 0; good < 2; good++) {
		at = rig_slot(r, B_RTCP, PORT_B_RTCP);
		r->in[0].len = rig_protect(
			r, at, (struct rig_plain){p, n, 8, B_TX, SUITE_AES_CM_128_80, 1, true});
		at[12] ^= !good;
		rig_run(r);
		assert_int_equal(r->outs, good);
		media_stream_quality(r->m, A, &q);
		assert_int_equal(q.samples, good);
	}
	at = rig_slot(r, B_RTCP, PORT_B_RTCP);
	r->in[0].len =
		rig_protect(r, at, (struct rig_plain){p, n, 8, B_TX, SUITE_AES_CM_128_80, 1, true});
	rig_run(r);
	assert_int_equal(r->outs, 0);
	for (uint32_t i = 2; i < 12; i++)
		send_at(r, B_RTCP,
			(struct rig_plain){.packet = p,
				.len = n,
				.slot = B_TX,
				.suite = SUITE_AES_CM_128_80,
				.index = i},
			i * SEC);
	media_stream_quality(r->m, A, &q);
	assert_int_equal(q.samples, 11);
	for (n = 0; ring_pop(&tap, &got); n++)
		assert_true(got.stream == B_RTCP && got.info.block[0].fraction == 255);
	assert_int_equal(n, 4);
	ring_fini(&tap);
	rig_free(r);
}

#define STATIC_STR(x)            \
	{                        \
		x, sizeof(x) - 1 \
	}
#define RR   "\x80\xc9\0\1\0\0\0\7"
#define APP  "\x80\xcc\0\2\0\0\0\7name"
#define PSFB "\x81\xce\0\2\0\0\0\7\0\0\0\7"
#define NACK "\x81\xcd\0\3\0\0\0\7\0\0\0\7\0\1\0\2"

static void feedback_is_taken_out(void **state)
{
	static const struct {
		struct str in, out;
	} T[] = {
		{STATIC_STR(RR APP), STATIC_STR(RR APP)},
		{STATIC_STR(RR PSFB APP), STATIC_STR(RR APP)},
		{STATIC_STR(RR APP NACK PSFB), STATIC_STR(RR APP)},
		{STATIC_STR(PSFB RR), STATIC_STR(RR)},
		{STATIC_STR(PSFB), STATIC_STR("")},
		{STATIC_STR(NACK PSFB), STATIC_STR("")},
		{STATIC_STR(""), STATIC_STR("")},
		/* Malformed from this place on: a length beyond the end, another version, less than
		 * a header. */
		{STATIC_STR(PSFB "\x80\xce\0\7\0\0\0\7"), STATIC_STR("\x80\xce\0\7\0\0\0\7")},
		{STATIC_STR(RR "\x40\xce\0\1\0\0\0\7"), STATIC_STR(RR "\x40\xce\0\1\0\0\0\7")},
		{STATIC_STR(PSFB "\x81\xce\0"), STATIC_STR("\x81\xce\0")},
	};
	uint8_t p[64];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		if (T[i].in.len)
			memcpy(p, T[i].in.s, T[i].in.len);
		assert_int_equal(rtcp_drop_feedback(p, T[i].in.len), T[i].out.len);
		assert_memory_equal(p, T[i].out.s, T[i].out.len);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(feedback_is_taken_out),
		cmocka_unit_test(reports_are_read_as_they_were_written),
		cmocka_unit_test(opinions_fall_with_delay_jitter_and_loss),
		cmocka_unit_test(hep_holds_what_fits_and_no_two_families),
		cmocka_unit_test(quality_follows_from_reports_whatever_the_suites),
		cmocka_unit_test(forged_and_repeated_reports_do_not_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
