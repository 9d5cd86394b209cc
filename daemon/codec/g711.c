/* SPDX-License-Identifier: GPL-2.0-or-later */
/* G.711 by arithmetic (tables 1 and 2 of the recommendation). A code has a sign, three bits that
 * name a segment, and four that divide it. Segments double in width. */
#include "g711.h"

#include <string.h>

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

/* --- Many samples ----------------------------------------------------------------------------- */

/* Segments are powers of two, so a code without its sign is the exponent of a float and the upper
 * four bits of its fraction. Compilers turn these loops into vectors, because BLOCK is known. */
enum {
	BLOCK = 16,
	FRACTION = 23,               /* bits of a float */
	FIRST = (127 + 7) << 4,      /* exponent of 2^7, where segment 0 of mu-law begins */
	MIDDLE = 1 << (FRACTION - 5) /* of an interval */
};

static void codes_of(const int32_t magnitude[BLOCK], int32_t code[BLOCK])
{
	float f[BLOCK];

	for (int i = 0; i < BLOCK; i++)
		f[i] = (float)magnitude[i];
	memcpy(code, f, sizeof(f));
	for (int i = 0; i < BLOCK; i++)
		code[i] = (code[i] >> (FRACTION - 4)) - FIRST;
}

/* The middles of the intervals. code: 0 to 127 */
static void magnitudes_of(const int32_t code[BLOCK], int32_t magnitude[BLOCK])
{
	int32_t bits[BLOCK];
	float f[BLOCK];

	for (int i = 0; i < BLOCK; i++)
		bits[i] = ((code[i] + FIRST) << (FRACTION - 4)) + MIDDLE;
	memcpy(f, bits, sizeof(f));
	for (int i = 0; i < BLOCK; i++)
		magnitude[i] = (int32_t)f[i];
}

static void ulaw_encode_block(const int16_t *restrict sample, uint8_t *restrict out)
{
	int32_t m[BLOCK], code[BLOCK];

	for (int i = 0; i < BLOCK; i++) {
		int32_t sign = sample[i] >> 15, v = (sample[i] ^ sign) - sign;

		m[i] = (v < ULAW_CLIP ? v : ULAW_CLIP) + ULAW_BIAS;
	}
	codes_of(m, code);
	for (int i = 0; i < BLOCK; i++)
		out[i] = (uint8_t) ~(code[i] | (sample[i] >> 8 & SIGN));
}

static void alaw_encode_block(const int16_t *restrict sample, uint8_t *restrict out)
{
	int32_t m[BLOCK], code[BLOCK];

	/* Segment 0 is as wide as segment 1. */
	for (int i = 0; i < BLOCK; i++) {
		int32_t v = sample[i] ^ sample[i] >> 15;

		m[i] = v < 256 ? v + 256 : v;
	}
	codes_of(m, code);
	for (int i = 0; i < BLOCK; i++) {
		int32_t v = sample[i] ^ sample[i] >> 15;

		code[i] -= v < 256 ? 1 << 4 : 0;
		out[i] = (uint8_t)(code[i] ^ (~sample[i] >> 8 & SIGN) ^ ALAW_EVEN);
	}
}

static void ulaw_decode_block(const uint8_t *restrict in, int16_t *restrict sample)
{
	int32_t m[BLOCK], code[BLOCK];

	for (int i = 0; i < BLOCK; i++)
		code[i] = ~in[i] & 0x7f;
	magnitudes_of(code, m);
	for (int i = 0; i < BLOCK; i++) {
		int32_t v = m[i] - ULAW_BIAS, sign = in[i] & SIGN ? 0 : -1;

		sample[i] = (int16_t)((v ^ sign) - sign);
	}
}

static void alaw_decode_block(const uint8_t *restrict in, int16_t *restrict sample)
{
	int32_t m[BLOCK], code[BLOCK];

	for (int i = 0; i < BLOCK; i++) {
		int32_t c = (in[i] ^ ALAW_EVEN) & 0x7f;

		code[i] = c < 16 ? c + 16 : c;
	}
	magnitudes_of(code, m);
	for (int i = 0; i < BLOCK; i++) {
		int32_t c = (in[i] ^ ALAW_EVEN) & 0x7f, v = m[i] - (c < 16 ? 256 : 0);
		int32_t sign = in[i] & SIGN ? 0 : -1;

		sample[i] = (int16_t)((v ^ sign) - sign);
	}
}

#define ALL(name, from, to)                                       \
	void g711_##name##_all(const from *in, size_t n, to *out) \
	{                                                         \
		size_t i = 0;                                     \
                                                                  \
		for (; n - i >= BLOCK; i += BLOCK)                \
			name##_block(in + i, out + i);            \
		for (; i < n; i++)                                \
			out[i] = g711_##name(in[i]);              \
	}

ALL(ulaw_encode, int16_t, uint8_t)
ALL(alaw_encode, int16_t, uint8_t)
ALL(ulaw_decode, uint8_t, int16_t)
ALL(alaw_decode, uint8_t, int16_t)
