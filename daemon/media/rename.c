/* SPDX-License-Identifier: GPL-2.0-or-later */
/* SSRCs ("names") that sources get toward SRTP after a restart. What an earlier life sent under a
 * key is never known for certain: its record may be late, rolled back, or restored for the second
 * time. Plain RTP proves nothing, and an SRTP terminal owns its key: both can send other words with
 * an SSRC and index of before, which would be enciphered with a keystream that was used (RFC 3711
 * 9.1). So each life sends under SSRCs of its own, and no (key, SSRC, index) of an earlier life
 * comes again, whatever the record says. No clock and no answer of Redis is needed for that.
 *
 * SRTP in, SRTP out: the engine renames, because the header may not change before it is verified
 * (xc_job.ssrc_change). Plain RTP is renamed as it comes in. A name has its own index, which begins
 * with ROC 0, as its receiver expects.
 *
 * A name is a keyed permutation of the SSRC, a Feistel network of four rounds (Luby and Rackoff
 * 1988) with SipHash: a source that may choose its SSRC cannot choose the name, and reports about
 * the name are translated back. The key is random in each life. Pure. */
#include "media/rename.h"
#include "base/hash.h"
#include "media/state.h"
#include "proto/rtcp.h"

enum { ROUNDS = 4 };

static uint16_t mix(uint64_t key, uint8_t round, uint16_t half)
{
	static const uint8_t label[8] = "rename";
	uint8_t k[16], in[3] = {round, (uint8_t)(half >> 8), (uint8_t)half};

	memcpy(k, &key, sizeof(key));
	memcpy(k + 8, label, sizeof(label));
	return (uint16_t)hash_siphash(k, in, sizeof(in));
}

uint32_t media_rename(uint64_t key, uint32_t ssrc)
{
	uint16_t l = (uint16_t)(ssrc >> 16), r = (uint16_t)ssrc;

	for (uint8_t i = 0; i < ROUNDS; i++) {
		uint16_t next = l ^ mix(key, i, r);

		l = r;
		r = next;
	}
	return (uint32_t)l << 16 | r;
}

uint32_t media_rename_back(uint64_t key, uint32_t name)
{
	uint16_t l = (uint16_t)(name >> 16), r = (uint16_t)name;

	for (uint8_t i = ROUNDS; i > 0; i--) {
		uint16_t before = r ^ mix(key, i - 1, l);

		r = l;
		l = before;
	}
	return (uint32_t)l << 16 | r;
}

static void one(uint64_t key, uint8_t *p, bool back)
{
	put_be32(p, back ? media_rename_back(key, be32(p)) : media_rename(key, be32(p)));
}

/* n SSRCs in a part of a packet. */
struct names {
	size_t at, step; /* bytes */
	uint32_t n;
	bool back;
};

/* Renames as many as the part has. */
static void some(uint64_t key, uint8_t *p, size_t len, struct names names)
{
	size_t at = names.at;

	for (uint32_t i = 0; i < names.n && at + 4 <= len; i++, at += names.step)
		one(key, p + at, names.back);
}

/* Chunks of source descriptions (RFC 3550 6.5): each begins with its SSRC and ends with a zero,
 * filled up to 32 bits. */
static void chunks(uint64_t key, uint8_t *p, size_t len, uint32_t n)
{
	size_t at = 4;

	for (uint32_t i = 0; i < n && at + 4 <= len; i++) {
		one(key, p + at, false);
		at += 4;
		while (at < len && p[at])
			at += at + 1 < len ? 2 + (size_t)p[at + 1] : 1;
		at = (at / 4 + 1) * 4;
	}
}

enum { SR = 200, RR, SDES, BYE, APP, RTPFB, PSFB, XR };
enum { CCFB = 11 }; /* congestion control feedback, a format of RTPFB (RFC 8888) */

static void sender(uint64_t key, uint8_t *p, size_t len)
{
	uint32_t count = p[0] & 0x1f;

	if (p[1] == SDES)
		chunks(key, p, len, count);
	else
		some(key, p, len, (struct names){4, 4, p[1] == BYE ? count : 1, false});
}

/* Renames the SSRC that feedback is about (RFC 4585 6.1). FIR, TMMBR, similar messages and REMB
 * have it in their own part (RFC 5104 4.2 and 4.3, draft-alvestrand-rmcat-remb). */
static void feedback(uint64_t key, uint8_t *p, size_t len)
{
	unsigned format = p[0] & 0x1f;

	if (p[1] == RTPFB && format == CCFB)
		return;
	if (len >= 12 && be32(p + 8))
		one(key, p + 8, true);
	if (p[1] == RTPFB ? format == 3 || format == 4 : format >= 4 && format <= 6)
		some(key, p, len, (struct names){12, 8, UINT32_MAX, true});
	else if (p[1] == PSFB && format == 7) /* VBCM: what follows is the codec's */
		some(key, p, len, (struct names){12, 8, 1, true});
	else if (p[1] == PSFB && format == 15 && len >= 20 && memcmp(p + 12, "REMB", 4) == 0)
		some(key, p, len, (struct names){20, 4, p[16], true});
}

/* Report blocks (RFC 3550 6.4), extended reports, and feedback. */
static void about(uint64_t key, uint8_t *p, size_t len)
{
	uint32_t count = p[0] & 0x1f, n;
	uint16_t at[RTCP_ABOUT];

	if (p[1] == SR || p[1] == RR)
		some(key, p, len, (struct names){p[1] == SR ? 28 : 8, 24, count, true});
	else if (p[1] == RTPFB || p[1] == PSFB)
		feedback(key, p, len);
	n = rtcp_about(at, p, len);
	for (uint32_t i = 0; i < n; i++)
		one(key, p + at[i], true);
}

void media_rename_rtcp(uint64_t key, uint8_t *p, size_t len, bool from_source)
{
	size_t at = 0, part;

	for (; at + 8 <= len; at += part) {
		part = 4 * ((size_t)be16(p + at + 2) + 1);
		if (at + part > len)
			part = len - at;
		if (p[at + 1] < SR || p[at + 1] > XR || p[at] >> 6 != 2)
			return;
		if (from_source)
			sender(key, p + at, part);
		else
			about(key, p + at, part);
	}
}
