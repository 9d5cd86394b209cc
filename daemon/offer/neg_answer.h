/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Negotiates an answer (RFC 3264 section 6). Pure. */
#ifndef OFFER_NEG_ANSWER_H
#define OFFER_NEG_ANSWER_H

#include "call/plan.h"

void negotiate_answer(struct plan *out, struct call *next, struct neg_in *in);

#endif
