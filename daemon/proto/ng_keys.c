/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads an ng message key by key. Flags come as keys or as one raw string ("rtpp-flags"). In both,
 * most values can be given under a key or as one flat word. The table below maps all of them to the
 * same setters in ng_values.c. The raw string is read last, so the script's own words take
 * precedence. Pure. */
#include "proto/ng_int.h"

#include <stddef.h>

enum key_kind {
	KEY_TEXT,   /* the value as it is, into the request at off */
	KEY_NUMBER, /* one value, by set */
	KEY_ITEMS,  /* several values, each by set; flat words "key-value" too */
	KEY_TOP,    /* several values, only as a key of the message: else it would recurse */
	KEY_BODY,   /* KEY_TEXT, but only as a key of the message */
};

struct key {
	const char *name;
	enum key_kind kind;
	size_t off;
	ng_value_fn *set;
};

static int64_t number(struct str value, int64_t def)
{
	return ngval_int(&(struct ngval){.type = NGVAL_STR, .str = value}, def);
}

static bool set_tos(struct ng_parser *x, struct str value)
{
	int64_t n = number(value, 256); /* not a number: no change */

	x->r->tos = n < 0 ? NG_TOS_KEEP : n <= 255 ? (int)n : NG_TOS_DEFAULT;
	return true;
}

static bool set_delete_delay(struct ng_parser *x, struct str value)
{
	int64_t n = number(value, -1);

	x->r->delete_delay = n < 0 ? -1 : n;
	return true;
}

static bool set_limit(struct ng_parser *x, struct str value)
{
	int64_t n = number(value, -1);

	x->r->limit = n < 0 ? -1 : n;
	return true;
}

/* [IP4, address], or only the address. */
static bool set_received_from(struct ng_parser *x, struct str value)
{
	struct endpoint e;

	if (endpoint_parse_addr(&e, value) == 0)
		x->r->received_from = value;
	return true;
}

static bool set_from_interface(struct ng_parser *x, struct str value)
{
	x->r->direction[0] = value;
	return true;
}

static bool set_to_interface(struct ng_parser *x, struct str value)
{
	x->r->direction[1] = value;
	return true;
}

/* As a key with a value, not only as a flag. */
static bool set_record_call(struct ng_parser *x, struct str value)
{
	if (ng_spelled_like(value, STR("yes")) || ng_spelled_like(value, STR("on")))
		x->r->flags |= 1ull << NG_FLAG_RECORD_CALL;
	return true;
}

static bool set_pause(struct ng_parser *x, struct str value)
{
	if (ng_spelled_like(value, STR("yes")) || ng_spelled_like(value, STR("on")))
		x->r->flags |= 1ull << NG_FLAG_PAUSE;
	else
		x->r->play.pause = number(value, -1); /* play DTMF */
	return true;
}

static bool set_duration(struct ng_parser *x, struct str value)
{
	x->r->play.duration = number(value, -1);
	return true;
}

static bool set_volume(struct ng_parser *x, struct str value)
{
	int64_t n = number(value, -1);

	x->r->play.volume = n == INT64_MIN ? INT64_MAX : n < 0 ? -n : n;
	return true;
}

static bool set_frequency(struct ng_parser *x, struct str value)
{
	if (x->r->dtmf.hz >= 0) /* of several the first */
		return true;
	x->r->dtmf.hz = number(value, -1);
	if (x->r->dtmf.hz < NG_DTMF_HZ_MIN || x->r->dtmf.hz > NG_DTMF_HZ_MAX)
		ng_note(x, STR("frequency"), "not 100 to 3400 Hz, another is used");
	return true;
}

static bool set_end_digits(struct ng_parser *x, struct str value)
{
	x->r->dtmf.end_digits = number(value, -1);
	return true;
}

static bool set_end_ms(struct ng_parser *x, struct str value)
{
	x->r->dtmf.end_ms = number(value, -1);
	return true;
}

static bool set_repeat_times(struct ng_parser *x, struct str value)
{
	x->r->play.repeat_times = number(value, -1);
	return true;
}

static bool set_repeat_duration(struct ng_parser *x, struct str value)
{
	x->r->play.repeat_ms = number(value, -1);
	return true;
}

static bool set_start_pos(struct ng_parser *x, struct str value)
{
	x->r->play.start_pos = number(value, -1);
	return true;
}

static bool set_from_tag_of_many(struct ng_parser *x, struct str value)
{
	if (x->r->from_tags_n < NG_FROM_TAGS_MAX)
		x->r->from_tags[x->r->from_tags_n++] = value;
	return true;
}

static bool set_callback(struct ng_parser *x, struct str value)
{
	return endpoint_parse_addr(&x->r->callback, value) == 0;
}

static bool set_supports(struct ng_parser *x, struct str value)
{
	if (ng_spelled_like(value, STR("load limit")))
		x->r->supports_load_limit = true;
	return true;
}

static bool set_sip_code(struct ng_parser *x, struct str value)
{
	uint64_t code;

	if (str_to_u64(&code, value, 699) || code < 100)
		return false;
	x->r->sip_code = (uint16_t)code;
	return true;
}

static bool set_flag(struct ng_parser *x, struct str word);
static bool set_rtpp_flags(struct ng_parser *x, struct str text);

static const struct ng_template *template_find(const struct ng_parser *x, struct str name)
{
	for (size_t i = 0; x->templates && i < x->templates->n; i++)
		if (ng_spelled_like(x->templates->one[i].name, name))
			return &x->templates->one[i];
	return NULL;
}

static bool set_template(struct ng_parser *x, struct str name)
{
	const struct ng_template *t = x->in_template ? NULL : template_find(x, name);
	bool done;

	if (!t)
		return false;
	x->in_template = true;
	done = set_rtpp_flags(x, t->flags);
	x->in_template = false;
	return done;
}

/* Templates that apply without being named. */
static void set_default_templates(struct ng_parser *x, const struct ngval *msg)
{
	struct str command = STR_NONE;

	for (const struct ngval *c = msg->first; c; c = c->next)
		if (ng_spelled_like(c->key, STR("command")))
			command = ngval_str(x->p, c);
	(void)set_template(x, STR("default"));
	if (command.len && !ng_spelled_like(command, STR("default")))
		(void)set_template(x, command);
	x->directions = 0;
}

/* clang-format off */
#define TEXT(name, kind, field) {name, kind, offsetof(struct ng_request, field), NULL}
/* clang-format on */

static const struct key keys[] = {
	TEXT("command", KEY_BODY, command_text),
	TEXT("sdp", KEY_BODY, sdp),
	/* in a raw string "via-branch=auto" was meant for the proxy's module, which sends the
	 * branch itself as a key */
	TEXT("via-branch", KEY_BODY, via_branch),
	TEXT("call-id", KEY_TEXT, call_id),
	TEXT("to-call-id", KEY_TEXT, to_call_id),
	TEXT("from-tag", KEY_TEXT, from_tag),
	TEXT("to-tag", KEY_TEXT, to_tag),
	TEXT("media-address", KEY_TEXT, media_address),
	TEXT("label", KEY_TEXT, label),
	TEXT("from-label", KEY_TEXT, label),
	TEXT("to-label", KEY_TEXT, to_label),
	TEXT("address", KEY_TEXT, address),
	TEXT("recording-file", KEY_TEXT, recording_file),
	TEXT("recording-pattern", KEY_TEXT, recording_pattern),
	TEXT("metadata", KEY_TEXT, metadata),
	TEXT("file", KEY_TEXT, play.file),
	TEXT("blob", KEY_BODY, play.blob),
	TEXT("blob64", KEY_TEXT, play.blob64),
	TEXT("db-id", KEY_TEXT, play.db_id),
	TEXT("code", KEY_TEXT, play.code),
	TEXT("digit", KEY_TEXT, play.code),
	/* The longer names first: flat words "key-value" have the key as a prefix. */
	{"DTMF-security-trigger-end-digits", KEY_NUMBER, 0, set_end_digits},
	{"DTMF-security-trigger-end-ms", KEY_NUMBER, 0, set_end_ms},
	TEXT("DTMF-security-trigger-end", KEY_TEXT, dtmf.end),
	TEXT("DTMF-security-trigger", KEY_TEXT, dtmf.trigger),
	{"trigger-end-digits", KEY_NUMBER, 0, set_end_digits},
	{"trigger-end-time", KEY_NUMBER, 0, set_end_ms},
	{"trigger-end-ms", KEY_NUMBER, 0, set_end_ms},
	TEXT("trigger-end", KEY_TEXT, dtmf.end),
	TEXT("end-trigger", KEY_TEXT, dtmf.end),
	TEXT("trigger", KEY_TEXT, dtmf.trigger),
	{"frequency", KEY_ITEMS, 0, set_frequency},
	{"frequencies", KEY_ITEMS, 0, set_frequency},
	{"duration", KEY_NUMBER, 0, set_duration},
	{"volume", KEY_NUMBER, 0, set_volume},
	{"repeat-times", KEY_NUMBER, 0, set_repeat_times},
	{"repeat-duration", KEY_NUMBER, 0, set_repeat_duration},
	{"start-pos", KEY_NUMBER, 0, set_start_pos},
	TEXT("max-sessions", KEY_BODY, max[0]),
	TEXT("max-cpu", KEY_BODY, max[1]),
	TEXT("max-load", KEY_BODY, max[2]),
	TEXT("max-bandwidth", KEY_BODY, max[3]),
	TEXT("state", KEY_BODY, state),
	TEXT("level", KEY_BODY, level),
	TEXT("part", KEY_BODY, part),
	TEXT("filter", KEY_BODY, find),
	TEXT("sort", KEY_BODY, sort),
	TEXT("after", KEY_BODY, after),
	TEXT("show", KEY_BODY, show),
	TEXT("ended", KEY_BODY, ended),
	{"TOS", KEY_NUMBER, 0, set_tos},
	{"sip-code", KEY_NUMBER, 0, set_sip_code},
	{"delete-delay", KEY_NUMBER, 0, set_delete_delay},
	{"limit", KEY_NUMBER, 0, set_limit},
	{"from-interface", KEY_NUMBER, 0, set_from_interface},
	{"to-interface", KEY_NUMBER, 0, set_to_interface},
	{"flags", KEY_TOP, 0, set_flag},
	{"supports", KEY_TOP, 0, set_supports},
	{"record-call", KEY_ITEMS, 0, set_record_call},
	{"pause", KEY_ITEMS, 0, set_pause},
	{"direction", KEY_ITEMS, 0, ng_set_direction},
	{"received-from", KEY_ITEMS, 0, set_received_from},
	{"replace", KEY_ITEMS, 0, ng_set_replace},
	{"rtcp-mux", KEY_ITEMS, 0, ng_set_rtcp_mux},
	{"bundle", KEY_ITEMS, 0, ng_set_bundle},
	{"SDES", KEY_ITEMS, 0, ng_set_sdes},
	{"OSRTP", KEY_ITEMS, 0, ng_set_osrtp},
	{"DTLS-fingerprint", KEY_ITEMS, 0,
		ng_set_dtls_fingerprint}, /* before DTLS: the longer name first */
	{"DTLS", KEY_ITEMS, 0, ng_set_dtls},
	TEXT("MIKEY-peer", KEY_TEXT, mikey_peer), /* before MIKEY: the longer name first */
	{"MIKEY", KEY_ITEMS, 0, ng_set_mikey},
	{"ZRTP", KEY_ITEMS, 0, ng_set_zrtp},
	{"preauth", KEY_ITEMS, 0, ng_set_preauth},
	{"ICE-lite", KEY_ITEMS, 0, ng_set_ice_lite},
	{"ICE", KEY_ITEMS, 0, ng_set_ice},
	{"endpoint-learning", KEY_ITEMS, 0, ng_set_learning},
	{"transport-protocol", KEY_ITEMS, 0, ng_set_transport},
	{"address-family", KEY_ITEMS, 0, ng_set_family},
	{"from-tags", KEY_ITEMS, 0, set_from_tag_of_many},
	{"interface", KEY_ITEMS, 0, ng_set_direction},
	{"xmlrpc-callback", KEY_ITEMS, 0, set_callback},
	{"all", KEY_ITEMS, 0, ng_set_all},
	{"template", KEY_ITEMS, 0, set_template},
	{"drop-traffic", KEY_ITEMS, 0, ng_set_traffic},
	{"media-echo", KEY_ITEMS, 0, ng_set_echo},
	{"sdp-media-remove", KEY_ITEMS, 0, ng_set_media_remove},
	{"generate-RTCP", KEY_ITEMS, 0, ng_set_generate_rtcp},
	{"DTMF-security", KEY_ITEMS, 0, ng_set_dtmf_security},
	{"audio-player", KEY_ITEMS, 0, ng_set_player},
	{"ptime-reverse", KEY_ITEMS, 0, ng_set_ptime_reverse}, /* the longer name first */
	{"ptime", KEY_ITEMS, 0, ng_set_ptime},
	{"alias-key", KEY_ITEMS, 0, ng_set_alias_key},
	TEXT("set-label", KEY_TEXT, set_label),
};

const char *ng_key_name(size_t i)
{
	return i < ARRAY_LEN(keys) ? keys[i].name : NULL;
}

const char *ng_request_control(const struct ng_request *r)
{
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		bool text = keys[i].kind == KEY_TEXT || keys[i].kind == KEY_BODY;

		if (text && keys[i].off != offsetof(struct ng_request, sdp) &&
			keys[i].off != offsetof(struct ng_request, play.blob) &&
			str_has_control(*(const struct str *)((const char *)r + keys[i].off)))
			return keys[i].name;
	}
	for (uint32_t i = 0; i < r->from_tags_n; i++)
		if (str_has_control(r->from_tags[i]))
			return "from-tags";
	return NULL;
}

static const struct key *key_find(struct str name)
{
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (ng_spelled_like(str_from(keys[i].name), name))
			return &keys[i];
	return NULL;
}

void ng_unknown(struct ng_parser *x, struct str word)
{
	if (x->unknown_count < NG_UNKNOWN_MAX)
		x->unknown[x->unknown_count] = word;
	x->unknown_count++;
}

/* Each word is compared with about a hundred names, so thousands of words would delay other
 * requests. No honest client sends so many. */
bool ng_too_many(struct ng_parser *x)
{
	if (x->words < NG_WORDS_MAX) {
		x->words++;
		return false;
	}
	if (!x->overfull)
		ng_unknown(x, STR("too many words: the last ones are ignored"));
	x->overfull = true;
	return true;
}

static void set_item(struct ng_parser *x, const struct key *k, struct str value)
{
	value = str_trim(value);
	if (value.len == 0 || ng_too_many(x) || k->set(x, value))
		return;
	ng_unknown(x, pool_printf(x->p, "%s=" STR_FMT, k->name, STR_ARG(value)));
}

/* Each value of a list, of a dictionary ("order" under SDES), or of one string with commas. */
static void set_items(struct ng_parser *x, const struct key *k, const struct ngval *v)
{
	struct str rest, item;

	if (v->type == NGVAL_LIST || v->type == NGVAL_DICT) {
		for (const struct ngval *c = v->first; c; c = c->next) {
			item = ngval_str(x->p, c);
			if (c->key.len)
				item = pool_printf(
					x->p, STR_FMT ":" STR_FMT, STR_ARG(c->key), STR_ARG(item));
			set_item(x, k, item);
		}
		return;
	}
	rest = ngval_str(x->p, v);
	while (rest.len)
		set_item(x, k, str_cut(&rest, ','));
}

static void set_key(struct ng_parser *x, const struct key *k, const struct ngval *v)
{
	switch (k->kind) {
	case KEY_TEXT:
	case KEY_BODY:
		if (v->type == NGVAL_STR || v->type == NGVAL_INT)
			*(struct str *)((char *)x->r + k->off) = ngval_str(x->p, v);
		return;
	case KEY_NUMBER:
		k->set(x, str_trim(ngval_str(x->p, v)));
		return;
	case KEY_ITEMS:
	case KEY_TOP:
		/* a list is the whole answer; single "direction=a direction=b" add up */
		if (v->type == NGVAL_LIST && k->set == ng_set_direction)
			x->directions = 0;
		set_items(x, k, v);
		return;
	}
}

/* Keys whose value is a tree. */
static bool set_tree(struct ng_parser *x, const struct ngval *v)
{
	if (ng_spelled_like(v->key, STR("codec")))
		ng_set_codec_tree(x, v);
	else if (ng_spelled_like(v->key, STR("sdp-attr")))
		ng_set_attr_tree(x, v);
	else
		return false;
	return true;
}

static bool set_flat(struct ng_parser *x, struct str word);

static bool set_word(struct ng_parser *x, struct str word)
{
	return ng_set_word(x, word) || ng_set_filter_word(x, word) || set_flat(x, word);
}

/* "codec-strip=PCMA" is "codec-strip-PCMA", "transcode=[A B]" two such words. */
static bool set_joined(struct ng_parser *x, const struct ngval *v)
{
	const struct ngval *c = v->type == NGVAL_LIST ? v->first : v;
	bool known = c && v->key.len;

	for (; c && known && !ng_too_many(x); c = v->type == NGVAL_LIST ? c->next : NULL)
		known = set_word(x,
			pool_printf(x->p, STR_FMT "-" STR_FMT, STR_ARG(v->key),
				STR_ARG(ngval_str(x->p, c))));
	return known;
}

/* k=v of a raw string or among flags: like a key of the message, except for those that must come
 * as one. */
static void set_pair(struct ng_parser *x, const struct ngval *v)
{
	const struct key *k;

	if (set_tree(x, v))
		return;
	k = key_find(v->key);
	if (k && k->kind != KEY_TOP && k->kind != KEY_BODY)
		set_key(x, k, v);
	else if (!k && !ng_set_ignored_key(x, v->key) && !set_joined(x, v))
		ng_unknown(x, v->key);
}

/* "SDES-off", "rtcp-mux-offer", "replace-origin": a key and its value in one word. */
static bool set_flat(struct ng_parser *x, struct str word)
{
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		struct str name = str_from(keys[i].name), rest;

		if (keys[i].kind != KEY_ITEMS || word.len < name.len + 2 ||
			!ng_spelled_like((struct str){word.s, name.len}, name) ||
			!memchr("-_ :", word.s[name.len], 4))
			continue;
		rest = (struct str){word.s + name.len + 1, word.len - name.len - 1};
		if (keys[i].set(x, rest))
			return true;
	}
	return false;
}

static bool set_flag(struct ng_parser *x, struct str word)
{
	struct ngval pair = {.type = NGVAL_STR, .str = word};

	if (set_word(x, word))
		return true;
	if (memchr(word.s, '=', word.len)) {
		pair.key = str_cut(&pair.str, '=');
		set_pair(x, &pair);
		return true;
	}
	ng_unknown(x, word);
	return true;
}

static bool set_rtpp_flags(struct ng_parser *x, struct str text)
{
	const struct ngval *list = ng_flags_split(x->p, text);

	if (!list)
		return false;
	x->directions = 0;
	x->raw = true;
	for (const struct ngval *c = list->first; c && !ng_too_many(x); c = c->next) {
		if (c->key.len)
			set_pair(x, c);
		else if (c->type == NGVAL_STR && c->str.len)
			set_flag(x, c->str);
	}
	x->raw = false;
	return true;
}

bool ng_set_message(struct ng_parser *x, const struct ngval *msg)
{
	struct str raw = STR_NONE;

	set_default_templates(x, msg);
	for (const struct ngval *c = msg->first; c; c = c->next) {
		const struct key *k;

		if (ng_too_many(x) || set_tree(x, c))
			continue;
		k = key_find(c->key);
		if (k)
			set_key(x, k, c);
		else if (ng_spelled_like(c->key, STR("rtpp-flags")))
			raw = ngval_str(x->p, c);
		else if (c->key.len && !ng_set_ignored_key(x, c->key))
			ng_unknown(x, c->key);
	}
	return !raw.len || set_rtpp_flags(x, raw);
}
