/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The recording thread: receives packets from the workers' taps, decrypts them with its own engine
 * queue, and writes files. No other thread waits for it. Its queues are bounded: packets that do
 * not fit are a gap in the recording, which is counted and reported. */
#ifndef RECORD_RECORD_H
#define RECORD_RECORD_H

#include "record/record_file.h"
#include "worker/tap.h"
#include "call/relay.h"

struct record_config {
	const char *dir;
	enum record_format format;
	uint64_t max_age_s,
		/* retention: remove older recordings, and the oldest above this size; 0 = keep all
		 */
		max_bytes;
	/* audio files, as in record_audio.h; NULL: none */
	const struct codec_registry *codecs;
	uint32_t audio_rate;
	bool audio_opus, audio_mixed, audio_single, audio_by_channels;
	struct engine *serial;
	struct tap *const *tap; /* one per worker */
	uint32_t taps;
	const struct relay_local *local;
};

struct record;

/* The folder must exist and be writable. Starts the thread. -errno with one line in err. */
int record_create(struct record **out, const struct record_config *cfg, char *err, size_t err_len);
/* Ends all recordings as if they were stopped. Call it after all workers have ended. */
void record_destroy(struct record *r);
extern const struct recorder_ops record_ops; /* arg: struct record */

struct record_stats { /* any thread */
	uint64_t recordings, active, packets, bytes, lost, errors, removed, repaired, skipped;
};
void record_stats(const struct record *r, struct record_stats *out);

#endif
