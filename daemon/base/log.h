/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The log: syslog levels, to stderr, syslog or the journal. Only shell layers log (control, app,
 * steer, engine set-up); pure code returns errors. Never key material, never whole SDP bodies.
 * Control characters in foreign text are replaced. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdint.h>
#include <syslog.h>

#include "base/bytes.h"

/* level: LOG_EMERG .. LOG_DEBUG, the least severe level that is written. May be called again. */
void log_open(const char *ident, int level, int to_stderr);
/* Sends all further lines to the journal by its native protocol, at this socket. If the journal
 * disappears, lines go where log_open() said. Call it before threads start. 0 or -errno. */
int log_journal(const char *path);
/* Whether the journal receives our standard error (systemd.exec(5), $JOURNAL_STREAM). */
bool log_stderr_is_journal(void);
void log_set_level(int level);
int log_level(void);
void log_write(int level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The subject of a line. In the journal these are fields: CALL_ID, SIDE, STREAM. Elsewhere they
 * precede the text. */
struct log_about {
	struct str call_id, side; /* side: its tag; empty = the whole call */
	uint32_t media;           /* from 1, 0 = no single m-line */
	const char *stream;       /* "RTP", "RTCP", NULL = no single stream */
	bool always;              /* write at every level: debugging of this call is on */
};
void log_call(int level, const struct log_about *about, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#define log_err(...)   log_write(LOG_ERR, __VA_ARGS__)
#define log_warn(...)  log_write(LOG_WARNING, __VA_ARGS__)
#define log_info(...)  log_write(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_write(LOG_DEBUG, __VA_ARGS__)

/* Limit of lines per second, for each of: warnings and above, notices, the others. Further lines
 * are suppressed, and a line reports their number. */
#define LOG_LINES_PER_SECOND 500u

/* Limits messages whose cause can repeat thousands of times a second: true at most once per
 * interval. *held: number of suppressed ones before. One per cause, owned by one thread. */
struct log_limit {
	uint64_t next_ns;
	uint64_t held;
};
int log_limit_pass(struct log_limit *l, uint64_t now_ns, uint64_t interval_ns, uint64_t *held);

#define LOG_HELD 48u /* bytes */
/* Writes " (3 more held back)" to room, or "" if held is 0. Returns room. */
const char *log_held(char room[LOG_HELD], uint64_t held);

#endif
