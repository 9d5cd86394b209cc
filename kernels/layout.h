/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by host and device: a key slot, a job, a status. The C compiler and the OpenCL compiler
 * read this file, and both assert the sizes. Little-endian hosts and devices only (checked at
 * start). */
#ifndef XCIPHER_LAYOUT_H
#define XCIPHER_LAYOUT_H

#ifdef __OPENCL_C_VERSION__
typedef uchar xc_u8;
typedef uint xc_u32;
typedef ulong xc_u64;
#define XC_ASSERT_SIZE(type, bytes) \
	typedef char type##_size[(sizeof(struct type) == (bytes)) ? 1 : -1]
#else
#include <stdint.h>
typedef uint8_t xc_u8;
typedef uint32_t xc_u32;
typedef uint64_t xc_u64;
#define XC_ASSERT_SIZE(type, bytes) _Static_assert(sizeof(struct type) == (bytes), #type)
#endif

/* xc_key.cipher */
#define XC_CIPHER_NULL   0
#define XC_CIPHER_AES_CM 1 /* RFC 3711 4.1.1, RFC 6188; rounds gives the key size */
#define XC_CIPHER_AES_F8 2 /* RFC 3711 4.1.2 */
#define XC_CIPHER_GCM    3 /* RFC 7714 */

/* xc_key.auth */
#define XC_AUTH_NULL \
	0                   /* without cipher: plain; with one, for SRTP only:
			     * UNAUTHENTICATED_SRTP */
#define XC_AUTH_HMAC_SHA1 1 /* RFC 3711 4.2.1 */
#define XC_AUTH_GCM       2

/* xc_key.valid. A wiped slot is not usable, not even as "plain". */
#define XC_KEY_VALID 0x79656b78

/* Powers of H follow H: at aux + 16 i, H to the power of i, for i = 1 to XC_GHASH_POWERS. Each is
 * stored as a 128-bit little-endian number with bytes reversed and multiplied by x, as carry-less
 * multiplication of reflected numbers requires. */
#define XC_GHASH_POWERS 8

/* Session keys of one direction, for SRTP or SRTCP. A context has two adjacent slots: the even one
 * for SRTP, the odd one for SRTCP. Slots 0 and 1 are always "plain": valid, no cipher, no
 * authentication. Fields are in the order of use. With AES-128 and HMAC-SHA1, a packet needs the
 * first 256 bytes: four cache lines, which decide the speed when keys exceed a cache. */
struct xc_key {
	xc_u32 inner[5]; /* SHA-1 state after the HMAC inner block, host byte order */
	xc_u32 outer[5]; /* the same for the outer block */
	xc_u32 cipher;   /* XC_CIPHER_* */
	xc_u32 auth;     /* XC_AUTH_* */
	xc_u32 rounds;   /* 10, 12 or 14 */
	xc_u32 tag_len;  /* bytes of the authentication tag on the wire, 0 to 16 */
	xc_u32 valid;    /* XC_KEY_VALID; any other value: every job is XC_BAD_TAG */
	xc_u32 reserved;
	xc_u8 salt[16]; /* 14 bytes (CM, F8) or 12 (GCM), then zeroes */
	xc_u8 rk[240]; /* AES encryption round keys, FIPS-197 byte order, (rounds + 1) * 16 bytes */
	/* F8: round keys of k_e XOR m. GCM: the hash key H, then its powers (XC_GHASH_POWERS). */
	xc_u8 aux[176];
	/* Nine cache lines: with a power of two, the hot parts of all keys would compete for a few
	 * cache sets. */
	xc_u8 reserved2[80];
};
#define XC_KEY_RK 80 /* offset of rk */
XC_ASSERT_SIZE(xc_key, 576);

/* With many keys, key slots come from distant memory. A work-item prefetches the first XC_KEY_LINES
 * lines of keys used XC_AHEAD_PACKETS later in the batch. The host prefetches those of the first
 * packets. */
#define XC_KEY_LINES     4
#define XC_AHEAD_PACKETS 96

/* xc_job.flags */
#define XC_JOB_RTCP     0x1 /* an RTCP packet: 31-bit index, E flag, index word in the trailer */
#define XC_JOB_RX_CLEAR 0x2 /* the body arrives unencrypted (SRTCP with E = 0, UNENCRYPTED_SRTP) */
#define XC_JOB_TX_CLEAR 0x4 /* the body is sent unencrypted, but is authenticated */
/* The packet is probably forged: an engine may authenticate it first. No engine has to. */
#define XC_JOB_DOUBT 0x8
/* Bits 8 to 14 and 16 to 22, of RTP without convert: numbers of bytes at the end of the body. The
 * last XC_BLOCK_CUT(flags) bytes of the received body are authenticated, but not sent. The sent
 * body ends with XC_BLOCK_ADD(flags) bytes, which arena.out has at out_off - XC_BLOCK_MAX. So its
 * length may differ from that of the received body. Only the serial engine does this: devices get
 * no such jobs (batch/run.c). */
#define XC_BLOCK_MAX            64
#define XC_BLOCKS(cut, add)     ((xc_u32)(cut) << 8 | (xc_u32)(add) << 16)
#define XC_BLOCK_CUT(flags)     ((flags) >> 8 & 0x7f)
#define XC_BLOCK_ADD(flags)     ((flags) >> 16 & 0x7f)
#define XC_JOB_HAS_BLOCK(flags) ((flags)&XC_BLOCKS(0x7f, 0x7f))

/* xc_job.convert: a law, and from bit 8 on the bits of byte 1 to flip, for another payload type. Of
 * RTP only. The body is G.711, without padding, and keeps its length. A law and a receiving key
 * with F8 exclude each other. */
#define XC_LAW_KEEP      0
#define XC_LAW_U_TO_A    1 /* PCMU becomes PCMA: ITU-T G.711, table 3 */
#define XC_LAW_A_TO_U    2 /* PCMA becomes PCMU: table 4 */
#define XC_LAW(convert)  ((convert)&3)
#define XC_FLIP(convert) ((convert) >> 8)

/* One packet: authenticate and decrypt under rx_key, encrypt and authenticate under tx_key.
 *
 * Input at in_off: hdr_len clear bytes, body_len body bytes, for RTCP the E||index word, and the
 * tag at rx_tag_off. Offsets are from the start of the packet. rx_tag_off skips an MKI.
 * Output at out_off: the same header, the re-encrypted body, for SRTCP the E||index word (E unless
 * TX_CLEAR), and the tag at tx_tag_off. A gap for an MKI is not written: complete() fills it.
 * SSRC: the received side has ssrc, the sent side ssrc ^ ssrc_change. It is used in the header (RTP
 * bytes 8 to 11, RTCP bytes 4 to 7), the IV and the tag. SSRCs in an RTCP body do not change.
 * Authenticated portion of RTP: header, body, ROC = index >> 16 (RFC 3711 4.2); of RTCP: header,
 * body, E||index word. With AEAD the tag precedes the E||index word (RFC 7714 9.1): rx_tag_off and
 * tx_tag_off point there, and the word follows the tag.
 * A plain side (XC_AUTH_NULL and XC_CIPHER_NULL) has no tag and no index word. */
struct xc_job {
	xc_u64 rx_index; /* RTP: 48-bit packet index; RTCP: 31-bit SRTCP index */
	xc_u64 tx_index;
	xc_u32 in_off;  /* any alignment */
	xc_u32 out_off; /* multiple of 64 */
	xc_u32 rx_key;  /* slot */
	xc_u32 tx_key;
	xc_u32 hdr_len; /* RTP: fixed header, CSRCs, extension; RTCP: 8 */
	xc_u32 body_len;
	xc_u32 rx_tag_off;
	xc_u32 tx_tag_off;
	xc_u32 ssrc;        /* host byte order */
	xc_u32 flags;       /* XC_JOB_* */
	xc_u32 ssrc_change; /* XORed to the SSRC that is sent; 0: unchanged */
	xc_u32 convert;     /* changes between decryption and encryption; 0: none */
};
XC_ASSERT_SIZE(xc_job, 64);

/* Location of a batch, for a device that shares the host's addresses (a CPU). Its address is a
 * kernel's only argument, because each buffer of a dispatch costs as much as several packets. */
struct xc_place {
	xc_u64 job, key, in, out, status;
	xc_u64 order; /* n words */
	xc_u32 n;     /* jobs */
	xc_u32 reserved[3];
};
XC_ASSERT_SIZE(xc_place, 64);

/* Status, one word per job. */
#define XC_OK       0
#define XC_BAD_TAG  1    /* authentication failed: the output is undefined */
#define XC_NOT_DONE 0xff /* written by the host before a dispatch */

/* A device may read this many bytes after a packet's end and write this many after a result's end.
 * Every packet slot of both buffers has that much unused memory after it. */
#define XC_SLACK 128

#endif
