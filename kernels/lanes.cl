/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lanes: one packet per vector lane, XC_LANES packets in a work-item. XC_GROUPS of a packet's two
 * hashes run in parallel: 2 if one alone would wait for its own latency, 1 if two need too many
 * registers. This file has unaligned loads and stores, byte order, and the transposition of rows
 * (64 bytes of one packet) into lanes. The order of sources in daemon/batch/opencl_build.c replaces
 * #include; layout.h comes first. */
#ifndef XC_LANES
#define XC_LANES 16
#endif
#ifndef XC_GROUPS
#define XC_GROUPS 1
#endif

#ifdef __has_builtin
#define XC_HAS(builtin) __has_builtin(builtin)
#else
#define XC_HAS(builtin) 0
#endif

/* PoCL 3.1 treats any CPU with AVX-512 as skylake-avx512, which has no VAES. So the host checks for
 * VAES, sets XC_VAES, and builds without it if that fails. All functions need this target,
 * including the kernel: otherwise LLVM cannot select the instruction after inlining. (__has_builtin
 * is false for features that the named CPU lacks.) */
#if defined(XC_VAES) && !defined(XC_PORTABLE_AES) && defined(__AVX512BW__) && defined(__AVX512VL__) && \
	XC_HAS(__builtin_ia32_aesenc128)
#define XC_HAVE_VAES 1
#endif
#define XC_INLINE static inline __attribute__((always_inline))

/* PoCL 3.1 treats any CPU with AVX2 but no AVX-512 as haswell, which has no AES instructions
 * either. The host checks for them and sets XC_AES. Functions with AES instructions then have a
 * target of their own and are not inlined, for the same reason as those with VAES. */
#if defined(XC_PORTABLE_AES)
#elif defined(__AES__) && XC_HAS(__builtin_ia32_aesenc128)
#define XC_AES_FUNCTION XC_INLINE
#elif defined(XC_AES)
#define XC_AES_FUNCTION static __attribute__((noinline, target("aes")))
#endif

#if XC_LANES == 16
typedef uint16 xc_lanes;
#elif XC_LANES == 1
typedef uint xc_lanes;
#else
#error "XC_LANES is 1 or 16"
#endif

/* m(0, ...) m(1, ...): one expansion per group, so that their instructions interleave. */
#if XC_GROUPS == 2
#define XC_EACH_GROUP(m, ...) m(0, __VA_ARGS__) m(1, __VA_ARGS__)
#elif XC_GROUPS == 1
#define XC_EACH_GROUP(m, ...) m(0, __VA_ARGS__)
#else
#error "XC_GROUPS is 1 or 2"
#endif

typedef const __global uchar *xc_in;
typedef __global uchar *xc_out;

struct __attribute__((packed)) xc_any4 {
	uint v;
};
struct __attribute__((packed)) xc_any8 {
	ulong v;
};
struct __attribute__((packed)) xc_any16 {
	ulong2 v;
};
struct __attribute__((packed)) xc_any32 {
	uint8 v;
};
struct __attribute__((packed)) xc_any64 {
	uint16 v;
};
#if XC_LANES > 1
#define XC_LOAD(bytes, p)     (((const __global struct xc_any##bytes *)(p))->v)
#define XC_STORE(bytes, p, x) (((__global struct xc_any##bytes *)(p))->v = (x))
#else
/* A GPU's compiler would load unaligned words byte by byte. This loads the aligned words that
 * contain them, and shifts. It reads up to three bytes before and four after. Most packets and
 * results are aligned, because the host packs them so and headers are whole words. */
XC_INLINE uint xc_funnel(uint low, uint high, uint bits)
{
	return (uint)(((ulong)high << 32 | low) >> bits);
}

XC_INLINE uint xc_load4(xc_in p)
{
	uint past = (uint)(size_t)p & 3;
	const __global uint *w = (const __global uint *)(p - past);

	return past ? xc_funnel(w[0], w[1], 8 * past) : w[0];
}

XC_INLINE ulong xc_load8(xc_in p)
{
	uint past = (uint)(size_t)p & 3;
	const __global uint *w = (const __global uint *)(p - past);
	uint last = past ? w[2] : 0;

	return xc_funnel(w[0], w[1], 8 * past) | (ulong)xc_funnel(w[1], last, 8 * past) << 32;
}

XC_INLINE ulong2 xc_load16(xc_in p)
{
	return (ulong2)(xc_load8(p), xc_load8(p + 8));
}

XC_INLINE uint16 xc_load64(xc_in p)
{
	uint past = (uint)(size_t)p & 3;
	const __global uint *w = (const __global uint *)(p - past);
	uint word[17];

#pragma unroll
	for (int i = 0; i < 16; i++)
		word[i] = w[i];
	word[16] = past ? w[16] : 0;
#pragma unroll
	for (int i = 0; i < 16; i++)
		word[i] = xc_funnel(word[i], word[i + 1], 8 * past);
	return vload16(0, word);
}

XC_INLINE void xc_store4(xc_out p, uint x)
{
	if (((size_t)p & 3) == 0)
		*(__global uint *)p = x;
	else
		((__global struct xc_any4 *)p)->v = x;
}

XC_INLINE void xc_store8(xc_out p, ulong x)
{
	xc_store4(p, (uint)x);
	xc_store4(p + 4, (uint)(x >> 32));
}

XC_INLINE void xc_store16(xc_out p, ulong2 x)
{
	xc_store8(p, x.x);
	xc_store8(p + 8, x.y);
}

XC_INLINE void xc_store64(xc_out p, uint16 x)
{
	uint word[16];

	vstore16(x, 0, word);
#pragma unroll
	for (int i = 0; i < 16; i++)
		xc_store4(p + 4 * i, word[i]);
}

#define XC_LOAD(bytes, p)     xc_load##bytes((xc_in)(p))
#define XC_STORE(bytes, p, x) xc_store##bytes((xc_out)(p), (x))
#endif

/* Prefetches into the second-level cache, because the data is needed much later. A GPU hides
 * latency by itself. */
#if XC_LANES > 1 && XC_HAS(__builtin_prefetch)
#define XC_PREFETCH(p) __builtin_prefetch((const void *)(size_t)(p), 0, 2)
#else
#define XC_PREFETCH(p)
#endif

XC_INLINE uint xc_swap4(uint x)
{
	return (rotate(x, 8u) & 0x00ff00ffu) | (rotate(x, 24u) & 0xff00ff00u);
}

XC_INLINE ulong xc_swap8(ulong x)
{
	return (ulong)xc_swap4((uint)x) << 32 | xc_swap4((uint)(x >> 32));
}

#if XC_LANES == 16 && XC_HAS(__builtin_shufflevector)
typedef uchar xc_lane_bytes __attribute__((__vector_size__(64)));
#define XC_SWAPPED(i) (i) + 3, (i) + 2, (i) + 1, (i)
#define XC_SWAPPED4(i) XC_SWAPPED(i), XC_SWAPPED((i) + 4), XC_SWAPPED((i) + 8), XC_SWAPPED((i) + 12)

/* One byte shuffle. */
XC_INLINE xc_lanes xc_swap_lanes(xc_lanes x)
{
	xc_lane_bytes b = __builtin_astype(x, xc_lane_bytes);

	return __builtin_astype(__builtin_shufflevector(b, b, XC_SWAPPED4(0), XC_SWAPPED4(16),
		XC_SWAPPED4(32), XC_SWAPPED4(48)), xc_lanes);
}
#else
XC_INLINE xc_lanes xc_swap_lanes(xc_lanes x)
{
	return (rotate(x, (xc_lanes)8u) & (xc_lanes)0x00ff00ffu) |
		(rotate(x, (xc_lanes)24u) & (xc_lanes)0xff00ff00u);
}
#endif

/* Copies lanes to memory and back; computes maximum, minimum, and bitwise OR of all lanes. */
#if XC_LANES == 16
#define XC_OVER_LANES(name, two)                                        \
	XC_INLINE uint name(xc_lanes x)                                 \
	{                                                               \
		uint8 a = two(x.lo, x.hi);                              \
		uint4 b = two(a.lo, a.hi);                              \
		uint2 c = two(b.lo, b.hi);                              \
                                                                        \
		return two(c.x, c.y);                                   \
	}
#define XC_OR(a, b) ((a) | (b))
XC_OVER_LANES(xc_most, max)
XC_OVER_LANES(xc_least, min)
XC_OVER_LANES(xc_bits, XC_OR)
#define xc_put(at, x) vstore16((x), 0, (at))
#define xc_take(at)   vload16(0, (at))
#else
#define xc_most(x)    (x)
#define xc_least(x)   (x)
#define xc_bits(x)    (x)
#define xc_put(at, x) ((at)[0] = (x))
#define xc_take(at)   ((at)[0])
#endif

#if XC_LANES == 16
#if XC_HAS(__builtin_shufflevector)
#define XC_SHUF(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#define XC_LO32(a, b) \
	XC_SHUF(a, b, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29)
#define XC_HI32(a, b) \
	XC_SHUF(a, b, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31)
#define XC_LO64(a, b) \
	XC_SHUF(a, b, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29)
#define XC_HI64(a, b) \
	XC_SHUF(a, b, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31)
#define XC_EVEN(a, b) \
	XC_SHUF(a, b, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27)
#define XC_ODD(a, b) \
	XC_SHUF(a, b, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31)

/* Transposes within 4x4 tiles first, then the tiles. */
#define XC_TILE(i)                             \
	t0 = XC_LO32(r[i], r[i + 1]);          \
	t1 = XC_HI32(r[i], r[i + 1]);          \
	t2 = XC_LO32(r[i + 2], r[i + 3]);      \
	t3 = XC_HI32(r[i + 2], r[i + 3]);      \
	r[i] = XC_LO64(t0, t2);                \
	r[i + 1] = XC_HI64(t0, t2);            \
	r[i + 2] = XC_LO64(t1, t3);            \
	r[i + 3] = XC_HI64(t1, t3);
#define XC_TILES(k)                            \
	t0 = XC_EVEN(r[k], r[k + 4]);          \
	t1 = XC_ODD(r[k], r[k + 4]);           \
	t2 = XC_EVEN(r[k + 8], r[k + 12]);     \
	t3 = XC_ODD(r[k + 8], r[k + 12]);      \
	r[k] = XC_EVEN(t0, t2);                \
	r[k + 8] = XC_ODD(t0, t2);             \
	r[k + 4] = XC_EVEN(t1, t3);            \
	r[k + 12] = XC_ODD(t1, t3);

XC_INLINE void xc_transpose(xc_lanes *r)
{
	xc_lanes t0, t1, t2, t3;

	XC_TILE(0) XC_TILE(4) XC_TILE(8) XC_TILE(12)
	XC_TILES(0) XC_TILES(1) XC_TILES(2) XC_TILES(3)
}

/* Transposes four words of each lane to 16 bytes of packet 4 * c + i in quarter c of r[i], and
 * back. */
XC_INLINE void xc_transpose4(xc_lanes *r)
{
	xc_lanes t0, t1, t2, t3;

	XC_TILE(0)
}
#else
#define XC_COLUMN(c, s)                                                                       \
	((xc_lanes)(q[0].s, q[1].s, q[2].s, q[3].s, q[4].s, q[5].s, q[6].s, q[7].s, q[8].s,   \
		q[9].s, q[10].s, q[11].s, q[12].s, q[13].s, q[14].s, q[15].s))

XC_INLINE void xc_transpose(xc_lanes *r)
{
	xc_lanes q[16];

	for (int i = 0; i < 16; i++)
		q[i] = r[i];
	r[0] = XC_COLUMN(0, s0), r[1] = XC_COLUMN(1, s1), r[2] = XC_COLUMN(2, s2);
	r[3] = XC_COLUMN(3, s3), r[4] = XC_COLUMN(4, s4), r[5] = XC_COLUMN(5, s5);
	r[6] = XC_COLUMN(6, s6), r[7] = XC_COLUMN(7, s7), r[8] = XC_COLUMN(8, s8);
	r[9] = XC_COLUMN(9, s9), r[10] = XC_COLUMN(10, sa), r[11] = XC_COLUMN(11, sb);
	r[12] = XC_COLUMN(12, sc), r[13] = XC_COLUMN(13, sd), r[14] = XC_COLUMN(14, se);
	r[15] = XC_COLUMN(15, sf);
}

XC_INLINE void xc_transpose4(xc_lanes *r)
{
	uint q[4][16], t[4][16];

	for (int i = 0; i < 4; i++)
		vstore16(r[i], 0, q[i]);
	for (int i = 0; i < 16; i++)
		for (int j = 0; j < 4; j++)
			t[j][(i & 12) + (i & 3)] = q[i & 3][(i & 12) + j];
	for (int i = 0; i < 4; i++)
		r[i] = vload16(0, t[i]);
}
#endif
#endif

/* Loads 64 bytes of each lane's packet as 16 words of all lanes; w[i] is word i in memory order. */
XC_INLINE void xc_gather(xc_lanes *w, const xc_in *p)
{
#if XC_LANES == 16
#pragma unroll
	for (int i = 0; i < 16; i++)
		w[i] = XC_LOAD(64, p[i]);
	xc_transpose(w);
#else
	vstore16(XC_LOAD(64, p[0]), 0, w);
#endif
}

/* Likewise, 16 bytes of each. */
XC_INLINE void xc_gather4(xc_lanes *w, const xc_in *p)
{
#if XC_LANES == 16
	uint4 r[16];

#pragma unroll
	for (int i = 0; i < 16; i++)
		r[i] = as_uint4(XC_LOAD(16, p[i]));
#pragma unroll
	for (int i = 0; i < 4; i++)
		w[i] = (uint16)(r[i], r[i + 4], r[i + 8], r[i + 12]);
	xc_transpose4(w);
#else
	vstore4(as_uint4(XC_LOAD(16, p[0])), 0, w);
#endif
}

/* The reverse: row[l] gets lane l's four words. */
XC_INLINE void xc_scatter4(ulong2 *row, xc_lanes *w)
{
#if XC_LANES == 16
	xc_transpose4(w);
#pragma unroll
	for (int i = 0; i < 4; i++) {
		row[i] = as_ulong2(w[i].lo.lo);
		row[i + 4] = as_ulong2(w[i].lo.hi);
		row[i + 8] = as_ulong2(w[i].hi.lo);
		row[i + 12] = as_ulong2(w[i].hi.hi);
	}
#else
	row[0] = as_ulong2(vload4(0, w));
#endif
}
