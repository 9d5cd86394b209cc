/* SPDX-License-Identifier: GPL-2.0-or-later */
/* AEAD_AES_GCM for SRTP and SRTCP (RFC 7714), one packet at a time: initial counter block and tag.
 * The body's keystream is counter mode from counter 2 on, and shares its code with AES_CM. */

/* RFC 7714 8.1, 9.1: SSRC in bytes 2 to 5, the 48-bit index in bytes 6 to 11, then the block counter. */
XC_INLINE ulong2 xc_gcm_iv(const __global struct xc_key *k, ulong index, uint ssrc, uint counter)
{
	ulong2 salt = XC_LOAD(16, k->salt);
	ulong be48 = xc_swap8(index << 16);

	return (ulong2)(salt.x ^ (ulong)xc_swap4(ssrc) << 16 ^ be48 << 48,
		salt.y ^ be48 >> 16 ^ (ulong)xc_swap4(counter) << 32);
}

/* The low n bytes, n 0 to 8. */
XC_INLINE ulong xc_mask(uint n)
{
	return n == 0 ? 0 : ~0ul >> (64 - 8 * n);
}

XC_INLINE ulong2 xc_mask16(uint n)
{
	return (ulong2)(xc_mask(min(n, 8u)), xc_mask(min(max(n, 8u) - 8, 8u)));
}

/* Hashes len bytes, followed by the low word_len (0 or 4) bytes of word, zero-padded to a block. */
XC_INLINE void xc_ghash_bytes(struct xc_ghash *g, xc_in p, uint len, ulong word, uint word_len)
{
	uint rest = len % 16, shift = 8 * (rest % 8);
	ulong low = word << shift, high = shift ? word >> (64 - shift) : 0;
	ulong2 last;

	for (; len >= 16; len -= 16, p += 16)
		xc_ghash_push(g, XC_LOAD(16, p));
	if (rest + word_len == 0)
		return;
	last = XC_LOAD(16, p) & xc_mask16(rest);
	xc_ghash_push(g, last | (rest < 8 ? (ulong2)(low, high) : (ulong2)(0, low)));
	if (rest + word_len > 16)
		xc_ghash_push(g, (ulong2)(high, 0));
}

/* RFC 7714 8.2, 9.2, 9.3. Additional data: the header, then an unencrypted body, then for SRTCP the
 * E||index word in wire format. p: the packet in this side's wire format. */
XC_INLINE ulong2 xc_gcm_tag(const __global struct xc_key *k, xc_in p, const __global struct xc_job *j,
	ulong index, uint ssrc, uint word, uint clear)
{
	uint word_len = j->flags & XC_JOB_RTCP ? 4 : 0;
	uint open = j->hdr_len + (clear ? j->body_len : 0), crypt = clear ? 0 : j->body_len;
	struct xc_ghash g;

	xc_ghash_begin(&g, k, (open + word_len + 15) / 16 + (crypt + 15) / 16 + 1);
	xc_ghash_bytes(&g, p, open, word_len ? word : 0, word_len);
	xc_ghash_bytes(&g, p + open, crypt, 0, 0);
	xc_ghash_push(&g, (ulong2)(xc_swap8(8ul * (open + word_len)), xc_swap8(8ul * crypt)));
	return xc_ghash_end(&g) ^ xc_aes_block(k->rk, k->rounds, xc_gcm_iv(k, index, ssrc, 1));
}
