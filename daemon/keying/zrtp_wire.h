/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ZRTP on the wire: packet header, checksum, and the types of messages (RFC 6189 5). Pure. */
#ifndef KEYING_ZRTP_WIRE_H
#define KEYING_ZRTP_WIRE_H

#include "base/bytes.h"

#define ZRTP_HEADER      12u
#define ZRTP_CRC         4u
#define ZRTP_PREAMBLE    12u /* of a message: 0x505a, its length, its type */
#define ZRTP_MAC         8u
#define ZRTP_MESSAGE_MAX 480u

/* X(id, type, least length of the message in bytes) */
/* clang-format off */
#define ZRTP_MESSAGES(X) \
	X(HELLO, "Hello   ", 88) X(HELLO_ACK, "HelloACK", 12) X(COMMIT, "Commit  ", 100) \
	X(DHPART1, "DHPart1 ", 84) X(DHPART2, "DHPart2 ", 84) X(CONFIRM1, "Confirm1", 76) \
	X(CONFIRM2, "Confirm2", 76) X(CONF2_ACK, "Conf2ACK", 12) X(ERROR, "Error   ", 16) \
	X(ERROR_ACK, "ErrorACK", 12) X(GOCLEAR, "GoClear ", 20) X(CLEAR_ACK, "ClearACK", 12) \
	X(SASRELAY, "SASrelay", 76) X(RELAY_ACK, "RelayACK", 12) X(PING, "Ping    ", 24) \
	X(PING_ACK, "PingACK ", 36)
/* clang-format on */
enum zrtp_message {
#define X(id, type, least) ZRTP_M_##id,
	ZRTP_MESSAGES(X)
#undef X
		ZRTP_M_COUNT
};

struct zrtp_msg {
	uint16_t len; /* 0: none */
	uint8_t b[ZRTP_MESSAGE_MAX];
};

/* CRC-32C (RFC 4960 B). _plain: without instructions of the processor for it. */
uint32_t zrtp_crc(const uint8_t *p, size_t len);
uint32_t zrtp_crc_plain(const uint8_t *p, size_t len);

/* What a packet carries. 0; -EBADMSG: length, -EPROTO: cookie, -EILSEQ: checksum, -ENOMSG: not a
 * message of this version, or too short for its type. *msg points into the packet. */
int zrtp_parse(enum zrtp_message *type, const uint8_t **msg, uint32_t *msg_len, const uint8_t *p,
	size_t len);
/* The type in a packet of ours. */
bool zrtp_is_of_type(const uint8_t *p, size_t len, enum zrtp_message type);
/* SSRC of a packet that zrtp_parse() accepted. */
uint32_t zrtp_packet_ssrc(const uint8_t *p);
/* Wraps a message. buf holds ZRTP_HEADER + len + ZRTP_CRC bytes. Returns their number. */
uint32_t zrtp_wrap(uint8_t *buf, const struct zrtp_msg *m, uint16_t seq, uint32_t ssrc);

/* Begins a message: preamble and type. The length is set by zrtp_msg_end(). */
void zrtp_msg_begin(struct zrtp_msg *m, enum zrtp_message type);
/* Appends bytes; NULL: zeroes. */
void zrtp_msg_add(struct zrtp_msg *m, const void *p, size_t len);
void zrtp_msg_add32(struct zrtp_msg *m, uint32_t v);
/* Writes the length. more: bytes that will still be appended. */
void zrtp_msg_end(struct zrtp_msg *m, uint32_t more);

#endif
