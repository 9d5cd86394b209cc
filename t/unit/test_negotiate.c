/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Offer and answer: the SDP for each side, and the resulting configuration of the workers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "call_talk.h"

#define A "198.51.100.1"
#define B "198.51.100.2"

#define L80       "AES_CM_128_HMAC_SHA1_80"
#define L32       "AES_CM_128_HMAC_SHA1_32"
#define CRYPTO(x) "a=crypto:" x "\r\n"

/* Builds a terminal's answer to the last reply: tag and suite of the n-th line, with the terminal's
 * own key. */
static const char *accept_line(struct talk *t, uint32_t n)
{
	struct sdes s;

	assert_true(talk_line(t, 0, n, &s));
	return pool_printf(t->p, "a=crypto:%u %s " K80C "\r\n", (unsigned)s.tag,
		srtp_suite_get(s.master.suite)->name)
		.s;
}

static void profiles_and_suites_are_bridged(void **state)
{
	static const struct {
		const char *proto, *attrs; /* of the offer */
		const char *transport;     /* asked for */
		const char *want_out;      /* towards B */
		const char *want_lines;
		int accept; /* which line B takes, -1: none */
		const char *want_back;
		enum srtp_suite_id a_suite, b_suite;
		const char *why;
	} T[] = {
		{"RTP/AVP", "", "", "RTP/AVP", "", -1, "", SUITE_PLAIN, SUITE_PLAIN, "plain"},
		{"RTP/SAVP", CRYPTO(C80A), "", "RTP/SAVP", "1 " L80 ",2 " L32, 0, "1 " L80,
			SUITE_AES_CM_128_80, SUITE_AES_CM_128_80, "same suite on both sides"},
		{"RTP/SAVP", CRYPTO(C80A), "", "RTP/SAVP", "1 " L80 ",2 " L32, 1, "1 " L80,
			SUITE_AES_CM_128_80, SUITE_AES_CM_128_32, "the main job"},
		{"RTP/SAVP", CRYPTO(C32A) CRYPTO(C80A), "", "RTP/SAVP", "1 " L32 ",2 " L80, 1,
			"1 " L80, SUITE_AES_CM_128_80, SUITE_AES_CM_128_80,
			"offerer's order, and its tags; B's choice is taken when A has it"},
		{"RTP/SAVPF", CRYPTO(C80A), "RTP/AVP", "RTP/AVP", "", -1, "1 " L80,
			SUITE_AES_CM_128_80, SUITE_PLAIN, "SRTP to RTP"},
		{"RTP/AVP", "", "RTP/SAVP", "RTP/SAVP", "1 " L80 ",2 " L32, 1, "", SUITE_PLAIN,
			SUITE_AES_CM_128_32, "RTP to SRTP"},
		{"RTP/SAVP", CRYPTO("7 AEAD_AES_512_XYZ inline:AAAA") CRYPTO("9 " L80 " " K80A), "",
			"RTP/SAVP", "1 " L80 ",2 " L32, 0, "9 " L80, SUITE_AES_CM_128_80,
			SUITE_AES_CM_128_80, "unknown suites are skipped, tags need no order"},
		{"RTP/SAVP", CRYPTO(C80A), "RTP/SAVPF", "RTP/SAVPF", "1 " L80 ",2 " L32, 0,
			"1 " L80, SUITE_AES_CM_128_80, SUITE_AES_CM_128_80, "other profile"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct ng_request r;
		struct talk t;
		uint16_t to_b, to_a;
		const struct media_ctx_cfg *ca, *cb;
		const struct media_stream_cfg *sa, *sb;
		const char *lines = "";
		char answer_attrs[512];

		talk_start(&t);
		r = talk_request("a", "", talk_body(&t, A, 4000, T[i].proto, T[i].attrs));
		r.transport = str_from(T[i].transport);
		talk_send(&t, &r, false);
		if (t.reply.error)
			fail_msg("%s: %s", T[i].why, t.reply.error);
		assert_string_equal(sdp_proto_name(t.sdp->media[0].proto), T[i].want_out);
		assert_string_equal(talk_lines(&t, 0), T[i].want_lines);
		assert_null(strstr(t.reply.sdp.s, "d0RmdmcmVCspeEc3QGZiNWpVLFJhQX1cfHAwJSoj"));
		to_b = t.sdp->media[0].port;
		assert_int_equal(mock_stream(t.m, to_b)->rtp_to, MEDIA_NONE);
		if (T[i].accept >= 0)
			lines = accept_line(&t, (uint32_t)T[i].accept);
		snprintf(answer_attrs, sizeof(answer_attrs), "%s", lines);
		talk_answer(&t, "a", "b", talk_body(&t, B, 5000, T[i].want_out, answer_attrs));
		if (t.reply.error)
			fail_msg("%s: %s", T[i].why, t.reply.error);
		assert_string_equal(sdp_proto_name(t.sdp->media[0].proto), T[i].proto);
		assert_string_equal(talk_lines(&t, 0), T[i].want_back);
		assert_null(strstr(t.reply.sdp.s, "MTIzNDU2Nzg5MDEyMzQ1Njc4"));
		to_a = t.sdp->media[0].port;
		ca = mock_ctx(t.m, to_a);
		cb = mock_ctx(t.m, to_b);
		assert_int_equal(ca->rx.suite, T[i].a_suite);
		assert_int_equal(ca->tx.suite, T[i].a_suite);
		assert_int_equal(cb->rx.suite, T[i].b_suite);
		assert_int_equal(cb->tx.suite, T[i].b_suite);
		sa = mock_stream(t.m, to_a);
		sb = mock_stream(t.m, to_b);
		assert_int_equal(mock_stream(t.m, to_a)->rtp_to, to_b - 30000);
		assert_int_equal(sb->rtp_to, to_a - 30000);
		assert_int_equal(sa->rtcp_to, to_b - 30000 + 1);
		assert_int_equal(sa->remote.port, 4000);
		assert_int_equal(sb->remote.port, 5000);
		assert_int_equal(mock_stream(t.m, to_a + 1)->remote.port, 4001);
		talk_end(&t);
	}
}

/* We send with the key we wrote and receive with the key we read; all four differ. */
static void keys_are_where_they_belong(void **state)
{
	struct sdes to_b, to_a;
	struct talk t;
	uint16_t pa, pb;
	const struct srtp_master *k[4];
	char attrs[512];

	(void)state;
	talk_start(&t);
	talk_offer(&t, "a", "", talk_body(&t, A, 4000, "RTP/SAVP", CRYPTO(C80A)));
	assert_true(talk_line(&t, 0, 0, &to_b));
	pb = t.sdp->media[0].port;
	snprintf(attrs, sizeof(attrs), "%s", accept_line(&t, 0));
	talk_answer(&t, "a", "b", talk_body(&t, B, 5000, "RTP/SAVP", attrs));
	assert_true(talk_line(&t, 0, 0, &to_a));
	pa = t.sdp->media[0].port;
	k[0] = mock_master(t.m, mock_ctx(t.m, pa)->rx.key[0].slot);
	k[1] = mock_master(t.m, mock_ctx(t.m, pa)->tx.key[0].slot);
	k[2] = mock_master(t.m, mock_ctx(t.m, pb)->rx.key[0].slot);
	k[3] = mock_master(t.m, mock_ctx(t.m, pb)->tx.key[0].slot);
	assert_memory_equal(k[0]->key, "wDfvg&T+)xG7@fb5", 16);
	assert_memory_equal(k[1]->key, to_a.master.key, 16);
	assert_memory_equal(k[1]->salt, to_a.master.salt, 14);
	assert_memory_equal(k[2]->key, "1234567890123456", 16);
	assert_memory_equal(k[3]->key, to_b.master.key, 16);
	for (int i = 0; i < 4; i++)
		for (int j = 0; j < i; j++)
			assert_memory_not_equal(k[i]->key, k[j]->key, 16);
	talk_end(&t);
}

static void offers_and_answers_without_common_suite_fail_whole(void **state)
{
	static const struct {
		const char *proto, *attrs;
		uint32_t sdes, only;
		const char *want;
	} T[] = {
		{"RTP/SAVP", "", 0, 0, "No common crypto suite"},
		{"RTP/SAVP", CRYPTO("1 F8_128_HMAC_SHA1_80 " K80A), 0, 0, "No common crypto suite"},
		{"RTP/SAVP", CRYPTO(C80A), NG_SDES_OFF, 0, "No common crypto suite"},
		{"RTP/SAVP", CRYPTO(C80A " FEC_ORDER=SRTP_FEC"), 0, 0, "No common crypto suite"},
		{"RTP/SAVP", CRYPTO(C80A " UNAUTHENTICATED_SRTP"), 0, 0, "No common crypto suite"},
		{"UDP/TLS/RTP/SAVPF", "a=fingerprint:sha-1 AB:CD\r\na=setup:actpass\r\n", 0, 0,
			"DTLS-SRTP is not available"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct ng_request r;
		struct talk t;

		talk_start(&t);
		r = talk_request("a", "", talk_body(&t, A, 4000, T[i].proto, T[i].attrs));
		r.sdes.flags = T[i].sdes;
		r.sdes.only = T[i].only;
		talk_send(&t, &r, false);
		assert_non_null(t.reply.error);
		assert_string_equal(t.reply.error, T[i].want);
		assert_true(mock_relay_empty(t.m));
		talk_end(&t);
	}
}

static void answers_must_fit_the_offer(void **state)
{
	static const struct {
		const char *proto, *attrs;
	} T[] = {
		{"RTP/SAVP", ""},
		{"RTP/AVP", ""},
		{"RTP/SAVP", CRYPTO("5 " L80 " " K80B)}, /* a tag that was not offered */
		{"RTP/SAVP", CRYPTO("1 " L32 " " K80B)}, /* another suite under that tag */
		{"RTP/SAVP", CRYPTO("1 " L80 " inline:short")},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct talk t;
		uint16_t pb;

		talk_start(&t);
		talk_offer(&t, "a", "", talk_body(&t, A, 4000, "RTP/SAVP", CRYPTO(C80A)));
		pb = t.sdp->media[0].port;
		talk_answer(&t, "a", "b", talk_body(&t, B, 5000, T[i].proto, T[i].attrs));
		assert_string_equal(t.reply.error, "No usable crypto line in answer");
		assert_int_equal(mock_stream(t.m, pb)->rtp_to, MEDIA_NONE);
		talk_answer(&t, "a", "b",
			talk_body(&t, B, 5000, "RTP/SAVP", CRYPTO("1 " L80 " " K80B)));
		assert_null(t.reply.error); /* the call is unchanged */
		talk_end(&t);
	}
}

static void sdes_flags_choose_and_sort_suites(void **state)
{
	static const struct {
		struct ng_sdes sdes;
		const char *want;
	} T[] = {
		{{.only = 1u << SUITE_AES_CM_128_32}, "1 " L32},
		{{.no = 1u << SUITE_AES_CM_128_32}, "1 " L80},
		{{.flags = NG_SDES_NONEW}, "1 " L80},
		{{.order = {SUITE_AES_CM_128_32}}, "1 " L32 ",2 " L80},
		{{.offerer_pref = {SUITE_AES_CM_128_32}}, "1 " L80 ",2 " L32},
		{{.only = 1u << SUITE_AES_CM_128_32, .no = 1u << SUITE_AES_CM_128_32}, "1 " L32},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct ng_request r;
		struct talk t;

		talk_start(&t);
		r = talk_request("a", "", talk_body(&t, A, 4000, "RTP/SAVP", CRYPTO(C80A)));
		r.sdes = T[i].sdes;
		talk_send(&t, &r, false);
		assert_null(t.reply.error);
		assert_string_equal(talk_lines(&t, 0), T[i].want);
		talk_end(&t);
	}
}

/* The offerer offered both suites; the answerer took the one in this row. */
static void flags_of_the_answer_choose_what_the_offerer_gets(void **state)
{
	static const uint32_t only80 = 1u << SUITE_AES_CM_128_80,
			      only32 = 1u << SUITE_AES_CM_128_32;
	static const struct {
		const char *offered, *want;
		uint32_t only, no;
	} T[] = {
		{"a=crypto:" C80A "\r\na=crypto:" C32A "\r\n", "2 AES_CM_128_HMAC_SHA1_32", 0,
			0}, /* as B */
		{"a=crypto:" C80A "\r\na=crypto:" C32A "\r\n", "1 AES_CM_128_HMAC_SHA1_80", only80,
			0},
		{"a=crypto:" C80A "\r\na=crypto:" C32A "\r\n", "1 AES_CM_128_HMAC_SHA1_80", 0,
			only32},
		{"a=crypto:" C80A "\r\n", "1 AES_CM_128_HMAC_SHA1_80", only32,
			0}, /* meant for B, so no packet leaves */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct ng_request r;
		char line[128];
		struct talk t;
		struct sdes s;

		talk_start(&t);
		r = talk_request(
			"a", "", talk_body(&t, "192.0.2.1", 4000, "RTP/SAVP", T[i].offered));
		r.sdes.only = only32;
		talk_send(&t, &r, false);
		assert_null(t.reply.error);
		assert_true(talk_line(&t, 0, 0, &s));
		snprintf(line, sizeof(line), "a=crypto:%u AES_CM_128_HMAC_SHA1_32 " K80C "\r\n",
			(unsigned)s.tag);
		r = talk_request("a", "b", talk_body(&t, "192.0.2.2", 5000, "RTP/SAVP", line));
		r.sdes.only = T[i].only;
		r.sdes.no = T[i].no;
		talk_send(&t, &r, true);
		assert_null(t.reply.error);
		assert_string_equal(talk_lines(&t, 0), T[i].want);
		talk_end(&t);
	}
}

static void opportunistic_srtp_goes_with_the_answer(void **state)
{
	(void)state;
	for (int secure = 0; secure < 2; secure++) {
		struct ng_request r;
		struct talk t;
		uint16_t pb;
		char attrs[512] = "";

		talk_start(&t);
		r = talk_request("a", "", talk_body(&t, A, 4000, "RTP/AVP", CRYPTO(C80A)));
		r.osrtp = NG_OSRTP_OFFER | NG_OSRTP_ACCEPT;
		talk_send(&t, &r, false);
		assert_int_equal(t.sdp->media[0].proto, SDP_RTP_AVP);
		assert_string_equal(talk_lines(&t, 0), "1 " L80 ",2 " L32);
		pb = t.sdp->media[0].port;
		if (secure)
			snprintf(attrs, sizeof(attrs), "%s", accept_line(&t, 1));
		talk_answer(&t, "a", "b", talk_body(&t, B, 5000, "RTP/AVP", attrs));
		assert_null(t.reply.error);
		assert_int_equal(
			mock_ctx(t.m, pb)->rx.suite, secure ? SUITE_AES_CM_128_32 : SUITE_PLAIN);
		assert_string_equal(talk_lines(&t, 0), "1 " L80);
		talk_end(&t);
	}
}

/* Each side negotiates rtcp-mux for itself. */
static void rtcp_mux_is_each_sides_own(void **state)
{
	static const struct {
		bool a_offers, b_accepts;
		uint32_t offer_flags, answer_flags;
		bool want_offered, want_a, want_b;
	} T[] = {
		{false, false, 0, 0, false, false, false},
		{true, true, 0, 0, true, true, true},
		{true, false, 0, 0, true, false, false},
		{true, false, NG_RTCP_MUX_DEMUX, 0, false, true, false},
		{true, false, NG_RTCP_MUX_ACCEPT, 0, true, true, false},
		{true, false, 0, NG_RTCP_MUX_ACCEPT, true, true, false},
		{true, true, NG_RTCP_MUX_REJECT, 0, true, false, true},
		{false, true, NG_RTCP_MUX_OFFER, 0, true, false, true},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		const char *mux = "a=rtcp-mux\r\n";
		struct ng_request r;
		struct talk t;
		uint16_t pa, pb;

		talk_start(&t);
		r = talk_request("a", "",
			talk_body(&t, A, 4000, "RTP/AVP", T[i].a_offers ? mux : "a=rtcp:4711\r\n"));
		r.rtcp_mux = T[i].offer_flags;
		talk_send(&t, &r, false);
		assert_int_equal(t.sdp->media[0].rtcp_mux, T[i].want_offered);
		pb = t.sdp->media[0].port;
		assert_int_equal(t.sdp->media[0].rtcp.port, pb + 1);
		r = talk_request(
			"a", "b", talk_body(&t, B, 5000, "RTP/AVP", T[i].b_accepts ? mux : ""));
		r.rtcp_mux = T[i].answer_flags;
		talk_send(&t, &r, true);
		assert_int_equal(t.sdp->media[0].rtcp_mux, T[i].want_a);
		pa = t.sdp->media[0].port;
		assert_int_equal(mock_stream(t.m, pa)->rtcp, T[i].want_a);
		assert_int_equal(mock_stream(t.m, pb)->rtcp, T[i].want_b);
		assert_int_equal(mock_stream(t.m, pb)->rtcp_to, pa - 30000 + (T[i].want_a ? 0 : 1));
		assert_int_equal(
			mock_stream(t.m, pa + 1)->rtcp_to, pb - 30000 + (T[i].want_b ? 0 : 1));
		assert_int_equal(mock_stream(t.m, pa + 1)->remote.port,
			T[i].want_a             ? 4000
				: T[i].a_offers ? 4001
						: 4711);
		talk_end(&t);
	}
}

static void addresses_follow_interfaces_and_families(void **state)
{
	static const struct {
		const char *offerer, *dir0, *dir1, *media_address;
		int family;
		const char *want_b, *want_a;
		bool warning;
	} T[] = {
		{A, "", "", "", 0, "203.0.113.9", "203.0.113.9", false},
		{A, "outside", "inside", "", 0, "10.0.0.1", "203.0.113.9", false},
		{A, "inside", "outside", "", 0, "203.0.113.9", "10.0.0.1", false},
		{A, "", "", "", AF_INET6, "2001:db8::1", "203.0.113.9", false},
		{"2001:db8::77", "", "", "", AF_INET, "203.0.113.9", "2001:db8::1", false},
		{A, "", "", "198.18.0.1", 0, "198.18.0.1", "203.0.113.9", false},
		{A, "nowhere", "", "", 0, "203.0.113.9", "203.0.113.9", true},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		char text[ENDPOINT_STRLEN];
		struct ng_request r;
		struct talk t;

		talk_start(&t);
		r = talk_request("a", "", talk_body(&t, T[i].offerer, 4000, "RTP/AVP", ""));
		r.direction[0] = str_from(T[i].dir0);
		r.direction[1] = str_from(T[i].dir1);
		r.address_family = T[i].family;
		r.media_address = str_from(T[i].media_address);
		talk_send(&t, &r, false);
		assert_null(t.reply.error);
		assert_int_equal(t.reply.warning.len > 0, T[i].warning);
		assert_string_equal(
			endpoint_fmt_addr(&t.sdp->media[0].conn.addr, text), T[i].want_b);
		talk_answer(&t, "a", "b", talk_body(&t, B, 5000, "RTP/AVP", ""));
		assert_string_equal(
			endpoint_fmt_addr(&t.sdp->media[0].conn.addr, text), T[i].want_a);
		talk_end(&t);
	}
}

static void sip_source_address_replaces_the_signalled_one(void **state)
{
	char text[ENDPOINT_STRLEN];
	struct ng_request r;
	struct talk t;

	(void)state;
	talk_start(&t);
	r = talk_request("a", "", talk_body(&t, "192.168.1.5", 4000, "RTP/AVP", ""));
	r.flags = 1u << NG_FLAG_SIP_SOURCE_ADDRESS;
	r.received_from = STR(A);
	talk_send(&t, &r, false);
	talk_answer(&t, "a", "b", talk_body(&t, B, 5000, "RTP/AVP", ""));
	assert_string_equal(
		endpoint_fmt(&mock_stream(t.m, t.sdp->media[0].port)->remote, text), A ":4000");
	talk_end(&t);
}

static void origin_is_replaced_on_request_and_its_version_counts_changes(void **state)
{
	static const struct {
		uint32_t replace;
		const char *want[3]; /* first the same again, then another one */
	} T[] = {
		{0, {"o=- 42 7 IN IP4 " A, "o=- 42 7 IN IP4 " A, "o=- 42 7 IN IP4 " A}},
		{1u << NG_REPLACE_ORIGIN, {"o=- 42 7 IN IP4 203.0.113.9"}},
		{1u << NG_REPLACE_SDP_VERSION,
			{"o=- 42 7 IN IP4 " A, "o=- 42 7 IN IP4 " A, "o=- 42 8 IN IP4 " A}},
		{1u << NG_REPLACE_FORCE_INCREMENT,
			{"o=- 42 8 IN IP4 " A, "o=- 42 9 IN IP4 " A, "o=- 42 10 IN IP4 " A}},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct talk t;

		talk_start(&t);
		for (int k = 0; k < 3 && T[i].want[k]; k++) {
			struct ng_request r = talk_request("a", "",
				talk_body(&t, A, 4000, "RTP/AVP", k == 2 ? "a=ptime:20\r\n" : ""));

			r.replace = T[i].replace;
			talk_send(&t, &r, false);
			assert_non_null(strstr(t.reply.sdp.s, T[i].want[k]));
		}
		talk_end(&t);
	}
}

static void loops_are_left_alone(void **state)
{
	struct ng_request r;
	struct talk t;
	char once[4096];

	(void)state;
	talk_start(&t);
	r = talk_request("a", "", talk_body(&t, A, 4000, "RTP/AVP", ""));
	r.flags = 1u << NG_FLAG_LOOP_PROTECT;
	talk_send(&t, &r, false);
	assert_non_null(strstr(t.reply.sdp.s, "a=xcipher:"));
	assert_null(strstr(t.reply.sdp.s, "a=xcipher:0000000000000000"));
	snprintf(once, sizeof(once), "%s", t.reply.sdp.s);
	r.sdp = str_from(once);
	talk_send(&t, &r, false);
	assert_null(t.reply.error);
	assert_string_equal(t.reply.sdp.s, once);
	assert_int_equal(t.m->ports, 2);
	r.call_id = STR("other"); /* the mark belongs to one Call-ID */
	talk_send(&t, &r, false);
	assert_null(t.reply.error);
	assert_string_not_equal(t.reply.sdp.s, once);
	assert_int_equal(t.m->ports, 4);
	r.call_id = STR("third");
	memcpy(strstr(once, "t=0 0"), "t=0 1", 5); /* the mark belongs to another Call-ID */
	talk_send(&t, &r, false);
	assert_null(t.reply.error);
	assert_string_not_equal(t.reply.sdp.s, once);
	assert_int_equal(t.m->ports, 6);
	talk_end(&t);
}

static void ice_and_dtls_go_and_other_media_stay(void **state)
{
	struct ng_request r;
	struct talk t;

	(void)state;
	talk_start(&t);
	r = talk_request("a", "",
		talk_body(&t, A, 4000, "RTP/AVP",
			"a=ice-ufrag:x\r\na=candidate:1 1 UDP 1 10.1.1.1 4000 typ host\r\n"
			"a=x-unknown:stays\r\n"
			"m=image 6000 udptl t38\r\na=T38FaxVersion:0\r\n"
			"m=message 7000 TCP/MSRP *\r\n"));
	r.ice = NG_ICE_FORCE;
	talk_send(&t, &r, false);
	assert_null(t.reply.error);
	assert_null(strstr(t.reply.sdp.s, "candidate"));
	assert_non_null(strstr(t.reply.sdp.s, "a=x-unknown:stays"));
	assert_non_null(strstr(t.reply.sdp.s, "m=message 7000 TCP/MSRP *"));
	assert_null(strstr(t.reply.sdp.s, "m=image 6000"));
	assert_non_null(strstr(t.reply.sdp.s, "udptl t38\r\na=T38FaxVersion:0\r\n"));
	assert_non_null(strstr(t.reply.warning.s, "ICE"));
	assert_int_equal(t.m->ports, 4);
	talk_end(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(profiles_and_suites_are_bridged),
		cmocka_unit_test(keys_are_where_they_belong),
		cmocka_unit_test(offers_and_answers_without_common_suite_fail_whole),
		cmocka_unit_test(answers_must_fit_the_offer),
		cmocka_unit_test(sdes_flags_choose_and_sort_suites),
		cmocka_unit_test(flags_of_the_answer_choose_what_the_offerer_gets),
		cmocka_unit_test(opportunistic_srtp_goes_with_the_answer),
		cmocka_unit_test(rtcp_mux_is_each_sides_own),
		cmocka_unit_test(addresses_follow_interfaces_and_families),
		cmocka_unit_test(sip_source_address_replaces_the_signalled_one),
		cmocka_unit_test(origin_is_replaced_on_request_and_its_version_counts_changes),
		cmocka_unit_test(loops_are_left_alone),
		cmocka_unit_test(ice_and_dtls_go_and_other_media_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
