/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One budget for all connections of a server, per round of the event loop, so that many clients do
 * not delay ng by UDP. Connections with more requests than their turn allows wait in one queue,
 * first come, first served. So none of them starves while others send without end. */
#ifndef CONTROL_BUDGET_H
#define CONTROL_BUDGET_H

#include "base/loop.h"

struct budget_turn {                      /* of a connection; zero: it does not wait */
	struct budget_turn *next, **prev; /* prev NULL: it does not wait */
	void (*fn)(void *arg);            /* may wait again, and may free the connection */
	void *arg;
};

struct budget {                   /* zero is a fresh one */
	struct loop_timer *timer; /* resets served to 0 */
	uint32_t served;
	struct budget_turn *first, **last; /* last NULL: no connection waited yet */
	struct loop *loop;
};

/* Whether one more request may be served before the event loop looks after others. Without memory
 * it may. */
bool budget_takes(struct budget *r, struct loop *loop);
/* fn is called in one of the next rounds, once. Does nothing while it waits already. 0 or -ENOMEM.
 */
int budget_wait(struct budget *r, struct loop *loop, struct budget_turn *t, void (*fn)(void *arg),
	void *arg);
void budget_leave(struct budget *r, struct budget_turn *t); /* also when it does not wait */
void budget_end(struct budget *r);

#endif
