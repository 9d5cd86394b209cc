/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calls restored from Redis: their destinations are checked as if signalled now. Calls that send to
 * each other are restored in any order. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "call/delete.h"
#include "call/unsaved.h"
#include "persist/save.h"
#include "save_talk.h"

#define A    "198.51.100.1"
#define B    "198.51.100.2"
#define TOLD "203.0.113.9"

static void offer_as(struct talk *t, const char *id, const char *addr, unsigned port)
{
	struct ng_request r = talk_request("a", "", talk_body(t, addr, port, "RTP/AVP", ""));

	r.call_id = str_from(id);
	talk_send(t, &r, false);
	assert_null(t->reply.error);
}

static void answer_as(struct talk *t, const char *id, const char *addr, unsigned port)
{
	struct ng_request r = talk_request("a", "b", talk_body(t, addr, port, "RTP/AVP", ""));

	r.call_id = str_from(id);
	talk_send(t, &r, true);
	assert_null(t->reply.error);
}

/* Replaces an address in the record, as an attacker with access to Redis could. */
static void forge(struct sbuf *b, const char *from, const char *to)
{
	struct endpoint was, is;
	char *at;

	assert_int_equal(endpoint_parse_addr(&was, str_from(from)), 0);
	assert_int_equal(endpoint_parse_addr(&is, str_from(to)), 0);
	at = memmem(b->p, b->len, was.addr, 4);
	assert_non_null(at);
	for (; at; at = memmem(b->p, b->len, was.addr, 4))
		memcpy(at, is.addr, 4);
}

static void a_forged_address_does_not_come_back(void **state)
{
	static const struct {
		const char *address;
		int err;
	} T[] = {{"198.51.100.9", 0}, {"127.0.0.1", -EACCES}, {"224.0.0.1", -EACCES},
		{"240.0.0.1", -EACCES}, {"0.0.0.1", -EACCES}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++)
		for (int answered = 0; answered < 2; answered++) {
			const char *why = NULL;
			struct saved s;
			struct talk t;
			int err;

			talk_start(&t);
			calls_save_start(t.c);
			offer_as(&t, "call", A, 4000);
			if (answered)
				answer_as(&t, "call", B, 5000);
			save(&t, &s);
			forge(&s.whole, A, T[i].address);
			reborn(&t);
			err = restore(&t, sbuf_view(&s.whole), STR_NONE, &why);
			if (err != T[i].err)
				fail_msg("row %zu: %d (%s)", i, err, why ? why : "");
			sbuf_fini(&s.whole);
			sbuf_fini(&s.state);
			talk_end(&t);
		}
}

static void calls_that_pass_twice_come_back_in_any_order(void **state)
{
	(void)state;
	for (int order = 0; order < 2; order++) {
		struct sbuf whole[2];
		struct save_item item;
		const char *why;
		struct talk t;
		uint32_t set = 0;

		talk_start(&t);
		calls_save_start(t.c);
		offer_as(&t, "0", A, 4000);
		offer_as(&t, "1", TOLD, 30002);
		answer_as(&t, "1", B, 5000);
		answer_as(&t, "0", TOLD, 30004);
		for (int i = 0; i < 2; i++) {
			sbuf_init(&whole[i], 0);
			assert_true(calls_save_next(t.c, t.now, &whole[i], &item));
		}
		reborn(&t);
		t.m->cuts = 0;
		assert_int_equal(restore(&t, sbuf_view(&whole[order]), STR_NONE, &why), 0);
		assert_int_equal(restore(&t, sbuf_view(&whole[!order]), STR_NONE, &why), 0);
		assert_int_equal(t.m->cuts, 0);
		for (uint32_t i = 0; i < 8; i += 2)
			set += t.m->stream_cfg[i].remote.port == 30002 ||
				t.m->stream_cfg[i].remote.port == 30004;
		assert_int_equal(set, 2);
		/* The link is valid again and ends with the other call. */
		struct ng_request r = talk_request("a", "", "");

		r.call_id = STR("1");
		r.delete_delay = 0;
		talk_pool(&t);
		calls_delete(t.c, t.p, &r, t.now, &t.reply, ngval_dict(t.p));
		assert_null(t.reply.error);
		assert_int_equal(t.m->cuts, 2);
		sbuf_fini(&whole[0]);
		sbuf_fini(&whole[1]);
		talk_end(&t);
	}
}

/* Only one of them is restored: it names the port of the next call. */
static void a_link_to_a_call_that_did_not_come_back_is_cut(void **state)
{
	struct save_item item;
	struct sbuf whole;
	const char *why;
	struct talk t;

	(void)state;
	talk_start(&t);
	calls_save_start(t.c);
	offer_as(&t, "0", A, 4000);
	offer_as(&t, "1", TOLD, 30002);
	answer_as(&t, "1", B, 5000);
	sbuf_init(&whole, 0);
	do {
		whole.len = 0;
		assert_true(calls_save_next(t.c, t.now, &whole, &item));
	} while (item.call_id[0] != '1');
	reborn(&t);
	t.m->cuts = 0;
	assert_int_equal(restore(&t, sbuf_view(&whole), STR_NONE, &why), 0);
	offer_as(&t, "2", A, 4000);
	assert_int_equal(t.m->cuts, 2);
	sbuf_fini(&whole);
	talk_end(&t);
}

#define ALIAS "203.0.113.200" /* leads to us by address translation */

/* The media-address of a restored call is known again: a circle through it is refused. */
static void a_media_address_is_known_after_a_restart(void **state)
{
	(void)state;
	for (int told = 0; told < 2; told++) {
		struct ng_request r;
		struct saved s;
		struct talk t;
		const char *why;

		talk_start(&t);
		calls_save_start(t.c);
		r = talk_request("a", "", talk_body(&t, A, 4000, "RTP/AVP", ""));
		r.call_id = STR("call");
		r.media_address = told ? STR(ALIAS) : STR_NONE;
		talk_send(&t, &r, false);
		assert_null(t.reply.error);
		answer_as(&t, "call", B, 5000);
		save(&t, &s);
		reborn(&t);
		assert_int_equal(restore(&t, sbuf_view(&s.whole), STR_NONE, &why), 0);
		r = talk_request("a", "b", talk_body(&t, ALIAS, 30002, "RTP/AVP", ""));
		r.call_id = STR("call");
		talk_send(&t, &r, false);
		assert_int_equal(t.reply.error != NULL, told);
		if (told)
			assert_non_null(strstr(t.reply.detail.s, "is a media port of this call"));
		sbuf_fini(&s.whole);
		sbuf_fini(&s.state);
		talk_end(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_forged_address_does_not_come_back),
		cmocka_unit_test(calls_that_pass_twice_come_back_in_any_order),
		cmocka_unit_test(a_link_to_a_call_that_did_not_come_back_is_cut),
		cmocka_unit_test(a_media_address_is_known_after_a_restart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
