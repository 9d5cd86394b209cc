// SPDX-License-Identifier: GPL-2.0
/* The way of a packet, first part: which target is it for, is it media (RFC 7983, RFC 5761), from the right
 * source, within its rate, and who deals with it. Two hooks before routing, behind defragmentation and before
 * connection tracking: the first for what arrives, the second for what came back rewritten from a queue.
 * What is for no target costs one look-up. Hooks run with bottom halves off, but a verdict comes from a process. */
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/jiffies.h>
#include <linux/netfilter_ipv4.h>
#include <linux/netfilter_ipv6.h>
#include <linux/udp.h>
#include <net/ip.h>
#include <net/ipv6.h>

#include "compat.h"
#include "nf_xcipher.h"

/* What a packet says of itself. */
struct seen {
	struct nfx_key to, from;
	u32 off;    /* of the UDP header */
	bool plain; /* no IP options, no extension headers */
	u16 udp_len;
};

static bool see_udp(struct seen *s, const struct sk_buff *skb, u16 family)
{
	struct udphdr room;
	const struct udphdr *udp = skb_header_pointer(skb, s->off, sizeof(room), &room);

	if (!udp)
		return false;
	s->to.port = udp->dest;
	s->from.port = udp->source;
	s->udp_len = ntohs(udp->len);
	s->to.family = family;
	s->from.family = family;
	return true;
}

static bool see_ip4(struct seen *s, const struct sk_buff *skb)
{
	const struct iphdr *ip = ip_hdr(skb);

	if (ip->protocol != IPPROTO_UDP || ip_is_fragment(ip))
		return false;
	s->off = skb_network_offset(skb) + ip->ihl * 4;
	s->plain = ip->ihl == 5;
	memset(&s->to.addr, 0, sizeof(s->to.addr));
	memset(&s->from.addr, 0, sizeof(s->from.addr));
	s->to.addr.s6_addr32[0] = ip->daddr;
	s->from.addr.s6_addr32[0] = ip->saddr;
	return see_udp(s, skb, AF_INET);
}

static bool see_ip6(struct seen *s, const struct sk_buff *skb)
{
	const struct ipv6hdr *ip = ipv6_hdr(skb);
	unsigned int off = skb_network_offset(skb);
	unsigned short frag = 0;
	int flags = 0;

	s->plain = ip->nexthdr == IPPROTO_UDP;
	if (s->plain)
		s->off = off + sizeof(*ip);
	else if (ipv6_find_hdr(skb, &off, IPPROTO_UDP, &frag, &flags) == IPPROTO_UDP && !frag &&
		 !(flags & IP6_FH_F_FRAG))
		s->off = off;
	else
		return false;
	s->to.addr = ip->daddr;
	s->from.addr = ip->saddr;
	return see_udp(s, skb, AF_INET6);
}

static bool see(struct seen *s, const struct sk_buff *skb, u16 family)
{
	return family == AF_INET ? see_ip4(s, skb) : see_ip6(s, skb);
}

static bool same(const struct nfx_key *a, const struct nfx_key *b)
{
	return a->port == b->port && ipv6_addr_equal(&a->addr, &b->addr);
}

enum kind { KIND_RTP, KIND_RTCP, KIND_OTHER, KIND_JUNK };

/* By the first two bytes and the length, as the daemon does it. */
static enum kind kind_of(const u8 *data, u32 len, u32 flags)
{
	u8 first = len ? data[0] : 0;

	if (len && (first < 4 || (first >= 20 && first < 64)))
		return KIND_OTHER; /* STUN, DTLS */
	if (len < 2 || first >> 6 != 2)
		return flags & NFX_FLAG_STRICT ? KIND_JUNK : KIND_OTHER;
	if (data[1] >= 192 && data[1] < 224)
		return len >= 8 ? KIND_RTCP : KIND_JUNK;
	return len >= 12 ? KIND_RTP : KIND_JUNK;
}

/* At most one a second of a kind and target: told is where the last one's time is. */
static void tell(struct nfx_net *nn, struct nfx_target *t, unsigned long *told, u8 event,
		 const struct nfx_key *source, u32 ssrc)
{
	unsigned long now = jiffies;

	if (time_before(now, READ_ONCE(*told) + HZ))
		return;
	WRITE_ONCE(*told, now);
	nfx_event(nn, t, event, source, ssrc);
}

static bool over_limits(struct nfx_net *nn, struct nfx_target *t, const struct nfx_plan *p,
			const struct seen *s)
{
	int which;

	/* The source's limit first: one that floods does not use up what the target may have. */
	if (p->source_rate && !nfx_source_take(nn, &s->from.addr, p->source_rate))
		which = NFX_S_SOURCE_DROPS;
	else if (p->rate && !nfx_bucket_take(&t->bucket, p->rate))
		which = NFX_S_RATE_DROPS;
	else
		return false;
	nfx_count_one(t->count, which);
	tell(nn, t, &t->told_flood, NFX_EVENT_FLOOD, &s->from, 0);
	return true;
}

static u8 to_daemon(const struct nfx_plan *p)
{
	return p->with_queue ? NFX_ACTION_QUEUE : NFX_ACTION_PASS;
}

static void taken(struct nfx_target *t, enum kind kind, u32 len)
{
	unsigned long now = jiffies | 1; /* never 0 */

	nfx_count_packet(t->count, kind == KIND_RTCP ? NFX_S_RTCP_PACKETS : NFX_S_RTP_PACKETS, len);
	/* Written once a tick at most: other processors may read it. */
	if (READ_ONCE(t->seen) != now) {
		WRITE_ONCE(t->seen, now);
		if (READ_ONCE(t->told_silence))
			WRITE_ONCE(t->told_silence, false);
	}
}

static unsigned int act(struct nfx_net *nn, struct nfx_target *t, const struct nfx_plan *p,
			struct sk_buff *skb, const struct seen *s, u8 action)
{
	switch (action) {
	case NFX_ACTION_QUEUE:
		nfx_count_one(t->count, NFX_S_QUEUED);
		return NF_QUEUE_NR(p->queue) |
		       (p->flags & NFX_FLAG_BYPASS ? NF_VERDICT_FLAG_QUEUE_BYPASS : 0);
	case NFX_ACTION_RELAY:
		nfx_count_packet(t->count, NFX_S_RELAYED, s->udp_len - sizeof(struct udphdr));
		nfx_relay(nn->net, t, p, skb, s->off);
		return NF_STOLEN;
	default:
		return NF_ACCEPT;
	}
}

static unsigned int arrive(struct nfx_net *nn, struct nfx_target *t, struct sk_buff *skb,
			   const struct seen *s)
{
	const struct nfx_plan *p = rcu_dereference(t->plan);
	u32 len = s->udp_len - sizeof(struct udphdr);
	const u8 *data;
	enum kind kind;
	u8 room[12], action;

	if (s->udp_len < sizeof(struct udphdr) || s->udp_len > skb->len - s->off) {
		nfx_count_one(t->count, NFX_S_MALFORMED);
		return NF_DROP;
	}
	data = skb_header_pointer(skb, s->off + sizeof(struct udphdr), min_t(u32, len, sizeof(room)),
				  room);
	kind = data ? kind_of(data, len, p->flags) : KIND_JUNK;
	if (kind == KIND_JUNK) {
		nfx_count_one(t->count, NFX_S_MALFORMED);
		return NF_DROP;
	}
	action = kind == KIND_RTCP ? p->rtcp : p->rtp;
	if (action == NFX_ACTION_DROP) {
		nfx_count_one(t->count, NFX_S_DROPPED);
		return NF_DROP;
	}
	if (kind == KIND_OTHER) {
		if (over_limits(nn, t, p, s))
			return NF_DROP;
		nfx_count_one(t->count, NFX_S_OTHER);
		return NF_ACCEPT;
	}
	if (p->source.family && !same(&p->source, &s->from)) {
		nfx_count_one(t->count, NFX_S_MISMATCH);
		if (p->mismatch == NFX_MISMATCH_DROP)
			return NF_DROP;
		if (p->mismatch == NFX_MISMATCH_PASS) {
			tell(nn, t, &t->told_source, NFX_EVENT_SOURCE, &s->from, 0);
			action = to_daemon(p);
		}
	}
	if (over_limits(nn, t, p, s))
		return NF_DROP;
	if (kind == KIND_RTP && p->with_ssrc && get_unaligned_be32(data + 8) != p->ssrc) {
		tell(nn, t, &t->told_ssrc, NFX_EVENT_SSRC, &s->from, get_unaligned_be32(data + 8));
		action = to_daemon(p);
	}
	/* Options would have to be looked into, and what came glued together taken apart: the daemon's. */
	if (action == NFX_ACTION_RELAY && (!s->plain || skb_is_gso(skb)))
		action = to_daemon(p);
	taken(t, kind, len);
	return act(nn, t, p, skb, s, action);
}

static unsigned int hook_arrive(void *priv, struct sk_buff *skb, const struct nf_hook_state *state)
{
	struct nfx_net *nn = nfx_net(state->net);
	struct nfx_target *t;
	struct seen s;

	if (!see(&s, skb, state->pf == NFPROTO_IPV4 ? AF_INET : AF_INET6))
		return NF_ACCEPT;
	t = nfx_table_find(nn, &s.to);
	return t ? arrive(nn, t, skb, &s) : NF_ACCEPT;
}

/* The mark is known to this kernel and to daemons only, and a packet of the network has none: so nobody outside can
 * have something sent. And it is sent only from an address and port of a target. */
static unsigned int hook_return(void *priv, struct sk_buff *skb, const struct nf_hook_state *state)
{
	struct nfx_net *nn = nfx_net(state->net);
	u16 family = state->pf == NFPROTO_IPV4 ? AF_INET : AF_INET6;
	struct nfx_target *t = NULL;
	unsigned int verdict = NF_STOLEN;
	struct seen s;

	if (likely(skb->mark != nn->mark))
		return NF_ACCEPT;
	local_bh_disable();
	if (see(&s, skb, family))
		t = nfx_table_find(nn, &s.from);
	if (t) {
		nfx_send_verdict(nn->net, t, skb, family);
	} else {
		nfx_count_one(nn->count, NFX_S_DROPPED);
		verdict = NF_DROP;
	}
	local_bh_enable();
	return verdict;
}

static const struct nf_hook_ops ops[] = {
	{
		.hook = hook_arrive,
		.pf = NFPROTO_IPV4,
		.hooknum = NF_INET_PRE_ROUTING,
		.priority = NF_IP_PRI_CONNTRACK_DEFRAG + 1,
	},
	{
		.hook = hook_return,
		.pf = NFPROTO_IPV4,
		.hooknum = NF_INET_PRE_ROUTING,
		.priority = NF_IP_PRI_CONNTRACK_DEFRAG + 2,
	},
	{
		.hook = hook_arrive,
		.pf = NFPROTO_IPV6,
		.hooknum = NF_INET_PRE_ROUTING,
		.priority = NF_IP6_PRI_CONNTRACK_DEFRAG + 1,
	},
	{
		.hook = hook_return,
		.pf = NFPROTO_IPV6,
		.hooknum = NF_INET_PRE_ROUTING,
		.priority = NF_IP6_PRI_CONNTRACK_DEFRAG + 2,
	},
};

int nfx_hooks_register(struct nfx_net *nn)
{
	int err = nn->hooked ? 0 : nf_register_net_hooks(nn->net, ops, ARRAY_SIZE(ops));

	if (!err)
		nn->hooked = true;
	return err;
}

void nfx_hooks_unregister(struct nfx_net *nn)
{
	if (nn->hooked)
		nf_unregister_net_hooks(nn->net, ops, ARRAY_SIZE(ops));
	nn->hooked = false;
}
