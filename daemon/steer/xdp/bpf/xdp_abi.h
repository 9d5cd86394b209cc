/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the XDP program and the daemon share: the shape of its maps. */
#ifndef STEER_XDP_BPF_XDP_ABI_H
#define STEER_XDP_BPF_XDP_ABI_H

#define XDP_ABI_QUEUES 256 /* receive queues of an interface that we look at */
#define XDP_ABI_LOCALS 16  /* local addresses: one bit each in the map of ports */

/* The longest frame that goes to a worker: it fits into an arena slot, behind the kernel's
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

#endif
