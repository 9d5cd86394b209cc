/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Creates the control side from the options: the table of calls, the services that get reports
 * about calls, and the transports of ng, UDP first. */
#include "app/daemon.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "audio/files.h"
#include "call/call.h"
#include "call/closing.h"
#include "call/play.h"
#include "call/reach_again.h"
#include "call/recording.h"
#include "call/tick.h"
#include "call/trace.h"
#include "call/watch.h"
#include "observe/metrics.h"
#include "app/preflight.h"
#include "app/privileges.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/secmem.h"
#include "base/secret_file.h"
#include "control/listen.h"
#include "media/learn.h"

#define TROUBLES_PER_SECOND 20u
#define REDIS_WAIT_NS       (10 * NS_PER_SEC)

static int record_start(struct daemon *d)
{
	struct record_config cfg = {.dir = d->o.recording_dir,
		.format = d->o.recording_format,
		.max_age_s = d->o.recording_max_age * 3600ull,
		.max_bytes = d->o.recording_max_size * 1000000ull,
		.codecs = d->o.output_mixed || d->o.output_single ? d->codecs : NULL,
		.audio_rate = d->o.resample_to,
		.audio_opus = d->o.output_opus,
		.audio_mixed = d->o.output_mixed,
		.audio_single = d->o.output_single,
		.audio_by_channels = d->o.mix_channels,
		.serial = d->engines.serial,
		.tap = d->tap,
		.taps = d->taps,
		.local = d->o.local};
	int err = record_create(&d->record, &cfg, d->err, sizeof(d->err));

	if (err)
		return daemon_fail(d, err, "recording");
	d->recorder = (struct recorder){
		.ops = &record_ops, .arg = d->record, .audio = cfg.codecs != NULL};
	calls_recorder(d->calls, &d->recorder);
	return 0;
}

static int play_dir_fails(struct daemon *d, int err)
{
	snprintf(d->err, sizeof(d->err),
		"--play-dir=%s: %s. Name a folder that xcipherd may read, or leave the option out",
		d->o.play_dir, strerror(-err));
	return err;
}

/* Without a folder, requests may still hold files. Those that are compressed need the decoder. */
static int play_start(struct daemon *d)
{
	const char *folder = d->o.play_dir[0] ? d->o.play_dir : NULL;
	int err;

	if (!folder && access(d->o.play_decoder, X_OK))
		return 0;
	err = audio_files_create(&d->files, folder, d->o.play_decoder, AUDIO_FILES_BYTES);
	if (err)
		return play_dir_fails(d, err);
	calls_files(d->calls, d->files);
	return 0;
}

static void statistics(void *arg, struct pool *p, struct ngval *dict)
{
	stats_fill(arg, p, dict);
}

/* A key nears the end of its lifetime: the terminal should change it by re-INVITE. */
static void key_notice(void *arg, const struct call_key_notice *n)
{
	const struct daemon *d = arg;
	struct log_about about = {.call_id = n->call_id, .side = n->tag, .media = n->media};
	char limit[48] = "the limit of RFC 3711";

	if (n->lifetime)
		snprintf(limit, sizeof(limit), "%llu packets", (unsigned long long)n->lifetime);
	log_call(LOG_WARNING, &about, "lifetime of %s (%s) is %s",
		n->ours ? "our key" : "the terminal's key", limit,
		!n->expired ? "used up to 90 %"
			: d->o.enforce_lifetime
			? "used up: its packets are dropped"
			: "used up: its packets are still relayed (enforce-lifetime=no)");
}

/* Without authentication, a replaced source may be an attack; with it, the terminal has moved. */
static void handover_notice(void *arg, const struct call_handover *h)
{
	struct log_about about = {.call_id = h->call_id,
		.side = h->tag,
		.media = h->media,
		.stream = h->rtcp ? "RTCP" : "RTP"};
	char text[ENDPOINT_STRLEN];

	(void)arg;
	if (h->short_tag) {
		log_call(LOG_NOTICE, &about,
			"32-bit SRTCP tag: the terminal sends SRTCP tags of 32 bits; RFC 4568 requires 80 for its suite; %s",
			h->accepted ? "accepted and answered in kind"
				    : "dropped (set srtcp-tag-32=yes to accept them)");
		return;
	}
	log_call(LOG_NOTICE, &about,
		"confirmed source replaced: %s; rank before: %s, now: %s; media now sent to %s; replacements since the last report: %u",
		learn_cause_text((enum learn_cause)h->last.cause),
		learn_rank_name((enum learn_rank)h->last.from),
		learn_rank_name((enum learn_rank)h->last.to), endpoint_fmt(&h->remote, text),
		h->times);
}

static void trace_notice(void *arg, const struct call_trace *t)
{
	struct log_about about = {.call_id = t->call_id,
		.side = t->tag,
		.media = t->media,
		.stream = t->rtcp ? "RTCP" : "RTP",
		.always = true};

	(void)arg;
	log_call(LOG_DEBUG, &about, STR_FMT, STR_ARG(t->text));
}

/* Notice, above the level of single commands, so that the closing line can be logged without them.
 */
static void end_notice(void *arg, const struct call_closing *e)
{
	const struct daemon *d = arg;
	struct log_about about = {.call_id = e->call_id};

	log_call(LOG_NOTICE, &about, STR_FMT, STR_ARG(e->text));
	cdr_write(d->cdr, e->record);
	ended_add(d->ended, e, clock_real_ns() / 1000000);
}

/* Attackers can provoke these lines in all calls at once, so their number per second is limited. */
static void trouble_notice(void *arg, const struct call_trouble *t)
{
	struct daemon *d = arg;
	struct log_about about = {.call_id = t->call_id, .side = t->tag, .media = t->media};
	uint64_t second = clock_mono_ns() / NS_PER_SEC;

	if (second != d->troubles.second) {
		if (d->troubles.held)
			log_write(LOG_NOTICE,
				"%u more reports of calls in trouble were suppressed: see xcipherctl --trouble calls",
				d->troubles.held);
		d->troubles.second = second;
		d->troubles.lines = d->troubles.held = 0;
	}
	if (d->troubles.lines >= TROUBLES_PER_SECOND) {
		d->troubles.held++;
		return;
	}
	d->troubles.lines++;
	log_call(LOG_NOTICE, &about, "%s: " STR_FMT, t->name, STR_ARG(t->text));
}

static bool has_room(void *arg)
{
	return bridge_has_room(arg);
}

static void changed(void *arg)
{
	redis_flush(arg);
}

/* Media addresses that this host does not have. Reads them again, because the last change of
 * d->host may be 20 ms ago. */
static struct str missing_addresses(struct daemon *d, struct pool *p)
{
	char addr[ENDPOINT_STRLEN];
	struct str out = STR_NONE;
	struct host *now;

	if (host_create(&now, d->loop))
		return out;
	for (uint32_t i = 0; i < d->o.locals; i++) {
		const struct relay_local *l = &d->o.local[i];

		if (endpoint_is_unspecified(&l->addr) || host_owns(now, &l->addr))
			continue;
		endpoint_fmt_addr(&l->addr, addr);
		out = pool_printf(p, STR_FMT "%s%s", STR_ARG(out), out.len ? ", " : "", addr);
	}
	host_stop(now);
	host_destroy(now);
	return out;
}

static const char *become(void *arg, bool active, struct pool *p, struct str *warning)
{
	struct daemon *d = arg;
	int err = active ? redis_active(d->redis) : redis_standby(d->redis);
	struct str missing = active && !err ? missing_addresses(d, p) : STR_NONE;

	if (missing.len) {
		*warning = pool_printf(p,
			"this host does not have the media address " STR_FMT
			" yet: media is lost until it has moved here",
			STR_ARG(missing));
		log_warn("active: " STR_FMT, STR_ARG(*warning));
	}
	return err == 0                      ? NULL
		: err == -EALREADY && active ? NGE_ACTIVE
		: err == -EALREADY           ? NGE_STANDBY_ALREADY
					     : NGE_INTERNAL;
}

/* Applies only to servers whose address contains no password. */
static int redis_password(struct daemon *d, struct redis_config *cfg)
{
	struct redis_server *server[] = {&cfg->server, &cfg->write};
	char text[1024];
	struct str line;
	int err = 0, len;

	if (!d->o.redis_password_file[0])
		return 0;
	len = secret_file_read("--redis-password-file", d->o.redis_password_file, text,
		sizeof(text), d->err, sizeof(d->err));
	err = len < 0 ? len : 0;
	line = secret_file_line(text, err ? 0 : (size_t)len);
	if (!err && (line.len == 0 || line.len >= sizeof(server[0]->password))) {
		snprintf(d->err, sizeof(d->err),
			"--redis-password-file=%s: its first line must be a password of 1 to %zu bytes",
			d->o.redis_password_file, sizeof(server[0]->password) - 1);
		err = -EINVAL;
	}
	for (size_t i = 0; !err && i < ARRAY_LEN(server); i++)
		if (redis_server_is_set(server[i]) && !server[i]->password[0]) {
			memcpy(server[i]->password, line.s, line.len);
			server[i]->password[line.len] = 0;
		}
	secmem_wipe(text, sizeof(text));
	return err;
}

/* Restores the calls of an earlier instance before new ones are accepted. */
static int redis_start(struct daemon *d)
{
	struct redis_config cfg = {
		.loop = d->loop,
		.calls = d->calls,
		.server = d->o.redis,
		.write = d->o.redis_write,
		.key_file = d->o.redis_key_file,
		.tls = {.ca_file = d->o.redis_tls_ca,
			.cert_file = d->o.redis_tls_cert,
			.key_file = d->o.redis_tls_key,
			.name = d->o.redis_tls_name},
		.expires_s = d->o.redis_expires,
		.standby = d->o.standby,
		.node = d->o.listen_ng.port,
		.has_room = has_room,
		.has_room_arg = d->relay,
	};
	int err;

	if (!redis_server_is_set(&cfg.server))
		return 0;
	err = redis_password(d, &cfg);
	err = err ? err : redis_create(&d->redis, &cfg, d->err, sizeof(d->err));
	secmem_wipe(&cfg, sizeof(cfg));
	if (err)
		return daemon_fail(d, err, "redis");
	d->stats.redis = d->redis;
	handler_on_role(d->handler, become, d);
	handler_on_change(d->handler, changed, d->redis);
	redis_wait(d->redis, REDIS_WAIT_NS);
	return 0;
}

/* Checks the ports in use, not only the range: a local client may use an unused port of the
 * range. */
static bool is_media_port(void *arg, const struct endpoint *from)
{
	const struct daemon *d = arg;

	for (int i = reach_local(&d->reach, from, -1); i >= 0;
		i = reach_local(&d->reach, from, i)) {
		struct local_port port = {.port = from->port, .addr = (uint8_t)i};

		if (ports_has(d->ports, port))
			return true;
	}
	return false;
}

static int ng_keys(void *arg, char *err, size_t err_len)
{
	struct daemon *d = arg;

	return d->o.ng_key_file[0] ? ng_dispatch_keys(d->dispatch, d->o.ng_key_file, err, err_len)
				   : 0;
}

/* At a reload. Replaces nothing if one of the files has an error. */
static int key_files(void *arg, char *err, size_t err_len)
{
	struct daemon *d = arg;
	struct mikey_config *config = NULL;
	struct dtls_cert *cert = NULL;
	int res = daemon_cert_load(d, &cert, err, err_len);

	res = res ? res : daemon_mikey_load(d, &config, err, err_len);
	res = res ? res : ng_keys(d, err, err_len);
	if (res)
		mikey_config_destroy(config);
	else
		daemon_mikey_take(d, config);
	if (!res && cert)
		bridge_sessions_use_cert(d->sessions, cert);
	dtls_cert_put(cert);
	return res;
}

/* Read the keys before the first request can arrive. */
static int ng_start(struct daemon *d)
{
	int err = ng_dispatch_create(&d->dispatch, d->handler);

	if (err)
		return daemon_fail(d, err, "ng");
	err = ng_keys(d, d->err, sizeof(d->err));
	if (err)
		return daemon_fail(d, err, "ng-key-file");
	d->operate.keys = key_files;
	d->operate.keys_arg = d;
	preflight_ng(&d->o);
	err = ng_server_create(&d->ng, &d->o.listen_ng, d->dispatch, d->err, sizeof(d->err));
	if (err)
		return daemon_fail(d, err, "listen-ng");
	ng_server_refuse(d->ng, is_media_port, d);
	return 0;
}

static void reach_again(void *arg);

static void reach_again_in(struct daemon *d, uint64_t ns)
{
	if (loop_timer_add(d->loop, &d->reach_again, ns, 0, reach_again, d)) {
		d->reach_again = NULL;
		log_err("out of memory; destinations of media are not checked again");
	}
}

static void reach_again(void *arg)
{
	struct daemon *d = arg;
	uint64_t ns;

	d->reach_again = NULL;
	ns = calls_reach_again(d->calls, clock_real_ns());
	if (ns)
		reach_again_in(d, ns);
}

/* Replaces a later pass: run one now. */
static void host_changed(void *arg)
{
	struct daemon *d = arg;

	loop_timer_remove(d->reach_again);
	calls_host_changed(d->calls);
	reach_again_in(d, 0);
}

int daemon_control_start(struct daemon *d)
{
	const struct options *o = &d->o;
	struct call_policy policy = operate_policy(o);
	int err = secmem_random(policy.loop_key, sizeof(policy.loop_key));

	if (err)
		return daemon_fail(d, err, "random numbers");
	d->relay_border = (struct relay){.ops = &bridge_ops, .arg = d->relay};
	err = daemon_mikey_start(d);
	if (err)
		return err;
	if (d->mikey.config)
		policy.mikey = &d->mikey;
	policy.zrtp_store = d->zrtp.store;
	err = calls_create(&d->calls, &policy, &d->relay_border);
	if (err)
		return daemon_fail(d, err, "calls");
	calls_set_reach(d->calls, &d->reach);
	err = daemon_keying_start(d);
	err = err ? err : daemon_audio_start(d);
	if (err)
		return err;
	host_on_change(d->host, host_changed, d);
	calls_on_key_life(d->calls, key_notice, d);
	calls_on_trace(d->calls, trace_notice, NULL);
	calls_on_handover(d->calls, handover_notice, NULL);
	calls_on_end(d->calls, end_notice, d);
	calls_on_trouble(d->calls, trouble_notice, d);
	err = o->listen_ng_unix[0] ? ended_create(&d->ended) : 0;
	if (err)
		return daemon_fail(d, err, "listen-ng-unix");
	err = o->cdr_file[0] ? cdr_create(&d->cdr, o->cdr_file, d->err, sizeof(d->err)) : 0;
	if (err)
		return daemon_fail(d, err, "cdr-file");
	err = o->recording_dir[0] ? record_start(d) : 0;
	if (err)
		return err;
	err = play_start(d);
	if (err)
		return err;
	d->limits.cfg = o->limits;
	d->stats = (struct stats_input){
		.worker = d->worker,
		.workers = d->workers,
		.relay = d->relay,
		.engines = &d->engines,
		.calls = d->calls,
		.limits = &d->limits,
		.record = d->record,
		.max_sessions = o->max_sessions,
		.sessions = d->sessions,
		.mikey = d->mikey.config ? &d->mikey : NULL,
		.steering = o->steering->name,
		.socket_calls = daemon_socket_calls(d),
		.started_mono_ns = clock_mono_ns(),
	};
	err = handler_create(&d->handler, d->calls,
		(struct stats_source){.fill = statistics, .arg = &d->stats},
		d->stats.started_mono_ns);
	if (err)
		return daemon_fail(d, err, "handler");
	d->operate.o = &d->o;
	d->operate.calls = d->calls;
	d->operate.limits = &d->limits;
	d->operate.stats = &d->stats;
	d->operate.codecs = d->codecs;
	d->operate.stop = daemon_end;
	d->operate.stop_arg = d;
	d->operate.cdr = d->cdr;
	operate_second(&d->operate);
	handler_operator(d->handler, operate_request, &d->operate);
	handler_templates(d->handler, &d->o.ng_templates);
	err = redis_start(d);
	return err ? err : ng_start(d);
}

static void page_statistics(void *arg, struct pool *p, struct ngval *dict)
{
	const struct daemon *d = arg;

	stats_fill_page(&d->stats, p, dict);
}

static void page_trend(void *arg, struct pool *p, struct ngval *dict)
{
	const struct daemon *d = arg;

	stats_fill_history(&d->stats, p, dict);
}

static void metrics(void *arg, struct sbuf *out)
{
	const struct daemon *d = arg;
	struct metrics_input in = {.stats = &d->stats,
		.handler = d->handler,
		.tcp = d->ng_tcp,
		.proxies = d->ng_unix,
		.homer = d->homer,
		.teardown = d->teardown,
		.audio = d->audio.bridge};

	metrics_write(&in, out);
}

static int homer_start(struct daemon *d)
{
	const struct homer_config cfg = {
		.server = d->o.homer,
		.capture_id = d->o.homer_id,
		.worker = d->worker,
		.workers = d->workers,
		.max_stream = daemon_ports_per_worker(d),
		.calls = d->calls,
		.local = d->o.local,
		.locals = d->o.locals,
	};
	int err = cfg.server.family ? homer_create(&d->homer, d->loop, &cfg, d->err, sizeof(d->err))
				    : 0;

	return err ? daemon_fail(d, err, "homer") : 0;
}

/* The operator chose the name; the address comes from DNS. */
static bool may_connect(void *arg, const struct endpoint *e)
{
	const struct daemon *d = arg;

	return reach_check(&d->reach, e) == REACH_OK || reach_is_named(&d->o.b2b_allow, e);
}

static int teardown_start(struct daemon *d)
{
	const struct teardown_config cfg = {.loop = d->loop,
		.calls = d->calls,
		.url = d->o.b2b_url,
		.format = (enum teardown_format)d->o.xmlrpc_format,
		.may_connect = may_connect,
		.may_connect_arg = d};
	int err = cfg.url[0] ? teardown_create(&d->teardown, &cfg) : 0;

	return err ? daemon_fail(d, err, "b2b-url") : 0;
}

/* Everyone who may use ng may use xcipher-web's commands. */
static int ng_unix_start(struct daemon *d)
{
	struct ng_tcp_config cfg = {.path = d->o.listen_ng_unix, .group = LISTEN_NO_GROUP};
	int err = 0;

	if (!cfg.path[0])
		return 0;
	d->web = (struct handler_web){
		.page = {.calls = d->calls,
			.fill = page_statistics,
			.history = page_trend,
			.ended = d->ended,
			.arg = d},
		.metrics = metrics,
		.arg = d,
	};
	handler_show(d->handler, &d->web);
	if (d->o.ng_unix_group[0])
		err = privileges_group(
			"ng-unix-group", d->o.ng_unix_group, &cfg.group, d->err, sizeof(d->err));
	if (!err)
		err = ng_tcp_create(
			&d->ng_unix, d->loop, d->dispatch, &cfg, d->err, sizeof(d->err));
	return err ? daemon_fail(d, err, "listen-ng-unix") : 0;
}

int daemon_transports_start(struct daemon *d)
{
	struct ng_tcp_config tcp = {.listen = d->o.listen_tcp_ng};
	int err = 0;

	if (tcp.listen.family)
		err = ng_tcp_create(&d->ng_tcp, d->loop, d->dispatch, &tcp, d->err, sizeof(d->err));
	if (err)
		return daemon_fail(d, err, "listen-tcp-ng");
	err = ng_unix_start(d);
	if (err)
		return err;
	err = homer_start(d);
	return err ? err : teardown_start(d);
}
