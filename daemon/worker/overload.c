/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A queue that stands, as of RFC 8289 (CoDel), not one that is worked off: after a stall (a device
 * that hung, a processor that was taken away) everything goes out, late, in a moment. Only when
 * every burst for two ages in a row began with a packet older than the age there is more to do than
 * can be done. Then the oldest go first, until what is left is younger than the age: the queue
 * empties at the cost of a look-up per packet, and delay stays below three ages, the growth in the
 * meantime included. */
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
	/* The second: the clock was set back. */
	if (o->since_ns == 0 || o->since_ns > now_ns)
		o->since_ns = now_ns;
	if (now_ns - o->since_ns < PATIENCE_AGES * o->age_ns)
		return none;
	return (struct overload_shed){
		.ordinary_before_ns = before(now_ns, o->age_ns),
		/* Shedding the others did not help for as many times as long. */
		.emergency_before_ns =
			now_ns - o->since_ns < OVERLOAD_EMERGENCY_AGES * PATIENCE_AGES * o->age_ns
			? 0
			: before(now_ns, OVERLOAD_EMERGENCY_AGES * o->age_ns),
	};
}
