// SPDX-License-Identifier: GPL-2.0
/* Control: the commands of uapi/nf_xcipher.h. Policies check attributes before any is read. All
 * parts of a target are built before anything changes. Each refusal explains itself in words. */
#include <linux/inetdevice.h>
#include <net/addrconf.h>
#include <net/genetlink.h>

#include "compat.h"
#include "nf_xcipher.h"


static const struct nla_policy dest_policy[NFX_D_COUNT] = {
	[NFX_D_ADDR] = NLA_POLICY_RANGE(NLA_BINARY, 4, 16),
	[NFX_D_PORT] = {.type = NLA_BE16},
	[NFX_D_LOCAL_ADDR] = NLA_POLICY_RANGE(NLA_BINARY, 4, 16),
	[NFX_D_LOCAL_PORT] = {.type = NLA_BE16},
	[NFX_D_TOS] = {.type = NLA_U8},
};

/* Not const: 6.1's policy takes no pointer to const. */
static struct netlink_range_validation flag_range = {.max = NFX_FLAGS_ALL};
static struct netlink_range_validation grace_range = {.max = NFX_MAX_GRACE_MS};
static struct netlink_range_validation silence_range = {.max = 24 * 3600 * 1000};

static const struct nla_policy hello_policy[] = {
	[NFX_A_VERSION] = {.type = NLA_U32},
	[NFX_A_FEATURES] = {.type = NLA_U32},
	[NFX_A_OWNER] = {.type = NLA_U32},
	[NFX_A_GRACE_MS] = NLA_POLICY_FULL_RANGE(NLA_U32, &grace_range),
};

static const struct nla_policy set_policy[] = {
	[NFX_A_FAMILY] = {.type = NLA_U8},
	[NFX_A_ADDR] = NLA_POLICY_RANGE(NLA_BINARY, 4, 16),
	[NFX_A_PORT] = {.type = NLA_BE16},
	[NFX_A_ACTION] = NLA_POLICY_MAX(NLA_U8, NFX_ACTION_COUNT - 1),
	[NFX_A_RTCP_ACTION] = NLA_POLICY_MAX(NLA_U8, NFX_ACTION_COUNT - 1),
	[NFX_A_QUEUE] = {.type = NLA_U16},
	[NFX_A_FLAGS] = NLA_POLICY_FULL_RANGE(NLA_U32, &flag_range),
	[NFX_A_COOKIE] = {.type = NLA_U64},
	[NFX_A_SOURCE_ADDR] = NLA_POLICY_RANGE(NLA_BINARY, 4, 16),
	[NFX_A_SOURCE_PORT] = {.type = NLA_BE16},
	[NFX_A_MISMATCH] = NLA_POLICY_MAX(NLA_U8, NFX_MISMATCH_KINDS - 1),
	[NFX_A_SSRC] = {.type = NLA_U32},
	[NFX_A_RATE] = {.type = NLA_U32},
	[NFX_A_SOURCE_RATE] = {.type = NLA_U32},
	[NFX_A_SILENCE_MS] = NLA_POLICY_FULL_RANGE(NLA_U32, &silence_range),
	[NFX_A_DESTS] = NLA_POLICY_NESTED_ARRAY(dest_policy),
	[NFX_A_IF_QUEUED] = {.type = NLA_U64},
};

static const struct nla_policy name_policy[] = {
	[NFX_A_OWNER] = {.type = NLA_U32},
	[NFX_A_FAMILY] = {.type = NLA_U8},
	[NFX_A_ADDR] = NLA_POLICY_RANGE(NLA_BINARY, 4, 16),
	[NFX_A_PORT] = {.type = NLA_BE16},
	[NFX_A_ACTION] = NLA_POLICY_MAX(NLA_U8, NFX_ACTION_COUNT - 1),
};

static const struct nla_policy guard_policy[NFX_A_COUNT] = {
	[NFX_A_FAMILY] = {.type = NLA_U8},
	[NFX_A_ADDR] = NLA_POLICY_RANGE(NLA_BINARY, 4, 16),
	[NFX_A_PORT] = {.type = NLA_BE16},
	[NFX_A_GUARD] = NLA_POLICY_RANGE(NLA_BINARY, sizeof(struct guard_window),
					 sizeof(struct guard)),
};

/* --- Reading ---------------------------------------------------------------------------------- */

static int address(struct nfx_key *key, u16 fam, const struct nlattr *addr,
		   const struct nlattr *port, struct netlink_ext_ack *extack)
{
	memset(key, 0, sizeof(*key));
	if (!addr || !port)
		return REFUSE(extack, EINVAL, "an address needs both address and port");
	if (nla_len(addr) != (fam == AF_INET ? 4 : 16))
		return REFUSE(extack, EINVAL, "an address's length is not its family's");
	key->family = fam;
	key->port = nla_get_be16(port);
	memcpy(&key->addr, nla_data(addr), nla_len(addr));
	if (!key->port)
		return REFUSE(extack, EINVAL, "port 0");
	if (fam == AF_INET ? ipv4_is_zeronet(key->addr.s6_addr32[0]) ||
				     ipv4_is_multicast(key->addr.s6_addr32[0]) ||
				     ipv4_is_lbcast(key->addr.s6_addr32[0])
			   : ipv6_addr_any(&key->addr) || ipv6_addr_is_multicast(&key->addr))
		return REFUSE(extack, EINVAL, "an address must be unicast");
	return 0;
}

static int target_name(struct nfx_key *key, struct nlattr **a, struct netlink_ext_ack *extack)
{
	u8 fam = a[NFX_A_FAMILY] ? nla_get_u8(a[NFX_A_FAMILY]) : 0;

	if (fam != AF_INET && fam != AF_INET6)
		return REFUSE(extack, EINVAL, "a target needs a family, IPv4 or IPv6");
	return address(key, fam, a[NFX_A_ADDR], a[NFX_A_PORT], extack);
}

static int dest_read(struct nfx_dest *d, u16 fam, const struct nlattr *nest,
		     struct netlink_ext_ack *extack)
{
	struct nlattr *a[NFX_D_COUNT];
	int err = nla_parse_nested(a, NFX_D_COUNT - 1, nest, dest_policy, extack);

	err = err ? err : address(&d->to, fam, a[NFX_D_ADDR], a[NFX_D_PORT], extack);
	err = err ? err : address(&d->from, fam, a[NFX_D_LOCAL_ADDR], a[NFX_D_LOCAL_PORT], extack);
	d->set_tos = !err && a[NFX_D_TOS];
	if (d->set_tos)
		d->tos = nla_get_u8(a[NFX_D_TOS]);
	return err;
}

static int dests_count(const struct nlattr *dests, struct netlink_ext_ack *extack)
{
	const struct nlattr *nest;
	int n = 0, rest;

	if (!dests)
		return 0;
	nla_for_each_nested(nest, dests, rest) {
		if (nla_type(nest) != NFX_A_DEST)
			return REFUSE(extack, EINVAL, "destinations hold something else");
		n++;
	}
	return n <= NFX_MAX_DESTS ? n : REFUSE(extack, E2BIG, "too many destinations");
}

static u32 get_u32(const struct nlattr *a)
{
	return a ? nla_get_u32(a) : 0;
}

static bool does(const struct nfx_plan *p, u8 action)
{
	return p->rtp == action || p->rtcp == action;
}

/* Whether the attributes agree with each other, and with the daemon's announced features. */
static int plan_check(const struct nfx_plan *p, u32 features, struct netlink_ext_ack *extack)
{
	u32 need = 0;

	if (does(p, NFX_ACTION_QUEUE) && !p->with_queue)
		return REFUSE(extack, EINVAL, "action queue needs a queue");
	if (does(p, NFX_ACTION_RELAY) && !p->dests)
		return REFUSE(extack, EINVAL, "action relay needs a destination");
	if (p->flags & NFX_FLAG_UNREAD && (p->with_ssrc || p->rtp != p->rtcp))
		return REFUSE(extack, EINVAL, "flag unread excludes an SSRC and an action of its own for RTCP");
	need |= does(p, NFX_ACTION_QUEUE) ? NFX_FEATURE_QUEUE : 0;
	need |= does(p, NFX_ACTION_RELAY) ? NFX_FEATURE_RELAY : 0;
	need |= p->dests > 1 ? NFX_FEATURE_MULTI : 0;
	need |= p->rate || p->source_rate ? NFX_FEATURE_RATE : 0;
	need |= p->with_ssrc ? NFX_FEATURE_SSRC : 0;
	need |= p->flags & NFX_FLAG_UNREAD ? NFX_FEATURE_UNREAD : 0;
	need |= p->flags & NFX_FLAG_EMERGENCY ? NFX_FEATURE_RING : 0;
	if (need & ~features)
		return REFUSE(extack, EOPNOTSUPP, "uses a feature that was not agreed on at HELLO");
	return 0;
}

static int plan_read(struct nfx_plan *p, u16 fam, struct nlattr **a, struct netlink_ext_ack *extack)
{
	const struct nlattr *nest;
	int err = 0, rest, i = 0;

	p->rtp = nla_get_u8(a[NFX_A_ACTION]);
	p->rtcp = a[NFX_A_RTCP_ACTION] ? nla_get_u8(a[NFX_A_RTCP_ACTION]) : p->rtp;
	p->with_queue = a[NFX_A_QUEUE];
	if (p->with_queue)
		p->queue = nla_get_u16(a[NFX_A_QUEUE]);
	p->flags = get_u32(a[NFX_A_FLAGS]);
	if (a[NFX_A_COOKIE])
		p->cookie = nla_get_u64(a[NFX_A_COOKIE]);
	if (a[NFX_A_SOURCE_ADDR] || a[NFX_A_SOURCE_PORT])
		err = address(&p->source, fam, a[NFX_A_SOURCE_ADDR], a[NFX_A_SOURCE_PORT], extack);
	p->mismatch = a[NFX_A_MISMATCH] ? nla_get_u8(a[NFX_A_MISMATCH]) : NFX_MISMATCH_DROP;
	p->with_ssrc = a[NFX_A_SSRC];
	p->ssrc = get_u32(a[NFX_A_SSRC]);
	p->rate = get_u32(a[NFX_A_RATE]);
	p->source_rate = get_u32(a[NFX_A_SOURCE_RATE]);
	p->silence_ms = get_u32(a[NFX_A_SILENCE_MS]);
	if (err || !a[NFX_A_DESTS])
		return err;
	nla_for_each_nested(nest, a[NFX_A_DESTS], rest) {
		err = dest_read(&p->dest[i++], fam, nest, extack);
		if (err)
			return err;
	}
	return 0;
}

/* --- Writing ---------------------------------------------------------------------------------- */

static int put_key(struct sk_buff *skb, const struct nfx_key *k, int addr, int port)
{
	return nla_put(skb, addr, k->family == AF_INET ? 4 : 16, &k->addr) ||
	       nla_put_be16(skb, port, k->port);
}

static int put_stats(struct sk_buff *skb, const u64 n[NFX_S_COUNT])
{
	struct nlattr *nest = nla_nest_start(skb, NFX_A_STATS);

	if (!nest)
		return -EMSGSIZE;
	for (int i = NFX_S_UNSPEC + 1; i < NFX_S_COUNT; i++)
		if (nla_put_u64_64bit(skb, i, n[i], NFX_S_UNSPEC))
			return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

static int put_dests(struct sk_buff *skb, const struct nfx_plan *p)
{
	struct nlattr *nest = nla_nest_start(skb, NFX_A_DESTS);

	if (!nest)
		return -EMSGSIZE;
	for (u32 i = 0; i < p->dests; i++) {
		const struct nfx_dest *d = &p->dest[i];
		struct nlattr *one = nla_nest_start(skb, NFX_A_DEST);

		if (!one || put_key(skb, &d->to, NFX_D_ADDR, NFX_D_PORT) ||
		    put_key(skb, &d->from, NFX_D_LOCAL_ADDR, NFX_D_LOCAL_PORT) ||
		    (d->set_tos && nla_put_u8(skb, NFX_D_TOS, d->tos)))
			return -EMSGSIZE;
		nla_nest_end(skb, one);
	}
	nla_nest_end(skb, nest);
	return 0;
}

static int put_plan(struct sk_buff *skb, const struct nfx_plan *p)
{
	u32 seq = READ_ONCE(p->seq);

	return nla_put_u8(skb, NFX_A_ACTION, p->rtp) ||
	       nla_put_u8(skb, NFX_A_RTCP_ACTION, p->rtcp) ||
	       (p->with_queue && nla_put_u16(skb, NFX_A_QUEUE, p->queue)) ||
	       nla_put_u32(skb, NFX_A_FLAGS, p->flags) ||
	       nla_put_u64_64bit(skb, NFX_A_COOKIE, p->cookie, NFX_A_PAD) ||
	       (p->source.family &&
		put_key(skb, &p->source, NFX_A_SOURCE_ADDR, NFX_A_SOURCE_PORT)) ||
	       nla_put_u8(skb, NFX_A_MISMATCH, p->mismatch) ||
	       (p->with_ssrc && nla_put_u32(skb, NFX_A_SSRC, p->ssrc)) ||
	       (p->rate && nla_put_u32(skb, NFX_A_RATE, p->rate)) ||
	       (p->source_rate && nla_put_u32(skb, NFX_A_SOURCE_RATE, p->source_rate)) ||
	       (p->silence_ms && nla_put_u32(skb, NFX_A_SILENCE_MS, p->silence_ms)) ||
	       (seq & NFX_SEQ_SEEN && nla_put_u16(skb, NFX_A_SEQ, (u16)seq)) ||
	       (p->dests && put_dests(skb, p));
}

/* Call under RCU, or with the namespace's lock. */
static int put_target(struct sk_buff *skb, struct nfx_target *t, u32 portid, u32 seq, int flags)
{
	void *head = genlmsg_put(skb, portid, seq, &nfx_family, flags, NFX_CMD_TARGET_GET);
	unsigned long seen = READ_ONCE(t->seen);
	u64 stats[NFX_S_COUNT] = {};
	int err;

	if (!head)
		return -EMSGSIZE;
	nfx_count_sum(stats, t->count);
	rcu_read_lock();
	err = nla_put_u32(skb, NFX_A_OWNER, t->owner_id) ||
	      nla_put_u8(skb, NFX_A_FAMILY, t->key.family) ||
	      put_key(skb, &t->key, NFX_A_ADDR, NFX_A_PORT) ||
	      put_plan(skb, rcu_dereference(t->plan)) ||
	      (seen && nla_put_u64_64bit(skb, NFX_A_LAST_SEEN_MS,
					 jiffies64_to_msecs(jiffies - seen), NFX_A_PAD)) ||
	      put_stats(skb, stats);
	rcu_read_unlock();
	if (err) {
		genlmsg_cancel(skb, head);
		return -EMSGSIZE;
	}
	genlmsg_end(skb, head);
	return 0;
}

/* One limit for all targets together, so that listeners are not flooded. */
#define EVENTS_PER_SECOND 2000

static bool event_fits(struct nfx_net *nn)
{
	bool fits;

	local_bh_disable();
	fits = nfx_bucket_take(&nn->events, EVENTS_PER_SECOND, 1);
	local_bh_enable();
	return fits;
}

void nfx_event(struct nfx_net *nn, struct nfx_target *t, u8 event, const struct nfx_key *source,
	       u32 ssrc)
{
	struct sk_buff *skb;
	void *head;
	u64 cookie;

	if (!genl_has_listeners(&nfx_family, nn->net, 0) || !event_fits(nn))
		return;
	skb = genlmsg_new(256, GFP_ATOMIC);
	if (!skb)
		return;
	rcu_read_lock();
	cookie = rcu_dereference(t->plan)->cookie;
	rcu_read_unlock();
	head = genlmsg_put(skb, 0, 0, &nfx_family, 0, NFX_CMD_EVENT);
	if (!head || nla_put_u8(skb, NFX_A_EVENT, event) ||
	    nla_put_u32(skb, NFX_A_OWNER, t->owner_id) ||
	    nla_put_u8(skb, NFX_A_FAMILY, t->key.family) ||
	    put_key(skb, &t->key, NFX_A_ADDR, NFX_A_PORT) ||
	    nla_put_u64_64bit(skb, NFX_A_COOKIE, cookie, NFX_A_PAD) ||
	    (source && put_key(skb, source, NFX_A_SOURCE_ADDR, NFX_A_SOURCE_PORT)) ||
	    (event == NFX_EVENT_SSRC && nla_put_u32(skb, NFX_A_SSRC, ssrc))) {
		nlmsg_free(skb);
		return;
	}
	genlmsg_end(skb, head);
	genlmsg_multicast_netns(&nfx_family, nn->net, skb, 0, 0, GFP_ATOMIC);
}

/* --- Commands --------------------------------------------------------------------------------- */

static int hello_reply(struct nfx_net *nn, const struct nfx_owner *o, struct genl_info *info)
{
	struct sk_buff *skb = genlmsg_new(256, GFP_KERNEL);
	void *head;

	if (!skb)
		return -ENOMEM;
	head = genlmsg_put_reply(skb, info, &nfx_family, 0, NFX_CMD_HELLO);
	if (!head || nla_put_u32(skb, NFX_A_VERSION, NFX_VERSION) ||
	    nla_put_u32(skb, NFX_A_FEATURES, o->features) ||
	    nla_put_u32(skb, NFX_A_MARK, nn->mark) ||
	    nla_put_u32(skb, NFX_A_TARGETS, o->n) ||
	    nla_put_u32(skb, NFX_A_MAX_TARGETS, NFX_MAX_TARGETS) ||
	    nla_put_u32(skb, NFX_A_MAX_DESTS, NFX_MAX_DESTS) ||
	    nla_put_string(skb, NFX_A_RELEASE, NFX_RELEASE)) {
		nlmsg_free(skb);
		return -EMSGSIZE;
	}
	genlmsg_end(skb, head);
	return genlmsg_reply(skb, info);
}

static int namespace_ready(struct nfx_net *nn, struct netlink_ext_ack *extack)
{
	if (!nn->sources) {
		nn->sources = nfx_sources_alloc();
		if (!nn->sources)
			return -ENOMEM;
	}
	if (nfx_hooks_register(nn))
		return REFUSE(extack, ENOMEM, "netfilter takes no hooks");
	return 0;
}

static int do_hello(struct sk_buff *skb, struct genl_info *info)
{
	struct nfx_net *nn = nfx_net(genl_info_net(info));
	struct nlattr **a = info->attrs;
	struct nfx_hello hello;
	struct nfx_owner *o;
	int err;

	if (!a[NFX_A_VERSION] || !a[NFX_A_FEATURES])
		return REFUSE(info->extack, EINVAL, "HELLO needs version and features");
	if (nla_get_u32(a[NFX_A_VERSION]) != NFX_VERSION)
		return REFUSE(info->extack, EPROTONOSUPPORT,
			      "this module (" NFX_RELEASE ") speaks version 1 of the interface: install daemon and module of one release");
	hello = (struct nfx_hello){
		.id = get_u32(a[NFX_A_OWNER]),
		.portid = info->snd_portid,
		.features = nla_get_u32(a[NFX_A_FEATURES]) & NFX_KNOWN_FEATURES,
		.grace_ms = get_u32(a[NFX_A_GRACE_MS]),
	};
	if (!nfx_may_name_epoll(skb))
		hello.features &= ~NFX_FEATURE_RING_WAIT;
	mutex_lock(&nn->lock);
	err = namespace_ready(nn, info->extack);
	err = err ? err : nfx_owner_hello(nn, &hello, &o, info->extack);
	if (!err) {
		queue_delayed_work(nfx_wq, &nn->silence, HZ);
		err = hello_reply(nn, o, info);
	}
	mutex_unlock(&nn->lock);
	return err;
}

/* Whether packets were queued since the daemon's last look: the change would let later packets
 * overtake them. */
static bool queued_since(const struct nfx_target *t, const struct nlattr *a)
{
	u64 n[NFX_S_COUNT] = {};

	if (!a)
		return false;
	nfx_count_sum(n, t->count);
	return n[NFX_S_QUEUED] != nla_get_u64(a);
}

static int target_set(struct nfx_net *nn, struct nfx_plan *p, const struct nfx_key *key,
		      struct genl_info *info)
{
	struct nfx_owner *o = nfx_owner_of(nn, info->snd_portid);
	u16 flags = info->nlhdr->nlmsg_flags;
	struct nfx_target *t;
	bool created;
	int err;

	if (!o)
		return REFUSE(info->extack, EPERM, "this socket did not say HELLO");
	err = plan_check(p, o->features, info->extack);
	if (err)
		return err;
	rcu_read_lock();
	t = nfx_table_find(nn, key);
	rcu_read_unlock();
	if (t && t->owner != o)
		return REFUSE(info->extack, EPERM, "the target is another owner's");
	if (t && flags & NLM_F_EXCL)
		return REFUSE(info->extack, EEXIST, "there is such a target already");
	if (!t && !(flags & NLM_F_CREATE))
		return REFUSE(info->extack, ENOENT, "no such target");
	if (t && queued_since(t, info->attrs[NFX_A_IF_QUEUED]))
		return -EAGAIN;
	err = nfx_table_set(nn, o, key, p, &t, &created);
	if (err == -ENOSPC)
		return REFUSE(info->extack, ENOSPC, "the table of targets is full");
	return err;
}

static int do_set(struct sk_buff *skb, struct genl_info *info)
{
	struct nfx_net *nn = nfx_net(genl_info_net(info));
	struct nfx_plan *p;
	struct nfx_key key;
	int err = target_name(&key, info->attrs, info->extack), dests;

	if (err)
		return err;
	if (!info->attrs[NFX_A_ACTION])
		return REFUSE(info->extack, EINVAL, "a target needs an action");
	dests = dests_count(info->attrs[NFX_A_DESTS], info->extack);
	if (dests < 0)
		return dests;
	p = nfx_plan_alloc(dests);
	if (!p)
		return -ENOMEM;
	err = plan_read(p, key.family, info->attrs, info->extack);
	if (!err) {
		mutex_lock(&nn->lock);
		err = target_set(nn, p, &key, info);
		mutex_unlock(&nn->lock);
	}
	if (err)
		nfx_plan_free(p);
	return err;
}

/* Replies with the named target; gone: removes it first, so that these are its last counters. */
static int target_reply(struct nfx_net *nn, struct nfx_target *t, struct genl_info *info, bool gone)
{
	struct sk_buff *skb = genlmsg_new(NLMSG_GOODSIZE, GFP_KERNEL);
	int err;

	if (!skb)
		return -ENOMEM;
	rcu_read_lock();
	if (gone)
		nfx_table_del(nn, t);
	err = put_target(skb, t, info->snd_portid, info->snd_seq, 0);
	rcu_read_unlock();
	if (err) {
		nlmsg_free(skb);
		return err;
	}
	return genlmsg_reply(skb, info);
}

static int target_of(struct nfx_target **t, struct nfx_net *nn, struct genl_info *info)
{
	struct nfx_key key;
	int err = target_name(&key, info->attrs, info->extack);

	if (err)
		return err;
	rcu_read_lock();
	*t = nfx_table_find(nn, &key);
	rcu_read_unlock();
	return *t ? 0 : REFUSE(info->extack, ENOENT, "no such target");
}

static int do_del(struct sk_buff *skb, struct genl_info *info)
{
	struct nfx_net *nn = nfx_net(genl_info_net(info));
	struct nfx_target *t;
	int err;

	mutex_lock(&nn->lock);
	err = target_of(&t, nn, info);
	if (!err && t->owner->portid != info->snd_portid)
		err = REFUSE(info->extack, EPERM, "the target is another owner's");
	if (!err && info->nlhdr->nlmsg_flags & NLM_F_ECHO)
		err = target_reply(nn, t, info, true);
	else if (!err)
		nfx_table_del(nn, t);
	mutex_unlock(&nn->lock);
	return err;
}

static int do_guard(struct sk_buff *skb, struct genl_info *info)
{
	struct nfx_net *nn = nfx_net(genl_info_net(info));
	const struct nlattr *a = info->attrs[NFX_A_GUARD];
	struct nfx_target *t;
	int err;

	mutex_lock(&nn->lock);
	err = target_of(&t, nn, info);
	if (!err && t->owner->portid != info->snd_portid)
		err = REFUSE(info->extack, EPERM, "the target is another owner's");
	if (!err && !(t->owner->features & NFX_FEATURE_GUARD))
		err = REFUSE(info->extack, EOPNOTSUPP, "guards were not agreed on at HELLO");
	if (!err) {
		err = nfx_guard_set(nn, t, a ? nla_data(a) : NULL, a ? nla_len(a) : 0);
		if (err == -EINVAL)
			err = REFUSE(info->extack, EINVAL, "a guard's length or tag length is wrong");
	}
	mutex_unlock(&nn->lock);
	if (a) /* a guard has secrets */
		memzero_explicit(nla_data(a), nla_len(a));
	return err;
}

static int do_get(struct sk_buff *skb, struct genl_info *info)
{
	struct nfx_net *nn = nfx_net(genl_info_net(info));
	struct nfx_target *t;
	int err;

	mutex_lock(&nn->lock);
	err = target_of(&t, nn, info);
	err = err ? err : target_reply(nn, t, info, false);
	mutex_unlock(&nn->lock);
	return err;
}

static int do_flush(struct sk_buff *skb, struct genl_info *info)
{
	struct nfx_net *nn = nfx_net(genl_info_net(info));
	struct nfx_owner *o;
	int err = 0;

	mutex_lock(&nn->lock);
	o = nfx_owner_of(nn, info->snd_portid);
	if (o)
		nfx_owner_flush(nn, o);
	else
		err = REFUSE(info->extack, EPERM, "this socket did not say HELLO");
	mutex_unlock(&nn->lock);
	return err;
}

static int do_stats(struct sk_buff *skb, struct genl_info *info)
{
	struct nfx_net *nn = nfx_net(genl_info_net(info));
	struct sk_buff *reply = genlmsg_new(NLMSG_GOODSIZE, GFP_KERNEL);
	u64 stats[NFX_S_COUNT];
	void *head;

	if (!reply)
		return -ENOMEM;
	mutex_lock(&nn->lock);
	nfx_table_totals(nn, stats);
	mutex_unlock(&nn->lock);
	head = genlmsg_put_reply(reply, info, &nfx_family, 0, NFX_CMD_STATS_GET);
	if (!head || nla_put_u32(reply, NFX_A_TARGETS, atomic_read(&nn->targets.nelems)) ||
	    put_stats(reply, stats)) {
		nlmsg_free(reply);
		return -EMSGSIZE;
	}
	genlmsg_end(reply, head);
	return genlmsg_reply(reply, info);
}

/* --- Dump ------------------------------------------------------------------------------------- */

struct dump {
	struct rhashtable_iter iter;
	struct nfx_target *again; /* did not fit into the last message */
	struct nfx_key key;       /* zero: not a filter */
	u32 owner;
	u8 action;
	bool with_owner, with_action, with_addr;
};

static int dump_start(struct netlink_callback *cb)
{
	struct nfx_net *nn = nfx_net(sock_net(cb->skb->sk));
	struct nlattr **a = nfx_dump_attrs(cb);
	struct dump *d = kzalloc(sizeof(*d), GFP_KERNEL);

	if (!d)
		return -ENOMEM;
	d->key.family = a[NFX_A_FAMILY] ? nla_get_u8(a[NFX_A_FAMILY]) : 0;
	d->key.port = a[NFX_A_PORT] ? nla_get_be16(a[NFX_A_PORT]) : 0;
	d->with_addr = a[NFX_A_ADDR];
	if (d->with_addr)
		memcpy(&d->key.addr, nla_data(a[NFX_A_ADDR]), nla_len(a[NFX_A_ADDR]));
	d->with_owner = a[NFX_A_OWNER];
	d->owner = get_u32(a[NFX_A_OWNER]);
	d->with_action = a[NFX_A_ACTION];
	d->action = d->with_action ? nla_get_u8(a[NFX_A_ACTION]) : 0;
	rhashtable_walk_enter(&nn->targets, &d->iter);
	cb->args[0] = (long)d;
	return 0;
}

static bool wanted(const struct dump *d, const struct nfx_target *t)
{
	return (!d->key.family || d->key.family == t->key.family) &&
	       (!d->key.port || d->key.port == t->key.port) &&
	       (!d->with_addr || ipv6_addr_equal(&d->key.addr, &t->key.addr)) &&
	       (!d->with_owner || d->owner == t->owner_id) &&
	       (!d->with_action || d->action == rcu_dereference(t->plan)->rtp);
}

static int dump_next(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct dump *d = (struct dump *)cb->args[0];
	struct nfx_target *t;
	int err = 0;

	rhashtable_walk_start(&d->iter);
	/* The entry that did not fit last time is the current position. */
	t = d->again ? rhashtable_walk_peek(&d->iter) : rhashtable_walk_next(&d->iter);
	d->again = NULL;
	for (; t; t = rhashtable_walk_next(&d->iter)) {
		if (IS_ERR(t)) {
			if (PTR_ERR(t) == -EAGAIN) /* resized: repeated entries do no harm */
				continue;
			err = PTR_ERR(t);
			break;
		}
		if (!wanted(d, t))
			continue;
		if (put_target(skb, t, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq,
			       NLM_F_MULTI)) {
			d->again = t;
			break;
		}
	}
	rhashtable_walk_stop(&d->iter);
	return err ? err : skb->len;
}

static int dump_done(struct netlink_callback *cb)
{
	struct dump *d = (struct dump *)cb->args[0];

	if (d) {
		rhashtable_walk_exit(&d->iter);
		kfree(d);
	}
	return 0;
}

#define OP(name, do_it, its_policy)                                                          \
	{                                                                                    \
		.cmd = NFX_CMD_##name, .flags = GENL_UNS_ADMIN_PERM, .doit = do_it,          \
		.policy = its_policy, .maxattr = ARRAY_SIZE(its_policy) - 1,                 \
	}

/* Never empty, because genl would overwrite the family's number of attributes. */
static const struct nla_policy no_policy[] = {
	[NFX_A_VERSION] = {.type = NLA_REJECT},
};

static const struct genl_ops ops[] = {
	OP(HELLO, do_hello, hello_policy),
	OP(TARGET_SET, do_set, set_policy),
	OP(TARGET_DEL, do_del, name_policy),
	{
		.cmd = NFX_CMD_TARGET_GET,
		.flags = GENL_UNS_ADMIN_PERM,
		.doit = do_get,
		.start = dump_start,
		.dumpit = dump_next,
		.done = dump_done,
		.policy = name_policy,
		.maxattr = ARRAY_SIZE(name_policy) - 1,
	},
	OP(FLUSH, do_flush, no_policy),
	OP(STATS_GET, do_stats, no_policy),
	OP(RING_OPEN, nfx_do_ring_open, nfx_ring_policy),
	OP(RING_CLOSE, nfx_do_ring_close, no_policy),
	OP(GUARD_SET, do_guard, guard_policy),
};

/* Events reveal addresses, so only those who may change targets receive them. */
static const struct genl_multicast_group groups[] = {
	{.name = NFX_MCGRP_EVENTS, .flags = NFX_MCAST_ADMIN},
};

struct genl_family nfx_family __ro_after_init = {
	.name = NFX_FAMILY_NAME,
	.version = NFX_VERSION,
	.maxattr = NFX_A_COUNT - 1,
	.netnsok = true,
	.module = THIS_MODULE,
	.ops = ops,
	.n_ops = ARRAY_SIZE(ops),
	/* Not lower: the kernel then refuses NLM_F_CREATE and NLM_F_EXCL. */
	.resv_start_op = NFX_CMD_COUNT,
	.mcgrps = groups,
	.n_mcgrps = ARRAY_SIZE(groups),
};

int nfx_genl_init(void)
{
	return genl_register_family(&nfx_family);
}

void nfx_genl_exit(void)
{
	genl_unregister_family(&nfx_family);
}
