/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The recording thread: takes what workers' taps give it, deciphers it with an engine queue of its
 * own, and writes files. Nothing else waits for it: its queues are bounded, and what does not fit
 * is a gap in a recording, counted and told. */
#ifndef RECORD_RECORD_H
#define RECORD_RECORD_H

#include "record/record_file.h"
#include "worker/tap.h"
#include "call/relay.h"

struct record_config {
	const char *dir;
	enum record_format format;
	uint64_t max_age_s,
		max_bytes; /* retention: older, or more than that: the oldest go; 0 = all stay */
	struct engine *serial;
	struct tap *const *tap; /* one per worker */
	uint32_t taps;
	const struct relay_local *local;
};

struct record;

/* The folder must be there and writable. On error one line in err, -errno. Starts the thread. */
int record_create(struct record **out, const struct record_config *cfg, char *err, size_t err_len);
/* Ends all recordings as if they were stopped. Workers do not run any more. */
void record_destroy(struct record *r);
extern const struct recorder_ops record_ops; /* arg: struct record */

struct record_stats { /* any thread */
	uint64_t recordings, active, packets, bytes, lost, errors, removed;
};
void record_stats(const struct record *r, struct record_stats *out);

#endif
