/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Implements virtual_time.h. These two functions replace those of the C library. */
#include "virtual_time.h"

#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ROUND_NS \
	50000ull           /* duration of a round, so that a loop that is always busy makes
                           * progress */
#define LOOK_NS     100ull /* between two readings of the clock, so that "now" is over within a round */
#define GRACE_MS    1      /* real time: packets on loopback may still be in flight */
#define PATIENCE_NS 600000000000ull

static uint64_t mono_ns = 1000000000000ull;
static bool begun;

void virtual_time_begin(void)
{
	begun = true;
}

void virtual_time_pass(uint64_t ns)
{
	mono_ns += ns;
}

uint64_t virtual_time_real_ns(void)
{
	struct timespec ts;

	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

bool virtual_time_patient(uint64_t start_ns)
{
	return virtual_time_real_ns() < start_ns + PATIENCE_NS;
}

int clock_gettime(clockid_t id, struct timespec *ts)
{
	if (id != CLOCK_MONOTONIC || !begun)
		return (int)syscall(SYS_clock_gettime, id, ts);
	mono_ns += LOOK_NS;
	ts->tv_sec = (time_t)(mono_ns / 1000000000ull);
	ts->tv_nsec = (long)(mono_ns % 1000000000ull);
	return 0;
}

int epoll_wait(int fd, struct epoll_event *ev, int max, int timeout_ms)
{
	bool jump = begun && timeout_ms > 0;
	int n = (int)syscall(SYS_epoll_pwait, fd, ev, max, jump ? GRACE_MS : timeout_ms, NULL, 0);

	if (begun)
		mono_ns += n == 0 && jump ? (uint64_t)timeout_ms * 1000000ull : ROUND_NS;
	return n;
}
