/* SPDX-License-Identifier: GPL-2.0-or-later */
/* header-hmac-sha1 (preauth.h): the tags of the headers that probably come next. A stream usually
 * keeps its payload type, and its timestamps grow by the same step. Then eight tags are computed at
 * once in lanes, for the price of one. It is only a cache: a tag belongs to its whole header, and a
 * header that differs is computed alone. Pure. */
#ifndef SRTP_PREAUTH_HEADS_H
#define SRTP_PREAUTH_HEADS_H

#include "srtp/preauth.h"

#define PREAUTH_HEADS 8u

/* The newest header that was learned. All zero: none. */
struct preauth_heads {
	uint32_t time;
	uint16_t step; /* by which timestamps grow */
	uint16_t seq;
	uint8_t first, second; /* bytes; the second without the marker */
	uint8_t n;             /* tags known: of the headers after this one, PREAUTH_HEADS or 0 */
	uint8_t reserved;
};

/* Returns the place of this header's tag, or -1. ssrc: as learned. */
int preauth_heads_find(
	const struct preauth_heads *h, uint32_t ssrc, const uint8_t hdr[PREAUTH_HEADER_LEN]);
/* Call it after the packet with this header was authenticated or sent. Computes tag[PREAUTH_HEADS]
 * if the stream is regular, so that the next headers can be expected, and if no known tag remains.
 * Older headers change nothing. */
void preauth_heads_learn(struct preauth_heads *h, uint32_t *ssrc, uint32_t *tag,
	const struct preauth_key *k, const uint8_t hdr[PREAUTH_HEADER_LEN]);

#endif
