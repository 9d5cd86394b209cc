/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Interfaces of "xdp" that disappear and return under the same name, with any index. A separate
 * thread listens to the kernel, attaches the program and opens the sockets, because these
 * operations may block. A worker only replaces its dead sockets by the new ones. */
#ifndef STEER_XDP_XDP_BACK_H
#define STEER_XDP_XDP_BACK_H

#include "packet/arena.h"
#include "steer/xdp/xdp_umem.h"

struct back;

/* Control thread, before workers run. 0 or -errno. */
int back_create(struct back **out, struct steer_hub *h);
/* Call it after all workers have ended. NULL is fine. */
void back_destroy(struct back *b);
/* Control thread, before back_start(): registers a worker with sockets on this arena. */
void back_worker(struct back *b, uint32_t worker, const struct arena *a, bool zerocopy);
/* Control thread. While the thread runs, it owns the hub's interfaces. 0 or -errno. Both are safe
 * to call twice. */
int back_start(struct back *b);
void back_stop(struct back *b);

/* Worker: new sockets of an interface that returned, to use from now on. NULL in nearly all cases,
 * at the cost of one load. */
struct umem_dev *back_take(struct back *b, uint32_t worker);
/* Worker: returns the replaced sockets. */
void back_give(struct back *b, uint32_t worker, struct umem_dev *dead);

#endif
