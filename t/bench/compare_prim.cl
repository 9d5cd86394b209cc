/* SPDX-License-Identifier: GPL-2.0-or-later */
/* For comparison only: AES-CM block by block and HMAC-SHA1 packet by packet, one work-item each, as
 * in the literature's designs (compare_massive.cl, compare_persistent.cl). AES uses the processor's
 * instructions if the compiler has them, else the S-box as a table, as in the literature. Such
 * look-ups depend on keys, so the engine avoids them. t/bench/bench_compare.c compiles this after
 * layout.h. */
#ifdef __has_builtin
#define CMP_HAS(builtin) __has_builtin(builtin)
#else
#define CMP_HAS(builtin) 0
#endif

typedef const __global uchar *cmp_in;
typedef __global uchar *cmp_out;

uint cmp_be32(cmp_in p)
{
	return (uint)p[0] << 24 | (uint)p[1] << 16 | (uint)p[2] << 8 | p[3];
}

/* RFC 3711 4.1.1: the counter block of block j, big-endian words. */
uint4 cmp_counter(const __global struct xc_key *k, uint ssrc, ulong index, uint j)
{
	uint4 iv = (uint4)(cmp_be32(k->salt), cmp_be32(k->salt + 4), cmp_be32(k->salt + 8),
		cmp_be32(k->salt + 12));

	return iv ^ (uint4)(0, ssrc, (uint)(index >> 16), (uint)index << 16 | j);
}

#if defined(__AES__) && CMP_HAS(__builtin_ia32_aesenc128)
typedef long cmp_block __attribute__((__vector_size__(16)));

uint cmp_swap(uint x)
{
	return (rotate(x, 8u) & 0x00ff00ffu) | (rotate(x, 24u) & 0xff00ff00u);
}

uint4 cmp_aes(const __global struct xc_key *k, uint4 x)
{
	const __global cmp_block *rk = (const __global cmp_block *)k->rk;
	uint4 in = (uint4)(cmp_swap(x.x), cmp_swap(x.y), cmp_swap(x.z), cmp_swap(x.w));
	cmp_block b = __builtin_astype(in, cmp_block) ^ rk[0];

	for (uint r = 1; r < k->rounds; r++)
		b = __builtin_ia32_aesenc128(b, rk[r]);
	b = __builtin_ia32_aesenclast128(b, rk[k->rounds]);
	in = __builtin_astype(b, uint4);
	return (uint4)(cmp_swap(in.x), cmp_swap(in.y), cmp_swap(in.z), cmp_swap(in.w));
}
#else
/* FIPS-197 figure 7 */
__constant uchar cmp_sbox[256] = {
	0x63, 0x7c, 0x77, 0x7b, 0xf2, 0x6b, 0x6f, 0xc5, 0x30, 0x01, 0x67, 0x2b, 0xfe, 0xd7, 0xab, 0x76,
	0xca, 0x82, 0xc9, 0x7d, 0xfa, 0x59, 0x47, 0xf0, 0xad, 0xd4, 0xa2, 0xaf, 0x9c, 0xa4, 0x72, 0xc0,
	0xb7, 0xfd, 0x93, 0x26, 0x36, 0x3f, 0xf7, 0xcc, 0x34, 0xa5, 0xe5, 0xf1, 0x71, 0xd8, 0x31, 0x15,
	0x04, 0xc7, 0x23, 0xc3, 0x18, 0x96, 0x05, 0x9a, 0x07, 0x12, 0x80, 0xe2, 0xeb, 0x27, 0xb2, 0x75,
	0x09, 0x83, 0x2c, 0x1a, 0x1b, 0x6e, 0x5a, 0xa0, 0x52, 0x3b, 0xd6, 0xb3, 0x29, 0xe3, 0x2f, 0x84,
	0x53, 0xd1, 0x00, 0xed, 0x20, 0xfc, 0xb1, 0x5b, 0x6a, 0xcb, 0xbe, 0x39, 0x4a, 0x4c, 0x58, 0xcf,
	0xd0, 0xef, 0xaa, 0xfb, 0x43, 0x4d, 0x33, 0x85, 0x45, 0xf9, 0x02, 0x7f, 0x50, 0x3c, 0x9f, 0xa8,
	0x51, 0xa3, 0x40, 0x8f, 0x92, 0x9d, 0x38, 0xf5, 0xbc, 0xb6, 0xda, 0x21, 0x10, 0xff, 0xf3, 0xd2,
	0xcd, 0x0c, 0x13, 0xec, 0x5f, 0x97, 0x44, 0x17, 0xc4, 0xa7, 0x7e, 0x3d, 0x64, 0x5d, 0x19, 0x73,
	0x60, 0x81, 0x4f, 0xdc, 0x22, 0x2a, 0x90, 0x88, 0x46, 0xee, 0xb8, 0x14, 0xde, 0x5e, 0x0b, 0xdb,
	0xe0, 0x32, 0x3a, 0x0a, 0x49, 0x06, 0x24, 0x5c, 0xc2, 0xd3, 0xac, 0x62, 0x91, 0x95, 0xe4, 0x79,
	0xe7, 0xc8, 0x37, 0x6d, 0x8d, 0xd5, 0x4e, 0xa9, 0x6c, 0x56, 0xf4, 0xea, 0x65, 0x7a, 0xae, 0x08,
	0xba, 0x78, 0x25, 0x2e, 0x1c, 0xa6, 0xb4, 0xc6, 0xe8, 0xdd, 0x74, 0x1f, 0x4b, 0xbd, 0x8b, 0x8a,
	0x70, 0x3e, 0xb5, 0x66, 0x48, 0x03, 0xf6, 0x0e, 0x61, 0x35, 0x57, 0xb9, 0x86, 0xc1, 0x1d, 0x9e,
	0xe1, 0xf8, 0x98, 0x11, 0x69, 0xd9, 0x8e, 0x94, 0x9b, 0x1e, 0x87, 0xe9, 0xce, 0x55, 0x28, 0xdf,
	0x8c, 0xa1, 0x89, 0x0d, 0xbf, 0xe6, 0x42, 0x68, 0x41, 0x99, 0x2d, 0x0f, 0xb0, 0x54, 0xbb, 0x16,
};

uint cmp_double(uint x) /* each byte, in GF(2^8) */
{
	return (x & 0x7f7f7f7fu) << 1 ^ ((x >> 7) & 0x01010101u) * 0x1b;
}

/* Mixes a column of the bytes that ShiftRows brings together. */
uint cmp_column(uint a, uint b, uint c, uint d)
{
	return (uint)cmp_sbox[a >> 24] << 24 | (uint)cmp_sbox[b >> 16 & 0xff] << 16 |
		(uint)cmp_sbox[c >> 8 & 0xff] << 8 | cmp_sbox[d & 0xff];
}

uint4 cmp_rows(uint4 x)
{
	return (uint4)(cmp_column(x.x, x.y, x.z, x.w), cmp_column(x.y, x.z, x.w, x.x),
		cmp_column(x.z, x.w, x.x, x.y), cmp_column(x.w, x.x, x.y, x.z));
}

/* FIPS-197 5.1.3: 2a + 3b + c + d */
uint cmp_mix(uint x)
{
	uint b = rotate(x, 8u), ab = x ^ b;

	return cmp_double(ab) ^ b ^ rotate(ab, 16u);
}

uint4 cmp_round_key(const __global struct xc_key *k, uint r)
{
	cmp_in p = k->rk + 16 * r;

	return (uint4)(cmp_be32(p), cmp_be32(p + 4), cmp_be32(p + 8), cmp_be32(p + 12));
}

uint4 cmp_aes(const __global struct xc_key *k, uint4 x)
{
	x ^= cmp_round_key(k, 0);
	for (uint r = 1; r < k->rounds; r++) {
		x = cmp_rows(x);
		x = (uint4)(cmp_mix(x.x), cmp_mix(x.y), cmp_mix(x.z), cmp_mix(x.w)) ^
			cmp_round_key(k, r);
	}
	return cmp_rows(x) ^ cmp_round_key(k, k->rounds);
}
#endif

/* Block b of a packet's body, decrypted and encrypted. The caller guarantees that it begins within
 * the body. */
void cmp_recrypt_block(const __global struct xc_job *j, const __global struct xc_key *keys,
	cmp_in src, cmp_out dst, uint b)
{
	const __global struct xc_key *rx = keys + j->rx_key, *tx = keys + j->tx_key;
	uint at = j->hdr_len + 16 * b, n = min(j->body_len - 16 * b, 16u), word[4];
	uint4 ks = (uint4)(0u);

	if (rx->cipher == XC_CIPHER_AES_CM)
		ks ^= cmp_aes(rx, cmp_counter(rx, j->ssrc, j->rx_index, b));
	if (tx->cipher == XC_CIPHER_AES_CM)
		ks ^= cmp_aes(tx, cmp_counter(tx, j->ssrc ^ j->ssrc_change, j->tx_index, b));
	vstore4(ks, 0, word);
	for (uint i = 0; i < n; i++)
		dst[at + i] = src[at + i] ^ (uchar)(word[i / 4] >> (24 - i % 4 * 8));
}

/* --- SHA-1 (FIPS 180-4), HMAC from stored states (RFC 2104) ---------------------------------------------------------- */

void cmp_sha1(uint *s, uint *w)
{
	uint a = s[0], b = s[1], c = s[2], d = s[3], e = s[4];

	for (uint i = 0; i < 80; i++) {
		uint f, k, t;

		if (i >= 16)
			w[i % 16] = rotate(w[(i + 13) % 16] ^ w[(i + 8) % 16] ^ w[(i + 2) % 16] ^
					w[i % 16],
				1u);
		if (i < 20)
			f = bitselect(d, c, b), k = 0x5a827999u;
		else if (i < 40)
			f = b ^ c ^ d, k = 0x6ed9eba1u;
		else if (i < 60)
			f = bitselect(b, d, b ^ c), k = 0x8f1bbcdcu;
		else
			f = b ^ c ^ d, k = 0xca62c1d6u;
		t = rotate(a, 5u) + f + e + k + w[i % 16];
		e = d, d = c, c = rotate(b, 30u), b = a, a = t;
	}
	s[0] += a, s[1] += b, s[2] += c, s[3] += d, s[4] += e;
}

/* A byte of the authenticated data (RFC 3711 4.2) or of its padding. */
uint cmp_byte(cmp_in p, uint len, uint roc, uint at)
{
	if (at < len)
		return p[at];
	if (at < len + 4)
		return roc >> (24 - (at - len) * 8) & 0xff;
	return at == len + 4 ? 0x80 : 0;
}

void cmp_hmac(uint *s, const __global struct xc_key *k, cmp_in p, uint len, uint roc)
{
	uint blocks = (len + 4 + 9 + 63) / 64, w[16];

	for (uint i = 0; i < 5; i++)
		s[i] = k->inner[i];
	for (uint b = 0; b < blocks; b++) {
		for (uint i = 0; i < 16; i++) {
			uint at = 64 * b + 4 * i;

			if (at + 4 <= len)
				w[i] = cmp_be32(p + at);
			else
				w[i] = cmp_byte(p, len, roc, at) << 24 |
					cmp_byte(p, len, roc, at + 1) << 16 |
					cmp_byte(p, len, roc, at + 2) << 8 |
					cmp_byte(p, len, roc, at + 3);
		}
		if (b == blocks - 1)
			w[15] = 8 * (64 + len + 4);
		cmp_sha1(s, w);
	}
	for (uint i = 0; i < 16; i++)
		w[i] = i < 5 ? s[i] : 0;
	w[5] = 0x80000000u;
	w[15] = 8 * (64 + 20);
	for (uint i = 0; i < 5; i++)
		s[i] = k->outer[i];
	cmp_sha1(s, w);
}

uint cmp_tag_byte(const uint *s, uint i)
{
	return s[i / 4] >> (24 - i % 4 * 8) & 0xff;
}

/* Verifies a packet and copies its header. */
uint cmp_receive(
	const __global struct xc_job *j, const __global struct xc_key *keys, cmp_in src, cmp_out dst)
{
	const __global struct xc_key *k = keys + j->rx_key;
	uint diff = 0, s[5];

	if (k->auth == XC_AUTH_HMAC_SHA1) {
		cmp_hmac(s, k, src, j->hdr_len + j->body_len, (uint)(j->rx_index >> 16));
		for (uint i = 0; i < k->tag_len; i++)
			diff |= cmp_tag_byte(s, i) ^ src[j->rx_tag_off + i];
	}
	for (uint i = 0; i < j->hdr_len; i++)
		dst[i] = src[i];
	for (uint i = 0; i < 4; i++)
		dst[8 + i] ^= (uchar)(j->ssrc_change >> (24 - 8 * i));
	return diff ? XC_BAD_TAG : XC_OK;
}

void cmp_send(const __global struct xc_job *j, const __global struct xc_key *keys, cmp_out dst)
{
	const __global struct xc_key *k = keys + j->tx_key;
	uint s[5];

	if (k->auth != XC_AUTH_HMAC_SHA1)
		return;
	cmp_hmac(s, k, dst, j->hdr_len + j->body_len, (uint)(j->tx_index >> 16));
	for (uint i = 0; i < k->tag_len; i++)
		dst[j->tx_tag_off + i] = (uchar)cmp_tag_byte(s, i);
}

uint cmp_blocks(const __global struct xc_job *j)
{
	return (j->body_len + 15) / 16;
}
