/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The host's end of xcipher-av against programs that fail in every way: /bin/cat, which returns
 * what the test puts into the file, and scripts. Then xcipher-av itself, and what it may do. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "audio/clip.h"
#include "audio/decoded.h"
#include "audio/decoder.h"
#include "base/bytes.h"
#include "codec_paths.h"
#include "mp3_silence.h"

enum { PATIENCE_MS = 60000 };

static const struct audio_decoder cat = {"/bin/cat", -1, PATIENCE_MS};

/* --- Answers of a program --------------------------------------------------------------------- */

struct answer {
	uint8_t *bytes;
	size_t len, room;
};

static void add(struct answer *a, const void *bytes, size_t len)
{
	if (a->len + len > a->room) {
		a->room = 2 * (a->len + len);
		a->bytes = realloc(a->bytes, a->room);
		assert_non_null(a->bytes);
	}
	memcpy(a->bytes + a->len, bytes, len);
	a->len += len;
}

static void add_block(struct answer *a, int32_t n, uint32_t samples)
{
	int16_t pcm[DECODED_BLOCK];

	for (uint32_t i = 0; i < samples; i++)
		pcm[i] = (int16_t)i;
	add(a, &(struct decoded_block){.n = n}, sizeof(struct decoded_block));
	add(a, pcm, samples * sizeof(*pcm));
}

static int decode(const struct audio_decoder *d, struct answer *a, struct audio_clip **clip)
{
	int err;

	*clip = NULL;
	err = audio_decoder_bytes(d, a->bytes, a->len, clip);
	free(a->bytes);
	*a = (struct answer){0};
	assert_true(err ? !*clip : *clip != NULL);
	return err;
}

static void samples_arrive_in_order(void **state)
{
	struct decoded_head head = {.rate = 16000};
	struct answer a = {0};
	struct audio_clip *c;

	(void)state;
	add(&a, &head, sizeof(head));
	add_block(&a, DECODED_BLOCK, DECODED_BLOCK);
	add_block(&a, 3, 3);
	add_block(&a, 0, 0);
	add(&a, "more", 4); /* is not read */
	assert_int_equal(decode(&cat, &a, &c), 0);
	assert_int_equal(c->rate, 16000);
	assert_int_equal(c->samples, DECODED_BLOCK + 3);
	assert_int_equal(c->pcm[DECODED_BLOCK - 1], DECODED_BLOCK - 1);
	assert_int_equal(c->pcm[DECODED_BLOCK + 2], 2);
	audio_clip_unref(c);
}

static void wrong_answers_are_refused(void **state)
{
	static const struct {
		uint32_t rate;
		int32_t n; /* of the first block */
		uint32_t samples;
		int32_t last;
		int err;
	} rows[] = {
		{7999, 1, 1, 0, -EBADMSG},
		{48001, 1, 1, 0, -EBADMSG},
		{0, 1, 1, 0, -EBADMSG},
		{8000, DECODED_BLOCK + 1, 1, 0, -EBADMSG},
		{8000, INT32_MAX, 1, 0, -EBADMSG},
		{8000, INT32_MIN, 1, 0, -EBADMSG},
		{8000, 0, 0, 0, -EBADMSG}, /* no samples */
		{8000, 100, 50, 0, -EBADMSG},
		{8000, -ENOTSUP, 0, 0, -ENOTSUP},
		{8000, -ENOMEM, 0, 0, -ENOMEM},
		{8000, -EBADMSG, 0, 0, -EBADMSG},
		{8000, -EACCES, 0, 0, -EBADMSG}, /* not one of its errors */
		{8000, 5, 5, -EFBIG, -EFBIG},
	};
	struct audio_clip *c;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct decoded_head head = {.rate = rows[i].rate};
		struct answer a = {0};

		print_message("row %zu\n", i);
		add(&a, &head, sizeof(head));
		add_block(&a, rows[i].n, rows[i].samples);
		add_block(&a, rows[i].last, 0);
		assert_int_equal(decode(&cat, &a, &c), rows[i].err);
	}
}

/* At every length that is not that of a whole answer. */
static void answers_that_end_early_are_refused(void **state)
{
	struct decoded_head head = {.rate = 8000};
	struct answer a = {0};
	struct audio_clip *c;
	size_t all = sizeof(head) + 2 * sizeof(struct decoded_block) + 4;

	(void)state;
	for (size_t len = 0; len < all; len++) {
		add(&a, &head, sizeof(head));
		add_block(&a, 2, 2);
		add_block(&a, 0, 0);
		assert_int_equal(a.len, all);
		a.len = len;
		assert_int_equal(decode(&cat, &a, &c), -EBADMSG);
	}
}

static void an_endless_answer_is_cut(void **state)
{
	struct decoded_head head = {.rate = 8000};
	struct answer a = {0};
	struct audio_clip *c;

	(void)state;
	add(&a, &head, sizeof(head));
	for (uint32_t i = 0; i <= AUDIO_CLIP_MAX / (2 * DECODED_BLOCK); i++)
		add_block(&a, DECODED_BLOCK, DECODED_BLOCK);
	assert_int_equal(decode(&cat, &a, &c), -EFBIG);
}

/* --- The process ------------------------------------------------------------------------------ */

static void script(char path[CODEC_PATH + 16], const char *folder, const char *text)
{
	FILE *f;

	snprintf(path, CODEC_PATH + 16, "%s/program", folder);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fprintf(f, "#!/bin/sh\n%s\n", text) > 0);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(path, 0755), 0);
}

static void a_program_that_hangs_or_is_missing(void **state)
{
	char folder[CODEC_PATH], path[CODEC_PATH + 16];
	struct audio_decoder d = {path, -1, 200};
	struct answer a = {0};
	struct audio_clip *c;
	uint64_t one = 1;

	(void)state;
	codec_folder(folder);
	script(path, folder, "exec sleep 1000");
	add(&a, "x", 1);
	assert_int_equal(decode(&d, &a, &c), -ETIME);
	d.limit_ms = PATIENCE_MS;
	d.stop_fd = eventfd(0, EFD_CLOEXEC);
	assert_int_equal(write(d.stop_fd, &one, sizeof(one)), sizeof(one));
	add(&a, "x", 1);
	assert_int_equal(decode(&d, &a, &c), -ECANCELED);
	close(d.stop_fd);
	d.stop_fd = -1;
	script(path, folder, "kill -9 $$");
	add(&a, "x", 1);
	assert_int_equal(decode(&d, &a, &c), -EBADMSG);
	assert_int_equal(unlink(path), 0);
	add(&a, "x", 1);
	assert_int_equal(decode(&d, &a, &c), -ENOPKG);
	d.program = "";
	add(&a, "x", 1);
	assert_int_equal(decode(&d, &a, &c), -ENOPKG);
	codec_folder_remove(folder);
}

static void formats_are_recognized(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
		bool known;
	} rows[] = {
		{"OggS", 4, true},
		{"Ogg", 3, false},
		{"ID3\3", 4, true},
		{"\xff\xfb\x90\xc4", 4, true},
		{"\xff\xf3\x18\xc4", 4, true},  /* MPEG-2 */
		{"\xff\xf1\x50\x80", 4, false}, /* AAC */
		{"RIFF", 4, false},
		{"", 0, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_int_equal(audio_decoder_knows((const uint8_t *)rows[i].bytes, rows[i].len),
			rows[i].known);
}

/* --- xcipher-av ------------------------------------------------------------------------------- */

/* It needs the libraries of ffmpeg. */
static const char *program(char path[CODEC_PATH])
{
	codec_path(path, "xcipher-av");
	if (access(path, X_OK))
		skip();
	return path;
}

static void mp3_is_decoded(void **state)
{
	char path[CODEC_PATH];
	struct audio_decoder d = {program(path), -1, PATIENCE_MS};
	struct answer a = {0};
	struct audio_clip *c;

	(void)state;
	for (uint32_t i = 0; i < 40; i++)
		add(&a, mp3_silence, sizeof(mp3_silence));
	assert_int_equal(decode(&d, &a, &c), 0);
	assert_int_equal(c->rate, MP3_SILENCE_RATE);
	assert_in_range(c->samples, 38 * MP3_SILENCE_SAMPLES, 40 * MP3_SILENCE_SAMPLES);
	for (uint32_t i = 0; i < c->samples; i++)
		assert_int_equal(c->pcm[i], 0);
	audio_clip_unref(c);
	add(&a, "OggS\0\2", 6);
	assert_int_equal(decode(&d, &a, &c), -EBADMSG);
	add(&a, "hello", 5);
	assert_int_equal(decode(&d, &a, &c), -EBADMSG);
	/* Another format of ffmpeg. */
	add(&a, "#EXTM3U\n/etc/passwd\n", 20);
	assert_int_equal(decode(&d, &a, &c), -EBADMSG);
}

/* The value of a line of /proc/PID/status. */
static unsigned long status_of(pid_t pid, const char *name)
{
	char path[64], line[256];
	unsigned long v = ~0ul;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (strncmp(line, name, strlen(name)) == 0)
			v = strtoul(line + strlen(name), NULL, 16);
	fclose(f);
	return v;
}

/* It waits for room in a pipe, so it is looked at while it decodes. */
static void it_decodes_without_privileges(void **state)
{
	char path[CODEC_PATH], limits[64], line[256];
	struct decoded_head head;
	posix_spawn_file_actions_t actions;
	char *argv[] = {path, NULL}, *env[] = {NULL};
	int pipes[2], file, bounded = 0;
	FILE *tmp, *f;
	pid_t pid;

	(void)state;
	program(path);
	tmp = tmpfile();
	assert_non_null(tmp);
	for (uint32_t i = 0; i < 400; i++)
		assert_int_equal(fwrite(mp3_silence, sizeof(mp3_silence), 1, tmp), 1);
	assert_int_equal(fflush(tmp), 0);
	file = fileno(tmp);
	assert_int_equal(lseek(file, 0, SEEK_SET), 0);
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, file, 0);
	posix_spawn_file_actions_adddup2(&actions, pipes[1], 1);
	assert_int_equal(posix_spawn(&pid, path, &actions, NULL, argv, env), 0);
	posix_spawn_file_actions_destroy(&actions);
	close(pipes[1]);
	assert_int_equal(read(pipes[0], &head, sizeof(head)), sizeof(head));
	assert_int_equal(status_of(pid, "Seccomp:"), 2);
	assert_int_equal(status_of(pid, "NoNewPrivs:"), 1);
	assert_int_equal(status_of(pid, "CapEff:"), 0);
	assert_int_equal(status_of(pid, "CapPrm:"), 0);
	assert_int_equal(sched_getscheduler(pid), SCHED_BATCH);
	assert_int_equal(getpriority(PRIO_PROCESS, (id_t)pid), 10);
	snprintf(limits, sizeof(limits), "/proc/%d/limits", (int)pid);
	f = fopen(limits, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		bounded += (strncmp(line, "Max cpu time", 12) == 0 ||
				   strncmp(line, "Max core file size", 18) == 0 ||
				   strncmp(line, "Max file size", 13) == 0) &&
			!strstr(line, "unlimited");
	fclose(f);
	assert_int_equal(bounded, 3);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	close(pipes[0]);
	fclose(tmp);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_arrive_in_order),
		cmocka_unit_test(wrong_answers_are_refused),
		cmocka_unit_test(answers_that_end_early_are_refused),
		cmocka_unit_test(an_endless_answer_is_cut),
		cmocka_unit_test(a_program_that_hangs_or_is_missing),
		cmocka_unit_test(formats_are_recognized),
		cmocka_unit_test(mp3_is_decoded),
		cmocka_unit_test(it_decodes_without_privileges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
