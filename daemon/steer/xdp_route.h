/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which way a packet leaves: interface, VLAN tags and the next hop's Ethernet address, as the kernel's routing and neighbour
 * tables have them. One worker's; asked per packet, so answers are cached until the kernel says that something changed. */
#ifndef STEER_XDP_ROUTE_H
#define STEER_XDP_ROUTE_H

#include "steer/steer.h"

#define ROUTE_L2_MAX 22u /* Ethernet and two VLAN tags */

struct routes;

struct route_hop {
	uint8_t l2[ROUTE_L2_MAX]; /* what goes before the IP header */
	uint8_t l2_len;
	int ifindex;  /* of the interface it leaves by, below any VLAN */
	uint32_t mtu; /* of IP packets */
};

/* 0 or -errno. */
int routes_create(struct routes **out, const struct steer_config *cfg);
void routes_destroy(struct routes *r);
/* Readable when the kernel has news. */
int routes_fd(const struct routes *r);
/* Takes the news in. */
void routes_news(struct routes *r, uint64_t now_ns);
/* The interface that would receive this frame in the host's stack; the card ifindex received it for
 * this local address. It is the VLAN interface of its tags, the bond or bridge of the card, or the
 * card. 0: no interface accepts such frames. */
uint32_t routes_in(struct routes *r, int ifindex, const uint8_t *frame, uint8_t local);
/* How to reach dst from this local address, or NULL: let the kernel send this packet, because the way is none of ours (loopback,
 * a tunnel, multicast), or is not known yet, or is due: about once a second one packet for each next hop goes through the
 * kernel, so that it sees the neighbour used and keeps checking it. now_ns: monotonic, the same for a whole burst. */
const struct route_hop *routes_find(
	struct routes *r, uint8_t local, const struct endpoint *dst, uint64_t now_ns);

#endif
