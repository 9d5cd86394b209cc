/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Checks all media destinations in an SDP, and media-address of the request, before negotiation. A
 * forbidden one refuses the whole offer or answer, because a call without media is useless. Port 0,
 * hold (0.0.0.0, names in .invalid) and media that is not relayed are not destinations. Other
 * names, and forms such as "127.1", are refused: nothing is resolved here. */
#include "offer/reach_sdp.h"
#include "call/call_int.h"
#include "call/said.h"

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

/* The text of "IN IP4 x" if x is an unusable address; else empty. */
static struct str no_address(struct str text)
{
	struct endpoint e;
	struct str net = str_word(&text), addr, whole;

	(void)str_word(&text);
	whole = addr = str_word(&text);
	addr = str_cut(&addr, '/');
	if (!whole.len || sdp_is_invalid_name(addr) ||
		(str_eq_nocase(net, STR("IN")) && endpoint_parse_addr(&e, addr) == 0))
		return STR_NONE;
	return whole;
}

/* False: this media has an invalid address, described in detail. */
static bool are_addresses(
	struct pool *p, const struct sdp *sdp, const struct sdp_media *m, struct str *detail)
{
	const struct sdp_line *line = m->conn.line;
	struct str text = line ? no_address(line->value) : STR_NONE, port;

	if (!text.len && m->has_rtcp) {
		line = sdp_attr(m->lines, STR("rtcp"));
		text = line->arg;
		port = str_word(&text);
		text = port.len ? no_address(text) : STR_NONE;
	}
	if (text.len)
		*detail = pool_printf(p,
			"line %u: \"" STR_FMT
			"\" is not an IP address; host names are not resolved",
			(unsigned)line_number(sdp, line), STR_ARG(text));
	return !text.len;
}

/* The address that an SDP writes into c= lines instead of ours also leads to us. */
static const char *media_address(struct calls *c, const struct ng_request *r, struct str *detail)
{
	struct endpoint e;
	enum reach_verdict v;

	if (!r->media_address.len || endpoint_parse_addr(&e, r->media_address) ||
		reach_is_media_address(c->reach, &e))
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

		if (!m->port || !sdp_proto_is_relayed(m->proto))
			continue;
		/* With the SIP source address, the SDP's address is ignored. */
		if (endpoint_addr_eq(&rtp, &m->conn.addr) && !are_addresses(p, sdp, m, detail))
			return REACH_ERROR;
		rtp.port = m->port;
		v = links_check(c, r->call_id, &rtp);
		if (!allowed(v)) {
			*detail = why(p, sdp, m->conn.line, &rtp, v);
			return REACH_ERROR;
		}
		if (sdp_proto_is_raw(m->proto))
			continue;
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
