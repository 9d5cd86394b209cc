/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calls that outlive us: what there is to be written elsewhere, and how it comes back. Whoever
 * writes it (persist/redis.c) sees bytes only. They hold keys in the clear: they are to be
 * encrypted, and wiped. Control thread only. */
#ifndef PERSIST_SAVE_H
#define PERSIST_SAVE_H

#include "call/call.h"
#include "call/unsaved.h"

enum save_what {
	SAVE_CALL,  /* all of a call */
	SAVE_STATE, /* only what packets change: indexes, learned addresses */
	SAVE_ENDED, /* there is no such call any more */
};

struct save_item {
	enum save_what what;
	char call_id[SAVE_ID_MAX]; /* calls with longer ones are not saved */
	size_t call_id_len;
};

/* Every CALLS_SAVE_TICK_NS: finds out where the next calls' indexes stand; each call is looked at
 * once in CALLS_SAVE_ROUND_NS. renew_ns: what was written that long ago is written again, before it
 * expires; 0 = never. */
#define CALLS_SAVE_TICK_NS  50000000ull
#define CALLS_SAVE_ROUND_NS 500000000ull
void calls_save_tick(struct calls *c, uint64_t now_ns, uint64_t renew_ns);
/* The next thing to be written: appended to out. False: there is nothing. */
bool calls_save_next(struct calls *c, uint64_t now_ns, struct sbuf *out, struct save_item *item);

#endif
