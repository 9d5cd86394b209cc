/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One media as two m-lines, SRTP and RTP, of which one is taken (ng's OSRTP=offer-legacy and
 * accept-legacy). A party that started with two m-lines always gets two, in the same order. The
 * call and the other side have one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#include "call/call_int.h"
#include "call/table.h"
#include "call_talk.h"

#define A     "192.0.2.1"
#define B     "192.0.2.2"
#define KEY   "a=crypto:" C80A "\r\n"
#define KEY_B "a=crypto:1 AES_CM_128_HMAC_SHA1_80 " K80C "\r\n"
#define OTHER "a=crypto:1 AEAD_AES_256_GCM inline:x\r\n" /* in none of the policy's suites */

/* For each m-line of the last reply: profile, whether it has a port, number of crypto lines,
 * whether it has a mid. */
static const char *told(struct talk *t)
{
	struct str text = STR("");

	for (uint32_t i = 0; i < t->sdp->media_count; i++) {
		const struct sdp_media *m = &t->sdp->media[i];
		uint32_t keys = 0;
		struct sdes s;

		while (m->port && talk_line(t, i, keys, &s))
			keys++;
		text = pool_printf(t->p, "%s%s" STR_FMT " " STR_FMT " %d%s%s", text.s, i ? "," : "",
			STR_ARG(m->kind), STR_ARG(m->proto_text), m->port != 0,
			keys ? (keys == 1 ? " key" : " keys") : "", m->mid.len ? " mid" : "");
	}
	return text.s;
}

/* AUDIO, its attributes, and further lines. */
static const char *body(struct talk *t, const char *who, const char *text)
{
	const char *at = *who == 'a' ? A : B;

	(void)t;
	return pool_printf(t->p, "v=0\r\no=- 42 7 IN IP4 %s\r\ns=-\r\nc=IN IP4 %s\r\nt=0 0\r\n%s",
		at, at, text)
		.s;
}

struct row {
	const char *say; /* offer or answer, then its sender: "oa", "ab" */
	uint32_t osrtp;
	const char *transport, *text, *want, *suites; /* suites: in force of a, of b; NULL = any */
};

static enum srtp_suite_id in_force(struct talk *t, const char *side)
{
	const struct call *c = call_table_find(&t->c->table, STR("call"));

	return c->side[call_side_by_tag(c, str_from(side))]->leg[0]->rx.key[0].suite;
}

static void say(struct talk *t, size_t i, const struct row *row)
{
	bool answer = row->say[0] == 'a', new = i == 0;
	const char *who = row->say[1] == 'a' ? "a" : "b", *other = *who == 'a' ? "b" : "a";
	char text[2048];
	struct ng_request r;

	talk_pool(t);
	snprintf(text, sizeof(text), "%s", body(t, who, row->text));
	r = answer ? talk_request(other, who, text) : talk_request(who, new ? "" : other, text);
	r.osrtp = row->osrtp;
	r.transport = str_from(row->transport);
	talk_send(t, &r, answer);
	if (t->reply.error)
		fail_msg("row %zu: %s: " STR_FMT, i, t->reply.error, STR_ARG(t->reply.detail));
	if (strcmp(told(t), row->want) != 0)
		fail_msg("row %zu: %s", i, told(t));
	if (row->suites) {
		assert_int_equal(in_force(t, "a") == SUITE_PLAIN, row->suites[0] == '-');
		assert_int_equal(in_force(t, "b") == SUITE_PLAIN, row->suites[1] == '-');
	}
}

#define SAVP(port, more) "m=audio " port " RTP/SAVP 0\r\n" more
#define AVP(port, more)  "m=audio " port " RTP/AVP 0\r\n" more
#define TWICE            "audio RTP/SAVP 1 keys,audio RTP/AVP 1"
#define OFFER            NG_OSRTP_OFFER_LEGACY
#define ACCEPT           NG_OSRTP_ACCEPT_LEGACY

/* Rows are requests to one call, in order. */
static void play(const struct row *row, size_t n)
{
	struct talk t;

	talk_start(&t);
	for (size_t i = 0; i < n; i++)
		say(&t, i, &row[i]);
	talk_end(&t);
}

static void an_offer_is_written_twice_and_the_answer_folded(void **state)
{
	static const struct row secure[] = {
		{"oa", OFFER, "RTP/SAVP", AVP("4000", "a=mid:1\r\n"),
			"audio RTP/SAVP 1 keys mid,audio RTP/AVP 1", NULL},
		{"ab", 0, "", SAVP("5000", KEY_B) AVP("0", ""), "audio RTP/AVP 1 mid", "-k"},
		/* from then on always in the same order, whoever offers */
		{"oa", 0, "", AVP("4000", ""), "audio RTP/SAVP 1 keys,audio RTP/AVP 0", NULL},
		{"ab", 0, "", SAVP("5000", KEY_B) AVP("0", ""), "audio RTP/AVP 1", "-k"},
		{"ob", 0, "RTP/AVP", SAVP("5000", KEY_B) AVP("0", ""), "audio RTP/AVP 1", NULL},
		{"aa", 0, "", AVP("4000", ""), "audio RTP/SAVP 1 key,audio RTP/AVP 0", "-k"},
		/* it changes its mind */
		{"ob", 0, "", SAVP("0", "") AVP("5000", ""), "audio RTP/AVP 1", NULL},
		{"aa", 0, "", AVP("4000", ""), "audio RTP/SAVP 0,audio RTP/AVP 1", "--"},
	};
	static const struct row plain[] = {
		{"oa", OFFER, "RTP/SAVP", AVP("4000", ""), TWICE, NULL},
		{"ab", 0, "", SAVP("0", "") AVP("5000", ""), "audio RTP/AVP 1", "--"},
		{"oa", 0, "", AVP("4000", ""), "audio RTP/SAVP 0,audio RTP/AVP 1", NULL},
		{"ab", 0, "", SAVP("0", "") AVP("5000", ""), "audio RTP/AVP 1", "--"},
		{"oa", OFFER, "RTP/SAVP", AVP("4000", ""), TWICE, NULL},
		/* both: the SRTP line is meant */
		{"ab", 0, "", SAVP("5000", KEY_B) AVP("5000", ""), "audio RTP/AVP 1", "-k"},
	};
	/* An offer in SRTP. The terminal answers only the second m-line, as if there were one. */
	static const struct row through[] = {
		{"oa", OFFER, "", SAVP("4000", KEY), TWICE, NULL},
		{"ab", 0, "", AVP("5000", ""), "audio RTP/SAVP 1 key", "k-"},
	};
	/* The transport may be omitted. */
	static const struct row silent[] = {
		{"oa", OFFER | NG_OSRTP_OFFER, "", AVP("4000", ""), TWICE, NULL},
		{"ab", 0, "", SAVP("0", "") AVP("0", ""), "audio RTP/AVP 0", NULL},
	};

	(void)state;
	play(secure, ARRAY_LEN(secure));
	play(plain, ARRAY_LEN(plain));
	play(through, ARRAY_LEN(through));
	play(silent, ARRAY_LEN(silent));
}

static void what_is_offered_twice_is_one_media(void **state)
{
	static const struct row rows[] = {
		{"oa", ACCEPT, "", SAVP("4000", KEY) AVP("4000", "") "m=video 4002 RTP/AVP 96\r\n",
			"audio RTP/SAVP 1 keys,video RTP/AVP 1", NULL},
		{"ab", 0, "", SAVP("5000", KEY_B) "m=video 5002 RTP/AVP 96\r\n",
			"audio RTP/SAVP 1 key,audio RTP/AVP 0,video RTP/AVP 1", "kk"},
		/* an offer of the other side keeps the order; none of its keys is left */
		{"ob", 0, "", SAVP("5000", KEY_B) "m=video 0 RTP/AVP 96\r\n",
			"audio RTP/SAVP 1 keys,audio RTP/AVP 0,video RTP/AVP 0", NULL},
		{"aa", 0, "", SAVP("4000", KEY) AVP("0", "") "m=video 0 RTP/AVP 96\r\n",
			"audio RTP/SAVP 1 key,video RTP/AVP 0", "kk"},
		{"ob", 0, "", "m=image 5000 udptl t38\r\nm=video 0 RTP/AVP 96\r\n",
			"image udptl 1,image RTP/AVP 0,video RTP/AVP 0", NULL},
	};
	static const struct row plain_first[] = {
		{"oa", ACCEPT, "RTP/AVP", AVP("4000", "") SAVP("4002", KEY), "audio RTP/AVP 1",
			NULL},
		{"ab", 0, "", AVP("5000", ""), "audio RTP/AVP 0,audio RTP/SAVP 1 key", "k-"},
	};
	/* None of its crypto suites is allowed, so the RTP line is used. */
	static const struct row not_ours[] = {
		{"oa", ACCEPT, "", SAVP("4000", OTHER) AVP("4002", ""), "audio RTP/AVP 1", NULL},
		{"ab", 0, "", AVP("5000", ""), "audio RTP/SAVP 0,audio RTP/AVP 1", "--"},
	};
	/* Without the word they are two media, and stay two. */
	static const struct row two[] = {
		{"oa", 0, "", SAVP("4000", KEY) AVP("4002", ""),
			"audio RTP/SAVP 1 keys,audio RTP/AVP 1", NULL},
		{"ab", 0, "", SAVP("5000", KEY_B) AVP("5002", ""),
			"audio RTP/SAVP 1 key,audio RTP/AVP 1", "kk"},
		{"oa", ACCEPT, "", SAVP("4000", KEY) AVP("4002", ""),
			"audio RTP/SAVP 1 keys,audio RTP/AVP 1", NULL},
	};
	/* Two m-lines of one profile are two media. */
	static const struct row alike[] = {
		{"oa", ACCEPT, "", AVP("4000", "") AVP("4002", ""),
			"audio RTP/AVP 1,audio RTP/AVP 1", NULL},
	};
	/* Both parties use two m-lines. */
	static const struct row both[] = {
		{"oa", ACCEPT | OFFER, "", SAVP("4000", KEY) AVP("4000", ""), TWICE, NULL},
		{"ab", 0, "", SAVP("0", "") AVP("5000", ""), "audio RTP/SAVP 1 key,audio RTP/AVP 0",
			"k-"},
	};

	(void)state;
	play(rows, ARRAY_LEN(rows));
	play(plain_first, ARRAY_LEN(plain_first));
	play(not_ours, ARRAY_LEN(not_ours));
	play(two, ARRAY_LEN(two));
	play(alike, ARRAY_LEN(alike));
	play(both, ARRAY_LEN(both));
}

/* Both m-lines name one port. The answer's address is that of the accepted line. */
static void both_have_one_port(void **state)
{
	static const struct row rows[] = {
		{"oa", OFFER, "RTP/SAVP", AVP("4000", ""), TWICE, NULL},
		{"ab", 0, "", SAVP("0", "") AVP("5006", ""), "audio RTP/AVP 1", "--"},
	};
	const struct call *c;
	struct talk t;

	(void)state;
	talk_start(&t);
	say(&t, 0, &rows[0]);
	assert_int_equal(t.sdp->media[0].port, t.sdp->media[1].port);
	assert_int_equal(t.m->ports, 2);
	say(&t, 1, &rows[1]);
	c = call_table_find(&t.c->table, STR("call"));
	assert_int_equal(c->side[call_side_by_tag(c, STR("b"))]->leg[0]->remote.port, 5006);
	talk_end(&t);
}

/* m-lines once offered to the other side keep their places. */
static void what_has_m_lines_behind_it_stays_single(void **state)
{
	struct row rows[] = {
		{"oa", 0, "", AVP("4000", "") "m=video 4002 RTP/AVP 96\r\n",
			"audio RTP/AVP 1,video RTP/AVP 1", NULL},
		{"oa", OFFER, "", AVP("4000", "") "m=video 4002 RTP/AVP 96\r\n",
			"audio RTP/AVP 1,video RTP/SAVP 1 keys,video RTP/AVP 1", NULL},
	};
	struct talk t;

	(void)state;
	talk_start(&t);
	say(&t, 0, &rows[0]);
	assert_int_equal(t.reply.warning.len, 0);
	say(&t, 1, &rows[1]);
	assert_true(str_starts(t.reply.warning, STR("media 1")));
	talk_end(&t);
}

static const char *more(int lines)
{
	static char text[4096];

	text[0] = 0;
	for (int i = 0; i < lines; i++)
		strcat(text, AVP("4000", ""));
	return text;
}

/* An SDP's maximum of m-lines. Media without room for two are offered as one. */
static void there_are_no_more_m_lines_than_an_sdp_may_have(void **state)
{
	struct ng_request r;
	char text[8192];
	struct talk t;

	(void)state;
	talk_start(&t);
	talk_pool(&t);
	snprintf(text, sizeof(text), "%s", body(&t, "a", more(40)));
	r = talk_request("a", "", text);
	r.osrtp = OFFER;
	talk_send(&t, &r, false);
	assert_null(t.reply.error);
	assert_int_equal(t.sdp->media_count, SDP_MAX_MEDIA);
	assert_true(t.reply.warning.len > 0);
	/* m-lines added later have no place in its SDP. */
	talk_pool(&t);
	snprintf(text, sizeof(text), "%s", body(&t, "a", more(41)));
	talk_offer(&t, "a", "", text);
	assert_string_equal(
		t.reply.error, "Too many m= lines: OSRTP=offer-legacy writes each twice");
	talk_end(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_offer_is_written_twice_and_the_answer_folded),
		cmocka_unit_test(what_is_offered_twice_is_one_media),
		cmocka_unit_test(both_have_one_port),
		cmocka_unit_test(what_has_m_lines_behind_it_stays_single),
		cmocka_unit_test(there_are_no_more_m_lines_than_an_sdp_may_have),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
