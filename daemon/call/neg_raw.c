/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Media that is not RTP (RFC 3264). Datagrams are relayed through ports of ours: T.38 over UDPTL, BFCP, DTLS. TCP is not relayed: each
 * terminal receives the other's address and port unchanged, in the offer and in the answer. Other transports are rejected in the
 * offer, so that both sides have the same m-line. Pure. */
#include "call/negotiate.h"

bool raw_passes(const struct sdp_media *m)
{
	return m->proto == SDP_TCP;
}

bool raw_rejects(struct plan *plan, const struct sdp_media *m, uint32_t i, const struct neg_in *in)
{
	if (sdp_proto_is_relayed(m->proto) || raw_passes(m))
		return false;
	if (m->port)
		plan_warn(plan, in->p,
			pool_printf(in->p, "media %u: rejected, " STR_FMT " is not supported",
				(unsigned)i + 1, STR_ARG(m->proto_text)));
	return true;
}

/* The terminal's only address: there is no second port as for RTCP. */
static void said_at(struct leg *l, const struct sdp_media *m, const struct neg_in *in)
{
	neg_said(l, m, in);
	l->said.rtcp_remote = (struct endpoint){0};
	l->said.mux = false;
	l->said.lines = 0;
	explicit_bzero(l->said.line, sizeof(l->said.line));
	explicit_bzero(&l->said.bag, sizeof(l->said.bag));
}

void raw_offer(struct leg *from, struct leg *to, const struct sdp_media *m, const struct neg_in *in)
{
	said_at(from, m, in);
	to->asked = (struct leg_asked){.proto = m->proto};
	from->used = to->used = true;
}

static const char *text_of(enum sdp_proto p)
{
	return p == SDP_PROTO_OTHER ? "an unknown transport" : sdp_proto_name(p);
}

bool raw_fits(struct plan *plan, const struct leg *offerer, const struct sdp_media *m, uint32_t i,
	const struct neg_in *in)
{
	enum sdp_proto offered = offerer->said.proto;

	if (sdp_proto_is_rtp(offered) ? sdp_proto_is_rtp(m->proto) : offered == m->proto)
		return true;
	plan_fail(plan, "Answer does not fit the offer",
		pool_printf(in->p, "media %u: " STR_FMT " as the answer to %s", (unsigned)i + 1,
			STR_ARG(m->proto_text), text_of(offered)));
	return false;
}

static void into_force(struct leg *l, enum sdp_proto proto, enum sdp_dir dir,
	const struct endpoint *remote, const struct sdp_media *m)
{
	l->mux = l->pass_rx = l->pass_tx = false;
	l->quiet = 0;
	memset(l->events, 0, sizeof(l->events));
	crypto_set_rx(l, NULL, NULL);
	crypto_set_tx(l, NULL);
	if (!endpoint_is_unspecified(remote)) /* hold: the address stays */
		l->remote = *remote;
	l->rtcp_remote = (struct endpoint){0};
	neg_into_force(l, proto, dir, m);
	l->used = true;
}

void raw_answer(struct plan *plan, struct side *from, struct side *to, const struct sdp_media *m,
	uint32_t i, const struct neg_in *in)
{
	struct leg *lf = from->leg[i], *lt = to->leg[i];
	struct leg_said answer = {0};

	neg_said_at(&answer, m, in);
	into_force(lf, m->proto, m->dir, &answer.remote, m);
	into_force(lt, lt->said.proto, lt->said.dir, &lt->said.remote, m);
	lf->started = lt->started = to->offer_open;
	plan->media[i].proto = lt->said.proto;
}
