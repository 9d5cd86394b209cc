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
#include "keying/zrtp_wire.h"
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
	bool passive; /* the terminal never commits */
} rig;

static void hear_hash(int who)
{
	struct session_zrtp *z = &rig.e[who].order.cfg.zrtp;

	z->bound = true;
	assert_int_equal(zrtp_self_hash(z->hash,
				 &(struct zrtp_self){.seed = rig.e[!who].order.cfg.zrtp.seed,
					 .zid = rig.e[!who].order.cfg.zrtp.zid,
					 .preshared = rig.e[!who].order.cfg.zrtp.preshared}),
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

/* The announced Hello tells whether preshared mode is offered. The daemon before, or another node,
 * may have announced it with another option. */
static void an_option_changes_no_announced_hello(void **state)
{
	(void)state;
	for (int how = 0; how < 4; how++) {
		const struct zrtp_store_config c = {.max = 8, .preshared = how & 1};
		struct session_zrtp *z;

		start();
		assert_int_equal(zrtp_store_create(&rig.e[0].env.store, &c), 0);
		z = &rig.e[0].order.cfg.zrtp;
		memcpy(z->zid, zrtp_store_zid(rig.e[0].env.store), sizeof(z->zid));
		z->preshared = how & 2;
		hear_hash(1);
		set(0);
		set(1);
		run(3000);
		have_fitting_keys(1);
		end();
		zrtp_store_destroy(rig.e[0].env.store);
	}
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

/* --- Another stream in mid-call --------------------------------------------------------------- */

/* A terminal's engine without a session: its packets go through end 1 of the rig. */
static void begin_stream(struct zrtp **z, const struct zrtp *first, uint8_t number)
{
	uint8_t seed[ZRTP_SEED];
	const struct zrtp_self self = {.seed = seed, .zid = rig.e[1].order.cfg.zrtp.zid};
	struct zrtp_prefs prefs;
	struct zrtp_config c;

	memset(seed, number, sizeof(seed));
	zrtp_self_config(&c, &prefs, &self);
	c.passive = rig.passive;
	assert_int_equal(zrtp_create(z, &c), 0);
	if (first)
		assert_int_equal(zrtp_multi(*z, first), 0);
	zrtp_start(*z, rig.now_ns);
}

static bool is_hello_ack(const struct session_out *o)
{
	return memcmp(o->packet + 16, "HelloACK", 8) == 0;
}

/* Packets and time between session 0 and this engine. lazy: it never commits, because it gets no
 * HelloACK. */
static void run_as(struct zrtp *z, uint64_t ms, bool lazy)
{
	uint64_t until = rig.now_ns + ms * MS_NS;
	struct end *e = &rig.e[0];

	for (; rig.now_ns < until; rig.now_ns += 10 * MS_NS) {
		struct session_out o;
		int n;

		for (int turn = 0; turn < 20; turn++) {
			while ((n = zrtp_next(z, o.packet, sizeof(o.packet))) > 0) {
				o.rtcp = false;
				o.len = (uint16_t)n;
				deliver(0, &o, &rig.e[1].at);
			}
			while (session_next(e->s, &o))
				if (!lazy || !is_hello_ack(&o))
					(void)zrtp_take(z, o.packet, o.len, rig.now_ns);
			while (e->n < GOT_MAX && session_event(e->s, &e->got[e->n]))
				e->n++;
		}
		session_tick(e->s, rig.now_ns);
		zrtp_tick(z, rig.now_ns);
	}
}

static void run_with(struct zrtp *z, uint64_t ms)
{
	run_as(z, ms, false);
}

/* Session 0 and an engine of the test's own agree, as with a terminal. */
static struct zrtp *talk_as(bool goclear, bool passive)
{
	struct zrtp *z;

	start();
	rig.passive = passive;
	rig.e[0].order.cfg.zrtp.goclear = goclear;
	memset(rig.e[0].order.cfg.zrtp.zid, 0x31, ZRTP_ZID);
	memset(rig.e[1].order.cfg.zrtp.zid, 0x32, ZRTP_ZID);
	rig.e[0].order.cfg.zrtp.bound = false;
	set(0);
	begin_stream(&z, NULL, 0x41);
	run_with(z, 1000);
	assert_int_equal(zrtp_state(z), ZRTP_OPEN);
	assert_int_equal(rig.e[0].n, 1);
	return z;
}

static struct zrtp *talk(void)
{
	return talk_as(false, false);
}

static void fits(const struct session_event *e, const struct zrtp *z)
{
	struct srtp_master rx, tx;

	assert_int_equal(e->kind, SESSION_KEYS);
	assert_int_equal(zrtp_keys(z, &rx, &tx), 0);
	assert_memory_equal(e->rx.key, tx.key, sizeof(tx.key));
	assert_memory_equal(e->tx.key, rx.key, sizeof(rx.key));
}

static void a_stream_in_mid_call_has_keys_of_the_same_secret(void **state)
{
	struct zrtp *first = talk(), *z[3];

	(void)state;
	for (uint8_t i = 0; i < 3; i++) {
		begin_stream(&z[i], first, 0x51 + i);
		run_with(z[i], 2000);
		assert_int_equal(rig.e[0].n, 2u + i);
		fits(&rig.e[0].got[1 + i], z[i]);
		assert_memory_not_equal(rig.e[0].got[1 + i].rx.key, rig.e[0].got[i].rx.key, 16);
		assert_string_equal(rig.e[0].got[1 + i].said.sas, zrtp_sas(first));
		assert_int_equal(rig.e[0].got[1 + i].association, 1);
		assert_true(zrtp_is_multi(z[i]));
	}
	assert_int_equal(rig.e[0].env.total.zrtp[ZRTP_FAIL_NONE], 4);
	for (int i = 0; i < 3; i++)
		zrtp_destroy(z[i]);
	zrtp_destroy(first);
	end();
}

/* Session 0 in another process, with what the last event saved. */
static void restart(void)
{
	struct end *e = &rig.e[0];
	const struct session_event *last = &e->got[e->n - 1];

	e->order.cfg.zrtp.established = true;
	e->order.cfg.zrtp_past.secret = last->secret;
	e->order.cfg.zrtp_past.later = last->later;
	e->order.cfg.zrtp_past.said = e->got[0].said;
	session_destroy(e->s);
	assert_int_equal(session_create(&e->s, &e->env), 0);
	set(0);
}

static void a_stream_begins_after_a_restart(void **state)
{
	struct zrtp *first = talk(), *z;

	(void)state;
	restart();
	for (uint8_t i = 0; i < 2; i++) {
		begin_stream(&z, first, 0x51 + i);
		run_with(z, 2000);
		assert_int_equal(rig.e[0].n, 2u + i);
		fits(&rig.e[0].got[1 + i], z);
		assert_string_equal(rig.e[0].got[1 + i].said.sas, zrtp_sas(first));
		assert_memory_equal(&rig.e[0].got[1 + i].secret, &rig.e[0].got[0].secret,
			sizeof(struct zrtp_secret));
		zrtp_destroy(z);
	}
	zrtp_destroy(first);
	end();
}

/* GoClear in the first stream, or in one that was begun in mid-call. It is reported once, whatever
 * follows it, and another stream uses the secret that is left. */
static void goclear_after_a_restart_ends_the_stream_in_use(void **state)
{
	(void)state;
	for (int later = 0; later < 2; later++) {
		struct zrtp *first = talk_as(true, false), *z = NULL, *in_use = first;
		uint32_t n = 1 + (uint32_t)later;

		if (later) {
			begin_stream(&z, first, 0x51);
			run_with(z, 2000);
			in_use = z;
		}
		assert_int_equal(rig.e[0].n, n);
		assert_int_equal(rig.e[0].got[n - 1].later.known, later);
		restart();
		if (later) {
			/* The keys of the first stream are not in use. */
			assert_int_equal(zrtp_clear(first, rig.now_ns), 0);
			run_with(first, 1000);
			assert_int_equal(rig.e[0].n, n);
		}
		assert_int_equal(zrtp_clear(in_use, rig.now_ns), 0);
		run_with(in_use, 1000);
		assert_int_equal(zrtp_deadline(in_use), UINT64_MAX); /* acknowledged */
		assert_int_equal(rig.e[0].n, n + 1);
		assert_int_equal(rig.e[0].got[n].kind, SESSION_CLEAR);
		assert_true((later ? &rig.e[0].got[n].later : &rig.e[0].got[n].secret)->cleared);
		restart();
		run_with(in_use, 1000);
		assert_int_equal(rig.e[0].n, n + 1);
		zrtp_destroy(z);
		begin_stream(&z, first, 0x61);
		run_with(z, 2000);
		assert_int_equal(rig.e[0].n, n + 2);
		fits(&rig.e[0].got[n + 1], z);
		zrtp_destroy(z);
		zrtp_destroy(first);
		end();
	}
}

/* Its ZID is known to anybody on the path. */
static void nobody_else_can_begin_a_stream_in_mid_call(void **state)
{
	struct zrtp *first = talk(), *stranger, *z;

	(void)state;
	begin_stream(&stranger, NULL, 0x61);
	run_with(stranger, 20000);
	assert_int_not_equal(zrtp_state(stranger), ZRTP_OPEN);
	assert_int_equal(rig.e[0].n, 1);
	/* A terminal comes after that. */
	begin_stream(&z, first, 0x62);
	run_with(z, 2000);
	assert_int_equal(rig.e[0].n, 2);
	fits(&rig.e[0].got[1], z);
	zrtp_destroy(z);
	zrtp_destroy(stranger);
	zrtp_destroy(first);
	end();
}

static void a_flood_of_hellos_in_mid_call_causes_few_packets(void **state)
{
	struct zrtp *first = talk();
	uint64_t until = rig.now_ns + 3000 * MS_NS;
	uint32_t sent = 0;

	(void)state;
	for (uint8_t i = 0; rig.now_ns < until; rig.now_ns += MS_NS, i++) {
		struct zrtp *z;
		struct session_out o;

		begin_stream(&z, NULL, i);
		o = (struct session_out){.len = 0};
		o.len = (uint16_t)zrtp_next(z, o.packet, sizeof(o.packet));
		deliver(0, &o, &rig.e[1].at);
		session_tick(rig.e[0].s, rig.now_ns);
		while (session_next(rig.e[0].s, &o))
			sent += !is_hello_ack(&o);
		zrtp_destroy(z);
	}
	/* Our own Hellos alone */
	assert_true(sent < 40);
	assert_int_equal(rig.e[0].env.zrtp_counts.pairs, 1);
	zrtp_destroy(first);
	end();
}

/* --- A slow network with a stranger in it --- */

enum { FLYING = 256 };
struct flying {
	struct session_out o;
	uint64_t at_ns;
};
static struct air {
	struct flying to[2][FLYING]; /* the session, the terminal */
	uint32_t first[2], n[2];
} air;

static void fly(int to, const struct session_out *o, uint64_t at_ns)
{
	if (air.n[to] - air.first[to] < FLYING)
		air.to[to][air.n[to]++ % FLYING] = (struct flying){*o, at_ns};
}

static const struct session_out *lands(int to)
{
	const struct flying *f = &air.to[to][air.first[to] % FLYING];

	if (air.first[to] == air.n[to] || f->at_ns > rig.now_ns)
		return NULL;
	air.first[to]++;
	return &f->o;
}

/* A stranger's packets, from the terminal's address and with its ZID: another Hello, and a HelloACK
 * as for ours. */
static void forge(uint8_t number, bool ack)
{
	struct session_out o = {0};
	struct zrtp *z;

	begin_stream(&z, NULL, number);
	o.len = (uint16_t)zrtp_next(z, o.packet, sizeof(o.packet));
	deliver(0, &o, &rig.e[1].at);
	if (ack) {
		/* The answer to any Hello. */
		(void)zrtp_take(z, o.packet, o.len, rig.now_ns);
		while (session_next(rig.e[0].s, &o)) {
			(void)zrtp_take(z, o.packet, o.len, rig.now_ns);
			fly(1, &o, rig.now_ns + 250 * MS_NS);
		}
		for (int n; (n = zrtp_next(z, o.packet, sizeof(o.packet))) > 0;) {
			o.len = (uint16_t)n;
			if (is_hello_ack(&o))
				deliver(0, &o, &rig.e[1].at);
		}
	}
	zrtp_destroy(z);
}

/* One-way delay 250 ms, so that an exchange takes longer than a second. */
static void run_slowly(struct zrtp *z, uint64_t ms, uint64_t forged_at_ms, bool ack)
{
	uint64_t began = rig.now_ns, next = began + forged_at_ms * MS_NS;
	uint8_t number = 0x80;

	memset(&air, 0, sizeof(air));
	for (; rig.now_ns < began + ms * MS_NS; rig.now_ns += 10 * MS_NS) {
		const struct session_out *in;
		struct end *e = &rig.e[0];
		struct session_out o;
		int n;

		if (rig.now_ns >= next) {
			forge(number++, ack);
			next += 1000 * MS_NS;
		}
		while ((n = zrtp_next(z, o.packet, sizeof(o.packet))) > 0) {
			o.rtcp = false;
			o.len = (uint16_t)n;
			fly(0, &o, rig.now_ns + 250 * MS_NS);
		}
		while (session_next(e->s, &o))
			fly(1, &o, rig.now_ns + 250 * MS_NS);
		while ((in = lands(0)))
			deliver(0, in, &rig.e[1].at);
		while ((in = lands(1)))
			(void)zrtp_take(z, in->packet, in->len, rig.now_ns);
		while (e->n < GOT_MAX && session_event(e->s, &e->got[e->n]))
			e->n++;
		session_tick(e->s, rig.now_ns);
		zrtp_tick(z, rig.now_ns);
	}
}

/* A forged Hello each second, at any time between those of the terminal. */
static void a_forged_hello_a_second_does_not_keep_a_stream_out(void **state)
{
	(void)state;
	for (int ack = 0; ack < 2; ack++)
		for (uint64_t at = 0; at < 1000; at += 50) {
			struct zrtp *first = talk(), *z;

			/* The stranger was first, for a while. */
			for (uint8_t i = 0; i < at / 50; i++) {
				forge(0x60 + i, ack);
				run_with(first, 330);
			}
			begin_stream(&z, first, 0x51);
			run_slowly(z, 15000, at, ack);
			assert_int_equal(zrtp_state(z), ZRTP_OPEN);
			assert_int_equal(rig.e[0].n, 2);
			fits(&rig.e[0].got[1], z);
			zrtp_destroy(z);
			zrtp_destroy(first);
			end();
		}
}

/* The same, without taking what the session sends. */
static void forge_both(uint8_t number)
{
	struct session_out o = {0};
	struct zrtp_msg m;

	forge(number, false);
	zrtp_msg_begin(&m, ZRTP_M_HELLO_ACK);
	zrtp_msg_end(&m, 0);
	o.len = (uint16_t)zrtp_wrap(o.packet, &m, number, 1);
	deliver(0, &o, &rig.e[1].at);
}

/* It leaves the Commit to us. Strangers' Hellos and HelloACKs come before its own, and all the
 * time. */
static void a_passive_terminal_begins_a_stream_in_mid_call(void **state)
{
	struct zrtp *first = talk_as(false, true), *z;

	(void)state;
	for (uint8_t kind = 0; kind < 4; kind++) {
		bool strangers = kind > 0, ack = kind > 1, always = kind > 2;

		run_with(first, 1000); /* the pause after the last stream */
		for (uint8_t i = 0; strangers && i < 100; i++) {
			forge(i, ack);
			run_with(first, 10);
		}
		begin_stream(&z, first, 0xa1 + kind);
		for (uint8_t i = 0; i < 30; i++) {
			if (always && i % 2)
				forge_both(0x71 + i);
			run_with(z, 10);
		}
		assert_int_equal(zrtp_state(z), ZRTP_OPEN);
		assert_int_equal(rig.e[0].n, 2u + kind);
		fits(&rig.e[0].got[1 + kind], z);
		zrtp_destroy(z);
	}
	zrtp_destroy(first);
	end();
}

/* It does not commit, and does not say so by its P flag. A stranger's Hello comes before. */
static void a_lazy_terminal_begins_a_stream_in_mid_call(void **state)
{
	struct zrtp *first = talk(), *z;

	(void)state;
	for (uint8_t strangers = 0; strangers < 2; strangers++) {
		run_with(first, 1000);
		if (strangers)
			forge_both(0x61);
		begin_stream(&z, first, 0x51 + strangers);
		run_as(z, 1500, true);
		assert_int_equal(zrtp_state(z), ZRTP_OPEN);
		assert_int_equal(rig.e[0].n, 2u + strangers);
		fits(&rig.e[0].got[1 + strangers], z);
		zrtp_destroy(z);
	}
	zrtp_destroy(first);
	end();
}

/* Our Commit would end the repetitions of a terminal's Hello that was lost. */
static void strangers_make_us_commit_to_no_other_terminal(void **state)
{
	struct zrtp *first = talk();
	struct session_out o;

	(void)state;
	for (uint32_t i = 0; i < 500; i++, rig.now_ns += 10 * MS_NS) {
		forge_both((uint8_t)i);
		session_tick(rig.e[0].s, rig.now_ns);
		while (session_next(rig.e[0].s, &o))
			assert_memory_not_equal(o.packet + 16, "Commit  ", 8);
	}
	zrtp_destroy(first);
	end();
}

/* --- Packets of strangers, one by one --- */

/* Packets of the engine to the session, without its Hellos. */
static void send_but_hello(struct zrtp *z)
{
	struct session_out o = {0};

	for (int n; (n = zrtp_next(z, o.packet, sizeof(o.packet))) > 0;) {
		o.len = (uint16_t)n;
		if (memcmp(o.packet + 16, "Hello   ", 8) != 0)
			deliver(0, &o, &rig.e[1].at);
	}
}

static void take_events(void)
{
	struct end *e = &rig.e[0];

	while (e->n < GOT_MAX && session_event(e->s, &e->got[e->n]))
		e->n++;
}

/* The queue was full of forged packets. Our HelloACK for one of those ends the terminal's
 * repetitions, so its Hello never comes. */
static void a_stream_whose_hello_was_lost_has_keys(void **state)
{
	(void)state;
	for (int ack = 0; ack < 2; ack++) {
		struct zrtp *first = talk(), *z;
		uint64_t until;

		for (uint8_t i = 0; i < 10; i++) {
			forge(i, ack);
			run_with(first, 10);
		}
		begin_stream(&z, first, 0xa1);
		forge(0x70, false);
		for (until = rig.now_ns + 1000 * MS_NS; rig.now_ns < until; rig.now_ns += MS_NS) {
			struct session_out o;

			while (session_next(rig.e[0].s, &o))
				(void)zrtp_take(z, o.packet, o.len, rig.now_ns);
			send_but_hello(z);
			take_events();
			session_tick(rig.e[0].s, rig.now_ns);
			zrtp_tick(z, rig.now_ns);
		}
		assert_int_equal(zrtp_state(z), ZRTP_OPEN);
		assert_int_equal(rig.e[0].n, 2);
		fits(&rig.e[0].got[1], z);
		zrtp_destroy(z);
		zrtp_destroy(first);
		end();
	}
}

/* A Commit with another nonce. Its MAC needs an image of the chain that nobody knows yet. */
static void forge_commit(const struct session_out *genuine, uint8_t number)
{
	struct session_out o = {0};
	struct zrtp_msg m = {.len = (uint16_t)(genuine->len - ZRTP_HEADER - ZRTP_CRC)};

	memcpy(m.b, genuine->packet + ZRTP_HEADER, m.len);
	m.b[m.len - ZRTP_MAC - 1] ^= number;
	o.len = (uint16_t)zrtp_wrap(o.packet, &m, number, 1);
	deliver(0, &o, &rig.e[1].at);
}

static uint32_t answers(struct session_out *last)
{
	struct session_out o;
	uint32_t n = 0;

	while (session_next(rig.e[0].s, &o))
		if (memcmp(o.packet + 16, "Confirm1", 8) == 0) {
			*last = o;
			n++;
		}
	return n;
}

/* The terminal's Commit, made after Hellos of both sides. */
static void get_commit(struct zrtp *z, struct session_out *out)
{
	struct session_out o = {0};
	int n;

	for (int turn = 0; turn < 3; turn++) {
		while ((n = zrtp_next(z, o.packet, sizeof(o.packet))) > 0) {
			o.len = (uint16_t)n;
			if (memcmp(o.packet + 16, "Commit  ", 8) == 0)
				*out = o;
			else
				deliver(0, &o, &rig.e[1].at);
		}
		while (session_next(rig.e[0].s, &o))
			(void)zrtp_take(z, o.packet, o.len, rig.now_ns);
	}
	assert_int_not_equal(out->len, 0);
}

/* Anybody can send one: few are answered, and the terminal's is, in any place among them. */
static void forged_commits_do_not_take_the_place_of_the_terminals(void **state)
{
	(void)state;
	for (uint8_t before = 0; before < 4; before++) {
		struct zrtp *first = talk(), *z;
		struct session_out commit = {0}, confirm = {0};
		uint32_t n = 0;

		begin_stream(&z, first, 0xa1);
		get_commit(z, &commit);
		for (uint8_t i = 1; i <= before; i++)
			forge_commit(&commit, i);
		assert_int_equal(answers(&confirm), before);
		deliver(0, &commit, &rig.e[1].at);
		assert_int_equal(answers(&confirm), 1);
		for (uint8_t i = 100; i < 200; i++)
			forge_commit(&commit, i);
		for (uint8_t i = 0; i < 4; i++) {
			struct session_out other;

			n += answers(&other);
		}
		assert_true(n <= 4);
		(void)zrtp_take(z, confirm.packet, confirm.len, rig.now_ns);
		run_with(z, 1000);
		assert_int_equal(zrtp_state(z), ZRTP_OPEN);
		assert_int_equal(rig.e[0].n, 2);
		fits(&rig.e[0].got[1], z);
		zrtp_destroy(z);
		zrtp_destroy(first);
		end();
	}
}

/* So no two exchanges of ours can answer one Commit. */
static void one_hello_of_ours_is_valid_at_a_time(void **state)
{
	struct zrtp *first = talk(), *z;
	struct session_out o = {0}, hello = {0};
	uint32_t confirms = 0;

	(void)state;
	for (uint32_t i = 0; i < 2000; i++, rig.now_ns += 10 * MS_NS) {
		if (i % 30 == 0) /* seven seconds without any, too */
			forge((uint8_t)(i / 30), i % 60);
		i += i == 900 ? 700 : 0;
		session_tick(rig.e[0].s, rig.now_ns);
		while (session_next(rig.e[0].s, &o)) {
			if (memcmp(o.packet + 16, "Hello   ", 8) != 0)
				continue;
			if (hello.len)
				assert_memory_equal(o.packet + ZRTP_HEADER,
					hello.packet + ZRTP_HEADER, o.len - ZRTP_HEADER - ZRTP_CRC);
			hello = o;
		}
	}
	assert_int_not_equal(hello.len, 0);
	begin_stream(&z, first, 0xa1);
	o = (struct session_out){0};
	get_commit(z, &o);
	deliver(0, &o, &rig.e[1].at);
	confirms = answers(&hello);
	assert_int_equal(confirms, 1);
	zrtp_destroy(z);
	zrtp_destroy(first);
	end();
}

/* The worker holds clear media from our last packet until it has the keys. */
static void the_last_packet_before_media_under_keys_is_marked(void **state)
{
	struct session_out o;
	uint32_t marked[2] = {0};

	(void)state;
	start();
	set(0);
	set(1);
	for (int turn = 0; turn < 50; turn++)
		for (int i = 0; i < 2; i++)
			while (session_next(rig.e[i].s, &o)) {
				bool last = memcmp(o.packet + 16, "Confirm2", 8) == 0 ||
					memcmp(o.packet + 16, "Conf2ACK", 8) == 0;

				assert_int_equal(o.proved, last);
				marked[i] += last;
				deliver(!i, &o, &rig.e[i].at);
			}
	assert_int_equal(marked[0], 1);
	assert_int_equal(marked[1], 1);
	(void)exchange_packets(); /* the keys are reported */
	have_fitting_keys(1);
	/* A forged repetition does not stop media again. */
	for (int i = 0; i < 2; i++) {
		struct session_out forged = {.len = 0};
		struct zrtp_msg m;

		zrtp_msg_begin(&m, ZRTP_M_CONFIRM2);
		zrtp_msg_add(&m, NULL, 64);
		zrtp_msg_end(&m, 0);
		forged.len = (uint16_t)zrtp_wrap(forged.packet, &m, 1, 1);
		deliver(i, &forged, &rig.e[!i].at);
		while (session_next(rig.e[i].s, &o))
			assert_false(o.proved);
	}
	end();
}

/* Our Conf2ACK was lost, and a stranger's Hello came: the terminal repeats its Confirm2. */
static void a_lost_conf2ack_is_sent_again(void **state)
{
	struct zrtp *first = talk(), *z;
	struct session_out o = {0}, confirm2 = {0};

	(void)state;
	begin_stream(&z, first, 0xa1);
	for (int turn = 0; turn < 5; turn++) {
		for (int n; (n = zrtp_next(z, o.packet, sizeof(o.packet))) > 0;) {
			o.len = (uint16_t)n;
			if (memcmp(o.packet + 16, "Confirm2", 8) == 0)
				confirm2 = o;
			deliver(0, &o, &rig.e[1].at);
		}
		while (session_next(rig.e[0].s, &o))
			if (memcmp(o.packet + 16, "Conf2ACK", 8) != 0)
				(void)zrtp_take(z, o.packet, o.len, rig.now_ns);
		take_events();
	}
	assert_int_equal(rig.e[0].n, 2);
	run_with(first, 2000);
	forge(0x61, true);
	while (session_next(rig.e[0].s, &o))
		;
	deliver(0, &confirm2, &rig.e[1].at);
	assert_true(session_next(rig.e[0].s, &o));
	assert_memory_equal(o.packet + 16, "Conf2ACK", 8);
	(void)zrtp_take(z, o.packet, o.len, rig.now_ns);
	assert_int_equal(zrtp_state(z), ZRTP_OPEN);
	zrtp_destroy(z);
	zrtp_destroy(first);
	end();
}

/* The terminal's GoClear was for the first stream. Keys of a later one end it, whatever Hello
 * follows. */
static void a_forged_hello_does_not_bring_back_a_clear_stream(void **state)
{
	struct zrtp *first = talk_as(true, false), *z, *stranger;

	(void)state;
	assert_int_equal(zrtp_clear(first, rig.now_ns), 0);
	run_with(first, 1000);
	assert_int_equal(rig.e[0].n, 2);
	assert_int_equal(rig.e[0].got[1].kind, SESSION_CLEAR);
	begin_stream(&z, first, 0x51);
	run_with(z, 2000);
	assert_int_equal(rig.e[0].n, 3);
	fits(&rig.e[0].got[2], z);
	begin_stream(&stranger, NULL, 0x61);
	run_with(stranger, 20000);
	assert_int_equal(rig.e[0].n, 3);
	zrtp_destroy(stranger);
	zrtp_destroy(z);
	zrtp_destroy(first);
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

/* --- The terminal moves in mid-call ----------------------------------------------------------- */

/* GoClear as sent now from where end 1 is. */
static bool ends_srtp(struct zrtp *z)
{
	uint32_t n = rig.e[0].n;

	assert_int_equal(zrtp_clear(z, rig.now_ns), 0);
	run_with(z, 1000);
	return rig.e[0].n == n + 1 && rig.e[0].got[n].kind == SESSION_CLEAR;
}

/* Address translation changed, which SDP does not say. Its authentic media do. */
static void packets_from_where_media_come_from_are_taken(void **state)
{
	(void)state;
	for (int believed = 0; believed < 2; believed++)
		for (int restarted = 0; restarted < 2; restarted++) {
			struct zrtp *z = talk_as(true, false);

			if (restarted)
				restart();
			rig.e[1].at = net_at("203.0.113.9:1234");
			rig.believed = believed;
			assert_int_equal(ends_srtp(z), believed);
			zrtp_destroy(z);
			end();
		}
}

/* The same hash, another address. */
static void a_re_invite_moves_the_exchange(void **state)
{
	struct zrtp *z = talk_as(true, false);
	struct session_out o;

	(void)state;
	/* Twice, one after the other. */
	for (uint8_t port = 1; port < 3; port++) {
		rig.e[1].at = net_at("203.0.113.9:1234");
		rig.e[1].at.port += port;
		rig.e[0].order.cfg.remote[0] = rig.e[1].at;
		set(0);
		forge(0x33 + port, false);
		assert_true(session_next(rig.e[0].s, &o));
		assert_true(endpoint_eq(&o.dst, &rig.e[1].at));
		assert_true(o.follows);
		while (session_next(rig.e[0].s, &o))
			continue;
	}
	assert_true(ends_srtp(z));
	zrtp_destroy(z);
	end();
}

/* The announced Hello again, as anybody can who saw it: nothing follows it with keys. */
static void a_repeated_hello_moves_nothing(void **state)
{
	struct session_out hello = {0}, o;
	struct endpoint stranger = net_at("203.0.113.9:1234");

	(void)state;
	start();
	set(0);
	set(1);
	while (session_next(rig.e[1].s, &o)) {
		if (memcmp(o.packet + 16, "Hello   ", 8) == 0)
			hello = o;
		deliver(0, &o, &rig.e[1].at);
	}
	run(3000);
	have_fitting_keys(1);
	assert_int_not_equal(hello.len, 0);
	rig.now_ns += 5000 * MS_NS;
	deliver(0, &hello, &stranger);
	assert_false(session_next(rig.e[0].s, &o));
	deliver(0, &hello, &rig.e[1].at);
	assert_true(session_next(rig.e[0].s, &o));
	assert_true(endpoint_eq(&o.dst, &rig.e[1].at));
	end();
}

/* The signalled address can be forged. It takes turns as the destination, but keeps nobody out. */
static void a_forged_address_keeps_no_packet_out(void **state)
{
	struct zrtp *z = talk_as(true, false);
	struct endpoint signalled = rig.e[1].at;
	struct session_out o;

	(void)state;
	rig.believed = true;
	for (uint8_t i = 0; i < 20; i++) { /* in turns: the terminal's Hello, a forged one */
		rig.now_ns += 1100 * MS_NS;
		rig.e[1].at = i % 2 ? signalled : net_at("203.0.113.9:1234");
		forge(i, false);
		while (session_next(rig.e[0].s, &o))
			assert_true(o.follows);
		rig.e[1].at = net_at("203.0.113.9:1234");
	}
	assert_int_equal(zrtp_clear(z, rig.now_ns), 0);
	run_with(z, 10);
	assert_int_equal(rig.e[0].got[rig.e[0].n - 1].kind, SESSION_CLEAR);
	zrtp_destroy(z);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_sessions_agree),
		cmocka_unit_test(another_exchange_brings_other_keys),
		cmocka_unit_test(an_option_changes_no_announced_hello),
		cmocka_unit_test(an_announced_hello_shows_where_the_terminal_is),
		cmocka_unit_test(a_believed_source_may_take_part),
		cmocka_unit_test(another_hello_than_announced_begins_nothing),
		cmocka_unit_test(a_terminal_without_zrtp_is_reported),
		cmocka_unit_test(a_restored_exchange_is_over),
		cmocka_unit_test(a_stream_in_mid_call_has_keys_of_the_same_secret),
		cmocka_unit_test(a_stream_begins_after_a_restart),
		cmocka_unit_test(goclear_after_a_restart_ends_the_stream_in_use),
		cmocka_unit_test(nobody_else_can_begin_a_stream_in_mid_call),
		cmocka_unit_test(a_flood_of_hellos_in_mid_call_causes_few_packets),
		cmocka_unit_test(a_forged_hello_a_second_does_not_keep_a_stream_out),
		cmocka_unit_test(a_passive_terminal_begins_a_stream_in_mid_call),
		cmocka_unit_test(a_lazy_terminal_begins_a_stream_in_mid_call),
		cmocka_unit_test(strangers_make_us_commit_to_no_other_terminal),
		cmocka_unit_test(a_stream_whose_hello_was_lost_has_keys),
		cmocka_unit_test(forged_commits_do_not_take_the_place_of_the_terminals),
		cmocka_unit_test(one_hello_of_ours_is_valid_at_a_time),
		cmocka_unit_test(the_last_packet_before_media_under_keys_is_marked),
		cmocka_unit_test(a_lost_conf2ack_is_sent_again),
		cmocka_unit_test(a_forged_hello_does_not_bring_back_a_clear_stream),
		cmocka_unit_test(without_an_address_nothing_leaves),
		cmocka_unit_test(packets_from_where_media_come_from_are_taken),
		cmocka_unit_test(a_re_invite_moves_the_exchange),
		cmocka_unit_test(a_repeated_hello_moves_nothing),
		cmocka_unit_test(a_forged_address_keeps_no_packet_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
