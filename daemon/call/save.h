/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calls that outlive us: what there is to be written elsewhere, and how it comes back. Whoever writes it (control/redis.c) sees
 * bytes only. They hold keys in the clear: they are to be encrypted, and wiped. Control thread only. */
#ifndef CALL_SAVE_H
#define CALL_SAVE_H

#include "call/call.h"

enum save_what {
	SAVE_CALL,  /* all of a call */
	SAVE_STATE, /* only what packets change: indexes, learned addresses */
	SAVE_ENDED, /* there is no such call any more */
};

#define SAVE_ID_MAX 4096
struct save_item {
	enum save_what what;
	char call_id[SAVE_ID_MAX]; /* calls with longer ones are not saved */
	size_t call_id_len;
};

/* From now on changes are remembered; all calls count as changed. */
void calls_save_start(struct calls *c);
/* How far the clock that all nodes can read is ahead of this node's CLOCK_REALTIME. Records carry the shared time, so that their age
 * does not depend on the clocks of two nodes. */
void calls_shared_clock(struct calls *c, int64_t ahead_ns);
/* All over again: what was written is not known any more. */
void calls_save_all(struct calls *c);
/* Every CALLS_SAVE_TICK_NS: finds out where the next calls' indexes stand; each call is looked at once in CALLS_SAVE_ROUND_NS.
 * renew_ns: what was written that long ago is written again, before it expires; 0 = never. */
#define CALLS_SAVE_TICK_NS  50000000ull
#define CALLS_SAVE_ROUND_NS 500000000ull
void calls_save_tick(struct calls *c, uint64_t now_ns, uint64_t renew_ns);
/* The next thing to be written: appended to out. False: there is nothing. */
bool calls_save_next(struct calls *c, uint64_t now_ns, struct sbuf *out, struct save_item *item);

/* It could not be removed where it is written: to be tried again, unless there is such a call again. */
void calls_save_gone(struct calls *c, struct str call_id);

struct calls_save_usage {
	uint64_t waiting; /* calls */
	uint64_t ended;   /* waiting to be removed */
	uint64_t ended_lost;
	uint64_t too_long; /* calls not saved because of a too long Call-ID, since the start */
};
void calls_save_usage(struct calls *c, struct calls_save_usage *out);

/* Bring a call back: same ports, same keys, indexes behind those that were used. whole, and state if there is one, are what was
 * written. 0, then *why is NULL or one line on what did not come with it; -EEXIST: it is there already; else nothing was changed, and
 * *why is one line. */
int calls_restore(struct calls *c, struct pool *p, struct str whole, struct str state,
	uint64_t now_ns, const char **why);
/* Another node is active: new calls are refused, emergency calls too. */
void calls_passive(struct calls *c, bool passive);
/* All calls end here and stay written there: another node has them from now on. Saving is off until calls_save_start(). */
void calls_leave(struct calls *c);

#endif
