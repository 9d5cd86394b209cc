/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "codec_speech.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ESPEAK_RATE = 22050, HEADER = 44, LIMIT = ESPEAK_RATE * 8 };

static size_t espeak(int16_t *raw)
{
	FILE *f = popen(
		"espeak-ng -s 150 --stdout 'The relay forwards each packet of this call, and the "
		"far end decodes every word that I say.' 2>/dev/null",
		"r");
	uint8_t header[HEADER];
	size_t n = 0;

	if (!f)
		return 0;
	if (fread(header, 1, HEADER, f) == HEADER && memcmp(header, "RIFF", 4) == 0)
		n = fread(raw, sizeof(*raw), LIMIT, f);
	pclose(f);
	return n;
}

static void harmonics(int16_t *pcm, size_t samples, uint32_t rate)
{
	double phase = 0;

	for (size_t i = 0; i < samples; i++) {
		double t = (double)i / rate, v = 0;

		phase += 2 * M_PI * (120 + 30 * sin(3 * t)) / rate;
		for (int h = 1; h < 20; h++)
			v += sin(h * phase) / h;
		pcm[i] = (int16_t)lrint(v * 4000 * (0.6 + 0.4 * sin(9 * t)));
	}
}

/* Low-pass by averaging, then linear between neighbours: enough for a test signal. */
bool codec_speech(int16_t *pcm, size_t samples, uint32_t rate)
{
	int16_t *raw = malloc(LIMIT * sizeof(*raw));
	size_t n = raw ? espeak(raw) : 0;
	uint32_t wide = rate < ESPEAK_RATE ? 3 : 1;

	if (n < ESPEAK_RATE) {
		harmonics(pcm, samples, rate);
		free(raw);
		return false;
	}
	for (size_t i = 0; i < samples; i++) {
		double at = fmod((double)i * ESPEAK_RATE / rate, (double)(n - 4)), v = 0;

		for (uint32_t k = 0; k < wide; k++) {
			size_t j = (size_t)at + k;

			v += raw[j] + (raw[j + 1] - raw[j]) * (at - floor(at));
		}
		pcm[i] = (int16_t)lrint(v / wide / 2);
	}
	free(raw);
	return true;
}
