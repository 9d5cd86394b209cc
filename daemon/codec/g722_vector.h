/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The parts of G.722 that do the same to many values, with SSE2 or in plain C (G722_PLAIN: in plain
 * C everywhere). Both give the same results for all values that g722.c passes. */
#ifndef CODEC_G722_VECTOR_H
#define CODEC_G722_VECTOR_H

#include <stdint.h>

#include "codec/g722.h"

#if defined(__SSE2__) && !defined(G722_PLAIN)
#include <emmintrin.h>
#define G722_SSE2 1
#endif

enum {
	G722_LEVELS = 29, /* of the lower quantizer, without 0 */
	G722_TAPS = 12,   /* of each half of the mirror filter */
	G722_CHUNK = 80   /* pairs of samples that are filtered at once, a multiple of 8 */
};

/* Decision levels of the six-bit quantizer of the lower band, in units of step / 2^16. */
static const uint16_t g722_level[32] = {35 << 4, 72 << 4, 110 << 4, 150 << 4, 190 << 4, 233 << 4,
	276 << 4, 323 << 4, 370 << 4, 422 << 4, 473 << 4, 530 << 4, 587 << 4, 650 << 4, 714 << 4,
	786 << 4, 858 << 4, 940 << 4, 1023 << 4, 1121 << 4, 1219 << 4, 1339 << 4, 1458 << 4,
	1612 << 4, 1765 << 4, 1980 << 4, 2195 << 4, 2557 << 4, 2919 << 4};

static inline int32_t g722_clamp16(int32_t v)
{
	return v < INT16_MIN ? INT16_MIN : v > INT16_MAX ? INT16_MAX : v;
}

#ifdef G722_SSE2

/* FILTEZ. past: twice the differences. */
static inline int32_t g722_sum(__m128i zero, __m128i past)
{
	__m128i low = _mm_mullo_epi16(zero, past), high = _mm_mulhi_epi16(zero, past);

	low = _mm_add_epi32(_mm_srai_epi32(_mm_unpacklo_epi16(low, high), 15),
		_mm_srai_epi32(_mm_unpackhi_epi16(low, high), 15));
	low = _mm_add_epi32(low, _mm_shuffle_epi32(low, 0x4e));
	low = _mm_add_epi32(low, _mm_shuffle_epi32(low, 0xb1));
	return _mm_cvtsi128_si32(low);
}

/* UPZERO, then FILTEZ: the coefficients of the zeros follow the signs of the last differences.
 * Stores the new difference. Returns the sum, not limited. zero * 32640 >> 15 is zero plus the high
 * half of -256 * zero. */
static inline int32_t g722_zeros(struct g722_band *b, int32_t difference)
{
	const __m128i six = _mm_set_epi16(0, 0, -1, -1, -1, -1, -1, -1);
	__m128i zero = _mm_loadu_si128((const __m128i *)b->zero);
	__m128i past = _mm_loadu_si128((const __m128i *)b->difference);
	__m128i other = _mm_xor_si128(
		_mm_srai_epi16(past, 15), _mm_set1_epi16((int16_t)(difference >> 31)));
	__m128i by = _mm_set1_epi16(difference ? 128 : 0);

	by = _mm_sub_epi16(_mm_xor_si128(by, other), other);
	zero = _mm_add_epi16(zero, _mm_mulhi_epi16(zero, _mm_set1_epi16(-256)));
	zero = _mm_adds_epi16(zero, by);
	past = _mm_insert_epi16(_mm_slli_si128(past, 2), (int16_t)difference, 0);
	past = _mm_and_si128(past, six);
	_mm_storeu_si128((__m128i *)b->zero, zero);
	_mm_storeu_si128((__m128i *)b->difference, past);
	return g722_sum(zero, _mm_adds_epi16(past, past));
}

/* The coefficients of the zeros after a difference of either sign, computed before it is known:
 * encoders wait for each difference. */
struct g722_ahead {
	__m128i zero[2];          /* [sign] */
	int32_t first[2], sum[2]; /* the coefficient of that difference; the sum of the others */
};

static inline void g722_look_ahead(struct g722_ahead *a, const struct g722_band *b)
{
	const __m128i five = _mm_set_epi16(0, 0, -1, -1, -1, -1, -1, 0);
	__m128i zero = _mm_loadu_si128((const __m128i *)b->zero);
	__m128i past = _mm_loadu_si128((const __m128i *)b->difference);
	__m128i other = _mm_srai_epi16(past, 15), by;

	by = _mm_sub_epi16(_mm_xor_si128(_mm_set1_epi16(128), other), other);
	zero = _mm_add_epi16(zero, _mm_mulhi_epi16(zero, _mm_set1_epi16(-256)));
	past = _mm_and_si128(_mm_slli_si128(past, 2), five);
	past = _mm_adds_epi16(past, past);
	a->zero[0] = _mm_adds_epi16(zero, by);
	a->zero[1] = _mm_subs_epi16(zero, by);
	for (int i = 0; i < 2; i++) {
		a->first[i] = (int16_t)_mm_extract_epi16(a->zero[i], 0);
		a->sum[i] = g722_sum(a->zero[i], past);
	}
}

/* As g722_zeros(), after g722_look_ahead(). */
static inline int32_t g722_zeros_ahead(
	const struct g722_ahead *a, struct g722_band *b, int32_t difference)
{
	const __m128i six = _mm_set_epi16(0, 0, -1, -1, -1, -1, -1, -1);
	__m128i past = _mm_loadu_si128((const __m128i *)b->difference);
	uint32_t sign = difference < 0;

	if (difference == 0)
		return g722_zeros(b, 0);
	past = _mm_insert_epi16(_mm_slli_si128(past, 2), (int16_t)difference, 0);
	_mm_storeu_si128((__m128i *)b->zero, a->zero[sign]);
	_mm_storeu_si128((__m128i *)b->difference, _mm_and_si128(past, six));
	return a->sum[sign] + (a->first[sign] * g722_clamp16(2 * difference) >> 15);
}

/* How many of every fourth level, from the second on, a magnitude reaches: bits 2 to 5 of the code.
 * step: up to 16384. */
static inline uint32_t g722_fourths(int32_t step, int32_t magnitude)
{
	const __m128i level = _mm_set_epi16(
		0, 1980 << 4, 1339 << 4, 940 << 4, 650 << 4, 422 << 4, 233 << 4, 72 << 4);
	__m128i by = _mm_set1_epi16((int16_t)step), at = _mm_set1_epi16((int16_t)magnitude);
	__m128i above = _mm_cmpgt_epi16(_mm_mulhi_epu16(level, by), at);

	return (uint32_t)__builtin_ctz((uint32_t)_mm_movemask_epi8(above) | 1u << 14) / 2;
}

/* How many levels a magnitude reaches. step: up to 16384. */
static inline uint32_t g722_levels(int32_t step, int32_t magnitude)
{
	__m128i by = _mm_set1_epi16((int16_t)step), at = _mm_set1_epi16((int16_t)magnitude);
	const __m128i *level = (const __m128i *)g722_level;
	__m128i above[4];
	uint32_t mask;

	for (int i = 0; i < 4; i++)
		above[i] = _mm_cmpgt_epi16(_mm_mulhi_epu16(_mm_loadu_si128(level + i), by), at);
	mask = (uint32_t)_mm_movemask_epi8(_mm_packs_epi16(above[0], above[1])) |
		(uint32_t)_mm_movemask_epi8(_mm_packs_epi16(above[2], above[3])) << 16;
	return (uint32_t)__builtin_ctz(mask | 1u << G722_LEVELS);
}

/* Filters n samples, up to a multiple of 8: out[i] is the sum of tap[k] * x[i + k]. */
static inline void g722_filter(
	const int16_t *x, const int16_t tap[G722_TAPS], int32_t *out, uint32_t n)
{
	for (uint32_t i = 0; i < n; i += 8) {
		__m128i low = _mm_setzero_si128(), high = low;

		for (uint32_t k = 0; k < G722_TAPS; k += 2) {
			__m128i a = _mm_loadu_si128((const __m128i *)(x + i + k));
			__m128i b = _mm_loadu_si128((const __m128i *)(x + i + k + 1));
			__m128i by = _mm_set1_epi32(
				(int32_t)((uint32_t)(uint16_t)tap[k + 1] << 16 | (uint16_t)tap[k]));

			low = _mm_add_epi32(low, _mm_madd_epi16(_mm_unpacklo_epi16(a, b), by));
			high = _mm_add_epi32(high, _mm_madd_epi16(_mm_unpackhi_epi16(a, b), by));
		}
		_mm_storeu_si128((__m128i *)(out + i), low);
		_mm_storeu_si128((__m128i *)(out + i + 4), high);
	}
}

#else

static inline int32_t g722_zeros(struct g722_band *b, int32_t difference)
{
	int32_t by = difference == 0 ? 0 : 128, sum = 0;

	for (int i = 0; i < 6; i++) {
		int same = (difference < 0) == (b->difference[i] < 0);

		b->zero[i] = (int16_t)g722_clamp16((same ? by : -by) + (b->zero[i] * 32640 >> 15));
	}
	for (int i = 5; i > 0; i--)
		b->difference[i] = b->difference[i - 1];
	b->difference[0] = (int16_t)difference;
	for (int i = 0; i < 6; i++)
		sum += b->zero[i] * g722_clamp16(2 * b->difference[i]) >> 15;
	return sum;
}

struct g722_ahead {
	char unused;
};

static inline void g722_look_ahead(struct g722_ahead *a, const struct g722_band *b)
{
	(void)a, (void)b;
}

static inline int32_t g722_zeros_ahead(
	const struct g722_ahead *a, struct g722_band *b, int32_t difference)
{
	(void)a;
	return g722_zeros(b, difference);
}

static inline uint32_t g722_fourths(int32_t step, int32_t magnitude)
{
	uint32_t n = 0;

	while (n < 7 && magnitude >= g722_level[4 * n + 1] * step >> 16)
		n++;
	return n;
}

static inline uint32_t g722_levels(int32_t step, int32_t magnitude)
{
	uint32_t i = 0;

	while (i < G722_LEVELS && magnitude >= g722_level[i] * step >> 16)
		i++;
	return i;
}

static inline void g722_filter(
	const int16_t *x, const int16_t tap[G722_TAPS], int32_t *out, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		out[i] = 0;
		for (uint32_t k = 0; k < G722_TAPS; k++)
			out[i] += tap[k] * x[i + k];
	}
}

#endif

#endif
