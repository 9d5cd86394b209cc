/* SPDX-License-Identifier: GPL-2.0-or-later */
/* LD_PRELOAD for tests: CLOCK_REALTIME is ahead by CLOCK_SHIFT seconds, which may be negative. The
 * kernel stamps packets by the true clock, so it is not asked to: the daemon then takes its own. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

int clock_gettime(clockid_t id, struct timespec *ts)
{
	static int (*next)(clockid_t, struct timespec *);
	static long shift;
	int res;

	if (!next) {
		const char *text = getenv("CLOCK_SHIFT");

		shift = text ? atol(text) : 0;
		*(void **)&next = dlsym(RTLD_NEXT, "clock_gettime");
	}
	res = next(id, ts);
	if (!res && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
		ts->tv_sec += shift;
	return res;
}

int setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	static int (*next)(int, int, int, const void *, socklen_t);

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "setsockopt");
	if (level == SOL_SOCKET && (name == SO_TIMESTAMP || name == SO_TIMESTAMPNS))
		return 0;
	return next(fd, level, name, value, len);
}
