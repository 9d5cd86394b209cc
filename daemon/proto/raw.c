/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Recognises datagrams of a protocol, and first ones of a party (RFC 6347 4.1, RFC 8855 5.1, ITU-T
 * T.38 7 and 9.1). */
#include "proto/raw.h"

#define UDPTL_FIRST_MAX 256u /* sequence numbers begin at 0; some packets may have been lost */
#define DTLS_HANDSHAKE  22
#define DTLS_TYPES_MIN  20
#define DTLS_TYPES_MAX  26
#define DTLS_RECORD_LEN 13
#define BFCP_HEADER_LEN 12
#define BFCP_PRIMITIVES 18 /* 1 to 18: RFC 8855 5.1 */
/* lower values are codes of CoAP requests, which have the same first byte */
#define BFCP_FIRST 8

/* An open type in aligned PER: its length in one or two octets, up to 16K, then the octets. Returns
 * the offset after it, 0 = malformed. */
static size_t field(const uint8_t *p, size_t at, size_t len, size_t *start, size_t *size)
{
	if (at >= len)
		return 0;
	*size = p[at];
	*start = at + 1;
	if (p[at] >> 7) {
		if (p[at] >> 6 != 2 || at + 1 >= len)
			return 0;
		*size = be16(p + at) & 0x3fff;
		*start = at + 2;
	}
	return *start + *size <= len ? *start + *size : 0;
}

/* An IFP packet: an indicator, or data with at least one field. */
static bool is_ifp(const uint8_t *p, size_t len)
{
	bool data = p[0] >> 6 == 3;

	if (p[0] >> 6 == 1 || p[0] >> 6 == 2 || (p[0] & 0x20 ? len < 2 : p[0] & 1))
		return false;
	return data ? len >= 3 && (p[0] & 0x20 || p[1] > 0) : len <= 3;
}

/* UDPTLPacket in aligned PER: sequence number, the primary IFP packet, then previous IFP packets or
 * FEC. Up to the last byte. */
static bool opens_udptl(const uint8_t *p, size_t len)
{
	size_t start = 0, size = 0, at = len < 5 ? 0 : field(p, 2, len, &start, &size);
	bool fec;
	uint8_t n;

	if (!at || !size || be16(p) >= UDPTL_FIRST_MAX || !is_ifp(p + start, size) || at >= len ||
		p[at] & 0x7f)
		return false;
	fec = p[at++] >> 7;
	if (fec)
		at = field(p, at, len, &start, &size);
	if (!at || at >= len)
		return false;
	n = p[at++];
	for (; n; n--) {
		at = field(p, at, len, &start, &size);
		if (!at || !size || (!fec && !is_ifp(p + start, size)))
			return false;
	}
	return at == len;
}

static bool is_udptl(const uint8_t *p, size_t len)
{
	size_t start = 0, size = 0, at = len < 5 ? 0 : field(p, 2, len, &start, &size);

	return at && size && at < len && !(p[at] & 0x7f);
}

static bool opens_dtls(const uint8_t *p, size_t len)
{
	return len >= DTLS_RECORD_LEN && p[0] == DTLS_HANDSHAKE && p[1] == 0xfe &&
		len >= DTLS_RECORD_LEN + (size_t)be16(p + 11);
}

/* A record, or the unified header of version 1.3 (RFC 9147 4). */
static bool is_dtls(const uint8_t *p, size_t len)
{
	if (len && p[0] >> 5 == 1)
		return true;
	return len >= DTLS_RECORD_LEN && p[0] >= DTLS_TYPES_MIN && p[0] <= DTLS_TYPES_MAX &&
		p[1] == 0xfe && len >= DTLS_RECORD_LEN + (size_t)be16(p + 11);
}

/* Version 2 is BFCP over UDP; 1 was its first drafts. The payload is counted in words. The low bits
 * of the first byte are flags of responses and fragments, and reserved ones. */
static bool is_bfcp(const uint8_t *p, size_t len)
{
	return len >= BFCP_HEADER_LEN && (p[0] >> 5 == 2 || p[0] >> 5 == 1) && !(p[0] & 7) &&
		p[1] && p[1] <= BFCP_PRIMITIVES &&
		(p[0] & 8 || len == BFCP_HEADER_LEN + 4 * (size_t)be16(p + 2));
}

/* A request, not a fragment, with a conference and a transaction. */
static bool opens_bfcp(const uint8_t *p, size_t len)
{
	return is_bfcp(p, len) && !(p[0] & 0x1f) && p[1] >= BFCP_FIRST &&
		be16(p + 4) + be16(p + 6) > 0 && be16(p + 8) > 0;
}

bool raw_opens(enum raw_kind kind, const uint8_t *p, size_t len)
{
	switch (kind) {
	case RAW_UDPTL:
		return opens_udptl(p, len);
	case RAW_DTLS:
		return opens_dtls(p, len);
	case RAW_BFCP:
		return opens_bfcp(p, len);
	default:
		return false;
	}
}

bool raw_is_of(enum raw_kind kind, const uint8_t *p, size_t len)
{
	switch (kind) {
	case RAW_UDPTL:
		return is_udptl(p, len);
	case RAW_DTLS:
		return is_dtls(p, len);
	case RAW_BFCP:
		return is_bfcp(p, len);
	default:
		return true;
	}
}
