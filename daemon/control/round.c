/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counts what is served until a timer of no delay comes round. */
#include "control/round.h"

#include <stddef.h>

#define ROUND 32 /* requests and messages */

static void on_round(void *arg)
{
	struct round *r = arg;

	r->timer = NULL;
	r->served = 0;
}

bool round_takes(struct round *r, struct loop *loop)
{
	if (!r->timer && loop_timer_add(loop, &r->timer, 0, 0, on_round, r))
		r->timer = NULL;
	return !r->timer || r->served++ < ROUND;
}

void round_end(struct round *r)
{
	loop_timer_remove(r->timer);
	r->timer = NULL;
}
