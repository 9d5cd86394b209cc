/* SPDX-License-Identifier: GPL-2.0 */
/* Differences between kernel versions from 6.1 on. All version tests are in this file. */
#ifndef NFX_COMPAT_H
#define NFX_COMPAT_H

#include <linux/eventfd.h>
#include <linux/hrtimer.h>
#include <linux/mm.h>
#include <linux/version.h>
#include <net/genetlink.h>
#include <net/ip.h>
#include <net/route.h>

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0)
#include <linux/unaligned.h>
#else
#include <asm/unaligned.h>
#endif

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 5, 0)
#include <net/gso.h> /* skb_gso_segment() */
#endif

#if !IS_ENABLED(CONFIG_IPV6)
#error "nf_xcipher needs a kernel with IPv6"
#endif

/* Kernels since 6.8, and later releases of 6.1, have flags for the permission to join a group.
 * Older kernels ignore them and let everybody join. */
#ifdef GENL_MCAST_CAP_NET_ADMIN
#define NFX_MCAST_ADMIN GENL_MCAST_CAP_NET_ADMIN
#else
#define NFX_MCAST_ADMIN GENL_UNS_ADMIN_PERM
#endif

/* 0: the host would accept the packet, or forward it. */
static inline int nfx_route_input(struct sk_buff *skb, __be32 to, __be32 from)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
	return ip_route_input_noref(skb, to, from, ip4h_dscp(ip_hdr(skb)), skb->dev);
#else
	return ip_route_input_noref(skb, to, from, ip_hdr(skb)->tos, skb->dev);
#endif
}

static inline struct nlattr **nfx_dump_attrs(struct netlink_callback *cb)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 7, 0)
	return genl_info_dump(cb)->attrs;
#else
	return genl_dumpit_info(cb)->attrs;
#endif
}

/* Under the lock of the address space. The number of pages, or -errno. */
static inline long nfx_pin_pages(unsigned long at, unsigned long n, unsigned int flags,
				 struct page **pages)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 5, 0)
	return pin_user_pages(at, n, flags, pages);
#else
	return pin_user_pages(at, n, flags, pages, NULL);
#endif
}

static inline void nfx_eventfd_signal(struct eventfd_ctx *ctx)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 8, 0)
	eventfd_signal(ctx);
#else
	eventfd_signal(ctx, 1);
#endif
}

static inline void nfx_hrtimer_setup(struct hrtimer *timer,
				     enum hrtimer_restart (*function)(struct hrtimer *))
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
	hrtimer_setup(timer, function, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED);
#else
	hrtimer_init(timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED);
	timer->function = function;
#endif
}

/* Takes the skb and its memory from the processor's caches, as drivers of network cards do. Bottom
 * halves must be off. */
static inline struct sk_buff *nfx_alloc_skb(unsigned int len)
{
	unsigned int size =
		SKB_DATA_ALIGN(len) + SKB_DATA_ALIGN(sizeof(struct skb_shared_info));
	struct sk_buff *skb;
	void *data;

	if (size > PAGE_SIZE)
		return alloc_skb(len, GFP_ATOMIC | __GFP_NOWARN);
	data = napi_alloc_frag(size);
	skb = data ? napi_build_skb(data, size) : NULL;
	if (data && !skb)
		skb_free_frag(data);
	return skb;
}

#endif
