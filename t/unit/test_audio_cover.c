/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Digits that the other party must not get (ng's DTMF-security): telephone events and tones, in
 * each mode. What it hears and gets has no trace of the digit. */
#include "audio_rig.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "audio/tones.h"
#include "codec/g711.h"
#include "proto/rtp.h"

enum { A = 0, B = 1, PCM = 16000 * 12, SECRET = 7, OTHER = 3, HZ = 700 };

static int16_t pcm[PCM];

static struct audio_rig *rig(uint8_t a, uint8_t b, uint8_t mode)
{
	struct audio_rig *r = audio_rig_new(a, b);
	struct audio_cfg cfg = audio_rig_cfg(r, A, a);

	cfg.gate = AUDIO_GATE_DTMF;
	cfg.cover = (struct audio_cover_cfg){.mode = mode, .digit = OTHER, .volume = 10, .hz = HZ};
	audio_rig_set(r, A, &cfg);
	return r;
}

static void talk(struct audio_rig *r, uint32_t packets)
{
	for (uint32_t i = 0; i < packets; i++) {
		struct audio_packet p = audio_rig_say(r, A);

		audio_rig_carry(r, A, &p);
		audio_rig_wait(r, r->end[A].step_ms * RIG_MS);
	}
}

/* ms of audio of A: a digit that begins at a sample, and lasts so many; silence around it. */
static void dial(struct audio_rig *r, uint8_t digit, uint32_t at, uint32_t lasts, uint32_t ms)
{
	static int16_t said[8 * 2000];
	struct tone_out tone;

	memset(said, 0, sizeof(said));
	tone_out_init(&tone, digit, 6, 8000);
	tone_out_run(&tone, said + at, lasts);
	for (uint32_t i = 0; i < ms / 20; i++) {
		struct audio_packet p;
		uint8_t payload[160];

		for (uint32_t k = 0; k < 160; k++)
			payload[k] = g711_ulaw_encode(said[i * 160 + k]);
		p = audio_rig_packet(r, A, RIG_PCMU, false, payload, sizeof(payload));
		r->end[A].ts += 160;
		audio_rig_carry(r, A, &p);
		audio_rig_wait(r, 20 * RIG_MS);
	}
}

/* A very sensitive detector: energy at both frequencies in 10 ms. Returns the ms in which it finds
 * the digit. */
static uint32_t traces(const int16_t *x, uint32_t n, uint8_t digit)
{
	struct tone_out tone;
	uint32_t ms = 0;

	tone_out_init(&tone, digit, 10, 8000);
	for (uint32_t at = 0; at + 80 <= n; at += 80) {
		double all = 0, two = 1e9;

		for (int f = 0; f < 2; f++) {
			double s = 0, c = 0;

			for (uint32_t i = 0; i < 80; i++) {
				s += x[at + i] * sin(tone.step[f] * i);
				c += x[at + i] * cos(tone.step[f] * i);
			}
			two = fmin(two, (s * s + c * c) / 80);
		}
		for (uint32_t i = 0; i < 80; i++)
			all += (double)x[at + i] * x[at + i];
		ms += all > 80.0 * 200 * 200 && two > all / 8 ? 10 : 0;
	}
	return ms;
}

static size_t digits_in(uint32_t n, uint8_t *out, size_t cap)
{
	struct tones_in t;

	tones_in_init(&t, 8000);
	return tones_in_run(&t, pcm, n, out, cap);
}

/* The share of a sine in what is not silent. */
static double share_of(uint32_t n, double hertz)
{
	double s = 0, c = 0, all = 1;
	uint32_t first = 0;

	while (first < n && abs(pcm[first]) < 500)
		first++;
	while (n > first && abs(pcm[n - 1]) < 500)
		n--;
	if (n == first)
		return 0;
	for (uint32_t i = first; i < n; i++) {
		s += pcm[i] * sin(2 * M_PI * hertz * i / 8000);
		c += pcm[i] * cos(2 * M_PI * hertz * i / 8000);
		all += (double)pcm[i] * pcm[i];
	}
	return 2 * (s * s + c * c) / (n - first) / all;
}

/* A tone that begins anywhere in a packet leaves no trace, for digits of all lengths. */
static void tones_leave_no_trace(void **state)
{
	static const uint32_t lasts[] = {400, 480, 800, 2400};

	(void)state;
	for (uint8_t mode = AUDIO_COVER_SILENCE; mode < AUDIO_COVER_MODES; mode++)
		for (uint32_t i = 0; i < 4 * 32; i++) {
			struct audio_rig *r = rig(RIG_PCMU, RIG_PCMA, mode);
			struct audio_heard heard;
			uint8_t digit[8];
			uint32_t n, secret;

			dial(r, SECRET, 800 + 5 * (i / 4), lasts[i % 4], 1000);
			n = audio_rig_listen(r, B, 0, pcm, PCM);
			assert_in_range(n, 7000, 8000);
			secret = traces(pcm, n, SECRET);
			audio_session_heard(r->end[A].s, &heard);
			assert_true(heard.n == 1 && heard.digit[0] == SECRET);
			if (mode != AUDIO_COVER_RANDOM)
				assert_int_equal(secret, 0);
			if (mode == AUDIO_COVER_DIGIT) {
				assert_int_equal(digits_in(n, digit, sizeof(digit)), 1);
				assert_int_equal(digit[0], OTHER);
			}
			if (mode == AUDIO_COVER_SILENCE || mode == AUDIO_COVER_TONE)
				assert_int_equal(digits_in(n, digit, sizeof(digit)), 0);
			if (mode == AUDIO_COVER_TONE)
				assert_true(share_of(n, HZ) > 0.95);
			audio_rig_free(r);
		}
}

/* Speech, here a tone of 440 Hz, passes, COVER_MS later. Equal codecs are decoded, too. */
static void speech_passes(void **state)
{
	static const uint8_t codecs[][2] = {
		{RIG_PCMU, RIG_PCMU}, {RIG_PCMU, RIG_G722}, {RIG_G722, RIG_PCMA}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(codecs); i++) {
		struct audio_rig *r = rig(codecs[i][0], codecs[i][1], AUDIO_COVER_SILENCE);
		uint32_t n;

		r->end[A].hertz = 440;
		talk(r, 100);
		assert_int_equal(audio_session_stats(r->end[A].s)->passed, 0);
		n = audio_rig_listen(r, B, 0, pcm, PCM);
		assert_true(n >= 15000);
		n -= 4000; /* the decoder's start */
		assert_true(audio_rig_snr(pcm + 4000, n, r->end[B].codec->about.rate, 440) > 20);
		audio_rig_free(r);
	}
}

/* An event of five packets, and what B gets in its place: packets of events, audio, or none. */
static uint32_t press(struct audio_rig *r, uint32_t *events, uint8_t *digit)
{
	uint64_t from = r->end[B].gots;
	uint32_t audio = 0;

	*events = 0;
	for (uint16_t i = 1; i <= 7; i++) { /* the last three are the same */
		uint8_t p[4] = {SECRET, (uint8_t)((i >= 5) << 7 | 10)};
		struct audio_packet packet;

		put_be16(p + 2, (uint16_t)(160 * (i < 5 ? i : 5)));
		packet = audio_rig_packet(r, A, RIG_EVENTS, i == 1, p, sizeof(p));
		audio_rig_carry(r, A, &packet);
		audio_rig_wait(r, 20 * RIG_MS);
	}
	r->end[A].ts += 7 * 160;
	for (uint64_t i = from; i < r->end[B].gots; i++) {
		const struct audio_packet *p =
			audio_rig_got(r, B, (uint32_t)(r->end[B].gots - 1 - i));
		bool event = (p->bytes[1] & 0x7f) == RIG_EVENTS;

		*events += event;
		audio += !event;
		if (event) {
			*digit = p->bytes[12];
			assert_int_not_equal(p->len, 12);
		}
	}
	return audio;
}

static void events_are_replaced(void **state)
{
	static const struct {
		uint8_t mode;
		uint32_t events, audio;
	} want[] = {{AUDIO_COVER_DROP, 0, 0}, {AUDIO_COVER_SILENCE, 0, 5}, {AUDIO_COVER_TONE, 0, 5},
		{AUDIO_COVER_RANDOM, 7, 0}, {AUDIO_COVER_DIGIT, 7, 0}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(want); i++) {
		struct audio_rig *r = rig(RIG_PCMU, RIG_PCMA, want[i].mode);
		uint32_t events, n, seen = 0;
		uint8_t digit = 99;
		uint64_t from;

		talk(r, 5);
		from = r->end[B].gots;
		assert_int_equal(press(r, &events, &digit), want[i].audio);
		assert_int_equal(events, want[i].events);
		if (want[i].mode == AUDIO_COVER_DIGIT)
			assert_int_equal(digit, OTHER);
		if (want[i].audio) {
			n = audio_rig_listen(r, B, from, pcm, PCM);
			assert_int_equal(n, 800);
			assert_int_equal(traces(pcm, n, SECRET), 0);
			assert_true((share_of(n, HZ) > 0.95) == (want[i].mode == AUDIO_COVER_TONE));
		}
		for (uint32_t k = 0; want[i].mode == AUDIO_COVER_RANDOM && k < 40; k++) {
			(void)press(r, &events, &digit);
			assert_in_range(digit, 0, 9);
			seen |= 1u << digit;
		}
		if (want[i].mode == AUDIO_COVER_RANDOM)
			assert_true(__builtin_popcount(seen) >= 5);
		audio_rig_free(r);
	}
}

/* B has no telephone events: A's become tones of the other digit. */
static void events_become_other_tones(void **state)
{
	struct audio_rig *r = rig(RIG_PCMU, RIG_PCMA, AUDIO_COVER_DIGIT);
	struct audio_cfg cfg = audio_rig_cfg(r, B, RIG_PCMA);
	uint8_t digit[4], got;
	uint32_t events, n;
	uint64_t from;

	(void)state;
	cfg.events.type = AUDIO_NO_TYPE;
	cfg.events_to_tone = true;
	audio_rig_set(r, B, &cfg);
	talk(r, 5);
	from = r->end[B].gots;
	assert_int_equal(press(r, &events, &got), 5);
	n = audio_rig_listen(r, B, from, pcm, PCM);
	assert_int_equal(digits_in(n, digit, sizeof(digit)), 1);
	assert_int_equal(digit[0], OTHER);
	assert_int_equal(traces(pcm, n, SECRET), 0);
	audio_rig_free(r);
}

/* Without a block digits are only reported, and audio is not delayed. */
static void digits_are_heard(void **state)
{
	struct audio_rig *r = audio_rig_new(RIG_PCMU, RIG_PCMU);
	struct audio_cfg cfg = audio_rig_cfg(r, A, RIG_PCMU);
	struct audio_heard heard;
	uint8_t digit[4];
	uint32_t n;

	(void)state;
	cfg.cover.listen = true;
	audio_rig_set(r, A, &cfg);
	dial(r, SECRET, 800, 800, 1000);
	audio_session_heard(r->end[A].s, &heard);
	assert_true(heard.n == 1 && heard.digit[0] == SECRET);
	n = audio_rig_listen(r, B, 0, pcm, PCM);
	assert_int_equal(digits_in(n, digit, sizeof(digit)), 1);
	assert_int_equal(digit[0], SECRET);
	assert_int_equal(traces(pcm, 800, SECRET), 0);
	assert_true(traces(pcm + 800, 800, SECRET) >= 80);
	audio_rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tones_leave_no_trace),
		cmocka_unit_test(speech_passes),
		cmocka_unit_test(events_are_replaced),
		cmocka_unit_test(events_become_other_tones),
		cmocka_unit_test(digits_are_heard),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
