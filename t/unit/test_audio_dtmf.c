/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sessions of two terminals of which one has no telephone events: events become tones, and tones
 * become events. */
#include "audio_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#include "audio/tones.h"
#include "proto/rtp.h"

enum { A = 0, B = 1, PCM = 16000 * 12 };

static int16_t pcm[PCM];

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

static struct audio_packet event(
	struct audio_rig *r, uint32_t end, uint8_t type, uint16_t lasts, bool last)
{
	uint8_t p[4] = {5, (uint8_t)(last << 7 | 10)};

	put_be16(p + 2, lasts);
	return audio_rig_packet(r, end, type, lasts == 160, p, sizeof(p));
}

/* The digits in what the terminal heard since its packet number from. */
static size_t digits_heard(
	struct audio_rig *r, uint32_t end, uint64_t from, uint8_t *out, size_t cap)
{
	uint32_t n = audio_rig_listen(r, end, from, pcm, PCM);
	struct tones_in t;

	tones_in_init(&t, r->end[end].codec->about.rate);
	return tones_in_run(&t, pcm, n, out, cap);
}

static void assert_reported(struct audio_rig *r, uint32_t end, uint8_t n, uint8_t digit)
{
	struct audio_heard heard;

	audio_session_heard(r->end[end].s, &heard);
	assert_int_equal(heard.n, n);
	for (uint8_t i = 0; i < n; i++)
		assert_int_equal(heard.digit[i], digit);
	audio_session_heard(r->end[end].s, &heard);
	assert_int_equal(heard.n, 0);
}

/* B has no telephone events: it hears tones as long as A's events, and then audio again. */
static void events_become_tones(void **state)
{
	struct audio_rig *r = audio_rig_new(RIG_PCMU, RIG_G722);
	struct audio_cfg cfg = audio_rig_cfg(r, B, RIG_G722);
	struct audio_packet p;
	uint8_t digit[4];
	uint64_t from;
	uint32_t ts;

	(void)state;
	cfg.events.type = AUDIO_NO_TYPE;
	cfg.events_to_tone = true;
	audio_rig_set(r, B, &cfg);
	talk(r, A, 10);
	from = r->end[B].gots;
	ts = header(audio_rig_got(r, B, 0)).ts;
	for (uint16_t i = 1; i <= 8; i++) { /* the last three are the same */
		p = event(r, A, RIG_EVENTS, (uint16_t)(160 * (i < 6 ? i : 6)), i >= 6);
		audio_rig_carry(r, A, &p);
		audio_rig_wait(r, 20 * RIG_MS);
	}
	assert_int_equal(r->end[B].gots - from, 6);
	assert_int_equal(header(audio_rig_got(r, B, 0)).ts, ts + 6 * 160);
	assert_int_equal(digits_heard(r, B, from, digit, sizeof(digit)), 1);
	assert_int_equal(digit[0], 5);
	assert_reported(r, A, 1, 5);
	talk(r, A, 3); /* audio that A sends during the event */
	assert_int_equal(r->end[B].gots - from, 6);
	r->end[A].ts += 3 * 160;
	talk(r, A, 5);
	assert_int_equal(r->end[B].gots - from, 11);
	assert_int_equal(header(audio_rig_got(r, B, 0)).ts, ts + 11 * 160);
	audio_rig_free(r);
}

/* A states a false length: each packet causes 120 ms of tone at most. */
static void tones_are_bounded(void **state)
{
	struct audio_rig *r = audio_rig_new(RIG_PCMU, RIG_PCMA);
	struct audio_cfg cfg = audio_rig_cfg(r, B, RIG_PCMA);
	struct audio_packet p;

	(void)state;
	cfg.events.type = AUDIO_NO_TYPE;
	cfg.events_to_tone = true;
	audio_rig_set(r, B, &cfg);
	p = event(r, A, RIG_EVENTS, UINT16_MAX, true);
	audio_rig_carry(r, A, &p);
	assert_int_equal(r->end[B].gots, 6);
	audio_rig_free(r);
}

/* A's digits, of a millisecond each, would take the queue of reports from other calls. */
static void digits_are_reported_no_faster_than_dialled(void **state)
{
	struct audio_rig *r = audio_rig_new(RIG_PCMU, RIG_PCMA);
	struct audio_heard heard;
	uint32_t n = 0;

	(void)state;
	for (int i = 0; i < 4000; i++) {
		struct audio_packet p = event(r, A, RIG_EVENTS, 8, true);

		r->end[A].ts += 8;
		audio_rig_carry(r, A, &p);
		audio_rig_wait(r, RIG_MS);
		audio_session_heard(r->end[A].s, &heard);
		n += heard.n;
	}
	assert_in_range(n, 4000 / 40, (4000 + 2000) / 40 + 2);
	audio_rig_wait(r, 4000 * RIG_MS);
	for (int i = 0; i < 40; i++) { /* those of a dialler that was held up in the network */
		struct audio_packet p = event(r, A, RIG_EVENTS, 8, true);

		r->end[A].ts += 8;
		audio_rig_carry(r, A, &p);
		assert_reported(r, A, 1, 5);
	}
	audio_rig_free(r);
}

/* A has no telephone events, B has: it hears each digit once, and little of the tone. */
static void tones_become_events(void **state)
{
	struct audio_rig *r = audio_rig_new(RIG_PCMU, RIG_PCMA);
	struct audio_cfg cfg = audio_rig_cfg(r, A, RIG_PCMU);
	uint32_t events = 0, last = 0, ends = 0;
	struct tone_out tone;
	uint8_t payload[160];

	(void)state;
	cfg.tone_to_events = true;
	audio_rig_set(r, A, &cfg);
	talk(r, A, 5);
	for (uint32_t k = 0; k < 2; k++) {
		tone_out_init(&tone, 7, 10, 8000);
		for (uint32_t i = 0; i < 20; i++) { /* 100 ms, and 300 of silence */
			struct audio_packet p;

			memset(pcm, 0, 320);
			if (i < 5)
				tone_out_run(&tone, pcm, 160);
			assert_int_equal(codec_stream_encode(r->end[A].coder, pcm, 160, payload,
						 sizeof(payload)),
				160);
			p = audio_rig_packet(r, A, RIG_PCMU, false, payload, sizeof(payload));
			r->end[A].ts += 160;
			audio_rig_carry(r, A, &p);
			audio_rig_wait(r, 20 * RIG_MS);
		}
	}
	assert_reported(r, A, 2, 7);
	for (uint32_t i = (uint32_t)r->end[B].gots; i-- > 0;) {
		const struct audio_packet *p = audio_rig_got(r, B, i);
		struct rtp_hdr h = header(p);

		if (h.pt != RIG_EVENTS)
			continue;
		assert_int_equal(p->bytes[RTP_FIXED_LEN], 7);
		events += h.ts != last;
		ends += p->bytes[RTP_FIXED_LEN + 1] >> 7;
		last = h.ts;
	}
	assert_int_equal(events, 2);
	assert_int_equal(ends, 6);
	audio_rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_become_tones),
		cmocka_unit_test(tones_are_bounded),
		cmocka_unit_test(digits_are_reported_no_faster_than_dialled),
		cmocka_unit_test(tones_become_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
