/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ZRTP of two sessions, with a network in memory between them and a clock of the test's own: keys
 * that fit, who may take part, another exchange, a restored one, a terminal without ZRTP. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ice_net.h"
#include "keying/zrtp_self.h"
#include "side/session.h"

#define MS_NS   1000000ull
#define GOT_MAX 16u

struct end {
	struct session *s;
	struct session_env env;
	struct session_order order;
	struct endpoint at; /* where it sends from */
	struct session_event got[GOT_MAX];
	uint32_t n;
	bool mute; /* nothing of it arrives */
};

static struct rig {
	struct end e[2];
	uint64_t now_ns;
	uint32_t sent[2];
	bool believed;
} rig;

static void hear_hash(int who)
{
	struct session_zrtp *z = &rig.e[who].order.cfg.zrtp;

	z->bound = true;
	assert_int_equal(zrtp_self_hash(z->hash,
				 &(struct zrtp_self){rig.e[!who].order.cfg.zrtp.seed,
					 rig.e[!who].order.cfg.zrtp.zid}),
		0);
}

static void start(void)
{
	static const char *const at[2] = {"192.0.2.1:4000", "198.51.100.2:5000"};

	memset(&rig, 0, sizeof(rig));
	rig.now_ns = 100000 * MS_NS;
	for (int i = 0; i < 2; i++) {
		struct end *e = &rig.e[i];

		assert_int_equal(dtls_cert_create(&e->order.cert, 1700000000, 86400), 0);
		assert_int_equal(session_create(&e->s, &e->env), 0);
		e->at = net_at(at[i]);
		e->order.cfg.remote[0] = net_at(at[!i]);
		e->order.cfg.zrtp = (struct session_zrtp){.on = true, .exchange = 1};
		memset(e->order.cfg.zrtp.seed, 7 + i, SESSION_ZRTP_SEED);
	}
	hear_hash(0);
	hear_hash(1);
}

static void end(void)
{
	for (int i = 0; i < 2; i++) {
		session_destroy(rig.e[i].s);
		dtls_cert_put(rig.e[i].order.cert);
	}
}

static void set(int who)
{
	assert_int_equal(session_set(rig.e[who].s, &rig.e[who].order, rig.now_ns), 0);
}

static void deliver(int to, const struct session_out *o, const struct endpoint *src)
{
	struct session_in in = {.rtcp = o->rtcp,
		.zrtp = true,
		.src = src,
		.p = o->packet,
		.len = o->len,
		.believed = rig.believed};

	session_take(rig.e[to].s, &in, rig.now_ns);
}

static bool exchange_packets(void)
{
	struct session_out o;
	bool any = false;

	for (int i = 0; i < 2; i++) {
		struct end *e = &rig.e[i];

		while (session_next(e->s, &o)) {
			assert_true(o.zrtp && !o.rtcp);
			any = true;
			rig.sent[i]++;
			if (!e->mute)
				deliver(!i, &o, &e->at);
		}
		while (e->n < GOT_MAX && session_event(e->s, &e->got[e->n]))
			e->n++;
	}
	return any;
}

/* Time passes up to ms, in the steps that the sessions ask for. */
static void run(uint64_t ms)
{
	uint64_t until = rig.now_ns + ms * MS_NS;

	for (;;) {
		uint64_t at = until;

		while (exchange_packets())
			;
		for (int i = 0; i < 2; i++)
			if (session_deadline(rig.e[i].s) < at)
				at = session_deadline(rig.e[i].s);
		if (rig.now_ns >= until)
			return;
		rig.now_ns = at > rig.now_ns ? at : rig.now_ns + MS_NS;
		for (int i = 0; i < 2; i++)
			session_tick(rig.e[i].s, rig.now_ns);
	}
}

static const struct session_event *got(int who, enum session_event_kind kind)
{
	for (uint32_t i = rig.e[who].n; i-- > 0;)
		if (rig.e[who].got[i].kind == kind)
			return &rig.e[who].got[i];
	return NULL;
}

static void have_fitting_keys(uint32_t exchange)
{
	const struct session_event *a = got(0, SESSION_KEYS), *b = got(1, SESSION_KEYS);

	assert_non_null(a);
	assert_non_null(b);
	assert_true(a->zrtp && b->zrtp && !a->rtcp);
	assert_int_equal(a->association, exchange);
	assert_memory_equal(a->rx.key, b->tx.key, sizeof(a->rx.key));
	assert_memory_equal(a->tx.key, b->rx.key, sizeof(a->rx.key));
	assert_int_not_equal(a->rx.suite, SUITE_PLAIN);
	assert_string_equal(a->said.sas, b->said.sas);
	assert_true(a->said.sas[0]);
	assert_false(a->said.verified);
}

/* --- Tests ------------------------------------------------------------------------------------ */

static void two_sessions_agree(void **state)
{
	(void)state;
	start();
	set(0);
	set(1);
	run(3000);
	have_fitting_keys(1);
	assert_int_equal(rig.e[0].n, 1);
	assert_int_equal(rig.e[0].env.total.zrtp[ZRTP_FAIL_NONE], 1);
	assert_int_equal(rig.e[0].env.total.zrtp_absent, 0);
	/* The same order again changes nothing. */
	set(0);
	run(3000);
	assert_int_equal(rig.e[0].n, 1);
	end();
}

/* Another number is another exchange, with another Hello. */
static void another_exchange_brings_other_keys(void **state)
{
	uint8_t first[SUITE_MAX_KEY_LEN];

	(void)state;
	start();
	set(0);
	set(1);
	run(3000);
	memcpy(first, got(0, SESSION_KEYS)->rx.key, sizeof(first));
	for (int i = 0; i < 2; i++) {
		rig.e[i].order.cfg.zrtp.exchange = 2;
		memset(rig.e[i].order.cfg.zrtp.seed, 17 + i, SESSION_ZRTP_SEED);
	}
	hear_hash(0);
	hear_hash(1);
	set(0);
	set(1);
	run(3000);
	have_fitting_keys(2);
	assert_memory_not_equal(got(0, SESSION_KEYS)->rx.key, first, sizeof(first));
	end();
}

/* A terminal behind address translation: its Hello is the announced one, and says where it is. */
static void an_announced_hello_shows_where_the_terminal_is(void **state)
{
	(void)state;
	for (int bound = 0; bound < 2; bound++) {
		start();
		rig.e[1].at = net_at("203.0.113.9:1234");
		rig.e[0].order.cfg.zrtp.bound = bound;
		set(0);
		set(1);
		run(3000);
		assert_int_equal(got(0, SESSION_KEYS) != NULL, bound);
		end();
	}
}

/* Not bound to SDP, and not from the signalled address: the source of authentic media may. */
static void a_believed_source_may_take_part(void **state)
{
	(void)state;
	start();
	rig.e[1].at = net_at("203.0.113.9:1234");
	rig.e[0].order.cfg.zrtp.bound = false;
	rig.believed = true;
	set(0);
	set(1);
	run(3000);
	have_fitting_keys(1);
	end();
}

static void another_hello_than_announced_begins_nothing(void **state)
{
	(void)state;
	start();
	rig.e[0].order.cfg.zrtp.hash[3] ^= 1;
	set(0);
	set(1);
	run(30000);
	assert_null(got(0, SESSION_KEYS));
	assert_null(got(1, SESSION_KEYS));
	end();
}

/* It is told once, and a terminal that comes late is served all the same. */
static void a_terminal_without_zrtp_is_reported(void **state)
{
	(void)state;
	start();
	rig.e[1].mute = true;
	set(0);
	set(1);
	run(30000);
	assert_non_null(got(0, SESSION_ABSENT));
	assert_int_equal(rig.e[0].n, 1);
	assert_true(rig.sent[0] <= 25);
	assert_int_equal(rig.e[0].env.total.zrtp_absent, 1);
	end();
}

/* No second exchange after a restart: the terminal would not take part. */
static void a_restored_exchange_is_over(void **state)
{
	(void)state;
	start();
	rig.e[0].order.cfg.zrtp.established = true;
	set(0);
	set(1);
	run(10000);
	assert_int_equal(rig.sent[0], 0);
	assert_null(got(0, SESSION_KEYS));
	/* Signalling asks for another one. */
	rig.e[0].order.cfg.zrtp.established = false;
	set(0);
	assert_int_equal(rig.sent[0], 0);
	for (int i = 0; i < 2; i++)
		rig.e[i].order.cfg.zrtp.exchange = 2;
	set(0);
	set(1);
	run(3000);
	have_fitting_keys(2);
	end();
}

/* Nothing is sent before signalling says where to. */
static void without_an_address_nothing_leaves(void **state)
{
	struct endpoint to;

	(void)state;
	start();
	to = rig.e[0].order.cfg.remote[0];
	rig.e[0].order.cfg.remote[0] = (struct endpoint){0};
	set(0);
	run(1000);
	assert_int_equal(rig.sent[0], 0);
	rig.e[0].order.cfg.remote[0] = to;
	set(0);
	set(1);
	run(3000);
	have_fitting_keys(1);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_sessions_agree),
		cmocka_unit_test(another_exchange_brings_other_keys),
		cmocka_unit_test(an_announced_hello_shows_where_the_terminal_is),
		cmocka_unit_test(a_believed_source_may_take_part),
		cmocka_unit_test(another_hello_than_announced_begins_nothing),
		cmocka_unit_test(a_terminal_without_zrtp_is_reported),
		cmocka_unit_test(a_restored_exchange_is_over),
		cmocka_unit_test(without_an_address_nothing_leaves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
