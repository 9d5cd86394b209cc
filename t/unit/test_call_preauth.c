/* SPDX-License-Identifier: GPL-2.0-or-later */
/* SRTP+ in offers and answers: the session parameter -xcipher-preauth, the option --preauth and the
 * key preauth of ng. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "call/call.h"
#include "save_talk.h"

#define A    "198.51.100.1"
#define B    "198.51.100.2"
#define C80B "1 AES_CM_128_HMAC_SHA1_80 " K80C
#define PLUS " -xcipher-preauth="
#define AES  PLUS "sequence-aes"
#define HDR  PLUS "header-siphash"

enum { ID_AES = 1 + PREAUTH_SEQUENCE_AES, ID_HDR = 1 + PREAUTH_HEADER_SIPHASH };

static void start(struct talk *t, enum preauth_use use, enum preauth_scheme scheme)
{
	talk_start(t);
	calls_destroy(t->c);
	t->policy.sdes.preauth = (struct preauth_policy){.use = use, .scheme = scheme};
	assert_int_equal(calls_create(&t->c, &t->policy, &t->m->relay), 0);
}

/* The same words as in ng. */
static void say(struct talk *t, bool is_answer, const char *line, const char *use, uint64_t flags)
{
	const char *from = is_answer ? B : A;
	struct ng_request r;

	talk_pool(t);
	r = talk_request("a", is_answer || t->now > 1000 * NS_PER_SEC ? "b" : "",
		talk_body(t, from, is_answer ? 5000 : 4000, line ? "RTP/SAVP" : "RTP/AVP",
			line ? pool_printf(t->p, "a=crypto:%s\r\n", line).s : ""));
	r.transport = is_answer ? STR_NONE : STR("RTP/SAVP");
	r.flags = flags;
	if (use && strcmp(use, "off") == 0)
		r.preauth = NG_PREAUTH_OFF;
	else if (use && strcmp(use, "accept") == 0)
		r.preauth = NG_PREAUTH_ACCEPT;
	else if (use)
		r.preauth = NG_PREAUTH_OFFER;
	r.preauth_scheme = use && strcmp(use, "header") == 0 ? ID_HDR : 0;
	talk_send(t, &r, is_answer);
}

static void offer(struct talk *t, const char *line, const char *use)
{
	say(t, false, line, use, 0);
}

static void answer(struct talk *t, const char *line, const char *use)
{
	say(t, true, line, use, 0);
	t->now += NS_PER_SEC;
}

/* The parameter of the first line that was written; 0: none. */
static uint8_t written(struct talk *t)
{
	struct sdes s;

	assert_null(t->reply.error);
	assert_true(talk_line(t, 0, 0, &s));
	return s.preauth;
}

/* SRTP+ parameters of this terminal's packets, by the port toward it. */
static void has(struct talk *t, uint32_t commit, uint8_t rx, uint8_t tx)
{
	const struct media_ctx_cfg *c = &t->m->ctx_cfg[commit];

	assert_true(t->m->ctx_set[commit]);
	assert_int_equal(c->rx.preauth, rx);
	assert_int_equal(c->tx.preauth, tx);
	assert_int_equal(c->rx.preauth_slot != 0, rx != 0);
	assert_int_equal(c->tx.preauth_slot != 0, tx != 0);
	if (rx)
		assert_int_equal(t->m->preauth[c->rx.preauth_slot / 2], rx);
	if (tx) {
		assert_int_equal(t->m->preauth[c->tx.preauth_slot / 2], tx);
		assert_memory_equal(&t->m->master[c->tx.preauth_slot / 2].key,
			&t->m->master[c->tx.key[0].slot / 2].key, SUITE_MAX_KEY_LEN);
	}
}

/* Contexts of the mock by side. */
static void both(struct talk *t, uint8_t a, uint8_t b)
{
	uint32_t at = 0, n[2], found = 0;

	for (; at < MOCK_MAX && found < 2; at++)
		if (t->m->ctx_set[at])
			n[found++] = at;
	assert_int_equal(found, 2);
	has(t, n[0], a, a);
	has(t, n[1], b, b);
}

/* --- The SDP ---------------------------------------------------------------------------------- */

static void the_default_offers_nothing_and_accepts(void **state)
{
	struct talk t;

	(void)state;
	start(&t, PREAUTH_USE_ACCEPT, PREAUTH_SEQUENCE_AES);
	offer(&t, C80A, NULL);
	assert_int_equal(written(&t), 0);
	answer(&t, C80B, NULL);
	assert_int_equal(written(&t), 0);
	both(&t, 0, 0);
	talk_end(&t);

	start(&t, PREAUTH_USE_ACCEPT, PREAUTH_SEQUENCE_AES);
	offer(&t, C80A HDR, NULL);
	assert_int_equal(written(&t), 0); /* it concerns the offerer's leg only */
	answer(&t, C80B, NULL);
	assert_int_equal(written(&t), ID_HDR);
	both(&t, ID_HDR, 0);
	talk_end(&t);
}

static void off_neither_offers_nor_accepts(void **state)
{
	struct talk t;

	(void)state;
	start(&t, PREAUTH_USE_OFF, PREAUTH_SEQUENCE_AES);
	offer(&t, C80A AES, NULL);
	assert_int_equal(written(&t), 0);
	answer(&t, C80B, NULL);
	assert_int_equal(written(&t), 0);
	both(&t, 0, 0);
	talk_end(&t);

	start(&t, PREAUTH_USE_OFFER, PREAUTH_SEQUENCE_AES);
	offer(&t, C80A AES, "off");
	assert_int_equal(written(&t), 0);
	answer(&t, C80B, "off");
	assert_int_equal(written(&t), 0);
	talk_end(&t);
}

static void an_offer_is_accepted_or_declined(void **state)
{
	struct talk t;

	(void)state;
	start(&t, PREAUTH_USE_OFFER, PREAUTH_SEQUENCE_AES);
	offer(&t, C80A, NULL);
	assert_int_equal(written(&t), ID_AES);
	answer(&t, C80B AES, NULL);
	assert_int_equal(written(&t), 0); /* the offerer did not speak of it */
	both(&t, 0, ID_AES);
	talk_end(&t);

	start(&t, PREAUTH_USE_OFF, PREAUTH_SEQUENCE_AES);
	offer(&t, C80A, "header"); /* the request decides */
	assert_int_equal(written(&t), ID_HDR);
	answer(&t, C80B, NULL); /* without it: no tag */
	both(&t, 0, 0);
	talk_end(&t);
}

static void an_answer_with_another_scheme_is_refused(void **state)
{
	static const char *const wrong[] = {
		C80B HDR, C80B PLUS "unheard-of", C80B PLUS, C80B PLUS "chain/8/16/128"};
	struct talk t;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		start(&t, PREAUTH_USE_OFFER, PREAUTH_SEQUENCE_AES);
		offer(&t, C80A, NULL);
		answer(&t, wrong[i], NULL);
		assert_non_null(t.reply.error);
		talk_end(&t);
	}
	start(&t, PREAUTH_USE_ACCEPT, PREAUTH_SEQUENCE_AES);
	offer(&t, C80A, NULL);
	answer(&t, C80B AES, NULL); /* nothing was offered */
	assert_non_null(t.reply.error);
	talk_end(&t);
}

static void an_unknown_scheme_in_an_offer_is_ignored(void **state)
{
	struct talk t;

	(void)state;
	start(&t, PREAUTH_USE_OFFER, PREAUTH_SEQUENCE_AES);
	offer(&t, C80A PLUS "unheard-of", NULL);
	assert_null(t.reply.error);
	answer(&t, C80B, NULL);
	assert_int_equal(written(&t), 0);
	both(&t, 0, 0);
	talk_end(&t);
}

/* Parameters are part of the scheme's name. Those that we do not have are declined, as an unknown
 * scheme is, and the call has SRTP. */
static void parameters_of_chain_are_agreed_on(void **state)
{
	static const struct {
		const char *asked, *answered;
	} T[] = {{"chain/8/16/128", "chain/8/16/128"}, {"chain/4/32/512", "chain"},
		{"chain/32/64/512", NULL}, {"chain/16/8/64", NULL}, {"chain/8/16", NULL},
		{"chain/8/16/128/1", NULL}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		enum preauth_scheme s = PREAUTH_CHAIN;
		char line[200];
		struct talk t;
		uint8_t want;

		start(&t, PREAUTH_USE_ACCEPT, PREAUTH_SEQUENCE_AES);
		snprintf(line, sizeof(line), C80A PLUS "%s", T[i].asked);
		offer(&t, line, NULL);
		assert_int_equal(written(&t), 0);
		answer(&t, C80B, NULL);
		want = T[i].answered && preauth_find(&s, str_from(T[i].answered)) ? (uint8_t)(1 + s)
										  : 0;
		assert_int_equal(written(&t), want);
		assert_true(!want == !strstr(t.reply.sdp.s, "preauth"));
		both(&t, want, 0);
		talk_end(&t);
	}
}

static void keys_that_cannot_have_it_are_offered_without(void **state)
{
	struct talk t;

	(void)state;
	start(&t, PREAUTH_USE_OFFER, PREAUTH_CHAIN);
	t.policy.sdes.params = NG_SDES_UNENCRYPTED_SRTP;
	calls_destroy(t.c);
	assert_int_equal(calls_create(&t.c, &t.policy, &t.m->relay), 0);
	offer(&t, C80A " UNENCRYPTED_SRTP" PLUS "chain", NULL);
	assert_int_equal(written(&t), 1 + PREAUTH_CHAIN);
	answer(&t, C80B PLUS "chain", NULL);
	assert_int_equal(written(&t), 0); /* the block would be in clear */
	both(&t, 0, 1 + PREAUTH_CHAIN);
	talk_end(&t);
}

/* --- Later requests --------------------------------------------------------------------------- */

static void a_re_invite_keeps_it_and_changes_nothing(void **state)
{
	struct talk t;

	(void)state;
	start(&t, PREAUTH_USE_ACCEPT, PREAUTH_SEQUENCE_AES);
	offer(&t, C80A AES, "header");
	answer(&t, C80B HDR, NULL);
	both(&t, ID_AES, ID_HDR);
	for (int i = 0; i < 3; i++) { /* a request without the key: the scheme in force stays */
		offer(&t, C80A AES, NULL);
		assert_int_equal(written(&t), ID_HDR);
		answer(&t, C80B HDR, NULL);
		assert_int_equal(written(&t), ID_AES);
		assert_int_equal(t.m->rx_new + t.m->tx_new, 0);
		both(&t, ID_AES, ID_HDR);
	}
	talk_end(&t);
}

static void a_re_invite_can_end_and_begin_it_under_the_same_keys(void **state)
{
	struct talk t;

	(void)state;
	start(&t, PREAUTH_USE_OFFER, PREAUTH_SEQUENCE_AES);
	offer(&t, C80A AES, NULL);
	answer(&t, C80B AES, NULL);
	both(&t, ID_AES, ID_AES);
	offer(&t, C80A, NULL); /* moved to terminals that do not know it */
	answer(&t, C80B, NULL);
	both(&t, 0, 0);
	assert_int_equal(t.m->rx_new + t.m->tx_new, 0);
	offer(&t, C80A AES, NULL);
	assert_int_equal(written(&t), ID_AES);
	answer(&t, C80B AES, NULL);
	both(&t, ID_AES, ID_AES);
	assert_int_equal(t.m->rx_new + t.m->tx_new, 0); /* packet indexes continue */
	offer(&t, C80A AES, "off");
	assert_int_equal(written(&t), 0);
	answer(&t, C80B, "off");
	both(&t, 0, 0);
	talk_end(&t);
}

static void pass_through_hands_lines_on_without_it(void **state)
{
	struct talk t;

	(void)state;
	start(&t, PREAUTH_USE_OFFER, PREAUTH_SEQUENCE_AES);
	say(&t, false, C80A AES, NULL, 1ull << NG_FLAG_PASSTHROUGH);
	assert_int_equal(written(&t), 0);
	assert_true(strstr(t.reply.sdp.s, "a=crypto:" C80A "\r\n"));
	say(&t, true, C80B, NULL, 0);
	assert_int_equal(written(&t), 0);
	both(&t, 0, 0);
	talk_end(&t);
}

static void a_saved_call_keeps_it(void **state)
{
	enum preauth_scheme x = PREAUTH_CHAIN;
	struct saved s;
	struct talk t;
	const char *why = NULL;

	(void)state;
	assert_true(preauth_find(&x, STR("chain/8/16/128")));
	start(&t, PREAUTH_USE_ACCEPT, PREAUTH_SEQUENCE_AES);
	calls_save_start(t.c);
	offer(&t, C80A PLUS "chain/8/16/128", "header");
	answer(&t, C80B HDR, NULL);
	save(&t, &s);
	reborn(&t);
	calls_save_start(t.c);
	assert_int_equal(restore(&t, sbuf_view(&s.whole), STR_NONE, &why), 0);
	both(&t, (uint8_t)(1 + x), ID_HDR);
	offer(&t, C80A PLUS "chain/8/16/128", NULL);
	assert_int_equal(written(&t), ID_HDR);
	answer(&t, C80B HDR, NULL);
	assert_int_equal(written(&t), 1 + x);
	both(&t, (uint8_t)(1 + x), ID_HDR);
	sbuf_fini(&s.whole);
	sbuf_fini(&s.state);
	talk_end(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_default_offers_nothing_and_accepts),
		cmocka_unit_test(off_neither_offers_nor_accepts),
		cmocka_unit_test(an_offer_is_accepted_or_declined),
		cmocka_unit_test(an_answer_with_another_scheme_is_refused),
		cmocka_unit_test(an_unknown_scheme_in_an_offer_is_ignored),
		cmocka_unit_test(parameters_of_chain_are_agreed_on),
		cmocka_unit_test(keys_that_cannot_have_it_are_offered_without),
		cmocka_unit_test(a_re_invite_keeps_it_and_changes_nothing),
		cmocka_unit_test(a_re_invite_can_end_and_begin_it_under_the_same_keys),
		cmocka_unit_test(a_saved_call_keeps_it),
		cmocka_unit_test(pass_through_hands_lines_on_without_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
