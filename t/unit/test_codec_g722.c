/* SPDX-License-Identifier: GPL-2.0-or-later */
/* G.722, bit for bit, against spandsp and libavcodec: tones, noise, full scale, silence, random
 * codes, in all modes. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/bytes.h"
#include "codec/g722.h"
#include "codec/g722_batch.h"
#include "codec/g722_lanes.h"
#include "codec_peers.h"
#include "xcipher_codec.h"

enum { SAMPLES = 64000, BYTES = SAMPLES / 2, WARM = 1600 };

struct signal {
	const char *name;
	int16_t (*at)(size_t i);
};

static int16_t tone(size_t i)
{
	return (int16_t)lrint(12000 * sin(i * 0.2) + 9000 * sin(i * 2.7));
}

static int16_t noise(size_t i)
{
	return (int16_t)(codec_hash((uint32_t)i) & 0xffff);
}

static int16_t square(size_t i)
{
	return i / 37 % 2 ? INT16_MAX : INT16_MIN;
}

static int16_t sweep(size_t i)
{
	return (int16_t)lrint((double)(i % 8000) * 4 * sin((double)i * i * 1e-5));
}

static int16_t silence(size_t i)
{
	return i < 1000 ? tone(i) : 0;
}

static const struct signal signals[] = {{"tone", tone}, {"noise", noise}, {"square", square},
	{"sweep", sweep}, {"silence", silence}};
static const uint32_t rates[] = {64000, 56000, 48000};

struct buffers {
	int16_t pcm[SAMPLES], ours[SAMPLES], theirs[SAMPLES];
	uint8_t code[BYTES], want[BYTES];
};

static void fill(struct buffers *b, const struct signal *s)
{
	for (size_t i = 0; i < SAMPLES; i++)
		b->pcm[i] = s->at(i);
}

/* A test that compared with nothing is skipped, and one without one of the two says so. */
static void compared(uint32_t spandsp, uint32_t av)
{
	if (!spandsp)
		print_message("not compared with spandsp: libspandsp.so.2 is missing\n");
	if (!av)
		print_message("not compared with libavcodec, which is missing\n");
	if (!spandsp && !av)
		skip();
}

static void encoder_is_bit_exact(void **state)
{
	uint32_t spandsp = 0, av = 0;
	struct buffers *b = *state;
	struct g722 g;

	for (size_t r = 0; r < ARRAY_LEN(rates); r++)
		for (size_t s = 0; s < ARRAY_LEN(signals); s++) {
			fill(b, &signals[s]);
			assert_int_equal(g722_init(&g, rates[r]), 0);
			g722_encode(&g, b->pcm, BYTES, b->code);
			if (peer_spandsp_g722_encode(rates[r], b->pcm, SAMPLES, b->want) == 0) {
				assert_memory_equal(b->code, b->want, BYTES);
				spandsp++;
			}
			if (rates[r] == 64000 &&
				peer_av_g722_encode(b->pcm, SAMPLES, b->want) == 0) {
				assert_memory_equal(b->code, b->want, BYTES);
				av++;
			}
		}
	compared(spandsp, av);
}

/* spandsp 0.0.6 lets an output wrap that the recommendation limits. */
static bool same_unless_clipped(const int16_t *ours, const int16_t *theirs)
{
	for (size_t i = 0; i < SAMPLES; i++)
		if (ours[i] != theirs[i] && ours[i] != INT16_MAX && ours[i] != INT16_MIN)
			return false;
	return true;
}

static void decoder_is_bit_exact(void **state)
{
	uint32_t spandsp = 0, av = 0;
	struct buffers *b = *state;
	struct g722 g;

	for (size_t r = 0; r < ARRAY_LEN(rates); r++)
		for (size_t s = 0; s <= ARRAY_LEN(signals); s++) {
			if (s < ARRAY_LEN(signals)) {
				fill(b, &signals[s]);
				g722_init(&g, 64000);
				g722_encode(&g, b->pcm, BYTES, b->code);
			} else { /* no encoder would write these */
				for (size_t i = 0; i < BYTES; i++)
					b->code[i] = (uint8_t)codec_hash((uint32_t)i);
			}
			g722_init(&g, rates[r]);
			g722_decode(&g, b->code, BYTES, b->ours);
			if (peer_spandsp_g722_decode(rates[r], b->code, BYTES, b->theirs) == 0) {
				assert_true(same_unless_clipped(b->ours, b->theirs));
				spandsp++;
			}
			if (peer_av_g722_decode(rates[r], b->code, BYTES, b->theirs) == 0) {
				assert_memory_equal(b->ours, b->theirs, sizeof(b->ours));
				av++;
			}
		}
	compared(spandsp, av);
}

/* The decoder's output for a code of which all bits matter differs from that of the lower modes. */
static void modes_differ(void **state)
{
	struct buffers *b = *state;
	struct g722 g;

	fill(b, &signals[0]);
	g722_init(&g, 64000);
	g722_encode(&g, b->pcm, BYTES, b->code);
	for (size_t r = 1; r < ARRAY_LEN(rates); r++) {
		g722_init(&g, rates[0]);
		g722_decode(&g, b->code, BYTES, b->ours);
		g722_init(&g, rates[r]);
		g722_decode(&g, b->code, BYTES, b->theirs);
		assert_memory_not_equal(b->ours, b->theirs, sizeof(b->ours));
	}
	assert_int_not_equal(g722_init(&g, 32000), 0);
}

/* Quality at the terminal: at least 30 dB above the error for a tone in the lower band. */
static void tone_survives(void **state)
{
	struct buffers *b = *state;
	struct g722 g;

	for (size_t i = 0; i < SAMPLES; i++)
		b->pcm[i] = (int16_t)lrint(10000 * sin((double)i * 2 * M_PI * 1000 / 16000));
	g722_init(&g, 64000);
	g722_encode(&g, b->pcm, BYTES, b->code);
	g722_init(&g, 64000);
	g722_decode(&g, b->code, BYTES, b->ours);
	assert_true(codec_snr(b->pcm + 1000, b->ours + 1000, SAMPLES - 2000, 64) > 30);
}

/* --- The lower band alone: PCM of 8 kHz ------------------------------------------------------- */

static void lower_band_is_bit_exact(void **state)
{
	struct buffers *b = *state;
	bool any = false;
	struct g722 g;

	for (size_t r = 0; r < ARRAY_LEN(rates); r++)
		for (size_t s = 0; s < ARRAY_LEN(signals); s++) {
			fill(b, &signals[s]);
			g722_init(&g, rates[r]);
			g722_encode_low(&g, b->pcm, BYTES, b->code);
			if (peer_spandsp_g722_encode_low(rates[r], b->pcm, BYTES, b->want) == 0) {
				assert_memory_equal(b->code, b->want, BYTES);
				any = true;
			}
			g722_init(&g, rates[r]);
			g722_decode_low(&g, b->code, BYTES, b->ours);
			if (peer_spandsp_g722_decode_low(rates[r], b->code, BYTES, b->theirs) == 0)
				assert_memory_equal(b->ours, b->theirs, BYTES * sizeof(*b->ours));
		}
	for (size_t i = 0; i < BYTES; i++) /* no encoder would write these */
		b->code[i] = (uint8_t)codec_hash((uint32_t)i);
	g722_init(&g, 64000);
	g722_decode_low(&g, b->code, BYTES, b->ours);
	if (peer_spandsp_g722_decode_low(64000, b->code, BYTES, b->theirs) == 0)
		assert_memory_equal(b->ours, b->theirs, BYTES * sizeof(*b->ours));
	if (!any)
		skip(); /* only spandsp has this mode */
}

/* --- Batches ---------------------------------------------------------------------------------- */

enum { MOST = 2 * G722_LANES_MOST + 1, CALLS = 40, PACKET = 163 };

struct streams {
	struct g722 one[MOST], batch[MOST];
	int16_t pcm[MOST][PACKET], heard[MOST][PACKET], want_heard[PACKET];
	uint8_t code[MOST][PACKET], want[PACKET];
	struct xcipher_codec_job job[MOST];
	const struct g722_lanes_ops *ops; /* NULL: none */
};

/* The memory after the coefficients of the predictor is not part of the state. */
static void same_state(struct g722 a, struct g722 b)
{
	memset(a.low.zero + 6, 0, 2 * sizeof(*a.low.zero));
	memset(b.low.zero + 6, 0, 2 * sizeof(*b.low.zero));
	assert_memory_equal(&a, &b, sizeof(a));
}

static void encode_streams(struct streams *s, const struct buffers *b, uint32_t n, uint32_t call)
{
	for (uint32_t i = 0; i < n; i++) {
		memcpy(s->pcm[i], b->pcm + call * PACKET + 311 * i, sizeof(s->pcm[i]));
		s->job[i] = (struct xcipher_codec_job){.state = &s->batch[i],
			.in = (const uint8_t *)s->pcm[i],
			.in_len = PACKET - (call + i) % 5,
			.out = s->code[i],
			.out_cap = PACKET};
	}
	g722_batch_encode_by(s->ops, s->job, n);
	for (uint32_t i = 0; i < n; i++) {
		g722_encode_low(&s->one[i], s->pcm[i], s->job[i].in_len, s->want);
		assert_int_equal(s->job[i].result, s->job[i].in_len);
		assert_memory_equal(s->code[i], s->want, s->job[i].in_len);
		same_state(s->one[i], s->batch[i]);
	}
}

static void decode_streams(struct streams *s, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		s->job[i].in = s->code[i];
		s->job[i].out = (uint8_t *)s->heard[i];
	}
	g722_batch_decode_by(s->ops, s->job, n);
	for (uint32_t i = 0; i < n; i++) {
		g722_decode_low(&s->one[i], s->code[i], s->job[i].in_len, s->want_heard);
		assert_int_equal(s->job[i].result, s->job[i].in_len);
		assert_memory_equal(s->heard[i], s->want_heard, 2 * s->job[i].in_len);
		same_state(s->one[i], s->batch[i]);
	}
}

/* Packets of different lengths, in batches of all sizes around the numbers of lanes. */
static void is_bit_exact_by(struct buffers *b, const struct g722_lanes_ops *ops)
{
	static const uint32_t sizes[] = {1, 2, 3, 7, 8, 9, 15, 16, MOST};
	struct streams *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	s->ops = ops;
	for (size_t k = 0; k < ARRAY_LEN(sizes) * ARRAY_LEN(signals); k++) {
		uint32_t n = sizes[k / ARRAY_LEN(signals)];

		fill(b, &signals[k % ARRAY_LEN(signals)]);
		for (uint32_t i = 0; i < n; i++)
			g722_init(&s->one[i], rates[i % ARRAY_LEN(rates)]);
		memcpy(s->batch, s->one, sizeof(s->batch));
		for (uint32_t call = 0; call < CALLS; call++)
			encode_streams(s, b, n, call);
		for (uint32_t i = 0; i < n; i++)
			g722_init(&s->one[i], 64000);
		memcpy(s->batch, s->one, sizeof(s->batch));
		for (uint32_t call = 0; call < CALLS; call++) {
			for (uint32_t i = 0; i < n * PACKET && call >= CALLS / 2; i++)
				s->code[i / PACKET][i % PACKET] = (uint8_t)codec_hash(call * i);
			decode_streams(s, n);
		}
	}
	free(s);
}

static void batch_is_bit_exact(void **state)
{
	static const struct g722_lanes_ops *const kinds[] = {&g722_lanes_avx512, &g722_lanes_avx2};

	is_bit_exact_by(*state, NULL);
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		print_message("%s: %s\n", kinds[i]->name,
			g722_lanes_work(kinds[i]) ? "works here" : "not on this processor");
		if (g722_lanes_work(kinds[i]))
			is_bit_exact_by(*state, kinds[i]);
	}
}

/* AVX-512 before AVX2. */
static void the_fastest_is_chosen(void **state)
{
	const struct g722_lanes_ops *here = g722_lanes_here();

	(void)state;
	if (g722_lanes_work(&g722_lanes_avx512))
		assert_ptr_equal(here, &g722_lanes_avx512);
	else if (g722_lanes_work(&g722_lanes_avx2))
		assert_ptr_equal(here, &g722_lanes_avx2);
	else
		assert_null(here);
}

/* A job that does not fit changes nothing, and does not disturb the others. */
static void batch_refuses_what_does_not_fit(void **state)
{
	struct buffers *b = *state;
	struct streams *s = calloc(1, sizeof(*s));
	struct g722 before;

	assert_non_null(s);
	fill(b, &signals[0]);
	for (uint32_t i = 0; i < 4; i++) {
		g722_init(&s->batch[i], 64000);
		s->job[i] = (struct xcipher_codec_job){.state = &s->batch[i],
			.in = (const uint8_t *)b->pcm,
			.in_len = i == 2 ? 0 : PACKET,
			.out = s->code[i],
			.out_cap = i == 1 ? PACKET - 1 : PACKET};
	}
	before = s->batch[1];
	g722_batch_encode(s->job, 4);
	assert_int_equal(s->job[0].result, PACKET);
	assert_int_equal(s->job[1].result, -ENOSPC);
	assert_int_equal(s->job[2].result, 0);
	assert_memory_equal(&before, &s->batch[1], sizeof(before));
	assert_memory_equal(s->code[0], s->code[3], PACKET);
	free(s);
}

/* The bits that g722_encode_low() writes for the upper band are those of silence. */
static void upper_band_is_silent(void **state)
{
	struct buffers *b = *state;
	struct g722 g;

	memset(b->pcm, 0, sizeof(b->pcm));
	g722_init(&g, 64000);
	g722_encode(&g, b->pcm, BYTES, b->want);
	fill(b, &signals[0]);
	g722_init(&g, 64000);
	g722_encode_low(&g, b->pcm, BYTES, b->code);
	for (size_t i = 0; i < BYTES; i++)
		assert_int_equal(b->code[i] & 0xc0, b->want[i] & 0xc0);
}

static void make_tone(int16_t *pcm, size_t n, double turn)
{
	for (size_t i = 0; i < n; i++)
		pcm[i] = (int16_t)lrint(10000 * sin((double)i * turn));
}

/* dB of a tone of any phase and gain above everything else. n: whole periods. */
static double above_rest(const int16_t *pcm, size_t n, double turn)
{
	double s = 0, c = 0, all = 0, tone = 0;

	for (size_t i = 0; i < n; i++) {
		s += pcm[i] * sin((double)i * turn);
		c += pcm[i] * cos((double)i * turn);
		all += (double)pcm[i] * pcm[i];
	}
	tone = (s * s + c * c) * 2 / (double)n;
	return 10 * log10(tone / (all - tone));
}

/* A terminal that has 16 kHz gets and sends the same tone. */
static void lower_band_fits_the_other_variant(void **state)
{
	/* dB, 2 below what was measured. Between 3.4 and 4 kHz the bands overlap. */
	static const struct {
		double hz, encode, decode;
	} T[] = {{300, 61, 62}, {1000, 45, 45}, {2000, 48, 48}, {3000, 18, 44}, {3400, 8, 50}};
	struct buffers *b = *state;
	struct g722 g;

	for (size_t t = 0; t < ARRAY_LEN(T); t++) {
		double turn = 2 * M_PI * T[t].hz / 16000, snr = 0;

		make_tone(b->pcm, BYTES, 2 * turn);
		g722_init(&g, 64000);
		g722_encode_low(&g, b->pcm, BYTES, b->code);
		g722_init(&g, 64000);
		g722_decode(&g, b->code, BYTES, b->ours);
		snr = above_rest(b->ours + WARM, SAMPLES - WARM, turn);
		print_message("%.0f Hz: %.1f dB", T[t].hz, snr);
		assert_true(snr > T[t].encode);
		make_tone(b->pcm, SAMPLES, turn);
		g722_init(&g, 64000);
		g722_encode(&g, b->pcm, BYTES, b->code);
		g722_init(&g, 64000);
		g722_decode_low(&g, b->code, BYTES, b->ours);
		snr = above_rest(b->ours + WARM, BYTES - WARM, 2 * turn);
		print_message(", %.1f dB\n", snr);
		assert_true(snr > T[t].decode);
	}
}

static int group_setup(void **state)
{
	*state = malloc(sizeof(struct buffers));
	return *state ? 0 : -1;
}

static int group_teardown(void **state)
{
	free(*state);
	return 0;
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(encoder_is_bit_exact),
		cmocka_unit_test(decoder_is_bit_exact),
		cmocka_unit_test(modes_differ),
		cmocka_unit_test(tone_survives),
		cmocka_unit_test(lower_band_is_bit_exact),
		cmocka_unit_test(batch_is_bit_exact),
		cmocka_unit_test(the_fastest_is_chosen),
		cmocka_unit_test(batch_refuses_what_does_not_fit),
		cmocka_unit_test(upper_band_is_silent),
		cmocka_unit_test(lower_band_fits_the_other_variant),
	};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
