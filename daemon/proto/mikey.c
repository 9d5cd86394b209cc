/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The parser of MIKEY messages. Every read goes through take(), which checks the end. */
#include "proto/mikey.h"

#include <errno.h>

#include "proto/mikey_int.h"

/* NULL when bad */
static const uint8_t *mikey_take(struct mikey_cursor *c, size_t len)
{
	const uint8_t *p = (const uint8_t *)c->in.s + c->at;

	if (c->bad || c->at + len > c->in.len) {
		c->bad = true;
		return NULL;
	}
	c->at += len;
	return p;
}

uint8_t mikey_take_u8(struct mikey_cursor *c)
{
	const uint8_t *p = mikey_take(c, 1);

	return p ? *p : 0;
}

uint16_t mikey_take_u16(struct mikey_cursor *c)
{
	const uint8_t *p = mikey_take(c, 2);

	return p ? be16(p) : 0;
}

static uint32_t mikey_take_u32(struct mikey_cursor *c)
{
	const uint8_t *p = mikey_take(c, 4);

	return p ? be32(p) : 0;
}

struct str mikey_take_str(struct mikey_cursor *c, size_t len)
{
	const uint8_t *p = mikey_take(c, len);

	return p ? (struct str){(const char *)p, len} : STR_NONE;
}

size_t mikey_dh_len(uint8_t group)
{
	switch (group) {
	case MIKEY_DH_OAKLEY5:
		return 192;
	case MIKEY_DH_OAKLEY1:
		return 96;
	case MIKEY_DH_OAKLEY2:
		return 128;
	default:
		return 0;
	}
}

static size_t mac_len(struct mikey_cursor *c, uint8_t alg)
{
	if (alg > MIKEY_MAC_HMAC_SHA1)
		c->bad = true;
	return alg == MIKEY_MAC_HMAC_SHA1 ? MIKEY_MAC_LEN : 0;
}

void mikey_take_kv(struct mikey_kv *kv, struct mikey_cursor *c, uint8_t type)
{
	*kv = (struct mikey_kv){.type = type};
	switch (type) {
	case MIKEY_KV_NULL:
		break;
	case MIKEY_KV_SPI:
		kv->spi = mikey_take_str(c, mikey_take_u8(c));
		break;
	case MIKEY_KV_INTERVAL:
		kv->from = mikey_take_str(c, mikey_take_u8(c));
		kv->to = mikey_take_str(c, mikey_take_u8(c));
		break;
	default:
		c->bad = true;
	}
}

/* Returns the type of the first payload. */
static uint8_t header(struct mikey_header *h, struct mikey_cursor *c)
{
	uint8_t next, flags;

	h->type = mikey_take_u8(c);
	next = mikey_take_u8(c);
	flags = mikey_take_u8(c);
	h->verify = flags >> 7;
	h->prf = flags & 0x7f;
	h->csb_id = mikey_take_u32(c);
	h->sessions = mikey_take_u8(c);
	h->map_type = mikey_take_u8(c);
	if (h->sessions > MIKEY_SESSIONS_MAX || h->map_type > MIKEY_MAP_EMPTY)
		c->bad = true;
	if (h->map_type == MIKEY_MAP_EMPTY)
		return next;
	for (uint32_t i = 0; i < h->sessions && !c->bad; i++) {
		h->cs[i].policy = mikey_take_u8(c);
		h->cs[i].ssrc = mikey_take_u32(c);
		h->cs[i].roc = mikey_take_u32(c);
	}
	return next;
}

static void timestamp(struct mikey_payload *p, struct mikey_cursor *c)
{
	p->kind = mikey_take_u8(c);
	if (p->kind > MIKEY_TS_COUNTER)
		c->bad = true;
	p->data = mikey_take_str(c, p->kind == MIKEY_TS_COUNTER ? 4 : 8);
	for (size_t i = 0; i < p->data.len; i++)
		p->time = p->time << 8 | (uint8_t)p->data.s[i];
}

static void dh(struct mikey_payload *p, struct mikey_cursor *c)
{
	size_t len;

	p->kind = mikey_take_u8(c);
	len = mikey_dh_len(p->kind);
	if (!len) /* the length of the payload is unknown, too */
		c->bad = true;
	p->data = mikey_take_str(c, len);
	mikey_take_kv(&p->kv, c, mikey_take_u8(c) & 0x0f);
}

static void kemac(struct mikey_payload *p, struct mikey_cursor *c)
{
	p->kind = mikey_take_u8(c);
	p->data = mikey_take_str(c, mikey_take_u16(c));
	p->mac_alg = mikey_take_u8(c);
	p->mac = mikey_take_str(c, mac_len(c, p->mac_alg));
}

static void chash(struct mikey_payload *p, struct mikey_cursor *c)
{
	p->kind = mikey_take_u8(c);
	if (p->kind > MIKEY_HASH_MD5)
		c->bad = true;
	p->data = mikey_take_str(c, p->kind == MIKEY_HASH_MD5 ? 16 : 20);
}

static void policy(struct mikey_payload *p, struct mikey_cursor *c)
{
	p->number = mikey_take_u8(c);
	p->kind = mikey_take_u8(c);
	p->data = mikey_take_str(c, mikey_take_u16(c));
}

/* Payloads whose length has 12 or 14 bits after 4 or 2 bits of something else. */
static void packed(struct mikey_payload *p, struct mikey_cursor *c, uint32_t bits)
{
	uint16_t v = mikey_take_u16(c);

	p->kind = (uint8_t)(v >> bits);
	p->data = mikey_take_str(c, v & ((1u << bits) - 1));
}

static void body(struct mikey_payload *p, struct mikey_cursor *c)
{
	switch (p->type) {
	case MIKEY_P_KEMAC:
		kemac(p, c);
		break;
	case MIKEY_P_PKE:
		packed(p, c, 14);
		break;
	case MIKEY_P_DH:
		dh(p, c);
		break;
	case MIKEY_P_T:
		timestamp(p, c);
		break;
	case MIKEY_P_ID:
	case MIKEY_P_CERT:
	case MIKEY_P_EXT:
		p->kind = mikey_take_u8(c);
		p->data = mikey_take_str(c, mikey_take_u16(c));
		break;
	case MIKEY_P_CHASH:
		chash(p, c);
		break;
	case MIKEY_P_V:
		p->kind = mikey_take_u8(c);
		p->mac = mikey_take_str(c, mac_len(c, p->kind));
		break;
	case MIKEY_P_SP:
		policy(p, c);
		break;
	case MIKEY_P_RAND:
		p->data = mikey_take_str(c, mikey_take_u8(c));
		break;
	case MIKEY_P_ERR:
		p->kind = mikey_take_u8(c);
		(void)mikey_take_u16(c);
		break;
	default:
		c->bad = true;
	}
}

/* Payloads that a message has once at most. A second one could be read by one party and ignored by
 * the other. */
static bool once(uint8_t type)
{
	return type == MIKEY_P_KEMAC || type == MIKEY_P_PKE || type == MIKEY_P_T ||
		type == MIKEY_P_CHASH || type == MIKEY_P_V || type == MIKEY_P_RAND;
}

static bool chain(struct mikey_message *m, struct mikey_cursor *c, uint8_t next)
{
	while (next != MIKEY_P_LAST) {
		struct mikey_payload *p = &m->payload[m->payloads];
		size_t start = c->at;

		if (m->payloads == MIKEY_PAYLOADS_MAX ||
			(once(next) && mikey_payload_find(m, next, 0)))
			return false;
		*p = (struct mikey_payload){.type = next, .offset = start};
		if (next == MIKEY_P_SIGN) { /* has no "next payload" */
			packed(p, c, 12);
			next = MIKEY_P_LAST;
		} else {
			next = mikey_take_u8(c);
			body(p, c);
		}
		if (c->bad) {
			c->at = start;
			return false;
		}
		p->raw = (struct str){c->in.s + start, c->at - start};
		m->payloads++;
	}
	return c->at == c->in.len;
}

int mikey_parse(struct mikey_message *out, struct str message, size_t *offset)
{
	struct mikey_cursor c = {.in = message};
	uint8_t version, next;
	bool ok;

	memset(&out->header, 0, sizeof(out->header));
	out->all = message;
	out->payloads = 0;
	*offset = 0;
	if (message.len > MIKEY_MESSAGE_MAX)
		return -EBADMSG;
	version = mikey_take_u8(&c);
	if (c.bad)
		return -EBADMSG;
	if (version != MIKEY_VERSION)
		return -EPROTONOSUPPORT;
	next = header(&out->header, &c);
	ok = !c.bad && chain(out, &c, next);
	*offset = c.at;
	return ok ? 0 : -EBADMSG;
}

const struct mikey_payload *mikey_payload_find(
	const struct mikey_message *m, enum mikey_payload_type type, uint32_t nth)
{
	for (uint32_t i = 0; i < m->payloads; i++)
		if (m->payload[i].type == type && nth-- == 0)
			return &m->payload[i];
	return NULL;
}
