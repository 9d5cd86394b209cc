/* SPDX-License-Identifier: GPL-2.0-or-later */
/* All calls, as the files of this room that change them see them. Nobody outside call/ includes this. */
#ifndef XCIPHER_CALL_CALLS_H
#define XCIPHER_CALL_CALLS_H

#include "call/call.h"
#include "call/links.h"
#include "call/model.h"
#include "call/save.h"

struct calls {
	struct call_policy policy;
	const struct relay *relay;
	struct reach reach_default;
	const struct reach *reach;
	struct links links;
	struct call_table table;
	struct keystore keys;
	enum call_limit limit; /* reached, other than sessions */
	bool passive;
	bool leaving;            /* calls that end here continue on another node */
	struct call *cursor;     /* of the tick */
	struct {                 /* reach_again.c */
		struct call *at; /* the next call of the pass, NULL: no pass has begun */
		uint32_t passes; /* still to be made, with the one under way */
	} again;
	struct calls_counters counters;
	struct saver saver;
	void (*notice)(void *arg, const struct call_key_notice *n);
	void *notice_arg;
	void (*timeout)(void *arg, const struct call_timeout *t);
	void *timeout_arg;
	struct trace trace;
	void (*handover)(void *arg, const struct call_handover *h);
	void *handover_arg;
	const struct recorder *rec;
	call_reply_fits *fits;
	void *fits_arg;
	void (*ended)(void *arg, const struct call_closing *e);
	void *ended_arg;
	void (*trouble)(void *arg, const struct call_trouble *t);
	void *trouble_arg;
};

/* Next takes prev's place, or becomes a call (prev is NULL). Consumes next, whatever happens.
 * Returns 0 or what apply_commit() or links_plan() returned; then all is as it was. */
int calls_put_in_force(
	struct calls *c, struct pool *p, struct call *prev, struct call *next, uint64_t now_ns);

/* Ends a call: releases its ports, streams, keys and recording, and frees it. now_ns: 0 = now. */
void calls_end(struct calls *c, struct call *call, enum call_end why, uint64_t now_ns);

/* Ends these sides of a call, a bit each (delete.c). The call is replaced. 0 or a negative errno; then all is as it was. */
int calls_end_sides(
	struct calls *c, struct pool *p, struct call *call, uint32_t sides, uint64_t now_ns);

/* Reports the end of a call (closing.c), while its counters can still be read. */
void closing_report(struct calls *c, const struct call *call, enum call_end why, uint64_t now_ns);
/* Once a second: notes learned addresses and reports troubles (watch.c). */
void watch_call(struct calls *c, struct call *call, uint64_t now_ns);
/* Called when an offer or answer between two sides takes effect (explain.c): records its content, and
 * why each leg has its profile and suite. again: the call existed before. */
void explain_exchange(struct call *call, bool again, const struct sdp *said, uint8_t from,
	uint8_t to, bool is_answer, uint64_t now_ns);

/* A call that comes back was recorded: it goes on in a file more. NULL, or why it is not recorded any more. */
const char *calls_record_resume(
	struct calls *c, struct pool *p, struct call *call, uint64_t now_ns);

/* What the reply says of a negative errno; of a new call -EAGAIN is a load limit. */
void calls_resource_error(struct call_reply *out, int err, bool is_new);

#endif
