/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Records before OpenSSL sees them, and cookies for unproven sources (RFC 6347 4.2.1). */
#include <errno.h>
#include <malloc.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "dtls_rig_clock.h"
#include "hex.h"

#define S_NS 1000000000ull

static struct dtls_rig rig; /* large: not on the stack */
static uint64_t allocations;

static void *count_malloc(size_t n, const char *file, int line)
{
	(void)file;
	(void)line;
	allocations++;
	return malloc(n);
}

static void *count_realloc(void *p, size_t n, const char *file, int line)
{
	(void)file;
	(void)line;
	allocations++;
	return realloc(p, n);
}

static void count_free(void *p, const char *file, int line)
{
	(void)file;
	(void)line;
	free(p);
}

static const struct endpoint caller = {{192, 0, 2, 1}, 4000, AF_INET, 0};

static void test_bad_records_die_in_the_filter(void **state)
{
	static const struct {
		const char *hex;
		enum dtls_drop want, encrypted;
	} t[] = {
		{"", DTLS_DROP_SHORT, DTLS_DROP_SHORT},
		{"16", DTLS_DROP_SHORT, DTLS_DROP_SHORT},
		{"16fefd0000000000000001", DTLS_DROP_SHORT, DTLS_DROP_SHORT},
		{"13fefd0000000000000001000101", DTLS_DROP_TYPE, DTLS_DROP_TYPE},
		{"18fefd0000000000000001000101", DTLS_DROP_TYPE, DTLS_DROP_TYPE},
		{"1603010000000000000001000101", DTLS_DROP_VERSION, DTLS_DROP_VERSION},
		{"14fefd0000000000000001000101", DTLS_DROP_NONE, DTLS_DROP_NONE},
		{"14feff0000000000000001000101", DTLS_DROP_NONE, DTLS_DROP_NONE},
		{"14fefd0000000000000001000102", DTLS_DROP_CIPHER_CHANGE, DTLS_DROP_CIPHER_CHANGE},
		{"14fefd000000000000000100020101", DTLS_DROP_CIPHER_CHANGE,
			DTLS_DROP_CIPHER_CHANGE},
		{"14fefd00000000000000010000", DTLS_DROP_LENGTH, DTLS_DROP_LENGTH},
		{"14fefd0000000000000001000201", DTLS_DROP_LENGTH, DTLS_DROP_LENGTH},
		{"14fefd000000000000000148010101", DTLS_DROP_LENGTH, DTLS_DROP_LENGTH},
		{"17fefd0000000000000001000101", DTLS_DROP_PLAIN_DATA, DTLS_DROP_PLAIN_DATA},
		{"15fefd000000000000000100020228", DTLS_DROP_NONE, DTLS_DROP_ALERT},
		{"15fefd0000000000000001000102", DTLS_DROP_ALERT, DTLS_DROP_ALERT},
		{"17fefd000100000000000100080000000000000000", DTLS_DROP_LENGTH, DTLS_DROP_LENGTH},
		{"17fefd00010000000000010009000000000000000000", DTLS_DROP_NONE, DTLS_DROP_NONE},
		{"14fefd00010000000000010009000000000000000000", DTLS_DROP_CIPHER_CHANGE,
			DTLS_DROP_CIPHER_CHANGE},
		{"17fefd00020000000000010009000000000000000000", DTLS_DROP_EPOCH, DTLS_DROP_EPOCH},
		/* handshake: server_hello_done, whole; then with bad lengths, offsets and types */
		{"16fefd0000000000000001000c0e0000000001000000000000", DTLS_DROP_NONE,
			DTLS_DROP_NONE},
		{"16fefd0000000000000001000b0e00000000010000000000", DTLS_DROP_FRAGMENT,
			DTLS_DROP_FRAGMENT},
		{"16fefd0000000000000001000c0e0000050001000000000000", DTLS_DROP_FRAGMENT,
			DTLS_DROP_FRAGMENT},
		{"16fefd0000000000000001000d0e000001000100000000000200", DTLS_DROP_FRAGMENT,
			DTLS_DROP_FRAGMENT},
		{"16fefd0000000000000001000d0e000001000100000100000100", DTLS_DROP_FRAGMENT,
			DTLS_DROP_FRAGMENT},
		{"16fefd0000000000000001000d0e000002000100000100000100", DTLS_DROP_NONE,
			DTLS_DROP_NONE},
		{"16fefd0000000000000001000d63000002000100000100000100", DTLS_DROP_MESSAGE,
			DTLS_DROP_MESSAGE},
		{"16fefd0000000000000001000d0bffffff000100000100000100", DTLS_DROP_MESSAGE,
			DTLS_DROP_MESSAGE},
		/* a good record, then a bad one */
		{"14fefd000000000000000100010113fefd0000000000000001000101", DTLS_DROP_TYPE,
			DTLS_DROP_TYPE},
		{"14fefd000000000000000100010114", DTLS_DROP_SHORT, DTLS_DROP_SHORT},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		size_t len = strlen(t[i].hex) / 2;
		uint8_t *p = malloc(len ? len : 1); /* exact: sanitizers see reads beyond it */

		assert_non_null(p);
		assert_int_equal(unhex(p, len, t[i].hex), len);
		if (dtls_filter(p, len, false) != t[i].want ||
			dtls_filter(p, len, true) != t[i].encrypted)
			fail_msg("%s: %s / %s", t[i].hex,
				dtls_drop_name(dtls_filter(p, len, false)),
				dtls_drop_name(dtls_filter(p, len, true)));
		free(p);
	}
	assert_true(dtls_is((const uint8_t[]){20}, 1));
	assert_true(dtls_is((const uint8_t[]){63}, 1));
	assert_false(dtls_is((const uint8_t[]){19}, 1));
	assert_false(dtls_is((const uint8_t[]){64}, 1));
	assert_false(dtls_is((const uint8_t[]){20}, 0));
}

/* The client's next packet. */
static size_t hello(struct dtls_rig *r, uint8_t buf[DTLS_PACKET_MAX])
{
	int n = dtls_next(r->a[0], buf, DTLS_PACKET_MAX);

	assert_true(n > 0);
	return (size_t)n;
}

static void begin(struct dtls_gate **g)
{
	dtls_rig_init(&rig);
	dtls_rig_create(&rig, true);
	assert_int_equal(dtls_gate_create(g, rig.now_ns), 0);
	assert_int_equal(dtls_start(rig.a[0], rig.now_ns), 0);
}

static void end(struct dtls_gate *g)
{
	dtls_gate_destroy(g);
	dtls_rig_fini(&rig);
}

static unsigned all_lost(struct dtls_rig *r, size_t i)
{
	(void)r;
	(void)i;
	return 0;
}

static void test_a_cookie_proves_a_source(void **state)
{
	/* lost: replies of the gate. The client then repeats its request under a new record number,
	 * and the server's own numbers must not repeat those of the replies. */
	(void)state;
	for (int lost = 0; lost < 4; lost++) {
		struct dtls_gate *g;
		struct dtls_gate_reply r;
		uint8_t p[DTLS_PACKET_MAX];
		size_t len;

		begin(&g);
		len = hello(&rig, p);
		rig.fate = all_lost;
		for (int i = 0; i < lost; i++) {
			dtls_rig_run(&rig, dtls_deadline(rig.a[0]));
			assert_int_equal(rig.n, i + 1);
			len = rig.sent[i].len;
			memcpy(p, rig.sent[i].p, len);
		}
		rig.fate = NULL;
		assert_int_equal(
			dtls_gate_take(g, &caller, p, len, rig.now_ns, &r), DTLS_GATE_REPLY);
		assert_true(r.len < len);
		assert_memory_equal(r.p + 5, p + 5, 6); /* record number */
		assert_int_equal(be32(p + 7), lost);
		assert_int_equal(dtls_take(rig.a[0], r.p, r.len, rig.now_ns), 0);
		len = hello(&rig, p);
		assert_int_equal(
			dtls_gate_take(g, &caller, p, len, rig.now_ns, &r), DTLS_GATE_PASS);
		assert_int_equal(dtls_take(rig.a[1], p, len, rig.now_ns), 0);
		dtls_rig_handshake(&rig);
		assert_true(dtls_rig_keys_agree(&rig, NULL));
		assert_int_equal(rig.counts[0].retransmitted, lost);
		assert_int_equal(rig.counts[1].retransmitted, 0);
		assert_int_equal(be32(rig.sent[lost].p + 7), lost + 1);
		end(g);
	}
}

static void test_a_fragmented_hello_with_a_cookie_is_taken(void **state)
{
	struct dtls_gate *g;
	struct dtls_gate_reply r;
	uint8_t p[DTLS_PACKET_MAX], whole[DTLS_PACKET_MAX];
	size_t len, body, cut = 120;

	(void)state;
	begin(&g);
	len = hello(&rig, p);
	assert_int_equal(dtls_gate_take(g, &caller, p, len, rig.now_ns, &r), DTLS_GATE_REPLY);
	assert_int_equal(dtls_take(rig.a[0], r.p, r.len, rig.now_ns), 0);
	len = hello(&rig, whole);
	body = len - DTLS_RECORD_HDR - DTLS_HANDSHAKE_HDR;
	assert_true(body > cut);
	memcpy(p, whole, DTLS_RECORD_HDR + DTLS_HANDSHAKE_HDR + cut);
	put_be16(p + 11, (uint16_t)(DTLS_HANDSHAKE_HDR + cut));
	put_be16(p + 13 + 10, (uint16_t)cut);
	len = DTLS_RECORD_HDR + DTLS_HANDSHAKE_HDR + cut;
	assert_int_equal(dtls_gate_take(g, &caller, p, len, rig.now_ns, &r), DTLS_GATE_PASS);
	assert_int_equal(dtls_take(rig.a[1], p, len, rig.now_ns), 0);
	memcpy(p, whole, DTLS_RECORD_HDR + DTLS_HANDSHAKE_HDR);
	p[10]++; /* record number */
	put_be16(p + 11, (uint16_t)(DTLS_HANDSHAKE_HDR + body - cut));
	put_be16(p + 13 + 7, (uint16_t)cut);
	put_be16(p + 13 + 10, (uint16_t)(body - cut));
	len = DTLS_RECORD_HDR + DTLS_HANDSHAKE_HDR;
	memcpy(p + len, whole + len + cut, body - cut);
	assert_int_equal(dtls_take(rig.a[1], p, len + body - cut, rig.now_ns), 0);
	dtls_rig_handshake(&rig);
	assert_true(dtls_rig_keys_agree(&rig, NULL));
	end(g);
}

static void test_cookies_are_of_one_source_and_time(void **state)
{
	struct dtls_gate *g, *other;
	struct dtls_gate_reply r;
	struct endpoint to = caller;
	uint8_t p[DTLS_PACKET_MAX];
	struct dtls_hello h;
	size_t len;

	(void)state;
	begin(&g);
	assert_int_equal(dtls_gate_create(&other, rig.now_ns), 0);
	len = hello(&rig, p);
	assert_int_equal(dtls_gate_take(g, &caller, p, len, rig.now_ns, &r), DTLS_GATE_REPLY);
	assert_int_equal(dtls_take(rig.a[0], r.p, r.len, rig.now_ns), 0);
	len = hello(&rig, p);
	assert_int_equal(dtls_hello_parse(&h, p, len), 0);
	assert_int_equal(h.cookie.len, DTLS_COOKIE_LEN);
	assert_int_equal(h.message_seq, 1);
	assert_int_equal(dtls_gate_take(g, &caller, p, len, rig.now_ns, &r), DTLS_GATE_PASS);
	to.port++;
	assert_int_equal(dtls_gate_take(g, &to, p, len, rig.now_ns, &r), DTLS_GATE_REPLY);
	to = caller;
	to.addr[3]++;
	assert_int_equal(dtls_gate_take(g, &to, p, len, rig.now_ns, &r), DTLS_GATE_REPLY);
	assert_int_equal(dtls_gate_take(other, &caller, p, len, rig.now_ns, &r), DTLS_GATE_REPLY);
	/* another ClientHello with this cookie */
	p[DTLS_RECORD_HDR + DTLS_HANDSHAKE_HDR + 10] ^= 1;
	assert_int_equal(dtls_gate_take(g, &caller, p, len, rig.now_ns, &r), DTLS_GATE_REPLY);
	p[DTLS_RECORD_HDR + DTLS_HANDSHAKE_HDR + 10] ^= 1;
	/* a wrong cookie */
	p[h.cookie.s - (const char *)p] ^= 1;
	assert_int_equal(dtls_gate_take(g, &caller, p, len, rig.now_ns, &r), DTLS_GATE_REPLY);
	p[h.cookie.s - (const char *)p] ^= 1;
	/* the previous secret counts, the one before does not */
	assert_int_equal(dtls_gate_take(g, &caller, p, len, rig.now_ns + DTLS_COOKIE_LIFE_NS, &r),
		DTLS_GATE_PASS);
	assert_int_equal(
		dtls_gate_take(g, &caller, p, len, rig.now_ns + 2 * DTLS_COOKIE_LIFE_NS, &r),
		DTLS_GATE_REPLY);
	assert_int_equal(
		dtls_gate_take(g, &caller, p, len, rig.now_ns + 90 * DTLS_COOKIE_LIFE_NS, &r),
		DTLS_GATE_REPLY);
	dtls_gate_destroy(other);
	end(g);
}

static void test_only_a_hello_opens_the_gate(void **state)
{
	static const char *const other[] = {"14fefd0000000000000001000101",
		"15fefd000000000000000100020228", "17fefd00010000000000010009000000000000000000",
		"16fefd0000000000000001000c0e0000000001000000000000"};
	struct dtls_gate *g;
	struct dtls_gate_reply r;
	uint8_t p[64];

	(void)state;
	begin(&g);
	for (size_t i = 0; i < ARRAY_LEN(other); i++) {
		size_t len = unhex(p, sizeof(p), other[i]);

		assert_int_equal(
			dtls_gate_take(g, &caller, p, len, rig.now_ns, &r), DTLS_GATE_DROP);
		assert_int_equal(r.why, DTLS_DROP_UNPROVEN);
		assert_int_equal(dtls_take(rig.a[1], p, len, rig.now_ns), -EBADMSG);
		assert_int_equal(dtls_state(rig.a[1]), DTLS_IDLE);
	}
	/* a ClientHello that ends within its session id */
	assert_int_equal(unhex(p, sizeof(p),
				 "16fefd000000000000000100300100002400000000000000"
				 "24fefd"),
		27);
	memset(p + 27, 0, 37);
	p[27 + 32] = 9;
	assert_int_equal(dtls_gate_take(g, &caller, p, 61, rig.now_ns, &r), DTLS_GATE_DROP);
	assert_int_equal(r.why, DTLS_DROP_UNPROVEN);
	end(g);
}

static void test_a_flood_allocates_nothing(void **state)
{
	struct dtls_gate *g;
	struct dtls_gate_reply r;
	struct endpoint src = caller;
	uint8_t p[DTLS_PACKET_MAX];
	size_t len, heap;
	uint64_t before;

	(void)state;
	begin(&g);
	len = hello(&rig, p);
	before = allocations;
	heap = mallinfo2().uordblks;
	assert_true(before > 0);
	for (uint32_t i = 0; i < 10000; i++) {
		put_be32(src.addr, i);
		assert_int_equal(dtls_gate_take(g, &src, p, len, rig.now_ns + i * 10000000ull, &r),
			DTLS_GATE_REPLY);
	}
	assert_int_equal(allocations, before);
	assert_int_equal(mallinfo2().uordblks, heap);
	end(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bad_records_die_in_the_filter),
		cmocka_unit_test(test_a_cookie_proves_a_source),
		cmocka_unit_test(test_a_fragmented_hello_with_a_cookie_is_taken),
		cmocka_unit_test(test_cookies_are_of_one_source_and_time),
		cmocka_unit_test(test_only_a_hello_opens_the_gate),
		cmocka_unit_test(test_a_flood_allocates_nothing),
	};

	/* before OpenSSL allocates anything */
	if (!CRYPTO_set_mem_functions(count_malloc, count_realloc, count_free))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
