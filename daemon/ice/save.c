/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What of an agent survives a restart of the gateway: credentials, roles, candidates and selected
 * pairs. Checks under way do not: they begin again. */
#include "ice/agent_int.h"

#include <errno.h>

#include "base/secmem.h"

/* A restart of ICE that is not finished is saved as the new round alone. Selected pairs of the old
 * round would need the old credentials: they are not saved, and the new round selects again. */
void ice_save(const struct ice_agent *a, struct ice_saved *out)
{
	memset(out, 0, sizeof(*out));
	out->version = ICE_SAVED_VERSION;
	out->lite = a->lite;
	out->remote_lite = a->remote_lite;
	out->controlling = a->controlling;
	out->components = a->components;
	out->last = a->last;
	out->has_remote = a->cur.has_remote;
	out->tie_breaker = a->tie_breaker;
	memcpy(out->ufrag, a->cur.ufrag, sizeof(out->ufrag));
	memcpy(out->pwd, a->cur.pwd, sizeof(out->pwd));
	out->remote_ufrag_len = a->cur.remote_ufrag_len;
	memcpy(out->remote_ufrag, a->cur.remote_ufrag, sizeof(out->remote_ufrag));
	out->remote_key = a->cur.remote_key;
	for (uint8_t c = 0; c < ICE_COMPONENTS; c++) {
		const struct selected *s = &a->selected[c];

		if (!s->set || s->old)
			continue;
		out->selected[c].set = 1;
		out->selected[c].nominated = s->nominated;
		out->selected[c].local = s->local;
		out->selected[c].remote = s->remote;
	}
	out->local_count = a->local_count;
	memcpy(out->local, a->local, sizeof(out->local));
	out->remote_count = a->remote_count;
	for (uint8_t i = 0; i < a->remote_count; i++) {
		const struct remote *r = &a->remote[i];

		out->remote[i] = (struct ice_saved_candidate){
			r->addr, r->priority, r->foundation, r->component, r->type};
	}
}

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
	memcpy(a->cur.ufrag, s->ufrag, sizeof(a->cur.ufrag));
	memcpy(a->cur.pwd, s->pwd, sizeof(a->cur.pwd));
	stun_key_init(&a->cur.key, (struct str){a->cur.pwd, sizeof(a->cur.pwd)});
	a->cur.has_remote = s->has_remote;
	a->cur.remote_ufrag_len = s->remote_ufrag_len;
	memcpy(a->cur.remote_ufrag, s->remote_ufrag, sizeof(a->cur.remote_ufrag));
	a->cur.remote_key = s->remote_key;
	for (uint8_t i = 0; i < s->remote_count; i++) {
		const struct ice_saved_candidate *r = &s->remote[i];

		a->remote[a->remote_count++] =
			(struct remote){r->addr, r->priority, r->foundation, r->component, r->type};
		if (!a->lite || a->remote_lite)
			ice_pair_all(a, i);
	}
	for (uint8_t i = 0; i < a->components; i++)
		if (s->selected[i].set)
			restore_pair(a, s, i);
	ice_update(a);
	return 0;
}
