/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Clocks, for shell layers; pure code gets the time as a parameter. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define NS_PER_SEC 1000000000ull

static inline uint64_t clock_mono_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_SEC + (uint64_t)ts.tv_nsec;
}

static inline uint64_t clock_real_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_SEC + (uint64_t)ts.tv_nsec;
}

/* CLOCK_MONOTONIC at a recent time of CLOCK_REALTIME. Reads both clocks again if the thread was
 * interrupted between them. If it is interrupted each time, the result is too late rather than too
 * early. */
static inline uint64_t clock_mono_of(uint64_t real_ns)
{
	uint64_t before_ns, real_now_ns, after_ns;
	int tries = 16;

	do {
		before_ns = clock_mono_ns();
		real_now_ns = clock_real_ns();
		after_ns = clock_mono_ns();
	} while (after_ns - before_ns > NS_PER_SEC / 1000 && --tries);
	return after_ns - (real_now_ns - real_ns);
}

/* Nanoseconds since then. 0 if "now" is less than a second earlier: packets of several queues may be
 * slightly out of order. A huge number after the clock was set back. */
static inline uint64_t clock_since(uint64_t then_ns, uint64_t now_ns)
{
	return now_ns < then_ns && then_ns - now_ns < NS_PER_SEC ? 0 : now_ns - then_ns;
}

/* Offset of CLOCK_REALTIME from CLOCK_MONOTONIC. All zeroes: unknown. */
struct clock_pair {
	bool known;
	int64_t offset_ns;
};

#define CLOCK_STEP_NS \
	(2 * (int64_t)NS_PER_SEC) /* less is slewing, or a delay between two readings */

/* Detects steps of CLOCK_REALTIME. Call it regularly. Returns the change since the last call: the
 * clock was set, or the whole machine was suspended. 0 = no step. */
static inline int64_t clock_step(struct clock_pair *c, uint64_t real_ns, uint64_t mono_ns)
{
	int64_t offset = (int64_t)(real_ns - mono_ns), step = c->known ? offset - c->offset_ns : 0;

	c->known = true;
	c->offset_ns = offset;
	return step > CLOCK_STEP_NS || step < -CLOCK_STEP_NS ? step : 0;
}

#endif
