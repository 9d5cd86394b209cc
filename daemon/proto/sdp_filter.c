/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Attributes in and out, and the sections of a session description (proto/sdp_filter.h). */
#include "proto/sdp_filter_int.h"

/* --- Attributes ------------------------------------------------------------------------------- */

static bool in_section(const struct sdp_attr_rule *r, const struct sdp_section *s)
{
	if (!r->section.len)
		return true;
	if (str_eq_nocase(r->section, STR("global")) || str_eq_nocase(r->section, STR("none")))
		return str_eq(s->kind, STR("session"));
	return str_eq_nocase(r->section, s->kind);
}

/* Named whole ("fmtp:101 0-15"), up to its first value ("fmtp:101"), or by its name ("fmtp",
 * "fmtp:"). */
static bool is_attr(const struct sdp_attr_rule *r, struct str line)
{
	struct str whole, head, name, attr = r->attr;

	if (!sdp_section_starts(line, STR("a=")))
		return false;
	whole = head = name = sdp_section_rest(line, 2);
	head = str_cut(&head, ' ');
	name = str_cut(&name, ':');
	attr.len -= attr.s[attr.len - 1] == ':';
	return str_eq(attr, whole) || str_eq(attr, head) || str_eq_nocase(attr, name);
}

static void write_attr_line(
	struct sbuf *b, const struct sdp_section *s, const struct sdp_filter *f, struct str line)
{
	struct str text = sdp_section_bare(line);

	for (uint32_t i = 0; i < f->attrs; i++) {
		const struct sdp_attr_rule *r = &f->attr[i];

		if (r->op == SDP_ATTR_ADD || !in_section(r, s) || !is_attr(r, text))
			continue;
		if (r->op == SDP_ATTR_SUBSTITUTE) {
			sbuf_printf(b, "a=" STR_FMT, STR_ARG(r->with));
			sbuf_str(b, sdp_section_rest(line, text.len));
		}
		return;
	}
	sbuf_str(b, line);
}

static bool is_there(const struct sdp_section *s, struct str attr)
{
	struct str rest = s->text;

	while (rest.len) {
		struct str line = sdp_section_bare(sdp_section_line(&rest));

		if (sdp_section_starts(line, STR("a=")) && str_eq(sdp_section_rest(line, 2), attr))
			return true;
	}
	return false;
}

static void write_added(
	struct sbuf *b, const struct sdp_section *s, const struct sdp_filter *f, struct str end)
{
	for (uint32_t i = 0; i < f->attrs; i++) {
		if (f->attr[i].op != SDP_ATTR_ADD || !in_section(&f->attr[i], s) ||
			is_there(s, f->attr[i].attr))
			continue;
		/* The last line of a body may lack its end. */
		if (b->len && b->p[b->len - 1] != '\n')
			sbuf_str(b, end);
		sbuf_printf(b, "a=" STR_FMT, STR_ARG(f->attr[i].attr));
		sbuf_str(b, end);
	}
}

/* --- Sections --------------------------------------------------------------------------------- */

static void write_section(struct sbuf *b, const struct sdp_section *s, const struct sdp_filter *f)
{
	struct str rest = s->text, end = STR("\r\n");

	while (rest.len) {
		struct str line = sdp_section_line(&rest), text = sdp_section_bare(line);

		if (line.len > text.len)
			end = sdp_section_rest(line, text.len);
		if (s->rtp && sdp_section_starts(text, STR("m=")))
			sdp_codecs_write_m(b, s, f, line);
		else if (!s->rtp || !sdp_codecs_drop_line(s, text))
			write_attr_line(b, s, f, line);
	}
	sdp_codecs_write_added(b, s, end);
	write_added(b, s, f, end);
}

/* Up to the next m= line. */
static struct sdp_section section_of(struct str *body)
{
	struct sdp_section s = {.text = {body->s, 0}, .kind = STR("session")};
	struct str first;

	if (sdp_section_starts(*body, STR("m="))) {
		first = sdp_section_rest(*body, 2);
		s.kind = str_cut(&first, ' ');
		s.text.len += sdp_section_line(body).len;
	}
	while (body->len && !sdp_section_starts(*body, STR("m=")))
		s.text.len += sdp_section_line(body).len;
	return s;
}

struct str sdp_filter_apply(
	const struct sdp_filter *f, struct pool *p, struct str body, uint32_t *emptied)
{
	struct str out = STR_NONE;
	struct sbuf b;

	*emptied = 0;
	if (!f->codecs && !f->attrs && !f->single)
		return body;
	sbuf_init(&b, 0);
	while (body.len) {
		struct sdp_section s = section_of(&body);

		sdp_codecs_look(&s, f, emptied);
		write_section(&b, &s, f);
	}
	if (!b.err)
		out = pool_strdup(p, sbuf_view(&b));
	sbuf_fini(&b);
	return out;
}
