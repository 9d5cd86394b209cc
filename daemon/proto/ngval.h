/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The value tree of ng messages, independent of their encoding: dictionaries, lists, strings,
 * integers. Lives in a pool; strings are slices of the message or the pool. Pure. */
#ifndef PROTO_NGVAL_H
#define PROTO_NGVAL_H

#include "base/pool.h"
#include "base/sbuf.h"

#define NGVAL_MAX_DEPTH 32 /* deeper nesting is an error; real messages are far from it */

enum ngval_type { NGVAL_STR, NGVAL_INT, NGVAL_LIST, NGVAL_DICT };

struct ngval {
	enum ngval_type type;
	struct str str;      /* NGVAL_STR */
	int64_t num;         /* NGVAL_INT */
	struct ngval *first; /* NGVAL_LIST, NGVAL_DICT: children in order */
	struct ngval *last;
	struct ngval *next; /* sibling */
	struct str key;     /* when it is a dictionary's child */
};

struct ngval *ngval_dict(struct pool *p);
struct ngval *ngval_list(struct pool *p);
/* Append to a dictionary (key given) or a list (key STR_NONE). Return the new child, or NULL if out
 * of memory or if parent is NULL. So a tree can be built without a check per line: call
 * pool_failed() once at the end. Strings are not copied. */
struct ngval *ngval_add_str(struct pool *p, struct ngval *parent, struct str key, struct str value);
struct ngval *ngval_add_int(struct pool *p, struct ngval *parent, struct str key, int64_t value);
struct ngval *ngval_add_dict(struct pool *p, struct ngval *parent, struct str key);
struct ngval *ngval_add_list(struct pool *p, struct ngval *parent, struct str key);

/* First child with exactly this key. NULL if there is none, or if v is not a dictionary. */
const struct ngval *ngval_get(const struct ngval *v, struct str key);
/* The same, but case is ignored, and space, '-' and '_' are equal: ng has many spellings. */
const struct ngval *ngval_get_like(const struct ngval *v, struct str key);
bool ng_spelled_like(struct str a, struct str b);
/* String value. Integers are written to the pool as decimal. STR_NONE if v is NULL or of another
 * kind. */
struct str ngval_str(struct pool *p, const struct ngval *v);
/* Integer value, also of a decimal string. def if v is NULL or of another kind. */
int64_t ngval_int(const struct ngval *v, int64_t def);

#endif
