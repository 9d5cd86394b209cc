/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Suites and session parameters that are offered, accepted and chosen, and reasons why not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "call/call.h"
#include "call/delete.h"
#include "call/tick.h"
#include "call_talk.h"
#include "proto/json.h"
#include "proto/ngval.h"

#define A "198.51.100.1"
#define B "198.51.100.2"

#define BIT(x) (1u << SUITE_##x)
#define ALL    ((1u << SUITE_COUNT) - 2)
#define CRYPTO "a=crypto:"
#define KEY(x) x x x x x x x x x x /* 4 letters each: 30 bytes */
#define K30    "inline:" KEY("abcd")
#define K28    "inline:abcdabcdabcdabcdabcdabcdabcdabcdabcdAA"
#define K44    "inline:" KEY("abcd") "abcdabcdabcdabcdabc"
#define K38    "inline:" KEY("abcd") "abcdabcdabc"
#define K46    "inline:" KEY("abcd") "abcdabcdabcdabcdabcdAA"

static const char *key_of(const struct srtp_suite *s)
{
	switch (s->key_len + s->salt_len) {
	case 28:
		return K28;
	case 30:
		return K30;
	case 38:
		return K38;
	case 44:
		return K44;
	default:
		return K46;
	}
}

/* The two terminals use different keys; b is the answerer. */
static const char *line(struct talk *t, uint32_t tag, uint32_t suite, bool alias, bool b)
{
	const struct srtp_suite *s = srtp_suite_get(suite);

	return pool_printf(t->p, CRYPTO "%u %s inline:%s%s\r\n", (unsigned)tag,
		alias && s->alias[0] ? s->alias : s->name, b ? "bbbb" : "",
		key_of(s) + strlen("inline:") + (b ? 4 : 0))
		.s;
}

static void policy(struct talk *t, const struct sdes_policy *sdes)
{
	calls_destroy(t->c);
	t->policy.sdes = *sdes;
	assert_int_equal(calls_create(&t->c, &t->policy, &t->m->relay), 0);
}

static const struct sdes_policy strong = {
	.offer = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, .accept = ALL & ~BIT(NULL_80) & ~BIT(NULL_32)};

static void offer(struct talk *t, const char *proto, const char *attrs, const char *transport,
	const struct ng_sdes *flags)
{
	struct calls_counters n;
	struct ng_request r;

	calls_counters(t->c, &n);
	r = talk_request("a", n.answers ? "b" : "", talk_body(t, A, 4000, proto, attrs));
	r.transport = str_from(transport);
	if (flags)
		r.sdes = *flags;
	talk_send(t, &r, false);
}

/* Any suite, by either of its names, is converted to any suite. Each terminal gets a key of the
 * right length. */
static void every_suite_meets_every_suite(void **state)
{
	(void)state;
	for (uint32_t a = 1; a < SUITE_COUNT; a++)
		for (uint32_t b = 1; b < SUITE_COUNT; b++) {
			struct sdes_policy all = {.accept = ALL};
			struct ng_sdes only = {.only = 1u << b};
			struct talk t;
			char attrs[256];
			uint16_t pa, pb;
			struct sdes s;

			talk_start(&t);
			policy(&t, &all);
			talk_pool(&t);
			snprintf(attrs, sizeof(attrs), "%s", line(&t, 7, a, b & 1, false));
			offer(&t, "RTP/SAVP", attrs, "", &only);
			assert_null(t.reply.error);
			assert_true(talk_line(&t, 0, 0, &s));
			assert_false(talk_line(&t, 0, 1, &s));
			assert_int_equal(s.master.suite, b);
			pb = t.sdp->media[0].port;
			snprintf(attrs, sizeof(attrs), "%s", line(&t, s.tag, b, a & 1, true));
			talk_answer(&t, "a", "b", talk_body(&t, B, 5000, "RTP/SAVP", attrs));
			assert_null(t.reply.error);
			assert_true(talk_line(&t, 0, 0, &s));
			assert_int_equal(s.tag, 7);
			assert_int_equal(s.master.suite, a);
			pa = t.sdp->media[0].port;
			assert_int_equal(mock_ctx(t.m, pa)->rx.suite, a);
			assert_int_equal(mock_ctx(t.m, pa)->tx.suite, a);
			assert_int_equal(mock_ctx(t.m, pb)->rx.suite, b);
			assert_int_equal(mock_ctx(t.m, pb)->tx.suite, b);
			talk_end(&t);
		}
}

#define G256 "AEAD_AES_256_GCM"
#define L80  "AES_CM_128_HMAC_SHA1_80"
#define L32  "AES_CM_128_HMAC_SHA1_32"
#define N80  "NULL_HMAC_SHA1_80"

static void offers_name_what_the_policy_lists(void **state)
{
	static const struct {
		struct sdes_policy policy;
		struct ng_sdes flags;
		const char *attrs, *want, *why;
	} T[] = {
		{{.offer = {SUITE_AES_CM_128_32, SUITE_AEAD_AES_256_GCM}, .accept = ALL}, {0}, "",
			"1 " L32 ",2 " G256, "the policy's suites in its order"},
		{{.offer = {SUITE_AES_CM_128_32, SUITE_AEAD_AES_256_GCM}, .accept = ALL}, {0},
			CRYPTO "1 " G256 " " K44 "\r\n", "1 " G256 ",2 " L32,
			"what the offerer has comes first"},
		{{.offer = {SUITE_AES_CM_128_32}, .accept = ALL}, {0},
			CRYPTO "1 " N80 " " K30 "\r\n", "1 " L32,
			"what is accepted on one side is not offered to the other"},
		{{.offer = {SUITE_AES_CM_128_32}, .accept = BIT(AES_CM_128_80)},
			{.only = BIT(NULL_80)}, CRYPTO "1 " L80 " " K30 "\r\n", "1 " N80,
			"a script may name any suite"},
		{{.offer = {SUITE_AES_CM_128_32, SUITE_AES_CM_128_80}, .accept = ALL},
			{.only = BIT(AES_CM_128_80) | BIT(NULL_80) | BIT(AES_CM_128_32)}, "",
			"1 " L32 ",2 " L80 ",3 " N80, "several: the policy's order, then the rest"},
		{{.offer = {SUITE_AES_CM_128_32, SUITE_AES_CM_128_80}, .accept = ALL},
			{.no = BIT(AES_CM_128_32)}, "", "1 " L80, "no-"},
		{{.offer = {SUITE_AES_CM_128_32}, .accept = ALL}, {.offerer_pref = {SUITE_NULL_80}},
			"", "1 " L32, "a preference allows nothing"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct talk t;

		talk_start(&t);
		policy(&t, &T[i].policy);
		offer(&t, *T[i].attrs ? "RTP/SAVP" : "RTP/AVP", T[i].attrs, "RTP/SAVP",
			&T[i].flags);
		if (t.reply.error)
			fail_msg("%s: %s", T[i].why, t.reply.error);
		if (strcmp(talk_lines(&t, 0), T[i].want) != 0)
			fail_msg("%s: %s", T[i].why, talk_lines(&t, 0));
		talk_end(&t);
	}
}

static void a_refusal_says_which_line_and_why(void **state)
{
	static const struct {
		const char *attrs, *want;
	} T[] = {
		{CRYPTO "1 " N80 " " K30 "\r\n", "crypto line 1: suite is not accepted"},
		{CRYPTO "1 " L80 " " K30 " UNENCRYPTED_SRTP\r\n", "UNENCRYPTED_SRTP is not"},
		{CRYPTO "1 " L80 " " K30 " UNENCRYPTED_SRTCP\r\n", "UNENCRYPTED_SRTCP is not"},
		{CRYPTO "1 " L80 " " K30 " UNAUTHENTICATED_SRTP\r\n",
			"UNAUTHENTICATED_SRTP is not"},
		{CRYPTO "1 " L80 " " K30 " FEC_ORDER=FEC_SRTP\r\n", "FEC"},
		{CRYPTO "1 ROT13 " K30 "\r\n", "crypto line 1: unknown crypto suite"},
		{"", "media 1"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct talk t;

		talk_start(&t);
		policy(&t, &strong);
		offer(&t, "RTP/SAVP", T[i].attrs, "", NULL);
		assert_non_null(t.reply.error);
		assert_string_equal(t.reply.error, "No common crypto suite");
		if (!strstr(t.reply.detail.s, T[i].want))
			fail_msg("%s instead of %s", t.reply.detail.s, T[i].want);
		talk_end(&t);
	}
}

/* Session parameters that the terminal requests apply both ways and are written back. */
static void negotiated_parameters_are_answered_as_offered(void **state)
{
	static const struct {
		const char *params;
		bool rtp, rtcp, auth;
	} T[] = {{"", false, false, true}, {" UNENCRYPTED_SRTCP", false, true, true},
		{" UNENCRYPTED_SRTP", true, false, true},
		{" UNAUTHENTICATED_SRTP", false, false, false},
		{" UNENCRYPTED_SRTP UNENCRYPTED_SRTCP UNAUTHENTICATED_SRTP", true, true, false}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct sdes_policy all = {.offer = {SUITE_AES_CM_128_80},
			.accept = ALL,
			.params = NG_SDES_UNENCRYPTED_SRTP | NG_SDES_UNENCRYPTED_SRTCP |
				NG_SDES_UNAUTHENTICATED_SRTP};
		const struct media_ctx_cfg *c;
		char attrs[256];
		struct talk t;
		struct sdes s;

		talk_start(&t);
		policy(&t, &all);
		snprintf(attrs, sizeof(attrs), CRYPTO "3 " L32 " " K30 "%s\r\n", T[i].params);
		offer(&t, "RTP/SAVP", attrs, "RTP/AVP", NULL);
		assert_null(t.reply.error);
		talk_answer(&t, "a", "b", talk_body(&t, B, 5000, "RTP/AVP", ""));
		assert_null(t.reply.error);
		assert_true(talk_line(&t, 0, 0, &s));
		assert_int_equal(s.unencrypted_srtp, T[i].rtp);
		assert_int_equal(s.unencrypted_srtcp, T[i].rtcp);
		assert_int_equal(s.master.no_rtp_auth, !T[i].auth);
		c = mock_ctx(t.m, t.sdp->media[0].port);
		assert_int_equal(c->rx.clear_rtp, T[i].rtp);
		assert_int_equal(c->tx.clear_rtp, T[i].rtp);
		assert_int_equal(c->rx.clear_rtcp, T[i].rtcp);
		assert_int_equal(c->tx.clear_rtcp, T[i].rtcp);
		assert_int_equal(c->rx.no_rtp_auth, !T[i].auth);
		assert_int_equal(c->tx.no_rtp_auth, !T[i].auth);
		assert_int_equal(mock_master(t.m, c->rx.key[0].slot)->no_rtp_auth, !T[i].auth);
		assert_int_equal(mock_master(t.m, c->tx.key[0].slot)->no_rtp_auth, !T[i].auth);
		talk_end(&t);
	}
}

/* RFC 4568 5.1.3: an answer must repeat the offer's parameters exactly. */
static void an_answer_cannot_drop_or_add_parameters(void **state)
{
	static const struct {
		uint32_t flags;
		const char *params;
		bool good;
	} T[] = {
		{0, "", true},
		{0, " UNENCRYPTED_SRTP", false},
		{0, " UNENCRYPTED_SRTCP", false},
		{NG_SDES_UNENCRYPTED_SRTCP, " UNENCRYPTED_SRTCP", true},
		{NG_SDES_UNENCRYPTED_SRTCP, "", false},
		{NG_SDES_UNENCRYPTED_SRTP, " UNENCRYPTED_SRTP", true},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct ng_sdes flags = {.only = BIT(AES_CM_128_80), .flags = T[i].flags};
		char attrs[256];
		struct talk t;

		talk_start(&t);
		policy(&t, &strong);
		offer(&t, "RTP/AVP", "", "RTP/SAVP", &flags);
		assert_null(t.reply.error);
		snprintf(attrs, sizeof(attrs), CRYPTO "1 " L80 " " K30 "%s\r\n", T[i].params);
		talk_answer(&t, "a", "b", talk_body(&t, B, 5000, "RTP/SAVP", attrs));
		assert_int_equal(t.reply.error == NULL, T[i].good);
		if (!T[i].good)
			assert_non_null(strstr(t.reply.detail.s, "must be those of the offer"));
		talk_end(&t);
	}
}

/* Chooses from the offered suites: the far side's suite, else the policy's best, whatever the
 * order. */
static void the_strongest_common_suite_is_chosen(void **state)
{
	static const struct {
		struct sdes_policy policy;
		const char *want;
	} T[] = {
		{{.offer = {1, 2, 3, 4, 5, 6, 7, 8}, .accept = ALL}, "4 " G256},
		{{.offer = {SUITE_AES_CM_128_32, 1}, .accept = ALL}, "2 " L32},
		{{.offer = {SUITE_AES_256_CM_80}, .accept = ALL}, "4 " G256},
		{{.offer = {1, 2, 3, 4, 5, 6, 7, 8}, .accept = BIT(AES_CM_128_80) | BIT(NULL_80)},
			"3 " L80},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct talk t;

		talk_start(&t);
		policy(&t, &T[i].policy);
		offer(&t, "RTP/SAVP",
			CRYPTO "1 " N80 " " K30 "\r\n" CRYPTO "2 " L32 " " K30 "\r\n" CRYPTO
			       "3 " L80 " " K30 "\r\n" CRYPTO "4 " G256 " " K44 "\r\n",
			"RTP/AVP", NULL);
		assert_null(t.reply.error);
		talk_answer(&t, "a", "b", talk_body(&t, B, 5000, "RTP/AVP", ""));
		assert_null(t.reply.error);
		assert_string_equal(talk_lines(&t, 0), T[i].want);
		talk_end(&t);
	}
}

#define KA "inline:" KEY("aaaa")
#define KB "inline:" KEY("bbbb")
#define KC "inline:" KEY("cccc")

/* The terminal's receiving key stays. Its sending keys come and go by MKI. */
static void keys_change_within_a_call(void **state)
{
	static const struct {
		const char *keys;
		unsigned n;
		bool new;       /* new crypto context: indexes restart */
		unsigned fresh; /* newly taken slots */
		const char *why;
	} T[] = {
		{KA "|1:4", 1, true, 1, "first"},
		{KA "|1:4", 1, false, 0, "the same once more"},
		{KA "|1:4;" KB "|2:4", 2, false, 1, "one is added"},
		{KB "|2:4;" KA "|1:4", 2, false, 0, "another order"},
		{KB "|2:4;" KC "|3:4", 2, false, 1, "one goes, one comes"},
		{KC "|2^20|3:4", 1, false, 1, "another lifetime: another slot, the same key"},
		{KA "|1:4", 1, true, 1, "none stays"},
		{KA "|1:3", 1, true, 1, "an MKI of another length"},
		{KA, 1, true, 1, "no MKI"},
		{KB, 1, true, 1, "another key without one"},
	};
	struct media_crypto before = {0};
	char body[1024];
	struct talk t;
	struct sdes ours, again;

	(void)state;
	talk_start(&t);
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		const struct media_ctx_cfg *c;
		unsigned fresh = 0;

		snprintf(body, sizeof(body), CRYPTO "1 " L80 " %s\r\n", T[i].keys);
		offer(&t, "RTP/SAVP", body, "RTP/AVP", NULL);
		if (t.reply.error)
			fail_msg("%s: %s", T[i].why, t.reply.error);
		talk_answer(&t, "a", "b", talk_body(&t, B, 5000, "RTP/AVP", ""));
		assert_null(t.reply.error);
		assert_true(talk_line(&t, 0, 0, &again));
		if (i > 0)
			assert_memory_equal(again.master.key, ours.master.key, 16);
		ours = again;
		c = mock_ctx(t.m, t.sdp->media[0].port);
		assert_int_equal(c->rx.keys, T[i].n);
		assert_int_equal(c->tx.keys, 1);
		assert_int_equal(c->tx.use, 0);
		if (T[i].fresh && c->rx_new != T[i].new)
			fail_msg("%s: new is %d", T[i].why, c->rx_new);
		if (T[i].fresh)
			assert_int_equal(c->tx_new, i == 0);
		for (unsigned k = 0; k < T[i].n; k++) {
			bool known = false;

			for (unsigned j = 0; j < before.keys; j++)
				known |= before.key[j].slot == c->rx.key[k].slot;
			fresh += !known;
			assert_int_equal(c->rx.key[k].mki[c->rx.mki_len ? c->rx.mki_len - 1 : 0],
				mock_master(t.m, c->rx.key[k].slot)
					->mki[c->rx.mki_len ? c->rx.mki_len - 1 : 0]);
		}
		if (i > 0 && fresh != T[i].fresh)
			fail_msg("%s: %u fresh slots", T[i].why, fresh);
		assert_in_range(
			t.m->keys, T[i].n + 1, T[i].n + 1 + 3); /* the latest three may return */
		before = c->rx;
	}
	assert_int_equal(mock_master(t.m, before.key[0].slot)->lifetime, 0);
	talk_end(&t);
}

static void slots_that_run_out_change_nothing(void **state)
{
	struct talk t;

	(void)state;
	for (uint32_t at = 1; at < 12; at++) {
		uint32_t keys;

		talk_start(&t);
		offer(&t, "RTP/SAVP", CRYPTO "1 " L80 " " KA "|1:1\r\n", "RTP/AVP", NULL);
		talk_answer(&t, "a", "b", talk_body(&t, B, 5000, "RTP/AVP", ""));
		assert_null(t.reply.error);
		keys = t.m->keys;
		offer(&t, "RTP/SAVP", CRYPTO "1 " L80 " " KA "|1:1;" KB "|2:1;" KC "|3:1\r\n",
			"RTP/AVP", NULL);
		t.m->calls = 0;
		t.m->fail_at = at;
		talk_answer(&t, "a", "b", talk_body(&t, B, 5000, "RTP/AVP", ""));
		if (t.reply.error)
			assert_int_equal(t.m->keys, keys);
		else
			assert_int_equal(t.m->keys, keys + 2);
		t.m->fail_at = 0;
		talk_end(&t);
	}
}

/* A script once allowed a weak suite by name. A re-INVITE from either side without that flag does
 * not end the call. */
static void what_is_in_force_stays_good(void **state)
{
	const struct ng_sdes weak = {.only = BIT(NULL_80), .flags = NG_SDES_UNENCRYPTED_SRTCP};
	const char *line = CRYPTO "1 " N80 " " KA " UNENCRYPTED_SRTCP\r\n";
	struct ng_request r;
	struct talk t;
	struct sdes s;

	(void)state;
	talk_start(&t);
	policy(&t, &strong);
	offer(&t, "RTP/AVP", "", "RTP/SAVP", &weak);
	talk_answer(&t, "a", "b", talk_body(&t, B, 5000, "RTP/SAVP", line));
	assert_null(t.reply.error);
	r = talk_request("b", "a", talk_body(&t, B, 5000, "RTP/SAVP", line));
	r.transport = STR("RTP/AVP");
	talk_send(&t, &r, false);
	assert_null(t.reply.error);
	talk_answer(&t, "b", "a", talk_body(&t, A, 4000, "RTP/AVP", ""));
	assert_null(t.reply.error);
	assert_string_equal(talk_lines(&t, 0), "1 " N80);
	r = talk_request("a", "b", talk_body(&t, A, 4000, "RTP/AVP", ""));
	r.transport = STR("RTP/SAVP");
	talk_send(&t, &r, false);
	assert_null(t.reply.error);
	assert_true(talk_line(&t, 0, 0, &s));
	assert_int_equal(s.master.suite, SUITE_NULL_80);
	assert_true(s.unencrypted_srtcp);
	assert_true(talk_line(&t, 0, 1, &s)); /* and the strong suites, too */
	talk_end(&t);
	talk_start(&t); /* never allowed before: refused */
	policy(&t, &strong);
	offer(&t, "RTP/SAVP", line, "RTP/AVP", NULL);
	assert_non_null(t.reply.error);
	talk_end(&t);
}

struct marks_known {
	char text[16][64];
	unsigned n;
};

static void hear(void *arg, const struct call_key_notice *n)
{
	struct marks_known *told = arg;

	assert_true(told->n < ARRAY_LEN(told->text));
	snprintf(told->text[told->n++], sizeof(told->text[0]), STR_FMT " " STR_FMT " %u %s %s %llu",
		STR_ARG(n->call_id), STR_ARG(n->tag), (unsigned)n->media,
		n->ours ? "ours" : "theirs", n->expired ? "over" : "nearly",
		(unsigned long long)n->lifetime);
}

static struct media_key_usage *usage(struct talk *t, uint32_t slot)
{
	return &t->m->usage[slot / 2];
}

static void a_key_that_nears_its_end_is_told_once(void **state)
{
	const struct media_ctx_cfg *c;
	struct marks_known told = {0};
	struct talk t;

	(void)state;
	talk_start(&t);
	calls_on_key_life(t.c, hear, &told);
	offer(&t, "RTP/SAVP", CRYPTO "1 " L80 " " KA "|2^20|1:1;" KB "|2:1\r\n", "RTP/AVP", NULL);
	talk_answer(&t, "a", "b", talk_body(&t, B, 5000, "RTP/AVP", ""));
	assert_null(t.reply.error);
	c = mock_ctx(t.m, t.sdp->media[0].port);
	calls_tick(t.c, t.now);
	assert_int_equal(told.n, 0);
	usage(&t, c->rx.key[0].slot)->warned = true;
	for (int i = 0; i < 3; i++)
		calls_tick(t.c, t.now);
	assert_int_equal(told.n, 1);
	assert_string_equal(told.text[0], "call a 1 theirs nearly 1048576");
	usage(&t, c->rx.key[1].slot)->warned = usage(&t, c->tx.key[0].slot)->expired = true;
	calls_tick(t.c, t.now);
	calls_tick(t.c, t.now);
	assert_int_equal(told.n, 3);
	assert_string_equal(told.text[1], "call a 1 theirs nearly 0");
	assert_string_equal(told.text[2], "call a 1 ours over 0");
	/* The second key stays and was already reported; the new one was not. */
	offer(&t, "RTP/SAVP", CRYPTO "1 " L80 " " KB "|2:1;" KC "|3:1\r\n", "RTP/AVP", NULL);
	talk_answer(&t, "a", "b", talk_body(&t, B, 5000, "RTP/AVP", ""));
	c = mock_ctx(t.m, t.sdp->media[0].port);
	calls_tick(t.c, t.now);
	assert_int_equal(told.n, 3);
	usage(&t, c->rx.key[1].slot)->warned = true;
	calls_tick(t.c, t.now);
	assert_int_equal(told.n, 4);
	talk_end(&t);
}

/* A key derivation rate belongs to its sender. Ours copies it, so that both readings of the RFC
 * (declared, negotiated) fit. */
static void kdr_goes_to_both_keys(void **state)
{
	const struct media_ctx_cfg *c;
	struct talk t;
	struct sdes s;

	(void)state;
	talk_start(&t);
	offer(&t, "RTP/SAVP", CRYPTO "1 " L80 " " KA " KDR=10\r\n", "RTP/AVP", NULL);
	talk_answer(&t, "a", "b", talk_body(&t, B, 5000, "RTP/AVP", ""));
	assert_null(t.reply.error);
	assert_true(talk_line(&t, 0, 0, &s));
	assert_int_equal(s.master.kdr, 10);
	c = mock_ctx(t.m, t.sdp->media[0].port);
	assert_int_equal(mock_master(t.m, c->rx.key[0].slot)->kdr, 10);
	assert_int_equal(mock_master(t.m, c->tx.key[0].slot)->kdr, 10);
	talk_end(&t);
}

static void query_and_counters_name_suites_and_no_keys(void **state)
{
	struct calls_counters n;
	struct ng_request r;
	struct ngval *tree;
	struct talk t;
	struct sbuf b;

	(void)state;
	talk_start(&t);
	t.policy.sdes.params = NG_SDES_UNENCRYPTED_SRTCP;
	policy(&t, &t.policy.sdes);
	offer(&t, "RTP/SAVP",
		CRYPTO "1 " L80 " " KA "|2^20|1:2;" KB "|2^20|2:2 UNENCRYPTED_SRTCP KDR=8\r\n",
		"RTP/AVP", NULL);
	calls_counters(t.c, &n);
	assert_int_equal(n.suite[SUITE_AES_CM_128_80] + n.suite[SUITE_PLAIN], 0);
	talk_answer(&t, "a", "b", talk_body(&t, B, 5000, "RTP/AVP", ""));
	assert_null(t.reply.error);
	calls_counters(t.c, &n);
	assert_int_equal(n.suite[SUITE_AES_CM_128_80], 1);
	assert_int_equal(n.suite[SUITE_PLAIN], 1);
	usage(&t, mock_ctx(t.m, t.sdp->media[0].port)->rx.key[0].slot)->rtp = 77;
	r = talk_request("", "", "");
	talk_pool(&t);
	tree = ngval_dict(t.p);
	calls_query(t.c, t.p, &r, t.now, &t.reply, tree);
	sbuf_init(&b, 0);
	json_write(&b, tree, false);
	sbuf_put(&b, "", 1);
	for (size_t i = 0; i < 2; i++) {
		static const char *const want[] = {
			"\"crypto suite\":\"" L80
			"\",\"crypto parameters\":[\"UNENCRYPTED_SRTCP\",\"KDR=8\"],"
			"\"crypto keys\":2,\"MKI length\":2,\"crypto lifetime\":1048576,\"crypto lifetime used\":77,",
			"\"crypto suite\":\"" L80 "\",\"last packet\""};

		if (!strstr(b.p, want[i]))
			fail_msg("%s", b.p);
	}
	assert_non_null(strstr(b.p, "\"protocol\":\"RTP/SAVP\",\"codec\":\"PCMU/8000\","));
	assert_null(strstr(b.p, "aaaa"));
	assert_null(strstr(b.p, "bbbb"));
	sbuf_fini(&b);
	calls_delete(t.c, t.p, &r, t.now, &t.reply, ngval_dict(t.p));
	calls_tick(t.c, t.now + 31 * NS_PER_SEC);
	calls_counters(t.c, &n);
	assert_int_equal(n.suite[SUITE_AES_CM_128_80] + n.suite[SUITE_PLAIN] + n.current, 0);
	talk_end(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_suite_meets_every_suite),
		cmocka_unit_test(offers_name_what_the_policy_lists),
		cmocka_unit_test(a_refusal_says_which_line_and_why),
		cmocka_unit_test(negotiated_parameters_are_answered_as_offered),
		cmocka_unit_test(an_answer_cannot_drop_or_add_parameters),
		cmocka_unit_test(the_strongest_common_suite_is_chosen),
		cmocka_unit_test(keys_change_within_a_call),
		cmocka_unit_test(slots_that_run_out_change_nothing),
		cmocka_unit_test(what_is_in_force_stays_good),
		cmocka_unit_test(a_key_that_nears_its_end_is_told_once),
		cmocka_unit_test(kdr_goes_to_both_keys),
		cmocka_unit_test(query_and_counters_name_suites_and_no_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
