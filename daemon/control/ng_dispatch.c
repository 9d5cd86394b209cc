/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One message in, one reply out, for all transports. A message without a cookie, or without a
 * signature if keys are set, gets no reply, because its source may be forged. A cookie that is
 * followed by nonsense gets an error reply. Replies, errors included, are cached by (source,
 * cookie). */
#include "control/ng_dispatch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/secret_file.h"
#include "base/log.h"
#include "base/secmem.h"
#include "control/cookie.h"
#include "control/once.h"

#define LOG_EVERY_NS (10 * NS_PER_SEC)
#define KEY_FILE_MAX 4096u

/* 64 MiB hold 30 s of 1,000 requests a second with 2 KiB each */
static const struct cookie_limits cache_limits = {.bytes = 64u << 20, .entries = 131072};

struct ng_dispatch {
	struct handler *handler;
	struct cookie_cache *cache;
	struct once *once;
	struct ng_keys *keys; /* in secure memory; NULL: none are set */
	struct log_limit log_memory, log_drop[NG_DROP_COUNT];
};

int ng_dispatch_create(struct ng_dispatch **out, struct handler *h)
{
	struct ng_dispatch *f = calloc(1, sizeof(*f));
	uint8_t key[16];
	int err;

	if (!f)
		return -ENOMEM;
	f->handler = h;
	err = secmem_random(key, sizeof(key));
	if (!err)
		err = cookie_create(&f->cache, key, cache_limits);
	if (!err)
		err = once_create(&f->once, key, ONCE_ENTRIES);
	if (err) {
		ng_dispatch_destroy(f);
		return err;
	}
	*out = f;
	return 0;
}

void ng_dispatch_destroy(struct ng_dispatch *f)
{
	if (!f)
		return;
	cookie_destroy(f->cache);
	once_destroy(f->once);
	if (f->keys)
		secmem_free(f->keys, sizeof(*f->keys));
	free(f);
}

void ng_dispatch_tick(struct ng_dispatch *f, uint64_t now_mono_ns)
{
	cookie_tick(f->cache, now_mono_ns);
	once_tick(f->once, clock_real_ns() / NS_PER_SEC);
}

/* --- Keys ------------------------------------------------------------------------------------- */

static int parse_keys(
	struct ng_keys *keys, struct str text, const char *path, char *err, size_t err_len)
{
	uint32_t line;
	int ret = ng_keys_parse(keys, text, &line);

	if (ret == -EINVAL)
		snprintf(err, err_len,
			"--ng-key-file=%s: line %u is not a key of 64 hexadecimal digits, as \"openssl rand -hex 32\" makes them",
			path, line);
	else if (ret)
		snprintf(err, err_len, "--ng-key-file=%s must hold 1 to %u keys, one per line",
			path, NG_KEYS_MAX);
	return ret;
}

int ng_dispatch_keys(struct ng_dispatch *f, const char *key_file, char *err, size_t err_len)
{
	struct ng_keys *keys = secmem_alloc(sizeof(*keys));
	char text[KEY_FILE_MAX];
	int ret;

	if (!keys)
		return -ENOMEM;
	ret = secret_file_read("--ng-key-file", key_file, text, sizeof(text), err, err_len);
	if (ret >= 0)
		ret = parse_keys(keys, (struct str){text, (size_t)ret}, key_file, err, err_len);
	secmem_wipe(text, sizeof(text));
	if (ret) {
		secmem_free(keys, sizeof(*keys));
		return ret;
	}
	if (f->keys)
		secmem_free(f->keys, sizeof(*f->keys));
	f->keys = keys;
	log_info("ng over UDP and TCP must be signed: %u key%s in %s", keys->n,
		keys->n == 1 ? "" : "s", key_file);
	return 0;
}

bool ng_dispatch_has_keys(const struct ng_dispatch *f)
{
	return f->keys;
}

/* --- Admission -------------------------------------------------------------------------------- */

void ng_dispatch_drop(
	struct ng_dispatch *f, enum ng_drop reason, const struct endpoint *from, uint32_t n)
{
	static const char *const texts[NG_DROP_COUNT] = {
#define X(id, name, text) text,
		NG_DROPS(X)
#undef X
	};
	char text[ENDPOINT_STRLEN];
	uint64_t held;

	handler_count_drops(f->handler, reason, n);
	if (log_limit_pass(&f->log_drop[reason], clock_mono_ns(), LOG_EVERY_NS, &held))
		log_warn("ng message from %s dropped: it %s (%llu more not logged)",
			endpoint_fmt(from, text), texts[reason], (unsigned long long)held);
}

void ng_dispatch_count(struct ng_dispatch *f, enum ng_drop reason, uint32_t n)
{
	handler_count_drops(f->handler, reason, n);
}

/* 0, or -ENOMSG after it was counted. key: a copy of the one that signed the request, because the
 * request may replace all keys. The caller wipes it. */
static int verify(struct ng_dispatch *f, const struct endpoint *from, const struct ng_frame *frame,
	uint64_t now_ns, struct ng_signed *signed_, uint8_t key[NG_KEY_LEN])
{
	uint32_t which;
	int err = ng_verify_request(
		f->keys, frame->cookie, frame->body, now_ns / NS_PER_SEC, signed_, &which);

	if (!err) {
		memcpy(key, f->keys->key[which], NG_KEY_LEN);
		return 0;
	}
	ng_dispatch_drop(f,
		err == -ENOMSG          ? NG_DROP_UNSIGNED
			: err == -ETIME ? NG_DROP_CLOCK
					: NG_DROP_FORGED,
		from, 1);
	return -ENOMSG;
}

bool ng_dispatch_admits(
	struct ng_dispatch *f, const struct endpoint *from, struct str message, uint64_t now_ns)
{
	uint8_t key[NG_KEY_LEN] = {0};
	struct ng_signed signed_;
	struct ng_frame frame;
	bool admitted;

	if (ng_frame_parse(&frame, message) == -ENOMSG) {
		ng_dispatch_drop(f, NG_DROP_COOKIE, from, 1);
		return false;
	}
	admitted = !f->keys || verify(f, from, &frame, now_ns, &signed_, key) == 0;
	secmem_wipe(key, sizeof(key));
	return admitted;
}

/* --- Replies ---------------------------------------------------------------------------------- */

static int pool_for_request(struct ng_dispatch *f, struct pool **pool)
{
	uint64_t held;
	int err = pool_create(pool, HANDLER_POOL_LIMIT);

	if (err && log_limit_pass(&f->log_memory, clock_mono_ns(), LOG_EVERY_NS, &held))
		log_err("no memory for an ng request");
	return err;
}

/* A message after its checks. */
struct checked {
	const struct endpoint *from;
	struct ng_frame frame;
	int frame_err;      /* of ng_frame_parse() */
	const uint8_t *key; /* signs the reply; NULL: not signed */
};

static int execute(
	struct ng_dispatch *f, const struct checked *m, uint64_t now_ns, struct sbuf *reply)
{
	struct handler_message body = {m->from, m->frame.body, m->frame.encoding};
	struct pool *pool;
	int err = pool_for_request(f, &pool), again = 0;

	if (err)
		return err;
	sbuf_str(reply, m->frame.cookie);
	sbuf_str(reply, STR(" "));
	if (m->frame_err)
		handler_reject(f->handler, pool, m->frame.encoding,
			m->frame_err == -ENODATA ? NGE_NO_PAYLOAD : NGE_BAD_FRAME, reply);
	else
		again = handler_request(f->handler, pool, &body, now_ns, reply);
	pool_destroy(pool);
	return reply->err ? reply->err : again;
}

/* Replaces the request's MAC at the end of the reply's cookie by the reply's. */
static int sign(const uint8_t key[NG_KEY_LEN], const struct ng_frame *frame, struct sbuf *reply,
	size_t start)
{
	size_t body = start + frame->cookie.len + 1;
	char mac[NG_MAC_DIGITS + 1];

	if (!ng_sign_reply(
		    mac, key, frame->cookie, (struct str){reply->p + body, reply->len - body}))
		return -ENOMEM;
	memcpy(reply->p + body - 1 - NG_MAC_DIGITS, mac, NG_MAC_DIGITS);
	return 0;
}

/* A signed request is executed once: its copies get the stored reply, or none. 0: it is new;
 * -ENOMSG: dropped. */
static int check_once(struct ng_dispatch *f, const struct endpoint *from,
	const struct ng_signed *signed_, uint64_t now_ns, bool answered)
{
	int err = once_check(f->once, signed_, from, now_ns / NS_PER_SEC);

	if (!err || (err == -EALREADY && answered))
		return 0;
	ng_dispatch_drop(f,
		err == -EALREADY             ? NG_DROP_LATE
			: err == -ETIME      ? NG_DROP_CLOCK
			: err == -EADDRINUSE ? NG_DROP_REPLAY
					     : NG_DROP_MEMORY,
		from, 1);
	return -ENOMSG;
}

static int answer(
	struct ng_dispatch *f, const struct checked *m, uint64_t now_ns, struct sbuf *reply)
{
	size_t start = reply->len;
	int err = execute(f, m, now_ns, reply);

	if ((!err || err == -EAGAIN) && m->key && sign(m->key, &m->frame, reply, start))
		return -ENOMEM;
	/* Without memory for the cache, a repeated unsigned request is executed twice, which is
	 * harmless. A signed one gets no second reply. */
	if (!err)
		cookie_put(f->cache, m->from, m->frame.cookie,
			(struct str){reply->p + start, reply->len - start});
	return err;
}

static int framed(struct ng_dispatch *f, const struct endpoint *from, struct str message,
	bool vouched, uint64_t now_ns, struct sbuf *reply)
{
	bool keyed = f->keys && !vouched;
	uint8_t key[NG_KEY_LEN];
	struct checked m = {.from = from, .key = keyed ? key : NULL};
	struct ng_signed signed_;
	struct str known;
	int err = 0;

	m.frame_err = ng_frame_parse(&m.frame, message);
	if (m.frame_err == -ENOMSG) {
		ng_dispatch_drop(f, NG_DROP_COOKIE, from, 1);
		return -ENOMSG;
	}
	if (keyed)
		err = verify(f, from, &m.frame, now_ns, &signed_, key);
	if (err)
		return err;
	known = cookie_get(f->cache, from, m.frame.cookie);
	if (keyed)
		err = check_once(f, from, &signed_, now_ns, known.s);
	if (!err && known.s) {
		handler_count_duplicate(f->handler);
		sbuf_str(reply, known);
		err = reply->err;
	} else if (!err) {
		err = answer(f, &m, now_ns, reply);
	}
	if (err == -EAGAIN && keyed)
		once_again(f->once, &signed_);
	secmem_wipe(key, sizeof(key));
	return err;
}

int ng_dispatch_framed(struct ng_dispatch *f, const struct endpoint *from, struct str message,
	uint64_t now_ns, struct sbuf *reply)
{
	return framed(f, from, message, false, now_ns, reply);
}

int ng_dispatch_http(struct ng_dispatch *f, const struct endpoint *from, struct str message,
	uint64_t now_ns, struct sbuf *reply)
{
	int err = framed(f, from, message, true, now_ns, reply);

	return err == -EAGAIN ? reply->err : err;
}

int ng_dispatch_plain(struct ng_dispatch *f, struct str body, uint64_t now_ns, struct sbuf *reply)
{
	struct pool *pool;
	int err = pool_for_request(f, &pool);

	if (err)
		return err;
	body = str_trim(body);
	if (body.len == 0)
		handler_reject(f->handler, pool, NG_JSON, NGE_NO_PAYLOAD, reply);
	else if (body.s[0] != 'd' && body.s[0] != '{')
		handler_reject(f->handler, pool, NG_JSON, NGE_BAD_FRAME, reply);
	else
		(void)handler_request(f->handler, pool,
			&(struct handler_message){
				NULL, body, body.s[0] == '{' ? NG_JSON : NG_BENCODE},
			now_ns, reply);
	pool_destroy(pool);
	return reply->err;
}

int ng_dispatch_reject(
	struct ng_dispatch *f, struct str cookie, const char *reason, struct sbuf *reply)
{
	struct pool *pool;
	int err = f->keys ? -EACCES : pool_for_request(f, &pool);

	if (err)
		return err;
	sbuf_str(reply, cookie);
	sbuf_str(reply, STR(" "));
	handler_reject(f->handler, pool, NG_BENCODE, reason, reply);
	pool_destroy(pool);
	return reply->err;
}
