/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Routes of outgoing packets: interface, VLAN tags and the next hop's Ethernet address, from the
 * kernel's routing and neighbour tables. Each worker has one. Called for every packet, so answers
 * are cached until the kernel announces a change. */
#ifndef STEER_XDP_XDP_ROUTE_H
#define STEER_XDP_XDP_ROUTE_H

#include "steer/steer.h"

#define ROUTE_L2_MAX 22u /* Ethernet and two VLAN tags */

struct routes;

struct route_hop {
	uint8_t l2[ROUTE_L2_MAX]; /* bytes before the IP header */
	uint8_t l2_len;
	int ifindex;  /* of the outgoing interface, below any VLAN */
	uint32_t mtu; /* MTU for IP packets */
};

/* 0 or -errno. */
int routes_create(struct routes **out, const struct steer_config *cfg);
void routes_destroy(struct routes *r);
/* Readable if the kernel has announcements. */
int routes_fd(const struct routes *r);
/* Processes the announcements. */
void routes_news(struct routes *r, uint64_t now_ns);
/* The interface that would receive this frame in the host's stack, when the card ifindex received
 * it for this local address: the VLAN interface of its tags, the bond or bridge of the card, or the
 * card. 0: no interface accepts such frames. */
uint32_t routes_in(struct routes *r, int ifindex, const uint8_t *frame, uint8_t local);
/* The route to dst from this local address. NULL: let the kernel send this packet. Reasons: the
 * route is unsupported (loopback, a tunnel, multicast) or unknown yet, or a check is due: about
 * once a second, one packet per next hop goes through the kernel, so that it sees the neighbour in
 * use and keeps checking it. now_ns: monotonic, the same for a whole burst. */
const struct route_hop *routes_find(
	struct routes *r, uint8_t local, const struct endpoint *dst, uint64_t now_ns);

#endif
