/* SPDX-License-Identifier: GPL-2.0-or-later */
/* SRTP+: a short tag in addition to SRTP's own, with which a receiver drops a forged packet before
 * it computes an HMAC over the whole packet. A right tag proves nothing: SRTP still authenticates
 * the packet. There are three schemes:
 *
 * sequence	The tag of packet i is number i of a generator with a secret key. The receiver
 *		compares it with numbers that it computed ahead (preauth_window.h).
 * header	The tag is a MAC of the 12 bytes of the RTP header. The receiver computes it, and
 *		keeps no state.
 * chain	The tags are random. Each packet carries the tags of the next packets in its
 *		encrypted payload. The receiver compares, as for "sequence". Bits of a tag, number
 *		of tags in a payload and length of the window are parameters.
 *
 * "sequence" and "header" exist with their authors' primitive, and with a modern one.
 * notes/preauth.md compares them. Sender and receiver derive the key from the SRTP master key by
 * the PRF of RFC 3711 4.3. Each scheme has its own label, so no further key is exchanged. */
#ifndef SRTP_PREAUTH_H
#define SRTP_PREAUTH_H

#include "base/bytes.h"
#include "srtp/kdf.h"

enum { PREAUTH_WIDTHS = 3, PREAUTH_NEXTS = 4, PREAUTH_WINDOWS = 3 };

/* X(name in the enumeration, name in SDP and output, bits of a tag) */
#define PREAUTH_SCHEMES(X)                      \
	X(SEQUENCE_FIPS, "sequence-fips", 32)   \
	X(SEQUENCE_AES, "sequence-aes", 32)     \
	X(HEADER_HMAC, "header-hmac-sha1", 32)  \
	X(HEADER_SIPHASH, "header-siphash", 32) \
	X(CHAIN, "chain", 4)

enum preauth_scheme {
#define X(name, text, bits) PREAUTH_##name,
	PREAUTH_SCHEMES(X)
#undef X
		PREAUTH_SCHEMES_COUNT,
	/* From PREAUTH_SCHEMES_COUNT on: chain with other parameters than the defaults. */
	PREAUTH_KINDS = PREAUTH_SCHEMES_COUNT + PREAUTH_WIDTHS * PREAUTH_NEXTS * PREAUTH_WINDOWS
};

/* Parameters of chain. Its name in SDP and output is "chain" with the defaults, 4/32/512, else
 * "chain/WIDTH/NEXT/WINDOW". */
struct preauth_chain {
	uint8_t width;   /* bits of a tag: 4, 8 or 32 */
	uint8_t next;    /* tags in each payload: 8, 16, 32 or 64 */
	uint16_t window; /* packets whose tags the receiver keeps: 64, 128 or 512 */
};

#define PREAUTH_HEADER_LEN 12u  /* bytes of an RTP header without CSRCs and extension */
#define PREAUTH_SEED_MAX   64u  /* bytes: FIPS 186-2 allows 160 to 512 bits */
#define PREAUTH_NEXT_MAX   64u  /* tags in the payload of chain */
#define PREAUTH_BLOCK_MAX  64u  /* bytes of these tags, at the end of the encrypted payload */
#define PREAUTH_FIPS_RUN   10u  /* tags of one seed: two hashes */
#define PREAUTH_TAG_MAX    4u   /* bytes of a tag in the packet */
#define PREAUTH_LABEL      0x50 /* first PRF label; RFC 3711 uses 0 to 5, RFC 6904 6 and 7 */

/* The key of one direction, for all its SSRCs. Plain memory without pointers. Wipe it by
 * secmem_wipe(). */
struct preauth_key {
	enum preauth_scheme scheme;
	bool fast_sha1; /* srtp_sha1_has_instructions() */
	uint8_t seed[PREAUTH_SEED_MAX];
	uint8_t rk[176];             /* AES-128 round keys of sequence-aes and chain */
	uint32_t inner[5], outer[5]; /* HMAC-SHA1 states after the key blocks */
};

/* State of the generator of sequence-fips: FIPS 186-2 appendix 3.1 with SHA-1 as G, and no
 * additional input. It cannot go back, so each run of tags has a seed of its own. */
struct preauth_fips {
	uint8_t xkey[PREAUTH_SEED_MAX];
	uint32_t bytes; /* of xkey: 20 to 64 */
	bool fast_sha1;
	uint32_t word[5], used;
};

const char *preauth_name(enum preauth_scheme s);
unsigned preauth_bits(enum preauth_scheme s);
/* False: no such scheme, or chain with parameters that we do not have. */
bool preauth_find(enum preauth_scheme *s, struct str name);
/* Why preauth_find() does not find this name: which parameter is wrong, and what is allowed. NULL:
 * it finds it. */
const char *preauth_why_not(struct str name);
/* Whether preauth_find() can return it: not each combination of parameters makes sense. */
bool preauth_exists(enum preauth_scheme s);
static inline bool preauth_is_chain(enum preauth_scheme s)
{
	return s >= PREAUTH_CHAIN;
}
struct preauth_chain preauth_chain_of(enum preauth_scheme s);
/* Bytes of the tags in a payload of this chain. */
uint32_t preauth_chain_len(enum preauth_scheme s);
/* Bytes of a tag in the packet: 4 or 1. It has the low bits, other bits are zero. */
static inline uint32_t preauth_tag_len(enum preauth_scheme s)
{
	return preauth_is_chain(s) && preauth_bits(s) <= 8 ? 1 : PREAUTH_TAG_MAX;
}
static inline bool preauth_is_header(enum preauth_scheme s)
{
	return s == PREAUTH_HEADER_HMAC || s == PREAUTH_HEADER_SIPHASH;
}

/* Derives the key from a master key. 0; -EINVAL: a suite without encryption. */
int preauth_key_init(struct preauth_key *k, enum preauth_scheme s, const struct srtp_master *m);

/* Computes the tags of n packets of an SSRC, from this 48-bit index on. All indexes cost the same.
 * sequence-aes: a tag is a 32-bit word of AES(SSRC, index DIV 4).
 * sequence-fips: the generator starts again after PREAUTH_FIPS_RUN tags.
 * chain: the tags that this implementation sends. They are words of AES as above, so a sender that
 * restarts continues with the tags that it announced. A receiver uses only announced tags. */
void preauth_sequence(
	const struct preauth_key *k, uint32_t ssrc, uint64_t index, uint32_t *tag, uint32_t n);

/* sequence-fips: starts the generator for this run, which is index DIV PREAUTH_FIPS_RUN. bytes: how
 * many bytes of the seed it uses, 20 to 64. */
void preauth_fips_init(struct preauth_fips *g, const struct preauth_key *k, uint32_t ssrc,
	uint64_t run, uint32_t bytes);
/* Computes the tags of the next n packets. Wipe g by secmem_wipe(). */
void preauth_fips_next(struct preauth_fips *g, uint32_t *tag, uint32_t n);

/* header-hmac-sha1, header-siphash: computes the tag of a packet with this header. */
uint32_t preauth_header(const struct preauth_key *k, const uint8_t hdr[PREAUTH_HEADER_LEN]);

/* header-siphash: the same, by the first 16 bytes of the seed. */
uint32_t preauth_header_sip(const uint8_t key[16], const uint8_t hdr[PREAUTH_HEADER_LEN]);
/* These bytes as preauth_header.h needs them. */
void preauth_sip_words(uint64_t word[2], const uint8_t key[16]);

/* chain: the block of packet i has the tags of the packets from i + 1 on, in network order. Of 4
 * bits, the first is in the upper half of the first byte. pack() writes n tags of this width, tag()
 * reads tag number i. */
void preauth_chain_pack(uint32_t width, uint8_t *packed, const uint32_t *tag, uint32_t n);
static inline uint32_t preauth_chain_tag(uint32_t width, const uint8_t *packed, uint32_t i)
{
	return width == 32   ? be32(packed + 4 * i)
		: width == 8 ? packed[i]
			     : packed[i / 2] >> (i % 2 ? 0 : 4) & 15;
}

#endif
