/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The offer to a listener (subscribe.c): the sides that a subscribe request selects, the m-line for
 * each of their media, and an SDP from the sources' latest descriptions. RFC 3264 8: m-lines keep
 * their order for the whole subscription. */
#include "call/gate.h"
#include "offer/sources.h"
#include "proto/sdp_bundle.h"

#define BODY_MAX 16384u /* most bytes kept of a source's SDP */

/* --- Sources' descriptions -------------------------------------------------------------------- */

/* Whether the line describes media: no address, identity or key. The MID of a source's packets is
 * not one of the listener's m-lines, so his terminal must not look for it (RFC 9143 9.2). */
static bool describes(const struct sdp_line *l)
{
	static const char *const names[] = {"rtpmap", "fmtp", "ptime", "maxptime", "rtcp-fb",
		"extmap", "framerate", "framesize", "imageattr", "content", "lang"};

	if (l->type == 'b')
		return true;
	if (sdp_is_mid_ext(l))
		return false;
	for (size_t i = 0; l->type == 'a' && i < ARRAY_LEN(names); i++)
		if (str_eq_nocase(l->name, str_from(names[i])))
			return true;
	return false;
}

static void put_media(struct sbuf *b, const struct sdp_media *m)
{
	sbuf_printf(b, "m=" STR_FMT " %u " STR_FMT " " STR_FMT "\r\n", STR_ARG(m->kind),
		(unsigned)m->port, STR_ARG(m->proto_text), STR_ARG(str_trim(m->formats)));
	for (const struct sdp_line *l = m->lines; l; l = l->next)
		if (describes(l))
			sbuf_printf(b, STR_FMT "\r\n", STR_ARG(l->text));
}

static void put_head(struct sbuf *b)
{
	sbuf_str(b, STR("v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=-\r\nc=IN IP4 0.0.0.0\r\nt=0 0\r\n"));
}

void subscribe_remember(struct side *s, const struct sdp *sdp)
{
	struct sbuf b;

	sbuf_init(&b, BODY_MAX);
	put_head(&b);
	for (uint32_t i = 0; i < sdp->media_count; i++)
		put_media(&b, &sdp->media[i]);
	(void)str_replace(&s->sdp, b.err ? STR_NONE : sbuf_view(&b));
	sbuf_fini(&b);
}

/* --- Listeners' m-lines ----------------------------------------------------------------------- */

uint32_t sources_wanted(
	uint8_t out[CALL_MAX_SIDES], const struct call *c, const struct ng_request *r)
{
	bool by_tag = !ng_flag(r, NG_FLAG_ALL) && !r->label.len && !r->address.len;
	struct str tag[NG_FROM_TAGS_MAX + 1] = {r->from_tag};
	struct endpoint addr = {0};
	uint32_t n = 0, seen = 0, tags = 1;

	if (r->address.len && endpoint_parse_addr(&addr, r->address))
		return 0;
	for (uint32_t i = 0; i < r->from_tags_n; i++) {
		if (str_eq(r->from_tags[i], r->from_tag))
			tag[0] = STR_NONE;
		tag[tags++] = r->from_tags[i];
	}
	for (uint32_t k = 0; k < (by_tag ? tags : 1); k++)
		for (uint32_t i = 0; i < c->sides; i++) {
			const struct side *s = c->side[i];
			bool named = by_tag ? tag[k].len && side_has_tag(s, tag[k])
					    : gate_is_source(s, r, &addr);

			if (!named || s->gone || s->listener || !s->sdp.len || seen >> i & 1)
				continue;
			seen |= 1u << i;
			out[n++] = (uint8_t)i;
		}
	return n;
}

/* The m-lines that the listener was offered before, all closed. */
static void slots_of(struct slots *out, const struct side *listener)
{
	out->n = 0;
	for (uint32_t i = 0; listener && i < listener->legs; i++) {
		const struct leg *l = listener->leg[i];

		out->slot[i] = (struct slot){.side = SIDE_NONE};
		if (!l || !l->hears)
			continue;
		out->slot[i].side = l->hears_side;
		out->slot[i].media = l->hears_media;
		out->n = i + 1;
	}
}

/* The m-line that this source had. NULL: none. */
static struct slot *slot_of(struct slots *t, uint8_t side, uint8_t media)
{
	for (uint32_t i = 0; i < t->n; i++)
		if (t->slot[i].side == side && t->slot[i].media == media)
			return &t->slot[i];
	return NULL;
}

/* An m-line for a new source: a new one, or a closed one if there would be too many. NULL: none is
 * free. */
static struct slot *slot_new(struct slots *t)
{
	if (t->n < SDP_MAX_MEDIA)
		return &t->slot[t->n++];
	for (uint32_t i = 0; i < t->n; i++)
		if (!t->slot[i].open)
			return &t->slot[i];
	return NULL;
}

struct str sources_label(struct pool *p, uint8_t side, uint8_t media)
{
	_Static_assert(SDP_MAX_MEDIA <= 100, "labels are unique");
	return pool_printf(p, "%u", 100u * side + media + 1);
}

static const struct side *listener_of(const struct call *c, const struct ng_request *r)
{
	uint8_t at = call_side_by_tag(c, r->to_tag);

	return at == SIDE_NONE || c->side[at]->gone || !c->side[at]->listener ? NULL : c->side[at];
}

/* Opens the m-lines of this side's media: its former ones, and new ones for other media. */
static uint32_t open_slots(
	struct slots *out, const struct side *s, uint8_t side, const struct sdp *sdp, bool fresh)
{
	uint32_t open = 0;

	for (uint32_t i = 0; i < sdp->media_count; i++) {
		const struct sdp_media *m = &sdp->media[i];
		const struct leg *l = side_leg_get(s, i);
		struct slot *slot = slot_of(out, side, (uint8_t)i);

		if (!l || !l->used || !m->port || !sdp_proto_is_rtp(m->proto) || !slot == !fresh)
			continue;
		slot = fresh ? slot_new(out) : slot;
		if (!slot)
			continue;
		*slot = (struct slot){true, side, (uint8_t)i, m};
		open++;
	}
	return open;
}

uint32_t sources_find(
	struct slots *out, struct pool *p, const struct call *c, const struct ng_request *r)
{
	struct sdp *sdp[CALL_MAX_SIDES];
	uint8_t from[CALL_MAX_SIDES];
	uint32_t sides = sources_wanted(from, c, r), open = 0;

	slots_of(out, listener_of(c, r));
	for (uint32_t s = 0; s < sides; s++) {
		sdp[s] = pool_alloc(p, sizeof(*sdp[s]));
		if (sdp[s] && sdp_parse(sdp[s], p, c->side[from[s]]->sdp, NULL) != SDP_OK)
			sdp[s] = NULL;
	}
	/* A new source must not take the m-line of another requested source. */
	for (int fresh = 0; fresh < 2; fresh++)
		for (uint32_t s = 0; s < sides; s++)
			if (sdp[s])
				open += open_slots(out, c->side[from[s]], from[s], sdp[s], fresh);
	return open;
}

static void put_slot(
	struct sbuf *b, struct pool *p, const struct slot *slot, const struct leg *before)
{
	if (!slot->open) {
		sbuf_printf(b, "m=%s 0 RTP/AVP 0\r\n",
			before && *before->kind ? before->kind : "audio");
		return;
	}
	put_media(b, slot->said);
	sbuf_printf(b, "a=label:" STR_FMT "\r\na=sendonly\r\n",
		STR_ARG(sources_label(p, slot->side, slot->media)));
}

struct str subscribe_body(
	struct pool *p, const struct call *c, const struct ng_request *r, const char **error)
{
	const struct side *listener = listener_of(c, r);
	struct slots *slots = pool_alloc(p, sizeof(*slots));
	struct str out = STR_NONE;
	struct sbuf b;

	*error = slots ? NGE_PARTICIPANT : NGE_NOMEM;
	if (!slots || !sources_find(slots, p, c, r))
		return out;
	sbuf_init(&b, SDP_MAX_LEN);
	put_head(&b);
	for (uint32_t i = 0; i < slots->n; i++)
		put_slot(&b, p, &slots->slot[i], listener ? side_leg_get(listener, i) : NULL);
	if (!b.err)
		out = pool_strdup(p, sbuf_view(&b));
	sbuf_fini(&b);
	return out;
}
