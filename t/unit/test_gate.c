/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Blocked media: which media the commands select, and that a blocked packet is received but not
 * sent. */
#include "media_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "call/call.h"
#include "call/call_int.h"
#include "call/dtmf_trigger.h"
#include "call_talk.h"
#include "offer/exchange.h"

enum { VOICE = 8, EVENT = 101 };

/* --- Media ------------------------------------------------------------------------------------ */

static void gate(struct rig *r, uint8_t bits)
{
	struct media_cmd cmd = rig_stream_cmd(A, PORT_A, 0, B, B_RTCP, "192.0.2.1:4000");

	cmd.stream.rtp = cmd.stream.rtcp = true;
	cmd.stream.gate = bits;
	cmd.stream.events[EVENT / 64] = 1ull << EVENT % 64;
	assert_int_equal(media_command(r->m, &cmd), 0);
}

/* A's terminal sends a packet of this payload type; whether it left. */
static bool leaves(struct rig *r, uint8_t type, uint64_t index)
{
	uint8_t plain[172], *p = rig_slot(r, A, PORT_A);

	rig_plain_rtp(plain, 7, index);
	plain[1] = type;
	r->in[r->n - 1].len = rig_protect(r, p,
		(struct rig_plain){
			plain, sizeof(plain), 12, r->suite_a ? A_TX : 0, r->suite_a, index, false});
	rig_run(r);
	if (r->outs == 0)
		assert_int_equal(r->in[0].verdict, PACKET_DROP_BLOCKED);
	return r->outs == 1;
}

static void a_blocked_packet_is_received_but_does_not_leave(void **state)
{
	static const enum srtp_suite_id suites[] = {SUITE_AES_CM_128_80, SUITE_PLAIN};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(suites); i++) {
		struct rig *r = rig_new(suites[i], SUITE_AES_CM_128_32, 0);
		uint64_t index = 65530, received;

		assert_true(leaves(r, VOICE, index++));
		gate(r, MEDIA_GATE_DTMF);
		assert_true(leaves(r, VOICE, index++));
		assert_false(leaves(r, EVENT, index++));
		gate(r, MEDIA_GATE_MEDIA);
		/* Across the end of the sequence numbers: the index must not be lost. */
		for (int k = 0; k < 20; k++)
			assert_false(leaves(r, VOICE, index++));
		received = atomic_load(&media_stream_counters(r->m, A)->packets);
		assert_int_equal(received, 23);
		gate(r, 0);
		assert_true(leaves(r, VOICE, index++));
		assert_true(leaves(r, EVENT, index++));
		rig_free(r);
	}
}

static void rtcp_of_a_blocked_stream_leaves(void **state)
{
	struct rig *r = rig_new(SUITE_AES_CM_128_80, SUITE_AES_CM_128_32, 0);

	(void)state;
	gate(r, MEDIA_GATE_MEDIA | MEDIA_GATE_DTMF);
	rig_send_rtcp(r, 7, 1);
	rig_run(r);
	assert_int_equal(r->outs, 1);
	rig_free(r);
}

/* --- Calls ------------------------------------------------------------------------------------ */

#define BODY(addr)                                                                \
	"v=0\r\no=- 1 1 IN IP4 " addr "\r\ns=-\r\nc=IN IP4 " addr "\r\nt=0 0\r\n" \
	"m=audio 4000 RTP/AVP 8 101\r\na=rtpmap:101 telephone-event/8000\r\na=rtpmap:8 PCMA/8000\r\n"

static const struct media_stream_cfg *stream_of(struct talk *t, uint8_t octet)
{
	for (uint32_t i = 0; i < 2 * MOCK_MAX; i++) {
		const struct media_stream_cfg *s = &t->m->stream_cfg[i];

		if (t->m->stream_set[i] && s->rtp && s->remote.addr[3] == octet)
			return s;
	}
	fail_msg("no stream of 192.0.2.%u", octet);
	return NULL;
}

static uint8_t gate_of(struct talk *t, uint8_t octet)
{
	const struct media_stream_cfg *s = stream_of(t, octet);

	assert_int_equal(s->events[1], 1ull << (EVENT - 64));
	assert_int_equal(s->events[0], 0);
	return s->gate;
}

static void commands_mean_the_sides_that_they_name(void **state)
{
	static const struct {
		const char *tag, *label, *address;
		bool all;
		uint8_t a, b;
		const char *error;
	} rows[] = {
		{"a", "", "", false, MEDIA_GATE_MEDIA, 0, NULL},
		{"b", "", "", false, 0, MEDIA_GATE_MEDIA, NULL},
		{"", "caller", "", false, MEDIA_GATE_MEDIA, 0, NULL},
		{"", "", "192.0.2.2", false, 0, MEDIA_GATE_MEDIA, NULL},
		{"b", "caller", "", false, MEDIA_GATE_MEDIA, 0, NULL},
		{"a", "", "192.0.2.2", false, 0, MEDIA_GATE_MEDIA, NULL},
		{"b", "caller", "192.0.2.2", false, MEDIA_GATE_MEDIA, 0, NULL},
		{"", "", "", false, MEDIA_GATE_MEDIA, MEDIA_GATE_MEDIA, NULL},
		{"a", "", "", true, MEDIA_GATE_MEDIA, MEDIA_GATE_MEDIA, NULL},
		{"c", "", "", false, 0, 0, "No matching participant in the call"},
		{"", "nobody", "", false, 0, 0, "No matching participant in the call"},
		{"", "", "192.0.2.77", false, 0, 0, "No matching participant in the call"},
		{"", "", "nonsense", false, 0, 0, "Malformed address in message"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct ng_request r = talk_request("a", "", BODY("192.0.2.1"));
		struct talk t;

		talk_start(&t);
		r.label = STR("caller");
		talk_send(&t, &r, false);
		talk_answer(&t, "a", "b", BODY("192.0.2.2"));
		assert_null(t.reply.error);
		r = talk_request(rows[i].tag, "", "");
		r.label = str_from(rows[i].label);
		r.address = str_from(rows[i].address);
		r.flags = rows[i].all ? 1ull << NG_FLAG_ALL : 0;
		talk_pool(&t);
		calls_gate(
			t.c, t.p, &r, (struct calls_gate){MEDIA_GATE_MEDIA, true}, t.now, &t.reply);
		if (rows[i].error)
			assert_string_equal(t.reply.error, rows[i].error);
		else
			assert_null(t.reply.error);
		assert_int_equal(gate_of(&t, 1), rows[i].a);
		assert_int_equal(gate_of(&t, 2), rows[i].b);
		/* The block survives a re-INVITE and ends when it is removed. */
		talk_offer(&t, "a", "b", BODY("192.0.2.1"));
		talk_answer(&t, "a", "b", BODY("192.0.2.2"));
		assert_int_equal(gate_of(&t, 1), rows[i].a);
		r = talk_request("", "", "");
		r.flags = 1ull << NG_FLAG_ALL;
		calls_gate(t.c, t.p, &r, (struct calls_gate){MEDIA_GATE_MEDIA, false}, t.now,
			&t.reply);
		assert_null(t.reply.error);
		assert_int_equal(gate_of(&t, 1), 0);
		assert_int_equal(gate_of(&t, 2), 0);
		r.call_id = STR("another");
		calls_gate(t.c, t.p, &r, (struct calls_gate){MEDIA_GATE_MEDIA, false}, t.now,
			&t.reply);
		assert_string_equal(t.reply.error, "Unknown call-id");
		talk_end(&t);
	}
}

static struct ng_request block(struct str trigger)
{
	struct ng_request r = talk_request("a", "", "");

	r.dtmf.trigger = trigger;
	r.dtmf.end = trigger.len ? STR("#") : (struct str){0};
	r.dtmf.security = NG_DTMF_SILENCE;
	return r;
}

/* A terminal that knows the digits cannot end what the operator has blocked at once. */
static void digits_do_not_end_a_block_by_command(void **state)
{
	static const char *const pressed[] = {"*", "*#", "#", "**##"};
	static const char all[] = "0123456789*#";

	(void)state;
	for (size_t i = 0; i < 2 * ARRAY_LEN(pressed); i++) {
		struct calls_gate on = {MEDIA_GATE_DTMF, true};
		struct ng_request r = block(STR("*"));
		struct talk t;

		talk_start(&t);
		talk_offer(&t, "a", "", BODY("192.0.2.1"));
		talk_answer(&t, "a", "b", BODY("192.0.2.2"));
		talk_pool(&t);
		calls_gate(t.c, t.p, &r, on, t.now, &t.reply);
		assert_null(t.reply.error);
		assert_int_equal(gate_of(&t, 1) & MEDIA_GATE_DTMF, 0);
		if (i % 2) {
			dtmf_digit(t.c, call_table_find(&t.c->table, STR("call")), 0, 10, t.now);
			assert_int_equal(gate_of(&t, 1) & MEDIA_GATE_DTMF, MEDIA_GATE_DTMF);
		}
		r = block((struct str){0});
		calls_gate(t.c, t.p, &r, on, t.now, &t.reply);
		assert_null(t.reply.error);
		for (const char *p = pressed[i / 2]; *p; p++)
			dtmf_digit(t.c, call_table_find(&t.c->table, STR("call")), 0,
				(uint8_t)(strchr(all, *p) - all), t.now);
		assert_int_equal(gate_of(&t, 1) & MEDIA_GATE_DTMF, MEDIA_GATE_DTMF);
		talk_end(&t);
	}
}

struct word { /* a command */
	const char *from, *to, *to_label;
	enum ng_all all;
	bool everybody, off;
};

static void say(struct talk *t, const struct word *w, uint8_t gate)
{
	struct ng_request r = talk_request(w->from, w->to ? w->to : "", "");

	r.to_label = str_from(w->to_label ? w->to_label : "");
	r.all = w->all;
	r.flags = w->everybody ? 1ull << NG_FLAG_ALL : 0;
	calls_gate(t->c, t->p, &r, (struct calls_gate){gate, !w->off}, t->now, &t->reply);
}

/* a calls b, and l listens to a. The table gives the gates of a, b, and l. */
static void calls_sides_and_flows_are_blocked_apart(void **state)
{
	enum { ON = MEDIA_GATE_MEDIA, TO = MEDIA_GATE_TO(MEDIA_GATE_MEDIA) };
	static const struct {
		struct word word[3];
		uint8_t a, b, l;
	} T[] = {
		{{{.from = ""}}, ON, ON, ON},
		{{{.from = "a"}}, ON, 0, 0},
		{{{.from = "a", .to = "b"}}, TO, 0, 0},
		{{{.from = "a", .to = "l"}}, 0, 0, TO},
		{{{.from = "a", .to_label = "ear"}}, 0, 0, TO},
		{{{.from = "a", .all = NG_ALL_OFFER_ANSWER}}, TO, 0, 0},
		{{{.from = "a", .all = NG_ALL_EXCEPT_OFFER_ANSWER}}, 0, 0, TO},
		{{{.from = "a", .all = NG_ALL_FLOWS}}, TO, 0, TO},
		{{{.from = "b", .to = "a"}}, 0, TO, 0},
		/* an unblock has the scope of its block: the call, a side or a flow */
		{{{.from = ""}, {.from = "a", .off = true}}, ON, ON, ON},
		{{{.from = "a"}, {.from = "", .off = true}}, ON, 0, 0},
		{{{.from = "a"}, {.from = "a", .to = "b", .off = true}}, ON, 0, 0},
		{{{.from = "a", .to = "b"}, {.from = "a", .off = true}}, TO, 0, 0},
		{{{.from = "a", .to = "b"}, {.from = "a", .to = "b", .off = true}}, 0, 0, 0},
		{{{.from = ""}, {.from = "a", .to = "l"},
			 {.from = "", .everybody = true, .off = true}},
			0, 0, 0},
		{{{.from = "a"}, {.from = "b", .to = "a"},
			 {.from = "", .everybody = true, .off = true}},
			0, 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct ng_request r;
		struct talk t;
		uint8_t a, b, l;

		talk_start(&t);
		talk_offer(&t, "a", "", BODY("192.0.2.1"));
		talk_answer(&t, "a", "b", BODY("192.0.2.2"));
		r = talk_request("a", "l", "");
		r.set_label = STR("ear");
		talk_pool(&t);
		calls_subscribe(t.c, t.p, &r, t.now, &t.reply, ngval_dict(t.p));
		assert_null(t.reply.error);
		r = talk_request("", "l", BODY("192.0.2.3"));
		calls_subscribe_answer(t.c, t.p, &r, t.now, &t.reply);
		assert_null(t.reply.error);
		for (int k = 0; k < 3 && T[i].word[k].from; k++) {
			say(&t, &T[i].word[k], MEDIA_GATE_MEDIA);
			assert_null(t.reply.error);
		}
		a = stream_of(&t, 1)->gate;
		b = stream_of(&t, 2)->gate;
		l = stream_of(&t, 3)->gate;
		if (a != T[i].a || b != T[i].b || l != T[i].l)
			fail_msg("row %zu: %#x %#x %#x", i, a, b, l);
		say(&t, &(struct word){.from = "a", .to = "nobody"}, MEDIA_GATE_MEDIA);
		assert_non_null(t.reply.error);
		talk_end(&t);
	}
}

#define FORMATS(formats, maps)                                                      \
	"v=0\r\no=- 1 1 IN IP4 192.0.2.2\r\ns=-\r\nc=IN IP4 192.0.2.2\r\nt=0 0\r\n" \
	"m=audio 4000 RTP/AVP " formats "\r\n" maps

static void silence_warns_of_codecs_that_have_none(void **state)
{
	static const struct {
		const char *answer;
		bool warned;
		uint8_t quiet;
	} T[] = {
		{FORMATS("0", ""), false, 11},
		{FORMATS("8 0", "a=rtpmap:8 PCMA/8000\r\n"), false, 11},
		{FORMATS("8 13 101", "a=rtpmap:101 telephone-event/8000\r\n"), false, 11},
		{FORMATS("9 0", "a=rtpmap:9 G722/8000\r\n"), false, 11},
		{FORMATS("0 18", ""), true, 11},
		{FORMATS("96", "a=rtpmap:96 opus/48000/2\r\n"), true, 11},
		{FORMATS("0", "a=rtpmap:0 G726-32/8000\r\n"), true, 10},
		{FORMATS("9", "a=rtpmap:9 L16/16000\r\n"), true, 3},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct talk t;

		talk_start(&t);
		talk_offer(&t, "a", "", FORMATS("0 8 9 18 96 101", ""));
		talk_answer(&t, "a", "b", T[i].answer);
		assert_null(t.reply.error);
		say(&t, &(struct word){.from = "a"}, MEDIA_GATE_QUIET);
		assert_null(t.reply.error);
		if (!!t.reply.warning.len != T[i].warned || stream_of(&t, 2)->quiet != T[i].quiet)
			fail_msg("row %zu: quiet %u, " STR_FMT, i, stream_of(&t, 2)->quiet,
				STR_ARG(t.reply.warning));
		/* without silenced media there is no warning */
		say(&t, &(struct word){.from = "a", .off = true}, MEDIA_GATE_QUIET);
		assert_int_equal(t.reply.warning.len, 0);
		say(&t, &(struct word){.from = "a"}, MEDIA_GATE_MEDIA);
		assert_int_equal(t.reply.warning.len, 0);
		talk_end(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_blocked_packet_is_received_but_does_not_leave),
		cmocka_unit_test(rtcp_of_a_blocked_stream_leaves),
		cmocka_unit_test(commands_mean_the_sides_that_they_name),
		cmocka_unit_test(digits_do_not_end_a_block_by_command),
		cmocka_unit_test(calls_sides_and_flows_are_blocked_apart),
		cmocka_unit_test(silence_warns_of_codecs_that_have_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
