/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The agent's life: creation, credentials, candidates, restart, and what its owner asks it. Sends
 * nothing itself, see ice/agent.h. */
#include "ice/agent_int.h"

#include <errno.h>
#include <stdlib.h>

#include "base/secmem.h"

static const char *const state_names[] = {
#define X(id, text) text,
	ICE_STATES(X)
#undef X
};
static const char *const count_names[] = {
#define X(id, text) text,
	ICE_COUNTS(X)
#undef X
};

const char *ice_state_name(enum ice_state s)
{
	return state_names[s];
}

const char *ice_count_name(enum ice_count c)
{
	return count_names[c];
}

size_t ice_size(void)
{
	return sizeof(struct ice_agent);
}

size_t ice_memory(const struct ice_agent *a)
{
	return sizeof(*a) + a->remote_room * sizeof(*a->remote) + a->pair_room * sizeof(*a->pair) +
		(a->out ? ICE_OUT * sizeof(*a->out) : 0) +
		(a->early ? ICE_EARLY * sizeof(*a->early) : 0) + (a->old ? sizeof(*a->old) : 0);
}

static bool config_ok(const struct ice_config *c)
{
	bool has[ICE_COMPONENTS] = {false};

	if (c->components < 1 || c->components > ICE_COMPONENTS || c->local_count > ICE_LOCALS)
		return false;
	for (uint8_t i = 0; i < c->local_count; i++) {
		const struct ice_local *l = &c->local[i];

		if (l->component < 1 || l->component > ICE_COMPONENTS || !l->addr.port ||
			(l->addr.family != AF_INET && l->addr.family != AF_INET6))
			return false;
		has[l->component - 1] = true;
	}
	return has[0] && (has[1] || c->components == 1);
}

int ice_init(struct ice_agent *a, const struct ice_config *c, const uint8_t seed[ICE_SEED_LEN],
	uint64_t now_ns)
{
	uint8_t tie[8];

	memset(a, 0, sizeof(*a));
	if (!config_ok(c))
		return -EINVAL;
	hmac_sha1_key_init(&a->seed, seed, ICE_SEED_LEN);
	a->now_ns = a->start_ns = a->pace_next_ns = a->error_ns = now_ns;
	a->error_tokens = ICE_ERROR_BURST;
	a->pace_ns = c->pace_ns ? c->pace_ns : ICE_PACE_NS;
	if (a->pace_ns < ICE_PACE_MIN_NS)
		a->pace_ns = ICE_PACE_MIN_NS;
	a->lite = c->lite;
	a->controlling = c->controlling;
	a->components = c->components;
	a->local_count = c->local_count;
	memcpy(a->local, c->local, sizeof(a->local));
	ice_prefer_locals(a);
	ice_draw(a, tie, sizeof(tie));
	a->tie_breaker = (uint64_t)be32(tie) << 32 | be32(tie + 4);
	ice_new_credentials(a);
	return 0;
}

void ice_set_credentials(
	struct ice_agent *a, const char ufrag[ICE_UFRAG_LEN], const char pwd[ICE_PWD_LEN])
{
	memcpy(a->cur.own.ufrag, ufrag, ICE_UFRAG_LEN);
	memcpy(a->cur.pwd, pwd, ICE_PWD_LEN);
	stun_key_init(&a->cur.own.key, (struct str){a->cur.pwd, ICE_PWD_LEN});
}

void ice_fini(struct ice_agent *a)
{
	ice_forget_old(a);
	free(a->early);
	free(a->remote);
	free(a->pair);
	free(a->out);
	secmem_wipe(a, sizeof(*a));
}

struct str ice_ufrag(const struct ice_agent *a)
{
	return (struct str){a->cur.own.ufrag, sizeof(a->cur.own.ufrag)};
}

struct str ice_pwd(const struct ice_agent *a)
{
	return (struct str){a->cur.pwd, sizeof(a->cur.pwd)};
}

bool ice_is_lite(const struct ice_agent *a)
{
	return a->lite;
}

bool ice_is_controlling(const struct ice_agent *a)
{
	return a->controlling;
}

uint32_t ice_local_candidates(const struct ice_agent *a, struct ice_candidate *out, uint32_t cap)
{
	uint32_t n = 0;

	for (uint8_t i = 0; i < a->local_count && n < cap; i++) {
		struct ice_candidate *c = &out[n];

		if (a->local[i].component > a->components)
			continue;
		memset(c, 0, sizeof(*c));
		c->addr = a->local[i].addr;
		c->component = a->local[i].component;
		c->type = ICE_HOST;
		c->priority = ice_local_priority(a, i, ICE_HOST);
		c->foundation[0] = (char)('0' + a->local_foundation[i]);
		c->foundation_len = 1;
		n++;
	}
	return n;
}

/* --- The peer's candidates -------------------------------------------------------------------- */

/* A signalled candidate that was learned before keeps what the check said about it. */
static void add(struct ice_agent *a, const struct ice_candidate *c)
{
	struct remote r = {.addr = c->addr,
		.priority = c->priority,
		.foundation = ice_hash(c->foundation, c->foundation_len),
		.component = c->component,
		.type = c->type};
	const struct selected *s;
	int i;

	if (c->component < 1 || c->component > a->components || !c->addr.port ||
		c->foundation_len > sizeof(c->foundation) || endpoint_is_unspecified(&c->addr) ||
		endpoint_is_multicast(&c->addr) || ice_remote_find(a, c->component, &c->addr) >= 0)
		return;
	i = ice_remote_add(a, &r);
	s = &a->selected[c->component - 1];
	if (i >= 0 && !(s->set && !s->old && s->nominated) && (!a->lite || a->remote_lite))
		ice_pair_all(a, (uint8_t)i);
}

static bool same_remote(const struct ice_agent *a, const struct ice_remote *r)
{
	struct stun_key key;
	bool same;

	if (!a->cur.has_remote ||
		!str_eq(r->ufrag, (struct str){a->cur.remote_ufrag, a->cur.remote_ufrag_len}))
		return false;
	stun_key_init(&key, r->pwd);
	same = secmem_equal(&key, &a->cur.remote_key, sizeof(key));
	secmem_wipe(&key, sizeof(key));
	return same;
}

/* Selected pairs continue under the credentials of their checks; without memory they end. */
static void keep_old(struct ice_agent *a)
{
	bool any = false;

	for (uint8_t c = 0; c < ICE_COMPONENTS; c++)
		any = any || (a->selected[c].set && !a->selected[c].old);
	if (!any) /* a second restart before the first one got anywhere */
		return;
	if (!a->old)
		a->old = malloc(sizeof(*a->old));
	for (uint8_t c = 0; c < ICE_COMPONENTS; c++) {
		if (a->selected[c].old || !a->old)
			a->selected[c].set = false; /* two rounds back */
		a->selected[c].old = a->selected[c].set;
	}
	if (a->old)
		*a->old = a->cur;
}

/* The current peer was never told that name. */
static void forget_prev(struct ice_agent *a)
{
	uint8_t kept = 0;

	for (uint8_t i = 0; i < a->early_count; i++)
		if (!a->early[i].prev)
			a->early[kept++] = a->early[i];
	a->early_count = kept;
	secmem_wipe(&a->cur.prev, sizeof(a->cur.prev));
	a->cur.has_prev = false;
}

/* Requests from before the answer (RFC 8445 7.3). Those of another branch are forgotten. */
static void take_early(struct ice_agent *a)
{
	uint32_t hash = ice_hash(a->cur.remote_ufrag, a->cur.remote_ufrag_len);

	for (uint8_t i = 0; i < a->early_count; i++)
		if (a->early[i].ufrag_hash == hash)
			ice_triggered(a, &a->early[i]);
	a->early_count = 0;
	free(a->early);
	a->early = NULL;
}

/* RFC 8445 6.1.1: the full side controls; among equals the roles stay. */
static void settle_role(struct ice_agent *a, bool remote_lite)
{
	a->remote_lite = remote_lite;
	if (a->lite != remote_lite)
		ice_check_switch(a, remote_lite);
}

int ice_set_remote(struct ice_agent *a, const struct ice_remote *r, uint64_t now_ns)
{
	bool fresh = !same_remote(a, r);

	if (r->ufrag.len < SDP_ICE_UFRAG_MIN || r->ufrag.len > SDP_ICE_TEXT_MAX ||
		r->pwd.len < SDP_ICE_PWD_MIN || r->pwd.len > SDP_ICE_TEXT_MAX)
		return -EINVAL;
	ice_advance(a, now_ns);
	if (fresh) {
		if (a->cur.has_remote) {
			keep_old(a);
			forget_prev(a);
		}
		ice_round_clear(a);
		memcpy(a->cur.remote_ufrag, r->ufrag.s, r->ufrag.len);
		a->cur.remote_ufrag_len = (uint16_t)r->ufrag.len;
		stun_key_init(&a->cur.remote_key, r->pwd);
		a->cur.has_remote = true;
		settle_role(a, r->lite);
		a->yield_ns = a->controlling ? 0 : a->now_ns + ICE_YIELD_NS;
	}
	for (uint32_t i = 0; i < r->count; i++)
		add(a, &r->candidate[i]);
	a->last = a->last || r->last;
	if (fresh)
		take_early(a);
	if (a->lite && a->remote_lite)
		ice_select_lite(a);
	ice_update(a);
	return 0;
}

/* --- Changes ---------------------------------------------------------------------------------- */

void ice_use_one_component(struct ice_agent *a, uint64_t now_ns)
{
	uint8_t kept = 0;

	ice_advance(a, now_ns);
	if (a->components == 1)
		return;
	for (uint8_t i = 0; i < a->pair_count; i++)
		if (a->pair[i].component == 1)
			a->pair[kept++] = a->pair[i];
	a->pair_count = kept;
	a->components = 1;
	memset(&a->selected[1], 0, sizeof(a->selected[1]));
	a->changes++;
	ice_update(a);
}

void ice_forget_peer(struct ice_agent *a, uint64_t now_ns)
{
	ice_advance(a, now_ns);
	memset(a->selected, 0, sizeof(a->selected));
	ice_forget_old(a);
	secmem_wipe(&a->cur.remote_key, sizeof(a->cur.remote_key));
	a->cur.has_remote = false;
	forget_prev(a);
	ice_round_clear(a);
	a->changes++;
	ice_update(a);
}

/* The peer's requests may be of its new round already, before its offer told us of it. Those by the
 * name that becomes the previous one are kept. */
static void keep_early(struct ice_agent *a, bool prev)
{
	uint8_t kept = 0;

	for (uint8_t i = 0; i < a->early_count; i++) {
		if (a->early[i].prev != prev)
			continue;
		a->early[kept] = a->early[i];
		a->early[kept++].prev = true;
	}
	a->early_count = kept;
}

/* The credentials that the peer knows stay valid as prev until the peer answers the restart. */
void ice_restart(struct ice_agent *a, uint64_t now_ns)
{
	struct own_name prev = a->cur.has_remote ? a->cur.own : a->cur.prev;
	bool has_prev = a->cur.has_remote || a->cur.has_prev;

	ice_advance(a, now_ns);
	if (a->cur.has_remote)
		keep_old(a);
	keep_early(a, !a->cur.has_remote);
	secmem_wipe(&a->cur, sizeof(a->cur));
	a->cur.prev = prev;
	a->cur.has_prev = has_prev;
	secmem_wipe(&prev, sizeof(prev));
	ice_round_clear(a);
	ice_new_credentials(a);
	a->changes++;
	ice_update(a);
}

/* --- Questions -------------------------------------------------------------------------------- */

enum ice_state ice_state(const struct ice_agent *a)
{
	return (enum ice_state)a->state;
}

uint32_t ice_changes(const struct ice_agent *a)
{
	return a->changes;
}

bool ice_selected(const struct ice_agent *a, uint8_t component, struct ice_pair_selected *out)
{
	const struct selected *s;

	if (component < 1 || component > a->components || !a->selected[component - 1].set)
		return false;
	s = &a->selected[component - 1];
	*out = (struct ice_pair_selected){s->local, s->nominated, s->remote};
	return true;
}

bool ice_is_valid_source(const struct ice_agent *a, uint8_t local, const struct endpoint *src)
{
	for (uint8_t c = 0; c < a->components; c++)
		if (a->selected[c].set && a->selected[c].local == local &&
			endpoint_eq(&a->selected[c].remote, src))
			return true;
	for (uint8_t i = 0; i < a->pair_count; i++)
		if (a->pair[i].state == PAIR_SUCCEEDED && a->pair[i].local == local &&
			endpoint_eq(&a->remote[a->pair[i].remote].addr, src))
			return true;
	return false;
}

uint32_t ice_counter(const struct ice_agent *a, enum ice_count c)
{
	return a->count[c];
}
