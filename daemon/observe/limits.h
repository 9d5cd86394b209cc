/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Limits on the machine's load beyond which new calls are refused (ng's "load limit"). Named and
 * measured as rtpengine does. */
#ifndef OBSERVE_LIMITS_H
#define OBSERVE_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

#include "call/call.h"

struct limits_config {      /* 0 = no limit */
	double cpu;         /* percent of all processors of the machine */
	double load;        /* average of the last minute */
	uint64_t bandwidth; /* bytes of relayed media received per second */
};

/* One measurement; the first three are counters. */
struct limits_sample {
	uint64_t mono_ns;
	uint64_t busy, all; /* the machine's processor time, in any one unit */
	uint64_t bytes;     /* received and relayed; dropped packets do not count */
	double load;
};

#define LIMITS_SAMPLES 4 /* a second apart: values are means of three seconds */

struct limits {
	struct limits_config cfg;
	struct limits_sample sample[LIMITS_SAMPLES];
	uint32_t samples; /* so far */
	bool draining;    /* by command: no new calls */
	/* Now. */
	double cpu, load, bandwidth;
	enum call_limit reached;
};

/* Pure: adds a measurement, and returns the limit that is exceeded now. */
enum call_limit limits_step(struct limits *l, const struct limits_sample *s);
/* Reads /proc. Values that cannot be read are 0. */
void limits_measure(struct limits_sample *s);
/* "CPU 93.1 %, limit 90 %": for the log. */
const char *limits_text(const struct limits *l, enum call_limit which, char out[80]);

#endif
