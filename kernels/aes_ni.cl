/* SPDX-License-Identifier: GPL-2.0-or-later */
/* AES counter mode (RFC 3711 4.1.1) with the processor's AES instructions. Decrypts and encrypts in
 * one pass: out = in XOR keystream(rx) XOR keystream(tx), five blocks under both keys at a time.
 * Loads round keys at each use, because copying them first would take longer than the encryption
 * (NOTES.md). Selected by feature macro or by the host (lanes.cl), never by vendor. */
#ifdef XC_AES_FUNCTION
#define XC_HAVE_AES 1

typedef long xc_block __attribute__((__vector_size__(16)));

/* One direction: its key, its first counter block, rounds 0 = no cipher. */
struct xc_cm {
	const __global struct xc_key *key;
	ulong2 iv;
	uint rounds;
};

XC_INLINE xc_block xc_rk(const __global struct xc_key *k, uint r)
{
	return ((const __global xc_block *)k->rk)[r];
}

/* One block under one key. */
XC_AES_FUNCTION ulong2 xc_aes_block(xc_in rk, uint rounds, ulong2 in)
{
	const __global xc_block *k = (const __global xc_block *)rk;
	xc_block x = __builtin_astype(in, xc_block) ^ k[0];

	for (uint r = 1; r < rounds; r++)
		x = __builtin_ia32_aesenc128(x, k[r]);
	return __builtin_astype(__builtin_ia32_aesenclast128(x, k[rounds]), ulong2);
}

/* Blocks under as many keys of ten rounds, all in flight. */
#define XC_AES_MANY 8
XC_AES_FUNCTION void xc_f8_blocks(ulong2 *x, const xc_in *rk)
{
	xc_block b[XC_AES_MANY];

#pragma unroll
	for (int i = 0; i < XC_AES_MANY; i++)
		b[i] = __builtin_astype(x[i], xc_block) ^ ((const __global xc_block *)rk[i])[0];
#pragma unroll
	for (int r = 1; r < 10; r++) {
#pragma unroll
		for (int i = 0; i < XC_AES_MANY; i++)
			b[i] = __builtin_ia32_aesenc128(b[i], ((const __global xc_block *)rk[i])[r]);
	}
#pragma unroll
	for (int i = 0; i < XC_AES_MANY; i++)
		x[i] = __builtin_astype(__builtin_ia32_aesenclast128(
						b[i], ((const __global xc_block *)rk[i])[10]),
			ulong2);
}

/* RFC 3711 4.1.1: the counter is the last two bytes, big-endian (RFC 7714: four, from 2 on). A
 * packet has fewer than 250 blocks (the host refuses longer ones), and the salt is zero there. So
 * adding to the last byte suffices. */
#define XC_COUNT(j) ((long)((ulong)(j) << 56))

XC_INLINE xc_block xc_counter(ulong2 iv, uint j)
{
	return __builtin_astype(iv, xc_block) + (xc_block){0, XC_COUNT(j)};
}

#define XC_ENC5(x, k)                                 \
	x##0 = __builtin_ia32_aesenc128(x##0, k);     \
	x##1 = __builtin_ia32_aesenc128(x##1, k);     \
	x##2 = __builtin_ia32_aesenc128(x##2, k);     \
	x##3 = __builtin_ia32_aesenc128(x##3, k);     \
	x##4 = __builtin_ia32_aesenc128(x##4, k);
#define XC_LAST5(x, k)                                    \
	x##0 = __builtin_ia32_aesenclast128(x##0, k);     \
	x##1 = __builtin_ia32_aesenclast128(x##1, k);     \
	x##2 = __builtin_ia32_aesenclast128(x##2, k);     \
	x##3 = __builtin_ia32_aesenclast128(x##3, k);     \
	x##4 = __builtin_ia32_aesenclast128(x##4, k);
#define XC_FIRST5(x, iv, j, k)                            \
	x##0 = xc_counter(iv, j);                         \
	x##1 = (x##0 + (xc_block){0, XC_COUNT(1)}) ^ (k); \
	x##2 = (x##0 + (xc_block){0, XC_COUNT(2)}) ^ (k); \
	x##3 = (x##0 + (xc_block){0, XC_COUNT(3)}) ^ (k); \
	x##4 = (x##0 + (xc_block){0, XC_COUNT(4)}) ^ (k); \
	x##0 ^= (k);
#define XC_BOTH(r)                            \
	{                                     \
		xc_block kx = xc_rk(rx.key, r); \
		xc_block ky = xc_rk(tx.key, r); \
		XC_ENC5(x, kx)                \
		XC_ENC5(y, ky)                \
	}
#define XC_OUT(i)                                                         \
	XC_STORE(16, dst + 16 * (i),                                      \
		XC_LOAD(16, src + 16 * (i)) ^ (ulong2)((ulong)x##i[0], (ulong)x##i[1]));

#ifdef XC_HAVE_VAES
typedef long xc_quad __attribute__((__vector_size__(64))); /* four blocks */
typedef long xc_pair __attribute__((__vector_size__(32)));

#define XC_FOUR_TIMES(b) __builtin_shufflevector(b, b, 0, 1, 0, 1, 0, 1, 0, 1)

#define XC_QFIRST(i, kx, ky)                              \
	x##i = rx_ctr ^ (kx);                             \
	y##i = tx_ctr ^ (ky);                             \
	rx_ctr += four;                                   \
	tx_ctr += four;
#define XC_QROUND(i, kx, ky)                              \
	x##i = __builtin_ia32_aesenc512(x##i, kx);        \
	y##i = __builtin_ia32_aesenc512(y##i, ky);
#define XC_QLAST(i, kx, ky)                               \
	x##i = __builtin_ia32_aesenclast512(x##i, kx) ^   \
		__builtin_ia32_aesenclast512(y##i, ky);
#define XC_QOUT(i)                                        \
	XC_STORE(64, dst + 64 * (i), XC_LOAD(64, src + 64 * (i)) ^ __builtin_astype(x##i, uint16));
/* The same with a law between the two keystreams. */
#define XC_QLAW(i, kx, ky)                                \
	x##i = __builtin_ia32_aesenclast512(x##i, kx);    \
	y##i = __builtin_ia32_aesenclast512(y##i, ky);
#define XC_QLAW_OUT(i)                                                                            \
	XC_STORE(64, dst + 64 * (i),                                                              \
		xc_law64(XC_LOAD(64, src + 64 * (i)) ^ __builtin_astype(x##i, uint16), low, high) ^ \
			__builtin_astype(y##i, uint16));
/* Half of a quad, for a packet that ends in its first half. */
#define XC_LOW(x) __builtin_shufflevector(x, x, 0, 1, 2, 3)
#define XC_QFIRST_HALF(kx, ky)        \
	u = XC_LOW(rx_ctr ^ (kx));    \
	v = XC_LOW(tx_ctr ^ (ky));
#define XC_QROUND_HALF(kx, ky)                        \
	u = __builtin_ia32_aesenc256(u, XC_LOW(kx));  \
	v = __builtin_ia32_aesenc256(v, XC_LOW(ky));
#define XC_QLAST_HALF(kx, ky)                                 \
	u = __builtin_ia32_aesenclast256(u, XC_LOW(kx)) ^     \
		__builtin_ia32_aesenclast256(v, XC_LOW(ky));
#define XC_QOUT_HALF(i)                                                                  \
	XC_STORE(32, dst + 64 * (i), XC_LOAD(32, src + 64 * (i)) ^ __builtin_astype(u, uint8));
#define XC_QLAW_HALF(kx, ky)                                  \
	u = __builtin_ia32_aesenclast256(u, XC_LOW(kx));      \
	v = __builtin_ia32_aesenclast256(v, XC_LOW(ky));
/* Half of the 64 bytes is not used. */
#define XC_QLAW_OUT_HALF(i)                                                                  \
	{                                                                                    \
		uint8 w = XC_LOAD(32, src + 64 * (i)) ^ __builtin_astype(u, uint8);          \
                                                                                             \
		XC_STORE(32, dst + 64 * (i),                                                 \
			xc_law64((uint16)(w, w), low, high).lo ^ __builtin_astype(v, uint8)); \
	}
#define XC_HALF(m, ...)     m##_HALF(__VA_ARGS__)
#define XC_TWO_HALF(m, ...) m(0, __VA_ARGS__) m(1, __VA_ARGS__) m##_HALF(__VA_ARGS__)
#define XC_ONE(m, ...)   m(0, __VA_ARGS__)
#define XC_TWO(m, ...)   m(0, __VA_ARGS__) m(1, __VA_ARGS__)
#define XC_THREE(m, ...) m(0, __VA_ARGS__) m(1, __VA_ARGS__) m(2, __VA_ARGS__)
#define XC_QSTEP(many, m, r)                                              \
	{                                                                 \
		xc_block k1 = ((const __global xc_block *)rx_rk)[r];      \
		xc_block k2 = ((const __global xc_block *)tx_rk)[r];      \
		xc_quad kx = XC_FOUR_TIMES(k1), ky = XC_FOUR_TIMES(k2);   \
		many(m, kx, ky)                                           \
	}
#define XC_QUADS(many, last)                                                      \
	XC_QSTEP(many, XC_QFIRST, 0)                                              \
	XC_QSTEP(many, XC_QROUND, 1)                                              \
	XC_QSTEP(many, XC_QROUND, 2)                                              \
	XC_QSTEP(many, XC_QROUND, 3)                                              \
	XC_QSTEP(many, XC_QROUND, 4)                                              \
	XC_QSTEP(many, XC_QROUND, 5)                                              \
	XC_QSTEP(many, XC_QROUND, 6)                                              \
	XC_QSTEP(many, XC_QROUND, 7)                                              \
	XC_QSTEP(many, XC_QROUND, 8)                                              \
	XC_QSTEP(many, XC_QROUND, 9)                                              \
	XC_QSTEP(many, last, 10)

/* Both keys with ten rounds: the common case, unrolled. Up to twelve blocks under both keys in
 * flight. 20 ms of G.711 are ten blocks. */
#define XC_BOTH10(last, out)                                                                           \
	const xc_quad first = {0, 0, 0, XC_COUNT(1), 0, XC_COUNT(2), 0, XC_COUNT(3)};                  \
	const xc_quad four = {0, XC_COUNT(4), 0, XC_COUNT(4), 0, XC_COUNT(4), 0, XC_COUNT(4)};         \
	xc_block rx_b = __builtin_astype(rx_iv, xc_block), tx_b = __builtin_astype(tx_iv, xc_block);   \
	xc_quad rx_ctr = XC_FOUR_TIMES(rx_b) + first, tx_ctr = XC_FOUR_TIMES(tx_b) + first;            \
	xc_quad x0, x1, x2, y0, y1, y2;                                                                \
	xc_pair u, v;                                                                                  \
                                                                                                       \
	for (; len > 160; src += 192, dst += 192) {                                                    \
		XC_QUADS(XC_THREE, last)                                                               \
		out(0) out(1) out(2)                                                                   \
		if (len <= 192)                                                                        \
			return;                                                                        \
		len -= 192;                                                                            \
	}                                                                                              \
	if (len > 128) {                                                                               \
		XC_QUADS(XC_TWO_HALF, last)                                                            \
		out(0) out(1) out##_HALF(2)                                                            \
	} else if (len > 64) {                                                                         \
		XC_QUADS(XC_TWO, last)                                                                 \
		out(0) out(1)                                                                          \
	} else if (len > 32) {                                                                         \
		XC_QUADS(XC_ONE, last)                                                                 \
		out(0)                                                                                 \
	} else if (len) {                                                                              \
		XC_QUADS(XC_HALF, last)                                                                \
		out##_HALF(0)                                                                          \
	}

/* Functions of their own with everything inline, because their callers are not compiled for VAES. */
__attribute__((noinline, target("vaes"))) static void xc_cm_both10_vaes(xc_out dst, xc_in src,
	uint len, xc_in rx_rk, xc_in tx_rk, ulong2 rx_iv, ulong2 tx_iv)
{
	XC_BOTH10(XC_QLAST, XC_QOUT)
}

__attribute__((noinline, target("vaes,avx512vbmi"))) static void xc_law10_vaes(xc_out dst, xc_in src,
	uint len, xc_in rx_rk, xc_in tx_rk, ulong2 rx_iv, ulong2 tx_iv, uint law)
{
	const uint16 low = xc_law_table[law - 1][0], high = xc_law_table[law - 1][1];

	XC_BOTH10(XC_QLAW, XC_QLAW_OUT)
}

#define XC_LAW_IN_BOTH10(law) 1
XC_INLINE void xc_cm_both10(
	xc_out dst, xc_in src, uint len, struct xc_cm rx, struct xc_cm tx, uint law)
{
	if (law)
		xc_law10_vaes(dst, src, len, rx.key->rk, tx.key->rk, rx.iv, tx.iv, law);
	else
		xc_cm_both10_vaes(dst, src, len, rx.key->rk, tx.key->rk, rx.iv, tx.iv);
}
#else
#define XC_LAW_IN_BOTH10(law) ((law) == XC_LAW_KEEP)
/* Both keys with ten rounds: the common case, unrolled. */
XC_AES_FUNCTION void xc_cm_both10(
	xc_out dst, xc_in src, uint len, struct xc_cm rx, struct xc_cm tx, uint law)
{
	(void)law;
	for (uint j = 0; 16 * j < len; j += 5, src += 80, dst += 80) {
		xc_block x0, x1, x2, x3, x4, y0, y1, y2, y3, y4;

		XC_FIRST5(x, rx.iv, j, xc_rk(rx.key, 0))
		XC_FIRST5(y, tx.iv, j, xc_rk(tx.key, 0))
		XC_BOTH(1) XC_BOTH(2) XC_BOTH(3) XC_BOTH(4) XC_BOTH(5)
		XC_BOTH(6) XC_BOTH(7) XC_BOTH(8) XC_BOTH(9)
		XC_LAST5(x, xc_rk(rx.key, 10))
		XC_LAST5(y, xc_rk(tx.key, 10))
		x0 ^= y0, x1 ^= y1, x2 ^= y2, x3 ^= y3, x4 ^= y4;
		XC_OUT(0) XC_OUT(1) XC_OUT(2) XC_OUT(3) XC_OUT(4)
	}
}
#endif

/* Any number of rounds on either side, one side after the other. */
XC_AES_FUNCTION void xc_cm_any(xc_out dst, xc_in src, uint len, struct xc_cm rx, struct xc_cm tx)
{
	for (uint j = 0; 16 * j < len; j += 5, src += 80, dst += 80) {
		xc_block x0 = {0, 0}, x1 = x0, x2 = x0, x3 = x0, x4 = x0;

		if (rx.rounds) {
			XC_FIRST5(x, rx.iv, j, xc_rk(rx.key, 0))
			for (uint r = 1; r < rx.rounds; r++) {
				XC_ENC5(x, xc_rk(rx.key, r))
			}
			XC_LAST5(x, xc_rk(rx.key, rx.rounds))
		}
		if (tx.rounds) {
			xc_block y0, y1, y2, y3, y4;

			XC_FIRST5(y, tx.iv, j, xc_rk(tx.key, 0))
			for (uint r = 1; r < tx.rounds; r++) {
				XC_ENC5(y, xc_rk(tx.key, r))
			}
			XC_LAST5(y, xc_rk(tx.key, tx.rounds))
			x0 ^= y0, x1 ^= y1, x2 ^= y2, x3 ^= y3, x4 ^= y4;
		}
		XC_OUT(0) XC_OUT(1) XC_OUT(2) XC_OUT(3) XC_OUT(4)
	}
}

/* Converts between the two keystreams. A side without a cipher costs nothing. */
static __attribute__((noinline)) void xc_cm_convert(
	xc_out dst, xc_in src, uint len, struct xc_cm rx, struct xc_cm tx, uint law)
{
	struct xc_cm none = {.key = tx.key};

	if (rx.rounds)
		xc_cm_any(dst, src, len, rx, none);
	xc_law_bytes(dst, rx.rounds ? (xc_in)dst : src, len, law);
	if (tx.rounds)
		xc_cm_any(dst, dst, len, none, tx);
}

/* Re-encrypts len bytes, and converts them (XC_LAW_*). Reads and writes up to 79 bytes more
 * (XC_SLACK). */
XC_INLINE void xc_cm_recrypt(
	xc_out dst, xc_in src, uint len, struct xc_cm rx, struct xc_cm tx, uint law)
{
	if (rx.rounds == 10 && tx.rounds == 10 && XC_LAW_IN_BOTH10(law))
		xc_cm_both10(dst, src, len, rx, tx, law);
	else if (law)
		xc_cm_convert(dst, src, len, rx, tx, law);
	else
		xc_cm_any(dst, src, len, rx, tx);
}
#endif
