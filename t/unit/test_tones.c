/* SPDX-License-Identifier: GPL-2.0-or-later */
/* DTMF: our generator and detector against each other, and against spandsp's; noise, and tones that
 * are not digits. */
#include <dlfcn.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "audio/tones.h"
#include "base/bytes.h"
#include "codec_peers.h"

enum { SECOND = 48000 };

static const char DIGITS[] = "0123456789*#ABCD";

/* Each digit for ms, then as long a pause. Returns the samples. */
static size_t dial(int16_t *pcm, uint32_t rate, uint32_t ms, uint8_t volume)
{
	uint32_t n = rate * ms / 1000;
	size_t at = 0;

	for (uint8_t event = 0; event < 16; event++) {
		struct tone_out t;

		tone_out_init(&t, event, volume, rate);
		tone_out_run(&t, pcm + at, n);
		memset(pcm + at + n, 0, n * sizeof(*pcm));
		at += 2 * n;
	}
	return at;
}

static size_t detect(uint32_t rate, const int16_t *pcm, size_t n, char *text)
{
	struct tones_in t;
	size_t found = 0;
	uint8_t out[64];

	tones_in_init(&t, rate);
	for (size_t at = 0; at < n; at += rate / 50) {
		size_t some = n - at < rate / 50 ? n - at : rate / 50;
		size_t got = tones_in_run(&t, pcm + at, some, out, sizeof(out));

		for (size_t i = 0; i < got; i++)
			text[found++] = tones_char(out[i]);
	}
	text[found] = 0;
	return found;
}

static void each_digit_is_heard_at_each_rate(void **state)
{
	static const uint32_t rates[] = {8000, 16000, 24000, 32000, 44100, 48000};
	static int16_t pcm[SECOND * 4];
	char text[256];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rates); i++)
		for (uint8_t volume = 0; volume <= 30; volume += 10) {
			size_t n = dial(pcm, rates[i], 50, volume);

			detect(rates[i], pcm, n, text);
			assert_string_equal(text, DIGITS);
		}
}

static void short_tones_are_not_heard(void **state)
{
	static int16_t pcm[SECOND];
	size_t n = dial(pcm, 8000, 20, 8);
	char text[256];

	(void)state;
	assert_int_equal(detect(8000, pcm, n, text), 0);
}

static void long_digit_is_heard_once(void **state)
{
	static int16_t pcm[SECOND];
	struct tone_out t;
	char text[256];

	(void)state;
	tone_out_init(&t, 7, 10, 8000);
	tone_out_run(&t, pcm, 16000);
	memset(pcm + 8000, 0, 100 * sizeof(*pcm)); /* a lost packet of 12 ms ends no digit */
	detect(8000, pcm, 20000, text);
	assert_string_equal(text, "7");
}

static void digits_in_noise_are_heard(void **state)
{
	static int16_t pcm[SECOND];
	size_t n = dial(pcm, 8000, 60, 10);
	char text[256];

	(void)state;
	for (size_t i = 0; i < n; i++) /* about 15 dB below the tones */
		pcm[i] = (int16_t)(pcm[i] + (int)(codec_hash((uint32_t)i) % 2400) - 1200);
	detect(8000, pcm, n, text);
	assert_string_equal(text, DIGITS);
}

static void other_sounds_are_no_digits(void **state)
{
	static int16_t pcm[SECOND * 2];
	char text[256];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(pcm); i++)
		pcm[i] = (int16_t)((int)(codec_hash((uint32_t)i) % 20000) - 10000);
	assert_int_equal(detect(8000, pcm, ARRAY_LEN(pcm), text), 0);
	for (double f = 300; f < 3400; f += 7) { /* a single tone, and one with harmonics */
		for (size_t i = 0; i < 1600; i++)
			pcm[i] = (int16_t)(8000 * sin(2 * M_PI * f * (double)i / 8000));
		assert_int_equal(detect(8000, pcm, 1600, text), 0);
		for (size_t i = 0; i < 1600; i++)
			pcm[i] = (int16_t)(pcm[i] + 4000 * sin(4 * M_PI * f * (double)i / 8000) +
				3000 * sin(6 * M_PI * f * (double)i / 8000));
		assert_int_equal(detect(8000, pcm, 1600, text), 0);
	}
}

static void volume_is_the_power_of_both_frequencies(void **state)
{
	static int16_t pcm[8000];
	struct tone_out t;
	double power = 0;

	(void)state;
	tone_out_init(&t, 1, 10, 8000);
	tone_out_run(&t, pcm, ARRAY_LEN(pcm));
	for (size_t i = 0; i < ARRAY_LEN(pcm); i++)
		power += (double)pcm[i] * pcm[i];
	/* A sine that reaches full scale has 3.14 dBm0. */
	power = 3.14 + 10 * log10(power / ARRAY_LEN(pcm) / (32767.0 * 32767 / 2));
	assert_true(fabs(power + 10) < 0.1);
	for (uint8_t event = 0; event < 16; event++) {
		tone_out_init(&t, event, 0, 8000);
		tone_out_run(&t, pcm, ARRAY_LEN(pcm)); /* clips nowhere: lrint() would wrap */
		for (size_t i = 1; i < ARRAY_LEN(pcm); i++)
			assert_true(abs(pcm[i] - pcm[i - 1]) < 40000);
	}
}

static void characters_are_events(void **state)
{
	(void)state;
	for (uint8_t i = 0; i < 16; i++) {
		assert_int_equal(tones_event(DIGITS[i]), i);
		assert_int_equal(tones_char(i), DIGITS[i]);
	}
	assert_int_equal(tones_event('d'), 15);
	assert_int_equal(tones_event('E'), TONES_NO_DIGIT);
	assert_int_equal(tones_event(0), TONES_NO_DIGIT);
	assert_int_equal(tones_char(16), '?');
}

/* --- spandsp ---------------------------------------------------------------------------------- */

static void spandsp_hears_our_digits(void **state)
{
	void *lib = dlopen("libspandsp.so.2", RTLD_NOW | RTLD_LOCAL);
	static int16_t pcm[SECOND];
	size_t n = dial(pcm, 8000, 70, 8), got;
	char text[64] = "";
	void *(*init)(void *, void *, void *);
	int (*run)(void *, const int16_t *, int);
	size_t (*get)(void *, char *, int);
	void *rx;

	(void)state;
	if (!lib)
		skip();
	*(void **)&init = dlsym(lib, "dtmf_rx_init");
	*(void **)&run = dlsym(lib, "dtmf_rx");
	*(void **)&get = dlsym(lib, "dtmf_rx_get");
	rx = init(NULL, NULL, NULL);
	run(rx, pcm, (int)n);
	got = get(rx, text, sizeof(text) - 1);
	assert_int_equal(got, 16);
	assert_string_equal(text, DIGITS);
	free(rx);
}

static void we_hear_digits_of_spandsp(void **state)
{
	void *lib = dlopen("libspandsp.so.2", RTLD_NOW | RTLD_LOCAL);
	static int16_t pcm[SECOND];
	char text[64];
	void *(*init)(void *);
	int (*put)(void *, const char *, int);
	int (*run)(void *, int16_t *, int);
	void *tx;
	int n;

	(void)state;
	if (!lib)
		skip();
	*(void **)&init = dlsym(lib, "dtmf_tx_init");
	*(void **)&put = dlsym(lib, "dtmf_tx_put");
	*(void **)&run = dlsym(lib, "dtmf_tx");
	tx = init(NULL);
	assert_int_equal(put(tx, DIGITS, -1), 0);
	n = run(tx, pcm, ARRAY_LEN(pcm));
	detect(8000, pcm, (size_t)n, text);
	assert_string_equal(text, DIGITS);
	free(tx);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_digit_is_heard_at_each_rate),
		cmocka_unit_test(short_tones_are_not_heard),
		cmocka_unit_test(long_digit_is_heard_once),
		cmocka_unit_test(digits_in_noise_are_heard),
		cmocka_unit_test(other_sounds_are_no_digits),
		cmocka_unit_test(volume_is_the_power_of_both_frequencies),
		cmocka_unit_test(characters_are_events),
		cmocka_unit_test(spandsp_hears_our_digits),
		cmocka_unit_test(we_hear_digits_of_spandsp),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
