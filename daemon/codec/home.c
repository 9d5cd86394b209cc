/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "codec/home.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

/* Of one call. xcipher_codec.h allows a millisecond for 20 ms of audio, of which a call has at most
 * 120 ms: 6 ms. */
#define CALL_CPU_NS 20000000ull

void codec_home_defaults(struct codec_home_cfg *cfg)
{
	*cfg = (struct codec_home_cfg){.load_ms = 60000,
		.start_ms = 1000,
		.answer_ms = 100,
		.hangs = 10,
		.per_stream = 3,
		.per_minute = 60};
}

bool codec_budget_take(struct codec_budget *b, uint64_t now_ns)
{
	if (b->since_ns == 0 || now_ns >= b->since_ns + 60 * NS_PER_SEC) {
		b->since_ns = now_ns;
		b->left = b->per_minute;
	}
	if (b->left == 0)
		return false;
	b->left--;
	return true;
}

uint32_t codec_home_patience(const struct codec_home *h, uint64_t now_ns)
{
	bool hasty = now_ns < atomic_load_explicit(&h->hasty_until_ns, memory_order_relaxed);

	return hasty ? h->cfg.answer_ms / 10 : h->cfg.answer_ms;
}

void codec_home_hung(struct codec_home *h, uint64_t now_ns)
{
	h->faults.hung++;
	pthread_mutex_lock(&h->lock);
	if (!codec_budget_take(&h->hangs, now_ns))
		atomic_store_explicit(
			&h->hasty_until_ns, now_ns + 60 * NS_PER_SEC, memory_order_relaxed);
	pthread_mutex_unlock(&h->lock);
}

/* --- Starting the program --------------------------------------------------------------------- */

/* It gets no environment, and no descriptors but the socket. */
static int spawn(struct codec_home *h, int theirs)
{
	char *argv[] = {(char *)h->cfg.program, (char *)h->cfg.plugin, NULL}, *env[] = {NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none;
	int rc = 0;

	sigemptyset(&none);
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	posix_spawn_file_actions_adddup2(&actions, theirs, CODEC_CONTROL_FD);
	for (int fd = 0; fd < CODEC_CONTROL_FD; fd++)
		posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
	rc = posix_spawn(&h->pid, h->cfg.program, &actions, &attr, argv, env);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attr);
	return -rc;
}

/* Waits until there is something to read. False: time is up. */
static bool readable(int fd, uint32_t ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	uint64_t end = clock_mono_ns() + (uint64_t)ms * 1000000;
	int rc = 0;

	for (;;) {
		uint64_t now = clock_mono_ns();

		rc = poll(&p, 1, now >= end ? 0 : (int)((end - now + 999999) / 1000000));
		if (rc > 0)
			return true;
		if ((rc < 0 && errno != EINTR) || now >= end)
			return false;
	}
}

static void printable(char *s, size_t size)
{
	s[size - 1] = 0;
	for (; *s; s++)
		if (*s < ' ' || *s > '~')
			*s = '?';
}

/* Checks the description that the process of a plug-in sent. */
static int check_hello(struct codec_hello *h, char *why)
{
	printable(h->why, sizeof(h->why));
	printable(h->name, sizeof(h->name));
	printable(h->version, sizeof(h->version));
	printable(h->license, sizeof(h->license));
	if (!h->loaded) {
		snprintf(why, CODEC_WHY_MAX, "%s", h->why);
		return -EINVAL;
	}
	if (h->codecs > XCIPHER_CODEC_MAX_CODECS)
		return -EINVAL;
	for (uint32_t i = 0; i < h->codecs; i++)
		if (codec_about_check(&h->about[i]))
			return -EINVAL;
	return 0;
}

/* Whether the program ends within start_ms. A plug-in may use or close the program's socket, and
 * then not end. */
static bool has_ended(const struct codec_home *h)
{
	int process = (int)syscall(__NR_pidfd_open, h->pid, 0);
	bool ended = process >= 0 && readable(process, h->cfg.start_ms);

	if (process >= 0)
		close(process);
	return ended;
}

static int await_hello(struct codec_home *h, char *why)
{
	ssize_t n = 0;
	int rc = -EINVAL, status = 0;

	if (!readable(h->sock, h->cfg.load_ms)) {
		snprintf(why, CODEC_WHY_MAX, "it does not load and pass its tests within %u ms",
			h->cfg.load_ms);
		return -ETIMEDOUT;
	}
	n = recv(h->sock, &h->hello, sizeof(h->hello), MSG_DONTWAIT);
	if (n == (ssize_t)sizeof(h->hello)) {
		rc = check_hello(&h->hello, why);
		if (rc && !why[0])
			snprintf(why, CODEC_WHY_MAX, "it describes itself wrongly");
		return rc;
	}
	if (!has_ended(h)) {
		snprintf(
			why, CODEC_WHY_MAX, "it writes to the socket of its program, or closes it");
	} else if (waitpid(h->pid, &status, 0) == h->pid) {
		h->pid = 0;
		if (WIFSIGNALED(status))
			snprintf(why, CODEC_WHY_MAX, "it crashes when it is loaded (signal %d)",
				WTERMSIG(status));
		else
			snprintf(why, CODEC_WHY_MAX,
				"its program ends when it is loaded (status %d)",
				WEXITSTATUS(status));
	}
	return rc;
}

int codec_home_begin(struct codec_home **out, const struct codec_home_cfg *cfg, char *why)
{
	struct codec_home *h = calloc(1, sizeof(*h));
	int pair[2], rc = 0;

	why[0] = 0;
	if (!h)
		return -ENOMEM;
	h->cfg = *cfg;
	h->budget.per_minute = cfg->per_minute;
	h->hangs.per_minute = cfg->hangs;
	h->sock = -1;
	pthread_mutex_init(&h->lock, NULL);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) {
		rc = -errno;
	} else {
		h->sock = pair[0];
		rc = spawn(h, pair[1]);
		close(pair[1]);
		if (rc) {
			h->pid = 0;
			snprintf(why, CODEC_WHY_MAX,
				"%.100s cannot be started: %s (--codec-worker)", cfg->program,
				strerror(-rc));
		}
	}
	if (rc) {
		codec_home_destroy(h);
		return rc;
	}
	*out = h;
	return 0;
}

int codec_home_await(struct codec_home *h, char *why)
{
	int rc = await_hello(h, why);

	if (rc)
		codec_home_destroy(h);
	return rc;
}

int codec_home_create(struct codec_home **out, const struct codec_home_cfg *cfg, char *why)
{
	struct codec_home *h = NULL;
	int rc = codec_home_begin(&h, cfg, why);

	rc = rc ? rc : codec_home_await(h, why);
	if (rc == 0)
		*out = h;
	return rc;
}

void codec_home_destroy(struct codec_home *h)
{
	if (!h)
		return;
	if (h->sock >= 0)
		close(h->sock);
	if (h->pid > 0) {
		kill(h->pid, SIGKILL);
		waitpid(h->pid, NULL, 0);
	}
	pthread_mutex_destroy(&h->lock);
	free(h);
}

/* --- A process per stream --------------------------------------------------------------------- */

static int send_two(int sock, int first, int second)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(2 * sizeof(int))];
	} control = {0};
	struct iovec v = {"", 1};
	struct msghdr m = {.msg_iov = &v,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	int fd[2] = {first, second};

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(c), fd, sizeof(fd));
	return sendmsg(sock, &m, MSG_NOSIGNAL | MSG_DONTWAIT) == 1 ? 0 : -EPIPE;
}

/* A number that a line of a file in /proc starts with, after its name; -1: there is none. */
static long proc_number(const char *path, const char *name)
{
	FILE *f = fopen(path, "re");
	char line[256];
	long n = -1;

	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, name, strlen(name)) == 0)
			n = strtol(line + strlen(name), NULL, 10);
	if (f)
		fclose(f);
	return n;
}

/* The host will kill the process of this descriptor. The plug-in may control the program that sent
 * it, so only children of that program are accepted. */
static bool is_child(const struct codec_home *h, int process, pid_t *out)
{
	char path[64];
	long pid = 0;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", process);
	pid = proc_number(path, "Pid:");
	if (pid <= 0)
		return false;
	*out = (pid_t)pid;
	snprintf(path, sizeof(path), "/proc/%ld/status", pid);
	/* the descriptor still names it, so that the number was not used again meanwhile */
	return proc_number(path, "PPid:") == h->pid &&
		syscall(__NR_pidfd_send_signal, process, 0, NULL, 0) == 0;
}

/* Takes the descriptor of an answer, and closes any that should not be there. */
static int descriptor_of(struct msghdr *m)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(m);
	int fd[2] = {-1, -1};
	size_t n = 0;

	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
		return -1;
	n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	memcpy(fd, CMSG_DATA(c), (n < 2 ? n : 2) * sizeof(int));
	if (n == 1)
		return fd[0];
	for (size_t i = 0; i < n && i < 2; i++)
		close(fd[i]);
	return -1;
}

/* -ETIMEDOUT: no answer within so many ms. */
static int receive_one(struct codec_home *h, uint32_t ms, struct codec_process *out)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {0};
	int32_t rc = -EPIPE;
	struct iovec v = {&rc, sizeof(rc)};
	struct msghdr m = {.msg_iov = &v,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes)};
	int fd = -1;

	if (!readable(h->sock, ms))
		return -ETIMEDOUT;
	if (recvmsg(h->sock, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) != (ssize_t)sizeof(rc))
		return -EPIPE;
	fd = descriptor_of(&m);
	if (fd < 0)
		return rc < 0 && rc > -4096 ? rc : -EPIPE;
	if (!is_child(h, fd, &out->pid)) {
		close(fd);
		return -EPIPE;
	}
	out->process = fd;
	return 0;
}

/* Takes answers that came too late, and kills their processes. False: one is still owed. */
static bool settled(struct codec_home *h)
{
	for (; h->owed; h->owed--) {
		struct codec_process late = {.sock = -1, .process = -1};

		if (receive_one(h, 0, &late) == -ETIMEDOUT)
			return false;
		codec_process_end(&late);
	}
	return true;
}

/* With the lock held: the codec thread and the control thread wait for it. */
static int ask(struct codec_home *h, int memory, int theirs, struct codec_process *out)
{
	int rc = settled(h) ? send_two(h->sock, memory, theirs) : -EPIPE;

	rc = rc ? rc : receive_one(h, h->cfg.start_ms, out);
	if (rc != -ETIMEDOUT)
		return rc;
	h->owed++;
	h->faults.silent++;
	return -EPIPE;
}

/* Memory that neither end can shrink: reading it never raises SIGBUS. */
static int shared_memory(struct codec_shared **out)
{
	int fd = memfd_create("xcipher-codec", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	void *map = MAP_FAILED;

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, sizeof(**out)) == 0 &&
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
		map = mmap(NULL, sizeof(**out), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED) {
		close(fd);
		return -ENOMEM;
	}
	*out = map;
	return fd;
}

int codec_home_start(struct codec_home *h, struct codec_process *out)
{
	struct codec_process p = {.sock = -1, .process = -1};
	int pair[2], memory = shared_memory(&p.shared), rc = 0;

	if (memory < 0)
		return memory;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) {
		rc = -errno;
	} else {
		p.sock = pair[0];
		pthread_mutex_lock(&h->lock);
		rc = ask(h, memory, pair[1], &p);
		pthread_mutex_unlock(&h->lock);
		close(pair[1]);
	}
	close(memory);
	if (rc)
		codec_process_end(&p);
	else
		*out = p;
	return rc;
}

/* The processor time that the process has used. 0: unknown. */
static uint64_t computed_ns(pid_t pid)
{
	struct timespec ts;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &ts))
		return 0;
	return (uint64_t)ts.tv_sec * NS_PER_SEC + (uint64_t)ts.tv_nsec;
}

static bool sleeps(pid_t pid)
{
	char path[64], line[256];
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%ld/status", (long)pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		found |= strncmp(line, "State:\tS", 8) == 0;
	if (f)
		fclose(f);
	return found;
}

bool codec_process_hangs(const struct codec_process *p, struct codec_look *look)
{
	struct codec_look before = *look;
	uint64_t now = computed_ns(p->pid);

	*look = (struct codec_look){.begun = true,
		.asleep = sleeps(p->pid),
		.first_ns = before.begun ? before.first_ns : now,
		.last_ns = now};
	return before.begun &&
		(now > before.first_ns + CALL_CPU_NS ||
			(before.asleep && look->asleep && now == before.last_ns));
}

void codec_process_end(struct codec_process *p)
{
	if (p->process >= 0) {
		syscall(__NR_pidfd_send_signal, p->process, SIGKILL, NULL, 0);
		close(p->process);
	}
	if (p->sock >= 0)
		close(p->sock);
	if (p->shared)
		munmap(p->shared, sizeof(*p->shared));
	*p = (struct codec_process){.sock = -1, .process = -1};
}
