/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Contents of payloads: key data of a KEMAC, parameters of a policy; and names of numbers. */
#include <errno.h>

#include "proto/mikey_int.h"

const char *mikey_error_text(uint8_t number)
{
	switch (number) {
#define X(id, no, text)      \
	case MIKEY_ERR_##id: \
		return text;
		MIKEY_ERRORS(X)
#undef X
	default:
		return "";
	}
}

/* Returns the type of the next sub-payload. */
static uint8_t key_data(struct mikey_key_data *k, struct mikey_cursor *c)
{
	uint8_t next = mikey_take_u8(c), types = mikey_take_u8(c);

	*k = (struct mikey_key_data){.type = types >> 4};
	if (k->type > MIKEY_KEY_TEK_SALT)
		c->bad = true;
	k->key = mikey_take_str(c, mikey_take_u16(c));
	if (k->type == MIKEY_KEY_TGK_SALT || k->type == MIKEY_KEY_TEK_SALT)
		k->salt = mikey_take_str(c, mikey_take_u16(c));
	mikey_take_kv(&k->kv, c, types & 0x0f);
	return next;
}

static uint8_t sub_payload(struct mikey_key_list *out, struct mikey_cursor *c, uint8_t type)
{
	uint8_t next;

	if (type == MIKEY_P_KEY_DATA && out->count < MIKEY_KEYS_MAX)
		return key_data(&out->key[out->count++], c);
	if (type != MIKEY_P_ID || out->id.len || out->count) {
		c->bad = true;
		return MIKEY_P_LAST;
	}
	next = mikey_take_u8(c);
	out->id_type = mikey_take_u8(c);
	out->id = mikey_take_str(c, mikey_take_u16(c));
	if (!out->id.len)
		c->bad = true;
	return next;
}

int mikey_keys_parse(struct mikey_key_list *out, struct str data, uint8_t first, size_t *offset)
{
	struct mikey_cursor c = {.in = data};
	uint8_t next = first;

	out->id_type = 0;
	out->id = STR_NONE;
	out->count = 0;
	*offset = 0;
	while (next != MIKEY_P_LAST) {
		*offset = c.at;
		next = sub_payload(out, &c, next);
		if (c.bad)
			return -EBADMSG;
	}
	*offset = c.at;
	return out->count && c.at == data.len ? 0 : -EBADMSG;
}

static bool known(uint8_t param)
{
	switch (param) {
#define X(id, number, def) case MIKEY_SP_##id:
		MIKEY_SRTP_PARAMS(X)
#undef X
		return true;
	default:
		return false;
	}
}

int mikey_policy_parse(struct mikey_policy *out, struct str params)
{
	struct mikey_cursor c = {.in = params};

	memset(out, 0, sizeof(*out));
#define X(id, number, def) out->value[MIKEY_SP_##id] = (def);
	MIKEY_SRTP_PARAMS(X)
#undef X
	while (c.at < params.len) {
		uint8_t type = mikey_take_u8(&c);
		struct str value = mikey_take_str(&c, mikey_take_u8(&c));
		uint32_t v = 0;

		if (c.bad)
			return -EBADMSG;
		if (!known(type) || !value.len || value.len > sizeof(v))
			return -ENOTSUP;
		if (out->given & 1u << type)
			return -EBADMSG;
		for (size_t i = 0; i < value.len; i++)
			v = v << 8 | (uint8_t)value.s[i];
		out->value[type] = v;
		out->given |= 1u << type;
	}
	return 0;
}
