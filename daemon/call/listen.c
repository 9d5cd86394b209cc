/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One-way media (ng's publish, subscribe request, subscribe answer, unsubscribe): a publisher only sends, a listener gets a copy of
 * what others send, each under keys of its own. Pure but for the copy of the call. What a listener is offered is what its sources
 * said of their media last; nothing is transcoded. */
#include "call/negotiate.h"

#define BODY_MAX 16384u /* of what is kept of a source's SDP */

/* --- What sources say ------------------------------------------------------------------------------------------- */

/* What describes media, and nothing of who sends them from where, and how they are protected. */
static bool describes(const struct sdp_line *l)
{
	static const char *const names[] = {"rtpmap", "fmtp", "ptime", "maxptime", "rtcp-fb",
		"extmap", "framerate", "framesize", "imageattr", "label", "content", "lang"};

	if (l->type == 'b')
		return true;
	for (size_t i = 0; l->type == 'a' && i < ARRAY_LEN(names); i++)
		if (str_eq_nocase(l->name, str_from(names[i])))
			return true;
	return false;
}

static void put_media(struct sbuf *b, const struct sdp_media *m, bool offer)
{
	sbuf_printf(b, "m=" STR_FMT " %u " STR_FMT " " STR_FMT "\r\n", STR_ARG(m->kind),
		(unsigned)m->port, STR_ARG(m->proto_text), STR_ARG(str_trim(m->formats)));
	for (const struct sdp_line *l = m->lines; l; l = l->next)
		if (describes(l))
			sbuf_printf(b, STR_FMT "\r\n", STR_ARG(l->text));
	if (offer)
		sbuf_str(b, STR("a=sendonly\r\n"));
}

static void put_head(struct sbuf *b)
{
	sbuf_str(b, STR("v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=-\r\nc=IN IP4 0.0.0.0\r\nt=0 0\r\n"));
}

void listen_remember(struct side *s, const struct sdp *sdp)
{
	struct sbuf b;

	sbuf_init(&b, BODY_MAX);
	put_head(&b);
	for (uint32_t i = 0; i < sdp->media_count; i++)
		put_media(&b, &sdp->media[i], false);
	(void)str_replace(&s->sdp, b.err ? STR_NONE : sbuf_view(&b));
	sbuf_fini(&b);
}

/* --- Who hears whom --------------------------------------------------------------------------------------------- */

uint32_t listener_stream(
	const struct call *c, uint32_t source, uint32_t media, const struct leg *after, bool rtcp)
{
	bool behind = !after;

	for (uint32_t s = 0; s < c->sides; s++)
		for (uint32_t i = 0; c->side[s]->listener && i < c->side[s]->legs; i++) {
			const struct leg *l = c->side[s]->leg[i];

			if (l && l == after)
				behind = true;
			else if (behind && l && l->hears && l->active && l->has_port &&
				l->hears_side == source && l->hears_media == media &&
				(l->dir == SDP_DIR_RECVONLY || l->dir == SDP_DIR_SENDRECV))
				return 1 +
					(rtcp && !l->mux ? l->port.rtcp_stream
							 : l->port.rtp_stream);
		}
	return 0;
}

static bool wanted(const struct side *s, const struct ng_request *r)
{
	if (s->gone || s->listener || !s->sdp.len)
		return false;
	if (ng_flag(r, NG_FLAG_ALL))
		return true;
	for (uint32_t i = 0; i < r->from_tags_n; i++)
		if (side_has_tag(s, r->from_tags[i]))
			return true;
	return side_has_tag(s, r->from_tag);
}

struct heard { /* m-lines of a listener, in order */
	uint8_t side, media;
};

/* All that a request means; also their description. Returns how many, 0 if the body did not fit. */
static uint32_t sources(struct heard out[SDP_MAX_MEDIA], struct sbuf *b, struct pool *p,
	const struct call *c, const struct ng_request *r)
{
	struct sdp *sdp = pool_alloc(p, sizeof(*sdp));
	uint32_t n = 0;

	for (uint32_t s = 0; sdp && s < c->sides; s++) {
		if (!wanted(c->side[s], r) || sdp_parse(sdp, p, c->side[s]->sdp, NULL) != SDP_OK)
			continue;
		for (uint32_t i = 0; i < sdp->media_count && n < SDP_MAX_MEDIA; i++) {
			const struct leg *l = side_leg_get(c->side[s], i);

			if (!l || !l->used || !sdp->media[i].port ||
				sdp->media[i].proto == SDP_PROTO_OTHER)
				continue;
			put_media(b, &sdp->media[i], true);
			out[n++] = (struct heard){(uint8_t)s, (uint8_t)i};
		}
	}
	return b->err ? 0 : n;
}

struct str listen_body(
	struct pool *p, const struct call *c, const struct ng_request *r, const char **error)
{
	struct heard heard[SDP_MAX_MEDIA];
	struct str out = STR_NONE;
	struct sbuf b;

	sbuf_init(&b, SDP_MAX_LEN);
	put_head(&b);
	*error = "No matching participant in the call";
	if (sources(heard, &b, p, c, r))
		out = pool_strdup(p, sbuf_view(&b));
	sbuf_fini(&b);
	return out;
}

/* --- Subscribe -------------------------------------------------------------------------------------------------- */

/* A listener that left leaves its place: a call has only so many. */
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
		return (uint8_t)i;
	}
	return call_side_add(c, tag, STR_NONE);
}

/* A listener's keys are ours: what it hears may come from several. */
static void no_passthrough(struct plan *plan, const struct neg_in *in)
{
	if (ng_flag(in->r, NG_FLAG_PASSTHROUGH))
		plan_warn(plan, in->p, STR("passthrough is for offers: media are re-encrypted"));
}

static void listen_media(struct plan *plan, struct leg *l, const struct leg *source,
	const struct sdp_media *m, uint32_t i, struct neg_in *in)
{
	struct plan_media *pm = &plan->media[i];
	enum sdp_proto p = sdp_proto_find(in->r->transport);
	bool off = in->r->sdes.flags & NG_SDES_OFF, secure;

	p = p == SDP_PROTO_OTHER ? m->proto : p;
	secure = sdp_proto_is_secure(p);
	pm->proto = l->asked.proto = sdp_proto_make(secure, sdp_proto_is_feedback(p));
	pm->mux = l->asked.mux = in->r->rtcp_mux & (NG_RTCP_MUX_OFFER | NG_RTCP_MUX_REQUIRE);
	l->asked.suites = 0;
	if ((secure || in->r->osrtp & NG_OSRTP_OFFER) && !off)
		crypto_offer(l, &source->said, in);
	if (secure && !l->asked.suites) {
		plan_fail(plan, "No common crypto suite",
			plan_media_name(in->p, i, off ? "SDES is off" : ""));
		return;
	}
	plan_lines(pm, l);
	if (ng_flag(in->r, NG_FLAG_INACTIVE))
		pm->direction = STR("inactive");
	l->used = true;
}

void negotiate_listen(struct plan *plan, struct call *c, struct neg_in *in)
{
	struct heard heard[SDP_MAX_MEDIA];
	const struct side *first;
	struct sbuf b;
	struct side *s;
	uint32_t n;

	if (!plan_init(plan, in))
		return;
	no_passthrough(plan, in);
	sbuf_init(&b, SDP_MAX_LEN);
	n = sources(heard, &b, in->p, c, in->r);
	sbuf_fini(&b);
	if (!n || n != in->sdp->media_count) {
		plan_fail(plan, "No matching participant in the call", STR_NONE);
		return;
	}
	plan->to = call_side_by_tag(c, in->r->to_tag);
	if (plan->to == SIDE_NONE)
		plan->to = listener_add(c, in->r->to_tag);
	else if (!c->side[plan->to]->listener) {
		plan_fail(plan, "Invalid dialogue association", STR("to-tag is a party's"));
		return;
	}
	if (plan->to == SIDE_NONE) {
		plan_fail(plan, "Too many parties", STR_NONE);
		return;
	}
	s = c->side[plan->to];
	first = c->side[heard[0].side];
	plan->from = heard[0].side;
	if (!s->has_local)
		s->local = neg_local(plan, in,
			in->r->direction[1].len ? in->r->direction[1] : in->r->direction[0],
			in->r->address_family ? in->r->address_family
					      : in->locals[first->local].addr.family);
	s->has_local = s->listener = s->offer_open = true;
	s->rtcp_back = ng_flag(in->r, NG_FLAG_RTCP_MIRROR);
	s->pierce |= ng_flag(in->r, NG_FLAG_PIERCE_NAT);
	s->peer = SIDE_NONE;
	if (in->r->label.len)
		(void)str_replace(&s->label, in->r->label);
	for (uint32_t i = n; i < s->legs; i++)
		neg_close(s->leg[i], true);
	for (uint32_t i = 0; i < n && !plan->error; i++) {
		const struct leg *source = c->side[heard[i].side]->leg[heard[i].media];
		struct leg *l = side_leg(in->keys, s, i);

		if (!l) {
			plan_fail(plan, "Out of memory", STR_NONE);
			return;
		}
		if (l->hears_side != heard[i].side || l->hears_media != heard[i].media)
			l->active = false;
		l->hears = true;
		l->hears_side = heard[i].side;
		l->hears_media = heard[i].media;
		memcpy(l->kind, source->kind, sizeof(l->kind));
		listen_media(plan, l, source, &in->sdp->media[i], i, in);
	}
}

void negotiate_listen_answer(struct plan *plan, struct call *c, struct neg_in *in)
{
	struct side *s;

	if (!plan_init(plan, in))
		return;
	plan->from = plan->to = call_side_by_tag(c, in->r->to_tag);
	if (plan->from == SIDE_NONE || !c->side[plan->from]->listener) {
		plan_fail(
			plan, "Invalid dialogue association", STR("to-tag is of no subscription"));
		return;
	}
	s = c->side[plan->from];
	for (uint32_t i = 0; i < s->legs && !plan->error; i++) {
		const struct sdp_media *m = i < in->sdp->media_count ? &in->sdp->media[i] : NULL;
		struct leg *l = s->leg[i];

		if (!m || !l || !l->used || !m->port || m->proto == SDP_PROTO_OTHER) {
			neg_close(l, true);
			continue;
		}
		neg_answerer_crypto(plan, l, m, i, in);
		neg_remotes(l, m, l->asked.mux && m->rtcp_mux, in);
		neg_into_force(l, m->proto, m->dir, m);
		l->started = s->offer_open;
	}
	s->asymmetric = ng_flag(in->r, NG_FLAG_ASYMMETRIC);
	s->offer_open = false;
}

/* --- Publish ---------------------------------------------------------------------------------------------------- */

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
		plan_fail(plan, "Invalid dialogue association", STR("from-tag is a party's"));
		return;
	}
	if (plan->from == SIDE_NONE) {
		plan_fail(plan, "Too many parties", STR_NONE);
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
	if (r->label.len)
		(void)str_replace(&s->label, r->label);
	if (r->metadata.len)
		(void)str_replace(&c->metadata, r->metadata);
	told_request(plan, c, in);
	for (uint32_t i = in->sdp->media_count; i < s->legs; i++)
		neg_close(s->leg[i], true);
	for (uint32_t i = 0; i < in->sdp->media_count && !plan->error; i++) {
		const struct sdp_media *m = &in->sdp->media[i];
		struct plan_media *pm = &plan->media[i];
		struct leg *l = side_leg(in->keys, s, i);

		if (!l) {
			plan_fail(plan, "Out of memory", STR_NONE);
			return;
		}
		pm->reject =
			!m->port || m->proto == SDP_PROTO_OTHER || neg_too_many(plan, s, i, m, in);
		l->said.relayed = m->proto != SDP_PROTO_OTHER;
		l->said.rejected = pm->reject;
		if (pm->reject) {
			neg_close(l, true);
			continue;
		}
		neg_said(l, m, in);
		if (!neg_offered_crypto(plan, l, m, i, in))
			return;
		neg_offerer_crypto(plan, l, SUITE_PLAIN, i, in);
		pm->proto = m->proto;
		pm->mux = m->rtcp_mux && !(r->rtcp_mux & NG_RTCP_MUX_REJECT);
		pm->direction = STR("recvonly");
		neg_remotes(l, m, pm->mux, in);
		neg_into_force(l, m->proto, m->dir, m);
		memset(l->events, 0, sizeof(l->events));
		neg_add_events(l->events, m);
		l->quiet = neg_quiet(m);
		l->used = l->started = true;
	}
	listen_remember(s, in->sdp);
}

/* --- Replies ---------------------------------------------------------------------------------------------------- */

static void reply_source(struct pool *p, const struct side *l, const struct side *source,
	uint8_t at, struct ngval *tags)
{
	struct ngval *d = ngval_add_dict(p, tags, STR_NONE), *list, *m;

	ngval_add_str(p, d, STR("tag"), pool_strdup(p, source->tag));
	if (source->label.len)
		ngval_add_str(p, d, STR("label"), pool_strdup(p, source->label));
	list = ngval_add_list(p, d, STR("medias"));
	for (uint32_t i = 0; i < l->legs; i++) {
		if (!l->leg[i] || !l->leg[i]->used || l->leg[i]->hears_side != at)
			continue;
		m = ngval_add_dict(p, list, STR_NONE);
		ngval_add_int(p, m, STR("index"), i + 1);
		ngval_add_str(p, m, STR("type"), pool_strdup(p, str_from(l->leg[i]->kind)));
		ngval_add_str(p, m, STR("label"), pool_printf(p, "%u", (unsigned)i));
		ngval_add_str(p, m, STR("mode"), STR("sendonly"));
	}
}

void listen_reply(struct pool *p, const struct call *c, uint8_t listener, struct ngval *dict)
{
	struct ngval *from = ngval_add_list(p, dict, STR("from-tags")),
		     *tags = ngval_add_list(p, dict, STR("tag-medias")),
		     *labels = ngval_add_dict(p, dict, STR("media-labels"));
	const struct side *s = c->side[listener];
	uint32_t seen = 0;

	ngval_add_str(p, dict, STR("to-tag"), pool_strdup(p, s->tag));
	for (uint32_t i = 0; i < s->legs; i++) {
		const struct leg *l = s->leg[i];
		const struct side *source;
		struct ngval *label;

		if (!l || !l->used)
			continue;
		source = c->side[l->hears_side];
		label = ngval_add_dict(p, labels, pool_printf(p, "%u", (unsigned)i));
		ngval_add_str(p, label, STR("tag"), pool_strdup(p, source->tag));
		ngval_add_int(p, label, STR("index"), l->hears_media + 1);
		if (seen >> l->hears_side & 1)
			continue;
		if (!seen)
			ngval_add_str(p, dict, STR("from-tag"), pool_strdup(p, source->tag));
		seen |= 1u << l->hears_side;
		ngval_add_str(p, from, STR_NONE, pool_strdup(p, source->tag));
		reply_source(p, s, source, l->hears_side, tags);
	}
}
