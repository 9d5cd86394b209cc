/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reports of a call's timeout: their destination and contents. A call ended by a timer is reported
 * with its tags, once, and only where the operator allows. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#include "call/call.h"
#include "call/delete.h"
#include "call/tick.h"
#include "call/timeout_report.h"
#include "call/unsaved.h"
#include "call_talk.h"
#include "offer/exchange.h"
#include "persist/restore.h"
#include "persist/save.h"

#define A     "198.51.100.1"
#define B     "198.51.100.2"
#define PROXY "192.0.2.5"

struct heard { /* the last one, as text */
	uint32_t n;
	char text[256];
};

static void on_timeout(void *arg, const struct call_timeout *t)
{
	struct heard *h = arg;
	char addr[ENDPOINT_STRLEN];
	int len;

	h->n++;
	len = snprintf(h->text, sizeof(h->text), "%.*s %s", (int)t->call_id.len, t->call_id.s,
		t->whom.family ? endpoint_fmt_addr(&t->whom, addr) : "-");
	for (uint32_t i = 0; i < t->pairs; i++) {
		struct str from = t->tag[t->pair[i].from], to = t->tag[t->pair[i].to];

		len += snprintf(h->text + len, sizeof(h->text) - (size_t)len,
			" " STR_FMT ">" STR_FMT, STR_ARG(from), STR_ARG(to));
	}
	snprintf(h->text + len, sizeof(h->text) - (size_t)len, " %u tags", t->tags);
}

static void start(struct talk *t, struct heard *h, enum call_told told)
{
	talk_start(t);
	*h = (struct heard){0};
	t->policy.told = told;
	t->policy.told_nets.n = 1;
	assert_int_equal(endpoint_parse_net(&t->policy.told_nets.net[0],
				 &t->policy.told_nets.bits[0], STR("192.0.2.0/28")),
		0);
	calls_set_policy(t->c, &t->policy);
	calls_on_timeout(t->c, on_timeout, h);
}

static struct ng_request offer(struct talk *t, const char *callback)
{
	struct ng_request r = talk_request("a", "", talk_body(t, A, 4000, "RTP/AVP", ""));

	assert_int_equal(endpoint_parse_addr(&r.from, STR(PROXY)), 0);
	if (callback)
		assert_int_equal(endpoint_parse_addr(&r.callback, str_from(callback)), 0);
	return r;
}

static void later(struct talk *t, uint64_t seconds)
{
	t->now += seconds * NS_PER_SEC;
	calls_tick(t->c, t->now);
}

static void every_timeout_is_told_and_a_delete_is_not(void **state)
{
	struct ng_request r;
	struct heard h;
	struct talk t;

	(void)state;
	start(&t, &h, CALL_TOLD_ADDRESS);
	r = offer(&t, NULL);
	talk_send(&t, &r, false);
	later(&t, 301); /* never answered */
	assert_int_equal(h.n, 1);
	assert_string_equal(h.text, "call " PROXY " 1 tags");
	talk_send(&t, &r, false);
	talk_answer(&t, "a", "b", talk_body(&t, B, 5000, "RTP/AVP", ""));
	later(&t, 59);
	assert_int_equal(h.n, 1);
	later(&t, 2);
	assert_int_equal(h.n, 2);
	assert_string_equal(h.text, "call " PROXY " a>b 2 tags");
	talk_send(&t, &r, false);
	talk_pool(&t);
	r.delete_delay = 5;
	calls_delete(t.c, t.p, &r, t.now, &t.reply, ngval_dict(t.p));
	later(&t, 6);
	assert_true(mock_relay_empty(t.m));
	assert_int_equal(h.n, 2);
	talk_end(&t);
}

static void the_final_timeout_ends_a_call_whatever_is_said_in_it(void **state)
{
	struct heard h;
	struct talk t;

	(void)state;
	start(&t, &h, CALL_TOLD_FIXED);
	t.policy.final_timeout_ns = 100 * NS_PER_SEC;
	calls_set_policy(t.c, &t.policy);
	talk_offer(&t, "a", "", talk_body(&t, A, 4000, "RTP/AVP", ""));
	talk_answer(&t, "a", "b", talk_body(&t, B, 5000, "RTP/AVP", ""));
	for (int i = 0; i < 9; i++) {
		t.m->last_packet_ns = t.now;
		later(&t, 11);
		talk_offer(&t, "a", "b", talk_body(&t, A, 4000, "RTP/AVP", ""));
	}
	assert_int_equal(h.n, 0);
	t.m->last_packet_ns = t.now;
	later(&t, 1);
	assert_int_equal(h.n, 1);
	assert_string_equal(h.text, "call - a>b 2 tags");
	assert_true(mock_relay_empty(t.m));
	talk_end(&t);
}

/* Two branches rang, the second one answered, and a listener is connected. */
static void branches_are_pairs_and_listeners_are_none(void **state)
{
	struct ng_request r;
	struct heard h;
	struct talk t;

	(void)state;
	start(&t, &h, CALL_TOLD_FIXED);
	for (int i = 0; i < 2; i++) {
		r = offer(&t, NULL);
		r.via_branch = i ? STR("z2") : STR("z1");
		talk_send(&t, &r, false);
		assert_null(t.reply.error);
	}
	for (int i = 0; i < 2; i++) {
		r = talk_request("a", i ? "b2" : "b1", talk_body(&t, B, 5000, "RTP/AVP", ""));
		r.via_branch = i ? STR("z2") : STR("z1");
		talk_send(&t, &r, true);
		assert_null(t.reply.error);
	}
	r = talk_request("a", "listener", "");
	talk_pool(&t);
	calls_subscribe(t.c, t.p, &r, t.now, &t.reply, ngval_dict(t.p));
	assert_null(t.reply.error);
	later(&t, 4000);
	assert_string_equal(h.text, "call " PROXY " a>b1 a>b2 3 tags");
	talk_end(&t);
}

static void an_address_is_taken_where_it_is_allowed(void **state)
{
	static const struct {
		enum call_told told;
		const char *callback, *warning, *whom;
	} T[] = {
		{CALL_TOLD_ADDRESS, "192.0.2.14", NULL, "192.0.2.14"},
		{CALL_TOLD_ADDRESS, NULL, NULL, PROXY},
		{CALL_TOLD_ADDRESS, "192.0.2.16", "does not allow it", PROXY},
		{CALL_TOLD_ADDRESS, "127.0.0.1", "does not allow it", PROXY},
		{CALL_TOLD_ADDRESS, "2001:db8::1", "does not allow it", PROXY},
		{CALL_TOLD_FIXED, "192.0.2.14", "contains no %%", PROXY},
		{CALL_TOLD_NOBODY, "192.0.2.14", "no effect without --b2b-url", PROXY},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		char want[64];
		struct ng_request r;
		struct heard h;
		struct talk t;

		start(&t, &h, T[i].told);
		r = offer(&t, T[i].callback);
		talk_send(&t, &r, false);
		assert_null(t.reply.error);
		if (!T[i].warning != !t.reply.warning.len ||
			(T[i].warning && !strstr(t.reply.warning.s, T[i].warning)))
			fail_msg("row %zu: " STR_FMT, i, STR_ARG(t.reply.warning));
		later(&t, 301);
		snprintf(want, sizeof(want), "call %s 1 tags", T[i].whom);
		assert_string_equal(h.text, want);
		talk_end(&t);
	}
}

/* "any" excludes multicast and the unspecified address, and does not cover this host. */
static void any_is_no_name_for_this_host_or_many(void **state)
{
	static const char *const addr[] = {"0.0.0.0", "224.0.0.1", "::", "ff02::1", "127.0.0.1",
		"::1", "::ffff:127.0.0.1", "10.0.0.1", "203.0.113.9", "255.255.255.255"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(addr); i++) {
		struct ng_request r;
		struct heard h;
		struct talk t;

		start(&t, &h, CALL_TOLD_ADDRESS);
		t.policy.told_nets = (struct call_nets){.n = 2};
		assert_int_equal(
			endpoint_parse_addr(&t.policy.told_nets.net[0], STR("0.0.0.0")), 0);
		assert_int_equal(endpoint_parse_addr(&t.policy.told_nets.net[1], STR("::")), 0);
		calls_set_policy(t.c, &t.policy);
		r = offer(&t, addr[i]);
		talk_send(&t, &r, false);
		assert_true(t.reply.warning.len);
		/* With this address in --b2b-allow, it is accepted. */
		t.policy.told_nets.n = 1;
		t.policy.told_nets.net[0] = r.callback;
		t.policy.told_nets.bits[0] = r.callback.family == AF_INET ? 32 : 128;
		calls_set_policy(t.c, &t.policy);
		talk_send(&t, &r, false);
		assert_int_equal(!t.reply.warning.len,
			!endpoint_is_unspecified(&r.callback) &&
				!endpoint_is_multicast(&r.callback));
		talk_end(&t);
	}
}

static void it_outlives_a_restart(void **state)
{
	struct save_item item;
	struct ng_request r;
	struct sbuf whole;
	const char *why;
	struct heard h;
	struct talk t;

	(void)state;
	start(&t, &h, CALL_TOLD_ADDRESS);
	calls_save_start(t.c);
	r = offer(&t, "192.0.2.14");
	talk_send(&t, &r, false);
	sbuf_init(&whole, 0);
	assert_true(calls_save_next(t.c, t.now, &whole, &item));
	calls_destroy(t.c);
	assert_int_equal(calls_create(&t.c, &t.policy, &t.m->relay), 0);
	calls_on_timeout(t.c, on_timeout, &h);
	talk_pool(&t);
	assert_int_equal(calls_restore(t.c, t.p, sbuf_view(&whole), STR_NONE, t.now, &why), 0);
	later(&t, 301);
	assert_string_equal(h.text, "call 192.0.2.14 1 tags");
	/* A saved destination is checked like a request's. If it is no longer allowed, the report
	 * goes to the first requester. */
	t.policy.told_nets.bits[0] = 29;
	calls_set_policy(t.c, &t.policy);
	talk_pool(&t);
	assert_int_equal(calls_restore(t.c, t.p, sbuf_view(&whole), STR_NONE, t.now, &why), 0);
	t.now += 301 * NS_PER_SEC;
	later(&t, 301);
	assert_string_equal(h.text, "call " PROXY " 1 tags");
	sbuf_fini(&whole);
	talk_end(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_timeout_is_told_and_a_delete_is_not),
		cmocka_unit_test(the_final_timeout_ends_a_call_whatever_is_said_in_it),
		cmocka_unit_test(branches_are_pairs_and_listeners_are_none),
		cmocka_unit_test(an_address_is_taken_where_it_is_allowed),
		cmocka_unit_test(any_is_no_name_for_this_host_or_many),
		cmocka_unit_test(it_outlives_a_restart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
