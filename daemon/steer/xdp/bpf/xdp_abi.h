/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the XDP program and the daemon: the shape of its maps. */
#ifndef STEER_XDP_BPF_XDP_ABI_H
#define STEER_XDP_BPF_XDP_ABI_H

#define XDP_ABI_QUEUES 256 /* receive queues of an interface that we look at */
#define XDP_ABI_LOCALS 16  /* local addresses: one bit each in the map of ports */

/* The longest frame that goes to a worker: it fits into an arena slot, after the kernel's
 * headroom. */
#define XDP_ABI_FRAME_MAX 2560

/* Key of map "locals"; the value is the number of the address. It consists of eight-byte words:
 * without CAP_PERFMON, Linux 6.1 refuses smaller writes over another value on the stack. */
struct xdp_local {
	union {
		__u8 addr[16]; /* IPv4 in the first four bytes, the rest zero */
		__u64 words[2];
	};
	__u64 v6;
};

/* In front of a packet that goes to a worker, as XDP metadata: when the program saw it. */
struct xdp_stamp {
	__u64 mono_ns;
	__u64 magic;
};
#define XDP_STAMP_MAGIC 0x7863697068657221ull

/* Guards of streams under attack. Each has two places in map "guards": the daemon writes the one
 * that packets do not use, then changes to it by map "guarded". */
#define XDP_ABI_GUARDS 256u

/* Value of map "ports": bits of local addresses, the number of the first of these, and whether some
 * local address has a guard for this port. */
#define XDP_PORT_LOCALS    0xffffu
#define XDP_PORT_FIRST(v)  ((v) >> 16 & 15)
#define XDP_PORT_NUMBER(n) ((__u32)(n) << 16) /* which XDP_PORT_FIRST() returns */
#define XDP_PORT_GUARDED   (1u << 31)

/* Key of map "guarded": number of the local address and port. */
static inline __u32 xdp_guard_key(__u32 local, __u32 port)
{
	return local << 16 | port;
}

/* Map "limits", one entry. */
struct xdp_limits {
	__u64 source_rate; /* packets per second of one source address; 0: no limit */
};

/* Map "sources": a token bucket. */
struct xdp_bucket {
	__u64 at_ns;
	__u64 tokens; /* thousandths of a packet */
};
#define XDP_ABI_SOURCES 4096u

#endif
