/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tests every engine must pass (engine_cases.h): vectors both ways, every pair of suites
 * against the reference, forgeries refused, no writes outside the result. */
#include "engine_cases.h"

#include <stdio.h>

#include "batch/engine.h"
#include "batch/run.h"
#include "batch/sample.h"
#include "batch/selftest.h"
#include "packet/arena.h"
#include "srtp/g711.h"
#include "srtp/ref.h"
#include "vectors.h"

int engine_setup(void **state, const struct engine_ops *ops, const struct engine_config *cfg)
{
	struct engine_fixture *f = calloc(1, sizeof(*f));
	char err[256] = "";

	if (!f)
		return -1;
	f->ops = ops;
	f->want = calloc(ENGINE_CASES_SLOTS, ARENA_SLOT_LEN);
	if (!f->want || arena_create(&f->a, ENGINE_CASES_SLOTS, ENGINE_CASES_KEY_SLOTS) ||
		ops->open(&f->e, cfg, err, sizeof(err)) || ops->queue_create(&f->q, f->e, &f->a)) {
		fprintf(stderr, "engine %s does not open: %s\n", ops->name, err);
		return -1;
	}
	fprintf(stderr, "engine %s: %s\n", ops->name, ops->device(f->e));
	*state = f;
	return 0;
}

int engine_teardown(void **state)
{
	struct engine_fixture *f = *state;

	f->ops->queue_destroy(f->q);
	f->ops->close(f->e);
	arena_destroy(&f->a);
	free(f->want);
	free(f);
	return 0;
}

static void key_set(struct engine_fixture *f, uint32_t slot, const struct srtp_master *m)
{
	assert_int_equal(srtp_key_fill(&f->a.key[slot], m), 0);
	assert_int_equal(f->ops->key_changed(f->q, slot), 0);
}

static bool can(const struct engine_fixture *f, uint32_t rx, uint32_t tx)
{
	return f->ops->can(f->q, &f->a.key[rx], &f->a.key[tx]);
}

static void run(struct engine_fixture *f, uint32_t n)
{
	struct batch b = {.job = f->a.job, .status = f->a.status, .n = n};

	for (uint32_t i = 0; i < n; i++)
		b.status[i] = XC_NOT_DONE;
	assert_int_equal(f->ops->run(f->q, &b), 0);
}

/* Each suite has two key pairs: one to receive with, one to send with. */
static uint32_t rx_slot(int suite)
{
	return 4 * (uint32_t)suite;
}

static uint32_t tx_slot(int suite)
{
	return 4 * (uint32_t)suite + 2;
}

static void suites_set(struct engine_fixture *f, uint64_t seed)
{
	struct srtp_master m;

	for (int i = 0; i < SUITE_COUNT; i++) {
		sample_master(&m, (enum srtp_suite_id)i, seed + (uint64_t)i);
		key_set(f, rx_slot(i), &m);
		sample_master(&m, (enum srtp_suite_id)i, seed + 1000 + (uint64_t)i);
		key_set(f, tx_slot(i), &m);
	}
}

/* --- Vectors ---------------------------------------------------------------------------------- */

/* RFC 3550 5.1 and 5.3.1. */
static uint32_t rtp_hdr_len(const uint8_t *p)
{
	uint32_t len = 12 + 4 * (p[0] & 15u);

	return p[0] & 0x10 ? len + 4 + 4 * be16(p + len + 2) : len;
}

/* Fills the job of a vector. The plain side gets the protected side's tag offset and flag, too. */
static void vector_job(
	struct xc_job *j, const struct vector *v, uint32_t n, bool rtcp, bool to_srtp, bool rename)
{
	const struct srtp_suite *s = srtp_suite_get(v->master.suite);
	const struct vector_bytes *plain = rtcp ? &v->rtcp : &v->rtp;
	uint64_t index = rtcp ? v->srtcp_index : (uint64_t)v->roc << 16 | be16(plain->b + 2);
	uint32_t pair = 2 + 2 * n + rtcp, off = plain->len;

	if (s->auth != XC_AUTH_GCM)
		off += (rtcp ? 4 : 0) + v->mki_len;
	*j = (struct xc_job){
		.rx_index = index,
		.tx_index = index,
		.in_off = n * ARENA_SLOT_LEN + ARENA_HEADROOM + n % 5,
		.out_off = n * ARENA_SLOT_LEN + ARENA_HEADROOM,
		.rx_key = to_srtp ? rtcp : pair,
		.tx_key = to_srtp ? pair : rtcp,
		.hdr_len = rtcp ? 8 : rtp_hdr_len(plain->b),
		.rx_tag_off = to_srtp ? plain->len : off,
		.tx_tag_off = to_srtp ? off : plain->len,
		.ssrc = be32(plain->b + (rtcp ? 4 : 8)),
		.flags = rtcp ? XC_JOB_RTCP : 0,
	};
	j->body_len = plain->len - j->hdr_len;
	j->ssrc_change = rename ? 0x9e3779b9 * (n + 1) : 0;
	if (rename && to_srtp) /* the vector is the sent packet */
		j->ssrc ^= j->ssrc_change;
	if (rtcp && !v->srtcp_encrypted)
		j->flags |= to_srtp ? XC_JOB_TX_CLEAR : XC_JOB_RX_CLEAR;
}

/* Where complete() puts the MKI: before the tag, or last with AEAD. */
static void mki_put(uint8_t *pkt, const struct vector *v, const struct xc_job *j, uint32_t len)
{
	bool gcm = srtp_suite_get(v->master.suite)->auth == XC_AUTH_GCM;

	memcpy(pkt + (gcm ? len - v->mki_len : j->tx_tag_off - v->mki_len), v->mki, v->mki_len);
}

/* rename: an incoming vector changes its SSRC when it is protected, an outgoing one when it is
 * decrypted. */
static void vectors_run(struct engine_fixture *f, bool rtcp, bool to_srtp, bool rename)
{
	size_t n, tried = 0;
	struct vector *v = vectors_load(VECTORS_PATH, &n);

	assert_non_null(v);
	assert_int_equal(n, 240);
	for (uint32_t i = 0; i < n; i++) {
		const struct vector_bytes *in = to_srtp ? (rtcp ? &v[i].rtcp : &v[i].rtp)
							: (rtcp ? &v[i].srtcp : &v[i].srtp);
		struct xc_job j;

		key_set(f, 2 + 2 * i, &v[i].master);
		vector_job(&j, &v[i], i, rtcp, to_srtp, rename);
		f->a.job[i] = j;
		memcpy(f->a.in + j.in_off, in->b, in->len);
		put_be32(f->a.in + j.in_off + (rtcp ? 4 : 8), j.ssrc);
		if (!can(f, j.rx_key, j.tx_key)) /* becomes a copy, which is not compared */
			f->a.job[i].rx_key = f->a.job[i].tx_key = 0;
	}
	run(f, (uint32_t)n);
	for (uint32_t i = 0; i < n; i++) {
		struct vector_bytes *want = to_srtp ? (rtcp ? &v[i].srtcp : &v[i].srtp)
						    : (rtcp ? &v[i].rtcp : &v[i].rtp);
		const struct xc_job *j = &f->a.job[i];

		if (j->rx_key == j->tx_key)
			continue;
		if (f->a.status[i] != XC_OK)
			fail_msg("vector %u (%s): status %u", i,
				srtp_suite_get(v[i].master.suite)->name, f->a.status[i]);
		if (to_srtp)
			mki_put(f->a.out + j->out_off, &v[i], j, want->len);
		else
			put_be32(want->b + (rtcp ? 4 : 8), j->ssrc ^ j->ssrc_change);
		assert_memory_equal(f->a.out + j->out_off, want->b, want->len);
		tried++;
	}
	free(v);
	assert_true(tried >= 120); /* at least the AES_CM suites */
}

void engine_case_vectors_to_srtp(void **state)
{
	for (int rtcp = 0; rtcp < 2; rtcp++)
		for (int rename = 0; rename < 2; rename++)
			vectors_run(*state, rtcp, true, rename);
}

void engine_case_vectors_to_plain(void **state)
{
	for (int rtcp = 0; rtcp < 2; rtcp++)
		for (int rename = 0; rename < 2; rename++)
			vectors_run(*state, rtcp, false, rename);
}

/* --- Against the reference -------------------------------------------------------------------- */

static bool pair_job(struct engine_fixture *f, uint32_t n, int rx, int tx, uint64_t *rnd)
{
	uint64_t r = sample_random(rnd);
	bool rtcp = r & 1;
	struct sample s = {
		.rx_key = rx_slot(rx) + rtcp,
		.tx_key = tx_slot(tx) + rtcp,
		.hdr_len = rtcp ? 8 : 12 + 4 * (uint32_t)(r >> 1) % 20,
		.body_len = (uint32_t)(r >> 8) % ((r >> 20) % 4 ? 200 : 1401),
		.in_skew = (uint32_t)(r >> 24) % 16,
		.rx_mki_len = (uint8_t)((r >> 32) % 3 ? 0 : (r >> 36) % 17),
		.tx_mki_len = (uint8_t)((r >> 42) % 3 ? 0 : (r >> 46) % 17),
		.flags = (rtcp ? XC_JOB_RTCP : 0) | ((r >> 52) % 5 ? 0 : XC_JOB_RX_CLEAR) |
			((r >> 56) % 5 ? 0 : XC_JOB_TX_CLEAR) | ((r >> 60) % 3 ? 0 : XC_JOB_DOUBT),
		.seed = sample_random(rnd),
	};

	if (sample_random(rnd) % 2)
		s.convert = (uint32_t)sample_random(rnd) % 3 |
			((uint32_t)sample_random(rnd) & 0x7f) << 8;
	if (sample_random(rnd) % 3 == 0)
		s.ssrc_change = (uint32_t)sample_random(rnd);
	s.rx_index = sample_random(rnd) & (rtcp ? 0x7fffffff : 0xffffffffffff);
	s.tx_index = rtcp ? sample_random(rnd) & 0x7fffffff
			  : (sample_random(rnd) & 0xffffffff0000) | (s.rx_index & 0xffff);
	if (!can(f, s.rx_key, s.tx_key))
		return false;
	sample_make(&f->a.job[n], &f->a, n, &s);
	return true;
}

void engine_case_all_pairs_as_reference(void **state)
{
	struct engine_fixture *f = *state;
	uint64_t rnd = 4711;
	size_t in_len = (size_t)f->a.slots * ARENA_SLOT_LEN;
	uint8_t *in_before = malloc(in_len);

	assert_non_null(in_before);
	suites_set(f, 1);
	for (int round = 0; round < 4; round++) {
		uint32_t n = 0;

		for (int rx = 0; rx < SUITE_COUNT; rx++)
			for (int tx = 0; tx < SUITE_COUNT; tx++)
				for (int twice = 0; twice < 2; twice++)
					n += pair_job(f, n, rx, tx, &rnd);
		/* Every tenth packet is damaged at a random byte. */
		for (uint32_t i = 0; i < n; i += 10)
			f->a.in[f->a.job[i].in_off +
				sample_random(&rnd) %
					(f->a.job[i].hdr_len + f->a.job[i].body_len)] ^= 4;
		memcpy(in_before, f->a.in, in_len);
		run(f, n);
		/* A batch can be run again, because its input is unchanged. */
		assert_memory_equal(f->a.in, in_before, in_len);
		for (uint32_t i = 0; i < n; i++) {
			const struct xc_job *j = &f->a.job[i];
			uint32_t want = srtp_ref_job(j, f->a.key, f->a.in, f->want);

			assert_int_equal(f->a.status[i], want);
			if (want == XC_OK && !sample_equal(j, &f->a, f->a.out, f->want))
				fail_msg(
					"from %s to %s, flags %u, header %u, body %u: not as the reference",
					srtp_suite_get((enum srtp_suite_id)(j->rx_key / 4))->name,
					srtp_suite_get((enum srtp_suite_id)(j->tx_key / 4))->name,
					j->flags, j->hdr_len, j->body_len);
		}
	}
	free(in_before);
}

/* --- G.711 ------------------------------------------------------------------------------------ */

enum { LAW_BODY = 256, LAW_LENGTHS = 40 };

/* From clear to each suite and back to clear: the bytes 0 to 255, or the first len of them. */
static void convert(struct engine_fixture *f, int suite, uint32_t law, uint32_t len)
{
	static const uint8_t head[12] = {0x80, 0x80, 0, 1, 0, 0, 0, 160, 1, 2, 3, 4};
	struct xc_job *j = f->a.job;
	uint8_t *out;

	j[0] = (struct xc_job){.in_off = ARENA_HEADROOM,
		.out_off = ARENA_HEADROOM,
		.tx_key = rx_slot(suite),
		.hdr_len = sizeof(head),
		.body_len = len,
		.rx_tag_off = (uint32_t)sizeof(head) + len,
		.tx_tag_off = (uint32_t)sizeof(head) + len,
		.ssrc = 0x01020304};
	memcpy(f->a.in + j->in_off, head, sizeof(head));
	for (uint32_t i = 0; i < len; i++)
		f->a.in[j->in_off + sizeof(head) + i] = (uint8_t)i;
	assert_int_equal(srtp_ref_job(j, f->a.key, f->a.in, f->want), XC_OK);
	memcpy(f->a.in + j->in_off, f->want + j->out_off, sizeof(head) + len + 16);
	for (uint32_t n = 1; n < 4; n++)
		j[n] = j[0];
	for (uint32_t n = 0; n < 4; n++) {
		j[n].rx_key = rx_slot(suite);
		j[n].tx_key = 0;
		j[n].out_off = n * ARENA_SLOT_LEN + ARENA_HEADROOM;
		j[n].convert = n % 2 ? law | 8u << 8 : 0;
	}
	run(f, 4); /* converted and other packets in one batch */
	for (uint32_t n = 0; n < 4; n++) {
		out = f->a.out + j[n].out_off;
		assert_int_equal(f->a.status[n], XC_OK);
		assert_int_equal(out[1], n % 2 ? 0x88 : 0x80);
		for (uint32_t i = 0; i < len; i++)
			assert_int_equal(out[12 + i],
				n % 2 == 0                     ? i
					: law == XC_LAW_U_TO_A ? g711_ulaw_to_alaw((uint8_t)i)
							       : g711_alaw_to_ulaw((uint8_t)i));
	}
}

void engine_case_g711_is_converted(void **state)
{
	struct engine_fixture *f = *state;

	suites_set(f, 1);
	for (int suite = 0; suite < SUITE_COUNT; suite++) {
		if (!can(f, rx_slot(suite), 0) ||
			f->a.key[rx_slot(suite)].cipher == XC_CIPHER_AES_F8)
			continue;
		for (uint32_t law = XC_LAW_U_TO_A; law <= XC_LAW_A_TO_U; law++) {
			convert(f, suite, law, LAW_BODY);
			for (uint32_t len = 0; len < LAW_LENGTHS; len++)
				convert(f, suite, law, 5 * len);
		}
	}
}

/* --- Forgeries -------------------------------------------------------------------------------- */

static struct sample small(int suite, bool rtcp, uint32_t flags)
{
	return (struct sample){.rx_key = rx_slot(suite) + rtcp,
		.tx_key = tx_slot(SUITE_PLAIN) + rtcp,
		.hdr_len = rtcp ? 8 : 12,
		.body_len = 7,
		.flags = (rtcp ? XC_JOB_RTCP : 0) | flags,
		.rx_index = 0x12345,
		.tx_index = 0x12345,
		.seed = (uint64_t)suite};
}

static void flip_every_bit(struct engine_fixture *f, const struct sample *s)
{
	uint32_t bits, n = 0;
	struct xc_job j;

	sample_make(&j, &f->a, 0, s);
	bits = 8 * sample_len(&j, &f->a.key[s->rx_key], j.rx_tag_off, 0);
	assert_true(bits < ENGINE_CASES_SLOTS);
	for (; n < bits; n++) {
		sample_make(&f->a.job[n], &f->a, n, s);
		f->a.in[f->a.job[n].in_off + n / 8] ^= (uint8_t)(1u << n % 8);
	}
	sample_make(&f->a.job[n], &f->a, n, s); /* and one undamaged packet */
	run(f, n + 1);
	for (uint32_t i = 0; i < n; i++)
		if (f->a.status[i] != XC_BAD_TAG)
			fail_msg("suite %u, flags %u: bit %u of byte %u can be turned over",
				s->rx_key / 4, s->flags, i % 8, i / 8);
	assert_int_equal(f->a.status[n], XC_OK);
}

void engine_case_every_bit_flip_is_rejected(void **state)
{
	struct engine_fixture *f = *state;

	suites_set(f, 2);
	for (int suite = SUITE_PLAIN + 1; suite < SUITE_COUNT; suite++)
		for (uint32_t shape = 0; shape < 8; shape++) {
			struct sample s = small(suite, shape & 1,
				(shape & 2 ? XC_JOB_RX_CLEAR : 0) | (shape & 4 ? XC_JOB_DOUBT : 0));

			if (can(f, s.rx_key, s.tx_key))
				flip_every_bit(f, &s);
		}
}

/* The ROC is authenticated, although it is not sent. */
void engine_case_wrong_index_is_rejected(void **state)
{
	struct engine_fixture *f = *state;
	uint32_t n = 0;

	suites_set(f, 3);
	for (int suite = SUITE_PLAIN + 1; suite < SUITE_COUNT; suite++) {
		struct sample s = small(suite, false, 0);

		for (int bit = 16; bit < 48 && can(f, s.rx_key, s.tx_key); bit += 5) {
			sample_make(&f->a.job[n], &f->a, n, &s);
			f->a.job[n++].rx_index ^= 1ull << bit;
		}
	}
	assert_true(n > 0);
	run(f, n);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(f->a.status[i], XC_BAD_TAG);
}

/* --- Places ----------------------------------------------------------------------------------- */

static void slot_untouched(const uint8_t *slot, uint32_t end)
{
	for (uint32_t i = 0; i < ARENA_HEADROOM; i++)
		assert_int_equal(slot[i], 0x5c);
	for (uint32_t i = ARENA_HEADROOM + end + XC_SLACK; i < ARENA_SLOT_LEN; i++)
		assert_int_equal(slot[i], 0x5c);
}

void engine_case_writes_stay_in_their_place(void **state)
{
	struct engine_fixture *f = *state;
	uint64_t rnd = 99;
	uint32_t n = 0;

	suites_set(f, 4);
	for (int rx = 0; rx < SUITE_COUNT; rx++)
		for (int tx = 0; tx < SUITE_COUNT; tx++)
			n += pair_job(f, n, rx, tx, &rnd);
	f->a.in[f->a.job[n - 1].in_off] ^= 1; /* forged, so not written */
	memset(f->a.out, 0x5c, (size_t)f->a.slots * ARENA_SLOT_LEN);
	f->a.status[n] = 0x5c5c5c5c;
	run(f, n);
	assert_int_equal(f->a.status[n], 0x5c5c5c5c);
	for (uint32_t i = 0; i < n; i++) {
		const struct xc_job *j = &f->a.job[i];

		slot_untouched(f->a.out + (size_t)i * ARENA_SLOT_LEN,
			sample_len(j, &f->a.key[j->tx_key], j->tx_tag_off, 16));
	}
	for (uint32_t i = n; i < f->a.slots; i++)
		slot_untouched(f->a.out + (size_t)i * ARENA_SLOT_LEN, 0);
}

void engine_case_keys_can_change(void **state)
{
	struct engine_fixture *f = *state;

	/* The same slots get the next suite each time, down to plain. An engine that caches an old
	 * key fails. */
	for (int suite = SUITE_COUNT - 1; suite >= 0; suite--) {
		struct sample s = {
			.rx_key = 2, .tx_key = 4, .hdr_len = 12, .body_len = 100, .seed = 5};
		struct srtp_master m;

		sample_master(&m, (enum srtp_suite_id)suite, 50 + (uint64_t)suite);
		key_set(f, 2, &m);
		m.key[0] ^= 1;
		key_set(f, 4, &m);
		if (!can(f, 2, 4))
			continue;
		sample_make(&f->a.job[0], &f->a, 0, &s);
		run(f, 1);
		assert_int_equal(f->a.status[0], XC_OK);
		assert_int_equal(srtp_ref_job(&f->a.job[0], f->a.key, f->a.in, f->want), XC_OK);
		assert_true(sample_equal(&f->a.job[0], &f->a, f->a.out, f->want));
	}
}

/* A zeroed slot is neither a key nor plain. A stale handle must not accept junk, nor send in the
 * clear. */
void engine_case_a_wiped_slot_is_refused(void **state)
{
	struct engine_fixture *f = *state;
	static const struct {
		uint32_t rx, tx;
		bool rtcp;
	} T[] = {{2, 0, false}, {0, 2, false}, {2, 4, false}, {4, 2, false}, {3, 1, true},
		{1, 3, true}, {5, 3, true}};
	struct srtp_master m;

	sample_master(&m, SUITE_AES_CM_128_80, 9);
	key_set(f, 2, &m);
	key_set(f, 4, &m);
	for (uint32_t i = 0; i < ARRAY_LEN(T); i++) {
		struct sample s = {.rx_key = T[i].rx,
			.tx_key = T[i].tx,
			.hdr_len = T[i].rtcp ? 8 : 12,
			.body_len = 40,
			.flags = T[i].rtcp ? XC_JOB_RTCP : 0,
			.seed = i};

		sample_make(&f->a.job[i], &f->a, i, &s);
	}
	memset(&f->a.key[2], 0, 2 * sizeof(f->a.key[2]));
	assert_int_equal(f->ops->key_changed(f->q, 2), 0);
	run(f, ARRAY_LEN(T));
	for (uint32_t i = 0; i < ARRAY_LEN(T); i++) {
		assert_int_equal(f->a.status[i], XC_BAD_TAG);
		assert_int_equal(
			srtp_ref_job(&f->a.job[i], f->a.key, f->a.in, f->want), XC_BAD_TAG);
	}
}

/* UNAUTHENTICATED_SRTP (RFC 4568 6.3.3) encrypts RTP without a tag; SRTCP keeps its tag. Both
 * directions are compared with the reference. */
void engine_case_srtp_without_authentication(void **state)
{
	static const enum srtp_suite_id suites[] = {
		SUITE_AES_CM_128_80, SUITE_AES_256_CM_32, SUITE_F8_128_80, SUITE_NULL_80};
	struct engine_fixture *f = *state;
	uint32_t n;

	for (size_t i = 0; i < ARRAY_LEN(suites); i++) {
		struct srtp_master m;

		sample_master(&m, suites[i], 70 + i);
		m.no_rtp_auth = true;
		key_set(f, 2, &m);
		assert_int_equal(f->a.key[2].auth | f->a.key[2].tag_len, 0);
		assert_int_equal(f->a.key[3].tag_len, 10);
		sample_master(&m, SUITE_AES_CM_128_80, 80);
		key_set(f, 4, &m);
		if (!can(f, 2, 4))
			continue;
		for (n = 0; n < 6; n++) {
			bool rtcp = n >= 3;
			struct sample s = {.rx_key = (n % 3 == 1 ? 4 : 2) + rtcp,
				.tx_key = (n % 3 == 0 ? 4 : 2) + rtcp,
				.hdr_len = rtcp ? 8 : 12,
				.body_len = 60 + n,
				.rx_index = 70000,
				.tx_index = 9000000,
				.flags = rtcp ? XC_JOB_RTCP : 0,
				.seed = n};

			sample_make(&f->a.job[n], &f->a, n, &s);
		}
		run(f, n);
		for (n = 0; n < 6; n++) {
			assert_int_equal(f->a.status[n], XC_OK);
			assert_int_equal(
				srtp_ref_job(&f->a.job[n], f->a.key, f->a.in, f->want), XC_OK);
			assert_true(sample_equal(&f->a.job[n], &f->a, f->a.out, f->want));
		}
	}
}

void engine_case_selftest_passes(void **state)
{
	struct engine_fixture *f = *state;
	char err[256] = "";

	if (batch_selftest(f->ops, f->e, err, sizeof(err)))
		fail_msg("%s", err);
}

/* --- Batches ---------------------------------------------------------------------------------- */

/* Every number of packets up to more than two work-items, all of different lengths, one forged per
 * batch. The batch starts at the arena's start or later. */
void engine_case_every_batch_size_is_right(void **state)
{
	struct engine_fixture *f = *state;
	struct srtp_master m;

	for (uint32_t i = 0; i < 2; i++) {
		sample_master(&m, i ? SUITE_AES_CM_128_32 : SUITE_AES_CM_128_80, i);
		assert_int_equal(srtp_key_fill(&f->a.key[2 + 2 * i], &m), 0);
		assert_int_equal(f->ops->key_changed(f->q, 2 + 2 * i), 0);
	}
	for (uint32_t i = 0; i < 72; i++) {
		struct sample s = {
			.rx_key = 2, .tx_key = 4, .hdr_len = 12, .body_len = 19 * i % 257};

		s.rx_index = s.tx_index = s.seed = i;
		sample_make(&f->a.job[i], &f->a, i, &s);
	}
	for (uint32_t n = 1; n <= 70; n++) {
		uint32_t first = n % 3;
		struct batch b = {.job = f->a.job + first, .status = f->a.status + first, .n = n};
		uint32_t forged = n * 7 / 3 % n;

		for (uint32_t i = 0; i < n; i++)
			b.status[i] = XC_NOT_DONE;
		f->a.in[b.job[forged].in_off + 3] ^= 1;
		assert_int_equal(f->ops->run(f->q, &b), 0);
		for (uint32_t i = 0; i < n; i++) {
			assert_int_equal(b.status[i], i == forged ? XC_BAD_TAG : XC_OK);
			if (i == forged)
				continue;
			(void)srtp_ref_job(&b.job[i], f->a.key, f->a.in, f->want);
			assert_true(sample_equal(&b.job[i], &f->a, f->a.out, f->want));
		}
		f->a.in[b.job[forged].in_off + 3] ^= 1;
	}
}
