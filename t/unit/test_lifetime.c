/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Timeouts of dialogs and branches that share a Call-ID (call/lifetime.h). Rows are requests and
 * waiting times of one call. After each row the ports in use and the ended dialogs are compared. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "call/call.h"
#include "call/tick.h"
#include "call/timeout_report.h"
#include "call_talk.h"
#include "offer/connect.h"
#include "offer/exchange.h"

struct row {
	/* o offer, a answer, j connect, t seconds pass with a tick each, p the daemon was paused;
	 * from-tag, to-tag, branch: '-' = none */
	char what, from, to, branch;
	unsigned n;        /* sip-code, or seconds */
	const char *talk;  /* t: terminals that send media in each second; else SDP attributes */
	unsigned parties;  /* with ports, afterwards */
	unsigned timeouts; /* so far */
};

struct marks_known {
	unsigned n;
	char last[64];
};

static void on_timeout(void *arg, const struct call_timeout *t)
{
	struct marks_known *h = arg;
	int len = snprintf(h->last, sizeof(h->last), "%s", t->others_live ? "+" : "");

	h->n++;
	for (uint32_t i = 0; i < t->tags; i++)
		len += snprintf(h->last + len, sizeof(h->last) - (size_t)len, "%c", *t->tag[i].s);
}

static struct str tag(char c)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";

	return c == '-' ? STR_NONE : (struct str){strchr(letters, c), 1};
}

/* The terminals at 192.0.2.1 (a) and so on have sent now. */
static void hear(struct talk *t, struct relay_stats *stats, const char *who)
{
	for (uint32_t k = 0; k < 2 * MOCK_MAX; k++) {
		const struct media_stream_cfg *s = &t->m->stream_cfg[k];

		if (!t->m->stream_set[k] || !s->rtp || !s->remote.family)
			continue;
		t->m->stats[k] = &stats[s->remote.addr[3]];
		if (strchr(who, 'a' + s->remote.addr[3] - 1))
			stats[s->remote.addr[3]].last_packet_ns = t->now;
	}
}

static void request(struct talk *t, const struct row *row)
{
	char addr[16];
	struct ng_request r;

	snprintf(addr, sizeof(addr), "192.0.2.%d",
		(row->what == 'a' ? row->to : row->from) - 'a' + 1);
	talk_pool(t);
	r = talk_request("", "", talk_body(t, addr, 4000, "RTP/AVP", row->talk ? row->talk : ""));
	r.from_tag = tag(row->from);
	r.to_tag = tag(row->to);
	r.via_branch = tag(row->branch);
	r.sip_code = (uint16_t)row->n;
	if (row->what == 'o')
		calls_offer(t->c, t->p, &r, t->now, &t->reply);
	else if (row->what == 'a')
		calls_answer(t->c, t->p, &r, t->now, &t->reply);
	else
		calls_connect(t->c, t->p, &r, t->now, &t->reply);
	if (t->reply.error)
		fail_msg("%c %c %c: %s", row->what, row->from, row->to, t->reply.error);
}

static void play(
	const char *why, const struct row *row, size_t n, uint64_t final_s, const char *last)
{
	static struct relay_stats stats[256];
	struct marks_known h = {0};
	struct talk t;

	memset(stats, 0, sizeof(stats));
	talk_start(&t);
	t.policy.final_timeout_ns = final_s * NS_PER_SEC;
	calls_set_policy(t.c, &t.policy);
	calls_on_timeout(t.c, on_timeout, &h);
	for (size_t i = 0; i < n; i++) {
		struct calls_counters c;

		for (unsigned k = 0; row[i].what == 't' && k < row[i].n; k++) {
			t.now += NS_PER_SEC;
			hear(&t, stats, row[i].talk ? row[i].talk : "");
			calls_tick(t.c, t.now);
			mock_relay_check(t.m);
		}
		if (row[i].what == 'p')
			calls_clock_set(t.c, t.now, 0);
		else if (row[i].what != 't')
			request(&t, &row[i]);
		calls_counters(t.c, &c);
		if (t.m->ports != row[i].parties || c.timeouts != row[i].timeouts)
			fail_msg("%s, row %zu: %u parties, %u timeouts, last told %s", why, i,
				t.m->ports, (unsigned)c.timeouts, h.last);
	}
	assert_string_equal(h.last, last);
	talk_end(&t);
}

#define PLAY(why, final_s, last, ...)                            \
	do {                                                     \
		static const struct row rows[] = {__VA_ARGS__};  \
		play(why, rows, ARRAY_LEN(rows), final_s, last); \
	} while (0)

/* The policy: 60 s without media, 3600 s on hold, 300 s without an answer. */
static void dialogs(void **state)
{
	(void)state;
	PLAY("a stranger's dialog keeps nothing alive", 0, "+ab", {'o', 'a', '-', '-', 0, "", 2, 0},
		{'a', 'a', 'b', '-', 0, "", 2, 0}, {'o', 'c', '-', '-', 0, "", 4, 0},
		{'a', 'c', 'd', '-', 0, "", 4, 0}, {'t', 0, 0, 0, 59, "cd", 4, 0},
		{'t', 0, 0, 0, 2, "cd", 2, 1}, {'t', 0, 0, 0, 100, "d", 2, 1});
	PLAY("nor do its requests", 0, "+ab", {'o', 'a', '-', '-', 0, "", 2, 0},
		{'a', 'a', 'b', '-', 0, "", 2, 0}, {'o', 'c', '-', '-', 0, "", 4, 0},
		{'t', 0, 0, 0, 50, "", 4, 0}, {'o', 'c', '-', '-', 0, "", 4, 0},
		{'t', 0, 0, 0, 11, "", 2, 1});
	PLAY("the call outlives a stranger", 0, "+cd", {'o', 'a', '-', '-', 0, "", 2, 0},
		{'a', 'a', 'b', '-', 0, "", 2, 0}, {'o', 'c', '-', '-', 0, "", 4, 0},
		{'a', 'c', 'd', '-', 0, "", 4, 0}, {'t', 0, 0, 0, 61, "ab", 2, 1},
		{'t', 0, 0, 0, 100, "a", 2, 1});
	PLAY("an unanswered one", 0, "+c", {'o', 'a', '-', '-', 0, "", 2, 0},
		{'a', 'a', 'b', '-', 0, "", 2, 0}, {'o', 'c', '-', '-', 0, "", 4, 0},
		{'t', 0, 0, 0, 299, "a", 4, 0}, {'t', 0, 0, 0, 2, "a", 2, 1});
	PLAY("one on hold", 0, "+cd", {'o', 'a', '-', '-', 0, "a=inactive\r\n", 2, 0},
		{'a', 'a', 'b', '-', 0, "a=inactive\r\n", 2, 0}, {'o', 'c', '-', '-', 0, "", 4, 0},
		{'a', 'c', 'd', '-', 0, "", 4, 0}, {'t', 0, 0, 0, 61, "", 2, 1});
	PLAY("both at once are one call", 0, "abcd", {'o', 'a', '-', '-', 0, "", 2, 0},
		{'a', 'a', 'b', '-', 0, "", 2, 0}, {'o', 'c', '-', '-', 0, "", 4, 0},
		{'a', 'c', 'd', '-', 0, "", 4, 0}, {'t', 0, 0, 0, 60, "", 0, 1});
	PLAY("final-timeout of each", 100, "cd", {'o', 'a', '-', '-', 0, "", 2, 0},
		{'a', 'a', 'b', '-', 0, "", 2, 0}, {'t', 0, 0, 0, 50, "ab", 2, 0},
		{'o', 'c', '-', '-', 0, "", 4, 0}, {'a', 'c', 'd', '-', 0, "", 4, 0},
		{'t', 0, 0, 0, 51, "abcd", 2, 1}, {'t', 0, 0, 0, 48, "cd", 2, 1},
		{'t', 0, 0, 0, 2, "cd", 0, 2});
	PLAY("a pause of the daemon", 0, "", {'o', 'a', '-', '-', 0, "", 2, 0},
		{'a', 'a', 'b', '-', 0, "", 2, 0}, {'t', 0, 0, 0, 50, "", 2, 0},
		{'p', 0, 0, 0, 0, "", 2, 0}, {'t', 0, 0, 0, 50, "", 2, 0});
}

#define TWO_RING                                \
	{'o', 'a', '-', '1', 0, "", 2, 0},      \
	{                                       \
		'o', 'a', '-', '2', 0, "", 3, 0 \
	}

static void branches(void **state)
{
	(void)state;
	PLAY("media of a branch that lost keep nothing alive", 0, "abc", TWO_RING,
		{'a', 'a', 'c', '2', 183, "", 3, 0}, {'a', 'a', 'b', '1', 200, "", 3, 0},
		{'t', 0, 0, 0, 59, "c", 3, 0}, {'t', 0, 0, 0, 2, "c", 0, 1});
	PLAY("a silent branch that lost ends alone", 0, "", TWO_RING,
		{'a', 'a', 'b', '1', 200, "", 3, 0}, {'t', 0, 0, 0, 299, "ab", 3, 0},
		{'t', 0, 0, 0, 2, "ab", 2, 1}, {'t', 0, 0, 0, 400, "ab", 2, 1});
	PLAY("an answered one, after --timeout", 0, "+c", TWO_RING,
		{'a', 'a', 'c', '2', 183, "", 3, 0}, {'a', 'a', 'b', '1', 200, "", 3, 0},
		{'t', 0, 0, 0, 61, "ab", 2, 1}, {'t', 0, 0, 0, 400, "ab", 2, 1});
	PLAY("a second final answer gets the caller", 0, "+b", TWO_RING,
		{'a', 'a', 'b', '1', 200, "", 3, 0}, {'a', 'a', 'c', '2', 200, "", 3, 0},
		{'t', 0, 0, 0, 61, "c", 2, 1}, {'t', 0, 0, 0, 100, "c", 2, 1});
	PLAY("branches ring longer than --timeout", 0, "", TWO_RING,
		{'a', 'a', 'b', '1', 183, "", 3, 0}, {'a', 'a', 'c', '2', 183, "", 3, 0},
		{'t', 0, 0, 0, 200, "b", 3, 0}, {'a', 'a', 'c', '2', 200, "", 3, 0});
	PLAY("each for --offer-timeout", 0, "+c", TWO_RING, {'a', 'a', 'b', '1', 183, "", 3, 0},
		{'a', 'a', 'c', '2', 183, "", 3, 0}, {'t', 0, 0, 0, 301, "b", 2, 1},
		{'t', 0, 0, 0, 100, "b", 2, 1});
	PLAY("without sip-code the dialog ends as a whole", 0, "abc", TWO_RING,
		{'a', 'a', 'c', '2', 0, "", 3, 0}, {'a', 'a', 'b', '1', 0, "", 3, 0},
		{'t', 0, 0, 0, 59, "c", 3, 0}, {'t', 0, 0, 0, 2, "c", 0, 1});
}

static void joined_sides(void **state)
{
	(void)state;
	PLAY("who was left out ends alone", 0, "+b", {'o', 'a', '-', '-', 0, "", 2, 0},
		{'a', 'a', 'b', '-', 0, "", 2, 0}, {'o', 'c', '-', '-', 0, "", 4, 0},
		{'a', 'c', 'd', '-', 0, "", 4, 0}, {'j', 'a', 'c', '-', 0, "", 4, 0},
		{'t', 0, 0, 0, 3599, "ad", 4, 0}, {'t', 0, 0, 0, 2, "ad", 3, 1});
	PLAY("joined sides are one dialog", 0, "abcd", {'o', 'a', '-', '-', 0, "", 2, 0},
		{'a', 'a', 'b', '-', 0, "", 2, 0}, {'o', 'c', '-', '-', 0, "", 4, 0},
		{'a', 'c', 'd', '-', 0, "", 4, 0}, {'j', 'a', 'c', '-', 0, "", 4, 0},
		{'t', 0, 0, 0, 100, "a", 4, 0}, {'t', 0, 0, 0, 61, "bd", 0, 1});
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(dialogs),
		cmocka_unit_test(branches),
		cmocka_unit_test(joined_sides),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
