/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Adaptive batching. With few packets, waiting costs delay and saves nothing. If several are
 * expected within the window, one wake-up serves them all. If more than half a batch is expected,
 * the wait is shortened accordingly. Called by the worker's loop for each burst. */
#include "worker/coalesce.h"

#define RATE_PERIOD_NS 5000000ull /* period after which the arrival rate is updated */
#define SILENCE        20         /* periods without a call after which the old rate is discarded */
#define WORTH_WAITING  2.0        /* minimum number of packets expected within the window */

void coalesce_count(struct coalesce *p, uint32_t n, uint64_t now_ns)
{
	uint64_t elapsed = now_ns - p->from_ns;
	bool silence = elapsed > SILENCE * RATE_PERIOD_NS;

	p->packets += n;
	p->patient = !p->urgent_ns || now_ns - p->urgent_ns > COALESCE_URGENT_NS;
	if (elapsed < RATE_PERIOD_NS)
		return;
	/* Discard the old rate after a long silence; otherwise weight it by three quarters. */
	p->rate = silence ? 0 : p->rate * 0.75;
	p->rate += (silence ? 1 : 0.25) * (double)p->packets * 1e9 / (double)elapsed;
	p->from_ns = now_ns;
	p->packets = 0;
}

void coalesce_urgent(struct coalesce *p, uint64_t now_ns)
{
	p->urgent_ns = now_ns;
}

uint64_t coalesce_wait_ns(const struct coalesce *p)
{
	bool longer = p->patient && p->window_ns && p->window_ns < COALESCE_CODEC_NS;
	uint64_t window = longer ? COALESCE_CODEC_NS : p->window_ns;
	double expected = p->rate * (double)window / 1e9;
	double full = p->batch_max / 2.0;

	if (expected < WORTH_WAITING)
		return 0;
	if (expected <= full)
		return window;
	return (uint64_t)((double)window * full / expected);
}
