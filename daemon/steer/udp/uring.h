/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The ordinary UDP sockets of one worker, served by io_uring: as sockets.h, without a system call
 * per packet. Receives into arena slots of its own choice. One thread, except create() and
 * destroy(). */
#ifndef STEER_UDP_URING_H
#define STEER_UDP_URING_H

#include "packet/arena.h"
#include "steer/steer.h"

struct uring;

/* Whether the kernel has all needed features and permits them. 0 or -errno. */
int uring_probe(void);
int uring_create(struct uring **out, const struct steer_config *cfg, uint32_t worker,
	struct steer_counters *counters);
/* After it returns, nothing writes to the arena any more. NULL is fine. */
void uring_destroy(struct uring *u);
/* Number of arena slots for one worker. */
uint32_t uring_slots(const struct steer_config *cfg);
/* Call it before the first port is added. -EINVAL: the arena is smaller than uring_slots(). */
int uring_memory(struct uring *u, const struct arena *a);
int uring_fd(const struct uring *u);
/* Owns fd on success. -ERANGE: not a port of this worker, -EEXIST. */
int uring_add(struct uring *u, struct local_port local, int fd);
void uring_del(struct uring *u, struct local_port local);
uint32_t uring_recv(struct uring *u, const struct arena *a, struct packet_in *in, uint32_t max);
void uring_send(struct uring *u, const struct arena *a, struct packet_out *out, uint32_t n);
/* The slots of the oldest burst may be overwritten. */
void uring_done(struct uring *u, const struct packet_in *in, uint32_t n);

#endif
