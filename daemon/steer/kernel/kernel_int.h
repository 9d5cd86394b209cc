/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of kernel steering: kernel.c has its ports and its life, kernel_packets.c
 * moves packets, kernel_relay.c lets the module relay streams. Worker thread, unless a function
 * says otherwise. */
#ifndef STEER_KERNEL_KERNEL_INT_H
#define STEER_KERNEL_KERNEL_INT_H

#include "steer/kernel/kernel_nl.h"
#include "steer/kernel/kernel_ring.h"
#include "steer/steer.h"

#define KERNEL_NO_ID   UINT32_MAX /* in cookies of targets that do not relay */
#define KERNEL_PENDING 64u
#define KERNEL_GUARDED 64u

/* Bits of steer.port[], in addition to enum steer_port. */
#define KERNEL_PORT_OURS 0x80u

struct steer {
	struct steer *queue; /* opaque state of nfqueue steering */
	struct knl *knl;
	struct steer_config cfg;
	struct steer_counters *counters; /* of the queue and the ring */
	uint32_t worker;
	uint32_t instance; /* of the daemon: upper half of our targets' cookies */
	uint32_t features; /* of both */
	/* Ports to be relayed as soon as none of their packets waits for us. */
	struct kernel_pending {
		struct steer_relay relay;
		uint64_t until_ns; /* monotonic */
		uint64_t queued;   /* the port's packets so far, read before the queue was */
		bool looked;
	} pending[KERNEL_PENDING];
	uint32_t pendings;
	bool drained; /* the last receive() took all packets of ring and queue */
	/* Bursts without verdict, whose results are not sent yet: number of packets of the ring; 0:
	 * they came from queue or sockets. */
	uint32_t *burst; /* [bursts], a ring */
	uint32_t bursts, oldest, waiting;
	uint32_t sends;          /* most packets of a burst, and of one send */
	struct kring_home *ring; /* NULL: there is only the queue */
	bool ring_due;           /* one shall be opened */
	uint32_t ring_tries;     /* attempts that failed with EAGAIN */
	uint64_t ring_ns;        /* monotonic: earliest next attempt */
	uint32_t ring_bursts;    /* bursts without verdict whose packets are in the ring's slots */
	bool older;              /* the queue may have packets that are older than the ring's */
	uint32_t since_queue;    /* counted to look at the queue */
	uint64_t ring_full, ring_long; /* of the kernel's counters, as counted so far */
	uint32_t *rest, *sent; /* [sends]: packets that the ring does not send; that it does */
	struct packet_out *rest_out; /* [sends] */
	/* Targets of an earlier instance that were not requested again. */
	uint64_t purge_ns; /* monotonic; 0: unused */
	struct endpoint *stale;
	uint32_t stales, stale_cap;
	uint8_t *port; /* [addresses x ports]: KERNEL_PORT_OURS, enum steer_port */
	/* After the module was loaded again: ports whose targets to restore. */
	uint64_t again_ns; /* monotonic; 0: unused */
	bool met;
	/* Ports with a guard, and the module's counters of each as counted so far. */
	struct kernel_guarded {
		struct local_port local;
		bool used;
		uint64_t seen[GUARD_RESULTS];
	} guarded[KERNEL_GUARDED];
	uint32_t next; /* of port */
};

/* kernel.c */
struct endpoint kernel_endpoint(const struct steer *s, struct local_port local);
bool kernel_has(const struct steer *s, struct local_port local);
/* Flags and limits that all targets of a port have. */
void kernel_target_begin(struct steer *s, struct local_port local, struct knl_target *t);
/* The port's packets come to the worker. 0 or -errno. */
int kernel_queue_target(struct steer *s, struct local_port local);
/* Work that is due: targets left over, targets to restore, a ring to open. */
void kernel_chores(struct steer *s);

/* kernel_guard.c */
void kernel_guard(struct steer *s, struct local_port local, const struct guard *g);

/* kernel_packets.c */
uint32_t kernel_recv(struct steer *s, const struct arena *a, uint32_t first_slot,
	struct packet_in *in, uint32_t max);
void kernel_send(struct steer *s, const struct arena *a, struct packet_out *out, uint32_t n);
void kernel_verdict(struct steer *s, const struct packet_in *in, uint32_t n);
enum steer_gather kernel_gather(struct steer *s, uint64_t wait_ns);
bool kernel_send_and_wait(struct steer *s, const struct arena *a, struct packet_out *out,
	uint32_t n, struct steer_wait *w);
/* The ring was opened: packets that wait in the queue are older. */
void kernel_ring_opened(struct steer *s);

/* kernel_relay.c: struct steer_ops documents the first three, and those of the control thread. */
bool kernel_relays(const struct steer_config *cfg);
int kernel_relay(struct steer *s, const struct steer_relay *r);
void kernel_unrelay(struct steer *s, struct local_port local);
int kernel_relayed(
	const struct steer_config *cfg, struct local_port local, struct steer_relayed *out);
int kernel_relayed_all(const struct steer_config *cfg, uint32_t worker,
	void (*put)(void *arg, const struct steer_relayed *r), void *arg);
int kernel_events_fd(const struct steer_config *cfg);
int kernel_events(const struct steer_config *cfg,
	void (*put)(void *arg, const struct steer_event *e), void *arg);
void kernel_pending_drop(struct steer *s, struct local_port local);
/* Before packets are received, and after the results of all that waited then were sent. */
void kernel_pending_look(struct steer *s);
void kernel_pending_relay(struct steer *s);

#endif
