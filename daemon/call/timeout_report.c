/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Selects receiver and content of the report when a call times out, because the proxy may still
 * have its dialog. A request can name an address (ng's xmlrpc-callback). The operator restricts
 * such addresses: otherwise ng clients could make this host connect anywhere. control/ sends the
 * report. Pure. */
#include "call/call.h"
#include "call/plan.h"
#include "call/timeout_report.h"

static bool allowed(const struct call_nets *nets, const struct endpoint *e)
{
	for (uint32_t i = 0; i < nets->n; i++)
		if (endpoint_in_net(e, &nets->net[i], nets->bits[i]))
			return true;
	return false;
}

/* The port does not matter: the callback uses the port of --b2b-url. */
static bool reaches(
	const struct call_nets *nets, const struct reach *r, const struct endpoint *whom)
{
	struct endpoint e = *whom;

	e.port = 1;
	return reach_is_named(nets, whom) || reach_check(r, &e) == REACH_OK;
}

bool timeout_report_allowed(
	const struct call_nets *nets, const struct reach *reach, const struct endpoint *whom)
{
	return !endpoint_is_unspecified(whom) && !endpoint_is_multicast(whom) &&
		allowed(nets, whom) && reaches(nets, reach, whom);
}

void timeout_report_request(struct plan *plan, struct call *c, const struct neg_in *in)
{
	const struct endpoint *whom = &in->r->callback;

	if (!c->asked_from.family)
		c->asked_from = in->r->from;
	if (!whom->family)
		return;
	if (in->policy->told == CALL_TOLD_NOBODY)
		plan_warn(plan, in->p, STR("xmlrpc-callback has no effect without --b2b-url"));
	else if (in->policy->told == CALL_TOLD_FIXED)
		plan_warn(plan, in->p,
			STR("xmlrpc-callback has no effect: --b2b-url contains no %%"));
	else if (endpoint_is_unspecified(whom) || endpoint_is_multicast(whom) ||
		!allowed(&in->policy->told_nets, whom))
		plan_warn(plan, in->p, STR("xmlrpc-callback: --b2b-allow does not allow it"));
	else if (!timeout_report_allowed(&in->policy->told_nets, in->reach, whom))
		plan_warn(plan, in->p,
			STR("xmlrpc-callback: address of this host, or not routable: --b2b-allow must name it"));
	else
		c->told = *whom;
}

/* A party that can be in a dialog: it has a tag, and is neither only a listener nor only a
 * publisher. */
static bool in_dialog(const struct side *s)
{
	return !s->gone && !s->listener && !s->publisher && s->tag.len;
}

void timeout_report_write(struct call_timeout *out, const struct call *c, uint32_t sides)
{
	uint8_t at[CALL_MAX_SIDES];

	*out = (struct call_timeout){
		.call_id = c->id, .whom = c->told.family ? c->told : c->asked_from};
	for (uint32_t i = 0; i < c->sides; i++) {
		if (!in_dialog(c->side[i]))
			continue;
		out->others_live |= !(sides >> i & 1);
		if (!(sides >> i & 1))
			continue;
		at[i] = (uint8_t)out->tags;
		out->tag[out->tags++] = c->side[i]->tag;
	}
	/* Each side names one peer. Both sides name a pair; in a fork, the branch does. */
	for (uint32_t i = 0; i < c->sides; i++) {
		uint8_t o = c->side[i]->peer;
		uint32_t first, last;

		if (!in_dialog(c->side[i]) || o == SIDE_NONE || !in_dialog(c->side[o]))
			continue;
		if (!(sides >> i & 1) || !(sides >> o & 1))
			continue;
		first = i < o ? i : o;
		last = i < o ? o : i;
		if (i == first && c->side[last]->peer == first)
			continue; /* the later side names the pair, too */
		out->pair[out->pairs++] = (struct call_pair){at[first], at[last]};
	}
}

_Static_assert(CALL_TOLD_MAX >= CALL_MAX_SIDES, "every side has a place");
