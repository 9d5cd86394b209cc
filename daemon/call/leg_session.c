/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Derives the settings of a leg's session from the leg. Pure, except for calls of struct
 * session_ops. */
#include "call/leg_session.h"

#include "base/secmem.h"
#include "keying/keying.h"
#include "packet/side.h"

static bool has_zrtp(const struct leg *l)
{
	struct keying_exchange x;

	return keying_exchange(&x, &l->keying);
}

bool leg_needs_session(const struct leg *l)
{
	struct keying_association a;

	return l->used && !l->via &&
		(leg_has_ice(l) || has_zrtp(l) || keying_association(&a, &l->keying));
}

uint8_t leg_side_kinds(const struct leg *l)
{
	struct keying_association a;
	uint8_t kinds = 0;

	if (!l->used || !l->has_session)
		return 0;
	kinds |= leg_has_ice(l) ? 1u << SIDE_STUN : 0;
	kinds |= keying_association(&a, &l->keying) ? 1u << SIDE_DTLS : 0;
	kinds |= has_zrtp(l) ? 1u << SIDE_ZRTP : 0;
	return kinds;
}

int leg_session_take(const struct relay *r, struct leg *l)
{
	int err;

	if (l->has_session || !r->sessions || !leg_needs_session(l))
		return 0;
	err = r->sessions->ops->take(r->sessions->arg, &l->session, &l->side_serial);
	l->has_session = !err;
	return err;
}

bool leg_candidate(struct ice_candidate *out, const struct endpoint *named, bool rtcp)
{
	uint8_t component = rtcp ? 2 : 1;

	if (endpoint_is_unspecified(named) || !named->port)
		return false;
	*out = (struct ice_candidate){.addr = *named,
		.priority = ice_candidate_priority(ICE_HOST, UINT16_MAX, component),
		.foundation = "1",
		.foundation_len = 1,
		.component = component,
		.type = ICE_HOST};
	return true;
}

static void ice_of(struct session_ice *out, const struct leg *l)
{
	const struct leg_ice *ice = &l->ice;

	out->on = leg_has_ice(l);
	out->lite = ice->lite;
	out->controlling = ice->controlling;
	out->started = ice->on;
	out->generation = ice->generation;
	out->peer = ice->peer;
	memcpy(out->ufrag, ice->ufrag, sizeof(out->ufrag));
	memcpy(out->pwd, ice->pwd, sizeof(out->pwd));
	memcpy(out->prev_ufrag, ice->prev_ufrag, sizeof(out->prev_ufrag));
	memcpy(out->prev_pwd, ice->prev_pwd, sizeof(out->prev_pwd));
	out->remote_lite = ice->remote_lite;
	memcpy(out->remote_ufrag, ice->remote_ufrag, sizeof(out->remote_ufrag));
	memcpy(out->remote_pwd, ice->remote_pwd, sizeof(out->remote_pwd));
	if (ice->of_next)
		memcpy(out->next_ufrag, ice->next_ufrag, sizeof(out->next_ufrag));
	out->candidates = ice->candidates;
	if (ice->candidates)
		memcpy(out->candidate, ice->candidate, ice->candidates * sizeof(*out->candidate));
	out->last = ice->last;
	/* An ICE-lite terminal checks nothing, so a restored agent has to check its address. */
	for (uint32_t k = 0; l->session_resumed && ice->on && k < 2; k++)
		if (!ice->pair[k].family)
			out->candidates +=
				leg_candidate(&out->candidate[out->candidates], &ice->named[k], k);
}

static void dtls_of(struct session_dtls *out, const struct leg *l)
{
	struct keying_association a;

	out->on = keying_association(&a, &l->keying);
	out->role = a.role;
	out->association = a.number;
	out->suites = a.suites;
	out->cert = a.cert;
	out->established = l->session_resumed && l->rx.keys && l->keyed == a.number;
	if (out->established && l->active && !l->mux && l->rx.rtcp.suite == SUITE_PLAIN)
		out->rtp_suite = (uint8_t)srtp_params_suite(&l->rx);
	if (a.prints)
		out->prints = *a.prints;
}

/* The leg of the same m-line at the other terminal of the dialog; NULL: none. */
static const struct leg *far_leg(const struct call *c, const struct leg *l)
{
	for (uint32_t i = 0; i < c->sides; i++) {
		const struct side *s = c->side[i];
		const struct side *far = s->peer < c->sides ? c->side[s->peer] : NULL;

		for (uint32_t m = 0; far && m < s->legs && m < far->legs; m++)
			if (s->leg[m] == l)
				return far->leg[m];
	}
	return NULL;
}

/* Of two legs of a call, the one of the earlier side. */
static bool is_before(const struct call *c, const struct leg *a, const struct leg *b)
{
	for (uint32_t i = 0; i < c->sides; i++)
		for (uint32_t m = 0; m < c->side[i]->legs; m++)
			if (c->side[i]->leg[m] == a || c->side[i]->leg[m] == b)
				return c->side[i]->leg[m] == a;
	return false;
}

/* The SAS of the terminal at the other end. Two enrolled terminals that both showed the other's
 * would compare different ones, so only the earlier one gets it (RFC 6189 7.3). */
static void far_sas(struct session_sas *out, const struct call *c, const struct leg *l)
{
	const struct leg *far = far_leg(c, l);
	const struct keying_zrtp *z = far ? keying_sas(&far->keying) : NULL;

	if (!z || !z->proven || (z->enrolled && is_before(c, far, l)))
		return;
	out->known = true;
	out->kind = z->sas_kind;
	out->discloses = z->discloses;
	out->verified = z->verified;
	memcpy(out->hash, z->sas_hash, sizeof(out->hash));
}

static void zrtp_of(struct session_zrtp *out, const struct call *c, const struct leg *l)
{
	struct keying_exchange x;

	out->on = keying_exchange(&x, &l->keying);
	if (!out->on)
		return;
	out->exchange = x.number;
	memcpy(out->seed, x.seed, sizeof(out->seed));
	memcpy(out->zid, x.zid, sizeof(out->zid));
	out->preshared = x.preshared;
	memcpy(out->party, x.party, sizeof(out->party));
	out->bound = x.theirs->given;
	if (out->bound)
		memcpy(out->hash, x.theirs->hash, sizeof(out->hash));
	out->goclear = x.flags & NG_ZRTP_GOCLEAR && !(x.flags & NG_ZRTP_REQUIRE);
	out->enrol = x.flags & NG_ZRTP_ENROL;
	far_sas(&out->far, c, l);
	out->established = l->session_resumed &&
		((l->rx.keys && x.keyed) || (x.cleared && (x.secret->cleared || x.later->cleared)));
}

static void zrtp_past_of(struct session_zrtp_past *out, const struct leg *l)
{
	struct keying_exchange x;

	if (keying_exchange(&x, &l->keying)) {
		out->secret = *x.secret;
		out->later = *x.later;
	}
	keying_said(&out->said, &l->keying);
}

/* The addresses that SDP names, by [rtcp]. */
static void leg_port_said(
	const struct relay *r, const struct relay_port *port, struct endpoint out[2])
{
	uint32_t n;
	const struct relay_local *locals = r->ops->locals(r->arg, &n);

	out[0] = locals[port->rtp.addr].advertised;
	out[0].port = port->rtp.port;
	out[1] = locals[port->rtcp.addr].advertised;
	out[1].port = port->rtcp.port;
}

int leg_session_set(const struct relay *r, const struct call *c, struct leg *l)
{
	struct session_cfg cfg = {.mux = l->active && l->mux,
		.maybe_mux = !l->active && (l->said.mux || l->asked.mux)};
	const struct relay_port *port;
	int err;

	for (uint32_t i = 0; (port = leg_port_at(l, i)); i++)
		leg_port_said(r, port, cfg.local[cfg.locals++]);
	for (int k = 0; k < 2; k++) {
		cfg.selected_at[k] = l->locals.at[k];
		if (l->active)
			cfg.remote[k] = k ? l->rtcp_remote : l->remote;
		if (l->session_resumed)
			cfg.selected[k] = l->ice.pair[k];
	}
	ice_of(&cfg.ice, l);
	dtls_of(&cfg.dtls, l);
	zrtp_of(&cfg.zrtp, c, l);
	if (cfg.zrtp.established)
		zrtp_past_of(&cfg.zrtp_past, l);
	err = r->sessions->ops->set(
		r->sessions->arg, l->session, c->worker, leg_port_at(l, 0), &cfg);
	secmem_wipe(&cfg, sizeof(cfg));
	return err;
}
