/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calls that outlive the daemon: indexes continue after the last used one by as much as needed, and
 * counters from their saved values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "call/call_int.h"
#include "call/unsaved.h"
#include "persist/save.h"
#include "save_talk.h"

static struct relay_marks *marks(uint64_t at_ns, uint64_t rx, uint64_t tx, uint64_t rtcp)
{
	struct relay_marks *m = calloc(1, sizeof(*m));

	assert_non_null(m);
	*m = (struct relay_marks){.at_ns = at_ns,
		.tx_rtcp_next = rtcp,
		.n = 3,
		.mark = {{.mark = {.ssrc = 7, .table = MEDIA_RX_RTP, .index = rx}, .per_s = 50},
			{.mark = {.ssrc = 7, .table = MEDIA_RX_RTCP, .index = 9}, .per_s = 0},
			{.mark = {.ssrc = 8, .table = MEDIA_TX_RTP, .index = tx}, .per_s = 50}}};
	return m;
}

static const struct media_cmd *resumed(const struct talk *t, enum media_cmd_type type, uint32_t id)
{
	for (uint32_t i = 0; i < t->m->resumes; i++)
		if (t->m->resumed[i].type == type && t->m->resumed[i].id == id)
			return &t->m->resumed[i];
	return NULL;
}

static uint64_t index_of(const struct talk *t, uint32_t ctx, enum media_table table)
{
	const struct media_cmd *c = resumed(t, MEDIA_CTX_RESUME, ctx);

	for (uint32_t i = 0; c && i < c->ctx_resume.n; i++)
		if (c->ctx_resume.mark[i].table == table)
			return c->ctx_resume.mark[i].index;
	return 0;
}

/* Time since the save, and where received packets continue. The peer of the SRTP side is plain, so
 * each life sends under its own SSRCs and earlier indexes do not matter. SRTCP continues beyond all
 * that can have been sent. The clock of the restoring node is ahead by skew. */
static void indexes_go_on_behind_what_was_used(void **state)
{
	static const struct {
		uint64_t seconds, rx, want_rx;
		bool no_auth;
		int64_t skew;
		const char *why;
	} T[] = {
		{0, 100, 100, false, 0, "at once"},
		{2, 0x1fff0, 0x1fff0, false, 0, "a wrap in between is the estimate's business"},
		{600, 100, 100, true, 0, "just within half a cycle"},
		{700, 100, 100, false, 0, "beyond, authentic packets show the ROC"},
		{700, 100, 100 + 35000 - 16384, true, 0, "or else it follows the rate"},
		{700, (1ull << 48) - 2, (1ull << 48) - 1, true, 0, "never beyond the end"},
		{1, 100, 100, true, 900, "a clock that is ahead"},
		{1, 100, 100, true, -900, "a clock that is behind"},
		{700, 100, 100 + 35000 - 16384, true, 3600, "an outage, and a clock ahead"},
		{700, 100, 100 + 35000 - 16384, true, -3600, "an outage, and a clock behind"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct talk t;
		struct saved s;
		const char *why = NULL;
		const struct media_stream_cfg *stream;
		uint32_t ctx;
		int64_t skew = T[i].skew * (int64_t)NS_PER_SEC;

		talk_start(&t);
		t.now += 86400 * NS_PER_SEC;
		calls_save_start(t.c);
		make_call(&t);
		ctx = mock_stream(t.m, port_of(&t, 0))->ctx;
		t.m->marks[ctx] = marks(t.now, T[i].rx, T[i].rx, 5);
		if (T[i].no_auth)
			calls_saver(t.c)->table->first->side[0]->leg[0]->rx.key[0].no_rtp_auth =
				true;
		assert_true(endpoint_parse(&t.m->remote[mock_stream(t.m, port_of(&t, 0))->rtp_to],
				    STR("203.0.113.77:999")) == 0);
		t.m->confirmed[mock_stream(t.m, port_of(&t, 0))->rtp_to] = true;
		save(&t, &s);
		reborn(&t);
		t.now += T[i].seconds * NS_PER_SEC + (uint64_t)skew;
		calls_shared_clock(t.c, -skew);
		assert_int_equal(restore(&t, sbuf_view(&s.whole), STR_NONE, &why), 0);
		stream = mock_stream(t.m, port_of(&t, 0));
		assert_non_null(stream);
		if (index_of(&t, stream->ctx, MEDIA_RX_RTP) != T[i].want_rx)
			fail_msg("%s: rx %llu", T[i].why,
				(unsigned long long)index_of(&t, stream->ctx, MEDIA_RX_RTP));
		assert_int_equal(index_of(&t, stream->ctx, MEDIA_TX_RTP), 0);
		assert_int_not_equal(t.m->ctx_cfg[stream->ctx].rename, 0);
		assert_int_equal(index_of(&t, stream->ctx, MEDIA_RX_RTCP), 9);
		assert_int_equal(
			t.m->ctx_cfg[stream->ctx].tx_rtcp_index, 1000 + (T[i].seconds + 2) * 250);
		/* This index may be sent within two seconds of this node's clock. */
		assert_int_equal(media_rtcp_ceiling(t.m->ctx_cfg[stream->ctx].rtcp_from_ns,
					 t.now + 2 * NS_PER_SEC),
			1000 + (T[i].seconds + 2) * 250);
		assert_non_null(resumed(&t, MEDIA_STREAM_RESUME, stream->rtp_to));
		assert_true(
			resumed(&t, MEDIA_STREAM_RESUME, stream->rtp_to)->stream_resume.confirmed);
		free(t.m->marks[ctx]);
		sbuf_fini(&s.whole);
		sbuf_fini(&s.state);
		talk_end(&t);
	}
}

/* --- Sent indexes ---- */

static void all_media(struct call *c, uint32_t side, enum srtp_suite_id suite, bool no_auth)
{
	for (uint32_t i = 0; i < c->side[side]->legs; i++) {
		struct srtp_master *m = &c->side[side]->leg[i]->rx.key[0];

		*m = (struct srtp_master){.suite = suite, .no_rtp_auth = no_auth};
	}
}

static void as_it_is(struct call *c)
{
	(void)c;
}

static void authenticated(struct call *c)
{
	all_media(c, 1, SUITE_AES_CM_128_80, false);
}

static void not_authenticated(struct call *c)
{
	all_media(c, 1, SUITE_AES_CM_128_80, true);
}

/* Index 100 was saved as sent. No earlier SSRC is sent again, whoever the other side is. */
static void no_ssrc_that_was_sent_goes_on(void **state)
{
	static void (*const make[])(struct call * c) = {as_it_is, authenticated, not_authenticated};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(make); i++) {
		struct talk t;
		struct saved s;
		const char *why = NULL;
		uint32_t ctx;

		talk_start(&t);
		calls_save_start(t.c);
		make_call(&t);
		ctx = mock_stream(t.m, port_of(&t, 0))->ctx;
		t.m->marks[ctx] = marks(t.now, 100, 100, 5);
		make[i](calls_saver(t.c)->table->first);
		save(&t, &s);
		reborn(&t);
		if (restore(&t, sbuf_view(&s.whole), STR_NONE, &why))
			fail_msg("%zu: %s", i, why);
		ctx = mock_stream(t.m, port_of(&t, 0))->ctx;
		assert_int_equal(index_of(&t, ctx, MEDIA_RX_RTP), 100);
		assert_int_equal(index_of(&t, ctx, MEDIA_TX_RTP), 0);
		assert_int_not_equal(t.m->ctx_cfg[ctx].rename, 0);
		for (uint32_t k = 0; k < MOCK_MAX; k++) {
			if (t.m->ctx_set[k])
				assert_int_equal(t.m->ctx_cfg[k].rename, t.m->ctx_cfg[ctx].rename);
			free(t.m->marks[k]);
		}
		sbuf_fini(&s.whole);
		sbuf_fini(&s.state);
		talk_end(&t);
	}
}

/* --- Keys of ours after a restart --- */

#define CRYPTO(x) "a=crypto:" x "\r\n"
#define L80       "AES_CM_128_HMAC_SHA1_80"
#define L32       "AES_CM_128_HMAC_SHA1_32"
#define K80D      "inline:QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVoxMjM0"

static void born_again(struct talk *t, uint64_t seconds)
{
	struct saved s;
	const char *why = NULL;

	save(t, &s);
	reborn(t);
	calls_save_start(t->c);
	t->now += seconds * NS_PER_SEC;
	assert_int_equal(restore(t, sbuf_view(&s.whole), STR_NONE, &why), 0);
	sbuf_fini(&s.whole);
	sbuf_fini(&s.state);
}

static void srtp_call(struct talk *t, struct sdes *to_a, struct sdes *to_b)
{
	talk_offer(t, "a", "", talk_body(t, "198.51.100.1", 4000, "RTP/SAVP", CRYPTO(C80A)));
	assert_null(t->reply.error);
	assert_true(talk_line(t, 0, 0, to_b));
	talk_answer(t, "a", "b",
		talk_body(t, "198.51.100.2", 5000, "RTP/SAVP", CRYPTO("1 " L80 " " K80B)));
	assert_null(t->reply.error);
	assert_true(talk_line(t, 0, 0, to_a));
}

/* A terminal sends its earlier key, or another one. Our keys stay, because SSRCs sent under them
 * are new. */
static void our_keys_stay_whatever_key_a_terminal_has(void **state)
{
	(void)state;
	for (int later = 0; later < 2; later++) {
		struct sdes to_a, to_b, now_a, now_b;
		const struct media_ctx_cfg *a, *b;
		uint16_t pa, pb;
		struct talk t;

		talk_start(&t);
		calls_save_start(t.c);
		srtp_call(&t, &to_a, &to_b);
		born_again(&t, 2);
		talk_offer(&t, "a", "b",
			talk_body(&t, "198.51.100.1", 4000, "RTP/SAVP",
				later ? CRYPTO("1 " L80 " " K80D) : CRYPTO(C80A)));
		assert_null(t.reply.error);
		pb = port_of(&t, 0);
		assert_true(talk_line(&t, 0, 0, &now_b));
		talk_answer(&t, "a", "b",
			talk_body(&t, "198.51.100.2", 5000, "RTP/SAVP", CRYPTO("1 " L80 " " K80B)));
		assert_null(t.reply.error);
		pa = port_of(&t, 0);
		assert_true(talk_line(&t, 0, 0, &now_a));
		a = mock_ctx(t.m, pa);
		b = mock_ctx(t.m, pb);
		assert_memory_equal(to_b.master.key, now_b.master.key, 16);
		assert_memory_equal(to_a.master.key, now_a.master.key, 16);
		assert_int_not_equal(a->rename, 0);
		assert_int_equal(a->rename, b->rename);
		talk_end(&t);
	}
}

/* A branch that answers with another key after the restart is also sent under this life's SSRC. */
static void another_branchs_answer_keeps_our_key(void **state)
{
	struct sdes to_a, to_b, now_a;
	const struct media_ctx_cfg *a;
	struct talk t;

	(void)state;
	talk_start(&t);
	calls_save_start(t.c);
	srtp_call(&t, &to_a, &to_b);
	born_again(&t, 2);
	talk_answer(&t, "a", "b2",
		talk_body(&t, "198.51.100.2", 5000, "RTP/SAVP", CRYPTO("1 " L80 " " K80D)));
	assert_null(t.reply.error);
	assert_true(talk_line(&t, 0, 0, &now_a));
	assert_memory_equal(to_a.master.key, now_a.master.key, 16);
	a = mock_ctx(t.m, port_of(&t, 0));
	assert_int_not_equal(a->rename, 0);
	talk_end(&t);
}

/* Used keys with unknown indexes. */
static void keys_that_nobody_knows_of_are_forgotten(void **state)
{
	static const struct {
		uint64_t seconds;
		bool used, good;
	} T[] = {{2, true, false}, {2, false, true}, {400, false, false}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		char line[128], back[128];
		struct sdes ours[2];
		struct talk t;

		talk_start(&t);
		calls_save_start(t.c);
		talk_offer(&t, "a", "",
			talk_body(&t, "198.51.100.1", 4000, "RTP/SAVP", CRYPTO(C80A) CRYPTO(C32A)));
		assert_true(talk_line(&t, 0, 0, &ours[0]) && talk_line(&t, 0, 1, &ours[1]));
		snprintf(line, sizeof(line), CRYPTO("%u " L80 " " K80C), (unsigned)ours[0].tag);
		snprintf(back, sizeof(back), CRYPTO("%u " L32 " " K80C), (unsigned)ours[1].tag);
		if (T[i].used)
			talk_answer(&t, "a", "b",
				talk_body(&t, "198.51.100.2", 5000, "RTP/SAVP", back));
		talk_answer(&t, "a", "b", talk_body(&t, "198.51.100.2", 5000, "RTP/SAVP", line));
		assert_null(t.reply.error);
		born_again(&t, T[i].seconds);
		/* The control: the key in force continues. */
		talk_answer(&t, "a", "b", talk_body(&t, "198.51.100.2", 5000, "RTP/SAVP", line));
		assert_null(t.reply.error);
		talk_answer(&t, "a", "b", talk_body(&t, "198.51.100.2", 5000, "RTP/SAVP", back));
		assert_int_equal(!t.reply.error, T[i].good);
		talk_end(&t);
	}
}

/* Each life renames SSRCs by a secret of its own. */
static void each_life_has_its_own_names(void **state)
{
	uint64_t name[4];
	struct talk t;

	(void)state;
	talk_start(&t);
	calls_save_start(t.c);
	make_call(&t);
	for (int life = 0; life < 4; life++) {
		const struct media_stream_cfg *s = mock_stream(t.m, port_of(&t, 0));

		name[life] = t.m->ctx_cfg[s->ctx].rename;
		assert_int_equal(name[life] == 0, life == 0);
		for (int k = 0; k < life; k++)
			assert_int_not_equal(name[k], name[life]);
		calls_save_all(t.c);
		born_again(&t, 1);
	}
	talk_end(&t);
}

static void streams_go_on_counting(void **state)
{
	struct talk t;
	struct saved s;
	const char *why = NULL;
	struct relay_stats was, now;
	const struct call *c;

	(void)state;
	talk_start(&t);
	calls_save_start(t.c);
	make_call(&t);
	save(&t, &s);
	for (int life = 1; life < 4; life++) {
		c = calls_saver(t.c)->table->first;
		leg_stats(t.c->relay, c, c->side[0]->leg[0], life & 1, &was);
		assert_true(was.packets > 0);
		sbuf_fini(&s.whole);
		calls_save_all(t.c);
		save(&t, &s);
		reborn(&t);
		calls_save_start(t.c);
		assert_int_equal(restore(&t, sbuf_view(&s.whole), STR_NONE, &why), 0);
		c = calls_saver(t.c)->table->first;
		leg_stats(t.c->relay, c, c->side[0]->leg[0], life & 1, &now);
		/* In every life, the mock counts the same from the start. */
		assert_int_equal(now.packets, was.packets / (uint64_t)life * (uint64_t)(life + 1));
	}
	sbuf_fini(&s.whole);
	sbuf_fini(&s.state);
	talk_end(&t);
}

/* State changed by packets is saved separately, only when it changed. It is used only for its own
 * call. */
static void a_later_state_counts_if_it_is_of_the_same_revision(void **state)
{
	struct talk t;
	struct saved s, later;
	const char *why = NULL;
	uint32_t ctx;

	(void)state;
	for (int changed = 0; changed < 2; changed++) {
		talk_start(&t);
		calls_save_start(t.c);
		make_call(&t);
		ctx = mock_stream(t.m, port_of(&t, 0))->ctx;
		save(&t, &s);
		memset(&later, 0, sizeof(later));
		for (int i = 0; i < 30; i++) /* without packets nothing is saved */
			calls_save_tick(t.c, t.now, 0);
		assert_false(next(&t, &later.state, &later.item));
		assert_true(t.m->asked > 0);
		t.m->marks[ctx] = marks(t.now, 100, 100, 5);
		for (int i = 0; i < 3; i++)
			calls_save_tick(t.c, t.now, 0);
		if (changed)
			calls_saver(t.c)->table->first->save.revision++;
		assert_true(next(&t, &later.state, &later.item));
		assert_int_equal(later.item.what, SAVE_STATE);
		assert_true(later.state.len < s.whole.len);
		reborn(&t);
		assert_int_equal(
			restore(&t, sbuf_view(&s.whole), sbuf_view(&later.state), &why), 0);
		ctx = mock_stream(t.m, port_of(&t, 0))->ctx;
		assert_int_equal(index_of(&t, ctx, MEDIA_RX_RTP), changed ? 0 : 100);
		for (uint32_t i = 0; i < MOCK_MAX; i++)
			free(t.m->marks[i]);
		sbuf_fini(&s.whole);
		sbuf_fini(&s.state);
		sbuf_fini(&later.state);
		talk_end(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(indexes_go_on_behind_what_was_used),
		cmocka_unit_test(no_ssrc_that_was_sent_goes_on),
		cmocka_unit_test(our_keys_stay_whatever_key_a_terminal_has),
		cmocka_unit_test(another_branchs_answer_keeps_our_key),
		cmocka_unit_test(keys_that_nobody_knows_of_are_forgotten),
		cmocka_unit_test(each_life_has_its_own_names),
		cmocka_unit_test(streams_go_on_counting),
		cmocka_unit_test(a_later_state_counts_if_it_is_of_the_same_revision),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
