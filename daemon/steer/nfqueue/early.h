/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Guards of streams under attack, before netfilter. While there is a guard, the program xcipher_tc
 * (steer/xdp/bpf/xdp_prog.c) is attached to all interfaces of this network namespace, between
 * driver and netfilter. It drops what a guard refuses, so that a forged packet needs no queue. It
 * needs no support by the driver. Without guards nothing is attached, and packets cost no more.
 * Links end with their descriptors, also if the process is killed. */
#ifndef STEER_NFQUEUE_EARLY_H
#define STEER_NFQUEUE_EARLY_H

#include "steer/steer.h"

struct early;

/* Control thread, with CAP_BPF and CAP_NET_ADMIN. Loads the program, and starts the thread that
 * attaches it. 0 or -errno; -EOPNOTSUPP: this kernel has no tcx (Linux 6.6). */
int early_open(struct early **out, const struct steer_config *cfg);
/* Detaches the program, and wipes the secrets of guards. NULL is fine. */
void early_close(struct early *e);
/* Worker thread: as steer_ops.guard, of a port of this worker. Does not wait. */
void early_guard(
	struct early *e, uint32_t worker, struct local_port local, const struct guard *guard);
/* Any one thread: sets the counters of packets that guards dropped. */
void early_count(const struct early *e, struct steer_counters *c);

#endif
