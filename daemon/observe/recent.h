/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A histogram of the last ten seconds. It takes one snapshot per second of the sum of histograms
 * that count since the start. Control thread only. */
#ifndef OBSERVE_RECENT_H
#define OBSERVE_RECENT_H

#include "base/hist.h"

#define RECENT_SECONDS 10u

struct recent { /* zero is a fresh one */
	struct recent_snapshot {
		uint64_t bucket[HIST_BUCKETS], sum;
	} snapshot[RECENT_SECONDS];
	uint64_t taken; /* snapshots so far */
};

/* Once a second: takes a snapshot of all n histograms together. */
void recent_look(struct recent *r, const struct hist *const *h, uint32_t n);
/* The values since the oldest snapshot, as a histogram; max is the upper end of the highest bucket.
 * Returns the number of seconds covered; 0 = no snapshot yet, *out is empty. */
uint32_t recent_values(
	struct hist *out, const struct recent *r, const struct hist *const *h, uint32_t n);
/* The same as a summary, see hist_summarise(). */
uint32_t recent_summarise(
	struct hist_summary *out, const struct recent *r, const struct hist *const *h, uint32_t n);

#endif
