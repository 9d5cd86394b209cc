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

static int begin_ice(struct session *s, const uint8_t seed[ICE_SEED_LEN], uint64_t now_ns)
{
	struct ice_config c = {.lite = s->cfg.ice.lite,
		.controlling = s->cfg.ice.controlling,
		.components = (uint8_t)session_components(s)};
	int err;

	c.local_count = locals(s, c.local);
	err = ice_init(s->ice, &c, seed, now_ns);
	if (!err)
		ice_set_credentials(s->ice, s->cfg.ice.ufrag, s->cfg.ice.pwd);
	return err;
}

static bool is_restored(const struct session *s)
{
	return s->cfg.ice.started && s->cfg.ice.remote_ufrag[0] &&
		(s->cfg.selected[0].family || s->cfg.selected[1].family);
}

/* The pairs of another life, which have to prove consent now. Their candidates are not known any
 * more: each is of the best type, and whatever is found besides comes by checks of the peer. */
static int restore_ice(struct session *s, const uint8_t seed[ICE_SEED_LEN], uint64_t now_ns)
{
	const struct session_ice *cfg = &s->cfg.ice;
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
		v.selected[k].set = s->cfg.selected[k].family != 0;
		if (!v.selected[k].set)
			continue;
		v.selected[k].nominated = true;
		v.selected[k].local = session_port(s->cfg.selected_at[k], k);
		v.selected[k].remote = s->cfg.selected[k];
		v.remote[v.remote_count++] =
			(struct ice_saved_candidate){.addr = s->cfg.selected[k],
				.priority = ice_candidate_priority(ICE_HOST, UINT16_MAX, k + 1),
				.component = k + 1,
				.type = ICE_HOST};
	}
	err = ice_restore(s->ice, &v, seed, now_ns);
	secmem_wipe(&v, sizeof(v));
	return err;
}

static int make_ice(struct session *s, const uint8_t seed[ICE_SEED_LEN], uint64_t now_ns)
{
	int err;

	s->locals = s->cfg.locals < SESSION_LOCALS ? s->cfg.locals : SESSION_LOCALS;
	memcpy(s->local, s->cfg.local, sizeof(s->local));
	s->ice = calloc(1, ice_size());
	if (!s->ice)
		return -ENOMEM;
	err = is_restored(s) ? restore_ice(s, seed, now_ns) : begin_ice(s, seed, now_ns);
	if (err) {
		free(s->ice);
		s->ice = NULL;
	}
	return err;
}

static int set_remote(struct session *s, uint64_t now_ns)
{
	const struct session_ice *cfg = &s->cfg.ice;
	struct ice_remote r = {.ufrag = str_from(cfg->remote_ufrag),
		.pwd = str_from(cfg->remote_pwd),
		.lite = cfg->remote_lite,
		.last = cfg->last,
		.candidate = cfg->candidate,
		.count = cfg->candidates};

	return ice_set_remote(s->ice, &r, now_ns);
}

static void add_candidates(struct ice_candidate to[SDP_ICE_CANDIDATES], uint32_t *n,
	const struct ice_candidate *c, uint32_t count)
{
	for (uint32_t i = 0; i < count && *n < SDP_ICE_CANDIDATES; i++)
		to[(*n)++] = c[i];
}

int session_ice_keep(struct session *s)
{
	struct session_ice *ice = &s->cfg.ice;
	struct session_ice_next *next = s->ice_next;

	if (ice->next_ufrag[0]) {
		if (!next)
			next = s->ice_next = calloc(1, sizeof(*next));
		if (!next)
			return -ENOMEM;
		if (strcmp(next->ufrag, ice->next_ufrag) != 0) {
			memcpy(next->ufrag, ice->next_ufrag, sizeof(next->ufrag));
			next->candidates = 0;
		}
		add_candidates(next->candidate, &next->candidates, ice->candidate, ice->candidates);
		ice->candidates = 0;
	} else if (next && strcmp(next->ufrag, ice->remote_ufrag) == 0) {
		add_candidates(ice->candidate, &ice->candidates, next->candidate, next->candidates);
		free(next);
		s->ice_next = NULL;
	}
	return 0;
}

int session_ice_set(struct session *s, const struct session_ice *before, bool had_two,
	const uint8_t seed[ICE_SEED_LEN], uint64_t now_ns)
{
	const struct session_ice *now = &s->cfg.ice;
	int err = 0;

	if (!now->on) {
		session_ice_drop(s);
		return 0;
	}
	if (!s->ice) {
		err = make_ice(s, seed, now_ns);
	} else if (before->generation != now->generation) {
		ice_restart(s->ice, now_ns);
		ice_set_credentials(s->ice, now->ufrag, now->pwd);
	} else if (before->peer != now->peer) {
		ice_forget_peer(s->ice, now_ns);
		forget_told(s);
	}
	if (err)
		return err;
	if (had_two && s->cfg.mux)
		ice_use_one_component(s->ice, now_ns);
	return now->started && now->remote_ufrag[0] ? set_remote(s, now_ns) : 0;
}
