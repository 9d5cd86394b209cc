/* SPDX-License-Identifier: GPL-2.0-or-later */
/* GHASH (NIST SP 800-38D 6.4) by carry-less multiplication. Numbers are a block's bytes in reverse,
 * so that the processor's bit order matches the polynomial's. The key holds powers of H already
 * doubled, which saves the shift by one of a reflected product. Up to eight products are added
 * before one reduction. */
#if !defined(XC_PORTABLE_AES) && defined(__PCLMUL__) && XC_HAS(__builtin_ia32_pclmulqdq128) && \
	XC_HAS(__builtin_shufflevector)
#define XC_HAVE_GHASH 1

typedef long xc_poly __attribute__((__vector_size__(16)));
typedef char xc_poly_bytes __attribute__((__vector_size__(16)));

struct xc_ghash {
	xc_poly y, low, middle, high;
	const __global xc_poly *power; /* [i] is H to the power of i */
	uint left;                     /* blocks until the next reduction */
};

XC_INLINE xc_poly xc_reversed(xc_poly x)
{
	xc_poly_bytes b = __builtin_astype(x, xc_poly_bytes);

	return __builtin_astype(__builtin_shufflevector(b, b, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3,
					2, 1, 0),
		xc_poly);
}

/* blocks: number of blocks to push, at least one. */
XC_INLINE void xc_ghash_begin(struct xc_ghash *g, const __global struct xc_key *k, uint blocks)
{
	const xc_poly zero = {0, 0};

	g->y = g->low = g->middle = g->high = zero;
	g->power = (const __global xc_poly *)k->aux;
	g->left = (blocks - 1) % XC_GHASH_POWERS + 1;
}

/* Reduces a product of 255 bits modulo x^128 + x^7 + x^2 + x + 1, reflected: folds its upper part
 * twice. */
XC_INLINE void xc_ghash_reduce(struct xc_ghash *g)
{
	const xc_poly zero = {0, 0}, fold = {0, (long)0xc200000000000000ul};
	xc_poly low = g->low ^ __builtin_shufflevector(zero, g->middle, 0, 2);
	xc_poly high = g->high ^ __builtin_shufflevector(g->middle, zero, 1, 2);

	low = __builtin_shufflevector(low, low, 1, 0) ^ __builtin_ia32_pclmulqdq128(low, fold, 0x10);
	low = __builtin_shufflevector(low, low, 1, 0) ^ __builtin_ia32_pclmulqdq128(low, fold, 0x10);
	g->y = low ^ high;
	g->low = g->middle = g->high = zero;
	g->left = XC_GHASH_POWERS;
}

XC_INLINE void xc_ghash_push(struct xc_ghash *g, ulong2 block)
{
	const xc_poly zero = {0, 0};
	xc_poly x = xc_reversed(__builtin_astype(block, xc_poly)) ^ g->y, h = g->power[g->left];

	g->y = zero;
	g->low ^= __builtin_ia32_pclmulqdq128(x, h, 0x00);
	g->high ^= __builtin_ia32_pclmulqdq128(x, h, 0x11);
	g->middle ^= __builtin_ia32_pclmulqdq128(x, h, 0x01) ^ __builtin_ia32_pclmulqdq128(x, h, 0x10);
	if (--g->left == 0)
		xc_ghash_reduce(g);
}

/* Call after the announced number of blocks. */
XC_INLINE ulong2 xc_ghash_end(const struct xc_ghash *g)
{
	return __builtin_astype(xc_reversed(g->y), ulong2);
}
#endif
