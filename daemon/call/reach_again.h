/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Checks all destinations again after the host's addresses changed. */
#ifndef CALL_REACH_AGAIN_H
#define CALL_REACH_AGAIN_H

#include "call/call.h"

/* The answers of reach's callbacks changed: calls_reach_again() is to be called. */
void calls_host_changed(struct calls *c);

/* Judges the destinations of a bounded number of calls again, signalled and learned, and cuts those
 * that are not allowed now. Returns after how many nanoseconds it is to be called once more; 0: all
 * calls are judged. */
uint64_t calls_reach_again(struct calls *c, uint64_t now_ns);

#endif
