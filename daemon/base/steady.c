/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/steady.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/clock.h"

uint64_t steady_ahead_ns(void)
{
	static _Atomic uint64_t ahead_ns; /* of CLOCK_MONOTONIC; 0: not known yet */
	uint64_t ahead = atomic_load_explicit(&ahead_ns, memory_order_relaxed);

	if (!ahead) {
		uint64_t now = clock_real_ns() - clock_mono_ns();

		if (atomic_compare_exchange_strong(&ahead_ns, &ahead, now))
			ahead = now;
	}
	return ahead;
}

uint64_t steady_ns(void)
{
	return clock_mono_ns() + steady_ahead_ns();
}

uint64_t steady_of(uint64_t real_ns)
{
	return real_ns + (steady_ns() - clock_real_ns());
}

/* The ID is a random UUID: 8 digits, 4 digits, and so on. */
uint64_t steady_boot(void)
{
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
	uint64_t high = 0, low = 0;

	if (!f)
		return 0;
	if (fscanf(f, "%8" SCNx64 "-%4" SCNx64, &high, &low) != 2)
		high = low = 0;
	fclose(f);
	return high << 16 | low;
}
