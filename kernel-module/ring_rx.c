// SPDX-License-Identifier: GPL-2.0
/* A received datagram is copied to the next slot of its worker's ring. Its checksum is computed in
 * the same pass, so a damaged one leaves a slot that is not published. */
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <net/checksum.h>
#include <net/dsfield.h>
#include <net/ip6_checksum.h>

#include "ring.h"

static bool sum_fits(const struct sk_buff *skb, const struct nfx_datagram *d, __wsum sum)
{
	if (d->to->family == AF_INET)
		return !csum_tcpudp_magic(ip_hdr(skb)->saddr, ip_hdr(skb)->daddr, d->udp_len,
					  IPPROTO_UDP, sum);
	return !csum_ipv6_magic(&d->from->addr, &d->to->addr, d->udp_len, IPPROTO_UDP, sum);
}

/* Sum of the header's four 16-bit words. */
static __wsum header_sum(const struct udphdr *u)
{
	return (__force __wsum)((__force u32)u->source + (__force u32)u->dest +
				(__force u32)u->len + (__force u32)u->check);
}

/* Nearly all packets are in one piece. */
static __wsum copy_and_sum(u8 *to, const struct sk_buff *skb, u32 at, u32 len)
{
	return skb_headlen(skb) >= at + len ? csum_partial_copy_nocheck(skb->data + at, to, len)
					    : skb_copy_and_csum_bits(skb, at, to, len);
}

/* Packets of this host, and coalesced ones, were checked already. */
static bool copy(u8 *to, const struct sk_buff *skb, const struct nfx_datagram *d)
{
	u32 at = d->off + sizeof(struct udphdr), len = d->udp_len - sizeof(struct udphdr);
	struct udphdr room;
	const struct udphdr *udp = skb_header_pointer(skb, d->off, sizeof(room), &room);

	if (!udp)
		return false;
	if (skb->ip_summed == CHECKSUM_UNNECESSARY || skb->ip_summed == CHECKSUM_PARTIAL)
		return !skb_copy_bits(skb, at, to, len);
	if (!udp->check)
		return d->to->family == AF_INET && !skb_copy_bits(skb, at, to, len);
	return sum_fits(skb, d, csum_add(header_sum(udp), copy_and_sum(to, skb, at, len)));
}

static void describe(struct nfx_recv *out, const struct sk_buff *skb, const struct nfx_datagram *d)
{
	u64 at = skb_tstamp(skb);
	bool v4 = d->to->family == AF_INET;

	out->t_ns = at ? at : ktime_get_real_ns();
	out->cookie = d->cookie;
	out->len = d->udp_len - sizeof(struct udphdr);
	out->ifindex = skb->dev->ifindex;
	out->family = d->to->family;
	out->tos = v4 ? ip_hdr(skb)->tos : ipv6_get_dsfield(ipv6_hdr(skb));
	out->port = d->to->port;
	out->from_port = d->from->port;
	out->flags = d->emergency ? NFX_RECV_EMERGENCY : 0;
	memcpy(out->addr, &d->to->addr, sizeof(out->addr));
	memcpy(out->from, &d->from->addr, sizeof(out->from));
}

static enum nfx_put put(struct nfx_ring *r, const struct sk_buff *skb, const struct nfx_datagram *d)
{
	u32 slot = r->head & (r->slots - 1), used = r->head - r->released;

	if (used >= (d->emergency ? r->slots : r->ordinary)) {
		r->stat[d->emergency ? NFX_R_FULL_EMERGENCY : NFX_R_FULL]++;
		return NFX_PUT_FULL;
	}
	if (d->udp_len - sizeof(struct udphdr) > r->room) {
		r->stat[NFX_R_TOO_LONG]++;
		return NFX_PUT_TOO_LONG;
	}
	if (!copy(r->memory + r->first + (size_t)slot * r->stride, skb, d))
		return NFX_PUT_DAMAGED;
	describe(&r->recv[slot], skb, d);
	r->head++;
	r->stat[NFX_R_PACKETS]++;
	smp_store_release(&r->control->published, r->head);
	return NFX_PUT;
}

bool nfx_ring_lock(struct nfx_ring *r)
{
	spin_lock(&r->lock);
	if (likely(!READ_ONCE(r->closed)))
		return true;
	spin_unlock(&r->lock);
	return false;
}

void nfx_ring_unlock(struct nfx_ring *r)
{
	bool due = r->due;

	r->due = false;
	spin_unlock(&r->lock);
	if (due)
		nfx_ring_wake(r);
}

/* Published at once: a worker that is awake may take it, and one that sleeps is not woken by it
 * unless it is due. */
enum nfx_put nfx_ring_put_part(struct nfx_ring *r, const struct sk_buff *skb,
			       const struct nfx_datagram *d)
{
	enum nfx_put result = put(r, skb, d);

	/* Other packets do not wait, and must not restart the window of those that do. */
	if ((result == NFX_PUT || result == NFX_PUT_FULL) &&
	    nfx_ring_due(r, result == NFX_PUT_FULL))
		r->due = true;
	return result;
}

enum nfx_put nfx_ring_put(struct nfx_ring *r, const struct sk_buff *skb,
			  const struct nfx_datagram *d)
{
	enum nfx_put result;

	if (!nfx_ring_lock(r))
		return NFX_PUT_CLOSED;
	result = nfx_ring_put_part(r, skb, d);
	nfx_ring_unlock(r);
	return result;
}
