/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Measures, for each class of keys, from which batch size a device is faster than the serial
 * engine. */
#ifndef BATCH_CALIBRATE_H
#define BATCH_CALIBRATE_H

#include "batch/engine.h"
#include "batch/run.h"
#include "packet/arena.h"

struct calibration {
	struct batch_device *device; /* receives min and cost */
	struct engine_queue *device_queue, *serial_queue;
	const struct engine_ops *serial_ops;
	struct arena *arena; /* of a worker without traffic; returned as it was */
	/* From here on private to batch_calibrate(). */
	uint32_t streams; /* one for each suite */
	/* [made]: describes the packets in the arena's slots of the same numbers */
	struct xc_job *job;
	uint32_t made, next; /* the next ones to use */
	volatile uint8_t *cold;
};

void batch_calibrate(struct calibration *c);
/* "from 4 packets (AES-CM), 8 (GCM) ...; ns per packet serial/device ...": the measured values, for
 * a log line. */
void batch_device_describe(char *out, size_t len, const struct batch_device *d);

extern const char *const batch_class_name[BATCH_CLASSES];

#endif
