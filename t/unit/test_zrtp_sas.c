/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The SAS of ZRTP as text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "keying/zrtp_int.h"

static void short_strings_are_those_of_the_rfc(void **state)
{
	static const struct {
		uint8_t hash[32];
		const char *letters, *words;
	} of[] = {
		{{0}, "yyyy", "aardvark:adroitness"},
		{{0xff, 0xff, 0xff, 0xff}, "9999", "Zulu:Yucatan"},
		/* The example of the PGP word list: E582 is "topmost Istanbul". */
		{{0xe5, 0x82, 0x94, 0xf2}, "hsbj", "topmost:Istanbul"},
		{{0x94, 0xf2}, "1u3y", "Pluto:vagabond"},
	};
	char out[ZRTP_SAS_MAX];

	(void)state;
	for (uint32_t i = 0; i < ARRAY_LEN(of); i++) {
		zrtp_render(out, of[i].hash, ZRTP_B32);
		assert_string_equal(out, of[i].letters);
		zrtp_render(out, of[i].hash, ZRTP_B256);
		assert_string_equal(out, of[i].words);
	}
	/* All pairs of bytes differ, and have room. */
	for (uint32_t i = 0; i < 256; i++)
		for (uint32_t k = 0; k < 256; k++) {
			zrtp_render(out, (const uint8_t[32]){(uint8_t)i, (uint8_t)k}, ZRTP_B256);
			assert_non_null(memchr(out, 0, sizeof(out)));
			assert_non_null(strchr(out, ':'));
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(short_strings_are_those_of_the_rfc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
