/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The self-test: every pair of suites that an engine supports, RTP and RTCP, clear and encrypted
 * bodies, good and damaged packets, odd lengths, compared with srtp/ref. Runs once when an engine
 * is opened, on its own arena. An engine that fails it is not used. */
#include "batch/selftest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "batch/engine.h"
#include "batch/run.h"
#include "batch/sample.h"
#include "base/secmem.h"
#include "packet/arena.h"
#include "srtp/ref.h"

/* For each pair of suites: RTP and RTCP, each good, damaged, received clear and sent clear. */
enum { SHAPES = 8, SLOTS = SUITE_COUNT * SHAPES, KEY_SLOTS = 4 * SUITE_COUNT };

struct selftest {
	const struct engine_ops *ops;
	struct engine_queue *q;
	struct arena a;
	uint8_t *want; /* results of the reference, in the arena's layout */
	uint32_t want_status[SLOTS];
	char *err;
	size_t err_len;
	uint64_t rnd;
};

/* Each suite has two pairs, for receiving and for sending. Suite 0 is plain: its pairs are zeroes,
 * as every plain pair is. */
static uint32_t rx_slot(int suite)
{
	return 4 * (uint32_t)suite;
}

static uint32_t tx_slot(int suite)
{
	return 4 * (uint32_t)suite + 2;
}

static int keys_make(struct selftest *t)
{
	int err = 0;

	for (uint32_t slot = 0; slot < KEY_SLOTS && !err; slot += 2) {
		struct srtp_master m;

		sample_master(&m, (enum srtp_suite_id)(slot / 4), 77 + slot);
		err = srtp_key_fill(&t->a.key[slot], &m);
		if (!err)
			err = t->ops->key_changed(t->q, slot);
	}
	if (err)
		snprintf(t->err, t->err_len, "%s: self-test: keys were refused: %s", t->ops->name,
			strerror(-err));
	return err ? -EIO : 0;
}

/* Flips a bit anywhere in the packet except the MKI gap: header, body, word, tag. */
static void damage(struct selftest *t, const struct xc_job *j)
{
	const struct xc_key *k = &t->a.key[j->rx_key];
	uint64_t r = sample_random(&t->rnd);
	uint32_t len = j->hdr_len + j->body_len, at = (uint32_t)(r >> 8) % (len + k->tag_len);

	if (at >= len)
		at = j->rx_tag_off + (at - len);
	t->a.in[j->in_off + at] ^= (uint8_t)(1u << (r & 7));
}

/* The shape-th packet from one suite to another, into packet slot n. */
static void job_make(struct selftest *t, uint32_t n, int rx, int tx, int shape)
{
	static const uint16_t body[] = {0, 1, 15, 16, 17, 20, 63, 64, 65, 160, 172, 333};
	bool rtcp = shape & 1;
	uint64_t r = sample_random(&t->rnd);
	struct sample s = {
		.rx_key = rx_slot(rx) + rtcp,
		.tx_key = tx_slot(tx) + rtcp,
		.hdr_len = rtcp ? 8 : 12 + 4 * (uint32_t)(r % 4),
		.body_len = body[(r >> 8) % ARRAY_LEN(body)],
		.in_skew = (uint32_t)(r >> 16) % 4 * 7,
		.rx_mki_len = (r >> 24) % 3 == 0 ? 4 : 0,
		.tx_mki_len = (r >> 28) % 3 == 0 ? 1 : 0,
		.flags = (rtcp ? XC_JOB_RTCP : 0) | (shape / 2 == 2 ? XC_JOB_RX_CLEAR : 0) |
			(shape / 2 == 3 ? XC_JOB_TX_CLEAR : 0),
		.ssrc_change = (r >> 32) % 3 == 0 ? (uint32_t)(r >> 20) : 0,
		.convert = (r >> 36) % 2 == 0 ? (r >> 40) % 3 | (uint32_t)(r >> 44 & 0x7f) << 8 : 0,
		.seed = r,
	};

	s.rx_index = sample_random(&t->rnd) & (rtcp ? 0x7fffffff : 0xffffffffffff);
	/* Headers carry the sequence number, and the two indices differ in ROC only. */
	s.tx_index = rtcp ? s.rx_index ^ 0x1234567 : s.rx_index ^ 0x5a5a0000;
	sample_make(&t->a.job[n], &t->a, n, &s);
	if (shape / 2 == 1)
		damage(t, &t->a.job[n]);
}

static int job_check(const struct selftest *t, uint32_t n)
{
	const struct xc_job *j = &t->a.job[n];
	uint32_t got = t->a.status[n], want = t->want_status[n];

	if (got == want && (want != XC_OK || sample_equal(j, &t->a, t->a.out, t->want)))
		return 0;
	snprintf(t->err, t->err_len,
		"%s: self-test: wrong %s from %s to %s (%s, body of %u, status %u, not %u)",
		t->ops->name, got == want ? "bytes" : "verdict",
		srtp_suite_get((enum srtp_suite_id)(j->rx_key / 4))->name,
		srtp_suite_get((enum srtp_suite_id)(j->tx_key / 4))->name,
		j->flags & XC_JOB_RTCP ? "RTCP" : "RTP", j->body_len, got, want);
	return -EIO;
}

/* One batch: all packets received under one suite. */
static int from_suite(struct selftest *t, int rx)
{
	struct batch b = {.job = t->a.job, .status = t->a.status};
	int err;

	for (int tx = 0; tx < SUITE_COUNT; tx++) {
		if (!t->ops->can(t->q, &t->a.key[rx_slot(rx)], &t->a.key[tx_slot(tx)]) ||
			!t->ops->can(t->q, &t->a.key[rx_slot(rx) + 1], &t->a.key[tx_slot(tx) + 1]))
			continue;
		for (int shape = 0; shape < SHAPES; shape++)
			job_make(t, b.n++, rx, tx, shape);
	}
	if (b.n == 0)
		return 0;
	memset(t->a.out, 0xa5, (size_t)SLOTS * ARENA_SLOT_LEN);
	for (uint32_t i = 0; i < b.n; i++) {
		t->want_status[i] = srtp_ref_job(&b.job[i], t->a.key, t->a.in, t->want);
		b.status[i] = XC_NOT_DONE;
	}
	err = t->ops->run(t->q, &b);
	if (err) {
		snprintf(t->err, t->err_len, "%s: self-test: the batch failed: %s", t->ops->name,
			strerror(-err));
		return -EIO;
	}
	for (uint32_t i = 0; i < b.n; i++)
		if (job_check(t, i))
			return -EIO;
	return 0;
}

int batch_selftest(const struct engine_ops *ops, struct engine *e, char *err, size_t err_len)
{
	struct selftest *t = calloc(1, sizeof(*t));
	int res = -EIO;

	snprintf(err, err_len, "%s: self-test: no memory", ops->name);
	if (!t)
		return -EIO;
	*t = (struct selftest){.ops = ops, .err = err, .err_len = err_len, .rnd = 20240607};
	if (arena_create(&t->a, SLOTS, KEY_SLOTS))
		goto free_test;
	t->want = calloc(SLOTS, ARENA_SLOT_LEN);
	if (!t->want)
		goto free_arena;
	if (ops->queue_create(&t->q, e, &t->a)) {
		snprintf(err, err_len, "%s: self-test: no queue", ops->name);
		goto free_want;
	}
	res = keys_make(t);
	for (int rx = 0; rx < SUITE_COUNT && !res; rx++)
		res = from_suite(t, rx);
	if (!res && err_len)
		err[0] = 0;
	ops->queue_destroy(t->q);
free_want:
	free(t->want);
free_arena:
	arena_destroy(&t->a);
free_test:
	free(t);
	return res;
}
