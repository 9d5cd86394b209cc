/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Batches to and from a device with its own memory (opencl_copy.h). Arena slots are mostly empty, so packets are packed
 * one behind the other, as layout.h allows: only what is used crosses the bus. */
#include "batch/opencl_copy.h"

#include <errno.h>
#include <stdlib.h>

#include "base/secmem.h"

struct opencl_copy {
	const struct arena *arena;
	uint8_t *in, *out;  /* packed packets, as long as the arena's buffers */
	struct xc_job *job; /* with packed offsets */
	uint32_t used_in, used_out;
};

static size_t packets_len(const struct opencl_copy *c)
{
	return (size_t)c->arena->slots * ARENA_SLOT_LEN;
}

int opencl_copy_create(struct opencl_copy **out, const struct arena *a)
{
	struct opencl_copy *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->arena = a;
	c->in = calloc(a->slots, ARENA_SLOT_LEN);
	c->out = calloc(a->slots, ARENA_SLOT_LEN);
	c->job = calloc(a->slots, sizeof(*c->job));
	if (!c->in || !c->out || !c->job) {
		opencl_copy_destroy(c);
		return -ENOMEM;
	}
	*out = c;
	return 0;
}

void opencl_copy_destroy(struct opencl_copy *c)
{
	if (!c)
		return;
	if (c->in)
		secmem_wipe(c->in, packets_len(c));
	if (c->out)
		secmem_wipe(c->out, packets_len(c));
	free(c->in);
	free(c->out);
	free(c->job);
	free(c);
}

static uint32_t max_u32_of(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/* Body and word, or the tag behind an MKI: what the device looks at, or writes. */
static uint32_t extent(const struct xc_job *j, uint32_t tag_off)
{
	return max_u32_of(j->hdr_len + j->body_len + 4, tag_off + 16);
}

static uint32_t next_off(uint32_t off, uint32_t len)
{
	return (off + len + XC_SLACK + 63) / 64 * 64;
}

/* A job's extent is at most ARENA_SLOT_LEN with its slack (the engine has checked), so that all fit. */
cl_int opencl_copy_in(struct opencl_copy *c, const struct opencl_buffers *to, const struct batch *b)
{
	uint32_t in = 0, out = 0;
	cl_int err;

	for (uint32_t i = 0; i < b->n; i++) {
		struct xc_job *j = &c->job[i];
		uint32_t in_len = extent(&b->job[i], b->job[i].rx_tag_off);

		*j = b->job[i];
		memcpy(c->in + in, c->arena->in + j->in_off, in_len);
		j->in_off = in;
		j->out_off = out;
		in = next_off(in, in_len);
		out = next_off(out, extent(j, j->tx_tag_off));
	}
	c->used_in = in;
	c->used_out = out;
	err = clEnqueueWriteBuffer(to->cq, to->in, CL_FALSE, 0, in, c->in, 0, NULL, NULL);
	if (err)
		return err;
	return clEnqueueWriteBuffer(
		to->cq, to->job, CL_FALSE, 0, b->n * sizeof(*c->job), c->job, 0, NULL, NULL);
}

cl_int opencl_copy_out(struct opencl_copy *c, const struct opencl_buffers *from, struct batch *b)
{
	cl_int err = clEnqueueReadBuffer(
		from->cq, from->out, CL_FALSE, 0, c->used_out, c->out, 0, NULL, NULL);

	if (!err)
		err = clEnqueueReadBuffer(from->cq, from->status, CL_FALSE, 0,
			b->n * sizeof(*b->status), b->status, 0, NULL, NULL);
	/* Also after an error: nothing may still be on its way into our memory. */
	if (clFinish(from->cq) || err)
		return err ? err : CL_OUT_OF_RESOURCES;
	for (uint32_t i = 0; i < b->n; i++)
		memcpy(c->arena->out + b->job[i].out_off, c->out + c->job[i].out_off,
			extent(&b->job[i], b->job[i].tx_tag_off));
	return CL_SUCCESS;
}
