/* SPDX-License-Identifier: GPL-2.0-or-later */
/* BUNDLE in session descriptions, and the header extension for the MID. RFC 9143, RFC 8285. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "hex.h"
#include "proto/rtp_ext.h"
#include "proto/sdp_bundle.h"

/* --- RFC 8285 --------------------------------------------------------------------------------- */

#define RTP_X  "9000000000000000000000aa"
#define RTP_CC "9200000000000000000000aa0000000100000002"

static void elements_are_found(void **state)
{
	static const struct {
		const char *packet;
		uint8_t id;
		const char *value; /* NULL: none */
	} T[] = {
		{RTP_X "bede0001"
		       "30610000",
			3, "61"},
		{RTP_X "bede0001"
		       "00306100",
			3, "61"}, /* padding first */
		{RTP_X "bede0002"
		       "10ff316162000000",
			3, "6162"},
		{RTP_CC "bede0001"
			"30610000",
			3, "61"}, /* behind CSRCs */
		{RTP_X "bede0001"
		       "30610000",
			4, NULL},
		{RTP_X "bede0001"
		       "30610000",
			0, NULL},
		{RTP_X "bede0001"
		       "f0303061",
			3, NULL}, /* ID 15 ends the list */
		{RTP_X "bede0001"
		       "02303061",
			3, NULL}, /* and so does ID 0 with a length */
		{RTP_X "bede0001"
		       "3f616263",
			3, NULL}, /* longer than the extension */
		{RTP_X "bede0001"
		       "000000"
		       "30",
			3, NULL},
		{RTP_X "bede0005"
		       "3f"
		       "000102030405060708090a0b0c0d0e0f"
		       "000000",
			3, "000102030405060708090a0b0c0d0e0f"},
		{RTP_X "10000001"
		       "03016100",
			3, "61"},
		{RTP_X "100f0001"
		       "03016100",
			3, "61"}, /* with appbits */
		{RTP_X "10000001"
		       "03000000",
			3, ""}, /* of length 0 */
		{RTP_X "10000001"
		       "ff016100",
			255, "61"},
		{RTP_X "10000001"
		       "03ff6100",
			3, NULL},
		{RTP_X "10000001"
		       "000000"
		       "03",
			3, NULL},
		{RTP_X "abcd0001"
		       "30610000",
			3, NULL}, /* of another kind */
		{RTP_X "bede0000", 3, NULL},
		{RTP_X "bede0002"
		       "30610000",
			3, NULL}, /* truncated */
		{RTP_X "be", 3, NULL},
		{"8000000000000000000000aa"
		 "bede0001"
		 "30610000",
			3, NULL}, /* no X bit */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		uint8_t p[64], want[64];
		size_t len = unhex(p, sizeof(p), T[i].packet), n;
		struct rtp_ext e;
		bool found = rtp_ext_find(&e, p, len, T[i].id);

		if (found != (T[i].value != NULL))
			fail_msg("%s: %d", T[i].packet, found);
		if (!found)
			continue;
		n = unhex(want, sizeof(want), T[i].value);
		assert_int_equal(e.len, n);
		assert_memory_equal(e.at, want, n);
	}
}

#define RTP "8000000000000000000000aa"

static void elements_are_written(void **state)
{
	static const struct {
		const char *packet;
		uint8_t id, drop;
		const char *value, *want; /* NULL: it cannot be written */
	} T[] = {
		{RTP "07", 3, 0, "61",
			RTP_X "bede000130610000"
			      "07"},
		{RTP "07", 3, 0, "616263",
			RTP_X "bede000132616263"
			      "07"},
		{RTP "07", 15, 0, "61",
			RTP_X "100000010f016100"
			      "07"},
		{RTP "07", 3, 0, "0011223344556677889900112233445566",
			RTP_X "10000005"
			      "03110011223344556677889900112233445566"
			      "00"
			      "07"},
		/* In addition to others, */
		{RTP_X "bede000110aa0000"
		       "07",
			3, 0, "61",
			RTP_X "bede000110aa3061"
			      "07"},
		{RTP_X "bede000212aabbcc00000000"
		       "07",
			3, 0, "61",
			RTP_X "bede000212aabbcc30610000"
			      "07"},
		{RTP_X "100f000101010000"
		       "07",
			3, 0, "61",
			RTP_X "100f0002"
			      "01010003"
			      "01610000"
			      "07"},
		/* instead of one of the same ID, and of the one to drop. */
		{RTP_X "bede0002"
		       "3200112210aa0000"
		       "07",
			3, 0, "61",
			RTP_X "bede0001"
			      "10aa3061"
			      "07"},
		{RTP_X "bede0002"
		       "4200112210aa0000"
		       "07",
			3, 4, "61",
			RTP_X "bede0001"
			      "10aa3061"
			      "07"},
		{RTP_X "bede0000"
		       "07",
			3, 0, "61",
			RTP_X "bede0001"
			      "30610000"
			      "07"},
		/* Behind CSRCs. */
		{"8100000000000000000000aa"
		 "000000bb"
		 "07",
			3, 0, "61",
			"9100000000000000000000aa"
			"000000bb"
			"bede000130610000"
			"07"},
		/* Not RFC 8285's, malformed, ended by ID 15, too large for the form. */
		{RTP_X "abcd000130610000"
		       "07",
			3, 0, "61", NULL},
		{RTP_X "bede000130610041"
		       "07",
			3, 0, "61", NULL},
		{RTP_X "bede0001f0610000"
		       "07",
			3, 0, "61", NULL},
		{RTP_X "bede000130610000"
		       "07",
			15, 0, "61", NULL},
		{RTP_X "bede0002"
		       "30610000"
		       "07",
			3, 0, "61", NULL},
		{RTP "07", 0, 0, "61", NULL},
		{RTP "07", 3, 0, "", NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		uint8_t p[96], want[96], value[32];
		size_t len = unhex(p, sizeof(p), T[i].packet), n, had = len;
		struct rtp_ext_edit e = {T[i].id, T[i].drop, {value, 0}};
		int32_t grown;

		e.value.len = (uint8_t)unhex(value, sizeof(value), T[i].value);
		grown = rtp_ext_write(p, len, &e);
		n = unhex(want, sizeof(want), T[i].want ? T[i].want : T[i].packet);
		if ((grown == INT32_MIN) != !T[i].want)
			fail_msg("%s: %d", T[i].packet, grown);
		len += T[i].want ? (size_t)grown : 0;
		assert_true(len <= had + RTP_EXT_GROWTH(e.value.len));
		assert_int_equal(len, n);
		assert_memory_equal(p, want, n);
	}
}

/* --- RFC 9143 --------------------------------------------------------------------------------- */

#define HEAD "v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=-\r\nc=IN IP4 192.0.2.1\r\nt=0 0\r\n"

static struct sdp *parse(struct pool *p, const char *text)
{
	struct sdp *s = pool_alloc(p, sizeof(*s));

	assert_int_equal(sdp_parse(s, p, str_from(text), NULL), SDP_OK);
	return s;
}

static void groups_are_read(void **state)
{
#define A(mid) "m=audio 4000 RTP/AVP 0\r\na=mid:" mid "\r\n"
#define Z(mid) "m=video 0 RTP/AVP 96\r\na=mid:" mid "\r\n"
	static const struct {
		const char *text, *want; /* digits of m-lines, then the tag; "": no group */
	} T[] = {
		{HEAD "a=group:BUNDLE a b\r\n" A("a") A("b"), "010"},
		{HEAD "a=group:bundle b a\r\n" A("a") A("b"), "101"},
		{HEAD "a=group:BUNDLE a b\r\n" A("a") Z("b"), "010"},
		{HEAD "a=group:BUNDLE b a\r\n" A("a") Z("b"), "100"},
		{HEAD "a=group:BUNDLE a b\r\n" Z("a") Z("b"), ""},
		{HEAD "a=group:BUNDLE a\r\n" A("a") A("b"), ""},
		{HEAD "a=group:BUNDLE a a a\r\n" A("a") A("b"), ""},
		{HEAD "a=group:BUNDLE x y z a\r\n" A("a") A("b"), ""},
		{HEAD "a=group:LS a b\r\n" A("a") A("b"), ""},
		{HEAD "a=group:BUNDLE a\r\na=group:BUNDLE a b\r\n" A("a") A("b"), "010"},
		{HEAD "a=group:BUNDLE a b\r\n" A("a") A("a") A("b"), "020"}, /* one name twice */
		{HEAD "a=group:BUNDLE a d b\r\n" A(
			 "a") "m=application 4000 UDP/DTLS/SCTP webrtc-datachannel\r\na=mid:d\r\n" A("b"),
			"020"},
		{HEAD A("a") A("b"), ""},
	};
#undef A
#undef Z

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct sdp_bundle b;
		char got[32] = "";
		struct pool *p;
		size_t n = 0;

		assert_int_equal(pool_create(&p, 1 << 20), 0);
		if (sdp_bundle_read(&b, parse(p, T[i].text))) {
			for (; n < b.n; n++)
				got[n] = (char)('0' + b.media[n]);
			got[n] = (char)('0' + b.tag);
		}
		assert_string_equal(got, T[i].want);
		pool_destroy(p);
	}
}

static void a_group_is_bounded(void **state)
{
	struct sdp_bundle b;
	struct pool *p;
	struct sbuf t;

	(void)state;
	assert_int_equal(pool_create(&p, 1 << 20), 0);
	sbuf_init(&t, 0);
	sbuf_str(&t, STR(HEAD "a=group:BUNDLE"));
	for (int i = 0; i < 60; i++)
		sbuf_printf(&t, " %d", i);
	sbuf_str(&t, STR("\r\n"));
	for (int i = 0; i < 60; i++)
		sbuf_printf(&t, "m=audio 4000 RTP/AVP 0\r\na=mid:%d\r\n", i);
	assert_true(sdp_bundle_read(&b, parse(p, pool_strdup(p, sbuf_view(&t)).s)));
	assert_int_equal(b.n, SDP_BUNDLE_MAX);
	sbuf_fini(&t);
	pool_destroy(p);
}

static void port_0_means_the_transport_of_the_group(void **state)
{
	struct sdp_bundle b;
	struct pool *p;
	struct sdp *s;

	(void)state;
	assert_int_equal(pool_create(&p, 1 << 20), 0);
	s = parse(p,
		HEAD
		"a=group:BUNDLE a b c\r\n"
		"m=audio 9 UDP/TLS/RTP/SAVPF 111\r\nc=IN IP4 198.51.100.7\r\na=mid:a\r\na=rtcp-mux\r\n"
		"a=ice-ufrag:one1\r\na=candidate:1 1 udp 1 198.51.100.7 4000 typ host\r\n"
		"a=fingerprint:sha-256 00\r\n"
		"m=video 0 UDP/TLS/RTP/SAVPF 96\r\nc=IN IP4 0.0.0.0\r\na=mid:b\r\na=bundle-only\r\n"
		"a=recvonly\r\na=ice-ufrag:two2\r\na=rtpmap:96 VP8/90000\r\n"
		"m=video 4004 UDP/TLS/RTP/SAVPF 97\r\na=mid:c\r\na=ice-ufrag:tri3\r\n");
	assert_true(sdp_bundle_read(&b, s));
	assert_int_equal(sdp_bundle_unfold(s, p, &b), 0);
	assert_int_equal(s->media[1].port, 9);
	assert_true(endpoint_eq(&s->media[1].conn.addr, &s->media[0].conn.addr));
	assert_true(s->media[1].ice && s->media[1].dtls && s->media[1].rtcp_mux);
	assert_false(s->media[1].hold);
	assert_int_equal(s->media[1].dir, SDP_DIR_RECVONLY);
	assert_true(str_eq(sdp_attr(s->media[1].lines, STR("ice-ufrag"))->arg, STR("one1")));
	assert_non_null(sdp_attr(s->media[1].lines, STR("candidate")));
	assert_non_null(sdp_attr(s->media[1].lines, STR("rtpmap")));
	assert_int_equal(s->media[1].lines->type, 'm');
	/* An m-line with a port keeps its own: the group may be refused. */
	assert_int_equal(s->media[2].port, 4004);
	assert_true(str_eq(sdp_attr(s->media[2].lines, STR("ice-ufrag"))->arg, STR("tri3")));
	pool_destroy(p);
}

static void what_tells_m_lines_apart_is_read(void **state)
{
	struct pool *p;
	struct sdp *s;
	uint64_t types[2] = {0};
	uint32_t ssrc[RTP_SSRCS];

	(void)state;
	assert_int_equal(pool_create(&p, 1 << 20), 0);
	s = parse(p,
		HEAD
		"a=extmap:7 " RTP_MID_URI "\r\n"
		"m=audio 4000 RTP/AVP 0 111 63 200 x\r\na=extmap:1 urn:other\r\na=extmap:4/sendonly " RTP_MID_URI
		"\r\n"
		"m=video 4002 RTP/AVP 96\r\na=ssrc:7 cname:x\r\na=ssrc:7 msid:x y\r\na=ssrc:0 cname:x\r\n"
		"a=ssrc:-1\r\na=ssrc:4294967296 cname:x\r\na=ssrc:4294967295\r\na=ssrc\r\n"
		"m=video 4004 RTP/AVP 96\r\na=extmap:256 " RTP_MID_URI "\r\n"
		"a=ssrc:1\r\na=ssrc:2\r\na=ssrc:3\r\na=ssrc:4\r\na=ssrc:5\r\n");
	assert_int_equal(sdp_mid_ext(s, &s->media[0]), 4);
	assert_int_equal(sdp_mid_ext(s, &s->media[1]), 7);
	assert_int_equal(sdp_mid_ext(s, &s->media[2]), 7);
	sdp_payload_types(types, &s->media[0]);
	assert_true(types[0] == (1 | 1ull << 63) && types[1] == 1ull << (111 - 64));
	sdp_ssrcs(ssrc, &s->media[0]);
	assert_memory_equal(ssrc, ((uint32_t[RTP_SSRCS]){0}), sizeof(ssrc));
	sdp_ssrcs(ssrc, &s->media[1]);
	assert_memory_equal(ssrc, ((uint32_t[RTP_SSRCS]){7, UINT32_MAX}), sizeof(ssrc));
	sdp_ssrcs(ssrc, &s->media[2]); /* not more than there is room for */
	assert_memory_equal(ssrc, ((uint32_t[RTP_SSRCS]){1, 2, 3}), sizeof(ssrc));
	pool_destroy(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(elements_are_found),
		cmocka_unit_test(elements_are_written),
		cmocka_unit_test(groups_are_read),
		cmocka_unit_test(a_group_is_bounded),
		cmocka_unit_test(port_0_means_the_transport_of_the_group),
		cmocka_unit_test(what_tells_m_lines_apart_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
