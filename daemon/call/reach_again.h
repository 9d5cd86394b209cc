/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Checks all destinations again after the host's addresses changed. */
#ifndef CALL_REACH_AGAIN_H
#define CALL_REACH_AGAIN_H

#include "call/call.h"

/* Call it when answers of reach's callbacks may have changed: calls_reach_again() must run. */
void calls_host_changed(struct calls *c);

/* Checks signalled and learned destinations of a bounded number of calls, and removes forbidden
 * ones. Returns the time in ns until the next call; 0: all are checked. */
uint64_t calls_reach_again(struct calls *c, uint64_t now_ns);

#endif
