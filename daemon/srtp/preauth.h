/* SPDX-License-Identifier: GPL-2.0-or-later */
/* SRTP+: a short tag in addition to SRTP's own, with which a receiver drops a forged packet before
 * it computes an HMAC over the whole packet. A right tag proves nothing: SRTP still authenticates
 * the packet. There are three schemes:
 *
 * sequence	The tag of packet i is number i of a generator with a secret key. The receiver
 *		compares it with numbers that it computed ahead (preauth_window.h).
 * header	The tag is a MAC of the 12 bytes of the RTP header. The receiver computes it, and
 *		keeps no state.
 * chain	The tags are random. Each packet carries the next PREAUTH_CHAIN_NEXT tags in its
 *		encrypted payload. The receiver compares, as for "sequence".
 *
 * "sequence" and "header" exist with their authors' primitive, and with a modern one.
 * notes/preauth.md compares them. Sender and receiver derive the key from the SRTP master key by
 * the PRF of RFC 3711 4.3. Each scheme has its own label, so no further key is exchanged. */
#ifndef SRTP_PREAUTH_H
#define SRTP_PREAUTH_H

#include "base/bytes.h"
#include "srtp/kdf.h"

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
		PREAUTH_SCHEMES_COUNT
};

#define PREAUTH_HEADER_LEN 12u  /* bytes of an RTP header without CSRCs and extension */
#define PREAUTH_SEED_MAX   64u  /* bytes: FIPS 186-2 allows 160 to 512 bits */
#define PREAUTH_CHAIN_NEXT 32u  /* tags of 4 bits: one AES block */
#define PREAUTH_CHAIN_LEN  16u  /* bytes of that block, at the end of the encrypted payload */
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
/* False: no such scheme. */
bool preauth_find(enum preauth_scheme *s, struct str name);
/* Bytes of a tag in the packet. It has the low bits, other bits are zero. */
static inline uint32_t preauth_tag_len(enum preauth_scheme s)
{
	return s == PREAUTH_CHAIN ? 1 : PREAUTH_TAG_MAX;
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

/* chain: write and read the block of packet i. It has the tags of packets i + 1 to i +
 * PREAUTH_CHAIN_NEXT, 4 bits each, the first in the upper half of the first byte. */
void preauth_chain_write(uint8_t block[16], const uint32_t tag[PREAUTH_CHAIN_NEXT]);
void preauth_chain_read(uint32_t tag[PREAUTH_CHAIN_NEXT], const uint8_t block[16]);

#endif
