/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs system tools without a shell. Fixed folders instead of PATH, an own environment, and input
 * from memory prevent injected commands. Control thread only: it blocks. */
#include "steer/nfqueue/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATH_LEN 64
#define SAID_LEN 1024

static int find(const char *name, char path[PATH_LEN])
{
	static const char *const dir[] = {"/usr/sbin", "/sbin"};

	for (size_t i = 0; i < ARRAY_LEN(dir); i++) {
		snprintf(path, PATH_LEN, "%s/%s", dir[i], name);
		if (access(path, X_OK) == 0)
			return 0;
	}
	return -ENOENT;
}

static int input_file(const char *input)
{
	int fd = memfd_create("input", MFD_CLOEXEC);
	size_t len = input ? strlen(input) : 0;

	if (fd < 0)
		return -errno;
	if (len && (write(fd, input, len) != (ssize_t)len || lseek(fd, 0, SEEK_SET) != 0)) {
		close(fd);
		return -EIO;
	}
	return fd;
}

static int spawn(pid_t *pid, const char *path, const char *const argv[], int in, int said)
{
	static char *const env[] = {"PATH=/usr/sbin:/sbin:/usr/bin:/bin", "LC_ALL=C", NULL};
	posix_spawn_file_actions_t act;
	posix_spawnattr_t attr;
	sigset_t none;
	int err;

	sigemptyset(&none);
	posix_spawn_file_actions_init(&act);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	posix_spawn_file_actions_adddup2(&act, in, STDIN_FILENO);
	posix_spawn_file_actions_addopen(&act, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_adddup2(&act, said, STDERR_FILENO);
	err = posix_spawn(pid, path, &act, &attr, (char *const *)argv, env);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&act);
	return -err;
}

/* Reads until the end, so that the tool never blocks; keeps the beginning. */
static void listen_to(int fd, char said[SAID_LEN])
{
	char more[256];
	size_t len = 0;
	ssize_t n;

	for (;;) {
		n = len + 1 < SAID_LEN ? read(fd, said + len, SAID_LEN - 1 - len)
				       : read(fd, more, sizeof(more));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		if (len + 1 < SAID_LEN)
			len += (size_t)n;
	}
	said[len] = 0;
	said[strcspn(said, "\n")] = 0;
}

static int wait_for(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EIO;
}

int tool_run(const char *const argv[], const char *input, char *err, size_t err_len)
{
	char path[PATH_LEN], said[SAID_LEN] = "";
	int said_fd[2] = {-1, -1}, in = -1, res;
	pid_t pid;

	res = find(argv[0], path);
	if (res == 0)
		in = res = input_file(input);
	if (res >= 0)
		res = pipe2(said_fd, O_CLOEXEC) ? -errno : 0;
	if (res == 0)
		res = spawn(&pid, path, argv, in, said_fd[1]);
	if (said_fd[1] >= 0)
		close(said_fd[1]);
	if (res == 0) {
		listen_to(said_fd[0], said);
		res = wait_for(pid);
	}
	if (res)
		snprintf(err, err_len, "%s: %s", argv[0], said[0] ? said : strerror(-res));
	if (said_fd[0] >= 0)
		close(said_fd[0]);
	if (in >= 0)
		close(in);
	return res;
}
