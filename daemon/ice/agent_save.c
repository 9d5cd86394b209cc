/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Saves and restores an agent. After a restart of the gateway it continues with the same
 * credentials, role, candidates and selected pairs. Checks in progress begin again. */
#include "ice/agent_int.h"

#include <errno.h>

#include "base/secmem.h"

static bool endpoint_ok(const struct endpoint *e)
{
	return e->port && (e->family == AF_INET || e->family == AF_INET6);
}

static bool saved_ok(const struct ice_saved *s)
{
	if (s->version != ICE_SAVED_VERSION || s->remote_count > ICE_REMOTES ||
		s->remote_ufrag_len > SDP_ICE_TEXT_MAX ||
		(s->has_remote && s->remote_ufrag_len < SDP_ICE_UFRAG_MIN))
		return false;
	for (uint8_t i = 0; i < s->remote_count; i++)
		if (!endpoint_ok(&s->remote[i].addr) || s->remote[i].component < 1 ||
			s->remote[i].component > ICE_COMPONENTS || s->remote[i].type > ICE_RELAY)
			return false;
	for (uint8_t c = 0; c < ICE_COMPONENTS; c++)
		if (s->selected[c].set &&
			(!s->has_remote || s->selected[c].local >= s->local_count ||
				!endpoint_ok(&s->selected[c].remote) ||
				s->local[s->selected[c].local].component != c + 1))
			return false;
	return true;
}

/* The selected pair of a component exists in the check list, as if just checked. */
static void restore_pair(struct ice_agent *a, const struct ice_saved *s, uint8_t c)
{
	int r = ice_remote_find(a, c + 1, &s->selected[c].remote), i;

	if (r < 0)
		return;
	i = ice_pair_find(a, s->selected[c].local, (uint8_t)r);
	if (i < 0)
		i = ice_pair_add(a, s->selected[c].local, (uint8_t)r);
	if (i < 0)
		return;
	a->pair[i].state = PAIR_SUCCEEDED;
	a->pair[i].ok_ns = a->valid_ns[c] = a->now_ns;
	a->pair[i].wanted = s->selected[c].nominated && !a->controlling;
	ice_select_pair(a, &a->pair[i], s->selected[c].nominated);
	a->selected[c].next_ns = a->now_ns; /* prove consent at once */
}

int ice_restore(struct ice_agent *a, const struct ice_saved *s, const uint8_t seed[ICE_SEED_LEN],
	uint64_t now_ns)
{
	struct ice_config c = {.lite = s->lite,
		.controlling = s->controlling,
		.components = s->components,
		.local_count = s->local_count};

	memcpy(c.local, s->local, sizeof(c.local));
	if (ice_init(a, &c, seed, now_ns) || !saved_ok(s))
		return -EINVAL;
	a->remote_lite = s->remote_lite;
	a->last = s->last;
	if (s->tie_breaker)
		a->tie_breaker = s->tie_breaker;
	memcpy(a->cur.own.ufrag, s->ufrag, sizeof(a->cur.own.ufrag));
	memcpy(a->cur.pwd, s->pwd, sizeof(a->cur.pwd));
	stun_key_init(&a->cur.own.key, (struct str){a->cur.pwd, sizeof(a->cur.pwd)});
	a->cur.has_prev = s->has_prev;
	memcpy(a->cur.prev.ufrag, s->prev_ufrag, sizeof(a->cur.prev.ufrag));
	a->cur.prev.key = s->prev_key;
	a->cur.has_remote = s->has_remote;
	a->cur.remote_ufrag_len = s->remote_ufrag_len;
	memcpy(a->cur.remote_ufrag, s->remote_ufrag, sizeof(a->cur.remote_ufrag));
	a->cur.remote_key = s->remote_key;
	for (uint8_t i = 0; i < s->remote_count; i++) {
		const struct ice_saved_candidate *k = &s->remote[i];
		const struct remote r = {
			k->addr, k->priority, k->foundation, k->component, k->type};

		if (ice_remote_put(a, &r) && (!a->lite || a->remote_lite))
			ice_pair_all(a, a->remote_count - 1);
	}
	for (uint8_t i = 0; i < a->components; i++)
		if (s->selected[i].set)
			restore_pair(a, s, i);
	ice_update(a);
	return 0;
}
