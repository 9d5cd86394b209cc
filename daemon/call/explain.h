/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Explains a call in plain words: offers, choices, reasons and events. Contains no key. */
#ifndef CALL_EXPLAIN_H
#define CALL_EXPLAIN_H

#include "call/call.h"

struct call;

/* Notes in the history of a call, if it exists, that a command was executed, or refused for this
 * error and detail. */
void calls_note(struct calls *c, const struct ng_request *r, uint64_t now_ns, const char *error,
	struct str detail);

/* Fills dict with what the parties of a call offered, what was chosen and why, and what happened
 * since, in plain words. NULL, or the error-reason. */
const char *calls_explain(
	struct calls *c, struct pool *p, struct str call_id, uint64_t now_ns, struct ngval *dict);

/* An offer or answer between two sides. */
struct explain_exchange {
	const struct sdp *said;
	uint8_t from, to; /* sides */
	bool again;       /* the call existed before */
	bool is_answer;
};

/* Called when an offer or answer takes effect (explain.c): records its content, and why each leg
 * has its profile and suite. */
void explain_exchange(struct call *call, uint64_t now_ns, const struct explain_exchange *e);

#endif
