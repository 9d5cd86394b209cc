/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The value tree of ng messages, whichever way they are encoded: dictionaries, lists, strings,
 * integers. Lives in a pool; strings are slices into the message or the pool. Pure. */
#ifndef PROTO_NGVAL_H
#define PROTO_NGVAL_H

#include "base/pool.h"
#include "base/sbuf.h"

#define NGVAL_MAX_DEPTH 32 /* deeper nesting is an error: nothing real comes near it */
#define JSON_MAX_VALUES \
	2048u /* likewise, in JSON: of a dictionary's keys each is looked for among those before it */

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
/* Append to a dictionary (key given) or a list (key STR_NONE). Return the new child, or NULL
 * without memory or when parent is NULL: so that a tree is built without a check per line; ask
 * pool_failed() once at the end. Strings are not copied. */
struct ngval *ngval_add_str(struct pool *p, struct ngval *parent, struct str key, struct str value);
struct ngval *ngval_add_int(struct pool *p, struct ngval *parent, struct str key, int64_t value);
struct ngval *ngval_add_dict(struct pool *p, struct ngval *parent, struct str key);
struct ngval *ngval_add_list(struct pool *p, struct ngval *parent, struct str key);

/* First child with this key, exactly; NULL if none or v is no dictionary. */
const struct ngval *ngval_get(const struct ngval *v, struct str key);
/* The same, but space, '-' and '_' are one and the same letter, and case is ignored: ng has many
 * spellings. */
const struct ngval *ngval_get_like(const struct ngval *v, struct str key);
bool ng_spelled_like(struct str a, struct str b);
/* String value; integers are written into the pool as decimal. STR_NONE if v is NULL or neither. */
struct str ngval_str(struct pool *p, const struct ngval *v);
/* Integer value, also from a decimal string. def if v is NULL or neither. */
int64_t ngval_int(const struct ngval *v, int64_t def);

/* Bencode (BEP 3), liberal in the order of keys, strict in everything else. Whole message: 0, or
 * -EBADMSG with *pos where it went wrong, -ENOMEM. */
int bencode_parse(struct ngval **out, struct pool *p, struct str msg, size_t *pos);
void bencode_write(struct sbuf *b, const struct ngval *v);
/* JSON (RFC 8259). Booleans become 0 and 1, null an empty string, reals are cut to
 * integers. */
int json_parse(struct ngval **out, struct pool *p, struct str msg, size_t *pos);
/* pretty: indented, for people. Bytes that are no UTF-8 become U+FFFD. */
void json_write(struct sbuf *b, const struct ngval *v, bool pretty);

#endif
