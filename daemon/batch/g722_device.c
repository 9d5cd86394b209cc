/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A batch is one block of memory: rows of one word per stream (kernels/g722.cl). It takes one
 * upload, one dispatch and one download. */
#include "batch/g722_device.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/secmem.h"
#include "batch/engine.h"
#include "batch/kernels.h"
#include "batch/opencl.h"
#include "batch/opencl_cache.h"
#include "batch/opencl_copy.h"
#include "xcipher_codec.h"

enum { STATE = 18 /* words */, LANES = 16, TIMEOUT_MS = 1000 };

_Static_assert(sizeof(struct g722_band) == 4 * STATE, "rows of kernels/g722.cl");

enum way { ENCODE, DECODE };

struct g722_device {
	struct opencl_device dev;
	char cache[OPENCL_CACHE_MADE];
	cl_context ctx;
	cl_command_queue cq;
	cl_program program;
	cl_kernel kernel[2]; /* [enum way] */
	cl_mem from, to;
	int32_t *rows; /* what is uploaded, and then downloaded */
	size_t bytes;  /* of rows, from and to */
	uint64_t timeout_ns;
	bool lost; /* it failed: its commands may still run */
	uint32_t batches;
};

/* One batch on its way. */
struct trip {
	const struct g722_lane *lane;
	uint32_t lanes, groups;     /* of XC_LANES */
	uint32_t stride;            /* words of a row */
	uint32_t in_rows, out_rows; /* of audio */
};

static struct trip trip(const struct g722_lane *lane, uint32_t lanes, size_t in, size_t out)
{
	uint32_t groups = (lanes + LANES - 1) / LANES;

	/* An odd number of cache lines: rows a power of two apart would share a few cache sets. */
	return (struct trip){.lane = lane,
		.lanes = lanes,
		.groups = groups,
		.stride = (groups | 1) * LANES,
		.in_rows = (uint32_t)in / 4,
		.out_rows = (uint32_t)out / 4};
}

static int selftest(struct g722_device *d, uint32_t streams);

/* --- Life ------------------------------------------------------------------------------------- */

bool g722_device_may_help(const struct engine_config *cfg)
{
	struct opencl_device dev;
	char err[256];

	return opencl_device_choose(&dev, cfg, err, sizeof(err)) == 0 &&
		!(dev.zero_copy && g722_lanes_here());
}

static cl_int build(struct g722_device *d)
{
	const struct kernel_source *k = kernel_sources;
	const char *options =
		d->dev.scalar ? "-cl-std=CL1.2 -DXC_LANES=1" : "-cl-std=CL1.2 -DXC_LANES=16";
	cl_int err = CL_SUCCESS;

	while (k->name && strcmp(k->name, "g722.cl") != 0)
		k++;
	d->ctx = clCreateContext(NULL, 1, &d->dev.id, NULL, NULL, &err);
	if (!err)
		d->cq = clCreateCommandQueue(d->ctx, d->dev.id, 0, &err);
	if (!err)
		d->program = clCreateProgramWithSource(
			d->ctx, 1, (const char **)(uintptr_t)&k->text, NULL, &err);
	if (!err)
		err = clBuildProgram(d->program, 1, &d->dev.id, options, NULL, NULL);
	if (!err)
		d->kernel[ENCODE] = clCreateKernel(d->program, "xc_g722_encode", &err);
	if (!err)
		d->kernel[DECODE] = clCreateKernel(d->program, "xc_g722_decode", &err);
	if (!err)
		d->from = clCreateBuffer(d->ctx, CL_MEM_READ_ONLY, d->bytes, NULL, &err);
	if (!err)
		d->to = clCreateBuffer(d->ctx, CL_MEM_WRITE_ONLY, d->bytes, NULL, &err);
	for (int way = ENCODE; !err && way <= DECODE; way++) {
		err = clSetKernelArg(d->kernel[way], 0, sizeof(d->from), &d->from);
		if (!err)
			err = clSetKernelArg(d->kernel[way], 1, sizeof(d->to), &d->to);
	}
	return err;
}

int g722_device_open(struct g722_device **out, const struct engine_config *cfg, uint32_t streams,
	char *err, size_t err_len)
{
	struct g722_device *d = calloc(1, sizeof(*d));
	cl_int res;
	int rc;

	if (!d || setenv("POCL_DEVICES", "basic", 0)) { /* as opencl_open() */
		free(d);
		return -ENOMEM;
	}
	d->timeout_ns = (cfg->timeout_ms ? cfg->timeout_ms : TIMEOUT_MS) * 1000000ull;
	d->bytes = (STATE + 1 + G722_DEVICE_SAMPLES / 2) * trip(NULL, streams, 0, 0).stride *
		sizeof(int32_t);
	d->rows = calloc(1, d->bytes);
	rc = d->rows ? opencl_cache_choose(d->cache, err, err_len) : -ENOMEM;
	if (!rc)
		rc = opencl_device_choose(&d->dev, cfg, err, err_len);
	if (!rc) {
		d->dev.scalar = d->dev.scalar || cfg->flags & ENGINE_SCALAR_LANES;
		res = build(d);
		if (res) {
			snprintf(err, err_len, "opencl: G.722: %s (%d)", opencl_strerror(res), res);
			rc = -EIO;
		}
	}
	if (!rc) {
		rc = selftest(d, streams);
		if (rc)
			snprintf(err, err_len, "opencl: G.722: the self-test fails");
	}
	if (rc) {
		g722_device_close(d);
		return rc;
	}
	*out = d;
	return 0;
}

void g722_device_close(struct g722_device *d)
{
	if (!d)
		return;
	if (!d->lost) {
		if (d->cq)
			clFinish(d->cq);
		for (int way = ENCODE; way <= DECODE; way++)
			if (d->kernel[way])
				clReleaseKernel(d->kernel[way]);
		if (d->from)
			clReleaseMemObject(d->from);
		if (d->to)
			clReleaseMemObject(d->to);
		if (d->program)
			clReleaseProgram(d->program);
		if (d->cq)
			clReleaseCommandQueue(d->cq);
		if (d->ctx)
			clReleaseContext(d->ctx);
		if (d->rows)
			secmem_wipe(d->rows, d->bytes);
		free(d->rows);
	}
	opencl_cache_remove(d->cache);
	free(d);
}

const char *g722_device_name(const struct g722_device *d)
{
	return d->dev.name;
}

bool g722_device_is_cpu(const struct g722_device *d)
{
	return d->dev.zero_copy;
}

/* --- A batch ---------------------------------------------------------------------------------- */

static void pack(int32_t *rows, const struct trip *t)
{
	for (uint32_t i = 0; i < t->lanes; i++) {
		const uint8_t *state = (const uint8_t *)&t->lane[i].g->low, *in = t->lane[i].in;
		int32_t *to = rows + i;

		for (uint32_t k = 0; k < STATE; k++, to += t->stride)
			memcpy(to, state + 4 * k, 4);
		*to = (int32_t)t->lane[i].g->spare;
		for (uint32_t k = 0; k < t->in_rows; k++)
			memcpy(to += t->stride, in + 4 * k, 4);
	}
}

static void unpack(const int32_t *rows, const struct trip *t)
{
	for (uint32_t i = 0; i < t->lanes; i++) {
		uint8_t *state = (uint8_t *)&t->lane[i].g->low, *out = t->lane[i].out;
		const int32_t *at = rows + i;

		for (uint32_t k = 0; k < STATE; k++, at += t->stride)
			memcpy(state + 4 * k, at, 4);
		for (uint32_t k = 0; k < t->out_rows; k++, at += t->stride)
			memcpy(out + 4 * k, at, 4);
	}
}

/* After an error commands may still run, which use the rows. */
static int send(struct g722_device *d, const struct trip *t, enum way way, cl_event *done)
{
	const size_t word = t->stride * sizeof(int32_t), local = 1;
	size_t global = d->dev.scalar ? t->groups * LANES : t->groups;
	cl_uint stride = t->stride, samples = 2 * (way == ENCODE ? t->in_rows : t->out_rows);
	cl_int err = clSetKernelArg(d->kernel[way], 2, sizeof(stride), &stride);

	if (!err)
		err = clSetKernelArg(d->kernel[way], 3, sizeof(samples), &samples);
	if (!err)
		err = clEnqueueWriteBuffer(d->cq, d->from, CL_FALSE, 0,
			(STATE + 1 + t->in_rows) * word, d->rows, 0, NULL, NULL);
	if (!err)
		err = clEnqueueNDRangeKernel(d->cq, d->kernel[way], 1, NULL, &global,
			d->dev.scalar ? NULL : &local, 0, NULL, NULL);
	if (!err)
		err = clEnqueueReadBuffer(d->cq, d->to, CL_FALSE, 0, (STATE + t->out_rows) * word,
			d->rows, 0, NULL, done);
	if (!err)
		err = clFlush(d->cq);
	return err ? -EIO : 0;
}

/* Whether the rows have the results for lane i. */
static bool is_right(const struct g722_device *d, const struct trip *t, enum way way, uint32_t i)
{
	const struct g722_lane *l = &t->lane[i];
	int16_t pcm[G722_DEVICE_SAMPLES] = {0};
	uint8_t code[G722_DEVICE_SAMPLES] = {0};
	struct g722 g = *l->g, got = g;
	const struct g722_lane to = {.g = &got, .out = way == ENCODE ? code : (uint8_t *)pcm};
	const struct trip one = {
		.lane = &to, .lanes = 1, .stride = t->stride, .out_rows = t->out_rows};
	int16_t want_pcm[G722_DEVICE_SAMPLES];
	uint8_t want[G722_DEVICE_SAMPLES];
	bool right;

	unpack(d->rows + i, &one);
	if (way == ENCODE) {
		g722_encode_low(
			&g, (const int16_t *)(const void *)l->in, 4 * (size_t)t->out_rows, want);
		right = memcmp(want, code, 4 * (size_t)t->out_rows) == 0;
	} else {
		g722_decode_low(&g, l->in, 4 * (size_t)t->in_rows, want_pcm);
		right = memcmp(want_pcm, pcm, 4 * (size_t)t->out_rows) == 0;
	}
	/* The memory after these coefficients is not part of the state. */
	memcpy(got.low.zero + 6, g.low.zero + 6, 2 * sizeof(*g.low.zero));
	return right && memcmp(&g.low, &got.low, sizeof(g.low)) == 0;
}

/* Each batch has one stream that is coded here, too, in turn. A device that computes garbage must
 * not be heard, and its states would stay wrong. */
static int check(struct g722_device *d, const struct trip *t, enum way way)
{
	return is_right(d, t, way, d->batches++ % t->lanes) ? 0 : -EBADMSG;
}

static int run(struct g722_device *d, const struct trip *t, enum way way)
{
	cl_event done = NULL;
	int rc;

	if (d->lost)
		return -EIO;
	pack(d->rows, t);
	rc = send(d, t, way, &done);
	if (!rc)
		rc = opencl_wait(done, UINT64_MAX, clock_mono_ns() + d->timeout_ns);
	if (!rc)
		rc = check(d, t, way);
	if (rc) {
		d->lost = true;
		log_warn("G.722: %s %s; the processor codes it from now on", d->dev.name,
			rc == -ETIMEDOUT         ? "hangs"
				: rc == -EBADMSG ? "computes wrong results"
						 : "fails");
		return rc;
	}
	clReleaseEvent(done);
	unpack(d->rows, t);
	return 0;
}

int g722_device_encode(
	struct g722_device *d, const struct g722_lane *lane, uint32_t lanes, size_t n)
{
	const struct trip t = trip(lane, lanes, 2 * n, n);

	return run(d, &t, ENCODE);
}

int g722_device_decode(
	struct g722_device *d, const struct g722_lane *lane, uint32_t lanes, size_t n)
{
	const struct trip t = trip(lane, lanes, n, 2 * n);

	return run(d, &t, DECODE);
}

static int encode_for(void *device, const struct g722_lane *lane, uint32_t lanes, size_t n)
{
	return g722_device_encode(device, lane, lanes, n);
}

static int decode_for(void *device, const struct g722_lane *lane, uint32_t lanes, size_t n)
{
	return g722_device_decode(device, lane, lanes, n);
}

/* --- Self-test -------------------------------------------------------------------------------- */

enum { TEST_LANES = 20 /* more than a group */, TEST_SAMPLES = 160 };

struct test {
	struct g722 g[TEST_LANES];
	struct g722_lane lane[TEST_LANES];
	int16_t pcm[TEST_LANES][TEST_SAMPLES];
	uint8_t code[TEST_LANES][TEST_SAMPLES];
};

/* Noise of all bit rates. */
static void test_set(struct test *t, enum way way)
{
	static const uint32_t rate[] = {64000, 56000, 48000};

	for (uint32_t i = 0; i < TEST_LANES; i++) {
		uint8_t *pcm = (uint8_t *)t->pcm[i];

		(void)g722_init(&t->g[i], rate[i % ARRAY_LEN(rate)]);
		t->lane[i] = (struct g722_lane){.g = &t->g[i],
			.in = way == ENCODE ? pcm : t->code[i],
			.out = way == ENCODE ? t->code[i] : pcm};
		for (uint32_t k = 0; k < TEST_SAMPLES; k++) {
			uint32_t noise = (k * TEST_LANES + i + 1) * 2654435761u;

			noise = (noise ^ noise >> 15) * 2246822519u;
			t->pcm[i][k] = (int16_t)(noise >> 16);
			t->code[i][k] = (uint8_t)(noise >> 8);
		}
	}
}

/* Every stream is right, in a batch and the next. */
static int selftest(struct g722_device *d, uint32_t streams)
{
	struct test *t = calloc(1, sizeof(*t));
	uint32_t lanes = streams < TEST_LANES ? streams : TEST_LANES;
	int rc = t ? 0 : -ENOMEM;

	for (int way = ENCODE; !rc && way <= DECODE; way++) {
		test_set(t, (enum way)way);
		for (uint32_t i = 0; !rc && i < 2 * lanes; i++) {
			d->batches = i;
			rc = way == ENCODE ? g722_device_encode(d, t->lane, lanes, TEST_SAMPLES)
					   : g722_device_decode(d, t->lane, lanes, TEST_SAMPLES);
		}
	}
	free(t);
	return rc;
}

/* --- Measuring -------------------------------------------------------------------------------- */

enum { SIZES = 7 /* 1 to G722_DEVICE_MOST */, PACKET = 160, ROUNDS = 9 };
#define CLEAR_WIN 0.95 /* fraction of the time without the device */

_Static_assert(1u << (SIZES - 1) == G722_DEVICE_MOST, "the last size");

struct rig {
	struct g722 g[G722_DEVICE_MOST];
	struct xcipher_codec_job job[G722_DEVICE_MOST];
	int16_t pcm[G722_DEVICE_MOST][PACKET];
	uint8_t code[G722_DEVICE_MOST][PACKET];
};

static void rig_set(struct rig *r, enum way way)
{
	for (uint32_t i = 0; i < G722_DEVICE_MOST; i++) {
		uint8_t *pcm = (uint8_t *)r->pcm[i];

		(void)g722_init(&r->g[i], 64000);
		r->job[i] = (struct xcipher_codec_job){.state = &r->g[i],
			.in = way == ENCODE ? pcm : r->code[i],
			.in_len = PACKET,
			.out = way == ENCODE ? r->code[i] : pcm,
			.out_cap = PACKET};
		for (uint32_t k = 0; k < PACKET && way == ENCODE; k++)
			r->pcm[i][k] = (int16_t)((k * 2654435761u + i) >> 18);
	}
}

static uint64_t took_ns(const struct g722_device_ops *h, struct rig *r, uint32_t n, enum way way)
{
	uint64_t start = clock_mono_ns();

	if (way == ENCODE)
		g722_batch_encode_with(h, r->job, n);
	else
		g722_batch_decode_with(h, r->job, n);
	return clock_mono_ns() - start + 1;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* Both in turns. The median fraction of the time without the device; the first run warms up. */
static double fraction_of(const struct g722_device_ops *h, struct rig *r, uint32_t n, enum way way)
{
	double fraction[ROUNDS];

	(void)took_ns(h, r, n, way);
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t device = took_ns(h, r, n, way);

		fraction[i] = (double)device / (double)took_ns(NULL, r, n, way);
	}
	qsort(fraction, ROUNDS, sizeof(*fraction), by_value);
	return fraction[ROUNDS / 2];
}

uint32_t g722_device_least(const double *fraction, uint32_t sizes)
{
	uint32_t i = sizes;

	while (i > 0 && fraction[i - 1] < CLEAR_WIN)
		i--;
	return i < sizes ? 1u << i : 0;
}

void g722_device_measure(struct g722_device *d, struct g722_device_ops *out)
{
	struct g722_device_ops h = {.device = d,
		.least_encode = 1,
		.least_decode = 1,
		.encode = encode_for,
		.decode = decode_for};
	struct rig *r = calloc(1, sizeof(*r));
	uint32_t least[2] = {0};

	for (int way = ENCODE; r && way <= DECODE; way++) {
		double fraction[SIZES];

		rig_set(r, (enum way)way);
		for (uint32_t i = 0; i < SIZES; i++)
			fraction[i] = fraction_of(&h, r, 1u << i, (enum way)way);
		least[way] = d->lost ? 0 : g722_device_least(fraction, SIZES);
	}
	free(r);
	h.least_encode = least[ENCODE];
	h.least_decode = least[DECODE];
	*out = h;
}
