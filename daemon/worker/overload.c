/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Detects a standing queue, as in RFC 8289 (CoDel). A queue after a short stall drains at once,
 * late but complete. Overload means that for two ages in a row, every burst began with a packet
 * older than the age. Then the oldest packets are dropped until the rest is younger than the age.
 * Dropping costs one look-up per packet, so delay stays below three ages. */
#include "worker/overload.h"

#define PATIENCE_AGES 2

static uint64_t before(uint64_t now_ns, uint64_t age_ns)
{
	return now_ns > age_ns ? now_ns - age_ns : 0;
}

struct overload_shed overload_step(struct overload *o, uint64_t now_ns, uint64_t oldest_ns)
{
	struct overload_shed none = {0};

	if (o->age_ns == 0 || oldest_ns >= before(now_ns, o->age_ns)) {
		o->since_ns = 0;
		return none;
	}
	/* Second condition: the clock was set back. */
	if (o->since_ns == 0 || o->since_ns > now_ns)
		o->since_ns = now_ns;
	if (now_ns - o->since_ns < PATIENCE_AGES * o->age_ns)
		return none;
	return (struct overload_shed){
		.ordinary_before_ns = before(now_ns, o->age_ns),
		/* Dropping ordinary packets did not help for this many times as long. */
		.emergency_before_ns =
			now_ns - o->since_ns < OVERLOAD_EMERGENCY_AGES * PATIENCE_AGES * o->age_ns
			? 0
			: before(now_ns, OVERLOAD_EMERGENCY_AGES * o->age_ns),
	};
}
