/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The mock engine, for tests: right by way of srtp/ref, until it is told to misbehave. */
#ifndef BATCH_MOCK_H
#define BATCH_MOCK_H

#include "batch/engine.h"

enum mock_mode {
	MOCK_RIGHT,
	MOCK_FAIL,      /* run() returns -EIO, statuses left alone */
	MOCK_UNDONE,    /* run() returns 0 and leaves every second status at XC_NOT_DONE */
	MOCK_LIE_TAG,   /* says XC_OK for packets that do not authenticate */
	MOCK_LIE_BYTES, /* turns over one bit of each result's tag or last byte */
	/* run() returns -ETIMEDOUT after a while, as from a device that does not answer */
	MOCK_HANG,
	MOCK_IDLE, /* says XC_OK at once and does nothing: as fast as a device can be */
};

struct mock_control { /* one thread at a time */
	enum mock_mode mode;
	uint32_t fail_after; /* this many runs are right before mode begins */
	bool no_gcm;         /* can() refuses GCM on either side */
	bool no_queue;       /* queue_create() fails */
	uint32_t delay_us;   /* each run takes this much longer */
	/* batches at once; before queue_create(); 0 = 1. Each is run when it is collected */
	uint32_t depth;
	uint32_t looks; /* collect() without waiting says so often that it is not yet done */
	/* written by the engine */
	uint64_t runs, jobs, keys_changed;
	uint32_t last_n;      /* jobs of the last run */
	uint32_t flying_most; /* batches that were in flight together */
};

/* Of an engine that engine_mock.open() gave. */
struct mock_control *mock_control(struct engine *e);

#endif
