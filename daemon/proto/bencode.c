/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Bencode (BEP 3). Accepts any order of a dictionary's keys. Refuses leading zeros and "-0" as BEP
 * 3 says: no client writes them. With one form for each value, a parsed message is written back
 * byte for byte. Each length is compared with the rest of the message before use. */
#include "proto/bencode.h"
#include "proto/ngval.h"

#include <errno.h>
#include <inttypes.h>

struct reader {
	struct pool *pool;
	struct str msg;
	size_t at;
};

static int peek(const struct reader *r)
{
	return r->at < r->msg.len ? (unsigned char)r->msg.s[r->at] : -1;
}

/* Decimal digits up to (and over) the byte "end", without leading zeros. */
static int read_number(struct reader *r, char end, uint64_t max, uint64_t *out)
{
	size_t start = r->at;
	struct str digits;

	while (peek(r) >= '0' && peek(r) <= '9')
		r->at++;
	digits = (struct str){r->msg.s + start, r->at - start};
	if (peek(r) != end || digits.len == 0 || (digits.len > 1 && digits.s[0] == '0'))
		return -EBADMSG;
	if (str_to_u64(out, digits, max)) {
		r->at = start;
		return -EBADMSG;
	}
	r->at++;
	return 0;
}

static int read_string(struct reader *r, struct str *out)
{
	size_t start = r->at;
	uint64_t len;

	if (read_number(r, ':', r->msg.len, &len))
		return -EBADMSG;
	if (len > r->msg.len - r->at) {
		r->at = start;
		return -EBADMSG;
	}
	*out = (struct str){r->msg.s + r->at, (size_t)len};
	r->at += (size_t)len;
	return 0;
}

static int read_int(struct reader *r, int64_t *out)
{
	uint64_t magnitude;
	bool minus;

	r->at++; /* 'i' */
	minus = peek(r) == '-';
	if (minus)
		r->at++;
	/* INT64_MIN has a magnitude one larger than INT64_MAX. */
	if (read_number(r, 'e', (uint64_t)INT64_MAX + minus, &magnitude) ||
		(minus && magnitude == 0))
		return -EBADMSG;
	*out = minus ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
	return 0;
}

static int read_value(struct reader *r, struct ngval *v, unsigned depth);

static int read_children(struct reader *r, struct ngval *parent, unsigned depth)
{
	int err;

	if (depth == NGVAL_MAX_DEPTH)
		return -EBADMSG;
	r->at++; /* 'd' or 'l' */
	while (peek(r) != 'e') {
		struct str key = STR_NONE;
		struct ngval *v;

		if (parent->type == NGVAL_DICT && read_string(r, &key))
			return -EBADMSG;
		if (peek(r) < 0)
			return -EBADMSG;
		v = ngval_add_int(r->pool, parent, key, 0);
		if (!v)
			return -ENOMEM;
		err = read_value(r, v, depth + 1);
		if (err)
			return err;
	}
	r->at++;
	return 0;
}

static int read_value(struct reader *r, struct ngval *v, unsigned depth)
{
	switch (peek(r)) {
	case 'i':
		v->type = NGVAL_INT;
		return read_int(r, &v->num);
	case 'l':
		v->type = NGVAL_LIST;
		return read_children(r, v, depth);
	case 'd':
		v->type = NGVAL_DICT;
		return read_children(r, v, depth);
	default:
		v->type = NGVAL_STR;
		return read_string(r, &v->str);
	}
}

int bencode_parse(struct ngval **out, struct pool *p, struct str msg, size_t *pos)
{
	struct reader r = {.pool = p, .msg = msg};
	struct ngval *v = ngval_dict(p);
	int err = v ? read_value(&r, v, 0) : -ENOMEM;

	if (!err && r.at != msg.len)
		err = -EBADMSG;
	*pos = r.at;
	if (!err)
		*out = v;
	return err;
}

static void write_string(struct sbuf *b, struct str s)
{
	sbuf_printf(b, "%zu:", s.len);
	sbuf_str(b, s);
}

/* The caller bounds the depth: our own replies are shallow, parsed trees have at most
 * NGVAL_MAX_DEPTH. */
void bencode_write(struct sbuf *b, const struct ngval *v)
{
	if (!v) {
		b->err = b->err ? b->err : -ENOMEM; /* a tree that could not be built */
		return;
	}
	if (v->type == NGVAL_STR) {
		write_string(b, v->str);
		return;
	}
	if (v->type == NGVAL_INT) {
		sbuf_printf(b, "i%" PRId64 "e", v->num);
		return;
	}
	sbuf_str(b, v->type == NGVAL_DICT ? STR("d") : STR("l"));
	for (const struct ngval *c = v->first; c && !b->err; c = c->next) {
		if (v->type == NGVAL_DICT)
			write_string(b, c->key);
		bencode_write(b, c);
	}
	sbuf_str(b, STR("e"));
}
