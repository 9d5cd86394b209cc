/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The lower band of G.722 with AVX-512, sixteen streams in lanes of 32 bits (codec/g722_lanes.h).
 * The comments name the blocks of the recommendation; g722.c has the same in scalar code. Products
 * are those of 16-bit values: vpmaddwd is faster than a product of 32 bits, and exact if the upper
 * half of one factor is 0 ("half" below). */
#include "g722_lanes.h"

#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>

#define LANES_CODE   __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
#define LANES_INLINE LANES_CODE static inline __attribute__((always_inline))

typedef __m512i v;

enum { ZEROS = 6 };

/* One lane per stream, as struct g722_band. */
struct lanes {
	v predicted, zeros, step, log_step;
	v rebuilt[2], partial[2], pole[2], zero[ZEROS];
	v twice[2];     /* half: twice the rebuilt samples, limited */
	v past[ZEROS];  /* half: twice the quantized differences */
	v in[2], to[2]; /* addresses, eight each */
	__mmask16 used;
};

/* --- Arithmetic ------------------------------------------------------------------------------- */

LANES_INLINE v all(int32_t n)
{
	return _mm512_set1_epi32(n);
}

LANES_INLINE v limit(v x, int32_t low, int32_t high)
{
	return _mm512_max_epi32(_mm512_min_epi32(x, all(high)), all(low));
}

LANES_INLINE v limit16(v x)
{
	return limit(x, INT16_MIN, INT16_MAX);
}

LANES_INLINE v half(v x)
{
	return _mm512_and_si512(x, all(0xffff));
}

/* a * b >> 15; b: half */
LANES_INLINE v times(v a, v b)
{
	return _mm512_srai_epi32(_mm512_madd_epi16(a, b), 15);
}

/* x - ceil(x / 2^shift) */
LANES_INLINE v decay(v x, uint32_t shift)
{
	return _mm512_sub_epi32(
		x, _mm512_srai_epi32(_mm512_add_epi32(x, all((1 << shift) - 1)), shift));
}

LANES_INLINE v table(const int32_t *t, v index)
{
	return _mm512_permutexvar_epi32(index, _mm512_loadu_si512(t));
}

LANES_INLINE v table32(const int32_t *t, v index)
{
	return _mm512_permutex2var_epi32(_mm512_loadu_si512(t), index, _mm512_loadu_si512(t + 16));
}

/* --- A step ----------------------------------------------------------------------------------- */

/* LOGSCL, SCALEL. 2 * 2048 * 2^(i/32) is the step for the fraction of its logarithm. */
LANES_INLINE void adapt_step(struct lanes *l, v change)
{
	static const int32_t power[32] = {4096, 4186, 4278, 4372, 4466, 4564, 4664, 4766, 4870,
		4978, 5086, 5198, 5312, 5428, 5548, 5668, 5792, 5920, 6050, 6182, 6316, 6456, 6596,
		6742, 6888, 7040, 7194, 7352, 7512, 7676, 7844, 8016};
	v shift;

	l->log_step = limit(_mm512_add_epi32(decay(l->log_step, 7), change), 0, 18432);
	shift = _mm512_sub_epi32(all(9), _mm512_srli_epi32(l->log_step, 11));
	l->step = _mm512_slli_epi32(
		_mm512_srlv_epi32(table32(power, _mm512_srli_epi32(l->log_step, 6)), shift), 2);
}

/* UPPOL2 and UPPOL1. What does not depend on partial is computed first: that waits longest. */
LANES_INLINE void adapt_poles(struct lanes *l, v partial)
{
	v first = limit16(_mm512_slli_epi32(l->pole[0], 2));
	v base = _mm512_add_epi32(decay(l->pole[1], 7), all(128));
	v down = _mm512_sub_epi32(_mm512_setzero_si512(), first);
	v same = _mm512_add_epi32(
		base, _mm512_srai_epi32(_mm512_min_epi32(down, all(INT16_MAX)), 7));
	v differ = _mm512_add_epi32(base, _mm512_srai_epi32(first, 7));
	v slow = decay(l->pole[0], 8), bound, pole;
	__mmask16 differ1 = _mm512_movepi32_mask(_mm512_xor_si512(partial, l->partial[0]));
	__mmask16 differ2 = _mm512_movepi32_mask(_mm512_xor_si512(partial, l->partial[1]));
	v second = _mm512_mask_mov_epi32(same, differ1, differ);

	second = limit(_mm512_mask_sub_epi32(second, differ2, second, all(256)), -12288, 12288);
	bound = _mm512_sub_epi32(all(15360), second);
	pole = _mm512_mask_sub_epi32(_mm512_add_epi32(slow, all(192)), differ1, slow, all(192));
	l->pole[0] = _mm512_max_epi32(
		_mm512_min_epi32(pole, bound), _mm512_sub_epi32(_mm512_setzero_si512(), bound));
	l->pole[1] = second;
}

/* UPZERO, then FILTEZ. */
LANES_INLINE v adapt_zeros(struct lanes *l, v difference)
{
	v up = _mm512_maskz_mov_epi32(_mm512_test_epi32_mask(difference, difference), all(128));
	v none = _mm512_setzero_si512(), by, sum;

	by = _mm512_mask_sub_epi32(up, _mm512_movepi32_mask(difference), none, up);
	for (int i = 0; i < ZEROS; i++) {
		__mmask16 below = _mm512_test_epi32_mask(l->past[i], all(0x8000));
		v slow = decay(l->zero[i], 8);

		l->zero[i] = _mm512_mask_sub_epi32(_mm512_add_epi32(slow, by), below, slow, by);
	}
	for (int i = ZEROS - 1; i > 0; i--)
		l->past[i] = l->past[i - 1];
	l->past[0] = half(_mm512_add_epi32(difference, difference));
	sum = times(l->zero[5], l->past[5]);
	for (int i = ZEROS - 1; i-- > 0;)
		sum = _mm512_add_epi32(sum, times(l->zero[i], l->past[i]));
	return limit16(sum);
}

/* Block 4: the predictor takes a quantized difference, and predicts the next sample. */
LANES_INLINE void predict(struct lanes *l, v difference)
{
	v rebuilt = limit16(_mm512_add_epi32(l->predicted, difference)); /* RECONS */
	v partial = limit16(_mm512_add_epi32(l->zeros, difference));     /* PARREC */
	v poles;

	adapt_poles(l, partial);
	l->zeros = adapt_zeros(l, difference);
	l->partial[1] = l->partial[0];
	l->partial[0] = partial;
	l->rebuilt[1] = l->rebuilt[0];
	l->rebuilt[0] = rebuilt;
	l->twice[1] = l->twice[0];
	l->twice[0] = half(limit16(_mm512_add_epi32(rebuilt, rebuilt)));
	/* FILTEP, PREDIC */
	poles = limit16(
		_mm512_add_epi32(times(l->pole[0], l->twice[0]), times(l->pole[1], l->twice[1])));
	l->predicted = limit16(_mm512_add_epi32(poles, l->zeros));
}

/* How many of every fourth level a magnitude reaches: bits 2 to 5 of the code. */
LANES_INLINE v fourths(v step, v magnitude)
{
	static const int32_t level[7] = {
		72 << 4, 233 << 4, 422 << 4, 650 << 4, 940 << 4, 1339 << 4, 1980 << 4};
	v one = all(1), n[2] = {_mm512_setzero_si512(), _mm512_setzero_si512()};

	for (int i = 0; i < 7; i++)
		n[i & 1] = _mm512_mask_add_epi32(n[i & 1],
			_mm512_cmpge_epi32_mask(magnitude, _mm512_mulhi_epu16(all(level[i]), step)),
			n[i & 1], one);
	return _mm512_add_epi32(n[0], n[1]);
}

/* The rest of QUANTL: the code, whose two lowest bits the predictor does not need. */
LANES_INLINE v low_code(v step, v magnitude, __mmask16 below, v fourth)
{
	/* All levels, after two that every magnitude reaches. */
	static const int32_t level[32] = {0, 0, 35 << 4, 72 << 4, 110 << 4, 150 << 4, 190 << 4,
		233 << 4, 276 << 4, 323 << 4, 370 << 4, 422 << 4, 473 << 4, 530 << 4, 587 << 4,
		650 << 4, 714 << 4, 786 << 4, 858 << 4, 940 << 4, 1023 << 4, 1121 << 4, 1219 << 4,
		1339 << 4, 1458 << 4, 1612 << 4, 1765 << 4, 1980 << 4, 2195 << 4, 2557 << 4,
		2919 << 4};
	v at = _mm512_slli_epi32(fourth, 2), n = _mm512_sub_epi32(at, all(2)), code;

	for (int i = 0; i < 3; i++) {
		v from = _mm512_mulhi_epu16(table32(level, at), step);

		n = _mm512_mask_add_epi32(n, _mm512_cmpge_epi32_mask(magnitude, from), n, all(1));
		at = _mm512_add_epi32(at, all(1));
	}
	code = _mm512_mask_mov_epi32(all(61), below, all(33));
	code = _mm512_mask_mov_epi32(code, _mm512_mask_cmplt_epi32_mask(below, n, all(2)), all(63));
	return _mm512_sub_epi32(code, n);
}

/* The code for samples of 16 bits. */
LANES_INLINE v encode_step(struct lanes *l, v sample)
{
	/* For fourths, then for fourths below zero. */
	static const int32_t output[16] = {0, 1200, 2584, 4240, 6288, 8968, 12896, 20456, 0, -1200,
		-2584, -4240, -6288, -8968, -12896, -20456};
	static const int32_t change[16] = {-60, -30, 58, 172, 334, 538, 1198, 3042};
	v past = limit16(_mm512_sub_epi32(_mm512_srai_epi32(sample, 1), l->predicted));
	v sign = _mm512_srai_epi32(past, 31), magnitude = _mm512_xor_si512(past, sign);
	__mmask16 below = _mm512_movepi32_mask(past);
	v fourth = fourths(l->step, magnitude), step = l->step;
	v index = _mm512_mask_add_epi32(fourth, below, fourth, all(8));

	adapt_step(l, table(change, fourth));
	predict(l, times(table(output, index), step));
	return low_code(step, magnitude, below, fourth);
}

/* The samples of codes of six bits. */
LANES_INLINE v decode_step(struct lanes *l, v code)
{
	static const int16_t output[64] = {-136, -136, -136, -136, -24808, -21904, -19008, -16704,
		-14984, -13512, -12280, -11192, -10232, -9360, -8576, -7856, -7192, -6576, -6000,
		-5456, -4944, -4464, -4008, -3576, -3168, -2776, -2400, -2032, -1688, -1360, -1040,
		-728, 24808, 21904, 19008, 16704, 14984, 13512, 12280, 11192, 10232, 9360, 8576,
		7856, 7192, 6576, 6000, 5456, 4944, 4464, 4008, 3576, 3168, 2776, 2400, 2032, 1688,
		1360, 1040, 728, 432, 136, -432, -136};
	static const int32_t fourth[16] = {0, -20456, -12896, -8968, -6288, -4240, -2584, -1200,
		20456, 12896, 8968, 6288, 4240, 2584, 1200, 0};
	static const int32_t change[16] = {
		-60, 3042, 1198, 538, 334, 172, 58, -30, 3042, 1198, 538, 334, 172, 58, -30, -60};
	v at = _mm512_srli_epi32(code, 2), step = l->step;
	/* The upper halves are those of any entry: step is a half. */
	v level = _mm512_permutex2var_epi16(
		_mm512_loadu_si512(output), code, _mm512_loadu_si512(output + 32));
	v pcm = limit(_mm512_add_epi32(l->predicted, times(level, step)), -16384, 16383);

	adapt_step(l, table(change, at));
	predict(l, times(table(fourth, at), step));
	return _mm512_add_epi32(pcm, pcm);
}

/* --- States and samples ----------------------------------------------------------------------- */

/* Transposes the states, in either direction. */
struct rows {
	_Alignas(64) int32_t row[10 + 2 * ZEROS][G722_LANES];
	_Alignas(64) uint64_t in[G722_LANES], out[G722_LANES];
};

static void read_band(struct rows *r, uint32_t i, const struct g722_band *b)
{
	const int32_t one[10] = {b->predicted, b->zeros, b->log_step, b->step, b->rebuilt[0],
		b->rebuilt[1], b->partial[0], b->partial[1], b->pole[0], b->pole[1]};

	for (uint32_t k = 0; k < 10; k++)
		r->row[k][i] = one[k];
	for (uint32_t k = 0; k < ZEROS; k++) {
		r->row[10 + k][i] = b->zero[k];
		r->row[10 + ZEROS + k][i] = b->difference[k];
	}
}

static void write_band(const struct rows *r, uint32_t i, struct g722_band *b)
{
	b->predicted = r->row[0][i];
	b->zeros = r->row[1][i];
	b->log_step = r->row[2][i];
	b->step = r->row[3][i];
	for (uint32_t k = 0; k < 2; k++) {
		b->rebuilt[k] = r->row[4 + k][i];
		b->partial[k] = r->row[6 + k][i];
		b->pole[k] = r->row[8 + k][i];
	}
	for (uint32_t k = 0; k < ZEROS; k++) {
		b->zero[k] = (int16_t)r->row[10 + k][i];
		b->difference[k] = (int16_t)r->row[10 + ZEROS + k][i];
	}
}

LANES_CODE static void load(struct lanes *l, const struct g722_lane *lane, uint32_t lanes)
{
	struct rows r;

	memset(&r, 0, sizeof(r));
	for (uint32_t i = 0; i < lanes; i++) {
		read_band(&r, i, &lane[i].g->low);
		r.in[i] = (uintptr_t)lane[i].in;
		r.out[i] = (uintptr_t)lane[i].out;
	}
	l->used = (__mmask16)((1u << lanes) - 1);
	l->predicted = _mm512_load_si512(r.row[0]);
	l->zeros = _mm512_load_si512(r.row[1]);
	l->log_step = _mm512_load_si512(r.row[2]);
	l->step = _mm512_load_si512(r.row[3]);
	for (int k = 0; k < 2; k++) {
		l->rebuilt[k] = _mm512_load_si512(r.row[4 + k]);
		l->twice[k] = half(limit16(_mm512_slli_epi32(l->rebuilt[k], 1)));
		l->partial[k] = _mm512_load_si512(r.row[6 + k]);
		l->pole[k] = _mm512_load_si512(r.row[8 + k]);
		l->in[k] = _mm512_load_si512(r.in + 8 * k);
		l->to[k] = _mm512_load_si512(r.out + 8 * k);
	}
	for (int k = 0; k < ZEROS; k++) {
		l->zero[k] = _mm512_load_si512(r.row[10 + k]);
		l->past[k] = half(_mm512_slli_epi32(_mm512_load_si512(r.row[10 + ZEROS + k]), 1));
	}
}

LANES_CODE static void store(const struct lanes *l, const struct g722_lane *lane, uint32_t lanes)
{
	struct rows r;

	_mm512_store_si512(r.row[0], l->predicted);
	_mm512_store_si512(r.row[1], l->zeros);
	_mm512_store_si512(r.row[2], l->log_step);
	_mm512_store_si512(r.row[3], l->step);
	for (int k = 0; k < 2; k++) {
		_mm512_store_si512(r.row[4 + k], l->rebuilt[k]);
		_mm512_store_si512(r.row[6 + k], l->partial[k]);
		_mm512_store_si512(r.row[8 + k], l->pole[k]);
	}
	for (int k = 0; k < ZEROS; k++) {
		_mm512_store_si512(r.row[10 + k], l->zero[k]);
		_mm512_store_si512(r.row[10 + ZEROS + k],
			_mm512_srai_epi32(_mm512_slli_epi32(l->past[k], 16), 17));
	}
	for (uint32_t i = 0; i < lanes; i++)
		write_band(&r, i, &lane[i].g->low);
}

/* The next four bytes of each stream. */
LANES_INLINE v next(struct lanes *l)
{
	const __m256i none = _mm256_setzero_si256();
	__m256i low = _mm512_mask_i64gather_epi32(none, (__mmask8)l->used, l->in[0], NULL, 1);
	__m256i high =
		_mm512_mask_i64gather_epi32(none, (__mmask8)(l->used >> 8), l->in[1], NULL, 1);

	for (int k = 0; k < 2; k++)
		l->in[k] = _mm512_add_epi64(l->in[k], _mm512_set1_epi64(4));
	return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

LANES_INLINE void put(struct lanes *l, v bytes)
{
	_mm512_mask_i64scatter_epi32(
		NULL, (__mmask8)l->used, l->to[0], _mm512_castsi512_si256(bytes), 1);
	_mm512_mask_i64scatter_epi32(
		NULL, (__mmask8)(l->used >> 8), l->to[1], _mm512_extracti64x4_epi64(bytes, 1), 1);
	for (int k = 0; k < 2; k++)
		l->to[k] = _mm512_add_epi64(l->to[k], _mm512_set1_epi64(4));
}

LANES_INLINE v first_of(v two)
{
	return _mm512_srai_epi32(_mm512_slli_epi32(two, 16), 16);
}

LANES_INLINE v second_of(v two)
{
	return _mm512_srai_epi32(two, 16);
}

LANES_CODE void g722_lanes_encode(const struct g722_lane *lane, uint32_t lanes, size_t n)
{
	/* The upper band is silent (g722_encode_low()). */
	const v silence = all((int32_t)0xc0c0c0c0);
	_Alignas(64) int32_t mask[G722_LANES] = {0};
	struct lanes l;
	v keep;

	for (uint32_t i = 0; i < lanes; i++)
		mask[i] = (int32_t)((0xffu << lane[i].g->spare & 0xff) * 0x01010101u);
	keep = _mm512_load_si512(mask);
	load(&l, lane, lanes);
	for (size_t i = 0; i < n; i += 4) {
		v early = next(&l), late = next(&l), code;

		code = encode_step(&l, first_of(early));
		code = _mm512_or_si512(
			code, _mm512_slli_epi32(encode_step(&l, second_of(early)), 8));
		code = _mm512_or_si512(
			code, _mm512_slli_epi32(encode_step(&l, first_of(late)), 16));
		code = _mm512_or_si512(
			code, _mm512_slli_epi32(encode_step(&l, second_of(late)), 24));
		put(&l, _mm512_and_si512(_mm512_or_si512(code, silence), keep));
	}
	store(&l, lane, lanes);
}

LANES_INLINE v two_samples(struct lanes *l, v codes)
{
	const v six = all(0x3f);
	v first = decode_step(l, _mm512_and_si512(codes, six));
	v second = decode_step(l, _mm512_and_si512(_mm512_srli_epi32(codes, 8), six));

	return _mm512_or_si512(half(first), _mm512_slli_epi32(second, 16));
}

LANES_CODE void g722_lanes_decode(const struct g722_lane *lane, uint32_t lanes, size_t n)
{
	struct lanes l;

	load(&l, lane, lanes);
	for (size_t i = 0; i < n; i += 4) {
		v codes = next(&l);

		put(&l, two_samples(&l, codes));
		put(&l, two_samples(&l, _mm512_srli_epi32(codes, 16)));
	}
	store(&l, lane, lanes);
}

bool g722_lanes_work(void)
{
	return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
		__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

#else

bool g722_lanes_work(void)
{
	return false;
}

void g722_lanes_encode(const struct g722_lane *lane, uint32_t lanes, size_t n)
{
	(void)lane, (void)lanes, (void)n;
}

void g722_lanes_decode(const struct g722_lane *lane, uint32_t lanes, size_t n)
{
	(void)lane, (void)lanes, (void)n;
}

#endif
