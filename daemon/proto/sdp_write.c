/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A parsed session description, written back line by line with edits (RFC 4566, 3605, 4568, 5761,
 * 8839, 8842). A line that no edit names is copied byte for byte and keeps its place. Media that
 * are kept must not lose what they had from session level, so they get their own copy of what
 * changes there. */
#include "proto/sdp_bundle.h"
#include "proto/sdp_dtls.h"
#include "proto/sdp_preauth.h"

/* Limit of removed session-level lines that are copied to media which keep them. ICE and DTLS have
 * a dozen (RFC 8839, RFC 8842). */
#define REMOVED_MAX 32u

struct writer {
	struct sbuf *b;
	const struct sdp *s;
	const struct sdp_edit *e;
	bool any_edited;       /* some media is not kept */
	bool session_conn_new; /* the session's c= is replaced */
	bool session_hold;     /* that c= becomes 0.0.0.0 or ::, which is hold */
	const struct sdp_line *removed[REMOVED_MAX]; /* at session level */
	uint32_t removes;
};

static void put_eol(const struct writer *w)
{
	sbuf_str(w->b, w->s->crlf ? STR("\r\n") : STR("\n"));
}

/* Blanks at the end of an attribute make linphone leave out its fingerprint, and pion writes one
 * (RFC 4585 4.2 allows none). */
static void put_line(const struct writer *w, const struct sdp_line *l)
{
	sbuf_str(w->b, l->type == 'a' ? str_trim(l->text) : l->text);
	put_eol(w);
}

static void put_addr(const struct writer *w, const struct endpoint *a)
{
	char text[ENDPOINT_STRLEN];

	sbuf_printf(w->b, "IN %s %s", a->family == AF_INET6 ? "IP6" : "IP4",
		endpoint_fmt_addr(a, text));
}

static void put_conn(const struct writer *w, const struct endpoint *addr)
{
	sbuf_str(w->b, STR("c="));
	put_addr(w, addr);
	put_eol(w);
}

static const struct endpoint *addr_of(const struct writer *w, const struct sdp_media_edit *me)
{
	return me->addr.family ? &me->addr : &w->e->addr;
}

/* The zero address, in the receiver's address family. */
static void put_hold(const struct writer *w)
{
	sbuf_str(
		w->b, w->e->addr.family == AF_INET6 ? STR("c=IN IP6 ::") : STR("c=IN IP4 0.0.0.0"));
	put_eol(w);
}

static bool keeps(const struct writer *w, uint32_t i)
{
	return !w->e->media || w->e->media[i].keep;
}

/* Hold by address (RFC 2543 B.5, RFC 3264 8.4) is kept: the receiver may know no other form. */
static bool holds(const struct writer *w, const struct sdp_media *m)
{
	return w->e->keep_zero_conn && m->hold;
}

/* Whether all media under the session's c= are such. */
static bool session_holds(const struct writer *w)
{
	bool any = false;

	for (uint32_t i = 0; i < w->s->media_count; i++) {
		const struct sdp_media *m = &w->s->media[i];

		if (keeps(w, i) || m->own_conn)
			continue;
		if (!holds(w, m))
			return false;
		any = true;
	}
	return any;
}

static bool name_is(const struct sdp_line *l, struct str name)
{
	return l->type == 'a' && str_eq_nocase(l->name, name);
}

static bool name_in(const struct sdp_line *l, const struct str *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (name_is(l, names[i]))
			return true;
	return false;
}

static bool name_begins(const struct sdp_line *l, struct str with)
{
	return l->type == 'a' && l->name.len >= with.len &&
		str_eq_nocase((struct str){l->name.s, with.len}, with);
}

/* Lines with further addresses, by which media would bypass the relay: ICE (RFC 8839 5, RFC 8840,
 * trickle ICE), its predecessors (a=alt, MS-ICE), RFC 6947, RFC 4570, RFC 5760, and optimal media
 * routing (3GPP TS 29.079). */
static bool is_ice(const struct sdp_line *l)
{
	static const struct str names[] = {{"candidate", 9}, {"remote-candidates", 17},
		{"end-of-candidates", 17}, {"remote-candidate", 16}, {"x-candidate-ipv6", 16},
		{"x-candidate-info", 16}, {"alt", 3}, {"altc", 4}, {"source-filter", 13},
		{"rtcp-unicast", 12}, {"visited-realm", 13}, {"secondary-realm", 15}};

	return name_in(l, names, ARRAY_LEN(names)) || name_begins(l, STR("ice-")) ||
		name_begins(l, STR("omr-"));
}

/* RFC 8122, RFC 4145, RFC 8842 and its drafts. */
static bool is_dtls(const struct sdp_line *l)
{
	static const struct str names[] = {{"fingerprint", 11}, {"setup", 5}, {"tls-id", 6},
		{"connection", 10}, {"dtls-id", 7}, {SDP_PREAUTH, sizeof(SDP_PREAUTH) - 1}};

	return name_in(l, names, ARRAY_LEN(names));
}

/* Key management that no terminal may use through us: k= (RFC 8866 5.12: discard it), key-mgmt (RFC
 * 4567), ZRTP (RFC 6189), cryptoscale (MS-SDPEXT). SDES of media that we do not relay is a=crypto,
 * which is not in here. */
static bool is_other_key(struct str name)
{
	static const struct str names[] = {
		{"key-mgmt", 8}, {"zrtp-hash", 9}, {"zrtp-zid", 8}, {"cryptoscale", 11}};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (str_eq_nocase(name, names[i]))
			return true;
	return false;
}

/* Capabilities (RFC 5939, 6871, 7006): other addresses, transports, keys and attributes, one of
 * which the answer may choose instead of the m-line. We take no part in that, so that the answer
 * must not either. */
static bool is_capability(const struct sdp_line *l)
{
	static const struct str names[] = {{"csup", 4}, {"creq", 4}, {"acap", 4}, {"tcap", 4},
		{"pcfg", 4}, {"acfg", 4}, {"lcfg", 4}, {"mcap", 4}, {"rmcap", 5}, {"omcap", 5},
		{"mfcap", 5}, {"mscap", 5}, {"sescap", 6}, {"bcap", 4}, {"ccap", 4}, {"icap", 4}};

	return name_in(l, names, ARRAY_LEN(names));
}

/* RFC 3407: "a=cpar:a=crypto:1 ...". Only declares what a gateway could do, but keys stay keys. */
static bool is_key_declared(const struct sdp_line *l)
{
	struct str rest = str_trim(l->arg), name;

	if (!(name_is(l, STR("cpar")) || name_is(l, STR("cparmin")) || name_is(l, STR("cparmax"))))
		return false;
	if (str_starts(rest, STR("k=")))
		return true;
	(void)str_cut(&rest, '=');
	name = str_trim(str_cut(&rest, ':'));
	return is_other_key(name) || str_eq_nocase(name, STR("crypto")) ||
		str_eq_nocase(name, STR("fingerprint"));
}

/* Lines removed from every section, even from media that are not relayed. */
static bool is_never_passed(const struct sdp_line *l)
{
	return l->type == 'k' || (l->type == 'a' && is_other_key(l->name)) || is_capability(l) ||
		is_key_declared(l);
}

/* RFC 8843: media that share one transport. Ours do not, and an answer must not name a group that
 * it did not form. a=bundle-only says that the media has no transport of its own. */
static bool is_bundle(const struct sdp_line *l)
{
	struct str rest = l->arg;

	return name_is(l, STR("bundle-only")) ||
		(name_is(l, STR("group")) && str_eq_nocase(str_word(&rest), STR("BUNDLE")));
}

static bool is_dropped(const struct writer *w, const struct sdp_line *l)
{
	return is_never_passed(l) || (w->e->remove_bundle && is_bundle(l));
}

static bool is_removed_anywhere(const struct writer *w, const struct sdp_line *l)
{
	return (w->e->remove_ice && is_ice(l)) || (w->e->remove_dtls && is_dtls(l));
}

/* --- Session level ---------------------------------------------------------------------------- */

static void put_origin(const struct writer *w, const struct sdp_line *l)
{
	const struct sdp_edit *e = w->e;
	bool addr = e->replace_origin && e->addr.family;
	struct str rest = l->value, tail;

	if (!addr && !e->origin_user.s && !e->origin_version.s) {
		put_line(w, l);
		return;
	}
	sbuf_str(w->b, STR("o="));
	sbuf_str(w->b, e->origin_user.s ? e->origin_user : w->s->origin_user);
	sbuf_put(w->b, " ", 1);
	sbuf_str(w->b, w->s->origin_id);
	sbuf_put(w->b, " ", 1);
	sbuf_str(w->b, e->origin_version.s ? e->origin_version : w->s->origin_version);
	if (addr) {
		sbuf_put(w->b, " ", 1);
		put_addr(w, &e->addr);
	} else { /* keep network type and address */
		tail.s = w->s->origin_version.s + w->s->origin_version.len;
		tail.len = (size_t)(rest.s + rest.len - tail.s);
		sbuf_str(w->b, tail);
	}
	put_eol(w);
}

/* Lines that are not allowed at session level (RFC 4568 5.1.1, RFC 3605 2.1, RFC 5761 8, RFC 8858):
 * keys, and addresses without a media. */
static bool is_of_media(const struct sdp_line *l)
{
	static const struct str names[] = {
		{"crypto", 6}, {"rtcp", 4}, {"rtcp-mux", 8}, {"rtcp-mux-only", 13}};

	return name_in(l, names, ARRAY_LEN(names));
}

static void put_session(const struct writer *w)
{
	for (const struct sdp_line *l = w->s->session; l; l = l->next) {
		if (l->type == 'o') {
			put_origin(w, l);
		} else if (l->type == 's' && w->e->session_name.s) {
			sbuf_str(w->b, STR("s="));
			sbuf_str(w->b, w->e->session_name);
			put_eol(w);
		} else if (l->type == 'c' && w->session_conn_new) {
			if (w->session_hold)
				put_hold(w);
			else
				put_conn(w, &w->e->addr);
		} else if (is_removed_anywhere(w, l) || is_dropped(w, l) || is_of_media(l)) {
			continue;
		} else {
			put_line(w, l);
		}
	}
	if (w->e->bundle.s) {
		sbuf_str(w->b, STR("a=group:BUNDLE "));
		sbuf_str(w->b, w->e->bundle);
		put_eol(w);
	}
	if (w->e->ice_lite) {
		sbuf_str(w->b, STR("a=ice-lite"));
		put_eol(w);
	}
	if (w->e->keying.s) {
		sbuf_str(w->b, STR("a="));
		sbuf_str(w->b, w->e->keying);
		put_eol(w);
	}
	if (w->e->loop_id.s) {
		sbuf_str(w->b, STR("a=xcipher:"));
		sbuf_str(w->b, w->e->loop_id);
		put_eol(w);
	}
}

/* --- Media that stay -------------------------------------------------------------------------- */

static void put_kept(const struct writer *w, const struct sdp_media *m)
{
	bool want_conn = w->session_conn_new && !m->own_conn && m->port && m->conn.line;

	for (const struct sdp_line *l = m->lines; l; l = l->next) {
		/* Rejected media need no key at all. */
		if (!is_dropped(w, l) &&
			(m->port || !(name_is(l, STR("crypto")) || is_removed_anywhere(w, l))))
			put_line(w, l);
		if (want_conn && (!l->next || l->next->type != 'i')) { /* order: m=, i=, c= */
			put_line(w, m->conn.line);
			want_conn = false;
		}
	}
	if (m->port == 0)
		return;
	for (uint32_t i = 0; i < w->removes; i++)
		if (!sdp_attr(m->lines, w->removed[i]->name))
			put_line(w, w->removed[i]);
}

/* --- Media that we relay ---------------------------------------------------------------------- */

struct done {
	bool rtcp, mux, keying, direction;
};

static void put_media_line(
	const struct writer *w, const struct sdp_media *m, const struct sdp_media_edit *me)
{
	const struct sdp_line *l = m->lines;
	const char *end = l->text.s + l->text.len;
	const char *proto_end = m->proto_text.s + m->proto_text.len;
	const char *kind_end = m->kind.s + m->kind.len;

	sbuf_put(w->b, l->text.s, (size_t)(kind_end - l->text.s));
	sbuf_printf(w->b, " %u ", me->reject ? 0u : (unsigned)me->port);
	if (!sdp_proto_is_rtp(me->proto))
		sbuf_str(w->b, m->proto_text);
	else
		sbuf_str(w->b, str_from(sdp_proto_name(me->proto)));
	if (me->formats.s)
		sbuf_printf(w->b, " " STR_FMT, STR_ARG(me->formats));
	else
		sbuf_put(w->b, proto_end, (size_t)(end - proto_end));
	put_eol(w);
}

static void put_rtcp(const struct writer *w, const struct sdp_media_edit *me, struct done *done)
{
	if (done->rtcp || me->reject || me->rtcp_port == 0)
		return;
	done->rtcp = true;
	sbuf_printf(w->b, "a=rtcp:%u", (unsigned)me->rtcp_port);
	if (w->e->addr.family && (me->rtcp_full || me->rtcp_addr.family)) {
		sbuf_put(w->b, " ", 1);
		put_addr(w, me->rtcp_addr.family ? &me->rtcp_addr : addr_of(w, me));
	}
	put_eol(w);
}

static void put_keying(const struct writer *w, const struct sdp_media_edit *me, struct done *done)
{
	if (done->keying || me->reject)
		return;
	done->keying = true;
	for (uint32_t i = 0; i < me->keying_count; i++) {
		sbuf_str(w->b, STR("a="));
		sbuf_str(w->b, me->keying[i]);
		put_eol(w);
	}
}

static void put_mux(const struct writer *w, const struct sdp_media_edit *me, struct done *done)
{
	if (done->mux || me->reject || !me->rtcp_mux)
		return;
	done->mux = true;
	sbuf_str(w->b, STR("a=rtcp-mux"));
	put_eol(w);
}

static bool is_direction(const struct sdp_line *l)
{
	static const struct str names[] = {
		{"sendrecv", 8}, {"sendonly", 8}, {"recvonly", 8}, {"inactive", 8}};

	return name_in(l, names, ARRAY_LEN(names));
}

/* The direction to write in place of the present ones; s = NULL: none. */
static void put_direction(const struct writer *w, struct str direction, struct done *done)
{
	if (!direction.s || done->direction)
		return;
	done->direction = true;
	sbuf_printf(w->b, "a=" STR_FMT, STR_ARG(direction));
	put_eol(w);
}

/* Whether the line describes a payload type that is removed. */
static bool is_of_dropped_type(const struct sdp_line *l, const struct sdp_media_edit *me)
{
	static const struct str names[] = {{"rtpmap", 6}, {"fmtp", 4}, {"rtcp-fb", 7}};
	struct str rest = l->arg;
	uint64_t type;

	if (!(me->drop_types[0] | me->drop_types[1]) || !name_in(l, names, ARRAY_LEN(names)) ||
		str_to_u64(&type, str_cut(&rest, ' '), 127))
		return false;
	return me->drop_types[type / 64] >> type % 64 & 1;
}

static bool is_loopback(const struct sdp_line *l)
{
	static const struct str names[] = {
		{"loopback", 8}, {"loopback-source", 15}, {"loopback-mirror", 15}};

	return name_in(l, names, ARRAY_LEN(names));
}

static bool is_source(const struct sdp_line *l)
{
	return name_is(l, STR("ssrc")) || name_is(l, STR("ssrc-group"));
}

static void put_attr(const struct writer *w, const struct sdp_line *l,
	const struct sdp_media_edit *me, struct str direction, struct done *done)
{
	if ((is_removed_anywhere(w, l) && !(me->keep_dtls && is_dtls(l))) || is_dropped(w, l) ||
		(me->drop_mid && name_is(l, STR("mid"))) ||
		(me->drop_mid_ext && sdp_is_mid_ext(l)) ||
		(me->drop_transport_cc && sdp_is_transport_cc(l)) || is_of_dropped_type(l, me) ||
		(me->drop_sources && is_source(l)) || (me->drop_loopback && is_loopback(l)))
		return;
	if (direction.s && is_direction(l)) {
		put_direction(w, direction, done);
	} else if (name_is(l, STR("crypto"))) {
		put_keying(w, me, done);
	} else if (name_is(l, STR("rtcp"))) {
		put_rtcp(w, me, done);
	} else if (name_is(l, STR("rtcp-mux")) && me->rtcp_mux && !me->reject) {
		put_mux(w, me, done);
	} else if ((name_is(l, STR("rtcp-mux")) || name_is(l, STR("rtcp-mux-only"))) &&
		me->drop_rtcp_mux) {
		return;
	} else if ((name_is(l, STR("rtcp-fb")) || name_is(l, STR("rtcp-rsize"))) &&
		!me->keep_feedback) {
		return;
	} else if (me->reject &&
		(name_is(l, STR("candidate")) || name_is(l, STR("remote-candidates")))) {
		return;
	} else {
		put_line(w, l);
	}
}

/* A c= line of the media itself. Rejected media have one only if the session has none. */
static void put_own_conn(const struct writer *w, const struct sdp_media *m,
	const struct sdp_media_edit *me, const struct sdp_line *l)
{
	if (!w->e->addr.family)
		put_line(w, l);
	else if (holds(w, m))
		put_hold(w);
	else if (!me->reject || !w->s->conn.present)
		put_conn(w, addr_of(w, me));
}

static void put_relayed(
	const struct writer *w, const struct sdp_media *m, const struct sdp_media_edit *me)
{
	/* The session's c= cannot express hold or another address for only some of its media. */
	bool differs = m->conn.present && !m->own_conn && w->session_conn_new && !me->reject &&
		(w->session_hold != holds(w, m) || (me->addr.family && !holds(w, m)));
	bool want_conn =
		differs || (!m->conn.present && !me->reject && me->port && w->e->addr.family);
	struct str direction = me->direction;
	struct done done = {0};

	/* For receivers that do not know hold by address, or do not get it. */
	if (!direction.s && m->hold && !me->reject)
		direction = sdp_dir_name(m->dir);
	for (const struct sdp_line *l = m->lines; l; l = l->next) {
		if (l->type == 'm')
			put_media_line(w, m, me);
		else if (l->type == 'a')
			put_attr(w, l, me, direction, &done);
		else if (l->type == 'c')
			put_own_conn(w, m, me, l);
		else if (!is_dropped(w, l))
			put_line(w, l);
		if (want_conn && (!l->next || l->next->type != 'i')) {
			if (holds(w, m))
				put_hold(w);
			else
				put_conn(w, addr_of(w, me));
			want_conn = false;
		}
	}
	put_direction(w, direction, &done);
	for (uint32_t i = 0; me->keep_dtls && !me->reject && i < w->removes; i++)
		if (is_dtls(w->removed[i]) && !sdp_attr(m->lines, w->removed[i]->name))
			put_line(w, w->removed[i]);
	put_rtcp(w, me, &done);
	put_mux(w, me, &done);
	put_keying(w, me, &done);
	if (!me->reject)
		sbuf_str(w->b, me->lines);
	if (m->mid.len)
		return;
	if (me->mid_text.s) {
		sbuf_str(w->b, STR("a=mid:"));
		sbuf_str(w->b, me->mid_text);
		put_eol(w);
	} else if (me->mid) {
		sbuf_printf(w->b, "a=mid:%u", me->mid);
		put_eol(w);
	}
}

void sdp_write(struct sbuf *b, const struct sdp *s, const struct sdp_edit *e)
{
	struct writer w = {.b = b, .s = s, .e = e};

	for (uint32_t i = 0; i < s->media_count; i++)
		w.any_edited |= !keeps(&w, i);
	for (const struct sdp_line *l = s->session; l && w.removes < REMOVED_MAX; l = l->next)
		if (is_removed_anywhere(&w, l))
			w.removed[w.removes++] = l;
	w.session_conn_new =
		s->conn.present && e->addr.family && (w.any_edited || s->media_count == 0);
	w.session_hold = session_holds(&w);
	put_session(&w);
	for (uint32_t i = 0; i < s->media_count; i++) {
		const struct sdp_media_edit *twin = e->media ? e->media[i].twin : NULL;

		if (e->media && e->media[i].omit)
			continue;
		if (twin && e->media[i].twin_first)
			put_relayed(&w, &s->media[i], twin);
		if (keeps(&w, i))
			put_kept(&w, &s->media[i]);
		else
			put_relayed(&w, &s->media[i], &e->media[i]);
		if (twin && !e->media[i].twin_first)
			put_relayed(&w, &s->media[i], twin);
	}
}
