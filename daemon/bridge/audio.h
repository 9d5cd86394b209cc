/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Implements call/audio.h with codec threads: handles, their serials, and prepared settings.
 * Control thread only. */
#ifndef BRIDGE_AUDIO_H
#define BRIDGE_AUDIO_H

#include "audio/thread.h"
#include "bridge/audio_pairs.h"
#include "call/audio.h"

#define AUDIO_THREADS_MAX 16u

struct bridge_audio_config {
	const struct codec_registry *codecs;
	/* Channels by thread and worker: [thread * workers + worker]; they outlive the sessions. */
	struct audio_channel *const *channel;
	uint32_t workers, threads;
	uint32_t max;                       /* sessions; rounded up to a multiple of threads */
	uint64_t keep_not;                  /* capabilities that the threads drop */
	int event_fd;                       /* eventfd; readable: call bridge_audio_poll() */
	const struct g722_device_ops *g722; /* [threads], outlives them; NULL: none */
	/* Reports a session's event. */
	void (*event)(void *arg, uint32_t audio, const struct audio_event *e);
	void *event_arg;
};

struct bridge_audio;

/* Creates the threads without starting them. 0 or -errno. */
int bridge_audio_create(struct bridge_audio **out, const struct bridge_audio_config *cfg);
/* Starts the threads. 0 or -errno. */
int bridge_audio_start(struct bridge_audio *b);
/* Ends the threads and all sessions. NULL is fine. */
void bridge_audio_destroy(struct bridge_audio *b);
extern const struct audio_ops bridge_audio_ops; /* arg: struct bridge_audio */
/* Number of handles. */
uint32_t bridge_audio_max(const struct bridge_audio *b);
/* Reports all waiting events. Call it when event_fd is readable. */
void bridge_audio_poll(struct bridge_audio *b);

struct bridge_audio_usage {
	uint32_t sessions; /* taken */
	uint64_t packets, strays;
	uint64_t cpu_ns;           /* of all codec threads */
	uint64_t broken;           /* sessions whose codec's process failed too often */
	uint64_t stale, back_full; /* of the channels: see packet/audio.h */
};
/* Sums the counters of all threads and channels. b NULL: there are no codec threads. */
void bridge_audio_usage(const struct bridge_audio *b, struct bridge_audio_usage *out);

/* Counters by pair of codecs, of all sessions so far. b NULL: none. */
void bridge_audio_pairs(const struct bridge_audio *b, struct audio_pairs *out);

#endif
