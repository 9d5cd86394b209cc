// SPDX-License-Identifier: GPL-2.0
/* Checks source addresses. The host checks them when it routes, after our hooks. So this runs the
 * host's own check, with all its settings: rp_filter, accept_local, policy routing. A target keeps
 * the last result for at most a second, so a flow is checked once a second. */
#include <linux/jiffies.h>
#include <net/addrconf.h>
#include <net/ip.h>
#include <net/ipv6.h>

#include "compat.h"
#include "nf_xcipher.h"

#define KEEP HZ /* one second, because a change of rp_filter does not change the generation */

static bool known(struct nfx_believed *b, const struct in6_addr *from, int dev, int generation)
{
	unsigned int seq;
	bool same;

	do {
		seq = read_seqbegin(&b->lock);
		same = b->dev == dev && b->generation == generation &&
		       time_before(jiffies, b->until) && ipv6_addr_equal(&b->from, from);
	} while (read_seqretry(&b->lock, seq));
	return same;
}

static void keep(struct nfx_believed *b, const struct in6_addr *from, int dev, int generation)
{
	write_seqlock_bh(&b->lock);
	b->from = *from;
	b->dev = dev;
	b->generation = generation;
	b->until = jiffies + KEEP;
	write_sequnlock_bh(&b->lock);
}

/* Runs the host's input routing. The route is not kept, because other hooks may still rewrite the
 * destination. */
static bool host_takes(struct sk_buff *skb, __be32 from, __be32 to)
{
	unsigned long old = skb->_skb_refdst;
	bool taken;

	skb->_skb_refdst = 0;
	taken = nfx_route_input(skb, to, from) == 0;
	skb_dst_drop(skb);
	skb->_skb_refdst = old;
	return taken;
}

static bool martian4(struct nfx_target *t, struct sk_buff *skb, const struct nfx_key *key)
{
	__be32 from = key->addr.s6_addr32[0], to = t->key.addr.s6_addr32[0];
	struct net *net = dev_net(skb->dev);
	int generation = rt_genid_ipv4(net); /* before the check */

	if (ipv4_is_multicast(from) || ipv4_is_lbcast(from) || ipv4_is_loopback(from) ||
	    ipv4_is_loopback(to) || !(from & htonl(0xff000000))) /* 0.0.0.0/8 */
		return true;
	if (inet_addr_type_dev_table(net, skb->dev, from) == RTN_BROADCAST ||
	    !host_takes(skb, from, to))
		return true;
	keep(&t->believed, &key->addr, skb->dev->ifindex, generation);
	return false;
}

/* ip6_rcv_core() has already refused loopback and multicast. */
static bool martian6(struct nfx_target *t, struct sk_buff *skb, const struct nfx_key *key)
{
	struct net *net = dev_net(skb->dev);
	int generation = rt_genid_ipv6(net); /* before the check */

	if (ipv6_addr_any(&key->addr) || ipv6_addr_v4mapped(&key->addr))
		return true;
	if (ipv6_chk_addr(net, &key->addr, NULL, 0))
		return true;
	keep(&t->believed, &key->addr, skb->dev->ifindex, generation);
	return false;
}

void nfx_believed_init(struct nfx_believed *b)
{
	seqlock_init(&b->lock);
	b->until = jiffies;
}

static noinline bool refuses(struct nfx_target *t, struct sk_buff *skb, const struct nfx_key *from)
{
	/* Packets that this host sends to itself. */
	if (skb->dev->flags & IFF_LOOPBACK)
		return from->family == AF_INET && ipv4_is_multicast(from->addr.s6_addr32[0]);
	return from->family == AF_INET ? martian4(t, skb, from) : martian6(t, skb, from);
}

bool nfx_martian(struct nfx_target *t, struct sk_buff *skb, const struct nfx_key *from)
{
	const struct net *net = dev_net(skb->dev);
	int generation = from->family == AF_INET ? rt_genid_ipv4(net) : rt_genid_ipv6(net);

	return !known(&t->believed, &from->addr, skb->dev->ifindex, generation) &&
	       refuses(t, skb, from);
}
