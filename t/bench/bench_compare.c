/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The literature's two parallel designs on the device, with packets and keys of our engine
 * (compare_*.cl). The daemon uses none of this host code. On a CPU the arena is the device's
 * memory, as in the engine; elsewhere its used part is copied. Supports AES-CM, NULL and plain with
 * HMAC-SHA1. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "batch/engine.h"
#include "batch/kernels.h"
#include "batch/opencl.h"
#include "bench.h"
#include "packet/arena.h"

enum { MASSIVE, PERSISTENT, STEPS = 3, GROUP = 64, GROUPS_PER_UNIT = 8 };

struct cmp {
	struct opencl_device dev;
	cl_context ctx;
	cl_command_queue cq;
	cl_program program;
	cl_kernel kernel[STEPS];
	cl_mem job, key, in, out, status;
	cl_uint units;
	int design;
};

static bool cmp_can(const struct srtp_suite *s)
{
	return s->cipher == XC_CIPHER_AES_CM || s->cipher == XC_CIPHER_NULL;
}

static void cmp_close(void *ptr)
{
	struct cmp *c = ptr;
	cl_mem mem[] = {c->job, c->key, c->in, c->out, c->status};

	for (size_t i = 0; i < ARRAY_LEN(mem); i++)
		if (mem[i])
			clReleaseMemObject(mem[i]);
	for (int i = 0; i < STEPS; i++)
		if (c->kernel[i])
			clReleaseKernel(c->kernel[i]);
	if (c->program)
		clReleaseProgram(c->program);
	if (c->cq)
		clReleaseCommandQueue(c->cq);
	if (c->ctx)
		clReleaseContext(c->ctx);
	free(c);
}

static const char *source(const struct kernel_source *k, const char *name)
{
	for (; k->name; k++)
		if (strcmp(k->name, name) == 0)
			return k->text;
	return "#error missing";
}

static cl_int build(struct cmp *c)
{
	static const char *const names[2][STEPS] = {
		{"cmp_massive_verify", "cmp_massive_cipher", "cmp_massive_tag"},
		{"cmp_persistent"}};
	const char *text[] = {source(kernel_sources, "layout.h"),
		source(compare_sources, "compare_prim.cl"),
		source(compare_sources,
			c->design == MASSIVE ? "compare_massive.cl" : "compare_persistent.cl")};
	cl_int err;

	c->ctx = clCreateContext(NULL, 1, &c->dev.id, NULL, NULL, &err);
	if (c->ctx)
		c->cq = clCreateCommandQueue(c->ctx, c->dev.id, 0, &err);
	if (c->cq)
		c->program = clCreateProgramWithSource(c->ctx, ARRAY_LEN(text), text, NULL, &err);
	if (c->program)
		err = clBuildProgram(c->program, 1, &c->dev.id, "-cl-std=CL1.2", NULL, NULL);
	for (int i = 0; !err && i < STEPS && names[c->design][i]; i++)
		c->kernel[i] = clCreateKernel(c->program, names[c->design][i], &err);
	return err;
}

static cl_mem buffer(struct cmp *c, void *host, size_t len, cl_int *err)
{
	cl_mem_flags flags = CL_MEM_READ_WRITE | (c->dev.zero_copy ? CL_MEM_USE_HOST_PTR : 0);

	return *err ? NULL
		    : clCreateBuffer(c->ctx, flags, len, c->dev.zero_copy ? host : NULL, err);
}

static cl_int buffers(struct cmp *c, const struct arena *a)
{
	size_t packets = (size_t)a->slots * ARENA_SLOT_LEN;
	cl_int err = 0;

	c->job = buffer(c, a->job, a->slots * sizeof(*a->job), &err);
	c->key = buffer(c, a->key, a->key_slots * sizeof(*a->key), &err);
	c->in = buffer(c, a->in, packets, &err);
	c->out = buffer(c, a->out, packets, &err);
	c->status = buffer(c, a->status, a->slots * sizeof(*a->status), &err);
	if (!err && !c->dev.zero_copy)
		err = clEnqueueWriteBuffer(c->cq, c->key, CL_TRUE, 0,
			a->key_slots * sizeof(*a->key), a->key, 0, NULL, NULL);
	return err;
}

/* Later steps of the massive design have fewer arguments. */
static cl_int args(struct cmp *c)
{
	cl_mem all[] = {c->job, NULL, c->key, c->in, c->out, c->status};
	cl_mem tag[] = {c->job, NULL, c->key, c->out};
	cl_int err = 0;

	for (int k = 0; k < STEPS && c->kernel[k]; k++) {
		const cl_mem *v = k == 2 ? tag : all;
		cl_uint n = k == 2 ? ARRAY_LEN(tag) : ARRAY_LEN(all) - (k == 1 ? 1 : 0);

		for (cl_uint i = 0; i < n; i++)
			if (i != 1)
				err |= clSetKernelArg(c->kernel[k], i, sizeof(v[i]), &v[i]);
	}
	return err;
}

static int cmp_open(int design, void **out, struct bench_env *env, const struct load *l, char *err,
	size_t err_len)
{
	struct engine_config cfg = {.device = env->device};
	struct cmp *c = calloc(1, sizeof(*c));
	cl_int res;

	if (!c)
		return -ENOMEM;
	c->design = design;
	/* As in the engine, kernels run in this thread. */
	if (setenv("POCL_DEVICES", "basic", 0) ||
		opencl_device_choose(&c->dev, &cfg, err, err_len)) {
		cmp_close(c);
		return -ENODEV;
	}
	clGetDeviceInfo(c->dev.id, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof(c->units), &c->units, NULL);
	res = build(c);
	res = res ? res : buffers(c, &l->a);
	res = res ? res : args(c);
	if (res) {
		snprintf(err, err_len, "%s: %s (%d)", c->dev.name, opencl_strerror(res), res);
		cmp_close(c);
		return -EIO;
	}
	*out = c;
	return 0;
}

static int massive_open(
	void **out, struct bench_env *env, const struct load *l, char *err, size_t err_len)
{
	return cmp_open(MASSIVE, out, env, l, err, err_len);
}

static int persistent_open(
	void **out, struct bench_env *env, const struct load *l, char *err, size_t err_len)
{
	return cmp_open(PERSISTENT, out, env, l, err, err_len);
}

static const char *cmp_device(const void *p)
{
	return ((const struct cmp *)p)->dev.name;
}

static uint32_t blocks_most(const struct load *l, uint32_t n)
{
	uint32_t most = 1;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t b = (l->a.job[i].body_len + 15) / 16;

		most = b > most ? b : most;
	}
	return most;
}

static cl_int dispatch(struct cmp *c, const struct load *l, cl_uint n)
{
	size_t packets[] = {n}, blocks[] = {blocks_most(l, n), n};
	size_t groups = (n + GROUP - 1) / GROUP, most = (size_t)c->units * GROUPS_PER_UNIT;
	size_t all[] = {(groups < most ? groups : most) * GROUP}, group[] = {GROUP};
	cl_int err = 0;

	for (int k = 0; k < STEPS && c->kernel[k]; k++)
		err |= clSetKernelArg(c->kernel[k], 1, sizeof(n), &n);
	if (c->design == PERSISTENT)
		return err ? err
			   : clEnqueueNDRangeKernel(
				     c->cq, c->kernel[0], 1, NULL, all, group, 0, NULL, NULL);
	for (int k = 0; k < STEPS; k++)
		err = err ? err
			  : clEnqueueNDRangeKernel(c->cq, c->kernel[k], k == 1 ? 2 : 1, NULL,
				    k == 1 ? blocks : packets, NULL, 0, NULL, NULL);
	return err;
}

static cl_int copy(struct cmp *c, struct load *l, uint32_t n, bool there)
{
	size_t packets = (size_t)n * ARENA_SLOT_LEN;
	struct arena *a = &l->a;
	cl_int err;

	if (there) {
		err = clEnqueueWriteBuffer(
			c->cq, c->job, CL_FALSE, 0, n * sizeof(*a->job), a->job, 0, NULL, NULL);
		return err ? err
			   : clEnqueueWriteBuffer(
				     c->cq, c->in, CL_FALSE, 0, packets, a->in, 0, NULL, NULL);
	}
	err = clEnqueueReadBuffer(c->cq, c->out, CL_FALSE, 0, packets, a->out, 0, NULL, NULL);
	return err ? err
		   : clEnqueueReadBuffer(c->cq, c->status, CL_FALSE, 0, n * sizeof(*a->status),
			     a->status, 0, NULL, NULL);
}

static int cmp_run(void *ptr, struct load *l, uint32_t n)
{
	struct cmp *c = ptr;
	cl_int err = c->dev.zero_copy ? 0 : copy(c, l, n, true);
	uint32_t bad = 0;

	err = err ? err : dispatch(c, l, n);
	if (!err && !c->dev.zero_copy)
		err = copy(c, l, n, false);
	if (err || clFinish(c->cq))
		return -EIO;
	for (uint32_t i = 0; i < n; i++)
		bad |= l->a.status[i];
	return bad ? -EBADMSG : 0;
}

const struct bench_impl bench_impl_massive = {.name = "massively-parallel",
	.can = cmp_can,
	.open = massive_open,
	.close = cmp_close,
	.device = cmp_device,
	.run = cmp_run};

const struct bench_impl bench_impl_persistent = {.name = "persistent-thread",
	.can = cmp_can,
	.open = persistent_open,
	.close = cmp_close,
	.device = cmp_device,
	.run = cmp_run};
