/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Offer and answer (RFC 3264): who speaks to whom, what waits for an answer, what comes into force. Pure. An offer changes
 * nothing that is in force: a re-INVITE may be refused, and media go on until then. Answers put both sides into force. */
#include "call/dialog.h"

#include <sys/socket.h>

void plan_warn(struct plan *plan, struct pool *p, struct str text)
{
	if (!text.len)
		return;
	plan->warning = plan->warning.len
		? pool_printf(p, STR_FMT "; " STR_FMT, STR_ARG(plan->warning), STR_ARG(text))
		: text;
}

void plan_note(struct plan *plan, struct pool *p, struct str text)
{
	plan->notice = plan->notice.len
		? pool_printf(p, STR_FMT "; " STR_FMT, STR_ARG(plan->notice), STR_ARG(text))
		: text;
	plan_warn(plan, p, text);
}

void plan_fail(struct plan *plan, const char *reason, struct str detail)
{
	plan->error = reason;
	plan->detail = detail;
}

struct str plan_media_name(struct pool *p, uint32_t i, const char *what)
{
	return pool_printf(p, "media %u%s%s", (unsigned)i + 1, *what ? ": " : "", what);
}

/* --- Sides ------------------------------------------------------------------------------------------------------ */

bool relay_local_has_name(const struct relay_local *l, struct str name)
{
	struct str rest = str_from(l->alias);

	if (str_eq(str_from(l->name), name))
		return true;
	for (struct str one = str_word(&rest); one.len; one = str_word(&rest))
		if (str_eq(one, name))
			return true;
	return false;
}

/* The local address a side is spoken to from: of the interface that was named, of the right family. */
uint8_t neg_local(struct plan *plan, const struct neg_in *in, struct str name, int family)
{
	struct str want = name.len ? name : str_from(in->locals_n ? in->locals[0].name : "");
	bool known = false;
	int legacy = str_eq(name, STR("internal")) ? AF_INET
		: str_eq(name, STR("external"))    ? AF_INET6
						   : 0;

	for (uint32_t i = 0; i < in->locals_n; i++) {
		bool same = relay_local_has_name(&in->locals[i], want);

		known |= same;
		if (same && (!family || in->locals[i].addr.family == family))
			return (uint8_t)i;
	}
	/* Of times when they chose between IPv4 and IPv6. */
	if (!known && legacy)
		return neg_local(plan, in, STR_NONE, legacy);
	if (!known && name.len)
		plan_warn(plan, in->p, pool_printf(in->p, "no interface " STR_FMT, STR_ARG(name)));
	for (uint32_t i = 0; i < in->locals_n && !(known && name.len); i++)
		if (in->locals[i].addr.family == family)
			return (uint8_t)i;
	for (uint32_t i = 0; i < in->locals_n; i++)
		if (relay_local_has_name(&in->locals[i], want))
			return (uint8_t)i;
	return 0;
}

int neg_family(const struct sdp *s)
{
	for (uint32_t i = 0; i < s->media_count; i++)
		if (s->media[i].conn.addr.family)
			return s->media[i].conn.addr.family;
	return s->conn.addr.family ? s->conn.addr.family : s->origin_addr.family;
}

/* A party that rang before and did not get the call knows keys that the next must not be told. */
static void forget_keys(struct side *s)
{
	for (uint32_t i = 0; i < s->legs; i++) {
		struct leg *l = s->leg[i];

		if (!l)
			continue;
		explicit_bzero(l->ours, sizeof(l->ours));
		l->ours_n = 0;
	}
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
		from->peer = plan->to; /* forks: the first until somebody answers */
	if ((!from->source.family || from->peer == plan->to) &&
		endpoint_parse_addr(&source, r->received_from) == 0)
		from->source = source;
	if (from->peer != plan->to) /* it switches to a side whose answer counts (dialog.h) */
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

/* A second answer with another tag: the earlier tag goes on naming the same side. */
static int take_tag(struct side *s, struct str tag)
{
	uint32_t i = 0;

	if (str_eq(s->tag, tag))
		return 0;
	while (i < s->aliases && !str_eq(s->alias[i], tag))
		i++;
	if (s->tag.len && i == s->aliases) {
		if (s->aliases == CALL_MAX_ALIASES)
			i = 0; /* the oldest is forgotten */
		else
			s->aliases++;
	}
	if (s->tag.len && str_replace(&s->alias[i], s->tag))
		return -1;
	return str_replace(&s->tag, tag);
}

/* --- What an SDP says about a media ----------------------------------------------------------------------------- */

struct endpoint neg_trusted(const struct ng_request *r, const struct endpoint *signalled)
{
	struct endpoint e;

	if (!ng_flag(r, NG_FLAG_SIP_SOURCE_ADDRESS) || !r->received_from.len ||
		endpoint_is_unspecified(signalled) || endpoint_parse_addr(&e, r->received_from))
		return *signalled;
	return e;
}

static void remotes(const struct neg_in *in, const struct sdp_media *m, bool mux,
	struct endpoint *rtp, struct endpoint *rtcp)
{
	struct endpoint addr = neg_trusted(in->r, &m->conn.addr);

	*rtp = addr;
	rtp->port = m->port;
	*rtcp = *rtp;
	if (mux)
		return;
	if (m->has_rtcp && m->rtcp.family)
		*rtcp = neg_trusted(in->r, &m->rtcp);
	rtcp->port = m->has_rtcp ? m->rtcp.port : (uint16_t)(m->port + 1);
}

static void keep_text(char *to, size_t size, struct str text)
{
	memset(to, 0, size);
	if (text.len)
		memcpy(to, text.s, text.len < size ? text.len : size - 1);
}

static void set_kind(struct leg *l, const struct sdp_media *m)
{
	keep_text(l->kind, sizeof(l->kind), m->kind);
}

/* Old-style hold names no address: what was known stays. */
static void set_remote(
	struct leg *l, const struct endpoint *rtp, const struct endpoint *rtcp, bool mux)
{
	l->mux = mux;
	if (endpoint_is_unspecified(rtp))
		return;
	l->remote = *rtp;
	l->rtcp_remote = mux || endpoint_is_unspecified(rtcp) ? *rtp : *rtcp;
	if (!mux && endpoint_is_unspecified(rtcp))
		l->rtcp_remote.port = (uint16_t)(rtp->port + 1);
}

static bool opportunistic(const struct ng_request *r, uint32_t flag)
{
	return r->osrtp & flag;
}

void neg_said_at(struct leg_said *said, const struct sdp_media *m, const struct neg_in *in)
{
	said->proto = m->proto;
	said->dir = m->dir;
	said->mux = m->rtcp_mux;
	said->feedback = sdp_attr(m->lines, STR("rtcp-fb"));
	remotes(in, m, false, &said->remote, &said->rtcp_remote);
}

void neg_said(struct leg *l, const struct sdp_media *m, const struct neg_in *in)
{
	neg_said_at(&l->said, m, in);
}

void neg_remotes(struct leg *l, const struct sdp_media *m, bool mux, const struct neg_in *in)
{
	struct endpoint rtp, rtcp;

	remotes(in, m, mux, &rtp, &rtcp);
	set_remote(l, &rtp, &rtcp, mux);
}

/* --- Offer ------------------------------------------------------------------------------------------------------ */

/* The profile towards the other side. */
static enum sdp_proto outward(struct plan *plan, const struct leg *model, const struct sdp_media *m,
	const struct neg_in *in)
{
	enum sdp_proto p = sdp_proto_find(in->r->transport);

	if (p == SDP_PROTO_OTHER)
		p = model && leg_profile(model) != SDP_PROTO_OTHER ? leg_profile(model) : m->proto;
	else if (p == SDP_UDP_TLS_RTP_SAVP || p == SDP_UDP_TLS_RTP_SAVPF)
		plan_warn(plan, in->p, STR("DTLS-SRTP is not there yet: offering SDES instead"));
	return sdp_proto_make(sdp_proto_is_secure(p), sdp_proto_is_feedback(p));
}

static struct str refused_line(struct pool *p, uint32_t media, const struct crypto_refused *r)
{
	if (!r->line)
		return plan_media_name(p, media, "");
	return pool_printf(
		p, "media %u: crypto line %u: %s", (unsigned)media + 1, (unsigned)r->line, r->why);
}

/* The suites that whoever said this may speak, by the script's minimum. */
static uint32_t required(const struct ng_request *r)
{
	return r->sdes.require_given ? r->sdes.require : UINT32_MAX;
}

/* The crypto lines of an offer; false with plan->error when nobody could answer it. */
bool neg_offered_crypto(
	struct plan *plan, struct leg *l, const struct sdp_media *m, uint32_t i, struct neg_in *in)
{
	const struct sdes_policy *policy = &in->policy->sdes;
	struct crypto_rules rules = {
		.suites = (policy->accept | crypto_in_force(l)) & required(in->r),
		.params = policy->params | crypto_params_in_force(l),
		.in = in};
	bool secure = sdp_proto_is_secure(m->proto);
	struct crypto_refused refused = {0};

	l->said.lines = 0;
	explicit_bzero(&l->said.bag, sizeof(l->said.bag));
	if (secure || !opportunistic(in->r, NG_OSRTP_OFF))
		l->said.lines = crypto_lines(l->said.line, &l->said.bag, m, &rules, &refused);
	if (l->said.lines || (!secure && !in->r->sdes.require_given))
		return true;
	if (!secure)
		plan_fail(plan, "No common crypto suite",
			plan_media_name(in->p, i, "RTP, and SDES=require wants SRTP"));
	else if (!sdp_attr(m->lines, STR("crypto")) && m->dtls)
		plan_fail(plan, "DTLS-SRTP is not supported",
			plan_media_name(in->p, i, "no crypto line"));
	else
		plan_fail(plan, "No common crypto suite", refused_line(in->p, i, &refused));
	return false;
}

void plan_lines(struct plan_media *pm, struct leg *l)
{
	for (uint32_t i = 0; i < l->asked.suites; i++)
		pm->line[pm->lines++] = crypto_ours(l, l->asked.suite[i])->s;
}

/* Whether RTP may go to the offerer before there is an answer. Its address is in force from now on then. With SRTP on a side nobody
 * could read it: the offerer's keys come into force, and the answerer's are told, with the answer. */
static void offer_early(struct leg *from, const struct sdp_media *m, const struct neg_in *in)
{
	bool hears = m->dir == SDP_DIR_SENDRECV || m->dir == SDP_DIR_RECVONLY;

	from->early = !from->active && hears && in->policy->early_media &&
		!ng_flag(in->r, NG_FLAG_NO_EARLY_MEDIA) && !from->said.lines &&
		!sdp_proto_is_secure(m->proto);
	if (from->early)
		neg_remotes(from, m, false, in);
}

/* An opportunistic offer goes on as such (RFC 8643), unless the script says what to speak. */
static bool handed_on(const struct leg *from, const struct sdp_media *m, const struct neg_in *in)
{
	return from->said.lines && !sdp_proto_is_secure(m->proto) && !in->r->transport.len;
}

/* paired: these two spoke to each other so far. */
static void offer_media(struct plan *plan, struct call *c, bool paired, const struct sdp_media *m,
	uint32_t i, struct neg_in *in)
{
	struct leg *from = c->side[plan->from]->leg[i], *to = c->side[plan->to]->leg[i];
	const struct leg *model = stay_model(c->side[plan->from], c->side[plan->to], to, m->proto);
	struct plan_media *pm = &plan->media[i];
	uint32_t mux = in->r->rtcp_mux;
	bool osrtp;

	neg_said(from, m, in);
	if (!neg_offered_crypto(plan, from, m, i, in))
		return;
	pm->proto = outward(plan, model, m, in);
	osrtp = opportunistic(in->r, NG_OSRTP_OFFER) || handed_on(from, m, in) ||
		stay_opportunistic(model, pm->proto, in);
	if (pm->both)
		pm->proto = sdp_proto_make(true, sdp_proto_is_feedback(pm->proto));
	to->asked.either = pm->both;
	pm->mux = !(mux & NG_RTCP_MUX_DEMUX) &&
		(m->rtcp_mux || (to->active && to->mux) ||
			mux & (NG_RTCP_MUX_OFFER | NG_RTCP_MUX_REQUIRE));
	to->asked.proto = pm->proto;
	to->asked.mux = pm->mux;
	to->asked.suites = 0;
	if ((pm->both || !pass_offer(plan, from, to, paired, m, i, in)) &&
		(sdp_proto_is_secure(pm->proto) || osrtp)) {
		bool off = in->r->sdes.flags & NG_SDES_OFF;

		if (!off)
			crypto_offer(to, &from->said, in);
		if (sdp_proto_is_secure(pm->proto) && !to->asked.suites) {
			plan_fail(plan, "No common crypto suite",
				plan_media_name(in->p, i, off ? "SDES is off" : ""));
			return;
		}
		plan_lines(pm, to);
	}
	offer_early(from, m, in);
	from->used = to->used = plan->offers = true;
}

/* An m-line in SRTP without a usable crypto line is rejected (RFC 4568 7.1.2), and the call goes on with the others. Where SRTP is in
 * force, or the script demands suites, the offer fails, so that nothing that is in force ends. */
static void reject_unusable(struct plan *plan, struct leg *from, const struct sdp_media *m,
	uint32_t i, struct neg_in *in)
{
	if (!plan->error || from->active || in->r->sdes.require_given || from->said.lines ||
		!sdp_proto_is_secure(m->proto))
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

bool plan_init(struct plan *plan, struct neg_in *in)
{
	*plan = (struct plan){.from = SIDE_NONE, .to = SIDE_NONE};
	plan->media = pool_alloc(in->p, SDP_MAX_MEDIA * sizeof(*plan->media)); /* see hide.c */
	neg_unsupported(plan, in);
	if (!plan->media)
		plan_fail(plan, "Out of memory", STR_NONE);
	else if (!in->locals_n)
		plan_fail(plan, "No interface", STR_NONE);
	return !plan->error;
}

/* Whether this m-line exceeds the policy's limit. m-lines that already have ports keep them. */
bool neg_too_many(struct plan *plan, const struct side *from, uint32_t media,
	const struct sdp_media *m, const struct neg_in *in)
{
	uint32_t most = in->policy->max_medias ? in->policy->max_medias : SDP_MAX_MEDIA, used = 0;

	if (!sdp_proto_is_relayed(m->proto) || !m->port || from->leg[media]->used)
		return false;
	for (uint32_t i = 0; i < from->legs; i++)
		used += from->leg[i] && from->leg[i]->used;
	if (used < most)
		return false;
	if (!plan->too_many)
		plan_warn(plan, in->p,
			plan_media_name(in->p, media, "rejected: more m-lines than max-medias"));
	plan->too_many = true;
	return true;
}

static bool loses_codecs(
	struct plan *plan, const struct sdp_media *m, uint32_t i, const struct neg_in *in)
{
	if (ng_flag(in->r, NG_FLAG_ALLOW_NO_CODEC_MEDIA) || !sdp_filter_empties(&in->r->filter, m))
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
		plan_fail(plan, error, STR_NONE);
		return;
	}
	if (c->delete_ns &&
		dialog_is_new(c, in->r)) { /* what was deleted does not live on with it */
		dialog_end_sides(c, UINT32_MAX);
		c->answered = false;
	}
	plan->from = d.from;
	plan->to = d.to;
	if (offer_pair(plan, c, in)) {
		plan_fail(plan, "Too many parties", STR_NONE);
		return;
	}
	in->other = plan->to;
	from = c->side[plan->from];
	to = c->side[plan->to];
	if (from->listener || to->listener || from->publisher) {
		plan_fail(plan, "Invalid dialogue association", STR("it has one-way media"));
		return;
	}
	if (!stay_request(plan, from, to, in, false))
		error = "Out of memory";
	else
		error = hide_number(in, from, to, true);
	if (error) {
		plan_fail(plan, error, STR_NONE);
		return;
	}
	if (in->r->tos == NG_TOS_DEFAULT)
		c->tos = in->policy->tos;
	neg_flags(c, from, in);
	told_request(plan, c, in);
	neg_echo(plan, from, to, in, false);
	from->offer_open = true;
	to->mux_flags = in->r->rtcp_mux;
	from->osrtp = in->r->osrtp;
	for (uint32_t i = 0; i < from->legs; i++) /* m-lines that are gone count as closed */
		if (from->leg[i])
			from->leg[i]->said.rejected = true;
	for (uint32_t i = 0; i < in->sdp->media_count && !plan->error; i++) {
		const struct sdp_media *m = &in->sdp->media[i];
		bool fresh = !side_leg_get(to, i), unwanted = hide_wanted(in->r, m);
		struct leg *lf = side_leg(in->keys, from, i), *lt = side_leg(in->keys, to, i);

		if (!lf || !lt) {
			plan_fail(plan, "Out of memory", STR_NONE);
			return;
		}
		set_kind(lf, m);
		set_kind(lt, m);
		memset(lf->said.events, 0, sizeof(lf->said.events));
		neg_add_events(lf->said.events, m);
		lf->said.quiet = neg_quiet(m);
		lf->said.relayed = sdp_proto_is_relayed(m->proto);
		lf->said.proto = m->proto;
		hide_decide(to, i, unwanted, fresh);
		plan->media[i].omit = hide_from(to, i);
		/* What the other side knows of keeps its place, with port 0 (RFC 3264 8.2). */
		lf->said.rejected = m->port == 0 || unwanted || hide_from(to, i) ||
			raw_rejects(plan, m, i, in) || neg_too_many(plan, from, i, m, in) ||
			(sdp_proto_is_rtp(m->proto) && loses_codecs(plan, m, i, in));
		plan->media[i].keep = raw_passes(m);
		plan->media[i].reject = lf->said.rejected;
		plan->media[i].both = sdp_proto_is_rtp(m->proto) && !lf->said.rejected &&
			twice_offer(plan, to, i, in->sdp->media_count, in);
		lf->early = false;
		if (lf->said.rejected)
			continue;
		if (sdp_proto_is_rtp(m->proto)) {
			offer_media(plan, c, from->peer == plan->to, m, i, in);
			reject_unusable(plan, lf, m, i, in);
		} else if (lf->said.relayed) {
			raw_offer(lf, lt, m, in);
		}
	}
	error = twice_fits(to, in->sdp->media_count);
	if (error && !plan->error)
		plan_fail(plan, error, STR_NONE);
	if (plan->unusable && !plan->error)
		tell_unusable(plan, in);
	listen_remember(from, in->sdp);
}

/* --- Answer ----------------------------------------------------------------------------------------------------- */

static void neg_plain(struct leg *l)
{
	l->pass_rx = l->pass_tx = false;
	crypto_set_rx(l, NULL, NULL);
	crypto_set_tx(l, NULL);
}

/* RTP is an answer to SRTP if it was offered, too, or if the script permits it. */
static bool may_answer_rtp(
	struct plan *plan, const struct leg *l, uint32_t i, const struct neg_in *in)
{
	if (l->asked.either)
		return true;
	if (!ng_flag(in->r, NG_FLAG_ALLOW_RTP_ANSWER))
		return false;
	plan_note(plan, in->p,
		plan_media_name(in->p, i, "RTP accepted as the answer to SRTP (allow-RTP-answer)"));
	return true;
}

/* The answerer's crypto comes into force. */
void neg_answerer_crypto(
	struct plan *plan, struct leg *l, const struct sdp_media *m, uint32_t i, struct neg_in *in)
{
	bool secure = sdp_proto_is_secure(m->proto);
	struct crypto_refused refused = {0};
	struct our_key *ours = NULL;
	struct sdes_bag bag = {0};
	struct sdes theirs;

	l->pass_rx = l->pass_tx = false;
	if (l->asked.suites && crypto_accepted(&theirs, &bag, &ours, l, m, in, &refused)) {
		crypto_set_rx(l, &theirs, &bag);
		crypto_set_tx(l, ours);
		explicit_bzero(&theirs, sizeof(theirs));
		explicit_bzero(&bag, sizeof(bag));
		return;
	}
	if (secure || refused.line ||
		(sdp_proto_is_secure(l->asked.proto) && !may_answer_rtp(plan, l, i, in))) {
		plan_fail(plan, "No usable crypto line in answer",
			refused.line      ? refused_line(in->p, i, &refused)
				: !secure ? plan_media_name(in->p, i, "RTP as the answer to SRTP")
				: l->asked.suites
				? refused_line(in->p, i, &refused)
				: plan_media_name(in->p, i, "SRTP as the answer to RTP"));
		return;
	}
	neg_plain(l);
}

/* The offerer gets one line: its own tag, our key. */
void neg_offerer_crypto(
	struct plan *plan, struct leg *l, enum srtp_suite_id prefer, uint32_t i, struct neg_in *in)
{
	struct plan_media *pm = &plan->media[i];
	const struct sdes *line = crypto_choose(l, prefer, in);
	struct our_key *ours;

	if (!line) {
		neg_plain(l);
		return;
	}
	l->pass_rx = l->pass_tx = false;
	ours = crypto_answer(l, line, in);
	if (!ours) {
		plan_fail(plan, "Out of memory", plan_media_name(in->p, i, "keys"));
		return;
	}
	pm->line[pm->lines++] = ours->s;
	crypto_set_rx(l, line, &l->said.bag);
	crypto_set_tx(l, ours);
}

void neg_into_force(
	struct leg *l, enum sdp_proto proto, enum sdp_dir dir, const struct sdp_media *m)
{
	l->active = true;
	l->proto = proto;
	if (sdp_proto_is_rtp(proto))
		l->rtp_proto = proto;
	l->dir = dir;
	set_kind(l, m);
	keep_text(l->codec, sizeof(l->codec), sdp_first_codec(m));
}

/* An opportunistic offer (RFC 8643) is accepted if the answerer's leg has SRTP, if the script says
 * so, or if it is in force. */
static bool takes_crypto(const struct leg *l, const struct side *s, const struct leg *answerer,
	const struct neg_in *in)
{
	uint32_t flags = s->osrtp | in->r->osrtp;

	if (sdp_proto_is_secure(l->said.proto))
		return true;
	return !(flags & NG_OSRTP_OFF) &&
		(flags & NG_OSRTP_ACCEPT || leg_is_encrypted(answerer) || leg_is_encrypted(l));
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
	uint8_t from_suite = lf->rx.master.suite, to_suite = lt->rx.master.suite;
	struct endpoint rtp, rtcp;

	if (lf->asked.pass)
		pass_answer(plan, lf, lt, paired, m, i, in);
	else
		neg_answerer_crypto(plan, lf, m, i, in);
	if (!plan->error && in->r->sdes.require_given && !lf->pass_rx &&
		!(required(in->r) >> lf->rx.master.suite & 1))
		plan_fail(plan, "No usable crypto line in answer",
			plan_media_name(in->p, i, "not of SDES=require"));
	if (plan->error)
		return;
	if (!lf->asked.pass && takes_crypto(lt, to, lf, in))
		neg_offerer_crypto(plan, lt, lf->rx.master.suite, i, in);
	else if (!lf->asked.pass)
		neg_plain(lt);
	if (from_was)
		stay_look(plan, lf, from_suite, !lf->asked.suites, i, in);
	if (to_was)
		stay_look(plan, lt, to_suite, (to->osrtp | in->r->osrtp) & NG_OSRTP_OFF, i, in);
	remotes(in, m, from_mux, &rtp, &rtcp);
	set_remote(lf, &rtp, &rtcp, from_mux);
	to_mux = lt->said.mux && !(mux & NG_RTCP_MUX_REJECT) &&
		(from_mux || mux & (NG_RTCP_MUX_ACCEPT | NG_RTCP_MUX_DEMUX));
	rtp = lt->said.remote;
	rtcp = lt->said.rtcp_remote;
	if (lt->said.mux && !to_mux && rtcp.port == rtp.port)
		rtcp.port = (uint16_t)(rtp.port + 1);
	set_remote(lt, &rtp, &rtcp, to_mux);
	neg_add_events(lt->said.events, m);
	lf->quiet = lt->quiet = neg_quiet(m) & (lt->said.quiet | NEG_QUIET_ONLY);
	memcpy(lf->events, lt->said.events, sizeof(lf->events));
	memcpy(lt->events, lt->said.events, sizeof(lt->events));
	neg_into_force(lf, m->proto, m->dir, m);
	pm->proto = neg_answer_proto(plan, lt, m, i, in);
	neg_into_force(lt, pm->proto, lt->said.dir, m);
	lf->feedback = sdp_attr(m->lines, STR("rtcp-fb"));
	lt->feedback = lt->said.feedback;
	lf->used = lt->used = true;
	lf->started = lt->started = to->offer_open;
	pm->mux = to_mux;
}

void neg_close(struct leg *l, bool for_good)
{
	if (!l)
		return;
	l->active = false;
	if (for_good)
		l->used = false;
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
		/* The answerer's refusal may be one branch's: ports stay for the next. The offerer's is final. */
		neg_close(lf, lt && (lt->said.rejected || !lt->said.relayed));
		neg_close(lt, lt && (lt->said.rejected || !lt->said.relayed));
		if (!m)
			continue;
		plan->media[i].keep = raw_passes(m);
		plan->media[i].omit = hide_from(to, i) || i >= to->legs;
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
		plan_fail(plan, error, STR_NONE);
		return;
	}
	plan->from = d.from;
	plan->to = in->other = d.to;
	from = c->side[plan->from];
	to = c->side[plan->to];
	other = from->tag.len && !str_eq(from->tag, in->r->to_tag);
	if (!stay_request(plan, from, to, in, true))
		error = "Out of memory";
	else
		error = hide_number(in, from, to, false);
	if (!error)
		error = hide_fill(in, to);
	if (!error)
		error = twice_fits(to, in->sdp->media_count);
	if (!error && take_tag(from, in->r->to_tag))
		error = "Out of memory";
	if (error) {
		plan_fail(plan, error, STR_NONE);
		return;
	}
	neg_flags(c, from, in);
	told_request(plan, c, in);
	neg_echo(plan, from, to, in, true);
	paired = to->peer == plan->from && from->peer == plan->to;
	if (d.waits && !(before = call_clone(in->keys, c))) {
		plan_fail(plan, "Out of memory", STR_NONE);
		return;
	}
	dialog_answered(c, &d, in->r);
	answer_all_media(plan, c, paired, in);
	if (other)
		restart_learning(from);
	if (before) { /* the offerer stays with the side that answered first */
		c->side[plan->to] = before->side[plan->to];
		before->side[plan->to] = to;
		call_free(in->keys, before);
		return;
	}
	to->offer_open = false;
	c->answered = true;
	listen_remember(from, in->sdp);
}
