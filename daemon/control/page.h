/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the web page is told, once a second: a JSON text about calls, packets, workers and devices. Control thread. */
#ifndef CONTROL_PAGE_H
#define CONTROL_PAGE_H

#include "control/ended.h"
#include "control/front.h"

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
	struct str
		show; /* words of call/find.h that the page offers for choice, such as "one-way" */
	struct str
		filter;  /* typed: words of call/find.h, or else a part of a Call-ID, tag or name */
	struct str sort; /* an order of call/find.h */
	struct str after; /* "next" of the page before */
	struct str ended; /* how many of the ended calls that match to skip, a number */
	struct str call;  /* the Call-ID to show in detail */
};

/* From and to one text, in which line ends separate the fields; only call may contain some.
 * page_look_write() returns the length, or 0 if it does not fit or another field has a line end. */
void page_look_read(struct page_look *out, struct str text);
size_t page_look_write(char *buf, size_t size, const struct page_look *look);

int page_snapshot(const struct page_source *s, const struct page_look *look, uint64_t now_ns,
	struct sbuf *out);
/* What a page gets once, before its first snapshot. */
int page_history(const struct page_source *s, struct sbuf *out);
/* Ends a call as ng's delete does, at once. */
int page_end_call(struct ng_front *f, struct str call_id, uint64_t now_ns, struct sbuf *out);

#endif
