/* SPDX-License-Identifier: GPL-2.0-or-later */
/* xcipherd: start and stop. What can fail fails before anything is taken from the machine: options, then engines (kernels are
 * compiled and tried on known answers), then workers, then netfilter rules, and the ng port last. Stopping is the way back.
 * The control thread, which is this one, owns calls; workers own packets. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "app/background.h"
#include "app/engines.h"
#include "app/homer.h"
#include "app/limits.h"
#include "app/metrics.h"
#include "app/notify.h"
#include "app/operate.h"
#include "app/options.h"
#include "app/record.h"
#include "app/relay.h"
#include "app/stats.h"
#include "app/worker.h"
#include "base/clock.h"
#include "app/kernel_watch.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/secmem.h"
#include "call/call.h"
#include "control/http.h"
#include "control/redis.h"
#include "control/server.h"
#include "control/tcp.h"
#include "control/teardown.h"

#define PORT_HOLD_NS  (5 * NS_PER_SEC) /* late packets of the last call must not reach the next */
#define REDIS_WAIT_NS (10 * NS_PER_SEC)
#define ERR_LEN       512

struct daemon {
	struct options o;
	struct engines engines;
	struct steer_config steer;
	bool rules;
	struct worker *worker[64];
	struct tap *tap[64]; /* one per worker, if anything may be recorded */
	uint32_t taps;
	struct record *record;
	struct recorder recorder;
	uint32_t workers;
	struct ports *ports;
	struct app_relay *relay;
	struct kernel_watch *kernel; /* NULL: it steers nothing */
	struct relay relay_border;
	struct calls *calls;
	struct redis *redis; /* NULL: calls are not kept */
	struct handler *handler;
	struct ng_front *front;
	struct ng_server *ng;
	struct ng_tcp *ng_tcp;
	struct http *http;
	struct homer *homer;
	struct teardown *teardown;
	struct stats_input stats;
	struct limits limits;
	struct operate operate;
	struct loop *loop;
	bool stopping;
	int ack_fd, signal_fd;
	struct notify notify;
	struct alive alive;
	char err[ERR_LEN]; /* one line, for whoever started us */
};

static int fail(struct daemon *d, int err, const char *what)
{
	if (!d->err[0])
		snprintf(d->err, sizeof(d->err), "%s: %s", what, strerror(-err));
	return err;
}

/* --- Workers -------------------------------------------------------------------------------------------------- */

static uint32_t ports_per_worker(const struct daemon *d)
{
	uint32_t most = 0;

	for (uint32_t i = 0; i < d->o.workers; i++) {
		uint16_t min, max;

		steer_worker_ports(&d->steer, i, &min, &max);
		if (max >= min && (uint32_t)(max - min + 1) > most)
			most = (uint32_t)(max - min + 1);
	}
	return most * d->steer.locals;
}

static void steer_configure(struct daemon *d)
{
	const struct options *o = &d->o;

	d->steer = (struct steer_config){
		.locals = o->locals,
		.port_min = o->port_min,
		.port_max = o->port_max,
		.workers = o->workers,
		.queue_num = o->nfqueue_num,
		.burst_max = o->batch_max,
		.bursts = d->engines.depth,
		.sockets_optional = o->steering != &steer_udp,
		.queue_send = o->queue_send,
		.queue_only = !o->kernel_relay,
		.port_rate = o->kernel_port_rate,
		.source_rate = o->kernel_source_rate,
		.udp_io = o->udp_io,
		.xdp_interfaces = o->xdp_interfaces,
		.xdp_mode = o->xdp_mode,
		.workers_auto = o->workers_auto,
	};
	for (uint32_t i = 0; i < o->locals; i++)
		d->steer.local[i] = o->local[i].addr;
}

static int steer_open(struct daemon *d)
{
	const struct steer_ops *ops = d->o.steering;
	int err = ops->open ? ops->open(&d->steer, d->err, sizeof(d->err)) : 0;

	if (err && ops->instead) {
		log_warn("%s. Going on with --steering=%s", d->err, ops->instead->name);
		d->err[0] = 0;
		d->o.steering = ops->instead;
		return steer_open(d);
	}
	d->o.workers = (uint16_t)d->steer.workers;
	return err ? fail(d, err, ops->name) : 0;
}

/* Only udp has a choice. */
static const char *socket_calls(const struct daemon *d)
{
	bool uring = d->o.steering == &steer_udp && d->steer.udp_io == STEER_UDP_URING;

	return uring ? "io_uring" : "plain";
}

/* Keys are to stay out of swap. Whether that many bytes may be locked only trying tells: a privilege may do without the limit. */
static void lock_check(size_t need)
{
	struct rlimit lock;
	void *p;

	if (getrlimit(RLIMIT_MEMLOCK, &lock))
		return;
	lock.rlim_cur = lock.rlim_max;
	setrlimit(RLIMIT_MEMLOCK, &lock);
	p = mmap(NULL, need, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		-1, 0);
	if (p == MAP_FAILED)
		return;
	if (mlock2(p, need, MLOCK_ONFAULT))
		log_warn(
			"only %llu KiB of memory may be locked, keys need up to %zu: they could be written to swap. Raise LimitMEMLOCK (systemd) or ulimit -Hl, narrow port-min to port-max, or turn swap off",
			(unsigned long long)lock.rlim_max / 1024, need / 1024);
	munmap(p, need);
}

static int tap_create(struct daemon *d)
{
	struct tap *t = calloc(1, sizeof(*t));

	if (!t || tap_init(t)) {
		free(t);
		return -ENOMEM;
	}
	d->tap[d->taps++] = t;
	return 0;
}

static int record_start(struct daemon *d)
{
	struct record_config cfg = {.dir = d->o.recording_dir,
		.format = d->o.recording_format,
		.max_age_s = d->o.recording_max_age * 3600ull,
		.max_bytes = d->o.recording_max_size * 1000000ull,
		.serial = d->engines.serial,
		.tap = d->tap,
		.taps = d->taps,
		.local = d->o.local};
	int err = record_create(&d->record, &cfg, d->err, sizeof(d->err));

	if (err)
		return fail(d, err, "recording");
	d->recorder = (struct recorder){.ops = &record_ops, .arg = d->record};
	calls_recorder(d->calls, &d->recorder);
	return 0;
}

static int workers_create(struct daemon *d)
{
	const struct options *o = &d->o;
	uint32_t streams = ports_per_worker(d), contexts = streams / 2;
	/* Two directions, one pair more for keys that are on their way out, and one for what few terminals ask for: several keys
	 * by MKI, or a key derivation rate, which takes MEDIA_EPOCHS more. Pair 0 is "plain". */
	uint32_t key_slots = 2 * (4 * contexts + 128);
	struct batch_runner_config batch = {
		.device = d->engines.device,
		.devices = d->engines.devices,
		.serial = d->engines.serial,
		.slots = steer_first_slots(&d->steer),
		.key_slots = key_slots,
		.batch_max = o->batch_max,
		.depth = d->engines.depth,
	};
	struct media_config media = {
		.max_ctx = contexts,
		.max_stream = streams,
		.port_min = o->port_min,
		.port_max = o->port_max,
		.local_addrs = (uint8_t)o->locals,
		.burst_max = o->batch_max,
		.replay_window = o->replay_window,
		.lifetime_enforce = o->enforce_lifetime,
	};
	struct app_relay_config relay = {
		.worker = d->worker,
		.workers = o->workers,
		.local = o->local,
		.locals = o->locals,
		.max_stream = streams,
		.max_ctx = contexts,
		.key_slots = key_slots,
		.steer_ops = o->steering,
		.steer = &d->steer,
		.spread = o->busy_poll || o->batch_window == 0,
		.ports_bound_to_workers = o->steering != &steer_udp,
	};
	int err;

	lock_check((size_t)o->workers * key_slots * sizeof(struct xc_key));
	if (o->steering->slots)
		batch.slots = o->steering->slots(&d->steer);
	for (; d->workers < o->workers; d->workers++) {
		struct worker_config cfg = {
			.index = d->workers,
			.steer_ops = o->steering,
			.steer = &d->steer,
			.media = &media,
			.batch = &batch,
			.batch_max = o->batch_max,
			.batch_window_ns = (uint64_t)o->batch_window * 1000,
			.overload_age_ns = (uint64_t)o->overload_age * 1000000,
			.busy_poll = o->busy_poll,
			.priority = o->worker_priority,
			.ack_fd = d->ack_fd,
		};

		if (o->recording_dir[0]) {
			err = tap_create(d);
			if (err)
				return fail(d, err, "recording");
			cfg.tap = d->tap[d->workers];
		}

		err = worker_create(&d->worker[d->workers], &cfg, d->err, sizeof(d->err));
		if (err)
			return fail(d, err, "worker");
	}
	err = ports_create(&d->ports, &d->steer, o->tos, PORT_HOLD_NS);
	if (err)
		return fail(d, err, "ports");
	relay.ports = d->ports;
	err = app_relay_create(&d->relay, &relay);
	return err ? fail(d, err, "relay") : 0;
}

static int workers_start(struct daemon *d)
{
	/* What a killed instance left would steer its ports to nobody. */
	d->o.steering->teardown(&d->steer);
	int err = d->o.steering->setup(&d->steer, d->err, sizeof(d->err));

	if (err)
		return fail(d, err, d->o.steering->name);
	d->rules = true;
	for (uint32_t i = 0; i < d->workers; i++) {
		err = worker_start(d->worker[i]);
		if (err)
			return fail(d, err,
				err == -EPERM && d->o.worker_priority
					? "worker-priority (CAP_SYS_NICE or a limit RTPRIO is needed)"
					: "worker thread");
	}
	return 0;
}

/* --- Calls and control ---------------------------------------------------------------------------------------- */

static void statistics(void *arg, struct pool *p, struct ngval *dict)
{
	stats_fill(arg, p, dict);
}

/* A key that nears the end of its lifetime: the terminal that gave it should give another by re-INVITE. */
static void key_notice(void *arg, const struct call_key_notice *n)
{
	const struct daemon *d = arg;
	struct log_about about = {.call_id = n->call_id, .side = n->tag, .media = n->media};
	char limit[48] = "what RFC 3711 allows";

	if (n->lifetime)
		snprintf(limit, sizeof(limit), "%llu packets", (unsigned long long)n->lifetime);
	log_call(LOG_WARNING, &about, "lifetime of %s (%s) is %s",
		n->ours ? "our key" : "the terminal's key", limit,
		!n->expired                     ? "used up to 90 %"
			: d->o.enforce_lifetime ? "used up: its packets are dropped"
						: "used up, going on (enforce-lifetime=no)");
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

static bool has_room(void *arg)
{
	return app_relay_has_room(arg);
}

static const char *become(void *arg, bool active)
{
	int err = active ? redis_active(arg) : redis_standby(arg);

	return err == 0                      ? NULL
		: err == -EALREADY && active ? "This node is active already"
		: err == -EALREADY           ? "This node is on standby already"
					     : "Internal error";
}

/* Calls of an earlier life come back before anybody may ask for new ones. */
static int redis_start(struct daemon *d)
{
	const struct redis_config cfg = {
		.loop = d->loop,
		.calls = d->calls,
		.server = d->o.redis,
		.write = d->o.redis_write,
		.key_file = d->o.redis_key_file,
		.expires_s = d->o.redis_expires,
		.standby = d->o.standby,
		.node = d->o.listen_ng.port,
		.has_room = has_room,
		.has_room_arg = d->relay,
	};
	int err;

	if (cfg.server.addr.family == 0)
		return 0;
	err = redis_create(&d->redis, &cfg, d->err, sizeof(d->err));
	if (err)
		return fail(d, err, "redis");
	d->stats.redis = d->redis;
	handler_on_role(d->handler, become, d->redis);
	redis_wait(d->redis, REDIS_WAIT_NS);
	return 0;
}

static void end(void *arg)
{
	struct daemon *d = arg;

	d->stopping = true;
	loop_stop(d->loop);
}

static int control_start(struct daemon *d)
{
	const struct options *o = &d->o;
	struct call_policy policy = operate_policy(o);
	uint64_t id;
	int err = secmem_random(&id, sizeof(id));

	if (err)
		return fail(d, err, "random numbers");
	snprintf(policy.loop_id, sizeof(policy.loop_id), "%016llx", (unsigned long long)id);
	d->relay_border = (struct relay){.ops = &app_relay_ops, .arg = d->relay};
	err = calls_create(&d->calls, &policy, &d->relay_border);
	if (err)
		return fail(d, err, "calls");
	calls_on_key_life(d->calls, key_notice, d);
	calls_on_trace(d->calls, trace_notice, NULL);
	err = o->recording_dir[0] ? record_start(d) : 0;
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
		.steering = o->steering->name,
		.socket_calls = socket_calls(d),
		.started_ns = clock_real_ns(),
	};
	err = handler_create(&d->handler, d->calls,
		(struct stats_source){.fill = statistics, .arg = &d->stats}, d->stats.started_ns);
	if (err)
		return fail(d, err, "handler");
	d->operate.o = &d->o;
	d->operate.calls = d->calls;
	d->operate.limits = &d->limits;
	d->operate.stats = &d->stats;
	d->operate.stop = end;
	d->operate.stop_arg = d;
	operate_second(&d->operate);
	handler_operator(d->handler, operate_request, &d->operate);
	handler_templates(d->handler, &d->o.ng_templates);
	err = redis_start(d);
	if (err)
		return err;
	err = ng_front_create(&d->front, d->handler);
	if (err)
		return fail(d, err, "ng");
	err = ng_server_create(&d->ng, &o->listen_ng, d->front, d->err, sizeof(d->err));
	return err ? fail(d, err, "listen-ng") : 0;
}

/* Workers took commands, or gave something back. */
static void on_ack(void *arg, uint32_t events)
{
	struct daemon *d = arg;
	uint64_t count;

	(void)events;
	(void)!read(d->ack_fd, &count, sizeof(count));
	app_relay_poll(d->relay, clock_mono_ns());
}

static void on_ng(void *arg, uint32_t events)
{
	struct daemon *d = arg;

	(void)events;
	ng_server_readable(d->ng, clock_real_ns());
}

/* The service manager's watchdog is fed only while packets would be served, too; and it need not wait for what is known. */
static void watchdog(struct daemon *d)
{
	uint32_t which;

	if (!d->notify.watchdog)
		return;
	if (alive_look(&d->alive, d->worker, d->workers, &which)) {
		notify_send(&d->notify, "WATCHDOG=1");
		return;
	}
	log_err("worker %u has stood still for more than %d s: the service manager is asked to start xcipherd anew",
		which, ALIVE_SECONDS);
	notify_send(&d->notify, "WATCHDOG=trigger");
}

static void on_second(void *arg)
{
	struct daemon *d = arg;

	app_relay_poll(d->relay, clock_mono_ns());
	app_relay_tick(d->relay, clock_mono_ns());
	operate_second(&d->operate);
	calls_tick(d->calls, clock_real_ns());
	ng_front_tick(d->front, clock_mono_ns());
	watchdog(d);
}

static void on_signal(void *arg, uint32_t events)
{
	struct daemon *d = arg;
	struct signalfd_siginfo info;

	(void)events;
	while (read(d->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGHUP) {
			notify_send(&d->notify, "RELOADING=1");
			operate_reload(&d->operate);
			notify_send(&d->notify, "READY=1");
			continue;
		}
		log_info("signal %u: stopping", info.ssi_signo);
		end(d);
	}
}

static int events_create(struct daemon *d)
{
	struct loop_io *io;
	sigset_t set;
	int err;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	d->ack_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	d->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (d->ack_fd < 0 || d->signal_fd < 0)
		return fail(d, -errno, "events");
	err = loop_create(&d->loop);
	err = err ? err : loop_io_add(d->loop, &io, d->ack_fd, EPOLLIN, on_ack, d);
	err = err ? err : loop_io_add(d->loop, &io, d->signal_fd, EPOLLIN, on_signal, d);
	return err ? fail(d, err, "events") : 0;
}

static void page_statistics(void *arg, struct pool *p, struct ngval *dict)
{
	const struct daemon *d = arg;

	stats_fill_page(&d->stats, p, dict);
}

static void metrics(void *arg, struct sbuf *out)
{
	const struct daemon *d = arg;
	struct metrics_input in = {.stats = &d->stats,
		.handler = d->handler,
		.tcp = d->ng_tcp,
		.http = d->http,
		.homer = d->homer,
		.teardown = d->teardown};

	metrics_write(&in, out);
}

static int homer_start(struct daemon *d)
{
	const struct homer_config cfg = {
		.server = d->o.homer,
		.capture_id = d->o.homer_id,
		.worker = d->worker,
		.workers = d->workers,
		.max_stream = ports_per_worker(d),
		.calls = d->calls,
		.local = d->o.local,
		.locals = d->o.locals,
	};
	int err = cfg.server.family ? homer_create(&d->homer, d->loop, &cfg, d->err, sizeof(d->err))
				    : 0;

	return err ? fail(d, err, "homer") : 0;
}

static int teardown_start(struct daemon *d)
{
	const struct teardown_config cfg = {.loop = d->loop,
		.calls = d->calls,
		.url = d->o.b2b_url,
		.format = (enum teardown_format)d->o.xmlrpc_format};
	int err = cfg.url[0] ? teardown_create(&d->teardown, &cfg) : 0;

	return err ? fail(d, err, "b2b-url") : 0;
}

/* The other ways to speak ng, which hook themselves into the loop. */
static int transports_start(struct daemon *d)
{
	struct ng_tcp_config tcp = {.listen = d->o.listen_tcp_ng};
	struct http_config http = {
		.listen = d->o.listen_http,
		.token_file = d->o.http_token_file,
		.hosts = d->o.http_hosts,
		.metrics = metrics,
		.arg = d,
		.page = {.calls = d->calls, .fill = page_statistics, .arg = d},
	};
	int err = 0;

	if (tcp.listen.family)
		err = ng_tcp_create(&d->ng_tcp, d->loop, d->front, &tcp, d->err, sizeof(d->err));
	if (err)
		return fail(d, err, "listen-tcp-ng");
	if (http.listen.family)
		err = http_create(&d->http, d->loop, d->front, &http, d->err, sizeof(d->err));
	if (err)
		return fail(d, err, "listen-http");
	err = homer_start(d);
	return err ? err : teardown_start(d);
}

/* Nothing is served before everything is there. */
static int events_watch(struct daemon *d)
{
	struct loop_io *io;
	struct loop_timer *timer;
	const struct kernel_watch_config kernel = {
		.loop = d->loop, .relay = d->relay, .ops = d->o.steering, .steer = &d->steer};
	int err = loop_io_add(d->loop, &io, ng_server_fd(d->ng), EPOLLIN, on_ng, d);

	err = err ? err : loop_timer_add(d->loop, &timer, NS_PER_SEC, NS_PER_SEC, on_second, d);
	err = err ? err : kernel_watch_create(&d->kernel, &kernel);
	d->stats.kernel = d->kernel;
	return err ? fail(d, err, "events") : 0;
}

/* --- Start and stop ------------------------------------------------------------------------------------------- */

/* A socket per port, so many descriptors; and no core dumps: libraries keep keys in memory we cannot mark. The limit alone does
 * not hold where dumps go to a program (core(5)). */
static void limits(const struct daemon *d)
{
	struct rlimit files, core = {0, 0};
	rlim_t need = (rlim_t)(d->o.port_max - d->o.port_min + 1) * d->o.locals + 256;

	setrlimit(RLIMIT_CORE, &core);
	prctl(PR_SET_DUMPABLE, 0);
	if (getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur >= need)
		return;
	if (files.rlim_max < need) {
		struct rlimit raised = {need, need};

		if (setrlimit(RLIMIT_NOFILE, &raised) == 0)
			return;
		log_warn(
			"only %llu descriptors are allowed, all ports need %llu%s: raise LimitNOFILE (systemd) or ulimit -Hn, or narrow port-min to port-max",
			(unsigned long long)files.rlim_max, (unsigned long long)need,
			d->o.steering == &steer_udp ? "" : " to have a socket each");
		need = files.rlim_max;
	}
	files.rlim_cur = need;
	setrlimit(RLIMIT_NOFILE, &files);
}

/* An address that is not this machine's would only show with the first call. */
static int interfaces_check(struct daemon *d)
{
	char text[ENDPOINT_STRLEN];

	for (uint32_t i = 0; i < d->o.locals; i++) {
		struct sockaddr_storage sa;
		socklen_t len = endpoint_to_sockaddr(&d->o.local[i].addr, &sa);
		int fd = socket(sa.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		int err = fd < 0 || bind(fd, (struct sockaddr *)&sa, len) ? -errno : 0;

		if (fd >= 0)
			close(fd);
		if (err) {
			snprintf(d->err, sizeof(d->err),
				"--interface=%s: %s. It must be an address of this machine, as \"ip addr\" shows them",
				endpoint_fmt_addr(&d->o.local[i].addr, text), strerror(-err));
			return err;
		}
	}
	return 0;
}

static int start(struct daemon *d)
{
	int err = events_create(d);

	/* On standby the addresses are another machine's as yet. */
	if (!err && !d->o.standby)
		err = interfaces_check(d);

	limits(d);
	if (!err) {
		err = engines_start(&d->engines, &d->o, d->err, sizeof(d->err));
		err = err ? fail(d, err, "engines") : 0;
	}
	if (!err)
		steer_configure(d); /* after the engines: they say how many bursts are in flight */
	err = err ? err : steer_open(d);
	err = err ? err : workers_create(d);
	if (!err)
		engines_log(&d->engines);
	err = err ? err : workers_start(d);
	err = err ? err : control_start(d);
	err = err ? err : transports_start(d);
	return err ? err : events_watch(d);
}

static void stop(struct daemon *d)
{
	http_destroy(d->http);
	homer_stop(d->homer);
	teardown_destroy(d->teardown);
	ng_tcp_destroy(d->ng_tcp);
	/* It says its last words over the loop; the calls stay there for whoever comes next. */
	redis_destroy(d->redis);
	loop_destroy(d->loop);
	if (d->ng)
		ng_server_destroy(d->ng);
	ng_front_destroy(d->front);
	if (d->handler)
		handler_destroy(d->handler);
	if (d->calls)
		calls_destroy(d->calls);
	/* New packets stop coming before those who would take them are gone. */
	if (d->rules)
		d->o.steering->teardown(&d->steer);
	for (uint32_t i = 0; i < d->workers; i++)
		worker_stop(d->worker[i]);
	homer_destroy(d->homer);
	record_destroy(d->record);
	for (uint32_t i = 0; i < d->workers; i++)
		worker_destroy(d->worker[i]);
	for (uint32_t i = 0; i < d->taps; i++) {
		tap_fini(d->tap[i]);
		free(d->tap[i]);
	}
	if (d->o.steering && d->o.steering->close)
		d->o.steering->close(&d->steer);
	kernel_watch_destroy(d->kernel);
	app_relay_destroy(d->relay);
	if (d->ports)
		ports_destroy(d->ports);
	engines_stop(&d->engines);
	const int fds[] = {d->ack_fd, d->signal_fd};
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

static void announce(const struct daemon *d)
{
	char ng[ENDPOINT_STRLEN], addr[ENDPOINT_STRLEN];

	for (uint32_t i = 0; i < d->o.locals; i++)
		log_info("interface %s: %s, ports %u to %u", d->o.local[i].name,
			endpoint_fmt_addr(&d->o.local[i].addr, addr), d->o.port_min, d->o.port_max);
	log_info("xcipherd " XCIPHER_VERSION
		 " is ready: ng on %s, steering %s, sockets by %s calls, engine %s, %u worker%s",
		endpoint_fmt(&d->o.listen_ng, ng), d->o.steering->name, socket_calls(d),
		d->engines.devices ? "opencl" : "serial", d->workers, d->workers == 1 ? "" : "s");
}

int main(int argc, char **argv)
{
	static struct daemon d = {.ack_fd = -1, .signal_fd = -1, .notify = {.fd = -1}};
	int background = -1, err;

	switch (options_read(&d.o, argc, argv)) {
	case OPTIONS_EXIT_OK:
		options_free(&d.o);
		return 0;
	case OPTIONS_EXIT_ERROR:
		options_free(&d.o);
		return 1;
	case OPTIONS_RUN:
		break;
	}
	d.operate.argc = argc;
	d.operate.argv = argv;
	log_open("xcipherd", d.o.log_level, d.o.log_stderr || d.o.foreground);
	/* Where a service manager's journal is, lines have fields. On a terminal, and for whoever catches them, they are text. */
	if (!(d.o.log_stderr || d.o.foreground) || log_stderr_is_journal())
		(void)log_journal("/run/systemd/journal/socket");
	/* Before any thread and any device is there: a fork would not take them along. */
	if (!d.o.foreground)
		background = background_start();
	notify_open(&d.notify);
	notify_send(&d.notify, "STATUS=compiling kernels, trying engines");
	err = start(&d);
	if (!err && d.o.pidfile[0]) {
		err = pidfile_write(d.o.pidfile);
		if (err)
			snprintf(d.err, sizeof(d.err), "cannot write --pidfile=%s: %s", d.o.pidfile,
				strerror(-err));
	}
	if (err) {
		fprintf(stderr, "xcipherd: %s\n", d.err);
	} else {
		announce(&d);
		if (background >= 0)
			background_ready(background);
		notify_send(&d.notify, "READY=1\nSTATUS=relaying");
		if (!d.stopping)
			loop_run(d.loop);
	}
	notify_send(&d.notify, "STOPPING=1");
	stop(&d);
	notify_close(&d.notify);
	if (!err && d.o.pidfile[0])
		unlink(d.o.pidfile);
	options_free(&d.o);
	return err ? 1 : 0;
}
