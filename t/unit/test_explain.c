/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The history of a call (call/history.h), its explanation and its closing report. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "call/call.h"
#include "call/closing.h"
#include "call/delete.h"
#include "call/explain.h"
#include "call/tick.h"
#include "call_talk.h"
#include "call/call_int.h"
#include "proto/json.h"

#define CRYPTO(x) "a=crypto:" x "\r\n"

static struct pool *p;

static const struct ngval *events_of(struct history *h, const struct ngval **dict)
{
	struct ngval *d = ngval_dict(p);

	history_tree(h, p, d);
	*dict = d;
	return ngval_get(d, STR("events"))->first;
}

static void a_history_is_bounded_and_keeps_its_beginning(void **state)
{
	const struct ngval *e, *d;
	struct history *h = NULL;
	uint32_t n = 0;

	(void)state;
	assert_int_equal(pool_create(&p, 1 << 20), 0);
	for (uint32_t i = 0; i < 1000; i++)
		history_add(&h, i * 1000000ull, HISTORY_COMMAND, STR("tag"), "event %u", i);
	for (e = events_of(h, &d); e; e = e->next) {
		int64_t time = ngval_int(ngval_get(e, STR("time")), -1);
		struct str want = pool_printf(p, "event %lld", (long long)time);

		assert_int_equal(
			time, n < HISTORY_FIRST ? n : 1000 - HISTORY_LATEST + n - HISTORY_FIRST);
		assert_true(str_eq(ngval_str(p, ngval_get(e, STR("text"))), want));
		assert_true(str_eq(ngval_str(p, ngval_get(e, STR("tag"))), STR("tag")));
		n++;
	}
	assert_int_equal(n, HISTORY_FIRST + HISTORY_LATEST);
	assert_int_equal(ngval_int(ngval_get(d, STR("events left out")), 0), 1000 - n);
	history_free(h);
	pool_destroy(p);
}

static void long_and_hostile_texts_are_cut(void **state)
{
	static char longest[3000];
	const struct ngval *e, *d;
	struct history *h = NULL;

	(void)state;
	assert_int_equal(pool_create(&p, 1 << 20), 0);
	memset(longest, 'x', sizeof(longest) - 1);
	history_add(&h, 1, HISTORY_OFFER, (struct str){longest, 2000}, "%s", longest);
	history_add(&h, 2, HISTORY_OFFER, STR("a\nb"), "one\r\ntwo\033[2J\x7f");
	e = events_of(h, &d);
	assert_int_equal(ngval_str(p, ngval_get(e, STR("text"))).len, HISTORY_TEXT);
	assert_int_equal(ngval_str(p, ngval_get(e, STR("tag"))).len, UINT8_MAX);
	e = e->next;
	assert_true(str_eq(ngval_str(p, ngval_get(e, STR("text"))), STR("one??two?[2J?")));
	assert_true(str_eq(ngval_str(p, ngval_get(e, STR("tag"))), STR("a?b")));
	history_free(h);
	pool_destroy(p);
}

struct heard {
	uint32_t times;
	char text[1024];
	char json[16384];
};

static void on_end(void *arg, const struct call_closing *e)
{
	struct heard *h = arg;
	struct sbuf b;

	h->times++;
	snprintf(h->text, sizeof(h->text), STR_FMT, STR_ARG(e->text));
	sbuf_init(&b, sizeof(h->json) - 1);
	json_write(&b, e->record, false);
	assert_int_equal(b.err, 0);
	snprintf(h->json, sizeof(h->json), STR_FMT, STR_ARG(sbuf_view(&b)));
	sbuf_fini(&b);
}

static void establish(struct talk *t)
{
	struct ng_request r =
		talk_request("a", "", talk_body(t, "198.51.100.1", 4000, "RTP/SAVP", CRYPTO(C80A)));

	r.transport = STR("RTP/AVP");
	talk_send(t, &r, false);
	t->now += 4 * NS_PER_SEC;
	talk_answer(t, "a", "b", talk_body(t, "198.51.100.2", 5000, "RTP/AVP", ""));
	assert_null(t->reply.error);
}

/* Each way a call ends is named, once. */
static void every_end_has_its_reason(void **state)
{
	static const struct {
		enum call_end want;
		const char *name;
		uint64_t wait_s;
		bool answer;
	} ends[] = {{CALL_END_TIMEOUT, "\"timeout\"", 61, true},
		{CALL_END_OFFER_TIMEOUT, "\"offer-timeout\"", 301, false},
		{CALL_END_STOPPED, "\"stopped\"", 0, true}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		struct heard h = {0};
		struct talk t;

		talk_start(&t);
		calls_on_end(t.c, on_end, &h);
		if (ends[i].answer)
			establish(&t);
		else
			talk_offer(&t, "a", "",
				talk_body(&t, "198.51.100.1", 4000, "RTP/SAVP", CRYPTO(C80A)));
		t.now += ends[i].wait_s * NS_PER_SEC;
		if (ends[i].wait_s)
			calls_tick(t.c, t.now);
		else
			calls_destroy(t.c);
		assert_int_equal(h.times, 1);
		assert_non_null(strstr(h.json, ends[i].name));
		if (!ends[i].wait_s)
			assert_int_equal(calls_create(&t.c, &t.policy, &t.m->relay), 0);
		talk_end(&t);
		assert_int_equal(h.times, 1);
	}
}

static void the_line_says_what_was_and_no_key(void **state)
{
	struct ng_request r = talk_request("a", "", "");
	struct heard h = {0};
	struct ngval *d;
	struct talk t;

	(void)state;
	talk_start(&t);
	calls_on_end(t.c, on_end, &h);
	establish(&t);
	t.now += 60 * NS_PER_SEC;
	talk_pool(&t);
	d = ngval_dict(t.p);
	assert_null(calls_explain(t.c, t.p, STR("call"), t.now, d));
	r.command = NG_DELETE;
	calls_delete(t.c, t.p, &r, t.now, &t.reply, ngval_dict(t.p)); /* with the default delay */
	assert_int_equal(h.times, 0);
	t.now += 31 * NS_PER_SEC;
	calls_tick(t.c, t.now);
	assert_int_equal(h.times, 1);
	/* the delay is not counted */
	assert_non_null(
		strstr(h.text, "call ended: deleted by command; 64.0 s, 60.0 s since its answer"));
	assert_non_null(strstr(h.text, "; audio PCMU/8000 AES_CM_128_HMAC_SHA1_80 in "));
	assert_non_null(strstr(h.text, "; audio PCMU/8000 plain in "));
	assert_non_null(strstr(h.json, "\"answered_ms\":1004000"));
	assert_non_null(strstr(h.json, "\"ended_ms\":1064000"));
	assert_null(strstr(h.json, "inline"));
	assert_null(strstr(h.json, "d0RmdmcmVCspeEc3"));
	talk_end(&t);
}

/* ng's sip-code is 183: media flows before an answer. */
static void a_provisional_answer_is_no_answer(void **state)
{
	struct ng_request r = talk_request("a", "b", "");
	struct heard h = {0};
	struct ngval *d;
	struct talk t;

	(void)state;
	talk_start(&t);
	calls_on_end(t.c, on_end, &h);
	talk_offer(&t, "a", "", talk_body(&t, "198.51.100.1", 4000, "RTP/AVP", ""));
	t.now += 2 * NS_PER_SEC;
	r.sdp = str_from(talk_body(&t, "198.51.100.2", 5000, "RTP/AVP", ""));
	r.sip_code = 183;
	talk_send(&t, &r, true);
	assert_null(t.reply.error);
	d = ngval_dict(t.p);
	assert_null(calls_explain(t.c, t.p, STR("call"), t.now, d));
	assert_true(str_eq(ngval_str(t.p, ngval_get(d, STR("state"))), STR("early")));
	assert_int_equal(ngval_int(ngval_get(d, STR("answered")), -1), 0);
	t.now += 5 * NS_PER_SEC;
	r.sip_code = 200;
	talk_send(&t, &r, true);
	t.now += NS_PER_SEC;
	r.sip_code = 183; /* of a re-INVITE */
	talk_send(&t, &r, true);
	d = ngval_dict(t.p);
	assert_null(calls_explain(t.c, t.p, STR("call"), t.now, d));
	assert_true(str_eq(ngval_str(t.p, ngval_get(d, STR("state"))), STR("up")));
	assert_int_equal(ngval_int(ngval_get(d, STR("answered")), -1), 1007000);
	talk_end(&t);
	assert_non_null(strstr(h.json, "\"answered_ms\":1007000"));
}

/* Only the first end counts. The daemon may stop while a deleted call is still relayed. */
static void a_deleted_call_stays_deleted_when_the_daemon_stops(void **state)
{
	struct ng_request r = talk_request("a", "", "");
	struct heard h = {0};
	struct talk t;

	(void)state;
	talk_start(&t);
	calls_on_end(t.c, on_end, &h);
	establish(&t);
	talk_pool(&t);
	r.command = NG_DELETE;
	calls_delete(t.c, t.p, &r, t.now, &t.reply, ngval_dict(t.p));
	assert_int_equal(h.times, 0);
	talk_end(&t);
	assert_int_equal(h.times, 1);
	assert_non_null(strstr(h.json, "\"reason\":\"deleted\""));
	assert_non_null(strstr(h.text, "deleted by command"));
}

/* Before the answer, neither SRTP nor plain is in force. */
static void an_unanswered_call_has_no_suite(void **state)
{
	struct heard h = {0};
	struct talk t;

	(void)state;
	talk_start(&t);
	calls_on_end(t.c, on_end, &h);
	talk_offer(&t, "a", "", talk_body(&t, "198.51.100.1", 4000, "RTP/SAVP", CRYPTO(C80A)));
	talk_end(&t);
	assert_null(strstr(h.text, "plain"));
	assert_null(strstr(h.json, "\"suite_in\""));
}

static bool explains(struct talk *t, uint32_t leg, const char *why)
{
	struct ngval *d = ngval_dict(t->p);
	const struct ngval *l;

	assert_null(calls_explain(t->c, t->p, STR("call"), t->now, d));
	for (l = ngval_get(d, STR("legs"))->first; leg; leg--)
		l = l->next;
	return str_eq(ngval_str(t->p, ngval_get(l, STR("why"))), str_from(why));
}

/* A session refresh does not change why a leg is plain. */
static void the_reason_outlives_a_reinvite(void **state)
{
	static const char answered[] = "the terminal was offered SRTP, and answered RTP";
	struct ng_request r;
	struct talk t;

	(void)state;
	talk_start(&t);
	r = talk_request("a", "", talk_body(&t, "198.51.100.1", 4000, "RTP/AVP", CRYPTO(C80A)));
	r.osrtp = NG_OSRTP_OFFER | NG_OSRTP_ACCEPT;
	talk_send(&t, &r, false);
	assert_true(explains(&t, 0, "the call is not answered yet"));
	assert_true(explains(&t, 1, "the call is not answered yet"));
	talk_answer(&t, "a", "b", talk_body(&t, "198.51.100.2", 5000, "RTP/AVP", ""));
	assert_true(explains(&t, 1, answered));
	talk_offer(&t, "b", "a", talk_body(&t, "198.51.100.2", 5000, "RTP/AVP", ""));
	assert_null(t.reply.error);
	talk_answer(&t, "b", "a", talk_body(&t, "198.51.100.1", 4000, "RTP/AVP", CRYPTO(C80A)));
	assert_null(t.reply.error);
	assert_true(explains(&t, 1, answered));
	talk_end(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_history_is_bounded_and_keeps_its_beginning),
		cmocka_unit_test(long_and_hostile_texts_are_cut),
		cmocka_unit_test(every_end_has_its_reason),
		cmocka_unit_test(the_line_says_what_was_and_no_key),
		cmocka_unit_test(a_provisional_answer_is_no_answer),
		cmocka_unit_test(a_deleted_call_stays_deleted_when_the_daemon_stops),
		cmocka_unit_test(an_unanswered_call_has_no_suite),
		cmocka_unit_test(the_reason_outlives_a_reinvite),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
