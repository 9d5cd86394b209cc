/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tree of values behind ng messages: building it and looking things up. Pure; memory only
 * from the pool, so that a hostile message costs at most the pool's limit. */
#include "proto/ngval.h"

#include <inttypes.h>

static struct ngval *new_val(struct pool *p, enum ngval_type type)
{
	struct ngval *v = pool_alloc(p, sizeof(*v));

	if (v)
		v->type = type;
	return v;
}

struct ngval *ngval_dict(struct pool *p)
{
	return new_val(p, NGVAL_DICT);
}

struct ngval *ngval_list(struct pool *p)
{
	return new_val(p, NGVAL_LIST);
}

static struct ngval *add(struct pool *p, struct ngval *parent, struct str key, enum ngval_type type)
{
	struct ngval *v = parent ? new_val(p, type) : NULL;

	if (!v)
		return NULL;
	v->key = key;
	if (parent->last)
		parent->last->next = v;
	else
		parent->first = v;
	parent->last = v;
	return v;
}

struct ngval *ngval_add_str(struct pool *p, struct ngval *parent, struct str key, struct str value)
{
	struct ngval *v = add(p, parent, key, NGVAL_STR);

	if (v)
		v->str = value;
	return v;
}

struct ngval *ngval_add_int(struct pool *p, struct ngval *parent, struct str key, int64_t value)
{
	struct ngval *v = add(p, parent, key, NGVAL_INT);

	if (v)
		v->num = value;
	return v;
}

struct ngval *ngval_add_dict(struct pool *p, struct ngval *parent, struct str key)
{
	return add(p, parent, key, NGVAL_DICT);
}

struct ngval *ngval_add_list(struct pool *p, struct ngval *parent, struct str key)
{
	return add(p, parent, key, NGVAL_LIST);
}

const struct ngval *ngval_get(const struct ngval *v, struct str key)
{
	if (!v || v->type != NGVAL_DICT)
		return NULL;
	for (const struct ngval *c = v->first; c; c = c->next)
		if (str_eq(c->key, key))
			return c;
	return NULL;
}

const struct ngval *ngval_get_like(const struct ngval *v, struct str key)
{
	if (!v || v->type != NGVAL_DICT)
		return NULL;
	for (const struct ngval *c = v->first; c; c = c->next)
		if (ng_spelled_like(c->key, key))
			return c;
	return NULL;
}

static char fold(char c)
{
	if (c >= 'A' && c <= 'Z')
		return (char)(c + ('a' - 'A'));
	return c == ' ' || c == '_' ? '-' : c;
}

bool ng_spelled_like(struct str a, struct str b)
{
	if (a.len != b.len)
		return false;
	for (size_t i = 0; i < a.len; i++)
		if (fold(a.s[i]) != fold(b.s[i]))
			return false;
	return true;
}

struct str ngval_str(struct pool *p, const struct ngval *v)
{
	if (v && v->type == NGVAL_STR)
		return v->str;
	if (v && v->type == NGVAL_INT)
		return pool_printf(p, "%" PRId64, v->num);
	return STR_NONE;
}

int64_t ngval_int(const struct ngval *v, int64_t def)
{
	struct str a;
	uint64_t u;
	bool minus;

	if (!v || (v->type != NGVAL_STR && v->type != NGVAL_INT))
		return def;
	if (v->type == NGVAL_INT)
		return v->num;
	a = str_trim(v->str);
	minus = a.len && a.s[0] == '-';
	if (minus) {
		a.s++;
		a.len--;
	}
	if (str_to_u64(&u, a, INT64_MAX))
		return def;
	return minus ? -(int64_t)u : (int64_t)u;
}
