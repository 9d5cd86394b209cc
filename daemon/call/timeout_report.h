/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Selects the receiver and the content of the report about a call that timed out. */
#ifndef CALL_TIMEOUT_REPORT_H
#define CALL_TIMEOUT_REPORT_H

#include "call/call.h"
#include "call/model.h"
#include "call/plan.h"

#define CALL_TOLD_MAX 16u /* parties, as many as a call has */

/* a call that ended without media, or by its maximum duration */
struct call_timeout {
	struct str call_id;
	bool others_live; /* a dialog ends, others with the same Call-ID continue */
	/* of xmlrpc-callback, or else where its first request came from; may be unset */
	struct endpoint whom;
	struct str tag[CALL_TOLD_MAX]; /* of its parties; the first one's is the caller's */
	uint32_t tags;
	struct call_pair { /* who talks to whom, the earlier one first; indexes of tag[] */
		uint8_t from, to;
	} pair[CALL_TOLD_MAX];
	uint32_t pairs;
};

/* Stores the address to report the call's end to, with a warning if it will not be used. */
void timeout_report_request(struct plan *plan, struct call *c, const struct neg_in *in);

/* Whether a request, or a saved call, may name this address. */
bool timeout_report_allowed(
	const struct call_nets *nets, const struct reach *reach, const struct endpoint *whom);

/* What there is to tell of the end of these sides, a bit each; strings are the call's. */
void timeout_report_write(struct call_timeout *out, const struct call *c, uint32_t sides);

#endif
