/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A batch on a device with its own memory (gpu_run.h), with a minimal host around the engine's
 * kernel. The engine packs and unpacks with one core of the host, which would hide the device's own
 * speed. */
#include "gpu_run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "batch/engine.h"
#include "batch/opencl_copy.h"
#include "packet/arena.h"

/* Extensions that report the width of a unit (cl_nv_device_attribute_query,
 * cl_amd_device_attribute_query). */
#define NV_COMPUTE_CAPABILITY_MAJOR 0x4000
#define AMD_SIMD_PER_UNIT           0x4040
#define AMD_SIMD_WIDTH              0x4041

enum { IN, OUT, JOB, STATUS, BUFFERS };

/* Memory on both sides: the device's, and pinned memory of the host, which stays mapped. */
struct set {
	cl_mem device[BUFFERS], host[BUFFERS];
	void *p[BUFFERS];
	cl_kernel kernel;
	cl_event done; /* of the last command */
};

struct gpu {
	struct opencl_device dev;
	struct load *l;
	struct opencl_source src;
	cl_context ctx;
	cl_command_queue up, run, down;
	cl_program program;
	cl_mem key, order;
	struct set set[GPU_SETS];
	size_t len[BUFFERS];
	uint32_t n;
};

/* --- Packing, as in the engine (batch/opencl_copy.c) ------------------------------------------ */

static uint32_t extent(const struct xc_job *j, uint32_t tag_off)
{
	uint32_t body = j->hdr_len + j->body_len + 4, tag = tag_off + 20;

	return body > tag ? body : tag;
}

static uint32_t next_off(uint32_t off, uint32_t len)
{
	return (off + len + XC_SLACK + 63) / 64 * 64;
}

static void sizes(struct gpu *g)
{
	uint32_t in = 0, out = 0;

	for (uint32_t i = 0; i < g->n; i++) {
		const struct xc_job *j = &g->l->a.job[i];

		in = next_off(in, extent(j, j->rx_tag_off));
		out = next_off(out, extent(j, j->tx_tag_off));
	}
	g->len[IN] = in;
	g->len[OUT] = out;
	g->len[JOB] = g->n * sizeof(struct xc_job);
	g->len[STATUS] = g->n * sizeof(uint32_t);
}

static void pack(const struct gpu *g, struct set *s)
{
	const struct arena *a = &g->l->a;
	uint32_t in = 0, out = 0;

	for (uint32_t i = 0; i < g->n; i++) {
		struct xc_job *j = (struct xc_job *)s->p[JOB] + i;
		uint32_t len = extent(&a->job[i], a->job[i].rx_tag_off);

		*j = a->job[i];
		memcpy((uint8_t *)s->p[IN] + in, a->in + j->in_off, len);
		j->in_off = in;
		j->out_off = out;
		in = next_off(in, len);
		out = next_off(out, extent(j, j->tx_tag_off));
	}
}

void gpu_results(struct gpu *g)
{
	const struct set *s = &g->set[0];

	for (uint32_t i = 0; i < g->n; i++) {
		const struct xc_job *j = &g->l->a.job[i], *packed = (struct xc_job *)s->p[JOB] + i;

		g->l->a.status[i] = ((const uint32_t *)s->p[STATUS])[i];
		memcpy(g->l->a.out + j->out_off, (const uint8_t *)s->p[OUT] + packed->out_off,
			extent(j, j->tx_tag_off));
	}
}

/* --- Set-up ----------------------------------------------------------------------------------- */

static cl_int program_make(struct gpu *g, const struct bench_env *env, char *err, size_t err_len)
{
	struct opencl_shape shape = {
		.lanes = 1, .groups = 1, .words = g->dev.words, .flags = env->flags};

	if (opencl_source_load(&g->src, env->kernel_dir, err, err_len) ||
		opencl_build(&g->program,
			&(struct opencl_build){g->ctx, g->dev.id, &g->src, &shape, NULL}, err,
			err_len))
		return CL_BUILD_PROGRAM_FAILURE;
	return CL_SUCCESS;
}

static cl_int set_make(struct gpu *g, struct set *s)
{
	cl_int err = CL_SUCCESS;

	for (int i = 0; i < BUFFERS && !err; i++) {
		s->device[i] = clCreateBuffer(g->ctx, CL_MEM_READ_WRITE, g->len[i], NULL, &err);
		if (!err)
			s->host[i] = clCreateBuffer(g->ctx,
				CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, g->len[i], NULL, &err);
		if (!err)
			s->p[i] = clEnqueueMapBuffer(g->up, s->host[i], CL_TRUE,
				CL_MAP_READ | CL_MAP_WRITE, 0, g->len[i], 0, NULL, NULL, &err);
		if (!err)
			memset(s->p[i], 0, g->len[i]);
	}
	if (!err)
		s->kernel = clCreateKernel(g->program, "xc_recrypt_batch", &err);
	if (err)
		return err;
	pack(g, s);
	err |= clSetKernelArg(s->kernel, 0, sizeof(cl_mem), &s->device[JOB]);
	err |= clSetKernelArg(s->kernel, 1, sizeof(g->n), &g->n);
	err |= clSetKernelArg(s->kernel, 2, sizeof(cl_mem), &g->key);
	err |= clSetKernelArg(s->kernel, 3, sizeof(cl_mem), &s->device[IN]);
	err |= clSetKernelArg(s->kernel, 4, sizeof(cl_mem), &s->device[OUT]);
	err |= clSetKernelArg(s->kernel, 5, sizeof(cl_mem), &s->device[STATUS]);
	err |= clSetKernelArg(s->kernel, 6, sizeof(cl_mem), &g->order);
	return err;
}

/* Keys stay on the device. Jobs are taken in packing order. */
static cl_int tables_make(struct gpu *g)
{
	const struct arena *a = &g->l->a;
	uint32_t *order = calloc(g->n, sizeof(*order));
	cl_int err = order ? CL_SUCCESS : CL_OUT_OF_HOST_MEMORY;

	for (uint32_t i = 0; order && i < g->n; i++)
		order[i] = i;
	if (!err)
		g->order = clCreateBuffer(g->ctx, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR,
			g->n * sizeof(*order), order, &err);
	if (!err)
		g->key = clCreateBuffer(g->ctx, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR,
			a->key_slots * sizeof(*a->key), a->key, &err);
	free(order);
	return err;
}

static cl_int make(struct gpu *g, const struct bench_env *env, char *err, size_t err_len)
{
	cl_command_queue *q[] = {&g->up, &g->run, &g->down};
	cl_int res;

	g->ctx = clCreateContext(NULL, 1, &g->dev.id, NULL, NULL, &res);
	for (size_t i = 0; i < ARRAY_LEN(q) && !res; i++)
		*q[i] = clCreateCommandQueue(g->ctx, g->dev.id, 0, &res);
	res = res ? res : program_make(g, env, err, err_len);
	res = res ? res : tables_make(g);
	for (int i = 0; i < GPU_SETS && !res; i++)
		res = set_make(g, &g->set[i]);
	return res;
}

int gpu_create(
	struct gpu **out, const struct bench_env *env, struct load *l, char *err, size_t err_len)
{
	struct engine_config cfg = {.device = env->device};
	struct gpu *g = calloc(1, sizeof(*g));
	int res;

	if (!g)
		return -ENOMEM;
	g->l = l;
	g->n = l->batch;
	sizes(g);
	res = opencl_device_choose(&g->dev, &cfg, err, err_len);
	if (!res) {
		cl_int made = make(g, env, err, err_len);

		if (made && !err[0])
			snprintf(err, err_len, "%s: %s (%d)", g->dev.name, opencl_strerror(made),
				made);
		res = made ? -EIO : 0;
	}
	if (res) {
		gpu_destroy(g);
		return res;
	}
	*out = g;
	return 0;
}

static void set_free(struct gpu *g, struct set *s)
{
	for (int i = 0; i < BUFFERS; i++) {
		if (s->p[i])
			(void)clEnqueueUnmapMemObject(g->up, s->host[i], s->p[i], 0, NULL, NULL);
		if (g->up)
			(void)clFinish(g->up);
		if (s->host[i])
			clReleaseMemObject(s->host[i]);
		if (s->device[i])
			clReleaseMemObject(s->device[i]);
	}
	if (s->kernel)
		clReleaseKernel(s->kernel);
	if (s->done)
		clReleaseEvent(s->done);
}

void gpu_destroy(struct gpu *g)
{
	cl_command_queue q[] = {g->up, g->run, g->down};

	for (int i = 0; i < GPU_SETS; i++)
		set_free(g, &g->set[i]);
	if (g->key)
		clReleaseMemObject(g->key);
	if (g->order)
		clReleaseMemObject(g->order);
	if (g->program)
		clReleaseProgram(g->program);
	for (size_t i = 0; i < ARRAY_LEN(q); i++)
		if (q[i])
			clReleaseCommandQueue(q[i]);
	if (g->ctx)
		clReleaseContext(g->ctx);
	opencl_source_free(&g->src);
	free(g);
}

/* --- About the device ------------------------------------------------------------------------- */

const char *gpu_name(const struct gpu *g)
{
	return g->dev.name;
}

static cl_uint info(const struct gpu *g, cl_device_info what)
{
	cl_uint v = 0;

	return clGetDeviceInfo(g->dev.id, what, sizeof(v), &v, NULL) ? 0 : v;
}

/* OpenCL reports only the width of a vector. NVIDIA's units have 64 integer lanes from compute
 * capability 7 on, 128 before; AMD's driver reports it. */
struct gpu_rate gpu_rate(const struct gpu *g)
{
	struct gpu_rate r = {.units = info(g, CL_DEVICE_MAX_COMPUTE_UNITS),
		.mhz = info(g, CL_DEVICE_MAX_CLOCK_FREQUENCY)};
	cl_uint nv = info(g, NV_COMPUTE_CAPABILITY_MAJOR), simds = info(g, AMD_SIMD_PER_UNIT);

	if (nv) {
		r.lanes = nv >= 7 ? 64 : 128;
		r.how = "by its compute capability";
	} else if (simds) {
		r.lanes = simds * info(g, AMD_SIMD_WIDTH);
		r.how = "by its SIMDs";
	} else {
		r.lanes = info(g, CL_DEVICE_NATIVE_VECTOR_WIDTH_INT);
		r.how = "its vectors' width";
	}
	return r;
}

size_t gpu_bytes_up(const struct gpu *g)
{
	return g->len[IN] + g->len[JOB];
}

size_t gpu_bytes_down(const struct gpu *g)
{
	return g->len[OUT] + g->len[STATUS];
}

/* --- Timed parts ------------------------------------------------------------------------------ */

static cl_int dispatch(struct gpu *g, struct set *s, cl_event *after, cl_event *done)
{
	size_t local = OPENCL_SCALAR_GROUP, global = (g->n + local - 1) / local * local;

	return clEnqueueNDRangeKernel(
		g->run, s->kernel, 1, NULL, &global, &local, after ? 1 : 0, after, done);
}

uint64_t gpu_resident(struct gpu *g, unsigned batches)
{
	uint64_t start = clock_mono_ns();

	for (unsigned i = 0; i < batches; i++)
		if (dispatch(g, &g->set[i % GPU_SETS], NULL, NULL))
			return 0;
	return clFinish(g->run) ? 0 : clock_mono_ns() - start;
}

static cl_int up(struct gpu *g, struct set *s, cl_event *done)
{
	cl_int err = clEnqueueWriteBuffer(
		g->up, s->device[IN], CL_FALSE, 0, g->len[IN], s->p[IN], 0, NULL, NULL);

	err = err ? err
		  : clEnqueueWriteBuffer(g->up, s->device[JOB], CL_FALSE, 0, g->len[JOB], s->p[JOB],
			    0, NULL, done);
	return err ? err : clFlush(g->up);
}

static cl_int down(struct gpu *g, struct set *s, cl_event *after, cl_event *done)
{
	cl_int err = clEnqueueReadBuffer(g->down, s->device[OUT], CL_FALSE, 0, g->len[OUT],
		s->p[OUT], after ? 1 : 0, after, NULL);

	err = err ? err
		  : clEnqueueReadBuffer(g->down, s->device[STATUS], CL_FALSE, 0, g->len[STATUS],
			    s->p[STATUS], 0, NULL, done);
	return err ? err : clFlush(g->down);
}

/* Waits for the set's last command, which uses its memory. */
static cl_int set_wait(struct set *s)
{
	cl_int err = CL_SUCCESS;

	if (s->done) {
		err = clWaitForEvents(1, &s->done);
		clReleaseEvent(s->done);
		s->done = NULL;
	}
	return err;
}

static cl_int batch_send(struct gpu *g, struct set *s)
{
	cl_event there = NULL, computed = NULL;
	cl_int err = set_wait(s);

	err = err ? err : up(g, s, &there);
	err = err ? err : dispatch(g, s, &there, &computed);
	err = err ? err : clFlush(g->run);
	err = err ? err : down(g, s, &computed, &s->done);
	if (there)
		clReleaseEvent(there);
	if (computed)
		clReleaseEvent(computed);
	return err;
}

uint64_t gpu_transfers(struct gpu *g, unsigned batches)
{
	uint64_t start = clock_mono_ns();
	cl_int err = CL_SUCCESS;

	for (unsigned i = 0; i < batches && !err; i++)
		err = batch_send(g, &g->set[i % GPU_SETS]);
	for (int i = 0; i < GPU_SETS; i++)
		err |= set_wait(&g->set[i]);
	return err ? 0 : clock_mono_ns() - start;
}

uint64_t gpu_copies(struct gpu *g, unsigned batches)
{
	uint64_t start = clock_mono_ns();
	cl_int err = CL_SUCCESS;

	for (unsigned i = 0; i < batches && !err; i++) {
		struct set *s = &g->set[i % GPU_SETS];

		err = up(g, s, NULL);
		err = err ? err : down(g, s, NULL, NULL);
	}
	err |= clFinish(g->up);
	err |= clFinish(g->down);
	return err ? 0 : clock_mono_ns() - start;
}
