/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Checks the media addresses of an SDP, and media-address of the request, before negotiation. A
 * forbidden address refuses the whole offer or answer, because a call without media is of no use.
 * Values that are not destinations pass: port 0, hold (0.0.0.0), host names, media that are not
 * relayed. */
#include "call/calls.h"
#include "call/negotiate.h"

static uint32_t line_number(const struct sdp *sdp, const struct sdp_line *line)
{
	uint32_t n = 1;

	for (const char *c = sdp->body.s; line && c < line->text.s; c++)
		n += *c == '\n';
	return n;
}

static bool allowed(enum reach_verdict v)
{
	return v == REACH_OK || v == REACH_NOWHERE;
}

static struct str why(struct pool *p, const struct sdp *sdp, const struct sdp_line *line,
	const struct endpoint *e, enum reach_verdict v)
{
	char text[ENDPOINT_STRLEN];

	return pool_printf(p, "line %u: %s %s", (unsigned)line_number(sdp, line),
		endpoint_fmt(e, text), reach_text(v));
}

static const struct sdp_line *rtcp_line(const struct sdp_media *m)
{
	return m->has_rtcp ? sdp_attr(m->lines, STR("rtcp")) : m->conn.line;
}

/* media-address replaces our address in c= lines, so packets sent to it may reach this relay. */
static const char *media_address(struct calls *c, const struct ng_request *r, struct str *detail)
{
	struct endpoint e;
	enum reach_verdict v;

	if (!r->media_address.len || endpoint_parse_addr(&e, r->media_address))
		return NULL;
	for (uint32_t i = 0; i < c->reach->locals; i++)
		if (endpoint_addr_eq(&e, &c->reach->local[i].addr) ||
			endpoint_addr_eq(&e, &c->reach->local[i].advertised))
			return NULL;
	e.port = 1;
	v = reach_check(c->reach, &e);
	if (v != REACH_OK && v != REACH_OWN) {
		*detail = str_from(reach_text(v));
		return "media-address is not allowed";
	}
	e.port = 0;
	links_alias(&c->links, &e);
	return NULL;
}

const char *reach_sdp(struct calls *c, struct pool *p, const struct ng_request *r,
	const struct sdp *sdp, struct str *detail)
{
	const char *error = media_address(c, r, detail);

	if (error)
		return error;
	*detail = STR_NONE;
	for (uint32_t i = 0; i < sdp->media_count; i++) {
		const struct sdp_media *m = &sdp->media[i];
		struct endpoint rtp = neg_trusted(r, &m->conn.addr), rtcp = rtp;
		enum reach_verdict v;

		if (!m->port || m->proto == SDP_PROTO_OTHER)
			continue;
		rtp.port = m->port;
		v = links_check(c, r->call_id, &rtp);
		if (!allowed(v)) {
			*detail = why(p, sdp, m->conn.line, &rtp, v);
			return REACH_ERROR;
		}
		if (m->has_rtcp && m->rtcp.family)
			rtcp = neg_trusted(r, &m->rtcp);
		rtcp.port = m->has_rtcp ? m->rtcp.port : (uint16_t)(m->port + 1);
		v = links_check(c, r->call_id, &rtcp);
		if (!allowed(v)) {
			*detail = why(p, sdp, rtcp_line(m), &rtcp, v);
			return REACH_ERROR;
		}
	}
	return NULL;
}
