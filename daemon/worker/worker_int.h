/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of a worker. worker.c is its loop, worker_commands.c carries out commands,
 * worker_setup.c creates and destroys it. */
#ifndef WORKER_WORKER_INT_H
#define WORKER_WORKER_INT_H

#include "worker/worker.h"

#define CMD_RING 4096u
#define CMD_MANY \
	(CMD_RING / 2) /* more commands than this: the control thread may have a
				  * backlog */
#define MARK_RING 16384u

/* The worker's thread: runs until the worker is stopped. */
void *worker_loop(void *worker);
/* Executes queued commands: whole groups, until there were at least this many or none is left. Only
 * while no burst is in flight. */
void worker_commands(struct worker *w, uint32_t least);

#endif
