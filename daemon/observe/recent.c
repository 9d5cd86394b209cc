/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See recent.h. */
#include "observe/recent.h"

static void add_up(struct recent_snapshot *out, const struct hist *const *h, uint32_t n)
{
	*out = (struct recent_snapshot){0};
	for (uint32_t i = 0; i < n; i++) {
		for (uint32_t b = 0; b < HIST_BUCKETS; b++)
			out->bucket[b] +=
				atomic_load_explicit(&h[i]->bucket[b], memory_order_relaxed);
		out->sum += atomic_load_explicit(&h[i]->sum, memory_order_relaxed);
	}
}

void recent_look(struct recent *r, const struct hist *const *h, uint32_t n)
{
	add_up(&r->snapshot[r->taken++ % RECENT_SECONDS], h, n);
}

/* The first value beyond a bucket: the inverse of hist_bucket(). */
static uint64_t bucket_end(uint32_t at)
{
	uint32_t octave = (at + 1) >> HIST_SUB_BITS;

	if (octave == 0)
		return at + 1;
	return (uint64_t)(HIST_SUB + ((at + 1) & (HIST_SUB - 1))) << (octave - 1);
}

uint32_t recent_values(
	struct hist *out, const struct recent *r, const struct hist *const *h, uint32_t n)
{
	const struct recent_snapshot *old =
		&r->snapshot[r->taken < RECENT_SECONDS ? 0 : r->taken % RECENT_SECONDS];
	struct recent_snapshot now;

	*out = (struct hist){0};
	if (!r->taken)
		return 0;
	add_up(&now, h, n);
	for (uint32_t b = 0; b < HIST_BUCKETS; b++) {
		uint64_t more = now.bucket[b] > old->bucket[b] ? now.bucket[b] - old->bucket[b] : 0;

		atomic_store_explicit(&out->bucket[b], more, memory_order_relaxed);
		if (more)
			atomic_store_explicit(&out->max, bucket_end(b) - 1, memory_order_relaxed);
	}
	atomic_store_explicit(
		&out->sum, now.sum > old->sum ? now.sum - old->sum : 0, memory_order_relaxed);
	return (uint32_t)(r->taken < RECENT_SECONDS ? r->taken : RECENT_SECONDS);
}

uint32_t recent_summarise(
	struct hist_summary *out, const struct recent *r, const struct hist *const *h, uint32_t n)
{
	struct hist diff;
	const struct hist *const list[] = {&diff};
	uint32_t seconds = recent_values(&diff, r, h, n);

	hist_summarise(out, list, 1);
	return seconds;
}
