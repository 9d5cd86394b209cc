/* SPDX-License-Identifier: GPL-2.0-or-later */
/* AES counter mode (RFC 3711 4.1.1) on any OpenCL device: bitsliced, without table look-ups or branches that depend on
 * keys or data. A plane holds one bit of every byte of several blocks, 16 bits per block: bit 4c + r is row r of
 * column c (FIPS-197 3.4). The S-box is the circuit of Boyar and Peralta, "A depth-16 circuit for the AES S-box" (2011). */
#ifndef XC_HAVE_AES
#define XC_HAVE_AES 1

struct xc_cm {
	const __global struct xc_key *key;
	ulong2 iv; /* the counter block with counter 0 */
	uint rounds; /* 0: no cipher */
};

/* Blocks that are ciphered together: 16 for wide lanes, 2 for scalar ones. */
#if XC_LANES == 1
#define XC_BLOCKS 2
typedef uint xc_plane;
#define XC_P(x) ((uint)(x) * 0x10001u)
#else
#define XC_BLOCKS 16
typedef ushort16 xc_plane;
#define XC_P(x) ((ushort16)(ushort)(x))
#endif
union xc_planes {
	xc_plane v[8];
	ushort block[8][XC_BLOCKS];
};

/* Turns the 8x8 bit matrix of 8 bytes over: byte b gets bit b of each byte. Its own inverse. */
XC_INLINE ulong xc_turn8(ulong x)
{
	ulong t = (x ^ (x >> 7)) & 0x00aa00aa00aa00aaul;

	x ^= t ^ (t << 7);
	t = (x ^ (x >> 14)) & 0x0000cccc0000ccccul;
	x ^= t ^ (t << 14);
	t = (x ^ (x >> 28)) & 0x00000000f0f0f0f0ul;
	return x ^ t ^ (t << 28);
}

/* The bit that plane b has of the block. */
#define XC_PLANE_OF(lo, hi, b) \
	((ushort)(((lo) >> (8 * (b)) & 0xff) | ((hi) >> (8 * (b)) & 0xff) << 8))

XC_INLINE void xc_slice(union xc_planes *q, int n, ulong2 block)
{
	ulong lo = xc_turn8(block.x), hi = xc_turn8(block.y);

#pragma unroll
	for (int b = 0; b < 8; b++)
		q->block[b][n] = XC_PLANE_OF(lo, hi, b);
}

XC_INLINE ulong2 xc_unslice(const union xc_planes *q, int n)
{
	ulong lo = 0, hi = 0;

#pragma unroll
	for (int b = 0; b < 8; b++) {
		lo |= (ulong)(q->block[b][n] & 0xff) << (8 * b);
		hi |= (ulong)(q->block[b][n] >> 8) << (8 * b);
	}
	return (ulong2)(xc_turn8(lo), xc_turn8(hi));
}

XC_INLINE void xc_sub_bytes(xc_plane *q)
{
	xc_plane x0 = q[7], x1 = q[6], x2 = q[5], x3 = q[4], x4 = q[3], x5 = q[2], x6 = q[1], x7 = q[0];
	xc_plane y14 = x3 ^ x5, y13 = x0 ^ x6, y9 = x0 ^ x3, y8 = x0 ^ x5, t0 = x1 ^ x2;
	xc_plane y1 = t0 ^ x7, y4 = y1 ^ x3, y12 = y13 ^ y14, y2 = y1 ^ x0, y5 = y1 ^ x6;
	xc_plane y3 = y5 ^ y8, t1 = x4 ^ y12, y15 = t1 ^ x5, y20 = t1 ^ x1, y6 = y15 ^ x7;
	xc_plane y10 = y15 ^ t0, y11 = y20 ^ y9, y7 = x7 ^ y11, y17 = y10 ^ y11, y19 = y10 ^ y8;
	xc_plane y16 = t0 ^ y11, y21 = y13 ^ y16, y18 = x0 ^ y16;
	xc_plane t2 = y12 & y15, t4 = (y3 & y6) ^ t2, t6 = (y4 & x7) ^ t2, t7 = y13 & y16;
	xc_plane t9 = (y5 & y1) ^ t7, t11 = (y2 & y7) ^ t7, t12 = y9 & y11;
	xc_plane t14 = (y14 & y17) ^ t12, t16 = (y8 & y10) ^ t12;
	xc_plane t21 = t4 ^ t14 ^ y20, t22 = t6 ^ t16 ^ y19, t23 = t9 ^ t14 ^ y21, t24 = t11 ^ t16 ^ y18;
	xc_plane t25 = t21 ^ t22, t26 = t21 & t23, t27 = t24 ^ t26, t29 = (t25 & t27) ^ t22;
	xc_plane t30 = t23 ^ t24, t31 = t22 ^ t26, t33 = (t31 & t30) ^ t24, t34 = t23 ^ t33;
	xc_plane t35 = t27 ^ t33, t36 = t24 & t35, t37 = t36 ^ t34, t38 = t27 ^ t36;
	xc_plane t40 = t25 ^ (t29 & t38), t41 = t40 ^ t37, t42 = t29 ^ t33, t43 = t29 ^ t40;
	xc_plane t44 = t33 ^ t37, t45 = t42 ^ t41;
	xc_plane z0 = t44 & y15, z1 = t37 & y6, z2 = t33 & x7, z3 = t43 & y16, z4 = t40 & y1;
	xc_plane z5 = t29 & y7, z6 = t42 & y11, z7 = t45 & y17, z8 = t41 & y10, z9 = t44 & y12;
	xc_plane z10 = t37 & y3, z11 = t33 & y4, z12 = t43 & y13, z13 = t40 & y5, z14 = t29 & y2;
	xc_plane z15 = t42 & y9, z16 = t45 & y14, z17 = t41 & y8;
	xc_plane t46 = z15 ^ z16, t47 = z10 ^ z11, t48 = z5 ^ z13, t49 = z9 ^ z10, t50 = z2 ^ z12;
	xc_plane t51 = z2 ^ z5, t52 = z7 ^ z8, t53 = z0 ^ z3, t54 = z6 ^ z7, t55 = z16 ^ z17;
	xc_plane t56 = z12 ^ t48, t57 = t50 ^ t53, t58 = z4 ^ t46, t59 = z3 ^ t54, t60 = t46 ^ t57;
	xc_plane t61 = z14 ^ t57, t62 = t52 ^ t58, t63 = t49 ^ t58, t64 = z4 ^ t59, t65 = t61 ^ t62;
	xc_plane t66 = z1 ^ t63, t67 = t64 ^ t65, s3 = t53 ^ t66;

	q[7] = t59 ^ t63;
	q[6] = t64 ^ ~s3;
	q[5] = t55 ^ ~t67;
	q[4] = s3;
	q[3] = t51 ^ t66;
	q[2] = t47 ^ t65;
	q[1] = t56 ^ ~t62;
	q[0] = t48 ^ ~t60;
}

/* Row r moves r columns to the left: r * 4 bits down in its block's 16, around. */
XC_INLINE xc_plane xc_shift_rows(xc_plane x)
{
	return (x & XC_P(0x1111)) | (x >> 4 & XC_P(0x0222)) | (x << 12 & XC_P(0x2000)) |
		(x >> 8 & XC_P(0x0044)) | (x << 8 & XC_P(0x4400)) | (x >> 12 & XC_P(0x0008)) |
		(x << 4 & XC_P(0x8880));
}

/* The next row's bit, and the one after the next. */
#define XC_DOWN1(x) (((x) >> 1 & XC_P(0x7777)) | ((x) << 3 & XC_P(0x8888)))
#define XC_DOWN2(x) (((x) >> 2 & XC_P(0x3333)) | ((x) << 2 & XC_P(0xcccc)))

/* FIPS-197 5.1.3: 2a + 3b + c + d = 2(a + b) + b + (c + d); doubling moves planes up and folds the top one in. */
XC_INLINE void xc_mix_columns(xc_plane *q)
{
	xc_plane ab[8], rest[8];

#pragma unroll
	for (int b = 0; b < 8; b++) {
		xc_plane next = XC_DOWN1(q[b]);

		ab[b] = q[b] ^ next;
		rest[b] = next ^ XC_DOWN2(ab[b]);
	}
	q[0] = rest[0] ^ ab[7];
	q[1] = rest[1] ^ ab[0] ^ ab[7];
	q[2] = rest[2] ^ ab[1];
	q[3] = rest[3] ^ ab[2] ^ ab[7];
	q[4] = rest[4] ^ ab[3] ^ ab[7];
	q[5] = rest[5] ^ ab[4];
	q[6] = rest[6] ^ ab[5];
	q[7] = rest[7] ^ ab[6];
}

XC_INLINE void xc_add_key(xc_plane *q, const __global struct xc_key *k, uint r)
{
	ulong lo = xc_turn8(XC_LOAD(8, k->rk + 16 * r)), hi = xc_turn8(XC_LOAD(8, k->rk + 16 * r + 8));

#pragma unroll
	for (int b = 0; b < 8; b++)
		q[b] ^= XC_P(XC_PLANE_OF(lo, hi, b));
}

/* Keystream blocks j to j + XC_BLOCKS - 1. */
static void xc_cm_blocks(union xc_planes *q, const struct xc_cm *c, uint j)
{
	for (int n = 0; n < XC_BLOCKS; n++) {
		uint i = j + n;

		xc_slice(q, n, (ulong2)(c->iv.x, c->iv.y ^ (ulong)((i & 0xff) << 8 | i >> 8) << 48));
	}
	xc_add_key(q->v, c->key, 0);
	for (uint r = 1; r <= c->rounds; r++) {
		xc_sub_bytes(q->v);
#pragma unroll
		for (int b = 0; b < 8; b++)
			q->v[b] = xc_shift_rows(q->v[b]);
		if (r < c->rounds)
			xc_mix_columns(q->v);
		xc_add_key(q->v, c->key, r);
	}
}

/* Re-encrypts len bytes; reads and writes up to 15 bytes more (XC_SLACK). */
static void xc_cm_recrypt(xc_out dst, xc_in src, uint len, struct xc_cm rx, struct xc_cm tx)
{
	for (uint j = 0; 16 * j < len; j += XC_BLOCKS) {
		union xc_planes q, p;

#pragma unroll
		for (int b = 0; b < 8; b++)
			p.v[b] = q.v[b] = XC_P(0);
		if (rx.rounds)
			xc_cm_blocks(&q, &rx, j);
		if (tx.rounds)
			xc_cm_blocks(&p, &tx, j);
#pragma unroll
		for (int b = 0; b < 8; b++)
			q.v[b] ^= p.v[b];
		for (uint n = 0; n < XC_BLOCKS && 16 * (j + n) < len; n++)
			XC_STORE(16, dst + 16 * (j + n),
				XC_LOAD(16, src + 16 * (j + n)) ^ xc_unslice(&q, n));
	}
}
#endif
