/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ZRTP in offers and answers: what passes end to end, what ends here, what the session of a leg is
 * to be, and what events make of the call. RFC 6189 8. */
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
#include "call/session_places.h"
#include "call/tick.h"
#include "keying/keying.h"
#include "save_talk.h"
#include "mock_sessions.h"
#include "packet/side.h"

#define REST   "30efd02423cb054e50efd0248742ac7a52c8f91bc2df881ae642c371ba46df"
#define HASH_A "a=zrtp-hash:1.10 aa" REST "\r\n"
#define HASH_B "a=zrtp-hash:1.10 bb" REST "\r\n"
#define HASH_C "a=zrtp-hash:1.10 cc" REST "\r\n"

struct rig {
	struct talk t;
	struct mock_sessions s;
	uint32_t told[SESSION_FALLBACK + 1];
	char sas[SESSION_SAS_MAX];
	struct zrtp_secret secret, later; /* of the next event */
	uint32_t enrolled;                /* bit 0: the answerer, bit 1: the offerer */
	uint16_t asked;                   /* the port that the answerer is told */
};

static void on_notice(void *arg, const struct call_session_notice *n)
{
	struct rig *r = arg;

	r->told[n->kind]++;
	if (n->sas)
		snprintf(r->sas, sizeof(r->sas), "%s", n->sas);
}

static void start(struct rig *r)
{
	memset(r, 0, sizeof(*r));
	talk_start(&r->t);
	r->s.sessions.zrtp = true;
	mock_sessions_start(&r->s, r->t.m, r->t.c);
	calls_on_session(r->t.c, on_notice, r);
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

static bool warns(const struct rig *r, const char *text)
{
	return r->t.reply.warning.len &&
		memmem(r->t.reply.warning.s, r->t.reply.warning.len, text, strlen(text));
}

/* The session of the leg with this local port. */
static struct session_cfg *session(struct rig *r, uint16_t port)
{
	uint32_t i = mock_session_at(&r->s, port);

	return i < MOCK_SESSIONS ? &r->s.cfg[i] : NULL;
}

struct said {
	const char *proto, *attrs;
	uint32_t zrtp;
	const char *transport;
	uint32_t sdes;
	bool again; /* of an established call */
	enum ng_preauth preauth;
};

#define SAID(p, a, ...) ((struct said){.proto = p, .attrs = a, __VA_ARGS__})

/* Returns the port that the answerer is told. */
static uint16_t offer(struct rig *r, struct said o)
{
	struct ng_request q = talk_request(
		"a", o.again ? "b" : "", talk_body(&r->t, "198.51.100.1", 4000, o.proto, o.attrs));

	q.zrtp = o.zrtp;
	q.transport = str_from(o.transport ? o.transport : "");
	q.sdes.flags = o.sdes;
	q.preauth = o.preauth;
	talk_send(&r->t, &q, false);
	assert_null(r->t.reply.error);
	return r->t.sdp->media[0].port;
}

/* Returns the port that the offerer is told. */
static uint16_t answer(struct rig *r, struct said o)
{
	struct ng_request q =
		talk_request("a", "b", talk_body(&r->t, "198.51.100.2", 5000, o.proto, o.attrs));

	q.zrtp = o.zrtp;
	q.sdes.flags = o.sdes;
	talk_send(&r->t, &q, true);
	assert_null(r->t.reply.error);
	return r->t.sdp->media[0].port;
}

static int tell(struct rig *r, uint16_t port, uint8_t kind, const char *sas)
{
	struct session_cfg *cfg = session(r, port);
	struct session_event e = {.kind = kind,
		.zrtp = true,
		.association = cfg->zrtp.exchange,
		.rx.suite = SUITE_AES_CM_128_80,
		.tx.suite = SUITE_AES_CM_128_80};

	e.rx.key[0] = 9;
	e.tx.key[0] = 10;
	snprintf(e.said.sas, sizeof(e.said.sas), "%s", sas);
	e.said.proof.known = sas[0];
	e.said.enrolled = r->enrolled & (port == r->asked ? 1u : 2u);
	e.secret = r->secret;
	e.later = r->later;
	return calls_session_event(r->t.c, (uint32_t)(cfg - r->s.cfg), &e, r->t.now);
}

static void restart(struct rig *r)
{
	const char *why = NULL;
	struct saved s;

	save(&r->t, &s);
	reborn(&r->t);
	mock_sessions_end(&r->s);
	mock_sessions_start(&r->s, r->t.m, r->t.c);
	assert_int_equal(restore(&r->t, sbuf_view(&s.whole), sbuf_view(&s.state), &why), 0);
	sbuf_fini(&s.whole);
	sbuf_fini(&s.state);
	calls_save_start(r->t.c);
}

static uint8_t first_key(struct rig *r, uint16_t port)
{
	const struct media_ctx_cfg *ctx = mock_ctx(r->t.m, port);

	return ctx->rx.keys ? mock_master(r->t.m, ctx->rx.key[0].slot)->key[0] : 0;
}

static bool is_clear(struct rig *r, uint16_t port)
{
	const struct media_ctx_cfg *ctx = mock_ctx(r->t.m, port);

	return !ctx->rx.awaited && !ctx->tx.awaited && !ctx->rx.keys && !ctx->tx.keys;
}

/* --- Tests ------------------------------------------------------------------------------------ */

/* Both terminals speak ZRTP: each gets the other's hash, and their packets pass. */
static void both_terminals_speak_zrtp_end_to_end(void **state)
{
	struct rig r;
	uint16_t a, b;

	(void)state;
	start(&r);
	b = offer(&r, SAID("RTP/AVP", HASH_A));
	assert_true(says(&r, HASH_A));
	a = answer(&r, SAID("RTP/AVP", HASH_B));
	assert_true(says(&r, HASH_B));
	assert_true(is_clear(&r, a) && is_clear(&r, b));
	assert_null(session(&r, a));
	assert_null(session(&r, b));
	assert_int_equal(mock_stream(r.t.m, a)->side, 0);
	/* Also in a later offer of the other terminal. */
	assert_int_equal(offer(&r, SAID("RTP/AVP", HASH_A, .again = true)), b);
	assert_true(says(&r, HASH_A));
	end(&r);
}

/* An answer's order to end ZRTP here does not part two that speak it with each other. */
static void two_that_speak_it_are_not_parted(void **state)
{
	struct rig r;
	uint16_t a;

	(void)state;
	start(&r);
	offer(&r, SAID("RTP/AVP", HASH_A));
	a = answer(&r, SAID("RTP/AVP", HASH_B, .zrtp = NG_ZRTP_TERMINATE));
	assert_true(says(&r, HASH_B));
	assert_null(session(&r, a));
	end(&r);
}

static void off_passes_nothing(void **state)
{
	struct rig r;

	(void)state;
	start(&r);
	offer(&r, SAID("RTP/AVP", HASH_A, .zrtp = NG_ZRTP_OFF));
	assert_false(says(&r, "zrtp-hash"));
	answer(&r, SAID("RTP/AVP", HASH_B));
	assert_false(says(&r, "zrtp-hash"));
	end(&r);
}

/* An offerer with ZRTP, and an answerer with SDES: the offerer's leg waits for its keys. */
static void an_offerer_of_zrtp_meets_one_of_sdes(void **state)
{
	const struct media_ctx_cfg *ctx;
	struct rig r;
	uint16_t a, b;

	(void)state;
	start(&r);
	b = offer(&r, SAID("RTP/AVP", HASH_A, .transport = "RTP/SAVP"));
	assert_true(says(&r, "RTP/SAVP 0 8") && says(&r, "a=crypto:1"));
	assert_false(says(&r, "zrtp-hash"));
	a = answer(&r, SAID("RTP/SAVP", "a=crypto:" C80A "\r\n", .zrtp = NG_ZRTP_TERMINATE));
	assert_true(says(&r, "RTP/AVP 0 8") && says(&r, "a=zrtp-hash:1.10 "));
	assert_false(says(&r, "a=crypto"));
	assert_null(session(&r, b));
	assert_true(session(&r, a)->zrtp.on && session(&r, a)->zrtp.bound);
	assert_int_equal(session(&r, a)->zrtp.hash[0], 0xaa);
	assert_int_equal(session(&r, a)->zrtp.exchange, 1);
	assert_false(session(&r, a)->dtls.on);
	assert_int_equal(mock_stream(r.t.m, a)->side, SIDE_BIT(SIDE_ZRTP));
	ctx = mock_ctx(r.t.m, a);
	assert_true(ctx->rx.awaited && ctx->tx.awaited);
	tell(&r, a, SESSION_KEYS, "ab2c");
	ctx = mock_ctx(r.t.m, a);
	assert_int_equal(mock_master(r.t.m, ctx->rx.key[0].slot)->key[0], 9);
	assert_int_equal(mock_master(r.t.m, ctx->tx.key[0].slot)->key[0], 10);
	assert_string_equal(r.sas, "ab2c");
	/* A re-INVITE without a change keeps the exchange and its keys, without any flag. */
	offer(&r, SAID("RTP/AVP", HASH_A, .again = true));
	assert_false(says(&r, "zrtp-hash"));
	answer(&r, SAID("RTP/SAVP", "a=crypto:" C80A "\r\n"));
	assert_true(says(&r, "a=zrtp-hash:1.10 "));
	assert_int_equal(session(&r, a)->zrtp.exchange, 1);
	assert_int_equal(first_key(&r, a), 9);
	/* Another hash is another exchange. The keys stay until it has some. */
	offer(&r, SAID("RTP/AVP", HASH_C, .again = true));
	answer(&r, SAID("RTP/SAVP", "a=crypto:" C80A "\r\n"));
	assert_int_equal(session(&r, a)->zrtp.exchange, 2);
	assert_int_equal(session(&r, a)->zrtp.hash[0], 0xcc);
	assert_int_equal(first_key(&r, a), 9);
	end(&r);
}

/* Without an order the default passes ZRTP, and there is nobody to pass it to. */
static void the_policy_ends_zrtp_where_one_side_speaks_it(void **state)
{
	struct call_policy policy;

	(void)state;
	for (int p = 0; p < ZRTP_POLICY_COUNT; p++)
		for (int sdes_off = 0; sdes_off < 2; sdes_off++) {
			bool ends = p == ZRTP_POLICY_TERMINATE;
			struct rig r;
			uint16_t a;

			start(&r);
			policy = r.t.policy;
			policy.zrtp = (enum zrtp_policy)p;
			calls_set_policy(r.t.c, &policy);
			offer(&r, SAID("RTP/AVP", HASH_A, .transport = "RTP/SAVP"));
			a = answer(&r,
				SAID("RTP/SAVP", "a=crypto:" C80A "\r\n",
					.sdes = sdes_off ? NG_SDES_OFF : 0));
			assert_int_equal(says(&r, "zrtp-hash"), ends);
			assert_int_equal(session(&r, a) != NULL, ends);
			end(&r);
		}
}

/* The receiver of the offer is to speak ZRTP. */
static void an_answerer_is_offered_zrtp(void **state)
{
	static const struct {
		const char *attrs;
		uint32_t zrtp;
		bool encrypted, bound, held, may_clear;
	} T[] = {
		{HASH_B, NG_ZRTP_TERMINATE, true, true, true, false},
		{HASH_B, NG_ZRTP_TERMINATE, false, true, false, false},
		{HASH_B, NG_ZRTP_TERMINATE | NG_ZRTP_HOLD, false, true, true, false},
		{HASH_B, NG_ZRTP_TERMINATE | NG_ZRTP_CLEAR, true, true, false, false},
		{"", NG_ZRTP_TERMINATE, true, false, true, true},
		{"", NG_ZRTP_TERMINATE | NG_ZRTP_HOLD, true, false, true, false},
		{"", NG_ZRTP_REQUIRE, false, false, true, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct calls_counters counters;
		struct rig r;
		uint16_t b;

		start(&r);
		b = offer(&r,
			SAID(T[i].encrypted ? "RTP/SAVP" : "RTP/AVP",
				T[i].encrypted ? "a=crypto:" C80A "\r\n" : "", .zrtp = T[i].zrtp,
				.transport = "RTP/AVP"));
		assert_true(says(&r, "RTP/AVP 0 8") && says(&r, "a=zrtp-hash:1.10 "));
		assert_false(says(&r, "a=crypto"));
		answer(&r, SAID("RTP/AVP", T[i].attrs));
		assert_false(says(&r, "zrtp-hash"));
		assert_int_equal(session(&r, b)->zrtp.bound, T[i].bound);
		assert_int_equal(mock_ctx(r.t.m, b)->rx.awaited, T[i].held);
		assert_int_equal(is_clear(&r, b), !T[i].held);
		assert_int_equal(warns(&r, "in clear until ZRTP"), !T[i].held);
		/* It answers no Hello. */
		tell(&r, b, SESSION_ABSENT, "");
		assert_int_equal(is_clear(&r, b), !T[i].held || T[i].may_clear);
		assert_int_equal(r.told[SESSION_ABSENT], T[i].may_clear);
		calls_counters(r.t.c, &counters);
		assert_int_equal(counters.keying_fallbacks, T[i].held && T[i].may_clear);
		end(&r);
	}
}

/* An emergency call has media in clear instead of none, if the request allows it. */
static void a_failed_exchange_falls_back_where_that_is_allowed(void **state)
{
	static const struct {
		uint32_t zrtp;
		uint8_t kind;
		bool clears;
	} T[] = {{NG_ZRTP_TERMINATE, SESSION_FAILED, false},
		{NG_ZRTP_TERMINATE, SESSION_ABSENT, false},
		{NG_ZRTP_TERMINATE | NG_ZRTP_FALLBACK, SESSION_FAILED, true},
		{NG_ZRTP_TERMINATE | NG_ZRTP_FALLBACK, SESSION_ABSENT, true},
		{NG_ZRTP_REQUIRE | NG_ZRTP_FALLBACK, SESSION_FAILED, true}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct calls_counters counters;
		struct rig r;
		uint16_t b;

		start(&r);
		b = offer(&r,
			SAID("RTP/SAVP", "a=crypto:" C80A "\r\n", .zrtp = T[i].zrtp,
				.transport = "RTP/AVP"));
		answer(&r, SAID("RTP/AVP", HASH_B)); /* it announced ZRTP */
		tell(&r, b, T[i].kind, "");
		assert_int_equal(is_clear(&r, b), T[i].clears);
		assert_int_equal(r.told[SESSION_FALLBACK], T[i].clears);
		calls_counters(r.t.c, &counters);
		assert_int_equal(counters.keying_fallbacks, T[i].clears);
		end(&r);
	}
}

/* Each terminal's session gets the other's SAS, for SASrelay. */
static void the_far_sas_is_told(void **state)
{
	struct rig r;
	uint16_t b;

	(void)state;
	start(&r);
	b = offer(&r, SAID("RTP/AVP", HASH_A, .zrtp = NG_ZRTP_TERMINATE));
	answer(&r, SAID("RTP/AVP", HASH_B, .zrtp = NG_ZRTP_TERMINATE));
	tell(&r, b, SESSION_KEYS, "ab2c");
	for (uint32_t i = 0; i < MOCK_SESSIONS; i++)
		if (r.s.taken[i])
			assert_int_equal(r.s.cfg[i].zrtp.far.known, r.s.port[i][0].rtp.port != b);
	end(&r);
}

/* Two enrolled terminals that both showed the other's SAS would show different ones (RFC 6189 7.3):
 * whoever is secure first, the offerer gets the answerer's. */
static void one_of_two_enrolled_terminals_gets_the_far_sas(void **state)
{
	(void)state;
	for (uint32_t enrolled = 0; enrolled < 4; enrolled++)
		for (int first = 0; first < 2; first++) {
			struct rig r;
			uint16_t port[2];

			start(&r);
			port[0] = offer(&r, SAID("RTP/AVP", HASH_A, .zrtp = NG_ZRTP_TERMINATE));
			port[1] = answer(&r, SAID("RTP/AVP", HASH_B, .zrtp = NG_ZRTP_TERMINATE));
			r.enrolled = enrolled;
			r.asked = port[0];
			tell(&r, port[first], SESSION_KEYS, "ab2c");
			/* An enrolled terminal would get it as soon as it is secure. */
			assert_int_equal(session(&r, port[!first])->zrtp.far.known,
				first == 0 || !(enrolled & 2));
			tell(&r, port[!first], SESSION_KEYS, "cd2e");
			assert_true(session(&r, port[1])->zrtp.far.known);
			assert_int_equal(session(&r, port[0])->zrtp.far.known, !(enrolled & 2));
			end(&r);
		}
}

/* Keys of another exchange, and a terminal that ends SRTP. */
static void events_that_do_not_fit_change_nothing(void **state)
{
	static const struct {
		uint32_t zrtp;
		bool clears;
	} T[] = {{NG_ZRTP_TERMINATE, false}, {NG_ZRTP_TERMINATE | NG_ZRTP_GOCLEAR, true},
		{NG_ZRTP_REQUIRE | NG_ZRTP_GOCLEAR, false}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct rig r;
		uint16_t b;

		start(&r);
		b = offer(&r,
			SAID("RTP/SAVP", "a=crypto:" C80A "\r\n", .zrtp = T[i].zrtp,
				.transport = "RTP/AVP"));
		answer(&r, SAID("RTP/AVP", HASH_B));
		session(&r, b)->zrtp.exchange++;
		tell(&r, b, SESSION_KEYS, "none");
		assert_true(mock_ctx(r.t.m, b)->rx.awaited);
		session(&r, b)->zrtp.exchange--;
		assert_int_equal(r.told[SESSION_KEYS], 0);
		tell(&r, b, SESSION_KEYS, "ab2c");
		tell(&r, b, SESSION_ABSENT, "");
		assert_int_equal(first_key(&r, b), 9);
		assert_int_equal(session(&r, b)->zrtp.goclear, T[i].clears);
		tell(&r, b, SESSION_CLEAR, "");
		assert_int_equal(is_clear(&r, b), T[i].clears);
		assert_int_equal(r.told[SESSION_CLEAR], T[i].clears);
		end(&r);
	}
}

/* SDES=require holds for ZRTP, too: other suites are not believed, and nothing is in clear. */
static void demanded_suites_bind_zrtp(void **state)
{
	struct ng_request q;
	struct rig r;
	uint16_t b;

	(void)state;
	for (int fits = 0; fits < 2; fits++) {
		start(&r);
		b = offer(&r, SAID("RTP/AVP", "", .zrtp = NG_ZRTP_TERMINATE | NG_ZRTP_CLEAR));
		q = talk_request(
			"a", "b", talk_body(&r.t, "198.51.100.2", 5000, "RTP/AVP", HASH_B));
		q.sdes.require_given = true;
		q.sdes.require = 1u << (fits ? SUITE_AES_CM_128_80 : SUITE_AES_256_CM_80);
		talk_send(&r.t, &q, true);
		assert_null(r.t.reply.error);
		assert_false(is_clear(&r, b));
		tell(&r, b, SESSION_KEYS, "ab2c");
		assert_int_equal(first_key(&r, b), fits ? 9 : 0);
		assert_false(is_clear(&r, b));
		end(&r);
	}
}

/* Each terminal that answers one offer has an exchange of its own. */
static void each_branch_has_its_exchange(void **state)
{
	struct rig r;
	uint32_t first;
	uint16_t b;

	(void)state;
	start(&r);
	b = offer(&r,
		SAID("RTP/SAVP", "a=crypto:" C80A "\r\n", .zrtp = NG_ZRTP_TERMINATE,
			.transport = "RTP/AVP"));
	answer(&r, SAID("RTP/AVP", HASH_B));
	first = session(&r, b)->zrtp.exchange;
	tell(&r, b, SESSION_KEYS, "ab2c");
	talk_answer(&r.t, "a", "c", talk_body(&r.t, "198.51.100.3", 6000, "RTP/AVP", HASH_C));
	assert_null(r.t.reply.error);
	assert_int_not_equal(session(&r, b)->zrtp.exchange, first);
	assert_int_equal(session(&r, b)->zrtp.hash[0], 0xcc);
	end(&r);
}

/* The callee's re-INVITE brings the flags that were meant for it. The caller's leg stays. */
static void flags_of_the_other_side_are_not_applied(void **state)
{
	struct ng_request q;
	struct rig r;
	uint16_t b;

	(void)state;
	start(&r);
	b = offer(&r, SAID("RTP/AVP", "", .zrtp = NG_ZRTP_TERMINATE));
	answer(&r, SAID("RTP/AVP", HASH_B));
	q = talk_request("b", "a", talk_body(&r.t, "198.51.100.2", 5000, "RTP/AVP", HASH_B));
	q.zrtp = NG_ZRTP_TERMINATE;
	talk_send(&r.t, &q, false);
	assert_null(r.t.reply.error);
	assert_false(says(&r, "zrtp-hash"));
	talk_answer(&r.t, "b", "a", talk_body(&r.t, "198.51.100.1", 4000, "RTP/AVP", ""));
	assert_null(r.t.reply.error);
	assert_true(says(&r, "zrtp-hash"));
	assert_int_equal(session(&r, b)->zrtp.exchange, 1);
	end(&r);
}

/* --- SRTP+ ------------------------------------------------------------------------------------ */

#define PLUS     "a=xcipher-preauth:"
#define PLUS_AES PLUS "sequence-aes\r\n"

static void plus_start(struct rig *r, enum preauth_use use)
{
	struct call_policy policy;

	start(r);
	policy = r->t.policy;
	policy.sdes.preauth = (struct preauth_policy){.use = use, .scheme = PREAUTH_SEQUENCE_AES};
	calls_set_policy(r->t.c, &policy);
}

static void tags_are(struct rig *r, uint16_t port, uint8_t scheme)
{
	const struct media_ctx_cfg *ctx = mock_ctx(r->t.m, port);

	assert_int_equal(ctx->rx.preauth, scheme);
	assert_int_equal(ctx->tx.preauth, scheme);
	assert_int_equal(ctx->rx.preauth_slot != 0, scheme != 0);
}

/* Tags begin with the keys of the exchange, and stay at a re-INVITE. Only the same scheme answers
 * an offer. */
static void an_offer_of_tags_needs_the_same_in_the_answer(void **state)
{
	static const struct {
		const char *answer;
		uint8_t scheme;
	} T[] = {{HASH_B PLUS_AES, 1 + PREAUTH_SEQUENCE_AES}, {HASH_B, 0},
		{HASH_B PLUS "header-siphash\r\n", 0}, {HASH_B PLUS "chain/8/16/128\r\n", 0},
		{HASH_B PLUS "x\r\n", 0}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct rig r;
		uint16_t b;

		plus_start(&r, PREAUTH_USE_ACCEPT);
		b = offer(&r,
			SAID("RTP/AVP", "", .zrtp = NG_ZRTP_TERMINATE,
				.preauth = NG_PREAUTH_OFFER));
		assert_true(says(&r, PLUS_AES));
		answer(&r, SAID("RTP/AVP", T[i].answer));
		assert_false(says(&r, PLUS));
		tags_are(&r, b, 0);
		tell(&r, b, SESSION_KEYS, "ab2c");
		tags_are(&r, b, T[i].scheme);
		offer(&r, SAID("RTP/AVP", "", .again = true));
		assert_int_equal(says(&r, PLUS_AES), T[i].scheme != 0);
		answer(&r, SAID("RTP/AVP", T[i].answer));
		tags_are(&r, b, T[i].scheme);
		assert_int_equal(first_key(&r, b), 9);
		/* Another exchange: the old keys keep theirs, the new ones begin without. */
		offer(&r, SAID("RTP/AVP", "", .again = true, .preauth = NG_PREAUTH_OFF));
		assert_false(says(&r, PLUS));
		answer(&r, SAID("RTP/AVP", HASH_C));
		tags_are(&r, b, T[i].scheme);
		tell(&r, b, SESSION_KEYS, "ab2c");
		tags_are(&r, b, 0);
		end(&r);
	}
}

/* The other terminal does not see it. */
static void a_restart_keeps_the_secret_for_further_streams(void **state)
{
	(void)state;
	for (int known = 0; known < 2; known++) {
		const struct session_cfg *s;
		struct rig r;
		uint16_t a;

		start(&r);
		calls_save_start(r.t.c);
		if (known)
			r.secret = r.later = (struct zrtp_secret){.known = true,
				.hash = 1,
				.sess = {[0] = 1, [47] = 2},
				.zid = {[11] = 3},
				.h3 = {[0] = 4, [31] = 5},
				.with_keys = true,
				.initiator = true,
				.enrolled = true,
				.mitm = true,
				.mac_key = {{[0] = 6}, {[47] = 7}},
				.key = {{[0] = 8}, {[31] = 9}}};
		r.later.h3[1] = r.secret.h3[0];
		offer(&r, SAID("RTP/AVP", HASH_A, .transport = "RTP/SAVP"));
		a = answer(
			&r, SAID("RTP/SAVP", "a=crypto:" C80A "\r\n", .zrtp = NG_ZRTP_TERMINATE));
		assert_int_equal(tell(&r, a, SESSION_KEYS, "ab2c"), 0);
		assert_false(session(&r, a)->zrtp_past.secret.known);
		restart(&r);
		s = session(&r, a);
		assert_non_null(s);
		assert_true(s->zrtp.established);
		assert_memory_equal(&s->zrtp_past.secret, &r.secret, sizeof(r.secret));
		assert_memory_equal(&s->zrtp_past.later, &r.later, sizeof(r.later));
		assert_string_equal(s->zrtp_past.said.sas, "ab2c");
		assert_true(s->zrtp_past.said.proof.known);
		end(&r);
	}
}

/* Another exchange has another secret, and until then there is none. */
static void the_secret_ends_with_its_exchange(void **state)
{
	struct keying_exchange x;
	struct rig r;
	uint16_t a;

	(void)state;
	start(&r);
	r.secret = (struct zrtp_secret){.known = true, .sess = {[0] = 1}};
	offer(&r, SAID("RTP/AVP", HASH_A, .transport = "RTP/SAVP"));
	a = answer(&r, SAID("RTP/SAVP", "a=crypto:" C80A "\r\n", .zrtp = NG_ZRTP_TERMINATE));
	assert_int_equal(tell(&r, a, SESSION_KEYS, "ab2c"), 0);
	for (int turn = 0; turn < 2; turn++) {
		const struct session_place *at = &r.t.c->session_place[mock_session_at(&r.s, a)];

		assert_true(keying_exchange(&x, &at->call->side[at->side]->leg[at->media]->keying));
		assert_int_equal(x.secret->known, !turn);
		assert_int_equal(x.secret->sess[0], !turn);
		if (turn)
			break;
		offer(&r, SAID("RTP/AVP", HASH_C, .transport = "RTP/SAVP", .again = true));
		answer(&r, SAID("RTP/SAVP", "a=crypto:" C80A "\r\n", .zrtp = NG_ZRTP_TERMINATE));
	}
	end(&r);
}

/* After GoClear the saved secret would lead to keys of streams before (RFC 6189 4.7.2.1). The one
 * that replaced it is saved, so that the stream is not begun again after a restart. */
static void go_clear_replaces_the_saved_secret(void **state)
{
	const struct session_place *at;
	struct keying_exchange x;
	struct rig r;
	uint16_t b;

	(void)state;
	start(&r);
	calls_save_start(r.t.c);
	b = offer(&r,
		SAID("RTP/SAVP", "a=crypto:" C80A "\r\n",
			.zrtp = NG_ZRTP_TERMINATE | NG_ZRTP_GOCLEAR, .transport = "RTP/AVP"));
	answer(&r, SAID("RTP/AVP", HASH_B));
	for (int turn = 0; turn < 3; turn++) {
		r.secret = (struct zrtp_secret){
			.known = true, .sess = {[0] = (uint8_t)turn}, .cleared = turn == 1};
		tell(&r, b, turn == 1 ? SESSION_CLEAR : SESSION_KEYS, "ab2c");
		at = &r.t.c->session_place[mock_session_at(&r.s, b)];
		assert_true(keying_exchange(&x, &at->call->side[at->side]->leg[at->media]->keying));
		assert_memory_equal(x.secret, &r.secret, sizeof(r.secret));
		assert_int_equal(x.cleared, turn == 1);
		restart(&r);
		assert_true(session(&r, b)->zrtp.established);
		assert_memory_equal(&session(&r, b)->zrtp_past.secret, &r.secret, sizeof(r.secret));
	}
	/* A call of an earlier version has no secret after GoClear. */
	r.secret = (struct zrtp_secret){0};
	tell(&r, b, SESSION_CLEAR, "ab2c");
	restart(&r);
	assert_false(session(&r, b)->zrtp.established);
	end(&r);
}

static void a_terminal_that_offers_tags_gets_them(void **state)
{
	(void)state;
	for (int use = PREAUTH_USE_OFF; use <= PREAUTH_USE_OFFER; use++) {
		uint8_t want = use == PREAUTH_USE_OFF ? 0 : 1 + PREAUTH_CHAIN;
		struct rig r;
		uint16_t a;

		plus_start(&r, (enum preauth_use)use);
		offer(&r, SAID("RTP/AVP", HASH_A PLUS "chain\r\n", .transport = "RTP/SAVP"));
		assert_false(says(&r, PLUS));
		a = answer(
			&r, SAID("RTP/SAVP", "a=crypto:" C80A "\r\n", .zrtp = NG_ZRTP_TERMINATE));
		assert_int_equal(says(&r, PLUS "chain\r\n"), want != 0);
		tags_are(&r, a, 0);
		tell(&r, a, SESSION_KEYS, "ab2c");
		tags_are(&r, a, want);
		/* A re-INVITE without the attribute ends them, under the same keys. */
		offer(&r, SAID("RTP/AVP", HASH_A, .transport = "RTP/SAVP", .again = true));
		answer(&r, SAID("RTP/SAVP", "a=crypto:" C80A "\r\n"));
		assert_false(says(&r, PLUS));
		tags_are(&r, a, 0);
		assert_int_equal(first_key(&r, a), 9);
		end(&r);
	}
}

/* Two that speak ZRTP with each other have keys that we do not know. */
static void tags_do_not_pass_end_to_end(void **state)
{
	struct rig r;

	(void)state;
	plus_start(&r, PREAUTH_USE_OFFER);
	offer(&r, SAID("RTP/AVP", HASH_A PLUS_AES));
	assert_true(says(&r, HASH_A) && !says(&r, PLUS));
	answer(&r, SAID("RTP/AVP", HASH_B PLUS_AES));
	assert_true(says(&r, HASH_B) && !says(&r, PLUS));
	end(&r);
}

/* Once for each exchange. */
static void media_under_the_keys_settle_the_exchange(void **state)
{
	struct rig r;
	uint16_t a;

	(void)state;
	start(&r);
	offer(&r, SAID("RTP/AVP", HASH_A, .transport = "RTP/SAVP"));
	a = answer(&r, SAID("RTP/SAVP", "a=crypto:" C80A "\r\n", .zrtp = NG_ZRTP_TERMINATE));
	for (uint32_t exchange = 1; exchange < 3; exchange++) {
		calls_tick(r.t.c, r.t.now);
		assert_int_equal(r.s.settled[0], exchange - 1);
		tell(&r, a, SESSION_KEYS, "ab2c");
		calls_tick(r.t.c, r.t.now);
		assert_int_equal(r.s.settled[0], exchange - 1);
		r.t.m->usage[mock_ctx(r.t.m, a)->rx.key[0].slot / 2].rtp = 1;
		for (int i = 0; i < 2; i++)
			calls_tick(r.t.c, r.t.now);
		assert_int_equal(r.s.settled[0], exchange);
		r.t.m->usage[mock_ctx(r.t.m, a)->rx.key[0].slot / 2].rtp = 0; /* other keys */
		offer(&r, SAID("RTP/AVP", HASH_C, .again = true));
		answer(&r, SAID("RTP/SAVP", "a=crypto:" C80A "\r\n"));
	}
	end(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_terminals_speak_zrtp_end_to_end),
		cmocka_unit_test(a_restart_keeps_the_secret_for_further_streams),
		cmocka_unit_test(the_secret_ends_with_its_exchange),
		cmocka_unit_test(go_clear_replaces_the_saved_secret),
		cmocka_unit_test(two_that_speak_it_are_not_parted),
		cmocka_unit_test(off_passes_nothing),
		cmocka_unit_test(an_offerer_of_zrtp_meets_one_of_sdes),
		cmocka_unit_test(the_policy_ends_zrtp_where_one_side_speaks_it),
		cmocka_unit_test(an_answerer_is_offered_zrtp),
		cmocka_unit_test(a_failed_exchange_falls_back_where_that_is_allowed),
		cmocka_unit_test(the_far_sas_is_told),
		cmocka_unit_test(one_of_two_enrolled_terminals_gets_the_far_sas),
		cmocka_unit_test(events_that_do_not_fit_change_nothing),
		cmocka_unit_test(demanded_suites_bind_zrtp),
		cmocka_unit_test(each_branch_has_its_exchange),
		cmocka_unit_test(flags_of_the_other_side_are_not_applied),
		cmocka_unit_test(an_offer_of_tags_needs_the_same_in_the_answer),
		cmocka_unit_test(a_terminal_that_offers_tags_gets_them),
		cmocka_unit_test(tags_do_not_pass_end_to_end),
		cmocka_unit_test(media_under_the_keys_settle_the_exchange),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
