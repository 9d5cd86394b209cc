/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The rows of steer/counters.h as a table. */
#include "steer/counters.h"

#include <stddef.h>

const struct steer_counter_row steer_counter_row[STEER_COUNTER_N] = {
#define X(id, key, each, metric, label, help) {#id, key, each, metric, label, help},
	STEER_COUNTERS(X)
#undef X
};

uint64_t steer_counter_load(const struct steer_counters *c, enum steer_counter which)
{
	static const size_t offset[STEER_COUNTER_N] = {
#define X(id, key, each, metric, label, help) offsetof(struct steer_counters, id),
		STEER_COUNTERS(X)
#undef X
	};
	const _Atomic uint64_t *v = (const void *)((const uint8_t *)c + offset[which]);

	return atomic_load_explicit(v, memory_order_relaxed);
}
