/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Keeps the profile and suites of an established leg. */
#ifndef OFFER_NEG_STAY_H
#define OFFER_NEG_STAY_H

#include "call/plan.h"

/* Replaces in->r by a copy without the flags that were meant for the other side: from said the SDP,
 * to is told. Keeps the flags that are in force for to. False without memory. */
bool stay_request(struct plan *plan, const struct side *from, struct side *to, struct neg_in *in,
	bool is_answer);
bool leg_is_encrypted(const struct leg *l);

/* The leg of to that shows what l is to speak: l if it was in force before. For a new m-line
 * another one, if its sender offers the m-line in the profile of its others. NULL: none. */
const struct leg *stay_model(const struct side *from, const struct side *to, const struct leg *l,
	enum sdp_proto offered);

/* Whether an offer in this profile has crypto lines (RFC 8643), because SRTP is in force. */
bool stay_opportunistic(const struct leg *model, enum sdp_proto proto, const struct neg_in *in);

/* Notes it if a leg, encrypted before with this suite, no longer is. */
void stay_look(struct plan *plan, const struct leg *l, uint8_t was, bool by_order, uint32_t i,
	struct neg_in *in);

#endif
