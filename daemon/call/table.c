/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calls by Call-ID. Attackers can choose Call-IDs, so the hash has a random key. If growing fails,
 * chains only get longer. */
#include "call/table.h"

#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/secmem.h"
#include "call/model.h"

#define BUCKETS_FIRST 256u
#define BUCKETS_MAX   (1u << 20)

int call_table_init(struct call_table *t)
{
	int err;

	*t = (struct call_table){.mask = BUCKETS_FIRST - 1};
	err = secmem_random(t->seed, sizeof(t->seed));
	if (err)
		return err;
	t->bucket = calloc(BUCKETS_FIRST, sizeof(struct call *));
	return t->bucket ? 0 : -ENOMEM;
}

void call_table_fini(struct call_table *t)
{
	free(t->bucket);
	*t = (struct call_table){0};
}

struct call *call_table_find(const struct call_table *t, struct str id)
{
	uint64_t hash = hash_siphash(t->seed, id.s, id.len);
	struct call *c = t->bucket[hash & t->mask];

	while (c && !(c->hash == hash && str_eq(c->id, id)))
		c = c->chain;
	return c;
}

static void grow(struct call_table *t)
{
	uint32_t mask = t->mask * 2 + 1;
	struct call **bucket = calloc((size_t)mask + 1, sizeof(struct call *));

	if (!bucket)
		return;
	for (struct call *c = t->first; c; c = c->next) {
		c->chain = bucket[c->hash & mask];
		bucket[c->hash & mask] = c;
	}
	free(t->bucket);
	t->bucket = bucket;
	t->mask = mask;
}

void call_table_add(struct call_table *t, struct call *c)
{
	if (t->count > t->mask && t->mask < BUCKETS_MAX - 1)
		grow(t);
	c->hash = hash_siphash(t->seed, c->id.s, c->id.len);
	c->chain = t->bucket[c->hash & t->mask];
	t->bucket[c->hash & t->mask] = c;
	c->serial = ++t->serial;
	c->next = NULL;
	c->prev = t->last;
	if (t->last)
		t->last->next = c;
	else
		t->first = c;
	t->last = c;
	t->count++;
}

static struct call **place(struct call_table *t, const struct call *c)
{
	struct call **at = &t->bucket[c->hash & t->mask];

	while (*at != c)
		at = &(*at)->chain;
	return at;
}

void call_table_remove(struct call_table *t, struct call *c)
{
	*place(t, c) = c->chain;
	*(c->prev ? &c->prev->next : &t->first) = c->next;
	*(c->next ? &c->next->prev : &t->last) = c->prev;
	t->count--;
}

void call_table_replace(struct call_table *t, struct call *old, struct call *neu)
{
	neu->hash = old->hash;
	neu->serial = old->serial;
	neu->chain = old->chain;
	neu->prev = old->prev;
	neu->next = old->next;
	*place(t, old) = neu;
	*(old->prev ? &old->prev->next : &t->first) = neu;
	*(old->next ? &old->next->prev : &t->last) = neu;
}
