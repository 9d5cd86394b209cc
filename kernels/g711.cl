/* SPDX-License-Identifier: GPL-2.0-or-later */
/* G.711: converts decrypted bytes of one law into the other, between the two keystreams. No look-up
 * depends on a byte of media, and no branch: with AVX512-VBMI a table in registers, elsewhere sums
 * of steps. srtp/g711.c has the standard's tables.
 *
 * The tables are nearly straight: a value's magnitude i becomes i plus or minus five ramps. A ramp
 * starts after "from", and rises up to "most" in steps of 1 or 1/2. */
struct xc_law {
	uchar in, out;  /* bits that the law inverts: of the received byte, of the sent one */
	uchar from[4], most[5];
	uchar all[3];   /* 0: the ramp rises by halves */
	uchar down;     /* 0xff: the ramps are subtracted */
	uchar one;
};

/* By XC_LAW_*, less 1. The first ramp starts at 0, and has the opposite sign. */
__constant struct xc_law xc_laws[2] = {
	{0x7f, 0x55, {32, 47, 63, 80}, {16, 4, 2, 1, 1}, {0, 0xff, 0xff}, 0, 0},
	{0x55, 0x7f, {24, 44, 62, 79}, {7, 8, 4, 1, 1}, {0xff, 0, 0}, 0xff, 1},
};

#define XC_MOST(x, c)  ((x) < (c) ? (x) : (c))
#define XC_PAST(x, c)  ((x) > (c) ? (x) - (c) : (uchar16)(uchar)0)
/* Each byte of x halved, rounded up; unchanged where all is 0xff. */
#define XC_HALF_OF(x, all) (((x) | ((x) & (all))) - (((x) ^ ((x) & (all))) >> (uchar16)(uchar)1))

XC_INLINE uchar16 xc_ramp(uchar16 i, uint from, uint most)
{
	uchar16 f = (uchar16)(uchar)from, m = (uchar16)(uchar)most;
	uchar16 past = XC_PAST(i, f);

	return XC_MOST(past, m);
}

/* law: XC_LAW_KEEP returns the bytes unchanged. */
XC_INLINE ulong2 xc_law16(ulong2 block, uint law)
{
	__constant struct xc_law *t = &xc_laws[(law - 1) & 1];
	uchar16 x = as_uchar16(block), i, a, b, c, sum, down;

	if (law == XC_LAW_KEEP)
		return block;
	i = (x ^ (uchar16)t->in) & (uchar16)(uchar)0x7f;
	a = xc_ramp(i, 0, t->most[0]);
	b = xc_ramp(i, t->from[0], t->most[1]);
	c = xc_ramp(i, t->from[1], t->most[2]);
	sum = XC_HALF_OF(b, (uchar16)t->all[1]) + XC_HALF_OF(c, (uchar16)t->all[2]) +
		xc_ramp(i, t->from[2], t->most[3]) + xc_ramp(i, t->from[3], t->most[4]) -
		XC_HALF_OF(a, (uchar16)t->all[0]);
	down = (uchar16)t->down;
	i += (sum ^ down) - down + (uchar16)t->one;
	return as_ulong2((i ^ (uchar16)t->out) | (x & (uchar16)(uchar)0x80));
}

#ifdef XC_HAVE_VAES
typedef char xc_law_bytes64 __attribute__((__vector_size__(64)));

/* By XC_LAW_*, less 1: the sent byte's low bits by the received byte's, two halves. */
__constant uint16 xc_law_table[2][2] = {
	{(uint16)(0x29282b2a, 0x2d2c2f2e, 0x21202322, 0x25242726, 0x39383b3a, 0x3d3c3f3e,
			0x31303332, 0x35343736, 0x09080b0a, 0x0d0c0f0e, 0x01000302, 0x1a040706,
			0x1e19181b, 0x121d1c1f, 0x16111013, 0x6a151417),
		(uint16)(0x6f6e6968, 0x63626d6c, 0x67666160, 0x787a6564, 0x7d7c7f7e, 0x71707372,
			0x75747776, 0x4d4f494b, 0x41404342, 0x45444746, 0x59585b5a, 0x5d5c5f5e,
			0x53535252, 0x51515050, 0x57575656, 0x55555454)},
	{(uint16)(0x29282b2a, 0x2d2c2f2e, 0x21202322, 0x25242726, 0x38373a39, 0x3c3b3e3d,
			0x302f3231, 0x34333635, 0x09080b0a, 0x0d0c0f0e, 0x01000302, 0x05040706,
			0x19181b1a, 0x1d1c1f1e, 0x11101312, 0x15141716),
		(uint16)(0x61606362, 0x65646766, 0x5c5c5d5d, 0x5e5e5f5f, 0x72707674, 0x7a787e7c,
			0x69686b6a, 0x6d6c6f6e, 0x47464948, 0x4b4a4d4c, 0x3f3f4140, 0x43424544,
			0x55545756, 0x59585b5a, 0x4e4e4f4f, 0x51505352)}
};

#define XC_LAW_LOW  ((uint16)(0x7f7f7f7fu))

/* The instruction takes seven bits of an index, and so ignores the sign. */
__attribute__((always_inline, target("vaes,avx512vbmi"))) static inline uint16 xc_law64(
	uint16 x, uint16 low, uint16 high)
{
	xc_law_bytes64 r = __builtin_ia32_vpermi2varqi512(__builtin_astype(low, xc_law_bytes64),
		__builtin_astype(x, xc_law_bytes64), __builtin_astype(high, xc_law_bytes64));

	return (__builtin_astype(r, uint16) & XC_LAW_LOW) | (x & ~XC_LAW_LOW);
}

/* dst may be src. Reads and writes up to 63 bytes more. */
__attribute__((noinline, target("vaes,avx512vbmi"))) static void xc_law_bytes(
	xc_out dst, xc_in src, uint len, uint law)
{
	const uint16 low = xc_law_table[law - 1][0], high = xc_law_table[law - 1][1];

	for (uint i = 0; i < len; i += 64)
		XC_STORE(64, dst + i, xc_law64(XC_LOAD(64, src + i), low, high));
}
#else
static __attribute__((noinline)) void xc_law_bytes(xc_out dst, xc_in src, uint len, uint law)
{
	for (uint i = 0; i < len; i += 16)
		XC_STORE(16, dst + i, xc_law16(XC_LOAD(16, src + i), law));
}
#endif
