/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files of a folder: loaded plug-ins, and why others are refused; gaps and comfort noise. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "codec/loader.h"
#include "codec/noise.h"
#include "codec/stream.h"
#include "codec_paths.h"
#include "codec_peers.h"

struct rig {
	char folder[CODEC_PATH], program[CODEC_PATH], file[CODEC_PATH];
	struct codec_registry *r;
	struct codec_loader_cfg cfg;
};

static void rig_open(struct rig *g)
{
	*g = (struct rig){0};
	codec_folder(g->folder);
	assert_int_equal(codec_registry_create(&g->r), 0);
	codec_home_defaults(&g->cfg.home);
	g->cfg.home.program = codec_path(g->program, "xcipher-codec-worker");
	g->cfg.folder = g->folder;
}

static void rig_close(struct rig *g)
{
	codec_registry_destroy(g->r);
	codec_folder_remove(g->folder);
}

static void put(struct rig *g, const char *from, const char *name)
{
	char path[CODEC_PATH];

	codec_copy(codec_path(path, from), g->folder, name);
	snprintf(g->file, sizeof(g->file), "%.300s/%.64s", g->folder, name);
}

static void loads_in_order_of_names(void **state)
{
	struct rig g;

	(void)state;
	rig_open(&g);
	put(&g, "codecs/template.so", "b.so");
	put(&g, "codecs/template.so", "c.so");
	put(&g, "t/codecs/late.so", "a.so");
	put(&g, "t/codecs/late.so", ".hidden.so");
	put(&g, "t/codecs/late.so", "readme.txt");
	g.cfg.isolation = CODEC_ISOLATE_NONE;
	assert_int_equal(codec_loader_run(g.r, &g.cfg), 2);
	assert_int_equal(g.r->plugins, 3);
	assert_string_equal(g.r->loaded[0].file, "a.so");
	assert_string_equal(g.r->loaded[1].refused, "");
	assert_string_equal(g.r->loaded[1].license, "GPL-2.0-or-later");
	assert_string_equal(g.r->loaded[2].refused, "all its codecs are there already");
	assert_non_null(codec_registry_find(g.r, "X-HALF", 8000, 1)->codec);
	assert_null(codec_registry_find(g.r, "x-half", 16000, 1));
	rig_close(&g);
}

static void built_in_codecs_come_first(void **state)
{
	struct codec_registry *r = NULL;
	struct codec_entry e = {
		.about = {.name = "pcmu", .clock = 8000, .rate = 8000, .channels = 1}};

	(void)state;
	assert_int_equal(codec_registry_create(&r), 0);
	assert_false(codec_registry_add(r, &e));
	assert_int_equal(codec_registry_find(r, "PCMA", 8000, 1)->about.static_pt, 8);
	assert_int_equal(codec_registry_find(r, "g722", 8000, 1)->about.rate, 16000);
	assert_int_equal(codec_registry_find(r, "L16", 44100, 2)->about.static_pt, 10);
	codec_registry_destroy(r);
}

/* A plug-in that was compiled with an older header has shorter structures, one of a newer header
 * longer ones. What is missing counts as zero. */
static void structures_of_other_lengths_are_read(void **state)
{
	const struct codec_entry *e;
	uint8_t out[4];
	struct rig g;

	(void)state;
	rig_open(&g);
	put(&g, "t/codecs/old.so", "old.so");
	g.cfg.isolation = CODEC_ISOLATE_NONE;
	assert_int_equal(codec_loader_run(g.r, &g.cfg), 1);
	assert_string_equal(g.r->loaded[0].refused, "");
	assert_null(g.r->resampler);
	e = codec_registry_find(g.r, "x-bad", 8000, 1);
	assert_int_equal(e->codec->size, sizeof(struct xcipher_codec));
	assert_int_equal(e->codec->direct_n, 0);
	assert_null(e->codec->direct);
	assert_true(!e->codec->decode_batch && !e->codec->encode_batch);
	rig_close(&g);
	rig_open(&g);
	put(&g, "t/codecs/long.so", "long.so");
	g.cfg.isolation = CODEC_ISOLATE_NONE;
	assert_int_equal(codec_loader_run(g.r, &g.cfg), 1);
	e = codec_registry_find(g.r, "x-bad", 8000, 1);
	assert_int_equal(e->codec->direct_n, 2);
	assert_int_equal(e->codec->direct[1].to_clock, 8000);
	assert_string_equal(e->codec->direct[1].to, "L16");
	assert_int_equal(e->codec->direct[1].convert(NULL, (const uint8_t *)"ab", 2, out, 4), 4);
	rig_close(&g);
}

static void isolates_as_configured(void **state)
{
	static const struct {
		enum codec_isolation isolation;
		bool ours, isolated;
	} T[] = {{CODEC_ISOLATE_FOREIGN, true, false}, {CODEC_ISOLATE_FOREIGN, false, true},
		{CODEC_ISOLATE_ALL, true, true}, {CODEC_ISOLATE_NONE, false, false}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		const struct codec_entry *e = NULL;
		struct rig g;

		rig_open(&g);
		put(&g, "codecs/template.so", "x.so");
		g.cfg.isolation = T[i].isolation;
		g.cfg.ours = T[i].ours;
		assert_int_equal(codec_loader_run(g.r, &g.cfg), 1);
		e = codec_registry_find(g.r, "x-half", 8000, 1);
		assert_int_equal(e->home != NULL, T[i].isolated);
		assert_int_equal(e->codec == NULL, T[i].isolated);
		rig_close(&g);
	}
}

static void files_of_others_are_refused(void **state)
{
	struct rig g;
	char link[CODEC_PATH + 8];

	(void)state;
	rig_open(&g);
	g.cfg.isolation = CODEC_ISOLATE_NONE;
	put(&g, "codecs/template.so", "a.so");
	assert_int_equal(chmod(g.file, 0775), 0);
	snprintf(link, sizeof(link), "%s/b.so", g.folder);
	assert_int_equal(symlink(g.file, link), 0);
	put(&g, "codecs/template.so", "c.so");
	if (geteuid() == 0)
		assert_int_equal(chown(g.file, 12345, 12345), 0);
	else
		assert_int_equal(chmod(g.file, 0757), 0);
	put(&g, "t/codecs/abi.so", "d.so");
	assert_int_equal(codec_loader_run(g.r, &g.cfg), 0);
	assert_non_null(strstr(g.r->loaded[0].refused, "must belong to root or to us"));
	assert_string_equal(g.r->loaded[1].refused, "it is not a regular file");
	assert_non_null(strstr(g.r->loaded[2].refused, "must belong to root or to us"));
	assert_non_null(strstr(g.r->loaded[3].refused, "version 99"));
	assert_int_equal(chmod(g.folder, 0777), 0);
	assert_int_equal(codec_loader_run(g.r, &g.cfg), -EPERM);
	g.cfg.folder = "/nonexistent/codecs";
	assert_int_equal(codec_loader_run(g.r, &g.cfg), -ENOENT);
	rig_close(&g);
}

static void without_its_program_nothing_is_loaded(void **state)
{
	struct rig g;

	(void)state;
	rig_open(&g);
	put(&g, "codecs/template.so", "a.so");
	g.cfg.home.program = "/nonexistent/worker";
	assert_int_equal(codec_loader_run(g.r, &g.cfg), 0);
	assert_string_equal(g.r->loaded[0].refused,
		"/nonexistent/worker cannot be started: No such file or directory (--codec-worker)");
	rig_close(&g);
}

/* A program in place of the worker, which ends only after it was started for both plug-ins. */
static void all_are_tested_at_once(void **state)
{
	static const char program[] =
		"#!/bin/sh\n: >\"$1.begun\"\nf=${1%/*}\n"
		"until [ -e \"$f/a.so.begun\" ] && [ -e \"$f/b.so.begun\" ]; do sleep 0.01; done\n"
		"exit 7\n";
	char path[CODEC_PATH + 16];
	struct rig g;
	FILE *f;

	(void)state;
	rig_open(&g);
	put(&g, "codecs/template.so", "a.so");
	put(&g, "codecs/template.so", "b.so");
	snprintf(path, sizeof(path), "%s/program", g.folder);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(program, 1, sizeof(program) - 1, f), sizeof(program) - 1);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(path, 0700), 0);
	g.cfg.home.program = path;
	assert_int_equal(codec_loader_run(g.r, &g.cfg), 0);
	for (int i = 0; i < 2; i++)
		assert_string_equal(
			g.r->loaded[i].refused, "its program ends when it is loaded (status 7)");
	rig_close(&g);
}

/* --- Results beyond the buffer --- */

static int decode_too_much(void *dec, const uint8_t *in, size_t len, int16_t *pcm, size_t cap)
{
	(void)dec, (void)in, (void)len, (void)pcm;
	return (int)cap + 1;
}

static int conceal_too_much(
	void *dec, enum xcipher_codec_gap why, size_t samples, int16_t *pcm, size_t cap)
{
	(void)dec, (void)why, (void)samples, (void)pcm;
	return (int)cap + 1;
}

static int encode_too_much(void *enc, const int16_t *pcm, size_t samples, uint8_t *out, size_t cap)
{
	(void)enc, (void)pcm, (void)samples, (void)out;
	return (int)cap + 1;
}

static void batch_too_much(struct xcipher_codec_job *job, size_t n)
{
	for (size_t i = 0; i < n; i++)
		job[i].result = (int)job[i].out_cap + 1;
}

/* Otherwise the memory behind the buffer would be sent to a terminal. */
static void results_beyond_the_buffer_are_errors(void **state)
{
	static const struct xcipher_codec liar = {.size = sizeof(liar),
		.flags = XCIPHER_CODEC_PLAIN_STATE,
		.name = "x-liar",
		.clock = 8000,
		.rate = 8000,
		.channels = 1,
		.static_pt = -1,
		.ptime = 20,
		.frame_samples = 1,
		.align = 1,
		.decode = decode_too_much,
		.conceal = conceal_too_much,
		.recover = decode_too_much,
		.encode = encode_too_much,
		.decode_batch = batch_too_much,
		.encode_batch = batch_too_much};
	struct codec_stream_cfg cfg = {.can = CODEC_DECODES | CODEC_ENCODES};
	struct codec_entry e = {.codec = &liar};
	struct codec_stream *s = NULL;
	int16_t pcm[160] = {0};
	uint8_t out[160];
	struct xcipher_codec_job job = {
		.in = (const uint8_t *)pcm, .in_len = 160, .out = out, .out_cap = sizeof(out)};

	(void)state;
	codec_about_fill(&e.about, &liar);
	assert_int_equal(codec_stream_open(&s, &e, &cfg), 0);
	assert_int_equal(codec_stream_encode(s, pcm, 160, out, sizeof(out)), -EIO);
	assert_int_equal(codec_stream_decode(s, out, 160, pcm, 160), -EIO);
	assert_int_equal(codec_stream_recover(s, out, 160, pcm, 160), -EIO);
	assert_int_equal(codec_stream_conceal(s, XCIPHER_CODEC_LOST, 160, pcm, 160), 160);
	codec_streams_encode(&s, &job, 1, NULL);
	assert_int_equal(job.result, -EIO);
	job.out = (uint8_t *)pcm;
	job.out_cap = 160;
	job.in = out;
	codec_streams_foresee(&s, &job, 1, NULL);
	assert_int_equal(job.result, -EIO);
	codec_stream_close(s);
}

/* --- Parts added by the host ------------------------------------------------------------------ */

static void lost_packet_of_g711_is_concealed(void **state)
{
	struct codec_stream_cfg cfg = {.can = CODEC_DECODES | CODEC_ENCODES};
	struct codec_registry *r = NULL;
	struct codec_stream *s = NULL;
	int16_t said[480], heard[480];
	uint8_t code[160];

	(void)state;
	assert_int_equal(codec_registry_create(&r), 0);
	assert_int_equal(codec_stream_open(&s, codec_registry_find(r, "PCMU", 8000, 1), &cfg), 0);
	for (int i = 0; i < 480; i++)
		said[i] = (int16_t)lrint(9000 * sin(i * 2 * M_PI * 200 / 8000));
	for (int at = 0; at < 480; at += 160) {
		codec_stream_encode(s, said + at, 160, code, sizeof(code));
		codec_stream_decode(s, code, 160, heard + at, 160);
	}
	for (int lost = 0; lost < 5; lost++) {
		assert_int_equal(codec_stream_conceal(s, XCIPHER_CODEC_LOST, 160, heard, 160), 160);
		if (lost == 0) /* 480 samples are whole periods: the tone continues */
			assert_true(codec_snr(said, heard, 80, 0) > 15);
	}
	for (int i = 0; i < 160; i++)
		assert_int_equal(heard[i], 0);
	assert_int_equal(codec_stream_conceal(s, XCIPHER_CODEC_LOST, 160, heard, 159), -ENOSPC);
	codec_stream_close(s);
	codec_registry_destroy(r);
}

static double level_of(const int16_t *pcm, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += (double)pcm[i] * pcm[i];
	return -10 * log10(sum / (double)n / 32768 / 32768);
}

/* How like neighbours are: the colour. */
static double slope_of(const int16_t *pcm, size_t n)
{
	double one = 0, both = 0;

	for (size_t i = 1; i < n; i++) {
		one += (double)pcm[i] * pcm[i];
		both += (double)pcm[i] * pcm[i - 1];
	}
	return both / one;
}

static void comfort_noise_has_level_and_colour(void **state)
{
	enum { SAMPLES = 16000 };
	static int16_t pcm[SAMPLES], again[SAMPLES];
	uint8_t cn[NOISE_MAX];
	struct noise n = {0};

	(void)state;
	for (uint8_t level = 20; level < 70; level += 10) {
		assert_int_equal(noise_take(&n, &level, 1), 0);
		noise_make(&n, pcm, SAMPLES);
		assert_true(fabs(level_of(pcm, SAMPLES) - level) < 1);
	}
	for (int order = 0; order <= NOISE_ORDER; order += 5) {
		/* low-pass noise */
		for (int i = 0, v = 0; i < SAMPLES; i++) {
			v = v * 7 / 8 + (int)(codec_hash((uint32_t)i) & 1023) - 512;
			pcm[i] = (int16_t)v;
		}
		assert_int_equal(
			noise_describe(pcm, SAMPLES, (uint32_t)order, cn, sizeof(cn)), order + 1);
		assert_int_equal(noise_take(&n, cn, (size_t)order + 1), 0);
		noise_make(&n, again, SAMPLES);
		assert_true(fabs(level_of(pcm, SAMPLES) - level_of(again, SAMPLES)) < 1.5);
		if (order)
			assert_true(fabs(slope_of(pcm, SAMPLES) - slope_of(again, SAMPLES)) < 0.05);
	}
	assert_int_equal(noise_take(&n, cn, 0), -EBADMSG);
	assert_int_equal(noise_describe(pcm, 160, 10, cn, 10), -ENOSPC);
}

/* Any payload gives noise that ends. */
static void hostile_noise_is_stable(void **state)
{
	static int16_t pcm[8000];

	(void)state;
	for (uint32_t i = 0; i < 500; i++) {
		uint8_t cn[40];
		struct noise n = {0};

		for (size_t k = 0; k < sizeof(cn); k++)
			cn[k] = i < 2 ? (uint8_t)(255 * i)
				      : (uint8_t)codec_hash(i * 64 + (uint32_t)k);
		cn[0] = 40;
		assert_int_equal(noise_take(&n, cn, sizeof(cn)), 0);
		noise_make(&n, pcm, 8000);
		assert_true(level_of(pcm + 4000, 4000) > 20);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(loads_in_order_of_names),
		cmocka_unit_test(built_in_codecs_come_first),
		cmocka_unit_test(structures_of_other_lengths_are_read),
		cmocka_unit_test(isolates_as_configured),
		cmocka_unit_test(files_of_others_are_refused),
		cmocka_unit_test(without_its_program_nothing_is_loaded),
		cmocka_unit_test(all_are_tested_at_once),
		cmocka_unit_test(results_beyond_the_buffer_are_errors),
		cmocka_unit_test(lost_packet_of_g711_is_concealed),
		cmocka_unit_test(comfort_noise_has_level_and_colour),
		cmocka_unit_test(hostile_noise_is_stable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
