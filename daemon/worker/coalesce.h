/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Decides how long a worker waits for a batch to fill, by the packet rate. Pure: time is a
 * parameter. */
#ifndef WORKER_COALESCE_H
#define WORKER_COALESCE_H

#include "base/bytes.h"

#define COALESCE_CODEC_NS  4000000ull    /* longest wait if codec threads get all packets */
#define COALESCE_URGENT_NS 5000000000ull /* so long after another packet it is window_ns */

struct coalesce {
	/* Set once. */
	uint64_t window_ns; /* longest wait; 0 = never wait */
	uint32_t batch_max;
	/* coalesce_urgent()'s. */
	uint64_t urgent_ns; /* time of the last call; 0: there was none */
	/* coalesce_count()'s. */
	uint64_t from_ns, packets; /* start of the measuring period, and packets since */
	double rate;               /* packets per second, smoothed */
	bool patient;              /* only codec threads have got packets for some time */
};

/* Call after every receive. n: packets received. now_ns: CLOCK_MONOTONIC after the receive. */
void coalesce_count(struct coalesce *p, uint32_t n, uint64_t now_ns);
/* Call for a burst with a packet that is not for a codec thread, before coalesce_count(). Codec
 * threads collect packets anyway, but these would leave later. */
void coalesce_urgent(struct coalesce *p, uint64_t now_ns);
/* Time to wait before the next receive. 0: receive as soon as a packet arrives. */
uint64_t coalesce_wait_ns(const struct coalesce *p);

#endif
