/* SPDX-License-Identifier: GPL-2.0-or-later */
/* DTMF. Detection by the Goertzel algorithm in blocks of 12.75 ms (102 samples at 8000 Hz). A block
 * has a digit if one low and one high frequency stand out of their groups, have about the same
 * power, and together have most of the block's energy, unlike speech. No library is used, because
 * libspandsp depends on libtiff, which a daemon that handles keys should not load. */
#include "audio/tones.h"

#include <math.h>
#include <string.h>

enum { LOW = 0, HIGH = 4, FREQUENCIES = 8 };
enum { MISSES = 3 }; /* blocks that end a digit; a lost packet of 20 ms damages two */

/* Hz */
static const double frequency[FREQUENCIES] = {697, 770, 852, 941, 1209, 1336, 1477, 1633};
/* By low and high frequency. */
static const char keypad[4][4] = {
	{'1', '2', '3', 'A'}, {'4', '5', '6', 'B'}, {'7', '8', '9', 'C'}, {'*', '0', '#', 'D'}};
static const char events[] = "0123456789*#ABCD";

/* Thresholds. Twist: Q.24 accepts a high frequency 4 dB stronger or 8 dB weaker than the low one.
 */
static const double FULL_SCALE_DBM0 = 3.14; /* of a sine that reaches 32767 */
static const double QUIETEST = 30.0;        /* amplitude of each frequency */
static const double OVER_GROUP = 6.3;       /* power, 8 dB */
static const double TWIST_HIGH = 4.0;       /* power, 6 dB */
static const double TWIST_LOW = 10.0;       /* power, 10 dB */
static const double SHARE = 0.8;            /* of the energy of the block */

uint8_t tones_event(char c)
{
	if (c >= 'a' && c <= 'd')
		c = (char)(c - 'a' + 'A');
	for (uint8_t i = 0; i < 16; i++)
		if (events[i] == c)
			return i;
	return TONES_NO_DIGIT;
}

char tones_char(uint8_t event)
{
	return event < 16 ? events[event] : '?';
}

void tone_out_init(struct tone_out *t, uint8_t event, uint8_t volume, uint32_t rate)
{
	char c = tones_char(event);

	*t = (struct tone_out){0};
	for (int low = 0; low < 4; low++)
		for (int high = 0; high < 4; high++)
			if (keypad[low][high] == c) {
				t->step[0] = 2 * M_PI * frequency[LOW + low] / rate;
				t->step[1] = 2 * M_PI * frequency[HIGH + high] / rate;
			}
	/* Two sines of half the power each. They must not clip when their peaks meet. */
	t->peak = 32767 * pow(10, -(volume + FULL_SCALE_DBM0) / 20) / sqrt(2);
	t->peak = fmin(t->peak, 16383);
}

void tone_out_run(struct tone_out *t, int16_t *pcm, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		pcm[i] = (int16_t)lrint(t->peak * (sin(t->phase[0]) + sin(t->phase[1])));
		for (int k = 0; k < 2; k++)
			t->phase[k] = fmod(t->phase[k] + t->step[k], 2 * M_PI);
	}
}

/* --- Detection -------------------------------------------------------------------------------- */

void tones_in_init(struct tones_in *t, uint32_t rate)
{
	*t = (struct tones_in){.block = rate * 102 / 8000};
	for (int i = 0; i < FREQUENCIES; i++)
		t->coeff[i] = 2 * cos(2 * M_PI * frequency[i] / rate);
	t->last = t->digit = TONES_NO_DIGIT;
}

static int strongest(const double *power)
{
	int best = 0;

	for (int i = 1; i < 4; i++)
		best = power[i] > power[best] ? i : best;
	return best;
}

static bool stands_out(const double *power, int best)
{
	for (int i = 0; i < 4; i++)
		if (i != best && power[i] * OVER_GROUP > power[best])
			return false;
	return true;
}

static uint8_t judge(const struct tones_in *t, const double power[FREQUENCIES])
{
	int low = strongest(power + LOW), high = strongest(power + HIGH);
	double pl = power[LOW + low], ph = power[HIGH + high];
	double quietest = QUIETEST * t->block / 2, n = t->block;

	quietest *= quietest;
	if (pl < quietest || ph < quietest || ph > pl * TWIST_HIGH || pl > ph * TWIST_LOW)
		return TONES_NO_DIGIT;
	if (!stands_out(power + LOW, low) || !stands_out(power + HIGH, high))
		return TONES_NO_DIGIT;
	/* A sine of amplitude a has power (a n / 2)^2 here, and energy n a^2 / 2. */
	if ((pl + ph) * 2 / n < SHARE * t->energy)
		return TONES_NO_DIGIT;
	return tones_event(keypad[low][high]);
}

/* Ends a block. Returns the digit that began, or TONES_NO_DIGIT. */
static uint8_t end_block(struct tones_in *t)
{
	double power[FREQUENCIES];
	uint8_t now, began = TONES_NO_DIGIT;

	for (int i = 0; i < FREQUENCIES; i++)
		power[i] = t->s1[i] * t->s1[i] + t->s2[i] * t->s2[i] -
			t->coeff[i] * t->s1[i] * t->s2[i];
	now = judge(t, power);
	memset(t->s1, 0, sizeof(t->s1));
	memset(t->s2, 0, sizeof(t->s2));
	t->energy = 0;
	t->filled = 0;
	if (now == t->digit) {
		t->misses = 0;
	} else if (now != TONES_NO_DIGIT && now == t->last) {
		began = t->digit = now;
		t->misses = 0;
	} else if (t->digit != TONES_NO_DIGIT && ++t->misses == MISSES) {
		t->digit = TONES_NO_DIGIT;
		t->misses = 0;
	}
	t->last = now;
	return began;
}

size_t tones_in_run(struct tones_in *t, const int16_t *pcm, size_t n, uint8_t *out, size_t cap)
{
	size_t found = 0;

	for (size_t i = 0; i < n; i++) {
		double v = pcm[i];

		for (int k = 0; k < FREQUENCIES; k++) {
			double s = v + t->coeff[k] * t->s1[k] - t->s2[k];

			t->s2[k] = t->s1[k];
			t->s1[k] = s;
		}
		t->energy += v * v;
		if (++t->filled == t->block) {
			uint8_t began = end_block(t);

			if (began != TONES_NO_DIGIT && found < cap)
				out[found++] = began;
		}
	}
	return found;
}
