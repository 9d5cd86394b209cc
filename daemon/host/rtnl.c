/* SPDX-License-Identifier: GPL-2.0-or-later */
/* rtnetlink requests for routes, neighbours and links, and announcements of changes. The kernel
 * replies within the system call that sends a request, so nothing here blocks. */
#include "host/rtnl.h"

#include "host/rtnl_int.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/if.h>
#include <linux/if_arp.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#define NUD_USABLE (NUD_PERMANENT | NUD_NOARP | NUD_REACHABLE | NUD_PROBE | NUD_STALE | NUD_DELAY)

int rtnl_open(struct mnl_socket **out, enum rtnl_use use)
{
	/* Each use subscribes to the first n groups. */
	static const int groups[] = {RTNLGRP_LINK, RTNLGRP_IPV4_ROUTE, RTNLGRP_IPV6_ROUTE,
		RTNLGRP_IPV4_RULE, RTNLGRP_IPV6_RULE, RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR,
		RTNLGRP_IPV4_NETCONF, RTNLGRP_NEIGH};
	static const uint8_t heard[] = {[RTNL_ASK] = 0,
		[RTNL_HEAR_LINKS] = 1,
		[RTNL_HEAR_HOST] = ARRAY_LEN(groups) - 1,
		[RTNL_HEAR_ALL] = ARRAY_LEN(groups)};
	struct mnl_socket *s = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC | SOCK_NONBLOCK);
	size_t n = heard[use];
	int len = 1 << 20, strict = 1;

	if (!s)
		return -errno;
	if (mnl_socket_bind(s, 0, MNL_SOCKET_AUTOPID))
		goto fail;
	/* Dumps of one routing table only. Kernels before 5.0 send all of them. */
	(void)mnl_socket_setsockopt(s, NETLINK_GET_STRICT_CHK, &strict, sizeof(strict));
	for (size_t i = 0; i < n; i++)
		if (mnl_socket_setsockopt(
			    s, NETLINK_ADD_MEMBERSHIP, (void *)&groups[i], sizeof(groups[i])))
			goto fail;
	if (n)
		(void)setsockopt(
			mnl_socket_get_fd(s), SOL_SOCKET, SO_RCVBUFFORCE, &len, sizeof(len));
	*out = s;
	return 0;
fail:
	len = -errno;
	mnl_socket_close(s);
	return len;
}

/* --- Parsing ---------------------------------------------------------------------------------- */

int rtnl_collect(const struct nlattr *a, void *arg)
{
	struct rtnl_attrs *all = arg;
	uint16_t type = mnl_attr_get_type(a);

	if (type <= all->max)
		all->by_type[type] = a;
	return MNL_CB_OK;
}

/* Whether the attribute is there, and long enough. */
static bool rtnl_has(const struct nlattr *a, size_t len)
{
	return a && mnl_attr_get_payload_len(a) >= len;
}

static uint32_t rtnl_u32(const struct nlattr *a, uint32_t otherwise)
{
	return rtnl_has(a, 4) ? mnl_attr_get_u32(a) : otherwise;
}

bool rtnl_address(const struct nlattr *a, uint8_t family, struct endpoint *out)
{
	size_t len = family == AF_INET ? 4 : 16;

	if (!rtnl_has(a, len))
		return false;
	*out = (struct endpoint){.family = family};
	memcpy(out->addr, mnl_attr_get_payload(a), len);
	return true;
}

static void vlan_of(const struct nlattr *info, struct rtnl_link *out, int below)
{
	const struct nlattr *by[IFLA_INFO_MAX + 1] = {0}, *vlan[IFLA_VLAN_MAX + 1] = {0};
	struct rtnl_attrs all = {by, IFLA_INFO_MAX}, data = {vlan, IFLA_VLAN_MAX};

	mnl_attr_parse_nested(info, rtnl_collect, &all);
	if (!rtnl_has(by[IFLA_INFO_KIND], 1) || !by[IFLA_INFO_DATA])
		return;
	if (strncmp(mnl_attr_get_payload(by[IFLA_INFO_KIND]), "vlan",
		    mnl_attr_get_payload_len(by[IFLA_INFO_KIND])) != 0)
		return;
	mnl_attr_parse_nested(by[IFLA_INFO_DATA], rtnl_collect, &data);
	if (!rtnl_has(vlan[IFLA_VLAN_ID], 2) || !rtnl_has(vlan[IFLA_VLAN_PROTOCOL], 2))
		return;
	out->below = below;
	out->vlan_id = mnl_attr_get_u16(vlan[IFLA_VLAN_ID]);
	out->vlan_proto = be16(mnl_attr_get_payload(vlan[IFLA_VLAN_PROTOCOL]));
}

/* The stack receives packets of a slave at its master; in a VRF, at the slave. */
static int master_of(const struct nlattr *info, const struct nlattr *master)
{
	const struct nlattr *by[IFLA_INFO_MAX + 1] = {0};
	struct rtnl_attrs all = {by, IFLA_INFO_MAX};

	if (!info || !master)
		return 0;
	mnl_attr_parse_nested(info, rtnl_collect, &all);
	if (!rtnl_has(by[IFLA_INFO_SLAVE_KIND], 3) ||
		strncmp(mnl_attr_get_payload(by[IFLA_INFO_SLAVE_KIND]), "vrf", 3) == 0)
		return 0;
	return (int)rtnl_u32(master, 0);
}

static bool parse_link(const struct nlmsghdr *h, struct rtnl_link *out)
{
	const struct ifinfomsg *m = mnl_nlmsg_get_payload(h);
	const struct nlattr *by[IFLA_MAX + 1] = {0};
	struct rtnl_attrs all = {by, IFLA_MAX};

	if (mnl_nlmsg_get_payload_len(h) < sizeof(*m))
		return false;
	mnl_attr_parse(h, sizeof(*m), rtnl_collect, &all);
	*out = (struct rtnl_link){.ifindex = m->ifi_index,
		.mtu = rtnl_u32(by[IFLA_MTU], 0),
		.ethernet = m->ifi_type == ARPHRD_ETHER && rtnl_has(by[IFLA_ADDRESS], 6),
		.up = (m->ifi_flags & IFF_UP) != 0,
		.gone = h->nlmsg_type == RTM_DELLINK};
	if (out->ethernet)
		memcpy(out->mac, mnl_attr_get_payload(by[IFLA_ADDRESS]), 6);
	/* A VLAN whose lower interface is in another namespace cannot be used. */
	if (by[IFLA_LINKINFO] && by[IFLA_LINK] && !by[IFLA_LINK_NETNSID])
		vlan_of(by[IFLA_LINKINFO], out, (int)rtnl_u32(by[IFLA_LINK], 0));
	out->master = master_of(by[IFLA_LINKINFO], by[IFLA_MASTER]);
	return true;
}

static bool parse_neigh(const struct nlmsghdr *h, struct rtnl_neigh *out)
{
	const struct ndmsg *m = mnl_nlmsg_get_payload(h);
	const struct nlattr *by[NDA_MAX + 1] = {0};
	struct rtnl_attrs all = {by, NDA_MAX};

	if (mnl_nlmsg_get_payload_len(h) < sizeof(*m))
		return false;
	mnl_attr_parse(h, sizeof(*m), rtnl_collect, &all);
	*out = (struct rtnl_neigh){.ifindex = m->ndm_ifindex};
	if ((m->ndm_family != AF_INET && m->ndm_family != AF_INET6) ||
		!rtnl_address(by[NDA_DST], m->ndm_family, &out->addr))
		return false;
	out->usable = h->nlmsg_type == RTM_NEWNEIGH && (m->ndm_state & NUD_USABLE) &&
		rtnl_has(by[NDA_LLADDR], 6);
	if (out->usable)
		memcpy(out->mac, mnl_attr_get_payload(by[NDA_LLADDR]), 6);
	return true;
}

static int parse_route(const struct nlmsghdr *h, const struct endpoint *dst, struct rtnl_route *out)
{
	const struct rtmsg *m = mnl_nlmsg_get_payload(h);
	const struct nlattr *by[RTA_MAX + 1] = {0}, *metric[RTAX_MAX + 1] = {0};
	struct rtnl_attrs all = {by, RTA_MAX}, metrics = {metric, RTAX_MAX};

	if (mnl_nlmsg_get_payload_len(h) < sizeof(*m))
		return -EBADMSG;
	mnl_attr_parse(h, sizeof(*m), rtnl_collect, &all);
	if (m->rtm_type != RTN_UNICAST || by[RTA_ENCAP] || !rtnl_has(by[RTA_OIF], 4))
		return -EOPNOTSUPP;
	*out = (struct rtnl_route){.ifindex = (int)mnl_attr_get_u32(by[RTA_OIF]), .hop = *dst};
	out->hop.port = 0;
	if (by[RTA_GATEWAY] && !rtnl_address(by[RTA_GATEWAY], dst->family, &out->hop))
		return -EBADMSG;
	if (rtnl_has(by[RTA_VIA], sizeof(struct rtvia) + 16)) {
		const struct rtvia *via = mnl_attr_get_payload(by[RTA_VIA]);

		if (via->rtvia_family != AF_INET6)
			return -EOPNOTSUPP;
		out->hop = (struct endpoint){.family = AF_INET6};
		memcpy(out->hop.addr, via->rtvia_addr, 16);
	}
	if (by[RTA_METRICS]) {
		mnl_attr_parse_nested(by[RTA_METRICS], rtnl_collect, &metrics);
		out->mtu = rtnl_u32(metric[RTAX_MTU], 0);
	}
	return 0;
}

bool rtnl_about_local(const struct nlmsghdr *h)
{
	const struct rtmsg *m = mnl_nlmsg_get_payload(h);

	if (h->nlmsg_type == RTM_NEWADDR || h->nlmsg_type == RTM_DELADDR)
		return true;
	return (h->nlmsg_type == RTM_NEWROUTE || h->nlmsg_type == RTM_DELROUTE) &&
		mnl_nlmsg_get_payload_len(h) >= sizeof(*m) &&
		(m->rtm_type == RTN_LOCAL || m->rtm_type == RTN_BROADCAST ||
			m->rtm_type == RTN_ANYCAST);
}

/* --- Questions -------------------------------------------------------------------------------- */

struct buffer {
	_Alignas(8) char b[8192];
};

/* Sends a request with one reply: returns the message, or sets *err to the negative errno. */
static const struct nlmsghdr *ask(
	struct mnl_socket *s, struct nlmsghdr *question, struct buffer *b, int *err)
{
	const struct nlmsghdr *h = (const struct nlmsghdr *)b->b;
	ssize_t n;

	if (mnl_socket_sendto(s, question, question->nlmsg_len) < 0) {
		*err = -errno;
		return NULL;
	}
	n = mnl_socket_recvfrom(s, b->b, sizeof(b->b));
	if (n < 0 || !mnl_nlmsg_ok(h, (int)n)) {
		*err = n < 0 ? -errno : -EIO;
		return NULL;
	}
	if (h->nlmsg_type != NLMSG_ERROR)
		return h;
	*err = ((const struct nlmsgerr *)mnl_nlmsg_get_payload(h))->error;
	*err = *err ? *err : -EIO;
	return NULL;
}

static void put_address(struct nlmsghdr *h, uint16_t type, const struct endpoint *e)
{
	mnl_attr_put(h, type, e->family == AF_INET ? 4 : 16, e->addr);
}

/* Requests a route. ifindex: of a packet received there; 0 = of a packet that this host sends. */
static const struct nlmsghdr *ask_route(struct mnl_socket *s, const struct endpoint *src,
	const struct endpoint *dst, int ifindex, struct buffer *b, int *err)
{
	struct nlmsghdr *h = mnl_nlmsg_put_header(b->b);
	uint8_t bits = dst->family == AF_INET ? 32 : 128;
	struct rtmsg *m;

	h->nlmsg_type = RTM_GETROUTE;
	h->nlmsg_flags = NLM_F_REQUEST;
	m = mnl_nlmsg_put_extra_header(h, sizeof(*m));
	m->rtm_family = dst->family;
	m->rtm_dst_len = m->rtm_src_len = bits;
	put_address(h, RTA_DST, dst);
	put_address(h, RTA_SRC, src);
	if (ifindex)
		mnl_attr_put_u32(h, RTA_IIF, (uint32_t)ifindex);
	*err = -EIO;
	return ask(s, h, b, err);
}

int rtnl_route(struct mnl_socket *s, const struct endpoint *src, const struct endpoint *dst,
	struct rtnl_route *out)
{
	struct buffer b;
	int err;
	const struct nlmsghdr *answer = ask_route(s, src, dst, 0, &b, &err);

	return answer ? parse_route(answer, dst, out) : err;
}

int rtnl_accepts(
	struct mnl_socket *s, const struct endpoint *src, const struct endpoint *dst, int ifindex)
{
	struct buffer b;
	int err;
	const struct nlmsghdr *answer = ask_route(s, src, dst, ifindex, &b, &err);
	const struct rtmsg *m;

	if (!answer)
		return err;
	m = mnl_nlmsg_get_payload(answer);
	return mnl_nlmsg_get_payload_len(answer) >= sizeof(*m) && m->rtm_type == RTN_LOCAL
		? 0
		: -EINVAL;
}

int rtnl_neigh(
	struct mnl_socket *s, int ifindex, const struct endpoint *addr, struct rtnl_neigh *out)
{
	struct buffer b;
	struct nlmsghdr *h = mnl_nlmsg_put_header(b.b);
	const struct nlmsghdr *answer;
	struct ndmsg *m;
	int err = -EIO;

	h->nlmsg_type = RTM_GETNEIGH;
	h->nlmsg_flags = NLM_F_REQUEST;
	m = mnl_nlmsg_put_extra_header(h, sizeof(*m));
	m->ndm_family = addr->family;
	m->ndm_ifindex = ifindex;
	put_address(h, NDA_DST, addr);
	answer = ask(s, h, &b, &err);
	if (!answer)
		return err;
	return parse_neigh(answer, out) ? 0 : -ENOENT;
}

int rtnl_dump(struct mnl_socket *s, struct nlmsghdr *h, char *b, size_t len,
	void (*put)(const struct nlmsghdr *h, void *arg), void *arg)
{
	bool changed = false;
	ssize_t n;

	h->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	if (mnl_socket_sendto(s, h, h->nlmsg_len) < 0)
		return -errno;
	while ((n = mnl_socket_recvfrom(s, b, len)) > 0) {
		int left = (int)n;

		for (h = (struct nlmsghdr *)b; mnl_nlmsg_ok(h, left);
			h = mnl_nlmsg_next(h, &left)) {
			changed = changed || h->nlmsg_flags & NLM_F_DUMP_INTR;
			if (h->nlmsg_type == NLMSG_DONE)
				return changed ? -EINTR : 0;
			if (h->nlmsg_type == NLMSG_ERROR)
				return ((struct nlmsgerr *)mnl_nlmsg_get_payload(h))->error;
			put(h, arg);
		}
	}
	return n < 0 ? -errno : -EIO;
}

struct link_sink {
	void (*put)(void *arg, const struct rtnl_link *link);
	void *arg;
};

static void link_message(const struct nlmsghdr *h, void *arg)
{
	struct link_sink *sink = arg;
	struct rtnl_link link;

	if (h->nlmsg_type == RTM_NEWLINK && parse_link(h, &link))
		sink->put(sink->arg, &link);
}

int rtnl_links(
	struct mnl_socket *s, void (*put)(void *arg, const struct rtnl_link *link), void *arg)
{
	_Alignas(8) char b[32768];
	struct nlmsghdr *h = mnl_nlmsg_put_header(b);
	struct link_sink sink = {put, arg};
	struct ifinfomsg *m;
	int err;

	h->nlmsg_type = RTM_GETLINK;
	m = mnl_nlmsg_put_extra_header(h, sizeof(*m));
	m->ifi_family = AF_UNSPEC;
	err = rtnl_dump(s, h, b, sizeof(b), link_message, &sink);
	return err == -EINTR ? 0 : err; /* announcements bring the rest */
}

/* --- Notifications ---------------------------------------------------------------------------- */

struct event_sink {
	void (*put)(void *arg, const struct rtnl_event *event);
	void *arg;
};

static int event_message(const struct nlmsghdr *h, void *arg)
{
	struct event_sink *sink = arg;
	struct rtnl_event e = {.what = RTNL_ROUTE};

	switch (h->nlmsg_type) {
	case RTM_NEWLINK:
	case RTM_DELLINK:
		/* Bridge ports have messages of their own, without the attributes of a link. */
		if (((const struct ifinfomsg *)mnl_nlmsg_get_payload(h))->ifi_family == AF_UNSPEC &&
			parse_link(h, &e.link))
			e.what = RTNL_LINK;
		else
			e.what = RTNL_NOTHING;
		break;
	case RTM_NEWNEIGH:
	case RTM_DELNEIGH:
		e.what = parse_neigh(h, &e.neigh) ? RTNL_NEIGH : RTNL_NOTHING;
		break;
	default:
		e.what = rtnl_about_local(h) ? RTNL_LOCAL : RTNL_ROUTE;
		break;
	}
	if (e.what != RTNL_NOTHING)
		sink->put(sink->arg, &e);
	return MNL_CB_OK;
}

int rtnl_read(
	struct mnl_socket *s, void (*put)(void *arg, const struct rtnl_event *event), void *arg)
{
	_Alignas(8) char b[32768];
	struct event_sink sink = {put, arg};
	bool lost = false;
	ssize_t n;

	/* Bounded; the next call reads the rest. */
	for (int i = 0; i < 16; i++) {
		n = mnl_socket_recvfrom(s, b, sizeof(b));
		if (n < 0 && errno != ENOBUFS && errno != ENOSPC)
			break;
		lost = lost || n < 0;
		if (n > 0)
			(void)mnl_cb_run(b, (size_t)n, 0, 0, event_message, &sink);
	}
	return lost ? -ENOBUFS : 0;
}
