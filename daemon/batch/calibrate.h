/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where a dispatch to a device is quicker than the serial engine: measured, class by class. */
#ifndef BATCH_CALIBRATE_H
#define BATCH_CALIBRATE_H

#include "batch/run.h"

struct calibration {
	struct batch_device *device; /* gets min and cost */
	struct engine_queue *device_queue, *serial_queue;
	const struct engine_ops *serial_ops;
	struct arena *arena; /* of a worker that has no traffic yet; is as new afterwards */
	/* From here on batch_calibrate()'s own. */
	uint32_t streams;    /* of each suite */
	struct xc_job *job;  /* [made]: packets in the arena's slots of the same numbers */
	uint32_t made, next; /* which come next */
	volatile uint8_t *cold;
};

void batch_calibrate(struct calibration *c);

#endif
