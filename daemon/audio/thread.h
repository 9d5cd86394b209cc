/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A codec thread owns the audio sessions of some calls. It receives their packets from the audio
 * channels of all workers, handles their deadlines, and returns packets. The control thread sends
 * commands by one ring, in which it reserves room for commands that must not fail, and receives
 * events by another. */
#ifndef AUDIO_THREAD_H
#define AUDIO_THREAD_H

#include "audio/event.h"
#include "audio/play.h"
#include "audio/session.h"

/* SET: settings; a serial's first SET brings the memory of its session. CLOSE ends the session. */
enum audio_cmd_kind { AUDIO_SET, AUDIO_CLOSE, AUDIO_PLAY, AUDIO_STOP, AUDIO_DIGITS };
#define AUDIO_CMD_DIGITS 16u
struct audio_cmd {
	uint8_t kind;
	uint8_t n;       /* DIGITS */
	uint32_t serial; /* serial % audio_thread_config.max is the session's handle */
	uint32_t worker, rtp_stream, rtcp_stream; /* SET: where its packets leave */
	struct audio_order *order;                /* SET: the thread becomes its owner */
	struct audio_session *session; /* SET: the thread becomes its owner; NULL: it exists */
	struct audio_play play;        /* PLAY: the thread gets the clip's reference */
	uint32_t id;                   /* STOP */
	struct audio_digit digit[AUDIO_CMD_DIGITS];
};

struct audio_thread_config {
	const struct codec_registry *codecs;
	struct audio_channel *const *channel; /* by worker; they outlive the thread */
	uint32_t channels;
	uint32_t max;                       /* handles of all threads */
	int event_fd;                       /* eventfd of the control thread; -1: none */
	uint32_t index;                     /* for its name */
	const struct g722_device_ops *g722; /* a device for this thread only; NULL: none */
	uint64_t keep_not;                  /* capabilities that it drops */
};

struct audio_thread_counts {
	uint64_t packets, strays; /* strays: of sessions that have ended */
	uint64_t cpu_ns;          /* of the thread, all it did; 0: it does not run */
	uint32_t sessions;
};

struct audio_thread;

/* Allocates everything, but does not start the thread. 0 or -errno. */
int audio_thread_create(struct audio_thread **out, const struct audio_thread_config *cfg);
/* Starts the thread. 0 or -errno. */
int audio_thread_start(struct audio_thread *t);
/* Stops the thread if it runs, and ends all sessions. NULL is fine. */
void audio_thread_destroy(struct audio_thread *t);
/* Control thread. Sends a command. 0, or -EAGAIN: less room than for "spare" more commands would be
 * left. */
int audio_thread_command(struct audio_thread *t, const struct audio_cmd *cmd, uint32_t spare);
/* Control thread. Number of commands that the ring has room for. */
uint32_t audio_thread_room(const struct audio_thread *t);
/* Control thread. Takes the next event. False: none. */
bool audio_thread_event(struct audio_thread *t, struct audio_event *out);
/* Any thread. Copies the counters of the session with this serial; zeroes if it has not begun, or
 * has ended. */
void audio_thread_stats(const struct audio_thread *t, uint32_t serial, struct audio_stats *out);
struct audio_thread_counts audio_thread_counts(const struct audio_thread *t);

#endif
