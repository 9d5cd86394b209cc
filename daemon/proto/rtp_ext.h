/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Header extensions of RTP (RFC 8285): finds or writes one element. Pure. */
#ifndef PROTO_RTP_EXT_H
#define PROTO_RTP_EXT_H

#include "base/bytes.h"

#define RTP_MID_URI "urn:ietf:params:rtp-hdrext:sdes:mid" /* RFC 9143 15 */
#define RTP_MID_MAX 16u /* bytes of a MID that the one-byte form can carry */
#define RTP_SSRCS   3u  /* of an m-line that are remembered from SDP */

struct rtp_ext { /* points into the packet */
	const uint8_t *at;
	uint8_t len;
};

/* The first element with this ID (1 to 255), in the one-byte or the two-byte form. Reads len bytes
 * at p only. False: the packet has none, or what comes before it is malformed. */
bool rtp_ext_find(struct rtp_ext *out, const uint8_t *p, size_t len, uint8_t id);

struct rtp_ext_edit {
	uint8_t id;           /* of the element to write, 1 to 255; replaces elements of this ID */
	uint8_t drop;         /* also removes elements of this ID; 0 = none */
	struct rtp_ext value; /* at least one byte */
};

/* The most bytes that a value of this length may add to a packet. */
#define RTP_EXT_GROWTH(len) (4u + 2u + (len) + 3u)

/* Writes an element into the extension of a plain packet, which has len bytes at p and room for
 * RTP_EXT_GROWTH() more. The form of the extension stays; a packet without one gets the one-byte
 * form if it can hold the element. Returns by how many bytes header and packet grew, which may be
 * negative. INT32_MIN: packet unchanged. It is malformed, has an extension of another kind, or has
 * the one-byte form, which cannot hold the element. */
int32_t rtp_ext_write(uint8_t *p, size_t len, const struct rtp_ext_edit *e);

#endif
