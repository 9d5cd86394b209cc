/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which networks this host takes packets for: its addresses, the local routing table, and local
 * routes of all other tables, which rules (ip rule) may lead to: "ip route add local". */
#include "host/rtnl.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include "host/rtnl_int.h"

struct local_sink {
	void (*put)(void *arg, const struct host_net *net);
	void *arg;
};

/* A route of any table: "local", "broadcast" or "anycast". */
static void parse_local_route(const struct nlmsghdr *h, struct local_sink *sink)
{
	const struct rtmsg *m = mnl_nlmsg_get_payload(h);
	const struct nlattr *by[RTA_MAX + 1] = {0};
	struct rtnl_attrs all = {by, RTA_MAX};
	struct host_net net;

	if (!rtnl_about_local(h) || (m->rtm_family != AF_INET && m->rtm_family != AF_INET6))
		return;
	mnl_attr_parse(h, sizeof(*m), rtnl_collect, &all);
	net = (struct host_net){.addr = {.family = m->rtm_family},
		.bits = m->rtm_dst_len,
		.kind = m->rtm_type == RTN_BROADCAST ? HOST_BROADCAST : HOST_LOCAL};
	if (m->rtm_dst_len && !rtnl_address(by[RTA_DST], m->rtm_family, &net.addr))
		return;
	sink->put(sink->arg, &net);
}

/* The last address of an IPv4 network that has a broadcast address (RFC 3021: /31 has none). */
static void put_broadcast(const struct endpoint *addr, uint8_t bits, struct local_sink *sink)
{
	struct host_net net = {.addr = *addr, .bits = 32, .kind = HOST_BROADCAST};

	if (addr->family != AF_INET || bits > 30)
		return;
	put_be32(net.addr.addr, be32(addr->addr) | 0xffffffffu >> bits);
	sink->put(sink->arg, &net);
}

/* An address. The local table lacks it while its interface is down, and in a VRF. */
static void parse_address(const struct nlmsghdr *h, struct local_sink *sink)
{
	const struct ifaddrmsg *m = mnl_nlmsg_get_payload(h);
	const struct nlattr *by[IFA_MAX + 1] = {0};
	struct rtnl_attrs all = {by, IFA_MAX};
	struct host_net net = {.kind = HOST_LOCAL}, cast = {.bits = 32, .kind = HOST_BROADCAST};

	if (mnl_nlmsg_get_payload_len(h) < sizeof(*m) ||
		(m->ifa_family != AF_INET && m->ifa_family != AF_INET6))
		return;
	mnl_attr_parse(h, sizeof(*m), rtnl_collect, &all);
	/* IFA_ADDRESS is the other end of a point-to-point link, unless there is no IFA_LOCAL. */
	if (!rtnl_address(
		    by[IFA_LOCAL] ? by[IFA_LOCAL] : by[IFA_ADDRESS], m->ifa_family, &net.addr))
		return;
	net.bits = m->ifa_family == AF_INET ? 32 : 128;
	net.dev = (int)m->ifa_index;
	sink->put(sink->arg, &net);
	put_broadcast(&net.addr, m->ifa_prefixlen, sink);
	if (m->ifa_family == AF_INET && rtnl_address(by[IFA_BROADCAST], AF_INET, &cast.addr))
		sink->put(sink->arg, &cast);
}

static void local_message(const struct nlmsghdr *h, void *arg)
{
	if (h->nlmsg_type == RTM_NEWADDR)
		parse_address(h, arg);
	else if (h->nlmsg_type == RTM_NEWROUTE)
		parse_local_route(h, arg);
}

static int dump_addresses(struct mnl_socket *s, struct local_sink *sink)
{
	_Alignas(8) char b[32768];
	struct nlmsghdr *h = mnl_nlmsg_put_header(b);
	struct ifaddrmsg *m;

	h->nlmsg_type = RTM_GETADDR;
	m = mnl_nlmsg_put_extra_header(h, sizeof(*m));
	m->ifa_family = AF_UNSPEC;
	return rtnl_dump(s, h, b, sizeof(b), local_message, sink);
}

/* The kernel sends the routes of this table and type; 0: of any. */
static int dump_routes(
	struct mnl_socket *s, uint8_t family, uint8_t table, uint8_t type, struct local_sink *sink)
{
	_Alignas(8) char b[32768];
	struct nlmsghdr *h = mnl_nlmsg_put_header(b);
	struct rtmsg *m;

	h->nlmsg_type = RTM_GETROUTE;
	m = mnl_nlmsg_put_extra_header(h, sizeof(*m));
	m->rtm_family = family;
	m->rtm_table = table;
	m->rtm_type = type;
	return rtnl_dump(s, h, b, sizeof(b), local_message, sink);
}

int rtnl_locals(struct mnl_socket *s, void (*put)(void *arg, const struct host_net *net), void *arg)
{
	struct local_sink sink = {put, arg};
	int err = -EINTR;

	/* Duplicates are removed later (addresses.c). */
	for (int tries = 0; tries < 8 && err == -EINTR; tries++) {
		err = dump_addresses(s, &sink);
		for (int v6 = 0; v6 < 2; v6++) {
			uint8_t family = v6 ? AF_INET6 : AF_INET;

			err = err ? err : dump_routes(s, family, RT_TABLE_LOCAL, 0, &sink);
			err = err ? err : dump_routes(s, family, 0, RTN_LOCAL, &sink);
		}
	}
	return err;
}
