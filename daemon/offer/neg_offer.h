/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Negotiates an offer (RFC 3264 section 5). Pure. */
#ifndef OFFER_NEG_OFFER_H
#define OFFER_NEG_OFFER_H

#include "call/plan.h"

/* Writes the plan: how next, a copy of the call, must change. */
void negotiate_offer(struct plan *out, struct call *next, struct neg_in *in);

#endif
