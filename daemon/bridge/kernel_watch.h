/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the kernel tells by itself: that a packet of another source or SSRC came, that a stream went
 * silent, that it drops a flood; and whether what steers is still there. Hooks itself into the
 * loop; control thread only. */
#ifndef BRIDGE_KERNEL_WATCH_H
#define BRIDGE_KERNEL_WATCH_H

#include "bridge/bridge.h"
#include "base/loop.h"

struct kernel_watch;

struct kernel_watch_config {
	struct loop *loop;
	struct bridge *relay;
	const struct steer_ops *ops;
	const struct steer_config *steer;
};

/* 0, also where there is nothing to be watched: then *out is NULL. */
int kernel_watch_create(struct kernel_watch **out, const struct kernel_watch_config *cfg);
/* NULL is fine. */
void kernel_watch_destroy(struct kernel_watch *w);

struct kernel_watch_usage {
	uint64_t events[STEER_EVENT_KINDS];
	uint64_t lost; /* times that events came faster than they were read */
	bool gone;     /* the module was unloaded, and is not back */
	uint64_t returns;
};
/* Nothing of it with NULL. */
void kernel_watch_usage(const struct kernel_watch *w, struct kernel_watch_usage *out);

#endif
