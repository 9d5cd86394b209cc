/* SPDX-License-Identifier: GPL-2.0-or-later */
/* RTP and RTCP headers at every length, and other packets on a media port. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "proto/rtp.h"

static void headers_are_measured_whole_or_refused(void **state)
{
	static const struct {
		uint8_t head[4];
		int csrcs, words; /* words: of the extension, -1 = no extension */
		int want;
	} T[] = {
		{{0x80, 0x00}, 0, -1, 12},
		{{0x82, 0x88}, 2, -1, 20},
		{{0x8f, 0x7f}, 15, -1, 72},
		{{0x90, 0x00}, 0, 0, 16},
		{{0x91, 0x00}, 1, 3, 32},
		{{0x9f, 0x00}, 15, 10, 116},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		uint8_t p[128] = {
			T[i].head[0], T[i].head[1], 0x12, 0x34, 1, 2, 3, 4, 0xca, 0xfe, 0xba, 0xbe};
		struct rtp_hdr h = {0};

		if (T[i].words >= 0)
			put_be16(p + 12 + 4 * T[i].csrcs + 2, (uint16_t)T[i].words);
		for (int len = 0; len < 128; len++)
			assert_int_equal(rtp_parse(&h, p, (size_t)len),
				len < T[i].want ? -EBADMSG : T[i].want);
		assert_int_equal(h.seq, 0x1234);
		assert_int_equal(h.ssrc, 0xcafebabe);
		assert_int_equal(h.ts, 0x01020304);
		assert_int_equal(h.pt, T[i].head[1] & 0x7f);
		assert_int_equal(h.marker, T[i].head[1] >> 7);
		p[0] ^= 0x40;
		assert_int_equal(rtp_parse(&h, p, sizeof(p)), -EBADMSG);
	}
}

static void rtcp_needs_its_first_eight_bytes(void **state)
{
	uint8_t p[8] = {0x80, 200, 0, 1, 0, 0, 0, 9};
	struct rtcp_hdr h;

	(void)state;
	for (size_t len = 0; len < 8; len++)
		assert_int_equal(rtcp_parse(&h, p, len), -EBADMSG);
	assert_int_equal(rtcp_parse(&h, p, 8), RTCP_FIXED_LEN);
	assert_int_equal(h.ssrc, 9);
	assert_int_equal(h.pt, 200);
	p[0] = 0x40;
	assert_int_equal(rtcp_parse(&h, p, 8), -EBADMSG);
}

static void every_first_byte_has_its_protocol(void **state)
{
	(void)state;
	for (int b = 0; b < 256; b++)
		for (int pt = 0; pt < 256; pt++) {
			uint8_t p[2] = {(uint8_t)b, (uint8_t)pt};
			enum pkt_kind want = b <= 3  ? PKT_STUN
				: b >= 20 && b <= 63 ? PKT_DTLS
				: b >= 128 && b <= 191
				? (pt >= 192 && pt <= 223 ? PKT_RTCP : PKT_RTP)
				: PKT_OTHER;

			assert_int_equal(pkt_classify(p, 2), want);
		}
	assert_int_equal(pkt_classify((const uint8_t *)"\x80", 1), PKT_OTHER);
	assert_int_equal(pkt_classify(NULL, 0), PKT_OTHER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(headers_are_measured_whole_or_refused),
		cmocka_unit_test(rtcp_needs_its_first_eight_bytes),
		cmocka_unit_test(every_first_byte_has_its_protocol),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
