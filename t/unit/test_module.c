/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The Kamailio module's pure files: the meaning of replies, its own flags, and the policies. They
 * are included, because the daemon's library does not contain them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../module/policy.c"
#include "../../module/wire.c"

static void replies_are_told_apart(void **state)
{
	static const struct {
		const char *bytes;
		enum wire_result result;
		const char *reason;
	} T[] = {
		{"1_1 d6:result4:ponge", WIRE_PONG, ""},
		{"1_1 d6:result2:oke", WIRE_OK, ""},
		{"1_1 d6:result10:load limit7:message3:xyze", WIRE_LOAD_LIMIT, "xyz"},
		{"1_1 d6:result5:error12:error-reason16:Ran out of portse", WIRE_LOAD_LIMIT,
			"Ran out of ports"},
		{"1_1 d6:result5:error12:error-reason15:Unknown call-ide", WIRE_NO_CALL,
			"Unknown call-id"},
		{"1_1 d6:result2:ok7:warning39:Call-ID not found or tags didn't matche ",
			WIRE_GARBAGE, "unintelligible reply"},
		{"1_1 d6:result2:ok7:warning39:Call-ID not found or tags didn't matchXe",
			WIRE_NO_CALL, ""},
		{"1_1 d6:result5:error12:error-reason4:a\n\x80"
		 "be",
			WIRE_ERROR, "a??b"},
		{"1_1 d6:result3:howe", WIRE_GARBAGE, "unintelligible reply"},
		{"1_1 d6:resultli1eee", WIRE_GARBAGE, "unintelligible reply"},
		{"1_1 i5e", WIRE_GARBAGE, "unintelligible reply"},
		{"1_1 d6:result", WIRE_GARBAGE, "unintelligible reply"},
		{" d6:result4:ponge", WIRE_GARBAGE, "unintelligible reply"},
		{"1_1", WIRE_GARBAGE, "unintelligible reply"},
		{"", WIRE_GARBAGE, "unintelligible reply"},
	};
	struct wire_reply r;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		wire_read(&r, T[i].bytes, strlen(T[i].bytes), false, TEXT(""), TEXT(""));
		assert_int_equal(r.result, T[i].result);
		if (T[i].result != WIRE_NO_CALL || T[i].reason[0])
			assert_string_equal(r.reason, T[i].reason);
		wire_fini(&r);
	}
}

static void a_query_tells_both_suites(void **state)
{
	static const char q[] =
		"1_1 d6:result2:ok4:tagsd1:ad6:mediasld7:streamsld12:crypto suite3:ONEed12:crypto suite3:ONEeeed7:streamsld12:"
		"crypto suite3:TWOeeeee1:bd6:mediasleeee";
	struct wire_reply r;

	(void)state;
	wire_read(&r, q, sizeof(q) - 1, true, TEXT("a"), TEXT("b"));
	assert_int_equal(r.result, WIRE_OK);
	assert_string_equal(r.from_suite, "ONE,TWO");
	assert_string_equal(r.to_suite, "");
	assert_true(r.json.len > 20 && r.json.s[0] == '{');
	wire_fini(&r);
}

static void a_query_tells_the_sas(void **state)
{
	static const char q[] =
		"1_1 d6:result2:ok4:tagsd1:ad6:mediasld7:streamsleed4:ZRTPd3:SAS4:ab2c8:verified2:noe"
		"7:streamsleeee"
		"1:bd6:mediasld4:ZRTPd3:SAS5:a\nb2ceeeeee";
	struct wire_reply r;

	(void)state;
	wire_read(&r, q, sizeof(q) - 1, true, TEXT("a"), TEXT("b"));
	assert_string_equal(r.from_sas.text, "ab2c");
	assert_string_equal(r.to_sas.text, ""); /* control characters do not get into logs */
	wire_fini(&r);
}

static void a_query_tells_whom_mikey_proved(void **state)
{
#define MEDIA(peer) "d5:MIKEYd4:peer" peer "e7:streamslee"
#define ALICE       "17:sip:alice@example"
	static const struct {
		const char *medias, *peer;
	} T[] = {
		{MEDIA(ALICE), "sip:alice@example"},
		{"d7:streamslee" MEDIA(ALICE) MEDIA(ALICE), "sip:alice@example"},
		{MEDIA(ALICE) MEDIA("13:eve@example.x"), ""},
		{MEDIA("17:sip:al\nce@example"), ""},
		{MEDIA("12:sip:a b@c.de"), ""},
		{MEDIA("0:"), ""},
		{"d7:streamslee", ""},
	};
	char q[512];
	struct wire_reply r;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		snprintf(q, sizeof(q), "1_1 d6:result2:ok4:tagsd1:ad6:mediaslee1:bd6:mediasl%seeee",
			T[i].medias);
		wire_read(&r, q, strlen(q), true, TEXT("a"), TEXT("b"));
		assert_int_equal(r.result, WIRE_OK);
		assert_string_equal(r.from_peer, "");
		assert_string_equal(r.to_peer, T[i].peer);
		wire_fini(&r);
		wire_read(&r, q, strlen(q), true, TEXT("b"), TEXT("a"));
		assert_string_equal(r.from_peer, T[i].peer);
		assert_string_equal(r.to_peer, "");
		wire_fini(&r);
	}
}

/* A part of an identity may be somebody else's. */
static void a_long_identity_is_not_cut(void **state)
{
	char q[1024];
	struct wire_reply r;

	(void)state;
	for (int len = (int)WIRE_PEER - 1; len <= (int)WIRE_PEER; len++) {
		snprintf(q, sizeof(q),
			"1_1 d6:result2:ok4:tagsd1:ad6:mediasld5:MIKEYd4:peer%d:%0*d"
			"eeeeee",
			len, len, 7);
		wire_read(&r, q, strlen(q), true, TEXT("a"), TEXT("b"));
		assert_int_equal(r.result, WIRE_OK);
		assert_int_equal(strlen(r.from_peer), len < (int)WIRE_PEER ? len : 0);
		wire_fini(&r);
	}
}

static void suites_of_a_body(void **state)
{
	static const struct {
		const char *sdp, *suites;
		int count;
	} T[] = {
		{"v=0\r\nm=audio 1 RTP/SAVP 0\r\na=crypto:1 A inline:x\r\na=crypto:2 B inline:x\r\n",
			"A,B", 2},
		{"v=0\nm=audio 1 RTP/SAVP 0\na=crypto:1 A inline:x\nm=video 1 RTP/SAVP 0\na=crypto:1 A inline:y",
			"A", 1},
		{"v=0\r\nm=audio 1 RTP/AVP 0\r\n", "none", 0},
		{"v=0\r\na=fingerprint:sha-1 x\r\nm=audio 1 UDP/TLS/RTP/SAVP 0\r\n", "DTLS", 0},
		{"v=0\r\n", "", 0},
		{"m=audio\na=crypto:\na=crypto:1\na=crypto:1 ,\n", "none", 0},
		{"", "", 0},
	};
	char out[WIRE_SUITES];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		assert_int_equal(wire_sdp_suites(out, sizeof(out),
					 (struct text){T[i].sdp, strlen(T[i].sdp)}),
			T[i].count);
		assert_string_equal(out, T[i].suites);
	}
}

static struct words split(char *out, const char *flags)
{
	struct words w;

	words_split(&w, out, (struct text){flags, strlen(flags)});
	return w;
}

static void own_words_do_not_reach_the_daemon(void **state)
{
	char out[256];
	struct words w = split(out,
		"  RTP/SAVP via-branch=auto require-in=strong\tpolicy=downgrade node-set=7 Emergency ICE=remove ");

	(void)state;
	assert_string_equal(out, "RTP/SAVP ICE=remove");
	assert_string_equal(w.via, "auto");
	assert_int_equal(w.set, 7);
	assert_true(w.policy.emergency && w.policy.downgrade && !w.bad);
	assert_true(w.policy.require_in && !w.policy.require_out);
	assert_true(split(out, "require-in=nonsense").bad);
	assert_true(split(out, "require-in=").bad);
	assert_true(split(out, "require-out=aead,nonsense").bad);
	assert_true(split(out, "policy=maybe").bad);
	assert_false(split(out, "emergency-not require=x").policy.emergency);
	assert_string_equal(out, "emergency-not require=x");
}

static void classes_are_sets_of_suites(void **state)
{
	static const struct {
		const char *wish, *list;
		bool has, only;
	} T[] = {
		{"aead", "AEAD_AES_128_GCM", true, true},
		{"aead", "AES_CM_128_HMAC_SHA1_80,AEAD_AES_128_GCM", true, false},
		{"aead", "none", false, false},
		{"aead", "", false, false},
		{"any", "NULL_HMAC_SHA1_32", true, true},
		{"any", "none", false, false},
		{"any", "DTLS", false, false},
		{"encrypted", "NULL_HMAC_SHA1_80", false, false},
		{"auth80", "AES_CM_128_HMAC_SHA1_32", false, false},
		{"auth80", "NULL_HMAC_SHA1_80", false, false},
		{"strong", "AES_CM_256_HMAC_SHA1_80", true, true},
		{"strong", "AES_CM_256_HMAC_SHA1_32", false, false},
		{"strong", "AES_256_CM_HMAC_SHA1_80", true, true},
		{"strong", "AEAD_AES_128_GCM", false, false},
		{"aead,AES_CM_128_HMAC_SHA1_80", "aes_cm_128_hmac_sha1_80", true, true},
	};
	char out[256], flags[64];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		snprintf(flags, sizeof(flags), "require-in=%s", T[i].wish);
		struct words w = split(out, flags);

		assert_false(w.bad);
		assert_int_equal(policy_has(w.policy.require_in, T[i].list), T[i].has);
		assert_int_equal(policy_only(w.policy.require_in, T[i].list), T[i].only);
	}
	policy_flags(out, sizeof(out), split(flags, "require-out=aead").policy.require_out);
	assert_string_equal(out, " SDES-only-AEAD_AES_256_GCM SDES-only-AEAD_AES_128_GCM");
}

#define M(port, proto) "m=audio " port " " proto " 0\r\n"
#define G              "a=crypto:1 AEAD_AES_256_GCM inline:x\r\n"
#define C              "a=crypto:2 AES_CM_128_HMAC_SHA1_80 inline:x\r\n"

/* A required policy holds for every media. Rejected media and media that are not RTP carry
 * nothing. */
static void a_demand_is_of_each_media(void **state)
{
	static const struct {
		const char *sdp;
		bool has, only; /* requirements for an offer's and an answer's leg */
		const char *failing;
	} T[] = {
		{"v=0\r\n" M("4000", "RTP/SAVP") G C, true, false,
			"AEAD_AES_256_GCM,AES_CM_128_HMAC_SHA1_80"},
		{M("4000", "RTP/SAVP") G, true, true, ""},
		{M("4000", "RTP/SAVPF") G M("4002", "RTP/AVP"), false, false, "none"},
		{M("4000", "RTP/AVP") M("4002", "RTP/SAVP") G, false, false, "none"},
		{M("4000", "RTP/SAVP") G M("4002", "RTP/SAVP") C, false, false,
			"AES_CM_128_HMAC_SHA1_80"},
		{M("4000", "RTP/SAVP") G M("0", "RTP/AVP") "m=image 9 udptl t38\r\n", true, true,
			""},
		{M("4000", "RTP/SAVP") G "m=image 9 udptl t38\r\n" C, true, true, ""},
		{M("4000", "RTP/AVP") G, false, true, "none"}, /* opportunistic */
		{M("4000", "RTP/SAVP") "a=crypto:1 JUNK inline:x\r\n" G, true, false,
			"JUNK,AEAD_AES_256_GCM"},
		{"v=0\r\n", true, true, ""},
		{"m=\r\nm=audio\r\n" G, true, true, ""},
	};
	char out[64], failing[POLICY_LIST];
	uint32_t set = split(out, "require-in=strong").policy.require_in;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct text sdp = {T[i].sdp, strlen(T[i].sdp)};
		bool has = policy_body(set, sdp, false, false, failing), only;

		if (!has)
			assert_string_equal(failing, T[i].failing);
		only = policy_body(set, sdp, true, true, failing);
		if (!only)
			assert_string_equal(failing, T[i].failing);
		if (has != T[i].has || only != T[i].only)
			fail_msg("row %zu: %d %d", i, has, only);
	}
}

static void fall_backs_take_limits_out_of_flags(void **state)
{
	char f[] = "RTP/SAVP SDES-only-A SDES-pad  SDES=no-B transport-protocol=RTP/SAVP x",
	     g[sizeof(f)],
	     h[] = "MIKEY=require MIKEY-peer=a DTLS=NENA ZRTP=require zrtp-hold ZRTP=terminate";
	static const char *const L[][2] = {
		{"SDES-nonew SDES=require:A; SDES-require:A SDES-no SDES=noneword",
			"SDES-no SDES=noneword"},
		{"a SDES=[only-A pad no-B lifetime] b", "a SDES=[ pad lifetime] b"},
		{"SDES=[only-A]", "SDES=[]"},
		{"SDES=[pad only-A] only-B", "SDES=[pad ] only-B"},
		{"SDES=[pad only-A", "SDES=[pad"},
		{"SDES=[", "SDES=["},
		{"x sdes=[pad  nonew\tREQUIRE:A;B; ] y]", "x SDES=[pad ] y]"},
	};
	size_t n;

	(void)state;
	strcpy(g, f);
	n = policy_loosen(f, strlen(f), false);
	assert_int_equal(n, strlen("RTP/SAVP SDES-pad transport-protocol=RTP/SAVP x"));
	assert_memory_equal(f, "RTP/SAVP SDES-pad transport-protocol=RTP/SAVP x", n);
	n = policy_loosen(g, strlen(g), true);
	assert_int_equal(n, 10);
	assert_memory_equal(g, "SDES-pad x", n);
	assert_int_equal(policy_loosen(h, strlen(h), false), strlen(h));
	n = policy_loosen(h, strlen(h), true);
	assert_int_equal(n, strlen("MIKEY-peer=a ZRTP=terminate"));
	assert_memory_equal(h, "MIKEY-peer=a ZRTP=terminate", n);
	for (size_t i = 0; i < ARRAY_LEN(L); i++) {
		char list[128];

		strcpy(list, L[i][0]);
		n = policy_loosen(list, strlen(list), false);
		if (n != strlen(L[i][1]) || memcmp(list, L[i][1], n) != 0)
			fail_msg("%s: %.*s", L[i][0], (int)n, list);
	}
	assert_true(policy_allows("suites, rtp", "rtp"));
	assert_false(policy_allows("suites", "rtp"));
	assert_false(policy_allows(NULL, "rtp"));
}

static void emergency_services_have_names(void **state)
{
	static const struct {
		const char *uri;
		bool sos;
	} T[] = {
		{"urn:service:sos", true},
		{"URN:service:SOS.fire", true},
		{"urn:service:sos;x=y", true},
		{"urn:service:sosoon", false},
		{"urn:service:counseling", false},
		{"sip:sos@x", false},
		{"", false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++)
		assert_int_equal(policy_sos((struct text){T[i].uri, strlen(T[i].uri)}), T[i].sos);
	assert_false(policy_sos((struct text){NULL, 0}));
}

static void requests_can_be_read_back_and_changed(void **state)
{
	const struct wire_request q = {.command = "offer",
		.call_id = TEXT("c"),
		.from_tag = TEXT("f"),
		.sdp = TEXT("v=0"),
		.flags = TEXT("A B"),
		.added = TEXT("C"),
		.received_from = TEXT("192.0.2.1")};
	char buf[512], again[64];
	const struct wire_sign no = {0};
	int n = wire_write(buf, sizeof(buf), no, TEXT("1_2"), &q);

	(void)state;
	assert_true(n > 0);
	assert_memory_equal(buf, "1_2 d7:command5:offer", 21);
	assert_int_equal(wire_flags(again, sizeof(again), (struct text){buf, (size_t)n}), 5);
	assert_string_equal(again, "A B C");
	n = wire_rewrite(
		buf, sizeof(buf), no, (struct text){buf, (size_t)n}, TEXT("1_3"), TEXT("D"));
	assert_true(n > 0);
	assert_memory_equal(buf, "1_3 d", 5);
	wire_flags(again, sizeof(again), (struct text){buf, (size_t)n});
	assert_string_equal(again, "D");
	assert_int_equal(wire_write(buf, 20, no, TEXT("1_2"), &q), -EMSGSIZE);
}

static void names_cannot_leave_their_place(void **state)
{
	static const struct {
		const char *from, *to, *flags, *want;
	} T[] = {
		{"alice", "+49%30*1", "ICE=remove", "8:metadata22:from:alice|to:+49%30*1"},
		{"a|to:x=y z\x1b\xff", "", "", "8:metadata21:from:a_to_x_y_z__|to:"},
		{"", "bob", "", "8:metadata12:from:|to:bob"},
		{"", "", "", NULL},
		{"alice", "bob", "RTP/AVP metadata=mine", NULL},
	};
	char buf[512], line[101];
	struct wire_sign no = {NULL, 0};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		const struct wire_request r = {.command = "offer",
			.flags = {T[i].flags, strlen(T[i].flags)},
			.from_name = {T[i].from, strlen(T[i].from)},
			.to_name = {T[i].to, strlen(T[i].to)}};
		int n = wire_write(buf, sizeof(buf), no, TEXT("1_2"), &r);

		assert_true(n > 0);
		if (T[i].want)
			assert_non_null(memmem(buf, (size_t)n, T[i].want, strlen(T[i].want)));
		else
			assert_null(memmem(buf, (size_t)n, "8:metadata", 10));
	}
	memset(line, 'x', sizeof(line));
	assert_int_equal(wire_write(buf, sizeof(buf), no, TEXT("1_2"),
				 &(struct wire_request){
					 .command = "offer", .to_name = {line, sizeof(line)}}),
		(int)strlen("1_2 d7:command5:offer8:metadata73:from:|to:e") + 64);
}

static void sdp_is_found_in_any_body(void **state)
{
	static const struct {
		struct text body;
		bool media, sdp;
	} T[] = {
		{TEXT("v=0\r\nm=audio"), true, true},
		{TEXT("m=audio"), true, true},
		{TEXT("\0\1\nm=audio"), true, true},
		{TEXT("v=0\rm=audio"), true, true},
		{TEXT("a m=audio"), false, false},
		{TEXT("Content-Type: APPLICATION/Sdp;x"), false, true},
		{TEXT("\0application/sdp"), false, true},
		{TEXT("application/sd"), false, false},
		{TEXT("m"), false, false},
		{TEXT(""), false, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		assert_int_equal(wire_has_media(T[i].body), T[i].media);
		assert_int_equal(wire_has_sdp(T[i].body), T[i].sdp);
	}
}

/* The same fixed vectors as in test_ng_auth.c. */
static void requests_are_signed_and_replies_verified(void **state)
{
	static const char key[] =
		"000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n";
	static const struct {
		const char *reply;
		bool genuine;
	} R[] = {
		{"1_2_3~1700000000~fdd902c2e65ac884df8054c8ba0857d0 d6:result4:ponge", true},
		{"1_2_3~1700000000~fdd902c2e65ac884df8054c8ba0857d0 d6:result2:oke", false},
		{"1_2_3~1700000000~fdd902c2e65ac884df8054c8ba0857d1 d6:result4:ponge", false},
		{"1_2_3~1700000001~fdd902c2e65ac884df8054c8ba0857d0 d6:result4:ponge", false},
		{"1_2_4~1700000000~fdd902c2e65ac884df8054c8ba0857d0 d6:result4:ponge", false},
		{"1_2_3~1700000000~6bf6e7dcc01b4e1ed786102ac66c3fa8 d7:command4:pinge", false},
		{"1_2_3 d6:result4:ponge", false},
		{"1_2_3", false},
		{"", false},
	};
	const struct wire_request ping = {.command = "ping"};
	char path[] = "/tmp/test_module.XXXXXX", err[WIRE_ERR], buf[512], again[512];
	struct wire_sign sign = {.seconds = 1700000000};
	int fd = mkstemp(path), n;
	struct wire_keys *keys;
	struct text cookie;

	(void)state;
	assert_int_equal(write(fd, key, sizeof(key) - 1), sizeof(key) - 1);
	assert_int_equal(fchmod(fd, 0644), 0);
	assert_int_equal(wire_keys_read(&keys, "ng_key_file", path, err), -EPERM);
	assert_non_null(strstr(err, "ng_key_file="));
	assert_int_equal(fchmod(fd, 0600), 0);
	assert_int_equal(wire_keys_read(&keys, "ng_key_file", path, err), 0);
	sign.keys = keys;
	n = wire_write(buf, sizeof(buf), sign, TEXT("1_2_3"), &ping);
	assert_int_equal(n, 49 + 1 + 17);
	assert_memory_equal(
		buf, "1_2_3~1700000000~6bf6e7dcc01b4e1ed786102ac66c3fa8 d7:command4:pinge", n);
	cookie = wire_cookie(keys, buf, (size_t)n);
	assert_true(text_is(cookie, "1_2_3"));
	assert_int_equal(wire_cookie(keys, "1_2_3 de", 8).len, 0);
	assert_int_equal(wire_cookie(NULL, "1_2_3 de", 8).len, 5);
	for (size_t i = 0; i < sizeof(R) / sizeof(R[0]); i++) {
		assert_int_equal(wire_genuine(keys, (struct text){buf, (size_t)n}, R[i].reply,
					 strlen(R[i].reply)),
			R[i].genuine);
		assert_true(wire_genuine(
			NULL, (struct text){buf, (size_t)n}, R[i].reply, strlen(R[i].reply)));
	}
	n = wire_rewrite(
		again, sizeof(again), sign, (struct text){buf, (size_t)n}, TEXT("1_2_3"), TEXT(""));
	assert_int_equal(n, 67);
	assert_memory_equal(again, buf, n);
	assert_int_equal(write(fd, "x\n", 2), 2);
	wire_keys_free(keys);
	assert_int_equal(wire_keys_read(&keys, "ng_key_file", path, err), -EINVAL);
	assert_non_null(strstr(err, "line 2"));
	close(fd);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(replies_are_told_apart),
		cmocka_unit_test(a_query_tells_both_suites),
		cmocka_unit_test(a_query_tells_the_sas),
		cmocka_unit_test(a_query_tells_whom_mikey_proved),
		cmocka_unit_test(a_long_identity_is_not_cut),
		cmocka_unit_test(suites_of_a_body),
		cmocka_unit_test(own_words_do_not_reach_the_daemon),
		cmocka_unit_test(classes_are_sets_of_suites),
		cmocka_unit_test(a_demand_is_of_each_media),
		cmocka_unit_test(fall_backs_take_limits_out_of_flags),
		cmocka_unit_test(emergency_services_have_names),
		cmocka_unit_test(requests_can_be_read_back_and_changed),
		cmocka_unit_test(names_cannot_leave_their_place),
		cmocka_unit_test(sdp_is_found_in_any_body),
		cmocka_unit_test(requests_are_signed_and_replies_verified),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
