/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The packet side as calls see it (call/relay.h), over the port pool, the workers' key tables and
 * their command rings. Hands out handles, and takes each back for reuse only after the worker has
 * said that it is done with it. Control thread only. */
#ifndef BRIDGE_BRIDGE_H
#define BRIDGE_BRIDGE_H

#include "bridge/offload.h"
#include "worker/worker.h"
#include "call/relay.h"
#include "steer/ports.h"

struct bridge;

struct bridge_config {
	struct worker *const *worker; /* [workers], outlive the relay */
	uint32_t workers;
	struct ports *ports;
	const struct relay_local *local;
	uint32_t locals;
	uint32_t max_stream, max_ctx, key_slots; /* per worker */
	/* of the key slots: left to emergency calls, like ports_reserve() */
	uint32_t emergency_percent;
	const struct steer_ops *steer_ops;
	/* outlives the relay; NULL: nothing is left to the kernel */
	const struct steer_config *steer;
	bool spread; /* calls evenly over the workers, always (balance.h) */
	/* steering brings a port's packets to the worker whose it is, and to no other */
	bool ports_bound_to_workers;
};

int bridge_create(struct bridge **out, const struct bridge_config *cfg);
void bridge_destroy(struct bridge *r);
extern const struct relay_ops bridge_ops; /* arg: struct bridge */
/* Each second: which media the kernel may relay, and what it did. */
void bridge_tick(struct bridge *r, uint64_t now_ns);
/* What the kernel told by itself: see offload_event(), offload_look_again(), offload_gone(),
 * offload_back(). */
bool bridge_event(struct bridge *r, const struct steer_event *e);
void bridge_look_again(struct bridge *r, uint64_t now_ns);
void bridge_kernel_gone(struct bridge *r);
void bridge_kernel_back(struct bridge *r);
/* Tells all workers that packets come by the steering again: steer_ops.again(). */
void app_relay_steer_again(struct bridge *r);
/* Take back what workers acknowledged, and push what did not fit into a ring. On the workers'
 * eventfd, and each second. */
void bridge_poll(struct bridge *r, uint64_t now_ns);

/* A call's worth of commands would find room with any worker. */
bool bridge_has_room(const struct bridge *r);

struct bridge_usage {
	uint32_t streams, contexts, key_slots, ports; /* in use, or on their way back */
	uint32_t ports_free;
	uint64_t backlog;   /* commands that wait for room in a ring */
	uint64_t shortages; /* refusals for want of anything */
	struct offload_usage offload;
};
void bridge_usage(const struct bridge *r, struct bridge_usage *out);

#endif
