/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The pidfile: others may read it, and a device in its place is not changed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "app/background.h"

static char folder[] = "/tmp/xcipher-background-XXXXXX";

static mode_t mode_of(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st.st_mode & 0777;
}

static void others_may_read_it(void **state)
{
	char path[sizeof(folder) + 4];

	(void)state;
	snprintf(path, sizeof(path), "%s/pid", folder);
	assert_int_equal(pidfile_write(path), 0);
	assert_int_equal(mode_of(path), 0644);
	assert_int_equal(unlink(path), 0);
}

/* Its mode would change for all programs of the host. */
static void a_device_keeps_its_mode(void **state)
{
	char path[sizeof(folder) + 4];

	(void)state;
	snprintf(path, sizeof(path), "%s/dev", folder);
	if (mknod(path, S_IFCHR | 0666, makedev(1, 3)))
		skip();
	assert_int_equal(chmod(path, 0666), 0);
	assert_int_equal(pidfile_write(path), 0);
	assert_int_equal(mode_of(path), 0666);
	assert_int_equal(unlink(path), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(others_may_read_it),
		cmocka_unit_test(a_device_keeps_its_mode),
	};
	int failed;

	(void)umask(077);
	if (!mkdtemp(folder))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	(void)rmdir(folder);
	return failed;
}
