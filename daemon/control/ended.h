/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calls that ended in the last ten minutes, for the web page: a bounded ring that replaces the
 * oldest. Control thread only. */
#ifndef CONTROL_ENDED_H
#define CONTROL_ENDED_H

#include "call/call.h"
#include "call/closing.h"

#define ENDED_CALLS 2048u
#define ENDED_MS    (600u * 1000u)
#define ENDED_TEXT  512u /* maximum bytes kept of a Call-ID, and of each name */

struct ended;

int ended_create(struct ended **out);
void ended_destroy(struct ended *e); /* NULL is fine */
/* Stores a copy. Without memory the call is counted, but not shown. NULL is fine. now_ms: since
 * 1970. */
void ended_add(struct ended *e, const struct call_closing *closing, uint64_t now_ms);

/* Adds "ended calls": matching calls, newest first, limit at most, after the first skip; part: of a
 * Call-ID or name. Adds "ended matched", and "ended not kept": calls replaced before their ten
 * minutes. Strings belong to the ring: use them before it changes. NULL: adds nothing. */
struct ended_page {
	struct str part;
	uint32_t skip, limit;
};
void ended_view(const struct ended *e, struct pool *p, const struct ended_page *page,
	uint64_t now_ms, struct ngval *dict);
/* Adds the stored data of this call, with its closing line, as "closing". False: not found. */
bool ended_detail(const struct ended *e, struct pool *p, struct str call_id, uint64_t now_ms,
	struct ngval *dict);

#endif
