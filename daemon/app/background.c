/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Daemonising with a pipe: the parent exits only when the child is ready, so that scripts can rely
 * on its exit status. */
#include "app/background.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

int background_start(void)
{
	int ends[2];
	pid_t pid;
	char ok = 1;

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid > 0) {
		close(ends[1]);
		if (read(ends[0], &ok, 1) != 1)
			_exit(1);
		_exit(0);
	}
	close(ends[0]);
	setsid();
	return ends[1];
}

void background_ready(int handle)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	char ok = 0;

	if (null >= 0) {
		for (int fd = 0; fd < 3; fd++)
			dup2(null, fd);
		if (null > 2)
			close(null);
	}
	(void)!write(handle, &ok, 1);
	close(handle);
}

int pidfile_write(const char *path)
{
	FILE *f = fopen(path, "we");
	struct stat st;
	int err = 0;

	if (!f)
		return -errno;
	/* Others may read the pidfile; the daemon's umask would forbid it. A device such as
	 * /dev/null keeps its mode. */
	if (fstat(fileno(f), &st) == 0 && S_ISREG(st.st_mode))
		(void)fchmod(fileno(f), 0644);
	if (fprintf(f, "%d\n", getpid()) < 0)
		err = -EIO;
	if (fclose(f) && !err)
		err = -errno;
	return err;
}
