// SPDX-License-Identifier: GPL-2.0
/* Netlink commands that open and close rings (uapi/nf_xcipher_ring.h). */
#include <net/genetlink.h>

#include "nf_xcipher.h"

const struct nla_policy nfx_ring_policy[NFX_A_COUNT] = {
	[NFX_A_RING_CONTROL] = {.type = NLA_U64},
	[NFX_A_RING_MEMORY] = {.type = NLA_U64},
	[NFX_A_RING_LENGTH] = {.type = NLA_U64},
	[NFX_A_RING_SLOTS] = {.type = NLA_U32},
	[NFX_A_RING_FIRST] = {.type = NLA_U32},
	[NFX_A_RING_STRIDE] = {.type = NLA_U32},
	[NFX_A_RING_ROOM] = {.type = NLA_U32},
	[NFX_A_RING_SENDS] = {.type = NLA_U32},
	[NFX_A_RING_EVENT_FD] = {.type = NLA_U32},
	[NFX_A_RING_BELL_FD] = {.type = NLA_U32},
	[NFX_A_RING_POLL_FD] = {.type = NLA_U32},
};

static u32 get_u32(const struct nlattr *a)
{
	return a ? nla_get_u32(a) : 0;
}

static u64 get_u64(const struct nlattr *a)
{
	return a ? nla_get_u64(a) : 0;
}

bool nfx_may_name_epoll(struct sk_buff *skb)
{
	return netlink_capable(skb, CAP_NET_ADMIN);
}

static int ring_reply(struct genl_info *info, const struct nfx_ring *r, const struct nfx_owner *o)
{
	struct sk_buff *reply = genlmsg_new(NLMSG_DEFAULT_SIZE, GFP_KERNEL);
	void *head;

	if (!reply)
		return -ENOMEM;
	head = genlmsg_put_reply(reply, info, &nfx_family, 0, NFX_CMD_RING_OPEN);
	if (!head || nla_put_u32(reply, NFX_A_RING, nfx_ring_number(r)) ||
	    nla_put_u64_64bit(reply, NFX_A_RING_LOST, o->ring_lost, NFX_A_PAD)) {
		nlmsg_free(reply);
		return -EMSGSIZE;
	}
	genlmsg_end(reply, head);
	return genlmsg_reply(reply, info);
}

static int ring_attach(struct nfx_net *nn, struct nfx_ring *r, struct genl_info *info)
{
	struct nfx_owner *o = nfx_owner_of(nn, info->snd_portid);

	if (!o)
		return REFUSE(info->extack, EPERM, "this socket did not say HELLO");
	if (!(o->features & NFX_FEATURE_RING))
		return REFUSE(info->extack, EOPNOTSUPP, "rings were not agreed on at HELLO");
	if (rcu_access_pointer(o->ring))
		return REFUSE(info->extack, EBUSY, "this owner has a ring");
	return nfx_ring_attach(nn, o, r) ? REFUSE(info->extack, ENOSPC, "too many rings") : 0;
}

int nfx_do_ring_open(struct sk_buff *skb, struct genl_info *info)
{
	struct nfx_net *nn = nfx_net(genl_info_net(info));
	struct nlattr **a = info->attrs;
	struct nfx_ring_wish wish = {
		.control = get_u64(a[NFX_A_RING_CONTROL]),
		.memory = get_u64(a[NFX_A_RING_MEMORY]),
		.length = get_u64(a[NFX_A_RING_LENGTH]),
		.slots = get_u32(a[NFX_A_RING_SLOTS]),
		.first = get_u32(a[NFX_A_RING_FIRST]),
		.stride = get_u32(a[NFX_A_RING_STRIDE]),
		.room = get_u32(a[NFX_A_RING_ROOM]),
		.sends = get_u32(a[NFX_A_RING_SENDS]),
		.event_fd = get_u32(a[NFX_A_RING_EVENT_FD]),
		.bell_fd = get_u32(a[NFX_A_RING_BELL_FD]),
		.poll_fd = get_u32(a[NFX_A_RING_POLL_FD]),
		.with_poll = a[NFX_A_RING_POLL_FD],
	};
	struct nfx_owner *o;
	struct nfx_ring *r;
	int err;

	if (!a[NFX_A_RING_EVENT_FD] || !a[NFX_A_RING_BELL_FD])
		return REFUSE(info->extack, EINVAL, "a ring needs an eventfd and a doorbell");
	if (wish.with_poll && !nfx_may_name_epoll(skb))
		return REFUSE(info->extack, EPERM, "in a user namespace a ring cannot name an epoll");
	err = nfx_ring_prepare(&r, nn, &wish, info->extack);
	if (err)
		return err;
	mutex_lock(&nn->lock);
	err = ring_attach(nn, r, info);
	if (err) {
		nfx_ring_free(r);
	} else {
		o = nfx_owner_of(nn, info->snd_portid);
		err = ring_reply(info, r, o);
		if (err) /* close it, because its owner did not get its number */
			nfx_ring_close(nn, o, NFX_RING_CLOSED);
		else
			o->ring_lost = 0;
	}
	mutex_unlock(&nn->lock);
	return err;
}

int nfx_do_ring_close(struct sk_buff *skb, struct genl_info *info)
{
	struct nfx_net *nn = nfx_net(genl_info_net(info));
	struct nfx_owner *o;
	int err = 0;

	mutex_lock(&nn->lock);
	o = nfx_owner_of(nn, info->snd_portid);
	if (o && rcu_access_pointer(o->ring))
		nfx_ring_close(nn, o, NFX_RING_CLOSED);
	else
		err = REFUSE(info->extack, ENOENT, "this socket's owner has no ring");
	mutex_unlock(&nn->lock);
	return err;
}
