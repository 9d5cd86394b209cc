/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Each sample is a sum over neighbours, weighted with a sinc in a Hann window. If the rate falls,
 * the sinc is wider, which removes what the lower rate cannot hold. */
#include "audio/resample.h"

#include <math.h>
#include <string.h>

enum { CROSSINGS = 16 }; /* zero crossings of the sinc on each side */

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

void resample_run(const struct resample *r, uint64_t at, int16_t *out, size_t n)
{
	double cut = r->to < r->rate ? 0.95 * r->to / r->rate : 1;

	for (size_t i = 0; i < n; i++, at += r->rate) {
		uint64_t whole = at / r->to;

		if (r->rate == r->to)
			out[i] = whole < r->samples ? r->pcm[whole] : 0;
		else
			out[i] =
				rounded(value(r, whole, (double)(at % r->to) / (double)r->to, cut));
	}
}
