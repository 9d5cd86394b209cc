/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/steady.h"

#include <stdatomic.h>

#include "base/clock.h"

uint64_t steady_ns(void)
{
	static _Atomic uint64_t ahead_ns; /* of CLOCK_MONOTONIC; 0: not known yet */
	uint64_t mono = clock_mono_ns();
	uint64_t ahead = atomic_load_explicit(&ahead_ns, memory_order_relaxed);

	if (!ahead) {
		uint64_t now = clock_real_ns() - mono;

		if (atomic_compare_exchange_strong(&ahead_ns, &ahead, now))
			ahead = now;
	}
	return mono + ahead;
}

uint64_t steady_of(uint64_t real_ns)
{
	return real_ns + (steady_ns() - clock_real_ns());
}
