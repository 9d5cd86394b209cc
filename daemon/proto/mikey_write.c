/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes MIKEY messages. Every write goes through put(), which checks the end. */
#include <errno.h>

#include "proto/mikey.h"

/* p = NULL: zeroes. */
static void put(struct mikey_writer *w, const void *p, size_t len)
{
	if (w->err)
		return;
	if (w->len + len > w->cap) {
		w->err = -EMSGSIZE;
		return;
	}
	if (p && len)
		memcpy(w->buf + w->len, p, len);
	else
		memset(w->buf + w->len, 0, len);
	w->len += len;
}

static void put_u8(struct mikey_writer *w, uint8_t v)
{
	put(w, &v, 1);
}

static void put_u16(struct mikey_writer *w, size_t v)
{
	uint8_t b[2];

	if (v > UINT16_MAX && !w->err)
		w->err = -EINVAL;
	put_be16(b, (uint16_t)v);
	put(w, b, sizeof(b));
}

static void put_u32(struct mikey_writer *w, uint32_t v)
{
	uint8_t b[4];

	put_be32(b, v);
	put(w, b, sizeof(b));
}

static void put_str(struct mikey_writer *w, struct str s)
{
	put(w, s.s, s.len);
}

/* Links a payload to the one before it, and reserves its own "next payload". */
static void begin(struct mikey_writer *w, uint8_t type)
{
	if (w->err)
		return;
	w->buf[w->next] = type;
	w->next = w->len;
	put_u8(w, MIKEY_P_LAST);
}

void mikey_write_header(
	struct mikey_writer *w, uint8_t *buf, size_t cap, const struct mikey_header *h)
{
	*w = (struct mikey_writer){.buf = buf, .cap = cap, .next = 2};
	if (h->sessions > MIKEY_SESSIONS_MAX || h->prf > 0x7f)
		w->err = -EINVAL;
	put_u8(w, MIKEY_VERSION);
	put_u8(w, h->type);
	put_u8(w, MIKEY_P_LAST);
	put_u8(w, (uint8_t)(h->verify << 7 | h->prf));
	put_u32(w, h->csb_id);
	put_u8(w, h->sessions);
	put_u8(w, h->map_type);
	if (h->map_type == MIKEY_MAP_EMPTY)
		return;
	for (uint32_t i = 0; i < h->sessions && !w->err; i++) {
		put_u8(w, h->cs[i].policy);
		put_u32(w, h->cs[i].ssrc);
		put_u32(w, h->cs[i].roc);
	}
}

void mikey_write_chain(struct mikey_writer *w, uint8_t *buf, size_t cap)
{
	*w = (struct mikey_writer){.buf = buf, .cap = cap};
}

void mikey_write_kemac(struct mikey_writer *w, uint8_t encr_alg, struct str data, uint8_t mac_alg)
{
	begin(w, MIKEY_P_KEMAC);
	put_u8(w, encr_alg);
	put_u16(w, data.len);
	put_str(w, data);
	put_u8(w, mac_alg);
	put(w, NULL, mac_alg == MIKEY_MAC_NULL ? 0 : MIKEY_MAC_LEN);
}

void mikey_write_pke(struct mikey_writer *w, uint8_t cache, struct str data)
{
	begin(w, MIKEY_P_PKE);
	if (data.len > 0x3fff && !w->err)
		w->err = -EINVAL;
	put_u16(w, (size_t)(cache & 3) << 14 | (data.len & 0x3fff));
	put_str(w, data);
}

static void put_kv(struct mikey_writer *w, const struct mikey_kv *kv)
{
	if ((kv->spi.len > UINT8_MAX || kv->from.len > UINT8_MAX || kv->to.len > UINT8_MAX) &&
		!w->err)
		w->err = -EINVAL;
	if (kv->type == MIKEY_KV_SPI) {
		put_u8(w, (uint8_t)kv->spi.len);
		put_str(w, kv->spi);
	} else if (kv->type == MIKEY_KV_INTERVAL) {
		put_u8(w, (uint8_t)kv->from.len);
		put_str(w, kv->from);
		put_u8(w, (uint8_t)kv->to.len);
		put_str(w, kv->to);
	}
}

void mikey_write_dh(struct mikey_writer *w, uint8_t group, struct str value)
{
	begin(w, MIKEY_P_DH);
	if (value.len != mikey_dh_len(group) && !w->err)
		w->err = -EINVAL;
	put_u8(w, group);
	put_str(w, value);
	put_u8(w, MIKEY_KV_NULL);
}

void mikey_write_sign(struct mikey_writer *w, uint8_t kind, uint16_t len)
{
	if (w->err)
		return;
	if (len > 0x0fff)
		w->err = -EINVAL;
	w->buf[w->next] = MIKEY_P_SIGN; /* it has no "next payload" of its own */
	put_u16(w, (size_t)(kind & 15) << 12 | (len & 0x0fff));
	put(w, NULL, len);
}

void mikey_write_t(struct mikey_writer *w, uint8_t kind, uint64_t time)
{
	begin(w, MIKEY_P_T);
	put_u8(w, kind);
	if (kind != MIKEY_TS_COUNTER)
		put_u32(w, (uint32_t)(time >> 32));
	put_u32(w, (uint32_t)time);
}

static void typed(struct mikey_writer *w, uint8_t type, uint8_t kind, struct str data)
{
	begin(w, type);
	put_u8(w, kind);
	put_u16(w, data.len);
	put_str(w, data);
}

void mikey_write_id(struct mikey_writer *w, uint8_t kind, struct str id)
{
	typed(w, MIKEY_P_ID, kind, id);
}

void mikey_write_cert(struct mikey_writer *w, uint8_t kind, struct str der)
{
	typed(w, MIKEY_P_CERT, kind, der);
}

void mikey_write_ext(struct mikey_writer *w, uint8_t kind, struct str data)
{
	typed(w, MIKEY_P_EXT, kind, data);
}

void mikey_write_chash(struct mikey_writer *w, uint8_t hash, struct str digest)
{
	begin(w, MIKEY_P_CHASH);
	if (digest.len != (hash == MIKEY_HASH_MD5 ? 16 : 20) && !w->err)
		w->err = -EINVAL;
	put_u8(w, hash);
	put_str(w, digest);
}

void mikey_write_v(struct mikey_writer *w, uint8_t auth_alg)
{
	begin(w, MIKEY_P_V);
	put_u8(w, auth_alg);
	put(w, NULL, auth_alg == MIKEY_MAC_NULL ? 0 : MIKEY_MAC_LEN);
}

void mikey_write_sp(struct mikey_writer *w, uint8_t number, struct str params)
{
	begin(w, MIKEY_P_SP);
	put_u8(w, number);
	put_u8(w, 0); /* SRTP */
	put_u16(w, params.len);
	put_str(w, params);
}

void mikey_write_rand(struct mikey_writer *w, struct str rand)
{
	begin(w, MIKEY_P_RAND);
	if (rand.len > UINT8_MAX && !w->err)
		w->err = -EINVAL;
	put_u8(w, (uint8_t)rand.len);
	put_str(w, rand);
}

void mikey_write_err(struct mikey_writer *w, uint8_t number)
{
	begin(w, MIKEY_P_ERR);
	put_u8(w, number);
	put_u16(w, 0);
}

/* The first sub-payload of a chain has nothing before it: its type follows from the mode. */
static void begin_sub(struct mikey_writer *w, uint8_t type)
{
	if (!w->len)
		put_u8(w, MIKEY_P_LAST);
	else
		begin(w, type);
}

void mikey_write_key_data(struct mikey_writer *w, const struct mikey_key_data *k)
{
	bool salt = k->type == MIKEY_KEY_TGK_SALT || k->type == MIKEY_KEY_TEK_SALT;

	begin_sub(w, MIKEY_P_KEY_DATA);
	put_u8(w, (uint8_t)(k->type << 4 | k->kv.type));
	put_u16(w, k->key.len);
	put_str(w, k->key);
	if (salt) {
		put_u16(w, k->salt.len);
		put_str(w, k->salt);
	}
	put_kv(w, &k->kv);
}

void mikey_write_sub_id(struct mikey_writer *w, uint8_t kind, struct str id)
{
	begin_sub(w, MIKEY_P_ID);
	put_u8(w, kind);
	put_u16(w, id.len);
	put_str(w, id);
}

int mikey_write_end(const struct mikey_writer *w)
{
	return w->err ? w->err : (int)w->len;
}
