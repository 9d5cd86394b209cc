/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sends a burst of datagrams from any local port by raw sockets, with one system call per address
 * family. */
#ifndef STEER_RAW_H
#define STEER_RAW_H

#include "packet/arena.h"
#include "steer/steer.h"

struct raw;

/* Needs CAP_NET_RAW. 0 or -errno. */
int raw_create(struct raw **out, const struct steer_config *cfg, struct steer_counters *counters);
void raw_destroy(struct raw *r);
/* Sends out[which[0 .. n)], or out[0 .. n) if which is NULL; n is at most burst_max. Writes the
 * indices of unsent datagrams to left[n] (the caller's array) and returns their number: longer than
 * the MTU, an invalid local address, or refused by the kernel. */
uint32_t raw_send(struct raw *r, const struct arena *a, struct packet_out *out,
	const uint32_t *which, uint32_t n, uint32_t *left);

#endif
