// SPDX-License-Identifier: GPL-2.0
/* Sending: rewrites addresses, ports, checksum, TTL and TOS, and sends by the routing table,
 * without connection tracking. The TTL is decremented, so that loops between hosts end. hooks.c has
 * checked the UDP checksum, which is updated incrementally. */
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <net/checksum.h>
#include <net/dst_metadata.h>
#include <net/inet_ecn.h>
#include <net/dsfield.h>
#include <net/ip.h>
#include <net/ip6_fib.h>
#include <net/ip6_route.h>
#include <net/ipv6.h>
#include <net/netfilter/nf_conntrack.h>
#include <net/route.h>

#include "compat.h"
#include "nf_xcipher.h"

static void drop(struct nfx_target *t, struct sk_buff *skb, int why)
{
	nfx_count_one(t->count, why);
	kfree_skb(skb);
}

/* Clears state of the way in, which is meaningless for the way out. */
static void clean(struct sk_buff *skb)
{
	skb_orphan(skb);
	skb_scrub_packet(skb, true);
	skb_init_secmark(skb);
	skb_clear_hash(skb);
	skb_set_queue_mapping(skb, 0);
	skb_forward_csum(skb);
	nf_ct_set(skb, NULL, IP_CT_UNTRACKED);
}

/* --- Routes: a reference, or NULL. With policies of IPsec, as from a socket.
 * ---------------------- */

/* NULL if the source is not an address of this host, or the destination is a broadcast address. */
static struct dst_entry *route4(struct net *net, __be32 to, __be32 from, __be16 port,
				__be16 from_port)
{
	struct flowi4 fl = {
		.daddr = to,
		.saddr = from,
		.fl4_dport = port,
		.fl4_sport = from_port,
		.flowi4_proto = IPPROTO_UDP,
	};
	struct rtable *rt = ip_route_output_flow(net, &fl, NULL);

	if (IS_ERR(rt))
		return NULL;
	if (!(rt->rt_flags & (RTCF_BROADCAST | RTCF_MULTICAST)))
		return &rt->dst;
	ip_rt_put(rt);
	return NULL;
}

/* dev: for link-local addresses */
static struct dst_entry *route6(struct net *net, const struct in6_addr *to,
				const struct in6_addr *from, __be16 port, __be16 from_port,
				const struct net_device *dev)
{
	struct flowi6 fl = {
		.daddr = *to,
		.saddr = *from,
		.fl6_dport = port,
		.fl6_sport = from_port,
		.flowi6_proto = IPPROTO_UDP,
	};
	struct dst_entry *dst;

	if (ipv6_addr_is_multicast(to))
		return NULL;
	if (dev && ipv6_addr_type(to) & IPV6_ADDR_LINKLOCAL)
		fl.flowi6_oif = dev->ifindex;
	dst = ip6_dst_lookup_flow(net, NULL, &fl, NULL);
	return IS_ERR(dst) ? NULL : dst;
}

struct dst_entry *nfx_route(struct net *net, const struct nfx_key *to, const struct nfx_key *from,
			    const struct net_device *dev)
{
	if (to->family == AF_INET)
		return route4(net, to->addr.s6_addr32[0], from->addr.s6_addr32[0], to->port,
			      from->port);
	return route6(net, &to->addr, &from->addr, to->port, from->port, dev);
}

void nfx_hop_set(struct nfx_hop *h, struct dst_entry *dst, u16 family)
{
	dst_release(h->dst);
	h->dst = dst;
	h->cookie = dst && family == AF_INET6 ? rt6_get_cookie((struct rt6_info *)dst) : 0;
}

/* Returns a route whose reference stays with the destination, valid under RCU. The kernel's
 * dst_cache would take a reference for each packet. */
static struct dst_entry *route_cached(struct net *net, const struct nfx_dest *d)
{
	struct nfx_hop *h = this_cpu_ptr(d->hop);
	struct dst_entry *dst = nfx_hop_get(h);

	if (!dst) {
		dst = nfx_route(net, &d->to, &d->from, NULL);
		nfx_hop_set(h, dst, d->to.family);
	}
	return dst;
}

/* --- Rewriting -------------------------------------------------------------------------------- */

static __wsum exchanged(__wsum sum, __wsum old, __wsum now)
{
	return csum_add(csum_sub(sum, old), now);
}

/* Writes the ports. Updates the checksum for the ports and addresses. words: of an address. */
static __always_inline void rewrite_udp(struct sk_buff *skb, struct udphdr *udp,
					const struct nfx_dest *d, const __be32 *saddr,
					const __be32 *daddr, u32 words)
{
	const __be32 *from = d->from.addr.s6_addr32, *to = d->to.addr.s6_addr32;

	if (skb->ip_summed == CHECKSUM_PARTIAL) {
		/* It covers the pseudo-header only; the device adds the rest. */
		for (u32 i = 0; i < words; i++) {
			inet_proto_csum_replace4(&udp->check, skb, saddr[i], from[i], true);
			inet_proto_csum_replace4(&udp->check, skb, daddr[i], to[i], true);
		}
	} else if (udp->check) {
		__wsum sum = ~csum_unfold(udp->check);

		for (u32 i = 0; i < words; i++) {
			sum = exchanged(sum, (__force __wsum)saddr[i], (__force __wsum)from[i]);
			sum = exchanged(sum, (__force __wsum)daddr[i], (__force __wsum)to[i]);
		}
		sum = exchanged(sum, (__force __wsum)udp->source, (__force __wsum)d->from.port);
		sum = exchanged(sum, (__force __wsum)udp->dest, (__force __wsum)d->to.port);
		udp->check = csum_fold(sum);
		if (!udp->check)
			udp->check = CSUM_MANGLED_0;
	}
	udp->source = d->from.port;
	udp->dest = d->to.port;
}

/* Leaves the checksum of the IP header: ip_local_out() computes it. */
static void rewrite4(struct sk_buff *skb, u32 off, const struct nfx_dest *d)
{
	struct iphdr *ip = ip_hdr(skb);
	struct udphdr *udp = (struct udphdr *)(skb->data + off);

	rewrite_udp(skb, udp, d, &ip->saddr, &ip->daddr, 1);
	ip->saddr = d->from.addr.s6_addr32[0];
	ip->daddr = d->to.addr.s6_addr32[0];
	ip->ttl--;
	if (d->set_tos)
		ip->tos = d->tos;
}

static void rewrite6(struct sk_buff *skb, u32 off, const struct nfx_dest *d)
{
	struct ipv6hdr *ip = ipv6_hdr(skb);
	struct udphdr *udp = (struct udphdr *)(skb->data + off);

	rewrite_udp(skb, udp, d, ip->saddr.s6_addr32, ip->daddr.s6_addr32, 4);
	ip->saddr = d->from.addr;
	ip->daddr = d->to.addr;
	ip->hop_limit--;
	if (d->set_tos)
		ipv6_change_dsfield(ip, 0, d->tos);
}

/* --- Sending ---------------------------------------------------------------------------------- */

/* This host is the sender: oversized packets leave in fragments, as from a socket. */
void nfx_fragmentable(struct sk_buff *skb, struct net *net, u16 family)
{
	skb->ignore_df = 1;
	if (family == AF_INET) {
		ip_hdr(skb)->frag_off = 0;
		__ip_select_ident(net, ip_hdr(skb), 1);
	}
}

/* Takes the skb, which is clean and has its route. */
static void out(struct net *net, struct nfx_target *t, struct sk_buff *skb, u16 family, u32 off)
{
	skb_set_transport_header(skb, off);
	nfx_count_packets(t->count, NFX_S_SENT, 1, skb->len - off - sizeof(struct udphdr));
	if (skb->len > dst_mtu(skb_dst(skb))) {
		nfx_count_one(t->count, NFX_S_TOO_BIG);
		nfx_fragmentable(skb, net, family);
	}
	if (family == AF_INET) {
		memset(IPCB(skb), 0, sizeof(*IPCB(skb)));
		skb->protocol = htons(ETH_P_IP);
		skb->priority = rt_tos2priority(ip_hdr(skb)->tos);
		ip_local_out(net, NULL, skb);
	} else {
		memset(IP6CB(skb), 0, sizeof(*IP6CB(skb)));
		skb->protocol = htons(ETH_P_IPV6);
		skb->priority = rt_tos2priority(ipv6_get_dsfield(ipv6_hdr(skb)));
		ip6_local_out(net, NULL, skb);
	}
}

static void send(struct nfx_net *nn, struct nfx_target *t, const struct nfx_dest *d,
		 struct sk_buff *skb, u32 off, struct nfx_left *left)
{
	u16 family = d->to.family;
	u8 ttl = family == AF_INET ? ip_hdr(skb)->ttl : ipv6_hdr(skb)->hop_limit;
	struct dst_entry *dst;

	if (ttl <= 1 || !left->sends || !left->hops) {
		drop(t, skb, NFX_S_TTL);
		return;
	}
	left->sends--;
	if (skb_ensure_writable(skb, off + sizeof(struct udphdr))) {
		drop(t, skb, NFX_S_NO_MEMORY);
		return;
	}
	dst = route_cached(nn->net, d);
	if (!dst) {
		drop(t, skb, NFX_S_NO_ROUTE);
		return;
	}
	if (family == AF_INET)
		rewrite4(skb, off, d);
	else
		rewrite6(skb, off, d);
	/* For another target of this host: handled at once, so that left bounds circles. */
	if (dst->dev->flags & IFF_LOOPBACK) {
		u32 bytes = skb->len - off - sizeof(struct udphdr);
		bool taken;

		left->hops--;
		taken = nfx_relay_again(nn, skb, family, left);
		left->hops++;
		if (taken) {
			nfx_count_packets(t->count, NFX_S_SENT, 1, bytes);
			return;
		}
	}
	clean(skb);
	skb_dst_set_noref(skb, dst);
	out(nn->net, t, skb, family, off);
}

static __always_inline void send_all(struct nfx_net *nn, struct nfx_target *t,
				     const struct nfx_plan *p, struct sk_buff *skb, u32 off,
				     struct nfx_left *left)
{
	for (u32 i = 0; i + 1 < p->dests; i++) {
		struct sk_buff *copy = skb_copy(skb, GFP_ATOMIC);

		if (copy)
			send(nn, t, &p->dest[i], copy, off, left);
		else
			nfx_count_one(t->count, NFX_S_NO_MEMORY);
	}
	send(nn, t, &p->dest[p->dests - 1], skb, off, left);
}

/* Splits a coalesced packet. From here on each part is handled separately. */
static void send_segments(struct nfx_net *nn, struct nfx_target *t, const struct nfx_plan *p,
			  struct sk_buff *skb, u32 off)
{
	struct sk_buff *segments = skb_gso_segment(skb, 0), *one, *next;

	if (IS_ERR_OR_NULL(segments)) {
		drop(t, skb, NFX_S_NO_MEMORY);
		return;
	}
	consume_skb(skb);
	skb_list_walk_safe(segments, one, next) {
		struct nfx_left left = NFX_LEFT_FIRST;

		skb_mark_not_on_list(one);
		send_all(nn, t, p, one, off, &left);
	}
}

void nfx_relay(struct nfx_net *nn, struct nfx_target *t, const struct nfx_plan *p,
	       struct sk_buff *skb, u32 off, struct nfx_left *left)
{
	if (skb_is_gso(skb))
		send_segments(nn, t, p, skb, off);
	else
		send_all(nn, t, p, skb, off, left);
}

/* The daemon wrote headers and checksums; they are sent unchanged. */
void nfx_send_verdict(struct nfx_net *nn, struct nfx_target *t, struct sk_buff *skb, u16 family,
		      u32 off)
{
	const struct udphdr *udp;
	struct dst_entry *dst;

	if (skb_ensure_writable(skb, off + sizeof(*udp))) {
		drop(t, skb, NFX_S_NO_MEMORY);
		return;
	}
	udp = (struct udphdr *)(skb->data + off);
	if (family == AF_INET)
		dst = route4(nn->net, ip_hdr(skb)->daddr, ip_hdr(skb)->saddr, udp->dest,
			     udp->source);
	else
		dst = route6(nn->net, &ipv6_hdr(skb)->daddr, &ipv6_hdr(skb)->saddr, udp->dest,
			     udp->source, skb->dev);
	if (!dst) {
		drop(t, skb, NFX_S_NO_ROUTE);
		return;
	}
	clean(skb);
	skb_dst_set(skb, dst);
	out(nn->net, t, skb, family, off);
}
