/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What pass.c has for others. */
#ifndef KEYING_PASS_H
#define KEYING_PASS_H

#include "call/plan.h"

/* Whether the offer is handed on as it is; then the lines are in the plan. paired: these two spoke
 * to each other so far. */
bool pass_offer(struct plan *plan, const struct leg *from, struct leg *to, bool paired,
	const struct sdp_media *m, uint32_t i, const struct neg_in *in);

/* The answer of from to such an offer of to's comes into force. */
void pass_answer(struct plan *plan, struct leg *from, struct leg *to, bool paired,
	const struct sdp_media *m, uint32_t i, struct neg_in *in);

#endif
