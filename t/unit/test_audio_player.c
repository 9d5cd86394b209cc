/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What audio sessions play: packets by the clock, in place of the other terminal's audio or mixed
 * with it, digits as telephone events or as tones. */
#include "audio_rig.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "audio/clip.h"
#include "audio/player.h"
#include "audio/source.h"
#include "proto/rtp.h"

enum { A = 0, B = 1, PCM = 16000 * 12 };

static int16_t pcm[PCM];

static struct audio_clip *tone(double hertz, uint32_t ms)
{
	struct audio_clip *c = audio_clip_create(8000, 8 * ms);

	for (uint32_t i = 0; i < 8 * ms; i++)
		c->pcm[i] = (int16_t)lrint(6000 * sin(2 * M_PI * hertz * i / 8000));
	return c;
}

static void talk(struct audio_rig *r, uint32_t end, uint32_t packets)
{
	for (uint32_t i = 0; i < packets; i++) {
		struct audio_packet p = audio_rig_say(r, end);

		audio_rig_carry(r, end, &p);
		audio_rig_wait(r, r->end[end].step_ms * RIG_MS);
	}
}

static struct rtp_hdr header(const struct audio_packet *p)
{
	struct rtp_hdr h;

	assert_int_equal(rtp_parse(&h, p->bytes, p->len), RTP_FIXED_LEN);
	return h;
}

/* All packets of the terminal, from the first: numbers and timestamps without a gap. */
static void assert_even(const struct audio_rig *r, uint32_t end, uint32_t n, uint32_t step)
{
	for (uint32_t i = 0; i + 1 < n; i++) {
		struct rtp_hdr next = header(audio_rig_got(r, end, i)),
			       h = header(audio_rig_got(r, end, i + 1));

		assert_int_equal((uint16_t)(h.seq + 1), next.seq);
		assert_int_equal(h.ts + step, next.ts);
	}
}

static double heard(struct audio_rig *r, uint32_t end, uint64_t from, double hertz)
{
	uint32_t n = audio_rig_listen(r, end, from, pcm, PCM);

	assert_true(n > 1600);
	return audio_rig_snr(pcm + 800, n - 1600, r->end[end].codec->about.rate, hertz);
}

static void clip_is_heard_in_place_of_the_other(void **state)
{
	static const uint8_t T[][2] = {
		{RIG_PCMU, RIG_PCMU}, {RIG_PCMU, RIG_PCMA}, {RIG_PCMU, RIG_G722}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct audio_rig *r = audio_rig_new(T[i][0], T[i][1]);
		struct audio_play p = {.clip = tone(1300, 1000), .id = 5};
		struct audio_ended ended;
		uint64_t from;

		talk(r, A, 10);
		from = r->end[B].gots;
		assert_int_equal(audio_session_play(r->end[B].s, &p, r->now_ns), 0);
		talk(r, A, 50);
		assert_in_range(r->end[B].gots - from, 50, 51);
		assert_true(heard(r, B, from, 1300) > 12);
		audio_session_ended(r->end[B].s, &ended);
		assert_int_equal(ended.n, 1);
		assert_int_equal(ended.id[0], 5);
		from = r->end[B].gots;
		talk(r, A, 30);
		assert_in_range(r->end[B].gots - from, 29, 31);
		assert_true(heard(r, B, from, r->end[A].hertz) > 15);
		assert_even(r, B, (uint32_t)r->end[B].gots, 160);
		audio_rig_free(r);
	}
}

static void clip_is_heard_while_the_other_is_silent(void **state)
{
	struct audio_rig *r = audio_rig_new(RIG_PCMU, RIG_PCMU);
	struct audio_play p = {.clip = tone(900, 500)};

	(void)state;
	assert_int_equal(audio_session_play(r->end[B].s, &p, r->now_ns), 0);
	audio_rig_wait(r, 700 * RIG_MS);
	assert_int_equal(r->end[B].gots, 25);
	assert_true(heard(r, B, 0, 900) > 20);
	assert_true(header(audio_rig_got(r, B, 24)).marker);
	assert_false(header(audio_rig_got(r, B, 23)).marker);
	audio_rig_free(r);
}

static void mixed_clip_is_heard_with_the_other(void **state)
{
	struct audio_rig *r = audio_rig_new(RIG_PCMU, RIG_PCMA);
	struct audio_play p = {.clip = tone(1300, 1000), .mix = true};
	uint64_t from;
	double both;

	(void)state;
	talk(r, A, 10);
	from = r->end[B].gots;
	assert_int_equal(audio_session_play(r->end[B].s, &p, r->now_ns), 0);
	talk(r, A, 50);
	both = heard(r, B, from, 1300);
	assert_true(both > -15 && both < 10); /* neither alone */
	both = audio_rig_snr(pcm + 800, 6000, 8000, r->end[A].hertz);
	assert_true(both > -10 && both < 15);
	talk(r, A, 10);
	assert_even(r, B, (uint32_t)r->end[B].gots, 160);
	audio_rig_free(r);
}

static void stop_gives_the_other_back(void **state)
{
	struct audio_rig *r = audio_rig_new(RIG_PCMU, RIG_PCMU);
	struct audio_play p = {.clip = tone(1300, 5000), .id = 3};
	struct audio_ended ended;
	uint64_t from;

	(void)state;
	talk(r, A, 5);
	assert_int_equal(audio_session_play(r->end[B].s, &p, r->now_ns), 0);
	talk(r, A, 20);
	audio_session_stop(r->end[B].s, 4);
	talk(r, A, 2);
	audio_session_stop(r->end[B].s, 3);
	talk(r, A, 2);
	audio_session_ended(r->end[B].s, &ended);
	assert_int_equal(ended.n, 1);
	from = r->end[B].gots;
	talk(r, A, 30);
	assert_true(heard(r, B, from, r->end[A].hertz) > 20);
	audio_rig_free(r);
}

static void digits_are_events_where_there_are_events(void **state)
{
	struct audio_rig *r = audio_rig_new(RIG_PCMU, RIG_PCMU);
	const struct audio_digit d = {.event = 7, .volume = 10, .ms = 100, .pause_ms = 40};
	uint32_t events = 0, ends = 0, ts = 0;

	(void)state;
	talk(r, A, 5);
	assert_int_equal(audio_session_digits(r->end[B].s, &d, 1, r->now_ns), 0);
	talk(r, A, 20);
	for (uint32_t i = 0; i < (uint32_t)r->end[B].gots; i++) {
		const struct audio_packet *p = audio_rig_got(r, B, i);
		struct rtp_hdr h = header(p);

		if (h.pt != RIG_EVENTS)
			continue;
		assert_int_equal(p->bytes[RTP_FIXED_LEN], 7);
		assert_true(!events || h.ts == ts);
		ts = h.ts;
		events++;
		ends += p->bytes[RTP_FIXED_LEN + 1] >> 7;
	}
	assert_int_equal(events, 7);
	assert_int_equal(ends, 3);
	assert_int_equal(header(audio_rig_got(r, B, 0)).pt, RIG_PCMU);
	audio_rig_free(r);
}

static void digits_are_tones_elsewhere(void **state)
{
	struct audio_rig *r = audio_rig_new(RIG_PCMU, RIG_G722);
	struct audio_cfg cfg = audio_rig_cfg(r, B, RIG_G722);
	const struct audio_digit d[] = {{7, 10, 100, 100}, {11, 10, 100, 100}};
	struct tones_in t;
	uint8_t out[8];
	uint32_t n;

	(void)state;
	cfg.events.type = AUDIO_NO_TYPE;
	audio_rig_set(r, B, &cfg);
	talk(r, A, 5);
	assert_int_equal(audio_session_digits(r->end[B].s, d, 2, r->now_ns), 0);
	talk(r, A, 30);
	n = audio_rig_listen(r, B, 0, pcm, PCM);
	tones_in_init(&t, 16000);
	assert_int_equal(tones_in_run(&t, pcm, n, out, sizeof(out)), 2);
	assert_int_equal(out[0], 7);
	assert_int_equal(out[1], 11);
	audio_rig_free(r);
}

static void nothing_plays_to_a_leg_without_a_codec(void **state)
{
	struct audio_rig *r = audio_rig_new(RIG_PCMU, RIG_PCMU);
	struct audio_cfg cfg = audio_rig_cfg(r, B, RIG_PCMU);
	struct audio_play p = {.clip = tone(900, 500)};
	const struct audio_digit d = {.event = 7, .ms = 100};

	(void)state;
	cfg.codec.type = AUDIO_NO_TYPE;
	audio_rig_set(r, B, &cfg);
	assert_int_equal(audio_session_play(r->end[B].s, &p, r->now_ns), -ENOTSUP);
	assert_int_equal(audio_session_digits(r->end[B].s, &d, 1, r->now_ns), -ENOTSUP);
	audio_clip_unref(p.clip);
	audio_rig_free(r);
}

/* A re-INVITE takes the codec away while a clip and digits play. The session then has nothing to do
 * until its report: audio_rig_wait() fails if a deadline stays in the past. */
static void a_codec_that_goes_ends_what_plays(void **state)
{
	struct audio_rig *r = audio_rig_new(RIG_PCMU, RIG_PCMU);
	struct audio_cfg cfg = audio_rig_cfg(r, B, RIG_PCMU);
	struct audio_play p = {.clip = tone(900, 5000), .id = 9};
	const struct audio_digit d = {.event = 7, .ms = 5000};
	struct audio_ended ended;

	(void)state;
	assert_int_equal(audio_session_play(r->end[B].s, &p, r->now_ns), 0);
	assert_int_equal(audio_session_digits(r->end[B].s, &d, 1, r->now_ns), 0);
	audio_rig_wait(r, 100 * RIG_MS);
	cfg.codec = (struct audio_type){.type = AUDIO_NO_TYPE};
	audio_rig_set(r, B, &cfg);
	audio_rig_wait(r, 100 * RIG_MS);
	audio_session_ended(r->end[B].s, &ended);
	assert_int_equal(ended.n, 1);
	assert_int_equal(ended.id[0], 9);
	audio_rig_free(r);
}

/* Digits that have not been sent end with the payload type of events. */
static void events_that_go_end_the_digits(void **state)
{
	struct audio_rig *r = audio_rig_new(RIG_PCMU, RIG_PCMU);
	struct audio_cfg cfg = audio_rig_cfg(r, B, RIG_PCMU);
	const struct audio_digit d = {.event = 7, .ms = 200};
	uint64_t sent;

	(void)state;
	assert_int_equal(audio_session_digits(r->end[B].s, &d, 1, r->now_ns), 0);
	audio_rig_wait(r, 100 * RIG_MS);
	cfg.events.type = AUDIO_NO_TYPE;
	audio_rig_set(r, B, &cfg);
	audio_rig_wait(r, 500 * RIG_MS);
	sent = r->end[B].gots;
	audio_rig_wait(r, 500 * RIG_MS);
	assert_int_equal(r->end[B].gots, sent);
	audio_rig_free(r);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(clip_is_heard_in_place_of_the_other),
		cmocka_unit_test(clip_is_heard_while_the_other_is_silent),
		cmocka_unit_test(mixed_clip_is_heard_with_the_other),
		cmocka_unit_test(stop_gives_the_other_back),
		cmocka_unit_test(digits_are_events_where_there_are_events),
		cmocka_unit_test(digits_are_tones_elsewhere),
		cmocka_unit_test(nothing_plays_to_a_leg_without_a_codec),
		cmocka_unit_test(a_codec_that_goes_ends_what_plays),
		cmocka_unit_test(events_that_go_end_the_digits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
