/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Selects the media of a blocking or silencing command (ng's "block media", "block DTMF", "silence
 * media" and their opposites), and sets the gates. A command applies to the whole call, to all
 * media of a party, or to the flow from one party to another. These three are stored separately:
 * undoing one keeps the others, except for "all". Works on the negotiated copy of a call. Payload
 * types follow RFC 3551 and RFC 4733. */
#include "call/gate.h"

#include "call/dtmf.h"

static bool at_address(const struct side *s, const struct endpoint *addr)
{
	for (uint32_t i = 0; i < s->legs; i++)
		if (s->leg[i] && endpoint_addr_eq(&s->leg[i]->remote, addr))
			return true;
	return false;
}

bool gate_is_source(const struct side *s, const struct ng_request *r, const struct endpoint *addr)
{
	if (s->gone)
		return false;
	if (ng_flag(r, NG_FLAG_ALL))
		return true;
	if (r->label.len)
		return str_eq(s->label, r->label);
	if (addr->family)
		return at_address(s, addr);
	return !r->from_tag.len || side_has_tag(s, r->from_tag);
}

static bool names_source(const struct ng_request *r)
{
	return r->from_tag.len || r->label.len || r->address.len;
}

/* Whether the command selects flows to certain parties, not all media of a party. */
static bool means_flows(const struct ng_request *r)
{
	return r->to_tag.len || r->to_label.len || r->all >= NG_ALL_OFFER_ANSWER;
}

static bool is_sink(const struct call *c, const struct ng_request *r, uint8_t from, uint8_t to)
{
	const struct side *s = c->side[to];
	bool peer = c->side[from]->peer == to;

	if (s->gone || to == from || (!peer && !s->listener))
		return false;
	if (r->to_tag.len)
		return side_has_tag(s, r->to_tag);
	if (r->to_label.len)
		return str_eq(s->label, r->to_label);
	return r->all == NG_ALL_FLOWS || (r->all == NG_ALL_OFFER_ANSWER) == peer;
}

static void set(uint8_t *gate, uint8_t bit, bool on)
{
	*gate = on ? *gate | bit : *gate & (uint8_t)~bit;
}

/* The mode of block DTMF. With digits that begin it nothing is blocked yet. */
static const char *security(struct call *c, const struct ng_request *r, bool on)
{
	struct endpoint addr = {0};
	const char *error = NULL;

	if (r->address.len)
		(void)endpoint_parse_addr(&addr, r->address);
	for (uint32_t i = 0; i < c->sides && !error; i++) {
		if (!gate_is_source(c->side[i], r, &addr))
			continue;
		if (on)
			error = dtmf_read(c->side[i], r);
		else
			dtmf_forget(c->side[i]);
		if (on && !r->dtmf.trigger.len && !means_flows(r))
			dtmf_forget_trigger(c->side[i]);
	}
	return error;
}

static uint32_t set_flows(
	struct call *c, const struct ng_request *r, uint8_t from, uint8_t bit, bool on)
{
	uint32_t found = 0;

	for (uint32_t to = 0; to < c->sides; to++) {
		if (!is_sink(c, r, from, (uint8_t)to))
			continue;
		set(&c->side[from]->flow[to], bit, on);
		found++;
	}
	return found;
}

const char *gate_set(struct call *c, const struct ng_request *r, uint8_t bit, bool on)
{
	bool all = ng_flag(r, NG_FLAG_ALL);
	struct endpoint addr = {0};
	uint32_t found = 0;

	if (r->address.len && endpoint_parse_addr(&addr, r->address))
		return NGE_ADDRESS;
	if (bit == MEDIA_GATE_DTMF) {
		const char *error = security(c, r, on);

		on &= r->dtmf.security != NG_DTMF_OFF && !r->dtmf.trigger.len;
		if (error)
			return error;
	}
	if (!names_source(r) && !means_flows(r) && !all) {
		set(&c->gate, bit, on);
		return NULL;
	}
	if (all && !on)
		set(&c->gate, bit, false);
	for (uint32_t i = 0; i < c->sides; i++) {
		struct side *s = c->side[i];

		if (!gate_is_source(s, r, &addr))
			continue;
		if (means_flows(r)) {
			found += set_flows(c, r, (uint8_t)i, bit, on);
			continue;
		}
		set(&s->gate, bit, on);
		for (uint32_t to = 0; all && !on && to < CALL_MAX_SIDES; to++)
			set(&s->flow[to], bit, false);
		found++;
	}
	return found ? NULL : NGE_PARTICIPANT;
}

/* --- Payload types ---------------------------------------------------------------------------- */

enum { TYPES = 128 };

/* Finds the a=rtpmap name of each payload type; empty if there is none. Reads the lines once,
 * because there may be thousands of lines and types. */
static void type_names(struct str out[TYPES], const struct sdp_media *m)
{
	memset(out, 0, TYPES * sizeof(*out));
	for (const struct sdp_line *l = sdp_attr(m->lines, STR("rtpmap")); l;
		l = sdp_attr(l->next, STR("rtpmap"))) {
		struct str name = l->arg, number = str_cut(&name, ' ');
		uint64_t pt;

		name = str_trim(name);
		if (!str_to_u64(&pt, number, TYPES - 1) && !out[pt].s)
			out[pt] = str_cut(&name, '/');
	}
}

void neg_add_events(uint64_t events[2], const struct sdp_media *m)
{
	for (const struct sdp_line *l = sdp_attr(m->lines, STR("rtpmap")); l;
		l = sdp_attr(l->next, STR("rtpmap"))) {
		struct str name = l->arg, type = str_cut(&name, ' ');
		uint64_t pt;

		name = str_trim(name);
		name = str_cut(&name, '/');
		if (str_eq_nocase(name, STR("telephone-event")) && !str_to_u64(&pt, type, 127))
			events[pt / 64] |= 1ull << pt % 64;
	}
}

static bool is_named(struct str mapped, struct str name)
{
	return !mapped.len || str_eq_nocase(mapped, name);
}

uint8_t neg_quiet(const struct sdp_media *m)
{
	struct str rest = m->formats, names[TYPES];
	uint8_t quiet = NEG_QUIET_ONLY;

	if (!str_eq_nocase(m->kind, STR("audio")))
		return 0;
	type_names(names, m);
	quiet |= is_named(names[0], STR("PCMU")) ? MEDIA_QUIET_PCMU : 0;
	quiet |= is_named(names[8], STR("PCMA")) ? MEDIA_QUIET_PCMA : 0;
	quiet |= is_named(names[9], STR("G722")) ? MEDIA_QUIET_G722 : 0;
	while (rest.len) {
		struct str number = str_trim(str_cut(&rest, ' ')), name;
		uint64_t pt;

		if (str_to_u64(&pt, number, TYPES - 1))
			continue;
		name = names[pt];
		if ((pt == 0 && quiet & MEDIA_QUIET_PCMU) ||
			(pt == 8 && quiet & MEDIA_QUIET_PCMA) ||
			(pt == 9 && quiet & MEDIA_QUIET_G722) || pt == 13 ||
			str_eq_nocase(name, STR("telephone-event")) ||
			str_eq_nocase(name, STR("CN")))
			continue;
		quiet &= (uint8_t)~NEG_QUIET_ONLY;
	}
	return quiet;
}

static bool is_quiet(const struct call *c, const struct side *s)
{
	uint8_t gate = gate_of_side(c, s);

	for (uint32_t to = 0; to < c->sides; to++)
		gate |= s->flow[to];
	return gate & MEDIA_GATE_QUIET;
}

bool gate_needs_session(const struct call *c, const struct side *s, const struct leg *l)
{
	return l->active && !(l->quiet & NEG_QUIET_ONLY) && is_quiet(c, s);
}

bool gate_holds_back(const struct call *c)
{
	for (uint32_t s = 0; s < c->sides; s++)
		for (uint32_t i = 0; is_quiet(c, c->side[s]) && i < c->side[s]->legs; i++) {
			const struct leg *l = c->side[s]->leg[i];

			if (l && l->active && !c->side[s]->listener && !l->audio.has &&
				(l->rx.pass || !(l->quiet & NEG_QUIET_ONLY)))
				return true;
		}
	return false;
}
