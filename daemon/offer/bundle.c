/* SPDX-License-Identifier: GPL-2.0-or-later */
/* RFC 9143 7. notes/bundle.md says how it fits together. */
#include "offer/bundle.h"

#include "call/in_force.h"
#include "proto/sdp_bundle.h"

static bool is_in(const struct sdp_bundle *b, uint32_t i)
{
	for (uint32_t k = 0; k < b->n; k++)
		if (b->media[k] == i)
			return true;
	return false;
}

static bool is_bundled(const struct side *s)
{
	for (uint32_t i = 0; i < s->legs; i++)
		if (s->leg[i] && s->leg[i]->active && s->leg[i]->via)
			return true;
	return false;
}

bool bundle_of_one(const struct side *from, const struct side *to, bool is_answer)
{
	bool offers = false, offered = false;

	if (is_answer)
		return is_bundled(from) != is_bundled(to);
	for (uint32_t i = 0; i < from->legs; i++)
		offers = offers || (from->leg[i] && from->leg[i]->said.shares);
	for (uint32_t i = 0; i < to->legs; i++)
		offered = offered || (to->leg[i] && to->leg[i]->asked.shares);
	return offers != offered;
}

/* The request's SDP with complete m-lines. */
static bool unfold(const struct sdp_bundle *b, struct neg_in *in)
{
	struct sdp *s = pool_alloc(in->p, sizeof(*s));

	if (!s)
		return false;
	*s = *in->sdp;
	in->sdp = s;
	return sdp_bundle_unfold(s, in->p, b) == 0;
}

/* --- Offers ----------------------------------------------------------------------------------- */

bool bundle_offered(struct plan *plan, const struct side *from, struct neg_in *in)
{
	uint32_t flags = in->r->bundle;

	plan->bundle.n = 0;
	if (flags & NG_BUNDLE_REJECT || in->r->rtcp_mux & NG_RTCP_MUX_REJECT ||
		!(flags & NG_BUNDLE_ACCEPT || is_bundled(from)) ||
		!sdp_bundle_read(&plan->bundle, in->sdp))
		return true;
	/* RTCP has no port of its own in a group (RFC 9143 9.3). */
	if (!in->sdp->media[plan->bundle.tag].rtcp_mux) {
		plan->bundle.n = 0;
		return true;
	}
	return unfold(&plan->bundle, in);
}

void bundle_said(struct leg *from, uint32_t i, const struct plan *plan)
{
	from->said.shares = is_in(&plan->bundle, i) && from->said.mux ? plan->bundle.tag + 1 : 0;
}

static bool may_ask(const struct plan_media *pm, const struct leg *l, const struct sdp_media *m)
{
	return l && l->used && !pm->reject && !pm->omit && !pm->keep && !pm->both &&
		sdp_proto_is_rtp(m->proto);
}

static bool overlap(const uint64_t a[2], const uint64_t b[2])
{
	return (a[0] & b[0]) || (a[1] & b[1]);
}

/* A terminal without MIDs tells m-lines apart by payload type. In a group, an ID must name only one
 * header extension (RFC 8285 5). */
void bundle_ask(struct plan *plan, struct side *to, const struct neg_in *in)
{
	bool wanted = !(in->r->bundle & NG_BUNDLE_REJECT) &&
		(in->r->bundle & NG_BUNDLE_OFFER || is_bundled(to));
	struct sdp_ext_ids ids = {0};
	uint64_t all[2] = {0};
	uint32_t n = 0, first = 0;

	for (uint32_t i = 0; i < to->legs; i++) {
		if (!to->leg[i])
			continue;
		to->leg[i]->asked.shares = false;
		to->leg[i]->asked.mid_ext = 0;
	}
	for (uint32_t i = 0; wanted && i < in->sdp->media_count && n < SDP_BUNDLE_MAX; i++) {
		struct leg *l = side_leg_get(to, i);
		uint64_t types[2] = {0};

		sdp_payload_types(types, &in->sdp->media[i]);
		if (!may_ask(&plan->media[i], l, &in->sdp->media[i]) || overlap(types, all) ||
			!sdp_ext_add(&ids, in->sdp, &in->sdp->media[i]))
			continue;
		all[0] |= types[0];
		all[1] |= types[1];
		first = n++ ? first : i;
		l->asked.shares = true;
	}
	if (n == 1)
		to->leg[first]->asked.shares = false;
	for (uint32_t i = 0; n > 1 && i < in->sdp->media_count; i++)
		if (to->leg[i] && to->leg[i]->asked.shares)
			plan->media[i].mux = to->leg[i]->asked.mux = true;
	if (n > 1)
		bundle_ask_mid(to, &ids, in);
}

/* --- Answers ---------------------------------------------------------------------------------- */

static bool is_open(
	const struct sdp *answer, const struct side *from, const struct side *to, uint32_t i)
{
	const struct leg *lf = side_leg_get(from, i), *lt = side_leg_get(to, i);

	return i < answer->media_count && answer->media[i].port && lf && lt && !lt->said.rejected &&
		sdp_proto_is_rtp(lt->said.proto) && sdp_proto_is_rtp(answer->media[i].proto);
}

/* The tagged m-line of the offerer's group, or else the first that the answerer accepts (RFC 9143
 * 7.3.1). */
static uint32_t accepted_owner(
	const struct sdp *answer, const struct side *from, const struct side *to)
{
	uint32_t first = UINT32_MAX, n = 0;

	for (uint32_t i = 0; i < to->legs; i++) {
		if (!is_open(answer, from, to, i) || !to->leg[i]->said.shares)
			continue;
		n++;
		if (first == UINT32_MAX || to->leg[i]->said.shares == i + 1)
			first = i;
	}
	return n > 1 ? first : UINT32_MAX;
}

bool bundle_answered(struct plan *plan, struct side *from, struct side *to, struct neg_in *in)
{
	uint32_t flags = in->r->bundle, n = 0;
	struct sdp_bundle *b = &plan->bundle;

	side_unshare(from);
	side_unshare(to);
	if (!sdp_bundle_read(b, in->sdp))
		b->n = 0;
	for (uint32_t k = 0; k < b->n; k++)
		if (side_leg_get(from, b->media[k]) && from->leg[b->media[k]]->asked.shares)
			b->media[n++] = b->media[k];
	b->n = (uint8_t)n;
	if (n < 2 || !is_in(b, b->tag) || !in->sdp->media[b->tag].rtcp_mux)
		b->n = 0;
	if (b->n && !unfold(b, in))
		return false;
	plan->accepted = flags & NG_BUNDLE_REJECT || in->r->rtcp_mux & NG_RTCP_MUX_REJECT
		? UINT32_MAX
		: accepted_owner(in->sdp, from, to);
	return true;
}

bool bundle_accepts(const struct plan *plan, const struct leg *offerer)
{
	return plan->accepted != UINT32_MAX && offerer->said.shares;
}

static void remember(struct leg *l, uint8_t ext, struct str mid, const uint64_t types[2])
{
	l->mid_ext = mid.len <= sizeof(l->mid) && mid.len ? ext : 0;
	memset(l->mid, 0, sizeof(l->mid));
	if (l->mid_ext)
		memcpy(l->mid, mid.s, mid.len);
	memcpy(l->types, types, sizeof(l->types));
}

/* Payload types that either terminal may send as this m-line: its own and the other's. SSRCs are
 * each terminal's own. */
static void remember_both(
	struct leg *lf, struct leg *lt, const struct neg_in *in, const struct sdp_media *m)
{
	uint64_t types[2] = {lt->said.types[0], lt->said.types[1]};
	bool stripped = ng_flag(in->r, NG_FLAG_STRIP_EXTMAP); /* from the answer */

	sdp_payload_types(types, m);
	sdp_ssrcs(lf->ssrc, m);
	memcpy(lt->ssrc, lt->said.ssrc, sizeof(lt->ssrc));
	remember(lf, sdp_mid_ext(in->sdp, m), m->mid, types);
	remember(lt, stripped ? 0 : lt->said.mid_ext, str_from(lt->said.mid), types);
}

/* Keys of the terminals' own are not bundled: RTCP under them cannot be read. */
static bool may_own(const struct leg *l)
{
	return l && l->active && l->mux && !l->rx.pass && !l->tx.pass;
}

static void share(struct plan *plan, struct side *s, uint32_t owner, uint64_t members, bool written)
{
	bool may = owner < s->legs && may_own(s->leg[owner]);

	for (uint32_t i = 0; i < s->legs; i++) {
		struct leg *l = s->leg[i];

		if (!l)
			continue;
		l->via = may && i != owner && members >> i & 1 && l->active ? owner + 1 : 0;
		if (l->via && written)
			plan->media[i].mux = true;
	}
	if (may)
		side_share(s, owner);
}

/* Our SDP answers the offerer's MID extension if the group is written, or if the answer has it. */
static void forget_unanswered(struct side *to, uint32_t i, const struct neg_in *in)
{
	struct leg *l = side_leg_get(to, i);

	if (l && !bundle_is_written(to, i, true) && !sdp_mid_ext(in->sdp, &in->sdp->media[i]))
		l->mid_ext = 0;
}

void bundle_in_force(struct plan *plan, struct side *from, struct side *to, const struct neg_in *in)
{
	uint64_t members[2] = {0};

	for (uint32_t i = 0; i < in->sdp->media_count; i++) {
		struct leg *lf = side_leg_get(from, i), *lt = side_leg_get(to, i);

		if (!lf || !lt || !lf->active || !lt->active)
			continue;
		remember_both(lf, lt, in, &in->sdp->media[i]);
		members[0] |= (uint64_t)is_in(&plan->bundle, i) << i;
		members[1] |= (uint64_t)(lt->said.shares != 0) << i;
	}
	share(plan, from, plan->bundle.n ? plan->bundle.tag : UINT32_MAX, members[0], false);
	share(plan, to, plan->accepted, members[1], true);
	for (uint32_t i = 0; i < in->sdp->media_count; i++)
		forget_unanswered(to, i, in);
}

/* --- Writing ---------------------------------------------------------------------------------- */

uint32_t bundle_owner(const struct side *to, uint32_t i, const struct plan *plan,
	const struct neg_in *in, bool is_answer)
{
	const struct leg *l = side_leg_get(to, i);
	uint32_t owner =
		l && l->active && l->via && (is_answer || l->asked.shares) ? l->via - 1 : i;

	return owner >= in->sdp->media_count || plan->media[owner].reject || plan->media[owner].omit
		? i
		: owner;
}

static struct str mid_of(const struct sdp_media_edit *e, const struct sdp_media *m, struct pool *p)
{
	if (e->drop_mid)
		return STR_NONE;
	if (!m->mid.len && e->mid_text.s)
		return e->mid_text;
	return !m->mid.len && e->mid ? pool_printf(p, "%u", e->mid) : m->mid;
}

struct str bundle_mids(const struct side *to, const struct sdp_media_edit *me,
	const struct neg_in *in, bool is_answer)
{
	uint32_t n = 0, first = UINT32_MAX;
	struct str all = STR("");

	for (uint32_t i = 0; i < in->sdp->media_count; i++)
		if (side_leg_get(to, i) && to->leg[i]->active && to->leg[i]->via)
			first = to->leg[i]->via - 1;
	for (uint32_t k = 0; k <= in->sdp->media_count; k++) {
		uint32_t i = k ? k - 1 : first;
		struct str mid;

		if (i >= in->sdp->media_count || (k && i == first) || me[i].omit || me[i].reject ||
			!bundle_is_written(to, i, is_answer))
			continue;
		mid = mid_of(&me[i], &in->sdp->media[i], in->p);
		if (!mid.len)
			continue;
		all = pool_printf(
			in->p, STR_FMT "%s" STR_FMT, STR_ARG(all), n++ ? " " : "", STR_ARG(mid));
	}
	return n > 1 ? all : STR_NONE;
}
