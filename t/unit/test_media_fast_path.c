/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The fast path against the long way. Two tables get the same commands, packets and engine verdicts
 * in random order, one of them without the fast path. Jobs, notes, sent packets, verdicts and state
 * are equal after every burst, and most packets take the fast path. */
#include "media/short_tag.h"
#include "media/ssrc.h"
#include "media_rig.h"
#include "packet/arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

enum { BURSTS = 3000, RIGS = 2, SHORT = 0, LONG = 1, STREAMS = 3, CTXS = 2, LEN_MAX = 2100 };

struct world {
	struct rig *r[RIGS];
	uint64_t rng;
	uint64_t next[2]; /* of A's and B's terminal */
	uint32_t jobs, fast, left;
};

static uint32_t dice(struct world *w, uint32_t sides)
{
	/* xorshift64 (Marsaglia 2003): the same in every run */
	w->rng ^= w->rng << 13;
	w->rng ^= w->rng >> 7;
	w->rng ^= w->rng << 17;
	return (uint32_t)(w->rng >> 32) % sides;
}

static bool once_in(struct world *w, uint32_t n)
{
	return dice(w, n) == 0;
}

/* --- Packets ---------------------------------------------------------------------------------- */

static uint16_t next_seq(struct world *w, uint32_t from)
{
	if (once_in(w, 12))
		return (uint16_t)(w->next[from] - 1 - dice(w, 200)); /* late, or again */
	w->next[from] += once_in(w, 40) ? dice(w, 9000) : 0;
	return (uint16_t)w->next[from]++;
}

static uint32_t length(struct world *w)
{
	if (once_in(w, 40))
		return dice(w, 30);
	return once_in(w, 60) ? ARENA_MAX_PACKET - 20 + dice(w, 40) : 40 + dice(w, 200);
}

static void mki(const struct rig *r, uint8_t *p, uint32_t len, uint32_t from)
{
	struct media_crypto c =
		rig_crypto(r, from == A ? A_TX : B_TX, from == A ? r->suite_a : r->suite_b);
	struct media_tail t = media_tail(&c, false);

	if (len >= t.len)
		memcpy(p + len - t.len + t.mki, c.key[0].mki, r->mki_len);
}

static void packet(struct world *w, uint32_t from)
{
	uint8_t p[LEN_MAX] = {0x80, 8};
	uint32_t len = length(w), sender = once_in(w, 40) ? 1 - from : from;
	uint64_t t_ns = 1000 + dice(w, 1000);

	if (once_in(w, 30))
		p[0] = (uint8_t)dice(w, 256);
	if (once_in(w, 20))
		p[0] ^= (uint8_t)(1u << dice(w, 6));
	p[1] = once_in(w, 20) ? (uint8_t)(190 + dice(w, 36)) : 8;
	put_be16(p + 2, next_seq(w, from));
	put_be32(p + 8, once_in(w, 30) ? dice(w, 20) : 7);
	for (uint32_t i = 12; i < 40; i++)
		p[i] = once_in(w, 4) ? (uint8_t)dice(w, 256) : 0;
	mki(w->r[SHORT], p, len, from);
	for (uint32_t k = 0; k < RIGS; k++) {
		uint8_t *to = rig_slot(w->r[k], sender, from == A ? PORT_A : PORT_B);

		memcpy(to, p, len);
		w->r[k]->in[w->r[k]->n - 1].len = len;
		w->r[k]->in[w->r[k]->n - 1].t_ns = t_ns;
	}
}

/* --- Commands --------------------------------------------------------------------------------- */

static void command(struct world *w, const struct media_cmd *cmd)
{
	int err = media_command(w->r[SHORT]->m, cmd);

	assert_int_equal(media_command(w->r[LONG]->m, cmd), err);
}

static void stream_changes(struct world *w)
{
	uint32_t id = dice(w, 2);
	struct media_cmd c = rig_stream_cmd(id, id == A ? PORT_A : PORT_B, id, 1 - id, MEDIA_NONE,
		id == A ? "192.0.2.1:4000" : "192.0.2.2:5000");

	c.stream.rtcp = true;
	c.stream.rtcp_to = id == A ? (uint32_t)B_RTCP : (uint32_t)A;
	c.stream.strict_source = dice(w, 2);
	c.stream.learning = once_in(w, 6) ? dice(w, 4) : MEDIA_LEARN_IMMEDIATE;
	c.stream.media_handover = once_in(w, 8);
	c.stream.asymmetric = once_in(w, 8);
	c.stream.gate = once_in(w, 8) ? (uint8_t)dice(w, 256) : 0;
	c.stream.quiet = MEDIA_QUIET_ALL;
	c.stream.wait = once_in(w, 8);
	c.stream.emergency = once_in(w, 4);
	c.stream.relearn = once_in(w, 4);
	c.stream.rtp = !once_in(w, 10);
	c.stream.tos = (uint8_t)dice(w, 256);
	c.stream.copy[0] = once_in(w, 10) ? 4 : 0; /* stream number 3 */
	if (once_in(w, 10))
		c.stream.rtp_to = MEDIA_NONE;
	if (once_in(w, 10))
		c.stream.remote = (struct endpoint){0};
	command(w, &c);
	if (once_in(w, 4)) {
		command(w, &(struct media_cmd){.type = MEDIA_STREAM_DEL, .id = id});
		if (dice(w, 4)) {
			c.stream.wait = true; /* nothing received yet */
			command(w, &c);
		}
	}
}

/* Adds a second receiver of A: the third context's terminal. */
static void listener_comes_or_goes(struct world *w)
{
	struct media_cmd c =
		rig_stream_cmd(3, PORT_B_RTCP + 1, 1, MEDIA_NONE, MEDIA_NONE, "192.0.2.3:6000");

	c.stream.listener = true;
	if (dice(w, 2))
		c = (struct media_cmd){.type = MEDIA_STREAM_DEL, .id = 3};
	command(w, &c);
}

static void context_changes(struct world *w)
{
	uint32_t id = dice(w, 2), rx = id ? B_TX : A_TX, tx = id ? B_RX : A_RX;
	const struct rig *r = w->r[SHORT];
	enum srtp_suite_id suite = id ? r->suite_b : r->suite_a;
	struct media_cmd c = {.type = MEDIA_CTX_SET, .id = id};
	uint64_t lifetime = once_in(w, 3) ? 1 + dice(w, 200) : 0;
	bool again = dice(w, 2), srtp = suite != SUITE_PLAIN;

	if (again)
		for (uint32_t k = 0; k < RIGS && srtp; k++) {
			rig_key_new(w->r[k], rx, 0, lifetime);
			rig_key_new(w->r[k], tx, 0, lifetime);
		}
	c.ctx.rx = rig_crypto(r, rx, suite);
	c.ctx.tx = rig_crypto(r, tx, suite);
	c.ctx.rx_new = c.ctx.tx_new = again;
	c.ctx.rx_roc = dice(w, 3);
	c.ctx.rx_starts = c.ctx.tx_starts = (uint8_t)dice(w, 2);
	c.ctx.rx_start[0] = c.ctx.tx_start[0] =
		(struct media_start){.ssrc = 7, .index = 1u << 16, .roc_only = dice(w, 2)};
	c.ctx.rx.clear_rtp = srtp && once_in(w, 8);
	c.ctx.tx.clear_rtp = srtp && once_in(w, 8);
	c.ctx.rx.no_rtp_auth = srtp && suite != SUITE_AEAD_AES_128_GCM && once_in(w, 8);
	c.ctx.rx.pass = once_in(w, 12);
	command(w, &c);
	if (once_in(w, 20))
		command(w, &(struct media_cmd){.type = MEDIA_CTX_DEL, .id = id});
}

static void something_changes(struct world *w)
{
	uint32_t what = dice(w, 8);
	uint64_t ordinary = dice(w, 2) ? 1000 + dice(w, 500) : 0, emergency = ordinary / 2;

	if (what < 3)
		stream_changes(w);
	else if (what < 6)
		context_changes(w);
	else if (what < 7)
		listener_comes_or_goes(w);
	else
		for (uint32_t k = 0; k < RIGS; k++)
			media_shed(w->r[k]->m, ordinary, emergency);
}

/* The configuration of most calls. */
static void all_is_usual(struct world *w)
{
	for (uint32_t k = 0; k < RIGS; k++) {
		media_shed(w->r[k]->m, 0, 0);
		for (uint32_t slot = A_TX; slot <= B_RX; slot += 2)
			rig_key_new(w->r[k], slot, 0, 0);
		rig_ctx(w->r[k], 0, (struct rig_keys){A_TX, A_RX, w->r[k]->suite_a, true, true});
		rig_ctx(w->r[k], 1, (struct rig_keys){B_TX, B_RX, w->r[k]->suite_b, true, true});
		rig_stream(w->r[k], rig_stream_cmd(A, PORT_A, 0, B, B_RTCP, "192.0.2.1:4000"));
		rig_stream(w->r[k], rig_stream_cmd(B, PORT_B, 1, A, MEDIA_NONE, "192.0.2.2:5000"));
	}
}

/* --- The same on both ------------------------------------------------------------------------- */

static void same_notes(const struct media *a, const struct media *b, uint32_t i)
{
	struct note x = a->note[i], y = b->note[i];

	/* Only complete() reads them, and only for packets that leave, or on the long way. */
	if (x.fast) {
		assert_ptr_equal(a->ctx + (y.rx - b->ctx), x.rx);
		assert_ptr_equal(a->ctx + (y.tx - b->ctx), x.tx);
	}
	assert_false(y.fast);
	x.fast = false;
	x.rx = y.rx = x.tx = y.tx = NULL;
	assert_int_equal(x.in, y.in);
	assert_int_equal(x.stream, y.stream);
	assert_int_equal(x.to, y.to);
	assert_int_equal(x.rx_key, y.rx_key);
	assert_int_equal(x.tx_key, y.tx_key);
	assert_int_equal(x.why, y.why);
	assert_int_equal(x.passed, y.passed);
	assert_int_equal(x.copy_of, y.copy_of);
}

static void same_ssrc(const struct ssrc_state *x, const struct ssrc_state *y)
{
	assert_int_equal(x->ssrc, y->ssrc);
	assert_int_equal(x->used, y->used);
	assert_int_equal(x->touched, y->touched);
	assert_int_equal(x->lead, y->lead);
	assert_int_equal(x->lead_at, y->lead_at);
	assert_int_equal(x->seen.last, y->seen.last);
	assert_int_equal(x->seen.started, y->seen.started);
	assert_memory_equal(x->seen.near, y->seen.near, sizeof(x->seen.near));
}

static void same_state(const struct world *w)
{
	struct media *a = w->r[SHORT]->m, *b = w->r[LONG]->m;

	for (uint32_t i = 0; i < CTXS; i++) {
		struct media_ctx *x = &a->ctx[i], *y = &b->ctx[i];

		for (int t = 0; t < SSRC_TABLES; t++) {
			same_ssrc(media_ssrc_first(x, t), media_ssrc_first(y, t));
			assert_int_equal(x->used[t], y->used[t]);
			for (uint32_t k = 1; k < x->used[t]; k++)
				same_ssrc(&x->more[t][k - 1], &y->more[t][k - 1]);
		}
		assert_int_equal(x->rx.credit, y->rx.credit);
		assert_int_equal(x->tx.credit, y->tx.credit);
		assert_int_equal(x->tx_rtcp_next, y->tx_rtcp_next);
	}
	for (uint32_t i = 0; i <= STREAMS; i++) {
		assert_memory_equal(&a->stream[i].learn, &b->stream[i].learn, sizeof(struct learn));
		assert_memory_equal(&a->trial[i], &b->trial[i], sizeof(*a->trial));
		assert_memory_equal(&a->counters[i], &b->counters[i], sizeof(*a->counters));
	}
	for (uint32_t i = 0; i < KEYS / 2; i++) {
		assert_int_equal(a->key[i].rtp, b->key[i].rtp);
		assert_int_equal(a->key[i].rtcp, b->key[i].rtcp);
	}
	assert_memory_equal(a->drops, b->drops, sizeof(a->drops));
}

/* Compares the verdicts of both tables, and the sent packets. */
static void same_end(const struct world *w, uint32_t n)
{
	const struct rig *a = w->r[SHORT], *b = w->r[LONG];

	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(a->in[i].verdict, b->in[i].verdict);
	assert_int_equal(a->outs, b->outs);
	for (uint32_t i = 0; i < a->outs; i++) {
		const struct packet_out *x = &a->out[i], *y = &b->out[i];

		assert_true(endpoint_eq(&x->dst, &y->dst));
		assert_int_equal(x->local.port, y->local.port);
		assert_int_equal(x->out_off, y->out_off);
		assert_int_equal(x->len, y->len);
		assert_int_equal(x->tos, y->tos);
		assert_int_equal(x->in, y->in);
	}
}

static uint32_t prepare_long(struct rig *r)
{
	bool usual[STREAMS];
	uint32_t jobs;

	for (uint32_t i = 0; i < STREAMS; i++) {
		usual[i] = r->m->stream[i].fast;
		r->m->stream[i].fast = false;
	}
	jobs = rig_prepare(r);
	for (uint32_t i = 0; i < STREAMS; i++)
		r->m->stream[i].fast = usual[i];
	return jobs;
}

static void burst(struct world *w)
{
	uint32_t n = 1 + dice(w, SLOTS), jobs;
	struct rig *a = w->r[SHORT], *b = w->r[LONG];

	for (uint32_t i = 0; i < n; i++)
		packet(w, dice(w, 2));
	jobs = rig_prepare(a);
	assert_int_equal(prepare_long(b), jobs);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(a->in[i].verdict, b->in[i].verdict);
	assert_memory_equal(a->a.job, b->a.job, jobs * sizeof(struct xc_job));
	for (uint32_t i = 0; i < jobs; i++) {
		same_notes(a->m, b->m, i);
		w->fast += a->m->note[i].fast;
		a->a.status[i] = b->a.status[i] = once_in(w, 12) ? XC_BAD_TAG : XC_OK;
	}
	w->jobs += jobs;
	if (once_in(w, 50))
		something_changes(w); /* by accident, see media_complete() */
	for (uint32_t k = 0; k < RIGS; k++) {
		struct rig *r = w->r[k];

		r->outs = media_complete(r->m, &r->a, r->in,
			&(struct batch){.job = r->a.job, .status = r->a.status, .n = jobs}, r->out);
		media_sent(r->m, r->in, r->out, r->outs);
		r->n = 0;
	}
	same_end(w, n);
	same_state(w);
	w->left += a->outs;
}

static void play(enum srtp_suite_id suite_a, enum srtp_suite_id suite_b, uint8_t mki_len)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	w->rng = 0x9e3779b97f4a7c15ull + suite_a;
	w->next[A] = w->next[B] = 65000; /* the ROC will soon increase */
	for (uint32_t k = 0; k < RIGS; k++)
		w->r[k] = rig_new(suite_a, suite_b, mki_len);
	for (uint32_t i = 0; i < BURSTS; i++) {
		if (i % 60 == 0)
			all_is_usual(w);
		if (i % 60 > 30 && once_in(w, 4))
			something_changes(w);
		burst(w);
	}
	print_message("%u jobs, %u of them by the short way, %u left\n", w->jobs, w->fast, w->left);
	assert_true(mki_len ? w->fast == 0 : w->fast > w->jobs / 3);
	assert_true(w->left > w->jobs / 4);
	for (uint32_t k = 0; k < RIGS; k++)
		rig_free(w->r[k]);
	free(w);
}

static void the_short_way_ends_where_the_long_way_does(void **state)
{
	static const struct {
		enum srtp_suite_id a, b;
		uint8_t mki_len;
	} T[] = {
		{SUITE_AES_CM_128_80, SUITE_AES_CM_128_32, 0},
		{SUITE_AEAD_AES_128_GCM, SUITE_AES_CM_128_80, 0},
		{SUITE_PLAIN, SUITE_AES_CM_128_80, 0},
		{SUITE_AES_CM_128_32, SUITE_PLAIN, 0},
		{SUITE_AES_CM_128_80, SUITE_AES_CM_128_32, 4},
	};

	(void)state;
	for (size_t t = 0; t < ARRAY_LEN(T); t++)
		play(T[t].a, T[t].b, T[t].mki_len);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_short_way_ends_where_the_long_way_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
