/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calls that survive the process: what to store, and how to restore it. The storage
 * (persist/redis.c) sees only bytes. They contain keys in the clear: encrypt and wipe them. Control
 * thread only. */
#ifndef PERSIST_SAVE_H
#define PERSIST_SAVE_H

#include "call/call.h"
#include "call/unsaved.h"

enum save_what {
	SAVE_CALL,  /* all of a call */
	SAVE_STATE, /* only state changed by packets: indexes, learned addresses */
	SAVE_ENDED, /* the call has ended */
};

struct save_item {
	enum save_what what;
	char call_id[SAVE_ID_MAX]; /* longer Call-IDs are not saved */
	size_t call_id_len;
};

/* Call it every CALLS_SAVE_TICK_NS: reads indexes of the next calls; each call once per
 * CALLS_SAVE_ROUND_NS. renew_ns: age at which a record is written again before it expires; 0 =
 * never. */
#define CALLS_SAVE_TICK_NS  50000000ull
#define CALLS_SAVE_ROUND_NS 500000000ull
void calls_save_tick(struct calls *c, uint64_t now_ns, uint64_t renew_ns);
/* Appends the next record to write to out. False: none. */
bool calls_save_next(struct calls *c, uint64_t now_ns, struct sbuf *out, struct save_item *item);

#endif
