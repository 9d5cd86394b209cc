/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See names.h. */
#include "call/names.h"

struct str names_value(struct str metadata, struct str key)
{
	while (metadata.len) {
		struct str value = str_cut(&metadata, '|'), name = str_cut(&value, ':');

		if (str_eq_nocase(name, key))
			return value;
	}
	return STR_NONE;
}

static struct str of_side(const struct call *c, uint32_t side)
{
	if (side >= c->sides || c->side[side]->gone)
		return STR_NONE;
	return c->side[side]->label.len ? c->side[side]->label : c->side[side]->tag;
}

void names_of(struct names *out, const struct call *c)
{
	uint32_t callee = c->sides && c->side[0]->peer != SIDE_NONE ? c->side[0]->peer : 1;

	out->from = names_value(c->metadata, STR("from"));
	out->to = names_value(c->metadata, STR("to"));
	if (!out->from.len)
		out->from = of_side(c, 0);
	if (!out->to.len)
		out->to = of_side(c, callee);
}
