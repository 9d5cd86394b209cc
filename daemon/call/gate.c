/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which sides a command about their media means (ng's "block media", "block DTMF" and the ways back), and what is then true of
 * them. Works on the copy of a call that is to come into force. */
#include "call/model.h"

static bool at_address(const struct side *s, const struct endpoint *addr)
{
	for (uint32_t i = 0; i < s->legs; i++)
		if (s->leg[i] && endpoint_addr_eq(&s->leg[i]->remote, addr))
			return true;
	return false;
}

/* By tag, else by label, else by address; without any of them all sides are meant, as with the flag "all". */
static bool meant(const struct side *s, const struct ng_request *r, const struct endpoint *addr)
{
	if (s->gone)
		return false;
	if (ng_flag(r, NG_FLAG_ALL))
		return true;
	if (r->from_tag.len)
		return side_has_tag(s, r->from_tag);
	if (r->label.len)
		return str_eq(s->label, r->label);
	return !addr->family || at_address(s, addr);
}

const char *gate_set(struct call *c, const struct ng_request *r, uint8_t bit, bool on)
{
	struct endpoint addr = {0};
	uint32_t found = 0;

	if (r->address.len && endpoint_parse_addr(&addr, r->address))
		return "Malformed address in message";
	for (uint32_t i = 0; i < c->sides; i++) {
		struct side *s = c->side[i];

		if (!meant(s, r, &addr))
			continue;
		s->gate = on ? s->gate | bit : s->gate & (uint8_t)~bit;
		found++;
	}
	return found ? NULL : "No matching participant in the call";
}
