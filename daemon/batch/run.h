/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The choice of engine for a batch: one of the devices, by weight, where a dispatch is worth it; the serial engine for
 * small batches, for ciphers the device cannot do, and for whatever a device failed at. A device that is lost costs no
 * packet: its weight goes to the others. Knows no thresholds by heart: they come from the configuration or from a
 * calibration at start. */
#ifndef BATCH_RUN_H
#define BATCH_RUN_H

#include <stdatomic.h>

#include "batch/engine.h"

#define BATCH_DEVICES_MAX 8u

/* What a batch is made of, as far as it decides where it is quicker. CM: also NULL and plain. */
enum batch_class { BATCH_CM, BATCH_GCM, BATCH_F8, BATCH_MIXED, BATCH_CLASSES };
extern const char *const batch_class_name[BATCH_CLASSES];
#define BATCH_SIZES 11u        /* 1, 2, 4 ... 1,024 packets are measured */
#define BATCH_NEVER UINT32_MAX /* as a smallest batch: a dispatch of any size is not worth it */

/* A device beside others. The caller fills the first part and keeps it until the last runner is gone; the first runner
 * that is created measures. */
struct batch_device {
	const struct engine_ops *ops;
	struct engine *engine;
	uint32_t weight;    /* its share of the batches, at least 1 */
	uint32_t fixed_min; /* smallest batch worth a dispatch; 0 = measure */
	/* Written by batch_runner_create(), constant afterwards. */
	bool measured;
	uint32_t min
		[BATCH_CLASSES]; /* smallest batch that is quicker here than serially, or BATCH_NEVER */
	struct {
		uint32_t serial_ns, device_ns; /* per packet; 0 = not measured */
	} cost[BATCH_CLASSES][BATCH_SIZES];
	/* Set by the first worker that lost it; from then on nobody uses it. */
	_Atomic bool lost;
};

struct batch_device_counters { /* written by the worker, read by anybody (relaxed atomics) */
	uint64_t batches, jobs, errors, ns;
};

struct batch_counters {   /* likewise; of all devices together */
	uint64_t batches; /* batches of at least one job */
	uint64_t jobs;
	uint64_t device_batches; /* of them dispatched to a device */
	uint64_t device_jobs;
	uint64_t device_errors; /* batches a device failed at, redone serially */
	uint64_t overlapped;    /* batches sent to a device while another was with one */
	uint64_t engine_ns;     /* time spent in engines; of small serial batches by samples */
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
/* Always ends with every status XC_OK or XC_BAD_TAG. While nothing is in flight. */
void batch_run(struct batch_runner *r, struct batch *b);
/* Several batches at once, for devices that take more than one (engine.h); on any other a batch is done when batch_submit() returns.
 * They are finished in the order in which they were submitted, each exactly once, and as batch_run() leaves them, whatever
 * becomes of the device. Until then jobs, statuses, packets, and the key slots that jobs name, must stay as they are.
 * Less than the configured depth may be in flight before. */
void batch_submit(struct batch_runner *r, const struct batch *b);
/* Whether the oldest in flight is done, at until_ns (CLOCK_MONOTONIC) at the latest; 0 = does not wait. */
bool batch_done(struct batch_runner *r, uint64_t until_ns);
/* Waits for the oldest, and takes it out of flight. */
void batch_finish(struct batch_runner *r);
uint32_t batch_flying(const struct batch_runner *r);
const struct batch_counters *batch_runner_counters(const struct batch_runner *r);
const struct batch_device_counters *batch_runner_device_counters(
	const struct batch_runner *r, uint32_t device);
/* "from 4 packets (AES-CM), 8 (GCM) ...; ns per packet serial/device ...": what was measured, for a log line. */
void batch_device_describe(char *out, size_t len, const struct batch_device *d);

/* Every engine that is opened is first tried on known answers, each suite it says it can, RTP and RTCP, good and
 * damaged packets, against srtp/ref. 0, or -EIO with a line in err. */
int batch_selftest(const struct engine_ops *ops, struct engine *e, char *err, size_t err_len);

#endif
