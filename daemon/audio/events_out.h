/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sends digits as telephone events (RFC 4733). The caller steps it once per packet time, so it
 * needs no clock. Pure. */
#ifndef AUDIO_EVENTS_OUT_H
#define AUDIO_EVENTS_OUT_H

#include <stdbool.h>

#include "audio/play.h"

enum { AUDIO_DIGITS_MAX = 32 }; /* in a queue */

/* Queue of digits to send. All zeroes: empty. */
struct audio_digits {
	struct audio_digit digit[AUDIO_DIGITS_MAX];
	uint32_t first, n;
};

/* Queues all n digits or none. 0; -ENOSPC; -EINVAL: not a digit. */
int audio_digits_add(struct audio_digits *q, const struct audio_digit *d, uint32_t n);
/* Takes the oldest digit. False: the queue is empty. */
bool audio_digits_next(struct audio_digits *q, struct audio_digit *out);

struct audio_events {
	struct audio_digits wait;
	struct audio_digit now;
	uint32_t clock;   /* of durations, Hz */
	uint32_t stream;  /* of timestamps, Hz: that of the codec */
	uint32_t total;   /* of the event, in units of the clock; 0: none is being sent */
	uint32_t done;    /* units of the segment that were sent */
	uint32_t segment; /* units of all earlier segments (RFC 4733 2.5.1.3) */
	uint32_t ts;      /* of the segment, in units of the stream */
	uint32_t pause;   /* units left of the pause after an event */
	bool begun;       /* the first packet of the event was sent */
};

enum audio_events_do {
	AUDIO_EVENTS_IDLE,  /* the queue is empty: send audio */
	AUDIO_EVENTS_PAUSE, /* between two events: send audio */
	AUDIO_EVENTS_SEND,  /* send *out in place of audio */
};

struct audio_event_packet {
	uint8_t payload[4];
	uint32_t ts;    /* RTP timestamp */
	uint8_t copies; /* each has its own sequence number; 3 at the end of an event */
	bool marker;
};

/* The clock of the payload type, and that of the codec. */
void audio_events_init(struct audio_events *e, uint32_t clock, uint32_t stream);
/* As audio_digits_add(). */
int audio_events_add(struct audio_events *e, const struct audio_digit *d, uint32_t n);
/* Empties the queue. The next packet ends the event in progress. */
void audio_events_stop(struct audio_events *e);
/* Whether an event or its pause is in progress, or digits are queued. */
bool audio_events_busy(const struct audio_events *e);
/* One packet time of "units" of the stream, at most 65535, which begins at timestamp now. */
enum audio_events_do audio_events_step(
	struct audio_events *e, uint32_t now, uint32_t units, struct audio_event_packet *out);

#endif
