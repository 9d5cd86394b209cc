/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Several batches in flight under random loads. Each finishes once, in order and with the serial
 * engine's results, whatever the devices do. Tested with the mock, which works as late as it may,
 * and with OpenCL as on a device with its own memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "batch/engine.h"
#include "engine_mock.h"
#include "batch/run.h"
#include "batch/sample.h"
#include "packet/arena.h"

enum { LANE = 48, DEPTH_MAX = 4, SLOTS = LANE * DEPTH_MAX, KEY_SLOTS = 64, DEVICES = 2, PAIRS = 6 };

/* PoCL frees some memory only when the process ends (for LeakSanitizer). */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libpocl\nleak:libLLVM\nleak:libclang\nleak:libOpenCL\n";
}

struct rig {
	struct engine *serial;
	struct batch_device device[DEVICES];
	uint32_t devices, depth;
	struct batch_runner *r;
	struct arena *a;
	/* The serial engine's results for the same packets. */
	struct arena shadow;
	struct engine_queue *alone;
	struct xc_job before[SLOTS];
	uint64_t random, submitted, jobs;
	/* Batches in flight, the oldest first. */
	struct batch b[DEPTH_MAX];
	uint32_t first, flying;
};

static void rig_keys(struct rig *t)
{
	static const enum srtp_suite_id suites[PAIRS] = {SUITE_AES_CM_128_80, SUITE_AES_CM_128_32,
		SUITE_AEAD_AES_128_GCM, SUITE_F8_128_80, SUITE_AES_256_CM_80, SUITE_NULL_80};

	for (uint32_t i = 0; i < PAIRS; i++) {
		struct srtp_master m;

		sample_master(&m, suites[i], i);
		assert_int_equal(srtp_key_fill(&t->a->key[2 + 2 * i], &m), 0);
		assert_int_equal(batch_runner_key_changed(t->r, 2 + 2 * i), 0);
		assert_int_equal(engine_serial.key_changed(t->alone, 2 + 2 * i), 0);
	}
}

static void rig_start(struct rig *t)
{
	struct batch_runner_config cfg = {.device = t->device,
		.devices = t->devices,
		.serial = t->serial,
		.slots = SLOTS,
		.key_slots = KEY_SLOTS,
		.batch_max = LANE,
		.depth = t->depth};

	assert_int_equal(batch_runner_create(&t->r, &cfg), 0);
	t->a = batch_runner_arena(t->r);
	t->shadow = *t->a;
	t->shadow.out = calloc(SLOTS, ARENA_SLOT_LEN);
	t->shadow.status = calloc(SLOTS, sizeof(*t->shadow.status));
	assert_true(t->shadow.out && t->shadow.status);
	assert_int_equal(engine_serial.queue_create(&t->alone, t->serial, &t->shadow), 0);
	rig_keys(t);
}

static struct rig *rig_open(const struct engine_ops *ops, const char *name, uint32_t flags,
	uint32_t devices, uint32_t depth, uint64_t seed)
{
	struct engine_config cfg = {
		.device = name, .flags = flags, .depth = depth, .timeout_ms = 600000};
	struct rig *t = calloc(1, sizeof(*t));
	char err[256] = "";

	assert_non_null(t);
	t->random = seed;
	t->depth = depth;
	assert_int_equal(engine_serial.open(&t->serial, &(struct engine_config){.device = ""}, err,
				 sizeof(err)),
		0);
	for (; t->devices < devices; t->devices++) {
		struct batch_device *d = &t->device[t->devices];

		*d = (struct batch_device){.ops = ops, .weight = 1 + t->devices, .fixed_min = 3};
		if (ops->open(&d->engine, &cfg, err, sizeof(err)))
			fail_msg("%s", err);
		if (ops == &engine_mock)
			mock_control(d->engine)->depth = depth;
	}
	rig_start(t);
	return t;
}

static void rig_close(struct rig *t)
{
	engine_serial.queue_destroy(t->alone);
	batch_runner_destroy(t->r);
	for (uint32_t i = 0; i < t->devices; i++)
		t->device[i].ops->close(t->device[i].engine);
	engine_serial.close(t->serial);
	free(t->shadow.out);
	free(t->shadow.status);
	free(t);
}

static uint32_t below(struct rig *t, uint32_t n)
{
	return (uint32_t)(sample_random(&t->random) % n);
}

/* Places the next batch: any suites and lengths, sometimes one forged packet or one malformed
 * job. */
static struct batch batch_make(struct rig *t)
{
	uint32_t at = (uint32_t)(t->submitted % t->depth) * LANE;
	struct batch b = {.job = t->a->job + at,
		.status = t->a->status + at,
		.n = below(t, 6) ? below(t, LANE + 1) : below(t, 4)};

	for (uint32_t i = 0; i < b.n; i++) {
		bool rtcp = below(t, 5) == 0;
		struct sample s = {.rx_key = 2 * below(t, PAIRS + 1) + rtcp,
			.tx_key = 2 * below(t, PAIRS + 1) + rtcp,
			.hdr_len = rtcp ? 8 : 12,
			.body_len = below(t, 4) ? 160 : below(t, 1200),
			.flags = rtcp ? XC_JOB_RTCP : 0,
			.rx_index = below(t, 1 << 20),
			.tx_index = below(t, 1 << 20),
			.seed = sample_random(&t->random)};

		sample_make(&b.job[i], t->a, at + i, &s);
		if (below(t, 9) == 0)
			t->a->in[b.job[i].in_off + 1] ^= 4;
		if (below(t, 40) == 0 && t->device[0].ops != &engine_mock)
			b.job[i].body_len = ARENA_SLOT_LEN;
	}
	memcpy(t->before + at, b.job, b.n * sizeof(*b.job));
	memset(t->a->out + (size_t)at * ARENA_SLOT_LEN, 0xee, (size_t)LANE * ARENA_SLOT_LEN);
	return b;
}

static void submit(struct rig *t)
{
	struct batch b = batch_make(t);

	batch_submit(t->r, &b);
	t->b[(t->first + t->flying++) % t->depth] = b;
	t->submitted++;
	t->jobs += b.n;
	assert_int_equal(batch_flying(t->r), t->flying);
}

/* Finishes the oldest batch, then overwrites its place, which must not be read any more. */
static void finish(struct rig *t)
{
	struct batch b = t->b[t->first], alone;
	uint32_t at = (uint32_t)(b.job - t->a->job);

	batch_finish(t->r);
	assert_memory_equal(b.job, t->before + at, b.n * sizeof(*b.job));
	alone = (struct batch){.job = b.job, .status = t->shadow.status + at, .n = b.n};
	assert_int_equal(engine_serial.run(t->alone, &alone), 0);
	for (uint32_t i = 0; i < b.n; i++) {
		assert_int_equal(b.status[i], alone.status[i]);
		assert_true(b.status[i] == XC_BAD_TAG ||
			sample_equal(&b.job[i], t->a, t->a->out, t->shadow.out));
	}
	memset(b.job, 0xff, LANE * sizeof(*b.job));
	memset(b.status, 0xff, LANE * sizeof(*b.status));
	memset(t->a->in + (size_t)at * ARENA_SLOT_LEN, 0xdd, (size_t)LANE * ARENA_SLOT_LEN);
	t->first = (t->first + 1) % t->depth;
	t->flying--;
	assert_int_equal(batch_flying(t->r), t->flying);
}

/* One random step of a worker among all that are allowed. */
static void step(struct rig *t)
{
	uint32_t what = below(t, 8);

	if (t->flying < t->depth && (what < 4 || t->flying == 0))
		submit(t);
	else if (what == 7) /* a key that no job uses */
		assert_int_equal(batch_runner_key_changed(t->r, 2 + 2 * PAIRS), 0);
	else if (what == 6 || batch_done(t->r, what == 5 ? clock_mono_ns() + 50000 : 0))
		finish(t);
}

static void all_is_told(struct rig *t)
{
	while (t->flying)
		finish(t);
	assert_int_equal(batch_runner_counters(t->r)->jobs, t->jobs);
}

static const uint32_t depths[] = {1, 2, 4};

static void random_loads_are_as_the_serial_engine_has_them(void **state)
{
	static const struct {
		const struct engine_ops *ops;
		const char *device;
		uint32_t flags;
	} T[] = {{&engine_mock, "", 0},
		{&engine_opencl, "0", ENGINE_SCALAR_LANES | ENGINE_OWN_MEMORY},
		{&engine_opencl, "1",
			ENGINE_SCALAR_LANES | ENGINE_OWN_MEMORY | ENGINE_SMALL_CHUNKS},
		{&engine_opencl, "0", ENGINE_SCALAR_LANES}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T) * ARRAY_LEN(depths); i++) {
		size_t e = i / ARRAY_LEN(depths);
		struct rig *t = rig_open(T[e].ops, T[e].device, T[e].flags,
			T[e].ops == &engine_mock ? DEVICES : 1, depths[i % ARRAY_LEN(depths)], i);

		if (T[e].ops == &engine_mock) {
			mock_control(t->device[0].engine)->looks = 2;
			mock_control(t->device[1].engine)->no_gcm = true; /* split batches */
			rig_keys(t);
		}
		for (int n = 0; n < 300; n++)
			step(t);
		all_is_told(t);
		assert_int_equal(batch_runner_counters(t->r)->device_errors, 0);
		assert_true(batch_runner_counters(t->r)->device_jobs > t->jobs / 2);
		if (T[e].ops == &engine_mock) /* otherwise the test proves nothing */
			assert_in_range(mock_control(t->device[1].engine)->flying_most,
				t->depth > 1 ? 2 : 0, t->depth > 1 ? t->depth : 0);
		rig_close(t);
	}
}

static void batches_in_flight_on_a_device_that_goes_are_finished_once_and_in_order(void **state)
{
	static const enum mock_mode modes[] = {MOCK_FAIL, MOCK_UNDONE, MOCK_HANG};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(modes) * ARRAY_LEN(depths); i++) {
		enum mock_mode mode = modes[i / ARRAY_LEN(depths)];
		struct rig *t = rig_open(
			&engine_mock, "", 0, DEVICES, depths[i % ARRAY_LEN(depths)], i + 99);

		for (uint32_t d = 0; d < DEVICES; d++) {
			struct mock_control *c = mock_control(t->device[d].engine);

			c->mode = mode;
			c->fail_after = 20 + 20 * d;
			c->no_gcm = d;
			c->looks = 1;
		}
		rig_keys(t);
		for (int n = 0; n < 400; n++)
			step(t);
		all_is_told(t);
		for (uint32_t d = 0; d < DEVICES; d++) {
			uint64_t errors = batch_runner_device_counters(t->r, d)->errors;

			assert_true(t->device[d].lost);
			/* The batches before the last one count, too. */
			assert_in_range(errors, mode == MOCK_HANG ? 1 : 3,
				(mode == MOCK_HANG ? 0 : 2) + t->depth);
		}
		rig_close(t);
	}
}

/* The worker does not poll for jobs of a slow device. */
static void looking_does_not_wait(void **state)
{
	struct rig *t = rig_open(&engine_mock, "", 0, 1, 2, 7);

	(void)state;
	mock_control(t->device[0].engine)->looks = 3;
	assert_true(batch_done(t->r, 0)); /* nothing in flight */
	do
		submit(t);
	while (t->b[t->first].n < 3 && (finish(t), true));
	for (int i = 0; i < 3; i++)
		assert_false(batch_done(t->r, 0));
	assert_true(batch_done(t->r, 0));
	assert_true(batch_done(t->r, 0)); /* and still */
	finish(t);
	batch_finish(t->r); /* no batch: no effect */
	rig_close(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_loads_are_as_the_serial_engine_has_them),
		cmocka_unit_test(
			batches_in_flight_on_a_device_that_goes_are_finished_once_and_in_order),
		cmocka_unit_test(looking_does_not_wait),
	};

	/* The second device has its own threads, so it works in parallel. */
	setenv("POCL_DEVICES", "basic pthread", 1);
	log_open("test_flight", LOG_EMERG, 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
