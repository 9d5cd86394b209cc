/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One message in, one reply out, whichever way they travel. No cookie: silence. A cookie with
 * nonsense behind it: an error reply. Replies are cached, errors too, by (source, cookie). */
#include "control/front.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/secmem.h"
#include "control/cookie.h"

#define LOG_EVERY_NS (10 * NS_PER_SEC)

/* 64 MiB hold 30 s of 1,000 requests a second with 2 KiB each */
static const struct cookie_limits cache_limits = {.bytes = 64u << 20, .entries = 131072};

struct ng_front {
	struct handler *handler;
	struct cookie_cache *cache;
	struct log_limit log_memory;
};

int ng_front_create(struct ng_front **out, struct handler *h)
{
	struct ng_front *f = calloc(1, sizeof(*f));
	uint8_t key[16];
	int err;

	if (!f)
		return -ENOMEM;
	f->handler = h;
	err = secmem_random(key, sizeof(key));
	if (!err)
		err = cookie_create(&f->cache, key, cache_limits);
	if (err) {
		free(f);
		return err;
	}
	*out = f;
	return 0;
}

void ng_front_destroy(struct ng_front *f)
{
	if (!f)
		return;
	cookie_destroy(f->cache);
	free(f);
}

void ng_front_tick(struct ng_front *f, uint64_t now_mono_ns)
{
	cookie_tick(f->cache, now_mono_ns);
}

static int pool_for_request(struct ng_front *f, struct pool **pool)
{
	uint64_t held;
	int err = pool_create(pool, HANDLER_POOL_LIMIT);

	if (err && log_limit_pass(&f->log_memory, clock_mono_ns(), LOG_EVERY_NS, &held))
		log_err("no memory for an ng request");
	return err;
}

int ng_front_framed(struct ng_front *f, const struct endpoint *from, struct str message,
	uint64_t now_ns, struct sbuf *reply)
{
	struct ng_frame frame = {0};
	int frame_err = ng_frame_parse(&frame, message), err;
	size_t start = reply->len;
	struct pool *pool;
	struct str known;

	if (frame_err == -ENOMSG)
		return frame_err;
	known = cookie_get(f->cache, from, frame.cookie);
	if (known.s) {
		handler_count_duplicate(f->handler);
		sbuf_str(reply, known);
		return reply->err;
	}
	err = pool_for_request(f, &pool);
	if (err)
		return err;
	sbuf_str(reply, frame.cookie);
	sbuf_str(reply, STR(" "));
	if (frame_err)
		handler_reject(f->handler, pool, frame.encoding,
			frame_err == -ENODATA ? "Invalid data (no payload)"
					      : "Invalid NG data format",
			reply);
	else
		handler_request(f->handler, pool, from, frame.body, frame.encoding, now_ns, reply);
	pool_destroy(pool);
	/* Without memory for the cache a repeated request would be carried out twice, which every
	 * command survives. */
	if (reply->err == 0)
		cookie_put(f->cache, from, frame.cookie,
			(struct str){reply->p + start, reply->len - start});
	return reply->err;
}

int ng_front_plain(struct ng_front *f, struct str body, uint64_t now_ns, struct sbuf *reply)
{
	struct pool *pool;
	int err = pool_for_request(f, &pool);

	if (err)
		return err;
	body = str_trim(body);
	if (body.len == 0)
		handler_reject(f->handler, pool, NG_JSON, "Invalid data (no payload)", reply);
	else if (body.s[0] != 'd' && body.s[0] != '{')
		handler_reject(f->handler, pool, NG_JSON, "Invalid NG data format", reply);
	else
		handler_request(f->handler, pool, NULL, body,
			body.s[0] == '{' ? NG_JSON : NG_BENCODE, now_ns, reply);
	pool_destroy(pool);
	return reply->err;
}

int ng_front_reject(struct ng_front *f, struct str cookie, const char *reason, struct sbuf *reply)
{
	struct pool *pool;
	int err = pool_for_request(f, &pool);

	if (err)
		return err;
	sbuf_str(reply, cookie);
	sbuf_str(reply, STR(" "));
	handler_reject(f->handler, pool, NG_BENCODE, reason, reply);
	pool_destroy(pool);
	return reply->err;
}

static bool is_loopback(const struct endpoint *e)
{
	return e->family == AF_INET ? e->addr[0] == 127
				    : memcmp(e->addr, &in6addr_loopback, 16) == 0;
}

void ng_front_warn_open(const struct endpoint *listen, const char *transport)
{
	char text[ENDPOINT_STRLEN];

	if (!is_loopback(listen))
		log_warn("ng has no authentication: only the proxy should reach %s (%s)",
			endpoint_fmt(listen, text), transport);
}
