/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The OpenCL engine passes the tests for every engine: with the CPU's AES instructions, with
 * portable AES, with scalar lanes as on a GPU, with buffers instead of addresses, and with copies.
 * Batches of every size, and the errors when it cannot open. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>

#include "batch/engine.h"
#include "engine_cases.h"
#include "batch/sample.h"
#include "packet/arena.h"
#include "srtp/ref.h"

/* PoCL frees some memory only when the process ends (for LeakSanitizer). */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libpocl\nleak:libLLVM\nleak:libclang\nleak:libOpenCL\n";
}

static int open_with(void **state, uint32_t flags)
{
	return engine_setup(
		state, &engine_opencl, &(struct engine_config){.device = "", .flags = flags});
}

static int setup(void **state)
{
	return open_with(state, 0);
}

static int setup_two_groups(void **state)
{
	return open_with(state, ENGINE_TWO_GROUPS);
}

/* Scalar lanes take buffers. */
static int setup_buffers(void **state)
{
	return open_with(state, ENGINE_SCALAR_LANES);
}

static int setup_portable(void **state)
{
	return open_with(state, ENGINE_PORTABLE_AES);
}

static int setup_scalar(void **state)
{
	return open_with(state, ENGINE_SCALAR_LANES | ENGINE_PORTABLE_AES);
}

static int setup_copying(void **state)
{
	return open_with(state, ENGINE_SCALAR_LANES | ENGINE_OWN_MEMORY);
}

static int setup_parts(void **state)
{
	return open_with(state, ENGINE_OWN_MEMORY | ENGINE_SMALL_CHUNKS);
}

static int setup_parts_scalar(void **state)
{
	return open_with(state, ENGINE_SCALAR_LANES | ENGINE_OWN_MEMORY | ENGINE_SMALL_CHUNKS);
}

static void plain_jobs_make(struct engine_fixture *f, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct sample s = {.rx_key = 0,
			.tx_key = 0,
			.hdr_len = 12,
			.body_len = 10 + 20 * i,
			.seed = i};

		sample_make(&f->a.job[i], &f->a, i, &s);
		f->a.status[i] = XC_NOT_DONE;
	}
	memset(f->a.out, 0xee, n * ARENA_SLOT_LEN);
}

/* A refused job writes nothing; its neighbours are done. */
static void a_job_that_points_elsewhere_fails_alone(void **state)
{
	enum { COUNT = 40 };
	struct engine_fixture *f = *state;
	struct batch b = {.job = f->a.job, .status = f->a.status, .n = COUNT};
	static const uint32_t places[] = {0, 17, COUNT - 1};
	const struct {
		const char *why;
		size_t field;
		uint32_t value;
	} T[] = {
		{"input beyond the arena", offsetof(struct xc_job, in_off),
			f->a.slots * ARENA_SLOT_LEN},
		{"output beyond the arena", offsetof(struct xc_job, out_off), UINT32_MAX},
		{"endless body", offsetof(struct xc_job, body_len), UINT32_MAX},
		{"endless header", offsetof(struct xc_job, hdr_len), UINT32_MAX},
		{"no header", offsetof(struct xc_job, hdr_len), 0},
		{"tag behind the slot", offsetof(struct xc_job, tx_tag_off), ARENA_SLOT_LEN},
		{"received tag behind everything", offsetof(struct xc_job, rx_tag_off),
			UINT32_MAX - 3},
		{"output into the next slot", offsetof(struct xc_job, out_off),
			ARENA_SLOT_LEN - 64},
		{"a key that was never announced", offsetof(struct xc_job, tx_key),
			f->a.key_slots - 4},
		{"no such key", offsetof(struct xc_job, rx_key), f->a.key_slots},
		{"no such key to send with", offsetof(struct xc_job, tx_key), f->a.key_slots},
	};

	for (size_t t = 0; t < ARRAY_LEN(T) * ARRAY_LEN(places); t++) {
		uint32_t bad = places[t % ARRAY_LEN(places)];
		size_t what = t / ARRAY_LEN(places);

		plain_jobs_make(f, COUNT);
		*(uint32_t *)((uint8_t *)&b.job[bad] + T[what].field) = T[what].value;
		assert_int_equal(f->ops->run(f->q, &b), 0);
		for (uint32_t i = 0; i < COUNT; i++) {
			if (b.status[i] != (i == bad ? XC_BAD_TAG : XC_OK))
				fail_msg("%s, job %u: status %u", T[what].why, i, b.status[i]);
			if (i == bad)
				continue;
			(void)srtp_ref_job(&b.job[i], f->a.key, f->a.in, f->want);
			assert_true(sample_equal(&b.job[i], &f->a, f->a.out, f->want));
		}
		for (uint32_t at = 0; at < ARENA_SLOT_LEN; at++)
			assert_int_equal(f->a.out[bad * ARENA_SLOT_LEN + at], 0xee);
	}
}

static void a_batch_of_nothing_that_fits_is_no_error(void **state)
{
	struct engine_fixture *f = *state;
	struct batch b = {.job = f->a.job, .status = f->a.status, .n = 20};

	plain_jobs_make(f, b.n);
	for (uint32_t i = 0; i < b.n; i++)
		b.job[i].body_len = UINT32_MAX - i;
	assert_int_equal(f->ops->run(f->q, &b), 0);
	for (uint32_t i = 0; i < b.n; i++)
		assert_int_equal(b.status[i], XC_BAD_TAG);
}

static void batches_that_are_not_the_arenas_are_refused(void **state)
{
	struct engine_fixture *f = *state;
	struct xc_job job = {0};
	struct batch b = {.job = f->a.job, .status = f->a.status, .n = f->a.slots + 1};

	assert_int_equal(f->ops->run(f->q, &b), -EINVAL);
	b.n = 1;
	b.job = &job;
	assert_int_equal(f->ops->run(f->q, &b), -EINVAL);
	assert_int_equal(f->ops->key_changed(f->q, f->a.key_slots - 1), -EINVAL);
}

static void an_unknown_device_is_named_with_those_there_are(void **state)
{
	struct engine_config cfg = {.device = "no such device"};
	struct engine *e;
	char err[256] = "";

	(void)state;
	assert_int_equal(engine_opencl.open(&e, &cfg, err, sizeof(err)), -ENODEV);
	assert_non_null(strstr(err, "no such device"));
	assert_non_null(strstr(err, " 0: "));
	cfg.device = "99";
	assert_int_equal(engine_opencl.open(&e, &cfg, err, sizeof(err)), -ENODEV);
	cfg.device = "cpu";
	assert_int_equal(engine_opencl.open(&e, &cfg, err, sizeof(err)), 0);
	engine_opencl.close(e);
	cfg.device = "0";
	assert_int_equal(engine_opencl.open(&e, &cfg, err, sizeof(err)), 0);
	engine_opencl.close(e);
	cfg.kernel_dir = "/nonexistent";
	assert_int_equal(engine_opencl.open(&e, &cfg, err, sizeof(err)), -ENOENT);
	assert_non_null(strstr(err, "/nonexistent/layout.h"));
}

int main(void)
{
	static const struct CMUnitTest cases[] = {
		ENGINE_CASES,
		cmocka_unit_test(a_job_that_points_elsewhere_fails_alone),
		cmocka_unit_test(a_batch_of_nothing_that_fits_is_no_error),
		cmocka_unit_test(batches_that_are_not_the_arenas_are_refused),
	};
	static const struct CMUnitTest sizes[] = {
		cmocka_unit_test(engine_case_every_batch_size_is_right),
	};
	static const struct CMUnitTest opening[] = {
		cmocka_unit_test(an_unknown_device_is_named_with_those_there_are),
	};
	int failed = cmocka_run_group_tests_name("default", cases, setup, engine_teardown);

	failed += cmocka_run_group_tests_name("buffers", cases, setup_buffers, engine_teardown);
	failed += cmocka_run_group_tests_name(
		"two hashes at once", sizes, setup_two_groups, engine_teardown);
	failed +=
		cmocka_run_group_tests_name("portable AES", cases, setup_portable, engine_teardown);
	failed += cmocka_run_group_tests_name(
		"buffers, portable AES", cases, setup_scalar, engine_teardown);
	failed += cmocka_run_group_tests_name("copies", cases, setup_copying, engine_teardown);
	failed += cmocka_run_group_tests_name("parts", cases, setup_parts, engine_teardown);
	failed += cmocka_run_group_tests_name(
		"parts, scalar lanes", cases, setup_parts_scalar, engine_teardown);
	failed += cmocka_run_group_tests_name("opening", opening, NULL, NULL);
	return failed;
}
