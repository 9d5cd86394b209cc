/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The pool of local ports: pairs of an even RTP port and the odd RTCP port after it, per local address and worker,
 * in shuffled order, freed ports held back for a while (RFC 3550 11). Control thread only. */
#ifndef STEER_PORTS_H
#define STEER_PORTS_H

#include "steer/steer.h"

struct ports;

struct ports_pair {
	struct local_port rtp, rtcp;
	int rtp_fd,
		rtcp_fd; /* bound and non-blocking, with timestamps and TOS set; the caller owns them */
};

/* hold_ns: how long a freed pair is not given again while there are others. */
int ports_create(struct ports **out, const struct steer_config *cfg, uint8_t tos, uint64_t hold_ns);
void ports_destroy(struct ports *p);
/* Take a pair whose both ports could be bound. 0, -ENOSPC when the pool is used up, -EMFILE when descriptors are, or -errno of the socket call. A port that something else on the machine holds is skipped. */
int ports_take(
	struct ports *p, uint8_t local, uint32_t worker, uint64_t now_ns, struct ports_pair *out);
/* Reserves a share, in percent, of each worker's pairs and of the descriptors, which
 * ports_take_ordinary() does not use. Call it before the first pair is taken. */
void ports_reserve(struct ports *p, uint32_t percent);
/* Like ports_take(), but returns -ENOSPC or -EMFILE if only the reserve is left. */
int ports_take_ordinary(
	struct ports *p, uint8_t local, uint32_t worker, uint64_t now_ns, struct ports_pair *out);
/* Take this very pair, which a call had before a restart; *worker: whose it is by steer_worker_ports(). 0, -ERANGE when it is not
 * among ours, -EADDRINUSE when it is given out or something else on the machine holds it, else as ports_take(). */
int ports_take_at(struct ports *p, struct local_port rtp, uint32_t *worker, struct ports_pair *out);
/* Back into the pool; the sockets are closed by whoever owns them. */
void ports_put(struct ports *p, struct local_port rtp, uint64_t now_ns);
/* Whether this port, RTP or RTCP, is in use, or was recently and is not free again yet. */
bool ports_has(struct ports *p, struct local_port port);
uint32_t ports_free_count(const struct ports *p);
uint32_t ports_used_count(const struct ports *p);
/* Number of further pairs for which the process has descriptors. */
uint32_t ports_descriptors_count(const struct ports *p);

#endif
