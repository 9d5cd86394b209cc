/* SPDX-License-Identifier: GPL-2.0-or-later */
/* DTMF in the audio (ITU-T Q.23, Q.24): generates digits and detects them. Pure. */
#ifndef AUDIO_TONES_H
#define AUDIO_TONES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TONES_NO_DIGIT 255u

/* Returns the event of RFC 4733 for a character: '0' to '9', '*', '#', 'A' to 'D', either case; for
 * others TONES_NO_DIGIT. */
uint8_t tones_event(char c);
/* Returns the character of an event, 0 to 15; for others '?'. */
char tones_char(uint8_t event);

/* One digit being generated. */
struct tone_out {
	double step[2], phase[2]; /* radians per sample; low and high frequency */
	double peak;
};

/* Begins a digit. event: 0 to 15. volume: power of both frequencies together, in -dBm0 (RFC 4733
 * 2.3.1). rate: Hz. */
void tone_out_init(struct tone_out *t, uint8_t event, uint8_t volume, uint32_t rate);
/* Writes the next n samples. */
void tone_out_run(struct tone_out *t, int16_t *pcm, size_t n);

/* Detector for one terminal. Two blocks in a row with a digit begin it,
 * three without it end it. So 40 ms of a digit are detected, and 40 ms of pause separate two equal
 * digits (Q.24); 20 ms are too short for either. */
struct tones_in {
	uint32_t block;  /* samples */
	double coeff[8]; /* 2 cos(w): four low, four high frequencies */
	double s1[8], s2[8], energy;
	uint32_t filled;
	uint8_t last;   /* digit of the last block */
	uint8_t digit;  /* in progress; TONES_NO_DIGIT: none */
	uint8_t misses; /* blocks in a row without it */
};

/* rate: 8000 to 48000. */
void tones_in_init(struct tones_in *t, uint32_t rate);
/* Reads n samples. Writes the digits that began to out; more than cap are lost. Returns the number
 * written. */
size_t tones_in_run(struct tones_in *t, const int16_t *pcm, size_t n, uint8_t *out, size_t cap);

#endif
