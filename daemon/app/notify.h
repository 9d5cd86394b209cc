/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Telling the service manager how we are: sd_notify(3)'s protocol, datagrams to the socket that the
 * environment names. Without a manager nothing is sent and nothing fails. */
#ifndef APP_NOTIFY_H
#define APP_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

#include "worker/worker.h"

struct notify {
	int fd;        /* -1: nobody wants to know */
	bool watchdog; /* the manager ends us when we fall silent */
};

/* Reads and removes NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID, which are not for programs that
 * we start. */
void notify_open(struct notify *n);
void notify_close(struct notify *n);
/* "READY=1", "STOPPING=1", "STATUS=..."; several with newlines between. */
void notify_send(const struct notify *n, const char *state);

enum { ALIVE_WORKERS = 64, ALIVE_SECONDS = 10 };

/* Whether workers still go round: a watchdog that only asked the control thread would see nothing
 * of the packets' threads. */
struct alive {
	uint64_t rounds[ALIVE_WORKERS];
	uint32_t silent[ALIVE_WORKERS]; /* seconds */
};

/* Once a second. Wakes whoever has not gone round since the last time. False: one has not for
 * ALIVE_SECONDS; its index is in *which. */
bool alive_look(struct alive *a, struct worker *const *worker, uint32_t workers, uint32_t *which);

#endif
