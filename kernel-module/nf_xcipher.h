/* SPDX-License-Identifier: GPL-2.0 */
/* Shared by the files of nf_xcipher. A packet passes, in this order: hooks.c (its target, and
 * whether it is media), source.c (whether its source is possible), limit.c (rates), relay.c
 * (sending) or ring_rx.c (to a worker, whose results ring_tx.c sends). genl.c and genl_ring.c are
 * the control, ring.c opens and closes rings, owner.c decides who may change what. */
#ifndef NF_XCIPHER_H
#define NF_XCIPHER_H

#include <linux/in6.h>
#include <linux/netfilter.h>
#include <linux/rhashtable.h>
#include <linux/seqlock.h>
#include <linux/skbuff.h>
#include <linux/u64_stats_sync.h>
#include <net/dst.h>
#include <net/genetlink.h>
#include <net/net_namespace.h>

#include "packet/guard.h"
#include "uapi/nf_xcipher.h"
#include "uapi/nf_xcipher_ring.h"

#define NFX_RELEASE "0.2.0"
#define NFX_MAX_TARGETS (1 << 18)
#define NFX_MAX_DESTS 32
#define NFX_MAX_OWNERS 64
#define NFX_MAX_GRACE_MS (600 * 1000)
#define NFX_KNOWN_FEATURES                                                                        \
	(NFX_FEATURE_QUEUE | NFX_FEATURE_RELAY | NFX_FEATURE_MULTI | NFX_FEATURE_RATE |           \
	 NFX_FEATURE_EVENTS | NFX_FEATURE_VERDICT | NFX_FEATURE_SSRC | NFX_FEATURE_RELAYED |     \
	 NFX_FEATURE_SEQ | NFX_FEATURE_UNREAD | NFX_FEATURE_RING | NFX_FEATURE_GUARD |     \
	 NFX_FEATURE_RING_WAIT)

#define NFX_HOOKS 4

/* IPv4 in the first word, the others zero. No padding: it is hashed. */
struct nfx_key {
	struct in6_addr addr;
	__be16 port;
	u16 family;
};

/* A cached route. */
struct nfx_hop {
	struct dst_entry *dst; /* a reference, or NULL */
	u32 cookie;
};

struct nfx_dest {
	struct nfx_key to, from;
	struct nfx_hop __percpu *hop;
	u8 tos;
	bool set_tos;
};

#define NFX_SEQ_SEEN BIT(16)

/* What a target does: replaced as a whole under RCU. */
struct nfx_plan {
	struct rcu_work free;
	u64 cookie;
	struct nfx_key source; /* family 0: any */
	u32 ssrc, flags, rate, source_rate, silence_ms;
	u16 queue;
	u8 rtp, rtcp; /* enum nfx_action */
	u8 mismatch;  /* enum nfx_mismatch */
	bool with_queue, with_ssrc;
	u32 seq; /* of the last relayed RTP, with NFX_SEQ_SEEN; all other fields are constant */
	u32 dests;
	struct nfx_dest dest[];
};

/* Limits the work that one packet can cause, because targets may relay to targets of this host,
 * also in circles. */
struct nfx_left {
	u32 sends;
	u32 hops; /* calls are nested, and the stack is small */
};

#define NFX_LEFT_FIRST {.sends = 64, .hops = 4}

struct nfx_count {
	u64_stats_t n[NFX_S_COUNT];
	struct u64_stats_sync sync;
};

/* Tokens in thousandths of a packet, so that low rates are exact enough. */
struct nfx_tokens {
	u64 n;
	u64 at; /* jiffies_64 */
};

struct nfx_bucket {
	spinlock_t lock;
	struct nfx_tokens tokens;
};

/* Cache of one source that the host accepts, at one interface. dev 0: empty. */
struct nfx_believed {
	seqlock_t lock;
	struct in6_addr from;
	int dev, generation;
	unsigned long until; /* jiffies */
};

/* Route of the last packet that a ring sent from a target. Protected by nfx_ring.bells, because
 * only one ring sends from a target at a time. */
struct nfx_way {
	struct nfx_key to; /* family 0: none */
	int ifindex;
	struct nfx_hop hop;
};

struct nfx_target {
	struct rhash_head node;
	struct nfx_key key;
	struct nfx_plan __rcu *plan;
	struct nfx_count __percpu *count;
	struct nfx_bucket bucket, strangers; /* both fill at the plan's rate */
	struct nfx_believed believed;
	unsigned long since;      /* jiffies when it was made */
	unsigned long seen;       /* jiffies of the last accepted datagram, 0: none; written when
	                           * it changes */
	unsigned long told_flood; /* jiffies of the last event of its kind */
	unsigned long told_source;
	unsigned long told_ssrc;
	bool told_silence;
	struct nfx_owner *owner; /* constant; valid under RCU while the target can be found */
	struct nfx_way way;
	struct nfx_guard __rcu *guard; /* NULL: the stream is not under attack */
	u32 owner_id;            /* for readers without the lock */
	struct list_head in_owner;
	struct rcu_work free;
};

/* An instance of the daemon. Stays for its grace time when its socket is closed. */
struct nfx_owner {
	struct list_head node;
	struct list_head targets;
	struct delayed_work expire;
	unsigned long expires; /* jiffies, when portid is 0 */
	struct nfx_net *nn;
	u32 id, portid; /* portid 0: no owner */
	u32 features, grace_ms, n;
	struct nfx_ring __rcu *ring; /* written under nfx_net.lock */
	u64 ring_lost; /* packets in its ended rings, since it last opened one */
	struct rcu_head rcu;
};

#define NFX_SOURCE_SETS 1024
#define NFX_SOURCE_WAYS 4

/* Sources whose addresses map to the same place. */
struct nfx_source_set {
	spinlock_t lock;
	struct {
		struct in6_addr addr;
		struct nfx_tokens tokens;
	} way[NFX_SOURCE_WAYS];
};

struct nfx_net {
	struct net *net;
	struct mutex lock; /* owners, and all changes of targets */
	struct list_head owners;
	struct rhashtable targets;
	u32 owners_n;
	struct nfx_ring __rcu *rings[NFX_RING_MAX]; /* written under lock; read under SRCU */
	struct nf_hook_ops hooks[NFX_HOOKS];
	bool hooked;  /* since the first HELLO, until the namespace or the module ends */
	bool closing; /* no packet is queued any more */
	u32 mark;
	struct nfx_source_set *sources;
	u32 source_seed;
	struct nfx_count __percpu *count; /* of packets without a target */
	u64 gone[NFX_S_COUNT];            /* of deleted targets */
	struct nfx_bucket events;
	struct delayed_work silence;
};

extern unsigned int nfx_net_id;
extern struct workqueue_struct *nfx_wq; /* for work in process context: freeing, expiry, silence */
struct nfx_net *nfx_net(const struct net *net);

/* --- count.c --- */
static inline void nfx_count_add(struct nfx_count __percpu *count, int which, u32 n)
{
	struct nfx_count *c = this_cpu_ptr(count);

	u64_stats_update_begin(&c->sync);
	u64_stats_add(&c->n[which], n);
	u64_stats_update_end(&c->sync);
}

static inline void nfx_count_one(struct nfx_count __percpu *count, int which)
{
	nfx_count_add(count, which, 1);
}

/* which: a counter of packets, followed by one of bytes. */
static inline void nfx_count_packets(struct nfx_count __percpu *count, int which, u32 n, u32 bytes)
{
	struct nfx_count *c = this_cpu_ptr(count);

	u64_stats_update_begin(&c->sync);
	u64_stats_add(&c->n[which], n);
	u64_stats_add(&c->n[which + 1], bytes);
	u64_stats_update_end(&c->sync);
}

struct nfx_count __percpu *nfx_count_alloc(void);
/* Adds to out. */
void nfx_count_sum(u64 out[NFX_S_COUNT], const struct nfx_count __percpu *count);

/* --- table.c: targets of a namespace. Changes under nn->lock, look-ups under RCU. --- */
int nfx_table_init(struct nfx_net *nn);
void nfx_table_exit(struct nfx_net *nn);
struct nfx_target *nfx_table_find(struct nfx_net *nn, const struct nfx_key *key);
/* plan belongs to the target afterwards, except on an error. *created: whether the target is
 * new. */
int nfx_table_set(struct nfx_net *nn, struct nfx_owner *owner, const struct nfx_key *key,
		  struct nfx_plan *plan, struct nfx_target **out, bool *created);
void nfx_table_del(struct nfx_net *nn, struct nfx_target *t);
/* Counters of the namespace: present targets, deleted ones, and packets without a target. */
void nfx_table_totals(struct nfx_net *nn, u64 out[NFX_S_COUNT]);
struct nfx_plan *nfx_plan_alloc(u32 dests);
void nfx_plan_free(struct nfx_plan *p); /* for packets without a target */

/* --- owner.c: who may change what. All under nn->lock. --- */
struct nfx_owner *nfx_owner_of(struct nfx_net *nn, u32 portid);
struct nfx_hello {
	u32 id, portid, features, grace_ms;
};
int nfx_owner_hello(struct nfx_net *nn, const struct nfx_hello *h, struct nfx_owner **out,
		    struct netlink_ext_ack *extack);
void nfx_owner_flush(struct nfx_net *nn, struct nfx_owner *owner);
void nfx_owners_exit(struct nfx_net *nn);
int nfx_owner_init(void);
void nfx_owner_exit(void);

/* --- limit.c: the caller has bottom halves off --- */
void nfx_bucket_init(struct nfx_bucket *b);
/* n: packets, more than one if coalesced. */
bool nfx_bucket_take(struct nfx_bucket *b, u32 rate, u32 n);
struct nfx_source_set *nfx_sources_alloc(void);
bool nfx_source_take(struct nfx_net *nn, const struct in6_addr *addr, u32 rate, u32 n);

/* --- guard.c: streams under attack --- */
struct nfx_guard {
	struct rcu_head rcu;
	struct guard guard;
};

/* What the guard needs of a packet. data: its first 12 bytes of payload; less, but at least 2, only
 * if len is less. */
struct nfx_suspect {
	const struct nfx_key *from;
	const u8 *data;
	u32 len, off; /* of the payload */
};

/* The statistic that counts why the target's guard refuses the packet; 0: it passes. Under RCU. */
int nfx_guard_refuses(const struct nfx_target *t, const struct sk_buff *skb,
		      const struct nfx_suspect *s);
/* Wipes its secrets. No packet uses it any more. NULL is fine. */
void nfx_guard_free(struct nfx_guard *g);
/* Under nn->lock. data NULL: removes the target's guard. 0, -EINVAL or -ENOMEM. */
int nfx_guard_set(struct nfx_net *nn, struct nfx_target *t, const void *data, u32 len);

/* --- source.c --- */
void nfx_believed_init(struct nfx_believed *b);
/* Whether the host would refuse this source at the receiving interface. Call under RCU. */
bool nfx_martian(struct nfx_target *t, struct sk_buff *skb, const struct nfx_key *from);

/* --- relay.c: all with bottom halves off, under RCU; they take the skb. off: of the UDP header.
 * --- */
/* Sends to all destinations of a plan. */
void nfx_relay(struct nfx_net *nn, struct nfx_target *t, const struct nfx_plan *p,
	       struct sk_buff *skb, u32 off, struct nfx_left *left);
/* Sends a packet that was rewritten by the daemon. */
void nfx_send_verdict(struct nfx_net *nn, struct nfx_target *t, struct sk_buff *skb, u16 family,
		      u32 off);

/* Looks up an output route as for a socket. Returns a reference, or NULL. dev: for link-local
 * destinations. */
struct dst_entry *nfx_route(struct net *net, const struct nfx_key *to, const struct nfx_key *from,
			    const struct net_device *dev);
/* Returns NULL if the routes have changed. The caller holds RCU, which also protects the result. */
static inline struct dst_entry *nfx_hop_get(const struct nfx_hop *h)
{
	return h->dst && dst_check(h->dst, h->cookie) ? h->dst : NULL;
}

/* dst: a reference, which the hop takes, or NULL. */
void nfx_hop_set(struct nfx_hop *h, struct dst_entry *dst, u16 family);
/* Sends a packet above the MTU in fragments, as a socket does. */
void nfx_fragmentable(struct sk_buff *skb, struct net *net, u16 family);

/* --- ring.c: opening and closing, under nn->lock except prepare and exit --- */
struct nfx_ring_wish {
	u64 control, memory, length;
	u32 slots, first, stride, room, sends;
	u32 event_fd, bell_fd, poll_fd;
	bool with_poll;
};

/* Pins memory of the calling process. Call it without the lock. -EINVAL, -EPERM, -ENOMEM, -EFAULT,
 * -EBADF; -EAGAIN: another thread of the process holds the lock of its address space. */
int nfx_ring_prepare(struct nfx_ring **out, struct nfx_net *nn, const struct nfx_ring_wish *wish,
		     struct netlink_ext_ack *extack);
/* 0 or -ENOSPC. On success the ring belongs to the owner. */
int nfx_ring_attach(struct nfx_net *nn, struct nfx_owner *o, struct nfx_ring *r);
/* NULL is fine. When it returns, nothing writes to the ring's memory any more. Packets in progress
 * finish before it is unpinned. state: NFX_RING_CLOSED or NFX_RING_GONE. */
void nfx_ring_close(struct nfx_net *nn, struct nfx_owner *o, u32 state);
void nfx_ring_free(struct nfx_ring *r); /* for a ring that was not attached */
u32 nfx_ring_number(const struct nfx_ring *r);
/* Called when the namespace or the module ends. Takes the lock. */
void nfx_rings_exit(struct nfx_net *nn);

/* --- ring_rx.c: under RCU, bottom halves off --- */
/* A datagram whose headers were read, with the addresses of its target and source. */
struct nfx_datagram {
	const struct nfx_key *to, *from;
	u64 cookie;
	u32 off; /* of the UDP header */
	u16 udp_len;
	bool emergency;
};

enum nfx_put { NFX_PUT, NFX_PUT_FULL, NFX_PUT_TOO_LONG, NFX_PUT_DAMAGED, NFX_PUT_CLOSED };

/* Copies the payload to the ring. The caller still owns the skb. */
enum nfx_put nfx_ring_put(struct nfx_ring *r, const struct sk_buff *skb,
			  const struct nfx_datagram *d);
/* For the parts of a coalesced packet, so that the ring ends before all of them, or after. False:
 * it has ended, and is not locked. */
bool nfx_ring_lock(struct nfx_ring *r);
void nfx_ring_unlock(struct nfx_ring *r);
/* As nfx_ring_put(), of a locked ring. */
enum nfx_put nfx_ring_put_part(struct nfx_ring *r, const struct sk_buff *skb,
			       const struct nfx_datagram *d);

/* --- ring_tx.c --- */
int nfx_bell_init(void);
/* Stops the doorbell: when it returns, no bell is in progress, and none can start. */
void nfx_bell_exit(void);
/* Waits for bells in progress. */
void nfx_bell_synchronize(void);

/* --- hooks.c --- */
/* For a relayed packet to this host: true if a target relayed (or dropped) it and took it. */
bool nfx_relay_again(struct nfx_net *nn, struct sk_buff *skb, u16 family, struct nfx_left *left);
int nfx_hooks_register(struct nfx_net *nn);
void nfx_hooks_unregister(struct nfx_net *nn);

/* --- genl_ring.c: commands, and the policy of the first --- */
extern const struct nla_policy nfx_ring_policy[NFX_A_COUNT];
/* Whether the sender is an administrator of the host. The kernel polls the epoll, so a file in it
 * could make generic netlink wait (FUSE). */
bool nfx_may_name_epoll(struct sk_buff *skb);
int nfx_do_ring_open(struct sk_buff *skb, struct genl_info *info);
int nfx_do_ring_close(struct sk_buff *skb, struct genl_info *info);

/* --- genl.c --- */
extern struct genl_family nfx_family;
#define REFUSE(extack, err, text)                     \
	({                                            \
		NL_SET_ERR_MSG(extack, "nf_xcipher: " text); \
		-(err);                               \
	})

int nfx_genl_init(void);
void nfx_genl_exit(void);
/* Called on the packet's way; the caller limits the rate. source, ssrc: if the event has one. */
void nfx_event(struct nfx_net *nn, struct nfx_target *t, u8 event, const struct nfx_key *source,
	       u32 ssrc);

#endif
