/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Routes of outgoing packets, cached. Destinations (source and destination address -> next hop) are
 * valid for one generation. An announcement about links, routes, rules or addresses, or thirty
 * seconds, start the next. Next hops follow announcements of neighbours. Packets without a known
 * route are sent by the kernel, which resolves the neighbour meanwhile. Packets sent here bypass
 * netfilter's output hooks, IPsec policies and queueing disciplines; VLAN priority is 0. Never
 * waits: the kernel answers within the request. */
#include "steer/xdp/xdp_route.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/if_ether.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/lines.h"
#include "base/secmem.h"
#include "host/host.h"
#include "host/rtnl.h"

#define WAYS_BITS 15u
#define WAYS      (1u << WAYS_BITS)
#define HOPS      1024u
#define LINKS     1024u
#define NO_HOP    UINT16_MAX
#define KERNEL_TURN \
	NS_PER_SEC                /* interval at which one packet per next hop goes through
				       * the kernel */
#define MAX_AGE (30 * NS_PER_SEC) /* of all entries, in case announcements are lost */
#define CALM \
	(50 * 1000000ull) /* minimum length of a generation: routing daemons can be
				       * busy */

struct way {                 /* to one destination */
	struct endpoint dst; /* port 0 */
	uint32_t generation;
	uint16_t hop;
	uint8_t local;
};

struct hop {
	struct rtnl_neigh neigh;
	struct route_hop out;
	uint64_t kernel_ns; /* when the kernel last sent a packet to it */
	bool possible;      /* reachable by Ethernet, with or without VLANs */
};

#define INS 16u /* answers of routes_in() */

struct in {           /* key of interface, local address and VLANs */
	uint64_t key; /* card, local address and VLANs */
	uint32_t dev, generation;
};

struct routes {
	struct mnl_socket *ask, *news;
	const struct host *host;
	struct in in[INS];
	struct endpoint local[STEER_MAX_LOCAL];
	uint32_t generation;
	uint64_t since_ns; /* the generation's */
	bool outdated;     /* a new generation is due */
	uint64_t secret[3];
	struct way *way; /* [WAYS]: pairs */
	struct hop *hop; /* [HOPS] */
	uint32_t hops;
	struct rtnl_link *link; /* [LINKS] */
	uint32_t links;
};

/* --- Links ------------------------------------------------------------------------------------ */

static struct rtnl_link *link_find(struct routes *r, int ifindex)
{
	for (uint32_t i = 0; i < r->links; i++)
		if (r->link[i].ifindex == ifindex)
			return &r->link[i];
	return NULL;
}

static void link_put(void *arg, const struct rtnl_link *link)
{
	struct routes *r = arg;
	struct rtnl_link *mine = link_find(r, link->ifindex);

	if (link->gone) {
		if (mine)
			*mine = r->link[--r->links];
	} else if (mine) {
		*mine = *link;
	} else if (r->links < LINKS) { /* otherwise the kernel sends its packets */
		r->link[r->links++] = *link;
	}
}

/* Writes addresses and tags for this interface; false if any are unknown. */
static bool write_l2(struct routes *r, struct hop *h)
{
	const struct rtnl_link *link = link_find(r, h->neigh.ifindex), *tag[2];
	uint8_t *p = h->out.l2 + 12;
	int tags = 0;

	h->out.mtu = link ? link->mtu : 0;
	if (link)
		memcpy(h->out.l2 + 6, link->mac, 6);
	for (; link && link->below; link = link_find(r, link->below)) {
		if (tags == 2 || !link->up)
			return false;
		tag[tags++] = link;
	}
	if (!link || !link->ethernet || !link->up)
		return false;
	while (tags--) { /* the outermost tag is the lowest interface's */
		put_be16(p, tag[tags]->vlan_proto);
		put_be16(p + 2, tag[tags]->vlan_id);
		p += 4;
	}
	h->out.ifindex = link->ifindex;
	h->out.l2_len = (uint8_t)(p + 2 - h->out.l2);
	return true;
}

/* --- Received frames -------------------------------------------------------------------------- */

static const struct rtnl_link *link_master(struct routes *r, const struct rtnl_link *link)
{
	for (int depth = 0; link && link->master && depth < 4; depth++)
		link = link_find(r, link->master);
	return link;
}

static const struct rtnl_link *link_of_vlan(
	struct routes *r, const struct rtnl_link *below, const uint8_t *tag)
{
	uint16_t proto = be16(tag), id = be16(tag + 2) & 0xfff;

	for (uint32_t i = 0; i < r->links; i++) {
		const struct rtnl_link *l = &r->link[i];

		if (l->below == below->ifindex && l->vlan_proto == proto && l->vlan_id == id)
			return l;
	}
	return id ? NULL : below; /* VLAN 0 is a priority only (IEEE 802.1Q) */
}

static bool is_tag(const uint8_t *p)
{
	return be16(p) == ETH_P_8021Q || be16(p) == ETH_P_8021AD;
}

/* Cards may remove VLAN tags before XDP sees the frame. A frame without a tag is assumed to belong
 * to the VLAN interface that has the local address. */
static const struct rtnl_link *tag_taken_off(
	struct routes *r, const struct rtnl_link *link, uint8_t local)
{
	const struct rtnl_link *dev, *carrier;

	if (!r->host)
		return link;
	dev = carrier = link_find(r, host_dev(r->host, &r->local[local]));
	for (int depth = 0; dev && dev->below && depth < 4; depth++) {
		dev = link_find(r, dev->below);
		if (dev == link)
			return carrier;
	}
	return link;
}

static uint32_t in_find(struct routes *r, int ifindex, const uint8_t *frame, uint8_t local)
{
	const struct rtnl_link *link = link_master(r, link_find(r, ifindex));
	const uint8_t *tag = frame + 12;

	if (!link && !is_tag(tag))
		return (uint32_t)ifindex;
	if (link && !is_tag(tag))
		link = tag_taken_off(r, link, local);
	for (int depth = 0; link && depth < 2 && is_tag(tag); depth++, tag += 4)
		link = link_master(r, link_of_vlan(r, link, tag));
	return link ? (uint32_t)link->ifindex : 0;
}

uint32_t routes_in(struct routes *r, int ifindex, const uint8_t *frame, uint8_t local)
{
	uint64_t key = (uint64_t)(uint32_t)ifindex << 32 | (uint64_t)local << 24;
	struct in *in;

	for (uint32_t depth = 0; depth < 2 && is_tag(frame + 12 + 4 * depth); depth++) {
		const uint8_t *tag = frame + 12 + 4 * depth;

		key |= (be16(tag + 2) & 0xfffull) << 12 * depth;
		key |= (be16(tag) == ETH_P_8021Q ? 1ull : 2ull) << (28 + 2 * depth);
	}
	in = &r->in[(key ^ key >> 32 ^ key >> 12 ^ key >> 24) % INS];
	if (in->key != key || in->generation != r->generation)
		*in = (struct in){key, in_find(r, ifindex, frame, local), r->generation};
	return in->dev;
}

/* --- Next hops -------------------------------------------------------------------------------- */

static struct hop *hop_find(struct routes *r, int ifindex, const struct endpoint *addr)
{
	for (uint32_t i = 0; i < r->hops; i++)
		if (r->hop[i].neigh.ifindex == ifindex &&
			endpoint_addr_eq(&r->hop[i].neigh.addr, addr))
			return &r->hop[i];
	return NULL;
}

static void hop_learn(struct hop *h, const struct rtnl_neigh *n)
{
	h->neigh.usable = n->usable;
	if (n->usable)
		memcpy(h->out.l2, n->mac, 6);
}

static uint16_t hop_get(struct routes *r, const struct rtnl_route *route)
{
	struct hop *h = hop_find(r, route->ifindex, &route->hop);
	struct rtnl_neigh now;

	if (!h) {
		if (r->hops == HOPS)
			return NO_HOP;
		h = &r->hop[r->hops++];
		*h = (struct hop){.neigh = {.ifindex = route->ifindex, .addr = route->hop}};
		if (rtnl_neigh(r->ask, route->ifindex, &route->hop, &now) == 0)
			hop_learn(h, &now);
		h->possible = write_l2(r, h);
	}
	if (route->mtu && route->mtu < h->out.mtu)
		h->out.mtu = route->mtu;
	return (uint16_t)(h - r->hop);
}

/* --- Destinations ----------------------------------------------------------------------------- */

/* Keyed, because senders choose addresses; cheap, because it runs for every packet. */
static uint32_t way_hash(const struct routes *r, const struct endpoint *dst, uint8_t local)
{
	uint64_t half[2];
	__uint128_t m;

	memcpy(half, dst->addr, 16);
	m = (__uint128_t)(half[0] ^ r->secret[0]) * (half[1] ^ r->secret[1] ^ local);
	return (uint32_t)((((uint64_t)m ^ (uint64_t)(m >> 64)) * r->secret[2]) >> (64 - WAYS_BITS));
}

static bool way_is(
	const struct routes *r, const struct way *w, const struct endpoint *dst, uint8_t local)
{
	return w->generation == r->generation && w->local == local &&
		endpoint_addr_eq(&w->dst, dst);
}

static bool link_local(const struct endpoint *e)
{
	return e->family == AF_INET6 && e->addr[0] == 0xfe && (e->addr[1] & 0xc0) == 0x80;
}

static void way_ask(struct routes *r, struct way *w, const struct endpoint *dst, uint8_t local)
{
	struct rtnl_route route;

	*w = (struct way){.dst = *dst, .generation = r->generation, .hop = NO_HOP, .local = local};
	w->dst.port = 0;
	/* A link-local address is ambiguous without its interface. */
	if (endpoint_is_multicast(dst) || link_local(dst) || r->local[local].family != dst->family)
		return;
	if (rtnl_route(r->ask, &r->local[local], dst, &route) == 0)
		w->hop = hop_get(r, &route);
}

static void generation_begin(struct routes *r, uint64_t now_ns)
{
	/* 0 marks empty entries. */
	if (++r->generation == 0) {
		memset(r->way, 0, WAYS * sizeof(*r->way));
		memset(r->in, 0, sizeof(r->in));
		r->generation = 1;
	}
	r->since_ns = now_ns;
	r->outdated = false;
	r->hops = 0;
}

const struct route_hop *routes_find(
	struct routes *r, uint8_t local, const struct endpoint *dst, uint64_t now_ns)
{
	uint64_t age = now_ns - r->since_ns;
	struct way *w;
	struct hop *h;

	if (age > MAX_AGE || (r->outdated && age > CALM))
		generation_begin(r, now_ns);
	w = &r->way[way_hash(r, dst, local) & ~1u];
	if (!way_is(r, w, dst, local)) {
		/* Use the second entry of the pair. If it holds another destination, move the first
		 * one there. */
		if (!way_is(r, w + 1, dst, local)) {
			w[1] = w[0];
			way_ask(r, w, dst, local);
		} else {
			w++;
		}
	}
	if (w->hop == NO_HOP)
		return NULL;
	h = &r->hop[w->hop];
	if (!h->possible || !h->neigh.usable)
		return NULL;
	if (now_ns - h->kernel_ns > KERNEL_TURN) {
		h->kernel_ns = now_ns;
		return NULL;
	}
	return &h->out;
}

/* --- Notifications ---------------------------------------------------------------------------- */

static void news(void *arg, const struct rtnl_event *e)
{
	struct routes *r = arg;
	struct hop *h;

	switch (e->what) {
	case RTNL_NEIGH:
		h = hop_find(r, e->neigh.ifindex, &e->neigh.addr);
		if (h)
			hop_learn(h, &e->neigh);
		break;
	case RTNL_LINK:
		link_put(r, &e->link);
		/* At once: packets must not queue up at an interface that is down. */
		for (uint32_t i = 0; i < r->hops; i++)
			r->hop[i].possible = write_l2(r, &r->hop[i]);
		r->outdated = true;
		break;
	case RTNL_ROUTE:
	case RTNL_LOCAL:
		r->outdated = true;
		break;
	case RTNL_NOTHING:
		break;
	}
}

void routes_news(struct routes *r, uint64_t now_ns)
{
	if (rtnl_read(r->news, news, r)) {
		r->links = 0;
		(void)rtnl_links(r->ask, link_put, r);
		r->outdated = true;
	}
	if (r->outdated && now_ns - r->since_ns > CALM)
		generation_begin(r, now_ns);
}

int routes_fd(const struct routes *r)
{
	return mnl_socket_get_fd(r->news);
}

/* --- Set-up ----------------------------------------------------------------------------------- */

int routes_create(struct routes **out, const struct steer_config *cfg)
{
	struct routes *r = lines_alloc(1, sizeof(*r));
	int err = -ENOMEM;

	if (!r)
		return -ENOMEM;
	r->generation = 1;
	memcpy(r->local, cfg->local, sizeof(r->local));
	r->host = cfg->host;
	r->way = calloc(WAYS, sizeof(*r->way));
	r->hop = calloc(HOPS, sizeof(*r->hop));
	r->link = calloc(LINKS, sizeof(*r->link));
	if (r->way && r->hop && r->link)
		err = secmem_random(r->secret, sizeof(r->secret));
	r->secret[2] |= 1;
	/* Subscribe first, so that no change is missed before the links are read. */
	err = err ? err : rtnl_open(&r->news, RTNL_HEAR_ALL);
	err = err ? err : rtnl_open(&r->ask, RTNL_ASK);
	err = err ? err : rtnl_links(r->ask, link_put, r);
	if (err) {
		routes_destroy(r);
		return err;
	}
	*out = r;
	return 0;
}

void routes_destroy(struct routes *r)
{
	if (!r)
		return;
	if (r->ask)
		mnl_socket_close(r->ask);
	if (r->news)
		mnl_socket_close(r->news);
	free(r->way);
	free(r->hop);
	free(r->link);
	free(r);
}
