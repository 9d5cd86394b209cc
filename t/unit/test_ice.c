/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ICE agents with each other: roles, components, families, NAT, loss, reordering, late answers. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "ice_net.h"

static struct net N;

static void begin(const char *a, const char *b)
{
	net_clear(&N);
	N.noise = 1;
	net_agent(&N.a, a, true, 1);
	net_agent(&N.b, b, false, 2);
}

static void tell_both(void)
{
	net_tell(&N, &N.b, &N.a, false);
	net_tell(&N, &N.a, &N.b, false);
}

static void two_full_agents(void **state)
{
	(void)state;
	begin("192.0.2.1:5000", "192.0.2.2:6000");
	assert_int_equal(ice_state(&N.a), ICE_NEW);
	tell_both();
	assert_int_equal(ice_state(&N.a), ICE_CHECKING);
	assert_true(net_run(&N, ICE_COMPLETED, 1000 * NET_MS));
	assert_true(net_agree(&N, 1));
	assert_true(N.now_ns < 50 * NET_MS); /* nomination does not wait for Ta */
	assert_true(ice_is_controlling(&N.a) && !ice_is_controlling(&N.b));
}

/* The peer that offered receives our answer after our checks would arrive. */
static void the_controlling_side_begins(void **state)
{
	(void)state;
	for (int late = 0; late < 2; late++) {
		begin("192.0.2.1:5000", "192.0.2.2:6000");
		net_tell(&N, &N.b, &N.a, false);
		net_pass(&N, 100 * NET_MS);
		assert_int_equal(N.sent, 0);
		if (late) { /* the peer cannot reach us, or waits for our check */
			net_pass(&N, 150 * NET_MS);
			assert_true(N.sent > 0);
		}
		net_tell(&N, &N.a, &N.b, false);
		assert_true(net_run(&N, ICE_COMPLETED, 100 * NET_MS));
		assert_true(net_agree(&N, 1));
	}
}

static void two_components_four_addresses(void **state)
{
	(void)state;
	begin("192.0.2.1:5000 [2001:db8::1]:5000 192.0.2.1:5001/2 [2001:db8::1]:5001/2",
		"192.0.2.2:6000 [2001:db8::2]:6000 192.0.2.2:6001/2 [2001:db8::2]:6001/2");
	tell_both();
	assert_true(net_run(&N, ICE_COMPLETED, 5000 * NET_MS));
	assert_true(net_agree(&N, 1) && net_agree(&N, 2));
	assert_int_equal(N.a.selected[0].remote.family, AF_INET); /* the preferred one */
	assert_int_equal(N.a.selected[1].remote.family, AF_INET);
}

static void second_component_ends_by_mux(void **state)
{
	struct ice_pair_selected s;

	(void)state;
	begin("192.0.2.1:5000 192.0.2.1:5001/2", "192.0.2.2:6000");
	tell_both();
	assert_true(!net_run(&N, ICE_COMPLETED, 1000 * NET_MS));
	ice_use_one_component(&N.a, N.now_ns);
	assert_int_equal(ice_state(&N.a), ICE_COMPLETED);
	assert_false(ice_selected(&N.a, 2, &s));
}

static bool no_v4(struct net *n, struct ice_agent *from, struct net_flight *f)
{
	(void)n;
	(void)from;
	return f->dst.family == AF_INET6;
}

static void falls_back_to_the_other_family(void **state)
{
	(void)state;
	begin("192.0.2.1:5000 [2001:db8::1]:5000", "192.0.2.2:6000 [2001:db8::2]:6000");
	N.route = no_v4;
	tell_both();
	assert_true(net_run(&N, ICE_COMPLETED, 5000 * NET_MS));
	assert_int_equal(N.a.selected[0].remote.family, AF_INET6);
	assert_true(N.now_ns < 1000 * NET_MS); /* does not wait for IPv4 to fail */
}

static void both_believe_they_control(void **state)
{
	(void)state;
	for (int controlling = 0; controlling < 2; controlling++) {
		begin("192.0.2.1:5000", "192.0.2.2:6000");
		N.a.controlling = N.b.controlling = controlling;
		tell_both();
		assert_true(net_run(&N, ICE_COMPLETED, 5000 * NET_MS));
		assert_true(net_agree(&N, 1));
		assert_true(ice_is_controlling(&N.a) != ice_is_controlling(&N.b));
		assert_true(ice_is_controlling(&N.a) == (N.a.tie_breaker > N.b.tie_breaker));
	}
}

static void full_with_lite(void **state)
{
	(void)state;
	for (int offerer = 0; offerer < 2; offerer++) {
		net_clear(&N);
		net_agent(&N.a, "192.0.2.1:5000", offerer, 1);
		net_lite(&N.b, "192.0.2.2:6000", !offerer, 2);
		tell_both();
		assert_true(ice_is_controlling(&N.a) && !ice_is_controlling(&N.b));
		assert_true(net_run(&N, ICE_COMPLETED, 5000 * NET_MS));
		assert_true(net_agree(&N, 1));
		net_pass(&N, 60000 * NET_MS); /* lite answers consent checks */
		assert_int_equal(ice_state(&N.a), ICE_COMPLETED);
		assert_int_equal(ice_state(&N.b), ICE_COMPLETED);
	}
}

static void both_lite(void **state)
{
	(void)state;
	net_clear(&N);
	net_lite(&N.a, "192.0.2.1:5000 [2001:db8::1]:5000", true, 1);
	net_lite(&N.b, "192.0.2.2:6000 [2001:db8::2]:6000", false, 2);
	tell_both();
	assert_int_equal(ice_state(&N.a), ICE_COMPLETED);
	assert_true(net_agree(&N, 1));
	net_pass(&N, 60000 * NET_MS);
	assert_int_equal(ice_state(&N.b), ICE_COMPLETED);
	assert_true(N.sent >= 6 && N.sent <= 10); /* indications only */
}

/* b is behind a NAT: its packets come from another address, and only that one leads to it. */
static bool nat(struct net *n, struct ice_agent *from, struct net_flight *f)
{
	if (from == &n->b)
		f->src = n->nat_outside;
	else if (endpoint_eq(&f->dst, &n->nat_outside))
		f->dst = n->nat_inside;
	else
		return false;
	return true;
}

static void learns_a_peer_reflexive_candidate(void **state)
{
	struct ice_pair_selected s;

	(void)state;
	for (int controlling = 0; controlling < 2; controlling++) {
		begin("192.0.2.1:5000", "10.0.0.2:6000");
		N.a.controlling = controlling;
		N.b.controlling = !controlling;
		N.route = nat;
		N.nat_inside = net_at("10.0.0.2:6000");
		N.nat_outside = net_at("198.51.100.7:40000");
		tell_both();
		assert_true(net_run(&N, ICE_COMPLETED, 10000 * NET_MS));
		assert_true(ice_selected(&N.a, 1, &s));
		assert_true(endpoint_eq(&s.remote, &N.nat_outside));
		assert_true(ice_is_valid_source(&N.a, 0, &N.nat_outside));
		assert_false(ice_is_valid_source(&N.a, 0, &N.nat_inside));
		assert_int_equal(ice_state(&N.a), ICE_COMPLETED);
	}
}

static bool bad_weather(struct net *n, struct ice_agent *from, struct net_flight *f)
{
	(void)from;
	n->noise ^= n->noise << 13; /* xorshift */
	n->noise ^= n->noise >> 17;
	n->noise ^= n->noise << 5;
	f->at_ns += (n->noise >> 12) % 300 * NET_MS; /* reordered by up to 300 ms */
	return (n->noise >> 8) % 1000 >= n->loss;
}

static void loss_and_reordering(void **state)
{
	(void)state;
	for (uint32_t seed = 1; seed < 60; seed++) {
		begin("192.0.2.1:5000 [2001:db8::1]:5000", "192.0.2.2:6000 [2001:db8::2]:6000");
		N.noise = seed * 2654435761u;
		N.route = bad_weather;
		N.loss = 200;
		tell_both();
		assert_true(net_run(&N, ICE_COMPLETED, 39000 * NET_MS));
		assert_true(net_agree(&N, 1));
		N.loss = 100; /* six consent checks in a row must not all be lost */
		net_pass(&N, 300000 * NET_MS);
		assert_int_equal(ice_state(&N.a), ICE_COMPLETED);
		assert_int_equal(ice_state(&N.b), ICE_COMPLETED);
	}
}

/* The controlling side nominates with every check: the best of the valid pairs is selected. */
static void peer_nominates_aggressively(void **state)
{
	(void)state;
	begin("192.0.2.1:5000 [2001:db8::1]:5000 192.0.2.3:5000",
		"192.0.2.2:6000 [2001:db8::2]:6000");
	tell_both();
	for (uint8_t i = 0; i < N.a.pair_count; i++)
		N.a.pair[i].nominating = true;
	assert_true(net_run(&N, ICE_COMPLETED, 5000 * NET_MS));
	net_pass(&N, 60000 * NET_MS);
	assert_true(net_agree(&N, 1));
	assert_int_equal(ice_state(&N.b), ICE_COMPLETED);
}

static void answer_comes_after_the_checks(void **state)
{
	(void)state;
	begin("192.0.2.1:5000", "192.0.2.2:6000");
	net_tell(&N, &N.b, &N.a, false); /* b has the offer and checks; a has no answer */
	net_pass(&N, 300 * NET_MS);
	assert_int_equal(ice_state(&N.a), ICE_NEW);
	assert_true(N.a.early_count == 1 && ice_counter(&N.a, ICE_COUNT_REQUESTS) >= 1);
	assert_int_equal(ice_state(&N.b), ICE_CONNECTED); /* valid, and not nominated */
	net_tell(&N, &N.a, &N.b, true); /* an answer without candidates: the early request is all */
	assert_true(net_run(&N, ICE_COMPLETED, 1000 * NET_MS));
	assert_true(net_agree(&N, 1));
}

static void candidates_trickle(void **state)
{
	struct ice_candidate c[2];

	(void)state;
	begin("192.0.2.1:5000", "192.0.2.2:6000");
	N.route = no_v4;
	net_tell(&N, &N.b, &N.a, true);
	net_tell(&N, &N.a, &N.b, true);
	assert_false(net_run(&N, ICE_COMPLETED, 2000 * NET_MS));
	N.route = NULL;
	assert_int_equal(ice_local_candidates(&N.b, c, 2), 1);
	net_trickle(&N, &N.a, &N.b, &c[0]);
	assert_true(net_run(&N, ICE_COMPLETED, 2000 * NET_MS));
	assert_true(net_agree(&N, 1));
}

static bool dead(struct net *n, struct ice_agent *from, struct net_flight *f)
{
	(void)n;
	(void)from;
	(void)f;
	return false;
}

static void fails_after_39_5_seconds(void **state)
{
	struct ice_pair_selected s;

	(void)state;
	begin("192.0.2.1:5000", "192.0.2.2:6000");
	N.route = dead;
	tell_both();
	net_pass(&N, 39000 * NET_MS);
	assert_int_equal(ice_state(&N.a), ICE_CHECKING);
	net_pass(&N, 2000 * NET_MS);
	assert_int_equal(ice_state(&N.a), ICE_FAILED);
	assert_false(ice_selected(&N.a, 1, &s));
	assert_int_equal(N.sent, 14); /* Rc of each */
	assert_true(ice_deadline(&N.a) == ICE_NEVER);
}

static void refuses_bad_arguments(void **state)
{
	struct ice_config c = {.components = 2, .local_count = 1};
	struct ice_remote r = {.ufrag = STR("abc"), .pwd = STR("0123456789012345678901")};
	uint8_t seed[ICE_SEED_LEN] = {0};

	(void)state;
	net_clear(&N);
	c.local[0] = (struct ice_local){net_at("192.0.2.1:1"), 1};
	assert_int_equal(ice_init(&N.a, &c, seed, 0), -EINVAL);
	c.components = 1;
	assert_int_equal(ice_init(&N.a, &c, seed, 0), 0);
	assert_int_equal(ice_set_remote(&N.a, &r, 0), -EINVAL);
	assert_int_equal(ice_state(&N.a), ICE_NEW);
	assert_true(ice_size() <= 2560);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_full_agents),
		cmocka_unit_test(the_controlling_side_begins),
		cmocka_unit_test(two_components_four_addresses),
		cmocka_unit_test(second_component_ends_by_mux),
		cmocka_unit_test(falls_back_to_the_other_family),
		cmocka_unit_test(both_believe_they_control),
		cmocka_unit_test(full_with_lite),
		cmocka_unit_test(both_lite),
		cmocka_unit_test(learns_a_peer_reflexive_candidate),
		cmocka_unit_test(loss_and_reordering),
		cmocka_unit_test(peer_nominates_aggressively),
		cmocka_unit_test(answer_comes_after_the_checks),
		cmocka_unit_test(candidates_trickle),
		cmocka_unit_test(fails_after_39_5_seconds),
		cmocka_unit_test(refuses_bad_arguments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
