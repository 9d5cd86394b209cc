/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Removes and adds codecs of an m-line, and finds those to transcode (proto/sdp_filter.h). */
#include "proto/sdp_filter_int.h"

/* The payload type in the value of rtpmap, fmtp or rtcp-fb, such as "8 ...". -1: none of these. */
static int type_of(struct str value, struct str *rest)
{
	uint64_t n;

	*rest = value;
	if (str_to_u64(&n, str_cut(rest, ' '), SDP_TYPES - 1))
		return -1;
	return (int)n;
}

static int type_line(struct str line, struct str *rest)
{
	static const struct str names[] = {{"a=rtpmap:", 9}, {"a=fmtp:", 7}, {"a=rtcp-fb:", 10}};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (sdp_section_starts(line, names[i]))
			return type_of(sdp_section_rest(line, names[i].len), rest);
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

bool sdp_codec_is(struct str rule, struct str name)
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

/* PCMU and PCMA with 8,000 Hz and one channel (RFC 3551 6), also without these. */
static const struct str law_name[SDP_LAWS] = {{"PCMU", 4}, {"PCMA", 4}};

int sdp_law(struct str name)
{
	struct str rest = without_one_channel(name), base = str_cut(&rest, '/');

	if (rest.len && !str_eq(str_cut(&rest, '/'), STR("8000")))
		return -1;
	for (int law = 0; law < SDP_LAWS && !rest.len; law++)
		if (str_eq_nocase(base, law_name[law]))
			return law;
	return -1;
}

/* Which rules of one operation match a codec. */
struct ruling {
	bool named, all, full;
};

static void rule_on(struct ruling *r, struct str rule, struct str name)
{
	if (str_eq_nocase(rule, STR("full")))
		r->full = true;
	else if (everything(rule))
		r->all = true;
	else
		r->named |= name.len && sdp_codec_is(rule, name);
}

/* A codec that "all" removed, and transcode names, is only restored. Not if it was removed by its
 * name, or by "full". */
static void judge_one(struct sdp_section *s, const struct sdp_filter *f, int type)
{
	struct str name = s->name[type];
	struct ruling strip = {0}, mask = {0};
	bool spared = false, wanted = false;

	for (uint32_t i = 0; i < f->codecs; i++) {
		const struct sdp_codec_rule *r = &f->codec[i];
		bool same = name.len && sdp_codec_is(r->name, name);

		if (r->op == SDP_CODEC_STRIP || r->op == SDP_CODEC_IGNORE)
			rule_on(&strip, r->name, name);
		else if (r->op == SDP_CODEC_MASK)
			rule_on(&mask, r->name, name);
		else if (r->op == SDP_CODEC_EXCEPT || r->op == SDP_CODEC_OFFER)
			spared |= same;
		else if (r->op == SDP_CODEC_TRANSCODE)
			wanted |= same;
	}
	spared |= wanted && !strip.named && !mask.named && !strip.full && !mask.full;
	s->lost[type] = (strip.named || strip.all || strip.full) && !spared;
	s->strip[type] = s->lost[type] || ((mask.named || mask.all || mask.full) && !spared);
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

bool sdp_codec_is_voice(struct str name)
{
	return !sdp_codec_is(STR("telephone-event"), name) && !sdp_codec_is(STR("CN"), name);
}

/* Whether transcode restores codecs instead of adding them: see judge_one(). */
static bool restores(const struct sdp_filter *f)
{
	bool all = false, full = false;

	for (uint32_t i = 0; i < f->codecs; i++) {
		if (f->codec[i].op != SDP_CODEC_STRIP && f->codec[i].op != SDP_CODEC_MASK)
			continue;
		all |= str_eq_nocase(f->codec[i].name, STR("all"));
		full |= str_eq_nocase(f->codec[i].name, STR("full"));
	}
	return all && !full;
}

/* Position of the codec among those to be offered first, or their number if it is not one. */
static uint8_t rank_of(const struct sdp_filter *f, struct str name)
{
	bool all = restores(f);
	uint8_t rank = 0;

	for (uint32_t i = 0; i < f->codecs; i++) {
		enum sdp_codec_op op = f->codec[i].op;

		if (op != SDP_CODEC_OFFER && op != SDP_CODEC_FIRST &&
			!(op == SDP_CODEC_TRANSCODE && all))
			continue;
		if (name.len && sdp_codec_is(f->codec[i].name, name))
			return rank;
		rank++;
	}
	return rank;
}

static void judge(struct sdp_section *s, const struct sdp_filter *f)
{
	for (int type = 0; type < SDP_TYPES; type++) {
		judge_one(s, f, type);
		s->voice[type] = sdp_codec_is_voice(s->name[type]);
		s->rank[type] = rank_of(f, s->name[type]);
	}
}

struct str sdp_codec_rate(struct str name)
{
	(void)str_cut(&name, '/');
	return str_cut(&name, '/');
}

static bool has_rate(const struct sdp_section *s, const bool types[SDP_TYPES], struct str rate)
{
	for (int type = 0; type < SDP_TYPES; type++)
		if (types[type] && s->voice[type] && str_eq(sdp_codec_rate(s->name[type]), rate))
			return true;
	return false;
}

/* Telephone events have the clock rate of an audio codec (RFC 4733 2.1). They go with the last
 * codec of their rate, if an audio codec of another rate stays. */
static void drop_orphans(struct sdp_section *s)
{
	bool voice = false;

	for (int type = 0; type < SDP_TYPES; type++)
		voice |= s->stays[type] && s->voice[type];
	for (int type = 0; voice && type < SDP_TYPES; type++) {
		struct str rate = sdp_codec_rate(s->name[type]);

		if (s->stays[type] && sdp_codec_is(STR("telephone-event"), s->name[type]) &&
			has_rate(s, s->gone, rate) && !has_rate(s, s->stays, rate)) {
			s->gone[type] = true;
			s->stays[type] = false;
		}
	}
}

/* --- Codecs that are added -------------------------------------------------------------------- */

static const struct sdp_known laws[SDP_LAWS] = {
	{.name = {"PCMU/8000", 9}, .type = 0}, {.name = {"PCMA/8000", 9}, .type = 8}};

/* The codec of this name, or NULL. */
static const struct sdp_known *known(const struct sdp_filter *f, struct str name)
{
	const struct sdp_known *k = f->known ? f->known : laws;
	uint32_t n = f->known ? f->knowns : SDP_LAWS;

	if (sdp_law(name) >= 0)
		name.len = law_name[0].len;
	for (uint32_t i = 0; i < n && name.len; i++)
		if (sdp_codec_is(name, k[i].name))
			return &k[i];
	return NULL;
}

bool sdp_filter_knows(const struct sdp_filter *f, struct str name)
{
	return known(f, name);
}

bool sdp_filter_takes(const struct sdp_filter *f, struct str name, struct str fmtp)
{
	const struct sdp_known *k = known(f, name);

	return k && fmtp.len <= SDP_FMTP_MAX && (!k->takes || k->takes(k->codec, fmtp));
}

/* A payload type for a codec that is added: its own, or one that the m-line does not have. -1:
 * none is left. */
static int type_for(
	const struct sdp_section *s, const struct sdp_known *k, const bool has[SDP_TYPES])
{
	if (k->type >= 0 && (!has[k->type] || sdp_codec_is(k->name, s->name[k->type])))
		return k->type;
	for (int type = 96; type < SDP_TYPES; type++)
		if (!has[type])
			return type;
	return -1;
}

/* Returns the payload type, or -1. */
static int add(struct sdp_section *s, const struct sdp_known *k, bool has[SDP_TYPES])
{
	int type = s->adds < SDP_ADDS ? type_for(s, k, has) : -1;

	if (type < 0)
		return -1;
	has[type] = s->stays[type] = true;
	s->name[type] = k->name;
	s->fmtp[type] = k->fmtp;
	s->voice[type] = sdp_codec_is_voice(k->name);
	s->added[s->adds++] = (uint8_t)type;
	return type;
}

/* Notes the payload types of the sender: those of G.711, and those to be accepted. Whether it has a
 * codec that can be transcoded. */
static bool look_at_sender(
	struct sdp_section *s, const struct sdp_filter *f, struct str formats, bool has[SDP_TYPES])
{
	struct sdp_laws *l = &s->laws;
	bool can = false;

	while (formats.len) {
		struct str none;
		int type = type_of(str_cut(&formats, ' '), &none);
		int law = type < 0 ? -1 : sdp_law(s->name[type]);

		if (type < 0)
			continue;
		has[type] = true;
		if (law >= 0 && !s->lost[type] && !l->theirs[law])
			l->theirs[law] = (uint8_t)(type + 1);
		if (law >= 0 && s->stays[type] && !l->told[law])
			l->told[law] = (uint8_t)(type + 1);
		if (s->lost[type] || !s->voice[type] ||
			!sdp_filter_takes(f, s->name[type], s->fmtp[type]))
			continue;
		can = true;
		for (uint32_t i = 0; i < f->codecs; i++)
			s->accept[type] |= f->codec[i].op == SDP_CODEC_ACCEPT &&
				(everything(f->codec[i].name) ||
					sdp_codec_is(f->codec[i].name, s->name[type]));
	}
	return can;
}

/* Whether the receiver is offered it. */
static bool is_told(const struct sdp_section *s, struct str name)
{
	for (int type = 0; type < SDP_TYPES; type++)
		if (s->stays[type] && s->name[type].len && sdp_codec_is(name, s->name[type]))
			return true;
	return false;
}

/* Telephone events at the clock rates of the codecs that were added (RFC 4733 2.1), if the sender
 * has any. */
static void add_events(struct sdp_section *s, bool has[SDP_TYPES])
{
	uint32_t adds = s->adds;
	int of = -1;

	for (int type = 0; type < SDP_TYPES; type++)
		if (s->stays[type] && sdp_codec_is(STR("telephone-event"), s->name[type]))
			of = type;
	for (uint32_t i = 0; i < adds && of >= 0; i++) {
		static const struct sdp_known at[] = {
			{.name = {"telephone-event/8000", 20}, .type = -1, .fmtp = {"0-15", 4}},
			{.name = {"telephone-event/16000", 21}, .type = -1, .fmtp = {"0-15", 4}},
			{.name = {"telephone-event/32000", 21}, .type = -1, .fmtp = {"0-15", 4}},
			{.name = {"telephone-event/48000", 21}, .type = -1, .fmtp = {"0-15", 4}}};
		struct str rate = sdp_codec_rate(s->name[s->added[i]]);

		for (size_t k = 0; k < ARRAY_LEN(at); k++)
			if (str_eq(sdp_codec_rate(at[k].name), rate) && !is_told(s, at[k].name))
				(void)add(s, &at[k], has);
	}
}

/* Adds the codecs to transcode to, if the sender has one to transcode from. */
static void add_codecs(struct sdp_section *s, const struct sdp_filter *f, struct str formats)
{
	struct sdp_laws *l = &s->laws;
	bool has[SDP_TYPES] = {false};
	bool can = look_at_sender(s, f, formats, has);

	for (uint32_t i = 0; i < f->codecs && can; i++) {
		const struct sdp_codec_rule *r = &f->codec[i];
		const struct sdp_known *k = r->op == SDP_CODEC_TRANSCODE ? known(f, r->name) : NULL;
		struct sdp_known named;
		int type;

		if (!k || is_told(s, k->name))
			continue;
		named = *k;
		named.fmtp = r->fmtp.s ? r->fmtp : k->fmtp;
		type = add(s, &named, has);
		if (type >= 0 && sdp_law(k->name) >= 0)
			l->told[sdp_law(k->name)] = (uint8_t)(type + 1);
	}
	if (f->known)
		add_events(s, has);
	for (int k = 0; k < SDP_LAWS; k++) {
		l->engaged |= l->told[k] != l->theirs[k] && l->told[k];
		if (l->theirs[k] && s->accept[l->theirs[k] - 1])
			l->accept |= (uint8_t)(1u << k);
	}
	l->engaged |= l->accept != 0;
}

/* Marks the codecs to remove. False: none would be left, so all stay. */
static bool mark(
	struct sdp_section *s, const struct sdp_filter *f, struct str formats, uint32_t *emptied)
{
	uint32_t left = 0, gone = 0;
	struct str all = formats;
	bool voice = false;

	while (formats.len) {
		struct str one = str_cut(&formats, ' '), none;
		int type = type_of(one, &none);

		if (type < 0 || s->stays[type]) {
			left += one.len > 0;
		} else if (s->strip[type] || (f->single && voice && s->voice[type])) {
			s->gone[type] = true;
			gone++;
		} else {
			s->stays[type] = true; /* a repetition is the same codec */
			voice |= s->voice[type];
			left++;
		}
	}
	add_codecs(s, f, all);
	if (left || s->adds) {
		drop_orphans(s);
		return true;
	}
	memset(s->gone, 0, sizeof(s->gone));
	*emptied += gone > 0;
	return false;
}

/* Groups formats by rank in one pass over the line. */
static void write_formats(
	struct sbuf *b, const struct sdp_section *s, struct str formats, uint8_t ranks)
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

void sdp_codecs_write_m(
	struct sbuf *b, const struct sdp_section *s, const struct sdp_filter *f, struct str line)
{
	struct str m = sdp_section_bare(line), head, formats;

	if (!formats_of(m, &head, &formats)) {
		sbuf_str(b, line);
		return;
	}
	sbuf_str(b, (struct str){head.s, head.len - 1});
	write_formats(b, s, formats, rank_of(f, STR_NONE));
	for (uint32_t i = 0; i < s->adds; i++)
		sbuf_printf(b, " %u", s->added[i]);
	sbuf_str(b, sdp_section_rest(line, m.len));
}

static bool is_rejected(struct str m)
{
	(void)str_cut(&m, ' ');
	return str_eq(str_cut(&m, ' '), STR("0"));
}

void sdp_codecs_look(struct sdp_section *s, const struct sdp_filter *f, uint32_t *emptied)
{
	struct str rest = s->text, m = sdp_section_bare(sdp_section_line(&rest)), head, formats,
		   value;

	s->rtp = formats_of(m, &head, &formats);
	if (!s->rtp || is_rejected(m))
		return;
	for (uint32_t i = 0; i < SDP_TYPES; i++)
		s->name[i] = sdp_static_codec(i);
	while (rest.len) {
		struct str line = sdp_section_bare(sdp_section_line(&rest));
		bool map = sdp_section_starts(line, STR("a=rtpmap:"));
		int type = map || sdp_section_starts(line, STR("a=fmtp:")) ? type_line(line, &value)
									   : -1;

		if (type >= 0)
			*(map ? &s->name[type] : &s->fmtp[type]) = str_trim(value);
	}
	judge(s, f);
	(void)mark(s, f, formats, emptied);
}

bool sdp_codecs_drop_line(const struct sdp_section *s, struct str line)
{
	struct str value;
	int type = type_line(line, &value);

	return type >= 0 && s->gone[type];
}

void sdp_codecs_write_added(struct sbuf *b, const struct sdp_section *s, struct str end)
{
	for (uint32_t i = 0; i < s->adds; i++) {
		uint32_t type = s->added[i];

		/* The last line of a body may lack its end. */
		if (b->len && b->p[b->len - 1] != '\n')
			sbuf_str(b, end);
		sbuf_printf(b, "a=rtpmap:%u " STR_FMT STR_FMT, type, STR_ARG(s->name[type]),
			STR_ARG(end));
		if (s->fmtp[type].len)
			sbuf_printf(b, "a=fmtp:%u " STR_FMT STR_FMT, type, STR_ARG(s->fmtp[type]),
				STR_ARG(end));
	}
}

/* The section of a parsed m-line. */
static struct sdp_section section_of(const struct sdp_media *m)
{
	struct sdp_section s = {.text = m->lines->text, .kind = m->kind};

	for (const struct sdp_line *l = m->lines; l; l = l->next)
		s.text.len = (size_t)(l->text.s + l->text.len - s.text.s);
	return s;
}

static void list(struct sdp_formats *out, const struct sdp_section *s, int type)
{
	if (out->n < SDP_FORMATS && s->name[type].len)
		out->at[out->n++] = (struct sdp_format){.type = (uint8_t)type,
			.accept = s->accept[type],
			.name = s->name[type],
			.fmtp = s->fmtp[type]};
}

void sdp_filter_codecs(
	const struct sdp_filter *f, const struct sdp_media *m, struct sdp_codecs *out)
{
	struct sdp_section s = section_of(m);
	struct str rest = m->formats, none;
	bool seen[SDP_TYPES] = {false};
	uint32_t emptied = 0;

	memset(out, 0, sizeof(*out));
	sdp_codecs_look(&s, f, &emptied);
	out->laws = s.laws;
	out->engaged = s.laws.engaged || s.adds;
	while (rest.len) {
		int type = type_of(str_cut(&rest, ' '), &none);

		if (type < 0 || seen[type])
			continue;
		seen[type] = true;
		if (!s.lost[type])
			list(&out->theirs, &s, type);
		out->engaged |= s.accept[type];
		if (s.stays[type] && !memchr(s.added, type, s.adds))
			list(&out->told, &s, type);
	}
	for (uint32_t i = 0; i < s.adds; i++)
		list(&out->told, &s, s.added[i]);
}

void sdp_codec_names(const struct sdp_media *m, struct str name[SDP_TYPES])
{
	bool said[SDP_TYPES] = {false};

	for (uint32_t type = 0; type < SDP_TYPES; type++)
		name[type] = sdp_static_codec(type);
	for (const struct sdp_line *l = sdp_attr(m->lines, STR("rtpmap")); l;
		l = sdp_attr(l->next, STR("rtpmap"))) {
		struct str text = l->arg;
		uint64_t type;

		if (str_to_u64(&type, str_cut(&text, ' '), SDP_TYPES - 1) || said[type])
			continue;
		said[type] = true;
		name[type] = str_trim(text);
	}
}

bool sdp_filter_empties(const struct sdp_filter *f, const struct sdp_media *m)
{
	struct sdp_section s = section_of(m);
	uint32_t emptied = 0;

	sdp_codecs_look(&s, f, &emptied);
	return emptied;
}
