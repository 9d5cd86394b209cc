/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A hash table of MACs, and a list per second of signing. A list is emptied when its second has
 * left the window.
 *
 * The clock may be set back, so a second whose list was emptied can come again. Therefore the table
 * stores which seconds the clock has shown. While the clock goes forward, or back by at most the
 * window, these seconds are one range, called a life. A larger step begins another life and empties
 * all lists. Requests that were signed in an earlier life are refused, because they may be copies.
 * Inside a life, requests are refused that were signed more than a window before its latest second.
 */
#include "control/once.h"

#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"

#define BUCKETS 32768u /* a power of two */
#define RING    64u
#define WINDOW  NG_AUTH_WINDOW_S
#define LIVES   8u /* at most this many; more are merged, including the gaps between them */

_Static_assert(RING > 2 * WINDOW + 1, "a list must not be needed for two seconds");

struct entry {
	struct entry *next, *later; /* in its bucket; in its second */
	struct endpoint from;
	uint8_t mac[NG_MAC_LEN];
	bool again; /* not executed: the next copy is new */
};

struct second {
	uint64_t is;
	struct entry *first;
};

struct life { /* range of seconds that the clock has shown, inclusive */
	uint64_t first, last;
};

struct once {
	uint8_t hash_key[16];
	uint32_t entries, max;
	struct life closed[LIVES];
	uint32_t lives;
	struct life clock; /* the current life; last = 0: none yet */
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

static struct entry *find(struct once *o, const uint8_t mac[NG_MAC_LEN])
{
	struct entry *e = *bucket_of(o, mac);

	while (e && memcmp(e->mac, mac, NG_MAC_LEN) != 0)
		e = e->next;
	return e;
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

static void close_life(struct once *o)
{
	if (o->lives == LIVES) {
		struct life *a = &o->closed[0], *b = &o->closed[1];

		a->first = a->first < b->first ? a->first : b->first;
		a->last = a->last > b->last ? a->last : b->last;
		o->lives--;
		memmove(b, b + 1, (o->lives - 1) * sizeof(*b));
	}
	o->closed[o->lives++] = o->clock;
	for (uint32_t i = 0; i < RING; i++)
		forget(o, &o->ring[i]);
}

/* Updates the current life: the clock shows now_s. */
static void live(struct once *o, uint64_t now_s)
{
	bool set = now_s + WINDOW < o->clock.last || now_s > o->clock.last + 2 * WINDOW;

	if (o->clock.last && set)
		close_life(o);
	if (!o->clock.last || set)
		o->clock = (struct life){now_s, now_s};
	else if (now_s > o->clock.last)
		o->clock.last = now_s;
}

/* Whether entries of that second may have been forgotten. */
static bool is_forgotten(const struct once *o, uint64_t second)
{
	for (uint32_t i = 0; i < o->lives; i++)
		if (second + WINDOW >= o->closed[i].first && second <= o->closed[i].last + WINDOW)
			return true;
	return second + WINDOW < o->clock.last;
}

void once_tick(struct once *o, uint64_t now_s)
{
	live(o, now_s);
	for (uint32_t i = 0; i < RING; i++)
		if (o->ring[i].is + WINDOW < o->clock.last)
			forget(o, &o->ring[i]);
}

uint32_t once_entries(const struct once *o)
{
	return o->entries;
}

void once_again(struct once *o, const struct ng_signed *request)
{
	struct entry *e = find(o, request->mac);

	if (e)
		e->again = true;
}

int once_check(struct once *o, const struct ng_signed *request, const struct endpoint *from,
	uint64_t now_s)
{
	struct entry **at, *e;
	struct second *s = &o->ring[request->seconds % RING];

	live(o, now_s);
	if (is_forgotten(o, request->seconds))
		return -ETIME;
	e = find(o, request->mac);
	if (e && endpoint_eq(&e->from, from) && e->again) {
		e->again = false;
		return 0;
	}
	if (e)
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
