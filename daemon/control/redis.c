/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writing calls to Redis, and the states that we can be in. Nothing waits in a queue of ours but what call/save.c remembers,
 * which is bounded by the calls there are; IN_FLIGHT commands at most are on their way. Whatever goes wrong (away, slow, full,
 * restarted), calls go on, the operator is told once when it begins and once when it is over, and then all is written again. */
#include "control/redis.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/secmem.h"
#include "control/redis_int.h"

#define IN_FLIGHT      512u
#define PUMP_NS        10000000ull
#define TIMEOUT_NS     (2 * NS_PER_SEC)
#define TROUBLE_MIN_NS 500000000ull
#define TROUBLE_MAX_NS (4 * NS_PER_SEC)
#define LAST_WORDS_NS  500000000ull
#define LEAVE_NS       NS_PER_SEC
#define FORCE_NS       (5 * NS_PER_SEC)
#define ERROR_LOG_NS   (60 * NS_PER_SEC)

/* "xcipher:call:ID" */
static struct str redis_key(char out[REDIS_NAME_MAX], struct str id)
{
	memcpy(out, REDIS_PREFIX, sizeof(REDIS_PREFIX) - 1);
	memcpy(out + sizeof(REDIS_PREFIX) - 1, id.s, id.len);
	return (struct str){out, sizeof(REDIS_PREFIX) - 1 + id.len};
}

/* The database is part of it, so that a value is not believed in another one. */
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

static const struct redis_server *writing_to(const struct redis *r)
{
	return redis_server_is_set(&r->cfg.write) ? &r->cfg.write : &r->cfg.server;
}

/* --- Trouble ------------------------------------------------------------------------------------------------------ */

static const char *address(const struct redis *r, char out[ENDPOINT_STRLEN])
{
	return endpoint_fmt(&writing_to(r)->addr, out);
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
		log_warn("redis %s refuses what is written, calls go on unsaved: " STR_FMT,
			address(r, addr), STR_ARG(text));
	r->trouble = true;
}

static void out_of_trouble(struct redis *r)
{
	char addr[ENDPOINT_STRLEN];

	r->pause_ns = 0;
	if (!r->trouble)
		return;
	r->trouble = false;
	log_info(
		"redis %s takes what is written again: all calls are saved anew", address(r, addr));
	calls_save_all(r->cfg.calls);
}

/* --- Writing ------------------------------------------------------------------------------------------------------ */

struct removal { /* travels with a DEL, that it be tried again */
	size_t len;
	char id[];
};

/* Somebody else's key has our name: ours take its place. */
static void in_the_way(struct redis *r)
{
	uint64_t now = clock_mono_ns();

	r->errors++;
	if (now < r->force_ns)
		return;
	log_warn("redis: keys that begin with " REDIS_PREFIX " are not ours: overwritten");
	r->force_ns = now + FORCE_NS;
	calls_save_all(r->cfg.calls);
}

static void on_written(void *arg, void *priv, const struct resp *reply)
{
	struct redis *r = arg;

	(void)priv;
	if (!reply)
		return; /* the link is gone: all will be written again */
	if (reply->type != RESP_ERROR)
		out_of_trouble(r);
	else if (str_starts(reply->text, STR("WRONGTYPE")))
		in_the_way(r);
	else
		in_trouble(r, reply->text);
}

/* A field that was there, and had to be made anew: somebody emptied the database. It is told once for each call, and never again. */
static void on_state_written(void *arg, void *priv, const struct resp *reply)
{
	struct redis *r = arg;

	on_written(arg, priv, reply);
	if (reply && reply->type == RESP_INTEGER && reply->integer)
		r->lost_keys = true;
}

/* All at once, at most once a second, since each call of an emptied database tells it. */
static void restore_lost_keys(struct redis *r)
{
	uint64_t now = clock_mono_ns();

	if (!r->lost_keys || now < r->lost_key_ns + NS_PER_SEC)
		return;
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
		log_warn("redis answers with an error: " STR_FMT, STR_ARG(text));
}

void redis_refused(struct redis *r, const char *what)
{
	uint64_t held;

	r->refused++;
	if (log_limit_pass(&r->refused_log, clock_mono_ns(), ERROR_LOG_NS, &held))
		log_warn(
			"redis: %s is refused: not sealed with our key, or repeated by somebody who can write to Redis (%llu refused so far)",
			what, (unsigned long long)r->refused);
}

void redis_on_published(void *arg, void *priv, const struct resp *reply)
{
	(void)priv;
	if (reply && reply->type == RESP_ERROR)
		redis_told_error(arg, reply->text);
}

/* For whoever follows: field, length of the Call-ID, Call-ID, sealed bytes. */
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
	if (!seal_close(r->seal, &r->sealed, redis_name(r, name, id, 'd'), STR_NONE))
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
		seal_close(r->seal, &r->sealed, redis_name(r, name, id, whole ? 'c' : 's'),
			sbuf_view(&r->plain))) {
		r->errors++;
		return;
	}
	value = sbuf_view(&r->sealed);
	if (whole) {
		/* The state that was there is of other indexes, perhaps of other keys. */
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

static void write_some(struct redis *r)
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

/* --- States ------------------------------------------------------------------------------------------------------- */

static void become_active(struct redis *r)
{
	r->mode = REDIS_ACTIVE;
	if (!r->claimed)
		redis_owner_claim(r);
	calls_save_start(r->cfg.calls);
	if (r->waiting)
		loop_stop(r->cfg.loop);
}

static void leave_if_written(struct redis *r);

static void on_pump(void *arg)
{
	struct redis *r = arg;

	if (r->mode == REDIS_RESTORING && redis_restore_some(r)) {
		log_info("redis: %llu calls restored, %llu skipped, in %llu ms",
			(unsigned long long)r->restored, (unsigned long long)r->restoring_skipped,
			(unsigned long long)(clock_mono_ns() - r->began_ns) / 1000000);
		become_active(r);
	}
	write_some(r);
	redis_proof_step(r);
	if (r->give_way)
		redis_give_way(r);
	else if (r->leave_ns)
		leave_if_written(r);
}

static void on_tick(void *arg)
{
	struct redis *r = arg;
	uint64_t renew = (uint64_t)r->cfg.expires_s * NS_PER_SEC / 2;

	restore_lost_keys(r);
	if (r->mode == REDIS_ACTIVE && !r->leave_ns)
		calls_save_tick(r->cfg.calls, clock_real_ns(), renew);
	redis_owner_renew(r);
}

static void on_up(void *arg)
{
	struct redis *r = arg;
	char addr[ENDPOINT_STRLEN];

	if (r->told_down)
		log_info("redis %s is back%s", address(r, addr),
			r->mode == REDIS_ACTIVE ? ": all calls are saved anew" : "");
	r->told_down = false;
	r->trouble = false;
	redis_owner_ask(r);
}

static void on_down(void *arg, const char *why)
{
	struct redis *r = arg;
	char addr[ENDPOINT_STRLEN];

	r->disconnects += !r->told_down;
	if (!r->told_down)
		log_warn("redis %s is away (%s): calls go on%s", address(r, addr), why,
			r->mode == REDIS_ACTIVE ? ", unsaved until it is back" : "");
	r->told_down = true;
}

/* Where we read: the same server, unless told otherwise. */
static void on_read_up(void *arg)
{
	struct redis *r = arg;

	if (r->read == r->link)
		on_up(r);
	if (r->mode == REDIS_FOLLOWING || (r->decided && !r->scanned))
		redis_scan_start(r);
}

static void on_read_down(void *arg, const char *why)
{
	struct redis *r = arg;

	uint64_t held;

	if (r->read == r->link || !r->read)
		on_down(r, why);
	else if (log_limit_pass(&r->log, clock_mono_ns(), 60 * NS_PER_SEC, &held))
		log_warn("redis: calls cannot be read (%s)", why);
	r->scan.running = false;
	/* At start: who waits shall not wait for what is not there. */
	if (r->waiting && r->mode == REDIS_RESTORING && !r->first)
		loop_stop(r->cfg.loop);
}

int redis_active(struct redis *r)
{
	if (r->mode != REDIS_FOLLOWING)
		return -EALREADY;
	log_info("redis: taking over %u calls", (unsigned)r->mirror.count);
	redis_follow_stop(r);
	r->mode = REDIS_RESTORING;
	r->restored = r->restoring_skipped = 0;
	r->began_ns = clock_mono_ns();
	redis_owner_claim(r);
	r->decided = true;
	calls_passive(r->cfg.calls, false);
	redis_mirror_hand_over(r);
	/* What was followed comes back at once, whether Redis is there or not; a last look tells what was missed. */
	r->scanned = !redis_link_is_up(r->read);
	r->scan.running = false;
	if (!r->scanned)
		redis_scan_start(r);
	return 0;
}

/* Our calls end here; where they are written they stay. */
static void leave(struct redis *r)
{
	redis_restore_drop(r);
	calls_passive(r->cfg.calls, true);
	calls_leave(r->cfg.calls);
	r->mode = REDIS_FOLLOWING;
	r->claimed = r->claim_due = r->give_way = r->unsure = false;
	r->leave_ns = 0;
	r->scan.running = false;
	if (redis_follow_start(r))
		log_err("redis: out of memory: the other node's calls cannot be followed");
	log_info("redis: on standby: calls are another node's");
}

static void leave_if_written(struct redis *r)
{
	struct calls_save_usage u;

	calls_save_usage(r->cfg.calls, &u);
	if (clock_mono_ns() > r->leave_ns || !redis_link_is_up(r->link) ||
		(!u.waiting && !u.ended && !redis_link_waiting(r->link))) {
		redis_owner_release(r);
		leave(r);
	}
}

void redis_give_way(struct redis *r)
{
	if (r->claimed)
		log_warn("redis: another node has become active: giving way to it");
	else
		log_warn(
			"redis: another node is active: on standby. xcipherctl active takes over from it");
	leave(r);
	if (r->waiting)
		loop_stop(r->cfg.loop);
}

int redis_standby(struct redis *r)
{
	if (r->mode == REDIS_FOLLOWING || r->leave_ns)
		return -EALREADY;
	calls_passive(r->cfg.calls, true);
	if (r->mode == REDIS_ACTIVE)
		calls_save_all(r->cfg.calls);
	r->leave_ns = clock_mono_ns() + LEAVE_NS;
	return 0;
}

static void on_deadline(void *arg)
{
	struct redis *r = arg;

	r->deadline = NULL;
	loop_stop(r->cfg.loop);
}

static void serve(struct redis *r, uint64_t at_most_ns)
{
	if (loop_timer_add(r->cfg.loop, &r->deadline, at_most_ns, 0, on_deadline, r))
		return;
	r->waiting = true;
	loop_run(r->cfg.loop);
	r->waiting = false;
	loop_timer_remove(r->deadline);
	r->deadline = NULL;
}

void redis_wait(struct redis *r, uint64_t at_most_ns)
{
	if (r->mode == REDIS_RESTORING)
		serve(r, at_most_ns);
	if (r->mode == REDIS_RESTORING)
		log_warn("redis: calls that may be there come back when it does");
}

/* --- Set-up --------------------------------------------------------------------------------------------------------- */

static int links_create(struct redis *r)
{
	bool apart = redis_server_is_set(&r->cfg.write);
	struct redis_link_config cfg = {.loop = r->cfg.loop,
		.server = writing_to(r),
		.tls = r->tls,
		.timeout_ns = TIMEOUT_NS,
		.up = apart ? on_up : on_read_up,
		.down = apart ? on_down : on_read_down,
		.arg = r};
	int err = redis_link_create(&r->link, &cfg);

	r->read = r->link;
	if (err || !apart)
		return err;
	cfg.server = &r->cfg.server;
	cfg.up = on_read_up;
	cfg.down = on_read_down;
	r->read = NULL;
	return redis_link_create(&r->read, &cfg);
}

/* Names and certificates. Without a key, and without TLS on a network, the operator is warned. */
static int servers_prepare(struct redis *r, char *err, size_t err_len)
{
	int res = redis_server_resolve(&r->cfg.server, err, err_len);

	res = res ? res : redis_server_resolve(&r->cfg.write, err, err_len);
	if (!res && (r->cfg.server.tls || r->cfg.write.tls))
		res = redis_tls_create(&r->tls, &r->cfg.tls, err, err_len);
	if (!res && seal_is_plain(r->seal))
		log_warn(
			"--redis-key-file=none: whoever can write to Redis controls all calls and can read their keys");
	return res;
}

int redis_create(struct redis **out, const struct redis_config *cfg, char *err, size_t err_len)
{
	struct redis *r = calloc(1, sizeof(*r));
	int res;

	if (!r)
		return -ENOMEM;
	r->cfg = *cfg;
	r->began_ns = clock_mono_ns();
	r->mode = cfg->standby ? REDIS_FOLLOWING : REDIS_RESTORING;
	snprintf(r->channel, sizeof(r->channel), "xcipher:%u", (unsigned)cfg->server.db);
	snprintf(r->owners, sizeof(r->owners), "xcipher:%u:owner", (unsigned)cfg->server.db);
	sbuf_init(&r->plain, 0);
	sbuf_init(&r->sealed, 0);
	redis_owner_init(r);
	res = seal_create(&r->seal, cfg->key_file, err, err_len);
	res = res ? res : servers_prepare(r, err, err_len);
	res = res ? res : links_create(r);
	res = res ? res : redis_listen(r);
	res = res ? res : loop_timer_add(cfg->loop, &r->pump, PUMP_NS, PUMP_NS, on_pump, r);
	res = res ? res
		  : loop_timer_add(cfg->loop, &r->tick, CALLS_SAVE_TICK_NS, CALLS_SAVE_TICK_NS,
			    on_tick, r);
	if (!res && cfg->standby) {
		calls_passive(cfg->calls, true);
		res = redis_follow_start(r);
	}
	if (res) {
		redis_destroy(r);
		return res;
	}
	*out = r;
	return 0;
}

static void on_last_words(void *arg)
{
	struct redis *r = arg;
	struct calls_save_usage u;

	calls_save_usage(r->cfg.calls, &u);
	if ((!u.waiting && !u.ended && !redis_link_waiting(r->link)) || !redis_link_is_up(r->link))
		loop_stop(r->cfg.loop);
}

void redis_destroy(struct redis *r)
{
	struct loop_timer *look = NULL;

	if (!r)
		return;
	if (r->mode == REDIS_ACTIVE && r->link && redis_link_is_up(r->link) &&
		!loop_timer_add(r->cfg.loop, &look, PUMP_NS, PUMP_NS, on_last_words, r)) {
		calls_save_all(r->cfg.calls);
		serve(r, LAST_WORDS_NS);
		loop_timer_remove(look);
	}
	loop_timer_remove(r->pump);
	loop_timer_remove(r->tick);
	redis_link_destroy(r->sub);
	if (r->read != r->link)
		redis_link_destroy(r->read);
	redis_link_destroy(r->link);
	redis_restore_drop(r);
	redis_mirror_clear(r);
	redis_tls_destroy(r->tls);
	seal_destroy(r->seal);
	secmem_wipe(&r->cfg, sizeof(r->cfg));
	sbuf_fini(&r->plain);
	sbuf_fini(&r->sealed);
	free(r);
}

void redis_usage(const struct redis *r, struct redis_usage *out)
{
	struct calls_save_usage u;

	calls_save_usage(r->cfg.calls, &u);
	*out = (struct redis_usage){.standby = r->mode == REDIS_FOLLOWING,
		.up = redis_link_is_up(r->link),
		.refusing = r->trouble,
		.waiting = u.waiting + u.ended,
		.written = r->written,
		.errors = r->errors,
		.times_away = r->disconnects,
		.restored = r->restored,
		.skipped = r->skipped,
		.followed = r->mirror.count,
		.removals_lost = u.ended_lost,
		.refused = r->refused};
}

static void add(struct pool *p, struct ngval *d, const char *key, uint64_t value)
{
	ngval_add_int(p, d, str_from(key), (int64_t)value);
}

void redis_stats(const struct redis *r, struct pool *p, struct ngval *dict)
{
	static const char *const modes[] = {"restoring", "active", "standby"};
	struct ngval *d = ngval_add_dict(p, dict, STR("redis"));
	struct redis_usage u;

	redis_usage(r, &u);
	ngval_add_str(p, d, STR("mode"), str_from(modes[r->mode]));
	ngval_add_str(p, d, STR("state"),
		!u.up                ? STR("away")
			: u.refusing ? STR("refusing")
				     : STR("up"));
	add(p, d, "waiting", u.waiting);
	add(p, d, "written", u.written);
	add(p, d, "errors", u.errors);
	add(p, d, "times away", u.times_away);
	add(p, d, "restored", u.restored);
	add(p, d, "skipped", u.skipped);
	add(p, d, "followed", u.followed);
	add(p, d, "removals lost", u.removals_lost);
	add(p, d, "refused", u.refused);
}
