/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Codecs and attributes in and out (proto/sdp_filter.h). */
#include "proto/sdp_filter.h"

#include "base/sbuf.h"
#include "proto/sdp.h"

enum { TYPES = 128 };

/* One m= section, or what is before the first. */
struct section {
	struct str text;
	struct str kind; /* "session" or the media's */
	bool rtp;
	struct str name[TYPES]; /* of each payload type, as in its rtpmap */
	bool strip[TYPES],
		/* the rules for it, looked up once because an m= line may be long */
		voice[TYPES];
	uint8_t rank[TYPES];
	bool gone[TYPES];
};

/* The next line with its end; rest is what follows. */
static struct str line_of(struct str *rest)
{
	const char *end = rest->len ? memchr(rest->s, '\n', rest->len) : NULL;
	struct str line = {rest->s, end ? (size_t)(end - rest->s) + 1 : rest->len};

	rest->s += line.len;
	rest->len -= line.len;
	return line;
}

/* Without its end. */
static struct str bare(struct str line)
{
	while (line.len && (line.s[line.len - 1] == '\n' || line.s[line.len - 1] == '\r'))
		line.len--;
	return line;
}

static bool starts(struct str s, struct str with)
{
	return s.len >= with.len && memcmp(s.s, with.s, with.len) == 0;
}

static struct str rest_of(struct str s, size_t from)
{
	return (struct str){s.s + from, s.len - from};
}

/* --- Codecs ----------------------------------------------------------------------------------- */

/* The payload type in the value of rtpmap, fmtp or rtcp-fb, such as "8 ...". -1: none of these. */
static int type_of(struct str value, struct str *rest)
{
	uint64_t n;

	*rest = value;
	if (str_to_u64(&n, str_cut(rest, ' '), TYPES - 1))
		return -1;
	return (int)n;
}

static int type_line(struct str line, struct str *rest)
{
	static const struct str names[] = {{"a=rtpmap:", 9}, {"a=fmtp:", 7}, {"a=rtcp-fb:", 10}};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (starts(line, names[i]))
			return type_of(rest_of(line, names[i].len), rest);
	return -1;
}

/* Without a number, one channel is meant (RFC 8866 6.6): "PCMA/8000/1" equals "PCMA/8000". */
static struct str without_one_channel(struct str name)
{
	struct str channels = name;

	(void)str_cut(&channels, '/');
	(void)str_cut(&channels, '/');
	if (str_eq(channels, STR("1")))
		name.len -= 2;
	return name;
}

/* "PCMA" is any PCMA, "PCMA/8000" that one. */
static bool same_codec(struct str rule, struct str name)
{
	rule = without_one_channel(rule);
	if (str_eq_nocase(rule, without_one_channel(name)))
		return true;
	return !memchr(rule.s, '/', rule.len) && str_eq_nocase(rule, str_cut(&name, '/'));
}

static bool everything(struct str rule)
{
	return str_eq_nocase(rule, STR("all")) || str_eq_nocase(rule, STR("full"));
}

static bool stripped(const struct sdp_filter *f, struct str name)
{
	bool strip = false, spared = false;

	for (uint32_t i = 0; i < f->codecs; i++) {
		const struct sdp_codec_rule *r = &f->codec[i];

		if (r->op == SDP_CODEC_STRIP)
			strip |= everything(r->name) || (name.len && same_codec(r->name, name));
		else
			spared |= name.len && same_codec(r->name, name);
	}
	return strip && !spared;
}

/* Splits an m= line before its formats, after "m=audio 4000 RTP/AVP ". */
static bool formats_of(struct str m, struct str *head, struct str *formats)
{
	struct str rest = m, proto;

	str_cut(&rest, ' ');
	str_cut(&rest, ' ');
	if (!rest.s)
		return false;
	proto = str_cut(&rest, ' ');
	if (!rest.s || !memmem(proto.s, proto.len, "RTP/", 4))
		return false;
	*head = (struct str){m.s, (size_t)(rest.s - m.s)};
	*formats = rest;
	return true;
}

/* Not what accompanies a codec. */
static bool is_voice(struct str name)
{
	return !same_codec(STR("telephone-event"), name) && !same_codec(STR("CN"), name);
}

/* Where the codec stands among those to be offered first; their number if it does not. */
static uint8_t rank_of(const struct sdp_filter *f, struct str name)
{
	uint8_t rank = 0;

	for (uint32_t i = 0; i < f->codecs; i++) {
		if (f->codec[i].op != SDP_CODEC_OFFER)
			continue;
		if (name.len && same_codec(f->codec[i].name, name))
			return rank;
		rank++;
	}
	return rank;
}

static void judge(struct section *s, const struct sdp_filter *f)
{
	for (int type = 0; type < TYPES; type++) {
		s->strip[type] = stripped(f, s->name[type]);
		s->voice[type] = is_voice(s->name[type]);
		s->rank[type] = rank_of(f, s->name[type]);
	}
}

static struct str rate_of(struct str name)
{
	(void)str_cut(&name, '/');
	return str_cut(&name, '/');
}

static bool has_rate(const struct section *s, const bool types[TYPES], struct str rate)
{
	for (int type = 0; type < TYPES; type++)
		if (types[type] && s->voice[type] && str_eq(rate_of(s->name[type]), rate))
			return true;
	return false;
}

/* Telephone events have the clock rate of an audio codec (RFC 4733 2.1). They go with the last
 * codec of their rate, if an audio codec of another rate stays. */
static void drop_orphans(struct section *s, const bool stays[TYPES])
{
	bool voice = false;

	for (int type = 0; type < TYPES; type++)
		voice |= stays[type] && s->voice[type];
	for (int type = 0; voice && type < TYPES; type++) {
		struct str rate = rate_of(s->name[type]);

		if (stays[type] && same_codec(STR("telephone-event"), s->name[type]) &&
			has_rate(s, s->gone, rate) && !has_rate(s, stays, rate))
			s->gone[type] = true;
	}
}

/* Marks what goes. False: then nothing would be left, or nothing goes. */
static bool mark(
	struct section *s, const struct sdp_filter *f, struct str formats, uint32_t *emptied)
{
	uint32_t left = 0, gone = 0;
	bool stays[TYPES] = {false}, voice = false;

	while (formats.len) {
		struct str one = str_cut(&formats, ' '), none;
		int type = type_of(one, &none);

		if (type < 0 || stays[type]) {
			left += one.len > 0;
		} else if (s->strip[type] || (f->single && voice && s->voice[type])) {
			s->gone[type] = true;
			gone++;
		} else {
			stays[type] = true; /* and if it stands there twice it is the same codec */
			voice |= s->voice[type];
			left++;
		}
	}
	if (left) {
		drop_orphans(s, stays);
		return true;
	}
	memset(s->gone, 0, sizeof(s->gone));
	*emptied += gone > 0;
	return false;
}

/* Groups formats by rank in one pass over the line. */
static void write_formats(
	struct sbuf *b, const struct section *s, struct str formats, uint8_t ranks)
{
	struct sbuf part[SDP_RULES_MAX + 1];

	for (uint32_t i = 0; i <= ranks; i++)
		sbuf_init(&part[i], 0);
	while (formats.len) {
		struct str one = str_cut(&formats, ' '), none;
		int type = type_of(one, &none);
		struct sbuf *to = &part[type < 0 ? ranks : s->rank[type]];

		if (!one.len || (type >= 0 && s->gone[type]))
			continue;
		sbuf_put(to, " ", 1);
		sbuf_str(to, one);
	}
	for (uint32_t i = 0; i <= ranks; i++) {
		sbuf_str(b, sbuf_view(&part[i]));
		b->err = b->err ? b->err : part[i].err;
		sbuf_fini(&part[i]);
	}
}

static void write_m(
	struct sbuf *b, const struct section *s, const struct sdp_filter *f, struct str line)
{
	struct str m = bare(line), head, formats;

	if (!formats_of(m, &head, &formats)) {
		sbuf_str(b, line);
		return;
	}
	sbuf_str(b, (struct str){head.s, head.len - 1});
	write_formats(b, s, formats, rank_of(f, STR_NONE));
	sbuf_str(b, rest_of(line, m.len));
}

static bool is_rejected(struct str m)
{
	(void)str_cut(&m, ' ');
	return str_eq(str_cut(&m, ' '), STR("0"));
}

static void codecs_look(struct section *s, const struct sdp_filter *f, uint32_t *emptied)
{
	struct str rest = s->text, m = bare(line_of(&rest)), head, formats, value;

	s->rtp = formats_of(m, &head, &formats);
	if (!s->rtp || (!f->codecs && !f->single) || is_rejected(m))
		return;
	for (uint32_t i = 0; i < TYPES; i++)
		s->name[i] = sdp_static_codec(i);
	while (rest.len) {
		struct str line = bare(line_of(&rest));
		int type = starts(line, STR("a=rtpmap:")) ? type_line(line, &value) : -1;

		if (type >= 0)
			s->name[type] = str_trim(value);
	}
	judge(s, f);
	(void)mark(s, f, formats, emptied);
}

/* --- Attributes ------------------------------------------------------------------------------- */

static bool in_section(const struct sdp_attr_rule *r, const struct section *s)
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

	if (!starts(line, STR("a=")))
		return false;
	whole = head = name = rest_of(line, 2);
	head = str_cut(&head, ' ');
	name = str_cut(&name, ':');
	attr.len -= attr.s[attr.len - 1] == ':';
	return str_eq(attr, whole) || str_eq(attr, head) || str_eq_nocase(attr, name);
}

static void write_attr_line(
	struct sbuf *b, const struct section *s, const struct sdp_filter *f, struct str line)
{
	struct str text = bare(line);

	for (uint32_t i = 0; i < f->attrs; i++) {
		const struct sdp_attr_rule *r = &f->attr[i];

		if (r->op == SDP_ATTR_ADD || !in_section(r, s) || !is_attr(r, text))
			continue;
		if (r->op == SDP_ATTR_SUBSTITUTE) {
			sbuf_printf(b, "a=" STR_FMT, STR_ARG(r->with));
			sbuf_str(b, rest_of(line, text.len));
		}
		return;
	}
	sbuf_str(b, line);
}

static bool is_there(const struct section *s, struct str attr)
{
	struct str rest = s->text;

	while (rest.len) {
		struct str line = bare(line_of(&rest));

		if (starts(line, STR("a=")) && str_eq(rest_of(line, 2), attr))
			return true;
	}
	return false;
}

static void write_added(
	struct sbuf *b, const struct section *s, const struct sdp_filter *f, struct str end)
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

static void write_section(struct sbuf *b, const struct section *s, const struct sdp_filter *f)
{
	struct str rest = s->text, end = STR("\r\n"), value;

	while (rest.len) {
		struct str line = line_of(&rest), text = bare(line);
		int type = s->rtp ? type_line(text, &value) : -1;

		if (line.len > text.len)
			end = rest_of(line, text.len);
		if (s->rtp && starts(text, STR("m=")))
			write_m(b, s, f, line);
		else if (type < 0 || !s->gone[type])
			write_attr_line(b, s, f, line);
	}
	write_added(b, s, f, end);
}

/* Up to the next m= line. */
static struct section section_of(struct str *body)
{
	struct section s = {.text = {body->s, 0}, .kind = STR("session")};
	struct str first;

	if (starts(*body, STR("m="))) {
		first = rest_of(*body, 2);
		s.kind = str_cut(&first, ' ');
		s.text.len += line_of(body).len;
	}
	while (body->len && !starts(*body, STR("m=")))
		s.text.len += line_of(body).len;
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
		struct section s = section_of(&body);

		codecs_look(&s, f, emptied);
		write_section(&b, &s, f);
	}
	if (!b.err)
		out = pool_strdup(p, sbuf_view(&b));
	sbuf_fini(&b);
	return out;
}

bool sdp_filter_empties(const struct sdp_filter *f, const struct sdp_media *m)
{
	struct section s = {.text = m->lines->text, .kind = m->kind};
	uint32_t emptied = 0;

	for (const struct sdp_line *l = m->lines; l; l = l->next)
		s.text.len = (size_t)(l->text.s + l->text.len - s.text.s);
	codecs_look(&s, f, &emptied);
	return emptied;
}
