/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What exchanges of ZRTP have in common: m-lines of one terminal (Multistream mode), calls of one
 * terminal (retained secrets), the two terminals of a call (SASrelay). Sessions on both sides, a
 * network in memory, and a clock of the test's own. RFC 6189 4.4.3, 4.9, 7.3. */
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
#define LINES   2u
#define GOT_MAX 8u

enum { US, THEM };

struct end {
	struct session *s;
	struct session_order order;
	struct session_event got[GOT_MAX];
	uint32_t n;
	bool mute, no_ack; /* nothing of it arrives; no Conf2ACK of it does */
};

static struct rig {
	struct end e[LINES][2];
	struct session_env env[2];
	struct zrtp_store *store[2];
	uint64_t now_ns;
	uint32_t lines;
	uint8_t random;
} rig;

static struct session_zrtp *cfg(uint32_t line, int who)
{
	return &rig.e[line][who].order.cfg.zrtp;
}

static void store(int who)
{
	const struct zrtp_store_config c = {.max = 4, .real_s = 1700000000, .mono_ns = rig.now_ns};

	assert_int_equal(zrtp_store_create(&rig.store[who], &c), 0);
}

/* Other seeds in each call, and the ZID of the cache if there is one. */
static void create(uint32_t lines)
{
	static const char *const at[2] = {"192.0.2.1:4000", "198.51.100.2:5000"};

	rig.lines = lines;
	for (uint32_t i = 0; i < lines; i++)
		for (int who = 0; who < 2; who++) {
			struct end *e = &rig.e[i][who];

			*e = (struct end){0};
			rig.env[who].store = rig.store[who];
			assert_int_equal(dtls_cert_create(&e->order.cert, 1700000000, 86400), 0);
			assert_int_equal(session_create(&e->s, &rig.env[who]), 0);
			e->order.cfg.remote[0] = net_at(at[!who]);
			*cfg(i, who) = (struct session_zrtp){.on = true, .exchange = 1};
			memset(cfg(i, who)->seed, ++rig.random, SESSION_ZRTP_SEED);
			memset(cfg(i, who)->party, 100 + who, SESSION_ZRTP_ZID);
			memset(cfg(i, who)->zid, 100 + who, SESSION_ZRTP_ZID);
			if (rig.store[who])
				memcpy(cfg(i, who)->zid, zrtp_store_zid(rig.store[who]),
					SESSION_ZRTP_ZID);
		}
}

static void start(uint32_t lines)
{
	memset(&rig, 0, sizeof(rig));
	rig.now_ns = 100000 * MS_NS;
	create(lines);
}

static void hang_up(void)
{
	for (uint32_t i = 0; i < rig.lines; i++)
		for (int who = 0; who < 2; who++) {
			session_destroy(rig.e[i][who].s);
			dtls_cert_put(rig.e[i][who].order.cert);
		}
	for (uint32_t b = 0; b < SESSION_PARTIES; b++)
		assert_true(!rig.env[US].party[b] && !rig.env[THEM].party[b]);
}

static void end(void)
{
	hang_up();
	zrtp_store_destroy(rig.store[US]);
	zrtp_store_destroy(rig.store[THEM]);
}

static void set(uint32_t line, int who)
{
	struct end *e = &rig.e[line][who];

	assert_int_equal(session_set(e->s, &e->order, rig.now_ns), 0);
}

static void set_all(void)
{
	for (uint32_t i = 0; i < rig.lines; i++) {
		set(i, US);
		set(i, THEM);
	}
}

static bool packets_of(uint32_t line, int who)
{
	struct end *e = &rig.e[line][who];
	struct session_out o;
	bool any = false;

	while (session_next(e->s, &o)) {
		struct session_in in = {.zrtp = true,
			.src = &rig.e[line][!who].order.cfg.remote[0],
			.p = o.packet,
			.len = o.len};

		any = true;
		if (!e->mute && !(e->no_ack && memcmp(o.packet + 16, "Conf2ACK", 8) == 0))
			session_take(rig.e[line][!who].s, &in, rig.now_ns);
	}
	while (e->n < GOT_MAX && session_event(e->s, &e->got[e->n]))
		e->n++;
	return any;
}

static void run(uint64_t ms)
{
	uint64_t until = rig.now_ns + ms * MS_NS;

	for (;;) {
		uint64_t at = until;
		bool any = true;

		while (any) {
			any = false;
			for (uint32_t i = 0; i < rig.lines; i++) {
				any |= packets_of(i, US);
				any |= packets_of(i, THEM);
			}
		}
		if (rig.now_ns >= until)
			return;
		for (uint32_t i = 0; i < rig.lines; i++)
			for (int who = 0; who < 2; who++)
				if (session_deadline(rig.e[i][who].s) < at)
					at = session_deadline(rig.e[i][who].s);
		rig.now_ns = at > rig.now_ns ? at : rig.now_ns + MS_NS;
		for (uint32_t i = 0; i < rig.lines; i++)
			for (int who = 0; who < 2; who++)
				session_tick(rig.e[i][who].s, rig.now_ns);
	}
}

static const struct session_event *keys(uint32_t line, int who)
{
	for (uint32_t i = 0; i < rig.e[line][who].n; i++)
		if (rig.e[line][who].got[i].kind == SESSION_KEYS)
			return &rig.e[line][who].got[i];
	fail();
	return NULL;
}

static const struct session_said *said(uint32_t line, int who)
{
	return &keys(line, who)->said;
}

static void fit(uint32_t line)
{
	const struct session_event *a = keys(line, US), *b = keys(line, THEM);

	assert_memory_equal(a->rx.key, b->tx.key, sizeof(a->rx.key));
	assert_memory_equal(a->tx.key, b->rx.key, sizeof(a->rx.key));
	assert_string_equal(a->said.sas, b->said.sas);
}

/* A call with retained secrets on both sides. */
static void call(void)
{
	create(1);
	set_all();
	run(3000);
	fit(0);
}

/* --- Multistream ------------------------------------------------------------------------------ */

static void further_lines_use_the_first_ones_secret(void **state)
{
	(void)state;
	start(2);
	set_all();
	run(3000);
	fit(0);
	fit(1);
	assert_string_equal(said(0, US)->sas, said(1, US)->sas);
	assert_memory_not_equal(keys(0, US)->rx.key, keys(1, US)->rx.key, SUITE_MAX_KEY_LEN);
	/* One key pair each. */
	assert_int_equal(rig.env[US].zrtp_counts.pairs, 1);
	assert_int_equal(rig.env[THEM].zrtp_counts.pairs, 1);
	end();
}

/* A line that is added in mid-call. */
static void a_later_line_uses_it_too(void **state)
{
	(void)state;
	start(2);
	set(0, US);
	set(0, THEM);
	run(3000);
	set_all();
	run(3000);
	fit(1);
	assert_int_equal(rig.env[US].zrtp_counts.pairs, 1);
	end();
}

/* The relay is killed and restored, and then the line is added. */
static void a_later_line_uses_a_restored_secret(void **state)
{
	struct session_order *o = &rig.e[0][US].order;
	char sas[SESSION_SAS_MAX];

	(void)state;
	start(2);
	set(0, US);
	set(0, THEM);
	run(3000);
	fit(0);
	memcpy(sas, said(0, US)->sas, sizeof(sas));
	o->cfg.zrtp.established = true;
	o->cfg.zrtp_past.secret = keys(0, US)->secret;
	o->cfg.zrtp_past.said = *said(0, US);
	session_destroy(rig.e[0][US].s);
	assert_int_equal(session_create(&rig.e[0][US].s, &rig.env[US]), 0);
	rig.e[0][US].n = 0;
	set_all();
	run(3000);
	fit(1);
	assert_string_equal(said(1, US)->sas, sas);
	assert_int_equal(rig.env[US].zrtp_counts.pairs, 1);
	assert_int_equal(rig.env[THEM].zrtp_counts.pairs, 1);
	/* The restored exchange brings no event, and is not counted again. */
	assert_int_equal(rig.e[0][US].n, 0);
	assert_int_equal(rig.env[US].total.zrtp[ZRTP_FAIL_NONE], 2);
	end();
}

/* Another call, or another terminal of this one. */
static void strangers_share_no_secret(void **state)
{
	(void)state;
	start(2);
	memset(cfg(1, US)->party, 33, SESSION_ZRTP_ZID);
	memset(cfg(1, US)->zid, 33, SESSION_ZRTP_ZID);
	memset(cfg(1, THEM)->party, 34, SESSION_ZRTP_ZID);
	memset(cfg(1, THEM)->zid, 34, SESSION_ZRTP_ZID);
	set_all();
	run(3000);
	fit(0);
	fit(1);
	assert_string_not_equal(said(0, US)->sas, said(1, US)->sas);
	assert_int_equal(rig.env[US].zrtp_counts.pairs, 2);
	end();
}

/* The terminal does not answer on its first line: the second one has an exchange of its own. */
static void a_line_does_not_wait_for_ever(void **state)
{
	(void)state;
	start(2);
	rig.e[0][THEM].mute = true;
	set_all();
	run(20000);
	fit(1);
	end();
}

static void the_first_line_may_end(void **state)
{
	(void)state;
	start(2);
	set(0, US);
	set(0, THEM);
	run(3000);
	for (int who = 0; who < 2; who++) {
		cfg(0, who)->on = false;
		set(0, who);
	}
	set_all();
	run(3000);
	fit(1);
	assert_int_equal(rig.env[US].zrtp_counts.pairs, 2);
	end();
}

/* --- Retained secrets ------------------------------------------------------------------------- */

static void a_compared_sas_is_verified_in_the_next_call(void **state)
{
	(void)state;
	start(0);
	store(US);
	store(THEM);
	call();
	assert_false(said(0, US)->verified || said(0, US)->mismatched);
	assert_true(
		zrtp_store_verify(rig.store[US], said(0, US)->zid, said(0, US)->proof.hash, true));
	hang_up();
	call();
	assert_false(said(0, US)->verified); /* the terminal's user has not said so */
	assert_true(zrtp_store_verify(
		rig.store[THEM], said(0, THEM)->zid, said(0, THEM)->proof.hash, true));
	hang_up();
	call();
	assert_true(said(0, US)->verified && said(0, THEM)->verified);
	assert_false(said(0, US)->mismatched);
	hang_up();
	call();
	assert_true(said(0, US)->verified);
	assert_int_equal(zrtp_store_count(rig.store[US]), 1);
	end();
}

/* The end that sent Confirm2 keeps its old secrets until media show that it arrived. */
static void a_lost_conf2_ack_keeps_the_old_secrets(void **state)
{
	uint32_t kept[2];

	(void)state;
	start(0);
	store(US);
	store(THEM);
	create(1);
	rig.e[0][US].no_ack = rig.e[0][THEM].no_ack = true;
	set_all();
	run(60000);
	fit(0);
	for (int who = 0; who < 2; who++)
		kept[who] = zrtp_store_count(rig.store[who]);
	assert_int_equal(kept[US] + kept[THEM], 1);
	for (int who = 0; who < 2; who++) {
		session_settle(rig.e[0][who].s, 2, false, rig.now_ns); /* of another exchange */
		session_settle(rig.e[0][who].s, 1, true, rig.now_ns);
		assert_int_equal(zrtp_store_count(rig.store[who]), kept[who]);
		session_settle(rig.e[0][who].s, 1, false, rig.now_ns);
		assert_int_equal(zrtp_store_count(rig.store[who]), 1);
	}
	hang_up();
	call();
	assert_false(said(0, US)->mismatched || said(0, THEM)->mismatched);
	end();
}

/* The terminal lost its cache: that is told, and only a comparison brings "verified" back. */
static void a_lost_cache_is_a_mismatch(void **state)
{
	uint8_t zid[ZRTP_ZID], hash[ZRTP_SAS_HASH];
	struct sbuf b;

	(void)state;
	start(0);
	store(US);
	store(THEM);
	sbuf_init(&b, 0);
	assert_int_equal(zrtp_store_write(rig.store[THEM], &b), 0);
	call();
	memcpy(zid, said(0, US)->zid, sizeof(zid));
	memcpy(hash, said(0, US)->proof.hash, sizeof(hash));
	assert_true(zrtp_store_verify(rig.store[US], zid, hash, true));
	hang_up();
	for (int k = 0; k < 2; k++) { /* the secrets of before stay, until it is verified */
		zrtp_store_destroy(rig.store[THEM]);
		store(THEM);
		assert_int_equal(zrtp_store_read(rig.store[THEM], sbuf_view(&b), rig.now_ns), 0);
		call();
		assert_true(said(0, US)->mismatched);
		assert_false(said(0, US)->verified);
		memcpy(hash, said(0, US)->proof.hash, sizeof(hash));
		hang_up();
	}
	assert_true(zrtp_store_verify(rig.store[US], zid, hash, true));
	call();
	assert_false(said(0, US)->mismatched);
	hang_up();
	sbuf_fini(&b);
	rig.lines = 0;
	end();
}

/* --- The far terminal's SAS ------------------------------------------------------------------- */

static void an_enrolled_terminal_is_known_again(void **state)
{
	(void)state;
	start(0);
	store(US);
	store(THEM);
	for (int k = 0; k < 2; k++) {
		create(1);
		cfg(0, US)->enrol = cfg(0, THEM)->enrol = k == 0;
		set_all();
		run(3000);
		fit(0);
		assert_int_equal(said(0, US)->enrolled, k == 1);
		assert_int_equal(said(0, THEM)->enrolled, k == 1);
		assert_true(said(0, US)->proof.known);
		if (k == 1) {
			uint32_t before = rig.env[THEM].zrtp_counts.drop[ZRTP_DROP_STATE];

			cfg(0, US)->far.known = true;
			memset(cfg(0, US)->far.hash, 5, 32);
			set(0, US);
			run(3000);
			/* It is acknowledged, so it is sent once. */
			assert_int_equal(session_deadline(rig.e[0][US].s), UINT64_MAX);
			assert_int_equal(rig.env[THEM].zrtp_counts.drop[ZRTP_DROP_STATE], before);
		}
		hang_up();
	}
	rig.lines = 0;
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(further_lines_use_the_first_ones_secret),
		cmocka_unit_test(a_later_line_uses_it_too),
		cmocka_unit_test(a_later_line_uses_a_restored_secret),
		cmocka_unit_test(strangers_share_no_secret),
		cmocka_unit_test(a_line_does_not_wait_for_ever),
		cmocka_unit_test(the_first_line_may_end),
		cmocka_unit_test(a_compared_sas_is_verified_in_the_next_call),
		cmocka_unit_test(a_lost_conf2_ack_keeps_the_old_secrets),
		cmocka_unit_test(a_lost_cache_is_a_mismatch),
		cmocka_unit_test(an_enrolled_terminal_is_known_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
