/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See dialog.h. Uses tags, Via branches and SIP sources, and from the SDP only the fields that show
 * that two offers come from the same terminal. */
#include "call/dialog.h"

#include "call/plan.h"
#include "call/said.h"
#include "keying/keying.h"

#define SAME_PARTY "from-tag and to-tag name the same party"
#define NO_PAIR    "from-tag and to-tag are not the parties of one dialog"
#define SETTLED    "another phone has answered finally: delete that dialog first"

static const char *refuse(struct dialog *d, const char *why)
{
	d->why = why;
	return NGE_DIALOG;
}

static const struct side *side_at(const struct call *c, uint8_t i)
{
	return i == SIDE_NONE ? NULL : c->side[i];
}

static bool has_tag(const struct call *c, uint8_t i)
{
	return i != SIDE_NONE && c->side[i]->tag.len;
}

static bool is_pair(const struct call *c, uint8_t a, uint8_t b)
{
	return c->side[a]->peer == b || c->side[b]->peer == a;
}

static bool was_answered(const struct side *s)
{
	for (uint32_t i = 0; i < s->legs; i++)
		if (s->leg[i] && s->leg[i]->active)
			return true;
	return false;
}

static uint8_t by_branch(const struct call *c, uint8_t of, struct str via)
{
	for (uint32_t i = 0; i < c->sides && via.len; i++)
		if (!c->side[i]->gone && c->side[i]->peer == of &&
			str_eq(c->side[i]->via_branch, via))
			return (uint8_t)i;
	return SIDE_NONE;
}

uint32_t dialog_sides(const struct call *c, uint8_t side)
{
	uint32_t all = 1u << side, before = 0;

	while (all != before) {
		before = all;
		for (uint32_t i = 0; i < c->sides; i++) {
			const struct side *s = c->side[i];

			if (s->gone || s->peer == SIDE_NONE || c->side[s->peer]->gone)
				continue;
			if (all >> i & 1 || all >> s->peer & 1)
				all |= 1u << i | 1u << s->peer;
		}
	}
	return all;
}

/* --- Offers ----------------------------------------------------------------------------------- */

static bool same_source(const struct side *s, const struct ng_request *r)
{
	struct endpoint now;

	return !s->source.family || !r->received_from.len ||
		endpoint_parse_addr(&now, r->received_from) || endpoint_eq(&now, &s->source);
}

/* Whether this offer describes the same media as the side's last one. */
static bool same_media(const struct side *s, const struct neg_in *in)
{
	for (uint32_t i = 0; i < in->sdp->media_count; i++) {
		const struct sdp_media *m = &in->sdp->media[i];
		const struct leg *l = side_leg_get(s, i);
		struct leg_said now = {0};

		if (!sdp_proto_is_relayed(m->proto) || !m->port)
			continue;
		if (!l || !l->said.relayed || l->said.rejected)
			return false;
		neg_said_at(&now, m, in);
		if (!endpoint_eq(&now.remote, &l->said.remote) ||
			!endpoint_eq(&now.rtcp_remote, &l->said.rtcp_remote) ||
			!keying_is_same_offer(&l->keying, in->sdp, m))
			return false;
	}
	return true;
}

/* Without a to-tag. */
static const char *initial_offer(struct dialog *d, const struct neg_in *in)
{
	const struct call *c = in->call;
	const struct side *s = c->side[d->from];

	d->to = SIDE_NONE;
	/* A call that is being deleted has failed: its caller may try again with other media. */
	if (s->settled)
		return refuse(d, "the call is answered: add to-tag, or use another Call-ID");
	if (!c->delete_ns && !same_source(s, in->r))
		return refuse(d, "received-from differs from that of the first offer");
	if (!c->delete_ns && was_answered(s) && !same_media(s, in))
		return refuse(d, "other media than before: add to-tag, or delete the call first");
	if (s->connected) /* its peer belongs to another dialog */
		d->to = SIDE_NONE;
	else if (in->r->via_branch.len)
		d->to = by_branch(c, d->from, in->r->via_branch);
	else
		d->to = s->peer;
	return NULL;
}

/* Both sides are known. */
static const char *offer_in_dialog(struct dialog *d, const struct neg_in *in)
{
	const struct side *from = in->call->side[d->from], *to = in->call->side[d->to];

	if (from->connected && (to->peer == SIDE_NONE || to->peer == d->from))
		return NULL;
	if (!is_pair(in->call, d->from, d->to))
		return refuse(d, NO_PAIR);
	if ((to->settled || to->connected) && to->peer != d->from)
		return refuse(d, "to-tag is in a dialog with another party: delete that first");
	if (from->peer == d->to || !was_answered(from))
		return NULL;
	/* It switches to another side: after a final answer, only from the same SIP source. */
	if (from->settled && !(from->source.family && in->r->received_from.len))
		return refuse(d, "a switch to another branch needs received-from in all offers");
	return same_source(from, in->r)
		? NULL
		: refuse(d, "received-from differs from that of the party's first offer");
}

bool dialog_is_new(const struct call *c, const struct ng_request *r)
{
	return call_side_by_tag(c, r->from_tag) == SIDE_NONE &&
		call_side_by_tag(c, r->to_tag) == SIDE_NONE;
}

/* A party that has left. */
static bool was_here(const struct call *c, struct str tag)
{
	for (uint32_t i = 0; i < c->sides; i++)
		if (c->side[i]->gone && str_eq(c->side[i]->tag, tag))
			return true;
	return false;
}

/* A dialog that shares only the Call-ID with the others. */
static const char *new_dialog(struct dialog *d, const struct call *c, const struct ng_request *r)
{
	if (!c->sides || c->delete_ns)
		return NULL;
	if (!c->side[0]->gone && c->side[0]->settled)
		return refuse(d, "the call is answered and has no such tags: use another Call-ID");
	/* A caller that tries again keeps its rights after its first attempt ended. */
	if (c->sides + 2 > CALL_MAX_SIDES / 2 && !was_here(c, r->from_tag))
		return NGE_PARTIES;
	return NULL;
}

const char *dialog_offer(struct dialog *d, const struct neg_in *in)
{
	const struct call *c = in->call;
	const struct ng_request *r = in->r;
	uint8_t peer;

	*d = (struct dialog){
		.from = call_side_by_tag(c, r->from_tag), .to = call_side_by_tag(c, r->to_tag)};
	if (d->from == SIDE_NONE && d->to == SIDE_NONE)
		return new_dialog(d, c, r);
	if (!r->to_tag.len)
		return initial_offer(d, in);
	if (d->from == d->to)
		return refuse(d, SAME_PARTY);
	peer = side_at(c, d->from == SIDE_NONE ? d->to : d->from)->peer;
	if (d->from == SIDE_NONE && peer != SIDE_NONE && !has_tag(c, peer))
		d->from = peer;
	else if (d->to == SIDE_NONE && peer != SIDE_NONE && !has_tag(c, peer))
		d->to = peer;
	else if (d->from == SIDE_NONE)
		return was_answered(c->side[d->to])
			? refuse(d, "the call has no such from-tag: give the tags of its answer")
			: NULL;
	else if (d->to == SIDE_NONE)
		return was_answered(c->side[d->from])
			? refuse(d, "the call has no such to-tag: give the tags of its answer")
			: NULL;
	return offer_in_dialog(d, in);
}

/* --- Answers ---------------------------------------------------------------------------------- */

/* Finds the side that was offered to and has not answered: the current peer, else the last other
 * one, else the peer. */
static uint8_t who_was_asked(const struct call *c, uint8_t by)
{
	uint8_t peer = c->side[by]->peer;

	if (peer != SIDE_NONE && !has_tag(c, peer))
		return peer;
	for (uint32_t i = c->sides; i > 0; i--) {
		const struct side *s = c->side[i - 1];

		if (!s->gone && s->peer == by && !s->tag.len)
			return (uint8_t)(i - 1);
	}
	return c->side[by]->connected ? SIDE_NONE : peer;
}

static bool has_branches(const struct call *c, uint8_t of)
{
	for (uint32_t i = 0; i < c->sides; i++)
		if (!c->side[i]->gone && c->side[i]->peer == of && c->side[i]->via_branch.len)
			return true;
	return false;
}

/* The to-tag is unknown. */
static uint8_t answering_branch(const struct call *c, uint8_t to, const struct ng_request *r)
{
	uint8_t from = by_branch(c, to, r->via_branch);

	if (from != SIDE_NONE)
		return from;
	if (r->via_branch.len && has_branches(c, to) && was_answered(c->side[to]))
		return SIDE_NONE;
	return who_was_asked(c, to);
}

const char *dialog_answer(struct dialog *d, const struct call *c, const struct ng_request *r)
{
	*d = (struct dialog){
		.from = call_side_by_tag(c, r->to_tag), .to = call_side_by_tag(c, r->from_tag)};
	if (d->to == SIDE_NONE)
		return refuse(d, "the call has no such from-tag: give both tags as in the offer");
	if (d->from == d->to)
		return refuse(d, SAME_PARTY);
	if (d->from == SIDE_NONE)
		d->from = answering_branch(c, d->to, r);
	else if (!is_pair(c, d->from, d->to))
		return refuse(d, NO_PAIR);
	if (d->from == SIDE_NONE || c->side[d->from]->gone)
		return refuse(d, "no offer waits for it: add the offer's via-branch");
	if (!c->side[d->to]->settled)
		return NULL;
	/* Only from its peer, with a known tag: a new tag would belong to another phone. */
	if (c->side[d->to]->peer == d->from)
		return has_tag(c, d->from) && !side_has_tag(c->side[d->from], r->to_tag)
			? refuse(d, SETTLED)
			: NULL;
	d->waits = dialog_is_final(r);
	return d->waits ? NULL : refuse(d, SETTLED);
}

void dialog_answered(struct call *c, const struct dialog *d, const struct ng_request *r)
{
	struct side *from = c->side[d->from], *to = c->side[d->to];

	from->parked = d->waits;
	if (d->waits) {
		from->settled = true;
		return;
	}
	to->parked = false;
	to->peer = d->from; /* the latest answer wins */
	from->peer = d->to;
	if (!dialog_is_final(r))
		return;
	from->settled = to->settled = true;
	while (from->aliases) /* tags of phones that share the side and lost the call */
		(void)str_replace(&from->alias[--from->aliases], STR_NONE);
	for (uint32_t i = 0; i < c->sides; i++) /* branches that lost the call */
		if (i != d->from && c->side[i]->peer == d->to && !c->side[i]->connected)
			c->side[i]->parked = true;
}

/* --- Deletion --------------------------------------------------------------------------------- */

static bool is_branch(const struct call *c, uint32_t i, uint8_t of)
{
	return !c->side[i]->gone && !c->side[i]->listener && c->side[i]->peer == of;
}

/* Other branches of this side. */
static bool has_others(const struct call *c, uint8_t of, uint8_t branch, bool settled)
{
	for (uint32_t i = 0; i < c->sides; i++)
		if (i != branch && is_branch(c, i, of) && (!settled || c->side[i]->settled))
			return true;
	return false;
}

/* The side that gets the media of `side` after its peer is gone; SIDE_NONE: none. */
static uint8_t dialog_next(const struct call *c, uint8_t side)
{
	uint8_t next = SIDE_NONE;

	for (uint32_t i = 0; i < c->sides; i++)
		if (is_branch(c, i, side) &&
			(next == SIDE_NONE || c->side[i]->settled || !c->side[next]->settled))
			next = (uint8_t)i;
	return next;
}

/* Whether it is a branch of a side whose media another branch has. */
static bool did_not_get_it(const struct call *c, uint8_t i)
{
	uint8_t peer = c->side[i]->peer;

	return peer != SIDE_NONE && c->side[peer]->peer != i && c->side[peer]->peer != SIDE_NONE;
}

/* Both tags are known. */
static enum dialog_end end_of_pair(
	uint8_t *side, const struct call *c, uint8_t from, uint8_t to, const struct ng_request *r)
{
	*side = from;
	if (c->side[from]->connected) /* and sides connected to them */
		return DIALOG_END_ALL;
	if (c->side[to]->connected && c->side[from]->peer == SIDE_NONE)
		return DIALOG_END_SIDES; /* "connect" left it out */
	if (!is_pair(c, from, to))
		return DIALOG_END_NOTHING;
	*side = did_not_get_it(c, from) ? from : to;
	if (did_not_get_it(c, *side))
		return DIALOG_END_SIDES;
	/* If only the to side has other branches, the from side is the branch. */
	if (!has_others(c, from, to, false) && has_others(c, to, from, false))
		*side = from;
	if (has_others(
		    c, c->side[*side]->peer, *side, !(ng_flag(r, NG_FLAG_TO_TAG) && *side == to)))
		return DIALOG_END_SIDES;
	return DIALOG_END_ALL;
}

static enum dialog_end end_of_branch(
	uint8_t *side, const struct call *c, uint8_t of, struct str via)
{
	*side = by_branch(c, of, via);
	if (*side == SIDE_NONE)
		return DIALOG_END_NOTHING;
	return has_others(c, of, *side, false) ? DIALOG_END_SIDES : DIALOG_END_ALL;
}

/* SIDES: only this side. ALL: its dialog. */
static enum dialog_end end_of(uint8_t *side, const struct call *c, const struct ng_request *r)
{
	uint8_t from = call_side_by_tag(c, r->from_tag), to = call_side_by_tag(c, r->to_tag);

	/* A failed branch has a tag that was in no SDP; a module swaps the tags of a reply. */
	if (from == SIDE_NONE && to != SIDE_NONE && r->via_branch.len)
		return end_of_branch(side, c, to, r->via_branch);
	if (from == SIDE_NONE)
		return DIALOG_END_NOTHING;
	*side = from;
	if (c->side[from]->listener) /* a listener that hangs up does not end the call */
		return DIALOG_END_SIDES;
	if (to != SIDE_NONE && to != from)
		return end_of_pair(side, c, from, to, r);
	if (r->via_branch.len)
		return end_of_branch(side, c, from, r->via_branch);
	/* The tag of a publisher's other end is one that a SIP server gave. */
	if (c->side[from]->publisher)
		return DIALOG_END_ALL;
	/* A connected party may hang up after the party that was left out. */
	if (r->to_tag.len && !(c->side[from]->connected && was_here(c, r->to_tag)) &&
		(ng_flag(r, NG_FLAG_TO_TAG) || was_answered(c->side[from])))
		return DIALOG_END_NOTHING;
	if (c->side[from]->peer == SIDE_NONE)
		return DIALOG_END_SIDES; /* "connect" left it out */
	return did_not_get_it(c, from) ? DIALOG_END_SIDES : DIALOG_END_ALL;
}

bool dialog_others_live(const struct call *c, uint32_t sides)
{
	for (uint32_t i = 0; i < c->sides; i++)
		if (!(sides >> i & 1) && !c->side[i]->gone &&
			(c->side[i]->publisher || c->side[i]->peer != SIDE_NONE))
			return true;
	return false;
}

enum dialog_end dialog_delete(uint32_t *sides, const struct call *c, const struct ng_request *r)
{
	enum dialog_end end;
	uint8_t side;

	if (!r->from_tag.len)
		return DIALOG_END_ALL;
	end = end_of(&side, c, r);
	if (end == DIALOG_END_NOTHING)
		return end;
	*sides = end == DIALOG_END_ALL ? dialog_sides(c, side) : 1u << side;
	return end == DIALOG_END_ALL && !dialog_others_live(c, *sides) ? DIALOG_END_ALL
								       : DIALOG_END_SIDES;
}

void dialog_end_sides(struct call *c, uint32_t sides)
{
	for (uint32_t i = 0; i < c->sides; i++) {
		struct side *s = c->side[i];

		if (!(sides >> i & 1))
			continue;
		s->gone = true;
		for (uint32_t k = 0; k < s->legs; k++)
			if (s->leg[k])
				s->leg[k]->used = false;
	}
	for (uint32_t i = 0; i < c->sides; i++) {
		struct side *s = c->side[i];

		if (s->peer == SIDE_NONE || !(sides >> s->peer & 1))
			continue;
		s->peer = s->gone ? SIDE_NONE : dialog_next(c, (uint8_t)i);
		if (s->peer != SIDE_NONE)
			c->side[s->peer]->parked = false;
	}
}
