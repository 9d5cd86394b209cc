/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Two generations of a hash table with chains: new replies go into the young one, both are
 * searched, and when its time is over or the young one is full, the old one goes and the young
 * one becomes old. So nothing is ever searched for by age. What goes is wiped and freed a little at a time, since tens of
 * thousands of replies at once would hold the control thread up. */
#include "control/cookie.h"

#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/secmem.h"

#define BUCKETS 4096u /* per generation; a power of two */
#define SOME    16u   /* replies freed when one is kept */
#define MORE    1024u /* at a tick */

struct entry {
	struct entry *next;
	uint64_t hash;
	struct endpoint from;
	size_t cookie_len, reply_len;
	char bytes[]; /* cookie, reply */
};

struct generation {
	struct entry *bucket[BUCKETS];
	size_t bytes;
	uint32_t entries;
	uint32_t at; /* while it goes: buckets below are empty */
};

struct cookie_cache {
	uint8_t hash_key[16];
	struct cookie_limits half; /* of one generation */
	uint64_t swap_ns;          /* 0 = not known yet */
	struct generation *young, *old, *going;
};

static size_t entry_len(const struct entry *e)
{
	return sizeof(*e) + e->cookie_len + e->reply_len;
}

/* So many of what is on its way out. */
static void forget(struct generation *g, uint32_t n)
{
	while (n && g->entries) {
		struct entry *e = g->bucket[g->at];

		if (!e) {
			g->at++;
			continue;
		}
		g->bucket[g->at] = e->next;
		secmem_wipe(e, entry_len(e));
		free(e);
		g->entries--;
		n--;
	}
	if (!g->entries) {
		g->at = 0;
		g->bytes = 0;
	}
}

static void swap(struct cookie_cache *c)
{
	struct generation *g = c->going;

	forget(g, UINT32_MAX); /* nearly always nothing is left of it */
	c->going = c->old;
	c->old = c->young;
	c->young = g;
}

int cookie_create(
	struct cookie_cache **out, const uint8_t hash_key[16], struct cookie_limits limits)
{
	struct cookie_cache *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->young = calloc(1, sizeof(*c->young));
	c->old = calloc(1, sizeof(*c->old));
	c->going = calloc(1, sizeof(*c->going));
	if (!c->young || !c->old || !c->going) {
		free(c->young);
		free(c->old);
		free(c->going);
		free(c);
		return -ENOMEM;
	}
	memcpy(c->hash_key, hash_key, sizeof(c->hash_key));
	c->half = (struct cookie_limits){limits.bytes / 2, limits.entries / 2};
	*out = c;
	return 0;
}

void cookie_destroy(struct cookie_cache *c)
{
	if (!c)
		return;
	forget(c->young, UINT32_MAX);
	forget(c->old, UINT32_MAX);
	forget(c->going, UINT32_MAX);
	free(c->young);
	free(c->old);
	free(c->going);
	free(c);
}

void cookie_tick(struct cookie_cache *c, uint64_t now_ns)
{
	if (c->swap_ns == 0)
		c->swap_ns = now_ns + COOKIE_GENERATION_NS;
	/* Twice when both are over: nothing may live longer because nobody asked. */
	for (int i = 0; i < 2 && now_ns >= c->swap_ns; i++) {
		swap(c);
		c->swap_ns += COOKIE_GENERATION_NS;
	}
	if (now_ns >= c->swap_ns)
		c->swap_ns = now_ns + COOKIE_GENERATION_NS;
	forget(c->going, MORE);
}

static uint64_t hash(const struct cookie_cache *c, const struct endpoint *from, struct str cookie)
{
	/* the address's hash is mixed into the key for the cookie's: no copy of both into one
	 * place */
	uint64_t h = hash_siphash(c->hash_key, from->addr, sizeof(from->addr)) ^ from->port;
	uint8_t key[16];

	memcpy(key, c->hash_key, sizeof(key));
	for (int i = 0; i < 8; i++)
		key[i] ^= (uint8_t)(h >> 8 * i);
	return hash_siphash(key, cookie.s, cookie.len);
}

static const struct entry *find(
	const struct generation *g, uint64_t h, const struct endpoint *from, struct str cookie)
{
	for (const struct entry *e = g->bucket[h % BUCKETS]; e; e = e->next)
		if (e->hash == h && endpoint_eq(&e->from, from) &&
			str_eq((struct str){e->bytes, e->cookie_len}, cookie))
			return e;
	return NULL;
}

struct str cookie_get(const struct cookie_cache *c, const struct endpoint *from, struct str cookie)
{
	uint64_t h = hash(c, from, cookie);
	const struct entry *e = find(c->young, h, from, cookie);

	if (!e)
		e = find(c->old, h, from, cookie);
	return e ? (struct str){e->bytes + e->cookie_len, e->reply_len} : STR_NONE;
}

int cookie_put(
	struct cookie_cache *c, const struct endpoint *from, struct str cookie, struct str reply)
{
	uint64_t h = hash(c, from, cookie);
	size_t len = sizeof(struct entry) + cookie.len + reply.len;
	struct entry *e;

	if (len > c->half.bytes || c->half.entries == 0)
		return -EMSGSIZE;
	if (len > c->half.bytes - c->young->bytes || c->young->entries == c->half.entries)
		swap(c);
	forget(c->going, SOME);
	e = malloc(len);
	if (!e)
		return -ENOMEM;
	*e = (struct entry){.next = c->young->bucket[h % BUCKETS],
		.hash = h,
		.from = *from,
		.cookie_len = cookie.len,
		.reply_len = reply.len};
	if (cookie.len)
		memcpy(e->bytes, cookie.s, cookie.len);
	if (reply.len)
		memcpy(e->bytes + cookie.len, reply.s, reply.len);
	c->young->bucket[h % BUCKETS] = e;
	c->young->bytes += len;
	c->young->entries++;
	return 0;
}
