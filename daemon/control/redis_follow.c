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

static void heard(struct redis *r, struct str m)
{
	size_t len = m.len < 3 ? 0 : be16((const uint8_t *)m.s + 1);

	if (len == 0 || m.len < 3 + len)
		return;
	r->messages++;
	redis_mirror_put(r, (struct str){m.s + 3, len}, m.s[0],
		(struct str){m.s + 3 + len, m.len - 3 - len}, true);
}

/* ["message", channel, bytes]; its first answer is ["subscribe", ...]: from here on nothing is missed, so all is read. */
static void on_message(void *arg, void *priv, const redisReply *reply)
{
	struct redis *r = arg;
	const redisReply *channel, *m;

	(void)priv;
	if (!reply || reply->type != REDIS_REPLY_ARRAY || reply->elements != 3)
		return;
	channel = reply->element[1];
	m = reply->element[2];
	if (channel->type != REDIS_REPLY_STRING)
		return;
	if (strcmp(channel->str, r->owners) == 0) {
		if (m->type == REDIS_REPLY_STRING)
			redis_owner_heard(r, (struct str){m->str, m->len});
	} else if (r->mode != REDIS_FOLLOWING) {
		return;
	} else if (m->type == REDIS_REPLY_STRING) {
		heard(r, (struct str){m->str, m->len});
	} else if (redis_link_is_up(r->read)) {
		redis_scan_start(r);
	}
}

static void subscribe(struct redis *r, const char *channel)
{
	const struct str word[] = {STR("SUBSCRIBE"), str_from(channel)};

	if (redis_link_is_up(r->sub))
		redis_link_send(r->sub, on_message, NULL, 2, word);
}

static void on_sub_up(void *arg)
{
	struct redis *r = arg;

	subscribe(r, r->owners);
	if (r->mode == REDIS_FOLLOWING)
		subscribe(r, r->channel);
}

int redis_listen(struct redis *r)
{
	struct redis_link_config cfg = {.loop = r->cfg.loop,
		.server = &r->cfg.server,
		.timeout_ns = 2 * NS_PER_SEC,
		.up = on_sub_up,
		.arg = r};

	return redis_link_create(&r->sub, &cfg);
}

int redis_follow_start(struct redis *r)
{
	int err = secmem_random(r->mirror.seed, sizeof(r->mirror.seed));

	if (err)
		return err;
	r->mirror.bucket = calloc(BUCKETS, sizeof(*r->mirror.bucket));
	if (!r->mirror.bucket)
		return -ENOMEM;
	if (r->sub)
		subscribe(r, r->channel);
	return 0;
}

void redis_follow_stop(struct redis *r)
{
	const struct str word[] = {STR("UNSUBSCRIBE"), str_from(r->channel)};

	if (r->sub && redis_link_is_up(r->sub))
		redis_link_tell(r->sub, 2, word);
}
