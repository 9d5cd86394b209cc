/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reports the daemon's state to the service manager, by the protocol of sd_notify(3): datagrams to
 * the socket that the environment names. Without a manager nothing is sent and nothing fails. */
#ifndef APP_NOTIFY_H
#define APP_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

#include "worker/worker.h"

struct notify {
	int fd;        /* -1: no service manager */
	bool watchdog; /* the manager kills us if we stop reporting */
};

/* Reads and removes NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID, so that our child processes do
 * not use them. */
void notify_open(struct notify *n);
void notify_close(struct notify *n);
/* "READY=1", "STOPPING=1", "STATUS=..."; several with newlines between. */
void notify_send(const struct notify *n, const char *state);

enum { ALIVE_WORKERS = 64, ALIVE_SECONDS = 10 };

/* Checks whether the workers' loops still run. The control thread alone would not notice that a
 * worker hangs. */
struct alive {
	uint64_t rounds[ALIVE_WORKERS];
	uint32_t silent[ALIVE_WORKERS]; /* seconds */
};

/* Call it once a second. Wakes workers whose loop has not run since the last call. False: one has
 * not run for ALIVE_SECONDS; its index is in *which. */
bool alive_look(struct alive *a, struct worker *const *worker, uint32_t workers, uint32_t *which);

#endif
