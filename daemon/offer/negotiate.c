/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by offers, answers and other exchanges: the plan's warnings and errors, local addresses, a
 * terminal's description of media, and putting it into force. Pure. */
#include "call/plan.h"
#include "call/said.h"
#include "offer/neg_flags.h"
#include "offer/negotiate.h"

#include <sys/socket.h>

bool plan_init(struct plan *plan, struct neg_in *in)
{
	*plan = (struct plan){.from = SIDE_NONE, .to = SIDE_NONE};
	plan->media = pool_alloc(in->p, SDP_MAX_MEDIA * sizeof(*plan->media)); /* see mline_map.c */
	neg_unsupported(plan, in);
	if (!plan->media)
		plan_fail(plan, NGE_NOMEM, STR_NONE);
	else if (!in->locals_n)
		plan_fail(plan, NGE_INTERFACE, STR_NONE);
	return !plan->error;
}

/* Whether this m-line exceeds the policy's limit. m-lines that already have ports keep them. */
bool neg_too_many(struct plan *plan, const struct side *from, uint32_t media,
	const struct sdp_media *m, const struct neg_in *in)
{
	uint32_t most = in->policy->max_medias ? in->policy->max_medias : SDP_MAX_MEDIA, used = 0;

	if (!sdp_proto_is_relayed(m->proto) || !m->port || from->leg[media]->used)
		return false;
	for (uint32_t i = 0; i < from->legs; i++)
		used += from->leg[i] && from->leg[i]->used;
	if (used < most)
		return false;
	if (!plan->too_many)
		plan_warn(plan, in->p,
			plan_media_name(in->p, media, "rejected: more m-lines than max-medias"));
	plan->too_many = true;
	return true;
}

/* --- Sides ------------------------------------------------------------------------------------ */

/* The local address for a side: of the named interface, in the right family. */
uint8_t neg_local(struct plan *plan, const struct neg_in *in, struct str name, int family)
{
	struct str want = name.len ? name : str_from(in->locals_n ? in->locals[0].name : "");
	bool known = false;
	int legacy = str_eq(name, STR("internal")) ? AF_INET
		: str_eq(name, STR("external"))    ? AF_INET6
						   : 0;

	for (uint32_t i = 0; i < in->locals_n; i++) {
		bool same = relay_local_has_name(&in->locals[i], want);

		known |= same;
		if (same && (!family || in->locals[i].addr.family == family))
			return (uint8_t)i;
	}
	/* Old flags that chose between IPv4 and IPv6. */
	if (!known && legacy)
		return neg_local(plan, in, STR_NONE, legacy);
	if (!known && name.len)
		plan_warn(plan, in->p, pool_printf(in->p, "no interface " STR_FMT, STR_ARG(name)));
	for (uint32_t i = 0; i < in->locals_n && !(known && name.len); i++)
		if (in->locals[i].addr.family == family)
			return (uint8_t)i;
	for (uint32_t i = 0; i < in->locals_n; i++)
		if (relay_local_has_name(&in->locals[i], want))
			return (uint8_t)i;
	return 0;
}

int neg_family(const struct sdp *s)
{
	for (uint32_t i = 0; i < s->media_count; i++)
		if (s->media[i].conn.addr.family)
			return s->media[i].conn.addr.family;
	return s->conn.addr.family ? s->conn.addr.family : s->origin_addr.family;
}

/* --- Descriptions of media -------------------------------------------------------------------- */

static void keep_text(char *to, size_t size, struct str text)
{
	memset(to, 0, size);
	if (text.len)
		memcpy(to, text.s, text.len < size ? text.len : size - 1);
}

void neg_set_kind(struct leg *l, const struct sdp_media *m)
{
	keep_text(l->kind, sizeof(l->kind), m->kind);
}

bool neg_other_kind(const struct leg *l, const struct sdp_media *m)
{
	char kind[sizeof(l->kind)];

	keep_text(kind, sizeof(kind), m->kind);
	return *l->kind && !str_eq_nocase(str_from(l->kind), str_from(kind));
}

void neg_warn_kind(struct plan *plan, struct pool *p, const struct leg *l,
	const struct sdp_media *m, uint32_t i)
{
	plan_warn(plan, p,
		pool_printf(p, "media %u: refused, " STR_FMT " as the answer to %s",
			(unsigned)i + 1, STR_ARG(m->kind), l->kind));
}

void neg_said(struct leg *l, const struct sdp_media *m, const struct neg_in *in)
{
	neg_said_at(&l->said, m, in);
}

/* --- Putting into force ----------------------------------------------------------------------- */

void neg_into_force(
	struct leg *l, enum sdp_proto proto, enum sdp_dir dir, const struct sdp_media *m)
{
	l->active = true;
	l->proto = proto;
	if (sdp_proto_is_rtp(proto))
		l->rtp_proto = proto;
	l->dir = dir;
	neg_set_kind(l, m);
	keep_text(l->codec, sizeof(l->codec), sdp_first_codec(m));
}

void neg_close(struct leg *l, bool for_good)
{
	if (!l)
		return;
	l->active = false;
	if (for_good)
		l->used = false;
}
