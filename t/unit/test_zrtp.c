/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ZRTP between two exchanges of ours: algorithms, lost packets, contention, secrets of earlier
 * calls, and what an open exchange can do. t/zrtp has another implementation as the peer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "keying/zrtp_int.h"
#include "zrtp_rig.h"

static void checksum_and_hash_are_those_of_the_rfc(void **state)
{
	struct zrtp_config c = {.ssrc = 7};
	uint8_t a[ZRTP_HASH], b[ZRTP_HASH];

	(void)state;
	assert_int_equal(zrtp_crc((const uint8_t *)"123456789", 9), 0xe3069283);
	assert_int_equal(zrtp_crc_plain((const uint8_t *)"123456789", 9), 0xe3069283);
	for (size_t n = 0; n <= sizeof(c); n++) {
		const uint8_t *p = (const uint8_t *)&c;

		assert_int_equal(zrtp_crc(p, n), zrtp_crc_plain(p, n));
	}
	/* The Hello follows from the seed. */
	assert_int_equal(zrtp_hello_hash(a, &c), 0);
	c.ssrc = 8;
	assert_int_equal(zrtp_hello_hash(b, &c), 0);
	assert_memory_equal(a, b, sizeof(a));
	c.seed[0] = 1;
	assert_int_equal(zrtp_hello_hash(b, &c), 0);
	assert_memory_not_equal(a, b, sizeof(a));
}

static void each_combination_of_algorithms_agrees(void **state)
{
	static const uint8_t most[ZRTP_KINDS] = {
		ZRTP_HASH_N, ZRTP_CIPHER_N, ZRTP_TAG_N, ZRTP_PRSH, ZRTP_SAS_N};
	struct zrtp_rig r;
	uint32_t tried = 0;

	(void)state;
	for (uint8_t h = 0; h < most[0]; h++)
		for (uint8_t c = 0; c < most[1]; c++)
			for (uint8_t t = 0; t < most[2]; t++)
				for (uint8_t a = 0; a < most[3]; a++) {
					const uint8_t alg[] = {h, c, t, a, 0};

					zrtp_rig_init(&r);
					for (int k = 0; k < ZRTP_KINDS; k++)
						zrtp_rig_only(
							&r, tried & 1, (enum zrtp_kind)k, alg[k]);
					zrtp_rig_begin(&r);
					zrtp_rig_run(&r, 1000);
					zrtp_rig_agreed(&r);
					tried++;
					zrtp_rig_end(&r);
				}
	assert_int_equal(tried, 2 * 3 * 2 * 5);
}

static void a_peer_that_wants_words_gets_words(void **state)
{
	struct zrtp_rig r;

	(void)state;
	for (int side = US; side <= THEM; side++) {
		zrtp_rig_init(&r);
		zrtp_rig_only(&r, side, ZRTP_K_SAS, ZRTP_B256);
		zrtp_rig_begin(&r);
		zrtp_rig_run(&r, 1000);
		assert_true(zrtp_rig_open(&r));
		assert_string_equal(zrtp_sas(r.z[US]), zrtp_sas(r.z[THEM]));
		assert_non_null(strchr(zrtp_sas(r.z[US]), ':'));
		assert_string_equal(zrtp_algorithm(r.z[THEM], ZRTP_K_SAS), "B256");
		zrtp_rig_end(&r);
	}
}

/* Both have all: what each of them prefers is chosen. */
static void the_preferred_algorithms_are_chosen(void **state)
{
	struct zrtp_rig r;

	(void)state;
	zrtp_rig_init(&r);
	zrtp_rig_begin(&r);
	zrtp_rig_run(&r, 1000);
	zrtp_rig_agreed(&r);
	assert_string_equal(zrtp_algorithm(r.z[US], ZRTP_K_AGREEMENT), "EC25");
	assert_string_equal(zrtp_algorithm(r.z[THEM], ZRTP_K_CIPHER), "AES1");
	assert_true(zrtp_peer_is_mitm(r.z[US]));
	zrtp_rig_end(&r);
}

static bool drops_some(struct zrtp_rig *r, int to, uint8_t *p, int *len)
{
	(void)to;
	(void)p;
	(void)len;
	r->a = r->a * 1103515245 + 12345;
	return (r->a >> 16) % 100 >= r->b;
}

static void lost_packets_are_sent_again(void **state)
{
	struct zrtp_rig r;
	uint32_t agreed = 0;

	(void)state;
	for (uint32_t seed = 1; seed <= 200; seed++) {
		zrtp_rig_init(&r);
		r.wire = drops_some;
		r.a = seed;
		r.b = 30;
		zrtp_rig_begin(&r);
		zrtp_rig_run(&r, 30000);
		if (zrtp_rig_open(&r)) {
			zrtp_rig_agreed(&r);
			agreed++;
		}
		zrtp_rig_end(&r);
	}
	assert_true(agreed > 180);
}

static bool loses_each_conf2_ack(struct zrtp_rig *r, int to, uint8_t *p, int *len)
{
	(void)r;
	(void)to;
	(void)len;
	return memcmp(p + ZRTP_HEADER + 4, "Conf2ACK", 8) != 0;
}

/* Media of the responder can overtake its Conf2ACK. */
static void an_initiator_has_keys_before_the_last_acknowledgement(void **state)
{
	struct srtp_master rx[2], tx[2];
	struct zrtp_rig r;

	(void)state;
	zrtp_rig_init(&r);
	r.wire = loses_each_conf2_ack;
	zrtp_rig_begin(&r);
	zrtp_rig_run(&r, 1000);
	assert_false(zrtp_rig_open(&r));
	for (int i = 0; i < 2; i++)
		assert_int_equal(zrtp_keys(r.z[i], &rx[i], &tx[i]), 0);
	assert_memory_equal(&rx[US], &tx[THEM], sizeof(rx[0]));
	assert_memory_equal(&rx[THEM], &tx[US], sizeof(rx[0]));
	assert_string_equal(zrtp_sas(r.z[US]), zrtp_sas(r.z[THEM]));
	assert_int_equal(strlen(zrtp_sas(r.z[US])), 4);
	zrtp_rig_run(&r, 60000); /* then it counts as received */
	zrtp_rig_agreed(&r);
	zrtp_rig_end(&r);
}

static bool sends_twice(struct zrtp_rig *r, int to, uint8_t *p, int *len)
{
	(void)zrtp_take(r->z[to], p, (size_t)*len, r->now_ns);
	return true;
}

static void doubled_packets_change_nothing(void **state)
{
	struct zrtp_rig r;

	(void)state;
	zrtp_rig_init(&r);
	r.wire = sends_twice;
	zrtp_rig_begin(&r);
	zrtp_rig_run(&r, 1000);
	zrtp_rig_agreed(&r);
	zrtp_rig_end(&r);
}

static void nobody_answers(void **state)
{
	struct zrtp_rig r;
	uint8_t p[ZRTP_PACKET_MAX];
	uint32_t sent = 0;

	(void)state;
	zrtp_rig_init(&r);
	zrtp_rig_begin(&r);
	while (zrtp_deadline(r.z[US]) != UINT64_MAX) {
		while (zrtp_next(r.z[US], p, sizeof(p)) > 0)
			sent++;
		zrtp_tick(r.z[US], zrtp_deadline(r.z[US]));
	}
	assert_int_equal(zrtp_state(r.z[US]), ZRTP_NO_PEER);
	assert_int_equal(sent, 21);
	/* A terminal that comes later is heard. */
	r.now_ns = 60000000000ull;
	zrtp_rig_run(&r, 2000);
	zrtp_rig_agreed(&r);
	zrtp_rig_end(&r);
}

static void a_bound_hello_is_the_only_one(void **state)
{
	struct zrtp_rig r;

	(void)state;
	for (int wrong = 0; wrong < 2; wrong++) {
		zrtp_rig_init(&r);
		r.cfg[US].bound = true;
		assert_int_equal(zrtp_hello_hash(r.cfg[US].bound_hash, &r.cfg[THEM]), 0);
		r.cfg[US].bound_hash[0] ^= (uint8_t)wrong;
		zrtp_rig_begin(&r);
		zrtp_rig_run(&r, 10000);
		if (!wrong)
			zrtp_rig_agreed(&r);
		else
			assert_int_not_equal(zrtp_state(r.z[US]), ZRTP_OPEN);
		assert_int_equal(r.counts[US].drop[ZRTP_DROP_BOUND] > 0, wrong);
		zrtp_rig_end(&r);
	}
}

/* --- Retained secrets ------------------------------------------------------------------------- */

static void call_with_cache(struct zrtp_rig *r)
{
	r->cfg[US].cache = r->cfg[THEM].cache = true;
	for (int i = 0; i < 2; i++) /* the ZIDs stay, all else is another call's */
		r->cfg[i].zid =
			i ? (const uint8_t *)"terminal.zid" : (const uint8_t *)"gateway..zid";
	r->cfg[US].seed[1]++;
	r->cfg[THEM].seed[1]++;
	zrtp_rig_begin(r);
	zrtp_rig_run(r, 3000);
}

static void keep(struct zrtp_rig *r)
{
	uint32_t seconds;

	for (int i = 0; i < 2; i++) {
		assert_int_equal(zrtp_new_secrets(r->z[i], &r->known[i], &seconds), 0);
		assert_int_equal(seconds, UINT32_MAX);
		r->has[i] = true;
	}
	assert_memory_equal(r->known[US].rs1, r->known[THEM].rs1, ZRTP_SECRET);
}

/* When each end sent a message of this type. All of them are lost. */
static struct {
	const char *type;
	uint64_t ms[2][40];
	uint32_t n[2];
} lost;

static bool note_lost(const struct zrtp_rig *r, int from, const uint8_t *p)
{
	if (memcmp(p + ZRTP_HEADER + 4, lost.type, 8) != 0)
		return false;
	assert_true(lost.n[from] < ARRAY_LEN(lost.ms[0]));
	lost.ms[from][lost.n[from]++] = r->now_ns / 1000000;
	return true;
}

static bool loses_a_type(struct zrtp_rig *r, int to, uint8_t *p, int *len)
{
	(void)len;
	return !note_lost(r, !to, p);
}

/* After the exchange: messages that US repeats until it gives up. */
static void repeats(struct zrtp_rig *r)
{
	uint8_t p[ZRTP_PACKET_MAX];

	while (zrtp_next(r->z[US], p, sizeof(p)) > 0)
		(void)note_lost(r, US, p);
	while (zrtp_deadline(r->z[US]) != UINT64_MAX) {
		r->now_ns = zrtp_deadline(r->z[US]);
		zrtp_tick(r->z[US], r->now_ns);
		while (zrtp_next(r->z[US], p, sizeof(p)) > 0)
			(void)note_lost(r, US, p);
	}
}

static void begin_with_secrets(struct zrtp_rig *r)
{
	r->cfg[US].enrol = true;
	r->cfg[THEM].not_mitm = true;
	r->cfg[US].may_clear = r->cfg[THEM].may_clear = true;
	for (int call = 0; call < 2; call++) {
		call_with_cache(r);
		zrtp_rig_agreed(r);
		if (call == 0) {
			keep(r);
			zrtp_rig_end(r);
		}
	}
}

/* A responder repeats nothing by itself. If the initiator goes away, it gives up, too. */
static void a_responder_gives_up(void **state)
{
	static const char *const last[] = {"DHPart2 ", "Confirm2"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(last); i++) {
		struct zrtp_rig r;
		uint64_t began;

		memset(&lost, 0, sizeof(lost));
		lost.type = last[i];
		zrtp_rig_init(&r);
		r.cfg[US].passive = true;
		r.wire = loses_a_type;
		zrtp_rig_begin(&r);
		began = r.now_ns;
		zrtp_rig_run(&r, 100);
		assert_int_equal(zrtp_state(r.z[US]), ZRTP_AGREEING);
		assert_true(zrtp_deadline(r.z[US]) > began + 10650 * 1000000ull);
		while (zrtp_deadline(r.z[US]) != UINT64_MAX) {
			r.now_ns = zrtp_deadline(r.z[US]);
			zrtp_tick(r.z[US], r.now_ns);
		}
		assert_int_equal(zrtp_state(r.z[US]), ZRTP_FAILED);
		assert_int_equal(zrtp_failure(r.z[US]), ZRTP_FAIL_TIMEOUT);
		assert_true(r.now_ns < began + 13000 * 1000000ull);
		zrtp_rig_end(&r);
	}
}

/* Timer T1 of Hello and T2 of all others: first and longest interval, and how often (RFC 6189 6).
 */
static void each_message_has_its_timer(void **state)
{
	static const uint8_t sas[32] = {1};
	static const struct {
		const char *type;
		uint32_t first_ms, most_ms, times;
	} T[] = {{"Hello   ", 50, 200, 20}, {"Commit  ", 150, 1200, 10},
		{"DHPart2 ", 150, 1200, 10}, {"Confirm2", 150, 1200, 10},
		{"GoClear ", 150, 1200, 10}, {"SASrelay", 150, 1200, 10}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct zrtp_rig r;

		memset(&lost, 0, sizeof(lost));
		lost.type = T[i].type;
		zrtp_rig_init(&r);
		if (i < 4) {
			r.wire = loses_a_type;
			zrtp_rig_begin(&r);
			zrtp_rig_run(&r, 60000);
		} else {
			begin_with_secrets(&r);
			assert_int_equal(i == 4 ? zrtp_clear(r.z[US], r.now_ns)
						: zrtp_relay_sas(r.z[US],
							  &(struct zrtp_far_sas){
								  .hash = sas, .kind = ZRTP_B32},
							  r.now_ns),
				0);
			repeats(&r);
		}
		assert_true(lost.n[US] || lost.n[THEM]);
		for (int side = 0; side < 2; side++) {
			uint64_t step = T[i].first_ms;

			if (!lost.n[side])
				continue;
			assert_int_equal(lost.n[side], 1 + T[i].times);
			for (uint32_t k = 1; k < lost.n[side]; k++) {
				uint64_t gap = lost.ms[side][k] - lost.ms[side][k - 1];

				/* What a timer sends, the rig carries a step later. */
				assert_int_equal(gap, step + (k == 1 && i < 4 ? 10 : 0));
				step = step * 2 < T[i].most_ms ? step * 2 : T[i].most_ms;
			}
		}
		zrtp_rig_end(&r);
	}
}

static void secrets_of_the_last_call_go_on(void **state)
{
	struct zrtp_rig r;

	(void)state;
	zrtp_rig_init(&r);
	call_with_cache(&r);
	zrtp_rig_agreed(&r);
	assert_false(zrtp_mismatched(r.z[US]));
	for (int n = 0; n < 3; n++) {
		keep(&r);
		r.known[US].verified = r.known[THEM].verified = n > 0;
		zrtp_rig_end(&r);
		call_with_cache(&r);
		zrtp_rig_agreed(&r);
		assert_false(zrtp_mismatched(r.z[US]));
		assert_int_equal(zrtp_sas_verified(r.z[US]), n > 0);
	}
	/* One side missed the last call: its rs1 is the other's rs2. */
	keep(&r);
	r.known[THEM].has_rs1 = true;
	memcpy(r.known[THEM].rs1, r.known[THEM].rs2, ZRTP_SECRET);
	r.known[THEM].has_rs2 = false;
	zrtp_rig_end(&r);
	call_with_cache(&r);
	zrtp_rig_agreed(&r);
	assert_false(zrtp_mismatched(r.z[US]) || zrtp_mismatched(r.z[THEM]));
	/* Their secret is another one: both still get keys, and both detect the mismatch. */
	keep(&r);
	memset(r.known[THEM].rs1, 7, ZRTP_SECRET);
	memset(r.known[THEM].rs2, 8, ZRTP_SECRET);
	zrtp_rig_end(&r);
	call_with_cache(&r);
	zrtp_rig_agreed(&r);
	assert_true(zrtp_mismatched(r.z[US]) && zrtp_mismatched(r.z[THEM]));
	zrtp_rig_end(&r);
}

/* Confirm2 never arrives. b: an attacker answers in the responder's place; nothing protects a
 * Conf2ACK. */
static bool loses_confirm2(struct zrtp_rig *r, int to, uint8_t *p, int *len)
{
	uint8_t ack[ZRTP_PACKET_MAX];
	struct zrtp_msg m;

	(void)len;
	if (memcmp(p + ZRTP_HEADER + 4, "Confirm2", 8) != 0)
		return true;
	zrtp_msg_begin(&m, ZRTP_M_CONF2_ACK);
	zrtp_msg_end(&m, 0);
	if (r->b)
		(void)zrtp_take(r->z[!to], ack, zrtp_wrap(ack, &m, 1, 99), r->now_ns);
	return false;
}

/* Calls whose end an attacker suppresses leave a secret in common, and it stays verified. */
static void a_suppressed_confirm2_loses_no_secret(void **state)
{
	struct zrtp_secrets s;
	struct zrtp_rig r;
	uint32_t seconds;

	(void)state;
	for (uint32_t forged = 0; forged < 2; forged++) {
		zrtp_rig_init(&r);
		r.cfg[THEM].passive = true;
		call_with_cache(&r);
		keep(&r);
		r.known[US].verified = r.known[THEM].verified = true;
		r.b = forged;
		r.wire = loses_confirm2;
		for (int call = 0; call < 3; call++) {
			zrtp_rig_end(&r);
			call_with_cache(&r);
			zrtp_rig_run(&r, 30000);
			assert_int_equal(zrtp_state(r.z[US]), ZRTP_OPEN);
			assert_int_equal(zrtp_state(r.z[THEM]), ZRTP_FAILED);
			assert_false(zrtp_mismatched(r.z[US]) || zrtp_mismatched(r.z[THEM]));
			assert_int_equal(zrtp_new_secrets(r.z[THEM], &s, &seconds), -EAGAIN);
			assert_int_equal(
				zrtp_new_secrets(r.z[US], &s, &seconds), forged ? 0 : -EAGAIN);
			if (forged)
				r.known[US] = s;
		}
		r.wire = NULL;
		zrtp_rig_end(&r);
		call_with_cache(&r);
		zrtp_rig_agreed(&r);
		assert_false(zrtp_mismatched(r.z[US]) || zrtp_mismatched(r.z[THEM]));
		assert_true(zrtp_sas_verified(r.z[US]));
		zrtp_rig_end(&r);
	}
}

/* Its Conf2ACK was lost, and not our Confirm2. */
static void authentic_media_confirm_an_exchange(void **state)
{
	struct zrtp_secrets s;
	struct zrtp_rig r;
	uint32_t seconds;

	(void)state;
	for (uint32_t ms = 1000; ms <= 31000; ms += 30000) {
		zrtp_rig_init(&r);
		r.cfg[THEM].passive = true;
		r.wire = loses_each_conf2_ack;
		call_with_cache(&r);
		zrtp_rig_run(&r, ms);
		assert_int_equal(zrtp_new_secrets(r.z[US], &s, &seconds), -EAGAIN);
		zrtp_settle(r.z[US]);
		assert_int_equal(zrtp_state(r.z[US]), ZRTP_OPEN);
		assert_int_equal(zrtp_deadline(r.z[US]), UINT64_MAX);
		keep(&r);
		zrtp_rig_end(&r);
	}
	/* Without keys nothing can be confirmed. */
	zrtp_rig_init(&r);
	zrtp_rig_begin(&r);
	zrtp_settle(r.z[US]);
	assert_int_equal(zrtp_new_secrets(r.z[US], &s, &seconds), -EAGAIN);
	zrtp_rig_run(&r, 1000);
	zrtp_rig_agreed(&r);
	zrtp_rig_end(&r);
}

static void prefer_preshared(struct zrtp_rig *r, int side)
{
	r->prefs[side].n[ZRTP_K_AGREEMENT] = 2;
	r->prefs[side].list[ZRTP_K_AGREEMENT][0] = ZRTP_PRSH;
	r->prefs[side].list[ZRTP_K_AGREEMENT][1] = ZRTP_EC25;
}

/* With other secrets the peer refuses it (Error 0x56), and keys come from public values. */
static void preshared_mode_needs_the_same_secret(void **state)
{
	struct zrtp_rig r;

	(void)state;
	for (int wrong = 0; wrong < 3; wrong++) {
		zrtp_rig_init(&r);
		call_with_cache(&r);
		keep(&r);
		zrtp_rig_end(&r);
		prefer_preshared(&r, US);
		prefer_preshared(&r, THEM);
		r.known[THEM].rs1[0] ^= (uint8_t)(wrong == 1);
		r.known[THEM].has_rs1 = wrong != 2;
		call_with_cache(&r);
		zrtp_rig_agreed(&r);
		assert_string_equal(
			zrtp_algorithm(r.z[US], ZRTP_K_AGREEMENT), wrong ? "EC25" : "Prsh");
		assert_int_equal(zrtp_mismatched(r.z[US]), wrong != 0);
		zrtp_rig_end(&r);
	}
}

/* What both caches say stays true: that users compared the SAS, and that the peer is enrolled. Its
 * secret of the enrolment stays, too. In both roles. */
static void preshared_mode_keeps_what_was_proven(void **state)
{
	static const uint8_t far[32] = {1, 2, 3};
	struct zrtp_secrets s;
	struct zrtp_rig r;
	uint32_t seconds;

	(void)state;
	for (int how = 0; how < 4; how++) {
		zrtp_rig_init(&r);
		r.cfg[US].enrol = true;
		r.cfg[THEM].not_mitm = true;
		call_with_cache(&r);
		keep(&r);
		zrtp_rig_end(&r);
		assert_true(r.known[US].has_pbx && r.known[THEM].has_pbx);
		r.known[US].verified = true;
		r.known[THEM].verified = how & 1;
		r.cfg[US].passive = how & 2;
		r.cfg[THEM].passive = !(how & 2);
		prefer_preshared(&r, US);
		prefer_preshared(&r, THEM);
		call_with_cache(&r);
		zrtp_rig_agreed(&r);
		assert_string_equal(zrtp_algorithm(r.z[US], ZRTP_K_AGREEMENT), "Prsh");
		assert_int_equal(zrtp_initiated(r.z[US]), !(how & 2));
		assert_int_equal(zrtp_sas_verified(r.z[US]), how & 1);
		assert_int_equal(zrtp_sas_verified(r.z[THEM]), how & 1);
		assert_true(zrtp_enrolled(r.z[US]) && zrtp_enrolled(r.z[THEM]));
		assert_int_equal(zrtp_new_secrets(r.z[US], &s, &seconds), 0);
		assert_true(s.verified);
		assert_memory_equal(s.pbx, r.known[US].pbx, ZRTP_SECRET);
		assert_int_equal(
			zrtp_relay_sas(r.z[US],
				&(struct zrtp_far_sas){.hash = far, .kind = ZRTP_B32}, r.now_ns),
			0);
		zrtp_rig_run(&r, 100);
		assert_memory_equal(zrtp_relayed_sas(r.z[THEM]), far, sizeof(far));
		zrtp_rig_end(&r);
	}
}

static bool refuses_each_commit(struct zrtp_rig *r, int to, uint8_t *p, int *len)
{
	uint8_t error[ZRTP_PACKET_MAX];
	struct zrtp_msg m;

	(void)len;
	if (memcmp(p + ZRTP_HEADER + 4, "Commit  ", 8) != 0 || r->a++ > 20)
		return true;
	zrtp_msg_begin(&m, ZRTP_M_ERROR);
	zrtp_msg_add32(&m, ERROR_NO_SECRET);
	zrtp_msg_end(&m, 0);
	(void)zrtp_take(r->z[!to], error, zrtp_wrap(error, &m, 1, 99), r->now_ns);
	return true;
}

static void a_forged_refusal_of_preshared_mode_changes_nothing(void **state)
{
	struct zrtp_rig r;

	(void)state;
	zrtp_rig_init(&r);
	call_with_cache(&r);
	keep(&r);
	zrtp_rig_end(&r);
	prefer_preshared(&r, US);
	prefer_preshared(&r, THEM);
	r.wire = refuses_each_commit;
	call_with_cache(&r);
	zrtp_rig_agreed(&r);
	assert_string_equal(zrtp_algorithm(r.z[US], ZRTP_K_AGREEMENT), "Prsh");
	zrtp_rig_end(&r);
}

/* --- After the exchange ----------------------------------------------------------------------- */

static void a_further_stream_needs_no_public_keys(void **state)
{
	struct zrtp_rig r, more;
	struct srtp_master a[2], b[2];

	(void)state;
	zrtp_rig_init(&r);
	zrtp_rig_begin(&r);
	zrtp_rig_run(&r, 1000);
	zrtp_rig_agreed(&r);
	zrtp_rig_init(&more);
	for (int i = 0; i < 2; i++) {
		more.cfg[i].seed[3] = 9;
		assert_int_equal(zrtp_create(&more.z[i], &more.cfg[i]), 0);
		assert_int_equal(zrtp_multi(more.z[i], r.z[i]), 0);
		zrtp_start(more.z[i], 0);
	}
	zrtp_rig_run(&more, 2000);
	zrtp_rig_agreed(&more);
	assert_string_equal(zrtp_algorithm(more.z[US], ZRTP_K_AGREEMENT), "Mult");
	assert_int_equal(zrtp_keys(r.z[US], &a[0], &a[1]), 0);
	assert_int_equal(zrtp_keys(more.z[US], &b[0], &b[1]), 0);
	assert_memory_not_equal(a[0].key, b[0].key, 16);
	zrtp_rig_end(&r);
	zrtp_rig_end(&more);
}

/* THEM does not commit. */
static bool loses_each_hello_ack(struct zrtp_rig *r, int to, uint8_t *p, int *len)
{
	(void)r;
	(void)len;
	return to == US || memcmp(p + ZRTP_HEADER + 4, "HelloACK", 8) != 0;
}

static void a_further_stream_without_the_secret_falls_back(void **state)
{
	struct zrtp_rig r, more;

	(void)state;
	zrtp_rig_init(&r);
	zrtp_rig_begin(&r);
	zrtp_rig_run(&r, 1000);
	zrtp_rig_init(&more);
	more.wire = loses_each_hello_ack;
	for (int i = 0; i < 2; i++) {
		more.cfg[i].seed[3] = 9;
		assert_int_equal(zrtp_create(&more.z[i], &more.cfg[i]), 0);
	}
	assert_int_equal(zrtp_multi(more.z[US], r.z[US]), 0);
	zrtp_start(more.z[US], 0);
	zrtp_start(more.z[THEM], 0);
	zrtp_rig_run(&more, 2000);
	zrtp_rig_agreed(&more);
	assert_string_equal(zrtp_algorithm(more.z[US], ZRTP_K_AGREEMENT), "EC25");
	zrtp_rig_end(&r);
	zrtp_rig_end(&more);
}

/* Another Hello of a peer, as for another stream. */
static int hello_of(uint8_t p[ZRTP_PACKET_MAX], struct zrtp *z, uint64_t now_ns)
{
	int n;

	zrtp_start(z, now_ns);
	n = zrtp_next(z, p, ZRTP_PACKET_MAX);
	assert_memory_equal(p + ZRTP_HEADER + 4, "Hello   ", 8);
	return n;
}

/* US is killed and restored. The secret is that of an exchange of this hash, or of a stream that
 * uses another one's. */
static void restore_and_add_a_stream(enum zrtp_hash hash)
{
	struct zrtp_rig r, more;
	struct zrtp_secret secret;
	struct srtp_master rx, tx;
	struct zrtp *old;

	zrtp_rig_init(&r);
	zrtp_rig_only(&r, THEM, ZRTP_K_HASH, hash);
	zrtp_rig_begin(&r);
	assert_int_equal(zrtp_secret(r.z[US], &secret), -EAGAIN);
	zrtp_rig_run(&r, 1000);
	zrtp_rig_agreed(&r);
	assert_int_equal(zrtp_secret(r.z[US], &secret), 0);
	for (uint8_t turn = 0; turn < 3; turn++) {
		zrtp_rig_init(&more);
		assert_int_equal(zrtp_create(&old, &r.cfg[US]), 0);
		assert_int_equal(zrtp_restore(old, &secret), 0);
		assert_int_equal(zrtp_state(old), ZRTP_OPEN);
		assert_int_equal(zrtp_keys(old, &rx, &tx), -EAGAIN);
		assert_string_equal(zrtp_sas(old), "");
		for (int i = 0; i < 2; i++) {
			more.cfg[i].seed[3] = (uint8_t)(9 + turn);
			assert_int_equal(zrtp_create(&more.z[i], &more.cfg[i]), 0);
			assert_int_equal(zrtp_multi(more.z[i], i == US ? old : r.z[i]), 0);
			zrtp_start(more.z[i], 0);
		}
		zrtp_rig_run(&more, 2000);
		zrtp_rig_agreed(&more);
		assert_string_equal(zrtp_algorithm(more.z[US], ZRTP_K_AGREEMENT), "Mult");
		/* The second restart takes the secret from the stream. */
		assert_int_equal(zrtp_secret(more.z[US], &secret), 0);
		assert_int_equal(secret.hash, hash);
		zrtp_destroy(old);
		zrtp_rig_end(&more);
	}
	zrtp_rig_end(&r);
}

static void a_restored_secret_serves_further_streams(void **state)
{
	(void)state;
	restore_and_add_a_stream(ZRTP_S256);
	restore_and_add_a_stream(ZRTP_S384);
}

/* A call of an earlier version has no ZRTP keys, and zeroes are no keys. */
static void a_restored_exchange_without_keys_believes_nothing(void **state)
{
	static const uint8_t zeroes[32];
	uint8_t p[ZRTP_PACKET_MAX], mac[ZRTP_MAC];
	struct zrtp_secret secret;
	struct zrtp_msg clear;
	struct zrtp *old, *other;
	struct zrtp_rig r;
	int n;

	(void)state;
	zrtp_rig_init(&r);
	r.cfg[US].may_clear = true;
	zrtp_rig_begin(&r);
	zrtp_rig_run(&r, 1000);
	assert_int_equal(zrtp_secret(r.z[US], &secret), 0);
	assert_int_equal(zrtp_create(&old, &r.cfg[US]), 0);
	assert_true(secret.with_keys);
	secret = (struct zrtp_secret){.known = true, .hash = secret.hash};
	memcpy(secret.zid, zrtp_peer_zid(r.z[US]), sizeof(secret.zid));
	memcpy(secret.h3, r.z[US]->peer.hello.b + HELLO_H3, sizeof(secret.h3));
	assert_int_equal(zrtp_restore(old, &(struct zrtp_secret){0}), -EINVAL);
	secret.hash = ZRTP_HASH_N;
	assert_int_equal(zrtp_restore(old, &secret), -EINVAL);
	secret.hash = ZRTP_S256;
	assert_int_equal(zrtp_restore(old, &secret), 0);
	assert_int_equal(zrtp_restore(old, &secret), -EAGAIN);
	assert_int_equal(zrtp_mac(mac, ZRTP_MAC, ZRTP_S256, (struct zrtp_part){zeroes, 32},
				 (struct zrtp_part){"GoClear ", 8}),
		0);
	zrtp_msg_begin(&clear, ZRTP_M_GOCLEAR);
	zrtp_msg_end(&clear, ZRTP_MAC);
	zrtp_msg_add(&clear, mac, ZRTP_MAC);
	assert_int_equal(zrtp_take(old, p, zrtp_wrap(p, &clear, 7, 1), r.now_ns), -EBADMSG);
	assert_int_equal(zrtp_state(old), ZRTP_OPEN);
	assert_int_equal(zrtp_clear(old, r.now_ns), -EAGAIN);
	assert_int_equal(
		zrtp_relay_sas(
			old, &(struct zrtp_far_sas){.hash = zeroes, .kind = ZRTP_B32}, r.now_ns),
		-EAGAIN);
	assert_int_equal(zrtp_next(old, p, sizeof(p)), 0);
	/* The terminal's old Hello, late, is not another stream; a new one is. */
	for (uint8_t seed = 0; seed < 2; seed++) {
		struct zrtp_config c = r.cfg[THEM];

		c.zid = zrtp_peer_zid(r.z[US]);
		c.seed[9] ^= seed;
		assert_int_equal(zrtp_create(&other, &c), 0);
		n = hello_of(p, other, r.now_ns);
		assert_int_equal(zrtp_begins_another(old, p, (size_t)n), seed);
		zrtp_destroy(other);
	}
	zrtp_destroy(old);
	zrtp_rig_end(&r);
}

/* Puts another exchange in the place of z, which has what z saved. */
static void restart(struct zrtp_rig *r, int who)
{
	struct zrtp_secret before, after;

	assert_int_equal(zrtp_secret(r->z[who], &before), 0);
	zrtp_destroy(r->z[who]);
	assert_int_equal(zrtp_create(&r->z[who], &r->cfg[who]), 0);
	assert_int_equal(zrtp_restore(r->z[who], &before), 0);
	assert_true(zrtp_is_restored(r->z[who]));
	assert_int_equal(zrtp_secret(r->z[who], &after), 0);
	assert_memory_equal(&after, &before, sizeof(after));
}

/* In either role, also again after the next restart, because a ClearACK may be lost. */
static void a_restored_exchange_takes_goclear(void **state)
{
	struct zrtp_secret secret[2];
	struct srtp_master rx, tx;
	struct zrtp_rig r;

	(void)state;
	for (int initiates = 0; initiates < 2; initiates++) {
		zrtp_rig_init(&r);
		r.cfg[THEM].may_clear = r.cfg[US].may_clear = true;
		r.cfg[initiates ? THEM : US].passive = true;
		zrtp_rig_begin(&r);
		zrtp_rig_run(&r, 1000);
		zrtp_rig_agreed(&r);
		assert_int_equal(zrtp_initiated(r.z[US]), initiates);
		for (int turn = 0; turn < 2; turn++) {
			restart(&r, US);
			r.z[THEM]->phase = PH_OPEN;
			assert_int_equal(zrtp_clear(r.z[THEM], r.now_ns), 0);
			if (turn) /* it repeats its GoClear, and its secret is that already */
				memcpy(r.z[THEM]->s.sess, secret[US].sess, 32);
			zrtp_rig_run(&r, 100);
			assert_in_range(r.z[THEM]->timer.left, 0, 2); /* acknowledged */
			assert_int_equal(zrtp_state(r.z[US]), ZRTP_CLEAR);
			assert_int_equal(zrtp_keys(r.z[US], &rx, &tx), -EAGAIN);
			for (int i = 0; i < 2; i++)
				assert_int_equal(zrtp_secret(r.z[i], &secret[i]), 0);
			assert_memory_equal(secret[US].sess, secret[THEM].sess, 32);
			assert_true(secret[US].cleared);
		}
		zrtp_rig_end(&r);
	}
}

static void a_restored_exchange_relays_the_far_sas(void **state)
{
	static const uint8_t hash[2][32] = {{1, 2}, {3, 4}};
	struct zrtp_rig r;

	(void)state;
	for (int enrolled = 0; enrolled < 2; enrolled++) {
		zrtp_rig_init(&r);
		r.cfg[US].enrol = true;
		r.cfg[THEM].not_mitm = true;
		call_with_cache(&r);
		zrtp_rig_agreed(&r);
		if (enrolled) {
			/* The next call of the same two. */
			keep(&r);
			zrtp_rig_end(&r);
			call_with_cache(&r);
			zrtp_rig_agreed(&r);
		}
		restart(&r, US);
		for (int turn = 0; turn < 2; turn++) {
			assert_int_equal(zrtp_relay_sas(r.z[US],
						 &(struct zrtp_far_sas){
							 .hash = hash[turn], .kind = ZRTP_B32},
						 r.now_ns),
				enrolled ? 0 : -EPERM);
			zrtp_rig_run(&r, 100);
			assert_in_range(r.z[US]->timer.left, 0, 2);
			if (enrolled)
				assert_memory_equal(
					zrtp_relayed_sas(r.z[THEM]), hash[turn], sizeof(hash[0]));
			else
				assert_null(zrtp_relayed_sas(r.z[THEM]));
		}
		zrtp_rig_end(&r);
	}
}

/* Fields of a PingACK (5.16): version, our endpoint hash, the sender's, and its SSRC. */
static void a_ping_is_answered(void **state)
{
	uint8_t p[ZRTP_PACKET_MAX], ours[8];
	struct zrtp_msg ping;
	struct zrtp_rig r;

	(void)state;
	zrtp_rig_init(&r);
	zrtp_rig_begin(&r);
	for (int turn = 0; turn < 2; turn++) {
		while (zrtp_next(r.z[US], p, sizeof(p)) > 0)
			continue;
		zrtp_msg_begin(&ping, ZRTP_M_PING);
		zrtp_msg_add(&ping, "1.10ENDPOINT", 12);
		zrtp_msg_end(&ping, 0);
		assert_int_equal(
			zrtp_take(r.z[US], p, zrtp_wrap(p, &ping, 7, 0xabcd0123), r.now_ns), 0);
		assert_int_equal(zrtp_next(r.z[US], p, sizeof(p)), ZRTP_HEADER + 36 + ZRTP_CRC);
		assert_memory_equal(p + ZRTP_HEADER + 4, "PingACK 1.10", 12);
		assert_memory_equal(p + ZRTP_HEADER + 24, "ENDPOINT", 8);
		assert_int_equal(be32(p + ZRTP_HEADER + 32), 0xabcd0123);
		if (turn)
			assert_memory_equal(p + ZRTP_HEADER + 16, ours, sizeof(ours));
		memcpy(ours, p + ZRTP_HEADER + 16, sizeof(ours));
		zrtp_rig_run(&r, 1000);
		zrtp_rig_agreed(&r);
	}
	zrtp_rig_end(&r);
}

static void goclear_is_refused_unless_it_is_allowed(void **state)
{
	struct zrtp_rig r;
	struct srtp_master rx, tx;

	(void)state;
	for (int allowed = 0; allowed < 2; allowed++) {
		zrtp_rig_init(&r);
		r.cfg[THEM].may_clear = allowed;
		zrtp_rig_begin(&r);
		zrtp_rig_run(&r, 1000);
		zrtp_rig_agreed(&r);
		assert_int_equal(zrtp_clear(r.z[US], r.now_ns), allowed ? 0 : -EPERM);
		assert_int_equal(zrtp_clear(r.z[THEM], r.now_ns), -EPERM);
		zrtp_rig_run(&r, 100);
		assert_int_equal(zrtp_state(r.z[THEM]), allowed ? ZRTP_CLEAR : ZRTP_OPEN);
		assert_int_equal(zrtp_keys(r.z[THEM], &rx, &tx), allowed ? -EAGAIN : 0);
		zrtp_rig_end(&r);
	}
}

/* Both ends replace the secret for further streams (4.7.2.1). The SAS stays. */
static void goclear_leaves_another_secret(void **state)
{
	struct zrtp_secret before, after[2];
	char sas[ZRTP_SAS_MAX];
	struct zrtp_rig r;

	(void)state;
	zrtp_rig_init(&r);
	r.cfg[THEM].may_clear = true;
	zrtp_rig_begin(&r);
	zrtp_rig_run(&r, 1000);
	zrtp_rig_agreed(&r);
	assert_int_equal(zrtp_secret(r.z[US], &before), 0);
	snprintf(sas, sizeof(sas), "%s", zrtp_sas(r.z[US]));
	assert_int_equal(zrtp_clear(r.z[US], r.now_ns), 0);
	zrtp_rig_run(&r, 100);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(zrtp_secret(r.z[i], &after[i]), 0);
		assert_string_equal(zrtp_sas(r.z[i]), sas);
	}
	assert_memory_equal(after[US].sess, after[THEM].sess, 32);
	assert_memory_not_equal(after[US].sess, before.sess, 32);
	zrtp_rig_end(&r);
}

/* 7.3.1: the flags E and A exclude each other. */
static void an_enrolment_does_not_allow_goclear(void **state)
{
	struct zrtp_rig r;

	(void)state;
	zrtp_rig_init(&r);
	r.cfg[US].enrol = r.cfg[US].may_clear = true;
	r.cfg[THEM].not_mitm = true;
	call_with_cache(&r);
	zrtp_rig_agreed(&r);
	assert_int_equal(zrtp_clear(r.z[THEM], r.now_ns), -EPERM);
	zrtp_rig_end(&r);
}

/* 4.9.1: without a cache we do not ask the peer to keep a secret. */
static void who_keeps_no_secrets_asks_for_none(void **state)
{
	for (int cached = 0; cached < 2; cached++) {
		struct zrtp_secrets s;
		struct zrtp_rig r;
		uint32_t seconds;

		(void)state;
		zrtp_rig_init(&r);
		r.cfg[US].cache = cached;
		r.cfg[THEM].cache = true;
		zrtp_rig_begin(&r);
		zrtp_rig_run(&r, 1000);
		zrtp_rig_agreed(&r);
		assert_int_equal(zrtp_new_secrets(r.z[THEM], &s, &seconds), 0);
		assert_int_equal(seconds, cached ? UINT32_MAX : 0);
		zrtp_rig_end(&r);
	}
}

/* 4.1.1: HelloACK for each version, and an Error for a lower one. The exchange goes on. */
static void a_hello_of_another_version_is_answered(void **state)
{
	static const char *const version[] = {"1.00", "0.95", "1.20", "2.00"};

	(void)state;
	for (uint32_t i = 0; i < ARRAY_LEN(version); i++) {
		uint8_t p[ZRTP_PACKET_MAX];
		struct zrtp_msg m;
		struct zrtp_rig r;

		zrtp_rig_init(&r);
		zrtp_rig_begin(&r);
		m.len = (uint16_t)(hello_of(p, r.z[US], r.now_ns) - (int)(ZRTP_HEADER + ZRTP_CRC));
		memcpy(m.b, p + ZRTP_HEADER, m.len);
		memcpy(m.b + ZRTP_PREAMBLE, version[i], 4);
		assert_int_equal(
			zrtp_take(r.z[US], p, zrtp_wrap(p, &m, 7, 0xabcd0123), r.now_ns), 0);
		assert_int_equal(zrtp_next(r.z[US], p, sizeof(p)), ZRTP_HEADER + 12 + ZRTP_CRC);
		assert_memory_equal(p + ZRTP_HEADER + 4, "HelloACK", 8);
		if (i < 2) {
			assert_int_equal(
				zrtp_next(r.z[US], p, sizeof(p)), ZRTP_HEADER + 16 + ZRTP_CRC);
			assert_memory_equal(p + ZRTP_HEADER + 4, "Error   \0\0\0\x30", 12);
		}
		assert_int_equal(zrtp_next(r.z[US], p, sizeof(p)), 0);
		zrtp_rig_run(&r, 1000);
		zrtp_rig_agreed(&r);
		zrtp_rig_end(&r);
	}
}

/* RFC 6189 5.15, 5.16: version, endpoint hashes of both, SSRC of the Ping. In any state. */
static void a_ping_is_answered_with_its_own_fields(void **state)
{
	static const uint8_t hash[8] = {0xa1, 0xb2, 0xc3, 0xd4, 0xe5, 0xf6, 0x07, 0x18};
	uint8_t ping[ZRTP_PACKET_MAX], got[2][ZRTP_PACKET_MAX], *ack;
	struct zrtp_rig r;
	struct zrtp_msg m;
	uint32_t len;

	(void)state;
	zrtp_rig_init(&r);
	zrtp_rig_begin(&r);
	zrtp_msg_begin(&m, ZRTP_M_PING);
	zrtp_msg_add(&m, "1.10", 4);
	zrtp_msg_add(&m, hash, sizeof(hash));
	zrtp_msg_end(&m, 0);
	assert_int_equal(m.len, 24);
	len = zrtp_wrap(ping, &m, 7, 0x8badf00d);
	for (int open = 0; open < 2; open++) {
		const uint8_t *p;
		enum zrtp_message type;
		uint32_t n;
		int size;

		while (zrtp_next(r.z[US], got[0], sizeof(got[0])) > 0)
			;
		assert_int_equal(zrtp_take(r.z[US], ping, len, r.now_ns), 0);
		size = zrtp_next(r.z[US], got[open], sizeof(got[open]));
		assert_int_equal(size, ZRTP_HEADER + 36 + ZRTP_CRC);
		assert_int_equal(zrtp_parse(&type, &p, &n, got[open], (size_t)size), 0);
		assert_int_equal(type, ZRTP_M_PING_ACK);
		assert_int_equal(n, 36);
		ack = got[open] + ZRTP_HEADER;
		assert_memory_equal(ack, "\x50\x5a\x00\x09PingACK 1.10", 16);
		assert_memory_equal(ack + 24, hash, sizeof(hash));
		assert_int_equal(be32(ack + 32), 0x8badf00d);
		zrtp_rig_run(&r, 1000);
	}
	assert_true(zrtp_rig_open(&r));
	/* Our endpoint hash names this end, and nobody else. */
	assert_memory_equal(got[0] + ZRTP_HEADER + 16, got[1] + ZRTP_HEADER + 16, 8);
	assert_int_equal(zrtp_take(r.z[THEM], ping, len, r.now_ns), 0);
	assert_int_equal(zrtp_next(r.z[THEM], got[0], sizeof(got[0])), ZRTP_HEADER + 36 + ZRTP_CRC);
	assert_memory_not_equal(got[0] + ZRTP_HEADER + 16, got[1] + ZRTP_HEADER + 16, 8);
	zrtp_rig_end(&r);
}

static void the_far_sas_goes_to_an_enrolled_terminal_only(void **state)
{
	static const uint8_t far[32] = {1, 2, 3};
	struct zrtp_rig r;

	(void)state;
	zrtp_rig_init(&r);
	r.cfg[US].enrol = true;
	r.cfg[THEM].not_mitm = true;
	call_with_cache(&r);
	zrtp_rig_agreed(&r);
	assert_int_equal(zrtp_relay_sas(r.z[US],
				 &(struct zrtp_far_sas){.hash = far, .kind = ZRTP_B32}, r.now_ns),
		-EPERM);
	keep(&r);
	zrtp_rig_end(&r);
	call_with_cache(&r);
	zrtp_rig_agreed(&r);
	assert_null(zrtp_relayed_sas(r.z[THEM]));
	assert_int_equal(zrtp_relay_sas(r.z[US],
				 &(struct zrtp_far_sas){.hash = far, .kind = ZRTP_B32}, r.now_ns),
		0);
	assert_int_not_equal(zrtp_deadline(r.z[US]), UINT64_MAX);
	zrtp_rig_run(&r, 100);
	assert_memory_equal(zrtp_relayed_sas(r.z[THEM]), far, sizeof(far));
	zrtp_rig_end(&r);
}

static uint32_t sent; /* SASrelays; the first ones are lost */

static bool loses_two(struct zrtp_rig *r, int to, uint8_t *p, int *len)
{
	(void)r;
	(void)len;
	return to == US || memcmp(p + ZRTP_HEADER + 4, "SASrelay", 8) != 0 || ++sent > 2;
}

/* RelayACK and ClearACK have no MAC. A forged one does not keep the SAS from the terminal: SASrelay
 * is sent three times at least. The terminal's own ends it then. */
static void a_forged_acknowledgement_ends_nothing(void **state)
{
	static const uint8_t far[32] = {1, 2, 3};
	static const enum zrtp_message acks[] = {ZRTP_M_RELAY_ACK, ZRTP_M_CLEAR_ACK};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(acks); i++) {
		uint8_t ack[ZRTP_PACKET_MAX];
		struct zrtp_msg m;
		struct zrtp_rig r;
		uint32_t n;

		zrtp_msg_begin(&m, acks[i]);
		zrtp_msg_end(&m, 0);
		n = zrtp_wrap(ack, &m, 1, 99);
		zrtp_rig_init(&r);
		begin_with_secrets(&r);
		sent = 0;
		r.wire = loses_two;
		assert_int_equal(
			zrtp_relay_sas(r.z[US],
				&(struct zrtp_far_sas){.hash = far, .kind = ZRTP_B32}, r.now_ns),
			0);
		for (uint32_t ms = 0; ms < 20000; ms += 10) {
			if (!zrtp_relayed_sas(r.z[THEM]))
				(void)zrtp_take(r.z[US], ack, n, r.now_ns);
			zrtp_rig_run(&r, 10);
			for (int side = 0; side < 2; side++)
				zrtp_tick(r.z[side], r.now_ns);
			r.now_ns += 10000000ull;
		}
		assert_non_null(zrtp_relayed_sas(r.z[THEM]));
		assert_memory_equal(zrtp_relayed_sas(r.z[THEM]), far, sizeof(far));
		assert_int_equal(sent, 3);
		assert_int_equal(zrtp_deadline(r.z[US]), UINT64_MAX);
		zrtp_rig_end(&r);
	}
}

/* The D flag of Confirm, in either role, and that of the far side, which an enrolled terminal gets
 * by SASrelay. */
static void who_may_disclose_says_so(void **state)
{
	static const uint8_t hash[32] = {1, 2, 3};
	struct zrtp_rig r;

	(void)state;
	for (int who = 0; who < 2; who++) {
		zrtp_rig_init(&r);
		r.cfg[who].disclose = true;
		zrtp_rig_begin(&r);
		zrtp_rig_run(&r, 1000);
		zrtp_rig_agreed(&r);
		assert_int_equal(zrtp_peer_discloses(r.z[US]), who == THEM);
		assert_int_equal(zrtp_peer_discloses(r.z[THEM]), who == US);
		zrtp_rig_end(&r);
	}
	for (int far = 0; far < 2; far++) {
		zrtp_rig_init(&r);
		r.cfg[US].enrol = true;
		r.cfg[THEM].not_mitm = true;
		call_with_cache(&r);
		zrtp_rig_agreed(&r);
		keep(&r);
		zrtp_rig_end(&r);
		call_with_cache(&r);
		zrtp_rig_agreed(&r);
		assert_int_equal(zrtp_relay_sas(r.z[US],
					 &(struct zrtp_far_sas){
						 .hash = hash, .kind = ZRTP_B32, .discloses = far},
					 r.now_ns),
			0);
		zrtp_rig_run(&r, 100);
		assert_non_null(zrtp_relayed_sas(r.z[THEM]));
		assert_int_equal(zrtp_peer_discloses(r.z[THEM]), far);
		zrtp_rig_end(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(checksum_and_hash_are_those_of_the_rfc),
		cmocka_unit_test(each_combination_of_algorithms_agrees),
		cmocka_unit_test(a_peer_that_wants_words_gets_words),
		cmocka_unit_test(the_preferred_algorithms_are_chosen),
		cmocka_unit_test(lost_packets_are_sent_again),
		cmocka_unit_test(each_message_has_its_timer),
		cmocka_unit_test(a_responder_gives_up),
		cmocka_unit_test(an_initiator_has_keys_before_the_last_acknowledgement),
		cmocka_unit_test(doubled_packets_change_nothing),
		cmocka_unit_test(nobody_answers),
		cmocka_unit_test(a_bound_hello_is_the_only_one),
		cmocka_unit_test(secrets_of_the_last_call_go_on),
		cmocka_unit_test(a_suppressed_confirm2_loses_no_secret),
		cmocka_unit_test(authentic_media_confirm_an_exchange),
		cmocka_unit_test(preshared_mode_needs_the_same_secret),
		cmocka_unit_test(preshared_mode_keeps_what_was_proven),
		cmocka_unit_test(a_forged_refusal_of_preshared_mode_changes_nothing),
		cmocka_unit_test(a_further_stream_needs_no_public_keys),
		cmocka_unit_test(a_further_stream_without_the_secret_falls_back),
		cmocka_unit_test(a_restored_secret_serves_further_streams),
		cmocka_unit_test(a_restored_exchange_without_keys_believes_nothing),
		cmocka_unit_test(a_restored_exchange_takes_goclear),
		cmocka_unit_test(a_restored_exchange_relays_the_far_sas),
		cmocka_unit_test(a_ping_is_answered),
		cmocka_unit_test(goclear_is_refused_unless_it_is_allowed),
		cmocka_unit_test(goclear_leaves_another_secret),
		cmocka_unit_test(an_enrolment_does_not_allow_goclear),
		cmocka_unit_test(who_keeps_no_secrets_asks_for_none),
		cmocka_unit_test(a_hello_of_another_version_is_answered),
		cmocka_unit_test(a_ping_is_answered_with_its_own_fields),
		cmocka_unit_test(the_far_sas_goes_to_an_enrolled_terminal_only),
		cmocka_unit_test(a_forged_acknowledgement_ends_nothing),
		cmocka_unit_test(who_may_disclose_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
