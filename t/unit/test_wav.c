/* SPDX-License-Identifier: GPL-2.0-or-later */
/* WAV files of all codings, in any order of chunks, and malformed ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "audio/clip.h"
#include "audio/wav.h"
#include "base/bytes.h"

struct file {
	uint8_t b[512];
	size_t len;
};

static void put(struct file *f, const void *p, size_t n)
{
	assert_true(f->len + n <= sizeof(f->b));
	memcpy(f->b + f->len, p, n);
	f->len += n;
}

static void put_le(struct file *f, uint64_t v, int bytes)
{
	for (int i = 0; i < bytes; i++, v >>= 8)
		put(f, &(uint8_t){(uint8_t)v}, 1);
}

static void put_chunk(struct file *f, const char *name, const void *p, uint32_t n)
{
	put(f, name, 4);
	put_le(f, n, 4);
	put(f, p, n);
	if (n & 1)
		put(f, "", 1);
}

static struct file riff(void)
{
	struct file f = {.len = 0};

	put(&f, "RIFF\0\0\0\0WAVE", 12);
	return f;
}

static void put_format(
	struct file *f, unsigned format, unsigned channels, unsigned rate, unsigned bits)
{
	struct file fmt = {.len = 0};

	put_le(&fmt, format, 2);
	put_le(&fmt, channels, 2);
	put_le(&fmt, rate, 4);
	put_le(&fmt, rate * channels * bits / 8, 4);
	put_le(&fmt, channels * bits / 8, 2);
	put_le(&fmt, bits, 2);
	put_chunk(f, "fmt ", fmt.b, (uint32_t)fmt.len);
}

static struct file simple(
	unsigned format, unsigned channels, unsigned bits, const void *data, size_t n)
{
	struct file f = riff();

	put_format(&f, format, channels, 8000, bits);
	put_chunk(&f, "data", data, (uint32_t)n);
	return f;
}

/* Reads it from memory of its exact length, so that a sanitizer sees a read behind it. */
static int parse(struct wav *w, const struct file *f, struct audio_clip **clip)
{
	uint8_t *exact = malloc(f->len ? f->len : 1);
	int err;

	assert_non_null(exact);
	memcpy(exact, f->b, f->len);
	err = wav_parse(w, exact, f->len);
	*clip = err ? NULL : wav_clip(w);
	free(exact);
	return err;
}

static void each_coding_gives_its_samples(void **state)
{
	static const struct {
		unsigned format, bits;
		uint8_t data[16];
		size_t len;
		int16_t want[2];
		const char *why;
	} T[] = {
		{1, 8, {0x00, 0xff}, 2, {-32768, 32512}, "8 bits without a sign"},
		{1, 16, {0x34, 0x12, 0x00, 0x80}, 4, {0x1234, -32768}, "16 bits"},
		{1, 24, {0xff, 0x34, 0x12, 0, 0, 0x80}, 6, {0x1234, -32768}, "24 bits"},
		{1, 32, {9, 9, 0x34, 0x12, 0, 0, 0, 0x80}, 8, {0x1234, -32768}, "32 bits"},
		{3, 32, {0, 0, 0, 0x3f, 0, 0, 0, 0xc0}, 8, {16384, -32768}, "float: 0.5, -2"},
		{3, 32, {0, 0, 0xc0, 0x7f, 0, 0, 0x80, 0x7f}, 8, {0, 32767}, "NaN, infinity"},
		{3, 64, {0, 0, 0, 0, 0, 0, 0xe0, 0xbf, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f}, 16,
			{-16384, 32767}, "double: -0.5, 1"},
		{6, 8, {0xd5, 0x55}, 2, {8, -8}, "A-law"},
		{7, 8, {0xff, 0x00}, 2, {0, -32124}, "mu-law"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct file f = simple(T[i].format, 1, T[i].bits, T[i].data, T[i].len);
		struct audio_clip *c;
		struct wav w;

		print_message("%s\n", T[i].why);
		assert_int_equal(parse(&w, &f, &c), 0);
		assert_int_equal(c->rate, 8000);
		assert_int_equal(c->samples, 2);
		assert_int_equal(c->pcm[0], T[i].want[0]);
		assert_int_equal(c->pcm[1], T[i].want[1]);
		audio_clip_unref(c);
	}
}

static void channels_are_mixed(void **state)
{
	static const uint8_t data[] = {0xe8, 0x03, 0xd0, 0x07, 0xff, 0x7f, 0xff, 0x7f, 1};
	struct file f = simple(1, 2, 16, data, sizeof(data)); /* half a sample too much */
	struct audio_clip *c;
	struct wav w;

	(void)state;
	assert_int_equal(parse(&w, &f, &c), 0);
	assert_int_equal(c->samples, 2);
	assert_int_equal(c->pcm[0], 1500);
	assert_int_equal(c->pcm[1], 32767);
	audio_clip_unref(c);
}

static void chunks_come_in_any_order(void **state)
{
	struct file f = riff();
	struct audio_clip *c;
	struct wav w;

	(void)state;
	put_chunk(&f, "LIST", "odd", 3);
	put_chunk(&f, "data", "\1\0\2\0", 4);
	put_chunk(&f, "fact", "\0\0\0\0", 4);
	put_format(&f, 1, 1, 16000, 16);
	put_chunk(&f, "data", "\7\7", 2); /* the first one counts */
	assert_int_equal(parse(&w, &f, &c), 0);
	assert_int_equal(w.rate, 16000);
	assert_int_equal(c->samples, 2);
	assert_int_equal(c->pcm[1], 2);
	audio_clip_unref(c);
}

static void extensible_format_names_its_coding(void **state)
{
	static const uint8_t guid[] = {
		7, 0, 0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xaa, 0, 0x38, 0x9b, 0x71};
	struct file f = riff(), fmt = {.len = 0};
	struct audio_clip *c;
	struct wav w;

	(void)state;
	put(&fmt, "\xfe\xff\1\0\x40\x1f\0\0\x40\x1f\0\0\1\0\x08\0\x16\0\x08\0\0\0\0\0", 24);
	put(&fmt, guid, sizeof(guid));
	put_chunk(&f, "fmt ", fmt.b, (uint32_t)fmt.len);
	put_chunk(&f, "data", "\xff", 1);
	assert_int_equal(parse(&w, &f, &c), 0);
	assert_int_equal(w.coding, WAV_ULAW);
	audio_clip_unref(c);
	f.b[12 + 8 + 30]++; /* another GUID */
	assert_int_equal(parse(&w, &f, &c), -ENOTSUP);
}

static void file_that_ends_early_plays_until_there(void **state)
{
	struct file f = simple(1, 1, 16, "\1\0\2\0\3\0", 6);
	struct audio_clip *c;
	struct wav w;

	(void)state;
	f.b[f.len - 10] = 0xff; /* size of data: as written by a program that could not seek */
	f.len -= 3;
	assert_int_equal(parse(&w, &f, &c), 0);
	assert_int_equal(c->samples, 1);
	audio_clip_unref(c);
}

static void malformed_files_are_refused(void **state)
{
	struct file good = simple(1, 1, 16, "\1\0\2\0", 4), f;
	struct audio_clip *c;
	struct wav w;

	(void)state;
	for (size_t len = 0; len < 44; len++) {
		f = good;
		f.len = len;
		assert_true(parse(&w, &f, &c) < 0);
	}
	f = good;
	f.b[8] = 'X';
	assert_int_equal(parse(&w, &f, &c), -ENOMSG);
	f = simple(2, 1, 4, "", 0);
	assert_int_equal(parse(&w, &f, &c), -ENOTSUP); /* ADPCM */
	f = simple(1, 17, 16, "", 0);
	assert_int_equal(parse(&w, &f, &c), -ENOTSUP);
	f = simple(1, 0, 16, "", 0);
	assert_int_equal(parse(&w, &f, &c), -EBADMSG);
	f = simple(1, 1, 12, "", 0);
	assert_int_equal(parse(&w, &f, &c), -ENOTSUP);
	f = simple(1, 1, 64, "", 0);
	assert_int_equal(parse(&w, &f, &c), -ENOTSUP);
	f = simple(3, 1, 16, "", 0);
	assert_int_equal(parse(&w, &f, &c), -ENOTSUP);
}

static void clips_are_bounded_and_counted(void **state)
{
	struct audio_clip *c = audio_clip_create(8000, 3);

	(void)state;
	assert_null(audio_clip_create(8000, AUDIO_CLIP_MAX / 2 + 1));
	assert_ptr_equal(audio_clip_ref(c), c);
	audio_clip_unref(c);
	assert_int_equal(c->rate, 8000);
	audio_clip_unref(c);
	audio_clip_unref(NULL);
}

static void raw_samples_have_no_header(void **state)
{
	struct audio_clip *c;
	struct wav w;

	(void)state;
	assert_int_equal(wav_raw(&w, WAV_PCM, 8000, (const uint8_t *)"\1\0\2\0\3", 5), 0);
	c = wav_clip(&w);
	assert_int_equal(c->samples, 2);
	assert_int_equal(c->pcm[1], 2);
	audio_clip_unref(c);
	assert_int_equal(wav_raw(&w, WAV_PCM, 1, NULL, 0), -ENOTSUP);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_coding_gives_its_samples),
		cmocka_unit_test(channels_are_mixed),
		cmocka_unit_test(chunks_come_in_any_order),
		cmocka_unit_test(extensible_format_names_its_coding),
		cmocka_unit_test(file_that_ends_early_plays_until_there),
		cmocka_unit_test(malformed_files_are_refused),
		cmocka_unit_test(clips_are_bounded_and_counted),
		cmocka_unit_test(raw_samples_have_no_header),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
