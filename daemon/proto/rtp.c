/* SPDX-License-Identifier: GPL-2.0-or-later */
/* RTP and RTCP headers, and other protocols on a media port. Reads only unencrypted parts. RFC 3550
 * 5.1 and 6.4, RFC 5761, RFC 7983. */
#include "proto/rtp.h"

#include <errno.h>

/* RFC 6189 5: header, the shortest message, CRC. */
#define ZRTP_FIRST   0x10
#define ZRTP_COOKIE  0x5a525450u
#define ZRTP_MIN_LEN 28u

int rtp_parse(struct rtp_hdr *out, const uint8_t *p, size_t len)
{
	size_t need = RTP_FIXED_LEN;

	if (len < need || p[0] >> 6 != RTP_VERSION)
		return -EBADMSG;
	need += 4 * (size_t)(p[0] & 0x0f);
	if (p[0] & RTP_X_BIT) {
		if (len < need + 4)
			return -EBADMSG;
		need += 4 + 4 * (size_t)be16(p + need + 2);
	}
	if (len < need)
		return -EBADMSG;
	*out = (struct rtp_hdr){.pt = p[1] & 0x7f,
		.marker = p[1] >> 7,
		.seq = be16(p + 2),
		.ts = be32(p + 4),
		.ssrc = be32(p + 8)};
	return (int)need;
}

int rtcp_parse(struct rtcp_hdr *out, const uint8_t *p, size_t len)
{
	if (len < RTCP_FIXED_LEN || p[0] >> 6 != RTP_VERSION)
		return -EBADMSG;
	*out = (struct rtcp_hdr){.pt = p[1], .ssrc = be32(p + 4)};
	return RTCP_FIXED_LEN;
}

enum pkt_kind pkt_classify(const uint8_t *p, size_t len)
{
	if (len < 2)
		return PKT_OTHER;
	if (p[0] <= 3)
		return PKT_STUN;
	if (p[0] >= 20 && p[0] <= 63)
		return PKT_DTLS;
	if (p[0] < 128 || p[0] > 191)
		return p[0] == ZRTP_FIRST && len >= ZRTP_MIN_LEN && be32(p + 4) == ZRTP_COOKIE
			? PKT_ZRTP
			: PKT_OTHER;
	return p[1] >= 192 && p[1] <= 223 ? PKT_RTCP : PKT_RTP;
}
