/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "audio/rtcp.h"

#include <string.h>

#include "base/bytes.h"
#include "proto/rtcp.h"

#define NTP_EPOCH 2208988800ull /* 1970 in seconds since 1900 */
#define SECOND    1000000000ull
#define CNAME_MAX 63u

enum { SR = 200, RR = 201, SDES = 202, BYE = 203, SDES_CNAME = 1 };

/* ns in units of a clock. */
static uint32_t units(uint64_t ns, uint32_t clock)
{
	return (uint32_t)(ns / SECOND * clock + ns % SECOND * clock / SECOND);
}

/* 32.32 s since 1900. */
static uint64_t ntp(uint64_t ns)
{
	return (ns / SECOND + NTP_EPOCH) << 32 | ((ns % SECOND) << 32) / SECOND;
}

void audio_rtcp_heard(struct audio_rtcp_rx *r, uint32_t ssrc, uint16_t seq, uint32_t ts,
	uint32_t clock, uint64_t at_ns)
{
	uint32_t transit = units(at_ns, clock) - ts, d = transit - r->transit;
	int16_t step = (int16_t)(seq - (uint16_t)r->highest);

	if (!r->heard || r->ssrc != ssrc || step > 3000 || step < -3000) {
		*r = (struct audio_rtcp_rx){.heard = true,
			.ssrc = ssrc,
			.base = 65536u + seq,
			.highest = 65536u + seq,
			.received = 1,
			.transit = transit,
			.lsr = r->ssrc == ssrc ? r->lsr : 0,
			.lsr_ns = r->lsr_ns};
		return;
	}
	if (step > 0)
		r->highest += (uint32_t)step;
	r->received++;
	d = d >> 31 ? 0 - d : d;
	/* The clock changed, so the difference is not jitter of the network. */
	if (d < 10 * clock)
		r->jitter16 += d - ((r->jitter16 + 8) >> 4);
	r->transit = transit;
}

void audio_rtcp_take(struct audio_rtcp_rx *r, const uint8_t *p, size_t len, uint64_t at_ns)
{
	struct rtcp_info info;

	if (rtcp_read(&info, p, len) || !info.sender || (r->heard && info.ssrc != r->ssrc))
		return;
	r->lsr = (uint32_t)(info.ntp >> 16);
	r->lsr_ns = at_ns;
}

int audio_rtcp_loss(const uint8_t *p, size_t len, uint32_t ssrc)
{
	struct rtcp_info info;

	if (rtcp_read(&info, p, len))
		return -1;
	for (uint32_t i = 0; i < info.blocks; i++)
		if (info.block[i].ssrc == ssrc)
			return (info.block[i].fraction * 100 + 255) / 256;
	return -1;
}

/* --- Writing ---------------------------------------------------------------------------------- */

static uint8_t *head(uint8_t *p, uint32_t count, uint8_t type, size_t len)
{
	p[0] = (uint8_t)(2 << 6 | count);
	p[1] = type;
	put_be16(p + 2, (uint16_t)(len / 4 - 1));
	return p + 4;
}

/* Packets lost since the report before, and in total (RFC 3550 A.3). */
static void loss(struct audio_rtcp_rx *r, uint8_t *fraction, int32_t *total)
{
	uint32_t expected = r->highest - r->base + 1;
	uint32_t due = expected - r->expected_before, got = r->received - r->received_before;
	int32_t all = (int32_t)(expected - r->received);

	*fraction = due && due > got ? (uint8_t)(((uint64_t)(due - got) << 8) / due > 255
						       ? 255
						       : ((uint64_t)(due - got) << 8) / due)
				     : 0;
	*total = all > 0x7fffff ? 0x7fffff : all < -0x800000 ? -0x800000 : all;
	r->expected_before = expected;
	r->received_before = r->received;
}

static uint8_t *block(struct audio_rtcp_rx *r, uint64_t now_ns, uint8_t *p)
{
	uint64_t since = now_ns > r->lsr_ns ? now_ns - r->lsr_ns : 0;
	uint8_t fraction;
	int32_t total;

	loss(r, &fraction, &total);
	put_be32(p, r->ssrc);
	put_be32(p + 4, (uint32_t)fraction << 24 | ((uint32_t)total & 0xffffff));
	put_be32(p + 8, r->highest - 65536u);
	put_be32(p + 12, r->jitter16 >> 4);
	put_be32(p + 16, r->lsr);
	put_be32(p + 20, r->lsr ? units(since, 65536) : 0);
	return p + 24;
}

static uint8_t *sender(const struct audio_rtcp_tx *t, uint64_t now_ns, uint8_t *p)
{
	uint64_t when = ntp(now_ns);

	put_be32(p, (uint32_t)(when >> 32));
	put_be32(p + 4, (uint32_t)when);
	put_be32(p + 8, t->ts + (now_ns > t->ns ? units(now_ns - t->ns, t->clock) : 0));
	put_be32(p + 12, t->packets);
	put_be32(p + 16, t->octets);
	return p + 20;
}

static uint8_t *description(const struct audio_rtcp_say *say, uint8_t *p)
{
	size_t name = strlen(say->cname), len;

	name = name < CNAME_MAX ? name : CNAME_MAX;
	len = (4 + 4 + 2 + name + 1 + 3) / 4 * 4; /* ends with at least one zero */
	memset(p, 0, len);
	p = head(p, 1, SDES, len);
	put_be32(p, say->ssrc);
	p[4] = SDES_CNAME;
	p[5] = (uint8_t)name;
	memcpy(p + 6, say->cname, name);
	return p + len - 4;
}

size_t audio_rtcp_write(struct audio_rtcp_rx *r, const struct audio_rtcp_tx *t,
	const struct audio_rtcp_say *say, uint8_t *out)
{
	size_t len = 8 + (t->packets ? 20 : 0) + (r->heard ? 24 : 0);
	uint8_t *p = head(out, r->heard, t->packets ? SR : RR, len);

	put_be32(p, say->ssrc);
	p += 4;
	if (t->packets)
		p = sender(t, say->now_ns, p);
	if (r->heard)
		p = block(r, say->now_ns, p);
	p = description(say, p);
	if (say->bye) {
		p = head(p, 1, BYE, 8);
		put_be32(p, say->ssrc);
		p += 4;
	}
	return (size_t)(p - out);
}
