// SPDX-License-Identifier: GPL-2.0
/* nf_xcipher: steers, relays and drops media packets for xcipherd inside netfilter. Loading it
 * does not affect packets: the first daemon that sends HELLO in a network namespace installs the
 * hooks. */
#include <linux/module.h>
#include <linux/random.h>
#include <linux/rcupdate.h>
#include <linux/rtnetlink.h>
#include <net/netns/generic.h>

#include "nf_xcipher.h"

unsigned int nfx_net_id;
struct workqueue_struct *nfx_wq;

struct nfx_net *nfx_net(const struct net *net)
{
	return net_generic(net, nfx_net_id);
}

/* Reports each silent target once. */
static void silence_look(struct nfx_net *nn, struct nfx_target *t)
{
	const struct nfx_plan *p = rcu_dereference_protected(t->plan, lockdep_is_held(&nn->lock));
	unsigned long seen = READ_ONCE(t->seen), from = seen ? seen : t->since;

	if (!p->silence_ms || READ_ONCE(t->told_silence) ||
	    time_before(jiffies, from + msecs_to_jiffies(p->silence_ms)))
		return;
	WRITE_ONCE(t->told_silence, true);
	nfx_event(nn, t, NFX_EVENT_SILENCE, NULL, 0);
}

static void silence_work(struct work_struct *work)
{
	struct nfx_net *nn = container_of(to_delayed_work(work), struct nfx_net, silence);
	struct nfx_owner *o;
	struct nfx_target *t;

	mutex_lock(&nn->lock);
	list_for_each_entry(o, &nn->owners, node)
		list_for_each_entry(t, &o->targets, in_owner)
			silence_look(nn, t);
	if (nn->owners_n)
		queue_delayed_work(nfx_wq, &nn->silence, HZ);
	mutex_unlock(&nn->lock);
}

static int __net_init net_init(struct net *net)
{
	struct nfx_net *nn = nfx_net(net);
	int err;

	nn->net = net;
	mutex_init(&nn->lock);
	INIT_LIST_HEAD(&nn->owners);
	INIT_DELAYED_WORK(&nn->silence, silence_work);
	do {
		nn->mark = get_random_u32();
	} while (!nn->mark);
	nn->source_seed = get_random_u32();
	nfx_bucket_init(&nn->events);
	nn->count = nfx_count_alloc();
	if (!nn->count)
		return -ENOMEM;
	err = nfx_table_init(nn);
	if (err)
		free_percpu(nn->count);
	return err;
}

/* Between this and net_exit() the kernel waits for an RCU grace period, so no packet is in a hook
 * at net_exit(). */
static void __net_exit net_pre_exit(struct net *net)
{
	nfx_hooks_unregister(nfx_net(net));
	nfx_rings_exit(nfx_net(net));
}

static void __net_exit net_exit(struct net *net)
{
	struct nfx_net *nn = nfx_net(net);

	nfx_owners_exit(nn);
	cancel_delayed_work_sync(&nn->silence);
	nfx_table_exit(nn);
	free_percpu(nn->count);
	kvfree(nn->sources);
}

/* Cached routes refer to their namespace, so release them before it is freed. The kernel waits for
 * RCU itself, but not for work items that RCU callbacks queue. */
static void __net_exit net_exit_batch(struct list_head *nets)
{
	bool used = false;
	struct net *net;

	list_for_each_entry(net, nets, exit_list)
		used |= nfx_net(net)->closing;
	if (!used)
		return;
	rcu_barrier();
	flush_workqueue(nfx_wq);
}

static struct pernet_operations net_ops = {
	.init = net_init,
	.pre_exit = net_pre_exit,
	.exit = net_exit,
	.exit_batch = net_exit_batch,
	.id = &nfx_net_id,
	.size = sizeof(struct nfx_net),
};

static int __init nfx_init(void)
{
	int err;

	/* MEM_RECLAIM: the queue that ends namespaces has it, and waits for this one. */
	nfx_wq = alloc_workqueue("nf_xcipher", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!nfx_wq)
		return -ENOMEM;
	err = register_pernet_subsys(&net_ops);
	if (err)
		goto no_net;
	err = nfx_owner_init();
	if (err)
		goto no_owner;
	err = nfx_bell_init();
	if (err)
		goto no_bell;
	err = nfx_genl_init();
	if (err)
		goto no_genl;
	return 0;
no_genl:
	nfx_bell_exit();
no_bell:
	nfx_owner_exit();
no_owner:
	unregister_pernet_subsys(&net_ops);
no_net:
	destroy_workqueue(nfx_wq);
	return err;
}

/* Before their doorbell goes: without it no slot becomes free, and packets would wait or be lost.
 * Packets go to the netfilter queues until the hooks are removed. No new ring can be opened. */
static void rings_exit(void)
{
	struct net *net;

	down_read(&net_rwsem);
	for_each_net(net)
		nfx_rings_exit(nfx_net(net));
	up_read(&net_rwsem);
}

/* Closes the interface first, then removes the hooks, then frees their data. */
static void __exit nfx_exit(void)
{
	nfx_genl_exit();
	rings_exit();
	nfx_bell_exit();
	nfx_owner_exit();
	unregister_pernet_subsys(&net_ops);
	/* RCU callbacks queue work, and the workqueue is emptied before it is destroyed. */
	rcu_barrier();
	destroy_workqueue(nfx_wq);
	/* All rings are freed, so callers that waited in their bells have left the rings. Now they
	 * also return from the module. */
	synchronize_rcu_tasks();
}

module_init(nfx_init);
module_exit(nfx_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("steers and relays RTP and SRTP for xcipherd");
MODULE_AUTHOR("xcipher maintainers");
MODULE_VERSION(NFX_RELEASE);
MODULE_ALIAS_GENL_FAMILY(NFX_FAMILY_NAME);
