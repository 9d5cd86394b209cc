/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Serialises calls and their state (save_tables.c). Pure. */
#include "persist/save_write.h"
#include "base/secmem.h"
#include "persist/save_format.h"
#include "persist/save_tables.h"

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

/* Bencode has no unsigned numbers: values above INT64_MAX are written as negative. */
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

/* Sides and legs are pointers; a missing leg is an empty dictionary. */
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
		if (w->b->len - start == 2) /* an empty dictionary: remove it */
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
	for (size_t i = 0; i < save_state.fields; i++)
		write_field(w, &save_state.field[i], (const uint8_t *)state);
	put_key(w->b, "legs");
	sbuf_put(w->b, "l", 1);
	for (uint32_t i = 0; i < state->legs; i++)
		write_record(w, &save_leg_state, &state->leg[i]);
	sbuf_put(w->b, "ee", 2);
}

static void write_head(struct sbuf *b, uint64_t version)
{
	sbuf_put(b, "d", 1);
	put_key(b, "v");
	put_number(b, version);
}

void save_write_call(struct sbuf *b, const struct call *c, const struct relay_local *locals,
	uint32_t locals_n, const struct call_state *state)
{
	struct writer w = {.b = b, .locals = locals, .locals_n = locals_n};

	write_head(b, SAVE_VERSION);
	put_key(b, "call");
	write_record(&w, &save_call, c);
	put_key(b, "state");
	write_state(&w, state);
	sbuf_put(b, "e", 1);
}

void save_write_state(struct sbuf *b, const struct call_state *state)
{
	struct writer w = {.b = b};

	write_head(b, SAVE_STATE_VERSION);
	put_key(b, "state");
	write_state(&w, state);
	sbuf_put(b, "e", 1);
}
