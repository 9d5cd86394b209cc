/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Digits of a terminal that the other party must not get (ng's DTMF-security): telephone events and
 * tones are replaced by silence, a tone, or another digit. Part of an audio session, like hear.c.
 *
 * A tone is detected some 40 ms after it began. So the terminal's audio is held back for COVER_MS,
 * and what is held when a digit is detected is replaced, too. */
#ifndef AUDIO_DTMF_COVER_H
#define AUDIO_DTMF_COVER_H

#include <stdbool.h>
#include <stdint.h>

#include "audio/tones.h"

enum { COVER_MS = 60, COVER_SAMPLES = 48 * COVER_MS };

struct audio_cover {
	int16_t held[COVER_SAMPLES];
	uint32_t n;    /* samples in held, a ring */
	uint32_t at;   /* index of the oldest */
	uint32_t rate; /* of held and tones; 0: nothing was covered yet */
	bool active;   /* the last samples went through held */
	bool covering; /* a digit is in progress */
	struct tones_in tones;
	uint8_t digit; /* replaces the one in progress */
	uint32_t out_rate;
	struct tone_out out; /* the replacement, at out_rate */
};

struct audio_session;

/* Whether digits of the session's terminal are replaced now. Also true while a tone lasts that
 * began when they were. */
bool audio_cover_on(const struct audio_session *s);
/* Whether the telephone event in progress is replaced. The setting at its beginning applies until
 * it ends. */
bool audio_cover_event(const struct audio_session *s);
/* Whether that event is replaced by another digit. */
bool audio_cover_by_digits(const struct audio_session *s);
/* A digit has begun: chooses its replacement. */
void audio_cover_begin(struct audio_session *s);
/* Writes n samples of the replacement. */
void audio_cover_fill(struct audio_session *s, uint32_t rate, int16_t *pcm, uint32_t n);
/* Replaces n mono samples by those that came COVER_MS before, with their digits covered. Reports
 * digits. */
void audio_cover_run(struct audio_session *s, uint32_t rate, int16_t *pcm, uint32_t n);
/* Only reports the digits in n mono samples. */
void audio_cover_listen(struct audio_session *s, uint32_t rate, const int16_t *pcm, uint32_t n);
/* Forgets what is held: another codec or source begins. */
void audio_cover_reset(struct audio_session *s);

#endif
