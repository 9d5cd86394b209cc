/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proto/rtp_ext.h"

#include "proto/rtp.h"

#define ONE_BYTE      0xbedeu
#define TWO_BYTE      0x1000u /* the low four bits are the application's */
#define TWO_BYTE_MASK 0xfff0u
#define ONE_BYTE_STOP 15u
#define ONE_BYTE_IDS  14u
#define ONE_BYTE_LEN  16u

/* RFC 8285 4.2. ID 0 is a byte of padding; with a length it ends the list, and so does ID 15. */
static bool find_one_byte(struct rtp_ext *out, const uint8_t *p, size_t len, uint8_t id)
{
	for (size_t at = 0; at < len;) {
		uint8_t has = p[at] >> 4, n = (uint8_t)((p[at] & 15) + 1);

		if (!p[at]) {
			at++;
			continue;
		}
		if (!has || has == ONE_BYTE_STOP || at + 1 + n > len)
			return false;
		if (has == id) {
			*out = (struct rtp_ext){p + at + 1, n};
			return true;
		}
		at += 1 + (size_t)n;
	}
	return false;
}

/* RFC 8285 4.3. */
static bool find_two_byte(struct rtp_ext *out, const uint8_t *p, size_t len, uint8_t id)
{
	for (size_t at = 0; at < len;) {
		if (!p[at]) {
			at++;
			continue;
		}
		if (at + 2 > len || at + 2 + p[at + 1] > len)
			return false;
		if (p[at] == id) {
			*out = (struct rtp_ext){p + at + 2, p[at + 1]};
			return true;
		}
		at += 2 + (size_t)p[at + 1];
	}
	return false;
}

bool rtp_ext_find(struct rtp_ext *out, const uint8_t *p, size_t len, uint8_t id)
{
	struct rtp_hdr h;
	int end = rtp_parse(&h, p, len);
	size_t at = RTP_FIXED_LEN + 4;
	uint16_t form;

	if (end < 0 || !id || !(p[0] & RTP_X_BIT))
		return false;
	at += 4 * (size_t)(p[0] & 0x0f);
	form = be16(p + at - 4); /* rtp_parse() has seen these four bytes */
	if (form == ONE_BYTE)
		return find_one_byte(out, p + at, (size_t)end - at, id);
	return (form & TWO_BYTE_MASK) == TWO_BYTE &&
		find_two_byte(out, p + at, (size_t)end - at, id);
}

/* --- Writing ---------------------------------------------------------------------------------- */

struct list { /* elements of one form; they follow the 4-byte header of an extension */
	uint8_t *p;
	size_t len;
	bool two; /* the two-byte form */
};

/* Length of the element at "at", or of a byte of padding. 0: malformed, or the end of the list. */
static size_t element(const struct list *l, size_t at, uint8_t *id)
{
	size_t need;

	*id = 0;
	if (!l->p[at])
		return 1;
	if (l->two && at + 2 > l->len)
		return 0;
	*id = l->two ? l->p[at] : l->p[at] >> 4;
	need = l->two ? 2 + (size_t)l->p[at + 1] : 2 + (size_t)(l->p[at] & 15);
	return at + need > l->len || (!l->two && (!*id || *id == ONE_BYTE_STOP)) ? 0 : need;
}

/* Removes elements of e, and all padding. False: malformed. Then nothing is changed. */
static bool pack(struct list *l, const struct rtp_ext_edit *e)
{
	size_t out = 0, n;
	uint8_t id;

	for (size_t at = 0; at < l->len; at += n) {
		n = element(l, at, &id);
		if (!n)
			return false;
	}
	for (size_t at = 0; at < l->len; at += n) {
		n = element(l, at, &id);
		if (!id || id == e->id || id == e->drop)
			continue;
		memmove(l->p + out, l->p + at, n);
		out += n;
	}
	l->len = out;
	return true;
}

static uint32_t size_of(const struct list *l, const struct rtp_ext_edit *e)
{
	return (l->two ? 2u : 1u) + e->value.len;
}

static void append(struct list *l, const struct rtp_ext_edit *e)
{
	uint8_t *to = l->p + l->len;

	if (l->two) {
		*to++ = e->id;
		*to++ = e->value.len;
	} else {
		*to++ = (uint8_t)(e->id << 4 | (e->value.len - 1));
	}
	memcpy(to, e->value.at, e->value.len);
	l->len += size_of(l, e);
}

/* Finds the elements of an extension. False: not of RFC 8285, or its form cannot hold e. */
static bool open_list(struct list *l, uint8_t *ext, size_t ext_len, const struct rtp_ext_edit *e)
{
	bool small = e->id <= ONE_BYTE_IDS && e->value.len <= ONE_BYTE_LEN;
	uint16_t form = ext_len ? be16(ext) : small ? ONE_BYTE : TWO_BYTE;

	*l = (struct list){.p = ext + 4,
		.len = ext_len ? ext_len - 4 : 0,
		.two = (form & TWO_BYTE_MASK) == TWO_BYTE};
	return (l->two || (form == ONE_BYTE && small)) && pack(l, e);
}

int32_t rtp_ext_write(uint8_t *p, size_t len, const struct rtp_ext_edit *e)
{
	size_t at = RTP_FIXED_LEN, old, new;
	struct rtp_hdr h;
	struct list l;
	int end = rtp_parse(&h, p, len);
	uint16_t form;

	if (end < 0 || !e->id || !e->value.len)
		return INT32_MIN;
	at += 4 * (size_t)(p[0] & 0x0f);
	old = (size_t)end - at;
	if (!open_list(&l, p + at, old, e))
		return INT32_MIN;
	form = old ? be16(p + at) : l.two ? TWO_BYTE : ONE_BYTE;
	new = 4 + (l.len + size_of(&l, e) + 3) / 4 * 4;
	memmove(p + at + new, p + end, len - (size_t)end);
	append(&l, e);
	memset(l.p + l.len, 0, new - 4 - l.len);
	put_be16(p + at, form);
	put_be16(p + at + 2, (uint16_t)(new / 4 - 1));
	p[0] |= RTP_X_BIT;
	return (int32_t) new - (int32_t)old;
}
