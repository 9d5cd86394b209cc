/* SPDX-License-Identifier: GPL-2.0-or-later */
/* RTP and RTCP headers (RFC 3550), and the other protocols on a media port (RFC 7983, RFC 5761).
 * Pure. */
#ifndef PROTO_RTP_H
#define PROTO_RTP_H

#include "base/bytes.h"

#define RTP_FIXED_LEN  12
#define RTP_VERSION    2
#define RTP_P_BIT      0x20
#define RTP_X_BIT      0x10
#define RTCP_FIXED_LEN 8 /* first header word and the sender's SSRC, which SRTCP does not encrypt */

struct rtp_hdr {
	uint32_t ts, ssrc;
	uint16_t seq;
	uint8_t pt;
	bool marker;
};

/* RTP fixed header, CSRC list and extension (RFC 3550 5.1, 5.3.1). Reads len bytes at p only.
 * Returns the header's length, or -EBADMSG. Does not look at the payload: it may be encrypted. */
int rtp_parse(struct rtp_hdr *out, const uint8_t *p, size_t len);

struct rtcp_hdr {
	uint32_t ssrc;
	uint8_t pt;
};

/* Parses the first header of a compound packet. In SRTCP, all that follows it is encrypted. Returns
 * RTCP_FIXED_LEN or -EBADMSG. */
int rtcp_parse(struct rtcp_hdr *out, const uint8_t *p, size_t len);

enum pkt_kind { PKT_RTP, PKT_RTCP, PKT_STUN, PKT_DTLS, PKT_ZRTP, PKT_OTHER };

/* Classifies by the first byte (RFC 7983 7), RTP and RTCP by payload type 192..223 (RFC 5761 4),
 * ZRTP by its magic cookie, too (RFC 6189 5). */
enum pkt_kind pkt_classify(const uint8_t *p, size_t len);

#endif
