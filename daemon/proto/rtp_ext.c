/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proto/rtp_ext.h"

#include "proto/rtp.h"

#define ONE_BYTE      0xbedeu
#define TWO_BYTE      0x1000u /* the low four bits are the application's */
#define TWO_BYTE_MASK 0xfff0u
#define ONE_BYTE_STOP 15u

/* RFC 8285 4.2. ID 0 is a byte of padding; with a length it ends the list, and so does ID 15. */
static bool find_one_byte(struct rtp_ext *out, const uint8_t *p, size_t len, uint8_t id)
{
	for (size_t at = 0; at < len;) {
		uint8_t has = p[at] >> 4, n = (uint8_t)((p[at] & 15) + 1);

		if (!p[at]) {
			at++;
			continue;
		}
		if (!has || has == ONE_BYTE_STOP || at + 1 + n > len)
			return false;
		if (has == id) {
			*out = (struct rtp_ext){p + at + 1, n};
			return true;
		}
		at += 1 + (size_t)n;
	}
	return false;
}

/* RFC 8285 4.3. */
static bool find_two_byte(struct rtp_ext *out, const uint8_t *p, size_t len, uint8_t id)
{
	for (size_t at = 0; at < len;) {
		if (!p[at]) {
			at++;
			continue;
		}
		if (at + 2 > len || at + 2 + p[at + 1] > len)
			return false;
		if (p[at] == id) {
			*out = (struct rtp_ext){p + at + 2, p[at + 1]};
			return true;
		}
		at += 2 + (size_t)p[at + 1];
	}
	return false;
}

bool rtp_ext_find(struct rtp_ext *out, const uint8_t *p, size_t len, uint8_t id)
{
	struct rtp_hdr h;
	int end = rtp_parse(&h, p, len);
	size_t at = RTP_FIXED_LEN + 4;
	uint16_t form;

	if (end < 0 || !id || !(p[0] & RTP_X_BIT))
		return false;
	at += 4 * (size_t)(p[0] & 0x0f);
	form = be16(p + at - 4); /* rtp_parse() has seen these four bytes */
	if (form == ONE_BYTE)
		return find_one_byte(out, p + at, (size_t)end - at, id);
	return (form & TWO_BYTE_MASK) == TWO_BYTE &&
		find_two_byte(out, p + at, (size_t)end - at, id);
}
