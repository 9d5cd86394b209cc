/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The lower band of G.722 (codec/g722.h) for many streams at once on an OpenCL device, one stream
 * per lane (kernels/g722.cl). States go to the device with each batch, and come back with the
 * results: 72 bytes of a stream beside 480 of audio. So the host always has all states, and a
 * device that fails or hangs costs nothing but time. A self-test, and one stream of each batch,
 * show whether it computes wrong results. */
#ifndef BATCH_G722_DEVICE_H
#define BATCH_G722_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "codec/g722_batch.h"

#define G722_DEVICE_STREAMS 4096u

struct engine_config;
struct g722_device;

/* Whether the device could be faster than g722_batch_encode() in batches of codec threads: not if
 * it is this processor, and lanes work on it. */
bool g722_device_may_help(const struct engine_config *cfg);
/* cfg: device, flags (ENGINE_SCALAR_LANES) and timeout_ms; the limit applies on every device.
 * streams: of a batch, at most. Control thread, before threads that use OpenCL run. 0 or -errno,
 * with a line in err. */
int g722_device_open(struct g722_device **out, const struct engine_config *cfg, uint32_t streams,
	char *err, size_t err_len);
/* Leaks the memory that a device that hangs may still use. NULL is fine. */
void g722_device_close(struct g722_device *d);
/* A line for logs. */
const char *g722_device_name(const struct g722_device *d);
/* Whether batches take this thread's time. */
bool g722_device_is_cpu(const struct g722_device *d);
/* The results are those of g722_encode_low() and g722_decode_low() for n samples of each lane, and
 * all bit rates. n: a multiple of 4, up to G722_DEVICE_SAMPLES. lanes: 1 to those of
 * g722_device_open(). 0 or -errno: then no state and no output has changed, and all further calls
 * fail at once. -EBADMSG: the results were wrong. One thread at a time. */
int g722_device_encode(
	struct g722_device *d, const struct g722_lane *lane, uint32_t lanes, size_t n);
int g722_device_decode(
	struct g722_device *d, const struct g722_lane *lane, uint32_t lanes, size_t n);
/* Measures from which batch size on the device is faster than g722_batch_encode() and
 * g722_batch_decode(). The device serves one thread. */
void g722_device_measure(struct g722_device *d, struct g722_device_ops *out);
/* The size from the fractions of the time without the device, [i] in batches of 1 << i: the
 * smallest above which the device never lost. 0: none. */
uint32_t g722_device_least(const double *fraction, uint32_t sizes);

#endif
