/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What ng's "page" answers, of which xcipher-web makes its page: calls, packets, workers and
 * devices. Control thread. */
#ifndef CONTROL_PAGE_H
#define CONTROL_PAGE_H

#include "call/call.h"
#include "control/ended.h"

struct page_source {
	struct calls *calls;
	/* What app/ knows of packets and devices: adds dictionaries. May be NULL. */
	void (*fill)(void *arg, struct pool *p, struct ngval *dict);
	/* The last ten minutes, for charts: adds "samples". May be NULL. */
	void (*history)(void *arg, struct pool *p, struct ngval *dict);
	const struct ended *ended; /* NULL: no ended calls are shown */
	void *arg;
};

#define PAGE_CALLS 100u /* per page of the list */
#define PAGE_ENDED 20u  /* ended calls, likewise */

/* What a viewer looks at; each may be empty. */
struct page_look {
	/* words of call/find.h that the page offers for choice, such as "one-way" */
	struct str show;
	/* typed: words of call/find.h, or else a part of a Call-ID, tag or name */
	struct str filter;
	struct str sort;  /* an order of call/find.h */
	struct str after; /* "next" of the page before */
	struct str ended; /* how many of the ended calls that match to skip, a number */
	struct str call;  /* the Call-ID to show in detail */
};

/* Add to dict what the page shows, and what it gets once, before its first snapshot. now_ns:
 * CLOCK_REALTIME. */
void page_snapshot(const struct page_source *s, const struct page_look *look, struct pool *p,
	uint64_t now_ns, struct ngval *dict);
void page_history(const struct page_source *s, struct pool *p, struct ngval *dict);

#endif
