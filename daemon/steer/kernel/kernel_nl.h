/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Speaking to nf_xcipher: its generic netlink messages (kernel-module/uapi/nf_xcipher.h) as plain
 * structures. Netlink to the kernel does not block: when the request was sent, its answer is there.
 * One thread at a time. */
#ifndef STEER_KERNEL_KERNEL_NL_H
#define STEER_KERNEL_KERNEL_NL_H

#include "nf_xcipher.h"

#include "base/endpoint.h"

struct knl;

#define KNL_RELEASE_LEN 32

struct knl_peer { /* what the module says of itself */
	uint32_t version, features, mark;
	uint32_t adopted; /* targets that were there for this owner */
	uint32_t max_targets, max_dests;
	char release[KNL_RELEASE_LEN];
};

#define KNL_DESTS 8u

struct knl_dest {
	struct endpoint to, from;
	int tos; /* -1: as it came */
};

struct knl_target {
	struct endpoint local;
	uint8_t action, rtcp_action; /* enum nfx_action */
	uint16_t queue;
	uint32_t flags; /* enum nfx_flag */
	uint64_t cookie;
	struct endpoint source; /* family 0: any is right */
	uint8_t mismatch;       /* enum nfx_mismatch */
	bool only_ssrc;
	uint32_t ssrc;
	uint32_t rate, source_rate; /* packets per second; 0: any */
	uint32_t silence_ms;        /* an event after that; 0: none */
	bool if_queued;             /* only if so many were queued so far: -EAGAIN */
	uint64_t queued;
	struct knl_dest dest[KNL_DESTS];
	uint32_t dests;
};

struct knl_seen { /* of a target, as it is told in a dump */
	struct endpoint local;
	uint8_t action;
	bool has_seq; /* of RTP that was relayed since the target was set last */
	uint16_t seq;
	uint64_t cookie;
	uint64_t stats[NFX_S_COUNT];
	uint64_t last_seen_ms; /* how long ago; UINT64_MAX: none yet */
};

struct knl_event {     /* of a target */
	uint8_t event; /* enum nfx_event */
	uint32_t owner;
	uint64_t cookie;
	struct endpoint local, source; /* source: family 0 where the event has none */
};

/* A socket, and the family's number. -ENOENT: the module is not there. */
int knl_open(struct knl **out);
/* For tests: a peer that speaks as the kernel does, by a socket of messages. It is closed in the
 * end. */
int knl_open_fd(struct knl **out, int fd);
/* The targets of this socket's owner go after the grace time. NULL is fine. */
void knl_close(struct knl *k);

/* This socket owns owner's targets from here on. wanted: features we know. -EBUSY when another one
 * does, -EPROTONOSUPPORT when the module speaks another version. */
int knl_hello(
	struct knl *k, uint32_t owner, uint32_t grace_ms, uint32_t wanted, struct knl_peer *out);
/* Replaces what the target did, or makes a new one. 0 or what the module says. */
int knl_target_set(struct knl *k, const struct knl_target *t);
/* 0 or -ENOENT. */
int knl_target_del(struct knl *k, const struct endpoint *local);
/* One target. 0 or -ENOENT. */
int knl_target_get(struct knl *k, const struct endpoint *local, struct knl_seen *out);
/* Calls put() for each target of this owner, and with an action (>= 0) only for those that do it. 0
 * or -errno. put() may not use k. */
int knl_dump(struct knl *k, uint32_t owner, int action,
	void (*put)(void *arg, const struct knl_seen *seen), void *arg);
/* This socket hears events from now on, and is for nothing else. */
int knl_listen(struct knl *k);
int knl_fd(const struct knl *k);
/* Calls put() for what came, without waiting. 0; -ENOBUFS: some were lost; -errno. */
int knl_events(struct knl *k, void (*put)(void *arg, const struct knl_event *e), void *arg);
/* 0; -ENOENT: the module was unloaded. Does not have it loaded. */
int knl_alive(struct knl *k);
/* After that: 0, the module is loaded again, under another number, and nobody has said HELLO;
 * -ENOENT: it is not. Does not have it loaded either. */
int knl_again(struct knl *k);
/* What the module said of the last request's error, or "". */
const char *knl_said(const struct knl *k);

#endif
