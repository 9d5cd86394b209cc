/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/* nf_xcipher's interface: a generic netlink family, per network namespace. The module and the
 * daemon share nothing else.
 * Rules for changes:
 *  - Numbers of commands and attributes are never reused.
 *  - An addition gets a bit in enum nfx_feature, unless programs can see that a reply lacks it. A
 * program that talks to an older side works without it.
 *  - NFX_VERSION increases only if an older side could no longer understand the rest.
 * Before a program changes targets, it sends HELLO on the socket that will own them. Everything
 * needs CAP_NET_ADMIN in the user namespace that owns the network namespace. */
#ifndef NF_XCIPHER_UAPI_H
#define NF_XCIPHER_UAPI_H

#define NFX_FAMILY_NAME "nf_xcipher"
#define NFX_MCGRP_EVENTS "events"
#define NFX_VERSION 1

/* Bits of NFX_A_FEATURES. */
enum nfx_feature {
	NFX_FEATURE_QUEUE = 1 << 0,   /* action queue */
	NFX_FEATURE_RELAY = 1 << 1,   /* action relay */
	NFX_FEATURE_MULTI = 1 << 2,   /* several destinations */
	NFX_FEATURE_RATE = 1 << 3,    /* token buckets per target and per source */
	NFX_FEATURE_EVENTS = 1 << 4,  /* multicast group "events" */
	NFX_FEATURE_VERDICT = 1 << 5, /* packets whose verdict has NFX_A_MARK are sent */
	NFX_FEATURE_SSRC = 1 << 6,    /* NFX_A_SSRC */
	NFX_FEATURE_RELAYED = 1 << 7, /* counters RELAYED, NFX_A_IF_QUEUED */
	NFX_FEATURE_SEQ = 1 << 8,     /* NFX_A_SEQ */
	NFX_FEATURE_UNREAD = 1 << 9,  /* NFX_FLAG_UNREAD */
	NFX_FEATURE_RING = 1 << 10,   /* RING_OPEN, RING_CLOSE, NFX_FLAG_EMERGENCY:
	                               * nf_xcipher_ring.h */
	NFX_FEATURE_GUARD = 1 << 11,  /* GUARD_SET */
	NFX_FEATURE_RING_WAIT = 1 << 12, /* NFX_A_RING_POLL_FD, NFX_BELL_WAIT: needs CAP_NET_ADMIN
	                                  * outside of user namespaces */
};

enum nfx_cmd {
	NFX_CMD_UNSPEC,
	/* do: NFX_A_VERSION, NFX_A_FEATURES (the daemon's), NFX_A_OWNER, NFX_A_GRACE_MS. Reply:
	 * NFX_A_VERSION, NFX_A_FEATURES (common to both), NFX_A_MARK, NFX_A_TARGETS (adopted),
	 * NFX_A_MAX_TARGETS, NFX_A_MAX_DESTS, NFX_A_RELEASE. This socket owns the targets of that
	 * owner from now on. EBUSY if another open socket does. */
	NFX_CMD_HELLO,
	/* do: a target's attributes. NLM_F_CREATE: it may be new; NLM_F_EXCL: it must be (EEXIST);
	 * without NLM_F_CREATE it must exist (ENOENT). Replaces the target's plan as a whole;
	 * counters continue. */
	NFX_CMD_TARGET_SET,
	/* do: NFX_A_FAMILY, NFX_A_ADDR, NFX_A_PORT. Reply with NLM_F_ECHO: its last counters. */
	NFX_CMD_TARGET_DEL,
	/* do: as TARGET_DEL; reply: the target with counters. dump: all, or those that match the
	 * given NFX_A_OWNER, NFX_A_FAMILY, NFX_A_ADDR, NFX_A_PORT, NFX_A_ACTION. */
	NFX_CMD_TARGET_GET,
	/* do: deletes all targets of this socket's owner. */
	NFX_CMD_FLUSH,
	/* do: reply NFX_A_STATS of the namespace, NFX_A_TARGETS. */
	NFX_CMD_STATS_GET,
	/* multicast: NFX_A_EVENT and the attributes of its target. */
	NFX_CMD_EVENT,
	/* do: the attributes of a ring, see nf_xcipher_ring.h. Reply: NFX_A_RING, NFX_A_RING_LOST.
	 * From now on, NFX_ACTION_QUEUE of this owner's targets writes to the ring. EBUSY: the
	 * owner already has a ring. */
	NFX_CMD_RING_OPEN,
	/* do: closes the ring of this socket's owner. Packets then go to NFX_A_QUEUE again. */
	NFX_CMD_RING_CLOSE,
	/* do: NFX_A_FAMILY, NFX_A_ADDR, NFX_A_PORT of a target of this owner, NFX_A_GUARD: replaces
	 * its guard. Without NFX_A_GUARD: removes it. */
	NFX_CMD_GUARD_SET,
	NFX_CMD_COUNT
};

enum nfx_attr {
	NFX_A_UNSPEC,
	NFX_A_VERSION,     /* u32 */
	NFX_A_FEATURES,    /* u32, enum nfx_feature */
	NFX_A_RELEASE,     /* string: the module's version, for people */
	NFX_A_OWNER,       /* u32: a number that an instance of the daemon keeps over restarts */
	NFX_A_GRACE_MS,    /* u32: how long targets stay after their owner's socket was closed */
	NFX_A_MARK,        /* u32: NFQA_MARK for verdicts whose packet the module shall send */
	NFX_A_TARGETS,     /* u32: number of targets */
	NFX_A_MAX_TARGETS, /* u32 */
	NFX_A_MAX_DESTS,   /* u32: of one target */
	/* A target: datagrams to this local address and port */
	NFX_A_FAMILY,      /* u8: AF_INET or AF_INET6 */
	NFX_A_ADDR,        /* 4 or 16 bytes */
	NFX_A_PORT,        /* be16 */
	NFX_A_ACTION,      /* u8: enum nfx_action, for RTP and RTCP without NFX_A_RTCP_ACTION */
	NFX_A_RTCP_ACTION, /* u8: enum nfx_action */
	NFX_A_QUEUE,       /* u16: netfilter queue */
	NFX_A_FLAGS,       /* u32: enum nfx_flag */
	NFX_A_COOKIE,      /* u64: chosen by the daemon; returned in dumps and events */
	NFX_A_SOURCE_ADDR, /* 4 or 16 bytes: the confirmed source; without it any source is
	                    * accepted */
	NFX_A_SOURCE_PORT, /* be16 */
	NFX_A_MISMATCH,    /* u8: enum nfx_mismatch */
	NFX_A_SSRC,        /* u32: RTP with another SSRC is queued (without a queue: passed on) */
	NFX_A_RATE,        /* u32: packets per second for this target; 0 or absent: any. A second
	                    * limit of the same size is for packets of other sources than the
	                    * confirmed one; without one, for all that is neither RTP nor RTCP */
	NFX_A_SOURCE_RATE, /* u32: packets per second from one address, over all targets with
	                    * such a limit */
	NFX_A_SILENCE_MS,  /* u32: silence after which an event is sent */
	NFX_A_DESTS,       /* nest of NFX_A_DEST */
	NFX_A_DEST,        /* nest of NFX_D_... */
	/* Counters */
	NFX_A_STATS,       /* nest of NFX_S_... */
	NFX_A_LAST_SEEN_MS,/* u64: time since the last accepted datagram; absent: none yet */
	NFX_A_EVENT,       /* u8: enum nfx_event */
	NFX_A_PAD,
	NFX_A_IF_QUEUED,   /* u64: TARGET_SET only if the target's counter QUEUED has this value;
	                    * else EAGAIN */
	NFX_A_SEQ,         /* u16: sequence number of the last RTP relayed since the last
	                    * TARGET_SET; absent: none yet. A reader that polls it often enough
	                    * knows the index of SRTP that only the kernel relays. */
	/* A ring (nf_xcipher_ring.h) */
	NFX_A_RING,          /* u32: number of the ring, for the doorbell */
	NFX_A_RING_CONTROL,  /* u64: address of the control area, page-aligned */
	NFX_A_RING_MEMORY,   /* u64: address of the packet memory, page-aligned */
	NFX_A_RING_LENGTH,   /* u64: bytes of packet memory */
	NFX_A_RING_SLOTS,    /* u32: receive slots, a power of two */
	NFX_A_RING_FIRST,    /* u32: offset of the first slot's payload in the packet memory */
	NFX_A_RING_STRIDE,   /* u32: bytes from one slot to the next */
	NFX_A_RING_ROOM,     /* u32: longest payload; longer ones are dropped and counted */
	NFX_A_RING_SENDS,    /* u32: descriptors to send */
	NFX_A_RING_EVENT_FD, /* u32: eventfd that the kernel signals to wake the worker */
	NFX_A_RING_BELL_FD,  /* u32: socket whose option is the doorbell */
	/* struct guard_window, or with GUARD_TAGS or GUARD_MACS struct guard, of
	 * daemon/packet/guard.h. Times are of CLOCK_MONOTONIC. A module that does not know
	 * GUARD_MACS ignores it. */
	NFX_A_GUARD,
	NFX_A_RING_POLL_FD, /* u32: optional: epoll that also ends a wait in the doorbell */
	/* u64: packets whose slots were not returned when the owner's rings ended, since it last
	 * opened one. At most that many were lost: the worker may have sent some of the last burst
	 * without returning their slots. Absent: an older module. */
	NFX_A_RING_LOST,
	NFX_A_COUNT
};

enum nfx_dest_attr {
	NFX_D_UNSPEC,
	NFX_D_ADDR,       /* 4 or 16 bytes, of the target's family */
	NFX_D_PORT,       /* be16 */
	NFX_D_LOCAL_ADDR, /* 4 or 16 bytes: source address of the copies */
	NFX_D_LOCAL_PORT, /* be16 */
	NFX_D_TOS,        /* u8: TOS or traffic class; absent: unchanged */
	NFX_D_COUNT
};

enum nfx_action {
	NFX_ACTION_PASS,  /* to the socket */
	NFX_ACTION_QUEUE, /* to the owner's ring; without a ring, to NFX_A_QUEUE */
	NFX_ACTION_RELAY, /* to NFX_A_DESTS, in the kernel */
	NFX_ACTION_DROP,
	NFX_ACTION_COUNT
};

/* Action for a datagram from another source than the confirmed one. */
enum nfx_mismatch {
	NFX_MISMATCH_DROP,
	NFX_MISMATCH_PASS,  /* to the queue if there is one, else to the socket; an event reports
	                     * it */
	NFX_MISMATCH_COUNT, /* accepted as if from the source, but counted */
	NFX_MISMATCH_KINDS
};

enum nfx_flag {
	NFX_FLAG_BYPASS = 1 << 0, /* a queue without a reader passes packets to the socket
	                           * instead of dropping them */
	NFX_FLAG_STRICT = 1 << 1, /* only RTP, RTCP, STUN and DTLS are passed on */
	/* The payload is not RTP (T.38, BFCP), and is not read. NFX_A_ACTION applies to datagrams
	 * of any length, including STUN and DTLS. Counters count them as RTP. Refused with
	 * NFX_A_SSRC, and with a different NFX_A_RTCP_ACTION. */
	NFX_FLAG_UNREAD = 1 << 2,
	/* The target belongs to an emergency call, and may use the last eighth of the ring's slots.
	 * Needs NFX_FEATURE_RING. */
	NFX_FLAG_EMERGENCY = 1 << 3,
	NFX_FLAGS_ALL = NFX_FLAG_BYPASS | NFX_FLAG_STRICT | NFX_FLAG_UNREAD | NFX_FLAG_EMERGENCY
};

enum nfx_event {
	NFX_EVENT_SOURCE = 1, /* NFX_A_SOURCE_*: a datagram came from this address, which is not
	                       * the confirmed source */
	NFX_EVENT_SILENCE,    /* no datagram for NFX_A_SILENCE_MS, or since creation; repeated
	                       * only after a datagram */
	NFX_EVENT_FLOOD,      /* a rate limit drops packets; at most once a second per target */
	NFX_EVENT_SSRC,       /* NFX_A_SSRC: RTP with this SSRC came */
	NFX_EVENT_COUNT
};

/* u64 each. X(name in the enumeration, name for people) */
#define NFX_STATS(X)                                                            \
	X(RTP_PACKETS, "RTP packets")         /* accepted, by any action but drop */ \
	X(RTP_BYTES, "RTP bytes")             /* of UDP payload */               \
	X(RTCP_PACKETS, "RTCP packets")                                          \
	X(RTCP_BYTES, "RTCP bytes")                                              \
	X(OTHER, "other")                     /* STUN, DTLS, passed on */        \
	X(QUEUED, "queued")                                                      \
	X(SENT, "sent")                       /* relayed copies, and verdicts */ \
	X(SENT_BYTES, "sent bytes")                                              \
	X(MISMATCH, "wrong source")                                              \
	X(MALFORMED, "malformed")                                                \
	X(RATE_DROPS, "over the target's rate")                                  \
	X(SOURCE_DROPS, "over the source's rate")                                \
	X(DROPPED, "dropped by action")                                          \
	X(NO_ROUTE, "no route")                                                  \
	X(NO_MEMORY, "no memory")                                                \
	X(TOO_BIG, "larger than the way")     /* sent, in fragments */           \
	X(TTL, "time to live over")                                               \
	X(RELAYED, "relayed")                 /* incoming packets, not copies */      \
	X(RELAYED_BYTES, "relayed bytes")                                        \
	X(RING_DROPS, "no room in the ring")  /* or packet too long; also counted as queued */ \
	/* refused by the guard, in the order of enum guard_result */            \
	X(GUARD_SOURCE, "guard: source")                                         \
	X(GUARD_KIND, "guard: kind")                                             \
	X(GUARD_SSRC, "guard: SSRC")                                             \
	X(GUARD_TYPE, "guard: payload type")                                     \
	X(GUARD_INDEX, "guard: index")                                           \
	X(GUARD_TIME, "guard: timestamp")                                        \
	X(GUARD_TAG, "guard: tag")                                               \
	X(RING_ENDED, "in rings that ended")  /* of the namespace only: slots not returned */

enum nfx_stat {
	NFX_S_UNSPEC,
#define X(name, text) NFX_S_##name,
	NFX_STATS(X)
#undef X
	NFX_S_COUNT
};

#endif
