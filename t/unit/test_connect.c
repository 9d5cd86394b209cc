/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Connects two parties of a call: where their packets go, and which parties no longer receive
 * any. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "call_talk.h"
#include "offer/connect.h"

static const char *const addr[] = {"192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"};
static const char *const tag[] = {"a", "b", "c", "d"};

static void pair(struct talk *t, int x, int y, const char *proto, const char *attrs)
{
	const char *key = "a=crypto:1 AES_CM_128_HMAC_SHA1_80 " K80C "\r\n";

	talk_offer(t, tag[x], "", talk_body(t, addr[x], 4000, proto, attrs));
	assert_null(t->reply.error);
	talk_answer(t, tag[x], tag[y], talk_body(t, addr[y], 4000, proto, *attrs ? key : ""));
	assert_null(t->reply.error);
}

static const struct media_stream_cfg *stream_of(const struct talk *t, int who)
{
	for (uint32_t k = 0; k < 2 * MOCK_MAX; k++)
		if (t->m->stream_set[k] && t->m->stream_cfg[k].rtp &&
			t->m->stream_cfg[k].remote.addr[3] == who + 1)
			return &t->m->stream_cfg[k];
	fail_msg("%s has no stream", tag[who]);
	return NULL;
}

/* The receiver of each party's packets: "badc", - for none. */
static void speak(const struct talk *t, const char *want)
{
	char got[5] = "----";

	for (int i = 0; i < 4; i++) {
		uint32_t to = stream_of(t, i)->rtp_to;

		assert_int_equal(to == MEDIA_NONE, stream_of(t, i)->rtcp_to == MEDIA_NONE);
		if (to != MEDIA_NONE)
			got[i] = *tag[t->m->stream_cfg[to].remote.addr[3] - 1];
	}
	assert_string_equal(got, want);
}

static const char *join(
	struct talk *t, const char *from, const char *to, const char *other, bool one)
{
	struct ng_request r = talk_request(from, to, "");

	r.to_call_id = str_from(other);
	r.flags = one ? 1ull << NG_FLAG_DIRECTIONAL : 0;
	talk_pool(t);
	calls_connect(t->c, t->p, &r, t->now, &t->reply);
	mock_relay_check(t->m);
	return t->reply.error;
}

static void parties_of_a_call_are_joined(void **state)
{
	struct talk t;

	(void)state;
	talk_start(&t);
	assert_string_equal(join(&t, "a", "b", "", false), "Unknown call-id");
	pair(&t, 0, 1, "RTP/AVP", "");
	pair(&t, 2, 3, "RTP/SAVP", "a=crypto:1 AES_CM_128_HMAC_SHA1_80 " K80A "\r\n");
	speak(&t, "badc");
	assert_null(join(&t, "a", "d", "call", false));
	speak(&t, "d--a");
	assert_null(join(&t, "d", "a", "", false));
	speak(&t, "d--a");
	/* A new exchange within a's dialog restores the flow once it is answered. */
	talk_offer(&t, "a", "b", talk_body(&t, addr[0], 4000, "RTP/AVP", ""));
	assert_null(t.reply.error);
	assert_int_equal(t.m->stream_cfg[stream_of(&t, 0)->rtp_to].remote.addr[3], 4);
	talk_answer(&t, "a", "b", talk_body(&t, addr[1], 4000, "RTP/AVP", ""));
	assert_null(t.reply.error);
	assert_int_equal(t.m->stream_cfg[stream_of(&t, 0)->rtp_to].remote.addr[3], 2);
	assert_int_equal(t.m->stream_cfg[stream_of(&t, 1)->rtp_to].remote.addr[3], 1);
	assert_null(join(&t, "a", "d", "", false));
	speak(&t, "d--a");
	assert_null(join(&t, "b", "c", "", true));
	speak(&t, "dc-a");
	assert_null(join(&t, "c", "b", "", true));
	speak(&t, "dcba");
	talk_end(&t);
}

static void what_cannot_be_joined_stays_as_it_is(void **state)
{
	static const struct {
		const char *from, *to, *call, *error;
	} T[] = {
		{"a", "x", "", "Invalid dialogue association"},
		{"x", "a", "", "Invalid dialogue association"},
		{"a", "a", "", "Invalid dialogue association"},
		{"a", "e", "", "Invalid dialogue association"}, /* unanswered */
		{"a", "c", "other", "Not supported: parties of two calls are not connected"},
	};
	struct talk t;

	(void)state;
	talk_start(&t);
	pair(&t, 0, 1, "RTP/AVP", "");
	pair(&t, 2, 3, "RTP/AVP", "");
	talk_offer(&t, "e", "", talk_body(&t, "192.0.2.5", 4000, "RTP/AVP", ""));
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		assert_string_equal(join(&t, T[i].from, T[i].to, T[i].call, false), T[i].error);
		speak(&t, "badc");
	}
	talk_end(&t);
}

static void media_that_are_passed_through_are_not_joined(void **state)
{
	static const char line[] = "a=crypto:1 AES_CM_128_HMAC_SHA1_80 " K80A "\r\n";
	struct ng_request r;
	struct talk t;

	(void)state;
	talk_start(&t);
	pair(&t, 2, 3, "RTP/AVP", "");
	r = talk_request("a", "", talk_body(&t, addr[0], 4000, "RTP/SAVP", line));
	r.flags = 1ull << NG_FLAG_PASSTHROUGH;
	talk_send(&t, &r, false);
	assert_null(t.reply.error);
	talk_answer(&t, "a", "b",
		talk_body(&t, addr[1], 4000, "RTP/SAVP",
			"a=crypto:1 AES_CM_128_HMAC_SHA1_80 " K80B "\r\n"));
	assert_null(t.reply.error);
	assert_string_equal(join(&t, "c", "a", "", false),
		"Not supported: media that are passed through cannot be connected");
	speak(&t, "badc");
	talk_end(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parties_of_a_call_are_joined),
		cmocka_unit_test(what_cannot_be_joined_stays_as_it_is),
		cmocka_unit_test(media_that_are_passed_through_are_not_joined),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
