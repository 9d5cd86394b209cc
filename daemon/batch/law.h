/* SPDX-License-Identifier: GPL-2.0-or-later */
/* G.711 for the serial engine: converts decrypted bytes of one law into the other, 16 at a time.
 * Constant time: neither a branch nor a look-up depends on a byte of media. srtp/g711.c has the
 * standard's tables, kernels/g711.cl the same sums for OpenCL. */
#ifndef BATCH_LAW_H
#define BATCH_LAW_H

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "base/bytes.h"
#include "layout.h"

typedef uint8_t law_vec __attribute__((vector_size(16)));

/* The tables are nearly straight: a value's magnitude becomes itself plus or minus five ramps. A
 * ramp starts after "from", and rises up to "most". Where all is 0, it rises by halves. */
struct law_rule {
	law_vec in, out; /* bits that the law inverts: of the received byte, of the sent one */
	law_vec from[5], most[5], all[3];
	law_vec down; /* 0xff: the ramps are subtracted */
	law_vec one;
};

/* By XC_LAW_*, less 1: the low bits of the sent byte by those of the received one. Only for
 * look-ups in registers: the time of one in memory depends on the byte. */
extern _Alignas(64) const uint8_t law_table[2][128];
/* law: XC_LAW_U_TO_A or XC_LAW_A_TO_U. */
const struct law_rule *law_rule(uint32_t law);
/* In place. XC_LAW_KEEP changes nothing. */
void law_bytes(uint8_t *p, size_t len, uint32_t law);

#if defined(__SSE2__)
#define LAW_PAST(x, c) ((law_vec)_mm_subs_epu8((__m128i)(x), (__m128i)(c)))
#define LAW_MOST(x, c) ((law_vec)_mm_min_epu8((__m128i)(x), (__m128i)(c)))
/* Half of a sum, rounded up. */
#define LAW_HALF(x, y) ((law_vec)_mm_avg_epu8((__m128i)(x), (__m128i)(y)))
#else
#define LAW_PAST(x, c) (((x) - (c)) & (law_vec)((x) > (c)))
#define LAW_MOST(x, c) ((x)-LAW_PAST(x, c))
#define LAW_HALF(x, y) (((x) | (y)) - (((x) ^ (y)) >> 1))
#endif

static inline law_vec law_ramp(law_vec i, const struct law_rule *r, unsigned n)
{
	law_vec past = LAW_PAST(i, r->from[n]), ramp = LAW_MOST(past, r->most[n]);

	return n < ARRAY_LEN(r->all) ? LAW_HALF(ramp, ramp & r->all[n]) : ramp;
}

static inline law_vec law_vector(law_vec x, const struct law_rule *r)
{
	const law_vec low = (law_vec){} + 0x7f;
	law_vec i = (x ^ r->in) & low;
	law_vec sum = law_ramp(i, r, 1) + law_ramp(i, r, 2) + law_ramp(i, r, 3) +
		law_ramp(i, r, 4) - law_ramp(i, r, 0);

	i += (sum ^ r->down) - r->down + r->one;
	return (i ^ r->out) | (x & ~low);
}

#endif
