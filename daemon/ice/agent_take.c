/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Packets from the peer (RFC 8445 7.3). Without a valid MESSAGE-INTEGRITY nothing is believed, and
 * only a few short errors are sent. */
#include "ice/agent_int.h"

#include <stdlib.h>

struct request {
	const struct stun_msg *m;
	const uint8_t *packet;
	size_t len;
	const struct endpoint *src;
	struct str remote_ufrag;
	uint8_t local;
	bool old, prev; /* the generation, and the name in it */
	bool authentic;
};

static struct waiting_out answer(const struct request *q, enum out_kind kind)
{
	struct waiting_out o = {.kind = (uint8_t)kind,
		.dst = *q->src,
		.local = q->local,
		.request_len = (uint16_t)q->len,
		.authentic = q->authentic,
		.old = q->old,
		.prev = q->prev};

	memcpy(o.txid, q->m->txid, sizeof(o.txid));
	return o;
}

/* Errors are rate-limited: forged requests must not make us send. */
static bool may_send_error(struct ice_agent *a)
{
	uint64_t n = (a->now_ns - a->error_ns) / ICE_ERROR_NS;

	if (n > 0) {
		n += a->error_tokens;
		a->error_tokens = (uint8_t)(n < ICE_ERROR_BURST ? n : ICE_ERROR_BURST);
		a->error_ns = a->now_ns;
	}
	if (a->error_tokens == 0)
		return false;
	a->error_tokens--;
	return true;
}

static void refuse(struct ice_agent *a, const struct request *q, enum stun_error error)
{
	struct waiting_out o = answer(q, OUT_ERROR);

	o.error = (uint16_t)error;
	if (error == STUN_UNKNOWN_ATTRIBUTE) {
		o.unknown_count = q->m->unknown_count;
		memcpy(o.unknown, q->m->unknown, sizeof(o.unknown));
	}
	if (!may_send_error(a) || !ice_push(a, &o))
		a->count[ICE_COUNT_SUPPRESSED]++;
}

static bool is_remote(const struct generation *g, struct str ufrag)
{
	return g->has_remote && str_eq(ufrag, (struct str){g->remote_ufrag, g->remote_ufrag_len});
}

/* Whether a request may be of this generation by its own or its previous name. The previous name
 * serves only the peer of the new round. */
static bool may_be_of(const struct generation *g, bool prev, struct str local, struct str remote)
{
	const struct own_name *n = prev ? &g->prev : &g->own;

	return str_eq(local, (struct str){n->ufrag, sizeof(n->ufrag)}) &&
		(!prev || (g->has_prev && (!g->has_remote || is_remote(g, remote))));
}

/* Our generation and ufrag that the peer names. Credentials before and after a restart may differ
 * on one side only: then the other side's ufrag decides. False: an unknown ufrag. */
static bool name_of(const struct ice_agent *a, struct request *q, struct str local)
{
	bool found = false;

	for (unsigned i = 0; i < 4; i++) {
		bool old = i & 2, prev = i & 1, exact;
		const struct generation *g = old ? a->old : &a->cur;

		if (!g || (old && !g->has_remote) || !may_be_of(g, prev, local, q->remote_ufrag))
			continue;
		exact = is_remote(g, q->remote_ufrag);
		if (exact || !found) {
			q->old = old;
			q->prev = prev;
		}
		if (exact)
			return true;
		found = true;
	}
	return found;
}

/* The error, or 0. */
static unsigned authenticate(const struct ice_agent *a, struct request *q)
{
	struct str name = q->m->username, local;
	const struct generation *g;

	if (!name.s || !q->m->integrity_off)
		return STUN_BAD_REQUEST;
	local = str_cut(&name, ':');
	q->remote_ufrag = name;
	if (!name_of(a, q, local))
		return STUN_UNAUTHENTICATED;
	g = q->old ? a->old : &a->cur;
	if (!stun_verify(q->m, q->packet, q->prev ? &g->prev.key : &g->own.key))
		return STUN_UNAUTHENTICATED;
	return 0;
}

/* RFC 8445 7.3.1.1. True: answered with 487. A lite agent cannot take the other role. */
static bool conflicting(struct ice_agent *a, const struct request *q)
{
	const struct stun_msg *m = q->m;
	bool same = m->role == (a->controlling ? STUN_ROLE_CONTROLLING : STUN_ROLE_CONTROLLED);
	bool win = a->tie_breaker >= m->tie_breaker; /* the winner controls */

	if (!same || q->old)
		return false;
	a->count[ICE_COUNT_CONFLICTS]++;
	if (a->lite || win == a->controlling) {
		refuse(a, q, STUN_ROLE_CONFLICT);
		return true;
	}
	ice_check_switch(a, !a->controlling);
	return false;
}

static void remember(struct ice_agent *a, const struct early *e)
{
	for (uint8_t i = 0; i < a->early_count; i++) {
		struct early *k = &a->early[i];

		if (k->local == e->local && k->ufrag_hash == e->ufrag_hash && k->prev == e->prev &&
			endpoint_eq(&k->src, &e->src)) {
			k->use_candidate = k->use_candidate || e->use_candidate;
			return;
		}
	}
	if (!a->early)
		a->early = malloc(ICE_EARLY * sizeof(*a->early));
	if (!a->early || a->early_count == ICE_EARLY) {
		a->count[ICE_COUNT_BEYOND]++;
		return;
	}
	a->early[a->early_count++] = *e;
}

/* --- Triggered checks (RFC 8445 7.3.1.3 to 7.3.1.5) ----------------------------------------- */

/* The remote candidate of the source; a new one is peer-reflexive. -1: no room. */
static int learn(struct ice_agent *a, const struct early *e)
{
	struct remote r = {.addr = e->src,
		.priority = e->priority,
		.component = a->local[e->local].component,
		.type = ICE_PRFLX};
	int found = ice_remote_find(a, r.component, &e->src);

	if (found >= 0)
		return found;
	r.foundation = ice_hash(&e->src, sizeof(e->src));
	return ice_remote_add(a, &r);
}

/* A peer of RFC 5245 nominates each pair once, and the pair with the highest priority counts.
 * Browsers nominate the pair in use in each of their checks, so the last nomination counts,
 * whatever the priority. */
static void claim(struct ice_agent *a, struct pair *p, const struct early *e)
{
	if (!e->use_candidate || (p->claims && p->claim == e->id))
		return;
	for (uint8_t i = 0; i < a->pair_count; i++)
		if (&a->pair[i] != p && a->pair[i].component == p->component)
			a->pair[i].claims = 0;
	p->claim = e->id;
	p->claims += p->claims < ICE_CLAIMS;
}

static void nominated_by_peer(struct ice_agent *a, struct pair *p)
{
	p->wanted = true;
	if (p->state == PAIR_SUCCEEDED && a->now_ns - p->ok_ns < ICE_CONSENT_NS)
		ice_select_pair(a, p, true);
	else
		p->triggered = true;
}

/* We are lite and send no checks: the peer's request is all there is. A nominated pair that lost
 * consent returns by any check. */
static void checked_lite(struct ice_agent *a, struct pair *p, const struct early *e)
{
	struct selected *s = &a->selected[p->component - 1];

	p->ok_ns = a->now_ns;
	p->wanted |= e->use_candidate;
	if (e->use_candidate || (p->wanted && !s->set))
		ice_select_pair(a, p, true);
	if (!s->set || s->old || s->local != p->local || !endpoint_eq(&s->remote, &e->src))
		return;
	s->ok_ns = a->now_ns;
	s->renews |= a->now_ns - s->since_ns >= ICE_RENEWS_NS;
}

/* The peer refuses checks that name another ufrag of ours than its own checks: use the one of its
 * last check. */
static void use_name(struct ice_agent *a, struct pair *p, const struct early *e)
{
	struct selected *s = &a->selected[p->component - 1];

	p->prev = e->prev;
	if (s->set && !s->old && s->local == p->local && endpoint_eq(&s->remote, &e->src))
		s->prev = e->prev;
}

void ice_triggered(struct ice_agent *a, const struct early *e)
{
	int remote = learn(a, e), i = remote < 0 ? -1 : ice_pair_find(a, e->local, (uint8_t)remote);
	struct pair *p;

	if (remote >= 0 && i < 0)
		i = ice_pair_add(a, e->local, (uint8_t)remote);
	if (i < 0)
		return;
	p = &a->pair[i];
	use_name(a, p, e);
	claim(a, p, e);
	if (a->lite) {
		checked_lite(a, p, e);
		return;
	}
	if (e->use_candidate && !a->controlling)
		nominated_by_peer(a, p);
	else if (p->state != PAIR_SUCCEEDED)
		p->triggered = true;
	if (p->triggered && p->state == PAIR_FAILED)
		p->state = PAIR_WAITING;
}

static void request(struct ice_agent *a, struct request *q)
{
	struct early e = {.src = *q->src, .local = q->local, .priority = q->m->priority};
	unsigned error = authenticate(a, q);
	struct waiting_out o;

	if (error) {
		a->count[ICE_COUNT_UNAUTHENTIC]++;
		refuse(a, q, (enum stun_error)error);
		return;
	}
	q->authentic = true;
	if (q->m->unknown_count || !q->m->has_priority) {
		refuse(a, q, q->m->unknown_count ? STUN_UNKNOWN_ATTRIBUTE : STUN_BAD_REQUEST);
		return;
	}
	if (conflicting(a, q))
		return;
	o = answer(q, OUT_SUCCESS);
	if (!ice_push(a, &o)) { /* the peer will ask again */
		a->count[ICE_COUNT_SUPPRESSED]++;
		return;
	}
	a->count[ICE_COUNT_REQUESTS]++;
	if (q->old)
		return;
	e.prev = q->prev;
	e.use_candidate = q->m->use_candidate;
	e.id = be32(q->m->txid);
	e.ufrag_hash = ice_hash(q->remote_ufrag.s, q->remote_ufrag.len);
	if (is_remote(&a->cur, q->remote_ufrag))
		ice_triggered(a, &e);
	else
		remember(a, &e);
}

void ice_take(struct ice_agent *a, uint8_t local, const struct endpoint *src, const uint8_t *packet,
	size_t len, uint64_t now_ns)
{
	struct stun_msg m;
	struct request q = {.m = &m, .packet = packet, .len = len, .src = src, .local = local};

	ice_advance(a, now_ns);
	if (local >= a->local_count || a->local[local].component > a->components ||
		src->family != a->local[local].addr.family || stun_parse(&m, packet, len)) {
		a->count[ICE_COUNT_MALFORMED]++;
		return;
	}
	if (m.cls == STUN_REQUEST)
		request(a, &q);
	else if (m.cls != STUN_INDICATION) /* keepalives need no answer */
		ice_check_response(a, local, src, &m, packet);
	ice_update(a);
}
