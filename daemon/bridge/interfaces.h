/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Watches the network interfaces of the local addresses. Logs when one goes down or loses its
 * carrier or its address, and when it works again. Control thread only. */
#ifndef BRIDGE_INTERFACES_H
#define BRIDGE_INTERFACES_H

#include <net/if.h>

#include "call/relay.h"
#include "host/host.h"
#include "steer/steer.h"

/* X(id, text in the log) */
#define INTERFACE_STATES(X)                                             \
	X(WORKS, "works again")                                         \
	X(DOWN, "is down (ip link set up)")                             \
	X(CARRIER, "has no carrier: check cable, switch port and peer") \
	X(GONE, "no longer exists")                                     \
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
		char dev[IF_NAMESIZE]; /* "": unknown yet, or the wildcard address */
		enum interface_state state;
	} one[STEER_MAX_LOCAL];
};

/* local must outlive it. */
void interfaces_init(struct interfaces *f, const struct relay_local *local, uint32_t n);
/* Call it once a second. */
void interfaces_tick(struct interfaces *f, const struct host *host);

#endif
