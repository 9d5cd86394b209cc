/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opens and closes nf_xcipher's packet ring for one worker: the control area, the eventfd and the
 * doorbell's socket are kept, so that a ring can be opened again after the module was. */
#ifndef STEER_KERNEL_KERNEL_RING_H
#define STEER_KERNEL_KERNEL_RING_H

#include "steer/kernel/kernel_nl.h"
#include "steer/kernel/kring.h"

#define KRING_SLOTS 1024u /* received packets of one worker that are waiting or in use */

struct kring_home {
	struct kring ring;
	bool open;
	uint32_t number;
	void *control;
	size_t control_len;
	uint32_t sends;
	int event_fd, bell_fd;
	int poll_fd; /* the worker's epoll; -1: unknown, or its bells cannot wait */
	const struct arena *arena;
	uint32_t first; /* arena slot */
};

/* sends: most packets of one bell. 0 or -errno. */
int kring_home_create(struct kring_home **out, uint32_t sends);
/* NULL is fine. Before the arena is destroyed, and after the netlink socket was closed, which ends
 * the ring. */
void kring_home_destroy(struct kring_home *h);
/* The arena with KRING_SLOTS slots from first on; it stays. */
void kring_home_memory(struct kring_home *h, const struct arena *a, uint32_t first);
/* Opens a ring for this socket's owner. waits: the module has NFX_FEATURE_RING_WAIT. *lost: packets
 * lost in the owner's earlier rings (struct knl_ring_opened). 0 or -errno: there is none, and
 * knl_said() may tell why. */
int kring_open(struct kring_home *h, struct knl *k, bool waits, uint64_t *lost);
/* 0, also if the module has ended it. -errno: it is still open, and may get packets. */
int kring_close(struct kring_home *h, struct knl *k);

#endif
