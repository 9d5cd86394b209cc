/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Keeps the netfilter rules of the steering: when another program removes them, they are logged as missing and set
 * again. Each time within a minute the delay doubles, from 100 ms up to a minute, so a firewall that flushes again
 * and again makes no loop. Packets come by the ordinary sockets meanwhile. Control thread only. */
#ifndef APP_RULES_KEEP_H
#define APP_RULES_KEEP_H

#include "base/loop.h"
#include "steer/steer.h"

struct rules_keep;

struct rules_keep_usage {
	uint64_t again; /* times that rules were set again */
	bool missing;   /* they were removed, and are not set yet */
};

/* *out is NULL if this steering has no rules to keep, or they cannot be watched, which is logged. After
 * setup(). ops and cfg outlive it. 0 or -errno. */
int rules_keep_create(struct rules_keep **out, struct loop *loop, const struct steer_ops *ops,
	const struct steer_config *cfg);
void rules_keep_destroy(struct rules_keep *k); /* NULL is fine */
/* k: NULL gives zeroes. */
void rules_keep_usage(const struct rules_keep *k, struct rules_keep_usage *out);

#endif
