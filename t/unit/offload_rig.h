/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A plain call between two terminals, a small kernel that relays, and a worker that obeys at once,
 * for the tests of bridge/offload.h. There is one global rig, because the steering's functions have
 * no argument for it. off_setup() resets it for each test. */
#ifndef T_OFFLOAD_RIG_H
#define T_OFFLOAD_RIG_H

#include "bridge/offload.h"

/* Streams: two of a call, their RTCP, two listeners. A stream's port is 30000 + its number. */
enum { A = 2, A_RTCP, B, B_RTCP, EAR, EAR2, STREAMS = 8, CTXS = 4, CMDS = 32 };

struct off_rig {
	struct offload *o;
	struct bridge_sent sent;
	struct steer_config steer;
	struct offload_look look[STREAMS];
	struct steer_relayed kernel[65536 - 30000]; /* by port */
	bool can;                                   /* the kernel relays at all */
	bool unread;                                /* no counters can be read */
	int refuse;                                 /* the worker's ring is full */
	struct worker_cmd cmd[CMDS];                /* pushed since the last tick */
	uint32_t cmds;
	uint64_t now_ns; /* monotonic */
	uint32_t reads;  /* of the counters of all */
};

extern struct off_rig rig;

#define RIGGED(f) cmocka_unit_test_setup_teardown(f, off_setup, off_teardown)
#define TOLD(f)   cmocka_unit_test_setup_teardown(f, off_setup_told, off_teardown)

/* Stands in for the workers' rings: stores the commands in rig.cmd, and the kernel obeys. */
int off_push(void *arg, uint32_t worker, const struct worker_cmd *cmd, uint32_t n);
struct endpoint off_at(uint8_t host, uint16_t port);
/* Passes on the commands of a call, after the commands they depend on. */
void off_commit(const struct media_cmd *cmd, uint32_t n);
struct media_cmd off_stream_cmd(uint32_t id);
struct media_cmd off_rtcp_cmd(uint32_t id);
struct media_cmd off_ctx_cmd(uint32_t id, enum srtp_suite_id rx, enum srtp_suite_id tx);
/* Advances one second, and empties rig.cmd. */
void off_tick(void);
int off_setup(void **state);
/* Setup with a kernel that reports events such as silence. */
int off_setup_told(void **state);
int off_teardown(void **state);
/* Number of the streams A and B that the kernel relays now. */
uint32_t off_in_kernel(void);

#endif
