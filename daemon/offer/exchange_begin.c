/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Checks before an offer or answer becomes an exchange. */
#include "offer/exchange_int.h"

#include "base/secmem.h"
#include "call/call_int.h"
#include "call/table.h"
#include "offer/loop_protect.h"
#include "offer/reach_sdp.h"
#include "offer/sources.h"

bool exchange_parse(struct exchange *x)
{
	enum sdp_err err;
	struct str body = x->r->sdp;
	uint32_t line = 0;

	if (x->kind == LISTEN) { /* we offer, from the sources' descriptions */
		body = subscribe_body(x->p, x->prev, x->r, &x->out->error);
		if (!body.s)
			return false;
		x->out->error = NULL;
	}
	x->sdp = pool_alloc(x->p, sizeof(*x->sdp));
	if (!x->sdp) {
		x->out->error = NGE_NOMEM;
		return false;
	}
	err = sdp_parse(x->sdp, x->p, body, &line);
	if (err == SDP_OK)
		return true;
	x->out->error = err == SDP_ERR_NO_CONNECTION ? NGE_SDP_CONNECTION
		: err == SDP_ERR_NOMEM               ? NGE_NOMEM
						     : NGE_SDP;
	x->out->detail = pool_printf(x->p, "line %u: %s", (unsigned)line, sdp_err_text(err));
	return false;
}

bool exchange_is_allowed(struct exchange *x)
{
	x->out->error = reach_sdp(x->c, x->p, x->r, x->sdp, &x->out->detail);
	return !x->out->error;
}

/* A spiral: xcipher wrote this SDP, so it passes unchanged. */
static bool is_loop(const struct exchange *x)
{
	return ng_flag(x->r, NG_FLAG_LOOP_PROTECT) &&
		loop_is_ours(&x->c->policy, x->r->call_id, x->sdp);
}

static const char *missing(const struct ng_request *r, bool is_answer)
{
	return !r->sdp.len                    ? NGE_NO_SDP
		: !r->call_id.len             ? NGE_NO_CALL_ID
		: !r->from_tag.len            ? NGE_NO_FROM_TAG
		: is_answer && !r->to_tag.len ? NGE_NO_TO_TAG
					      : NULL;
}

bool exchange_over_limit(struct exchange *x)
{
	static const char *const message[] = {[CALL_LIMIT_NONE] = NULL,
#define X(id, name, message) [CALL_LIMIT_##id] = message,
		CALL_LIMITS(X)
#undef X
	};
	struct calls *c = x->c;
	enum call_limit limit = c->policy.max_calls && c->table.count >= c->policy.max_calls
		? CALL_LIMIT_SESSIONS
		: c->limit;

	if (c->passive)
		limit = CALL_LIMIT_STANDBY;
	else if (limit == CALL_LIMIT_NONE || ng_flag(x->r, NG_FLAG_EMERGENCY))
		return false;
	x->out->load_limit = true;
	x->out->error = message[limit];
	c->counters.refused++;
	c->counters.limited[limit]++;
	return true;
}

bool exchange_begin(struct exchange *x)
{
	*x->out = (struct call_reply){.error = missing(x->r, x->kind == ANSWER)};
	if (x->out->error || !exchange_parse(x))
		return false;
	if (is_loop(x)) { /* before checking addresses, which are media ports of this call */
		x->out->sdp = x->r->sdp;
		return false;
	}
	if (!exchange_is_allowed(x))
		return false;
	x->prev = call_table_find(&x->c->table, x->r->call_id);
	return true;
}

struct str exchange_draw_name(struct pool *p, struct call_reply *out)
{
	uint64_t v[2];

	if (secmem_random(v, sizeof(v)))
		out->error = NGE_INTERNAL;
	return pool_printf(p, "%016llx%016llx", (unsigned long long)v[0], (unsigned long long)v[1]);
}
