/* SPDX-License-Identifier: GPL-2.0-or-later */
/* AES counter mode by AES-NI (batch/aes_cm.h): five blocks under both keys at a time, to hide the
 * latency. */
#include "batch/aes_cm.h"

#include "base/secmem.h"
#include "batch/law.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define COUNT(j) _mm_set_epi64x((long long)((uint64_t)(j) << 56), 0)

#define FIRST(x, s, j)                                                                        \
	{                                                                                     \
		__m128i k = load((s)->key->rk);                                               \
		__m128i c = _mm_set_epi64x(                                                   \
			(long long)((s)->high + ((uint64_t)(j) << 56)), (long long)(s)->low); \
                                                                                              \
		x##0 = _mm_xor_si128(c, k);                                                   \
		x##1 = _mm_xor_si128(_mm_add_epi64(c, COUNT(1)), k);                          \
		x##2 = _mm_xor_si128(_mm_add_epi64(c, COUNT(2)), k);                          \
		x##3 = _mm_xor_si128(_mm_add_epi64(c, COUNT(3)), k);                          \
		x##4 = _mm_xor_si128(_mm_add_epi64(c, COUNT(4)), k);                          \
	}
#define EACH(x, f, k)      \
	x##0 = f(x##0, k); \
	x##1 = f(x##1, k); \
	x##2 = f(x##2, k); \
	x##3 = f(x##3, k); \
	x##4 = f(x##4, k);
#define ROUND(x, s, r)                                     \
	{                                                  \
		__m128i k = load((s)->key->rk + 16 * (r)); \
                                                           \
		EACH(x, _mm_aesenc_si128, k)               \
	}
#define LAST(x, s, r)                                      \
	{                                                  \
		__m128i k = load((s)->key->rk + 16 * (r)); \
                                                           \
		EACH(x, _mm_aesenclast_si128, k)           \
	}
#define BOTH(r)         \
	ROUND(x, rx, r) \
	ROUND(y, tx, r)
#define OUT(i, ks) store(dst + 16 * (i), _mm_xor_si128(load(src + 16 * (i)), ks));

__attribute__((target("aes"))) static inline __m128i load(const void *p)
{
	return _mm_loadu_si128((const __m128i *)p);
}

__attribute__((target("aes"))) static inline void store(void *p, __m128i x)
{
	_mm_storeu_si128((__m128i *)p, x);
}

/* Both keys with ten rounds: the common case, unrolled. */
__attribute__((target("aes"))) static void both10(uint8_t *dst, const uint8_t *src, size_t len,
	const struct aes_cm_side *rx, const struct aes_cm_side *tx)
{
	for (size_t j = 0; 16 * j < len; j += 5, src += 80, dst += 80) {
		__m128i x0, x1, x2, x3, x4, y0, y1, y2, y3, y4;

		FIRST(x, rx, j)
		FIRST(y, tx, j)
		BOTH(1)
		BOTH(2)
		BOTH(3)
		BOTH(4)
		BOTH(5)
		BOTH(6)
		BOTH(7)
		BOTH(8)
		BOTH(9)
		LAST(x, rx, 10)
		LAST(y, tx, 10)
		OUT(0, _mm_xor_si128(x0, y0))
		OUT(1, _mm_xor_si128(x1, y1))
		OUT(2, _mm_xor_si128(x2, y2))
		OUT(3, _mm_xor_si128(x3, y3))
		OUT(4, _mm_xor_si128(x4, y4))
	}
}

/* dst = src XOR keystream with ten rounds. */
__attribute__((target("aes"))) static void one10(
	uint8_t *dst, const uint8_t *src, size_t len, const struct aes_cm_side *s)
{
	for (size_t j = 0; 16 * j < len; j += 5, src += 80, dst += 80) {
		__m128i x0, x1, x2, x3, x4;

		FIRST(x, s, j)
		ROUND(x, s, 1)
		ROUND(x, s, 2)
		ROUND(x, s, 3)
		ROUND(x, s, 4)
		ROUND(x, s, 5)
		ROUND(x, s, 6)
		ROUND(x, s, 7)
		ROUND(x, s, 8)
		ROUND(x, s, 9)
		LAST(x, s, 10)
		OUT(0, x0)
		OUT(1, x1)
		OUT(2, x2)
		OUT(3, x3)
		OUT(4, x4)
	}
}

/* The same with any number of rounds. */
__attribute__((target("aes"))) static void one_side(
	uint8_t *dst, const uint8_t *src, size_t len, const struct aes_cm_side *s)
{
	if (s->rounds == 10) {
		one10(dst, src, len, s);
		return;
	}
	for (size_t j = 0; 16 * j < len; j += 5, src += 80, dst += 80) {
		__m128i x0, x1, x2, x3, x4;

		FIRST(x, s, j)
		for (uint32_t r = 1; r < s->rounds; r++)
			ROUND(x, s, r)
		LAST(x, s, s->rounds)
		OUT(0, x0)
		OUT(1, x1)
		OUT(2, x2)
		OUT(3, x3)
		OUT(4, x4)
	}
}

static void copy_side(uint8_t *dst, const uint8_t *src, size_t len, const struct aes_cm_side *rx)
{
	if (rx->rounds)
		one_side(dst, src, len, rx);
	else if (dst != src)
		memcpy(dst, src, len);
}

void aes_cm_recrypt(uint8_t *dst, const uint8_t *src, size_t len, const struct aes_cm_side *rx,
	const struct aes_cm_side *tx)
{
	if (rx->rounds == 10 && tx->rounds == 10) {
		both10(dst, src, len, rx, tx);
		return;
	}
	copy_side(dst, src, len, rx);
	if (tx->rounds)
		one_side(dst, dst, len, tx);
}

__attribute__((target("aes"))) static inline __m128i keystream(
	const struct aes_cm_side *s, size_t block)
{
	const uint8_t *k = s->key->rk;
	__m128i x = _mm_set_epi64x((long long)s->high, (long long)s->low);

	x = _mm_xor_si128(_mm_add_epi64(x, COUNT(block)), load(k));
#pragma GCC unroll 9
	for (uint32_t r = 1; r < 10; r++)
		x = _mm_aesenc_si128(x, load(k + 16 * r));
	for (uint32_t r = 10; r < s->rounds; r++)
		x = _mm_aesenc_si128(x, load(k + 16 * r));
	return _mm_aesenclast_si128(x, load(k + 16 * s->rounds));
}

/* For a part that does not begin and end at a boundary of the cipher's blocks. */
__attribute__((target("aes"), noinline)) static void odd_part(
	uint8_t *dst, const uint8_t *src, size_t len, size_t at, const struct aes_cm_side *s)
{
	uint8_t ks[XC_BLOCK_MAX + 16] = {0};

	for (size_t b = 0; 16 * b < at % 16 + len; b++)
		store(ks + 16 * b, keystream(s, at / 16 + b));
	for (size_t i = 0; i < len; i++)
		dst[i] = src[i] ^ ks[at % 16 + i];
	secmem_wipe(ks, sizeof(ks));
}

__attribute__((target("aes"))) void aes_cm_part(
	uint8_t *dst, const uint8_t *src, size_t len, size_t at, const struct aes_cm_side *s)
{
	if (!s->rounds)
		memcpy(dst, src, len);
	else if ((at | len) % 16)
		odd_part(dst, src, len, at, s);
	else
		for (size_t i = 0; i < len; i += 16)
			store(dst + i, _mm_xor_si128(load(src + i), keystream(s, (at + i) / 16)));
}

/* As both10(), with a law between the two keystreams. */
#define OUT_LAW(i)                                                         \
	{                                                                  \
		__m128i plain = _mm_xor_si128(load(src + 16 * (i)), x##i); \
                                                                           \
		plain = (__m128i)law_vector((law_vec)plain, rule);         \
		store(dst + 16 * (i), _mm_xor_si128(plain, y##i));         \
	}

__attribute__((target("aes"))) static void convert10(uint8_t *dst, const uint8_t *src, size_t len,
	const struct aes_cm_side *rx, const struct aes_cm_side *tx, const struct law_rule *rule)
{
	for (size_t j = 0; 16 * j < len; j += 5, src += 80, dst += 80) {
		__m128i x0, x1, x2, x3, x4, y0, y1, y2, y3, y4;

		FIRST(x, rx, j)
		FIRST(y, tx, j)
		BOTH(1)
		BOTH(2)
		BOTH(3)
		BOTH(4)
		BOTH(5)
		BOTH(6)
		BOTH(7)
		BOTH(8)
		BOTH(9)
		LAST(x, rx, 10)
		LAST(y, tx, 10)
		OUT_LAW(0)
		OUT_LAW(1)
		OUT_LAW(2)
		OUT_LAW(3)
		OUT_LAW(4)
	}
}

/* The same by a table of 128 bytes in four registers, for two blocks at once. In registers of 64
 * bytes it would be two instructions, but while these run, half of the AES units stand still. */
#define OUT_TABLE(i, k)                                                                        \
	{                                                                                      \
		__m256i plain = both(_mm_xor_si128(load(src + 16 * (i)), x##i),                \
			_mm_xor_si128(load(src + 16 * (k)), x##k));                            \
		__m256i low = _mm256_permutex2var_epi8(table[0], plain, table[1]);             \
		__m256i high = _mm256_permutex2var_epi8(table[2], plain, table[3]);            \
		__m256i sent = _mm256_mask_blend_epi8(                                         \
			_mm256_test_epi8_mask(plain, _mm256_set1_epi8(0x40)), low, high);      \
                                                                                               \
		sent = _mm256_or_si256(                                                        \
			sent, _mm256_and_si256(plain, _mm256_set1_epi8((char)0x80)));          \
		store(dst + 16 * (i), _mm_xor_si128(_mm256_castsi256_si128(sent), y##i));      \
		store(dst + 16 * (k), _mm_xor_si128(_mm256_extracti128_si256(sent, 1), y##k)); \
	}

__attribute__((target("avx2"))) static inline __m256i both(__m128i low, __m128i high)
{
	return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}

__attribute__((target("aes,avx512vbmi,avx512vl"))) static void convert10_table(uint8_t *dst,
	const uint8_t *src, size_t len, const struct aes_cm_side *rx, const struct aes_cm_side *tx,
	const uint8_t law[128])
{
	const __m256i table[4] = {_mm256_load_si256((const __m256i *)law),
		_mm256_load_si256((const __m256i *)law + 1),
		_mm256_load_si256((const __m256i *)law + 2),
		_mm256_load_si256((const __m256i *)law + 3)};

	for (size_t j = 0; 16 * j < len; j += 5, src += 80, dst += 80) {
		__m128i x0, x1, x2, x3, x4, y0, y1, y2, y3, y4;

		FIRST(x, rx, j)
		FIRST(y, tx, j)
		BOTH(1)
		BOTH(2)
		BOTH(3)
		BOTH(4)
		BOTH(5)
		BOTH(6)
		BOTH(7)
		BOTH(8)
		BOTH(9)
		LAST(x, rx, 10)
		LAST(y, tx, 10)
		OUT_TABLE(0, 1)
		OUT_TABLE(2, 3)
		OUT_TABLE(4, 4)
	}
}

void aes_cm_convert(uint8_t *dst, const uint8_t *src, size_t len, const struct aes_cm_side *rx,
	const struct aes_cm_side *tx, uint32_t law)
{
	if (law != XC_LAW_KEEP && rx->rounds == 10 && tx->rounds == 10 &&
		__builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vl"))
		convert10_table(dst, src, len, rx, tx, law_table[law == XC_LAW_A_TO_U]);
	else
		aes_cm_convert_anywhere(dst, src, len, rx, tx, law);
}

void aes_cm_convert_anywhere(uint8_t *dst, const uint8_t *src, size_t len,
	const struct aes_cm_side *rx, const struct aes_cm_side *tx, uint32_t law)
{
	if (law != XC_LAW_KEEP && rx->rounds == 10 && tx->rounds == 10) {
		convert10(dst, src, len, rx, tx, law_rule(law));
		return;
	}
	copy_side(dst, src, len, rx);
	law_bytes(dst, len, law);
	if (tx->rounds)
		one_side(dst, dst, len, tx);
}

bool aes_cm_usable(void)
{
	return __builtin_cpu_supports("aes");
}
#else
void aes_cm_recrypt(uint8_t *dst, const uint8_t *src, size_t len, const struct aes_cm_side *rx,
	const struct aes_cm_side *tx)
{
	(void)dst, (void)src, (void)len, (void)rx, (void)tx;
}

void aes_cm_part(
	uint8_t *dst, const uint8_t *src, size_t len, size_t at, const struct aes_cm_side *s)
{
	(void)dst, (void)src, (void)len, (void)at, (void)s;
}

void aes_cm_convert(uint8_t *dst, const uint8_t *src, size_t len, const struct aes_cm_side *rx,
	const struct aes_cm_side *tx, uint32_t law)
{
	(void)dst, (void)src, (void)len, (void)rx, (void)tx, (void)law;
}

void aes_cm_convert_anywhere(uint8_t *dst, const uint8_t *src, size_t len,
	const struct aes_cm_side *rx, const struct aes_cm_side *tx, uint32_t law)
{
	(void)dst, (void)src, (void)len, (void)rx, (void)tx, (void)law;
}

bool aes_cm_usable(void)
{
	return false;
}
#endif
