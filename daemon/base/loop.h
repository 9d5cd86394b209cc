/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The control thread's event loop: descriptors (epoll) and timers, each with a function. One thread
 * only. A callback must not block, because all other control work waits for it. */
#ifndef BASE_LOOP_H
#define BASE_LOOP_H

#include <stdbool.h>
#include <stdint.h>

struct loop;
struct loop_io;    /* a timer, until it is removed or has fired once */
struct loop_timer; /* a timer that was started */

/* events: the ready ones, EPOLLIN and so on. */
typedef void loop_io_fn(void *arg, uint32_t events);
typedef void loop_timer_fn(void *arg);

/* 0 or -errno. */
int loop_create(struct loop **out);
/* Removes all entries. Descriptors remain the caller's. NULL is fine. */
void loop_destroy(struct loop *l);

/* Watches fd, which the caller keeps open until loop_io_remove(). 0 or -errno. */
int loop_io_add(
	struct loop *l, struct loop_io **out, int fd, uint32_t events, loop_io_fn *fn, void *arg);
/* Replaces the events. 0 = only EPOLLERR and EPOLLHUP. 0 or -errno. */
int loop_io_change(struct loop_io *io, uint32_t events);
/* Call it before fd is closed. Any callback may call it; pending events of fd are dropped. NULL is
 * fine. */
void loop_io_remove(struct loop_io *io);

/* Calls fn after after_ns, then every period_ns. With period 0 it is called once, and the timer is
 * freed before the call. Missed periods are skipped. 0 or -ENOMEM. */
int loop_timer_add(struct loop *l, struct loop_timer **out, uint64_t after_ns, uint64_t period_ns,
	loop_timer_fn *fn, void *arg);
/* The timer's own function may call it. Not for a one-shot timer that has fired. NULL is fine. */
void loop_timer_remove(struct loop_timer *t);

/* Calls fn before each wait for events. NULL: nothing. */
void loop_before_wait(struct loop *l, loop_timer_fn *fn, void *arg);

/* Serves until loop_stop(). 0 or -errno of epoll. */
int loop_run(struct loop *l);
/* Makes loop_run() return after the current callback. */
void loop_stop(struct loop *l);

#endif
