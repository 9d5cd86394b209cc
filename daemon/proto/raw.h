/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Datagrams of media other than RTP: checks whether one fits the protocol of its m-line. Pure. */
#ifndef PROTO_RAW_H
#define PROTO_RAW_H

#include "base/bytes.h"

enum raw_kind {
	RAW_NONE,
	RAW_UDPTL, /* ITU-T T.38 9.1 */
	RAW_DTLS,  /* RFC 6347, RFC 9147 */
	RAW_BFCP,  /* RFC 8855 5.1 */
	RAW_ANY,   /* of an unknown transport */
};

/* Whether a datagram of this kind may be a party's first: a UDPTL packet with a low sequence
 * number, a DTLS handshake record, a BFCP request. Text, such as SIP, and STUN never are. Reads len
 * bytes at p only. */
bool raw_opens(enum raw_kind kind, const uint8_t *p, size_t len);
/* Whether a datagram fits this protocol at any time of the call. True for unknown protocols. */
bool raw_is_of(enum raw_kind kind, const uint8_t *p, size_t len);

#endif
