/* SPDX-License-Identifier: GPL-2.0-or-later */
/* SHA-1 (FIPS 180-4 6.1.2) by x86 instructions (srtp/sha1_ways.h). SHA-NI processes two messages
 * at once, because one alone waits for the latency of each instruction. AVX2 processes eight
 * messages in its lanes, with AVX-512VL faster by its rotations and three-operand logic. */
#include "srtp/sha1_ways.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>

/* --- Eight lanes ------------------------------------------------------------------------------ */

typedef uint32_t lanes __attribute__((vector_size(32)));

#define AS_LANES(x) ((lanes)(x))
#define AS_M256(x)  ((__m256i)(x))

#define PAIR32(i, j)                                                          \
	t[i] = AS_LANES(_mm256_unpacklo_epi32(AS_M256(r[i]), AS_M256(r[j]))); \
	t[j] = AS_LANES(_mm256_unpackhi_epi32(AS_M256(r[i]), AS_M256(r[j])));
#define PAIR64(to, i, j)                                                       \
	r[to] = AS_LANES(_mm256_unpacklo_epi64(AS_M256(t[i]), AS_M256(t[j]))); \
	r[(to) + 1] = AS_LANES(_mm256_unpackhi_epi64(AS_M256(t[i]), AS_M256(t[j])));
#define HALVES(to, i)                                                                          \
	w[to] = AS_LANES(_mm256_permute2x128_si256(AS_M256(r[i]), AS_M256(r[(i) + 4]), 0x20)); \
	w[(to) + 4] = AS_LANES(_mm256_permute2x128_si256(AS_M256(r[i]), AS_M256(r[(i) + 4]), 0x31));

/* Makes eight words of all lanes from eight words of each lane, and the reverse. Changes r. */
__attribute__((target("avx2"))) static inline void transpose(lanes *w, lanes *r)
{
	lanes t[8];

	PAIR32(0, 1)
	PAIR32(2, 3)
	PAIR32(4, 5)
	PAIR32(6, 7)
	PAIR64(0, 0, 2)
	PAIR64(2, 1, 3)
	PAIR64(4, 4, 6)
	PAIR64(6, 5, 7)
	HALVES(0, 0)
	HALVES(1, 1)
	HALVES(2, 2)
	HALVES(3, 3)
}

/* Reverses the bytes of each word. */
__attribute__((target("avx2"))) static inline lanes swapped(__m256i x)
{
	return AS_LANES(_mm256_shuffle_epi8(x,
		_mm256_set_epi8(12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14,
			15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3)));
}

/* Loads 32 bytes of each message, as eight words of all lanes in host order. */
__attribute__((target("avx2"))) static inline void gather(
	lanes *w, const uint8_t *const *p, size_t at)
{
	lanes r[8];

#pragma GCC unroll 8
	for (int i = 0; i < 8; i++)
		r[i] = swapped(_mm256_loadu_si256((const __m256i *)(const void *)(p[i] + at)));
	transpose(w, r);
}

/* Loads the states that begin at word "at" of each lane. Only five of the eight results are words
 * of a state. */
__attribute__((target("avx2"))) static inline void states(
	lanes *s, const uint32_t *const *state, size_t at)
{
	lanes r[8];

#pragma GCC unroll 8
	for (int i = 0; i < 8; i++)
		r[i] = AS_LANES(_mm256_loadu_si256((const __m256i *)(const void *)(state[i] + at)));
	transpose(s, r);
}

/* Stores the digest of each lane, with 12 bytes of no meaning after it. */
__attribute__((target("avx2"))) static inline void digests(uint8_t *const *to, const lanes *s)
{
	lanes r[8], out[8];

#pragma GCC unroll 8
	for (int i = 0; i < 8; i++)
		r[i] = s[i < 5 ? i : 0];
	transpose(out, r);
#pragma GCC unroll 8
	for (int i = 0; i < 8; i++)
		_mm256_storeu_si256((__m256i *)(void *)to[i], AS_M256(swapped(AS_M256(out[i]))));
}

#define W(i) w[(i)&15]
/* Renames the state words in round i instead of moving a to b to c. */
#define S(i, at) s[(80 - (i) + (at)) % 5]
#define WORD(i)  W(i) = ROL(W((i) + 13) ^ W((i) + 8) ^ W((i) + 2) ^ W(i), 1);
/* A round waits for word a of the previous round, so a is added last. */
#define STEP(i, f, k)                            \
	S(i, 4) += W(i) + (k);                   \
	IN_ORDER(S(i, 4))                        \
	S(i, 4) += f(S(i, 1), S(i, 2), S(i, 3)); \
	IN_ORDER(S(i, 4))                        \
	S(i, 4) += ROL(S(i, 0), 5);              \
	S(i, 1) = ROL(S(i, 1), 30);
#define STEP_NEXT(i, f, k) \
	WORD(i)            \
	STEP(i, f, k)
#define FOUR(m, i, f, k) m(i, f, k) m((i) + 1, f, k) m((i) + 2, f, k) m((i) + 3, f, k)
#define TWENTY(i, f, k)                \
	FOUR(STEP_NEXT, i, f, k)       \
	FOUR(STEP_NEXT, (i) + 4, f, k) \
	FOUR(STEP_NEXT, (i) + 8, f, k) \
	FOUR(STEP_NEXT, (i) + 12, f, k) FOUR(STEP_NEXT, (i) + 16, f, k)
/* clang-format off */
#define ROUNDS                                                                          \
	FOUR(STEP, 0, CH, 0x5a827999u) FOUR(STEP, 4, CH, 0x5a827999u)                   \
	FOUR(STEP, 8, CH, 0x5a827999u) FOUR(STEP, 12, CH, 0x5a827999u)                  \
	FOUR(STEP_NEXT, 16, CH, 0x5a827999u)                                            \
	TWENTY(20, PARITY, 0x6ed9eba1u)                                                 \
	TWENTY(40, MAJ, 0x8f1bbcdcu)                                                    \
	TWENTY(60, PARITY, 0xca62c1d6u)
/* clang-format on */

#define UNROLL_5        _Pragma("GCC unroll 5")
#define LENGTH_OF_OUTER (8 * (64 + 20)) /* bits: HMAC's key block and the digest */
/* The bodies of the functions below, once for each set of instructions. The first compresses one
 * block. */
#define COMPRESS(from, state)       \
	lanes s[5];                 \
                                    \
	UNROLL_5                    \
	for (int i = 0; i < 5; i++) \
		s[i] = (from)[i];   \
	ROUNDS                      \
	UNROLL_5                    \
	for (int i = 0; i < 5; i++) \
		(state)[i] = s[i] + (from)[i];
#define BLOCKS(compress)                               \
	lanes s[5], w[16];                             \
                                                       \
	for (int i = 0; i < 5; i++)                    \
		memcpy(&s[i], h[i], sizeof(s[i]));     \
	for (uint32_t b = 0; b < n; b++) {             \
		gather(w, p, 64 * (size_t)b);          \
		gather(w + 8, p, 64 * (size_t)b + 32); \
		compress(s, s, w);                     \
	}                                              \
	for (int i = 0; i < 5; i++)                    \
		memcpy(h[i], &s[i], sizeof(s[i]));
/* Writes the padding of the last block, from this word on. bits: length of the message. */
#define PADDING(from, bits)                               \
	w[from] = AS_LANES(_mm256_set1_epi32(INT32_MIN)); \
	for (int i = (from) + 1; i < 15; i++)             \
		w[i] = AS_LANES(_mm256_setzero_si256());  \
	w[15] = AS_LANES(_mm256_set1_epi32((int)(bits)));
#define HMACS(compress)                                             \
	lanes s[8], o[8], w[16];                                    \
                                                                    \
	states(s, e->state, 0);                                     \
	for (uint32_t b = 0; b < e->whole + e->tails; b++) {        \
		bool tail = b >= e->whole;                          \
		const uint8_t *const *p = tail ? e->tail : e->msg;  \
		size_t at = 64 * (size_t)(tail ? b - e->whole : b); \
                                                                    \
		gather(w, p, at);                                   \
		gather(w + 8, p, at + 32);                          \
		compress(s, s, w);                                  \
	}                                                           \
	if (e->bits) {                                              \
		PADDING(0, e->bits)                                 \
		compress(s, s, w);                                  \
	}                                                           \
	states(o, e->state, 5);                                     \
	UNROLL_5                                                    \
	for (int i = 0; i < 5; i++)                                 \
		w[i] = s[i];                                        \
	PADDING(5, LENGTH_OF_OUTER)                                 \
	compress(s, o, w);                                          \
	digests(e->mac, s);

/* One block of each message that is in words of all lanes already. */
#define BLOCK_OF_WORDS(compress) \
	lanes s[5], w[16];       \
                                 \
	memcpy(s, h, sizeof(s)); \
	memcpy(w, m, sizeof(w)); \
	compress(s, s, w);       \
	memcpy(h, s, sizeof(s));

#define IN_ORDER(x)     __asm__("" : "+x"(x));
#define ROL(x, c)       ((x) << (c) | (x) >> (32 - (c)))
#define CH(b, c, d)     ((d) ^ ((b) & ((c) ^ (d))))
#define PARITY(b, c, d) ((b) ^ (c) ^ (d))
#define MAJ(b, c, d)    (((b) & (c)) | ((d) & ((b) | (c))))

/* Not inlined: the rounds are 9 KiB of code. */
__attribute__((target("avx2"), noinline)) static void compress_avx2(
	lanes *to, const lanes *from, lanes *w)
{
	COMPRESS(from, to)
}

__attribute__((target("avx2"))) static void lanes_avx2(
	uint32_t (*h)[SHA1_LANES], const uint8_t *const *p, uint32_t n)
{
	BLOCKS(compress_avx2)
}

__attribute__((target("avx2"))) static void hmacs_avx2(const struct sha1_hmacs *e)
{
	HMACS(compress_avx2)
}

__attribute__((target("avx2"))) static void words_avx2(
	uint32_t (*h)[SHA1_LANES], const uint32_t (*m)[SHA1_LANES])
{
	BLOCK_OF_WORDS(compress_avx2)
}

#undef IN_ORDER
#undef ROL
#undef CH
#undef PARITY
#undef MAJ
#define IN_ORDER(x) __asm__("" : "+v"(x));
#define ROL(x, c)   AS_LANES(_mm256_rol_epi32(AS_M256(x), c))
#define OF_THREE(b, c, d, table) \
	AS_LANES(_mm256_ternarylogic_epi32(AS_M256(b), AS_M256(c), AS_M256(d), table))
#define CH(b, c, d)     OF_THREE(b, c, d, 0xca)
#define PARITY(b, c, d) OF_THREE(b, c, d, 0x96)
#define MAJ(b, c, d)    OF_THREE(b, c, d, 0xe8)

#define TARGET_VL "avx2,avx512f,avx512vl"

__attribute__((target(TARGET_VL), noinline)) static void compress_vl(
	lanes *to, const lanes *from, lanes *w)
{
	COMPRESS(from, to)
}

__attribute__((target(TARGET_VL))) static void lanes_vl(
	uint32_t (*h)[SHA1_LANES], const uint8_t *const *p, uint32_t n)
{
	BLOCKS(compress_vl)
}

__attribute__((target(TARGET_VL))) static void hmacs_vl(const struct sha1_hmacs *e)
{
	HMACS(compress_vl)
}

__attribute__((target(TARGET_VL))) static void words_vl(
	uint32_t (*h)[SHA1_LANES], const uint32_t (*m)[SHA1_LANES])
{
	BLOCK_OF_WORDS(compress_vl)
}

/* --- The SHA extensions ----------------------------------------------------------------------- */

/* Four rounds of one message. e: abcd before the previous four rounds, from which the instruction
 * takes the e of these. */
#define NI_FOUR(x, i)                                    \
	x##e = _mm_sha1nexte_epu32(x##e, x##w[(i) % 4]); \
	x##t = x##s;                                     \
	x##s = _mm_sha1rnds4_epu32(x##s, x##e, (i) / 5); \
	x##e = x##t;
#define NI_WORDS(x, i)                                                                \
	x##w[(i) % 4] = _mm_sha1msg2_epu32(                                           \
		_mm_xor_si128(_mm_sha1msg1_epu32(x##w[(i) % 4], x##w[((i) + 1) % 4]), \
			x##w[((i) + 2) % 4]),                                         \
		x##w[((i) + 3) % 4]);
#define NI_NEXT(i)     \
	NI_WORDS(a, i) \
	NI_WORDS(b, i) \
	NI_FOUR(a, i)  \
	NI_FOUR(b, i)
#define NI_BOTH(i)    \
	NI_FOUR(a, i) \
	NI_FOUR(b, i)
#define NI_LOAD(x, from)                    \
	for (int l = 0; l < 4; l++)         \
		x##w[l] = _mm_shuffle_epi8( \
			_mm_loadu_si128((const __m128i *)(const void *)((from) + 16 * l)), swap);
/* The first four rounds take e itself. */
#define NI_FIRST(x)                                \
	x##s0 = x##s;                              \
	x##e0 = x##e;                              \
	x##e = _mm_add_epi32(x##e, x##w[0]);       \
	x##t = x##s;                               \
	x##s = _mm_sha1rnds4_epu32(x##s, x##e, 0); \
	x##e = x##t;
#define NI_LAST(x)                               \
	x##e = _mm_sha1nexte_epu32(x##e, x##e0); \
	x##s = _mm_add_epi32(x##s, x##s0);
#define NI_STATE(x, h)                                                                       \
	x##s = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(const void *)(h)), 0x1b); \
	x##e = _mm_set_epi32((int)(h)[4], 0, 0, 0);
#define NI_RESULT(x, h)                                                          \
	_mm_storeu_si128((__m128i *)(void *)(h), _mm_shuffle_epi32(x##s, 0x1b)); \
	(h)[4] = (uint32_t)_mm_extract_epi32(x##e, 3);

__attribute__((target("sha,sse4.1"))) static void two_ni(
	uint32_t *h, uint32_t *g, const uint8_t *p, const uint8_t *q, uint32_t n)
{
	const __m128i swap = _mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
	__m128i as, ae, at, as0, ae0, aw[4], bs, be, bt, bs0, be0, bw[4];

	NI_STATE(a, h)
	NI_STATE(b, g)
	for (uint32_t i = 0; i < n; i++, p += 64, q += 64) {
		NI_LOAD(a, p)
		NI_LOAD(b, q)
		NI_FIRST(a)
		NI_FIRST(b)
		NI_BOTH(1)
		NI_BOTH(2)
		NI_BOTH(3)
		NI_NEXT(4)
		NI_NEXT(5)
		NI_NEXT(6)
		NI_NEXT(7)
		NI_NEXT(8)
		NI_NEXT(9)
		NI_NEXT(10)
		NI_NEXT(11)
		NI_NEXT(12)
		NI_NEXT(13)
		NI_NEXT(14)
		NI_NEXT(15)
		NI_NEXT(16)
		NI_NEXT(17)
		NI_NEXT(18)
		NI_NEXT(19)
		NI_LAST(a)
		NI_LAST(b)
	}
	NI_RESULT(a, h)
	NI_RESULT(b, g)
}

/* --- Choice ----------------------------------------------------------------------------------- */

static const struct sha1_way ways[SHA1_WAYS] = {
	{.name = "SHA-NI", .least = 1, .two = two_ni},
	{.name = "AVX-512VL",
		.least = 3,
		.over_two = true,
		.lanes = lanes_vl,
		.hmacs = hmacs_vl,
		.words = words_vl},
	{.name = "AVX2", .least = 3, .lanes = lanes_avx2, .hmacs = hmacs_avx2, .words = words_avx2},
};

/* GCC 12 and clang 14 do not know "sha": leaf 7, EBX bit 29. */
static bool has_sha(void)
{
	unsigned a, b = 0, c, d;

	return __get_cpuid_count(7, 0, &a, &b, &c, &d) && b >> 29 & 1;
}

const struct sha1_way *sha1_way(uint32_t place)
{
	const bool has[SHA1_WAYS] = {
		has_sha() && __builtin_cpu_supports("sse4.1"),
		__builtin_cpu_supports("avx2") && __builtin_cpu_supports("avx512vl"),
		__builtin_cpu_supports("avx2"),
	};

	return place < SHA1_WAYS && has[place] ? &ways[place] : NULL;
}

const struct sha1_way *sha1_way_in_lanes(void)
{
	if (!__builtin_cpu_supports("avx2"))
		return NULL;
	return __builtin_cpu_supports("avx512vl") ? &ways[1] : &ways[2];
}
#else
const struct sha1_way *sha1_way(uint32_t place)
{
	(void)place;
	return NULL;
}

const struct sha1_way *sha1_way_in_lanes(void)
{
	return NULL;
}
#endif
