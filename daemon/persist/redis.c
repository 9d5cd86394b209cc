/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The states of the connection to Redis. If Redis fails (unreachable, slow, full, restarted), calls
 * continue. One line is logged when this begins and one when it ends; then all calls are written
 * again (redis_write.c). */
#include "persist/redis.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/secmem.h"
#include "call/call.h"
#include "call/unsaved.h"
#include "persist/redis_int.h"
#include "persist/save.h"

#define PUMP_NS       10000000ull
#define TIMEOUT_NS    (2 * NS_PER_SEC)
#define LAST_WORDS_NS 500000000ull
#define LEAVE_NS      NS_PER_SEC
#define PAUSE_NS      (2 * NS_PER_SEC)

const struct redis_server *redis_writing_to(const struct redis *r)
{
	return redis_server_is_set(&r->cfg.write) ? &r->cfg.write : &r->cfg.server;
}

/* --- States ----------------------------------------------------------------------------------- */

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
static void give_way(struct redis *r);

/* The process did not run for a while. Another node may have taken over, so read the role before
 * writing anything. */
static void ask_after_pause(struct redis *r)
{
	uint64_t now = clock_mono_ns(), gap = r->pumped_ns ? now - r->pumped_ns : 0;

	r->pumped_ns = now;
	if (gap > PAUSE_NS && r->claimed && redis_link_is_up(r->link))
		redis_owner_ask(r);
}

static void on_pump(void *arg)
{
	struct redis *r = arg;

	ask_after_pause(r);
	if (r->mode == REDIS_RESTORING && redis_restore_some(r)) {
		log_info("redis: %llu calls restored, %llu skipped, in %llu ms",
			(unsigned long long)r->restored, (unsigned long long)r->restoring_skipped,
			(unsigned long long)(clock_mono_ns() - r->began_ns) / 1000000);
		become_active(r);
	}
	redis_write_some(r);
	redis_proof_step(r);
	if (r->give_way)
		give_way(r);
	else if (r->leave_ns)
		leave_if_written(r);
}

static void on_tick(void *arg)
{
	struct redis *r = arg;
	uint64_t renew = (uint64_t)r->cfg.expires_s * NS_PER_SEC / 2;

	redis_write_lost(r);
	redis_write_too_long(r);
	redis_clock_ask(r);
	if (r->mode == REDIS_ACTIVE && !r->leave_ns)
		calls_save_tick(r->cfg.calls, clock_real_ns(), renew);
	redis_owner_renew(r);
}

static void on_up(void *arg)
{
	struct redis *r = arg;
	char addr[ENDPOINT_STRLEN];

	if (r->told_down)
		log_info("redis %s is reachable again%s", redis_address(r, addr),
			r->mode == REDIS_ACTIVE ? ": saving all calls again" : "");
	r->told_down = false;
	r->trouble = false;
	r->clock.asked_ns = 0;
	redis_clock_ask(r); /* before restoring anything */
	redis_owner_ask(r);
}

static void on_down(void *arg, const char *why)
{
	struct redis *r = arg;
	char addr[ENDPOINT_STRLEN];

	r->disconnects += !r->told_down;
	if (!r->told_down)
		log_warn("redis %s is unreachable (%s): calls continue%s", redis_address(r, addr),
			why, r->mode == REDIS_ACTIVE ? ", but are not saved until it returns" : "");
	r->told_down = true;
}

/* The server to read from: the same one, unless configured otherwise. */
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
	/* At start: nobody needs to wait for an unreachable server. */
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
	/* Restores the mirrored calls at once, with or without Redis; a last scan finds missed
	 * ones. */
	r->scanned = !redis_link_is_up(r->read);
	r->scan.running = false;
	if (!r->scanned)
		redis_scan_start(r);
	return 0;
}

/* Ends our calls here, but keeps them in Redis. */
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
	log_info("redis: on standby: another node relays the calls");
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

/* Another node is active: goes to standby at once, and writes nothing more. */
static void give_way(struct redis *r)
{
	if (r->claimed)
		log_warn("redis: another node has become active: releasing all calls to it");
	else
		log_warn(
			"redis: another node is active: this node is on standby. Take over with: xcipherctl active");
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
		log_warn("redis: unreachable; stored calls will be restored when it returns");
}

/* --- Set-up ----------------------------------------------------------------------------------- */

static int links_create(struct redis *r)
{
	bool apart = redis_server_is_set(&r->cfg.write);
	struct redis_link_config cfg = {.loop = r->cfg.loop,
		.server = redis_writing_to(r),
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

static bool is_exposed(const struct redis_server *s)
{
	struct endpoint net;
	uint8_t bits;

	return s->password[0] && !s->tls && !endpoint_parse_net(&net, &bits, STR("127.0.0.0/8")) &&
		!endpoint_in_net(&s->addr, &net, bits) &&
		!endpoint_parse_net(&net, &bits, STR("::1")) &&
		!endpoint_in_net(&s->addr, &net, bits);
}

/* Resolves names, reads certificates, and logs warnings for the operator. */
static int servers_prepare(struct redis *r, char *err, size_t err_len)
{
	int res = redis_server_resolve(&r->cfg.server, err, err_len);

	res = res ? res : redis_server_resolve(&r->cfg.write, err, err_len);
	if (!res && (r->cfg.server.tls || r->cfg.write.tls))
		res = redis_tls_create(&r->tls, &r->cfg.tls, err, err_len);
	if (!res && redis_crypt_is_plain(r->crypt))
		log_warn(
			"--redis-key-file=none: every client that can read Redis has the keys of all calls, and every client that can write to it controls them");
	if (!res && (is_exposed(&r->cfg.server) || is_exposed(&r->cfg.write)))
		log_warn(
			"the password of Redis is sent over the network in the clear: use --redis=rediss://...");
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
	res = redis_crypt_create(&r->crypt, "--redis-key-file", cfg->key_file, err, err_len);
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
	redis_crypt_destroy(r->crypt);
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
