/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Decides on overload which packets are too old to be processed. Pure. */
#ifndef WORKER_OVERLOAD_H
#define WORKER_OVERLOAD_H

#include <stdint.h>

/* Packets of emergency calls may be this many times as old. They are dropped only after the queue
 * stood this many times as long. */
#define OVERLOAD_EMERGENCY_AGES 4

struct overload {
	uint64_t age_ns;   /* maximum age of a packet; 0 = never drop */
	uint64_t since_ns; /* start of the run of bursts with too old packets; 0 = no run */
};

/* Arguments of media_shed(); 0 = nothing is too old. */
struct overload_shed {
	uint64_t ordinary_before_ns, emergency_before_ns;
};

/* Call once per burst. oldest_ns: arrival time of its oldest packet, by the clock of now_ns. */
struct overload_shed overload_step(struct overload *o, uint64_t now_ns, uint64_t oldest_ns);

#endif
