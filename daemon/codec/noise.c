/* SPDX-License-Identifier: GPL-2.0-or-later */
/* RFC 3389 section 3: the level is in -dBov, where 0 is the power of a square wave of full scale.
 * A coefficient of reflection k is the byte 127 + 127 k. */
#include "noise.h"

#include <errno.h>
#include <math.h>
#include <string.h>

enum { FULL = 32768, MIDDLE = 127, QUIET = 127 };

int noise_take(struct noise *n, const uint8_t *in, size_t len)
{
	double power = 0, left = 1;

	if (len == 0)
		return -EBADMSG;
	memset(n->reflection, 0, sizeof(n->reflection));
	for (size_t i = 1; i < len && i <= NOISE_ORDER; i++) {
		/* 255 would be a filter that never ends */
		double k = ((double)in[i] - MIDDLE) / (MIDDLE + 1);

		n->reflection[i - 1] = k;
		left *= 1 - k * k;
	}
	power = pow(10, -(double)(in[0] & 0x7f) / 10);
	/* White noise between -1 and 1 has a power of a third; the filter adds 1 / left. */
	n->gain = sqrt(power * 3 * left) * FULL;
	return 0;
}

static double white(struct noise *n)
{
	n->random = n->random * 1664525 + 1013904223;
	return (double)(int32_t)n->random / 2147483648.0;
}

/* A lattice filter of poles: stable as long as all coefficients are below one. */
static double coloured(struct noise *n, double v)
{
	for (int i = NOISE_ORDER - 1; i >= 0; i--) {
		v -= n->reflection[i] * n->memory[i];
		if (i + 1 < NOISE_ORDER)
			n->memory[i + 1] = n->memory[i] + n->reflection[i] * v;
	}
	n->memory[0] = v;
	return v;
}

void noise_make(struct noise *n, int16_t *pcm, size_t samples)
{
	for (size_t i = 0; i < samples; i++) {
		double v = coloured(n, white(n) * n->gain);

		pcm[i] = (int16_t)lrint(fmax(-FULL, fmin(FULL - 1, v)));
	}
}

/* Levinson and Durbin: coefficients of reflection from the autocorrelation. */
static void reflections(const double *r, uint32_t order, double *k)
{
	double a[NOISE_ORDER + 1] = {1}, error = r[0];

	for (uint32_t m = 1; m <= order; m++) {
		double sum = 0, next[NOISE_ORDER + 1] = {1};

		for (uint32_t i = 0; i < m; i++)
			sum += a[i] * r[m - i];
		k[m - 1] = error > 0 ? -sum / error : 0;
		for (uint32_t i = 1; i <= m; i++)
			next[i] = a[i] + k[m - 1] * a[m - i];
		memcpy(a, next, sizeof(a));
		error *= 1 - k[m - 1] * k[m - 1];
	}
}

int noise_describe(const int16_t *pcm, size_t samples, uint32_t order, uint8_t *out, size_t cap)
{
	double r[NOISE_ORDER + 1] = {0}, k[NOISE_ORDER] = {0}, level = QUIET;

	if (order > NOISE_ORDER)
		order = NOISE_ORDER;
	if (cap < order + 1)
		return -ENOSPC;
	for (uint32_t lag = 0; lag <= order; lag++)
		for (size_t i = lag; i < samples; i++)
			r[lag] += (double)pcm[i] * pcm[i - lag];
	if (samples && r[0] > 0)
		level = -10 * log10(r[0] / (double)samples / FULL / FULL);
	out[0] = (uint8_t)lrint(fmax(0, fmin(QUIET, level)));
	reflections(r, order, k);
	for (uint32_t i = 0; i < order; i++)
		out[1 + i] = (uint8_t)lrint(fmax(0, fmin(254, MIDDLE + MIDDLE * k[i])));
	return (int)(order + 1);
}
