/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The folder of compiled kernels: one that another user could change is never used. Control: the
 * same path is used once only we can change it. */
#include "batch/opencl_cache.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

static const char *const variables[] = {"POCL_CACHE_DIR", "XDG_CACHE_HOME", "HOME"};

struct fixture {
	char dir[64], made[OPENCL_CACHE_MADE], err[512];
};

static int begin(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	if (!f)
		return -1;
	snprintf(f->dir, sizeof(f->dir), "/tmp/xcipher-cache-test-XXXXXX");
	*state = f;
	return mkdtemp(f->dir) ? 0 : -1;
}

static int end(void **state)
{
	struct fixture *f = *state;
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", f->dir);
	if (system(command))
		return -1;
	free(f);
	return 0;
}

/* Sets only this variable, to a folder in the test's own; NULL: none. */
static int choose(struct fixture *f, const char *variable, const char *below)
{
	char value[128];

	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
		assert_int_equal(unsetenv(variables[i]), 0);
	snprintf(value, sizeof(value), "%s%s", f->dir, below);
	if (variable)
		assert_int_equal(setenv(variable, value, 1), 0);
	return opencl_cache_choose(f->made, f->err, sizeof(f->err));
}

static void expect_chosen(const struct fixture *f, const char *below)
{
	char want[128];
	struct stat st;

	snprintf(want, sizeof(want), "%s%s", f->dir, below);
	assert_string_equal(getenv("POCL_CACHE_DIR"), want);
	assert_string_equal(f->made, "");
	assert_int_equal(stat(want, &st), 0);
	assert_true(S_ISDIR(st.st_mode));
}

static void expect_private(const struct fixture *f)
{
	struct stat st;

	assert_string_not_equal(f->made, "");
	assert_string_equal(getenv("POCL_CACHE_DIR"), f->made);
	assert_int_equal(stat(f->made, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(st.st_uid, geteuid());
	opencl_cache_remove(f->made);
	assert_int_not_equal(access(f->made, F_OK), 0);
}

static void a_safe_folder_is_made_and_taken(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(choose(f, "POCL_CACHE_DIR", "/a/b"), 0);
	expect_chosen(f, "/a/b");
	assert_int_equal(choose(f, "XDG_CACHE_HOME", "/xdg"), 0);
	expect_chosen(f, "/xdg/pocl/kcache");
	assert_int_equal(choose(f, "HOME", ""), 0);
	expect_chosen(f, "/.cache/pocl/kcache");
	/* again, now that it exists */
	assert_int_equal(choose(f, "HOME", ""), 0);
	expect_chosen(f, "/.cache/pocl/kcache");
}

static void without_any_a_private_one_is_made(void **state)
{
	struct fixture *f = *state;
	char inner[128];

	assert_int_equal(choose(f, NULL, ""), 0);
	snprintf(inner, sizeof(inner), "%s/x", f->made);
	assert_int_equal(mkdir(inner, 0700), 0);
	expect_private(f);
}

static void change(const char *path, const char *how)
{
	if (strcmp(how, "owner") == 0)
		assert_int_equal(chown(path, 65534, 65534), 0);
	else
		assert_int_equal(chmod(path, (mode_t)strtoul(how, NULL, 8)), 0);
}

/* The folder itself, and one of its parents. */
static void what_others_can_change_is_refused(void **state)
{
	static const char *const how[] = {"owner", "0777", "1777", "0770", "0702"};
	static const char *const which[] = {"/x/.cache/pocl/kcache", "/x/.cache", "/x"};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(how) / sizeof(how[0]); i++) {
		for (size_t k = 0; k < sizeof(which) / sizeof(which[0]); k++) {
			bool sticky = strcmp(how[i], "1777") == 0 && k > 0;
			char path[128];

			if (strcmp(how[i], "owner") == 0 && geteuid() != 0)
				continue;
			assert_int_equal(choose(f, "POCL_CACHE_DIR", "/x/.cache/pocl/kcache"), 0);
			snprintf(path, sizeof(path), "%s%s", f->dir, which[k]);
			change(path, how[i]);
			assert_int_equal(choose(f, "POCL_CACHE_DIR", "/x/.cache/pocl/kcache"),
				sticky ? 0 : -EPERM);
			assert_true(sticky || strstr(f->err, path));
			assert_string_equal(f->made, "");
			/* Another folder replaces PoCL's default. */
			assert_int_equal(choose(f, "HOME", "/x"), 0);
			if (sticky)
				expect_chosen(f, "/x/.cache/pocl/kcache");
			else
				expect_private(f);
			if (geteuid() == 0)
				assert_int_equal(chown(path, 0, 0), 0);
			change(path, "0700");
		}
	}
	assert_int_equal(choose(f, "HOME", "/x"), 0);
	expect_chosen(f, "/x/.cache/pocl/kcache");
}

static void a_link_is_as_good_as_its_target(void **state)
{
	struct fixture *f = *state;
	char target[128], link[128];

	snprintf(target, sizeof(target), "%s/target", f->dir);
	snprintf(link, sizeof(link), "%s/link", f->dir);
	assert_int_equal(mkdir(target, 0700), 0);
	assert_int_equal(symlink(target, link), 0);
	assert_int_equal(choose(f, "POCL_CACHE_DIR", "/link"), 0);
	expect_chosen(f, "/target");
	change(target, "0777");
	assert_int_equal(choose(f, "POCL_CACHE_DIR", "/link"), -EPERM);
}

static void what_is_no_folder_is_told(void **state)
{
	struct fixture *f = *state;
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/file", f->dir);
	file = fopen(path, "w");
	assert_non_null(file);
	fclose(file);
	assert_true(choose(f, "POCL_CACHE_DIR", "/file") < 0);
	assert_non_null(strstr(f->err, "POCL_CACHE_DIR="));
	assert_int_equal(setenv("POCL_CACHE_DIR", "relative", 1), 0);
	assert_int_equal(opencl_cache_choose(f->made, f->err, sizeof(f->err)), -EINVAL);
}

int main(void)
{
#define ROW(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		ROW(a_safe_folder_is_made_and_taken),
		ROW(without_any_a_private_one_is_made),
		ROW(what_others_can_change_is_refused),
		ROW(a_link_is_as_good_as_its_target),
		ROW(what_is_no_folder_is_told),
	};
#undef ROW

	return cmocka_run_group_tests(tests, NULL, NULL);
}
