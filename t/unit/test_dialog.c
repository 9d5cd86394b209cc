/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who may change whose media (call/dialog.h), keys that are ours sent back (reflect.c), and how
 * many media a call has. Rows are requests to one call. After each row the test compares which
 * parties receive each other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "call/call.h"
#include "call/delete.h"
#include "call_talk.h"
#include "offer/connect.h"
#include "offer/exchange.h"

#define L80       "AES_CM_128_HMAC_SHA1_80"
#define CRYPTO(x) "a=crypto:" x "\r\n"

struct row {
	/* o offer, e offer of an emergency call, a answer, d delete, w delete later, t delete with
	 * the flag to-tag, j connect; from-tag, to-tag, branch: '-' = none */
	char what, from, to, branch;
	char who;      /* address of the SDP ends in this; from a to f */
	unsigned code; /* sip-code */
	char source;   /* received-from, likewise; '-' = none */
	bool good;
	/* receivers of a's packets, and senders that a receives: letters of addresses; "" = the
	 * call is over */
	const char *hear;
};

static struct str tag(char c)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";

	return c == '-' ? STR_NONE : (struct str){strchr(letters, c), 1};
}

static struct ng_request request(struct talk *t, const struct row *r, const char *body)
{
	struct ng_request q = talk_request("", "", body);

	q.from_tag = tag(r->from);
	q.to_tag = tag(r->to);
	q.via_branch = tag(r->branch);
	q.sip_code = (uint16_t)r->code;
	q.flags = r->what == 't' ? 1ull << NG_FLAG_TO_TAG : 0;
	q.delete_delay = r->what == 'w' ? 30 : 0;
	if (r->source && r->source != '-')
		q.received_from = pool_printf(t->p, "198.51.100.%d", r->source - 'a' + 1);
	return q;
}

/* The terminal that receives this stream's packets. */
static char towards(const struct talk *t, const struct media_stream_cfg *s)
{
	const struct media_stream_cfg *to =
		s->rtp_to == MEDIA_NONE ? NULL : &t->m->stream_cfg[s->rtp_to];

	return to ? (char)('a' + to->remote.addr[3] - 1) : '-';
}

/* For a's stream: its peer's terminal, then all terminals whose packets reach a. */
static const char *hearing(const struct talk *t)
{
	static char text[2 + MOCK_MAX];
	size_t n = 1;

	text[0] = '-';
	for (uint32_t k = 0; k < 2 * MOCK_MAX; k++) {
		const struct media_stream_cfg *s = &t->m->stream_cfg[k];

		if (!t->m->stream_set[k] || !s->rtp || !s->remote.family)
			continue;
		if (s->remote.addr[3] == 1)
			text[0] = towards(t, s);
		else if (towards(t, s) == 'a')
			text[n++] = (char)('a' + s->remote.addr[3] - 1);
	}
	text[n] = 0;
	return text;
}

static void play(const char *why, const struct row *row, size_t n)
{
	struct talk t;

	talk_start(&t);
	for (size_t i = 0; i < n; i++) {
		char addr[16];
		const char *body;
		struct ng_request r;
		struct calls_counters c;
		bool good;

		talk_pool(&t);
		snprintf(addr, sizeof(addr), "192.0.2.%d", row[i].who - 'a' + 1);
		body = talk_body(&t, addr, 4000, "RTP/AVP", "");
		r = request(&t, &row[i], body);
		if (row[i].what == 'o' || row[i].what == 'e')
			calls_offer(t.c, t.p, &r, t.now, &t.reply);
		else if (row[i].what == 'a')
			calls_answer(t.c, t.p, &r, t.now, &t.reply);
		else if (row[i].what == 'j')
			calls_connect(t.c, t.p, &r, t.now, &t.reply);
		else
			calls_delete(t.c, t.p, &r, t.now, &t.reply, ngval_dict(t.p));
		mock_relay_check(t.m);
		good = !t.reply.error && !(strchr("dwt", row[i].what) && t.reply.warning.len);
		calls_counters(t.c, &c);
		if (good != row[i].good)
			fail_msg(
				"%s, row %zu: %s", why, i, t.reply.error ? t.reply.error : "taken");
		if (t.reply.error && strcmp(t.reply.error, NGE_DIALOG) == 0 && !t.reply.detail.len)
			fail_msg("%s, row %zu: no remedy", why, i);
		if (!*row[i].hear != !c.current)
			fail_msg("%s, row %zu: %d calls", why, i, (int)c.current);
		if (*row[i].hear && strcmp(row[i].hear, hearing(&t)) != 0)
			fail_msg("%s, row %zu: %s", why, i, hearing(&t));
	}
	talk_end(&t);
}

#define PLAY(why, ...)                                          \
	do {                                                    \
		static const struct row rows[] = {__VA_ARGS__}; \
		play(why, rows, ARRAY_LEN(rows));               \
	} while (0)

/* a calls; b and c ring on branches 1 and 2; b answers. */
#define BOTH_RING                                          \
	{'o', 'a', '-', '1', 'a', 0, 'a', true, "-"},      \
	{                                                  \
		'o', 'a', '-', '2', 'a', 0, 'a', true, "-" \
	}
#define B_EARLY                                               \
	{                                                     \
		'a', 'a', 'b', '1', 'b', 183, '-', true, "bb" \
	}
#define B_FINAL                                               \
	{                                                     \
		'a', 'a', 'b', '1', 'b', 200, '-', true, "bb" \
	}

static void initial_offers(void **state)
{
	(void)state;
	PLAY("before any answer", {'o', 'a', '-', '1', 'a', 0, 'a', true, "-"},
		{'o', 'a', '-', '1', 'd', 0, 'd', false, "-"},
		{'o', 'a', '-', '1', 'd', 0, 'a', true, "-"},
		{'o', 'a', '-', '1', 'a', 0, 'a', true, "-"},
		{'a', 'a', 'b', '1', 'b', 0, '-', true, "bb"});
	PLAY("a serial fork after early media", BOTH_RING, B_EARLY,
		{'o', 'a', '-', '3', 'a', 0, 'a', true, "bb"},
		{'a', 'a', 'd', '3', 'd', 200, '-', true, "dd"});
	PLAY("again, after it failed", BOTH_RING, B_EARLY,
		{'w', 'a', '-', '-', 'a', 0, '-', true, "bb"},
		{'o', 'a', '-', '3', 'd', 0, 'd', true, "bb"});
	PLAY("other media", BOTH_RING, B_EARLY, {'o', 'a', '-', '3', 'c', 0, 'a', false, "bb"},
		{'a', 'a', 'd', '3', 'd', 200, '-', false, "bb"});
	PLAY("another source", BOTH_RING, B_EARLY, {'o', 'a', '-', '3', 'a', 0, 'c', false, "bb"});
	PLAY("no source is told", BOTH_RING, B_EARLY,
		{'o', 'a', '-', '3', 'a', 0, '-', true, "bb"});
	PLAY("after the final answer", BOTH_RING, B_FINAL,
		{'o', 'a', '-', '3', 'a', 0, 'a', false, "bb"});
	PLAY("of nobody", BOTH_RING, B_FINAL, {'o', 'z', '-', '3', 'd', 0, 'd', false, "bb"},
		{'o', 'z', 'y', '3', 'd', 0, 'd', false, "bb"});
	PLAY("with the callee's tag", BOTH_RING, B_FINAL,
		{'o', 'b', '-', '3', 'd', 0, 'd', false, "bb"});
}

static void offers_in_dialogs(void **state)
{
	(void)state;
	PLAY("by either side", BOTH_RING, B_FINAL, {'o', 'b', 'a', '-', 'b', 0, '-', true, "bb"},
		{'a', 'b', 'a', '-', 'a', 200, '-', true, "bb"},
		{'o', 'a', 'b', '-', 'a', 0, '-', true, "bb"},
		{'a', 'a', 'b', '-', 'd', 200, '-', true, "dd"});
	PLAY("unknown from-tag", BOTH_RING, B_FINAL, {'o', 'z', 'a', '-', 'd', 0, '-', false, "bb"},
		{'a', 'z', 'a', '-', 'e', 200, '-', false, "bb"});
	PLAY("unknown to-tag", BOTH_RING, B_FINAL, {'o', 'a', 'z', '-', 'd', 0, '-', false, "bb"},
		{'a', 'a', 'z', '-', 'e', 200, '-', true, "bb"});
	PLAY("one's own tag", BOTH_RING, B_FINAL, {'o', 'a', 'a', '-', 'd', 0, '-', false, "bb"});
	PLAY("no pair", BOTH_RING, {'o', 'z', '-', '3', 'd', 0, '-', true, "-"},
		{'a', 'z', 'y', '3', 'e', 200, '-', true, "-"}, B_FINAL,
		{'o', 'z', 'a', '-', 'd', 0, '-', false, "bb"},
		{'a', 'z', 'a', '-', 'e', 200, '-', false, "bb"});
	PLAY("early media of c, and b has the call", BOTH_RING,
		{'a', 'a', 'c', '2', 'c', 183, '-', true, "cc"}, B_FINAL,
		{'o', 'c', 'a', '-', 'c', 0, '-', false, "bb"},
		{'o', 'a', 'c', '-', 'd', 0, 'd', false, "bb"},
		{'o', 'a', 'c', '-', 'a', 0, '-', false, "bb"},
		{'o', 'a', 'c', '-', 'a', 0, 'a', true, "bb"},
		{'a', 'a', 'c', '-', 'c', 200, '-', true, "cc"});
	PLAY("who has no tag yet", {'o', 'a', '-', '-', 'a', 0, '-', true, "-"},
		{'o', 'b', 'a', '-', 'b', 0, '-', true, "-"},
		{'a', 'b', 'a', '-', 'a', 0, '-', true, "bb"});
	PLAY("two delayed offers", {'o', 'b', 'a', '-', 'b', 183, '-', true, "-"},
		{'o', 'c', 'a', '-', 'c', 183, '-', true, "-"},
		{'a', 'c', 'a', '-', 'a', 0, '-', true, "cc"});
}

static void answers(void **state)
{
	(void)state;
	PLAY("early media in turns, then 200", BOTH_RING, B_EARLY,
		{'a', 'a', 'c', '2', 'c', 183, '-', true, "cbc"}, B_FINAL,
		{'a', 'a', 'c', '2', 'c', 183, '-', false, "bb"},
		{'a', 'a', 'x', '9', 'c', 200, '-', false, "bb"},
		{'a', 'a', 'x', '-', 'd', 180, '-', false, "bb"});
	PLAY("without sip-code the latest", BOTH_RING,
		{'a', 'a', 'b', '1', 'b', 0, '-', true, "bb"},
		{'a', 'a', 'c', '2', 'c', 0, '-', true, "cbc"});
	PLAY("without branches", {'o', 'a', '-', '-', 'a', 0, '-', true, "-"},
		{'a', 'a', 'b', '-', 'b', 183, '-', true, "bb"},
		{'a', 'a', 'c', '-', 'c', 183, '-', true, "cc"},
		{'a', 'a', 'b', '-', 'b', 200, '-', true, "bb"},
		{'a', 'a', 'c', '-', 'c', 200, '-', false, "bb"},
		{'o', 'c', 'a', '-', 'c', 0, '-', false, "bb"},
		{'d', 'a', 'c', '-', 'a', 0, '-', false, "bb"},
		{'a', 'a', 'b', '-', 'b', 200, '-', true, "bb"});
	PLAY("too late, and the caller keeps the first", BOTH_RING, B_FINAL,
		{'a', 'a', 'c', '2', 'c', 200, '-', true, "bb"},
		{'d', 'a', 'c', '-', 'a', 0, '-', true, "bb"},
		{'d', 'a', 'b', '-', 'a', 0, '-', true, ""});
	PLAY("too late, and the caller keeps the second", BOTH_RING, B_FINAL,
		{'a', 'a', 'c', '2', 'c', 200, '-', true, "bb"},
		{'d', 'a', 'b', '-', 'a', 0, '-', true, "cc"},
		{'o', 'c', 'a', '-', 'c', 0, '-', true, "cc"},
		{'d', 'c', 'a', '-', 'a', 0, '-', true, ""});
}

static void deletes(void **state)
{
	(void)state;
	PLAY("a BYE", BOTH_RING, B_FINAL, {'d', 'b', 'a', '9', 'b', 0, '-', true, ""});
	PLAY("no from-tag", BOTH_RING, B_FINAL, {'d', '-', '-', '-', 'b', 0, '-', true, ""});
	PLAY("only a from-tag", BOTH_RING, B_FINAL, {'d', 'a', '-', '-', 'b', 0, '-', true, ""});
	PLAY("what fits nothing", BOTH_RING, B_FINAL,
		{'d', 'a', '-', '9', 'a', 0, '-', false, "bb"},
		{'d', 'a', 'z', '-', 'a', 0, '-', false, "bb"},
		{'t', 'a', 'z', '-', 'a', 0, '-', false, "bb"},
		{'d', 'z', '-', '-', 'a', 0, '-', false, "bb"},
		{'d', 'z', 'a', '-', 'a', 0, '-', false, "bb"},
		{'d', 'z', 'a', '9', 'a', 0, '-', false, "bb"},
		{'d', 'a', '-', '2', 'a', 0, '-', true, "bb"});
	PLAY("a branch that fails, as its reply's tags say", BOTH_RING, B_FINAL,
		{'d', 'z', 'a', '2', 'a', 0, '-', true, "bb"});
	PLAY("unknown to-tag before any answer", {'o', 'a', '-', '-', 'a', 0, '-', true, "-"},
		{'d', 'a', 'z', '-', 'a', 0, '-', true, ""});
	PLAY("who lost hangs up", BOTH_RING, {'a', 'a', 'c', '2', 'c', 183, '-', true, "cc"},
		B_FINAL, {'d', 'c', 'a', '-', 'c', 0, '-', true, "bb"},
		{'d', 'c', '-', '-', 'c', 0, '-', false, "bb"});
	PLAY("the last branch", {'o', 'a', '-', '1', 'a', 0, '-', true, "-"},
		{'d', 'a', '-', '9', 'a', 0, '-', false, "-"},
		{'d', 'a', '-', '1', 'a', 0, '-', true, ""});
}

/* z's dialog shares only the Call-ID with a's. z and y talk at d and e. */
#define Z_RINGS                                             \
	{                                                   \
		'o', 'z', '-', '3', 'd', 0, 'd', true, "bb" \
	}
#define B_ANSWERS                                           \
	{                                                   \
		'a', 'a', 'b', '1', 'b', 0, '-', true, "bb" \
	}
#define Z_TALKS                                             \
	Z_RINGS,                                            \
	{                                                   \
		'a', 'z', 'y', '3', 'e', 0, '-', true, "bb" \
	}

static void dialogs_with_one_call_id_end_alone(void **state)
{
	(void)state;
	PLAY("it rings", BOTH_RING, B_ANSWERS, Z_RINGS,
		{'d', 'z', '-', '-', 'd', 0, '-', true, "bb"},
		{'d', 'z', '-', '-', 'd', 0, '-', false, "bb"},
		{'d', 'a', 'b', '-', 'd', 0, '-', true, ""});
	PLAY("its branch fails", BOTH_RING, B_ANSWERS, Z_RINGS,
		{'d', 'z', '-', '3', 'd', 0, '-', true, "bb"});
	PLAY("its branch fails, by the reply", BOTH_RING, B_ANSWERS, Z_RINGS,
		{'d', 'q', 'z', '3', 'd', 0, '-', true, "bb"});
	PLAY("an unknown to-tag", BOTH_RING, B_ANSWERS, Z_RINGS,
		{'d', 'z', 'q', '-', 'd', 0, '-', true, "bb"});
	PLAY("a BYE", BOTH_RING, B_ANSWERS, Z_TALKS, {'d', 'z', 'y', '-', 'd', 0, '-', true, "bb"});
	PLAY("a BYE of the other", BOTH_RING, B_ANSWERS, Z_TALKS,
		{'d', 'y', 'z', '-', 'd', 0, '-', true, "bb"});
	PLAY("a delayed BYE", BOTH_RING, B_ANSWERS, Z_TALKS,
		{'w', 'y', 'z', '-', 'd', 0, '-', true, "bb"});
	PLAY("a caller that is called", BOTH_RING, B_ANSWERS, Z_TALKS,
		{'d', 'b', 'a', '-', 'd', 0, '-', true, "-"},
		{'d', 'z', 'y', '-', 'd', 0, '-', true, ""});
	PLAY("early", {'o', 'z', '-', '3', 'd', 0, 'd', true, "-"}, BOTH_RING,
		{'d', 'z', '-', '-', 'd', 0, '-', true, "-"}, B_FINAL);
}

static void what_was_deleted_is_not_kept_by_a_stranger(void **state)
{
	(void)state;
	PLAY("a new dialog", BOTH_RING, B_FINAL, {'w', 'a', 'b', '-', 'a', 0, '-', true, "bb"},
		{'o', 'z', '-', '3', 'd', 0, 'd', true, "-"},
		{'d', 'z', '-', '-', 'd', 0, '-', true, ""});
	PLAY("another From tag after a failure", BOTH_RING,
		{'w', 'a', '-', '-', 'a', 0, '-', true, "-"},
		{'o', 'z', '-', '1', 'a', 0, 'a', true, "-"},
		{'a', 'z', 'b', '1', 'b', 200, '-', true, "bb"});
}

static void new_dialogs_leave_places(void **state)
{
	(void)state;
	PLAY("branches of the first", {'o', 'a', '-', '0', 'a', 0, 'a', true, "-"},
		{'o', 'z', '-', '-', 'd', 0, 'd', true, "-"},
		{'o', 'y', '-', '-', 'd', 0, 'd', true, "-"},
		{'o', 'x', '-', '-', 'd', 0, 'd', true, "-"},
		{'o', 'w', '-', '-', 'd', 0, 'd', false, "-"},
		{'o', 'a', '-', '1', 'a', 0, 'a', true, "-"},
		{'o', 'a', '-', '2', 'a', 0, 'a', true, "-"},
		{'o', 'a', '-', '3', 'a', 0, 'a', true, "-"},
		{'a', 'a', 'b', '3', 'b', 200, '-', true, "bb"});
	PLAY("the first tries again", {'o', 'a', '-', '0', 'a', 0, 'a', true, "-"},
		{'o', 'z', '-', '-', 'd', 0, 'd', true, "-"},
		{'o', 'y', '-', '-', 'd', 0, 'd', true, "-"},
		{'o', 'x', '-', '-', 'd', 0, 'd', true, "-"},
		{'d', 'a', '-', '-', 'a', 0, '-', true, "-"},
		{'a', 'z', 'q', '-', 'e', 200, '-', true, "-"},
		{'o', 'a', '-', '1', 'a', 0, 'a', true, "-"},
		{'a', 'a', 'b', '1', 'b', 200, '-', true, "bb"});
}

static void who_was_left_out_does_not_rule(void **state)
{
	(void)state;
	PLAY("by connect", BOTH_RING, B_ANSWERS, Z_TALKS,
		{'j', 'a', 'z', '-', 'a', 0, '-', true, "dd"},
		{'o', 'b', 'a', '-', 'c', 0, '-', false, "dd"},
		{'a', 'b', 'a', '-', 'c', 200, '-', false, "dd"},
		{'o', 'z', '-', '3', 'd', 0, 'd', true, "dd"},
		{'a', 'z', 'x', '3', 'c', 200, '-', true, "d"},
		{'j', 'a', 'z', '-', 'a', 0, '-', true, "dd"},
		{'d', 'b', 'a', '-', 'b', 0, '-', true, "dd"},
		{'d', 'b', '-', '-', 'b', 0, '-', false, "dd"},
		{'d', 'y', 'z', '-', 'e', 0, '-', true, "dd"},
		{'d', 'a', 'b', '-', 'a', 0, '-', true, ""});
}

/* --- Keys ------------------------------------------------------------------------------------- */

static const char *line(struct talk *t, uint32_t n, const char *key)
{
	const struct sdp_line *l = sdp_attr(t->sdp->media[0].lines, STR("crypto"));
	struct str rest;

	while (n--)
		l = sdp_attr(l->next, STR("crypto"));
	rest = l->arg;
	(void)str_word(&rest);
	(void)str_word(&rest);
	return key ? pool_printf(t->p, CRYPTO("%.*s%s"), (int)(str_trim(rest).s - l->arg.s),
			     l->arg.s, key)
			     .s
		   : pool_printf(t->p, CRYPTO(STR_FMT), STR_ARG(l->arg)).s;
}

static void nobody_sends_under_our_key_or_the_others(void **state)
{
	static const struct {
		int echo;        /* which of our lines is reflected; -1: none */
		const char *key; /* instead */
		const char *why; /* NULL: taken */
	} T[] = {
		{-1, K80C, NULL},
		{0, NULL, "key is one of ours"},
		{1, NULL, "key is one of ours"},
		{-1, K80A, "key is the other terminal's"},
		{-1, "inline:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "key is all zeroes"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		char text[256];
		struct talk t;

		talk_start(&t);
		talk_offer(&t, "a", "", talk_body(&t, "192.0.2.1", 4000, "RTP/SAVP", CRYPTO(C80A)));
		assert_null(t.reply.error);
		snprintf(text, sizeof(text), "%s", line(&t, T[i].echo > 0, T[i].key));
		talk_answer(&t, "a", "b", talk_body(&t, "192.0.2.2", 5000, "RTP/SAVP", text));
		if (T[i].why) {
			assert_string_equal(t.reply.error, "No usable crypto line in answer");
			assert_non_null(strstr(t.reply.detail.s, T[i].why));
		} else {
			assert_null(t.reply.error);
			/* A later offer by either side may not reflect a's or b's key of ours,
			 * either. */
			snprintf(text, sizeof(text), "%s", line(&t, 0, NULL));
			for (int by_b = 0; by_b < 2; by_b++) {
				talk_offer(&t, by_b ? "b" : "a", by_b ? "a" : "b",
					talk_body(&t, "192.0.2.1", 4000, "RTP/SAVP", text));
				assert_string_equal(t.reply.error, "No common crypto suite");
			}
		}
		talk_end(&t);
	}
}

/* A line with such a key is ignored like one with an unknown suite. Another line may be taken. */
static void a_good_line_beside_a_reflected_one_is_taken(void **state)
{
	char text[512];
	struct talk t;

	(void)state;
	talk_start(&t);
	talk_offer(&t, "a", "", talk_body(&t, "192.0.2.1", 4000, "RTP/SAVP", CRYPTO(C80A)));
	snprintf(text, sizeof(text), "%s%s", line(&t, 0, NULL), line(&t, 1, K80C));
	talk_answer(&t, "a", "b", talk_body(&t, "192.0.2.2", 5000, "RTP/SAVP", text));
	assert_null(t.reply.error);
	talk_end(&t);
}

/* --- Limits ----------------------------------------------------------------------------------- */

static const char *ports_of(struct talk *t)
{
	static char text[SDP_MAX_MEDIA + 1];
	uint32_t n = 0;

	for (; n < t->sdp->media_count; n++)
		text[n] = t->sdp->media[n].port ? '1' : '0';
	text[n] = 0;
	return text;
}

static void media_beyond_the_limit_have_port_0(void **state)
{
#define V(port) "m=video " port " RTP/AVP 96\r\n"
	static const char three[] = V("4002") V("4004") V("4006");
	static const char moved[] = V("0") V("4004") V("4006");
	struct talk t;

	(void)state;
	talk_start(&t);
	t.policy.max_medias = 2;
	calls_set_policy(t.c, &t.policy);
	for (int again = 0; again < 2; again++) {
		talk_offer(&t, "a", again ? "b" : "",
			talk_body(&t, "192.0.2.1", 4000, "RTP/AVP", three));
		assert_null(t.reply.error);
		assert_string_equal(ports_of(&t), "1100");
		talk_answer(&t, "a", "b", talk_body(&t, "192.0.2.2", 5000, "RTP/AVP", three));
		assert_null(t.reply.error);
		assert_string_equal(ports_of(&t), "1100");
		assert_int_equal(t.m->ports, 4);
	}
	/* Closing an m-line frees its place. */
	talk_offer(&t, "a", "b", talk_body(&t, "192.0.2.1", 4000, "RTP/AVP", moved));
	assert_string_equal(ports_of(&t), "1000");
	talk_answer(&t, "a", "b", talk_body(&t, "192.0.2.2", 5000, "RTP/AVP", moved));
	talk_offer(&t, "a", "b", talk_body(&t, "192.0.2.1", 4000, "RTP/AVP", moved));
	assert_string_equal(ports_of(&t), "1010");
	talk_end(&t);
}

static void dialogs_share_no_privileges(void **state)
{
	struct ng_request r;
	struct talk t;

	(void)state;
	talk_start(&t);
	t.m->ports_limit = 8;
	t.m->ports_reserve = 4;
	for (int i = 0; i < 4;
		i++) { /* an ordinary dialog in an emergency call; then that call's own branch */
		r = talk_request(i == 1 || i == 2 ? "x" : "a", "",
			talk_body(&t, "192.0.2.1", 4000, "RTP/AVP",
				i == 2 ? "m=video 4002 RTP/AVP 96\r\n" : ""));
		r.flags = i == 0 ? 1ull << NG_FLAG_EMERGENCY : 0;
		r.via_branch = i == 3 ? STR("2") : STR_NONE;
		talk_send(&t, &r, false);
		if (i == 2)
			assert_string_equal(t.reply.error, "Ran out of ports");
		else
			assert_null(t.reply.error);
	}
	talk_end(&t);
}

static void a_new_dialog_counts_as_a_call(void **state)
{
	struct ng_request r;
	struct talk t;

	(void)state;
	talk_start(&t);
	t.policy.max_calls = 1;
	calls_set_policy(t.c, &t.policy);
	for (int i = 0; i < 4; i++) {
		r = talk_request(i == 1 || i == 2 ? "x" : "a", i == 2 ? "y" : "",
			talk_body(&t, "192.0.2.1", 4000, "RTP/AVP", ""));
		talk_send(&t, &r, false);
		assert_int_equal(t.reply.load_limit, i == 1 || i == 2);
		assert_int_equal(!t.reply.error, i == 0 || i == 3);
	}
	talk_end(&t);
}

static void ordinary_calls_leave_a_reserve(void **state)
{
	struct ng_request r;
	struct talk t;

	(void)state;
	talk_start(&t);
	t.m->ports_limit = 6;
	t.m->ports_reserve = 2;
	for (int i = 0; i < 4; i++) {
		r = talk_request("a", "", talk_body(&t, "192.0.2.1", 4000, "RTP/AVP", ""));
		r.flags = i == 3 ? 1ull << NG_FLAG_EMERGENCY : 0;
		r.call_id = (struct str){&"0123"[i], 1};
		talk_send(&t, &r, false);
		if (i == 2)
			assert_string_equal(t.reply.error, "Ran out of ports");
		else
			assert_null(t.reply.error);
	}
	talk_end(&t);
}

/* Writes a crypto line with a key that differs by turn. */
static const char *crypto_line(
	char *out, size_t len, unsigned tag, enum srtp_suite_id suite, int turn)
{
	const struct srtp_suite *s = srtp_suite_get(suite);
	uint32_t n = s->key_len + s->salt_len, chars = (n * 4 + 2) / 3;
	char key[128] = "";

	memset(key, 'a' + turn % 26, chars);
	key[0] = (char)('A' + turn / 26);
	key[chars - 1] = 'w'; /* its unused bits are 0 */
	for (uint32_t i = chars; i % 4; i++)
		strcat(key, "=");
	snprintf(out, len, "a=crypto:%u %s inline:%s\r\n", tag, s->name, key);
	return out;
}

/* The answering terminal changes key and suite each time: a leg forgets the oldest keys. */
static void a_call_holds_a_bounded_number_of_keys(void **state)
{
	unsigned tag[SUITE_COUNT];
	enum srtp_suite_id suite[SUITE_COUNT];
	uint32_t n = 0;
	struct ng_request r;
	struct sdes line;
	char text[256];
	struct talk t;

	(void)state;
	talk_start(&t);
	for (uint32_t s = SUITE_PLAIN + 1; s < SUITE_COUNT; s++) {
		t.policy.sdes.offer[s - 1] = (uint8_t)s;
		t.policy.sdes.accept |= 1u << s;
	}
	calls_set_policy(t.c, &t.policy);
	crypto_line(text, sizeof(text), 1, SUITE_AES_CM_128_80, 300);
	r = talk_request("a", "", talk_body(&t, "192.0.2.1", 4000, "RTP/SAVP", text));
	talk_send(&t, &r, false);
	assert_null(t.reply.error);
	for (; talk_line(&t, 0, n, &line); n++) {
		tag[n] = line.tag;
		suite[n] = line.master.suite;
	}
	assert_true(n > 4);
	for (int k = 0; k < 200; k++) {
		crypto_line(text, sizeof(text), tag[k % n], suite[k % n], k);
		talk_answer(&t, "a", "b", talk_body(&t, "192.0.2.2", 5000, "RTP/SAVP", text));
		assert_null(t.reply.error);
		/* per leg: four keys in force, three former ones of the terminal, one of ours for
		 * each suite */
		assert_true(t.m->keys <= 2 * (4 + 3 + SUITE_COUNT));
	}
	talk_end(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(initial_offers),
		cmocka_unit_test(offers_in_dialogs),
		cmocka_unit_test(answers),
		cmocka_unit_test(deletes),
		cmocka_unit_test(dialogs_with_one_call_id_end_alone),
		cmocka_unit_test(what_was_deleted_is_not_kept_by_a_stranger),
		cmocka_unit_test(new_dialogs_leave_places),
		cmocka_unit_test(who_was_left_out_does_not_rule),
		cmocka_unit_test(dialogs_share_no_privileges),
		cmocka_unit_test(a_new_dialog_counts_as_a_call),
		cmocka_unit_test(nobody_sends_under_our_key_or_the_others),
		cmocka_unit_test(a_good_line_beside_a_reflected_one_is_taken),
		cmocka_unit_test(media_beyond_the_limit_have_port_0),
		cmocka_unit_test(ordinary_calls_leave_a_reserve),
		cmocka_unit_test(a_call_holds_a_bounded_number_of_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
