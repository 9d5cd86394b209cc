/* SPDX-License-Identifier: GPL-2.0-or-later */
/* SDP as the RFCs and real phones write it: read, returned unchanged, and changed only by edits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "proto/sdp.h"

#define HEAD "v=0\r\no=- 1 2 IN IP4 192.0.2.1\r\ns=-\r\n"
#define CONN "c=IN IP4 192.0.2.1\r\nt=0 0\r\n"
#define KEY  "inline:WVNfX19zZW1jdGwgKCkgewkyMjA7fQp9CnVubGVz"

static const struct {
	const char *who;
	const char *sdp;
	unsigned media;
	enum sdp_proto proto; /* of the first media */
	unsigned port;
} phones[] = {
	{"RFC 4566 5",
		"v=0\r\no=jdoe 2890844526 2890842807 IN IP4 10.47.16.5\r\ns=SDP Seminar\r\n"
		"i=A Seminar on the session description protocol\r\n"
		"u=http://www.example.com/seminars/sdp.pdf\r\ne=j.doe@example.com (Jane Doe)\r\n"
		"c=IN IP4 224.2.17.12/127\r\nt=2873397496 2873404696\r\na=recvonly\r\n"
		"m=audio 49170 RTP/AVP 0\r\nm=video 51372 RTP/AVP 99\r\na=rtpmap:99 h263-1998/90000\r\n",
		2, SDP_RTP_AVP, 49170},
	{"RFC 4568 4",
		"v=0\r\no=sam 2890844526 2890842807 IN IP4 10.47.16.5\r\ns=SRTP Discussion\r\n"
		"c=IN IP4 168.2.17.12\r\nt=2873397496 2873404696\r\nm=audio 49170 RTP/SAVP 0\r\n"
		"a=crypto:1 AES_CM_128_HMAC_SHA1_80 " KEY "|2^20|1:4 FEC_ORDER=FEC_SRTP\r\n",
		1, SDP_RTP_SAVP, 49170},
	{"Linphone",
		"v=0\r\no=alice 1723 2541 IN IP4 192.168.1.20\r\ns=Talk\r\nc=IN IP4 192.168.1.20\r\n"
		"t=0 0\r\na=rtcp-xr:rcvr-rtt=all:10000 stat-summary=loss,dup,jitt,TTL voip-metrics\r\n"
		"m=audio 7078 RTP/SAVPF 96 97 0\r\na=rtpmap:96 opus/48000/2\r\na=fmtp:96 useinbandfec=1\r\n"
		"a=crypto:1 AES_CM_128_HMAC_SHA1_80 " KEY "\r\na=rtcp-fb:* trr-int 1000\r\n"
		"a=rtcp-fb:* ccm tmmbr\r\n",
		1, SDP_RTP_SAVPF, 7078},
	{"baresip",
		"v=0\r\no=- 3724394400 3724394405 IN IP4 10.0.0.1\r\ns=-\r\nc=IN IP4 10.0.0.1\r\nt=0 0\r\n"
		"a=tool:baresip 1.0.0\r\nm=audio 21234 RTP/SAVP 8 0 101\r\nb=AS:125\r\n"
		"a=rtpmap:8 PCMA/8000\r\na=rtcp:21235\r\na=sendrecv\r\na=label:1\r\na=rtcp-rsize\r\n"
		"a=ptime:20\r\n",
		1, SDP_RTP_SAVP, 21234},
	{"Cisco",
		"v=0\r\no=Cisco-SIPUA 24190 0 IN IP4 10.1.2.3\r\ns=SIP Call\r\nb=AS:4000\r\nt=0 0\r\n"
		"m=audio 17586 RTP/AVP 114 9 0 101\r\nc=IN IP4 10.1.2.3\r\nb=TIAS:64000\r\n"
		"a=rtpmap:114 opus/48000/2\r\na=sendrecv\r\n",
		1, SDP_RTP_AVP, 17586},
	{"Polycom",
		"v=0\r\no=- 1449 1449 IN IP4 10.9.8.7\r\ns=Polycom IP Phone\r\nc=IN IP4 10.9.8.7\r\nt=0 0\r\n"
		"a=sendrecv\r\nm=audio 2226 RTP/AVP 9 0 8 127\r\na=rtpmap:9 G722/8000\r\n"
		"m=audio 2226 RTP/SAVP 9 0 8 127\r\na=crypto:1 AES_CM_128_HMAC_SHA1_80 " KEY "\r\n",
		2, SDP_RTP_AVP, 2226},
	{"Snom, IPv6",
		"v=0\r\no=root 1054166183 1054166183 IN IP6 2001:db8::2\r\ns=call\r\n"
		"c=IN IP6 2001:db8::2\r\nt=0 0\r\nm=audio 61120 RTP/SAVP 9 0 8\r\n"
		"a=crypto:1 AES_CM_128_HMAC_SHA1_32 " KEY
		"\r\na=encryption:optional\r\na=sendrecv\r\n",
		1, SDP_RTP_SAVP, 61120},
	{"Teams SBC",
		"v=0\r\no=- 1 0 IN IP4 52.0.2.7\r\ns=session\r\nc=IN IP4 52.0.2.7\r\nb=CT:10000000\r\n"
		"t=0 0\r\nm=audio 50018 RTP/SAVP 104 9 103\r\na=rtcp:50019 IN IP4 52.0.2.7\r\n"
		"a=ice-ufrag:x3\r\na=ice-pwd:aaaaaaaaaaaaaaaaaaaaaaaa\r\n"
		"a=candidate:1 1 UDP 2130706431 52.0.2.7 50018 typ host\r\n"
		"a=crypto:2 AES_CM_128_HMAC_SHA1_80 " KEY "|2^31\r\na=label:main-audio\r\n",
		1, SDP_RTP_SAVP, 50018},
	{"Asterisk, LF only",
		"v=0\no=- 167 3 IN IP4 203.0.113.9\ns=Asterisk\nc=IN IP4 203.0.113.9\nt=0 0\n"
		"m=audio 10010 RTP/AVP 8 101\na=rtpmap:8 PCMA/8000\na=maxptime:150\na=sendrecv\n",
		1, SDP_RTP_AVP, 10010},
	{"FreeSWITCH",
		"v=0\r\no=FreeSWITCH 1700000000 1700000001 IN IP4 198.51.100.4\r\ns=FreeSWITCH\r\n"
		"c=IN IP4 198.51.100.4\r\nt=0 0\r\nm=audio 29842 RTP/SAVP 102 0 8\r\n"
		"a=crypto:1 AEAD_AES_256_GCM_8 " KEY "\r\na=crypto:2 AES_CM_128_HMAC_SHA1_80 " KEY
		"\r\n"
		"m=image 0 udptl t38\r\n",
		2, SDP_RTP_SAVP, 29842},
	{"Chrome",
		"v=0\r\no=- 46117 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=group:BUNDLE 0 1\r\n"
		"a=extmap-allow-mixed\r\na=msid-semantic: WMS s\r\n"
		"m=audio 9 UDP/TLS/RTP/SAVPF 111 63\r\nc=IN IP4 0.0.0.0\r\na=rtcp:9 IN IP4 0.0.0.0\r\n"
		"a=ice-ufrag:abcd\r\na=ice-pwd:0123456789abcdef01234567\r\na=ice-options:trickle\r\n"
		"a=fingerprint:sha-256 00:11\r\na=setup:actpass\r\na=mid:0\r\na=rtcp-mux\r\n"
		"a=rtcp-fb:111 transport-cc\r\n"
		"m=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\nc=IN IP4 0.0.0.0\r\na=mid:1\r\n"
		"a=sctp-port:5000\r\n",
		2, SDP_UDP_TLS_RTP_SAVPF, 9},
};

static struct pool *pool;

static int setup(void **state)
{
	(void)state;
	return pool_create(&pool, 64 << 20);
}

static int teardown(void **state)
{
	(void)state;
	pool_destroy(pool);
	return 0;
}

static void parse_ok(struct sdp *s, const char *text)
{
	uint32_t line;
	enum sdp_err err = sdp_parse(s, pool, str_from(text), &line);

	if (err)
		fail_msg("line %u: %s in %s", line, sdp_err_text(err), text);
}

static void phones_come_back_byte_for_byte(void **state)
{
	static const struct sdp_edit none;
	static struct sdp s;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(phones); i++) {
		struct sbuf b;

		parse_ok(&s, phones[i].sdp);
		assert_int_equal(s.media_count, phones[i].media);
		assert_int_equal(s.media[0].proto, phones[i].proto);
		assert_int_equal(s.media[0].port, phones[i].port);
		sbuf_init(&b, 0);
		sdp_write(&b, &s, &none);
		assert_string_equal(b.p, phones[i].sdp);
		sbuf_fini(&b);
	}
}

static void fields_are_found(void **state)
{
	static struct sdp s;

	(void)state;
	parse_ok(&s,
		"v=0\no=two words 7 8 IN IP6 [::1]\ns=a\nt=0 0\nc=IN IP4 233.252.0.1/127/3\n"
		"a=inactive\na=fingerprint:x\nX=?\nm=audio 5004/2 rtp/avp 0 8\nc=IN IP4 h.example\n"
		"c=IN IP4 192.0.2.2\na=rtcp:53020 IN IP6 2001:db8::1\na=sendonly\na=mid:a\n"
		"a=rtcp-mux-only\nm=video 0 x/y 1\r\n\r\n");
	assert_true(str_eq(s.origin_user, STR("two words")));
	assert_true(str_eq(s.origin_id, STR("7")) && str_eq(s.origin_version, STR("8")));
	assert_int_equal(s.origin_addr.family, AF_INET6);
	assert_true(endpoint_is_multicast(&s.conn.addr));
	assert_int_equal(s.media_count, 2);
	assert_int_equal(s.media[0].port_count, 2);
	assert_int_equal(s.media[0].proto, SDP_RTP_AVP);
	assert_true(str_eq(s.media[0].formats, STR("0 8")) && str_eq(s.media[0].mid, STR("a")));
	assert_true(s.media[0].own_conn && s.media[0].conn.present);
	assert_int_equal(s.media[0].conn.addr.family, 0);
	assert_int_equal(s.media[0].rtcp.port, 53020);
	assert_int_equal(s.media[0].rtcp.family, AF_INET6);
	assert_int_equal(s.media[0].dir, SDP_DIR_SENDONLY);
	assert_int_equal(s.media[1].dir, SDP_DIR_INACTIVE);
	assert_true(s.media[0].rtcp_mux_only && s.media[0].dtls && !s.media[0].rtcp_mux);
	assert_false(s.media[1].own_conn);
	assert_true(s.media[1].conn.present && s.crlf);
}

static void errors_name_their_line(void **state)
{
	static const struct {
		const char *sdp;
		enum sdp_err want;
		uint32_t line;
	} T[] = {
		{"", SDP_ERR_NOT_SDP, 1},
		{"v=1\r\n", SDP_ERR_NOT_SDP, 1},
		{"v=00\r\n", SDP_ERR_NOT_SDP, 1},
		{HEAD "nonsense\r\n", SDP_ERR_LINE, 4},
		{"v=0\r\no=- 1 IN IP4 192.0.2.1\r\n", SDP_ERR_ORIGIN, 2},
		{HEAD "o=- 1 2 IN IP4 192.0.2.1\r\n", SDP_ERR_ORIGIN, 4},
		{HEAD "c=IN IP4\r\n", SDP_ERR_CONNECTION, 4},
		{HEAD CONN "m=audio\r\n", SDP_ERR_MEDIA, 6},
		{HEAD CONN "m=audio 65536 RTP/AVP 0\r\n", SDP_ERR_MEDIA, 6},
		{HEAD CONN "m=audio 1/0 RTP/AVP 0\r\n", SDP_ERR_MEDIA, 6},
		{HEAD CONN "m=audio x RTP/AVP 0\r\n", SDP_ERR_MEDIA, 6},
		{HEAD "m=audio 0 RTP/AVP 0\r\nm=audio 2 RTP/AVP 0\r\na=x\r\n",
			SDP_ERR_NO_CONNECTION, 5},
		{"v=0\x1b\r\n", SDP_ERR_CONTROL, 1},
		{"v=0\r\r\n", SDP_ERR_CONTROL, 1},
		{HEAD "a=x\rm=audio 2 RTP/AVP 0\r\n", SDP_ERR_CONTROL, 4},
		{HEAD "\x0b=x\r\n", SDP_ERR_CONTROL, 4},
		{HEAD CONN "a=x:\x7f\r\n", SDP_ERR_CONTROL, 6},
	};
	static struct sdp s;
	static char big[SDP_MAX_LEN + 2];
	uint32_t line;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		enum sdp_err err = sdp_parse(&s, pool, str_from(T[i].sdp), &line);

		if (err != T[i].want || line != T[i].line)
			fail_msg("%s: %s in line %u", T[i].sdp, sdp_err_text(err), line);
	}
	memset(big, 'a', sizeof(big) - 1);
	assert_int_equal(sdp_parse(&s, pool, str_from(big), NULL), SDP_ERR_TOO_LONG);
	memcpy(big, HEAD CONN, sizeof(HEAD CONN));
	for (unsigned i = 0; i <= SDP_MAX_MEDIA; i++)
		strcat(big, "m=audio 2 RTP/AVP 0\r\n");
	assert_int_equal(sdp_parse(&s, pool, str_from(big), &line), SDP_ERR_MEDIA_COUNT);
	assert_int_equal(line, 6 + SDP_MAX_MEDIA);
}

#define EDITED(...) .media = (const struct sdp_media_edit[])__VA_ARGS__
#define OURS        .addr = {.addr = {203, 0, 113, 1}, .family = AF_INET}
#define OURS6       .addr = {.addr = {0x20, 1, 0xd, 0xb8, [15] = 1}, .family = AF_INET6}
#define SIX                                            \
	{                                              \
		.addr = {[15] = 6}, .family = AF_INET6 \
	}
#define SEVEN                                          \
	{                                              \
		.addr = {[15] = 7}, .family = AF_INET6 \
	}
#define SIX_C "c=IN IP6 ::6\r\n"
#define OUR_C "c=IN IP4 203.0.113.1\r\n"
#define M     "m=audio 1000 RTP/AVP 0\r\n"
#define M2    "m=audio 2000 RTP/AVP 0\r\n"
#define CAPABILITIES                                                                   \
	"a=csup:med-v0\r\na=creq:cap-v0\r\na=tcap:1 RTP/SAVP\r\na=acap:2 ptime:20\r\n" \
	"a=pcfg:1 t=1 a=2\r\na=acfg:1 t=1\r\na=lcfg:1 mt=1\r\na=rmcap:1 PCMA/8000\r\n" \
	"a=omcap:1 x\r\na=mcap:1 x\r\na=mfcap:1 x\r\na=mscap:1 x\r\na=sescap:1 1\r\n"  \
	"a=bcap:1 AS:200\r\na=CCAP:1 IN IP4 127.0.0.1 9\r\na=icap:1 x\r\n"
#define ADDRESSES_BUT_ALTC                                                                       \
	"a=alt:1 1 : a b 127.0.0.1 9\r\na=source-filter: incl IN IP4 * 192.0.2.9\r\n"            \
	"a=remote-candidate:x\r\na=x-candidate-ipv6:x\r\n"                                       \
	"a=visited-realm:1 x IN IP4 192.0.2.9 5\r\na=secondary-realm:1 x IN IP4 192.0.2.9 6\r\n" \
	"a=omr-m-cksum:x\r\na=rtcp-unicast:x\r\n"
#define ADDRESSES ADDRESSES_BUT_ALTC "a=altc:1 IP6 2001:db8::1 45678\r\n"

static const struct str two_keys[] = {{"crypto:1 A inline:x", 19}, {"crypto:2 B inline:y", 19}};

static const struct {
	const char *why;
	struct sdp_edit edit;
	const char *in, *want;
} edits[] = {
	{"session c= and port are ours", {OURS, EDITED({{.port = 2000}})}, HEAD CONN M "a=x:y\r\n",
		HEAD OUR_C "t=0 0\r\n" M2 "a=x:y\r\n"},
	{"every c= of a media is ours", {OURS, EDITED({{.port = 2000}})},
		HEAD M "c=IN IP4 192.0.2.1/3\r\nc=IN IP6 ::1\r\n", HEAD M2 OUR_C OUR_C},
	{"a kept media gets the session's c=, behind its i=",
		{OURS, EDITED({{.port = 2000}, {.keep = true}})},
		HEAD CONN M "m=image 5 udptl t38\r\ni=fax\r\na=z\r\n",
		HEAD OUR_C "t=0 0\r\n" M2
			   "m=image 5 udptl t38\r\ni=fax\r\nc=IN IP4 192.0.2.1\r\na=z\r\n"},
	{"nothing to relay: c= stays", {OURS, EDITED({{.keep = true}})}, HEAD CONN M, HEAD CONN M},
	{"hold by address stays one, and is said by direction as well",
		{OURS, .keep_zero_conn = true, EDITED({{.port = 2000}})},
		HEAD M "c=IN IP4 0.0.0.0\r\n", HEAD M2 "c=IN IP4 0.0.0.0\r\na=sendonly\r\n"},
	{"hold by address becomes hold by direction", {OURS, EDITED({{.port = 2000}})},
		HEAD M "c=IN IP4 0.0.0.0\r\na=1\r\na=sendrecv\r\na=2\r\n",
		HEAD M2 OUR_C "a=1\r\na=sendonly\r\na=2\r\n"},
	{"hold of the session, of whom receives only",
		{OURS, .keep_zero_conn = true, EDITED({{.port = 2000}})},
		HEAD "c=IN IP4 0.0.0.0\r\na=recvonly\r\n" M,
		HEAD "c=IN IP4 0.0.0.0\r\na=recvonly\r\n" M2 "a=inactive\r\n"},
	{"hold by address towards IPv6", {OURS6, .keep_zero_conn = true, EDITED({{.port = 2000}})},
		HEAD "c=IN IP4 0.0.0.0\r\n" M, HEAD "c=IN IP6 ::\r\n" M2 "a=sendonly\r\n"},
	{"hold by address towards IPv4", {OURS, .keep_zero_conn = true, EDITED({{.port = 2000}})},
		HEAD M "c=IN IP6 ::\r\n", HEAD M2 "c=IN IP4 0.0.0.0\r\na=sendonly\r\n"},
	{"hold by a name that nobody has",
		{OURS6, .keep_zero_conn = true, EDITED({{.port = 2000}})},
		HEAD M "c=IN IP6 hold.invalid.\r\n", HEAD M2 "c=IN IP6 ::\r\na=sendonly\r\n"},
	{"one of two media that share a c= has its own hold",
		{OURS, .keep_zero_conn = true, EDITED({{.port = 2000}, {.port = 2000}})},
		HEAD "c=IN IP4 0.0.0.0\r\n" M "a=ice-ufrag:x\r\n" M,
		HEAD OUR_C M2 "a=ice-ufrag:x\r\n" M2 "c=IN IP4 0.0.0.0\r\na=sendonly\r\n"},
	{"0.0.0.0 with ICE is no hold",
		{OURS, .keep_zero_conn = true, .remove_ice = true, EDITED({{.port = 2000}})},
		HEAD M "c=IN IP4 0.0.0.0\r\na=ice-ufrag:x\r\n", HEAD M2 OUR_C},
	{"a malformed a=rtcp is replaced", {EDITED({{.port = 2000, .rtcp_port = 2001}})},
		HEAD CONN M "a=rtcp:x\r\na=1\r\n", HEAD CONN M2 "a=rtcp:2001\r\na=1\r\n"},
	{"a malformed a=rtcp goes", {EDITED({{.port = 2000}})}, HEAD CONN M "a=rtcp:3 IN\r\n",
		HEAD CONN M2},
	{"empty lines go", {EDITED({{.port = 2000}})},
		HEAD "\r\n" CONN "\r\n \t\r\n" M "\r\na=1\r\n\r\n\r\n", HEAD CONN M2 "a=1\r\n"},
	{"bundles go, and other groups stay",
		{.remove_bundle = true, EDITED({{.port = 2000}, {.keep = true}})},
		HEAD CONN "a=group:BUNDLE 0 1\r\na=group:LS 0 1\r\na=group: bundle\r\n" M
			  "a=mid:0\r\na=bundle-only\r\n" M "a=mid:1\r\na=bundle-only\r\n",
		HEAD CONN "a=group:LS 0 1\r\n" M2 "a=mid:0\r\n" M "a=mid:1\r\n"},
	{"IPv6",
		{.addr = {.addr = {0x20, 1, 0xd, 0xb8, [15] = 1}, .family = AF_INET6},
			.replace_origin = true,
			EDITED({{.port = 2000}})},
		HEAD M "c=IN IP4 192.0.2.1\r\n",
		"v=0\r\no=- 1 2 IN IP6 2001:db8::1\r\ns=-\r\n" M2 "c=IN IP6 2001:db8::1\r\n"},
	{"o= and s=",
		{OURS, .origin_user = {"u", 1}, .origin_version = {"9", 1},
			.session_name = {"n", 1}},
		HEAD, "v=0\r\no=u 1 9 IN IP4 192.0.2.1\r\ns=n\r\n"},
	{"transport; the rest of m= keeps its bytes",
		{EDITED({{.port = 7, .proto = SDP_RTP_SAVP}})},
		HEAD CONN "m=audio  1000/2  RTP/AVP 0  101 \r\n",
		HEAD CONN "m=audio 7 RTP/SAVP 0  101 \r\n"},
	{"keys replace keys where the first was",
		{EDITED({{.port = 2000, .keying = two_keys, .keying_count = 2}})},
		HEAD CONN M
		"a=1\r\na=crypto:1 C inline:z\r\na=2\r\na=crypto:2 D inline:z\r\na=3\r\n",
		HEAD CONN M2
		"a=1\r\na=crypto:1 A inline:x\r\na=crypto:2 B inline:y\r\na=2\r\na=3\r\n"},
	{"keys at the end, also between media",
		{EDITED({{.port = 2000, .keying = two_keys, .keying_count = 1}, {.keep = true}})},
		HEAD CONN M "a=1\r\n" M, HEAD CONN M2 "a=1\r\na=crypto:1 A inline:x\r\n" M},
	{"keys go", {EDITED({{.port = 2000}})}, HEAD CONN "a=crypto:0 S\r\n" M "a=crypto:1 C\r\n",
		HEAD CONN M2},
	{"a=rtcp in its place", {EDITED({{.port = 2000, .rtcp_port = 2001}})},
		HEAD CONN M "a=rtcp:5 IN IP4 192.0.2.1\r\na=2\r\na=rtcp:6\r\n",
		HEAD CONN M2 "a=rtcp:2001\r\na=2\r\n"},
	{"a=rtcp with address",
		{OURS, EDITED({{.port = 2000, .rtcp_port = 2001, .rtcp_full = true}})},
		HEAD M "c=IN IP4 192.0.2.1\r\n",
		HEAD M2 OUR_C "a=rtcp:2001 IN IP4 203.0.113.1\r\n"},
	{"an address of its own, where the session has c=",
		{OURS, EDITED({{.port = 2000, .addr = SIX}, {.port = 2000}})}, HEAD CONN M M,
		HEAD OUR_C "t=0 0\r\n" M2 SIX_C M2},
	{"an address of its own in place of a c=, and another one for RTCP",
		{OURS,
			EDITED({{.port = 2000,
				.rtcp_port = 2001,
				.addr = SIX,
				.rtcp_addr = SEVEN}})},
		HEAD M "c=IN IP4 192.0.2.1\r\n", HEAD M2 SIX_C "a=rtcp:2001 IN IP6 ::7\r\n"},
	{"an address of its own where RTCP names it, too",
		{OURS, EDITED({{.port = 2000, .rtcp_port = 2001, .rtcp_full = true, .addr = SIX}})},
		HEAD M "c=IN IP4 192.0.2.1\r\n", HEAD M2 SIX_C "a=rtcp:2001 IN IP6 ::6\r\n"},
	{"hold by address stays, and a rejected m-line has no address of its own",
		{OURS, .keep_zero_conn = true,
			EDITED({{.port = 2000, .addr = SIX}, {.reject = true, .addr = SIX}})},
		HEAD "c=IN IP4 0.0.0.0\r\nt=0 0\r\n" M M,
		HEAD "c=IN IP4 0.0.0.0\r\nt=0 0\r\n" M2 "a=sendonly\r\nm=audio 0 RTP/AVP 0\r\n"},
	{"a=rtcp goes", {EDITED({{.port = 2000}})}, HEAD CONN M "a=rtcp:5\r\n", HEAD CONN M2},
	{"rtcp-mux is added", {EDITED({{.port = 2000, .rtcp_mux = true}})}, HEAD CONN M "a=1\r\n",
		HEAD CONN M2 "a=1\r\na=rtcp-mux\r\n"},
	{"rtcp-mux stays once", {EDITED({{.port = 2000, .rtcp_mux = true}})},
		HEAD CONN M "a=rtcp-mux\r\na=rtcp-mux\r\na=1\r\n",
		HEAD CONN M2 "a=rtcp-mux\r\na=1\r\n"},
	{"rtcp-mux goes", {EDITED({{.port = 2000, .drop_rtcp_mux = true}})},
		HEAD CONN M "a=rtcp-mux\r\na=rtcp-mux-only\r\n", HEAD CONN M2},
	{"feedback goes", {EDITED({{.port = 2000}})},
		HEAD CONN M "a=rtcp-fb:* nack\r\na=rtcp-rsize\r\n", HEAD CONN M2},
	{"feedback stays", {EDITED({{.port = 2000, .keep_feedback = true}})},
		HEAD CONN M "a=rtcp-fb:* nack\r\na=rtcp-rsize\r\n",
		HEAD CONN M2 "a=rtcp-fb:* nack\r\na=rtcp-rsize\r\n"},
	{"rejected",
		{OURS,
			EDITED({{.reject = true,
				.port = 5,
				.rtcp_port = 6,
				.keying = two_keys,
				.keying_count = 2}})},
		HEAD CONN M
		"c=IN IP4 192.0.2.9\r\na=crypto:1 C\r\na=rtcp:4\r\na=candidate:x\r\na=1\r\n",
		HEAD OUR_C "t=0 0\r\nm=audio 0 RTP/AVP 0\r\na=1\r\n"},
	{"ICE goes", {.remove_ice = true, EDITED({{.port = 2000}})},
		HEAD CONN "a=ice-lite\r\n" M
			  "a=ice-ufrag:a\r\na=ice-pwd:b\r\na=ice-options:c\r\na=candidate:d\r\n"
			  "a=remote-candidates:e\r\na=end-of-candidates\r\na=icecream\r\n",
		HEAD CONN M2 "a=icecream\r\n"},
	{"DTLS goes, but not from a kept media",
		{.remove_dtls = true, EDITED({{.port = 2000}, {.keep = true}})},
		HEAD CONN "a=fingerprint:f\r\n" M
			  "a=setup:active\r\na=tls-id:x\r\na=connection:new\r\n"
			  "a=dtls-id:y\r\nm=application 9 UDP/DTLS/SCTP 0\r\na=setup:active\r\n",
		HEAD CONN M2
		"m=application 9 UDP/DTLS/SCTP 0\r\na=setup:active\r\na=fingerprint:f\r\n"},
	{"loop id", {.loop_id = {"id", 2}, EDITED({{.keep = true}})}, HEAD CONN M,
		HEAD CONN "a=xcipher:id\r\n" M},
	{"keys of other mechanisms go, wherever they stand",
		{EDITED({{.port = 2000}, {.reject = true}})},
		HEAD "k=prompt\r\n" CONN "a=key-mgmt:mikey A\r\n" M
		     "k=clear:x\r\na=KEY-MGMT:mikey B\r\na=zrtp-hash:1.10 z\r\n"
		     "a=zrtp-zid:1\r\na=cryptoscale:1 client C inline:x\r\n"
		     "a=acap:1 crypto:1 C inline:x\r\na=2\r\n" M "k=clear:y\r\n",
		HEAD CONN M2 "a=2\r\nm=audio 0 RTP/AVP 0\r\n"},
	{"capabilities go from every section, the words of an older scheme stay unless they are keys",
		{EDITED({{.port = 2000}, {.keep = true}})},
		HEAD CONN CAPABILITIES M CAPABILITIES
		"a=ptime:20\r\na=cdsc:1 audio RTP/AVP 0\r\na=cpar:a=ptime:20\r\n"
		"a=cpar: a=crypto:1 C inline:x\r\nm=image 5 udptl t38\r\n" CAPABILITIES "a=3\r\n",
		HEAD CONN M2 "a=ptime:20\r\na=cdsc:1 audio RTP/AVP 0\r\na=cpar:a=ptime:20\r\n"
			     "m=image 5 udptl t38\r\na=3\r\n"},
	{"further addresses of relayed media go, and those of others stay",
		{.remove_ice = true, EDITED({{.port = 2000}, {.keep = true}})},
		HEAD CONN ADDRESSES M ADDRESSES "a=1\r\nm=image 5 udptl t38\r\na=altc:1 x\r\n",
		HEAD CONN M2 "a=1\r\nm=image 5 udptl t38\r\na=altc:1 x\r\n" ADDRESSES_BUT_ALTC},
	{"words on RTCP have no place at session level",
		{EDITED({{.port = 2000, .rtcp_port = 2001}, {.keep = true}})},
		HEAD CONN "a=rtcp:22222 IN IP4 127.0.0.1\r\na=rtcp-mux\r\na=rtcp-mux-only\r\n"
			  "a=rtcp-rsize\r\n" M "m=image 5 udptl t38\r\n",
		HEAD CONN "a=rtcp-rsize\r\n" M2 "a=rtcp:2001\r\nm=image 5 udptl t38\r\n"},
	{"so do they from media that are not relayed", {EDITED({{.keep = true}, {.keep = true}})},
		HEAD CONN "m=x 5 TCP/RTP/SAVP 0\r\nk=clear:x\r\na=crypto:1 C\r\na=key-mgmt:k\r\n"
			  "m=x 0 TCP/RTP/SAVP 0\r\na=crypto:1 C\r\na=y\r\n",
		HEAD CONN "m=x 5 TCP/RTP/SAVP 0\r\na=crypto:1 C\r\n"
			  "m=x 0 TCP/RTP/SAVP 0\r\na=y\r\n"},
	{"LF stays LF, a missing last line end comes back",
		{EDITED({{.port = 2, .rtcp_mux = true}})},
		"v=0\nc=IN IP4 192.0.2.1\nm=audio 1 RTP/AVP 0",
		"v=0\nc=IN IP4 192.0.2.1\nm=audio 2 RTP/AVP 0\na=rtcp-mux\n"},
};

/* Every byte at every place of a short line. A NUL after the last line does not belong to it. */
static void no_control_character_passes(void **state)
{
	static struct sdp s;
	char text[] = HEAD "a=xyz\r\n";
	size_t line = sizeof(HEAD) - 1;

	(void)state;
	for (unsigned c = 0; c < 256; c++)
		for (size_t at = 2; at < 5; at++) {
			bool control = (c < 0x20 && c != '\t' && c != '\n') || c == 0x7f;
			char was = text[line + at];
			enum sdp_err err;
			uint32_t where;

			if (c == '\n' || (c == 0 && at == 4)) /* a line end; behind the last line */
				continue;
			text[line + at] = (char)c;
			err = sdp_parse(&s, pool, (struct str){text, sizeof(text) - 1}, &where);
			/* A CR before the line end adds one CR. */
			assert_int_equal(err, control ? SDP_ERR_CONTROL : SDP_OK);
			assert_int_equal(where, control ? 4 : 5);
			text[line + at] = was;
		}
	assert_int_equal(sdp_parse(&s, pool, STR(HEAD "a=x\r\n\0\0"), NULL), SDP_OK);
	assert_int_equal(s.body.len, strlen(HEAD "a=x\r\n"));
	assert_int_equal(sdp_parse(&s, pool, STR(HEAD "a=x\r\n\0\r\n\0"), NULL), SDP_OK);
	assert_int_equal(s.body.len, strlen(HEAD "a=x\r\n"));
	assert_int_equal(sdp_parse(&s, pool, STR(HEAD "\0a=x\r\n"), NULL), SDP_ERR_CONTROL);
}

static void edits_change_what_they_say(void **state)
{
	static struct sdp s;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(edits); i++) {
		struct sbuf b;

		parse_ok(&s, edits[i].in);
		sbuf_init(&b, 0);
		sdp_write(&b, &s, &edits[i].edit);
		assert_int_equal(b.err, 0);
		if (strcmp(b.p, edits[i].want) != 0)
			fail_msg("%s\ngot:\n%swanted:\n%s", edits[i].why, b.p, edits[i].want);
		sbuf_fini(&b);
	}
}

static void transports_have_names(void **state)
{
	(void)state;
	for (int p = SDP_RTP_AVP; p <= SDP_UDP_TLS_RTP_SAVPF; p++)
		assert_int_equal(sdp_proto_find(str_from(sdp_proto_name((enum sdp_proto)p))), p);
	for (int i = 0; i < 4; i++) {
		enum sdp_proto p = sdp_proto_make(i & 1, i & 2);

		assert_int_equal(sdp_proto_is_secure(p), i & 1);
		assert_int_equal(sdp_proto_is_feedback(p), (i & 2) != 0);
	}
	assert_int_equal(sdp_proto_find(STR("udptl")), SDP_PROTO_OTHER);
	assert_string_equal(sdp_proto_name(SDP_PROTO_OTHER), "");
}

static void the_first_codec_is_no_companion(void **state)
{
	static const struct {
		const char *media, *want;
	} T[] = {
		{"0 8", "PCMU/8000"}, {"96 8\r\na=rtpmap:96 opus/48000/2", "opus/48000/2"},
		{"101 13 97 8\r\na=rtpmap:101 telephone-event/8000\r\na=rtpmap:97 AMR/8000",
			"AMR/8000"},
		{"8\r\na=rtpmap:8 PCMA/16000 ", "PCMA/16000"}, /* the reply reports it */
		{"96", ""}, {"101\r\na=rtpmap:101 telephone-event/8000", ""}, {"200 -1 x", ""},
		{"96 97 98 99 100 101 102 103 0", ""}, /* the search is bounded */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		static struct sdp s;
		struct str got;
		char body[512];

		snprintf(body, sizeof(body), HEAD CONN "m=audio 4000 RTP/AVP %s\r\n", T[i].media);
		parse_ok(&s, body);
		got = sdp_first_codec(&s.media[0]);
		if (!str_eq(got, str_from(T[i].want)))
			fail_msg("%s: " STR_FMT, T[i].media, STR_ARG(got));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(phones_come_back_byte_for_byte),
		cmocka_unit_test(fields_are_found),
		cmocka_unit_test(errors_name_their_line),
		cmocka_unit_test(no_control_character_passes),
		cmocka_unit_test(edits_change_what_they_say),
		cmocka_unit_test(transports_have_names),
		cmocka_unit_test(the_first_codec_is_no_companion),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
