// SPDX-License-Identifier: GPL-2.0-or-later
// A library to preload: it delays the threads of a program wherever they return from waiting or
// sending. A test that does not wait for the work of another thread then fails on an idle machine,
// too (t/late/README.md). LATE_SEED selects the delays. Of every half second, a thread is on time
// in three of six, else late by 1, 20 or 150 ms. It is late for at most 300 ms of a half second,
// like a thread on a busy machine: it still gets its work done.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 31) * 0x9e3779b97f4a7c15u;
	x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9u;
	return x ^ x >> 32;
}

static void be_late(void)
{
	static const long late_ms[] = {0, 0, 0, 1, 20, 150}, most_ms = 300;
	static _Thread_local uint64_t last;
	static _Thread_local long spent_ms;
	const char *seed = getenv("LATE_SEED");
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	uint64_t slot = (uint64_t)now.tv_sec * 2 + (now.tv_nsec >= 500000000);
	uint64_t who = mix((uint64_t)gettid() + ((uint64_t)(seed ? atoi(seed) : 0) << 32));
	long ms = late_ms[mix(who + slot) % 6];
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

int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	static int (*next)(pthread_cond_t *, pthread_mutex_t *);
	if (!next) // the old version of the symbol, which dlsym() finds, has another layout
		next = (__typeof__(next))dlvsym(RTLD_NEXT, "pthread_cond_wait", "GLIBC_2.3.2");
	return LATE(next(cond, mutex));
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
