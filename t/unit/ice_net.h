/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A network in memory with a clock of its own for ICE agents: delay, loss, NAT, walls, and a log of
 * what was sent. */
#ifndef UNIT_ICE_NET_H
#define UNIT_ICE_NET_H

#include "ice/agent_int.h"

#define NET_MS      1000000ull
#define NET_FLIGHTS 512

struct net_flight {
	struct endpoint src, dst;
	uint64_t at_ns;
	uint16_t len;
	uint8_t packet[ICE_PACKET_MAX];
};

struct net {
	struct ice_agent a, b;
	uint64_t now_ns;
	struct net_flight flight[NET_FLIGHTS];
	unsigned flights;
	/* Called for each packet sent: from which agent, by which local candidate. True: it goes on
	 * its way, and both addresses and the time of arrival may have been changed. */
	bool (*route)(struct net *n, struct ice_agent *from, struct net_flight *f);
	/* Called for each packet that arrives. May change the source (NAT). False: lost. */
	bool (*arrive)(struct net *n, struct net_flight *f);
	unsigned sent, steps;
	uint32_t noise, loss; /* loss: of 1000 */
	struct endpoint nat_inside, nat_outside;
};

struct endpoint net_at(const char *text);
/* Ends both agents. */
void net_clear(struct net *n);
/* addr: "192.0.2.1:5000 192.0.2.1:5001/2", the component after a slash, 1 by default. */
void net_agent(struct ice_agent *a, const char *addr, bool controlling, uint8_t seed);
void net_lite(struct ice_agent *a, const char *addr, bool controlling, uint8_t seed);
/* Tells to what from's SDP says; without candidates if none. */
void net_tell(struct net *n, struct ice_agent *to, const struct ice_agent *from, bool none);
/* A candidate of from trickles. */
void net_trickle(struct net *n, struct ice_agent *to, const struct ice_agent *from,
	const struct ice_candidate *c);
/* Until both are in this state, or until so much time has passed. Whether they are. */
bool net_run(struct net *n, enum ice_state want, uint64_t ns);
void net_pass(struct net *n, uint64_t ns);
/* Both selected pairs of a component fit each other. */
bool net_agree(const struct net *n, uint8_t component);

#endif
