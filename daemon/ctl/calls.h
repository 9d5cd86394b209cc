/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Commands for many calls: list those that match a filter, and end them. */
#ifndef CTL_CALLS_H
#define CTL_CALLS_H

#include "ctl/args.h"
#include "proto/ngval.h"

/* Requests the calls that match the arguments, page by page, up to limit, and joins the pages into
 * one reply in the pool. 0, or -errno like client_call(). A refusal by the daemon is also a
 * reply. */
int calls_fetch(struct ngval **reply, struct pool *p, const struct args *a, uint32_t limit);

/* Prints them. Returns the exit status. */
int calls_run(const struct args *a);
/* Ends all matching calls after a confirmation. Returns the exit status. */
int calls_terminate(const struct args *a);

#endif
