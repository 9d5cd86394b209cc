/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parses calls and their state (save_tables.c). The input is untrusted: the table limits every
 * number, and consistency is checked at the end. Pure. */
#include "persist/save_read.h"

#include <errno.h>
#include <stdlib.h>

#include "base/secmem.h"
#include "keying/keying.h"
#include "persist/save_format.h"
#include "persist/save_old.h"
#include "persist/save_tables.h"
#include "proto/bencode.h"

static void number_set(void *p, size_t size, uint64_t v)
{
	uint8_t v8 = (uint8_t)v;
	uint16_t v16 = (uint16_t)v;
	uint32_t v32 = (uint32_t)v;
	const void *from = size == 1 ? (void *)&v8
		: size == 2          ? (void *)&v16
		: size == 4          ? (void *)&v32
				     : (void *)&v;

	memcpy(p, from, size);
}

struct reader {
	struct keystore *keys;
	const struct relay_local *locals;
	uint32_t locals_n;
	int64_t version;
};

static int read_record(
	const struct reader *rd, const struct record *r, const struct ngval *from, void *to);

static int read_number(const struct field *f, const struct ngval *v, uint8_t *p)
{
	uint64_t n = (uint64_t)v->num;

	if (v->type != NGVAL_INT || n > f->max)
		return -EBADMSG;
	number_set(p, f->size, n);
	return 0;
}

static int read_addr(struct endpoint *e, const struct ngval *v)
{
	size_t len = v->str.len;

	if (v->type != NGVAL_STR || (len != 6 && len != 18))
		return -EBADMSG;
	*e = (struct endpoint){.family = len == 6 ? AF_INET : AF_INET6,
		.port = be16((const uint8_t *)v->str.s + len - 2)};
	memcpy(e->addr, v->str.s, len - 2);
	return 0;
}

static int read_local(const struct reader *rd, const struct ngval *v, uint8_t *p)
{
	struct endpoint e;
	int err = read_addr(&e, v);

	for (uint32_t i = 0; i < rd->locals_n && !err; i++)
		if (endpoint_addr_eq(&e, &rd->locals[i].addr)) {
			*p = (uint8_t)i;
			return 0;
		}
	return err ? err : -EADDRNOTAVAIL;
}

static int read_list(
	const struct reader *rd, const struct field *f, const struct ngval *v, uint8_t *to)
{
	uint64_t n = 0;
	int err = 0;

	if (v->type != NGVAL_LIST)
		return -EBADMSG;
	for (const struct ngval *c = v->first; c && !err; c = c->next) {
		uint8_t *at = to + f->offset + n * f->size;

		if (n == f->max)
			return -EBADMSG;
		if (f->kind == LIST)
			err = read_record(rd, f->record, c, at);
		else
			err = c->type == NGVAL_STR ? str_replace((struct str *)(void *)at, c->str)
						   : -EBADMSG;
		number_set(to + f->count, f->count_size, ++n);
	}
	return err;
}

static int read_sides(
	const struct reader *rd, const struct field *f, const struct ngval *v, struct call *to)
{
	int err = v->type == NGVAL_LIST ? 0 : -EBADMSG;

	for (const struct ngval *c = v->first; !err && c; c = c->next) {
		uint8_t at = call_side_add(to, STR_NONE, STR_NONE);

		if (at == SIDE_NONE)
			return to->sides == CALL_MAX_SIDES ? -EBADMSG : -ENOMEM;
		to->side[at]->peer = 0;
		err = read_record(rd, f->record, c, to->side[at]);
	}
	return err;
}

/* Reads the fields that versions 1 and 2 name differently. */
static int read_old_leg(const struct reader *rd, const struct ngval *v, struct leg *to)
{
	struct old_leg old = {0};
	int err = read_record(rd, &save_old_leg, v, &old);

	if (!err)
		err = save_old_convert(to, &old);
	secmem_wipe(&old, sizeof(old));
	return err;
}

static int read_legs(
	const struct reader *rd, const struct field *f, const struct ngval *v, struct side *to)
{
	int err = v->type == NGVAL_LIST ? 0 : -EBADMSG;
	uint32_t n = 0;

	for (const struct ngval *c = v->first; !err && c; c = c->next, n++) {
		struct leg *l;

		if (n == SDP_MAX_MEDIA || c->type != NGVAL_DICT)
			return -EBADMSG;
		if (!c->first)
			continue;
		l = side_leg(rd->keys, to, n);
		err = l ? read_record(rd, f->record, c, l) : -ENOMEM;
		if (!err && rd->version < SAVE_KEYING)
			err = read_old_leg(rd, c, l);
	}
	return err;
}

static int read_field(
	const struct reader *rd, const struct field *f, const struct ngval *v, void *to)
{
	uint8_t *p = (uint8_t *)to + f->offset;

	switch (f->kind) {
	case NUMBER:
		return read_number(f, v, p);
	case BYTES:
		if (v->type != NGVAL_STR || v->str.len > f->size)
			return -EBADMSG;
		memcpy(p, v->str.s ? v->str.s : "", v->str.len);
		return 0;
	case TEXT:
		return v->type == NGVAL_STR ? str_replace((struct str *)(void *)p, v->str)
					    : -EBADMSG;
	case ADDR:
		return read_addr((struct endpoint *)(void *)p, v);
	case LOCAL:
		return read_local(rd, v, p);
	case RECORD:
		return read_record(rd, f->record, v, p);
	case LIST:
	case TEXTS:
		return read_list(rd, f, v, to);
	case SIDES:
		return read_sides(rd, f, v, to);
	case LEGS:
		return read_legs(rd, f, v, to);
	}
	return -EBADMSG;
}

static int read_record(
	const struct reader *rd, const struct record *r, const struct ngval *from, void *to)
{
	int err = from->type == NGVAL_DICT ? 0 : -EBADMSG;

	for (size_t i = 0; i < r->fields && !err; i++) {
		const struct ngval *v = ngval_get(from, str_from(r->field[i].key));

		if (v)
			err = read_field(rd, &r->field[i], v, to);
	}
	return err;
}

/* --- Consistency ------------------------------------------------------------------------------ */

static bool master_is_sound(const struct srtp_master *m)
{
	return !m->no_rtp_auth || m->suite == SUITE_PLAIN ||
		srtp_suite_get(m->suite)->auth != XC_AUTH_GCM;
}

static bool params_are_sound(const struct srtp_params *p)
{
	bool sound = (p->keys <= 1 || p->key[0].mki_len) && !(p->keys && p->awaited) &&
		(!p->preauth || preauth_exists((enum preauth_scheme)(p->preauth - 1)));

	for (uint32_t i = 0; i < p->keys && sound; i++)
		sound = master_is_sound(&p->key[i]) && p->key[i].suite != SUITE_PLAIN &&
			p->key[i].suite == p->key[0].suite &&
			p->key[i].mki_len == p->key[0].mki_len;
	return sound &&
		(p->rtcp.suite == SUITE_PLAIN || (p->keys && p->rtcp.suite == p->key[0].suite));
}

/* Valid if each port is on another address, and the ports in use are among them. */
static bool locals_are_sound(const struct leg_locals *l)
{
	bool sound = true;

	for (uint8_t i = 0; i < l->n; i++) {
		sound = sound && l->port[i].rtp.port && l->port[i].rtp.port % 2 == 0;
		for (uint8_t k = 0; k < i; k++)
			sound = sound && l->port[k].rtp.addr != l->port[i].rtp.addr;
	}
	return sound && l->at[0] < (l->n ? l->n : 1) && l->at[1] < (l->n ? l->n : 1);
}

static bool leg_is_sound(const struct leg *l)
{
	bool sound = params_are_sound(&l->rx) && params_are_sound(&l->tx) && l->tx.keys <= 1 &&
		keying_is_sound(&l->keying) && (l->keying.in_force || !l->rx.keys) &&
		l->kind[sizeof(l->kind) - 1] == 0 && l->codec[sizeof(l->codec) - 1] == 0 &&
		l->port.rtp.port % 2 == 0 && (l->used ? l->port.rtp.port != 0 : !l->active);

	sound = sound && locals_are_sound(&l->locals);
	sound = sound && !(l->tx.pass && l->tx.keys) && !l->said.mid[LEG_MID_MAX - 1] &&
		!l->ice.remote_ufrag[LEG_ICE_TEXT - 1] && !l->ice.remote_pwd[LEG_ICE_TEXT - 1] &&
		!l->ice.next_ufrag[LEG_ICE_TEXT - 1] && !l->ice.next_pwd[LEG_ICE_TEXT - 1];
	/* Only RTP has SRTP keys. */
	if (sdp_proto_is_raw(l->proto))
		sound = sound && !l->rx.keys && !l->tx.keys && !l->rx.pass && !l->tx.pass;
	return sound && l->proto < SDP_TCP && l->said.proto <= SDP_TCP &&
		l->asked.proto < SDP_TCP &&
		(l->rtp_proto == SDP_PROTO_OTHER || sdp_proto_is_rtp(l->rtp_proto));
}

static bool call_is_sound(const struct call *c)
{
	bool sound = c->id.len && c->sides;

	for (uint32_t i = 0; i < c->sides && sound; i++) {
		const struct side *s = c->side[i];

		sound = s->peer < c->sides || s->peer == SIDE_NONE;
		for (uint32_t k = 0; k < s->legs && sound; k++)
			sound = !s->leg[k] ||
				(leg_is_sound(s->leg[k]) && s->leg[k]->hears_side < c->sides);
	}
	return sound;
}

static int read_state(const struct ngval *v, struct call_state *out, struct pool *p)
{
	const struct ngval *legs = v ? ngval_get(v, STR("legs")) : NULL;
	const struct reader none = {0};
	uint32_t n = 0;
	int err;

	*out = (struct call_state){0};
	if (!legs || legs->type != NGVAL_LIST)
		return -EBADMSG;
	err = read_record(&none, &save_state, v, out);
	for (const struct ngval *c = legs->first; c; c = c->next)
		n++;
	if (n > CALL_MAX_SIDES * SDP_MAX_MEDIA)
		return -EBADMSG;
	out->leg = pool_alloc(p, (n + 1) * sizeof(*out->leg));
	if (!out->leg)
		return -ENOMEM;
	for (const struct ngval *c = legs->first; c && !err; c = c->next)
		err = read_record(&none, &save_leg_state, c, &out->leg[out->legs++]);
	for (uint32_t i = 0; i < out->legs && !err; i++)
		for (uint32_t k = 0; k < out->leg[i].marks; k++)
			if (out->leg[i].mark[k].table == MEDIA_RX_RTCP &&
				out->leg[i].mark[k].index >> 31)
				err = -EBADMSG;
	return err;
}

static int read_head(struct ngval **out, int64_t *version, struct pool *p, struct str text)
{
	size_t pos;
	int err = bencode_parse(out, p, text, &pos);

	if (err)
		return err;
	if ((*out)->type != NGVAL_DICT || !ngval_get(*out, STR("v")))
		return -EBADMSG;
	*version = ngval_int(ngval_get(*out, STR("v")), -1);
	return *version >= SAVE_OLDEST && *version <= SAVE_VERSION ? 0 : -EPROTONOSUPPORT;
}

int save_read_state(struct call_state *out, struct pool *p, struct str text)
{
	struct ngval *v;
	int64_t version;
	int err = read_head(&v, &version, p, text);

	return err ? err : read_state(ngval_get(v, STR("state")), out, p);
}

/* Earlier versions stored this for the whole call only. */
static void emergency_of_old(struct call *c)
{
	bool told = !c->emergency;

	for (uint32_t i = 0; i < c->sides; i++)
		told |= c->side[i]->emergency;
	for (uint32_t i = 0; i < c->sides && !told; i++)
		c->side[i]->emergency = true;
}

int save_read_call(struct call **out, struct call_state *state, struct keystore *k, struct pool *p,
	struct str text, struct save_locals locals)
{
	struct reader rd = {.keys = k, .locals = locals.at, .locals_n = locals.n};
	const struct ngval *v;
	struct ngval *all;
	struct call *c;
	int err = read_head(&all, &rd.version, p, text);

	if (err)
		return err;
	v = ngval_get(all, STR("call"));
	err = v ? read_state(ngval_get(all, STR("state")), state, p) : -EBADMSG;
	if (err)
		return err;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	err = read_record(&rd, &save_call, v, c);
	if (!err && !call_is_sound(c))
		err = -EBADMSG;
	if (err)
		call_free(k, c);
	else
		*out = c;
	if (!err)
		emergency_of_old(c);
	return err;
}
