/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Offers and answers between terminals with different laws of G.711: the codecs that each receives
 * in its SDP, and the conversions of the worker. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "call/law.h"
#include "call/call_int.h"
#include "call/table.h"
#include "call_talk.h"

#define CALLER "198.51.100.1"
#define CALLEE "198.51.100.2"
#define NONE   ""

/* test_sdp_filter.c and test_ng.c test the meaning of each operation. */
#define RULE(o, n)                                                \
	{                                                         \
		.op = SDP_CODEC_##o, .name = { n, sizeof(n) - 1 } \
	}

static const char *body(struct talk *t, const char *addr, const char *formats)
{
	return pool_printf(t->p,
		"v=0\r\no=- 42 7 IN IP4 %s\r\ns=-\r\nc=IN IP4 %s\r\nt=0 0\r\n"
		"m=audio 4000 RTP/AVP %s\r\n%s%sa=rtpmap:101 telephone-event/8000\r\na=ptime:20\r\n",
		addr, addr, formats, strstr(formats, "96") ? "a=rtpmap:96 PCMU/8000\r\n" : "",
		strstr(formats, "98") ? "a=rtpmap:98 opus/48000/2\r\n" : "")
		.s;
}

static struct str formats(const struct talk *t)
{
	return str_trim(t->sdp->media[0].formats);
}

static uint32_t convert(const struct talk *t, const char *tag)
{
	const struct call *c = call_table_find(&t->c->table, STR("call"));
	uint8_t at = call_side_by_tag(c, str_from(tag));
	const struct side *s = c->side[at == SIDE_NONE ? 1 : at]; /* the callee has no tag yet */

	return t->m->stream_cfg[s->leg[0]->port.rtp_stream].convert;
}

struct row {
	const char *offer;
	struct sdp_codec_rule rule[4];
	const char *told, *answer, *back;
	uint32_t from_a, from_b; /* MEDIA_CONVERT()s of the packets of each side */
};

#define U_A MEDIA_CONVERT(0, 8, XC_LAW_U_TO_A)
#define A_U MEDIA_CONVERT(8, 0, XC_LAW_A_TO_U)

static void talk_row(struct talk *t, const struct row *row)
{
	struct ng_request r;

	talk_pool(t);
	r = talk_request("a", "", body(t, CALLER, row->offer));
	r.sdp = (struct str){strdup(r.sdp.s), r.sdp.len};
	while (r.filter.codecs < ARRAY_LEN(row->rule) && row->rule[r.filter.codecs].name.s) {
		r.filter.codec[r.filter.codecs] = row->rule[r.filter.codecs];
		r.filter.codecs++;
	}
	talk_send(t, &r, false);
	free((void *)r.sdp.s);
	assert_null(t->reply.error);
	if (!str_eq(formats(t), str_from(row->told)))
		fail_msg("%s: told " STR_FMT, row->offer, STR_ARG(formats(t)));
	if (!row->answer)
		return;
	r = talk_request("a", "b", body(t, CALLEE, row->answer));
	r.sdp = (struct str){strdup(r.sdp.s), r.sdp.len};
	talk_send(t, &r, true);
	free((void *)r.sdp.s);
	assert_null(t->reply.error);
	if (!str_eq(formats(t), str_from(row->back)))
		fail_msg("%s, %s: answered " STR_FMT, row->offer, row->answer, STR_ARG(formats(t)));
	assert_int_equal(convert(t, "a"), row->from_a);
	assert_int_equal(convert(t, "b"), row->from_b);
}

static void the_offerer_is_answered_its_own_codec(void **state)
{
	static const struct row rows[] = {
		/* without rules nothing is transcoded */
		{"0 8 101", {{0}}, "0 8 101", "8 101", "8 101", 0, 0},
		/* the callee chooses */
		{"0 101", {RULE(TRANSCODE, "PCMA")}, "0 101 8", "8 101", "0 101", U_A, A_U},
		{"0 101", {RULE(TRANSCODE, "PCMA")}, "0 101 8", "0 101", "0 101", 0, 0},
		{"0 101", {RULE(TRANSCODE, "PCMA")}, "0 101 8", "0 8 101", "0 101", 0, A_U},
		{"0 101", {RULE(TRANSCODE, "PCMA")}, "0 101 8", "8 0 101", "0 101", 0, A_U},
		{"8 98 101", {RULE(TRANSCODE, "PCMU")}, "8 98 101 0", "0 98", "8 98", A_U, U_A},
		/* another number for the same codec, and for the other */
		{"96", {RULE(TRANSCODE, "PCMA")}, "96 8", "8", "96",
			MEDIA_CONVERT(96, 8, XC_LAW_U_TO_A), MEDIA_CONVERT(8, 96, XC_LAW_A_TO_U)},
		/* stripped codecs are not transcoded, masked ones are */
		{"0 8", {RULE(STRIP, "PCMU"), RULE(TRANSCODE, "PCMU")}, "8 0", "0", "8", A_U, U_A},
		{"0 8", {RULE(MASK, "PCMU")}, "8", "8", "8", 0, 0},
		{"0", {RULE(MASK, "all"), RULE(TRANSCODE, "PCMA")}, "8", "8", "0", U_A, A_U},
		{"0 8", {RULE(MASK, "full"), RULE(TRANSCODE, "PCMA")}, "8", "8", "8", 0, 0},
		{"0 8", {RULE(MASK, "PCMU"), RULE(ACCEPT, "PCMU")}, "8", "8", "8 0", U_A, 0},
		/* accepted although the callee rejects it */
		{"0 8 101", {RULE(ACCEPT, "all")}, "0 8 101", "8 101", "8 101 0", U_A, 0},
		{"0 8 101", {RULE(ACCEPT, "PCMU")}, "0 8 101", "0 101", "0 101", 0, 0},
		/* no G.711 to transcode from, or to */
		{"98", {RULE(TRANSCODE, "PCMA")}, "98", "98", "98", 0, 0},
		{"0 98", {RULE(TRANSCODE, "PCMA")}, "0 98 8", "98", "98", 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct talk t;

		talk_start(&t);
		talk_row(&t, &rows[i]);
		talk_end(&t);
	}
}

static void the_answer_describes_its_codecs_once(void **state)
{
	static const struct row row = {
		"0 101", {RULE(TRANSCODE, "PCMA")}, "0 101 8", "8 101", "0 101", U_A, A_U};
	const struct sdp_line *l;
	uint32_t maps = 0;
	struct talk t;

	(void)state;
	talk_start(&t);
	talk_row(&t, &row);
	for (l = sdp_attr(t.sdp->media[0].lines, STR("rtpmap")); l;
		l = sdp_attr(l->next, STR("rtpmap")), maps++)
		assert_true(str_eq(
			l->arg, maps ? STR("0 PCMU/8000") : STR("101 telephone-event/8000")));
	assert_int_equal(maps, 2);
	talk_end(&t);
}

/* A re-INVITE without rules: the parties agree on another codec, and conversion ends. */
static void a_new_offer_decides_again(void **state)
{
	static const struct row rows[] = {
		{"0 101", {RULE(TRANSCODE, "PCMA")}, "0 101 8", "8 101", "0 101", U_A, A_U},
		{"0 8", {{0}}, "0 8", "8", "8", 0, 0},
		{"0", {RULE(MASK, "PCMU"), RULE(TRANSCODE, "PCMA")}, "8", "8", "0", U_A, A_U},
	};
	struct talk t;

	(void)state;
	talk_start(&t);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct row row = rows[i];

		if (i == 1)
			row.answer = NULL;
		talk_row(&t, &row);
		if (i != 1)
			continue;
		/* not answered yet: the first answer is still in force */
		assert_int_equal(convert(&t, "a"), U_A);
		talk_row(&t, &rows[i]);
	}
	talk_end(&t);
}

/* Before the answer the callee may send what it was offered. */
static void early_media_are_converted(void **state)
{
	static const struct row row = {
		"0 101", {RULE(MASK, "PCMU"), RULE(TRANSCODE, "PCMA")}, "101 8", NULL, NULL, 0, 0};
	struct talk t;

	(void)state;
	talk_start(&t);
	t.policy.early_media = true;
	calls_set_policy(t.c, &t.policy);
	talk_row(&t, &row);
	assert_int_equal(convert(&t, ""), A_U);
	talk_end(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_offerer_is_answered_its_own_codec),
		cmocka_unit_test(the_answer_describes_its_codecs_once),
		cmocka_unit_test(a_new_offer_decides_again),
		cmocka_unit_test(early_media_are_converted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
