/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The built-in resampler, between all pairs of its rates: exact counts, flat pass band, images and
 * aliases, the same result in any pieces, full scale, and the table of its filter. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/bytes.h"
#include "codec/resampler.h"
#include "codec/resampler_sinc.h"

enum { SECOND = 48000 };

static const uint32_t rates[] = {8000, 16000, 24000, 32000, 48000};

struct line {
	const struct xcipher_resampler *how;
	void *state;
	uint32_t from, to;
	int16_t in[SECOND], out[SECOND];
};

static struct line *line_new(uint32_t from, uint32_t to)
{
	struct line *l = calloc(1, sizeof(*l));

	assert_non_null(l);
	*l = (struct line){.how = codec_resampler(), .from = from, .to = to};
	l->state = calloc(1, l->how->state_size);
	assert_int_equal(l->how->init(l->state, 1, from, to), 0);
	return l;
}

static void line_free(struct line *l)
{
	free(l->state);
	free(l);
}

/* Every packet of 20 ms becomes one of 20 ms, from the first on. */
static void convert(struct line *l)
{
	uint32_t in = l->from / 50, out = l->to / 50;

	assert_int_equal(l->how->init(l->state, 1, l->from, l->to), 0);
	for (uint32_t i = 0; i < 50; i++)
		assert_int_equal(
			l->how->run(l->state, l->in + i * in, in, l->out + i * out, out), out);
}

static void tone(struct line *l, double hertz, double loud)
{
	for (uint32_t i = 0; i < l->from; i++)
		l->in[i] = (int16_t)lrint(loud * sin(2 * M_PI * hertz * i / l->from));
}

/* Least squares: what of the second half second is a tone, and the power of the rest. */
static void fit(const struct line *l, double hertz, double *loud, double *rest)
{
	double cc = 0, ss = 0, cs = 0, c = 0, s = 0, a, b, all = 0;
	uint32_t from = l->to / 2;

	for (uint32_t i = from; i < l->to; i++) {
		double x = cos(2 * M_PI * hertz * i / l->to), y = sin(2 * M_PI * hertz * i / l->to);

		cc += x * x;
		ss += y * y;
		cs += x * y;
		c += x * l->out[i];
		s += y * l->out[i];
	}
	a = (c * ss - s * cs) / (cc * ss - cs * cs);
	b = (s * cc - c * cs) / (cc * ss - cs * cs);
	for (uint32_t i = from; i < l->to; i++) {
		double e = l->out[i] - a * cos(2 * M_PI * hertz * i / l->to) -
			b * sin(2 * M_PI * hertz * i / l->to);

		all += e * e;
	}
	*loud = sqrt(a * a + b * b);
	*rest = all / from;
}

/* Measures a tone of half scale: its attenuation and what else is there, in dB. */
static void measure(struct line *l, double hertz, double *attenuation, double *snr)
{
	double loud = 0, rest = 0;

	tone(l, hertz, 16000);
	convert(l);
	fit(l, hertz, &loud, &rest);
	*attenuation = -20 * log10(loud / 16000);
	*snr = 10 * log10(loud * loud / 2 / rest);
}

static void one_pair(struct line *l)
{
	double low = l->from < l->to ? l->from : l->to, attenuation = 0, snr = 0;
	double worst = 1000, alias = 1000, ripple = 0;

	for (double hertz = 100; hertz < 0.42 * low; hertz *= 1.07) {
		measure(l, hertz, &attenuation, &snr);
		worst = fmin(worst, snr);
		ripple = fmax(ripple, fabs(attenuation));
	}
	for (double hertz = 0.58 * low; hertz < 0.499 * l->from; hertz *= 1.05) {
		double power = 0;

		tone(l, hertz, 16000);
		convert(l);
		for (uint32_t i = l->to / 2; i < l->to; i++)
			power += (double)l->out[i] * l->out[i];
		power /= l->to / 2;
		alias = fmin(alias, 10 * log10(16000.0 * 16000 / 2 / fmax(power, 1e-3)));
	}
	print_message("%u to %u Hz: SNR %.1f dB, ripple %.3f dB, aliases %.1f dB below\n", l->from,
		l->to, worst, ripple, alias < 1000 ? alias : 0);
	assert_true(worst > 60);
	assert_true(ripple < 0.1);
	assert_true(alias > 60);
}

static void tones_pass_and_aliases_do_not(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rates); i++)
		for (size_t k = 0; k < ARRAY_LEN(rates); k++)
			if (i != k) {
				struct line *l = line_new(rates[i], rates[k]);

				one_pair(l);
				line_free(l);
			}
}

/* An impulse comes out 16 samples of the lower rate later. */
static void delay_is_as_stated(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rates); i++)
		for (size_t k = 0; k < ARRAY_LEN(rates); k++) {
			uint32_t low = rates[i < k ? i : k], best = 0;
			double want = 0.5 * rates[k] + 16.0 * rates[k] / low;
			struct line *l;

			if (i == k)
				continue;
			l = line_new(rates[i], rates[k]);
			memset(l->in, 0, sizeof(l->in));
			l->in[rates[i] / 2] = 30000;
			convert(l);
			for (uint32_t n = 0; n < rates[k]; n++)
				best = l->out[n] > l->out[best] ? n : best;
			assert_true(fabs(best - want) < 1);
			line_free(l);
		}
}

/* Pieces of 1, 2, 3, ... samples give the same samples, and as many. */
static void pieces_change_nothing(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rates); i++)
		for (size_t k = 0; k < ARRAY_LEN(rates); k++) {
			static int16_t whole[SECOND];
			uint32_t at = 0, n = 0;
			struct line *l;

			if (i == k)
				continue;
			l = line_new(rates[i], rates[k]);
			srand(1);
			for (uint32_t s = 0; s < rates[i]; s++)
				l->in[s] = (int16_t)(rand() - RAND_MAX / 2);
			convert(l);
			memcpy(whole, l->out, sizeof(whole));
			assert_int_equal(l->how->init(l->state, 1, rates[i], rates[k]), 0);
			for (uint32_t piece = 1; at + piece < rates[i]; at += piece++) {
				int got = l->how->run(
					l->state, l->in + at, piece, l->out + n, SECOND - n);

				assert_true(got >= 0);
				n += (uint32_t)got;
			}
			assert_int_equal(n, ((uint64_t)at * rates[k] + rates[i] - 1) / rates[i]);
			assert_memory_equal(l->out, whole, 2 * n);
			line_free(l);
		}
}

/* A constant stays one, whatever the phase, and nothing wraps. */
static void full_scale_is_clipped(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rates); i++)
		for (size_t k = 0; k < ARRAY_LEN(rates); k++) {
			struct line *l;

			if (i == k)
				continue;
			l = line_new(rates[i], rates[k]);
			for (uint32_t s = 0; s < rates[i]; s++)
				l->in[s] = INT16_MIN;
			convert(l);
			for (uint32_t s = rates[k] / 2; s < rates[k]; s++)
				assert_int_equal(l->out[s], INT16_MIN);
			for (uint32_t s = 0; s < rates[i]; s++)
				l->in[s] = s / 31 % 2 ? INT16_MAX : INT16_MIN;
			convert(l); /* the sanitizers watch */
			line_free(l);
		}
}

static void others_are_refused(void **state)
{
	const struct xcipher_resampler *x = codec_resampler();
	static int16_t in[XCIPHER_CODEC_MAX_PCM + 1], out[8];
	struct line *l = line_new(8000, 16000);

	(void)state;
	assert_false(codec_resampler_has(8000, 44100));
	assert_false(codec_resampler_has(40000, 8000));
	assert_false(codec_resampler_has(8000, 8000));
	assert_false(codec_resampler_has(0, 8000));
	assert_int_equal(x->init(l->state, 2, 8000, 16000), -EINVAL);
	assert_int_equal(x->init(l->state, 1, 8000, 96000), -EINVAL);
	assert_int_equal(x->init(l->state, 1, 8000, 16000), 0);
	assert_int_equal(x->run(l->state, in, XCIPHER_CODEC_MAX_PCM + 1, out, 8), -EINVAL);
	assert_int_equal(x->run(l->state, in, 5, out, 8), -ENOSPC);
	assert_int_equal(x->run(l->state, in, 4, out, 8), 8);
	assert_int_equal(x->run(l->state, in, 0, out, 8), 0);
	line_free(l);
}

static double bessel(double x)
{
	double sum = 1, term = 1;

	for (int k = 1; term > 1e-13 * sum; k++) {
		term *= (x / 2 / k) * (x / 2 / k);
		sum += term;
	}
	return sum;
}

static void table_is_its_formula(void **state)
{
	(void)state;
	for (int i = 0; i <= RESAMPLER_GRID * RESAMPLER_REACH; i++) {
		double t = (double)i / RESAMPLER_GRID, x = t / RESAMPLER_REACH;
		double v = (i ? sin(M_PI * t) / (M_PI * t) : 1) *
			bessel(7 * sqrt(fabs(1 - x * x))) / bessel(7);

		assert_true(fabs(v * 1048576 - resampler_sinc[i]) < 0.6);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tones_pass_and_aliases_do_not),
		cmocka_unit_test(delay_is_as_stated),
		cmocka_unit_test(pieces_change_nothing),
		cmocka_unit_test(full_scale_is_clipped),
		cmocka_unit_test(others_are_refused),
		cmocka_unit_test(table_is_its_formula),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
