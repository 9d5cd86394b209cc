/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Master keys: told apart by their MKI (RFC 3711 8.1), changed in mid-stream, used up (9.2).
 * Session keys derived again every 2^n packets (4.3.1, 4.3.2): the terminals here derive theirs by
 * srtp_kdf() for every packet. */
#include "media/attack.h"
#include "media/ssrc.h"
#include "media_rig.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#define CM80 SUITE_AES_CM_128_80

static uint64_t rng;

static uint32_t dice(uint32_t sides)
{
	/* xorshift64 (Marsaglia 2003) */
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return (uint32_t)(rng >> 32) % sides;
}

/* --- Several master keys ---------------------------------------------------------------------- */

/* A's context knows both of A's keys. */
static int two_keys(struct rig *r, bool rx_new)
{
	struct media_crypto second = rig_crypto(r, A_TX2, r->suite_a);
	struct media_cmd cmd = {.type = MEDIA_CTX_SET,
		.id = 0,
		.ctx = {.rx = rig_crypto(r, A_TX, r->suite_a),
			.tx = rig_crypto(r, A_RX, r->suite_a),
			.rx_new = rx_new}};

	cmd.ctx.rx.key[cmd.ctx.rx.keys++] = second.key[0];
	return media_command(r->m, &cmd);
}

static void packets_under_two_keys_may_interleave(void **state)
{
	static const enum srtp_suite_id suites[] = {
		CM80, SUITE_AEAD_AES_256_GCM, SUITE_F8_128_80, SUITE_NULL_32};

	(void)state;
	for (size_t s = 0; s < ARRAY_LEN(suites); s++) {
		struct rig *r = rig_new(suites[s], CM80, 3);
		uint64_t index = 65500;

		rng = 77;
		rig_send(r, 7, index++, A_TX);
		rig_run(r);
		assert_int_equal(two_keys(r, false), 0);
		/* Over the wrap, one burst after the other: no packet is lost and the ROC
		 * continues. */
		for (int burst = 0; burst < 10; burst++) {
			for (uint32_t i = 0; i < 10; i++)
				rig_send(r, 7, index + (i ^ 1), dice(2) ? A_TX : A_TX2);
			rig_run(r);
			assert_int_equal(r->outs, 10);
			for (uint32_t i = 0; i < 10; i++)
				rig_got(r, i, 7, index + (i ^ 1), index + (i ^ 1));
			index += 10;
		}
		/* The old key is removed; the index stays. */
		rig_ctx(r, 0, (struct rig_keys){A_TX2, A_RX, suites[s], false, false});
		rig_send(r, 7, index, A_TX);
		rig_send(r, 7, index, A_TX2);
		rig_run(r);
		assert_int_equal(r->in[0].verdict, PACKET_DROP_WRONG_MKI);
		assert_int_equal(r->outs, 1);
		rig_got(r, 0, 7, index, index);
		rig_free(r);
	}
}

/* The replay list of RFC 3711 3.3.2 holds indexes of all keys, because they continue over a re-key
 * (3.3.1). */
static void an_index_seen_under_one_key_is_a_replay_under_the_other(void **state)
{
	struct rig *r = rig_new(CM80, CM80, 1);

	(void)state;
	assert_int_equal(two_keys(r, false), 0);
	rig_send(r, 7, 100, A_TX);
	rig_send(r, 7, 100, A_TX2);
	rig_run(r);
	assert_int_equal(r->outs, 1);
	assert_int_equal(r->in[1].verdict, PACKET_DROP_REPLAY);
	rig_free(r);
}

static void a_packet_marked_with_the_other_keys_mki_is_forged(void **state)
{
	struct rig *r = rig_new(CM80, CM80, 2);

	(void)state;
	assert_int_equal(two_keys(r, false), 0);
	/* body 160, header 12, MKI 2, tag 10 */
	memset(rig_send(r, 7, 100, A_TX) + 172, 0xa0 + A_TX2, 2);
	rig_run(r);
	assert_int_equal(r->in[0].verdict, PACKET_DROP_BAD_TAG);
	rig_free(r);
}

static void what_we_send_under_changes_without_a_gap(void **state)
{
	struct rig *r = rig_new(CM80, CM80, 4);
	struct media_crypto second;
	struct media_cmd cmd = {.type = MEDIA_CTX_SET, .id = 1};
	uint8_t p[172];

	(void)state;
	rig_send(r, 7, 65535, A_TX);
	rig_send_rtcp(r, 7, 1);
	rig_run(r);
	assert_int_equal(r->outs, 2);
	/* A_TX2's slot serves as B's second receiving key. */
	second = rig_crypto(r, A_TX2, CM80);
	cmd.ctx.rx = rig_crypto(r, B_TX, CM80);
	cmd.ctx.tx = rig_crypto(r, B_RX, CM80);
	cmd.ctx.tx.key[1] = second.key[0];
	cmd.ctx.tx.keys = 2;
	for (uint32_t i = 0; i < 6; i++) {
		uint32_t slot = i % 2 ? B_RX : A_TX2;

		cmd.ctx.tx.use = i % 2 == 0;
		assert_int_equal(media_command(r->m, &cmd), 0);
		rig_send(r, 7, 65536 + i, A_TX);
		rig_send_rtcp(r, 7, 2 + i);
		rig_run(r);
		assert_int_equal(r->outs, 2);
		assert_int_equal(rig_open(r, 0, p, slot, 65536 + i, false), 172);
		assert_int_equal(be16(p + 2), i);
		/* SRTCP's index continues, whichever key is used. */
		assert_int_equal(be32(r->a.out + r->out[1].out_off + 28), 0x80000000u | (1 + i));
		assert_int_equal(rig_open(r, 1, p, slot, 1 + i, true), 28);
		/* Sent a second time, under another key, it is still refused. */
		rig_send(r, 7, 65536 + i, A_TX);
		rig_run(r);
		assert_int_equal(r->outs, 0);
	}
	rig_free(r);
}

static void indexes_do_not_start_again_under_a_key_that_was_sent_under(void **state)
{
	struct rig *r = rig_new(CM80, CM80, 0);
	struct media_cmd cmd = {.type = MEDIA_CTX_SET,
		.id = 1,
		.ctx = {.rx = rig_crypto(r, B_TX, CM80),
			.tx = rig_crypto(r, B_RX, CM80),
			.tx_new = true}};

	(void)state;
	assert_int_equal(media_command(r->m, &cmd), 0);
	rig_send(r, 7, 5, A_TX);
	rig_run(r);
	assert_int_equal(r->outs, 1);
	assert_int_equal(media_command(r->m, &cmd), -EINVAL);
	cmd.id = 2; /* nor in another context */
	assert_int_equal(media_command(r->m, &cmd), -EINVAL);
	rig_key_new(r, B_RX, 0, 0);
	cmd.id = 1;
	assert_int_equal(media_command(r->m, &cmd), 0);
	rig_free(r);
}

static void a_used_up_srtcp_index_starts_again_with_another_key(void **state)
{
	struct rig *r = rig_new(CM80, CM80, 1);
	struct media_crypto second = rig_crypto(r, A_TX2, CM80);
	struct media_cmd cmd = {.type = MEDIA_CTX_SET,
		.id = 1,
		.ctx = {.rx = rig_crypto(r, B_TX, CM80), .tx = rig_crypto(r, B_RX, CM80)}};

	(void)state;
	cmd.ctx.tx.key[cmd.ctx.tx.keys++] = second.key[0];
	assert_int_equal(media_command(r->m, &cmd), 0);
	r->m->ctx[1].tx_rtcp_next = SRTCP_INDEX_MAX;
	rig_send_rtcp(r, 7, 1);
	rig_send_rtcp(r, 7, 2);
	rig_run(r);
	assert_int_equal(r->outs, 1);
	assert_int_equal(r->in[1].verdict, PACKET_DROP_INDEX_END);
	cmd.ctx.tx.use = 1;
	assert_int_equal(media_command(r->m, &cmd), 0);
	rig_send_rtcp(r, 7, 3);
	rig_run(r);
	assert_int_equal(be32(r->a.out + r->out[0].out_off + 28), 0x80000000u);
	rig_free(r);
}

/* --- Lifetime --------------------------------------------------------------------------------- */

static void send_some(struct rig *r, uint64_t *index, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		rig_send(r, 7 + i % 3, (*index)++, A_TX); /* packets of all SSRCs together */
	rig_run(r);
}

static void a_signalled_lifetime_warns_and_ends_only_if_told_to(void **state)
{
	(void)state;
	for (int tx = 0; tx < 2; tx++)
		for (int enforce = 0; enforce < 2; enforce++) {
			struct rig *r = rig_new(CM80, CM80, 0);
			uint32_t slot = tx ? B_RX : A_TX;
			struct media_key_usage u;
			uint64_t index = 100, warned, expired;

			r->m->cfg.lifetime_enforce = enforce;
			rig_key_new(r, slot, 0, 40);
			send_some(r, &index, 20);
			send_some(r, &index, 15);
			media_key_usage(r->m, slot, &u);
			assert_int_equal(u.rtp, 35);
			assert_int_equal(u.lifetime, 40);
			assert_false(u.warned || u.expired);
			send_some(r, &index, 1);
			media_key_usage(r->m, slot, &u);
			assert_true(u.warned && !u.expired);
			send_some(r, &index, 10); /* the burst reaches the end of the lifetime */
			assert_int_equal(r->outs, enforce ? 4 : 10);
			send_some(r, &index, 3);
			assert_int_equal(r->outs, enforce ? 0 : 3);
			rig_send_rtcp(r, 7, 1); /* the shorter lifetime ends both */
			rig_run(r);
			assert_int_equal(r->outs, !enforce);
			assert_int_equal(rig_dropped(r, A, PACKET_DROP_LIFETIME), enforce ? 10 : 0);
			media_lifetime_events(r->m, &warned, &expired);
			assert_int_equal(warned, 1);
			assert_int_equal(expired, 1);
			/* The index continued meanwhile, and the next key uses it. */
			assert_int_equal(
				media_ssrc_find(&r->m->ctx[0], RX_RTP, 7)->seen.last, index - 3);
			rig_free(r);
		}
}

static void rfc_3711s_own_limits_always_end_a_key(void **state)
{
	(void)state;
	for (int rtcp = 0; rtcp < 2; rtcp++) {
		struct rig *r = rig_new(CM80, CM80, 0);
		struct key_state *k = &r->m->key[A_TX / 2];
		struct media_key_usage u;

		atomic_store(rtcp ? &k->rtcp : &k->rtp, rtcp ? (1ull << 31) - 1 : (1ull << 48) - 1);
		if (rtcp)
			rig_send_rtcp(r, 7, 5);
		else
			rig_send(r, 7, 5, A_TX);
		rig_send(r, 8, 6, A_TX);
		rig_run(r);
		assert_int_equal(r->outs, 1);
		assert_int_equal(r->in[1].verdict, PACKET_DROP_LIFETIME);
		media_key_usage(r->m, A_TX, &u);
		assert_true(u.warned && u.expired);
		rig_free(r);
	}
}

static void what_is_forged_uses_no_key_up(void **state)
{
	struct rig *r = rig_new(CM80, CM80, 0);
	struct media_key_usage u;

	(void)state;
	rig_send(r, 7, 100, A_TX);
	rig_send(r, 7, 100, A_TX);
	rig_send(r, 7, 101, A_TX)[60] ^= 1;
	rig_run(r);
	media_key_usage(r->m, A_TX, &u);
	assert_int_equal(u.rtp, 1);
	media_key_usage(r->m, B_RX, &u);
	assert_int_equal(u.rtp, 1);
	rig_free(r);
}

/* RTP packets are counted in blocks while the end is far; no reader may notice. */

static uint64_t used(const struct rig *r, uint32_t slot)
{
	struct media_key_usage u;

	media_key_usage(r->m, slot, &u);
	return u.rtp;
}

static void every_packet_under_a_key_counts_once_whatever_commands_come(void **state)
{
	static const uint32_t tx[] = {B_RX, A_TX2};
	struct rig *r = rig_new(CM80, CM80, 0);
	uint64_t index = 100, came = 0, left[ARRAY_LEN(tx)] = {0};
	uint32_t at = 0;

	(void)state;
	rng = 4;
	for (int i = 0; i < 300; i++) {
		uint32_t n = 1 + dice(20), what = dice(8);

		send_some(r, &index, n);
		assert_int_equal(r->outs, n);
		came += n;
		left[at] += n;
		if (what == 0)
			rig_ctx(r, 0, (struct rig_keys){0, 0, SUITE_PLAIN, false, false});
		if (what <= 1)
			rig_ctx(r, 0, (struct rig_keys){A_TX, A_RX, CM80, false, false});
		if (what == 2)
			at ^= 1;
		if (what == 2 || what == 3)
			rig_ctx(r, 1, (struct rig_keys){B_TX, tx[at], CM80, false, false});
		assert_int_equal(used(r, A_TX), came);
		for (size_t k = 0; k < ARRAY_LEN(tx); k++)
			assert_int_equal(used(r, tx[k]), left[k]);
	}
	assert_int_equal(
		media_command(r->m, &(struct media_cmd){.type = MEDIA_CTX_DEL, .id = 0}), 0);
	assert_int_equal(used(r, A_TX), came);
	assert_int_equal(
		media_command(r->m, &(struct media_cmd){.type = MEDIA_KEY_DEL, .id = A_TX}), 0);
	assert_int_equal(used(r, A_TX), 0);
	rig_free(r);
}

/* Both sides receive under one key, which calls never do. */
static void a_key_of_two_contexts_counts_for_both(void **state)
{
	struct rig *r = rig_new(CM80, CM80, 0);
	uint64_t index = 100, sent = 0;

	(void)state;
	rig_ctx(r, 1, (struct rig_keys){A_TX, B_RX, CM80, true, false});
	for (uint32_t round = 1; round <= 100; round++) {
		send_some(r, &index, 10);
		for (uint32_t i = 0; i < 4; i++) {
			uint8_t p[172], *at = rig_slot(r, B, PORT_B);

			rig_plain_rtp(p, 9, 4 * round + i);
			r->in[r->n - 1].len = rig_protect(r, at,
				(struct rig_plain){p, 172, 12, A_TX, CM80, 4 * round + i, false});
		}
		rig_run(r);
		sent += 14;
		assert_int_equal(used(r, A_TX), sent);
	}
	rig_free(r);
}

static void a_lifetime_ends_to_the_packet_however_long(void **state)
{
	(void)state;
	for (int tx = 0; tx < 2; tx++)
		for (uint64_t life = 250; life < 2000; life += 171) {
			struct rig *r = rig_new(CM80, CM80, 0);
			uint32_t slot = tx ? B_RX : A_TX;
			struct media_key_usage u = {0};
			uint64_t index = 100, left = 0;

			r->m->cfg.lifetime_enforce = true;
			rig_key_new(r, slot, 0, life);
			for (uint64_t sent = 1; sent < life + 3; sent++) {
				send_some(r, &index, 1);
				left += r->outs;
				media_key_usage(r->m, slot, &u);
				assert_int_equal(u.rtp, min_u32((uint32_t)sent, (uint32_t)life));
				assert_int_equal(u.warned, sent >= life - life / 10);
				assert_int_equal(u.expired, sent >= life);
			}
			assert_int_equal(left, life);
			rig_free(r);
		}
}

/* Counted by SRTCP, by an earlier life, or reset for a key: the count of SRTP is exact again at
 * once. */
static void an_end_that_comes_otherwise_is_not_overrun(void **state)
{
	(void)state;
	for (int how = 0; how < 3; how++) {
		struct rig *r = rig_new(CM80, CM80, 0);
		struct media_cmd resume = {.type = MEDIA_KEY_RESUME, .id = A_TX};
		uint64_t index = 100;

		r->m->cfg.lifetime_enforce = true;
		rig_key_new(r, A_TX, 0, 1000);
		send_some(r, &index, 10);
		assert_int_equal(used(r, A_TX), 10);
		if (how == 2) {
			rig_key_new(r, A_TX, 0, 12);
			assert_int_equal(used(r, A_TX), 0);
			send_some(r, &index, 20);
			assert_int_equal(r->outs, 12);
			rig_free(r);
			continue;
		}
		if (how == 0)
			resume.key_resume.rtp = 985;
		else
			resume.key_resume.rtcp = 998;
		assert_int_equal(media_command(r->m, &resume), 0);
		assert_int_equal(used(r, A_TX), how == 0 ? 995 : 10);
		if (how == 1) {
			send_some(r, &index, 10);
			rig_send_rtcp(r, 7, 1);
			rig_send_rtcp(r, 7, 2);
			rig_run(r);
			assert_int_equal(r->outs, 2);
		}
		send_some(r, &index, 20);
		assert_int_equal(r->outs, how == 0 ? 5 : 0);
		assert_int_equal(used(r, A_TX), how == 0 ? 1000 : 20);
		rig_free(r);
	}
}

/* --- Key derivation rate ---------------------------------------------------------------------- */

enum { SSRCS = 3 };

struct world {
	struct rig *r;
	uint64_t next[SSRCS];
	uint32_t rtcp_in, rtcp_out;
	uint32_t sent, got;
};

static void play_rtp(struct world *w, bool lossy)
{
	uint32_t s = dice(SSRCS);
	uint64_t index = w->next[s] + dice(3);

	if (lossy && dice(20) == 0)
		index += dice(3000);
	w->next[s] = index + 1;
	rig_send(w->r, 50 + s, index, A_TX);
	/* Two packets of one SSRC are swapped. */
	if (w->r->n >= 2 && dice(4) == 0) {
		struct packet_in last = w->r->in[w->r->n - 1];

		w->r->in[w->r->n - 1] = w->r->in[w->r->n - 2];
		w->r->in[w->r->n - 2] = last;
	}
	w->sent++;
}

static void hear(struct world *w)
{
	uint8_t p[172], want[172];

	for (uint32_t k = 0; k < w->r->outs; k++) {
		const uint8_t *out = w->r->a.out + w->r->out[k].out_off;
		const struct ssrc_state *s;
		uint64_t index;

		if (out[1] == 200) {
			assert_int_equal(rig_open(w->r, k, p, B_RX, w->rtcp_out++, true), 28);
			continue;
		}
		s = media_ssrc_find(&w->r->m->ctx[1], TX_RTP, be32(out + 8));
		assert_non_null(s);
		index = srtp_index_estimate(s->seen.last, be16(out + 2));
		assert_int_equal(rig_open(w->r, k, p, B_RX, index, false), 172);
		rig_plain_rtp(want, be32(out + 8), index);
		assert_memory_equal(p, want, 172);
		w->got++;
	}
}

static void kdr_play(enum srtp_suite_id suite, uint8_t rx_kdr, uint8_t tx_kdr, bool lossy)
{
	struct world w = {.r = rig_new(suite, suite, 1), .rtcp_in = (1u << rx_kdr) - 5};
	/* A burst must not span more epochs than there are places. After a stall, each stream gets
	 * few packets. */
	uint32_t burst_max = rx_kdr < 5 || tx_kdr < 5 ? 6 : SLOTS - 1;

	rig_key_new(w.r, A_TX, rx_kdr, 0);
	rig_key_new(w.r, B_RX, tx_kdr, 0);
	if (!lossy)
		rig_engine(w.r);
	for (uint32_t s = 0; s < SSRCS; s++)
		w.next[s] = 65536 - 100 * s - 50;
	for (int burst = 0; burst < 150; burst++) {
		uint32_t n = 1 + dice(burst_max);

		for (uint32_t i = 0; i < n; i++) {
			if (dice(6))
				play_rtp(&w, lossy);
			else
				rig_send_rtcp(w.r, 50, w.rtcp_in++);
		}
		for (uint32_t i = 0; i < w.r->n; i++)
			w.r->in[i].t_ns = 1000000000ull + (uint64_t)burst * 20000000;
		rig_run(w.r);
		hear(&w);
	}
	/* Loss puts distant packets into one burst. A small rate then needs more epochs than there
	 * are places. */
	if (w.got + (lossy ? w.sent / 20 : 0) < w.sent)
		fail_msg("suite %d, kdr %d and %d: %u of %u", suite, rx_kdr, tx_kdr, w.got, w.sent);
	rig_free(w.r);
}

static void session_keys_follow_the_index_of_every_ssrc(void **state)
{
	static const uint8_t kdr[] = {2, 3, 4, 6, 8, 12, 16, 24};
	static const enum srtp_suite_id suites[] = {
		CM80, SUITE_AEAD_AES_128_GCM, SUITE_F8_128_32, SUITE_AES_256_CM_80};

	(void)state;
	rng = 4711;
	for (size_t i = 0; i < ARRAY_LEN(kdr); i++)
		for (int lossy = 0; lossy < 2; lossy++)
			kdr_play(suites[i % ARRAY_LEN(suites)], kdr[i],
				kdr[(i + 3) % ARRAY_LEN(kdr)], lossy);
}

static void the_smallest_rate_works_too(void **state)
{
	struct rig *r = rig_new(CM80, CM80, 0);
	uint64_t index = 65530;

	(void)state;
	rig_key_new(r, A_TX, 1, 0);
	rig_key_new(r, B_RX, 1, 0);
	for (int burst = 0; burst < 200; burst++) {
		for (int i = 0; i < 4; i++)
			rig_send(r, 7, index + (uint64_t)i, A_TX);
		for (int i = 0; i < 4; i++)
			r->in[i].t_ns = 1000000000ull + (uint64_t)burst * 20000000;
		rig_run(r);
		assert_int_equal(r->outs, 4);
		for (uint32_t i = 0; i < 4; i++)
			rig_got(r, i, 7, index + i, index + i);
		index += 4;
	}
	rig_free(r);
}

/* Junk causes only a bounded number of derivations and costs the terminal no packet. */
static void forgeries_cannot_make_us_derive_without_bound(void **state)
{
	struct rig *r = rig_new(CM80, CM80, 0);
	uint64_t index = 1000, now = 1000000000ull;
	uint32_t before;

	(void)state;
	rig_key_new(r, A_TX, 4, 0);
	rng = 99;
	rig_send(r, 7, index++, A_TX);
	rig_run(r);
	assert_int_equal(r->outs, 1);
	/* No guard, which would drop most of them. */
	r->m->trial[A].attack.not_before_ns = ATTACK_NONE_NS;
	before = r->derivations;
	for (int burst = 0; burst < 1000; burst++) { /* half a second */
		for (uint32_t i = 0; i < SLOTS - 2; i++) {
			uint8_t *p = rig_send(r, dice(2) ? 7 : dice(100), index, A_TX);

			p[60] ^= 1;
			put_be16(p + 2, (uint16_t)dice(65536));
		}
		if (burst % 40 == 0)
			rig_send(r, 7, index++, A_TX);
		now += 500000;
		for (uint32_t i = 0; i < r->n; i++)
			r->in[i].t_ns = now;
		rig_run(r);
		assert_int_equal(r->outs, burst % 40 == 0);
	}
	print_message("%u derivations\n", r->derivations - before);
	assert_true(r->derivations - before < 1100); /* 2,000 per second, plus a burst */
	assert_true(rig_dropped(r, A, PACKET_DROP_KEY_EPOCH) > 10000);
	rig_free(r);
}

static void a_key_that_died_derives_nothing_more(void **state)
{
	struct rig *r = rig_new(CM80, CM80, 0);
	struct media_cmd del = {.type = MEDIA_KEY_DEL, .id = A_TX};

	(void)state;
	rig_key_new(r, A_TX, 4, 0);
	rig_send(r, 7, 1000, A_TX);
	rig_run(r);
	assert_int_equal(r->outs, 1);
	assert_int_equal(r->derivations, 2); /* 1000 is in this epoch, in its second half */
	assert_int_equal(media_command(r->m, &del), 0);
	rig_send(r, 7, 1100, A_TX);
	rig_run(r);
	assert_int_equal(r->derivations, 2);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packets_under_two_keys_may_interleave),
		cmocka_unit_test(an_index_seen_under_one_key_is_a_replay_under_the_other),
		cmocka_unit_test(a_packet_marked_with_the_other_keys_mki_is_forged),
		cmocka_unit_test(what_we_send_under_changes_without_a_gap),
		cmocka_unit_test(indexes_do_not_start_again_under_a_key_that_was_sent_under),
		cmocka_unit_test(a_used_up_srtcp_index_starts_again_with_another_key),
		cmocka_unit_test(a_signalled_lifetime_warns_and_ends_only_if_told_to),
		cmocka_unit_test(rfc_3711s_own_limits_always_end_a_key),
		cmocka_unit_test(what_is_forged_uses_no_key_up),
		cmocka_unit_test(every_packet_under_a_key_counts_once_whatever_commands_come),
		cmocka_unit_test(a_key_of_two_contexts_counts_for_both),
		cmocka_unit_test(a_lifetime_ends_to_the_packet_however_long),
		cmocka_unit_test(an_end_that_comes_otherwise_is_not_overrun),
		cmocka_unit_test(session_keys_follow_the_index_of_every_ssrc),
		cmocka_unit_test(the_smallest_rate_works_too),
		cmocka_unit_test(forgeries_cannot_make_us_derive_without_bound),
		cmocka_unit_test(a_key_that_died_derives_nothing_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
