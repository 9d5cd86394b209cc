/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Batches to and from a device with its own memory (opencl_copy.h). Arena slots are mostly empty, so packets are packed
 * one behind the other, in the order in which lanes take them: only what is used crosses the bus. The device and its
 * driver only ever know memory of ours (pinned) and never the arena: a device that hangs may write there later and hurts
 * nobody. A large batch is cut; uploads and downloads have a queue each, kernels one for each part, ordered by events. */
#include "batch/opencl_copy.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/secmem.h"

enum { CHUNKS = 4, KEY_RING = 64, SPIN_NS = 20000, NAP_NS = 10000 };

/* Memory of both sides: the device's, and ours, which stays mapped. */
struct pinned {
	cl_mem device, host;
	void *p;
	size_t len;
};

struct chunk {
	uint32_t first, n; /* positions in the order */
	uint32_t in, in_len, out, out_len;
	cl_event last; /* of the last command that was sent for it */
	bool whole;    /* all commands were sent */
};

struct opencl_copy {
	struct opencl_copy_config cfg;
	cl_command_queue up, run[CHUNKS],
		down; /* kernels of different chunks may run side by side */
	struct pinned in, out, job, status;
	struct pinned
		key;  /* the device's key table; ours is a ring of KEY_RING pairs on their way */
	cl_mem order; /* 0, 1, 2 ...: jobs are packed in order */
	struct opencl_mems mems;
	cl_event key_sent[KEY_RING];
	uint32_t key_next;
	bool hangs;
};

/* --- Waiting ------------------------------------------------------------------------------------------------------ */

/* Not clWaitForEvents(): that has no limit. 0, -EIO or -ETIMEDOUT. */
static int event_wait(struct opencl_copy *c, cl_event e, uint64_t until_ns)
{
	const struct timespec nap = {.tv_nsec = NAP_NS};
	uint64_t start = clock_mono_ns();

	for (;;) {
		cl_int state;
		uint64_t now;

		if (clGetEventInfo(
			    e, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(state), &state, NULL) ||
			state < 0)
			return -EIO;
		if (state == CL_COMPLETE)
			return 0;
		now = clock_mono_ns();
		if (now >= until_ns) {
			c->hangs = true;
			return -ETIMEDOUT;
		}
		if (now - start > SPIN_NS)
			nanosleep(&nap, NULL);
	}
}

static uint64_t deadline(const struct opencl_copy *c)
{
	return clock_mono_ns() + c->cfg.timeout_ns;
}

/* --- Life --------------------------------------------------------------------------------------------------------- */

static cl_int pinned_create(
	struct opencl_copy *c, struct pinned *m, cl_mem_flags flags, size_t device_len, size_t len)
{
	cl_int err;

	m->len = len;
	m->device = clCreateBuffer(c->cfg.ctx, flags, device_len, NULL, &err);
	if (!err)
		m->host = clCreateBuffer(
			c->cfg.ctx, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, len, NULL, &err);
	if (!err)
		m->p = clEnqueueMapBuffer(c->up, m->host, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0,
			len, 0, NULL, NULL, &err);
	if (!err)
		memset(m->p, 0, len);
	return err;
}

static void pinned_destroy(struct opencl_copy *c, struct pinned *m)
{
	if (m->p) {
		secmem_wipe(m->p, m->len);
		(void)clEnqueueUnmapMemObject(c->up, m->host, m->p, 0, NULL, NULL);
		(void)clFinish(c->up);
	}
	if (m->host)
		clReleaseMemObject(m->host);
	if (m->device)
		clReleaseMemObject(m->device);
}

static cl_int queues_create(struct opencl_copy *c)
{
	cl_int err = CL_SUCCESS;

	c->up = clCreateCommandQueue(c->cfg.ctx, c->cfg.dev, 0, &err);
	if (!err)
		c->down = clCreateCommandQueue(c->cfg.ctx, c->cfg.dev, 0, &err);
	for (int i = 0; i < CHUNKS && !err; i++)
		c->run[i] = clCreateCommandQueue(c->cfg.ctx, c->cfg.dev, 0, &err);
	return err;
}

static cl_int order_create(struct opencl_copy *c)
{
	uint32_t slots = c->cfg.arena->slots, *order = calloc(slots, sizeof(*order));
	cl_int err = CL_OUT_OF_HOST_MEMORY;

	for (uint32_t i = 0; order && i < slots; i++)
		order[i] = i;
	if (order)
		c->order = clCreateBuffer(c->cfg.ctx, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR,
			slots * sizeof(*order), order, &err);
	free(order);
	return err;
}

static cl_int memory_create(struct opencl_copy *c)
{
	const struct arena *a = c->cfg.arena;
	size_t packets = (size_t)a->slots * ARENA_SLOT_LEN, jobs = a->slots * sizeof(*a->job),
	       status = a->slots * sizeof(*a->status), keys = a->key_slots * sizeof(*a->key);
	cl_int err = pinned_create(c, &c->in, CL_MEM_READ_ONLY, packets, packets);

	err = err ? err : pinned_create(c, &c->out, CL_MEM_READ_WRITE, packets, packets);
	err = err ? err : pinned_create(c, &c->job, CL_MEM_READ_ONLY, jobs, jobs);
	err = err ? err : pinned_create(c, &c->status, CL_MEM_READ_WRITE, status, status);
	err = err
		? err
		: pinned_create(c, &c->key, CL_MEM_READ_ONLY, keys, KEY_RING * 2 * sizeof(*a->key));
	err = err ? err : order_create(c);
	/* All of the table as it is now: mostly zeroes, and the plain pair. */
	err = err ? err
		  : clEnqueueWriteBuffer(
			    c->up, c->key.device, CL_TRUE, 0, keys, a->key, 0, NULL, NULL);
	c->mems = (struct opencl_mems){.job = c->job.device,
		.key = c->key.device,
		.in = c->in.device,
		.out = c->out.device,
		.status = c->status.device,
		.order = c->order};
	return err;
}

int opencl_copy_create(struct opencl_copy **out, const struct opencl_copy_config *cfg)
{
	struct opencl_copy *c = calloc(1, sizeof(*c));
	cl_int err;

	if (!c)
		return -ENOMEM;
	c->cfg = *cfg;
	err = queues_create(c);
	err = err ? err : memory_create(c);
	if (err) {
		(void)opencl_copy_destroy(c);
		return err == CL_OUT_OF_HOST_MEMORY || err == CL_MEM_OBJECT_ALLOCATION_FAILURE
			? -ENOMEM
			: -EIO;
	}
	*out = c;
	return 0;
}

/* A device's memory is not cleared when it is freed: the next process could read keys there. */
static void keys_zero(struct opencl_copy *c)
{
	const struct arena *a = c->cfg.arena;
	const cl_ulong2 zero = {{0, 0}};
	cl_event done;

	if (!c->key.device || c->hangs)
		return;
	if (clEnqueueFillBuffer(c->up, c->key.device, &zero, sizeof(zero), 0,
		    a->key_slots * sizeof(*a->key), 0, NULL, &done))
		return;
	(void)clFlush(c->up);
	(void)event_wait(c, done, deadline(c));
	if (!c->hangs)
		clReleaseEvent(done);
}

bool opencl_copy_destroy(struct opencl_copy *c)
{
	if (!c)
		return false;
	keys_zero(c);
	if (c->hangs)
		return true;
	for (int i = 0; i < KEY_RING; i++)
		if (c->key_sent[i])
			clReleaseEvent(c->key_sent[i]);
	pinned_destroy(c, &c->in);
	pinned_destroy(c, &c->out);
	pinned_destroy(c, &c->job);
	pinned_destroy(c, &c->status);
	pinned_destroy(c, &c->key);
	if (c->order)
		clReleaseMemObject(c->order);
	for (int i = 0; i < CHUNKS; i++)
		if (c->run[i])
			clReleaseCommandQueue(c->run[i]);
	if (c->down)
		clReleaseCommandQueue(c->down);
	if (c->up)
		clReleaseCommandQueue(c->up);
	free(c);
	return false;
}

const struct opencl_mems *opencl_copy_mems(const struct opencl_copy *c)
{
	return &c->mems;
}

cl_command_queue opencl_copy_queue(const struct opencl_copy *c)
{
	return c->run[0];
}

/* --- Keys --------------------------------------------------------------------------------------------------------- */

static struct xc_key *ring_pair(const struct opencl_copy *c, uint32_t at)
{
	return (struct xc_key *)c->key.p + 2 * (size_t)at;
}

/* Wipes the copies of keys that have arrived; until_ns 0: without waiting. */
static int key_collect(struct opencl_copy *c, uint32_t at, uint64_t until_ns)
{
	cl_int state = CL_COMPLETE;
	int err = 0;

	if (!c->key_sent[at])
		return 0;
	if (until_ns)
		err = event_wait(c, c->key_sent[at], until_ns);
	else if (clGetEventInfo(c->key_sent[at], CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(state),
			 &state, NULL) ||
		state < 0)
		err = -EIO;
	if (err == -ETIMEDOUT || state > CL_COMPLETE)
		return err;
	clReleaseEvent(c->key_sent[at]);
	c->key_sent[at] = NULL;
	secmem_wipe(ring_pair(c, at), 2 * sizeof(struct xc_key));
	return err;
}

int opencl_copy_key(struct opencl_copy *c, uint32_t slot)
{
	uint32_t at = c->key_next++ % KEY_RING;
	int err;

	if (c->hangs)
		return -ETIMEDOUT;
	err = key_collect(c, at, deadline(c));
	if (err)
		return err;
	memcpy(ring_pair(c, at), &c->cfg.arena->key[slot], 2 * sizeof(struct xc_key));
	if (clEnqueueWriteBuffer(c->up, c->key.device, CL_FALSE, slot * sizeof(struct xc_key),
		    2 * sizeof(struct xc_key), ring_pair(c, at), 0, NULL, &c->key_sent[at])) {
		c->key_sent[at] = NULL;
		secmem_wipe(ring_pair(c, at), 2 * sizeof(struct xc_key));
		return -EIO;
	}
	return clFlush(c->up) ? -EIO : 0;
}

/* --- Batches ------------------------------------------------------------------------------------------------------ */

static uint32_t max_u32_of(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/* Body and word, or the tag behind an MKI and (AEAD) the word behind the tag: what the device looks at, or writes. */
static uint32_t extent(const struct xc_job *j, uint32_t tag_off)
{
	return max_u32_of(j->hdr_len + j->body_len + 4, tag_off + 20);
}

static uint32_t next_off(uint32_t off, uint32_t len)
{
	return (off + len + XC_SLACK + 63) / 64 * 64;
}

/* A job's extent is at most ARENA_SLOT_LEN with its slack (the engine has checked), so that all fit. */
static void chunk_pack(
	struct opencl_copy *c, struct chunk *ch, const struct batch *b, const uint32_t *order)
{
	uint32_t in = ch->in, out = ch->out;

	for (uint32_t i = ch->first; i < ch->first + ch->n; i++) {
		struct xc_job *j = (struct xc_job *)c->job.p + i;
		uint32_t in_len;

		*j = b->job[order[i]];
		in_len = extent(j, j->rx_tag_off);
		memcpy((uint8_t *)c->in.p + in, c->cfg.arena->in + j->in_off, in_len);
		j->in_off = in;
		j->out_off = out;
		in = next_off(in, in_len);
		out = next_off(out, extent(j, j->tx_tag_off));
	}
	ch->in_len = in - ch->in;
	ch->out_len = out - ch->out;
}

static void chunk_unpack(
	struct opencl_copy *c, const struct chunk *ch, struct batch *b, const uint32_t *order)
{
	for (uint32_t i = ch->first; i < ch->first + ch->n; i++) {
		const struct xc_job *packed = (const struct xc_job *)c->job.p + i;
		const struct xc_job *j = &b->job[order[i]];

		b->status[order[i]] = ((const uint32_t *)c->status.p)[i];
		memcpy(c->cfg.arena->out + j->out_off, (uint8_t *)c->out.p + packed->out_off,
			extent(j, j->tx_tag_off));
	}
}

/* The chunk's last event is now e. */
static void chunk_sent(struct chunk *ch, cl_event e)
{
	if (ch->last)
		clReleaseEvent(ch->last);
	ch->last = e;
}

static cl_int chunk_up(struct opencl_copy *c, struct chunk *ch)
{
	cl_event e;
	cl_int err = clEnqueueWriteBuffer(c->up, c->in.device, CL_FALSE, ch->in, ch->in_len,
		(uint8_t *)c->in.p + ch->in, 0, NULL, &e);

	if (err)
		return err;
	chunk_sent(ch, e);
	err = clEnqueueWriteBuffer(c->up, c->job.device, CL_FALSE,
		ch->first * sizeof(struct xc_job), ch->n * sizeof(struct xc_job),
		(struct xc_job *)c->job.p + ch->first, 0, NULL, &e);
	if (err)
		return err;
	chunk_sent(ch, e);
	return clFlush(c->up);
}

static cl_int chunk_run(cl_command_queue run, struct chunk *ch, const struct opencl_dispatch *d)
{
	cl_uint end = ch->first + ch->n;
	size_t offset = ch->first / d->width, local = d->local;
	size_t global = ((ch->n + d->width - 1) / d->width + local - 1) / local * local;
	cl_event e;
	cl_int err = clSetKernelArg(d->kernel, 1, sizeof(end), &end);

	if (!err)
		err = clEnqueueNDRangeKernel(
			run, d->kernel, 1, &offset, &global, &local, 1, &ch->last, &e);
	if (err)
		return err;
	chunk_sent(ch, e);
	return clFlush(run);
}

static cl_int chunk_down(struct opencl_copy *c, struct chunk *ch)
{
	cl_event e;
	cl_int err = clEnqueueReadBuffer(c->down, c->out.device, CL_FALSE, ch->out, ch->out_len,
		(uint8_t *)c->out.p + ch->out, 1, &ch->last, &e);

	if (err)
		return err;
	chunk_sent(ch, e);
	err = clEnqueueReadBuffer(c->down, c->status.device, CL_FALSE, ch->first * sizeof(uint32_t),
		ch->n * sizeof(uint32_t), (uint32_t *)c->status.p + ch->first, 0, NULL, &e);
	if (err)
		return err;
	chunk_sent(ch, e);
	ch->whole = true;
	return clFlush(c->down);
}

/* Packets per chunk: whole work-groups, and no more than CHUNKS of them. */
static uint32_t chunk_size(const struct opencl_copy *c, const struct opencl_dispatch *d)
{
	uint32_t unit = d->width * d->local, chunks = d->jobs / c->cfg.chunk_min;

	chunks = chunks < 1 ? 1 : chunks > CHUNKS ? CHUNKS : chunks;
	return ((d->jobs + chunks - 1) / chunks + unit - 1) / unit * unit;
}

int opencl_copy_run(struct opencl_copy *c, const struct opencl_dispatch *d, struct batch *b,
	const uint32_t *order)
{
	struct chunk chunk[CHUNKS] = {0};
	uint32_t size = chunk_size(c, d), n = 0;
	uint64_t until = deadline(c);
	cl_int err = CL_SUCCESS;
	int res = 0;

	if (c->hangs)
		return -ETIMEDOUT;
	for (uint32_t first = 0; first < d->jobs && !err; first += size) {
		struct chunk *ch = &chunk[n++], *before = n > 1 ? ch - 1 : NULL;

		ch->first = first;
		ch->n = min_u32(size, d->jobs - first);
		ch->in = before ? before->in + before->in_len : 0;
		ch->out = before ? before->out + before->out_len : 0;
		chunk_pack(c, ch, b, order);
		err = chunk_up(c, ch);
		err = err ? err : chunk_run(c->run[n - 1], ch, d);
		err = err ? err : chunk_down(c, ch);
	}
	/* Also after an error: nothing may still be on its way when the next batch is packed. */
	for (uint32_t i = 0; i < n && res != -ETIMEDOUT; i++) {
		int this = chunk[i].last ? event_wait(c, chunk[i].last, until) : -EIO;

		if (this == 0 && chunk[i].whole && !err)
			chunk_unpack(c, &chunk[i], b, order);
		if (chunk[i].last && this != -ETIMEDOUT)
			clReleaseEvent(chunk[i].last);
		res = this ? this : res;
	}
	for (uint32_t i = 0; i < KEY_RING && !res; i++)
		(void)key_collect(c, i, 0);
	return res ? res : err ? -EIO : 0;
}
