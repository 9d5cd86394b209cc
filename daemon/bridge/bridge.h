/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The packet side as calls see it (call/relay.h), above the port pool, the workers' key tables and
 * their command rings. Assigns handles, and reuses one only after the worker has acknowledged its
 * release. Control thread only. */
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
	/* share of the key slots reserved for emergency calls, like ports_reserve() */
	uint32_t emergency_percent;
	const struct steer_ops *steer_ops;
	/* outlives the bridge; NULL: the kernel relays nothing */
	const struct steer_config *steer;
	bool spread; /* always distribute calls evenly over the workers (balance.h) */
	/* steering delivers a port's packets only to the worker that owns it */
	bool ports_bound_to_workers;
};

int bridge_create(struct bridge **out, const struct bridge_config *cfg);
void bridge_destroy(struct bridge *r);
extern const struct relay_ops bridge_ops; /* arg: struct bridge */
/* Each second: decides which media the kernel may relay, and reads its counters. */
void bridge_tick(struct bridge *r, uint64_t now_ns);
/* Events of the kernel: see offload_event(), offload_look_again(), offload_gone(), offload_back().
 */
bool bridge_event(struct bridge *r, const struct steer_event *e);
void bridge_look_again(struct bridge *r, uint64_t now_ns);
void bridge_kernel_gone(struct bridge *r);
void bridge_kernel_back(struct bridge *r);
/* Sends all workers the command to receive by the steering again: steer_ops.again(). */
void bridge_steer_again(struct bridge *r);
/* Processes acknowledgements of workers, and sends commands that did not fit into a ring. Called on
 * the workers' eventfd, and each second. */
void bridge_poll(struct bridge *r, uint64_t now_ns);
/* Wakes the workers that were sent commands. A commit does it, too. Each wake-up delays media, so
 * all other commands wait for this function, or until the ring is full. Call it before each wait
 * for events. */
void bridge_wake(struct bridge *r);

/* Whether every worker's ring has room for the commands of a call. */
bool bridge_has_room(const struct bridge *r);

struct bridge_usage {
	/* in use, or not yet acknowledged as released */
	uint32_t streams, contexts, key_slots, ports;
	uint32_t ports_free;
	uint64_t backlog;   /* commands waiting for room in a ring */
	uint64_t shortages; /* refusals, by resource */
	struct offload_usage offload;
};
void bridge_usage(const struct bridge *r, struct bridge_usage *out);

#endif
