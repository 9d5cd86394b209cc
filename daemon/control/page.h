/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the web page is told, once a second: a JSON text about calls, packets, workers and devices. Control thread. */
#ifndef CONTROL_PAGE_H
#define CONTROL_PAGE_H

#include "control/front.h"

struct page_source {
	struct calls *calls;
	/* What app/ knows of packets and devices: adds dictionaries. May be NULL. */
	void (*fill)(void *arg, struct pool *p, struct ngval *dict);
	void *arg;
};

#define PAGE_CALLS 200u /* shown; the others are only counted */

/* What is looked at, as text: the filter, a line end, and the Call-ID whose details are wanted; either may be empty. */
int page_snapshot(const struct page_source *s, struct str look, uint64_t now_ns, struct sbuf *out);
/* Ends a call as ng's delete does, at once. */
int page_end_call(struct ng_front *f, struct str call_id, uint64_t now_ns, struct sbuf *out);

#endif
