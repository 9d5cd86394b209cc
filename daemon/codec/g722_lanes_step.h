/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The lower band of G.722, a stream in each lane of 32 bits (codec/g722_lanes.h). Each of the
 * files g722_lanes_*.c defines a vector of LANES lanes and its operations for one kind of
 * processor, and then includes this header:
 *
 * v, mask              a vector; which lanes something holds for
 * LANES_CODE           attribute of all functions
 * all(n)               n in each lane
 * load_row, store_row  LANES int32_t, aligned to 64 bytes
 * add sub least most bit_and bit_or bit_xor, sra srl sll (x, bits), srlv (x, bits by lane)
 * madd(a, b)           sum of both products of 16-bit halves
 * mulhi(a, b)          upper halves of both products of unsigned 16-bit halves
 * signed_by(x, y)      x where y is above 0, -x below 0, else 0
 * below_zero(x), half_below_zero(x) (bit 15 is set), less(x, y), both(m, n)
 * pick(x, m, y)        y where m holds, else x
 * sub_if(x, m, y)      x - y where m holds, else x
 * count_if_reaches(n, x, y)  n + 1 where x >= y, else n
 * table8, table32 (const int32_t *, index)
 * table64(const int16_t *, index)  its upper halves may be anything
 * struct ends, ends_init(), next(), put()  the lanes' packets: the next four bytes of each
 *
 * The comments name the blocks of the recommendation; g722.c has the same in scalar code. Products
 * are those of 16-bit values: madd() is faster than a product of 32 bits, and exact if the upper
 * half of one factor is 0 ("half" below). */
#ifndef CODEC_LANES_STEP_H
#define CODEC_LANES_STEP_H

#include <string.h>

#include "codec/g722_lanes.h"

enum { ZEROS = 6 };

/* One lane per stream, as struct g722_band. */
struct lanes {
	v predicted, zeros, step, log_step;
	v rebuilt[2], partial[2], pole[2], zero[ZEROS];
	v twice[2];    /* half: twice the rebuilt samples, limited */
	v past[ZEROS]; /* half: twice the quantized differences */
	struct ends ends;
};

/* --- Arithmetic ------------------------------------------------------------------------------- */

LANES_INLINE v limit(v x, int32_t low, int32_t high)
{
	return most(least(x, all(high)), all(low));
}

LANES_INLINE v limit16(v x)
{
	return limit(x, INT16_MIN, INT16_MAX);
}

LANES_INLINE v half(v x)
{
	return bit_and(x, all(0xffff));
}

/* a * b >> 15; b: half */
LANES_INLINE v times(v a, v b)
{
	return sra(madd(a, b), 15);
}

/* x - ceil(x / 2^shift) */
LANES_INLINE v decay(v x, uint32_t shift)
{
	return sub(x, sra(add(x, all((1 << shift) - 1)), shift));
}

/* --- A step ----------------------------------------------------------------------------------- */

/* LOGSCL, SCALEL. 2 * 2048 * 2^(i/32) is the step for the fraction of its logarithm. */
LANES_INLINE void adapt_step(struct lanes *l, v change)
{
	static const int32_t power[32] = {4096, 4186, 4278, 4372, 4466, 4564, 4664, 4766, 4870,
		4978, 5086, 5198, 5312, 5428, 5548, 5668, 5792, 5920, 6050, 6182, 6316, 6456, 6596,
		6742, 6888, 7040, 7194, 7352, 7512, 7676, 7844, 8016};
	v shift;

	l->log_step = limit(add(decay(l->log_step, 7), change), 0, 18432);
	shift = sub(all(9), srl(l->log_step, 11));
	l->step = sll(srlv(table32(power, srl(l->log_step, 6)), shift), 2);
}

/* UPPOL2 and UPPOL1. Terms without partial are computed first, because partial is ready last. */
LANES_INLINE void adapt_poles(struct lanes *l, v partial)
{
	v first = limit16(sll(l->pole[0], 2));
	v base = add(decay(l->pole[1], 7), all(128));
	v down = sub(all(0), first);
	v same = add(base, sra(least(down, all(INT16_MAX)), 7));
	v differ = add(base, sra(first, 7));
	v slow = decay(l->pole[0], 8), bound, pole;
	mask differ1 = below_zero(bit_xor(partial, l->partial[0]));
	mask differ2 = below_zero(bit_xor(partial, l->partial[1]));
	v second = pick(same, differ1, differ);

	second = limit(sub_if(second, differ2, all(256)), -12288, 12288);
	bound = sub(all(15360), second);
	pole = pick(add(slow, all(192)), differ1, sub(slow, all(192)));
	l->pole[0] = most(least(pole, bound), sub(all(0), bound));
	l->pole[1] = second;
}

/* UPZERO, then FILTEZ. */
LANES_INLINE v adapt_zeros(struct lanes *l, v difference)
{
	v by = signed_by(all(128), difference), sum;

	for (int i = 0; i < ZEROS; i++) {
		mask below = half_below_zero(l->past[i]);
		v slow = decay(l->zero[i], 8);

		l->zero[i] = pick(add(slow, by), below, sub(slow, by));
	}
	for (int i = ZEROS - 1; i > 0; i--)
		l->past[i] = l->past[i - 1];
	l->past[0] = half(add(difference, difference));
	sum = times(l->zero[5], l->past[5]);
	for (int i = ZEROS - 1; i-- > 0;)
		sum = add(sum, times(l->zero[i], l->past[i]));
	return limit16(sum);
}

/* Block 4: the predictor takes a quantized difference, and predicts the next sample. */
LANES_INLINE void predict(struct lanes *l, v difference)
{
	v rebuilt = limit16(add(l->predicted, difference)); /* RECONS */
	v partial = limit16(add(l->zeros, difference));     /* PARREC */
	v poles;

	adapt_poles(l, partial);
	l->zeros = adapt_zeros(l, difference);
	l->partial[1] = l->partial[0];
	l->partial[0] = partial;
	l->rebuilt[1] = l->rebuilt[0];
	l->rebuilt[0] = rebuilt;
	l->twice[1] = l->twice[0];
	l->twice[0] = half(limit16(add(rebuilt, rebuilt)));
	/* FILTEP, PREDIC */
	poles = limit16(add(times(l->pole[0], l->twice[0]), times(l->pole[1], l->twice[1])));
	l->predicted = limit16(add(poles, l->zeros));
}

/* How many of every fourth level a magnitude reaches: bits 2 to 5 of the code. */
LANES_INLINE v fourths(v step, v magnitude)
{
	static const int32_t level[7] = {
		72 << 4, 233 << 4, 422 << 4, 650 << 4, 940 << 4, 1339 << 4, 1980 << 4};
	v n[2] = {all(0), all(0)};

	for (int i = 0; i < 7; i++)
		n[i & 1] = count_if_reaches(n[i & 1], magnitude, mulhi(all(level[i]), step));
	return add(n[0], n[1]);
}

/* The rest of QUANTL: the code, whose two lowest bits the predictor does not need. */
LANES_INLINE v low_code(v step, v magnitude, mask below, v fourth)
{
	/* The levels above each fourth one. Every magnitude reaches the first two. */
	static const int32_t level[3][8] = {
		{0, 110 << 4, 276 << 4, 473 << 4, 714 << 4, 1023 << 4, 1458 << 4, 2195 << 4},
		{0, 150 << 4, 323 << 4, 530 << 4, 786 << 4, 1121 << 4, 1612 << 4, 2557 << 4},
		{35 << 4, 190 << 4, 370 << 4, 587 << 4, 858 << 4, 1219 << 4, 1765 << 4, 2919 << 4}};
	v n = sub(sll(fourth, 2), all(2)), code;

	for (int i = 0; i < 3; i++)
		n = count_if_reaches(n, magnitude, mulhi(table8(level[i], fourth), step));
	code = pick(all(61), below, all(33));
	code = pick(code, both(below, less(n, all(2))), all(63));
	return sub(code, n);
}

/* The code for samples of 16 bits. */
LANES_INLINE v encode_step(struct lanes *l, v sample)
{
	static const int32_t output[8] = {0, 1200, 2584, 4240, 6288, 8968, 12896, 20456};
	static const int32_t change[8] = {-60, -30, 58, 172, 334, 538, 1198, 3042};
	v past = limit16(sub(sra(sample, 1), l->predicted));
	v sign = sra(past, 31), magnitude = bit_xor(past, sign);
	v fourth = fourths(l->step, magnitude), step = l->step;

	adapt_step(l, table8(change, fourth));
	predict(l, times(sub(bit_xor(table8(output, fourth), sign), sign), step));
	return low_code(step, magnitude, below_zero(past), fourth);
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
	/* By code / 4, which falls from the second entry below zero and from the first above. */
	static const int32_t fourth[8] = {20456, 12896, 8968, 6288, 4240, 2584, 1200, 0};
	static const int32_t change[8] = {3042, 1198, 538, 334, 172, 58, -30, -60};
	v sign = sra(sub(code, all(32)), 31), step = l->step;
	v at = bit_and(add(srl(code, 2), sign), all(7));
	/* The upper halves may be anything: step is a half. */
	v level = table64(output, code);
	v pcm = limit(add(l->predicted, times(level, step)), -16384, 16383);

	adapt_step(l, table8(change, at));
	predict(l, times(sub(bit_xor(table8(fourth, at), sign), sign), step));
	return add(pcm, pcm);
}

/* --- States and samples ----------------------------------------------------------------------- */

/* Transposes the states, in either direction. */
struct rows {
	_Alignas(64) int32_t row[10 + 2 * ZEROS][LANES];
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
	}
	ends_init(&l->ends, lane, lanes);
	l->predicted = load_row(r.row[0]);
	l->zeros = load_row(r.row[1]);
	l->log_step = load_row(r.row[2]);
	l->step = load_row(r.row[3]);
	for (int k = 0; k < 2; k++) {
		l->rebuilt[k] = load_row(r.row[4 + k]);
		l->twice[k] = half(limit16(sll(l->rebuilt[k], 1)));
		l->partial[k] = load_row(r.row[6 + k]);
		l->pole[k] = load_row(r.row[8 + k]);
	}
	for (int k = 0; k < ZEROS; k++) {
		l->zero[k] = load_row(r.row[10 + k]);
		l->past[k] = half(sll(load_row(r.row[10 + ZEROS + k]), 1));
	}
}

LANES_CODE static void store(const struct lanes *l, const struct g722_lane *lane, uint32_t lanes)
{
	struct rows r;

	store_row(r.row[0], l->predicted);
	store_row(r.row[1], l->zeros);
	store_row(r.row[2], l->log_step);
	store_row(r.row[3], l->step);
	for (int k = 0; k < 2; k++) {
		store_row(r.row[4 + k], l->rebuilt[k]);
		store_row(r.row[6 + k], l->partial[k]);
		store_row(r.row[8 + k], l->pole[k]);
	}
	for (int k = 0; k < ZEROS; k++) {
		store_row(r.row[10 + k], l->zero[k]);
		store_row(r.row[10 + ZEROS + k], sra(sll(l->past[k], 16), 17));
	}
	for (uint32_t i = 0; i < lanes; i++)
		write_band(&r, i, &lane[i].g->low);
}

LANES_INLINE v first_of(v two)
{
	return sra(sll(two, 16), 16);
}

LANES_INLINE v second_of(v two)
{
	return sra(two, 16);
}

LANES_CODE static void encode(const struct g722_lane *lane, uint32_t lanes, size_t n)
{
	/* The upper band is silent (g722_encode_low()). */
	const v silence = all((int32_t)0xc0c0c0c0);
	_Alignas(64) int32_t used[LANES] = {0};
	struct lanes l;
	v keep;

	for (uint32_t i = 0; i < lanes; i++)
		used[i] = (int32_t)((0xffu << lane[i].g->spare & 0xff) * 0x01010101u);
	keep = load_row(used);
	load(&l, lane, lanes);
	for (size_t i = 0; i < n; i += 4) {
		v early = next(&l.ends), late = next(&l.ends), code;

		code = encode_step(&l, first_of(early));
		code = bit_or(code, sll(encode_step(&l, second_of(early)), 8));
		code = bit_or(code, sll(encode_step(&l, first_of(late)), 16));
		code = bit_or(code, sll(encode_step(&l, second_of(late)), 24));
		put(&l.ends, bit_and(bit_or(code, silence), keep));
	}
	store(&l, lane, lanes);
}

LANES_INLINE v two_samples(struct lanes *l, v codes)
{
	const v six = all(0x3f);
	v first = decode_step(l, bit_and(codes, six));
	v second = decode_step(l, bit_and(srl(codes, 8), six));

	return bit_or(half(first), sll(second, 16));
}

LANES_CODE static void decode(const struct g722_lane *lane, uint32_t lanes, size_t n)
{
	struct lanes l;

	load(&l, lane, lanes);
	for (size_t i = 0; i < n; i += 4) {
		v codes = next(&l.ends);

		put(&l.ends, two_samples(&l, codes));
		put(&l.ends, two_samples(&l, srl(codes, 16)));
	}
	store(&l, lane, lanes);
}

#endif
