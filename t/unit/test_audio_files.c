/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files that calls play: accepted and refused files, and shared clips. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "audio/clip.h"
#include "audio/files.h"
#include "base/bytes.h"
#include "codec_paths.h"
#include "mp3_silence.h"

struct rig {
	char top[64], folder[96], decoder[CODEC_PATH];
	struct audio_files *files;
};

static void path(char out[256], const struct rig *r, const char *name)
{
	snprintf(out, 256, "%s/%s", r->folder, name);
}

static void save(const struct rig *r, const char *name, const char *bytes, size_t len)
{
	char p[256];
	FILE *f;

	path(p, r, name);
	f = fopen(p, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
}

static int start(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));
	char p[256];

	strcpy(r->top, "/tmp/xcipher-files-XXXXXX");
	assert_non_null(mkdtemp(r->top));
	snprintf(r->folder, sizeof(r->folder), "%s/play", r->top);
	assert_int_equal(mkdir(r->folder, 0700), 0);
	path(p, r, "sub");
	assert_int_equal(mkdir(p, 0700), 0);
	save(r, "a.ul", "\xff\xff\xff", 3);
	save(r, "sub/b.raw", "\1\0\2\0", 4);
	save(r, "../out.ul", "\xff", 1);
	codec_path(r->decoder, "xcipher-av");
	assert_int_equal(
		audio_files_create(&r->files, r->folder, r->decoder, AUDIO_FILES_BYTES), 0);
	*state = r;
	return 0;
}

static int end(void **state)
{
	struct rig *r = *state;
	char command[128];

	audio_files_destroy(r->files);
	snprintf(command, sizeof(command), "rm -rf %s", r->top);
	assert_int_equal(system(command), 0);
	free(r);
	return 0;
}

/* Asks until it is read. */
static int get(const struct rig *r, const char *name, struct audio_clip **out)
{
	int err = -EAGAIN;

	*out = NULL;
	for (int i = 0; i < 6000 && err == -EAGAIN; i++) {
		err = audio_files_get(r->files, str_from(name), out);
		if (err == -EAGAIN)
			nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	}
	return err;
}

static void files_below_the_folder_are_read(void **state)
{
	const struct rig *r = *state;
	struct audio_clip *c;
	char p[256];

	assert_int_equal(get(r, "a.ul", &c), 0);
	assert_int_equal(c->samples, 3);
	audio_clip_unref(c);
	path(p, r, "sub/b.raw");
	assert_int_equal(get(r, p, &c), 0);
	assert_int_equal(c->samples, 2);
	assert_int_equal(c->pcm[1], 2);
	audio_clip_unref(c);
}

static void names_and_links_that_lead_out_are_refused(void **state)
{
	static const char *const names[] = {"../out.ul", "sub/../../out.ul", "./a.ul", "", "/",
		"sub", "sub/", "/etc/passwd", "sub//b.raw", "link.ul", "dir/out.ul", "fifo", "..",
		"a.ul/x"};
	const struct rig *r = *state;
	struct audio_clip *c;
	char p[256], longer[300];

	path(p, r, "link.ul");
	assert_int_equal(symlink("a.ul", p), 0); /* not even to a file of the folder */
	path(p, r, "dir");
	assert_int_equal(symlink("..", p), 0);
	path(p, r, "fifo"); /* without a writer: opening it does not wait */
	assert_int_equal(mkfifo(p, 0600), 0);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		print_message("%s\n", names[i]);
		assert_int_equal(get(r, names[i], &c), -EACCES);
	}
	snprintf(p, sizeof(p), "%s-more/out.ul", r->folder); /* another folder, same prefix */
	assert_int_equal(get(r, p, &c), -EACCES);
	memset(longer, 'a', sizeof(longer));
	assert_int_equal(
		audio_files_get(r->files, (struct str){longer, sizeof(longer)}, &c), -EACCES);
	assert_int_equal(get(r, "none.wav", &c), -ENOENT);
}

static void files_that_are_not_audio_are_refused(void **state)
{
	const struct rig *r = *state;
	struct audio_clip *c;
	char p[256];

	save(r, "text.wav", "hello", 5);
	assert_int_equal(get(r, "text.wav", &c), -ENOMSG);
	save(r, "cut.wav", "RIFF....WAVEfmt ", 16);
	assert_int_equal(get(r, "cut.wav", &c), -EBADMSG);
	save(r, "empty.ul", "", 0);
	assert_int_equal(get(r, "empty.ul", &c), -EBADMSG);
	save(r, "big.ul", "", 0);
	path(p, r, "big.ul");
	assert_int_equal(truncate(p, AUDIO_CLIP_MAX / 2 + 1), 0); /* as samples it is too long */
	assert_int_equal(get(r, "big.ul", &c), -EFBIG);
	assert_int_equal(truncate(p, (off_t)1 << 40), 0);
	assert_int_equal(get(r, "big.ul", &c), -EFBIG);
}

static void clips_are_shared_until_the_file_changes(void **state)
{
	const struct rig *r = *state;
	struct audio_clip *a, *b, *c;

	assert_int_equal(get(r, "a.ul", &a), 0);
	assert_int_equal(get(r, "a.ul", &b), 0);
	assert_ptr_equal(a, b);
	save(r, "a.ul", "\0\0\0\0\0", 5);
	assert_int_equal(get(r, "a.ul", &c), 0);
	assert_int_equal(c->samples, 5);
	assert_int_equal(a->samples, 3);
	audio_clip_unref(a);
	audio_clip_unref(b);
	audio_clip_unref(c);
}

static void many_files_replace_the_oldest(void **state)
{
	const struct rig *r = *state;
	struct audio_clip *c;
	char name[32];

	for (int i = 0; i < 2 * AUDIO_FILES; i++) {
		snprintf(name, sizeof(name), "f%d.ul", i);
		save(r, name, "\1\2\3\4", (size_t)(i % 4 + 1));
		assert_int_equal(get(r, name, &c), 0);
		assert_int_equal(c->samples, i % 4 + 1);
		audio_clip_unref(c);
	}
}

static int get_blob(struct audio_files *f, const uint8_t *b, size_t len, struct audio_clip **out)
{
	int err = -EAGAIN;

	*out = NULL;
	for (int i = 0; i < 6000 && err == -EAGAIN; i++) {
		err = audio_files_blob(f, b, len, out);
		if (err == -EAGAIN)
			nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	}
	return err;
}

/* n frames of MP3. The caller frees them. */
static uint8_t *mp3(uint32_t n)
{
	uint8_t *b = malloc(n * sizeof(mp3_silence));

	assert_non_null(b);
	for (uint32_t i = 0; i < n; i++)
		memcpy(b + i * sizeof(mp3_silence), mp3_silence, sizeof(mp3_silence));
	return b;
}

/* Three files fit. The one that was played least recently is read again when it is asked for. */
static void large_files_replace_the_one_least_recently_used(void **state)
{
	enum { SAMPLES = 1000 };
	static const char zeroes[8 * SAMPLES];
	static const char *const order[] = {"1.ul", "2.ul", "3.ul", "1.ul", "4.ul"};
	static const struct {
		const char *name;
		bool cached;
	} after[] = {
		{"4.ul", true}, {"1.ul", true}, {"3.ul", true}, {"2.ul", false}, {"4.ul", false}};
	struct rig *r = *state;
	struct audio_clip *held[5], *c;

	audio_files_destroy(r->files);
	assert_int_equal(
		audio_files_create(&r->files, r->folder, r->decoder, 3 * SAMPLES * sizeof(int16_t)),
		0);
	for (uint32_t i = 0; i < ARRAY_LEN(order); i++) {
		if (i != 3)
			save(r, order[i], zeroes, SAMPLES);
		assert_int_equal(get(r, order[i], &held[i]), 0);
	}
	assert_ptr_equal(held[0], held[3]);
	for (uint32_t i = 0; i < ARRAY_LEN(after); i++) {
		bool found = false;

		assert_int_equal(get(r, after[i].name, &c), 0);
		for (uint32_t k = 0; k < ARRAY_LEN(order); k++)
			found = found || held[k] == c;
		assert_int_equal(found, after[i].cached);
		audio_clip_unref(c);
	}
	for (uint32_t i = 0; i < ARRAY_LEN(order); i++)
		audio_clip_unref(held[i]);
	/* One that is larger than the bound is the only one in the cache. */
	save(r, "large.raw", zeroes, sizeof(zeroes));
	assert_int_equal(get(r, "large.raw", &c), 0);
	assert_int_equal(get(r, "large.raw", &held[0]), 0);
	assert_ptr_equal(c, held[0]);
	audio_clip_unref(held[0]);
	audio_clip_unref(c);
}

static void compressed_files_and_blobs_are_decoded(void **state)
{
	const struct rig *r = *state;
	struct audio_clip *a, *b, *c;
	uint8_t *bytes = mp3(60);
	uint32_t samples;

	if (access(r->decoder, X_OK)) {
		free(bytes);
		skip();
	}
	save(r, "a.mp3", (const char *)bytes, 20 * sizeof(mp3_silence));
	assert_int_equal(get(r, "a.mp3", &a), 0);
	assert_int_equal(a->rate, 48000);
	assert_int_equal(a->file_rate, MP3_SILENCE_RATE);
	samples = a->file_samples;
	assert_in_range(samples, 18 * MP3_SILENCE_SAMPLES, 20 * MP3_SILENCE_SAMPLES);
	audio_clip_unref(a);
	save(r, "bad.ogg", "OggS and nothing", 16);
	assert_int_equal(get(r, "bad.ogg", &a), -EBADMSG);
	/* The same bytes are decoded once. */
	assert_int_equal(get_blob(r->files, bytes, 20 * sizeof(mp3_silence), &a), 0);
	assert_int_equal(get_blob(r->files, bytes, 60 * sizeof(mp3_silence), &b), 0);
	assert_int_equal(get_blob(r->files, bytes, 20 * sizeof(mp3_silence), &c), 0);
	assert_ptr_equal(a, c);
	assert_int_equal(a->file_samples, samples);
	assert_int_equal(b->file_samples, samples + 40 * MP3_SILENCE_SAMPLES);
	audio_clip_unref(a);
	audio_clip_unref(b);
	audio_clip_unref(c);
	assert_int_equal(get_blob(r->files, (const uint8_t *)"OggS", 4, &a), -EBADMSG);
	assert_int_equal(get_blob(r->files, (const uint8_t *)"hello", 5, &a), -ENOMSG);
	free(bytes);
}

static void without_the_decoder_or_a_folder(void **state)
{
	const struct rig *r = *state;
	struct audio_files *f;
	struct audio_clip *c;
	uint8_t *bytes = mp3(20);

	assert_int_equal(get_blob(NULL, bytes, sizeof(mp3_silence), &c), -ENOPKG);
	assert_int_equal(
		audio_files_create(&f, NULL, "/nonexistent/program", AUDIO_FILES_BYTES), 0);
	assert_int_equal(audio_files_get(f, STR("a.ul"), &c), -ENODEV);
	assert_int_equal(get_blob(f, bytes, 20 * sizeof(mp3_silence), &c), -ENOPKG);
	audio_files_destroy(f);
	if (access(r->decoder, X_OK) == 0) {
		assert_int_equal(audio_files_create(&f, NULL, r->decoder, AUDIO_FILES_BYTES), 0);
		assert_int_equal(get_blob(f, bytes, 20 * sizeof(mp3_silence), &c), 0);
		audio_clip_unref(c);
		audio_files_destroy(f);
	}
	free(bytes);
}

/* The daemon's end does not wait for a program that hangs. */
static void the_end_interrupts_a_decoder(void **state)
{
	const struct rig *r = *state;
	struct audio_files *f;
	struct audio_clip *c;
	char p[256];

	save(r, "hang", "#!/bin/sh\nexec sleep 1000\n", 26);
	path(p, r, "hang");
	assert_int_equal(chmod(p, 0755), 0);
	assert_int_equal(audio_files_create(&f, NULL, p, AUDIO_FILES_BYTES), 0);
	assert_int_equal(audio_files_blob(f, (const uint8_t *)"OggS", 4, &c), -EAGAIN);
	audio_files_destroy(f);
}

/* A decoder that hangs delays no file that was read before. */
static void a_slow_decoder_does_not_delay_cached_clips(void **state)
{
	struct rig *r = *state;
	struct audio_clip *first = NULL, *c = NULL;
	struct audio_files *f;
	char p[256];

	save(r, "hang", "#!/bin/sh\nexec sleep 1000\n", 26);
	path(p, r, "hang");
	assert_int_equal(chmod(p, 0755), 0);
	assert_int_equal(audio_files_create(&f, r->folder, p, AUDIO_FILES_BYTES), 0);
	audio_files_destroy(r->files);
	r->files = f;
	assert_int_equal(get(r, "a.ul", &first), 0);
	assert_int_equal(audio_files_blob(f, (const uint8_t *)"OggS", 4, &c), -EAGAIN);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(audio_files_get(f, STR("a.ul"), &c), 0);
		assert_ptr_equal(c, first);
		audio_clip_unref(c);
	}
	assert_int_equal(audio_files_get(f, STR("sub/b.raw"), &c), -EAGAIN);
	audio_clip_unref(first);
}

static void folder_must_exist(void **state)
{
	struct audio_files *f;

	(void)state;
	assert_int_equal(
		audio_files_create(&f, "/nonexistent/folder", "", AUDIO_FILES_BYTES), -ENOENT);
	audio_files_destroy(NULL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(files_below_the_folder_are_read, start, end),
		cmocka_unit_test_setup_teardown(
			names_and_links_that_lead_out_are_refused, start, end),
		cmocka_unit_test_setup_teardown(files_that_are_not_audio_are_refused, start, end),
		cmocka_unit_test_setup_teardown(
			clips_are_shared_until_the_file_changes, start, end),
		cmocka_unit_test_setup_teardown(many_files_replace_the_oldest, start, end),
		cmocka_unit_test_setup_teardown(
			large_files_replace_the_one_least_recently_used, start, end),
		cmocka_unit_test_setup_teardown(compressed_files_and_blobs_are_decoded, start, end),
		cmocka_unit_test_setup_teardown(without_the_decoder_or_a_folder, start, end),
		cmocka_unit_test_setup_teardown(the_end_interrupts_a_decoder, start, end),
		cmocka_unit_test_setup_teardown(
			a_slow_decoder_does_not_delay_cached_clips, start, end),
		cmocka_unit_test(folder_must_exist),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
