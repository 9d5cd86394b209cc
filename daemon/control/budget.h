/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One budget for all connections of a server, per round of the event loop, so that many clients do
 * not delay ng by UDP. Connections with more requests than their turn allows wait in one queue,
 * first come, first served. So none of them starves while others send without end. */
#ifndef CONTROL_BUDGET_H
#define CONTROL_BUDGET_H

#include "base/loop.h"

struct budget_turn {                      /* a connection's place in the queue; zero: not waiting */
	struct budget_turn *next, **prev; /* prev NULL: not waiting */
	void (*fn)(void *arg);            /* may wait again, and may free the connection */
	void *arg;
};

struct budget {                   /* zero-initialised */
	struct loop_timer *timer; /* resets served to 0 */
	uint32_t served;
	struct budget_turn *first, **last; /* last NULL: no connection waited yet */
	struct loop *loop;
};

/* Whether to serve one more request before other events. True if memory is short. */
bool budget_takes(struct budget *r, struct loop *loop);
/* Queues the connection: fn is called once, in one of the next rounds. Does nothing if it waits
 * already. 0 or -ENOMEM. */
int budget_wait(struct budget *r, struct loop *loop, struct budget_turn *t, void (*fn)(void *arg),
	void *arg);
void budget_leave(struct budget *r, struct budget_turn *t); /* also allowed when not waiting */
void budget_end(struct budget *r);

#endif
