/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lanes in one register of AVX-512 (codec/g722_lanes_step.h). */
#include "codec/g722_lanes.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define LANES_CODE   __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
#define LANES_INLINE LANES_CODE static inline __attribute__((always_inline))

enum { LANES = 16 };

typedef __m512i v;
typedef __mmask16 mask;

LANES_INLINE v all(int32_t n)
{
	return _mm512_set1_epi32(n);
}

LANES_INLINE v load_row(const int32_t *row)
{
	return _mm512_load_si512(row);
}

LANES_INLINE void store_row(int32_t *row, v x)
{
	_mm512_store_si512(row, x);
}

#define add(x, y)          _mm512_add_epi32(x, y)
#define sub(x, y)          _mm512_sub_epi32(x, y)
#define least(x, y)        _mm512_min_epi32(x, y)
#define most(x, y)         _mm512_max_epi32(x, y)
#define bit_and(x, y)      _mm512_and_si512(x, y)
#define bit_or(x, y)       _mm512_or_si512(x, y)
#define bit_xor(x, y)      _mm512_xor_si512(x, y)
#define sra(x, bits)       _mm512_srai_epi32(x, bits)
#define srl(x, bits)       _mm512_srli_epi32(x, bits)
#define sll(x, bits)       _mm512_slli_epi32(x, bits)
#define srlv(x, bits)      _mm512_srlv_epi32(x, bits)
#define madd(x, y)         _mm512_madd_epi16(x, y)
#define mulhi(x, y)        _mm512_mulhi_epu16(x, y)
#define below_zero(x)      _mm512_movepi32_mask(x)
#define half_below_zero(x) _mm512_test_epi32_mask(x, all(0x8000))
#define less(x, y)         _mm512_cmplt_epi32_mask(x, y)
#define both(m, n)         ((mask)((m) & (n)))
#define pick(x, m, y)      _mm512_mask_mov_epi32(x, m, y)
#define sub_if(x, m, y)    _mm512_mask_sub_epi32(x, m, x, y)

LANES_INLINE v signed_by(v x, v y)
{
	v up = _mm512_maskz_mov_epi32(_mm512_test_epi32_mask(y, y), x);

	return _mm512_mask_sub_epi32(up, below_zero(y), all(0), up);
}

LANES_INLINE v count_if_reaches(v n, v x, v y)
{
	return _mm512_mask_add_epi32(n, _mm512_cmpge_epi32_mask(x, y), n, all(1));
}

LANES_INLINE v table8(const int32_t *t, v index)
{
	return _mm512_permutexvar_epi32(
		index, _mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)t)));
}

LANES_INLINE v table32(const int32_t *t, v index)
{
	return _mm512_permutex2var_epi32(_mm512_loadu_si512(t), index, _mm512_loadu_si512(t + 16));
}

/* The upper halves are those of any entry. */
LANES_INLINE v table64(const int16_t *t, v index)
{
	return _mm512_permutex2var_epi16(_mm512_loadu_si512(t), index, _mm512_loadu_si512(t + 32));
}

struct ends {
	v in[2], to[2]; /* addresses, eight each */
	mask used;
};

LANES_INLINE void ends_init(struct ends *e, const struct g722_lane *lane, uint32_t lanes)
{
	_Alignas(64) uint64_t in[LANES] = {0}, out[LANES] = {0};

	for (uint32_t i = 0; i < lanes; i++) {
		in[i] = (uintptr_t)lane[i].in;
		out[i] = (uintptr_t)lane[i].out;
	}
	for (int k = 0; k < 2; k++) {
		e->in[k] = _mm512_load_si512(in + 8 * k);
		e->to[k] = _mm512_load_si512(out + 8 * k);
	}
	e->used = (mask)((1u << lanes) - 1);
}

LANES_INLINE v next(struct ends *e)
{
	const __m256i none = _mm256_setzero_si256();
	__m256i low = _mm512_mask_i64gather_epi32(none, (__mmask8)e->used, e->in[0], NULL, 1);
	__m256i high =
		_mm512_mask_i64gather_epi32(none, (__mmask8)(e->used >> 8), e->in[1], NULL, 1);

	for (int k = 0; k < 2; k++)
		e->in[k] = _mm512_add_epi64(e->in[k], _mm512_set1_epi64(4));
	return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

LANES_INLINE void put(struct ends *e, v bytes)
{
	_mm512_mask_i64scatter_epi32(
		NULL, (__mmask8)e->used, e->to[0], _mm512_castsi512_si256(bytes), 1);
	_mm512_mask_i64scatter_epi32(
		NULL, (__mmask8)(e->used >> 8), e->to[1], _mm512_extracti64x4_epi64(bytes, 1), 1);
	for (int k = 0; k < 2; k++)
		e->to[k] = _mm512_add_epi64(e->to[k], _mm512_set1_epi64(4));
}

#include "codec/g722_lanes_step.h"

static bool works(void)
{
	return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
		__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

const struct g722_lanes_ops g722_lanes_avx512 = {.name = "AVX-512",
	.lanes = 16,
	.least = 3,
	.works = works,
	.encode = encode,
	.decode = decode};

#else

const struct g722_lanes_ops g722_lanes_avx512 = {.name = "AVX-512"};

#endif
