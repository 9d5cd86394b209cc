/* SPDX-License-Identifier: GPL-2.0-or-later */
/* SRTP+ in a worker: a terminal of A sends packets with tags, B's gets others. Each scheme, several
 * suites, loss, reordering, jumps, restarts and forged packets. TAGS_PACKETS in the environment:
 * packets of the long test. */
#include "media_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "media/attack.h"
#include "media/tags.h"
#include "srtp/ref.h"

enum { SSRC = 0x1234, A_KEY = LENT, A_OUT = LENT + 2, B_IN = LENT + 4, B_KEY = LENT + 6 };
enum { NONE = 0, PACKETS = 100000 };

struct talk {
	struct rig *r;
	struct preauth_key a, b; /* A's terminal sends by a, B's receives by b */
	uint8_t scheme_a, scheme_b;
	enum srtp_suite_id suite;
	uint64_t rng;
};

static uint8_t of(enum preauth_scheme s)
{
	return (uint8_t)(s + 1);
}

static uint32_t draw(struct talk *t, uint32_t below)
{
	t->rng ^= t->rng << 13;
	t->rng ^= t->rng >> 7;
	t->rng ^= t->rng << 17;
	return (uint32_t)(t->rng >> 33) % below;
}

static struct preauth_key key_for(uint32_t slot, enum srtp_suite_id suite, uint8_t scheme)
{
	struct srtp_master m = rig_master(slot, suite);
	struct preauth_key k = {0};

	if (scheme)
		assert_int_equal(preauth_key_init(&k, (enum preauth_scheme)(scheme - 1), &m), 0);
	return k;
}

static struct media_crypto crypto_of(
	const struct talk *t, uint32_t slot, uint32_t at, uint8_t scheme)
{
	struct media_crypto c = rig_crypto(t->r, slot, t->suite);
	struct preauth_key k = key_for(slot, t->suite, scheme);

	if (scheme) {
		memcpy(&t->r->a.key[at], &k, sizeof(k));
		c.preauth = scheme;
		c.preauth_slot = at;
	}
	return c;
}

static void set_ctx(struct talk *t, bool fresh)
{
	struct media_cmd a = {.type = MEDIA_CTX_SET, .id = 0}, b = {.type = MEDIA_CTX_SET, .id = 1};

	a.ctx = (struct media_ctx_cfg){.rx = crypto_of(t, A_TX, A_KEY, t->scheme_a),
		.tx = crypto_of(t, A_RX, A_OUT, t->scheme_a),
		.rx_new = fresh};
	b.ctx = (struct media_ctx_cfg){.rx = crypto_of(t, B_TX, B_IN, t->scheme_b),
		.tx = crypto_of(t, B_RX, B_KEY, t->scheme_b),
		.rx_new = fresh};
	assert_int_equal(media_command(t->r->m, &a), 0);
	assert_int_equal(media_command(t->r->m, &b), 0);
}

static struct talk talk_of(
	uint8_t scheme_a, uint8_t scheme_b, enum srtp_suite_id suite, uint8_t mki)
{
	struct talk t = {.r = rig_new(suite, suite, mki),
		.a = key_for(A_TX, suite, scheme_a),
		.b = key_for(B_RX, suite, scheme_b),
		.scheme_a = scheme_a,
		.scheme_b = scheme_b,
		.suite = suite,
		.rng = 88172645463325252ull};

	set_ctx(&t, false);
	return t;
}

static void end(struct talk *t)
{
	rig_free(t->r);
}

static uint32_t tag_of(const struct preauth_key *k, uint32_t ssrc, uint64_t index, const uint8_t *p)
{
	uint32_t tag;

	if (preauth_is_header(k->scheme))
		return preauth_header(k, p);
	preauth_sequence(k, ssrc, index, &tag, 1);
	return tag & (uint32_t)((1ull << preauth_bits(k->scheme)) - 1);
}

/* chain: writes the block of a packet. */
static void announce(enum preauth_scheme s, uint8_t *block, const uint32_t *tag)
{
	struct preauth_chain c = preauth_chain_of(s);

	preauth_chain_pack(c.width, block, tag, c.next);
}

/* A's terminal sends; xor: added to the tag. Returns the packet. */
static uint8_t *speak(struct talk *t, uint32_t ssrc, uint64_t index, uint32_t xor)
{
	uint8_t plain[172 + PREAUTH_BLOCK_MAX], *p = rig_slot(t->r, A, PORT_A);
	struct packet_in *in = &t->r->in[t->r->n - 1];
	uint32_t tag[PREAUTH_NEXT_MAX], len = 172;

	rig_plain_rtp(plain, ssrc, index);
	if (t->scheme_a >= of(PREAUTH_CHAIN)) {
		preauth_sequence(&t->a, ssrc, index + 1, tag, preauth_chain_of(t->a.scheme).next);
		announce(t->a.scheme, plain + len, tag);
		len += preauth_chain_len(t->a.scheme);
	}
	in->len = rig_protect(
		t->r, p, (struct rig_plain){plain, len, 12, A_TX, t->suite, index, false});
	if (!t->scheme_a)
		return p;
	if (preauth_tag_len(t->a.scheme) == 1) {
		p[in->len++] = (uint8_t)(tag_of(&t->a, ssrc, index, p) ^ xor);
		return p;
	}
	put_be32(p + in->len, tag_of(&t->a, ssrc, index, p) ^ xor);
	in->len += 4;
	return p;
}

/* B's terminal checks the tag, and opens the packet by SRTP. */
static void got(struct talk *t, uint32_t k, uint32_t ssrc, uint64_t index)
{
	uint8_t plain[172 + 2 * PREAUTH_BLOCK_MAX], want[172];
	struct packet_out *out = &t->r->out[k];
	const uint8_t *p = t->r->a.out + out->out_off;
	uint32_t tag_len, len, tag;
	struct preauth_chain chain;

	assert_true(k < t->r->outs);
	tag_len = t->scheme_b ? preauth_tag_len(t->b.scheme) : 0;
	if (tag_len) {
		tag = tag_len == 1 ? p[out->len - 1] : be32(p + out->len - 4);
		assert_int_equal(tag, tag_of(&t->b, ssrc, index, p));
	}
	out->len -= tag_len;
	len = rig_open(t->r, k, plain, B_RX, index, false);
	rig_plain_rtp(want, ssrc, index);
	if (t->scheme_b >= of(PREAUTH_CHAIN)) {
		assert_int_equal(len, 172 + preauth_chain_len(t->b.scheme));
		chain = preauth_chain_of(t->b.scheme);
		for (uint32_t i = 0; i < chain.next; i++)
			assert_int_equal(preauth_chain_tag(chain.width, plain + 172, i),
				tag_of(&t->b, ssrc, index + 1 + i, p));
		len = 172;
	}
	assert_int_equal(len, 172);
	assert_memory_equal(plain, want, 172);
}

static void relayed(struct talk *t, uint32_t ssrc, uint64_t index)
{
	speak(t, ssrc, index, 0);
	rig_run(t->r);
	assert_int_equal(t->r->outs, 1);
	got(t, 0, ssrc, index);
}

static void refused(struct talk *t, enum packet_verdict why)
{
	uint64_t before = rig_dropped(t->r, A, why);

	rig_run(t->r);
	assert_int_equal(t->r->outs, 0);
	assert_int_equal(t->r->in[0].verdict, why);
	assert_int_equal(rig_dropped(t->r, A, why), before + 1);
}

/* Tags are checked, as after a forged packet of A's terminal. */
static void stay_wary(const struct talk *t)
{
	media_tag_wake(t->r->m, &t->r->a, &t->r->m->ctx[0]);
}

static const enum srtp_suite_id suites[] = {
	SUITE_AES_CM_128_80, SUITE_AES_CM_128_32, SUITE_AEAD_AES_128_GCM, SUITE_AES_256_CM_80};

/* --- Packets ---------------------------------------------------------------------------------- */

static void every_pair_of_schemes_and_suites_relays(void **state)
{
	(void)state;
	for (uint8_t a = NONE; a <= PREAUTH_SCHEMES_COUNT; a++)
		for (uint8_t b = NONE; b <= PREAUTH_SCHEMES_COUNT; b++)
			for (size_t s = 0; s < ARRAY_LEN(suites); s++) {
				struct talk t = talk_of(a, b, suites[s], s % 2 ? 4 : 0);

				for (uint64_t i = 65530; i < 65560; i++)
					relayed(&t, SSRC, i);
				assert_int_equal(rig_dropped(t.r, A, PACKET_DROP_FORGED), 0);
				end(&t);
			}
}

/* Stands for an engine, which may write into the slack. */
static uint32_t encrypted, spoil_at; /* packets so far; the number of one that fails */
static void encrypt_by_engine(void *arg, struct xc_job *j, uint32_t *status, uint32_t n)
{
	struct rig *r = arg;

	for (uint32_t i = 0; i < n; i++) {
		memset(r->a.out + j[i].out_off + j[i].hdr_len + j[i].body_len, 0xee, XC_SLACK);
		j[i].in_off = j[i].out_off;
		status[i] = srtp_ref_job(&j[i], r->a.key, r->a.out, r->a.out);
		if (++encrypted == spoil_at)
			status[i] = XC_BAD_TAG;
	}
}

/* With a block, an engine encrypts the packet again. What was received stays in arena.in. */
static void packets_with_a_block_are_encrypted_by_the_engine(void **state)
{
	(void)state;
	for (size_t s = 0; s < ARRAY_LEN(suites); s++) {
		struct talk t = talk_of(of(PREAUTH_CHAIN), of(PREAUTH_CHAIN), suites[s], 4);
		uint8_t before[ARENA_SLOT_LEN];

		t.r->m->cfg.encrypt = encrypt_by_engine;
		t.r->m->cfg.encrypt_arg = t.r;
		encrypted = spoil_at = 0;
		for (uint64_t i = 65530; i < 65560; i++) {
			speak(&t, SSRC, i, 0);
			memcpy(before, t.r->a.in + t.r->in[0].slot * ARENA_SLOT_LEN,
				sizeof(before));
			rig_run(t.r);
			assert_memory_equal(before, t.r->a.in + t.r->in[0].slot * ARENA_SLOT_LEN,
				sizeof(before));
			got(&t, 0, SSRC, i);
		}
		assert_int_equal(encrypted, 30);
		end(&t);
	}
}

/* A burst with a block in each packet: all are encrypted at its end, and one that fails is dropped
 * alone. */
static void packets_of_a_burst_are_encrypted_together(void **state)
{
	(void)state;
	for (size_t s = 0; s < ARRAY_LEN(suites); s++) {
		struct talk t = talk_of(of(PREAUTH_CHAIN), of(PREAUTH_CHAIN), suites[s], 0);
		uint64_t index = 65530;

		t.r->m->cfg.encrypt = encrypt_by_engine;
		t.r->m->cfg.encrypt_arg = t.r;
		relayed(&t, SSRC, index++);
		encrypted = 0;
		spoil_at = 5;
		for (uint64_t i = 0; i < SLOTS; i++)
			speak(&t, SSRC, index + i, 0);
		rig_run(t.r);
		assert_int_equal(encrypted, SLOTS);
		assert_int_equal(t.r->outs, SLOTS - 1);
		for (uint32_t i = 0; i < SLOTS; i++)
			assert_int_equal(
				t.r->in[i].verdict, i == 4 ? PACKET_DROP_STALE : PACKET_SENT);
		for (uint32_t i = 0; i < SLOTS - 1; i++)
			got(&t, i, SSRC, index + i + (i >= 4));
		spoil_at = 0;
		relayed(&t, SSRC, index + SLOTS);
		end(&t);
	}
}

/* While tags are not checked, the engine replaces the block, whatever both sides' schemes are. */
static void settled(uint8_t a, uint8_t b, enum srtp_suite_id suite)
{
	struct talk t = talk_of(a, b, suite, 0);
	uint64_t i = 65400;

	t.r->m->cfg.encrypt = encrypt_by_engine;
	t.r->m->cfg.encrypt_arg = t.r;
	spoil_at = 0;
	for (uint32_t n = 0; n < TAGS_WARY; n++)
		relayed(&t, SSRC, i++);
	encrypted = 0;
	for (uint32_t n = 0; n < 300; n++)
		relayed(&t, SSRC, i++);
	assert_true(encrypted <= 2); /* when the key needs new credit */
	encrypted = 0;
	/* A forged packet among true ones of a burst: those that were prepared before continue. */
	for (uint32_t n = 0; n < 4; n++)
		speak(&t, SSRC, i + n, 0)[20] ^= n == 1;
	rig_run(t.r);
	assert_int_equal(encrypted, 0);
	assert_int_equal(t.r->outs, 3);
	assert_int_equal(t.r->in[1].verdict, PACKET_DROP_BAD_TAG);
	for (uint32_t k = 0; k < 3; k++)
		got(&t, k, SSRC, i + k + (k >= 1));
	/* Then the tags are checked again, so the block is needed. */
	for (uint32_t n = 4; n < 12; n++)
		relayed(&t, SSRC, i + n);
	assert_int_equal(encrypted, a < of(PREAUTH_CHAIN) ? 0 : 8);
	end(&t);
}

static void settled_chains_take_one_pass(void **state)
{
	(void)state;
	for (size_t s = 0; s < ARRAY_LEN(suites); s++)
		for (uint8_t other = NONE; other <= PREAUTH_SCHEMES_COUNT; other++) {
			settled(of(PREAUTH_CHAIN), other, suites[s]);
			settled(other, of(PREAUTH_CHAIN), suites[s]);
		}
	for (uint8_t s = of(PREAUTH_CHAIN) + 1; s <= PREAUTH_KINDS; s++)
		if (preauth_exists((enum preauth_scheme)(s - 1))) {
			settled(s, of(PREAUTH_CHAIN), suites[0]);
			settled(of(PREAUTH_CHAIN), s, suites[0]);
		}
}

static void plain_rtp_gets_tags_and_loses_them(void **state)
{
	(void)state;
	for (uint8_t s = NONE + 1; s <= PREAUTH_SCHEMES_COUNT; s++) {
		struct talk t = talk_of(s, NONE, SUITE_AES_CM_128_80, 0);
		uint8_t want[172];

		rig_ctx_plain(t.r, 1);
		for (uint64_t i = 10; i < 60; i++) {
			speak(&t, SSRC, i, 0);
			rig_run(t.r);
			rig_plain_rtp(want, SSRC, i);
			assert_int_equal(t.r->outs, 1);
			assert_int_equal(t.r->out[0].len, 172);
			assert_memory_equal(t.r->a.out + t.r->out[0].out_off, want, 172);
		}
		end(&t);
		t = talk_of(NONE, s, SUITE_AES_CM_128_80, 0);
		rig_ctx_plain(t.r, 0);
		for (uint64_t i = 10; i < 60; i++) {
			rig_plain_rtp(rig_slot(t.r, A, PORT_A), SSRC, i);
			t.r->in[0].len = 172;
			rig_run(t.r);
			got(&t, 0, SSRC, i);
		}
		end(&t);
	}
}

static void rtcp_has_no_tag(void **state)
{
	struct talk t = talk_of(of(PREAUTH_SEQUENCE_AES), of(PREAUTH_CHAIN), suites[0], 0);

	(void)state;
	relayed(&t, SSRC, 5);
	rig_send_rtcp(t.r, SSRC, 1);
	rig_run(t.r);
	assert_int_equal(t.r->outs, 1);
	assert_int_equal(t.r->out[0].len, 28 + 4 + 10);
	end(&t);
}

static void usual_packets_take_a_fast_path(void **state)
{
	(void)state;
	for (uint8_t s = NONE + 1; s <= PREAUTH_SCHEMES_COUNT; s++) {
		struct talk t = talk_of(s, s, suites[0], 0);

		relayed(&t, SSRC, 5);
		speak(&t, SSRC, 6, 0);
		rig_complete(t.r, rig_prepare(t.r));
		assert_true(t.r->m->note[0].fast_tagged);
		assert_false(t.r->m->note[0].fast);
		got(&t, 0, SSRC, 6);
		end(&t);
	}
}

/* --- Forged packets --------------------------------------------------------------------------- */

static void a_wrong_tag_is_dropped_before_authentication(void **state)
{
	(void)state;
	for (uint8_t s = NONE + 1; s <= PREAUTH_SCHEMES_COUNT; s++) {
		struct talk t = talk_of(s, NONE, suites[0], 0);

		relayed(&t, SSRC, 65530);
		for (uint32_t bit = 0; bit < (s == of(PREAUTH_CHAIN) ? 8 : 32); bit++) {
			speak(&t, SSRC, 65531 + bit / 4, 1u << bit);
			assert_int_equal(rig_prepare(t.r), 0);
			rig_complete(t.r, 0);
			assert_int_equal(t.r->in[0].verdict, PACKET_DROP_FORGED);
		}
		relayed(&t, SSRC, 65531);
		/* By the slow path: an older index. */
		relayed(&t, SSRC, 65534);
		speak(&t, SSRC, 65533, 2);
		refused(&t, PACKET_DROP_FORGED);
		relayed(&t, SSRC, 65533);
		end(&t);
	}
}

/* Header schemes know every tag. */
static void a_tag_that_is_not_known_leaves_it_to_srtp(void **state)
{
	(void)state;
	for (uint8_t s = NONE + 1; s <= PREAUTH_SCHEMES_COUNT; s++) {
		struct talk t = talk_of(s, NONE, suites[0], 0);

		if (preauth_is_header(t.a.scheme)) {
			end(&t);
			continue;
		}
		speak(&t, SSRC, 100, 1); /* the first packet: SRTP takes it */
		rig_run(t.r);
		assert_int_equal(t.r->outs, 1);
		speak(&t, SSRC, 100 + 2000, 1)[20] ^= 1; /* outside, and forged */
		refused(&t, PACKET_DROP_BAD_TAG);
		speak(&t, SSRC + 1, 7, 0)[20] ^= 1; /* an unknown SSRC */
		refused(&t, PACKET_DROP_BAD_TAG);
		relayed(&t, SSRC, 101);
		end(&t);
	}
}

static void a_right_tag_moves_nothing_until_srtp_agrees(void **state)
{
	(void)state;
	for (uint8_t s = NONE + 1; s <= PREAUTH_SCHEMES_COUNT; s++) {
		struct talk t = talk_of(s, NONE, suites[0], 0);
		struct media_tags before;

		relayed(&t, SSRC, 100);
		before = t.r->m->tags[0];
		for (uint64_t i = 101; i < 120; i++) {
			speak(&t, SSRC, i, 0)[20] ^= 1;
			refused(&t, PACKET_DROP_BAD_TAG);
		}
		assert_memory_equal(&before, &t.r->m->tags[0], sizeof(before));
		relayed(&t, SSRC, 101); /* a tag that an attacker used first is still good */
		speak(&t, SSRC, 101, 0);
		refused(&t, PACKET_DROP_REPLAY);
		end(&t);
	}
}

static void random_tags_pass_as_often_as_their_width_says_and_srtp_refuses_them(void **state)
{
	enum { TRIES = 16000 };
	struct talk t = talk_of(of(PREAUTH_CHAIN), NONE, suites[0], 0);
	uint64_t forged, bad;

	(void)state;
	relayed(&t, SSRC, 1000);
	for (uint32_t i = 0; i < TRIES; i++) {
		uint8_t *p =
			speak(&t, SSRC, 1001 + draw(&t, preauth_chain_of(PREAUTH_CHAIN).next), 0);

		p[30] ^= 1;
		p[t.r->in[0].len - 1] = (uint8_t)draw(&t, 16);
		rig_run(t.r);
		assert_int_equal(t.r->outs, 0);
	}
	forged = rig_dropped(t.r, A, PACKET_DROP_FORGED);
	bad = rig_dropped(t.r, A, PACKET_DROP_BAD_TAG);
	assert_int_equal(forged + bad, TRIES);
	assert_in_range(bad, TRIES / 16 - 190, TRIES / 16 + 190); /* six standard deviations */
	end(&t);
}

static void malformed_packets_are_refused(void **state)
{
	(void)state;
	for (uint8_t s = NONE + 1; s <= PREAUTH_SCHEMES_COUNT; s++) {
		struct talk t = talk_of(s, s, suites[0], 0);

		relayed(&t, SSRC, 10);
		for (uint32_t len = 0; len < 60; len++) {
			speak(&t, SSRC, 11, 0);
			t.r->in[0].len = len;
			rig_run(t.r);
			assert_int_equal(t.r->outs, 0);
		}
		relayed(&t, SSRC, 11);
		end(&t);
	}
}

static bool is_blank(const void *p, size_t len)
{
	const uint8_t *at = p;

	return at[0] == 0 && memcmp(at, at + 1, len - 1) == 0;
}

/* The stream is under attack, and steering has its guard. */
static uint64_t attacked(struct talk *t, struct media_guard *g)
{
	uint64_t index = 100;

	for (; index < 110; index++)
		relayed(t, SSRC, index);
	for (int i = 0; i < 64; i++) {
		speak(t, SSRC, index + 1, 1);
		refused(t, PACKET_DROP_FORGED);
	}
	assert_true(media_guard_next(t->r->m, g));
	assert_true(g->on);
	return index;
}

/* Without forged packets, SRTP alone decides after a while, and no window is kept. The first forged
 * packet has to be authenticated, and tags are checked again. */
static void tags_are_checked_while_there_are_forged_packets(void **state)
{
	(void)state;
	for (uint8_t s = NONE + 1; s <= PREAUTH_SCHEMES_COUNT; s++) {
		struct talk t = talk_of(s, s, suites[0], 0);
		const struct media *m = t.r->m;
		uint64_t i = 40000;

		for (; i < 40000 + TAGS_WARY - 1; i++)
			relayed(&t, SSRC, i);
		speak(&t, SSRC, i, 1); /* one forged packet: it begins again */
		refused(&t, PACKET_DROP_FORGED);
		for (uint32_t n = 0; n < TAGS_WARY; n++)
			relayed(&t, SSRC, i++);
		assert_true(is_blank(m->tags_windows[0].of, sizeof(m->tags_windows[0].of)));
		assert_true(is_blank(m->tags[0].rx.tag, sizeof(m->tags[0].rx.tag)));
		speak(&t, SSRC, i, 1); /* not forged: SRTP takes it */
		rig_run(t.r);
		assert_int_equal(t.r->outs, 1);
		/* The same sequence numbers come again a cycle later. */
		for (int n = 0; n < 4; n++, i += 16384)
			relayed(&t, SSRC, i + 1);
		speak(&t, SSRC, i + 1, 0)[20] ^= 1;
		refused(&t, PACKET_DROP_BAD_TAG);
		/* The next forged one does not reach SRTP, even if the terminal is silent. Tags of
		 * a chain are not known yet. */
		if (s < of(PREAUTH_CHAIN)) {
			speak(&t, SSRC, i - 16384 + 2, 1);
			refused(&t, PACKET_DROP_FORGED);
		}
		relayed(&t, SSRC, i + 1);
		speak(&t, SSRC, i + 2, 1);
		refused(&t, PACKET_DROP_FORGED);
		for (uint32_t n = 0; n < 2 * TAGS_WARY; n++)
			relayed(&t, SSRC, i + 2 + n);
		assert_int_equal(
			rig_dropped(t.r, A, PACKET_DROP_FORGED), s < of(PREAUTH_CHAIN) ? 3 : 2);
		end(&t);
	}
}

static enum guard_result judged(
	const struct talk *t, const struct guard *g, uint64_t index, uint32_t spoil)
{
	struct guard_packet p = {.port = g->window.port,
		.first = 0x80,
		.second = 8,
		.v6 = g->window.flags & GUARD_IS_V6,
		.seq = (uint16_t)index,
		.time = g->window.time,
		.ssrc = SSRC};

	uint8_t hdr[PREAUTH_HEADER_LEN] = {p.first, p.second};

	put_be16(hdr + 2, p.seq);
	put_be32(hdr + 4, p.time);
	put_be32(hdr + 8, p.ssrc);
	memcpy(p.addr, g->window.addr, sizeof(p.addr));
	p.tag = tag_of(&t->a, SSRC, index, hdr) ^ spoil;
	return guard_check(g, &p, g->window.at_ns);
}

/* The flood begins while tags are not checked: no window has any. The first forged packet fills
 * one, and steering gets it with the guard. Tags of a chain come with the first true packet. */
static void steering_gets_tags_as_soon_as_they_are_known(void **state)
{
	static const enum preauth_scheme T[] = {
		PREAUTH_SEQUENCE_AES, PREAUTH_SEQUENCE_FIPS, PREAUTH_HEADER_SIPHASH, PREAUTH_CHAIN};
	static struct media_guard g;

	(void)state;
	for (size_t k = 0; k < ARRAY_LEN(T); k++) {
		struct talk t = talk_of(of(T[k]), NONE, suites[0], 0);
		uint64_t i = 100;

		for (uint32_t n = 0; n < TAGS_WARY; n++)
			relayed(&t, SSRC, i++);
		for (uint32_t n = 0; n < 2 * TAGS_WARY; n++) { /* more than true ones */
			speak(&t, SSRC, i + 1, 1)[20] ^= 1;
			rig_run(t.r);
			assert_int_equal(t.r->outs, 0);
		}
		assert_true(media_guard_next(t.r->m, &g));
		if (T[k] == PREAUTH_CHAIN) {
			assert_false(g.guard.window.flags & (GUARD_TAGS | GUARD_MACS));
			relayed(&t, SSRC, i++);
			assert_true(media_guard_next(t.r->m, &g));
		}
		assert_true(g.guard.window.flags & (GUARD_TAGS | GUARD_MACS));
		assert_int_equal(judged(&t, &g.guard, i, 0), GUARD_PASS);
		assert_int_equal(judged(&t, &g.guard, i, 1), GUARD_TAG);
		end(&t);
	}
}

/* Late packets pass at the start of an attack. The new window has their tags. With chain it has
 * not, so SRTP decides. */
static void late_packets_pass_a_new_guard(void **state)
{
	static const enum preauth_scheme T[] = {
		PREAUTH_SEQUENCE_AES, PREAUTH_SEQUENCE_FIPS, PREAUTH_CHAIN};
	static struct media_guard g;

	(void)state;
	for (size_t k = 0; k < ARRAY_LEN(T); k++) {
		struct talk t = talk_of(of(T[k]), NONE, suites[0], 0);
		uint64_t i = 65500; /* a cycle ends */

		for (uint32_t n = 0; n < TAGS_WARY; n++)
			relayed(&t, SSRC, i++);
		for (uint32_t n = 0; n < 2 * TAGS_WARY; n++) {
			speak(&t, SSRC, i + 1, 1)[20] ^= 1;
			rig_run(t.r);
		}
		if (T[k] == PREAUTH_CHAIN)
			relayed(&t, SSRC, i++);
		while (media_guard_next(t.r->m, &g))
			;
		assert_true(g.guard.window.flags & GUARD_TAGS);
		assert_int_equal(g.guard.window.seq, (uint16_t)(i - 1));
		for (uint64_t late = 2; late <= GUARD_BEHIND; late++) {
			assert_int_equal(judged(&t, &g.guard, i - late, 0), GUARD_PASS);
			assert_int_equal(judged(&t, &g.guard, i - late, 1),
				T[k] == PREAUTH_CHAIN ? GUARD_PASS : GUARD_TAG);
		}
		assert_int_equal(judged(&t, &g.guard, i - 2 - GUARD_BEHIND, 0), GUARD_INDEX);
		for (uint64_t next = 0; next < 30; next++)
			assert_int_equal(judged(&t, &g.guard, i + next, 0), GUARD_PASS);
		end(&t);
	}
}

/* Steering has the tags of three quarters of the packets that a chain announces, whatever was lost
 * since its last report. So they pass when they come together, before the next report. */
static void steering_keeps_up_with_a_chain(void **state)
{
	static struct media_guard g;

	(void)state;
	for (uint8_t s = of(PREAUTH_CHAIN); s <= PREAUTH_KINDS; s++) {
		struct talk t;
		uint32_t next;
		uint64_t index;

		if (!preauth_exists((enum preauth_scheme)(s - 1)))
			continue;
		t = talk_of(s, NONE, suites[0], 0);
		next = preauth_chain_of(t.a.scheme).next;
		index = attacked(&t, &g);
		for (int i = 0; i < 200; i++) {
			relayed(&t, SSRC, index++);
			while (media_guard_next(t.r->m, &g))
				;
			for (uint32_t k = 0; k < next - next / 4; k++)
				assert_int_equal(judged(&t, &g.guard, index + k, 0), GUARD_PASS);
			if (i % 3 == 0)
				index += draw(&t, next / 2);
		}
		end(&t);
	}
}

/* True packets with loss, reordering and replays: those that the daemon takes are not refused by
 * the guard that steering has, which is up to 8 packets older. */
static void steering_passes_what_the_daemon_takes(void **state)
{
	static const enum preauth_scheme T[] = {PREAUTH_SEQUENCE_AES, PREAUTH_SEQUENCE_FIPS,
		PREAUTH_HEADER_SIPHASH, PREAUTH_HEADER_HMAC, PREAUTH_CHAIN};
	static struct media_guard g;

	(void)state;
	for (size_t k = 0; k < ARRAY_LEN(T); k++) {
		struct talk t = talk_of(of(T[k]), NONE, suites[0], 0);
		uint32_t ahead = T[k] == PREAUTH_CHAIN ? 20 : 40, taken = 0;
		uint64_t newest = attacked(&t, &g) - 1, index;

		for (int i = 0; i < 3000; i++) {
			enum guard_result r;

			index = draw(&t, 4) ? newest + 1 + (draw(&t, 8) ? 0 : draw(&t, ahead))
					    : newest - draw(&t, newest < 140 ? 20 : 140);
			r = judged(&t, &g.guard, index, 0);
			speak(&t, SSRC, index, 0);
			rig_run(t.r);
			if (t.r->outs) {
				assert_int_equal(r, GUARD_PASS);
				newest = index > newest ? index : newest;
				taken++;
			}
			while (media_guard_next(t.r->m, &g))
				;
		}
		assert_true(taken > 2000);
		end(&t);
	}
}

/* After a jump of any length the tags around the newest packet are known. */
static void tags_are_known_after_a_jump(void **state)
{
	(void)state;
	for (uint8_t s = NONE + 1; s < of(PREAUTH_CHAIN); s++) {
		struct talk t = talk_of(s, NONE, suites[0], 0);
		uint64_t index = 1000;

		for (uint64_t jump = 200; jump < 1000; jump += 7) {
			for (int i = 0; i < 100; i++) /* until the window is full */
				relayed(&t, SSRC, index++);
			stay_wary(&t);
			index += jump;
			relayed(&t, SSRC, index);
			for (uint64_t k = 1; k <= 30; k++) {
				speak(&t, SSRC, index + k, 1);
				refused(&t, PACKET_DROP_FORGED);
				speak(&t, SSRC, index - k, 1);
				refused(&t, PACKET_DROP_FORGED);
			}
			relayed(&t, SSRC, index - 1);
			index++;
		}
		end(&t);
	}
}

/* Steering needs the tags for as long as the stream has a guard. */
static void an_attacked_stream_keeps_its_tags(void **state)
{
	static struct media_guard g;
	struct talk t = talk_of(of(PREAUTH_SEQUENCE_AES), NONE, SUITE_AES_CM_128_80, 0);
	uint64_t index = attacked(&t, &g);

	(void)state;
	for (uint32_t n = 0; n < 3 * TAGS_WARY; n++)
		relayed(&t, SSRC, index++);
	while (media_guard_next(t.r->m, &g))
		;
	assert_true(g.on);
	assert_true(g.guard.window.flags & GUARD_TAGS);
	end(&t);
}

/* B's stream has a guard, so bursts are prepared in two parts. In the first part wrong tags begin
 * the guard of A's stream, whose packets are not prepared again in the second. */
static void a_guard_that_begins_in_a_burst_repeats_no_packet(void **state)
{
	struct talk t = talk_of(of(PREAUTH_SEQUENCE_AES), NONE, suites[0], 0);
	uint8_t p[172], *at;

	(void)state;
	for (uint32_t i = 0; i <= ATTACK_FORGED + 1; i++) {
		at = rig_slot(t.r, B, PORT_B);
		rig_plain_rtp(p, 9, 500 + i);
		t.r->in[0].len = rig_protect(
			t.r, at, (struct rig_plain){p, 172, 12, B_TX, t.suite, 500 + i, false});
		at[20] ^= i > 0;
		rig_run(t.r);
	}
	relayed(&t, SSRC, 100);
	for (uint32_t i = 1; i < ATTACK_FORGED; i++) {
		speak(&t, SSRC, 102, 1);
		refused(&t, PACKET_DROP_FORGED);
	}
	assert_int_equal(media_attacked(t.r->m), 1);
	speak(&t, SSRC, 101, 0);
	speak(&t, SSRC, 102, 1);
	assert_int_equal(rig_prepare(t.r), 1);
	assert_int_equal(media_attacked(t.r->m), 2);
	rig_complete(t.r, 1);
	assert_int_equal(t.r->outs, 1);
	assert_int_equal(rig_dropped(t.r, A, PACKET_DROP_FORGED), ATTACK_FORGED);
	end(&t);
}

/* A wrong tag ends the guard of its stream. The packets after it in the burst are prepared. */
static void a_guard_that_ends_in_a_burst_skips_no_packet(void **state)
{
	static struct media_guard g;
	struct talk t = talk_of(of(PREAUTH_SEQUENCE_AES), NONE, suites[0], 0);
	uint64_t index = attacked(&t, &g), now = 1000;
	const struct attack *attack = &t.r->m->attacks->of[0];

	(void)state;
	for (uint32_t last = 0; last < 2 * ATTACK_FEW; last += attack->calm == ATTACK_CALM - 1) {
		speak(&t, SSRC, index++, 0);
		t.r->in[0].t_ns = now += ATTACK_PERIOD_NS / (4 * ATTACK_FEW);
		rig_run(t.r);
		assert_int_equal(t.r->outs, 1);
	}
	assert_int_equal(media_attacked(t.r->m), 1);
	for (uint32_t i = 0; i < 3; i++) {
		speak(&t, SSRC, index + i, i != 1 ? 0 : 1);
		t.r->in[i].t_ns = now + ATTACK_PERIOD_NS;
	}
	assert_int_equal(rig_prepare(t.r), 2);
	assert_int_equal(media_attacked(t.r->m), 0);
	rig_complete(t.r, 2);
	assert_int_equal(t.r->outs, 2);
	end(&t);
}

/* --- Indexes ---------------------------------------------------------------------------------- */

static void jumps_and_restarts_cost_no_true_packet(void **state)
{
	(void)state;
	for (uint8_t s = NONE + 1; s <= PREAUTH_SCHEMES_COUNT; s++) {
		struct talk t = talk_of(s, s, suites[0], 0);
		uint64_t at = 40000;

		for (uint32_t i = 0; i < 300; i++) {
			at += i % 10 ? 1 : 1 + draw(&t, 30000); /* SRTP estimates up to 2^15 */
			relayed(&t, SSRC, at);
			stay_wary(&t);
		}
		set_ctx(&t, false); /* a re-INVITE keeps the tags */
		speak(&t, SSRC, at + 1, 1);
		refused(&t, PACKET_DROP_FORGED);
		/* Restart of the relay: indexes are restored, tags are computed again. */
		media_tags_forget(t.r->m, 0, &t.r->m->ctx_cfg[0]);
		media_tags_forget(t.r->m, 1, &t.r->m->ctx_cfg[1]);
		relayed(&t, SSRC, at + 1);
		relayed(&t, SSRC, at + 2);
		assert_int_equal(rig_dropped(t.r, A, PACKET_DROP_BAD_TAG), 0);
		end(&t);
	}
}

static void several_ssrcs_have_windows(void **state)
{
	(void)state;
	for (uint8_t s = NONE + 1; s <= PREAUTH_SCHEMES_COUNT; s++) {
		struct talk t = talk_of(s, s, suites[0], 0);

		/* More than there are windows; all are relayed. */
		for (uint64_t i = 10; i < 40; i++)
			for (uint32_t k = 0; k < TAGS_SSRCS + 2; k++) {
				relayed(&t, SSRC + k, i);
				stay_wary(&t);
			}
		for (uint64_t i = 40; i < 60; i++)
			for (uint32_t k = 0; k < TAGS_SSRCS; k++) {
				relayed(&t, SSRC + k, i);
				speak(&t, SSRC + k, i + 1, 1);
				refused(&t, PACKET_DROP_FORGED);
			}
		end(&t);
	}
}

static void tags_end_with_their_key(void **state)
{
	struct talk t = talk_of(of(PREAUTH_SEQUENCE_AES), NONE, suites[0], 0);
	struct media_cmd del = {.type = MEDIA_CTX_DEL, .id = 0};

	(void)state;
	relayed(&t, SSRC, 10);
	assert_int_equal(t.r->m->taggers, 1);
	t.scheme_a = NONE;
	set_ctx(&t, false);
	assert_int_equal(t.r->m->taggers, 0);
	relayed(&t, SSRC, 11);
	t.scheme_a = of(PREAUTH_SEQUENCE_AES);
	set_ctx(&t, false);
	relayed(&t, SSRC, 12);
	assert_int_equal(t.r->m->taggers, 1);
	assert_int_equal(media_command(t.r->m, &del), 0);
	assert_int_equal(t.r->m->taggers, 0);
	end(&t);
}

static void no_tag_and_no_key_stays_behind(void **state)
{
	(void)state;
	for (uint8_t s = NONE + 1; s <= PREAUTH_SCHEMES_COUNT; s++)
		for (int del = 0; del < 2; del++) {
			struct talk t = talk_of(s, s, suites[0], 0);
			const struct media *m = t.r->m;
			struct media_cmd cmd = {.type = MEDIA_CTX_DEL, .id = 0};

			for (uint64_t i = 10; i < 40; i++)
				relayed(&t, SSRC, i);
			assert_false(is_blank(&m->tags[0], sizeof(m->tags[0])));
			t.scheme_a = NONE;
			if (del)
				assert_int_equal(media_command(t.r->m, &cmd), 0);
			else
				set_ctx(&t, false);
			assert_true(is_blank(&m->tags[0], sizeof(m->tags[0])));
			assert_true(is_blank(&m->tags_windows[0], sizeof(m->tags_windows[0])));
			end(&t);
		}
}

static void impossible_configurations_are_refused(void **state)
{
	struct talk t = talk_of(of(PREAUTH_CHAIN), NONE, suites[0], 0);
	struct media_cmd cmd = {.type = MEDIA_CTX_SET, .id = 0};

	(void)state;
	for (int i = 0; i < 5; i++) {
		cmd.ctx.rx = crypto_of(&t, A_TX, A_KEY, t.scheme_a);
		cmd.ctx.tx = crypto_of(&t, A_RX, A_OUT, t.scheme_a);
		if (i == 0)
			cmd.ctx.rx.preauth = PREAUTH_KINDS + 1;
		if (i == 1)
			cmd.ctx.rx.preauth_slot = 0;
		if (i == 2)
			cmd.ctx.tx.preauth_slot = KEYS;
		if (i == 3)
			cmd.ctx.rx.clear_rtp = true; /* the block would be in clear */
		if (i == 4)
			cmd.ctx.rx.preauth = 0; /* a slot without a scheme */
		assert_int_not_equal(media_command(t.r->m, &cmd), 0);
	}
	relayed(&t, SSRC, 10);
	end(&t);
}

/* A packet whose SRTP is not encrypted: enough where the engine is left out. */
static void speak_bare(struct talk *t, uint64_t index)
{
	uint8_t *p = rig_slot(t->r, A, PORT_A);
	struct packet_in *in = &t->r->in[t->r->n - 1];
	uint32_t tag[PREAUTH_NEXT_MAX], end = 172;

	rig_plain_rtp(p, SSRC, index);
	if (t->scheme_a >= of(PREAUTH_CHAIN)) {
		preauth_sequence(&t->a, SSRC, index + 1, tag, preauth_chain_of(t->a.scheme).next);
		announce(t->a.scheme, p + end, tag);
		end += preauth_chain_len(t->a.scheme);
	}
	end += 10; /* SRTP's tag */
	if (preauth_tag_len(t->a.scheme) == 1)
		p[end] = (uint8_t)tag_of(&t->a, SSRC, index, p);
	else
		put_be32(p + end, tag_of(&t->a, SSRC, index, p));
	in->len = end + preauth_tag_len(t->a.scheme);
}

/* Instead of an engine: every packet that prepare lets through is authentic. */
static uint32_t run_bare(struct talk *t)
{
	struct rig *r = t->r;
	uint32_t jobs = rig_prepare(r);

	for (uint32_t i = 0; i < jobs; i++) {
		const struct xc_job *j = &r->a.job[i];

		memcpy(r->a.out + j->out_off, r->a.in + j->in_off, j->hdr_len + j->body_len);
		r->a.status[i] = XC_OK;
	}
	r->outs = media_complete(r->m, &r->a, r->in,
		&(struct batch){.job = r->a.job, .status = r->a.status, .n = jobs}, r->out);
	r->n = 0;
	return r->outs;
}

/* Loss of 5 %, and packets that arrive up to 40 places late: none has a wrong tag. */
static void no_true_packet_is_refused(void **state)
{
	const char *n = getenv("TAGS_PACKETS");
	uint64_t most = n ? strtoull(n, NULL, 10) : PACKETS, sent, out;

	(void)state;
	for (uint8_t s = NONE + 1; s <= PREAUTH_KINDS; s++) {
		/* Parameters of chain change what is kept, not how. */
		uint64_t packets = s <= PREAUTH_SCHEMES_COUNT ? most : most / 20;
		uint64_t late[8] = {0}, due[8] = {0}, next = 65000;
		struct talk t;

		if (!preauth_exists((enum preauth_scheme)(s - 1)))
			continue;
		t = talk_of(s, NONE, suites[0], 0);
		rig_ctx_plain(t.r, 1);
		sent = out = 0;
		for (uint64_t i = 0; i < packets; i++, next++) {
			uint32_t what = draw(&t, 1000), k = draw(&t, 8);

			if (what >= 50 && what < 100 && !late[k]) { /* comes later */
				late[k] = next;
				due[k] = next + 1 + draw(&t, 40);
			} else if (what >= 50) {
				speak_bare(&t, next);
			}
			for (k = 0; k < 8; k++)
				if (late[k] && due[k] <= next) {
					speak_bare(&t, late[k]);
					late[k] = 0;
				}
			if (t.r->n < SLOTS - 9)
				continue;
			if (2 * i < packets || draw(&t, 16) == 0) /* later, tags also rest */
				stay_wary(&t);
			sent += t.r->n;
			out += run_bare(&t);
		}
		assert_int_equal(out, sent);
		assert_int_equal(rig_dropped(t.r, A, PACKET_DROP_FORGED), 0);
		if (n)
			printf("%s: %llu packets of %llu arrived, none was refused\n",
				preauth_name((enum preauth_scheme)(s - 1)), (unsigned long long)out,
				(unsigned long long)packets);
		end(&t);
	}
}

/* Chains of all parameters relay in both directions, with loss and packets that come late. A wrong
 * tag is dropped as often as its width says. */
static void chains_of_all_parameters_relay(void **state)
{
	uint32_t kinds = 0;

	(void)state;
	for (uint8_t s = of(PREAUTH_CHAIN); s <= PREAUTH_KINDS; s++) {
		struct preauth_chain c = preauth_chain_of((enum preauth_scheme)(s - 1));
		uint64_t index = 65500;
		struct talk t;

		if (!preauth_exists((enum preauth_scheme)(s - 1)))
			continue;
		t = talk_of(s, of(PREAUTH_CHAIN), suites[0], 0);
		for (int i = 0; i < 40; i++) {
			uint64_t late = index;

			relayed(&t, SSRC, ++index);
			relayed(&t, SSRC, late);
			index += 1 + draw(&t, c.next - 2u); /* a gap that the chain bears */
			speak(&t, SSRC, index, 1);
			refused(&t, PACKET_DROP_FORGED);
			relayed(&t, SSRC, index++);
		}
		end(&t);
		t = talk_of(NONE, s, suites[0], 0);
		for (index = 100; index < 110; index++)
			relayed(&t, SSRC, index);
		end(&t);
		kinds++;
	}
	assert_int_equal(kinds, 28);
}

/* Packets further behind than the window's parameter says have unknown tags: SRTP decides. */
static void a_chain_keeps_tags_of_its_window(void **state)
{
	static const struct {
		const char *name;
		uint32_t behind;
	} T[] = {{"chain/4/8/64", 56}, {"chain/8/32/64", 32}, {"chain/4/64/128", 64},
		{"chain", PREAUTH_BEHIND}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		enum preauth_scheme s = PREAUTH_CHAIN;
		uint64_t last = 10000;
		struct talk t;

		assert_true(preauth_find(&s, str_from(T[i].name)));
		t = talk_of(of(s), NONE, suites[0], 0);
		for (uint64_t at = 9000; at < last; at++)
			if (at != last - 1 - T[i].behind && at != last - 2 - T[i].behind) {
				relayed(&t, SSRC, at);
				stay_wary(&t);
			}
		speak(&t, SSRC, last - 1 - T[i].behind, 1);
		refused(&t, PACKET_DROP_FORGED);
		speak(&t, SSRC, last - 2 - T[i].behind, 1); /* its tag is not looked at */
		rig_run(t.r);
		assert_int_equal(t.r->outs, T[i].behind < 120); /* else too late for SRTP as well */
		end(&t);
	}
}

/* Wrong tags count as forged packets. The guard has the tags of the next packets, so steering drops
 * forged ones, and no true one. */
static void a_flood_of_wrong_tags_is_told_to_steering(void **state)
{
	static struct media_guard g;
	struct talk t = talk_of(of(PREAUTH_SEQUENCE_AES), NONE, SUITE_AES_CM_128_80, 0);
	uint64_t index = attacked(&t, &g);

	(void)state;
	assert_true(g.guard.window.flags & GUARD_TAGS);
	assert_int_equal(g.guard.window.tag_len, 4);
	for (uint32_t i = 0; i < 100; i++) {
		assert_int_equal(judged(&t, &g.guard, index + i, 0), GUARD_PASS);
		assert_int_equal(judged(&t, &g.guard, index + i, 1), GUARD_TAG);
	}
	relayed(&t, SSRC, index);
	end(&t);
}

/* The guard has the key of header-siphash, so steering drops wrong tags of all headers. An old
 * header's tag stays right, so it passes only where the window lets it. */
static void steering_is_told_of_the_key_of_headers(void **state)
{
	static struct media_guard g;
	struct talk t = talk_of(of(PREAUTH_HEADER_SIPHASH), NONE, SUITE_AES_CM_128_80, 0);
	uint64_t index = attacked(&t, &g);

	(void)state;
	assert_int_equal(g.guard.window.flags & (GUARD_TAGS | GUARD_MACS), GUARD_MACS);
	assert_int_equal(g.guard.window.tag_len, 4);
	for (uint32_t i = 0; i < 100; i++) {
		assert_int_equal(judged(&t, &g.guard, index + i, 0), GUARD_PASS);
		assert_int_equal(judged(&t, &g.guard, index + i, 1), GUARD_TAG);
	}
	assert_int_equal(judged(&t, &g.guard, index + GUARD_AHEAD + 40, 0), GUARD_INDEX);
	relayed(&t, SSRC, index);
	end(&t);
}

/* HMAC-SHA1 costs too much per packet there: only the daemon checks it. */
static void steering_has_no_key_of_hmac(void **state)
{
	static struct media_guard g;
	struct talk t = talk_of(of(PREAUTH_HEADER_HMAC), NONE, SUITE_AES_CM_128_80, 0);
	uint64_t index = attacked(&t, &g);

	(void)state;
	assert_int_equal(g.guard.window.flags & (GUARD_TAGS | GUARD_MACS), 0);
	assert_int_equal(judged(&t, &g.guard, index, 1), GUARD_PASS);
	end(&t);
}

/* Steering refuses a replay of every packet that was authenticated before the report. */
static void steering_is_told_of_every_used_tag(void **state)
{
	static struct media_guard g;
	struct talk t = talk_of(of(PREAUTH_SEQUENCE_AES), NONE, SUITE_AES_CM_128_80, 0);
	uint64_t index = attacked(&t, &g), first = index;

	(void)state;
	for (int report = 0; report < 40; report++) {
		do {
			relayed(&t, SSRC, index++);
		} while (!media_guard_next(t.r->m, &g));
		for (uint64_t i = first; i < index; i++)
			if (index - i < PREAUTH_BEHIND)
				assert_int_equal(judged(&t, &g.guard, i, 0), GUARD_TAG);
		assert_int_equal(judged(&t, &g.guard, index, 0), GUARD_PASS);
	}
	end(&t);
}

/* Under attack, numbers are checked closely, but a correct tag of the window outweighs them. With a
 * header scheme, an old header has a correct tag, too: it can be replayed when its number lies
 * ahead again. */
static void a_right_tag_passes_the_guard_after_a_jump(void **state)
{
	static struct media_guard g;

	(void)state;
	for (uint8_t s = NONE + 1; s < of(PREAUTH_CHAIN); s++) {
		struct talk t = talk_of(s, NONE, SUITE_AES_CM_128_80, 0);
		uint64_t index = attacked(&t, &g);

		for (int i = 0; i < 100; i++) /* until the window is full */
			relayed(&t, SSRC, index++);
		index += GUARD_AHEAD + 40;
		speak(&t, SSRC, index, 1);
		rig_run(t.r);
		assert_int_equal(t.r->outs, 0);
		if (preauth_is_header(t.a.scheme)) {
			speak(&t, SSRC, index, 0);
			refused(&t, PACKET_DROP_GUARD);
		} else {
			relayed(&t, SSRC, index);
		}
		end(&t);
	}
}

/* Otherwise steering would expect tags that the terminal no longer sends, and drop its packets. */
static void a_guard_ends_with_its_tags(void **state)
{
	static struct media_guard g;
	struct talk t = talk_of(of(PREAUTH_SEQUENCE_AES), NONE, SUITE_AES_CM_128_80, 0);
	uint64_t index = attacked(&t, &g);

	(void)state;
	t.scheme_a = NONE;
	set_ctx(&t, false); /* a re-INVITE under the same keys */
	assert_true(media_guard_next(t.r->m, &g));
	assert_false(g.on);
	relayed(&t, SSRC, index);
	t.scheme_a = of(PREAUTH_SEQUENCE_AES);
	set_ctx(&t, false);
	relayed(&t, SSRC, index + 1);
	end(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_pair_of_schemes_and_suites_relays),
		cmocka_unit_test(packets_with_a_block_are_encrypted_by_the_engine),
		cmocka_unit_test(packets_of_a_burst_are_encrypted_together),
		cmocka_unit_test(settled_chains_take_one_pass),
		cmocka_unit_test(plain_rtp_gets_tags_and_loses_them),
		cmocka_unit_test(rtcp_has_no_tag),
		cmocka_unit_test(usual_packets_take_a_fast_path),
		cmocka_unit_test(a_wrong_tag_is_dropped_before_authentication),
		cmocka_unit_test(a_tag_that_is_not_known_leaves_it_to_srtp),
		cmocka_unit_test(a_right_tag_moves_nothing_until_srtp_agrees),
		cmocka_unit_test(
			random_tags_pass_as_often_as_their_width_says_and_srtp_refuses_them),
		cmocka_unit_test(malformed_packets_are_refused),
		cmocka_unit_test(tags_are_checked_while_there_are_forged_packets),
		cmocka_unit_test(an_attacked_stream_keeps_its_tags),
		cmocka_unit_test(a_guard_that_begins_in_a_burst_repeats_no_packet),
		cmocka_unit_test(a_guard_that_ends_in_a_burst_skips_no_packet),
		cmocka_unit_test(steering_gets_tags_as_soon_as_they_are_known),
		cmocka_unit_test(late_packets_pass_a_new_guard),
		cmocka_unit_test(steering_keeps_up_with_a_chain),
		cmocka_unit_test(steering_passes_what_the_daemon_takes),
		cmocka_unit_test(tags_are_known_after_a_jump),
		cmocka_unit_test(jumps_and_restarts_cost_no_true_packet),
		cmocka_unit_test(several_ssrcs_have_windows),
		cmocka_unit_test(tags_end_with_their_key),
		cmocka_unit_test(no_tag_and_no_key_stays_behind),
		cmocka_unit_test(impossible_configurations_are_refused),
		cmocka_unit_test(chains_of_all_parameters_relay),
		cmocka_unit_test(a_chain_keeps_tags_of_its_window),
		cmocka_unit_test(a_flood_of_wrong_tags_is_told_to_steering),
		cmocka_unit_test(steering_is_told_of_the_key_of_headers),
		cmocka_unit_test(steering_has_no_key_of_hmac),
		cmocka_unit_test(steering_is_told_of_every_used_tag),
		cmocka_unit_test(a_right_tag_passes_the_guard_after_a_jump),
		cmocka_unit_test(a_guard_ends_with_its_tags),
		cmocka_unit_test(no_true_packet_is_refused),
	};

	if (getenv("TAGS_PACKETS"))
		cmocka_set_test_filter("no_true_packet_is_refused");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
