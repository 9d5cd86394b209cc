// SPDX-License-Identifier: GPL-2.0
/* Counters: one set per processor, so that a packet writes nothing that others read. */
#include "nf_xcipher.h"

struct nfx_count __percpu *nfx_count_alloc(void)
{
	struct nfx_count __percpu *count = alloc_percpu_gfp(struct nfx_count, GFP_KERNEL_ACCOUNT);
	int cpu;

	if (!count)
		return NULL;
	for_each_possible_cpu(cpu)
		u64_stats_init(&per_cpu_ptr(count, cpu)->sync);
	return count;
}

void nfx_count_sum(u64 out[NFX_S_COUNT], const struct nfx_count __percpu *count)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		const struct nfx_count *c = per_cpu_ptr(count, cpu);
		u64 now[NFX_S_COUNT];
		unsigned int start;

		do {
			start = u64_stats_fetch_begin(&c->sync);
			for (int i = 0; i < NFX_S_COUNT; i++)
				now[i] = u64_stats_read(&c->n[i]);
		} while (u64_stats_fetch_retry(&c->sync, start));
		for (int i = 0; i < NFX_S_COUNT; i++)
			out[i] += now[i];
	}
}
