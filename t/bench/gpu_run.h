/* SPDX-License-Identifier: GPL-2.0-or-later */
/* For xcipher-bench gpu: a batch, packed as the engine packs it for a device with its own memory.
 * It can run the kernel alone (resident data), everything with batches in flight, or the copies
 * alone. */
#ifndef BENCH_GPU_RUN_H
#define BENCH_GPU_RUN_H

#include "batch/opencl.h"
#include "bench.h"

enum { GPU_SETS = 3 }; /* batches in flight: one is uploaded, one computed, one downloaded */

/* Rates computed from the properties that the device reports. */
struct gpu_rate {
	cl_uint units, mhz, lanes; /* lanes: 32-bit integer operations of a unit per clock */
	const char *how;           /* the source of lanes */
};

struct gpu;
/* 0, or -errno with a line in err. The load must be loaded (load_next()) and stay so. */
int gpu_create(
	struct gpu **out, const struct bench_env *env, struct load *l, char *err, size_t err_len);
void gpu_destroy(struct gpu *g);
const char *gpu_name(const struct gpu *g);
struct gpu_rate gpu_rate(const struct gpu *g);
/* Bytes of a batch that cross the bus. */
size_t gpu_bytes_up(const struct gpu *g), gpu_bytes_down(const struct gpu *g);

/* Nanoseconds for this many batches; 0 if the device failed. */
uint64_t gpu_resident(struct gpu *g, unsigned batches);
uint64_t gpu_transfers(struct gpu *g, unsigned batches);
uint64_t gpu_copies(struct gpu *g, unsigned batches);
/* Copies the results of the last transfer to the load's arena. */
void gpu_results(struct gpu *g);

#endif
