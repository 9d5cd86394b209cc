/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Secret files: refused if anybody but root, the daemon's user or a reading group has access. */
#include "base/secret_file.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

static char dir[] = "/tmp/xcipher-secret-XXXXXX", path[64], link_path[64];

static void write_file(const char *text, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static int read_secret(const char *name, char *err)
{
	char out[32];

	err[0] = 0;
	return secret_file_read("--some-file", name, out, sizeof(out), err, 256);
}

static void modes_decide(void **state)
{
	static const struct {
		mode_t mode;
		bool good;
	} T[] = {{0600, true}, {0400, true}, {0640, true}, {0440, true}, {0700, true},
		{0644, false}, {0604, false}, {0602, false}, {0601, false}, {0660, false},
		{0620, false}, {0666, false}, {0777, false}};
	char err[256];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		write_file("secret\n", T[i].mode);
		assert_int_equal(read_secret(path, err), T[i].good ? 7 : -EPERM);
		assert_int_equal(secret_file_is_open(path), !T[i].good);
		if (!T[i].good) {
			assert_non_null(strstr(err, "--some-file="));
			assert_non_null(strstr(err, "chmod 600"));
		}
		/* For a link, the rules apply to its target. */
		assert_int_equal(read_secret(link_path, err), T[i].good ? 7 : -EPERM);
	}
}

static void another_users_file_is_refused(void **state)
{
	char err[256];

	(void)state;
	if (geteuid() != 0)
		skip();
	write_file("secret\n", 0600);
	assert_int_equal(chown(path, 65534, 65534), 0);
	assert_int_equal(read_secret(path, err), -EPERM);
	assert_non_null(strstr(err, "chown"));
	assert_int_equal(chown(path, 0, 65534), 0);
	assert_int_equal(read_secret(path, err), 7);
}

static void odd_files_get_a_clear_error(void **state)
{
	char err[256], out[32], text[34] = "";
	int len;

	(void)state;
	assert_int_equal(read_secret("/nowhere/file", err), -ENOENT);
	assert_non_null(strstr(err, "/nowhere/file"));
	assert_int_equal(read_secret("/dev/null", err), -EINVAL);
	assert_int_equal(read_secret(dir, err), -EINVAL);
	memset(text, 'x', 33);
	write_file(text, 0600);
	assert_int_equal(read_secret(path, err), -EFBIG);
	text[32] = 0;
	write_file(text, 0600);
	assert_int_equal(read_secret(path, err), 32);
	write_file("  pass word \r\nmore\n", 0600);
	len = secret_file_read("--x", path, out, sizeof(out), err, sizeof(err));
	assert_true(len > 0);
	assert_true(str_eq(secret_file_line(out, (size_t)len), STR("pass word")));
	/* A pipe without a writer does not block. */
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(read_secret(path, err), -EINVAL);
	unlink(path);
}

static int make_dir(void **state)
{
	(void)state;
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/file", dir);
	snprintf(link_path, sizeof(link_path), "%s/link", dir);
	return symlink(path, link_path);
}

static int remove_dir(void **state)
{
	(void)state;
	unlink(link_path);
	unlink(path);
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(modes_decide),
		cmocka_unit_test(another_users_file_is_refused),
		cmocka_unit_test(odd_files_get_a_clear_error),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
