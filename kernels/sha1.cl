/* SPDX-License-Identifier: GPL-2.0-or-later */
/* SHA-1 (FIPS 180-4) of all groups' lanes at once, and HMAC (RFC 2104) from its two stored states. State and message
 * words never leave registers within a block, as far as the compiler has enough of them. */

#define XC_CH(b, c, d)     bitselect(d, c, b)
#define XC_PARITY(b, c, d) ((b) ^ (c) ^ (d))
#define XC_MAJ(b, c, d)    bitselect(b, d, (b) ^ (c))

/* Instead of moving a to b to c, round i names them where they are. */
#define XC_ST(g, i, at) s[g][(80 - (i) + (at)) % 5]
#define XC_ROUND(g, i, f, k)                                                                      \
	XC_ST(g, i, 4) += w[g][(i) & 15] + (xc_lanes)(k) +                                        \
		f(XC_ST(g, i, 1), XC_ST(g, i, 2), XC_ST(g, i, 3)) +                               \
		rotate(XC_ST(g, i, 0), (xc_lanes)5u);                                             \
	XC_ST(g, i, 1) = rotate(XC_ST(g, i, 1), (xc_lanes)30u);
#define XC_WORD(g, i)                                                                             \
	w[g][(i) & 15] = rotate(w[g][((i) + 13) & 15] ^ w[g][((i) + 8) & 15] ^                    \
			w[g][((i) + 2) & 15] ^ w[g][(i) & 15],                                    \
		(xc_lanes)1u);
#define XC_ROUND0(i, f, k) XC_EACH_GROUP(XC_ROUND, i, f, k)
#define XC_ROUND1(i, f, k) XC_EACH_GROUP(XC_WORD, i) XC_EACH_GROUP(XC_ROUND, i, f, k)
#define XC_ROUNDS4(r, i, f, k) r(i, f, k) r((i) + 1, f, k) r((i) + 2, f, k) r((i) + 3, f, k)
#define XC_ROUNDS20(r, i, f, k)                                               \
	XC_ROUNDS4(r, i, f, k) XC_ROUNDS4(XC_ROUND1, (i) + 4, f, k)           \
	XC_ROUNDS4(XC_ROUND1, (i) + 8, f, k)                                  \
	XC_ROUNDS4(XC_ROUND1, (i) + 12, f, k) XC_ROUNDS4(XC_ROUND1, (i) + 16, f, k)

#define XC_SAVE(g, unused) \
	o[g][0] = s[g][0], o[g][1] = s[g][1], o[g][2] = s[g][2], o[g][3] = s[g][3], o[g][4] = s[g][4];
#define XC_ADD(g, unused)                                                                     \
	s[g][0] += o[g][0], s[g][1] += o[g][1], s[g][2] += o[g][2], s[g][3] += o[g][3],       \
		s[g][4] += o[g][4];

/* One block of each lane; w is used up. */
XC_INLINE void xc_sha1_block(xc_lanes (*s)[5], xc_lanes (*w)[16])
{
	xc_lanes o[XC_GROUPS][5];

	XC_EACH_GROUP(XC_SAVE, 0)
	XC_ROUNDS4(XC_ROUND0, 0, XC_CH, 0x5a827999u)
	XC_ROUNDS4(XC_ROUND0, 4, XC_CH, 0x5a827999u)
	XC_ROUNDS4(XC_ROUND0, 8, XC_CH, 0x5a827999u)
	XC_ROUNDS4(XC_ROUND0, 12, XC_CH, 0x5a827999u)
	XC_ROUNDS4(XC_ROUND1, 16, XC_CH, 0x5a827999u)
	XC_ROUNDS20(XC_ROUND1, 20, XC_PARITY, 0x6ed9eba1u)
	XC_ROUNDS20(XC_ROUND1, 40, XC_MAJ, 0x8f1bbcdcu)
	XC_ROUNDS20(XC_ROUND1, 60, XC_PARITY, 0xca62c1d6u)
	XC_EACH_GROUP(XC_ADD, 0)
}

/* A message of each lane: its block b is at (b < full ? head : tail) + 64 * b, last is its last block. */
struct xc_message {
	xc_in head[XC_WIDTH], tail[XC_WIDTH];
	uint full[XC_WIDTH], blocks[XC_WIDTH], last[XC_WIDTH];
	uint least, most;  /* blocks of the shortest and the longest */
	uint heads;        /* blocks that all lanes have at head */
};

#define XC_SWAP16(g, unused)                                          \
	_Pragma("unroll") for (int i = 0; i < 16; i++) w[g][i] =      \
		xc_swap_lanes(w[g][i]);
#define XC_FETCH(g, unused) xc_gather(w[g], p + (g) * XC_LANES);
/* Lanes whose message has ended keep their state. */
#define XC_KEEP(g, unused)                                                     \
	_Pragma("unroll") for (int i = 0; i < 5; i++) s[g][i] =                \
		(xc_lanes)(b) < live[g] ? s[g][i] : before[g][i];
#define XC_BEFORE(g, unused)                                       \
	_Pragma("unroll") for (int i = 0; i < 5; i++) before[g][i] = s[g][i];

/* Runs each lane's message, padding included, through its state s. */
XC_INLINE void xc_sha1_messages(xc_lanes (*s)[5], const struct xc_message *m)
{
	xc_lanes live[XC_GROUPS];

#if XC_LANES == 16
#define XC_LIVE(g, unused) live[g] = vload16(g, m->blocks);
	XC_EACH_GROUP(XC_LIVE, 0)
#else
	live[0] = m->blocks[0];
#endif
	for (uint b = 0; b < m->most; b++) {
		xc_lanes w[XC_GROUPS][16], before[XC_GROUPS][5];
		xc_in p[XC_WIDTH];

#pragma unroll
		for (int l = 0; l < XC_WIDTH; l++)
			p[l] = m->head[l] + 64 * (size_t)b;
		if (b >= m->heads) {
#pragma unroll 1
			for (int l = 0; l < XC_WIDTH; l++) {
				uint at = min(b, m->last[l]);

				p[l] = (at < m->full[l] ? m->head[l] : m->tail[l]) + 64 * (size_t)at;
			}
		}
		XC_EACH_GROUP(XC_FETCH, 0)
		XC_EACH_GROUP(XC_SWAP16, 0)
		XC_EACH_GROUP(XC_BEFORE, 0)
		xc_sha1_block(s, w);
		if (b >= m->least) {
			XC_EACH_GROUP(XC_KEEP, 0)
		}
	}
}

#define XC_DIGEST(g, unused)                                                     \
	_Pragma("unroll") for (int i = 0; i < 5; i++) w[g][i] = s[g][i];         \
	w[g][5] = (xc_lanes)0x80000000u;                                         \
	_Pragma("unroll") for (int i = 6; i < 15; i++) w[g][i] = (xc_lanes)0u;   \
	w[g][15] = (xc_lanes)(8u * (64u + 20u));                                 \
	_Pragma("unroll") for (int i = 0; i < 5; i++) s[g][i] = outer[g][i];

/* From the inner hash to the HMAC: one more block behind the outer state. */
XC_INLINE void xc_hmac_outer(xc_lanes (*s)[5], xc_lanes (*outer)[5])
{
	xc_lanes w[XC_GROUPS][16];

	XC_EACH_GROUP(XC_DIGEST, 0)
	xc_sha1_block(s, w);
}
