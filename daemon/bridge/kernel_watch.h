/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Watches for events of the kernel: a packet of another source or SSRC, a silent stream, a flood.
 * Also checks whether the kernel module is still loaded. Registers itself with the loop; control
 * thread only. */
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

/* 0, also if there is nothing to watch: *out is then NULL. */
int kernel_watch_create(struct kernel_watch **out, const struct kernel_watch_config *cfg);
/* NULL is fine. */
void kernel_watch_destroy(struct kernel_watch *w);

struct kernel_watch_usage {
	uint64_t events[STEER_EVENT_KINDS];
	uint64_t lost; /* times that events were lost */
	bool gone;     /* the module was unloaded, and not loaded again yet */
	uint64_t returns;
	uint64_t over_source_rate; /* packets dropped; up to four seconds late */
};
/* With NULL, all counters are zero. */
void kernel_watch_usage(const struct kernel_watch *w, struct kernel_watch_usage *out);

#endif
