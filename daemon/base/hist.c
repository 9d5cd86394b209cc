/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Log-linear histogram. The bucket is the position of the highest bit and the next three bits. */
#include "base/hist.h"

/* The middle of a bucket. Used as the value of all its entries. */
static uint64_t value_of(uint32_t at)
{
	uint32_t octave = at >> HIST_SUB_BITS;
	uint64_t low;

	if (octave == 0)
		return at;
	low = (uint64_t)(HIST_SUB + (at & (HIST_SUB - 1))) << (octave - 1);
	return low + ((1ull << (octave - 1)) >> 1);
}

static uint64_t quantile(const uint64_t *bucket, uint64_t count, uint64_t max, unsigned percent)
{
	uint64_t need = (count * percent + 99) / 100, seen = 0;

	for (uint32_t i = 0; i < HIST_BUCKETS; i++) {
		seen += bucket[i];
		if (seen >= need)
			return value_of(i) < max ? value_of(i) : max;
	}
	return 0;
}

void hist_summarise(struct hist_summary *out, const struct hist *const *h, uint32_t n)
{
	uint64_t bucket[HIST_BUCKETS] = {0}, sum = 0;

	*out = (struct hist_summary){0};
	for (uint32_t k = 0; k < n; k++) {
		uint64_t max = atomic_load_explicit(&h[k]->max, memory_order_relaxed);

		for (uint32_t i = 0; i < HIST_BUCKETS; i++)
			bucket[i] += atomic_load_explicit(&h[k]->bucket[i], memory_order_relaxed);
		sum += atomic_load_explicit(&h[k]->sum, memory_order_relaxed);
		out->max = max > out->max ? max : out->max;
	}
	for (uint32_t i = 0; i < HIST_BUCKETS; i++)
		out->count += bucket[i];
	if (out->count == 0)
		return;
	out->mean = sum / out->count;
	out->p50 = quantile(bucket, out->count, out->max, 50);
	out->p90 = quantile(bucket, out->count, out->max, 90);
	out->p99 = quantile(bucket, out->count, out->max, 99);
}

/* The first bucket with values of 2^k or more. */
static uint32_t bucket_of_power(uint32_t k)
{
	return k < HIST_SUB_BITS ? 1u << k : (k - HIST_SUB_BITS + 1) << HIST_SUB_BITS;
}

void hist_total(struct hist_total *out, const struct hist *const *h, uint32_t n)
{
	*out = (struct hist_total){0};
	for (uint32_t i = 0, k = 0; i < HIST_BUCKETS; i++) {
		for (; k < HIST_POWERS && bucket_of_power(k) == i; k++)
			out->below[k] = out->count;
		for (uint32_t j = 0; j < n; j++)
			out->count += atomic_load_explicit(&h[j]->bucket[i], memory_order_relaxed);
	}
	for (uint32_t j = 0; j < n; j++)
		out->sum += atomic_load_explicit(&h[j]->sum, memory_order_relaxed);
}
