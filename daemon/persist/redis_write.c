/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes calls to Redis, and publishes what it writes. persist/save.c remembers the calls to write;
 * there is no other queue, and at most IN_FLIGHT commands are pending. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/secmem.h"
#include "call/unsaved.h"
#include "persist/redis_int.h"
#include "persist/save.h"

#define IN_FLIGHT      512u
#define TROUBLE_MIN_NS 500000000ull
#define TROUBLE_MAX_NS (4 * NS_PER_SEC)
#define FORCE_NS       (5 * NS_PER_SEC)
#define ERROR_LOG_NS   (60 * NS_PER_SEC)

/* "xcipher:call:ID" */
static struct str redis_key(char out[REDIS_NAME_MAX], struct str id)
{
	memcpy(out, REDIS_PREFIX, sizeof(REDIS_PREFIX) - 1);
	memcpy(out + sizeof(REDIS_PREFIX) - 1, id.s, id.len);
	return (struct str){out, sizeof(REDIS_PREFIX) - 1 + id.len};
}

/* It contains the database, so a value copied to another database is refused. */
struct str redis_name(const struct redis *r, char out[REDIS_NAME_MAX], struct str id, char field)
{
	size_t at = strlen(r->channel);

	memcpy(out, r->channel, at);
	memcpy(out + at, ":call:", 6);
	at += 6;
	memcpy(out + at, id.s, id.len);
	at += id.len;
	out[at] = '/';
	out[at + 1] = field;
	return (struct str){out, at + 2};
}

/* --- Failures --------------------------------------------------------------------------------- */

const char *redis_address(const struct redis *r, char out[ENDPOINT_STRLEN])
{
	return endpoint_fmt(&redis_writing_to(r)->addr, out);
}

/* An error instead of an answer: out of memory, read-only, a disk full. */
static void in_trouble(struct redis *r, struct str text)
{
	char addr[ENDPOINT_STRLEN];

	r->errors++;
	if (r->trouble && clock_mono_ns() < r->retry_ns)
		return;
	r->pause_ns = r->pause_ns ? 2 * r->pause_ns : TROUBLE_MIN_NS;
	r->pause_ns = r->pause_ns > TROUBLE_MAX_NS ? TROUBLE_MAX_NS : r->pause_ns;
	r->retry_ns = clock_mono_ns() + r->pause_ns;
	if (!r->trouble)
		log_warn("redis %s refuses writes; calls continue but are not saved: " STR_FMT,
			redis_address(r, addr), STR_ARG(text));
	r->trouble = true;
}

static void out_of_trouble(struct redis *r)
{
	char addr[ENDPOINT_STRLEN];

	r->pause_ns = 0;
	if (!r->trouble)
		return;
	r->trouble = false;
	log_info("redis %s accepts writes again: saving all calls again", redis_address(r, addr));
	calls_save_all(r->cfg.calls);
}

/* --- Writing ---------------------------------------------------------------------------------- */

struct removal { /* attached to a DEL, to retry it */
	size_t len;
	char id[];
};

/* Another program's key has one of our names: overwrite it. */
static void in_the_way(struct redis *r)
{
	uint64_t now = clock_mono_ns();

	r->errors++;
	if (now < r->force_ns)
		return;
	log_warn("redis: overwriting keys " REDIS_PREFIX "* of a type that xcipherd did not write");
	r->force_ns = now + FORCE_NS;
	calls_save_all(r->cfg.calls);
}

static void on_written(void *arg, void *priv, const struct resp *reply)
{
	struct redis *r = arg;

	(void)priv;
	if (!reply)
		return; /* the link failed: all calls will be written again */
	if (reply->type != RESP_ERROR)
		out_of_trouble(r);
	else if (str_starts(reply->text, STR("WRONGTYPE")))
		in_the_way(r);
	else
		in_trouble(r, reply->text);
}

/* A stored field was missing and was created again: the database was emptied. Reported once for
 * each call. */
static void on_state_written(void *arg, void *priv, const struct resp *reply)
{
	struct redis *r = arg;

	on_written(arg, priv, reply);
	if (reply && reply->type == RESP_INTEGER && reply->integer)
		r->lost_keys = true;
}

/* Writes all calls at once, at most once a second, because each call of an emptied database reports
 * the loss. */
void redis_write_lost(struct redis *r)
{
	uint64_t now = clock_mono_ns(), held;

	if (!r->lost_keys || now < r->lost_key_ns + NS_PER_SEC)
		return;
	if (log_limit_pass(&r->lost_log, now, ERROR_LOG_NS, &held))
		log_warn(
			"redis: stored calls are missing (evicted, removed or expired): saving all calls again; set maxmemory-policy to noeviction");
	r->lost_keys = false;
	r->lost_key_ns = now;
	calls_save_all(r->cfg.calls);
}

static void on_removed(void *arg, void *priv, const struct resp *reply)
{
	struct redis *r = arg;
	struct removal *m = priv;

	if (reply && reply->type != RESP_ERROR)
		out_of_trouble(r);
	else
		calls_save_gone(r->cfg.calls, (struct str){m->id, m->len});
	if (reply && reply->type == RESP_ERROR)
		in_trouble(r, reply->text);
	free(m);
}

void redis_told_error(struct redis *r, struct str text)
{
	uint64_t held;

	r->errors++;
	if (log_limit_pass(&r->told_log, clock_mono_ns(), ERROR_LOG_NS, &held))
		log_warn("redis replied with an error: " STR_FMT, STR_ARG(text));
}

void redis_refused(struct redis *r, const char *what)
{
	uint64_t held;

	r->refused++;
	if (log_limit_pass(&r->refused_log, clock_mono_ns(), ERROR_LOG_NS, &held))
		log_warn(
			"redis: refused %s: not sealed with --redis-key-file, or replayed (%llu refused so far); check the key files of all nodes and who can write to Redis",
			what, (unsigned long long)r->refused);
}

void redis_on_published(void *arg, void *priv, const struct resp *reply)
{
	(void)priv;
	if (reply && reply->type == RESP_ERROR)
		redis_told_error(arg, reply->text);
}

/* Message for standby nodes: field, length of the Call-ID, Call-ID, sealed bytes. */
static void publish(struct redis *r, char field, struct str id, struct str value)
{
	uint8_t head[3] = {(uint8_t)field};
	struct sbuf *b = &r->plain; /* free by now */
	struct str word[] = {STR("PUBLISH"), str_from(r->channel), STR_NONE};

	put_be16(head + 1, (uint16_t)id.len);
	if (b->p)
		secmem_wipe(b->p, b->len);
	b->len = 0;
	sbuf_put(b, head, sizeof(head));
	sbuf_str(b, id);
	sbuf_str(b, value);
	word[2] = sbuf_view(b);
	if (!b->err)
		redis_link_send(r->link, redis_on_published, NULL, 3, word);
}

static void write_removal(struct redis *r, struct str id)
{
	char name[REDIS_NAME_MAX];
	const struct str word[] = {STR("DEL"), redis_key(name, id)};
	struct removal *m = malloc(sizeof(*m) + id.len);

	if (!m)
		return;
	m->len = id.len;
	memcpy(m->id, id.s, id.len);
	if (redis_link_send(r->link, on_removed, m, 2, word)) {
		calls_save_gone(r->cfg.calls, id);
		free(m);
		return;
	}
	r->sealed.len = 0;
	r->sealed.err = 0;
	if (!redis_crypt_close(r->crypt, &r->sealed, redis_name(r, name, id, 'd'), STR_NONE))
		publish(r, 'd', id, sbuf_view(&r->sealed));
}

static void write_item(struct redis *r, const struct save_item *item)
{
	struct str id = {item->call_id, item->call_id_len};
	bool whole = item->what == SAVE_CALL;
	char name[REDIS_NAME_MAX], seconds[16];
	struct str value;

	if (item->what == SAVE_ENDED) {
		write_removal(r, id);
		return;
	}
	r->sealed.len = 0;
	if (r->plain.err ||
		redis_crypt_close(r->crypt, &r->sealed, redis_name(r, name, id, whole ? 'c' : 's'),
			sbuf_view(&r->plain))) {
		r->errors++;
		return;
	}
	value = sbuf_view(&r->sealed);
	if (whole) {
		/* The stored state belongs to other indexes, perhaps to other keys. */
		const struct str set[] = {
			STR("HSET"), redis_key(name, id), STR("c"), value, STR("s"), STR_NONE};
		const struct str expire[] = {STR("EXPIRE"), set[1],
			{seconds,
				(size_t)snprintf(seconds, sizeof(seconds), "%u",
					(unsigned)r->cfg.expires_s)}};

		if (clock_mono_ns() < r->force_ns)
			redis_link_send(r->link, redis_on_published, NULL, 2,
				(struct str[]){STR("DEL"), set[1]});
		redis_link_send(r->link, on_written, NULL, 6, set);
		redis_link_send(r->link, redis_on_published, NULL, 3, expire);
	} else {
		const struct str set[] = {STR("HSET"), redis_key(name, id), STR("s"), value};

		redis_link_send(r->link, on_state_written, NULL, 4, set);
	}
	r->written++;
	publish(r, whole ? 'c' : 's', id, value);
}

/* A Call-ID can be as long as a datagram. */
void redis_write_too_long(struct redis *r)
{
	struct calls_save_usage u;
	uint64_t held;

	calls_save_usage(r->cfg.calls, &u);
	if (u.too_long > r->too_long &&
		log_limit_pass(&r->too_long_log, clock_mono_ns(), ERROR_LOG_NS, &held)) {
		log_warn(
			"redis: %llu calls are not saved because their Call-ID is longer than %u bytes",
			(unsigned long long)(u.too_long - r->too_long), (unsigned)SAVE_ID_MAX);
		r->too_long = u.too_long;
	}
}

void redis_flush(struct redis *r)
{
	redis_write_some(r);
	redis_link_flush(r->link);
}

void redis_write_some(struct redis *r)
{
	struct save_item item;

	if (r->mode != REDIS_ACTIVE || r->unsure || !redis_link_is_up(r->link))
		return;
	if (r->trouble && (clock_mono_ns() < r->retry_ns || redis_link_waiting(r->link)))
		return;
	while (redis_link_is_up(r->link) && redis_link_waiting(r->link) < IN_FLIGHT) {
		r->plain.len = 0;
		r->plain.err = r->sealed.err = 0;
		if (!calls_save_next(r->cfg.calls, clock_real_ns(), &r->plain, &item))
			return;
		write_item(r, &item);
		if (r->plain.p)
			secmem_wipe(r->plain.p, r->plain.len);
		if (r->trouble) {
			r->retry_ns = clock_mono_ns() + r->pause_ns;
			return;
		}
	}
}
