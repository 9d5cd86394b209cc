/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The mark of loop-protect, which recognises SDP that xcipher wrote. */
#ifndef OFFER_LOOP_PROTECT_H
#define OFFER_LOOP_PROTECT_H

#include "call/call.h"
#include "call/plan.h"

/* The mark of loop-protect (loop_protect.c): a place for it in a=xcipher, of as many digits. */
#define LOOP_NO_MARK "00000000000000000000000000000000"

/* A copy of an SDP of ours, with its mark in that place. s = NULL without memory. */
struct str loop_mark(
	struct pool *p, const struct call_policy *policy, struct str call_id, struct str body);

/* Whether the SDP has our mark, and SDP and Call-ID are those that it was made for. */
bool loop_is_ours(const struct call_policy *policy, struct str call_id, const struct sdp *sdp);

#endif
