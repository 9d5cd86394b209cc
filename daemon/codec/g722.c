/* SPDX-License-Identifier: GPL-2.0-or-later */
/* G.722: a pair of mirror filters splits 16 kHz into two bands, and each band is ADPCM with an
 * adaptive predictor of two poles and six zeros. The comments name the blocks of the
 * recommendation, whose arithmetic decides each bit. */
#include "g722.h"

#include <errno.h>
#include <string.h>

#include "codec/g722_vector.h"

/* Outputs of the quantizer of the lower band for the first six, five and four bits of a code, in
 * units of step / 2^15. */
static const int16_t low_out6[64] = {-136, -136, -136, -136, -24808, -21904, -19008, -16704, -14984,
	-13512, -12280, -11192, -10232, -9360, -8576, -7856, -7192, -6576, -6000, -5456, -4944,
	-4464, -4008, -3576, -3168, -2776, -2400, -2032, -1688, -1360, -1040, -728, 24808, 21904,
	19008, 16704, 14984, 13512, 12280, 11192, 10232, 9360, 8576, 7856, 7192, 6576, 6000, 5456,
	4944, 4464, 4008, 3576, 3168, 2776, 2400, 2032, 1688, 1360, 1040, 728, 432, 136, -432,
	-136};
static const int16_t low_out5[32] = {-280, -280, -23352, -17560, -14120, -11664, -9752, -8184,
	-6864, -5712, -4696, -3784, -2960, -2208, -1520, -880, 23352, 17560, 14120, 11664, 9752,
	8184, 6864, 5712, 4696, 3784, 2960, 2208, 1520, 880, 280, -280};
static const int16_t low_out4[16] = {0, -20456, -12896, -8968, -6288, -4240, -2584, -1200, 20456,
	12896, 8968, 6288, 4240, 2584, 1200, 0};
/* By how much a four-bit code changes the logarithm of the step. */
static const int16_t low_change[16] = {
	-60, 3042, 1198, 538, 334, 172, 58, -30, 3042, 1198, 538, 334, 172, 58, -30, -60};
static const int16_t high_out[4] = {-7408, -1616, 7408, 1616};
static const int16_t high_change[4] = {798, -214, 798, -214};
/* 2048 * 2^(i/32): the step for the fraction of its logarithm. */
static const int16_t power_of_two[32] = {2048, 2093, 2139, 2186, 2233, 2282, 2332, 2383, 2435, 2489,
	2543, 2599, 2656, 2714, 2774, 2834, 2896, 2960, 3025, 3091, 3158, 3228, 3298, 3371, 3444,
	3520, 3597, 3676, 3756, 3838, 3922, 4008};
/* The bits of the upper band if that was always zero: its predictor and its step do not change. */
enum { HIGH_SILENCE = 3 << 6 };
/* Every other tap of the mirror filter, and the others. */
static const int16_t even_tap[G722_TAPS] = {
	3, -11, 12, 32, -210, 951, 3876, -805, 362, -156, 53, -11};
static const int16_t odd_tap[G722_TAPS] = {
	-11, 53, -156, 362, -805, 3876, 951, -210, 32, 12, -11, 3};

static int32_t clamp(int32_t v, int32_t low, int32_t high)
{
	return v < low ? low : v > high ? high : v;
}

static int32_t clamp16(int32_t v)
{
	return g722_clamp16(v);
}

/* LOGSCL, SCALEL and LOGSCH, SCALEH: the next step, after a code. shift: 8 or 10. */
static void adapt_step(struct g722_band *b, int32_t change, int32_t limit, int32_t shift)
{
	b->log_step = clamp((b->log_step * 127 >> 7) + change, 0, limit);
	/* The shift is by -1 at least. */
	b->step =
		(2 * power_of_two[b->log_step >> 6 & 31] >> (shift + 1 - (b->log_step >> 11))) * 4;
}

/* Negates v if mask is -1; mask: 0 or -1. Signs of audio cannot be predicted, so there are no
 * branches on them. */
static int32_t negated(int32_t v, int32_t mask)
{
	return (v ^ mask) - mask;
}

/* UPPOL2 and UPPOL1: the coefficients of the poles follow the signs of the last three partial
 * values. */
static void adapt_poles(struct g722_band *b, int32_t partial)
{
	int32_t differ1 = -((partial ^ b->partial[0]) < 0),
		differ2 = -((partial ^ b->partial[1]) < 0);
	int32_t first = clamp16(b->pole[0] * 4);
	int32_t towards = clamp(negated(first, ~differ1), INT32_MIN, INT16_MAX) >> 7;
	int32_t second =
		clamp(negated(128, differ2) + towards + (b->pole[1] * 32512 >> 15), -12288, 12288);
	int32_t bound = clamp16(15360 - second);

	b->pole[0] =
		clamp(clamp16(negated(192, differ1) + (b->pole[0] * 32640 >> 15)), -bound, bound);
	b->pole[1] = second;
}

/* Block 4: the predictor takes a quantized difference, and predicts the next sample. zeros: of
 * UPZERO and FILTEZ. */
static void predict(struct g722_band *b, int32_t difference, int32_t zeros)
{
	int32_t rebuilt = clamp16(b->predicted + difference); /* RECONS */
	int32_t partial = clamp16(b->zeros + difference);     /* PARREC */
	int32_t poles = 0;

	adapt_poles(b, partial);
	b->zeros = clamp16(zeros);
	b->partial[1] = b->partial[0];
	b->partial[0] = partial;
	b->rebuilt[1] = b->rebuilt[0];
	b->rebuilt[0] = rebuilt;
	/* FILTEP, PREDIC */
	poles = clamp16((b->pole[0] * clamp16(2 * b->rebuilt[0]) >> 15) +
		(b->pole[1] * clamp16(2 * b->rebuilt[1]) >> 15));
	b->predicted = clamp16(poles + b->zeros);
}

/* Adapts the lower band after a code of six bits, at either end. The four highest bits count. */
static void low_adapt(struct g722_band *b, uint32_t code)
{
	int32_t difference = b->step * low_out4[code >> 2] >> 15; /* INVQAL */

	adapt_step(b, low_change[code >> 2], 18432, 8);
	predict(b, difference, g722_zeros(b, difference));
}

static void high_adapt(struct g722_band *b, uint32_t code)
{
	int32_t difference = b->step * high_out[code] >> 15; /* INVQAH */

	adapt_step(b, high_change[code], 22528, 10);
	predict(b, difference, g722_zeros(b, difference));
}

int g722_init(struct g722 *g, uint32_t rate)
{
	if (rate != 64000 && rate != 56000 && rate != 48000)
		return -EINVAL;
	memset(g, 0, sizeof(*g));
	g->low.step = 32;
	g->high.step = 8;
	g->spare = (64000 - rate) / 8000;
	return 0;
}

/* The halves of the delay line: the past of the filter, then a chunk. Filtering in vectors reads a
 * few values more. */
struct lines {
	int16_t even[G722_TAPS - 1 + G722_CHUNK + 8], odd[G722_TAPS - 1 + G722_CHUNK + 8];
	int32_t even_sum[G722_CHUNK], odd_sum[G722_CHUNK];
};

enum { PAST = G722_TAPS - 1 };

static void lines_start(struct lines *l, const struct g722 *g)
{
	memset(l->even, 0, sizeof(l->even));
	memset(l->odd, 0, sizeof(l->odd));
	memcpy(l->even, g->even, sizeof(g->even));
	memcpy(l->odd, g->odd, sizeof(g->odd));
}

/* Filters n pairs of values after the past, and keeps what the next chunk needs. */
static void lines_filter(struct lines *l, struct g722 *g, uint32_t n)
{
	g722_filter(l->even, even_tap, l->even_sum, n);
	g722_filter(l->odd, odd_tap, l->odd_sum, n);
	memcpy(g->even, l->even + n, sizeof(g->even));
	memcpy(g->odd, l->odd + n, sizeof(g->odd));
}

/* INVQBL: the output of the lower quantizer for as many bits as are audio. */
static int32_t low_difference(const struct g722 *g, uint32_t code)
{
	const int16_t *table = g->spare == 0 ? low_out6 : g->spare == 1 ? low_out5 : low_out4;

	return g->low.step * table[code >> g->spare] >> 15;
}

static void decode_chunk(struct g722 *g, const uint8_t *in, uint32_t n, int16_t *pcm)
{
	struct lines l;

	lines_start(&l, g);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t low_code = in[i] & 0x3f, high_code = in[i] >> 6;
		int32_t low = clamp(g->low.predicted + low_difference(g, low_code), -16384, 16383);
		int32_t high = clamp(g->high.predicted + (g->high.step * high_out[high_code] >> 15),
			-16384, 16383);

		low_adapt(&g->low, low_code);
		high_adapt(&g->high, high_code);
		l.even[PAST + i] = (int16_t)(low + high);
		l.odd[PAST + i] = (int16_t)(low - high);
	}
	lines_filter(&l, g, n);
	for (uint32_t i = 0; i < n; i++) {
		pcm[2 * i] = (int16_t)clamp16(l.odd_sum[i] >> 11);
		pcm[2 * i + 1] = (int16_t)clamp16(l.even_sum[i] >> 11);
	}
}

void g722_decode_low(struct g722 *g, const uint8_t *in, size_t n, int16_t *pcm)
{
	struct g722 s = *g; /* a copy, because pcm could be memory of g */

	for (size_t i = 0; i < n; i++) {
		uint32_t code = in[i] & 0x3f;

		pcm[i] = (int16_t)(2 *
			clamp(s.low.predicted + low_difference(&s, code), -16384, 16383));
		low_adapt(&s.low, code);
	}
	g->low = s.low;
}

void g722_decode(struct g722 *g, const uint8_t *in, size_t n, int16_t *pcm)
{
	for (size_t at = 0; at < n; at += G722_CHUNK)
		decode_chunk(g, in + at, n - at < G722_CHUNK ? (uint32_t)(n - at) : G722_CHUNK,
			pcm + 2 * at);
}

/* QUANTL: the code of the interval that contains the difference. Codes count down from the largest
 * magnitude; below zero the two smallest differ. */
static uint32_t low_quantize(const struct g722_band *b, int32_t sample)
{
	static const uint8_t code[2][G722_LEVELS + 1] = {
		{61, 60, 59, 58, 57, 56, 55, 54, 53, 52, 51, 50, 49, 48, 47, 46, 45, 44, 43, 42, 41,
			40, 39, 38, 37, 36, 35, 34, 33, 32},
		{63, 62, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, 15, 14, 13,
			12, 11, 10, 9, 8, 7, 6, 5, 4}};
	int32_t difference = clamp16(sample - b->predicted), sign = -(difference < 0);

	return code[sign & 1][g722_levels(b->step, difference ^ sign)];
}

/* QUANTH */
static uint32_t high_quantize(const struct g722_band *b, int32_t sample)
{
	static const uint8_t code[2][2] = {{3, 2}, {1, 0}};
	int32_t difference = clamp16(sample - b->predicted), sign = -(difference < 0);

	return code[sign & 1][(difference ^ sign) >= 564 * b->step >> 12];
}

static void encode_chunk(struct g722 *g, const int16_t *pcm, uint32_t n, uint8_t *out)
{
	struct lines l;

	lines_start(&l, g);
	for (uint32_t i = 0; i < n; i++) {
		l.even[PAST + i] = pcm[2 * i];
		l.odd[PAST + i] = pcm[2 * i + 1];
	}
	lines_filter(&l, g, n);
	for (uint32_t i = 0; i < n; i++) {
		int32_t even = l.even_sum[i], odd = l.odd_sum[i];
		uint32_t low_code = low_quantize(&g->low, (odd + even) >> 14);
		uint32_t high_code = high_quantize(&g->high, (odd - even) >> 14);

		low_adapt(&g->low, low_code);
		high_adapt(&g->high, high_code);
		out[i] = (uint8_t)(high_code << 6 | low_code >> g->spare << g->spare);
	}
}

/* Steps through the samples as encode_chunk() does. Each step waits for the one before, so what
 * follows from a code is computed before the whole code is known. */
void g722_encode_low(struct g722 *g, const int16_t *pcm, size_t n, uint8_t *out)
{
	static const int16_t change[8] = {-60, -30, 58, 172, 334, 538, 1198, 3042};
	static const int16_t level[2][8] = {{0, 1200, 2584, 4240, 6288, 8968, 12896, 20456},
		{0, -1200, -2584, -4240, -6288, -8968, -12896, -20456}};
	struct g722_band b = g->low; /* a copy, because out could be memory of g */
	struct g722_ahead ahead;

	for (size_t i = 0; i < n; i++) {
		int32_t past = clamp16((pcm[i] >> 1) - b.predicted), sign = -(past < 0);
		uint32_t fourth = g722_fourths(b.step, past ^ sign), code;
		int32_t difference = b.step * level[sign & 1][fourth] >> 15;

		g722_look_ahead(&ahead, &b);
		code = low_quantize(&b, pcm[i] >> 1);
		out[i] = (uint8_t)(HIGH_SILENCE | code >> g->spare << g->spare);
		adapt_step(&b, change[fourth], 18432, 8);
		predict(&b, difference, g722_zeros_ahead(&ahead, &b, difference));
	}
	g->low = b;
}

void g722_encode(struct g722 *g, const int16_t *pcm, size_t n, uint8_t *out)
{
	for (size_t at = 0; at < n; at += G722_CHUNK)
		encode_chunk(g, pcm + 2 * at, n - at < G722_CHUNK ? (uint32_t)(n - at) : G722_CHUNK,
			out + at);
}
