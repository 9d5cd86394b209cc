/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Negotiates an offer (RFC 3264 section 5): chooses the sides, and the offer to the other side.
 * Pure. An offer changes no state in force, because a re-INVITE may be refused while media
 * continue. Its answer puts both sides into force (neg_answer.c). */
#include "offer/neg_offer.h"
#include "call/call.h"
#include "call/dialog.h"
#include "call/gate.h"
#include "call/plan.h"
#include "call/said.h"
#include "call/timeout_report.h"
#include "offer/bundle.h"
#include "offer/mline_map.h"
#include "offer/neg_codec.h"
#include "offer/neg_flags.h"
#include "offer/neg_ice.h"
#include "offer/neg_keying.h"
#include "offer/neg_raw.h"
#include "offer/neg_stay.h"
#include "offer/osrtp_legacy.h"
#include "offer/sources.h"

/* --- Sides ------------------------------------------------------------------------------------ */

/* An earlier branch that lost the call knows keys, which the next must not get. */
static void forget_keys(struct side *s)
{
	for (uint32_t i = 0; i < s->legs; i++)
		if (s->leg[i])
			keying_forget_ours(&s->leg[i]->keying);
}

static int offer_pair(struct plan *plan, struct call *c, const struct neg_in *in)
{
	const struct ng_request *r = in->r;
	struct endpoint source;
	struct side *from, *to;

	if (plan->from == SIDE_NONE)
		plan->from = call_side_add(c, r->from_tag, STR_NONE);
	if (plan->from == SIDE_NONE)
		return -1;
	if (plan->to == SIDE_NONE)
		plan->to = call_side_add(c, r->to_tag, r->via_branch);
	if (plan->to == SIDE_NONE)
		return -1;
	from = c->side[plan->from];
	to = c->side[plan->to];
	if (!from->tag.len && str_replace(&from->tag, r->from_tag))
		return -1;
	if (to->tag.len && !r->to_tag.len)
		forget_keys(to);
	if (to->peer == SIDE_NONE)
		to->peer = plan->from;
	if (from->peer == SIDE_NONE)
		from->peer = plan->to; /* forks: the first branch is the peer until one answers */
	if ((!from->source.family || from->peer == plan->to) &&
		endpoint_parse_addr(&source, r->received_from) == 0)
		from->source = source;
	if (from->peer != plan->to) /* it switches to a side with a valid answer (dialog.h) */
		from->settled = false;
	if (!from->has_local)
		from->local = neg_local(plan, in, r->direction[0], neg_family(in->sdp));
	if (!to->has_local)
		to->local = neg_local(plan, in, r->direction[1],
			r->address_family ? r->address_family
					  : in->locals[from->local].addr.family);
	from->has_local = to->has_local = true;
	return 0;
}

/* --- Media ------------------------------------------------------------------------------------ */

static bool opportunistic(const struct ng_request *r, uint32_t flag)
{
	return r->osrtp & flag;
}

/* The profile for the other side. */
static enum sdp_proto outward(struct plan *plan, const struct leg *model, const struct sdp_media *m,
	const struct neg_in *in)
{
	enum sdp_proto p = sdp_proto_find(in->r->transport);
	bool ordered = p != SDP_PROTO_OTHER;
	struct keying_host host = in->host;
	const char *instead;

	if (!ordered)
		p = model && leg_profile(model) != SDP_PROTO_OTHER ? leg_profile(model) : m->proto;
	if (in->r->nena) {
		p = sdp_proto_is_feedback(p) ? SDP_UDP_TLS_RTP_SAVPF : SDP_UDP_TLS_RTP_SAVP;
		ordered = true;
	}
	host.dtls &= in->r->dtls != NG_DTLS_OFF;
	p = keying_profile(p, &host, &instead);
	if (ordered && instead)
		plan_warn(plan, in->p, str_from(instead));
	return p;
}

/* Whether RTP may go to the offerer before an answer. Its address then comes into force now. Not
 * with SRTP on either side: keys come into force with the answer. */
static void offer_early(struct leg *from, const struct sdp_media *m, const struct neg_in *in)
{
	bool hears = m->dir == SDP_DIR_SENDRECV || m->dir == SDP_DIR_RECVONLY;

	from->early = !from->active && hears && in->policy->early_media &&
		!ng_flag(in->r, NG_FLAG_NO_EARLY_MEDIA) && !keying_was_offered(&from->keying) &&
		!sdp_proto_is_secure(m->proto);
	if (from->early)
		neg_remotes(from, m, false, in);
}

/* Whether an opportunistic offer stays one (RFC 8643): yes, unless the script sets the profile. */
static bool handed_on(const struct leg *from, const struct sdp_media *m, const struct neg_in *in)
{
	return keying_was_offered(&from->keying) && !sdp_proto_is_secure(m->proto) &&
		!in->r->transport.len;
}

/* paired: these two sides were peers before. */
static void offer_media(struct plan *plan, struct call *c, bool paired, const struct sdp_media *m,
	uint32_t i, struct neg_in *in)
{
	struct leg *from = c->side[plan->from]->leg[i], *to = c->side[plan->to]->leg[i];
	const struct leg *model = stay_model(c->side[plan->from], c->side[plan->to], to, m->proto);
	struct plan_media *pm = &plan->media[i];
	uint32_t mux = in->r->rtcp_mux;
	struct neg_offer_keys keys = {
		.from = from, .to = to, .paired = paired, .ours_only = pm->both, .later = true};

	neg_said(from, m, in);
	bundle_said(from, i, plan);
	neg_ice_said(from, i, in);
	if (!neg_read_offer(plan, from, m, i, in))
		return;
	pm->proto = outward(plan, model, m, in);
	keys.opportunistic = opportunistic(in->r, NG_OSRTP_OFFER) || handed_on(from, m, in) ||
		stay_opportunistic(model, pm->proto, in);
	if (pm->both)
		pm->proto = sdp_proto_make(true, sdp_proto_is_feedback(pm->proto));
	to->asked.either = pm->both;
	pm->mux = !(mux & NG_RTCP_MUX_DEMUX) &&
		(m->rtcp_mux || (to->active && to->mux) ||
			mux & (NG_RTCP_MUX_OFFER | NG_RTCP_MUX_REQUIRE));
	to->asked.proto = pm->proto;
	to->asked.mux = pm->mux;
	neg_codec_offer(plan, &(struct neg_codec_pair){from, to}, m, i, in);
	if (!neg_write_offer(plan, &keys, m, i, in))
		return;
	if (!neg_ice_offer(from, to, in)) {
		plan_fail(plan, NGE_NOMEM, plan_media_name(in->p, i, "random bytes for ICE"));
		return;
	}
	offer_early(from, m, in);
	from->used = to->used = plan->offers = true;
}

/* Rejects SRTP m-lines without a usable crypto line (RFC 4568 7.1.2); the others continue. If
 * SRTP is in force, or the script demands suites, the offer fails, so that established media
 * continue. */
static void reject_unusable(struct plan *plan, struct leg *from, const struct sdp_media *m,
	uint32_t i, struct neg_in *in)
{
	if (!plan->error || from->active || in->r->sdes.require_given ||
		keying_was_offered(&from->keying) || !sdp_proto_is_secure(m->proto))
		return;
	plan->unusable_detail = plan->unusable
		? pool_printf(in->p, STR_FMT "; " STR_FMT, STR_ARG(plan->unusable_detail),
			  STR_ARG(plan->detail))
		: plan->detail;
	plan->unusable = plan->unusable ? plan->unusable : plan->error;
	plan->error = NULL;
	plan->media[i].reject = from->said.rejected = true;
}

static void tell_unusable(struct plan *plan, const struct neg_in *in)
{
	if (plan->offers)
		plan_warn(plan, in->p,
			pool_printf(in->p, "rejected: %s (" STR_FMT ")", plan->unusable,
				STR_ARG(plan->unusable_detail)));
	else
		plan_fail(plan, plan->unusable, plan->unusable_detail);
}

static bool loses_codecs(
	struct plan *plan, const struct sdp_media *m, uint32_t i, const struct neg_in *in)
{
	if (ng_flag(in->r, NG_FLAG_ALLOW_NO_CODEC_MEDIA) ||
		!sdp_filter_empties(neg_codec_filter(in), m))
		return false;
	plan_warn(plan, in->p, plan_media_name(in->p, i, "rejected: no codec would be left"));
	return true;
}

void negotiate_offer(struct plan *plan, struct call *c, struct neg_in *in)
{
	struct side *from, *to;
	const char *error;
	struct dialog d;

	if (!plan_init(plan, in))
		return;
	error = dialog_offer(&d, in);
	if (error) {
		plan_fail(plan, error, str_from(d.why));
		return;
	}
	if (c->delete_ns &&
		dialog_is_new(c, in->r)) { /* a deleted dialog does not continue with the new one */
		dialog_end_sides(c, UINT32_MAX);
		c->answered = false;
	}
	plan->from = d.from;
	plan->to = d.to;
	if (offer_pair(plan, c, in)) {
		plan_fail(plan, NGE_PARTIES, STR_NONE);
		return;
	}
	in->other = plan->to;
	from = c->side[plan->from];
	to = c->side[plan->to];
	if (from->listener || to->listener || from->publisher) {
		plan_fail(plan, NGE_DIALOG, STR("it has one-way media"));
		return;
	}
	if (!stay_request(plan, from, to, in, false))
		error = NGE_NOMEM;
	else
		error = mline_number(in, from, to, true);
	if (!error && !bundle_offered(plan, from, in))
		error = NGE_NOMEM;
	if (error) {
		plan_fail(plan, error, STR_NONE);
		return;
	}
	if (in->r->tos == NG_TOS_DEFAULT)
		c->tos = in->policy->tos;
	neg_flags(c, from, in);
	timeout_report_request(plan, c, in);
	neg_echo(plan, from, to, in, false);
	from->offer_open = true;
	to->mux_flags = in->r->rtcp_mux;
	from->osrtp = in->r->osrtp;
	for (uint32_t i = 0; i < from->legs; i++) /* removed m-lines count as closed */
		if (from->leg[i])
			from->leg[i]->said.rejected = true;
	for (uint32_t i = 0; i < in->sdp->media_count && !plan->error; i++) {
		const struct sdp_media *m = &in->sdp->media[i];
		bool fresh = !side_leg_get(to, i), unwanted = mline_wanted(in->r, m);
		struct leg *lf = side_leg(in->keys, from, i), *lt = side_leg(in->keys, to, i);

		if (!lf || !lt) {
			plan_fail(plan, NGE_NOMEM, STR_NONE);
			return;
		}
		neg_set_kind(lf, m);
		neg_set_kind(lt, m);
		memset(lf->said.events, 0, sizeof(lf->said.events));
		neg_add_events(lf->said.events, m);
		lf->said.quiet = neg_quiet(m);
		lf->said.relayed = sdp_proto_is_relayed(m->proto);
		lf->said.proto = m->proto;
		neg_said_mid(&lf->said, m);
		mline_decide(to, i, unwanted, fresh);
		plan->media[i].omit = mline_from(to, i);
		/* An m-line known to the other side keeps its place, with port 0 (RFC 3264 8.2). */
		lf->said.rejected = m->port == 0 || unwanted || mline_from(to, i) ||
			raw_rejects(plan, m, i, in) || neg_too_many(plan, from, i, m, in) ||
			(sdp_proto_is_rtp(m->proto) && loses_codecs(plan, m, i, in));
		plan->media[i].keep = raw_passes(m);
		plan->media[i].reject = lf->said.rejected;
		plan->media[i].both = sdp_proto_is_rtp(m->proto) && !lf->said.rejected &&
			osrtp_legacy_offer(plan, to, i, in->sdp->media_count, in);
		lf->early = false;
		lf->said.shares = 0;
		if (lf->said.rejected)
			continue;
		if (sdp_proto_is_rtp(m->proto)) {
			offer_media(plan, c, from->peer == plan->to, m, i, in);
			reject_unusable(plan, lf, m, i, in);
		} else if (lf->said.relayed) {
			raw_offer(lf, lt, m, in);
		}
	}
	if (!plan->error)
		neg_end_offer(plan, to, in);
	bundle_ask(plan, to, in);
	error = osrtp_legacy_fits(to, in->sdp->media_count);
	if (error && !plan->error)
		plan_fail(plan, error, STR_NONE);
	if (plan->unusable && !plan->error)
		tell_unusable(plan, in);
	subscribe_remember(from, in->sdp);
}
