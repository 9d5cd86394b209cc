/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The pool of local ports: pairs of an even RTP port and the next odd RTCP port, per local address
 * and worker, in shuffled order. Freed ports are not reused for a while (RFC 3550 11). Control
 * thread only, except ports_given(). */
#ifndef STEER_PORTS_H
#define STEER_PORTS_H

#include "steer/steer.h"

struct ports;

struct ports_pair {
	struct local_port rtp, rtcp;
	int rtp_fd,
		/* bound and non-blocking, with timestamps and TOS set; the caller owns them */
		rtcp_fd;
};

/* hold_ns: minimum time before a freed pair is used again while others are free. */
int ports_create(struct ports **out, const struct steer_config *cfg, uint8_t tos, uint64_t hold_ns);
void ports_destroy(struct ports *p);
/* Takes a pair whose two ports could be bound. 0, -ENOSPC if the pool is empty, -EMFILE if
 * descriptors run out, or -errno of the socket call. Skips ports that other programs hold. */
int ports_take(
	struct ports *p, uint8_t local, uint32_t worker, uint64_t now_ns, struct ports_pair *out);
/* Reserves a share, in percent, of each worker's pairs and of the descriptors, which
 * ports_take_ordinary() does not use. Call it before the first pair is taken. */
void ports_reserve(struct ports *p, uint32_t percent);
/* Like ports_take(), but returns -ENOSPC or -EMFILE if only the reserve is left. */
int ports_take_ordinary(
	struct ports *p, uint8_t local, uint32_t worker, uint64_t now_ns, struct ports_pair *out);
/* Like ports_take(), but only while more than half of the pairs and of the descriptors are free.
 * Else -ENOSPC or -EMFILE. */
int ports_take_plenty(
	struct ports *p, uint8_t local, uint32_t worker, uint64_t now_ns, struct ports_pair *out);
/* Takes a given pair, which a call had before a restart. *worker: its owner by
 * steer_worker_ports(). 0, -ERANGE if it is outside our range, -EADDRINUSE if it is taken or
 * another program holds it, else as ports_take(). */
int ports_take_at(struct ports *p, struct local_port rtp, uint32_t *worker, struct ports_pair *out);
/* Returns a pair to the pool. The owner of the sockets closes them. */
void ports_put(struct ports *p, struct local_port rtp, uint64_t now_ns);
/* Whether this port, RTP or RTCP, is in use, or was recently and is not yet free again. */
bool ports_has(struct ports *p, struct local_port port);
/* Whether a call has this port, RTP or RTCP, now. Lock-free; any thread may call it. */
bool ports_given(struct ports *p, struct local_port port);
uint32_t ports_free_count(const struct ports *p);
/* How often ports_take() skipped a pair because another program has one of its ports. */
uint64_t ports_foreign_count(const struct ports *p);
uint32_t ports_used_count(const struct ports *p);
/* Number of further pairs for which the process has descriptors. */
uint32_t ports_descriptors_count(const struct ports *p);

#endif
