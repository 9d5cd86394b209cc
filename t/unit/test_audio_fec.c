/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Redundancy of Opus in sessions: it replaces packets of a terminal that are lost, and packets to a
 * terminal have it while the terminal reports loss. */
#include "audio_rig.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "codec/loader.h"
#include "codec_paths.h"
#include "proto/rtp.h"

enum { A = 0, B = 1, OPUS = 96 };

/* Party A has Opus with this a=fmtp, coded at rate Hz. Party B has PCMU. Returns NULL if there is
 * no plug-in for Opus. */
static struct audio_rig *opus_rig(const char *fmtp, uint32_t rate)
{
	static char folder[CODEC_PATH], program[CODEC_PATH];
	struct codec_loader_cfg loader = {.folder = codec_path(folder, "codecs"),
		.ours = true,
		.isolation = CODEC_ISOLATE_FOREIGN};
	struct audio_rig *r = audio_rig_new(RIG_PCMU, RIG_PCMU);
	struct audio_cfg cfg = audio_rig_cfg(r, A, RIG_PCMU);
	const struct codec_entry *e;

	codec_home_defaults(&loader.home);
	loader.home.program = codec_path(program, "xcipher-codec-worker");
	assert_true(codec_loader_run(r->codecs, &loader) > 0);
	e = codec_registry_find(r->codecs, "opus", 48000, 1);
	if (!e) {
		audio_rig_free(r);
		return NULL;
	}
	e = codec_registry_variant(r->codecs, e, rate);
	assert_int_equal(e->about.rate, rate);
	cfg.codec = (struct audio_type){.type = OPUS,
		.kind = AUDIO_CODEC,
		.entry = (uint16_t)(e - r->codecs->entry),
		.clock = 48000,
		.fmtp_len = (uint16_t)strlen(fmtp)};
	memcpy(cfg.codec.fmtp, fmtp, strlen(fmtp));
	cfg.type[0] = cfg.codec;
	audio_rig_set(r, A, &cfg);
	return r;
}

static void the_next_packet_replaces_a_lost_one(void **state)
{
	struct xcipher_codec_wish wish = {.fec = 1, .loss_percent = 20, .bitrate = 24000};
	struct audio_rig *r = opus_rig("useinbandfec=1", 8000);
	const struct audio_stats *s;
	uint32_t lost = 0;

	(void)state;
	if (!r)
		skip();
	s = audio_session_stats(r->end[A].s);
	assert_int_equal(codec_stream_adapt(r->end[A].coder, &wish), 0);
	for (uint32_t i = 0; i < 200; i++) {
		struct audio_packet p = audio_rig_say(r, A);

		r->end[A].hertz = 300 + 40 * (i % 20); /* a steady tone is not a voice */
		lost += i % 5 == 3;
		if (i % 5 != 3)
			audio_rig_carry(r, A, &p);
		audio_rig_wait(r, 20 * RIG_MS);
	}
	audio_rig_wait(r, 100 * RIG_MS);
	assert_int_equal(s->lost, lost);
	assert_int_equal(s->concealed, lost);
	if (s->recovered < lost / 2)
		fail_msg("%llu of %u recovered", (unsigned long long)s->recovered, lost);
	assert_int_equal(r->end[B].gots, 200);
	audio_rig_free(r);
}

/* How many of the next 50 packets to A have redundancy, which libopus adds to active voice only. A
 * frame of SILK with 20 ms begins with a bit of activity and one of redundancy. */
static uint32_t redundant(struct audio_rig *r)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < 50; i++) {
		struct audio_packet p = audio_rig_say(r, B);
		const uint8_t *got;

		r->end[B].hertz = 300 + 40 * (i % 20);
		audio_rig_carry(r, B, &p);
		audio_rig_wait(r, 20 * RIG_MS);
		got = audio_rig_got(r, A, 0)->bytes + RTP_FIXED_LEN;
		n += !(got[0] & 0x80) && got[1] & 0x40;
	}
	return n;
}

/* A receiver report about the packets of the session. */
static void reports(struct audio_rig *r, uint32_t ssrc, uint32_t percent)
{
	struct audio_packet p = {.rtcp = true, .len = 32, .bytes = {0x81, 201, 0, 7}};

	put_be32(p.bytes + 4, r->end[A].ssrc);
	put_be32(p.bytes + 8, ssrc);
	p.bytes[12] = (uint8_t)(percent * 256 / 100);
	audio_rig_carry(r, A, &p);
}

static void redundancy_follows_the_terminals_reports(void **state)
{
	static const uint32_t RATES[] = {8000, 16000, 48000};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(RATES); i++) {
		struct audio_rig *r = opus_rig("minptime=10; useinbandfec=1", RATES[i]);

		if (!r)
			skip();
		assert_true(redundant(r) > 10); /* no report yet */
		reports(r, 0x1000, 0);
		assert_true(redundant(r) < 5);
		reports(r, 0x7777, 20); /* of other packets */
		assert_true(redundant(r) < 5);
		reports(r, 0x1000, 12);
		assert_true(redundant(r) > 10);
		for (int k = 0; k < 2; k++)
			reports(r, 0x1000, 0);
		assert_true(redundant(r) > 10); /* less loss counts slowly */
		reports(r, 0x1000, 0);
		assert_true(redundant(r) < 5);
		audio_rig_free(r);
	}
}

static void redundancy_needs_the_terminals_wish(void **state)
{
	struct audio_rig *r = opus_rig("useinbandfec=0", 16000);

	(void)state;
	if (!r)
		skip();
	reports(r, 0x1000, 20);
	assert_int_equal(redundant(r), 0);
	audio_rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_next_packet_replaces_a_lost_one),
		cmocka_unit_test(redundancy_follows_the_terminals_reports),
		cmocka_unit_test(redundancy_needs_the_terminals_wish),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
