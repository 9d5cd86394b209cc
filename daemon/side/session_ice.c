/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The ICE agent of a session: made, restored after a restart, restarted, told of the peer, removed.
 * RFC 8445. */
#include "side/session_int.h"

#include <errno.h>
#include <stdlib.h>

#include "base/secmem.h"

/* The same address may be selected again: then the call has to be informed again. */
static void forget_told(struct session *s)
{
	for (uint32_t k = 0; k < COMPONENTS; k++)
		s->part[k].told = (struct endpoint){0};
}

void session_ice_drop(struct session *s)
{
	session_count_ice_end(s);
	if (s->ice)
		ice_fini(s->ice);
	free(s->ice);
	free(s->ice_next);
	if (s->ice)
		forget_told(s);
	s->ice = NULL;
	s->ice_next = NULL;
	s->ice_told = ICE_NEW;
}

/* Lists local ports in the order of session_port(). Returns their number. */
static uint8_t locals(const struct session *s, struct ice_local out[ICE_LOCALS])
{
	_Static_assert(SESSION_PORTS <= ICE_LOCALS, "all are candidates");
	for (uint8_t i = 0; i < s->locals; i++)
		for (uint8_t k = 0; k < COMPONENTS; k++)
			out[session_port(i, k)] =
				(struct ice_local){.addr = s->local[i][k], .component = k + 1};
	return (uint8_t)(COMPONENTS * s->locals);
}

static int begin_ice(struct session *s, const struct session_order *order, uint64_t now_ns)
{
	const struct session_ice *ice = &order->cfg.ice;
	struct ice_config c = {.lite = ice->lite,
		.controlling = ice->controlling,
		.components = (uint8_t)session_components(s)};
	int err;

	c.local_count = locals(s, c.local);
	err = ice_init(s->ice, &c, order->seed, now_ns);
	if (!err)
		ice_set_credentials(s->ice, ice->ufrag, ice->pwd);
	return err;
}

static bool is_restored(const struct session_cfg *cfg)
{
	return cfg->ice.started && cfg->ice.remote_ufrag[0] &&
		(cfg->selected[0].family || cfg->selected[1].family);
}

/* The pairs of another life, which have to prove consent now. Their candidates are not known any
 * more: each is of the best type, and whatever is found besides comes by checks of the peer. */
static int restore_ice(struct session *s, const struct session_order *order, uint64_t now_ns)
{
	const struct endpoint *selected = order->cfg.selected;
	const struct session_ice *cfg = &order->cfg.ice;
	struct str ufrag = str_from(cfg->remote_ufrag);
	struct ice_saved v = {.version = ICE_SAVED_VERSION,
		.lite = cfg->lite,
		.remote_lite = cfg->remote_lite,
		.controlling = cfg->controlling,
		.components = (uint8_t)session_components(s),
		.last = cfg->last,
		.has_remote = true,
		.remote_ufrag_len = (uint16_t)ufrag.len};
	int err;

	memcpy(v.ufrag, cfg->ufrag, sizeof(v.ufrag));
	memcpy(v.pwd, cfg->pwd, sizeof(v.pwd));
	v.has_prev = cfg->prev_ufrag[0];
	memcpy(v.prev_ufrag, cfg->prev_ufrag, sizeof(v.prev_ufrag));
	if (v.has_prev)
		stun_key_init(&v.prev_key, (struct str){cfg->prev_pwd, sizeof(cfg->prev_pwd)});
	memcpy(v.remote_ufrag, ufrag.s, ufrag.len);
	stun_key_init(&v.remote_key, str_from(cfg->remote_pwd));
	v.local_count = locals(s, v.local);
	for (uint8_t k = 0; k < session_components(s); k++) {
		v.selected[k].set = selected[k].family != 0;
		if (!v.selected[k].set)
			continue;
		v.selected[k].nominated = true;
		v.selected[k].local = session_port(order->cfg.selected_at[k], k);
		v.selected[k].remote = selected[k];
		v.remote[v.remote_count++] = (struct ice_saved_candidate){.addr = selected[k],
			.priority = ice_candidate_priority(ICE_HOST, UINT16_MAX, k + 1),
			.component = k + 1,
			.type = ICE_HOST};
	}
	err = ice_restore(s->ice, &v, order->seed, now_ns);
	secmem_wipe(&v, sizeof(v));
	return err;
}

static int make_ice(struct session *s, const struct session_order *order, uint64_t now_ns)
{
	const struct session_cfg *cfg = &order->cfg;
	int err;

	s->locals = cfg->locals < SESSION_LOCALS ? cfg->locals : SESSION_LOCALS;
	memcpy(s->local, cfg->local, sizeof(s->local));
	s->ice = calloc(1, ice_size());
	if (!s->ice)
		return -ENOMEM;
	err = is_restored(cfg) ? restore_ice(s, order, now_ns) : begin_ice(s, order, now_ns);
	if (err) {
		ice_fini(s->ice);
		free(s->ice);
		s->ice = NULL;
	}
	return err;
}

static int set_remote(struct session *s, bool lite, uint64_t now_ns)
{
	const struct session_ice_peer *p = &s->ice_peer;
	struct ice_remote r = {.ufrag = str_from(p->ufrag),
		.pwd = str_from(p->pwd),
		.lite = lite,
		.last = p->last,
		.candidate = p->candidate,
		.count = p->candidates};

	return ice_set_remote(s->ice, &r, now_ns);
}

static void add_candidates(struct ice_candidate to[SDP_ICE_CANDIDATES], uint32_t *n,
	const struct ice_candidate *c, uint32_t count)
{
	for (uint32_t i = 0; i < count && *n < SDP_ICE_CANDIDATES; i++)
		to[(*n)++] = c[i];
}

static void forget(struct session_ice_peer *p)
{
	if (p->pwd)
		secmem_wipe(p->pwd, strlen(p->pwd));
	free(p->ufrag);
	free(p->pwd);
	free(p->candidate);
	*p = (struct session_ice_peer){0};
}

void session_ice_forget(struct session *s)
{
	forget(&s->ice_peer);
}

static bool is_same(const struct session_ice_peer *p, const struct session_ice *said)
{
	return p->ufrag && strcmp(p->ufrag, said->remote_ufrag) == 0 &&
		strcmp(p->pwd, said->remote_pwd) == 0;
}

static bool has(const struct ice_candidate *list, uint32_t n, const struct ice_candidate *c)
{
	for (uint32_t i = 0; i < n; i++)
		if (list[i].component == c->component && endpoint_eq(&list[i].addr, &c->addr))
			return true;
	return false;
}

static int replace_peer(struct session *s, const struct session_ice *said,
	const struct ice_candidate *list, uint32_t n, bool last)
{
	struct session_ice_peer p = {.ufrag = strdup(said->remote_ufrag),
		.pwd = strdup(said->remote_pwd),
		.candidate = n ? malloc(n * sizeof(*list)) : NULL,
		.candidates = n,
		.last = last};

	if (!p.ufrag || !p.pwd || (n && !p.candidate)) {
		forget(&p);
		return -ENOMEM;
	}
	if (n)
		memcpy(p.candidate, list, n * sizeof(*list));
	forget(&s->ice_peer);
	s->ice_peer = p;
	return 0;
}

/* Adds the candidates of a restart that was offered. */
static int keep_next(struct session *s, const struct session_ice *said)
{
	struct session_ice_next *next = s->ice_next;

	if (!next)
		next = s->ice_next = calloc(1, sizeof(*next));
	if (!next)
		return -ENOMEM;
	if (strcmp(next->ufrag, said->next_ufrag) != 0) {
		memcpy(next->ufrag, said->next_ufrag, sizeof(next->ufrag));
		next->candidates = 0;
	}
	add_candidates(next->candidate, &next->candidates, said->candidate, said->candidates);
	return 0;
}

/* Candidates may trickle before ICE starts, so earlier ones of the same credentials are kept. */
int session_ice_keep(struct session *s, const struct session_ice *said)
{
	const struct session_ice_peer *old = &s->ice_peer;
	struct ice_candidate list[SDP_ICE_CANDIDATES];
	bool same = is_same(old, said), of_next = said->next_ufrag[0];
	int err = of_next ? keep_next(s, said) : 0, replaced;
	uint32_t n = 0;

	if (!of_next)
		add_candidates(list, &n, said->candidate, said->candidates);
	if (!of_next && s->ice_next && strcmp(s->ice_next->ufrag, said->remote_ufrag) == 0) {
		add_candidates(list, &n, s->ice_next->candidate, s->ice_next->candidates);
		free(s->ice_next);
		s->ice_next = NULL;
	}
	for (uint32_t i = 0; same && i < old->candidates; i++)
		if (!has(list, n, &old->candidate[i]))
			add_candidates(list, &n, &old->candidate[i], 1);
	replaced = replace_peer(s, said, list, n, said->last || (same && old->last));
	return err ? err : replaced;
}

int session_ice_set(struct session *s, const struct session_order *order,
	const struct session_kept *before, bool had_two, uint64_t now_ns)
{
	const struct session_ice *now = &order->cfg.ice;
	int err = 0;

	if (!now->on) {
		session_ice_drop(s);
		return 0;
	}
	if (!s->ice) {
		err = make_ice(s, order, now_ns);
	} else if (before->ice.generation != now->generation) {
		ice_restart(s->ice, now_ns);
		ice_set_credentials(s->ice, now->ufrag, now->pwd);
	} else if (before->ice.peer != now->peer) {
		ice_forget_peer(s->ice, now_ns);
		forget_told(s);
	}
	if (err)
		return err;
	if (had_two && s->cfg.mux)
		ice_use_one_component(s->ice, now_ns);
	if (!now->started || !s->ice_peer.ufrag || !s->ice_peer.ufrag[0])
		return 0;
	return set_remote(s, now->remote_lite, now_ns);
}
