/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The folder in which PoCL keeps compiled kernels. PoCL loads them into this process as shared
 * libraries, so anyone who can write there can run code in it. PoCL uses POCL_CACHE_DIR,
 * XDG_CACHE_HOME or HOME unchecked, and otherwise a fixed folder in /tmp that anybody may have
 * created. So each of them is checked here, and POCL_CACHE_DIR is set to a safe one. */
#include "batch/opencl_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"

#define VARIABLE "POCL_CACHE_DIR"

static int make_folders(const char *path)
{
	char part[PATH_MAX];
	size_t len = strlen(path);

	if (path[0] != '/' || len >= sizeof(part))
		return -EINVAL;
	memcpy(part, path, len + 1);
	for (size_t i = 1; i <= len; i++) {
		if (path[i] != '/' && path[i])
			continue;
		part[i] = 0;
		if (mkdir(part, 0700) && errno != EEXIST && access(part, F_OK))
			return -errno;
		part[i] = path[i];
	}
	return 0;
}

/* Whether only we can replace this folder of the path. A sticky folder protects the entries of each
 * user. */
static bool is_private(const struct stat *st, bool last)
{
	bool sticky = st->st_mode & S_ISVTX && !last;

	return S_ISDIR(st->st_mode) && (st->st_uid == 0 || st->st_uid == geteuid()) &&
		(sticky || !(st->st_mode & (S_IWGRP | S_IWOTH)));
}

/* The path has no symbolic links. 0, or -EPERM: another user could change part, the beginning of
 * path. */
static int check_folders(const char *path, char part[PATH_MAX])
{
	struct stat st;

	snprintf(part, PATH_MAX, "/");
	for (size_t i = 0; path[i]; i++) {
		if (path[i + 1] != '/' && path[i + 1])
			continue;
		snprintf(part, PATH_MAX, "%.*s", (int)i + 1, path);
		if (lstat(part, &st))
			return -errno;
		if (!is_private(&st, !path[i + 1]))
			return -EPERM;
	}
	return 0;
}

static int use(const char *path, const char *name, char *err, size_t err_len)
{
	char real[PATH_MAX], part[PATH_MAX];
	int res = make_folders(path);

	if (!res && !realpath(path, real))
		res = -errno;
	if (!res)
		res = check_folders(real, part);
	if (res == -EPERM) {
		snprintf(err, err_len,
			"opencl: %s=%s is not a safe folder for compiled kernels: other users own or can write %.200s",
			name, path, part);
		return res;
	}
	if (!res && faccessat(AT_FDCWD, real, W_OK | X_OK, AT_EACCESS))
		res = -errno;
	if (res) {
		snprintf(err, err_len, "opencl: %s=%s cannot hold compiled kernels: %s", name, path,
			strerror(-res));
		return res;
	}
	return setenv(VARIABLE, real, 1) ? -ENOMEM : 0;
}

/* Tries a folder that PoCL would choose itself, under the same name. */
static int use_of(const char *name, const char *below, char *err, size_t err_len)
{
	const char *value = getenv(name);
	char path[PATH_MAX];

	if (!value || !value[0])
		return -ENOENT;
	if (snprintf(path, sizeof(path), "%s%s", value, below) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	return use(path, name, err, err_len);
}

static int use_private(char made[OPENCL_CACHE_MADE], char *err, size_t err_len)
{
	int res;

	snprintf(made, OPENCL_CACHE_MADE, "/tmp/xcipher-pocl-XXXXXX");
	if (!mkdtemp(made)) {
		res = -errno;
		snprintf(err, err_len, "opencl: no folder for compiled kernels: %s: %s", made,
			strerror(-res));
		made[0] = 0;
		return res;
	}
	return setenv(VARIABLE, made, 1) ? -ENOMEM : 0;
}

int opencl_cache_choose(char made[OPENCL_CACHE_MADE], char *err, size_t err_len)
{
	const char *set = getenv(VARIABLE);
	int res;

	made[0] = 0;
	if (set && set[0])
		return use(set, VARIABLE, err, err_len);
	err[0] = 0;
	res = use_of("XDG_CACHE_HOME", "/pocl/kcache", err, err_len);
	res = res == -ENOENT ? use_of("HOME", "/.cache/pocl/kcache", err, err_len) : res;
	if (!res)
		return 0;
	log_warn(
		"%s. Kernels are compiled at each start into a folder in /tmp that is removed at the end: set " VARIABLE
		" to a folder of this user",
		err[0] ? err : "opencl: neither " VARIABLE " nor HOME is set");
	err[0] = 0;
	return use_private(made, err, err_len);
}

static int drop(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	(void)remove(path);
	return 0;
}

void opencl_cache_remove(const char made[OPENCL_CACHE_MADE])
{
	if (made[0])
		(void)nftw(made, drop, 16, FTW_DEPTH | FTW_PHYS);
}
