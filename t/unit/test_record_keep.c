/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Retention of recordings: the oldest go, those in use and other people's files stay. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record/record_keep.h"

#define NOW 1000000u

static const struct file {
	const char *name;
	uint32_t age_s;
	size_t bytes;
} files[] = {
	{"old.pcap", 7300, 1000},
	{"old.txt", 7300, 10},
	{"older.pcap", 9000, 1000},
	{"young.pcap", 600, 1000},
	{"used.pcap", 10, 5000},
	{"holiday.jpg", 90000, 9000},
	{"older-mix.opus", 9000, 100},
};

static void made(const char *dir)
{
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		struct timespec t[2] = {
			{.tv_sec = NOW - files[i].age_s}, {.tv_sec = NOW - files[i].age_s}};
		char path[128];
		int fd;

		snprintf(path, sizeof(path), "%s/%s", dir, files[i].name);
		fd = open(path, O_CREAT | O_WRONLY, 0600);
		assert_true(fd >= 0);
		assert_int_equal(ftruncate(fd, (off_t)files[i].bytes), 0);
		assert_int_equal(futimens(fd, t), 0);
		close(fd);
	}
}

/* Returns a bit per file that exists, and removes the files. */
static uint32_t left(const char *dir)
{
	uint32_t bits = 0;

	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		char path[128];

		snprintf(path, sizeof(path), "%s/%s", dir, files[i].name);
		bits |= (uint32_t)(unlink(path) == 0) << i;
	}
	return bits;
}

static void the_oldest_go_first_and_no_others(void **state)
{
	static const struct {
		uint64_t age_s, bytes;
		uint32_t removed, left;
	} rows[] = {
		{0, 0, 0, 0x7f}, {7200, 0, 2, 0x38}, {8000, 0, 1, 0x3b}, {0, 7500, 1, 0x3b},
		{0, 6500, 2, 0x38}, {0, 1, 3, 0x30}, /* a file that may be in use stays */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char dir[] = "/tmp/xcipher-keep-XXXXXX";

		assert_non_null(mkdtemp(dir));
		made(dir);
		assert_int_equal(
			record_keep(dir, rows[i].age_s, rows[i].bytes, NOW), rows[i].removed);
		assert_int_equal(left(dir), rows[i].left);
		assert_int_equal(rmdir(dir), 0);
	}
	assert_int_equal(record_keep("/no/such/folder", 1, 1, NOW), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_oldest_go_first_and_no_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
