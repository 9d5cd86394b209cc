/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ng requests: every encoding and spelling leads to the same meaning. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <cmocka.h>

#include "proto/json.h"
#include "proto/ng.h"

static void frames_are_cookie_space_dictionary(void **state)
{
	static const struct {
		const char *in;
		int err;
		const char *cookie, *body;
		enum ng_encoding enc;
	} T[] = {
		{"1_2_3 d7:command4:pinge", 0, "1_2_3", "d7:command4:pinge", NG_BENCODE},
		{"c {\"command\":\"ping\"}", 0, "c", "{\"command\":\"ping\"}", NG_JSON},
		{"c  de\r\n", 0, "c", "de", NG_BENCODE},
		{"c x", -EPROTO, "c", "x", NG_BENCODE},
		{"c le", -EPROTO, "c", "le", NG_BENCODE},
		{"c ", -ENODATA, "c", "", NG_BENCODE},
		{"c \r\n", -ENODATA, "c", "", NG_BENCODE},
		{"cookie", -ENOMSG, NULL, NULL, NG_BENCODE},
		{" de", -ENOMSG, NULL, NULL, NG_BENCODE},
		{"", -ENOMSG, NULL, NULL, NG_BENCODE},
		{"!~ de", 0, "!~", "de", NG_BENCODE},
		{"\x80\x01\x02 de", -ENOMSG, NULL, NULL, NG_BENCODE},
		{"a\x7f de", -ENOMSG, NULL, NULL, NG_BENCODE},
		{"a\t de", -ENOMSG, NULL, NULL, NG_BENCODE},
		{"a\n de", -ENOMSG, NULL, NULL, NG_BENCODE},
		{"\n de", -ENOMSG, NULL, NULL, NG_BENCODE},
		{"\xc3\xbc de", -ENOMSG, NULL, NULL, NG_BENCODE},
	};
	char long_one[NG_COOKIE_MAX + 4];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct ng_frame f = {0};

		assert_int_equal(ng_frame_parse(&f, str_from(T[i].in)), T[i].err);
		if (!T[i].cookie)
			continue;
		assert_true(str_eq(f.cookie, str_from(T[i].cookie)));
		assert_true(str_eq(f.body, str_from(T[i].body)));
		assert_int_equal(f.encoding, T[i].enc);
	}
	struct ng_frame f;
	memset(long_one, 'c', sizeof(long_one));
	memcpy(long_one + NG_COOKIE_MAX, " de", 3);
	assert_int_equal(ng_frame_parse(&f, (struct str){long_one, NG_COOKIE_MAX + 3}), 0);
	memcpy(long_one + NG_COOKIE_MAX, "c de", 4);
	assert_int_equal(ng_frame_parse(&f, (struct str){long_one, NG_COOKIE_MAX + 4}), -ENOMSG);
}

/* Prints the parsed request as text, so that tables can contain it. */
static struct str describe(struct pool *p, const struct ng_request *r)
{
	static const char *const ice[] = {"", "remove", "force", "force-relay", "optional"};
	struct str out = STR("");

#define ADD(...)                                                                             \
	do {                                                                                 \
		struct str more_ = pool_printf(p, __VA_ARGS__);                              \
		out = pool_printf(p, STR_FMT "%s" STR_FMT, STR_ARG(out), out.len ? " " : "", \
			STR_ARG(more_));                                                     \
	} while (0)
	for (int f = 0; f < NG_FLAG_COUNT; f++)
		if (ng_flag(r, (enum ng_flag)f))
			ADD("%s", ng_flag_name((enum ng_flag)f));
	if (r->replace)
		ADD("replace:%x", r->replace);
	if (r->rtcp_mux)
		ADD("mux:%x", r->rtcp_mux);
	if (r->osrtp)
		ADD("osrtp:%x", r->osrtp);
	if (r->sdes.flags)
		ADD("sdes:%x", r->sdes.flags);
	if (r->sdes.no)
		ADD("no:%x", r->sdes.no);
	if (r->sdes.only)
		ADD("only:%x", r->sdes.only);
	if (r->sdes.require_given)
		ADD("require:%x", r->sdes.require);
	if (r->all)
		ADD("all:%d", r->all);
	if (r->traffic)
		ADD("traffic:%d", r->traffic);
	if (r->echo)
		ADD("echo:%d", r->echo);
	if (r->callback.family) {
		char addr[ENDPOINT_STRLEN];

		ADD("callback:%s", endpoint_fmt_addr(&r->callback, addr));
	}
	for (uint32_t i = 0; i < r->media_removes; i++)
		ADD("remove:" STR_FMT, STR_ARG(r->media_remove[i]));
	for (int i = 0; i < SUITE_COUNT && r->sdes.order[i]; i++)
		ADD("order:%u", r->sdes.order[i]);
	for (int i = 0; i < SUITE_COUNT && r->sdes.offerer_pref[i]; i++)
		ADD("pref:%u", r->sdes.offerer_pref[i]);
	if (r->ice)
		ADD("ice:%s", ice[r->ice]);
	if (r->ice_lite)
		ADD("lite:%d", r->ice_lite);
	if (r->dtls)
		ADD("dtls:%d", r->dtls);
	if (r->zrtp)
		ADD("zrtp:%x", r->zrtp);
	if (r->dtls_hash.len)
		ADD("hash:" STR_FMT, STR_ARG(r->dtls_hash));
	if (r->learning)
		ADD("learn:%d", r->learning);
	if (r->transport.len)
		ADD("tp:" STR_FMT, STR_ARG(r->transport));
	if (r->direction[0].len || r->direction[1].len)
		ADD("dir:" STR_FMT "," STR_FMT, STR_ARG(r->direction[0]), STR_ARG(r->direction[1]));
	if (r->received_from.len)
		ADD("from:" STR_FMT, STR_ARG(r->received_from));
	if (r->media_address.len)
		ADD("media:" STR_FMT, STR_ARG(r->media_address));
	if (r->address_family)
		ADD("af:%s", r->address_family == AF_INET6 ? "6" : "4");
	if (r->tos >= 0)
		ADD("tos:%d", r->tos);
	else if (r->tos != NG_TOS_DEFAULT)
		ADD("tos:keep");
	if (r->delete_delay >= 0)
		ADD("delay:%lld", (long long)r->delete_delay);
	if (r->limit >= 0)
		ADD("limit:%lld", (long long)r->limit);
	if (r->label.len)
		ADD("label:" STR_FMT, STR_ARG(r->label));
	if (r->from_tag.len)
		ADD("ft:" STR_FMT, STR_ARG(r->from_tag));
	if (r->to_tag.len)
		ADD("tt:" STR_FMT, STR_ARG(r->to_tag));
	if (r->via_branch.len)
		ADD("vb:" STR_FMT, STR_ARG(r->via_branch));
	if (r->supports_load_limit)
		ADD("loadlimit");
	if (r->warning.len)
		ADD("W(" STR_FMT ")", STR_ARG(r->warning));
	return out;
}

/* in: JSON without the braces and the command; apostrophes stand for quotes. */
static void expect(const char *in, const char *want)
{
	char json[4096];
	struct ng_request r;
	struct ngval *v = NULL;
	struct pool *p;
	struct str got;
	size_t pos;

	snprintf(json, sizeof(json), "{'command':'offer'%s%s}", in[0] ? "," : "", in);
	for (char *c = json; *c; c++)
		if (*c == '\'')
			*c = '"';
	assert_int_equal(pool_create(&p, 1 << 20), 0);
	assert_int_equal(json_parse(&v, p, str_from(json), &pos), 0);
	assert_int_equal(ng_request_parse(&r, p, v), 0);
	assert_int_equal(r.command, NG_OFFER);
	got = describe(p, &r);
	if (!str_eq(got, str_from(want)))
		fail_msg("%s\n  gave: " STR_FMT "\n  want: %s", json, STR_ARG(got), want);
	pool_destroy(p);
}

static void keys_are_understood_in_every_spelling(void **state)
{
	static const struct {
		const char *in, *want;
	} T[] = {
		{"", ""},
		{"'flags':['trust-address','strict-source']", "trust-address strict-source"},
		{"'flags':'trust-address,strict-source'", "trust-address strict-source"},
		{"'Flags':['Trust Address','STRICT_SOURCE']", "trust-address strict-source"},
		{"'flags':['symmetric','no-passthrough','new-branch']", "symmetric"},
		{"'flags':['frobnicate']", "W(unknown flag: frobnicate)"},
		{"'flags':['a\\u0007b','x']", "W(unknown flag: a?b, x)"},
		{"'unheard of':'value','codec':{'strip':['all']},'ptime':20",
			"W(unknown flag: unheard of)"},
		{"'sip-message-type':'sip_request','from-tags':['a','b']", ""},
		{"'replace':['origin','session-connection']", "replace:1"},
		{"'replace':'origin,session_name'", "replace:5"},
		{"'rtcp-mux':['offer','require']", "mux:3"},
		{"'RTCP mux':'demux'", "mux:4"},
		{"'SDES':['off']", "sdes:1"},
		{"'SDES':['no-AES_CM_128_HMAC_SHA1_32','pad']", "sdes:4 no:100"},
		{"'sdes':'only-AES_CM_128_HMAC_SHA1_80'", "only:80"},
		{"'SDES':['order:AES_CM_128_HMAC_SHA1_32;AES_CM_128_HMAC_SHA1_80;']",
			"order:8 order:7"},
		{"'SDES':{'offerer_pref':'AEAD_AES_256_GCM;aes_cm_128_hmac_sha1_80'}",
			"pref:1 pref:7"},
		{"'SDES':['no-ROT13']", "W(unknown flag: SDES=no-ROT13)"},
		{"'SDES':['UNENCRYPTED_SRTP','UNENCRYPTED_SRTCP','ENCRYPTED_SRTP']", "sdes:80"},
		{"'OSRTP':['offer-RFC','accept-RFC']", "osrtp:3"},
		{"'OSRTP':['offer-legacy','accept-legacy']", "osrtp:c"},
		{"'OSRTP':['offer-modern']", "W(unknown flag: OSRTP=offer-modern)"},
		{"'ICE':'remove'", "ice:remove"},
		{"'ICE':'force_relay','ICE-lite':'both'", "ice:force-relay lite:3"},
		{"'ICE':['force','trickle']", "trickle-ICE ice:force"},
		{"'ICE-lite':'off','ICE':'lite-off'", "lite:4"},
		{"'ICE-lite':'half','ICE':'lite-half'",
			"W(unknown flag: ICE-lite=half, ICE=lite-half)"},
		{"'DTLS':'off','DTLS-fingerprint':'SHA-256'", "dtls:1 hash:sha-256"},
		{"'generate RTCP':'off','audio player':'off','DTMF-security':'drop'", ""},
		{"'generate RTCP':'on','audio player':'always','DTMF-security':'tone'",
			"W(generate-RTCP: RTCP is generated for transcoded calls only; audio-player: media use it only while something plays)"},
		{"'DTMF-security':'tone','frequency':3400", ""},
		{"'frequencies':[600,9000]", ""},
		{"'DTMF-security':'tone','frequency':'9000'",
			"W(frequency: not 100 to 3400 Hz, another is used)"},
		{"'frequency':'high'", "W(frequency: not 100 to 3400 Hz, another is used)"},
		{"'DTMF-log-dest':'192.0.2.1:9','delay-buffer':20,'DTMF-delay':20",
			"W(DTMF-log-dest: digits are not reported to other programs; delay-buffer: no delay can be set; DTMF-delay: digits are not delayed)"},
		{"'pause':'yes'", "pause"},
		{"'pause':'no'", ""},
		{"'DTLS':'passive'", "dtls:2"},
		{"'ZRTP':'terminate'", "zrtp:4"},
		{"'ZRTP':['terminate','clear','goclear']", "zrtp:64"},
		{"'ZRTP':['off','require','clear','hold']", "zrtp:18"},
		{"'ZRTP':'passthrough'", "zrtp:2"},
		{"'transport-protocol':'RTP/SAVP'", "tp:RTP/SAVP"},
		{"'transport protocol':'udp/tls/rtp/savpf'", "tp:UDP/TLS/RTP/SAVPF"},
		{"'transport-protocol':'accept'", ""},
		{"'transport-protocol':'RTP/XYZ'", "W(unknown flag: transport-protocol=RTP/XYZ)"},
		{"'direction':['priv','pub']", "dir:priv,pub"},
		{"'direction':'priv,pub'", "dir:priv,pub"},
		{"'direction':['a','b','c']", "dir:a,b"},
		{"'from-interface':'a','to-interface':'b'", "dir:a,b"},
		{"'received-from':['IP4','192.0.2.7']", "from:192.0.2.7"},
		{"'received from':['IP6','2001:db8::7']", "from:2001:db8::7"},
		{"'received-from':['IP4','nowhere']", ""},
		{"'media-address':'203.0.113.5'", "media:203.0.113.5"},
		{"'address family':'IP6'", "af:6"},
		{"'TOS':184", "tos:184"},
		{"'TOS':'184'", "tos:184"},
		{"'TOS':256", ""},
		{"'TOS':-1", "tos:keep"},
		{"'delete delay':0", "delay:0"},
		{"'delete-delay':'15','delete delay':15", "delay:15"},
		{"'delete_delay':'soon'", ""},
		{"'limit':'5'", "limit:5"},
		{"'supports':['load limit']", "loadlimit"},
		{"'from-tag':17,'to_tag':'b','via branch':'z9hG4bK1'", "ft:17 tt:b vb:z9hG4bK1"},
		{"'endpoint-learning':'heuristic'", "learn:4"},
		{"'flags':['pad-crypto']", "pad-crypto sdes:4"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++)
		expect(T[i].in, T[i].want);
}

static void flat_words_and_raw_strings_mean_the_same(void **state)
{
	static const struct {
		const char *words, *want;
	} T[] = {
		{"SDES-off", "sdes:1"},
		{"SDES-no-AES_CM_128_HMAC_SHA1_32 SDES-pad", "sdes:4 no:100"},
		{"sdes-no-aes-cm-128-hmac-sha1-32", "no:100"},
		{"SDES-only-AES_CM_128_HMAC_SHA1_80", "only:80"},
		{"SDES-order:AEAD_AES_128_GCM;AES_CM_128_HMAC_SHA1_80;", "order:2 order:7"},
		{"rtcp-mux-offer rtcp-mux-require", "mux:3"},
		{"replace-origin replace-session-connection", "replace:1"},
		{"replace-SDP-version", "replace:8"},
		{"ICE=remove", "ice:remove"},
		{"ICE-force-relay", "ice:force-relay"},
		{"ICE-lite-forward DTLS-fingerprint-SHA-256", "lite:1 hash:sha-256"},
		{"codec-strip=PCMA codec-offer=opus codec-except=GSM force force-answer", ""},
		{"codec-frob=PCMA", "W(unknown flag: codec-frob)"},
		{"codec-transcode=PCMA transcode=GSM T.38-force=x",
			"W(T.38: there is no fax gateway)"},
		{"DTLS-passive", "dtls:2"},
		{"ZRTP-terminate ZRTP=hold", "zrtp:14"},
		{"ZRTP=off", "zrtp:1"},
		{"endpoint-learning-off", "learn:1"},
		{"address-family=IP4", "af:4"},
		{"OSRTP-accept", "osrtp:a"},
		{"RTP/SAVP", "tp:RTP/SAVP"},
		{"RTP AVP", "tp:RTP/AVP"},
		{"SRTP AVPF", "tp:RTP/SAVPF"},
		{"SRTP AVP", "tp:RTP/SAVP"},
		{"SAVPF", "tp:RTP/SAVPF"},
		{"DTLS AVPF", "tp:UDP/TLS/RTP/SAVPF"},
		{"transport-protocol=RTP/AVPF", "tp:RTP/AVPF"},
		{"TOS=46 delete-delay=5 media-address=192.0.2.1", "media:192.0.2.1 tos:46 delay:5"},
		{"direction=priv direction=pub", "dir:priv,pub"},
		{"internal external", "dir:internal,external"},
		{"label=caller to-tag", "to-tag label:caller"},
		{"codec-strip-all codec-mask-opus T.38-decode ptime=20",
			"W(T.38: there is no fax gateway)"},
		{"always-transcode transcode-PCMA", "always-transcode"},
		{"no-codec-renegotiation", "reuse-codecs"},
		{"codec-except-GSM codec-offer-opus", ""},
		{"passthrough", "passthrough"},
		{"lable=x", "W(unknown flag: lable)"},
		{"WebRTC",
			"no-rtcp-attribute generate-mid mux:3 sdes:1 ice:force tp:UDP/TLS/RTP/SAVPF"},
		{"via-branch=auto sdp=x command=delete supports=load-limit flags=fatal", ""},
		{"SDES-require:ROT13;", "require:0 W(unknown flag: SDES-require:ROT13;)"},
		{"SDES-require:ROT13;AEAD_AES_256_GCM",
			"require:2 W(unknown flag: SDES-require:ROT13;AEAD_AES_256_GCM)"},
		{"xmlrpc-callback=proxy.example.org media-echo=loud drop-traffic=now all=some",
			"W(unknown flag: xmlrpc-callback=proxy.example.org, media-echo=loud, drop-traffic=now, all=some)"},
		{"drop-traffic-stop media-echo-sinkhole all-flows", "all:5 traffic:1"},
		{"SDES-no-ROT13 warp", "W(unknown flag: SDES-no-ROT13, warp)"},
		{"no-such-key=1", "W(unknown flag: no-such-key)"},
		{"preauth=chain/5/32/512",
			"W(unknown flag: preauth=chain/5/32/512; preauth: WIDTH of chain is 4, 8 or 32)"},
		{"preauth=offer:chain/4/32/100",
			"W(unknown flag: preauth=offer:chain/4/32/100; preauth: WINDOW of chain is 64, 128 or 512)"},
		{"call-id=x from-tag=y", "ft:y"},
	};
	char in[2048], list[1024];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		size_t n = 0;

		snprintf(in, sizeof(in), "'rtpp-flags':'  %s '", T[i].words);
		expect(in, T[i].want);
		/* the same flags as a list under "flags" */
		for (const char *c = T[i].words; *c; c++)
			n += (size_t)snprintf(
				list + n, sizeof(list) - n, *c == ' ' ? "','" : "%c", *c);
		snprintf(in, sizeof(in), "'flags':['%s']", list);
		expect(in, T[i].want);
	}
}

static void templates_stand_for_their_flags(void **state)
{
	static const struct ng_template one[] = {
		{STR("default"), STR("fatal SDES-pad")},
		{STR("offer"), STR("replace-origin label=theirs")},
		{STR("answer"), STR("fast")},
		{STR("WebRTC-like"), STR("SRTP AVPF direction=[a b] generate-mid")},
		{STR("nested"), STR("reset template=WebRTC-like")},
	};
	static const struct ng_templates templates = {one, ARRAY_LEN(one)};
	static const struct {
		const char *in, *want;
	} T[] = {
		{"{\"command\":\"offer\"}", "fatal replace:1 sdes:4 label:theirs"},
		{"{\"label\":\"ours\",\"command\":\"offer\"}", "fatal replace:1 sdes:4 label:ours"},
		{"{\"command\":\"answer\"}", "fatal fast sdes:4"},
		{"{\"command\":\"answer\",\"rtpp-flags\":\"template=webrtc-like direction=[c d]\"}",
			"fatal fast generate-mid sdes:4 tp:RTP/SAVPF dir:c,d"},
		{"{\"command\":\"query\",\"template\":\"WebRTC-like\",\"flags\":[\"to-tag\"]}",
			"fatal to-tag generate-mid sdes:4 tp:RTP/SAVPF dir:a,b"},
		{"{\"command\":\"query\",\"flags\":[\"template-nested\"]}",
			"reset fatal sdes:4 W(unknown flag: template=WebRTC-like)"},
		{"{\"command\":\"query\",\"template\":\"no such\"}",
			"fatal sdes:4 W(unknown flag: template=no such)"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct ngval *v = NULL;
		struct ng_request r;
		struct pool *p;
		struct str got;
		size_t pos;

		assert_int_equal(pool_create(&p, 1 << 20), 0);
		assert_int_equal(json_parse(&v, p, str_from(T[i].in), &pos), 0);
		assert_int_equal(ng_request_parse_with(&r, p, v, &templates), 0);
		got = describe(p, &r);
		if (!str_eq(got, str_from(T[i].want)))
			fail_msg("%s\n  gave: " STR_FMT "\n  want: %s", T[i].in, STR_ARG(got),
				T[i].want);
		pool_destroy(p);
	}
}

static void raw_strings_have_lists_and_dictionaries(void **state)
{
	static const struct {
		const char *words, *want;
	} T[] = {
		{"replace=[origin session-name] fatal", "fatal replace:5"},
		{"SDES=[no-AES_CM_128_HMAC_SHA1_32 pad]", "sdes:4 no:100"},
		{"SDES=[order=AES_CM_128_HMAC_SHA1_32;AEAD_AES_256_GCM]", "order:8 order:1"},
		{"direction=[a b] direction=c", "dir:a,b"},
		{"codec=[strip=[PCMA all] mask=opus] fast", "fast"},
		{"codec=[set=[opus/48000/2/32000 AMR] transcode=PCMU accept=x]", ""},
		{"SDES=[require:AES_256_CM_HMAC_SHA1_80;AEAD_AES_256_GCM;]", "require:a"},
		{"drop-traffic=start debugging", "debug traffic:1"},
		{"media-echo=blackhole", "traffic:1"},
		{"media-echo=both", "echo:3"},
		{"media-echo-forward", "echo:1"},
		{"all=flows to-label=x", "all:5"},
		{"sdp-media-remove=[video message]", "remove:video remove:message"},
		{"xmlrpc-callback=192.0.2.9", "callback:192.0.2.9"},
		{"received-from=[IP4 192.0.2.9]", "from:192.0.2.9"},
		{"rtcp-mux=[offer", "mux:1"},
		{"fast]] fatal", "fatal fast"},
		{"[[[fast]]] fatal", "fatal"},
		{"=x = [=] fatal", "fatal W(unknown flag: x)"},
		{"ICE= DTLS=off", "dtls:1"},
		{"fatal\tfast\r\nreset", "reset fatal fast"},
	};
	char in[1024];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		snprintf(in, sizeof(in), "'rtpp-flags':'%s'", T[i].words);
		for (char *c = in; *c; c++)
			if (*c == '\t' || *c == '\r' || *c == '\n')
				*c = ' ';
		expect(in, T[i].want);
	}
	expect("'rtpp-flags':'direction=x direction=y SDES-off ICE=force',"
	       "'direction':['a','b'],'ICE':'remove'",
		"sdes:1 ice:force dir:x,y");
}

static int parse(const char *json, enum ng_command *command)
{
	struct ng_request r;
	struct ngval *v = NULL;
	struct pool *p;
	size_t pos;
	int err;

	assert_int_equal(pool_create(&p, 1 << 20), 0);
	assert_int_equal(json_parse(&v, p, str_from(json), &pos), 0);
	err = ng_request_parse(&r, p, v);
	*command = r.command;
	pool_destroy(p);
	return err;
}

static void fill(char *out, size_t len, const char *pattern, const char *name)
{
	const char *at = strstr(pattern, "%s");

	snprintf(out, len, "%.*s%s%s", (int)(at - pattern), pattern, name, at + 2);
}

/* Every name of every suite, in every place that takes one, also in small letters and with '-' for
 * '_'. */
static void every_suite_is_known_by_every_name(void **state)
{
	static const struct {
		const char *in, *want;
	} T[] = {
		{"'SDES':['only-%s']", "only:%x"},
		{"'SDES':['no-%s']", "no:%x"},
		{"'flags':['SDES-only-%s']", "only:%x"},
		{"'rtpp-flags':'SDES-no-%s'", "no:%x"},
		{"'rtpp-flags':'SDES=[only-%s]'", "only:%x"},
		{"'rtpp-flags':'SDES-order:%s;'", "order:%u"},
		{"'SDES':['offerer_pref:%s;']", "pref:%u"},
	};

	(void)state;
	for (uint32_t s = SUITE_PLAIN + 1; s < SUITE_COUNT; s++)
		for (uint32_t form = 0; form < 4 * ARRAY_LEN(T); form++) {
			const struct srtp_suite *row = srtp_suite_get(s);
			const char *in = T[form / 4].in, *pattern = T[form / 4].want;
			char name[64], text[256], want[64];

			snprintf(name, sizeof(name), "%s",
				form & 1 && row->alias[0] ? row->alias : row->name);
			for (char *c = name; *c && form & 2; c++)
				*c = *c == '_'                   ? '-'
					: *c >= 'A' && *c <= 'Z' ? (char)(*c + 32)
								 : *c;
			fill(text, sizeof(text), in, name);
			snprintf(want, sizeof(want), "%.*s", (int)strcspn(pattern, "%"), pattern);
			snprintf(want + strlen(want), sizeof(want) - strlen(want),
				strchr(pattern, 'x') ? "%x" : "%u",
				strchr(pattern, 'x') ? 1u << s : s);
			expect(text, want);
		}
}

static void a_command_must_be_there_and_known(void **state)
{
	enum ng_command c;

	(void)state;
	assert_int_equal(parse("{}", &c), -ENOKEY);
	assert_int_equal(parse("{\"command\":[]}", &c), -ENOKEY);
	assert_int_equal(parse("[]", &c), -ENOKEY);
	assert_int_equal(parse("{\"command\":\"inject start\"}", &c), -EOPNOTSUPP);
	assert_int_equal(parse("{\"command\":\"none\"}", &c), -EOPNOTSUPP);
#define X(id, name)                                                   \
	assert_int_equal(parse("{\"command\":\"" name "\"}", &c), 0); \
	assert_int_equal(c, NG_##id);                                 \
	assert_string_equal(ng_command_name(c), name);
	NG_COMMANDS(X)
#undef X
}

/* Thousands of unknown words, or brackets without end, cause a bounded warning and bounded
 * nesting. */
static void nonsense_costs_little(void **state)
{
	size_t len = 60000;
	char *text = malloc(len + 1);
	struct ng_request r;
	struct pool *p;

	(void)state;
	assert_non_null(text);
	for (int round = 0; round < 4; round++) {
		static const char *const unit[] = {"x ", "[", "a=[", "flags=flags="};
		struct ngval *d;
		size_t unit_len = strlen(unit[round]);

		for (size_t i = 0; i < len; i++)
			text[i] = unit[round][i % unit_len];
		text[len] = 0;
		assert_int_equal(pool_create(&p, 8 << 20), 0);
		d = ngval_dict(p);
		ngval_add_str(p, d, STR("command"), STR("ping"));
		ngval_add_str(p, d, STR("rtpp-flags"), (struct str){text, len});
		ngval_add_str(p, d, STR("flags"), (struct str){text, len});
		assert_int_equal(ng_request_parse(&r, p, d), 0);
		assert_true(r.warning.len < 2000);
		pool_destroy(p);
	}
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_are_cookie_space_dictionary),
		cmocka_unit_test(keys_are_understood_in_every_spelling),
		cmocka_unit_test(flat_words_and_raw_strings_mean_the_same),
		cmocka_unit_test(templates_stand_for_their_flags),
		cmocka_unit_test(raw_strings_have_lists_and_dictionaries),
		cmocka_unit_test(every_suite_is_known_by_every_name),
		cmocka_unit_test(a_command_must_be_there_and_known),
		cmocka_unit_test(nonsense_costs_little),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
