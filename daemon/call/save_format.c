/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A call as bytes and back: bencode, dictionaries by the tables below. Pure. A field that is zero is not written, one that is
 * unknown is skipped, so that tables may grow without a new version; SAVE_VERSION changes when an old reader would go wrong.
 * What is read may be anything: every number has its limit in the table, and what belongs together is checked at the end.
 * Handles of workers are not written: restore.c takes new ones. */
#include <errno.h>
#include <stdlib.h>

#include "base/secmem.h"
#include "call/model.h"

enum kind {
	NUMBER, /* of size bytes; at most max */
	BYTES,  /* of at most size; zeroes at the end are not written */
	TEXT,   /* struct str, on the heap */
	ADDR,   /* struct endpoint */
	LOCAL,  /* uint8_t: index of a local address, written as the address */
	RECORD, /* a struct by its own table */
	LIST,   /* of structs in an array, as many as the count says; at most max */
	TEXTS,  /* of struct str likewise */
	SIDES,  /* struct call's */
	LEGS,   /* struct side's */
};

struct field {
	const char *key;
	enum kind kind;
	size_t offset, size; /* size: of an element */
	uint64_t max;
	const struct record *record;
	size_t count; /* offset of the count, */
	size_t count_size;
};

struct record {
	const struct field *field;
	size_t fields;
};

#define SIZE(type, member) sizeof(((struct type *)0)->member)
#define AT(type, member)   .offset = offsetof(struct type, member), .size = SIZE(type, member)
#define N(type, member)    .count = offsetof(struct type, member), .count_size = SIZE(type, member)
#define ONE(type, member)  .offset = offsetof(struct type, member), .size = SIZE(type, member[0])
#define ANY                UINT64_MAX
#define RECORD_OF(table)                \
	{                               \
		table, ARRAY_LEN(table) \
	}
#define NUM(key, type, member, most)                       \
	{                                                  \
		key, NUMBER, AT(type, member), .max = most \
	}
#define FLAG(key, type, member)                         \
	{                                               \
		key, NUMBER, AT(type, member), .max = 1 \
	}

/* --- Tables: keys are short, they are written for every call ---------------------------------------------------- */

static const struct field master_fields[] = {
	NUM("s", srtp_master, suite, SUITE_COUNT - 1),
	{"k", BYTES, AT(srtp_master, key)},
	{"a", BYTES, AT(srtp_master, salt)},
	{"m", BYTES, AT(srtp_master, mki)},
	NUM("n", srtp_master, mki_len, SUITE_MAX_MKI_LEN),
	NUM("r", srtp_master, kdr, SRTP_KDR_MAX),
	FLAG("u", srtp_master, no_rtp_auth),
	NUM("l", srtp_master, lifetime, ANY),
};
static const struct record master_record = RECORD_OF(master_fields);

static const struct field sdes_fields[] = {
	NUM("t", sdes, tag, 999999999),
	{"k", RECORD, AT(sdes, master), .record = &master_record},
	NUM("m", sdes, more, SDES_MAX_KEYS - 1),
	NUM("o", sdes, more_at, 255),
	FLAG("r", sdes, unencrypted_srtp),
	FLAG("c", sdes, unencrypted_srtcp),
	NUM("w", sdes, wsh, UINT32_MAX),
};
static const struct record sdes_record = RECORD_OF(sdes_fields);

static const struct field bag_fields[] = {
	{"k", LIST, ONE(sdes_bag, master), .max = ARRAY_LEN(((struct sdes_bag *)0)->master),
		.record = &master_record, N(sdes_bag, n)},
};
static const struct record bag_record = RECORD_OF(bag_fields);

static const struct field our_fields[] = {
	{"s", RECORD, AT(our_key, s), .record = &sdes_record},
	FLAG("u", our_key, used),
};
static const struct record our_record = RECORD_OF(our_fields);

static const struct field said_fields[] = {
	FLAG("y", leg_said, relayed),
	FLAG("x", leg_said, rejected),
	FLAG("m", leg_said, mux),
	NUM("p", leg_said, proto, 255),
	NUM("d", leg_said, dir, SDP_DIR_INACTIVE),
	{"r", ADDR, AT(leg_said, remote)},
	{"c", ADDR, AT(leg_said, rtcp_remote)},
	{"l", LIST, ONE(leg_said, line), .max = LEG_MAX_LINES, .record = &sdes_record,
		N(leg_said, lines)},
	{"b", RECORD, AT(leg_said, bag), .record = &bag_record},
};
static const struct record said_record = RECORD_OF(said_fields);

static const struct field asked_fields[] = {
	FLAG("m", leg_asked, mux),
	NUM("p", leg_asked, proto, 255),
	{"s", BYTES, AT(leg_asked, suite)},
	NUM("n", leg_asked, suites, SUITE_COUNT),
	FLAG("t", leg_asked, pass),
};
static const struct record asked_record = RECORD_OF(asked_fields);

static const struct field leg_fields[] = {
	FLAG("u", leg, used),
	NUM("port", leg, port.rtp.port, 65534),
	FLAG("a", leg, active),
	NUM("p", leg, proto, 255),
	NUM("d", leg, dir, SDP_DIR_INACTIVE),
	{"r", ADDR, AT(leg, remote)},
	{"c", ADDR, AT(leg, rtcp_remote)},
	FLAG("m", leg, mux),
	{"rx", RECORD, AT(leg, rx), .record = &sdes_record},
	{"tx", RECORD, AT(leg, tx), .record = &sdes_record},
	{"rm1", RECORD, AT(leg, rx_more[0]), .record = &master_record},
	{"rm2", RECORD, AT(leg, rx_more[1]), .record = &master_record},
	{"rm3", RECORD, AT(leg, rx_more[2]), .record = &master_record},
	FLAG("pi", leg, pass_rx),
	FLAG("po", leg, pass_tx),
	{"k", BYTES, AT(leg, kind)},
	NUM("e0", leg, events[0], ANY),
	NUM("e1", leg, events[1], ANY),
	NUM("q", leg, quiet, 255),
	FLAG("h", leg, hears),
	NUM("hs", leg, hears_side, CALL_MAX_SIDES - 1),
	NUM("hm", leg, hears_media, SDP_MAX_MEDIA - 1),
	{"o", LIST, ONE(leg, ours), .max = SUITE_COUNT, .record = &our_record, N(leg, ours_n)},
	{"said", RECORD, AT(leg, said), .record = &said_record},
	{"ask", RECORD, AT(leg, asked), .record = &asked_record},
};
static const struct record leg_record = RECORD_OF(leg_fields);
_Static_assert(SDES_MAX_KEYS == 4, "rm1 to rm3");

static const struct field side_fields[] = {
	FLAG("gone", side, gone),
	{"tag", TEXT, AT(side, tag)},
	{"branch", TEXT, AT(side, via_branch)},
	{"label", TEXT, AT(side, label)},
	{"alias", TEXTS, ONE(side, alias), .max = CALL_MAX_ALIASES, N(side, aliases)},
	NUM("peer", side, peer, SIDE_NONE),
	FLAG("hl", side, has_local),
	{"local", LOCAL, AT(side, local)},
	NUM("gate", side, gate, 255),
	{"flow", BYTES, AT(side, flow)},
	FLAG("as", side, asymmetric),
	FLAG("ho", side, media_handover),
	FLAG("nw", side, nat_wait),
	FLAG("pi", side, pierce),
	FLAG("nt", side, no_tap),
	FLAG("rb", side, rtcp_back),
	FLAG("li", side, listener),
	FLAG("pu", side, publisher),
	FLAG("tap", side, tap),
	{"sdp", TEXT, AT(side, sdp)},
	NUM("mf", side, mux_flags, UINT32_MAX),
	NUM("os", side, osrtp, UINT32_MAX),
	FLAG("open", side, offer_open),
	NUM("ov", side, out_version, ANY),
	NUM("oh", side, out_hash, ANY),
	{"legs", LEGS, AT(side, leg), .record = &leg_record},
};
static const struct record side_record = RECORD_OF(side_fields);

static const struct field call_fields[] = {
	{"id", TEXT, AT(call, id)},
	{"meta", TEXT, AT(call, metadata)},
	FLAG("debug", call, debug),
	NUM("born", call, created_ns, ANY),
	NUM("sig", call, signal_ns, ANY),
	NUM("del", call, delete_ns, ANY),
	FLAG("ans", call, answered),
	FLAG("em", call, emergency),
	{"told", ADDR, AT(call, told)},
	{"from", ADDR, AT(call, asked_from)},
	NUM("gate", call, gate, 255),
	NUM("tos", call, tos, 255),
	FLAG("ss", call, strict_source),
	NUM("learn", call, learning, MEDIA_LEARN_HEURISTIC),
	NUM("tap", call, tap, UINT32_MAX),
	FLAG("tapa", call, tap_all),
	FLAG("tapp", call, tap_paused),
	FLAG("tapd", call, tap_discard),
	NUM("tapn", call, tap_parts, RECORD_PARTS_MAX),
	{"tapf", TEXT, AT(call, tap_path)},
	NUM("rev", call, save.revision, ANY),
	{"sides", SIDES, AT(call, side), .record = &side_record},
};
static const struct record call_record = RECORD_OF(call_fields);

static const struct field use_fields[] = {
	NUM("r", save_key_use, rtp, ANY),
	NUM("c", save_key_use, rtcp, ANY),
};
static const struct record use_record = RECORD_OF(use_fields);

static const struct field mark_fields[] = {
	NUM("s", save_mark, ssrc, UINT32_MAX),
	NUM("t", save_mark, table, MEDIA_TABLES - 1),
	NUM("i", save_mark, index, (1ull << 48) - 1),
	FLAG("o", save_mark, roc_only),
	NUM("p", save_mark, per_s, UINT32_MAX),
};
static const struct record mark_record = RECORD_OF(mark_fields);

static const struct field counts_fields[] = {
	NUM("p", stream_counts, packets, ANY),
	NUM("b", stream_counts, bytes, ANY),
	NUM("e", stream_counts, errors, ANY),
	NUM("q", stream_counts, packets_out, ANY),
	NUM("c", stream_counts, bytes_out, ANY),
	NUM("l", stream_counts, last_packet_ns, ANY),
};
static const struct record counts_record = RECORD_OF(counts_fields);

static const struct field leg_state_fields[] = {
	NUM("s", leg_state, side, CALL_MAX_SIDES - 1),
	NUM("m", leg_state, media, SDP_MAX_MEDIA - 1),
	NUM("x", leg_state, tx_rtcp_next, 1ull << 31),
	{"k", LIST, ONE(leg_state, mark), .max = MEDIA_MARKS_MAX, .record = &mark_record,
		N(leg_state, marks)},
	{"r", ADDR, AT(leg_state, remote)},
	{"c", ADDR, AT(leg_state, rtcp_remote)},
	FLAG("f", leg_state, confirmed),
	FLAG("g", leg_state, rtcp_confirmed),
	{"n0", RECORD, AT(leg_state, counts[0]), .record = &counts_record},
	{"n1", RECORD, AT(leg_state, counts[1]), .record = &counts_record},
	{"u0", RECORD, AT(leg_state, rx_use[0]), .record = &use_record},
	{"u1", RECORD, AT(leg_state, rx_use[1]), .record = &use_record},
	{"u2", RECORD, AT(leg_state, rx_use[2]), .record = &use_record},
	{"u3", RECORD, AT(leg_state, rx_use[3]), .record = &use_record},
	{"ut", RECORD, AT(leg_state, tx_use), .record = &use_record},
};
static const struct record leg_state_record = RECORD_OF(leg_state_fields);

/* legs and leg are read and written by hand: they are in the pool. */
static const struct field state_fields[] = {
	NUM("born", call_state, created_ns, ANY),
	NUM("rev", call_state, revision, ANY),
	NUM("at", call_state, at_ns, ANY),
};
static const struct record state_record = RECORD_OF(state_fields);

/* --- Numbers of any width ----------------------------------------------------------------------------------------- */

static uint64_t number_get(const void *p, size_t size)
{
	uint16_t v16;
	uint32_t v32;
	uint64_t v64;

	switch (size) {
	case 1:
		return *(const uint8_t *)p;
	case 2:
		memcpy(&v16, p, sizeof(v16));
		return v16;
	case 4:
		memcpy(&v32, p, sizeof(v32));
		return v32;
	}
	memcpy(&v64, p, sizeof(v64));
	return v64;
}

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

/* --- Writing ------------------------------------------------------------------------------------------------------ */

struct writer {
	struct sbuf *b;
	const struct relay_local *locals;
	uint32_t locals_n;
};

static void put_digits(struct sbuf *b, uint64_t v)
{
	char text[20];
	size_t at = sizeof(text);

	do {
		text[--at] = (char)('0' + v % 10);
		v /= 10;
	} while (v);
	sbuf_put(b, text + at, sizeof(text) - at);
}

static void put_string(struct sbuf *b, const void *p, size_t len)
{
	put_digits(b, len);
	sbuf_put(b, ":", 1);
	sbuf_put(b, p, len);
}

static void put_key(struct sbuf *b, const char *key)
{
	put_string(b, key, strlen(key));
}

/* Bencode has no unsigned numbers: the upper half is written as negative. */
static void put_number(struct sbuf *b, uint64_t v)
{
	bool minus = v > INT64_MAX;

	sbuf_put(b, "i-", minus ? 2 : 1);
	put_digits(b, minus ? 0 - v : v);
	sbuf_put(b, "e", 1);
}

static size_t endpoint_bytes(uint8_t out[18], const struct endpoint *e)
{
	size_t len = e->family == AF_INET ? 4 : 16;

	memcpy(out, e->addr, len);
	put_be16(out + len, e->port);
	return len + 2;
}

static void write_record(const struct writer *w, const struct record *r, const void *from);

static void write_list(const struct writer *w, const struct field *f, const uint8_t *from)
{
	uint64_t n = number_get(from + f->count, f->count_size);

	if (n == 0)
		return;
	put_key(w->b, f->key);
	sbuf_put(w->b, "l", 1);
	for (uint64_t i = 0; i < n; i++) {
		const uint8_t *at = from + f->offset + i * f->size;
		struct str s;

		if (f->kind == LIST) {
			write_record(w, f->record, at);
			continue;
		}
		memcpy(&s, at, sizeof(s));
		put_string(w->b, s.s, s.len);
	}
	sbuf_put(w->b, "e", 1);
}

/* Sides and legs are pointed to; a leg that is not there is an empty dictionary. */
static void write_pointers(const struct writer *w, const struct field *f, const void *from)
{
	const struct call *c = from;
	const struct side *s = from;
	uint32_t n = f->kind == SIDES ? c->sides : s->legs;

	if (n == 0)
		return;
	put_key(w->b, f->key);
	sbuf_put(w->b, "l", 1);
	for (uint32_t i = 0; i < n; i++) {
		const void *to = f->kind == SIDES ? (void *)c->side[i] : (void *)s->leg[i];

		if (to)
			write_record(w, f->record, to);
		else
			sbuf_put(w->b, "de", 2);
	}
	sbuf_put(w->b, "e", 1);
}

static void write_bytes(struct sbuf *b, const struct field *f, const uint8_t *p)
{
	size_t len = f->size;

	while (len && p[len - 1] == 0)
		len--;
	if (len == 0)
		return;
	put_key(b, f->key);
	put_string(b, p, len);
}

static void write_addr(struct sbuf *b, const char *key, const struct endpoint *e)
{
	uint8_t text[18];
	size_t len;

	if (e->family == 0)
		return;
	len = endpoint_bytes(text, e);
	put_key(b, key);
	put_string(b, text, len);
}

static void write_field(const struct writer *w, const struct field *f, const uint8_t *from)
{
	const uint8_t *p = from + f->offset;
	struct endpoint e;
	struct str s;
	size_t mark = w->b->len, start;

	switch (f->kind) {
	case NUMBER:
		if (number_get(p, f->size) == 0)
			return;
		put_key(w->b, f->key);
		put_number(w->b, number_get(p, f->size));
		return;
	case BYTES:
		write_bytes(w->b, f, p);
		return;
	case TEXT:
		memcpy(&s, p, sizeof(s));
		if (s.len == 0)
			return;
		put_key(w->b, f->key);
		put_string(w->b, s.s, s.len);
		return;
	case ADDR:
		memcpy(&e, p, sizeof(e));
		write_addr(w->b, f->key, &e);
		return;
	case LOCAL:
		if (*p < w->locals_n)
			write_addr(w->b, f->key, &w->locals[*p].addr);
		return;
	case RECORD:
		put_key(w->b, f->key);
		start = w->b->len;
		write_record(w, f->record, p);
		if (w->b->len - start == 2) /* nothing in it: then it is not there */
			w->b->len = mark;
		return;
	case LIST:
	case TEXTS:
		write_list(w, f, from);
		return;
	case SIDES:
	case LEGS:
		write_pointers(w, f, from);
		return;
	}
}

static void write_record(const struct writer *w, const struct record *r, const void *from)
{
	sbuf_put(w->b, "d", 1);
	for (size_t i = 0; i < r->fields; i++)
		write_field(w, &r->field[i], from);
	sbuf_put(w->b, "e", 1);
}

static void write_state(const struct writer *w, const struct call_state *state)
{
	sbuf_put(w->b, "d", 1);
	for (size_t i = 0; i < state_record.fields; i++)
		write_field(w, &state_record.field[i], (const uint8_t *)state);
	put_key(w->b, "legs");
	sbuf_put(w->b, "l", 1);
	for (uint32_t i = 0; i < state->legs; i++)
		write_record(w, &leg_state_record, &state->leg[i]);
	sbuf_put(w->b, "ee", 2);
}

static void write_head(struct sbuf *b, uint64_t version)
{
	sbuf_put(b, "d", 1);
	put_key(b, "v");
	put_number(b, version);
}

static uint64_t version_of(const struct call *c)
{
	bool passes = false;

	for (uint32_t s = 0; s < c->sides; s++)
		for (uint32_t i = 0; i < c->side[s]->legs; i++) {
			const struct leg *l = c->side[s]->leg[i];

			passes |= l && (l->pass_rx || l->pass_tx || l->asked.pass);
		}
	return passes ? SAVE_VERSION : SAVE_OLDEST;
}

void save_write_call(struct sbuf *b, const struct call *c, const struct relay_local *locals,
	uint32_t locals_n, const struct call_state *state)
{
	struct writer w = {.b = b, .locals = locals, .locals_n = locals_n};

	write_head(b, version_of(c));
	put_key(b, "call");
	write_record(&w, &call_record, c);
	put_key(b, "state");
	write_state(&w, state);
	sbuf_put(b, "e", 1);
}

void save_write_state(struct sbuf *b, const struct call_state *state)
{
	struct writer w = {.b = b};

	write_head(b, SAVE_OLDEST);
	put_key(b, "state");
	write_state(&w, state);
	sbuf_put(b, "e", 1);
}

/* --- Reading ------------------------------------------------------------------------------------------------------ */

struct reader {
	struct keystore *keys;
	const struct relay_local *locals;
	uint32_t locals_n;
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

/* --- What belongs together ---------------------------------------------------------------------------------------- */

static bool master_is_sound(const struct srtp_master *m)
{
	return !m->no_rtp_auth || m->suite == SUITE_PLAIN ||
		srtp_suite_get(m->suite)->auth != XC_AUTH_GCM;
}

static bool sdes_is_sound(const struct sdes *s, const struct sdes_bag *bag)
{
	return master_is_sound(&s->master) &&
		(!s->more ||
			(s->master.mki_len && (!bag || (uint32_t)s->more_at + s->more <= bag->n)));
}

static bool more_is_sound(const struct leg *l)
{
	for (uint32_t i = 0; i < l->rx.more; i++) {
		const struct srtp_master *m = &l->rx_more[i];

		if (!master_is_sound(m) || m->suite != l->rx.master.suite ||
			m->mki_len != l->rx.master.mki_len)
			return false;
	}
	return l->rx.more == 0 || l->rx.master.suite != SUITE_PLAIN;
}

static bool leg_is_sound(const struct leg *l)
{
	bool sound = sdes_is_sound(&l->rx, NULL) && sdes_is_sound(&l->tx, NULL) &&
		l->tx.more == 0 && more_is_sound(l) && l->kind[sizeof(l->kind) - 1] == 0 &&
		l->port.rtp.port % 2 == 0 && (l->used ? l->port.rtp.port != 0 : !l->active);

	for (uint32_t i = 0; i < l->ours_n && sound; i++)
		sound = sdes_is_sound(&l->ours[i].s, NULL) && l->ours[i].s.more == 0 &&
			l->ours[i].s.master.suite != SUITE_PLAIN;
	for (uint32_t i = 0; i < l->said.lines && sound; i++)
		sound = sdes_is_sound(&l->said.line[i], &l->said.bag);
	for (uint32_t i = 0; i < l->asked.suites && sound; i++)
		sound = l->asked.suite[i] < SUITE_COUNT;
	sound = sound && !(l->pass_tx && l->tx.master.suite != SUITE_PLAIN);
	return sound && l->proto <= SDP_UDP_TLS_RTP_SAVPF &&
		l->said.proto <= SDP_UDP_TLS_RTP_SAVPF && l->asked.proto <= SDP_UDP_TLS_RTP_SAVPF;
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
	err = read_record(&none, &state_record, v, out);
	for (const struct ngval *c = legs->first; c; c = c->next)
		n++;
	if (n > CALL_MAX_SIDES * SDP_MAX_MEDIA)
		return -EBADMSG;
	out->leg = pool_alloc(p, (n + 1) * sizeof(*out->leg));
	if (!out->leg)
		return -ENOMEM;
	for (const struct ngval *c = legs->first; c && !err; c = c->next)
		err = read_record(&none, &leg_state_record, c, &out->leg[out->legs++]);
	for (uint32_t i = 0; i < out->legs && !err; i++)
		for (uint32_t k = 0; k < out->leg[i].marks; k++)
			if (out->leg[i].mark[k].table == MEDIA_RX_RTCP &&
				out->leg[i].mark[k].index >> 31)
				err = -EBADMSG;
	return err;
}

static int read_head(struct ngval **out, struct pool *p, struct str text)
{
	size_t pos;
	int64_t version;
	int err = bencode_parse(out, p, text, &pos);

	if (err)
		return err;
	if ((*out)->type != NGVAL_DICT || !ngval_get(*out, STR("v")))
		return -EBADMSG;
	version = ngval_int(ngval_get(*out, STR("v")), -1);
	return version >= SAVE_OLDEST && version <= SAVE_VERSION ? 0 : -EPROTONOSUPPORT;
}

int save_read_state(struct call_state *out, struct pool *p, struct str text)
{
	struct ngval *v;
	int err = read_head(&v, p, text);

	return err ? err : read_state(ngval_get(v, STR("state")), out, p);
}

int save_read_call(struct call **out, struct call_state *state, struct keystore *k, struct pool *p,
	struct str text, const struct relay_local *locals, uint32_t locals_n)
{
	const struct reader rd = {.keys = k, .locals = locals, .locals_n = locals_n};
	const struct ngval *v;
	struct ngval *all;
	struct call *c;
	int err = read_head(&all, p, text);

	if (err)
		return err;
	v = ngval_get(all, STR("call"));
	err = v ? read_state(ngval_get(all, STR("state")), state, p) : -EBADMSG;
	if (err)
		return err;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	err = read_record(&rd, &call_record, v, c);
	if (!err && !call_is_sound(c))
		err = -EBADMSG;
	if (err)
		call_free(k, c);
	else
		*out = c;
	return err;
}
