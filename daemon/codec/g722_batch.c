/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Distributes the jobs of a batch to lanes (codec/g722_lanes.h). The rest of longer packets, small
 * batches and processors without these instructions take one stream after another. */
#include "g722_batch.h"

#include <errno.h>

#include "xcipher_codec.h"

struct group {
	const struct g722_lanes_ops *ops; /* NULL: there are no lanes */
	struct g722_lane lane[G722_LANES_MOST];
	size_t left[G722_LANES_MOST]; /* samples */
	uint32_t n;
};

enum way { ENCODE, DECODE };

/* A multiple of 4 that no lane exceeds. */
static size_t together(const struct group *g)
{
	size_t least = g->n ? g->left[0] : 0;

	for (uint32_t i = 1; i < g->n; i++)
		least = g->left[i] < least ? g->left[i] : least;
	return least & ~(size_t)3;
}

static void run(struct group *g, enum way way)
{
	size_t n = g->ops && g->n >= g->ops->least ? together(g) : 0;

	if (n && way == ENCODE)
		g->ops->encode(g->lane, g->n, n);
	else if (n)
		g->ops->decode(g->lane, g->n, n);
	for (uint32_t i = 0; i < g->n; i++) {
		const struct g722_lane *l = &g->lane[i];

		if (g->left[i] == n)
			continue;
		if (way == ENCODE)
			g722_encode_low(l->g, (const int16_t *)(const void *)l->in + n,
				g->left[i] - n, l->out + n);
		else
			g722_decode_low(
				l->g, l->in + n, g->left[i] - n, (int16_t *)(void *)l->out + n);
	}
	g->n = 0;
}

/* Adds a job whose arguments were checked. */
static void add(struct group *g, const struct xcipher_codec_job *j, enum way way)
{
	g->lane[g->n] = (struct g722_lane){.g = j->state, .in = j->in, .out = j->out};
	g->left[g->n++] = j->in_len;
	if (g->n == (g->ops ? g->ops->lanes : 1))
		run(g, way);
}

static void batch(
	const struct g722_lanes_ops *ops, struct xcipher_codec_job *job, size_t n, enum way way)
{
	struct group g = {.ops = ops};

	for (size_t i = 0; i < n; i++) {
		job[i].result = job[i].in_len <= job[i].out_cap ? (int)job[i].in_len : -ENOSPC;
		if (job[i].result > 0)
			add(&g, &job[i], way);
	}
	run(&g, way);
}

void g722_batch_encode_by(const struct g722_lanes_ops *ops, struct xcipher_codec_job *job, size_t n)
{
	batch(ops, job, n, ENCODE);
}

void g722_batch_decode_by(const struct g722_lanes_ops *ops, struct xcipher_codec_job *job, size_t n)
{
	batch(ops, job, n, DECODE);
}

void g722_batch_encode(struct xcipher_codec_job *job, size_t n)
{
	batch(g722_lanes_here(), job, n, ENCODE);
}

void g722_batch_decode(struct xcipher_codec_job *job, size_t n)
{
	batch(g722_lanes_here(), job, n, DECODE);
}

/* --- On a device ------------------------------------------------------------------------------ */

/* False: the batch is as it was. */
static bool device_did(
	const struct g722_device_ops *h, struct xcipher_codec_job *job, size_t n, enum way way)
{
	uint32_t least = !h ? 0 : way == ENCODE ? h->least_encode : h->least_decode;
	struct g722_lane lane[G722_DEVICE_MOST];
	size_t len = n ? job[0].in_len : 0;

	if (!least || n < least || n > G722_DEVICE_MOST || len == 0 || len % 4 != 0 ||
		len > G722_DEVICE_SAMPLES)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (job[i].in_len != len || job[i].out_cap < len)
			return false;
		lane[i] = (struct g722_lane){job[i].state, job[i].in, job[i].out};
	}
	if ((way == ENCODE ? h->encode : h->decode)(h->device, lane, (uint32_t)n, len))
		return false;
	for (size_t i = 0; i < n; i++)
		job[i].result = (int)len;
	return true;
}

void g722_batch_encode_with(
	const struct g722_device_ops *h, struct xcipher_codec_job *job, size_t n)
{
	if (!device_did(h, job, n, ENCODE))
		g722_batch_encode(job, n);
}

void g722_batch_decode_with(
	const struct g722_device_ops *h, struct xcipher_codec_job *job, size_t n)
{
	if (!device_did(h, job, n, DECODE))
		g722_batch_decode(job, n);
}
