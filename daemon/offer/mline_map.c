/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Hides media from the other side (ng's sdp-media-remove). Hidden m-lines are omitted from its
 * offer, not only rejected, so both sides number m-lines differently (RFC 3264 8: an m-line never
 * changes its place). This file maps the numbers: calls use the numbering of the side with more
 * m-lines. It also adds m-lines to an answer that lacks the offer's, or has another kind. Pure. */
#include "offer/mline_map.h"
#include "call/plan.h"
#include "offer/negotiate.h"
#include "offer/osrtp_legacy.h"

static bool is_known(struct str kind)
{
	static const char *const kinds[] = {
		"audio", "video", "text", "application", "message", "image"};

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (str_eq_nocase(kind, str_from(kinds[i])))
			return true;
	return false;
}

bool mline_wanted(const struct ng_request *r, const struct sdp_media *m)
{
	for (uint32_t i = 0; i < r->media_removes; i++)
		if (str_eq_nocase(r->media_remove[i], m->kind) ||
			(str_eq_nocase(r->media_remove[i], STR("other")) && !is_known(m->kind)))
			return true;
	return false;
}

/* Whether the party already knows a later m-line. */
bool mline_told_behind(const struct side *s, uint32_t media)
{
	for (uint32_t i = media + 1; i < s->legs; i++)
		if (s->leg[i] && !mline_from(s, i))
			return true;
	return false;
}

void mline_decide(struct side *to, uint32_t media, bool wanted, bool fresh)
{
	uint64_t bit = 1ull << media;

	if (wanted && fresh)
		to->hidden |= bit;
	else if (!wanted && !mline_told_behind(to, media))
		to->hidden &= ~bit;
}

static bool stand_in(struct sdp_media *out, struct pool *p, const struct sdp_media *said)
{
	struct sdp_line *l = pool_alloc(p, sizeof(*l));

	if (!l)
		return false;
	*out = said ? (struct sdp_media){.kind = said->kind,
			      .proto_text = said->proto_text,
			      .proto = said->proto,
			      .formats = said->formats}
		    : (struct sdp_media){.kind = STR("audio"),
			      .proto_text = STR("RTP/AVP"),
			      .proto = SDP_RTP_AVP,
			      .formats = STR("0")};
	*l = (struct sdp_line){.type = 'm'};
	l->text = pool_printf(p, "m=" STR_FMT " 0 " STR_FMT " " STR_FMT, STR_ARG(out->kind),
		STR_ARG(out->proto_text), STR_ARG(str_trim(out->formats)));
	if (!l->text.s)
		return false;
	/* The position where the writer searches for replaced text. */
	l->value = (struct str){l->text.s + 2, l->text.len - 2};
	out->kind.s = l->value.s;
	out->proto_text.s = out->kind.s + out->kind.len + 3;
	out->formats = (struct str){
		out->proto_text.s + out->proto_text.len + 1, str_trim(out->formats).len};
	out->lines = l;
	out->port_count = 1;
	return true;
}

static bool is_other_kind(const struct sdp *answer, const struct side *to, uint32_t i)
{
	const struct leg *l = side_leg_get(to, i);

	/* Datagrams answered by RTP, or the reverse, fail the whole answer (neg_raw.c). */
	return l && answer->media[i].port &&
		sdp_proto_is_rtp(l->said.proto) == sdp_proto_is_rtp(answer->media[i].proto) &&
		neg_other_kind(l, &answer->media[i]);
}

static bool has_other_kinds(const struct sdp *answer, const struct side *to)
{
	for (uint32_t i = 0; i < answer->media_count; i++)
		if (is_other_kind(answer, to, i))
			return true;
	return false;
}

const char *mline_fill(struct plan *plan, struct neg_in *in, const struct side *to)
{
	const struct sdp *said = in->sdp;
	uint32_t n = said->media_count;
	struct sdp *offer, *all;

	if ((n >= to->legs || !to->sdp.len) && !has_other_kinds(said, to))
		return NULL;
	offer = pool_alloc(in->p, sizeof(*offer));
	all = pool_alloc(in->p, sizeof(*all));
	if (!offer || !all)
		return NGE_NOMEM;
	*all = *said;
	if (!to->sdp.len || sdp_parse(offer, in->p, to->sdp, NULL) != SDP_OK)
		offer->media_count = 0;
	for (uint32_t i = 0; i < n; i++) {
		if (!is_other_kind(said, to, i))
			continue;
		neg_warn_kind(plan, in->p, side_leg_get(to, i), &said->media[i], i);
		if (!stand_in(&all->media[i], in->p,
			    i < offer->media_count ? &offer->media[i] : &said->media[i]))
			return NGE_NOMEM;
	}
	for (; n < offer->media_count; n++)
		if (!stand_in(&all->media[n], in->p, &offer->media[n]))
			return NGE_NOMEM;
	all->media_count = n;
	in->sdp = all;
	return NULL;
}

const char *mline_number(
	struct neg_in *in, struct side *from, const struct side *other, bool is_offer)
{
	bool twice = from->doubled || (is_offer && in->r->osrtp & NG_OSRTP_ACCEPT_LEGACY);
	struct sdp *all, *said;
	uint32_t at = 0, n = 0;

	if (!from->hidden && !twice)
		return NULL;
	all = pool_alloc(in->p, sizeof(*all));
	said = pool_alloc(in->p, sizeof(*said));
	if (!all || !said)
		return NGE_NOMEM;
	if (!other->sdp.len || sdp_parse(said, in->p, other->sdp, NULL) != SDP_OK)
		said->media_count = 0;
	*all = *in->sdp;
	while (n < SDP_MAX_MEDIA && (mline_from(from, n) || at < in->sdp->media_count)) {
		if (!mline_from(from, n))
			at += osrtp_legacy_fold(&all->media[n], in, from, n, at, is_offer);
		else if (!stand_in(&all->media[n], in->p,
				 n < said->media_count ? &said->media[n] : NULL))
			return NGE_NOMEM;
		n++;
	}
	if (at < in->sdp->media_count)
		return NGE_HIDDEN;
	all->media_count = n;
	in->sdp = all;
	return NULL;
}
