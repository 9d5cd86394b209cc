/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An engine processes a batch of jobs: authenticate, decrypt, re-encrypt, tag. It knows neither calls nor sockets nor
 * SDP. It reads the input bytes and writes separate output bytes and one status per job, so that a failed or late
 * device costs nothing: the same batch is run again by the serial engine (batch/run.h does that).
 *
 * An engine is opened once, by the control thread, before any worker starts (setting up OpenCL is not thread-safe
 * everywhere). Each worker then owns one queue of it: its arena, its key table, its device queue. A queue is used by
 * one thread at a time. */
#ifndef BATCH_ENGINE_H
#define BATCH_ENGINE_H

#include "base/bytes.h"
#include "layout.h"

/* A packet's place in the arena. Every slot of both buffers is this long; a packet starts at least
 * ARENA_HEADROOM into it and ends at least XC_SLACK before its end. An odd number of cache lines (47): with a power of two
 * the same bytes of all packets would compete for the same few cache sets. */
#define ARENA_SLOT_LEN 3008u
#define ARENA_HEADROOM \
	128u /* for the headers steering writes before a result: Ethernet, two VLAN tags, IPv6, UDP */
#define ARENA_MAX_PACKET 2048u /* bytes of RTP or RTCP; longer datagrams are dropped and counted */

struct batch {
	struct xc_job *job; /* [n], in the queue's arena */
	uint32_t *
		status; /* [n], in the queue's arena; XC_NOT_DONE before, XC_OK or XC_BAD_TAG after */
	uint32_t n;
};

/* Memory the engine gives to its worker, page-aligned, so that it can be the device's own buffer. */
struct arena {
	uint8_t *in;        /* slots * ARENA_SLOT_LEN */
	uint8_t *out;       /* slots * ARENA_SLOT_LEN; behind in, in the same mapping */
	struct xc_job *job; /* slots */
	uint32_t *status;   /* slots */
	uint32_t slots;
	uint32_t batch_max; /* jobs of a batch at most; 0 = slots */
	struct xc_key *
		key; /* key_slots, secure memory; 0 and 1 are plain. Written by the control thread for a slot that no
	                      * flow uses yet, wiped by the worker when the last flow is gone. */
	uint32_t key_slots;
};

struct engine_config {
	const char *
		device; /* "", or platform or device name part, "cpu", "gpu", or index: which OpenCL device */
	const char *kernel_dir; /* NULL: the kernel sources that are built in */
	uint32_t flags;         /* ENGINE_* */
	uint32_t
		timeout_ms; /* a device with memory of its own that takes longer for a batch hangs; 0 = 1,000 */
	uint32_t
		depth; /* batches that each queue of a device with memory of its own takes at once, up to ENGINE_DEPTH_MAX; 0 = 1 */
};
#define ENGINE_DEPTH_MAX    8u
#define ENGINE_PORTABLE_AES 0x1 /* leave the CPU's AES instructions unused (tests) */
#define ENGINE_SCALAR_LANES 0x2 /* one packet per work-item, as on a GPU, on any device (tests) */
#define ENGINE_OWN_MEMORY   0x4 /* copy batches to and from the device, as to a GPU (tests) */
#define ENGINE_SMALL_CHUNKS \
	0x100 /* with ENGINE_OWN_MEMORY: batches of 32 packets and more in parts (tests) */
#define ENGINE_TWO_GROUPS \
	0x8 /* a packet's two hashes side by side, not one after the other (tests, comparison) */

struct engine;       /* an opened engine */
struct engine_queue; /* one worker's queue of it */

struct engine_ops {
	const char *name;
	/* err: buffer for one line that says what is wrong and what would be right. 0 or -errno. */
	int (*open)(
		struct engine **out, const struct engine_config *cfg, char *err, size_t err_len);
	void (*close)(struct engine *e);
	/* A line for logs and statistics: "pthread-AMD EPYC ... (PoCL 3.1)". Lives as long as the engine. */
	const char *(*device)(const struct engine *e);
	/* Called by the control thread only. slots, key_slots: fixed from here on. */
	int (*queue_create)(struct engine_queue **out, struct engine *e, const struct arena *arena);
	void (*queue_destroy)(struct engine_queue *q);
	/* Key slots [slot, slot + 2) changed; called by the queue's worker before the first job that uses them, and after
	 * they were wiped. */
	int (*key_changed)(struct engine_queue *q, uint32_t slot);
	/* Whether the engine can do these two key slots' ciphers: each of them, whatever the other is. */
	bool (*can)(const struct engine_queue *q, const struct xc_key *rx, const struct xc_key *tx);
	/* Process the batch completely. A job that does not stay within its packets' slots, or names keys that were never
	 * announced, is XC_BAD_TAG and touches nothing. 0, or -errno when the device failed: statuses and outputs are then meaningless.
	 * -ETIMEDOUT: it hangs, and the queue does nothing any more (queue_destroy() leaves behind what the device may still use). */
	int (*run)(struct engine_queue *q, struct batch *b);
	/* Optional, the rest, and all or none: batches in flight. run() is for a queue that has none.
	 * How many each queue takes at once; with 1 there is no use in submit(). */
	uint32_t (*depth)(const struct engine *e);
	/* Starts a batch and does not wait. Until it was collected its jobs, packets and keys stay as they are. An error is as
	 * run()'s, and the batch is not in flight; those before it are. */
	int (*submit)(struct engine_queue *q, const struct batch *b);
	/* The oldest batch in flight. 0: it is done, statuses and results are written. -EAGAIN: not by until_ns (CLOCK_MONOTONIC; 0 =
	 * do not wait). Otherwise, as from run(), it failed: it is in flight no more, and nothing writes its statuses and results
	 * any more. After -ETIMEDOUT those behind it end so, too, at once. */
	int (*collect)(struct engine_queue *q, uint64_t until_ns);
};

extern const struct engine_ops engine_serial; /* OpenSSL's libcrypto, packet by packet */
extern const struct engine_ops engine_opencl; /* one dispatch for the batch */
extern const struct engine_ops engine_mock;   /* tests: refuses, fails or lies as told */

/* The memory of one worker, shared by all the engines that may run its batches. 0 or -ENOMEM. */
int arena_create(struct arena *out, uint32_t slots, uint32_t key_slots);
void arena_destroy(struct arena *a);

#endif
