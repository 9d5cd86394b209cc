/* SPDX-License-Identifier: GPL-2.0-or-later */
/* xcipher-codec-worker PLUGIN.so: the program that runs a plug-in for a host, which
 * starts it with a socket as descriptor 3. It gives up its privileges, loads the plug-in, tests it
 * in a child, reports, and then forks a child for each stream. It never has keys: it starts as a
 * new program. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "codec/abuse.h"
#include "codec/helper_jail.h"
#include "codec/helper_stream.h"

enum { TEST_SECONDS = 20, TEST_ROUNDS = 20 };

/* Tests in a child: a crash is a reason to refuse. why is shared memory. */
static int test(const struct xcipher_codec_plugin *p, char *why)
{
	static const struct abuse_cfg cfg = {.rounds = TEST_ROUNDS, .seed = 1};
	int status = 0;
	pid_t pid = fork();

	if (pid < 0)
		return snprintf(why, CODEC_WHY_MAX, "no process to test it in"), -EAGAIN;
	if (pid == 0) {
		close(CODEC_CONTROL_FD);
		alarm(TEST_SECONDS);
		_exit(jail_stream() || abuse_plugin(p, &cfg, why) ? 1 : 0);
	}
	if (waitpid(pid, &status, 0) != pid)
		return -EAGAIN;
	why[CODEC_WHY_MAX - 1] = 0;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
		snprintf(why, CODEC_WHY_MAX, "a test does not return within %d s", TEST_SECONDS);
	else if (WIFSIGNALED(status))
		snprintf(why, CODEC_WHY_MAX, "it crashes when it is tested (signal %d)",
			WTERMSIG(status));
	else if (!why[0])
		snprintf(why, CODEC_WHY_MAX, "it ends the process that tests it");
	return -EINVAL;
}

static const struct xcipher_codec_plugin *load(const char *path, struct codec_hello *h)
{
	struct xcipher_codec_plugin *p = NULL;
	void *handle = NULL;
	char *why = mmap(
		NULL, CODEC_WHY_MAX, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	bool landlock = false;
	int rc = why == MAP_FAILED ? -ENOMEM : jail_load(path, &landlock);

	if (rc) {
		snprintf(h->why, sizeof(h->why), "isolation fails: %s", strerror(-rc));
		return NULL;
	}
	h->landlock = landlock;
	if (codec_check_open(path, &handle, &p, h->why))
		return NULL;
	if (test(p, why)) {
		snprintf(h->why, sizeof(h->why), "%s", why);
		return NULL;
	}
	h->loaded = 1;
	h->resampler = p->resampler != NULL;
	snprintf(h->name, sizeof(h->name), "%s", p->name);
	snprintf(h->version, sizeof(h->version), "%s", p->version);
	snprintf(h->license, sizeof(h->license), "%s", p->license);
	h->codecs = p->codecs;
	for (uint32_t i = 0; i < p->codecs; i++)
		codec_about_fill(&h->about[i], p->codec[i]);
	return p;
}

/* Receives a byte and two descriptors. False: the host has gone. */
static bool receive(int fd[2])
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(2 * sizeof(int))];
	} control = {0};
	char byte = 0;
	struct iovec v = {&byte, 1};
	struct msghdr m = {.msg_iov = &v,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes)};
	struct cmsghdr *c = NULL;

	fd[0] = fd[1] = -1;
	if (recvmsg(CODEC_CONTROL_FD, &m, MSG_CMSG_CLOEXEC) != 1)
		return false;
	c = CMSG_FIRSTHDR(&m);
	if (c && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(2 * sizeof(int)))
		memcpy(fd, CMSG_DATA(c), 2 * sizeof(int));
	return true;
}

static void answer(int32_t rc, int process)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct iovec v = {&rc, sizeof(rc)};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};

	if (process >= 0) {
		struct cmsghdr *c = NULL;

		m.msg_control = control.bytes;
		m.msg_controllen = sizeof(control.bytes);
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &process, sizeof(process));
	}
	sendmsg(CODEC_CONTROL_FD, &m, MSG_NOSIGNAL);
}

static void start_stream(const struct xcipher_codec_plugin *p, const int fd[2])
{
	pid_t parent = getpid(), pid = fork();
	int process = -1;

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(2);
		close(CODEC_CONTROL_FD);
		helper_stream(p, fd[0], fd[1]);
	}
	if (pid < 0) {
		answer(-errno, -1);
		return;
	}
	process = (int)syscall(__NR_pidfd_open, pid, 0);
	answer(process < 0 ? -errno : 0, process);
	if (process >= 0)
		close(process);
}

int main(int argc, char **argv)
{
	static struct codec_hello hello;
	const struct xcipher_codec_plugin *p = NULL;
	int fd[2], type = 0;
	socklen_t type_len = sizeof(type);

	if (argc != 2 || getsockopt(CODEC_CONTROL_FD, SOL_SOCKET, SO_TYPE, &type, &type_len)) {
		fprintf(stderr, "xcipher-codec-worker: a part of xcipherd, which starts it\n");
		return 2;
	}
	syscall(__NR_close_range, CODEC_CONTROL_FD + 1, ~0U, 0);
	signal(SIGPIPE, SIG_IGN);
	p = load(argv[1], &hello);
	if (write(CODEC_CONTROL_FD, &hello, sizeof(hello)) < 0 || !p)
		_exit(1);
	signal(SIGCHLD, SIG_IGN); /* ended streams leave no zombies */
	while (receive(fd)) {
		if (fd[0] < 0)
			continue;
		start_stream(p, fd);
		close(fd[0]);
		close(fd[1]);
	}
	_exit(0);
}
