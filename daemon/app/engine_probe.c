/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See engine_probe.h. The child sends its result through one pipe and the library's output through
 * another. It leads a process group, because it starts children of its own (opencl_probe.c). */
#include "app/engine_probe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "batch/engine.h"
#include "batch/run.h"
#include "batch/selftest.h"

struct result {
	int res;
	char err[384];
};

struct child {
	pid_t pid;
	int result_fd, said_fd;
	struct result result;
	size_t result_len;
	char said[1024]; /* the last that the library printed */
	size_t said_len;
	bool in_time;
	int status; /* of waitpid() */
};

int engine_open_checked(const struct engine_ops *ops, struct engine **out,
	const struct engine_config *cfg, char *err, size_t err_len)
{
	int res;

	err[0] = 0;
	res = ops->open(out, cfg, err, err_len);
	if (!res) {
		res = batch_selftest(ops, *out, err, err_len);
		if (res) {
			ops->close(*out);
			*out = NULL;
		}
	}
	if (res && !err[0])
		snprintf(err, err_len, "%s: %s", ops->name, strerror(-res));
	return res;
}

/* --- The child -------------------------------------------------------------------------------- */

static _Noreturn void try_engine(const struct engine_ops *ops, const struct engine_config *cfg,
	int result_fd, int said_fd, pid_t parent)
{
	static const int own[] = {SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTERM, SIGALRM};
	const struct rlimit none = {0, 0};
	struct result r = {0};
	struct engine *e;

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	setrlimit(RLIMIT_CORE, &none);
	for (size_t i = 0; i < ARRAY_LEN(own); i++)
		signal(own[i], SIG_DFL);
	dup2(said_fd, STDOUT_FILENO);
	dup2(said_fd, STDERR_FILENO);
	r.res = engine_open_checked(ops, &e, cfg, r.err, sizeof(r.err));
	if (!r.res)
		ops->close(e);
	_exit(write(result_fd, &r, sizeof(r)) == sizeof(r) ? 0 : 1);
}

/* --- The parent ------------------------------------------------------------------------------- */

static int start(struct child *c, const struct engine_ops *ops, const struct engine_config *cfg)
{
	int result[2], said[2];
	pid_t parent = getpid();

	if (pipe2(result, O_CLOEXEC))
		return -errno;
	if (pipe2(said, O_CLOEXEC)) {
		close(result[0]);
		close(result[1]);
		return -errno;
	}
	c->pid = fork();
	if (c->pid == 0)
		try_engine(ops, cfg, result[1], said[1], parent);
	close(result[1]);
	close(said[1]);
	c->result_fd = result[0];
	c->said_fd = said[0];
	return c->pid < 0 ? -errno : 0;
}

/* Keeps the end of the output. False: end of file. */
static bool hear(struct child *c)
{
	size_t half = sizeof(c->said) / 2;
	ssize_t n;

	if (c->said_len > half) {
		memmove(c->said, c->said + c->said_len - half, half);
		c->said_len = half;
	}
	n = read(c->said_fd, c->said + c->said_len, sizeof(c->said) - 1 - c->said_len);
	if (n > 0)
		c->said_len += (size_t)n;
	return n > 0 || (n < 0 && errno == EINTR);
}

/* False: end of file. */
static bool take_result(struct child *c)
{
	ssize_t n = read(c->result_fd, (char *)&c->result + c->result_len,
		sizeof(c->result) - c->result_len);

	if (n > 0)
		c->result_len += (size_t)n;
	return n > 0 || (n < 0 && errno == EINTR);
}

/* Reads until the child ends. False: its time is over. */
static bool follow(struct child *c, uint32_t seconds)
{
	uint64_t end = clock_mono_ns() + seconds * NS_PER_SEC, now;
	struct pollfd p[] = {
		{.fd = c->result_fd, .events = POLLIN}, {.fd = c->said_fd, .events = POLLIN}};

	while (p[0].fd >= 0 && c->result_len < sizeof(c->result)) {
		now = clock_mono_ns();
		if (now >= end)
			return false;
		if (poll(p, 2, (int)((end - now) / 1000000) + 1) <= 0)
			continue;
		if (p[1].revents && !hear(c))
			p[1].fd = -1;
		if (p[0].revents && !take_result(c))
			p[0].fd = -1;
	}
	return true;
}

/* The last line that the library printed, or "". */
static const char *last_line(struct child *c)
{
	char *line;

	while (c->said_len && (unsigned char)c->said[c->said_len - 1] <= ' ')
		c->said_len--;
	c->said[c->said_len] = 0;
	for (size_t i = 0; i < c->said_len; i++)
		if ((unsigned char)c->said[i] < ' ' && c->said[i] != '\n')
			c->said[i] = ' ';
	line = strrchr(c->said, '\n');
	return line ? line + 1 : c->said;
}

static int judge(
	struct child *c, const struct engine_ops *ops, uint32_t seconds, char *err, size_t err_len)
{
	const char *said = last_line(c);

	if (c->result_len == sizeof(c->result)) {
		c->result.err[sizeof(c->result.err) - 1] = 0;
		snprintf(err, err_len, "%s", c->result.err);
		return c->result.res;
	}
	if (!c->in_time) {
		snprintf(err, err_len,
			"%s: the library did not finish its start within %u s (--opencl-start-timeout) in a child process. Check its driver with clinfo%s%.200s",
			ops->name, seconds, said[0] ? "; it printed: " : "", said);
		return -ETIMEDOUT;
	}
	snprintf(err, err_len,
		"%s: the library crashed in a child process at start (signal %d, %s). Check clinfo, the driver, and that /sys and /proc are mounted; or set --engine=serial%s%.200s",
		ops->name, WIFSIGNALED(c->status) ? WTERMSIG(c->status) : 0,
		WIFSIGNALED(c->status) ? strsignal(WTERMSIG(c->status)) : "it ended by itself",
		said[0] ? "; it printed: " : "", said);
	return -ECHILD;
}

int engine_probe(const struct engine_ops *ops, const struct engine_config *cfg, uint32_t seconds,
	char *err, size_t err_len)
{
	struct child c = {.pid = -1};
	int res = start(&c, ops, cfg);

	if (res) {
		snprintf(err, err_len, "%s: cannot start a child process to test it: %s", ops->name,
			strerror(-res));
		return res;
	}
	c.in_time = follow(&c, seconds);
	/* Kills its own children and a child that hangs. A child that has sent its result has
	 * finished. */
	if (!c.in_time || c.result_len == sizeof(c.result)) {
		kill(-c.pid, SIGKILL);
		kill(c.pid, SIGKILL);
	}
	while (waitpid(c.pid, &c.status, 0) < 0 && errno == EINTR)
		;
	close(c.result_fd);
	while (c.said_len < sizeof(c.said) / 2 && hear(&c))
		;
	close(c.said_fd);
	return judge(&c, ops, seconds, err, err_len);
}
