/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Media that is not RTP (RFC 3264). Datagrams are relayed through ports of ours: T.38 over UDPTL,
 * BFCP, DTLS. TCP is not relayed: each terminal receives the other's address and port unchanged, in
 * the offer and in the answer. Other transports are rejected in the offer, so that both sides have
 * the same m-line.
 *
 * Voice, video and text are relayed as RTP or SRTP only, for no rule about SRTP
 * (transport-protocol, SDES=require) applies to other transports. T.38 is allowed where SRTP is
 * required: a fax is not encrypted. Pure. */
#include "offer/neg_raw.h"
#include "call/in_force.h"
#include "call/plan.h"
#include "call/said.h"
#include "offer/neg_stay.h"
#include "offer/negotiate.h"

bool raw_passes(const struct sdp_media *m)
{
	return m->proto == SDP_TCP;
}

/* Media of RTP in another transport: by its kind, or by "RTP" in the transport's name, as in
 * TCP/RTP/AVP (RFC 4571). */
static bool is_conversation(const struct sdp_media *m)
{
	struct str rest = m->proto_text;

	if (str_eq_nocase(m->kind, STR("audio")) || str_eq_nocase(m->kind, STR("video")) ||
		str_eq_nocase(m->kind, STR("text")))
		return true;
	while (rest.len)
		if (str_eq_nocase(str_cut(&rest, '/'), STR("RTP")))
			return true;
	return false;
}

/* A browser's data channel. It needs ICE, which the relay terminates only for RTP. A browser
 * refuses a whole description with a data channel but no ICE credentials. */
static bool needs_ice(const struct sdp_media *m)
{
	return m->proto == SDP_UDP_DTLS_SCTP && m->ice;
}

bool raw_rejects(struct plan *plan, const struct sdp_media *m, uint32_t i, const struct neg_in *in)
{
	bool known = sdp_proto_is_relayed(m->proto) || raw_passes(m);

	if (sdp_proto_is_rtp(m->proto) || (known && !is_conversation(m) && !needs_ice(m)))
		return false;
	if (m->port && needs_ice(m))
		plan_warn(plan, in->p,
			pool_printf(in->p,
				"media %u: rejected, a data channel with ICE is not relayed",
				(unsigned)i + 1));
	else if (m->port && known)
		plan_warn(plan, in->p,
			pool_printf(in->p,
				"media %u: rejected, " STR_FMT " over " STR_FMT
				" is neither RTP nor SRTP",
				(unsigned)i + 1, STR_ARG(m->kind), STR_ARG(m->proto_text)));
	else if (m->port)
		plan_warn(plan, in->p,
			pool_printf(in->p, "media %u: rejected, " STR_FMT " is not supported",
				(unsigned)i + 1, STR_ARG(m->proto_text)));
	return true;
}

/* Reads the terminal's address. Datagrams have one port; RTP has a second one for RTCP. */
static void said_at(struct leg *l, const struct sdp_media *m, const struct neg_in *in)
{
	neg_said(l, m, in);
	l->said.rtcp_remote = (struct endpoint){0};
	l->said.mux = false;
	keying_drop_offered(&l->keying);
}

void raw_offer(struct leg *from, struct leg *to, const struct sdp_media *m, const struct neg_in *in)
{
	said_at(from, m, in);
	to->asked = (struct leg_asked){.proto = m->proto};
	keying_drop_asked(&to->keying);
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
	plan_fail(plan, NGE_MISFIT,
		pool_printf(in->p, "media %u: " STR_FMT " as the answer to %s", (unsigned)i + 1,
			STR_ARG(m->proto_text), text_of(offered)));
	return false;
}

static void into_force(struct leg *l, enum sdp_proto proto, enum sdp_dir dir,
	const struct endpoint *remote, const struct sdp_media *m)
{
	l->mux = false;
	l->quiet = 0;
	memset(l->events, 0, sizeof(l->events));
	leg_set_plain(l);
	if (!endpoint_is_unspecified(remote)) /* hold: keep the address */
		l->remote = *remote;
	l->rtcp_remote = (struct endpoint){0};
	neg_into_force(l, proto, dir, m);
	l->used = true;
}

/* Reports the end of SRTP for this m-line. DTLS has keys of its own. */
static void tell_end(struct plan *plan, const struct leg *l, const struct sdp_media *m, uint32_t i,
	const struct neg_in *in)
{
	if (!leg_is_encrypted(l) || m->proto == SDP_UDP_TLS_UDPTL || m->proto == SDP_UDP_TLS_BFCP ||
		m->proto == SDP_UDP_DTLS_SCTP)
		return;
	plan->weaker_by_terminal++;
	plan_note(plan, in->p,
		pool_printf(in->p,
			"media %u: SRTP ended on a leg, " STR_FMT " over " STR_FMT
			" is not encrypted",
			(unsigned)i + 1, STR_ARG(m->kind), STR_ARG(m->proto_text)));
}

void raw_answer(struct plan *plan, struct side *from, struct side *to, const struct sdp_media *m,
	uint32_t i, const struct neg_in *in)
{
	struct leg *lf = from->leg[i], *lt = to->leg[i];
	struct leg_said answer = {0};

	neg_said_at(&answer, m, in);
	tell_end(plan, lf, m, i, in);
	tell_end(plan, lt, m, i, in);
	into_force(lf, m->proto, m->dir, &answer.remote, m);
	into_force(lt, lt->said.proto, lt->said.dir, &lt->said.remote, m);
	lf->started = lt->started = to->offer_open;
	plan->media[i].proto = lt->said.proto;
}
