/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ng's "verify SAS" (RFC 6189 7.1): the operator has compared the SAS of a ZRTP exchange with the
 * one that the terminal shows. The next exchange with this terminal is then verified, too. */
#include "call/apply.h"
#include "call/history.h"
#include "call/call_int.h"
#include "call/table.h"
#include "keying/keying.h"

static bool is_meant(const struct side *s, const struct ng_request *r)
{
	return !s->gone && (!r->from_tag.len || side_has_tag(s, r->from_tag));
}

static uint32_t mark(struct side *s, struct zrtp_store *store, bool verified)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->legs; i++)
		n += s->leg[i] && keying_verify(&s->leg[i]->keying, store, verified);
	return n;
}

static void note(struct call *call, const struct ng_request *r, bool verified, uint64_t now_ns)
{
	for (uint32_t i = 0; i < call->sides; i++) {
		const struct side *s = call->side[i];
		const struct keying_zrtp *z =
			s->legs && s->leg[0] ? keying_sas(&s->leg[0]->keying) : NULL;

		if (z && is_meant(s, r))
			history_add(&call->history, now_ns, HISTORY_COMMAND, s->tag,
				"SAS %s marked as %s", z->sas,
				verified ? "verified" : "not verified");
	}
}

void calls_verify_sas(struct calls *c, struct pool *p, const struct ng_request *r, bool verified,
	uint64_t now_ns, struct call_reply *out)
{
	struct call *call = call_table_find(&c->table, r->call_id), *next = NULL;
	uint32_t n = 0;
	int err;

	*out = (struct call_reply){0};
	if (call)
		next = call_clone(&c->keys, call);
	if (!next) {
		out->error = call ? NGE_NOMEM : NGE_UNKNOWN_CALL;
		return;
	}
	for (uint32_t i = 0; i < next->sides; i++)
		if (is_meant(next->side[i], r))
			n += mark(next->side[i], c->policy.zrtp_store, verified);
	if (!n) {
		call_free(&c->keys, next);
		out->error = NGE_NO_SAS;
		return;
	}
	err = calls_put_in_force(c, p, call, next, now_ns);
	if (err)
		calls_resource_error(out, err, false);
	else
		note(next, r, verified, now_ns);
}
