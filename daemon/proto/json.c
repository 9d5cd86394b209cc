/* SPDX-License-Identifier: GPL-2.0-or-later */
/* JSON (RFC 8259): read by jansson and copied into the pool, written by hand, because replies
 * may hold bytes that are no UTF-8 (tags, Call-IDs) and must become valid JSON all the same. A
 * repeated key: the last one wins. */
#include "proto/ngval.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <malloc.h>
#include <stdlib.h>

#include "base/secmem.h"
#include "proto/utf8.h"

static void free_wiped(void *p)
{
	if (p)
		secmem_wipe(p, malloc_usable_size(p));
	free(p);
}

void json_wipe_freed(void)
{
	json_set_alloc_funcs(malloc, free_wiped);
}

/* --- Reading ------------------------------------------------------------------------------- */

static int convert(struct pool *p, struct ngval *v, json_t *j, unsigned depth);

static int convert_children(struct pool *p, struct ngval *v, json_t *j, unsigned depth)
{
	struct ngval *child;
	struct str key;
	json_t *item;
	int err = 0;

	if (depth == NGVAL_MAX_DEPTH)
		return -EBADMSG;
	if (json_is_object(j)) {
		for (void *i = json_object_iter(j); i && !err; i = json_object_iter_next(j, i)) {
			key = pool_strdup(p, str_from(json_object_iter_key(i)));
			child = key.s ? ngval_add_int(p, v, key, 0) : NULL;
			err = child ? convert(p, child, json_object_iter_value(i), depth + 1)
				    : -ENOMEM;
		}
		return err;
	}
	for (size_t i = 0; i < json_array_size(j) && !err; i++) {
		item = json_array_get(j, i);
		child = ngval_add_int(p, v, STR_NONE, 0);
		err = child ? convert(p, child, item, depth + 1) : -ENOMEM;
	}
	return err;
}

static int convert(struct pool *p, struct ngval *v, json_t *j, unsigned depth)
{
	double real;

	switch (json_typeof(j)) {
	case JSON_OBJECT:
	case JSON_ARRAY:
		v->type = json_is_object(j) ? NGVAL_DICT : NGVAL_LIST;
		return convert_children(p, v, j, depth);
	case JSON_STRING:
		v->type = NGVAL_STR;
		v->str = pool_strdup(p, (struct str){json_string_value(j), json_string_length(j)});
		return v->str.s ? 0 : -ENOMEM;
	case JSON_REAL:
		real = json_real_value(j);
		/* 2^63 is exact as a double; what is below it and not below -2^63 fits. */
		if (!(real >= -9223372036854775808.0 && real < 9223372036854775808.0))
			return -EBADMSG;
		v->num = (int64_t)real;
		break;
	case JSON_INTEGER:
		v->num = json_integer_value(j);
		break;
	case JSON_TRUE:
	case JSON_FALSE:
		v->num = json_is_true(j);
		break;
	case JSON_NULL:
		v->type = NGVAL_STR;
		v->str = STR("");
		return 0;
	}
	v->type = NGVAL_INT;
	return 0;
}

/* As many values as this has commas and opening brackets outside strings, roughly: an upper limit but for one. */
static size_t count_values(struct str msg)
{
	bool in_string = false;
	size_t n = 1;

	for (size_t i = 0; i < msg.len; i++) {
		char c = msg.s[i];

		if (c == '"')
			in_string = !in_string;
		else if (in_string && c == '\\')
			i++;
		else if (!in_string && (c == ',' || c == '{' || c == '['))
			n++;
	}
	return n;
}

int json_parse(struct ngval **out, struct pool *p, struct str msg, size_t *pos)
{
	struct ngval *v = ngval_dict(p);
	json_error_t e = {0};
	json_t *j;
	int err;

	*pos = 0;
	if (!v)
		return -ENOMEM;
	if (count_values(msg) > JSON_MAX_VALUES)
		return -EBADMSG;
	/* jansson takes no NULL, also when there is nothing to read */
	j = json_loadb(msg.len ? msg.s : "", msg.len, JSON_ALLOW_NUL | JSON_DECODE_ANY, &e);
	if (!j) {
		*pos = e.position > 0 ? (size_t)e.position : 0;
		return json_error_code(&e) == json_error_out_of_memory ? -ENOMEM : -EBADMSG;
	}
	err = convert(p, v, j, 0);
	json_decref(j);
	if (!err)
		*out = v;
	return err;
}

/* --- Writing ------------------------------------------------------------------------------- */

static void write_escaped(struct sbuf *b, unsigned char c)
{
	switch (c) {
	case '\n':
		sbuf_str(b, STR("\\n"));
		break;
	case '\r':
		sbuf_str(b, STR("\\r"));
		break;
	case '\t':
		sbuf_str(b, STR("\\t"));
		break;
	case '"':
	case '\\':
		sbuf_printf(b, "\\%c", c);
		break;
	default:
		sbuf_printf(b, "\\u%04x", c);
	}
}

/* is_key: a NUL is replaced too, since readers, jansson among them, take no NUL in keys. */
static void write_string(struct sbuf *b, struct str s, bool is_key)
{
	size_t done = 0, at = 0;

	sbuf_str(b, STR("\""));
	while (at < s.len) {
		unsigned char c = (unsigned char)s.s[at];
		size_t len = utf8_len((struct str){s.s + at, s.len - at});
		bool plain = len > 0 && c >= 0x20 && c != '"' && c != '\\';

		if (plain) {
			at += len;
			continue;
		}
		sbuf_put(b, s.s + done, at - done);
		if (len == 0 || (c == 0 && is_key))
			sbuf_str(b, STR("\xef\xbf\xbd"));
		else
			write_escaped(b, c);
		at++;
		done = at;
	}
	if (at > done)
		sbuf_put(b, s.s + done, at - done);
	sbuf_str(b, STR("\""));
}

static void new_line(struct sbuf *b, unsigned indent)
{
	sbuf_str(b, STR("\n"));
	for (unsigned i = 0; i < indent; i++)
		sbuf_str(b, STR("  "));
}

static void write_value(struct sbuf *b, const struct ngval *v, bool pretty, unsigned indent)
{
	bool dict = v->type == NGVAL_DICT;

	if (v->type == NGVAL_STR) {
		write_string(b, v->str, false);
		return;
	}
	if (v->type == NGVAL_INT) {
		sbuf_printf(b, "%" PRId64, v->num);
		return;
	}
	sbuf_str(b, dict ? STR("{") : STR("["));
	for (const struct ngval *c = v->first; c && !b->err; c = c->next) {
		if (c != v->first)
			sbuf_str(b, STR(","));
		if (pretty)
			new_line(b, indent + 1);
		if (dict) {
			write_string(b, c->key, true);
			sbuf_str(b, pretty ? STR(": ") : STR(":"));
		}
		write_value(b, c, pretty, indent + 1);
	}
	if (pretty && v->first)
		new_line(b, indent);
	sbuf_str(b, dict ? STR("}") : STR("]"));
}

void json_write(struct sbuf *b, const struct ngval *v, bool pretty)
{
	if (!v) {
		b->err = b->err ? b->err : -ENOMEM; /* a tree that could not be built */
		return;
	}
	write_value(b, v, pretty, 0);
}
