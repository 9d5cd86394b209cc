/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Standby: keeps the active node's calls as encrypted bytes in memory. Reads all at each
 * connection, then follows published changes. So a take-over works without Redis, which may have
 * failed together with the other node. */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/secmem.h"
#include "call/unsaved.h"
#include "persist/redis_int.h"

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

/* Whether we have this value, or a newer one that the same node sealed. */
static bool is_rolled_back(const struct redis_entry *e, char field, struct str value)
{
	struct str have = field == 'c' ? e->whole : e->state;
	struct redis_crypt_origin old, new;

	return redis_crypt_origin(&old, have) && redis_crypt_origin(&new, value) &&
		memcmp(old.salt, new.salt, sizeof(old.salt)) == 0 && new.counter <= old.counter;
}

bool redis_is_genuine(struct redis *r, struct str id, char field, struct str value)
{
	char name[REDIS_NAME_MAX];
	struct sbuf plain;
	bool good;

	sbuf_init(&plain, 0);
	good = !redis_crypt_open(r->crypt, &plain, redis_name(r, name, id, field), value);
	sbuf_fini(&plain);
	return good;
}

void redis_mirror_keep(struct redis *r, struct str id)
{
	struct redis_entry *e = r->mirror.bucket ? *place(&r->mirror, id) : NULL;

	if (e)
		e->walk = r->scan.walk;
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
				log_warn(
					"redis: the active node has more calls than a standby can follow: further ones would be lost in a take-over");
			return;
		}
		*at = e;
		m->count++;
	}
	if (!heard && ((e->heard && e->walk == r->scan.walk) || is_rolled_back(e, field, value))) {
		e->walk = r->scan.walk;
		return;
	}
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

/* Whether it opens, and is not older than the last message of this node. Plain bytes are accepted
 * if there is no key. */
static bool is_believable(struct redis *r, struct str id, char field, struct str value)
{
	struct redis_crypt_origin from;

	if (id.len > SAVE_ID_MAX || !redis_is_genuine(r, id, field, value))
		return false;
	return redis_crypt_is_plain(r->crypt) ||
		(redis_crypt_origin(&from, value) && redis_proof_is_next(r, &from));
}

/* field(1), length of the Call-ID(2), Call-ID, sealed value. */
static void heard(struct redis *r, struct str m)
{
	size_t len = m.len < 3 ? 0 : be16((const uint8_t *)m.s + 1);
	struct str id, value;

	if (len == 0 || m.len < 3 + len) {
		redis_refused(r, "a message");
		return;
	}
	id = (struct str){m.s + 3, len};
	value = (struct str){m.s + 3 + len, m.len - 3 - len};
	if (is_believable(r, id, m.s[0], value))
		redis_mirror_put(r, id, m.s[0], value, true);
	else if (r->proof.proved || redis_crypt_is_plain(r->crypt))
		redis_refused(r, "a message");
}

void redis_follow_scan(struct redis *r)
{
	r->scan_due = false;
	/* A walk that runs may have begun before messages were accepted, so it can miss calls that
	 * were written meanwhile. */
	r->scan.running = false;
	if (redis_link_is_up(r->read))
		redis_scan_start(r);
}

/* Without text: the subscription has begun. The active node must be known before calls are read. */
static void on_message(void *arg, struct str channel, struct str text)
{
	struct redis *r = arg;

	if (str_eq(channel, str_from(r->owners))) {
		if (text.s) {
			redis_owner_heard(r, text);
			return;
		}
		r->listening = true;
		redis_owner_listening(r);
	} else if (r->mode == REDIS_FOLLOWING && str_eq(channel, str_from(r->channel))) {
		if (text.s) {
			heard(r, text);
			return;
		}
		r->scan_due = true;
		redis_proof_start(r);
	}
}

static void on_sub_up(void *arg)
{
	struct redis *r = arg;

	redis_link_subscribe(r->sub, r->owners);
	if (r->mode == REDIS_FOLLOWING)
		redis_link_subscribe(r->sub, r->channel);
}

static void on_sub_down(void *arg, const char *why)
{
	struct redis *r = arg;
	uint64_t held;

	r->listening = false;
	/* If the other connection is down as well, it logs the cause. */
	if (redis_link_is_up(r->link) &&
		log_limit_pass(&r->told_log, clock_mono_ns(), LOG_NS, &held))
		log_warn("redis: cannot receive messages of other nodes (%s)", why);
}

int redis_listen(struct redis *r)
{
	struct redis_link_config cfg = {.loop = r->cfg.loop,
		.server = &r->cfg.server,
		.tls = r->tls,
		.timeout_ns = 2 * NS_PER_SEC,
		.up = on_sub_up,
		.down = on_sub_down,
		.message = on_message,
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
		redis_link_subscribe(r->sub, r->channel);
	return 0;
}

void redis_follow_stop(struct redis *r)
{
	if (r->sub)
		redis_link_unsubscribe(r->sub, r->channel);
}
