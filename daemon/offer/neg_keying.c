/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Passes the legs of an exchange to keying/, and puts the results into the plan and into force.
 * Pure. */
#include "offer/neg_keying.h"
#include "base/secmem.h"
#include "call/in_force.h"
#include "offer/reflect.h"

static struct keying_in keying_in(const struct neg_in *in, struct keying_random *random)
{
	return (struct keying_in){.r = in->r,
		.sdp = in->sdp,
		.host = &in->host,
		.policy = &in->policy->sdes,
		.p = in->p,
		.random = random,
		.emergency = ng_flag(in->r, NG_FLAG_EMERGENCY) || in->call->emergency,
		.refusal = reflect_refusal,
		.tx_refusal = reflect_tx_refusal,
		.arg = in};
}

static struct keying_leg keying_leg(struct leg *l)
{
	return l ? (struct keying_leg){.state = &l->keying,
			   .rx = &l->rx,
			   .tx = &l->tx,
			   .active = l->active,
			   .in_mid_stream = l->active && l->rx_roc}
		 : (struct keying_leg){0};
}

/* The other legs of this leg's side belong to the same terminal. */
static void share_party(const struct neg_in *in, struct leg *l)
{
	for (uint32_t s = 0; s < in->call->sides; s++)
		for (uint32_t i = 0; i < in->call->side[s]->legs; i++) {
			if (in->call->side[s]->leg[i] != l)
				continue;
			for (uint32_t k = 0; k < in->call->side[s]->legs; k++)
				if (in->call->side[s]->leg[k])
					keying_share_party(
						&l->keying, &in->call->side[s]->leg[k]->keying);
			return;
		}
}

static struct str at_media(struct pool *p, uint32_t i, struct str what)
{
	return pool_printf(
		p, "media %u%s" STR_FMT, (unsigned)i + 1, what.len ? ": " : "", STR_ARG(what));
}

static void warn(
	struct plan *plan, const struct neg_in *in, uint32_t i, struct str warning, bool weaker)
{
	struct str text;

	if (!warning.len)
		return;
	text = pool_printf(in->p, "media %u " STR_FMT, (unsigned)i + 1, STR_ARG(warning));
	(weaker ? plan_note : plan_warn)(plan, in->p, text);
}

static void fall_back(struct plan *plan, bool *fell, bool now)
{
	plan->fallbacks += now && !*fell;
	*fell = now;
}

/* --- Offers ----------------------------------------------------------------------------------- */

uint32_t neg_required(const struct ng_request *r)
{
	return r->sdes.require_given ? r->sdes.require : UINT32_MAX;
}

bool neg_read_offer(
	struct plan *plan, struct leg *l, const struct sdp_media *m, uint32_t i, struct neg_in *in)
{
	const struct keying_in k = keying_in(in, &in->random);
	const struct keying_leg leg = keying_leg(l);
	bool secure = sdp_proto_is_secure(m->proto);
	struct keying_error why = {0};

	keying_drop_offered(&l->keying);
	if (secure || !(in->r->osrtp & NG_OSRTP_OFF))
		keying_read_offer(&leg, m, neg_required(in->r), &k, &why);
	fall_back(plan, &l->fell_from_mikey, why.detail.len && keying_was_offered(&l->keying));
	if (l->fell_from_mikey)
		plan_note(plan, in->p,
			pool_printf(in->p, "media %u " STR_FMT "; another keying serves instead",
				(unsigned)i + 1, STR_ARG(why.detail)));
	if (keying_was_offered(&l->keying) || (!secure && !in->r->sdes.require_given))
		return true;
	if (!secure)
		plan_fail(plan, NGE_SUITE,
			plan_media_name(in->p, i, "RTP, but SDES=require demands SRTP"));
	else
		plan_fail(plan, why.reason, at_media(in->p, i, why.detail));
	return false;
}

bool neg_could_accept(const struct neg_in *in, struct leg *l, const struct sdp_media *m)
{
	const struct keying_in k = keying_in(in, NULL);
	const struct keying_leg leg = keying_leg(l);

	return keying_could_accept(&leg, m, &k);
}

bool neg_write_offer(struct plan *plan, const struct neg_offer_keys *how, const struct sdp_media *m,
	uint32_t i, struct neg_in *in)
{
	const struct keying_in k = keying_in(in, &in->random);
	struct plan_media *pm = &plan->media[i];
	struct keying_offer o = {.from = keying_leg(how->from),
		.to = keying_leg(how->to),
		.paired = how->paired,
		.ours_only = how->ours_only,
		.wanted = sdp_proto_is_secure(pm->proto) || how->opportunistic,
		.media = m,
		.proto = pm->proto,
		.later = how->later,
		.lines = &pm->lines};
	bool written;

	share_party(in, how->to);
	written = keying_write_offer(&o, &k);

	warn(plan, in, i, o.warning, o.weaker);
	fall_back(plan, &how->to->fell_from_mikey, o.weaker);
	if (!written)
		plan_fail(plan, o.error.reason, at_media(in->p, i, o.error.detail));
	return written;
}

/* Whether keying_end_offer() gets this m-line of our offer. */
static bool is_written(const struct plan *plan, const struct side *to, uint32_t i)
{
	const struct plan_media *pm = &plan->media[i];

	return !pm->reject && !pm->omit && !pm->keep && i < to->legs && to->leg[i] &&
		to->leg[i]->used;
}

void neg_end_offer(struct plan *plan, struct side *to, struct neg_in *in)
{
	const struct keying_in k = keying_in(in, &in->random);
	uint32_t n = 0, count = in->sdp->media_count;
	struct keying_written *w = pool_alloc(in->p, (count + 1) * sizeof(*w));
	uint32_t *of = pool_alloc(in->p, (count + 1) * sizeof(*of));
	bool whole = true;

	if (!w || !of) {
		plan_fail(plan, NGE_NOMEM, STR("keys"));
		return;
	}
	for (uint32_t i = 0; i < count; i++) {
		/* A doubled m-line has two profiles, but a message serves only one of them. */
		whole = whole && is_written(plan, to, i) && !plan->media[i].both;
		if (!is_written(plan, to, i))
			continue;
		of[n] = i;
		w[n++] = (struct keying_written){
			.to = &to->leg[i]->keying, .lines = &plan->media[i].lines};
	}
	(void)keying_end_offer(w, n, whole, &k);
	for (uint32_t i = 0; i < n && !plan->error; i++) {
		warn(plan, in, of[i], w[i].warning, true);
		if (w[i].warning.s)
			fall_back(plan, &to->leg[of[i]]->fell_from_mikey, true);
		if (w[i].error.reason)
			plan_fail(
				plan, w[i].error.reason, at_media(in->p, of[i], w[i].error.detail));
	}
}

/* --- Answers ---------------------------------------------------------------------------------- */

static void into_force(struct leg *l, struct keying_answer *a)
{
	leg_set_rx(l, &a->rx);
	leg_set_tx(l, &a->tx);
	secmem_wipe(&a->rx, sizeof(a->rx));
	secmem_wipe(&a->tx, sizeof(a->tx));
}

/* RTP is a valid answer to SRTP if it was offered, too, or if the script permits it. */
static bool may_answer_rtp(struct plan *plan, struct leg *l, uint32_t i, const struct neg_in *in)
{
	if (l->asked.either)
		return true;
	if (!ng_flag(in->r, NG_FLAG_ALLOW_RTP_ANSWER))
		return false;
	fall_back(plan, &l->fell_to_rtp, true);
	plan_note(plan, in->p,
		plan_media_name(in->p, i, "RTP accepted as the answer to SRTP (allow-RTP-answer)"));
	return true;
}

/* No SRTP was agreed. */
static void answered_rtp(struct plan *plan, struct leg *l, const struct keying_answer *a,
	uint32_t i, const struct neg_in *in)
{
	bool secure = sdp_proto_is_secure(a->media->proto), offered = keying_asks(&l->keying);

	if (!secure && !a->error.detail.len &&
		(!sdp_proto_is_secure(l->asked.proto) || may_answer_rtp(plan, l, i, in))) {
		leg_set_plain(l);
		return;
	}
	plan_fail(plan, NGE_CRYPTO_LINE,
		at_media(in->p, i,
			a->error.detail.len ? a->error.detail
				: !secure   ? STR("RTP as the answer to SRTP")
				: offered   ? STR("")
					    : STR("SRTP as the answer to RTP")));
}

void neg_read_answer(struct plan *plan, struct keying_answer *a, struct leg *l, struct leg *offerer,
	uint32_t i, struct neg_in *in)
{
	const struct keying_in k = keying_in(in, &in->random);

	a->answerer = keying_leg(l);
	a->offerer = keying_leg(offerer);
	a->lines = &plan->media[i].lines;
	switch (keying_read_answer(a, &k)) {
	case KEYING_AGREES:
		into_force(l, a);
		l->fell_to_rtp = false;
		warn(plan, in, i, a->warning, false);
		a->warning = STR_NONE;
		break;
	case KEYING_REFUSES:
		plan_fail(plan, a->error.reason, at_media(in->p, i, a->error.detail));
		break;
	default:
		answered_rtp(plan, l, a, i, in);
	}
}

void neg_write_answer(
	struct plan *plan, struct keying_answer *a, struct leg *l, uint32_t i, struct neg_in *in)
{
	const struct keying_in k = keying_in(in, &in->random);

	share_party(in, l);
	a->offerer = keying_leg(l);
	a->lines = &plan->media[i].lines;
	switch (keying_write_answer(a, &k)) {
	case KEYING_AGREES:
		into_force(l, a);
		warn(plan, in, i, a->warning, false);
		break;
	case KEYING_REFUSES:
		plan_fail(plan, a->error.reason, at_media(in->p, i, a->error.detail));
		break;
	default:
		/* The terminal offered SRTP: without keys its media would be relayed in clear. */
		if (sdp_proto_is_secure(l->said.proto))
			plan_fail(plan, NGE_SUITE,
				plan_media_name(in->p, i, "no keys for the SRTP of the offer"));
		else
			leg_set_plain(l);
	}
}
