/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The sender of telephone events (RFC 4733 2.5.1). */
#include <setjmp.h>
#include <stdarg.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "audio/events_out.h"
#include "base/bytes.h"

static void event_has_marker_updates_and_three_ends(void **state)
{
	const struct audio_digit d = {.event = 5, .volume = 8, .ms = 50, .pause_ms = 40};
	struct audio_event_packet p;
	struct audio_events e;

	(void)state;
	audio_events_init(&e, 8000, 8000);
	assert_int_equal(audio_events_step(&e, 1000, 160, &p), AUDIO_EVENTS_IDLE);
	assert_int_equal(audio_events_add(&e, &d, 1), 0);
	for (uint32_t i = 1; i <= 3; i++) {
		bool end = i == 3; /* 60 ms: the first packet time at or after 50 */

		assert_int_equal(audio_events_step(&e, 1000 + 160 * i, 160, &p), AUDIO_EVENTS_SEND);
		assert_int_equal(p.ts, 1160);
		assert_int_equal(p.marker, i == 1);
		assert_int_equal(p.copies, end ? 3 : 1);
		assert_int_equal(p.payload[0], 5);
		assert_int_equal(p.payload[1], end ? 0x88 : 8);
		assert_int_equal(be16(p.payload + 2), 160 * i);
	}
	assert_int_equal(audio_events_step(&e, 1640, 160, &p), AUDIO_EVENTS_PAUSE);
	assert_int_equal(audio_events_step(&e, 1800, 160, &p), AUDIO_EVENTS_PAUSE);
	assert_int_equal(audio_events_step(&e, 1960, 160, &p), AUDIO_EVENTS_IDLE);
}

static void digits_wait_for_their_turn(void **state)
{
	const struct audio_digit d[] = {{.event = 1, .ms = 20, .pause_ms = 20},
		{.event = 15, .ms = 20}, {.event = 3, .ms = 20}};
	struct audio_event_packet p;
	struct audio_events e;
	uint32_t heard = 0;

	(void)state;
	audio_events_init(&e, 48000, 48000);
	assert_int_equal(audio_events_add(&e, d, 3), 0);
	for (uint32_t i = 0; i < 10; i++)
		if (audio_events_step(&e, i * 960, 960, &p) == AUDIO_EVENTS_SEND) {
			assert_int_equal(p.payload[0], d[heard].event);
			assert_int_equal(p.ts, i * 960);
			assert_int_equal(p.copies, 3);
			assert_true(p.marker);
			heard++;
		}
	assert_int_equal(heard, 3);
}

static void long_event_goes_on_in_segments(void **state)
{
	const struct audio_digit d = {.event = 0, .ms = 5000};
	struct audio_event_packet p;
	struct audio_events e;
	uint32_t segments = 1, ts = 0, sent = 0;

	(void)state;
	audio_events_init(&e, 48000, 48000);
	assert_int_equal(audio_events_add(&e, &d, 1), 0);
	for (uint32_t i = 0; i < 250; i++) {
		assert_int_equal(audio_events_step(&e, i * 960, 960, &p), AUDIO_EVENTS_SEND);
		assert_int_equal(p.marker, i == 0);
		if (p.ts != ts) { /* begins where the last one ended */
			assert_int_equal(p.ts, sent);
			ts = p.ts;
			segments++;
		}
		sent = p.ts + be16(p.payload + 2);
		assert_int_equal(sent, (i + 1) * 960);
	}
	assert_int_equal(segments, 4);
	assert_int_equal(p.copies, 3);
}

/* Opus with telephone events of 8000 Hz: timestamps at 48000 Hz, durations at 8000 Hz. */
static void durations_have_the_clock_of_the_events(void **state)
{
	const struct audio_digit d = {.event = 5, .ms = 50, .pause_ms = 40};
	struct audio_event_packet p;
	struct audio_events e;

	(void)state;
	audio_events_init(&e, 8000, 48000);
	assert_int_equal(audio_events_add(&e, &d, 1), 0);
	for (uint32_t i = 1; i <= 3; i++) {
		assert_int_equal(audio_events_step(&e, 960 * i, 960, &p), AUDIO_EVENTS_SEND);
		assert_int_equal(p.ts, 960);
		assert_int_equal(be16(p.payload + 2), 160 * i);
		assert_int_equal(p.copies, i == 3 ? 3 : 1);
	}
	assert_int_equal(audio_events_step(&e, 3840, 960, &p), AUDIO_EVENTS_PAUSE);
	assert_int_equal(audio_events_step(&e, 4800, 960, &p), AUDIO_EVENTS_PAUSE);
	assert_int_equal(audio_events_step(&e, 5760, 960, &p), AUDIO_EVENTS_IDLE);
}

static void stop_ends_the_event_in_progress(void **state)
{
	const struct audio_digit d[] = {{.event = 1, .ms = 1000}, {.event = 2, .ms = 1000}};
	struct audio_event_packet p;
	struct audio_events e;

	(void)state;
	audio_events_init(&e, 8000, 8000);
	assert_int_equal(audio_events_add(&e, d, 2), 0);
	audio_events_stop(&e);
	assert_int_equal(audio_events_step(&e, 0, 160, &p), AUDIO_EVENTS_IDLE);
	assert_int_equal(audio_events_add(&e, d, 2), 0);
	assert_int_equal(audio_events_step(&e, 0, 160, &p), AUDIO_EVENTS_SEND);
	audio_events_stop(&e);
	assert_int_equal(audio_events_step(&e, 160, 160, &p), AUDIO_EVENTS_SEND);
	assert_int_equal(p.payload[1] & 0x80, 0x80);
	assert_int_equal(audio_events_step(&e, 320, 160, &p), AUDIO_EVENTS_IDLE);
}

static void queue_is_bounded(void **state)
{
	struct audio_digits q = {.n = 0};
	struct audio_digit d[AUDIO_DIGITS_MAX + 1], out;

	(void)state;
	for (uint32_t i = 0; i < ARRAY_LEN(d); i++)
		d[i] = (struct audio_digit){.event = (uint8_t)(i % 16), .ms = 100};
	assert_int_equal(audio_digits_add(&q, d, AUDIO_DIGITS_MAX + 1), -ENOSPC);
	assert_int_equal(audio_digits_add(&q, d, 20), 0);
	assert_true(audio_digits_next(&q, &out));
	assert_int_equal(audio_digits_add(&q, d, 13), 0);
	assert_int_equal(audio_digits_add(&q, d, 1), -ENOSPC);
	d[0].event = 16;
	assert_int_equal(audio_digits_add(&q, d, 0), 0);
	for (uint32_t i = 0; i < AUDIO_DIGITS_MAX; i++) {
		assert_true(audio_digits_next(&q, &out));
		assert_int_equal(out.event, (i < 19 ? i + 1 : i - 19) % 16);
	}
	assert_false(audio_digits_next(&q, &out));
	assert_int_equal(audio_digits_add(&q, d, 1), -EINVAL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(event_has_marker_updates_and_three_ends),
		cmocka_unit_test(digits_wait_for_their_turn),
		cmocka_unit_test(long_event_goes_on_in_segments),
		cmocka_unit_test(durations_have_the_clock_of_the_events),
		cmocka_unit_test(stop_ends_the_event_in_progress),
		cmocka_unit_test(queue_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
