/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The calls that ended in the last ten minutes, for the page: a bounded ring, the oldest make room.
 * Control thread only. */
#ifndef CONTROL_ENDED_H
#define CONTROL_ENDED_H

#include "call/call.h"
#include "call/closing.h"

#define ENDED_CALLS 2048u
#define ENDED_MS    (600u * 1000u)
#define ENDED_TEXT  512u /* bytes of a Call-ID that are kept, and of each name */

struct ended;

int ended_create(struct ended **out);
void ended_destroy(struct ended *e); /* NULL is fine */
/* Keeps a copy. Without memory the call is counted, but not shown. NULL is fine. now_ms: since
 * 1970. */
void ended_add(struct ended *e, const struct call_closing *closing, uint64_t now_ms);

/* Adds "ended calls": the newest first, without the first skip of those that match, limit at most;
 * part is of a Call-ID or name. Adds "ended matched", and "ended not kept": calls that made room
 * before their ten minutes were over. Strings are the ring's: use them before anything changes.
 * NULL: adds nothing. */
struct ended_page {
	struct str part;
	uint32_t skip, limit;
};
void ended_view(const struct ended *e, struct pool *p, const struct ended_page *page,
	uint64_t now_ms, struct ngval *dict);
/* Adds what is kept of this call, with its closing line, as "closing". False: it is not there. */
bool ended_detail(const struct ended *e, struct pool *p, struct str call_id, uint64_t now_ms,
	struct ngval *dict);

#endif
