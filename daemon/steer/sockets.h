/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The ordinary UDP sockets of one worker, receiving and sending in bursts. "udp" steering consists
 * of them; "nfqueue" falls back to them if a rule is missing. One thread. */
#ifndef STEER_SOCKETS_H
#define STEER_SOCKETS_H

#include <stdatomic.h>
#include <sys/socket.h>

#include "packet/arena.h"
#include "steer/steer.h"

#define SOCKETS_FOREIGN UINT32_MAX /* epoll data of a descriptor that the owner added */

struct sockets;

/* counters: owned by the caller; recv_*, send_* and overruns are updated. */
int sockets_create(struct sockets **out, const struct steer_config *cfg, uint32_t worker,
	struct steer_counters *counters);
/* Closes the sockets that were not removed. NULL is fine. */
void sockets_destroy(struct sockets *s);
int sockets_epoll(const struct sockets *s);
/* Owns fd on success. -ERANGE: not a port of this worker, -EEXIST. */
int sockets_add(struct sockets *s, struct local_port local, int fd);
void sockets_del(struct sockets *s, struct local_port local);
bool sockets_has(const struct sockets *s, struct local_port local);
/* Upper limit of packets that waited in sockets before these were added, and so are older than the
 * queue's. 0 once sockets_recv() returned fewer packets than it had room for. */
uint32_t sockets_before(const struct sockets *s);
/* Receives up to max packets into the slots [first_slot, first_slot + max). A datagram longer than
 * ARENA_MAX_PACKET keeps its true len but is truncated: media drops and counts it by len. token is
 * 0. */
uint32_t sockets_recv(struct sockets *s, const struct arena *a, uint32_t first_slot,
	struct packet_in *in, uint32_t max);
/* Reads a packet's ancillary data: its arrival time (CLOCK_REALTIME), and the socket's loss
 * counter. Adds the increase since *drops to overruns, and updates *drops. */
uint64_t sockets_beside(struct msghdr *h, uint32_t *drops, struct steer_counters *counters);
/* Adds drops since the last packet received. Costs one system call. */
void sockets_lost(int fd, uint32_t *drops, struct steer_counters *counters);
/* Sends out[which[0 .. n)], or out[0 .. n) if which is NULL, and sets failed of each. */
void sockets_send(struct sockets *s, const struct arena *a, struct packet_out *out,
	const uint32_t *which, uint32_t n);

/* For a counter with a single writer: needs no locked instruction. */
static inline void steer_count(_Atomic uint64_t *c, uint64_t n)
{
	atomic_store_explicit(
		c, atomic_load_explicit(c, memory_order_relaxed) + n, memory_order_relaxed);
}

#endif
