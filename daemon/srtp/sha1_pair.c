/* SPDX-License-Identifier: GPL-2.0-or-later */
/* SHA-1 (FIPS 180-4 6.1.2) of two messages (srtp/sha1_pair.h). Each half of a vector has four words
 * of one message, so both share the instructions that compute words. The rounds are scalar: those
 * of one message wait for each other, and two messages fill the gaps. */
#include "srtp/sha1_pair.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define HERE __attribute__((target("avx2,bmi,bmi2")))

/* Four words of both messages, plus their rounds' constant. */
struct words {
	_Alignas(32) uint32_t of[20][2][4];
};

HERE static inline __m256i load(const uint8_t *p, const uint8_t *q)
{
	const __m256i swap = _mm256_set_epi8(12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3,
		12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3);
	const __m128i low = _mm_loadu_si128((const __m128i *)(const void *)p);

	return _mm256_shuffle_epi8(_mm256_inserti128_si256(_mm256_castsi128_si256(low),
					   _mm_loadu_si128((const __m128i *)(const void *)q), 1),
		swap);
}

/* Words 16 to 31. The last word of four depends on the first, so it is corrected at the end. */
HERE static inline __m256i first_words(const __m256i *x, int i)
{
	/* cppcheck-suppress uninitvar ; the caller loads the first four before */
	const __m256i a = x[i % 8], b = x[(i + 1) % 8], c = x[(i + 2) % 8], d = x[(i + 3) % 8];
	const __m256i t = _mm256_xor_si256(_mm256_xor_si256(a, _mm256_alignr_epi8(b, a, 8)),
		_mm256_xor_si256(c, _mm256_srli_si256(d, 4)));
	const __m256i last = _mm256_slli_si256(t, 12);
	const __m256i turned = _mm256_or_si256(_mm256_add_epi32(t, t), _mm256_srli_epi32(t, 31));

	return _mm256_xor_si256(
		_mm256_xor_si256(turned, _mm256_slli_epi32(last, 2)), _mm256_srli_epi32(last, 30));
}

/* Words 32 to 79: the recurrence applied twice, so no word depends on one of the same four. */
HERE static inline __m256i later_words(const __m256i *x, int i)
{
	const __m256i near = _mm256_alignr_epi8(x[(i + 7) % 8], x[(i + 6) % 8], 8);
	const __m256i t = _mm256_xor_si256(
		_mm256_xor_si256(near, x[i % 8]), _mm256_xor_si256(x[(i + 1) % 8], x[(i + 4) % 8]));

	return _mm256_or_si256(_mm256_slli_epi32(t, 2), _mm256_srli_epi32(t, 30));
}

HERE static inline void words_make(struct words *w, const uint8_t *p, const uint8_t *q)
{
	static const uint32_t constant[4] = {0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6};
	__m256i x[8] = {0};

#pragma GCC unroll 20
	for (int i = 0; i < 20; i++) {
		x[i % 8] = i < 4 ? load(p + 16 * i, q + 16 * i)
			: i < 8  ? first_words(x, i - 4)
				 : later_words(x, i);
		_mm256_store_si256((__m256i *)(void *)w->of[i],
			_mm256_add_epi32(x[i % 8], _mm256_set1_epi32((int)constant[i / 5])));
	}
}

#define ROL(x, c) ((x) << (c) | (x) >> (32 - (c)))
/* Prevents the compiler from changing the order, which would need copies of registers. */
#define KEEP(x) __asm__("" : "+r"(x));
/* Add f(b, c, d) to e, in two terms if their set bits differ. b is free afterwards. */
#define CH(b, c, d, e)     \
	term = ~(b) & (d); \
	KEEP(term)         \
	(b) &= (c);        \
	KEEP(b)            \
	(e) += term;       \
	(e) += (b);
#define PARITY(b, c, d, e) \
	(b) ^= (c);        \
	KEEP(b)            \
	(b) ^= (d);        \
	KEEP(b)            \
	(e) += (b);
#define MAJ(b, c, d, e)   \
	term = (b) & (c); \
	KEEP(term)        \
	(b) ^= (c);       \
	KEEP(b)           \
	(b) &= (d);       \
	(e) += term;      \
	(e) += (b);
/* Renames the state words in round i instead of moving a to b to c. */
#define S(x, i, at) x[(80 - (i) + (at)) % 5]
#define STEP(x, m, i, f)                                                              \
	last = S(x, i, 1);                                                            \
	__asm__("rorx $2, %1, %0" : "=&r"(next) : "r"(last));                         \
	S(x, i, 4) += w.of[(i) / 4][m][(i) % 4];                                      \
	f(last, S(x, i, 2), S(x, i, 3), S(x, i, 4)) S(x, i, 4) += ROL(S(x, i, 0), 5); \
	S(x, i, 1) = next;
#define BOTH(i, f)       \
	STEP(s, 0, i, f) \
	STEP(t, 1, i, f)
#define FIVE(i, f)   BOTH(i, f) BOTH((i) + 1, f) BOTH((i) + 2, f) BOTH((i) + 3, f) BOTH((i) + 4, f)
#define TWENTY(i, f) FIVE(i, f) FIVE((i) + 5, f) FIVE((i) + 10, f) FIVE((i) + 15, f)

HERE void sha1_pair(uint32_t *h, uint32_t *g, const uint8_t *p, const uint8_t *q, uint32_t n)
{
	struct words w;

	for (uint32_t b = 0; b < n; b++, p += 64, q += 64) {
		uint32_t s[5], t[5], last, next, term;

		words_make(&w, p, q);
		__asm__("" : "+m"(w)); /* read from memory, not from parts of vectors */
		memcpy(s, h, sizeof(s));
		memcpy(t, g, sizeof(t));
		TWENTY(0, CH)
		TWENTY(20, PARITY)
		TWENTY(40, MAJ)
		TWENTY(60, PARITY)
		for (int i = 0; i < 5; i++) {
			h[i] += s[i];
			g[i] += t[i];
		}
	}
}

bool sha1_pair_usable(void)
{
	return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
		__builtin_cpu_supports("bmi2");
}
#else
bool sha1_pair_usable(void)
{
	return false;
}

void sha1_pair(uint32_t *h, uint32_t *g, const uint8_t *p, const uint8_t *q, uint32_t n)
{
	(void)h;
	(void)g;
	(void)p;
	(void)q;
	(void)n;
}
#endif
