/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The log: syslog levels, to stderr or syslog. Only shell layers log (control, app, steer, engine set-up); pure code
 * returns errors. Never key material, never whole SDP bodies. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdint.h>
#include <syslog.h>

/* level: LOG_EMERG .. LOG_DEBUG, the highest that is written. May be called again. */
void log_open(const char *ident, int level, int to_stderr);
void log_set_level(int level);
int log_level(void);
void log_write(int level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define log_err(...)   log_write(LOG_ERR, __VA_ARGS__)
#define log_warn(...)  log_write(LOG_WARNING, __VA_ARGS__)
#define log_info(...)  log_write(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_write(LOG_DEBUG, __VA_ARGS__)

/* For causes that can repeat thousands of times a second: true at most once per interval, and tells how often it was
 * held back meanwhile. One per cause, owned by one thread. */
struct log_limit {
	uint64_t next_ns;
	uint64_t held;
};
int log_limit_pass(struct log_limit *l, uint64_t now_ns, uint64_t interval_ns, uint64_t *held);

#endif
