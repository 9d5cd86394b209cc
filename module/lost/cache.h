/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Mappings that servers returned, by service and boundary (RFC 5222 section 5.3): a place that is
 * certainly inside of a known boundary needs no query. It lives in shared memory; its user holds
 * the lock. Bounded in entries and in bytes; the least recently used entries are dropped. */
#ifndef LOST_CACHE_H
#define LOST_CACHE_H

#include "answer.h"
#include "geo.h"

#define CACHE_BUCKETS 64

struct cache_entry;

struct cache {
	void *(*alloc)(size_t size);
	void (*release)(void *block);
	uint32_t entries_max;
	uint64_t bytes_max;
	uint32_t entries;
	uint64_t bytes;
	struct cache_entry *bucket[CACHE_BUCKETS]; /* by service */
	struct cache_entry *newest, *oldest;       /* by last use */
	uint64_t evicted;
};

/* Key and lifetime of a mapping. Times are seconds since 1970. */
struct cache_key {
	const char *service; /* as asked, not as the server named it */
	int64_t expires, now;
};

/* One entry for operators, without coordinates. Valid while the lock is held. */
struct cache_view {
	const char *service, *uri, *source, *source_id;
	uint32_t points;
	int64_t inserted, expires;
	uint64_t hits;
};

/* 0 entries: it stays empty. */
void cache_init(struct cache *c, uint32_t entries_max, uint64_t bytes_max, void *(*alloc)(size_t),
	void (*release)(void *));

enum cache_found {
	CACHE_MISS,
	CACHE_HIT,
	CACHE_AMBIGUOUS, /* several mappings cover the place: a server has to decide */
};
/* With a hit *a is a copy that the caller clears. */
enum cache_found cache_find(
	struct cache *c, const char *service, const struct spot *s, int64_t now, struct answer *a);

/* Stores a mapping, without data of one caller (location, method). It replaces that of the
 * same source and source id. False: expired, too large, or out of memory. */
bool cache_insert(struct cache *c, const struct cache_key *k, const struct answer *a,
	const struct area *area);
/* The area of an entry, perhaps expired, of that service and source with that boundary key. It is
 * valid until the cache changes. NULL: none. */
const struct area *cache_area(
	const struct cache *c, const char *service, const char *source, const char *key);

/* Removes the mappings of a service, or all with NULL. Returns their number. */
uint32_t cache_clear(struct cache *c, const char *service);
/* Calls each() for every entry, most recently used first, until it returns false. */
void cache_each(
	const struct cache *c, bool (*each)(void *arg, const struct cache_view *v), void *arg);

#endif
