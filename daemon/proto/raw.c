/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Recognises the first datagram of a party (RFC 6347 4.1, RFC 8855 5.1, ITU-T T.38 9.1). Reads the beginning only. */
#include "proto/raw.h"

#define UDPTL_FIRST_MAX 1024u /* sequence numbers begin at 0; some packets may have been lost */
#define DTLS_HANDSHAKE  22
#define DTLS_RECORD_LEN 13
#define BFCP_HEADER_LEN 12
#define BFCP_PRIMITIVES 32

/* UDPTLPacket in aligned PER: sequence number, length and octets of the primary IFP packet, then which error recovery follows. */
static bool opens_udptl(const uint8_t *p, size_t len)
{
	size_t at = 3, ifp;

	if (len < 5 || be16(p) >= UDPTL_FIRST_MAX)
		return false;
	ifp = p[2];
	if (ifp >> 7) { /* two octets of length, up to 16K */
		ifp = be16(p + 2) & 0x3fff;
		at = 4;
		if (p[2] >> 6 != 2)
			return false;
	}
	return ifp > 0 && len > at + ifp && !(p[at + ifp] & 0x7f);
}

static bool opens_dtls(const uint8_t *p, size_t len)
{
	return len >= DTLS_RECORD_LEN && p[0] == DTLS_HANDSHAKE && p[1] == 0xfe &&
		len >= DTLS_RECORD_LEN + (size_t)be16(p + 11);
}

/* Version 2 is BFCP over UDP; 1 was its first drafts. The payload is counted in words. */
static bool opens_bfcp(const uint8_t *p, size_t len)
{
	return len >= BFCP_HEADER_LEN && (p[0] >> 5 == 2 || p[0] >> 5 == 1) && p[1] &&
		p[1] <= BFCP_PRIMITIVES && len == BFCP_HEADER_LEN + 4 * (size_t)be16(p + 2);
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
