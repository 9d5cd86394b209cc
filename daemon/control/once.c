/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A hash table of MACs, and a list per second of signing. The window has 2 * NG_AUTH_WINDOW_S + 1
 * seconds and the ring of lists is longer, so a list never serves two seconds at a time. It is
 * emptied when its second has left the window. */
#include "control/once.h"

#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"

#define BUCKETS 32768u /* a power of two */
#define RING    64u

_Static_assert(RING > 2 * NG_AUTH_WINDOW_S + 1, "a list must not be needed for two seconds");

struct entry {
	struct entry *next, *later; /* in its bucket; in its second */
	struct endpoint from;
	uint8_t mac[NG_MAC_LEN];
};

struct second {
	uint64_t is;
	struct entry *first;
};

struct once {
	uint8_t hash_key[16];
	uint32_t entries, max;
	struct second ring[RING];
	struct entry *bucket[BUCKETS];
};

int once_create(struct once **out, const uint8_t hash_key[16], uint32_t entries)
{
	struct once *o = calloc(1, sizeof(*o));

	if (!o)
		return -ENOMEM;
	memcpy(o->hash_key, hash_key, sizeof(o->hash_key));
	o->max = entries ? entries : ONCE_ENTRIES;
	*out = o;
	return 0;
}

static struct entry **bucket_of(struct once *o, const uint8_t mac[NG_MAC_LEN])
{
	return &o->bucket[hash_siphash(o->hash_key, mac, NG_MAC_LEN) % BUCKETS];
}

static void forget(struct once *o, struct second *s)
{
	while (s->first) {
		struct entry *e = s->first, **at = bucket_of(o, e->mac);

		while (*at != e)
			at = &(*at)->next;
		*at = e->next;
		s->first = e->later;
		free(e);
		o->entries--;
	}
}

void once_destroy(struct once *o)
{
	if (!o)
		return;
	for (uint32_t i = 0; i < RING; i++)
		forget(o, &o->ring[i]);
	free(o);
}

void once_tick(struct once *o, uint64_t now_s)
{
	for (uint32_t i = 0; i < RING; i++)
		if (o->ring[i].is + NG_AUTH_WINDOW_S < now_s ||
			now_s + NG_AUTH_WINDOW_S < o->ring[i].is)
			forget(o, &o->ring[i]);
}

uint32_t once_entries(const struct once *o)
{
	return o->entries;
}

int once_check(struct once *o, const struct ng_signed *request, const struct endpoint *from,
	uint64_t now_s)
{
	struct entry **at = bucket_of(o, request->mac), *e;
	struct second *s = &o->ring[request->seconds % RING];

	for (e = *at; e; e = e->next)
		if (memcmp(e->mac, request->mac, NG_MAC_LEN) == 0)
			return endpoint_eq(&e->from, from) ? -EALREADY : -EADDRINUSE;
	if (o->entries >= o->max)
		once_tick(o, now_s);
	if (o->entries >= o->max)
		return -ENOBUFS;
	if (s->is != request->seconds)
		forget(o, s);
	s->is = request->seconds;
	e = malloc(sizeof(*e));
	if (!e)
		return -ENOMEM;
	/* forget() may have changed the bucket */
	at = bucket_of(o, request->mac);
	*e = (struct entry){.next = *at, .later = s->first, .from = *from};
	memcpy(e->mac, request->mac, NG_MAC_LEN);
	*at = s->first = e;
	o->entries++;
	return 0;
}
