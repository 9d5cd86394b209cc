/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "audio/reorder.h"

#include <stddef.h>
#include <string.h>

#define NONE UINT32_MAX

static void start(struct reorder *r, uint16_t seq)
{
	for (uint32_t i = 0; i < REORDER_LATER; i++)
		r->place[i].used = false;
	r->held = 0;
	r->started = true;
	r->next = (uint16_t)(seq + 1);
	r->seen = 1;
	r->astray = NONE;
}

/* Advances past seq: it arrived when due, or "lost" packets before it are given up. */
static void step(struct reorder *r, uint16_t seq)
{
	uint32_t by = (uint16_t)(seq - r->next) + 1u;

	r->seen = by < 64 ? r->seen << by : 0;
	r->seen |= 1;
	r->next = (uint16_t)(seq + 1);
}

static bool has(const struct reorder *r, uint16_t seq)
{
	for (uint32_t i = 0; i < REORDER_LATER; i++)
		if (r->place[i].used && r->place[i].seq == seq)
			return true;
	return false;
}

/* Copies only the bytes in use. */
static void copy(struct audio_packet *to, const struct audio_packet *p)
{
	memcpy(to, p, offsetof(struct audio_packet, bytes));
	memcpy(to->bytes, p->bytes, p->len);
}

static enum reorder_result hold(
	struct reorder *r, uint16_t seq, const struct audio_packet *p, uint64_t now_ns)
{
	uint32_t i = 0;

	if (has(r, seq))
		return REORDER_DOUBLE;
	while (i < REORDER_LATER && r->place[i].used)
		i++;
	if (i == REORDER_LATER)
		return REORDER_LATE; /* the caller did not empty reorder_next() */
	r->place[i].used = true;
	r->place[i].seq = seq;
	copy(&r->place[i].packet, p);
	if (!r->held++)
		r->since_ns = now_ns;
	return REORDER_HELD;
}

enum reorder_result reorder_take(
	struct reorder *r, uint16_t seq, const struct audio_packet *p, uint64_t now_ns)
{
	uint16_t ahead = (uint16_t)(seq - r->next), behind = (uint16_t)(r->next - 1 - seq);

	if (!r->started) {
		start(r, seq);
		return REORDER_AGAIN;
	}
	if (ahead == 0) {
		step(r, seq);
		r->astray = NONE;
		return REORDER_NOW;
	}
	if (ahead < REORDER_AHEAD)
		return hold(r, seq, p, now_ns);
	if (behind < 64)
		return r->seen >> behind & 1 ? REORDER_DOUBLE : REORDER_LATE;
	if (seq == r->astray) {
		start(r, seq);
		return REORDER_AGAIN;
	}
	r->astray = (uint16_t)(seq + 1);
	return REORDER_ASTRAY;
}

const struct audio_packet *reorder_next(struct reorder *r, uint32_t *lost, uint64_t now_ns)
{
	struct reorder_place *first = NULL;

	for (uint32_t i = 0; r->held && i < REORDER_LATER; i++) {
		struct reorder_place *p = &r->place[i];

		if (p->used &&
			(!first || (uint16_t)(p->seq - r->next) < (uint16_t)(first->seq - r->next)))
			first = p;
	}
	*lost = 0;
	if (!first)
		return NULL;
	*lost = (uint16_t)(first->seq - r->next);
	if (*lost && r->held < REORDER_LATER && now_ns < r->since_ns + REORDER_NS)
		return NULL;
	step(r, first->seq);
	first->used = false;
	r->held--;
	return &first->packet;
}

uint64_t reorder_deadline(const struct reorder *r)
{
	return r->held ? r->since_ns + REORDER_NS : REORDER_NEVER;
}
