/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Batching by load: when packets are sparse, waiting would cost delay and save nothing; when many
 * are expected within the window, one wake-up serves them all. When more are expected than half a
 * batch, the wait is that much shorter. Called for each burst by the worker's loop. */
#include "worker/coalesce.h"

#define RATE_PERIOD_NS 5000000ull /* the arrival rate is looked at this often */
#define SILENCE        20         /* such periods without a look: what was before does not count */
#define WORTH_WAITING  2.0        /* packets that must be expected within the window */

void coalesce_count(struct coalesce *p, uint32_t n, uint64_t now_ns)
{
	uint64_t elapsed = now_ns - p->from_ns;
	bool silence = elapsed > SILENCE * RATE_PERIOD_NS;

	p->packets += n;
	if (elapsed < RATE_PERIOD_NS)
		return;
	/* A long silence says all there is to say; otherwise the past counts three quarters. */
	p->rate = silence ? 0 : p->rate * 0.75;
	p->rate += (silence ? 1 : 0.25) * (double)p->packets * 1e9 / (double)elapsed;
	p->from_ns = now_ns;
	p->packets = 0;
}

uint64_t coalesce_wait_ns(const struct coalesce *p)
{
	double expected = p->rate * (double)p->window_ns / 1e9;
	double full = p->batch_max / 2.0;

	if (expected < WORTH_WAITING)
		return 0;
	if (expected <= full)
		return p->window_ns;
	return (uint64_t)((double)p->window_ns * full / expected);
}
