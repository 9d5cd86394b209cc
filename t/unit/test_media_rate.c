/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The limit of packets per second from one terminal: nothing happens below it; above it the excess
 * is dropped, second by second, and no packet of others uses it up; it ends with the excess. */
#include "media/rate.h"
#include "media_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/clock.h"

enum { RATE = 1000 };

struct call {
	struct rig *r;
	uint64_t now, index;
	uint32_t relayed, refused;
};

static struct call call_new(enum srtp_suite_id suite)
{
	struct call c = {.r = rig_new(suite, SUITE_AES_CM_128_80, 0), .now = 1000 * NS_PER_SEC};

	c.r->m->cfg.rate = RATE;
	return c;
}

/* The terminal sends so many packets a second, or somebody forges them. */
static void flow(struct call *c, uint32_t a_second, uint32_t seconds, bool forged)
{
	c->relayed = c->refused = 0;
	for (uint32_t i = 0; i < a_second * seconds; i++) {
		uint8_t *p = rig_send(c->r, 7, ++c->index, A_TX);

		if (forged) {
			p[40] ^= 1;
			c->index--;
		}
		c->r->in[c->r->n - 1].t_ns = c->now;
		c->now += NS_PER_SEC / a_second;
		rig_run(c->r);
		c->relayed += c->r->outs;
		c->refused += c->r->in[0].verdict == PACKET_DROP_RATE;
	}
}

static void excess_is_dropped(void **state)
{
	static const enum srtp_suite_id suites[] = {SUITE_AES_CM_128_80, SUITE_PLAIN};

	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		struct call c = call_new(suites[i]);
		uint32_t far;

		flow(&c, RATE / 2, 3, false);
		assert_int_equal(c.relayed, 3 * RATE / 2);
		assert_false(c.r->m->stream[A].limited);
		/* RATE_LOOK packets tell that it is too fast, then seconds are counted. */
		flow(&c, 2 * RATE, 5, false);
		/* After each gap plain packets must first prove that they go on (jump.c). */
		far = (uint32_t)rig_dropped(c.r, A, PACKET_DROP_UNPROVED);
		assert_in_range(c.relayed + far, 5 * RATE, 5 * RATE + 2 * RATE_LOOK);
		assert_true(suites[i] == SUITE_PLAIN ? far < RATE : far == 0);
		assert_int_equal(c.relayed + far + c.refused, 10 * RATE);
		assert_int_equal(rig_dropped(c.r, A, PACKET_DROP_RATE), c.refused);
		/* The other terminal's stream is another one. */
		assert_false(c.r->m->stream[B].limited);
		c.now += NS_PER_SEC;
		flow(&c, RATE / 2, 3, false);
		far = (uint32_t)rig_dropped(c.r, A, PACKET_DROP_UNPROVED) - far;
		assert_int_equal(c.relayed + far, 3 * RATE / 2);
		assert_false(c.r->m->stream[A].limited);
		assert_true(c.r->m->stream[A].fast);
		rig_free(c.r);
	}
}

static void a_burst_below_the_limit_loses_nothing(void **state)
{
	struct call c = call_new(SUITE_AES_CM_128_80);

	(void)state;
	for (uint32_t i = 0; i < 5; i++) {
		uint32_t of_burst = RATE - RATE_LOOK;
		uint64_t next = c.now + NS_PER_SEC;

		for (uint32_t k = 0; k < of_burst; k++) {
			rig_send(c.r, 7, ++c.index, A_TX);
			c.r->in[0].t_ns = c.now;
			rig_run(c.r);
			assert_int_equal(c.r->outs, 1);
		}
		assert_true(c.r->m->stream[A].limited);
		c.now = next;
	}
	rig_free(c.r);
}

static void others_do_not_use_it_up(void **state)
{
	struct call c = call_new(SUITE_AES_CM_128_80);

	(void)state;
	flow(&c, RATE / 2, 1, false);
	flow(&c, 20 * RATE, 1, true);
	assert_int_equal(c.refused, 0);
	assert_false(c.r->m->stream[A].limited);
	flow(&c, RATE / 2, 1, false);
	assert_int_equal(c.relayed, RATE / 2);
	rig_free(c.r);
}

/* Forward, the next second begins; back, one begins, too; a little out of order, none does. */
static void the_clock_may_be_set(void **state)
{
	struct call c = call_new(SUITE_AES_CM_128_80);

	(void)state;
	flow(&c, 4 * RATE, 1, false);
	assert_true(c.refused > 0);
	c.now -= 3600 * NS_PER_SEC;
	flow(&c, RATE / 2, 2, false);
	assert_int_equal(c.refused, 0);
	flow(&c, 4 * RATE, 1, false);
	c.relayed = 0;
	for (uint32_t i = 0; i < RATE; i++) {
		rig_send(c.r, 7, ++c.index, A_TX);
		c.r->in[0].t_ns = c.now - i % 2 * 1000;
		rig_run(c.r);
		c.relayed += c.r->outs;
	}
	assert_true(c.relayed <= RATE);
	c.relayed = 0;
	for (uint32_t i = 0; i < RATE; i++) {
		rig_send(c.r, 7, ++c.index, A_TX);
		c.r->in[0].t_ns = c.now - i % 2 * 1000;
		rig_run(c.r);
		c.relayed += c.r->outs;
	}
	assert_int_equal(c.relayed, 0);
	rig_free(c.r);
}

static void zero_is_no_limit(void **state)
{
	struct call c = call_new(SUITE_AES_CM_128_80);

	(void)state;
	c.r->m->cfg.rate = 0;
	flow(&c, 100 * RATE, 1, false);
	assert_int_equal(c.relayed, 100 * RATE);
	rig_free(c.r);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(excess_is_dropped),
		cmocka_unit_test(a_burst_below_the_limit_loses_nothing),
		cmocka_unit_test(others_do_not_use_it_up),
		cmocka_unit_test(the_clock_may_be_set),
		cmocka_unit_test(zero_is_no_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
