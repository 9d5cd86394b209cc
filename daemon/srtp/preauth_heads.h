/* SPDX-License-Identifier: GPL-2.0-or-later */
/* header-hmac-sha1 (preauth.h): the tags of the headers that probably come next. A stream usually
 * keeps its payload type, and its timestamps grow by the same step. Then eight tags are computed at
 * once in lanes, for the price of one. It is only a cache: a tag belongs to its whole header, and a
 * header that differs is computed alone. Pure. */
#ifndef SRTP_PREAUTH_HEADS_H
#define SRTP_PREAUTH_HEADS_H

#include "srtp/preauth.h"

#define PREAUTH_HEADS  8u
#define PREAUTH_MARKER 0x80

/* The newest header that was learned. All zero: none. */
struct preauth_heads {
	uint32_t time;
	uint16_t step; /* by which timestamps grow */
	uint16_t seq;
	uint8_t first, second; /* bytes; the second without the marker */
	uint8_t n;             /* tags known: of the headers after this one, PREAUTH_HEADS or 0 */
	uint8_t reserved;
};

/* Whether the header, but for its marker, is one whose tag is known. ssrc: as learned. */
static inline bool preauth_heads_expects(
	const struct preauth_heads *h, uint32_t ssrc, const uint8_t hdr[PREAUTH_HEADER_LEN])
{
	uint16_t ahead = (uint16_t)(be16(hdr + 2) - h->seq);

	return (uint16_t)(ahead - 1) < h->n && hdr[0] == h->first &&
		(hdr[1] & ~PREAUTH_MARKER) == h->second &&
		be32(hdr + 4) == h->time + (uint32_t)ahead * h->step && be32(hdr + 8) == ssrc;
}

/* Returns the place of this header's tag, or -1. */
static inline int preauth_heads_find(
	const struct preauth_heads *h, uint32_t ssrc, const uint8_t hdr[PREAUTH_HEADER_LEN])
{
	return preauth_heads_expects(h, ssrc, hdr) && !(hdr[1] & PREAUTH_MARKER)
		? (uint16_t)(be16(hdr + 2) - h->seq - 1)
		: -1;
}
/* Call it after the packet with this header was authenticated or sent. Computes tag[PREAUTH_HEADS]
 * if the stream is regular, so that the next headers can be expected, and if no known tag remains.
 * Older headers change nothing. */
void preauth_heads_learn(struct preauth_heads *h, uint32_t *ssrc, uint32_t *tag,
	const struct preauth_key *k, const uint8_t hdr[PREAUTH_HEADER_LEN]);

#endif
