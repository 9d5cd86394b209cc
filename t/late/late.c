// SPDX-License-Identifier: GPL-2.0-or-later
// A library to preload: it delays the threads of a program wherever they return from waiting or
// sending. A test that does not wait for the work of another thread then fails on an idle machine,
// too (t/late/README.md). LATE_SEED selects the delays. Of every half second, a thread is on time
// in three of six, else late by 1, 20 or 150 ms. It is late for at most 300 ms of a half second,
// like a thread on a busy machine: it still gets its work done. With LATE_THREAD, only threads
// whose name begins so are late, and always by 150 ms.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 31) * 0x9e3779b97f4a7c15u;
	x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9u;
	return x ^ x >> 32;
}

/* How late this thread is in this half second, in ms. */
static long lateness(uint64_t slot)
{
	static const long late_ms[] = {0, 0, 0, 1, 20, 150};
	const char *seed = getenv("LATE_SEED"), *only = getenv("LATE_THREAD");
	char name[16] = "";
	if (only && *only) {
		prctl(PR_GET_NAME, name);
		return strncmp(name, only, strlen(only)) == 0 ? 150 : 0;
	}
	uint64_t who = mix((uint64_t)gettid() + ((uint64_t)(seed ? atoi(seed) : 0) << 32));
	return late_ms[mix(who + slot) % 6];
}

static void be_late(void)
{
	static const long most_ms = 300;
	static _Thread_local uint64_t last;
	static _Thread_local long spent_ms;
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	uint64_t slot = (uint64_t)now.tv_sec * 2 + (now.tv_nsec >= 500000000);
	long ms = lateness(slot);
	if (slot != last)
		spent_ms = 0;
	last = slot;
	spent_ms += ms;
	if (ms && spent_ms <= most_ms)
		nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

#define NEXT(name)                     \
	static __typeof__(&name) next; \
	if (!next)                     \
	next = (__typeof__(&name))dlsym(RTLD_NEXT, #name)
#define LATE(call)                               \
	({                                       \
		__typeof__(call) result_ = call; \
		int error_ = errno;              \
		be_late();                       \
		errno = error_;                  \
		result_;                         \
	})

int epoll_wait(int fd, struct epoll_event *events, int max, int timeout)
{
	NEXT(epoll_wait);
	return LATE(next(fd, events, max, timeout));
}

int poll(struct pollfd *fds, nfds_t n, int timeout)
{
	NEXT(poll);
	return LATE(next(fds, n, timeout));
}

int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask)
{
	NEXT(ppoll);
	return LATE(next(fds, n, timeout, mask));
}

int select(int n, fd_set *in, fd_set *out, fd_set *except, struct timeval *timeout)
{
	NEXT(select);
	return LATE(next(n, in, out, except, timeout));
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *at, struct timespec *left)
{
	NEXT(clock_nanosleep);
	return LATE(next(clock, flags, at, left));
}

/* The new version of a symbol. dlsym() finds the old one, which has another layout, where there are
 * two. */
static void *newer(const char *name)
{
	void *found = dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2");
	return found ? found : dlsym(RTLD_NEXT, name);
}

int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	static int (*next)(pthread_cond_t *, pthread_mutex_t *);
	if (!next)
		next = (__typeof__(next))newer("pthread_cond_wait");
	return LATE(next(cond, mutex));
}

int pthread_cond_timedwait(
	pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *until)
{
	static int (*next)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
	if (!next)
		next = (__typeof__(next))newer("pthread_cond_timedwait");
	return LATE(next(cond, mutex, until));
}

int recvmmsg(int fd, struct mmsghdr *message, unsigned int n, int flags, struct timespec *timeout)
{
	NEXT(recvmmsg);
	return LATE(next(fd, message, n, flags, timeout));
}

int sendmmsg(int fd, struct mmsghdr *message, unsigned int n, int flags)
{
	NEXT(sendmmsg);
	return LATE(next(fd, message, n, flags));
}

ssize_t send(int fd, const void *data, size_t len, int flags)
{
	NEXT(send);
	return LATE(next(fd, data, len, flags));
}

ssize_t sendto(int fd, const void *data, size_t len, int flags, const struct sockaddr *to,
	socklen_t to_len)
{
	NEXT(sendto);
	return LATE(next(fd, data, len, flags, to, to_len));
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	NEXT(sendmsg);
	return LATE(next(fd, message, flags));
}

/* Wakes another thread, by an eventfd. */
ssize_t write(int fd, const void *data, size_t len)
{
	NEXT(write);
	return LATE(next(fd, data, len));
}

/* io_uring_enter() */
long syscall(long number, ...)
{
	static long (*next)(long, ...);
	va_list list;
	long a[6];
	if (!next)
		next = (__typeof__(next))dlsym(RTLD_NEXT, "syscall");
	va_start(list, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(list, long);
	va_end(list);
	if (number != SYS_io_uring_enter)
		return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
	return LATE(next(number, a[0], a[1], a[2], a[3], a[4], a[5]));
}
