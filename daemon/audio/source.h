/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Clips and DTMF tones for a terminal, in place of the other party's audio or mixed with it. Part
 * of the audio session of that terminal; not thread-safe. */
#ifndef AUDIO_SOURCE_H
#define AUDIO_SOURCE_H

#include "audio/events_out.h"
#include "audio/tones.h"

enum { AUDIO_PLAYS = 4 }; /* at once */

struct audio_source_play {
	struct audio_play play; /* owns a reference to clip; clip NULL: unused */
	uint64_t at;            /* position in the clip, in 1/at_rate of its samples */
	uint32_t at_rate;
	uint32_t left;      /* rounds, including this one */
	uint64_t played_us; /* since it began */
};

struct audio_source {
	struct audio_source_play play[AUDIO_PLAYS];
	struct audio_digits wait;
	struct audio_digit digit;        /* in progress, if digit_left or pause_left */
	uint32_t digit_left, pause_left; /* samples at rate */
	uint32_t rate;                   /* of the last run */
	struct tone_out tone;
};

/* Plays that ended or were stopped. */
struct audio_ended {
	uint32_t n;
	uint32_t id[AUDIO_PLAYS];
};

/* Releases the references to clips. */
void audio_source_fini(struct audio_source *s);
/* Begins a play, and takes the clip's reference on success. A play that does not mix ends earlier
 * ones that do not mix, and adds them to ended. 0; -ENOSPC: AUDIO_PLAYS are in progress; -EINVAL:
 * the clip is empty, or ends before start. */
int audio_source_play(
	struct audio_source *s, const struct audio_play *p, struct audio_ended *ended);
/* Ends the play of this id; 0: all plays and digits. */
void audio_source_stop(struct audio_source *s, uint32_t id, struct audio_ended *ended);
/* Queues digits, as audio_digits_add(). */
int audio_source_digits(struct audio_source *s, const struct audio_digit *d, uint32_t n);

/* Whether anything plays. If so, call audio_source_run() for each packet time. */
bool audio_source_busy(const struct audio_source *s);
/* Whether a clip or a tone replaces the other party's audio now. */
bool audio_source_replaces(const struct audio_source *s);
/* Mixes into n mono samples at rate, 8000 to 48000 Hz. On entry pcm has the other party's audio, or
 * silence. */
void audio_source_run(
	struct audio_source *s, uint32_t rate, int16_t *pcm, uint32_t n, struct audio_ended *ended);

#endif
