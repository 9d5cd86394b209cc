/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See keyfile.h. The open file is checked, not its name: the two could differ. */
#include "base/keyfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static int read_all(int fd, char *buf, size_t size)
{
	size_t have = 0;
	char more;
	ssize_t n;

	while (have < size) {
		n = read(fd, buf + have, size - have);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return (int)have;
		have += (size_t)n;
	}
	return read(fd, &more, 1) == 0 ? (int)have : -EFBIG;
}

int keyfile_read(
	char *buf, size_t size, const char *option, const char *path, char *err, size_t err_len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), ret = fd < 0 ? -errno : 0;
	struct stat st;

	if (!ret && fstat(fd, &st))
		ret = -errno;
	if (!ret && !S_ISREG(st.st_mode)) {
		ret = -EPERM;
		snprintf(err, err_len, "%s=%s is not a regular file", option, path);
	} else if (!ret && st.st_mode & (S_IRWXO | S_IWGRP)) {
		ret = -EPERM;
		snprintf(err, err_len,
			"%s=%s can be read or written by others: run chmod 600 (or 640) on it",
			option, path);
	} else {
		ret = ret ? ret : read_all(fd, buf, size);
		if (ret < 0)
			snprintf(err, err_len, "cannot read %s=%s: %s", option, path,
				strerror(-ret));
	}
	if (fd >= 0)
		close(fd);
	return ret;
}
