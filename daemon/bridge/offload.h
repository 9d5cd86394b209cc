/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which media stays in the kernel: RTP that leaves as it came, plain or passed through (then its
 * RTCP too), from a confirmed source to a confirmed destination, with nobody recording or blocking
 * it. Follows the commands that go to workers, and adds to them. A stream comes back to us before
 * anything about it changes, in the same ring, so that no packet falls between. Control thread
 * only; knows neither workers nor media, but what it is told of them. */
#ifndef BRIDGE_OFFLOAD_H
#define BRIDGE_OFFLOAD_H

#include "worker/worker.h"
#include "call/relay.h"

struct offload;

struct offload_look { /* what a stream is like now */
	uint64_t packets;
	uint64_t index; /* where the ssrc's SRTP stands */
	uint32_t ssrc;
	bool confirmed;
	struct endpoint remote;
};

struct offload_config {
	const struct steer_ops *ops;
	const struct steer_config *steer;
	uint32_t workers, max_stream, max_ctx; /* the latter per worker */
	void (*look)(void *arg, uint32_t worker, uint32_t stream, struct offload_look *out);
	/* 0 or -EAGAIN */
	int (*push)(void *arg, uint32_t worker, const struct worker_cmd *cmd, uint32_t n);
	void *arg;
};

/* -EOPNOTSUPP: this steering or this host's kernel does not relay. All functions but this one do
 * nothing with NULL. */
int offload_create(struct offload **out, const struct offload_config *cfg);
void offload_destroy(struct offload *o);

/* These commands are about to be pushed: writes those that must go before them to out[max]; their
 * number. OFFLOAD_BEFORE per command is always enough. */
#define OFFLOAD_BEFORE 8u
uint32_t offload_before(struct offload *o, uint32_t worker, const struct media_cmd *cmd, uint32_t n,
	struct worker_cmd *out, uint32_t max);
/* They were, all of them. */
void offload_pushed(struct offload *o, uint32_t worker, const struct media_cmd *cmd, uint32_t n);
/* The stream's port is given back. */
void offload_release(struct offload *o, uint32_t worker, uint32_t stream);
/* Each second (monotonic): who may go, who must come back; reads what the kernel counted. */
void offload_tick(struct offload *o, uint64_t now_ns);
/* When something came to it last, by way of the kernel (CLOCK_REALTIME; 0: never). Asks nobody
 * where the kernel tells of silence. */
uint64_t offload_heard(const struct offload *o, uint32_t worker, uint32_t stream);
/* Packets that the kernel relayed for this stream, by its last report. *kernel: the kernel relays
 * it now. */
uint64_t offload_arrived(const struct offload *o, uint32_t worker, uint32_t stream, bool *kernel);
/* The kernel told this of a stream; true: it is to be looked at again, when the worker had its
 * packet. */
bool offload_event(struct offload *o, const struct steer_event *e);
void offload_look_again(struct offload *o, uint64_t now_ns);
/* It relays no more: all that comes, comes to us. */
void offload_gone(struct offload *o);
/* It can again, and its counters begin anew; those of before stay counted. */
void offload_back(struct offload *o);
/* Adds the kernel's part. */
void offload_stats(struct offload *o, uint32_t worker, uint32_t stream, uint64_t now_ns,
	struct relay_stats *out);

struct offload_usage {
	uint32_t streams; /* that the kernel relays now */
	uint64_t packets; /* it relayed so far, as of the last tick */
	uint64_t moves;   /* to the kernel and back */
};
void offload_usage(struct offload *o, uint64_t now_ns, struct offload_usage *out);

#endif
