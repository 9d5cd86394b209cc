/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Routes, neighbours and links as the kernel reports them (rtnetlink), in plain structures. */
#ifndef HOST_RTNL_H
#define HOST_RTNL_H

#include "base/endpoint.h"
#include "host/addresses.h"

struct mnl_socket;

struct rtnl_link {
	int ifindex;
	int below;  /* of a VLAN interface: its lower interface; 0: not a VLAN */
	int master; /* bond, team or bridge that receives all its packets; 0: none */
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
	/* LOCAL: this host's addresses; ROUTE: all else that may change a route */
	enum rtnl_news what;
	struct rtnl_link link;
	struct rtnl_neigh neigh;
};

/* The purpose of a socket: questions, or announcements (HOST: all but neighbours). */
enum rtnl_use { RTNL_ASK, RTNL_HEAR_LINKS, RTNL_HEAR_HOST, RTNL_HEAR_ALL };
/* 0 or -errno. */
int rtnl_open(struct mnl_socket **out, enum rtnl_use use);
/* Calls put() for every link. 0 or -errno. */
int rtnl_links(
	struct mnl_socket *s, void (*put)(void *arg, const struct rtnl_link *link), void *arg);
/* Calls put() for every network that is delivered to this host, and every broadcast address; some
 * come more than once. 0 or -errno. */
int rtnl_locals(
	struct mnl_socket *s, void (*put)(void *arg, const struct host_net *net), void *arg);
/* Route from src to dst. 0; -EHOSTUNREACH and the like from the kernel; -EOPNOTSUPP: not plain
 * forwarding (local, multicast, tunnel). */
int rtnl_route(struct mnl_socket *s, const struct endpoint *src, const struct endpoint *dst,
	struct rtnl_route *out);
/* Whether the kernel's IPv4 stack would accept a datagram from src to dst, an address of this host,
 * received at this interface. 0 if it would; -EINVAL, -EXDEV and the like if not. */
int rtnl_accepts(
	struct mnl_socket *s, const struct endpoint *src, const struct endpoint *dst, int ifindex);
/* 0 or -ENOENT. */
int rtnl_neigh(
	struct mnl_socket *s, int ifindex, const struct endpoint *addr, struct rtnl_neigh *out);
/* Calls put() for all announcements. 0, or -ENOBUFS if some were lost: everything may have
 * changed. */
int rtnl_read(
	struct mnl_socket *s, void (*put)(void *arg, const struct rtnl_event *event), void *arg);

#endif
