/* SPDX-License-Identifier: GPL-2.0-or-later */
/* G.711 against the decision values of the recommendation and against spandsp: all samples and all
 * codes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/bytes.h"
#include "codec/g711.h"
#include "codec_peers.h"

/* --- By definition: tables 1a and 2a, as intervals -------------------------------------------- */

struct interval {
	int from, to, value; /* of the magnitude; value: what the decoder returns */
};

/* mu-law: 14-bit magnitudes, in steps of 4. Segment s has 16 intervals of width 2^(s+1). The first
 * one of all has half the width. */
static struct interval ulaw(int segment, int part)
{
	int width = 2 << segment, from = (33 << segment) - 33 + part * width - (1 << segment);
	struct interval i = {from, from + width, from + width / 2};

	if (segment == 0 && part == 0)
		i = (struct interval){0, 1, 0};
	i.from *= 4;
	i.to *= 4;
	i.value *= 4;
	return i;
}

/* A-law: 13-bit magnitudes, in steps of 8. Segments 0 and 1 have the same width. */
static struct interval alaw(int segment, int part)
{
	int width = segment < 2 ? 2 : 2 << (segment - 1);
	int from = segment == 0 ? part * 2 : (32 << (segment - 1)) + part * width;

	return (struct interval){from * 8, (from + width) * 8, (from + width / 2) * 8};
}

static void ulaw_is_the_definition(void **state)
{
	(void)state;
	for (int code = 0; code < 128; code++) {
		struct interval i = ulaw(code >> 4, code & 15);
		uint8_t positive = (uint8_t)(~code & 0xff), negative = (uint8_t)(~code & 0x7f);

		assert_int_equal(g711_ulaw_decode(positive), i.value);
		assert_int_equal(g711_ulaw_decode(negative), -i.value);
		for (int v = i.from; v < i.to || (code == 127 && v <= INT16_MAX); v++) {
			assert_int_equal(g711_ulaw_encode((int16_t)v), positive);
			if (v)
				assert_int_equal(g711_ulaw_encode((int16_t)-v), negative);
		}
	}
	assert_int_equal(g711_ulaw_encode(INT16_MIN), 0x00);
}

static void alaw_is_the_definition(void **state)
{
	(void)state;
	for (int code = 0; code < 128; code++) {
		struct interval i = alaw(code >> 4, code & 15);
		uint8_t positive = (uint8_t)((code | 0x80) ^ 0x55),
			negative = (uint8_t)(code ^ 0x55);

		assert_int_equal(g711_alaw_decode(positive), i.value);
		assert_int_equal(g711_alaw_decode(negative), -i.value);
		for (int v = i.from; v < i.to; v++) {
			assert_int_equal(g711_alaw_encode((int16_t)v), positive);
			assert_int_equal(g711_alaw_encode((int16_t)(-v - 1)), negative);
		}
	}
}

static void all_values_are_those_of_spandsp(void **state)
{
	static int16_t sample[65536], value[256];
	static uint8_t code[65536], all[256];

	(void)state;
	for (int v = 0; v < 65536; v++)
		sample[v] = (int16_t)(v - 32768);
	for (int c = 0; c < 256; c++)
		all[c] = (uint8_t)c;
	for (int ulaw_first = 0; ulaw_first < 2; ulaw_first++) {
		if (peer_spandsp_g711_encode(ulaw_first, sample, 65536, code))
			skip();
		for (int v = 0; v < 65536; v++)
			assert_int_equal(code[v],
				ulaw_first ? g711_ulaw_encode(sample[v])
					   : g711_alaw_encode(sample[v]));
		assert_int_equal(peer_spandsp_g711_decode(ulaw_first, all, 256, value), 0);
		for (int c = 0; c < 256; c++)
			assert_int_equal(value[c],
				ulaw_first ? g711_ulaw_decode(all[c]) : g711_alaw_decode(all[c]));
	}
}

/* Several at once: all values, and lengths around the size of a block. */
static void many_are_as_single_ones(void **state)
{
	static int16_t sample[65536], value[256];
	static uint8_t code[65536], all[256];

	(void)state;
	for (int v = 0; v < 65536; v++)
		sample[v] = (int16_t)(v - 32768);
	for (int c = 0; c < 256; c++)
		all[c] = (uint8_t)c;
	for (int ulaw_first = 0; ulaw_first < 2; ulaw_first++) {
		void (*encode)(const int16_t *, size_t, uint8_t *) =
			ulaw_first ? g711_ulaw_encode_all : g711_alaw_encode_all;
		void (*decode)(const uint8_t *, size_t, int16_t *) =
			ulaw_first ? g711_ulaw_decode_all : g711_alaw_decode_all;

		encode(sample, 65536, code);
		for (int v = 0; v < 65536; v++)
			assert_int_equal(code[v],
				ulaw_first ? g711_ulaw_encode(sample[v])
					   : g711_alaw_encode(sample[v]));
		decode(all, 256, value);
		for (int c = 0; c < 256; c++)
			assert_int_equal(value[c],
				ulaw_first ? g711_ulaw_decode(all[c]) : g711_alaw_decode(all[c]));
		for (size_t n = 0; n < 40; n++) {
			memset(code, 0x33, 41);
			encode(sample + 100, n, code);
			assert_int_equal(code[n], 0x33);
			decode(code, n, value);
			for (size_t i = 0; i < n; i++)
				assert_int_equal(value[i],
					ulaw_first ? g711_ulaw_decode(code[i])
						   : g711_alaw_decode(code[i]));
		}
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(ulaw_is_the_definition),
		cmocka_unit_test(alaw_is_the_definition),
		cmocka_unit_test(all_values_are_those_of_spandsp),
		cmocka_unit_test(many_are_as_single_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
