/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Candidates and the check list of an agent (RFC 8445 6.1.2): bounded, formed, ordered, frozen. */
#include "ice/agent_int.h"

#include <stdlib.h>

#define ROOM_FIRST 4u /* entries of a list at first */

void ice_advance(struct ice_agent *a, uint64_t now_ns)
{
	if (now_ns > a->now_ns)
		a->now_ns = now_ns;
}

void ice_prefer_locals(struct ice_agent *a)
{
	struct endpoint addr[ICE_LOCALS];

	for (uint8_t i = 0; i < a->local_count; i++)
		addr[i] = a->local[i].addr;
	ice_prefer(addr, a->local_count, a->local_pref, a->local_foundation);
}

uint32_t ice_local_priority(const struct ice_agent *a, uint8_t local, enum ice_candidate_type type)
{
	return ice_candidate_priority(type, a->local_pref[local], a->local[local].component);
}

int ice_remote_find(const struct ice_agent *a, uint8_t component, const struct endpoint *e)
{
	for (uint8_t i = 0; i < a->remote_count; i++)
		if (a->remote[i].component == component && endpoint_eq(&a->remote[i].addr, e))
			return i;
	return -1;
}

/* The list with room for more entries, or NULL without memory. */
static void *grow(void *list, uint8_t *room, uint32_t max, size_t size)
{
	uint32_t more = *room ? 2u * *room : ROOM_FIRST;
	void *grown;

	more = more < max ? more : max;
	grown = realloc(list, more * size);
	if (grown)
		*room = (uint8_t)more;
	return grown;
}

bool ice_remote_put(struct ice_agent *a, const struct remote *r)
{
	struct remote *list = a->remote;

	if (a->remote_count == ICE_REMOTES)
		return false;
	if (a->remote_count == a->remote_room)
		list = grow(list, &a->remote_room, ICE_REMOTES, sizeof(*list));
	if (!list)
		return false;
	a->remote = list;
	a->remote[a->remote_count++] = *r;
	return true;
}

/* Signalled candidates leave room for those learned from authenticated packets, and the reverse. */
int ice_remote_add(struct ice_agent *a, const struct remote *r)
{
	uint8_t learned = 0;
	bool full;

	for (uint8_t i = 0; i < a->remote_count; i++)
		learned += a->remote[i].type == ICE_PRFLX;
	full = r->type == ICE_PRFLX ? learned == ICE_LEARNED || a->remote_count == ICE_REMOTES
				    : a->remote_count >= ICE_REMOTES - ICE_LEARNABLE;
	if (full || !ice_remote_put(a, r)) {
		a->count[ICE_COUNT_BEYOND]++;
		return -1;
	}
	return a->remote_count - 1;
}

int ice_pair_find(const struct ice_agent *a, uint8_t local, uint8_t remote)
{
	for (uint8_t i = 0; i < a->pair_count; i++)
		if (a->pair[i].local == local && a->pair[i].remote == remote)
			return i;
	return -1;
}

/* RFC 8445 6.1.2.3 */
static uint64_t pair_priority(const struct ice_agent *a, uint8_t local, uint8_t remote)
{
	uint64_t l = ice_local_priority(a, local, ICE_HOST), r = a->remote[remote].priority;
	uint64_t g = a->controlling ? l : r, d = a->controlling ? r : l;

	return (g < d ? g : d) << 32 | ((2 * (g > d ? g : d) + (g > d)) & 0xffffffff);
}

/* The pair that matters least: failed ones first, then the lowest of those not started. */
static int pair_victim(const struct ice_agent *a, uint64_t priority)
{
	int found = -1;

	for (uint8_t i = 0; i < a->pair_count; i++) {
		const struct pair *p = &a->pair[i];

		if (p->state == PAIR_FAILED && !p->open && !p->triggered)
			return i;
		if (p->state <= PAIR_WAITING && !p->triggered && p->priority < priority &&
			(found < 0 || p->priority < a->pair[found].priority))
			found = i;
	}
	return found;
}

/* The place of one more pair, or -1 without memory. */
static int pair_append(struct ice_agent *a)
{
	struct pair *list = a->pair;

	if (a->pair_count == a->pair_room)
		list = grow(list, &a->pair_room, ICE_PAIRS, sizeof(*list));
	if (!list)
		return -1;
	a->pair = list;
	return a->pair_count++;
}

int ice_pair_add(struct ice_agent *a, uint8_t local, uint8_t remote)
{
	struct pair p = {.local = local, .remote = remote, .state = PAIR_FROZEN};
	int i;

	p.priority = pair_priority(a, local, remote);
	p.component = a->local[local].component;
	i = a->pair_count == ICE_PAIRS ? pair_victim(a, p.priority) : pair_append(a);
	if (i < 0) {
		a->count[ICE_COUNT_BEYOND]++;
		return -1;
	}
	a->pair[i] = p;
	return i;
}

static bool link_local(const struct endpoint *e)
{
	return e->family == AF_INET6 && e->addr[0] == 0xfe && (e->addr[1] & 0xc0) == 0x80;
}

void ice_pair_all(struct ice_agent *a, uint8_t remote)
{
	const struct remote *r = &a->remote[remote];

	for (uint8_t l = 0; l < a->local_count; l++) {
		const struct ice_local *c = &a->local[l];

		if (c->component == r->component && c->addr.family == r->addr.family &&
			link_local(&c->addr) == link_local(&r->addr) &&
			ice_pair_find(a, l, remote) < 0)
			ice_pair_add(a, l, remote);
	}
}

void ice_pairs_reprioritise(struct ice_agent *a)
{
	for (uint8_t i = 0; i < a->pair_count; i++)
		a->pair[i].priority = pair_priority(a, a->pair[i].local, a->pair[i].remote);
}

static bool same_foundation(const struct ice_agent *a, const struct pair *p, const struct pair *q)
{
	return a->local_foundation[p->local] == a->local_foundation[q->local] &&
		a->remote[p->remote].foundation == a->remote[q->remote].foundation;
}

/* A frozen pair may start while no other of its foundation is under way (RFC 8445 6.1.4.2). */
static bool may_thaw(const struct ice_agent *a, const struct pair *p)
{
	for (uint8_t i = 0; i < a->pair_count; i++)
		if ((a->pair[i].state == PAIR_WAITING || a->pair[i].state == PAIR_PROGRESS) &&
			same_foundation(a, &a->pair[i], p))
			return false;
	return true;
}

/* Triggered ones before waiting ones before frozen ones; among equals the highest priority. The
 * priority of a pair of component 1 is above that of component 2 with the same addresses. */
int ice_pair_next(const struct ice_agent *a)
{
	int best[3] = {-1, -1, -1};

	for (uint8_t i = 0; i < a->pair_count; i++) {
		const struct pair *p = &a->pair[i];
		int rank = p->triggered ? 0 : p->state == PAIR_WAITING ? 1 : 2;

		if (!p->triggered && (p->state > PAIR_WAITING || a->now_ns < a->yield_ns))
			continue;
		if (best[rank] >= 0 && a->pair[best[rank]].priority >= p->priority)
			continue;
		if (rank == 2 && !may_thaw(a, p))
			continue;
		best[rank] = i;
	}
	return best[0] >= 0 ? best[0] : best[1] >= 0 ? best[1] : best[2];
}

void ice_pairs_unfreeze(struct ice_agent *a, const struct pair *like)
{
	for (uint8_t i = 0; i < a->pair_count; i++)
		if (a->pair[i].state == PAIR_FROZEN && same_foundation(a, &a->pair[i], like))
			a->pair[i].state = PAIR_WAITING;
}

/* A new round of checks: what the last one learned is forgotten, selected pairs stay. */
void ice_round_clear(struct ice_agent *a)
{
	a->remote_count = a->pair_count = 0;
	a->failed = a->lost = a->last = false;
	memset(a->valid_ns, 0, sizeof(a->valid_ns));
	a->out_count = 0;
	a->start_ns = a->pace_next_ns = a->now_ns;
}
