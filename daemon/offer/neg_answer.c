/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Negotiates an answer (RFC 3264 section 6): puts the offer into force on both sides. Pure. */
#include "offer/neg_answer.h"
#include "call/dialog.h"
#include "call/gate.h"
#include "call/in_force.h"
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

/* A second answer with another tag: the earlier tag becomes an alias of the side. */
static int take_tag(struct side *s, struct str tag)
{
	uint32_t i = 0;

	if (str_eq(s->tag, tag))
		return 0;
	while (i < s->aliases && !str_eq(s->alias[i], tag))
		i++;
	if (s->tag.len && i == s->aliases) {
		if (s->aliases == CALL_MAX_ALIASES)
			i = 0; /* replace the oldest alias */
		else
			s->aliases++;
	}
	if (s->tag.len && str_replace(&s->alias[i], s->tag))
		return -1;
	return str_replace(&s->tag, tag);
}

/* An opportunistic offer (RFC 8643) is accepted, unless the script says otherwise. SDES=off, in the
 * offer or the answer, does not count where the script accepts such offers, or where either leg has
 * SRTP. answerer: its leg on the side s. */
static bool takes_crypto(const struct leg *l, const struct side *offerer,
	const struct leg *answerer, const struct side *s, const struct neg_in *in)
{
	uint32_t flags = offerer->osrtp | in->r->osrtp;
	uint32_t sdes = s->wanted.limits.flags | in->r->sdes.flags;

	if (sdp_proto_is_secure(l->said.proto))
		return true;
	return !(flags & NG_OSRTP_OFF) &&
		(!(sdes & NG_SDES_OFF) || flags & NG_OSRTP_ACCEPT || leg_is_encrypted(answerer) ||
			leg_is_encrypted(l));
}

static void answer_media(struct plan *plan, struct call *c, bool paired, const struct sdp_media *m,
	uint32_t i, struct neg_in *in)
{
	struct side *from = c->side[plan->from], *to = c->side[plan->to];
	struct leg *lf = from->leg[i], *lt = to->leg[i];
	uint32_t mux = from->mux_flags | in->r->rtcp_mux;
	struct plan_media *pm = &plan->media[i];
	bool from_mux = lf->asked.mux && m->rtcp_mux, to_mux;
	bool from_was = leg_is_encrypted(lf), to_was = leg_is_encrypted(lt);
	uint8_t from_suite = srtp_params_suite(&lf->rx), to_suite = srtp_params_suite(&lt->rx);
	struct keying_answer keys = {.paired = paired, .media = m};
	struct endpoint rtp, rtcp;

	neg_read_answer(plan, &keys, lf, lt, i, in);
	if (!plan->error && in->r->sdes.require_given &&
		!keying_is_of(&lf->keying, &lf->rx, neg_required(in->r)))
		plan_fail(plan, NGE_CRYPTO_LINE, plan_media_name(in->p, i, "not of SDES=require"));
	if (plan->error)
		return;
	keys.prefer = srtp_params_suite(&lf->rx);
	keys.in_band_only = !keys.joint && !takes_crypto(lt, to, lf, from, in);
	if (!keys.in_band_only || keying_is_announced(&lt->keying))
		neg_write_answer(plan, &keys, lt, i, in);
	else
		leg_set_plain(lt);
	if (from_was)
		stay_look(plan, lf, from_suite, !keying_asks(&lf->keying), i, in);
	if (to_was)
		stay_look(plan, lt, to_suite, (to->osrtp | in->r->osrtp) & NG_OSRTP_OFF, i, in);
	neg_ice_answered(lf, i, in);
	if (!neg_ice_answer(lt, in)) {
		plan_fail(plan, NGE_NOMEM, plan_media_name(in->p, i, "random bytes for ICE"));
		return;
	}
	neg_remotes(lf, m, from_mux, in);
	to_mux = lt->said.mux && !(mux & NG_RTCP_MUX_REJECT) &&
		(from_mux || bundle_accepts(plan, lt) ||
			mux & (NG_RTCP_MUX_ACCEPT | NG_RTCP_MUX_DEMUX));
	rtp = lt->said.remote;
	rtcp = lt->said.rtcp_remote;
	if (lt->said.mux && !to_mux && rtcp.port == rtp.port)
		rtcp.port = (uint16_t)(rtp.port + 1);
	neg_set_remote(lt, &rtp, &rtcp, to_mux);
	neg_ice_remotes(lf);
	neg_ice_remotes(lt);
	neg_add_events(lt->said.events, m);
	lf->quiet = lt->quiet = neg_quiet(m) & (lt->said.quiet | NEG_QUIET_ONLY);
	memcpy(lf->events, lt->said.events, sizeof(lf->events));
	memcpy(lt->events, lt->said.events, sizeof(lt->events));
	neg_into_force(lf, m->proto, m->dir, m);
	pm->proto = neg_answer_proto(plan, lt, m, i, in);
	neg_into_force(lt, pm->proto, lt->said.dir, m);
	neg_codec_answer(pm, lf, lt, m, in);
	lf->feedback = sdp_attr(m->lines, STR("rtcp-fb"));
	lt->feedback = lt->said.feedback;
	lf->used = lt->used = true;
	lf->started = lt->started = to->offer_open;
	pm->mux = to_mux;
}

/* Records what both legs support even for a rejected m-line: later offers without flags keep it. */
static void agree_on_rejected(struct leg *lf, struct leg *lt)
{
	if (!lf || !lt || lt->said.rejected || !sdp_proto_is_rtp(lt->said.proto) ||
		!sdp_proto_is_rtp(lf->asked.proto))
		return;
	lf->proto = lf->rtp_proto = lf->asked.proto;
	lt->proto = lt->rtp_proto = lt->said.proto;
}

static void answer_all_media(struct plan *plan, struct call *c, bool paired, struct neg_in *in)
{
	struct side *from = c->side[plan->from], *to = c->side[plan->to];
	const struct sdp *s = in->sdp;

	for (uint32_t i = 0; (i < to->legs || i < s->media_count) && !plan->error; i++) {
		const struct sdp_media *m = i < s->media_count ? &s->media[i] : NULL;
		struct leg *lf = side_leg_get(from, i), *lt = side_leg_get(to, i);
		bool open = m && m->port && lt && lf && !lt->said.rejected &&
			lt->said.proto != SDP_PROTO_OTHER;

		if (lt)
			lt->early = false;
		if (open && !raw_fits(plan, lt, m, i, in))
			return;
		if (open && lt->said.relayed) {
			if (sdp_proto_is_rtp(m->proto))
				answer_media(plan, c, paired, m, i, in);
			else
				raw_answer(plan, from, to, m, i, in);
			continue;
		}
		/* A refusal by the answerer may come from one branch: keep ports for the next one.
		 * The offerer's is final. */
		neg_close(lf, lt && (lt->said.rejected || !lt->said.relayed));
		neg_close(lt, lt && (lt->said.rejected || !lt->said.relayed));
		if (m && !m->port)
			agree_on_rejected(lf, lt);
		if (!m)
			continue;
		plan->media[i].keep = raw_passes(m);
		plan->media[i].omit = mline_from(to, i) || i >= to->legs;
		plan->media[i].reject = !open;
		plan->media[i].proto = lt && lt->said.relayed ? lt->said.proto : SDP_PROTO_OTHER;
		if (i >= to->legs)
			plan_warn(plan, in->p, plan_media_name(in->p, i, "was not offered"));
	}
}

/* Whether another terminal answers in place of the previous one, perhaps with the same private
 * address. */
static void restart_learning(struct side *s)
{
	for (uint32_t i = 0; i < s->legs; i++)
		if (s->leg[i])
			s->leg[i]->relearn = s->leg[i]->committed;
}

void negotiate_answer(struct plan *plan, struct call *c, struct neg_in *in)
{
	struct call *before = NULL;
	struct side *from, *to;
	struct dialog d;
	const char *error;
	bool paired, other;

	if (!plan_init(plan, in))
		return;
	error = dialog_answer(&d, c, in->r);
	if (error) {
		plan_fail(plan, error, str_from(d.why));
		return;
	}
	plan->from = d.from;
	plan->to = in->other = d.to;
	from = c->side[plan->from];
	to = c->side[plan->to];
	other = from->tag.len && !str_eq(from->tag, in->r->to_tag);
	if (!stay_request(plan, from, to, in, true))
		error = NGE_NOMEM;
	else
		error = mline_number(in, from, to, false);
	if (!error)
		error = mline_fill(plan, in, to);
	if (!error && !bundle_answered(plan, from, to, in))
		error = NGE_NOMEM;
	if (!error)
		error = osrtp_legacy_fits(to, in->sdp->media_count);
	if (!error && take_tag(from, in->r->to_tag))
		error = NGE_NOMEM;
	if (error) {
		plan_fail(plan, error, STR_NONE);
		return;
	}
	neg_flags(c, from, in);
	timeout_report_request(plan, c, in);
	neg_echo(plan, from, to, in, true);
	paired = to->peer == plan->from && from->peer == plan->to;
	if (d.waits && !(before = call_clone(in->keys, c))) {
		plan_fail(plan, NGE_NOMEM, STR_NONE);
		return;
	}
	dialog_answered(c, &d, in->r);
	answer_all_media(plan, c, paired, in);
	if (!plan->error)
		bundle_in_force(plan, from, to, in);
	if (other)
		restart_learning(from);
	if (before) { /* the offerer stays with the first side that answered */
		c->side[plan->to] = before->side[plan->to];
		before->side[plan->to] = to;
		call_free(in->keys, before);
		return;
	}
	to->offer_open = false;
	c->early = (c->early || !c->answered) && in->r->sip_code >= 100 && in->r->sip_code < 200;
	c->answered = true;
	subscribe_remember(from, in->sdp);
}
