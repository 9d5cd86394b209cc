/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The keys "codec" and "sdp-attr" of an ng request, and the flags that say the same in one word
 * ("codec-strip-PCMA", "sdp-attr-remove-audio-ptime"). Pure. */
#include "proto/ng_int.h"

/* "consume" is "mask" and "accept". */
enum { CODEC_CONSUME = -1 };

static bool codec_op(int *op, struct str name)
{
	static const struct {
		const char *name;
		int op;
	} ops[] = {
		{"strip", SDP_CODEC_STRIP},
		{"ignore", SDP_CODEC_IGNORE},
		{"mask", SDP_CODEC_MASK},
		{"consume", CODEC_CONSUME},
		{"except", SDP_CODEC_EXCEPT},
		{"offer", SDP_CODEC_OFFER},
		{"accept", SDP_CODEC_ACCEPT},
		{"transcode", SDP_CODEC_TRANSCODE},
		{"set", SDP_CODEC_SET},
	};

	for (size_t i = 0; i < ARRAY_LEN(ops); i++)
		if (ng_spelled_like(name, str_from(ops[i].name))) {
			*op = ops[i].op;
			return true;
		}
	return false;
}

static bool line_safe(struct str s)
{
	return s.len && !str_has_control(s);
}

/* In a word, ".." is a blank and "--" is "=". */
static struct str unescape(struct ng_parser *x, struct str s)
{
	char *out = pool_alloc(x->p, s.len + 1);
	size_t n = 0;

	if (!out)
		return STR_NONE;
	for (size_t i = 0; i < s.len; i++) {
		bool twice = i + 1 < s.len && s.s[i] == s.s[i + 1];

		out[n] = s.s[i];
		if (twice && (s.s[i] == '.' || s.s[i] == '-'))
			out[n] = s.s[i++] == '.' ? ' ' : '=';
		n++;
	}
	return (struct str){out, n};
}

static bool add_rule(struct ng_parser *x, const struct sdp_codec_rule *rule, enum sdp_codec_op op)
{
	struct sdp_filter *f = &x->r->filter;

	if (f->codecs == SDP_RULES_MAX)
		return false;
	f->codec[f->codecs] = *rule;
	f->codec[f->codecs++].op = op;
	return true;
}

/* NAME/CLOCK/CHANNELS/BITRATE/PTIME/FMTP, of which all but the name may be missing or empty. */
static struct sdp_codec_rule rule_of(struct ng_parser *x, struct str text)
{
	struct str rest = text, fmtp, bits, ms;
	struct sdp_codec_rule r = {.name = text};
	uint64_t n;

	for (int i = 0; i < 3; i++)
		(void)str_cut(&rest, '/');
	if (rest.s)
		r.name.len = (size_t)(rest.s - text.s) - 1;
	while (r.name.len && r.name.s[r.name.len - 1] == '/')
		r.name.len--;
	bits = str_cut(&rest, '/');
	ms = str_cut(&rest, '/');
	if (bits.len && str_to_u64(&n, bits, 1000000) == 0)
		r.bitrate = (uint32_t)n;
	if (ms.len && str_to_u64(&n, ms, 120) == 0)
		r.ptime = (uint8_t)n;
	fmtp = unescape(x, rest);
	if (line_safe(fmtp) && fmtp.len <= SDP_FMTP_MAX)
		r.fmtp = fmtp;
	else if (fmtp.len > SDP_FMTP_MAX)
		ng_note(x, STR("codec"), "an fmtp of more than 256 bytes is ignored");
	return r;
}

static bool add_codec(struct ng_parser *x, int op, struct str name)
{
	struct sdp_codec_rule r = {.name = str_trim(name)};

	if (!r.name.len)
		return true;
	if (op == SDP_CODEC_TRANSCODE || op == CODEC_CONSUME || op == SDP_CODEC_SET ||
		op == SDP_CODEC_ACCEPT)
		r = rule_of(x, r.name);
	if (op == CODEC_CONSUME)
		return add_rule(x, &r, SDP_CODEC_MASK) && add_rule(x, &r, SDP_CODEC_ACCEPT);
	return add_rule(x, &r, (enum sdp_codec_op)op);
}

void ng_filter_finish(struct ng_parser *x)
{
	struct sdp_filter *f = &x->r->filter;
	bool pass = ng_flag(x->r, NG_FLAG_PASSTHROUGH) && !ng_flag(x->r, NG_FLAG_RECRYPT);
	bool dropped = false;
	uint32_t n = 0;

	f->single = ng_flag(x->r, NG_FLAG_SINGLE_CODEC) && x->r->command == NG_ANSWER;
	if (ng_flag(x->r, NG_FLAG_ALWAYS_TRANSCODE))
		(void)add_rule(x, &(struct sdp_codec_rule){.name = STR("all")}, SDP_CODEC_ACCEPT);
	for (uint32_t i = 0; i < f->codecs; i++) {
		enum sdp_codec_op op = f->codec[i].op;
		bool adds =
			op == SDP_CODEC_TRANSCODE || op == SDP_CODEC_ACCEPT || op == SDP_CODEC_SET;

		dropped |= adds && pass && x->r->command == NG_OFFER;
		if ((adds && (pass || x->r->command != NG_OFFER)) ||
			(op == SDP_CODEC_MASK && x->r->command == NG_ANSWER))
			continue;
		f->codec[n++] = f->codec[i];
	}
	f->codecs = n;
	if (dropped)
		ng_note(x, STR("codec"), "media that are passed through are not transcoded");
}

/* In a raw string a dictionary is a list whose items have keys. */
static bool is_tree(const struct ngval *v)
{
	return v->type == NGVAL_DICT || v->type == NGVAL_LIST;
}

/* The item of a list, or each of a string with commas. */
static void each(struct ng_parser *x, const struct ngval *v,
	void (*take)(struct ng_parser *x, void *arg, const struct ngval *v), void *arg)
{
	struct str rest;

	if (v->type == NGVAL_LIST) {
		for (const struct ngval *c = v->first; c && !ng_too_many(x); c = c->next)
			take(x, arg, c);
		return;
	}
	rest = ngval_str(x->p, v);
	while (rest.len && !ng_too_many(x)) {
		struct ngval one = {.type = NGVAL_STR, .str = str_cut(&rest, ',')};

		take(x, arg, &one);
	}
}

static void take_codec(struct ng_parser *x, void *arg, const struct ngval *v)
{
	struct str name = ngval_str(x->p, v);

	if (!add_codec(x, *(int *)arg, name))
		ng_unknown(x, pool_printf(x->p, "codec=" STR_FMT, STR_ARG(name)));
}

void ng_set_codec_tree(struct ng_parser *x, const struct ngval *v)
{
	int op;

	if (!is_tree(v))
		return;
	for (const struct ngval *c = v->first; c && !ng_too_many(x); c = c->next) {
		if (codec_op(&op, c->key))
			each(x, c, take_codec, &op);
		else
			ng_unknown(x, pool_printf(x->p, "codec=" STR_FMT, STR_ARG(c->key)));
	}
}

/* --- Attributes ------------------------------------------------------------------------------- */

struct attr_place {
	enum sdp_attr_op op;
	struct str section;
};

static bool attr_op(enum sdp_attr_op *op, struct str name)
{
	static const char *const names[] = {"add", "remove", "substitute"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (ng_spelled_like(name, str_from(names[i]))) {
			*op = (enum sdp_attr_op)i;
			return true;
		}
	return false;
}

static bool add_attr(struct ng_parser *x, struct attr_place at, struct str attr, struct str with)
{
	struct sdp_filter *f = &x->r->filter;

	if (f->attrs == SDP_RULES_MAX || !line_safe(attr) ||
		(at.op == SDP_ATTR_SUBSTITUTE && !line_safe(with)))
		return false;
	f->attr[f->attrs++] = (struct sdp_attr_rule){
		.op = at.op, .section = at.section, .attr = attr, .with = with};
	return true;
}

void ng_strip_attr(struct ng_parser *x, struct str attr)
{
	if (!add_attr(x, (struct attr_place){.op = SDP_ATTR_REMOVE}, attr, STR_NONE))
		ng_unknown(x, attr);
}

/* substitute has pairs, as a list of two or as "from>to". */
static void take_attr(struct ng_parser *x, void *arg, const struct ngval *v)
{
	const struct attr_place *at = arg;
	struct str attr = STR_NONE, with = STR_NONE;

	if (v->type == NGVAL_LIST && v->first) {
		attr = ngval_str(x->p, v->first);
		with = v->first->next ? ngval_str(x->p, v->first->next) : STR_NONE;
	} else {
		attr = ngval_str(x->p, v);
		if (at->op == SDP_ATTR_SUBSTITUTE) {
			with = attr;
			attr = str_cut(&with, '>');
		}
	}
	if (x->raw) {
		attr = unescape(x, attr);
		with = with.s ? unescape(x, with) : with;
	}
	if (!add_attr(x, *at, str_trim(attr), str_trim(with)))
		ng_unknown(x, pool_printf(x->p, "sdp-attr=" STR_FMT, STR_ARG(attr)));
}

/* ["from", "to"] is a single pair. */
static bool is_pair(const struct ngval *v)
{
	const struct ngval *a = v->type == NGVAL_LIST ? v->first : NULL, *b = a ? a->next : NULL;

	return b && !b->next && a->type == NGVAL_STR && b->type == NGVAL_STR &&
		!memchr(a->str.s, '>', a->str.len);
}

void ng_set_attr_tree(struct ng_parser *x, const struct ngval *v)
{
	if (!is_tree(v))
		return;
	for (const struct ngval *s = v->first; s; s = s->next) {
		if (!is_tree(s))
			continue;
		for (const struct ngval *c = s->first; c && !ng_too_many(x); c = c->next) {
			struct attr_place at = {.section = s->key};

			if (attr_op(&at.op, c->key) && at.op == SDP_ATTR_SUBSTITUTE && is_pair(c))
				take_attr(x, &at, c);
			else if (attr_op(&at.op, c->key))
				each(x, c, take_attr, &at);
			else
				ng_unknown(
					x, pool_printf(x->p, "sdp-attr=" STR_FMT, STR_ARG(c->key)));
		}
	}
}

/* --- Flags ------------------------------------------------------------------------------------ */

/* "strip-PCMA": the first word, and what follows. */
static struct str word_of(struct str *rest)
{
	return str_cut(rest, '-');
}

bool ng_set_filter_word(struct ng_parser *x, struct str word)
{
	static const struct str codec = {"codec-", 6}, attr = {"sdp-attr-", 9},
				transcode = {"transcode-", 10};
	struct attr_place at;
	struct str rest;
	bool was_raw;
	int op;

	if (word.len > codec.len && ng_spelled_like((struct str){word.s, codec.len}, codec)) {
		rest = (struct str){word.s + codec.len, word.len - codec.len};
		return codec_op(&op, word_of(&rest)) && rest.len && add_codec(x, op, rest);
	}
	if (word.len > transcode.len &&
		ng_spelled_like((struct str){word.s, transcode.len}, transcode))
		return add_codec(x, SDP_CODEC_TRANSCODE,
			(struct str){word.s + transcode.len, word.len - transcode.len});
	if (word.len > attr.len && ng_spelled_like((struct str){word.s, attr.len}, attr)) {
		struct ngval v = {.type = NGVAL_STR};

		rest = (struct str){word.s + attr.len, word.len - attr.len};
		if (!attr_op(&at.op, word_of(&rest)))
			return false;
		at.section = word_of(&rest);
		v.str = rest;
		if (!at.section.len || !rest.len)
			return false;
		was_raw = x->raw;
		x->raw = true;
		take_attr(x, &at, &v);
		x->raw = was_raw;
		return true;
	}
	return false;
}
