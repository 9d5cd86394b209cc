/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Keeps the profile and suites of an established leg. */
#ifndef OFFER_NEG_STAY_H
#define OFFER_NEG_STAY_H

#include "call/plan.h"

/* Replaces in->r by a copy without the flags meant for the other side: from sent the SDP, to
 * receives it. Keeps the flags in force for to. False without memory. */
bool stay_request(struct plan *plan, const struct side *from, struct side *to, struct neg_in *in,
	bool is_answer);
bool leg_is_encrypted(const struct leg *l);

/* The leg of "to" whose profile leg l takes: l itself if it was in force before. For a new m-line
 * another leg, if its sender offers all m-lines in one profile. NULL: none. */
const struct leg *stay_model(const struct side *from, const struct side *to, const struct leg *l,
	enum sdp_proto offered);

/* Whether an offer in this profile has crypto lines (RFC 8643), because SRTP is in force. */
bool stay_opportunistic(const struct leg *model, enum sdp_proto proto, const struct neg_in *in);

/* Adds a notice if a leg that was encrypted with this suite no longer is. */
void stay_look(struct plan *plan, const struct leg *l, uint8_t was, bool by_order, uint32_t i,
	struct neg_in *in);

#endif
