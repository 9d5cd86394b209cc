/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Private to the OpenCL engine: batches to and from a device that has its own memory. */
#ifndef BATCH_OPENCL_COPY_H
#define BATCH_OPENCL_COPY_H

#include <CL/cl.h>

#include "batch/engine.h"

#define OPENCL_SCALAR_GROUP 64u /* work-items per work-group there */

struct opencl_buffers {
	cl_command_queue cq;
	cl_mem in, out, job, status;
};
struct opencl_copy;

int opencl_copy_create(struct opencl_copy **out, const struct arena *a);
void opencl_copy_destroy(struct opencl_copy *c);
/* Packs the batch's packets and jobs and sends them; the dispatch follows in the same queue. */
cl_int opencl_copy_in(
	struct opencl_copy *c, const struct opencl_buffers *to, const struct batch *b);
/* Waits for results and puts them where the jobs say. */
cl_int opencl_copy_out(struct opencl_copy *c, const struct opencl_buffers *from, struct batch *b);

#endif
