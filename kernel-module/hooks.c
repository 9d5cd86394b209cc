// SPDX-License-Identifier: GPL-2.0
/* The first half of a packet's way: find its target, check that it is media (RFC 7983, RFC 5761),
 * from the right source and within its rate, and choose who handles it. Two hooks run before
 * routing, after defragmentation and before connection tracking: one for arriving packets, one for
 * packets that return rewritten from a queue. A packet without a target costs one look-up. Hooks
 * run in softirq; a verdict comes from a process. */
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/jiffies.h>
#include <linux/netfilter_ipv4.h>
#include <linux/netfilter_ipv6.h>
#include <linux/udp.h>
#include <net/checksum.h>
#include <net/ip.h>
#include <net/ip6_checksum.h>
#include <net/ipv6.h>
#include <net/xfrm.h>

#include "compat.h"
#include "nf_xcipher.h"

enum kind { KIND_RTP, KIND_RTCP, KIND_UNREAD, KIND_OTHER, KIND_JUNK };

/* The headers of a packet. */
struct seen {
	struct nfx_key to, from;
	u32 off;    /* of the UDP header */
	bool plain; /* no IP options, no extension headers */
	u16 udp_len;
	u32 packets; /* more than one if coalesced (GSO, GRO) */
	u32 bytes;   /* of payload */
	u8 action;   /* NFX_ACTION_*, once it is decided */
	enum kind kind; /* valid once the packet is known not to be junk */
};

static __always_inline bool see_udp(struct seen *s, const struct sk_buff *skb, u16 family)
{
	struct udphdr room;
	const struct udphdr *udp = skb_header_pointer(skb, s->off, sizeof(room), &room);

	if (!udp)
		return false;
	s->to.port = udp->dest;
	s->from.port = udp->source;
	s->udp_len = ntohs(udp->len);
	s->packets = skb_is_gso(skb) ? max_t(u32, skb_shinfo(skb)->gso_segs, 1) : 1;
	s->bytes = s->udp_len - sizeof(*udp); /* valid only after udp_len was checked */
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
	/* Stops at an authentication header: IPsec has not verified it yet. */
	int flags = IP6_FH_F_AUTH;

	s->plain = ip->nexthdr == IPPROTO_UDP;
	if (s->plain)
		s->off = off + sizeof(*ip);
	else if (ipv6_find_hdr(skb, &off, -1, &frag, &flags) == IPPROTO_UDP && !frag &&
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

/* By the first two bytes and the length, as in the daemon. */
static enum kind kind_of(const u8 *data, u32 len, u32 flags)
{
	u8 first = len ? data[0] : 0;

	if (flags & NFX_FLAG_UNREAD)
		return KIND_UNREAD;
	if (len && (first < 4 || (first >= 20 && first < 64)))
		return KIND_OTHER; /* STUN, DTLS */
	if (len < 2 || first >> 6 != 2)
		return flags & NFX_FLAG_STRICT ? KIND_JUNK : KIND_OTHER;
	if (data[1] >= 192 && data[1] < 224)
		return len >= 8 ? KIND_RTCP : KIND_JUNK;
	return len >= 12 ? KIND_RTP : KIND_JUNK;
}

/* Sends at most one event per second, kind and target. told: the time of the last event. */
static void tell(struct nfx_net *nn, struct nfx_target *t, unsigned long *told, u8 event,
		 const struct nfx_key *source, u32 ssrc)
{
	unsigned long now = jiffies;

	if (time_before(now, READ_ONCE(*told) + HZ))
		return;
	WRITE_ONCE(*told, now);
	nfx_event(nn, t, event, source, ssrc);
}

/* Strangers may send any number of packets, which must not take the terminal's share. As long as no
 * source is confirmed, any RTP and RTCP may be the terminal's. */
static struct nfx_bucket *bucket_of(struct nfx_target *t, const struct nfx_plan *p,
				    const struct seen *s)
{
	bool known = p->source.family ? same(&p->source, &s->from) : s->kind != KIND_OTHER;

	return known ? &t->bucket : &t->strangers;
}

static bool over_limits(struct nfx_net *nn, struct nfx_target *t, const struct nfx_plan *p,
			const struct seen *s)
{
	int which;

	/* The source's limit comes first, so that a flooding source does not use up the
	 * target's. */
	if (p->source_rate && !nfx_source_take(nn, &s->from.addr, p->source_rate, s->packets))
		which = NFX_S_SOURCE_DROPS;
	else if (p->rate && !nfx_bucket_take(bucket_of(t, p, s), p->rate, s->packets))
		which = NFX_S_RATE_DROPS;
	else
		return false;
	nfx_count_add(t->count, which, s->packets);
	tell(nn, t, &t->told_flood, NFX_EVENT_FLOOD, &s->from, 0);
	return true;
}

static u8 to_daemon(const struct nfx_plan *p)
{
	return p->with_queue ? NFX_ACTION_QUEUE : NFX_ACTION_PASS;
}

static void taken(struct nfx_target *t, const struct seen *s)
{
	unsigned long now = jiffies ? jiffies : 1; /* 0 means that no packet has come */
	bool rtcp = s->kind == KIND_RTCP;

	nfx_count_packets(t->count, rtcp ? NFX_S_RTCP_PACKETS : NFX_S_RTP_PACKETS, s->packets,
			  s->bytes);
	/* Written at most once a tick, because other processors read it. */
	if (READ_ONCE(t->seen) != now) {
		WRITE_ONCE(t->seen, now);
		if (READ_ONCE(t->told_silence))
			WRITE_ONCE(t->told_silence, false);
	}
}

/* As nf_checksum(), but in one pass for most packets: those in one piece that the device did not
 * check. */
static bool sums(struct sk_buff *skb, const struct seen *s)
{
	u16 len = s->udp_len;
	__wsum sum;

	if (skb->ip_summed != CHECKSUM_NONE || skb_headlen(skb) < s->off + len)
		return !nf_checksum(skb, NF_INET_PRE_ROUTING, s->off, IPPROTO_UDP, s->to.family);
	sum = csum_partial(skb->data + s->off, len, 0);
	if (s->to.family == AF_INET)
		return !csum_tcpudp_magic(s->from.addr.s6_addr32[0], s->to.addr.s6_addr32[0], len,
					  IPPROTO_UDP, sum);
	return !csum_ipv6_magic(&s->from.addr, &s->to.addr, len, IPPROTO_UDP, sum);
}

/* Trims the packet to its UDP length, because padding would be sent along, and checks the checksum.
 * Packets for the daemon's queue keep their padding, which their IP length includes. Their checksum
 * cannot be checked then. */
static bool sound(struct sk_buff *skb, const struct seen *s, u8 action)
{
	u32 len = s->off + s->udp_len;
	struct udphdr room;
	const struct udphdr *udp;

	if (skb_is_gso(skb) || (skb->len > len && action == NFX_ACTION_QUEUE))
		return true;
	if (skb->len > len && pskb_trim_rcsum(skb, len))
		return false;
	udp = skb_header_pointer(skb, s->off, sizeof(room), &room);
	if (!udp || skb->ip_summed == CHECKSUM_PARTIAL)
		return udp;
	if (!udp->check) {
		skb->ip_summed = CHECKSUM_NONE;
		return s->to.family == AF_INET;
	}
	if (!sums(skb, s))
		return false;
	/* Rewriting then need not update the checksum. */
	skb->ip_summed = CHECKSUM_UNNECESSARY;
	skb->csum_level = 0;
	return true;
}

/* --- To a worker's ring ----------------------------------------------------------------------- */

static struct nfx_datagram datagram(const struct nfx_plan *p, const struct seen *s)
{
	return (struct nfx_datagram){
		.to = &s->to,
		.from = &s->from,
		.cookie = p->cookie,
		.off = s->off,
		.udp_len = s->udp_len,
		.emergency = p->flags & NFX_FLAG_EMERGENCY,
	};
}

static enum nfx_put to_ring_one(struct nfx_ring *r, const struct nfx_plan *p,
				const struct sk_buff *skb, const struct seen *s)
{
	struct nfx_datagram d = datagram(p, s);

	return nfx_ring_put(r, skb, &d);
}

/* The parts have valid checksums, because only such packets are coalesced. */
static void to_ring_parts(struct nfx_target *t, struct nfx_ring *r, const struct nfx_plan *p,
			  struct sk_buff *parts, struct seen s)
{
	struct sk_buff *one, *next;

	skb_list_walk_safe(parts, one, next) {
		struct nfx_datagram d;

		skb_mark_not_on_list(one);
		one->ip_summed = CHECKSUM_UNNECESSARY;
		if (!see_udp(&s, one, s.to.family) || s.udp_len < sizeof(struct udphdr) ||
		    s.udp_len > one->len - s.off) {
			nfx_count_one(t->count, NFX_S_MALFORMED);
		} else {
			d = datagram(p, &s);
			if (nfx_ring_put_part(r, one, &d) != NFX_PUT)
				nfx_count_one(t->count, NFX_S_RING_DROPS);
		}
		consume_skb(one);
	}
}

/* Splits a coalesced packet. The ring is locked before: a packet that was split cannot go to the
 * queue any more. */
static enum nfx_put to_ring_split(struct nfx_target *t, struct nfx_ring *r,
				  const struct nfx_plan *p, struct sk_buff *skb,
				  const struct seen *s)
{
	struct sk_buff *parts;

	if (!nfx_ring_lock(r))
		return NFX_PUT_CLOSED;
	parts = skb_gso_segment(skb, 0);
	if (!IS_ERR_OR_NULL(parts))
		to_ring_parts(t, r, p, parts, *s);
	nfx_ring_unlock(r);
	return IS_ERR_OR_NULL(parts) ? NFX_PUT_DAMAGED : NFX_PUT;
}

/* NF_QUEUE: the ring has just ended. */
static unsigned int to_ring(struct nfx_target *t, struct nfx_ring *r, const struct nfx_plan *p,
			    struct sk_buff *skb, const struct seen *s)
{
	enum nfx_put put = skb_is_gso(skb) ? to_ring_split(t, r, p, skb, s)
					   : to_ring_one(r, p, skb, s);

	if (put == NFX_PUT_CLOSED)
		return NF_QUEUE;
	if (put == NFX_PUT_DAMAGED) {
		nfx_count_one(t->count, NFX_S_MALFORMED);
		return NF_DROP;
	}
	if (put != NFX_PUT)
		nfx_count_one(t->count, NFX_S_RING_DROPS);
	taken(t, s);
	nfx_count_add(t->count, NFX_S_QUEUED, s->packets);
	/* Bottom halves are off, so the skb may return to this processor's cache, which ring_tx.c
	 * uses. */
	napi_consume_skb(skb, 1);
	return NF_STOLEN;
}

/* --- All actions ------------------------------------------------------------------------------ */

static unsigned int act(struct nfx_net *nn, struct nfx_target *t, const struct nfx_plan *p,
			struct sk_buff *skb, const struct seen *s, struct nfx_left *left)
{
	switch (s->action) {
	case NFX_ACTION_QUEUE:
		nfx_count_add(t->count, NFX_S_QUEUED, s->packets);
		return NF_QUEUE_NR(p->queue) |
		       (p->flags & NFX_FLAG_BYPASS ? NF_VERDICT_FLAG_QUEUE_BYPASS : 0);
	case NFX_ACTION_RELAY:
		nfx_count_packets(t->count, NFX_S_RELAYED, s->packets, s->bytes);
		nfx_relay(nn, t, p, skb, s->off, left);
		return NF_STOLEN;
	default:
		return NF_ACCEPT;
	}
}

static unsigned int arrive(struct nfx_net *nn, struct nfx_target *t, struct sk_buff *skb,
			   struct seen *s, struct nfx_left *left)
{
	struct nfx_plan *p = rcu_dereference(t->plan);
	u32 len = s->udp_len - sizeof(struct udphdr);
	const u8 *data;
	enum kind kind;
	u8 room[12], action;
	u16 seq;

	if (s->udp_len < sizeof(struct udphdr) || s->udp_len > skb->len - s->off) {
		nfx_count_one(t->count, NFX_S_MALFORMED);
		return NF_DROP;
	}
	data = skb_header_pointer(skb, s->off + sizeof(struct udphdr),
				  min_t(u32, len, sizeof(room)), room);
	kind = data ? kind_of(data, len, p->flags) : KIND_JUNK;
	if (kind == KIND_JUNK) {
		nfx_count_one(t->count, NFX_S_MALFORMED);
		return NF_DROP;
	}
	s->kind = kind;
	/* Read it now: sound() may trim the packet and free the memory at data. */
	seq = kind == KIND_RTP ? get_unaligned_be16(data + 2) : 0;
	action = kind == KIND_RTCP ? p->rtcp : p->rtp;
	if (action == NFX_ACTION_DROP) {
		nfx_count_one(t->count, NFX_S_DROPPED);
		return NF_DROP;
	}
	if (unlikely(rcu_access_pointer(t->guard)) && len >= 2) {
		const struct nfx_suspect suspect = {
			.from = &s->from,
			.data = data,
			.len = len,
			.off = s->off + sizeof(struct udphdr)};
		int why = nfx_guard_refuses(t, skb, &suspect);

		if (why) {
			nfx_count_one(t->count, why);
			return NF_DROP;
		}
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
	/* Packets with options go to the daemon, which must parse them. So do coalesced packets of
	 * which only the first was checked, if RTP and RTCP take different ways. */
	if (action == NFX_ACTION_RELAY && (!s->plain || (skb_is_gso(skb) && p->rtp != p->rtcp)))
		action = to_daemon(p);
	if (action == NFX_ACTION_QUEUE) {
		struct nfx_ring *r = rcu_dereference(t->owner->ring);
		unsigned int verdict = r ? to_ring(t, r, p, skb, s) : NF_QUEUE;

		if (verdict != NF_QUEUE)
			return verdict;
	}
	if ((action == NFX_ACTION_RELAY || action == NFX_ACTION_QUEUE) && !sound(skb, s, action)) {
		nfx_count_one(t->count, NFX_S_MALFORMED);
		return NF_DROP;
	}
	if (action == NFX_ACTION_RELAY && kind == KIND_RTP)
		WRITE_ONCE(p->seq, NFX_SEQ_SEEN | seq);
	taken(t, s);
	s->action = action;
	return act(nn, t, p, skb, s, left);
}

/* Whether the host's inbound policies of IPsec may refuse the packet, for example because it came
 * in clear. Then the stack decides, because it also knows disable_policy of the interface. */
static bool against_policy(struct sk_buff *skb, u16 family)
{
	return !xfrm_policy_check(NULL, XFRM_POLICY_IN, skb, family);
}

/* One datagram that would be split into IP fragments (from tap devices and virtual machines). Its
 * parts have no UDP header, so the host's stack takes it. */
static bool is_ufo(const struct sk_buff *skb)
{
	return skb_is_gso(skb) && skb_shinfo(skb)->gso_type & SKB_GSO_UDP;
}

static unsigned int hook_arrive(void *priv, struct sk_buff *skb, const struct nf_hook_state *state)
{
	struct nfx_left left = NFX_LEFT_FIRST;
	struct nfx_net *nn = priv;
	unsigned int verdict;
	struct nfx_target *t;
	struct seen s;

	if (!see(&s, skb, state->pf == NFPROTO_IPV4 ? AF_INET : AF_INET6))
		return NF_ACCEPT;
	t = nfx_table_find(nn, &s.to);
	if (!t || READ_ONCE(nn->closing) || skb->pkt_type != PACKET_HOST || is_ufo(skb))
		return NF_ACCEPT;
	/* Dropped here, because the host would accept its own IPv6 addresses as sources. */
	if (nfx_martian(t, skb, &s.from)) {
		nfx_count_add(t->count, NFX_S_MISMATCH, s.packets);
		return NF_DROP;
	}
	if (unlikely(against_policy(skb, s.to.family)))
		return NF_ACCEPT;
	/* Bottom halves are off already, unless a reader of the queue replied NF_REPEAT. */
	if (likely(in_softirq()))
		return arrive(nn, t, skb, &s, &left);
	local_bh_disable();
	verdict = arrive(nn, t, skb, &s, &left);
	local_bh_enable();
	return verdict;
}

/* Only for targets that relay. Other packets must enter the host over the loopback device. A packet
 * that is passed on here is seen twice. */
bool nfx_relay_again(struct nfx_net *nn, struct sk_buff *skb, u16 family, struct nfx_left *left)
{
	const struct nfx_plan *p;
	struct nfx_target *t;
	unsigned int verdict;
	struct seen s;

	if (!see(&s, skb, family))
		return false;
	t = nfx_table_find(nn, &s.to);
	if (!t || READ_ONCE(nn->closing))
		return false;
	p = rcu_dereference(t->plan);
	if (p->rtp != NFX_ACTION_RELAY && p->rtcp != NFX_ACTION_RELAY)
		return false;
	verdict = arrive(nn, t, skb, &s, left);
	if (verdict == NF_DROP)
		kfree_skb(skb);
	return verdict == NF_DROP || verdict == NF_STOLEN;
}

/* The daemon's bytes are not trusted. */
static bool whole(const struct sk_buff *skb, const struct seen *s, u16 family)
{
	u8 version = family == AF_INET ? ip_hdr(skb)->version : ipv6_hdr(skb)->version;

	return version == (family == AF_INET ? 4 : 6) && !skb_is_gso(skb) &&
	       s->udp_len >= sizeof(struct udphdr) && skb->len == s->off + s->udp_len &&
	       (family == AF_INET6 || ip_hdr(skb)->ihl >= 5);
}

/* Only this kernel and its daemons know the mark, and packets from the network have none. So
 * outsiders cannot make us send. The packet must also leave from the address and port of a
 * target. */
static unsigned int hook_return(void *priv, struct sk_buff *skb, const struct nf_hook_state *state)
{
	struct nfx_net *nn = priv;
	u16 family = state->pf == NFPROTO_IPV4 ? AF_INET : AF_INET6;
	struct nfx_target *t = NULL;
	unsigned int verdict = NF_DROP;
	struct seen s;

	if (likely(skb->mark != nn->mark))
		return NF_ACCEPT;
	local_bh_disable();
	if (see(&s, skb, family))
		t = nfx_table_find(nn, &s.from);
	if (!t) {
		nfx_count_one(nn->count, NFX_S_DROPPED);
	} else if (!whole(skb, &s, family)) {
		nfx_count_one(t->count, NFX_S_MALFORMED);
	} else {
		nfx_send_verdict(nn, t, skb, family, s.off);
		verdict = NF_STOLEN;
	}
	local_bh_enable();
	return verdict;
}

static const struct nf_hook_ops ops[NFX_HOOKS] = {
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

/* Each namespace has its own copy of the hooks, whose private pointer is the namespace's data.
 * Without it each packet would need a look-up. */
int nfx_hooks_register(struct nfx_net *nn)
{
	int err;

	if (nn->hooked)
		return 0;
	memcpy(nn->hooks, ops, sizeof(ops));
	for (int i = 0; i < NFX_HOOKS; i++)
		nn->hooks[i].priv = nn;
	err = nf_register_net_hooks(nn->net, nn->hooks, NFX_HOOKS);
	if (!err)
		nn->hooked = true;
	return err;
}

/* The kernel drops packets that wait in a queue when hooks are removed. A packet queued later would
 * return to a removed hook. So queueing stops first. */
void nfx_hooks_unregister(struct nfx_net *nn)
{
	if (!nn->hooked)
		return;
	WRITE_ONCE(nn->closing, true);
	synchronize_net();
	nf_unregister_net_hooks(nn->net, nn->hooks, NFX_HOOKS);
	nn->hooked = false;
}
