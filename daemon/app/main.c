/* SPDX-License-Identifier: GPL-2.0-or-later */
/* xcipherd: start and stop. Steps that can fail come first, before the machine is changed: options,
 * engines (kernels are compiled and tested on known answers), workers, netfilter rules, and the ng
 * port last. Stopping goes backwards. This is the control thread, which owns calls; workers own
 * packets. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/codecs.h"
#include "app/daemon.h"
#include "app/preflight.h"
#include "app/privileges.h"
#include "audio/files.h"
#include "base/caps.h"
#include "base/clock.h"
#include "base/log.h"
#include "call/call.h"
#include "call/tick.h"

#define START_SECONDS 120 /* all but devices: kernels, Redis, ports */
/* on_second() runs once a second: after a longer gap than this the process was not merely busy. */
#define PAUSE_NS (2 * NS_PER_SEC)

/* --- Events ----------------------------------------------------------------------------------- */

/* Workers executed commands, or acknowledged releases. */
static void on_ack(void *arg, uint32_t events)
{
	struct daemon *d = arg;
	uint64_t count;

	(void)events;
	(void)!read(d->ack_fd, &count, sizeof(count));
	bridge_poll(d->relay, clock_mono_ns());
}

static void on_ng_waiting(void *arg);

/* Executes waiting requests in the next round of the loop. */
static void serve_ng(struct daemon *d)
{
	if (ng_server_readable(d->ng, clock_real_ns()) && !d->ng_waiting &&
		loop_timer_add(d->loop, &d->ng_waiting, 0, 0, on_ng_waiting, d))
		d->ng_waiting = NULL;
}

static void on_ng_waiting(void *arg)
{
	struct daemon *d = arg;

	d->ng_waiting = NULL;
	serve_ng(d);
}

static void on_ng(void *arg, uint32_t events)
{
	(void)events;
	serve_ng(arg);
}

/* Feeds the service manager's watchdog only while packets are served, too. A known failure is
 * reported at once. */
static void watchdog(struct daemon *d)
{
	uint32_t which;

	if (!d->notify.watchdog)
		return;
	if (alive_look(&d->alive, d->worker, d->workers, &which)) {
		notify_send(&d->notify, "WATCHDOG=1");
		return;
	}
	log_err("worker %u is stuck for more than %d s; asking the service manager to restart xcipherd",
		which, ALIVE_SECONDS);
	notify_send(&d->notify, "WATCHDOG=trigger");
}

/* The process or its virtual machine was stopped. Timers run before the packets that arrived
 * meanwhile are read. */
static void pause_watch(struct daemon *d)
{
	uint64_t mono = clock_mono_ns(), gap = mono - d->second_ns;

	d->second_ns = mono;
	if (gap < PAUSE_NS)
		return;
	log_warn("the process did not run for %llu s: timeouts for calls without media start again",
		(unsigned long long)(gap / NS_PER_SEC));
	calls_clock_set(d->calls, clock_real_ns(), 0);
}

/* Packet timestamps and call times use a clock that may be set. */
static void clock_watch(struct daemon *d)
{
	uint64_t now = clock_real_ns();
	int64_t step = clock_step(&d->clock, now, clock_mono_ns());

	if (!step)
		return;
	log_warn("the clock was set by %+lld s: timeouts for calls without media start again",
		(long long)(step / (int64_t)NS_PER_SEC));
	calls_clock_set(d->calls, now, step);
}

static void on_second(void *arg)
{
	struct daemon *d = arg;

	bridge_poll(d->relay, clock_mono_ns());
	bridge_tick(d->relay, clock_mono_ns());
	daemon_keying_tick(d);
	daemon_mikey_tick(d);
	daemon_zrtp_tick(d);
	operate_second(&d->operate);
	clock_watch(d);
	pause_watch(d);
	calls_tick(d->calls, clock_real_ns());
	ng_dispatch_tick(d->dispatch, clock_mono_ns());
	ng_server_tick(d->ng, clock_mono_ns());
	interfaces_tick(&d->interfaces, d->host);
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
			operate_reload(&d->operate, NULL, NULL);
			notify_send(&d->notify, "READY=1");
			continue;
		}
		log_info("signal %u: stopping", info.ssi_signo);
		daemon_end(d);
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
		return daemon_fail(d, -errno, "events");
	err = loop_create(&d->loop);
	err = err ? err : loop_io_add(d->loop, &io, d->ack_fd, EPOLLIN, on_ack, d);
	err = err ? err : loop_io_add(d->loop, &io, d->signal_fd, EPOLLIN, on_signal, d);
	if (err)
		return daemon_fail(d, err, "events");
	err = host_create(&d->host, d->loop);
	return err ? daemon_fail(d, err, "addresses of this host (rtnetlink)") : 0;
}

static void on_rules_again(void *arg)
{
	struct daemon *d = arg;

	bridge_steer_again(d->relay);
}

/* Watches events last, when everything is ready. */
static int events_watch(struct daemon *d)
{
	struct loop_io *io;
	struct loop_timer *timer;
	const struct kernel_watch_config kernel = {
		.loop = d->loop, .relay = d->relay, .ops = d->o.steering, .steer = &d->steer};
	int err = loop_io_add(d->loop, &io, ng_server_fd(d->ng), EPOLLIN, on_ng, d);

	d->second_ns = clock_mono_ns();
	err = err ? err : loop_timer_add(d->loop, &timer, NS_PER_SEC, NS_PER_SEC, on_second, d);
	err = err ? err : kernel_watch_create(&d->kernel, &kernel);
	d->stats.kernel = d->kernel;
	err = err ? err
		  : rules_keep_create(
			    &d->rules_keep, d->loop, d->o.steering, &d->steer, on_rules_again, d);
	d->stats.rules = d->rules_keep;
	interfaces_init(&d->interfaces, d->o.local, d->o.locals);
	d->stats.interfaces = &d->interfaces;
	return err ? daemon_fail(d, err, "events") : 0;
}

/* --- Start and stop --------------------------------------------------------------------------- */

/* Called without capabilities, because libraries create threads here. */
static int start_engines(void *arg)
{
	struct daemon *d = arg;

	return engines_start(&d->engines, &d->o, d->err, sizeof(d->err));
}

/* Without capabilities too: plug-ins run in this process unless they are isolated. */
static int start_codecs(void *arg)
{
	struct daemon *d = arg;

	return app_codecs_load(&d->codecs, &d->o, d->err, sizeof(d->err));
}

static int start_steering(void *arg)
{
	return daemon_steering_open(arg);
}

static int start(struct daemon *d)
{
	int err = events_create(d);

	/* On standby, the addresses may still belong to another machine. */
	if (!err && !d->o.standby)
		err = preflight_interfaces(d->o.local, d->o.locals, d->err, sizeof(d->err));

	preflight_process((uint64_t)(d->o.port_max - d->o.port_min + 1) * d->o.locals + 256);
	if (!err) {
		err = privileges_prepare(privileges_of(d->o.steering), d->o.user, d->o.group,
			d->err, sizeof(d->err));
		err = err ? daemon_fail(d, err, "user") : 0;
	}
	if (!err)
		preflight_config(&d->o);
	if (!err) {
		err = caps_run(0, start_engines, d);
		err = err ? daemon_fail(d, err, "engines") : 0;
	}
	if (!err) {
		err = caps_run(0, start_codecs, d);
		err = err ? daemon_fail(d, err, "codecs") : 0;
	}
	err = err ? err : caps_run(privileges_to_start(d->o.steering), start_steering, d);
	daemon_reach_init(d);
	err = err ? err : daemon_workers_create(d);
	if (!err)
		engines_log(&d->engines);
	err = err ? err : daemon_workers_start(d);
	err = err ? err : daemon_control_start(d);
	err = err ? err : daemon_transports_start(d);
	return err ? err : events_watch(d);
}

static void stop(struct daemon *d)
{
	homer_stop(d->homer);
	teardown_destroy(d->teardown);
	ng_tcp_destroy(d->ng_tcp);
	ng_tcp_destroy(d->ng_unix);
	/* Its last commands need the loop; the calls stay in Redis for the next daemon. */
	redis_destroy(d->redis);
	host_stop(d->host);
	rules_keep_destroy(d->rules_keep);
	kernel_watch_destroy(d->kernel);
	loop_destroy(d->loop);
	if (d->ng)
		ng_server_destroy(d->ng);
	ng_dispatch_destroy(d->dispatch);
	if (d->handler)
		handler_destroy(d->handler);
	if (d->calls)
		calls_destroy(d->calls);
	audio_files_destroy(d->files);
	daemon_mikey_stop(d);
	cdr_destroy(d->cdr);
	ended_destroy(d->ended);
	/* Stop new packets before the workers that process them end. */
	if (d->rules)
		d->o.steering->teardown(&d->steer);
	for (uint32_t i = 0; i < d->workers; i++)
		worker_stop(d->worker[i]);
	/* Each wakes the other, so no descriptor is closed before both have stopped. */
	daemon_keying_stop(d);
	daemon_audio_stop(d);
	daemon_zrtp_stop(d);
	homer_destroy(d->homer);
	record_destroy(d->record);
	for (uint32_t i = 0; i < d->workers; i++)
		worker_destroy(d->worker[i]);
	daemon_channels_destroy(d);
	daemon_audio_channels_destroy(d);
	for (uint32_t i = 0; i < d->taps; i++) {
		tap_fini(d->tap[i]);
		free(d->tap[i]);
	}
	host_destroy(d->host);
	if (d->o.steering && d->o.steering->close)
		d->o.steering->close(&d->steer);
	bridge_destroy(d->relay);
	if (d->ports)
		ports_destroy(d->ports);
	engines_stop(&d->engines);
	codec_registry_destroy(d->codecs);
	const int fds[] = {d->ack_fd, d->signal_fd};
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

/* Devices that hang may take longer than the service manager's start timeout. */
static void tell_start(const struct daemon *d)
{
	char text[128];
	unsigned long long s = START_SECONDS +
		(d->o.engine == ENGINE_SERIAL
				? 0
				: (unsigned long long)d->o.devices * d->o.opencl_start_timeout);

	snprintf(text, sizeof(text),
		"EXTEND_TIMEOUT_USEC=%llu\nSTATUS=compiling kernels, trying engines", s * 1000000);
	notify_send(&d->notify, text);
}

static void announce(const struct daemon *d)
{
	char ng[ENDPOINT_STRLEN], addr[ENDPOINT_STRLEN];

	for (uint32_t i = 0; i < d->o.locals; i++)
		log_info("interface %s: %s, ports %u to %u", d->o.local[i].name,
			endpoint_fmt_addr(&d->o.local[i].addr, addr), d->o.port_min, d->o.port_max);
	log_info("xcipherd " XCIPHER_VERSION
		 " is ready: ng on %s, steering %s, sockets by %s calls, engine %s, %u worker%s",
		endpoint_fmt(&d->o.listen_ng, ng), d->o.steering->name, daemon_socket_calls(d),
		d->engines.devices ? "opencl" : "serial", d->workers, d->workers == 1 ? "" : "s");
}

int main(int argc, char **argv)
{
	static struct daemon d = {
		.ack_fd = -1, .signal_fd = -1, .sessions_fd = -1, .notify = {.fd = -1}};
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
	/* With the service manager's journal, log lines have fields. On terminals and pipes they
	 * are text. */
	if (!(d.o.log_stderr || d.o.foreground) || log_stderr_is_journal())
		(void)log_journal("/run/systemd/journal/socket");
	options_warn(&d.o);
	umask(umask(0) | 027);
	/* Before threads and devices exist: a fork would not copy them. */
	if (!d.o.foreground)
		background = background_start();
	notify_open(&d.notify);
	tell_start(&d);
	err = start(&d);
	if (!err && d.o.pidfile[0]) {
		err = pidfile_write(d.o.pidfile);
		if (err)
			snprintf(d.err, sizeof(d.err), "cannot write --pidfile=%s: %s", d.o.pidfile,
				strerror(-err));
	}
	if (!err) {
		err = privileges_drop(privileges_of(d.o.steering));
		if (err)
			daemon_fail(&d, err, "dropping capabilities");
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
