/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The budget of a server's connections. Connections beyond it wait in one queue, and all of them
 * get their turn. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "control/budget.h"

#define CLIENTS 5
#define TURN    8 /* of a connection */

struct client {
	struct budget_turn turn;
	struct server *server;
	uint32_t wants, got;
};

struct server {
	struct loop *loop;
	struct budget round;
	uint32_t turns, until;
	struct client client[CLIENTS];
};

static void serve(void *arg)
{
	struct client *c = arg;
	struct server *s = c->server;

	for (int i = 0; i < TURN && c->wants && budget_takes(&s->round, s->loop); i++) {
		c->wants--;
		c->got++;
	}
	if (c->wants)
		assert_int_equal(budget_wait(&s->round, s->loop, &c->turn, serve, c), 0);
	if (++s->turns >= s->until)
		loop_stop(s->loop);
}

static void begin(struct server *s, uint32_t turns)
{
	*s = (struct server){.until = turns};
	assert_int_equal(loop_create(&s->loop), 0);
	for (int i = 0; i < CLIENTS; i++)
		s->client[i].server = s;
}

static void end(struct server *s)
{
	for (int i = 0; i < CLIENTS; i++)
		budget_leave(&s->round, &s->client[i].turn);
	budget_end(&s->round);
	loop_destroy(s->loop);
}

/* Five connections that want more than the budget: their shares differ by at most one turn. */
static void all_that_wait_have_as_many_turns(void **state)
{
	struct server s;
	uint32_t least = UINT32_MAX, most = 0;

	(void)state;
	begin(&s, 1000);
	for (int i = 0; i < CLIENTS; i++) {
		s.client[i].wants = 1000000;
		serve(&s.client[i]);
	}
	assert_int_equal(loop_run(s.loop), 0);
	for (int i = 0; i < CLIENTS; i++) {
		least = s.client[i].got < least ? s.client[i].got : least;
		most = s.client[i].got > most ? s.client[i].got : most;
	}
	assert_in_range(least, 1000 / CLIENTS * TURN / 2, 1000000);
	assert_in_range(most - least, 0, 2 * TURN);
	end(&s);
}

static void who_leaves_is_not_called(void **state)
{
	struct server s;

	(void)state;
	begin(&s, 30);
	for (int i = 0; i < CLIENTS; i++) {
		s.client[i].wants = 1000000;
		serve(&s.client[i]);
	}
	/* the first, one from the middle, and the last, which is alone in the queue by then */
	budget_leave(&s.round, &s.client[0].turn);
	budget_leave(&s.round, &s.client[0].turn);
	budget_leave(&s.round, &s.client[2].turn);
	budget_leave(&s.round, &s.client[4].turn);
	uint32_t got = s.client[0].got + s.client[2].got + s.client[4].got;
	assert_int_equal(loop_run(s.loop), 0);
	assert_int_equal(s.client[0].got + s.client[2].got + s.client[4].got, got);
	assert_in_range(s.client[1].got, 5 * TURN, 1000000);
	assert_in_range(s.client[3].got, 5 * TURN, 1000000);
	end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_that_wait_have_as_many_turns),
		cmocka_unit_test(who_leaves_is_not_called),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
