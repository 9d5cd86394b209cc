/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Batches to and from a device with its own memory (opencl_copy.h). Arena slots are mostly empty,
 * so packets are packed in the order of the lanes, and only used bytes cross the bus.
 *
 * The device and its driver see only pinned memory of ours, never the arena, so a hung device that
 * writes late damages nothing.
 *
 * A large batch is split. Uploads and downloads have one queue each, kernels one per part, and
 * events order them. So one batch is uploaded while another is computed and a third is downloaded.
 * Each batch in flight has its own memory. */
#include "batch/opencl_copy.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/secmem.h"
#include "batch/engine.h"
#include "packet/arena.h"

enum { CHUNKS = 4, KEY_RING = 64, SPIN_NS = 20000, NAP_NS = 10000 };

/* A buffer on the device, and its host copy, which stays mapped. */
struct pinned {
	cl_mem device, host;
	void *p;
	size_t len;
};

struct chunk {
	uint32_t first, n; /* positions in the order */
	uint32_t in, in_len, out, out_len;
	cl_event last; /* of the last command sent for it */
	bool whole;    /* all commands were sent */
};

/* The memory of one batch in flight. */
struct set {
	struct pinned in, out, job, status;
	struct opencl_mems mems;
	uint32_t *order; /* [batch_max] */
	struct batch b;
	struct chunk chunk[CHUNKS];
	uint32_t chunks, collected; /* chunks; collected ones */
	uint64_t since_ns;          /* when it was sent, or when the batch before it was
				     * collected */
	int res;                    /* of those collected */
};

struct opencl_copy {
	struct opencl_copy_config cfg;
	cl_command_queue up, run[CHUNKS],
		down;                     /* kernels of different chunks may run in parallel */
	struct set set[ENGINE_DEPTH_MAX]; /* [cfg.depth], a ring */
	uint32_t oldest, flying;
	/* the device's key table; its host copy is a ring of KEY_RING pairs being uploaded */
	struct pinned key;
	cl_mem order; /* 0, 1, 2 ...: jobs are packed in order */
	cl_event key_sent[KEY_RING];
	uint32_t key_next;
	bool hangs;
};

/* --- Waiting ---------------------------------------------------------------------------------- */

int opencl_wait(cl_event e, uint64_t until_ns, uint64_t hang_ns)
{
	const struct timespec nap = {.tv_nsec = NAP_NS};
	uint64_t start = 0;

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
		start = start ? start : now;
		if (now >= hang_ns)
			return -ETIMEDOUT;
		if (now >= until_ns)
			return -EAGAIN;
		if (now - start > SPIN_NS)
			nanosleep(&nap, NULL);
	}
}

static int event_wait(struct opencl_copy *c, cl_event e, uint64_t until_ns, uint64_t hang_ns)
{
	int res = opencl_wait(e, until_ns, hang_ns);

	c->hangs |= res == -ETIMEDOUT;
	return res;
}

/* Waits until the event completes, or the device hangs. */
static int event_wait_for(struct opencl_copy *c, cl_event e)
{
	return event_wait(c, e, UINT64_MAX, clock_mono_ns() + c->cfg.timeout_ns);
}

/* --- Life ------------------------------------------------------------------------------------- */

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

static void set_destroy(struct opencl_copy *c, struct set *s)
{
	pinned_destroy(c, &s->in);
	pinned_destroy(c, &s->out);
	pinned_destroy(c, &s->job);
	pinned_destroy(c, &s->status);
	free(s->order);
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

static uint32_t batch_max(const struct opencl_copy *c)
{
	const struct arena *a = c->cfg.arena;

	return a->batch_max ? a->batch_max : a->slots;
}

static cl_int order_create(struct opencl_copy *c)
{
	uint32_t n = batch_max(c), *order = calloc(n, sizeof(*order));
	cl_int err = CL_OUT_OF_HOST_MEMORY;

	for (uint32_t i = 0; order && i < n; i++)
		order[i] = i;
	if (order)
		c->order = clCreateBuffer(c->cfg.ctx, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR,
			n * sizeof(*order), order, &err);
	free(order);
	return err;
}

static cl_int set_create(struct opencl_copy *c, struct set *s)
{
	size_t n = batch_max(c), packets = n * ARENA_SLOT_LEN, jobs = n * sizeof(struct xc_job),
	       status = n * sizeof(uint32_t);
	cl_int err = pinned_create(c, &s->in, CL_MEM_READ_ONLY, packets, packets);

	err = err ? err : pinned_create(c, &s->out, CL_MEM_READ_WRITE, packets, packets);
	err = err ? err : pinned_create(c, &s->job, CL_MEM_READ_ONLY, jobs, jobs);
	err = err ? err : pinned_create(c, &s->status, CL_MEM_READ_WRITE, status, status);
	s->order = calloc(n, sizeof(*s->order));
	if (!err && !s->order)
		err = CL_OUT_OF_HOST_MEMORY;
	s->mems = (struct opencl_mems){.job = s->job.device,
		.key = c->key.device,
		.in = s->in.device,
		.out = s->out.device,
		.status = s->status.device,
		.order = c->order};
	return err;
}

static cl_int memory_create(struct opencl_copy *c)
{
	const struct arena *a = c->cfg.arena;
	size_t keys = a->key_slots * sizeof(*a->key);
	cl_int err =
		pinned_create(c, &c->key, CL_MEM_READ_ONLY, keys, KEY_RING * 2 * sizeof(*a->key));

	err = err ? err : order_create(c);
	/* The whole table: mostly zeroes, and the plain pair. */
	err = err ? err
		  : clEnqueueWriteBuffer(
			    c->up, c->key.device, CL_TRUE, 0, keys, a->key, 0, NULL, NULL);
	for (uint32_t i = 0; i < c->cfg.depth && !err; i++)
		err = set_create(c, &c->set[i]);
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

/* Freed device memory is not cleared: the next process could read keys there. */
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
	(void)event_wait_for(c, done);
	if (!c->hangs)
		clReleaseEvent(done);
}

bool opencl_copy_destroy(struct opencl_copy *c)
{
	if (!c)
		return false;
	while (c->flying && !c->hangs)
		(void)opencl_copy_collect(c, UINT64_MAX);
	keys_zero(c);
	if (c->hangs)
		return true;
	for (int i = 0; i < KEY_RING; i++)
		if (c->key_sent[i])
			clReleaseEvent(c->key_sent[i]);
	for (uint32_t i = 0; i < c->cfg.depth; i++)
		set_destroy(c, &c->set[i]);
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

cl_command_queue opencl_copy_queue(const struct opencl_copy *c)
{
	return c->run[0];
}

const struct opencl_mems *opencl_copy_mems(const struct opencl_copy *c, uint32_t set)
{
	return &c->set[set].mems;
}

uint32_t opencl_copy_next(const struct opencl_copy *c)
{
	return (c->oldest + c->flying) % c->cfg.depth;
}

uint32_t *opencl_copy_order(struct opencl_copy *c)
{
	return c->set[opencl_copy_next(c)].order;
}

uint32_t opencl_copy_flying(const struct opencl_copy *c)
{
	return c->flying;
}

/* --- Keys ------------------------------------------------------------------------------------- */

static struct xc_key *ring_pair(const struct opencl_copy *c, uint32_t at)
{
	return (struct xc_key *)c->key.p + 2 * (size_t)at;
}

/* Wipes host copies of uploaded keys. */
static int key_collect(struct opencl_copy *c, uint32_t at, bool wait)
{
	int err;

	if (!c->key_sent[at])
		return 0;
	err = wait ? event_wait_for(c, c->key_sent[at])
		   : event_wait(c, c->key_sent[at], 0, UINT64_MAX);
	if (err == -ETIMEDOUT || err == -EAGAIN)
		return err;
	clReleaseEvent(c->key_sent[at]);
	c->key_sent[at] = NULL;
	secmem_wipe(ring_pair(c, at), 2 * sizeof(struct xc_key));
	return err;
}

/* The kernels in flight, which still read the device's keys. */
static cl_uint kernels_flying(const struct opencl_copy *c, cl_event *out)
{
	cl_uint n = 0;

	for (uint32_t i = 0; i < c->flying; i++) {
		const struct set *s = &c->set[(c->oldest + i) % c->cfg.depth];

		for (uint32_t k = s->collected; k < s->chunks; k++)
			out[n++] = s->chunk[k].last;
	}
	return n;
}

int opencl_copy_key(struct opencl_copy *c, uint32_t slot)
{
	cl_event before[ENGINE_DEPTH_MAX * CHUNKS];
	uint32_t at = c->key_next++ % KEY_RING;
	cl_uint n;
	int err;

	if (c->hangs)
		return -ETIMEDOUT;
	err = key_collect(c, at, true);
	if (err)
		return err;
	n = kernels_flying(c, before);
	memcpy(ring_pair(c, at), &c->cfg.arena->key[slot], 2 * sizeof(struct xc_key));
	if (clEnqueueWriteBuffer(c->up, c->key.device, CL_FALSE, slot * sizeof(struct xc_key),
		    2 * sizeof(struct xc_key), ring_pair(c, at), n, n ? before : NULL,
		    &c->key_sent[at])) {
		c->key_sent[at] = NULL;
		secmem_wipe(ring_pair(c, at), 2 * sizeof(struct xc_key));
		return -EIO;
	}
	return clFlush(c->up) ? -EIO : 0;
}

/* --- Batches ---------------------------------------------------------------------------------- */

static uint32_t max_u32_of(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/* The number of bytes that the device reads or writes: the body with its word, or the end of the
 * tag, which follows an MKI and may itself be followed by a word (AEAD). */
static uint32_t extent(const struct xc_job *j, uint32_t tag_off)
{
	return max_u32_of(j->hdr_len + j->body_len + 4, tag_off + 20);
}

static uint32_t next_off(uint32_t off, uint32_t len)
{
	return (off + len + XC_SLACK + 63) / 64 * 64;
}

/* The engine has checked that a job's extent, with slack, is at most ARENA_SLOT_LEN, so all jobs
 * fit. */
static void chunk_pack(const struct opencl_copy *c, struct set *s, struct chunk *ch)
{
	uint32_t in = ch->in, out = ch->out;

	for (uint32_t i = ch->first; i < ch->first + ch->n; i++) {
		struct xc_job *j = (struct xc_job *)s->job.p + i;
		uint32_t in_len;

		*j = s->b.job[s->order[i]];
		in_len = extent(j, j->rx_tag_off);
		memcpy((uint8_t *)s->in.p + in, c->cfg.arena->in + j->in_off, in_len);
		j->in_off = in;
		j->out_off = out;
		in = next_off(in, in_len);
		out = next_off(out, extent(j, j->tx_tag_off));
	}
	ch->in_len = in - ch->in;
	ch->out_len = out - ch->out;
}

static void chunk_unpack(const struct opencl_copy *c, struct set *s, const struct chunk *ch)
{
	for (uint32_t i = ch->first; i < ch->first + ch->n; i++) {
		const struct xc_job *packed = (const struct xc_job *)s->job.p + i;
		const struct xc_job *j = &s->b.job[s->order[i]];

		s->b.status[s->order[i]] = ((const uint32_t *)s->status.p)[i];
		memcpy(c->cfg.arena->out + j->out_off, (uint8_t *)s->out.p + packed->out_off,
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

static cl_int chunk_up(struct opencl_copy *c, struct set *s, struct chunk *ch)
{
	cl_event e;
	cl_int err = clEnqueueWriteBuffer(c->up, s->in.device, CL_FALSE, ch->in, ch->in_len,
		(uint8_t *)s->in.p + ch->in, 0, NULL, &e);

	if (err)
		return err;
	chunk_sent(ch, e);
	err = clEnqueueWriteBuffer(c->up, s->job.device, CL_FALSE,
		ch->first * sizeof(struct xc_job), ch->n * sizeof(struct xc_job),
		(struct xc_job *)s->job.p + ch->first, 0, NULL, &e);
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

static cl_int chunk_down(struct opencl_copy *c, struct set *s, struct chunk *ch)
{
	cl_event e;
	cl_int err = clEnqueueReadBuffer(c->down, s->out.device, CL_FALSE, ch->out, ch->out_len,
		(uint8_t *)s->out.p + ch->out, 1, &ch->last, &e);

	if (err)
		return err;
	chunk_sent(ch, e);
	err = clEnqueueReadBuffer(c->down, s->status.device, CL_FALSE, ch->first * sizeof(uint32_t),
		ch->n * sizeof(uint32_t), (uint32_t *)s->status.p + ch->first, 0, NULL, &e);
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

/* Collects the finished parts in their order. -EAGAIN: some are still running. */
static int set_collect(struct opencl_copy *c, struct set *s, uint64_t until_ns)
{
	while (s->collected < s->chunks) {
		struct chunk *ch = &s->chunk[s->collected];
		int res = c->hangs ? -ETIMEDOUT
			: ch->last
			? event_wait(c, ch->last, until_ns, s->since_ns + c->cfg.timeout_ns)
			: -EIO;

		if (res == -ETIMEDOUT || res == -EAGAIN)
			return res;
		if (res == 0 && ch->whole && !s->res)
			chunk_unpack(c, s, ch);
		if (ch->last)
			clReleaseEvent(ch->last);
		s->res = res ? res : s->res;
		s->collected++;
	}
	return s->res;
}

int opencl_copy_submit(
	struct opencl_copy *c, const struct opencl_dispatch *d, const struct batch *b)
{
	uint32_t size = chunk_size(c, d), at = opencl_copy_next(c), before_in = 0, before_out = 0;
	struct set *s = &c->set[at];
	cl_int err = CL_SUCCESS;

	if (c->hangs)
		return -ETIMEDOUT;
	if (c->flying == c->cfg.depth || d->jobs > batch_max(c))
		return -EBUSY;
	s->b = *b;
	s->chunks = s->collected = 0;
	s->res = 0;
	s->since_ns = clock_mono_ns();
	for (uint32_t first = 0; first < d->jobs && !err; first += size) {
		uint32_t i = s->chunks++;
		struct chunk *ch = &s->chunk[i];

		*ch = (struct chunk){.first = first,
			.n = min_u32(size, d->jobs - first),
			.in = before_in,
			.out = before_out};
		chunk_pack(c, s, ch);
		before_in += ch->in_len;
		before_out += ch->out_len;
		err = chunk_up(c, s, ch);
		err = err ? err : chunk_run(c->run[(at + i) % CHUNKS], ch, d);
		err = err ? err : chunk_down(c, s, ch);
	}
	if (!err) {
		c->flying++;
		return 0;
	}
	/* The set must be idle before it is used again. */
	s->res = -EIO;
	return set_collect(c, s, UINT64_MAX);
}

int opencl_copy_collect(struct opencl_copy *c, uint64_t until_ns)
{
	struct set *s = &c->set[c->oldest];
	int res;

	if (c->flying == 0)
		return -EINVAL;
	res = set_collect(c, s, until_ns);
	if (res == -EAGAIN)
		return res;
	c->oldest = (c->oldest + 1) % c->cfg.depth;
	c->flying--;
	/* The next batch's time starts when the device became free for it. */
	c->set[c->oldest].since_ns = clock_mono_ns();
	for (uint32_t i = 0; i < KEY_RING && !res; i++)
		(void)key_collect(c, i, false);
	return res;
}
