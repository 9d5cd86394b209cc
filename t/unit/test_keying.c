/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of keyings: each row has each operation, and a whole exchange by each of them gives
 * both legs keys that fit. And a leg that waits for its keys relays nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "call/call_int.h"
#include "call/table.h"
#include "call_talk.h"
#include "call/unsaved.h"
#include "keying/keying.h"

#define BODY(key)                                                                         \
	"v=0\r\no=- 1 1 IN IP4 198.51.100.1\r\ns=-\r\nc=IN IP4 198.51.100.1\r\nt=0 0\r\n" \
	"m=audio 4000 RTP/SAVP 0\r\na=crypto:" key "\r\n"

static void each_row_has_each_operation(void **state)
{
	uint32_t seen = 0;

	(void)state;
	for (uint32_t i = 0; i < KEYING_ROWS; i++) {
		const struct keying_ops *row = keying_row(i);

		assert_true(row->id > KEYING_NONE && row->id < KEYING_COUNT);
		assert_false(seen >> row->id & 1);
		seen |= 1u << row->id;
		assert_true(row->name && *row->name);
		/* From here to the optional ones there are pointers to functions only. */
		for (size_t at = offsetof(struct keying_ops, read_offer);
			at < offsetof(struct keying_ops, keys); at += sizeof(void (*)(void))) {
			void (*op)(void);

			memcpy(&op, (const char *)row + at, sizeof(op));
			if (!op)
				fail_msg("%s lacks the operation at %zu", row->name, at);
		}
		/* SDES and MIKEY have keys that may return, DTLS and ZRTP have keys in packets. */
		assert_int_equal(
			row->keys != NULL, row->id == KEYING_SDES || row->id == KEYING_MIKEY);
		assert_int_equal(row->association != NULL, row->id == KEYING_DTLS);
		assert_int_equal(row->exchange != NULL, row->id == KEYING_ZRTP);
		assert_true(!row->keys ||
			(row->keys->ours && row->keys->hold && row->keys->keep &&
				row->keys->is_theirs));
	}
	assert_int_equal(seen, (1u << KEYING_COUNT) - 2);
}

/* --- Exchanges -------------------------------------------------------------------------------- */

struct exchange {
	struct keying_state a, b;
	struct srtp_params a_rx, a_tx, b_rx, b_tx;
	struct keying_lines to_b, to_a;
	struct ng_request r;
	struct sdes_policy policy;
	struct keying_random random;
	uint8_t bytes[2 * KEYING_RANDOM_PER_MEDIA];
	struct pool *p;
	const char *refused; /* what each key is refused for */
};

static const char *refusal(const void *arg, const struct srtp_master *key, bool end_to_end)
{
	const struct exchange *x = arg;

	(void)key;
	(void)end_to_end;
	return x->refused;
}

static struct keying_in in(struct exchange *x)
{
	static const struct keying_host no_dtls;

	return (struct keying_in){.r = &x->r,
		.host = &no_dtls,
		.policy = &x->policy,
		.p = x->p,
		.random = &x->random,
		.refusal = refusal,
		.arg = x};
}

static void start(struct exchange *x)
{
	memset(x, 0, sizeof(*x));
	x->policy = (struct sdes_policy){
		.offer = {SUITE_AES_CM_128_80}, .accept = 1u << SUITE_AES_CM_128_80};
	for (size_t i = 0; i < sizeof(x->bytes); i++)
		x->bytes[i] = (uint8_t)(i * 7 + 1);
	x->random = (struct keying_random){x->bytes, sizeof(x->bytes)};
	assert_int_equal(pool_create(&x->p, 1 << 20), 0);
}

static struct sdp_media *media(struct exchange *x, const char *body)
{
	struct sdp *s = pool_alloc(x->p, sizeof(*s));

	assert_int_equal(sdp_parse(s, x->p, str_from(body), NULL), SDP_OK);
	return &s->media[0];
}

static struct keying_leg leg_a(struct exchange *x)
{
	return (struct keying_leg){.state = &x->a, .rx = &x->a_rx, .tx = &x->a_tx};
}

static struct keying_leg leg_b(struct exchange *x)
{
	return (struct keying_leg){.state = &x->b, .rx = &x->b_rx, .tx = &x->b_tx};
}

/* A offers K80A, B answers K80B. */
static void talk(struct exchange *x)
{
	const struct sdp_media *offer = media(x, BODY("1 AES_CM_128_HMAC_SHA1_80 " K80A));
	const struct sdp_media *answer = media(x, BODY("1 AES_CM_128_HMAC_SHA1_80 " K80B));
	struct keying_offer o = {.from = leg_a(x),
		.to = leg_b(x),
		.wanted = true,
		.media = offer,
		.proto = SDP_RTP_SAVP,
		.lines = &x->to_b};
	struct keying_answer a = {
		.answerer = leg_b(x), .offerer = leg_a(x), .media = answer, .lines = &x->to_a};
	const struct keying_in k = in(x);
	struct keying_error why;

	assert_true(keying_could_accept(&o.from, offer, &k));
	assert_false(keying_was_offered(&x->a));
	assert_true(keying_read_offer(&o.from, offer, UINT32_MAX, &k, &why));
	assert_true(keying_was_offered(&x->a));
	assert_true(keying_is_same_offer(&x->a, NULL, offer));
	assert_false(keying_is_same_offer(&x->a, NULL, answer));
	assert_true(keying_write_offer(&o, &k));
	assert_true(keying_asks(&x->b));
	assert_int_equal(keying_read_answer(&a, &k), KEYING_AGREES);
	x->b_rx = a.rx;
	x->b_tx = a.tx;
	a.prefer = srtp_params_suite(&x->b_rx);
	assert_int_equal(keying_write_answer(&a, &k), KEYING_AGREES);
	x->a_rx = a.rx;
	x->a_tx = a.tx;
	assert_true(keying_is_sound(&x->a) && keying_is_sound(&x->b));
}

static void is_line(const struct srtp_params *p, const char *line)
{
	struct sdes s;

	assert_int_equal(sdes_parse(&s, NULL, str_from(line)), SDES_OK);
	assert_int_equal(p->keys, 1);
	assert_true(srtp_same_session(&p->key[0], &s.master));
}

static const char *crypto_of(const struct exchange *x, const struct keying_lines *l)
{
	struct str text = l->line[0];

	assert_int_equal(l->n, 1);
	assert_true(str_eq(str_cut(&text, ':'), STR("crypto")));
	return pool_strdup(x->p, text).s;
}

static void sdes_gives_each_terminal_a_key_of_ours(void **state)
{
	struct exchange x;

	(void)state;
	start(&x);
	talk(&x);
	is_line(&x.a_rx, "1 AES_CM_128_HMAC_SHA1_80 " K80A);
	is_line(&x.b_rx, "1 AES_CM_128_HMAC_SHA1_80 " K80B);
	is_line(&x.b_tx, crypto_of(&x, &x.to_b));
	is_line(&x.a_tx, crypto_of(&x, &x.to_a));
	assert_false(srtp_shares_key(&x.a_tx.key[0], &x.b_tx.key[0]));
	assert_string_equal(keying_name(&x.a), "SDES");
	assert_string_equal(keying_name(&x.b), "SDES");
	assert_false(keying_asks_end_to_end(&x.b));
	assert_true(keying_is_of(&x.b, &x.b_rx, 1u << SUITE_AES_CM_128_80));
	assert_false(keying_is_of(&x.b, &x.b_rx, 1u << SUITE_AES_CM_128_32));
	/* The key is ours until it is forgotten, and its slot stays with it. */
	keying_hold(&x.b, &x.b_tx.key[0], 7);
	assert_int_equal(keying_ours(&x.b, &x.b_tx.key[0])->slot, 7);
	assert_null(keying_our_key(&x.b, 1));
	keying_forget_ours(&x.b);
	assert_null(keying_ours(&x.b, &x.b_tx.key[0]));
	assert_null(keying_our_key(&x.b, 0));
	assert_true(keying_is_theirs(&x.a, &x.a_rx.key[0]));
	pool_destroy(x.p);
}

static void passed_through_each_terminal_gets_the_others_line(void **state)
{
	struct exchange x;

	(void)state;
	start(&x);
	x.r.flags = 1ull << NG_FLAG_PASSTHROUGH;
	talk(&x);
	assert_string_equal(crypto_of(&x, &x.to_b), "1 AES_CM_128_HMAC_SHA1_80 " K80A);
	assert_string_equal(crypto_of(&x, &x.to_a), "1 AES_CM_128_HMAC_SHA1_80 " K80B);
	is_line(&x.a_rx, "1 AES_CM_128_HMAC_SHA1_80 " K80A);
	is_line(&x.b_rx, "1 AES_CM_128_HMAC_SHA1_80 " K80B);
	assert_true(x.a_rx.pass && x.a_tx.pass && x.b_rx.pass && x.b_tx.pass);
	assert_int_equal(x.a_tx.keys + x.b_tx.keys, 0);
	assert_string_equal(keying_name(&x.a), "SDES end-to-end");
	assert_string_equal(keying_name(&x.b), "SDES end-to-end");
	assert_true(keying_asks_end_to_end(&x.b));
	assert_true(keying_is_of(&x.b, &x.b_rx, 0)); /* the terminals chose */
	assert_null(keying_our_key(&x.a, 0));
	pool_destroy(x.p);
}

static void what_is_dropped_is_gone(void **state)
{
	static const struct keying_state none;

	(void)state;
	for (int pass = 0; pass < 2; pass++) {
		struct exchange x;

		start(&x);
		x.r.flags = pass ? 1ull << NG_FLAG_PASSTHROUGH : 0;
		talk(&x);
		for (struct keying_state *s = &x.a; s; s = s == &x.a ? &x.b : NULL) {
			keying_drop_offered(s);
			keying_drop_asked(s);
			keying_end(s);
			keying_forget_ours(s);
			assert_string_equal(keying_name(s), "");
			assert_memory_equal(s, &none, sizeof(none));
		}
		pool_destroy(x.p);
	}
}

static void what_nobody_takes_is_refused_with_a_reason(void **state)
{
	const struct sdp_media *m;
	struct keying_error why;
	struct exchange x;
	struct keying_in k;
	struct keying_leg a;

	(void)state;
	start(&x);
	x.refused = "key is one of ours";
	k = in(&x);
	a = leg_a(&x);
	m = media(&x, BODY("1 AES_CM_128_HMAC_SHA1_80 " K80A));
	assert_false(keying_could_accept(&a, m, &k));
	assert_false(keying_read_offer(&a, m, UINT32_MAX, &k, &why));
	assert_string_equal(why.reason, NGE_SUITE);
	assert_string_equal(why.detail.s, "crypto line 1: key is one of ours");
	x.refused = NULL;
	assert_false(keying_read_offer(&a, m, 0, &k, &why)); /* by SDES=require */
	assert_string_equal(why.detail.s, "crypto line 1: suite is not accepted");
	/* No random bytes: no offer in SRTP. */
	struct keying_offer o = {.from = leg_a(&x),
		.to = leg_b(&x),
		.wanted = true,
		.media = m,
		.proto = SDP_RTP_SAVP,
		.lines = &x.to_b};

	x.random.len = 0;
	assert_false(keying_write_offer(&o, &k));
	assert_string_equal(o.error.reason, NGE_SUITE);
	assert_int_equal(x.to_b.n, 0);
	pool_destroy(x.p);
}

/* --- Keys that come later --------------------------------------------------------------------- */

static void recommit(struct talk *t)
{
	struct ng_request r = talk_request("a", "", "");

	talk_pool(t);
	calls_gate(t->c, t->p, &r, (struct calls_gate){MEDIA_GATE_DTMF, true}, t->now, &t->reply);
	calls_gate(t->c, t->p, &r, (struct calls_gate){MEDIA_GATE_DTMF, false}, t->now, &t->reply);
	assert_null(t->reply.error);
}

static void a_leg_that_awaits_keys_relays_nothing(void **state)
{
	(void)state;
	for (int way = 0; way < 4; way++) {
		const struct media_ctx_cfg *ctx;
		struct srtp_params *p;
		struct talk t;
		uint16_t a, b;
		struct side *s;

		talk_start(&t);
		talk_offer(&t, "a", "", talk_body(&t, "198.51.100.1", 4000, "RTP/AVP", ""));
		assert_null(t.reply.error);
		b = t.sdp->media[0].port;
		talk_answer(&t, "a", "b", talk_body(&t, "198.51.100.2", 5000, "RTP/AVP", ""));
		assert_null(t.reply.error);
		a = t.sdp->media[0].port;
		assert_int_not_equal(mock_stream(t.m, a)->rtp_to, MEDIA_NONE);
		for (int awaited = 1; awaited >= 0; awaited--) {
			s = calls_saver(t.c)->table->first->side[way & 1];
			p = way & 2 ? &s->leg[0]->tx : &s->leg[0]->rx;
			p->awaited = awaited;
			recommit(&t);
			ctx = mock_ctx(t.m, way & 1 ? b : a);
			assert_int_equal((way & 2 ? &ctx->tx : &ctx->rx)->awaited, awaited);
		}
		talk_end(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_row_has_each_operation),
		cmocka_unit_test(sdes_gives_each_terminal_a_key_of_ours),
		cmocka_unit_test(passed_through_each_terminal_gets_the_others_line),
		cmocka_unit_test(what_is_dropped_is_gone),
		cmocka_unit_test(what_nobody_takes_is_refused_with_a_reason),
		cmocka_unit_test(a_leg_that_awaits_keys_relays_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
