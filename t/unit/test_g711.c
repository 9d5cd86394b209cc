/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Conversion between the laws of G.711: the tables of the reference against spandsp's, which are
 * the standard's too, and against the values that the laws stand for. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <cmocka.h>

#include "batch/aes_cm.h"
#include "batch/law.h"
#include "srtp/g711.h"

/* G.711, tables 1 and 2, as the formulas that they follow: 14 bits and 13 bits, here both of 14. */
static int ulaw_value(uint8_t u)
{
	int segment = (~u >> 4) & 7, step = ~u & 15;
	int value = ((2 * step + 33) << segment) - 33;

	return u & 0x80 ? value : -value;
}

static int alaw_value(uint8_t a)
{
	int segment = ((a ^ 0x55) >> 4) & 7, step = (a ^ 0x55) & 15;
	int value = segment ? (2 * step + 33) << (segment - 1) : 2 * step + 1;

	return a & 0x80 ? 2 * value : -2 * value;
}

static void as_spandsp(void **state)
{
	void *lib = dlopen("libspandsp.so.2", RTLD_NOW);
	uint8_t (*to_a)(uint8_t), (*to_u)(uint8_t);

	(void)state;
	if (!lib) {
		print_message("libspandsp2 is not installed\n");
		skip();
	}
	*(void **)&to_a = dlsym(lib, "ulaw_to_alaw");
	*(void **)&to_u = dlsym(lib, "alaw_to_ulaw");
	assert_true(to_a && to_u);
	for (unsigned i = 0; i < 256; i++) {
		assert_int_equal(g711_ulaw_to_alaw((uint8_t)i), to_a((uint8_t)i));
		assert_int_equal(g711_alaw_to_ulaw((uint8_t)i), to_u((uint8_t)i));
	}
	dlclose(lib);
}

/* The error of a conversion is at most one step of the coarser law. */
static void values_stay(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 256; i++) {
		int u = ulaw_value((uint8_t)i), a = alaw_value((uint8_t)i);
		int to_a = alaw_value(g711_ulaw_to_alaw((uint8_t)i));
		int to_u = ulaw_value(g711_alaw_to_ulaw((uint8_t)i));

		assert_in_range(abs(to_a - u), 0, 4 + abs(u) / 16);
		assert_in_range(abs(to_u - a), 0, 4 + abs(a) / 16);
		assert_true(u == 0 || (to_a < 0) == (u < 0));
		assert_true((to_u < 0) == (a < 0));
	}
}

/* Larger values stay larger. A byte converted there and back converts to the same byte again. */
static void order_stays(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 256; i++) {
		uint8_t a = g711_ulaw_to_alaw((uint8_t)i), u = g711_alaw_to_ulaw((uint8_t)i);

		for (unsigned k = 0; k < 256; k++) {
			if (ulaw_value((uint8_t)i) < ulaw_value((uint8_t)k))
				assert_true(
					alaw_value(a) <= alaw_value(g711_ulaw_to_alaw((uint8_t)k)));
			if (alaw_value((uint8_t)i) < alaw_value((uint8_t)k))
				assert_true(
					ulaw_value(u) <= ulaw_value(g711_alaw_to_ulaw((uint8_t)k)));
		}
		assert_int_equal(g711_ulaw_to_alaw(g711_alaw_to_ulaw(a)), a);
	}
}

static void serial_engine_as_the_tables(void **state)
{
	uint8_t all[256], want[256];

	(void)state;
	for (uint32_t law = XC_LAW_KEEP; law <= XC_LAW_A_TO_U; law++)
		for (size_t len = 0; len <= sizeof(all); len++) {
			for (unsigned i = 0; i < sizeof(all); i++)
				all[i] = want[i] = (uint8_t)(i + len);
			law_bytes(all, len, law);
			g711_convert(want, len, law);
			assert_memory_equal(all, want, sizeof(all));
		}
}

typedef void convert_function(uint8_t *, const uint8_t *, size_t, const struct aes_cm_side *,
	const struct aes_cm_side *, uint32_t);

/* Encrypts all bytes, converts them between two keystreams, and decrypts the result. */
static void convert_encrypted(convert_function *convert, uint32_t law)
{
	enum { LEN = 256, SLACK = 80 };
	uint8_t plain[LEN + SLACK], want[LEN], from[LEN + SLACK], to[LEN + SLACK];
	struct xc_key key[2] = {{.cipher = XC_CIPHER_AES_CM, .rounds = 10},
		{.cipher = XC_CIPHER_AES_CM, .rounds = 10}};
	struct aes_cm_side rx, tx, none;

	for (unsigned i = 0; i < sizeof(key[0].rk); i++) {
		key[0].rk[i] = (uint8_t)(i * 37);
		key[1].rk[i] = (uint8_t)(i * 91 + 5);
	}
	aes_cm_side(&rx, &key[0], 7, 0x1234, false);
	aes_cm_side(&tx, &key[1], 8, 0x5678, false);
	aes_cm_side(&none, &key[0], 0, 0, true);
	for (unsigned i = 0; i < LEN; i++)
		plain[i] = want[i] = (uint8_t)(i * 7);
	aes_cm_recrypt(from, plain, LEN, &none, &rx);
	convert(to, from, LEN, &rx, &tx, law);
	aes_cm_recrypt(plain, to, LEN, &tx, &none);
	g711_convert(want, LEN, law);
	assert_memory_equal(plain, want, LEN);
}

static void between_keystreams_as_the_tables(void **state)
{
	(void)state;
	if (!aes_cm_usable())
		skip();
	for (uint32_t law = XC_LAW_KEEP; law <= XC_LAW_A_TO_U; law++) {
		convert_encrypted(aes_cm_convert, law);
		convert_encrypted(aes_cm_convert_anywhere, law);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_spandsp),
		cmocka_unit_test(values_stay),
		cmocka_unit_test(order_stays),
		cmocka_unit_test(serial_engine_as_the_tables),
		cmocka_unit_test(between_keystreams_as_the_tables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
