/* SPDX-License-Identifier: GPL-2.0-or-later */
/* G.711 by arithmetic (tables 1 and 2 of the recommendation). A code has a sign, three bits that
 * name a segment, and four that divide it. Segments double in width. */
#include "g711.h"

enum {
	ULAW_BIAS = 132,   /* 33 steps of 4: segments begin at powers of two with it */
	ULAW_CLIP = 32635, /* the largest magnitude with a segment */
	ALAW_EVEN = 0x55,  /* A-law inverts every other bit */
	SIGN = 0x80,
};

/* Position of the highest bit, of a value that is not zero. */
static unsigned top_bit(unsigned v)
{
	return 31U - (unsigned)__builtin_clz(v);
}

uint8_t g711_ulaw_encode(int16_t sample)
{
	unsigned magnitude = sample < 0 ? (unsigned)-sample : (unsigned)sample;
	unsigned biased = (magnitude < ULAW_CLIP ? magnitude : ULAW_CLIP) + ULAW_BIAS;
	unsigned segment = top_bit(biased) - 7;
	unsigned code = segment << 4 | (biased >> (segment + 3) & 0x0f);

	return (uint8_t)(~code & 0x7f) | (sample < 0 ? 0 : SIGN);
}

int16_t g711_ulaw_decode(uint8_t code)
{
	unsigned inverted = (uint8_t)~code;
	int magnitude = (int)(((inverted & 0x0f) << 3 | 0x84) << (inverted >> 4 & 7)) - ULAW_BIAS;

	return (int16_t)(inverted & SIGN ? -magnitude : magnitude);
}

uint8_t g711_alaw_encode(int16_t sample)
{
	unsigned magnitude = sample < 0 ? (unsigned)~sample : (unsigned)sample;
	unsigned segment = magnitude < 256 ? 0 : top_bit(magnitude) - 7;
	unsigned code = segment << 4 | (magnitude >> (segment ? segment + 3 : 4) & 0x0f);

	return (uint8_t)((code | (sample < 0 ? 0 : SIGN)) ^ ALAW_EVEN);
}

int16_t g711_alaw_decode(uint8_t code)
{
	unsigned plain = code ^ ALAW_EVEN, segment = plain >> 4 & 7;
	int magnitude = (int)((plain & 0x0f) << 4) + 8;

	if (segment)
		magnitude = (magnitude + 256) << (segment - 1);
	return (int16_t)(plain & SIGN ? magnitude : -magnitude);
}
