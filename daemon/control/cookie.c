/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One hash table with chains, and a queue per share of the sources, oldest reply first. Replies are
 * freed at the head of a queue, if they are too old, or if the cache is full and this share uses
 * most of it. Each request frees about as many replies as it stores, so no request waits until
 * thousands are freed. */
#include "control/cookie.h"

#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/secmem.h"
#include "control/source.h"

#define BUCKETS 8192u /* a power of two */
#define SHARES  64u
#define SOME    4u    /* old replies freed when one is stored */
#define MORE    8192u /* at a tick */

struct entry {
	struct entry *next, **prev; /* in its bucket */
	struct entry *younger;      /* of its share */
	uint64_t hash, expires_ns;
	struct endpoint from;
	size_t cookie_len, reply_len;
	char bytes[]; /* cookie, reply */
};

struct share {
	struct entry *oldest, **youngest; /* youngest: where the next one is linked */
	size_t bytes;
};

struct cookie_cache {
	uint8_t hash_key[16];
	struct cookie_limits limits;
	uint64_t now_ns;
	size_t bytes;
	uint32_t entries;
	uint32_t next_share; /* share that the next tick checks */
	struct share share[SHARES];
	struct entry *bucket[BUCKETS];
};

static size_t entry_len(const struct entry *e)
{
	return sizeof(*e) + e->cookie_len + e->reply_len;
}

static void forget_oldest(struct cookie_cache *c, struct share *s)
{
	struct entry *e = s->oldest;
	size_t len = entry_len(e);

	*e->prev = e->next;
	if (e->next)
		e->next->prev = e->prev;
	s->oldest = e->younger;
	if (!s->oldest)
		s->youngest = &s->oldest;
	s->bytes -= len;
	c->bytes -= len;
	c->entries--;
	secmem_wipe(e, len);
	free(e);
}

/* Frees at most n; returns the unused part of n. */
static uint32_t forget_old(struct cookie_cache *c, struct share *s, uint32_t n)
{
	while (n && s->oldest && s->oldest->expires_ns <= c->now_ns) {
		forget_oldest(c, s);
		n--;
	}
	return n;
}

static struct share *largest(struct cookie_cache *c)
{
	struct share *s = &c->share[0];

	for (uint32_t i = 1; i < SHARES; i++)
		if (c->share[i].bytes > s->bytes)
			s = &c->share[i];
	return s;
}

int cookie_create(
	struct cookie_cache **out, const uint8_t hash_key[16], struct cookie_limits limits)
{
	struct cookie_cache *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	memcpy(c->hash_key, hash_key, sizeof(c->hash_key));
	c->limits = limits;
	for (uint32_t i = 0; i < SHARES; i++)
		c->share[i].youngest = &c->share[i].oldest;
	*out = c;
	return 0;
}

void cookie_destroy(struct cookie_cache *c)
{
	if (!c)
		return;
	for (uint32_t i = 0; i < SHARES; i++)
		while (c->share[i].oldest)
			forget_oldest(c, &c->share[i]);
	free(c);
}

void cookie_tick(struct cookie_cache *c, uint64_t now_ns)
{
	uint32_t left = MORE;

	c->now_ns = now_ns;
	for (uint32_t i = 0; i < SHARES && left; i++)
		left = forget_old(c, &c->share[c->next_share++ % SHARES], left);
}

static uint64_t hash(const struct cookie_cache *c, const struct endpoint *from, struct str cookie)
{
	/* mixes the address's hash into the key for the cookie's: saves copying both together */
	uint64_t h = hash_siphash(c->hash_key, from->addr, sizeof(from->addr)) ^ from->port;
	uint8_t key[16];

	memcpy(key, c->hash_key, sizeof(key));
	for (int i = 0; i < 8; i++)
		key[i] ^= (uint8_t)(h >> 8 * i);
	return hash_siphash(key, cookie.s, cookie.len);
}

struct str cookie_get(const struct cookie_cache *c, const struct endpoint *from, struct str cookie)
{
	uint64_t h = hash(c, from, cookie);

	for (const struct entry *e = c->bucket[h % BUCKETS]; e; e = e->next)
		if (e->hash == h && e->expires_ns > c->now_ns && endpoint_eq(&e->from, from) &&
			str_eq((struct str){e->bytes, e->cookie_len}, cookie))
			return (struct str){e->bytes + e->cookie_len, e->reply_len};
	return STR_NONE;
}

/* False: it is larger than half the cache. */
static bool make_room(struct cookie_cache *c, struct share *mine, size_t len)
{
	if (c->limits.entries == 0 || len > c->limits.bytes / 2)
		return false;
	forget_old(c, mine, SOME);
	while (c->entries >= c->limits.entries || c->bytes + len > c->limits.bytes)
		forget_oldest(c, largest(c));
	return true;
}

int cookie_put(
	struct cookie_cache *c, const struct endpoint *from, struct str cookie, struct str reply)
{
	uint64_t h = hash(c, from, cookie);
	struct share *mine = &c->share[source_share(c->hash_key, from, SHARES)];
	struct entry **bucket = &c->bucket[h % BUCKETS], *e;
	size_t len = sizeof(*e) + cookie.len + reply.len;

	if (!make_room(c, mine, len))
		return -EMSGSIZE;
	e = malloc(len);
	if (!e)
		return -ENOMEM;
	*e = (struct entry){.next = *bucket,
		.prev = bucket,
		.hash = h,
		.expires_ns = c->now_ns + COOKIE_LIFE_NS,
		.from = *from,
		.cookie_len = cookie.len,
		.reply_len = reply.len};
	if (cookie.len)
		memcpy(e->bytes, cookie.s, cookie.len);
	if (reply.len)
		memcpy(e->bytes + cookie.len, reply.s, reply.len);
	if (e->next)
		e->next->prev = &e->next;
	*bucket = e;
	*mine->youngest = e;
	mine->youngest = &e->younger;
	mine->bytes += len;
	c->bytes += len;
	c->entries++;
	return 0;
}
