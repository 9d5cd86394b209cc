/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Each sample is a sum over neighbours, weighted with a sinc in a Hann window. If the rate falls,
 * the sinc is wider, which removes what the lower rate cannot hold. */
#include "audio/resample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	CROSSINGS = 16, /* zero crossings of the sinc on each side */
	/* The usual rates need few positions between two samples, and so few sets of weights. */
	PHASES = 6,
	TAPS = 208,       /* from 48 to 8 kHz: 2 * 102 */
	WEIGHTS = 8 << 20 /* of resample_all(); from 192,001 to 48,000 Hz it needs 6.5 million */
};

/* sin(a + i * step) and cos of the same, without a call per tap. */
struct wave {
	double sin, cos, step_sin, step_cos;
};

static void wave_init(struct wave *w, double at, double step)
{
	*w = (struct wave){sin(at), cos(at), sin(step), cos(step)};
}

static void wave_next(struct wave *w)
{
	double s = w->sin * w->step_cos + w->cos * w->step_sin;

	w->cos = w->cos * w->step_cos - w->sin * w->step_sin;
	w->sin = s;
}

/* The value at a position between samples. cut: the share of the band that is kept. */
static double value(const struct resample *r, uint64_t whole, double part, double cut)
{
	int64_t reach = (int64_t)ceil(CROSSINGS / cut), first = (int64_t)whole - reach + 1;
	double width = (double)reach, x = (double)(1 - reach) - part, sum = 0;
	struct wave sinc, window;

	wave_init(&sinc, M_PI * cut * x, M_PI * cut);
	wave_init(&window, M_PI * x / width, M_PI / width);
	for (int64_t i = first; i <= (int64_t)whole + reach; i++, x += 1) {
		double weight = fabs(x) < 1e-9 ? cut : sinc.sin / (M_PI * x);

		if (i >= 0 && i < (int64_t)r->samples)
			sum += weight * (0.5 + 0.5 * window.cos) * r->pcm[i];
		wave_next(&sinc);
		wave_next(&window);
	}
	return sum;
}

static int16_t rounded(double v)
{
	if (v >= INT16_MAX)
		return INT16_MAX;
	if (v <= INT16_MIN)
		return INT16_MIN;
	return (int16_t)lrint(v);
}

/* --- Weights that are computed once ---------------------------------------------------------- */

static uint32_t divisor(uint32_t a, uint32_t b)
{
	while (b) {
		uint32_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

static void weigh(float *weight, int64_t reach, double part, double cut)
{
	double x = (double)(1 - reach) - part;
	struct wave sinc, window;

	wave_init(&sinc, M_PI * cut * x, M_PI * cut);
	wave_init(&window, M_PI * x / (double)reach, M_PI / (double)reach);
	for (int64_t i = 0; i < 2 * reach; i++, x += 1) {
		double w = fabs(x) < 1e-9 ? cut : sinc.sin / (M_PI * x);

		weight[i] = (float)(w * (0.5 + 0.5 * window.cos));
		wave_next(&sinc);
		wave_next(&window);
	}
}

static float sum_of(const int16_t *pcm, const float *weight, int64_t n)
{
	float sum[4] = {0}, rest = 0;
	int64_t i = 0;

	for (; i + 4 <= n; i += 4)
		for (int k = 0; k < 4; k++)
			sum[k] += weight[i + k] * pcm[i + k];
	for (; i < n; i++)
		rest += weight[i] * pcm[i];
	return sum[0] + sum[1] + sum[2] + sum[3] + rest;
}

/* The samples of pcm at first and after it, as far as there are any. */
static float value_of(const struct resample *r, const float *weight, int64_t first, int64_t n)
{
	int64_t from = first < 0 ? -first : 0;
	int64_t end = first + n > (int64_t)r->samples ? (int64_t)r->samples - first : n;

	return from < end ? sum_of(r->pcm + first + from, weight + from, end - from) : 0;
}

/* Memory for the weights, 2 * reach for each position between two samples. */
struct weights {
	float *of;
	uint32_t unit; /* the common divisor of both rates: a position is a multiple of it */
	int64_t reach;
	double cut;
};

static void by_weights(
	const struct resample *r, const struct weights *w, uint64_t at, int16_t *out, size_t n)
{
	for (uint32_t i = 0; i < r->to / w->unit; i++)
		weigh(w->of + i * 2 * w->reach, w->reach, (double)(i * w->unit) / r->to, w->cut);
	for (size_t i = 0; i < n; i++, at += r->rate)
		out[i] = rounded(
			(double)value_of(r, w->of + at % r->to / w->unit * 2 * (size_t)w->reach,
				(int64_t)(at / r->to) - w->reach + 1, 2 * w->reach));
}

/* False: the rates need too many weights. */
static bool run_by_phases(const struct resample *r, uint64_t at, double cut, int16_t *out, size_t n)
{
	uint32_t unit = divisor(r->rate, r->to), phases = r->to / unit;
	int64_t reach = (int64_t)ceil(CROSSINGS / cut);
	float weight[PHASES * TAPS];

	if (phases > PHASES || 2 * reach > TAPS || at % unit || n < 2 * PHASES)
		return false;
	by_weights(r, &(struct weights){weight, unit, reach, cut}, at, out, n);
	return true;
}

/* The share of the band that is kept. */
static double cut_of(const struct resample *r)
{
	return r->to < r->rate ? 0.95 * r->to / r->rate : 1;
}

bool resample_all(const struct resample *r, int16_t *out, size_t n)
{
	double cut = cut_of(r);
	int64_t reach = (int64_t)ceil(CROSSINGS / cut);
	uint32_t unit = divisor(r->rate, r->to);
	size_t weights = (size_t)(r->to / unit) * (size_t)(2 * reach);
	float *weight = weights <= WEIGHTS ? malloc(weights * sizeof(*weight)) : NULL;

	if (!weight)
		return false;
	by_weights(r, &(struct weights){weight, unit, reach, cut}, 0, out, n);
	free(weight);
	return true;
}

void resample_run(const struct resample *r, uint64_t at, int16_t *out, size_t n)
{
	double cut = cut_of(r);

	if (r->rate != r->to && run_by_phases(r, at, cut, out, n))
		return;
	for (size_t i = 0; i < n; i++, at += r->rate) {
		uint64_t whole = at / r->to;

		if (r->rate == r->to)
			out[i] = whole < r->samples ? r->pcm[whole] : 0;
		else
			out[i] =
				rounded(value(r, whole, (double)(at % r->to) / (double)r->to, cut));
	}
}
