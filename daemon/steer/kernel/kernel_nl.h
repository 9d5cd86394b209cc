/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Generic netlink messages of nf_xcipher (kernel-module/uapi/nf_xcipher.h) as plain structures.
 * Netlink to the kernel does not block: the answer is there when the send returns. One thread at a
 * time. */
#ifndef STEER_KERNEL_KERNEL_NL_H
#define STEER_KERNEL_KERNEL_NL_H

#include "nf_xcipher.h"

#include "base/endpoint.h"
#include "packet/guard.h"

struct knl;

#define KNL_RELEASE_LEN 32

struct knl_peer { /* what the module reports about itself */
	uint32_t version, features, mark;
	uint32_t adopted; /* number of existing targets of this owner */
	uint32_t max_targets, max_dests;
	char release[KNL_RELEASE_LEN];
};

#define KNL_DESTS 8u

struct knl_dest {
	struct endpoint to, from;
	int tos; /* -1: unchanged */
};

struct knl_target {
	struct endpoint local;
	uint8_t action, rtcp_action; /* enum nfx_action */
	uint16_t queue;
	uint32_t flags; /* enum nfx_flag */
	uint64_t cookie;
	struct endpoint source; /* family 0: any source */
	uint8_t mismatch;       /* enum nfx_mismatch */
	bool only_ssrc;
	uint32_t ssrc;
	uint32_t rate, source_rate; /* packets per second; 0: no limit */
	uint32_t silence_ms;        /* silence after which an event is sent; 0: none */
	bool if_queued;             /* set only if exactly this many packets were queued so far;
				     * else -EAGAIN */
	uint64_t queued;
	struct knl_dest dest[KNL_DESTS];
	uint32_t dests;
};

struct knl_seen { /* a target, as reported in a dump */
	struct endpoint local;
	uint8_t action;
	bool has_seq; /* seq is of RTP that was relayed since the target was last set */
	uint16_t seq;
	uint64_t cookie;
	uint64_t stats[NFX_S_COUNT];
	uint64_t last_seen_ms; /* age of the last packet; UINT64_MAX: none yet */
};

struct knl_event {     /* of a target */
	uint8_t event; /* enum nfx_event */
	uint32_t owner;
	uint64_t cookie;
	struct endpoint local, source; /* source: family 0 if the event has none */
};

/* A packet ring (nf_xcipher_ring.h). The memory and both descriptors stay until it is closed. */
struct knl_ring {
	const void *control, *memory;
	uint64_t length; /* of memory */
	uint32_t slots, sends;
	uint32_t first, stride, room; /* bytes */
	int event_fd, bell_fd;
	int poll_fd; /* an epoll whose events also end a wait in the doorbell; -1: none */
};

/* Opens a socket, and finds the family's number. -ENOENT: the module is not loaded. */
int knl_open(struct knl **out);
/* For tests: uses a connected socket to a simulated kernel; knl_close() closes it. */
int knl_open_fd(struct knl **out, int fd);
/* The module removes targets of this socket's owner after the grace time. NULL is fine. */
void knl_close(struct knl *k);

/* Makes this socket the owner of these targets. wanted: features we know. -EBUSY: another socket
 * is; -EPROTONOSUPPORT: the module speaks another version. */
int knl_hello(
	struct knl *k, uint32_t owner, uint32_t grace_ms, uint32_t wanted, struct knl_peer *out);
/* Creates or replaces a target. 0 or the module's error. */
int knl_target_set(struct knl *k, const struct knl_target *t);
/* 0 or -ENOENT. */
int knl_target_del(struct knl *k, const struct endpoint *local);
/* Replaces the guard of a target of this owner; NULL: removes it. 0 or the module's
 * error. */
int knl_guard_set(struct knl *k, const struct endpoint *local, const struct guard *g);
/* Reads one target. 0 or -ENOENT. */
int knl_target_get(struct knl *k, const struct endpoint *local, struct knl_seen *out);
/* Reads the module's counters of this namespace, of all targets since it was loaded. 0 or the
 * module's error. */
int knl_totals(struct knl *k, uint64_t stats[NFX_S_COUNT]);
/* Calls put() for each target of this owner; with an action (>= 0), only for targets with it. 0 or
 * -errno. put() must not use k. */
int knl_dump(struct knl *k, uint32_t owner, int action,
	void (*put)(void *arg, const struct knl_seen *seen), void *arg);
struct knl_ring_opened {
	uint32_t number; /* for the doorbell */
	uint64_t lost;   /* upper bound of the packets lost in this owner's earlier rings; each is
			  * reported once. 0 from an older module */
};

/* After hello(), in the process whose memory it is: from now on packets of this owner's targets
 * with NFX_ACTION_QUEUE go to the ring. 0 or -errno; -EAGAIN: another thread was changing the
 * process's memory maps. */
int knl_ring_open(struct knl *k, const struct knl_ring *r, struct knl_ring_opened *out);
int knl_ring_close(struct knl *k);
/* Subscribes this socket to events; use it for nothing else. */
int knl_listen(struct knl *k);
int knl_fd(const struct knl *k);
/* Calls put() for each waiting event, without waiting. 0; -ENOBUFS: some were lost; -errno. */
int knl_events(struct knl *k, void (*put)(void *arg, const struct knl_event *e), void *arg);
/* 0; -ENOENT: the module was unloaded. Never loads it. */
int knl_alive(struct knl *k);
/* After that: 0: the module is loaded again, under a new number, and needs knl_hello(); -ENOENT:
 * not yet. Never loads it. */
int knl_again(struct knl *k);
/* The module's text for the last request's error, or "". */
const char *knl_said(const struct knl *k);

#endif
