/* SPDX-License-Identifier: GPL-2.0-or-later */
/* RTCP sender and receiver reports (RFC 3550 6.4): what a terminal says of what it sends and of what it receives. Pure. */
#ifndef PROTO_RTCP_H
#define PROTO_RTCP_H

#include "base/bytes.h"

#define RTCP_REPORTS 8 /* blocks that are kept; terminals send one or two */

struct rtcp_block { /* on one stream that the sender receives */
	uint32_t ssrc;
	uint8_t fraction; /* lost since the last report, of 256 */
	int32_t lost;     /* in all; negative with duplicates */
	uint32_t highest; /* extended sequence number */
	uint32_t jitter;  /* in the stream's timestamp units */
	uint32_t lsr;     /* middle of the last sender report's NTP time, 0 = none came */
	uint32_t dlsr;    /* since then, in 1/65536 s */
};

struct rtcp_info {
	uint32_t ssrc; /* who reports */
	bool sender;   /* the next four are said */
	uint64_t ntp;  /* 32.32 s */
	uint32_t rtp, packets, octets;
	uint8_t blocks;
	struct rtcp_block block[RTCP_REPORTS];
};

/* A compound packet, decrypted, without SRTCP's trailer. What is no report is skipped; a part that is cut off ends it.
 * 0, or -EBADMSG when there is no report in it. */
int rtcp_read(struct rtcp_info *out, const uint8_t *p, size_t len);

/* Removes feedback (RFC 4585: types 205 and 206) from a compound packet, in place. Returns the new length, 0 if nothing is left.
 * Keeps a malformed packet and everything after it. */
size_t rtcp_drop_feedback(uint8_t *p, size_t len);

/* Estimated opinion, 100 to 500 for MOS 1 to 5: the E-model's rating (ITU-T G.107) for G.711, from one-way delay, jitter and loss
 * alone. loss: percent * 100. */
uint32_t rtcp_mos(uint32_t rtt_us, uint32_t jitter_us, uint32_t loss);

#endif
