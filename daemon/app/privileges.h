/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Capabilities (capabilities(7)) and user of the daemon. It starts with what its steering, low ports and limits need; after the start
 * every thread keeps only what its steering needs later. Sets are bit masks, 1 << CAP_NAME. */
#ifndef APP_PRIVILEGES_H
#define APP_PRIVILEGES_H

#include <stddef.h>
#include <stdint.h>

struct steer_ops;

/* What this steering needs after the start: verdicts, maps, links that come back, and removing its rules. */
uint64_t privileges_of(const struct steer_ops *ops);
/* Before any thread exists: no program that we start gains privileges, locked memory is not limited if we may lift the limit, and we
 * change to that user. user "": stay who we are. group "": that of the user. Capabilities stay, and keep is handed on to programs
 * that we start. 0 or -errno with err. */
int privileges_prepare(
	uint64_t keep, const char *user, const char *group, char *err, size_t err_len);
/* Runs fn in a thread that keeps no others, and waits for it. For libraries that create threads. Returns fn's result or -errno. */
int privileges_run(uint64_t keep, int (*fn)(void *arg), void *arg);
/* At the end of the start. Limits this thread; the others must have been limited before: it checks that, and warns. 0 or -errno. */
int privileges_drop(uint64_t keep);

#endif
