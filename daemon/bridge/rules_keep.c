/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See rules_keep.h. */
#include "bridge/rules_keep.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

#define DELAY_MIN_NS \
	(NS_PER_SEC / 10) /* a restarting firewall flushes its rules, then loads
				        * them */
#define DELAY_MAX_NS (60 * NS_PER_SEC)

struct rules_keep {
	struct loop *loop;
	const struct steer_ops *ops;
	const struct steer_config *cfg;
	int fd;
	struct loop_io *io;
	struct loop_timer *timer; /* NULL: no rules need to be set */
	uint64_t delay_ns;        /* delay of the next attempt */
	uint64_t set_ns;          /* when rules were last set again */
	struct rules_keep_usage usage;
	void (*before_again)(void *arg);
	void *arg;
};

static void on_timer(void *arg);

static void set_soon(struct rules_keep *k)
{
	if (loop_timer_add(k->loop, &k->timer, k->delay_ns, 0, on_timer, k)) {
		k->timer = NULL;
		log_err("%s steering: out of memory: its rules are not set again. Restart xcipherd",
			k->ops->name);
	}
	k->delay_ns = 2 * k->delay_ns < DELAY_MAX_NS ? 2 * k->delay_ns : DELAY_MAX_NS;
}

static void on_timer(void *arg)
{
	struct rules_keep *k = arg;
	char err[256] = "";

	k->timer = NULL;
	if (!k->usage.missing)
		return;
	k->before_again(k->arg);
	if (k->ops->setup_again(k->cfg, err, sizeof(err))) {
		log_err("cannot set the rules again: %s. Next attempt in %.1f s", err,
			(double)k->delay_ns / (double)NS_PER_SEC);
		set_soon(k);
		return;
	}
	k->usage.missing = false;
	k->usage.again++;
	k->set_ns = clock_mono_ns();
	log_info("%s steering: the rules are set again", k->ops->name);
}

static void on_readable(void *arg, uint32_t events)
{
	struct rules_keep *k = arg;
	int err = k->ops->watched(k->cfg, k->fd, &k->usage.missing);

	(void)events;
	if (err) {
		log_err("%s steering: its rules are no longer watched: %s", k->ops->name,
			strerror(-err));
		loop_io_remove(k->io);
		k->io = NULL;
		return;
	}
	if (!k->usage.missing || k->timer)
		return;
	if (clock_mono_ns() - k->set_ns > DELAY_MAX_NS)
		k->delay_ns = DELAY_MIN_NS;
	log_warn(
		"%s steering: netfilter rules were removed by another program (a firewall service, nft flush ruleset). Media uses ordinary sockets, at higher cost, until the rules are set again in %.1f s",
		k->ops->name, (double)k->delay_ns / (double)NS_PER_SEC);
	set_soon(k);
}

int rules_keep_create(struct rules_keep **out, struct loop *loop, const struct steer_ops *ops,
	const struct steer_config *cfg, void (*before_again)(void *arg), void *arg)
{
	struct rules_keep *k;
	int fd, err;

	*out = NULL;
	if (!ops->watch)
		return 0;
	fd = ops->watch();
	if (fd < 0) {
		log_warn(
			"%s steering: changes of the rules cannot be watched: %s. If another program removes them, restart xcipherd",
			ops->name, strerror(-fd));
		return 0;
	}
	k = calloc(1, sizeof(*k));
	if (!k) {
		close(fd);
		return -ENOMEM;
	}
	*k = (struct rules_keep){.loop = loop,
		.ops = ops,
		.cfg = cfg,
		.fd = fd,
		.delay_ns = DELAY_MIN_NS,
		.before_again = before_again,
		.arg = arg};
	err = loop_io_add(loop, &k->io, fd, EPOLLIN, on_readable, k);
	if (err) {
		rules_keep_destroy(k);
		return err;
	}
	*out = k;
	return 0;
}

void rules_keep_destroy(struct rules_keep *k)
{
	if (!k)
		return;
	loop_io_remove(k->io);
	loop_timer_remove(k->timer);
	close(k->fd);
	free(k);
}

void rules_keep_usage(const struct rules_keep *k, struct rules_keep_usage *out)
{
	*out = k ? k->usage : (struct rules_keep_usage){0};
}
