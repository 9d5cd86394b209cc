/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Audio that the relay plays: clips at other rates, repeated, limited and mixed, and digits. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "audio/clip.h"
#include "audio/resample.h"
#include "audio/source.h"
#include "base/bytes.h"
#include "codec_peers.h"

static struct audio_clip *ramp(uint32_t rate, uint32_t samples)
{
	struct audio_clip *c = audio_clip_create(rate, samples);

	assert_non_null(c);
	for (uint32_t i = 0; i < samples; i++)
		c->pcm[i] = (int16_t)(i + 1);
	return c;
}

static void sine(int16_t *pcm, size_t n, double f, double rate)
{
	for (size_t i = 0; i < n; i++)
		pcm[i] = (int16_t)lrint(10000 * sin(2 * M_PI * f * (double)i / rate));
}

static void resampling_keeps_a_tone(void **state)
{
	static const uint32_t rates[] = {8000, 11025, 16000, 24000, 32000, 44100, 48000};
	static int16_t in[48000], want[48000], got[48000];

	(void)state;
	for (size_t a = 0; a < ARRAY_LEN(rates); a++)
		for (size_t b = 0; b < ARRAY_LEN(rates); b++) {
			struct resample r = {in, rates[a] / 4, rates[a], rates[b]};
			size_t n = rates[b] / 4, edge = n / 10;

			sine(in, rates[a] / 4, 1000, rates[a]);
			sine(want, n, 1000, rates[b]);
			resample_run(&r, 0, got, n);
			assert_true(codec_snr(want + edge, got + edge, n - 2 * edge, 0) > 45);
		}
}

/* Many samples share weights that are computed once; one sample has its own. */
static void samples_are_the_same_one_by_one(void **state)
{
	static const uint32_t rates[] = {8000, 16000, 24000, 32000, 44100, 48000};
	static int16_t in[4800], all[5760], one;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(in); i++)
		in[i] = (int16_t)(i * 7919 % 60000 - 30000);
	for (size_t a = 0; a < ARRAY_LEN(rates); a++)
		for (size_t b = 0; b < ARRAY_LEN(rates); b++) {
			struct resample r = {in, rates[a] / 10, rates[a], rates[b]};
			uint64_t at = 5ull * rates[b];

			/* 20 ms more than there is. */
			resample_run(&r, at, all, rates[b] / 100 * 12 - 5);
			for (uint32_t i = 0; i < rates[b] / 100 * 12 - 5; i++) {
				resample_run(&r, at + (uint64_t)i * rates[a], &one, 1);
				assert_in_range(all[i] - one + 1, 0, 2);
			}
		}
}

static void resampling_removes_what_the_lower_rate_cannot_hold(void **state)
{
	static int16_t in[16000], out[2000];
	struct resample r = {in, 16000, 48000, 8000};

	(void)state;
	sine(in, 16000, 5000, 48000);
	resample_run(&r, 0, out, 2000);
	for (size_t i = 200; i < 1800; i++)
		assert_true(abs(out[i]) < 60); /* 44 dB below */
}

/* From 44.1 kHz a packet needs more work than any codec: each sample has weights of its own. */
static void clips_of_odd_rates_are_converted_once(void **state)
{
	static const uint32_t T[][2] = {{4000, 8000}, {8000, 8000}, {11025, 16000}, {12347, 16000},
		{16000, 16000}, {22050, 24000}, {32000, 32000}, {40000, 40000}, {44100, 48000},
		{48000, 48000}, {96000, 48000}, {192000, 48000}};
	static int16_t want[48000];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		uint32_t n = T[i][0] / 4, samples = n * T[i][1] / T[i][0], edge = samples / 10;
		struct audio_clip *c = audio_clip_create(T[i][0], n), *u;

		assert_non_null(c);
		sine(c->pcm, n, 500, T[i][0]);
		sine(want, samples, 500, T[i][1]);
		u = audio_clip_usual(c);
		assert_int_equal(u == c, T[i][0] == T[i][1]);
		assert_int_equal(u->rate, T[i][1]);
		assert_int_equal(u->samples, samples);
		assert_int_equal(u->file_rate, T[i][0]);
		assert_int_equal(u->file_samples, n);
		assert_true(codec_snr(want + edge, u->pcm + edge, samples - 2 * edge, 0) > 45);
		audio_clip_unref(u);
	}
}

static void clip_plays_from_its_start_and_repeats(void **state)
{
	struct audio_play p = {.clip = ramp(8000, 5), .start = 3, .repeat = 2, .id = 7};
	static const int16_t want[] = {4, 5, 1, 2, 3, 4, 5, 0, 0, 0};
	struct audio_ended ended = {0};
	struct audio_source s = {0};
	int16_t pcm[10];

	(void)state;
	assert_false(audio_source_busy(&s));
	assert_int_equal(audio_source_play(&s, &p, &ended), 0);
	assert_true(audio_source_busy(&s) && audio_source_replaces(&s));
	for (int i = 0; i < 10; i++)
		pcm[i] = 999; /* the other party is not heard */
	audio_source_run(&s, 8000, pcm, 10, &ended);
	assert_memory_equal(pcm, want, sizeof(want));
	assert_int_equal(ended.n, 1);
	assert_int_equal(ended.id[0], 7);
	assert_false(audio_source_busy(&s));
	audio_source_fini(&s);
}

static void end_at_a_packets_end_is_known_at_once(void **state)
{
	struct audio_play p = {.clip = ramp(8000, 160), .id = 1};
	struct audio_ended ended = {0};
	struct audio_source s = {0};
	int16_t pcm[160] = {0};

	(void)state;
	assert_int_equal(audio_source_play(&s, &p, &ended), 0);
	audio_source_run(&s, 8000, pcm, 160, &ended);
	assert_int_equal(ended.n, 1);
	assert_false(audio_source_busy(&s));
}

static void time_limit_repeats_and_ends(void **state)
{
	struct audio_play p = {.clip = ramp(16000, 800), .repeat = 1000, .limit_ms = 125, .id = 1};
	struct audio_ended ended = {0};
	struct audio_source s = {0};
	uint32_t packets = 0;

	(void)state;
	assert_int_equal(audio_source_play(&s, &p, &ended), 0);
	while (!ended.n && packets < 100) {
		int16_t pcm[160] = {0};

		audio_source_run(&s, 8000, pcm, 160, &ended);
		packets++;
	}
	assert_int_equal(packets, 7); /* 125 ms */
}

static void codec_may_change_while_a_clip_plays(void **state)
{
	struct audio_play p = {.clip = ramp(16000, 1600), .id = 1};
	struct audio_ended ended = {0};
	struct audio_source s = {0};
	int16_t pcm[960] = {0};

	(void)state;
	assert_int_equal(audio_source_play(&s, &p, &ended), 0);
	audio_source_run(&s, 8000, pcm, 160, &ended);
	memset(pcm, 0, sizeof(pcm));
	audio_source_run(&s, 48000, pcm, 960, &ended);
	assert_in_range(pcm[0], 320, 322); /* continues at its position */
	assert_in_range(pcm[959], 639, 642);
	audio_source_fini(&s);
}

static void mixed_clip_is_heard_with_the_other_party(void **state)
{
	struct audio_play p = {.clip = ramp(8000, 3), .mix = true, .id = 1};
	static const int16_t want[] = {101, 32767, -97, 100};
	int16_t pcm[] = {100, 32766, -100, 100};
	struct audio_ended ended = {0};
	struct audio_source s = {0};

	(void)state;
	assert_int_equal(audio_source_play(&s, &p, &ended), 0);
	assert_true(audio_source_busy(&s));
	assert_false(audio_source_replaces(&s));
	audio_source_run(&s, 8000, pcm, 4, &ended);
	assert_memory_equal(pcm, want, sizeof(want));
}

static void new_play_ends_the_old_one(void **state)
{
	struct audio_ended ended = {0};
	struct audio_source s = {0};

	(void)state;
	for (uint32_t i = 1; i <= 3; i++) {
		struct audio_play p = {.clip = ramp(8000, 100), .id = i};

		assert_int_equal(audio_source_play(&s, &p, &ended), 0);
	}
	assert_int_equal(ended.n, 2);
	assert_int_equal(ended.id[1], 2);
	ended.n = 0;
	audio_source_stop(&s, 9, &ended); /* of another play */
	assert_int_equal(ended.n, 0);
	audio_source_stop(&s, 0, &ended);
	assert_int_equal(ended.n, 1);
	assert_false(audio_source_busy(&s));
}

static void plays_are_bounded(void **state)
{
	struct audio_clip *c = ramp(8000, 100);
	struct audio_play p = {.clip = c, .mix = true};
	struct audio_ended ended = {0};
	struct audio_source s = {0};

	(void)state;
	for (uint32_t i = 0; i < AUDIO_PLAYS; i++) {
		audio_clip_ref(c);
		assert_int_equal(audio_source_play(&s, &p, &ended), 0);
	}
	assert_int_equal(audio_source_play(&s, &p, &ended), -ENOSPC);
	p.start = 100;
	assert_int_equal(audio_source_play(&s, &p, &ended), -EINVAL);
	audio_source_fini(&s);
	audio_clip_unref(c);
}

static void digits_are_tones_with_pauses(void **state)
{
	const struct audio_digit d[] = {{4, 8, 100, 100}, {11, 8, 100, 100}};
	struct audio_ended ended = {0};
	struct audio_source s = {0};
	struct tones_in t;
	uint8_t heard[8];
	size_t n = 0;

	(void)state;
	tones_in_init(&t, 16000);
	assert_int_equal(audio_source_digits(&s, d, 2), 0);
	for (uint32_t i = 0; i < 20; i++) {
		int16_t pcm[320];

		assert_true(audio_source_busy(&s) && audio_source_replaces(&s));
		for (int k = 0; k < 320; k++)
			pcm[k] = 12345;
		audio_source_run(&s, 16000, pcm, 320, &ended);
		n += tones_in_run(&t, pcm, 320, heard + n, sizeof(heard) - n);
		if (i % 10 >= 5)
			assert_int_equal(pcm[319], 0);
	}
	assert_false(audio_source_busy(&s));
	assert_int_equal(n, 2);
	assert_int_equal(heard[0], 4);
	assert_int_equal(heard[1], 11);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(resampling_keeps_a_tone),
		cmocka_unit_test(samples_are_the_same_one_by_one),
		cmocka_unit_test(resampling_removes_what_the_lower_rate_cannot_hold),
		cmocka_unit_test(clips_of_odd_rates_are_converted_once),
		cmocka_unit_test(clip_plays_from_its_start_and_repeats),
		cmocka_unit_test(end_at_a_packets_end_is_known_at_once),
		cmocka_unit_test(time_limit_repeats_and_ends),
		cmocka_unit_test(codec_may_change_while_a_clip_plays),
		cmocka_unit_test(mixed_clip_is_heard_with_the_other_party),
		cmocka_unit_test(new_play_ends_the_old_one),
		cmocka_unit_test(plays_are_bounded),
		cmocka_unit_test(digits_are_tones_with_pauses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
