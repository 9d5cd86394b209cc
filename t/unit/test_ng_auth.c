/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Signed cookies of ng: published HMAC vectors, our own fixed vectors (computed by Python's hmac),
 * and every reason for refusal. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#include "base/hmac.h"
#include "control/once.h"
#include "proto/ng_auth.h"

#define K1 "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
#define K2 "202122232425262728292A2B2C2D2E2F303132333435363738393A3B3C3D3E3F"
#define T  1700000000ull

#define BODY    "d7:command4:pinge"
#define PONG    "d6:result4:ponge"
#define SIGNED1 "1_2_3~1700000000~6bf6e7dcc01b4e1ed786102ac66c3fa8"
#define SIGNED2 "1_2_3~1700000000~9a8f9a3566e705549a2d24bd323e7ef6"
#define REPLY1  "1_2_3~1700000000~fdd902c2e65ac884df8054c8ba0857d0"
#define REPLY2  "1_2_3~1700000000~aedbf5092b43d9dafd82b5bb666f5137"

static struct ng_keys keys_of(const char *text)
{
	struct ng_keys k;
	uint32_t line;

	assert_int_equal(ng_keys_parse(&k, str_from(text), &line), 0);
	return k;
}

/* RFC 4231, test cases 1, 2, 3 and 4; the text in one piece and in pieces. */
static void hmac_is_that_of_rfc_4231(void **state)
{
	static const struct {
		const char *key;
		size_t key_len;
		const char *text, *mac;
	} V[] = {
		{"\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b",
			20, "Hi There",
			"b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
		{"Jefe", 4, "what do ya want for nothing?",
			"5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
		{"\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa",
			20,
			"\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd"
			"\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd",
			"773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(V); i++)
		for (size_t cut = 0; cut <= strlen(V[i].text); cut++) {
			const struct str part[] = {
				{V[i].text, cut}, STR_NONE, str_from(V[i].text + cut)};
			uint8_t mac[HMAC_SHA256_LEN];
			char hex[2 * HMAC_SHA256_LEN + 1];

			assert_true(
				hmac_sha256(mac, (const uint8_t *)V[i].key, V[i].key_len, part, 3));
			for (size_t k = 0; k < sizeof(mac); k++)
				snprintf(hex + 2 * k, 3, "%02x", mac[k]);
			assert_string_equal(hex, V[i].mac);
		}
}

static void a_key_longer_than_a_block_is_refused(void **state)
{
	static const uint8_t key[HMAC_SHA256_BLOCK + 1] = {1};
	uint8_t mac[HMAC_SHA256_LEN] = {1};

	(void)state;
	assert_false(hmac_sha256(mac, key, sizeof(key), NULL, 0));
	assert_memory_equal(mac, (uint8_t[HMAC_SHA256_LEN]){0}, sizeof(mac));
	assert_true(hmac_sha256(mac, key, sizeof(key) - 1, NULL, 0));
}

static void key_files_have_a_key_per_line(void **state)
{
	static const struct {
		const char *text;
		int err;
		uint32_t n, line;
	} F[] = {
		{K1 "\n", 0, 1, 1},
		{K1, 0, 1, 1},
		{"# old and new\n\n" K2 "\r\n  " K1 "  \n# end", 0, 2, 5},
		{"", -ENODATA, 0, 0},
		{"# nothing\n\n", -ENODATA, 0, 2},
		{K1 "\n" K1 "0\n", -EINVAL, 1, 2},
		{K1 K1, -EINVAL, 0, 1},
		{"key " K1, -EINVAL, 0, 1},
		{"0g" K1, -EINVAL, 0, 1},
		{K1 "\n" K1 "\n" K1 "\n" K1 "\n" K1 "\n" K1 "\n" K1 "\n" K1 "\n", 0, 8, 8},
		{K1 "\n" K1 "\n" K1 "\n" K1 "\n" K1 "\n" K1 "\n" K1 "\n" K1 "\n" K1 "\n", -E2BIG, 8,
			9},
	};
	struct ng_keys k;
	uint32_t line;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(F); i++) {
		assert_int_equal(ng_keys_parse(&k, str_from(F[i].text), &line), F[i].err);
		assert_int_equal(k.n, F[i].n);
		assert_int_equal(line, F[i].line);
	}
	k = keys_of(K2);
	assert_int_equal(k.key[0][10], 0x2a);
	assert_int_equal(k.key[0][31], 0x3f);
}

static void signatures_are_the_fixed_ones(void **state)
{
	struct ng_keys one = keys_of(K1), two = keys_of(K2);
	char out[NG_SIGNATURE + 1], mac[NG_MAC_DIGITS + 1];

	(void)state;
	assert_true(ng_sign_request(out, &one, STR("1_2_3"), T, STR(BODY)));
	assert_string_equal(out, &SIGNED1[5]);
	assert_true(ng_sign_request(out, &two, STR("1_2_3"), T, STR(BODY)));
	assert_string_equal(out, &SIGNED2[5]);
	assert_true(ng_sign_reply(mac, one.key[0], STR(SIGNED1), STR(PONG)));
	assert_string_equal(mac, &REPLY1[17]);
	assert_true(ng_sign_reply(mac, two.key[0], STR(SIGNED2), STR(PONG)));
	assert_string_equal(mac, &REPLY2[17]);
	char longest[NG_COOKIE_MAX];

	memset(longest, 'x', sizeof(longest));
	assert_true(ng_sign_request(
		out, &one, (struct str){longest, NG_COOKIE_MAX - NG_SIGNATURE}, T, STR(BODY)));
	assert_false(ng_sign_request(
		out, &one, (struct str){longest, NG_COOKIE_MAX - NG_SIGNATURE + 1}, T, STR(BODY)));
}

static void requests_are_verified(void **state)
{
	static const struct {
		const char *keys, *cookie, *body;
		uint64_t now;
		int err;
		uint32_t which;
	} R[] = {
		{K1, SIGNED1, BODY, T, 0, 0},
		{K2 "\n" K1, SIGNED1, BODY, T, 0, 1},
		{K1 "\n" K2, SIGNED1, BODY, T, 0, 0},
		{K1 "\n" K2, SIGNED2, BODY, T, 0, 1},
		{K2, SIGNED1, BODY, T, -EBADMSG, 0},
		{K1, SIGNED1, BODY " ", T, -EBADMSG, 0},
		{K1, SIGNED1, "d7:command4:liste", T, -EBADMSG, 0},
		{K1, SIGNED1, "", T, -EBADMSG, 0},
		{K1, SIGNED1, BODY, T - NG_AUTH_WINDOW_S, 0, 0},
		{K1, SIGNED1, BODY, T + NG_AUTH_WINDOW_S, 0, 0},
		{K1, SIGNED1, BODY, T - NG_AUTH_WINDOW_S - 1, -ETIME, 0},
		{K1, SIGNED1, BODY, T + NG_AUTH_WINDOW_S + 1, -ETIME, 0},
		{K1, SIGNED1, BODY, 0, -ETIME, 0},
		{K2, SIGNED1, BODY, 0, -EBADMSG, 0},
		{K1, REPLY1, BODY, T, -EBADMSG, 0}, /* a reply is not a request */
		{K1, REPLY1, PONG, T, -EBADMSG, 0},
		{K1, "1_2_3", BODY, T, -ENOMSG, 0},
		{K1, "~1700000000~00000000000000000000000000000000", BODY, T, -ENOMSG, 0},
		{K1, "x~1700000000~00000000000000000000000000000000", BODY, T, -EBADMSG, 0},
		{K1, "x~170000000x~00000000000000000000000000000000", BODY, T, -ENOMSG, 0},
		{K1, "x~-170000000~00000000000000000000000000000000", BODY, T, -ENOMSG, 0},
		{K1, "x~1700000000~0000000000000000000000000000000x", BODY, T, -ENOMSG, 0},
		{K1, "x~1700000000-00000000000000000000000000000000", BODY, T, -ENOMSG, 0},
		{K1, "x 1700000000~00000000000000000000000000000000", BODY, T, -ENOMSG, 0},
		{K1, "", BODY, T, -ENOMSG, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(R); i++) {
		struct ng_keys k = keys_of(R[i].keys);
		struct ng_signed s;
		uint32_t which = 99;
		int err = ng_verify_request(
			&k, str_from(R[i].cookie), str_from(R[i].body), R[i].now, &s, &which);

		if (err != R[i].err)
			fail_msg("row %zu: %d", i, err);
		if (err)
			continue;
		assert_int_equal(which, R[i].which);
		assert_true(str_eq(s.cookie, STR("1_2_3")));
		assert_int_equal(s.seconds, T);
	}
}

/* Flips every bit of cookie, time, MAC and body. */
static void no_bit_can_be_changed(void **state)
{
	struct ng_keys k = keys_of(K1);
	char text[] = SIGNED1 BODY;
	size_t cookie_len = sizeof(SIGNED1) - 1;
	struct ng_signed s;
	uint32_t which;

	(void)state;
	for (size_t bit = 0; bit < 8 * (sizeof(text) - 1); bit++) {
		text[bit / 8] ^= (char)(1 << bit % 8);
		/* digits of a MAC may be of either case */
		if (bit % 8 != 5 || bit / 8 < cookie_len - NG_MAC_DIGITS || bit / 8 >= cookie_len ||
			text[bit / 8] < 'A')
			assert_int_not_equal(
				ng_verify_request(&k, (struct str){text, cookie_len},
					(struct str){text + cookie_len, sizeof(BODY) - 1}, T, &s,
					&which),
				0);
		text[bit / 8] ^= (char)(1 << bit % 8);
	}
	assert_int_equal(ng_verify_request(&k, (struct str){text, cookie_len},
				 (struct str){text + cookie_len, sizeof(BODY) - 1}, T, &s, &which),
		0);
}

static void replies_belong_to_their_request(void **state)
{
	static const struct {
		const char *keys, *request, *reply, *body;
		bool ok;
	} R[] = {
		{K1, SIGNED1, REPLY1, PONG, true},
		{K2 "\n" K1, SIGNED1, REPLY1, PONG, true},
		{K2, SIGNED1, REPLY1, PONG, false},
		{K1 "\n" K2, SIGNED2, REPLY1, PONG,
			false}, /* of the same cookie, signed by the other key */
		{K1, SIGNED1, REPLY1, "d6:result2:oke", false},
		{K1, SIGNED1, SIGNED1, BODY, false}, /* a request is not a reply */
		{K1, SIGNED1, "1_2_3", PONG, false},
		{K1, SIGNED1,
			"1_2_4"
			"~1700000000~fdd902c2e65ac884df8054c8ba0857d0",
			PONG, false},
		{K1, "1_2_3", REPLY1, PONG, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(R); i++) {
		struct ng_keys k = keys_of(R[i].keys);

		if (ng_verify_reply(&k, str_from(R[i].request), str_from(R[i].reply),
			    str_from(R[i].body)) != R[i].ok)
			fail_msg("row %zu", i);
	}
}

/* --- Once ------------------------------------------------------------------------------------- */

static struct ng_signed request(uint32_t number, uint64_t seconds)
{
	struct ng_signed s = {.seconds = seconds};

	memcpy(s.mac, &number, sizeof(number));
	return s;
}

static void a_request_is_new_once_as_long_as_its_time_is_accepted(void **state)
{
	static const uint8_t key[16] = {7};
	struct endpoint a = {.family = AF_INET, .addr = {192, 0, 2, 1}, .port = 5000}, b = a;
	struct once *o;

	(void)state;
	b.port = 5001;
	assert_int_equal(once_create(&o, key, 0), 0);
	for (uint64_t now = T; now < T + 500; now++) {
		struct ng_signed early = request((uint32_t)(now - T), now - NG_AUTH_WINDOW_S),
				 ahead = request(
					 (uint32_t)(now - T) | 1u << 31, now + NG_AUTH_WINDOW_S);

		once_tick(o, now);
		assert_int_equal(once_check(o, &early, &a, now), 0);
		assert_int_equal(once_check(o, &ahead, &a, now), 0);
		assert_int_equal(once_check(o, &early, &a, now), -EALREADY);
		assert_int_equal(once_check(o, &ahead, &b, now), -EADDRINUSE);
		/* the future request is remembered for the whole window */
		if (now >= T + 2 * NG_AUTH_WINDOW_S) {
			ahead = request((uint32_t)(now - T - 2 * NG_AUTH_WINDOW_S) | 1u << 31,
				now - NG_AUTH_WINDOW_S);
			assert_int_equal(once_check(o, &ahead, &a, now), -EALREADY);
		}
		assert_in_range(once_entries(o), 2, 2 * NG_AUTH_WINDOW_S + 2);
	}
	once_tick(o, T + 1000);
	assert_int_equal(once_entries(o), 0);
	once_destroy(o);
	once_destroy(NULL);
}

/* No setting of the clock makes a copy execute. New requests are executed once they can be
 * distinguished from copies. */
static void a_clock_that_is_set_executes_no_copy(void **state)
{
	enum { W = NG_AUTH_WINDOW_S };
	static const struct {
		int64_t executed_at, then, back_to; /* the clock, in seconds from T */
		bool new_too;                       /* requests signed at back_to are executed */
	} R[] = {
		{0, 1, -20, true},
		{0, 1, 0, true},
		{30, 31, 1, true},   /* a usual clock error */
		{0, 20, -20, false}, /* a step longer than the window */
		{0, 100, 0, false},  /* the request was forgotten before the step */
		{0, 100, 30, false},
		{0, 100, 20, false},
		{3600, 4200, 600, true}, /* an hour ahead by mistake, for ten minutes */
		{0, 3600, 3600, true},
		{0, 61, 61, true},
	};
	static const uint8_t key[16] = {7};
	struct endpoint a = {.family = AF_INET, .addr = {192, 0, 2, 1}, .port = 5000}, b = a;

	(void)state;
	b.port = 5001;
	for (size_t i = 0; i < ARRAY_LEN(R); i++) {
		struct ng_signed copied = request(1, T + (uint64_t)R[i].executed_at), s;
		struct once *o;

		assert_int_equal(once_create(&o, key, 0), 0);
		once_tick(o, T);
		for (uint64_t now = T + (uint64_t)R[i].executed_at; now <= T + (uint64_t)R[i].then;
			now++) {
			once_tick(o, now);
			if (now == copied.seconds)
				assert_int_equal(once_check(o, &copied, &a, now), 0);
		}
		for (uint64_t now = T + (uint64_t)R[i].back_to; now < T + 4300; now++) {
			once_tick(o, now);
			s = request(2, now);
			if (now == T + (uint64_t)R[i].back_to &&
				once_check(o, &s, &a, now) != (R[i].new_too ? 0 : -ETIME))
				fail_msg("row %zu: what is new", i);
			if (now + W >= copied.seconds && now <= copied.seconds + W &&
				once_check(o, &copied, &b, now) == 0)
				fail_msg("row %zu: the copy was executed at T + %d", i,
					(int)(now - T));
		}
		/* Control: new requests are executed. */
		s = request(3, T + 4299);
		assert_int_equal(once_check(o, &s, &a, T + 4299), 0);
		once_destroy(o);
	}
}

/* More clock steps than are remembered: none of the earlier requests is executed again. */
static void a_clock_that_is_set_often_executes_no_copy(void **state)
{
	static const uint8_t key[16] = {7};
	struct endpoint a = {.family = AF_INET, .addr = {192, 0, 2, 1}, .port = 5000};
	struct ng_signed s;
	struct once *o;

	(void)state;
	assert_int_equal(once_create(&o, key, 0), 0);
	for (uint32_t i = 0; i < 40; i++) {
		s = request(i, T + 1000 * i);
		assert_int_equal(once_check(o, &s, &a, s.seconds), 0);
	}
	for (uint32_t i = 0; i < 40; i++) {
		s = request(i, T + 1000 * i);
		assert_true(once_check(o, &s, &a, s.seconds) < 0);
	}
	s = request(0, T + 40000);
	assert_int_equal(once_check(o, &s, &a, s.seconds), 0);
	once_destroy(o);
}

static void what_cannot_be_remembered_is_refused(void **state)
{
	static const uint8_t key[16] = {7};
	struct endpoint a = {.family = AF_INET, .addr = {192, 0, 2, 1}, .port = 5000};
	struct ng_signed s;
	struct once *o;

	(void)state;
	assert_int_equal(once_create(&o, key, 100), 0);
	for (uint32_t i = 0; i < 100; i++) {
		s = request(i, T);
		assert_int_equal(once_check(o, &s, &a, T), 0);
	}
	s = request(100, T);
	assert_int_equal(once_check(o, &s, &a, T), -ENOBUFS);
	s = request(0, T);
	assert_int_equal(once_check(o, &s, &a, T), -EALREADY);
	s = request(100, T + NG_AUTH_WINDOW_S + 1);
	assert_int_equal(once_check(o, &s, &a, T + NG_AUTH_WINDOW_S + 1), 0);
	once_destroy(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hmac_is_that_of_rfc_4231),
		cmocka_unit_test(a_key_longer_than_a_block_is_refused),
		cmocka_unit_test(key_files_have_a_key_per_line),
		cmocka_unit_test(signatures_are_the_fixed_ones),
		cmocka_unit_test(requests_are_verified),
		cmocka_unit_test(no_bit_can_be_changed),
		cmocka_unit_test(replies_belong_to_their_request),
		cmocka_unit_test(a_request_is_new_once_as_long_as_its_time_is_accepted),
		cmocka_unit_test(a_clock_that_is_set_executes_no_copy),
		cmocka_unit_test(a_clock_that_is_set_often_executes_no_copy),
		cmocka_unit_test(what_cannot_be_remembered_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
