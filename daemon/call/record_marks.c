/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Marks the recorded media of a call, and writes the recording's text file. Works on the negotiated
 * copy. */
#include "call/record_marks.h"
#include "call/model.h"
#include "call/recording.h"

/* Marks one side, or all. */
static void mark_all(struct call *c, bool on)
{
	c->tap_all = on;
	for (uint32_t i = 0; i < c->sides; i++)
		c->side[i]->tap = false;
}

static void mark_side(struct call *c, uint8_t side, bool on)
{
	/* Name the remaining parties when one leaves. */
	for (uint32_t i = 0; i < c->sides && c->tap_all && !on; i++)
		c->side[i]->tap = !c->side[i]->gone;
	if (!on)
		c->tap_all = false;
	c->side[side]->tap = on;
}

static bool anybody(const struct call *c)
{
	bool any = c->tap_all;

	for (uint32_t i = 0; i < c->sides; i++)
		any |= c->side[i]->tap && !c->side[i]->gone;
	return any;
}

static uint8_t side_by_label(const struct call *c, struct str label)
{
	for (uint32_t i = 0; i < c->sides && label.len; i++)
		if (!c->side[i]->gone && str_eq(c->side[i]->label, label))
			return (uint8_t)i;
	return SIDE_NONE;
}

/* Clients send a from-tag with every command, but mean the whole call. So one side is selected only
 * by its label, or by its tag with the flag "directional". */
const char *record_mark(struct call *c, const struct ng_request *r, enum call_record *what)
{
	bool by_tag = r->from_tag.len && ng_flag(r, NG_FLAG_DIRECTIONAL);
	bool all = ng_flag(r, NG_FLAG_ALL) || (!by_tag && !r->label.len);
	uint8_t side = by_tag ? call_side_by_tag(c, r->from_tag) : side_by_label(c, r->label);

	if (*what != CALL_RECORD_START && !c->tap)
		return NGE_NOT_RECORDED;
	if (!all && side == SIDE_NONE)
		return NGE_PARTICIPANT;
	if (*what == CALL_RECORD_START) {
		c->tap_paused = false;
		if (all)
			mark_all(c, true);
		else
			mark_side(c, side, true);
		return NULL;
	}
	if (all) {
		c->tap_paused = *what == CALL_RECORD_PAUSE;
		if (*what == CALL_RECORD_STOP)
			mark_all(c, false);
		return NULL;
	}
	/* The file stays open during a pause, and while any side is recorded. */
	mark_side(c, side, false);
	if (*what == CALL_RECORD_STOP && anybody(c))
		*what = CALL_RECORD_PAUSE;
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
					srtp_suite_get(srtp_params_suite(&l->rx))->name);
		}
	}
	return text;
}
