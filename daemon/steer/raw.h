/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sending a burst of datagrams from any local port with one system call per family: raw sockets. */
#ifndef STEER_RAW_H
#define STEER_RAW_H

#include "steer/steer.h"

struct raw;

/* Needs CAP_NET_RAW. 0 or -errno. */
int raw_create(struct raw **out, const struct steer_config *cfg, struct steer_counters *counters);
void raw_destroy(struct raw *r);
/* Sends out[which[0 .. n)], or out[0 .. n) when which is NULL, as far as it can; n is at most burst_max. Indices of the rest
 * go into left[n] (the caller's array), their number is returned: too long for the way out, a local address that is not one, or refused by the kernel. */
uint32_t raw_send(struct raw *r, const struct arena *a, struct media_out *out,
	const uint32_t *which, uint32_t n, uint32_t *left);

#endif
