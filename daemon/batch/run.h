/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The choice of engine for a batch: one of the devices, by weight, if a dispatch pays; the serial
 * engine for small batches, for ciphers that the device lacks, and for failed batches. A lost
 * device costs no packet: its weight goes to the others. Thresholds come from the configuration or
 * from a calibration at start. */
#ifndef BATCH_RUN_H
#define BATCH_RUN_H

#include <stdatomic.h>

#include "batch/engine.h"
#include "packet/arena.h"

#define BATCH_DEVICES_MAX 8u

/* The content of a batch, as far as it influences which engine is faster. CM includes NULL and
 * plain. */
enum batch_class { BATCH_CM, BATCH_GCM, BATCH_F8, BATCH_MIXED, BATCH_CLASSES };
#define BATCH_SIZES 11u        /* sizes that are measured: 1, 2, 4 ... 1,024 packets */
#define BATCH_NEVER UINT32_MAX /* as a smallest batch: no dispatch pays */

/* A device. The caller fills the first part, and keeps it until the last runner has ended. The
 * first runner that is created measures it. */
struct batch_device {
	const struct engine_ops *ops;
	struct engine *engine;
	uint32_t weight;    /* its share of the batches, at least 1 */
	uint32_t fixed_min; /* smallest batch worth a dispatch; 0 = measure */
	/* Written by batch_runner_create(), then constant. */
	bool measured;
	uint32_t min
		/* smallest batch that is faster here than serially, or BATCH_NEVER */
		[BATCH_CLASSES];
	struct {
		uint32_t serial_ns, device_ns; /* per packet; 0 = not measured */
	} cost[BATCH_CLASSES][BATCH_SIZES];
	/* Set by the first worker that loses the device. No worker uses it afterwards. */
	_Atomic bool lost;
};

struct batch_device_counters { /* written by the worker, read by any thread (relaxed atomics) */
	uint64_t batches, jobs, errors, ns;
};

struct batch_counters {   /* of all devices together; written and read in the same way */
	uint64_t batches; /* batches of at least one job */
	uint64_t jobs;
	uint64_t device_batches; /* of them dispatched to a device */
	uint64_t device_jobs;
	uint64_t device_errors; /* batches a device failed at, repeated serially */
	uint64_t overlapped;    /* batches sent to a device while another was in flight */
	/* time spent in engines; for small serial batches extrapolated from samples */
	uint64_t engine_ns;
};

struct batch_runner;

struct batch_runner_config {
	struct batch_device *device; /* [devices] */
	uint32_t devices;            /* 0: serial only */
	struct engine *serial;
	uint32_t slots; /* packets in the arena */
	uint32_t key_slots;
	uint32_t batch_max; /* jobs of a batch at most; 0 = slots */
	uint32_t depth;     /* batches in flight, up to ENGINE_DEPTH_MAX; 0 = 1 */
};

/* Creates the arena and the queues. Control thread only. 0 or -errno. */
int batch_runner_create(struct batch_runner **out, const struct batch_runner_config *cfg);
void batch_runner_destroy(struct batch_runner *r);
struct arena *batch_runner_arena(struct batch_runner *r);
int batch_runner_key_changed(struct batch_runner *r, uint32_t slot);
/* Wipes the pair [slot, slot + 2) on host and devices. */
void batch_runner_key_wipe(struct batch_runner *r, uint32_t slot);
/* Processes a batch. On return, every status is XC_OK or XC_BAD_TAG. Only while nothing is in
 * flight. */
void batch_run(struct batch_runner *r, struct batch *b);
/* Processes n jobs by the serial engine, also while batches are in flight. Jobs and statuses need
 * not be in the arena. The packets are in arena.out, and stay there: in_off is ignored. */
void batch_run_late(struct batch_runner *r, struct xc_job *j, uint32_t *status, uint32_t n);
/* Several batches at once, for devices that accept more than one (engine.h). On other devices, a
 * batch is done when batch_submit() returns. Batches finish in the order of submission, each
 * exactly once, and with the results of batch_run(), even if the device fails. Until then, jobs,
 * statuses, packets, and the key slots that jobs name must not change. Submit only if fewer than
 * the configured depth are in flight. */
void batch_submit(struct batch_runner *r, const struct batch *b);
/* Whether the oldest batch in flight is done. Waits until until_ns (CLOCK_MONOTONIC); 0 = does not
 * wait. */
bool batch_done(struct batch_runner *r, uint64_t until_ns);
/* Waits for the oldest batch and removes it from flight. */
void batch_finish(struct batch_runner *r);
uint32_t batch_flying(const struct batch_runner *r);
const struct batch_counters *batch_runner_counters(const struct batch_runner *r);
const struct batch_device_counters *batch_runner_device_counters(
	const struct batch_runner *r, uint32_t device);

#endif
