/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of exchange. exchange.c leads an exchange through its steps,
 * exchange_begin.c has the checks before the first step, exchange_steps.c has the steps. */
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
	struct call *prev; /* as it is; NULL: it is new */
	struct call *next; /* the copy that is negotiated on */
	struct neg_in in;
	struct plan plan;
	struct str body; /* the SDP of the reply */
	struct call_reply *out;
	struct ngval *dict; /* PUBLISH, LISTEN: what the reply says besides */
};

/* --- exchange_begin.c: false: out has the error, or the reply is complete --------------------- */

/* Checks an offer or answer, reads its SDP and finds its call. */
bool exchange_begin(struct exchange *x);
/* Reads the SDP. A subscriber gets an offer of ours, which repeats what the sources said. */
bool exchange_parse(struct exchange *x);
/* Whether media may go where the SDP says. */
bool exchange_is_allowed(struct exchange *x);
/* Whether a new call has to go to another relay, which may have room. An emergency call is taken
 * as long as there is a port. */
bool exchange_over_limit(struct exchange *x);
/* Draws a tag or Call-ID for a party that was given none. */
struct str exchange_draw_name(struct pool *p, struct call_reply *out);

/* --- exchange_steps.c: in this order. False: out has the error, and nothing was changed ------- */

/* Copies the call, or makes a new one. */
bool exchange_copy(struct exchange *x);
/* Negotiates on the copy, and makes the plan. */
bool exchange_negotiate(struct exchange *x);
/* Notes on the copy that its parties signalled, and whether it is an emergency call. */
void exchange_mark(struct exchange *x);
/* Takes ports and keys for the copy. */
bool exchange_take(struct exchange *x);
/* Writes the SDP of the reply. False: it failed, or the reply is too long to be sent. */
bool exchange_write(struct exchange *x);
/* Sends the copy to its worker, and puts it in the place of the call. Frees the copy if it fails.
 */
bool exchange_put_in_force(struct exchange *x);
/* Completes the reply, counts, and starts a recording that was asked for. */
void exchange_report(struct exchange *x);
/* Gives back ports and keys. */
void exchange_undo(struct exchange *x);
/* Frees the copy. */
void exchange_drop(struct exchange *x);

#endif
