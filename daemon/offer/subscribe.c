/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One-way media (ng's publish, subscribe request, subscribe answer, unsubscribe). A publisher only
 * sends, or gets its own media back (media-echo). A listener gets a copy of other sides' media.
 * Each has its own keys. Pure, except for the copy of the call. No transcoding. */
#include "offer/subscribe.h"
#include "call/gate.h"
#include "call/plan.h"
#include "call/said.h"
#include "call/timeout_report.h"
#include "offer/neg_flags.h"
#include "offer/neg_ice.h"
#include "offer/neg_keying.h"
#include "offer/sources.h"

/* --- Listeners and sources -------------------------------------------------------------------- */

/* --- Subscribe -------------------------------------------------------------------------------- */

/* Reuses the place of a former listener: their number is limited. */
static uint8_t listener_add(struct call *c, struct str tag)
{
	for (uint32_t i = 0; i < c->sides; i++) {
		struct side *s = c->side[i];

		if (!s->gone || !s->listener)
			continue;
		if (str_replace(&s->tag, tag))
			return SIDE_NONE;
		s->gone = s->has_local = false;
		s->out_version = s->out_hash = 0;
		for (uint32_t k = 0; k < s->legs; k++) /* m-lines of the previous listener */
			if (s->leg[k])
				s->leg[k]->hears = false;
		return (uint8_t)i;
	}
	return call_side_add(c, tag, STR_NONE);
}

/* A listener gets our keys, because its sources may be several. */
static void no_passthrough(struct plan *plan, const struct neg_in *in)
{
	if (ng_flag(in->r, NG_FLAG_PASSTHROUGH))
		plan_warn(plan, in->p,
			STR("'passthrough' applies only to offers: media are re-encrypted"));
}

static void listen_media(struct plan *plan, struct leg *l, struct leg *source,
	const struct sdp_media *m, uint32_t i, struct neg_in *in)
{
	struct plan_media *pm = &plan->media[i];
	enum sdp_proto p = sdp_proto_find(in->r->transport);
	const struct neg_offer_keys keys = {.from = source,
		.to = l,
		.ours_only = true,
		.opportunistic = in->r->osrtp & NG_OSRTP_OFFER};
	const char *instead;

	p = p == SDP_PROTO_OTHER ? m->proto : p;
	pm->proto = l->asked.proto = keying_profile(p, &in->host, &instead);
	if (instead && in->r->transport.len)
		plan_warn(plan, in->p, str_from(instead));
	pm->mux = l->asked.mux = in->r->rtcp_mux & (NG_RTCP_MUX_OFFER | NG_RTCP_MUX_REQUIRE);
	if (!neg_write_offer(plan, &keys, m, i, in))
		return;
	if (!neg_ice_offer(NULL, l, in)) {
		plan_fail(plan, NGE_NOMEM, plan_media_name(in->p, i, "no random bytes for ICE"));
		return;
	}
	if (ng_flag(in->r, NG_FLAG_INACTIVE))
		pm->direction = STR("inactive");
	l->used = true;
}

/* Finds or creates the listener's side. SIDE_NONE: the plan has an error. */
static uint8_t listener_get(struct plan *plan, struct call *c, const struct ng_request *r)
{
	uint8_t at = call_side_by_tag(c, r->to_tag);

	if (at == SIDE_NONE) {
		at = listener_add(c, r->to_tag);
		if (at == SIDE_NONE)
			plan_fail(plan, NGE_PARTIES, STR_NONE);
	} else if (!c->side[at]->listener) {
		plan_fail(plan, NGE_DIALOG, STR("to-tag is a party's"));
		at = SIDE_NONE;
	}
	return at;
}

static void listen_slot(struct plan *plan, struct call *c, struct side *s, const struct slot *slot,
	uint32_t i, struct neg_in *in)
{
	struct leg *source;
	struct leg *l;

	if (!slot->open) {
		plan->media[i].reject = true;
		plan->media[i].proto = in->sdp->media[i].proto;
		neg_close(side_leg_get(s, i), true);
		return;
	}
	l = side_leg(in->keys, s, i);
	if (!l) {
		plan_fail(plan, NGE_NOMEM, STR_NONE);
		return;
	}
	source = c->side[slot->side]->leg[slot->media];
	if (l->hears_side != slot->side || l->hears_media != slot->media)
		l->active = false;
	l->hears = true;
	l->hears_side = slot->side;
	l->hears_media = slot->media;
	memcpy(l->kind, source->kind, sizeof(l->kind));
	listen_media(plan, l, source, &in->sdp->media[i], i, in);
}

void negotiate_subscribe(struct plan *plan, struct call *c, struct neg_in *in)
{
	const struct ng_request *r = in->r;
	struct slots *slots = pool_alloc(in->p, sizeof(*slots));
	uint32_t first = 0;
	struct side *s;

	if (!plan_init(plan, in))
		return;
	no_passthrough(plan, in);
	if (!slots || !sources_find(slots, in->p, c, r) || slots->n != in->sdp->media_count) {
		plan_fail(plan, NGE_PARTICIPANT, STR_NONE);
		return;
	}
	plan->to = listener_get(plan, c, r);
	if (plan->error)
		return;
	while (!slots->slot[first].open)
		first++;
	plan->from = slots->slot[first].side;
	s = c->side[plan->to];
	if (!s->has_local)
		s->local = neg_local(plan, in, r->direction[r->direction[1].len ? 1 : 0],
			r->address_family ? r->address_family
					  : in->locals[c->side[plan->from]->local].addr.family);
	s->has_local = s->listener = s->offer_open = true;
	s->rtcp_back = ng_flag(r, NG_FLAG_RTCP_MIRROR);
	s->pierce |= ng_flag(r, NG_FLAG_PIERCE_NAT);
	s->peer = SIDE_NONE;
	if (r->set_label.len)
		(void)str_replace(&s->label, r->set_label);
	for (uint32_t i = slots->n; i < s->legs; i++)
		neg_close(s->leg[i], true);
	for (uint32_t i = 0; i < slots->n && !plan->error; i++)
		listen_slot(plan, c, s, &slots->slot[i], i, in);
}

void negotiate_subscribe_answer(struct plan *plan, struct call *c, struct neg_in *in)
{
	struct side *s;

	if (!plan_init(plan, in))
		return;
	plan->from = plan->to = call_side_by_tag(c, in->r->to_tag);
	if (plan->from == SIDE_NONE || !c->side[plan->from]->listener) {
		plan_fail(plan, NGE_DIALOG, STR("to-tag is of no subscription"));
		return;
	}
	s = c->side[plan->from];
	for (uint32_t i = 0; i < s->legs && !plan->error; i++) {
		const struct sdp_media *m = i < in->sdp->media_count ? &in->sdp->media[i] : NULL;
		struct leg *l = s->leg[i];

		bool other = m && l && l->used && m->port && neg_other_kind(l, m);

		if (other)
			neg_warn_kind(plan, in->p, l, m, i);
		if (!m || !l || !l->used || !m->port || !sdp_proto_is_rtp(m->proto) || other) {
			neg_close(l, true);
			continue;
		}
		struct keying_answer keys = {.media = m};

		neg_read_answer(plan, &keys, l, NULL, i, in);
		neg_ice_answered(l, i, in);
		neg_remotes(l, m, l->asked.mux && m->rtcp_mux, in);
		neg_ice_remotes(l);
		neg_into_force(l, m->proto, m->dir, m);
		l->started = s->offer_open;
	}
	s->asymmetric = ng_flag(in->r, NG_FLAG_ASYMMETRIC);
	s->offer_open = false;
}

/* --- Publish ---------------------------------------------------------------------------------- */

void negotiate_publish(struct plan *plan, struct call *c, struct neg_in *in)
{
	const struct ng_request *r = in->r;
	struct side *s;

	if (!plan_init(plan, in))
		return;
	no_passthrough(plan, in);
	plan->from = call_side_by_tag(c, r->from_tag);
	if (plan->from == SIDE_NONE)
		plan->from = call_side_add(c, r->from_tag, STR_NONE);
	else if (!c->side[plan->from]->publisher) {
		plan_fail(plan, NGE_DIALOG, STR("from-tag is a party's"));
		return;
	}
	if (plan->from == SIDE_NONE) {
		plan_fail(plan, NGE_PARTIES, STR_NONE);
		return;
	}
	plan->to = plan->from;
	s = c->side[plan->from];
	if (!s->has_local)
		s->local = neg_local(plan, in, r->direction[0],
			r->address_family ? r->address_family : neg_family(in->sdp));
	s->has_local = s->publisher = c->answered = true;
	s->pierce |= ng_flag(r, NG_FLAG_PIERCE_NAT);
	s->peer = SIDE_NONE;
	s->asymmetric = ng_flag(r, NG_FLAG_ASYMMETRIC);
	s->media_handover = ng_flag(r, NG_FLAG_MEDIA_HANDOVER);
	s->echo = r->echo & NG_ECHO_BACKWARDS;
	if (r->set_label.len || r->label.len)
		(void)str_replace(&s->label, r->set_label.len ? r->set_label : r->label);
	if (r->metadata.len)
		(void)str_replace(&c->metadata, r->metadata);
	timeout_report_request(plan, c, in);
	for (uint32_t i = in->sdp->media_count; i < s->legs; i++)
		neg_close(s->leg[i], true);
	for (uint32_t i = 0; i < in->sdp->media_count && !plan->error; i++) {
		const struct sdp_media *m = &in->sdp->media[i];
		struct plan_media *pm = &plan->media[i];
		struct leg *l = side_leg(in->keys, s, i);
		struct keying_answer keys = {.media = m};

		if (!l) {
			plan_fail(plan, NGE_NOMEM, STR_NONE);
			return;
		}
		pm->reject =
			!m->port || !sdp_proto_is_rtp(m->proto) || neg_too_many(plan, s, i, m, in);
		l->said.relayed = sdp_proto_is_rtp(m->proto);
		l->said.rejected = pm->reject;
		if (pm->reject) {
			neg_close(l, true);
			continue;
		}
		neg_said(l, m, in);
		neg_ice_said(l, i, in);
		if (!neg_read_offer(plan, l, m, i, in))
			return;
		if (!sdp_proto_is_secure(m->proto) && !(r->osrtp & NG_OSRTP_ACCEPT))
			/* opportunistic (RFC 8643), and not accepted */
			keying_drop_offered(&l->keying);
		neg_write_answer(plan, &keys, l, i, in);
		pm->proto = m->proto;
		pm->mux = m->rtcp_mux && !(r->rtcp_mux & NG_RTCP_MUX_REJECT);
		pm->direction = STR("recvonly");
		if (s->echo)
			neg_mirror(pm, m, in);
		if (!neg_ice_answer(l, in)) {
			plan_fail(plan, NGE_NOMEM,
				plan_media_name(in->p, i, "no random bytes for ICE"));
			return;
		}
		neg_remotes(l, m, pm->mux, in);
		neg_ice_remotes(l);
		neg_into_force(l, m->proto, m->dir, m);
		memset(l->events, 0, sizeof(l->events));
		neg_add_events(l->events, m);
		l->quiet = neg_quiet(m);
		l->used = l->started = true;
	}
	subscribe_remember(s, in->sdp);
}

/* --- Replies ---------------------------------------------------------------------------------- */

static const char *mode_of(const struct leg *source)
{
	static const char *const name[] = {[SDP_DIR_SENDRECV] = "sendrecv",
		[SDP_DIR_SENDONLY] = "sendonly",
		[SDP_DIR_RECVONLY] = "recvonly",
		[SDP_DIR_INACTIVE] = "inactive"};

	return name[source->active ? source->dir : source->said.dir];
}

/* Adds an m-line's properties, except its label. */
static void reply_media(
	struct pool *p, const struct call *c, const struct leg *l, struct ngval *dict)
{
	const struct side *source = c->side[l->hears_side];

	ngval_add_int(p, dict, STR("index"), l->hears_media + 1);
	ngval_add_str(p, dict, STR("type"), pool_strdup(p, str_from(l->kind)));
	ngval_add_str(p, dict, STR("mode"), str_from(mode_of(source->leg[l->hears_media])));
}

/* Adds the open m-lines of one source. */
static void reply_source(struct pool *p, const struct call *c, const struct side *s, uint8_t at,
	struct ngval *tags, struct ngval *labels)
{
	const struct side *source = c->side[at];
	struct str tag = pool_strdup(p, source->tag), name = pool_strdup(p, source->label);
	struct ngval *d = ngval_add_dict(p, tags, STR_NONE), *list, *m;

	ngval_add_str(p, d, STR("tag"), tag);
	if (name.len)
		ngval_add_str(p, d, STR("label"), name);
	list = ngval_add_list(p, d, STR("medias"));
	for (uint32_t i = 0; i < s->legs; i++) {
		const struct leg *l = s->leg[i];
		struct str label;

		if (!l || !l->used || l->hears_side != at)
			continue;
		label = sources_label(p, at, l->hears_media);
		m = ngval_add_dict(p, list, STR_NONE);
		ngval_add_str(p, m, STR("label"), label);
		reply_media(p, c, l, m);
		m = ngval_add_dict(p, labels, label);
		ngval_add_str(p, m, STR("tag"), tag);
		if (name.len)
			ngval_add_str(p, m, STR("label"), name);
		reply_media(p, c, l, m);
	}
}

void subscribe_reply(struct pool *p, const struct call *c, const struct ng_request *r,
	uint8_t listener, struct ngval *dict)
{
	struct ngval *from = ngval_add_list(p, dict, STR("from-tags")),
		     *tags = ngval_add_list(p, dict, STR("tag-medias")),
		     *labels = ngval_add_dict(p, dict, STR("media-labels"));
	const struct side *s = c->side[listener];
	uint8_t side[CALL_MAX_SIDES];
	uint32_t n = sources_wanted(side, c, r), heard = 0;

	ngval_add_str(p, dict, STR("to-tag"), pool_strdup(p, s->tag));
	for (uint32_t k = 0; k < n; k++) {
		struct str tag = pool_strdup(p, c->side[side[k]]->tag);
		bool open = false;

		for (uint32_t i = 0; i < s->legs && !open; i++)
			open = s->leg[i] && s->leg[i]->used && s->leg[i]->hears_side == side[k];
		if (!open)
			continue;
		if (!heard++)
			ngval_add_str(p, dict, STR("from-tag"), tag);
		ngval_add_str(p, from, STR_NONE, tag);
		reply_source(p, c, s, side[k], tags, labels);
	}
}
