/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The last ten minutes in samples, for the charts of the page: a bounded ring that the daemon
 * keeps, so that charts are full as soon as a page opens. Control thread only; takes no time of its
 * own. */
#ifndef OBSERVE_TREND_H
#define OBSERVE_TREND_H

#include "proto/ngval.h"

#define TREND_SAMPLES  300u
#define TREND_EVERY_NS (2 * NS_PER_SEC)

struct trend_totals { /* counters since the start, except calls and delays */
	uint64_t packets_in, packets_out, dropped, bytes_not_relayed;
	uint64_t calls;
	uint64_t p50_ns, p99_ns; /* delay of the last ten seconds; 0 = no packets */
};

struct trend { /* initialise with zeroes */
	struct trend_sample {
		uint64_t unix_ms;
		/* per second, since the sample before */
		uint64_t packets_in, packets_out, dropped, bytes_not_relayed;
		uint64_t calls, p50_us, p99_us;
	} sample[TREND_SAMPLES];
	uint64_t taken;
	struct trend_totals before;
	uint64_t before_ns; /* CLOCK_MONOTONIC, 0 = no sample yet */
};

/* Takes a sample if TREND_EVERY_NS are over. After a pause of three times that (a stopped daemon)
 * the next sample is left out: its rates would hide the pause. */
void trend_take(
	struct trend *t, const struct trend_totals *now, uint64_t mono_ns, uint64_t unix_ms);

/* Adds "samples", the oldest first: lists of unix_ms, calls, packets in, packets out and dropped
 * packets per second, p50 and p99 of the delay in us, and bytes not relayed per second. newest:
 * only that one. Adds "sample ms", the time between two samples. */
void trend_fill(const struct trend *t, struct pool *p, struct ngval *dict, bool newest);

#endif
