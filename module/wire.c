/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ng messages as the module writes and reads them, by daemon/proto's codec. Requests carry the
 * script's flag string unread, as "rtpp-flags", so every flag of the daemon works here with the
 * same meaning. Replies are not trusted: text for logs or SIP is made printable. Keys are in SDP
 * only, which is never logged. */
#include "wire.h"

#include <errno.h>
#include <stdio.h>

#include "base/secret_file.h"
#include "base/secmem.h"
#include "proto/bencode.h"
#include "proto/json.h"
#include "proto/ng_auth.h"

#define POOL_LIMIT (8u << 20)
#define NAME_MAX   64u /* maximum length of a sent name, bytes */

static struct str str_of(struct text t)
{
	return (struct str){t.s, t.len};
}

bool text_is(struct text a, const char *z)
{
	return str_eq_nocase(str_of(a), str_from(z));
}

void wire_wipe(void *p, size_t len)
{
	secmem_wipe(p, len);
}

/* --- Keys ------------------------------------------------------------------------------------- */

struct wire_keys {
	struct ng_keys keys;
};

int wire_keys_read(struct wire_keys **out, const char *option, const char *path, char err[WIRE_ERR])
{
	struct wire_keys *k = secmem_alloc(sizeof(*k));
	char text[4096];
	uint32_t line;
	int ret;

	if (!k)
		return -ENOMEM;
	ret = secret_file_read(option, path, text, sizeof(text), err, WIRE_ERR);
	if (ret >= 0) {
		ret = ng_keys_parse(&k->keys, (struct str){text, (size_t)ret}, &line);
		if (ret)
			snprintf(err, WIRE_ERR,
				"%s=%s, line %u: need one key of 64 hexadecimal digits per line, at most %u keys",
				option, path, line, NG_KEYS_MAX);
	}
	wire_wipe(text, sizeof(text));
	if (ret)
		wire_keys_free(k);
	else
		*out = k;
	return ret;
}

void wire_keys_free(struct wire_keys *k)
{
	if (k)
		secmem_free(k, sizeof(*k));
}

/* Up to the first blank. */
static struct text first_word(const char *p, size_t len)
{
	const char *end = len ? memchr(p, ' ', len) : NULL;

	return end && end != p ? (struct text){p, (size_t)(end - p)} : (struct text){"", 0};
}

static struct str body_of(struct text datagram, struct text word)
{
	return str_trim((struct str){datagram.s + word.len + 1, datagram.len - word.len - 1});
}

struct text wire_cookie(const struct wire_keys *keys, const char *p, size_t len)
{
	struct text word = first_word(p, len);
	struct ng_signed s;

	if (!keys)
		return word;
	if (ng_signed_parse(&s, str_of(word)))
		return (struct text){"", 0};
	return (struct text){s.cookie.s, s.cookie.len};
}

bool wire_genuine(const struct wire_keys *keys, struct text request, const char *p, size_t len)
{
	struct text asked = first_word(request.s, request.len), said = first_word(p, len);

	return !keys ||
		(asked.len && said.len &&
			ng_verify_reply(&keys->keys, str_of(asked), str_of(said),
				body_of((struct text){p, len}, said)));
}

static bool says(struct str s, const char *what)
{
	return s.len && memmem(s.s, s.len, what, strlen(what));
}

/* --- Requests --------------------------------------------------------------------------------- */

static void add(struct pool *p, struct ngval *d, struct str key, struct text value)
{
	if (value.len)
		ngval_add_str(p, d, key, str_of(value));
}

/* Names come from strangers. What could end the name, the list or the flag becomes "_". */
static struct str name(struct pool *p, struct text t)
{
	struct str s = {t.s, t.len < NAME_MAX ? t.len : NAME_MAX};
	char *copy = s.len ? pool_alloc(p, s.len) : NULL;

	if (!copy)
		return STR_NONE;
	for (size_t i = 0; i < s.len; i++) {
		char c = s.s[i];
		bool is =
			(c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');

		copy[i] = is || (c && strchr("-+._~%*", c)) ? c : '_';
	}
	return (struct str){copy, s.len};
}

/* For lists of calls (xcipher-ng(7), metadata), unless the script sets metadata itself. */
static void add_names(struct pool *p, struct ngval *d, const struct wire_request *r)
{
	if ((r->from_name.len || r->to_name.len) && !says(str_of(r->flags), "metadata="))
		ngval_add_str(p, d, STR("metadata"),
			pool_printf(p, "from:" STR_FMT "|to:" STR_FMT,
				STR_ARG(name(p, r->from_name)), STR_ARG(name(p, r->to_name))));
}

static struct ngval *build(struct pool *p, const struct wire_request *r)
{
	struct ngval *d = ngval_dict(p), *l;

	ngval_add_str(p, d, STR("command"), str_from(r->command));
	add(p, d, STR("sdp"), r->sdp);
	add(p, d, STR("call-id"), r->call_id);
	add(p, d, STR("from-tag"), r->from_tag);
	add(p, d, STR("to-tag"), r->to_tag);
	add(p, d, STR("via-branch"), r->via_branch);
	add_names(p, d, r);
	if (r->received_from.len) {
		l = ngval_add_list(p, d, STR("received-from"));
		ngval_add_str(p, l, STR_NONE, r->ipv6 ? STR("IP6") : STR("IP4"));
		ngval_add_str(p, l, STR_NONE, str_of(r->received_from));
	}
	if (r->flags.len || r->added.len)
		ngval_add_str(p, d, STR("rtpp-flags"),
			pool_printf(p, STR_FMT " " STR_FMT, STR_ARG(str_of(r->flags)),
				STR_ARG(str_of(r->added))));
	if (r->call_id.len) {
		ngval_add_str(p, d, STR("sip-message-type"),
			r->reply ? STR("sip_reply") : STR("sip_request"));
		if (r->code)
			ngval_add_int(p, d, STR("sip-code"), r->code);
		l = ngval_add_list(p, d, STR("supports"));
		ngval_add_str(p, l, STR_NONE, STR("load limit"));
	}
	return d;
}

static int finish(char *buf, size_t size, struct wire_sign sign, struct pool *p, struct text cookie,
	const struct ngval *d)
{
	size_t head = cookie.len + (sign.keys ? NG_SIGNATURE : 0) + 1;
	char signature[NG_SIGNATURE + 1];
	struct sbuf b;
	int err;

	sbuf_init(&b, WIRE_MAX);
	sbuf_printf(&b, "%.*s%*s", (int)cookie.len, cookie.s, (int)(head - cookie.len), "");
	if (d && !pool_failed(p))
		bencode_write(&b, d);
	err = !d || pool_failed(p) ? -ENOMEM : b.err;
	if (!err && sign.keys) {
		if (ng_sign_request(signature, &sign.keys->keys, str_of(cookie), sign.seconds,
			    (struct str){b.p + head, b.len - head}))
			memcpy(b.p + cookie.len, signature, NG_SIGNATURE);
		else
			err = -EMSGSIZE;
	}
	if (!err && b.len > size)
		err = -EMSGSIZE;
	if (!err) {
		memcpy(buf, b.p, b.len);
		err = (int)b.len;
	}
	sbuf_fini(&b);
	return err;
}

int wire_write(char *buf, size_t size, struct wire_sign sign, struct text cookie,
	const struct wire_request *r)
{
	struct pool *p;
	int n;

	if (pool_create(&p, POOL_LIMIT))
		return -ENOMEM;
	n = finish(buf, size, sign, p, cookie, build(p, r));
	pool_destroy(p);
	return n;
}

static struct ngval *reread(struct pool *p, struct text datagram)
{
	struct text word = first_word(datagram.s, datagram.len);
	struct ngval *v = NULL;
	size_t pos;

	if (!word.len || bencode_parse(&v, p, body_of(datagram, word), &pos))
		return NULL;
	return v;
}

int wire_rewrite(char *buf, size_t size, struct wire_sign sign, struct text datagram,
	struct text cookie, struct text flags)
{
	struct ngval *d;
	struct pool *p;
	int n;

	if (pool_create(&p, POOL_LIMIT))
		return -ENOMEM;
	d = reread(p, datagram);
	for (struct ngval *v = d ? d->first : NULL; v; v = v->next)
		if (str_eq(v->key, STR("rtpp-flags")))
			v->str = str_of(flags);
	n = finish(buf, size, sign, p, cookie, d);
	pool_destroy(p);
	return n;
}

size_t wire_flags(char *out, size_t size, struct text datagram)
{
	struct str s = STR_NONE;
	struct pool *p;

	if (pool_create(&p, POOL_LIMIT))
		return 0;
	s = ngval_str(p, ngval_get(reread(p, datagram), STR("rtpp-flags")));
	if (s.len >= size)
		s.len = 0;
	if (s.len)
		memcpy(out, s.s, s.len);
	out[s.len] = 0;
	pool_destroy(p);
	return s.len;
}

/* Text from a peer, for logs, variables and reason phrases: without control characters, cut to
 * size. */
static void printable(char *out, size_t size, struct str s)
{
	size_t n = s.len < size - 1 ? s.len : size - 1;

	for (size_t i = 0; i < n; i++)
		out[i] = s.s[i] >= 0x20 && s.s[i] < 0x7f ? s.s[i] : '?';
	out[n] = 0;
}

static bool has_word(const char *list, struct str word)
{
	struct str rest = str_from(list);

	while (rest.len)
		if (str_eq(str_cut(&rest, ','), word))
			return true;
	return false;
}

/* Accepts only characters of suite names, so that logs and flags may contain the list. */
static bool add_word(char *list, size_t size, struct str word)
{
	size_t have = strlen(list);

	if (!word.len || have + word.len + 2 > size || has_word(list, word))
		return false;
	for (size_t i = 0; i < word.len; i++)
		if (word.s[i] <= ' ' || word.s[i] > '~' || word.s[i] == ',')
			return false;
	snprintf(list + have, size - have, "%s" STR_FMT, have ? "," : "", STR_ARG(word));
	return true;
}

static void suites_of(char *out, struct pool *p, const struct ngval *tag)
{
	const struct ngval *medias = ngval_get_like(tag, STR("medias"));

	for (const struct ngval *m = medias ? medias->first : NULL; m; m = m->next) {
		const struct ngval *streams = ngval_get_like(m, STR("streams"));

		for (const struct ngval *s = streams ? streams->first : NULL; s; s = s->next)
			add_word(out, WIRE_SUITES,
				ngval_str(p, ngval_get_like(s, STR("crypto suite"))));
	}
}

/* The SAS of the first media that has one, and whether it is verified. */
static void sas_of(struct wire_sas *out, struct pool *p, const struct ngval *tag)
{
	const struct ngval *medias = ngval_get_like(tag, STR("medias"));

	for (const struct ngval *m = medias ? medias->first : NULL; m && !*out->text; m = m->next) {
		const struct ngval *z = ngval_get_like(m, STR("ZRTP"));

		add_word(out->text, sizeof(out->text), ngval_str(p, ngval_get_like(z, STR("SAS"))));
		add_word(out->verified, sizeof(out->verified),
			ngval_str(p, ngval_get_like(z, STR("verified"))));
	}
}

static bool is_printable(struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		if (s.s[i] <= ' ' || s.s[i] > '~')
			return false;
	return true;
}

/* The identity that MIKEY proved for all media that have one. Empty if media have different ones,
 * or if it does not fit: a script must not mistake a part for the whole. */
static void peer_of(char out[WIRE_PEER], struct pool *p, const struct ngval *tag)
{
	const struct ngval *medias = ngval_get_like(tag, STR("medias"));
	struct str peer = STR_NONE;

	for (const struct ngval *m = medias ? medias->first : NULL; m; m = m->next) {
		const struct ngval *mikey = ngval_get_like(m, STR("MIKEY"));
		struct str one = ngval_str(p, ngval_get_like(mikey, STR("peer")));

		if (peer.len && one.len && !str_eq(peer, one))
			return;
		peer = one.len ? one : peer;
	}
	if (peer.len < WIRE_PEER && is_printable(peer))
		snprintf(out, WIRE_PEER, STR_FMT, STR_ARG(peer));
}

static const struct ngval *tag_of(const struct ngval *tags, struct text tag)
{
	return tag.len ? ngval_get(tags, str_of(tag)) : NULL;
}

static void read_tags(
	struct wire_reply *out, const struct ngval *v, struct text from, struct text to)
{
	const struct ngval *tags = ngval_get(v, STR("tags"));
	struct sbuf b;

	if (!tags)
		return;
	suites_of(out->from_suite, out->pool, tag_of(tags, from));
	suites_of(out->to_suite, out->pool, tag_of(tags, to));
	sas_of(&out->from_sas, out->pool, tag_of(tags, from));
	sas_of(&out->to_sas, out->pool, tag_of(tags, to));
	peer_of(out->from_peer, out->pool, tag_of(tags, from));
	peer_of(out->to_peer, out->pool, tag_of(tags, to));
	sbuf_init(&b, 0);
	json_write(&b, v, false);
	if (!b.err) {
		struct str s = pool_strdup(out->pool, sbuf_view(&b));

		out->json = (struct text){s.s, s.s ? s.len : 0};
	}
	sbuf_fini(&b);
}

static enum wire_result result_of(struct str result, struct str reason, struct str warning)
{
	if (str_eq(result, STR("pong")))
		return WIRE_PONG;
	if (str_eq(result, STR("load limit")))
		return WIRE_LOAD_LIMIT;
	if (str_eq(result, STR("ok")))
		return str_starts(warning, STR("Call-ID not found")) ? WIRE_NO_CALL : WIRE_OK;
	if (str_eq(reason, STR("Parallel session limit reached")) ||
		str_eq(reason, STR("Ran out of ports")))
		return WIRE_LOAD_LIMIT;
	if (str_eq_nocase(reason, STR("Unknown call-id")))
		return WIRE_NO_CALL;
	return str_eq(result, STR("error")) ? WIRE_ERROR : WIRE_GARBAGE;
}

void wire_read(struct wire_reply *out, const char *p, size_t len, bool tree, struct text from_tag,
	struct text to_tag)
{
	struct text cookie = first_word(p, len);
	struct str reason, warning, sdp;
	struct ngval *v = NULL;
	size_t pos;

	*out = (struct wire_reply){.result = WIRE_GARBAGE, .reason = "unintelligible reply"};
	if (!cookie.len || pool_create((struct pool **)&out->pool, POOL_LIMIT))
		return;
	if (bencode_parse(
		    &v, out->pool, (struct str){p + cookie.len + 1, len - cookie.len - 1}, &pos) ||
		!v || v->type != NGVAL_DICT)
		return;
	reason = ngval_str(out->pool, ngval_get(v, STR("error-reason")));
	if (!reason.len)
		reason = ngval_str(out->pool, ngval_get(v, STR("message")));
	warning = ngval_str(out->pool, ngval_get(v, STR("warning")));
	sdp = ngval_str(out->pool, ngval_get(v, STR("sdp")));
	out->result = result_of(ngval_str(out->pool, ngval_get(v, STR("result"))), reason, warning);
	if (out->result == WIRE_GARBAGE)
		return;
	printable(out->reason, sizeof(out->reason), reason);
	printable(out->warning, sizeof(out->warning), warning);
	out->sdp = (struct text){sdp.s, sdp.len};
	if (tree)
		read_tags(out, v, from_tag, to_tag);
}

void wire_fini(struct wire_reply *r)
{
	pool_destroy(r->pool);
	*r = (struct wire_reply){.result = WIRE_GARBAGE};
}

bool wire_has_media(struct text body)
{
	for (size_t i = 0; i + 2 <= body.len; i++)
		if (body.s[i] == 'm' && body.s[i + 1] == '=' &&
			(!i || body.s[i - 1] == '\n' || body.s[i - 1] == '\r'))
			return true;
	return false;
}

bool wire_has_sdp(struct text body)
{
	static const char type[] = "application/sdp";
	const size_t n = sizeof(type) - 1;

	for (size_t i = 0; i + n <= body.len; i++)
		if (text_is((struct text){body.s + i, n}, type))
			return true;
	return wire_has_media(body);
}

bool wire_sdp_media(char *out, size_t size, struct text *rest, bool opportunistic)
{
	struct str left = str_of(*rest), here, line;
	bool media = false, secure = false;

	out[0] = 0;
	while (left.len) {
		here = left;
		line = str_trim(str_cut(&left, '\n'));
		if (str_starts(line, STR("m="))) {
			struct str port;

			if (media) {
				left = here;
				break;
			}
			str_cut(&line, ' ');
			port = str_cut(&line, ' ');
			line = str_cut(&line, ' ');
			media = !str_eq(port, STR("0")) && says(line, "RTP/");
			secure = opportunistic || says(line, "SAVP");
		} else if (media && secure && str_starts(line, STR("a=crypto:"))) {
			str_cut(&line, ' ');
			add_word(out, size, str_cut(&line, ' '));
		}
	}
	*rest = (struct text){left.s, left.len};
	if (media && !out[0])
		snprintf(out, size, "none");
	return media;
}

int wire_sdp_suites(char *out, size_t size, struct text sdp)
{
	struct str rest = str_of(sdp), line, value;
	bool media = false, dtls = false;
	int count = 0;

	out[0] = 0;
	while (rest.len) {
		line = str_trim(str_cut(&rest, '\n'));
		media |= str_starts(line, STR("m="));
		dtls |= str_starts(line, STR("a=fingerprint:"));
		if (!str_starts(line, STR("a=crypto:")))
			continue;
		value = (struct str){line.s + 9, line.len - 9};
		str_cut(&value, ' '); /* its number */
		count += add_word(out, size, str_cut(&value, ' '));
	}
	if (!count && media)
		snprintf(out, size, "%s", dtls ? "DTLS" : "none");
	return count;
}
