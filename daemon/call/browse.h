/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lists the calls that match a filter (call/find.h), page by page. */
#ifndef CALL_BROWSE_H
#define CALL_BROWSE_H

#include "call/call.h"

/* Parameters of "calls"; texts are slices of the request. */
struct calls_look {
	struct str part;   /* of a Call-ID, tag or name; empty = any */
	struct str filter; /* words of call/find.h; empty = all calls */
	struct str sort;   /* an order of call/find.h; empty = the newest first */
	struct str after;  /* "next" of the previous page; empty = the first page */
	bool count;        /* "matched" on each page, not only on the first */
	uint32_t limit;    /* calls per page, at most */
	uint32_t bytes;    /* per page, about, so that a reply fits a datagram; 0 = any */
};

/* Adds "calls": a page of the calls that match, each in a few lines; "next" if there are more
 * pages; on the first page "matched": how many there are (count: on each). Strings are the calls':
 * use them before anything changes. Returns NULL, or what is wrong with the request, a constant.
 * now_ns: CLOCK_REALTIME. */
const char *calls_view(struct calls *c, struct pool *p, const struct calls_look *look,
	uint64_t now_ns, struct ngval *dict);

#endif
