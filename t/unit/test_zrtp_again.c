/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ZRTP when somebody else was there before the terminal: a stranger who sees no packet of ours, or
 * an earlier process of the terminal, which saw them all and ended. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "keying/zrtp_agree.h"
#include "keying/zrtp_int.h"
#include "zrtp_rig.h"

#define MS 1000000ull

/* What somebody can send without having seen a packet of ours. */
struct blind {
	struct zrtp_msg hello, ack, commit, dhpart1, error;
};

static void commit_of(struct zrtp_msg *m, const struct zrtp *s, const char *agreement)
{
	static const char *const alg[ZRTP_KINDS] = {"S256", "AES1", "HS80", NULL, "B32 "};
	uint32_t proof = memcmp(agreement, "Mult", 4) == 0 ? 16 : 32;

	zrtp_msg_begin(m, ZRTP_M_COMMIT);
	zrtp_msg_add(m, s->image[2], ZRTP_IMAGE);
	zrtp_msg_add(m, s->me.zid, ZRTP_ZID);
	for (uint32_t k = 0; k < ZRTP_KINDS; k++)
		zrtp_msg_add(m, alg[k] ? alg[k] : agreement, 4);
	zrtp_msg_add(m, NULL, proof);
	memset(m->b + COMMIT_HVI, 0xff, proof); /* the greatest: it goes before ours */
	assert_int_equal(zrtp_add_mac(m, s->image[1]), 0);
}

static void dhpart1_of(struct zrtp_msg *m, const struct zrtp *s, bool bad)
{
	static const uint8_t ids[ZRTP_SECRETS_N * ZRTP_ID];
	struct zrtp_pair *k;

	assert_int_equal(zrtp_pair_make(&k, ZRTP_EC25), 0);
	zrtp_msg_begin(m, ZRTP_M_DHPART1);
	zrtp_msg_add(m, s->image[1], ZRTP_IMAGE);
	zrtp_msg_add(m, ids, sizeof(ids));
	zrtp_msg_add(m, bad ? NULL : zrtp_pair_value(k), zrtp_value_len(ZRTP_EC25));
	assert_int_equal(zrtp_add_mac(m, s->image[0]), 0);
	zrtp_pair_free(k);
}

static void prepare(struct blind *b, uint8_t number, const char *agreement, bool bad_value)
{
	struct zrtp_prefs prefs;
	const struct zrtp_config c = {.seed = {0xb1, number}, .prefs = &prefs};
	struct zrtp *s;

	zrtp_prefs_all(&prefs);
	prefs.n[ZRTP_K_AGREEMENT] = 1;
	prefs.list[ZRTP_K_AGREEMENT][0] = ZRTP_EC25;
	assert_int_equal(zrtp_create(&s, &c), 0);
	b->hello = s->me.hello;
	zrtp_msg_begin(&b->ack, ZRTP_M_HELLO_ACK);
	zrtp_msg_end(&b->ack, 0);
	commit_of(&b->commit, s, agreement);
	dhpart1_of(&b->dhpart1, s, bad_value);
	zrtp_msg_begin(&b->error, ZRTP_M_ERROR);
	zrtp_msg_end(&b->error, 4);
	zrtp_msg_add32(&b->error, 0x10);
	zrtp_destroy(s);
}

static void answer_cache(struct zrtp_rig *r)
{
	if (zrtp_state(r->z[US]) == ZRTP_WANTS_SECRETS)
		zrtp_secrets(r->z[US], NULL, r->now_ns);
}

static void send(struct zrtp_rig *r, const struct zrtp_msg *m)
{
	uint8_t p[ZRTP_PACKET_MAX];

	(void)zrtp_take(r->z[US], p, zrtp_wrap(p, m, 1, 99), r->now_ns);
	answer_cache(r);
}

/* Time passes without a terminal. */
static void pass(struct zrtp_rig *r, uint64_t ms)
{
	uint8_t p[ZRTP_PACKET_MAX];

	for (uint64_t i = 0; i < ms; i += 10, r->now_ns += 10 * MS) {
		zrtp_tick(r->z[US], r->now_ns);
		answer_cache(r);
		while (zrtp_next(r->z[US], p, sizeof(p)) > 0)
			r->packets++;
	}
}

static void begin_us(struct zrtp_rig *r)
{
	assert_int_equal(zrtp_create(&r->z[US], &r->cfg[US]), 0);
	zrtp_start(r->z[US], r->now_ns);
	pass(r, 100);
}

static void begin_terminal(struct zrtp_rig *r)
{
	assert_int_equal(zrtp_create(&r->z[THEM], &r->cfg[THEM]), 0);
	zrtp_start(r->z[THEM], r->now_ns);
	r->persists = true;
}

static void the_terminal_is_there(struct zrtp_rig *r)
{
	zrtp_rig_agreed(r);
	assert_memory_equal(zrtp_peer_zid(r->z[US]), r->z[THEM]->me.zid, ZRTP_ZID);
	assert_int_equal(zrtp_failure(r->z[US]), ZRTP_FAIL_NONE);
	zrtp_rig_end(r);
}

/* It begins now, and never gives up before both have keys. */
static void the_terminal_comes(struct zrtp_rig *r)
{
	begin_terminal(r);
	for (int s = 0; s < 40 && !zrtp_rig_open(r); s++) {
		zrtp_rig_run(r, 1000);
		assert_int_not_equal(zrtp_state(r->z[THEM]), ZRTP_FAILED);
	}
	the_terminal_is_there(r);
}

static const uint64_t after_ms[] = {0, 100, 5000, 10500, 11500, 13000, 60000};

/* A letter for each packet: Hello, its acKnowledgement, Commit, Dhpart1, Error. */
static void send_all(struct zrtp_rig *r, const struct blind *b, const char *letters)
{
	for (; *letters; letters++)
		send(r,
			*letters == 'H'           ? &b->hello
				: *letters == 'K' ? &b->ack
				: *letters == 'C' ? &b->commit
				: *letters == 'D' ? &b->dhpart1
						  : &b->error);
}

static void blind_packets_keep_no_terminal_out(void **state)
{
	static const char *const sent[] = {
		"K", "E", "H", "HK", "HC", "HKE", "HCE", "HKD", "HKC", "HKDE", "HKDC", "HCKD"};
	struct blind b[3];

	(void)state;
	prepare(&b[0], 1, "EC25", false);
	prepare(&b[1], 1, "XXXX", false);
	prepare(&b[2], 1, "EC25", true);
	for (size_t i = 0; i < ARRAY_LEN(sent); i++)
		for (size_t at = 0; at < ARRAY_LEN(after_ms); at++)
			for (int how = 0; how < 12; how++) {
				struct zrtp_rig r;

				zrtp_rig_init(&r);
				r.cfg[US].passive = how & 1;
				r.cfg[US].cache = how & 2;
				begin_us(&r);
				send_all(&r, &b[how / 4], sent[i]);
				pass(&r, after_ms[at]);
				the_terminal_comes(&r);
			}
}

/* The same again and again, so that each attempt of ours begins with them. */
static void blind_packets_now_and_then_keep_no_terminal_out(void **state)
{
	static const char *const sent[] = {"HK", "HC", "HKD"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(sent); i++) {
		struct zrtp_rig r;

		zrtp_rig_init(&r);
		begin_us(&r);
		for (uint8_t n = 0; n < 60; n++) {
			struct blind b;

			prepare(&b, n, "EC25", false);
			send_all(&r, &b, sent[i]);
			pass(&r, 2000);
		}
		the_terminal_comes(&r);
	}
}

/* They go on while the terminal tries, twice a second. */
static void blind_packets_in_between_keep_no_terminal_out(void **state)
{
	static const char *const sent[] = {"HK", "HC", "HKD", "HKCD"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(sent); i++)
		for (int how = 0; how < 3; how++) {
			struct zrtp_rig r;
			struct blind b;

			zrtp_rig_init(&r);
			r.cfg[US].passive = how == 1;
			r.cfg[THEM].passive = how == 2;
			begin_us(&r);
			for (uint8_t n = 0; n < 20; n++) {
				prepare(&b, n, "EC25", false);
				send_all(&r, &b, sent[i]);
				pass(&r, 500);
			}
			begin_terminal(&r);
			for (uint8_t n = 20; n < 80 && !zrtp_rig_open(&r); n++) {
				prepare(&b, n, "EC25", false);
				send_all(&r, &b, sent[i]);
				zrtp_rig_run(&r, 500);
				assert_int_not_equal(zrtp_state(r.z[THEM]), ZRTP_FAILED);
			}
			the_terminal_is_there(&r);
		}
}

/* r->b sets of them, one before each packet of the terminal, so they are always first. */
static const char *sets, *agreement = "EC25";

static bool comes_first(struct zrtp_rig *r, int to, uint8_t *p, int *len)
{
	struct blind b;

	(void)p;
	(void)len;
	if (to != US || r->a >= r->b)
		return true;
	prepare(&b, (uint8_t)r->a++, agreement, false);
	send_all(r, &b, sets);
	return true;
}

static void blind_packets_at_each_step_keep_no_terminal_out(void **state)
{
	static const char *const sent[] = {"HK", "HC", "HKD", "HKCD"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(sent); i++)
		for (uint32_t n = 1; n < 13; n++)
			for (int how = 0; how < 3; how++) {
				struct zrtp_rig r;

				zrtp_rig_init(&r);
				r.cfg[US].passive = how == 1;
				r.cfg[THEM].passive = how == 2;
				r.b = n;
				sets = sent[i];
				r.wire = comes_first;
				begin_us(&r);
				begin_terminal(&r);
				zrtp_rig_run(&r, 13000);
				the_terminal_is_there(&r);
			}
}

/* Once, before the packet of this type: our Commit is on its way, or it was answered. */
static const char *before;

static bool comes_before(struct zrtp_rig *r, int to, uint8_t *p, int *len)
{
	if (to == US && memcmp(p + ZRTP_HEADER + 4, before, 8) == 0)
		(void)comes_first(r, to, p, len);
	/* It has accepted a Commit, and accepts no other. */
	return to == US || r->z[THEM]->phase != PH_DHPART1 ||
		memcmp(p + ZRTP_HEADER + 4, "Commit  ", 8) != 0;
}

static void a_terminal_that_accepts_one_commit_is_not_kept_out(void **state)
{
	static const char *const sent[] = {"HC", "HKC", "HD", "HKCD", "HCHD"};
	static const char *const types[] = {"DHPart1 ", "Confirm1"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(sent); i++)
		for (size_t t = 0; t < ARRAY_LEN(types); t++)
			for (int how = 0; how < 2; how++) {
				struct zrtp_rig r;

				zrtp_rig_init(&r);
				r.cfg[THEM].passive = true;
				r.cfg[US].cache = how;
				r.b = 3;
				before = types[t];
				sets = sent[i];
				r.wire = comes_before;
				zrtp_rig_begin(&r);
				zrtp_rig_run(&r, 1000);
				assert_in_range(r.a, 1, 3);
				the_terminal_is_there(&r);
			}
}

/* The stream of another m-line: a Commit of it needs neither a public value nor the secret. */
static void blind_packets_keep_no_further_stream_out(void **state)
{
	static const char *const sent[] = {"HC", "HKC", "HKD"};
	struct zrtp_rig first;

	(void)state;
	zrtp_rig_init(&first);
	zrtp_rig_begin(&first);
	zrtp_rig_run(&first, 1000);
	zrtp_rig_agreed(&first);
	for (size_t i = 0; i < ARRAY_LEN(sent); i++)
		for (uint32_t n = 1; n < 4; n++)
			for (int how = 0; how < 3; how++) {
				struct zrtp_rig r;

				zrtp_rig_init(&r);
				r.cfg[US].seed[0] = r.cfg[THEM].seed[0] = 77;
				r.cfg[US].zid = first.z[US]->me.zid;
				r.cfg[THEM].zid = first.z[THEM]->me.zid;
				r.cfg[US].passive = how == 1;
				r.cfg[THEM].passive = how == 2;
				r.b = n;
				r.persists = true;
				agreement = "Mult";
				sets = sent[i];
				r.wire = comes_first;
				for (int s = 0; s < 2; s++) {
					assert_int_equal(zrtp_create(&r.z[s], &r.cfg[s]), 0);
					assert_int_equal(zrtp_multi(r.z[s], first.z[s]), 0);
					zrtp_start(r.z[s], r.now_ns);
				}
				zrtp_rig_run(&r, 13000);
				assert_true(zrtp_is_multi(r.z[US]));
				the_terminal_is_there(&r);
				agreement = "EC25";
			}
	zrtp_rig_end(&first);
}

/* Reported once there was no answer, and the terminal's later exchange takes the report back. */
static void a_failure_is_reported_until_there_are_keys(void **state)
{
	static const struct {
		const char *sent, *agreement;
		bool bad;
		enum zrtp_failure why;
	} of[] = {{"HK", "EC25", false, ZRTP_FAIL_TIMEOUT},
		{"HC", "EC25", false, ZRTP_FAIL_TIMEOUT}, {"HKE", "EC25", false, ZRTP_FAIL_REFUSED},
		{"HC", "XXXX", false, ZRTP_FAIL_ALGORITHM}, {"HKD", "EC25", true, ZRTP_FAIL_VALUE}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(of); i++) {
		struct zrtp_rig r;
		struct blind b;

		zrtp_rig_init(&r);
		begin_us(&r);
		prepare(&b, 1, of[i].agreement, of[i].bad);
		send_all(&r, &b, of[i].sent);
		pass(&r, 13000);
		assert_int_equal(zrtp_state(r.z[US]), ZRTP_FAILED);
		assert_int_equal(zrtp_failure(r.z[US]), of[i].why);
		assert_int_equal(zrtp_deadline(r.z[US]), UINT64_MAX);
		/* Another stranger: however that attempt ends, nothing more is reported. */
		prepare(&b, 2, "EC25", false);
		send_all(&r, &b, "HC");
		assert_int_equal(zrtp_state(r.z[US]), ZRTP_FAILED);
		pass(&r, 13000);
		assert_int_equal(zrtp_state(r.z[US]), ZRTP_FAILED);
		the_terminal_comes(&r);
	}
}

static bool is_error(struct zrtp *z, uint8_t code)
{
	uint8_t p[ZRTP_PACKET_MAX], want[12] = "Error   ";
	bool found = false;

	want[11] = code;
	for (int n; (n = zrtp_next(z, p, sizeof(p))) > 0;)
		found |= memcmp(p + ZRTP_HEADER + 4, want, sizeof(want)) == 0;
	return found;
}

/* By timer T2 until it is acknowledged, or there is another Hello (RFC 6189 5.9, 6). */
static void an_error_is_repeated(void **state)
{
	(void)state;
	for (int how = 0; how < 6; how++) {
		struct zrtp_rig r;
		struct blind b;
		struct zrtp_msg ack;
		uint8_t code = how & 1 ? 0x61 : 0x53;
		uint32_t n = 0;

		zrtp_rig_init(&r);
		begin_us(&r);
		prepare(&b, 1, how & 1 ? "EC25" : "XXXX", how & 1);
		send_all(&r, &b, how & 1 ? "HKD" : "HC");
		assert_true(is_error(r.z[US], code));
		zrtp_msg_begin(&ack, ZRTP_M_ERROR_ACK);
		zrtp_msg_end(&ack, 0);
		for (uint64_t step = 150; zrtp_deadline(r.z[US]) != UINT64_MAX; n++) {
			assert_int_equal(zrtp_deadline(r.z[US]), r.now_ns + step * MS);
			r.now_ns += step * MS;
			zrtp_tick(r.z[US], r.now_ns);
			assert_int_equal(is_error(r.z[US], code), n < 10);
			step = 2 * step < 1200 ? 2 * step : 1200;
			if (n == 3 && how / 2 == 1)
				send(&r, &ack);
			if (n == 3 && how / 2 == 2)
				break;
		}
		assert_int_equal(n, how / 2 == 1 ? 4 : how / 2 == 2 ? 3 : 11);
		the_terminal_comes(&r);
	}
}

/* Packets of ours, and key pairs, for an hour of one stranger after the other. */
static void strangers_cause_bounded_work(void **state)
{
	struct zrtp_rig r;
	struct blind b;

	(void)state;
	zrtp_rig_init(&r);
	begin_us(&r);
	for (uint32_t n = 0; n < 3600; n++) {
		prepare(&b, (uint8_t)n, n & 1 ? "EC25" : "XXXX", n & 2);
		put_be32(b.hello.b + HELLO_ZID, n);
		send_all(&r, &b, n % 3 ? "HC" : "HKD");
		pass(&r, 1000);
	}
	assert_in_range(r.packets, 3600, 3600 * 20);
	assert_in_range(r.counts[US].pairs, 1, 3600 / 10);
	the_terminal_comes(&r);
}

/* Its packets: all until this one, which is lost like all that follow. */
static const char *last;

static bool ends_before(struct zrtp_rig *r, int to, uint8_t *p, int *len)
{
	(void)len;
	if (to == US && memcmp(p + ZRTP_HEADER + 4, last, 8) == 0)
		r->a = 1;
	return !r->a;
}

static void an_earlier_process_keeps_no_terminal_out(void **state)
{
	static const char *const types[] = {"HelloACK", "Commit  ", "DHPart2 ", "Confirm2"};
	static const char *const passives[] = {"HelloACK", "DHPart1 ", "Confirm1"};

	(void)state;
	for (int how = 0; how < 4; how++)
		for (size_t i = 0; i < (how & 1 ? ARRAY_LEN(types) : ARRAY_LEN(passives)); i++)
			for (size_t at = 0; at < ARRAY_LEN(after_ms); at++) {
				struct zrtp_rig r;

				zrtp_rig_init(&r);
				r.cfg[US].passive = how & 1;
				r.cfg[THEM].passive = !(how & 1);
				r.cfg[US].cache = how & 2;
				last = how & 1 ? types[i] : passives[i];
				r.wire = ends_before;
				zrtp_rig_begin(&r);
				zrtp_rig_run(&r, 200);
				assert_int_equal(r.a, 1);
				zrtp_destroy(r.z[THEM]);
				r.wire = NULL;
				r.cfg[THEM].seed[3] = 99;
				r.cfg[THEM].passive = false;
				pass(&r, after_ms[at]);
				the_terminal_comes(&r);
			}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blind_packets_keep_no_terminal_out),
		cmocka_unit_test(blind_packets_now_and_then_keep_no_terminal_out),
		cmocka_unit_test(blind_packets_in_between_keep_no_terminal_out),
		cmocka_unit_test(blind_packets_at_each_step_keep_no_terminal_out),
		cmocka_unit_test(a_terminal_that_accepts_one_commit_is_not_kept_out),
		cmocka_unit_test(blind_packets_keep_no_further_stream_out),
		cmocka_unit_test(a_failure_is_reported_until_there_are_keys),
		cmocka_unit_test(an_error_is_repeated),
		cmocka_unit_test(strangers_cause_bounded_work),
		cmocka_unit_test(an_earlier_process_keeps_no_terminal_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
