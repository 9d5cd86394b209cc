/* SPDX-License-Identifier: GPL-2.0-or-later */
/* SDP under passthrough: each terminal gets the other's crypto lines, unless that cannot work. Also
 * later re-encryption of such media, and a restart of the daemon. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#include "call/call.h"
#include "call/unsaved.h"
#include "persist/restore.h"
#include "persist/save.h"
#include "call_talk.h"

#define A       "198.51.100.1"
#define B       "198.51.100.2"
#define LINE_A  "1 AES_CM_128_HMAC_SHA1_80 " K80A "|2^31|7:4 UNENCRYPTED_SRTCP"
#define LINE_A2 "2 AES_CM_128_HMAC_SHA1_32 " K80A
#define LINE_B2 "2 AES_CM_128_HMAC_SHA1_32 " K80B
#define LINE_B  "1 AES_CM_128_HMAC_SHA1_80 " K80B
#define LINE_F8 "9 F8_128_HMAC_SHA1_80 " K80A
#define CRYPTO  "a=crypto:"

static void say(struct talk *t, const char *to, const char *attrs, bool pass, bool is_answer)
{
	struct ng_request r = talk_request("a", to,
		talk_body(t, is_answer ? B : A, is_answer ? 5000 : 4000,
			*attrs ? "RTP/SAVP" : "RTP/AVP", attrs));

	r.flags = pass ? 1ull << NG_FLAG_PASSTHROUGH : 0;
	t->policy.sdes.params = NG_SDES_UNENCRYPTED_SRTCP;
	calls_set_policy(t->c, &t->policy);
	talk_send(t, &r, is_answer);
}

static void offer(struct talk *t, const char *attrs, bool pass)
{
	say(t, t->m->ports ? "b" : "", attrs, pass, false);
	assert_null(t->reply.error);
}

static void answer(struct talk *t, const char *attrs)
{
	say(t, "b", attrs, false, true);
	assert_null(t->reply.error);
}

/* The crypto lines of the last reply, unchanged. */
static const char *raw(struct talk *t)
{
	struct str text = STR("");

	for (const struct sdp_line *l = sdp_attr(t->sdp->media[0].lines, STR("crypto")); l;
		l = sdp_attr(l->next, STR("crypto")))
		text = pool_printf(t->p, STR_FMT "%s" STR_FMT, STR_ARG(text), text.len ? "\n" : "",
			STR_ARG(l->arg));
	return text.s;
}

static bool says(const struct talk *t, const char *what)
{
	return t->reply.warning.len &&
		memmem(t->reply.warning.s, t->reply.warning.len, what, strlen(what));
}

static uint64_t passed(const struct talk *t)
{
	struct calls_counters n;

	calls_counters(t->c, &n);
	return n.passed;
}

static const char both[] = CRYPTO LINE_A "\r\n" CRYPTO LINE_F8 "\r\n" CRYPTO LINE_A2 "\r\n";
static const char theirs[] = CRYPTO LINE_B2 "\r\n";

/* Ports of the last call: A's side and B's. */
static uint16_t call(struct talk *t, uint16_t *to_b)
{
	offer(t, both, true);
	assert_string_equal(raw(t), LINE_A "\n" LINE_A2);
	*to_b = t->sdp->media[0].port;
	answer(t, theirs);
	assert_string_equal(raw(t), LINE_B2);
	assert_int_equal(t->reply.warning.len, 0);
	return t->sdp->media[0].port;
}

static void terminals_get_each_others_lines(void **state)
{
	const struct media_ctx_cfg *a, *b;
	uint16_t pa, pb;
	struct talk t;

	(void)state;
	talk_start(&t);
	pa = call(&t, &pb);
	a = mock_ctx(t.m, pa);
	b = mock_ctx(t.m, pb);
	assert_true(a->rx.pass && a->tx.pass && b->rx.pass && b->tx.pass);
	assert_int_equal(a->rx.suite, SUITE_AES_CM_128_32);
	assert_int_equal(b->rx.suite, SUITE_AES_CM_128_32);
	assert_int_equal(a->tx.suite, SUITE_PLAIN);
	assert_int_equal(b->tx.suite, SUITE_PLAIN);
	assert_memory_not_equal(mock_master(t.m, a->rx.key[0].slot)->key,
		mock_master(t.m, b->rx.key[0].slot)->key, 16);
	assert_int_equal(passed(&t), 2);
	/* Repeating the request changes nothing. */
	offer(&t, both, true);
	answer(&t, theirs);
	assert_int_equal(t.m->rx_new + t.m->tx_new, 0);
	talk_end(&t);
}

static void what_cannot_pass_is_re_encrypted_with_a_warning(void **state)
{
	static const struct {
		const char *attrs, *transport;
		struct ng_sdes sdes;
		uint64_t flags;
		const char *warning, *why;
	} T[] = {
		{both, "RTP/AVP", {0}, 0, "one side speaks RTP", "from SRTP to RTP"},
		{"", "RTP/SAVP", {0}, 0, "one side speaks RTP", "from RTP to SRTP"},
		{both, "", {.only = 1u << SUITE_AEAD_AES_256_GCM}, 0, "no crypto suite",
			"another suite is wanted on the other side"},
		{both, "RTP/SAVPF", {0}, 1ull << NG_FLAG_RECRYPT, NULL, "re-encryption is wanted"},
		{"", "RTP/AVP", {0}, 0, NULL, "RTP to RTP: there is nothing to be said"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct ng_request r;
		struct talk t;

		talk_start(&t);
		t.policy.sdes.params = NG_SDES_UNENCRYPTED_SRTCP;
		calls_set_policy(t.c, &t.policy);
		r = talk_request("a", "",
			talk_body(&t, A, 4000, *T[i].attrs ? "RTP/SAVP" : "RTP/AVP", T[i].attrs));
		r.transport = str_from(T[i].transport);
		r.sdes = T[i].sdes;
		r.flags = 1ull << NG_FLAG_PASSTHROUGH | T[i].flags;
		talk_send(&t, &r, false);
		if (t.reply.error)
			fail_msg("%s: %s", T[i].why, t.reply.error);
		if (T[i].warning ? !says(&t, T[i].warning) : t.reply.warning.len != 0)
			fail_msg("%s: " STR_FMT, T[i].why, STR_ARG(t.reply.warning));
		if (strstr(raw(&t), "inline:d0RmdmcmVCspeEc3QGZiNWpVLFJhQX1cfHAwJSoj"))
			fail_msg("%s: a key was handed on", T[i].why);
		talk_end(&t);
	}
}

/* If suites are limited, only their lines are passed on. */
static void flags_choose_among_the_lines(void **state)
{
	struct talk t;
	struct ng_request r;

	(void)state;
	talk_start(&t);
	r = talk_request(
		"a", "", talk_body(&t, A, 4000, "RTP/SAVP", CRYPTO C80A "\r\n" CRYPTO C32A "\r\n"));
	r.flags = 1ull << NG_FLAG_PASSTHROUGH;
	r.sdes.no = 1u << SUITE_AES_CM_128_80;
	talk_send(&t, &r, false);
	assert_string_equal(raw(&t), C32A);
	talk_end(&t);
}

static void an_answer_must_fit_the_offer(void **state)
{
	static const char *const wrong[] = {CRYPTO "3 AES_CM_128_HMAC_SHA1_80 " K80B "\r\n",
		CRYPTO "2 AES_CM_128_HMAC_SHA1_80 " K80B "\r\n", CRYPTO LINE_F8 "\r\n", ""};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		struct talk t;

		talk_start(&t);
		offer(&t, both, true);
		say(&t, "b", wrong[i], false, true);
		assert_non_null(t.reply.error);
		assert_int_equal(passed(&t), 0);
		talk_end(&t);
	}
}

static void the_next_offer_without_it_ends_it_and_indexes_go_on(void **state)
{
	const struct media_ctx_cfg *a, *b;
	uint16_t pa, pb;
	struct sdes ours;
	struct talk t;
	char line[256];

	(void)state;
	talk_start(&t);
	pa = call(&t, &pb);
	offer(&t, both, false);
	assert_null(strstr(raw(&t), K80A));
	assert_true(talk_line(&t, 0, 0, &ours));
	snprintf(line, sizeof(line), CRYPTO "%u %s " K80B "\r\n", (unsigned)ours.tag,
		srtp_suite_get(ours.master.suite)->name);
	assert_int_equal(passed(&t), 2); /* nothing changes before the answer */
	answer(&t, line);
	a = mock_ctx(t.m, pa);
	b = mock_ctx(t.m, pb);
	assert_false(a->rx.pass || a->tx.pass || b->rx.pass || b->tx.pass);
	assert_int_equal(a->tx.suite, a->rx.suite);
	assert_memory_equal(mock_master(t.m, b->tx.key[0].slot)->key, ours.master.key, 16);
	assert_int_equal(passed(&t), 0);
	/* A's line changed, so its index restarts. Both sides get fresh keys. */
	assert_true(b->tx_new && a->tx_new);
	talk_end(&t);
}

/* The key stays, so no direction loses its index. */
static void indexes_go_on_where_keys_stay(void **state)
{
	static const char a_only[] = CRYPTO LINE_A2 "\r\n";
	uint16_t pa, pb;
	struct sdes ours;
	struct talk t;
	char line[256];

	(void)state;
	talk_start(&t);
	offer(&t, a_only, false);
	pb = t.sdp->media[0].port;
	for (uint32_t i = 0; talk_line(&t, 0, i, &ours); i++)
		if (ours.master.suite == SUITE_AES_CM_128_32)
			snprintf(line, sizeof(line),
				CRYPTO "%u AES_CM_128_HMAC_SHA1_32 " K80B "\r\n",
				(unsigned)ours.tag);
	answer(&t, line);
	pa = t.sdp->media[0].port;
	for (int i = 0; i < 4; i++) {
		bool pass = i % 2 == 0;

		offer(&t, a_only, pass);
		answer(&t, pass ? theirs : line);
		assert_int_equal(mock_ctx(t.m, pa)->rx.pass, pass);
		assert_false(mock_ctx(t.m, pa)->rx_new);
		assert_false(mock_ctx(t.m, pb)->rx_new);
		assert_true(mock_ctx(t.m, pb)->tx_new);
	}
	talk_end(&t);
}

static void wraps(struct talk *t, uint16_t port, uint16_t not )
{
	const struct media_stream_cfg *first = t->m->stream_cfg;

	t->m->roc[mock_stream(t->m, port) - first] = 1;
	t->m->roc[mock_stream(t->m, not ) - first] = 0;
}

static void a_key_in_mid_stream_is_not_handed_on(void **state)
{
	static const char a_only[] = CRYPTO LINE_A2 "\r\n";
	uint16_t pa, pb;
	struct sdes ours;
	struct talk t;
	char line[256] = "";

	(void)state;
	talk_start(&t);
	offer(&t, a_only, false);
	pb = t.sdp->media[0].port;
	assert_true(talk_line(&t, 0, 0, &ours));
	snprintf(line, sizeof(line), CRYPTO LINE_B2 "\r\n");
	for (uint32_t i = 0; talk_line(&t, 0, i, &ours); i++)
		if (ours.master.suite == SUITE_AES_CM_128_32)
			snprintf(line, sizeof(line),
				CRYPTO "%u AES_CM_128_HMAC_SHA1_32 " K80B "\r\n",
				(unsigned)ours.tag);
	answer(&t, line);
	pa = t.sdp->media[0].port;
	/* A's packets have wrapped. */
	wraps(&t, pa, pb);
	offer(&t, a_only, true);
	assert_true(says(&t, "the key is in use"));
	assert_null(strstr(raw(&t), K80A));
	/* With a new key A's line passes. B's does not, because its packets have wrapped. */
	wraps(&t, pb, pa);
	offer(&t,
		CRYPTO
		"2 AES_CM_128_HMAC_SHA1_32 inline:WVNfX19zZW1jdGwgKCkgewkyMjA7fQp9CnVubGVz\r\n",
		true);
	assert_int_equal(t.reply.warning.len, 0);
	answer(&t, theirs);
	assert_true(says(&t, "the answerer's key is in use"));
	assert_null(strstr(raw(&t), K80B));
	assert_true(mock_ctx(t.m, pa)->rx.pass && mock_ctx(t.m, pb)->tx.pass);
	assert_false(mock_ctx(t.m, pb)->rx.pass || mock_ctx(t.m, pa)->tx.pass);
	assert_int_equal(mock_ctx(t.m, pa)->tx.suite, SUITE_AES_CM_128_32);
	assert_int_equal(passed(&t), 1);
	talk_end(&t);
}

/* A passed-through offer does not affect a later one that has two m-lines. */
static void an_offer_in_two_m_lines_is_ours_again(void **state)
{
	struct ng_request r;
	struct sdes ours;
	struct talk t;
	char attrs[256];

	(void)state;
	talk_start(&t);
	offer(&t, both, true);
	r = talk_request("a", "b", talk_body(&t, A, 4000, "RTP/SAVP", both));
	r.osrtp = NG_OSRTP_OFFER_LEGACY;
	talk_send(&t, &r, false);
	assert_null(t.reply.error);
	assert_int_equal(t.sdp->media_count, 2);
	assert_true(talk_line(&t, 0, 0, &ours));
	snprintf(attrs, sizeof(attrs), CRYPTO "%u %s " K80B "\r\nm=audio 0 RTP/AVP 0\r\n",
		(unsigned)ours.tag, srtp_suite_get(ours.master.suite)->name);
	answer(&t, attrs);
	assert_int_equal(passed(&t), 0);
	talk_end(&t);
}

static void it_outlives_a_restart(void **state)
{
	struct save_item item;
	struct sbuf whole;
	const char *why = "";
	uint16_t pa, pb;
	struct talk t;

	(void)state;
	talk_start(&t);
	calls_save_start(t.c);
	pa = call(&t, &pb);
	sbuf_init(&whole, 0);
	assert_true(calls_save_next(t.c, t.now, &whole, &item));
	assert_memory_equal(whole.p, "d1:vi3e", 7);
	calls_destroy(t.c);
	assert_int_equal(calls_create(&t.c, &t.policy, &t.m->relay), 0);
	talk_pool(&t);
	assert_int_equal(calls_restore(t.c, t.p, sbuf_view(&whole), STR_NONE, t.now, &why), 0);
	assert_true(mock_ctx(t.m, pa)->rx.pass && mock_ctx(t.m, pa)->tx.pass);
	assert_true(mock_ctx(t.m, pb)->rx.pass && mock_ctx(t.m, pb)->tx.pass);
	assert_int_equal(mock_ctx(t.m, pa)->rx.suite, SUITE_AES_CM_128_32);
	assert_int_equal(passed(&t), 2);
	sbuf_fini(&whole);
	talk_end(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(terminals_get_each_others_lines),
		cmocka_unit_test(what_cannot_pass_is_re_encrypted_with_a_warning),
		cmocka_unit_test(flags_choose_among_the_lines),
		cmocka_unit_test(an_answer_must_fit_the_offer),
		cmocka_unit_test(the_next_offer_without_it_ends_it_and_indexes_go_on),
		cmocka_unit_test(indexes_go_on_where_keys_stay),
		cmocka_unit_test(a_key_in_mid_stream_is_not_handed_on),
		cmocka_unit_test(an_offer_in_two_m_lines_is_ours_again),
		cmocka_unit_test(it_outlives_a_restart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
