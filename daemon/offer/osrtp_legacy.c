/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Media that a party has as two m-lines, one SRTP and one RTP, to choose one of. Phones offered
 * SRTP this way before RFC 8643; ng's OSRTP=offer-legacy does, too. Inside the call they are one
 * media. The party's numbers include both for good (RFC 3264 8), so the unused one is written as
 * rejected. Pure. */
#include "call/plan.h"
#include "offer/mline_map.h"
#include "offer/neg_keying.h"
#include "offer/osrtp_legacy.h"

static bool same_kind(const struct sdp_media *a, const struct sdp_media *b)
{
	return str_eq_nocase(a->kind, b->kind) && sdp_proto_is_rtp(a->proto) &&
		sdp_proto_is_rtp(b->proto);
}

/* The m-line of the two that is in use. */
static const struct sdp_media *meant(const struct neg_in *in, struct leg *l,
	const struct sdp_media *a, const struct sdp_media *b)
{
	const struct sdp_media *secure = sdp_proto_is_secure(a->proto) ? a : b;

	if (!a->port != !b->port)
		return a->port ? a : b;
	if (a->port && !neg_could_accept(in, l, secure))
		return secure == a ? b : a;
	return secure;
}

uint32_t osrtp_legacy_fold(struct sdp_media *out, struct neg_in *in, struct side *from,
	uint32_t media, uint32_t at, bool is_offer)
{
	const struct sdp_media *said = &in->sdp->media[at], *next = said + 1;
	uint64_t bit = 1ull << media;
	bool fresh;

	*out = *said;
	if (at + 2 > in->sdp->media_count || !same_kind(said, next))
		return 1;
	/* The second has a new number for the party. */
	fresh = in->r->osrtp & NG_OSRTP_ACCEPT_LEGACY && is_offer &&
		!side_leg_get(from, media + 1) && said->port && next->port &&
		sdp_proto_is_secure(said->proto) != sdp_proto_is_secure(next->proto);
	if (!(from->doubled & bit) && !fresh)
		return 1;
	if (!(from->doubled & bit) && !sdp_proto_is_secure(said->proto))
		from->plain_first |= bit;
	from->doubled |= bit;
	*out = *meant(in, side_leg_get(from, media), said, next);
	return 2;
}

/* Number of m-lines the party has, for this many media of the call. */
static uint32_t m_lines(const struct side *s, uint32_t media)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < media; i++)
		n += !mline_from(s, i) + (s->doubled >> i & 1);
	return n;
}

const char *osrtp_legacy_fits(const struct side *to, uint32_t count)
{
	if (!to->doubled || m_lines(to, count) <= SDP_MAX_MEDIA)
		return NULL;
	return NGE_TWICE;
}

bool osrtp_legacy_offer(
	struct plan *plan, struct side *to, uint32_t media, uint32_t count, const struct neg_in *in)
{
	uint64_t bit = 1ull << media;

	if (!(in->r->osrtp & NG_OSRTP_OFFER_LEGACY) || in->r->sdes.flags & NG_SDES_OFF)
		return false;
	if (to->doubled & bit)
		return true;
	if (mline_told_behind(to, media) ||
		m_lines(to, count > to->legs ? count : to->legs) >= SDP_MAX_MEDIA) {
		plan_warn(plan, in->p,
			plan_media_name(in->p, media, "no m-line left for OSRTP=offer-legacy"));
		return false;
	}
	to->doubled |= bit;
	to->plain_first &= ~bit;
	return true;
}

bool osrtp_legacy_edit(struct sdp_media_edit *e, const struct side *to, uint32_t media,
	const struct plan_media *pm, const struct neg_in *in)
{
	enum sdp_proto is = sdp_proto_is_rtp(pm->proto) ? pm->proto : in->sdp->media[media].proto;
	bool plain_first = to->plain_first >> media & 1;
	struct sdp_media_edit *twin;

	if (pm->omit || !(to->doubled >> media & 1))
		return true;
	twin = pool_alloc(in->p, sizeof(*twin));
	if (!twin)
		return false;
	*twin = *e;
	twin->keep = false;
	twin->reject = e->reject || !pm->both;
	/* Media that is no longer RTP, such as fax, is the first of the two m-lines. The twin then
	 * keeps the profile of the second. */
	twin->proto = sdp_proto_make(sdp_proto_is_rtp(is) ? !sdp_proto_is_secure(is) : plain_first,
		sdp_proto_is_feedback(is));
	twin->keying = NULL;
	twin->keying_count = 0;
	twin->mid = 0;
	twin->drop_mid = true;
	e->twin = twin;
	e->twin_first = sdp_proto_is_rtp(is) && sdp_proto_is_secure(is) == plain_first;
	return true;
}
