/* SPDX-License-Identifier: GPL-2.0-or-later */
/* GHASH (NIST SP 800-38D 6.4) on any OpenCL device: carry-less multiplication by ordinary
 * multiplication. Only every fourth bit of a number is used, which leaves room for the carries of
 * up to 16 additions; the other bits are masked away. No tables, no branches on data. The upper
 * half of a product is computed as the lower half for bit-reversed numbers. */
#ifndef XC_HAVE_GHASH
#define XC_HAVE_GHASH 1

struct xc_ghash {
	ulong y0, y1; /* the block as a number, big-endian: lower and upper half */
	ulong h0, h1, r0, r1; /* H, and H with its bits reversed */
};

XC_INLINE ulong xc_bits_reversed(ulong x)
{
	x = (x & 0x5555555555555555ul) << 1 | (x >> 1 & 0x5555555555555555ul);
	x = (x & 0x3333333333333333ul) << 2 | (x >> 2 & 0x3333333333333333ul);
	x = (x & 0x0f0f0f0f0f0f0f0ful) << 4 | (x >> 4 & 0x0f0f0f0f0f0f0f0ful);
	return xc_swap8(x);
}

/* The lower 64 bits of the carry-less product. */
XC_INLINE ulong xc_product(ulong x, ulong y)
{
	const ulong m0 = 0x1111111111111111ul, m1 = m0 << 1, m2 = m0 << 2, m3 = m0 << 3;
	ulong x0 = x & m0, x1 = x & m1, x2 = x & m2, x3 = x & m3;
	ulong y0 = y & m0, y1 = y & m1, y2 = y & m2, y3 = y & m3;

	return (((x0 * y0) ^ (x1 * y3) ^ (x2 * y2) ^ (x3 * y1)) & m0) |
		(((x0 * y1) ^ (x1 * y0) ^ (x2 * y3) ^ (x3 * y2)) & m1) |
		(((x0 * y2) ^ (x1 * y1) ^ (x2 * y0) ^ (x3 * y3)) & m2) |
		(((x0 * y3) ^ (x1 * y2) ^ (x2 * y1) ^ (x3 * y0)) & m3);
}

XC_INLINE void xc_ghash_begin(struct xc_ghash *g, const __global struct xc_key *k, uint blocks)
{
	ulong2 h = XC_LOAD(16, k->aux);

	(void)blocks;
	g->y0 = g->y1 = 0;
	g->h1 = xc_swap8(h.x);
	g->h0 = xc_swap8(h.y);
	g->r1 = xc_bits_reversed(g->h1);
	g->r0 = xc_bits_reversed(g->h0);
}

/* y = (y + block) * H in the reflected field: Karatsuba's three products, each in two halves, then
 * the reduction by x^128 + x^7 + x^2 + x + 1 with reversed shifts. */
XC_INLINE void xc_ghash_push(struct xc_ghash *g, ulong2 block)
{
	ulong a1 = g->y1 ^ xc_swap8(block.x), a0 = g->y0 ^ xc_swap8(block.y);
	ulong b1 = xc_bits_reversed(a1), b0 = xc_bits_reversed(a0);
	ulong low0 = xc_product(a0, g->h0), high0 = xc_bits_reversed(xc_product(b0, g->r0)) >> 1;
	ulong low1 = xc_product(a1, g->h1), high1 = xc_bits_reversed(xc_product(b1, g->r1)) >> 1;
	ulong low2 = xc_product(a0 ^ a1, g->h0 ^ g->h1) ^ low0 ^ low1;
	ulong high2 = (xc_bits_reversed(xc_product(b0 ^ b1, g->r0 ^ g->r1)) >> 1) ^ high0 ^ high1;
	ulong v0 = low0, v1 = high0 ^ low2, v2 = low1 ^ high2, v3 = high1;

	v3 = v3 << 1 | v2 >> 63;
	v2 = v2 << 1 | v1 >> 63;
	v1 = v1 << 1 | v0 >> 63;
	v0 = v0 << 1;
	v2 ^= v0 ^ v0 >> 1 ^ v0 >> 2 ^ v0 >> 7;
	v1 ^= v0 << 63 ^ v0 << 62 ^ v0 << 57;
	g->y1 = v3 ^ v1 ^ v1 >> 1 ^ v1 >> 2 ^ v1 >> 7;
	g->y0 = v2 ^ v1 << 63 ^ v1 << 62 ^ v1 << 57;
}

XC_INLINE ulong2 xc_ghash_end(const struct xc_ghash *g)
{
	return (ulong2)(xc_swap8(g->y1), xc_swap8(g->y0));
}
#endif
