/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Digits of a terminal whose other party has no telephone events, and the reverse: events become
 * tones in the audio, and tones become events. Part of an audio session, like hear.c. */
#ifndef AUDIO_DTMF_H
#define AUDIO_DTMF_H

#include "audio/session_int.h"

/* A telephone event, from a packet of the terminal. */
struct audio_dtmf_event {
	uint8_t event, volume;
	uint32_t done;  /* length of the tone given so far, in units of clock */
	uint32_t lasts; /* length that the packet states, in units of clock */
	uint32_t clock;
};

/* Whether the other terminal gets tones in place of events. */
bool audio_dtmf_makes_tones(const struct audio_session *to);
/* Gives the other terminal the part of the tone that is new. Returns how many units were given. */
uint32_t audio_dtmf_tone(
	struct audio_session *s, struct audio_session *to, const struct audio_dtmf_event *e);

/* Whether the terminal's tones become events of the other one. */
bool audio_dtmf_makes_events(const struct audio_session *s, const struct audio_session *to);
/* Detects digits in the terminal's audio and sends them on as events. Silences the audio while a
 * digit is heard. */
void audio_dtmf_listen(struct audio_session *s, struct audio_session *to, int16_t *pcm, uint32_t n,
	uint32_t rate, uint64_t now_ns);

#endif
