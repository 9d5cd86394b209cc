/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cache.h"

#include <stdlib.h>
#include <string.h>

/* One block: the entry, the area, the answer, and the service follow each other. */
struct cache_entry {
	struct cache_entry *next_in_bucket;
	struct cache_entry *newer, *older;
	const char *service;
	const struct area *area;
	const struct answer *answer;
	int64_t inserted, expires;
	uint64_t hits;
	size_t size;
};

void cache_init(struct cache *c, uint32_t entries_max, uint64_t bytes_max, void *(*alloc)(size_t),
	void (*release)(void *))
{
	*c = (struct cache){.alloc = alloc,
		.release = release,
		.entries_max = entries_max,
		.bytes_max = bytes_max};
}

static unsigned bucket_of(const char *service)
{
	unsigned h = 5381;

	for (; *service; service++)
		h = h * 33 + (unsigned char)*service;
	return h % CACHE_BUCKETS;
}

/* --- Lists ------------------------------------------------------------------------------------ */

static void unlink_use(struct cache *c, struct cache_entry *e)
{
	*(e->newer ? &e->newer->older : &c->newest) = e->older;
	*(e->older ? &e->older->newer : &c->oldest) = e->newer;
}

static void link_newest(struct cache *c, struct cache_entry *e)
{
	e->newer = NULL;
	e->older = c->newest;
	*(c->newest ? &c->newest->newer : &c->oldest) = e;
	c->newest = e;
}

static void drop(struct cache *c, struct cache_entry *e)
{
	struct cache_entry **at = &c->bucket[bucket_of(e->service)];

	while (*at != e)
		at = &(*at)->next_in_bucket;
	*at = e->next_in_bucket;
	unlink_use(c, e);
	c->entries--;
	c->bytes -= e->size;
	c->release(e);
}

/* --- Look-up ---------------------------------------------------------------------------------- */

enum cache_found cache_find(
	struct cache *c, const char *service, const struct spot *s, int64_t now, struct answer *a)
{
	struct cache_entry *found = NULL;

	for (struct cache_entry *e = c->bucket[bucket_of(service)]; e; e = e->next_in_bucket) {
		if (e->expires <= now || strcmp(e->service, service) || !geo_covers(e->area, s))
			continue;
		if (found)
			return CACHE_AMBIGUOUS;
		found = e;
	}
	if (!found || !answer_copy(a, found->answer))
		return CACHE_MISS;
	a->cached = true;
	found->hits++;
	unlink_use(c, found);
	link_newest(c, found);
	return CACHE_HIT;
}

static bool same(const char *a, const char *b)
{
	return a && b && !strcmp(a, b);
}

const struct area *cache_area(
	const struct cache *c, const char *service, const char *source, const char *key)
{
	for (const struct cache_entry *e = c->bucket[bucket_of(service)]; e; e = e->next_in_bucket)
		if (!strcmp(e->service, service) && same(e->answer->text[A_source], source) &&
			same(e->answer->text[A_boundary_key], key))
			return e->area;
	return NULL;
}

/* --- Changes ---------------------------------------------------------------------------------- */

/* The part of an answer about the service, without the part about one caller. A boundary by value
 * would double an entry, and is known as an area. */
static struct answer impersonal(const struct answer *a)
{
	static const enum answer_text removed[] = {
		A_pidf, A_location_uri, A_method, A_profile, A_boundary, A_error};
	struct answer out = *a;

	for (size_t i = 0; i < sizeof(removed) / sizeof(*removed); i++)
		out.text[removed[i]] = NULL;
	out.tries = 0;
	return out;
}

static struct cache_entry *create(
	struct cache *c, const struct cache_key *k, const struct answer *a, const struct area *area)
{
	size_t answer = answer_flat_size(a), service = strlen(k->service) + 1;
	size_t area_size = (area->size + 7) / 8 * 8;
	size_t size = sizeof(struct cache_entry) + area_size + answer + service;
	struct cache_entry *e = size <= c->bytes_max ? c->alloc(size) : NULL;
	char *at;

	if (!e)
		return NULL;
	at = (char *)(e + 1);
	*e = (struct cache_entry){.inserted = k->now, .expires = k->expires, .size = size};
	e->area = memcpy(at, area, area->size);
	at += area_size;
	e->answer = answer_flatten(a, at);
	at += answer;
	e->service = memcpy(at, k->service, service);
	return e;
}

/* The older version of the same mapping. */
static void supersede(struct cache *c, const struct cache_key *k, const struct answer *a)
{
	struct cache_entry *next;

	for (struct cache_entry *e = c->bucket[bucket_of(k->service)]; e; e = next) {
		next = e->next_in_bucket;
		if (!strcmp(e->service, k->service) &&
			same(e->answer->text[A_source], a->text[A_source]) &&
			same(e->answer->text[A_source_id], a->text[A_source_id]))
			drop(c, e);
	}
}

bool cache_insert(
	struct cache *c, const struct cache_key *k, const struct answer *a, const struct area *area)
{
	struct answer general = impersonal(a);
	struct cache_entry *e;
	unsigned b = bucket_of(k->service);

	if (!c->entries_max || k->expires <= k->now)
		return false;
	/* Created first: area may be that of the entry that it replaces. */
	e = create(c, k, &general, area);
	if (!e)
		return false;
	supersede(c, k, a);
	while (c->oldest && (c->entries >= c->entries_max || c->bytes + e->size > c->bytes_max)) {
		drop(c, c->oldest);
		c->evicted++;
	}
	e->next_in_bucket = c->bucket[b];
	c->bucket[b] = e;
	link_newest(c, e);
	c->entries++;
	c->bytes += e->size;
	return true;
}

uint32_t cache_clear(struct cache *c, const char *service)
{
	struct cache_entry *older;
	uint32_t n = 0;

	for (struct cache_entry *e = c->newest; e; e = older) {
		older = e->older;
		if (!service || !strcmp(e->service, service)) {
			drop(c, e);
			n++;
		}
	}
	return n;
}

void cache_each(
	const struct cache *c, bool (*each)(void *arg, const struct cache_view *v), void *arg)
{
	for (const struct cache_entry *e = c->newest; e; e = e->older) {
		struct cache_view v = {.service = e->service,
			.uri = e->answer->text[A_uri],
			.source = e->answer->text[A_source],
			.source_id = e->answer->text[A_source_id],
			.points = area_points(e->area),
			.inserted = e->inserted,
			.expires = e->expires,
			.hits = e->hits};

		if (!each(arg, &v))
			return;
	}
}
