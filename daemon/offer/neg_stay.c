/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Keeps the profile and suites of an established leg. Many route files send the same flags in both
 * directions. The flags of the first offer then arrive again with the callee's re-INVITE, where
 * they would change the caller's leg. So each side stores the flags last applied to it. A later
 * request changes an established side only by a flag that differs from those of both sides, or with
 * the flag "reset". SRTP ends in mid-call only by such a flag, or because the terminal itself
 * described RTP for its own leg (RFC 3264 8.3). */
#include "call/plan.h"
#include "offer/neg_stay.h"

#define LIMITS                                                                                \
	(NG_SDES_OFF | NG_SDES_NONEW | NG_SDES_UNENCRYPTED_SRTP | NG_SDES_UNENCRYPTED_SRTCP | \
		NG_SDES_UNAUTHENTICATED_SRTP)
#define OSRTP_OUT (NG_OSRTP_OFFER | NG_OSRTP_OFFER_LEGACY | NG_OSRTP_OFF)
#define MUX_OUT   (NG_RTCP_MUX_OFFER | NG_RTCP_MUX_REQUIRE | NG_RTCP_MUX_DEMUX)

/* The limits on suites. require applies to the sender's SDP; the other words to the lines written.
 */
static struct ng_sdes limits_of(const struct ng_sdes *given)
{
	struct ng_sdes s = *given;

	s.flags &= LIMITS;
	s.require_given = false;
	s.require = 0;
	return s;
}

static bool same_limits(const struct ng_sdes *a, const struct ng_sdes *b)
{
	return a->flags == b->flags && a->no == b->no && a->only == b->only &&
		!memcmp(a->order, b->order, sizeof(a->order)) &&
		!memcmp(a->offerer_pref, b->offerer_pref, sizeof(a->offerer_pref));
}

static bool is_given(const struct ng_sdes *limits)
{
	static const struct ng_sdes none;

	return !same_limits(limits, &none);
}

static void set_limits(struct ng_sdes *out, const struct ng_sdes *limits)
{
	uint32_t form = out->flags & ~(uint32_t)LIMITS, require = out->require;
	bool given = out->require_given;

	*out = *limits;
	out->flags |= form;
	out->require = require;
	out->require_given = given;
}

static bool is_established(const struct side *s)
{
	for (uint32_t i = 0; i < s->legs; i++)
		if (s->leg[i] && s->leg[i]->active)
			return true;
	return false;
}

/* Whether this flag belongs to the other side only. */
static bool is_others(uint32_t now, uint32_t others, uint32_t own)
{
	return now && now == others && now != own;
}

static bool speaks_otherwise(const struct side *s, enum sdp_proto p)
{
	for (uint32_t i = 0; i < s->legs; i++)
		if (s->leg[i] && s->leg[i]->active && s->leg[i]->proto != p)
			return true;
	return false;
}

static void tell_kept(struct plan *plan, struct pool *p, struct str what)
{
	plan->kept = plan->kept.len
		? pool_printf(p, STR_FMT ", " STR_FMT, STR_ARG(plan->kept), STR_ARG(what))
		: what;
}

static void keep_transport(struct plan *plan, struct ng_request *r, const struct side *from,
	const struct side *to, struct pool *p)
{
	enum sdp_proto now = sdp_proto_find(r->transport);

	if (!to->emergency && !is_others(now, from->wanted.proto, to->wanted.proto))
		return;
	if (now && speaks_otherwise(to, now))
		tell_kept(plan, p,
			pool_printf(p, "transport-protocol=" STR_FMT, STR_ARG(r->transport)));
	r->transport = STR_NONE;
}

static void keep_limits(struct plan *plan, struct ng_request *r, const struct side *from,
	const struct side *to, struct pool *p)
{
	struct ng_sdes now = limits_of(&r->sdes);

	if (!is_given(&now) || !same_limits(&now, &from->wanted.limits) ||
		same_limits(&now, &to->wanted.limits))
		return;
	tell_kept(plan, p, STR("SDES"));
	set_limits(&r->sdes, &to->wanted.limits);
}

/* Applied to the other side, the flag could make a terminal without ZRTP wait for it. */
static void keep_zrtp(struct plan *plan, struct ng_request *r, const struct side *from,
	const struct side *to, struct pool *p)
{
	if (!is_others(r->zrtp, from->wanted.zrtp, to->wanted.zrtp))
		return;
	tell_kept(plan, p, STR("ZRTP"));
	r->zrtp = to->wanted.zrtp;
}

static void keep_rest(struct plan *plan, struct ng_request *r, const struct side *from,
	const struct side *to, struct pool *p)
{
	uint32_t osrtp = r->osrtp & OSRTP_OUT, mux = r->rtcp_mux & MUX_OUT;

	if (is_others(osrtp, from->wanted.osrtp, to->wanted.osrtp)) {
		tell_kept(plan, p, STR("OSRTP"));
		r->osrtp &= ~OSRTP_OUT;
	}
	if (is_others(mux, from->wanted.mux, to->wanted.mux)) {
		tell_kept(plan, p, STR("rtcp-mux"));
		r->rtcp_mux &= ~(uint32_t)MUX_OUT;
	}
}

/* Flags that a request does not contain keep their values. */
static void remember(struct side_wanted *w, const struct ng_request *r, bool is_answer)
{
	enum sdp_proto proto = sdp_proto_find(r->transport);
	struct ng_sdes limits = limits_of(&r->sdes);

	if (is_given(&limits))
		w->limits = limits;
	w->zrtp = r->zrtp ? r->zrtp : w->zrtp;
	if (is_answer)
		return;
	w->proto = proto ? proto : w->proto;
	w->osrtp = r->osrtp & OSRTP_OUT ? r->osrtp & OSRTP_OUT : w->osrtp;
	w->mux = r->rtcp_mux & MUX_OUT ? r->rtcp_mux & MUX_OUT : w->mux;
}

bool stay_request(struct plan *plan, const struct side *from, struct side *to, struct neg_in *in,
	bool is_answer)
{
	struct ng_request *r = pool_alloc(in->p, sizeof(*r));

	if (!r)
		return false;
	*r = *in->r;
	if (is_established(to) && r->to_tag.len && !ng_flag(r, NG_FLAG_RESET)) {
		keep_limits(plan, r, from, to, in->p);
		keep_zrtp(plan, r, from, to, in->p);
		if (!is_answer) {
			keep_transport(plan, r, from, to, in->p);
			keep_rest(plan, r, from, to, in->p);
		}
	}
	remember(&to->wanted, r, is_answer);
	in->r = r;
	return true;
}

bool leg_is_encrypted(const struct leg *l)
{
	return !srtp_params_are_plain(&l->rx) || !srtp_params_are_plain(&l->tx) || l->tx.pass;
}

static const struct leg *first_active(const struct side *s)
{
	for (uint32_t i = 0; i < s->legs; i++)
		if (s->leg[i] && s->leg[i]->active)
			return s->leg[i];
	return NULL;
}

const struct leg *stay_model(
	const struct side *from, const struct side *to, const struct leg *l, enum sdp_proto offered)
{
	const struct leg *other = first_active(from);

	if (l->proto != SDP_PROTO_OTHER)
		return l;
	if (!other || sdp_proto_is_secure(other->proto) != sdp_proto_is_secure(offered))
		return NULL;
	return first_active(to);
}

bool stay_opportunistic(const struct leg *model, enum sdp_proto proto, const struct neg_in *in)
{
	bool ordered = in->r->transport.len && model && sdp_proto_is_secure(model->proto);

	return model && leg_is_encrypted(model) && !sdp_proto_is_secure(proto) && !ordered &&
		!(in->r->osrtp & NG_OSRTP_OFF);
}

void stay_look(struct plan *plan, const struct leg *l, uint8_t was, bool by_order, uint32_t i,
	struct neg_in *in)
{
	const char *suite = was == SUITE_PLAIN ? "SRTP" : srtp_suite_get(was)->name;

	if (leg_is_encrypted(l))
		return;
	if (by_order)
		plan->weaker_by_order++;
	else
		plan->weaker_by_terminal++;
	plan_note(plan, in->p,
		pool_printf(in->p, "media %u: a leg went from %s to RTP, by %s", (unsigned)i + 1,
			suite,
			by_order ? "order of the flags (transport-protocol, SDES or OSRTP)"
				 : "its terminal's own SDP"));
}
