/* SPDX-License-Identifier: GPL-2.0-or-later */
/* xcipher_xdp: the XDP program of "xdp" steering. The kernel runs it for every packet of an
 * interface, before its own stack. Plain UDP datagrams to a local address and port in use go to
 * the AF_XDP socket of their receive queue. Everything else passes unchanged: fragments, IP
 * options, extension headers, more than two VLAN tags, contradictory lengths. The ordinary sockets
 * serve passed packets, so a packet passes in doubt. All pointer offsets are known when the
 * program is loaded: others would need CAP_PERFMON. One instance per interface (its own "xsks");
 * "ports" and "locals" are shared by all. The reader handles checksums: packets of this machine
 * may not have one yet.
 * xcipher_tc: the guards alone, for "nfqueue" steering. The kernel runs it while streams are under
 * attack, between the driver and netfilter (tcx ingress), with any driver. */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "packet/guard.h"
#include "xdp_abi.h"

#define UDP           17
#define FRAGMENT_BITS 0x3fff /* more fragments, or an offset */

/* enum tcx_action_base: older headers lack it. */
#define TCX_NEXT -1
#define TCX_DROP 2

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, XDP_ABI_QUEUES);
	__type(key, __u32);
	__type(value, __u32);
} xsks SEC(".maps");

struct { /* by port: bit n is set if it is used on local address n; XDP_PORT_* */
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

struct { /* "locals" by number */
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, XDP_ABI_LOCALS);
	__type(key, __u32);
	__type(value, struct xdp_local);
} addresses SEC(".maps");

struct { /* by xdp_guard_key(): index into "guards" */
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, XDP_ABI_GUARDS);
	__type(key, __u32);
	__type(value, __u32);
} guarded SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2 * XDP_ABI_GUARDS);
	__type(key, __u32);
	__type(value, struct guard);
} guards SEC(".maps");

struct { /* by enum guard_result; 0: over the source's limit */
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, GUARD_RESULTS);
	__type(key, __u32);
	__type(value, __u64);
} dropped SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct xdp_limits);
} limits SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, XDP_ABI_SOURCES);
	__type(key, struct xdp_local);
	__type(value, struct xdp_bucket);
} sources SEC(".maps");

struct vlan {
	__be16 tci, proto;
};

struct rtp {
	__u8 first, second;
	__be16 seq;
	__be32 time, ssrc;
};

enum way { NOT_OURS, OURS, REFUSED };

static __always_inline int is_vlan(__be16 proto)
{
	return proto == bpf_htons(ETH_P_8021Q) || proto == bpf_htons(ETH_P_8021AD);
}

static __always_inline void count_drop(__u32 why)
{
	__u32 key __attribute__((aligned(8))) = why;
	__u64 *n = bpf_map_lookup_elem(&dropped, &key);

	if (n)
		*n += 1;
}

/* A burst of a quarter of a second's rate, and at least 8 packets. Processors may overwrite each
 * other's update, which lets a few packets more pass. */
static __always_inline int over_limit(const struct xdp_local *source, __u64 now)
{
	__u32 key __attribute__((aligned(8))) = 0;
	const struct xdp_limits *l = bpf_map_lookup_elem(&limits, &key);
	struct xdp_bucket fresh, *b;
	__u64 most, passed, more;

	if (!l || !l->source_rate)
		return 0;
	most = l->source_rate * 250;
	most = most < 8000 ? 8000 : most;
	b = bpf_map_lookup_elem(&sources, source);
	if (!b) {
		fresh.at_ns = now;
		fresh.tokens = most - 1000;
		bpf_map_update_elem(&sources, source, &fresh, BPF_ANY);
		return 0;
	}
	/* Time in units of 1024 ns; the remainder stays in at_ns. */
	passed = now > b->at_ns ? (now - b->at_ns) >> 10 : 0;
	passed = passed > 1000000 ? 1000000 : passed;
	more = passed * l->source_rate >> 10; /* thousandths, 2 % too many */
	if (more) {
		b->tokens = b->tokens + more < most ? b->tokens + more : most;
		b->at_ns = now;
	}
	if (b->tokens < 1000)
		return 1;
	b->tokens -= 1000;
	return 0;
}

/* A datagram to one of our ports. end: offset after its payload, in the frame or, for xcipher_tc,
 * in the IP packet. Either xdp or skb. */
struct datagram {
	struct xdp_md *xdp;
	struct __sk_buff *skb;
	const struct xdp_local *from;
	int has_rtp; /* else it is shorter */
	/* A copy: Linux 6.1 loses track of a pointer that may be NULL. */
	struct rtp rtp;
	__u32 number, end;
	__be16 from_port, port;
};

static __always_inline long read_bytes(const struct datagram *d, __u32 off, void *to, __u32 len)
{
	return d->skb ? bpf_skb_load_bytes_relative(d->skb, off, to, len, BPF_HDR_START_NET)
		      : bpf_xdp_load_bytes(d->xdp, off, to, len);
}

/* The last bytes of the payload. */
static __always_inline __u32 read_tag(const struct datagram *d, __u8 len)
{
	__be32 four __attribute__((aligned(8)));
	__u8 one __attribute__((aligned(8)));

	if (len == 4)
		return read_bytes(d, d->end - 4, &four, 4) ? 0 : bpf_ntohl(four);
	return read_bytes(d, d->end - 1, &one, 1) ? 0 : one;
}

static __always_inline enum guard_result guard_says(const struct datagram *d, __u64 now)
{
	__u32 key __attribute__((aligned(8))) = xdp_guard_key(d->number, bpf_ntohs(d->port));
	const __u32 *place = bpf_map_lookup_elem(&guarded, &key);
	const struct guard *g;
	struct guard_packet p;

	if (!place)
		return GUARD_PASS;
	key = *place;
	g = bpf_map_lookup_elem(&guards, &key);
	/* Shorter than RTP: the daemon drops it. */
	if (!g || !d->has_rtp)
		return GUARD_PASS;
	p.addr[0] = d->from->words[0];
	p.addr[1] = d->from->words[1];
	p.v6 = d->from->v6;
	p.port = bpf_ntohs(d->from_port);
	p.first = d->rtp.first;
	p.second = d->rtp.second;
	p.seq = bpf_ntohs(d->rtp.seq);
	p.time = bpf_ntohl(d->rtp.time);
	p.ssrc = bpf_ntohl(d->rtp.ssrc);
	p.tag = guard_wants_tag(&g->window, &p) ? read_tag(d, g->window.tag_len) : 0;
	return guard_check(g, &p, now);
}

static __always_inline int same(const struct xdp_local *a, const struct xdp_local *b)
{
	return a->words[0] == b->words[0] && a->words[1] == b->words[1] && a->v6 == b->v6;
}

/* Whether the port is used on this address. Usually it is the first address that uses the port.
 * Its number is in the same word as the bits, so most packets need no hash. */
static __always_inline int is_used(__u32 used, const struct xdp_local *local, __u32 *number)
{
	__u32 first __attribute__((aligned(8))) = XDP_PORT_FIRST(used); /* as struct xdp_local */
	const struct xdp_local *address = bpf_map_lookup_elem(&addresses, &first);
	const __u32 *n;

	if (address && same(address, local)) {
		*number = first;
		return 1;
	}
	n = bpf_map_lookup_elem(&locals, local);
	if (!n || !(used >> (*n & 15) & 1))
		return 0;
	*number = *n;
	return 1;
}

static __always_inline enum way way_of(
	struct datagram *d, const struct xdp_local *local, __u64 *now)
{
	__u32 key __attribute__((aligned(8))) = bpf_ntohs(d->port); /* as struct xdp_local */
	const __u32 *entry = bpf_map_lookup_elem(&ports, &key);
	__u32 used = entry ? *entry : 0, number;
	enum guard_result r;

	if (!used || !is_used(used, local, &number))
		return NOT_OURS;
	*now = bpf_ktime_get_ns();
	if (used & XDP_PORT_GUARDED) {
		d->number = number;
		r = guard_says(d, *now);
		if (r != GUARD_PASS) {
			count_drop(r);
			return REFUSED;
		}
	}
	/* After the guard: forged packets do not use up the limit of the terminal whose address
	 * they have. */
	if (over_limit(d->from, *now)) {
		count_drop(0);
		return REFUSED;
	}
	return OURS;
}

static __always_inline __u64 word_of_v4(__be32 addr)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	return addr;
#else
	return (__u64)addr << 32;
#endif
}

/* p: a complete IPv4 packet of at most room bytes, at this offset of the frame. *now is
 * set if it is ours. */
static __always_inline enum way way_v4(
	struct xdp_md *ctx, void *p, void *end, __u64 room, __u32 off, __u64 *now)
{
	struct xdp_local local = {}, from = {};
	struct iphdr *ip = p;
	struct udphdr *udp = (void *)(ip + 1);
	struct rtp *rtp = (void *)(udp + 1);
	struct datagram d = {.xdp = ctx, .from = &from};
	__u32 len;

	if ((void *)(udp + 1) > end || ip->version != 4 || ip->ihl != 5 || ip->protocol != UDP ||
		(ip->frag_off & bpf_htons(FRAGMENT_BITS)))
		return NOT_OURS;
	len = bpf_ntohs(ip->tot_len);
	if (len > room || bpf_ntohs(udp->len) < sizeof(*udp) ||
		sizeof(*ip) + bpf_ntohs(udp->len) > len)
		return NOT_OURS;
	local.words[0] = word_of_v4(ip->daddr);
	from.words[0] = word_of_v4(ip->saddr);
	d.has_rtp = (void *)(rtp + 1) <= end && bpf_ntohs(udp->len) >= sizeof(*udp) + sizeof(*rtp);
	if ((void *)(rtp + 1) <= end)
		d.rtp = *rtp;
	d.end = off + sizeof(*ip) + bpf_ntohs(udp->len);
	d.from_port = udp->source;
	d.port = udp->dest;
	return way_of(&d, &local, now);
}

static __always_inline enum way way_v6(
	struct xdp_md *ctx, void *p, void *end, __u64 room, __u32 off, __u64 *now)
{
	struct xdp_local local = {}, from = {};
	struct ipv6hdr *ip = p;
	struct udphdr *udp = (void *)(ip + 1);
	struct rtp *rtp = (void *)(udp + 1);
	struct datagram d = {.xdp = ctx, .from = &from};
	__u32 len;

	if ((void *)(udp + 1) > end || ip->version != 6 || ip->nexthdr != UDP)
		return NOT_OURS;
	len = bpf_ntohs(ip->payload_len);
	if (sizeof(*ip) + len > room || bpf_ntohs(udp->len) < sizeof(*udp) ||
		bpf_ntohs(udp->len) > len)
		return NOT_OURS;
	local.v6 = from.v6 = 1;
	__builtin_memcpy(local.addr, &ip->daddr, 16);
	__builtin_memcpy(from.addr, &ip->saddr, 16);
	d.has_rtp = (void *)(rtp + 1) <= end && bpf_ntohs(udp->len) >= sizeof(*udp) + sizeof(*rtp);
	if ((void *)(rtp + 1) <= end)
		d.rtp = *rtp;
	d.end = off + sizeof(*ip) + bpf_ntohs(udp->len);
	d.from_port = udp->source;
	d.port = udp->dest;
	return way_of(&d, &local, now);
}

static __always_inline void put_stamp(struct xdp_md *ctx, __u64 now)
{
	struct xdp_stamp *stamp;

	/* Some drivers have no room for metadata; the reader then uses its own time. */
	if (bpf_xdp_adjust_meta(ctx, -(int)sizeof(*stamp)))
		return;
	stamp = (void *)(long)ctx->data_meta;
	if ((void *)(stamp + 1) > (void *)(long)ctx->data)
		return;
	stamp->mono_ns = now;
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
	      room = len - sizeof(*eth); /* used only after the check of p > end */
	__u64 now = 0;
	enum way way;

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
		way = way_v4(ctx, p, end, room, len - room, &now);
	else if (proto == bpf_htons(ETH_P_IPV6))
		way = way_v6(ctx, p, end, room, len - room, &now);
	else
		return XDP_PASS;
	if (way != OURS)
		return way == REFUSED ? XDP_DROP : XDP_PASS;
	put_stamp(ctx, now);
	return bpf_redirect_map(&xsks, ctx->rx_queue_index, XDP_PASS);
}

/* --- xcipher_tc ------------------------------------------------------------------------------- */

/* The headers of a datagram whose payload has at least the length of an RTP header. */
struct heads_v4 {
	struct iphdr ip;
	struct udphdr udp;
	struct rtp rtp;
};

struct heads_v6 {
	struct ipv6hdr ip;
	struct udphdr udp;
	struct rtp rtp;
};

static __always_inline int has_guard(__be16 port)
{
	__u32 key __attribute__((aligned(8))) = bpf_ntohs(port);
	const __u32 *used = bpf_map_lookup_elem(&ports, &key);

	return used && *used & XDP_PORT_GUARDED;
}

/* The address may be configured, or a wildcard of its family. Fills in d->number. */
static __always_inline int is_local(struct datagram *d, struct xdp_local *local)
{
	const __u32 *number = bpf_map_lookup_elem(&locals, local);

	if (!number) {
		local->words[0] = local->words[1] = 0;
		number = bpf_map_lookup_elem(&locals, local);
	}
	if (!number)
		return 0;
	d->number = *number;
	return 1;
}

static __always_inline int judge(struct datagram *d, struct xdp_local *local,
	const struct udphdr *udp, const struct rtp *rtp)
{
	enum guard_result r;

	if (!is_local(d, local))
		return TCX_NEXT;
	d->rtp = *rtp;
	d->has_rtp = 1;
	d->from_port = udp->source;
	d->port = udp->dest;
	r = guard_says(d, bpf_ktime_get_ns());
	if (r == GUARD_PASS)
		return TCX_NEXT;
	count_drop(r);
	return TCX_DROP;
}

static __always_inline int tc_v4(struct __sk_buff *skb)
{
	struct heads_v4 h __attribute__((aligned(8)));
	struct xdp_local local = {}, from = {};
	struct datagram d = {.skb = skb, .from = &from};
	__u32 len;

	if (bpf_skb_load_bytes_relative(skb, 0, &h, sizeof(h), BPF_HDR_START_NET) ||
		h.ip.version != 4 || h.ip.ihl != 5 || h.ip.protocol != UDP ||
		(h.ip.frag_off & bpf_htons(FRAGMENT_BITS)) || !has_guard(h.udp.dest))
		return TCX_NEXT;
	len = bpf_ntohs(h.udp.len);
	if (len < sizeof(h.udp) + sizeof(h.rtp) || sizeof(h.ip) + len > bpf_ntohs(h.ip.tot_len))
		return TCX_NEXT;
	local.words[0] = word_of_v4(h.ip.daddr);
	from.words[0] = word_of_v4(h.ip.saddr);
	d.end = sizeof(h.ip) + len;
	return judge(&d, &local, &h.udp, &h.rtp);
}

static __always_inline int tc_v6(struct __sk_buff *skb)
{
	struct heads_v6 h __attribute__((aligned(8)));
	struct xdp_local local = {.v6 = 1}, from = {.v6 = 1};
	struct datagram d = {.skb = skb, .from = &from};
	__u32 len;

	if (bpf_skb_load_bytes_relative(skb, 0, &h, sizeof(h), BPF_HDR_START_NET) ||
		h.ip.version != 6 || h.ip.nexthdr != UDP || !has_guard(h.udp.dest))
		return TCX_NEXT;
	len = bpf_ntohs(h.udp.len);
	if (len < sizeof(h.udp) + sizeof(h.rtp) || len > bpf_ntohs(h.ip.payload_len))
		return TCX_NEXT;
	__builtin_memcpy(local.addr, &h.ip.daddr, 16);
	__builtin_memcpy(from.addr, &h.ip.saddr, 16);
	d.end = sizeof(h.ip) + len;
	return judge(&d, &local, &h.udp, &h.rtp);
}

/* A packet of another host, and datagrams that the driver joined (GRO), pass: the daemon checks
 * them. If a tag cannot be read because the packet is shorter than it says, IP drops the packet. */
SEC("tc")
int xcipher_tc(struct __sk_buff *skb)
{
	if (skb->pkt_type != PACKET_HOST || skb->gso_size)
		return TCX_NEXT;
	if (skb->protocol == bpf_htons(ETH_P_IP))
		return tc_v4(skb);
	return skb->protocol == bpf_htons(ETH_P_IPV6) ? tc_v6(skb) : TCX_NEXT;
}

char program_license[] SEC("license") = "GPL";
