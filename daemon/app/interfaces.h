/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whether the network interfaces of the local addresses work: a log line when one goes down, loses its
 * carrier or its address, and when it is back. Control thread only. */
#ifndef APP_INTERFACES_H
#define APP_INTERFACES_H

#include <net/if.h>

#include "call/relay.h"
#include "host/host.h"
#include "steer/steer.h"

/* X(id, text in the log) */
#define INTERFACE_STATES(X)                                      \
	X(WORKS, "works again")                                  \
	X(DOWN, "is down (ip link set up)")                      \
	X(CARRIER, "has no carrier: cable, switch port or peer") \
	X(GONE, "does not exist any more")                       \
	X(ADDRESS, "has lost this address")

enum interface_state {
#define X(id, text) INTERFACE_##id,
	INTERFACE_STATES(X)
#undef X
};

struct interfaces {
	uint32_t n;
	struct {
		const struct relay_local *local;
		char dev[IF_NAMESIZE]; /* "": not known yet, or the wildcard address */
		enum interface_state state;
	} one[STEER_MAX_LOCAL];
};

/* local outlives it. */
void interfaces_init(struct interfaces *f, const struct relay_local *local, uint32_t n);
/* Each second. */
void interfaces_tick(struct interfaces *f, const struct host *host);

#endif
