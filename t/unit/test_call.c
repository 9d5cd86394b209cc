/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The life of calls: re-INVITE, hold, forks, refused media, timers, deletion, and every step
 * failing in turn. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "call/call.h"
#include "call/delete.h"
#include "call/tick.h"
#include "call_talk.h"
#include "offer/exchange.h"

#define A         "198.51.100.1"
#define B         "198.51.100.2"
#define L80       "AES_CM_128_HMAC_SHA1_80"
#define CRYPTO(x) "a=crypto:" x "\r\n"
#define SAVP_B    CRYPTO("1 " L80 " " K80B)
#define SAVP_B2   CRYPTO("1 " L80 " inline:QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVoxMjM0")
#define SAVP_A2   CRYPTO("1 " L80 " inline:QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVoxMjM0")

struct ports {
	uint16_t a, b;
};

static struct ports establish(struct talk *t)
{
	struct ports p;

	talk_offer(t, "a", "", talk_body(t, A, 4000, "RTP/SAVP", CRYPTO(C80A)));
	assert_null(t->reply.error);
	p.b = t->sdp->media[0].port;
	talk_answer(t, "a", "b", talk_body(t, B, 5000, "RTP/SAVP", SAVP_B));
	assert_null(t->reply.error);
	p.a = t->sdp->media[0].port;
	return p;
}

static void same_answer_again_changes_nothing(void **state)
{
	struct talk t;
	uint32_t commits;

	(void)state;
	talk_start(&t);
	establish(&t);
	commits = t.m->commits;
	talk_answer(&t, "a", "b", talk_body(&t, B, 5000, "RTP/SAVP", SAVP_B));
	assert_null(t.reply.error);
	if (t.m->commits != commits) {
		assert_int_equal(t.m->rx_new, 0);
		assert_int_equal(t.m->tx_new, 0);
		assert_int_equal(t.m->relearn, 0);
	}
	talk_end(&t);
}

static void reinvite_with_the_same_keys_keeps_every_index(void **state)
{
	struct sdes before, after;
	struct ports p;
	struct talk t;

	(void)state;
	talk_start(&t);
	p = establish(&t);
	talk_line(&t, 0, 0, &before);
	talk_offer(&t, "a", "b", talk_body(&t, A, 4000, "RTP/SAVP", CRYPTO(C80A)));
	assert_int_equal(t.sdp->media[0].port, p.b);
	talk_answer(&t, "a", "b", talk_body(&t, B, 5000, "RTP/SAVP", SAVP_B));
	assert_int_equal(t.sdp->media[0].port, p.a);
	talk_line(&t, 0, 0, &after);
	assert_memory_equal(before.master.key, after.master.key, 16);
	assert_int_equal(before.tag, after.tag);
	assert_int_equal(t.m->rx_new, 0);
	assert_int_equal(t.m->tx_new, 0);
	assert_int_equal(t.m->keys, 4);
	talk_end(&t);
}

static void reinvite_with_a_new_key_starts_that_direction_anew(void **state)
{
	struct ports p;
	struct talk t;

	(void)state;
	talk_start(&t);
	p = establish(&t);
	talk_offer(&t, "a", "b", talk_body(&t, A, 4000, "RTP/SAVP", SAVP_A2));
	/* not before the answer, because the offer may be refused */
	assert_memory_equal(
		mock_master(t.m, mock_ctx(t.m, p.a)->rx.key[0].slot)->key, "wDfvg&T+)xG7@fb5", 16);
	talk_answer(&t, "a", "b", talk_body(&t, B, 5000, "RTP/SAVP", SAVP_B));
	assert_memory_equal(
		mock_master(t.m, mock_ctx(t.m, p.a)->rx.key[0].slot)->key, "ABCDEFGHIJKLMNOP", 16);
	assert_true(mock_ctx(t.m, p.a)->rx_new);
	assert_false(mock_ctx(t.m, p.a)->tx_new);
	/* A's first key may return, so its slot and received indexes are kept. */
	assert_int_equal(t.m->keys, 5);
	talk_end(&t);
}

static void the_other_party_can_offer_too(void **state)
{
	struct ports p;
	struct talk t;

	(void)state;
	talk_start(&t);
	p = establish(&t);
	talk_offer(&t, "b", "a", talk_body(&t, B, 5006, "RTP/SAVP", SAVP_B));
	assert_null(t.reply.error);
	assert_int_equal(t.sdp->media[0].port, p.a);
	talk_answer(&t, "b", "a", talk_body(&t, A, 4000, "RTP/SAVP", CRYPTO(C80A)));
	if (t.reply.error)
		fail_msg("%s (%.*s)", t.reply.error, (int)t.reply.detail.len, t.reply.detail.s);
	assert_int_equal(t.sdp->media[0].port, p.b);
	assert_int_equal(mock_stream(t.m, p.b)->remote.port, 5006);
	assert_int_equal(t.m->rx_new, 0);
	assert_int_equal(t.m->tx_new, 0);
	talk_end(&t);
}

static void hold_keeps_ports_and_addresses(void **state)
{
	static const struct {
		const char *addr, *attrs;
	} T[] = {{A, CRYPTO(C80A) "a=sendonly\r\n"}, {A, CRYPTO(C80A) "a=inactive\r\n"},
		{"0.0.0.0", CRYPTO(C80A)}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct endpoint before;
		struct ports p;
		struct talk t;

		talk_start(&t);
		p = establish(&t);
		before = mock_stream(t.m, p.a)->remote;
		talk_offer(&t, "a", "b", talk_body(&t, T[i].addr, 4000, "RTP/SAVP", T[i].attrs));
		assert_null(t.reply.error);
		assert_int_equal(t.sdp->media[0].port, p.b);
		talk_answer(&t, "a", "b", talk_body(&t, B, 5000, "RTP/SAVP", SAVP_B));
		assert_int_equal(t.sdp->media[0].port, p.a);
		if (strcmp(T[i].addr, A) == 0)
			assert_true(endpoint_eq(&before, &mock_stream(t.m, p.a)->remote));
		assert_int_equal(t.m->rx_new + t.m->tx_new, 0);
		talk_offer(&t, "a", "b", talk_body(&t, A, 4000, "RTP/SAVP", CRYPTO(C80A)));
		talk_answer(&t, "a", "b", talk_body(&t, B, 5000, "RTP/SAVP", SAVP_B));
		assert_true(endpoint_eq(&before, &mock_stream(t.m, p.a)->remote));
		assert_int_equal(t.m->rx_new + t.m->tx_new, 0);
		talk_end(&t);
	}
}

static void the_latest_answer_wins(void **state)
{
	struct ports p;
	struct talk t;

	(void)state;
	talk_start(&t);
	p = establish(&t);
	talk_answer(&t, "a", "b2", talk_body(&t, B, 5100, "RTP/SAVP", SAVP_B2));
	assert_null(t.reply.error);
	assert_int_equal(t.sdp->media[0].port, p.a);
	assert_int_equal(mock_stream(t.m, p.b)->remote.port, 5100);
	assert_true(mock_ctx(t.m, p.b)->rx_new);
	assert_false(mock_ctx(t.m, p.b)->tx_new); /* our key has already sent packets */
	talk_answer(&t, "a", "b", talk_body(&t, B, 5000, "RTP/SAVP", SAVP_B));
	assert_int_equal(mock_stream(t.m, p.b)->remote.port, 5000);
	talk_end(&t);
}

static void learning_starts_again_for_another_terminal_only(void **state)
{
	struct ports p;
	struct talk t;

	(void)state;
	talk_start(&t);
	p = establish(&t);
	/* Two terminals send offers in both directions, and answer them. */
	talk_offer(&t, "a", "b", talk_body(&t, A, 4000, "RTP/SAVP", CRYPTO(C80A)));
	talk_answer(&t, "a", "b", talk_body(&t, B, 5000, "RTP/SAVP", SAVP_B));
	assert_int_equal(t.m->relearn, 0);
	talk_offer(&t, "b", "a", talk_body(&t, B, 5000, "RTP/SAVP", SAVP_B));
	talk_answer(&t, "b", "a", talk_body(&t, A, 4000, "RTP/SAVP", CRYPTO(C80A)));
	assert_int_equal(t.m->relearn, 0);
	/* Another terminal answers from the same address, as behind a NAT. */
	talk_answer(&t, "a", "b2", talk_body(&t, B, 5000, "RTP/SAVP", SAVP_B));
	assert_null(t.reply.error);
	assert_int_equal(t.m->relearn, 2);
	assert_true(mock_stream(t.m, p.b)->relearn);
	talk_answer(&t, "a", "b2", talk_body(&t, B, 5000, "RTP/SAVP", SAVP_B));
	assert_int_equal(t.m->relearn, 0);
	talk_end(&t);
}

/* The suite changes and changes back: a key of ours that was in force must not start at index 0
 * again. */
static void a_used_key_never_starts_anew(void **state)
{
	struct ports p;
	struct talk t;
	uint32_t slot;

	(void)state;
	talk_start(&t);
	p = establish(&t);
	slot = mock_ctx(t.m, p.b)->tx.key[0].slot;
	talk_answer(&t, "a", "b2",
		talk_body(&t, B, 5100, "RTP/SAVP", CRYPTO("2 AES_CM_128_HMAC_SHA1_32 " K80C)));
	assert_null(t.reply.error);
	assert_int_equal(mock_ctx(t.m, p.b)->tx.suite, SUITE_AES_CM_128_32);
	assert_true(mock_ctx(t.m, p.b)->tx_new);
	talk_answer(&t, "a", "b", talk_body(&t, B, 5000, "RTP/SAVP", SAVP_B));
	assert_null(t.reply.error);
	assert_int_equal(mock_ctx(t.m, p.b)->tx.suite, SUITE_AES_CM_128_80);
	/* The same slot: the worker continues the key's sent index. */
	assert_true(mock_ctx(t.m, p.b)->tx_new);
	assert_int_equal(mock_ctx(t.m, p.b)->tx.key[0].slot, slot);
	assert_int_not_equal(mock_ctx(t.m, p.b)->rx.key[0].slot, 0);
	talk_end(&t);
}

/* Two keys alternate, of one party or of two branches, with RTP in between. The slot keeps the
 * received indexes. */
static void a_terminals_key_that_returns_has_its_slot(void **state)
{
	uint32_t first, second;
	struct ports p;
	struct talk t;

	(void)state;
	talk_start(&t);
	p = establish(&t);
	first = mock_ctx(t.m, p.b)->rx.key[0].slot;
	talk_answer(&t, "a", "b2", talk_body(&t, B, 5100, "RTP/SAVP", SAVP_B2));
	second = mock_ctx(t.m, p.b)->rx.key[0].slot;
	assert_int_not_equal(first, second);
	assert_non_null(mock_master(t.m, first));
	talk_answer(&t, "a", "b", talk_body(&t, B, 5000, "RTP/SAVP", SAVP_B));
	assert_int_equal(mock_ctx(t.m, p.b)->rx.key[0].slot, first);
	assert_non_null(mock_master(t.m, second));
	/* The offerer's key also survives an exchange over RTP. */
	first = mock_ctx(t.m, p.a)->rx.key[0].slot;
	talk_offer(&t, "a", "b", talk_body(&t, A, 4000, "RTP/AVP", ""));
	talk_answer(&t, "a", "b", talk_body(&t, B, 5000, "RTP/SAVP", SAVP_B));
	assert_null(t.reply.error);
	assert_int_equal(mock_ctx(t.m, p.a)->rx.suite, SUITE_PLAIN);
	talk_offer(&t, "a", "b", talk_body(&t, A, 4000, "RTP/SAVP", CRYPTO(C80A)));
	talk_answer(&t, "a", "b", talk_body(&t, B, 5000, "RTP/SAVP", SAVP_B));
	if (t.reply.error)
		fail_msg("%s", t.reply.error);
	assert_int_equal(mock_ctx(t.m, p.a)->rx.key[0].slot, first);
	talk_end(&t);
}

static void a_rejected_media_comes_back_with_its_memory(void **state)
{
	struct sdes before, after;
	uint32_t rx, tx;
	struct ports p;
	struct talk t;

	(void)state;
	talk_start(&t);
	p = establish(&t);
	assert_true(talk_line(&t, 0, 0, &before));
	rx = mock_ctx(t.m, p.a)->rx.key[0].slot;
	tx = mock_ctx(t.m, p.a)->tx.key[0].slot;
	talk_offer(&t, "a", "b", talk_body(&t, A, 0, "RTP/SAVP", CRYPTO(C80A)));
	talk_answer(&t, "a", "b", talk_body(&t, B, 0, "RTP/SAVP", SAVP_B));
	assert_null(t.reply.error);
	assert_non_null(mock_master(t.m, rx)); /* its own key may return */
	assert_null(mock_master(t.m, tx));     /* ours never does */
	talk_offer(&t, "a", "b", talk_body(&t, A, 4000, "RTP/SAVP", CRYPTO(C80A)));
	talk_answer(&t, "a", "b", talk_body(&t, B, 5000, "RTP/SAVP", SAVP_B));
	assert_null(t.reply.error);
	assert_true(talk_line(&t, 0, 0, &after));
	assert_memory_not_equal(before.master.key, after.master.key, 16);
	assert_int_equal(mock_ctx(t.m, t.sdp->media[0].port)->rx.key[0].slot, rx);
	talk_end(&t);
}

/* A call keeps the slots of its latest keys only. */
static void old_keys_give_their_slots_up(void **state)
{
	struct ports p;
	struct talk t;

	(void)state;
	talk_start(&t);
	p = establish(&t);
	for (char key = 'A'; key < 'A' + 20; key++) {
		char line[128];

		snprintf(line, sizeof(line),
			CRYPTO("1 " L80 " inline:%cUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVoxMjM0"), key);
		talk_answer(&t, "a", "b", talk_body(&t, B, 5000, "RTP/SAVP", line));
		assert_null(t.reply.error);
		assert_in_range(t.m->keys, 4, 4 + 3);
	}
	assert_int_equal(mock_ctx(t.m, p.b)->rx.keys, 1);
	talk_end(&t);
}

static void a_branch_has_its_own_ports(void **state)
{
	struct ng_request r;
	struct talk t;
	uint16_t b1, b2, a;

	(void)state;
	talk_start(&t);
	r = talk_request("a", "", talk_body(&t, A, 4000, "RTP/AVP", ""));
	r.via_branch = STR("z1");
	talk_send(&t, &r, false);
	b1 = t.sdp->media[0].port;
	r.via_branch = STR("z2");
	talk_send(&t, &r, false);
	b2 = t.sdp->media[0].port;
	assert_int_not_equal(b1, b2);
	r = talk_request("a", "x2", talk_body(&t, B, 5002, "RTP/AVP", ""));
	r.via_branch = STR("z2");
	talk_send(&t, &r, true);
	assert_null(t.reply.error);
	a = t.sdp->media[0].port;
	assert_int_equal(mock_stream(t.m, a)->rtp_to, b2 - 30000);
	r = talk_request("a", "", "");
	r.via_branch = STR("z1");
	calls_delete(t.c, t.p, &r, t.now, &t.reply, ngval_dict(t.p));
	mock_relay_check(t.m);
	assert_null(mock_stream(t.m, b1));
	assert_non_null(mock_stream(t.m, b2));
	assert_int_equal(t.m->ports, 2);
	talk_end(&t);
}

static void refused_media_are_closed_and_added_ones_opened(void **state)
{
	struct talk t;
	const char *two = CRYPTO(C80A) "m=video 4010 RTP/AVP 96\r\n";
	const char *closed = CRYPTO(C80A) "m=video 0 RTP/AVP 96\r\n";
	const char *refuse = SAVP_B "m=video 0 RTP/AVP 96\r\n";
	const char *take = SAVP_B "m=video 5010 RTP/AVP 96\r\n";

	(void)state;
	talk_start(&t);
	establish(&t);
	talk_offer(&t, "a", "b", talk_body(&t, A, 4000, "RTP/SAVP", two));
	assert_null(t.reply.error);
	assert_true(t.sdp->media[1].port >= 30000);
	assert_int_equal(t.m->ports, 4);
	talk_answer(&t, "a", "b", talk_body(&t, B, 5000, "RTP/SAVP", refuse));
	assert_null(t.reply.error);
	assert_int_equal(t.sdp->media[1].port, 0);
	talk_offer(&t, "a", "b", talk_body(&t, A, 4000, "RTP/SAVP", two));
	talk_answer(&t, "a", "b", talk_body(&t, B, 5000, "RTP/SAVP", take));
	assert_null(t.reply.error);
	assert_true(t.sdp->media[1].port >= 30000);
	assert_int_not_equal(mock_stream(t.m, t.sdp->media[1].port)->rtp_to, MEDIA_NONE);
	talk_offer(&t, "a", "b", talk_body(&t, A, 4000, "RTP/SAVP", closed));
	assert_int_equal(t.sdp->media[1].port, 0);
	talk_answer(&t, "a", "b", talk_body(&t, B, 5000, "RTP/SAVP", refuse));
	assert_null(t.reply.error);
	assert_int_equal(t.m->ports, 2);
	talk_end(&t);
}

/* Each call of the relay fails in turn. Nothing is held or changed, and the next attempt works. */
static void any_step_may_fail_and_nothing_is_half_done(void **state)
{
	static const int errs[] = {-ENOSPC, -EAGAIN, -EIO};

	(void)state;
	for (size_t e = 0; e < ARRAY_LEN(errs); e++)
		for (uint32_t n = 1; n < 60; n++) {
			struct mock_relay *held;
			struct talk t;

			talk_start(&t);
			t.m->fail_with = errs[e];
			t.m->fail_at = n;
			talk_offer(&t, "a", "", talk_body(&t, A, 4000, "RTP/SAVP", CRYPTO(C80A)));
			if (t.reply.error || t.reply.load_limit) {
				assert_true(mock_relay_empty(t.m));
				if (errs[e] == -ENOSPC)
					assert_string_equal(t.reply.error, "Ran out of ports");
			} else {
				held = malloc(sizeof(*held));
				*held = *t.m;
				talk_answer(
					&t, "a", "b", talk_body(&t, B, 5000, "RTP/SAVP", SAVP_B));
				if (t.reply.error) {
					held->calls = t.m->calls;
					assert_memory_equal(
						held->ctx_cfg, t.m->ctx_cfg, sizeof(held->ctx_cfg));
					assert_memory_equal(held->stream_cfg, t.m->stream_cfg,
						sizeof(held->stream_cfg));
					assert_int_equal(held->keys, t.m->keys);
					talk_answer(&t, "a", "b",
						talk_body(&t, B, 5000, "RTP/SAVP", SAVP_B));
				}
				assert_null(t.reply.error);
				*held = *t.m;
				talk_offer(&t, "a", "b",
					talk_body(&t, A, 4000, "RTP/SAVP",
						SAVP_A2
						"m=video 4010 RTP/SAVP 96\r\n" CRYPTO(C80A)));
				if (t.reply.error) {
					assert_memory_equal(
						held->ctx_cfg, t.m->ctx_cfg, sizeof(held->ctx_cfg));
					assert_int_equal(held->ports, t.m->ports);
					assert_int_equal(held->ctxs, t.m->ctxs);
					assert_int_equal(held->keys, t.m->keys);
				}
				free(held);
			}
			talk_end(&t);
		}
}

static struct ngval *finish(struct talk *t, const char *from, int64_t delay, uint64_t flags)
{
	struct ng_request r = talk_request(from, "", "");
	struct ngval *d;

	talk_pool(t);
	d = ngval_dict(t->p);
	r.delete_delay = delay;
	r.flags = flags;
	calls_delete(t->c, t->p, &r, t->now, &t->reply, d);
	return d;
}

static void ten_thousand_calls_leave_nothing(void **state)
{
	struct talk t;

	(void)state;
	talk_start(&t);
	for (int i = 0; i < 10000; i++) {
		establish(&t);
		finish(&t, "a", 0, 0);
		assert_null(t.reply.error);
		assert_true(mock_relay_empty(t.m));
	}
	talk_end(&t);
}

static void delete_waits_and_says_when_there_is_nothing(void **state)
{
	struct talk t;

	(void)state;
	talk_start(&t);
	finish(&t, "a", 0, 0);
	assert_null(t.reply.error);
	assert_non_null(strstr(t.reply.warning.s, "Call-ID not found or tags didn't match"));
	finish(&t, "a", 0, 1u << NG_FLAG_FATAL);
	assert_non_null(t.reply.error);
	establish(&t);
	finish(&t, "nobody", 0, 0);
	assert_true(t.reply.warning.len > 0);
	finish(&t, "a", -1, 0);
	assert_int_equal(t.m->ports, 2);
	t.now += 29 * NS_PER_SEC;
	calls_tick(t.c, t.now);
	assert_int_equal(t.m->ports, 2);
	t.now += 2 * NS_PER_SEC;
	calls_tick(t.c, t.now);
	assert_true(mock_relay_empty(t.m));
	talk_end(&t);
}

/* The system's clock is stepped forward or back. No call ends early, and no dead call lives
 * longer. */
static void a_clock_that_is_set_ends_no_call(void **state)
{
	const int64_t hour = 3600 * (int64_t)NS_PER_SEC;
	struct talk t;

	(void)state;
	for (int back = 0; back < 2; back++) {
		int64_t step = back ? -hour : hour;

		talk_start(&t);
		t.now += 24 * (uint64_t)hour;
		establish(&t);
		t.now += 1000 * NS_PER_SEC; /* of talk */
		t.m->last_packet_ns = t.now;
		t.now += (uint64_t)step;
		calls_clock_set(t.c, t.now, step);
		calls_tick(t.c, t.now);
		t.now += 59 * NS_PER_SEC;
		calls_tick(t.c, t.now);
		assert_int_equal(t.m->ports, 2);
		t.now += 2 * NS_PER_SEC;
		calls_tick(t.c, t.now);
		assert_true(mock_relay_empty(t.m));
		talk_end(&t);
		/* A pending delete keeps its remaining time. */
		talk_start(&t);
		t.now += 24 * (uint64_t)hour;
		establish(&t);
		finish(&t, "a", -1, 0);
		t.now += (uint64_t)step;
		calls_clock_set(t.c, t.now, step);
		t.now += 29 * NS_PER_SEC;
		calls_tick(t.c, t.now);
		assert_int_equal(t.m->ports, 2);
		t.now += 2 * NS_PER_SEC;
		calls_tick(t.c, t.now);
		assert_true(mock_relay_empty(t.m));
		talk_end(&t);
	}
}

static void silence_ends_calls(void **state)
{
	struct talk t;

	(void)state;
	talk_start(&t);
	establish(&t);
	t.now += 59 * NS_PER_SEC;
	t.m->last_packet_ns = t.now;
	calls_tick(t.c, t.now);
	t.now += 59 * NS_PER_SEC;
	calls_tick(t.c, t.now);
	assert_int_equal(t.m->ports, 2);
	t.now += 2 * NS_PER_SEC;
	calls_tick(t.c, t.now);
	assert_true(mock_relay_empty(t.m));
	/* never answered */
	talk_offer(&t, "a", "", talk_body(&t, A, 4000, "RTP/AVP", ""));
	t.now += 200 * NS_PER_SEC;
	calls_tick(t.c, t.now);
	assert_int_equal(t.m->ports, 2);
	t.now += 200 * NS_PER_SEC;
	calls_tick(t.c, t.now);
	assert_true(mock_relay_empty(t.m));
	talk_end(&t);
}

static void reasons_are_those_that_clients_know(void **state)
{
	static const struct {
		const char *id, *from, *to, *body;
		bool answer;
		const char *want;
	} T[] = {
		{"call", "a", "", "", false, "No SDP body in message"},
		{"", "a", "", "v=0", false, "No call-id in message"},
		{"call", "", "", "v=0", false, "No from-tag in message"},
		{"call", "a", "", "v=0", true, "No to-tag in message"},
		{"call", "a", "", "nonsense", false, "Failed to parse SDP"},
		{"no", "a", "b", "v=0\r\no=- 1 1 IN IP4 1.1.1.1\r\ns=-\r\nt=0 0\r\n", true,
			"Unknown call-id"},
		{"call", "x", "y", "v=0\r\no=- 1 1 IN IP4 1.1.1.1\r\ns=-\r\nt=0 0\r\n", true,
			"Invalid dialogue association"},
		{"call", "a", "",
			"v=0\r\no=- 1 1 IN IP4 1.1.1.1\r\ns=-\r\nt=0 0\r\nm=audio 4 RTP/AVP 0\r\n",
			false, "Incomplete SDP specification"},
	};
	struct ng_request r;
	struct talk t;

	(void)state;
	talk_start(&t);
	establish(&t);
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		r = talk_request(T[i].from, T[i].to, T[i].body);
		r.call_id = str_from(T[i].id);
		talk_send(&t, &r, T[i].answer);
		assert_non_null(t.reply.error);
		assert_string_equal(t.reply.error, T[i].want);
	}
	talk_end(&t);
}

static void more_calls_than_allowed_are_refused_but_old_ones_go_on(void **state)
{
	struct ng_request r;
	struct talk t;

	(void)state;
	talk_start(&t);
	calls_destroy(t.c);
	t.policy.max_calls = 1;
	assert_int_equal(calls_create(&t.c, &t.policy, &t.m->relay), 0);
	establish(&t);
	r = talk_request("z", "", talk_body(&t, A, 4000, "RTP/AVP", ""));
	r.call_id = STR("second");
	talk_pool(&t);
	calls_offer(t.c, t.p, &r, t.now, &t.reply);
	assert_true(t.reply.load_limit);
	talk_offer(&t, "a", "b", talk_body(&t, A, 4000, "RTP/SAVP", CRYPTO(C80A)));
	assert_null(t.reply.error);
	talk_end(&t);
}

static void second_offer(struct talk *t, const char *id, bool emergency)
{
	struct ng_request r = talk_request("z", "", talk_body(t, A, 4000, "RTP/AVP", ""));

	r.call_id = str_from(id);
	r.flags = emergency ? 1ull << NG_FLAG_EMERGENCY : 0;
	talk_pool(t);
	calls_offer(t->c, t->p, &r, t->now, &t->reply);
}

static void each_limit_refuses_new_calls_by_its_name_but_no_emergency(void **state)
{
	static const struct {
		enum call_limit limit;
		const char *message;
	} T[] = {{CALL_LIMIT_SESSIONS, "Parallel session limit reached"},
		{CALL_LIMIT_CPU, "CPU usage limit exceeded"},
		{CALL_LIMIT_LOAD, "Load limit exceeded"},
		{CALL_LIMIT_BANDWIDTH, "Bandwidth limit exceeded"}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct calls_counters n;
		struct talk t;

		talk_start(&t);
		calls_destroy(t.c);
		t.policy.max_calls = T[i].limit == CALL_LIMIT_SESSIONS;
		assert_int_equal(calls_create(&t.c, &t.policy, &t.m->relay), 0);
		establish(&t);
		if (T[i].limit != CALL_LIMIT_SESSIONS)
			calls_limit(t.c, T[i].limit);
		second_offer(&t, "second", false);
		assert_true(t.reply.load_limit);
		assert_string_equal(t.reply.error, T[i].message);
		assert_null(t.reply.sdp.s);
		/* Requests for existing calls still succeed. */
		establish(&t);
		second_offer(&t, "help", true);
		assert_null(t.reply.error);
		assert_false(t.reply.load_limit);
		calls_counters(t.c, &n);
		assert_int_equal(n.current, 2);
		assert_int_equal(n.refused, 1);
		assert_int_equal(n.limited[T[i].limit], 1);
		assert_int_equal(n.emergencies, 1);
		if (T[i].limit != CALL_LIMIT_SESSIONS) {
			calls_limit(t.c, CALL_LIMIT_NONE);
			second_offer(&t, "third", false);
			assert_null(t.reply.error);
		}
		talk_end(&t);
	}
}

static void a_call_once_marked_as_emergency_stays_one_on_the_packet_path(void **state)
{
	struct ng_request r;
	struct ports p;
	struct talk t;

	(void)state;
	talk_start(&t);
	p = establish(&t);
	assert_false(mock_stream(t.m, p.a)->emergency);
	r = talk_request("a", "b", talk_body(&t, A, 4000, "RTP/SAVP", CRYPTO(C80A)));
	r.flags = 1ull << NG_FLAG_EMERGENCY;
	talk_send(&t, &r, false);
	talk_answer(&t, "a", "b", talk_body(&t, B, 5000, "RTP/SAVP", SAVP_B));
	assert_null(t.reply.error);
	assert_true(mock_stream(t.m, p.a)->emergency);
	assert_true(mock_stream(t.m, p.b)->emergency);
	assert_true(mock_stream(t.m, (uint16_t)(p.b + 1))->emergency);
	establish(&t);
	assert_true(mock_stream(t.m, p.a)->emergency);
	talk_end(&t);
}

/* A phone renumbers its lines in every offer, and both ends send re-INVITEs: no old key of ours may
 * return. */
static void keys_that_were_replaced_do_not_come_back(void **state)
{
	struct sdes first, again;
	struct ports p;
	struct talk t;

	(void)state;
	talk_start(&t);
	talk_offer(&t, "a", "", talk_body(&t, A, 4000, "RTP/SAVP", CRYPTO(C80A)));
	talk_line(&t, 0, 0, &first);
	p.b = t.sdp->media[0].port;
	talk_answer(&t, "a", "b", talk_body(&t, B, 5000, "RTP/SAVP", SAVP_B));
	talk_offer(&t, "b", "a", talk_body(&t, B, 5000, "RTP/SAVP", CRYPTO("5 " L80 " " K80B)));
	assert_null(t.reply.error);
	{
		struct sdes s;
		char attrs[256];

		talk_line(&t, 0, 0, &s);
		snprintf(attrs, sizeof(attrs), "a=crypto:%u " L80 " " K80A "\r\n", (unsigned)s.tag);
		talk_answer(&t, "b", "a", talk_body(&t, A, 4000, "RTP/SAVP", attrs));
		assert_null(t.reply.error);
	}
	talk_offer(&t, "a", "b", talk_body(&t, A, 4000, "RTP/SAVP", CRYPTO(C80A)));
	talk_line(&t, 0, 0, &again);
	if (memcmp(first.master.key, again.master.key, 16) == 0) {
		const struct srtp_master *m = mock_master(t.m, mock_ctx(t.m, p.b)->tx.key[0].slot);

		/* the same key is fine only if it stayed in force */
		assert_memory_equal(m->key, first.master.key, 16);
	}
	talk_end(&t);
}

/* Scripts give the same flags for offer and answer. A limit on B's lines must not forbid A's. */
static void only_in_the_answers_flags_does_not_lock_the_offerer_out(void **state)
{
	struct ng_request r;
	struct talk t;

	(void)state;
	talk_start(&t);
	r = talk_request("a", "", talk_body(&t, A, 4000, "RTP/SAVP", CRYPTO(C80A)));
	r.sdes.only = 1u << SUITE_AES_CM_128_32;
	talk_send(&t, &r, false);
	r = talk_request("a", "b",
		talk_body(&t, B, 5000, "RTP/SAVP", CRYPTO("1 AES_CM_128_HMAC_SHA1_32 " K80B)));
	r.sdes.only = 1u << SUITE_AES_CM_128_32;
	talk_send(&t, &r, true);
	if (t.reply.error)
		fail_msg("%s", t.reply.error);
	talk_end(&t);
}

/* The packet side cannot handle these suites: a call that used them would be silent. */
static void lines_that_the_relay_cannot_do_are_skipped(void **state)
{
	static const char *const param[] = {" FEC_ORDER=FEC_SRTP", " UNAUTHENTICATED_SRTP"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(param); i++) {
		char attrs[256];
		struct talk t;

		talk_start(&t);
		snprintf(attrs, sizeof(attrs), "a=crypto:" C80A "%s\r\n", param[i]);
		talk_offer(&t, "a", "", talk_body(&t, A, 4000, "RTP/SAVP", attrs));
		if (!t.reply.error)
			fail_msg("accepted:%s", param[i]);
		talk_end(&t);
	}
}

static void srtp_is_no_answer_to_rtp(void **state)
{
	struct talk t;

	(void)state;
	talk_start(&t);
	talk_offer(&t, "a", "", talk_body(&t, A, 4000, "RTP/AVP", ""));
	talk_answer(&t, "a", "b", talk_body(&t, B, 5000, "RTP/SAVP", SAVP_B));
	assert_non_null(t.reply.error);
	talk_end(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_that_were_replaced_do_not_come_back),
		cmocka_unit_test(only_in_the_answers_flags_does_not_lock_the_offerer_out),
		cmocka_unit_test(lines_that_the_relay_cannot_do_are_skipped),
		cmocka_unit_test(srtp_is_no_answer_to_rtp),
		cmocka_unit_test(same_answer_again_changes_nothing),
		cmocka_unit_test(reinvite_with_the_same_keys_keeps_every_index),
		cmocka_unit_test(reinvite_with_a_new_key_starts_that_direction_anew),
		cmocka_unit_test(the_other_party_can_offer_too),
		cmocka_unit_test(hold_keeps_ports_and_addresses),
		cmocka_unit_test(the_latest_answer_wins),
		cmocka_unit_test(learning_starts_again_for_another_terminal_only),
		cmocka_unit_test(a_used_key_never_starts_anew),
		cmocka_unit_test(a_terminals_key_that_returns_has_its_slot),
		cmocka_unit_test(a_rejected_media_comes_back_with_its_memory),
		cmocka_unit_test(old_keys_give_their_slots_up),
		cmocka_unit_test(a_branch_has_its_own_ports),
		cmocka_unit_test(refused_media_are_closed_and_added_ones_opened),
		cmocka_unit_test(any_step_may_fail_and_nothing_is_half_done),
		cmocka_unit_test(ten_thousand_calls_leave_nothing),
		cmocka_unit_test(delete_waits_and_says_when_there_is_nothing),
		cmocka_unit_test(a_clock_that_is_set_ends_no_call),
		cmocka_unit_test(silence_ends_calls),
		cmocka_unit_test(reasons_are_those_that_clients_know),
		cmocka_unit_test(more_calls_than_allowed_are_refused_but_old_ones_go_on),
		cmocka_unit_test(each_limit_refuses_new_calls_by_its_name_but_no_emergency),
		cmocka_unit_test(a_call_once_marked_as_emergency_stays_one_on_the_packet_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
