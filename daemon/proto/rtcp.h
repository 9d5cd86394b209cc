/* SPDX-License-Identifier: GPL-2.0-or-later */
/* RTCP sender and receiver reports (RFC 3550 6.4). Pure. */
#ifndef PROTO_RTCP_H
#define PROTO_RTCP_H

#include "base/bytes.h"

#define RTCP_REPORTS 8 /* blocks that are stored; terminals send one or two */

struct rtcp_block { /* a report on one received stream */
	uint32_t ssrc;
	uint8_t fraction; /* fraction lost since the last report, in 1/256 */
	int32_t lost;     /* total; negative with duplicates */
	uint32_t highest; /* highest extended sequence number */
	uint32_t jitter;  /* in timestamp units of the stream */
	uint32_t lsr;  /* middle 32 bits of the last sender report's NTP time, 0 = none received */
	uint32_t dlsr; /* delay since that report, in 1/65536 s */
};

struct rtcp_info {
	uint32_t ssrc; /* SSRC of the reporter */
	bool sender;   /* a sender report: the next four are valid */
	uint64_t ntp;  /* 32.32 s */
	uint32_t rtp, packets, octets;
	uint8_t blocks;
	struct rtcp_block block[RTCP_REPORTS];
};

/* Parses a decrypted compound packet without SRTCP's trailer. Skips packets other than reports; a
 * truncated packet ends it. 0, or -EBADMSG if it has no report. */
int rtcp_read(struct rtcp_info *out, const uint8_t *p, size_t len);

/* Removes feedback (RFC 4585: types 205 and 206) from a compound packet, in place. Returns the new
 * length, 0 if nothing is left. Keeps a malformed packet and everything after it. */
size_t rtcp_drop_feedback(uint8_t *p, size_t len);

#define RTCP_ABOUT 192 /* more than a packet of 1,500 bytes has */

/* Finds the SSRCs that an extended report (RFC 3611) or congestion control feedback (RFC 8888)
 * reports on. Writes their offsets in this part of a compound packet. Returns their number; 0 for
 * other parts. Malformed data ends the list. Of extended reports it knows the blocks of RFC 3611
 * and RFC 5725, and those by RFC 6792 (types 14 to 34), which all have the SSRC first. */
uint32_t rtcp_about(uint16_t at[RTCP_ABOUT], const uint8_t *p, size_t len);

#define RTCP_NAMES 64 /* SSRCs of a compound packet that are looked at */

struct rtcp_names {
	uint32_t n;
	struct {
		uint32_t ssrc;
		bool theirs; /* of a sender of this RTCP; else of media that it is about */
	} name[RTCP_NAMES];
};

/* SSRCs that a deciphered compound packet names: senders, sources that left or are described, media
 * that reports and feedback are about (RFC 3550 6, RFC 4585 6, RFC 5104 4.3, REMB, rtcp_about()).
 * Malformed data ends the list. */
void rtcp_names_read(struct rtcp_names *out, const uint8_t *p, size_t len);

#define RTCP_MIDS 32

struct rtcp_mid {
	uint32_t ssrc;
	struct str mid; /* a slice of the packet */
};

/* The MID items of source descriptions (RFC 9143 15.2) in a deciphered compound packet, the first
 * RTCP_MIDS. Returns their number. Malformed data ends the list. */
uint32_t rtcp_mids_read(struct rtcp_mid out[RTCP_MIDS], const uint8_t *p, size_t len);

/* Estimated opinion score, 100 to 500 for MOS 1 to 5: the E-model's rating (ITU-T G.107) for G.711,
 * from one-way delay, jitter and loss only. loss: in hundredths of a percent. */
uint32_t rtcp_mos(uint32_t rtt_us, uint32_t jitter_us, uint32_t loss);

#endif
