// SPDX-License-Identifier: GPL-2.0
/* Streams under attack: drops packets that are not plausible before they cost a queue, a copy or a
 * wake-up. The daemon decides which are plausible, and sends its criteria by NFX_CMD_GUARD_SET. The
 * check is the daemon's own (packet/guard.h). */
#include <linux/ktime.h>
#include <linux/slab.h>

#include "compat.h"
#include "nf_xcipher.h"

static u32 tag_of(const struct sk_buff *skb, const struct nfx_suspect *s, u32 tag_len)
{
	u8 room[4];
	const u8 *tag = skb_header_pointer(skb, s->off + s->len - tag_len, tag_len, room);

	if (!tag)
		return 0;
	return tag_len == 4 ? get_unaligned_be32(tag) : *tag;
}

int nfx_guard_refuses(const struct nfx_target *t, const struct sk_buff *skb,
		      const struct nfx_suspect *s)
{
	const struct nfx_guard *g = rcu_dereference(t->guard);
	struct guard_packet p = {};
	enum guard_result r;

	/* Shorter than RTP: the daemon drops it. Of coalesced packets only the first is visible. */
	if (!g || s->len < 12 || skb_is_gso(skb))
		return 0;
	memcpy(p.addr, &s->from->addr, sizeof(p.addr));
	p.port = ntohs(s->from->port);
	p.v6 = s->from->family == AF_INET6;
	p.first = s->data[0];
	p.second = s->data[1];
	p.seq = get_unaligned_be16(s->data + 2);
	p.time = get_unaligned_be32(s->data + 4);
	p.ssrc = get_unaligned_be32(s->data + 8);
	if (guard_wants_tag(&g->guard.window, &p))
		p.tag = tag_of(skb, s, g->guard.window.tag_len);
	r = guard_check(&g->guard, &p, ktime_get_ns());
	BUILD_BUG_ON(NFX_S_GUARD_TAG - NFX_S_GUARD_SOURCE != GUARD_TAG - GUARD_SOURCE);
	return r == GUARD_PASS ? 0 : NFX_S_GUARD_SOURCE + (int)r - GUARD_SOURCE;
}

/* Tags of GUARD_TAGS have one or four bytes, those of GUARD_MACS four. */
static bool sound(const struct guard *g, u32 len)
{
	u32 kinds = g->window.flags & (GUARD_TAGS | GUARD_MACS), tag = g->window.tag_len;

	if (!kinds)
		return true;
	return len == sizeof(*g) && (tag == 4 || (tag == 1 && kinds == GUARD_TAGS)) &&
	       kinds != (GUARD_TAGS | GUARD_MACS);
}

void nfx_guard_free(struct nfx_guard *g)
{
	kfree_sensitive(g);
}

static void free_late(struct rcu_head *rcu)
{
	nfx_guard_free(container_of(rcu, struct nfx_guard, rcu));
}

int nfx_guard_set(struct nfx_net *nn, struct nfx_target *t, const void *data, u32 len)
{
	struct nfx_guard *old = rcu_dereference_protected(t->guard, lockdep_is_held(&nn->lock));
	struct nfx_guard *g = NULL;

	if (data) {
		if (len != sizeof(struct guard_window) && len != sizeof(struct guard))
			return -EINVAL;
		g = kzalloc(sizeof(*g), GFP_KERNEL_ACCOUNT);
		if (!g)
			return -ENOMEM;
		memcpy(&g->guard, data, len);
		if (!sound(&g->guard, len)) {
			nfx_guard_free(g);
			return -EINVAL;
		}
	}
	rcu_assign_pointer(t->guard, g);
	if (old)
		call_rcu(&old->rcu, free_late);
	return 0;
}
