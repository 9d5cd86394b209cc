/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Saves the state of an agent that ice_restore() needs. The daemon saves it with the call
 * (persist/). */
#ifndef ICE_SAVE_H
#define ICE_SAVE_H

#include "ice/agent_int.h"

static inline void net_save(const struct ice_agent *a, struct ice_saved *out)
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
	memcpy(out->ufrag, a->cur.own.ufrag, sizeof(out->ufrag));
	memcpy(out->pwd, a->cur.pwd, sizeof(out->pwd));
	out->has_prev = a->cur.has_prev;
	memcpy(out->prev_ufrag, a->cur.prev.ufrag, sizeof(out->prev_ufrag));
	out->prev_key = a->cur.prev.key;
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

#endif
