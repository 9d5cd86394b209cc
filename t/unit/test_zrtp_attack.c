/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ZRTP with somebody on the wire: changed, forged and foreign packets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "keying/zrtp_int.h"
#include "zrtp_rig.h"

static void reseal(uint8_t *p, int len)
{
	uint32_t crc = zrtp_crc(p, (size_t)len - ZRTP_CRC);

	for (int i = 0; i < 4; i++)
		p[len - 4 + i] = (uint8_t)(crc >> 8 * i);
}

/* r->a: the byte of the message to change, r->b: how often one of this type passed. */
static const char *tampered;

static bool changes_a_byte(struct zrtp_rig *r, int to, uint8_t *p, int *len)
{
	(void)to;
	if (memcmp(p + ZRTP_HEADER + 4, tampered, 8) != 0 ||
		r->a >= (uint32_t)*len - ZRTP_HEADER - ZRTP_CRC)
		return true;
	p[ZRTP_HEADER + r->a] ^= 0x40;
	r->b++;
	reseal(p, *len);
	return true;
}

/* A changed byte never leads to keys that differ, or to an open side with a forged peer. */
static void no_changed_byte_leads_to_other_keys(void **state)
{
	static const char *const type[] = {
		"Hello   ", "Commit  ", "DHPart1 ", "DHPart2 ", "Confirm1", "Confirm2"};
	struct srtp_master rx[2], tx[2];
	struct zrtp_rig r;
	uint32_t opened = 0, tried = 0;

	(void)state;
	for (uint32_t t = 0; t < ARRAY_LEN(type); t++)
		for (uint32_t at = 0; at < 160; at++) {
			zrtp_rig_init(&r);
			tampered = type[t];
			r.wire = changes_a_byte;
			r.a = at;
			zrtp_rig_begin(&r);
			zrtp_rig_run(&r, 3000);
			if (r.b) {
				tried++;
				opened += zrtp_rig_open(&r);
				for (int i = 0; i < 2; i++)
					memset(&rx[i], i, sizeof(rx[i]));
				if (zrtp_keys(r.z[US], &rx[US], &tx[US]) == 0 &&
					zrtp_keys(r.z[THEM], &rx[THEM], &tx[THEM]) == 0)
					assert_memory_equal(&rx[US], &tx[THEM], sizeof(rx[0]));
			}
			zrtp_rig_end(&r);
		}
	assert_true(tried > 600);
	assert_int_equal(opened, 0);
}

/* A man in the middle who has keys of his own agrees with both, and both see another SAS. */
static void a_man_in_the_middle_shows_in_the_sas(void **state)
{
	struct zrtp_rig a, b;

	(void)state;
	zrtp_rig_init(&a);
	zrtp_rig_init(&b);
	b.cfg[US].seed[5] = 5;
	b.cfg[THEM].seed[5] = 6;
	zrtp_rig_begin(&a);
	zrtp_rig_begin(&b);
	zrtp_rig_run(&a, 1000);
	zrtp_rig_run(&b, 1000);
	zrtp_rig_agreed(&a);
	zrtp_rig_agreed(&b);
	assert_string_not_equal(zrtp_sas(a.z[US]), zrtp_sas(b.z[US]));
	zrtp_rig_end(&a);
	zrtp_rig_end(&b);
}

static void send_forged(struct zrtp *z, enum zrtp_message type, uint32_t more, uint64_t now_ns)
{
	uint8_t p[ZRTP_PACKET_MAX];
	struct zrtp_msg m;

	zrtp_msg_begin(&m, type);
	zrtp_msg_add(&m, NULL, more);
	for (uint32_t i = ZRTP_PREAMBLE; i < m.len; i++)
		m.b[i] = (uint8_t)rand();
	zrtp_msg_end(&m, 0);
	(void)zrtp_take(z, p, zrtp_wrap(p, &m, 1, 99), now_ns);
}

static bool forges_before_each(struct zrtp_rig *r, int to, uint8_t *p, int *len)
{
	(void)p;
	(void)len;
	for (int i = 0; i < 3 && r->a < 300; i++, r->a++) {
		send_forged(r->z[to], ZRTP_M_COMMIT, 104, r->now_ns);
		send_forged(r->z[to], ZRTP_M_DHPART1, 136, r->now_ns);
		send_forged(r->z[to], ZRTP_M_DHPART2, 136, r->now_ns);
		send_forged(r->z[to], ZRTP_M_CONFIRM1, 64, r->now_ns);
		send_forged(r->z[to], ZRTP_M_CONFIRM2, 64, r->now_ns);
		send_forged(r->z[to], ZRTP_M_ERROR, 4, r->now_ns);
		send_forged(r->z[to], ZRTP_M_GOCLEAR, 8, r->now_ns);
		send_forged(r->z[to], ZRTP_M_SASRELAY, 64, r->now_ns);
		send_forged(r->z[to], ZRTP_M_PING, 12, r->now_ns);
	}
	return true;
}

static void forged_messages_end_nothing(void **state)
{
	struct zrtp_rig r;

	(void)state;
	zrtp_rig_init(&r);
	r.wire = forges_before_each;
	r.cfg[US].may_clear = true;
	zrtp_rig_begin(&r);
	zrtp_rig_run(&r, 20000);
	zrtp_rig_agreed(&r);
	r.a = 0;
	(void)forges_before_each(&r, US, NULL, NULL);
	(void)forges_before_each(&r, THEM, NULL, NULL);
	zrtp_rig_agreed(&r);
	zrtp_rig_end(&r);
}

/* A stranger's Hello arrives first, and often; the true peer's hash chain wins. */
static uint8_t strangers[ZRTP_PACKET_MAX];
static int strangers_len;

static bool adds_a_strangers_hello(struct zrtp_rig *r, int to, uint8_t *p, int *len)
{
	(void)p;
	(void)len;
	if (to == US && r->b < r->a && ++r->b)
		(void)zrtp_take(r->z[US], strangers, (size_t)strangers_len, r->now_ns);
	return true;
}

static void a_strangers_hello_does_not_keep_the_peer_out(void **state)
{
	struct zrtp_config c = {.ssrc = 5, .seed = {42}};
	struct zrtp *z;
	struct zrtp_rig r;

	(void)state;
	assert_int_equal(zrtp_create(&z, &c), 0);
	zrtp_start(z, 0);
	strangers_len = zrtp_next(z, strangers, sizeof(strangers));
	assert_true(strangers_len > 0);
	zrtp_destroy(z);
	for (uint32_t n = 1; n < 12; n++) {
		zrtp_rig_init(&r);
		r.wire = adds_a_strangers_hello;
		r.a = n;
		zrtp_rig_begin(&r);
		zrtp_rig_run(&r, 60000);
		zrtp_rig_agreed(&r);
		zrtp_rig_end(&r);
	}
}

/* Our Commit to a stranger with another ZID gets no answer. Then the cache is asked for the secrets
 * of the peer: those of the stranger would hide that they do not match. */
static void after_a_strangers_hello_the_peers_secrets_count(void **state)
{
	uint8_t p[ZRTP_PACKET_MAX], ack[ZRTP_PACKET_MAX];
	struct zrtp_msg m;
	struct zrtp_rig r;
	int n;

	(void)state;
	zrtp_rig_init(&r);
	r.cfg[US].cache = true;
	zrtp_rig_begin(&r);
	(void)zrtp_take(r.z[US], strangers, (size_t)strangers_len, 0);
	zrtp_msg_begin(&m, ZRTP_M_HELLO_ACK);
	zrtp_msg_end(&m, 0);
	n = zrtp_wrap(ack, &m, 1, 99);
	(void)zrtp_take(r.z[US], ack, (size_t)n, 0);
	assert_int_equal(zrtp_state(r.z[US]), ZRTP_WANTS_SECRETS);
	zrtp_secrets(r.z[US], NULL, 0);
	assert_int_equal(r.z[US]->phase, PH_COMMIT);
	n = zrtp_next(r.z[THEM], p, sizeof(p));
	(void)zrtp_take(r.z[US], p, (size_t)n, 0);
	for (int i = 0; i < 100 && memcmp(r.z[US]->peer.zid, r.z[THEM]->me.zid, ZRTP_ZID); i++) {
		zrtp_tick(r.z[US], zrtp_deadline(r.z[US]));
		while (zrtp_next(r.z[US], p, sizeof(p)) > 0)
			continue;
	}
	assert_memory_equal(r.z[US]->peer.zid, r.z[THEM]->me.zid, ZRTP_ZID);
	assert_int_equal(zrtp_state(r.z[US]), ZRTP_WANTS_SECRETS);
	zrtp_secrets(r.z[US], NULL, 0);
	assert_int_equal(r.z[US]->phase, PH_COMMIT);
	assert_true(zrtp_deadline(r.z[US]) != UINT64_MAX);
	zrtp_rig_end(&r);
}

/* A Hello with a chain that nobody has. */
static void forge_hello(struct zrtp *z, uint32_t number, uint64_t now_ns)
{
	uint8_t p[ZRTP_PACKET_MAX];
	struct zrtp_msg m = {.len = (uint16_t)((size_t)strangers_len - ZRTP_HEADER - ZRTP_CRC)};

	memcpy(m.b, strangers + ZRTP_HEADER, m.len);
	put_be32(m.b + HELLO_H3, number);
	(void)zrtp_take(z, p, zrtp_wrap(p, &m, 1, 99), now_ns);
}

/* r->a of them before the peer's Hello, r->b before its next message. */
static bool forges_hellos(struct zrtp_rig *r, int to, uint8_t *p, int *len)
{
	bool hello = memcmp(p + ZRTP_HEADER + 4, "Hello   ", 8) == 0;
	uint32_t *n = hello ? &r->a : &r->b;

	(void)len;
	if (to == US && memcmp(p + ZRTP_HEADER + 4, "HelloACK", 8) != 0)
		for (; *n; (*n)--)
			forge_hello(r->z[US], *n << 8 | (uint32_t)hello, r->now_ns);
	return true;
}

/* Of those that came before the peer's, any number; of those between its Hello and its Commit,
 * seven, or any number if it was among the first. */
static void forged_hellos_do_not_displace_the_peers(void **state)
{
	static const struct {
		uint32_t before, after;
	} of[] = {{0, 1}, {0, 5}, {0, 200}, {5, 200}, {200, 5}, {200, 7}};
	struct zrtp_rig r;

	(void)state;
	assert_true(strangers_len > 0);
	for (uint32_t i = 0; i < ARRAY_LEN(of); i++)
		for (int cached = 0; cached < 2; cached++) {
			zrtp_rig_init(&r);
			r.wire = forges_hellos;
			r.cfg[US].passive = true;
			r.cfg[US].cache = cached;
			r.a = of[i].before;
			r.b = of[i].after;
			zrtp_rig_begin(&r);
			zrtp_rig_run(&r, 20000);
			assert_int_equal(r.a + r.b, 0);
			zrtp_rig_agreed(&r);
			zrtp_rig_end(&r);
		}
}

/* Commits that come after the peer's: of strangers with Hellos and chains of their own, and, if one
 * of them sees the peer's Commit, copies of it with other contents. */
static struct zrtp *stranger[3];
static bool copies;

static void pass(struct zrtp *from, struct zrtp *to, uint64_t now_ns)
{
	uint8_t p[ZRTP_PACKET_MAX];
	int n;

	while ((n = zrtp_next(from, p, sizeof(p))) > 0)
		(void)zrtp_take(to, p, (size_t)n, now_ns);
}

static bool forges_commits(struct zrtp_rig *r, int to, uint8_t *p, int *len)
{
	uint8_t copy[ZRTP_PACKET_MAX], ours[ZRTP_PACKET_MAX];
	struct zrtp *us = r->z[US];
	struct zrtp_msg ack;

	if (to != US || r->b || memcmp(p + ZRTP_HEADER + 4, "Commit  ", 8) != 0)
		return true;
	r->b = 1;
	(void)zrtp_take(us, p, (size_t)*len, r->now_ns);
	memcpy(copy, p, (size_t)*len);
	for (uint32_t i = 0; copies && i < 6; i++) {
		copy[ZRTP_HEADER + (i < 5 ? COMMIT_HVI : COMMIT_ALGS)] ^= (uint8_t)(i + 1);
		reseal(copy, *len);
		(void)zrtp_take(us, copy, (size_t)*len, r->now_ns);
	}
	zrtp_msg_begin(&ack, ZRTP_M_HELLO_ACK);
	zrtp_msg_end(&ack, 0);
	for (uint32_t i = 0; i < ARRAY_LEN(stranger) && !copies; i++) {
		size_t n = zrtp_wrap(ours, &us->me.hello, 1, 99);

		(void)zrtp_take(stranger[i], ours, n, r->now_ns);
		n = zrtp_wrap(ours, &ack, 1, 99);
		(void)zrtp_take(stranger[i], ours, n, r->now_ns);
		/* With a cache, the first Commit has it asked for the secrets. */
		for (int turn = 0; turn < 2; turn++) {
			pass(stranger[i], us, r->now_ns);
			if (zrtp_state(us) == ZRTP_WANTS_SECRETS)
				zrtp_secrets(us, NULL, r->now_ns);
			zrtp_tick(stranger[i], r->now_ns + 1000000000);
		}
	}
	while (zrtp_next(us, ours, sizeof(ours)) > 0)
		continue;
	return true; /* the peer's Commit once more, as if it was repeated */
}

static void forged_commits_do_not_displace_the_peers(void **state)
{
	struct zrtp_rig r;

	(void)state;
	for (int how = 0; how < 4; how++) {
		zrtp_rig_init(&r);
		r.wire = forges_commits;
		r.cfg[US].passive = true;
		r.cfg[US].cache = r.cfg[THEM].cache = how & 1;
		copies = how & 2;
		for (uint8_t i = 0; i < ARRAY_LEN(stranger); i++) {
			struct zrtp_prefs prefs;
			struct zrtp_config c = {.seed = {91, i}, .prefs = &prefs};

			zrtp_prefs_all(&prefs);
			prefs.n[ZRTP_K_AGREEMENT] = 1;
			prefs.list[ZRTP_K_AGREEMENT][0] = i == 1 ? ZRTP_X255 : ZRTP_EC25;
			assert_int_equal(zrtp_create(&stranger[i], &c), 0);
			zrtp_start(stranger[i], 0);
		}
		zrtp_rig_begin(&r);
		zrtp_rig_run(&r, 20000);
		assert_int_equal(r.b, 1);
		zrtp_rig_agreed(&r);
		assert_memory_equal(zrtp_peer_zid(r.z[US]), r.z[THEM]->me.zid, ZRTP_ZID);
		for (uint32_t i = 0; i < ARRAY_LEN(stranger); i++)
			zrtp_destroy(stranger[i]);
		zrtp_rig_end(&r);
	}
}

/* A stranger's Commit that refers to a secret, which we do not have. It needs only a Hello. We are
 * the responder, because no HelloACK arrives. */
static bool refers_to_a_secret(struct zrtp_rig *r, int to, uint8_t *p, int *len)
{
	static const char *const name[] = {"Mult", "Prsh"};
	static const uint32_t more[] = {16, 24};
	uint8_t packet[ZRTP_PACKET_MAX];
	struct zrtp *us = r->z[US];
	struct zrtp_msg m;

	if (to != US || r->b || memcmp(p + ZRTP_HEADER + 4, "Commit  ", 8) != 0)
		return to != US || memcmp(p + ZRTP_HEADER + 4, "HelloACK", 8) != 0;
	r->b = 1;
	(void)zrtp_take(us, p, (size_t)*len, r->now_ns);
	(void)zrtp_take(us, packet, zrtp_wrap(packet, &stranger[0]->me.hello, 1, 99), r->now_ns);
	zrtp_msg_begin(&m, ZRTP_M_COMMIT);
	zrtp_msg_add(&m, stranger[0]->image[2], ZRTP_IMAGE);
	zrtp_msg_add(&m, stranger[0]->me.zid, ZRTP_ZID);
	zrtp_msg_add(&m, p + ZRTP_HEADER + COMMIT_ALGS, 20);
	memcpy(m.b + COMMIT_ALGS + 4 * ZRTP_K_AGREEMENT, name[r->a], 4);
	zrtp_msg_add(&m, NULL, more[r->a] + ZRTP_MAC);
	memset(m.b + COMMIT_HVI, 0xff, more[r->a]);
	zrtp_msg_end(&m, 0);
	for (int turn = 0; turn < 2; turn++) {
		(void)zrtp_take(us, packet, zrtp_wrap(packet, &m, 2, 99), r->now_ns);
		if (zrtp_state(us) == ZRTP_WANTS_SECRETS)
			zrtp_secrets(us, NULL, r->now_ns);
	}
	return true;
}

/* Neither does it make us forget the Commit that we answered. */
static void a_commit_by_an_unknown_secret_ends_no_exchange(void **state)
{
	const struct zrtp_config c = {.seed = {92}};
	struct zrtp_rig r;

	(void)state;
	for (int how = 0; how < 4; how++) {
		zrtp_rig_init(&r);
		r.wire = refers_to_a_secret;
		r.a = how & 1;
		r.cfg[US].cache = r.cfg[THEM].cache = how & 2;
		assert_int_equal(zrtp_create(&stranger[0], &c), 0);
		zrtp_start(stranger[0], 0);
		zrtp_rig_begin(&r);
		zrtp_rig_run(&r, 20000);
		zrtp_rig_agreed(&r);
		assert_int_equal(r.b, 1);
		assert_memory_equal(zrtp_peer_zid(r.z[US]), r.z[THEM]->me.zid, ZRTP_ZID);
		zrtp_destroy(stranger[0]);
		zrtp_rig_end(&r);
	}
}

/* The peer is ourselves: nothing is agreed on with our own packets. */
static void our_own_packets_come_back(void **state)
{
	struct zrtp_rig r;

	(void)state;
	zrtp_rig_init(&r);
	r.cfg[THEM] = r.cfg[US];
	r.cfg[THEM].counts = &r.counts[THEM];
	zrtp_rig_begin(&r);
	zrtp_rig_run(&r, 10000);
	assert_int_not_equal(zrtp_state(r.z[US]), ZRTP_OPEN);
	zrtp_rig_end(&r);
}

/* One who forges: a Hello, a HelloACK and a Commit with one agreement. */
struct forger {
	uint8_t p[3][ZRTP_PACKET_MAX];
	size_t len[3];
};

static void prepare(struct forger *f, uint8_t agreement, struct zrtp_rig *r)
{
	struct zrtp_prefs prefs;
	struct zrtp_config c = {.seed = {77, agreement}, .prefs = &prefs};
	uint8_t hello[ZRTP_PACKET_MAX];
	struct zrtp_msg ack;
	struct zrtp *z;
	int n;

	zrtp_prefs_all(&prefs);
	prefs.n[ZRTP_K_AGREEMENT] = 1;
	prefs.list[ZRTP_K_AGREEMENT][0] = agreement;
	assert_int_equal(zrtp_create(&z, &c), 0);
	zrtp_start(z, 0);
	f->len[0] = (size_t)zrtp_next(z, f->p[0], sizeof(f->p[0]));
	zrtp_msg_begin(&ack, ZRTP_M_HELLO_ACK);
	zrtp_msg_end(&ack, 0);
	f->len[1] = zrtp_wrap(f->p[1], &ack, 1, 99);
	n = zrtp_next(r->z[US], hello, sizeof(hello));
	assert_int_equal(zrtp_take(z, hello, (size_t)n, 0), 0);
	assert_int_equal(zrtp_take(z, f->p[1], f->len[1], 0), 0);
	while ((n = zrtp_next(z, f->p[2], sizeof(f->p[2]))) > 0)
		f->len[2] = (size_t)n;
	assert_memory_equal(f->p[2] + ZRTP_HEADER + 4, "Commit  ", 8);
	zrtp_destroy(z);
	zrtp_tick(r->z[US], r->now_ns += 1000000000); /* our next Hello */
}

/* Each forged chain asks for another agreement. Without Commits we are the initiator, with them the
 * responder, and change sides. */
static void a_flood_of_different_hellos_costs_few_key_pairs(void **state)
{
	static struct forger f[ZRTP_PRSH];
	uint8_t p[ZRTP_PACKET_MAX];
	struct zrtp_rig r;

	(void)state;
	for (size_t packets = 2; packets <= 3; packets++) {
		zrtp_rig_init(&r);
		zrtp_rig_begin(&r);
		for (uint8_t a = 0; a < ZRTP_PRSH; a++)
			prepare(&f[a], a, &r);
		for (uint32_t i = 0; i < 2000; i++, r.now_ns += 10000000) {
			for (size_t n = 0; n < packets; n++) {
				const struct forger *one = &f[i % ARRAY_LEN(f)];

				(void)zrtp_take(r.z[US], one->p[n], one->len[n], r.now_ns);
			}
			while (zrtp_next(r.z[US], p, sizeof(p)) > 0)
				continue;
			zrtp_tick(r.z[US], r.now_ns);
		}
		assert_in_range(r.counts[US].pairs, 1, ZRTP_PRSH);
		zrtp_rig_end(&r);
	}
}

static bool rejects_the_value(struct zrtp_rig *r, int to, uint8_t *p, int *len)
{
	(void)to;
	if (memcmp(p + ZRTP_HEADER + 4, "DHPart1 ", 8) == 0) {
		uint8_t *value = p + ZRTP_HEADER + 76;
		size_t n = (size_t)*len - ZRTP_HEADER - ZRTP_CRC - 76 - ZRTP_MAC;

		memset(value, r->a == 1 ? 0 : 0xff, n);
		if (r->a == 2)
			memset(value, 0, n - 1);
		if (r->a == 2)
			value[n - 1] = 1;
		reseal(p, *len);
	}
	return true;
}

static void bad_public_values_are_refused(void **state)
{
	struct zrtp_rig r;

	(void)state;
	for (uint8_t a = 0; a < ZRTP_PRSH; a++)
		for (uint32_t how = 1; how <= 3; how++) {
			zrtp_rig_init(&r);
			zrtp_rig_only(&r, US, ZRTP_K_AGREEMENT, a);
			r.wire = rejects_the_value;
			r.a = how;
			zrtp_rig_begin(&r);
			zrtp_rig_run(&r, 5000);
			assert_false(zrtp_rig_open(&r));
			/* On X25519 other values are points too. The hash chain then ends the
			 * exchange. */
			assert_true(
				zrtp_failure(r.z[US]) || zrtp_failure(r.z[THEM]) || a == ZRTP_X255);
			zrtp_rig_end(&r);
		}
}

/* Writes a signature behind the contents of a Confirm: r->a words, where r->b are announced. */
static bool adds_a_signature(struct zrtp_rig *r, int to, uint8_t *p, int *len)
{
	const struct zrtp *z = r->z[!to];
	uint8_t *m = p + ZRTP_HEADER, *body = m + CONFIRM_BODY;
	size_t n = (size_t)*len - ZRTP_HEADER - ZRTP_CRC - CONFIRM_BODY;
	enum zrtp_hash h;

	if (memcmp(m + 4, "Confirm", 7) != 0)
		return true;
	h = (enum zrtp_hash)z->alg[ZRTP_K_HASH];
	assert_int_equal(zrtp_cfb(body, n, (enum zrtp_cipher)z->alg[ZRTP_K_CIPHER],
				 z->s.key[z->initiator], m + CONFIRM_IV, false),
		0);
	put_be32(body + 32, be32(body + 32) | r->b << 8);
	memset(body + n, 0x5a, 4 * r->a);
	n += 4 * r->a;
	assert_int_equal(zrtp_cfb(body, n, (enum zrtp_cipher)z->alg[ZRTP_K_CIPHER],
				 z->s.key[z->initiator], m + CONFIRM_IV, true),
		0);
	assert_int_equal(zrtp_mac(m + CONFIRM_MAC, ZRTP_MAC, h,
				 (struct zrtp_part){z->s.mac_key[z->initiator], zrtp_digest_len(h)},
				 (struct zrtp_part){body, n}),
		0);
	put_be16(m + 2, (uint16_t)((CONFIRM_BODY + n) / 4));
	*len = (int)(ZRTP_HEADER + CONFIRM_BODY + n + ZRTP_CRC);
	reseal(p, *len);
	return true;
}

/* Signatures are not checked here; their length must be what the Confirm says. */
static void a_signature_has_the_length_that_it_says(void **state)
{
	static const struct {
		uint32_t words, said;
		bool good;
	} of[] = {{0, 0, true}, {1, 1, true}, {101, 101, true}, {0, 1, false}, {0, 511, false},
		{2, 1, false}, {1, 0, false}, {101, 100, false}};
	struct zrtp_rig r;

	(void)state;
	for (uint32_t i = 0; i < ARRAY_LEN(of); i++) {
		zrtp_rig_init(&r);
		r.wire = adds_a_signature;
		r.a = of[i].words;
		r.b = of[i].said;
		zrtp_rig_begin(&r);
		zrtp_rig_run(&r, 2000);
		assert_int_equal(zrtp_rig_open(&r), of[i].good);
		zrtp_rig_end(&r);
	}
}

static void what_is_no_zrtp_is_counted_and_dropped(void **state)
{
	uint8_t p[600] = {0};
	struct zrtp_rig r;

	(void)state;
	zrtp_rig_init(&r);
	zrtp_rig_begin(&r);
	for (size_t len = 0; len < sizeof(p); len++)
		assert_int_not_equal(zrtp_take(r.z[US], p, len, 0), 0);
	memcpy(p, "\x10\0\0\0ZRTP", 8);
	for (size_t len = 28; len < 500; len += 4)
		assert_int_not_equal(zrtp_take(r.z[US], p, len, 0), 0);
	for (int len = 28; len < 400; len += 4) {
		reseal(p, len);
		assert_int_not_equal(zrtp_take(r.z[US], p, (size_t)len, 0), 0);
	}
	assert_true(r.counts[US].drop[ZRTP_DROP_LENGTH] > 400);
	assert_true(r.counts[US].drop[ZRTP_DROP_COOKIE] > 50);
	assert_true(r.counts[US].drop[ZRTP_DROP_CRC] > 100);
	assert_true(r.counts[US].drop[ZRTP_DROP_MESSAGE] > 90);
	zrtp_rig_run(&r, 1000);
	zrtp_rig_agreed(&r);
	zrtp_rig_end(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_changed_byte_leads_to_other_keys),
		cmocka_unit_test(a_man_in_the_middle_shows_in_the_sas),
		cmocka_unit_test(forged_messages_end_nothing),
		cmocka_unit_test(a_strangers_hello_does_not_keep_the_peer_out),
		cmocka_unit_test(after_a_strangers_hello_the_peers_secrets_count),
		cmocka_unit_test(forged_hellos_do_not_displace_the_peers),
		cmocka_unit_test(forged_commits_do_not_displace_the_peers),
		cmocka_unit_test(a_commit_by_an_unknown_secret_ends_no_exchange),
		cmocka_unit_test(our_own_packets_come_back),
		cmocka_unit_test(a_flood_of_different_hellos_costs_few_key_pairs),
		cmocka_unit_test(bad_public_values_are_refused),
		cmocka_unit_test(a_signature_has_the_length_that_it_says),
		cmocka_unit_test(what_is_no_zrtp_is_counted_and_dropped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
