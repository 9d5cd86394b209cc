/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The lower band of G.722, one stream per lane: XC_LANES streams in a work-item. daemon/codec/g722.c
 * has the same in C, and its comments name the blocks of the recommendation. Buffers are rows of one
 * word per stream, so that neighbouring streams are neighbours in memory. A program of its own:
 * nothing here is shared with the other kernels. */
#if XC_LANES == 16
typedef int16 xg;
#define XG_GET(p, row)    vload16(0, (p) + (row))
#define XG_PUT(p, row, x) vstore16((x), 0, (p) + (row))
#else
typedef int xg;
#define XG_GET(p, row)    ((p)[row])
#define XG_PUT(p, row, x) ((p)[row] = (x))
#endif

#define XG_INLINE static inline __attribute__((always_inline))
#define XG(x)     ((xg)(x))
#define XG_ZEROS  6
/* Rows of a state, as struct g722_band has its words, and a row that is only read. */
#define XG_STATE  18
#define XG_SPARE  18

__constant int xg_power[32] = {4096, 4186, 4278, 4372, 4466, 4564, 4664, 4766, 4870, 4978, 5086, 5198,
	5312, 5428, 5548, 5668, 5792, 5920, 6050, 6182, 6316, 6456, 6596, 6742, 6888, 7040, 7194,
	7352, 7512, 7676, 7844, 8016};
/* Of the lower quantizer, for the first six, five and four bits of a code. */
__constant int xg_output[112] = {-136, -136, -136, -136, -24808, -21904, -19008, -16704, -14984, -13512,
	-12280, -11192, -10232, -9360, -8576, -7856, -7192, -6576, -6000, -5456, -4944, -4464, -4008,
	-3576, -3168, -2776, -2400, -2032, -1688, -1360, -1040, -728, 24808, 21904, 19008, 16704,
	14984, 13512, 12280, 11192, 10232, 9360, 8576, 7856, 7192, 6576, 6000, 5456, 4944, 4464,
	4008, 3576, 3168, 2776, 2400, 2032, 1688, 1360, 1040, 728, 432, 136, -432, -136,

	-280, -280, -23352, -17560, -14120, -11664, -9752, -8184, -6864, -5712, -4696, -3784, -2960,
	-2208, -1520, -880, 23352, 17560, 14120, 11664, 9752, 8184, 6864, 5712, 4696, 3784, 2960,
	2208, 1520, 880, 280, -280,

	0, -20456, -12896, -8968, -6288, -4240, -2584, -1200, 20456, 12896, 8968, 6288, 4240, 2584,
	1200, 0};
/* By how much a four-bit code changes the logarithm of the step. */
__constant int xg_change[16] = {
	-60, 3042, 1198, 538, 334, 172, 58, -30, 3042, 1198, 538, 334, 172, 58, -30, -60};

struct xg_band {
	xg predicted, zeros, rebuilt[2], partial[2], pole[2], zero[XG_ZEROS], past[XG_ZEROS];
	xg log_step, step;
};

/* i: masked by the caller to the table's size. */
XG_INLINE xg xg_table(__constant int *t, xg i)
{
#if XC_LANES == 16
	return (xg)(t[i.s0], t[i.s1], t[i.s2], t[i.s3], t[i.s4], t[i.s5], t[i.s6], t[i.s7], t[i.s8],
		t[i.s9], t[i.sa], t[i.sb], t[i.sc], t[i.sd], t[i.se], t[i.sf]);
#else
	return t[i];
#endif
}

XG_INLINE xg xg_limit16(xg x)
{
	return clamp(x, XG(-32768), XG(32767));
}

/* The halves of a word, with their signs. */
XG_INLINE xg xg_first(xg two)
{
	return two << 16 >> 16;
}

XG_INLINE xg xg_both(xg first, xg second)
{
	return (first & 0xffff) | second << 16;
}

/* --- A step ----------------------------------------------------------------------------------- */

/* LOGSCL, SCALEL */
XG_INLINE void xg_adapt_step(struct xg_band *b, xg change)
{
	b->log_step = clamp((b->log_step * 127 >> 7) + change, XG(0), XG(18432));
	b->step = xg_table(xg_power, b->log_step >> 6 & 31) >> (XG(9) - (b->log_step >> 11)) << 2;
}

/* UPPOL2 and UPPOL1 */
XG_INLINE void xg_adapt_poles(struct xg_band *b, xg partial)
{
	xg differ1 = (partial ^ b->partial[0]) >> 31, differ2 = (partial ^ b->partial[1]) >> 31;
	xg first = xg_limit16(b->pole[0] * 4);
	xg towards = min((first ^ ~differ1) - ~differ1, XG(32767)) >> 7;
	xg second = clamp(((XG(128) ^ differ2) - differ2) + towards + (b->pole[1] * 32512 >> 15),
		XG(-12288), XG(12288));
	xg bound = XG(15360) - second;
	xg pole = ((XG(192) ^ differ1) - differ1) + (b->pole[0] * 32640 >> 15);

	b->pole[0] = clamp(pole, -bound, bound);
	b->pole[1] = second;
}

/* UPZERO, then FILTEZ */
XG_INLINE xg xg_adapt_zeros(struct xg_band *b, xg difference)
{
	xg by = difference == 0 ? XG(0) : XG(128), sum = XG(0);

#pragma unroll
	for (int i = 0; i < XG_ZEROS; i++) {
		xg other = (difference ^ b->past[i]) >> 31;

		b->zero[i] = ((by ^ other) - other) + (b->zero[i] * 32640 >> 15);
	}
#pragma unroll
	for (int i = XG_ZEROS - 1; i > 0; i--)
		b->past[i] = b->past[i - 1];
	b->past[0] = difference;
#pragma unroll
	for (int i = 0; i < XG_ZEROS; i++)
		sum += b->zero[i] * xg_limit16(2 * b->past[i]) >> 15;
	return xg_limit16(sum);
}

/* Block 4 */
XG_INLINE void xg_predict(struct xg_band *b, xg difference)
{
	xg rebuilt = xg_limit16(b->predicted + difference);
	xg partial = xg_limit16(b->zeros + difference), poles;

	xg_adapt_poles(b, partial);
	b->zeros = xg_adapt_zeros(b, difference);
	b->partial[1] = b->partial[0];
	b->partial[0] = partial;
	b->rebuilt[1] = b->rebuilt[0];
	b->rebuilt[0] = rebuilt;
	poles = xg_limit16((b->pole[0] * xg_limit16(2 * b->rebuilt[0]) >> 15) +
		(b->pole[1] * xg_limit16(2 * b->rebuilt[1]) >> 15));
	b->predicted = xg_limit16(poles + b->zeros);
}

/* Where the magnitude reaches this level of the quantizer, x, else 0. */
#define XG_FROM(level, x) (magnitude >= (step * ((level) << 4) >> 16) ? XG(x) : XG(0))

/* QUANTL: a code of six bits. The predictor needs only every fourth level. The three levels
 * after it tell the rest. */
XG_INLINE xg xg_encode(struct xg_band *b, xg sample)
{
	xg step = b->step, apart = xg_limit16((sample >> 1) - b->predicted);
	xg sign = apart >> 31, magnitude = apart ^ sign;
	xg n = XG(-2), change = XG(-60), output = XG(0);
	xg next0 = XG(0), next1 = XG(0), next2 = XG(35);

#define XG_FOURTH(level, to_change, to_output, to0, to1, to2)                             \
	{                                                                                 \
		xg reached = magnitude >= (step * ((level) << 4) >> 16) ? XG(-1) : XG(0); \
                                                                                          \
		n += reached & 4;                                                         \
		change += reached & (to_change);                                          \
		output += reached & (to_output);                                          \
		next0 += reached & (to0);                                                 \
		next1 += reached & (to1);                                                 \
		next2 += reached & (to2);                                                 \
	}
	XG_FOURTH(72, -30 + 60, 1200, 110, 150, 190 - 35)
	XG_FOURTH(233, 58 + 30, 2584 - 1200, 276 - 110, 323 - 150, 370 - 190)
	XG_FOURTH(422, 172 - 58, 4240 - 2584, 473 - 276, 530 - 323, 587 - 370)
	XG_FOURTH(650, 334 - 172, 6288 - 4240, 714 - 473, 786 - 530, 858 - 587)
	XG_FOURTH(940, 538 - 334, 8968 - 6288, 1023 - 714, 1121 - 786, 1219 - 858)
	XG_FOURTH(1339, 1198 - 538, 12896 - 8968, 1458 - 1023, 1612 - 1121, 1765 - 1219)
	XG_FOURTH(1980, 3042 - 1198, 20456 - 12896, 2195 - 1458, 2557 - 1612, 2919 - 1765)
	n += XG_FROM(next0, 1) + XG_FROM(next1, 1) + XG_FROM(next2, 1);
	xg_adapt_step(b, change);
	xg_predict(b, ((output ^ sign) - sign) * step >> 15);
	/* Codes count down from the largest magnitude; below zero the two smallest differ. */
	return (sign < 0 ? (n < 2 ? XG(63) : XG(33)) : XG(61)) - n;
}

/* A sample of 16 bits. spare: low bits of the code that are not audio. */
XG_INLINE xg xg_decode(struct xg_band *b, xg code, xg spare)
{
	xg fourth = code >> 2 & 15, step = b->step;
	xg level = xg_table(xg_output, ((128 - (XG(128) >> spare)) + (code >> spare)) & 127);
	xg pcm = clamp(b->predicted + (level * step >> 15), XG(-16384), XG(16383));

	xg_adapt_step(b, xg_table(xg_change, fourth));
	xg_predict(b, xg_table(xg_output, 96 + fourth) * step >> 15);
	return 2 * pcm;
}

/* --- States and packets ----------------------------------------------------------------------- */

XG_INLINE void xg_load(struct xg_band *b, const __global int *p, uint stride)
{
	b->predicted = XG_GET(p, 0);
	b->zeros = XG_GET(p, stride);
#pragma unroll
	for (uint i = 0; i < 2; i++) {
		b->rebuilt[i] = XG_GET(p, (2 + i) * stride);
		b->partial[i] = XG_GET(p, (4 + i) * stride);
		b->pole[i] = XG_GET(p, (6 + i) * stride);
	}
#pragma unroll
	for (uint i = 0; i < XG_ZEROS; i += 2) {
		xg zero = XG_GET(p, (8 + i / 2) * stride), past = XG_GET(p, (12 + i / 2) * stride);

		b->zero[i] = xg_first(zero);
		b->zero[i + 1] = zero >> 16;
		b->past[i] = xg_first(past);
		b->past[i + 1] = past >> 16;
	}
	b->log_step = XG_GET(p, 16 * stride);
	b->step = XG_GET(p, 17 * stride);
}

XG_INLINE void xg_store(const struct xg_band *b, __global int *p, uint stride)
{
	XG_PUT(p, 0, b->predicted);
	XG_PUT(p, stride, b->zeros);
#pragma unroll
	for (uint i = 0; i < 2; i++) {
		XG_PUT(p, (2 + i) * stride, b->rebuilt[i]);
		XG_PUT(p, (4 + i) * stride, b->partial[i]);
		XG_PUT(p, (6 + i) * stride, b->pole[i]);
	}
#pragma unroll
	for (uint i = 0; i < XG_ZEROS; i += 2) {
		XG_PUT(p, (8 + i / 2) * stride, xg_both(b->zero[i], b->zero[i + 1]));
		XG_PUT(p, (12 + i / 2) * stride, xg_both(b->past[i], b->past[i + 1]));
	}
	XG_PUT(p, 11 * stride, XG(0));
	XG_PUT(p, 15 * stride, XG(0));
	XG_PUT(p, 16 * stride, b->log_step);
	XG_PUT(p, 17 * stride, b->step);
}

/* A function of its own on a CPU, because PoCL would compile three copies of a kernel's body. */
#if XC_LANES > 1
#define XG_BODY  static __attribute__((noinline))
#define XG_GROUP __attribute__((reqd_work_group_size(1, 1, 1)))
#else
#define XG_BODY XG_INLINE
#define XG_GROUP
#endif

XG_BODY void xg_encode_all(const __global int *in, __global int *out, uint stride, uint samples)
{
	xg keep = ~(((XG(1) << XG_GET(in, XG_SPARE * stride)) - 1) * 0x01010101), codes = XG(0);
	struct xg_band b;

	xg_load(&b, in, stride);
	in += (XG_STATE + 1) * stride;
#pragma unroll 1
	for (uint i = 0; i < samples; i += 2, in += stride) {
		xg two = XG_GET(in, 0), code = xg_encode(&b, xg_first(two));

		code |= xg_encode(&b, two >> 16) << 8;
		codes = i & 2 ? codes | code << 16 : code;
		if (i & 2)
			XG_PUT(out, (XG_STATE + i / 4) * stride, (codes | (int)0xc0c0c0c0) & keep);
	}
	xg_store(&b, out, stride);
}

XG_BODY void xg_decode_all(const __global int *in, __global int *out, uint stride, uint samples)
{
	xg spare = XG_GET(in, XG_SPARE * stride), codes = XG(0);
	struct xg_band b;

	xg_load(&b, in, stride);
	in += (XG_STATE + 1) * stride;
#pragma unroll 1
	for (uint i = 0; i < samples; i += 2) {
		xg first;

		codes = i & 2 ? codes >> 16 : XG_GET(in, i / 4 * stride);
		first = xg_decode(&b, codes & 63, spare);
		XG_PUT(out, (XG_STATE + i / 2) * stride,
			xg_both(first, xg_decode(&b, codes >> 8 & 63, spare)));
	}
	xg_store(&b, out, stride);
}

/* from: rows of the states, the row of spare bits, then two samples a row. to: rows of the new
 * states, then four codes a row. stride: words of a row, a multiple of XC_LANES. samples: a multiple
 * of 4. The codes of the upper band are those of silence. */
XG_GROUP __kernel void xc_g722_encode(
	const __global int *restrict from, __global int *restrict to, uint stride, uint samples)
{
	size_t at = get_global_id(0) * XC_LANES;

	xg_encode_all(from + at, to + at, stride, samples);
}

/* As xc_g722_encode(), with four codes a row of from, and two samples a row of to. */
XG_GROUP __kernel void xc_g722_decode(
	const __global int *restrict from, __global int *restrict to, uint stride, uint samples)
{
	size_t at = get_global_id(0) * XC_LANES;

	xg_decode_all(from + at, to + at, stride, samples);
}
