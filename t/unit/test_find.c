/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Filters and pages of the list of calls, and the condition of a call (call/find.h, call/sight.h).
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "call/browse.h"
#include "call/table.h"
#include "call_talk.h"
#include "call/call_int.h"
#include "call/find.h"

#define CRYPTO(x) "a=crypto:" x "\r\n"

static void words_become_a_filter(void **state)
{
	struct find f;

	(void)state;
	assert_null(find_parse(
		&f, STR("  one-way MOS_below=3.5 suite=GCM since=2h ip=2001:db8::1 abc ")));
	assert_int_equal(f.words, 1u << FIND_ONE_WAY);
	assert_int_equal(f.mos_below, 350);
	assert_true(str_eq(f.suite, STR("GCM")) && str_eq(f.part, STR("abc")));
	assert_int_equal(f.since_ns, 7200 * NS_PER_SEC);
	assert_int_equal(f.ip.family, AF_INET6);
	assert_null(find_parse(&f, STR("loss-above=0")));
	assert_true(f.by_loss && f.loss_above == 0);
	assert_null(find_parse(&f, STR("mos-below=3.07")));
	assert_int_equal(f.mos_below, 307);
	assert_null(find_parse(&f, STR("")));
	assert_int_equal(f.words | f.mos_below | f.part.len, 0);
}

static void wrong_words_are_named(void **state)
{
	static const char *const wrong[] = {"mos-below=", "mos-below=x", "mos-below=9",
		"mos-below=3.555", "since=0", "since=m", "since=99999999999999999999d",
		"ip=300.1.1.1", "suite=", "colour=red", "a b", "loss-above=101", "since=-1"};
	struct find f;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		assert_non_null(find_parse(&f, str_from(wrong[i])));
}

static void establish(struct talk *t, const char *id, const char *crypto)
{
	struct ng_request r;
	bool secure = crypto[0];

	r = talk_request("a", "",
		talk_body(t, "198.51.100.1", 4000, secure ? "RTP/SAVP" : "RTP/AVP", crypto));
	r.call_id = str_from(id);
	r.transport = secure ? STR("RTP/AVP") : STR_NONE;
	talk_send(t, &r, false);
	assert_null(t->reply.error);
	r = talk_request("a", "b", talk_body(t, "198.51.100.2", 5000, "RTP/AVP", ""));
	r.call_id = str_from(id);
	talk_send(t, &r, true);
	assert_null(t->reply.error);
}

/* Call-IDs of all pages, separated by blanks; how many pages in *pages. */
static const char *list(struct talk *t, struct calls_look look, uint32_t *pages)
{
	struct str text = STR("");

	talk_pool(t);
	for (*pages = 1; *pages < 1000; ++*pages) {
		struct ngval *d = ngval_dict(t->p);

		assert_null(calls_view(t->c, t->p, &look, t->now, d));
		for (const struct ngval *c = ngval_get(d, STR("calls"))->first; c; c = c->next)
			text = pool_printf(t->p, "%s%s%.*s", text.s, text.len ? " " : "",
				STR_ARG(ngval_str(t->p, ngval_get(c, STR("id")))));
		look.after = ngval_str(t->p, ngval_get(d, STR("next")));
		if (!look.after.len)
			break;
	}
	return text.s;
}

static void pages_have_every_call_once(void **state)
{
	struct talk t;
	uint32_t pages;

	(void)state;
	talk_start(&t);
	establish(&t, "one", "");
	t.now += NS_PER_SEC;
	establish(&t, "two", CRYPTO(C80A));
	t.now += NS_PER_SEC;
	establish(&t, "three", "");
	assert_string_equal(list(&t, (struct calls_look){.limit = 10}, &pages), "three two one");
	assert_int_equal(pages, 1);
	assert_string_equal(list(&t, (struct calls_look){.limit = 1}, &pages), "three two one");
	assert_int_equal(pages, 3);
	assert_string_equal(list(&t, (struct calls_look){.limit = 2, .sort = STR("age")}, &pages),
		"one two three");
	assert_int_equal(pages, 2);
	assert_string_equal(
		list(&t, (struct calls_look){.limit = 1, .filter = STR("suite=plain t")}, &pages),
		"three two");
	assert_string_equal(
		list(&t, (struct calls_look){.limit = 9, .filter = STR("since=1s")}, &pages),
		"three two");
	assert_string_equal(
		list(&t, (struct calls_look){.limit = 9, .filter = STR("suite=cm_128")}, &pages),
		"two");
	assert_string_equal(
		list(&t, (struct calls_look){.limit = 9, .filter = STR("ip=198.51.100.3")}, &pages),
		"");
	talk_end(&t);
}

/* When a call ends between two pages, all other calls are still listed. */
static void a_page_goes_on_where_the_last_one_ended(void **state)
{
	struct calls_look look = {.limit = 1};
	struct ngval *d;
	struct talk t;

	(void)state;
	talk_start(&t);
	establish(&t, "one", "");
	establish(&t, "two", "");
	establish(&t, "three", "");
	talk_pool(&t);
	d = ngval_dict(t.p);
	assert_null(calls_view(t.c, t.p, &look, t.now, d));
	look.after = ngval_str(t.p, ngval_get(d, STR("next")));
	calls_end(t.c, call_table_find(&t.c->table, STR("three")), CALL_END_DELETED, 0);
	d = ngval_dict(t.p);
	assert_null(calls_view(t.c, t.p, &look, t.now, d));
	assert_true(str_eq(ngval_str(t.p, ngval_get(ngval_get(d, STR("calls"))->first, STR("id"))),
		STR("two")));
	look.after = STR("two");
	assert_non_null(calls_view(t.c, t.p, &look, t.now, d));
	talk_end(&t);
}

static struct sight look_at(struct talk *t)
{
	struct sight s;

	sight_take(&s, &t->m->relay, t->c->table.first, t->now);
	return s;
}

static void silence_counts_when_the_other_is_received(void **state)
{
	struct relay_stats heard = {.packets = 500}, none = {0};
	const struct leg *a, *b;
	struct talk t;

	(void)state;
	talk_start(&t);
	establish(&t, "call", CRYPTO(C80A));
	a = t.c->table.first->side[0]->leg[0];
	b = t.c->table.first->side[1]->leg[0];
	t.m->stats[a->port.rtp_stream] = &heard;
	t.m->stats[b->port.rtp_stream] = &none;
	t.m->stats[a->port.rtcp_stream] = t.m->stats[b->port.rtcp_stream] = &none;
	heard.last_packet_ns = t.now;
	assert_int_equal(look_at(&t).troubles, 0); /* just answered */
	t.now += SIGHT_SILENT_NS + 1;
	assert_int_equal(look_at(&t).troubles, 0); /* no packets from either party */
	heard.last_packet_ns = t.now;
	assert_int_equal(look_at(&t).troubles, 1u << SIGHT_TROUBLE_ONE_WAY);
	assert_int_equal(look_at(&t).silent_side, 1);
	none.last_packet_ns = t.now - 1;
	assert_int_equal(look_at(&t).troubles, 0);
	/* on hold nobody has to send */
	none.last_packet_ns = 0;
	t.c->table.first->side[1]->leg[0]->dir = SDP_DIR_RECVONLY;
	assert_int_equal(look_at(&t).troubles, 0);
	assert_int_equal(look_at(&t).state, SIGHT_HOLD);
	talk_end(&t);
}

/* A listener on the path cannot read media under the terminals' own keys, nor a fax. */
static void only_rtp_in_clear_is_plain(void **state)
{
	static const char fax[] = "v=0\r\no=- 1 2 IN IP4 %s\r\ns=-\r\nc=IN IP4 %s\r\nt=0 0\r\n"
				  "m=image %u udptl t38\r\n";
	struct relay_stats zrtp = {.others = {[MEDIA_OTHER_ZRTP] = 1, [MEDIA_OTHER_ZRTP_DONE] = 1}};
	struct calls_look plain = {.limit = 9, .filter = STR("plain")};
	struct ng_request r = talk_request("a", "", "");
	char offer[400], answer[400];
	const struct leg *l;
	struct talk t;
	uint32_t pages;

	(void)state;
	talk_start(&t);
	establish(&t, "clear", "");
	establish(&t, "zrtp", "");
	assert_string_equal(list(&t, plain, &pages), "zrtp clear");
	l = call_table_find(&t.c->table, STR("zrtp"))->side[0]->leg[0];
	t.m->stats[l->port.rtp_stream] = &zrtp;
	l = call_table_find(&t.c->table, STR("zrtp"))->side[1]->leg[0];
	t.m->stats[l->port.rtp_stream] = &zrtp;
	snprintf(offer, sizeof(offer), fax, "198.51.100.1", "198.51.100.1", 4000);
	snprintf(answer, sizeof(answer), fax, "198.51.100.2", "198.51.100.2", 5000);
	r.call_id = STR("fax");
	r.sdp = str_from(offer);
	talk_send(&t, &r, false);
	assert_null(t.reply.error);
	r.to_tag = STR("b");
	r.sdp = str_from(answer);
	talk_send(&t, &r, true);
	assert_null(t.reply.error);
	r = talk_request("a", "", talk_body(&t, "198.51.100.1", 4000, "RTP/SAVP", CRYPTO(C80A)));
	r.call_id = STR("ringing");
	talk_send(&t, &r, false);
	assert_string_equal(list(&t, plain, &pages), "clear");
	plain.filter = STR("suite=plain");
	assert_string_equal(list(&t, plain, &pages), "clear");
	plain.filter = STR("suite=udptl");
	assert_string_equal(list(&t, plain, &pages), "fax");
	plain.filter = STR("suite=zrtp");
	assert_string_equal(list(&t, plain, &pages), "zrtp");
	talk_end(&t);
}

static void causes_are_named(void **state)
{
	struct relay_stats st = {0};
	struct leg l = {.rx = {.keys = 1, .key[0].suite = SUITE_AES_CM_128_80}};
	struct pool *p;

	(void)state;
	assert_int_equal(pool_create(&p, 1 << 16), 0);
	assert_non_null(strstr(sight_cause(p, &l, &st).s, "no packet arrived"));
	st.drops[PACKET_DROP_BAD_TAG] = st.errors = 100;
	assert_non_null(strstr(sight_cause(p, &l, &st).s, "key mismatch in 100 packets"));
	st.packets = 10000;
	st.drops[PACKET_DROP_SOURCE] = 3;
	assert_non_null(strstr(sight_cause(p, &l, &st).s, "source changed in 3 packets"));
	pool_destroy(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_become_a_filter),
		cmocka_unit_test(wrong_words_are_named),
		cmocka_unit_test(pages_have_every_call_once),
		cmocka_unit_test(a_page_goes_on_where_the_last_one_ended),
		cmocka_unit_test(silence_counts_when_the_other_is_received),
		cmocka_unit_test(only_rtp_in_clear_is_plain),
		cmocka_unit_test(causes_are_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
