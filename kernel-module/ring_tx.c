// SPDX-License-Identifier: GPL-2.0
/* The doorbell: sends what a worker described in shared memory, then returns slots, arms the ring,
 * and waits if it is to (ring_wait.c). Everything is copied out of shared memory before it is
 * checked. The doorbell is a socket option, because an open file would keep the module loaded.
 * nfx_bell_exit() waits for calls in progress. */
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/nospec.h>
#include <linux/rcupdate.h>
#include <linux/sched/signal.h>
#include <linux/srcu.h>
#include <linux/udp.h>
#include <net/checksum.h>
#include <net/ip.h>
#include <net/ip6_checksum.h>
#include <net/ip6_route.h>
#include <net/netfilter/nf_conntrack.h>
#include <net/route.h>
#include <net/sock.h>

#include "compat.h"
#include "ring.h"

#define CHUNK 64u /* packets sent without a break */

DEFINE_STATIC_SRCU(bells_running);

/* --- Routes ----------------------------------------------------------------------------------- */

static bool way_fits(const struct nfx_way *w, const struct nfx_key *to, int ifindex)
{
	return w->to.family == to->family && w->to.port == to->port &&
	       ipv6_addr_equal(&w->to.addr, &to->addr) && w->ifindex == ifindex;
}

static bool is_link_local(const struct nfx_key *to)
{
	return to->family == AF_INET6 && ipv6_addr_type(&to->addr) & IPV6_ADDR_LINKLOCAL;
}

/* The target keeps the reference. */
static struct dst_entry *way_to(struct net *net, struct nfx_target *t, const struct nfx_key *to,
				int ifindex)
{
	const struct net_device *dev = ifindex ? dev_get_by_index_rcu(net, ifindex) : NULL;
	struct nfx_way *w = &t->way;
	struct dst_entry *dst = way_fits(w, to, ifindex) ? nfx_hop_get(&w->hop) : NULL;

	if (dst)
		return dst;
	dst = ifindex && !dev ? NULL : nfx_route(net, to, &t->key, dev);
	nfx_hop_set(&w->hop, dst, to->family);
	w->to = *to;
	w->ifindex = ifindex;
	return dst;
}

/* --- Packets ---------------------------------------------------------------------------------- */

static void head4(struct sk_buff *skb, const struct nfx_target *t, const struct nfx_key *to, u8 tos)
{
	const struct dst_entry *dst = skb_dst(skb);
	struct iphdr *ip = __skb_push(skb, sizeof(*ip));

	skb_reset_network_header(skb);
	*ip = (struct iphdr){
		.version = 4,
		.ihl = sizeof(*ip) / 4,
		.tos = tos,
		.tot_len = htons(skb->len),
		.frag_off = htons(IP_DF),
		.ttl = ip4_dst_hoplimit(dst),
		.protocol = IPPROTO_UDP,
		.saddr = t->key.addr.s6_addr32[0],
		.daddr = to->addr.s6_addr32[0],
	};
	skb->protocol = htons(ETH_P_IP);
}

static void head6(struct sk_buff *skb, const struct nfx_target *t, const struct nfx_key *to, u8 tos)
{
	struct ipv6hdr *ip = __skb_push(skb, sizeof(*ip));

	skb_reset_network_header(skb);
	ip6_flow_hdr(ip, tos, 0);
	ip->payload_len = htons(skb->len - sizeof(*ip));
	ip->nexthdr = IPPROTO_UDP;
	ip->hop_limit = ip6_dst_hoplimit(skb_dst(skb));
	ip->saddr = t->key.addr;
	ip->daddr = to->addr;
	skb->protocol = htons(ETH_P_IPV6);
}

static __sum16 udp_sum(const struct nfx_target *t, const struct nfx_key *to, u32 len, __wsum sum)
{
	__sum16 check = to->family == AF_INET
				? csum_tcpudp_magic(t->key.addr.s6_addr32[0], to->addr.s6_addr32[0],
						    len, IPPROTO_UDP, sum)
				: csum_ipv6_magic(&t->key.addr, &to->addr, len, IPPROTO_UDP, sum);

	return check ? check : CSUM_MANGLED_0;
}

static u32 ip_len(u16 family)
{
	return family == AF_INET ? sizeof(struct iphdr) : sizeof(struct ipv6hdr);
}

/* Whether the device computes the checksum. Not if the packet is fragmented or encrypted by IPsec:
 * Linux decides so for packets of sockets. */
static bool device_sums(const struct dst_entry *dst, u16 family, bool fits)
{
	netdev_features_t able = NETIF_F_HW_CSUM;

	able |= family == AF_INET ? NETIF_F_IP_CSUM : NETIF_F_IPV6_CSUM;
	return dst->dev->features & able && !dst_xfrm(dst) && fits;
}

static void sum_later(struct sk_buff *skb, struct udphdr *udp, __sum16 pseudo)
{
	udp->check = ~pseudo;
	skb->ip_summed = CHECKSUM_PARTIAL;
	skb->csum_start = skb_transport_header(skb) - skb->head;
	skb->csum_offset = offsetof(struct udphdr, check);
}

struct send {
	struct nfx_target *t;
	struct nfx_key to;
	struct dst_entry *dst; /* under RCU */
	bool fits;	       /* needs no fragments */
};

/* Makes a packet: copies the payload and computes its checksum in one pass, unless the device
 * computes it. The caller has bottom halves off for the processor's cache of packets. */
static struct sk_buff *build(const struct send *s, const u8 *payload, const struct nfx_send *d)
{
	const struct nfx_target *t = s->t;
	const struct nfx_key *to = &s->to;
	struct dst_entry *dst = s->dst;
	u32 room = LL_RESERVED_SPACE(dst->dev) + dst->header_len + sizeof(struct ipv6hdr);
	u32 len = sizeof(struct udphdr) + d->len;
	struct sk_buff *skb = nfx_alloc_skb(room + len + dst->trailer_len);
	struct udphdr *udp;
	__wsum sum;

	if (!skb)
		return NULL;
	skb_reserve(skb, room);
	udp = __skb_put(skb, sizeof(*udp));
	skb_reset_transport_header(skb);
	*udp = (struct udphdr){.source = t->key.port, .dest = to->port, .len = htons(len)};
	if (device_sums(dst, to->family, s->fits)) {
		memcpy(__skb_put(skb, d->len), payload, d->len);
		sum_later(skb, udp, udp_sum(t, to, len, 0));
	} else {
		sum = csum_partial_copy_nocheck(payload, __skb_put(skb, d->len), d->len);
		udp->check = udp_sum(t, to, len, csum_partial(udp, sizeof(*udp), sum));
	}
	skb_dst_set_noref(skb, dst);
	skb->priority = rt_tos2priority(d->tos);
	nf_ct_set(skb, NULL, IP_CT_UNTRACKED);
	if (to->family == AF_INET)
		head4(skb, t, to, d->tos);
	else
		head6(skb, t, to, d->tos);
	return skb;
}

static void transmit(struct net *net, const struct send *s, struct sk_buff *skb, u32 len)
{
	u16 family = s->to.family;

	nfx_count_packets(s->t->count, NFX_S_SENT, 1, len);
	if (!s->fits) {
		nfx_count_one(s->t->count, NFX_S_TOO_BIG);
		nfx_fragmentable(skb, net, family);
	}
	if (family == AF_INET) {
		memset(IPCB(skb), 0, sizeof(*IPCB(skb)));
		ip_local_out(net, NULL, skb);
	} else {
		memset(IP6CB(skb), 0, sizeof(*IP6CB(skb)));
		ip6_local_out(net, NULL, skb);
	}
}

/* --- Descriptors ------------------------------------------------------------------------------ */

static bool key_read(struct nfx_key *key, u8 family, const u8 addr[16], __be16 port)
{
	key->family = family;
	key->port = port;
	memcpy(&key->addr, addr, sizeof(key->addr));
	if (family == AF_INET)
		return port && !key->addr.s6_addr32[1] && !key->addr.s6_addr32[2] &&
		       !key->addr.s6_addr32[3] && !ipv4_is_zeronet(key->addr.s6_addr32[0]);
	return family == AF_INET6 && port && !ipv6_addr_any(&key->addr) &&
	       !ipv6_addr_v4mapped(&key->addr);
}

/* d: a copy, which nobody changes. Returns a positive errno. */
static u16 send_one(struct nfx_ring *r, const struct nfx_send *d)
{
	struct nfx_key from;
	struct sk_buff *skb;
	struct send s;

	if (!d->len || d->len > NFX_RING_MAX_SEND_LEN || (u64)d->off + d->len > r->length ||
	    d->ifindex > INT_MAX || d->reserved[0] || d->reserved[1] || d->reserved[2] ||
	    !key_read(&from, d->family, d->addr, d->port) ||
	    !key_read(&s.to, d->family, d->to, d->to_port))
		return EINVAL;
	s.t = nfx_table_find(r->nn, &from);
	if (!s.t || s.t->owner != r->owner)
		return EACCES;
	s.dst = way_to(r->nn->net, s.t, &s.to, is_link_local(&s.to) ? d->ifindex : 0);
	if (!s.dst) {
		nfx_count_one(s.t->count, NFX_S_NO_ROUTE);
		return ENETUNREACH;
	}
	s.fits = ip_len(s.to.family) + sizeof(struct udphdr) + d->len <= dst_mtu(s.dst);
	skb = build(&s, r->memory + d->off, d);
	if (!skb) {
		nfx_count_one(s.t->count, NFX_S_NO_MEMORY);
		return ENOMEM;
	}
	transmit(r->nn->net, &s, skb, d->len);
	r->stat[NFX_R_SENT]++;
	r->stat[NFX_R_SENT_BYTES] += d->len;
	return 0;
}

/* Returns whether all were sent. */
static bool send_some(struct nfx_ring *r, u32 i, u32 end)
{
	bool good = true;

	rcu_read_lock();
	local_bh_disable();
	for (; i < end; i++) {
		struct nfx_send d;
		u16 result;

		memcpy(&d, &r->send[i], sizeof(d));
		barrier(); /* from here on the copy only */
		result = send_one(r, &d);
		if (result == EINVAL || result == EACCES)
			r->stat[NFX_R_BAD_SENDS]++;
		else if (result)
			r->stat[NFX_R_FAILED_SENDS]++;
		good &= !result;
		WRITE_ONCE(r->send[i].result, result);
	}
	local_bh_enable();
	rcu_read_unlock();
	return good;
}

/* --- Doorbell --------------------------------------------------------------------------------- */

/* released <= taken <= head, and released does not decrease; all modulo 2^32. */
static bool bell_sound(struct nfx_ring *r, const struct nfx_bell *b)
{
	u32 head = READ_ONCE(r->head), most = head - r->released;

	return !(b->flags & ~NFX_BELL_FLAGS_ALL) && b->sends <= r->sends &&
	       head - b->released <= most && head - b->taken <= head - b->released &&
	       b->window_ns <= NFX_RING_MAX_WINDOW_NS &&
	       (!(b->flags & NFX_BELL_ARM) || (b->wake_packets && b->wake_packets <= r->slots)) &&
	       (!(b->flags & NFX_BELL_WAIT) || (b->flags & NFX_BELL_ARM && r->poll)) &&
	       !b->reserved[0] && !b->reserved[1];
}

void nfx_ring_tell(struct nfx_ring *r)
{
	for (int i = 0; i < NFX_R_COUNT; i++)
		WRITE_ONCE(r->control->stats[i], READ_ONCE(r->stat[i]));
}

/* *waits: the caller is to wait. It has set nfx_ring.waits then. */
static int bell(struct nfx_ring *r, bool *waits)
{
	bool good = true;
	struct nfx_bell b;

	memcpy(&b, &r->control->bell, sizeof(b));
	barrier(); /* from here on the copy only */
	if (!bell_sound(r, &b))
		return -EINVAL;
	if (b.flags & NFX_BELL_WAIT && READ_ONCE(r->waits))
		return -EBUSY;
	for (u32 i = 0; i < b.sends; i += CHUNK) {
		if (READ_ONCE(r->closed))
			return -ENOENT;
		if (fatal_signal_pending(current))
			return -EINTR;
		good &= send_some(r, i, min(i + CHUNK, b.sends));
		cond_resched();
	}
	if (b.flags & NFX_BELL_WAIT) {
		WRITE_ONCE(r->control->sent_real_ns, ktime_get_real_ns());
		WRITE_ONCE(r->control->sent_ns, ktime_get_ns());
	}
	nfx_ring_arm(r, &b);
	r->stat[NFX_R_BELLS]++;
	nfx_ring_tell(r);
	if (b.flags & NFX_BELL_WAIT) {
		WRITE_ONCE(r->control->woken, 0);
		*waits = good && atomic_read(&r->armed);
		WRITE_ONCE(r->waits, *waits);
	}
	return 0;
}

static int bell_option(struct sock *sk, int option, sockptr_t arg, unsigned int len)
{
	int running = srcu_read_lock(&bells_running), err = -ENOENT;
	struct nfx_net *nn = nfx_net(sock_net(sk));
	bool waits = false;
	struct nfx_ring *r =
		srcu_dereference(nn->rings[array_index_nospec(option - NFX_SO_BELL, NFX_RING_MAX)],
				 &bells_running);

	if (r && r->bell != sk)
		err = -EPERM;
	else if (r && mutex_lock_killable(&r->bells))
		err = -EINTR;
	else if (r) {
		if (!READ_ONCE(r->closed))
			err = bell(r, &waits);
		mutex_unlock(&r->bells);
	}
	srcu_read_unlock(&bells_running, running);
	if (waits) /* the ring stays until it has returned */
		nfx_ring_wait(r);
	return err;
}

void nfx_bell_synchronize(void)
{
	synchronize_srcu(&bells_running);
}

/* No .owner: the module could then not be unloaded while a bell is in progress. */
static struct nf_sockopt_ops bell_ops = {
	.pf = PF_INET,
	.set_optmin = NFX_SO_BELL,
	.set_optmax = NFX_SO_BELL + NFX_RING_MAX,
	.set = bell_option,
};

int nfx_bell_init(void)
{
	return nf_register_sockopt(&bell_ops);
}

/* A task does not sleep between the kernel's look-up of the option and bell_option(), nor after its
 * last line. So after the first wait all calls in progress are known to SRCU, and after the last
 * one all have returned, except those in nfx_ring_wait(): their rings wait for them. */
void nfx_bell_exit(void)
{
	nf_unregister_sockopt(&bell_ops);
	synchronize_rcu_tasks();
	nfx_bell_synchronize();
	synchronize_rcu_tasks();
}
