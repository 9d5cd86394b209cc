/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Audio sessions by a given clock: tones through two codecs, loss, order, packet times, clocks. */
#include "audio_rig.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "audio/tx.h"
#include "codec/g711.h"
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

/* Sequence numbers follow each other, and timestamps by the packets' time. */
static void assert_even(const struct audio_rig *r, uint32_t end, uint32_t n, uint32_t step)
{
	for (uint32_t i = 0; i + 1 < n; i++) {
		struct rtp_hdr next = header(audio_rig_got(r, end, i)),
			       h = header(audio_rig_got(r, end, i + 1));

		assert_int_equal((uint16_t)(h.seq + 1), next.seq);
		assert_int_equal(h.ts + step, next.ts);
		assert_int_equal(h.ssrc, 0x1000 + end);
		assert_false(next.marker);
	}
}

static double heard(struct audio_rig *r, uint32_t end, uint64_t from, double hertz)
{
	uint32_t n = audio_rig_listen(r, end, from, pcm, PCM);

	assert_true(n > 1600);
	return audio_rig_snr(pcm + 800, n - 800, r->end[end].codec->about.rate, hertz);
}

static void a_tone_passes_both_ways(void **state)
{
	static const uint8_t T[][2] = {
		{RIG_PCMU, RIG_PCMA}, {RIG_PCMU, RIG_G722}, {RIG_G722, RIG_PCMA}};

	(void)state;
	for (uint32_t t = 0; t < 3; t++) {
		struct audio_rig *r = audio_rig_new(T[t][0], T[t][1]);

		for (uint32_t i = 0; i < 50; i++) {
			talk(r, A, 1);
			talk(r, B, 1);
		}
		assert_int_equal(r->end[A].gots, 50);
		assert_int_equal(r->end[B].gots, 50);
		assert_even(r, A, 49, 160);
		assert_even(r, B, 49, 160);
		assert_int_equal(header(audio_rig_got(r, B, 0)).pt, T[t][1]);
		assert_true(heard(r, A, 0, 1000) > 20);
		assert_true(heard(r, B, 0, 1000) > 20);
		assert_int_equal(audio_session_stats(r->end[A].s)->decoded, 50);
		assert_int_equal(audio_session_stats(r->end[B].s)->encoded, 50);
		audio_rig_free(r);
	}
}

static void it_begins_with_its_index_and_a_marker(void **state)
{
	struct audio_rig *r = audio_rig_new(RIG_PCMU, RIG_G722);

	(void)state;
	talk(r, A, 2);
	assert_int_equal(header(audio_rig_got(r, B, 1)).seq, (uint16_t)70001);
	assert_true(header(audio_rig_got(r, B, 1)).marker);
	assert_false(header(audio_rig_got(r, B, 0)).marker);
	audio_rig_free(r);
}

/* One packet in twenty is lost, and pairs are swapped: the other terminal hears no gap. */
static void loss_and_order(void **state)
{
	struct audio_rig *r = audio_rig_new(RIG_PCMU, RIG_G722);
	const struct audio_stats *s = audio_session_stats(r->end[A].s);
	uint32_t lost = 0;

	(void)state;
	for (uint32_t i = 0; i < 500; i++) {
		struct audio_packet p = audio_rig_say(r, A), q;

		audio_rig_wait(r, 20 * RIG_MS);
		if (i % 20 == 7) {
			lost++;
			continue;
		}
		if (i % 20 == 12) { /* swapped with the next */
			q = audio_rig_say(r, A);
			i++;
			audio_rig_carry(r, A, &q);
			audio_rig_wait(r, 20 * RIG_MS);
		}
		audio_rig_carry(r, A, &p);
		if (i % 20 == 3)
			audio_rig_carry(r, A, &p); /* comes twice */
	}
	audio_rig_wait(r, 100 * RIG_MS);
	assert_int_equal(s->lost, lost);
	assert_int_equal(s->concealed, lost);
	assert_int_equal(s->doubled, 25);
	/* Held packets: the later of each pair, and up to three after each gap. */
	assert_in_range(s->reordered, 25, 25 + 3 * lost);
	assert_int_equal(r->end[B].gots, 500);
	assert_even(r, B, 499, 160);
	assert_true(heard(r, B, 0, 1000) > 8);
	audio_rig_free(r);
}

/* The last one before a gap comes with the deadline, not with the next packet. */
static void a_gap_is_not_waited_for_long(void **state)
{
	struct audio_rig *r = audio_rig_new(RIG_PCMU, RIG_PCMA);
	struct audio_packet p;

	(void)state;
	talk(r, A, 10);
	(void)audio_rig_say(r, A); /* lost */
	p = audio_rig_say(r, A);
	audio_rig_carry(r, A, &p);
	assert_int_equal(r->end[B].gots, 10);
	audio_rig_wait(r, 59 * RIG_MS);
	assert_int_equal(r->end[B].gots, 10);
	audio_rig_wait(r, RIG_MS);
	assert_int_equal(r->end[B].gots, 12);
	audio_rig_free(r);
}

static void late_packets_are_counted(void **state)
{
	struct audio_rig *r = audio_rig_new(RIG_PCMU, RIG_PCMA);
	struct audio_packet late;

	(void)state;
	talk(r, A, 5);
	late = audio_rig_say(r, A);
	talk(r, A, 3);
	assert_int_equal(r->end[B].gots, 9);
	audio_rig_carry(r, A, &late);
	assert_int_equal(audio_session_stats(r->end[A].s)->late, 1);
	assert_int_equal(r->end[B].gots, 9);
	audio_rig_free(r);
}

static void packet_times_are_changed(void **state)
{
	static const uint8_t T[] = {10, 30, 60, 120};

	(void)state;
	for (uint32_t t = 0; t < 4; t++) {
		struct audio_rig *r = audio_rig_new(RIG_PCMU, RIG_PCMU);
		struct audio_cfg cfg = audio_rig_cfg(r, B, RIG_PCMU);

		cfg.ptime = T[t];
		audio_rig_set(r, B, &cfg);
		talk(r, A, 61);
		/* The first packet shows its length only with the second. */
		assert_in_range(r->end[B].gots, 60 * 20 / T[t], 61 * 20 / T[t] + 1);
		assert_even(r, B, 60 * 20 / T[t] - 2, 8u * T[t]);
		assert_int_equal(audio_rig_got(r, B, 0)->len, RTP_FIXED_LEN + 8 * T[t]);
		assert_true(heard(r, B, 0, 1000) > 20);
		audio_rig_free(r);
	}
}

/* 20 ms of L16 at 44.1 and 48 kHz do not fit into a packet, nor do 60 ms at 16 kHz. */
static void linear_packets_are_short_enough(void **state)
{
	static const struct {
		uint32_t rate, channels, ptime, frame;
	} T[] = {{8000, 1, 0, 160}, {16000, 1, 20, 320}, {16000, 1, 60, 480}, {44100, 1, 0, 441},
		{48000, 1, 20, 480}, {48000, 1, 10, 480}, {48000, 1, 120, 640}, {44100, 2, 20, 294},
		{48000, 2, 20, 320}};
	struct audio_rig *r = audio_rig_new(RIG_PCMU, RIG_PCMA);
	struct audio_cfg cfg = audio_rig_cfg(r, B, RIG_PCMA);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		const struct codec_entry *e =
			codec_registry_find(r->codecs, "L16", T[i].rate, T[i].channels);

		assert_int_equal(audio_tx_frame(&e->about, T[i].ptime), T[i].frame);
		assert_true(2 * T[i].channels * T[i].frame <= TX_PAYLOAD);
	}
	cfg.codec = (struct audio_type){.type = 96,
		.kind = AUDIO_CODEC,
		.entry = (uint16_t)(codec_registry_find(r->codecs, "L16", 48000, 1) -
			r->codecs->entry),
		.clock = 48000};
	audio_rig_set(r, B, &cfg);
	talk(r, A, 10);
	assert_int_equal(r->end[B].gots, 20);
	assert_int_equal(audio_rig_got(r, B, 0)->len, RTP_FIXED_LEN + 960);
	assert_even(r, B, 18, 480);
	assert_int_equal(audio_session_stats(r->end[B].s)->broken, 0);
	audio_rig_free(r);
}

/* 175 ms of PCMU in one packet are more samples at 48 kHz than a buffer has. */
static void a_long_payload_is_heard_at_a_higher_rate(void **state)
{
	struct audio_rig *r = audio_rig_new(RIG_PCMU, RIG_PCMA);
	struct audio_cfg cfg = audio_rig_cfg(r, B, RIG_PCMA);

	(void)state;
	cfg.codec = (struct audio_type){.type = 96,
		.kind = AUDIO_CODEC,
		.entry = (uint16_t)(codec_registry_find(r->codecs, "L16", 48000, 1) -
			r->codecs->entry),
		.clock = 48000};
	audio_rig_set(r, B, &cfg);
	r->end[A].step_ms = 175;
	talk(r, A, 4);
	assert_in_range(r->end[B].gots, 69, 70); /* of 10 ms; the resampler holds back a little */
	assert_even(r, B, 68, 480);
	assert_true(heard(r, B, 0, 1000) > 20);
	audio_rig_free(r);
}

/* A terminal may have a codec under two payload types, and get the second later. */
static void a_second_number_of_a_codec_is_heard(void **state)
{
	struct audio_rig *r = audio_rig_new(RIG_PCMU, RIG_G722);
	struct audio_cfg cfg = audio_rig_cfg(r, A, RIG_PCMU);

	(void)state;
	talk(r, A, 5);
	cfg.type[3] = cfg.type[0];
	cfg.type[3].type = 96;
	cfg.types = 4;
	audio_rig_set(r, A, &cfg);
	talk(r, A, 5);
	r->end[A].type = 96;
	talk(r, A, 5);
	assert_int_equal(r->end[B].gots, 15);
	cfg.type[0] = cfg.type[3]; /* the first one goes */
	cfg.types = 3;
	audio_rig_set(r, A, &cfg);
	r->end[A].type = 96;
	talk(r, A, 5);
	assert_int_equal(r->end[B].gots, 20);
	audio_rig_free(r);
}

/* The terminal's clock is 100 ppm fast, for eight hours: nothing piles up, nothing is lost. */
static void eight_hours_of_skew(void **state)
{
	struct audio_rig *r = audio_rig_new(RIG_PCMA, RIG_PCMU);
	uint32_t hours8 = 8 * 3600 * 50, first;
	struct audio_packet p = audio_rig_say(r, A);

	(void)state;
	audio_rig_carry(r, A, &p);
	first = header(audio_rig_got(r, B, 0)).ts;
	for (uint32_t i = 1; i < hours8; i++) {
		put_be16(p.bytes + 2, r->end[A].seq++);
		put_be32(p.bytes + 4, r->end[A].ts);
		r->end[A].ts += 160;
		audio_rig_wait(r, 20 * RIG_MS - 2000);
		audio_rig_carry(r, A, &p);
	}
	assert_int_equal(r->end[B].gots, hours8);
	assert_int_equal(header(audio_rig_got(r, B, 0)).ts, first + (hours8 - 1) * 160);
	assert_int_equal(header(audio_rig_got(r, B, 0)).seq, (uint16_t)(70001 + hours8 - 1));
	assert_int_equal(audio_session_stats(r->end[A].s)->concealed, 0);
	assert_in_range(r->end[B].reports, 4000, 8000);
	audio_rig_free(r);
}

/* The same codec on both sides: payloads are not touched, numbers and SSRC are ours. */
static void passes_unchanged(struct audio_rig *r)
{
	struct audio_packet p;

	talk(r, A, 10);
	p = audio_rig_say(r, A);
	audio_rig_carry(r, A, &p);
	assert_int_equal(r->end[B].gots, 11);
	assert_even(r, B, 10, 160);
	assert_int_equal(audio_rig_got(r, B, 0)->len, p.len);
	assert_memory_equal(audio_rig_got(r, B, 0)->bytes + RTP_FIXED_LEN, p.bytes + RTP_FIXED_LEN,
		p.len - RTP_FIXED_LEN);
	assert_int_equal(audio_session_stats(r->end[A].s)->passed, 11);
	assert_int_equal(audio_session_stats(r->end[A].s)->decoded, 0);
	audio_rig_free(r);
}

static void equal_codecs_are_passed(void **state)
{
	(void)state;
	passes_unchanged(audio_rig_new(RIG_G722, RIG_G722));
}

/* G.711 becomes L16 by the codec's own function, without decoder and encoder, unless the result is
 * too long for a packet. */
static void law_becomes_linear_directly(void **state)
{
	static const uint8_t law[] = {RIG_PCMU, RIG_PCMA};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(law); i++) {
		struct audio_rig *r = audio_rig_new(law[i], RIG_PCMA);
		struct audio_cfg cfg = audio_rig_cfg(r, B, RIG_PCMA);
		const struct codec_entry *l16 = codec_registry_find(r->codecs, "L16", 8000, 1);
		const struct audio_packet *got;
		struct audio_packet p;
		uint64_t gots;

		assert_non_null(l16);
		cfg.codec = (struct audio_type){.type = 96,
			.kind = AUDIO_CODEC,
			.entry = (uint16_t)(l16 - r->codecs->entry),
			.clock = 8000};
		audio_rig_set(r, B, &cfg);
		talk(r, A, 10);
		p = audio_rig_say(r, A);
		audio_rig_carry(r, A, &p);
		got = audio_rig_got(r, B, 0);
		assert_int_equal(header(got).pt, 96);
		assert_int_equal(got->len, RTP_FIXED_LEN + 320);
		for (uint32_t k = 0; k < 160; k++) {
			uint8_t code = p.bytes[RTP_FIXED_LEN + k];

			assert_int_equal((int16_t)be16(got->bytes + RTP_FIXED_LEN + 2 * k),
				law[i] == RIG_PCMU ? g711_ulaw_decode(code)
						   : g711_alaw_decode(code));
		}
		assert_even(r, B, 10, 160);
		assert_int_equal(audio_session_stats(r->end[A].s)->passed, 11);
		assert_int_equal(audio_session_stats(r->end[A].s)->decoded, 0);
		assert_int_equal(audio_session_stats(r->end[B].s)->encoded, 0);
		/* 100 ms are 1,600 bytes of L16. */
		gots = r->end[B].gots;
		r->end[A].step_ms = 100;
		talk(r, A, 2);
		assert_int_equal(r->end[B].gots, gots + 10);
		assert_int_equal(audio_session_stats(r->end[B].s)->encoded, 10);
		assert_even(r, B, 9, 160);
		audio_rig_free(r);
	}
}

/* Packets that are lost before the relay are missing for the other terminal, too, so that it can
 * conceal them and report them. Longer packets are not taken for losses. */
static void losses_are_passed_on(void **state)
{
	struct audio_rig *r = audio_rig_new(RIG_G722, RIG_G722);
	struct rtp_hdr before, after;

	(void)state;
	talk(r, A, 10);
	before = header(audio_rig_got(r, B, 0));
	for (uint32_t lost = 1; lost <= 3; lost++) {
		for (uint32_t i = 0; i < lost; i++)
			(void)audio_rig_say(r, A);
		talk(r, A, 3); /* the third one after a gap ends the wait for it */
		audio_rig_wait(r, 100 * RIG_MS);
		after = header(audio_rig_got(r, B, 2));
		assert_int_equal(after.seq, (uint16_t)(before.seq + 1 + lost));
		assert_int_equal(after.ts, before.ts + 160 * (1 + lost));
		assert_even(r, B, 3, 160);
		before = header(audio_rig_got(r, B, 0));
	}
	assert_int_equal(r->end[B].gots, 19);
	assert_int_equal(audio_session_stats(r->end[B].s)->skipped, 6);
	assert_int_equal(audio_session_stats(r->end[B].s)->sent, 19);
	r->end[A].step_ms = 40;
	talk(r, A, 5);
	after = header(audio_rig_got(r, B, 0));
	assert_int_equal(after.seq, (uint16_t)(before.seq + 5));
	assert_int_equal(audio_session_stats(r->end[B].s)->skipped, 6);
	/* A loss of half a second is a pause. */
	for (uint32_t i = 0; i < 12; i++)
		(void)audio_rig_say(r, A);
	talk(r, A, 5);
	assert_int_equal(header(audio_rig_got(r, B, 0)).seq, (uint16_t)(after.seq + 5));
	assert_int_equal(audio_session_stats(r->end[B].s)->skipped, 6);
	audio_rig_free(r);
}

/* One terminal's further codec is PCMU, so its G.722 is PCM of 8 kHz. */
static void equal_codecs_with_other_pcm_are_passed(void **state)
{
	struct audio_rig *r = audio_rig_new(RIG_G722, RIG_G722);
	const struct codec_entry *e = r->codecs->entry;
	struct audio_cfg cfg = audio_rig_cfg(r, B, RIG_G722);
	const struct codec_entry *low =
		codec_registry_variant(r->codecs, &e[cfg.codec.entry], 8000);

	(void)state;
	assert_int_not_equal(low - e, cfg.codec.entry);
	cfg.codec.entry = cfg.type[0].entry = (uint16_t)(low - e);
	audio_rig_set(r, B, &cfg);
	passes_unchanged(r);
}

/* A pause in the timestamps of one terminal is a pause for the other. */
static void pauses_stay_pauses(void **state)
{
	static const uint8_t T[] = {RIG_PCMA, RIG_G722, RIG_PCMU};

	(void)state;
	for (uint32_t t = 0; t < 3; t++) {
		struct audio_rig *r = audio_rig_new(RIG_PCMU, T[t]);
		uint32_t before;

		talk(r, A, 10);
		before = header(audio_rig_got(r, B, 0)).ts;
		r->end[A].ts += 8000; /* a second */
		audio_rig_wait(r, RIG_SECOND_NS);
		talk(r, A, 3);
		assert_int_equal(header(audio_rig_got(r, B, 2)).ts, before + 8000 + 160);
		assert_int_equal(header(audio_rig_got(r, B, 1)).ts, before + 8000 + 320);
		assert_int_equal(audio_session_stats(r->end[A].s)->concealed, 0);
		audio_rig_free(r);
	}
}

/* Another terminal answers: SSRC, timestamps and numbers change; ours continue. */
static void another_source_goes_on(void **state)
{
	struct audio_rig *r = audio_rig_new(RIG_PCMU, RIG_PCMA);
	struct rtp_hdr before, after;

	(void)state;
	talk(r, A, 10);
	before = header(audio_rig_got(r, B, 0));
	r->end[A].ssrc ^= 0x5555;
	r->end[A].ts = 12345;
	r->end[A].seq = 7;
	talk(r, A, 3);
	after = header(audio_rig_got(r, B, 2));
	assert_int_equal(after.seq, (uint16_t)(before.seq + 1));
	assert_int_equal(after.ts, before.ts + 160);
	assert_int_equal(after.ssrc, before.ssrc);
	assert_int_equal(r->end[B].gots, 13);
	audio_rig_free(r);
}

/* The leg gets another codec in mid-call: numbers and timestamps continue, with a marker. */
static void another_codec_goes_on(void **state)
{
	struct audio_rig *r = audio_rig_new(RIG_PCMU, RIG_PCMA);
	struct audio_cfg cfg = audio_rig_cfg(r, B, RIG_G722);
	struct rtp_hdr before, after;

	(void)state;
	talk(r, A, 10);
	before = header(audio_rig_got(r, B, 0));
	cfg.index = 5; /* of a new SSRC only */
	audio_rig_set(r, B, &cfg);
	talk(r, A, 20);
	after = header(audio_rig_got(r, B, 19));
	assert_int_equal(after.pt, RIG_G722);
	assert_int_equal(after.seq, (uint16_t)(before.seq + 1));
	assert_int_equal(after.ts, before.ts + 160);
	assert_true(after.marker);
	assert_true(heard(r, B, 10, 1000) > 20);
	cfg.ssrc = 0x9999;
	audio_rig_set(r, B, &cfg);
	talk(r, A, 1);
	assert_int_equal(header(audio_rig_got(r, B, 0)).seq, 5);
	assert_int_equal(header(audio_rig_got(r, B, 0)).ssrc, 0x9999);
	audio_rig_free(r);
}

static struct audio_packet event(
	struct audio_rig *r, uint32_t end, uint8_t type, uint16_t lasts, bool last)
{
	uint8_t p[4] = {5, (uint8_t)(last << 7 | 10)};

	put_be16(p + 2, lasts);
	return audio_rig_packet(r, end, type, lasts == 160, p, sizeof(p));
}

/* Events keep one timestamp; the type is the other's, and so is the clock. */
static void events_are_translated(void **state)
{
	struct audio_rig *r = audio_rig_new(RIG_PCMU, RIG_G722);
	struct audio_cfg cfg = audio_rig_cfg(r, B, RIG_G722);
	struct audio_packet p;
	uint32_t audio, first[2];

	(void)state;
	cfg.events = (struct audio_type){.type = RIG_EVENTS_16K, .clock = 16000};
	audio_rig_set(r, B, &cfg);
	talk(r, A, 10);
	audio = header(audio_rig_got(r, B, 0)).ts;
	for (uint32_t n = 0; n < 2; n++) {
		for (uint16_t i = 1; i <= 5; i++) {
			p = event(r, A, RIG_EVENTS, (uint16_t)(160 * i), i == 5);
			audio_rig_carry(r, A, &p);
			audio_rig_wait(r, 20 * RIG_MS);
			assert_int_equal(header(audio_rig_got(r, B, 0)).pt, RIG_EVENTS_16K);
			assert_int_equal(header(audio_rig_got(r, B, 0)).marker, i == 1);
			assert_int_equal(audio_rig_got(r, B, 0)->bytes[RTP_FIXED_LEN], 5);
			assert_int_equal(
				be16(audio_rig_got(r, B, 0)->bytes + RTP_FIXED_LEN + 2), 320 * i);
			if (i > 1)
				assert_int_equal(header(audio_rig_got(r, B, 0)).ts, first[n]);
			first[n] = header(audio_rig_got(r, B, 0)).ts;
		}
		r->end[A].ts += 800;
	}
	assert_int_equal(first[0], audio + 160);
	assert_int_equal(first[1], audio + 160 + 800);
	assert_int_equal(audio_session_stats(r->end[A].s)->events, 2);
	talk(r, A, 1); /* 200 ms later */
	assert_int_equal(header(audio_rig_got(r, B, 0)).ts, audio + 160 + 1600);
	audio_rig_free(r);
}

static void gates(void **state)
{
	struct audio_rig *r = audio_rig_new(RIG_PCMU, RIG_PCMA);
	struct audio_cfg cfg = audio_rig_cfg(r, A, RIG_PCMU);
	struct audio_packet p;

	(void)state;
	cfg.gate = AUDIO_GATE_MEDIA;
	audio_rig_set(r, A, &cfg);
	talk(r, A, 5);
	assert_int_equal(r->end[B].gots, 0);
	p = event(r, A, RIG_EVENTS, 160, false);
	audio_rig_carry(r, A, &p);
	assert_int_equal(r->end[B].gots, 1);
	cfg.gate = AUDIO_GATE_DTMF;
	audio_rig_set(r, A, &cfg);
	p = event(r, A, RIG_EVENTS, 160, false);
	audio_rig_carry(r, A, &p);
	assert_int_equal(r->end[B].gots, 1);
	cfg.gate = AUDIO_GATE_QUIET;
	audio_rig_set(r, A, &cfg);
	talk(r, A, 10);
	assert_int_equal(r->end[B].gots, 11);
	for (uint32_t i = 0; i < 160; i++)
		assert_int_equal(audio_rig_got(r, B, 0)->bytes[RTP_FIXED_LEN + i], 0xd5);
	cfg.gate = AUDIO_GATE_DROP;
	audio_rig_set(r, A, &cfg);
	talk(r, A, 10);
	assert_int_equal(r->end[B].gots, 11);
	audio_rig_free(r);
}

/* CN for a terminal that has no CN: noise is made until it speaks again. */
static void comfort_noise_is_made(void **state)
{
	struct audio_rig *r = audio_rig_new(RIG_PCMU, RIG_PCMA);
	struct audio_packet p;
	uint8_t level = 40;
	uint32_t before;

	(void)state;
	talk(r, A, 10);
	before = header(audio_rig_got(r, B, 0)).ts;
	p = audio_rig_packet(r, A, RIG_CN, false, &level, 1);
	audio_rig_carry(r, A, &p);
	audio_rig_wait(r, 399 * RIG_MS);
	assert_int_equal(r->end[B].gots, 30);
	assert_even(r, B, 29, 160);
	r->end[A].ts += 20 * 160;
	audio_rig_wait(r, RIG_MS / 2);
	talk(r, A, 5);
	assert_int_equal(r->end[B].gots, 35);
	assert_int_equal(header(audio_rig_got(r, B, 0)).ts, before + 25 * 160);
	audio_rig_wait(r, RIG_SECOND_NS);
	assert_int_equal(r->end[B].gots, 35);
	audio_rig_free(r);
}

/* CN for a terminal that has it: the packet is forwarded, and the next talkspurt has a marker. */
static void comfort_noise_is_passed(void **state)
{
	struct audio_rig *r = audio_rig_new(RIG_PCMU, RIG_PCMA);
	struct audio_cfg cfg = audio_rig_cfg(r, B, RIG_PCMA);
	struct audio_packet p;
	uint8_t level = 40;

	(void)state;
	cfg.cn = (struct audio_type){.type = RIG_CN, .kind = AUDIO_CN, .clock = 8000};
	audio_rig_set(r, B, &cfg);
	talk(r, A, 10);
	p = audio_rig_packet(r, A, RIG_CN, false, &level, 1);
	audio_rig_carry(r, A, &p);
	audio_rig_wait(r, 400 * RIG_MS);
	assert_int_equal(r->end[B].gots, 11);
	assert_int_equal(header(audio_rig_got(r, B, 0)).pt, RIG_CN);
	r->end[A].ts += 20 * 160;
	talk(r, A, 1);
	assert_true(header(audio_rig_got(r, B, 0)).marker);
	assert_int_equal(
		header(audio_rig_got(r, B, 0)).ts, header(audio_rig_got(r, B, 1)).ts + 20 * 160);
	audio_rig_free(r);
}

/* Above the ceiling a few packets are dropped, without a gap in the sequence numbers. A stream that
 * stays above it continues under the spare SSRC. Timestamps follow the clock. */
static void a_ceiling_bounds_indexes(void **state)
{
	struct audio_rig *r = audio_rig_new(RIG_PCMU, RIG_PCMA);
	struct audio_cfg cfg = audio_rig_cfg(r, B, RIG_PCMA);
	struct rtp_hdr h;
	uint32_t last;

	(void)state;
	cfg.ssrc = 0x5000;
	cfg.index = 1000;
	cfg.spare = 0x6000;
	cfg.ts = 77;
	cfg.ceiling =
		(struct ceiling){.from_ns = 5000000000ull, .unit_ns = 20000000, .first = 1003};
	cfg.ceiling.first -= CEILING_BURST;
	r->env.now_ns = 5000000000ull;
	audio_rig_set(r, B, &cfg);
	talk(r, A, 4);
	h = header(audio_rig_got(r, B, 0));
	assert_int_equal(h.seq, 1003);
	assert_int_equal(h.ssrc, 0x5000);
	assert_int_equal(h.ts, 77 + 5 * 8000 + 3 * 160);
	talk(r, A, 3);
	assert_int_equal(header(audio_rig_got(r, B, 0)).seq, 1003);
	r->env.now_ns += 40000000;
	talk(r, A, 2);
	h = header(audio_rig_got(r, B, 0));
	assert_int_equal(h.seq, 1005);
	assert_int_equal(h.ts, 77 + 5 * 8000 + 8 * 160);
	assert_int_equal(audio_session_stats(r->end[B].s)->unsent, 3);
	talk(r, A, 40);
	h = header(audio_rig_got(r, B, 0));
	assert_int_equal(h.ssrc, 0x6000);
	assert_int_equal(audio_session_stats(r->end[B].s)->unsent, 25);
	last = h.seq;
	talk(r, A, 1);
	assert_int_equal(header(audio_rig_got(r, B, 0)).seq, last + 1);
	audio_rig_free(r);
}

/* Malformed packets, and packets that a full ring drops, disturb nothing. */
static void rubbish_is_counted(void **state)
{
	struct audio_rig *r = audio_rig_new(RIG_PCMU, RIG_G722);
	const struct audio_stats *s = audio_session_stats(r->end[A].s);
	struct audio_packet p;
	uint8_t bytes[1400] = {0};

	(void)state;
	talk(r, A, 5);
	p = audio_rig_packet(r, A, 77, false, bytes, 100);
	audio_rig_carry(r, A, &p);
	assert_int_equal(s->unknown, 1);
	p = audio_rig_packet(r, A, RIG_EVENTS, false, bytes, 3);
	audio_rig_carry(r, A, &p);
	assert_int_equal(s->broken, 1);
	p = audio_rig_packet(r, A, RIG_PCMU, false, bytes, 1400);
	p.bytes[0] |= RTP_P_BIT;
	p.bytes[p.len - 1] = 255;
	audio_rig_carry(r, A, &p); /* padding */
	p.bytes[3]++;
	p.len = RTP_FIXED_LEN + 10;
	p.bytes[p.len - 1] = 11;
	audio_rig_carry(r, A, &p);
	assert_int_equal(s->broken, 2);
	p.len = 11;
	audio_rig_carry(r, A, &p);
	p.len = 0;
	audio_rig_carry(r, A, &p);
	assert_int_equal(s->broken, 4);
	r->end[A].seq++;
	r->end[B].full = true;
	talk(r, A, 5);
	r->end[B].full = false;
	talk(r, A, 5);
	assert_true(audio_session_stats(r->end[B].s)->unsent >= 5);
	/* Numbers of packets that found no room were not used. */
	assert_even(r, B, 4, 160);
	audio_rig_free(r);
}

/* The built-in resampler has no 44,100 Hz, and the rig has no plug-in. */
static void without_a_resampler_rates_must_be_equal(void **state)
{
	struct audio_rig *r = audio_rig_new(RIG_PCMU, RIG_L16);

	(void)state;
	talk(r, A, 5); /* set() refuses this, but it must not crash */
	assert_int_equal(r->end[B].gots, 0);
	audio_rig_free(r);
}

static void bad_settings_are_refused(void **state)
{
	struct audio_rig *r = audio_rig_new(RIG_PCMU, RIG_G722);
	struct audio_cfg cfg = audio_rig_cfg(r, A, RIG_PCMU), good = cfg;
	struct audio_order *o = NULL;

	(void)state;
	cfg.type[0].entry = CODEC_ENTRIES;
	assert_int_equal(audio_order_create(&o, r->codecs, &cfg, NULL), -EINVAL);
	cfg = good;
	cfg.ssrc = 0;
	assert_int_equal(audio_order_create(&o, r->codecs, &cfg, NULL), -EINVAL);
	cfg = good;
	cfg.types = AUDIO_TYPES + 1;
	assert_int_equal(audio_order_create(&o, r->codecs, &cfg, NULL), -EINVAL);
	assert_null(o);
	audio_rig_free(r);
}

/* A terminal sends 100,000 packets per second, of 20 ms or of one sample. The other terminal gets
 * hardly more audio than the time that passes, and afterwards a whole stream. */
static void a_flood_is_not_faster_than_time(void **state)
{
	static const uint8_t T[][2] = {{RIG_PCMU, RIG_G722}, {RIG_PCMU, RIG_PCMU}};
	static const uint32_t LEN[] = {160, 1};
	uint8_t payload[160] = {0};

	(void)state;
	for (uint32_t t = 0; t < 4; t++) {
		struct audio_rig *r = audio_rig_new(T[t / 2][0], T[t / 2][1]);
		uint64_t before;

		talk(r, A, 5);
		before = r->end[B].gots;
		for (uint32_t i = 0; i < 100000; i++) {
			struct audio_packet p =
				audio_rig_packet(r, A, RIG_PCMU, false, payload, LEN[t % 2]);

			r->end[A].ts += LEN[t % 2];
			audio_rig_carry(r, A, &p);
			audio_rig_wait(r, RIG_MS / 100);
		}
		assert_true(r->end[B].gots - before < (LEN[t % 2] == 1 ? 3500 : 180));
		assert_true(audio_session_stats(r->end[A].s)->early > 96000);
		audio_rig_wait(r, 3ull * RIG_SECOND_NS);
		before = r->end[B].gots;
		talk(r, A, 50);
		assert_in_range(r->end[B].gots - before, 50, 51);
		audio_rig_free(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tone_passes_both_ways),
		cmocka_unit_test(it_begins_with_its_index_and_a_marker),
		cmocka_unit_test(a_flood_is_not_faster_than_time),
		cmocka_unit_test(loss_and_order),
		cmocka_unit_test(a_gap_is_not_waited_for_long),
		cmocka_unit_test(late_packets_are_counted),
		cmocka_unit_test(packet_times_are_changed),
		cmocka_unit_test(linear_packets_are_short_enough),
		cmocka_unit_test(a_long_payload_is_heard_at_a_higher_rate),
		cmocka_unit_test(a_second_number_of_a_codec_is_heard),
		cmocka_unit_test(eight_hours_of_skew),
		cmocka_unit_test(equal_codecs_are_passed),
		cmocka_unit_test(losses_are_passed_on),
		cmocka_unit_test(law_becomes_linear_directly),
		cmocka_unit_test(equal_codecs_with_other_pcm_are_passed),
		cmocka_unit_test(pauses_stay_pauses),
		cmocka_unit_test(another_source_goes_on),
		cmocka_unit_test(another_codec_goes_on),
		cmocka_unit_test(events_are_translated),
		cmocka_unit_test(gates),
		cmocka_unit_test(comfort_noise_is_made),
		cmocka_unit_test(comfort_noise_is_passed),
		cmocka_unit_test(rubbish_is_counted),
		cmocka_unit_test(without_a_resampler_rates_must_be_equal),
		cmocka_unit_test(a_ceiling_bounds_indexes),
		cmocka_unit_test(bad_settings_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
