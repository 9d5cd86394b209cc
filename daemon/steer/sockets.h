/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The ordinary UDP sockets of one worker: received from in bursts, sent by in bursts. "udp" is nothing else, "nfqueue"
 * keeps them as the way around a missing rule. One thread. */
#ifndef STEER_SOCKETS_H
#define STEER_SOCKETS_H

#include <stdatomic.h>
#include <sys/socket.h>

#include "steer/steer.h"

#define SOCKETS_FOREIGN \
	UINT32_MAX /* epoll data of a descriptor that its owner added to the epoll */

struct sockets;

/* counters: the owner's; recv_*, send_* and overruns are written here. */
int sockets_create(struct sockets **out, const struct steer_config *cfg, uint32_t worker,
	struct steer_counters *counters);
/* Closes the sockets that were not taken out. NULL is fine. */
void sockets_destroy(struct sockets *s);
int sockets_epoll(const struct sockets *s);
/* Owns fd from here on, unless it fails. -ERANGE: not one of this worker's ports, -EEXIST. */
int sockets_add(struct sockets *s, struct local_port local, int fd);
void sockets_del(struct sockets *s, struct local_port local);
bool sockets_has(const struct sockets *s, struct local_port local);
/* How many packets may still wait that came to sockets before these were added: what a queue brings was sent after them. Never too few, and 0
 * as soon as sockets_recv() has found less than it has room for. */
uint32_t sockets_before(const struct sockets *s);
/* Up to max packets into the slots [first_slot, first_slot + max). A datagram longer than ARENA_MAX_PACKET comes with its
 * true len and cut bytes: media drops and counts it by len. token is 0. */
uint32_t sockets_recv(struct sockets *s, const struct arena *a, uint32_t first_slot,
	struct media_in *in, uint32_t max);
/* What the kernel says beside a packet: when it came (CLOCK_REALTIME), and how many the socket lost so far: what is new since *drops, its
 * last word, goes to overruns. */
uint64_t sockets_beside(struct msghdr *h, uint32_t *drops, struct steer_counters *counters);
/* Likewise what it lost since its last packet, of which no packet tells: a system call. */
void sockets_lost(int fd, uint32_t *drops, struct steer_counters *counters);
/* Send out[which[0 .. n)], or out[0 .. n) when which is NULL, and set their failed. */
void sockets_send(struct sockets *s, const struct arena *a, struct media_out *out,
	const uint32_t *which, uint32_t n);

/* For the counters' single writer: no locked instruction needed. */
static inline void steer_count(_Atomic uint64_t *c, uint64_t n)
{
	atomic_store_explicit(
		c, atomic_load_explicit(c, memory_order_relaxed) + n, memory_order_relaxed);
}

#endif
