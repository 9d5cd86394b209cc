/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Private to the OpenCL engine: batches to and from a device that has its own memory. Pinned host memory, queues so
 * that one part of a batch goes up while another is computed and a third comes down, and a limit to waiting. */
#ifndef BATCH_OPENCL_COPY_H
#define BATCH_OPENCL_COPY_H

#include <CL/cl.h>

#include "batch/engine.h"

#define OPENCL_SCALAR_GROUP 64u /* work-items per work-group there */
#define OPENCL_CHUNK_MIN    1024u /* packets: a batch is worth cutting where each part has that many */

/* What a kernel works on, wherever it is. */
struct opencl_mems {
	cl_mem job, key, in, out, status, order;
};

struct opencl_copy_config {
	cl_context ctx;
	cl_device_id dev;
	const struct arena *arena;
	uint32_t chunk_min;
	uint64_t timeout_ns; /* for a batch, or for keys */
	uint32_t depth;      /* batches in flight */
};

/* How a part of a batch is dispatched. */
struct opencl_dispatch {
	cl_kernel
		kernel; /* argument 1 is the number of jobs; global offset and size choose the part */
	uint32_t width; /* packets per work-item */
	uint32_t local; /* work-items per work-group */
	uint32_t jobs;  /* how many of the batch: the first ones of the order */
};

struct opencl_copy;

int opencl_copy_create(struct opencl_copy **out, const struct opencl_copy_config *cfg);
/* Zeroes the device's keys. A device that hangs keeps what it may still use: nothing of it is freed then (a leak, on
 * purpose); true if so: context, kernels and programs must stay, too. */
bool opencl_copy_destroy(struct opencl_copy *c);
/* The queue that kernels are made ready by; the copy's own. */
cl_command_queue opencl_copy_queue(const struct opencl_copy *c);
/* Each batch in flight has memory of its own, a set of [depth]; the kernel is set up for each. Which set, and the array for the order
 * of its jobs, the next batch will have; its order is to stay until it was collected. */
const struct opencl_mems *opencl_copy_mems(const struct opencl_copy *c, uint32_t set);
uint32_t opencl_copy_next(const struct opencl_copy *c);
uint32_t *opencl_copy_order(struct opencl_copy *c);
/* How many are in flight: less than depth, or nothing may be submitted. */
uint32_t opencl_copy_flying(const struct opencl_copy *c);
/* As engine_ops' submit() and collect(). -ETIMEDOUT: from then on nothing is done any more. */
int opencl_copy_submit(
	struct opencl_copy *c, const struct opencl_dispatch *d, const struct batch *b);
int opencl_copy_collect(struct opencl_copy *c, uint64_t until_ns);
/* Sends a pair of key slots on its way without waiting; ahead of every later batch, behind those in flight. */
int opencl_copy_key(struct opencl_copy *c, uint32_t slot);

#endif
