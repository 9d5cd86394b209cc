/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The control thread's event loop (base/loop.h). Removal only marks an entry while events are
 * served. It is freed after the last event, so no event of the same round finds freed memory. */
#include "base/loop.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"

enum { EVENTS = 32 };

struct loop_io {
	struct loop *loop;
	struct loop_io *next, **prev;
	loop_io_fn *fn; /* NULL: removed */
	void *arg;
	int fd;
};

struct loop_timer {
	struct loop *loop;
	struct loop_timer *next, **prev;
	loop_timer_fn *fn; /* NULL: removed */
	void *arg;
	uint64_t due_ns, period_ns;
};

/* A daemon has few timers, so a list is fast enough. */
struct loop {
	struct loop_io *io, *dead_io;
	struct loop_timer *timer, *dead_timer;
	loop_timer_fn *before_wait; /* or NULL */
	void *before_wait_arg;
	int epoll_fd;
	bool serving, stop;
};

int loop_create(struct loop **out)
{
	struct loop *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (l->epoll_fd < 0) {
		int err = -errno;

		free(l);
		return err;
	}
	*out = l;
	return 0;
}

/* --- Descriptors ------------------------------------------------------------------------------ */

int loop_io_add(
	struct loop *l, struct loop_io **out, int fd, uint32_t events, loop_io_fn *fn, void *arg)
{
	struct loop_io *io = calloc(1, sizeof(*io));
	struct epoll_event ev = {.events = events, .data.ptr = io};

	if (!io)
		return -ENOMEM;
	if (epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, fd, &ev)) {
		int err = -errno;

		free(io);
		return err;
	}
	*io = (struct loop_io){
		.loop = l, .next = l->io, .prev = &l->io, .fn = fn, .arg = arg, .fd = fd};
	if (l->io)
		l->io->prev = &io->next;
	l->io = io;
	*out = io;
	return 0;
}

int loop_io_change(struct loop_io *io, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.ptr = io};

	return epoll_ctl(io->loop->epoll_fd, EPOLL_CTL_MOD, io->fd, &ev) ? -errno : 0;
}

void loop_io_remove(struct loop_io *io)
{
	struct loop *l;

	if (!io)
		return;
	l = io->loop;
	epoll_ctl(l->epoll_fd, EPOLL_CTL_DEL, io->fd, NULL);
	*io->prev = io->next;
	if (io->next)
		io->next->prev = io->prev;
	io->fn = NULL;
	if (l->serving) {
		io->next = l->dead_io;
		l->dead_io = io;
	} else {
		free(io);
	}
}

/* --- Timers ----------------------------------------------------------------------------------- */

/* Saturates: a timer beyond the clock's range never fires, rather than at once. */
static uint64_t later(uint64_t now, uint64_t after_ns)
{
	return after_ns < UINT64_MAX - now ? now + after_ns : UINT64_MAX;
}

int loop_timer_add(struct loop *l, struct loop_timer **out, uint64_t after_ns, uint64_t period_ns,
	loop_timer_fn *fn, void *arg)
{
	struct loop_timer *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	*t = (struct loop_timer){.loop = l,
		.next = l->timer,
		.prev = &l->timer,
		.fn = fn,
		.arg = arg,
		.due_ns = later(clock_mono_ns(), after_ns),
		.period_ns = period_ns};
	if (l->timer)
		l->timer->prev = &t->next;
	l->timer = t;
	*out = t;
	return 0;
}

void loop_timer_remove(struct loop_timer *t)
{
	struct loop *l;

	if (!t)
		return;
	l = t->loop;
	*t->prev = t->next;
	if (t->next)
		t->next->prev = t->prev;
	t->fn = NULL;
	if (l->serving) {
		t->next = l->dead_timer;
		l->dead_timer = t;
	} else {
		free(t);
	}
}

/* Milliseconds to the next timer, rounded up. -1 if there is none. */
static int wait_ms(const struct loop *l)
{
	uint64_t now = clock_mono_ns(), next = UINT64_MAX, ms;

	for (const struct loop_timer *t = l->timer; t; t = t->next)
		if (t->due_ns < next)
			next = t->due_ns;
	if (next == UINT64_MAX)
		return -1;
	if (next <= now)
		return 0;
	ms = (next - now + 999999) / 1000000;
	return ms > 60000 ? 60000 : (int)ms;
}

/* The first timer that is due. A callback may add and remove timers, so each search starts at the
 * head. */
static struct loop_timer *due(const struct loop *l, uint64_t now)
{
	for (struct loop_timer *t = l->timer; t; t = t->next)
		if (t->due_ns <= now)
			return t;
	return NULL;
}

static void timers_serve(struct loop *l)
{
	uint64_t now = clock_mono_ns();
	struct loop_timer *t;

	while (!l->stop && (t = due(l, now)) != NULL) {
		loop_timer_fn *fn = t->fn;
		void *arg = t->arg;

		if (t->period_ns) {
			t->due_ns = later(t->due_ns, t->period_ns);
			if (t->due_ns <= now)
				t->due_ns = later(now, t->period_ns);
		} else {
			loop_timer_remove(t);
		}
		fn(arg);
	}
}

/* --- Running ---------------------------------------------------------------------------------- */

static void bury(struct loop *l)
{
	while (l->dead_io) {
		struct loop_io *io = l->dead_io;

		l->dead_io = io->next;
		free(io);
	}
	while (l->dead_timer) {
		struct loop_timer *t = l->dead_timer;

		l->dead_timer = t->next;
		free(t);
	}
}

void loop_before_wait(struct loop *l, loop_timer_fn *fn, void *arg)
{
	l->before_wait = fn;
	l->before_wait_arg = arg;
}

static int wait_for_events(struct loop *l, struct epoll_event *ev)
{
	if (l->before_wait)
		l->before_wait(l->before_wait_arg);
	return epoll_wait(l->epoll_fd, ev, EVENTS, wait_ms(l));
}

int loop_run(struct loop *l)
{
	struct epoll_event ev[EVENTS];

	l->stop = false;
	while (!l->stop) {
		int n = wait_for_events(l, ev);

		if (n < 0 && errno != EINTR)
			return -errno;
		l->serving = true;
		for (int i = 0; i < n && !l->stop; i++) {
			struct loop_io *io = ev[i].data.ptr;

			if (io->fn)
				io->fn(io->arg, ev[i].events);
		}
		timers_serve(l);
		l->serving = false;
		bury(l);
	}
	return 0;
}

void loop_stop(struct loop *l)
{
	l->stop = true;
}

void loop_destroy(struct loop *l)
{
	if (!l)
		return;
	while (l->io)
		loop_io_remove(l->io);
	while (l->timer)
		loop_timer_remove(l->timer);
	close(l->epoll_fd);
	free(l);
}
