/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How long a worker lets a batch gather before it looks, by its rate of arrivals. Pure: time comes in as a parameter. */
#ifndef APP_PACE_H
#define APP_PACE_H

#include "base/bytes.h"

struct pace {
	/* Set once. */
	uint64_t window_ns; /* never longer; 0 = never wait */
	uint32_t batch_max;
	/* pace_count()'s. */
	uint64_t from_ns, packets; /* since when, how many came */
	double rate;               /* packets per second, smoothed */
};

/* n packets came with a look that ended at now_ns (CLOCK_MONOTONIC). For each look. */
void pace_count(struct pace *p, uint32_t n, uint64_t now_ns);
/* 0: look as soon as a packet is there. */
uint64_t pace_wait_ns(const struct pace *p);

#endif
