/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See secret_file.h. Checks owner and mode of the open descriptor, so the file cannot be exchanged
 * between check and read. */
#include "base/secret_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define FORBIDDEN (S_IRWXO | S_IWGRP | S_IXGRP)

static bool is_owner_trusted(const struct stat *st)
{
	return st->st_uid == 0 || st->st_uid == geteuid();
}

static int check(const struct stat *st, const char *option, const char *path, char *err, size_t len)
{
	if (!S_ISREG(st->st_mode)) {
		snprintf(err, len, "%s=%s is not a regular file", option, path);
		return -EINVAL;
	}
	if (!is_owner_trusted(st)) {
		snprintf(err, len,
			"%s=%s belongs to user %u, who could change it: chown it to root or to user %u",
			option, path, (unsigned)st->st_uid, (unsigned)geteuid());
		return -EPERM;
	}
	if (st->st_mode & FORBIDDEN) {
		snprintf(err, len,
			"%s=%s has mode %04o, so others can read or change it: chmod 600 it, or 640 for a group that may read it",
			option, path, (unsigned)st->st_mode & 07777);
		return -EPERM;
	}
	return 0;
}

static int read_all(int fd, char *out, size_t max)
{
	size_t len = 0;
	ssize_t n;

	while (len < max) {
		n = read(fd, out + len, max - len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return (int)len;
		len += (size_t)n;
	}
	n = read(fd, &(char){0}, 1);
	return n == 0 ? (int)len : -EFBIG;
}

int secret_file_read(
	const char *option, const char *path, char *out, size_t max, char *err, size_t err_len)
{
	/* O_NONBLOCK, as a named pipe would block. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), res;
	struct stat st;

	if (fd < 0 || fstat(fd, &st)) {
		res = -errno;
	} else {
		res = check(&st, option, path, err, err_len);
		if (res) {
			close(fd);
			return res;
		}
		res = read_all(fd, out, max);
	}
	if (res == -EFBIG)
		snprintf(err, err_len, "%s=%s is longer than %zu bytes", option, path, max);
	else if (res < 0)
		snprintf(err, err_len, "%s=%s cannot be read: %s", option, path, strerror(-res));
	if (fd >= 0)
		close(fd);
	return res;
}

struct str secret_file_line(const char *text, size_t len)
{
	struct str rest = {text, len};

	return str_trim(str_cut(&rest, '\n'));
}

bool secret_file_is_open(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && (st.st_mode & FORBIDDEN || !is_owner_trusted(&st));
}
