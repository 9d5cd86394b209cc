/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Private to the exchange files. exchange.c runs the steps of an exchange, exchange_begin.c has the
 * checks before the first step, exchange_steps.c has the steps. */
#ifndef OFFER_EXCHANGE_INT_H
#define OFFER_EXCHANGE_INT_H

#include "call/call.h"
#include "call/plan.h"

struct exchange {
	struct calls *c;
	struct pool *p;
	const struct ng_request *r;
	uint64_t now_ns; /* CLOCK_REALTIME */
	enum exchange_kind { OFFER, ANSWER, PUBLISH, LISTEN, LISTEN_ANSWER } kind;
	struct sdp *sdp;
	struct call *prev; /* the call in force; NULL: a new call */
	struct call *next; /* the copy to negotiate */
	struct neg_in in;
	struct plan plan;
	struct str body; /* the SDP of the reply */
	struct call_reply *out;
	struct ngval *dict; /* PUBLISH, LISTEN: further parts of the reply */
};

/* --- exchange_begin.c. False: out has the error, or the reply is complete --------------------- */

/* Checks an offer or answer, reads its SDP and finds its call. */
bool exchange_begin(struct exchange *x);
/* Parses the SDP. A subscriber gets our offer, made from the sources' descriptions. */
bool exchange_parse(struct exchange *x);
/* Whether media may go to the addresses in the SDP. */
bool exchange_is_allowed(struct exchange *x);
/* Whether a limit refuses a new call, so that another relay gets it. Emergency calls are accepted
 * while ports remain. */
bool exchange_over_limit(struct exchange *x);
/* Generates a tag or Call-ID for a party without one. */
struct str exchange_draw_name(struct pool *p, struct call_reply *out);

/* --- exchange_steps.c, in this order. False: out has the error, and nothing changed ----------- */

/* Copies the call, or creates a new one. */
bool exchange_copy(struct exchange *x);
/* Negotiates on the copy, and writes the plan. */
bool exchange_negotiate(struct exchange *x);
/* Records on the copy that its parties signalled, and whether it is an emergency call. */
void exchange_mark(struct exchange *x);
/* Takes ports and keys for the copy. */
bool exchange_take(struct exchange *x);
/* Writes the SDP of the reply. False: it failed, or the reply is too long to be sent. */
bool exchange_write(struct exchange *x);
/* Commits the copy to its worker, and replaces the call by it. Frees the copy on error. */
bool exchange_put_in_force(struct exchange *x);
/* Completes the reply, counts, and starts a requested recording. */
void exchange_report(struct exchange *x);
/* Releases ports and keys. */
void exchange_undo(struct exchange *x);
/* Frees the copy. */
void exchange_drop(struct exchange *x);

#endif
