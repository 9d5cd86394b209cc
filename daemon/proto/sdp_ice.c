/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ICE in SDP and in trickle fragments: RFC 8839 5, RFC 8840 9. Names of hosts are never looked up:
 * such candidates are ignored. */
#include "proto/sdp_ice.h"

#include <errno.h>

static const struct str type_names[] = {
#define X(id, text) {text, sizeof(text) - 1},
	ICE_CANDIDATE_TYPES(X)
#undef X
};

uint32_t ice_candidate_priority(enum ice_candidate_type t, uint16_t local_pref, uint8_t component)
{
	static const uint8_t preference[] = {/* RFC 8445 5.1.2.2 */
		[ICE_HOST] = 126,
		[ICE_PRFLX] = 110,
		[ICE_SRFLX] = 100,
		[ICE_RELAY] = 0};

	return (uint32_t)preference[t] << 24 | (uint32_t)local_pref << 8 | (256u - component);
}

void ice_prefer(const struct endpoint *addr, uint32_t n, uint16_t *preference, uint8_t *foundation)
{
	uint8_t foundations = 0, rank[2] = {0};

	for (uint32_t i = 0; i < n; i++) {
		uint8_t other = addr[i].family != addr[0].family;
		uint32_t k = 0;

		while (k < i && !endpoint_addr_eq(&addr[k], &addr[i]))
			k++;
		foundation[i] = k < i ? foundation[k] : ++foundations;
		preference[i] =
			k < i ? preference[k] : (uint16_t)(65535 - 2 * rank[other]++ - other);
	}
}

/* ice-char of RFC 8839 5.1 */
static bool is_ice_text(struct str s, size_t min, size_t max)
{
	if (s.len < min || s.len > max)
		return false;
	for (size_t i = 0; i < s.len; i++) {
		char c = s.s[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
			    c == '+' || c == '/'))
			return false;
	}
	return true;
}

/* --- Candidates ------------------------------------------------------------------------------- */

static bool find_type(uint8_t *out, struct str name)
{
	for (size_t i = 0; i < ARRAY_LEN(type_names); i++) {
		if (!str_eq_nocase(name, type_names[i]))
			continue;
		*out = (uint8_t)i;
		return true;
	}
	return false;
}

int ice_candidate_parse(struct ice_candidate *out, struct str text)
{
	struct ice_candidate c = {0};
	struct str rest = text, foundation, transport, addr, type;
	uint64_t component, priority, port;

	if (rest.len > 10 && str_eq_nocase((struct str){rest.s, 10}, STR("candidate:")))
		rest = (struct str){rest.s + 10, rest.len - 10};
	foundation = str_word(&rest);
	if (!is_ice_text(foundation, 1, sizeof(c.foundation)) ||
		str_to_u64(&component, str_word(&rest), 256) || component == 0)
		return -EINVAL;
	transport = str_word(&rest);
	if (transport.len == 0 || str_to_u64(&priority, str_word(&rest), UINT32_MAX))
		return -EINVAL;
	addr = str_word(&rest);
	if (addr.len == 0 || str_to_u64(&port, str_word(&rest), 65535) ||
		!str_eq_nocase(str_word(&rest), STR("typ")))
		return -EINVAL;
	type = str_word(&rest);
	if (type.len == 0)
		return -EINVAL;
	if (!str_eq_nocase(transport, STR("udp")) || component > 2 || port == 0 ||
		!find_type(&c.type, type) || endpoint_parse_addr(&c.addr, addr))
		return -EPROTONOSUPPORT;
	c.addr.port = (uint16_t)port;
	c.component = (uint8_t)component;
	c.priority = (uint32_t)priority;
	c.foundation_len = (uint8_t)foundation.len;
	memcpy(c.foundation, foundation.s, foundation.len);
	*out = c;
	return 0;
}

void ice_candidate_write(struct sbuf *b, const struct ice_candidate *c)
{
	char addr[ENDPOINT_STRLEN];

	sbuf_printf(b, "a=candidate:%.*s %u UDP %u %s %u typ " STR_FMT, (int)c->foundation_len,
		c->foundation, c->component, c->priority, endpoint_fmt_addr(&c->addr, addr),
		c->addr.port, STR_ARG(type_names[c->type]));
	if (c->type != ICE_HOST)
		sbuf_printf(b, " raddr %s rport 9", c->addr.family == AF_INET ? "0.0.0.0" : "::");
}

/* --- Attributes ------------------------------------------------------------------------------- */

static void take_options(struct sdp_ice *ice, struct str arg)
{
	for (struct str w = str_word(&arg); w.len > 0; w = str_word(&arg))
		ice->trickle = ice->trickle || str_eq_nocase(w, STR("trickle"));
}

static void take_candidate(struct sdp_ice *ice, struct str arg)
{
	struct ice_candidate c;

	if (ice->count < SDP_ICE_CANDIDATES && ice_candidate_parse(&c, arg) == 0)
		ice->candidate[ice->count++] = c;
	else
		ice->ignored++;
}

static void take_attr(struct sdp_ice *ice, struct str name, struct str arg)
{
	if (str_eq(name, STR("candidate")))
		take_candidate(ice, arg);
	else if (str_eq(name, STR("ice-ufrag")))
		ice->ufrag = is_ice_text(arg, SDP_ICE_UFRAG_MIN, SDP_ICE_TEXT_MAX) ? arg : STR_NONE;
	else if (str_eq(name, STR("ice-pwd")))
		ice->pwd = is_ice_text(arg, SDP_ICE_PWD_MIN, SDP_ICE_TEXT_MAX) ? arg : STR_NONE;
	else if (str_eq(name, STR("ice-options")))
		take_options(ice, arg);
	else if (str_eq(name, STR("ice-lite")))
		ice->lite = true;
	else if (str_eq(name, STR("end-of-candidates")))
		ice->end_of_candidates = true;
}

/* The address is not known yet: 0.0.0.0, ::, or port 9 (RFC 8839 4.3.1, RFC 8840 4.1.1), or a
 * name instead of an address. */
static bool is_open(const struct endpoint *to)
{
	return !to->family || endpoint_is_unspecified(to) || to->port == 9;
}

static bool mismatches(const struct sdp_ice *ice, const struct sdp_media *m)
{
	struct endpoint to = m->conn.addr;

	to.port = m->port;
	if (!m->conn.present || !m->port || is_open(&to) || !ice->count || ice->ignored)
		return false;
	for (uint32_t i = 0; i < ice->count; i++)
		if (ice->candidate[i].component == 1 && endpoint_eq(&ice->candidate[i].addr, &to))
			return false;
	return true;
}

void sdp_ice_read(struct sdp_ice *out, const struct sdp *s, uint32_t i)
{
	memset(out, 0, sizeof(*out));
	if (i >= s->media_count)
		return;
	for (const struct sdp_line *l = s->session; l; l = l->next)
		if (l->type == 'a')
			take_attr(out, l->name, l->arg);
	for (const struct sdp_line *l = s->media[i].lines; l; l = l->next)
		if (l->type == 'a')
			take_attr(out, l->name, l->arg);
	out->mismatch = mismatches(out, &s->media[i]);
}

bool sdp_ice_restarted(struct str old_ufrag, struct str old_pwd, struct str ufrag, struct str pwd)
{
	if (!old_ufrag.len || !old_pwd.len || !ufrag.len || !pwd.len)
		return false;
	return !str_eq(old_ufrag, ufrag) || !str_eq(old_pwd, pwd);
}

/* --- Writing ---------------------------------------------------------------------------------- */

static void write_remote(struct sbuf *b, const struct sdp_ice_write *w)
{
	char addr[ENDPOINT_STRLEN];
	bool any = false;

	for (unsigned c = 0; c < ARRAY_LEN(w->remote); c++) {
		if (!w->remote[c].family)
			continue;
		sbuf_printf(b, "%s%u %s %u", any ? " " : "a=remote-candidates:", c + 1,
			endpoint_fmt_addr(&w->remote[c], addr), w->remote[c].port);
		any = true;
	}
	if (any)
		sbuf_str(b, str_from(w->eol));
}

void sdp_ice_write(struct sbuf *b, const struct sdp_ice_write *w)
{
	if (w->lite)
		sbuf_printf(b, "a=ice-lite%s", w->eol);
	if (w->ufrag.s && w->pwd.s)
		sbuf_printf(b,
			"a=ice-ufrag:" STR_FMT "%sa=ice-pwd:" STR_FMT "%sa=ice-options:%sice2%s",
			STR_ARG(w->ufrag), w->eol, STR_ARG(w->pwd), w->eol,
			w->trickle ? "trickle " : "", w->eol);
	for (uint32_t i = 0; i < w->count; i++) {
		ice_candidate_write(b, &w->candidate[i]);
		sbuf_str(b, str_from(w->eol));
	}
	write_remote(b, w);
	if (w->end_of_candidates)
		sbuf_printf(b, "a=end-of-candidates%s", w->eol);
}

/* --- Fragments -------------------------------------------------------------------------------- */

/* The next line without its end, and empty ones skipped; false: no more. */
static bool next_line(struct str *rest, struct str *line)
{
	while (rest->len > 0) {
		*line = str_cut(rest, '\n');
		if (line->len > 0 && line->s[line->len - 1] == '\r')
			line->len--;
		if (line->len > 0)
			return true;
	}
	return false;
}

static bool well_formed(struct str body)
{
	struct str line;

	if (body.len > SDP_ICE_FRAGMENT_MAX)
		return false;
	while (next_line(&body, &line))
		if (line.len < 3 || line.s[1] != '=' || line.s[0] < 'a' || line.s[0] > 'z' ||
			str_has_control(line))
			return false;
	return true;
}

/* The attribute's name and argument; false: another line. */
static bool attribute(struct str line, struct str *name, struct str *arg)
{
	if (line.s[0] != 'a')
		return false;
	*arg = (struct str){line.s + 2, line.len - 2};
	*name = str_cut(arg, ':');
	return true;
}

int sdp_ice_fragment_read(
	struct str body, int (*each)(void *ctx, const struct sdp_ice_section *s), void *ctx)
{
	struct sdp_ice_section common = {.mid = STR_NONE}, s;
	struct str line, name, arg;
	uint32_t sections = 0;
	int err = 0;

	if (!well_formed(body))
		return -EINVAL;
	s = common;
	while (!err && next_line(&body, &line)) {
		bool is_attr = attribute(line, &name, &arg);
		bool mid = is_attr && str_eq(name, STR("mid"));

		/* A section begins with its m-line. Some senders write a=mid without one. */
		if (line.s[0] == 'm' || (mid && (sections == 0 || s.mid.s))) {
			if (sections > 0)
				err = each(ctx, &s);
			else
				common = s;
			s = common;
			s.index = sections++;
			if (sections > SDP_MAX_MEDIA)
				return -EINVAL;
		}
		if (mid)
			s.mid = arg;
		else if (is_attr)
			take_attr(&s.ice, name, arg);
	}
	return err ? err : each(ctx, &s);
}
