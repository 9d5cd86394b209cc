/* SPDX-License-Identifier: GPL-2.0-or-later */
/* encode_batch and decode_batch of G.722 as PCM of 8 kHz (xcipher_codec.h). Pure. */
#ifndef CODEC_G722_BATCH_H
#define CODEC_G722_BATCH_H

#include <stddef.h>

#include "codec/g722_lanes.h"

struct xcipher_codec_job;

/* state: struct g722, of g722_init(). The results are those of g722_encode_low(). */
void g722_batch_encode(struct xcipher_codec_job *job, size_t n);
void g722_batch_decode(struct xcipher_codec_job *job, size_t n);
/* The same by a kind of processor that works here; NULL: one stream after another. For tests and
 * measurements. */
void g722_batch_encode_by(
	const struct g722_lanes_ops *ops, struct xcipher_codec_job *job, size_t n);
void g722_batch_decode_by(
	const struct g722_lanes_ops *ops, struct xcipher_codec_job *job, size_t n);

#define G722_DEVICE_MOST 64u /* streams */

/* A device that codes batches (batch/g722_device.h). */
struct g722_device_ops {
	void *device;
	uint32_t least_encode,
		least_decode; /* streams, from which on it is faster; 0: it never is */
	/* As g722_lanes_ops, but also of other rates than 64000. n: up to G722_DEVICE_SAMPLES. 0 or
	 * -errno: then no state and no output has changed. */
	int (*encode)(void *device, const struct g722_lane *lane, uint32_t lanes, size_t n);
	int (*decode)(void *device, const struct g722_lane *lane, uint32_t lanes, size_t n);
};
#define G722_DEVICE_SAMPLES 480u

/* As g722_batch_encode(). The device codes batches whose packets have the same length. The
 * processor codes all other batches, and a batch for which the device fails. h NULL: no device. */
void g722_batch_encode_with(
	const struct g722_device_ops *h, struct xcipher_codec_job *job, size_t n);
void g722_batch_decode_with(
	const struct g722_device_ops *h, struct xcipher_codec_job *job, size_t n);

#endif
