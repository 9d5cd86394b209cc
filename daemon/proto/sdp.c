/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Session descriptions (RFC 4566, RFC 8866) to slices of their text, in one pass. Liberal in what
 * phones get wrong without harm (line ends, blanks, unknown lines, order), and one error with its
 * line for what cannot be right. Keeps every line for sdp_write(); copies no text. */
#include "proto/sdp.h"

static const struct {
	enum sdp_proto id;
	struct str name;
	bool secure, feedback;
} protos[] = {
	{SDP_RTP_AVP, {"RTP/AVP", 7}, false, false},
	{SDP_RTP_SAVP, {"RTP/SAVP", 8}, true, false},
	{SDP_RTP_AVPF, {"RTP/AVPF", 8}, false, true},
	{SDP_RTP_SAVPF, {"RTP/SAVPF", 9}, true, true},
	{SDP_UDP_TLS_RTP_SAVP, {"UDP/TLS/RTP/SAVP", 16}, true, false},
	{SDP_UDP_TLS_RTP_SAVPF, {"UDP/TLS/RTP/SAVPF", 17}, true, true},
};

/* Transports other than RTP. Other names that begin with "UDP/" or "TCP/" count as UDP and TCP. */
static const struct {
	enum sdp_proto id;
	struct str name;
} others[] = {
	{SDP_UDPTL, {"udptl", 5}},
	{SDP_UDP_TLS_UDPTL, {"UDP/TLS/UDPTL", 13}},
	{SDP_UDP_BFCP, {"UDP/BFCP", 8}},
	{SDP_UDP_TLS_BFCP, {"UDP/TLS/BFCP", 12}},
	{SDP_UDP_DTLS_SCTP, {"UDP/DTLS/SCTP", 13}},
	{SDP_UDP_OTHER, {"UDP", 3}},
	{SDP_TCP, {"TCP", 3}},
};

const char *sdp_proto_name(enum sdp_proto p)
{
	for (size_t i = 0; i < ARRAY_LEN(protos); i++)
		if (protos[i].id == p)
			return protos[i].name.s;
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		if (others[i].id == p)
			return others[i].name.s;
	return "";
}

/* Of any m= line; case-insensitive. */
static enum sdp_proto sdp_proto_of(struct str name)
{
	enum sdp_proto p = sdp_proto_find(name);
	struct str rest = name, first = str_cut(&rest, '/');

	for (size_t i = 0; i < ARRAY_LEN(others) && p == SDP_PROTO_OTHER; i++)
		if (str_eq_nocase(others[i].name, name))
			p = others[i].id;
	if (p == SDP_PROTO_OTHER && str_eq_nocase(first, STR("UDP")))
		p = SDP_UDP_OTHER;
	if (p == SDP_PROTO_OTHER && str_eq_nocase(first, STR("TCP")))
		p = SDP_TCP;
	return p;
}

bool sdp_proto_is_rtp(enum sdp_proto p)
{
	return p >= SDP_RTP_AVP && p <= SDP_UDP_TLS_RTP_SAVPF;
}

bool sdp_proto_is_raw(enum sdp_proto p)
{
	return p >= SDP_UDPTL && p <= SDP_UDP_OTHER;
}

enum sdp_proto sdp_proto_find(struct str name)
{
	for (size_t i = 0; i < ARRAY_LEN(protos); i++)
		if (str_eq_nocase(protos[i].name, name))
			return protos[i].id;
	return SDP_PROTO_OTHER;
}

bool sdp_proto_is_secure(enum sdp_proto p)
{
	for (size_t i = 0; i < ARRAY_LEN(protos); i++)
		if (protos[i].id == p)
			return protos[i].secure;
	return false;
}

bool sdp_proto_is_dtls(enum sdp_proto p)
{
	return p == SDP_UDP_TLS_RTP_SAVP || p == SDP_UDP_TLS_RTP_SAVPF;
}

bool sdp_proto_is_feedback(enum sdp_proto p)
{
	for (size_t i = 0; i < ARRAY_LEN(protos); i++)
		if (protos[i].id == p)
			return protos[i].feedback;
	return false;
}

enum sdp_proto sdp_proto_make(bool secure, bool feedback)
{
	if (secure)
		return feedback ? SDP_RTP_SAVPF : SDP_RTP_SAVP;
	return feedback ? SDP_RTP_AVPF : SDP_RTP_AVP;
}

const char *sdp_err_text(enum sdp_err e)
{
	static const char *const text[] = {[SDP_OK] = "no error",
#define X(id, words) [SDP_ERR_##id] = words,
		SDP_ERRORS(X)
#undef X
	};

	return e < ARRAY_LEN(text) ? text[e] : "unknown error";
}

const struct sdp_line *sdp_attr(const struct sdp_line *from, struct str name)
{
	for (; from; from = from->next)
		if (from->type == 'a' && str_eq_nocase(from->name, name))
			return from;
	return NULL;
}

/* Parses from the right, so that blanks in a user name do no harm. Empty at the end. */
static struct str last_word(struct str *rest)
{
	size_t end;

	*rest = str_trim(*rest);
	end = rest->len;
	while (rest->len && rest->s[rest->len - 1] != ' ' && rest->s[rest->len - 1] != '\t')
		rest->len--;
	return (struct str){rest->s + rest->len, end - rest->len};
}

/* Network type, address type, address with TTL and count. A name or an unknown network leaves
 * family 0. */
static void parse_addr(struct endpoint *out, struct str net, struct str addr)
{
	struct str bare = str_cut(&addr, '/');

	if (!str_eq_nocase(net, STR("IN")) || endpoint_parse_addr(out, bare))
		*out = (struct endpoint){0};
}

static enum sdp_err parse_origin(struct sdp *s, const struct sdp_line *l)
{
	struct str rest = l->value;
	struct str addr = last_word(&rest);
	struct str net =
		(last_word(&rest), last_word(&rest)); /* the address type is between them */

	s->origin_version = last_word(&rest);
	s->origin_id = last_word(&rest);
	s->origin_user = str_trim(rest);
	/* Some phones send an empty user name, but keep its blank; otherwise a word is missing. */
	if (s->origin_id.len == 0 || (s->origin_user.len == 0 && l->value.s[0] != ' '))
		return SDP_ERR_ORIGIN;
	parse_addr(&s->origin_addr, net, addr);
	return SDP_OK;
}

static enum sdp_err parse_conn(struct sdp_conn *c, struct sdp_line *l)
{
	struct str rest = l->value;
	struct str net = str_word(&rest), type = str_word(&rest), addr = str_word(&rest);

	if (type.len == 0 || addr.len == 0)
		return SDP_ERR_CONNECTION;
	/* Several c= lines mean layered multicast (RFC 4566 5.7). The first is the base. */
	if (c->present)
		return SDP_OK;
	parse_addr(&c->addr, net, addr);
	c->present = true;
	c->line = l;
	return SDP_OK;
}

static enum sdp_err parse_media(struct sdp_media *m, struct sdp_line *l)
{
	struct str rest = l->value;
	struct str port, count;
	uint64_t v, n = 1;

	m->lines = l;
	m->kind = str_word(&rest);
	count = str_word(&rest);
	port = str_cut(&count, '/');
	m->proto_text = str_word(&rest);
	m->formats = str_trim(rest);
	if (str_to_u64(&v, port, 65535) || m->proto_text.len == 0)
		return SDP_ERR_MEDIA;
	if (count.s && (str_to_u64(&n, count, 65535) || n == 0))
		return SDP_ERR_MEDIA;
	m->port = (uint16_t)v;
	m->port_count = (uint16_t)n;
	m->proto = sdp_proto_of(m->proto_text);
	return SDP_OK;
}

/* RFC 3605: port, and an address if it differs. Only the first line counts. A malformed one counts
 * as absent: the default port applies, and sdp_write() replaces the line. */
static void parse_rtcp(struct sdp_media *m, const struct sdp_line *l)
{
	struct str rest = l->arg;
	struct str port = str_word(&rest), net = str_word(&rest);
	struct str type = str_word(&rest), addr = str_word(&rest);
	uint64_t v;

	if (l != sdp_attr(m->lines, STR("rtcp")) || str_to_u64(&v, port, 65535) ||
		(net.len && (type.len == 0 || addr.len == 0)))
		return;
	if (net.len)
		parse_addr(&m->rtcp, net, addr);
	m->rtcp.port = (uint16_t)v;
	m->has_rtcp = true;
}

/* Attributes of one section; for the session, the defaults of all media. */
struct section {
	struct sdp_media *media; /* NULL at session level */
	enum sdp_dir dir;
	bool has_dir, ice, dtls;
};

struct str sdp_dir_name(enum sdp_dir dir)
{
	static const struct str names[] = {[SDP_DIR_SENDRECV] = {"sendrecv", 8},
		[SDP_DIR_SENDONLY] = {"sendonly", 8},
		[SDP_DIR_RECVONLY] = {"recvonly", 8},
		[SDP_DIR_INACTIVE] = {"inactive", 8}};

	return names[dir];
}

static bool parse_dir(struct section *sec, struct str name)
{
	for (enum sdp_dir i = SDP_DIR_SENDRECV; i <= SDP_DIR_INACTIVE; i++) {
		if (!str_eq_nocase(name, sdp_dir_name(i)))
			continue;
		if (!sec->has_dir)
			sec->dir = i;
		sec->has_dir = true;
		return true;
	}
	return false;
}

static void parse_attr(struct section *sec, const struct sdp_line *l)
{
	struct sdp_media *m = sec->media;

	if (parse_dir(sec, l->name))
		return;
	if (str_eq_nocase(l->name, STR("ice-ufrag")) || str_eq_nocase(l->name, STR("candidate")))
		sec->ice = true;
	else if (str_eq_nocase(l->name, STR("fingerprint")))
		sec->dtls = true;
	else if (!m)
		return;
	else if (str_eq_nocase(l->name, STR("rtcp")))
		parse_rtcp(m, l);
	else if (str_eq_nocase(l->name, STR("rtcp-mux")))
		m->rtcp_mux = true;
	else if (str_eq_nocase(l->name, STR("rtcp-mux-only")))
		m->rtcp_mux_only = true;
	else if (str_eq_nocase(l->name, STR("mid")) && m->mid.len == 0)
		m->mid = str_trim(l->arg);
	else if (str_eq_nocase(l->name, STR("label")) && m->rid_label.len == 0)
		m->rid_label = str_trim(l->arg);
}

struct parser {
	struct sdp *out;
	struct section session, cur; /* cur: of the media we are in */
	uint32_t media_line[SDP_MAX_MEDIA];
	uint32_t line;
	bool has_origin, has_name;
};

bool sdp_is_invalid_name(struct str name)
{
	static const struct str end = {".invalid", 8};

	if (name.len && name.s[name.len - 1] == '.')
		name.len--;
	return name.len >= end.len &&
		str_eq_nocase((struct str){name.s + name.len - end.len, end.len}, end);
}

static bool names_nobody(const struct sdp_conn *c)
{
	struct str rest, addr;

	if (!c->present)
		return false;
	if (c->addr.family)
		return endpoint_is_unspecified(&c->addr);
	rest = c->line->value;
	(void)str_word(&rest);
	(void)str_word(&rest);
	addr = str_word(&rest);
	return sdp_is_invalid_name(str_cut(&addr, '/'));
}

/* Hold as in RFC 2543 B.5 and RFC 3264 8.4: nothing may be sent to this party. With ICE the address
 * has no meaning (RFC 8840 4.1.1: 0.0.0.0 until there is a candidate). */
static void apply_hold(struct sdp_media *m)
{
	m->hold = !m->ice && names_nobody(&m->conn);
	if (m->hold && m->dir == SDP_DIR_SENDRECV)
		m->dir = SDP_DIR_SENDONLY;
	else if (m->hold && m->dir == SDP_DIR_RECVONLY)
		m->dir = SDP_DIR_INACTIVE;
}

static void end_media(struct parser *ps)
{
	struct sdp_media *m = ps->cur.media;

	if (!m)
		return;
	m->dir = ps->cur.has_dir ? ps->cur.dir : ps->session.dir;
	m->ice = ps->cur.ice || ps->session.ice;
	m->dtls = ps->cur.dtls || ps->session.dtls;
	m->own_conn = m->conn.present;
	if (!m->own_conn)
		m->conn = ps->out->conn;
	apply_hold(m);
}

static enum sdp_err session_line(struct parser *ps, struct sdp_line *l)
{
	struct sdp *s = ps->out;

	switch (l->type) {
	case 'o':
		if (ps->has_origin)
			return SDP_ERR_ORIGIN;
		ps->has_origin = true;
		return parse_origin(s, l);
	case 's':
		if (!ps->has_name)
			s->session_name = l->value;
		ps->has_name = true;
		return SDP_OK;
	case 'c':
		return parse_conn(&s->conn, l);
	case 'a':
		parse_attr(&ps->session, l);
		return SDP_OK;
	default:
		return SDP_OK;
	}
}

static enum sdp_err any_line(struct parser *ps, struct sdp_line *l)
{
	struct sdp *s = ps->out;

	if (l->type == 'm') {
		end_media(ps);
		if (s->media_count == SDP_MAX_MEDIA)
			return SDP_ERR_MEDIA_COUNT;
		ps->media_line[s->media_count] = ps->line;
		ps->cur = (struct section){.media = &s->media[s->media_count++]};
		return parse_media(ps->cur.media, l);
	}
	if (!ps->cur.media)
		return session_line(ps, l);
	if (l->type == 'c')
		return parse_conn(&ps->cur.media->conn, l);
	if (l->type == 'a')
		parse_attr(&ps->cur, l);
	return SDP_OK;
}

static enum sdp_err split_line(struct sdp_line *l, struct str text)
{
	char c = text.len ? text.s[0] : 0;

	if (str_has_control(text))
		return SDP_ERR_CONTROL;
	if (text.len < 2 || text.s[1] != '=' || !((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')))
		return SDP_ERR_LINE;
	l->text = text;
	l->type = c;
	l->value = (struct str){text.s + 2, text.len - 2};
	if (c == 'a') {
		l->arg = l->value;
		l->name = str_trim(str_cut(&l->arg, ':'));
	}
	return SDP_OK;
}

/* Length without trailing NUL bytes and the line ends between and after them. */
static size_t without_nul(struct str body)
{
	size_t len = body.len;

	while (len && (body.s[len - 1] == 0 || body.s[len - 1] == '\r' || body.s[len - 1] == '\n'))
		len--;
	while (len < body.len && body.s[len])
		len++;
	return len;
}

static enum sdp_err parse_lines(struct parser *ps, struct sdp_line *l)
{
	struct sdp_line **link = &ps->out->session;
	struct str rest = ps->out->body;
	enum sdp_err err = SDP_OK;

	for (ps->line = 1; !err && rest.len; ps->line++) {
		struct str text = str_cut(&rest, '\n');

		if (text.len && text.s[text.len - 1] == '\r') {
			text.len--;
			ps->out->crlf = true;
		}
		if (str_trim(text).len == 0) /* some phones write them, within SDP and at its end */
			continue;
		err = split_line(l, text);
		if (err)
			break;
		if (l->type != 'm') /* an m= line starts a new list */
			*link = l;
		link = &l->next;
		err = any_line(ps, l++);
		if (err)
			break;
	}
	return err;
}

static enum sdp_err parse_body(struct parser *ps, struct pool *p)
{
	struct str body = ps->out->body;
	struct sdp_line *lines;
	enum sdp_err err;
	size_t count = 1;

	if (body.len > SDP_MAX_LEN)
		return SDP_ERR_TOO_LONG;
	body.len = without_nul(body);
	ps->out->body = body;
	if (!str_starts(body, STR("v=0")) || (body.len > 3 && (uint8_t)body.s[3] > ' '))
		return SDP_ERR_NOT_SDP;
	for (size_t i = 0; i < body.len; i++)
		count += body.s[i] == '\n';
	ps->out->crlf = count == 1; /* not a single line end to copy from */
	lines = pool_alloc(p, count * sizeof(*lines));
	if (!lines)
		return SDP_ERR_NOMEM;
	err = parse_lines(ps, lines);
	if (err)
		return err;
	end_media(ps);
	for (uint32_t i = 0; i < ps->out->media_count; i++) {
		if (ps->out->media[i].port && !ps->out->media[i].conn.present) {
			ps->line = ps->media_line[i];
			return SDP_ERR_NO_CONNECTION;
		}
	}
	return SDP_OK;
}

enum sdp_err sdp_parse(struct sdp *out, struct pool *p, struct str body, uint32_t *line)
{
	struct parser ps = {.out = out, .line = 1};
	enum sdp_err err;

	memset(out, 0, sizeof(*out));
	out->body = body;
	err = parse_body(&ps, p);
	if (line)
		*line = ps.line;
	return err;
}

/* --- Codecs ----------------------------------------------------------------------------------- */

struct str sdp_static_codec(uint32_t type)
{
	static const struct {
		uint8_t type;
		const char *name;
	} t[] = {{0, "PCMU/8000"}, {3, "GSM/8000"}, {4, "G723/8000"}, {8, "PCMA/8000"},
		{9, "G722/8000"}, {13, "CN/8000"}, {18, "G729/8000"}, {26, "JPEG/90000"},
		{31, "H261/90000"}, {34, "H263/90000"}};

	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		if (t[i].type == type)
			return str_from(t[i].name);
	return STR_NONE;
}

static struct str codec_of(const struct sdp_media *m, struct str format)
{
	uint64_t type;

	for (const struct sdp_line *l = sdp_attr(m->lines, STR("rtpmap")); l;
		l = sdp_attr(l->next, STR("rtpmap"))) {
		struct str rest = l->arg;

		if (str_eq(str_cut(&rest, ' '), format))
			return str_trim(rest);
	}
	return str_to_u64(&type, format, 127) == 0 ? sdp_static_codec((uint32_t)type) : STR_NONE;
}

/* A line may name thousands. */
#define FORMATS_LOOKED_AT 8

struct str sdp_first_codec(const struct sdp_media *m)
{
	struct str rest = str_trim(m->formats);

	for (int i = 0; i < FORMATS_LOOKED_AT && rest.len; i++) {
		struct str name = codec_of(m, str_cut(&rest, ' ')), all = name;
		struct str base = str_cut(&name, '/');

		if (base.len && !str_eq_nocase(base, STR("telephone-event")) &&
			!str_eq_nocase(base, STR("CN")))
			return all;
	}
	return STR_NONE;
}

bool sdp_is_bundled(const struct sdp *s, const struct sdp_media *m)
{
	for (const struct sdp_line *l = sdp_attr(s->session, STR("group")); l && m->mid.len;
		l = sdp_attr(l->next, STR("group"))) {
		struct str rest = l->arg, mid;

		if (!str_eq_nocase(str_word(&rest), STR("BUNDLE")))
			continue;
		while ((mid = str_word(&rest)).len)
			if (str_eq(mid, m->mid))
				return true;
	}
	return false;
}
