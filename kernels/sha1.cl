/* SPDX-License-Identifier: GPL-2.0-or-later */
/* SHA-1 (FIPS 180-4) of all groups' lanes at once, and HMAC (RFC 2104) from its two stored states. State and message
 * words never leave registers within a block, as far as the compiler has enough of them. */

/* Functions of three inputs in one instruction. LLVM would turn XC_CH's disjoint halves into an
 * addition, and use two instructions for XC_MAJ. It would also reorder a round's sum, so that the
 * slow rotate() runs too early. */
#if XC_LANES == 16 && defined(__AVX512F__) && XC_HAS(__builtin_ia32_pternlogd512_mask)
typedef int xc_lane_ints __attribute__((__vector_size__(64)));
#define XC_OF_THREE(b, c, d, table)                                                                   \
	__builtin_astype(__builtin_ia32_pternlogd512_mask(__builtin_astype(b, xc_lane_ints),          \
				 __builtin_astype(c, xc_lane_ints),                                   \
				 __builtin_astype(d, xc_lane_ints), table, (ushort)0xffff),           \
		xc_lanes)
#define XC_CH(b, c, d)     XC_OF_THREE(b, c, d, 0xca)
#define XC_PARITY(b, c, d) XC_OF_THREE(b, c, d, 0x96)
#define XC_MAJ(b, c, d)    XC_OF_THREE(b, c, d, 0xe8)
#define XC_IN_ORDER(x)     __asm__("" : "+v"(x))
#else
#define XC_CH(b, c, d)     bitselect(d, c, b)
#define XC_PARITY(b, c, d) ((b) ^ (c) ^ (d))
#define XC_MAJ(b, c, d)    bitselect(b, d, (b) ^ (c))
#define XC_IN_ORDER(x)
#endif

/* Renames the state words in round i instead of moving a to b to c. */
#define XC_ST(g, i, at) s[g][(80 - (i) + (at)) % 5]
#define XC_ROUND(g, i, f, k)                                                                      \
	{                                                                                         \
		xc_lanes sum = w[g][(i) & 15] + (xc_lanes)(k);                                    \
                                                                                                  \
		XC_IN_ORDER(sum);                                                                 \
		sum += XC_ST(g, i, 4);                                                            \
		XC_IN_ORDER(sum);                                                                 \
		sum += f(XC_ST(g, i, 1), XC_ST(g, i, 2), XC_ST(g, i, 3));                         \
		XC_IN_ORDER(sum);                                                                 \
		XC_ST(g, i, 4) = sum + rotate(XC_ST(g, i, 0), (xc_lanes)5u);                      \
		XC_IN_ORDER(XC_ST(g, i, 4));                                                      \
		XC_ST(g, i, 1) = rotate(XC_ST(g, i, 1), (xc_lanes)30u);                           \
	}
#define XC_WORD(g, i)                                                                             \
	w[g][(i) & 15] = rotate(w[g][((i) + 13) & 15] ^ w[g][((i) + 8) & 15] ^                    \
			w[g][((i) + 2) & 15] ^ w[g][(i) & 15],                                    \
		(xc_lanes)1u);                                                                    \
	XC_IN_ORDER(w[g][(i) & 15]);
/* Number of rounds by which message words are computed ahead, to hide latency. */
#define XC_EARLY 6
#define XC_ROUND0(i, f, k)                             \
	if ((i) + XC_EARLY >= 16) {                    \
		XC_EACH_GROUP(XC_WORD, (i) + XC_EARLY) \
	}                                              \
	XC_EACH_GROUP(XC_ROUND, i, f, k)
#define XC_ROUND1(i, f, k)                             \
	if ((i) + XC_EARLY < 80) {                     \
		XC_EACH_GROUP(XC_WORD, (i) + XC_EARLY) \
	}                                              \
	XC_EACH_GROUP(XC_ROUND, i, f, k)
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

/* One block of each lane; overwrites w. */
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

/* Where the messages of all lanes end. The received and the sent message of a packet have equal
 * lengths. A message is the packet up to byte len, a word (ROC or E||index), and SHA-1's padding.
 * Padding is added in registers, because packets are only read. */
struct xc_ends {
	xc_lanes at;     /* index of the 32-bit word with byte len */
	xc_lanes keep;   /* mask of its bits that belong to the message */
	xc_lanes shift;  /* 8 * (len % 4) */
	xc_lanes bits;   /* length in bits, HMAC's first block included */
	xc_lanes blocks; /* 0: no HMAC on either side */
	uint whole;      /* blocks that need no padding in any lane */
	uint first, last; /* least and greatest at of all lanes */
	uint least, most; /* of blocks */
};

struct xc_message {
	xc_in base;
	xc_lanes off;  /* offset of each packet from base */
	xc_lanes word; /* after the message */
	xc_lanes s[5], outer[5];
};

XC_INLINE void xc_ends_of(struct xc_ends *e, xc_lanes len, xc_lanes blocks)
{
	e->at = len >> 2u;
	e->shift = (len & 3u) << 3u;
	e->keep = ~((xc_lanes)0xffffffffu >> e->shift);
	e->bits = (len + 64u + 4u) << 3u;
	e->blocks = blocks;
	e->whole = xc_least(len >> 6u);
	e->first = xc_least(e->at);
	e->last = xc_most(e->at);
	e->least = xc_least(blocks);
	e->most = xc_most(blocks);
}

/* Adds word, 0x80, zeroes and length to block b. Usually all lanes end alike, and most words are
 * unchanged or zero. */
XC_INLINE void xc_pad(xc_lanes *w, const struct xc_ends *e, xc_lanes word, uint b)
{
	xc_lanes here = word >> e->shift;
	/* Two steps, because a shift by 32 bits would do nothing. */
	xc_lanes next = (word << 1u) << (31u - e->shift) | (xc_lanes)0x80000000u >> e->shift;

#pragma unroll
	for (uint i = 0; i < 16; i++) {
		xc_lanes at = (xc_lanes)(16 * b + i);

		if (16 * b + i > e->last + 1)
			w[i] = (xc_lanes)0u;
		else if (16 * b + i >= e->first)
			w[i] = at < e->at ? w[i]
				: at == e->at ? (w[i] & e->keep) | here
				: at == e->at + 1u ? next : (xc_lanes)0u;
	}
	w[15] = (xc_lanes)(b + 1) == e->blocks ? e->bits : w[15];
}

/* Loads block b of each lane; lanes that have ended load their last block again. */
XC_INLINE void xc_fetch(xc_lanes *w, const struct xc_message *m, const struct xc_ends *e, uint b)
{
	xc_lanes last = max(e->blocks, (xc_lanes)1u) - 1u;
	uint off[XC_LANES];
	xc_in p[XC_LANES];

	xc_put(off, m->off + (min((xc_lanes)b, last) << 6u));
#pragma unroll
	for (int l = 0; l < XC_LANES; l++)
		p[l] = m->base + off[l];
	xc_gather(w, p);
#pragma unroll
	for (int i = 0; i < 16; i++)
		w[i] = xc_swap_lanes(w[i]);
	if (b >= e->whole)
		xc_pad(w, e, m->word, b);
}

#define XC_FETCH(g, m)                                            \
	xc_fetch(w[g], (m) + (g), e, b);                          \
	_Pragma("unroll") for (int i = 0; i < 5; i++) before[g][i] = s[g][i];
/* Lanes whose message has ended keep their state. */
#define XC_KEEP(g, unused)                                                     \
	_Pragma("unroll") for (int i = 0; i < 5; i++) s[g][i] =                \
		(xc_lanes)(b) < e->blocks ? s[g][i] : before[g][i];
#define XC_STATE(g, m) \
	_Pragma("unroll") for (int i = 0; i < 5; i++) s[g][i] = (m)[g].s[i];
#define XC_RESULT(g, m) \
	_Pragma("unroll") for (int i = 0; i < 5; i++)(m)[g].s[i] = s[g][i];
#define XC_DIGEST(g, m)                                                          \
	_Pragma("unroll") for (int i = 0; i < 5; i++) w[g][i] = s[g][i];         \
	w[g][5] = (xc_lanes)0x80000000u;                                         \
	_Pragma("unroll") for (int i = 6; i < 15; i++) w[g][i] = (xc_lanes)0u;   \
	w[g][15] = (xc_lanes)(8u * (64u + 20u));                                 \
	_Pragma("unroll") for (int i = 0; i < 5; i++) s[g][i] = (m)[g].outer[i];

/* Prefetches a few 64-byte lines at a time: more at once would wait for each other. */
XC_INLINE void xc_prefetch_line(const xc_in *ahead, uint line)
{
#pragma unroll
	for (int l = 0; l < XC_LANES; l++)
		XC_PREFETCH(ahead[l] + 64 * line);
}

/* Computes the HMACs of XC_GROUPS messages per lane from the key's inner state, into m->s: the
 * message's blocks, then the inner hash as one more block after the outer state. Also prefetches
 * XC_KEY_LINES lines at ahead[] of each lane. */
XC_INLINE void xc_hmac(struct xc_message *m, const struct xc_ends *e, const xc_in *ahead)
{
	xc_lanes s[XC_GROUPS][5], w[XC_GROUPS][16];

	XC_EACH_GROUP(XC_STATE, m)
#pragma unroll 1
	for (uint b = 0; b < e->most; b++) {
		xc_lanes before[XC_GROUPS][5];

		XC_EACH_GROUP(XC_FETCH, m)
		if (b < XC_KEY_LINES - 1)
			xc_prefetch_line(ahead, b);
		xc_sha1_block(s, w);
		if (b >= e->least) {
			XC_EACH_GROUP(XC_KEEP, 0)
		}
	}
	for (uint b = min(e->most, XC_KEY_LINES - 1u); b < XC_KEY_LINES; b++)
		xc_prefetch_line(ahead, b);
	XC_EACH_GROUP(XC_DIGEST, m)
	xc_sha1_block(s, w);
	XC_EACH_GROUP(XC_RESULT, m)
}

#if XC_LANES == 16 && XC_GROUPS == 1
#define XC_REV(v) ((v).sfedcba9876543210)

/* Computes both messages of each lane in sequence: a packet's received one, then the sent one of
 * the packet at the opposite lane. Lanes are sorted by length, so all finish at nearly the same
 * time. Results as xc_hmac()'s. */
static __attribute__((noinline)) void xc_hmac_paired(
	struct xc_message *m, const struct xc_ends *first, const xc_in (*ahead)[XC_LANES])
{
	struct xc_ends e = *first;
	const xc_lanes n = first->blocks, both = n + XC_REV(n);
	xc_lanes s[1][5], w[1][16], got[5], start = (xc_lanes)0u, word = m[0].word, off = m[0].off;
	const uint end = xc_most(both);
	uint at[XC_LANES], second[XC_LANES];
	xc_in base[XC_LANES], p[XC_LANES];

	e.last = 0xfffffff0u; /* lanes end at any word */
#pragma unroll
	for (int l = 0; l < XC_LANES; l++)
		base[l] = m[0].base;
#pragma unroll
	for (int i = 0; i < 5; i++)
		s[0][i] = got[i] = m[0].s[i];
#pragma unroll 1
	for (uint b = 0; b <= end; b++) {
		xc_lanes before[5], now = n == (xc_lanes)b ? (xc_lanes)0xffffffffu : (xc_lanes)0u;

		if (xc_bits(now)) {
			xc_put(second, now);
#pragma unroll
			for (int l = 0; l < XC_LANES; l++)
				base[l] = second[l] ? m[1].base : base[l];
#pragma unroll
			for (int i = 0; i < 5; i++) {
				got[i] = now ? s[0][i] : got[i];
				s[0][i] = now ? XC_REV(m[1].s[i]) : s[0][i];
			}
			e.at = now ? XC_REV(first->at) + (n << 4u) : e.at;
			e.keep = now ? XC_REV(first->keep) : e.keep;
			e.shift = now ? XC_REV(first->shift) : e.shift;
			e.bits = now ? XC_REV(first->bits) : e.bits;
			e.blocks = now ? both : e.blocks;
			start = now ? n : start;
			word = now ? XC_REV(m[1].word) : word;
			off = now ? XC_REV(m[1].off) : off;
		}
		if (b == end)
			break;
		xc_put(at, off + ((min((xc_lanes)b, max(e.blocks, start + 1u) - 1u) - start) << 6u));
#pragma unroll
		for (int l = 0; l < XC_LANES; l++)
			p[l] = base[l] + at[l];
		xc_gather(w[0], p);
#pragma unroll
		for (int i = 0; i < 16; i++)
			w[0][i] = xc_swap_lanes(w[0][i]);
		e.first = xc_least((xc_lanes)b < e.blocks ? e.at : (xc_lanes)0xffffffffu);
		if (e.first < 16 * (b + 1))
			xc_pad(w[0], &e, word, b);
#pragma unroll
		for (int i = 0; i < 5; i++)
			before[i] = s[0][i];
		if (b < 2 * XC_KEY_LINES)
			xc_prefetch_line(ahead[b & 1], b >> 1);
		xc_sha1_block(s, w);
#pragma unroll
		for (int i = 0; i < 5; i++)
			s[0][i] = (xc_lanes)b < e.blocks ? s[0][i] : before[i];
	}
	for (uint b = min(end, 2u * XC_KEY_LINES); b < 2 * XC_KEY_LINES; b++)
		xc_prefetch_line(ahead[b & 1], b >> 1);
#pragma unroll
	for (int i = 0; i < 5; i++) {
		m[0].s[i] = got[i];
		m[1].s[i] = XC_REV(s[0][i]);
	}
#pragma unroll 1
	for (uint side = 0; side < 2; side++) {
		struct xc_message *one = m + side;

		XC_EACH_GROUP(XC_STATE, one)
		XC_EACH_GROUP(XC_DIGEST, one)
		xc_sha1_block(s, w);
		XC_EACH_GROUP(XC_RESULT, one)
	}
}
#endif
