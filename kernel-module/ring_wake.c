// SPDX-License-Identifier: GPL-2.0
/* When a ring's worker is woken: after a number of packets, or when the first one has waited for
 * the window. A packet costs a comparison, and only a packet that wakes or begins a window costs
 * more. A worker that is awake is never woken: it arms the ring before it sleeps. */
#include <linux/ktime.h>

#include "compat.h"
#include "ring.h"

/* A worker that waits in its bell needs no eventfd. If it leaves the bell meanwhile, it sees that
 * the ring is not armed any more. */
void nfx_ring_wake(struct nfx_ring *r)
{
	if (rcuwait_active(&r->sleeper))
		rcuwait_wake_up(&r->sleeper);
	else
		nfx_eventfd_signal(r->wake);
}

/* True: the caller must wake the worker. */
static bool disarm(struct nfx_ring *r)
{
	if (!atomic_xchg(&r->armed, 0))
		return false;
	WRITE_ONCE(r->control->armed, 0);
	return true;
}

/* Runs on the processor where the first packet arrived. It takes no lock, because it may interrupt
 * a holder. nfx_ring_close() waits for it. */
static enum hrtimer_restart window_over(struct hrtimer *timer)
{
	struct nfx_ring *r = container_of(timer, struct nfx_ring, timer);

	if (disarm(r)) {
		r->stat[NFX_R_WAKES_WINDOW]++;
		nfx_ring_wake(r);
	}
	return HRTIMER_NORESTART;
}

void nfx_ring_wake_init(struct nfx_ring *r)
{
	nfx_hrtimer_setup(&r->timer, window_over);
}

static void window_begin(struct nfx_ring *r, u32 ns)
{
	hrtimer_start(&r->timer, ns_to_ktime(ns), HRTIMER_MODE_REL_PINNED);
}

bool nfx_ring_due(struct nfx_ring *r, bool full)
{
	u32 waiting = r->head - r->taken;

	if (!atomic_read(&r->armed))
		return false;
	if (full || waiting >= r->wake_packets || !r->window_ns) {
		if (!disarm(r))
			return false;
		r->stat[NFX_R_WAKES_PACKETS]++;
		return true;
	}
	if (waiting == 1)
		window_begin(r, r->window_ns);
	return false;
}

/* What is left of the window of the first packet that the worker has not taken. Its time is read
 * from shared memory. A wrong one shortens or restarts the window, no more. */
static u32 window_left(const struct nfx_ring *r)
{
	u64 at = READ_ONCE(r->recv[r->taken & (r->slots - 1)].t_ns), now = ktime_get_real_ns();
	u64 age = now > at ? now - at : 0;

	return age < r->window_ns ? r->window_ns - age : 0;
}

static void arm(struct nfx_ring *r)
{
	u32 waiting = r->head - r->taken, left = waiting ? window_left(r) : r->window_ns;
	bool sleeps = !waiting || (waiting < r->wake_packets && left);

	/* If it runs on another processor now, a spurious wake-up follows. */
	if (hrtimer_is_queued(&r->timer))
		hrtimer_try_to_cancel(&r->timer);
	WRITE_ONCE(r->control->armed, sleeps);
	atomic_set(&r->armed, sleeps);
	if (sleeps && waiting)
		window_begin(r, left);
}

void nfx_ring_arm(struct nfx_ring *r, const struct nfx_bell *b)
{
	spin_lock_bh(&r->lock);
	r->released = b->released;
	r->taken = b->taken;
	if (b->flags & NFX_BELL_ARM) {
		r->wake_packets = min(b->wake_packets, r->ordinary);
		r->window_ns = b->window_ns;
		arm(r);
	}
	spin_unlock_bh(&r->lock);
}
