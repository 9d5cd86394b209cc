/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds LoST servers by their names, in the DNS. Threads wait for the resolver of libc, so no query
 * waits for another one. For a client process; results are kept until they expire. */
#ifndef LOST_NAMES_H
#define LOST_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "http.h"

/* url: NULL if there is none, or not in time; valid during the call. */
typedef void names_done(void *arg, const char *url);

struct names_ask {
	const char *name;
	bool configured;    /* by the operator; else a server has named it */
	struct http *http;  /* whose wait ends when the result is there */
	int64_t now, until; /* ms; done() is called by then */
	names_done *done;
	void *arg;
};

/* done() is called by names_run(). False: not a name, too many lookups, or out of memory; it is not
 * called. */
bool names_find(const struct names_ask *a);
/* Calls done() for the lookups of this http that have ended. */
void names_run(const struct http *http, int64_t now);
/* Whether lookups are on their way, so that names_run() has to be called soon. */
bool names_busy(void);

#endif
