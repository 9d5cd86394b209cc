/* SPDX-License-Identifier: GPL-2.0-or-later */
/* STUN binding messages (RFC 8489): bounded parser and writer. Reads no clock and keeps no state.
 * The agent (ice/agent.h) calls it. */
#include "ice/stun.h"

#include <errno.h>

#include "base/secmem.h"

#define COOKIE        0x2112a442u /* RFC 8489 5 */
#define FINGERPRINT_X 0x5354554eu /* RFC 8489 14.7 */
#define BINDING       0x001u
#define FINGERPRINT_N 8u
#define INTEGRITY_N   24u

enum attr { /* RFC 8489 18.3, RFC 8445 20.1 */
	ATTR_USERNAME = 0x0006,
	ATTR_INTEGRITY = 0x0008,
	ATTR_ERROR_CODE = 0x0009,
	ATTR_UNKNOWN = 0x000a,
	ATTR_REALM = 0x0014,
	ATTR_NONCE = 0x0015,
	ATTR_INTEGRITY_SHA256 = 0x001c,
	ATTR_XOR_MAPPED = 0x0020,
	ATTR_PRIORITY = 0x0024,
	ATTR_USE_CANDIDATE = 0x0025,
	ATTR_FINGERPRINT = 0x8028,
	ATTR_CONTROLLED = 0x8029,
	ATTR_CONTROLLING = 0x802a,
};

/* CRC-32 of ISO 3309, four bits at a time: a table of 64 bytes stays in the cache. */
static uint32_t crc32(const uint8_t *p, size_t len)
{
	static const uint32_t nibble[16] = {0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac,
		0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8,
		0xcb61b38c, 0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};
	uint32_t crc = 0xffffffff;

	for (size_t i = 0; i < len; i++) {
		crc ^= p[i];
		crc = crc >> 4 ^ nibble[crc & 15];
		crc = crc >> 4 ^ nibble[crc & 15];
	}
	return ~crc;
}

void stun_key_init(struct stun_key *key, struct str password)
{
	hmac_sha1_key_init(&key->hmac, password.s, password.len);
}

bool stun_is(const uint8_t *packet, size_t len)
{
	return len >= STUN_HEADER_LEN && packet[0] < 4 && be32(packet + 4) == COOKIE &&
		be16(packet + 2) % 4 == 0 && STUN_HEADER_LEN + be16(packet + 2) == len;
}

/* --- Reading ---------------------------------------------------------------------------------- */

/* XOR-MAPPED-ADDRESS (RFC 8489 14.2). */
static int read_mapped(struct stun_msg *m, const uint8_t *packet, const uint8_t *v, size_t len)
{
	struct endpoint e = {0};
	size_t n;

	if (len < 8 || (v[1] != 1 && v[1] != 2))
		return -EBADMSG;
	n = v[1] == 1 ? 4 : 16;
	if (len != 4 + n)
		return -EBADMSG;
	e.family = v[1] == 1 ? AF_INET : AF_INET6;
	e.port = be16(v + 2) ^ (uint16_t)(COOKIE >> 16);
	for (size_t i = 0; i < n; i++) /* the cookie and the transaction follow each other */
		e.addr[i] = v[4 + i] ^ packet[4 + i];
	m->mapped = e;
	m->has_mapped = true;
	return 0;
}

static int read_error(struct stun_msg *m, const uint8_t *v, size_t len)
{
	if (len < 4 || (v[2] & 7) < 3 || (v[2] & 7) > 6 || v[3] > 99)
		return -EBADMSG;
	m->error = (uint16_t)((v[2] & 7) * 100 + v[3]);
	return 0;
}

static int read_role(struct stun_msg *m, enum stun_role role, const uint8_t *v, size_t len)
{
	if (len != 8 || (m->role && m->role != role)) /* nobody has both roles */
		return -EBADMSG;
	m->role = role;
	m->tie_breaker = be64(v);
	return 0;
}

static void note_unknown(struct stun_msg *m, uint16_t type)
{
	if (type < 0x8000 && m->unknown_count < STUN_UNKNOWN_MAX)
		m->unknown[m->unknown_count++] = type;
}

/* One attribute before MESSAGE-INTEGRITY. */
static int read_attr(
	struct stun_msg *m, const uint8_t *packet, uint16_t type, const uint8_t *v, size_t len)
{
	switch (type) {
	case ATTR_USERNAME:
		if (len > STUN_USERNAME_MAX)
			return -EBADMSG;
		if (!m->username.s)
			m->username = (struct str){(const char *)v, len};
		return 0;
	case ATTR_ERROR_CODE:
		return m->error ? 0 : read_error(m, v, len);
	case ATTR_XOR_MAPPED:
		return m->has_mapped ? 0 : read_mapped(m, packet, v, len);
	case ATTR_PRIORITY:
		if (len != 4)
			return -EBADMSG;
		if (!m->has_priority)
			m->priority = be32(v);
		m->has_priority = true;
		return 0;
	case ATTR_USE_CANDIDATE:
		m->use_candidate = true;
		return 0;
	case ATTR_CONTROLLED:
		return read_role(m, STUN_ROLE_CONTROLLED, v, len);
	case ATTR_CONTROLLING:
		return read_role(m, STUN_ROLE_CONTROLLING, v, len);
	case ATTR_UNKNOWN:
	case ATTR_REALM:
	case ATTR_NONCE:
	case ATTR_INTEGRITY_SHA256:
	case 0x0001: /* MAPPED-ADDRESS, which old servers send too */
		return 0;
	default:
		note_unknown(m, type);
		return 0;
	}
}

static int read_fingerprint(struct stun_msg *m, const uint8_t *packet, size_t at, size_t len)
{
	const uint8_t *v = packet + at + 4;

	if (be16(packet + at + 2) != 4 || at + FINGERPRINT_N != len ||
		be32(v) != (crc32(packet, at) ^ FINGERPRINT_X))
		return -EBADMSG;
	m->has_fingerprint = true;
	return 0;
}

int stun_parse(struct stun_msg *out, const uint8_t *packet, size_t len)
{
	struct stun_msg m = {0};
	uint16_t type;
	size_t at = STUN_HEADER_LEN;

	if (len > STUN_PACKET_MAX || !stun_is(packet, len))
		return -EBADMSG;
	type = be16(packet);
	if ((type & 0x3eef) != BINDING) /* all bits but the two of the class */
		return -EBADMSG;
	m.cls = (enum stun_class)((type >> 7 & 2) | (type >> 4 & 1));
	memcpy(m.txid, packet + 8, STUN_TXID_LEN);
	while (at < len) { /* both are multiples of 4: four bytes are there */
		uint16_t attr = be16(packet + at);
		size_t n = be16(packet + at + 2), padded = (n + 3) & ~(size_t)3;
		int err = 0;

		if (at + 4 + padded > len)
			return -EBADMSG;
		if (attr == ATTR_FINGERPRINT)
			err = read_fingerprint(&m, packet, at, len);
		else if (m.integrity_off)
			; /* not protected: ignored */
		else if (attr == ATTR_INTEGRITY && n == HMAC_SHA1_LEN)
			m.integrity_off = (uint16_t)at;
		else if (attr == ATTR_INTEGRITY)
			err = -EBADMSG;
		else
			err = read_attr(&m, packet, attr, packet + at + 4, n);
		if (err)
			return err;
		at += 4 + padded;
	}
	*out = m;
	return 0;
}

/* MESSAGE-INTEGRITY covers all before it, under a length that ends with it (RFC 8489 14.5). */
static void integrity(
	uint8_t mac[HMAC_SHA1_LEN], const uint8_t *packet, size_t at, const struct stun_key *key)
{
	uint8_t head[STUN_HEADER_LEN];

	memcpy(head, packet, sizeof(head));
	put_be16(head + 2, (uint16_t)(at + INTEGRITY_N - STUN_HEADER_LEN));
	hmac_sha1(mac, &key->hmac, (struct str){(const char *)head, sizeof(head)},
		(struct str){(const char *)packet + STUN_HEADER_LEN, at - STUN_HEADER_LEN});
}

bool stun_verify(const struct stun_msg *m, const uint8_t *packet, const struct stun_key *key)
{
	uint8_t mac[HMAC_SHA1_LEN];

	if (!m->integrity_off)
		return false;
	integrity(mac, packet, m->integrity_off, key);
	return secmem_equal(mac, packet + m->integrity_off + 4, sizeof(mac));
}

/* --- Writing ---------------------------------------------------------------------------------- */

/* Room for an attribute's value, its padding zeroed; NULL: it does not fit. */
static uint8_t *attr_new(struct stun_writer *w, enum attr type, size_t len)
{
	size_t padded = (len + 3) & ~(size_t)3;
	uint8_t *p = w->p + w->len;

	if (w->full || w->len + 4 + padded > w->cap) {
		w->full = true;
		return NULL;
	}
	put_be16(p, (uint16_t)type);
	put_be16(p + 2, (uint16_t)len);
	memset(p + 4, 0, padded);
	w->len += 4 + padded;
	put_be16(w->p + 2, (uint16_t)(w->len - STUN_HEADER_LEN));
	return p + 4;
}

void stun_write_head(struct stun_writer *w, enum stun_class cls, const uint8_t txid[STUN_TXID_LEN])
{
	unsigned c = (unsigned)cls;

	w->len = 0;
	w->full = w->cap < STUN_HEADER_LEN;
	if (w->full)
		return;
	put_be16(w->p, (uint16_t)(BINDING | (c & 2) << 7 | (c & 1) << 4));
	put_be16(w->p + 2, 0);
	put_be32(w->p + 4, COOKIE);
	memcpy(w->p + 8, txid, STUN_TXID_LEN);
	w->len = STUN_HEADER_LEN;
}

void stun_write_username(struct stun_writer *w, struct str remote, struct str local)
{
	uint8_t *v = attr_new(w, ATTR_USERNAME, remote.len + 1 + local.len);

	if (!v)
		return;
	memcpy(v, remote.s, remote.len);
	v[remote.len] = ':';
	memcpy(v + remote.len + 1, local.s, local.len);
}

void stun_write_priority(struct stun_writer *w, uint32_t priority)
{
	uint8_t *v = attr_new(w, ATTR_PRIORITY, 4);

	if (v)
		put_be32(v, priority);
}

void stun_write_use_candidate(struct stun_writer *w)
{
	attr_new(w, ATTR_USE_CANDIDATE, 0);
}

void stun_write_role(struct stun_writer *w, enum stun_role role, uint64_t tie_breaker)
{
	uint8_t *v =
		attr_new(w, role == STUN_ROLE_CONTROLLING ? ATTR_CONTROLLING : ATTR_CONTROLLED, 8);

	if (!v)
		return;
	put_be32(v, (uint32_t)(tie_breaker >> 32));
	put_be32(v + 4, (uint32_t)tie_breaker);
}

void stun_write_mapped(struct stun_writer *w, const struct endpoint *e)
{
	size_t n = e->family == AF_INET ? 4 : 16;
	uint8_t *v = attr_new(w, ATTR_XOR_MAPPED, 4 + n);

	if (!v)
		return;
	v[1] = e->family == AF_INET ? 1 : 2;
	put_be16(v + 2, e->port ^ (uint16_t)(COOKIE >> 16));
	for (size_t i = 0; i < n; i++)
		v[4 + i] = e->addr[i] ^ w->p[4 + i];
}

void stun_write_error(struct stun_writer *w, enum stun_error code)
{
	uint8_t *v = attr_new(w, ATTR_ERROR_CODE, 4);

	if (!v)
		return;
	v[2] = (uint8_t)((unsigned)code / 100);
	v[3] = (uint8_t)((unsigned)code % 100);
}

void stun_write_unknown(struct stun_writer *w, const uint16_t *type, uint8_t count)
{
	uint8_t *v = attr_new(w, ATTR_UNKNOWN, 2u * count);

	for (uint8_t i = 0; v && i < count; i++)
		put_be16(v + 2u * i, type[i]);
}

size_t stun_write_end(struct stun_writer *w, const struct stun_key *key)
{
	size_t at = w->len;
	uint8_t *v;

	if (key) {
		v = attr_new(w, ATTR_INTEGRITY, HMAC_SHA1_LEN);
		if (!v)
			return 0;
		integrity(v, w->p, at, key);
		at = w->len;
	}
	v = attr_new(w, ATTR_FINGERPRINT, 4);
	if (!v)
		return 0;
	put_be32(v, crc32(w->p, at) ^ FINGERPRINT_X);
	return w->len;
}
