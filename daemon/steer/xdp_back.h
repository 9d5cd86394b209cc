/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Interfaces of "xdp" that vanish and come back: by name, whatever number they then have. A thread of its own listens to the kernel,
 * attaches the program and opens the sockets, since all of that waits for others; a worker only takes the new sockets in place
 * of the dead ones. */
#ifndef STEER_XDP_BACK_H
#define STEER_XDP_BACK_H

#include "steer/xdp_umem.h"

struct back;

/* Control thread, before workers run. 0 or -errno. */
int back_create(struct back **out, struct steer_hub *h);
/* When no worker runs any more. NULL is fine. */
void back_destroy(struct back *b);
/* Control thread, before back_start(): this worker has sockets on this arena. */
void back_worker(struct back *b, uint32_t worker, const struct arena *a, bool zerocopy);
/* Control thread: while it runs, the interfaces of the hub are its own. 0 or -errno. Both are safe to call twice. */
int back_start(struct back *b);
void back_stop(struct back *b);

/* Worker: sockets of an interface that is back, to be used from now on; NULL nearly always, for the price of a load. */
struct umem_dev *back_take(struct back *b, uint32_t worker);
/* Worker: those in whose place they are. */
void back_give(struct back *b, uint32_t worker, struct umem_dev *dead);

#endif
