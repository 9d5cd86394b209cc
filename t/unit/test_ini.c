/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Configuration files: entries of any length, and the line number of an error. */
#include "base/ini.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/bytes.h"

static char path[] = "/tmp/xcipher-ini-XXXXXX";

static int create(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	close(fd);
	return fd < 0;
}

static int destroy(void **state)
{
	(void)state;
	return unlink(path);
}

static void write_file(const char *text, size_t len)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, len, f), len);
	fclose(f);
}

/* Prints all entries as one text; a value "wrong" is refused. */
static bool note(void *arg, const char *section, const char *name, const char *value)
{
	char *said = arg;

	if (strcmp(value, "wrong") == 0)
		return false;
	snprintf(said + strlen(said), 4096 - strlen(said), "%s/%s=%s|", section, name, value);
	return true;
}

static void entries_are_told_with_what_goes_on_and_without_comments(void **state)
{
	static const struct {
		const char *text, *said;
		int line;
	} T[] = {
		{"", "", 0},
		{"a = 1\n[s]\nb=2\n c : 3 \n", "/a=1|s/b=2 c : 3|", 0},
		{"[s]\n# x\n; y\n\na = 1 ; z\nb = 2;3\nc = ;4\n", "s/a=1|s/b=2;3|s/c=|", 0},
		{"[s]\na = x,\n\ty,   ; and\n  # not this\n\n z\nb = 1", "s/a=x, y, z|s/b=1|", 0},
		{"[s]\na =\n 1\n", "s/a=1|", 0},
		{"[s]\r\na = 1\r\n", "s/a=1|", 0},
		{"\xef\xbb\xbf[s]\na: 1\n", "s/a=1|", 0},
		{"[s]\na = x = y\n", "s/a=x = y|", 0},
		{"[s]\na = 1\na = 2\n", "s/a=1|s/a=2|", 0},
		{"[s]\na = 1\n[t]\nb = 2\n", "s/a=1|t/b=2|", 0},
		{"[s]\na = 1\nrubbish\nb = 2\n", "s/a=1|", 3},
		{"[s\na = 1\n", "", 1},
		{"[s]\n\na = wrong\n\nb = 1\n", "", 3},
		{"[s]\na = 1\nb = wrong", "s/a=1|", 3},
		{"[s]\n indented = 1\n", "s/indented=1|", 0},
	};
	char said[4096];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		write_file(T[i].text, strlen(T[i].text));
		said[0] = 0;
		assert_int_equal(ini_read(path, note, said), T[i].line);
		assert_string_equal(said, T[i].said);
	}
}

static void lines_may_be_of_any_length(void **state)
{
	char text[9000] = "[s]\n# ", said[4096] = "", want[4096] = "s/a=";

	(void)state;
	memset(text + 6, '=', 3000);
	strcpy(text + 3006, "\na = ");
	memset(text + 3011, 'x', 3000);
	strcpy(text + 6011, "\nb = wrong\n");
	memset(want + 4, 'x', 3000);
	strcpy(want + 3004, "|");
	write_file(text, strlen(text));
	assert_int_equal(ini_read(path, note, said), 4);
	assert_string_equal(said, want);
}

static void what_cannot_be_read_is_told(void **state)
{
	char said[4096] = "";

	(void)state;
	assert_int_equal(ini_read("/nowhere", note, said), -ENOENT);
	assert_int_equal(ini_read("/tmp", note, said), -EISDIR);
	write_file("[s]\na = 1\nb\0 = 2\n", 17);
	assert_int_equal(ini_read(path, note, said), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entries_are_told_with_what_goes_on_and_without_comments),
		cmocka_unit_test(lines_may_be_of_any_length),
		cmocka_unit_test(what_cannot_be_read_is_told),
	};

	return cmocka_run_group_tests(tests, create, destroy);
}
