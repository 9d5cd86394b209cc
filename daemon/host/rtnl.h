/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the kernel says about routes, neighbours and links (rtnetlink), as plain structures. */
#ifndef HOST_RTNL_H
#define HOST_RTNL_H

#include "base/endpoint.h"
#include "host/table.h"

struct mnl_socket;

struct rtnl_link {
	int ifindex;
	int below;  /* of a VLAN interface: the one it is on; 0: it is none */
	int master; /* bond, team or bridge that takes all of its packets; 0: none */
	uint16_t vlan_id, vlan_proto;
	uint32_t mtu;
	uint8_t mac[6];
	bool ethernet, up, gone;
};

struct rtnl_route {
	int ifindex;
	struct endpoint hop; /* the gateway, or the destination itself */
	uint32_t mtu;        /* 0: the link's */
};

struct rtnl_neigh {
	int ifindex;
	struct endpoint addr;
	uint8_t mac[6];
	bool usable;
};

enum rtnl_news { RTNL_NOTHING, RTNL_LINK, RTNL_NEIGH, RTNL_ROUTE, RTNL_LOCAL };

struct rtnl_event {
	enum rtnl_news
		what; /* LOCAL: this host's addresses; ROUTE: anything else that may lead packets elsewhere */
	struct rtnl_link link;
	struct rtnl_neigh neigh;
};

/* What a socket is for: questions, or announcements (HOST: all but neighbours). 0 or -errno. */
enum rtnl_use { RTNL_ASK, RTNL_HEAR_LINKS, RTNL_HEAR_HOST, RTNL_HEAR_ALL };
int rtnl_open(struct mnl_socket **out, enum rtnl_use use);
/* Every link there is. 0 or -errno. */
int rtnl_links(
	struct mnl_socket *s, void (*put)(void *arg, const struct rtnl_link *link), void *arg);
/* Every network whose packets this host takes as its own, and its broadcast addresses; some more than once. 0 or -errno. */
int rtnl_locals(
	struct mnl_socket *s, void (*put)(void *arg, const struct host_net *net), void *arg);
/* 0; -EHOSTUNREACH and the like as the kernel says; -EOPNOTSUPP for what is not plain forwarding (local, multicast, tunnel). */
int rtnl_route(struct mnl_socket *s, const struct endpoint *src, const struct endpoint *dst,
	struct rtnl_route *out);
/* Whether the kernel's IPv4 stack would take a datagram with this source, to this address of ours, that came by this interface. 0;
 * -EINVAL, -EXDEV and the like when it would not. */
int rtnl_accepts(
	struct mnl_socket *s, const struct endpoint *src, const struct endpoint *dst, int ifindex);
/* 0 or -ENOENT. */
int rtnl_neigh(
	struct mnl_socket *s, int ifindex, const struct endpoint *addr, struct rtnl_neigh *out);
/* Calls put() for all news. 0, or -ENOBUFS when some were lost: everything may have changed. */
int rtnl_read(
	struct mnl_socket *s, void (*put)(void *arg, const struct rtnl_event *event), void *arg);

#endif
