/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A histogram cheap enough to be always on: eight buckets per octave (12.5 % resolution). One
 * thread writes; any thread may read at any time. */
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

#define HIST_SUB (1u << HIST_SUB_BITS)

/* Position of the highest bit, and the next three bits. */
static inline uint32_t hist_bucket(uint64_t v)
{
	uint32_t top, at;

	if (v < HIST_SUB)
		return (uint32_t)v;
	top = 63 - (uint32_t)__builtin_clzll(v);
	at = ((top - HIST_SUB_BITS + 1) << HIST_SUB_BITS) +
		(uint32_t)(v >> (top - HIST_SUB_BITS) & (HIST_SUB - 1));
	return min_u32(at, HIST_BUCKETS - 1);
}

/* Adds many values. Sum and maximum are published at the end. */
struct hist_run {
	struct hist *h;
	uint64_t sum, max;
};

static inline void hist_run_add(struct hist_run *r, uint64_t value)
{
	_Atomic uint64_t *b = &r->h->bucket[hist_bucket(value)];

	atomic_store_explicit(
		b, atomic_load_explicit(b, memory_order_relaxed) + 1, memory_order_relaxed);
	r->sum += value;
	r->max = value > r->max ? value : r->max;
}

static inline void hist_run_end(const struct hist_run *r)
{
	struct hist *h = r->h;

	atomic_store_explicit(&h->sum, atomic_load_explicit(&h->sum, memory_order_relaxed) + r->sum,
		memory_order_relaxed);
	if (r->max > atomic_load_explicit(&h->max, memory_order_relaxed))
		atomic_store_explicit(&h->max, r->max, memory_order_relaxed);
}

static inline void hist_add(struct hist *h, uint64_t value)
{
	struct hist_run one = {.h = h};

	hist_run_add(&one, value);
	hist_run_end(&one);
}

struct hist_summary {
	uint64_t count, max;
	uint64_t mean, p50, p90, p99;
};

/* Summarises all n histograms together. A quantile is the middle of its bucket, but never above
 * max. */
void hist_summarise(struct hist_summary *out, const struct hist *const *h, uint32_t n);

#define HIST_POWERS 42

struct hist_total {
	uint64_t count, sum;
	uint64_t below[HIST_POWERS]; /* [k]: values below 2^k */
};

/* Sums all n histograms. count is the sum of the buckets, so that no entry of below exceeds it. */
void hist_total(struct hist_total *out, const struct hist *const *h, uint32_t n);

#endif
