/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/* nf_xcipher's packet ring: memory of one worker that the module writes received packets to, and
 * sends packets from. It replaces the netlink queue for targets with NFX_ACTION_QUEUE.
 *
 * Opening. The worker allocates two areas of private anonymous memory, an eventfd and an IPv4
 * datagram socket (the doorbell, never bound or connected). It sends NFX_CMD_RING_OPEN on the
 * netlink socket that owns its targets. The module pins the memory, so huge pages stay huge, and
 * counts it against RLIMIT_MEMLOCK of the user unless the caller has CAP_IPC_LOCK. EAGAIN: another
 * thread was changing the process's memory maps; try again. An owner has at most one ring.
 * RING_OPEN needs CAP_NET_ADMIN like all of the interface; the doorbell needs that socket.
 *
 * Control area (NFX_A_RING_CONTROL), page-aligned, of nfx_ring_control_len() bytes and the rest of
 * the last page:
 *   struct nfx_ring_control  written by the kernel, except bell
 *   struct nfx_recv[slots]   written by the kernel; the index is the packet's number mod slots
 *   struct nfx_send[sends]   written by the worker before it rings; the kernel writes result
 *
 * Packet memory (NFX_A_RING_MEMORY), page-aligned, of NFX_A_RING_LENGTH bytes, whole pages. The
 * payload of slot i is written to FIRST + i * STRIDE, and has at most ROOM bytes. FIRST and STRIDE
 * are multiples of 64, so payloads are. The kernel writes nothing else in the packet memory: bytes
 * before and after the payload belong to the worker, as room to encrypt in place. Packets to send
 * may lie anywhere in the packet memory.
 *
 * Receiving. Packets have numbers 0, 1, 2... modulo 2^32. The kernel writes payload and descriptor,
 * then increments control.published (release). The worker reads published (acquire), and may use
 * all packets before it. It returns slots in order by bell.released. A packet that finds no free
 * slot is dropped and counted. Ordinary packets may not use the last eighth of the slots, so those
 * of targets with NFX_FLAG_EMERGENCY are dropped last.
 *
 * What the module has checked, for each packet: it is RTP or RTCP by its first bytes (any datagram
 * with NFX_FLAG_UNREAD), the host would accept its source at that interface, rates, and the UDP
 * checksum. Coalesced packets are split, fragments joined. Of coalesced packets only the first was
 * classified by its first bytes.
 *
 * Doorbell. The worker writes control.bell, then calls setsockopt(bell_fd, IPPROTO_IP,
 * NFX_SO_BELL + ring, NULL, 0) with the number from NFX_A_RING. The kernel copies control.bell
 * once. One call per burst suffices. It does, in this order:
 *  1. It sends the descriptors 0 to sends - 1. Each is copied once, then checked. The source must
 *     be a target of this owner. Each descriptor's result is written. When the call returns, the
 *     kernel needs the packet memory of these packets no longer.
 *  2. It frees the slots of all packets before released.
 *  3. With NFX_BELL_ARM the kernel wakes the worker once: as soon as wake_packets packets from
 *     number taken on wait, or window_ns after the first of them arrived. Until the next bell with
 *     NFX_BELL_ARM it wakes nobody, so a busy worker causes no wake-ups. If that many packets wait
 *     already, it does not arm. control.armed tells the result: 0 means that packets wait and the
 *     worker must not sleep.
 *
 *  4. With NFX_BELL_WAIT it waits for that wake-up, instead of signalling the eventfd. It does not
 *     wait if the ring was not armed, or if the result of a packet is not 0. The ring needs
 *     NFX_A_RING_POLL_FD: events of that epoll end the wait, too. control.woken then has
 *     NFX_WOKEN_POLL, and the worker must wait in that epoll until it reports nothing. Signals
 *     also end the wait. If neither packets nor the ring's end did, the ring stays armed, and a
 *     later wake-up signals the eventfd. One caller at a time can wait.
 *
 * Waking. The kernel signals the eventfd. Watched with EPOLLIN | EPOLLET, it need not be read. A
 * wake-up may be spurious. The worker may wait for other descriptors at the same time. If it takes
 * no packet meanwhile, the ring stays armed.
 *
 * End. control.state becomes nonzero, and the worker is woken: the module is unloaded
 * (NFX_RING_GONE), or the ring was closed. The doorbell then fails with ENOPROTOOPT (module gone)
 * or ENOENT. Packets not yet taken are valid. A bell in progress ends after some of its packets:
 * those whose result it did not write were not sent. Once control.state is written, the kernel
 * writes nothing to the areas any more, so another ring may use them. An open ring does not prevent
 * unloading the module. The ring ends when the owner's netlink socket is closed, so also when the
 * daemon dies. Its targets stay for the grace time, and their packets go to NFX_A_QUEUE.
 *
 * Trust. The kernel keeps every index, address and length of its own, and never reads them from
 * shared memory. It reads bell, send descriptors and payloads once, and checks the copies.
 * Whatever a process writes to shared memory affects only its own packets. The areas are pinned
 * until the ring ends: unmapping them detaches them from the ring, and a child of fork() gets a
 * copy of them that is not shared.
 *
 * Rules for changes as in nf_xcipher.h. Reserved fields are 0 in both directions; a sender's other
 * value is EINVAL. */
#ifndef NF_XCIPHER_RING_UAPI_H
#define NF_XCIPHER_RING_UAPI_H

#include <linux/types.h>

/* The first of NFX_RING_MAX socket options of IPPROTO_IP, to set only. Their value is not read. */
#define NFX_SO_BELL 7744

#define NFX_RING_MAX 64 /* rings of a network namespace */

#define NFX_RING_MIN_SLOTS 16u
#define NFX_RING_MAX_SLOTS 65536u
#define NFX_RING_MAX_SENDS 65536u
#define NFX_RING_MAX_STRIDE 65536u
#define NFX_RING_MAX_LENGTH (1ull << 28)    /* bytes of packet memory */
#define NFX_RING_MAX_WINDOW_NS 1000000000u
#define NFX_RING_MAX_SEND_LEN 65507u        /* payload */
#define NFX_RING_ALIGN 64u

/* Counters of a ring. Copied to control.stats at each bell, so a reader sees them as of the last
 * one. Copied once more when the ring ends, before control.state is written. X(name in the
 * enumeration, name for people) */
#define NFX_RING_STATS(X)                                                                     \
	X(PACKETS, "packets received")                                                        \
	X(FULL, "dropped, ring full")                    /* ordinary */                       \
	X(FULL_EMERGENCY, "dropped, ring full, emergency")                                    \
	X(TOO_LONG, "dropped, longer than a slot")                                            \
	X(WAKES_PACKETS, "wake-ups by number of packets")                                     \
	X(WAKES_WINDOW, "wake-ups by time")                                                   \
	X(BELLS, "doorbells")                                                                 \
	X(SENT, "packets sent")                                                               \
	X(SENT_BYTES, "bytes sent")                                                           \
	X(BAD_SENDS, "invalid descriptors")              /* EINVAL, EACCES */                 \
	X(FAILED_SENDS, "packets that could not be sent") /* all other results */

enum nfx_ring_stat {
#define X(name, text) NFX_R_##name,
	NFX_RING_STATS(X)
#undef X
	NFX_R_COUNT
};

enum nfx_ring_state {
	NFX_RING_OPEN,
	NFX_RING_CLOSED, /* by RING_CLOSE, or the owner's socket was closed */
	NFX_RING_GONE,   /* the module or the namespace ends */
};

enum nfx_bell_flag {
	NFX_BELL_ARM = 1 << 0,
	NFX_BELL_WAIT = 1 << 1, /* only with NFX_BELL_ARM; needs NFX_FEATURE_RING_WAIT */
	NFX_BELL_FLAGS_ALL = NFX_BELL_ARM | NFX_BELL_WAIT
};

enum nfx_woken {
	NFX_WOKEN_POLL = 1 << 0, /* the epoll had events since the last wait */
};

/* Errors of the doorbell: EINVAL: a field is out of range (nothing was done); ENOENT: no such ring;
 * EPERM: another socket is its doorbell; EBUSY: another caller waits in it (nothing was done);
 * ENOPROTOOPT: no module; EINTR: killed. 32 bytes. */
struct nfx_bell {
	__u32 flags;        /* enum nfx_bell_flag */
	__u32 sends;        /* number of send descriptors, from the first on */
	__u32 released;     /* number of the first packet whose slot is in use; never decreases */
	__u32 taken;        /* number of the first packet that the worker has not seen */
	__u32 wake_packets; /* 1 to slots; more than can wait count as that number */
	__u32 window_ns;    /* 0 to NFX_RING_MAX_WINDOW_NS; 0: wake at the first packet */
	__u32 reserved[2];
};

/* 320 bytes. Each group has its own cache line. Written by the kernel, except bell. */
struct nfx_ring_control {
	__u32 published; /* number of the next packet: all before it are complete */
	__u32 pad0[15];
	__u32 armed; /* 1: the kernel will wake the worker */
	__u32 state; /* enum nfx_ring_state */
	__u32 woken; /* enum nfx_woken: by the last bell with NFX_BELL_WAIT */
	__u32 pad1;
	__u64 sent_real_ns; /* CLOCK_REALTIME when that bell had sent its packets */
	__u64 sent_ns;      /* CLOCK_MONOTONIC then */
	__u64 pad3[4];
	struct nfx_bell bell; /* written by the worker before it rings */
	__u32 pad2[8];
	__u64 stats[16]; /* NFX_R_COUNT of them are used */
};

/* A received packet. 64 bytes, as one cache line. */
struct nfx_recv {
	__u64 t_ns;      /* CLOCK_REALTIME when the kernel received it */
	__u64 cookie;    /* NFX_A_COOKIE of its target */
	__u32 len;       /* bytes of UDP payload */
	__u32 ifindex;   /* interface it arrived at */
	__u8 family;     /* AF_INET or AF_INET6 */
	__u8 tos;        /* TOS or traffic class, with ECN */
	__be16 port;     /* target: local port */
	__be16 from_port;
	__u16 flags;     /* NFX_RECV_* */
	__u8 addr[16];   /* target: local address; IPv4 in the first 4 bytes, the others 0 */
	__u8 from[16];
};

enum nfx_recv_flag {
	NFX_RECV_EMERGENCY = 1 << 0, /* of a target with NFX_FLAG_EMERGENCY */
};

/* A packet to send. Above the path MTU it leaves in fragments. 64 bytes. */
struct nfx_send {
	__u32 off;       /* of the payload in the packet memory */
	__u32 len;       /* bytes of UDP payload, 1 to NFX_RING_MAX_SEND_LEN */
	__u8 family;     /* AF_INET or AF_INET6 */
	__u8 tos;        /* TOS or traffic class */
	__be16 port;     /* source: the local port of a target of this owner */
	__be16 to_port;
	/* Written by the bell for each packet that it came to: 0, or an errno. EINVAL: the
	 * descriptor is invalid; EACCES: the source is not a target of this owner; ENETUNREACH: no
	 * route, or a broadcast or multicast address; ENOMEM. Packets that a firewall's output hook
	 * drops are sent with result 0. */
	__u16 result;
	__u8 addr[16];   /* source: the target's local address */
	__u8 to[16];
	__u32 ifindex;   /* interface to leave by, for link-local destinations; else unused */
	__u32 reserved[3];
};

/* Offsets in the control area. */
static inline __u64 nfx_ring_recv_off(void)
{
	return sizeof(struct nfx_ring_control);
}

static inline __u64 nfx_ring_send_off(__u32 slots)
{
	return nfx_ring_recv_off() + (__u64)slots * sizeof(struct nfx_recv);
}

/* Bytes of the control area. The area must be whole pages, so round it up to the page size. */
static inline __u64 nfx_ring_control_len(__u32 slots, __u32 sends)
{
	return nfx_ring_send_off(slots) + (__u64)sends * sizeof(struct nfx_send);
}

#endif
