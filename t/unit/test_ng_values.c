/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ng's words that change the SDP or the whole call and need no codec: the SDP passed on, the answer
 * and the warnings. Requests are written as scripts write them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#include "call/call.h"
#include "call_talk.h"
#include "offer/exchange.h"

#define A      "192.0.2.1"
#define B      "192.0.2.2"
#define L80    "AES_CM_128_HMAC_SHA1_80"
#define L32    "AES_CM_128_HMAC_SHA1_32"
#define VIDEO  "m=video 4002 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\n"
#define CHAT   "m=message 4004 TCP/MSRP *\r\n"
#define LINE80 "a=crypto:1 " L80 " " K80A "\r\n"
#define B80    "a=crypto:1 " L80 " " K80C "\r\n"
#define B32    "a=crypto:2 " L32 " " K80C "\r\n"
#define LINE32 "a=crypto:2 " L32 " " K80B "\r\n"

/* flags: as rtpp-flags. */
static void say(
	struct talk *t, const char *command, const char *to, const char *flags, const char *body)
{
	struct ngval *msg;
	struct ng_request r;

	talk_pool(t);
	msg = ngval_dict(t->p);
	ngval_add_str(t->p, msg, STR("command"), str_from(command));
	ngval_add_str(t->p, msg, STR("call-id"), STR("call"));
	ngval_add_str(t->p, msg, STR("from-tag"), STR("a"));
	ngval_add_str(t->p, msg, STR("to-tag"), str_from(to));
	ngval_add_str(t->p, msg, STR("sdp"), str_from(body));
	ngval_add_str(t->p, msg, STR("rtpp-flags"), str_from(flags));
	assert_int_equal(ng_request_parse(&r, t->p, msg), 0);
	t->sdp = NULL;
	if (r.command == NG_SUBSCRIBE_REQUEST)
		calls_subscribe(t->c, t->p, &r, t->now, &t->reply, ngval_dict(t->p));
	else if (r.command == NG_ANSWER)
		calls_answer(t->c, t->p, &r, t->now, &t->reply);
	else
		calls_offer(t->c, t->p, &r, t->now, &t->reply);
	mock_relay_check(t->m);
}

static bool has(const struct talk *t, const char *text)
{
	return t->reply.sdp.s && memmem(t->reply.sdp.s, t->reply.sdp.len, text, strlen(text));
}

#define PLAIN_VIDEO "m=video 5002 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\n"

/* Prints the m= lines of the last reply, with ports as 0 or 1. */
static const char *media_of(struct talk *t)
{
	struct str rest = t->reply.sdp, text = STR("");

	while (rest.len) {
		struct str line = str_trim(str_cut(&rest, '\n')), kind = str_cut(&line, ' ');

		if (str_starts(kind, STR("m=")))
			text = pool_printf(t->p, STR_FMT "%s" STR_FMT " %d", STR_ARG(text),
				text.len ? "," : "", STR_ARG(kind),
				!str_eq(str_cut(&line, ' '), STR("0")));
	}
	return text.s;
}

/* Rows are requests to one call, in order. A request of the other side has the other direction. */
static void media_of_a_kind_are_not_offered_on(void **state)
{
	static const struct {
		char who;
		const char *flags, *media, *told; /* after the audio */
		uint32_t ports;
	} T[] = {
		{'a', "sdp-media-remove=[video message]", VIDEO CHAT, "m=audio 1", 2},
		/* m-lines unknown to the other side are refused on its behalf */
		{'B', "", "", "m=audio 1,m=video 0,m=message 0", 2},
		/* it offers its own media, after the m-lines it does not know */
		{'b', "", PLAIN_VIDEO, "m=audio 1,m=video 0,m=message 0,m=video 1", 4},
		{'A', "", "m=video 0 RTP/AVP 96\r\nm=message 0 TCP/MSRP *\r\n" VIDEO,
			"m=audio 1,m=video 1", 4},
		/* too late to be withheld: the other side's m-lines must keep their places */
		{'a', "", VIDEO CHAT VIDEO, "m=audio 1,m=video 1", 4},
		{'B', "", PLAIN_VIDEO, "m=audio 1,m=video 0,m=message 0,m=video 1", 4},
		/* m-lines it knows keep their places */
		{'a', "sdp-media-remove-video", VIDEO CHAT VIDEO, "m=audio 1,m=video 0", 4},
		{'B', "", "m=video 0 RTP/AVP 96\r\n", "m=audio 1,m=video 0,m=message 0,m=video 0",
			2},
	};
	struct talk t;

	(void)state;
	talk_start(&t);
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		bool b = T[i].who == 'b' || T[i].who == 'B';
		const char *body = talk_body(&t, b ? B : A, 4000, "RTP/AVP", T[i].media);

		talk_pool(&t);
		if (T[i].who == 'a')
			say(&t, "offer", i ? "b" : "", T[i].flags, body);
		else if (T[i].who == 'B')
			say(&t, "answer", "b", T[i].flags, body);
		else if (T[i].who == 'b')
			talk_offer(&t, "b", "a", body);
		else
			talk_answer(&t, "b", "a", body);
		assert_null(t.reply.error);
		assert_int_equal(t.reply.warning.len, 0);
		if (strcmp(media_of(&t), T[i].told) != 0 || t.m->ports != T[i].ports)
			fail_msg("row %zu: %s, %u ports", i, media_of(&t), t.m->ports);
	}
	talk_end(&t);
}

/* If no m-line follows, a later offer without the word adds it as an m-line of its own. */
static void media_that_were_left_out_can_come_later(void **state)
{
	struct talk t;

	(void)state;
	talk_start(&t);
	say(&t, "offer", "", "sdp-media-remove=[video other]",
		talk_body(&t, A, 4000, "RTP/AVP", VIDEO "m=smell 4004 RTP/AVP 97\r\n"));
	assert_string_equal(media_of(&t), "m=audio 1");
	say(&t, "answer", "b", "", talk_body(&t, B, 5000, "RTP/AVP", ""));
	assert_true(has(&t, "m=video 0 RTP/AVP 96\r\n"));
	assert_true(has(&t, "m=smell 0 RTP/AVP 97\r\n"));
	say(&t, "offer", "b", "",
		talk_body(&t, A, 4000, "RTP/AVP", VIDEO "m=smell 4004 RTP/AVP 97\r\n"));
	assert_string_equal(media_of(&t), "m=audio 1,m=video 1,m=smell 1");
	assert_int_equal(t.m->ports, 6);
	talk_end(&t);
}

/* An SDP may have 64 m-lines, including those withheld from the other side. */
static void what_is_hidden_counts_among_m_lines(void **state)
{
	char more[SDP_MAX_MEDIA * 40] = "";
	struct talk t;

	(void)state;
	talk_start(&t);
	say(&t, "offer", "", "sdp-media-remove=video", talk_body(&t, A, 4000, "RTP/AVP", VIDEO));
	say(&t, "answer", "b", "", talk_body(&t, B, 5000, "RTP/AVP", ""));
	assert_null(t.reply.error);
	for (int i = 1; i < SDP_MAX_MEDIA; i++)
		strcat(more, "m=audio 5000 RTP/AVP 0\r\n");
	talk_offer(&t, "b", "a", talk_body(&t, B, 5000, "RTP/AVP", more));
	assert_string_equal(
		t.reply.error, "Too many m= lines, including those hidden from the sender");
	talk_end(&t);
}

static void media_get_ids_where_they_have_none(void **state)
{
	struct talk t;

	(void)state;
	talk_start(&t);
	say(&t, "offer", "", "generate-mid",
		talk_body(&t, A, 4000, "RTP/AVP", VIDEO "a=mid:v\r\nm=audio 4006 RTP/AVP 0\r\n"));
	assert_null(t.reply.error);
	assert_true(has(&t, "a=mid:1\r\nm=video"));
	assert_true(has(&t, "a=mid:v\r\n"));
	assert_false(has(&t, "a=mid:2\r\n"));
	assert_true(has(&t, "a=mid:3\r\n"));
	say(&t, "offer", "", "", talk_body(&t, A, 4000, "RTP/AVP", ""));
	assert_false(has(&t, "a=mid"));
	talk_end(&t);
}

static void a_subscription_may_begin_inactive(void **state)
{
	struct talk t;

	(void)state;
	talk_start(&t);
	say(&t, "offer", "", "inactive", talk_body(&t, A, 4000, "RTP/AVP", ""));
	assert_non_null(strstr(t.reply.warning.s, "applies only to subscribe request"));
	assert_false(has(&t, "a=inactive"));
	say(&t, "answer", "b", "", talk_body(&t, B, 5000, "RTP/AVP", ""));
	say(&t, "subscribe request", "l", "inactive", "");
	assert_null(t.reply.error);
	assert_int_equal(t.reply.warning.len, 0);
	assert_true(has(&t, "a=inactive"));
	assert_false(has(&t, "a=sendonly"));
	say(&t, "subscribe request", "l", "", "");
	assert_true(has(&t, "a=sendonly"));
	talk_end(&t);
}

/* The stream that receives l's RTCP, sent to the port in the SDP for a's terminal: its RTCP port
 * or, with rtcp-mux, its RTP port. */
static void a_subscribers_rtcp_goes_back_if_it_may(void **state)
{
	static const struct {
		const char *flags, *attrs;
		int to; /* 0: nowhere, 1: an RTCP stream, 2: an RTP stream */
	} T[] = {{"", "", 0}, {"RTCP-mirror", "", 1}, {"mirror-RTCP", "a=rtcp-mux\r\n", 2}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		const struct media_stream_cfg *ear = NULL, *source = NULL;
		struct ng_request r;
		struct talk t;

		talk_start(&t);
		say(&t, "offer", "", "", talk_body(&t, A, 4000, "RTP/AVP", T[i].attrs));
		say(&t, "answer", "b", "", talk_body(&t, B, 5000, "RTP/AVP", T[i].attrs));
		say(&t, "subscribe request", "l", T[i].flags, "");
		assert_null(t.reply.error);
		assert_int_equal(t.reply.warning.len, 0);
		r = talk_request("", "l", talk_body(&t, "192.0.2.3", 6000, "RTP/AVP", ""));
		calls_subscribe_answer(t.c, t.p, &r, t.now, &t.reply);
		assert_null(t.reply.error);
		for (uint32_t k = 0; k < 2 * MOCK_MAX; k++)
			if (t.m->stream_set[k] && t.m->stream_cfg[k].rtcp &&
				t.m->stream_cfg[k].remote.addr[3] == 3)
				ear = &t.m->stream_cfg[k];
		assert_non_null(ear);
		assert_int_equal(ear->rtp_to, MEDIA_NONE);
		assert_int_equal(ear->rtcp_to != MEDIA_NONE, T[i].to != 0);
		if (T[i].to) {
			source = &t.m->stream_cfg[ear->rtcp_to];
			assert_int_equal(source->remote.addr[3], 1);
			assert_int_equal(source->rtp, T[i].to == 2);
			assert_true(source->rtcp);
		}
		talk_end(&t);
	}
}

/* Gates and recordings of the streams after an offer and an answer with these words. */
static void words_of_a_call_reach_its_streams(void **state)
{
	static const struct {
		const char *offer, *answer;
		uint8_t a, b;
	} T[] = {
		{"", "", 0, 0},
		{"drop-traffic=start", "", MEDIA_GATE_DROP, MEDIA_GATE_DROP},
		{"", "drop-traffic-start", MEDIA_GATE_DROP, MEDIA_GATE_DROP},
		{"drop-traffic=start", "drop-traffic=stop", 0, 0},
		{"media-echo=sinkhole", "", MEDIA_GATE_DROP, MEDIA_GATE_DROP},
		{"block-DTMF", "", MEDIA_GATE_DTMF, 0},
		{"", "block DTMF", 0, 0}, /* there it is two words */
		{"", "block-DTMF", 0, MEDIA_GATE_DTMF},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		uint8_t got[2] = {0};
		struct talk t;

		talk_start(&t);
		say(&t, "offer", "", T[i].offer, talk_body(&t, A, 4000, "RTP/AVP", ""));
		say(&t, "answer", "b", T[i].answer, talk_body(&t, B, 5000, "RTP/AVP", ""));
		assert_null(t.reply.error);
		for (uint32_t k = 0; k < 2 * MOCK_MAX; k++)
			if (t.m->stream_set[k] && t.m->stream_cfg[k].rtp)
				got[t.m->stream_cfg[k].remote.addr[3] - 1] =
					t.m->stream_cfg[k].gate;
		if (got[0] != T[i].a || got[1] != T[i].b)
			fail_msg("row %zu: %#x %#x", i, got[0], got[1]);
		talk_end(&t);
	}
}

/* The receiver of each side's RTP: its sender, the other side, or none. Rows are requests to one
 * call, in order. */
static void echoed_media_go_back_to_their_sender(void **state)
{
	static const struct {
		const char *say, *flags, *a, *b;
	} T[] = {
		{"offer", "media-echo=forward", NULL, NULL},
		{"answer", "", "-", "b"},
		{"offer", "media-echo=backwards", "a", "-"},
		{"answer", "", "a", "-"},
		{"offer", "media-echo-both", "a", "b"},
		{"answer", "", "a", "b"},
		{"answer", "media-echo=forward", "a", "-"}, /* may change the offerer */
		{"offer", "", "b", "a"},
		{"answer", "media-echo=backwards", "-", "b"},
		{"offer", "", "b", "a"},
	};
	struct talk t;

	(void)state;
	talk_start(&t);
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		const char *got[2] = {"", ""}, *const want[2] = {T[i].a, T[i].b};
		bool answer = *T[i].say == 'a';

		say(&t, T[i].say, i ? "b" : "", T[i].flags,
			talk_body(&t, answer ? B : A, answer ? 5000 : 4000, "RTP/AVP", ""));
		assert_null(t.reply.error);
		assert_int_equal(t.reply.warning.len, 0);
		for (uint32_t k = 0; k < 2 * MOCK_MAX && T[i].a; k++) {
			const struct media_stream_cfg *s = &t.m->stream_cfg[k];

			if (!t.m->stream_set[k] || !s->rtp)
				continue;
			got[s->remote.addr[3] - 1] = s->rtp_to == MEDIA_NONE     ? "-"
				: t.m->stream_cfg[s->rtp_to].remote.addr[3] == 1 ? "a"
										 : "b";
			/* reports follow their media */
			assert_int_equal(s->rtcp_to == MEDIA_NONE,
				strcmp(got[s->remote.addr[3] - 1],
					s->remote.addr[3] == 1 ? "b" : "a") != 0);
		}
		for (int k = 0; k < 2 && T[i].a; k++)
			if (strcmp(got[k], want[k]) != 0)
				fail_msg("row %zu: %c to %s", i, 'a' + k, got[k]);
	}
	talk_end(&t);
}

/* A terminal cannot decrypt its own packets. */
static void what_is_passed_through_is_not_echoed(void **state)
{
	struct talk t;

	(void)state;
	talk_start(&t);
	say(&t, "offer", "", "passthrough media-echo=forward",
		talk_body(&t, A, 4000, "RTP/SAVP", LINE80));
	assert_null(t.reply.error);
	assert_true(has(&t, "a=crypto:1 " L80 " "));
	assert_false(has(&t, K80A));
	assert_non_null(memmem(t.reply.warning.s, t.reply.warning.len, "echoed", 6));
	say(&t, "offer", "", "passthrough", talk_body(&t, A, 4000, "RTP/SAVP", LINE80));
	assert_true(has(&t, K80A));
	say(&t, "answer", "b", "media-echo=forward",
		talk_body(&t, B, 5000, "RTP/SAVP", "a=crypto:1 " L80 " " K80B "\r\n"));
	assert_null(t.reply.error);
	assert_true(t.reply.warning.len > 0);
	for (uint32_t k = 0; k < 2 * MOCK_MAX; k++)
		if (t.m->stream_set[k] && t.m->stream_cfg[k].rtp)
			assert_int_not_equal(t.m->stream_cfg[k].rtp_to, k);
	talk_end(&t);
}

/* Only if no interface has this name. */
static void old_names_of_interfaces_choose_a_family(void **state)
{
	static const struct {
		const char *flags, *conn;
		bool warns;
	} T[] = {
		{"internal external", "c=IN IP6 ", false},
		{"external internal", "c=IN IP4 ", false},
		{"direction=external direction=nowhere", "c=IN IP6 ", true},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct talk t;

		talk_start(&t);
		say(&t, "offer", "", T[i].flags, talk_body(&t, A, 4000, "RTP/AVP", ""));
		assert_null(t.reply.error);
		if (!has(&t, T[i].conn) || !t.reply.warning.len == T[i].warns)
			fail_msg("row %zu: %.*s (%.*s)", i, (int)t.reply.sdp.len, t.reply.sdp.s,
				(int)t.reply.warning.len, t.reply.warning.s);
		talk_end(&t);
	}
}

/* Streams after these offers in one call, each answered without words. The daemon's default is
 * 8. */
static void an_offer_says_or_resets_tos(void **state)
{
	static const struct {
		const char *flags;
		uint8_t tos;
	} T[] = {{"", 8}, {"TOS=184", 184}, {"TOS=-1", 184}, {"", 8}, {"TOS=0", 0}, {"TOS=256", 8}};
	struct talk t;

	(void)state;
	talk_start(&t);
	t.policy.tos = 8;
	calls_set_policy(t.c, &t.policy);
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		say(&t, "offer", i ? "b" : "", T[i].flags, talk_body(&t, A, 4000, "RTP/AVP", ""));
		say(&t, "answer", "b", "", talk_body(&t, B, 5000, "RTP/AVP", ""));
		assert_null(t.reply.error);
		for (uint32_t k = 0; k < 2 * MOCK_MAX; k++)
			if (t.m->stream_set[k] && t.m->stream_cfg[k].tos != T[i].tos)
				fail_msg("row %zu: %u", i, t.m->stream_cfg[k].tos);
	}
	talk_end(&t);
}

/* SDES=require in an offer binds the offerer, in an answer the answerer. */
static void a_minimum_refuses_what_is_below(void **state)
{
	static const struct {
		const char *offer_flags, *proto, *lines;
		bool taken;
	} T[] = {
		{"", "RTP/AVP", "", true}, {"SDES-require:" L80 ";", "RTP/AVP", "", false},
		{"SDES-require:" L80 ";", "RTP/SAVP", LINE80, true},
		{"SDES-require:" L80 ";", "RTP/SAVP", LINE32, false},
		{"SDES-require:" L80 ";", "RTP/SAVP", LINE80 LINE32, true},
		{"SDES=[require:" L80 ";" L32 "]", "RTP/SAVP", LINE32, true},
		{"SDES-require:ROT13;", "RTP/SAVP", LINE80, false}, /* a misspelt value refuses */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct talk t;

		talk_start(&t);
		say(&t, "offer", "", T[i].offer_flags,
			talk_body(&t, A, 4000, T[i].proto, T[i].lines));
		if (!t.reply.error != T[i].taken)
			fail_msg("row %zu: %s", i, t.reply.error);
		if (!T[i].taken)
			assert_string_equal(t.reply.error, "No common crypto suite");
		talk_end(&t);
		/* The other way round: the answerer must comply. */
		talk_start(&t);
		say(&t, "offer", "", "OSRTP-offer", talk_body(&t, A, 4000, "RTP/AVP", ""));
		assert_null(t.reply.error);
		if (!strcmp(T[i].proto, "RTP/AVP")) {
			say(&t, "answer", "b", T[i].offer_flags,
				talk_body(&t, B, 5000, "RTP/AVP", ""));
			assert_int_equal(!t.reply.error, T[i].taken);
		}
		talk_end(&t);
	}
}

static void an_answer_is_held_to_the_minimum(void **state)
{
	static const struct {
		const char *flags, *line;
		bool taken;
	} T[] = {
		{"", B32, true},
		{"SDES-require:" L80, B80, true},
		{"SDES-require:" L80, B32, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct talk t;

		talk_start(&t);
		say(&t, "offer", "", "", talk_body(&t, A, 4000, "RTP/SAVP", LINE80 LINE32));
		assert_null(t.reply.error);
		say(&t, "answer", "b", T[i].flags, talk_body(&t, B, 5000, "RTP/SAVP", T[i].line));
		if (!t.reply.error != T[i].taken)
			fail_msg("row %zu: %s", i, t.reply.error);
		talk_end(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(media_of_a_kind_are_not_offered_on),
		cmocka_unit_test(media_that_were_left_out_can_come_later),
		cmocka_unit_test(what_is_hidden_counts_among_m_lines),
		cmocka_unit_test(media_get_ids_where_they_have_none),
		cmocka_unit_test(a_subscription_may_begin_inactive),
		cmocka_unit_test(a_subscribers_rtcp_goes_back_if_it_may),
		cmocka_unit_test(words_of_a_call_reach_its_streams),
		cmocka_unit_test(echoed_media_go_back_to_their_sender),
		cmocka_unit_test(what_is_passed_through_is_not_echoed),
		cmocka_unit_test(an_offer_says_or_resets_tos),
		cmocka_unit_test(old_names_of_interfaces_choose_a_family),
		cmocka_unit_test(a_minimum_refuses_what_is_below),
		cmocka_unit_test(an_answer_is_held_to_the_minimum),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
