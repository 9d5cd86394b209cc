/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A budget of all clients of a server together, for each round of the event loop: ng by UDP must not wait for all that many clients ask
 * over connections. */
#ifndef XCIPHER_CONTROL_ROUND_H
#define XCIPHER_CONTROL_ROUND_H

#include "base/loop.h"

struct round {                    /* zero is a fresh one */
	struct loop_timer *timer; /* when it comes, served is 0 again */
	uint32_t served;
};

/* Whether one more request may be served before the event loop looks after others. Without memory it may. */
bool round_takes(struct round *r, struct loop *loop);
void round_end(struct round *r);

#endif
