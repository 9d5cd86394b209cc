/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The XDP program of "xdp" steering. The kernel runs it for every packet of an interface, before
 * its own stack. Plain UDP datagrams to a local address and port in use go to the AF_XDP socket of
 * their receive queue. Everything else passes unchanged: fragments, IP options, extension headers,
 * more than two VLAN tags, contradictory lengths. The ordinary sockets serve passed packets, so a
 * packet passes in doubt. All pointer offsets are known when the program is loaded: others would
 * need CAP_PERFMON. One instance per interface (its own "xsks"); "ports" and "locals" are shared by
 * all. The reader handles checksums: packets of this machine may not have one yet. */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "xdp_abi.h"

#define UDP           17
#define FRAGMENT_BITS 0x3fff /* more fragments, or an offset */

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, XDP_ABI_QUEUES);
	__type(key, __u32);
	__type(value, __u32);
} xsks SEC(".maps");

struct { /* by port: bit n is set if it is used on local address n */
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 65536);
	__type(key, __u32);
	__type(value, __u32);
} ports SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, XDP_ABI_LOCALS);
	__type(key, struct xdp_local);
	__type(value, __u32);
} locals SEC(".maps");

struct vlan {
	__be16 tci, proto;
};

static __always_inline int is_vlan(__be16 proto)
{
	return proto == bpf_htons(ETH_P_8021Q) || proto == bpf_htons(ETH_P_8021AD);
}

static __always_inline int in_use(const struct xdp_local *local, __be16 port)
{
	__u32 key __attribute__((aligned(8))) = bpf_ntohs(port); /* as struct xdp_local */
	const __u32 *number = bpf_map_lookup_elem(&locals, local);
	const __u32 *used = number ? bpf_map_lookup_elem(&ports, &key) : 0;

	return used && (*used >> (*number & 31) & 1);
}

/* p: a complete IPv4 packet of at most room bytes. */
static __always_inline int ours_v4(void *p, void *end, __u64 room)
{
	struct xdp_local local = {};
	struct iphdr *ip = p;
	struct udphdr *udp = (void *)(ip + 1);
	__u32 len;

	if ((void *)(udp + 1) > end || ip->version != 4 || ip->ihl != 5 || ip->protocol != UDP ||
		(ip->frag_off & bpf_htons(FRAGMENT_BITS)))
		return 0;
	len = bpf_ntohs(ip->tot_len);
	if (len > room || bpf_ntohs(udp->len) < sizeof(*udp) ||
		sizeof(*ip) + bpf_ntohs(udp->len) > len)
		return 0;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	local.words[0] = ip->daddr;
#else
	local.words[0] = (__u64)ip->daddr << 32;
#endif
	return in_use(&local, udp->dest);
}

static __always_inline int ours_v6(void *p, void *end, __u64 room)
{
	struct xdp_local local = {};
	struct ipv6hdr *ip = p;
	struct udphdr *udp = (void *)(ip + 1);
	__u32 len;

	if ((void *)(udp + 1) > end || ip->version != 6 || ip->nexthdr != UDP)
		return 0;
	len = bpf_ntohs(ip->payload_len);
	if (sizeof(*ip) + len > room || bpf_ntohs(udp->len) < sizeof(*udp) ||
		bpf_ntohs(udp->len) > len)
		return 0;
	local.v6 = 1;
	__builtin_memcpy(local.addr, &ip->daddr, 16);
	return in_use(&local, udp->dest);
}

static __always_inline void put_stamp(struct xdp_md *ctx)
{
	struct xdp_stamp *stamp;

	/* Some drivers have no room for metadata; the reader then uses its own time. */
	if (bpf_xdp_adjust_meta(ctx, -(int)sizeof(*stamp)))
		return;
	stamp = (void *)(long)ctx->data_meta;
	if ((void *)(stamp + 1) > (void *)(long)ctx->data)
		return;
	stamp->mono_ns = bpf_ktime_get_ns();
	stamp->magic = XDP_STAMP_MAGIC;
}

SEC("xdp")
int xcipher_xdp(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethhdr *eth = data;
	void *p = eth + 1;
	__be16 proto;
	__u64 len = bpf_xdp_get_buff_len(ctx),
	      room = len - sizeof(*eth); /* used only behind p > end */
	int ours;

	if (p > end || len > XDP_ABI_FRAME_MAX || (eth->h_dest[0] & 1))
		return XDP_PASS;
	proto = eth->h_proto;
#pragma unroll
	for (int i = 0; i < 2; i++) {
		struct vlan *tag = p;

		if (!is_vlan(proto))
			break;
		if ((void *)(tag + 1) > end)
			return XDP_PASS;
		proto = tag->proto;
		p = tag + 1;
		room -= sizeof(*tag);
	}
	if (proto == bpf_htons(ETH_P_IP))
		ours = ours_v4(p, end, room);
	else if (proto == bpf_htons(ETH_P_IPV6))
		ours = ours_v6(p, end, room);
	else
		return XDP_PASS;
	if (!ours)
		return XDP_PASS;
	put_stamp(ctx);
	return bpf_redirect_map(&xsks, ctx->rx_queue_index, XDP_PASS);
}

char program_license[] SEC("license") = "GPL";
