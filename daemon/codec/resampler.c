/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A polyphase filter. An output sample is the sum of neighbouring input samples, weighted with a
 * sinc in a Kaiser window of 32 samples of the lower rate. Its band ends at half the lower rate.
 * All arithmetic is of integers, so results are the same on all machines. */
#include "codec/resampler.h"

#include <errno.h>
#include <string.h>

#include "codec/resampler_sinc.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum {
	GRID = RESAMPLER_GRID,   /* points for a sample of the lower rate */
	REACH = RESAMPLER_REACH, /* samples of the lower rate on each side */
	MOST_TAPS = 192,         /* of all phases together, and of one */
	UNIT_BITS = 20,          /* of resampler_sinc[] */
	TAP_BITS = 14            /* sum of absolute values below 4, so no sum exceeds 32 bits */
};

struct state {
	uint32_t up, down; /* rates: to / from, without common factors */
	uint32_t taps;     /* of a phase, a multiple of 8 */
	uint32_t at;       /* position of the next output after the next input, in 1/up */
	bool copies;       /* phase 0 is an input sample, delayed */
	/* Of phase 0, then 1 and so on; in each the one of the oldest sample first. */
	int16_t tap[MOST_TAPS];
	int16_t line[MOST_TAPS - 1]; /* the last inputs, of which taps - 1 are used */
};

static uint32_t common(uint32_t a, uint32_t b)
{
	while (b) {
		uint32_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

bool codec_resampler_has(uint32_t from, uint32_t to)
{
	return from && to && from % 8000 == 0 && to % 8000 == 0 && from <= 48000 && to <= 48000 &&
		from != 40000 && to != 40000 && from != to;
}

/* Rounds the taps of a phase, and adds what the sum lacks to the largest. Else a constant input
 * would become a tone. */
static void fill_phase(struct state *s, uint32_t phase, int32_t grid)
{
	int32_t left = 1 << TAP_BITS, best = 0;
	int16_t *tap = s->tap + phase * s->taps;

	for (int32_t i = 0; i < (int32_t)s->taps; i++) {
		int32_t at = ((int32_t)phase + (int32_t)s->up * ((int32_t)s->taps - 1 - i) -
				     REACH * grid) *
			(GRID / grid);
		int64_t v = at < -GRID * REACH || at > GRID * REACH
			? 0
			: resampler_sinc[at < 0 ? -at : at];
		/* Rounded: v * up / grid, in other units. */
		int64_t half = (int64_t)grid << (UNIT_BITS - TAP_BITS - 1);

		v = (v * s->up + (v < 0 ? -half : half)) / (2 * half);
		tap[i] = (int16_t)v;
		left -= tap[i];
		best = tap[i] > tap[best] ? i : best;
	}
	tap[best] = (int16_t)(tap[best] + left);
}

static int init(void *state, uint32_t channels, uint32_t from, uint32_t to)
{
	struct state *s = state;
	uint32_t unit = common(from, to), grid, taps;

	if (channels != 1 || !codec_resampler_has(from, to))
		return -EINVAL;
	*s = (struct state){.up = to / unit, .down = from / unit, .copies = from < to};
	grid = s->up > s->down ? s->up : s->down; /* points for a sample of the lower rate */
	taps = (2 * REACH * grid + s->up - 1) / s->up;
	s->taps = (taps + 7) / 8 * 8;
	for (uint32_t i = 0; i < s->up; i++)
		fill_phase(s, i, (int32_t)grid);
	return 0;
}

#ifdef __SSE2__
/* n: a multiple of 8. */
static int32_t dot(const int16_t *a, const int16_t *b, uint32_t n)
{
	__m128i sum = _mm_setzero_si128();

	for (uint32_t i = 0; i < n; i += 8)
		sum = _mm_add_epi32(sum,
			_mm_madd_epi16(_mm_loadu_si128((const __m128i *)(a + i)),
				_mm_loadu_si128((const __m128i *)(b + i))));
	sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0x4e));
	sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0xb1));
	return _mm_cvtsi128_si32(sum);
}
#else
static int32_t dot(const int16_t *a, const int16_t *b, uint32_t n)
{
	int32_t sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += a[i] * b[i];
	return sum;
}
#endif

static int16_t rounded(int32_t v)
{
	v = (v + (1 << (TAP_BITS - 1))) >> TAP_BITS;
	return (int16_t)(v > INT16_MAX ? INT16_MAX : v < INT16_MIN ? INT16_MIN : v);
}

static int run(void *state, const int16_t *in, size_t samples, int16_t *out, size_t cap)
{
	struct state *s = state;
	uint32_t old = s->taps - 1, end = (uint32_t)samples * s->up, n, at, phase;
	int16_t line[MOST_TAPS - 1 + XCIPHER_CODEC_MAX_PCM];

	if (samples > XCIPHER_CODEC_MAX_PCM)
		return -EINVAL;
	n = s->at < end ? (end - s->at + s->down - 1) / s->down : 0;
	if (n > cap)
		return -ENOSPC;
	memcpy(line, s->line, old * sizeof(*line));
	memcpy(line + old, in, samples * sizeof(*line));
	at = s->at / s->up;
	phase = s->at % s->up;
	for (uint32_t i = 0; i < n; i++) {
		if (s->copies && phase == 0)
			out[i] = line[at + s->taps / 2 - 1];
		else
			out[i] = rounded(dot(line + at, s->tap + phase * s->taps, s->taps));
		phase += s->down;
		while (phase >= s->up) {
			phase -= s->up;
			at++;
		}
	}
	s->at = s->at + n * s->down - end;
	memcpy(s->line, line + samples, old * sizeof(*line));
	return (int)n;
}

static const struct xcipher_resampler resampler = {
	.size = sizeof(struct xcipher_resampler),
	.state_size = sizeof(struct state),
	.align = _Alignof(struct state),
	.init = init,
	.run = run,
};

const struct xcipher_resampler *codec_resampler(void)
{
	return &resampler;
}
