/* SPDX-License-Identifier: GPL-2.0 */
/* A ring as the ring_*.c files see it. The interface is uapi/nf_xcipher_ring.h. */
#ifndef NFX_RING_H
#define NFX_RING_H

#include <linux/eventfd.h>
#include <linux/hrtimer.h>
#include <linux/mutex.h>
#include <linux/rcuwait.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "nf_xcipher.h"

/* Pinned pages of the worker, mapped for the kernel in one piece. */
struct nfx_area {
	struct page **page;
	u32 pages;
	u8 *map;
};

/* The structure is the kernel's own. What its pointers into shared memory point to is not trusted.
 * Lock order: nfx_net.lock, bells, lock. */
struct nfx_ring {
	/* Constant. */
	u32 slots, ordinary; /* ordinary: slots that non-emergency packets may use */
	u32 first, stride, room, sends, length;
	u8 *memory;
	struct nfx_ring_control *control;
	struct nfx_recv *recv;
	struct nfx_send *send;
	struct eventfd_ctx *wake;
	struct nfx_net *nn;
	struct nfx_owner *owner; /* valid while the ring is attached, which holding bells ensures */
	struct sock *bell;       /* a reference */

	/* One lock for all processors that receive. It is held for one packet: for one copy, or for
	 * the parts of a coalesced one. Per-processor rings would need the memory once per
	 * processor, and the worker would have to merge them. */
	spinlock_t lock;
	bool due;    /* under lock: the worker must be woken when it is released */
	bool closed; /* written under nfx_net.lock, without bells: a bell ends early. Nothing writes
		      * to shared memory under bells or lock once it is seen. */
	u32 head, released, taken, wake_packets, window_ns;
	u64 stat[NFX_R_COUNT]; /* those of receiving under lock, those of sending under bells;
				* WAKES_WINDOW: by the timer only */
	atomic_t armed;
	struct hrtimer timer;

	struct mutex bells; /* held while a bell is processed, so that only one is at a time */

	/* A worker that waits in its bell. */
	struct rcuwait sleeper;
	bool waits;  /* set under bells, cleared without: a caller is about to wait, or waits */
	bool polled; /* the worker's epoll had events */
	struct file *poll; /* a reference to that epoll; NULL: bells cannot wait */
	wait_queue_head_t *poll_head;
	wait_queue_entry_t poll_entry;

	/* Opening and closing only. */
	struct nfx_area control_area, memory_area;
	const struct cred *charged; /* of the charged user; NULL: nobody is */
	struct mm_struct *mm;       /* its VmPin has the pages; NULL: none */
	u32 pinned;                 /* pages */
	u32 number;
	struct rcu_work free;
};

/* --- ring_tx.c --- */
/* Copies the counters to shared memory. */
void nfx_ring_tell(struct nfx_ring *r);

/* --- ring_wait.c --- */
void nfx_ring_wait_init(struct nfx_ring *r);
/* Events of this epoll file end a wait. 0, -EBADF (no such file) or -EINVAL (not an epoll). */
int nfx_ring_wait_open(struct nfx_ring *r, u32 fd);
/* After the ring ended: its epoll is released. */
void nfx_ring_wait_close(struct nfx_ring *r);
/* Waits until the ring is not armed any more. The caller has set waits under bells, and holds
 * nothing. The ring may be freed afterwards. */
void nfx_ring_wait(struct nfx_ring *r);
/* After a ring was closed: until no caller is in nfx_ring_wait(). */
void nfx_ring_wait_synchronize(const struct nfx_ring *r);

/* --- ring_wake.c --- */
void nfx_ring_wake_init(struct nfx_ring *r);
/* Under lock, after a packet: true if nfx_ring_wake() must be called, without lock. full: the
 * packet found no slot. */
bool nfx_ring_due(struct nfx_ring *r, bool full);
/* Does not write to shared memory. */
void nfx_ring_wake(struct nfx_ring *r);
/* Applies the indexes of a checked bell, and arms if it asks for that. Process context. */
void nfx_ring_arm(struct nfx_ring *r, const struct nfx_bell *b);

#endif
