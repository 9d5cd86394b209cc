/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lanes in one register of AVX2 (codec/g722_lanes_step.h). A mask has all bits of its lanes. */
#include "codec/g722_lanes.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <string.h>

#define LANES_CODE   __attribute__((target("avx2")))
#define LANES_INLINE LANES_CODE static inline __attribute__((always_inline))

enum { LANES = 8 };

typedef __m256i v;
typedef v mask;

#define add(x, y)          _mm256_add_epi32(x, y)
#define sub(x, y)          _mm256_sub_epi32(x, y)
#define least(x, y)        _mm256_min_epi32(x, y)
#define most(x, y)         _mm256_max_epi32(x, y)
#define bit_and(x, y)      _mm256_and_si256(x, y)
#define bit_or(x, y)       _mm256_or_si256(x, y)
#define bit_xor(x, y)      _mm256_xor_si256(x, y)
#define sra(x, bits)       _mm256_srai_epi32(x, (int)(bits))
#define srl(x, bits)       _mm256_srli_epi32(x, (int)(bits))
#define sll(x, bits)       _mm256_slli_epi32(x, (int)(bits))
#define srlv(x, bits)      _mm256_srlv_epi32(x, bits)
#define madd(x, y)         _mm256_madd_epi16(x, y)
#define mulhi(x, y)        _mm256_mulhi_epu16(x, y)
#define signed_by(x, y)    _mm256_sign_epi32(x, y)
#define below_zero(x)      sra(x, 31)
#define half_below_zero(x) sra(sll(x, 16), 31)
#define less(x, y)         _mm256_cmpgt_epi32(y, x)
#define both(m, n)         bit_and(m, n)
#define pick(x, m, y)      _mm256_blendv_epi8(x, y, m)
#define sub_if(x, m, y)    sub(x, bit_and(m, y))

LANES_INLINE v all(int32_t n)
{
	return _mm256_set1_epi32(n);
}

LANES_INLINE v load_row(const int32_t *row)
{
	return _mm256_load_si256((const __m256i *)row);
}

LANES_INLINE void store_row(int32_t *row, v x)
{
	_mm256_store_si256((__m256i *)row, x);
}

LANES_INLINE v count_if_reaches(v n, v x, v y)
{
	return add(add(n, all(1)), less(x, y));
}

LANES_INLINE v table8(const int32_t *t, v index)
{
	return _mm256_permutevar8x32_epi32(_mm256_loadu_si256((const __m256i *)t), index);
}

/* y where this bit of the index is set, else x. */
LANES_INLINE v by_bit(v x, v y, v index, uint32_t bit)
{
	return _mm256_castps_si256(_mm256_blendv_ps(_mm256_castsi256_ps(x), _mm256_castsi256_ps(y),
		_mm256_castsi256_ps(sll(index, 31 - bit))));
}

LANES_INLINE v table32(const int32_t *t, v index)
{
	v low = by_bit(table8(t, index), table8(t + 8, index), index, 3);
	v high = by_bit(table8(t + 16, index), table8(t + 24, index), index, 3);

	return by_bit(low, high, index, 4);
}

/* Two entries are one load. Bit 0 of the index says which one. */
LANES_INLINE v table64(const int16_t *t, v index)
{
	v pair = _mm256_i32gather_epi32((const int *)(const void *)t, srl(index, 1), 4);

	return srlv(pair, sll(bit_and(index, all(1)), 4));
}

struct ends {
	const uint8_t *in[LANES];
	uint8_t *to[LANES];
	uint32_t used;
};

/* Lanes without a stream read what the first one does. */
LANES_INLINE void ends_init(struct ends *e, const struct g722_lane *lane, uint32_t lanes)
{
	for (uint32_t i = 0; i < LANES; i++) {
		e->in[i] = lane[i < lanes ? i : 0].in;
		e->to[i] = lane[i < lanes ? i : 0].out;
	}
	e->used = lanes;
}

LANES_INLINE v next(struct ends *e)
{
	_Alignas(32) int32_t row[LANES];

	for (uint32_t i = 0; i < LANES; i++) {
		memcpy(&row[i], e->in[i], sizeof(row[i]));
		e->in[i] += sizeof(row[i]);
	}
	return load_row(row);
}

LANES_INLINE void put(struct ends *e, v bytes)
{
	_Alignas(32) int32_t row[LANES];

	store_row(row, bytes);
	for (uint32_t i = 0; i < e->used; i++) {
		memcpy(e->to[i], &row[i], sizeof(row[i]));
		e->to[i] += sizeof(row[i]);
	}
}

#include "codec/g722_lanes_step.h"

static bool works(void)
{
	return __builtin_cpu_supports("avx2");
}

const struct g722_lanes_ops g722_lanes_avx2 = {
	.name = "AVX2", .lanes = 8, .least = 3, .works = works, .encode = encode, .decode = decode};

#else

const struct g722_lanes_ops g722_lanes_avx2 = {.name = "AVX2"};

#endif
