/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The OpenCL engine: one dispatch per batch. On a CPU, the arena is the device's memory, by address
 * or as buffers. For other devices, packets are packed and copied (opencl_copy.c). Everything but
 * run() and key_changed() runs in the control thread, because PoCL's set-up is not thread-safe.
 * Each queue has its own context, so workers share nothing. Supports all ciphers of layout.h. */
#include "batch/opencl.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/lines.h"
#include "base/log.h"
#include "batch/engine.h"
#include "batch/opencl_cache.h"
#include "batch/opencl_copy.h"
#include "batch/order.h"
#include "packet/arena.h"

#define PAGE       4096u
#define TIMEOUT_MS 1000u

struct engine {
	struct opencl_device dev;
	struct opencl_source src;
	struct opencl_shape shape;
	struct opencl_binary binary;
	uint32_t timeout_ms, depth;
	char name[384];
	char cache[OPENCL_CACHE_MADE]; /* removed with this engine */
};

struct engine_queue {
	struct engine *e;
	const struct arena *arena;
	cl_context ctx;
	cl_command_queue cq;
	cl_program program;
	cl_kernel kernel
		[ENGINE_DEPTH_MAX]; /* one per set in flight; more than one only with copying */
	struct opencl_mems mem;     /* zero-copy, unless by address */
	struct xc_place place;      /* by address: the kernel's only argument is where this is */
	/* zero-copy: [slots], page-aligned: the order in which lanes take jobs */
	uint32_t *job_order;
	/* [key_slots]: enum order_key; announced by key_changed(), or the plain pair */
	uint8_t *key_kind;
	bool in_order;            /* job_order is 0, 1, 2 ... */
	struct opencl_copy *copy; /* NULL: zero-copy */
};

/* --- The engine ------------------------------------------------------------------------------- */

/* Whether to use VAES: four AES blocks per instruction. */
static bool vaes_usable(const struct opencl_device *dev)
{
#if defined(__x86_64__)
	unsigned a, b, c = 0, d;

	/* clang 14's __builtin_cpu_supports() does not know VAES: leaf 7, ECX bit 9. g711.cl uses
	 * AVX512-VBMI, bit 1, which all these processors have. */
	if (!__get_cpuid_count(7, 0, &a, &b, &c, &d))
		return false;
	return dev->zero_copy && __builtin_cpu_supports("avx512vl") &&
		__builtin_cpu_supports("avx512bw") && c >> 9 & c >> 1 & 1;
#else
	(void)dev;
	return false;
#endif
}

static int build(cl_program *out, cl_context ctx, struct engine *e, char *err, size_t err_len)
{
	struct opencl_build how = {ctx, e->dev.id, &e->src, &e->shape, &e->binary};

	return opencl_build(out, &how, err, err_len);
}

/* Compiles the kernels when the engine is opened, so that errors show before the first queue is
 * created. */
static int try_build(struct engine *e, char *err, size_t err_len)
{
	cl_program program;
	cl_int res;
	cl_context ctx = clCreateContext(NULL, 1, &e->dev.id, NULL, NULL, &res);
	int built;

	if (!ctx) {
		snprintf(err, err_len, "opencl: %s: %s (%d)", e->dev.name, opencl_strerror(res),
			res);
		return -EIO;
	}
	built = build(&program, ctx, e, err, err_len);
	if (!built)
		clReleaseProgram(program);
	clReleaseContext(ctx);
	return built;
}

/* Chooses the number of lanes, and AES instructions if the processor has them. The child process
 * has already filled PoCL's cache with this choice. Devices that take buffers always use scalar
 * lanes. */
static void shape_choose(struct engine *e, uint32_t flags)
{
	bool scalar = e->dev.scalar;
	bool portable = scalar || flags & ENGINE_PORTABLE_AES;

	e->shape = (struct opencl_shape){.lanes = scalar ? 1 : 16,
		.groups = flags & ENGINE_TWO_GROUPS ? 2 : 1,
		.words = e->dev.words,
		.flags = flags,
		.aes = portable ? OPENCL_AES_PORTABLE : opencl_aes(&e->dev),
		.by_address = !scalar && e->dev.zero_copy && opencl_by_address(&e->dev)};
	if (e->shape.aes != OPENCL_AES_PORTABLE) {
		e->shape.vaes = e->shape.aes == OPENCL_AES_COMPILER && vaes_usable(&e->dev);
		if (!opencl_probe(&e->dev, &e->src, &e->shape, 1)) {
			e->shape.vaes = false;
			if (e->shape.aes == OPENCL_AES_PROCESSOR)
				e->shape.aes = OPENCL_AES_PORTABLE;
		}
	}
	snprintf(e->name, sizeof(e->name), "%s, %u lane%s%s%s", e->dev.name, e->shape.lanes,
		e->shape.lanes > 1 ? "s" : "", e->shape.groups > 1 ? ", two hashes at once" : "",
		e->shape.aes == OPENCL_AES_PORTABLE ? ", portable AES"
			: e->shape.vaes             ? ", VAES"
						    : ", AES-NI");
}

static void opencl_close(struct engine *e)
{
	if (!e)
		return;
	opencl_source_free(&e->src);
	opencl_binary_free(&e->binary);
	opencl_cache_remove(e->cache);
	free(e);
}

static int opencl_open(
	struct engine **out, const struct engine_config *cfg, char *err, size_t err_len)
{
	struct engine *e = calloc(1, sizeof(*e));
	int res;

	if (!e)
		return -ENOMEM;
	/* PoCL: run kernels in the thread that waits for them, which is our worker. Its default
	 * device hands each dispatch to other threads, which costs several times a small batch.
	 * Read when the ICD loader is first used. */
	if (setenv("POCL_DEVICES", "basic", 0)) {
		free(e);
		return -ENOMEM;
	}
	res = opencl_cache_choose(e->cache, err, err_len);
	if (!res)
		res = opencl_device_choose(&e->dev, cfg, err, err_len);
	if (!res)
		res = opencl_source_load(&e->src, cfg->kernel_dir, err, err_len);
	if (res) {
		opencl_close(e);
		return res;
	}
	e->timeout_ms = cfg->timeout_ms ? cfg->timeout_ms : TIMEOUT_MS;
	e->depth = cfg->depth ? min_u32(cfg->depth, ENGINE_DEPTH_MAX) : 1;
	if (cfg->flags & ENGINE_SCALAR_LANES)
		e->dev.scalar = true;
	if (cfg->flags & ENGINE_OWN_MEMORY)
		e->dev.zero_copy = false;
	shape_choose(e, cfg->flags);
	res = try_build(e, err, err_len);
	if (res) {
		opencl_close(e);
		return res;
	}
	*out = e;
	return 0;
}

static const char *opencl_device(const struct engine *e)
{
	return e->name;
}

/* --- Queues ----------------------------------------------------------------------------------- */

static void opencl_queue_destroy(struct engine_queue *q)
{
	cl_mem mem[] = {q->mem.job, q->mem.key, q->mem.in, q->mem.out, q->mem.status, q->mem.order};
	bool copies = q->copy != NULL, hangs = false;

	if (q->cq && !copies)
		clFinish(q->cq);
	if (copies)
		hangs = opencl_copy_destroy(q->copy);
	for (size_t i = 0; i < ARRAY_LEN(mem) && !copies; i++)
		if (mem[i])
			clReleaseMemObject(mem[i]);
	for (size_t i = 0; i < ARRAY_LEN(q->kernel) && !hangs; i++)
		if (q->kernel[i])
			clReleaseKernel(q->kernel[i]);
	if (q->program && !hangs)
		clReleaseProgram(q->program);
	if (q->cq && !copies)
		clReleaseCommandQueue(q->cq);
	if (q->ctx && !hangs)
		clReleaseContext(q->ctx);
	if (hangs)
		log_warn("engine opencl: %s hangs: its buffers of %u packets are not freed",
			q->e->dev.name, q->arena->slots);
	free(q->job_order);
	free(q->key_kind);
	free(q);
}

static cl_int mem_create(
	cl_mem *out, struct engine_queue *q, cl_mem_flags flags, void *host, size_t len)
{
	cl_int err;

	*out = clCreateBuffer(q->ctx, flags | CL_MEM_USE_HOST_PTR, len, host, &err);
	return err;
}

/* The arena itself. */
static cl_int buffers_create(struct engine_queue *q)
{
	const struct arena *a = q->arena;
	struct opencl_mems *m = &q->mem;
	size_t packets = (size_t)a->slots * ARENA_SLOT_LEN;
	cl_int err = mem_create(&m->in, q, CL_MEM_READ_ONLY, a->in, packets);

	if (!err)
		err = mem_create(&m->out, q, CL_MEM_READ_WRITE, a->out, packets);
	if (!err)
		err = mem_create(&m->job, q, CL_MEM_READ_ONLY, a->job, a->slots * sizeof(*a->job));
	if (!err)
		err = mem_create(
			&m->status, q, CL_MEM_WRITE_ONLY, a->status, a->slots * sizeof(*a->status));
	if (!err)
		err = mem_create(
			&m->key, q, CL_MEM_READ_ONLY, a->key, a->key_slots * sizeof(*a->key));
	if (!err)
		err = mem_create(&m->order, q, CL_MEM_READ_ONLY, q->job_order,
			a->slots * sizeof(*q->job_order));
	return err;
}

static int memory_create(struct engine_queue *q)
{
	const struct engine *e = q->e;
	struct opencl_copy_config copy = {.ctx = q->ctx,
		.dev = e->dev.id,
		.arena = q->arena,
		.chunk_min = e->shape.flags & ENGINE_SMALL_CHUNKS ? 16 : OPENCL_CHUNK_MIN,
		.timeout_ns = e->timeout_ms * 1000000ull,
		.depth = e->depth};
	cl_int err = CL_SUCCESS;

	if (!e->dev.zero_copy) {
		int res = opencl_copy_create(&q->copy, &copy);

		if (res)
			return res;
		q->cq = opencl_copy_queue(q->copy);
		return 0;
	}
	q->cq = clCreateCommandQueue(q->ctx, e->dev.id, 0, &err);
	if (!err && !e->shape.by_address)
		err = buffers_create(q);
	return err ? -EIO : 0;
}

static cl_int args_set(cl_kernel k, const struct opencl_mems *m)
{
	cl_int err = clSetKernelArg(k, 0, sizeof(m->job), &m->job);

	err = err ? err : clSetKernelArg(k, 2, sizeof(m->key), &m->key);
	err = err ? err : clSetKernelArg(k, 3, sizeof(m->in), &m->in);
	err = err ? err : clSetKernelArg(k, 4, sizeof(m->out), &m->out);
	err = err ? err : clSetKernelArg(k, 5, sizeof(m->status), &m->status);
	return err ? err : clSetKernelArg(k, 6, sizeof(m->order), &m->order);
}

static cl_int place_set(struct engine_queue *q, cl_kernel k)
{
	const struct arena *a = q->arena;
	const cl_ulong at = (uintptr_t)&q->place;

	q->place = (struct xc_place){.job = (uintptr_t)a->job,
		.key = (uintptr_t)a->key,
		.in = (uintptr_t)a->in,
		.out = (uintptr_t)a->out,
		.status = (uintptr_t)a->status,
		.order = (uintptr_t)q->job_order};
	return clSetKernelArg(k, 0, sizeof(at), &at);
}

/* A device with scalar lanes runs a work-group's items in parallel. */
static uint32_t group_len(const struct engine_queue *q)
{
	return q->e->dev.scalar && q->copy ? OPENCL_SCALAR_GROUP : 1;
}

static cl_int dispatch_from(struct engine_queue *q, cl_kernel k, cl_uint n, size_t offset)
{
	size_t width = q->e->shape.lanes, local = group_len(q);
	size_t global = n ? (n + width - 1) / width : 1;
	cl_int err = CL_SUCCESS;

	if (q->e->shape.by_address)
		q->place.n = n;
	else
		err = clSetKernelArg(k, 1, sizeof(n), &n);
	if (err)
		return err;
	global = (global + local - 1) / local * local;
	return clEnqueueNDRangeKernel(q->cq, k, 1, &offset, &global, &local, 0, NULL, NULL);
}

static cl_int dispatch(struct engine_queue *q, cl_uint n)
{
	return dispatch_from(q, q->kernel[0], n, 0);
}

/* n = 0 does nothing, but prepares the device (PoCL compiles at the first dispatch). */
static cl_int kernel_make(struct engine_queue *q, uint32_t set)
{
	cl_kernel *k = &q->kernel[set];
	cl_int err;

	if (q->e->shape.by_address) {
		*k = clCreateKernel(q->program, "xc_recrypt_place", &err);
		err = err ? err : place_set(q, *k);
	} else {
		*k = clCreateKernel(q->program, "xc_recrypt_batch", &err);
		err = err ? err : args_set(*k, q->copy ? opencl_copy_mems(q->copy, set) : &q->mem);
	}
	if (!err)
		err = dispatch_from(q, *k, 0, 0);
	if (!err && q->copy) /* split batches: another kernel for PoCL */
		err = dispatch_from(q, *k, 0, 1);
	return err ? err : clFinish(q->cq);
}

static int queue_build(struct engine_queue *q)
{
	struct engine *e = q->e;
	char line[512] = "";
	cl_int err;
	int res = 0;

	q->ctx = clCreateContext(NULL, 1, &e->dev.id, NULL, NULL, &err);
	if (q->ctx)
		res = memory_create(q);
	if (res) {
		log_err("opencl: %s: no memory for %u packets and %u keys", e->dev.name,
			q->arena->slots, q->arena->key_slots);
		return res;
	}
	if (!err && build(&q->program, q->ctx, e, line, sizeof(line))) {
		log_err("%s", line);
		return -EIO;
	}
	for (uint32_t i = 0; i < (q->copy ? e->depth : 1) && !err; i++)
		err = kernel_make(q, i);
	if (!err)
		return 0;
	log_err("opencl: %s: %s (%d)", e->dev.name, opencl_strerror(err), err);
	return -EIO;
}

static int opencl_queue_create(
	struct engine_queue **out, struct engine *e, const struct arena *arena)
{
	struct engine_queue *q = lines_alloc(1, sizeof(*q));
	int err;

	if (!q)
		return -ENOMEM;
	q->e = e;
	q->arena = arena;
	q->job_order = aligned_alloc(
		PAGE, (arena->slots * sizeof(*q->job_order) + PAGE - 1) / PAGE * PAGE);
	q->key_kind = calloc(arena->key_slots, sizeof(*q->key_kind));
	err = q->job_order && q->key_kind ? queue_build(q) : -ENOMEM;
	if (!err)
		q->key_kind[0] = q->key_kind[1] = ORDER_KEY_PLAIN;
	if (err) {
		opencl_queue_destroy(q);
		return err;
	}
	*out = q;
	return 0;
}

/* --- Work ------------------------------------------------------------------------------------- */

static bool key_can(const struct xc_key *k)
{
	bool rounds = k->rounds == 10 || k->rounds == 12 || k->rounds == 14;

	if (k->valid != XC_KEY_VALID || k->tag_len > 16)
		return false;
	switch (k->cipher) {
	case XC_CIPHER_NULL:
		return k->auth == XC_AUTH_NULL || k->auth == XC_AUTH_HMAC_SHA1;
	case XC_CIPHER_AES_CM:
		return rounds && (k->auth == XC_AUTH_NULL || k->auth == XC_AUTH_HMAC_SHA1);
	case XC_CIPHER_AES_F8:
		return k->rounds == 10 && (k->auth == XC_AUTH_NULL || k->auth == XC_AUTH_HMAC_SHA1);
	case XC_CIPHER_GCM:
		return rounds && k->auth == XC_AUTH_GCM && k->tag_len == 16;
	}
	return false;
}

static int opencl_key_changed(struct engine_queue *q, uint32_t slot)
{
	const struct arena *a = q->arena;

	if (slot >= a->key_slots || a->key_slots - slot < 2)
		return -EINVAL;
	q->key_kind[slot] = q->key_kind[slot + 1] = ORDER_KEY_NONE;
	if (q->copy) {
		int err = opencl_copy_key(q->copy, slot);

		if (err)
			return err;
	}
	/* Keys that kernels do not support, or whose rounds exceed the slot, stay unannounced. */
	for (uint32_t i = slot; i < slot + 2; i++)
		if (key_can(&a->key[i]))
			q->key_kind[i] = (uint8_t)order_key_of(&a->key[i]);
	return 0;
}

static bool opencl_can(
	const struct engine_queue *q, const struct xc_key *rx, const struct xc_key *tx)
{
	(void)q;
	return key_can(rx) && key_can(tx);
}

/* Whether one side's bytes fit into the slot: body_end, and a tag of maximum length. */
static inline bool fits_slot(uint32_t off, uint32_t body_end, uint32_t tag_off, uint32_t slots)
{
	uint32_t tag_end = tag_off + 20; /* AEAD: the word */
	uint32_t end = body_end > tag_end ? body_end : tag_end;

	return off / ARENA_SLOT_LEN < slots &&
		off % ARENA_SLOT_LEN + end + XC_SLACK <= ARENA_SLOT_LEN;
}

/* Whether a job stays within its packets' slots, and uses announced keys: devices do not check. */
static inline bool job_fits(const struct engine_queue *q, const struct xc_job *j)
{
	const struct arena *a = q->arena;
	uint32_t body_end = j->hdr_len + j->body_len + 4;

	/* Larger values could wrap a sum. */
	if ((j->hdr_len | j->body_len | j->rx_tag_off | j->tx_tag_off) > UINT16_MAX)
		return false;
	return j->rx_key < a->key_slots && j->tx_key < a->key_slots && q->key_kind[j->rx_key] &&
		q->key_kind[j->tx_key] && j->hdr_len >= (j->flags & XC_JOB_RTCP ? 8 : 12) &&
		fits_slot(j->in_off, body_end, j->rx_tag_off, a->slots) &&
		fits_slot(j->out_off, body_end, j->tx_tag_off, a->slots);
}

/* Jobs that exceed their slots get XC_BAD_TAG and are not run. Returns the number of remaining
 * jobs. *alike: whether all of them use the same code. */
static uint32_t jobs_check(const struct engine_queue *q, const struct batch *b, bool *alike)
{
	uint32_t n = 0, class = 0, differ = 0;

	for (uint32_t i = 0; i < b->n; i++) {
		const struct xc_job *j = &b->job[i];
		uint32_t this;

		if (!job_fits(q, j)) {
			b->status[i] = XC_BAD_TAG;
			continue;
		}
		this = order_class(j, q->key_kind);
		class = n++ ? class : this;
		differ |= this ^ class;
	}
	*alike = !differ;
	return n;
}

/* Writes the order of the jobs, grouped by code. If some jobs do not fit, which is rare, lists only
 * the others, unsorted. False: nothing was written, and the order 0, 1, 2 ... may be used. */
static bool jobs_order(
	const struct engine_queue *q, uint32_t *order, const struct batch *b, bool all, bool alike)
{
	for (uint32_t i = 0, n = 0; !all && i < b->n; i++)
		if (job_fits(q, &b->job[i]))
			order[n++] = i;
	return !all || (!alike && order_jobs(order, b->job, b->n, q->key_kind));
}

_Static_assert(XC_KEY_LINES == 4, "key_ahead()");

static inline void key_ahead(const struct xc_key *key)
{
	const uint8_t *k = (const uint8_t *)key;

	__builtin_prefetch(k, 0, 2);
	__builtin_prefetch(k + 64, 0, 2);
	__builtin_prefetch(k + 128, 0, 2);
	__builtin_prefetch(k + 192, 0, 2);
}

/* Prefetches the first packets' keys, which no work-item does (layout.h), while the dispatch is set
 * up. */
static void keys_ahead(const struct engine_queue *q, const struct xc_job *job, uint32_t n)
{
	const struct arena *a = q->arena;

	for (uint32_t i = 0; i < n && i < XC_AHEAD_PACKETS; i++) {
		const struct xc_job *j = &job[q->job_order[i]];

		key_ahead(&a->key[j->rx_key]);
		key_ahead(&a->key[j->tx_key]);
	}
}

/* Runs the batch in the arena itself. A kernel with buffers addresses the arena from its beginning,
 * so the indexes in the order count from there. */
static int run_in_place(struct engine_queue *q, const struct batch *b, uint32_t n, bool alike)
{
	const struct xc_job *job = q->e->shape.by_address ? b->job : q->arena->job;
	uint32_t first = (uint32_t)(b->job - job);
	bool ordered = jobs_order(q, q->job_order, b, n == b->n, alike);
	cl_int err;

	for (uint32_t i = 0; !ordered && (!q->in_order || first) && i < q->arena->slots - first;
		i++)
		q->job_order[i] = first + i;
	for (uint32_t i = 0; ordered && first && i < n; i++)
		q->job_order[i] += first;
	q->in_order = !ordered && !first;
	keys_ahead(q, job, n);
	q->place.job = (uintptr_t)job;
	q->place.status = (uintptr_t)(b->status - first);
	err = dispatch(q, n);
	err = err ? err : clFinish(q->cq);
	return err ? -EIO : 0;
}

/* Returns the number of jobs that fit, and sets the status of the others. -EINVAL: the batch is not
 * in the arena. */
static int batch_check(const struct engine_queue *q, const struct batch *b, bool *alike)
{
	const struct arena *a = q->arena;
	size_t first = (size_t)(b->job - a->job);

	if (b->job < a->job || first > a->slots || b->n > a->slots - first ||
		b->status != a->status + first || (a->batch_max && b->n > a->batch_max))
		return -EINVAL;
	return (int)jobs_check(q, b, alike);
}

static int opencl_submit(struct engine_queue *q, const struct batch *b)
{
	uint32_t *order;
	bool alike;
	int n;
	struct opencl_dispatch d;

	if (!q->copy || opencl_copy_flying(q->copy) == q->e->depth)
		return -EBUSY;
	n = batch_check(q, b, &alike);
	if (n < 0)
		return n;
	order = opencl_copy_order(q->copy);
	if (!jobs_order(q, order, b, (uint32_t)n == b->n, alike))
		for (uint32_t i = 0; i < (uint32_t)n; i++)
			order[i] = i;
	d = (struct opencl_dispatch){.kernel = q->kernel[opencl_copy_next(q->copy)],
		.width = q->e->shape.lanes,
		.local = group_len(q),
		.jobs = (uint32_t)n};
	return opencl_copy_submit(q->copy, &d, b);
}

static int opencl_collect(struct engine_queue *q, uint64_t until_ns)
{
	return q->copy ? opencl_copy_collect(q->copy, until_ns) : -EINVAL;
}

static uint32_t opencl_depth(const struct engine *e)
{
	return e->dev.zero_copy ? 1 : e->depth;
}

static int opencl_run(struct engine_queue *q, struct batch *b)
{
	bool alike;
	int n;

	if (q->copy) {
		n = opencl_copy_flying(q->copy) ? -EBUSY : opencl_submit(q, b);
		return n ? n : opencl_copy_collect(q->copy, UINT64_MAX);
	}
	n = batch_check(q, b, &alike);
	return n <= 0 ? n : run_in_place(q, b, (uint32_t)n, alike);
}

const struct engine_ops engine_opencl = {
	.name = "opencl",
	.open = opencl_open,
	.close = opencl_close,
	.device = opencl_device,
	.queue_create = opencl_queue_create,
	.queue_destroy = opencl_queue_destroy,
	.key_changed = opencl_key_changed,
	.can = opencl_can,
	.run = opencl_run,
	.depth = opencl_depth,
	.submit = opencl_submit,
	.collect = opencl_collect,
};
