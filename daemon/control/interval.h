/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What happened within the last whole minute: of each ng command how often and how long, and
 * between which numbers the calls were. Pure: a minute begins and ends by what it is told of time.
 */
#ifndef XCIPHER_CONTROL_INTERVAL_H
#define XCIPHER_CONTROL_INTERVAL_H

#include "proto/ng.h"

struct interval_command {
	uint64_t requests, ns, ns_min, ns_max;
	uint64_t second;    /* that is being counted */
	uint32_t in_second; /* requests of it */
	uint32_t seconds, rate_min,
		rate_max; /* seconds with requests that are over, and how many those had */
};

struct interval_minute {
	uint64_t sessions_min, sessions_max;
	uint64_t duration_ns; /* of calls that ended in it, see calls_ended */
	struct interval_command command[NG_COMMAND_COUNT];
};

struct interval {             /* zero is a fresh one */
	uint64_t begin_ns;    /* of now; 0 = it did not begin */
	uint64_t duration_ns; /* of all calls that ended before it */
	struct interval_minute now, last;
};

/* Before a request is carried out, and before anything is read here. now_ns: CLOCK_REALTIME; a
 * clock that is set begins a minute. sessions, duration_ns: calls now, and how long those lasted
 * that ended so far, all together. */
void interval_advance(struct interval *x, uint64_t now_ns, uint64_t sessions, uint64_t duration_ns);
/* A request was carried out, it took so long, and now there are so many calls. */
void interval_count(struct interval *x, uint64_t now_ns, enum ng_command c, uint64_t took_ns,
	uint64_t sessions);
/* The last whole minute, as clients of the protocol know it. */
void interval_fill(const struct interval *x, struct pool *p, struct ngval *dict);

#endif
