/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What of a call is recorded, and what the recording's text file says of it. Works on the copy that is to come into force. */
#include "call/model.h"

static const char *mark_start(struct call *c, const struct ng_request *r)
{
	uint8_t side = r->from_tag.len ? call_side_by_tag(c, r->from_tag) : SIDE_NONE;

	c->tap_paused = false;
	if (!r->from_tag.len || ng_flag(r, NG_FLAG_ALL)) {
		c->tap_all = true;
		return NULL;
	}
	if (side == SIDE_NONE)
		return "No matching participant in the call";
	c->side[side]->tap = true;
	return NULL;
}

const char *record_mark(struct call *c, const struct ng_request *r, enum call_record what)
{
	if (what == CALL_RECORD_START)
		return mark_start(c, r);
	if (!c->tap)
		return "The call is not being recorded";
	c->tap_paused = what == CALL_RECORD_PAUSE;
	if (what == CALL_RECORD_STOP) {
		c->tap_all = false;
		for (uint32_t i = 0; i < c->sides; i++)
			c->side[i]->tap = false;
	}
	return NULL;
}

struct str record_about(struct pool *p, const struct call *c)
{
	struct str text = STR("");

	for (uint32_t s = 0; s < c->sides; s++) {
		const struct side *side = c->side[s];

		if (side->gone)
			continue;
		text = pool_printf(p, STR_FMT "side %u: tag " STR_FMT "%s" STR_FMT "\n",
			STR_ARG(text), s + 1, STR_ARG(side->tag), side->label.len ? ", label " : "",
			STR_ARG(side->label));
		for (uint32_t i = 0; i < side->legs; i++) {
			const struct leg *l = side->leg[i];

			if (l && l->has_port)
				text = pool_printf(p,
					STR_FMT
					"side %u media %u: %s, to our port %u, received as %s\n",
					STR_ARG(text), s + 1, i + 1, l->kind, l->port.rtp.port,
					srtp_suite_get(l->rx.master.suite)->name);
		}
	}
	return text;
}
