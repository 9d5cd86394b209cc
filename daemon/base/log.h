/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The log: syslog levels, to stderr, syslog or the journal. Only shell layers log (control, app, steer, engine set-up); pure code
 * returns errors. Never key material, never whole SDP bodies. Control characters of strangers do not come through. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdint.h>
#include <syslog.h>

#include "base/bytes.h"

/* level: LOG_EMERG .. LOG_DEBUG, the highest that is written. May be called again. */
void log_open(const char *ident, int level, int to_stderr);
/* From now on to the journal, by its native protocol, whose socket is this; in case it goes away, where log_open() said. Before
 * threads start. 0 or -errno. */
int log_journal(const char *path);
/* Whether what we write to standard error ends up in the journal (systemd.exec(5), $JOURNAL_STREAM). */
bool log_stderr_is_journal(void);
void log_set_level(int level);
int log_level(void);
void log_write(int level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* What a line is about. In the journal these are fields: CALL_ID, SIDE, STREAM; everywhere else they come before the text. */
struct log_about {
	struct str call_id, side; /* side: its tag; empty = not of one side */
	uint32_t media;           /* from 1, 0 = not of one media */
	const char *stream;       /* "RTP", "RTCP", NULL = not of one stream */
	bool always;              /* whatever the level: somebody wants to see this call */
};
void log_call(int level, const struct log_about *about, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#define log_err(...)   log_write(LOG_ERR, __VA_ARGS__)
#define log_warn(...)  log_write(LOG_WARNING, __VA_ARGS__)
#define log_info(...)  log_write(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_write(LOG_DEBUG, __VA_ARGS__)

/* However much happens, no more lines than this are written in a second: warnings and worse, notices, and the others, each. Then a line
 * says how many were held back. */
#define LOG_LINES_PER_SECOND 500u

/* For causes that can repeat thousands of times a second: true at most once per interval, and tells how often it was
 * held back meanwhile. One per cause, owned by one thread. */
struct log_limit {
	uint64_t next_ns;
	uint64_t held;
};
int log_limit_pass(struct log_limit *l, uint64_t now_ns, uint64_t interval_ns, uint64_t *held);

#define LOG_HELD 48u /* bytes */
/* " (3 more held back)" in room, or "" if nothing was held back. Returns room. */
const char *log_held(char room[LOG_HELD], uint64_t held);

#endif
