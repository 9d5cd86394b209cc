/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lines that WebRTC terminals demand of an m-line: RFC 8829 5.2.1, 5.3.1. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "proto/sdp_jsep.h"

#define HEAD "v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=-\r\nc=IN IP4 192.0.2.1\r\nt=0 0\r\n"

static void missing_lines_are_written(void **state)
{
	static const struct {
		const char *sdp;
		bool direction;
		const char *want;
	} T[] = {
		{HEAD "m=audio 4000 RTP/AVP 0 8\r\na=rtpmap:8 PCMA/8000\r\n", true,
			"a=rtpmap:0 PCMU/8000\r\na=sendrecv\r\n"},
		{HEAD "m=audio 4000 RTP/AVP 0\r\na=rtpmap:0 PCMU/8000\r\na=recvonly\r\n", true, ""},
		{HEAD "a=sendonly\r\nm=audio 4000 RTP/AVP 96\r\na=rtpmap:96 opus/48000/2\r\n", true,
			"a=sendonly\r\n"},
		{HEAD "m=audio 4000 RTP/AVP 0 101 35 x\r\n", false, "a=rtpmap:0 PCMU/8000\r\n"},
		{"v=0\no=- 1 1 IN IP4 192.0.2.1\ns=-\nc=IN IP4 192.0.2.1\nt=0 0\n"
		 "m=video 4000 RTP/AVP 34\n",
			false, "a=rtpmap:34 H263/90000\n"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct pool *p;
		struct sbuf b;
		struct sdp s;

		assert_int_equal(pool_create(&p, 16384), 0);
		assert_int_equal(sdp_parse(&s, p, str_from(T[i].sdp), NULL), SDP_OK);
		sbuf_init(&b, 0);
		sdp_jsep_write(&b, &s, &s.media[0], T[i].direction);
		if (!str_eq(sbuf_view(&b), str_from(T[i].want)))
			fail_msg("%s: " STR_FMT, T[i].sdp, STR_ARG(sbuf_view(&b)));
		sbuf_fini(&b);
		pool_destroy(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(missing_lines_are_written)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
