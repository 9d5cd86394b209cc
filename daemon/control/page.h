/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The reply to ng's "page", from which xcipher-web makes its web page: calls, packets, workers and
 * devices. Control thread. */
#ifndef CONTROL_PAGE_H
#define CONTROL_PAGE_H

#include "call/call.h"
#include "control/ended.h"

struct page_source {
	struct calls *calls;
	/* Adds dictionaries about packets and devices. May be NULL. */
	void (*fill)(void *arg, struct pool *p, struct ngval *dict);
	/* The last ten minutes, for charts: adds "samples". May be NULL. */
	void (*history)(void *arg, struct pool *p, struct ngval *dict);
	const struct ended *ended; /* NULL: no ended calls are shown */
	void *arg;
};

#define PAGE_CALLS 100u /* per page of the list */
#define PAGE_ENDED 20u  /* ended calls per page */

/* The view that a viewer selected. Each string may be empty. */
struct page_look {
	/* words of call/find.h offered on the page, such as "one-way" */
	struct str show;
	/* typed text: words of call/find.h, or part of a Call-ID, tag or name */
	struct str filter;
	struct str sort;  /* an order of call/find.h */
	struct str after; /* "next" of the page before */
	struct str ended; /* number of matching ended calls to skip */
	struct str call;  /* the Call-ID to show in detail */
};

/* page_snapshot() adds the present state to dict; page_history() adds the samples that a page needs
 * before its first snapshot. now_ns: CLOCK_REALTIME. */
void page_snapshot(const struct page_source *s, const struct page_look *look, struct pool *p,
	uint64_t now_ns, struct ngval *dict);
void page_history(const struct page_source *s, struct pool *p, struct ngval *dict);

#endif
