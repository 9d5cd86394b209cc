/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Watches the netfilter rules of the steering. When another program removes them, logs that and
 * sets them again. The delay starts at 100 ms and doubles for each removal within a minute, up to a
 * minute, so that a firewall which flushes repeatedly causes no loop. Meanwhile packets use the
 * ordinary sockets. Control thread only. */
#ifndef BRIDGE_RULES_KEEP_H
#define BRIDGE_RULES_KEEP_H

#include "base/loop.h"
#include "steer/steer.h"

struct rules_keep;

struct rules_keep_usage {
	uint64_t again; /* times that rules were set again */
	bool missing;   /* they were removed, and are not set yet */
};

/* *out is NULL if this steering has no rules to keep, or they cannot be watched, which is logged.
 * After setup(). ops and cfg outlive it. before_again: called each time before the rules are set
 * again. 0 or -errno. */
int rules_keep_create(struct rules_keep **out, struct loop *loop, const struct steer_ops *ops,
	const struct steer_config *cfg, void (*before_again)(void *arg), void *arg);
void rules_keep_destroy(struct rules_keep *k); /* NULL is fine */
/* k: NULL gives zeroes. */
void rules_keep_usage(const struct rules_keep *k, struct rules_keep_usage *out);

#endif
