/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lower bounds for xcipher-bench path with the same tables and engine: on the packets of the last
 * fill, in the same order, from the same feed. All return nanoseconds per packet. */
#ifndef BENCH_PATH_FLOOR_H
#define BENCH_PATH_FLOOR_H

#include "path_load.h"

/* Whether the worker's tables have the floor's expected layout: a packet's lines follow from its
 * port. 0, or -EINVAL with a line in p->err. */
int path_floor_check(struct path *p);
/* A bare loop that touches the cache lines a packet needs, writes those the relay writes, and
 * copies the RTP header to its output place. ahead: packets between the prefetch of a line and its
 * use, 0 = none. Includes the feed. */
double path_floor_lines(struct path *p, uint32_t ahead);
/* The engine alone on the worker's jobs. Negative: a packet was not authentic. */
double path_floor_cipher(struct path *p);

#endif
