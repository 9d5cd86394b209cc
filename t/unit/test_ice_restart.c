/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A peer like Chromium restarts ICE: it checks from a new port with our old name and its new one,
 * before it has our answer. It keeps to these names, and refuses checks with another name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "ice_net.h"

#define NEW_UFRAG STR("cnKS")
#define NEW_PWD   STR("the new password of Chromium")

static struct net N; /* a is ours, b the peer of before */

struct chromium {
	struct endpoint at;
	char ufrag[ICE_UFRAG_LEN], pwd[ICE_PWD_LEN]; /* ours, as it uses them */
	unsigned answered, refused; /* requests of ours; refused: with another name of ours */
	unsigned succeeded;         /* its own, with a response that it believes */
	uint8_t serial;
};

static void know(struct chromium *c)
{
	memcpy(c->ufrag, ice_ufrag(&N.a).s, ICE_UFRAG_LEN);
	memcpy(c->pwd, ice_pwd(&N.a).s, ICE_PWD_LEN);
}

static struct chromium begin(bool lite)
{
	struct chromium c = {.at = net_at("192.0.2.2:7000")};

	net_clear(&N);
	if (lite)
		net_lite(&N.a, "192.0.2.1:5000", false, 1);
	else
		net_agent(&N.a, "192.0.2.1:5000", false, 1);
	net_agent(&N.b, "192.0.2.2:6000", true, 2);
	net_tell(&N, &N.a, &N.b, false);
	net_tell(&N, &N.b, &N.a, false);
	assert_true(net_run(&N, ICE_COMPLETED, 5000 * NET_MS));
	know(&c);
	return c;
}

static struct str name_of(const struct chromium *c)
{
	return (struct str){c->ufrag, ICE_UFRAG_LEN};
}

static void respond(struct chromium *c, const struct stun_msg *m)
{
	struct str local = m->username, remote = str_cut(&local, ':');
	bool known = str_eq(local, name_of(c)) && str_eq(remote, NEW_UFRAG);
	uint8_t p[ICE_PACKET_MAX];
	struct stun_writer w = {.p = p, .cap = sizeof(p)};
	struct stun_key key;
	size_t len;

	stun_key_init(&key, NEW_PWD);
	stun_write_head(&w, known ? STUN_SUCCESS : STUN_ERROR, m->txid);
	if (known)
		stun_write_mapped(&w, &N.a.local[0].addr);
	else
		stun_write_error(&w, STUN_UNAUTHENTICATED);
	len = stun_write_end(&w, &key);
	known ? c->answered++ : c->refused++;
	ice_take(&N.a, 0, &c->at, p, len, N.now_ns);
}

/* Delivers our packets to Chromium. Packets to other addresses are lost. */
static void receive(struct chromium *c)
{
	struct ice_out o;
	struct stun_msg m;
	struct stun_key key;

	while (ice_next(&N.a, &o)) {
		if (!endpoint_eq(&o.dst, &c->at))
			continue;
		assert_int_equal(stun_parse(&m, o.packet, o.len), 0);
		stun_key_init(
			&key, m.cls == STUN_REQUEST ? NEW_PWD : (struct str){c->pwd, ICE_PWD_LEN});
		if (m.cls == STUN_REQUEST && stun_verify(&m, o.packet, &key))
			respond(c, &m);
		else if (m.cls == STUN_SUCCESS && stun_verify(&m, o.packet, &key))
			c->succeeded++;
	}
}

static void check_as(struct chromium *c, struct str ufrag, struct str pwd)
{
	uint8_t p[ICE_PACKET_MAX], txid[STUN_TXID_LEN] = {++c->serial};
	struct stun_writer w = {.p = p, .cap = sizeof(p)};
	struct stun_key key;
	size_t len;

	stun_key_init(&key, pwd);
	stun_write_head(&w, STUN_REQUEST, txid);
	stun_write_username(&w, name_of(c), ufrag);
	stun_write_priority(&w, 0x6e0001ff);
	stun_write_role(&w, STUN_ROLE_CONTROLLING, 1);
	stun_write_use_candidate(&w);
	len = stun_write_end(&w, &key);
	ice_take(&N.a, 0, &c->at, p, len, N.now_ns);
	receive(c);
}

static void check(struct chromium *c)
{
	check_as(c, NEW_UFRAG, (struct str){c->pwd, ICE_PWD_LEN});
}

/* Until this time has passed; Chromium answers, and checks every 2.5 s if it does. */
static void pass(struct chromium *c, uint64_t ns, bool checks)
{
	uint64_t end = N.now_ns + ns, check_ns = N.now_ns;

	while (N.now_ns < end) {
		uint64_t next = ice_deadline(&N.a);

		if (checks && check_ns < next)
			next = check_ns;
		N.now_ns = next < end ? next > N.now_ns ? next : N.now_ns : end;
		ice_tick(&N.a, N.now_ns);
		receive(c);
		if (checks && check_ns <= N.now_ns) {
			check(c);
			check_ns += 2500 * NET_MS;
		}
	}
}

/* Its offer: the only candidate is a name of mDNS, which nobody resolves. */
static void take_offer(void)
{
	struct ice_remote r = {.ufrag = NEW_UFRAG, .pwd = NEW_PWD};

	assert_int_equal(ice_set_remote(&N.a, &r, N.now_ns), 0);
}

static void assert_moved(const struct chromium *c)
{
	struct ice_pair_selected s;

	assert_int_equal(ice_state(&N.a), ICE_COMPLETED);
	assert_true(ice_selected(&N.a, 1, &s) && s.nominated && endpoint_eq(&s.remote, &c->at));
	assert_true(ice_is_valid_source(&N.a, 0, &c->at));
	assert_int_equal(c->refused, 0);
}

static void old_name_before_and_after_the_answer(void **state)
{
	struct chromium c = begin(false);

	(void)state;
	ice_restart(&N.a, N.now_ns);
	check(&c);
	assert_int_equal(c.succeeded, 1);
	take_offer();
	pass(&c, 1000 * NET_MS, true);
	assert_moved(&c);
	pass(&c, 120000 * NET_MS, true); /* consent, both ways */
	assert_moved(&c);
	assert_int_equal(c.succeeded, c.serial);
	assert_true(c.answered > 20);
}

/* Its next check comes after 2.5 s: media would wait for it. */
static void checks_from_before_the_offer_count(void **state)
{
	struct chromium c = begin(false);

	(void)state;
	check(&c);
	ice_restart(&N.a, N.now_ns);
	take_offer();
	pass(&c, 1000 * NET_MS, false);
	assert_moved(&c);
}

static void an_unanswered_restart_changes_nothing(void **state)
{
	struct chromium c = begin(false);

	(void)state;
	check(&c);
	ice_restart(&N.a, N.now_ns);
	ice_restart(&N.a, N.now_ns);
	take_offer();
	pass(&c, 1000 * NET_MS, false);
	assert_moved(&c);
}

static void lite_agents_take_the_old_name_too(void **state)
{
	struct chromium c = begin(true);

	(void)state;
	ice_restart(&N.a, N.now_ns);
	take_offer();
	check(&c);
	assert_moved(&c);
	pass(&c, 120000 * NET_MS, true);
	assert_moved(&c);
	assert_int_equal(c.succeeded, c.serial);
}

static void the_last_name_counts(void **state)
{
	struct chromium c = begin(false);

	(void)state;
	ice_restart(&N.a, N.now_ns);
	check(&c);
	take_offer();
	pass(&c, 1000 * NET_MS, false);
	assert_moved(&c);
	know(&c); /* it makes a new pair of the same addresses */
	pass(&c, 120000 * NET_MS, true);
	assert_moved(&c);
	assert_int_equal(c.succeeded, c.serial);
}

static void a_second_restart_ends_the_name(void **state)
{
	struct chromium c = begin(false);
	unsigned before;

	(void)state;
	ice_restart(&N.a, N.now_ns);
	check(&c);
	take_offer();
	pass(&c, 1000 * NET_MS, true);
	assert_moved(&c);
	before = c.succeeded;
	ice_restart(&N.a, N.now_ns);
	check(&c); /* the selected pair goes on */
	assert_int_equal(c.succeeded, before + 1);
	check_as(&c, STR("nextname"), (struct str){c.pwd, ICE_PWD_LEN});
	assert_int_equal(c.succeeded, before + 1); /* but it begins nothing */
	assert_int_equal(N.a.early_count, 0);
}

static void the_old_name_needs_its_password_and_the_new_peer(void **state)
{
	struct chromium c = begin(false);
	struct ice_pair_selected s;

	(void)state;
	ice_restart(&N.a, N.now_ns);
	check_as(&c, NEW_UFRAG, STR("wrong password of 22 b"));
	check_as(&c, NEW_UFRAG, ice_pwd(&N.a));
	take_offer();
	check_as(&c, NEW_UFRAG, STR("wrong password of 22 b"));
	check_as(&c, NEW_UFRAG, ice_pwd(&N.a));
	assert_int_equal(c.succeeded, 0);
	/* Answered like a check of the old pair, which is still in use. */
	check_as(&c, STR("else"), (struct str){c.pwd, ICE_PWD_LEN});
	assert_int_equal(c.succeeded, 1);
	pass(&c, 1000 * NET_MS, false);
	assert_int_equal(ice_counter(&N.a, ICE_COUNT_UNAUTHENTIC), 4);
	assert_int_equal(c.answered, 0);
	assert_true(ice_selected(&N.a, 1, &s) && endpoint_eq(&s.remote, &N.b.local[0].addr));
	ice_forget_peer(&N.a, N.now_ns); /* another terminal was not told the old name */
	check(&c);
	assert_int_equal(c.succeeded, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(old_name_before_and_after_the_answer),
		cmocka_unit_test(checks_from_before_the_offer_count),
		cmocka_unit_test(an_unanswered_restart_changes_nothing),
		cmocka_unit_test(lite_agents_take_the_old_name_too),
		cmocka_unit_test(the_last_name_counts),
		cmocka_unit_test(a_second_restart_ends_the_name),
		cmocka_unit_test(the_old_name_needs_its_password_and_the_new_peer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
