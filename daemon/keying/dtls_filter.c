/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Checks of DTLS records and of ClientHello (RFC 6347 4.1, 4.2, 4.3.2). Reads only the datagram. */
#include "keying/dtls_filter.h"

#include <errno.h>
#include <openssl/ssl.h>

enum { CHANGE_CIPHER_SPEC = 20, ALERT, HANDSHAKE, APPLICATION_DATA }; /* RFC 5246 6.2.1 */
enum { CLIENT_HELLO = 1 };                                            /* RFC 5246 7.4 */

#define EPOCH_MAX_12  1u /* renegotiation is refused, so nothing comes after the first handshake */
#define EXPLICIT_MIN  9u /* an encrypted record: at least one byte and a MAC of 64 bits */
#define HELLO_RANDOM  32u
#define HELLO_SESSION 32u

const char *dtls_drop_name(enum dtls_drop d)
{
	static const char *const names[] = {"none",
#define X(id, name, text) name,
		DTLS_DROPS(X)
#undef X
	};

	return (size_t)d < ARRAY_LEN(names) ? names[d] : "";
}

static uint32_t be24(const uint8_t *p)
{
	return (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];
}

/* hello_request, client_hello, server_hello, hello_verify_request, new_session_ticket, certificate
 * to server_hello_done, certificate_verify, client_key_exchange, finished, certificate_url and
 * certificate_status (RFC 5246 7.4, RFC 6347 4.3.2, RFC 5077, RFC 6066). */
static bool message_known(uint8_t type)
{
	return type <= 4 || (type >= 11 && type <= 16) || type == 20 || type == 21 || type == 22;
}

/* Unencrypted handshake messages; a record may hold several. */
static enum dtls_drop check_messages(const uint8_t *p, size_t len)
{
	size_t at = 0;

	while (at < len) {
		uint32_t total, off, part;

		if (len < at + DTLS_HANDSHAKE_HDR)
			return DTLS_DROP_FRAGMENT;
		total = be24(p + at + 1);
		off = be24(p + at + 6);
		part = be24(p + at + 9);
		if (!message_known(p[at]) || total > DTLS_MESSAGE_MAX)
			return DTLS_DROP_MESSAGE;
		if (off + part > total || (part == 0 && total != 0))
			return DTLS_DROP_FRAGMENT;
		at += DTLS_HANDSHAKE_HDR;
		if (len < at + part)
			return DTLS_DROP_FRAGMENT;
		at += part;
	}
	return DTLS_DROP_NONE;
}

static enum dtls_drop check_plain(uint8_t type, const uint8_t *p, size_t len, bool encrypted)
{
	switch (type) {
	case HANDSHAKE:
		return check_messages(p, len);
	case CHANGE_CIPHER_SPEC:
		return len == 1 && p[0] == 1 ? DTLS_DROP_NONE : DTLS_DROP_CIPHER_CHANGE;
	case ALERT:
		return len == 2 && !encrypted ? DTLS_DROP_NONE : DTLS_DROP_ALERT;
	default:
		return DTLS_DROP_PLAIN_DATA;
	}
}

static enum dtls_drop check_record(const uint8_t *p, size_t len, size_t *used, bool encrypted)
{
	size_t body;
	uint16_t version, epoch;

	if (p[0] < CHANGE_CIPHER_SPEC || p[0] > APPLICATION_DATA)
		return DTLS_DROP_TYPE;
	if (len < DTLS_RECORD_HDR)
		return DTLS_DROP_SHORT;
	version = be16(p + 1);
	if (version != DTLS1_VERSION && version != DTLS1_2_VERSION)
		return DTLS_DROP_VERSION;
	body = be16(p + 11);
	if (body == 0 || body > DTLS_RECORD_MAX || len < DTLS_RECORD_HDR + body)
		return DTLS_DROP_LENGTH;
	*used = DTLS_RECORD_HDR + body;
	epoch = be16(p + 3);
	if (epoch > EPOCH_MAX_12)
		return DTLS_DROP_EPOCH;
	if (epoch == 0)
		return check_plain(p[0], p + DTLS_RECORD_HDR, body, encrypted);
	if (p[0] == CHANGE_CIPHER_SPEC)
		return DTLS_DROP_CIPHER_CHANGE;
	return body < EXPLICIT_MIN ? DTLS_DROP_LENGTH : DTLS_DROP_NONE;
}

#ifdef DTLS1_3_VERSION
/* The encrypted record of DTLS 1.3 (RFC 9147 4) without a connection ID, which we never ask for.
 * Without a length it fills the datagram. */
static enum dtls_drop check_unified(const uint8_t *p, size_t len, size_t *used)
{
	size_t at = 1 + (p[0] & 0x08 ? 2 : 1);

	if (p[0] & 0x10)
		return DTLS_DROP_TYPE;
	if (!(p[0] & 0x04)) {
		*used = len;
		return len < at + 16 ? DTLS_DROP_SHORT : DTLS_DROP_NONE;
	}
	if (len < at + 2)
		return DTLS_DROP_SHORT;
	*used = at + 2 + be16(p + at);
	return len < *used || *used < at + 2 + 16 ? DTLS_DROP_LENGTH : DTLS_DROP_NONE;
}
#endif

enum dtls_drop dtls_filter(const uint8_t *p, size_t len, bool encrypted)
{
	size_t at = 0;

	if (len == 0)
		return DTLS_DROP_SHORT;
	while (at < len) {
		size_t used = 0;
		enum dtls_drop why;

#ifdef DTLS1_3_VERSION
		if (p[at] >> 5 == 1)
			why = check_unified(p + at, len - at, &used);
		else
#endif
			why = check_record(p + at, len - at, &used, encrypted);
		if (why != DTLS_DROP_NONE)
			return why;
		at += used;
	}
	return DTLS_DROP_NONE;
}

bool dtls_has_plain_alert(const uint8_t *p, size_t len)
{
	/* An encrypted record of DTLS 1.3 has another first byte. */
	for (size_t at = 0; at + DTLS_RECORD_HDR <= len && p[at] <= APPLICATION_DATA;
		at += DTLS_RECORD_HDR + be16(p + at + 11))
		if (p[at] == ALERT && be16(p + at + 3) == 0)
			return true;
	return false;
}

/* A vector with a length of one byte. */
static bool take_vector(struct str *out, const uint8_t *p, size_t len, size_t *at)
{
	size_t n;

	if (len < *at + 1)
		return false;
	n = p[*at];
	if (len < *at + 1 + n)
		return false;
	*out = (struct str){(const char *)p + *at + 1, n};
	*at += 1 + n;
	return true;
}

int dtls_hello_parse(struct dtls_hello *out, const uint8_t *p, size_t len)
{
	struct dtls_hello h = {0};
	const uint8_t *m = p + DTLS_RECORD_HDR, *body = m + DTLS_HANDSHAKE_HDR;
	size_t n, at = 2 + HELLO_RANDOM;

	if (len < DTLS_RECORD_HDR + DTLS_HANDSHAKE_HDR || p[0] != HANDSHAKE || be16(p + 3) != 0)
		return -ENOMSG;
	if (m[0] != CLIENT_HELLO || be24(m + 6) != 0)
		return -ENOMSG;
	n = be24(m + 9);
	if (len < DTLS_RECORD_HDR + DTLS_HANDSHAKE_HDR + n || n < at)
		return -EBADMSG;
	h.record_seq = (uint64_t)be16(p + 5) << 32 | be32(p + 7);
	h.message_seq = be16(m + 4);
	h.version = be16(body);
	h.random = (struct str){(const char *)body + 2, HELLO_RANDOM};
	if (!take_vector(&h.session, body, n, &at) || h.session.len > HELLO_SESSION ||
		!take_vector(&h.cookie, body, n, &at))
		return -EBADMSG;
	*out = h;
	return 0;
}
