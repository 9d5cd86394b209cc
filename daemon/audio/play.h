/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Clips and digits for the audio session of a leg. Plain values, copied between threads. */
#ifndef AUDIO_PLAY_H
#define AUDIO_PLAY_H

#include <stdbool.h>
#include <stdint.h>

struct audio_clip;

struct audio_play {
	struct audio_clip *clip; /* the session gets the reference */
	uint32_t start;          /* samples to skip in the first round */
	uint32_t repeat;         /* rounds; 0 = 1 */
	uint32_t limit_ms;       /* 0: none */
	bool mix;                /* mixed with the other party's audio, else in its place */
	uint32_t id;             /* names it in AUDIO_EVENT_PLAYED */
};

struct audio_digit {
	uint8_t event;  /* RFC 4733: 0 to 15 */
	uint8_t volume; /* -dBm0: 0 to 63 */
	uint16_t ms, pause_ms;
};

#endif
