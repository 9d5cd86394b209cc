/* SPDX-License-Identifier: GPL-2.0-or-later */
/* AES in F8 mode (RFC 3711 4.1.2). Each keystream block needs the previous one, so only several
 * packets in parallel keep the processor busy. A chain is one side of one packet. XC_F8_MANY chains
 * run in parallel, each with its own keys. Their keystreams are added to the bytes already in the
 * packet's output. */
#ifdef XC_AES_MANY
#define XC_F8_MANY XC_AES_MANY
#else
#define XC_F8_MANY 1
#endif

struct xc_f8 {
	const __global struct xc_key *key;
	xc_out body;
	ulong2 iv;
	uint len;
};

/* RFC 3711 4.1.2.2 and 4.1.2.3. word: ROC, or E||index in wire format. */
XC_INLINE ulong2 xc_f8_iv(xc_in pkt, uint rtcp, uint word)
{
	ulong2 head = XC_LOAD(16, pkt);

	if (rtcp)
		return (ulong2)((ulong)word << 32, head.x);
	return (ulong2)(head.x & ~0xfful, (head.y & 0xffffffffu) | (ulong)word << 32);
}

/* n chains; IV' = E(k_e XOR m, IV), S(j) = E(k_e, IV' XOR j XOR S(j - 1)). */
XC_INLINE void xc_f8_some(const struct xc_f8 *c, uint n)
{
	ulong2 iv[XC_F8_MANY], s[XC_F8_MANY];
	xc_in rk[XC_F8_MANY], mask[XC_F8_MANY];
	uint most = 0;

#pragma unroll
	for (uint i = 0; i < XC_F8_MANY; i++) {
		const struct xc_f8 *one = c + min(i, n - 1);

		rk[i] = one->key->rk;
		mask[i] = one->key->aux;
		iv[i] = one->iv;
		s[i] = (ulong2)(0);
		most = max(most, one->len);
	}
	xc_f8_blocks(iv, mask);
	for (uint j = 0; 16 * j < most; j++) {
#pragma unroll
		for (uint i = 0; i < XC_F8_MANY; i++)
			s[i] ^= iv[i] ^ (ulong2)(0, (ulong)xc_swap4(j) << 32);
		xc_f8_blocks(s, rk);
#pragma unroll
		for (uint i = 0; i < XC_F8_MANY; i++) {
			xc_out to = c[min(i, n - 1)].body + 16 * j;

			if (i < n && 16 * j < c[i].len)
				XC_STORE(16, to, XC_LOAD(16, to) ^ s[i]);
		}
	}
}
