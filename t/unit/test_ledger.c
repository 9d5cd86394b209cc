/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A slot keeps the indexes of its key as long as it exists (media/ledger.c): over other keys,
 * RTP, pass-through, the context's end, and more SSRCs than entries. No index is sent or
 * received twice. */
#include "media_rig.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#define CM80 SUITE_AES_CM_128_80
#define GCM  SUITE_AEAD_AES_128_GCM

/* Further keys, in slots that the rig leaves free. */
enum { B_RX2 = LENT, B_RX3 = LENT + 2, A_TX3 = LENT + 4 };

static struct rig *rig(enum srtp_suite_id a, enum srtp_suite_id b)
{
	struct rig *r = rig_new(a, b, 0);

	rig_key(r, B_RX2, b);
	rig_key(r, B_RX3, b);
	rig_key(r, A_TX3, a);
	return r;
}

static enum packet_verdict one(struct rig *r, uint32_t ssrc, uint64_t index, uint32_t slot)
{
	rig_send(r, ssrc, index, slot);
	rig_run(r);
	return (enum packet_verdict)r->in[0].verdict;
}

static void b_key(struct rig *r, uint32_t slot)
{
	struct media_cmd cmd = {.type = MEDIA_CTX_SET,
		.id = 1,
		.ctx = {.rx = rig_crypto(r, B_TX, r->suite_b), .tx_new = true}};

	if (slot)
		cmd.ctx.tx = rig_crypto(r, slot, r->suite_b);
	assert_int_equal(media_command(r->m, &cmd), 0);
}

static void a_key(struct rig *r, uint32_t slot, bool pass)
{
	struct media_cmd cmd = {
		.type = MEDIA_CTX_SET, .id = 0, .ctx = {.tx = rig_crypto(r, A_RX, r->suite_a)}};

	cmd.ctx.rx_new = r->m->ctx_cfg[0].rx.key[0].slot != slot;
	if (slot)
		cmd.ctx.rx = rig_crypto(r, slot, r->suite_a);
	cmd.ctx.rx.pass = pass;
	assert_int_equal(media_command(r->m, &cmd), 0);
}

static void b_pass(struct rig *r)
{
	struct media_cmd cmd = {.type = MEDIA_CTX_SET,
		.id = 1,
		.ctx = {.rx = rig_crypto(r, B_TX, r->suite_b),
			.tx = {.pass = true},
			.tx_new = true}};

	assert_int_equal(media_command(r->m, &cmd), 0);
}

/* A 183 with one key, a 183 with another, a 200 with the first; RTP in between. */
static void a_sending_key_that_returns_goes_on(void **state)
{
	static const enum srtp_suite_id suite[] = {CM80, GCM};
	static const uint32_t between[] = {B_RX2, 0};

	(void)state;
	for (size_t s = 0; s < ARRAY_LEN(suite); s++)
		for (size_t i = 0; i < ARRAY_LEN(between); i++) {
			struct rig *r = rig(SUITE_PLAIN, suite[s]);

			for (uint64_t index = 65530; index < 65541; index++)
				assert_int_equal(one(r, 7, index, 0), PACKET_SENT);
			b_key(r, between[i]);
			assert_int_equal(one(r, 7, 65535, 0), PACKET_SENT);
			b_key(r, B_RX);
			for (uint64_t index = 65530; index < 65541; index++)
				assert_int_equal(one(r, 7, index, 0), PACKET_DROP_NONCE);
			/* Control: the roll-over counter continues, and newer packets are sent. */
			assert_int_equal(one(r, 7, 65541, 0), PACKET_SENT);
			rig_got(r, 0, 7, 65541, 65541);
			rig_free(r);
		}
}

static uint32_t rtcp_index(struct rig *r, uint32_t number)
{
	rig_send_rtcp(r, 7, number);
	rig_run(r);
	assert_int_equal(r->outs, 1);
	return be32(r->a.out + r->out[0].out_off + 28) & SRTCP_INDEX_MAX;
}

/* The key's index also survives another key that used up its own. */
static void srtcp_indexes_of_a_key_go_on(void **state)
{
	struct rig *r = rig(SUITE_PLAIN, CM80);

	(void)state;
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(rtcp_index(r, i), i);
	r->m->ctx[1].tx_rtcp_next = SRTCP_INDEX_MAX + 1;
	b_key(r, B_RX2);
	assert_int_equal(rtcp_index(r, 6), 0);
	r->m->ctx[1].tx_rtcp_next = 3;
	b_key(r, B_RX);
	rig_send_rtcp(r, 7, 7);
	rig_run(r);
	assert_int_equal(r->outs, 0); /* the first key's indexes are used up */
	b_key(r, B_RX2);
	rig_free(r);
}

static void a_received_key_that_returns_goes_on(void **state)
{
	static const uint32_t between[] = {A_TX2, 0};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(between); i++) {
		struct rig *r = rig(CM80, SUITE_PLAIN);

		for (uint64_t index = 65530; index < 65541; index++)
			assert_int_equal(one(r, 7, index, A_TX), PACKET_SENT);
		rig_send_rtcp(r, 7, 5);
		rig_run(r);
		assert_int_equal(r->outs, 1);
		a_key(r, between[i], false);
		a_key(r, A_TX, false);
		for (uint64_t index = 65530; index < 65541; index++)
			assert_int_equal(one(r, 7, index, A_TX), PACKET_DROP_REPLAY);
		rig_send_rtcp(r, 7, 5);
		rig_run(r);
		assert_int_equal(r->outs, 0);
		assert_int_equal(one(r, 7, 65541, A_TX), PACKET_SENT);
		rig_send_rtcp(r, 7, 6);
		rig_run(r);
		assert_int_equal(r->outs, 1);
		rig_free(r);
	}
}

/* Indexes that were authentic before pass-through count as received afterwards. */
static void passing_through_forgets_nothing(void **state)
{
	struct rig *r = rig(CM80, SUITE_PLAIN);

	(void)state;
	for (uint64_t index = 1; index < 100; index++)
		assert_int_equal(one(r, 7, index, A_TX), PACKET_SENT);
	a_key(r, A_TX, true);
	b_pass(r);
	assert_int_equal(one(r, 7, 120, A_TX), PACKET_SENT);
	a_key(r, A_TX, false);
	b_key(r, 0);
	for (uint64_t index = 1; index < 100; index++)
		assert_int_equal(one(r, 7, index, A_TX), PACKET_DROP_REPLAY);
	assert_int_equal(one(r, 7, 121, A_TX), PACKET_SENT);
	rig_free(r);
}

/* A rejected m-line that is offered again gets another context. */
static void a_key_outlives_its_context(void **state)
{
	const struct media_cmd del[] = {
		{.type = MEDIA_CTX_DEL, .id = 0}, {.type = MEDIA_CTX_DEL, .id = 1}};
	struct rig *r = rig(CM80, CM80);

	(void)state;
	assert_int_equal(one(r, 7, 10, A_TX), PACKET_SENT);
	for (size_t i = 0; i < ARRAY_LEN(del); i++)
		assert_int_equal(media_command(r->m, &del[i]), 0);
	rig_ctx(r, 0, (struct rig_keys){A_TX, A_RX, CM80, true, true});
	rig_ctx(r, 1, (struct rig_keys){B_TX, B_RX, CM80, true, true});
	assert_int_equal(one(r, 7, 10, A_TX), PACKET_DROP_REPLAY);
	a_key(r, A_TX2, false);
	assert_int_equal(one(r, 7, 10, A_TX2), PACKET_DROP_NONCE);
	assert_int_equal(one(r, 7, 11, A_TX2), PACKET_SENT);
	rig_free(r);
}

static void a_slot_with_a_new_key_knows_nothing(void **state)
{
	struct rig *r = rig(SUITE_PLAIN, CM80);

	(void)state;
	assert_int_equal(one(r, 7, 10, 0), PACKET_SENT);
	b_key(r, B_RX2);
	rig_key_new(r, B_RX, 0, 0);
	b_key(r, B_RX);
	assert_int_equal(one(r, 7, 10, 0), PACKET_SENT);
	rig_free(r);
}

/* One key in two contexts would send each index twice. */
static void a_key_in_force_elsewhere_is_refused(void **state)
{
	struct rig *r = rig(SUITE_PLAIN, CM80);
	struct media_cmd cmd = {.type = MEDIA_CTX_SET,
		.id = 2,
		.ctx = {.tx = rig_crypto(r, B_RX, CM80), .rx_new = true, .tx_new = true}};

	(void)state;
	assert_int_equal(one(r, 7, 10, 0), PACKET_SENT);
	assert_int_equal(media_command(r->m, &cmd), -EINVAL);
	b_key(r, B_RX2);
	assert_int_equal(media_command(r->m, &cmd), 0);
	rig_free(r);
}

/* --- More SSRCs than places ------------------------------------------------------------------- */

static void a_replay_fails_however_many_ssrcs_came(void **state)
{
	struct rig *r = rig(CM80, SUITE_PLAIN);
	uint32_t all = MEDIA_SSRCS + MEDIA_PAST;

	(void)state;
	for (uint32_t i = 0; i < all; i++) {
		assert_int_equal(one(r, 100 + i, 65534, A_TX), PACKET_SENT);
		assert_int_equal(one(r, 100 + i, 65537, A_TX), PACKET_SENT);
		rig_send_rtcp(r, 100 + i, 9);
		rig_run(r);
		assert_int_equal(r->outs, 1);
	}
	for (uint32_t i = 0; i < all; i++) {
		assert_int_equal(one(r, 100 + i, 65534, A_TX), PACKET_DROP_REPLAY);
		assert_int_equal(one(r, 100 + i, 65537, A_TX), PACKET_DROP_REPLAY);
		rig_send_rtcp(r, 100 + i, 9);
		rig_run(r);
		assert_int_equal(r->in[0].verdict, PACKET_DROP_REPLAY);
	}
	/* Control: all SSRCs continue in turn, although they exceed the places and the limit per
	 * second is off. */
	for (uint64_t k = 1; k < 4; k++)
		for (uint32_t i = 0; i < all; i++)
			assert_int_equal(one(r, 100 + i, 65537 + k, A_TX), PACKET_SENT);
	/* An SSRC that cannot be stored is refused until there is a new key. */
	assert_int_equal(one(r, 999, 10, A_TX), PACKET_DROP_SSRC_LIMIT);
	a_key(r, A_TX2, false);
	assert_int_equal(one(r, 999, 10, A_TX2), PACKET_SENT);
	/* All indexes are stored with the key. */
	a_key(r, A_TX, false);
	for (uint32_t i = 0; i < all; i++)
		assert_int_equal(one(r, 100 + i, 65540, A_TX), PACKET_DROP_REPLAY);
	assert_int_equal(one(r, 999, 11, A_TX), PACKET_DROP_SSRC_LIMIT);
	rig_free(r);
}

/* --- At random -------------------------------------------------------------------------------- */

enum { ROUNDS = 3000, SSRCS = 24, OLD = 512, USES = ROUNDS * SLOTS };

struct use {
	uint64_t index;
	uint32_t slot, ssrc, rtcp, pad;
};

struct world {
	struct rig *r;
	uint64_t rng;
	uint32_t a, b; /* keys in force */
	bool pass;
	uint64_t next[3][SSRCS];
	uint8_t old[OLD][256]; /* A's packets under any key, replayed at any time */
	uint32_t old_len[OLD], olds;
	struct use *sent, *got;
	uint32_t sents, gots, offered;
};

static const uint32_t a_keys[] = {A_TX, A_TX2, A_TX3}, b_keys[] = {B_RX, B_RX2, B_RX3, 0};

static uint32_t dice(struct world *w, uint32_t sides)
{
	w->rng ^= w->rng << 13;
	w->rng ^= w->rng >> 7;
	w->rng ^= w->rng << 17;
	return (uint32_t)(w->rng >> 32) % sides;
}

static void good(struct world *w)
{
	uint32_t i = w->r->n, s = dice(w, 8) ? dice(w, 3) : dice(w, SSRCS);
	uint32_t k = w->r->suite_a == SUITE_PLAIN ? 0 : dice(w, 3);
	uint64_t *next = &w->next[k][s];

	*next += dice(w, 50) ? 1 : dice(w, 2000);
	rig_send(w->r, s, *next - (dice(w, 10) ? 0 : dice(w, 40)),
		w->r->suite_a == SUITE_PLAIN ? 0 : a_keys[k]);
	w->offered += w->r->suite_a == SUITE_PLAIN || a_keys[k] == w->a;
	memcpy(w->old[w->olds % OLD], w->r->a.in + w->r->in[i].in_off, w->r->in[i].len);
	w->old_len[w->olds++ % OLD] = w->r->in[i].len;
}

static void replayed(struct world *w)
{
	uint32_t i = w->r->n, at;

	if (!w->olds)
		return;
	at = dice(w, w->olds < OLD ? w->olds : OLD);
	memcpy(rig_slot(w->r, A, PORT_A), w->old[at], w->old_len[at]);
	w->r->in[i].len = w->old_len[at];
}

static void burst(struct world *w)
{
	uint32_t n = 1 + dice(w, SLOTS - 1), jobs;

	for (uint32_t i = 0; i < n; i++)
		if (dice(w, 3))
			good(w);
		else
			replayed(w);
	for (uint32_t i = 0; i < w->r->n; i++)
		w->r->in[i].t_ns = (1 + w->sents) * MEDIA_TURN_NS;
	jobs = rig_prepare(w->r);
	rig_complete(w->r, jobs);
	for (uint32_t k = 0; k < w->r->outs; k++)
		for (uint32_t i = 0; i < jobs; i++) {
			const struct xc_job *j = &w->r->a.job[i];

			if (j->out_off != w->r->out[k].out_off || w->pass)
				continue;
			w->sent[w->sents++] = (struct use){
				.slot = j->tx_key, .ssrc = j->ssrc, .index = j->tx_index};
			w->got[w->gots++] = (struct use){
				.slot = j->rx_key, .ssrc = j->ssrc, .index = j->rx_index};
		}
}

static void change(struct world *w)
{
	static const struct media_cmd del[] = {
		{.type = MEDIA_CTX_DEL, .id = 0}, {.type = MEDIA_CTX_DEL, .id = 1}};

	switch (dice(w, 5)) {
	case 0:
	case 1:
		w->b = b_keys[dice(w, ARRAY_LEN(b_keys))];
		break;
	case 2:
		w->a = a_keys[dice(w, ARRAY_LEN(a_keys))];
		break;
	case 3:
		w->pass = w->r->suite_a != SUITE_PLAIN && !w->pass;
		break;
	default:
		for (size_t i = 0; i < ARRAY_LEN(del); i++)
			assert_int_equal(media_command(w->r->m, &del[i]), 0);
		rig_ctx_plain(w->r, 0);
		rig_ctx_plain(w->r, 1);
	}
	a_key(w->r, w->r->suite_a == SUITE_PLAIN ? 0 : w->a, w->pass);
	if (w->pass)
		b_pass(w->r);
	else if (w->b == 0 || w->r->m->ctx_cfg[1].tx.key[0].slot != w->b)
		b_key(w->r, w->b);
}

static int by_use(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct use));
}

/* Counts the pairs (SSRC, index) that a key sent twice. */
static uint32_t repeated(struct use *use, uint32_t n)
{
	uint32_t twice = 0;

	qsort(use, n, sizeof(*use), by_use);
	for (uint32_t i = 1; i < n; i++)
		twice += use[i].slot != 0 && by_use(&use[i - 1], &use[i]) == 0;
	return twice;
}

static void play(enum srtp_suite_id suite_a, enum srtp_suite_id suite_b, uint64_t seed)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	w->r = rig(suite_a, suite_b);
	w->rng = 0x9e3779b97f4a7c15ull + seed;
	w->a = A_TX;
	w->b = B_RX;
	w->sent = calloc(USES, sizeof(*w->sent));
	w->got = calloc(USES, sizeof(*w->got));
	assert_true(w->sent && w->got);
	for (uint32_t k = 0; k < 3; k++)
		for (uint32_t s = 0; s < SSRCS; s++)
			w->next[k][s] = 60000 + dice(w, 5000);
	for (uint32_t i = 1; i <= ROUNDS; i++) {
		burst(w);
		if (dice(w, 12) == 0)
			change(w);
	}
	assert_true(w->sents * 10 > w->offered);
	assert_int_equal(repeated(w->sent, w->sents), 0);
	assert_int_equal(repeated(w->got, w->gots), 0);
	/* Control: the checker detects a repeated index. */
	for (uint32_t i = 1; i < w->sents; i++)
		if (w->sent[i].slot) {
			w->sent[i - 1] = w->sent[i];
			break;
		}
	assert_true(repeated(w->sent, w->sents) > 0);
	free(w->sent);
	free(w->got);
	rig_free(w->r);
	free(w);
}

static void whatever_comes_between_nothing_is_used_twice(void **state)
{
	static const enum srtp_suite_id pair[][2] = {
		{CM80, CM80}, {SUITE_PLAIN, CM80}, {SUITE_PLAIN, GCM}, {GCM, CM80}};

	(void)state;
	for (uint64_t seed = 0; seed < 3; seed++)
		for (size_t t = 0; t < ARRAY_LEN(pair); t++)
			play(pair[t][0], pair[t][1], seed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sending_key_that_returns_goes_on),
		cmocka_unit_test(srtcp_indexes_of_a_key_go_on),
		cmocka_unit_test(a_received_key_that_returns_goes_on),
		cmocka_unit_test(passing_through_forgets_nothing),
		cmocka_unit_test(a_key_outlives_its_context),
		cmocka_unit_test(a_slot_with_a_new_key_knows_nothing),
		cmocka_unit_test(a_key_in_force_elsewhere_is_refused),
		cmocka_unit_test(a_replay_fails_however_many_ssrcs_came),
		cmocka_unit_test(whatever_comes_between_nothing_is_used_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
