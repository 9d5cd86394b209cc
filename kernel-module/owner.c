// SPDX-License-Identifier: GPL-2.0
/* Owners: instances of the daemon. An instance keeps its number over restarts. Its targets continue
 * for a grace time after its socket was closed, and an instance that returns in time gets them
 * back. */
#include <linux/netlink.h>
#include <linux/slab.h>

#include "nf_xcipher.h"

struct nfx_owner *nfx_owner_of(struct nfx_net *nn, u32 portid)
{
	struct nfx_owner *o;

	lockdep_assert_held(&nn->lock);
	list_for_each_entry(o, &nn->owners, node)
		if (o->portid == portid)
			return o;
	return NULL;
}

void nfx_owner_flush(struct nfx_net *nn, struct nfx_owner *owner)
{
	struct nfx_target *t, *next;

	list_for_each_entry_safe(t, next, &owner->targets, in_owner)
		nfx_table_del(nn, t);
}

/* Nobody moves guards any more: they would soon refuse the terminals' own packets. The next process
 * sets guards again where it finds attacks. */
static void unguard(struct nfx_net *nn, struct nfx_owner *o)
{
	struct nfx_target *t;

	list_for_each_entry(t, &o->targets, in_owner)
		if (rcu_access_pointer(t->guard))
			(void)nfx_guard_set(nn, t, NULL, 0);
}

static void owner_free(struct nfx_net *nn, struct nfx_owner *o)
{
	nfx_ring_close(nn, o, NFX_RING_CLOSED);
	nfx_owner_flush(nn, o);
	list_del(&o->node);
	nn->owners_n--;
	/* The timer may have been armed again while this run waited for the lock. */
	cancel_delayed_work(&o->expire);
	/* Packets in progress read the owner of their target. */
	kfree_rcu(o, rcu);
}

/* The grace time is over. */
static void expire(struct work_struct *work)
{
	struct nfx_owner *o = container_of(to_delayed_work(work), struct nfx_owner, expire);
	struct nfx_net *nn = o->nn;

	mutex_lock(&nn->lock);
	if (!o->portid && time_after_eq(jiffies, o->expires)) {
		pr_info("nf_xcipher: owner %u did not come back, its %u targets go\n", o->id, o->n);
		owner_free(nn, o);
	}
	mutex_unlock(&nn->lock);
}

int nfx_owner_hello(struct nfx_net *nn, const struct nfx_hello *h, struct nfx_owner **out,
		    struct netlink_ext_ack *extack)
{
	struct nfx_owner *o = NULL, *i;

	lockdep_assert_held(&nn->lock);
	list_for_each_entry(i, &nn->owners, node) {
		if (i->portid == h->portid && i->id != h->id) {
			NL_SET_ERR_MSG(extack, "this socket owns the targets of another owner already");
			return -EINVAL;
		}
		if (i->id == h->id)
			o = i;
	}
	if (o && o->portid && o->portid != h->portid) {
		NL_SET_ERR_MSG(extack, "another process owns the targets of this owner");
		return -EBUSY;
	}
	if (!o) {
		if (nn->owners_n >= NFX_MAX_OWNERS) {
			NL_SET_ERR_MSG(extack, "too many owners in this network namespace");
			return -ENOSPC;
		}
		o = kzalloc(sizeof(*o), GFP_KERNEL_ACCOUNT);
		if (!o)
			return -ENOMEM;
		o->id = h->id;
		o->nn = nn;
		INIT_LIST_HEAD(&o->targets);
		INIT_DELAYED_WORK(&o->expire, expire);
		list_add_tail(&o->node, &nn->owners);
		nn->owners_n++;
	}
	/* If it already runs, it waits for the lock and then sees the new owner. */
	cancel_delayed_work(&o->expire);
	o->portid = h->portid;
	o->features = h->features;
	o->grace_ms = h->grace_ms;
	*out = o;
	return 0;
}

static int notify(struct notifier_block *nb, unsigned long event, void *data)
{
	struct netlink_notify *n = data;
	struct nfx_owner *o;
	struct nfx_net *nn;

	if (event != NETLINK_URELEASE || n->protocol != NETLINK_GENERIC)
		return NOTIFY_DONE;
	/* The kernel's own sockets may close after our data of the namespace is gone. */
	if (!n->portid)
		return NOTIFY_DONE;
	nn = nfx_net(n->net);
	mutex_lock(&nn->lock);
	o = nfx_owner_of(nn, n->portid);
	if (o) {
		unsigned long grace = msecs_to_jiffies(o->grace_ms);

		nfx_ring_close(nn, o, NFX_RING_CLOSED);
		unguard(nn, o);
		o->portid = 0;
		o->expires = jiffies + grace;
		mod_delayed_work(nfx_wq, &o->expire, grace);
	}
	mutex_unlock(&nn->lock);
	return NOTIFY_DONE;
}

static struct notifier_block notifier = {.notifier_call = notify};

int nfx_owner_init(void)
{
	return netlink_register_notifier(&notifier);
}

void nfx_owner_exit(void)
{
	netlink_unregister_notifier(&notifier);
}

/* Called when the namespace or the module ends. No HELLO can follow. */
void nfx_owners_exit(struct nfx_net *nn)
{
	struct nfx_owner *o;

	mutex_lock(&nn->lock);
	while ((o = list_first_entry_or_null(&nn->owners, struct nfx_owner, node))) {
		/* The work takes the lock, so do not hold it here. The work sees an owner and does
		 * nothing. */
		o->portid = U32_MAX;
		mutex_unlock(&nn->lock);
		cancel_delayed_work_sync(&o->expire);
		mutex_lock(&nn->lock);
		owner_free(nn, o);
	}
	mutex_unlock(&nn->lock);
}
