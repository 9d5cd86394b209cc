/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The choice of engine for a batch: the device where a dispatch is worth it, the serial engine for small batches, for
 * ciphers the device cannot do, and for whatever the device failed at. Knows no thresholds by heart: they come from
 * the configuration or from a calibration at start. */
#ifndef BATCH_RUN_H
#define BATCH_RUN_H

#include "batch/engine.h"

struct batch_counters {   /* written by the worker, read by anybody (relaxed atomics) */
	uint64_t batches; /* batches of at least one job */
	uint64_t jobs;
	uint64_t device_batches; /* of them dispatched to the device */
	uint64_t device_jobs;
	uint64_t device_errors; /* batches the device failed at, redone serially */
	uint64_t engine_ns;     /* time spent in engines */
};

struct batch_runner;

struct batch_runner_config {
	const struct engine_ops *device_ops; /* NULL: serial only */
	struct engine *device;
	struct engine *serial;
	uint32_t device_min; /* smallest batch worth a dispatch; 0 = calibrate */
	uint32_t slots;      /* packets in the arena */
	uint32_t key_slots;
};

/* Creates the arena and the queues. Control thread only. 0 or -errno. */
int batch_runner_create(struct batch_runner **out, const struct batch_runner_config *cfg);
void batch_runner_destroy(struct batch_runner *r);
struct arena *batch_runner_arena(struct batch_runner *r);
uint32_t batch_runner_device_min(const struct batch_runner *r);
int batch_runner_key_changed(struct batch_runner *r, uint32_t slot);
/* Wipes the pair [slot, slot + 2) on host and devices. */
void batch_runner_key_wipe(struct batch_runner *r, uint32_t slot);
/* Always ends with every status XC_OK or XC_BAD_TAG. */
void batch_run(struct batch_runner *r, struct batch *b);
const struct batch_counters *batch_runner_counters(const struct batch_runner *r);

/* Every engine that is opened is first tried on known answers, each suite it says it can, RTP and RTCP, good and
 * damaged packets, against srtp/ref. 0, or -EIO with a line in err. */
int batch_selftest(const struct engine_ops *ops, struct engine *e, char *err, size_t err_len);

#endif
