/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The plug-ins on Debian's libraries: quality on a tone and on speech with thresholds, decoders of
 * libavcodec, fmtp, FEC, modes. A plug-in that was not built is skipped. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include <string.h>

#include "base/bytes.h"
#include "codec/loader.h"
#include "codec/stream.h"
#include "codec_paths.h"
#include "codec_peers.h"
#include "codec_speech.h"

enum { SECONDS = 2, MOST = SECONDS * 48000 * 2, PAYLOAD = 2000, PACKETS = 200 };

struct call {
	uint8_t payload[PACKETS][PAYLOAD];
	int len[PACKETS];
	int packets;
	int16_t said[MOST], heard[MOST], theirs[MOST];
	size_t samples; /* of said */
};

struct rig {
	struct codec_registry *r;
	struct call call;
};

static struct codec_stream *open_stream(
	struct rig *g, const char *name, uint32_t clock, const char *fmtp)
{
	const struct codec_entry *e = codec_registry_find(g->r, name, clock, 1);
	struct codec_stream_cfg cfg = {
		.can = CODEC_DECODES | CODEC_ENCODES, .fmtp = fmtp, .fmtp_len = strlen(fmtp)};
	struct codec_stream *s = NULL;

	if (!e)
		return NULL;
	assert_int_equal(codec_stream_open(&s, e, &cfg), 0);
	return s;
}

static void say_tone(struct call *c, uint32_t rate)
{
	c->samples = (size_t)SECONDS * rate;
	for (size_t i = 0; i < c->samples; i++)
		c->said[i] = (int16_t)lrint(10000 * sin((double)i * 2 * M_PI * 440 / rate));
}

static void say_speech(struct call *c, uint32_t rate)
{
	c->samples = (size_t)SECONDS * rate;
	codec_speech(c->said, c->samples, rate);
}

/* Encodes all input, and decodes it. Returns the number of decoded samples. */
static size_t talk(struct call *c, struct codec_stream *s, size_t packet)
{
	size_t heard = 0;

	c->packets = 0;
	for (size_t at = 0; at + packet <= c->samples && c->packets < PACKETS; at += packet) {
		int i = c->packets++;
		int n = codec_stream_encode(s, c->said + at, packet, c->payload[i], PAYLOAD);

		assert_true(n > 0);
		c->len[i] = n;
		n = codec_stream_decode(
			s, c->payload[i], (size_t)n, c->heard + heard, MOST - heard);
		assert_int_equal(n, packet);
		heard += (size_t)n;
	}
	return heard;
}

/* SNR without the first 200 ms, at the best delay up to 30 ms. */
static double quality(const int16_t *said, const int16_t *heard, size_t n, uint32_t rate)
{
	size_t skip = rate / 5;

	return codec_snr(said + skip, heard + skip, n - skip, rate * 3 / 100);
}

static void quality_is_above_thresholds(void **state)
{
	/* in dB, below what was measured */
	static const struct {
		const char *name;
		uint32_t clock;
		const char *fmtp;
		double tone, speech;
	} T[] = {
		{"PCMU", 8000, "", 35, 33},
		{"PCMA", 8000, "", 35, 33},
		{"L16", 8000, "", 90, 90},
		{"G722", 8000, "", 35, 20},
		{"opus", 48000, "", 10, 8},
		{"GSM", 8000, "", 15, 8},
		{"G729", 8000, "", 10, 3},
		{"AMR", 8000, "", 15, 5},
		{"AMR", 8000, "octet-align=1;mode-set=0", 3, 1},
		{"AMR-WB", 16000, "", 15, 5},
		{"speex", 8000, "", 10, 5},
		{"speex", 16000, "", 10, 5},
		{"G726-40", 8000, "", 30, 20},
		{"G726-32", 8000, "", 25, 18},
		{"G726-24", 8000, "", 20, 12},
		{"G726-16", 8000, "", 10, 5},
		{"AAL2-G726-32", 8000, "", 25, 18},
		{"G723", 8000, "", 5, 3},
	};
	struct rig *g = *state;

	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		const struct codec_entry *e = codec_registry_find(g->r, T[i].name, T[i].clock, 1);
		double snr[2] = {0};

		if (!e) {
			print_message("%s: not built\n", T[i].name);
			continue;
		}
		for (int speech = 0; speech < 2; speech++) {
			struct codec_stream *s = open_stream(g, T[i].name, T[i].clock, T[i].fmtp);
			size_t n = 0;

			(speech ? say_speech : say_tone)(&g->call, e->about.rate);
			n = talk(&g->call, s, (size_t)e->about.ptime * e->about.rate / 1000);
			snr[speech] = quality(g->call.said, g->call.heard, n, e->about.rate);
			codec_stream_close(s);
		}
		print_message("%s/%u %s: tone %.1f dB, speech %.1f dB\n", T[i].name, T[i].clock,
			T[i].fmtp, snr[0], snr[1]);
		assert_true(snr[0] >= T[i].tone);
		assert_true(snr[1] >= T[i].speech);
	}
}

/* --- libavcodec ------------------------------------------------------------------------------- */

struct peer_row {
	const char *name;
	uint32_t clock;
	const char *fmtp, *decoder;
	int bits;
	size_t skip;     /* bytes of the payload that a file does not have */
	double at_least; /* dB; 0: bit-exact */
	int16_t quieter; /* what is said is divided by this */
};

static void compare(
	struct rig *g, const struct peer_row *t, struct codec_stream *s, struct peer_av *p)
{
	uint32_t rate = codec_registry_find(g->r, t->name, t->clock, 1)->about.rate;
	struct call *c = &g->call;
	size_t n = 0, heard = 0;
	double snr = 0;

	say_speech(c, rate);
	for (size_t i = 0; i < c->samples; i++)
		c->said[i] = (int16_t)(c->said[i] / t->quieter);
	heard = talk(c, s, rate / 50);
	for (int i = 0; i < c->packets; i++) {
		int got = peer_av_decode(p, c->payload[i] + t->skip, (size_t)c->len[i] - t->skip,
			c->theirs + n, MOST - n);

		assert_true(got >= 0);
		n += (size_t)got;
	}
	if (t->at_least == 0) {
		assert_int_equal(n, heard);
		assert_memory_equal(c->heard, c->theirs, n * sizeof(int16_t));
		print_message("%s: bit-exact, %zu samples\n", t->name, n);
		return;
	}
	n = n < heard ? n : heard;
	snr = fmax(quality(c->heard, c->theirs, n, rate), quality(c->theirs, c->heard, n, rate));
	print_message("%s: %.1f dB of libavcodec's\n", t->name, snr);
	assert_true(snr >= t->at_least);
}

/* The decoders of spandsp and libavcodec for G.726 differ: slightly at 16 and 24 kbit/s, much in
 * loud parts at 32, and always at 40, which is not compared. */
static void decoders_agree_with_libavcodec(void **state)
{
	static const struct peer_row T[] = {
		{"GSM", 8000, "", "gsm", 0, 0, 0, 1},
		{"G726-16", 8000, "", "g726le", 2, 0, 30, 1},
		{"G726-24", 8000, "", "g726le", 3, 0, 30, 1},
		{"G726-32", 8000, "", "g726le", 4, 0, 30, 4},
		{"AAL2-G726-16", 8000, "", "g726", 2, 0, 30, 1},
		{"AAL2-G726-24", 8000, "", "g726", 3, 0, 30, 1},
		{"AAL2-G726-32", 8000, "", "g726", 4, 0, 30, 4},
		{"G729", 8000, "", "g729", 0, 0, 20, 1},
		{"AMR", 8000, "octet-align=1", "amrnb", 0, 1, 20, 1},
		{"AMR-WB", 16000, "octet-align=1", "amrwb", 0, 1, 20, 1},
		{"opus", 48000, "", "opus", 0, 0, 20, 1},
	};
	struct rig *g = *state;
	int compared = 0;

	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		const struct codec_entry *e = codec_registry_find(g->r, T[i].name, T[i].clock, 1);
		struct peer_av_cfg cfg = {.name = T[i].decoder, .channels = 1, .bits = T[i].bits};
		struct codec_stream *s = NULL;
		struct peer_av *p = NULL;

		cfg.rate = e ? (int)e->about.rate : 0;
		if (!e || peer_av_open(&p, &cfg)) {
			print_message("%s: not compared\n", T[i].name);
			continue;
		}
		s = open_stream(g, T[i].name, T[i].clock, T[i].fmtp);
		compare(g, &T[i], s, p);
		codec_stream_close(s);
		peer_av_close(p);
		compared++;
	}
	if (!compared)
		skip();
}

/* --- AMR -------------------------------------------------------------------------------------- */

/* Both ways of packing carry the same frames. */
static void amr_packings_are_equal(void **state)
{
	static const struct {
		const char *name;
		uint32_t clock;
	} T[] = {{"AMR", 8000}, {"AMR-WB", 16000}};
	struct rig *g = *state;

	for (size_t t = 0; t < ARRAY_LEN(T); t++) {
		for (char mode = '0'; mode < (t ? '9' : '8'); mode++) {
			char efficient[32], aligned[48];
			struct codec_stream *a = NULL, *b = NULL;
			size_t n = 0;

			snprintf(efficient, sizeof(efficient), "mode-set=%c", mode);
			snprintf(aligned, sizeof(aligned), "octet-align=1; mode-set=%c", mode);
			a = open_stream(g, T[t].name, T[t].clock, efficient);
			b = open_stream(g, T[t].name, T[t].clock, aligned);
			if (!a)
				skip();
			say_speech(&g->call, T[t].clock);
			g->call.samples = T[t].clock / 2;
			n = talk(&g->call, a, T[t].clock / 25); /* two frames in each */
			memcpy(g->call.theirs, g->call.heard, n * sizeof(int16_t));
			assert_int_equal(talk(&g->call, b, T[t].clock / 25), n);
			assert_memory_equal(g->call.theirs, g->call.heard, n * sizeof(int16_t));
			codec_stream_close(a);
			codec_stream_close(b);
		}
	}
}

/* A payload written by hand from RFC 4867 4.3.5.1: AMR 5.9, bandwidth-efficient, no request. */
static void amr_payload_is_the_standards(void **state)
{
	static const uint8_t lengths[2][9] = {
		{14, 15, 16, 18, 20, 22, 27, 32}, {18, 24, 33, 37, 41, 47, 51, 59, 61}};
	struct rig *g = *state;

	for (int wide = 0; wide < 2; wide++)
		for (char mode = 0; mode < 8 + wide; mode++) {
			char fmtp[32];
			struct codec_stream *s = NULL;
			uint8_t out[100];

			snprintf(fmtp, sizeof(fmtp), "mode-set=%d", mode);
			s = open_stream(g, wide ? "AMR-WB" : "AMR", wide ? 16000 : 8000, fmtp);
			if (!s)
				skip();
			say_tone(&g->call, wide ? 16000 : 8000);
			assert_int_equal(codec_stream_encode(s, g->call.said, wide ? 320 : 160, out,
						 sizeof(out)),
				lengths[wide][(int)mode]);
			assert_int_equal(out[0] >> 4, 15);                       /* no request */
			assert_int_equal(out[0] >> 3 & 1, 0);                    /* one frame */
			assert_int_equal((out[0] & 7) << 1 | out[1] >> 7, mode); /* its type */
			assert_int_equal(out[1] >> 6 & 1, 1);                    /* good */
			codec_stream_close(s);
		}
}

static void amr_follows_requests(void **state)
{
	struct xcipher_codec_wish wish = {.has_mode = 1, .mode = 0, .has_request = 1, .request = 2};
	struct rig *g = *state;
	struct codec_stream *s = open_stream(g, "AMR", 8000, "octet-align=1");
	uint8_t out[100];
	int16_t pcm[320];

	if (!s)
		skip();
	say_tone(&g->call, 8000);
	assert_int_equal(codec_stream_encode(s, g->call.said, 160, out, sizeof(out)), 33);
	assert_int_equal(codec_stream_decode(s, out, 33, pcm, 320), 160);
	assert_int_equal(codec_stream_requested(s), -ENOENT);
	assert_int_equal(codec_stream_adapt(s, &wish), 0);
	assert_int_equal(codec_stream_encode(s, g->call.said, 160, out, sizeof(out)), 14);
	assert_int_equal(out[0], 0x20);
	assert_int_equal(codec_stream_decode(s, out, 14, pcm, 320), 160);
	assert_int_equal(codec_stream_requested(s), 2);
	/* a frame cut short, a type that does not exist, frames without end */
	assert_int_equal(codec_stream_decode(s, out, 13, pcm, 320), -EBADMSG);
	out[1] = 12 << 3;
	assert_int_equal(codec_stream_decode(s, out, 14, pcm, 320), -EBADMSG);
	memset(out, 0xff, sizeof(out));
	assert_int_equal(codec_stream_decode(s, out, sizeof(out), pcm, 320), -EBADMSG);
	codec_stream_close(s);
}

/* The terminal limits when modes change, and by how much. */
static void amr_changes_modes_as_agreed(void **state)
{
	static const struct {
		const char *fmtp;
		uint8_t mode[6]; /* of the frames after the first, which has mode 7 */
	} T[] = {
		{"octet-align=1", {2, 2, 2, 2, 2, 2}},
		{"octet-align=1;mode-change-period=2", {7, 2, 2, 2, 2, 2}},
		{"octet-align=1;mode-change-neighbor=1", {6, 5, 4, 3, 2, 2}},
		{"octet-align=1;mode-set=0,2,5,7;mode-change-neighbor=1;mode-change-period=2",
			{7, 5, 5, 2, 2, 2}},
	};
	struct xcipher_codec_wish wish = {.has_mode = 1, .mode = 2};
	struct rig *g = *state;

	say_tone(&g->call, 8000);
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct codec_stream *s = open_stream(g, "AMR", 8000, T[i].fmtp);
		uint8_t out[100];

		if (!s)
			skip();
		assert_true(codec_stream_encode(s, g->call.said, 160, out, sizeof(out)) > 0);
		assert_int_equal(out[1] >> 3, 7);
		assert_int_equal(codec_stream_adapt(s, &wish), 0);
		for (size_t n = 0; n < ARRAY_LEN(T[i].mode); n++) {
			assert_true(
				codec_stream_encode(s, g->call.said, 160, out, sizeof(out)) > 0);
			assert_int_equal(out[1] >> 3, T[i].mode[n]);
		}
		codec_stream_close(s);
	}
}

/* --- fmtp, FEC -------------------------------------------------------------------------------- */

static void fmtp_is_understood(void **state)
{
	static const struct {
		const char *name;
		uint32_t clock;
		const char *fmtp, *answer; /* NULL: refused */
	} T[] = {
		{"opus", 48000, "useinbandfec=1; usedtx=1;minptime=10", "useinbandfec=1;usedtx=1"},
		{"opus", 48000, "maxaveragebitrate=99999999999;cbr=1", "useinbandfec=0;cbr=1"},
		{"opus", 48000, "MaxPlaybackRate=8000", "useinbandfec=0;maxplaybackrate=8000"},
		{"G729", 8000, "annexb=no", "annexb=no"},
		{"G729", 8000, "annexb=yes;x", ""},
		{"AMR", 8000, "mode-set=0,2,7; octet-align=1; mode-change-period=2",
			"octet-align=1;mode-set=0,2,7"},
		{"AMR", 8000, "mode-set=8", NULL},
		{"AMR", 8000, "mode-set=1,,2", NULL},
		{"AMR", 8000, "crc=1", NULL},
		{"AMR", 8000, "interleaving=30", NULL},
		{"AMR", 8000, "channels=2", NULL},
		{"AMR-WB", 16000, "mode-set=8", "mode-set=8"},
		{"AMR-WB", 16000, "octet-align=2", NULL},
		{"speex", 8000, "mode=\"3,any\";vbr=on", "mode=\"3,any\""},
		{"speex", 16000, "mode=\"", ""},
	};
	struct rig *g = *state;

	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		const struct codec_entry *e = codec_registry_find(g->r, T[i].name, T[i].clock, 1);
		struct codec_stream_cfg cfg = {.can = CODEC_DECODES | CODEC_ENCODES,
			.fmtp = T[i].fmtp,
			.fmtp_len = strlen(T[i].fmtp)};
		struct codec_stream *s = NULL;
		char answer[200] = "";
		int rc = e ? codec_stream_open(&s, e, &cfg) : 0;

		if (!e)
			continue;
		assert_int_equal(rc, T[i].answer ? 0 : -EINVAL);
		if (rc)
			continue;
		assert_true(codec_stream_fmtp(s, answer, sizeof(answer) - 1) >= 0);
		assert_string_equal(answer, T[i].answer);
		codec_stream_close(s);
	}
}

/* With FEC, the samples of a lost packet are nearer to the input than without. */
static void opus_recovers_lost_packets(void **state)
{
	struct xcipher_codec_wish wish = {.fec = 1, .loss_percent = 30, .bitrate = 24000};
	struct rig *g = *state;
	struct call *c = &g->call;
	double snr[2];

	for (int fec = 0; fec < 2; fec++) {
		struct codec_stream *s = open_stream(g, "opus", 48000, "");
		size_t at = 0, recovered = 0;

		if (!s)
			skip();
		assert_int_equal(codec_stream_adapt(s, &wish), 0);
		say_speech(c, 48000);
		for (int i = 0; i < 90; i++)
			c->len[i] = codec_stream_encode(
				s, c->said + (size_t)i * 960, 960, c->payload[i], PAYLOAD);
		for (int i = 0; i < 89; i++, at += 960) {
			if (i % 5 != 3) {
				codec_stream_decode(
					s, c->payload[i], (size_t)c->len[i], c->heard + at, 960);
				continue;
			}
			if (fec &&
				codec_stream_recover(s, c->payload[i + 1], (size_t)c->len[i + 1],
					c->heard + at, 960) == 960)
				recovered++;
			else
				codec_stream_conceal(
					s, XCIPHER_CODEC_LOST, 960, c->heard + at, 960);
		}
		assert_true(!fec || recovered > 10);
		snr[fec] = quality(c->said, c->heard, at, 48000);
		codec_stream_close(s);
	}
	print_message("opus with 20 %% lost: %.1f dB concealed, %.1f dB by FEC\n", snr[0], snr[1]);
	assert_true(snr[1] > snr[0] + 1);
}

static void resampler_keeps_a_tone(void **state)
{
	struct rig *g = *state;
	const struct xcipher_resampler *x = g->r->resampler;
	struct call *c = &g->call;
	size_t n = 0;
	void *s = NULL;

	if (!x)
		skip();
	s = calloc(1, x->state_size);
	assert_int_equal(x->init(s, 1, 8000, 48000), 0);
	say_tone(c, 8000);
	for (size_t at = 0; at < 8000; at += 160)
		n += (size_t)x->run(s, c->said + at, 160, c->heard + n, MOST - n);
	x->fini(s);
	free(s);
	say_tone(c, 48000);
	assert_true(n > 47000);
	assert_true(quality(c->said, c->heard, n, 48000) > 40);
}

static int group_setup(void **state)
{
	static char folder[CODEC_PATH], program[CODEC_PATH];
	struct rig *g = calloc(1, sizeof(*g));
	struct codec_loader_cfg cfg = {.folder = codec_path(folder, "codecs"),
		.ours = true,
		.isolation = CODEC_ISOLATE_FOREIGN};

	if (!g || codec_registry_create(&g->r))
		return -1;
	codec_home_defaults(&cfg.home);
	cfg.home.program = codec_path(program, "xcipher-codec-worker");
	codec_loader_run(g->r, &cfg);
	for (uint32_t i = 0; i < g->r->plugins; i++)
		if (g->r->loaded[i].refused[0]) {
			print_error("%s: %s\n", g->r->loaded[i].file, g->r->loaded[i].refused);
			return -1;
		}
	*state = g;
	return 0;
}

static int group_teardown(void **state)
{
	struct rig *g = *state;

	if (g)
		codec_registry_destroy(g->r);
	free(g);
	return 0;
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(quality_is_above_thresholds),
		cmocka_unit_test(decoders_agree_with_libavcodec),
		cmocka_unit_test(amr_packings_are_equal),
		cmocka_unit_test(amr_payload_is_the_standards),
		cmocka_unit_test(amr_follows_requests),
		cmocka_unit_test(amr_changes_modes_as_agreed),
		cmocka_unit_test(fmtp_is_understood),
		cmocka_unit_test(opus_recovers_lost_packets),
		cmocka_unit_test(resampler_keeps_a_tone),
	};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
