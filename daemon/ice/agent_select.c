/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Nomination, selected pairs, and the state that follows from them (RFC 8445 7.3.1.5, 8.1). */
#include "ice/agent_int.h"

#include <stdlib.h>

#include "base/secmem.h"

static bool all_selected(const struct ice_agent *a, bool nominated)
{
	for (uint8_t c = 0; c < a->components; c++) {
		const struct selected *s = &a->selected[c];

		if (!s->set || s->old || (nominated && !s->nominated))
			return false;
	}
	return true;
}

static bool none_missing(const struct ice_agent *a)
{
	for (uint8_t c = 0; c < a->components; c++)
		if (!a->selected[c].set)
			return false;
	return true;
}

static enum ice_state state_now(const struct ice_agent *a)
{
	if (a->lost)
		return ICE_LOST;
	if (!a->cur.has_remote)
		return ICE_NEW;
	if (all_selected(a, true))
		return ICE_COMPLETED;
	if (all_selected(a, false))
		return ICE_CONNECTED;
	return a->failed ? ICE_FAILED : ICE_CHECKING;
}

/* Called at the end of every public call that may have changed something. */
void ice_update(struct ice_agent *a)
{
	uint8_t state;

	if (a->lost && none_missing(a))
		a->lost = false;
	state = (uint8_t)state_now(a);
	if (state != a->state)
		a->changes++;
	a->state = state;
}

void ice_forget_old(struct ice_agent *a)
{
	if (!a->old)
		return;
	secmem_wipe(a->old, sizeof(*a->old));
	free(a->old);
	a->old = NULL;
}

void ice_select(struct ice_agent *a, uint8_t component, const struct selected *s)
{
	struct selected *now = &a->selected[component - 1];
	bool old = false;

	*now = *s;
	now->since_ns = a->now_ns;
	now->tx_count = now->tx_at = 0;
	now->next_ns = a->lite ? a->now_ns + ICE_KEEPALIVE_NS : ice_draw_around(a, ICE_CONSENT_NS);
	a->changes++;
	for (uint8_t c = 0; c < ICE_COMPONENTS; c++)
		old = old || (a->selected[c].set && a->selected[c].old);
	if (!old)
		ice_forget_old(a);
}

/* Other pairs of the component rest until the peer checks them (RFC 8445 8.1.2). */
static void rest_others(struct ice_agent *a, const struct pair *nominated)
{
	for (uint8_t i = 0; i < a->pair_count; i++) {
		struct pair *p = &a->pair[i];

		if (p == nominated || p->component != nominated->component)
			continue;
		p->open = p->triggered = p->nominating = false;
		if (p->state != PAIR_SUCCEEDED)
			p->state = PAIR_FAILED;
	}
}

/* A nominated pair replaces a selected pair that is not nominated, belongs to the previous round,
 * or no longer answers. It also replaces one of lower priority (aggressive nomination), and one
 * that the peer has left. */
static bool replaces(const struct ice_agent *a, const struct selected *s, const struct pair *p)
{
	return !s->set || s->old || !s->nominated || p->priority > s->priority ||
		(!a->controlling && p->claims == ICE_CLAIMS &&
			(!s->moved || a->now_ns - s->since_ns >= ICE_MOVE_NS)) ||
		a->now_ns - s->ok_ns > ICE_SILENT_NS;
}

void ice_select_pair(struct ice_agent *a, const struct pair *p, bool nominated)
{
	struct selected *s = &a->selected[p->component - 1];
	const struct remote *r = &a->remote[p->remote];
	struct selected n = {
		.set = true, .nominated = nominated, .prev = p->prev, .local = p->local};

	/* The first move is followed at once: browsers choose among families at the start. */
	n.moved = s->set && !s->old && (s->moved || p->priority < s->priority);

	if (s->set && !s->old && s->local == p->local && endpoint_eq(&s->remote, &r->addr)) {
		s->ok_ns = p->ok_ns > s->ok_ns ? p->ok_ns : s->ok_ns;
		if (nominated && !s->nominated) {
			s->nominated = true;
			a->changes++;
			rest_others(a, p);
		}
		return;
	}
	if (nominated ? !replaces(a, s, p) : s->set)
		return;
	n.remote = r->addr;
	n.priority = p->priority;
	n.ok_ns = p->ok_ns;
	ice_select(a, p->component, &n);
	if (nominated)
		rest_others(a, p);
}

/* --- As the controlling side ------------------------------------------------------------------ */

static bool undecided(const struct pair *p)
{
	return p->state < PAIR_SUCCEEDED;
}

/* The best valid pair of a component that waits for our nomination, or NULL. */
static const struct pair *ripening(const struct ice_agent *a, uint8_t component, bool *better)
{
	const struct selected *s = &a->selected[component - 1];
	const struct pair *best = NULL;

	*better = false;
	if (!a->controlling || a->lite || (s->set && !s->old && s->nominated))
		return NULL;
	for (uint8_t i = 0; i < a->pair_count; i++) {
		const struct pair *p = &a->pair[i];

		if (p->component != component)
			continue;
		if (p->nominating)
			return NULL;
		if (p->state == PAIR_SUCCEEDED && (!best || p->priority > best->priority))
			best = p;
	}
	for (uint8_t i = 0; best && i < a->pair_count; i++)
		*better = *better ||
			(a->pair[i].component == component && undecided(&a->pair[i]) &&
				a->pair[i].priority > best->priority);
	return best;
}

static uint64_t ripe_ns(const struct ice_agent *a, uint8_t component, bool better)
{
	return better ? a->valid_ns[component - 1] + ICE_GRACE_NS : 0;
}

void ice_nominate(struct ice_agent *a)
{
	for (uint8_t c = 1; c <= a->components; c++) {
		bool better;
		const struct pair *best = ripening(a, c, &better);
		struct pair *p;

		if (!best || ripe_ns(a, c, better) > a->now_ns)
			continue;
		p = &a->pair[best - a->pair];
		p->nominating = p->triggered = true;
	}
}

uint64_t ice_nominate_ns(const struct ice_agent *a)
{
	uint64_t next = ICE_NEVER;

	for (uint8_t c = 1; c <= a->components; c++) {
		bool better;
		const struct pair *best = ripening(a, c, &better);
		uint64_t t = best ? ripe_ns(a, c, better) : ICE_NEVER;

		next = t < next ? t : next;
	}
	return next;
}

/* RFC 7675 makes full agents ask for consent. A lite agent asks nobody, but it sees the peer ask:
 * when such checks stop, the peer is gone. A peer of RFC 5245 never begins. */
bool ice_may_expire(const struct ice_agent *a, const struct selected *s)
{
	return s->set && (!a->lite || (s->renews && !s->old));
}

/* --- Both agents are lite --------------------------------------------------------------------- */

void ice_select_lite(struct ice_agent *a)
{
	for (uint8_t c = 1; c <= a->components; c++) {
		const struct pair *best = NULL;

		for (uint8_t i = 0; i < a->pair_count; i++)
			if (a->pair[i].component == c &&
				(!best || a->pair[i].priority > best->priority))
				best = &a->pair[i];
		if (best)
			ice_select_pair(a, best, true);
	}
}
