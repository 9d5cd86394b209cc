/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Decides which media stay in the kernel: RTP that needs no encryption, plain or passed through
 * (then with its RTCP), from a confirmed source to a confirmed destination, not recorded and not
 * blocked. Follows the commands to workers, and adds to them. A stream returns to us before
 * anything about it changes, in the same ring, so that no packet is lost between. Control thread
 * only. Knows neither workers nor media, only what its callbacks report. */
#ifndef BRIDGE_OFFLOAD_H
#define BRIDGE_OFFLOAD_H

#include "bridge/bridge_sent.h"
#include "call/relay.h"
#include "worker/worker.h"

struct offload;

struct offload_look { /* state of a stream now */
	uint64_t packets;
	uint64_t index; /* the index of the ssrc's SRTP */
	uint32_t ssrc;
	bool confirmed;
	struct endpoint remote;
};

struct offload_config {
	const struct steer_ops *ops;
	const struct steer_config *steer;
	uint32_t workers, max_stream, max_ctx; /* the latter per worker */
	/* The last state sent to a worker. Valid as long as the offload. */
	const struct bridge_sent *(*sent)(void *arg, uint32_t worker);
	void (*look)(void *arg, uint32_t worker, uint32_t stream, struct offload_look *out);
	/* 0 or -EAGAIN */
	int (*push)(void *arg, uint32_t worker, const struct worker_cmd *cmd, uint32_t n);
	void *arg;
};

/* -EOPNOTSUPP: this steering, or this host's kernel, cannot relay. All other functions do nothing
 * with NULL. */
int offload_create(struct offload **out, const struct offload_config *cfg);
void offload_destroy(struct offload *o);

/* Call it before these commands are pushed: writes the commands that must precede them to out[max],
 * and returns their number. OFFLOAD_BEFORE per command always suffices. */
#define OFFLOAD_BEFORE 8u
uint32_t offload_before(struct offload *o, uint32_t worker, const struct media_cmd *cmd, uint32_t n,
	struct worker_cmd *out, uint32_t max);
/* Call it after all commands were pushed and noted in bridge_sent. */
void offload_pushed(struct offload *o, uint32_t worker, const struct media_cmd *cmd, uint32_t n);
/* The stream's port was released. */
void offload_release(struct offload *o, uint32_t worker, uint32_t stream);
/* Call it each second (monotonic): moves streams to the kernel and back, and reads the kernel's
 * counters. */
void offload_tick(struct offload *o, uint64_t now_ns);
/* Time of the last packet through the kernel (CLOCK_REALTIME; 0: none). No system call if the
 * kernel reports silence itself. */
uint64_t offload_heard(const struct offload *o, uint32_t worker, uint32_t stream);
/* Packets that the kernel relayed for this stream, by its last report. *kernel: the kernel relays
 * it now. */
uint64_t offload_arrived(const struct offload *o, uint32_t worker, uint32_t stream, bool *kernel);
/* Handles an event of the kernel on a stream. True: look at it again after the worker had its
 * packet. */
bool offload_event(struct offload *o, const struct steer_event *e);
void offload_look_again(struct offload *o, uint64_t now_ns);
/* The kernel relays nothing any more: all packets come to us. */
void offload_gone(struct offload *o);
/* The kernel can relay again. Its counters restart; earlier counts are kept. */
void offload_back(struct offload *o);
/* Adds the kernel's counters. */
void offload_stats(struct offload *o, uint32_t worker, uint32_t stream, uint64_t now_ns,
	struct relay_stats *out);

struct offload_usage {
	uint32_t streams; /* that the kernel relays now */
	uint64_t packets; /* relayed by the kernel until the last tick */
	uint64_t moves;   /* to the kernel and back */
};
void offload_usage(struct offload *o, uint64_t now_ns, struct offload_usage *out);

#endif
