/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Commands about many calls: pages of a filtered list, and their end. */
#ifndef CTL_CALLS_H
#define CTL_CALLS_H

#include "ctl/args.h"
#include "proto/ngval.h"

/* Asks for calls that match the arguments, page by page, up to limit, and makes one reply of the
 * pages. The reply lives in the pool. 0, or -errno as of client_call(); the daemon's refusal is a
 * reply too. */
int calls_fetch(struct ngval **reply, struct pool *p, const struct args *a, uint32_t limit);

/* Shows them. The exit status. */
int calls_run(const struct args *a);
/* Ends all calls that match, after a question. The exit status. */
int calls_terminate(const struct args *a);

#endif
