/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A histogram that is cheap enough to be always on: eight buckets per octave (12.5 % resolution), one writer, read by anybody
 * without stopping it. */
#ifndef BASE_HIST_H
#define BASE_HIST_H

#include <stdatomic.h>
#include "base/bytes.h"

#define HIST_SUB_BITS 3
#define HIST_BUCKETS  (40 << HIST_SUB_BITS) /* values up to 2^42: over an hour in nanoseconds */

struct hist {
	_Atomic uint64_t bucket[HIST_BUCKETS];
	_Atomic uint64_t max;
	_Atomic uint64_t sum;
};

void hist_add(struct hist *h, uint64_t value);

struct hist_summary {
	uint64_t count, max;
	uint64_t mean, p50, p90, p99;
};

/* Over all n histograms together, taken as the middle of the bucket that holds the quantile. */
void hist_summarise(struct hist_summary *out, const struct hist *const *h, uint32_t n);

#define HIST_POWERS 42

struct hist_total {
	uint64_t count, sum;
	uint64_t below[HIST_POWERS]; /* [k]: values below 2^k */
};

/* Over all n histograms together. count is that of the buckets, so that below never exceeds it. */
void hist_total(struct hist_total *out, const struct hist *const *h, uint32_t n);

#endif
