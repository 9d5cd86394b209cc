/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "gap.h"

#include <math.h>
#include <string.h>

enum {
	FADE_MS = 60,
	SHORTEST_US = 2500, /* of a period: 400 Hz */
	LONGEST_US = 15000, /* 67 Hz */
	PAST_US = 30000,
	JOIN_US = 2500, /* of mixing after a gap */
};

static uint32_t samples_of(const struct gap *g, uint32_t us)
{
	return (uint32_t)((uint64_t)g->rate * us / 1000000);
}

void gap_init(struct gap *g, uint32_t rate, uint32_t channels)
{
	memset(g, 0, sizeof(*g));
	g->rate = rate;
	g->channels = channels;
}

/* Correlation of the last period with the one before, from -1 to 1. Reads every step-th sample of
 * the first channel: 8 kHz are enough. */
static double likeness(const struct gap *g, uint32_t period, uint32_t step)
{
	double both = 0, a = 1, b = 1;

	for (uint32_t i = g->past_n - period; i < g->past_n; i += step) {
		double x = g->past[i * g->channels], y = g->past[(i - period) * g->channels];

		both += x * y;
		a += x * x;
		b += y * y;
	}
	return both / sqrt(a * b);
}

static uint32_t find_period(const struct gap *g)
{
	uint32_t step = g->rate / 8000, best = 0;
	double most = -2;

	for (uint32_t p = samples_of(g, SHORTEST_US); p <= samples_of(g, LONGEST_US); p += step) {
		double v = 2 * p <= g->past_n ? likeness(g, p, step) : -2;

		if (v > most) {
			most = v;
			best = p;
		}
	}
	return best;
}

/* Sample number at of the repetition, for a channel. */
static int16_t repeated(const struct gap *g, uint32_t at, uint32_t channel)
{
	uint64_t fade = (uint64_t)g->rate * FADE_MS / 1000;
	uint32_t i = 0;

	if (g->period == 0 || at >= fade)
		return 0;
	i = g->past_n - g->period + at % g->period;
	return (int16_t)(g->past[i * g->channels + channel] * (int64_t)(fade - at) / (int64_t)fade);
}

void gap_fill(struct gap *g, int16_t *pcm, size_t samples)
{
	if (g->at == 0)
		g->period = find_period(g);
	for (size_t i = 0; i < samples; i++) {
		for (uint32_t c = 0; c < g->channels; c++)
			pcm[i * g->channels + c] = repeated(g, g->at, c);
		if (g->at < UINT32_MAX)
			g->at++;
	}
}

static void join(struct gap *g, int16_t *pcm, size_t samples)
{
	int32_t n = (int32_t)samples_of(g, JOIN_US);

	if ((size_t)n > samples)
		n = (int32_t)samples;
	for (int32_t i = 0; i < n; i++)
		for (uint32_t c = 0; c < g->channels; c++) {
			int16_t *p = &pcm[(uint32_t)i * g->channels + c];

			*p = (int16_t)((*p * i + repeated(g, g->at + (uint32_t)i, c) * (n - i)) /
				n);
		}
	g->at = 0;
	g->period = 0;
}

void gap_heard(struct gap *g, int16_t *pcm, size_t samples)
{
	uint32_t keep = samples_of(g, PAST_US), old = 0;
	size_t frame = g->channels * sizeof(*pcm);

	if (g->at)
		join(g, pcm, samples);
	if (samples >= keep) {
		memcpy(g->past, pcm + (samples - keep) * g->channels, keep * frame);
		g->past_n = keep;
		return;
	}
	old = g->past_n + samples > keep ? keep - (uint32_t)samples : g->past_n;
	memmove(g->past, g->past + (size_t)(g->past_n - old) * g->channels, old * frame);
	memcpy(g->past + (size_t)old * g->channels, pcm, samples * frame);
	g->past_n = old + (uint32_t)samples;
}

void gap_silence(struct gap *g)
{
	gap_init(g, g->rate, g->channels);
}
