/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The log. It has the only writable globals outside app/: passing a log to every function would
 * keep functions from logging. log_open() is called before threads start. Only the level may change
 * later. Lines go to the journal by its native protocol (systemd.io, JOURNAL_NATIVE_PROTOCOL):
 * KEY=value lines in a datagram, sent without waiting. */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define LINE_MAX_LEN 1024
#define NAME_MAX_LEN 128 /* Longest part of a Call-ID or tag that a line shows, in bytes. */

static _Atomic int level_max = LOG_INFO;
static int to_stderr_only = 1;
static const char *ident = "xcipher";
static int journal_fd = -1;
static struct sockaddr_un journal;

struct meter { /* number of lines in the current second */
	_Atomic uint64_t second;
	_Atomic uint32_t lines, held;
};
static struct meter meter[3]; /* warnings and above; notices; info and debug */

void log_open(const char *name, int level, int to_stderr)
{
	ident = name;
	to_stderr_only = to_stderr;
	atomic_store(&level_max, level);
	if (journal_fd >= 0)
		close(journal_fd);
	journal_fd = -1;
	if (!to_stderr)
		openlog(name, LOG_PID | LOG_NDELAY, LOG_DAEMON);
}

int log_journal(const char *path)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	int fd;

	if (strlen(path) >= sizeof(to.sun_path))
		return -ENAMETOOLONG;
	if (access(path, W_OK))
		return -errno;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	memcpy(to.sun_path, path, strlen(path) + 1);
	journal = to;
	journal_fd = fd;
	return 0;
}

bool log_stderr_is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long dev, ino;
	struct stat st;

	return stream && sscanf(stream, "%llu:%llu", &dev, &ino) == 2 &&
		fstat(STDERR_FILENO, &st) == 0 && st.st_dev == dev && st.st_ino == ino;
}

void log_set_level(int level)
{
	atomic_store(&level_max, level);
}

int log_level(void)
{
	return atomic_load(&level_max);
}

/* --- Destinations ----------------------------------------------------------------------------- */

static const char *printable(char out[NAME_MAX_LEN], struct str s)
{
	size_t n = s.len < NAME_MAX_LEN - 1 ? s.len : NAME_MAX_LEN - 1;

	for (size_t i = 0; i < n; i++)
		out[i] = s.s[i] >= 0x20 && s.s[i] < 0x7f ? s.s[i] : '?';
	out[n] = 0;
	return out;
}

/* Writes the call, side and stream before the text, or as fields of the journal. */
static size_t describe(char *out, size_t room, const struct log_about *a, bool fields)
{
	char call_id[NAME_MAX_LEN], side[NAME_MAX_LEN];
	char stream[48] = "";
	int n = 0;

	out[0] = 0;
	if (!a)
		return 0;
	if (a->media)
		snprintf(stream, sizeof(stream), "media %u%s%s", (unsigned)a->media,
			a->stream ? " " : "", a->stream ? a->stream : "");
	printable(call_id, a->call_id);
	printable(side, a->side);
	if (fields)
		n = snprintf(out, room, "%s%s%s%s%s%s%s%s%s", call_id[0] ? "CALL_ID=" : "", call_id,
			call_id[0] ? "\n" : "", side[0] ? "SIDE=" : "", side, side[0] ? "\n" : "",
			stream[0] ? "STREAM=" : "", stream, stream[0] ? "\n" : "");
	else if (call_id[0])
		n = snprintf(out, room, "call-id \"%s\"%s%s%s%s%s: ", call_id,
			side[0] ? ", tag \"" : "", side, side[0] ? "\"" : "", stream[0] ? ", " : "",
			stream);
	return n < 0 || (size_t)n >= room ? 0 : (size_t)n;
}

static bool to_journal(int level, const struct log_about *about, const char *line)
{
	char text[LINE_MAX_LEN + 1024], fields[512];
	int n;

	if (journal_fd < 0)
		return false;
	describe(fields, sizeof(fields), about, true);
	n = snprintf(text, sizeof(text),
		"PRIORITY=%d\nSYSLOG_FACILITY=3\nSYSLOG_IDENTIFIER=%s\n%sMESSAGE=%s\n", level & 7,
		ident, fields, line);
	if (n < 0 || (size_t)n >= sizeof(text))
		return false;
	return sendto(journal_fd, text, (size_t)n, MSG_NOSIGNAL, (struct sockaddr *)&journal,
		       sizeof(journal)) >= 0;
}

static void put(int level, const struct log_about *about, const char *line)
{
	static const char *const names[] = {
		"emerg", "alert", "crit", "error", "warning", "notice", "info", "debug"};
	struct timespec ts;
	struct tm tm;
	char when[32];

	if (to_journal(level, about, line))
		return;
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

/* --- Lines ------------------------------------------------------------------------------------ */

/* Counts a line. True if this second has room for it. Reports first how many lines were suppressed.
 */
static bool metered(int level)
{
	struct meter *m = &meter[(level > LOG_WARNING) + (level > LOG_NOTICE)];
	struct timespec ts;
	uint64_t second;
	uint32_t held;
	char line[96];

	clock_gettime(CLOCK_MONOTONIC, &ts);
	second = (uint64_t)ts.tv_sec;
	if (atomic_exchange(&m->second, second) != second) {
		atomic_store(&m->lines, 0);
		held = atomic_exchange(&m->held, 0);
		if (held) {
			snprintf(line, sizeof(line),
				"%u lines were suppressed: more than %u in a second",
				(unsigned)held, LOG_LINES_PER_SECOND);
			put(level > LOG_WARNING ? LOG_NOTICE : LOG_WARNING, NULL, line);
		}
	}
	if (atomic_fetch_add(&m->lines, 1) < LOG_LINES_PER_SECOND)
		return true;
	atomic_fetch_add(&m->held, 1);
	return false;
}

static void write_line(int level, const struct log_about *about, const char *fmt, va_list ap)
{
	char line[LINE_MAX_LEN];
	size_t at;

	if (!metered(level))
		return;
	at = describe(line, sizeof(line), about, false);
	vsnprintf(line + at, sizeof(line) - at, fmt, ap);
	/* Removes line breaks: one event is one line, and no text can add a field to the journal.
	 */
	for (char *c = line; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			*c = '?';
	put(level, about, line);
}

void log_write(int level, const char *fmt, ...)
{
	va_list ap;

	if (level > atomic_load_explicit(&level_max, memory_order_relaxed))
		return;
	va_start(ap, fmt);
	write_line(level, NULL, fmt, ap);
	va_end(ap);
}

void log_call(int level, const struct log_about *about, const char *fmt, ...)
{
	va_list ap;

	if (!about->always && level > atomic_load_explicit(&level_max, memory_order_relaxed))
		return;
	va_start(ap, fmt);
	write_line(level, about, fmt, ap);
	va_end(ap);
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

const char *log_held(char room[LOG_HELD], uint64_t held)
{
	room[0] = 0;
	if (held)
		snprintf(room, LOG_HELD, " (%llu more suppressed)", (unsigned long long)held);
	return room;
}
