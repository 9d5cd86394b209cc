/* SPDX-License-Identifier: GPL-2.0-or-later */
/* On standby: the calls of the active node, as sealed bytes in memory, kept up to date by what it publishes; at each connection
 * all are read once. So a take-over needs nothing of Redis, which may have gone together with the other node. */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/secmem.h"
#include "control/redis_int.h"

#define BUCKETS 16384u
#define LOG_NS  (60 * NS_PER_SEC)

static struct redis_entry **place(struct redis_mirror *m, struct str id)
{
	struct redis_entry **at;

	at = &m->bucket[hash_siphash(m->seed, id.s, id.len) % BUCKETS];
	while (*at && !str_eq((*at)->id, id))
		at = &(*at)->chain;
	return at;
}

void redis_mirror_put(struct redis *r, struct str id, char field, struct str value, bool heard)
{
	struct redis_mirror *m = &r->mirror;
	struct redis_entry **at, *e;
	uint64_t held;

	if (!m->bucket || id.len == 0 || id.len > SAVE_ID_MAX)
		return;
	at = place(m, id);
	e = *at;
	if (field == 'd') {
		if (e) {
			*at = e->chain;
			redis_entry_free(e);
			m->count--;
		}
		return;
	}
	if (!e) {
		e = m->count < REDIS_MIRROR_MAX ? redis_entry_new(id, STR_NONE, STR_NONE) : NULL;
		if (!e) {
			if (log_limit_pass(&r->log, clock_mono_ns(), LOG_NS, &held))
				log_warn("redis: more calls are followed than there is room for");
			return;
		}
		*at = e;
		m->count++;
	}
	if (!heard && e->heard && e->walk == r->scan.walk)
		return;
	e->heard = heard;
	e->walk = r->scan.walk;
	if (field == 'c' && redis_str_set(&e->whole, value))
		redis_str_set(&e->state, STR_NONE);
	else if (field == 's')
		redis_str_set(&e->state, value);
}

void redis_mirror_sweep(struct redis *r)
{
	for (uint32_t i = 0; r->mirror.bucket && i < BUCKETS; i++)
		for (struct redis_entry **at = &r->mirror.bucket[i]; *at;) {
			struct redis_entry *e = *at;

			if (e->walk == r->scan.walk) {
				at = &e->chain;
				continue;
			}
			*at = e->chain;
			redis_entry_free(e);
			r->mirror.count--;
		}
}

void redis_mirror_clear(struct redis *r)
{
	for (uint32_t i = 0; r->mirror.bucket && i < BUCKETS; i++)
		while (r->mirror.bucket[i]) {
			struct redis_entry *e = r->mirror.bucket[i];

			r->mirror.bucket[i] = e->chain;
			redis_entry_free(e);
		}
	free(r->mirror.bucket);
	r->mirror.bucket = NULL;
	r->mirror.count = 0;
}

void redis_mirror_hand_over(struct redis *r)
{
	for (uint32_t i = 0; r->mirror.bucket && i < BUCKETS; i++)
		while (r->mirror.bucket[i]) {
			struct redis_entry *e = r->mirror.bucket[i];

			r->mirror.bucket[i] = e->chain;
			if (e->whole.len)
				redis_restore_add(r, e);
			else
				redis_entry_free(e);
		}
	redis_mirror_clear(r);
}

/* ["message", channel, bytes]; its first answer is ["subscribe", ...]: from here on nothing is missed, so all is read. */
static void on_message(void *arg, void *priv, const redisReply *reply)
{
	struct redis *r = arg;
	const redisReply *m;
	size_t len;

	(void)priv;
	if (!reply || reply->type != REDIS_REPLY_ARRAY || reply->elements != 3 ||
		r->mode != REDIS_FOLLOWING)
		return;
	m = reply->element[2];
	if (m->type != REDIS_REPLY_STRING) {
		if (redis_link_is_up(r->read))
			redis_scan_start(r);
		return;
	}
	if (m->len < 3)
		return;
	len = be16((const uint8_t *)m->str + 1);
	if (m->len < 3 + len)
		return;
	r->messages++;
	redis_mirror_put(r, (struct str){m->str + 3, len}, m->str[0],
		(struct str){m->str + 3 + len, m->len - 3 - len}, true);
}

static void on_sub_up(void *arg)
{
	struct redis *r = arg;
	const struct str word[] = {STR("SUBSCRIBE"), str_from(r->channel)};

	redis_link_send(r->sub, on_message, NULL, 2, word);
}

int redis_follow_start(struct redis *r)
{
	struct redis_link_config cfg = {.loop = r->cfg.loop,
		.server = &r->cfg.server,
		.timeout_ns = 2 * NS_PER_SEC,
		.up = on_sub_up,
		.arg = r};
	int err = secmem_random(r->mirror.seed, sizeof(r->mirror.seed));

	if (err)
		return err;
	r->mirror.bucket = calloc(BUCKETS, sizeof(*r->mirror.bucket));
	return r->mirror.bucket ? redis_link_create(&r->sub, &cfg) : -ENOMEM;
}

void redis_follow_stop(struct redis *r)
{
	redis_link_destroy(r->sub);
	r->sub = NULL;
}
