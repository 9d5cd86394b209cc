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
	/* from xmlrpc-callback, or the source of its first request; may be unset */
	struct endpoint whom;
	struct str tag[CALL_TOLD_MAX]; /* tags of its parties, the caller's first */
	uint32_t tags;
	struct call_pair { /* pairs with a dialog, the earlier party first; indexes of tag[] */
		uint8_t from, to;
	} pair[CALL_TOLD_MAX];
	uint32_t pairs;
};

/* Stores the address to report the call's end to, with a warning if it will not be used. */
void timeout_report_request(struct plan *plan, struct call *c, const struct neg_in *in);

/* Whether a request, or a saved call, may name this address. */
bool timeout_report_allowed(
	const struct call_nets *nets, const struct reach *reach, const struct endpoint *whom);

/* Writes the report about the end of these sides, a bit each; strings belong to the call. */
void timeout_report_write(struct call_timeout *out, const struct call *c, uint32_t sides);

#endif
