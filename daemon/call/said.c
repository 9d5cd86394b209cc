/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads a terminal's profile and address from an m-line. Pure. */
#include "call/plan.h"
#include "call/said.h"

struct endpoint neg_trusted(const struct ng_request *r, const struct endpoint *signalled)
{
	struct endpoint e;

	if (!ng_flag(r, NG_FLAG_SIP_SOURCE_ADDRESS) || !r->received_from.len ||
		endpoint_is_unspecified(signalled) || endpoint_parse_addr(&e, r->received_from))
		return *signalled;
	return e;
}

static void remotes(const struct neg_in *in, const struct sdp_media *m, bool mux,
	struct endpoint *rtp, struct endpoint *rtcp)
{
	struct endpoint addr = neg_trusted(in->r, &m->conn.addr);

	*rtp = addr;
	rtp->port = m->port;
	*rtcp = *rtp;
	if (mux)
		return;
	if (m->has_rtcp && m->rtcp.family)
		*rtcp = neg_trusted(in->r, &m->rtcp);
	rtcp->port = m->has_rtcp ? m->rtcp.port : (uint16_t)(m->port + 1);
}

void neg_said_mid(struct leg_said *said, const struct sdp_media *m)
{
	memset(said->mid, 0, sizeof(said->mid));
	if (m->mid.len && m->mid.len < sizeof(said->mid))
		memcpy(said->mid, m->mid.s, m->mid.len);
}

void neg_said_at(struct leg_said *said, const struct sdp_media *m, const struct neg_in *in)
{
	said->proto = m->proto;
	said->dir = m->dir;
	said->mux = m->rtcp_mux;
	said->feedback = sdp_attr(m->lines, STR("rtcp-fb"));
	said->bundle = sdp_is_bundled(in->sdp, m);
	said->mid_ext = sdp_mid_ext(in->sdp, m);
	memset(said->types, 0, sizeof(said->types));
	sdp_payload_types(said->types, m);
	sdp_ssrcs(said->ssrc, m);
	neg_said_mid(said, m);
	remotes(in, m, false, &said->remote, &said->rtcp_remote);
}

/* Old-style hold names no address: keep the known one. */
void neg_set_remote(
	struct leg *l, const struct endpoint *rtp, const struct endpoint *rtcp, bool mux)
{
	l->mux = mux;
	if (endpoint_is_unspecified(rtp))
		return;
	l->remote = *rtp;
	l->rtcp_remote = mux || endpoint_is_unspecified(rtcp) ? *rtp : *rtcp;
	if (!mux && endpoint_is_unspecified(rtcp))
		l->rtcp_remote.port = (uint16_t)(rtp->port + 1);
}

void neg_remotes(struct leg *l, const struct sdp_media *m, bool mux, const struct neg_in *in)
{
	struct endpoint rtp, rtcp;

	remotes(in, m, mux, &rtp, &rtcp);
	neg_set_remote(l, &rtp, &rtcp, mux);
}
