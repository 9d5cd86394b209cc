/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Private to the OpenCL engine: batches to and from a device with its own memory. Pinned host
 * memory; queues that upload one part of a batch while another is computed and a third is
 * downloaded; and time limits for waiting. */
#ifndef BATCH_OPENCL_COPY_H
#define BATCH_OPENCL_COPY_H

#include <CL/cl.h>

#include "batch/engine.h"
#include "packet/arena.h"

#define OPENCL_SCALAR_GROUP 64u   /* work-items per work-group there */
#define OPENCL_CHUNK_MIN    1024u /* packets: smallest part that is worth a split */

/* The buffers of a kernel, on either side. */
struct opencl_mems {
	cl_mem job, key, in, out, status, order;
};

struct opencl_copy_config {
	cl_context ctx;
	cl_device_id dev;
	const struct arena *arena;
	uint32_t chunk_min;
	uint64_t timeout_ns; /* time limit of a batch, or of a key upload */
	uint32_t depth;      /* batches in flight */
};

/* Waits for an event. clWaitForEvents() has no time limit. Times: CLOCK_MONOTONIC. 0, -EIO, -EAGAIN
 * (not by until_ns) or -ETIMEDOUT (not by hang_ns either). */
int opencl_wait(cl_event e, uint64_t until_ns, uint64_t hang_ns);

/* Method of dispatch for a part of a batch. */
struct opencl_dispatch {
	/* argument 1 is the number of jobs; global offset and size choose the part */
	cl_kernel kernel;
	uint32_t width; /* packets per work-item */
	uint32_t local; /* work-items per work-group */
	uint32_t jobs;  /* number of jobs: the first ones of the order */
};

struct opencl_copy;

int opencl_copy_create(struct opencl_copy **out, const struct opencl_copy_config *cfg);
/* Zeroes the device's keys. A hung device may still use its memory, which is then leaked on
 * purpose. Returns true in this case: context, kernels and programs must stay, too. */
bool opencl_copy_destroy(struct opencl_copy *c);
/* The queue for preparing kernels; the copy owns it. */
cl_command_queue opencl_copy_queue(const struct opencl_copy *c);
/* Each batch in flight has its own memory, one of [depth] sets, with the kernel prepared for each.
 * Returns the set of the next batch, and the array for its job order. The order must not change
 * until the batch was collected. */
const struct opencl_mems *opencl_copy_mems(const struct opencl_copy *c, uint32_t set);
uint32_t opencl_copy_next(const struct opencl_copy *c);
uint32_t *opencl_copy_order(struct opencl_copy *c);
/* Number of batches in flight. Submit only if it is less than depth. */
uint32_t opencl_copy_flying(const struct opencl_copy *c);
/* As submit() and collect() of engine_ops. After -ETIMEDOUT they do nothing. */
int opencl_copy_submit(
	struct opencl_copy *c, const struct opencl_dispatch *d, const struct batch *b);
int opencl_copy_collect(struct opencl_copy *c, uint64_t until_ns);
/* Uploads a pair of key slots without waiting: before every later batch, after those in flight. */
int opencl_copy_key(struct opencl_copy *c, uint32_t slot);

#endif
