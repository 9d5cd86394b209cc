/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The engines of the process: the serial one, and its OpenCL devices. */
#ifndef BATCH_ENGINES_H
#define BATCH_ENGINES_H

#include "batch/run.h"

struct engines {
	struct engine *serial;
	struct batch_device device[BATCH_DEVICES_MAX];
	uint32_t devices; /* 0: none requested, or none found */
	uint32_t compile_ms;
	uint32_t depth; /* batches that a worker may have in flight */
};

#endif
