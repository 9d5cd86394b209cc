/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ICE agents after they are connected: consent, restart, saving and restoring, another pair. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "ice_net.h"
#include "ice_save.h"

static struct net N;

static void begin(const char *a, const char *b)
{
	net_clear(&N);
	net_agent(&N.a, a, true, 1);
	net_agent(&N.b, b, false, 2);
	net_tell(&N, &N.b, &N.a, false);
	net_tell(&N, &N.a, &N.b, false);
	assert_true(net_run(&N, ICE_COMPLETED, 5000 * NET_MS));
}

static bool dead(struct net *n, struct ice_agent *from, struct net_flight *f)
{
	(void)n;
	(void)from;
	(void)f;
	return false;
}

static bool no_v4(struct net *n, struct ice_agent *from, struct net_flight *f)
{
	(void)n;
	(void)from;
	return f->dst.family == AF_INET6;
}

static void consent_goes_on(void **state)
{
	unsigned before;

	(void)state;
	begin("192.0.2.1:5000", "192.0.2.2:6000");
	before = N.sent;
	net_pass(&N, 600000 * NET_MS);
	assert_int_equal(ice_state(&N.a), ICE_COMPLETED);
	assert_int_equal(ice_state(&N.b), ICE_COMPLETED);
	/* a request and a response of each in about 5 s */
	assert_in_range(N.sent - before, 4 * 600 / 6, 4 * 600 / 4);
}

static void consent_is_lost_after_30_seconds(void **state)
{
	struct ice_pair_selected s;
	uint32_t changes;

	(void)state;
	begin("192.0.2.1:5000", "192.0.2.2:6000");
	changes = ice_changes(&N.a);
	N.route = dead;
	net_pass(&N, 23000 * NET_MS);
	assert_true(ice_selected(&N.a, 1, &s) && ice_changes(&N.a) == changes);
	net_pass(&N, 8000 * NET_MS);
	assert_int_equal(ice_state(&N.a), ICE_LOST);
	assert_false(ice_selected(&N.a, 1, &s));
	assert_true(ice_changes(&N.a) > changes);
	assert_false(ice_is_valid_source(&N.a, 0, &N.b.local[0].addr));
	/* an ICE restart mends it */
	N.route = NULL;
	ice_restart(&N.a, N.now_ns);
	ice_restart(&N.b, N.now_ns);
	net_tell(&N, &N.b, &N.a, false);
	net_tell(&N, &N.a, &N.b, false);
	assert_true(net_run(&N, ICE_COMPLETED, 1000 * NET_MS));
}

static void begin_lite(void)
{
	net_clear(&N);
	net_agent(&N.a, "192.0.2.1:5000", true, 1);
	net_lite(&N.b, "192.0.2.2:6000", false, 2);
	net_tell(&N, &N.b, &N.a, false);
	net_tell(&N, &N.a, &N.b, false);
	assert_true(net_run(&N, ICE_COMPLETED, 5000 * NET_MS));
}

/* A lite agent sends no consent checks, but the peer's checks prove its consent. The next check
 * revives the pair, also without USE-CANDIDATE. */
static void lite_loses_consent_when_checks_stop(void **state)
{
	struct ice_pair_selected s;

	(void)state;
	begin_lite();
	net_pass(&N, 20000 * NET_MS);
	N.route = dead;
	for (int i = 0; i < 22; i++) {
		N.a.selected[0].ok_ns = N.now_ns; /* the peer does not give up */
		net_pass(&N, 1000 * NET_MS);
	}
	assert_int_equal(ice_state(&N.b), ICE_COMPLETED);
	for (int i = 0; i < 10; i++) {
		N.a.selected[0].ok_ns = N.now_ns;
		net_pass(&N, 1000 * NET_MS);
	}
	assert_int_equal(ice_state(&N.b), ICE_LOST);
	assert_false(ice_selected(&N.b, 1, &s));
	N.route = NULL;
	net_pass(&N, 10000 * NET_MS);
	assert_int_equal(ice_state(&N.b), ICE_COMPLETED);
	assert_true(ice_selected(&N.b, 1, &s));
	net_pass(&N, 60000 * NET_MS);
	assert_int_equal(ice_state(&N.b), ICE_COMPLETED);
}

/* Nor does it wait for checks of a peer that never renews consent (RFC 5245). */
static void lite_keeps_a_peer_without_consent(void **state)
{
	(void)state;
	begin_lite();
	N.route = dead;
	net_pass(&N, 90000 * NET_MS);
	assert_int_equal(ice_state(&N.b), ICE_COMPLETED);
}

static void another_pair_takes_over(void **state)
{
	struct ice_pair_selected s;

	(void)state;
	begin("192.0.2.1:5000 [2001:db8::1]:5000", "192.0.2.2:6000 [2001:db8::2]:6000");
	assert_true(ice_selected(&N.b, 1, &s) && s.remote.family == AF_INET);
	N.route = no_v4; /* and the peer, which controls, moves to IPv6 after some time */
	net_pass(&N, 14000 * NET_MS);
	for (uint8_t i = 0; i < N.a.pair_count; i++)
		if (N.a.remote[N.a.pair[i].remote].addr.family == AF_INET6)
			N.a.pair[i].nominating = N.a.pair[i].triggered = true;
	N.a.selected[0].set = false;
	ice_tick(&N.a, N.now_ns);
	assert_true(net_run(&N, ICE_COMPLETED, 60000 * NET_MS));
	net_pass(&N, 60000 * NET_MS);
	assert_int_equal(ice_state(&N.b), ICE_COMPLETED);
	assert_true(ice_selected(&N.b, 1, &s) && s.remote.family == AF_INET6);
}

/* The selected family fails in mid-call. The other family takes over before consent expires,
 * whichever side controls. It was never checked before, because nomination ended the checks. */
static void the_other_family_takes_over(void **state)
{
	struct ice_pair_selected s;
	uint64_t end;

	(void)state;
	begin("192.0.2.1:5000 [2001:db8::1]:5000", "192.0.2.2:6000 [2001:db8::2]:6000");
	net_pass(&N, 100000 * NET_MS);
	assert_true(ice_selected(&N.b, 1, &s) && s.remote.family == AF_INET);
	N.route = no_v4;
	for (end = N.now_ns + 90000 * NET_MS; N.now_ns < end;) {
		net_pass(&N, 100 * NET_MS);
		assert_int_not_equal(ice_state(&N.a), ICE_LOST);
		assert_int_not_equal(ice_state(&N.b), ICE_LOST);
	}
	assert_int_equal(ice_state(&N.a), ICE_COMPLETED);
	assert_int_equal(ice_state(&N.b), ICE_COMPLETED);
	assert_true(net_agree(&N, 1));
	assert_true(ice_selected(&N.b, 1, &s) && s.remote.family == AF_INET6);
}

/* b gets requests that nominate its pair of this address, each sent twice. */
static void nominate(uint8_t local, uint32_t first, uint32_t requests)
{
	struct early e = {.src = N.a.local[local].addr, .local = local, .use_candidate = true};

	ice_advance(&N.b, N.now_ns);
	for (uint32_t i = 0; i < N.b.pair_count; i++)
		if (N.b.pair[i].local == local) {
			N.b.pair[i].state = PAIR_SUCCEEDED;
			N.b.pair[i].ok_ns = N.b.now_ns;
		}
	for (uint32_t n = 0; n < 2 * requests; n++) {
		e.id = first + n / 2;
		ice_triggered(&N.b, &e);
	}
}

/* A browser moves to a pair of lower priority, and keeps nominating it. */
static void the_last_of_many_nominations_counts(void **state)
{
	struct ice_pair_selected s;

	(void)state;
	begin("192.0.2.1:5000 [2001:db8::1]:5000", "192.0.2.2:6000 [2001:db8::2]:6000");
	net_pass(&N, 2000 * NET_MS);
	assert_true(ice_selected(&N.b, 1, &s) && s.remote.family == AF_INET);
	nominate(1, 1, 2); /* the best counts */
	assert_true(ice_selected(&N.b, 1, &s) && s.remote.family == AF_INET);
	nominate(1, 3, 1);
	assert_true(ice_selected(&N.b, 1, &s) && s.remote.family == AF_INET6);
}

/* Each change costs the control thread: a peer cannot make many. */
static void a_peer_that_moves_to_and_fro_is_followed_slowly(void **state)
{
	struct ice_pair_selected s;
	uint64_t changes;

	(void)state;
	begin("192.0.2.1:5000 [2001:db8::1]:5000", "192.0.2.2:6000 [2001:db8::2]:6000");
	net_pass(&N, 2000 * NET_MS);
	changes = N.b.changes;
	for (uint32_t i = 1; i < 1000; i++) {
		nominate(1, 10 * i, 3);
		nominate(0, 10 * i + 5, 3);
	}
	assert_true(N.b.changes - changes <= 2);
	net_pass(&N, 2000 * NET_MS);
	nominate(1, 20000, 3);
	assert_true(ice_selected(&N.b, 1, &s) && s.remote.family == AF_INET6);
}

static unsigned searched;

static bool count_v6(struct net *n, struct ice_agent *from, struct net_flight *f)
{
	searched += from == &n->b && f->dst.family == AF_INET6;
	return false;
}

/* A peer that answers seldom makes us check its candidates no more often than every two minutes. */
static void a_search_is_rare(void **state)
{
	(void)state;
	begin("192.0.2.1:5000 [2001:db8::1]:5000", "192.0.2.2:6000 [2001:db8::2]:6000");
	net_pass(&N, 10000 * NET_MS);
	N.route = count_v6;
	searched = 0;
	for (int i = 0; i < 200; i++) {
		N.a.selected[0].ok_ns = N.now_ns - 13000 * NET_MS;
		N.b.selected[0].ok_ns = N.now_ns - 13000 * NET_MS;
		net_pass(&N, 1000 * NET_MS);
		if (i == 100)
			assert_int_equal(searched, ICE_TRIES); /* one transaction */
	}
	assert_int_equal(searched, 2 * ICE_TRIES);
}

static void restart_keeps_the_old_pair(void **state)
{
	struct ice_pair_selected s;
	struct str ufrag;
	char before[ICE_UFRAG_LEN];

	(void)state;
	begin("192.0.2.1:5000", "192.0.2.2:6000");
	ufrag = ice_ufrag(&N.a);
	memcpy(before, ufrag.s, sizeof(before));
	ice_restart(&N.a, N.now_ns);
	assert_memory_not_equal(ice_ufrag(&N.a).s, before, sizeof(before));
	assert_int_equal(ice_state(&N.a), ICE_NEW);
	/* The answer takes a minute: consent goes on under the old credentials, on both sides. */
	net_pass(&N, 60000 * NET_MS);
	assert_true(ice_selected(&N.a, 1, &s) && s.nominated);
	assert_int_equal(ice_state(&N.b), ICE_COMPLETED);
	ice_restart(&N.b, N.now_ns);
	net_tell(&N, &N.b, &N.a, false);
	net_pass(&N, 20000 * NET_MS); /* b checks; a cannot yet */
	assert_true(ice_selected(&N.a, 1, &s) && ice_selected(&N.b, 1, &s));
	net_tell(&N, &N.a, &N.b, false);
	assert_true(net_run(&N, ICE_COMPLETED, 1000 * NET_MS));
	assert_true(net_agree(&N, 1) && !N.a.selected[0].old && !N.b.selected[0].old);
	assert_null(N.a.old); /* wiped */
	net_pass(&N, 60000 * NET_MS);
	assert_int_equal(ice_state(&N.a), ICE_COMPLETED);
}

static void restart_moves_to_another_address(void **state)
{
	struct ice_pair_selected s;

	(void)state;
	begin("192.0.2.1:5000", "192.0.2.2:6000");
	net_agent(&N.b, "192.0.2.99:7000", false, 3); /* the peer comes from elsewhere */
	ice_restart(&N.a, N.now_ns);
	net_tell(&N, &N.b, &N.a, false);
	net_tell(&N, &N.a, &N.b, false);
	assert_true(net_run(&N, ICE_COMPLETED, 1000 * NET_MS));
	assert_true(net_agree(&N, 1) && ice_selected(&N.a, 1, &s));
	assert_true(endpoint_eq(&s.remote, &N.b.local[0].addr));
}

static void peer_changes_without_our_restart(void **state)
{
	(void)state;
	begin("192.0.2.1:5000", "192.0.2.2:6000");
	net_agent(&N.b, "192.0.2.99:7000", false, 3); /* a second answer, of another branch */
	net_tell(&N, &N.b, &N.a, false);
	net_pass(&N, 300 * NET_MS);
	net_tell(&N, &N.a, &N.b, false);
	assert_true(net_run(&N, ICE_COMPLETED, 1000 * NET_MS));
	assert_true(net_agree(&N, 1));
}

static void same_credentials_are_no_restart(void **state)
{
	uint32_t changes;

	(void)state;
	begin("192.0.2.1:5000", "192.0.2.2:6000");
	changes = ice_changes(&N.a);
	net_tell(&N, &N.a, &N.b, false);
	assert_true(ice_state(&N.a) == ICE_COMPLETED && ice_changes(&N.a) == changes);
}

static void restored_agent_goes_on(void **state)
{
	static struct ice_saved saved, again;
	uint8_t seed[ICE_SEED_LEN] = {77};
	struct ice_pair_selected s;
	uint32_t changes;

	(void)state;
	begin("192.0.2.1:5000 192.0.2.1:5001/2", "192.0.2.2:6000 192.0.2.2:6001/2");
	changes = ice_changes(&N.b);
	net_save(&N.a, &saved);
	ice_fini(&N.a); /* killed; the peer goes on for 20 s */
	net_pass(&N, 20000 * NET_MS);
	assert_int_equal(ice_restore(&N.a, &saved, seed, N.now_ns), 0);
	assert_int_equal(ice_state(&N.a), ICE_COMPLETED);
	net_save(&N.a, &again);
	assert_memory_equal(&saved, &again, sizeof(saved));
	assert_true(ice_selected(&N.a, 1, &s) && ice_selected(&N.a, 2, &s) && s.nominated);
	net_pass(&N, 120000 * NET_MS);
	assert_int_equal(ice_state(&N.a), ICE_COMPLETED);
	assert_int_equal(ice_state(&N.b), ICE_COMPLETED);
	assert_true(ice_changes(&N.b) == changes); /* the peer noticed nothing */
}

static void restored_in_the_middle_of_checks(void **state)
{
	static struct ice_saved saved;
	uint8_t seed[ICE_SEED_LEN] = {78};

	(void)state;
	net_clear(&N);
	net_agent(&N.a, "192.0.2.1:5000", true, 1);
	net_agent(&N.b, "192.0.2.2:6000", false, 2);
	net_tell(&N, &N.b, &N.a, false);
	net_tell(&N, &N.a, &N.b, false);
	net_save(&N.a, &saved);
	ice_fini(&N.a);
	assert_int_equal(ice_restore(&N.a, &saved, seed, 0), 0);
	assert_true(net_run(&N, ICE_COMPLETED, 5000 * NET_MS));
	saved.selected[0].set = 1;
	saved.selected[0].local = 200;
	ice_fini(&N.a);
	assert_int_equal(ice_restore(&N.a, &saved, seed, 0), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(consent_goes_on),
		cmocka_unit_test(consent_is_lost_after_30_seconds),
		cmocka_unit_test(lite_loses_consent_when_checks_stop),
		cmocka_unit_test(lite_keeps_a_peer_without_consent),
		cmocka_unit_test(another_pair_takes_over),
		cmocka_unit_test(the_other_family_takes_over),
		cmocka_unit_test(a_search_is_rare),
		cmocka_unit_test(the_last_of_many_nominations_counts),
		cmocka_unit_test(a_peer_that_moves_to_and_fro_is_followed_slowly),
		cmocka_unit_test(restart_keeps_the_old_pair),
		cmocka_unit_test(restart_moves_to_another_address),
		cmocka_unit_test(peer_changes_without_our_restart),
		cmocka_unit_test(same_credentials_are_no_restart),
		cmocka_unit_test(restored_agent_goes_on),
		cmocka_unit_test(restored_in_the_middle_of_checks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
