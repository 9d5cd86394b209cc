/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What one short sleep costs a thread in processor time on this machine: programming the timer,
 * going to sleep, waking up on a processor that was halted. In a virtual machine that is most of
 * what a packet costs at ordinary rates, for every relay.
 *
 *   sleep_cost [MICROSECONDS [SECONDS]]
 *
 * Prints microseconds of processor time per sleep, the median of ten parts of the run. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#include "base/clock.h"

enum { PARTS = 10 };

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_SEC + (uint64_t)ts.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* As the worker sleeps: until a time, with a slack of a microsecond. */
static double cost_us(uint64_t sleep_ns, uint64_t run_ns)
{
	uint64_t end = clock_mono_ns() + run_ns, before = cpu_ns(), n = 0;

	for (; n == 0 || clock_mono_ns() < end; n++) {
		uint64_t until = clock_mono_ns() + sleep_ns;
		struct timespec ts = {(time_t)(until / NS_PER_SEC), (long)(until % NS_PER_SEC)};

		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
	}
	return (double)(cpu_ns() - before) / 1e3 / (double)n;
}

int main(int argc, char **argv)
{
	double sleep_us = argc > 1 ? atof(argv[1]) : 250, seconds = argc > 2 ? atof(argv[2]) : 1;
	double part[PARTS];

	if (sleep_us <= 0 || seconds <= 0) {
		fprintf(stderr, "usage: sleep_cost [MICROSECONDS [SECONDS]]\n");
		return 2;
	}
	prctl(PR_SET_TIMERSLACK, 1000ul, 0, 0, 0);
	for (int i = 0; i < PARTS; i++)
		part[i] = cost_us(
			(uint64_t)(sleep_us * 1e3), (uint64_t)(seconds * NS_PER_SEC / PARTS));
	qsort(part, PARTS, sizeof(*part), by_value);
	printf("%.2f\n", part[PARTS / 2]);
	return 0;
}
