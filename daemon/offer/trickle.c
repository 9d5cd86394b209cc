/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A fragment changes a call like an offer, but only adds candidates. They belong to the credentials
 * in force, or to those of a restart that waits for its answer. Fragments with other credentials
 * are ignored: they come too early, too late, or from a stranger. Candidates receive only
 * connectivity checks, and only where media may go (call/reach.h). */
#include "offer/trickle.h"

#include <errno.h>

#include "base/secmem.h"
#include "call/call_int.h"
#include "call/table.h"
#include "offer/neg_ice.h"

struct trickle {
	struct calls *c;
	struct pool *p;
	struct side *side;
	uint32_t added, ignored;
	bool ended; /* the fragment completes a leg's candidates */
};

/* Finds the leg of a section by a=mid, else by its number. */
static struct leg *leg_of(const struct side *s, const struct sdp_ice_section *section)
{
	for (uint32_t i = 0; section->mid.len && i < s->legs; i++)
		if (s->leg[i] && str_eq(str_from(s->leg[i]->said.mid), section->mid))
			return s->leg[i];
	return side_leg_get(s, section->index);
}

/* Both must match. A stranger who only saw checks or SIP headers does not know the password. */
static bool has_credentials(const struct sdp_ice *said, const char *ufrag, const char *pwd)
{
	return str_eq(said->ufrag, str_from(ufrag)) && said->pwd.len == strlen(pwd) &&
		secmem_equal(said->pwd.s, pwd, said->pwd.len);
}

static bool is_current(const struct leg_ice *ice, const struct sdp_ice *said)
{
	return sdp_ice_used(said) && has_credentials(said, ice->remote_ufrag, ice->remote_pwd);
}

/* Whether it belongs to an ICE restart that waits for its answer. */
static bool is_next(const struct leg_ice *ice, const struct sdp_ice *said)
{
	return ice->on && ice->restart && sdp_ice_used(said) &&
		has_credentials(said, ice->next_ufrag, ice->next_pwd);
}

/* Adds a section's candidates to those of earlier sections of the same leg: the m-lines of a bundle
 * share a leg's candidates, and a mid may come twice. Returns 0 or -ENOMEM. */
static int add(struct trickle *t, struct leg_ice *ice, const struct sdp_ice *said)
{
	uint32_t n = ice->candidates, more = min_u32(said->count, SDP_ICE_CANDIDATES - n);
	struct ice_candidate *to = pool_alloc(t->p, (n + more + 1) * sizeof(*to));

	if (!to)
		return -ENOMEM;
	if (n)
		memcpy(to, ice->candidate, n * sizeof(*to));
	memcpy(to + n, said->candidate, more * sizeof(*to));
	more = neg_ice_filter(to + n, more, t->c->reach);
	ice->candidate = to;
	ice->candidates = n + more;
	t->added += more;
	t->ignored += said->count - more + said->ignored;
	return 0;
}

static int each(void *arg, const struct sdp_ice_section *section)
{
	struct trickle *t = arg;
	const struct sdp_ice *said = &section->ice;
	struct leg *l = leg_of(t->side, section);
	bool of_next;

	if (l && l->via)
		l = t->side->leg[l->via - 1];
	of_next = l && !is_current(&l->ice, said);
	/* One list has candidates of one generation. */
	if (!l || !(l->ice.on || l->ice.said) || (of_next && !is_next(&l->ice, said)) ||
		(l->ice.candidates && l->ice.of_next != of_next)) {
		t->ignored += said->count;
		return 0;
	}
	l->ice.of_next = of_next;
	if (!of_next) {
		t->ended |= said->end_of_candidates && !l->ice.last;
		l->ice.last |= said->end_of_candidates;
	}
	return add(t, &l->ice, said);
}

void calls_trickle(struct calls *c, struct pool *p, const struct ng_request *r, bool is_answer,
	uint64_t now_ns, struct call_reply *out)
{
	struct str tag = is_answer ? r->to_tag : r->from_tag;
	struct call *prev = call_table_find(&c->table, r->call_id), *next;
	uint8_t side = prev ? call_side_by_tag(prev, tag) : SIDE_NONE;
	struct trickle t = {.c = c, .p = p};
	int err;

	if (!c->relay->sessions) {
		out->warning = STR("ICE is not available: the fragment was ignored");
		return;
	}
	out->error = !r->sdp.len    ? NGE_NO_SDP
		: !r->call_id.len   ? NGE_NO_CALL_ID
		: !prev             ? NGE_UNKNOWN_CALL
		: side == SIDE_NONE ? NGE_PARTICIPANT
				    : NULL;
	if (out->error)
		return;
	next = call_clone(&c->keys, prev);
	if (!next) {
		out->error = NGE_NOMEM;
		return;
	}
	t.side = next->side[side];
	err = sdp_ice_fragment_read(r->sdp, each, &t);
	if (err) {
		out->error = err == -EINVAL ? NGE_SDP : NGE_NOMEM;
		call_free(&c->keys, next);
		return;
	}
	if (t.ignored)
		out->warning = pool_printf(p, "ignored candidates: %u", (unsigned)t.ignored);
	if (!t.added && !t.ended) {
		call_free(&c->keys, next);
		return;
	}
	next->signal_ns = now_ns;
	err = calls_put_in_force(c, p, prev, next, now_ns);
	if (err)
		calls_resource_error(out, err, false);
}
