/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An engine processes a batch of jobs: authenticate, decrypt, re-encrypt, tag. It knows nothing of
 * calls, sockets and SDP. It reads the input and writes a separate output and one status per job.
 * So a failed or late device loses nothing: the serial engine runs the same batch again
 * (batch/run.h).
 *
 * The control thread opens an engine once, before any worker starts, because OpenCL's set-up is not
 * thread-safe everywhere. Each worker then owns one queue of it: its arena, its key table, its
 * device queue. One thread at a time uses a queue. */
#ifndef BATCH_ENGINE_H
#define BATCH_ENGINE_H

#include "base/bytes.h"
#include "layout.h"
#include "packet/arena.h"

struct batch {
	struct xc_job *job; /* [n], in the queue's arena */
	/* [n], in the queue's arena; XC_NOT_DONE before a run, XC_OK or XC_BAD_TAG after it */
	uint32_t *status;
	uint32_t n;
	bool in_place; /* serial engine: the packets are read from the arena's out, too */
	bool blocks;   /* jobs may have XC_JOB_HAS_BLOCK() */
};

struct engine_config {
	/* the OpenCL device: "" = best CPU; part of a platform's or device's name; "cpu", "gpu"; or
	 * an index */
	const char *device;
	const char *kernel_dir; /* NULL: the built-in kernel sources */
	uint32_t flags;         /* ENGINE_* */
	/* time limit of a batch on a device with its own memory, after which the device counts as
	 * hung; 0 = 1,000 */
	uint32_t timeout_ms;
	/* batches in flight per queue on a device with its own memory, up to ENGINE_DEPTH_MAX; 0 =
	 * 1 */
	uint32_t depth;
};
#define ENGINE_DEPTH_MAX    8u
#define ENGINE_PORTABLE_AES 0x1 /* do not use the CPU's AES instructions (tests) */
#define ENGINE_SCALAR_LANES 0x2 /* one packet per work-item, as on a GPU, on any device (tests) */
#define ENGINE_OWN_MEMORY   0x4 /* copy batches to and from the device, as to a GPU (tests) */
#define ENGINE_SMALL_CHUNKS \
	0x100 /* with ENGINE_OWN_MEMORY: split batches of 32 packets or more (tests) */
#define ENGINE_TWO_GROUPS \
	0x8 /* compute a packet's two hashes in parallel, not in sequence (tests, comparison) */
#define ENGINE_LIBCRYPTO 0x10 /* serial engine: libcrypto for everything (tests, comparison) */
/* serial engine: hash by sha1_way(place) of sha1_ways.h (tests, comparison) */
#define ENGINE_WAY(place) (((place) + 1u) << 12)

struct engine;       /* an opened engine */
struct engine_queue; /* one worker's queue of it */

struct engine_ops {
	const char *name;
	/* err: buffer for one line with the cause and the remedy. 0 or -errno. */
	int (*open)(
		struct engine **out, const struct engine_config *cfg, char *err, size_t err_len);
	void (*close)(struct engine *e);
	/* A line for logs and statistics: "pthread-AMD EPYC ... (PoCL 3.1)". Valid as long as the
	 * engine. */
	const char *(*device)(const struct engine *e);
	/* Control thread only. slots and key_slots are fixed afterwards. */
	int (*queue_create)(struct engine_queue **out, struct engine *e, const struct arena *arena);
	void (*queue_destroy)(struct engine_queue *q);
	/* Announces that key slots [slot, slot + 2) changed. The queue's worker calls it before the
	 * first job that uses them, and after they were wiped. */
	int (*key_changed)(struct engine_queue *q, uint32_t slot);
	/* Whether the engine supports the ciphers of these two key slots, each with any other. */
	bool (*can)(const struct engine_queue *q, const struct xc_key *rx, const struct xc_key *tx);
	/* Processes the whole batch. A job that exceeds its packets' slots, or names unannounced
	 * keys, gets XC_BAD_TAG and touches nothing. 0, or -errno if the device failed: statuses
	 * and outputs are then undefined. -ETIMEDOUT: the device hangs. The queue then accepts no
	 * more work, and queue_destroy() leaks the memory that the device may still use. */
	int (*run)(struct engine_queue *q, struct batch *b);
	/* Optional: batches in flight. An engine has all of the following, or none. run() is only
	 * for a queue with none in flight. depth: batches in flight per queue; with 1, submit()
	 * gains nothing. */
	uint32_t (*depth)(const struct engine *e);
	/* Starts a batch without waiting. Its jobs, packets and keys must not change until it was
	 * collected. On error, as for run(), the batch is not in flight; earlier ones are. */
	int (*submit)(struct engine_queue *q, const struct batch *b);
	/* Collects the oldest batch in flight. 0: it is done, statuses and results are written.
	 * -EAGAIN: not done by until_ns (CLOCK_MONOTONIC; 0 = do not wait). Another error, as from
	 * run(): it failed. It is then no longer in flight, and nothing writes its statuses and
	 * results any more. After -ETIMEDOUT, all later batches fail in the same way at once. */
	int (*collect)(struct engine_queue *q, uint64_t until_ns);
};

extern const struct engine_ops engine_serial; /* no device: computes in the worker's own thread */
extern const struct engine_ops engine_opencl; /* one dispatch per batch */

#endif
