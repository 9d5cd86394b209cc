/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The serial engine and the mock (the reference) pass the tests for every engine. The serial engine
 * refuses jobs that point outside the arena. The runner handles a device that fails or lies. */
#include <errno.h>
#include <stdio.h>

#include "batch/engine.h"
#include "engine_cases.h"
#include "engine_mock.h"
#include "batch/run.h"
#include "batch/sample.h"
#include "batch/selftest.h"
#include "batch/sha1_lanes.h"
#include "base/log.h"
#include "packet/arena.h"
#include "srtp/ref.h"

static int serial_setup(void **state)
{
	return engine_setup(state, &engine_serial, &(struct engine_config){.device = ""});
}

static int libcrypto_setup(void **state)
{
	return engine_setup(
		state, &engine_serial, &(struct engine_config){.flags = ENGINE_LIBCRYPTO});
}

/* Every set of SHA-1 instructions that this processor has (sha1_ways.h). */
#define WAY_SETUP(place)                                                         \
	static int way##place##_setup(void **state)                              \
	{                                                                        \
		return engine_setup(state, &engine_serial,                       \
			&(struct engine_config){.flags = ENGINE_WAY(place##u)}); \
	}
WAY_SETUP(0)
WAY_SETUP(1)
WAY_SETUP(2)
_Static_assert(SHA1_WAYS == 3, "a set-up for each");

static int mock_setup(void **state)
{
	return engine_setup(state, &engine_mock, &(struct engine_config){.device = ""});
}

static void serial_refuses_jobs_that_point_elsewhere(void **state)
{
	struct engine_fixture *f = *state;
	const struct sample s = {
		.rx_key = 0, .tx_key = 2, .hdr_len = 12, .body_len = 100, .in_skew = 0};
	struct srtp_master m;
	uint32_t n = 0;

	sample_master(&m, SUITE_AES_CM_128_80, 1);
	assert_int_equal(srtp_key_fill(&f->a.key[2], &m), 0);
	assert_int_equal(f->ops->key_changed(f->q, 2), 0);
	for (; n < 12; n++)
		sample_make(&f->a.job[n], &f->a, n, &s);
	f->a.job[0].in_off = f->a.slots * ARENA_SLOT_LEN;
	f->a.job[1].out_off = UINT32_MAX;
	f->a.job[2].body_len = UINT32_MAX;
	f->a.job[3].hdr_len = UINT32_MAX;
	f->a.job[4].tx_tag_off = ARENA_SLOT_LEN - ARENA_HEADROOM - 9;
	f->a.job[5].rx_key = f->a.key_slots;
	f->a.job[6].tx_key = 900; /* a slot that was never filled */
	f->a.job[7].hdr_len = 4;
	f->a.job[8].body_len = ARENA_SLOT_LEN - ARENA_HEADROOM - XC_SLACK;
	f->a.job[9].tx_tag_off = UINT32_MAX - 3;
	f->a.job[10].out_off = 11 * ARENA_SLOT_LEN - 64;
	{
		struct batch b = {.job = f->a.job, .status = f->a.status, .n = n};

		assert_int_equal(f->ops->run(f->q, &b), 0);
	}
	for (uint32_t i = 0; i + 1 < n; i++)
		if (f->a.status[i] != XC_BAD_TAG)
			fail_msg("job %u was taken", i);
	assert_int_equal(f->a.status[n - 1], XC_OK);
	assert_int_equal(f->ops->key_changed(f->q, f->a.key_slots - 1), -EINVAL);
}

/* Encrypts plain packets of every suite from arena.in to arena.out, then the same in arena.out. */
static void serial_encrypts_in_place(void **state)
{
	enum { IN_PLACE_N = 20 };
	struct engine_fixture *f = *state;
	static uint8_t want[IN_PLACE_N][ARENA_SLOT_LEN];
	struct batch b = {.job = f->a.job, .status = f->a.status, .n = IN_PLACE_N};
	struct srtp_master m;

	for (int suite = SUITE_PLAIN + 1; suite < SUITE_COUNT; suite++) {
		sample_master(&m, (enum srtp_suite_id)suite, 7);
		assert_int_equal(srtp_key_fill(&f->a.key[2], &m), 0);
		assert_int_equal(f->ops->key_changed(f->q, 2), 0);
		for (uint32_t i = 0; i < b.n; i++) {
			struct sample s = {.rx_key = 0,
				.tx_key = 2,
				.hdr_len = i % 3 ? 12 : 20,
				.body_len = i < 16 ? 160 : 100 + 7 * i,
				.tx_index = 65530 + i};

			sample_make(&b.job[i], &f->a, i, &s);
		}
		b.in_place = false;
		assert_int_equal(f->ops->run(f->q, &b), 0);
		for (uint32_t i = 0; i < b.n; i++) {
			struct xc_job *j = &b.job[i];
			uint8_t *out = f->a.out + j->out_off;

			assert_int_equal(b.status[i], XC_OK);
			memcpy(want[i], out, j->tx_tag_off + f->a.key[2].tag_len);
			memcpy(out, f->a.in + j->in_off, j->hdr_len + j->body_len);
			j->in_off = j->out_off;
			b.status[i] = XC_NOT_DONE;
		}
		b.in_place = true;
		assert_int_equal(f->ops->run(f->q, &b), 0);
		for (uint32_t i = 0; i < b.n; i++) {
			assert_int_equal(b.status[i], XC_OK);
			assert_memory_equal(f->a.out + b.job[i].out_off, want[i],
				b.job[i].tx_tag_off + f->a.key[2].tag_len);
		}
	}
}

/* If a message fills its last block, its padding is a block of its own. */
static void serial_hashes_whole_blocks(void **state)
{
	static const uint32_t body[] = {48, 112, 176, 47, 177};
	struct engine_fixture *f = *state;
	struct srtp_master m;

	sample_master(&m, SUITE_AES_CM_128_80, 3);
	assert_int_equal(srtp_key_fill(&f->a.key[2], &m), 0);
	assert_int_equal(f->ops->key_changed(f->q, 2), 0);
	for (uint32_t k = 0; k < ARRAY_LEN(body); k++) {
		struct batch b = {.job = f->a.job, .status = f->a.status, .n = 19};

		for (uint32_t i = 0; i < b.n; i++)
			sample_make(&b.job[i], &f->a, i,
				&(struct sample){.rx_key = 2,
					.tx_key = 2,
					.hdr_len = 12,
					.body_len = body[k],
					.rx_index = i,
					.tx_index = 9 * i,
					.seed = i});
		assert_int_equal(f->ops->run(f->q, &b), 0);
		for (uint32_t i = 0; i < b.n; i++) {
			assert_int_equal(b.status[i], XC_OK);
			assert_int_equal(
				srtp_ref_job(&b.job[i], f->a.key, f->a.in, f->want), XC_OK);
			assert_true(sample_equal(&b.job[i], &f->a, f->a.out, f->want));
		}
	}
}

/* Packets of any two suites, with a block removed and another appended. Expected: decrypted by one
 * reference job, and the changed packet encrypted by another. */
static void expect_block(
	const struct arena *a, const struct xc_job *j, const uint8_t *block, uint8_t *want)
{
	struct xc_job open = *j, close = *j;
	uint8_t plain[ARENA_SLOT_LEN];
	uint32_t cut = XC_BLOCK_CUT(j->flags), add = XC_BLOCK_ADD(j->flags);

	open.flags = close.flags = 0;
	open.tx_key = close.rx_key = 0;
	open.out_off = close.in_off = close.out_off = 0;
	assert_int_equal(srtp_ref_job(&open, a->key, a->in, plain), XC_OK);
	memcpy(plain + j->hdr_len + j->body_len - cut, block, add);
	close.body_len += add - cut;
	assert_int_equal(srtp_ref_job(&close, a->key, plain, want), XC_OK);
}

/* Makes a job with a block in slot i. Returns the bytes that it sends. */
static uint32_t make_block_job(struct engine_fixture *f, uint32_t i, uint8_t *block, uint8_t *want)
{
	static const uint8_t lens[] = {16, 0, 4, 64, 32, 8};
	struct xc_job *j = &f->a.job[i];
	uint32_t cut = lens[i % 6], add = lens[i / 2 % 6];
	struct sample s = {.rx_key = 2,
		.tx_key = 4,
		.hdr_len = i % 5 ? 12 : 20,
		.body_len = i % 3 ? 176 : 64 + 7 * i,
		.rx_index = 65530 + i,
		.tx_index = 3,
		.seed = i};

	sample_make(j, &f->a, i, &s);
	j->flags = XC_BLOCKS(cut, add);
	j->tx_tag_off += add - cut;
	for (uint32_t k = 0; k < XC_BLOCK_MAX; k++)
		block[k] = (uint8_t)(i + 3 * k);
	memcpy(f->a.out + j->out_off - XC_BLOCK_MAX, block, XC_BLOCK_MAX);
	expect_block(&f->a, j, block, want);
	f->a.status[i] = XC_NOT_DONE;
	return j->tx_tag_off + f->a.key[4].tag_len;
}

static void serial_replaces_blocks(void **state)
{
	enum { BLOCKS_N = 37 };
	struct engine_fixture *f = *state;
	static uint8_t want[BLOCKS_N][ARENA_SLOT_LEN], block[BLOCKS_N][XC_BLOCK_MAX];
	uint32_t len[BLOCKS_N];
	struct srtp_master m;

	for (int pair = 0; pair < SUITE_COUNT * SUITE_COUNT; pair++) {
		struct batch b = {.job = f->a.job, .status = f->a.status, .n = BLOCKS_N};

		sample_master(&m, (enum srtp_suite_id)(pair % SUITE_COUNT), 1);
		assert_int_equal(srtp_key_fill(&f->a.key[2], &m), 0);
		sample_master(&m, (enum srtp_suite_id)(pair / SUITE_COUNT), 2);
		assert_int_equal(srtp_key_fill(&f->a.key[4], &m), 0);
		assert_int_equal(f->ops->key_changed(f->q, 2), 0);
		assert_int_equal(f->ops->key_changed(f->q, 4), 0);
		for (uint32_t i = 0; i < b.n; i++)
			len[i] = make_block_job(f, i, block[i], want[i]);
		assert_int_equal(f->ops->run(f->q, &b), 0);
		for (uint32_t i = 0; i < b.n; i++) {
			const uint8_t *got = f->a.out + b.job[i].out_off;

			assert_int_equal(b.status[i], XC_OK);
			assert_memory_equal(got, want[i], len[i]);
			/* The block stays: a failed packet may be tried again. */
			assert_memory_equal(got - XC_BLOCK_MAX, block[i], XC_BLOCK_MAX);
			assert_int_equal(
				srtp_ref_job(&b.job[i], f->a.key, f->a.in, f->a.out), XC_OK);
			assert_memory_equal(got, want[i], len[i]);
		}
		/* Forged packets are detected, and impossible blocks are refused. */
		for (uint32_t i = 0; i < b.n; i++)
			f->a.in[b.job[i].in_off + 15] ^= 1;
		b.job[0].flags = XC_BLOCKS(0, XC_BLOCK_MAX + 1);
		b.job[1].body_len = XC_BLOCK_CUT(b.job[1].flags = XC_BLOCKS(64, 0)) - 1;
		assert_int_equal(f->ops->run(f->q, &b), 0);
		for (uint32_t i = 0; i < b.n; i++)
			if (f->a.key[2].auth || i < 2)
				assert_int_equal(b.status[i], XC_BAD_TAG);
	}
}

/* --- The self-test ---------------------------------------------------------------------------- */

static void an_engine_that_fails_or_lies_does_not_pass_its_selftest(void **state)
{
	struct engine *e;
	char err[256];

	(void)state;
	for (int mode = MOCK_RIGHT; mode <= MOCK_IDLE; mode++) {
		assert_int_equal(
			engine_mock.open(&e, &(struct engine_config){0}, err, sizeof(err)), 0);
		mock_control(e)->mode = (enum mock_mode)mode;
		if (mode == MOCK_RIGHT) {
			assert_int_equal(batch_selftest(&engine_mock, e, err, sizeof(err)), 0);
			assert_string_equal(err, "");
		} else {
			assert_int_equal(batch_selftest(&engine_mock, e, err, sizeof(err)), -EIO);
			assert_non_null(strstr(err, "self-test"));
		}
		engine_mock.close(e);
	}
}

static void the_selftest_leaves_out_what_an_engine_cannot(void **state)
{
	struct engine *e;
	char err[256];

	(void)state;
	assert_int_equal(engine_mock.open(&e, &(struct engine_config){0}, err, sizeof(err)), 0);
	mock_control(e)->no_gcm = true;
	assert_int_equal(batch_selftest(&engine_mock, e, err, sizeof(err)), 0);
	mock_control(e)->no_queue = true;
	assert_int_equal(batch_selftest(&engine_mock, e, err, sizeof(err)), -EIO);
	engine_mock.close(e);
}

/* --- The runner ------------------------------------------------------------------------------- */

enum { DEVICES = 3 };

struct runner {
	uint32_t batch_max; /* 0: the number of slots */
	struct engine *serial;
	struct batch_device device[DEVICES];
	uint32_t devices;
	struct batch_runner *r;
	struct mock_control *mock; /* of the first device */
	struct arena *a;
};

enum { RUNNER_N = 24 };

static void runner_make(struct runner *t)
{
	struct batch_runner_config cfg = {.device = t->device,
		.devices = t->devices,
		.serial = t->serial,
		.slots = 64,
		.batch_max = t->batch_max,
		.key_slots = 64};

	assert_int_equal(batch_runner_create(&t->r, &cfg), 0);
	t->a = batch_runner_arena(t->r);
}

/* There is one device per weight. */
static void runner_open_devices(struct runner *t, uint32_t min, const uint32_t *weight, uint32_t n)
{
	static const enum srtp_suite_id suites[] = {
		SUITE_AES_CM_128_80, SUITE_AEAD_AES_128_GCM, SUITE_F8_128_32};
	struct engine_config none = {.device = ""};
	char err[128];

	memset(t, 0, sizeof(*t));
	assert_int_equal(engine_serial.open(&t->serial, &none, err, sizeof(err)), 0);
	for (; t->devices < n; t->devices++) {
		struct batch_device *d = &t->device[t->devices];

		*d = (struct batch_device){
			.ops = &engine_mock, .weight = weight[t->devices], .fixed_min = min};
		assert_int_equal(engine_mock.open(&d->engine, &none, err, sizeof(err)), 0);
	}
	t->mock = mock_control(t->device[0].engine);
	runner_make(t);
	for (uint32_t i = 0; i < ARRAY_LEN(suites); i++) {
		struct srtp_master m;

		sample_master(&m, suites[i], i);
		assert_int_equal(srtp_key_fill(&t->a->key[2 + 2 * i], &m), 0);
		assert_int_equal(batch_runner_key_changed(t->r, 2 + 2 * i), 0);
	}
}

static void runner_open(struct runner *t, uint32_t device_min)
{
	runner_open_devices(t, device_min, &(uint32_t){1}, 1);
}

/* The runner checks what an engine can do when a key changes. */
static void keys_again(struct runner *t)
{
	for (uint32_t slot = 2; slot < 8; slot += 2)
		assert_int_equal(batch_runner_key_changed(t->r, slot), 0);
}

static void runner_close(struct runner *t)
{
	batch_runner_destroy(t->r);
	engine_serial.close(t->serial);
	for (uint32_t i = 0; i < t->devices; i++)
		engine_mock.close(t->device[i].engine);
}

/* Packets of three suites in turn, every fifth forged. */
static void runner_batch(struct runner *t, uint32_t n)
{
	struct batch b = {.job = t->a->job, .status = t->a->status, .n = n};
	struct xc_job before[RUNNER_N];

	for (uint32_t i = 0; i < n; i++) {
		struct sample s = {.rx_key = 2 + 2 * (i % 3),
			.tx_key = 2 + 2 * (i / 3 % 3),
			.hdr_len = 12,
			.body_len = i,
			.rx_index = i,
			.tx_index = 7,
			.seed = i};

		sample_make(&b.job[i], t->a, i, &s);
		if (i % 5 == 4)
			t->a->in[b.job[i].in_off + 3] ^= 0x80;
		b.status[i] = XC_NOT_DONE;
	}
	memcpy(before, b.job, n * sizeof(*before));
	memset(t->a->out, 0, (size_t)n * ARENA_SLOT_LEN);
	batch_run(t->r, &b);
	assert_memory_equal(b.job, before, n * sizeof(*before));
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(b.status[i], i % 5 == 4 ? XC_BAD_TAG : XC_OK);
		if (b.status[i] == XC_OK) /* the header was copied to its own place */
			assert_memory_equal(
				t->a->out + b.job[i].out_off, t->a->in + b.job[i].in_off, 12);
	}
}

static void small_batches_are_serial_large_ones_dispatched(void **state)
{
	static const struct {
		uint32_t n, runs;
	} T[] = {{1, 0}, {7, 0}, {8, 1}, {24, 1}};
	struct runner t;

	(void)state;
	runner_open(&t, 8);
	assert_int_equal(t.device[0].min[BATCH_MIXED], 8);
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		uint64_t before = t.mock->runs;

		runner_batch(&t, T[i].n);
		assert_int_equal(t.mock->runs - before, T[i].runs);
	}
	assert_int_equal(batch_runner_counters(t.r)->batches, 4);
	assert_int_equal(batch_runner_counters(t.r)->jobs, 40);
	assert_int_equal(batch_runner_counters(t.r)->device_batches, 2);
	assert_int_equal(batch_runner_counters(t.r)->device_jobs, 32);
	assert_int_equal(batch_runner_counters(t.r)->device_errors, 0);
	assert_true(batch_runner_counters(t.r)->engine_ns > 0);
	runner_close(&t);
}

static void what_the_device_cannot_do_is_done_serially(void **state)
{
	struct runner t;

	(void)state;
	runner_open(&t, 2);
	t.mock->no_gcm = true;
	keys_again(&t);
	for (uint32_t n = 1; n <= RUNNER_N; n++)
		runner_batch(&t, n);
	/* Nine packets in a row have four without GCM on either side; the last six have two. */
	assert_int_equal(t.mock->last_n, 10);
	assert_true(batch_runner_counters(t.r)->device_jobs < batch_runner_counters(t.r)->jobs);
	runner_close(&t);
}

/* A device never gets a job with a block: it would send the received one. */
static void jobs_with_blocks_are_done_serially(void **state)
{
	struct runner t;
	struct batch b;

	(void)state;
	runner_open(&t, 2);
	b = (struct batch){.job = t.a->job, .status = t.a->status, .n = RUNNER_N, .blocks = true};
	for (uint32_t i = 0; i < b.n; i++) {
		struct sample s = {.rx_key = 2, .hdr_len = 12, .body_len = 40, .rx_index = i};

		sample_make(&b.job[i], t.a, i, &s);
		if (i % 4)
			continue;
		b.job[i].flags = XC_BLOCKS(16, 16);
		memset(t.a->out + b.job[i].out_off - XC_BLOCK_MAX, 0x55, XC_BLOCK_MAX);
	}
	batch_run(t.r, &b);
	assert_int_equal(t.mock->last_n, b.n - b.n / 4);
	for (uint32_t i = 0; i < b.n; i++) {
		assert_int_equal(b.status[i], XC_OK);
		assert_int_equal(t.a->out[b.job[i].out_off + 12 + 39] == 0x55, i % 4 == 0);
	}
	runner_close(&t);
}

/* A batch whose keys are all alike is not checked job by job. The runner therefore counts the other
 * keys at any time. */
static void keys_that_are_odd_count_from_their_coming_to_their_going(void **state)
{
	enum { CM = 2, GCM = 4, F8 = 6 };
	static const struct {
		uint32_t wiped, set; /* slots, 0 = none */
		enum srtp_suite_id suite;
		uint32_t key, sent; /* key of all jobs; how many of them go to the device */
		uint32_t status;
	} T[] = {
		{0, 0, SUITE_PLAIN, GCM, 0, XC_OK}, /* it cannot */
		{0, 0, SUITE_PLAIN, F8, 0, XC_OK},  /* not worth it */
		{GCM, 0, SUITE_PLAIN, F8, 0, XC_OK},
		{GCM, 0, SUITE_PLAIN, CM, RUNNER_N, XC_OK}, /* wiped twice */
		{F8, 0, SUITE_PLAIN, CM, RUNNER_N, XC_OK},
		{0, 0, SUITE_PLAIN, F8, RUNNER_N,
			XC_BAD_TAG}, /* no such key is left: any engine refuses */
		{0, GCM, SUITE_AEAD_AES_128_GCM, CM, RUNNER_N, XC_OK},
		{0, 0, SUITE_PLAIN, GCM, 0, XC_OK},
		{0, GCM, SUITE_AES_CM_128_32, GCM, RUNNER_N,
			XC_OK}, /* the slot has another key now */
		{0, F8, SUITE_F8_128_32, F8, 0, XC_OK},
	};
	struct runner t;

	(void)state;
	runner_open(&t, 2);
	t.mock->no_gcm = true;
	t.device[0].min[BATCH_F8] = BATCH_NEVER;
	keys_again(&t);
	for (size_t k = 0; k < ARRAY_LEN(T); k++) {
		struct batch b = {.job = t.a->job, .status = t.a->status, .n = RUNNER_N};
		uint64_t before = batch_runner_counters(t.r)->device_jobs;
		struct srtp_master m;

		if (T[k].wiped)
			batch_runner_key_wipe(t.r, T[k].wiped);
		if (T[k].set) {
			sample_master(&m, T[k].suite, k);
			assert_int_equal(srtp_key_fill(&t.a->key[T[k].set], &m), 0);
			assert_int_equal(batch_runner_key_changed(t.r, T[k].set), 0);
		}
		for (uint32_t i = 0; i < b.n; i++) {
			struct sample s = {.rx_key = T[k].key,
				.tx_key = T[k].key,
				.hdr_len = 12,
				.body_len = 20,
				.rx_index = i,
				.tx_index = i};

			sample_make(&b.job[i], t.a, i, &s);
		}
		batch_run(t.r, &b);
		assert_int_equal(batch_runner_counters(t.r)->device_jobs - before, T[k].sent);
		for (uint32_t i = 0; i < b.n; i++)
			assert_int_equal(b.status[i], T[k].status);
	}
	runner_close(&t);
}

static void a_failing_device_costs_no_packet_and_is_left_alone_in_the_end(void **state)
{
	static const enum mock_mode modes[] = {MOCK_FAIL, MOCK_UNDONE};

	(void)state;
	for (size_t m = 0; m < ARRAY_LEN(modes) * 2; m++) {
		struct runner t;

		runner_open(&t, 1);
		t.mock->mode = modes[m / 2];
		t.mock->no_gcm = m & 1; /* split batches are counted, too */
		keys_again(&t);
		for (int i = 0; i < 6; i++)
			runner_batch(&t, RUNNER_N);
		assert_int_equal(batch_runner_counters(t.r)->device_errors, 3);
		assert_int_equal(batch_runner_counters(t.r)->device_batches, 0);
		assert_int_equal(t.mock->runs, 3);
		runner_close(&t);
	}
}

static void a_success_forgives_earlier_failures(void **state)
{
	struct runner t;

	(void)state;
	runner_open(&t, 1);
	for (int i = 0; i < 12; i++) {
		t.mock->mode = i % 3 == 2 ? MOCK_RIGHT : MOCK_FAIL;
		runner_batch(&t, 5);
	}
	assert_int_equal(t.mock->runs, 12);
	assert_int_equal(batch_runner_counters(t.r)->device_errors, 8);
	assert_int_equal(batch_runner_counters(t.r)->device_batches, 4);
	runner_close(&t);
}

/* The mock is the reference and slower than libcrypto at every size. */
static void calibration_finds_a_slow_device_not_worth_it_and_leaves_no_keys(void **state)
{
	struct runner t;

	(void)state;
	runner_open(&t, 0);
	for (int kind = 0; kind < BATCH_CLASSES; kind++) {
		assert_int_equal(t.device[0].min[kind], BATCH_NEVER);
		assert_true(t.device[0].cost[kind][0].device_ns > 0);
		assert_true(t.device[0].cost[kind][6].serial_ns > 0);
	}
	batch_runner_destroy(t.r);
	t.device[0].measured = false;
	runner_make(&t);
	for (size_t i = 2 * sizeof(struct xc_key); i < 64 * sizeof(struct xc_key); i++)
		assert_int_equal(((const uint8_t *)t.a->key)[i], 0);
	for (size_t i = 0; i < (size_t)64 * ARENA_SLOT_LEN; i++)
		assert_int_equal(t.a->in[i] | t.a->out[i], 0);
	runner_close(&t);
}

static void calibration_finds_a_fast_device_worth_it_from_the_first_packet(void **state)
{
	struct runner t;

	(void)state;
	runner_open(&t, 1);
	t.device[0].fixed_min = 0;
	for (int fails = 0; fails < 2; fails++) {
		batch_runner_destroy(t.r);
		/* A fast device that fails is not used. */
		t.mock->mode = fails ? MOCK_FAIL : MOCK_IDLE;
		t.device[0].measured = false;
		runner_make(&t);
		for (int kind = 0; kind < BATCH_CLASSES; kind++)
			assert_int_equal(t.device[0].min[kind], fails ? BATCH_NEVER : 1);
	}
	runner_close(&t);
}

/* The arena has room for several batches in flight. A queue takes only one batch at a time, which
 * is no failure of the device. */
static void calibration_asks_for_no_larger_batch_than_there_will_be(void **state)
{
	struct runner t;

	(void)state;
	runner_open(&t, 1);
	batch_runner_destroy(t.r);
	t.device[0].fixed_min = 0;
	t.device[0].measured = false;
	t.mock->mode = MOCK_IDLE;
	t.batch_max = 16;
	runner_make(&t);
	for (int kind = 0; kind < BATCH_CLASSES; kind++) {
		assert_int_equal(t.device[0].min[kind], 1);
		assert_int_equal(t.device[0].cost[kind][5].serial_ns, 0);
	}
	runner_close(&t);
}

static void calibration_looks_at_each_class_by_itself(void **state)
{
	struct runner t;

	(void)state;
	runner_open(&t, 1);
	batch_runner_destroy(t.r);
	t.device[0].fixed_min = 0;
	t.device[0].measured = false;
	t.mock->mode = MOCK_IDLE;
	t.mock->no_gcm = true;
	runner_make(&t);
	assert_int_equal(t.device[0].min[BATCH_CM], 1);
	assert_int_equal(t.device[0].min[BATCH_GCM], BATCH_NEVER);
	assert_int_equal(t.device[0].min[BATCH_F8], 1);
	assert_int_equal(t.device[0].min[BATCH_MIXED], 1);
	/* The next runner reuses the first runner's measurement. */
	t.mock->runs = 0;
	batch_runner_destroy(t.r);
	runner_make(&t);
	assert_int_equal(t.mock->runs, 0);
	runner_close(&t);
}

/* --- Several devices -------------------------------------------------------------------------- */

static uint64_t runs(const struct runner *t, uint32_t device)
{
	return mock_control(t->device[device].engine)->runs;
}

static void batches_go_to_the_devices_by_weight(void **state)
{
	static const uint32_t weight[DEVICES] = {3, 1, 2};
	struct runner t;

	(void)state;
	runner_open_devices(&t, 1, weight, DEVICES);
	for (int i = 1; i <= 60; i++) {
		runner_batch(&t, 6);
		/* The shares are smooth: after any number of batches, a device is at most one
		 * ahead. */
		for (uint32_t d = 0; d < DEVICES; d++) {
			assert_true(runs(&t, d) * 6 + 6 > (uint32_t)i * weight[d]);
			assert_true(runs(&t, d) * 6 < (uint32_t)i * weight[d] + 6);
		}
	}
	for (uint32_t d = 0; d < DEVICES; d++) {
		assert_int_equal(runs(&t, d), 10 * weight[d]);
		assert_int_equal(batch_runner_device_counters(t.r, d)->batches, 10 * weight[d]);
		assert_int_equal(batch_runner_device_counters(t.r, d)->jobs, 60 * weight[d]);
	}
	runner_close(&t);
}

static void a_batch_goes_only_where_it_is_worth_it(void **state)
{
	static const uint32_t weight[DEVICES] = {1, 1, 1};
	struct runner t;

	(void)state;
	runner_open_devices(&t, 1, weight, DEVICES);
	t.device[0].min[BATCH_MIXED] = 8;
	t.device[1].min[BATCH_MIXED] = BATCH_NEVER;
	t.device[2].min[BATCH_MIXED] = 16;
	for (int i = 0; i < 4; i++) {
		runner_batch(&t, 7);
		assert_int_equal(runs(&t, 0) + runs(&t, 1) + runs(&t, 2), (uint64_t)i * 3);
		runner_batch(&t, 15);
		assert_int_equal(runs(&t, 0) + runs(&t, 2), (uint64_t)i * 3 + 1);
		runner_batch(&t, 16);
		runner_batch(&t, 24);
		assert_int_equal(runs(&t, 0) + runs(&t, 2), (uint64_t)i * 3 + 3);
	}
	assert_int_equal(runs(&t, 1), 0);
	assert_int_equal(runs(&t, 0), 8);
	assert_int_equal(runs(&t, 2), 4);
	runner_close(&t);
}

static void a_lost_devices_weight_goes_to_the_others_and_no_packet_is_lost(void **state)
{
	static const uint32_t weight[DEVICES] = {2, 1, 1};
	static const enum mock_mode modes[] = {MOCK_FAIL, MOCK_UNDONE, MOCK_HANG};

	(void)state;
	for (size_t m = 0; m < ARRAY_LEN(modes); m++) {
		uint32_t tries = modes[m] == MOCK_HANG ? 1 : 3;
		struct runner t;

		runner_open_devices(&t, 1, weight, DEVICES);
		t.mock->mode = modes[m];
		t.mock->fail_after = 5;
		for (int i = 0; i < 40; i++) {
			t.mock->no_gcm = i & 1; /* split batches are counted, too */
			keys_again(&t);
			runner_batch(&t, RUNNER_N);
		}
		assert_true(t.device[0].lost);
		assert_false(t.device[1].lost);
		assert_int_equal(runs(&t, 0), 5 + tries);
		assert_int_equal(runs(&t, 0) + runs(&t, 1) + runs(&t, 2), 40);
		assert_true(runs(&t, 1) - runs(&t, 2) + 1 <= 2);
		assert_int_equal(batch_runner_device_counters(t.r, 0)->errors, tries);
		/* The devices fail one after the other, until none is left. */
		for (uint32_t d = 1; d < DEVICES; d++) {
			mock_control(t.device[d].engine)->mode = modes[m];
			for (int i = 0; i < 12; i++)
				runner_batch(&t, RUNNER_N);
			assert_true(t.device[d].lost);
		}
		{
			uint64_t before = batch_runner_counters(t.r)->device_batches;

			runner_batch(&t, RUNNER_N);
			assert_int_equal(batch_runner_counters(t.r)->device_batches, before);
		}
		runner_close(&t);
	}
}

static void a_device_that_one_worker_lost_is_used_by_no_other(void **state)
{
	struct runner t;

	(void)state;
	runner_open(&t, 1);
	t.device[0].lost = true;
	for (int i = 0; i < 4; i++)
		runner_batch(&t, RUNNER_N);
	assert_int_equal(t.mock->runs, 0);
	assert_int_equal(batch_runner_counters(t.r)->jobs, 4 * RUNNER_N);
	runner_close(&t);
}

static void serial_only_and_no_memory_are_handled(void **state)
{
	struct batch_runner_config cfg = {.slots = 8, .key_slots = 8};
	struct batch_runner *r;
	struct engine *e;
	char err[128];

	(void)state;
	assert_int_equal(engine_serial.open(&e, &(struct engine_config){0}, err, sizeof(err)), 0);
	cfg.serial = e;
	assert_int_equal(batch_runner_create(&r, &cfg), 0);
	batch_runner_key_wipe(r, 2);
	batch_runner_key_wipe(r, 7); /* no pair: ignored */
	batch_runner_destroy(r);
	cfg.slots = UINT32_MAX;
	assert_int_equal(batch_runner_create(&r, &cfg), -ENOMEM);
	batch_runner_destroy(NULL);
	engine_serial.close(e);
}

static void a_wiped_key_is_gone_everywhere(void **state)
{
	static const struct xc_key none[2];
	struct runner t;
	uint64_t before;

	(void)state;
	runner_open(&t, 1);
	before = t.mock->keys_changed;
	batch_runner_key_wipe(t.r, 2);
	assert_memory_equal(&t.a->key[2], none, sizeof(none));
	assert_int_equal(t.mock->keys_changed, before + 1);
	runner_close(&t);
}

/* Of a packet that is probably forged nothing is deciphered or encrypted before it is authentic. */
static void serial_authenticates_doubted_packets_first(void **state)
{
	enum { N = 45 };
	struct engine_fixture *f = *state;
	struct batch b = {.job = f->a.job, .status = f->a.status, .n = N};
	struct srtp_master m;

	sample_master(&m, SUITE_AES_CM_128_80, 5);
	assert_int_equal(srtp_key_fill(&f->a.key[2], &m), 0);
	assert_int_equal(f->ops->key_changed(f->q, 2), 0);
	for (uint32_t i = 0; i < N; i++) {
		struct sample s = {.rx_key = 2,
			.tx_key = 2,
			.hdr_len = 12,
			.body_len = 160,
			.flags = XC_JOB_DOUBT,
			.rx_index = i,
			.tx_index = i,
			.seed = i};

		sample_make(&b.job[i], &f->a, i, &s);
		if (i % 3)
			f->a.in[b.job[i].in_off + 20] ^= 1;
		b.status[i] = XC_NOT_DONE;
	}
	memset(f->a.out, 0x5c, (size_t)N * ARENA_SLOT_LEN);
	assert_int_equal(f->ops->run(f->q, &b), 0);
	for (uint32_t i = 0; i < N; i++) {
		assert_int_equal(b.status[i], i % 3 ? XC_BAD_TAG : XC_OK);
		for (uint32_t k = 0; i % 3 && k < ARENA_SLOT_LEN; k++)
			assert_int_equal(f->a.out[i * ARENA_SLOT_LEN + k], 0x5c);
	}
}

int main(void)
{
	const struct CMUnitTest serial[] = {ENGINE_CASES,
		cmocka_unit_test(serial_refuses_jobs_that_point_elsewhere),
		cmocka_unit_test(serial_encrypts_in_place),
		cmocka_unit_test(serial_hashes_whole_blocks),
		cmocka_unit_test(serial_replaces_blocks),
		cmocka_unit_test(serial_authenticates_doubted_packets_first)};
	const struct CMUnitTest reference[] = {ENGINE_CASES};
	const struct CMUnitTest runner[] = {
		cmocka_unit_test(an_engine_that_fails_or_lies_does_not_pass_its_selftest),
		cmocka_unit_test(the_selftest_leaves_out_what_an_engine_cannot),
		cmocka_unit_test(small_batches_are_serial_large_ones_dispatched),
		cmocka_unit_test(what_the_device_cannot_do_is_done_serially),
		cmocka_unit_test(jobs_with_blocks_are_done_serially),
		cmocka_unit_test(keys_that_are_odd_count_from_their_coming_to_their_going),
		cmocka_unit_test(a_failing_device_costs_no_packet_and_is_left_alone_in_the_end),
		cmocka_unit_test(a_success_forgives_earlier_failures),
		cmocka_unit_test(calibration_finds_a_slow_device_not_worth_it_and_leaves_no_keys),
		cmocka_unit_test(calibration_finds_a_fast_device_worth_it_from_the_first_packet),
		cmocka_unit_test(calibration_asks_for_no_larger_batch_than_there_will_be),
		cmocka_unit_test(calibration_looks_at_each_class_by_itself),
		cmocka_unit_test(batches_go_to_the_devices_by_weight),
		cmocka_unit_test(a_batch_goes_only_where_it_is_worth_it),
		cmocka_unit_test(a_lost_devices_weight_goes_to_the_others_and_no_packet_is_lost),
		cmocka_unit_test(a_device_that_one_worker_lost_is_used_by_no_other),
		cmocka_unit_test(serial_only_and_no_memory_are_handled),
		cmocka_unit_test(a_wiped_key_is_gone_everywhere),
	};

	static const CMFixtureFunction way[SHA1_WAYS] = {way0_setup, way1_setup, way2_setup};
	int failed = 0;

	log_open("test_engine", LOG_EMERG, 1);
	for (uint32_t i = 0; i < SHA1_WAYS; i++)
		if (sha1_way(i))
			failed += cmocka_run_group_tests_name(
				sha1_way(i)->name, serial, way[i], engine_teardown);
	failed += cmocka_run_group_tests(serial, libcrypto_setup, engine_teardown);
	return failed + cmocka_run_group_tests(serial, serial_setup, engine_teardown) +
		cmocka_run_group_tests(reference, mock_setup, engine_teardown) +
		cmocka_run_group_tests(runner, NULL, NULL);
}
