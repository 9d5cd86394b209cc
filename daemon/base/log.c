/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The log. The one place outside app/ with a writable global: a log that had to be passed everywhere would be left out where
 * it is needed most. Set up once before threads start; only the level may change later. */
#include "base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

static _Atomic int level_max = LOG_INFO;
static int to_stderr_only = 1;
static const char *ident = "xcipher";

void log_open(const char *name, int level, int to_stderr)
{
	ident = name;
	to_stderr_only = to_stderr;
	atomic_store(&level_max, level);
	if (!to_stderr)
		openlog(name, LOG_PID | LOG_NDELAY, LOG_DAEMON);
}

void log_set_level(int level)
{
	atomic_store(&level_max, level);
}

int log_level(void)
{
	return atomic_load(&level_max);
}

void log_write(int level, const char *fmt, ...)
{
	static const char *const names[] = {
		"emerg", "alert", "crit", "error", "warning", "notice", "info", "debug"};
	struct timespec ts;
	struct tm tm;
	char line[1024], when[32];
	va_list ap;

	if (level > atomic_load_explicit(&level_max, memory_order_relaxed))
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (!to_stderr_only) {
		syslog(level, "%s", line);
		return;
	}
	clock_gettime(CLOCK_REALTIME, &ts);
	localtime_r(&ts.tv_sec, &tm);
	strftime(when, sizeof(when), "%H:%M:%S", &tm);
	fprintf(stderr, "%s.%03ld %s %s: %s\n", when, ts.tv_nsec / 1000000, ident, names[level & 7],
		line);
}

int log_limit_pass(struct log_limit *l, uint64_t now_ns, uint64_t interval_ns, uint64_t *held)
{
	if (now_ns < l->next_ns) {
		l->held++;
		return 0;
	}
	*held = l->held;
	l->held = 0;
	l->next_ns = now_ns + interval_ns;
	return 1;
}
