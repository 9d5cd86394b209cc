/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One budget for all connections of a server, per round of the event loop, so that many clients do
 * not delay ng by UDP. Connections with more requests than their turn allows wait in one queue,
 * first come, first served. So none of them starves while others send without end. */
#ifndef XCIPHER_CONTROL_ROUND_H
#define XCIPHER_CONTROL_ROUND_H

#include "base/loop.h"

struct round_turn {                      /* of a connection; zero: it does not wait */
	struct round_turn *next, **prev; /* prev NULL: it does not wait */
	void (*fn)(void *arg);           /* may wait again, and may free the connection */
	void *arg;
};

struct round {                    /* zero is a fresh one */
	struct loop_timer *timer; /* when it comes, served is 0 again */
	uint32_t served;
	struct round_turn *first, **last; /* last NULL: no connection waited yet */
	struct loop *loop;
};

/* Whether one more request may be served before the event loop looks after others. Without memory it may. */
bool round_takes(struct round *r, struct loop *loop);
/* fn is called in one of the next rounds, once. Does nothing while it waits already. 0 or -ENOMEM. */
int round_wait(
	struct round *r, struct loop *loop, struct round_turn *t, void (*fn)(void *arg), void *arg);
void round_leave(struct round *r, struct round_turn *t); /* also when it does not wait */
void round_end(struct round *r);

#endif
