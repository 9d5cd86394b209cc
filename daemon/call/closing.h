/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The closing report of a call, for call records (CDR) and the log. Contains no key. */
#ifndef CALL_CLOSING_H
#define CALL_CLOSING_H

#include "call/call.h"

struct call;

struct call_closing { /* an ended call */
	struct str call_id;
	struct str from, to; /* names of the caller and the callee (call/names.h) */
	const char *reason;  /* in plain words, a constant */
	uint64_t created_ns, answered_ns, ended_ns; /* CLOCK_REALTIME; answered_ns 0 = never */
	bool one_way;
	struct str text; /* one line: reason, duration, suites, packets, loss, MOS, drops */
	const struct ngval *record; /* the same, and more, as a dictionary (call/closing.c) */
};

/* Called for every call that ends, except calls that continue from Redis. The arguments are invalid
 * afterwards. */
void calls_on_end(
	struct calls *c, void (*ended)(void *arg, const struct call_closing *e), void *arg);

/* Reports the end of a call (closing.c), while its counters can still be read. */
void closing_report(struct calls *c, const struct call *call, enum call_end why, uint64_t now_ns);

#endif
