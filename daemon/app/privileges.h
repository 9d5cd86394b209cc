/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Capabilities (capabilities(7)) and user of the daemon. During the start it also has the
 * capabilities for low ports and limits. After the start every thread keeps only those that its
 * steering needs. Sets are bit masks, 1 << CAP_NAME. */
#ifndef APP_PRIVILEGES_H
#define APP_PRIVILEGES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct steer_ops;

/* Capabilities that this steering needs after the start: for verdicts, maps, links that return, and
 * removal of its rules. */
uint64_t privileges_of(const struct steer_ops *ops);
/* The capabilities that the daemon needs while it starts: those above, and more for loading BPF
 * programs. */
uint64_t privileges_to_start(const struct steer_ops *ops);
/* Call before any thread exists. Sets no_new_privs, lifts the limit of locked memory if it may, and
 * changes the user. user "": no change. group "": the user's group. The process keeps its
 * capabilities, except those that open files of other users; programs that it starts get keep. 0 or
 * -errno with err. */
int privileges_prepare(
	uint64_t keep, const char *user, const char *group, char *err, size_t err_len);
/* The group of this name or number: 0, or -ENOENT with err, which names the option. */
int privileges_group(const char *option, const char *group, gid_t *out, char *err, size_t err_len);
/* At the end of the start. Limits this thread to keep, and warns if another thread has more. 0 or
 * -errno. */
int privileges_drop(uint64_t keep);

#endif
