/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calls that outlive the daemon: what is saved comes back the same, indexes go on where they must, and what was damaged, is of
 * another version or finds its port taken changes nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include <errno.h>

#include "call/calls.h"
#include "call_talk.h"

#define FULL                                                                                   \
	"a=crypto:" C80A "\r\na=crypto:" C32A "\r\na=sendrecv\r\nm=video 4002 RTP/SAVP 96\r\n" \
	"a=crypto:1 AES_CM_128_HMAC_SHA1_80 " K80A "|2^20|1:4;" K80B "|2^20|2:4\r\n"

struct saved {
	struct sbuf whole, state;
	struct save_item item;
};

/* One call with two media, SRTP with MKIs toward a, plain toward b. */
static void make_call(struct talk *t)
{
	struct ng_request r =
		talk_request("a", "", talk_body(t, "198.51.100.1", 4000, "RTP/SAVP", FULL));

	r.transport = STR("RTP/AVP");
	talk_send(t, &r, false);
	assert_null(t->reply.error);
	talk_answer(t, "a", "b",
		talk_body(t, "198.51.100.2", 5000, "RTP/AVP", "m=video 5002 RTP/AVP 96\r\n"));
	assert_null(t->reply.error);
}

static bool next(struct talk *t, struct sbuf *b, struct save_item *item)
{
	sbuf_fini(b);
	sbuf_init(b, 0);
	return calls_save_next(t->c, t->now, b, item);
}

static void save(struct talk *t, struct saved *s)
{
	memset(s, 0, sizeof(*s));
	assert_true(next(t, &s->whole, &s->item));
	assert_int_equal(s->item.what, SAVE_CALL);
	assert_int_equal(s->whole.err, 0);
	assert_false(next(t, &s->state, &s->item));
}

static int restore(struct talk *t, struct str whole, struct str state, const char **why)
{
	struct pool *p;
	int err;

	assert_int_equal(pool_create(&p, 8u << 20), 0);
	err = calls_restore(t->c, p, whole, state, t->now, why);
	pool_destroy(p);
	mock_relay_check(t->m);
	return err;
}

/* The same daemon, killed and started again. */
static void reborn(struct talk *t)
{
	calls_destroy(t->c);
	assert_true(mock_relay_empty(t->m));
	t->m->resumes = 0;
	assert_int_equal(calls_create(&t->c, &t->policy, &t->m->relay), 0);
}

static uint16_t port_of(struct talk *t, uint32_t media)
{
	return t->sdp->media[media].port;
}

static void what_was_saved_comes_back_the_same(void **state)
{
	struct talk t;
	struct saved before, after;
	const char *why = NULL;
	uint16_t port;
	size_t len;

	(void)state;
	talk_start(&t);
	calls_save_start(t.c);
	make_call(&t);
	port = port_of(&t, 0);
	save(&t, &before);
	reborn(&t);
	calls_save_start(t.c);
	assert_int_equal(restore(&t, sbuf_view(&before.whole), STR_NONE, &why), 0);
	assert_non_null(mock_stream(t.m, port));
	/* The same bytes but for the revision: everything that is saved was brought back. */
	calls_saver(t.c)->table->first->save.revision--;
	save(&t, &after);
	len = (size_t)((char *)memmem(before.whole.p, before.whole.len, "5:state", 7) -
		before.whole.p);
	assert_true(len < after.whole.len);
	assert_memory_equal(before.whole.p, after.whole.p, len);
	/* And negotiation goes on: a re-INVITE keeps ports and our keys. */
	struct sdes key;
	struct ng_request r =
		talk_request("a", "b", talk_body(&t, "198.51.100.1", 4000, "RTP/SAVP", FULL));

	r.transport = STR("RTP/AVP");
	talk_send(&t, &r, false);
	assert_null(t.reply.error);
	talk_answer(&t, "a", "b",
		talk_body(&t, "198.51.100.2", 5000, "RTP/AVP", "m=video 5002 RTP/AVP 96\r\n"));
	assert_null(t.reply.error);
	assert_int_equal(port_of(&t, 0), port);
	assert_true(talk_line(&t, 0, 0, &key));
	assert_int_equal(t.m->rx_new + t.m->tx_new, 0);
	sbuf_fini(&before.whole);
	sbuf_fini(&before.state);
	sbuf_fini(&after.whole);
	sbuf_fini(&after.state);
	talk_end(&t);
}

/* sdp-media-remove: its m-lines have numbers of their own, and those are the call's business. */
static void what_a_party_was_not_told_of_stays_so(void **state)
{
	struct talk t;
	struct saved s;
	const char *why = NULL;

	(void)state;
	talk_start(&t);
	calls_save_start(t.c);
	struct ng_request r = talk_request("a", "",
		talk_body(&t, "198.51.100.1", 4000, "RTP/AVP", "m=video 4002 RTP/AVP 96\r\n"));

	r.media_remove[r.media_removes++] = STR("video");
	talk_send(&t, &r, false);
	assert_null(t.reply.error);
	assert_int_equal(t.sdp->media_count, 1);
	talk_answer(&t, "a", "b", talk_body(&t, "198.51.100.2", 5000, "RTP/AVP", ""));
	save(&t, &s);
	reborn(&t);
	assert_int_equal(restore(&t, sbuf_view(&s.whole), STR_NONE, &why), 0);
	talk_offer(&t, "b", "a", talk_body(&t, "198.51.100.2", 5000, "RTP/AVP", ""));
	assert_null(t.reply.error);
	assert_int_equal(t.sdp->media_count, 2);
	assert_int_not_equal(port_of(&t, 0), 0);
	assert_true(str_eq(t.sdp->media[1].kind, STR("video")));
	assert_int_equal(port_of(&t, 1), 0);
	sbuf_fini(&s.whole);
	sbuf_fini(&s.state);
	talk_end(&t);
}

/* OSRTP=offer-legacy: likewise, and an answer in RTP is still one to the offer that was made. */
static void what_a_party_knows_as_two_stays_two(void **state)
{
	struct talk t;
	struct saved s;
	const char *why = NULL;

	(void)state;
	talk_start(&t);
	calls_save_start(t.c);
	struct ng_request r =
		talk_request("a", "", talk_body(&t, "198.51.100.1", 4000, "RTP/AVP", ""));

	r.osrtp = NG_OSRTP_OFFER_LEGACY;
	talk_send(&t, &r, false);
	assert_null(t.reply.error);
	assert_int_equal(t.sdp->media_count, 2);
	save(&t, &s);
	reborn(&t);
	assert_int_equal(restore(&t, sbuf_view(&s.whole), STR_NONE, &why), 0);
	talk_answer(&t, "a", "b",
		talk_body(&t, "198.51.100.2", 0, "RTP/SAVP", "m=audio 5000 RTP/AVP 0\r\n"));
	assert_null(t.reply.error);
	assert_int_equal(t.sdp->media_count, 1);
	assert_int_not_equal(port_of(&t, 0), 0);
	sbuf_fini(&s.whole);
	sbuf_fini(&s.state);
	talk_end(&t);
}

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

/* elapsed since the save -> where received, and where sent packets go on. The peer of the SRTP side is plain: what is sent to it
 * proves nothing. */
static void indexes_go_on_behind_what_was_used(void **state)
{
	static const struct {
		uint64_t seconds, rx, want_rx, want_tx;
		const char *why;
	} T[] = {
		{0, 100, 100, 100 + 32, "at once"},
		{2, 100, 100, 100 + 100 + 32, "sent: as far as it must have got, and a bit"},
		{2, 0x1fff0, 0x1fff0, 0x1fff0 + 132,
			"a wrap in between is the estimate's business"},
		{600, 100, 100, 100 + 1500 + 32, "just within half a cycle; sent: bounded"},
		{700, 100, 100 + 35000 - 16384, 100 + 1500 + 32,
			"beyond, the ROC follows the rate"},
		{0, (1ull << 48) - 2, (1ull << 48) - 2, (1ull << 48) - 1, "never beyond the end"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct talk t;
		struct saved s;
		const char *why = NULL;
		const struct media_stream_cfg *stream;
		uint32_t ctx;

		talk_start(&t);
		calls_save_start(t.c);
		make_call(&t);
		ctx = mock_stream(t.m, port_of(&t, 0))->ctx;
		t.m->marks[ctx] = marks(t.now, T[i].rx, T[i].rx, 5);
		assert_true(endpoint_parse(&t.m->remote[mock_stream(t.m, port_of(&t, 0))->rtp_to],
				    STR("203.0.113.77:999")) == 0);
		t.m->confirmed[mock_stream(t.m, port_of(&t, 0))->rtp_to] = true;
		save(&t, &s);
		reborn(&t);
		t.now += T[i].seconds * NS_PER_SEC;
		assert_int_equal(restore(&t, sbuf_view(&s.whole), STR_NONE, &why), 0);
		stream = mock_stream(t.m, port_of(&t, 0));
		assert_non_null(stream);
		if (index_of(&t, stream->ctx, MEDIA_RX_RTP) != T[i].want_rx ||
			index_of(&t, stream->ctx, MEDIA_TX_RTP) != T[i].want_tx)
			fail_msg("%s: rx %llu tx %llu", T[i].why,
				(unsigned long long)index_of(&t, stream->ctx, MEDIA_RX_RTP),
				(unsigned long long)index_of(&t, stream->ctx, MEDIA_TX_RTP));
		assert_int_equal(index_of(&t, stream->ctx, MEDIA_RX_RTCP), 9);
		assert_int_equal(t.m->ctx_cfg[stream->ctx].tx_rtcp_index, 5 + (1 << 20));
		assert_non_null(resumed(&t, MEDIA_STREAM_RESUME, stream->rtp_to));
		assert_true(
			resumed(&t, MEDIA_STREAM_RESUME, stream->rtp_to)->stream_resume.confirmed);
		free(t.m->marks[ctx]);
		sbuf_fini(&s.whole);
		sbuf_fini(&s.state);
		talk_end(&t);
	}
}

/* --- What proves nothing (restore.c: is_unproved()) --- */

static void all_media(struct call *c, uint32_t side, enum srtp_suite_id suite, bool no_auth)
{
	for (uint32_t i = 0; i < c->side[side]->legs; i++) {
		struct srtp_master *m = &c->side[side]->leg[i]->rx.master;

		*m = (struct srtp_master){.suite = suite, .no_rtp_auth = no_auth};
	}
}

static void as_it_is(struct call *c)
{
	(void)c;
}

static void proved(struct call *c)
{
	all_media(c, 1, SUITE_AES_CM_128_80, false);
}

static void not_authenticated(struct call *c)
{
	all_media(c, 1, SUITE_AES_CM_128_80, true);
}

static void plain_in_one_media(struct call *c)
{
	proved(c);
	c->side[1]->leg[1]->rx.master = (struct srtp_master){.suite = SUITE_PLAIN};
}

static void plain_but_gone(struct call *c)
{
	c->side[1]->gone = true;
}

static void plain_but_only_listening(struct call *c)
{
	c->side[1]->listener = true;
}

static void plain_but_closed(struct call *c)
{
	proved(c);
	c->side[1]->leg[1]->rx.master = (struct srtp_master){.suite = SUITE_PLAIN};
	c->side[1]->leg[1]->used = c->side[1]->leg[1]->active = false;
}

/* Index 100 was saved as sent, at 50 packets per second, 2 s ago. Where others' packets prove nothing a forger could have had other
 * bytes sent under the indexes since: they are passed over. Where they are authentic, nothing is lost for it. */
static void only_what_proves_nothing_costs_indexes(void **state)
{
	static const struct {
		void (*make)(struct call *c);
		uint64_t want_tx;
		const char *why;
	} T[] = {
		{as_it_is, 232, "plain"},
		{proved, 100, "authenticated"},
		{not_authenticated, 232, "UNAUTHENTICATED_SRTP"},
		{plain_in_one_media, 232, "any media may reach a listener"},
		{plain_but_gone, 100, "gone"},
		{plain_but_only_listening, 100, "what a listener sends goes nowhere"},
		{plain_but_closed, 100, "closed"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct talk t;
		struct saved s;
		const char *why = NULL;
		uint32_t ctx;

		talk_start(&t);
		calls_save_start(t.c);
		make_call(&t);
		ctx = mock_stream(t.m, port_of(&t, 0))->ctx;
		t.m->marks[ctx] = marks(t.now, 100, 100, 5);
		T[i].make(calls_saver(t.c)->table->first);
		save(&t, &s);
		reborn(&t);
		t.now += 2 * NS_PER_SEC;
		if (restore(&t, sbuf_view(&s.whole), STR_NONE, &why))
			fail_msg("%s: %s", T[i].why, why);
		ctx = mock_stream(t.m, port_of(&t, 0))->ctx;
		if (index_of(&t, ctx, MEDIA_TX_RTP) != T[i].want_tx)
			fail_msg("%s: %llu", T[i].why,
				(unsigned long long)index_of(&t, ctx, MEDIA_TX_RTP));
		for (uint32_t k = 0; k < MOCK_MAX; k++)
			free(t.m->marks[k]);
		sbuf_fini(&s.whole);
		sbuf_fini(&s.state);
		talk_end(&t);
	}
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
		/* The mock counts the same from the start in every life. */
		assert_int_equal(now.packets, was.packets / (uint64_t)life * (uint64_t)(life + 1));
	}
	sbuf_fini(&s.whole);
	sbuf_fini(&s.state);
	talk_end(&t);
}

/* --- Recordings --- */

struct fake_recorder {
	struct recorder rec;
	uint32_t started, stopped, discarded;
	char path[64], about[512], file[64];
	uint32_t parts;
	int fail;
};

static int fake_start(
	void *arg, const struct record_start *s, uint32_t *tap, char path[RECORD_PATH_MAX])
{
	struct fake_recorder *f = arg;

	if (f->fail)
		return f->fail;
	f->parts = s->parts;
	snprintf(f->file, sizeof(f->file), STR_FMT, STR_ARG(s->file));
	snprintf(f->about, sizeof(f->about), STR_FMT, STR_ARG(s->about));
	if (s->parts)
		snprintf(path, RECORD_PATH_MAX, "/dir/tape-part%u", s->parts + 1);
	else
		snprintf(path, RECORD_PATH_MAX, "/dir/tape");
	*tap = 70 + ++f->started;
	return 0;
}

static void fake_note(void *arg, uint32_t tap, struct str line)
{
	(void)arg;
	(void)tap;
	(void)line;
}

static void fake_stop(void *arg, uint32_t tap, bool discard)
{
	struct fake_recorder *f = arg;

	assert_int_equal(tap, 70 + f->started);
	f->stopped++;
	f->discarded += discard;
}

static const struct recorder_ops fake_ops = {
	.start = fake_start, .note = fake_note, .stop = fake_stop};

/* One side by its tag, or all. */
static void record(struct talk *t, enum call_record what, const char *side)
{
	struct ng_request r = talk_request(side, "", "");
	struct call_reply said;
	struct pool *p;

	if (side[0])
		r.flags |= 1ull << NG_FLAG_DIRECTIONAL;
	assert_int_equal(pool_create(&p, 1u << 20), 0);
	calls_record(t->c, p, &r, what, t->now, &said, ngval_dict(p));
	assert_null(said.error);
	pool_destroy(p);
}

static void a_recording_goes_on_in_another_file(void **state)
{
	struct fake_recorder f = {.rec = {.ops = &fake_ops, .arg = &f}};
	struct talk t;
	struct saved s;
	const char *why = NULL;

	(void)state;
	talk_start(&t);
	calls_save_start(t.c);
	calls_recorder(t.c, &f.rec);
	make_call(&t);
	record(&t, CALL_RECORD_START, "a");
	for (uint32_t life = 1; life < 4; life++) {
		const struct call *c;

		save(&t, &s);
		reborn(&t);
		assert_int_equal(f.stopped, life); /* the mock dies in order */
		calls_save_start(t.c);
		calls_recorder(t.c, &f.rec);
		assert_int_equal(restore(&t, sbuf_view(&s.whole), STR_NONE, &why), 0);
		assert_null(why);
		assert_int_equal(f.parts, life);
		assert_string_equal(f.file, "tape");
		assert_non_null(strstr(f.about,
			life == 1 ? "continues: /dir/tape.pcap\n" : "continues: /dir/tape-part"));
		assert_non_null(strstr(f.about, "to our port"));
		c = calls_saver(t.c)->table->first;
		assert_int_equal(c->tap, 71 + life);
		assert_true(c->side[0]->tap && !c->side[1]->tap && !c->tap_all && !c->tap_paused);
		assert_int_equal(c->side[0]->leg[0]->rtp_cfg.tap, 71 + life);
		assert_int_equal(c->side[1]->leg[0]->rtp_cfg.tap, 0);
		sbuf_fini(&s.whole);
		sbuf_fini(&s.state);
	}
	/* What is recorded anew begins anew. */
	record(&t, CALL_RECORD_STOP, "");
	assert_int_equal(f.stopped, 4);
	record(&t, CALL_RECORD_START, "");
	assert_int_equal(f.parts, 0);
	/* Nowhere to record to: the call comes back all the same, and the operator is told. */
	calls_save_all(t.c);
	save(&t, &s);
	reborn(&t);
	f.stopped = 0;
	assert_int_equal(restore(&t, sbuf_view(&s.whole), STR_NONE, &why), 0);
	assert_non_null(strstr(why, "without --recording-dir"));
	calls_leave(t.c);
	calls_recorder(t.c, &f.rec);
	f.fail = -ENOSPC;
	assert_int_equal(restore(&t, sbuf_view(&s.whole), STR_NONE, &why), 0);
	assert_non_null(strstr(why, "no file can be opened"));
	assert_int_equal(f.stopped, 0);
	calls_leave(t.c);
	/* The call does not come back: its file does not stay open. */
	f.fail = 0;
	for (uint32_t i = 1;; i++) {
		uint32_t started = f.started;

		t.m->calls = 0;
		t.m->fail_at = i;
		t.m->fail_with = -ENOSPC;
		if (!restore(&t, sbuf_view(&s.whole), STR_NONE, &why))
			break;
		f.stopped -= f.started - started; /* as many as were begun */
		assert_int_equal(f.stopped, 0);
	}
	sbuf_fini(&s.whole);
	sbuf_fini(&s.state);
	talk_end(&t);
}

/* The state that packets changed is written alone, only when it changed, and used only with the call it belongs to. */
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
		for (int i = 0; i < 30; i++) /* no packet, no news */
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

static void each_call_waits_once_and_what_ended_goes_first(void **state)
{
	struct talk t;
	struct sbuf b = {0};
	struct save_item item;
	struct ngval *dict;
	struct ng_request r = talk_request("", "", "");
	struct calls_save_usage u;

	(void)state;
	talk_start(&t);
	make_call(&t);
	assert_false(next(&t, &b, &item)); /* nobody wants to know */
	calls_save_start(t.c);
	calls_save_all(t.c);
	calls_save_usage(t.c, &u);
	assert_int_equal(u.waiting, 1);
	r.delete_delay = 0;
	dict = ngval_dict(t.p);
	calls_delete(t.c, t.p, &r, t.now, &t.reply, dict);
	make_call(&t);
	assert_true(next(&t, &b, &item));
	assert_int_equal(item.what, SAVE_ENDED);
	assert_int_equal(item.call_id_len, 4);
	assert_true(next(&t, &b, &item));
	assert_int_equal(item.what, SAVE_CALL);
	assert_false(next(&t, &b, &item));
	/* Left to another node: nothing is removed. */
	calls_leave(t.c);
	assert_true(mock_relay_empty(t.m));
	assert_false(next(&t, &b, &item));
	sbuf_fini(&b);
	talk_end(&t);
}

static void what_cannot_come_back_changes_nothing(void **state)
{
	struct talk t;
	struct saved s;
	const char *why = NULL;
	char *other;
	uint16_t port;

	(void)state;
	talk_start(&t);
	calls_save_start(t.c);
	make_call(&t);
	port = port_of(&t, 0);
	save(&t, &s);
	assert_int_equal(restore(&t, sbuf_view(&s.whole), STR_NONE, &why), -EEXIST);
	reborn(&t);
	/* each step fails in turn */
	for (uint32_t i = 1;; i++) {
		int err;

		t.m->calls = 0;
		t.m->fail_at = i;
		t.m->fail_with = i % 2 ? -ENOSPC : -EADDRINUSE;
		err = restore(&t, sbuf_view(&s.whole), STR_NONE, &why);
		if (!err) {
			assert_true(i > 8);
			break;
		}
		assert_int_equal(err, t.m->fail_with);
		assert_string_equal(
			why, i % 2 ? "ran out of ports, contexts or keys" : "its port is taken");
		assert_true(mock_relay_empty(t.m));
	}
	t.m->fail_at = 0;
	reborn(&t);
	/* another version, another local address */
	other = malloc(s.whole.len);
	assert_non_null(other);
	memcpy(other, s.whole.p, s.whole.len);
	assert_memory_equal(other, "d1:vi1e", 7);
	other[5] = '0' + SAVE_VERSION + 1;
	assert_int_equal(
		restore(&t, (struct str){other, s.whole.len}, STR_NONE, &why), -EPROTONOSUPPORT);
	free(other);
	t.m->local[0].addr.addr[3] = 99;
	assert_int_equal(restore(&t, sbuf_view(&s.whole), STR_NONE, &why), -EADDRNOTAVAIL);
	assert_null(mock_stream(t.m, port));
	sbuf_fini(&s.whole);
	sbuf_fini(&s.state);
	talk_end(&t);
}

/* What is read may be anything: here every byte is damaged in several ways, which the cipher around it would not let through. */
static void no_damage_does_harm(void **state)
{
	struct talk t;
	struct saved s;
	const char *why = NULL;
	uint32_t came = 0;

	(void)state;
	talk_start(&t);
	calls_save_start(t.c);
	make_call(&t);
	save(&t, &s);
	reborn(&t);
	for (size_t i = 0; i < s.whole.len; i++)
		for (int how = 0; how < 3; how++) {
			char was = s.whole.p[i];

			s.whole.p[i] = (char)(how == 0 ? was ^ 1 : how == 1 ? '9' : was ^ 0x55);
			if (!restore(&t, sbuf_view(&s.whole), STR_NONE, &why)) {
				came++;
				calls_leave(t.c);
			}
			assert_true(mock_relay_empty(t.m));
			s.whole.p[i] = was;
		}
	assert_true(came > 0); /* a key's byte is as good as another */
	for (size_t len = 0; len < s.whole.len; len++)
		assert_int_not_equal(restore(&t, (struct str){s.whole.p, len}, STR_NONE, &why), 0);
	sbuf_fini(&s.whole);
	sbuf_fini(&s.state);
	talk_end(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_saved_comes_back_the_same),
		cmocka_unit_test(what_a_party_was_not_told_of_stays_so),
		cmocka_unit_test(what_a_party_knows_as_two_stays_two),
		cmocka_unit_test(indexes_go_on_behind_what_was_used),
		cmocka_unit_test(only_what_proves_nothing_costs_indexes),
		cmocka_unit_test(streams_go_on_counting),
		cmocka_unit_test(a_recording_goes_on_in_another_file),
		cmocka_unit_test(a_later_state_counts_if_it_is_of_the_same_revision),
		cmocka_unit_test(each_call_waits_once_and_what_ended_goes_first),
		cmocka_unit_test(what_cannot_come_back_changes_nothing),
		cmocka_unit_test(no_damage_does_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
