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

/* What is measured at one moment; the first three count up. */
struct limits_sample {
	uint64_t mono_ns;
	uint64_t busy, all; /* processor time, of the machine, in whatever unit */
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

/* Pure: takes a new measurement, and says which limit is exceeded by what was measured lately. */
enum call_limit limits_step(struct limits *l, const struct limits_sample *s);
/* What /proc says of the machine; what cannot be read is 0. */
void limits_measure(struct limits_sample *s);
/* "CPU 93.1 %, limit 90 %": for the log. */
const char *limits_text(const struct limits *l, enum call_limit which, char out[80]);

#endif
