/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The agent's queue of packets to send. It holds what a packet says; ice_next() writes it. A
 * response is never longer than its request, so that nobody is amplified. */
#include "ice/agent_int.h"

#include <stdlib.h>

bool ice_push(struct ice_agent *a, const struct waiting_out *o)
{
	if (a->out_count == ICE_OUT)
		return false;
	if (!a->out)
		a->out = malloc(ICE_OUT * sizeof(*a->out));
	if (!a->out)
		return false;
	a->out[(a->out_at + a->out_count++) % ICE_OUT] = *o;
	return true;
}

static size_t write_check(const struct generation *g, struct stun_writer *w,
	const struct waiting_out *o, uint64_t tie)
{
	const struct own_name *own = o->prev ? &g->prev : &g->own;

	stun_write_head(w, STUN_REQUEST, o->txid);
	stun_write_username(w, (struct str){g->remote_ufrag, g->remote_ufrag_len},
		(struct str){own->ufrag, sizeof(own->ufrag)});
	stun_write_priority(w, o->priority);
	stun_write_role(w, o->controlling ? STUN_ROLE_CONTROLLING : STUN_ROLE_CONTROLLED, tie);
	if (o->use_candidate)
		stun_write_use_candidate(w);
	return stun_write_end(w, &g->remote_key);
}

static size_t write_out(
	const struct ice_agent *a, struct stun_writer *w, const struct waiting_out *o)
{
	const struct generation *g = o->old ? a->old : &a->cur;

	if (!g && (o->kind == OUT_CHECK || o->authentic)) /* its credentials have ended since */
		return 0;
	switch ((enum out_kind)o->kind) {
	case OUT_CHECK:
		return g->has_remote ? write_check(g, w, o, a->tie_breaker) : 0;
	case OUT_SUCCESS:
		stun_write_head(w, STUN_SUCCESS, o->txid);
		stun_write_mapped(w, &o->dst);
		break;
	case OUT_ERROR:
		stun_write_head(w, STUN_ERROR, o->txid);
		stun_write_error(w, (enum stun_error)o->error);
		if (o->unknown_count)
			stun_write_unknown(w, o->unknown, o->unknown_count);
		break;
	case OUT_INDICATION:
		stun_write_head(w, STUN_INDICATION, o->txid);
		return stun_write_end(w, NULL);
	}
	return stun_write_end(w, o->authentic ? o->prev ? &g->prev.key : &g->own.key : NULL);
}

bool ice_next(struct ice_agent *a, struct ice_out *out)
{
	while (a->out_count > 0) {
		const struct waiting_out *o = &a->out[a->out_at];
		struct stun_writer w = {.p = out->packet, .cap = sizeof(out->packet)};
		bool response = o->kind == OUT_SUCCESS || o->kind == OUT_ERROR;
		size_t len = write_out(a, &w, o);

		out->local = o->local;
		out->proved = o->kind == OUT_SUCCESS;
		out->dst = o->dst;
		out->len = (uint16_t)len;
		a->out_at = (uint8_t)((a->out_at + 1) % ICE_OUT);
		a->out_count--;
		if (len > 0 && (!response || len <= o->request_len))
			return true;
		a->count[ICE_COUNT_SUPPRESSED]++;
	}
	free(a->out);
	a->out = NULL;
	return false;
}
