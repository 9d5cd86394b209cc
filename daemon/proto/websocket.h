/* SPDX-License-Identifier: GPL-2.0-or-later */
/* WebSocket (RFC 6455), a server's side: frames to messages and back. Pure. */
#ifndef PROTO_WEBSOCKET_H
#define PROTO_WEBSOCKET_H

#include "base/bytes.h"

#define WS_CONTROL_MAX 125u
#define WS_HEAD_MAX    14u /* a frame's, with its mask */
#define WS_ACCEPT_LEN  29  /* with the zero */

enum ws_opcode {
	WS_CONTINUATION = 0,
	WS_TEXT = 1,
	WS_BINARY = 2,
	WS_CLOSE = 8,
	WS_PING = 9,
	WS_PONG = 10,
};

enum ws_code { /* why a connection ends (7.4.1) */
	WS_CODE_NORMAL = 1000,
	WS_CODE_AWAY = 1001,
	WS_CODE_PROTOCOL = 1002,
	WS_CODE_NO_STATUS = 1005, /* never sent: there was none */
	WS_CODE_NO_TEXT = 1007,
	WS_CODE_POLICY = 1008,
	WS_CODE_TOO_BIG = 1009,
	WS_CODE_INTERNAL = 1011,
};

/* Puts messages together where they are. max is set by the caller, the rest is zero at first. */
struct ws_reader {
	size_t max;     /* longest message */
	size_t len;     /* of the message so far: the first bytes of the buffer */
	size_t at;      /* where what was not looked at yet begins */
	uint8_t opcode; /* of the message; 0: none has begun */
	bool in_frame, fin;
	uint64_t left; /* of the frame's payload */
	uint8_t mask[4];
	uint32_t masked; /* how far into the mask */
	uint8_t control[WS_CONTROL_MAX];
	size_t control_len;
};

/* buf: *len bytes. WS_TEXT (well-formed UTF-8) or WS_BINARY: a message is buf[0, r->len), call
 * ws_reader_next() when done with it; WS_PING, WS_PONG, WS_CLOSE: its payload is r->control; 0:
 * more bytes are needed, behind those that are left, *len; negative: enum ws_code, negated, to
 * close with. */
int ws_read(struct ws_reader *r, uint8_t *buf, size_t *len);
void ws_reader_next(struct ws_reader *r);

/* What a Close frame's payload says: a code that may be sent back, WS_CODE_NO_STATUS, or what is
 * wrong, negated. */
int ws_close_code(const uint8_t *payload, size_t len);

/* The head of a whole message from a server, or of a control frame: returns its length. */
size_t ws_write_head(uint8_t out[WS_HEAD_MAX], enum ws_opcode opcode, size_t len);
/* Sec-WebSocket-Accept for a client's key (4.2.2). 0, or -EINVAL: that is no key. */
int ws_accept(char out[WS_ACCEPT_LEN], struct str key);

#endif
