/* SPDX-License-Identifier: GPL-2.0-or-later */
/* RTCP reports (RFC 3550 6.4.1, 6.4.2) and what they mean for ears (ITU-T G.107, much simplified).
 * Lengths are compared with what is left before they are believed. Pure. */
#include "proto/rtcp.h"

#include <errno.h>

enum {
	SENDER_REPORT = 200,
	RECEIVER_REPORT = 201,
	DESCRIPTION = 202,
	BYE = 203,
	TRANSPORT_FEEDBACK = 205,
	PAYLOAD_FEEDBACK = 206,
	EXTENDED_REPORT = 207,
	MID_ITEM = 15,            /* of DESCRIPTION */
	CONGESTION_FEEDBACK = 11, /* format of TRANSPORT_FEEDBACK */
	SENDER_LEN = 28,
	RECEIVER_LEN = 8,
	BLOCK_LEN = 24
};

static int32_t signed24(uint32_t v)
{
	return v & 0x800000 ? (int32_t)v - 0x1000000 : (int32_t)v;
}

static void read_block(struct rtcp_block *b, const uint8_t *p)
{
	*b = (struct rtcp_block){.ssrc = be32(p),
		.fraction = p[4],
		.lost = signed24(be32(p + 4) & 0xffffff),
		.highest = be32(p + 8),
		.jitter = be32(p + 12),
		.lsr = be32(p + 16),
		.dlsr = be32(p + 20)};
}

static void read_report(struct rtcp_info *out, const uint8_t *p, size_t len)
{
	size_t at = p[1] == SENDER_REPORT ? SENDER_LEN : RECEIVER_LEN;
	unsigned n = p[0] & 0x1f;

	if (len < at)
		return;
	out->ssrc = be32(p + 4);
	if (p[1] == SENDER_REPORT) {
		out->sender = true;
		out->ntp = (uint64_t)be32(p + 8) << 32 | be32(p + 12);
		out->rtp = be32(p + 16);
		out->packets = be32(p + 20);
		out->octets = be32(p + 24);
	}
	for (; n && at + BLOCK_LEN <= len && out->blocks < RTCP_REPORTS; n--, at += BLOCK_LEN)
		read_block(&out->block[out->blocks++], p + at);
}

int rtcp_read(struct rtcp_info *out, const uint8_t *p, size_t len)
{
	bool any = false;

	*out = (struct rtcp_info){0};
	for (size_t at = 0; at + 8 <= len;) {
		size_t part = 4 + 4 * (size_t)be16(p + at + 2);

		if (p[at] >> 6 != 2 || part < 8)
			break;
		part = part < len - at ? part : len - at;
		if (p[at + 1] == SENDER_REPORT || p[at + 1] == RECEIVER_REPORT) {
			read_report(out, p + at, part);
			any = true;
		}
		at += part;
	}
	return any ? 0 : -EBADMSG;
}

size_t rtcp_drop_feedback(uint8_t *p, size_t len)
{
	size_t at = 0, out = 0;

	while (at + 8 <= len) {
		size_t part = 4 + 4 * (size_t)be16(p + at + 2);

		if (p[at] >> 6 != 2 || at + part > len)
			break;
		if (p[at + 1] != TRANSPORT_FEEDBACK && p[at + 1] != PAYLOAD_FEEDBACK) {
			memmove(p + out, p + at, part);
			out += part;
		}
		at += part;
	}
	memmove(p + out, p + at, len - at);
	return out + (len - at);
}

/* --- Extended reports, congestion control feedback -------------------------------------------- */

struct about {
	uint16_t *at;
	uint32_t n;
};

static void add_about(struct about *a, size_t at)
{
	if (a->n < RTCP_ABOUT && at <= UINT16_MAX)
		a->at[a->n++] = (uint16_t)at;
}

/* A block of an extended report (RFC 3611 3) from begin to end. */
static void block_about(struct about *a, const uint8_t *p, size_t begin, size_t end)
{
	enum { RLE_OF_LOSS = 1, DLRR = 5, SUB_BLOCK = 12, RLE_AFTER_REPAIR = 10 };
	uint8_t type = p[begin];

	if (type == DLRR)
		for (size_t at = begin + 4; at + SUB_BLOCK <= end; at += SUB_BLOCK)
			add_about(a, at);
	else if (begin + 8 <= end &&
		((type >= RLE_OF_LOSS && type <= 7 && type != 4) || type == RLE_AFTER_REPAIR ||
			(type >= 14 && type <= 34)))
		add_about(a, begin + 4);
}

uint32_t rtcp_about(uint16_t at[RTCP_ABOUT], const uint8_t *p, size_t len)
{
	struct about a = {.at = at};
	size_t begin = 8, end;

	if (len < 8)
		return 0;
	if (p[1] == EXTENDED_REPORT)
		for (; begin + 4 <= len; begin = end) {
			end = begin + 4 + 4 * (size_t)be16(p + begin + 2);
			if (end > len)
				break;
			block_about(&a, p, begin, end);
		}
	/* Each SSRC with its metric blocks, then a timestamp (RFC 8888 3.1). */
	else if (p[1] == TRANSPORT_FEEDBACK && (p[0] & 0x1f) == CONGESTION_FEEDBACK)
		for (; begin + 8 + 4 <= len; begin = end) {
			end = begin + 8 + 4 * (((size_t)be16(p + begin + 6) + 1) / 2);
			if (end + 4 > len)
				break;
			add_about(&a, begin);
		}
	return a.n;
}

/* --- Names ------------------------------------------------------------------------------------ */

/* n SSRCs in a part of a packet. */
struct names {
	size_t at, step; /* bytes */
	uint32_t n;
	bool theirs;
};

/* As many as the part has. */
static void add_names(struct rtcp_names *out, const uint8_t *p, size_t len, struct names names)
{
	size_t at = names.at;

	for (uint32_t i = 0; i < names.n && at + 4 <= len && out->n < RTCP_NAMES; i++) {
		out->name[out->n].ssrc = be32(p + at);
		out->name[out->n++].theirs = names.theirs;
		at += names.step;
	}
}

/* Behind the two SSRCs that all feedback begins with. */
static void feedback_names(struct rtcp_names *out, const uint8_t *p, size_t len)
{
	unsigned format = p[0] & 0x1f;
	bool media = p[1] == TRANSPORT_FEEDBACK;

	if (media && format == CONGESTION_FEEDBACK)
		return;
	if (len >= 12 && be32(p + 8))
		add_names(out, p, len, (struct names){8, 4, 1, false});
	/* TMMBR, TMMBN; FIR, TSTR, TSTN */
	if (media ? format == 3 || format == 4 : format >= 4 && format <= 6)
		add_names(out, p, len, (struct names){12, 8, RTCP_NAMES, false});
	else if (!media && format == 7) /* VBCM: what follows is the codec's */
		add_names(out, p, len, (struct names){12, 8, 1, false});
	else if (!media && format == 15 && len >= 20 && memcmp(p + 12, "REMB", 4) == 0)
		add_names(out, p, len, (struct names){20, 4, p[16], false});
}

static void part_names(struct rtcp_names *out, const uint8_t *p, size_t len)
{
	uint32_t count = p[0] & 0x1f, n;
	uint16_t at[RTCP_ABOUT];

	if (p[1] == BYE)
		add_names(out, p, len, (struct names){4, 4, count, true});
	else if (p[1] != DESCRIPTION || count)
		add_names(out, p, len, (struct names){4, 4, 1, true});
	if (p[1] == SENDER_REPORT || p[1] == RECEIVER_REPORT)
		add_names(out, p, len,
			(struct names){p[1] == SENDER_REPORT ? SENDER_LEN : RECEIVER_LEN, BLOCK_LEN,
				count, false});
	else if (p[1] == TRANSPORT_FEEDBACK || p[1] == PAYLOAD_FEEDBACK)
		feedback_names(out, p, len);
	n = rtcp_about(at, p, len);
	for (uint32_t i = 0; i < n; i++)
		add_names(out, p, len, (struct names){at[i], 4, 1, false});
}

void rtcp_names_read(struct rtcp_names *out, const uint8_t *p, size_t len)
{
	out->n = 0;
	for (size_t at = 0; at + 8 <= len;) {
		size_t part = 4 + 4 * (size_t)be16(p + at + 2);

		if (p[at] >> 6 != 2 || part < 8 || at + part > len)
			return;
		part_names(out, p + at, part);
		at += part;
	}
}

/* Chunks of a source description (RFC 3550 6.5). Each ends with a zero, padded to 32 bits. */
static uint32_t part_mids(struct rtcp_mid *out, uint32_t n, const uint8_t *p, size_t len)
{
	uint32_t count = p[0] & 0x1f, ssrc;
	size_t at = 4, end;

	for (uint32_t i = 0; i < count && at + 4 <= len; i++) {
		ssrc = be32(p + at);
		for (at += 4; at < len && p[at]; at = end) {
			if (at + 2 > len)
				return n;
			end = at + 2 + p[at + 1];
			if (end > len)
				return n;
			if (p[at] == MID_ITEM && n < RTCP_MIDS)
				out[n++] = (struct rtcp_mid){
					ssrc, {(const char *)p + at + 2, p[at + 1]}};
		}
		at = (at / 4 + 1) * 4;
	}
	return n;
}

uint32_t rtcp_mids_read(struct rtcp_mid out[RTCP_MIDS], const uint8_t *p, size_t len)
{
	uint32_t n = 0;

	for (size_t at = 0; at + 8 <= len;) {
		size_t part = 4 + 4 * (size_t)be16(p + at + 2);

		if (p[at] >> 6 != 2 || part < 8 || at + part > len)
			break;
		if (p[at + 1] == DESCRIPTION)
			n = part_mids(out, n, p + at, part);
		at += part;
	}
	return n;
}

uint32_t rtcp_mos(uint32_t rtt_us, uint32_t jitter_us, uint32_t loss)
{
	/* A receiver's buffer holds about twice the jitter; 10 ms for coding. */
	double delay_ms = rtt_us / 2000.0 + 2 * (jitter_us / 1000.0) + 10;
	double r = 93.2 - (delay_ms < 160 ? delay_ms / 40 : (delay_ms - 120) / 10) -
		2.5 * (loss / 100.0);
	double mos;

	if (r <= 0)
		return 100;
	r = r > 100 ? 100 : r;
	mos = 1 + 0.035 * r + 7e-6 * r * (r - 60) * (100 - r);
	return mos < 1 ? 100 : mos > 5 ? 500 : (uint32_t)(mos * 100 + 0.5);
}
