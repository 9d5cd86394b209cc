/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The control thread's event loop: descriptors (epoll) and timers, each with a function. One thread
 * only. A callback must not block: everything that control does waits meanwhile. */
#ifndef BASE_LOOP_H
#define BASE_LOOP_H

#include <stdbool.h>
#include <stdint.h>

struct loop;
struct loop_io;    /* a watched descriptor */
struct loop_timer; /* a timer that was started */

/* events: EPOLLIN and so on, what is ready. */
typedef void loop_io_fn(void *arg, uint32_t events);
typedef void loop_timer_fn(void *arg);

/* 0 or -errno. */
int loop_create(struct loop **out);
/* Ends all that is still watched; descriptors stay the caller's. NULL is fine. */
void loop_destroy(struct loop *l);

/* Watches fd, which the caller keeps open until loop_io_remove(). 0 or -errno. */
int loop_io_add(
	struct loop *l, struct loop_io **out, int fd, uint32_t events, loop_io_fn *fn, void *arg);
/* Other events; 0 = none but EPOLLERR and EPOLLHUP. 0 or -errno. */
int loop_io_change(struct loop_io *io, uint32_t events);
/* Before fd is closed; also from within any callback: what had already become ready is dropped.
 * NULL is fine. */
void loop_io_remove(struct loop_io *io);

/* fn first after that long, then every period_ns; period 0: once, and the timer is gone when fn is
 * called. What was missed while the thread was busy is not caught up. 0 or -ENOMEM. */
int loop_timer_add(struct loop *l, struct loop_timer **out, uint64_t after_ns, uint64_t period_ns,
	loop_timer_fn *fn, void *arg);
/* Also from within its own function, but not for one that was to come once and came. NULL is fine. */
void loop_timer_remove(struct loop_timer *t);

/* Serves until loop_stop(). 0 or -errno of epoll. */
int loop_run(struct loop *l);
/* From within a callback: loop_run() returns after it. */
void loop_stop(struct loop *l);

#endif
