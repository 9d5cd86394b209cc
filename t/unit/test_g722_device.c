/* SPDX-License-Identifier: GPL-2.0-or-later */
/* G.722 on an OpenCL device (PoCL's basic) gives the bits of spandsp and of codec/g722.c, in vector
 * lanes as on a CPU, and with one stream per work-item as on a GPU. A device that fails, hangs or
 * lies changes nothing. This program replaces OpenCL functions for that. */
#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <CL/cl.h>

#include "base/bytes.h"
#include "batch/engine.h"
#include "batch/g722_device.h"
#include "codec/g722.h"
#include "codec_peers.h"
#include "xcipher_codec.h"

enum { SAMPLES = 16000, PACKET = 160, LANES = 16, MOST = 100, CALLS = 12, TIMEOUT_MS = 20 };

/* PoCL's memory until the process ends, and what is left on purpose to a device that hangs. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libpocl\nleak:libLLVM\nleak:libclang\nleak:libOpenCL\nleak:g722_device_open\n";
}

static enum { WORKS, FAILS, HANGS, LIES } fault;
static size_t lie; /* the row that a lie is in */
static uint32_t dispatched;

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

cl_int clEnqueueNDRangeKernel(cl_command_queue q, cl_kernel k, cl_uint dim, const size_t *offset,
	const size_t *global, const size_t *local, cl_uint n, const cl_event *wait, cl_event *e)
{
	dispatched++;
	if (fault == FAILS)
		return CL_OUT_OF_RESOURCES;
	return REAL(clEnqueueNDRangeKernel)(q, k, dim, offset, global, local, n, wait, e);
}

cl_int clGetEventInfo(cl_event e, cl_event_info what, size_t len, void *out, size_t *out_len)
{
	cl_int err = REAL(clGetEventInfo)(e, what, len, out, out_len);

	if (what == CL_EVENT_COMMAND_EXECUTION_STATUS && fault == HANGS)
		*(cl_int *)out = CL_RUNNING;
	return err;
}

cl_int clEnqueueReadBuffer(cl_command_queue q, cl_mem from, cl_bool waits, size_t off, size_t len,
	void *to, cl_uint n, const cl_event *wait, cl_event *e)
{
	cl_int err = REAL(clEnqueueReadBuffer)(
		q, from, waits || fault == LIES, off, len, to, n, wait, e);
	size_t row = LANES * 7 * sizeof(int32_t); /* of MOST streams */

	for (size_t i = 0; fault == LIES && i < row && lie * row + i < len; i += 4)
		((int32_t *)to)[(lie * row + i) / 4] ^= 0x10000;
	return err;
}

/* --- Signals ---------------------------------------------------------------------------------- */

static int16_t sample(uint32_t signal, size_t i)
{
	switch (signal) {
	case 0:
		return (int16_t)lrint(12000 * sin((double)i * 0.2) + 9000 * sin((double)i * 2.7));
	case 1:
		return (int16_t)(codec_hash((uint32_t)i) & 0xffff);
	case 2:
		return i / 37 % 2 ? INT16_MAX : INT16_MIN;
	case 3:
		return (int16_t)lrint((double)(i % 8000) * 4 * sin((double)i * (double)i * 1e-5));
	default:
		return i < 1000 ? (int16_t)(i * 13) : 0;
	}
}

enum { SIGNALS = 5 };
static const uint32_t rates[] = {64000, 56000, 48000};
enum { ONE_EACH = SIGNALS * ARRAY_LEN(rates) };

static struct g722_device *open_device(const void *flags)
{
	const struct engine_config cfg = {
		.device = "cpu", .flags = *(const uint32_t *)flags, .timeout_ms = TIMEOUT_MS * 500};
	struct g722_device *d = NULL;
	char err[256] = "";

	if (g722_device_open(&d, &cfg, MOST, err, sizeof(err)))
		fail_msg("%s", err);
	return d;
}

/* --- Tests ------------------------------------------------------------------------------------ */

struct peers {
	struct g722 g[ONE_EACH];
	int16_t pcm[ONE_EACH][SAMPLES], heard[ONE_EACH][SAMPLES], want_heard[SAMPLES];
	uint8_t code[ONE_EACH][SAMPLES], want[SAMPLES];
	struct g722_lane lane[ONE_EACH];
};

static void start(struct peers *p)
{
	for (uint32_t i = 0; i < ONE_EACH; i++)
		assert_int_equal(g722_init(&p->g[i], rates[i / SIGNALS]), 0);
}

/* Every signal in every mode, a stream each, packet by packet. */
static void spandsp_agrees(void **state)
{
	struct g722_device *d = open_device(*state);
	struct peers *p = calloc(1, sizeof(*p));
	uint32_t compared = 0;

	assert_non_null(p);
	for (uint32_t i = 0; i < ONE_EACH; i++)
		for (size_t k = 0; k < SAMPLES; k++)
			p->pcm[i][k] = sample(i % SIGNALS, k);
	start(p);
	for (size_t at = 0; at < SAMPLES; at += PACKET) {
		for (uint32_t i = 0; i < ONE_EACH; i++)
			p->lane[i] = (struct g722_lane){.g = &p->g[i],
				.in = (const uint8_t *)(p->pcm[i] + at),
				.out = p->code[i] + at};
		assert_int_equal(g722_device_encode(d, p->lane, ONE_EACH, PACKET), 0);
	}
	start(p);
	for (size_t at = 0; at < SAMPLES; at += PACKET) {
		for (uint32_t i = 0; i < ONE_EACH; i++)
			p->lane[i] = (struct g722_lane){.g = &p->g[i],
				.in = p->code[i] + at,
				.out = (uint8_t *)(p->heard[i] + at)};
		assert_int_equal(g722_device_decode(d, p->lane, ONE_EACH, PACKET), 0);
	}
	for (uint32_t i = 0; i < ONE_EACH; i++) {
		uint32_t rate = rates[i / SIGNALS];

		if (peer_spandsp_g722_encode_low(rate, p->pcm[i], SAMPLES, p->want) == 0) {
			assert_memory_equal(p->code[i], p->want, SAMPLES);
			compared++;
		}
		if (peer_spandsp_g722_decode_low(rate, p->code[i], SAMPLES, p->want_heard) == 0)
			assert_memory_equal(p->heard[i], p->want_heard, sizeof(p->want_heard));
	}
	print_message("%s: %u streams compared with spandsp\n", g722_device_name(d), compared);
	free(p);
	g722_device_close(d);
}

struct streams {
	struct g722 one[MOST], many[MOST];
	int16_t pcm[MOST][PACKET], heard[MOST][PACKET], want_heard[PACKET];
	uint8_t code[MOST][PACKET], want[PACKET];
	struct g722_lane lane[MOST];
};

/* The memory after the coefficients of the predictor is not part of the state. */
static void same_state(struct g722 a, struct g722 b)
{
	memset(a.low.zero + 6, 0, 2 * sizeof(*a.low.zero));
	memset(b.low.zero + 6, 0, 2 * sizeof(*b.low.zero));
	assert_memory_equal(&a, &b, sizeof(a));
}

static void encode(struct g722_device *d, struct streams *s, uint32_t n, size_t samples)
{
	for (uint32_t i = 0; i < n; i++)
		s->lane[i] =
			(struct g722_lane){&s->many[i], (const uint8_t *)s->pcm[i], s->code[i]};
	assert_int_equal(g722_device_encode(d, s->lane, n, samples), 0);
	for (uint32_t i = 0; i < n; i++) {
		g722_encode_low(&s->one[i], s->pcm[i], samples, s->want);
		assert_memory_equal(s->code[i], s->want, samples);
		same_state(s->one[i], s->many[i]);
	}
}

static void decode(struct g722_device *d, struct streams *s, uint32_t n, size_t samples)
{
	for (uint32_t i = 0; i < n; i++)
		s->lane[i] = (struct g722_lane){&s->many[i], s->code[i], (uint8_t *)s->heard[i]};
	assert_int_equal(g722_device_decode(d, s->lane, n, samples), 0);
	for (uint32_t i = 0; i < n; i++) {
		g722_decode_low(&s->one[i], s->code[i], samples, s->want_heard);
		assert_memory_equal(s->heard[i], s->want_heard, 2 * samples);
		same_state(s->one[i], s->many[i]);
	}
}

static void restart(struct streams *s, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(g722_init(&s->one[i], rates[i % ARRAY_LEN(rates)]), 0);
	memcpy(s->many, s->one, sizeof(s->many));
}

/* Batches around the number of lanes, of several packet lengths, also of random codes. */
static void batches_equal_single_streams(void **state)
{
	static const uint32_t sizes[] = {1, LANES - 1, LANES, LANES + 1, MOST};
	struct g722_device *d = open_device(*state);
	struct streams *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	for (size_t k = 0; k < ARRAY_LEN(sizes); k++) {
		uint32_t n = sizes[k];

		restart(s, n);
		for (uint32_t call = 0; call < CALLS; call++) {
			for (uint32_t i = 0; i < n * PACKET; i++)
				s->pcm[i / PACKET][i % PACKET] = sample((i / PACKET) % SIGNALS,
					call * PACKET + i % PACKET + 311 * (i / PACKET));
			encode(d, s, n, call % 3 ? PACKET : 4 * call + 4);
		}
		restart(s, n);
		for (uint32_t call = 0; call < CALLS; call++) {
			for (uint32_t i = 0; i < n * PACKET && call >= CALLS / 2; i++)
				s->code[i / PACKET][i % PACKET] = (uint8_t)codec_hash(call * i);
			decode(d, s, n, call % 3 ? PACKET : 4 * call + 4);
		}
	}
	free(s);
	g722_device_close(d);
}

/* States, packets and results are as before, and the next batch does not reach the device. */
static void refused(struct g722_device *d, struct streams *s, int want)
{
	struct streams *before = malloc(sizeof(*before));

	assert_non_null(before);
	memcpy(before, s, sizeof(*s));
	assert_int_equal(g722_device_encode(d, s->lane, MOST, PACKET), want);
	dispatched = 0;
	assert_int_equal(g722_device_encode(d, s->lane, MOST, PACKET), -EIO);
	assert_int_equal(g722_device_decode(d, s->lane, MOST, PACKET), -EIO);
	assert_int_equal(dispatched, 0);
	assert_memory_equal(before, s, sizeof(*s));
	free(before);
}

static struct streams *noisy(void)
{
	struct streams *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	restart(s, MOST);
	for (uint32_t i = 0; i < MOST * PACKET; i++)
		s->pcm[i / PACKET][i % PACKET] = sample(1, i);
	return s;
}

static void a_broken_device_changes_nothing(void **state)
{
	/* A state's first and last row, and the results' */
	static const size_t ROW[] = {0, 17, 18, 18 + PACKET / 4 - 1};
	struct streams *s = noisy();

	for (int how = FAILS; how <= LIES + 3; how++) {
		struct engine_config cfg = {.device = "cpu",
			.flags = *(const uint32_t *)*state,
			.timeout_ms = TIMEOUT_MS};
		struct g722_device *d = NULL;
		char err[256] = "";

		assert_int_equal(g722_device_open(&d, &cfg, MOST, err, sizeof(err)), 0);
		for (uint32_t i = 0; i < MOST; i++)
			s->lane[i] = (struct g722_lane){
				&s->many[i], (const uint8_t *)s->pcm[i], s->code[i]};
		fault = how < LIES ? how : LIES;
		lie = how < LIES ? 0 : ROW[how - LIES];
		refused(d, s, how == FAILS ? -EIO : how == HANGS ? -ETIMEDOUT : -EBADMSG);
		fault = WORKS;
		g722_device_close(d);
	}
	free(s);
}

/* Such a device is not used at all. */
static void a_self_test_finds_wrong_results(void **state)
{
	struct engine_config cfg = {.device = "cpu", .flags = *(const uint32_t *)*state};
	struct g722_device *d;
	char err[256] = "";

	fault = LIES;
	for (lie = 0; lie < 24; lie += 8) {
		assert_int_equal(g722_device_open(&d, &cfg, MOST, err, sizeof(err)), -EBADMSG);
		assert_string_equal(err, "opencl: G.722: the self-test fails");
	}
	fault = WORKS;
}

/* As codec threads use it. Returns how many dispatches a batch took. */
static uint32_t coded(const struct g722_device_ops *h, struct streams *s, uint32_t n, uint32_t odd)
{
	struct xcipher_codec_job job[MOST];
	uint32_t both;

	for (uint32_t i = 0; i < n; i++)
		job[i] = (struct xcipher_codec_job){.state = &s->many[i],
			.in = (const uint8_t *)s->pcm[i],
			.in_len = PACKET - (i == 1 ? odd : 0),
			.out = s->code[i],
			.out_cap = PACKET};
	dispatched = 0;
	g722_batch_encode_with(h, job, n);
	both = dispatched;
	for (uint32_t i = 0; i < n; i++) {
		g722_encode_low(&s->one[i], s->pcm[i], job[i].in_len, s->want);
		assert_int_equal(job[i].result, job[i].in_len);
		assert_memory_equal(s->code[i], s->want, job[i].in_len);
		same_state(s->one[i], s->many[i]);
	}
	return both;
}

/* Lanes continue where the device stopped. */
static void what_the_device_does_not_do_is_done_without_it(void **state)
{
	struct g722_device *d = open_device(*state);
	struct g722_device_ops h;
	struct streams *s = noisy();

	g722_device_measure(d, &h);
	assert_true(h.least_encode <= G722_DEVICE_MOST && h.least_decode <= G722_DEVICE_MOST);
	h.least_encode = 4;
	for (int i = 0; i < 3; i++)
		assert_int_equal(coded(&h, s, 20, 0), 1);
	assert_int_equal(coded(&h, s, 3, 0), 0); /* too few */
	assert_int_equal(coded(&h, s, G722_DEVICE_MOST, 0), 1);
	assert_int_equal(coded(&h, s, G722_DEVICE_MOST + 1, 0), 0);
	assert_int_equal(coded(&h, s, 20, 4), 0); /* of different lengths */
	assert_int_equal(coded(NULL, s, 20, 0), 0);
	fault = FAILS;
	assert_int_equal(coded(&h, s, 20, 0), 1);
	fault = WORKS;
	assert_int_equal(coded(&h, s, 20, 0), 0); /* not used any more */
	h.least_encode = 0;
	assert_int_equal(coded(&h, s, 20, 0), 0);
	free(s);
	g722_device_close(d);
}

static void a_device_is_used_where_it_never_loses(void **state)
{
	static const struct {
		double fraction[4];
		uint32_t least;
	} T[] = {{{2, 1, 0.9, 0.8}, 4}, {{0.5, 0.5, 0.5, 0.5}, 1}, {{0.5, 0.5, 0.5, 0.97}, 0},
		{{0.5, 1, 0.5, 0.5}, 4}, {{2, 2, 2, 0.9}, 8}};

	(void)state;
	for (size_t t = 0; t < ARRAY_LEN(T); t++)
		assert_int_equal(g722_device_least(T[t].fraction, 4), T[t].least);
}

int main(void)
{
	static uint32_t vectors = 0, scalar = ENGINE_SCALAR_LANES;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(spandsp_agrees, &vectors),
		cmocka_unit_test_prestate(spandsp_agrees, &scalar),
		cmocka_unit_test_prestate(batches_equal_single_streams, &vectors),
		cmocka_unit_test_prestate(batches_equal_single_streams, &scalar),
		cmocka_unit_test_prestate(a_broken_device_changes_nothing, &vectors),
		cmocka_unit_test_prestate(a_self_test_finds_wrong_results, &vectors),
		cmocka_unit_test_prestate(a_self_test_finds_wrong_results, &scalar),
		cmocka_unit_test_prestate(what_the_device_does_not_do_is_done_without_it, &vectors),
		cmocka_unit_test(a_device_is_used_where_it_never_loses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
