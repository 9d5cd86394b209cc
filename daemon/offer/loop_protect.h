/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The mark of loop-protect, which recognises SDP that xcipher wrote. */
#ifndef OFFER_LOOP_PROTECT_H
#define OFFER_LOOP_PROTECT_H

#include "call/call.h"
#include "call/plan.h"

/* Placeholder for the mark in a=xcipher, with as many digits. */
#define LOOP_NO_MARK "00000000000000000000000000000000"

/* Copies an SDP of ours, and replaces the placeholder by the mark. s = NULL without memory. */
struct str loop_mark(
	struct pool *p, const struct call_policy *policy, struct str call_id, struct str body);

/* Whether the SDP has our mark, valid for this SDP and Call-ID. */
bool loop_is_ours(const struct call_policy *policy, struct str call_id, const struct sdp *sdp);

#endif
