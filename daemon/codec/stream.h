/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A decoder, an encoder or both for one stream, in this process or isolated. One thread at a time.
 */
#ifndef CODEC_STREAM_H
#define CODEC_STREAM_H

#include "codec/g722_batch.h"
#include "codec/gap.h"
#include "codec/registry.h"
#include "codec/remote.h"

struct codec_stream;

struct codec_stream_cfg {
	uint32_t can; /* CODEC_DECODES, CODEC_ENCODES or both */
	const char *fmtp;
	size_t fmtp_len; /* at most CODEC_FMTP_MAX */
	struct xcipher_codec_wish wish;
};

/* 0 or -errno: -EINVAL if the codec refuses the fmtp, -ENOTSUP if it lacks a direction in can. */
int codec_stream_open(
	struct codec_stream **out, const struct codec_entry *e, const struct codec_stream_cfg *cfg);
void codec_stream_close(struct codec_stream *s);

/* As the functions of xcipher_codec.h. In addition -EIO: the process of an isolated plug-in failed,
 * or the result is larger than the buffer, and the packet counts as lost; -EPIPE: the process
 * failed too often, and the stream has ended. */
int codec_stream_decode(
	struct codec_stream *s, const uint8_t *in, size_t len, int16_t *pcm, size_t cap);
int codec_stream_encode(
	struct codec_stream *s, const int16_t *pcm, size_t samples, uint8_t *out, size_t cap);
/* Encodes one packet of each stream, with the codec's encode_batch where it has one. job: all but
 * the state; its result is that of codec_stream_encode(). No stream occurs twice. device: of the
 * calling thread, may be NULL, here and below. */
void codec_streams_encode(struct codec_stream *const *s, struct xcipher_codec_job *job, size_t n,
	const struct g722_device_ops *device);
/* Whether codec_streams_encode(), or codec_streams_foresee(), can be faster than single calls. */
bool codec_stream_batches(const struct codec_stream *s);
bool codec_stream_foresees(const struct codec_stream *s);
/* Decodes one packet of each stream with the codec's decode_batch, without consequences: only if
 * the next call for the stream is codec_stream_decode() with the same payload, at the same place,
 * this result is taken. job as above; in and out stay valid until then, or until
 * codec_stream_forget(). Only for streams of codec_stream_foresees(). */
void codec_streams_foresee(struct codec_stream *const *s, struct xcipher_codec_job *job, size_t n,
	const struct g722_device_ops *device);
/* Call it before such a payload or its samples become invalid. */
void codec_stream_forget(struct codec_stream *s);
/* Never fails but by -ENOSPC: without the codec's help the host conceals. */
int codec_stream_conceal(struct codec_stream *s, enum xcipher_codec_gap why, size_t samples,
	int16_t *pcm, size_t cap);
int codec_stream_recover(
	struct codec_stream *s, const uint8_t *next, size_t len, int16_t *pcm, size_t cap);
int codec_stream_requested(struct codec_stream *s);
int codec_stream_adapt(struct codec_stream *s, const struct xcipher_codec_wish *wish);
/* The fmtp to answer with, without a terminator. */
int codec_stream_fmtp(struct codec_stream *s, char *out, size_t cap);

#endif
