/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Thousands of packets in random order, with replays, forgeries, losses and re-keying. Each must
 * keep the rules: forgeries do not leave, no (key, SSRC, index) is used twice, and B's terminal,
 * which estimates indexes itself, accepts the result. */
#include "media_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "packet/arena.h"
#include "srtp/ref.h"

enum { BURSTS = 400, SSRCS = 5, PAST = 64, MAX_SENT = BURSTS * SLOTS };

struct sent { /* one use of an outbound key */
	uint64_t index;
	uint32_t epoch, ssrc, rtcp, pad;
};

struct world {
	struct rig *r;
	uint64_t rng;
	uint64_t next[SSRCS]; /* A's next 48-bit index of each SSRC */
	uint32_t rtcp_next;
	uint32_t a_slot;        /* A sends under */
	uint32_t epoch;         /* B's keys so far */
	struct replay b[SSRCS]; /* packets that B's terminal accepted */
	uint64_t b_seen[SSRCS][SRTP_REPLAY_WINDOW / 64];
	uint8_t past[PAST][256]; /* A's latest good packets, to be replayed */
	uint32_t past_len[PAST], pasts;
	bool genuine[SLOTS]; /* of the burst: sent by A */
	struct sent *sent;
	uint32_t sents, left, offered;
};

static uint32_t dice(struct world *w, uint32_t sides)
{
	/* xorshift64 (Marsaglia 2003): the same packets in every run */
	w->rng ^= w->rng << 13;
	w->rng ^= w->rng >> 7;
	w->rng ^= w->rng << 17;
	return (uint32_t)(w->rng >> 32) % sides;
}

/* Changes a random byte from this place on. */
static void damage(struct world *w, uint8_t *p, uint32_t len, uint32_t from)
{
	p[from + dice(w, len - from)] ^= (uint8_t)(1 + dice(w, 255));
}

static void good_rtp(struct world *w)
{
	uint32_t i = w->r->n, s = dice(w, SSRCS), late = dice(w, 8) == 0 ? 1 + dice(w, 200) : 0;
	uint64_t index = w->next[s];

	if (late && late < (index & 0xffff)) {
		index -= late; /* reordered, or a second time */
	} else {
		/* Lost on the way. Without authentication only small gaps are accepted
		 * (media/jump.c). */
		index += dice(w, 40) == 0 ? dice(w, w->r->suite_a == SUITE_PLAIN ? 40 : 20000) : 0;
		w->next[s] = index + 1;
	}
	rig_send(w->r, s, index, w->a_slot);
	w->genuine[i] = true;
	memcpy(w->past[w->pasts % PAST], w->r->a.in + w->r->in[i].in_off, w->r->in[i].len);
	w->past_len[w->pasts++ % PAST] = w->r->in[i].len;
	w->offered++;
}

static void forged_rtp(struct world *w)
{
	uint32_t i = w->r->n, s = dice(w, SSRCS);
	uint8_t *p = rig_send(w->r, s, w->next[s], w->a_slot);

	if (dice(w, 3) == 0)
		put_be16(p + 2, (uint16_t)dice(w, 65536));
	if (dice(w, 3) == 0)
		put_be32(p + 8, 1000 + dice(w, 1000));
	damage(w, p, w->r->in[i].len, 12);
	w->genuine[i] = false;
}

static void rtcp(struct world *w, bool forged)
{
	uint32_t i = w->r->n;
	uint8_t *p = rig_send_rtcp(w->r, dice(w, SSRCS), w->rtcp_next);

	w->genuine[i] = !forged;
	if (forged)
		damage(w, p, w->r->in[i].len, 8);
	else
		w->rtcp_next++;
}

static void replay(struct world *w)
{
	uint32_t i = w->r->n, at;

	if (!w->pasts)
		return;
	at = dice(w, w->pasts < PAST ? w->pasts : PAST);
	memcpy(rig_slot(w->r, A, PORT_A), w->past[at], w->past_len[at]);
	w->r->in[i].len = w->past_len[at];
	w->genuine[i] = true; /* sent by A; the indexes decide whether it leaves again */
}

static uint64_t b_estimates(const struct replay *r, uint16_t seq)
{
	return r->started ? srtp_index_estimate(r->last, seq) : seq;
}

static void b_begins(struct world *w)
{
	for (uint32_t s = 0; s < SSRCS; s++)
		replay_init(&w->b[s], w->b_seen[s], SRTP_REPLAY_WINDOW / 64);
}

/* B's terminal receives it: its own estimate finds the index, the tag is right, and the packet is
 * not a repetition. */
static void b_hears(struct world *w, const struct packet_out *out, const struct xc_job *j)
{
	static uint8_t bytes[ARENA_SLOT_LEN];
	const uint8_t *p = w->r->a.out + out->out_off;
	uint32_t tag = srtp_suite_get(w->r->suite_b)->rtp_tag_len;
	struct xc_job back = {.rx_key = B_RX, .hdr_len = 12, .ssrc = j->ssrc};
	bool is_rtcp = j->flags & XC_JOB_RTCP;
	uint8_t want[172];

	assert_true(w->genuine[out->in]);
	assert_true(w->sents < MAX_SENT);
	/* SRTCP has one index for all SSRCs. */
	w->sent[w->sents++] = (struct sent){.index = j->tx_index,
		.epoch = w->epoch,
		.ssrc = is_rtcp ? 0 : j->ssrc,
		.rtcp = is_rtcp};
	if (is_rtcp)
		return;
	w->left++;
	assert_true(j->ssrc < SSRCS);
	back.rx_index = b_estimates(&w->b[j->ssrc], be16(p + 2));
	assert_int_equal(replay_check(&w->b[j->ssrc], back.rx_index), REPLAY_NEW);
	replay_add(&w->b[j->ssrc], back.rx_index);
	back.body_len = out->len - 12 - tag; /* the reference checks no lengths */
	back.rx_tag_off = back.tx_tag_off = 12 + back.body_len;
	assert_int_equal(srtp_ref_job(&back, w->r->a.key, p, bytes), XC_OK);
	rig_plain_rtp(want, j->ssrc, be16(p + 2));
	memcpy(want + 4, bytes + 4, 4); /* A's roll-over counter, which is in it, may be another */
	assert_memory_equal(bytes, want, 172);
}

static void burst(struct world *w)
{
	uint32_t n = 1 + dice(w, SLOTS - 1), jobs;
	/* On a plain side a forgery cannot be detected. */
	bool srtp = w->r->suite_a != SUITE_PLAIN;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t kind = dice(w, 20);

		if (kind < 13)
			good_rtp(w);
		else if (kind < 15 && w->a_slot == A_TX) /* RTCP of the rig uses the first key */
			rtcp(w, srtp && kind == 14);
		else if (kind < 18 || !srtp)
			replay(w);
		else
			forged_rtp(w);
	}
	jobs = rig_prepare(w->r);
	rig_complete(w->r, jobs);
	for (uint32_t k = 0; k < w->r->outs; k++)
		for (uint32_t i = 0; i < jobs; i++)
			if (w->r->a.job[i].out_off == w->r->out[k].out_off)
				b_hears(w, &w->r->out[k], &w->r->a.job[i]);
}

/* Never the same key twice: a new salt in the same place. */
static void change_key(struct world *w, uint32_t slot)
{
	rig_key_new(w->r, slot, 0, 0);
	w->r->a.key[slot].salt[1]++;
	w->r->a.key[slot + 1].salt[1]++;
}

static void a_rekeys(struct world *w)
{
	if (w->r->suite_a == SUITE_PLAIN)
		return;
	w->a_slot = w->a_slot == A_TX ? A_TX2 : A_TX;
	change_key(w, w->a_slot);
	for (uint32_t s = 0; s < SSRCS; s++)
		w->next[s] &= 0xffff; /* the sequence goes on, the roll-over counter does not */
	w->pasts = 0;
	rig_ctx(w->r, 0, (struct rig_keys){w->a_slot, A_RX, w->r->suite_a, true, false});
}

static void b_rekeys(struct world *w)
{
	rig_ctx_plain(w->r, 1);
	change_key(w, B_RX);
	w->epoch++;
	b_begins(w);
	rig_ctx(w->r, 1, (struct rig_keys){B_TX, B_RX, w->r->suite_b, false, true});
}

static int by_use(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct sent));
}

static void play(enum srtp_suite_id suite_a, enum srtp_suite_id suite_b, uint64_t seed)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	w->r = rig_new(suite_a, suite_b, 0);
	w->rng = 0x9e3779b97f4a7c15ull + seed;
	w->a_slot = A_TX;
	b_begins(w);
	w->sent = calloc(MAX_SENT, sizeof(*w->sent));
	assert_non_null(w->sent);
	for (uint32_t s = 0; s < SSRCS; s++)
		w->next[s] = 1000 + dice(w, 40000);
	for (uint32_t i = 1; i <= BURSTS; i++) {
		burst(w);
		if (i % 97 == 0)
			a_rekeys(w);
		if (i % 131 == 0)
			b_rekeys(w);
	}
	qsort(w->sent, w->sents, sizeof(*w->sent), by_use);
	for (uint32_t i = 1; i < w->sents; i++)
		assert_int_not_equal(by_use(&w->sent[i - 1], &w->sent[i]), 0);
	print_message("%u of %u RTP packets left\n", w->left, w->offered);
	assert_true(w->left * 10 > w->offered * 7); /* others: late, or a later SSRC */
	free(w->sent);
	rig_free(w->r);
	free(w);
}

static void whatever_comes_no_nonce_is_used_twice(void **state)
{
	static const enum srtp_suite_id pair[][2] = {
		{SUITE_AES_CM_128_80, SUITE_AES_CM_128_32},
		{SUITE_PLAIN, SUITE_AES_CM_128_80},
		{SUITE_PLAIN, SUITE_AEAD_AES_128_GCM},
		{SUITE_AEAD_AES_128_GCM, SUITE_AES_CM_128_80},
	};

	(void)state;
	for (size_t t = 0; t < ARRAY_LEN(pair); t++)
		play(pair[t][0], pair[t][1], t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whatever_comes_no_nonce_is_used_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
