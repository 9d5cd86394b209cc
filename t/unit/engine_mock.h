/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An engine for tests: correct by srtp/ref, or with failures on demand. */
#ifndef UNIT_ENGINE_MOCK_H
#define UNIT_ENGINE_MOCK_H

#include "batch/engine.h"

extern const struct engine_ops engine_mock;

enum mock_mode {
	MOCK_RIGHT,
	MOCK_FAIL,      /* run() returns -EIO, statuses unchanged */
	MOCK_UNDONE,    /* run() returns 0 and leaves every second status at XC_NOT_DONE */
	MOCK_LIE_TAG,   /* reports XC_OK for packets that do not authenticate */
	MOCK_LIE_BYTES, /* flips one bit of each result's tag or last byte */
	/* run() returns -ETIMEDOUT late, like a hung device */
	MOCK_HANG,
	MOCK_IDLE, /* reports XC_OK at once without work: the fastest possible device */
};

struct mock_control { /* one thread at a time */
	enum mock_mode mode;
	uint32_t fail_after; /* number of correct runs before mode begins */
	bool no_gcm;         /* can() refuses GCM on either side */
	bool no_queue;       /* queue_create() fails */
	uint32_t delay_us;   /* additional time of each run */
	/* batches in flight, set before queue_create(); 0 = 1. A batch runs when it is collected.
	 */
	uint32_t depth;
	uint32_t looks; /* number of times that collect() without waiting returns -EAGAIN */
	/* written by the engine */
	uint64_t runs, jobs, keys_changed;
	uint32_t last_n;      /* jobs of the last run */
	uint32_t flying_most; /* batches that were in flight together */
};

/* Inspects an engine that engine_mock.open() created. */
struct mock_control *mock_control(struct engine *e);

#endif
