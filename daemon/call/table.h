/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The hash table of calls by Call-ID. */
#ifndef CALL_TABLE_H
#define CALL_TABLE_H

#include "call/model.h"

struct call_table {
	uint8_t seed[16];
	struct call **bucket;
	uint32_t mask, count;
	uint64_t serial;
	struct call *first, *last; /* in order of creation */
};
int call_table_init(struct call_table *t);
void call_table_fini(struct call_table *t);
struct call *call_table_find(const struct call_table *t, struct str id);
void call_table_add(struct call_table *t, struct call *c);
void call_table_remove(struct call_table *t, struct call *c);

/* neu takes old's place. */
void call_table_replace(struct call_table *t, struct call *old, struct call *neu);

#endif
