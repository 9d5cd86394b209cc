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

#endif
