/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Checks calls periodically, and reports one-way media and failed authentication. */
#ifndef CALL_WATCH_H
#define CALL_WATCH_H

#include "call/call.h"

struct call;

struct call_trouble {            /* began, or is over */
	struct str call_id, tag; /* of the party whose media are affected */
	uint32_t media;          /* m-line from 1; 0 = the whole call */
	const char *name;        /* of enum sight_trouble (call/sight.h) */
	struct str text;         /* what is wrong, and its likely cause */
};

/* Called by calls_tick(), a few times per call at most. */
void calls_on_trouble(
	struct calls *c, void (*trouble)(void *arg, const struct call_trouble *t), void *arg);

/* Once a second: notes learned addresses and reports troubles (watch.c). */
void watch_call(struct calls *c, struct call *call, uint64_t now_ns);

#endif
