/* SPDX-License-Identifier: GPL-2.0-or-later */
/* SHA-1 of one block. sha1_ways.c has several messages at a time. */
#include "srtp/sha1_block.h"

#include "srtp/ref.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>

/* GCC 12 and clang 14 do not know "sha": leaf 7, EBX bit 29. */
bool srtp_sha1_has_instructions(void)
{
	unsigned a, b = 0, c, d;

	return __builtin_cpu_supports("sse4.1") && __get_cpuid_count(7, 0, &a, &b, &c, &d) &&
		b >> 29 & 1;
}

#define WORDS(i)                                                                                   \
	w[(i) % 4] = _mm_sha1msg2_epu32(                                                           \
		_mm_xor_si128(_mm_sha1msg1_epu32(w[(i) % 4], w[((i) + 1) % 4]), w[((i) + 2) % 4]), \
		w[((i) + 3) % 4]);
/* Four rounds. e: abcd before the previous four; the instruction takes the next e from it. */
#define ROUNDS(i)                               \
	e = _mm_sha1nexte_epu32(e, w[(i) % 4]); \
	t = s;                                  \
	s = _mm_sha1rnds4_epu32(s, e, (i) / 5); \
	e = t;
#define NEXT(i)  \
	WORDS(i) \
	ROUNDS(i)

__attribute__((target("sha,sse4.1"))) static void block_by_cpu(uint32_t *h, const uint8_t *p)
{
	const __m128i swap = _mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
	__m128i s0 = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(const void *)h), 0x1b);
	__m128i e0 = _mm_set_epi32((int)h[4], 0, 0, 0), s = s0, e, t, w[4];

	for (int i = 0; i < 4; i++)
		w[i] = _mm_shuffle_epi8(
			_mm_loadu_si128((const __m128i *)(const void *)(p + 16 * i)), swap);
	/* The first four rounds take e itself. */
	e = _mm_add_epi32(e0, w[0]);
	t = s;
	s = _mm_sha1rnds4_epu32(s, e, 0);
	e = t;
	ROUNDS(1)
	ROUNDS(2)
	ROUNDS(3)
	NEXT(4)
	NEXT(5)
	NEXT(6)
	NEXT(7)
	NEXT(8)
	NEXT(9)
	NEXT(10)
	NEXT(11)
	NEXT(12)
	NEXT(13)
	NEXT(14)
	NEXT(15)
	NEXT(16)
	NEXT(17)
	NEXT(18)
	NEXT(19)
	e = _mm_sha1nexte_epu32(e, e0);
	s = _mm_add_epi32(s, s0);
	_mm_storeu_si128((__m128i *)(void *)h, _mm_shuffle_epi32(s, 0x1b));
	h[4] = (uint32_t)_mm_extract_epi32(e, 3);
}

void srtp_sha1_block(uint32_t state[5], const uint8_t block[64], bool fast)
{
	if (fast)
		block_by_cpu(state, block);
	else
		srtp_ref_sha1_block(state, block);
}

#else

bool srtp_sha1_has_instructions(void)
{
	return false;
}

void srtp_sha1_block(uint32_t state[5], const uint8_t block[64], bool fast)
{
	(void)fast;
	srtp_ref_sha1_block(state, block);
}

#endif
