/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Header extensions of RTP (RFC 8285): finds one element. Pure. */
#ifndef PROTO_RTP_EXT_H
#define PROTO_RTP_EXT_H

#include "base/bytes.h"

#define RTP_MID_URI "urn:ietf:params:rtp-hdrext:sdes:mid" /* RFC 9143 15 */
#define RTP_MID_MAX 16u /* bytes of a MID that the one-byte form can carry */

struct rtp_ext { /* points into the packet */
	const uint8_t *at;
	uint8_t len;
};

/* The first element with this ID (1 to 255), in the one-byte or the two-byte form. Reads len bytes
 * at p only. False: the packet has none, or what comes before it is malformed. */
bool rtp_ext_find(struct rtp_ext *out, const uint8_t *p, size_t len, uint8_t id);

#endif
