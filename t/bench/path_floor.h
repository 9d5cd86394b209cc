/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What no relay with these tables and this engine goes below, for xcipher-bench path: on the
 * packets of the fill that the loop has just had, in the same order, by the same feed. All return
 * nanoseconds per packet. */
#ifndef BENCH_PATH_FLOOR_H
#define BENCH_PATH_FLOOR_H

#include "path_load.h"

/* Whether the worker's tables are as the floor takes them to be: which lines a packet touches
 * follows from its port. 0 or -EINVAL with a line in p->err. */
int path_floor_check(struct path *p);
/* A bare loop that touches the lines of the tables that a packet needs, writes those that the relay
 * writes, and copies the RTP header to where the packet leaves; lines are asked for so many packets
 * ahead, 0 = never. With the feed. */
double path_floor_lines(struct path *p, uint32_t ahead);
/* The engine alone on the jobs that the worker made of them. Negative: it found one not authentic.
 */
double path_floor_cipher(struct path *p);

#endif
