/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Events of the kernel (bridge/kernel_watch.h). An event proves nothing: its stream is checked a
 * moment later, when the packet has passed the worker. Only the worker authenticates, learns and
 * confirms. */
#include "bridge/kernel_watch.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/log.h"

#define ALIVE_NS     (2 * NS_PER_SEC)
#define SOON_NS      (20 * 1000000ull) /* longer than a burst takes */
#define FLOOD_LOG_NS (10 * NS_PER_SEC)
/* A flood is reported once a second, so the second check after the last report counts all its
 * packets. */
#define FLOOD_CHECKS 2u

struct kernel_watch {
	struct kernel_watch_config cfg;
	struct loop_io *io;
	struct loop_timer *alive, *soon;
	struct log_limit flood_log;
	uint32_t checks;  /* left that read the module's counter of dropped packets */
	uint64_t dropped; /* this counter, when it was read last */
	bool refused;     /* the module that was loaded again is unusable, and this was logged */
	struct kernel_watch_usage usage;
};

static void on_soon(void *arg)
{
	struct kernel_watch *w = arg;

	w->soon = NULL;
	bridge_look_again(w->cfg.relay, clock_mono_ns());
}

/* Reading the counter costs time for each port, so it is read only after floods. */
static void count_dropped(struct kernel_watch *w)
{
	uint64_t now, before = w->dropped;

	if (!w->cfg.ops->over_source_rate || w->cfg.ops->over_source_rate(w->cfg.steer, &now))
		return;
	w->dropped = now;
	/* Lower: the module was loaded again. */
	w->usage.over_source_rate += now >= before ? now - before : now;
}

static void flood(struct kernel_watch *w, const struct steer_event *e)
{
	char to[ENDPOINT_STRLEN], from[ENDPOINT_STRLEN];
	uint64_t held;

	w->checks = FLOOD_CHECKS;
	if (!log_limit_pass(&w->flood_log, clock_mono_ns(), FLOOD_LOG_NS, &held))
		return;
	log_warn(
		"flood: packets to %s exceed --kernel-port-rate or --source-rate, the latest from %s: nf_xcipher drops the excess (%llu more reports suppressed)",
		endpoint_fmt(&e->local, to),
		e->source.family ? endpoint_fmt(&e->source, from) : "?", (unsigned long long)held);
}

static void on_event(void *arg, const struct steer_event *e)
{
	struct kernel_watch *w = arg;

	w->usage.events[e->kind]++;
	if (e->kind == STEER_EVENT_FLOOD)
		flood(w, e);
	else if (bridge_event(w->cfg.relay, e) && !w->soon)
		(void)loop_timer_add(w->cfg.loop, &w->soon, SOON_NS, 0, on_soon, w);
}

static void on_readable(void *arg, uint32_t ready)
{
	struct kernel_watch *w = arg;
	int err = w->cfg.ops->events(w->cfg.steer, on_event, w);

	(void)ready;
	if (err == -ENOBUFS) {
		w->usage.lost++; /* the periodic check covers all streams */
	} else if (err) {
		loop_io_remove(w->io);
		w->io = NULL;
	}
}

static void gone(struct kernel_watch *w)
{
	struct bridge_usage usage;

	bridge_usage(w->cfg.relay, &usage);
	w->usage.gone = true;
	w->refused = false;
	log_err("kernel steering: the module nf_xcipher was unloaded: all media take the ordinary sockets, at higher cost (%u streams were relayed in the kernel). Load it again: modprobe nf_xcipher",
		usage.offload.streams);
	bridge_kernel_gone(w->cfg.relay);
}

static int listen_again(struct kernel_watch *w)
{
	int fd = w->cfg.ops->events_fd(w->cfg.steer);

	return w->io || fd < 0 ? 0 : loop_io_add(w->cfg.loop, &w->io, fd, EPOLLIN, on_readable, w);
}

static void come_back(struct kernel_watch *w)
{
	char err[256] = "";
	int res = w->cfg.ops->back(w->cfg.steer, err, sizeof(err));

	if (res && res != -ENOENT && !w->refused)
		log_err("kernel steering: the module nf_xcipher was loaded again, but cannot be used: %s",
			err);
	w->refused = res && res != -ENOENT;
	if (res || listen_again(w))
		return;
	bridge_kernel_back(w->cfg.relay);
	w->usage.gone = false;
	w->usage.returns++;
	log_info(
		"kernel steering: the module nf_xcipher is back: it steers media again, and relays plain streams in the kernel");
}

static void on_alive(void *arg)
{
	struct kernel_watch *w = arg;

	if (!w->usage.gone && w->cfg.ops->alive(w->cfg.steer) == -ENOENT)
		gone(w);
	if (w->usage.gone)
		come_back(w);
	else if (w->checks && w->checks--)
		count_dropped(w);
}

int kernel_watch_create(struct kernel_watch **out, const struct kernel_watch_config *cfg)
{
	struct kernel_watch *w;
	int fd, err = 0;

	*out = NULL;
	if (!cfg->ops->events_fd || !cfg->ops->alive)
		return 0;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->cfg = *cfg;
	count_dropped(w);
	w->usage.over_source_rate = 0; /* of earlier processes */
	fd = cfg->ops->events_fd(cfg->steer);
	if (fd >= 0)
		err = loop_io_add(cfg->loop, &w->io, fd, EPOLLIN, on_readable, w);
	err = err ? err : loop_timer_add(cfg->loop, &w->alive, ALIVE_NS, ALIVE_NS, on_alive, w);
	if (err) {
		kernel_watch_destroy(w);
		return err;
	}
	*out = w;
	return 0;
}

void kernel_watch_destroy(struct kernel_watch *w)
{
	if (!w)
		return;
	loop_io_remove(w->io);
	loop_timer_remove(w->alive);
	loop_timer_remove(w->soon);
	free(w);
}

void kernel_watch_usage(const struct kernel_watch *w, struct kernel_watch_usage *out)
{
	*out = w ? w->usage : (struct kernel_watch_usage){0};
}
