// SPDX-License-Identifier: GPL-2.0
/* Sending: addresses, ports, checksum, TTL and TOS rewritten, and out by the routing table, past connection
 * tracking. The TTL goes down by one, so that targets which send to each other end. The UDP checksum is
 * changed by the difference: a packet that came in damaged leaves damaged. */
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <net/dst_cache.h>
#include <net/dst_metadata.h>
#include <net/inet_ecn.h>
#include <net/dsfield.h>
#include <net/ip.h>
#include <net/ip6_route.h>
#include <net/ipv6.h>
#include <net/netfilter/nf_conntrack.h>
#include <net/route.h>

#include "nf_xcipher.h"

static void drop(struct nfx_target *t, struct sk_buff *skb, int why)
{
	nfx_count_one(t->count, why);
	kfree_skb(skb);
}

/* What the way in left on it is of no meaning for the way out. */
static void clean(struct sk_buff *skb)
{
	skb_orphan(skb);
	nf_reset_ct(skb);
	nf_ct_set(skb, NULL, IP_CT_UNTRACKED);
	nf_reset_trace(skb);
	skb_ext_reset(skb);
	skb_forward_csum(skb);
	skb_dst_drop(skb);
	skb->mark = 0;
	skb->priority = 0;
	skb->tstamp = 0;
	skb->ignore_df = 0;
}

/* --- Routes: a reference, or NULL ------------------------------------------------------------- */

static struct dst_entry *route4(struct net *net, __be32 to, __be32 from)
{
	struct flowi4 fl = {
		.daddr = to,
		.saddr = from,
		.flowi4_proto = IPPROTO_UDP,
	};
	struct rtable *rt = ip_route_output_key(net, &fl);

	return IS_ERR(rt) ? NULL : &rt->dst;
}

static struct dst_entry *route6(struct net *net, const struct in6_addr *to,
				const struct in6_addr *from)
{
	struct flowi6 fl = {
		.daddr = *to,
		.saddr = *from,
		.flowi6_proto = IPPROTO_UDP,
	};
	struct dst_entry *dst = ip6_route_output(net, NULL, &fl);

	if (!dst->error)
		return dst;
	dst_release(dst);
	return NULL;
}

static struct dst_entry *route_cached4(struct net *net, struct nfx_dest *d)
{
	__be32 to = d->to.addr.s6_addr32[0], from = d->from.addr.s6_addr32[0], saddr;
	struct rtable *rt = dst_cache_get_ip4(&d->cache, &saddr);
	struct dst_entry *dst = rt ? &rt->dst : route4(net, to, from);

	if (!rt && dst)
		dst_cache_set_ip4(&d->cache, dst, from);
	return dst;
}

static struct dst_entry *route_cached6(struct net *net, struct nfx_dest *d)
{
	struct in6_addr saddr;
	struct dst_entry *cached = dst_cache_get_ip6(&d->cache, &saddr);
	struct dst_entry *dst = cached ? cached : route6(net, &d->to.addr, &d->from.addr);

	if (!cached && dst)
		dst_cache_set_ip6(&d->cache, dst, &d->from.addr);
	return dst;
}

/* --- Rewriting --------------------------------------------------------------------------------- */

static bool has_checksum(const struct sk_buff *skb, const struct udphdr *udp)
{
	return udp->check || skb->ip_summed == CHECKSUM_PARTIAL;
}

static void ports_rewrite(struct sk_buff *skb, struct udphdr *udp, const struct nfx_dest *d)
{
	if (has_checksum(skb, udp)) {
		inet_proto_csum_replace2(&udp->check, skb, udp->source, d->from.port, false);
		inet_proto_csum_replace2(&udp->check, skb, udp->dest, d->to.port, false);
		if (!udp->check)
			udp->check = CSUM_MANGLED_0;
	}
	udp->source = d->from.port;
	udp->dest = d->to.port;
}

static void rewrite4(struct sk_buff *skb, u32 off, const struct nfx_dest *d)
{
	struct iphdr *ip = ip_hdr(skb);
	struct udphdr *udp = (struct udphdr *)(skb->data + off);
	__be32 to = d->to.addr.s6_addr32[0], from = d->from.addr.s6_addr32[0];

	if (has_checksum(skb, udp)) {
		inet_proto_csum_replace4(&udp->check, skb, ip->saddr, from, true);
		inet_proto_csum_replace4(&udp->check, skb, ip->daddr, to, true);
	}
	ports_rewrite(skb, udp, d);
	ip->saddr = from;
	ip->daddr = to;
	ip->ttl--;
	if (d->set_tos)
		ip->tos = d->tos;
	ip_send_check(ip);
}

static void rewrite6(struct sk_buff *skb, u32 off, const struct nfx_dest *d)
{
	struct ipv6hdr *ip = ipv6_hdr(skb);
	struct udphdr *udp = (struct udphdr *)(skb->data + off);

	if (has_checksum(skb, udp)) {
		inet_proto_csum_replace16(&udp->check, skb, ip->saddr.s6_addr32,
					  d->from.addr.s6_addr32, true);
		inet_proto_csum_replace16(&udp->check, skb, ip->daddr.s6_addr32,
					  d->to.addr.s6_addr32, true);
	}
	ports_rewrite(skb, udp, d);
	ip->saddr = d->from.addr;
	ip->daddr = d->to.addr;
	ip->hop_limit--;
	if (d->set_tos)
		ipv6_change_dsfield(ip, 0, d->tos);
}

/* --- Sending ----------------------------------------------------------------------------------- */

/* Takes the skb and the reference to dst. */
static void out(struct net *net, struct nfx_target *t, struct sk_buff *skb, struct dst_entry *dst,
		u16 family, u32 bytes)
{
	if (!dst) {
		drop(t, skb, NFX_S_NO_ROUTE);
		return;
	}
	clean(skb);
	skb_dst_set(skb, dst);
	if (skb->len > dst_mtu(dst) &&
	    (family == AF_INET6 || ip_hdr(skb)->frag_off & htons(IP_DF))) {
		drop(t, skb, NFX_S_TOO_BIG);
		return;
	}
	nfx_count_packet(t->count, NFX_S_SENT, bytes);
	if (family == AF_INET) {
		memset(IPCB(skb), 0, sizeof(*IPCB(skb)));
		ip_local_out(net, NULL, skb);
	} else {
		memset(IP6CB(skb), 0, sizeof(*IP6CB(skb)));
		ip6_local_out(net, NULL, skb);
	}
}

static void send(struct net *net, struct nfx_target *t, struct nfx_dest *d, struct sk_buff *skb,
		 u32 off)
{
	u16 family = d->to.family;
	u32 bytes = skb->len - off - sizeof(struct udphdr);
	u8 ttl = family == AF_INET ? ip_hdr(skb)->ttl : ipv6_hdr(skb)->hop_limit;

	if (ttl <= 1) {
		drop(t, skb, NFX_S_TTL);
		return;
	}
	if (skb_ensure_writable(skb, off + sizeof(struct udphdr))) {
		drop(t, skb, NFX_S_NO_MEMORY);
		return;
	}
	if (family == AF_INET) {
		rewrite4(skb, off, d);
		out(net, t, skb, route_cached4(net, d), family, bytes);
	} else {
		rewrite6(skb, off, d);
		out(net, t, skb, route_cached6(net, d), family, bytes);
	}
}

void nfx_relay(struct net *net, struct nfx_target *t, const struct nfx_plan *p, struct sk_buff *skb,
	       u32 off)
{
	for (u32 i = 0; i + 1 < p->dests; i++) {
		struct sk_buff *copy = skb_copy(skb, GFP_ATOMIC);

		if (copy)
			send(net, t, (struct nfx_dest *)&p->dest[i], copy, off);
		else
			nfx_count_one(t->count, NFX_S_NO_MEMORY);
	}
	send(net, t, (struct nfx_dest *)&p->dest[p->dests - 1], skb, off);
}

/* The daemon wrote headers and checksums; they are sent as they are. */
void nfx_send_verdict(struct net *net, struct nfx_target *t, struct sk_buff *skb, u16 family)
{
	u32 headers = family == AF_INET ? ip_hdrlen(skb) : sizeof(struct ipv6hdr);
	struct dst_entry *dst;

	if (family == AF_INET)
		dst = route4(net, ip_hdr(skb)->daddr, ip_hdr(skb)->saddr);
	else
		dst = route6(net, &ipv6_hdr(skb)->daddr, &ipv6_hdr(skb)->saddr);
	out(net, t, skb, dst, family, skb->len - headers - sizeof(struct udphdr));
}
