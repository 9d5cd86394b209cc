/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How long a worker lets a batch gather before it looks, by its rate of arrivals. Pure: time comes
 * in as a parameter. */
#ifndef WORKER_COALESCE_H
#define WORKER_COALESCE_H

#include "base/bytes.h"

struct coalesce {
	/* Set once. */
	uint64_t window_ns; /* never longer; 0 = never wait */
	uint32_t batch_max;
	/* coalesce_count()'s. */
	uint64_t from_ns, packets; /* since when, how many came */
	double rate;               /* packets per second, smoothed */
};

/* n packets came with a look that ended at now_ns (CLOCK_MONOTONIC). For each look. */
void coalesce_count(struct coalesce *p, uint32_t n, uint64_t now_ns);
/* 0: look as soon as a packet is there. */
uint64_t coalesce_wait_ns(const struct coalesce *p);

#endif
