/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Statistics of the last whole minute: number and duration of each ng command, and the smallest and
 * largest number of calls. Pure: the time is a parameter. */
#ifndef XCIPHER_CONTROL_INTERVAL_H
#define XCIPHER_CONTROL_INTERVAL_H

#include "proto/ng.h"

struct interval_command {
	uint64_t requests, ns, ns_min, ns_max;
	uint64_t second;                      /* the present second */
	uint32_t in_second;                   /* requests in it so far */
	uint32_t seconds, rate_min, rate_max; /* of complete seconds with requests */
};

struct interval_minute {
	uint64_t sessions_min, sessions_max;
	uint64_t duration_ns; /* total duration of calls that ended in this minute, see
			       * calls_ended */
	struct interval_command command[NG_COMMAND_COUNT];
};

struct interval {             /* zero-initialised */
	uint64_t begin_ns;    /* start of the current minute; 0 = none yet */
	uint64_t duration_ns; /* of all calls that ended before the current minute */
	struct interval_minute now, last;
};

/* Call it before a request is executed, and before interval_fill(). now_ns: CLOCK_REALTIME; a step
 * of the clock begins a new minute. sessions: present calls. duration_ns: total duration of all
 * calls that have ended. */
void interval_advance(struct interval *x, uint64_t now_ns, uint64_t sessions, uint64_t duration_ns);
/* Counts an executed request. took_ns: its duration. sessions: calls after it. */
void interval_count(struct interval *x, uint64_t now_ns, enum ng_command c, uint64_t took_ns,
	uint64_t sessions);
/* Adds the last whole minute to dict, under the names of the protocol. */
void interval_fill(const struct interval *x, struct pool *p, struct ngval *dict);

#endif
