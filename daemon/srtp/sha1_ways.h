/* SPDX-License-Identifier: GPL-2.0-or-later */
/* SHA-1's compression function (FIPS 180-4 6.1.2) for several messages at once, by SHA-NI,
 * AVX-512VL or AVX2. No branch or address depends on a message's content. */
#ifndef SRTP_SHA1_WAYS_H
#define SRTP_SHA1_WAYS_H

#include "base/bytes.h"

#define SHA1_LANES 8u

/* HMACs of SHA1_LANES messages (RFC 2104). Lane l reads "whole" blocks at msg[l], and then "tails"
 * padded blocks at tail[l]. state[l] has the two states that HMAC starts from, five words each; 12
 * bytes after them are read, too. The result, with 12 bytes of no meaning after it, goes to mac[l].
 */
struct sha1_hmacs {
	const uint32_t *state[SHA1_LANES];
	const uint8_t *msg[SHA1_LANES], *tail[SHA1_LANES];
	uint8_t *mac[SHA1_LANES];
	uint32_t whole, tails;
	uint32_t bits; /* if not 0: a block of padding only follows, with this message length */
};

/* A way to compute SHA-1: a set of instructions. */
struct sha1_way {
	const char *name;
	uint32_t least; /* messages; for fewer, libcrypto is faster */
	bool over_two;  /* with all lanes full, faster than SHA-NI with two messages */
	/* n blocks of SHA1_LANES messages. Lane l has state h[0][l] to h[4][l], and reads p[l]. */
	void (*lanes)(uint32_t (*h)[SHA1_LANES], const uint8_t *const *p, uint32_t n);
	/* Set if lanes() is. */
	void (*hmacs)(const struct sha1_hmacs *e);
	/* One block of each message; w[i][l]: word i of lane l, in host order. */
	void (*words)(uint32_t (*h)[SHA1_LANES], const uint32_t (*w)[SHA1_LANES]);
	/* n blocks of two messages; NULL: lanes() is used. */
	void (*two)(uint32_t *a, uint32_t *b, const uint8_t *p, const uint8_t *q, uint32_t n);
};

/* Way number "place", from 0 to SHA1_WAYS - 1, the fastest first. NULL if this processor lacks its
 * instructions. */
#define SHA1_WAYS 3u
const struct sha1_way *sha1_way(uint32_t place);

/* The fastest way with lanes(). NULL: the processor has none. It asks no CPUID, which is slow in a
 * virtual machine. */
const struct sha1_way *sha1_way_in_lanes(void);

#endif
