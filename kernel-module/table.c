// SPDX-License-Identifier: GPL-2.0
/* Table of targets by local address and port. Packets look them up under RCU. A target's plan is
 * replaced as a whole, so a packet sees the old one or the new one. */
#include <linux/hash.h>
#include <linux/slab.h>
#include <net/ipv6.h>

#include "nf_xcipher.h"

/* The daemons choose all keys, so nobody else can make them collide. A packet needs one look-up, or
 * two with its result, which jhash() would make four times as long. */
static u32 key_hash(const void *data, u32 len, u32 seed)
{
	const struct nfx_key *k = data;
	u64 a = (u64)k->addr.s6_addr32[0] << 32 | k->addr.s6_addr32[1];
	u64 b = (u64)k->addr.s6_addr32[2] << 32 | k->addr.s6_addr32[3];
	u64 h = (a ^ seed) * GOLDEN_RATIO_64;

	h = (h ^ h >> 32 ^ b) * GOLDEN_RATIO_64;
	h = (h ^ h >> 32 ^ ((u64)k->family << 16 | k->port)) * GOLDEN_RATIO_64;
	return h >> 32;
}

static u32 target_hash(const void *data, u32 len, u32 seed)
{
	return key_hash(&((const struct nfx_target *)data)->key, len, seed);
}

static int key_differs(struct rhashtable_compare_arg *arg, const void *obj)
{
	const struct nfx_key *a = arg->key, *b = &((const struct nfx_target *)obj)->key;

	return a->port != b->port || a->family != b->family || !ipv6_addr_equal(&a->addr, &b->addr);
}

static const struct rhashtable_params params = {
	.head_offset = offsetof(struct nfx_target, node),
	.key_offset = offsetof(struct nfx_target, key),
	.key_len = sizeof(struct nfx_key),
	.hashfn = key_hash,
	.obj_hashfn = target_hash,
	.obj_cmpfn = key_differs,
	.max_size = NFX_MAX_TARGETS,
	.automatic_shrinking = true,
};

static void hops_free(struct nfx_hop __percpu *hop)
{
	int cpu;

	for_each_possible_cpu(cpu)
		dst_release(per_cpu_ptr(hop, cpu)->dst);
	free_percpu(hop);
}

static void plan_release(struct nfx_plan *p)
{
	for (u32 i = 0; i < p->dests; i++)
		hops_free(p->dest[i].hop);
	kfree(p);
}

struct nfx_plan *nfx_plan_alloc(u32 dests)
{
	struct nfx_plan *p = kzalloc(struct_size(p, dest, dests), GFP_KERNEL_ACCOUNT);

	if (!p)
		return NULL;
	for (; p->dests < dests; p->dests++) {
		p->dest[p->dests].hop = alloc_percpu_gfp(struct nfx_hop, GFP_KERNEL_ACCOUNT);
		if (!p->dest[p->dests].hop) {
			plan_release(p);
			return NULL;
		}
	}
	return p;
}

void nfx_plan_free(struct nfx_plan *p)
{
	if (p)
		plan_release(p);
}

/* Per-processor memory is freed in process context: hence a work, not call_rcu(). */
static void plan_free_work(struct work_struct *work)
{
	plan_release(container_of(to_rcu_work(work), struct nfx_plan, free));
}

static void plan_free_later(struct nfx_plan *p)
{
	INIT_RCU_WORK(&p->free, plan_free_work);
	queue_rcu_work(nfx_wq, &p->free);
}

static void target_release(struct nfx_target *t)
{
	plan_release(rcu_dereference_protected(t->plan, true));
	dst_release(t->way.hop.dst);
	nfx_guard_free(rcu_dereference_protected(t->guard, true));
	free_percpu(t->count);
	kfree(t);
}

static void target_free_work(struct work_struct *work)
{
	target_release(container_of(to_rcu_work(work), struct nfx_target, free));
}

struct nfx_target *nfx_table_find(struct nfx_net *nn, const struct nfx_key *key)
{
	return rhashtable_lookup(&nn->targets, key, params);
}

static struct nfx_target *target_new(const struct nfx_key *key, struct nfx_plan *plan)
{
	struct nfx_target *t = kzalloc(sizeof(*t), GFP_KERNEL_ACCOUNT);

	if (!t)
		return NULL;
	t->count = nfx_count_alloc();
	if (!t->count) {
		kfree(t);
		return NULL;
	}
	t->key = *key;
	t->since = jiffies;
	t->told_flood = t->since - HZ;
	t->told_source = t->since - HZ;
	t->told_ssrc = t->since - HZ;
	nfx_bucket_init(&t->bucket);
	nfx_bucket_init(&t->strangers);
	nfx_believed_init(&t->believed);
	rcu_assign_pointer(t->plan, plan);
	return t;
}

int nfx_table_set(struct nfx_net *nn, struct nfx_owner *owner, const struct nfx_key *key,
		  struct nfx_plan *plan, struct nfx_target **out, bool *created)
{
	struct nfx_target *t = rhashtable_lookup_fast(&nn->targets, key, params);
	int err;

	lockdep_assert_held(&nn->lock);
	*created = !t;
	if (t) {
		struct nfx_plan *old =
			rcu_dereference_protected(t->plan, lockdep_is_held(&nn->lock));

		rcu_assign_pointer(t->plan, plan);
		WRITE_ONCE(t->told_silence, false);
		plan_free_later(old);
		*out = t;
		return 0;
	}
	if (atomic_read(&nn->targets.nelems) >= NFX_MAX_TARGETS)
		return -ENOSPC;
	t = target_new(key, plan);
	if (!t)
		return -ENOMEM;
	t->owner = owner;
	t->owner_id = owner->id;
	err = rhashtable_insert_fast(&nn->targets, &t->node, params);
	if (err) {
		free_percpu(t->count);
		kfree(t);
		return err;
	}
	list_add_tail(&t->in_owner, &owner->targets);
	owner->n++;
	*out = t;
	return 0;
}

void nfx_table_del(struct nfx_net *nn, struct nfx_target *t)
{
	lockdep_assert_held(&nn->lock);
	if (rhashtable_remove_fast(&nn->targets, &t->node, params))
		return;
	list_del(&t->in_owner);
	t->owner->n--;
	/* Excludes packets in progress on other processors; they finish before it is freed. */
	nfx_count_sum(nn->gone, t->count);
	INIT_RCU_WORK(&t->free, target_free_work);
	queue_rcu_work(nfx_wq, &t->free);
}

void nfx_table_totals(struct nfx_net *nn, u64 out[NFX_S_COUNT])
{
	struct nfx_owner *o;
	struct nfx_target *t;

	lockdep_assert_held(&nn->lock);
	memcpy(out, nn->gone, sizeof(nn->gone));
	nfx_count_sum(out, nn->count);
	list_for_each_entry(o, &nn->owners, node)
		list_for_each_entry(t, &o->targets, in_owner)
			nfx_count_sum(out, t->count);
}

int nfx_table_init(struct nfx_net *nn)
{
	return rhashtable_init(&nn->targets, &params);
}

/* All owners are gone, and so are their targets. */
void nfx_table_exit(struct nfx_net *nn)
{
	WARN_ON_ONCE(atomic_read(&nn->targets.nelems));
	rhashtable_destroy(&nn->targets);
}
