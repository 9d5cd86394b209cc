/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Decides on overload which packets are too old to be processed. Pure. */
#ifndef WORKER_OVERLOAD_H
#define WORKER_OVERLOAD_H

#include <stdint.h>

/* Emergency calls' packets may grow this many times as old, and the queue must have stood this many
 * times as long. */
#define OVERLOAD_EMERGENCY_AGES 4

struct overload {
	uint64_t age_ns;   /* what is older waited too long; 0 = never */
	uint64_t since_ns; /* since when every burst had such a packet; 0 = the last one had none */
};

/* Of media_shed(); 0 = nothing is too old. */
struct overload_shed {
	uint64_t ordinary_before_ns, emergency_before_ns;
};

/* Once per burst. oldest_ns: when its oldest packet came in, by the clock of now_ns. */
struct overload_shed overload_step(struct overload *o, uint64_t now_ns, uint64_t oldest_ns);

#endif
