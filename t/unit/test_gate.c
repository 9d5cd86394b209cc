/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Blocked media: what the commands mean by their selectors, and that a blocked packet does not leave but is received all the same. */
#include "media_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "call_talk.h"

enum { VOICE = 8, EVENT = 101 };

/* --- Media ---------------------------------------------------------------------------------------------------------- */

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
	r->in[r->n - 1].len = rig_protect(
		r, p, plain, sizeof(plain), 12, r->suite_a ? A_TX : 0, r->suite_a, index, false);
	rig_run(r);
	if (r->outs == 0)
		assert_int_equal(r->in[0].verdict, MEDIA_DROP_BLOCKED);
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

/* --- Calls ---------------------------------------------------------------------------------------------------------- */

#define BODY(addr)                                                                \
	"v=0\r\no=- 1 1 IN IP4 " addr "\r\ns=-\r\nc=IN IP4 " addr "\r\nt=0 0\r\n" \
	"m=audio 4000 RTP/AVP 8 101\r\na=rtpmap:101 telephone-event/8000\r\na=rtpmap:8 PCMA/8000\r\n"

static uint8_t gate_of(struct talk *t, uint8_t octet)
{
	for (uint32_t i = 0; i < 2 * MOCK_MAX; i++) {
		const struct media_stream_cfg *s = &t->m->stream_cfg[i];

		if (t->m->stream_set[i] && s->rtp && s->remote.addr[3] == octet) {
			assert_int_equal(s->events[1], 1ull << (EVENT - 64));
			assert_int_equal(s->events[0], 0);
			return s->gate;
		}
	}
	fail_msg("no stream of 192.0.2.%u", octet);
	return 0;
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
		calls_gate(t.c, t.p, &r, MEDIA_GATE_MEDIA, true, t.now, &t.reply);
		if (rows[i].error)
			assert_string_equal(t.reply.error, rows[i].error);
		else
			assert_null(t.reply.error);
		assert_int_equal(gate_of(&t, 1), rows[i].a);
		assert_int_equal(gate_of(&t, 2), rows[i].b);
		/* It survives a re-INVITE, and goes when it is taken back. */
		talk_offer(&t, "a", "b", BODY("192.0.2.1"));
		talk_answer(&t, "a", "b", BODY("192.0.2.2"));
		assert_int_equal(gate_of(&t, 1), rows[i].a);
		r = talk_request("", "", "");
		calls_gate(t.c, t.p, &r, MEDIA_GATE_MEDIA, false, t.now, &t.reply);
		assert_null(t.reply.error);
		assert_int_equal(gate_of(&t, 1), 0);
		assert_int_equal(gate_of(&t, 2), 0);
		r.call_id = STR("another");
		calls_gate(t.c, t.p, &r, MEDIA_GATE_MEDIA, false, t.now, &t.reply);
		assert_string_equal(t.reply.error, "Unknown call-id");
		talk_end(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_blocked_packet_is_received_but_does_not_leave),
		cmocka_unit_test(rtcp_of_a_blocked_stream_leaves),
		cmocka_unit_test(commands_mean_the_sides_that_they_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
