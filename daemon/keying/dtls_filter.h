/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A look at DTLS records before OpenSSL sees them (RFC 6347 4.1, 4.2.2). Pure, no allocation.
 * A datagram with any bad record is dropped whole: no genuine peer sends one. */
#ifndef KEYING_DTLS_FILTER_H
#define KEYING_DTLS_FILTER_H

#include "base/bytes.h"

#define DTLS_RECORD_HDR    13u
#define DTLS_HANDSHAKE_HDR 12u
#define DTLS_RECORD_MAX    (16384u + 2048u) /* RFC 5246 6.2.3 */
#define DTLS_MESSAGE_MAX   16384u           /* a handshake message; chains are shorter */

/* Reasons to drop a datagram.
 * X(id, counter name, text) */
/* clang-format off */
#define DTLS_DROPS(X) \
	X(SHORT, "short", "shorter than a record header") \
	X(TYPE, "type", "unknown content type") \
	X(VERSION, "version", "not DTLS 1.0 or 1.2 in the record header") \
	X(LENGTH, "length", "record is empty, too long, or exceeds the datagram") \
	X(EPOCH, "epoch", "epoch that no handshake has reached") \
	X(PLAIN_DATA, "plain_data", "application data without encryption") \
	X(FRAGMENT, "fragment", "handshake fragment out of bounds") \
	X(MESSAGE, "message", "handshake message of an unknown type or too long") \
	X(ALERT, "alert", "malformed alert, or an alert from the wrong epoch") \
	X(CIPHER_CHANGE, "cipher_change", "malformed change of cipher") \
	X(UNPROVEN, "unproven", "first packet of an unproven source is no ClientHello") \
	X(STATE, "state", "not expected in this state") \
	X(RELEASED, "released", "arrived after the memory of the handshake was released") \
	X(QUEUE, "queue", "no room for packets to send") \
	X(LIBRARY, "library", "dropped by OpenSSL")
/* clang-format on */

enum dtls_drop {
	DTLS_DROP_NONE,
#define X(id, name, text) DTLS_DROP_##id,
	DTLS_DROPS(X)
#undef X
		DTLS_DROP_COUNT
};
const char *dtls_drop_name(enum dtls_drop d);

/* Whether this UDP payload is DTLS among RTP, RTCP, STUN, ZRTP and TURN (RFC 7983 7). */
static inline bool dtls_is(const uint8_t *p, size_t len)
{
	return len > 0 && p[0] >= 20 && p[0] <= 63;
}

/* Checks all records of a datagram. encrypted: our handshake has reached encryption, so that
 * unencrypted alerts are forged or late, and are dropped. */
enum dtls_drop dtls_filter(const uint8_t *p, size_t len, bool encrypted);

/* Whether an unencrypted alert is among the records of a datagram that dtls_filter() accepted. */
bool dtls_has_plain_alert(const uint8_t *p, size_t len);

/* A ClientHello at the beginning of a datagram: its first fragment, which has all fields up to the
 * cookie (RFC 6347 4.2.1). Slices point into the datagram. */
struct dtls_hello {
	uint64_t record_seq;  /* 48 bits */
	uint16_t message_seq; /* 0 for the first, 1 for the one with our cookie */
	uint16_t version;     /* client_version */
	struct str random, session, cookie;
};
/* 0, -ENOMSG if it is something else, -EBADMSG if it is malformed. dtls_filter() must have accepted
 * the datagram. */
int dtls_hello_parse(struct dtls_hello *out, const uint8_t *p, size_t len);

#endif
