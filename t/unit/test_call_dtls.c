/* SPDX-License-Identifier: GPL-2.0-or-later */
/* DTLS-SRTP and ICE in offers and answers: what terminals are told, what the session of each leg is
 * to be, and what events of sessions make of the call. RFC 5763, RFC 8839, RFC 8842. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "call/call_int.h"
#include "call/reach_again.h"
#include "call/tick.h"
#include "call_talk.h"
#include "keying/dtls_cert.h"
#include "mock_sessions.h"
#include "offer/trickle.h"
#include "srtp/preauth.h"

#define PRINT_A                                                                                    \
	"a=fingerprint:sha-256 01:02:03:04:05:06:07:08:09:0A:0B:0C:0D:0E:0F:10:11:12:13:14:15:16:" \
	"17:18:19:1A:1B:1C:1D:1E:1F:20\r\n"
#define PRINT_B                                                                                    \
	"a=fingerprint:sha-256 21:02:03:04:05:06:07:08:09:0A:0B:0C:0D:0E:0F:10:11:12:13:14:15:16:" \
	"17:18:19:1A:1B:1C:1D:1E:1F:20\r\n"
#define ICE_A                                                           \
	"a=ice-ufrag:abcd\r\na=ice-pwd:abcdefghijklmnopqrstuv\r\n"      \
	"a=candidate:1 1 udp 2130706431 198.51.100.1 4000 typ host\r\n" \
	"a=candidate:2 1 tcp 2130706431 198.51.100.1 9 typ host tcptype active\r\n"
#define ICE_A2 "a=ice-ufrag:efgh\r\na=ice-pwd:bbcdefghijklmnopqrstuv\r\n"
#define MUX    "a=rtcp-mux\r\n"

struct rig {
	struct talk t;
	struct mock_sessions s;
	bool answered;
};

static void start(struct rig *r)
{
	memset(r, 0, sizeof(*r));
	talk_start(&r->t);
	mock_sessions_start(&r->s, r->t.m, r->t.c);
}

static void end(struct rig *r)
{
	talk_end(&r->t);
	mock_sessions_end(&r->s);
}

static bool says(const struct rig *r, const char *text)
{
	return memmem(r->t.reply.sdp.s, r->t.reply.sdp.len, text, strlen(text));
}

/* The session of the leg with this local port. */
static struct session_cfg *session(struct rig *r, uint16_t port)
{
	uint32_t i = mock_session_at(&r->s, port);

	return i < MOCK_SESSIONS ? &r->s.cfg[i] : NULL;
}

static uint32_t number(struct rig *r, uint16_t port)
{
	return (uint32_t)(session(r, port) - r->s.cfg);
}

static void offer(struct rig *r, const char *proto, const char *attrs, const char *transport)
{
	struct ng_request q = talk_request(
		"a", r->answered ? "b" : "", talk_body(&r->t, "198.51.100.1", 4000, proto, attrs));

	q.transport = str_from(transport);
	talk_send(&r->t, &q, false);
	assert_null(r->t.reply.error);
}

static void answer(struct rig *r, const char *proto, const char *attrs)
{
	r->answered = true;
	talk_answer(&r->t, "a", "b", talk_body(&r->t, "198.51.100.2", 5000, proto, attrs));
}

static int keys(struct rig *r, uint16_t port, uint32_t association, bool rtcp, uint8_t mark)
{
	struct session_event e = {.kind = SESSION_KEYS, .rtcp = rtcp, .association = association};

	e.rx.suite = e.tx.suite = SUITE_AES_CM_128_80;
	e.rx.key[0] = mark;
	e.tx.key[0] = mark + 1;
	return calls_session_event(r->t.c, number(r, port), &e, r->t.now);
}

/* a=tls-id of the last reply. */
static void our_id(const struct rig *r, char out[KEYING_TLS_ID])
{
	const char *at = memmem(r->t.reply.sdp.s, r->t.reply.sdp.len, "a=tls-id:", 9);

	assert_non_null(at);
	memcpy(out, at + 9, KEYING_TLS_ID);
}

/* Of the mock's n-th certificate. */
static uint64_t cert_id(uint8_t n)
{
	struct mock_sessions m = {.cert = n};
	struct dtls_fingerprint sha256;

	mock_session_fingerprint(&m, &sha256, DTLS_SHA256);
	return dtls_cert_id_of(&sha256);
}

/* --- Tests ------------------------------------------------------------------------------------ */

/* RTP towards the offerer, DTLS towards the answerer: nothing goes either way before the keys. */
static void a_plain_terminal_speaks_with_one_of_dtls(void **state)
{
	const struct media_ctx_cfg *ctx;
	struct rig r;
	uint16_t b;

	(void)state;
	start(&r);
	offer(&r, "RTP/AVP", "", "UDP/TLS/RTP/SAVP");
	assert_true(says(&r, "UDP/TLS/RTP/SAVP 0 8"));
	assert_true(says(&r, "a=setup:actpass"));
	assert_true(says(&r, "a=fingerprint:sha-256 AB:CD:00"));
	assert_true(says(&r, "a=tls-id:"));
	b = r.t.sdp->media[0].port;
	/* Its ClientHello may come before its answer. */
	assert_true(session(&r, b)->dtls.on);
	assert_int_equal(session(&r, b)->dtls.role, DTLS_ROLE_NONE);
	assert_int_equal(session(&r, b)->dtls.association, 1);
	assert_int_equal(session(&r, b)->dtls.prints.count, 0);
	answer(&r, "UDP/TLS/RTP/SAVP", "a=setup:active\r\n" PRINT_B);
	assert_null(r.t.reply.error);
	assert_true(says(&r, "RTP/AVP 0 8"));
	assert_false(says(&r, "fingerprint"));
	assert_int_equal(session(&r, b)->dtls.role, DTLS_ROLE_SERVER);
	assert_int_equal(session(&r, b)->dtls.association, 1);
	assert_int_equal(session(&r, b)->dtls.prints.count, 1);
	assert_int_equal(session(&r, b)->dtls.prints.f[0].value[0], 0x21);
	assert_null(session(&r, r.t.sdp->media[0].port));
	ctx = mock_ctx(r.t.m, b);
	assert_true(ctx->rx.awaited && ctx->tx.awaited);
	assert_true(mock_stream(r.t.m, b)->side & 1u << 1);
	keys(&r, b, 7, false, 9); /* of no association of this leg */
	assert_true(mock_ctx(r.t.m, b)->rx.awaited);
	keys(&r, b, 1, false, 9);
	ctx = mock_ctx(r.t.m, b);
	assert_false(ctx->rx.awaited || ctx->tx.awaited);
	assert_int_equal(mock_master(r.t.m, ctx->rx.key[0].slot)->key[0], 9);
	assert_int_equal(mock_master(r.t.m, ctx->tx.key[0].slot)->key[0], 10);
	/* RTCP has a port and an association of its own. */
	keys(&r, b, 1, true, 20);
	assert_int_equal(mock_master(r.t.m, mock_ctx(r.t.m, b)->rx.key[0].slot)->key[0], 9);
	end(&r);
}

/* --- SRTP+ ------------------------------------------------------------------------------------ */

#define PLUS     "a=xcipher-preauth:"
#define PLUS_AES PLUS "sequence-aes\r\n"
enum { ID_AES = 1 + PREAUTH_SEQUENCE_AES };

static void plus_start(struct rig *r)
{
	memset(r, 0, sizeof(*r));
	talk_start(&r->t);
	calls_destroy(r->t.c);
	r->t.policy.sdes.preauth =
		(struct preauth_policy){.use = PREAUTH_USE_ACCEPT, .scheme = PREAUTH_SEQUENCE_AES};
	assert_int_equal(calls_create(&r->t.c, &r->t.policy, &r->t.m->relay), 0);
	mock_sessions_start(&r->s, r->t.m, r->t.c);
}

static void plus_offer(struct rig *r, enum ng_preauth use)
{
	struct ng_request q = talk_request(
		"a", r->answered ? "b" : "", talk_body(&r->t, "198.51.100.1", 4000, "RTP/AVP", ""));

	q.transport = STR("UDP/TLS/RTP/SAVP");
	q.preauth = use;
	talk_send(&r->t, &q, false);
	assert_null(r->t.reply.error);
}

static void tags_are(struct rig *r, uint16_t port, uint8_t scheme)
{
	const struct media_ctx_cfg *ctx = mock_ctx(r->t.m, port);

	assert_int_equal(ctx->rx.preauth, scheme);
	assert_int_equal(ctx->tx.preauth, scheme);
	assert_int_equal(ctx->rx.preauth_slot != 0, scheme != 0);
	if (scheme)
		assert_memory_equal(&r->t.m->master[ctx->tx.preauth_slot / 2].key,
			&mock_master(r->t.m, ctx->tx.key[0].slot)->key, SUITE_MAX_KEY_LEN);
}

/* Only the same scheme answers the offer. Tags begin with the keys, and stay at a re-INVITE. */
static void an_offer_of_tags_needs_the_same_in_the_answer(void **state)
{
	static const struct {
		const char *answer;
		uint8_t scheme;
	} T[] = {{PLUS_AES, ID_AES}, {"", 0}, {PLUS "header-siphash\r\n", 0},
		{PLUS "none-such\r\n", 0}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		char attrs[600];
		struct rig r;
		uint16_t b;

		plus_start(&r);
		plus_offer(&r, NG_PREAUTH_OFFER);
		assert_true(says(&r, PLUS_AES));
		b = r.t.sdp->media[0].port;
		snprintf(attrs, sizeof(attrs), "a=setup:active\r\n" PRINT_B "%s", T[i].answer);
		answer(&r, "UDP/TLS/RTP/SAVP", attrs);
		assert_null(r.t.reply.error);
		assert_false(says(&r, PLUS));
		tags_are(&r, b, 0);
		keys(&r, b, 1, false, 9);
		tags_are(&r, b, T[i].scheme);
		plus_offer(&r, NG_PREAUTH_DEFAULT);
		assert_int_equal(says(&r, PLUS_AES), T[i].scheme != 0);
		answer(&r, "UDP/TLS/RTP/SAVP", attrs);
		tags_are(&r, b, T[i].scheme);
		plus_offer(&r, NG_PREAUTH_OFF);
		assert_false(says(&r, PLUS));
		answer(&r, "UDP/TLS/RTP/SAVP", "a=setup:active\r\n" PRINT_B);
		tags_are(&r, b, 0);
		end(&r);
	}
}

/* A terminal offers tags. We accept unless it is forbidden, and the other terminal does not see
 * it. */
static void a_terminal_that_offers_tags_gets_them(void **state)
{
	static const struct {
		const char *scheme;
		enum ng_preauth use;
		bool agrees;
	} T[] = {{"sequence-aes", NG_PREAUTH_DEFAULT, true}, {"chain", NG_PREAUTH_ACCEPT, true},
		{"chain/8/16/128", NG_PREAUTH_DEFAULT, true},
		{"chain/8/16/129", NG_PREAUTH_DEFAULT, false},
		{"sequence-aes", NG_PREAUTH_OFF, false}, {"x", NG_PREAUTH_DEFAULT, false}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		enum preauth_scheme s = PREAUTH_SEQUENCE_AES;
		struct ng_request q;
		char attrs[600];
		struct rig r;
		uint16_t a;

		plus_start(&r);
		snprintf(attrs, sizeof(attrs), "a=setup:actpass\r\n" PRINT_A PLUS "%s\r\n",
			T[i].scheme);
		q = talk_request(
			"a", "", talk_body(&r.t, "198.51.100.1", 4000, "UDP/TLS/RTP/SAVPF", attrs));
		q.transport = STR("UDP/TLS/RTP/SAVP");
		q.preauth = T[i].use;
		talk_send(&r.t, &q, false);
		assert_null(r.t.reply.error);
		assert_false(says(&r, PLUS));
		answer(&r, "UDP/TLS/RTP/SAVP", "a=setup:active\r\n" PRINT_B);
		assert_int_equal(says(&r, PLUS), T[i].agrees);
		assert_int_equal(says(&r, T[i].scheme), T[i].agrees);
		a = r.t.sdp->media[0].port;
		keys(&r, a, 1, false, 9);
		tags_are(&r, a,
			T[i].agrees && preauth_find(&s, str_from(T[i].scheme)) ? (uint8_t)(1 + s)
									       : 0);
		end(&r);
	}
}

/* A packet under the new key proves that the terminal finished the handshake: its memory is freed
 * before the hold is over. */
static void media_under_the_keys_settle_the_association(void **state)
{
	struct rig r;
	uint32_t slot;
	uint16_t b;

	(void)state;
	start(&r);
	offer(&r, "RTP/AVP", "", "UDP/TLS/RTP/SAVP");
	b = r.t.sdp->media[0].port;
	answer(&r, "UDP/TLS/RTP/SAVP", "a=setup:active\r\n" PRINT_B);
	calls_tick(r.t.c, r.t.now);
	keys(&r, b, 1, false, 9);
	calls_tick(r.t.c, r.t.now);
	assert_int_equal(r.s.settled[0], 0);
	slot = mock_ctx(r.t.m, b)->rx.key[0].slot;
	r.t.m->usage[slot / 2].rtp = 1;
	r.s.full = true;
	calls_tick(r.t.c, r.t.now);
	assert_int_equal(r.s.settled[0], 0);
	r.s.full = false;
	for (int i = 0; i < 2; i++)
		calls_tick(r.t.c, r.t.now);
	assert_int_equal(r.s.settled[0], 1);
	/* RTCP has an association of its own. */
	assert_int_equal(r.s.settled[1], 0);
	keys(&r, b, 1, true, 20);
	slot = mock_ctx(r.t.m, b)->rx.key[0].slot;
	r.t.m->usage[slot / 2].rtp = 1;
	calls_tick(r.t.c, r.t.now);
	assert_int_equal(r.s.settled[1], 0);
	r.t.m->usage[slot / 2].rtcp = 1;
	calls_tick(r.t.c, r.t.now);
	assert_int_equal(r.s.settled[1], 1);
	end(&r);
}

/* The offerer has DTLS and the answerer SDES. The offerer's session begins with our answer. */
static void an_offerer_of_dtls_gets_our_role(void **state)
{
	static const struct {
		const char *setup, *want;
		bool passive;
		uint8_t role;
	} T[] = {
		{"a=setup:actpass\r\n", "a=setup:active", false, DTLS_ROLE_CLIENT},
		{"a=setup:actpass\r\n", "a=setup:passive", true, DTLS_ROLE_SERVER},
		{"a=setup:active\r\n", "a=setup:passive", false, DTLS_ROLE_SERVER},
		{"a=setup:passive\r\n", "a=setup:active", true, DTLS_ROLE_CLIENT},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		char attrs[600];
		struct ng_request q;
		struct rig r;
		uint16_t a;

		start(&r);
		snprintf(attrs, sizeof(attrs), "%s%s", T[i].setup, PRINT_A);
		q = talk_request(
			"a", "", talk_body(&r.t, "198.51.100.1", 4000, "UDP/TLS/RTP/SAVPF", attrs));
		q.transport = STR("RTP/SAVP");
		q.dtls = T[i].passive ? NG_DTLS_PASSIVE : NG_DTLS_DEFAULT;
		talk_send(&r.t, &q, false);
		assert_null(r.t.reply.error);
		assert_true(says(&r, "RTP/SAVP 0 8"));
		assert_true(says(&r, "a=crypto:1"));
		assert_false(says(&r, "a=fingerprint"));
		answer(&r, "RTP/SAVP", "a=crypto:" C80A "\r\n");
		assert_null(r.t.reply.error);
		assert_true(says(&r, "UDP/TLS/RTP/SAVPF"));
		assert_true(says(&r, T[i].want));
		assert_false(says(&r, "a=crypto"));
		a = r.t.sdp->media[0].port;
		assert_int_equal(session(&r, a)->dtls.role, T[i].role);
		keys(&r, a, session(&r, a)->dtls.association, false, 5);
		assert_false(mock_ctx(r.t.m, a)->rx.awaited);
		end(&r);
	}
}

/* SDES beside DTLS: the profile says which is meant, and SDES-prefer overrides. */
static void the_profile_decides_between_sdes_and_dtls(void **state)
{
	static const struct {
		const char *proto, *want;
		bool prefer;
	} T[] = {
		{"RTP/SAVP", "a=crypto", false},
		{"UDP/TLS/RTP/SAVP", "a=fingerprint", false},
		{"UDP/TLS/RTP/SAVP", "a=crypto", true},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct ng_request q;
		struct rig r;

		start(&r);
		offer(&r, T[i].proto, "a=crypto:" C80A "\r\na=setup:actpass\r\n" PRINT_A,
			"RTP/AVP");
		q = talk_request("a", "b", talk_body(&r.t, "198.51.100.2", 5000, "RTP/AVP", ""));
		q.sdes.flags = T[i].prefer ? NG_SDES_PREFER : 0;
		talk_send(&r.t, &q, true);
		assert_null(r.t.reply.error);
		assert_true(says(&r, T[i].want));
		assert_int_equal(says(&r, "a=crypto"), !says(&r, "a=fingerprint"));
		end(&r);
	}
}

/* RFC 8643 allows a=fingerprint in RTP/AVP. */
static void an_opportunistic_offer_of_dtls_is_answered(void **state)
{
	struct rig r;

	(void)state;
	start(&r);
	offer(&r, "RTP/AVP", "a=setup:actpass\r\n" PRINT_A, "RTP/AVP");
	assert_false(says(&r, "a=fingerprint"));
	answer(&r, "RTP/AVP", "");
	assert_null(r.t.reply.error);
	assert_true(says(&r, "RTP/AVP 0") && says(&r, "a=fingerprint:sha-256 AB:CD"));
	assert_true(session(&r, r.t.sdp->media[0].port)->dtls.on);
	assert_true(mock_ctx(r.t.m, r.t.sdp->media[0].port)->rx.awaited);
	end(&r);
}

/* SDES=require holds for DTLS, too: other profiles are neither agreed on nor believed. */
static void demanded_suites_bind_dtls(void **state)
{
	struct ng_request q;
	struct rig r;
	uint16_t b;

	(void)state;
	start(&r);
	offer(&r, "RTP/AVP", "", "UDP/TLS/RTP/SAVP");
	b = r.t.sdp->media[0].port;
	q = talk_request("a", "b",
		talk_body(&r.t, "198.51.100.2", 5000, "UDP/TLS/RTP/SAVP",
			"a=setup:active\r\n" PRINT_B));
	q.sdes.require_given = true;
	q.sdes.require = 1u << SUITE_AEAD_AES_256_GCM;
	talk_send(&r.t, &q, true);
	assert_null(r.t.reply.error);
	assert_int_equal(session(&r, b)->dtls.suites, 1u << SUITE_AEAD_AES_256_GCM);
	keys(&r, b, 1, false, 9); /* of AES_CM_128_80 */
	assert_true(mock_ctx(r.t.m, b)->rx.awaited);
	end(&r);
}

/* Without AES-256 in --dtls-profiles, what demands it is refused. Else the list bounds what the
 * handshake may agree on. */
static void the_hosts_profiles_bind_dtls(void **state)
{
	static const char dtls[] = "UDP/TLS/RTP/SAVP", actpass[] = "a=setup:actpass\r\n" PRINT_A;
	static const struct {
		bool ours, nena, require, good; /* ours: DTLS is in our offer */
	} T[] = {
		{true, false, false, true},
		{true, true, false, false},
		{false, false, false, true},
		{false, false, true, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct ng_request q;
		struct rig r;

		start(&r);
		r.s.sessions.profiles = 1u << SUITE_AES_CM_128_80;
		q = talk_request("a", "",
			talk_body(&r.t, "198.51.100.1", 4000, T[i].ours ? "RTP/AVP" : dtls,
				T[i].ours ? "" : actpass));
		q.transport = T[i].ours ? STR(dtls) : STR("RTP/AVP");
		q.nena = T[i].nena;
		q.sdes.require_given = T[i].require;
		q.sdes.require = 1u << SUITE_AEAD_AES_256_GCM;
		talk_send(&r.t, &q, false);
		if (!T[i].good) {
			assert_ptr_equal(r.t.reply.error, NGE_SUITE);
			assert_non_null(memmem(
				r.t.reply.detail.s, r.t.reply.detail.len, "--dtls-profiles", 15));
			end(&r);
			continue;
		}
		assert_null(r.t.reply.error);
		answer(&r, T[i].ours ? dtls : "RTP/AVP",
			T[i].ours ? "a=setup:active\r\n" PRINT_B : "");
		assert_null(r.t.reply.error);
		assert_int_equal(r.s.cfg[0].dtls.suites, r.s.sessions.profiles);
		end(&r);
	}
}

/* DTLS=NENA towards the answerer: the offer is DTLS-SRTP with AES-256 and nothing else, whatever
 * the other terminal speaks. Other answers are refused. */
static void nena_upgrades_or_refuses_the_answerer(void **state)
{
	static const struct {
		const char *proto, *attrs;
		bool wants_128, good;
	} T[] = {
		{"UDP/TLS/RTP/SAVP", "a=setup:active\r\n" PRINT_B, false, true},
		{"UDP/TLS/RTP/SAVP", "a=setup:active\r\n" PRINT_B, true, false},
		{"RTP/SAVP", "a=crypto:" C80A "\r\n", false, false},
		{"RTP/AVP", "", false, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct ng_request q;
		struct rig r;
		uint16_t b;

		start(&r);
		q = talk_request("a", "",
			talk_body(&r.t, "198.51.100.1", 4000, i & 1 ? "RTP/SAVP" : "RTP/AVP",
				i & 1 ? "a=crypto:" C80A "\r\n" : ""));
		q.nena = true;
		talk_send(&r.t, &q, false);
		assert_null(r.t.reply.error);
		assert_true(says(&r, "UDP/TLS/RTP/SAVP 0 8"));
		assert_true(says(&r, "a=fingerprint"));
		assert_false(says(&r, "a=crypto"));
		b = r.t.sdp->media[0].port;
		/* Already before the answer. */
		assert_int_equal(session(&r, b)->dtls.suites, 1u << SUITE_AEAD_AES_256_GCM);
		q = talk_request(
			"a", "b", talk_body(&r.t, "198.51.100.2", 5000, T[i].proto, T[i].attrs));
		q.sdes.require_given = T[i].wants_128;
		q.sdes.require = T[i].wants_128 ? 1u << SUITE_AES_CM_128_80 : 0;
		talk_send(&r.t, &q, true);
		assert_int_equal(r.t.reply.error == NULL, T[i].good);
		if (T[i].good)
			assert_int_equal(session(&r, b)->dtls.suites, 1u << SUITE_AEAD_AES_256_GCM);
		end(&r);
	}
}

/* DTLS=NENA towards the offerer: our answer to it. */
static void nena_binds_the_offerer(void **state)
{
	static const struct {
		const char *proto, *attrs;
		bool good;
	} T[] = {
		{"UDP/TLS/RTP/SAVP", "a=setup:actpass\r\n" PRINT_A, true},
		{"RTP/SAVP", "a=crypto:" C80A "\r\na=setup:actpass\r\n" PRINT_A, true},
		{"RTP/SAVP", "a=crypto:" C80A "\r\n", false},
		{"RTP/AVP", "", false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct ng_request q;
		struct rig r;

		start(&r);
		offer(&r, T[i].proto, T[i].attrs, "RTP/AVP");
		q = talk_request("a", "b", talk_body(&r.t, "198.51.100.2", 5000, "RTP/AVP", ""));
		q.nena = true;
		talk_send(&r.t, &q, true);
		assert_int_equal(r.t.reply.error == NULL, T[i].good);
		assert_true(!T[i].good || says(&r, "a=fingerprint"));
		assert_false(T[i].good && says(&r, "a=crypto"));
		if (T[i].good)
			assert_int_equal(session(&r, r.t.sdp->media[0].port)->dtls.suites,
				1u << SUITE_AEAD_AES_256_GCM);
		end(&r);
	}
}

/* RFC 8842 5: a re-INVITE with the same fingerprints and tls-id keeps the keys, another fingerprint
 * needs a new association. Media go on under the old keys until it has some. */
static void a_new_fingerprint_is_a_new_association(void **state)
{
	struct rig r;
	uint16_t a;
	uint32_t slot;

	(void)state;
	start(&r);
	offer(&r, "UDP/TLS/RTP/SAVP", "a=setup:actpass\r\n" PRINT_A, "RTP/AVP");
	answer(&r, "RTP/AVP", "");
	a = r.t.sdp->media[0].port;
	keys(&r, a, 1, false, 5);
	slot = mock_ctx(r.t.m, a)->tx.key[0].slot;
	offer(&r, "UDP/TLS/RTP/SAVP", "a=setup:actpass\r\n" PRINT_A, "");
	answer(&r, "RTP/AVP", "");
	assert_null(r.t.reply.error);
	assert_true(says(&r, "a=setup:active"));
	assert_int_equal(session(&r, a)->dtls.association, 1);
	assert_int_equal(mock_ctx(r.t.m, a)->tx.key[0].slot, slot);
	offer(&r, "UDP/TLS/RTP/SAVP", "a=setup:actpass\r\n" PRINT_B, "");
	assert_int_equal(session(&r, a)->dtls.association, 1);
	assert_int_equal(mock_ctx(r.t.m, a)->tx.key[0].slot, slot); /* until it is answered */
	answer(&r, "RTP/AVP", "");
	assert_int_equal(session(&r, a)->dtls.association, 2);
	assert_int_equal(mock_ctx(r.t.m, a)->tx.key[0].slot, slot);
	keys(&r, a, 1, false, 7); /* late */
	assert_int_equal(mock_master(r.t.m, mock_ctx(r.t.m, a)->rx.key[0].slot)->key[0], 5);
	keys(&r, a, 2, false, 9);
	assert_int_equal(mock_master(r.t.m, mock_ctx(r.t.m, a)->rx.key[0].slot)->key[0], 9);
	end(&r);
}

/* The terminal is told of another certificate of ours than that of the association (RFC 8842 5.1):
 * ours was renewed, or we were restarted. */
static void our_new_certificate_is_a_new_association(void **state)
{
	struct rig r;
	uint16_t a;

	(void)state;
	start(&r);
	offer(&r, "UDP/TLS/RTP/SAVP", "a=setup:actpass\r\n" PRINT_A, "RTP/AVP");
	answer(&r, "RTP/AVP", "");
	a = r.t.sdp->media[0].port;
	keys(&r, a, 1, false, 5);
	offer(&r, "UDP/TLS/RTP/SAVP", "a=setup:actpass\r\n" PRINT_A, "");
	answer(&r, "RTP/AVP", "");
	offer(&r, "UDP/TLS/RTP/SAVP", "a=setup:actpass\r\n" PRINT_A, "");
	answer(&r, "RTP/AVP", "");
	assert_int_equal(session(&r, a)->dtls.association, 1);
	r.s.cert = 1;
	offer(&r, "UDP/TLS/RTP/SAVP", "a=setup:actpass\r\n" PRINT_A, "");
	answer(&r, "RTP/AVP", "");
	assert_int_equal(session(&r, a)->dtls.association, 2);
	offer(&r, "UDP/TLS/RTP/SAVP", "a=setup:actpass\r\n" PRINT_A, "");
	answer(&r, "RTP/AVP", "");
	assert_int_equal(session(&r, a)->dtls.association, 2);
	end(&r);
}

/* Our certificate changes between an offer of ours and its answer. The association has the one that
 * the offer named, and the next offer names the new one, for an association of its own. */
static void the_offer_names_the_certificate_of_the_association(void **state)
{
	char id[3][KEYING_TLS_ID];
	struct rig r;
	uint16_t b;

	(void)state;
	start(&r);
	offer(&r, "RTP/AVP", "", "UDP/TLS/RTP/SAVP");
	our_id(&r, id[0]);
	b = r.t.sdp->media[0].port;
	r.s.cert = 1;
	answer(&r, "UDP/TLS/RTP/SAVP", "a=setup:active\r\n" PRINT_B);
	assert_int_equal(session(&r, b)->dtls.association, 1);
	assert_true(session(&r, b)->dtls.cert == cert_id(0));
	keys(&r, b, 1, false, 9);
	/* The first of two re-INVITEs has a certificate that is replaced before its answer. */
	for (uint8_t n = 1; n < 3; n++) {
		offer(&r, "RTP/AVP", "", "UDP/TLS/RTP/SAVP");
		assert_true(says(&r, n == 1 ? "sha-256 AB:CD:01" : "sha-256 AB:CD:02"));
		our_id(&r, id[n]);
		assert_memory_not_equal(id[n], id[n - 1], KEYING_TLS_ID);
		assert_int_equal(session(&r, b)->dtls.association, n);
		r.s.cert = 2;
		answer(&r, "UDP/TLS/RTP/SAVP", "a=setup:active\r\n" PRINT_B);
		assert_int_equal(session(&r, b)->dtls.association, n + 1);
		assert_true(session(&r, b)->dtls.cert == cert_id(n));
	}
	/* An offer that names the same one changes nothing, whatever happens before its answer. */
	offer(&r, "RTP/AVP", "", "UDP/TLS/RTP/SAVP");
	r.s.cert = 3;
	answer(&r, "UDP/TLS/RTP/SAVP", "a=setup:active\r\n" PRINT_B);
	assert_int_equal(session(&r, b)->dtls.association, 3);
	/* An offer is not answered, and then the certificate is the former one again. The terminal
	 * gets another a=tls-id, so there is another association. */
	offer(&r, "RTP/AVP", "", "UDP/TLS/RTP/SAVP");
	r.s.cert = 2;
	offer(&r, "RTP/AVP", "", "UDP/TLS/RTP/SAVP");
	our_id(&r, id[0]);
	assert_memory_not_equal(id[0], id[2], KEYING_TLS_ID);
	answer(&r, "UDP/TLS/RTP/SAVP", "a=setup:active\r\n" PRINT_B);
	assert_int_equal(session(&r, b)->dtls.association, 4);
	assert_true(session(&r, b)->dtls.cert == cert_id(2));
	end(&r);
}

/* Several terminals answer one offer, and our certificate changes meanwhile. */
static void each_branch_has_the_certificate_of_the_offer(void **state)
{
	static const char *const attrs[] = {
		"a=setup:active\r\n" PRINT_A, "a=setup:active\r\n" PRINT_B};
	struct rig r;
	uint16_t b;

	(void)state;
	start(&r);
	offer(&r, "RTP/AVP", "", "UDP/TLS/RTP/SAVP");
	b = r.t.sdp->media[0].port;
	for (uint8_t i = 0; i < 2; i++) {
		r.s.cert = i + 1;
		talk_answer(&r.t, "a", i ? "c" : "b",
			talk_body(&r.t, "198.51.100.2", 5000 + 1000 * i, "UDP/TLS/RTP/SAVP",
				attrs[i]));
		assert_null(r.t.reply.error);
		assert_int_equal(session(&r, b)->dtls.association, i + 1);
		assert_true(session(&r, b)->dtls.cert == cert_id(0));
	}
	end(&r);
}

#define ID_1 "a=tls-id:abcdefghijklmnopqrstuvwxyz\r\n"
#define ID_2 "a=tls-id:bbcdefghijklmnopqrstuvwxyz\r\n"

/* RFC 8842 5.1: a=tls-id decides if there is one, then the transport does, but not with ICE.
 * Another role is another association, too. A new one has a new a=tls-id of ours, and no other
 * (RFC 8842 5.3). */
static void what_else_makes_an_association_new(void **state)
{
	static const struct {
		const char *first, *then;
		uint16_t port;
		uint32_t want;
		const char *setup; /* of the second offer; NULL: actpass */
	} T[] = {
		{"", "", 4000, 1, NULL},
		{"", "", 4100, 2, NULL},
		{ID_1, ID_1, 4100, 1, NULL},
		{ID_1, ID_2, 4000, 2, NULL},
		{ICE_A, ICE_A, 4100, 1, NULL},
		{"", "", 4000, 2, "active"},
		{ID_1, ID_1, 4000, 2, "active"},
		{"", "", 4000, 1, "passive"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		char attrs[1200], id[2][KEYING_TLS_ID];
		struct ng_request q;
		struct rig r;
		uint16_t a;

		start(&r);
		snprintf(attrs, sizeof(attrs), "a=setup:actpass\r\n%s%s", PRINT_A, T[i].first);
		offer(&r, "UDP/TLS/RTP/SAVP", attrs, "RTP/AVP");
		answer(&r, "RTP/AVP", "");
		our_id(&r, id[0]);
		a = r.t.sdp->media[0].port;
		keys(&r, a, 1, false, 5);
		snprintf(attrs, sizeof(attrs), "a=setup:%s\r\n%s%s",
			T[i].setup ? T[i].setup : "actpass", PRINT_A, T[i].then);
		q = talk_request("a", "b",
			talk_body(&r.t, "198.51.100.1", T[i].port, "UDP/TLS/RTP/SAVP", attrs));
		talk_send(&r.t, &q, false);
		assert_null(r.t.reply.error);
		answer(&r, "RTP/AVP", "");
		assert_null(r.t.reply.error);
		if (session(&r, a)->dtls.association != T[i].want)
			fail_msg("row %zu: %u", i, session(&r, a)->dtls.association);
		our_id(&r, id[1]);
		if ((memcmp(id[0], id[1], KEYING_TLS_ID) == 0) != (T[i].want == 1))
			fail_msg("row %zu: a=tls-id", i);
		end(&r);
	}
}

static void what_does_not_fit_is_refused(void **state)
{
	static const struct {
		const char *attrs, *want;
	} T[] = {
		{"a=setup:active\r\n", "No usable a=fingerprint"},
		{"a=setup:active\r\na=fingerprint:sha-1 01:02:03:04:05:06:07:08:09:0A:0B:0C:0D:0E:"
		 "0F:10:11:12:13:14\r\n",
			"No usable a=fingerprint"},
		{"a=setup:active\r\na=fingerprint:sha-256 01:02\r\n", "No usable a=fingerprint"},
		{"a=setup:actpass\r\n" PRINT_B, "a=setup does not fit"},
		{"a=setup:holdconn\r\n" PRINT_B, "a=setup does not fit"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct rig r;

		start(&r);
		offer(&r, "RTP/AVP", "", "UDP/TLS/RTP/SAVP");
		answer(&r, "UDP/TLS/RTP/SAVP", T[i].attrs);
		assert_non_null(r.t.reply.error);
		assert_string_equal(r.t.reply.error, T[i].want);
		end(&r);
	}
}

/* ICE is each leg's own: credentials of ours, no candidate of the other terminal. Only the selected
 * pair says where media go. */
static void ice_is_of_each_leg(void **state)
{
	struct session_event pair = {.kind = SESSION_PAIR};
	struct ng_request q;
	struct rig r;
	uint16_t a, b;

	(void)state;
	start(&r);
	q = talk_request("a", "", talk_body(&r.t, "198.51.100.1", 4000, "RTP/AVP", ICE_A MUX));
	q.rtcp_mux = NG_RTCP_MUX_ACCEPT;
	talk_send(&r.t, &q, false);
	assert_null(r.t.reply.error);
	assert_true(says(&r, "a=ice-ufrag:"));
	assert_false(says(&r, "a=ice-ufrag:abcd"));
	assert_false(says(&r, "198.51.100.1 4000 typ host"));
	assert_true(says(&r, " typ host"));
	b = r.t.sdp->media[0].port;
	assert_true(session(&r, b)->ice.on && session(&r, b)->ice.controlling);
	assert_false(session(&r, b)->ice.started);
	/* The answerer has no ICE: it is spoken to where its SDP says. */
	answer(&r, "RTP/AVP", MUX);
	assert_null(r.t.reply.error);
	assert_true(says(&r, "a=ice-ufrag:"));
	a = r.t.sdp->media[0].port;
	assert_null(session(&r, b));
	assert_int_equal(mock_stream(r.t.m, b)->remote.port, 5000);
	assert_true(session(&r, a)->ice.started);
	assert_false(session(&r, a)->ice.controlling);
	assert_string_equal(session(&r, a)->ice.remote_ufrag, "abcd");
	assert_true(session(&r, a)->mux);
	/* Nothing is sent there before a pair is selected, and nothing is learned. */
	assert_int_equal(mock_stream(r.t.m, a)->remote.family, 0);
	assert_int_equal(mock_stream(r.t.m, a)->learning, MEDIA_LEARN_OFF);
	assert_true(mock_stream(r.t.m, a)->strict_source);
	assert_int_equal(endpoint_parse(&pair.remote, STR("198.51.100.9:1234")), 0);
	calls_session_event(r.t.c, number(&r, a), &pair, r.t.now);
	assert_true(endpoint_eq(&mock_stream(r.t.m, a)->remote, &pair.remote));
	pair.kind = SESSION_LOST;
	calls_session_event(r.t.c, number(&r, a), &pair, r.t.now);
	assert_int_equal(mock_stream(r.t.m, a)->remote.family, 0);
	end(&r);
}

/* RFC 8445 10: ice2 is in each SDP with ICE. RFC 8839 4.4.1.2.2: later offers of a controlling
 * agent name the pairs in use. */
static void later_offers_name_the_pairs(void **state)
{
	static const struct {
		bool controlling, mux;
		const char *want; /* NULL: none */
	} T[] = {
		{true, true, "\r\na=remote-candidates:1 198.51.100.2 5000\r\n"},
		{true, false,
			"\r\na=remote-candidates:1 198.51.100.2 5000 2 198.51.100.2 5001\r\n"},
		{false, true, NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct session_event pair = {.kind = SESSION_PAIR, .controlling = T[i].controlling};
		const char *mux = T[i].mux ? MUX : "";
		struct ng_request q;
		struct rig r;
		char ice[600];
		uint16_t b;

		start(&r);
		snprintf(ice, sizeof(ice), "%s%s", ICE_A2, mux);
		q = talk_request("a", "", talk_body(&r.t, "198.51.100.1", 4000, "RTP/AVP", ice));
		q.rtcp_mux = NG_RTCP_MUX_ACCEPT;
		talk_send(&r.t, &q, false);
		assert_true(says(&r, "\r\na=ice-options:ice2\r\n"));
		assert_false(says(&r, "remote-candidates"));
		b = r.t.sdp->media[0].port;
		answer(&r, "RTP/AVP", ice);
		assert_null(r.t.reply.error);
		assert_true(says(&r, "\r\na=ice-options:ice2\r\n"));
		for (uint16_t k = 0; k < (T[i].mux ? 1 : 2); k++) {
			pair.rtcp = k;
			assert_int_equal(endpoint_parse(&pair.remote, STR("198.51.100.2:5000")), 0);
			pair.remote.port = (uint16_t)(5000 + k);
			calls_session_event(r.t.c, number(&r, b), &pair, r.t.now);
		}
		offer(&r, "RTP/AVP", ice, "");
		assert_int_equal(says(&r, "remote-candidates"), T[i].want != NULL);
		assert_true(!T[i].want || says(&r, T[i].want));
		answer(&r, "RTP/AVP", ice);
		assert_false(says(&r, "remote-candidates"));
		end(&r);
	}
}

static void on_notice(void *arg, const struct call_session_notice *n)
{
	uint32_t *told = arg;

	told[n->kind]++;
}

/* People hear of what came into force, and of what went wrong. */
static void only_what_happened_is_told(void **state)
{
	uint32_t told[SESSION_CLOSED + 1] = {0};
	struct session_event e = {.kind = SESSION_PAIR};
	struct rig r;
	uint16_t b;

	(void)state;
	start(&r);
	calls_on_session(r.t.c, on_notice, told);
	offer(&r, "RTP/AVP", "", "UDP/TLS/RTP/SAVP");
	b = r.t.sdp->media[0].port;
	answer(&r, "UDP/TLS/RTP/SAVP", "a=setup:active\r\n" PRINT_B);
	/* Without ICE no pair is selected. */
	assert_int_equal(endpoint_parse(&e.remote, STR("203.0.113.9:1234")), 0);
	calls_session_event(r.t.c, number(&r, b), &e, r.t.now);
	keys(&r, b, 7, false, 9);
	assert_int_equal(told[SESSION_PAIR] + told[SESSION_KEYS] + told[SESSION_FAILED], 0);
	/* Keys that find no room. */
	r.t.m->fail_at = r.t.m->calls + 1;
	r.t.m->fail_with = -28; /* -ENOSPC */
	keys(&r, b, 1, false, 9);
	r.t.m->fail_at = 0;
	assert_true(mock_ctx(r.t.m, b)->rx.awaited);
	assert_int_equal(told[SESSION_FAILED], 1);
	assert_int_equal(told[SESSION_KEYS], 0);
	keys(&r, b, 1, false, 9);
	assert_int_equal(told[SESSION_KEYS], 1);
	e.kind = SESSION_CLOSED;
	calls_session_event(r.t.c, number(&r, b), &e, r.t.now);
	assert_int_equal(told[SESSION_CLOSED], 1);
	end(&r);
}

static bool is_own(void *arg, const struct endpoint *e)
{
	return endpoint_addr_eq(e, arg);
}

/* ICE selected an address that becomes the host's own: no later offer brings it back. */
static void a_pair_that_becomes_our_own_is_cut_for_good(void **state)
{
	struct session_event pair = {.kind = SESSION_PAIR};
	struct reach reach;
	struct rig r;
	uint16_t a;

	(void)state;
	start(&r);
	reach = (struct reach){.local = r.t.m->local,
		.locals = r.t.m->locals,
		.port_min = 30000,
		.port_max = 40000};
	calls_set_reach(r.t.c, &reach);
	offer(&r, "RTP/AVP", ICE_A MUX, "");
	answer(&r, "RTP/AVP", MUX);
	a = r.t.sdp->media[0].port;
	assert_int_equal(endpoint_parse(&pair.remote, STR("198.51.100.9:1234")), 0);
	assert_int_equal(calls_session_event(r.t.c, number(&r, a), &pair, r.t.now), 0);
	assert_int_equal(mock_stream(r.t.m, a)->remote.port, 1234);
	reach.own = is_own;
	reach.arg = &pair.remote;
	calls_host_changed(r.t.c);
	while (calls_reach_again(r.t.c, r.t.now))
		;
	offer(&r, "RTP/AVP", ICE_A MUX, "");
	answer(&r, "RTP/AVP", MUX);
	assert_int_equal(mock_stream(r.t.m, a)->remote.family, 0);
	end(&r);
}

/* A handshake ends while the queues are full: its keys are not lost. */
static void an_event_that_finds_no_room_may_come_again(void **state)
{
	struct rig r;
	uint16_t b;

	(void)state;
	start(&r);
	offer(&r, "RTP/AVP", "", "UDP/TLS/RTP/SAVP");
	b = r.t.sdp->media[0].port;
	answer(&r, "UDP/TLS/RTP/SAVP", PRINT_B "a=setup:active\r\n");
	assert_null(r.t.reply.error);
	r.s.full = true;
	assert_int_equal(keys(&r, b, session(&r, b)->dtls.association, false, 1), -EAGAIN);
	assert_true(mock_ctx(r.t.m, b)->rx.awaited);
	r.s.full = false;
	assert_int_equal(keys(&r, b, session(&r, b)->dtls.association, false, 1), 0);
	assert_false(mock_ctx(r.t.m, b)->rx.awaited);
	end(&r);
}

/* An answer brings another address and fingerprint, and the worker or the keying thread refuses it.
 * The session goes on as it is, like the call. */
static void a_refused_answer_changes_no_session(void **state)
{
	bool failed = true;

	(void)state;
	for (uint32_t n = 1; failed && n < 50; n++) {
		struct session_cfg before;
		struct rig r;
		uint16_t b;

		start(&r);
		offer(&r, "RTP/AVP", "", "UDP/TLS/RTP/SAVP");
		b = r.t.sdp->media[0].port;
		answer(&r, "UDP/TLS/RTP/SAVP", "a=setup:active\r\n" PRINT_B);
		keys(&r, b, 1, false, 9);
		offer(&r, "RTP/AVP", "", "UDP/TLS/RTP/SAVP");
		before = *session(&r, b);
		r.t.m->fail_at = r.t.m->calls + n;
		r.t.m->fail_with = -EAGAIN;
		talk_answer(&r.t, "a", "b",
			talk_body(&r.t, "198.51.100.3", 6000, "UDP/TLS/RTP/SAVP",
				"a=setup:active\r\n" PRINT_A));
		failed = r.t.m->calls >= r.t.m->fail_at;
		r.t.m->fail_at = 0;
		assert_int_equal(failed, r.t.reply.error != NULL);
		assert_int_equal(session(&r, b)->dtls.association, failed ? 1 : 2);
		assert_true(!failed || memcmp(session(&r, b), &before, sizeof(before)) == 0);
		talk_answer(&r.t, "a", "b",
			talk_body(&r.t, "198.51.100.3", 6000, "UDP/TLS/RTP/SAVP",
				"a=setup:active\r\n" PRINT_A));
		assert_null(r.t.reply.error);
		assert_int_equal(session(&r, b)->dtls.association, 2);
		end(&r);
	}
	assert_false(failed);
}

static void a_restart_has_new_credentials(void **state)
{
	char first[SESSION_UFRAG];
	struct rig r;
	uint16_t a;

	(void)state;
	start(&r);
	offer(&r, "RTP/AVP", ICE_A, "");
	answer(&r, "RTP/AVP", "");
	a = r.t.sdp->media[0].port;
	memcpy(first, session(&r, a)->ice.ufrag, sizeof(first));
	offer(&r, "RTP/AVP", ICE_A, "");
	answer(&r, "RTP/AVP", "");
	assert_memory_equal(session(&r, a)->ice.ufrag, first, sizeof(first));
	assert_int_equal(session(&r, a)->ice.generation, 1);
	offer(&r, "RTP/AVP", ICE_A2, "");
	answer(&r, "RTP/AVP", "");
	assert_memory_not_equal(session(&r, a)->ice.ufrag, first, sizeof(first));
	assert_int_equal(session(&r, a)->ice.generation, 2);
	assert_memory_equal(session(&r, a)->ice.prev_ufrag, first, sizeof(first));
	assert_int_not_equal(session(&r, a)->ice.prev_pwd[0], 0);
	assert_string_equal(session(&r, a)->ice.remote_ufrag, "efgh");
	end(&r);
}

/* A restart that is refused changes nothing: what is in force goes on until the answer. */
static void a_restart_waits_for_its_answer(void **state)
{
	struct rig r;
	uint16_t a;

	(void)state;
	start(&r);
	offer(&r, "RTP/AVP", ICE_A, "");
	answer(&r, "RTP/AVP", "");
	a = r.t.sdp->media[0].port;
	offer(&r, "RTP/AVP", ICE_A2, "");
	assert_string_equal(session(&r, a)->ice.remote_ufrag, "abcd");
	assert_int_equal(session(&r, a)->ice.generation, 1);
	answer(&r, "RTP/AVP", "");
	assert_string_equal(session(&r, a)->ice.remote_ufrag, "efgh");
	assert_string_equal(session(&r, a)->ice.remote_pwd, "bbcdefghijklmnopqrstuv");
	/* The offer had no candidate: the terminal is where its SDP says, or its checks tell. */
	assert_int_equal(session(&r, a)->ice.candidates, 2);
	assert_int_equal(session(&r, a)->ice.candidate[0].addr.port, 4000);
	end(&r);
}

/* All candidates of a restart reach the session, which keeps them until the answer. */
static void a_restart_has_its_candidates(void **state)
{
	struct ng_request q;
	struct rig r;
	uint16_t a;

	(void)state;
	start(&r);
	offer(&r, "RTP/AVP", ICE_A, "");
	answer(&r, "RTP/AVP", "");
	a = r.t.sdp->media[0].port;
	offer(&r, "RTP/AVP",
		ICE_A2 "a=candidate:1 1 udp 2130706431 198.51.100.1 4000 typ host\r\n"
		       "a=candidate:2 1 udp 1694498815 203.0.113.7 9000 typ srflx\r\n",
		"");
	assert_string_equal(session(&r, a)->ice.remote_ufrag, "abcd");
	assert_string_equal(session(&r, a)->ice.next_ufrag, "efgh");
	assert_int_equal(session(&r, a)->ice.candidates, 2);
	/* Another one trickles before the answer. */
	q = talk_request("a", "b",
		"a=ice-ufrag:efgh\r\na=ice-pwd:bbcdefghijklmnopqrstuv\r\nm=audio 9 RTP/AVP 0\r\n"
		"a=candidate:3 1 udp 1694498814 203.0.113.8 9002 typ srflx\r\n");
	talk_pool(&r.t);
	calls_trickle(r.t.c, r.t.p, &q, false, r.t.now, &r.t.reply);
	assert_int_equal(r.t.reply.warning.len, 0);
	assert_string_equal(session(&r, a)->ice.next_ufrag, "efgh");
	assert_int_equal(session(&r, a)->ice.candidates, 1);
	assert_int_equal(session(&r, a)->ice.candidate[0].addr.port, 9002);
	answer(&r, "RTP/AVP", "");
	assert_string_equal(session(&r, a)->ice.remote_ufrag, "efgh");
	assert_string_equal(session(&r, a)->ice.next_ufrag, "");
	end(&r);
}

static void trickle(struct rig *r, const char *body)
{
	struct ng_request q = talk_request("a", "b", body);

	talk_pool(&r->t);
	calls_trickle(r->t.c, r->t.p, &q, false, r->t.now, &r->t.reply);
	assert_null(r->t.reply.error);
}

/* Two sections may name the same mid. A list has candidates of one generation, at most 24. */
static void candidates_of_all_sections_are_added(void **state)
{
#define SECTION(n)                           \
	"m=audio 9 RTP/AVP 0\r\na=mid:7\r\n" \
	"a=candidate:" #n " 1 udp 1694498814 203.0.113.8 900" #n " typ srflx\r\n"
#define OLD "a=ice-ufrag:abcd\r\na=ice-pwd:abcdefghijklmnopqrstuv\r\n"
#define NEW "a=ice-ufrag:efgh\r\na=ice-pwd:bbcdefghijklmnopqrstuv\r\n"
	char many[8192] = "";
	struct rig r;
	uint16_t a;

	(void)state;
	start(&r);
	offer(&r, "RTP/AVP", ICE_A "a=mid:7\r\n", "");
	answer(&r, "RTP/AVP", "");
	a = r.t.sdp->media[0].port;
	trickle(&r, OLD SECTION(1) SECTION(2) "m=audio 9 RTP/AVP 0\r\na=mid:7\r\n");
	assert_int_equal(r.t.reply.warning.len, 0);
	assert_int_equal(session(&r, a)->ice.candidates, 2);
	assert_int_equal(session(&r, a)->ice.candidate[0].addr.port, 9001);
	assert_int_equal(session(&r, a)->ice.candidate[1].addr.port, 9002);
	/* Those of the restart come after those in force, and are ignored with a warning. */
	offer(&r, "RTP/AVP", ICE_A2 "a=mid:7\r\n", "");
	trickle(&r, SECTION(3) OLD SECTION(4) NEW);
	assert_true(str_eq(r.t.reply.warning, STR("ignored candidates: 1")));
	assert_int_equal(session(&r, a)->ice.candidates, 1);
	for (int n = 0; n < 2; n++) {
		strcat(many, "m=audio 9 RTP/AVP 0\r\na=mid:7\r\n" NEW);
		for (int i = 0; i < 20; i++)
			sprintf(many + strlen(many),
				"a=candidate:%d 1 udp 1694498814 203.0.113.8 %d typ srflx\r\n", i,
				9000 + 20 * n + i);
	}
	trickle(&r, many);
	assert_true(str_eq(r.t.reply.warning, STR("ignored candidates: 16")));
	assert_int_equal(session(&r, a)->ice.candidates, 24);
	end(&r);
}

/* Several terminals answer one offer. The first has no ICE, the second has. */
static void a_later_branch_may_have_ice(void **state)
{
	struct ng_request q;
	struct rig r;
	uint16_t b;

	(void)state;
	start(&r);
	q = talk_request("a", "", talk_body(&r.t, "198.51.100.1", 4000, "RTP/AVP", ""));
	q.ice = NG_ICE_FORCE;
	talk_send(&r.t, &q, false);
	b = r.t.sdp->media[0].port;
	talk_answer(&r.t, "a", "b", talk_body(&r.t, "198.51.100.2", 5000, "RTP/AVP", ""));
	assert_null(r.t.reply.error);
	assert_null(session(&r, b));
	talk_answer(&r.t, "a", "c", talk_body(&r.t, "198.51.100.3", 6000, "RTP/AVP", ICE_A2));
	assert_null(r.t.reply.error);
	assert_non_null(session(&r, b));
	assert_true(session(&r, b)->ice.started);
	assert_string_equal(session(&r, b)->ice.remote_ufrag, "efgh");
	end(&r);
}

/* The pair of the terminal that answered first is not that of the next. */
static void a_later_branch_has_a_pair_of_its_own(void **state)
{
	struct session_event pair = {.kind = SESSION_PAIR};
	struct ng_request q;
	struct rig r;
	uint16_t b;

	(void)state;
	start(&r);
	q = talk_request("a", "", talk_body(&r.t, "198.51.100.1", 4000, "RTP/AVP", ""));
	q.ice = NG_ICE_FORCE;
	talk_send(&r.t, &q, false);
	b = r.t.sdp->media[0].port;
	talk_answer(&r.t, "a", "b", talk_body(&r.t, "198.51.100.2", 5000, "RTP/AVP", ICE_A));
	assert_int_equal(endpoint_parse(&pair.remote, STR("198.51.100.2:5000")), 0);
	calls_session_event(r.t.c, number(&r, b), &pair, r.t.now);
	assert_int_equal(mock_stream(r.t.m, b)->remote.port, 5000);
	/* The same terminal by another tag, or again, keeps it. */
	talk_answer(&r.t, "a", "b2", talk_body(&r.t, "198.51.100.2", 5000, "RTP/AVP", ICE_A));
	assert_int_equal(mock_stream(r.t.m, b)->remote.port, 5000);
	assert_int_equal(session(&r, b)->ice.peer, 0);
	talk_answer(&r.t, "a", "c", talk_body(&r.t, "198.51.100.3", 6000, "RTP/AVP", ICE_A2));
	assert_null(r.t.reply.error);
	assert_int_equal(mock_stream(r.t.m, b)->remote.family, 0);
	assert_int_equal(session(&r, b)->ice.peer, 1);
	assert_int_equal(session(&r, b)->ice.generation, 1);
	end(&r);
}

/* Keys of SDES are not those of the association that was before. */
static void dtls_after_sdes_is_a_new_association(void **state)
{
	struct rig r;
	uint16_t a;

	(void)state;
	start(&r);
	offer(&r, "UDP/TLS/RTP/SAVP", "a=setup:actpass\r\n" PRINT_A, "RTP/AVP");
	answer(&r, "RTP/AVP", "");
	a = r.t.sdp->media[0].port;
	keys(&r, a, session(&r, a)->dtls.association, false, 5);
	offer(&r, "RTP/SAVP", "a=crypto:" C80A "\r\n", "");
	answer(&r, "RTP/AVP", "");
	assert_null(r.t.reply.error);
	assert_false(mock_ctx(r.t.m, a)->rx.awaited);
	assert_null(session(&r, a));
	offer(&r, "UDP/TLS/RTP/SAVP", "a=setup:actpass\r\n" PRINT_A, "");
	answer(&r, "RTP/AVP", "");
	assert_null(r.t.reply.error);
	assert_true(mock_ctx(r.t.m, a)->rx.awaited && mock_ctx(r.t.m, a)->tx.awaited);
	assert_int_not_equal(session(&r, a)->dtls.association, 1);
	end(&r);
}

/* Each terminal that answers has an association of its own, whatever the one before answered. */
static void each_branch_has_its_association(void **state)
{
	uint32_t first;
	struct rig r;
	struct ng_request q;
	uint16_t b;

	(void)state;
	start(&r);
	offer(&r, "RTP/AVP", "", "UDP/TLS/RTP/SAVP");
	b = r.t.sdp->media[0].port;
	answer(&r, "UDP/TLS/RTP/SAVP", "a=setup:active\r\n" PRINT_A);
	first = session(&r, b)->dtls.association;
	keys(&r, b, first, false, 5);
	q = talk_request("a", "c", talk_body(&r.t, "198.51.100.3", 6000, "RTP/AVP", ""));
	q.flags = 1ull << NG_FLAG_ALLOW_RTP_ANSWER;
	talk_send(&r.t, &q, true);
	assert_null(r.t.reply.error);
	talk_answer(&r.t, "a", "d",
		talk_body(&r.t, "198.51.100.4", 7000, "UDP/TLS/RTP/SAVP",
			"a=setup:active\r\n" PRINT_B));
	assert_null(r.t.reply.error);
	assert_int_not_equal(session(&r, b)->dtls.association, first);
	assert_true(mock_ctx(r.t.m, b)->rx.awaited);
	keys(&r, b, first, false, 5); /* late, of the first terminal */
	assert_true(mock_ctx(r.t.m, b)->rx.awaited);
	end(&r);
}

/* Hold by 0.0.0.0 (RFC 2543) is no other transport. */
static void hold_keeps_the_association(void **state)
{
	static const char attrs[] = "a=setup:actpass\r\n" PRINT_A;
	static const char *const address[] = {
		"198.51.100.1", "0.0.0.0", "198.51.100.1", "0.0.0.0", "198.51.100.7"};
	struct rig r;
	uint16_t a = 0;

	(void)state;
	start(&r);
	for (size_t i = 0; i < ARRAY_LEN(address); i++) {
		struct ng_request q = talk_request("a", i ? "b" : "",
			talk_body(&r.t, address[i], 4000, "UDP/TLS/RTP/SAVP", attrs));

		q.transport = i ? STR_NONE : STR("RTP/AVP");
		talk_send(&r.t, &q, false);
		assert_null(r.t.reply.error);
		answer(&r, "RTP/AVP", "");
		assert_null(r.t.reply.error);
		if (i == 0)
			a = r.t.sdp->media[0].port;
		assert_int_equal(session(&r, a)->dtls.association, i == 4 ? 2 : 1);
	}
	end(&r);
}

/* The same offer may come again without a to-tag, and its fingerprints are not another terminal's.
 * Without keying threads nobody reads them. */
static void an_offer_may_come_twice(void **state)
{
	static const char both[] = "a=crypto:" C80A "\r\na=setup:actpass\r\n" PRINT_A;

	(void)state;
	for (int threads = 0; threads < 2; threads++) {
		struct rig r;

		start(&r);
		if (!threads)
			r.t.m->relay.sessions = NULL;
		for (int i = 0; i < 2; i++) {
			offer(&r, "RTP/SAVP", both, "RTP/AVP");
			answer(&r, "RTP/AVP", "");
			assert_null(r.t.reply.error);
			r.answered = false;
		}
		r.t.m->relay.sessions = &r.s.sessions;
		end(&r);
	}
}

/* An offer of DTLS-SRTP alone, and a request that forbids DTLS in the answer. */
static void an_offer_of_dtls_gets_no_answer_in_clear(void **state)
{
	struct ng_request q;
	struct rig r;

	(void)state;
	start(&r);
	offer(&r, "UDP/TLS/RTP/SAVPF", "a=setup:actpass\r\n" PRINT_A, "RTP/AVP");
	q = talk_request("a", "b", talk_body(&r.t, "198.51.100.2", 5000, "RTP/AVP", ""));
	q.dtls = NG_DTLS_OFF;
	talk_send(&r.t, &q, true);
	assert_ptr_equal(r.t.reply.error, NGE_SUITE);
	end(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_plain_terminal_speaks_with_one_of_dtls),
		cmocka_unit_test(an_offer_of_tags_needs_the_same_in_the_answer),
		cmocka_unit_test(a_terminal_that_offers_tags_gets_them),
		cmocka_unit_test(media_under_the_keys_settle_the_association),
		cmocka_unit_test(an_offerer_of_dtls_gets_our_role),
		cmocka_unit_test(the_profile_decides_between_sdes_and_dtls),
		cmocka_unit_test(an_opportunistic_offer_of_dtls_is_answered),
		cmocka_unit_test(demanded_suites_bind_dtls),
		cmocka_unit_test(the_hosts_profiles_bind_dtls),
		cmocka_unit_test(nena_upgrades_or_refuses_the_answerer),
		cmocka_unit_test(nena_binds_the_offerer),
		cmocka_unit_test(a_new_fingerprint_is_a_new_association),
		cmocka_unit_test(our_new_certificate_is_a_new_association),
		cmocka_unit_test(the_offer_names_the_certificate_of_the_association),
		cmocka_unit_test(each_branch_has_the_certificate_of_the_offer),
		cmocka_unit_test(what_else_makes_an_association_new),
		cmocka_unit_test(what_does_not_fit_is_refused),
		cmocka_unit_test(ice_is_of_each_leg),
		cmocka_unit_test(later_offers_name_the_pairs),
		cmocka_unit_test(only_what_happened_is_told),
		cmocka_unit_test(a_pair_that_becomes_our_own_is_cut_for_good),
		cmocka_unit_test(an_event_that_finds_no_room_may_come_again),
		cmocka_unit_test(a_refused_answer_changes_no_session),
		cmocka_unit_test(a_restart_has_new_credentials),
		cmocka_unit_test(a_restart_waits_for_its_answer),
		cmocka_unit_test(a_restart_has_its_candidates),
		cmocka_unit_test(candidates_of_all_sections_are_added),
		cmocka_unit_test(a_later_branch_may_have_ice),
		cmocka_unit_test(a_later_branch_has_a_pair_of_its_own),
		cmocka_unit_test(dtls_after_sdes_is_a_new_association),
		cmocka_unit_test(each_branch_has_its_association),
		cmocka_unit_test(hold_keeps_the_association),
		cmocka_unit_test(an_offer_may_come_twice),
		cmocka_unit_test(an_offer_of_dtls_gets_no_answer_in_clear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
