/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A binary heap that knows where each id is, so that a deadline can move. */
#include "base/deadlines.h"

#include <errno.h>
#include <stdlib.h>

int deadlines_init(struct deadlines *d, uint32_t max)
{
	*d = (struct deadlines){.max = max,
		.at = calloc(max, sizeof(*d->at)),
		.heap = calloc(max, sizeof(*d->heap)),
		.pos = calloc(max, sizeof(*d->pos))};
	if (!d->at || !d->heap || !d->pos) {
		deadlines_fini(d);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < max; i++)
		d->at[i] = DEADLINE_NEVER;
	return 0;
}

void deadlines_fini(struct deadlines *d)
{
	free(d->at);
	free(d->heap);
	free(d->pos);
	*d = (struct deadlines){0};
}

static void put(struct deadlines *d, uint32_t place, uint32_t id)
{
	d->heap[place] = id;
	d->pos[id] = place;
}

static void rise(struct deadlines *d, uint32_t place)
{
	uint32_t id = d->heap[place];

	while (place && d->at[d->heap[(place - 1) / 2]] > d->at[id]) {
		put(d, place, d->heap[(place - 1) / 2]);
		place = (place - 1) / 2;
	}
	put(d, place, id);
}

static void sink(struct deadlines *d, uint32_t place)
{
	uint32_t id = d->heap[place], child;

	while ((child = 2 * place + 1) < d->n) {
		if (child + 1 < d->n && d->at[d->heap[child + 1]] < d->at[d->heap[child]])
			child++;
		if (d->at[d->heap[child]] >= d->at[id])
			break;
		put(d, place, d->heap[child]);
		place = child;
	}
	put(d, place, id);
}

static void take_out(struct deadlines *d, uint32_t id)
{
	uint32_t place = d->pos[id], last = d->heap[--d->n];

	if (last == id)
		return;
	put(d, place, last);
	rise(d, place);
	sink(d, d->pos[last]);
}

void deadlines_set(struct deadlines *d, uint32_t id, uint64_t at_ns)
{
	bool in = d->at[id] != DEADLINE_NEVER;

	d->at[id] = at_ns;
	if (at_ns == DEADLINE_NEVER) {
		if (in)
			take_out(d, id);
		return;
	}
	if (!in)
		put(d, d->n++, id);
	rise(d, d->pos[id]);
	sink(d, d->pos[id]);
}

uint64_t deadlines_first(const struct deadlines *d, uint32_t *id)
{
	if (!d->n)
		return DEADLINE_NEVER;
	*id = d->heap[0];
	return d->at[d->heap[0]];
}
