/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counts served requests until a timer without delay expires. Then waiting connections have their
 * turns until the budget is used. The others keep their places in the queue. */
#include "control/budget.h"

#include <errno.h>
#include <stddef.h>

#define ROUND 32 /* requests and messages */

static void on_round(void *arg);

static bool start(struct budget *r, struct loop *loop)
{
	r->loop = loop;
	if (!r->timer && loop_timer_add(loop, &r->timer, 0, 0, on_round, r))
		r->timer = NULL;
	return r->timer;
}

static void on_round(void *arg)
{
	struct budget *r = arg;
	uint32_t waiting = 0;

	r->timer = NULL;
	r->served = 0;
	for (const struct budget_turn *t = r->first; t; t = t->next)
		waiting++;
	/* connections that queue again get a turn in the next round */
	for (; waiting && r->first && r->served < ROUND; waiting--) {
		struct budget_turn *t = r->first;

		budget_leave(r, t);
		t->fn(t->arg);
	}
	if (r->first)
		start(r, r->loop);
}

bool budget_takes(struct budget *r, struct loop *loop)
{
	return !start(r, loop) || r->served++ < ROUND;
}

int budget_wait(struct budget *r, struct loop *loop, struct budget_turn *t, void (*fn)(void *arg),
	void *arg)
{
	if (t->prev)
		return 0;
	if (!start(r, loop))
		return -ENOMEM;
	if (!r->first)
		r->last = &r->first;
	*t = (struct budget_turn){.prev = r->last, .fn = fn, .arg = arg};
	*r->last = t;
	r->last = &t->next;
	return 0;
}

void budget_leave(struct budget *r, struct budget_turn *t)
{
	if (!t->prev)
		return;
	*t->prev = t->next;
	if (t->next)
		t->next->prev = t->prev;
	else
		r->last = t->prev;
	t->next = NULL;
	t->prev = NULL;
}

void budget_end(struct budget *r)
{
	loop_timer_remove(r->timer);
	r->timer = NULL;
}
