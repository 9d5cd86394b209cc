/* SPDX-License-Identifier: GPL-2.0-or-later */
/* AES counter mode (RFC 3711 4.1.1) on any OpenCL device. Bitsliced: no table look-ups or branches
 * depend on keys or data. Plane b holds bit b of every byte. A packet has 128 bits of a plane,
 * eight for each byte of a block (FIPS-197 3.4: row i % 4, column i / 4). The low four of these
 * bits are four neighbouring blocks under the receiving key; the high four are the same blocks
 * under the sending key. So shifting rows shuffles bytes, mixing columns rotates words, and one
 * pass gives 64 bytes of both keystreams. Counters need no slicing. Wide lanes process several
 * packets in parallel. The S-box is the circuit of Boyar and Peralta, "A depth-16 circuit for the
 * AES S-box" (2011). The keys include its constant 0x63, which rows and columns leave unchanged. */
#ifndef XC_HAVE_AES
#define XC_HAVE_AES 1

struct xc_cm {
	const __global struct xc_key *key;
	ulong2 iv; /* the first counter block: its last byte is 0, or 2 (GCM) */
	uint rounds; /* 0: no cipher */
};

/* Words per plane: four for each packet. The host passes the device's vector width. */
#if XC_LANES == 1
#undef XC_PLANE_WORDS
#define XC_PLANE_WORDS 4
#elif !defined(XC_PLANE_WORDS)
#define XC_PLANE_WORDS 16
#endif
#define XC_CM_MANY (XC_PLANE_WORDS / 4) /* packets encrypted together */
#if XC_PLANE_WORDS == 16
typedef uint16 xc_plane;
#elif XC_PLANE_WORDS == 8
typedef uint8 xc_plane;
#else
typedef uint4 xc_plane;
#endif
union xc_packets { /* 16 bytes of each */
	xc_plane v;
	ulong2 packet[XC_CM_MANY];
};
#define XC_P(x) ((xc_plane)(x))

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
	q[6] = t64 ^ s3;
	q[5] = t55 ^ t67;
	q[4] = s3;
	q[3] = t51 ^ t66;
	q[2] = t47 ^ t65;
	q[1] = t56 ^ t62;
	q[0] = t48 ^ t60;
}

/* FIPS-197 5.1.2: byte 4c + r comes from column c + r. */
#if XC_LANES > 1 && XC_HAS(__builtin_shufflevector)
typedef uchar xc_bytes __attribute__((__vector_size__(4 * XC_PLANE_WORDS)));

#define XC_ROWS(i)                                                                               \
	(i) + 0, (i) + 5, (i) + 10, (i) + 15, (i) + 4, (i) + 9, (i) + 14, (i) + 3, (i) + 8,      \
		(i) + 13, (i) + 2, (i) + 7, (i) + 12, (i) + 1, (i) + 6, (i) + 11
#if XC_CM_MANY == 4
#define XC_ALL_ROWS XC_ROWS(0), XC_ROWS(16), XC_ROWS(32), XC_ROWS(48)
#elif XC_CM_MANY == 2
#define XC_ALL_ROWS XC_ROWS(0), XC_ROWS(16)
#else
#define XC_ALL_ROWS XC_ROWS(0)
#endif

XC_INLINE xc_plane xc_shift_rows(xc_plane x)
{
	xc_bytes b = __builtin_astype(x, xc_bytes);

	return __builtin_astype(__builtin_shufflevector(b, b, XC_ALL_ROWS), xc_plane);
}
#else
XC_INLINE uint4 xc_shift_rows1(uint4 x)
{
	return (x & 0xffu) | (x.yzwx & 0xff00u) | (x.zwxy & 0xff0000u) | (x.wxyz & 0xff000000u);
}

XC_INLINE xc_plane xc_shift_rows(xc_plane x)
{
#if XC_CM_MANY == 4
	return (xc_plane)(xc_shift_rows1(x.lo.lo), xc_shift_rows1(x.lo.hi), xc_shift_rows1(x.hi.lo),
		xc_shift_rows1(x.hi.hi));
#elif XC_CM_MANY == 2
	return (xc_plane)(xc_shift_rows1(x.lo), xc_shift_rows1(x.hi));
#else
	return xc_shift_rows1(x);
#endif
}
#endif

/* FIPS-197 5.1.3: 2a + 3b + c + d = 2(a + b) + b + (c + d); the next row is the next byte of a word; doubling moves
 * planes up and folds the top one in. */
XC_INLINE void xc_mix_columns(xc_plane *q)
{
	xc_plane ab[8], rest[8];

#pragma unroll
	for (int b = 0; b < 8; b++) {
		xc_plane next = rotate(q[b], XC_P(24u));

		ab[b] = q[b] ^ next;
		rest[b] = next ^ rotate(ab[b], XC_P(16u));
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

/* The planes of 16 bytes that all four blocks of a key share. */
XC_INLINE void xc_slice(xc_plane *q, xc_plane rx, xc_plane tx)
{
	xc_plane low = (rx & XC_P(0x0f0f0f0fu)) | ((tx << 4) & XC_P(0xf0f0f0f0u));
	xc_plane high = ((rx >> 4) & XC_P(0x0f0f0f0fu)) | (tx & XC_P(0xf0f0f0f0u));

#pragma unroll
	for (uint b = 0; b < 4; b++) {
		xc_plane x = (low >> b) & XC_P(0x11111111u), y = (high >> b) & XC_P(0x11111111u);

		q[b] = (x << 4) - x;
		q[b + 4] = (y << 4) - y;
	}
}

/* Adds round key r of all packets; from round 1 on it includes the S-box's constant. */
XC_INLINE void xc_round_key(xc_plane *q, const struct xc_cm *rx, const struct xc_cm *tx, uint r)
{
	union xc_packets x, y;

#pragma unroll
	for (int i = 0; i < XC_CM_MANY; i++) {
		x.packet[i] = XC_LOAD(16, rx[i].key->rk + 16 * r);
		y.packet[i] = XC_LOAD(16, tx[i].key->rk + 16 * r);
	}
	xc_slice(q, x.v, y.v);
	if (r > 0)
		q[0] = ~q[0], q[1] = ~q[1], q[5] = ~q[5], q[6] = ~q[6];
}

/* What all blocks of a group of packets share. */
struct xc_cm_many {
	xc_plane first[8]; /* the counter block with counter 0 and round key 0 */
	xc_plane last[3];  /* set where a packet's last round is 10, 12, 14 */
	xc_plane ahead;    /* set in the last byte for those of four blocks whose counter is in
			    * the next four (GCM: counters start at 2) */
	uint rounds;       /* the most */
#if XC_LANES > 1
	xc_plane key[15][8]; /* a device with scalar lanes has too little memory for these */
#endif
};

XC_INLINE void xc_cm_prepare(struct xc_cm_many *m, const struct xc_cm *rx, const struct xc_cm *tx)
{
	union xc_packets x, y, last[3], ahead;
	xc_plane iv[8];

	m->rounds = 0;
#pragma unroll
	for (int i = 0; i < XC_CM_MANY; i++) {
		m->rounds = max(m->rounds, max(rx[i].rounds, tx[i].rounds));
		x.packet[i] = rx[i].iv;
		y.packet[i] = tx[i].iv;
		ahead.packet[i] = (ulong2)(0, ((rx[i].iv.y >> 57 & 1) * 0x0c | (tx[i].iv.y >> 57 & 1) * 0xc0) << 56);
#pragma unroll
		for (uint r = 0; r < 3; r++)
			last[r].packet[i] = (ulong2)(
				(rx[i].rounds == 10 + 2 * r ? 0x0f0f0f0f0f0f0f0ful : 0) |
				(tx[i].rounds == 10 + 2 * r ? 0xf0f0f0f0f0f0f0f0ul : 0));
	}
#pragma unroll
	for (int r = 0; r < 3; r++)
		m->last[r] = last[r].v;
	m->ahead = ahead.v;
	xc_slice(iv, x.v, y.v);
	xc_round_key(m->first, rx, tx, 0);
#pragma unroll
	for (int b = 0; b < 8; b++)
		m->first[b] ^= iv[b];
#if XC_LANES > 1
	for (uint r = 1; r <= m->rounds; r++)
		xc_round_key(m->key[r], rx, tx, r);
#endif
}

#if XC_CM_MANY == 4
#define XC_LAST_BYTE(x) ((xc_plane)(0, 0, 0, (x) << 24, 0, 0, 0, (x) << 24, 0, 0, 0, (x) << 24, 0, 0, 0, (x) << 24))
#elif XC_CM_MANY == 2
#define XC_LAST_BYTE(x) ((xc_plane)(0, 0, 0, (x) << 24, 0, 0, 0, (x) << 24))
#else
#define XC_LAST_BYTE(x) ((xc_plane)(0, 0, 0, (x) << 24))
#endif

/* Blocks 4j to 4j + 3: each byte has a bit per block, of rx in its lower half, of tx in the other. A
 * packet has fewer than 256 blocks (the host refuses longer ones), and the salt is zero at the
 * counter: RFC 3711 4.1.1. */
XC_INLINE void xc_cm_quad(xc_plane *sum, const struct xc_cm_many *m, const struct xc_cm *rx,
	const struct xc_cm *tx, uint j)
{
	xc_plane q[8], key[8];

#pragma unroll
	for (int b = 0; b < 8; b++) {
		q[b] = m->first[b];
		sum[b] = XC_P(0u);
	}
	q[0] ^= XC_LAST_BYTE(0xaau);
	q[1] ^= XC_LAST_BYTE(0xccu);
#pragma unroll
	for (uint b = 2; b < 8; b++) {
		q[b] ^= XC_LAST_BYTE(j >> (b - 2) & 1 ? 0xffu : 0u);
		q[b] ^= m->ahead & XC_P((j ^ (j + 1)) >> (b - 2) & 1 ? ~0u : 0u);
	}
	for (uint r = 1; r <= m->rounds; r++) {
#if XC_LANES > 1
		const xc_plane *k = m->key[r];
#else
		const xc_plane *k = key;

		xc_round_key(key, rx, tx, r);
#endif
		xc_sub_bytes(q);
#pragma unroll
		for (int b = 0; b < 8; b++)
			q[b] = xc_shift_rows(q[b]);
		if (r >= 10 && r % 2 == 0) {
			xc_plane last = m->last[(r - 10) / 2];

#pragma unroll
			for (int b = 0; b < 8; b++)
				sum[b] |= (q[b] ^ k[b]) & last;
			if (r == m->rounds)
				break;
		}
		xc_mix_columns(q);
#pragma unroll
		for (int b = 0; b < 8; b++)
			q[b] ^= k[b];
	}
}

/* The sum of both keystreams. */
XC_INLINE void xc_cm_both(xc_plane *sum)
{
#pragma unroll
	for (int b = 0; b < 8; b++)
		sum[b] ^= sum[b] >> 4;
}

/* Exchanges the bits of a under mask << n with those of b under mask. */
#define XC_SWAP_BITS(a, b, n, mask)                            \
	{                                                      \
		xc_plane t = ((a >> n) ^ b) & XC_P(mask);      \
                                                               \
		b ^= t;                                        \
		a ^= t << n;                                   \
	}

/* Converts the planes of four blocks to bytes. */
XC_INLINE void xc_unslice(union xc_packets *block, const xc_plane *sum)
{
	xc_plane p[4];

#pragma unroll
	for (int b = 0; b < 4; b++)
		p[b] = (sum[b] & XC_P(0x0f0f0f0fu)) | ((sum[b + 4] << 4) & XC_P(0xf0f0f0f0u));
	XC_SWAP_BITS(p[0], p[1], 1, 0x55555555u)
	XC_SWAP_BITS(p[2], p[3], 1, 0x55555555u)
	XC_SWAP_BITS(p[0], p[2], 2, 0x33333333u)
	XC_SWAP_BITS(p[1], p[3], 2, 0x33333333u)
#pragma unroll
	for (int b = 0; b < 4; b++)
		block[b].v = p[b];
}

/* Encrypts one block under one key: costs as much as four blocks under eight keys. */
static ulong2 xc_aes_block(xc_in rk, uint rounds, ulong2 in)
{
	struct xc_cm rx[XC_CM_MANY], tx[XC_CM_MANY];
	union xc_packets block[4];
	struct xc_cm_many m;
	xc_plane sum[8];

	for (int i = 0; i < XC_CM_MANY; i++) {
		rx[i] = tx[i] = (struct xc_cm){
			.key = (const __global struct xc_key *)(rk - XC_KEY_RK), .iv = in, .rounds = rounds};
		tx[i].rounds = 0;
	}
	xc_cm_prepare(&m, rx, tx);
	xc_cm_quad(sum, &m, rx, tx, 0);
	xc_unslice(block, sum);
	return block[0].packet[0];
}

XC_INLINE void xc_f8_blocks(ulong2 *x, const xc_in *rk)
{
	x[0] = xc_aes_block(rk[0], 10, x[0]);
}

/* Re-encrypts len[i] bytes of each packet, and converts them (XC_LAW_*); shorter packets are
 * processed to the longest one's length. Reads and writes up to 63 bytes more (XC_SLACK). */
static void xc_cm_recrypt_many(const xc_out *dst, const xc_in *src, const uint *len,
	const struct xc_cm *rx, const struct xc_cm *tx, const uint *law)
{
	struct xc_cm_many m;
	uint most = len[0], laws = law[0];

	for (int i = 1; i < XC_CM_MANY; i++) {
		most = max(most, len[i]);
		laws |= law[i];
	}
	xc_cm_prepare(&m, rx, tx);
	for (uint j = 0; 64 * j < most; j++) {
		union xc_packets block[4], late[4];
		xc_plane sum[8];

		xc_cm_quad(sum, &m, rx, tx, j);
		if (laws) {
			xc_unslice(block, sum);
#pragma unroll
			for (int b = 0; b < 8; b++)
				sum[b] >>= 4;
			xc_unslice(late, sum);
#pragma unroll
			for (int i = 0; i < XC_CM_MANY; i++) {
				for (uint n = 0; n < 4 && 64 * j < len[i]; n++)
					XC_STORE(16, dst[i] + 64 * j + 16 * n,
						xc_law16(XC_LOAD(16, src[i] + 64 * j + 16 * n) ^
								block[n].packet[i],
							law[i]) ^ late[n].packet[i]);
			}
			continue;
		}
		xc_cm_both(sum);
		xc_unslice(block, sum);
#pragma unroll
		for (int i = 0; i < XC_CM_MANY; i++) {
			if (64 * j >= len[i])
				continue;
#pragma unroll
			for (uint n = 0; n < 4; n++)
				XC_STORE(16, dst[i] + 64 * j + 16 * n,
					XC_LOAD(16, src[i] + 64 * j + 16 * n) ^
						block[n].packet[i]);
		}
	}
}
#endif
