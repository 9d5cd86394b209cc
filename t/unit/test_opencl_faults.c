/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Two OpenCL devices (PoCL's basic, twice) behind one runner, of which one fails or hangs while
 * running. This program replaces some OpenCL functions. Media continues without loss, and a hung
 * device is not used again. */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "batch/engine.h"
#include "engine_cases.h"
#include "base/clock.h"
#include "base/log.h"
#include "batch/run.h"
#include "batch/sample.h"
#include "packet/arena.h"
#include "srtp/ref.h"

#include <CL/cl.h>

enum {
	DEVICES = 2,
	SLOTS = 128,
	KEY_SLOTS = 64,
	N = 100,
	TIMEOUT_MS = 200,
	PATIENCE_MS = 600000,
	DEPTH = 4,
	LANE = 30
};

/* PoCL's memory until the process ends, and memory left on purpose to a hung device. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libpocl\nleak:libLLVM\nleak:libclang\nleak:libOpenCL\nleak:opencl_copy_create\nleak:queue_build\n";
}

/* --- Faults ----------------------------------------------------------------------------------- */

static struct {
	cl_device_id device; /* NULL: no fault */
	uint32_t kernels;    /* number of calls that succeed first */
	bool hang;           /* else: fail */
	uint64_t dispatched; /* kernels sent to any device */
	uint64_t touched;    /* commands sent to a device that hangs */
	uint64_t polled;
	uint64_t blocked;               /* writes that wait until the device is done */
	uint64_t waited_for;            /* events before what is written */
	uint64_t key_tables, keys_left; /* released events, and released memory that was in use */
} fault;

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static bool faulty(cl_command_queue q)
{
	cl_device_id dev = NULL;

	clGetCommandQueueInfo(q, CL_QUEUE_DEVICE, sizeof(dev), &dev, NULL);
	return fault.device && dev == fault.device;
}

static bool hangs(cl_command_queue q)
{
	return fault.hang && fault.kernels == 0 && faulty(q);
}

cl_int clEnqueueNDRangeKernel(cl_command_queue q, cl_kernel k, cl_uint dim, const size_t *offset,
	const size_t *global, const size_t *local, cl_uint n, const cl_event *wait, cl_event *e)
{
	fault.dispatched++;
	if (faulty(q)) {
		if (fault.kernels == 0 && !fault.hang)
			return CL_OUT_OF_RESOURCES;
		fault.touched += fault.kernels == 0;
		fault.kernels -= fault.kernels > 0;
	}
	return REAL(clEnqueueNDRangeKernel)(q, k, dim, offset, global, local, n, wait, e);
}

cl_int clEnqueueWriteBuffer(cl_command_queue q, cl_mem m, cl_bool block, size_t at, size_t len,
	const void *p, cl_uint n, const cl_event *wait, cl_event *e)
{
	fault.touched += hangs(q);
	fault.blocked += hangs(q) && block;
	fault.waited_for += n;
	return REAL(clEnqueueWriteBuffer)(q, m, block, at, len, p, n, wait, e);
}

cl_int clGetEventInfo(cl_event e, cl_event_info what, size_t len, void *out, size_t *out_len)
{
	cl_command_queue q = NULL;
	cl_int err = REAL(clGetEventInfo)(e, what, len, out, out_len);

	if (what != CL_EVENT_COMMAND_EXECUTION_STATUS || err)
		return err;
	REAL(clGetEventInfo)(e, CL_EVENT_COMMAND_QUEUE, sizeof(q), &q, NULL);
	if (hangs(q)) {
		fault.polled++;
		*(cl_int *)out = CL_SUBMITTED;
	}
	return err;
}

/* Checks a key table that the engine releases. */
cl_int clReleaseMemObject(cl_mem m)
{
	static uint8_t bytes[KEY_SLOTS * sizeof(struct xc_key)];
	cl_context ctx;
	cl_device_id dev;
	cl_command_queue q;
	cl_mem_flags flags = 0;
	size_t len = 0;
	uint8_t any = 0;

	clGetMemObjectInfo(m, CL_MEM_SIZE, sizeof(len), &len, NULL);
	clGetMemObjectInfo(m, CL_MEM_FLAGS, sizeof(flags), &flags, NULL);
	if (len == sizeof(bytes) && flags == CL_MEM_READ_ONLY) {
		clGetMemObjectInfo(m, CL_MEM_CONTEXT, sizeof(ctx), &ctx, NULL);
		clGetContextInfo(ctx, CL_CONTEXT_DEVICES, sizeof(dev), &dev, NULL);
		q = clCreateCommandQueue(ctx, dev, 0, NULL);
		assert_int_equal(
			clEnqueueReadBuffer(q, m, CL_TRUE, 0, sizeof(bytes), bytes, 0, NULL, NULL),
			0);
		clReleaseCommandQueue(q);
		for (size_t i = 0; i < sizeof(bytes); i++)
			any |= bytes[i];
		fault.key_tables++;
		fault.keys_left += any != 0;
	}
	return REAL(clReleaseMemObject)(m);
}

/* --- A runner with two devices ---------------------------------------------------------------- */

struct rig {
	struct engine *serial;
	struct batch_device device[DEVICES];
	struct batch_runner *r;
	struct arena *a;
	uint8_t *want;
};

static cl_device_id device_of(uint32_t index)
{
	cl_platform_id platform;
	cl_device_id dev[DEVICES];

	assert_int_equal(clGetPlatformIDs(1, &platform, NULL), 0);
	assert_int_equal(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, DEVICES, dev, NULL), 0);
	return dev[index];
}

/* mute: device 1 will not answer. No other is late, however long this process stands still. */
static void rig_open_depth(struct rig *t, uint32_t flags, uint32_t depth, bool mute)
{
	struct batch_runner_config cfg = {.device = t->device,
		.devices = DEVICES,
		.slots = SLOTS,
		.key_slots = KEY_SLOTS,
		.depth = depth};
	char err[256] = "";

	memset(t, 0, sizeof(*t));
	memset(&fault, 0, sizeof(fault));
	assert_int_equal(engine_serial.open(&t->serial, &(struct engine_config){.device = ""}, err,
				 sizeof(err)),
		0);
	for (uint32_t i = 0; i < DEVICES; i++) {
		struct engine_config dev = {.device = i ? "1" : "0",
			.flags = flags,
			.timeout_ms = mute && i ? TIMEOUT_MS : PATIENCE_MS,
			.depth = depth};

		t->device[i] = (struct batch_device){
			.ops = &engine_opencl, .weight = i + 1, .fixed_min = 1};
		if (engine_opencl.open(&t->device[i].engine, &dev, err, sizeof(err)))
			fail_msg("%s", err);
	}
	cfg.serial = t->serial;
	assert_int_equal(batch_runner_create(&t->r, &cfg), 0);
	t->a = batch_runner_arena(t->r);
	t->want = calloc(SLOTS, ARENA_SLOT_LEN);
	assert_non_null(t->want);
	for (uint32_t slot = 2; slot < 10; slot += 2) {
		struct srtp_master m;

		sample_master(&m, slot < 6 ? SUITE_AES_CM_128_80 : SUITE_AES_256_CM_32, slot);
		assert_int_equal(srtp_key_fill(&t->a->key[slot], &m), 0);
		assert_int_equal(batch_runner_key_changed(t->r, slot), 0);
	}
}

static void rig_open(struct rig *t, uint32_t flags)
{
	rig_open_depth(t, flags, 1, false);
}

static void rig_close(struct rig *t)
{
	batch_runner_destroy(t->r);
	for (uint32_t i = 0; i < DEVICES; i++)
		engine_opencl.close(t->device[i].engine);
	engine_serial.close(t->serial);
	free(t->want);
}

static uint64_t batches(const struct rig *t, uint32_t device)
{
	return batch_runner_device_counters(t->r, device)->batches;
}

/* Puts n packets into the slots from at on, one in ten forged. */
static struct batch batch_make(struct rig *t, uint32_t at, uint32_t n, uint32_t round)
{
	struct batch b = {.job = t->a->job + at, .status = t->a->status + at, .n = n};

	for (uint32_t i = 0; i < n; i++) {
		struct sample s = {.rx_key = 2 + 2 * (i % 4),
			.tx_key = 2 + 2 * ((i + round) % 4),
			.hdr_len = 12,
			.body_len = (i * 37 + round) % 300,
			.rx_index = i,
			.tx_index = i,
			.seed = i + 1000 * round};

		sample_make(&b.job[i], t->a, at + i, &s);
		if (i % 10 == 3)
			t->a->in[b.job[i].in_off + 1] ^= 4;
	}
	memset(t->a->out + (size_t)at * ARENA_SLOT_LEN, 0, (size_t)n * ARENA_SLOT_LEN);
	return b;
}

/* Checks that every packet equals the reference's result. */
static void batch_check(struct rig *t, const struct batch *b)
{
	for (uint32_t i = 0; i < b->n; i++) {
		assert_int_equal(b->status[i], i % 10 == 3 ? XC_BAD_TAG : XC_OK);
		assert_int_equal(
			srtp_ref_job(&b->job[i], t->a->key, t->a->in, t->want), b->status[i]);
		assert_true(b->status[i] == XC_BAD_TAG ||
			sample_equal(&b->job[i], t->a, t->a->out, t->want));
	}
}

static void batch_is_right(struct rig *t, uint32_t round)
{
	struct batch b = batch_make(t, 0, N, round);

	batch_run(t->r, &b);
	batch_check(t, &b);
}

/* Runs this many batches, as many in flight as allowed. */
static void flights_are_right(struct rig *t, uint32_t depth, uint32_t rounds)
{
	struct batch b[DEPTH];

	for (uint32_t i = 0; i < rounds + depth; i++) {
		uint32_t at = i % depth;

		if (i >= depth) {
			batch_finish(t->r);
			batch_check(t, &b[at]);
		}
		if (i >= rounds)
			continue;
		b[at] = batch_make(t, at * LANE, LANE, i);
		batch_submit(t->r, &b[at]);
	}
	assert_int_equal(batch_flying(t->r), 0);
}

/* --- Tests ------------------------------------------------------------------------------------ */

static const uint32_t paths[] = {0, ENGINE_OWN_MEMORY, ENGINE_OWN_MEMORY | ENGINE_SMALL_CHUNKS};

static void two_devices_share_the_batches_by_weight(void **state)
{
	(void)state;
	for (size_t p = 0; p < ARRAY_LEN(paths); p++) {
		struct rig t;

		rig_open(&t, paths[p]);
		assert_ptr_not_equal(device_of(0), device_of(1));
		for (uint32_t i = 0; i < 9; i++)
			batch_is_right(&t, i);
		assert_int_equal(batches(&t, 0), 3);
		assert_int_equal(batches(&t, 1), 6);
		rig_close(&t);
	}
}

/* Every suite to every other in turn, RTP and RTCP, of 1 byte and of 1,400. */
static void mixed_batch_make(struct rig *t, struct batch *b)
{
	for (uint32_t i = 0; i < SUITE_COUNT; i++) {
		struct srtp_master m;

		sample_master(&m, (enum srtp_suite_id)i, i);
		assert_int_equal(srtp_key_fill(&t->a->key[10 + 2 * i], &m), 0);
		assert_int_equal(batch_runner_key_changed(t->r, 10 + 2 * i), 0);
	}
	for (uint32_t i = 0; i < b->n; i++) {
		bool rtcp = i % 5 == 0;
		struct sample s = {.rx_key = 10 + 2 * (i % SUITE_COUNT) + rtcp,
			.tx_key = 10 + 2 * (i / 3 % SUITE_COUNT) + rtcp,
			.hdr_len = rtcp ? 8 : 12,
			.body_len = i % 9 == 0 ? 1400
				: i % 4 == 0   ? 1
					       : 160,
			.flags = rtcp ? XC_JOB_RTCP : 0,
			.rx_index = i,
			.tx_index = i,
			.seed = i};

		sample_make(&b->job[i], t->a, i, &s);
	}
}

static void a_batch_of_mixed_suites_and_lengths_is_one_dispatch(void **state)
{
	static const uint32_t whole[] = {0, ENGINE_OWN_MEMORY};

	(void)state;
	for (size_t p = 0; p < ARRAY_LEN(whole); p++) {
		struct rig t;
		struct batch b;

		rig_open(&t, whole[p]);
		b = (struct batch){.job = t.a->job, .status = t.a->status, .n = N};
		mixed_batch_make(&t, &b);
		fault.dispatched = 0;
		batch_run(t.r, &b);
		assert_int_equal(fault.dispatched, 1);
		assert_int_equal(batch_runner_counters(t.r)->device_jobs, N);
		for (uint32_t i = 0; i < N; i++) {
			assert_int_equal(b.status[i], XC_OK);
			assert_int_equal(srtp_ref_job(&b.job[i], t.a->key, t.a->in, t.want), XC_OK);
			assert_true(sample_equal(&b.job[i], t.a, t.a->out, t.want));
		}
		rig_close(&t);
	}
}

/* However often it happens, it is not the device's fault. */
static void an_ill_formed_job_costs_no_second_run(void **state)
{
	struct rig t;
	struct batch b;

	(void)state;
	rig_open(&t, 0);
	b = (struct batch){.job = t.a->job, .status = t.a->status, .n = N};
	for (uint32_t round = 0; round < 9; round++) {
		mixed_batch_make(&t, &b);
		b.job[round * 11].body_len = ARENA_SLOT_LEN;
		batch_run(t.r, &b);
		for (uint32_t i = 0; i < N; i++)
			assert_int_equal(b.status[i], i == round * 11 ? XC_BAD_TAG : XC_OK);
	}
	assert_int_equal(batch_runner_counters(t.r)->device_errors, 0);
	assert_int_equal(batch_runner_counters(t.r)->device_batches, 9);
	assert_false(t.device[0].lost || t.device[1].lost);
	rig_close(&t);
}

static void a_device_that_fails_in_mid_run_costs_no_packet(void **state)
{
	(void)state;
	for (size_t p = 0; p < ARRAY_LEN(paths); p++) {
		struct rig t;

		rig_open(&t, paths[p]);
		fault.kernels = 2;
		fault.device = device_of(1);
		for (uint32_t i = 0; i < 20; i++)
			batch_is_right(&t, i);
		assert_true(t.device[1].lost);
		assert_false(t.device[0].lost);
		assert_int_equal(batch_runner_device_counters(t.r, 1)->errors, 3);
		assert_int_equal(batches(&t, 0) + batches(&t, 1), 17);
		/* The same when the last device fails. */
		fault.device = device_of(0);
		for (uint32_t i = 0; i < 5; i++)
			batch_is_right(&t, i);
		assert_true(t.device[0].lost);
		fault.device = NULL;
		rig_close(&t);
	}
}

static void a_device_that_hangs_is_given_up_and_touched_no_more(void **state)
{
	(void)state;
	for (size_t p = 1; p < ARRAY_LEN(paths); p++) {
		uint64_t start, took, touched;
		struct rig t;

		rig_open_depth(&t, paths[p], 1, true);
		fault.hang = true;
		fault.device = device_of(1);
		start = clock_mono_ns();
		for (uint32_t i = 0; !t.device[1].lost && i < 9; i++)
			batch_is_right(&t, i);
		took = clock_mono_ns() - start;
		assert_true(t.device[1].lost);
		assert_int_equal(batch_runner_device_counters(t.r, 1)->errors, 1);
		assert_true(took >= TIMEOUT_MS * 1000000ull);
		assert_in_range(fault.polled, 1, 1000000);
		touched = fault.touched;
		for (uint32_t i = 0; i < 5; i++)
			batch_is_right(&t, i);
		batch_runner_key_wipe(t.r, 8);
		rig_close(&t);
		assert_int_equal(fault.touched, touched);
		assert_int_equal(fault.key_tables, 1); /* the other's */
	}
}

static void batches_in_flight_on_a_device_that_goes_cost_no_packet(void **state)
{
	(void)state;
	for (uint32_t depth = 2; depth <= DEPTH; depth *= 2)
		for (int hang = 0; hang < 2; hang++) {
			uint64_t touched, errors;
			struct rig t;

			rig_open_depth(&t, paths[1 + depth / DEPTH], depth, hang);
			fault.kernels = 3;
			fault.hang = hang;
			fault.device = device_of(1);
			flights_are_right(&t, depth, 14);
			errors = batch_runner_device_counters(t.r, 1)->errors;
			assert_true(t.device[1].lost);
			assert_false(t.device[0].lost);
			/* Batches in flight during the failures count, too. */
			assert_in_range(errors, hang ? 1 : 3, hang ? depth : 3 + depth);
			touched = fault.touched;
			flights_are_right(&t, depth, 5);
			batch_runner_key_wipe(t.r, 8);
			assert_int_equal(batch_runner_counters(t.r)->jobs, 19 * LANE);
			if (!hang)
				fault.device = NULL;
			rig_close(&t);
			assert_true(!hang || fault.touched == touched);
		}
}

/* Batches in flight still read the device's keys. A new key is queued after them, without
 * waiting. */
static void keys_are_sent_behind_what_is_in_flight(void **state)
{
	struct rig t;
	struct batch b;

	(void)state;
	rig_open_depth(&t, ENGINE_OWN_MEMORY, 2, false);
	b = batch_make(&t, 0, LANE, 1);
	batch_submit(t.r, &b);
	fault.waited_for = 0;
	assert_int_equal(batch_runner_key_changed(t.r, 12), 0);
	assert_int_equal(fault.waited_for, 1);
	batch_finish(t.r);
	batch_check(&t, &b);
	assert_int_equal(batch_runner_key_changed(t.r, 12), 0);
	assert_int_equal(fault.waited_for, 1);
	rig_close(&t);
}

static void no_key_stays_on_a_device(void **state)
{
	struct rig t;

	(void)state;
	rig_open(&t, ENGINE_OWN_MEMORY);
	batch_is_right(&t, 0);
	rig_close(&t);
	assert_int_equal(fault.key_tables, DEVICES);
	assert_int_equal(fault.keys_left, 0);
}

static void keys_are_sent_without_waiting(void **state)
{
	struct rig t;

	(void)state;
	rig_open(&t, ENGINE_OWN_MEMORY);
	batch_is_right(&t, 0);
	fault.hang = true; /* no command ever completes */
	fault.device = device_of(1);
	fault.polled = fault.blocked = 0;
	for (uint32_t slot = 2; slot < 22; slot += 2)
		assert_int_equal(batch_runner_key_changed(t.r, slot), 0);
	/* Waiting would ask the device for its state. */
	assert_int_equal(fault.polled, 0);
	assert_int_equal(fault.blocked, 0);
	fault.device = NULL;
	batch_is_right(&t, 1);
	assert_false(t.device[1].lost);
	rig_close(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_devices_share_the_batches_by_weight),
		cmocka_unit_test(a_batch_of_mixed_suites_and_lengths_is_one_dispatch),
		cmocka_unit_test(an_ill_formed_job_costs_no_second_run),
		cmocka_unit_test(a_device_that_fails_in_mid_run_costs_no_packet),
		cmocka_unit_test(a_device_that_hangs_is_given_up_and_touched_no_more),
		cmocka_unit_test(batches_in_flight_on_a_device_that_goes_cost_no_packet),
		cmocka_unit_test(keys_are_sent_behind_what_is_in_flight),
		cmocka_unit_test(no_key_stays_on_a_device),
		cmocka_unit_test(keys_are_sent_without_waiting),
	};

	setenv("POCL_DEVICES", "basic basic", 1);
	log_open("test_opencl_faults", LOG_EMERG, 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
