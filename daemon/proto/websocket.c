/* SPDX-License-Identifier: GPL-2.0-or-later */
/* WebSocket frames and messages (RFC 6455 5). A client that sends unmasked frames, reserved bits or
 * opcodes, lengths that are longer than they need be, control frames in pieces, or text that is no
 * UTF-8, is told so by a code. No extensions. A message is put together in the buffer that its
 * frames came in, so it costs no more memory than its longest length. Pure. */
#include "proto/websocket.h"

#include <errno.h>
#include <openssl/sha.h>

#include "proto/base64.h"
#include "proto/utf8.h"

static bool is_control(uint8_t opcode)
{
	return opcode & 8;
}

/* Length of the head at p, 0 if it is not whole, or negative. */
static int parse_head(struct ws_reader *r, uint8_t *opcode, const uint8_t *p, size_t have)
{
	size_t need = 2 + 4;
	uint8_t len7;

	if (have < 2)
		return 0;
	*opcode = p[0] & 15;
	len7 = p[1] & 127;
	if (p[0] & 0x70 || !(p[1] & 0x80))
		return -WS_CODE_PROTOCOL;
	if (is_control(*opcode) ? *opcode > WS_PONG || !(p[0] & 0x80) || len7 > WS_CONTROL_MAX
				: *opcode > WS_BINARY ||
				(r->opcode ? *opcode != WS_CONTINUATION
					   : *opcode == WS_CONTINUATION))
		return -WS_CODE_PROTOCOL;
	need += len7 == 127 ? 8 : len7 == 126 ? 2 : 0;
	if (have < need)
		return 0;
	r->left = len7 == 127 ? (uint64_t)be32(p + 2) << 32 | be32(p + 6)
		: len7 == 126 ? be16(p + 2)
			      : len7;
	if ((len7 == 126 && r->left < 126) ||
		(len7 == 127 && (r->left >> 16 == 0 || r->left >> 63)))
		return -WS_CODE_PROTOCOL;
	memcpy(r->mask, p + need - 4, 4);
	r->masked = 0;
	return (int)need;
}

static void unmask(struct ws_reader *r, uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		p[i] ^= r->mask[(r->masked + i) & 3];
	r->masked = (r->masked + (uint32_t)(len & 3)) & 3;
}

/* A frame's head and, of control frames, all of it: its opcode, 0 if it is not whole, or negative.
 */
static int begin_frame(struct ws_reader *r, const uint8_t *buf, size_t len, uint8_t *opcode)
{
	const uint8_t *p = buf + r->at;
	int n = parse_head(r, opcode, p, len - r->at);

	if (n <= 0)
		return n;
	if (is_control(*opcode)) {
		if (len - r->at < (size_t)n + r->left)
			return 0;
		r->control_len = (size_t)r->left;
		memcpy(r->control, p + n, r->control_len);
		unmask(r, r->control, r->control_len);
		r->at += (size_t)n + r->control_len;
		return *opcode;
	}
	if (r->left > r->max || r->len + r->left > r->max)
		return -WS_CODE_TOO_BIG;
	r->fin = p[0] & 0x80;
	r->opcode = *opcode ? *opcode : r->opcode;
	r->in_frame = true;
	r->at += (size_t)n;
	return 1;
}

static void take_payload(struct ws_reader *r, uint8_t *buf, size_t len)
{
	size_t n = r->left < len - r->at ? (size_t)r->left : len - r->at;

	memmove(buf + r->len, buf + r->at, n);
	unmask(r, buf + r->len, n);
	r->len += n;
	r->at += n;
	r->left -= n;
	if (r->left == 0)
		r->in_frame = false;
}

int ws_read(struct ws_reader *r, uint8_t *buf, size_t *len)
{
	while (r->in_frame || r->at < *len) {
		uint8_t opcode = 0;
		int got = r->in_frame ? 1 : begin_frame(r, buf, *len, &opcode);

		if (got < 0 || (got && is_control(opcode)))
			return got;
		if (got == 0 || (r->left && r->at == *len))
			break;
		take_payload(r, buf, *len);
		if (r->in_frame || !r->fin)
			continue;
		if (r->opcode == WS_TEXT && !utf8_valid((struct str){(char *)buf, r->len}))
			return -WS_CODE_NO_TEXT;
		return r->opcode;
	}
	/* what is left moves up, so that no more than a frame's head is kept besides the message */
	if (r->len != r->at && *len > r->at)
		memmove(buf + r->len, buf + r->at, *len - r->at);
	*len = r->len + (*len - r->at);
	r->at = r->len;
	return 0;
}

void ws_reader_next(struct ws_reader *r)
{
	r->len = 0;
	r->opcode = 0;
}

int ws_close_code(const uint8_t *payload, size_t len)
{
	unsigned int code;

	if (len == 0)
		return WS_CODE_NO_STATUS;
	if (len == 1)
		return -WS_CODE_PROTOCOL;
	code = be16(payload);
	if (code < 1000 || code >= 5000 || (code > 1014 && code < 3000) ||
		(code >= 1004 && code <= 1006))
		return -WS_CODE_PROTOCOL;
	if (!utf8_valid((struct str){(const char *)payload + 2, len - 2}))
		return -WS_CODE_NO_TEXT;
	return (int)code;
}

size_t ws_write_head(uint8_t out[WS_HEAD_MAX], enum ws_opcode opcode, size_t len)
{
	out[0] = (uint8_t)(0x80 | opcode);
	if (len < 126) {
		out[1] = (uint8_t)len;
		return 2;
	}
	if (len < 65536) {
		out[1] = 126;
		put_be16(out + 2, (uint16_t)len);
		return 4;
	}
	out[1] = 127;
	put_be32(out + 2, (uint32_t)((uint64_t)len >> 32));
	put_be32(out + 6, (uint32_t)len);
	return 10;
}

int ws_accept(char out[WS_ACCEPT_LEN], struct str key)
{
	static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
	unsigned char nonce[18], digest[SHA_DIGEST_LENGTH];
	char text[24 + sizeof(guid)];

	if (key.len != 24 || base64_decode(nonce, sizeof(nonce), key) != 16)
		return -EINVAL;
	memcpy(text, key.s, key.len);
	memcpy(text + key.len, guid, sizeof(guid));
	if (!SHA1((const unsigned char *)text, key.len + sizeof(guid) - 1, digest))
		return -EINVAL;
	out[base64_encode(out, digest, sizeof(digest), true)] = 0;
	return 0;
}
