/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stochastic fair queueing: a queue per share of the sources, and a ring of the queues that are not
 * empty. When all memory is used, the longest queue loses its oldest datagram. If the new datagram
 * belongs to that queue, it is refused instead. */
#include "control/backlog.h"

#include <errno.h>
#include <stdlib.h>

#include "base/secmem.h"
#include "control/source.h"

#define SHARES 256u

struct queue {
	struct queue *turn; /* the next non-empty queue */
	struct waiting *first, **last;
	uint32_t datagrams;
	size_t bytes;
};

struct backlog {
	uint8_t hash_key[16];
	struct queue *first, **last; /* non-empty queues, in the order of their turns */
	size_t bytes;
	struct queue queue[SHARES];
};

int backlog_create(struct backlog **out, const uint8_t hash_key[16])
{
	struct backlog *b = calloc(1, sizeof(*b));

	if (!b)
		return -ENOMEM;
	memcpy(b->hash_key, hash_key, sizeof(b->hash_key));
	b->last = &b->first;
	for (uint32_t i = 0; i < SHARES; i++)
		b->queue[i].last = &b->queue[i].first;
	*out = b;
	return 0;
}

void backlog_destroy(struct backlog *b)
{
	struct waiting *w;

	if (!b)
		return;
	while ((w = backlog_take(b)))
		waiting_free(w);
	free(b);
}

bool backlog_empty(const struct backlog *b)
{
	return !b->first;
}

void waiting_free(struct waiting *w)
{
	secmem_wipe(w->bytes, w->len);
	free(w);
}

static size_t size_of(size_t len)
{
	return sizeof(struct waiting) + len;
}

static struct waiting *unlink_first(struct backlog *b, struct queue *q)
{
	struct waiting *w = q->first;

	q->first = w->next;
	if (!q->first)
		q->last = &q->first;
	q->datagrams--;
	q->bytes -= size_of(w->len);
	b->bytes -= size_of(w->len);
	return w;
}

/* False: this queue itself is the longest. A queue that becomes empty stays in the ring until its
 * turn. */
static bool make_room(struct backlog *b, const struct queue *mine)
{
	struct queue *longest = &b->queue[0];

	for (uint32_t i = 1; i < SHARES; i++)
		if (b->queue[i].bytes > longest->bytes)
			longest = &b->queue[i];
	if (longest == mine || !longest->first)
		return false;
	waiting_free(unlink_first(b, longest));
	return true;
}

static void join_ring(struct backlog *b, struct queue *q)
{
	q->turn = NULL;
	*b->last = q;
	b->last = &q->turn;
}

static bool in_ring(const struct backlog *b, const struct queue *q)
{
	return q->turn || b->last == &q->turn;
}

int backlog_put(
	struct backlog *b, const struct ng_peer *peer, struct str datagram, uint32_t *dropped)
{
	struct queue *q = &b->queue[source_share(b->hash_key, &peer->from, SHARES)];
	size_t size = size_of(datagram.len);
	struct waiting *w;

	*dropped = 1;
	if (q->datagrams >= BACKLOG_SOURCE || q->bytes + size > BACKLOG_BYTES)
		return -ENOBUFS;
	for (*dropped = 0; b->bytes + size > BACKLOG_ALL; ++*dropped)
		if (!make_room(b, q)) {
			++*dropped;
			return -ENOBUFS;
		}
	w = malloc(size);
	if (!w)
		return -ENOMEM;
	w->next = NULL;
	w->peer = *peer;
	w->len = datagram.len;
	if (datagram.len)
		memcpy(w->bytes, datagram.s, datagram.len);
	*q->last = w;
	q->last = &w->next;
	q->datagrams++;
	q->bytes += size;
	b->bytes += size;
	if (!in_ring(b, q))
		join_ring(b, q);
	return 0;
}

struct waiting *backlog_take(struct backlog *b)
{
	struct waiting *w = NULL;

	while (b->first && !w) {
		struct queue *q = b->first;

		b->first = q->turn;
		if (!b->first)
			b->last = &b->first;
		q->turn = NULL;
		if (q->first)
			w = unlink_first(b, q);
		if (q->first)
			join_ring(b, q);
	}
	return w;
}
