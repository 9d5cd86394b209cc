/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The interface by which calls use codec threads: audio sessions of legs (audio/config.h). bridge/
 * implements it with commands to the threads, tests implement it in memory. Control thread only;
 * never blocks. */
#ifndef CALL_AUDIO_H
#define CALL_AUDIO_H

#include "audio/config.h"
#include "audio/event.h"
#include "audio/play.h"
#include "audio/stats.h"
#include "call/relay.h"

struct codec_registry;

struct audio_ops {
	/* All codecs of this process; constant. */
	const struct codec_registry *(*codecs)(void *arg);
	/* Takes a handle below max, on the codec thread of the session "near", because the sessions
	 * of a call share a thread. near AUDIO_NONE: on the thread with the fewest sessions.
	 * -ENOSPC: all handles of the thread are used. *serial: a new number each time, for
	 * media_stream_cfg.audio. */
	int (*take)(void *arg, uint32_t near, uint32_t *audio, uint32_t *serial);
	void (*release)(void *arg, uint32_t audio);
	/* Prepares the session's settings. send() puts them into force, undo() discards them. mux:
	 * RTCP uses the port of RTP. 0; -EAGAIN: the codec thread is overloaded; -ENOMEM; -EINVAL:
	 * a codec refuses its fmtp, or a resampler is missing. */
	int (*set)(void *arg, uint32_t audio, uint32_t worker, const struct relay_port *port,
		bool mux, const struct audio_cfg *cfg);
	void (*send)(void *arg, uint32_t audio); /* never fails */
	void (*undo)(void *arg, uint32_t audio);
	/* These three take effect at once. 0 or -EAGAIN. play: the clip's reference passes only on
	 * success. */
	int (*play)(void *arg, uint32_t audio, const struct audio_play *p);
	int (*stop)(void *arg, uint32_t audio, uint32_t id); /* id 0: all, queued digits too */
	int (*digits)(void *arg, uint32_t audio, const struct audio_digit *d, uint32_t n);
	void (*stats)(void *arg, uint32_t audio, struct audio_stats *out);
	uint64_t (*now_ns)(void *arg); /* CLOCK_MONOTONIC, by which ceilings grow */
};

struct audio {
	const struct audio_ops *ops; /* NULL: there are no codec threads */
	void *arg;
	uint32_t max; /* handles */
};

#endif
